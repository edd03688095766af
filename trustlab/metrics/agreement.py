"""Asks whether two graders say the same (Cohen's kappa)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from trustlab.metrics.estimate import Metric, Rows, Statistic, estimate, rate
from trustlab.metrics.ties import numbers, same_shape

AGREEMENT = {
    "kappa": Metric(
        Statistic(
            lambda r: r.over(partial(cohen_kappa_weighted, r["first"], r["second"])), "kappa"
        ),
        undefined="kappa is undefined: each grader says the same of all answers",
    ),
    "agreement": rate("same"),
}
"""Cohen's kappa, in [-1, 1], and the share of answers graded alike."""
COUNTS = {"both_right": (1, 1), "only_first": (1, 0), "only_second": (0, 1), "both_wrong": (0, 0)}
"""What the first and the second grader say of the answers counted."""


def cohen_kappa_weighted(a: ArrayLike, b: ArrayLike, weights: ArrayLike) -> np.ndarray:
    """Cohen's kappa of two graders (n,) under each of B weightings (B, n): (B,), in [-1, 1].
    Grades are 0 or 1, else ``ValueError``. NaN without rows, or where each grader says the same of
    all."""
    one, other = _grades(a, b)
    weight = np.asarray(weights, dtype=np.float64)
    total = weight.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        right, also, agreed = (weight @ x / total for x in (one, other, one == other))
        chance = right * also + (1 - right) * (1 - also)
        kappa = (agreed - chance) / (1 - chance)
    return np.where(np.isin(right, (0, 1)) & np.isin(also, (0, 1)), np.nan, kappa)


def agreement(
    a: ArrayLike, b: ArrayLike, case_ids: ArrayLike, n_draws: int = 2000, seed: int = 0
) -> list[dict[str, Any]]:
    """A line, with :data:`COUNTS`, for each metric of two graders of the same answers.
    ``a`` and ``b`` (n,) hold 0 or 1, NaN where ungraded: such answers are among ``n_missing``."""
    one, other = _grades(a, b, missing=True)
    counts = {name: int(((one == x) & (other == y)).sum()) for name, (x, y) in COUNTS.items()}
    asked = pd.DataFrame({"case_id": np.asarray(case_ids), "first": one, "second": other})
    asked["same"] = np.where(np.isnan(one + other), np.nan, one == other)
    rows = Rows.of(asked, "same", n_draws, seed, none="no answer that both graded")
    return [{"metric": m, **counts, **estimate(rows, x)} for m, x in AGREEMENT.items()]


def _grades(a: ArrayLike, b: ArrayLike, missing: bool = False) -> list[np.ndarray]:
    one, other = (numbers(n, x, only=(0, 1), missing=missing) for n, x in (("a", a), ("b", b)))
    same_shape(a=one, b=other)
    return [one, other]
