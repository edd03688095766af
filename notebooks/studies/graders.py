"""08: who says that an answer is right, and what another one would change."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pandas as pd

from trustlab.choices import choices
from trustlab.graders import Grader, open_grader
from trustlab.metrics.agreement import COUNTS, agreement
from trustlab.metrics.run_tables import KEYS
from trustlab.metrics.schema import need, table
from trustlab.records import Case
from trustlab.workbench import Workbench


@choices
class Asked(Workbench):
    """The choices of notebook 08."""

    UNUSED = ("doctor", "patient", "reviewer", "wording", "medical_proxy")


setup = Asked.of
RULES = ("exact", "synonym", "encoder")
"""Graders that need no model."""


def grade(answers: pd.DataFrame, grader: str | Grader, cases: Sequence[Case]) -> pd.DataFrame:
    """A run's answers graded anew: the same rows, a new ``correct``, and ``grader``, its name.

    - ``grader``: a name of :data:`RULES`, or an object such as ``JudgeGrader(model)``.
    - An answer that could not be graded has ``correct`` NaN and the reason in ``missing``; a failed
      answer stays as it is; an unreadable one is wrong.
    - ``ValueError`` for missing columns, a case that ``cases`` lacks, or another truth than its.
    """
    need(answers, [*KEYS, "answer", "truth", "correct", "missing"], "answers")
    judge = open_grader(grader)
    said = answers["answer"].astype(object).where(answers["answer"].notna(), None)
    held = _cases_of(answers, cases)
    at = np.flatnonzero(answers["answer"].notna() | answers["correct"].notna())
    grades = judge.grade([said.iloc[i] for i in at], [held[i] for i in at])
    correct = np.full(len(answers), np.nan)
    correct[at] = [np.nan if g.correct is None else g.correct for g in grades]
    why = answers["missing"].astype(object).fillna("").to_numpy(copy=True)
    why[at] = [g.missing if g.correct is None else "" for g in grades]
    if not np.isnan(correct).any():
        correct = correct.astype(int)
    return answers.assign(correct=correct, missing=why, grader=judge.name)


def verdicts(
    answers: pd.DataFrame, graders: Sequence[str | Grader], cases: Sequence[Case]
) -> tuple[pd.DataFrame, list[str]]:
    """The answers' keys, ``answer`` and ``truth`` with a column a grader, and their names.
    A grade is 1, 0 or NaN. ``ValueError`` for fewer than two graders or two of one name."""
    opened = [open_grader(g) for g in graders]
    names = [g.name for g in opened]
    if len(names) < 2 or len(set(names)) < len(names):
        raise ValueError(f"graders must be two or more, each with its own name; received {names}")
    graded = {g.name: grade(answers, g, cases)["correct"].astype(float) for g in opened}
    return answers[[*KEYS, "answer", "truth"]].assign(**graded), names


def agreement_table(graded: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """How far every two graders of :func:`verdicts` agree: Cohen's ``kappa``, ``agreement``,
    :data:`COUNTS`.
    Over cases, all models and levels of a case together. Unreadable answers are wrong to both."""
    ids = graded["dataset"].astype(str) + "\0" + graded["case_id"].astype(str)
    lines = [
        {"first": first, "second": second, **line}
        for first, second in combinations(names, 2)
        for line in agreement(graded[first], graded[second], ids)
    ]
    return table(lines, ["first", "second"], [*COUNTS])


def _cases_of(answers: pd.DataFrame, cases: Sequence[Case]) -> list[Case]:
    """The case of each row."""
    rows = answers[["dataset", "case_id", "truth"]].to_numpy().tolist()
    known = {(case.dataset, case.case_id): case for case in cases}
    for dataset, case_id, truth in rows:
        if (case := known.get((dataset, case_id))) is None:
            raise ValueError(f"cases lacks case {case_id!r} of data set {dataset!r}")
        if case.diagnosis != truth:
            held = f"{case.diagnosis!r}, but its answers were held against {truth!r}"
            raise ValueError(f"case {case_id!r} has the diagnosis {held}")
    return [known[dataset, case_id] for dataset, case_id, _ in rows]
