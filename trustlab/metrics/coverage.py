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
    of_holm = table["kind"].str.startswith("Holm")
    least = of_holm.map({True: LEAST_HOLM, False: LEAST})
    every = table["coverage"] + table["standard_error"].where(of_holm, 0)
    printed = table["coverage_printed"] + table["standard_error"]
    return ~(every.lt(least) | printed.lt(least))


@cache
def sizes() -> dict[str, Size]:
    """Kind -> from which :class:`Size` on all laws hold, at every larger size simulated."""
    table: Any = pd.read_csv(FILE)
    table["holds"] = holds(table)
    found = {}
    for kind, part in table.groupby("kind"):
        largest_failing = part.loc[~part["holds"], "n_cases"].max()
        sizes_left = part.loc[~part["n_cases"].le(largest_failing), "n_cases"]
        first = sizes_left.min() if len(sizes_left) else float("inf")
        found[str(kind)] = Size(float(first), int(part["rarer"].max()))
    return found


def withheld(kind: str, n_cases: int, rarer: int) -> str:
    """Why an interval of this kind is not printed, or ''.
    By its design alone: ``n_cases``, and how many of them have an answer of the ``rarer`` outcome,
    right or wrong. A kind that was not simulated is not printed."""
    size = sizes().get(kind)
    if size is None:
        return f"no interval: {kind or 'this kind'} was not simulated {PAGE}"
    if n_cases < size.n_cases:
        enough = f"it holds from {size.n_cases:.0f} cases on {PAGE}"
        return NOT_HELD if size.n_cases == float("inf") else f"no interval: {enough}"
    if rarer < size.rarer:
        return f"no interval: fewer than {size.rarer} cases with right answers, or with wrong ones"
    return ""
