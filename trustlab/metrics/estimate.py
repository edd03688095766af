"""Measures a statistic with its interval, counts and reasons.

- A :class:`Statistic` gives its value in the sample first, then in every bootstrap draw, or without
  each of the cases, and says how its interval is made.
- :func:`estimate` is one line of a table, :func:`measure` many.
- :func:`across` and :func:`difference` make statistics of statistics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from trustlab.metrics import coverage, intervals
from trustlab.metrics.ties import numbers, tied
from trustlab.records import PRODUCTS

MAX_UNDEFINED = 0.1  # largest share of draws without a value under which an interval is still given
MIN_CASES = 12
"""Fewer cases than this give no interval: resampling three patients says nothing of a fourth."""
TOO_FEW = f"no interval: fewer than {MIN_CASES} cases"
UNDEFINED = f"no interval: undefined in more than {100 * MAX_UNDEFINED:.0f} % of the draws"
NO_LEAVES = "no interval: undefined without one of the cases"
ALIKE = 1e-12
"""Draws nearer to each other than this differ by rounding alone (times their size above 1)."""
MOST = 1 << 20
"""Weights of rows that are handled at once."""
NAN = float("nan")


def enough_cases(case_ids: ArrayLike) -> bool:
    """Whether ``case_ids`` (n,) name enough different cases for an interval."""
    return len(np.unique(np.asarray(case_ids))) >= MIN_CASES


@lru_cache(maxsize=4)
def _drawn(n_cases: int, n_draws: int, seed: int) -> np.ndarray:
    """How often each case is in each draw, (n_cases, n_draws)."""
    times = np.zeros((n_cases, n_draws))
    if n_cases:
        rng, chances = np.random.default_rng(seed), np.full(n_cases, 1 / n_cases)
        times[:] = rng.multinomial(n_cases, chances, size=n_draws).T
    times.flags.writeable = False  # it is shared
    return times


@dataclass(frozen=True)
class Draws:
    """The cases (C,) that are resampled, sorted, each once, and how often (C, draws) each is in a
    draw."""

    cases: np.ndarray
    times: np.ndarray

    @cached_property
    def index(self) -> pd.Index:
        """The cases, to look up the place of one."""
        return pd.Index(self.cases, dtype=object if self.cases.dtype.kind in "OUT" else None)

    @classmethod
    def of(cls, case_ids: ArrayLike, n_draws: int = 2000, seed: int = 0) -> Draws:
        """The draws of these cases (n,), by their set and the seed, whatever the rows' order."""
        if n_draws < 0:
            raise ValueError(f"n_draws must be at least 0; received {n_draws}")
        cases = np.unique(np.asarray(case_ids))
        return cls(cases, _drawn(len(cases), n_draws, seed))


@dataclass(frozen=True, eq=False)
class Rows:
    """What is measured together: rows of a table, those with a value and those without.

    - ``asked``: a row for each thing that should have a value, with ``case_id`` and what a
      statistic reads; maybe ``missing`` (why none), ``bound``, ``failed`` and ``ungraded``.
    - ``known`` (len(asked),): which of them have a value; all others count as missing.
    - ``draws``: of the cases, the same for all that is compared.
    - ``none``: why there is no value where no row has one (default: the commonest ``missing``).
    - ``reference``: the same rows as something else judged them, for :func:`difference`.
    """

    asked: pd.DataFrame
    known: np.ndarray
    draws: Draws
    none: str = ""
    reference: Rows | None = None

    @classmethod
    def of(
        cls,
        asked: pd.DataFrame,
        column: str,
        n_draws: int | Draws = 2000,
        seed: int = 0,
        none: str = "",
    ) -> Rows:
        """The rows of ``asked`` with a value in ``column``, in draws of its cases or these."""
        known = asked[column].notna().to_numpy()
        if not isinstance(n_draws, Draws):
            n_draws = Draws.of(asked.loc[known, "case_id"].to_numpy(), n_draws, seed)
        return cls(asked, known, n_draws, none)

    @cached_property
    def table(self) -> Any:
        """The n rows that have a value."""
        return self.asked[self.known]

    @cached_property
    def _places(self) -> np.ndarray:
        """The place of each asked row's case among those drawn, -1 where it is not."""
        return self.draws.index.get_indexer(self.all("case_id"))

    @cached_property
    def _ranked(self) -> np.ndarray:
        """The confidences of all asked rows with near-ties made ties, before parts are cut out."""
        product = self.has("method") and bool(PRODUCTS & set(self.all("method")))
        return tied(self.all("confidence"), product)

    @cached_property
    def case(self) -> np.ndarray:
        """The place of each row's case among those drawn, (n,); ``ValueError`` where it is not."""
        place = self._places[self.known]
        if (place < 0).any():
            raise ValueError(f"case {self['case_id'][place.argmin()]!r} was not drawn")
        return place

    @cached_property
    def _made(self) -> dict[Any, Any]:
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
        return int(np.count_nonzero(np.bincount(self.case)))

    @cached_property
    def rarer(self) -> int:
        """How many answers are of the rarer kind, right or wrong; with a reference the fewer."""
        right = int(self["correct"].sum())
        mine = min(right, len(self) - right)
        return mine if self.reference is None else min(mine, self.reference.rarer)

    @cached_property
    def rarer_cases(self) -> int:
        """How many cases have an answer of the rarer kind; all cases where none is right or wrong.
        With a reference the fewer."""
        if not self.has("correct"):
            return self.n_cases
        right = self["correct"] > 0
        each = [len(np.unique(self.case[answers])) for answers in (right, ~right)]
        return min(each if self.reference is None else [*each, self.reference.rarer_cases])

    @cached_property
    def sample(self) -> Rows:
        """The same rows without draws, for what is not resampled."""
        part = self.at(np.ones(len(self.known), bool))
        none = Draws(self.draws.cases, self.draws.times[:, :0])
        part.__dict__["draws"] = none
        if part.reference is not None:
            part.reference.__dict__["draws"] = none
        return part

    @property
    def why(self) -> str:
        """Why no row has a value."""
        return self.none or f"no confidence: {most_frequent(self.asked[~self.known])}"

    @cached_property
    def notes(self) -> list[str]:
        """What a reader should know of these rows: bounds among them, answers not had."""
        marks = self["bound"] if self.has("bound") else []
        bounds = sum(bool(mark) for mark in marks if pd.notna(mark))
        found = [f"{bounds} of {len(self)} confidences are bounds"] if bounds else []
        for column, word in (("failed", "missing"), ("ungraded", "ungraded")):
            lost = int(np.sum(self.all(column))) if self.has(column) else 0
            if lost:
                found.append(f"{lost} answer{'s' if lost > 1 else ''} {word}")
        return found

    def has(self, column: str) -> bool:
        """Whether the rows have such a column."""
        return column in self.asked

    def at(self, keep: np.ndarray) -> Rows:
        """The rows of ``asked`` where ``keep`` (len(asked),) is true, in the same draws."""
        reference = None if self.reference is None else self.reference.at(keep)
        part = replace(self, asked=self.asked[keep], known=self.known[keep], reference=reference)
        part.__dict__["_places"] = self._places[keep]
        if self.has("confidence"):
            part.__dict__["_ranked"] = self._ranked[keep]
        return part

    def by(self, column: str) -> dict[Any, Rows]:
        """The rows of each value of a column, ascending; made once."""
        if column not in self._made:
            values = self.all(column)
            self._made[column] = {v: self.at(values == v) for v in np.unique(values)}
        return self._made[column]

    def where(self, column: str, wanted: Sequence[Any]) -> Rows:
        """The rows whose ``column`` has one of these values."""
        return self.at(np.isin(self.all(column), list(wanted)))

    def drawn(self, statistic: Values) -> np.ndarray:
        """The statistic of these rows, made once: (..., 1 + draws)."""
        if statistic not in self._made:
            self._made[statistic] = statistic(self)
        return self._made[statistic]

    def total(self, values: ArrayLike) -> np.ndarray:
        """The sum of ``values`` (n,) in the sample and in every draw, (1 + draws,)."""
        each = np.bincount(self.case, np.asarray(values, dtype=np.float64), len(self.draws.cases))
        return np.append(each.sum(), each @ self.draws.times)

    def mean(self, values: ArrayLike) -> np.ndarray:
        """The mean of ``values`` (n,) in the sample and in every draw, (1 + draws,)."""
        count = self.drawn(_count)
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.total(values) / count

    def over(self, weighted: Callable[[np.ndarray], Any]) -> np.ndarray:
        """``weighted`` of how often each row is in the sample and in each draw, (..., 1 + draws).
        It takes weights (B, n), some draws at a time, and gives (..., B), or a tuple of (B,)."""
        times, made = self.draws.times, [weighted(np.ones((1, len(self))))]
        for some in np.array_split(times, 1 + times.shape[1] * len(self) // MOST, axis=1):
            made.append(weighted(some[self.case].T))
        return np.concatenate([np.asarray(part) for part in made], axis=-1)


class Interval(NamedTuple):
    """The ends of an interval, or why there is none; p and standard error of a difference."""

    low: float = NAN
    high: float = NAN
    missing: str = ""
    p: float = NAN
    standard_error: float = NAN


Values = Callable[[Rows], np.ndarray]
"""Rows -> (1 + R,): the value in the sample, then in every draw, or without each of the cases."""
Maker = Callable[[np.ndarray, Rows], Interval]
"""What :data:`Values` gave of rows, and the rows -> their interval."""


def by_draws(values: np.ndarray, rows: Rows) -> Interval:
    """The percentile bootstrap over cases: the middle 95 % of the draws; p by Student's t of the
    value by the standard deviation of the draws."""
    if len(values) < 2:
        return Interval(missing="no draws")
    low, high, why = bounded_interval(values[1:])
    if why:
        return Interval(missing=why)
    error = float(np.nanstd(values[1:], ddof=1))
    p = intervals.student_p(float(values[0]), error, rows.n_cases - 1)
    return Interval(low, high, "", p, error)


def by_jackknife(values: np.ndarray, rows: Rows) -> Interval:
    """The jackknife over cases of a statistic of pairs in [0, 1], with a case of 0 and one of 1
    added to the cases of the rarer outcome."""
    return _with_extremes(values, rows.rarer_cases, (0.0, 1.0))


def by_jackknife_of_mean(values: np.ndarray, rows: Rows) -> Interval:
    """The same of a mean of numbers in [0, 1], where every case counts."""
    return _with_extremes(values, rows.n_cases, (0.0, 1.0))


def by_opposed_jackknife(values: np.ndarray, rows: Rows) -> Interval:
    """The same of a difference of two, with cases of -1 and 1; p with one against it."""
    made = _with_extremes(values, rows.rarer_cases, (-1.0, 1.0))
    p = intervals.opposed_p(float(values[0]), made.standard_error, rows.rarer_cases)
    return made if made.missing else made._replace(p=p)


def _with_extremes(values: np.ndarray, n: int, ends: tuple[float, float]) -> Interval:
    if np.isnan(values).any():
        return Interval(missing=NO_LEAVES)
    error = intervals.jackknife_error(values[1:])
    low, high = intervals.with_extremes(float(values[0]), error, n, ends)
    return Interval(low, high, standard_error=error)


def no_interval(values: np.ndarray, rows: Rows) -> Interval:
    """None: no way of making one is known that holds for every truth."""
    return Interval(missing=coverage.NOT_HELD)


@dataclass(frozen=True, eq=False)
class Statistic:
    """A number of rows, and how its interval is made.

    - ``values``: :data:`Values`.
    - ``kind``: of its interval; it is printed from the size on that :mod:`.coverage` knows.
    - ``interval``: makes it; only :func:`by_draws` reads draws.
    - ``of_difference``: makes that of a :func:`difference`.
    """

    values: Values
    kind: str = ""
    interval: Maker = by_draws
    of_difference: Maker = by_draws

    def __call__(self, rows: Rows) -> np.ndarray:
        """The :data:`Values` of rows."""
        return self.values(rows)


def ratio(
    column: str, of: str = "", *, kind: str = "share", unit: float = 1.0, kish: bool = False
) -> Statistic:
    """The sum of a column by that of column ``of`` (default: by the number of rows), a share.
    It has Agresti and Coull's interval, by :func:`.intervals.effective_n`, or with ``kish`` by
    :func:`.intervals.kish_n`; value and ends are ``unit`` times the share."""

    def sides(rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        hits = rows[column].astype(np.float64)
        return hits, rows[of].astype(np.float64) if of else np.ones(len(rows))

    def values(rows: Rows) -> np.ndarray:
        hits, counts = (rows.total(each) for each in sides(rows))
        with np.errstate(divide="ignore", invalid="ignore"):
            return unit * hits / counts

    def interval(found: np.ndarray, rows: Rows) -> Interval:
        hits, counts = (np.bincount(rows.case, each) for each in sides(rows))
        hits, counts = hits[counts > 0], counts[counts > 0]
        if len(counts) < MIN_CASES:
            return Interval(missing=TOO_FEW)
        n = intervals.kish_n(counts) if kish else intervals.effective_n(hits, counts)
        low, high = intervals.agresti_coull(float(found[0]) / unit, n, len(counts))
        return Interval(unit * low, unit * high)

    return Statistic(values, kind, interval)


def _count(rows: Rows) -> np.ndarray:
    return rows.total(np.ones(len(rows)))


def most_frequent(lost: Any) -> str:
    """The commonest reason in ``missing`` of these rows, the first by name among equals."""
    if not len(lost):
        return "no row in the table"
    if "missing" not in lost:
        return "no reason given"
    reasons = lost["missing"].astype(object).fillna("")
    counts = Counter(str(reason) or "no reason given" for reason in reasons)
    return max(sorted(counts), key=counts.__getitem__)


@lru_cache
def mean(column: str) -> Statistic:
    """The mean of a column of any numbers; see :func:`rate` and :func:`mean_share`."""
    return Statistic(lambda rows: rows.mean(rows[column].astype(np.float64)), "mean")


@lru_cache
def mean_share(column: str) -> Statistic:
    """The mean of a column of numbers in [0, 1], such as probabilities."""
    return bounded_mean(lambda rows: rows[column].astype(np.float64), "mean of shares")


def bounded_mean(numbers_of: Callable[[Rows], np.ndarray], kind: str) -> Statistic:
    """The mean of a number in [0, 1] of each row, then that without each case."""

    def values(rows: Rows) -> np.ndarray:
        case, numbers = np.unique(rows.case, return_inverse=True)[1], numbers_of(rows)
        total, n = (np.bincount(case, each) for each in (numbers, np.ones(len(rows))))
        with np.errstate(divide="ignore", invalid="ignore"):
            leaves = (total.sum() - total) / (n.sum() - n)
        return np.append(numbers.mean(), leaves)

    return Statistic(values, kind, by_jackknife_of_mean, no_interval)


@lru_cache
def rate(column: str) -> Statistic:
    """The share of rows that have 1, not 0, in a column."""
    return ratio(column)


def across(correlation: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Statistic:
    """A correlation (B, levels), (B, levels) -> (B,) of accuracy and mean confidence by level."""

    def values(rows: Rows) -> np.ndarray:
        parts = [part for part in rows.by("level").values() if len(part)]
        sides = (np.array([[p[of].mean() for p in parts]]) for of in ("correct", "confidence"))
        return correlation(*sides)

    return Statistic(values, "", no_interval, no_interval)


def difference(statistic: Statistic) -> Statistic:
    """A statistic of the rows less that of their reference, in the same draws or cases."""

    def values(rows: Rows) -> np.ndarray:
        assert rows.reference is not None, "these rows have no reference"
        return rows.drawn(statistic) - rows.reference.drawn(statistic)

    return Statistic(values, f"difference of {statistic.kind}", statistic.of_difference)


def at_least(least: int) -> Callable[[Rows], str]:
    """Why a ranking is withheld: fewer than ``least`` (and at least 1) right or wrong answers."""
    few = max(least, 1)
    return lambda rows: f"fewer than {few} correct or wrong" if rows.rarer < few else ""


@dataclass(frozen=True)
class Metric:
    """A statistic and what is said of it.

    - ``withheld``: the reason why rows are not measured, or ''.
    - ``undefined``: why the sample's value is NaN.
    """

    statistic: Statistic
    withheld: Callable[[Rows], str] = lambda rows: ""
    undefined: str = "undefined"


def estimate(
    rows: Rows, metric: Metric | Statistic, *, note: str = "", test: bool = False
) -> dict[str, Any]:
    """One line of a table: value, interval, counts and the reason for what is missing.

    - Keys: value low high n n_cases n_missing missing; ``n_rarer`` where rows have ``correct``.
    - ``low`` and ``high``: :func:`interval_of`.
    - ``note`` is in ``missing`` whether or not there is a value.
    - ``test``: also ``p`` (two-sided, of the value being 0) and ``standard_error``.
    """
    made = metric if isinstance(metric, Metric) else Metric(metric)
    reasons = [note] if note else []
    n_asked = len(rows.known)
    value, interval = NAN, Interval()
    if not len(rows) and (n_asked or rows.none):
        reasons = [rows.why]
    elif why := made.withheld(rows):
        reasons = [why]
    elif not len(rows):
        reasons = [rows.why]
    else:
        value, interval = interval_of(rows, made.statistic)
        reasons.append(made.undefined if np.isnan(value) else interval.missing)
    line: dict[str, Any] = {"value": value, "low": interval.low, "high": interval.high}
    if test:
        line |= {"p": interval.p, "standard_error": interval.standard_error}
    line |= {"n": len(rows), "n_cases": rows.n_cases, "n_missing": n_asked - len(rows)}
    line |= {"n_rarer": rows.rarer} if rows.has("correct") else {}
    return line | {"missing": "; ".join(filter(None, reasons + rows.notes))}


def interval_of(rows: Rows, statistic: Statistic) -> tuple[float, Interval]:
    """The value of a statistic, and its interval where intervals of its kind hold.
    Whether one is printed depends on the kind, on the number of cases and on that of the rarer
    outcome (:func:`.coverage.withheld`), never on the value."""
    resampled = statistic.interval is by_draws
    values = (rows if resampled else rows.sample).drawn(statistic)
    value = float(values[0])
    if np.isnan(value):
        return value, Interval()
    why = "" if enough_cases(rows.case) else TOO_FEW
    if statistic.interval is not no_interval:
        why = why or coverage.withheld(statistic.kind, rows.n_cases, rows.rarer_cases)
    return value, Interval(missing=why) if why else statistic.interval(values, rows)


def share(rows: Rows, column: str, wanted: Any = True, *, note: str = "") -> dict[str, Any]:
    """:func:`estimate` of the share of rows whose ``column`` is ``wanted``: ``n_hits`` of them."""
    hits = rows.asked.assign(hit=rows.asked[column] == wanted)
    found = estimate(replace(rows, asked=hits), rate("hit"), note=note)
    return found | {"n_hits": int(np.sum(rows[column] == wanted))}


Labelled = Iterable[tuple[dict[str, Any], Rows]]  # what a line is about (its keys), and its rows


def measure(
    labelled: Labelled, metrics: Mapping[str, Metric | Statistic], *, test: bool = False
) -> Iterator[dict[str, Any]]:
    """A line for each of the labelled rows and each metric: its keys, ``metric``, its estimate."""
    for label, rows in labelled:
        for name, metric in metrics.items():
            yield {**label, "metric": name, **estimate(rows, metric, test=test)}


def groups(table: pd.DataFrame, by: Sequence[str]) -> Iterator[tuple[dict[str, Any], Any]]:
    """Each group's keys and its rows, in the table's order; one group without keys."""
    parts: Any = table.groupby(list(by), sort=False, observed=True, dropna=False) if by else ()
    for key, part in parts if by else [((), table)]:
        yield dict(zip(by, key, strict=True)), part


def grouped(table: pd.DataFrame, by: Sequence[str], column: str, **how: Any) -> Labelled:
    """The rows of each group of ``by``, in the table's order; ``how``: as in :meth:`Rows.of`."""
    for label, part in groups(table, by):
        yield label, Rows.of(part, column, **how)


def percentile_interval(draws: ArrayLike) -> tuple[float, float]:
    """(low, high) of the middle 95 % of the draws (B,); NaN where more than 10 % are undefined.
    ``ValueError`` for no draws or infinite ones."""
    values = checked_draws(draws)
    known = values[~np.isnan(values)]
    if len(values) - len(known) > MAX_UNDEFINED * len(values):
        return NAN, NAN
    low, high = np.quantile(known, [0.025, 0.975])
    return float(low), float(high)


def bounded_interval(draws: ArrayLike) -> tuple[float, float, str]:
    """(low, high, missing): :func:`percentile_interval`, or NaN twice and why there is none.
    None where more than 10 % of the draws are undefined, or where the middle draws are all alike.
    Raises as :func:`percentile_interval`."""
    values = checked_draws(draws)
    low, high = percentile_interval(values)
    if np.isnan(low):
        return NAN, NAN, UNDEFINED
    if all_alike(np.array([low, high])):
        every = "all" if all_alike(values[~np.isnan(values)]) else "nearly all"
        return NAN, NAN, f"no interval: {every} draws alike"
    return low, high, ""


def all_alike(values: np.ndarray) -> bool:
    """Whether the finite values (n,) are one and the same up to rounding; so are none."""
    return len(values) == 0 or bool(np.ptp(values) <= ALIKE * max(1.0, float(np.abs(values).max())))


def checked_draws(draws: ArrayLike) -> np.ndarray:
    """``draws`` as an array (B,); ``ValueError`` for none, other shapes, or infinite ones."""
    values = numbers("draws", draws, missing=True)
    if not len(values):
        raise ValueError("draws must be (B,) with B at least 1; received none")
    return values
