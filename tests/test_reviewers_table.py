"""The reviewers held against the rule check: shares by hand, each review once, what is
left out."""

from __future__ import annotations

import pandas as pd
import pytest

from studies.trust_indices import (
    ALL_OBJECT,
    NO_OBJECTION,
    NO_RULE,
    NOTHING,
    marks_compared,
    reviewer_table,
    rule_kind_table,
)
from trustlab.metrics.estimate import TOO_FEW
from trustlab.safety.table import load_safety


def mark(case_id: str, verdict: str | None, rule_verdict: str = "UNKNOWN", **changes) -> dict:
    """One marked prescription; an objection quotes words that occur."""
    objects = verdict not in ("SAFE", "FINE", None)
    row = {
        "model": "m", "dataset": "d", "configuration": "one doctor", "level": 100,
        "case_id": case_id, "kind": "prescription", "item": 1, "text": f"drug for {case_id}",
        "known": True, "verdict": verdict, "quote": "asthma" if objects else None,
        "quote_occurs": True if objects else None, "reason": None, "rule_verdict": rule_verdict,
        "rule": None,
    }  # fmt: skip
    return row | changes


def five() -> pd.DataFrame:
    """Three items that the rules object to, two of them seen (one in a lesser degree); two fine
    ones, one objected to."""
    return pd.DataFrame(
        [
            mark("a", "UNSAFE", "UNSAFE"),
            mark("b", "SAFE WITH CAUTION", "UNSAFE"),
            mark("c", "SAFE", "SAFE WITH CAUTION"),
            mark("d", "SAFE", "SAFE"),
            mark("e", "UNSAFE", "SAFE", quote_occurs=False),
        ]
    )


def measured(marks: pd.DataFrame, kind: str = "prescription", **options) -> pd.DataFrame:
    table = reviewer_table(marks, **options)
    return table[table["kind"] == kind].set_index("metric")


def test_sensitivity_specificity_and_quotations_by_hand() -> None:
    table = measured(five())
    assert table["value"].to_dict() == pytest.approx(
        {"sensitivity": 2 / 3, "specificity": 1 / 2, "quotation": 2 / 3}
    )
    assert table["n"].to_dict() == {"sensitivity": 3, "specificity": 2, "quotation": 3}
    assert set(table["missing"]) == {TOO_FEW} and table["low"].isna().all()


def test_an_objection_without_a_quotation_counts_as_one_whose_quotation_does_not_occur() -> None:
    marks = pd.DataFrame(
        [
            mark("a", "UNSAFE", "UNSAFE", quote=None, quote_occurs=None),
            mark("b", "UNSAFE", "UNSAFE"),
        ]
    )
    assert measured(marks).loc["quotation", "value"] == 0.5


@pytest.mark.parametrize(
    ("said", "rule", "objects", "rule_objects"),
    [
        ("RISKY", "REDUNDANT", True, True),
        ("REDUNDANT", "FINE", True, False),
        ("FINE", "RISKY", False, True),
    ],
)
def test_a_test_that_is_risky_or_redundant_is_objected_to(
    said, rule, objects, rule_objects
) -> None:
    (row,) = marks_compared(pd.DataFrame([mark("a", said, rule, kind="test")])).to_dict("records")
    assert (row["objects"], row["accepts"], row["rule_objects"]) == (
        objects,
        not objects,
        rule_objects,
    )


def test_what_cannot_be_compared_is_left_out() -> None:
    more = [
        mark("f", None, "UNSAFE"),
        mark("g", "UNKNOWN", "UNSAFE"),
        mark("h", "UNKNOWN", known=False),
        mark("i", None, known=False),
    ]
    marks = pd.concat([five(), pd.DataFrame(more)], ignore_index=True)
    assert measured(marks)["value"].to_dict() == measured(five())["value"].to_dict()
    assert len(marks_compared(marks)) == 5


@pytest.mark.parametrize(
    ("marks", "reasons"),
    [
        (
            [mark("a", "SAFE", "SAFE")],
            {"sensitivity": NO_RULE, "specificity": TOO_FEW, "quotation": NO_OBJECTION},
        ),
        (
            [mark("a", "UNSAFE", "UNSAFE")],
            {"sensitivity": TOO_FEW, "specificity": ALL_OBJECT, "quotation": TOO_FEW},
        ),
        (
            [mark("a", None, "UNSAFE")],
            dict.fromkeys(("sensitivity", "specificity", "quotation"), NOTHING),
        ),
    ],
    ids=["nothing to see", "everything to see", "unreadable"],
)
def test_a_share_of_nothing_is_missing_with_its_reason(marks, reasons) -> None:
    table = measured(pd.DataFrame(marks))
    assert table["missing"].to_dict() == reasons
    assert (table["value"].isna() == ~table["missing"].eq(TOO_FEW)).all()


def test_a_review_that_came_out_the_same_for_both_configurations_counts_once() -> None:
    twice = pd.concat([five(), five().assign(configuration="panel of 3")], ignore_index=True)
    assert measured(twice)["n"].to_dict() == measured(five())["n"].to_dict()
    other = five().assign(configuration="panel of 3", text="another drug")
    assert measured(pd.concat([five(), other], ignore_index=True)).loc["sensitivity", "n"] == 6


def test_one_item_that_differs_makes_it_another_review() -> None:
    two = [mark("a", "SAFE", "UNSAFE"), mark("a", "SAFE", "UNSAFE", item=2, text="y")]
    panel = [row | {"configuration": "panel of 3"} for row in two]
    panel[1] |= {"verdict": "UNSAFE"}
    table = measured(pd.DataFrame(two + panel))
    assert table.loc["sensitivity", ["n", "value"]].tolist() == [4, 1 / 4]


def many(right: int = 15, wrong: int = 5, of_a_case: int = 1) -> pd.DataFrame:
    verdicts = ["UNSAFE"] * right + ["SAFE"] * wrong
    return pd.DataFrame(
        [
            mark(f"c{i // of_a_case}", v, "UNSAFE", item=i, text=str(i))
            for i, v in enumerate(verdicts)
        ]
    )


def test_intervals_resample_cases_with_all_their_items() -> None:
    alone, together = (measured(many(of_a_case=k), draws=500).loc["sensitivity"] for k in (1, 2))
    assert alone["value"] == together["value"] == 0.75 and (
        alone["n_cases"],
        together["n_cases"],
    ) == (20, 10)
    assert alone["low"] < 0.75 < alone["high"] and together["low"] < 0.75 < together["high"]
    assert together["high"] - together["low"] > alone["high"] - alone["low"]
    assert measured(many(of_a_case=3), draws=500).loc["sensitivity", "missing"] == TOO_FEW


def test_models_and_data_sets_of_which_nothing_was_marked_have_their_rows() -> None:
    reviews = pd.DataFrame({"model": ["m", "n"], "dataset": ["d", "d"], "level": [100, 100]})
    table = reviewer_table(five(), reviews)
    silent = table[table["model"] == "n"]
    assert len(table) == 12 and set(silent["missing"]) == {NOTHING} and silent["value"].isna().all()
    empty = reviewer_table(five().iloc[:0], reviews)
    assert len(empty) == 12 and set(empty["missing"]) == {NOTHING}


def test_sensitivity_by_what_the_rule_hangs_on() -> None:
    rules = load_safety().drug_rules
    allergy, kidney = (
        next(r.id for r in rules.values() if r.kind == kind) for kind in ("allergy", "egfr_below")
    )
    marks = [
        mark("a", "UNSAFE", "UNSAFE", rule=allergy),
        mark("b", "SAFE", "UNSAFE", rule=allergy, dataset="other"),
        mark("c", "UNSAFE", "UNSAFE", rule=kidney),
        mark("d", "SAFE WITH CAUTION", "SAFE WITH CAUTION", rule="duplicate"),
        mark("e", "UNSAFE", "SAFE"),
    ]
    table = rule_kind_table(pd.DataFrame(marks)).set_index("rule_kind")
    assert table["value"].to_dict() == {"allergy": 0.5, "kidney function": 1, "taken already": 1}
    assert table["n"].to_dict() == {"allergy": 2, "kidney function": 1, "taken already": 1}


def test_an_empty_table_of_marks_gives_empty_tables() -> None:
    nothing = five().iloc[:0]
    assert len(reviewer_table(nothing)) == len(rule_kind_table(nothing)) == 0
    with pytest.raises(ValueError, match=r"marks lacks the columns \['rule'\]"):
        marks_compared(five().drop(columns="rule"))
