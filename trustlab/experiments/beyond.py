"""What becomes of accuracy and confidence where a model is out of the world it was taught."""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false, reportReturnType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pandas as pd

from trustlab.experiments.costs import most_frequent_reason
from trustlab.experiments.robustness_tables import mean

if TYPE_CHECKING:
    from trustlab.experiments.benchmark import Run

COLUMNS = ["set", "what", "value", "low", "high", "n", "n_cases", "n_missing", "missing"]


def beyond_table(runs: Mapping[str, Run], methods: Sequence[str], n_draws: int = 2000, seed: int = 0) -> pd.DataFrame:
    """By set of cases: accuracy, and the mean confidence of each method, with 95 % case-bootstrap intervals.

    Columns set what value low high n n_cases n_missing reason: ``what`` is "accuracy" or a method,
    values are 0 to 1, ``n`` counts the answers behind this very value and ``n_missing`` those
    without one. One model and one level a run. A mean over no values is missing, and below 10 cases
    there is no interval; ``missing`` says why.
    """
    rows = []
    for name, run in runs.items():
        answers = run.answers[["case_id"]].assign(value=run.answers["correct"].astype(float), missing="no answer")
        for what in ("accuracy", *methods):
            mine = run.confidence[run.confidence["method"] == what].rename(columns={"confidence": "value"})
            held = answers if what == "accuracy" else mine
            known = held.dropna(subset="value")
            *found, reason = mean(known["value"], known["case_id"], n_draws, seed)
            reason = reason if len(known) else f"no value: {most_frequent_reason(held)}"
            rows.append((name, what, *found, len(answers) - len(known), reason))
    return pd.DataFrame(rows, columns=COLUMNS)
