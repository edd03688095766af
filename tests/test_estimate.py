"""The engine under every table: values, intervals, counts and reasons, once for all that stand on
it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from each import each
from resampled import jackknife, without_each

from trustlab.metrics import schema
from trustlab.metrics.coverage import NOT_HELD
from trustlab.metrics.discrimination import RANKING, auroc
from trustlab.metrics.estimate import (
    NO_REASON,
    TOO_FEW,
    Metric,
    Rows,
    at_least,
    difference,
    estimate,
    mean,
    mean_between,
    mean_share,
    most_frequent,
    rate,
    ratio,
)
from trustlab.metrics.intervals import agresti_coull, effective_n, opposed_p
from trustlab.metrics.run_tables import NO_ROW
from trustlab.paths import ROOT

pytestmark = pytest.mark.usefixtures("every_interval")
NAN = float("nan")
AUROC = RANKING["auroc"]


def made(n_cases: int = 20, levels=(1, 40, 100), seed: int = 0) -> pd.DataFrame:
    """Answers whose accuracy rises with the level, each with a confidence; a row a case and
    level."""
    rng = np.random.default_rng(seed)
    rows = [(f"c{i:02d}", level) for i in range(n_cases) for level in levels]
    table = pd.DataFrame(rows, columns=["case_id", "level"])
    correct = (rng.random(len(table)) < 0.2 + 0.006 * table["level"]).astype(int)
    return table.assign(correct=correct, confidence=0.4 * correct + 0.6 * rng.random(len(table)))


TABLE = made()
ROWS = Rows.of(TABLE, "confidence")


def test_a_line_has_value_interval_and_counts():
    sure, right = TABLE["confidence"].to_numpy(), TABLE["correct"].to_numpy()
    leaves = without_each(np.mean, TABLE["case_id"], sure)
    np.testing.assert_allclose(mean_share("confidence")(ROWS), [sure.mean(), *leaves])
    found = estimate(ROWS, mean_share("confidence"))
    ends = jackknife(sure.mean(), leaves, (0, 1))
    assert (found["value"], found["low"], found["high"]) == pytest.approx((sure.mean(), *ends))
    n = int(right.sum())
    counts = {"n": 60, "n_cases": 20, "n_missing": 0, "n_rarer": min(n, 60 - n)}
    assert {name: found[name] for name in counts} == counts and found["missing"] == ""


def test_an_auroc_has_the_interval_of_its_values_without_each_case():
    answers = TABLE["correct"], TABLE["confidence"]
    leaves = without_each(auroc, TABLE["case_id"], *answers)
    np.testing.assert_allclose(AUROC(ROWS), [auroc(*answers), *leaves])
    found = estimate(ROWS, AUROC)
    assert ROWS.rarer_cases == min(
        TABLE[TABLE["correct"] == hit]["case_id"].nunique() for hit in (0, 1)
    )
    slips = min(int(TABLE["correct"].sum()), 60 - int(TABLE["correct"].sum()))
    assert ROWS.rarer_worth == pytest.approx(slips / 3)  # of three answers a case
    ends = jackknife(auroc(*answers), leaves, (0, 1), slips / 3)
    assert (found["low"], found["high"]) == pytest.approx(ends)


@each(
    ("wrong", "worth"),
    [
        ([3] * 10 + [0] * 10, 10),  # wholly wrong: as many as cases
        ([1] * 12 + [0] * 8, 4),  # a slip each
        ([1] * 3 + [0] * 17, 2),  # no fewer than two
        ([2, 1] * 10, 10),
    ],
)
def test_a_case_with_one_slip_is_not_worth_one_that_is_all_wrong(
    wrong: list[int], worth: float
) -> None:
    correct = np.ravel([[0] * n + [1] * (3 - n) for n in wrong])
    assert Rows.of(TABLE.assign(correct=correct), "confidence").rarer_worth == worth


def test_a_share_has_an_interval_also_where_all_are_right():
    found = estimate(ROWS, rate("correct"))
    right = TABLE.groupby("case_id")["correct"].sum()
    ends = agresti_coull(found["value"], effective_n(right, np.full(20, 3)), 20)
    assert (found["low"], found["high"]) == pytest.approx(ends)
    every = estimate(Rows.of(TABLE.assign(correct=1), "confidence"), rate("correct"))
    assert every["high"] == 1 and 0.7 < every["low"] < 0.9 and every["missing"] == ""
    some = TABLE.assign(n=np.tile([1, 2, 5], 20), hit=np.tile([0, 1, 3], 20))
    found = estimate(Rows.of(some, "n"), ratio("hit", "n", unit=100, uneven=True))
    assert found["value"] == pytest.approx(50)
    ends = 100 * np.array(agresti_coull(0.5, 20, 20))  # the cases weigh alike
    assert (found["low"], found["high"]) == pytest.approx(tuple(ends))


def test_a_mean_lies_between_the_ends_that_its_column_has():
    table = TABLE.assign(asked=5.0, none=0.0, all=12.0)
    found = estimate(Rows.of(table, "asked"), mean_between("asked", "none", "all"))
    assert (found["low"], found["high"]) == pytest.approx(jackknife(5.0, np.full(20, 5.0), (0, 12)))
    found = estimate(Rows.of(table, "asked"), mean("asked"))
    assert found["value"] == 5 and np.isnan(found["low"]) and found["missing"] == NOT_HELD


def test_the_order_of_rows_changes_nothing():
    shuffled = estimate(Rows.of(TABLE.sample(frac=1, random_state=0), "confidence"), AUROC)
    assert shuffled == pytest.approx(estimate(ROWS, AUROC))


def test_a_difference_is_taken_on_the_same_cases_and_tested():
    worse = TABLE.assign(confidence=made(seed=5)["confidence"].to_numpy())
    pair = Rows(ROWS.asked, ROWS.known, reference=Rows.of(worse, "confidence"))
    found = estimate(pair, difference(mean_share("confidence")), test=True)
    gaps = TABLE["confidence"] - worse["confidence"]
    leaves = without_each(np.mean, TABLE["case_id"], gaps)
    ends = jackknife(gaps.mean(), leaves, (-1, 1))
    assert (found["value"], found["low"], found["high"]) == pytest.approx((gaps.mean(), *ends))
    assert found["p"] == pytest.approx(opposed_p(gaps.mean(), found["standard_error"], 20))
    found = estimate(pair, difference(rate("correct")), test=True)  # of nothing but noughts
    assert found["low"] < 0 < found["high"] and (found["value"], found["p"]) == (0, 1)
    found = estimate(pair, difference(AUROC), test=True)
    sides = (
        np.append(auroc(t["correct"], t["confidence"]),
                  without_each(auroc, t["case_id"], t["correct"], t["confidence"]))
        for t in (TABLE, worse)
    )  # fmt: skip
    gap = np.subtract(*sides)
    error = np.sqrt(19 * np.var(gap[1:]))
    assert (found["value"], found["standard_error"]) == pytest.approx((gap[0], error))
    worth = np.sqrt(pair.rarer_worth * pair.rarer_cases)
    assert found["p"] == pytest.approx(opposed_p(gap[0], error, worth))
    ends = jackknife(gap[0], gap[1:], (-1, 1), worth)
    assert (found["low"], found["high"]) == pytest.approx(ends)
    low = pair.where("level", [40])
    assert low.reference is not None and len(low.reference) == len(low) == 20
    expected = (TABLE["confidence"] - worse["confidence"])[TABLE["level"] == 40].mean()
    assert estimate(low, difference(mean("confidence")))["value"] == pytest.approx(expected)


NOT_HAD = TABLE.assign(confidence=NAN, missing="no logprobs")
WHY = [
    (made(9), mean("confidence"), 0.0, TOO_FEW),
    (TABLE, mean("confidence"), 0.0, NOT_HELD),
    (TABLE.assign(correct=1), AUROC, NAN, "undefined"),
    (NOT_HAD, AUROC, NAN, "no confidence: no logprobs"),
    (TABLE, Metric(AUROC, at_least(40)), NAN, "fewer than 40 correct or wrong"),
]


@each("table, metric, value, why", WHY, ids=[why for *_, why in WHY])
def test_what_is_missing_says_why(table, metric, value, why: str):
    found = estimate(Rows.of(table, "confidence"), metric)
    assert np.isnan(value) == np.isnan(found["value"])
    assert np.isnan([found["low"], found["high"]]).all() and found["missing"] == why


def test_a_value_that_is_undefined_without_a_case_counts_as_the_farther_end():
    one_right = TABLE.assign(correct=[1, 1, 1] + [0] * 57)  # one case alone is right
    found = estimate(Rows.of(one_right, "confidence"), AUROC)
    assert (found["low"], found["high"], found["missing"]) == (0, 1, "")


def test_bounds_and_answers_that_were_not_had_are_told():
    asked = TABLE.assign(bound="", failed=False, ungraded=False, missing="cut off")
    asked.loc[0, "bound"], asked.loc[4, "bound"] = "lower", NAN
    asked.loc[[1, 2], "failed"], asked.loc[3, "ungraded"] = True, True
    asked.loc[[1, 2, 3], "confidence"] = NAN
    found = estimate(
        Rows.of(asked, "confidence"), mean_share("confidence"), note="level 20 left out"
    )
    notes = ["level 20 left out", "1 of 57 confidences are bounds", "2 answers missing"]
    assert found["missing"] == "; ".join([*notes, "1 answer ungraded"])
    assert (found["n"], found["n_missing"]) == (57, 3)
    lost = pd.DataFrame({"missing": ["b", "a", "a", "b", None, ""]})
    reasons = [most_frequent(part) for part in (lost, lost.iloc[4:], lost.iloc[:0])]
    assert reasons == ["a", NO_REASON, NO_ROW]  # the first by name


def test_every_column_is_described_in_the_documentation():
    told = (ROOT / "docs" / "statistics.md").read_text(encoding="utf-8")
    assert [name for name in schema.COLUMNS if f"| `{name}` |" not in told] == []
