"""What is gained by answering only when sure? Risk against coverage of every method, and the area under it.

Tables for the benchmark: pure functions of a run's ``answers`` and ``confidence``. Intervals are 95 % percentile bootstrap over
cases, the same draws for all methods of a model and data set.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from trustlab.experiments.method_rows import MethodRows, method_rows
from trustlab.metrics.estimate import bounded_interval
from trustlab.metrics.selective import risk_at, selective_weighted

MEASURES = ("aurc", "prediction_rejection_ratio")
COVERAGES = tuple(np.round(np.arange(0.05, 1.0001, 0.05), 2))
ORACLE, ANY_ORDER = "oracle", "any order"
MIN_COVERAGE = 0.5
"""A method with a value in a smaller share of the answers is left out where many are compared on the rows that all have."""
CHUNK = 250
"""Bootstrap draws handled at once: keeps the working arrays near the processor's cache."""
COLUMNS = ["model", "dataset", "method", "metric", "value", "low", "high", "n", "n_cases", "n_missing", "missing"]
CURVE = ["model", "dataset", "method", "role", "coverage", "risk", "low", "high", "n", "n_cases"]
CURVE += ["n_shared", "n_rarer", "n_missing", "missing"]


def selective_table(
    answers: pd.DataFrame, confidence: pd.DataFrame, *, n_draws: int = 2000, seed: int = 0, min_per_class: int = 10
) -> pd.DataFrame:
    """Area under the risk–coverage curve and prediction-rejection ratio: a row a model, data set, method and measure.

    ``metric`` is "aurc" (a risk, lower is better: :func:`trustlab.metrics.selective.aurc`) or "prediction_rejection_ratio"
    (1 best, 0 any order, negative worse). Over the ``n`` rows where the method has a value, of ``n_cases`` cases, all levels
    together; ``n_missing`` are left out. Withheld below ``min_per_class`` right or wrong answers; ``missing`` says why a value or
    an interval is NaN. Raises ``ValueError`` as :func:`~trustlab.experiments.method_rows.method_rows`.
    """
    nothing = float("nan")
    rows: list[dict] = []
    for asked in method_rows(answers, confidence):
        known = asked.at(asked.present)
        least = max(min_per_class, 1)
        why = "" if _rarer(known) >= least else f"fewer than {least} correct or wrong"
        why = why if len(known.case) else asked.no_value()
        found = {measure: (nothing, nothing, nothing, why) for measure in MEASURES}
        if not why:
            once = selective_weighted(known.correct, known.confidence, np.ones((1, len(known.case)), int))
            draws = _draws(known, asked.weights(n_draws, seed))
            found = {m: (float(once[i][0]), *bounded_interval(draws[i], known.case)) for i, m in enumerate(MEASURES)}
        for measure, (value, low, high, said) in found.items():
            reason = "; ".join([*([said] if said else []), *asked.notes()])
            numbers = {"value": value, "low": low, "high": high}
            rows.append({**asked.label, "metric": measure, **numbers, **asked.counts(), "missing": reason})
    return pd.DataFrame(rows, columns=pd.Index(COLUMNS))


def risk_coverage_table(
    answers: pd.DataFrame,
    confidence: pd.DataFrame,
    methods: Sequence[str] | None = None,
    *,
    coverages: Sequence[float] = COVERAGES,
    n_draws: int = 1000,
    seed: int = 0,
    min_per_class: int = 10,
) -> pd.DataFrame:
    """Risk (share of wrong answers among those given) at each coverage, of ``methods`` in that order (default: all).

    The methods of a model and data set stand on the ``n_shared`` rows that all of them have,
    ``n_rarer`` of the rarer kind, right or wrong; one with a value in fewer than half of the
    answers is left out, in one row that says so. ``role`` is "method", or "reference" for the
    methods "oracle" (right answers first: no order does better) and "any order" (risk is the error
    rate at every coverage). ``coverage`` is of the shared rows, so that a risk has its own ``n``:
    the answers given there, of ``n_cases`` cases (equal confidences at the end all counted in).
    ``low`` and ``high`` bound a pointwise interval, NaN below 10 of these cases or where draws are
    all alike. Without curves below ``min_per_class`` right or wrong answers on those rows: one row
    a method, with the ``missing``. Raises ``ValueError`` for a method that the table does not hold,
    and as :func:`~trustlab.experiments.method_rows.method_rows`.
    """
    held = list(dict.fromkeys(confidence["method"]))
    if lacking := [name for name in methods or () if name not in held]:
        raise ValueError(f"no method {lacking}; the table holds {held}")
    runs: dict[tuple[str, str], list[MethodRows]] = {}
    for asked in method_rows(answers, confidence):
        if methods is None or asked.method in methods:
            runs.setdefault((asked.model, asked.dataset), []).append(asked)
    at, least = np.asarray(coverages, float), max(min_per_class, 1)
    ordered = [sorted(run, key=lambda rows: list(methods or held).index(rows.method)) for run in runs.values()]
    rows = [row for several in ordered for row in _curves(several, at, n_draws, seed, least)]
    return pd.DataFrame(rows, columns=pd.Index(CURVE))


def _rarer(rows: MethodRows) -> int:
    n_right = int(rows.correct.sum())
    return min(n_right, len(rows.correct) - n_right)


def _given(ranking: np.ndarray, coverage: float) -> np.ndarray:
    """Which answers (n,) are among the surest share ``coverage``, all of those that tie with the last of them too."""
    last = int(np.ceil(round(coverage * len(ranking), 9)))
    return ranking >= np.sort(ranking)[len(ranking) - max(last, 1)]


def _draws(rows: MethodRows, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    starts = range(0, len(weights), CHUNK)
    chunks = [selective_weighted(rows.correct, rows.confidence, weights[start : start + CHUNK]) for start in starts]
    return np.concatenate([c[0] for c in chunks]), np.concatenate([c[1] for c in chunks])


def _curves(several: Sequence[MethodRows], coverages: np.ndarray, n_draws: int, seed: int, least: int) -> Iterator[dict]:
    """The curves of one model and data set, the two references first."""
    compared = [rows for rows in several if rows.present.mean() >= MIN_COVERAGE]
    names = {rows.method for rows in compared}
    shared = np.all([rows.present for rows in compared], axis=0) if compared else np.zeros(0, bool)
    nothing = dict.fromkeys(("coverage", "risk", "low", "high"), float("nan"))
    few = "" if shared.any() else "no row that all methods have"
    if not few and _rarer(compared[0].at(shared)) < least:
        few = f"fewer than {least} correct or wrong"
    if not few:
        first = compared[0].at(shared)
        of_all = {"n_shared": int(shared.sum()), "n_rarer": _rarer(first), "n_missing": int((~shared).sum())}
        weights = compared[0].weights(n_draws, seed).T[shared[compared[0].present]].T
        references = {ORACLE: first.correct, ANY_ORDER: np.zeros(len(first.case))}
        curves = [(name, "reference", ranking, "") for name, ranking in references.items()]
        curves += [(rows.method, "method", rows.at(shared).confidence, "; ".join(rows.at(shared).notes())) for rows in compared]
        for name, role, ranking, note in curves:
            risk = risk_at(first.correct, ranking, np.ones((1, len(ranking)), int), coverages)[0]
            draws = risk_at(first.correct, ranking, weights, coverages)
            for i, coverage in enumerate(coverages):
                given = _given(ranking, coverage)
                low, high, why = bounded_interval(draws[:, i], first.case[given])
                counts = {"n": int(given.sum()), "n_cases": len(np.unique(first.case[given]))} | of_all
                numbers = {"coverage": float(coverage), "risk": float(risk[i]), "low": low, "high": high}
                reason = "; ".join(part for part in (why, note) if part)
                yield {**first.label, "method": name, "role": role, **numbers, **counts, "missing": reason}
    for rows in several:
        if rows.method in names and not few:
            continue
        n, asked = int(rows.present.sum()), len(rows.present)
        why = few if rows.method in names else f"a value in {n} of {asked} answers only: not compared"
        why = why if n else rows.no_value()
        yield {**rows.label, "role": "method", **nothing, **rows.counts(), "missing": why}
