"""The differential diagnosis that the knowledge table implies, and how flat it is.

Naive Bayes over the table's conditions: a rough view of our own table, no clinician's and no model's. It says how hard a
view of a case is in the small world that the table describes, and nothing about patients.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trustlab.knowledge import Finding, Knowledge
from trustlab.records import Statement

STRATA = ("clear", "middle", "flat")


def differential(statements: Sequence[Statement], knowledge: Knowledge) -> dict[str, float]:
    """Condition id -> probability, summing to 1, most probable first: prior x chance of each finding told.

    A finding affirmed counts with its graded chance in the condition (``background`` where the condition does not list it), a
    denied one with 1 less that chance; each finding once, as first told; findings count as independent. Follow-ups ("where
    does it hurt?") and values are left out: the table grades them in another way. Age and sex are left out: no statement
    need tell them. Raises ``ValueError`` where no statement carries a finding that counts.
    """
    told = _told(statements, knowledge)
    if not told:
        raise ValueError(f"none of {len(statements)} statements carries a finding of the knowledge table")
    weights = {
        c.id: math.log(c.prior) + sum(_log_chance(c.findings.get(f.id, f.background), yes) for f, yes in told)
        for c in knowledge.conditions.values()
    }
    top = max(weights.values())
    unscaled = {name: math.exp(weight - top) for name, weight in weights.items()}
    total = sum(unscaled.values())
    return {name: unscaled[name] / total for name in sorted(unscaled, key=lambda n: -unscaled[n])}


def flatness(probabilities: dict[str, float]) -> float:
    """Entropy of a differential in nats: 0 where one condition is certain, log(n) where n are equally probable."""
    return -sum(p * math.log(p) for p in probabilities.values() if p > 0)


@dataclass(frozen=True)
class Strata:
    """Groups of flatness, cut at given points: at most ``low`` nats is "clear", at most ``high`` "middle", above it "flat"."""

    low: float
    high: float

    def of(self, value: float) -> str | None:
        """The stratum of a flatness; ``None`` for NaN."""
        if math.isnan(value):
            return None
        return STRATA[(value > self.low) + (value > self.high)]

    def describe(self, stratum: str) -> str:
        """The stratum with its cut points, in nats."""
        words = {
            "clear": f"up to {self.low:.2f}",
            "middle": f"{self.low:.2f} to {self.high:.2f}",
            "flat": f"above {self.high:.2f}",
        }
        if stratum not in words:
            raise ValueError(f"stratum is {stratum!r}; allowed are {', '.join(STRATA)}")
        return f"{stratum} ({words[stratum]} nats)"


def tertiles(values: Sequence[float]) -> Strata:
    """The strata whose cut points are the tertiles of ``values`` (NaN left out); ``ValueError`` for fewer than three."""
    known = [v for v in values if not math.isnan(v)]
    if len(known) < len(STRATA):
        raise ValueError(f"tertiles need at least {len(STRATA)} values; received {len(known)}")
    low, high = np.quantile(known, [1 / 3, 2 / 3])
    return Strata(float(low), float(high))


def _told(statements: Sequence[Statement], knowledge: Knowledge) -> list[tuple[Finding, bool]]:
    """Each finding that counts, once, with whether it was affirmed when first told."""
    found: dict[str, tuple[Finding, bool]] = {}
    for s in statements:
        finding = knowledge.findings.get(s.finding or "")
        if finding and s.affirmed is not None and finding.parent is None and finding.form == "binary":
            found.setdefault(finding.id, (finding, s.affirmed))
    return list(found.values())


def _log_chance(chance: float, affirmed: bool) -> float:
    return math.log(chance if affirmed else 1 - chance)
