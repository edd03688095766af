"""The trust indices, formulas and table: by hand, by properties, what is missing, bad input."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import numpy as np
import pandas as pd
import pytest
from each import each
from made_reviews import EMPTY_PLAN, SAFETY_OFF, many_cases, review, two_cases
from resampled import jackknife
from saying import saying, says

from trustlab.metrics import trust
from trustlab.metrics.estimate import TOO_FEW
from trustlab.metrics.intervals import agresti_coull, effective_n, kish_n
from trustlab.metrics.trust_table import (
    BY_DEFINITION,
    INDICES,
    NEEDED,
    review_counts,
    trust_indices,
)

pytestmark = pytest.mark.usefixtures("every_interval")
NAN = float("nan")


def wide(found: pd.DataFrame) -> pd.Series:
    """The indices of one configuration side by side, each with _low, _high, _n and _missing."""
    assert found["metric"].tolist() == INDICES
    ends = {"": "value", "_low": "low", "_high": "high", "_n": "n", "_missing": "missing"}
    rows = found.to_dict("records")
    made = {f"{r['metric']}{end}": r[of] for r in rows for end, of in ends.items()}
    return pd.Series(made, dtype=object)


def one(table: pd.DataFrame, *args, **choices) -> pd.Series:
    """The indices of the only configuration, and the counts behind them."""
    found = trust_indices(table, *args, **choices)
    (counts,) = review_counts(table, *args, **choices).to_dict("records")
    assert (found["n"] + found["n_missing"] == len(table)).all()
    assert found["n"].equals(found["n_cases"])
    return pd.concat([wide(found), pd.Series(counts, dtype=object)])


def told(row: pd.Series, found: str) -> list[str]:
    """The indices whose ``missing`` holds these words."""
    return [name for name in INDICES if found in row[f"{name}_missing"]]


def holds(row: pd.Series, **expected: Any) -> bool:
    numbers = [row[name] for name in expected]
    return numbers == pytest.approx(list(expected.values()), nan_ok=True)


def rows(*reviews: dict[str, Any]) -> pd.DataFrame:
    return pd.DataFrame(list(reviews))


def test_two_cases_by_hand() -> None:
    row = one(two_cases())
    # ETI 0.4 · 1/2 + 0.3 · 5/6 + 0.3 · 0.3 = 0.54; UNSAFE alone are 25 %, OSI 100 - (25 + 40)/2 =
    # 67.5; FTI (54 + 67.5)/2, as printed (0.54 + 67.5)/2
    assert holds(row, accuracy=0.5, cdr=1 / 6, rdc=0.3, eti=0.54, eti_percent=54)
    assert holds(row, unsafe_rx_percent=25, test_alerts_percent=40, osi=67.5)
    assert holds(row, fti=60.75, fti_as_printed=34.02)
    assert {row[f"{name}_missing"] for name in INDICES} == {TOO_FEW}
    assert holds(row, n_doctors=3, n_cases=2, n_judged=2, n_ties=0)
    assert holds(row, n_prescriptions=5, n_rx_rated=4, n_safe=2, n_caution=1, n_unsafe=1)
    assert holds(row, n_rx_unknown=1, n_tests=5, n_tests_rated=5, n_risky=1)
    assert holds(row, n_redundant=1, n_unflagged=3, n_no_plan=0, n_unreadable_diagnoses=0)
    assert holds(row, rx_unrated_percent=20, tests_unrated_percent=0)  # one of five is unknown
    # RDC: 50 · 1.8 = 90 and 50 · 1.4 = 70. ETI 0.4 · 50 + 0.3 · (100 - 16.67) + 0.3 · 80 = 69; FTI
    # (69 + 55)/2
    row = one(two_cases(), "medguard-x")
    assert holds(row, accuracy=50, cdr=100 / 6, rdc=80, eti=69, eti_percent=69)
    assert holds(row, unsafe_rx_percent=50, osi=55, fti=62, fti_as_printed=62)


@each(("formulation", "osi_", "fti_"), [("trust-x", 0, 27), ("medguard-x", NAN, NAN)])
def test_with_safety_off_there_are_no_percentages_and_the_diagnosis_is_judged_the_same(
    formulation, osi_, fti_
) -> None:
    row = one(two_cases(**SAFETY_OFF), formulation)
    assert holds(row, unsafe_rx_percent=NAN, test_alerts_percent=NAN, osi=osi_, fti=fti_)
    assert holds(row, rx_unrated_percent=NAN, tests_unrated_percent=NAN)
    assert row["unsafe_rx_percent_missing"] == row["test_alerts_percent_missing"] == "safety off"
    by_rule = formulation == "trust-x"
    assert row["osi_missing"] == ("0 by rule" if by_rule else "safety off")
    assert row["fti_missing"] == (TOO_FEW if by_rule else "without osi")
    on, off = (one(t, formulation) for t in (many_cases(20), many_cases(20).assign(**SAFETY_OFF)))
    assert on[INDICES[:6]].tolist() == off[INDICES[:6]].tolist()
    assert holds(off, osi=osi_, osi_n=20 * by_rule, fti_n=20 * by_rule)  # 0 by rule, for all


def test_parts_that_no_case_moves_have_an_interval_but_for_what_is_so_by_definition() -> None:
    votes = [["flu", "flu" if i % 2 else "cold"] for i in range(12)]
    row = one(rows(*(review(f"{i}", said) for i, said in enumerate(votes))))
    assert [row[f"{name}_missing"] for name in INDICES] == [""] * len(INDICES)
    for name in INDICES:
        assert row[f"{name}_low"] < row[f"{name}_high"], name
    alone = one(rows(*(review(f"{i}", ["flu"]) for i in range(12))))
    assert alone["cdr_missing"] == BY_DEFINITION and np.isnan(alone["cdr_low"])


def test_a_plan_that_cannot_be_read_is_missing_and_an_empty_one_counts_without_an_interval() -> (
    None
):
    lost = review("c", ["flu"] * 3, plan_missing="no plan in brackets", **EMPTY_PLAN)
    row = one(rows(lost))
    assert holds(row, osi=NAN, fti=NAN) and row["osi_missing"] == "no readable plan"
    assert row["fti_missing"] == "without osi"
    row = one(pd.DataFrame([*two_cases().to_dict("records"), lost]))
    assert holds(row, n_no_plan=1, osi=67.5)
    cases = many_cases(12)
    cases.loc[:2, ["n_prescriptions", "n_safe", "n_caution", "n_unsafe"]] = 0
    row = one(cases)
    assert holds(row, unsafe_rx_percent_n=9, osi_n=12, fti_n=12)
    few = ["unsafe_rx_percent", "osi", "fti", "fti_as_printed"]
    assert told(row, TOO_FEW) == few


@each("formulation", trust.FORMULATIONS)
def test_fault_a_reviewer_who_cannot_be_read_has_not_reviewed(formulation) -> None:
    lost = {"n_safe": 0, "n_rx_unreadable": 1, "n_unflagged": 0, "n_tests_unreadable": 1}
    row = one(rows(*(review(f"{i}", ["flu"] * 3, **lost) for i in range(12))), formulation)
    of_safety = ["unsafe_rx_percent", "test_alerts_percent", "osi", "fti", "fti_as_printed"]
    assert np.isnan(row[of_safety].astype(float)).all()  # OSI was 100
    assert says(row["unsafe_rx_percent_missing"], "none of 12", "prescriptions")
    assert says(row["test_alerts_percent_missing"], "none of 12", "tests")
    assert says(row["osi_missing"], "unsafe_rx_percent", "test_alerts_percent")
    assert row["fti_missing"] == row["fti_as_printed_missing"] == "without osi"
    assert holds(row, rx_unrated_percent=100, tests_unrated_percent=100, osi_n=0, fti_n=0)
    # tests that nobody rated do not hide behind prescriptions that somebody did
    row = one(two_cases(n_unflagged=0, n_risky=0, n_redundant=0, n_tests=5, n_tests_unreadable=5))
    assert holds(row, unsafe_rx_percent=25, test_alerts_percent=NAN, osi=NAN)


NOBODY = [None] * 3
NO_ANSWER = [
    review("a", ["flu"] * 3, n_no_answer=0),
    review("b", NOBODY, n_no_answer=3),
    review("c", NOBODY, n_no_answer=2),  # one has answered, with words that name no disease
]
TRIO = [review("a", ["flu"] * 3), review("b", ["flu", None, None])]
TEN_OF_20 = [review(f"c{i}", ["flu"] * 3 if i < 10 else NOBODY) for i in range(20)]


@each(
    ("reviews", "choices", "expected"),
    [
        (TEN_OF_20, {}, {"accuracy": 0.5, "accuracy_shared": 0.5, "n_judged": 20}),  # was 1
        (NO_ANSWER, {}, {"accuracy": 0.5, "n_judged": 2}),
        (TRIO, {}, {"cdr": 0, "cdr_n": 1}),
        (TRIO, {"cdr_variant": "unreadable disagrees"}, {"cdr": 1 / 3, "cdr_n": 2}),
    ],
)
def test_an_unreadable_panel_is_wrong_or_missing_as_one_chooses(reviews, choices, expected) -> None:
    assert holds(one(rows(*reviews), **choices), **expected)


def test_fault_eti_and_fti_rest_on_the_smallest_n_of_their_parts_and_say_so() -> None:
    cases = many_cases(20)
    cases.loc[:2, ["cosine", "cosine_missing"]] = [NAN, "no reasoning"]
    cases.at[10, "diagnoses"] = ("flu", None, None)
    cases.loc[15:, "plan_missing"] = "no JSON"
    cases.loc[15:, [n for n in NEEDED if n.startswith("n_") and n != "n_doctors"]] = 0
    row = one(cases)
    assert holds(row, eti_n=17, osi_n=15, fti_n=15, rdc_n=17)
    assert says(row["eti_missing"], "accuracy 20", "cdr 19", "rdc 17")
    assert says(row["fti_missing"], "eti 17", "osi 15")
    assert row["eti_percent_missing"] == row["eti_missing"] and row["osi_missing"] == ""


ENDS = {"cdr": (0, 1), "rdc": (-1, 1), "eti": (-0.3, 1), "eti_percent": (-30, 100)}
ENDS |= {"osi": (0, 100), "fti": (-15, 100), "fti_as_printed": (-0.15, 50.5)}
"""Between which each index lies."""


def test_intervals_leave_the_same_case_out_of_all_components() -> None:
    cases = many_cases(20)
    row = one(cases)
    leaves = [wide(trust_indices(cases.drop(index=i))) for i in cases.index]
    shares = {"accuracy", "accuracy_shared", "unsafe_rx_percent", "test_alerts_percent"}
    assert set(ENDS) == set(INDICES) - shares
    for name, ends in ENDS.items():
        values = np.array([leaf[name] for leaf in leaves], dtype=float)
        expected = pytest.approx(jackknife(row[name], values, ends))
        assert (row[f"{name}_low"], row[f"{name}_high"]) == expected, name
    right = agresti_coull(row["accuracy"], 20, 20)
    assert (row["accuracy_low"], row["accuracy_high"]) == pytest.approx(right)
    rated = cases[["n_safe", "n_caution", "n_unsafe"]].sum(axis=1).to_numpy()
    objected, some = cases["n_unsafe"].to_numpy(), rated > 0
    n = min(kish_n(rated[some]), effective_n(objected[some], rated[some]))
    ends = agresti_coull(row["unsafe_rx_percent"] / 100, n, some.sum())
    expected = pytest.approx([100 * end for end in ends])
    assert [row["unsafe_rx_percent_low"], row["unsafe_rx_percent_high"]] == expected
    assert told(row, "no interval") == [] and row["osi_low"] < row["osi"] < row["osi_high"]


MIXED = rows(*(review(c, ["flu"] * n, configuration="p") for n, c in enumerate("ab", 1)))


@each(
    ("table", "choices", "message"),
    [
        (two_cases(), {"formulation": "both"}, ("'both'", "'trust-x'", "'medguard-x'")),
        (two_cases(), {"rx_variant": "x"}, ("rx_variant", "'x'")),
        (two_cases(case_id="a"), {}, ("case", "once", "'case_id': 'a'")),
        (two_cases(cosine=1.1), {}, ("cosine", -1, 1)),
        (two_cases(n_risky=-1), {}, ("whole", "negative")),
        (two_cases(n_prescriptions=0), {}, ("prescriptions", "tests", "more")),
        (two_cases(safety=False), {}, ("safety off", "rated")),
        (two_cases(plan_missing="cut off"), {}, ("no prescriptions", "no tests")),
        (two_cases(n_doctors=2), {}, ("tuple", "n_doctors")),
        (two_cases(n_no_answer=1), {}, ("n_no_answer", "whole", "at most")),
        (two_cases().iloc[:0], {}, ("reviews", "no row")),
        (MIXED, {}, ("one n_doctors", "configuration")),
    ],
    ids=lambda value: str(value) if isinstance(value, str | tuple) else "",
)
def test_bad_input_is_refused_with_what_is_allowed(table, choices, message) -> None:
    with pytest.raises(ValueError, match=saying(message)):
        trust_indices(table, **choices)


@each(
    ("diagnoses", "dropped", "disagrees"),
    [
        (["flu", "flu", "flu"], (0, 0), (0, 0)),
        (["flu", "flu", "cold"], (1 / 3, 1), (1 / 3, 1)),
        (["flu", "cold", "gout"], (2 / 3, 1), (2 / 3, 1)),  # the largest for three doctors, not 1
        (["flu", "flu", "cold", "cold"], (1 / 2, 1), (1 / 2, 1)),
        (["flu", None, "cold", "flu"], (1 / 3, 1), (1 / 2, 1)),  # an unreadable one is no vote
        (["flu", "flu", None], (0, 0), (1 / 3, 1)),
        (["flu", None, None], (NAN, NAN), (2 / 3, 1)),  # below two readable votes of several
        ([None, None, None], (NAN, NAN), (2 / 3, 1)),
        (["flu"], (0, 0), (0, 0)),
        ([None], (NAN, NAN), (NAN, NAN)),
    ],
)
def test_disagreement_of_one_case_by_hand(diagnoses, dropped, disagrees) -> None:
    both = (trust.cdr, trust.any_disagreement)
    assert [of(diagnoses) for of in both] == pytest.approx(dropped, nan_ok=True)
    assert [of(diagnoses, "disagrees") for of in both] == pytest.approx(disagrees, nan_ok=True)


def test_the_majority_wins_and_a_tie_is_drawn_by_a_hash_of_the_case_over_the_sorted_names() -> None:
    assert trust.majority(["cold", "flu", None, None, None, "flu"], "a") == ("flu", ())
    assert trust.majority([None, None], "a") == (None, ())
    for case_id in "abcdefgh":
        drawn = ["cold", "flu", "gout"][int(sha256(case_id.encode()).hexdigest(), 16) % 3]
        assert trust.majority(["gout", "flu", "cold"], case_id) == (drawn, ("cold", "flu", "gout"))
    assert {trust.majority(["flu", "cold"], str(i))[0] for i in range(20)} == {"flu", "cold"}
    # gout has not tied
    assert trust.majority(["flu", "cold", "flu", "cold", "gout"], "a")[1] == ("cold", "flu")


@each(
    ("found", "by_hand"),
    [
        (trust.rdc(0.4), 0.4),
        (trust.rdc(0.4, "medguard-x"), 70),  # its place between 0 and 100
        (trust.rdc(1 + 1e-7), 1),  # rounding in single precision
        (trust.eti(0.5, 1 / 6, 0.3), 0.4 * 0.5 + 0.3 * 5 / 6 + 0.3 * 0.3),
        (trust.eti(50, 50 / 3, 65, formulation="medguard-x"), 20 + 25 + 19.5),
        (trust.eti(0.5, 0.2, -0.4, (0.2, 0.5, 0.3)), 0.1 + 0.4 - 0.12),
        (trust.eti(np.array([0.5, 1]), np.array([0.2, 0]), np.array([0.1, 1])), [0.47, 1]),
        (trust.osi(50, 40), 55),
        (trust.osi(np.array([50, NAN]), np.array([40.0, 0])), [55, NAN]),
        (trust.osi(10, 20, safety=False), 0),
        (trust.osi(np.array([NAN, NAN]), np.array([NAN, NAN]), safety=False), [0, 0]),
        (trust.osi(10, 20, safety=False, formulation="medguard-x"), NAN),
        (trust.fti(0.54, 55), 54.5),
        (trust.fti(0.54, 55, as_printed=True), 0.27 + 27.5),
        (trust.fti(64.5, 55, formulation="medguard-x"), 59.75),
        (trust.fti(60, NAN, formulation="medguard-x"), NAN),
        (trust.unsafe_rx_percent(1, 2, 4), 75),  # shares of what was rated
        (trust.unsafe_rx_percent(1, 2, 4, "unsafe"), 25),
        (trust.unsafe_rx_percent(np.array([1, 0]), np.array([1, 0]), np.array([4, 2])), [50, 0]),
        (trust.test_alerts_percent(1, 2, 12), 25),
        (trust.unsafe_rx_percent(0, 0, 0, n_proposed=0), 0),  # nothing proposed
        (trust.unsafe_rx_percent(0, 0, 0, n_proposed=12), NAN),  # proposed, and none rated
        (
            trust.unsafe_rx_percent(
                np.array([1.0, 0, 0]), np.zeros(3), np.array([4.0, 0, 0]), n_proposed=[9.0, 9, 0]
            ),
            [25, NAN, 0],
        ),
    ],
)
def test_the_indices_by_hand(found, by_hand) -> None:
    assert found == pytest.approx(by_hand, nan_ok=True)
