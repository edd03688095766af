"""Shows a case at an information level."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from trustlab.records import LEVELS, Case, View

Show = Callable[[Case, int], View]
"""Makes what is shown of a case at a level: :func:`view`, or a changed way of telling, or the turns
of a consultation."""


def n_shown(n_total: int, level: int) -> int:
    """Number of statements shown: exactly one at 1 %, else ceil(level/100 x n_total). METHODS: Ren
    et al. 2026, section on the benchmark.

    ``ValueError`` for a level outside 1..100 or an empty case.
    """
    if not 1 <= level <= 100:
        raise ValueError(
            f"level is {level!r}; allowed are whole percentages from 1 to 100"
        )
    if n_total < 1:
        raise ValueError(f"n_total is {n_total}; a case needs at least one statement")
    return 1 if level == 1 else math.ceil(level * n_total / 100)


def view(case: Case, level: int) -> View:
    """The first statements of ``case``; a view at a higher level contains those at lower levels."""
    return View(case, level, case.statements[: n_shown(len(case.statements), level)])


def views(
    cases: Iterable[Case], levels: Sequence[int] = LEVELS, show: Show = view
) -> list[View]:
    """Views of every case at every level: cases in order, levels ascending; ``show`` makes each."""
    return [show(case, level) for case in cases for level in sorted(levels)]
