"""Asks whether two graders say the same (Cohen's kappa)."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from trustlab.metrics.estimate import (
    Line,
    Metric,
    Rows,
    Statistic,
    between,
    estimate,
    rate,
)
from trustlab.metrics.ties import numbers, same_shape


def _kappa(rows: Rows) -> np.ndarray:
    first = rows.mean(rows["first"])
    second = rows.mean(rows["second"])
    return kappa(first, second, rows.mean(rows["same"]))


AGREEMENT = {
    "kappa": Metric(
        Statistic(_kappa, "kappa", between(-1.0, 1.0)),
        undefined="kappa is undefined: each grader says the same of all answers",
    ),
    "agreement": rate("same"),
}
"""Cohen's kappa, in [-1, 1], and the share of answers graded alike."""
COUNTS = {
    "both_right": (1, 1),
    "only_first": (1, 0),
    "only_second": (0, 1),
    "both_wrong": (0, 0),
}
"""What the first and the second grader say of the answers counted."""


def kappa(first: np.ndarray, second: np.ndarray, same: np.ndarray) -> np.ndarray:
    """Cohen's kappa, in [-1, 1], of the shares (B,) that each grader calls right and of those that
    both grade alike. NaN where each says the same of all, or a share is NaN."""
    is_first_constant = np.isin(first, (0, 1))
    is_second_constant = np.isin(second, (0, 1))
    is_constant = is_first_constant & is_second_constant
    both_right = first * second
    both_wrong = (1 - first) * (1 - second)
    chance = both_right + both_wrong
    with np.errstate(divide="ignore", invalid="ignore"):
        coefficient = (same - chance) / (1 - chance)
    return np.where(is_constant, np.nan, coefficient)


def agreement(a: ArrayLike, b: ArrayLike, case_ids: ArrayLike) -> list[Line]:
    """A line, with :data:`COUNTS`, for each metric of two graders of the same answers.
    ``a`` and ``b`` (n,) hold 0 or 1, NaN where ungraded: such answers are among ``n_missing``."""
    first = numbers("a", a, only=(0, 1), missing=True)
    second = numbers("b", b, only=(0, 1), missing=True)
    same_shape(a=first, b=second)
    counts = {}
    for name, (of_first, of_second) in COUNTS.items():
        has_both = (first == of_first) & (second == of_second)
        counts[name] = int(has_both.sum())
    same = np.where(np.isnan(first + second), np.nan, first == second)
    columns = {
        "case_id": np.asarray(case_ids),
        "first": first,
        "second": second,
        "same": same,
    }
    rows = Rows.of(pd.DataFrame(columns), "same", none="no answer that both graded")
    return [
        {"metric": name, **counts, **estimate(rows, metric)}
        for name, metric in AGREEMENT.items()
    ]
