"""Is one method steadier than another on the same views? And the steadiest of each family?

``confidence`` is that of :class:`trustlab.experiments.robustness.Robustness`; the views:
:mod:`trustlab.experiments.robustness_tables`.

- Differences are the method's CV minus the reference's, both drawn from the same cases, in
  percentage points: below 0 the method is steadier.
- A CV cannot be below 0, and where conditions make no difference its CV group is the larger the
  more the method wobbles from view to view; a difference in CV group may be no more than that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from trustlab.experiments.compare import families_of, family_name, told_best
from trustlab.experiments.robustness_tables import NOT_SHARED, RUN, compared_views, conditions
from trustlab.metrics.best import best_against
from trustlab.metrics.estimate import Rows, groups
from trustlab.metrics.paired import MIN_COVERAGE, compared, corrected
from trustlab.metrics.stability import CVS, NO_MEAN, views

NO_METHOD = "no method has a value on half of the views"
KEYS = [*RUN, "method", "family", "against", "level"]
CHOSEN = ["low_chosen", "high_chosen", "chosen_in", "n_methods", "left_out"]


def cv_differences(
    confidence: pd.DataFrame, reference: str = "medconf", n_draws: int = 2000, seed: int = 0
) -> pd.DataFrame:
    """CV group and CV sample of each method against those of ``reference``, at each level and all.

    - Methods stand on the views of ``variation_table``, one with rows of its own on those that it
      and the reference have; for CV sample without views in which either has mean 0.
    - ``ValueError`` for a reference that the run has no such values of.
    """
    lines = []
    for about, of in _compared(confidence, reference):
        for method in (m for m in of if m != reference):
            both = of[method], of[reference]
            own = any(part["own"].any() for part in both)
            values = [_values(part, "possible" if own else "used") for part in both]
            label = about | {"method": method, "family": family_name(method)}
            for metric, statistic in CVS.items():
                mine, theirs = views(metric, values, both[0]["case_id"], n_draws, seed, NOT_SHARED)
                found = compared(replace(mine, reference=theirs), statistic, undefined=NO_MEAN)
                lines.append(label | {"metric": metric} | found)
    return corrected(lines, KEYS)


def steadiest_of_families(
    confidence: pd.DataFrame, reference: str = "medconf", n_draws: int = 2000, seed: int = 0
) -> pd.DataFrame:
    """In each family the method with the lowest CV, against ``reference``: as ``best_of_families``.

    - All methods of a family and the reference stand on the views that all of them have; a method
      with less than half of the views is named in ``left_out``.
    - A method that always says the same is the steadiest there can be: read it beside its AUROC.
    """
    lines = []
    for about, of in _compared(confidence, reference):
        values = {m: _values(part, "possible") for m, part in of.items()}
        has = {m: ~np.isnan(each).any(axis=1) for m, each in values.items()}
        least = max(MIN_COVERAGE * np.any(list(has.values()), axis=0).sum(), 1)
        for family, members in families_of(of, reference).items():
            kept = [m for m in members if has[m].sum() >= least]
            left_out = ", ".join(m for m in members if m not in kept)
            label = about | {"family": family, "n_methods": len(kept), "left_out": left_out}
            both, cases = [values[m] for m in [*kept, reference]], of[reference]["case_id"]
            for metric in CVS:
                rows = views(metric, both, cases, n_draws, seed)
                label |= {"metric": metric, "n": len(rows[0]), "n_cases": rows[0].n_cases}
                label["n_missing"] = len(cases) - len(rows[0])
                lines.append(label | _best(rows, kept, metric))
    return corrected(lines, KEYS, CHOSEN)


def _compared(
    confidence: pd.DataFrame, reference: str
) -> Iterator[tuple[dict[str, Any], dict[str, pd.DataFrame]]]:
    """Each run at each level: what it is about, and each method's views, in one order."""
    for about, part in groups(compared_views(confidence), [*RUN, "level"]):
        of = {str(m): mine for m, mine in part.groupby("method", sort=False)}
        if reference not in of:
            raise ValueError(f"reference is {reference!r}; the run has {list(of)}")
        yield about | {"against": reference}, of


def _values(part: pd.DataFrame, where: str) -> np.ndarray:
    """A method's values under the paraphrased conditions, (n, C), NaN where not compared."""
    return part[conditions(part)].where(part["whole"] & part[where]).to_numpy(float)


def _best(rows: list[Rows], kept: list[str], metric: str) -> dict[str, Any]:
    """The best of ``kept``, whose rows come first, against the last."""
    if not kept or not len(rows[0]):
        return {"method": "", "missing": NOT_SHARED if kept else NO_METHOD}
    drawn = np.stack([one.drawn(CVS[metric]) for one in rows])
    if np.isnan(drawn[:, 0]).any():
        return {"method": "", "missing": NO_MEAN}
    theirs, mine = drawn[-1], drawn[:-1]
    cases = rows[0]["case_id"]
    best = best_against(mine[:, 0], mine[:, 1:], theirs[0], theirs[1:], cases, lowest=True)
    return told_best(best, kept, theirs[0])
