"""What does a confidence know beyond how much was told? Discrimination before and after level and length are taken out."""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportReturnType=false

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from trustlab.metrics.estimate import CHUNK, bounded_interval, case_weights
from trustlab.metrics.partial import partial_spearman, partial_spearman_weighted
from trustlab.metrics.run_tables import KEYS, RunTables, checked_answers, joined
from trustlab.metrics.table import metrics_table

AREAS = {"auroc pooled": "pooled", "auroc within": "within"}
GIVEN: dict[str, tuple[str, ...]] = {
    "spearman per answer": (),
    "partial given level": ("level",),
    "partial given level and words": ("level", "n_words"),
    "partial given level, words and share": ("level", "n_words", "share"),
}
"""Of each rank correlation over answers, what is taken out of it."""
MEASURES = (*AREAS, *GIVEN)
RUN = ["model", "dataset"]
COLUMNS = [*RUN, "method", "metric", "value", "low", "high", "n", "n_cases", "n_missing", "missing"]
SHARE = "information_level"
"""The method whose value is the share of the statements shown. It differs within a level, since cases differ in length."""
LACKING = {"n_words": "answers have no n_words", "share": f"{SHARE} has no value for every answer"}
LEFT = "nothing of the confidence or of correctness is left"


def beyond_level_table(
    run: RunTables, metrics: pd.DataFrame | None = None, *, n_draws: int = 2000, seed: int = 0, min_per_class: int = 10
) -> pd.DataFrame:
    """How each method tells right answers from wrong, and how much of it remains beyond level and length.

    A row a model, data set, method and measure: "auroc pooled" and "auroc within" (0 to 1, those of ``metrics``, the run's
    ``metrics_table``, made here where it is not given), "spearman per answer" (rank correlation of confidence and correctness
    over answers, -1 to 1), and the same "partial given level", "... and words" (the number of words shown, ``answers``'
    column ``n_words``) and "... and share" (of the statements shown, the method information_level;
    :mod:`trustlab.metrics.partial`). ``low`` and ``high``: 95 % percentile bootstrap over cases, all levels together, the draws
    of ``metrics_table`` with that seed. Withheld below ``min_per_class`` correct or wrong answers; ``missing`` says why a value
    or an interval is missing. Raises ``ValueError`` as ``metrics_table``, and for ``metrics`` of another run.
    """
    if metrics is None:
        metrics = metrics_table(run, n_draws=n_draws, seed=seed, min_per_class=min_per_class, scales={})
    area = metrics[metrics["metric"] == "auroc"].set_index([*RUN, "method", "level"])
    answers = checked_answers(run.answers)
    table = joined(answers, run.confidence)
    words = run.answers[KEYS].assign(level=answers["level"], n_words=run.answers.get("n_words", np.nan))
    share = table.loc[table["method"] == SHARE, [*KEYS, "confidence"]].rename(columns={"confidence": "share"})
    for more in (words, share):
        table = table.merge(more, on=KEYS, how="left", validate="many_to_one")
    asked = pd.MultiIndex.from_frame(table[[*RUN, "method"]].drop_duplicates())
    if len(lacking := asked.difference(area.index.droplevel("level"))):
        raise ValueError(f"metrics lacks the AUROC of {lacking[0]}: received the metrics of another run")
    rows: list[dict] = []
    groups: Any = table.groupby(RUN, sort=False)
    for key, part in groups:
        mine = answers[(answers["model"] == key[0]) & (answers["dataset"] == key[1])]
        cases = np.unique(mine["case_id"])
        draws = np.ascontiguousarray(case_weights(cases, n_draws, seed).T)
        for method, given in part.groupby("method", sort=False):
            label = {**dict(zip(RUN, key, strict=True)), "method": method}
            for measure, level in AREAS.items():
                rows.append({**label, "metric": measure, **area.loc[(*key, method, level), COLUMNS[4:]].to_dict()})
            known = given[given["confidence"].notna()]
            weights = draws[np.searchsorted(cases, known["case_id"])]
            counts = {"n": len(known), "n_cases": known["case_id"].nunique(), "n_missing": len(mine) - len(known)}
            for measure in GIVEN:
                value, low, high, reason = _measured(known, measure, weights, max(min_per_class, 1))
                if not len(known):  # why it has no value at all
                    reason = area.loc[(*key, method, "pooled"), "missing"]
                rows.append({**label, "metric": measure, "value": value, "low": low, "high": high, **counts, "missing": reason})
    return pd.DataFrame(rows, columns=COLUMNS)


def _measured(known: pd.DataFrame, measure: str, weights: np.ndarray, least: int) -> tuple[float, float, float, str]:
    """Value, interval and reason; ``weights`` (n, B) says how often each answer is in each draw."""
    nothing = float("nan")
    given = GIVEN[measure]
    n_correct = int(known["correct"].sum())
    if min(n_correct, len(known) - n_correct) < least:
        return nothing, nothing, nothing, f"fewer than {least} correct or wrong"
    if lacking := [LACKING[name] for name in given if known[name].isna().any()]:
        return nothing, nothing, nothing, lacking[0]
    level = known["level"].to_numpy() if given else np.zeros(len(known))
    answers = known["correct"].to_numpy(), known["confidence"].to_numpy(), level
    others = known[list(given[1:])].to_numpy(float)
    value = partial_spearman(*answers, others)
    if np.isnan(value):
        return nothing, nothing, nothing, LEFT if given else "all confidences are alike"
    draws = np.concatenate([partial_spearman_weighted(*answers, chunk, others) for chunk in _chunks(weights)])
    return value, *bounded_interval(draws, known["case_id"])


def _chunks(weights: np.ndarray) -> Iterator[np.ndarray]:
    """(n, B) as weightings (up to CHUNK, n) at a time."""
    for start in range(0, weights.shape[1], CHUNK):
        yield weights[:, start : start + CHUNK].T
