"""What a loader gives back: the cases, and an account of everything that did not become one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from trustlab.records import Case

N_NAMED = 5
"""How many of the dropped entries are named for each reason."""


@dataclass(frozen=True)
class Read:
    """What a loader made of a file.

    ``cases`` are in file order and may be made only when looked at. ``n_entries`` counts the rows, dialogues or questions
    read; ``dropped`` says which of them became no case (row numbers or ids) by reason. ``facts`` are further counts worth
    telling, by what they count.
    """

    cases: Sequence[Case]
    n_entries: int
    dropped: Mapping[str, Sequence[str]] = field(default_factory=dict)
    facts: Mapping[str, int] = field(default_factory=dict)

    @property
    def losses(self) -> list[str]:
        """What was dropped, a line for each reason with the number of entries and the first of them."""
        return [
            f"{reason}: {len(entries):,} ({', '.join(entries[:N_NAMED])}{', ...' * (len(entries) > N_NAMED)})"
            for reason, entries in self.dropped.items()
        ]
