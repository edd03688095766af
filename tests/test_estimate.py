"""The engine under every table: values, intervals, counts and reasons, once for all that stand on
it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from each import each
from resampled import case_weights, without_each
from scipy.stats import t as student

from trustlab.metrics import schema
from trustlab.metrics.discrimination import RANKING, auroc
from trustlab.metrics.estimate import (
    NO_LEAVES,
    TOO_FEW,
    Draws,
    Metric,
    Rows,
    at_least,
    difference,
    estimate,
    mean,
    most_frequent,
    percentile_interval,
    rate,
    ratio,
)
from trustlab.metrics.intervals import agresti_coull, effective_n, opposed_p, with_extremes
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
ROWS = Rows.of(TABLE, "confidence", 600, 3)
WEIGHTS = case_weights(TABLE["case_id"], 600, 3)


def test_a_line_has_value_interval_and_counts():
    sure, right = TABLE["confidence"].to_numpy(), TABLE["correct"].to_numpy()
    means = WEIGHTS @ sure / WEIGHTS.sum(axis=1)
    np.testing.assert_allclose(ROWS.drawn(mean("confidence")), [sure.mean(), *means])
    found = estimate(ROWS, mean("confidence"))
    ends = percentile_interval(means)
    assert (found["value"], found["low"], found["high"]) == pytest.approx((sure.mean(), *ends))
    n = int(right.sum())
    counts = {"n": 60, "n_cases": 20, "n_missing": 0, "n_rarer": min(n, 60 - n)}
    assert {name: found[name] for name in counts} == counts and found["missing"] == ""


def test_an_auroc_has_the_interval_of_its_values_without_each_case():
    answers = TABLE["correct"], TABLE["confidence"]
    leaves = without_each(auroc, TABLE["case_id"], *answers)
    np.testing.assert_allclose(ROWS.drawn(AUROC), [auroc(*answers), *leaves])
    found = estimate(ROWS, AUROC)
    assert ROWS.rarer_cases == min(
        TABLE[TABLE["correct"] == hit]["case_id"].nunique() for hit in (0, 1)
    )
    error = np.sqrt(19 / 20 * np.sum((leaves - leaves.mean()) ** 2))
    ends = with_extremes(auroc(*answers), error, ROWS.rarer_cases, (0, 1))
    assert (found["low"], found["high"]) == pytest.approx(ends)
    assert estimate(ROWS.sample, AUROC) == found  # no draw is read


def test_a_share_has_an_interval_also_where_all_are_right():
    found = estimate(ROWS, rate("correct"))
    right = TABLE.groupby("case_id")["correct"].sum()
    ends = agresti_coull(found["value"], effective_n(right, np.full(20, 3)), 20)
    assert (found["low"], found["high"]) == pytest.approx(ends)
    every = estimate(Rows.of(TABLE.assign(correct=1), "confidence", 0), rate("correct"))
    assert every["high"] == 1 and 0.7 < every["low"] < 0.9 and every["missing"] == ""
    some = TABLE.assign(n=np.tile([1, 2, 5], 20), hit=np.tile([0, 1, 3], 20))
    found = estimate(Rows.of(some, "n", 0), ratio("hit", "n", unit=100, kish=True))
    assert found["value"] == pytest.approx(50)
    ends = 100 * np.array(agresti_coull(0.5, 20, 20))  # the cases weigh alike
    assert (found["low"], found["high"]) == pytest.approx(tuple(ends))


def test_cases_are_drawn_with_all_their_rows_and_the_same_for_all_that_is_compared():
    every = Draws.of(TABLE["case_id"].to_numpy(), 50, 1)
    assert every.times.shape == (20, 50) and (every.times.sum(axis=0) == 20).all()
    part = Rows.of(TABLE[TABLE["level"] == 40], "confidence", every)
    np.testing.assert_array_equal(part.draws.times, every.times)
    with pytest.raises(ValueError, match="read-only"):
        every.times[0, 0] = 2
    shuffled = Rows.of(TABLE.sample(frac=1, random_state=0), "confidence", 50, 1)
    again = Rows.of(TABLE, "confidence", 50, 1)
    np.testing.assert_allclose(shuffled.drawn(mean("correct")), again.drawn(mean("correct")))
    few = Draws.of(TABLE["case_id"].iloc[:30].to_numpy(), 20)
    with pytest.raises(ValueError, match="was not drawn"):
        Rows.of(TABLE, "confidence", few).drawn(mean("correct"))


def test_a_difference_is_taken_in_the_same_draws_and_tested():
    worse = TABLE.assign(confidence=made(seed=5)["confidence"].to_numpy())
    theirs = Rows.of(worse, "confidence", ROWS.draws)
    pair = Rows(ROWS.asked, ROWS.known, ROWS.draws, reference=theirs)
    found = estimate(pair, difference(mean("confidence")), test=True)
    gaps = ROWS.drawn(mean("confidence")) - theirs.drawn(mean("confidence"))
    assert found["value"] == pytest.approx(gaps[0])
    t = abs(gaps[0]) / gaps[1:].std(ddof=1)
    assert found["p"] == pytest.approx(2 * student.sf(t, 19))
    assert found["standard_error"] == pytest.approx(gaps[1:].std(ddof=1))
    found = estimate(pair, difference(AUROC), test=True)
    sides = (
        np.append(auroc(t["correct"], t["confidence"]),
                  without_each(auroc, t["case_id"], t["correct"], t["confidence"]))
        for t in (TABLE, worse)
    )  # fmt: skip
    gap = np.subtract(*sides)
    error = np.sqrt(19 * np.var(gap[1:]))
    assert (found["value"], found["standard_error"]) == pytest.approx((gap[0], error))
    assert found["p"] == pytest.approx(opposed_p(gap[0], error, pair.rarer_cases))
    ends = with_extremes(gap[0], error, pair.rarer_cases, (-1, 1))
    assert (found["low"], found["high"]) == pytest.approx(ends)
    low = pair.where("level", [40])
    assert low.reference is not None and len(low.reference) == len(low) == 20
    expected = (TABLE["confidence"] - worse["confidence"])[TABLE["level"] == 40].mean()
    assert estimate(low, difference(mean("confidence")))["value"] == pytest.approx(expected)


NOT_HAD = TABLE.assign(confidence=NAN, missing="no logprobs")
ONE_RIGHT = TABLE.assign(correct=[1, 1, 1] + [0] * 57)  # one case alone is right
WHY = [
    (made(9), mean("confidence"), 0.0, TOO_FEW),
    (TABLE.assign(confidence=1.0), mean("confidence"), 1.0, "no interval: all draws alike"),
    (ONE_RIGHT, AUROC, None, NO_LEAVES),
    (TABLE.assign(correct=1), AUROC, NAN, "undefined"),
    (NOT_HAD, AUROC, NAN, "no confidence: no logprobs"),
    (TABLE, Metric(AUROC, at_least(40)), NAN, "fewer than 40 correct or wrong"),
    (TABLE, mean("confidence"), 0.0, "no draws"),
]


@each("table, metric, value, why", WHY, ids=[why for *_, why in WHY])
def test_what_is_missing_says_why(table, metric, value, why: str):
    found = estimate(Rows.of(table, "confidence", 0 if why == "no draws" else 100), metric)
    assert np.isnan(value) == np.isnan(found["value"]) if value is not None else found["value"] > 0
    assert np.isnan([found["low"], found["high"]]).all() and found["missing"] == why


def test_bounds_and_answers_that_were_not_had_are_told():
    asked = TABLE.assign(bound="", failed=False, ungraded=False, missing="cut off")
    asked.loc[0, "bound"], asked.loc[4, "bound"] = "lower", NAN
    asked.loc[[1, 2], "failed"], asked.loc[3, "ungraded"] = True, True
    asked.loc[[1, 2, 3], "confidence"] = NAN
    found = estimate(Rows.of(asked, "confidence", 50), mean("confidence"), note="level 20 left out")
    notes = ["level 20 left out", "1 of 57 confidences are bounds", "2 answers missing"]
    assert found["missing"] == "; ".join([*notes, "1 answer ungraded"])
    assert (found["n"], found["n_missing"]) == (57, 3)
    lost = pd.DataFrame({"missing": ["b", "a", "a", "b", None, ""]})
    reasons = [most_frequent(part) for part in (lost, lost.iloc[4:], lost.iloc[:0])]
    assert reasons == ["a", "no reason given", "no row in the table"]  # the first by name


def test_every_column_is_described_in_the_documentation():
    told = (ROOT / "docs" / "statistics.md").read_text(encoding="utf-8")
    assert [name for name in schema.COLUMNS if f"| `{name}` |" not in told] == []
