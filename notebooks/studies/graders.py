"""08: who says that an answer is right, and what another one would change."""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportGeneralTypeIssues=false, reportReturnType=false

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from trustlab.graders import Grader, open_grader
from trustlab.measures import metrics_table
from trustlab.metrics.agreement import COUNTS, agreement
from trustlab.metrics.estimate import grouped, mean, measure
from trustlab.metrics.run_tables import KEYS, Tables
from trustlab.metrics.schema import need, table
from trustlab.records import Case

RULES = ("exact", "synonym", "encoder")
"""Graders that need no model."""
LEVELS = ["pooled", "within"]


def grade(
    answers: pd.DataFrame, grader: str | Grader, cases: Sequence[Case] | None = None
) -> pd.DataFrame:
    """A run's answers graded anew: the same rows, a new ``correct``, and ``grader``, its name.

    - ``grader``: a name of :data:`RULES`, or an object such as ``JudgeGrader(model)``.
    - ``cases`` give the accepted names; without them an answer is held against ``truth`` and the
      knowledge table.
    - An answer that could not be graded has ``correct`` NaN and the reason in ``missing``. A failed
      answer (none, and ``correct`` NaN) stays as it is; an unreadable one is wrong.
    - ``ValueError`` for missing columns, a case that ``cases`` lacks, or another truth than its.
    """
    need(answers, [*KEYS, "answer", "truth", "correct"], "answers")
    judge = open_grader(grader)
    said = answers["answer"].astype(object).where(answers["answer"].notna(), None)
    held = _cases_of(answers, cases)
    at = np.flatnonzero(answers["answer"].notna() | answers["correct"].notna())
    grades = judge.grade([said.iloc[i] for i in at], [held[i] for i in at])
    correct = np.full(len(answers), np.nan)
    correct[at] = [np.nan if g.correct is None else g.correct for g in grades]
    told: Any = answers["missing"] if "missing" in answers else pd.Series("", answers.index)
    why = told.astype(object).fillna("").to_numpy(copy=True)
    why[at] = [g.missing if g.correct is None else "" for g in grades]
    if not np.isnan(correct).any():
        correct = correct.astype(int)
    return answers.assign(correct=correct, missing=why, grader=judge.name)


def verdicts(
    answers: pd.DataFrame,
    graders: Sequence[str | Grader] = RULES,
    cases: Sequence[Case] | None = None,
) -> tuple[pd.DataFrame, list[str]]:
    """The answers' keys, ``answer`` and ``truth`` with a column a grader, and their names.

    A grade is 1, 0 or NaN. ``ValueError`` for fewer than two graders or two of one name.
    """
    opened = [open_grader(g) for g in graders]
    names = [g.name for g in opened]
    if len(names) < 2 or len(set(names)) < len(names):
        raise ValueError(f"graders must be two or more, each with its own name; received {names}")
    graded = {g.name: grade(answers, g, cases)["correct"].astype(float) for g in opened}
    return answers[[*KEYS, "answer", "truth"]].assign(**graded), names


def agreement_table(
    answers: pd.DataFrame,
    graders: Sequence[str | Grader] = RULES,
    cases: Sequence[Case] | None = None,
    n_draws: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """How far every two graders agree: ``kappa`` (Cohen's) and ``agreement``, a share.

    Intervals take all models and levels of a case together. Unreadable answers are wrong to both
    and count; what either did not grade is missing. Counts: :data:`COUNTS`.
    """
    found, names = verdicts(answers, graders, cases)
    ids = found["dataset"].astype(str) + "\0" + found["case_id"].astype(str)
    lines = [
        {"first": first, "second": second, **line}
        for first, second in combinations(names, 2)
        for line in agreement(found[first], found[second], ids, n_draws, seed)
    ]
    return table(lines, ["first", "second"], [*COUNTS])


def disagreements(
    answers: pd.DataFrame,
    graders: Sequence[str | Grader] = RULES,
    cases: Sequence[Case] | None = None,
) -> pd.DataFrame:
    """The distinct (answer, truth) pairs not graded alike, with ``n_answers``, most frequent first.

    A column a grader: 1, 0, or NaN where ungraded, which differs from both verdicts.
    """
    found, names = verdicts(answers, graders, cases)
    told: Any = found[found["answer"].notna()]
    pairs = told.groupby(["answer", "truth", *names], dropna=False, sort=False)
    counted = pairs.size().rename("n_answers").reset_index()
    differ = counted[counted[names].nunique(axis=1, dropna=False) > 1]
    order = ["n_answers", "answer", "truth"]
    return differ.sort_values(order, ascending=[False, True, True], ignore_index=True)


def verdict_table(
    pairs: Sequence[tuple[str, str]], graders: Sequence[str | Grader] = RULES
) -> pd.DataFrame:
    """What each grader says of (answer, truth) pairs: a column a grader (1, 0, or NaN)."""
    cases = [Case(f"pair-{i}", "pairs", (), t, (t,)) for i, (_, t) in enumerate(pairs, 1)]
    found = pd.DataFrame(list(pairs), columns=["answer", "truth"])
    for grader in map(open_grader, graders):
        grades = grader.grade([answer for answer, _ in pairs], cases)
        found[grader.name] = pd.array([g.correct for g in grades], dtype="Int64")
    return found


def auroc_by_grader(
    answers: pd.DataFrame,
    confidence: pd.DataFrame,
    graders: Sequence[str | Grader] = RULES,
    methods: Sequence[str] | None = None,
    cases: Sequence[Case] | None = None,
    **how: Any,
) -> pd.DataFrame:
    """AUROC of each method and the accuracy, had another one graded: ``metrics_table``'s rows.

    - ``metric`` is "auroc" (``level`` "pooled" and "within") or "accuracy" (method '', "pooled").
    - ``methods``: all of ``confidence`` where ``None``, else ``ValueError`` for one not there.
    - ``how``: n_draws, seed, min_per_class and n_jobs; all graders have the same draws.
    """
    held = list(dict.fromkeys(confidence["method"]))
    chosen = held if methods is None else list(methods)
    if not chosen or not set(chosen) <= set(held):
        raise ValueError(f"methods must be one or more of {held}; received {chosen}")
    mine: Any = confidence[confidence["method"].isin(chosen)]
    lines = []
    for grader in map(open_grader, graders):
        graded = Tables(grade(answers, grader, cases), mine)
        found = metrics_table(graded, scales={}, **how)  # no scales: no calibration
        wanted = found["metric"].isin(["auroc", "accuracy"]) & found["level"].isin(LEVELS)
        lines += found[wanted].assign(grader=grader.name).to_dict("records")
    return table(lines, ["model", "dataset", "method", "grader", "level"], ["n_rarer"])


def accuracy_by_grader(
    answers: pd.DataFrame,
    graders: Sequence[str | Grader] = RULES,
    cases: Sequence[Case] | None = None,
    **how: Any,
) -> pd.DataFrame:
    """The share of right answers by each grader, a row a data set, model and grader.

    All levels together. What a grader did not grade is missing. ``how``: n_draws and seed.
    """
    found, names = verdicts(answers, graders, cases)
    lines = []
    for name in names:
        why = f"not graded by {name}"
        each = grouped(found, ["dataset", "model"], name, **how, none=why)
        lines += [line | {"grader": name} for line in measure(each, {"accuracy": mean(name)})]
    return table(lines, ["dataset", "model", "grader"])


def _cases_of(answers: pd.DataFrame, cases: Sequence[Case] | None) -> list[Case]:
    """The case of each row; made of its truth where no cases are given."""
    rows = answers[["dataset", "case_id", "truth"]].to_numpy().tolist()
    if cases is None:
        return [Case(str(i), str(dataset), (), str(t), (str(t),)) for dataset, i, t in rows]
    known = {(case.dataset, case.case_id): case for case in cases}
    for dataset, case_id, truth in rows:
        if (case := known.get((dataset, case_id))) is None:
            raise ValueError(f"cases lacks case {case_id!r} of data set {dataset!r}")
        if case.diagnosis != truth:
            held = f"{case.diagnosis!r}, but its answers were held against {truth!r}"
            raise ValueError(f"case {case_id!r} has the diagnosis {held}")
    return [known[dataset, case_id] for dataset, case_id, _ in rows]
