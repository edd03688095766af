"""Asks whether two graders say the same (Cohen's kappa)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from trustlab.metrics.estimate import Metric, Rows, Statistic, between, estimate, rate
from trustlab.metrics.ties import numbers, same_shape


def _kappa(rows: Rows) -> np.ndarray:
    return kappa(*(rows.mean(rows[name]) for name in ("first", "second", "same")))


AGREEMENT = {
    "kappa": Metric(
        Statistic(_kappa, "kappa", between(-1.0, 1.0)),
        undefined="kappa is undefined: each grader says the same of all answers",
    ),
    "agreement": rate("same"),
}
"""Cohen's kappa, in [-1, 1], and the share of answers graded alike."""
COUNTS = {"both_right": (1, 1), "only_first": (1, 0), "only_second": (0, 1), "both_wrong": (0, 0)}
"""What the first and the second grader say of the answers counted."""


def kappa(first: np.ndarray, second: np.ndarray, same: np.ndarray) -> np.ndarray:
    """Cohen's kappa, in [-1, 1], of the shares (B,) that each grader calls right and of those that
    both grade alike. NaN where each says the same of all, or a share is NaN."""
    one_sided = np.isin(first, (0, 1)) & np.isin(second, (0, 1))
    chance = first * second + (1 - first) * (1 - second)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(one_sided, np.nan, (same - chance) / (1 - chance))


def agreement(a: ArrayLike, b: ArrayLike, case_ids: ArrayLike) -> list[dict[str, Any]]:
    """A line, with :data:`COUNTS`, for each metric of two graders of the same answers.
    ``a`` and ``b`` (n,) hold 0 or 1, NaN where ungraded: such answers are among ``n_missing``."""
    one, other = (numbers(n, x, only=(0, 1), missing=True) for n, x in (("a", a), ("b", b)))
    same_shape(a=one, b=other)
    counts = {name: int(((one == x) & (other == y)).sum()) for name, (x, y) in COUNTS.items()}
    asked = pd.DataFrame({"case_id": np.asarray(case_ids), "first": one, "second": other})
    asked["same"] = np.where(np.isnan(one + other), np.nan, one == other)
    rows = Rows.of(asked, "same", none="no answer that both graded")
    return [{"metric": m, **counts, **estimate(rows, x)} for m, x in AGREEMENT.items()]
