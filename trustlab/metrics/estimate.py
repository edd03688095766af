"""Measures a statistic with its interval, counts and reasons.

- A :class:`Statistic` gives its value in the sample first, then without each of the cases, and says
  between which ends it lies; that makes its interval.
- :func:`estimate` is one line of a table, :func:`measure` many.
- :func:`across` and :func:`difference` make statistics of statistics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from trustlab.metrics import coverage, intervals
from trustlab.metrics.intervals import Span
from trustlab.metrics.ties import ArrayPair, tied
from trustlab.records import PRODUCTS

MIN_CASES = 12
"""Fewer cases than this give no interval: three patients say nothing of a fourth."""
TOO_FEW = f"no interval: fewer than {MIN_CASES} cases"
ALIKE = 1e-12
"""Values nearer to each other than this differ by rounding alone (times their size above 1)."""
NAN = float("nan")
NO_REASON = "no reason given"
Line = dict[str, Any]  # a line of a table, or its keys: column -> value


@dataclass(frozen=True, eq=False)
class Rows:
    """What is measured together: rows of a table, those with a value and those without.

    - ``asked``: a row for each thing that should have a value, with ``case_id`` and what a
      statistic reads; maybe ``missing`` (why none), ``bound``, ``failed`` and ``ungraded``.
    - ``known`` (len(asked),): which of them have a value; all others count as missing.
    - ``none``: why there is no value where no row has one (default: the commonest ``missing``).
    - ``reference``: the same rows as something else judged them, for :func:`difference`.
    """

    asked: pd.DataFrame
    known: np.ndarray
    none: str = ""
    reference: Rows | None = None

    @classmethod
    def of(cls, table: pd.DataFrame, column: str, none: str = "") -> Rows:
        """The rows of ``table`` with a value in ``column``."""
        return cls(table, table[column].notna().to_numpy(), none=none)

    @cached_property
    def table(self) -> Any:
        """The n rows that have a value."""
        return self.asked[self.known]

    @cached_property
    def _cases(self) -> np.ndarray:
        """A number for the case of each asked row."""
        return pd.factorize(self.all("case_id"))[0]

    @cached_property
    def _ranked(self) -> np.ndarray:
        """The confidences of all asked rows with near-ties made ties, before parts are cut out."""
        is_product = False
        if self.has("method"):
            is_product = not PRODUCTS.isdisjoint(self.all("method"))
        return tied(self.all("confidence"), is_product)

    @cached_property
    def case(self) -> np.ndarray:
        """The case of each row that has a value, a number from 0 without gaps, (n,)."""
        return np.unique(self._cases[self.known], return_inverse=True)[1]

    @cached_property
    def _parts(self) -> dict[str, dict[Any, Rows]]:
        return {}

    def __len__(self) -> int:
        return int(np.count_nonzero(self.known))

    def __getitem__(self, column: str) -> np.ndarray:
        """A column of the rows that have a value, (n,)."""
        return self.all(column)[self.known]

    @property
    def ranked(self) -> np.ndarray:
        """The confidences, (n,), near-ties of the whole that these are a part of made ties."""
        return self._ranked[self.known]

    def all(self, column: str) -> np.ndarray:
        """A column of all rows that were asked for, (len(asked),)."""
        return self.asked[column].to_numpy()

    @cached_property
    def n_cases(self) -> int:
        """Different cases among the rows that have a value."""
        return int(self.case.max(initial=-1)) + 1

    @cached_property
    def rarer(self) -> int:
        """How many answers are of the rarer kind, right or wrong; with a reference the fewer."""
        n_right = int(self["correct"].sum())
        n_rarer = min(n_right, len(self) - n_right)
        if self.reference is None:
            return n_rarer
        return min(n_rarer, self.reference.rarer)

    @cached_property
    def rarer_cases(self) -> int:
        """How many cases have an answer of the rarer kind; all cases where none is right or wrong.
        With a reference the fewer."""
        if not self.has("correct"):
            return self.n_cases
        is_right = self["correct"] > 0
        n_with_right = len(np.unique(self.case[is_right]))
        n_with_wrong = len(np.unique(self.case[~is_right]))
        n_rarer = min(n_with_right, n_with_wrong)
        if self.reference is None:
            return n_rarer
        return min(n_rarer, self.reference.rarer_cases)

    @cached_property
    def rarer_worth(self) -> float:
        """Effective number of cases behind the answers of the rarer kind.
        Their number by the answers a case, at least 2 and at most :attr:`rarer_cases`: a case with
        one slip is not worth one whose answers are all wrong. All cases where none is right or
        wrong; with a reference the fewer."""
        if not self.has("correct"):
            return float(self.n_cases)
        worth = self.rarer * self.n_cases / len(self)
        return min(max(worth, 2.0), float(self.rarer_cases))

    @property
    def mixed_levels(self) -> list[Any]:
        """The levels that have right and wrong answers."""
        return [level for level, part in self.by("level").items() if part.rarer]

    @property
    def why(self) -> str:
        """Why no row has a value."""
        if self.none:
            return self.none
        lost = self.asked[~self.known]
        return f"no confidence: {most_frequent(lost)}"

    @cached_property
    def notes(self) -> list[str]:
        """What a reader should know of these rows: bounds among them, answers not had."""
        notes = []
        if self.has("bound"):
            n_bounds = sum(bool(mark) for mark in self["bound"] if pd.notna(mark))
            if n_bounds:
                notes.append(f"{n_bounds} of {len(self)} confidences are bounds")
        for column, word in (("failed", "missing"), ("ungraded", "ungraded")):
            n_lost = 0
            if self.has(column):
                n_lost = int(np.sum(self.all(column)))
            if n_lost:
                answers = "answer" if n_lost == 1 else "answers"
                notes.append(f"{n_lost} {answers} {word}")
        return notes

    def has(self, column: str) -> bool:
        """Whether the rows have such a column."""
        return column in self.asked

    def at(self, keep: np.ndarray) -> Rows:
        """The rows of ``asked`` where ``keep`` (len(asked),) is true."""
        reference = None
        if self.reference is not None:
            reference = self.reference.at(keep)
        part = replace(
            self, asked=self.asked[keep], known=self.known[keep], reference=reference
        )
        part.__dict__["_cases"] = self._cases[keep]
        if self.has("confidence"):
            part.__dict__["_ranked"] = self._ranked[keep]
        return part

    def by(self, column: str) -> dict[Any, Rows]:
        """The rows of each value of a column, ascending; made once."""
        if column not in self._parts:
            values = self.all(column)
            parts = {value: self.at(values == value) for value in np.unique(values)}
            self._parts[column] = parts
        return self._parts[column]

    def where(self, column: str, wanted: Sequence[Any]) -> Rows:
        """The rows whose ``column`` has one of these values."""
        return self.at(np.isin(self.all(column), list(wanted)))

    def total(self, values: ArrayLike) -> np.ndarray:
        """The sum of ``values`` (n,), then that without each case, (1 + cases,)."""
        weights = np.asarray(values, dtype=np.float64)
        by_case = np.bincount(self.case, weights, self.n_cases)
        return np.append(0.0, -by_case) + by_case.sum()

    def mean(self, values: ArrayLike) -> np.ndarray:
        """The mean of ``values`` (n,), then that without each case, (1 + cases,)."""
        count = self.total(np.ones(len(self)))
        return quotient(self.total(values), count)


def quotient(total: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Totals by counts, element by element; NaN where there is nothing to count."""
    return total / np.where(count > 0, count, NAN)


def level_means(rows: Rows, column: str) -> list[float]:
    """The mean of a column at each level that has a value, by ascending level."""
    parts = rows.by("level").values()
    return [float(part[column].mean()) for part in parts if len(part)]


class Interval(NamedTuple):
    """The ends of an interval, or why there is none; p and standard error of a difference."""

    low: float = NAN
    high: float = NAN
    missing: str = ""
    p: float = NAN
    standard_error: float = NAN


Values = Callable[[Rows], np.ndarray]
"""Rows -> (..., 1 + cases): the value, then that without each case. Without an interval the value
alone is enough, (1,)."""
Ends = Callable[[Rows], Span]
"""Rows -> the lowest and the highest value that a statistic can have."""
Maker = Callable[[np.ndarray, Rows], Interval]
"""What :data:`Values` gave of rows, and the rows -> their interval."""


def between(low: float, high: float) -> Ends:
    """The same ends for all rows."""
    return lambda rows: (low, high)


@dataclass(frozen=True, eq=False)
class Statistic:
    """A number of rows, and how its interval is made.

    - ``values``: :data:`Values`.
    - ``kind``: of its interval; it is printed from the size on that :mod:`.coverage` knows, and ''
      never.
    - ``ends``: between which the statistic lies.
    - ``interval``: makes it otherwise than by the jackknife with a case of each end added.
    - ``worth``: how many cases stand behind it, in that jackknife.
    - ``compares``: it is a difference, which has a p.
    - ``far``: its ends are far from all that occurs; a difference of it has the farthest case seen
      at each end.
    - ``error_factor``: by which the jackknife's standard error is too small.
    """

    values: Values
    kind: str = ""
    ends: Ends = between(0.0, 1.0)
    interval: Maker | None = None
    worth: Callable[[Rows], float] = lambda rows: rows.n_cases
    compares: bool = False
    far: bool = False
    error_factor: float = 1.0

    def __call__(self, rows: Rows) -> np.ndarray:
        """The :data:`Values` of rows."""
        return self.values(rows)


def jackknife(statistic: Statistic, values: np.ndarray, rows: Rows) -> Interval:
    """The interval of ``values``, (1 + cases,), with a case of each end added; of a difference also
    p, with one case against it. A value that is undefined without a case counts as the end that is
    farther away."""
    low, high = statistic.ends(rows)
    value = float(values[0])
    worth = statistic.worth(rows)
    farther = high
    if value - low > high - value:
        farther = low
    leaves = np.nan_to_num(values[1:], nan=farther)
    error = statistic.error_factor * intervals.jackknife_error(leaves)
    ends = intervals.with_extremes(value, error, worth, (low, high))
    p = NAN
    if statistic.compares:
        largest = high or 1.0  # 0 where the two are 0 in all cases
        p = intervals.opposed_p(value / largest, error / largest, worth)
    return Interval(*ends, p=p, standard_error=error)


def ratio(
    column: str,
    of: str = "",
    *,
    kind: str = "share",
    unit: float = 1.0,
    uneven: bool = False,
) -> Statistic:
    """The sum of a column by that of column ``of`` (default: by the number of rows), a share.
    It has Agresti and Coull's interval, of :func:`.intervals.effective_n` answers; ``uneven``:
    cases have more or fewer of them. Value and ends are ``unit``
    times the share."""

    def sides(rows: Rows) -> ArrayPair:
        hits = rows[column].astype(np.float64)
        counts = np.ones(len(rows))
        if of:
            counts = rows[of].astype(np.float64)
        return hits, counts

    def values(rows: Rows) -> np.ndarray:
        hits, counts = sides(rows)
        return quotient(unit * rows.total(hits), rows.total(counts))

    def interval(values: np.ndarray, rows: Rows) -> Interval:
        hits, counts = sides(rows)
        hits_by_case = np.bincount(rows.case, hits)
        counts_by_case = np.bincount(rows.case, counts)
        is_counted = counts_by_case > 0
        n_cases = int(is_counted.sum())
        if n_cases < MIN_CASES:
            return Interval(missing=TOO_FEW)
        n = intervals.effective_n(
            hits_by_case[is_counted], counts_by_case[is_counted], uneven
        )
        low, high = intervals.agresti_coull(float(values[0]) / unit, n, n_cases)
        return Interval(unit * low, unit * high)

    return Statistic(values, kind, between(0.0, unit), interval)


def most_frequent(lost: Any) -> str:
    """The commonest reason in ``missing`` of these rows, the first by name among equals."""
    if not len(lost):
        return "no row in the table"
    if "missing" not in lost:
        return NO_REASON
    reasons = lost["missing"].astype(object).fillna("")
    commonest = reasons.replace("", NO_REASON).mode()
    return str(commonest.iloc[0])


def mean(column: str) -> Statistic:
    """The mean of a column of any numbers. It has no interval: none holds however far the farthest
    lie. See :func:`rate`, :func:`mean_share` and :func:`mean_between`."""
    return Statistic(lambda rows: rows.mean(rows[column]))


def mean_share(column: str) -> Statistic:
    """The mean of a column of numbers in [0, 1], such as probabilities."""
    return Statistic(lambda rows: rows.mean(rows[column]), "mean")


def mean_between(column: str, least: str, most: str) -> Statistic:
    """The mean of a column whose numbers lie between those of two others in each row."""

    def ends(rows: Rows) -> Span:
        lowest = rows[least].min()
        highest = rows[most].max()
        return float(lowest), float(highest)

    return Statistic(lambda rows: rows.mean(rows[column]), "mean", ends)


def rate(column: str) -> Statistic:
    """The share of rows that have 1, not 0, in a column."""
    return ratio(column)


def across(correlation: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Statistic:
    """A correlation (B, levels), (B, levels) -> (B,) of accuracy and mean confidence by level."""

    def values(rows: Rows) -> np.ndarray:
        accuracies = np.array([level_means(rows, "correct")])
        confidences = np.array([level_means(rows, "confidence")])
        return correlation(accuracies, confidences)

    return Statistic(values)


def difference(statistic: Statistic) -> Statistic:
    """A statistic of the rows less that of their reference, of the same rows of the same cases."""

    def values(rows: Rows) -> np.ndarray:
        return statistic(rows) - statistic(reference_rows(rows))

    def ends(rows: Rows) -> Span:
        if statistic.far:
            return farthest(values(rows))
        low, high = statistic.ends(rows)
        reference_low, reference_high = statistic.ends(reference_rows(rows))
        lowest = min(low, reference_low)
        highest = max(high, reference_high)
        return lowest - highest, highest - lowest

    kind = ""
    if statistic.kind:
        kind = f"difference of {statistic.kind}"
    return Statistic(
        values,
        kind,
        ends,
        worth=statistic.worth,
        compares=True,
        error_factor=statistic.error_factor,
    )


def reference_rows(rows: Rows) -> Rows:
    """The reference of rows that have one."""
    assert rows.reference is not None, "these rows have no reference"
    return rows.reference


def farthest(values: np.ndarray) -> Span:
    """Ends of a difference: as far below and above 0 as the largest pseudo-value of a case, of
    ``values``, (1 + cases,)."""
    value = values[0]
    changes = value - values[1:]
    pseudo_values = value + (len(values) - 2) * changes
    sizes = np.abs(pseudo_values)
    largest = float(np.nanmax(sizes, initial=0.0))
    return -largest, largest


def at_least(least: int) -> Callable[[Rows], str]:
    """Why a ranking is withheld: fewer than ``least`` (and at least 1) right or wrong answers."""
    needed = max(least, 1)

    def too_few(rows: Rows) -> str:
        if rows.rarer < needed:
            return f"fewer than {needed} correct or wrong"
        return ""

    return too_few


@dataclass(frozen=True)
class Metric:
    """A statistic, and the reasons for which a table has no value of it.

    - ``withheld``: the reason why rows are not measured, or ''.
    - ``undefined``: why the sample's value is NaN.
    """

    statistic: Statistic
    withheld: Callable[[Rows], str] = lambda rows: ""
    undefined: str = "undefined"


def estimate(
    rows: Rows, metric: Metric | Statistic, *, note: str = "", test: bool = False
) -> Line:
    """One line of a table: value, interval, counts and the reason for what is missing.

    - Keys: value low high n n_cases n_missing missing; ``n_rarer`` where rows have ``correct``.
    - ``low`` and ``high``: :func:`interval_of`.
    - ``note`` is in ``missing`` whether or not there is a value.
    - ``test``: also ``p`` (two-sided, of the value being 0) and ``standard_error``.
    """
    if isinstance(metric, Statistic):
        metric = Metric(metric)
    n = len(rows)
    value = NAN
    interval = Interval()
    reasons = [_why_no_value(rows, metric)]
    if not reasons[0]:
        value, interval = interval_of(rows, metric.statistic)
        reason = interval.missing
        if np.isnan(value):
            reason = metric.undefined
        reasons = [note, reason]
    line: Line = {"value": value, "low": interval.low, "high": interval.high}
    if test:
        line |= {"p": interval.p, "standard_error": interval.standard_error}
    line |= {"n": n, "n_cases": rows.n_cases, "n_missing": len(rows.known) - n}
    if rows.has("correct"):
        line["n_rarer"] = rows.rarer
    line["missing"] = "; ".join(filter(None, reasons + rows.notes))
    return line


def _why_no_value(rows: Rows, metric: Metric) -> str:
    """Why a metric is not computed of rows, or ''."""
    has_reason = len(rows.known) > 0 or rows.none != ""
    if not len(rows) and has_reason:
        return rows.why
    withheld = metric.withheld(rows)
    if withheld or len(rows):
        return withheld
    return rows.why


def interval_of(rows: Rows, statistic: Statistic) -> tuple[float, Interval]:
    """The value of a statistic, and its interval where intervals of its kind hold.
    Whether one is printed depends on the kind, on the number of cases and on that of the rarer
    outcome (:func:`.coverage.withheld`), never on the value."""
    values = statistic(rows)
    value = float(values[0])
    if np.isnan(value):
        return value, Interval()
    reason = _why_no_interval(rows, statistic)
    if reason:
        return value, Interval(missing=reason)
    if statistic.interval is not None:
        return value, statistic.interval(values, rows)
    return value, jackknife(statistic, values, rows)


def _why_no_interval(rows: Rows, statistic: Statistic) -> str:
    """Why no interval of a statistic is printed, or ''."""
    if rows.n_cases < MIN_CASES:
        return TOO_FEW
    if not statistic.kind:
        return coverage.NOT_HELD
    return coverage.withheld(statistic.kind, rows.n_cases, rows.rarer_cases)


def share(rows: Rows, column: str, wanted: Any = True) -> Line:
    """:func:`estimate` of the share of rows whose ``column`` is ``wanted``: ``n_hits`` of them."""
    is_hit = rows.asked[column] == wanted
    table = rows.asked.assign(hit=is_hit)
    with_hits = replace(rows, asked=table)
    line = estimate(with_hits, rate("hit"))
    line["n_hits"] = int(is_hit[rows.known].sum())
    return line


Labelled = Iterable[tuple[Line, Rows]]  # what a line is about (its keys), and its rows


def measure(
    labelled: Labelled, metrics: Mapping[str, Metric | Statistic]
) -> Iterator[Line]:
    """A line for each of the labelled rows and each metric: its keys, ``metric``, its estimate."""
    for label, rows in labelled:
        for name, metric in metrics.items():
            yield {**label, "metric": name, **estimate(rows, metric)}


def groups(table: pd.DataFrame, by: Sequence[str]) -> Iterator[tuple[Line, Any]]:
    """Each group's keys and its rows, in the table's order; one group without keys."""
    if not by:
        yield {}, table
        return
    parts: Any = table.groupby(list(by), sort=False, observed=True, dropna=False)
    for key, part in parts:
        yield dict(zip(by, key, strict=True)), part


def grouped(
    table: pd.DataFrame, by: Sequence[str], column: str, none: str = ""
) -> Labelled:
    """The rows of each group of ``by``, in the table's order; ``none``: as in :class:`Rows`."""
    for label, part in groups(table, by):
        yield label, Rows.of(part, column, none)


def all_alike(values: np.ndarray) -> bool:
    """Whether the finite values (n,) are one and the same up to rounding; so are none."""
    if len(values) == 0:
        return True
    largest = float(np.abs(values).max())
    return bool(np.ptp(values) <= ALIKE * max(1.0, largest))
