"""What every grader is: answers and cases in, a grade for each out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar, runtime_checkable

from trustlab.records import Case

Key = tuple[str | None, str, tuple[str, ...]]
T = TypeVar("T")


@dataclass(frozen=True)
class Grade:
    """1 right, 0 wrong, or ``None`` where the grader could not tell, with the reason in ``missing``."""

    correct: int | None
    missing: str = ""


@runtime_checkable
class Grader(Protocol):
    """Anything that can tell a right answer from a wrong one."""

    @property
    def name(self) -> str:
        """What tables call it."""
        ...

    def correct(self, answer: str | None, case: Case) -> int:
        """1 if ``answer`` is right for ``case``, else 0; ``None`` (unreadable) is 0. ``ValueError`` if it cannot be told."""
        ...

    def grade(self, answers: Sequence[str | None], cases: Sequence[Case]) -> list[Grade]:
        """A grade for each answer and its case, in order; each distinct answer to the same names is judged once."""
        ...


class OneByOne:
    """Adds :meth:`grade` to a grader whose ``correct`` needs nothing but the two names."""

    def correct(self, answer: str | None, case: Case) -> int:
        """1 or 0; ``None`` is 0."""
        raise NotImplementedError  # every rule has its own

    def grade(self, answers: Sequence[str | None], cases: Sequence[Case]) -> list[Grade]:
        """A grade for each answer and its case, in order; ``ValueError`` unless there are as many of each."""
        keys, distinct = distinct_pairs(answers, cases)
        found = {key: Grade(self.correct(answer, case)) for key, (answer, case) in distinct.items()}
        return [found[key] for key in keys]


def distinct_pairs(answers: Sequence[str | None], cases: Sequence[Case]) -> tuple[list[Key], dict[Key, tuple[str | None, Case]]]:
    """The key of each pair, and one pair for each key: the answer and the names that it is held against."""
    if len(answers) != len(cases):
        raise ValueError(f"each answer needs its case; received {len(answers)} answers and {len(cases)} cases")
    keys = [(answer, case.diagnosis, tuple(case.accepted)) for answer, case in zip(answers, cases, strict=True)]
    return keys, dict(zip(keys, zip(answers, cases, strict=True), strict=True))
