"""Holds a run in tables: answers, grades, and every method's confidence."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from trustlab.confidence import Method, select
from trustlab.models.base import Model
from trustlab.records import UNNAMED, Case, Generation, Grader, View
from trustlab.runs.collect import collect

_KEYS = {"case_id": "string", "dataset": "string", "level": "int64", "model": "string"}
ANSWERS = _KEYS | {
    "answer": "string", "truth": "string", "correct": "float64", "n_statements": "int64",
    "n_words": "int64", "n_samples": "float64", "missing": "string",
}  # fmt: skip
CONFIDENCE = _KEYS | {
    "method": "string", "confidence": "float64", "bound": "string", "missing": "string",
}  # fmt: skip
"""The columns of the two tables, and their types."""


@dataclass(frozen=True)
class Run:
    """The tables of one benchmark, each tidy (one row for each observation), and what made them.

    - ``answers`` and ``confidence`` have the columns :data:`ANSWERS` and :data:`CONFIDENCE`;
      ``calls`` has one row for each request. An answer that the backend failed to give is neither
      right nor wrong, and ``missing`` says why.
    - ``generations``: the records themselves; empty for a large run. ``folder``: where the run was
      saved, with every reply.
    """

    answers: pd.DataFrame
    confidence: pd.DataFrame
    calls: pd.DataFrame
    parameters: dict[str, Any]
    generations: tuple[Generation, ...] = field(default=(), repr=False)
    folder: Path | None = field(default=None, repr=False, compare=False)

    @property
    def methods(self) -> list[str]:
        """The requested methods, in order; if the run has only tables, the methods in them."""
        return list(self.parameters.get("methods") or self.confidence["method"].unique())

    @cached_property
    def families(self) -> dict[str, str]:
        """Method -> family, for the methods of this run."""
        return {m.name: m.family for m in select(self.methods)} if self.methods else {}


def ask(
    model: Model, views: Sequence[View], methods: Sequence[Method], grader: Grader, **how: Any
) -> Run:
    """The benchmark of one model at its plainest: no cache, no folder, no second process.
    ``how``: as :func:`trustlab.runs.collect.collect`."""
    made = collect(model, views, methods, **how)
    answers = pd.DataFrame(answer_rows(views, made, grader), columns=list(ANSWERS))
    facts = {"models": {model.name: model.revision}, "methods": [m.name for m in methods]}
    scored = confidence_table(views, made, methods)
    return Run(answers, scored, pd.DataFrame(), facts, tuple(made))


def given_once(cases: Sequence[Case], models: Sequence[Model], levels: Sequence[int]) -> None:
    """``ValueError`` unless there is at least one of each, and none twice."""
    names = {"case": [c.case_id for c in cases], "model": [m.name for m in models], "level": levels}
    for what, keys in names.items():
        if len(keys) == 0:
            raise ValueError(f"no {what}s; at least one is needed")
        if again := [str(key) for key, n in Counter(keys).items() if n > 1]:
            raise ValueError(f"each {what} may be given once; given again: {', '.join(again)}")


def answer_rows(
    views: Sequence[View], generations: Sequence[Generation], grader: Grader
) -> list[tuple]:
    """Rows of :data:`ANSWERS`. What the backend failed to give, or the grader could not judge, is
    neither right nor wrong."""
    said = [g.answer.text if g.answer else None for g in generations]
    grades, rows = grader.grade(said, [v.case for v in views]), []
    for v, g, answer, grade in zip(views, generations, said, grades, strict=True):
        lost = g.answer and answer is None and g.answer.missing not in UNNAMED
        failed = g.answer.missing if g.answer and lost else ""
        correct = math.nan if failed or grade.correct is None else grade.correct
        n_samples = None if g.samples is None else len(g.samples)
        asked = (g.case_id, v.case.dataset, g.level, g.model, answer, v.case.diagnosis, correct)
        rows.append((*asked, g.n_statements, g.n_words, n_samples, failed or grade.missing))
    return rows


def confidence_table(
    views: Sequence[View], generations: Sequence[Generation], methods: Sequence[Method]
) -> pd.DataFrame:
    """Every method on every generation."""
    rows = confidence_rows([v.case.dataset for v in views], generations, methods)
    return pd.DataFrame(rows, columns=list(CONFIDENCE))


def confidence_rows(
    datasets: Sequence[str], generations: Sequence[Generation], methods: Sequence[Method]
) -> list[tuple]:
    """The same as rows, of generations whose data sets are named."""
    rows = []
    for dataset, g in zip(datasets, generations, strict=True):
        for m in methods:
            e = m.evaluate(g)
            key = (g.case_id, dataset, g.level, g.model, m.name)
            rows.append((*key, e.confidence, e.bound, e.missing))
    return rows
