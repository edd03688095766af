"""Do two graders agree? Cohen's kappa and the share of agreement, with the counts behind them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from trustlab.metrics.estimate import Metric, Rows, estimate, mean

AGREEMENT = {
    "kappa": Metric(
        lambda rows: rows.over(lambda w: cohen_kappa_weighted(rows["first"], rows["second"], w)),
        undefined="kappa is undefined: each grader says the same of all answers",
    ),
    "agreement": mean("same"),
}
"""Cohen's kappa, in [-1, 1], and the share of answers graded alike."""
COUNTS = ("both_right", "only_first", "only_second", "both_wrong")


def cohen_kappa(a: ArrayLike, b: ArrayLike) -> float:
    """Cohen's kappa of two graders, in [-1, 1]: agreement beyond what chance would give.

    - ``a`` and ``b`` (n,) hold 0 or 1; chance: from their shares of right answers.
    - NaN without rows, or where each says the same of all answers: then agreement and chance
      cannot be told apart.
    - ``ValueError`` on other shapes or values.
    """
    return float(cohen_kappa_weighted(a, b, np.ones((1, np.size(a))))[0])


def cohen_kappa_weighted(a: ArrayLike, b: ArrayLike, weights: ArrayLike) -> np.ndarray:
    """Kappa under each of B weightings (B, n), shape (B,); NaN as in :func:`cohen_kappa`."""
    one, other = _check(a, b)
    weight = np.asarray(weights, dtype=np.float64)
    total = weight.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        right, also, agreed = (weight @ x / total for x in (one, other, one == other))
        chance = right * also + (1 - right) * (1 - also)
        kappa = (agreed - chance) / (1 - chance)
    constant = np.isin(right, (0, 1)) & np.isin(also, (0, 1))
    return np.where(constant, np.nan, kappa)


def agreement(
    a: ArrayLike, b: ArrayLike, case_ids: ArrayLike, n_draws: int = 2000, seed: int = 0
) -> list[dict[str, Any]]:
    """What two graders say of the same answers: a line for each of :data:`AGREEMENT`.

    - ``a`` and ``b`` (n,) hold 0 or 1, NaN where ungraded: such answers are among ``n_missing``.
    - Each line has :data:`COUNTS` and what :func:`~trustlab.metrics.estimate.estimate` gives.
    """
    grades = [np.asarray(grader, dtype=np.float64) for grader in (a, b)]
    known = ~np.isnan(grades).any(axis=0)
    one, other = _check(*(grader[known] for grader in grades))
    counts = (int(x.sum()) for x in (one & other, one & ~other, ~one & other, ~one & ~other))
    shared = dict(zip(COUNTS, counts, strict=True))
    asked = pd.DataFrame({"case_id": np.asarray(case_ids), "first": grades[0], "second": grades[1]})
    asked["same"] = np.where(known, grades[0] == grades[1], np.nan)
    rows = Rows.of(asked, "same", n_draws, seed, none="no answer that both graded")
    return [{"metric": m, **shared, **estimate(rows, x)} for m, x in AGREEMENT.items()]


def _check(a: ArrayLike, b: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    one, other = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if one.ndim != 1 or one.shape != other.shape:
        shapes = f"{one.shape} and {other.shape}"
        raise ValueError(f"a and b must both have shape (n,); received {shapes}")
    for grades in (one, other):
        if len(strange := grades[~np.isin(grades, (0.0, 1.0))]):
            raise ValueError(f"grades must be 0 or 1; received {strange[0]}: leave ungraded out")
    return one.astype(bool), other.astype(bool)
