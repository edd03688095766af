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


def withheld(parameters: Mapping[str, Any], methods: Iterable[str]) -> dict[tuple[str, str], str]:
    """(model, method) -> why nothing is claimed of it: less than half of the replies that it rests
    on could be read, or less than half of its answers are names that the grader knows. Method ''
    is for the answers."""
    counts: Counts = parameters.get("replies_read") or {}
    own = {name: purposes_of(METHODS[name]) for name in methods if name in METHODS}
    models = parameters.get("models", ())
    unknown = {(model, ""): why for model in models if (why := few_known(parameters, model))}
    return unknown | {
        (model, name): why
        for model in (parameters.get("models", ()) if too_few(counts) else ())
        for name, of in {"": (), **own}.items()
        if (why := why_few(counts, model, (*UNDER_ALL, *of)))
    }


def unknown_answers(answers: pd.DataFrame) -> dict[str, dict[str, int]]:
    """Model -> its ``answers``, and how many of them are ``unknown`` to the grader."""
    named: Any = answers[answers["answer"].notna()]
    unknown = named["missing"].eq(UNKNOWN).groupby(named["model"]).agg(["size", "sum"])
    return {
        str(model): {"answers": int(n), "unknown": int(lost)}
        for model, n, lost in unknown.itertuples()
    }


def few_known(parameters: Mapping[str, Any], model: str) -> str:
    """Why nothing is claimed of a model's answers, of which the grader knows less than half; '' if
    it knows more."""
    counts = parameters.get("unknown_answers", {}).get(model)
    if counts is None or counts["answers"] - counts["unknown"] >= LEAST_READ * counts["answers"]:
        return ""
    n_known = counts["answers"] - counts["unknown"]
    return f"only {n_known:,} of {counts['answers']:,} answers are names that the grader knows"


def without_unread(run: Run) -> Run:
    """The run with its :func:`withheld` values missing, which gives their reason: nothing that is
    made of it claims a number of them."""
    reasons = withheld(run.parameters, run.methods)
    if not reasons:
        return run
    answers, confidence = run.answers.copy(), run.confidence.copy()
    for table in (answers, confidence):
        table["missing"] = table["missing"].astype(object) if "missing" in table else ""
    for (model, method), why in reasons.items():
        if method:
            rows = confidence["model"].eq(model) & confidence["method"].eq(method)
            confidence.loc[rows, ["confidence", "bound", "missing"]] = [math.nan, "", why]
            continue
        rows = answers["model"].eq(model)
        answers.loc[rows, "correct"] = math.nan
        for own in answers.loc[rows, "missing"].unique():
            both = own if why in own else f"{why} ({own})" if own else why
            answers.loc[rows & answers["missing"].eq(own), "missing"] = both
    return replace(run, answers=answers, confidence=confidence)


def samples_alike(wordings: Mapping[tuple[str, int | None], int]) -> list[str]:
    """The models whose samples are alike, word for word, in every row that has two or more.
    ``wordings``: (model, different wordings of a row's samples) -> rows. Nothing below
    :data:`ROWS_ALIKE`."""
    rows: Counter[str] = Counter()
    differ = set()
    for (model, n_wordings), n in wordings.items():
        rows[model] += n if n_wordings is not None else 0
        differ |= {model} if n_wordings and n_wordings > 1 else set()
    return [m for m, n in rows.items() if n >= ROWS_ALIKE and m not in differ]
