"""What a loader gives back: the cases, and an account of everything that did not become one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from trustlab.datasets.giveaway import names_its_diagnosis
from trustlab.records import Case

NAMED = "cases whose text names their diagnosis"
"""A history, a question or a denial may do that: such a case is kept, and easier than it looks."""
N_NAMED = 5
"""How many of the dropped entries are named for each reason."""


@dataclass(frozen=True)
class Read:
    """What a loader made of a file.

    ``cases`` are in file order and may be made only when looked at. ``n_entries`` counts the rows, dialogues or questions
    read; ``dropped`` says which of them became no case (row numbers or ids) by reason.
    ``counts`` are the loader's further counts, by what they count.
    """

    cases: Sequence[Case]
    n_entries: int
    dropped: Mapping[str, Sequence[str]] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def facts(self) -> dict[str, int]:
        """``counts``, and how many cases name their diagnosis. Every case is made and looked at."""
        return {**self.counts, NAMED: sum(map(names_its_diagnosis, self.cases))}

    @property
    def losses(self) -> list[str]:
        """What was dropped, a line for each reason with the number of entries and the first of them."""
        return [
            f"{reason}: {len(entries):,} ({', '.join(entries[:N_NAMED])}{', ...' * (len(entries) > N_NAMED)})"
            for reason, entries in self.dropped.items()
        ]
