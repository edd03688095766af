"""The reviewers held against the rule check: shares by hand, each review once, what is
left out."""

from __future__ import annotations

import pandas as pd
import pytest

from studies.trust_indices import marks_compared
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


def shares(marks: pd.DataFrame) -> dict[str, tuple[float, int]]:
    """Sensitivity, specificity and quotations that occur, each with the items behind it."""
    items = marks_compared(marks)
    sides = {
        "sensitivity": items.loc[items["rule_objects"], "objects"],
        "specificity": items.loc[~items["rule_objects"], "accepts"],
        "quotation": items.loc[items["objects"], "quotes"],
    }
    return {name: (each.mean(), len(each)) for name, each in sides.items()}


def test_sensitivity_specificity_and_quotations_by_hand() -> None:
    assert shares(five()) == {
        "sensitivity": (2 / 3, 3),
        "specificity": (1 / 2, 2),
        "quotation": (2 / 3, 3),
    }


def test_an_objection_without_a_quotation_counts_as_one_whose_quotation_does_not_occur() -> None:
    marks = pd.DataFrame(
        [
            mark("a", "UNSAFE", "UNSAFE", quote=None, quote_occurs=None),
            mark("b", "UNSAFE", "UNSAFE"),
        ]
    )
    assert shares(marks)["quotation"] == (0.5, 2)


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
    assert shares(marks) == shares(five())
    assert len(marks_compared(marks)) == 5


def test_a_review_that_came_out_the_same_for_both_configurations_counts_once() -> None:
    twice = pd.concat([five(), five().assign(configuration="panel of 3")], ignore_index=True)
    assert shares(twice) == shares(five())
    other = five().assign(configuration="panel of 3", text="another drug")
    assert shares(pd.concat([five(), other], ignore_index=True))["sensitivity"] == (2 / 3, 6)


def test_one_item_that_differs_makes_it_another_review() -> None:
    two = [mark("a", "SAFE", "UNSAFE"), mark("a", "SAFE", "UNSAFE", item=2, text="y")]
    panel = [row | {"configuration": "panel of 3"} for row in two]
    panel[1] |= {"verdict": "UNSAFE"}
    assert shares(pd.DataFrame(two + panel))["sensitivity"] == (1 / 4, 4)


def test_each_item_says_what_its_rule_hangs_on() -> None:
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
    items = marks_compared(pd.DataFrame(marks))
    assert items["rule_kind"].tolist() == ["allergy", "allergy", "egfr_below", "duplicate", ""]
    assert items["case_id"].tolist()[:2] == ["d a", "other b"]


def test_an_empty_table_of_marks_gives_an_empty_table_and_a_lacking_column_is_refused() -> None:
    assert len(marks_compared(five().iloc[:0])) == 0
    with pytest.raises(ValueError, match=r"marks lacks the columns \['rule'\]"):
        marks_compared(five().drop(columns="rule"))
