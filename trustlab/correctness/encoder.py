"""The grader that asks a sentence encoder whether two names are alike, after the rules have had their say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from trustlab.correctness.base import Grade, distinct_pairs
from trustlab.correctness.kinds import bare_name, comparable
from trustlab.correctness.names import names_of, readings
from trustlab.correctness.rules import by_rule
from trustlab.knowledge import Knowledge, load_knowledge
from trustlab.records import Case
from trustlab.semantics import Encoder

THRESHOLD = 0.80
DECIMALS = 3
"""Cosines are rounded to these before they are compared: they move by 1e-7 with the batch."""


@dataclass(frozen=True)
class EncoderGrader:
    """Right when the answer's cosine with one of the true names is ``threshold`` or more, where no rule forbids it.

    First the rules: what the synonym grader calls right is right; what is no single diagnosis is wrong; so is a name that the
    knowledge table gives to another condition; so is one whose words are more or fewer than those of any true name. Cosine
    decides between names without a clash of qualifiers which have either no word in common or every word, where a misspelt
    word is close in letters (ratio of ``difflib`` of 0.85 or more: otitis and ottitis, not otitis and otitisitis).

    The default threshold was chosen on the knowledge table's own names, with the packaged all-MiniLM-L6-v2 and without the rule
    about the table: each name stood for an answer, held against its condition's other names and against every other
    condition. 0.80 is the smallest multiple of 0.05 at which no (name, other condition) pair of 22,656 is called the same; at
    0.75, 7 are. It finds 47 of the 336 names that are not already spelt alike (14 %): it forgives words turned round and
    slips of the pen, and is no medical dictionary. Another encoder needs a threshold of its own.
    """

    encoder: Encoder = field(default_factory=Encoder)
    threshold: float = THRESHOLD
    knowledge: Knowledge | None = None
    name = "encoder"

    def __post_init__(self) -> None:
        if not 0 < self.threshold <= 1:
            raise ValueError(f"threshold must lie above 0 and not above 1; received {self.threshold}")

    def correct(self, answer: str | None, case: Case) -> int:
        """1 or 0; ``None`` is 0."""
        return int(self.grade([answer], [case])[0].correct == 1)

    def grade(self, answers: Sequence[str | None], cases: Sequence[Case]) -> list[Grade]:
        """A grade for each answer and its case, in order; all distinct names are encoded together."""
        knowledge = self.knowledge or load_knowledge()
        keys, distinct = distinct_pairs(answers, cases)
        found: dict = {}
        to_compare: dict = {}
        for key, (answer, case) in distinct.items():
            names = names_of(case, knowledge)
            if (ruled := by_rule(answer, names)) is not None:
                found[key] = ruled
            elif _in_table(str(answer), knowledge) and any(_in_table(name, knowledge) for name in names):
                found[key] = Grade(0)  # the table knows both, and as two conditions
            else:
                to_compare[key] = bare_name(str(answer)), [bare_name(n) for n in comparable(str(answer), names)]
        texts = list(dict.fromkeys(text for said, true in to_compare.values() for text in (said, *true)))
        vectors = dict(zip(texts, self.encoder.encode(texts).astype(np.float64), strict=True)) if texts else {}
        for key, (said, true) in to_compare.items():
            best = max((float(vectors[said] @ vectors[name]) for name in true), default=-1.0)
            found[key] = Grade(int(round(best, DECIMALS) >= self.threshold))
        return [found[key] for key in keys]


def _in_table(name: str, knowledge: Knowledge) -> bool:
    return any(knowledge.condition_named(key) is not None for key, _ in readings(name))
