"""Takes back what rests on replies of which too few could be read."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from trustlab.confidence import METHODS
from trustlab.costs import purposes_of
from trustlab.parsing.counts import Counts, too_few, why_few
from trustlab.run import Run

ROWS_ALIKE = 5
"""Fewer rows whose samples are all alike do not speak for a temperature that is ignored."""
UNDER_ALL = ("diagnosis", "judge", "ask", "patient")
"""Purposes on whose replies every number of a run rests."""


def withheld(parameters: Mapping[str, Any], methods: Iterable[str]) -> dict[tuple[str, str], str]:
    """(model, method) -> why nothing is claimed of it: less than half of the replies that it rests
    on could be read. Method '' is for the answers."""
    counts: Counts = parameters.get("replies_read") or {}
    own = {name: purposes_of(METHODS[name]) for name in methods if name in METHODS}
    return {
        (model, name): why
        for model in (parameters.get("models", ()) if too_few(counts) else ())
        for name, of in {"": (), **own}.items()
        if (why := why_few(counts, model, (*UNDER_ALL, *of)))
    }


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
