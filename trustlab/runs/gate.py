"""Takes back what rests on replies of which too few could be read."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from trustlab.confidence import METHODS
from trustlab.parsing.counts import LEAST_READ, Counts, too_few, why_few
from trustlab.records import UNKNOWN
from trustlab.runs.costs import purposes_of
from trustlab.runs.run import Run

ROWS_ALIKE = 5
"""Fewer rows whose samples are all alike do not speak for a temperature that is ignored."""
UNDER_ALL = ("diagnosis", "judge", "ask", "patient")
"""Purposes on whose replies every number of a run rests."""


def withheld(
    parameters: Mapping[str, Any], methods: Iterable[str]
) -> dict[tuple[str, str], str]:
    """(model, method) -> why nothing is claimed of it: less than half of the replies that it rests
    on could be read, or less than half of its answers are names that the grader knows. Method ''
    is for the answers."""
    counts: Counts = parameters.get("replies_read") or {}
    models = parameters.get("models", ())
    reasons = {}
    for model in models:
        why = why_unknown(parameters, model)
        if why:
            reasons[model, ""] = why
    if not too_few(counts):
        return reasons
    purposes: dict[str, tuple[str, ...]] = {"": UNDER_ALL}
    for method in methods:
        if method in METHODS:
            purposes[method] = (*UNDER_ALL, *purposes_of(METHODS[method]))
    for model in models:
        for method, of_method in purposes.items():
            why = why_few(counts, model, of_method)
            if why:
                reasons[model, method] = why
    return reasons


def unknown_answers(answers: pd.DataFrame) -> dict[str, dict[str, int]]:
    """Model -> its ``answers``, and how many of them are ``unknown`` to the grader."""
    readable: Any = answers[answers["answer"].notna()]
    models = readable["model"]
    is_unknown = readable["missing"].eq(UNKNOWN)
    by_model = is_unknown.groupby(models)
    counts = by_model.agg(answers="size", unknown="sum")
    return counts.to_dict("index")


def why_unknown(parameters: Mapping[str, Any], model: str) -> str:
    """Why nothing is claimed of a model's answers, of which the grader knows less than half; '' if
    it knows more."""
    counts = parameters.get("unknown_answers", {}).get(model)
    if counts is None:
        return ""
    n_answers = counts["answers"]
    n_recognised = n_answers - counts["unknown"]
    if n_recognised >= LEAST_READ * n_answers:
        return ""
    return f"only {n_recognised:,} of {n_answers:,} answers are names that the grader knows"


def without_unread(run: Run) -> Run:
    """The run with its :func:`withheld` values missing, which gives their reason: nothing that is
    made of it claims a number of them."""
    reasons = withheld(run.parameters, run.methods)
    if not reasons:
        return run
    answers = run.answers.copy()
    confidence = run.confidence.copy()
    for table in (answers, confidence):
        table["missing"] = table["missing"].astype(object) if "missing" in table else ""
    for (model, method), why in reasons.items():
        if method:
            of_model = confidence["model"].eq(model)
            rows = of_model & confidence["method"].eq(method)
            confidence.loc[rows, ["confidence", "bound", "missing"]] = [
                math.nan,
                "",
                why,
            ]
        else:
            _withhold_answers(answers, model, why)
    return replace(run, answers=answers, confidence=confidence)


def _withhold_answers(answers: pd.DataFrame, model: str, why: str) -> None:
    """Grade no answer of a model, in place; the reason stands before the row's own."""
    rows = answers["model"].eq(model)
    answers.loc[rows, "correct"] = math.nan
    for own in answers.loc[rows, "missing"].unique():
        if why in own:
            continue
        same_reason = rows & answers["missing"].eq(own)
        reason = f"{why} ({own})" if own else why
        answers.loc[same_reason, "missing"] = reason


def samples_alike(wordings: Mapping[tuple[str, int | None], int]) -> list[str]:
    """The models whose samples are alike, word for word, in every row that has two or more.
    ``wordings``: (model, different wordings of a row's samples) -> rows. Nothing below
    :data:`ROWS_ALIKE`."""
    n_rows: Counter[str] = Counter()
    models_that_differ = set()
    for (model, n_wordings), n in wordings.items():
        n_rows[model] += 0 if n_wordings is None else n
        if n_wordings is not None and n_wordings > 1:
            models_that_differ.add(model)
    alike = []
    for model, n in n_rows.items():
        if n >= ROWS_ALIKE and model not in models_that_differ:
            alike.append(model)
    return alike
