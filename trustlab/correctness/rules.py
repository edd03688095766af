"""The graders that compare words alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trustlab.correctness.base import Grade, OneByOne
from trustlab.correctness.kinds import another_kind
from trustlab.correctness.names import is_named, names_of, no_diagnosis, spellings
from trustlab.knowledge import Knowledge, load_knowledge
from trustlab.records import Case


@dataclass(frozen=True)
class ExactGrader(OneByOne):
    """Right when the answer is the case's own name of the diagnosis, without case, punctuation, spacing and article."""

    name = "exact"

    def correct(self, answer: str | None, case: Case) -> int:
        """1 or 0; ``None`` is 0."""
        return int(bool(spellings(answer or "") & spellings(case.diagnosis)))


@dataclass(frozen=True)
class SynonymGrader(OneByOne):
    """Right when the answer is one of ``case.accepted``, or names the same condition of the knowledge table.

    Names are compared without case, punctuation, spacing, a leading article and words of certainty and degree, and
    otherwise whole: "acute" is not taken off.
    What else changes nothing: :func:`names.readings`. After a name, in brackets, may stand its abbreviation or another of its
    names. ``knowledge`` is the shipped table unless given.
    """

    knowledge: Knowledge | None = None
    name = "synonym"

    def correct(self, answer: str | None, case: Case) -> int:
        """1 or 0; ``None`` is 0."""
        return int(is_named(answer or "", names_of(case, self.knowledge or load_knowledge())))


def by_rule(answer: str | None, names: Sequence[str]) -> Grade | None:
    """What the rules alone say of an answer held against the true names; ``None`` where it takes a reader of meaning."""
    if answer is None:
        return Grade(0)
    if is_named(answer, names):
        return Grade(1)
    return Grade(0) if no_diagnosis(answer, names) or another_kind(answer, names) else None
