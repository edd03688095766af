"""Asks whether answers are right as often, and confidences as honest, for one group of patients as
for another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtr, stdtrit

from trustlab.metrics import coverage, intervals
from trustlab.metrics.discrimination import STRATIFIED
from trustlab.metrics.estimate import (
    Interval,
    Line,
    Metric,
    Rows,
    Statistic,
    between,
    estimate,
    rate,
)
from trustlab.metrics.paired import RUN, corrected
from trustlab.metrics.run_tables import CHANCE, calibration_error, rows_of_methods

MIN_CASES = 10
"""Cases of a group with a right answer, and with a wrong one, below which it has no values."""
UNSTATED = "not stated"
"""The group of the cases of which it is not known."""
GAP = "confidence_minus_accuracy"
"""Mean confidence minus accuracy, above 0 where a method is overconfident."""
MEASURES = {
    "accuracy": rate("correct"),
    GAP: Statistic(
        lambda rows: rows.mean(rows["confidence"] - rows["correct"]),
        ends=between(-1.0, 1.0),
        kind="mean",
    ),
    "auroc": STRATIFIED["auroc"],
}
"""What is compared: of the answers, of a method that is meant as a chance, and of every method."""


def group_table(
    answers: pd.DataFrame,
    confidence: pd.DataFrame,
    scales: Mapping[str, str],
    by: str,
) -> pd.DataFrame:
    """Each measure in each group of cases, and its difference from the largest.

    - ``answers`` has a column ``group``, alike in all answers of a case (:data:`UNSTATED`: not
      known), by name or in the order of its categories; ``by`` says what it is.
    - A row a model, data set, method, measure and group. Of the answers (method '') "accuracy"; of
      a method level-stratified "auroc"; where ``scales`` (method -> scale) says 'probability' also
      mean confidence minus accuracy, and, of a group with values, "ece" with what chance gives.
    - ``against`` '': the ``value`` with its interval. Else its difference from that group's, with
      :func:`welch`; never of :data:`UNSTATED`, nor of ECE, which is larger in a small group by
      chance alone.
    - ``p_holm``: Holm over all differences of a model and data set. ``cases_needed``: of the group,
      where the other grows with it.
    - Withheld below :data:`MIN_CASES` cases with a right, or with a wrong answer.
    - ``ValueError`` as :func:`.rows_of_methods`.
    """
    names = list(pd.Categorical(answers["group"]).categories)
    lines: list[Line] = []
    reference = ""
    for label, rows in rows_of_methods(answers, confidence):
        parts = rows.by("group")
        groups = {name: parts[name] for name in names if name in parts}
        measures = ["auroc"]
        if not label["method"]:
            measures = ["accuracy"]
            stated = [name for name in groups if name != UNSTATED]
            reference = max(stated, key=lambda name: groups[name].n_cases, default="")
        elif scales.get(label["method"]) == "probability":
            measures = [GAP, "auroc", "ece"]
        for name in measures:
            for line in _lines(groups, name, reference):
                lines.append({**label, "by": by, "metric": name, **line})
    keys = [*RUN, "method", "by", "group", "against"]
    return corrected(lines, keys, ["own_rows", "n_rarer", *CHANCE], RUN)


def too_few(rows: Rows) -> str:
    """Why a group has no values, or ''."""
    if rows.rarer_cases < MIN_CASES:
        return f"fewer than {MIN_CASES} cases with right answers, or with wrong ones"
    return ""


def _lines(groups: Mapping[str, Rows], name: str, against: str) -> Iterator[Line]:
    """A measure in each group, and its differences from the group ``against``."""
    if name == "ece":
        for group, rows in groups.items():
            if not too_few(rows):
                yield {"group": group, "against": "", **calibration_error(rows)}
        return
    parts = {group: comparable(rows, name) for group, rows in groups.items()}
    lines = {}
    for group, rows in parts.items():
        lines[group] = estimate(rows, Metric(MEASURES[name], too_few))
        yield {"group": group, "against": "", **lines[group]}
    for group, rows in parts.items():
        if group in (against, UNSTATED):
            continue
        change = welch(rows, parts[against], name)
        reference = lines[against]["value"]
        yield {
            "group": group,
            "against": against,
            **lines[group],
            "reference": reference,
            "difference": lines[group]["value"] - reference,
            **change._asdict(),
        }


def comparable(rows: Rows, measure: str) -> Rows:
    """The answers that a measure reads: for AUROC, of the levels that have right and wrong ones."""
    if measure != "auroc" or not len(rows):
        return rows
    return rows.where("level", rows.mixed_levels)


def welch(rows: Rows, reference: Rows, measure: str) -> Interval:
    """Welch's t of a measure of :data:`MEASURES` in two groups of different cases.

    - On what each case adds (its jackknife pseudo-value; of an accuracy its own), with a case of
      either end added to each group: of accuracies that is Agresti & Caffo's (2000).
    - Of AUROC as many cases count as stand behind it (:attr:`.Rows.rarer_worth`).
    - Without an interval and p where a group has no value, or none of this kind holds
      (:mod:`.coverage`).
    """
    statistic = MEASURES[measure]
    kind = f"{measure} by group"
    missing = _why_no_interval(rows, kind) or _why_no_interval(reference, kind)
    if missing:
        return Interval(missing=missing)
    lowest, highest = statistic.ends(rows)
    sides = [_with_ends(side, statistic) for side in (rows, reference)]
    middles, variances, degrees = np.transpose(sides)
    variance = variances.sum()
    squares = variances**2 / degrees
    df = variance**2 / squares.sum()
    error = np.sqrt(variance)
    difference = middles[0] - middles[1]
    t = difference / error
    p = 2 * stdtr(df, -abs(t))
    quantile = stdtrit(df, intervals.LEVEL)
    reach = quantile * error
    most = highest - lowest
    low, high = intervals.around(difference, reach, (-most, most))
    return Interval(low, high, p=p, standard_error=error)


def _why_no_interval(rows: Rows, kind: str) -> str:
    """Why no difference of a group is compared, or ''."""
    return too_few(rows) or coverage.withheld(kind, rows.n_cases, rows.rarer_cases)


def _with_ends(rows: Rows, statistic: Statistic) -> tuple[float, float, float]:
    """A group's value with a case of each end added, its variance, and its degrees of freedom."""
    values = statistic(rows)
    value = values[0]
    leaves = values[1:]
    worth = statistic.worth(rows)
    error = intervals.jackknife_error(leaves)
    ends = statistic.ends(rows)
    middle, variance = intervals.with_ends(value, error, worth, ends)
    return middle, variance, worth + 1


def in_bands(numbers: Any, edges: Sequence[float]) -> pd.Series:
    """The band of each number between rising ``edges``: "below 18", "18 to below 40", "65 or more";
    :data:`UNSTATED` for NaN. ``ValueError``: edges that do not rise."""
    bins = [-np.inf, *edges, np.inf]
    names = []
    for low, high in pairwise(bins):
        names.append(f"{low:g} to below {high:g}")
    lowest = edges[0]
    highest = edges[-1]
    names[0] = f"below {lowest:g}"
    names[-1] = f"{highest:g} or more"
    bands: Any = pd.cut(numbers, bins, right=False, labels=names)
    with_unstated = bands.cat.add_categories(UNSTATED)
    return with_unstated.fillna(UNSTATED)
