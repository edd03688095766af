"""Holds a run in tables: answers, grades, and every method's confidence."""

from __future__ import annotations

import math
from collections import Counter, namedtuple
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from trustlab.confidence import Method
from trustlab.confidence.registry import families
from trustlab.models.base import Model
from trustlab.records import GROUP, UNNAMED, Case, Generation, Grader, View
from trustlab.runs.collect import answer_texts, collect

KEY_TYPES = {
    "case_id": "string",
    "dataset": "string",
    "level": "int64",
    "model": "string",
}
ANSWERS = KEY_TYPES | {
    "answer": "string", "truth": "string", "correct": "float64", "n_statements": "int64",
    "n_words": "int64", "n_samples": "float64", "missing": "string",
}  # fmt: skip
CONFIDENCE = KEY_TYPES | {
    "method": "string", "confidence": "float64", "bound": "string", "missing": "string",
}  # fmt: skip
"""The columns of the two tables, and their types."""
CASE = ["dataset", "case_id"]
FACTS = dict.fromkeys([*CASE, "fact", "value"], "string")
"""The columns of what a run keeps of its cases, and their types."""
AnswerRow = namedtuple("AnswerRow", ANSWERS)
ConfidenceRow = namedtuple("ConfidenceRow", CONFIDENCE)


@dataclass(frozen=True)
class Run:
    """The tables of one benchmark, each tidy (one row for each observation), and what made them.

    - ``answers`` and ``confidence`` have the columns :data:`ANSWERS` and :data:`CONFIDENCE`;
      ``calls`` has one row for each request. An answer that the backend failed to give is neither
      right nor wrong, and ``missing`` says why.
    - ``generations``: the records themselves; empty for a large run. ``folder``: where the run was
      saved, with every reply.
    - ``facts``: the :func:`case_facts` of its cases, with the columns :data:`FACTS`.
    """

    answers: pd.DataFrame
    confidence: pd.DataFrame
    calls: pd.DataFrame
    parameters: dict[str, Any]
    generations: tuple[Generation, ...] = field(default=(), repr=False)
    folder: Path | None = field(default=None, repr=False, compare=False)
    facts: pd.DataFrame = field(
        default_factory=lambda: pd.DataFrame(columns=list(FACTS)), repr=False
    )

    @property
    def methods(self) -> list[str]:
        """The requested methods, in order; if the run has only tables, the methods in them."""
        return list(
            self.parameters.get("methods") or self.confidence["method"].unique()
        )

    @cached_property
    def families(self) -> dict[str, str]:
        """Method -> family, for the methods of this run."""
        return families(self.methods)


def case_facts(cases: Iterable[Case]) -> list[tuple[str, str, str, str]]:
    """Rows of :data:`FACTS`: age, sex and a table's own groups (``group:NAME``) of each case."""
    rows = []
    for case in cases:
        for fact, value in case.patient.items():
            if fact in ("age", "sex") or fact.startswith(GROUP):
                row = (case.dataset, case.case_id, fact, str(value))
                rows.append(row)
    return list(dict.fromkeys(rows))


def ask(
    model: Model,
    views: Sequence[View],
    methods: Sequence[Method],
    grader: Grader,
    **how: Any,
) -> Run:
    """The benchmark of one model at its plainest: no cache, no folder, no second process.
    ``how``: as :func:`trustlab.runs.collect.collect`."""
    generations = collect(model, views, methods, **how)
    answers = pd.DataFrame(
        grade_answers(views, generations, grader), columns=list(ANSWERS)
    )
    confidence = confidence_table(views, generations, methods)
    names = [method.name for method in methods]
    facts = {"models": {model.name: model.revision}, "methods": names}
    return Run(answers, confidence, pd.DataFrame(), facts, tuple(generations))


def refuse_repeats(
    cases: Sequence[Case], models: Sequence[Model], levels: Sequence[int]
) -> None:
    """``ValueError`` unless there is at least one of each, and none twice."""
    names = {
        "case": [case.case_id for case in cases],
        "model": [model.name for model in models],
        "level": levels,
    }
    for what, keys in names.items():
        if len(keys) == 0:
            raise ValueError(f"no {what}s; at least one is needed")
        again = [str(key) for key, n in Counter(keys).items() if n > 1]
        if again:
            raise ValueError(
                f"each {what} may be given once; given again: {', '.join(again)}"
            )


def grade_answers(
    views: Sequence[View], generations: Sequence[Generation], grader: Grader
) -> list[AnswerRow]:
    """Rows of :data:`ANSWERS`. What the backend failed to give, or the grader could not judge, is
    neither right nor wrong."""
    texts = answer_texts(generations)
    grades = grader.grade(texts, [view.case for view in views])
    rows = []
    for view, generation, text, grade in zip(
        views, generations, texts, grades, strict=True
    ):
        why = ""
        if generation.answer and text is None:
            why = generation.answer.missing
        failed = "" if why in UNNAMED else why
        correct = grade.correct
        if failed or correct is None:
            correct = math.nan
        samples = generation.samples
        row = AnswerRow(
            case_id=generation.case_id,
            dataset=view.case.dataset,
            level=generation.level,
            model=generation.model,
            answer=text,
            truth=view.case.diagnosis,
            correct=correct,
            n_statements=generation.n_statements,
            n_words=generation.n_words,
            n_samples=None if samples is None else len(samples),
            missing=failed or grade.missing,
        )
        rows.append(row)
    return rows


def score_answers(
    datasets: Sequence[str],
    generations: Sequence[Generation],
    methods: Sequence[Method],
) -> list[ConfidenceRow]:
    """Rows of :data:`CONFIDENCE`: every method on every generation, whose data set is named."""
    rows = []
    for dataset, generation in zip(datasets, generations, strict=True):
        answer_key = (generation.case_id, dataset, generation.level, generation.model)
        for method in methods:
            score = method.evaluate(generation)
            row = ConfidenceRow(
                *answer_key, method.name, score.confidence, score.bound, score.missing
            )
            rows.append(row)
    return rows


def confidence_table(
    views: Sequence[View], generations: Sequence[Generation], methods: Sequence[Method]
) -> pd.DataFrame:
    """The scores as a table."""
    datasets = [view.case.dataset for view in views]
    rows = score_answers(datasets, generations, methods)
    return pd.DataFrame(rows, columns=list(CONFIDENCE))
