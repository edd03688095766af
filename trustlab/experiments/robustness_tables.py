"""What the changes did, as tidy tables: coefficients of variation, accuracy, shifts of the confidence. Pure functions.

``answers`` and ``confidence`` are those of :class:`trustlab.experiments.robustness.Robustness`. Intervals are 95 % percentile
bootstrap, resampling cases with all their levels. Rows in which a condition changed nothing are no test of it: they are left
out of that condition.
"""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportGeneralTypeIssues=false, reportCallIssue=false

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from trustlab.changes import AS_TOLD, PARAPHRASES
from trustlab.knowledge import normalise
from trustlab.metrics.intervals import TOO_FEW, case_weights, enough_cases, percentile_interval
from trustlab.metrics.stability import RATIO, cv_group, cv_sample

RUN = ["model", "dataset"]
ROW = ["case_id", "dataset", "level", "model"]
MEASURED = ["value", "low", "high", "n", "n_cases", "reason"]
ALIKE = "no interval: all values are alike"
AMONG = {"all": "all answers", "same": "same answer"}


def variation_table(confidence: pd.DataFrame, n_draws: int = 2000, seed: int = 0) -> pd.DataFrame:
    """CV group and CV sample (percent) of each method on a ratio scale over the paraphrased conditions.

    Columns model dataset method level metric value low high n n_cases n_missing n_zero reason; ``level`` is a level or "all";
    ``metric`` is "cv_group" or "cv_sample"; counts and reasons as in :class:`trustlab.metrics.stability.Variation`. Only rows
    that every one of the conditions changed and that have a value in each: the others are ``n_missing``. Empty where there
    are fewer than two paraphrased conditions.
    """
    mine = confidence[confidence["condition"].str.startswith(PARAPHRASES) & confidence["method"].isin(RATIO)]
    columns = [*RUN, "method", "level", "metric", "value", "low", "high", "n", "n_cases", "n_missing", "n_zero", "reason"]
    names = list(dict.fromkeys(mine["condition"]))
    rows = []
    if len(names) > 1:
        values = mine.assign(confidence=mine["confidence"].where(mine["changed"].astype(bool)))
        groups: Any = values.groupby([*RUN, "method"], sort=False)
        for key, part in groups:
            wide: Any = part.pivot(index=["case_id", "level"], columns="condition", values="confidence")[names].reset_index()
            for level, at in _by_level(wide):
                for metric, measure in (("cv_group", cv_group), ("cv_sample", cv_sample)):
                    v = measure(at[names].to_numpy(float), at["case_id"].to_numpy(), n_draws, seed)
                    counts = (v.n, v.n_cases, v.n_missing, v.n_zero, v.reason)
                    rows.append((*key, level, metric, v.value, v.low, v.high, *counts))
    return pd.DataFrame(rows, columns=columns)


def accuracy_table(answers: pd.DataFrame, n_draws: int = 2000, seed: int = 0) -> pd.DataFrame:
    """What each condition does to the answers, over the rows that it changed and that both conditions have.

    Columns model dataset condition level metric value low high n n_cases reason; shares 0 to 1. ``metric`` is "accuracy" (under
    the condition), "difference" (less the accuracy as told on the same rows) or "other_answer" (share of answers that are other
    words than as told; case and punctuation aside). Answers that were not had or not graded are in neither.
    """
    told = answers[answers["condition"] == AS_TOLD.name].set_index(ROW)
    rows = []
    groups: Any = answers.groupby([*RUN, "condition"], sort=False)
    for (model, dataset, condition), part in groups:
        part = part if condition == AS_TOLD.name else part[part["changed"].astype(bool)]
        both = part.join(told[["correct", "answer"]].add_suffix("_told"), on=ROW).dropna(subset=["correct", "correct_told"])
        both = both.assign(
            difference=both["correct"].astype(float) - both["correct_told"].astype(float),
            other_answer=[float(_plain(a) != _plain(b)) for a, b in zip(both["answer"], both["answer_told"], strict=True)],
            accuracy=both["correct"].astype(float),
        )
        metrics = ["accuracy"] if condition == AS_TOLD.name else ["accuracy", "difference", "other_answer"]
        for level, at in _by_level(both):
            rows += [(model, dataset, condition, level, m, *mean(at[m], at["case_id"], n_draws, seed)) for m in metrics]
    return pd.DataFrame(rows, columns=[*RUN, "condition", "level", "metric", *MEASURED])


def shift_table(answers: pd.DataFrame, confidence: pd.DataFrame, n_draws: int = 2000, seed: int = 0) -> pd.DataFrame:
    """How far each condition moves each method's mean confidence: under the condition less as told, in the method's own units.

    Columns model dataset condition method level among value low high n n_cases reason. Paired by case and level, over the
    rows that the condition changed and that have a value in both. ``among`` is "all answers" or "same answer": where the
    answer changed, the confidence may rightly change with it.
    """
    said = answers[[*ROW, "condition", "answer"]]
    table = confidence.merge(said, on=[*ROW, "condition"], how="left", validate="many_to_one")
    told = table[table["condition"] == AS_TOLD.name].set_index([*ROW, "method"])
    moved = table[(table["condition"] != AS_TOLD.name) & table["changed"].astype(bool)]
    both = moved.join(told[["confidence", "answer"]].add_suffix("_told"), on=[*ROW, "method"])
    both = both.assign(
        shift=both["confidence"] - both["confidence_told"],
        same=[_plain(a) == _plain(b) for a, b in zip(both["answer"], both["answer_told"], strict=True)],
    )
    rows = []
    groups: Any = both.groupby([*RUN, "condition", "method"], sort=False)
    for key, part in groups:
        for level, at in _by_level(part):
            for among, chosen in (("all", at), ("same", at[at["same"].astype(bool)])):
                known = chosen.dropna(subset="shift")
                rows.append((*key, level, AMONG[among], *mean(known["shift"], known["case_id"], n_draws, seed)))
    return pd.DataFrame(rows, columns=[*RUN, "condition", "method", "level", "among", *MEASURED])


def scatter_table(variation: pd.DataFrame, metrics: pd.DataFrame) -> pd.DataFrame:
    """Stability beside discrimination, a row a method: CVs over all levels (percent) and AUROC within level as told (0 to 1).

    Columns model dataset method cv_group cv_sample cv_low cv_high auroc auroc_low auroc_high n reason: ``cv_low`` and
    ``cv_high`` are those of CV sample, ``n`` its rows; ``reason`` says why there is no CV or no AUROC. ``metrics`` is the
    ``metrics_table`` of the run as told.
    """
    cv = variation[variation["level"] == "all"].set_index([*RUN, "method", "metric"])
    area = metrics[(metrics["metric"] == "auroc") & (metrics["level"] == "within")].set_index([*RUN, "method"])
    rows = []
    for key in dict.fromkeys(tuple(k[:3]) for k in cv.index):
        group, each = cv.loc[(*key, "cv_group")], cv.loc[(*key, "cv_sample")]
        auroc = area.loc[key] if key in area.index else pd.Series({"value": np.nan, "low": np.nan, "high": np.nan})
        why = [each["reason"] if pd.isna(each["value"]) else "", auroc.get("reason", "") if pd.isna(auroc["value"]) else ""]
        ranks = (auroc["value"], auroc["low"], auroc["high"])
        reason = "; ".join(filter(None, why))
        rows.append((*key, group["value"], each["value"], each["low"], each["high"], *ranks, each["n"], reason))
    numbers = ["cv_group", "cv_sample", "cv_low", "cv_high", "auroc", "auroc_low", "auroc_high", "n", "reason"]
    return pd.DataFrame(rows, columns=[*RUN, "method", *numbers])


def mean(values: Any, case_ids: Any, n_draws: int, seed: int) -> tuple[float, float, float, int, int, str]:
    """Value, low, high, n, n_cases and reason: the mean of ``values`` (n,) and its interval over cases; none below 10 cases."""
    found, cases = np.asarray(values, dtype=float), np.asarray(case_ids)
    nan, n_cases = float("nan"), len(set(cases))
    if not len(found):
        return nan, nan, nan, 0, 0, "no value in both conditions"
    value = float(found.mean())
    if not enough_cases(cases):
        return value, nan, nan, len(found), n_cases, TOO_FEW
    if np.ptp(found) == 0:
        return value, nan, nan, len(found), n_cases, ALIKE  # resampling them would claim certainty
    weights = case_weights(cases, n_draws, seed)
    return value, *percentile_interval(weights @ found / weights.sum(1)), len(found), n_cases, ""


def _by_level(table: Any) -> Iterator[tuple[str, Any]]:
    """The rows of each level, ascending, then all."""
    for level in sorted(table["level"].unique()):
        yield str(level), table[table["level"] == level]
    yield "all", table


def _plain(answer: object) -> str | None:
    return normalise(answer) if isinstance(answer, str) else None
