"""Is a panel more than one doctor? The indices of two configurations on the same cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from trustlab.experiments.trust import ONE
from trustlab.metrics import trust_table as made
from trustlab.metrics.estimate import NAN, Rows, groups
from trustlab.metrics.paired import compared, corrected
from trustlab.metrics.trust_table import INDICES, RUN, Choices, check_reviews

SHOWN = ("accuracy", "eti_percent", "osi", "fti")
FAMILY = [*RUN, "safety"]


def configuration_differences(
    reviews: pd.DataFrame,
    formulation: str = "trust-x",
    against: str = ONE,
    indices: Sequence[str] = SHOWN,
    draws: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """Each configuration's indices minus those of ``against``, all in percent.

    - ``indices``, some of :data:`SHOWN` of ``reviews``, each over the ``n`` cases that both could
      answer (:func:`trustlab.metrics.trust_table.answered`): a panel without a readable diagnosis
      is in no comparison, however its accuracy counts it.
    - Both are drawn with the same cases; ``p_holm`` is over the rows of a model, data set, level
      and safety. A team without ``against`` has no row.
    - ``ValueError`` for an unknown index, or where ``against`` is nowhere.
    """
    if not indices or not set(indices) <= set(SHOWN):
        raise ValueError(f"indices must be some of {list(SHOWN)}; received {list(indices)}")
    table, choices = check_reviews(reviews), Choices(formulation)
    if against not in (teams := list(table["configuration"].unique())):
        raise ValueError(f"against is {against!r}; the reviews hold {teams}")
    lines: list[dict[str, Any]] = []
    every = made.configurations(table, choices, draws, seed)
    of = {(label["configuration"], *map(label.get, FAMILY)): rows for label, _, rows in every}
    for (configuration, *run), mine in of.items():
        theirs = of.get((against, *run))
        if configuration == against or theirs is None:
            continue
        label = dict(zip(FAMILY, run, strict=True)) | {"configuration": configuration}
        for name in indices:
            unit = 100 if name == "accuracy" and formulation == "trust-x" else 1
            place, pair = INDICES.index(name), _pair(mine, theirs, name, choices)
            found = compared(pair, lambda r, u=unit, i=place: u * r.drawn(made.indices(choices))[i])
            lines.append({**label, "against": against, "metric": name, **found})
    return corrected(lines, [*FAMILY, "configuration", "against"], family=FAMILY)


def indices_on_shared_cases(
    reviews: pd.DataFrame, of: Sequence[str] = RUN, formulation: str = "trust-x"
) -> pd.DataFrame:
    """The indices, without intervals, of the cases that all configurations could answer.

    - "All" are those of a group ``of`` keys whose ETI has a case at all; where they share no case,
      every index is missing. What ranks configurations stands on this table.
    """
    choices, found = Choices(formulation), []
    for _, group in groups(check_reviews(reviews), of):
        cases = (rows.asked for _, _, rows in made.configurations(group, choices, draws=0))
        could = [{*each["case_id"][made.answered(each, choices)["eti"]]} for each in cases]
        shared = set[str].intersection(*filter(None, could)) if any(could) else set()
        kept = group[group["case_id"].astype(str).isin(shared)]
        indices = made.trust_indices(kept if len(kept) else group, formulation, draws=0)
        none = {"value": NAN, "n": 0, "n_cases": 0, "missing": "no case that all could answer"}
        found.append(indices if len(kept) else indices.assign(**none))
    return pd.concat(found, ignore_index=True)


def _pair(mine: Rows, theirs: Rows, name: str, choices: Choices) -> Rows:
    """The cases of two configurations; known are those that both could answer in an index."""
    sides = [rows.asked.set_index("case_id") for rows in (mine, theirs)]
    cases = sides[0].index.union(sides[1].index)
    shared = cases.isin(sides[0].index) & cases.isin(sides[1].index)
    could = [made.answered(side, choices)[name].reindex(cases, fill_value=False) for side in sides]
    each = [one.to_numpy(bool) & shared for one in could]
    none = "one of the two has no value" if shared.any() else "no case that both have"
    none = "no case that both could answer" if each[0].any() and each[1].any() else none
    both, asked = each[0] & each[1], [side.reindex(cases).reset_index() for side in sides]
    return Rows(asked[0], both, mine.draws, none, Rows(asked[1], both, mine.draws, none))
