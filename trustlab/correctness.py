"""Graders: is an answer the patient's diagnosis? Each has a name for tables and says 1 or 0, never "unsure"."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from trustlab.knowledge import Knowledge, load_knowledge, normalise
from trustlab.records import Case

ARTICLES = ("a ", "an ", "the ")


@runtime_checkable
class Grader(Protocol):
    """Anything that can tell a right answer from a wrong one."""

    @property
    def name(self) -> str:
        """What tables call it."""
        ...

    def correct(self, answer: str | None, case: Case) -> int:
        """1 if ``answer`` is right for ``case``, else 0; ``None`` (unreadable) is 0."""
        ...


@dataclass(frozen=True)
class ExactGrader:
    """Right when the answer is the case's own name of the diagnosis, without case, punctuation, spacing and article."""

    name = "exact"

    def correct(self, answer: str | None, case: Case) -> int:
        """1 or 0; ``None`` is 0."""
        return int(bool(_spellings(answer or "") & _spellings(case.diagnosis)))


@dataclass(frozen=True)
class SynonymGrader:
    """Right when the answer is one of ``case.accepted``, or names the same condition of the knowledge table.

    Names are compared without case, punctuation, spacing and a leading article, and otherwise whole: neither "acute"
    nor an abbreviation in brackets is taken off. ``knowledge`` is the shipped table unless given.
    """

    knowledge: Knowledge | None = None
    name = "synonym"

    def correct(self, answer: str | None, case: Case) -> int:
        """1 or 0; ``None`` is 0."""
        said = _spellings(answer or "")
        accepted = set().union(*map(_spellings, (case.diagnosis, *case.accepted)))
        return int(bool(said & accepted or self._conditions(said) & self._conditions(accepted)))

    def _conditions(self, names: set[str]) -> set[str]:
        knowledge = self.knowledge or load_knowledge()
        found = [knowledge.condition_named(name) for name in names]
        return {condition.id for condition in found if condition is not None}


GRADERS: Mapping[str, Callable[[], Grader]] = {"synonym": SynonymGrader, "exact": ExactGrader}
"""Graders that need nothing but the package, by name."""


def _spellings(name: str) -> set[str]:
    """The normalised name, and it without a leading article; both, since "A fib" begins with none."""
    plain = unicodedata.normalize("NFKC", name).strip()
    article = next((a for a in ARTICLES if plain.casefold().startswith(a)), "")
    return {normalise(plain), normalise(plain[len(article) :])} - {""}
