"""08: who says that an answer is right, and what another one would change."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from trustlab.choices import choices
from trustlab.datasets.public_replies import PUBLIC, load_replies
from trustlab.graders import Grader, open_grader
from trustlab.metrics.agreement import COUNTS, agreement
from trustlab.metrics.estimate import Rows, estimate, rate
from trustlab.metrics.run_tables import KEYS
from trustlab.metrics.schema import column_of, need, rows_where, table
from trustlab.records import Case
from trustlab.runs.workbench import Workbench


@choices
class Asked(Workbench):
    """The choices of notebook 08."""

    UNUSED = ("doctor", "patient", "reviewer", "wording", "medical_proxy")


setup = Asked.of
RULES = ("exact", "synonym", "encoder")
"""Graders that need no model."""


def grade(
    answers: pd.DataFrame, grader: str | Grader, cases: Sequence[Case]
) -> pd.DataFrame:
    """A run's answers graded anew: the same rows, a new ``correct``, and ``grader``, its name.

    - ``grader``: a name of :data:`RULES`, or an object such as ``JudgeGrader(model)``.
    - An answer that could not be graded has ``correct`` NaN and the reason in ``missing``; a failed
      answer stays as it is; an unreadable one is wrong.
    - ``ValueError`` for missing columns, a case that ``cases`` lacks, or another truth than its.
    """
    need(answers, [*KEYS, "answer", "truth", "correct", "missing"], "answers")
    judge = open_grader(grader)
    is_read = answers["answer"].notna()
    texts = answers["answer"].astype(object).where(is_read, None)
    cases_of_rows = _cases_of(answers, cases)
    rows = np.flatnonzero(is_read | answers["correct"].notna())
    texts_to_grade = [texts.iloc[i] for i in rows]
    cases_to_grade = [cases_of_rows[i] for i in rows]
    grades = judge.grade(texts_to_grade, cases_to_grade)
    correct = np.full(len(answers), np.nan)
    missing = answers["missing"].astype(object).fillna("").to_numpy(copy=True)
    for i, verdict in zip(rows, grades, strict=True):
        if verdict.correct is None:
            missing[i] = verdict.missing
        else:
            correct[i] = verdict.correct
            missing[i] = ""
    if not np.isnan(correct).any():
        correct = correct.astype(int)
    return answers.assign(correct=correct, missing=missing, grader=judge.name)


def verdicts(
    answers: pd.DataFrame, graders: Sequence[str | Grader], cases: Sequence[Case]
) -> tuple[pd.DataFrame, list[str]]:
    """The answers' keys, ``answer`` and ``truth`` with a column a grader, and their names.
    A grade is 1, 0 or NaN. ``ValueError`` for fewer than two graders or two of one name."""
    opened = [open_grader(grader) for grader in graders]
    names = [grader.name for grader in opened]
    if len(names) < 2 or len(set(names)) < len(names):
        raise ValueError(
            f"graders must be two or more, each with its own name; received {names}"
        )
    table: Any = answers[[*KEYS, "answer", "truth"]].copy()
    for grader in opened:
        table[grader.name] = grade(answers, grader, cases)["correct"].astype(float)
    return table, names


def agreement_table(graded: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """How far every two graders of :func:`verdicts` agree: Cohen's ``kappa``, ``agreement``,
    :data:`COUNTS`.
    Over cases, all models and levels of a case together. Unreadable answers are wrong to both."""
    datasets = graded["dataset"].astype(str)
    case_ids = graded["case_id"].astype(str)
    cases = datasets + "\0" + case_ids
    lines = [
        {"first": first, "second": second, **line}
        for first, second in combinations(names, 2)
        for line in agreement(graded[first], graded[second], cases)
    ]
    return table(lines, ["first", "second"], [*COUNTS])


THEIRS = "their GPT-4"
"""The model that graded for the authors of the recorded replies."""


def right_of_five(graders: Sequence[Grader]) -> pd.DataFrame:
    """Of five answers of GPT-4 to a vignette, how many a dermatologist, the authors' model and each
    grader call right: a row a case (100), a column each. What is ungraded is not called right."""
    recorded = pd.read_csv(
        PUBLIC / "craft_md" / "dermatologist_counts.csv", keep_default_na=False
    )
    replies = load_replies("craft_md", "gpt4_1106", "vignette").set_index("case_id")
    replies = replies.loc[recorded["case_id"]]
    counts: Any = recorded[["case_id"]].copy()
    counts["dermatologist"] = recorded["correct_trials_of_5_by_dermatologist"]
    counts[THEIRS] = [of_five.count(1) for of_five in replies["graded"]]
    truths = column_of(replies, "truth")
    for grader in graders:
        right = pd.Series(0, recorded.index)
        for i in range(5):
            right += _called_right(grader, column_of(recorded, f"trial_{i}"), truths)
        counts[grader.name] = right
    return counts


def same_counts(counts: pd.DataFrame) -> pd.DataFrame:
    """How often each grader counts as many right answers of five as the dermatologist."""
    of_dermatologist = counts["dermatologist"]
    lines = []
    for grader in counts.columns.drop(["case_id", "dermatologist"]):
        is_same = counts[grader] == of_dermatologist
        cases = counts[["case_id"]].assign(same=is_same.astype(float))
        line = estimate(Rows.of(cases, "same"), rate("same"))
        lines.append({"grader": grader, "metric": "same count", **line})
    return table(lines, ["grader"])


def against_reader(graders: Sequence[Grader]) -> pd.DataFrame:
    """Agreement, kappa, precision and recall of each grader against a reader who ruled pairs of an
    answer and a truth; those without a ruling are left out, and ungraded is not called right.
    ``set``: the pairs on which the lists of names were mended, and those kept back."""
    pairs = pd.read_csv(PUBLIC / "craft_md" / "ruled_pairs.csv", keep_default_na=False)
    pairs = rows_where(pairs, pairs["ruling"].isin(["right", "wrong"])).reset_index(
        drop=True
    )
    pairs["case_id"] = pairs.index.astype(str)
    pairs["reader"] = pairs["ruling"].eq("right").astype(float)
    answers = column_of(pairs, "answer")
    truths = column_of(pairs, "truth")
    verdicts = {THEIRS: column_of(pairs, "graded")}
    for grader in graders:
        verdicts[grader.name] = _called_right(grader, answers, truths)
    lines = []
    for name, verdict in verdicts.items():
        called = pairs.assign(called=verdict.astype(float))
        for part, own in called.groupby("part", sort=False):
            label = {"set": part, "grader": name}
            for line in agreement(own["called"], own["reader"], own["case_id"]):
                lines.append(label | line)
            for metric, of, column in (
                ("precision", "called", "reader"),
                ("recall", "reader", "called"),
            ):
                rows = rows_where(own, own[of].eq(1))
                counted = Rows.of(rows, column, "it calls none right")
                line = estimate(counted, rate(column))
                lines.append({**label, "metric": metric, **line})
    return table(lines, ["set", "grader"])


def _called_right(grader: Grader, answers: pd.Series, truths: pd.Series) -> pd.Series:
    """1 where the grader calls an answer right, 0 where it does not or cannot tell."""
    names = [answer or None for answer in answers]
    cases = [
        Case(str(i), "recorded", (), truth, (truth,))
        for i, truth in enumerate(truths.to_list())
    ]
    grades = grader.grade(names, cases)
    is_right = [int(grade.correct == 1) for grade in grades]
    return pd.Series(is_right, answers.index)


def _cases_of(answers: pd.DataFrame, cases: Sequence[Case]) -> list[Case]:
    """The case of each row."""
    case_by_key = {(case.dataset, case.case_id): case for case in cases}
    cases_of_rows = []
    for dataset, case_id, truth in (
        answers[["dataset", "case_id", "truth"]].to_numpy().tolist()
    ):
        case = case_by_key.get((dataset, case_id))
        if case is None:
            raise ValueError(f"cases lacks case {case_id!r} of data set {dataset!r}")
        if case.diagnosis != truth:
            graded_by = (
                f"{case.diagnosis!r}, but its answers were held against {truth!r}"
            )
            raise ValueError(f"case {case_id!r} has the diagnosis {graded_by}")
        cases_of_rows.append(case)
    return cases_of_rows
