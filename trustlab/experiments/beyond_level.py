"""What does a confidence know beyond how much was told? Discrimination with level and length out."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from trustlab.metrics import schema
from trustlab.metrics.correlation import partial_spearman_weighted
from trustlab.metrics.estimate import Metric, Rows, at_least, estimate
from trustlab.metrics.run_tables import KEYS, RunTables, rows_of_methods
from trustlab.metrics.table import metrics_table

RUN = ["model", "dataset"]
AREAS = {"auroc pooled": "pooled", "auroc within": "within"}
GIVEN: dict[str, tuple[str, ...]] = {
    "spearman per answer": (),
    "partial given level": ("level",),
    "partial given level and words": ("level", "n_words"),
    "partial given level, words and share": ("level", "n_words", "share"),
}
"""Of each rank correlation over answers, what is taken out of it."""
MEASURES = (*AREAS, *GIVEN)
SHARE = "information_level"
"""The method whose value is the share of the statements shown: cases differ in length."""
LACKING = {"n_words": "answers have no n_words", "share": f"{SHARE} has no value for every answer"}
LEFT = "nothing of the confidence or of correctness is left"


def beyond_level_table(
    run: RunTables,
    metrics: pd.DataFrame | None = None,
    *,
    n_draws: int = 2000,
    seed: int = 0,
    min_per_class: int = 10,
) -> pd.DataFrame:
    """How each method tells right answers from wrong, and how much remains beyond level and length.

    - A row a model, data set, method and metric: "auroc pooled" and "auroc within", those of
      ``metrics`` (the run's ``metrics_table``, made here where it is not given); "spearman per
      answer" (rank correlation of confidence and correctness over answers, -1 to 1), and the same
      "partial given level", "... and words" (the words shown, ``answers``' column ``n_words``) and
      "... and share" (of the statements shown): :mod:`trustlab.metrics.correlation`.
    - Withheld below ``min_per_class`` right or wrong answers. The draws are those of
      ``metrics_table`` with that seed.
    - ``ValueError`` as ``metrics_table``, and for ``metrics`` of another run.
    """
    how: dict[str, Any] = {"n_draws": n_draws, "seed": seed}
    if metrics is None:
        metrics = metrics_table(run, min_per_class=min_per_class, scales={}, **how)
    areas = metrics[metrics["metric"] == "auroc"].set_index([*RUN, "method", "level"])
    areas = {key: found.to_dict() for key, found in areas.iterrows()}
    share = run.confidence.loc[run.confidence["method"] == SHARE, [*KEYS, "confidence"]]
    told = run.answers.assign(n_words=run.answers.get("n_words", np.nan))
    told = told.merge(share.rename(columns={"confidence": "share"}), on=KEYS, how="left")
    few = at_least(min_per_class)
    lines: list[dict[str, Any]] = []
    for label, rows in rows_of_methods(told, run.confidence, **how):
        for metric in MEASURES if label["method"] else ():
            if metric in AREAS:
                key = (*label.values(), AREAS[metric])
                if key not in areas:
                    raise ValueError(f"metrics lacks the AUROC of {key}: it is of another run")
                found = areas[key]
            else:
                given = GIVEN[metric]
                alike = LEFT if given else "all confidences are alike"
                why = partial(_withheld, given=given, few=few)
                found = estimate(rows, Metric(partial(_partial, given=given), why, alike))
            lines.append({**found, **label, "metric": metric})
    return schema.table(lines, [*RUN, "method"])


def _withheld(rows: Rows, given: tuple[str, ...], few: Any) -> str:
    lacking = [LACKING[name] for name in given if pd.isna(rows[name]).any()]
    return few(rows) or (lacking[0] if lacking else "")


def _partial(rows: Rows, given: tuple[str, ...]) -> np.ndarray:
    """The rank correlation of confidence and correctness given these columns, (1 + draws,)."""
    level = rows["level"] if given else np.zeros(len(rows))
    answers = rows["correct"], rows["confidence"], level
    others = rows.table[list(given[1:])].to_numpy(dtype=float)
    return rows.over(lambda weights: partial_spearman_weighted(*answers, weights, others))
