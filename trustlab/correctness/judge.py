"""The grader that asks a model whether two names mean the same disease."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from trustlab.correctness.base import Grade, distinct_pairs
from trustlab.correctness.names import names_of
from trustlab.correctness.rules import by_rule
from trustlab.knowledge import Knowledge, load_knowledge
from trustlab.models.base import Model, Request
from trustlab.models.cache import CachedModel
from trustlab.parsing import no_answer, true_or_false
from trustlab.prompts import render
from trustlab.records import Case, Reply

MAX_TOKENS = 16
SHOWN = 60
"""Characters of an unreadable reply that its reason repeats."""


class JudgeGrader:
    """Right when a model says that the answer and the true diagnosis are one disease; the model is asked greedily, once.

    The prompt ``judge`` shows the true names and the answer and nothing of the patient. What the rules settle is not asked:
    a true name is right; no single diagnosis, an option's letter, more than 200 characters, and a true name with another
    qualifier, degree or kind ("viral pneumonia" for "pneumonia", "mild A" for "severe A") are wrong.
    A reply other than the one word True or False, one that was cut off, and a call that failed leave
    the answer ungraded, never wrong. ``cache``: the SQLite file that keeps the replies (memory where
    ``None``; a ``CachedModel`` keeps its own).
    """

    def __init__(
        self, model: Model, *, cache: str | Path | None = None, knowledge: Knowledge | None = None, seed: int = 0
    ) -> None:
        self.model = model if isinstance(model, CachedModel) else CachedModel(model, cache)
        self.knowledge, self.seed = knowledge, seed

    @property
    def name(self) -> str:
        """What tables call it: with the model, since two judges are two graders."""
        return f"judge {self.model.name}"

    def correct(self, answer: str | None, case: Case) -> int:
        """1 or 0; ``None`` is 0. ``ValueError`` with the reason where the judge gave no verdict."""
        grade = self.grade([answer], [case])[0]
        if grade.correct is None:
            raise ValueError(f"{answer!r} could not be graded: {grade.missing}")
        return grade.correct

    def grade(self, answers: Sequence[str | None], cases: Sequence[Case]) -> list[Grade]:
        """A grade for each answer and its case, in order; all distinct questions are put together."""
        keys, distinct = distinct_pairs(answers, cases)
        found: dict = {}
        asked: dict = {}
        for key, (answer, case) in distinct.items():
            names = names_of(case, self.knowledge or load_knowledge())
            if (ruled := by_rule(answer, names)) is not None:
                found[key] = ruled
            else:
                asked[key] = judge_request(str(answer), names, self.seed)
        replies = self.model.generate(list(asked.values())) if asked else []
        found |= {key: _verdict(row[0]) for key, row in zip(asked, replies, strict=True)}
        return [found[key] for key in keys]


def judge_request(answer: str, names: Sequence[str], seed: int = 0) -> Request:
    """What a judge is asked: whether ``answer`` is the disease that ``names`` name."""
    messages = render("judge", truth="\n".join(names), proposed=answer)
    return Request(messages, max_tokens=MAX_TOKENS, seed=seed, purpose="judge")


def _verdict(reply: Reply) -> Grade:
    if why := no_answer(reply):
        return Grade(None, f"the judge gave no reply: {why}")
    same = true_or_false(reply.text)
    if same is None:
        said = " ".join(str(reply.text).split())
        return Grade(None, f"the judge's reply is not the one word True or False: {said[:SHOWN]!r}")
    return Grade(int(same))
