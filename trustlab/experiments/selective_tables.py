"""What is gained by answering only when sure? Risk against coverage, and the area under it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd

from trustlab.metrics import schema
from trustlab.metrics.estimate import NAN, Metric, Rows, at_least, estimate, mean, measure
from trustlab.metrics.paired import MIN_COVERAGE
from trustlab.metrics.run_tables import rows_of_methods
from trustlab.metrics.selective import SELECTIVE, risk_at

RUN = ["model", "dataset"]
COVERAGES = tuple(np.round(np.arange(0.05, 1.0001, 0.05), 2))
ORACLE, ANY_ORDER = "oracle", "any order"
REFERENCES = {ORACLE: lambda rows: rows["correct"], ANY_ORDER: lambda rows: np.zeros(len(rows))}
"""Curves to hold the methods' against -> what they order the answers by."""


def selective_table(
    answers: pd.DataFrame,
    confidence: pd.DataFrame,
    *,
    n_draws: int = 2000,
    seed: int = 0,
    min_per_class: int = 10,
) -> pd.DataFrame:
    """The areas under the risk–coverage curve of every method, a row a model, data set and metric.

    - ``metric`` is one of :data:`~trustlab.metrics.selective.SELECTIVE`: "aurc" and "augrc" are
      risks, lower is better; "prediction_rejection_ratio" is 1 at best, 0 in any order.
    - Over the ``n`` rows where the method has a value, all levels together.
    - Withheld below ``min_per_class`` right or wrong answers.
    - ``ValueError`` as :func:`~trustlab.metrics.run_tables.rows_of_methods`.
    """
    few = at_least(min_per_class)
    metrics = {name: Metric(statistic, few) for name, statistic in SELECTIVE.items()}
    made = rows_of_methods(answers, confidence, n_draws, seed)
    lines = measure(((label, rows) for label, rows in made if label["method"]), metrics)
    return schema.table(lines, [*RUN, "method"])


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
    """Risk (share of wrong answers among those given) at each coverage, a row a point of a curve.

    - Curves of ``methods`` in that order (default: all); those of a model and data set stand on the
      ``n_shared`` rows that all of them have, ``n_rarer`` of the rarer kind. A method with a value
      in fewer than half of the answers is left out, in one row that says so.
    - ``role`` is "method", or "reference" for "oracle" (right answers first: no order does better)
      and "any order" (risk is the error rate at every coverage).
    - ``coverage`` is of the shared rows, so that a risk has its own ``n``: the answers given there,
      of ``n_cases`` cases (equal confidences at the end all counted in).
    - Without curves below ``min_per_class`` right or wrong answers: a row a method, and why.
    - ``ValueError`` for a method that the table does not hold, and as :func:`selective_table`.
    """
    held = list(dict.fromkeys(confidence["method"]))
    if lacking := [name for name in methods or () if name not in held]:
        raise ValueError(f"no method {lacking}; the table holds {held}")
    order = list(methods or held)
    made = rows_of_methods(answers, confidence, n_draws, seed)
    wanted = ((label, rows) for label, rows in made if label["method"] in order)
    lines: list[dict[str, Any]] = []
    for run, several in groupby(wanted, key=lambda one: [one[0][key] for key in RUN]):
        rows = {label["method"]: rows for label, rows in several}
        ordered = {method: rows[method] for method in order if method in rows}
        label = dict(zip(RUN, run, strict=True))
        lines += [label | line for line in _curves(ordered, coverages, min_per_class)]
    return schema.table(lines, [*RUN, "method", "role", "coverage"], ["n_shared", "n_rarer"])


def _curves(several: dict[str, Rows], coverages: Sequence[float], least: int) -> Iterator[dict]:
    """The curves of one model and data set, the two references first."""
    compared = {m: rows for m, rows in several.items() if rows.known.mean() >= MIN_COVERAGE}
    shared = np.all([rows.known for rows in compared.values()], axis=0) if compared else np.False_
    few = "" if shared.any() else "no row that all methods have"
    on_shared = {method: replace(rows, known=shared) for method, rows in compared.items()}
    for first in list(on_shared.values())[:1] if not few else ():
        few = at_least(least)(first)
        for name, of in REFERENCES.items() if not few else ():
            asked = first.asked.assign(confidence=NAN, bound=False)
            asked.loc[shared, "confidence"] = of(first)
            yield from _curve(replace(first, asked=asked), name, "reference", coverages)
    for method, rows in on_shared.items() if not few else ():
        yield from _curve(rows, method, "method", coverages)
    for method, rows in several.items():
        if method in compared and not few:
            continue
        alone = f"a value in {len(rows)} of {len(rows.asked)} answers only: not compared"
        why = few if method in compared else alone
        found = estimate(rows, Metric(mean("correct"), lambda _, why=why: why))
        yield {"method": method, "role": "method", "metric": "risk", **found, "n_rarer": NAN}


def _curve(rows: Rows, name: str, role: str, coverages: Sequence[float]) -> Iterator[dict]:
    """One curve: at each coverage the risk among those given, with the counts of these."""
    correct, sure = rows["correct"], rows["confidence"]
    curve = rows.over(lambda weights: risk_at(correct, sure, weights.astype(int), coverages).T)
    of_all = {
        "n_shared": len(rows),
        "n_rarer": rows.rarer,
        "n_missing": len(rows.asked) - len(rows),
    }
    for coverage, drawn in zip(map(float, coverages), curve, strict=True):
        last = max(int(np.ceil(round(coverage * len(rows), 9))), 1)
        given = rows.known.copy()
        given[rows.known] = sure >= np.sort(sure)[len(sure) - last]
        found = estimate(rows.at(given), lambda _, drawn=drawn: drawn)
        label = {"method": name, "role": role, "coverage": coverage, "metric": "risk"}
        yield label | found | of_all
