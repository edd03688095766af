"""01: the best possible accuracy, where the chance of each diagnosis is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from trustlab.choices import choices
from trustlab.collect import NOT_KNOWN
from trustlab.levels import views
from trustlab.metrics import schema
from trustlab.metrics.estimate import grouped, mean, measure
from trustlab.records import LEVELS, Case
from trustlab.settings import Setup


@choices
class Asked(Setup):
    """The choices of notebook 01."""

    task: Annotated[
        Literal["free", "choice", "unlisted"], Field(description="'free', 'choice' or 'unlisted'")
    ] = "free"
    """"choice" asks, beside the free answers, which of five candidates each model takes, listed in
    the prompt; "unlisted" asks for a diagnosis and lists none."""


def bayes_optimal_table(
    cases: Sequence[Case], levels: Sequence[int] = LEVELS, *, n_draws: int = 2000, seed: int = 0
) -> pd.DataFrame:
    """How often the likeliest diagnosis is right where the chance of each is known.
    A line a data set and level, metric "bayes_optimal_accuracy", of the cases that have
    ``posteriors``; the others are missing. Near-ties (1e-6) go to the first by name."""
    rows = []
    for one in views(cases, levels):
        known, right = one.posterior, np.nan
        if known:
            best = max(known.values())
            first = min(name for name, chance in known.items() if chance > best - 1e-6)
            right = float(first in one.case.accepted)
        key = {"dataset": one.case.dataset, "case_id": one.case.case_id, "level": one.level}
        rows.append(key | {"right": right})
    how: dict[str, Any] = {"n_draws": n_draws, "seed": seed, "none": NOT_KNOWN}
    labelled = grouped(pd.DataFrame(rows), ["dataset", "level"], "right", **how)
    lines = measure(labelled, {"bayes_optimal_accuracy": mean("right")})
    return schema.table(list(lines), ["dataset", "level"])
