"""Runs that say nothing: every table says why a number is missing, and gives no interval without
width."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from degenerate_facts import INF, NAN, REFUSED, check
from each import each
from made_reviews import EMPTY_PLAN, SAFETY_OFF, review

from studies import calibration
from trustlab import measures
from trustlab.measures import metrics_table
from trustlab.metrics import paired, trust, trust_table

pytestmark = pytest.mark.filterwarnings("error")
KEY = {"dataset": "d", "model": "x"}


def degenerate_run(
    correct: list[float], confidence: list[float], cases: list[str], levels: list[int]
):
    """Answers and confidences ("m") of one run; an unknown answer's call failed, a missing
    confidence has the reason "none"."""
    keys = pd.DataFrame({"case_id": cases, "level": levels}).assign(**KEY)
    said = pd.Series(["a" if c == c else None for c in correct], dtype=object)
    answers = keys.assign(
        answer=said,
        correct=np.array(correct, float),
        missing="",
        n_statements=1,
        n_words=range(len(cases)),
    )
    told = keys.assign(method="m", confidence=np.array(confidence, float), bound="", missing="none")
    return answers, told


TEN = [f"c{i:02d}" for i in range(12)] * 3
LEVELS = [1] * 12 + [40] * 12 + [100] * 12
MIXED = [float((i * 7) % 3 > 0) for i in range(36)]
RUNS: dict[str, tuple[pd.DataFrame, pd.DataFrame]] = {
    "one row": degenerate_run([1], [0.7], ["a"], [1]),
    "one case": degenerate_run([1, 0, 1], [0.2, 0.5, 0.9], ["a"] * 3, [1, 40, 100]),
    "one class": degenerate_run([1] * 36, list(np.linspace(0, 1, 36)), TEN, LEVELS),
    "all wrong": degenerate_run([0] * 36, list(np.linspace(0, 1, 36)), TEN, LEVELS),
    "constant confidence": degenerate_run(MIXED, [0.5] * 36, TEN, LEVELS),
    "ties everywhere": degenerate_run(MIXED, [0.2, 0.2, 0.8] * 12, TEN, LEVELS),
    "perfect": degenerate_run(MIXED, MIXED, TEN, LEVELS),
    "all confidences missing": degenerate_run(MIXED, [NAN] * 36, TEN, LEVELS),
    "all answers failed": degenerate_run([NAN] * 36, [NAN] * 36, TEN, LEVELS),
    "one confidence": degenerate_run(MIXED, [0.4] + [NAN] * 35, TEN, LEVELS),
}


def made_tables() -> dict[str, Callable[[pd.DataFrame, pd.DataFrame], pd.DataFrame]]:
    class Run:
        def __init__(self, answers: pd.DataFrame, confidence: pd.DataFrame) -> None:
            self.answers, self.confidence = answers, confidence

    scales = {"m": "probability"}
    few: dict[str, Any] = {"n_draws": 40}
    one = {**few, "min_per_class": 1}
    return {
        "table.metrics_table": lambda a, c: metrics_table(Run(a, c), scales=scales, **one),
        "calibration_table": lambda a, c: calibration.calibration_table(a, c, scales, **one),
        "recalibration_curves": lambda a, c: calibration.recalibration_curves(a, c, scales, **few),
        "risk_coverage_table": lambda a, c: calibration.risk_coverage_table(
            a, c, list(dict.fromkeys(c["method"])), coverages=(0.5, 1.0), **one
        ),
        "reliability_table": lambda a, c: calibration.reliability_table(a, c, scales, **few),
        "compare_methods": lambda a, c: measures.compare_methods(a, twice(c), "m", **one),
        "best_of_families": lambda a, c: measures.best_of_families(a, twice(c), "m", **one),
        "paired.paired_differences": lambda a, c: paired.paired_differences(
            twice(c).merge(a[CELL], on=CELL[:2]), "m", by="method", **one
        ),
    }


CELL = ["case_id", "level", "correct"]


def twice(confidence: pd.DataFrame) -> pd.DataFrame:
    """The confidences under two names, as two columns to compare."""
    return pd.concat([confidence, confidence.assign(method="same")], ignore_index=True)


VALUES = ("value", "probability", "accuracy", "difference")


@each("situation", RUNS)
@each("name", made_tables())
def test_tables_say_why_a_number_is_missing_and_give_no_interval_without_width(name, situation):
    found = made_tables()[name](*(part.copy() for part in RUNS[situation]))
    values = next((v for v in VALUES if v in found), None)
    assert values is not None and "missing" in found
    silent = found[found["missing"].fillna("").eq("")]
    assert silent[values].notna().all(), silent
    if "low" in found:
        known = found.dropna(subset=["low", "high"])
        assert (known["high"] - known["low"] > 1e-12).all(), known
        assert silent["low"].notna().all() and silent["high"].notna().all(), silent
        assert found.loc[found[values].isna(), ["low", "high"]].isna().all(axis=None)
    if "p" in found and name != "table.metrics_table":
        assert found.loc[found["low"].isna(), "p"].isna().all()


@each("name", made_tables())
def test_tables_of_nothing_are_empty_or_refused(name):
    answers, confidence = (part.iloc[:0] for part in RUNS["ties everywhere"])
    try:
        assert not len(made_tables()[name](answers, confidence))
    except ValueError as error:
        assert str(error)


@each("value", [INF, -INF])
@each("name", [name for name in made_tables() if name not in ("reliability_table",)])
def test_tables_refuse_infinite_confidences(name, value):
    answers, confidence = RUNS["ties everywhere"]
    check(lambda: made_tables()[name](answers, confidence.assign(confidence=value)), REFUSED)


NOT_A_NUMBER = [
    (
        "no rows",
        lambda: trust_table.trust_indices(pd.DataFrame(columns=trust_table.NEEDED)),
        REFUSED,
    ),
    ("other columns", lambda: trust_table.check_reviews(pd.DataFrame({"a": [1]})), REFUSED),
    (
        "unknown choice",
        lambda: trust_table.Choices("", (1, 0, 0), (1, 0), (1, 0), "", "", ""),
        REFUSED,
    ),
]


@each("call, expected", [fact[1:] for fact in NOT_A_NUMBER], ids=[fact[0] for fact in NOT_A_NUMBER])
def test_reviews_that_are_none_are_refused(call, expected):
    check(call, expected)


REVIEWS = {
    "one case": [review("a", ["flu", "flu", "cold"])],
    "nothing readable": [
        review(f"c{i:02d}", [None] * 3, cosine=NAN, cosine_missing="no reasoning")
        for i in range(12)
    ],
    "all alike": [review(f"c{i:02d}", ["flu"] * 3) for i in range(12)],
    "empty plans": [review(f"c{i:02d}", ["flu", "cold", "flu"], **EMPTY_PLAN) for i in range(12)],
    "safety off": [
        review(f"c{i:02d}", ["flu", "cold"], **SAFETY_OFF, n_prescriptions=0, n_tests=0)
        for i in range(12)
    ],
}


@each("formulation", trust.FORMULATIONS)
@each("situation", REVIEWS)
def test_trust_indices_say_why_one_is_missing_and_give_no_interval_without_width(
    situation, formulation
):
    found = trust_table.trust_indices(pd.DataFrame(REVIEWS[situation]), formulation, draws=40)
    assert found["metric"].tolist() == trust_table.INDICES
    without = found["low"].isna()
    assert (found.loc[without, "missing"] != "").all()
    assert found.loc[found["value"].isna(), "low"].isna().all()
    assert (found["high"] - found["low"])[~without].gt(1e-12).all()
