"""Decides which intervals are printed: those that hold what they promise.

``python -m benchmarks.intervals`` writes ``coverage.csv``: a row a kind of interval, law and number
of clustered cases, with the share of intervals that hold the truth.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

LEAST = 0.90
"""Share of the intervals that must hold the truth, in every law."""
LEAST_HOLM = 0.94
"""Share of the families of equal methods in which Holm's correction must find no difference."""
FILE = Path(__file__).with_name("coverage.csv")
PAGE = "(docs/coverage.md)"
NOT_HELD = f"no interval: none of its kind holds for every truth {PAGE}"


class Size(NamedTuple):
    """From how many cases on a kind is printed (infinity: never), and from how many cases with an
    answer of the rarer outcome."""

    n_cases: float
    rarer: int


def holds(table: pd.DataFrame) -> Any:
    """Which rows of a table of coverages hold: in all samples, and, up to one standard error, in
    those in which the interval is printed; Holm's correction up to one standard error. A row
    without any interval says nothing against it."""
    is_holm = table["kind"].str.startswith("Holm")
    least = is_holm.map({True: LEAST_HOLM, False: LEAST})
    error = table["standard_error"]
    in_all_samples = table["coverage"] + error.where(is_holm, 0)
    where_printed = table["coverage_printed"] + error
    fails = in_all_samples.lt(least) | where_printed.lt(least)
    return ~fails


@cache
def sizes() -> dict[str, Size]:
    """Kind -> from which :class:`Size` on all laws hold, at every larger size simulated."""
    table: Any = pd.read_csv(FILE)
    table["holds"] = holds(table)
    by_kind = {}
    for kind, part in table.groupby("kind"):
        failing = part.loc[~part["holds"], "n_cases"]
        is_small = part["n_cases"].le(failing.max())
        sizes_left = part.loc[~is_small, "n_cases"]
        first = float("inf")
        if len(sizes_left):
            first = float(sizes_left.min())
        by_kind[str(kind)] = Size(first, int(part["rarer"].max()))
    return by_kind


def withheld(kind: str, n_cases: int, rarer: int) -> str:
    """Why an interval of this kind is not printed, or ''.
    By its design alone: ``n_cases``, and how many of them have an answer of the ``rarer`` outcome,
    right or wrong. A kind that was not simulated is not printed."""
    size = sizes().get(kind)
    if size is None:
        return f"no interval: {kind or 'this kind'} was not simulated {PAGE}"
    if n_cases < size.n_cases:
        if size.n_cases == float("inf"):
            return NOT_HELD
        return f"no interval: it holds from {size.n_cases:.0f} cases on {PAGE}"
    if rarer < size.rarer:
        return f"no interval: fewer than {size.rarer} cases with right answers, or with wrong ones"
    return ""
