"""By how much does one column of confidences beat another on the same answers? Differences with paired intervals.

Two columns (variants of a method, formulas, settings) judge the same cases, so their errors go together: the interval of
the difference is drawn from both at once, the same cases in every draw, and is narrower than two intervals side by side.
"""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false, reportGeneralTypeIssues=false, reportReturnType=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from trustlab.metrics.correlation import pearson_rows, spearman_rows
from trustlab.metrics.discrimination import auroc, ranking_weighted
from trustlab.metrics.intervals import bounded_interval, case_weights
from trustlab.metrics.significance import bootstrap_p, holm
from trustlab.metrics.table import KEYS

METRICS = ("auroc", "auprc", "pearson", "spearman")
RANKING = ("auroc", "auprc")
"""As :func:`ranking_weighted` gives them."""
OVER_LEVELS = {"pearson": pearson_rows, "spearman": spearman_rows}
MIN_COVERAGE = 0.5
"""A column with a value in a smaller share of the answers is left out where many are compared on the rows that all have."""
FAMILY = ["model", "dataset", "metric", "level"]
"""What is compared within one of these is a family of tests, corrected together."""
COLUMNS = ["metric", "level", "value", "reference", "difference", "low", "high", "n", "n_cases", "n_rarer", "n_missing"]
COLUMNS += ["p", "p_holm", "standard_error", "reason"]


@dataclass(frozen=True)
class _Pair:
    """The rows that both columns have: case (n,), level (n,), and of [column, reference] correct and confidence, each (2, n).

    ``weights`` (B, n) says how often each row is in each bootstrap draw.
    """

    case: np.ndarray
    level: np.ndarray
    correct: np.ndarray
    confidence: np.ndarray
    weights: np.ndarray

    def at(self, keep: np.ndarray) -> _Pair:
        """The rows where ``keep`` (n,) is true."""
        weights = np.ascontiguousarray(self.weights.T[keep]).T
        return _Pair(self.case[keep], self.level[keep], self.correct[:, keep], self.confidence[:, keep], weights)

    @property
    def rarer(self) -> int:
        """Answers of the rarer kind, right or wrong, in the column that has fewer of them."""
        right = self.correct.sum(axis=1)
        return int(min(right.min(), (self.correct.shape[1] - right).min()))


def paired_differences(
    table: pd.DataFrame,
    reference: str,
    *,
    by: str = "variant",
    metrics: Sequence[str] = METRICS,
    shared: str = "pair",
    n_draws: int = 2000,
    seed: int = 0,
    min_per_class: int = 10,
) -> pd.DataFrame:
    """Each column of confidences against ``reference``: their metrics on the same rows, the difference and its interval.

    ``table`` is tidy: case_id dataset level model, the name of the column (``by``), confidence and
    correct (0, 1 or NaN), and maybe method (compared within, unless ``by`` names it) and missing
    (why a confidence is NaN). Columns may give different answers: each is judged by its own
    ``correct``. The result has a row a model, data set, method, column, metric and level: ``level``
    is 'pooled' and 'within' (mean over the levels that have both classes in both columns) for auroc
    and auprc, 'across' for pearson and spearman (accuracy against mean confidence over the levels).
    ``value`` is the column's, ``reference`` the reference's, ``difference`` the first minus the
    second, ``low`` and ``high`` its 95 % percentile bootstrap interval over cases, the same draws
    for all (and for ``metrics_table`` with that seed). ``p`` is two-sided, from these draws
    (:func:`~trustlab.metrics.significance.bootstrap_p`), ``p_holm`` after Holm over all that is
    compared in one :data:`FAMILY`, ``standard_error`` the draws' standard deviation. ``shared``:
    "pair" compares on the ``n`` rows that the two have, "all" on those that every column has;
    ``n_missing`` are left out, and ``n_rarer`` are of the rarer kind, right or wrong, in the column
    that has fewer of them. Withheld below ``min_per_class`` correct or wrong answers; without
    interval, p and standard error below 10 cases or where the draws are all alike; ``reason`` says
    so. Raises ``ValueError`` for lacking columns, an unknown metric or reference, repeated rows, or
    no other column.
    """
    table = _checked(table, reference, by, metrics, shared)
    inner = _inner(table, by)
    rows: list[dict] = []
    for (model, dataset), run in table.groupby(["model", "dataset"], sort=False):
        cases = np.unique(run["case_id"])
        draws = np.ascontiguousarray(case_weights(cases, n_draws, seed).T)
        done: dict = {}
        for key, part in run.groupby(inner, sort=False) if inner else [((), run)]:
            label = {"model": model, "dataset": dataset, **dict(zip(inner, key, strict=True))}
            sides = {str(name): side.set_index(["case_id", "level"]) for name, side in part.groupby(by, sort=False)}
            if reference not in sides:
                raise ValueError(f"{by} has no {reference!r} for {label}; it has {list(sides)}")
            common = None
            if shared == "all":
                common = _known(sides[reference]).index
                for side in sides.values():
                    common = common.intersection(_known(side).index)
            for name, side in sides.items():
                if name != reference:
                    found = _compared(side, sides[reference], common, cases, draws, metrics, min_per_class, done)
                    rows += [{**label, by: name, **row} for row in found]
    found = pd.DataFrame(rows, columns=["model", "dataset", *inner, by, *COLUMNS])
    return found.assign(p_holm=found.groupby(FAMILY, sort=False)["p"].transform(holm))


def within_level(level: np.ndarray, correct: np.ndarray, confidence: np.ndarray, weights: np.ndarray) -> tuple[float, np.ndarray]:
    """AUROC as the mean over the levels that have both classes: the value, and it in each of B draws, (B,).

    ``level``, ``correct`` and ``confidence`` are (n,), ``weights`` (B, n). In a draw that leaves a level one class, the mean is
    over the others. NaN where no level has both.
    """
    values, draws = [], []
    for q in np.unique(level):
        at = level == q
        if 0 < correct[at].sum() < at.sum():
            values.append(auroc(correct[at], confidence[at]))
            draws.append(ranking_weighted(correct[at], confidence[at], np.ascontiguousarray(weights.T[at]).T)[0])
    if not values:
        return float("nan"), np.full(len(weights), np.nan)
    return float(np.mean(values)), _mean_of_known(draws)


def _checked(table: pd.DataFrame, reference: str, by: str, metrics: Sequence[str], shared: str) -> pd.DataFrame:
    need = [*KEYS, by, "confidence", "correct"]
    if lacking := [name for name in need if name not in table.columns]:
        raise ValueError(f"the table lacks the columns {lacking}; it has {list(table.columns)}")
    if not metrics or not set(metrics) <= set(METRICS):
        raise ValueError(f"metrics must be some of {list(METRICS)}; received {list(metrics)}")
    if shared not in ("pair", "all"):
        raise ValueError(f"shared is {shared!r}; allowed are 'pair' and 'all'")
    names = list(dict.fromkeys(table[by].astype(str)))
    if reference not in names or len(names) < 2:
        raise ValueError(f"{by} must hold the reference {reference!r} and another; it holds {names}")
    keys = [*KEYS, by, *_inner(table, by)]
    if table.duplicated(keys).any():
        raise ValueError(f"each {', '.join(keys)} may come once; received {table[table.duplicated(keys)].iloc[0].to_dict()}")
    return table.assign(**{by: table[by].astype(str), "level": table["level"].astype(int)})


def tested(draws: np.ndarray, case_ids: np.ndarray) -> dict[str, Any]:
    """A difference's low, high (95 % interval), p, standard_error and reason from its draws (B,) over cases ``case_ids`` (n,).

    NaN where :func:`trustlab.metrics.intervals.bounded_interval` gives no interval, whose reason it is.
    """
    low, high, reason = bounded_interval(draws, case_ids)
    p, error = (float("nan"), float("nan")) if reason else (bootstrap_p(draws), float(np.nanstd(draws, ddof=1)))
    return {"low": low, "high": high, "p": p, "standard_error": error, "reason": reason}


def _inner(table: pd.DataFrame, by: str) -> list[str]:
    """The column that is compared within, if there is one beside ``by``."""
    return ["method"] if "method" in table and by != "method" else []


def _known(side: pd.DataFrame) -> pd.DataFrame:
    return side[side["confidence"].notna() & side["correct"].notna()]


def _compared(
    side: pd.DataFrame,
    reference: pd.DataFrame,
    common: pd.Index | None,
    cases: np.ndarray,
    draws: np.ndarray,
    metrics: Sequence[str],
    min_per_class: int,
    done: dict,
) -> list[dict]:
    """The metrics of one pair, a row each; no value, with the reason, where the two share no row.

    ``done`` keeps what was drawn: the reference, most often on the same rows, is not drawn anew for each column.
    """
    index = _known(side).index.intersection(_known(reference).index, sort=False) if common is None else common
    n_asked = len(side.index.union(reference.index))
    both = [side.loc[index], reference.loc[index]]
    code = np.searchsorted(cases, index.get_level_values("case_id").to_numpy())
    pair = _Pair(
        code,
        index.get_level_values("level").to_numpy(int),
        np.stack([one["correct"].to_numpy(float) for one in both]),
        np.stack([one["confidence"].to_numpy(float) for one in both]),
        draws[code].T,
    )
    why = _why_none(side, reference) if len(index) == 0 else ""
    rows: list[dict] = []
    if wanted := [m for m in RANKING if m in metrics]:
        rows += _ranking_rows(pair, wanted, max(min_per_class, 1), why, done)
    for metric in (m for m in OVER_LEVELS if m in metrics):
        rows.append(_over_levels(pair, metric, why))
    return [{**row, "n_missing": n_asked - row["n"]} for row in rows]


def _why_none(side: pd.DataFrame, reference: pd.DataFrame) -> str:
    for one in (side, reference):
        if not len(_known(one)):
            lost = one["missing"].fillna("").replace("", np.nan).dropna() if "missing" in one else pd.Series(dtype=str)
            return f"no confidence: {lost.mode().iloc[0] if len(lost) else 'no reason given'}"
    return "no row that both have"


def _ranking_rows(pair: _Pair, wanted: Sequence[str], least: int, why: str, done: dict) -> list[dict]:
    """AUROC and AUPRC, pooled and within level."""
    levels = np.unique(pair.level)
    parts = {int(q): pair.at(pair.level == q) for q in levels}
    mixed = [q for q, part in parts.items() if part.rarer]
    left_out = ", ".join(str(q) for q in parts if q not in mixed)
    note = f"one class only at level {left_out}: left out" if left_out else ""
    within = pair.at(np.isin(pair.level, mixed)) if mixed else pair
    shown = {"pooled": pair} | (parts if within.rarer >= least else {})
    made = {q: _ranking(part, done) for q, part in shown.items() if part.rarer}
    rows = []
    for metric in wanted:
        which = RANKING.index(metric)
        for level, part in (("pooled", pair), ("within", within)):
            if why or part.rarer < least or (level == "within" and not mixed):
                few = f"fewer than {least} correct or wrong" if part.rarer < least else note
                rows.append(_row(metric, level, part, None, None, why or few))
            elif level == "pooled":
                values, draws = made["pooled"]
                rows.append(_row(metric, level, part, values[which], draws[which][0] - draws[which][1]))
            else:
                values = np.mean([made[q][0][which] for q in mixed], axis=0)
                sides = [_mean_of_known([made[q][1][which][i] for q in mixed]) for i in (0, 1)]
                rows.append(_row(metric, level, part, values, sides[0] - sides[1], note))
    return rows


def _ranking(pair: _Pair, done: dict) -> tuple[np.ndarray, np.ndarray]:
    """AUROC and AUPRC of [column, reference]: values (2, 2) and draws (2, 2, B), metric first."""
    sides = []
    for right, sure in zip(pair.correct, pair.confidence, strict=True):
        key = tuple(x.tobytes() for x in (pair.case, right, sure))
        if key not in done:
            once = ranking_weighted(right, sure, np.ones((1, len(right))))
            done[key] = [float(values[0]) for values in once], ranking_weighted(right, sure, pair.weights)
        sides.append(done[key])
    return np.array([values for values, _ in sides]).T, np.array([draws for _, draws in sides]).swapaxes(0, 1)


def _mean_of_known(draws: Sequence[np.ndarray]) -> np.ndarray:
    """Mean over levels of each draw's defined values, (B,); NaN where no level has one."""
    stacked = np.stack(draws)
    known = ~np.isnan(stacked)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(known, stacked, 0).sum(axis=0) / known.sum(axis=0)


def _over_levels(pair: _Pair, metric: str, why: str) -> dict:
    """The correlation over the levels between accuracy and mean confidence, of both columns."""
    levels = np.unique(pair.level)
    if why or len(levels) < 3:
        return _row(metric, "across", pair, None, None, why or "fewer than 3 levels")
    weights = np.vstack([np.ones((1, len(pair.case))), pair.weights])  # the first draw is the sample itself
    at = (pair.level[:, None] == levels).astype(float)
    with np.errstate(divide="ignore", invalid="ignore"):
        means = [[(weights * series[i]) @ at / (weights @ at) for series in (pair.correct, pair.confidence)] for i in (0, 1)]
    found = np.stack([OVER_LEVELS[metric](accuracy, confidence) for accuracy, confidence in means])
    if np.isnan(found[:, 0]).any():
        return _row(metric, "across", pair, found[:, 0], None, "accuracy or mean confidence is the same at every level")
    return _row(metric, "across", pair, found[:, 0], found[0, 1:] - found[1, 1:])


def _row(metric: str, level: str, part: _Pair, values: Any, draws: np.ndarray | None, why: str = "") -> dict:
    """One line, as :func:`tested` where there are draws."""
    value, reference = (float(v) for v in values) if values is not None else (float("nan"), float("nan"))
    found = {"reason": ""} if draws is None else tested(draws, part.case)
    return {
        "metric": metric,
        "level": level,
        "value": value,
        "reference": reference,
        "difference": value - reference,
        "n": len(part.case),
        "n_cases": len(np.unique(part.case)),
        "n_rarer": part.rarer,
        **found,
        "reason": "; ".join(filter(None, [why, found["reason"]])),
    }
