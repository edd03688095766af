"""Data that say nothing: what every public function and table of the metrics makes of them.

NaN (with a reason, where there is a place for one), the number that the definition gives, or a
``ValueError``; never a warning, another error, or an interval without width.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, is_dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from each import each

from studies import calibration as study
from trustlab.metrics import (
    agreement,
    bands,
    calibration,
    correlation,
    discrimination,
    estimate,
    selective,
    significance,
    stability,
    stopping,
    ties,
    trust,
)
from trustlab.runs import measures as tables

pytestmark = pytest.mark.filterwarnings("error")

NAN, INF = float("nan"), float("inf")
NO_VALUE = (NAN,) * 3
REFUSED, NOTHING, A_SHARE = "ValueError", "no number at all", "numbers from 0 to 1"
"""What may be expected beside numbers."""


def apart(answers: Any) -> tuple[np.ndarray, np.ndarray]:
    """A case for each of the answers, and one stratum for all."""
    n = len(list(answers))
    return np.arange(n), np.zeros(n, int)


def numbers(result: Any) -> list[float]:
    """Every number in a result, in order; texts, names and counts of a mapping are left out."""
    if is_dataclass(result) and not isinstance(result, type):
        return numbers(asdict(result))
    if isinstance(result, Mapping):
        return [x for value in result.values() for x in numbers(value)]
    if isinstance(result, (np.ndarray, list, tuple)):
        return [x for value in result for x in numbers(value)]
    return [float(result)] if isinstance(result, (int, float, np.number, np.bool_)) else []


def check(call: Callable[[], Any], expected: Any) -> None:
    if expected is REFUSED:
        with pytest.raises(ValueError, match=r"\w"):
            call()
        return
    found = numbers(call())
    if expected is NOTHING:
        assert found == []
    elif expected is A_SHARE:
        assert found and all(0 <= x <= 1 for x in found)
    else:
        wanted = [float(x) for x in np.ravel(expected)]
        wanted *= len(found) // len(wanted) if found else 1
        assert found == pytest.approx(wanted, nan_ok=True, abs=1e-9)


# Right and wrong answers with their confidences

PAIRS: dict[str, tuple[list, list]] = {
    "no rows": ([], []),
    "one row": ([1], [0.7]),
    "one class": ([1, 1, 1], [0.2, 0.5, 0.9]),
    "constant confidence": ([1, 0, 1, 0], [0.5] * 4),
    "ties everywhere": ([1, 0, 1, 0, 0], [0.2, 0.2, 0.8, 0.8, 0.8]),
}
NOT_FINITE = {
    "infinite": ([1, 0, 1], [0.1, INF, 0.9]),
    "minus infinite": ([1, 0, 1], [-INF, 0.1, 0.9]),
    "missing confidence": ([1, 0, 1], [0.5, NAN, 0.9]),
    "unknown answer": ([1, NAN, 0], [0.5, 0.4, 0.9]),
    "no answer of 0 or 1": ([1, 2, 0], [0.5, 0.4, 0.9]),
    "other lengths": ([1, 0, 1], [0.5, 0.4]),
    "two dimensions": ([[1, 0]], [[0.5, 0.4]]),
}
ECE = (NAN, 0.3, 1.4 / 3, 0, (2 * 0.3 + 3 * (0.8 - 1 / 3)) / 5)
OF_PAIRS: dict[str, tuple[Callable[[Any, Any], Any], tuple[Any, ...]]] = {
    "discrimination.auroc": (discrimination.auroc, (*NO_VALUE, 0.5, 2.5 / 6)),
    "discrimination.auprc": (discrimination.auprc, (*NO_VALUE, 0.5, 11 / 30)),
    "discrimination.concordance": (
        lambda c, s: discrimination.concordance(c, s, *apart(c))[0],
        (*NO_VALUE, 0.5, 2.5 / 6),
    ),
    "calibration.brier": (calibration.brier, (NAN, 0.09, 0.3, 0.25, 0.4)),
    "calibration.ece": (calibration.ece, ECE),
    "calibration.brier_parts": (
        calibration.brier_parts,
        (NO_VALUE, NO_VALUE, NO_VALUE, (0, 0, 0.25), (0.16, 0, 0.24)),
    ),
    "calibration.cross_fitted": (
        lambda c, s: calibration.cross_fitted(c, s, np.arange(np.size(c)), n_folds=2, seed=1),
        (NOTHING, NAN, NAN, A_SHARE, A_SHARE),
    ),
    "selective.risk_at": (
        lambda c, s: selective.risk_at(c, s, [1.0]),
        (NAN, 0, 0, 0.5, 0.6),
    ),
    "selective.aurc": (selective.aurc, (*NO_VALUE, 0.5, 0.645)),
    "selective.prediction_rejection_ratio": (
        selective.prediction_rejection_ratio,
        (*NO_VALUE, 0, -0.045 / (0.6 - 0.86 / 3)),
    ),
}


@each("situation", PAIRS)
@each("name", OF_PAIRS)
def test_answers_with_confidences(name, situation):
    call, expected = OF_PAIRS[name]
    check(lambda: call(*PAIRS[situation]), expected[list(PAIRS).index(situation)])


@each("situation", NOT_FINITE)
@each("name", OF_PAIRS)
def test_a_measure_refuses_what_is_no_number(name, situation):
    check(lambda: OF_PAIRS[name][0](*NOT_FINITE[situation]), REFUSED)


# Everything else: (function, what is expected, its arguments)

SHORT, FLAT, RISING = [0.1, 0.2], [0.3] * 4, [1, 2, 3, 4]
FEW, MANY = np.arange(4), np.arange(12)
ALIKE, LOST = np.full(50, 0.25), [NAN] * 9
EMPTY_TURNS, TWO = np.empty((0, 3)), np.array([[NAN, NAN]])
SERIES = [
    correlation.pearson,
    correlation.spearman,
    correlation.spearman_permutation_p,
    correlation.pearson_permutation_p,
]
CVS = [stability.cv_group, stability.cv_sample]
OF_SERIES = [
    *((of, NAN, *pair) for of in SERIES for pair in [([], []), (SHORT, SHORT), (FLAT, RISING)]),
    *((of, REFUSED, RISING, y) for of in SERIES for y in ([1, 2, INF, 4], [1, 2, NAN, 4], SHORT)),
    *((correlation.spearman_exact_p, NAN, *of) for of in [(NAN, 6), (0.5, 0), (1.0, 2)]),
    *((correlation.spearman_exact_p, REFUSED, r, 6) for r in (INF, 1.001, -2)),
    *((correlation.spearman_exact_p, REFUSED, 0.5, n) for n in (5.5, -1, NAN, INF, 9)),
    (correlation.spearman_exact_p, REFUSED, 0.5, 6, -0.1),
    (correlation.spearman_values, REFUSED, 2),
    (correlation.spearman_values, (-1, -0.5, 0.5, 1), 3),
    (bands.rising_band, REFUSED, RISING, "kendall"),
    *((bands.rising_band, REFUSED, of) for of in (SHORT, [1, 2, INF], [1, 2, NAN], 6)),
    (bands.rising_band, NAN, FLAT),
    (bands.rising_band, NAN, [0.1 + 0.2, 0.3, 0.3], "spearman"),
    *((bands.unordered_band, (NAN, 0, NAN), n) for n in (3, 4)),
    (bands.unordered_band, (-1, 0, 1), 5),
    *((bands.unordered_band, REFUSED, n) for n in (2, 9)),
]
OF_TIES = [
    (ties.tied, NOTHING, []),
    (ties.tied, NAN, [NAN] * 2),
    (ties.tied, [INF, -INF, INF], [INF, -INF, INF]),
    (ties.reaches, [0, 1], [NAN, 1.0], 1.0),
    (ties.reaches, [0, 0], [0.0, INF], NAN),
    (partial(ties.numbers, missing=True), REFUSED, "x", [INF]),
    (ties.numbers, REFUSED, "x", [NAN]),
]
OF_DRAWS = [
    (estimate.all_alike, True, np.array([])),
    (significance.holm, NOTHING, []),
    (significance.holm, NAN, [NAN, NAN]),
    *((significance.holm, REFUSED, p) for p in ([0.1, INF], [-0.1], [1.1], [[0.1, 0.2]], 0.3)),
    *(
        (significance.sample_size_for_power, NAN, *of)
        for of in [(0, 0.1, 40), (0.1, 0, 40), (0.1, 0.1, 0), (NAN, 0.1, 40), (0.1, INF, 40)]
    ),
    (significance.sample_size_for_power, REFUSED, 0.1, -0.1, 40),
]
CHANCE = stability.cv_group_by_chance
KAPPA = agreement.kappa
OF_GRADERS = [
    *((KAPPA, NAN, *np.array([of]).T) for of in [(1, 1, 1), (0, 1, 0), (NAN, 1, 1)]),
    *((agreement.agreement, REFUSED, *of, ["a"]) for of in [([1, 0], [1]), ([2], [1])]),
    (agreement.agreement, (0, 0, 0, 0, *NO_VALUE, 0, 0, 0), [], [], []),
    (
        agreement.agreement,
        (6, 0, 0, 6, 1, 0.5485187633624583, 1, 12, 12, 0)
        + (6, 0, 0, 6, 1, 0.6680314034205064, 1, 12, 12, 0),
        MANY % 2,
        MANY % 2,
        MANY,
    ),
    (agreement.agreement, REFUSED, [INF], [1], ["a"]),
]
OF_RISKS = [
    *((selective.risk_at, REFUSED, [1, 0], SHORT, [at]) for at in (0.0, 1.1, NAN)),
]
STEADY = {
    CVS[0]: (0, NAN, NAN, 12, 12, 0, 0),
    CVS[1]: (0, 0, 0, 12, 12, 0, 0),
}
OF_VIEWS = [  # value, low, high, n, n_cases, n_missing, n_zero
    *(
        (cv, expected, rows, cases)
        for cv in CVS
        for rows, cases, expected in (
            (np.empty((0, 2)), [], (*NO_VALUE, 0, 0, 0, 0)),
            (np.full((3, 2), NAN), [1, 2, 3], (*NO_VALUE, 0, 0, 3, 0)),
            ([[0.4, 0.6]], [1], (20, NAN, NAN, 1, 1, 0, 0)),
            (np.full((12, 2), 0.4), MANY, STEADY[cv]),
            *((rows, ["a"] * len(rows), REFUSED) for rows in ([[0.1]], [0.1, 0.2], [[-0.1, 0.2]])),
            ([[0.4, INF]], [1], REFUSED),
        )
    ),
    (CVS[0], (*NO_VALUE, 12, 12, 0, 12), np.zeros((12, 2)), MANY),
    (CVS[1], (*NO_VALUE, 0, 0, 0, 12), np.zeros((12, 2)), MANY),
    *((CHANCE, NAN, rows, 9) for rows in (np.empty((0, 2)), np.full((3, 2), NAN))),
    (CHANCE, 0, np.full((3, 2), 0.4), 9),
    (stopping.stop_turns, NOTHING, EMPTY_TURNS, 0.5),
    (stopping.stop_turns, 2, [[NAN] * 3], 0.5),
    *((stopping.stop_turns, REFUSED, sure, 0.5) for sure in (np.empty((2, 0)), [0.1, 0.2])),
    (stopping.best_threshold, REFUSED, EMPTY_TURNS, EMPTY_TURNS, EMPTY_TURNS, 0.0),
    *(
        (stopping.best_threshold, REFUSED, [[0.1, 0.2]], right, [[2, 4]], 0.0)
        for right in ([[NAN, 1]], [[0.5, 1]], [[0, 1]] * 2)
    ),
    (stopping.along, REFUSED, [[1, 2]], [0, 1]),
    (stopping.best_threshold, INF, TWO, [[0, 1]], [[2, 4]], 0.0),
    *((stopping.best_threshold, REFUSED, [[0.1]], [[1]], [[2]], price) for price in (NAN, -0.1)),
    (stopping.fold_of, NOTHING, [], 2),
    *((stopping.fold_of, REFUSED, *of) for of in [(["a", "a"], 2), (["a", "b"], 1)]),
]
MEDGUARD = "medguard-x"
OF_DOCTORS = [
    *((of, NAN, v) for of in (trust.cdr, trust.any_disagreement) for v in ([], [None, None])),
    *((trust.cdr, REFUSED, *of) for of in [("flu",), (["A", None], "wrong")]),
    (trust.majority, NOTHING, [None, None], "a"),
    (trust.rdc, NAN, NAN),
    *((trust.rdc, REFUSED, *of) for of in [(INF,), (1.2,), (0.2, "x")]),
    *((trust.eti, NAN, *of) for of in [(0.5, NAN, 0.5), (1, 0, NAN, (0.5, 0.5, 0))]),
    *((trust.eti, REFUSED, *of) for of in [(INF, 0.5, 0.5), (1.2, 0, 0), (0, -0.1, 0), (0, 0, -2)]),
    (trust.eti, REFUSED, np.array([0.5, 7]), np.zeros(2), np.zeros(2)),
    *((partial(trust.eti, formulation=MEDGUARD), REFUSED, *of) for of in [(0, 0, -1), (101, 0, 0)]),
    *(
        (trust.check_weights, REFUSED, weights)
        for weights in ((0.5, 0.6, -0.1), (0.5, 0.2, 0.2), (0.5, 0.5), (NAN, 0.5, 0.5))
    ),
    *(
        (percent, expected, *of)
        for percent in (trust.unsafe_rx_percent, trust.test_alerts_percent)
        for expected, of in [(NAN, (0, 0, 0)), (REFUSED, (2, 3, 4)), (REFUSED, (-1, 0, 4))]
    ),
    (partial(trust.unsafe_rx_percent, variant="all"), REFUSED, 0, 0, 1),
    (trust.test_alerts_percent, REFUSED, 0, 1, 4, 3),
    (trust.osi, NAN, NAN, 50.0),
    *((trust.osi, REFUSED, *of) for of in [(INF, 50.0), (101, 0), (0, INF)]),
    (partial(trust.osi, formulation="x"), REFUSED, 0, 0),
    (trust.fti, NAN, NAN, 50.0),
    *((trust.fti, REFUSED, *of) for of in [(0.5, INF), (54, 50), (0.5, -1)]),
    (partial(trust.fti, formulation=MEDGUARD), REFUSED, -3, 1),
]
EDGES: list[tuple[Any, ...]] = [
    *OF_SERIES, *OF_TIES, *OF_DRAWS, *OF_GRADERS, *OF_RISKS, *OF_VIEWS, *OF_DOCTORS,
]  # fmt: skip


def name_of(function: Any) -> str:
    of = getattr(function, "func", function)
    return f"{of.__module__.rpartition('.')[2]}.{of.__name__}"


@pytest.mark.usefixtures("every_interval")
@each("fact", EDGES, ids=[f"{name_of(of)}{given}" for of, _, *given in EDGES])
def test_everything_else(fact):
    of, expected, *given = fact
    check(lambda: of(*given), expected)


# Tables

Made = tuple[pd.DataFrame, pd.DataFrame]


def a_run(correct: list, confidence: Any, cases: list[str], levels: list[int]) -> Made:
    """Answers and confidences ("m") of one run; an unknown answer's call failed, a missing
    confidence has the reason "none"."""
    keys = pd.DataFrame({"case_id": cases, "level": levels}).assign(dataset="d", model="x")
    said = pd.Series(["a" if c == c else None for c in correct], dtype=object)
    answers = keys.assign(answer=said, correct=np.array(correct, float), missing="")
    answers = answers.assign(n_statements=1, n_words=range(len(cases)))
    told = keys.assign(method="m", confidence=np.array(confidence, float), bound="", missing="none")
    return answers, told


def of_twelve(correct: list, confidence: Any) -> Made:
    """Twelve cases at three levels."""
    cases = [f"c{i:02d}" for i in range(12)] * 3
    return a_run(correct, confidence, cases, [1] * 12 + [40] * 12 + [100] * 12)


MIXED = [float((i * 7) % 3 > 0) for i in range(36)]
RUNS: dict[str, Made] = {
    "one row": a_run([1], [0.7], ["a"], [1]),
    "one class": of_twelve([1] * 36, np.linspace(0, 1, 36)),
    "constant confidence": of_twelve(MIXED, [0.5] * 36),
    "ties everywhere": of_twelve(MIXED, [0.2, 0.2, 0.8] * 12),
    "all confidences missing": of_twelve(MIXED, [NAN] * 36),
    "all answers failed": of_twelve([NAN] * 36, [NAN] * 36),
    "one confidence": of_twelve(MIXED, [0.4] + [NAN] * 35),
}


def twice(confidence: pd.DataFrame) -> pd.DataFrame:
    """The confidences under two names, as two columns to compare."""
    return pd.concat([confidence, confidence.assign(method="same")], ignore_index=True)


SCALES = {"m": "probability"}
ONE: dict[str, Any] = {"min_per_class": 1}
TABLES: dict[str, Callable[[pd.DataFrame, pd.DataFrame], pd.DataFrame]] = {
    "metrics_table": lambda a, c: tables.metrics_table(
        SimpleNamespace(answers=a, confidence=c), scales=SCALES, **ONE
    ),
    "calibration_table": lambda a, c: study.calibration_table(a, c, SCALES, **ONE),
    "recalibration_curves": lambda a, c: study.recalibration_curves(a, c, SCALES),
    "risk_coverage_table": lambda a, c: study.risk_coverage_table(
        a, c, list(dict.fromkeys(c["method"])), coverages=(0.5, 1.0), **ONE
    ),
    "reliability_table": lambda a, c: study.reliability_table(a, c, SCALES),
    "compare_methods": lambda a, c: tables.compare_methods(a, twice(c), "m", **ONE),
    "best_of_families": lambda a, c: tables.best_of_families(a, twice(c), "m", **ONE),
}
VALUES = ("value", "probability", "accuracy", "difference")


@each("situation", RUNS)
@each("name", TABLES)
def test_tables_say_why_a_number_is_missing_and_give_no_interval_without_width(name, situation):
    found = TABLES[name](*(part.copy() for part in RUNS[situation]))
    values = next((v for v in VALUES if v in found), None)
    assert values is not None and "missing" in found
    silent = found[found["missing"].fillna("").eq("")]
    assert silent[values].notna().all(), silent
    if "low" in found:
        known = found.dropna(subset=["low", "high"])
        assert (known["high"] - known["low"] > 1e-12).all(), known
        assert silent["low"].notna().all() and silent["high"].notna().all(), silent
        assert found.loc[found[values].isna(), ["low", "high"]].isna().all(axis=None)
    if "p" in found and name != "metrics_table":
        assert found.loc[found["low"].isna(), "p"].isna().all()


@each("name", TABLES)
def test_tables_of_nothing_are_empty_or_refused_and_infinite_confidences_are_refused(name):
    answers, confidence = RUNS["ties everywhere"]
    with suppress(ValueError):
        assert not len(TABLES[name](answers.iloc[:0], confidence.iloc[:0]))
    for value in (INF, -INF) if name != "reliability_table" else ():
        check(lambda v=value: TABLES[name](answers, confidence.assign(confidence=v)), REFUSED)
