"""Is one method steadier than another on the same views? CVs against a reference, and the steadiest of each family.

``confidence`` is that of :class:`trustlab.experiments.robustness.Robustness`; what a coefficient of variation is, and on which
views it is taken: :mod:`trustlab.experiments.robustness_tables`. Differences are the method's CV minus the reference's, in
percentage points: below 0 the method is steadier. Both CVs are drawn from the same cases. A CV cannot be below 0, and where
conditions make no difference its CV group is the larger the more the method wobbles from view to view; a difference in CV
group may be no more than that.
"""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from trustlab.experiments.compare import BEST, COMPARED, families_of, family_name, finished, told_best
from trustlab.experiments.robustness_tables import NOT_SHARED, ComparedViews, compared_views
from trustlab.metrics.best import best_against
from trustlab.metrics.estimate import case_weights
from trustlab.metrics.paired import MIN_COVERAGE, tested
from trustlab.metrics.stability import UNDEFINED, cv_group_weighted, cv_sample_weighted

WEIGHTED = {"cv_group": cv_group_weighted, "cv_sample": cv_sample_weighted}
RUN = ["model", "dataset"]


def cv_differences(confidence: pd.DataFrame, reference: str = "medconf", n_draws: int = 2000, seed: int = 0) -> pd.DataFrame:
    """CV group and CV sample of each method against those of ``reference`` at each level, and over all: as ``compare_methods``.

    The columns are :data:`trustlab.experiments.compare.COMPARED`; ``metric`` is "cv_group" or "cv_sample", ``level`` a level or
    "all". Methods stand on the views of ``variation_table``, one with rows of its own on those that it and the reference have;
    for CV sample without views in which either has mean 0. ``n_missing`` are the other views of that level. ``p_holm`` is over
    the methods of a model, data set, metric and level. ``ValueError`` for a reference that the run has no such values of.
    """
    rows = []
    for at in compared_views(confidence):
        _check(at, reference)
        for method in at.values:
            if method == reference:
                continue
            alone = method in at.own or reference in at.own
            values = at.every if alone else at.values
            for metric in WEIGHTED:
                both, case = _whole(at, values, [method, reference], metric)
                row = _label(at, reference, metric) | {"method": method, "family": family_name(method)}
                rows.append(row | _counts(at, case) | _pair(both, case, metric, n_draws, seed))
    return finished(rows, COMPARED)


def steadiest_of_families(
    confidence: pd.DataFrame, reference: str = "medconf", n_draws: int = 2000, seed: int = 0
) -> pd.DataFrame:
    """In each family the method with the lowest CV, against ``reference``: as ``best_of_families``, with its columns.

    All methods of a family and the reference stand on the views that all of them have; a method with less than half of the views
    is named in ``left_out``. A method that always says the same is the steadiest there can be: read it beside its AUROC.
    """
    rows: list[dict[str, Any]] = []
    for at in compared_views(confidence):
        _check(at, reference)
        n_possible = int(np.any([~np.isnan(v).any(axis=1) for v in at.every.values()], axis=0).sum())
        for family, members in families_of(at.every, reference).items():
            has = {m: np.sum(~np.isnan(at.every[m]).any(axis=1)) >= max(MIN_COVERAGE * n_possible, 1) for m in members}
            kept = [m for m in members if has[m]]
            facts = {"family": family, "n_methods": len(kept), "left_out": ", ".join(m for m in members if not has[m])}
            for metric in WEIGHTED:
                both, case = _whole(at, at.every, [*kept, reference], metric)
                row = _label(at, reference, metric) | facts | _counts(at, case)
                rows.append(row | _best(both, case, kept, metric, n_draws, seed))
    return finished(rows, BEST)


def _check(at: ComparedViews, reference: str) -> None:
    if reference not in at.values:
        raise ValueError(f"reference is {reference!r}; the run has {list(at.values)} on a ratio scale")


def _label(at: ComparedViews, reference: str, metric: str) -> dict[str, Any]:
    return {**dict(zip(RUN, at.key, strict=True)), "against": reference, "metric": metric, "level": at.level}


def _whole(
    at: ComparedViews, values: dict[str, np.ndarray], methods: Sequence[str], metric: str
) -> tuple[np.ndarray, np.ndarray]:
    """The views that all ``methods`` have, (M, n, C), and their cases (n,); for CV sample those where all have one."""
    stacked = np.stack([values[m] for m in methods])
    use = np.asarray(~np.isnan(stacked).any(axis=(0, 2)))
    if metric == "cv_sample":
        use &= (np.where(use[:, None], stacked, 1).mean(axis=2) > 0).all(axis=0)
    return stacked[:, use], at.rows["case_id"].to_numpy()[use]


def _counts(at: ComparedViews, case: np.ndarray) -> dict[str, Any]:
    return {"n": len(case), "n_cases": len(np.unique(case)), "n_missing": len(at.rows) - len(case)}


def _drawn(both: np.ndarray, case: np.ndarray, metric: str, n_draws: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The CVs (M,) and their draws (M, B)."""
    of = WEIGHTED[metric]
    weights = case_weights(case, n_draws, seed).astype(float)
    return np.array([of(one, np.ones((1, len(case))))[0] for one in both]), np.stack([of(one, weights) for one in both])


def _pair(both: np.ndarray, case: np.ndarray, metric: str, n_draws: int, seed: int) -> dict[str, Any]:
    """One method (first) against the reference (second)."""
    if not len(case):
        return {"missing": NOT_SHARED}
    values, draws = _drawn(both, case, metric, n_draws, seed)
    if np.isnan(values).any():
        return {"missing": UNDEFINED}
    found = {"value": values[0], "reference": values[1], "difference": values[0] - values[1]}
    return found | tested(draws[0] - draws[1], case)


def _best(both: np.ndarray, case: np.ndarray, kept: Sequence[str], metric: str, n_draws: int, seed: int) -> dict[str, Any]:
    if not kept or not len(case):
        return {"method": "", "missing": NOT_SHARED if kept else "no method has a value on half of the views"}
    values, draws = _drawn(both, case, metric, n_draws, seed)
    if np.isnan(values).any():
        return {"method": "", "missing": UNDEFINED}
    return told_best(best_against(values[:-1], draws[:-1], values[-1], draws[-1], case, lowest=True), kept, values[-1])
