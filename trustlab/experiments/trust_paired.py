"""Is a panel more than one doctor? The indices of two configurations on the same cases, as paired differences."""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from trustlab.experiments.compare import finished
from trustlab.experiments.trust import ONE
from trustlab.metrics import trust
from trustlab.metrics.paired import tested
from trustlab.metrics.trust_table import RUN, check_reviews, checked_choices, drawn_groups, index_draws

DEFAULTS = ("unsafe or caution", "largest vote", "missing")
"""rx_variant, cdr_variant and unreadable of :func:`trustlab.metrics.trust_table.trust_indices`."""
SHOWN = ("accuracy", "eti_percent", "osi", "fti")
FAMILY = [*RUN, "safety"]
COLUMNS = [*FAMILY, "configuration", "against", "index", "value", "reference", "difference", "low", "high", "p", "p_holm"]
COLUMNS += ["standard_error", "cases_needed", "n_cases", "reason"]


def configuration_differences(
    reviews: pd.DataFrame,
    formulation: str = "trust-x",
    against: str = ONE,
    indices: Sequence[str] = SHOWN,
    draws: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """Each configuration's indices minus those of ``against`` on the cases that both have, all in percent: :data:`COLUMNS`.

    ``reviews`` and choices are those of :func:`trustlab.metrics.trust_table.trust_indices` with its defaults; ``indices`` are
    some of :data:`SHOWN`, each over those of the cases that it has a value of. ``low`` and ``high``: 95 % case bootstrap, both
    from the same cases in each draw; ``p`` two-sided from these, ``p_holm`` over the rows of a model, data set, level and safety;
    ``cases_needed`` as in ``compare_methods``. A team without ``against`` has no row. No value where one of the two has none,
    no interval below 10 cases or where all draws are alike: ``reason`` says so. ``ValueError`` for an unknown index, or where
    ``against`` is nowhere.
    """
    if not indices or not set(indices) <= set(SHOWN):
        raise ValueError(f"indices must be some of {list(SHOWN)}; received {list(indices)}")
    table = check_reviews(reviews)
    if against not in set(table["configuration"]):
        raise ValueError(f"against is {against!r}; the reviews hold {list(dict.fromkeys(table['configuration']))}")
    choices = checked_choices(formulation, trust.ETI_WEIGHTS, trust.HALVES, trust.HALVES, *DEFAULTS)
    teams: dict[tuple, dict[str, tuple[pd.DataFrame, np.ndarray]]] = {}
    for label, part, drawn in drawn_groups(table, draws, seed):
        teams.setdefault(tuple(label[k] for k in FAMILY), {})[label["configuration"]] = part, drawn
    rows: list[dict[str, Any]] = []
    for key, team in teams.items():
        for configuration in (c for c in team if against in team and c != against):
            mine, theirs = _shared(*team[configuration], *team[against])
            case = mine[0]["case_id"].to_numpy()
            both = [index_draws(*one, choices) for one in (mine, theirs)] if len(case) else []
            for name in indices:
                unit = 100 if name == "accuracy" and formulation == "trust-x" else 1
                label = dict(zip(FAMILY, key, strict=True)) | {"configuration": configuration, "against": against, "index": name}
                rows.append(label | {"n_cases": len(case)} | _paired([unit * one[name] for one in both], case))
    return finished(rows, COLUMNS, FAMILY)


def _shared(
    mine: pd.DataFrame, of_mine: np.ndarray, theirs: pd.DataFrame, of_theirs: np.ndarray
) -> tuple[tuple[pd.DataFrame, np.ndarray], tuple[pd.DataFrame, np.ndarray]]:
    """Both with the cases that the two have, in one order."""
    case = np.intersect1d(mine["case_id"].astype(str), theirs["case_id"].astype(str))
    places = [pd.Index(one["case_id"].astype(str)).get_indexer(case) for one in (mine, theirs)]
    return (mine.iloc[places[0]], of_mine[:, places[0]]), (theirs.iloc[places[1]], of_theirs[:, places[1]])


def _paired(both: Sequence[np.ndarray], case_ids: np.ndarray) -> dict[str, Any]:
    """One index of the two, each the value first and then its draws, (1 + draws,)."""
    if not both:
        return {"reason": "no case that both have"}
    found = {"value": float(both[0][0]), "reference": float(both[1][0]), "difference": float(both[0][0] - both[1][0])}
    if np.isnan(found["difference"]):
        return {**found, "reason": "one of the two has no value"}
    return found | (tested(both[0][1:] - both[1][1:], case_ids) if len(both[0]) > 1 else {"reason": "no draws"})
