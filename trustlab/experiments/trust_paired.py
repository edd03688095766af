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
from trustlab.metrics.paired import tested
from trustlab.metrics.trust_table import (
    KEYS,
    RUN,
    Choices,
    answered,
    check_reviews,
    checked_choices,
    drawn_groups,
    index_draws,
    trust_indices,
)

SHOWN = ("accuracy", "eti_percent", "osi", "fti")
FAMILY = [*RUN, "safety"]
COLUMNS = [*FAMILY, "configuration", "against", "index", "value", "reference", "difference", "low", "high", "p", "p_holm"]
COLUMNS += ["standard_error", "cases_needed", "n_cases", "missing"]
Team = tuple[pd.DataFrame, np.ndarray]
"""One configuration's reviews (n), and how often each is in each draw (draws, n)."""


def configuration_differences(
    reviews: pd.DataFrame,
    formulation: str = "trust-x",
    against: str = ONE,
    indices: Sequence[str] = SHOWN,
    draws: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """Each configuration's indices minus those of ``against`` on the cases that both could answer.

    All in percent, columns :data:`COLUMNS`.

    ``reviews`` and choices are those of :func:`trustlab.metrics.trust_table.trust_indices` with its defaults; ``indices`` are
    some of :data:`SHOWN`, each over the ``n_cases`` that both could answer in all of its parts
    (:func:`trustlab.metrics.trust_table.answered`): a panel without a readable diagnosis is in no
    comparison, however its accuracy counts it. ``low`` and ``high``: 95 % case bootstrap, both
    from the same cases in each draw; ``p`` two-sided from these, ``p_holm`` over the rows of a model, data set, level and safety;
    ``cases_needed`` as in ``compare_methods``. A team without ``against`` has no row. No value where one of the two has none,
    no interval below 10 cases or where all draws are alike: ``missing`` says so. ``ValueError`` for an unknown index, or where
    ``against`` is nowhere.
    """
    if not indices or not set(indices) <= set(SHOWN):
        raise ValueError(f"indices must be some of {list(SHOWN)}; received {list(indices)}")
    table = check_reviews(reviews)
    if against not in set(table["configuration"]):
        raise ValueError(f"against is {against!r}; the reviews hold {list(dict.fromkeys(table['configuration']))}")
    choices = checked_choices(formulation)
    teams: dict[tuple, dict[str, tuple[pd.DataFrame, np.ndarray]]] = {}
    for label, part, drawn in drawn_groups(table, draws, seed):
        teams.setdefault(tuple(label[k] for k in FAMILY), {})[label["configuration"]] = part, drawn
    rows: list[dict[str, Any]] = []
    for key, team in teams.items():
        for configuration in (c for c in team if against in team and c != against):
            pair = _shared(team[configuration], team[against])
            for name in indices:
                unit = 100 if name == "accuracy" and formulation == "trust-x" else 1
                label = dict(zip(FAMILY, key, strict=True)) | {"configuration": configuration, "against": against, "index": name}
                rows.append(label | _paired(pair, name, unit, choices))
    return finished(rows, COLUMNS, FAMILY)


def indices_on_shared_cases(reviews: pd.DataFrame, of: Sequence[str] = RUN, formulation: str = "trust-x") -> pd.DataFrame:
    """:func:`~trustlab.metrics.trust_table.trust_indices`, without intervals, of the cases that all could answer.

    "All" are the configurations of a group ``of`` keys whose ETI has a case at all; where they share no case, accuracy, CDR
    and RDC are missing. What ranks configurations (the weight sweep, rank stability) stands on this table.
    """
    choices, found = checked_choices(formulation), []
    for _, group in check_reviews(reviews).groupby(list(of), sort=False, observed=True):
        teams: Any = group.groupby(KEYS, sort=False, observed=True)
        could = [set(part.loc[answered(part, choices)["eti"], "case_id"]) for _, part in teams]
        shared = set[str].intersection(*filter(None, could)) if any(could) else set()
        kept = group[group["case_id"].isin(shared)]
        rows = trust_indices(group if kept.empty else kept, formulation, draws=0)
        nothing = {"accuracy": np.nan, "cdr": np.nan, "rdc": np.nan, "eti_n": 0}
        found.append(rows.assign(**nothing) if kept.empty else rows)
    return pd.concat(found, ignore_index=True)


def _shared(team: Team, other: Team) -> tuple[Team, Team]:
    """Both with the cases that the two have, in one order."""
    (mine, of_mine), (theirs, of_theirs) = team, other
    case = np.intersect1d(mine["case_id"].astype(str), theirs["case_id"].astype(str))
    places = [pd.Index(one["case_id"].astype(str)).get_indexer(case) for one in (mine, theirs)]
    return (mine.iloc[places[0]], of_mine[:, places[0]]), (theirs.iloc[places[1]], of_theirs[:, places[1]])


def _paired(pair: Sequence[Team], name: str, unit: float, choices: Choices) -> dict[str, Any]:
    """One index of the two, over the cases that both could answer."""
    if not len(pair[0][0]):
        return {"n_cases": 0, "missing": "no case that both have"}
    each = np.array([answered(part, choices)[name] for part, _ in pair])
    both = each.all(axis=0)
    n = {"n_cases": int(both.sum())}
    if not both.any():
        alone = each.any(axis=1).all()
        return n | {"missing": "no case that both could answer" if alone else "one of the two has no value"}
    mine, theirs = (
        unit * index_draws(part[both], drawn[:, both], choices)[name]
        for part, drawn in pair  # the two with the same cases in each draw
    )
    found = n | {"value": float(mine[0]), "reference": float(theirs[0])}
    found["difference"] = found["value"] - found["reference"]
    cases = pair[0][0]["case_id"].to_numpy()[both]
    return found | (tested(mine[1:] - theirs[1:], cases) if len(mine) > 1 else {"missing": "no draws"})
