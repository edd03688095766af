"""The table of the trust indices: two cases by hand, counts, missing values, bad input."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from each import each
from hypothesis import given, settings
from hypothesis import strategies as st
from made_reviews import EMPTY_PLAN, SAFETY_OFF, many_cases, review, two_cases
from resampled import case_weights

from trustlab.metrics.estimate import percentile_interval
from trustlab.metrics.trust import FORMULATIONS
from trustlab.metrics.trust_table import INDICES, NEEDED, review_counts, trust_indices

pytestmark = pytest.mark.usefixtures("every_interval")


NAN = float("nan")
BOTH = pytest.mark.parametrize("formulation", FORMULATIONS)


FEW, ALIKE = "no interval: fewer than 12 cases", "no interval: all draws alike"


def wide(found: pd.DataFrame) -> pd.Series:
    """The indices of one configuration side by side.

    Each value, with its _low, _high, _n and _missing.
    """
    assert found["metric"].tolist() == INDICES
    ends = {"": "value", "_low": "low", "_high": "high", "_n": "n", "_missing": "missing"}
    return pd.Series(
        {
            f"{r['metric']}{end}": r[of]
            for r in found.to_dict("records")
            for end, of in ends.items()
        },
        dtype=object,
    )


def one(table: pd.DataFrame, *args, draws: int = 0, seed: int = 0, **choices) -> pd.Series:
    """The indices of the only configuration, and the counts behind them."""
    found = trust_indices(table, *args, draws=draws, seed=seed, **choices)
    (counts,) = review_counts(table, *args, **choices).to_dict("records")
    assert (found["n"] + found["n_missing"] == len(table)).all() and found["n"].equals(
        found["n_cases"]
    )
    return pd.concat([wide(found), pd.Series(counts, dtype=object)])


def told(row: pd.Series, found: str) -> list[str]:
    """The indices whose ``missing`` holds these words."""
    return [name for name in INDICES if found in row[f"{name}_missing"]]


def test_two_cases_by_hand_in_trust_x() -> None:
    row = one(two_cases())
    # ETI 0.4 · 1/2 + 0.3 · 5/6 + 0.3 · 0.3 = 0.54; UNSAFE alone are 25 %, OSI 100 - (25 + 40)/2 =
    # 67.5; FTI (54 + 67.5)/2, as printed (0.54 + 67.5)/2
    expected = {
        "accuracy": 0.5,
        "cdr": 1 / 6,
        "rdc": 0.3,
        "eti": 0.54,
        "eti_percent": 54,
        "unsafe_rx_percent": 25,
    }
    expected |= {"test_alerts_percent": 40, "osi": 67.5, "fti": 60.75, "fti_as_printed": 34.02}
    assert row[list(expected)].to_dict() == pytest.approx(expected)
    assert {row[f"{name}_missing"] for name in INDICES} == {"no draws"}


def test_two_cases_by_hand_in_medguard_x() -> None:
    row = one(two_cases(), "medguard-x")
    # RDC: 50 · 1.8 = 90 and 50 · 1.4 = 70. ETI 0.4 · 50 + 0.3 · (100 - 16.67) + 0.3 · 80 = 69; FTI
    # (69 + 55)/2
    expected = {
        "accuracy": 50,
        "cdr": 100 / 6,
        "rdc": 80,
        "eti": 69,
        "eti_percent": 69,
        "osi": 55,
        "fti": 62,
        "fti_as_printed": 62,
    }
    assert row[list(expected)].to_dict() == pytest.approx(expected)


def test_the_counts_behind_the_percentages() -> None:
    row = one(two_cases())
    expected = {
        "n_doctors": 3,
        "n_cases": 2,
        "n_judged": 2,
        "n_readable": 2,
        "n_cosine": 2,
        "n_ties": 0,
    }
    expected |= {
        "n_prescriptions": 5,
        "n_rx_rated": 4,
        "n_safe": 2,
        "n_caution": 1,
        "n_unsafe": 1,
        "n_rx_unknown": 1,
    }
    expected |= {
        "n_tests": 5,
        "n_tests_rated": 5,
        "n_alerts": 2,
        "n_risky": 1,
        "n_redundant": 1,
        "n_unflagged": 3,
    }
    expected |= {
        "n_cases_without_prescriptions": 0,
        "n_cases_without_tests": 1,
        "n_no_plan": 0,
        "n_unreadable_diagnoses": 0,
    }
    assert row[list(expected)].to_dict() == expected


def test_variants_and_weights_reach_the_table() -> None:
    with_caution = one(two_cases(), rx_variant="unsafe or caution")
    assert (
        with_caution["unsafe_rx_percent"]
        == one(two_cases(), "medguard-x")["unsafe_rx_percent"]
        == 50
    )
    row = one(two_cases(), "medguard-x", rx_variant="unsafe", cdr_variant="any disagreement")
    assert (row["unsafe_rx_percent"], row["cdr"]) == pytest.approx((25, 50))
    # 0.2 · 0.5 + 0.5 · 5/6 + 0.3 · 0.3 = 0.60667; 100 - (0.2 · 25 + 0.8 · 40) = 63; 0.9 · 60.667 +
    # 0.1 · 63
    row = one(
        two_cases(), eti_weights=(0.2, 0.5, 0.3), osi_weights=(0.2, 0.8), fti_weights=(0.9, 0.1)
    )
    assert (row["eti"], row["osi"], row["fti"]) == pytest.approx((0.606667, 63, 60.9))


@each(("formulation", "osi_", "fti_"), [("trust-x", 0, 27), ("medguard-x", NAN, NAN)])
def test_with_safety_off_there_are_no_percentages(formulation, osi_, fti_) -> None:
    row = one(two_cases(**SAFETY_OFF), formulation)
    assert np.isnan(row[["unsafe_rx_percent", "test_alerts_percent"]].astype(float)).all()
    assert [row["osi"], row["fti"]] == pytest.approx([osi_, fti_], nan_ok=True)
    assert row["unsafe_rx_percent_missing"] == row["test_alerts_percent_missing"] == "safety off"
    by_rule = formulation == "trust-x"
    assert row["osi_missing"] == ("0 by rule; no draws" if by_rule else "safety off")
    assert row["fti_missing"] == ("no draws" if by_rule else "without osi")


@BOTH
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_with_safety_off_the_judgement_of_the_diagnosis_stays(formulation, seed) -> None:
    cases = many_cases(5, seed)
    on, off = (
        one(cases, formulation, draws=0),
        one(cases.assign(**SAFETY_OFF), formulation, draws=0),
    )
    assert on[INDICES[:6]].tolist() == off[INDICES[:6]].tolist()
    assert off["osi"] == 0 if formulation == "trust-x" else np.isnan(off["osi"])


def test_one_doctor_has_cdr_0_by_definition_and_no_interval_for_it() -> None:
    cases = many_cases(12).assign(configuration="one doctor", n_doctors=1)
    row = one(cases.assign(diagnoses=[(d[0],) for d in cases["diagnoses"]]), draws=60)
    assert row["cdr"] == 0 and np.isnan(row["cdr_low"])
    assert row["cdr_missing"] == f"0 by definition with one doctor; {ALIKE}"
    assert row["eti_low"] < row["eti_high"] and row["eti_missing"] == ""


def test_parts_that_no_draw_moves_have_no_interval_and_the_whole_names_them() -> None:
    row = one(
        pd.DataFrame([review(f"{i}", ["flu", "flu" if i % 2 else "cold"]) for i in range(12)]),
        draws=60,
    )
    alike = ("rdc", "unsafe_rx_percent", "test_alerts_percent", "osi")
    assert told(row, ALIKE) == list(alike)
    assert row["eti_missing"] == row["eti_percent_missing"] == "the interval takes as certain: rdc"
    certain = "the interval takes as certain: rdc, unsafe_rx_percent, test_alerts_percent"
    assert row["fti_missing"] == row["fti_as_printed_missing"] == certain
    assert row["cdr_low"] < row["cdr"] < row["cdr_high"] and row["eti_low"] < row["eti_high"]


def test_an_empty_plan_counts_as_safe_and_is_flagged() -> None:
    row = one(two_cases(**EMPTY_PLAN, n_rx_unknown=0, n_risky=0, n_redundant=0))
    assert (row["unsafe_rx_percent"], row["test_alerts_percent"], row["osi"]) == (0, 0, 100)
    assert row["unsafe_rx_percent_missing"] == "no rated prescriptions (0 proposed); no draws"
    assert row["test_alerts_percent_missing"] == "no rated tests (0 proposed); no draws"
    assert (row["unsafe_rx_percent_n"], row["test_alerts_percent_n"], row["osi_n"]) == (0, 0, 2)
    assert (row["n_cases_without_prescriptions"], row["n_cases_without_tests"]) == (2, 2)


def test_drugs_that_the_table_does_not_know_are_in_neither_count() -> None:
    lost = {"n_prescriptions": 3, "n_safe": 0, "n_rx_unknown": 2, "n_rx_unreadable": 1}
    row = one(pd.DataFrame([review("a", ["flu"], **lost)]))
    assert (row["n_rx_rated"], row["n_rx_unknown"], row["n_rx_unreadable"]) == (0, 2, 1)
    assert np.isnan(row["unsafe_rx_percent"]) and row["rx_unrated_percent"] == 100
    row = one(pd.DataFrame([review("a", ["flu"], **lost | {"n_prescriptions": 4, "n_unsafe": 1})]))
    assert (row["unsafe_rx_percent"], row["rx_unrated_percent"], row["osi"]) == (100, 75, 50)
    assert (row["tests_unrated_percent"], row["osi_missing"]) == (0, "no draws")


UNRATED = {"n_safe": 0, "n_rx_unreadable": 1, "n_unflagged": 0, "n_tests_unreadable": 1}


@each("formulation", FORMULATIONS)
def test_fault_a_reviewer_who_cannot_be_read_has_not_reviewed(formulation) -> None:
    row = one(
        pd.DataFrame([review(f"{i}", ["flu"] * 3, **UNRATED) for i in range(12)]),
        formulation,
        draws=40,
    )
    of_safety = ["unsafe_rx_percent", "test_alerts_percent", "osi", "fti", "fti_as_printed"]
    assert np.isnan(row[of_safety].astype(float)).all()  # OSI was 100
    assert row["unsafe_rx_percent_missing"] == "none of 12 prescriptions rated"
    assert row["test_alerts_percent_missing"] == "none of 12 tests rated"
    assert row["osi_missing"] == "without unsafe_rx_percent and test_alerts_percent"
    assert row["fti_missing"] == row["fti_as_printed_missing"] == "without osi"
    assert (row["rx_unrated_percent"], row["tests_unrated_percent"]) == (100, 100)
    assert (row["osi_n"], row["fti_n"]) == (0, 0) and row["eti_percent"] > 0


def test_tests_that_nobody_rated_do_not_hide_behind_prescriptions_that_somebody_did() -> None:
    row = one(two_cases(n_unflagged=0, n_risky=0, n_redundant=0, n_tests=5, n_tests_unreadable=5))
    assert (
        row["unsafe_rx_percent"] == 25 and np.isnan([row["test_alerts_percent"], row["osi"]]).all()
    )


def test_the_share_unrated_is_missing_where_there_was_nothing_to_rate_or_nobody_to() -> None:
    for cases in (
        two_cases(**SAFETY_OFF),
        two_cases(**EMPTY_PLAN, n_rx_unknown=0, n_risky=0, n_redundant=0),
    ):
        assert np.isnan(
            one(cases)[["rx_unrated_percent", "tests_unrated_percent"]].astype(float)
        ).all()
    row = one(two_cases())
    # one of five is unknown
    assert (row["rx_unrated_percent"], row["tests_unrated_percent"]) == (
        20,
        0,
    )


def test_a_plan_that_cannot_be_read_is_missing_and_not_empty() -> None:
    lost = review("c", ["flu"] * 3, plan_missing="no plan in brackets", **EMPTY_PLAN)
    row = one(pd.DataFrame([*two_cases().to_dict("records"), lost]))
    assert (row["n_no_plan"], row["n_cases_without_prescriptions"], row["osi"]) == (1, 0, 67.5)
    row = one(pd.DataFrame([lost]))
    assert np.isnan([row["osi"], row["fti"]]).all()
    assert (row["osi_missing"], row["fti_missing"]) == ("no readable plan", "without osi")
    assert row["unsafe_rx_percent_missing"] == "no readable plan"


def test_an_unreadable_panel_is_missing_or_wrong_as_one_chooses() -> None:
    cases = pd.DataFrame([review("a", ["flu", "flu"]), review("b", [None, None])])
    row = one(cases, unreadable="missing")
    assert (row["accuracy"], row["n_judged"], row["n_readable"], row["n_unreadable_diagnoses"]) == (
        1,
        1,
        1,
        2,
    )
    row = one(cases)
    assert (row["accuracy"], row["n_judged"], row["n_readable"], row["cdr"]) == (0.5, 2, 1, 0)


def test_fault_a_panel_without_a_readable_diagnosis_is_wrong() -> None:
    right = [review(f"r{i}", ["flu"] * 3) for i in range(10)]
    row = one(pd.DataFrame(right + [review(f"u{i}", [None] * 3) for i in range(10)]))
    assert (row["accuracy"], row["accuracy_shared"], row["n_judged"]) == (0.5, 0.5, 20)  # was 1


def test_a_panel_none_of_whose_replies_is_an_answer_is_missing_unless_it_is_called_wrong() -> None:
    rows = [
        review("a", ["flu"] * 3),
        review("b", [None] * 3, n_no_answer=3),
        review("c", [None] * 3, n_no_answer=2),
    ]
    cases = pd.DataFrame(rows).fillna({"n_no_answer": 0})
    row = one(cases)  # of c's doctors one has answered, with words that name no disease
    assert (row["accuracy"], row["n_judged"]) == (0.5, 2)
    assert one(cases, unreadable="wrong")["accuracy"] == pytest.approx(1 / 3)
    assert one(cases, unreadable="missing")["accuracy"] == 1
    alone = one(cases[cases["case_id"] == "b"])
    assert np.isnan(alone["accuracy"]) and alone["accuracy_missing"] == "no judged diagnosis"


def test_an_unreadable_vote_that_agrees_with_nobody_is_a_variant_of_cdr() -> None:
    cases = pd.DataFrame([review("a", ["flu"] * 3), review("b", ["flu", None, None])])
    assert [one(cases)[n] for n in ("cdr", "n_readable")] == [0, 1]
    row = one(cases, cdr_variant="unreadable disagrees")
    assert (row["cdr"], row["n_readable"]) == (pytest.approx(1 / 3), 2)


def test_fault_eti_and_fti_rest_on_the_smallest_n_of_their_parts_and_say_so() -> None:
    cases = many_cases(20)
    cases.loc[:2, ["cosine", "cosine_missing"]] = [NAN, "no reasoning"]
    cases.at[10, "diagnoses"] = ("flu", None, None)
    cases.loc[15:, "plan_missing"] = "no JSON"
    cases.loc[15:, [n for n in NEEDED if n.startswith("n_") and n != "n_doctors"]] = 0
    row = one(cases, draws=0)
    # there were no such columns
    assert [row.get(n) for n in ("eti_n", "osi_n", "fti_n")] == [
        17,
        15,
        15,
    ]
    assert (
        row["eti_missing"]
        == row["eti_percent_missing"]
        == "n differs: accuracy 20, cdr 19, rdc 17; no draws"
    )
    assert (
        row["fti_missing"] == "n differs: eti 17, osi 15; no draws"
        and row["osi_missing"] == "no draws"
    )
    off = one(many_cases(20).assign(**SAFETY_OFF), draws=0)
    # 0 by rule, for all of them
    assert (off["osi_n"], off["fti_n"], told(off, "differs")) == (
        20,
        20,
        [],
    )
    assert one(many_cases(20).assign(**SAFETY_OFF), "medguard-x", draws=0)["fti_n"] == 0


def test_a_proxy_is_passed_on_by_name_where_the_formulation_asks_for_the_encoder() -> None:
    words = "proxy: some-encoder, no biomedical encoder"
    cases = two_cases(cosine_med_proxy=words)
    named, ours, none = (
        trust_indices(*given, draws=0).set_index("metric")["proxy"]
        for given in ((cases, "medguard-x"), (cases,), (two_cases(), "medguard-x"))
    )
    assert named["rdc"] == words and set(named.drop("rdc")) == set(ours) == set(none) == {""}


def test_ties_are_counted_and_shared() -> None:
    cases = pd.DataFrame(
        [review(str(i), ["flu", "cold"]) for i in range(8)] + [review("x", ["flu", "flu"])]
    )
    row = one(cases)
    assert row["n_ties"] == 8 and row["accuracy_shared"] == pytest.approx(5 / 9)
    assert row["accuracy"] == cases["correct"].mean() != row["accuracy_shared"]


def test_without_the_biomedical_encoder_its_indices_are_missing_with_the_reason() -> None:
    cases = two_cases(cosine_med=NAN, cosine_med_missing="no biomedical encoder at hand")
    row = one(cases, "medguard-x")
    assert (
        np.isnan([row["rdc"], row["eti"], row["fti"]]).all()
        and row["osi"] == 55
        and row["n_cosine"] == 0
    )
    assert row["rdc_missing"] == "no biomedical encoder at hand"
    assert (row["eti_missing"], row["eti_percent_missing"], row["fti_missing"]) == (
        "without rdc",
        "without rdc",
        "without eti",
    )
    assert one(cases)["rdc_missing"] == "no draws"


def test_a_cosine_that_is_missing_in_some_cases_is_left_out_and_counted() -> None:
    cases = two_cases()
    cases.loc[0, ["cosine", "cosine_missing"]] = [NAN, "no reasoning"]
    row = one(cases)
    assert (row["rdc"], row["n_cosine"], row["accuracy"], row["rdc_missing"]) == (
        0.1,
        1,
        0.5,
        "no draws",
    )


def test_intervals_draw_the_same_cases_for_all_components() -> None:
    cases = many_cases(20)
    row = one(cases, draws=60, seed=3)
    found = []
    for times in case_weights(cases["case_id"], 60, 3):
        drawn = cases.loc[np.repeat(cases.index, times)].assign(case_id=np.arange(20).astype(str))
        found.append(wide(trust_indices(drawn, draws=0)))
    for name in INDICES:
        assert (row[f"{name}_low"], row[f"{name}_high"]) == pytest.approx(
            percentile_interval([f[name] for f in found])
        ), name
    assert told(row, "no interval") == [] and row["osi_low"] < row["osi"] < row["osi_high"]
    assert one(cases, draws=60, seed=4)["eti_low"] != row["eti_low"]


def test_what_rests_on_fewer_cases_than_ten_has_no_interval_either() -> None:
    cases = many_cases(12)
    cases.loc[:2, "cosine"] = NAN
    row = one(cases, draws=50)
    assert told(row, FEW) == ["rdc", "eti", "eti_percent", "fti", "fti_as_printed"]
    assert (
        row["accuracy_low"] < row["accuracy_high"]
        and np.isnan(row["eti_low"])
        and row["osi_low"] < row["osi_high"]
    )


def test_osi_has_no_interval_where_ratings_of_fewer_than_ten_cases_are_behind_it() -> None:
    cases = many_cases(12)
    # nothing proposed: they can answer
    cases.loc[:2, ["n_prescriptions", "n_safe", "n_caution", "n_unsafe"]] = 0
    row = one(cases, draws=50)
    assert (row["unsafe_rx_percent_n"], row["osi_n"], row["fti_n"]) == (9, 12, 12)
    assert told(row, FEW) == ["unsafe_rx_percent", "osi", "fti", "fti_as_printed"]


@each("formulation", FORMULATIONS)
@each("right", [0.0, 1.0])
def test_accuracy_0_or_1_has_no_interval_and_the_others_say_so(formulation, right) -> None:
    row = one(many_cases(12, correct=right), formulation, draws=50)
    assert np.isnan(row["accuracy_low"]) and row["accuracy_missing"] == ALIKE
    certain = "the interval takes as certain: accuracy"
    assert row["eti_low"] < row["eti_high"] and row["eti_missing"] == row["fti_missing"] == certain


def test_every_configuration_has_its_row_in_order_and_the_same_draws() -> None:
    on, other = many_cases(15), many_cases(15, model="n")
    table = pd.concat(
        [on, on.assign(**SAFETY_OFF), other, on.assign(level=20), on.assign(dataset="e")]
    )
    found = trust_indices(table, draws=40)
    eti = found[found["metric"] == "eti"]
    assert eti["model"].tolist() == ["m", "m", "n", "m", "m"] and eti["safety"].tolist() == [
        True,
        False,
        True,
        True,
        True,
    ]
    assert (
        eti["low"].nunique() == 1
        and found["formulation"].unique().tolist() == ["trust-x"]
        and len(found) == 5 * len(INDICES)
    )


@each("column", NEEDED)
def test_each_column_is_needed(column) -> None:
    with pytest.raises(ValueError, match=rf"lacks the columns \['{column}'\]"):
        trust_indices(two_cases().drop(columns=column))


@each(
    ("changes", "choices", "message"),
    [
        (
            {},
            {"formulation": "both"},
            r"formulation is 'both'; allowed are \['trust-x', 'medguard-x'\]",
        ),
        ({}, {"rx_variant": "x"}, "rx_variant is 'x'; allowed are"),
        ({}, {"cdr_variant": "x"}, "cdr_variant is 'x'; allowed are"),
        ({}, {"unreadable": "x"}, "unreadable is 'x'; allowed are"),
        ({}, {"fti_weights": (1, 1)}, "weights must be 2 numbers"),
        ({}, {"draws": -1}, "draws must be at least 0; received -1"),
        (
            {"case_id": "a"},
            {},
            "each case may come once in a configuration; received .*'case_id': 'a'",
        ),
        ({"correct": 0.5}, {}, "correct must be 0, 1 or NaN"),
        ({"cosine": 1.1}, {}, "cosine must lie between -1 and 1"),
        ({"correct_share": -0.1}, {}, "correct_share must lie between 0 and 1"),
        ({"n_risky": -1}, {}, "counts must be whole and not negative"),
        (
            {"n_prescriptions": 0},
            {},
            "no more prescriptions or tests may be rated than were proposed",
        ),
        ({"safety": False}, {}, "with safety off nothing may be rated"),
        ({"safety": "on"}, {}, "safety must be True or False"),
        ({"plan_missing": "cut off"}, {}, "has no prescriptions and no tests"),
        ({"n_doctors": 2}, {}, "a tuple with an entry for each of n_doctors"),
        (
            {"n_no_answer": 1},
            {},
            "n_no_answer must be whole, and at most the diagnoses that are None",
        ),
    ],
)
def test_bad_input_is_refused_with_what_is_allowed(changes, choices, message) -> None:
    with pytest.raises(ValueError, match=message):
        trust_indices(two_cases(**changes), **choices)


def test_no_reviews_and_mixed_panels_are_refused() -> None:
    with pytest.raises(ValueError, match="reviews hold no row"):
        trust_indices(two_cases().iloc[:0])
    mixed = pd.DataFrame(
        [review("a", ["flu"], configuration="p"), review("b", ["flu", "flu"], configuration="p")]
    )
    with pytest.raises(ValueError, match="a configuration has one n_doctors"):
        trust_indices(mixed)
