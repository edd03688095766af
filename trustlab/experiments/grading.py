"""How far a run's numbers depend on who graded its answers; the diagnosing model is not asked again."""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from trustlab.correctness import Grader, open_grader
from trustlab.metrics.agreement import agreement
from trustlab.metrics.table import KEYS, metrics_table
from trustlab.records import Case

RULES = ("exact", "synonym", "encoder")
"""Graders that need no model."""


def grade(answers: pd.DataFrame, grader: str | Grader, cases: Sequence[Case] | None = None) -> pd.DataFrame:
    """A run's answers graded anew: the same rows and columns with a new ``correct``, and ``grader``, its name.

    ``grader`` is "exact", "synonym", "encoder", or an object such as ``JudgeGrader(model)``. ``cases`` give the accepted names;
    without them an answer is held against ``truth`` and the knowledge table. An answer that could not be graded has
    ``correct`` NaN and the reason in ``missing``. A failed answer (none, and ``correct`` NaN) stays as it is; an unreadable one
    is wrong. Raises ``ValueError`` for missing columns, a case that ``cases`` lacks, or another truth than the case's.
    """
    wanted = [*KEYS, "answer", "truth", "correct"]
    if lacking := [name for name in wanted if name not in answers.columns]:
        raise ValueError(f"answers lacks the columns {lacking}; it has {list(answers.columns)}")
    judge = open_grader(grader)
    told = answers["answer"].notna().to_numpy()
    failed = ~told & answers["correct"].isna().to_numpy()
    said = [str(answer) if known else None for answer, known in zip(answers["answer"], told, strict=True)]
    held = _cases_of(answers, cases)
    at = np.flatnonzero(~failed)
    grades = judge.grade([said[i] for i in at], [held[i] for i in at])
    correct = np.full(len(answers), np.nan)
    correct[at] = [np.nan if g.correct is None else g.correct for g in grades]
    why = (
        answers["missing"].astype(object).fillna("").to_numpy().copy()
        if "missing" in answers
        else np.full(len(answers), "", object)
    )
    for i, g in zip(at, grades, strict=True):
        why[i] = g.missing if g.correct is None else ""
    if not np.isnan(correct).any():
        correct = correct.astype(int)
    return answers.assign(correct=correct, missing=why, grader=judge.name)


def verdicts(
    answers: pd.DataFrame, graders: Sequence[str | Grader] = RULES, cases: Sequence[Case] | None = None
) -> tuple[pd.DataFrame, list[str]]:
    """The answers' keys, ``answer`` and ``truth`` with a column a grader (1, 0 or NaN), and the graders' names in order.

    Raises ``ValueError`` for fewer than two graders or two of one name.
    """
    opened = [open_grader(g) for g in graders]
    names = [g.name for g in opened]
    if len(names) < 2 or len(set(names)) < len(names):
        raise ValueError(f"graders must be two or more, each with a name of its own; received {names}")
    graded = {g.name: grade(answers, g, cases)["correct"].astype(float).to_numpy() for g in opened}
    return answers[[*KEYS, "answer", "truth"]].assign(**graded), names


def agreement_table(
    answers: pd.DataFrame,
    graders: Sequence[str | Grader] = RULES,
    cases: Sequence[Case] | None = None,
    n_draws: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """How far every two graders agree on the answers that both graded: a row a pair.

    Columns first second n both_right only_first only_second both_wrong agreement kappa low high reason. ``agreement`` is a share,
    ``kappa`` Cohen's, ``low`` and ``high`` its 95 % percentile bootstrap interval over cases (all models and levels of a case
    together). Unreadable answers are wrong to both and count.
    """
    table, names = verdicts(answers, graders, cases)
    ids = table["dataset"].astype(str) + "\0" + table["case_id"].astype(str)
    rows = []
    for first, second in combinations(names, 2):
        both = table[[first, second]].notna().all(axis=1)
        found = agreement(table.loc[both, first], table.loc[both, second], ids[both], n_draws, seed)
        rows.append({"first": first, "second": second, **found})
    return pd.DataFrame(rows)


def disagreements(
    answers: pd.DataFrame, graders: Sequence[str | Grader] = RULES, cases: Sequence[Case] | None = None
) -> pd.DataFrame:
    """The distinct (answer, truth) pairs that the graders do not grade alike, most frequent first.

    Columns answer truth, one a grader (1, 0, or NaN where ungraded), and ``n_answers``. Ungraded differs from both verdicts.
    """
    table, names = verdicts(answers, graders, cases)
    told: Any = table[table["answer"].notna()]
    counted = told.groupby(["answer", "truth", *names], dropna=False, sort=False).size().rename("n_answers").reset_index()
    differ = counted[names].nunique(axis=1, dropna=False) > 1
    return counted[differ].sort_values(["n_answers", "answer", "truth"], ascending=[False, True, True]).reset_index(drop=True)


def verdict_table(pairs: Sequence[tuple[str, str]], graders: Sequence[str | Grader] = RULES) -> pd.DataFrame:
    """What each grader says of (answer, truth) pairs: columns answer truth and one a grader (1, 0, or NaN where ungraded)."""
    cases = [Case(f"pair-{i}", "pairs", (), truth, (truth,)) for i, (_, truth) in enumerate(pairs, 1)]
    table = pd.DataFrame(list(pairs), columns=["answer", "truth"])
    for grader in map(open_grader, graders):
        grades = grader.grade([answer for answer, _ in pairs], cases)
        table[grader.name] = pd.array([g.correct for g in grades], dtype="Int64")
    return table


def auroc_by_grader(
    answers: pd.DataFrame,
    confidence: pd.DataFrame,
    graders: Sequence[str | Grader] = RULES,
    methods: Sequence[str] | None = None,
    cases: Sequence[Case] | None = None,
    *,
    n_draws: int = 2000,
    seed: int = 0,
    min_per_class: int = 10,
    n_jobs: int = 1,
) -> pd.DataFrame:
    """AUROC of each method under each grader, and the accuracy: what would have been printed, had another one graded.

    Columns model dataset method grader metric level value low high n n_cases n_rarer reason.
    ``metric`` is "auroc" (``level`` "pooled" and "within") or "accuracy" (method '', "pooled");
    intervals resample cases, with the same draws for all graders. ``methods``: all of
    ``confidence`` where ``None``. Raises ``ValueError`` for a method that it does not hold.
    """
    held = list(dict.fromkeys(confidence["method"]))
    chosen = held if methods is None else list(methods)
    if not chosen or not set(chosen) <= set(held):
        raise ValueError(f"methods must be one or more of {held}; received {chosen}")
    mine = confidence[confidence["method"].isin(chosen)]
    parts = []
    for grader in [open_grader(g) for g in graders]:
        regraded = _Tables(grade(answers, grader, cases), mine)
        # No scales: calibration is not asked for here.
        table = metrics_table(regraded, n_draws=n_draws, seed=seed, min_per_class=min_per_class, scales={}, n_jobs=n_jobs)
        wanted = table["metric"].isin(["auroc", "accuracy"]) & table["level"].isin(["pooled", "within"])
        parts.append(table[wanted].assign(grader=grader.name))
    columns = ["model", "dataset", "method", "grader", "metric", "level", "value", "low", "high", "n", "n_cases"]
    columns += ["n_rarer", "missing"]
    return pd.concat(parts, ignore_index=True).reindex(columns=columns)


@dataclass(frozen=True)
class _Tables:
    answers: pd.DataFrame
    confidence: pd.DataFrame


def _cases_of(answers: pd.DataFrame, cases: Sequence[Case] | None) -> list[Case]:
    """The case of each row; made of its truth where no cases are given."""
    if cases is None:
        rows = zip(answers["case_id"], answers["dataset"], answers["truth"], strict=True)
        return [Case(str(i), str(dataset), (), str(truth), (str(truth),)) for i, dataset, truth in rows]
    known = {(case.dataset, case.case_id): case for case in cases}
    found = []
    for dataset, case_id, truth in zip(answers["dataset"], answers["case_id"], answers["truth"], strict=True):
        case = known.get((dataset, case_id))
        if case is None:
            raise ValueError(f"cases lacks case {case_id!r} of data set {dataset!r}, which answers holds")
        if case.diagnosis != truth:
            raise ValueError(
                f"case {case_id!r} has the diagnosis {case.diagnosis!r}, but its answers were held against {truth!r}"
            )
        found.append(case)
    return found
