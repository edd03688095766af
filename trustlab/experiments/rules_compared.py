"""Does one stopping rule do better than another? Each against a reference on the same consultations, paired by case."""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from trustlab.experiments.compare import finished
from trustlab.experiments.consultations import ConsultationRun
from trustlab.experiments.stopping import ORACLE, PRICE, grid, stops
from trustlab.metrics.estimate import case_weights
from trustlab.metrics.paired import tested
from trustlab.metrics.stopping import along

MEASURES = ("accuracy", "utterances")
COLUMNS = ["model", "policy", "against", "metric", "value", "reference", "difference", "low", "high", "p", "p_holm"]
COLUMNS += ["standard_error", "cases_needed", "n_cases", "missing"]


def rules_compared(
    run: ConsultationRun,
    model: str,
    against: str | None = "medconf",
    n_folds: int = 5,
    price: float = PRICE,
    n_draws: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """Accuracy (0 to 1) and utterances of each rule of :func:`trustlab.experiments.stopping.stops` against those of ``against``.

    A row a rule and measure, the columns :data:`COLUMNS`: ``difference`` is the rule's mean minus the reference's over the same
    cases, with its 95 % case-bootstrap interval and two-sided ``p``; thresholds are picked on other cases, and held fixed in the
    draws. ``p_holm`` is over the rules of a measure, ``cases_needed`` as in ``compare_methods``. Where ``against`` has no rule
    the longest consultation stands for it. The oracle is left out, since nobody could follow it. No interval below 10 cases
    or where all draws are alike; ``missing`` says so.
    """
    g = grid(run, model)
    at = stops(run, model, n_folds, price, seed)
    base = against if against in at else f"fixed {g.correct.shape[1] - 1}"
    draws = case_weights(g.case_ids, n_draws, seed) if len(g.case_ids) else np.empty((0, 0))
    rows: list[dict[str, Any]] = []
    for measure, each in zip(MEASURES, (g.correct, g.utterances), strict=True):
        theirs = along(each, at[base])
        for policy in (p for p in at if p not in (base, ORACLE)):
            label = {"model": model, "policy": policy, "against": base, "metric": measure, "n_cases": len(theirs)}
            rows.append(label | _paired(along(each, at[policy]), theirs, g.case_ids, draws))
    return finished(rows, COLUMNS, ["metric"])


def _paired(mine: np.ndarray, theirs: np.ndarray, case_ids: np.ndarray, draws: np.ndarray) -> dict[str, Any]:
    if not len(mine):
        return {"missing": "no consultation could be judged throughout"}
    gap = mine - theirs
    found = {"value": mine.mean(), "reference": theirs.mean(), "difference": gap.mean()}
    return found | tested(draws @ gap / draws.sum(axis=1), case_ids)
