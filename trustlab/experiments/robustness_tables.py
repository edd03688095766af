"""What the changes did, as tidy tables: coefficients of variation, accuracy, shifts of the confidence. Pure functions.

``answers`` and ``confidence`` are those of :class:`trustlab.experiments.robustness.Robustness`. Intervals are 95 % percentile
bootstrap, resampling cases with all their levels. Rows in which a condition changed nothing are no test of it: they are left
out of that condition.
"""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportGeneralTypeIssues=false, reportCallIssue=false

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import ttest_1samp

from trustlab.changes import AS_TOLD, PARAPHRASES
from trustlab.knowledge import normalise
from trustlab.metrics.estimate import TOO_FEW, case_weights, enough_cases, percentile_interval
from trustlab.metrics.significance import holm
from trustlab.metrics.stability import ALIKE, NO_SPREAD, RATIO, cv_group, cv_group_by_chance, cv_sample
from trustlab.metrics.table import metrics_table

RUN = ["model", "dataset"]
VIEW = ["case_id", "level"]
ROW = ["case_id", "dataset", "level", "model"]
MEASURED = ["value", "low", "high", "n", "n_cases", "missing"]
AREA = ["value", "low", "high", "n", "n_cases", "n_rarer"]
LEAST_SHARE = 0.5
"""A method with a value on a smaller share of the rows than this would take too many from the others."""
SAME = "the paraphrased conditions show the same text"
NOT_SHARED = "no row has a value of every compared method"
AMONG = {"all": "all answers", "same": "same answer"}


def variation_table(confidence: pd.DataFrame, n_draws: int = 2000, seed: int = 0) -> pd.DataFrame:
    """CV group and CV sample (percent) of each method on a ratio scale over the paraphrased conditions.

    Columns model dataset method level metric value low high n n_cases n_missing n_same n_zero chance own_rows reason; ``level``
    is a level or "all"; ``metric`` is "cv_group" or "cv_sample"; counts and reasons as in
    :class:`trustlab.metrics.stability.Variation`. ``n_same`` views are left out because two of their paraphrased conditions
    show the same text, others (``n_missing``) because a condition changed nothing or a value is missing, paraphrased or as
    told. Methods stand on the rows that they share; one that has fewer than half of the rows stands on its own
    (``own_rows``). ``chance`` (CV group only): what conditions that are exchangeable would stay below,
    :func:`~trustlab.metrics.stability.cv_group_by_chance`. Empty where there are fewer than two paraphrased conditions.
    """
    counts = ["n", "n_cases", "n_missing", "n_same", "n_zero", "chance", "own_rows", "missing"]
    rows = []
    for at in compared_views(confidence):
        for method, values in at.values.items():
            chance = cv_group_by_chance(values[~at.same], n_draws, seed)
            for metric, measure in (("cv_group", cv_group), ("cv_sample", cv_sample)):
                v = measure(values[~at.same], at.rows["case_id"].to_numpy()[~at.same], n_draws, seed)
                found = (v.n, v.n_cases, v.n_missing, int(at.same.sum()), v.n_zero)
                more = (chance if metric == "cv_group" else np.nan, method in at.own, at.why.get(method, v.reason))
                rows.append((*at.key, method, at.level, metric, v.value, v.low, v.high, *found, *more))
    return pd.DataFrame(rows, columns=[*RUN, "method", "level", "metric", "value", "low", "high", *counts])


def variation_cells(variation: pd.DataFrame) -> pd.DataFrame:
    """The table of :func:`variation_table` to read: a row a method and metric, a column a level, cells as of :func:`cell`."""
    text = variation.assign(cell=[cell(r, 1) for r in variation.to_dict("records")])
    index = [*RUN, "method", "metric"]
    wide = text.set_index([*index, "level"])["cell"].unstack("level")
    return wide.reindex(pd.MultiIndex.from_frame(text[index].drop_duplicates()), columns=list(dict.fromkeys(text["level"])))


def cell(row: Mapping[str, Any], digits: int, factor: float = 1) -> str:
    """A value, its interval and its rows as text, such as "62 [50, 74], n = 20"; without a value "–, n = 0"."""
    if pd.isna(row["value"]):
        return f"–, n = {row['n']}"
    value, low, high = (f"{factor * row[k]:.{digits}f}" for k in ("value", "low", "high"))
    return f"{value}, n = {row['n']}" if pd.isna(row["low"]) else f"{value} [{low}, {high}], n = {row['n']}"


@dataclass(frozen=True)
class ComparedViews:
    """A run at a level: its views, which of them show one text twice, and each method's values where they are compared.

    ``rows`` (n) case_id level; ``same`` (n,); ``values`` method -> (n, C), NaN where not compared; ``every`` the same with all
    values of views that can be compared, other methods aside; ``own``: the methods on rows of their own; ``why``: method -> why
    it has no row.
    """

    key: tuple[str, str]
    level: str
    rows: pd.DataFrame
    same: np.ndarray
    values: dict[str, np.ndarray]
    every: dict[str, np.ndarray]
    own: frozenset[str]
    why: dict[str, str]


def compared_views(confidence: pd.DataFrame) -> Iterator[ComparedViews]:
    """Each run at each level, then all levels: what the variation of the methods is taken over."""
    again = [c for c in dict.fromkeys(confidence["condition"]) if c.startswith(PARAPHRASES)]
    mine = confidence[confidence["condition"].isin([AS_TOLD.name, *again]) & confidence["method"].isin(RATIO)]
    groups: Any = mine.groupby(RUN, sort=False)
    for key, part in groups if len(again) > 1 else ():
        views = part.drop_duplicates(["case_id", "level", "condition"])
        shown, changed = (views.pivot(index=VIEW, columns="condition", values=c)[again] for c in ("shown", "changed"))
        moved = changed.astype(bool).all(axis=1)
        same = moved & (shown.nunique(axis=1) < len(again))
        wide = {
            str(m): p.pivot(index=VIEW, columns="condition", values="confidence").reindex(shown.index)
            for m, p in part.groupby("method", sort=False)
        }
        whole = pd.DataFrame({m: w.notna().all(axis=1) for m, w in wide.items()})
        levels = shown.index.get_level_values("level")
        for level in [*sorted(set(levels)), "all"]:
            here = np.ones(len(shown), bool) if level == "all" else np.asarray(levels == level)
            possible = here & (moved & ~same).to_numpy()
            used, own = compared_rows(whole[possible])
            values, every, why = {}, {}, {}
            for method, table in wide.items():
                every[method] = table[again].where(whole[method] & possible).to_numpy(float)[here]
                values[method] = table[again].where(used[method].reindex(shown.index, fill_value=False)).to_numpy(float)[here]
                if whole.loc[possible, method].any() and not used[method].any():
                    why[method] = NOT_SHARED
                elif not possible.any() and same[here].any():
                    why[method] = SAME
            rows = shown.index.to_frame(index=False)[here]
            yield ComparedViews(key, str(level), rows, same.to_numpy()[here], values, every, own, why)


def compared_rows(whole: pd.DataFrame) -> tuple[pd.DataFrame, frozenset[str]]:
    """Which rows each method is compared on, and the methods that stand on rows of their own.

    ``whole`` (n rows, a column a method): whether the method has what is needed there. Methods that have at least half of the
    rows are compared on the rows that all of them have; the others keep their own.
    """
    share = whole.mean()
    many = [m for m in whole if share[m] >= LEAST_SHARE]
    used = whole.copy()
    for method in many:
        used[method] = whole[many].all(axis=1)
    return used, frozenset(str(m) for m in whole if 0 < share[m] < LEAST_SHARE)


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

    Columns model dataset condition method level among value low high n n_cases reason own_rows p p_holm. Paired by case and
    level, over the rows that the condition changed and that have a value in both, the same rows for all methods of a condition;
    one that has fewer than half of them stands on its own (``own_rows``). ``among`` is "all answers" or "same answer": where
    the answer changed, the confidence may rightly change with it. ``p``: two-sided paired t over cases, a case's shift its
    mean over levels (none below 10 cases or where all are alike; a bootstrap's share could not be small enough for so many
    cells). ``p_holm``: after Holm over all conditions and methods of a run, level and ``among``.
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
    groups: Any = both.groupby([*RUN, "condition"], sort=False)
    for key, part in groups:
        methods = list(dict.fromkeys(part["method"]))
        for level, at in _by_level(part):
            for among, chosen in (("all", at), ("same", at[at["same"].astype(bool)])):
                wide = chosen.pivot(index=VIEW, columns="method", values="shift").reindex(columns=methods)
                used, own = compared_rows(wide.notna())
                for method in methods:
                    known, cases = wide.loc[used[method], method], wide.index[used[method]].get_level_values("case_id")
                    measured = mean(known, cases, n_draws, seed)
                    p = _paired_p(known.to_numpy(float), cases) if pd.notna(measured[1]) else np.nan
                    rows.append((*key, method, level, AMONG[among], *measured, method in own, p))
    found = pd.DataFrame(rows, columns=[*RUN, "condition", "method", "level", "among", *MEASURED, "own_rows", "p"])
    return found.assign(p_holm=found.groupby([*RUN, "level", "among"])["p"].transform(holm))


def _paired_p(differences: np.ndarray, cases: Any) -> float:
    """Two-sided p of the mean of the cases' mean differences against 0."""
    each = pd.Series(differences).groupby(np.asarray(cases)).mean().to_numpy()
    return float(ttest_1samp(each, 0).pvalue) if each.std() >= NO_SPREAD else float("nan")


def scatter_table(
    variation: pd.DataFrame,
    answers: pd.DataFrame,
    confidence: pd.DataFrame,
    level: int | str = "all",
    n_draws: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """Stability beside discrimination, a row a method, on the same views: CVs (percent) and AUROC as told (0 to 1) at a level.

    Columns model dataset method cv_group cv_sample cv_low cv_high n n_cases auroc auroc_low
    auroc_high auroc_n auroc_cases n_rarer own_rows reason: ``cv_low`` and ``cv_high`` are those of
    CV sample, ``n`` its rows; ``auroc_n`` are those of the AUROC, ``n_rarer`` of the rarer kind,
    right or wrong; ``missing`` says why there is no CV or no AUROC. ``variation`` is the table of
    ``variation_table``, made of ``confidence``; of "all" levels, the AUROC is the mean within
    levels.
    """
    cv = variation[variation["level"] == str(level)].set_index([*RUN, "method", "metric"])
    told = answers[answers["condition"] == AS_TOLD.name], confidence[confidence["condition"] == AS_TOLD.name]
    rows = []
    for at in (a for a in compared_views(confidence) if a.level == str(level)):
        mine = [t[(t["model"] == at.key[0]) & (t["dataset"] == at.key[1])] for t in told]
        area = _areas(at, mine[0], mine[1], n_draws, seed)
        for method in at.values:
            group, each = cv.loc[(*at.key, method, "cv_group")], cv.loc[(*at.key, method, "cv_sample")]
            auroc = area.get(method, {**dict.fromkeys(AREA, np.nan), "n": 0, "n_cases": 0, "missing": ""})
            why = [t["missing"] if pd.isna(t["value"]) else "" for t in (each, auroc)]
            ends = [each[name] for name in ("value", "low", "high", "n", "n_cases")]
            more = (*(auroc[name] for name in AREA), method in at.own, "; ".join(filter(None, why)))
            rows.append((*at.key, method, group["value"], *ends, *more))
    numbers = ["cv_group", "cv_sample", "cv_low", "cv_high", "n", "n_cases", "auroc", "auroc_low", "auroc_high"]
    numbers += ["auroc_n", "auroc_cases", "n_rarer", "own_rows", "missing"]
    return pd.DataFrame(rows, columns=[*RUN, "method", *numbers])


def _areas(
    at: ComparedViews, answers: pd.DataFrame, confidence: pd.DataFrame, n_draws: int, seed: int
) -> dict[str, dict[str, Any]]:
    """Method -> its AUROC as told (value low high reason) on the rows that its CV is taken over."""
    found: dict[str, dict[str, Any]] = {}
    together = [m for m in at.values if m not in at.own]
    for methods in [together, *([m] for m in at.values if m in at.own)]:
        known = [~np.isnan(at.values[m]).any(axis=1) for m in methods]
        keys = at.rows[np.any(known, axis=0)] if known else at.rows.iloc[:0]
        if not len(keys):
            continue
        tables = _Tables(answers.merge(keys, on=VIEW), confidence[confidence["method"].isin(methods)].merge(keys, on=VIEW))
        table = metrics_table(tables, n_draws=n_draws, seed=seed)
        table = table[(table["metric"] == "auroc") & (table["level"] == ("within" if at.level == "all" else at.level))]
        found |= {str(r["method"]): r for r in table.to_dict("records")}
    return found


@dataclass(frozen=True)
class _Tables:
    answers: pd.DataFrame
    confidence: pd.DataFrame


def mean(values: Any, case_ids: Any, n_draws: int, seed: int) -> tuple[float, float, float, int, int, str]:
    """Value, low, high, n, n_cases and reason: the mean of ``values`` (n,) and its interval over cases; none below 10 cases."""
    found, cases = np.asarray(values, dtype=float), np.asarray(case_ids)
    nan, n_cases = float("nan"), len(set(cases))
    if not len(found):
        return nan, nan, nan, 0, 0, "no value in both conditions"
    value = float(found.mean())
    if not enough_cases(cases):
        return value, nan, nan, len(found), n_cases, TOO_FEW
    if np.ptp(found) < NO_SPREAD:
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
