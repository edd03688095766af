"""Asks whether answers are right as often, and confidences as honest, for one group of patients as
for another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import stdtr, stdtrit

from trustlab.metrics import coverage, intervals, schema
from trustlab.metrics.calibration import CALIBRATION, ece_by_chance
from trustlab.metrics.discrimination import STRATIFIED
from trustlab.metrics.estimate import (
    NAN,
    Interval,
    Line,
    Metric,
    Rows,
    Statistic,
    between,
    estimate,
    rate,
)
from trustlab.metrics.paired import RUN
from trustlab.metrics.run_tables import BAND, CHANCE, rows_of_methods
from trustlab.metrics.significance import holm

MIN_CASES = 10
"""Cases of a group with a right answer, and with a wrong one, below which it has no values."""
UNSTATED = "not stated"
"""The group of the cases of which it is not known."""
COLUMNS = [*RUN, "method", "by", "group", "against"]


def _overconfidence(rows: Rows) -> np.ndarray:
    return rows.mean(rows["confidence"] - rows["correct"])


ACCURACY = {"accuracy": rate("correct")}
RANKED = {"auroc": STRATIFIED["auroc"]}
GAP = "confidence_minus_accuracy"
PROBABLE = {GAP: Statistic(_overconfidence, "mean", between(-1.0, 1.0))}
"""What is compared of the answers, of every method, and of one that is meant as a chance."""
MEASURES = ACCURACY | PROBABLE | RANKED


def group_table(
    answers: pd.DataFrame,
    confidence: pd.DataFrame,
    scales: Mapping[str, str],
    by: str,
    against: str = "",
) -> pd.DataFrame:
    """Each measure in each group of cases, and its difference from the group ``against``.

    - ``answers`` has a column ``group``, alike in all answers of a case (:data:`UNSTATED`: not
      known), by name or in the order of its categories; ``by`` says what it is. ``against``:
      default the largest group.
    - A row a model, data set, method, measure and group. Of the answers (method '') "accuracy"; of
      a method level-stratified "auroc"; where ``scales`` (method -> scale) says 'probability' also
      mean confidence minus accuracy, and "ece" with what chance gives.
    - ``against`` '': the ``value`` with its interval. Else its difference from that group's, with
      :func:`welch`; never of ECE, which is larger in a small group by chance alone.
    - ``p_holm``: Holm over all differences of a model and data set.
    - Withheld below :data:`MIN_CASES` cases with a right, or with a wrong answer.
    - ``ValueError``: ``against`` is no group; as :func:`.rows_of_methods`.
    """
    names = list(pd.Categorical(answers["group"]).categories)
    if against and against not in names:
        raise ValueError(f"against is {against!r}; the groups are {names}")
    lines: list[Line] = []
    references: dict[tuple[str, str], str] = {}
    for label, rows in rows_of_methods(answers, confidence):
        run = (label["model"], label["dataset"])
        method = label["method"]
        parts = rows.by("group")
        groups = {name: parts[name] for name in names if name in parts}
        if not method:
            references[run] = against or _largest(groups)
        measures = ACCURACY
        if method:
            measures = RANKED
            if scales.get(method) == "probability":
                measures = PROBABLE | RANKED
                lines.extend({**label, "by": by, **line} for line in _errors(groups))
        for name, statistic in measures.items():
            for line in _compared(groups, name, statistic, references[run]):
                lines.append({**label, "by": by, "metric": name, **line})
    more = ["reference", "difference", "p", "p_holm", "standard_error", "own_rows"]
    table = schema.table(lines, COLUMNS, [*more, "n_rarer", *CHANCE])
    p_values = table.groupby(RUN, sort=False)["p"]
    return table.assign(p_holm=p_values.transform(holm))


def _largest(groups: Mapping[str, Rows]) -> str:
    """The group with the most cases among those that have values, the first by name of equal
    ones; '' where none has."""
    largest = ""
    n_most = 0
    for name, rows in groups.items():
        if name != UNSTATED and not too_few(rows) and rows.n_cases > n_most:
            largest = name
            n_most = rows.n_cases
    return largest


def too_few(rows: Rows) -> str:
    """Why a group has no values, or ''."""
    if rows.rarer_cases < MIN_CASES:
        return f"fewer than {MIN_CASES} cases with right answers, or with wrong ones"
    return ""


def _errors(groups: Mapping[str, Rows]) -> Iterator[Line]:
    """ECE of each group, beside that of the same confidences were they calibrated."""
    metric = Metric(CALIBRATION["ece"].statistic, too_few)
    for group, rows in groups.items():
        line = {
            "group": group,
            "against": "",
            "metric": "ece",
            **estimate(rows, metric),
        }
        if not too_few(rows):
            band = ece_by_chance(rows["correct"], rows["confidence"], rows.case)
            line |= dict(zip(BAND, band, strict=True))
        yield line


def _compared(
    groups: Mapping[str, Rows], name: str, statistic: Statistic, against: str
) -> Iterator[Line]:
    """A measure in each group, and its differences from the group ``against``."""
    parts = {}
    for group, rows in groups.items():
        parts[group] = comparable(rows, name)
    values = {}
    for group, rows in parts.items():
        line = estimate(rows, Metric(statistic, too_few))
        values[group] = line["value"]
        yield {"group": group, "against": "", **line}
    for group, rows in parts.items():
        if group == against:
            continue
        change = Interval(missing=_why_not_compared(group, against, parts))
        if not change.missing:
            change = welch(rows, parts[against], name)
        reference = values.get(against, NAN)
        yield {
            "group": group,
            "against": against or "no group has values",
            "value": values[group],
            "reference": reference,
            "difference": values[group] - reference,
            **change._asdict(),
            "n": len(rows),
            "n_cases": rows.n_cases,
            "n_rarer": rows.rarer,
            "n_missing": len(rows.asked) - len(rows),
        }


def comparable(rows: Rows, measure: str) -> Rows:
    """The answers that a measure reads: for AUROC, of the levels that have right and wrong ones."""
    if measure not in RANKED or not len(rows):
        return rows
    levels = rows.by("level")
    mixed = [level for level, part in levels.items() if part.rarer]
    return rows.where("level", mixed)


def _why_not_compared(group: str, against: str, parts: Mapping[str, Rows]) -> str:
    """Why a group is not compared with another, or ''."""
    if group == UNSTATED:
        return "no difference: the group of these cases is not known"
    for name in (group, against):
        if name in parts and not too_few(parts[name]):
            continue
        reason = too_few(parts[name]) if name in parts else "no answer"
        return f"no difference: {name or 'every group'} has {reason}"
    return ""


class Side(NamedTuple):
    """A group's value with a case of each end added: middle, its variance, degrees of freedom."""

    middle: float
    variance: float
    degrees: float


def welch(rows: Rows, reference: Rows, measure: str) -> Interval:
    """Welch's t of a measure of :data:`MEASURES` in two groups of different cases.

    - On what each case adds (its jackknife pseudo-value; of an accuracy its own), with a case of
      either end added to each group: of accuracies that is Agresti & Caffo's (2000).
    - Of AUROC as many cases count as stand behind it (:attr:`.Rows.rarer_worth`).
    - Without an interval and p where none of this kind holds (:mod:`.coverage`).
    """
    statistic = MEASURES[measure]
    n_cases = min(rows.n_cases, reference.n_cases)
    n_rarer = min(rows.rarer_cases, reference.rarer_cases)
    missing = coverage.withheld(f"{measure} by group", n_cases, n_rarer)
    if missing:
        return Interval(missing=missing)
    lowest, highest = statistic.ends(rows)
    mine = _side(rows, statistic)
    other = _side(reference, statistic)
    variance = mine.variance + other.variance
    shares = [side.variance**2 / side.degrees for side in (mine, other)]
    degrees = variance**2 / sum(shares)
    error = float(np.sqrt(variance))
    difference = mine.middle - other.middle
    reach = stdtrit(degrees, intervals.LEVEL) * error
    p = 2 * stdtr(degrees, -abs(difference) / error)
    low = max(difference - reach, lowest - highest)
    high = min(difference + reach, highest - lowest)
    return Interval(float(low), float(high), p=float(p), standard_error=error)


def _side(rows: Rows, statistic: Statistic) -> Side:
    values = statistic(rows)
    error = intervals.jackknife_error(values[1:])
    worth = statistic.worth(rows)
    middle, variance = intervals.with_ends(
        float(values[0]), error, worth, statistic.ends(rows)
    )
    return Side(middle, variance, worth + 1)


def in_bands(
    numbers: Sequence[Any] | pd.Series, edges: Sequence[float]
) -> pd.Categorical:
    """The band of each number between rising ``edges``: "below 18", "18 to below 40", "65 or more";
    :data:`UNSTATED` for NaN. ``ValueError``: edges that do not rise."""
    ends = [float(edge) for edge in edges]
    if not ends or not np.all(np.diff(ends) > 0) or not np.all(np.isfinite(ends)):
        raise ValueError(f"edges must be one or more rising numbers; received {edges}")
    names = [f"below {ends[0]:g}"]
    for low, high in zip(ends[:-1], ends[1:], strict=True):
        names.append(f"{low:g} to below {high:g}")
    names.append(f"{ends[-1]:g} or more")
    values = np.asarray(numbers, dtype=float)
    places = np.digitize(values, ends)
    bands = []
    for value, place in zip(values, places, strict=True):
        bands.append(UNSTATED if np.isnan(value) else names[place])
    present = [name for name in [*names, UNSTATED] if name in bands]
    return pd.Categorical(bands, present)
