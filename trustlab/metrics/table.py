"""Every metric of a run, with its interval and the number of rows behind it, as one tidy table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from trustlab.metrics.calibration import brier, ece, ece_weighted, without_excess
from trustlab.metrics.correlation import (
    MAX_EXACT,
    pearson,
    pearson_permutation_p,
    pearson_rows,
    spearman,
    spearman_permutation_p,
    spearman_rows,
)
from trustlab.metrics.discrimination import auprc, auroc, ranking_weighted
from trustlab.metrics.intervals import bounded_interval, case_weights
from trustlab.metrics.null_band import Band, rising_band
from trustlab.metrics.run_tables import KEYS, RunTables, checked_answers, joined, need_columns

MEASURED = ["model", "dataset", "method", "metric", "value", "level", "low", "high", "n", "n_cases", "n_rarer", "n_missing"]
COLUMNS = [*MEASURED, "chance", "chance_low", "chance_high", "p", "reason"]
OVER_LEVELS = {
    "pearson": (pearson, pearson_rows, pearson_permutation_p),
    "spearman": (spearman, spearman_rows, spearman_permutation_p),
}
NOTHING: Band = (float("nan"), float("nan"), float("nan"))
COUNTS = ("n_asked", "n_failed", "n_ungraded")
CHUNK = 250
"""Bootstrap draws handled at once: keeps the working arrays near the processor's cache."""


@dataclass(frozen=True)
class _Sample:
    """Rows that have a value: case number, level, correct and confidence, each (n,), and what they were taken from.

    ``draws`` (n_cases, n_draws) says how often each case is in each draw; ``n_asked`` how many rows
    each level should have, ``n_failed`` how many of them have no answer (the call failed, the reply
    was cut off), ``n_ungraded`` how many have one that no grader could judge.
    """

    case: np.ndarray
    level: np.ndarray
    correct: np.ndarray
    confidence: np.ndarray
    bounded: np.ndarray
    draws: np.ndarray
    n_asked: Mapping[int, int]
    n_failed: Mapping[int, int]
    n_ungraded: Mapping[int, int]
    why_missing: str = ""

    def at(self, *levels: int) -> _Sample:
        """The rows of some levels only."""
        keep = np.isin(self.level, levels)
        cut = {name: getattr(self, name)[keep] for name in ("case", "level", "correct", "confidence", "bounded")}
        counts = {name: {level: getattr(self, name)[level] for level in levels} for name in COUNTS}
        return replace(self, **counts, **cut)

    def mean_draws(self, values: np.ndarray) -> np.ndarray:
        """Mean of ``values`` (n,) in every draw, (n_draws,)."""
        n_cases = len(self.draws)
        with np.errstate(divide="ignore", invalid="ignore"):
            total = np.bincount(self.case, weights=values, minlength=n_cases) @ self.draws
            return total / (np.bincount(self.case, minlength=n_cases).astype(float) @ self.draws)

    def weights(self) -> Iterator[np.ndarray]:
        """How often each row is in each draw, (up to CHUNK, n) at a time."""
        for start in range(0, self.draws.shape[1], CHUNK):
            yield self.draws[:, start : start + CHUNK][self.case].T


def metrics_table(
    run: RunTables,
    *,
    n_draws: int = 2000,
    seed: int = 0,
    min_per_class: int = 10,
    scales: Mapping[str, str] | None = None,
    n_jobs: int = 1,
) -> pd.DataFrame:
    """Accuracy, mean confidence, discrimination, correlation and calibration of every method, one value a row.

    ``level`` is '1' to '100', 'pooled' (all rows), 'within' (mean over the levels that have both
    classes, in the estimate and in every draw) or 'across' (accuracy against mean confidence over
    the levels). ``low`` and ``high`` bound a 95 % percentile bootstrap interval that resamples
    cases, all levels together, and are NaN below 10 cases or where all draws are alike. ``chance``
    is what a value would be of a confidence that knows nothing: 0.5 for AUROC, the share of right
    answers for AUPRC; for a correlation the median over confidences that merely rise, held against
    the same accuracies, the middle 95 % of which lie between ``chance_low`` and ``chance_high``
    (:mod:`trustlab.metrics.null_band`), and ``p`` its exact two-sided permutation p-value, up to 8
    levels, which takes every order of the levels as equally likely. Accuracy has method '' and
    counts an unreadable answer as wrong; everything else uses the ``n`` rows where the method has a
    value and leaves out ``n_missing``; ``n_rarer`` of them are of the rarer kind, right or wrong.
    An answer that could not be had (``answer`` missing and ``correct`` NaN: the call failed, the
    reply was cut off) is neither right nor wrong: it is left out of everything, is among
    ``n_missing``, and ``reason`` counts it; so is an answer that could not be graded (``correct``
    NaN, with its reason in the column ``missing``). AUROC and AUPRC are withheld below
    ``min_per_class`` correct or wrong answers ('within': summed over its levels). Brier and ECE are
    given for the methods whose scale is 'probability' in ``scales`` (method name -> scale; by
    default the registry's); from ECE's interval the draws' mean excess is taken off
    (:func:`~trustlab.metrics.calibration.without_excess`). ``reason`` says why a value or an
    interval is NaN, which levels were left out, and how many confidences are bounds. Raises
    ``ValueError`` on missing columns, repeated keys, answers that are lacking, or infinite
    confidences.
    """
    answers = checked_answers(run.answers)
    confidence = joined(answers, run.confidence)
    scales = _registered_scales() if scales is None else scales
    blocks: list[list[dict]] = []
    for dataset, model in answers[["dataset", "model"]].drop_duplicates().itertuples(index=False):
        part = answers.loc[(answers["dataset"] == dataset) & (answers["model"] == model)]
        label = {"model": model, "dataset": dataset}
        sample = _answer_sample(part, n_draws, seed)
        blocks.append([{**label, "method": "", **row} for row in _accuracy_rows(sample)])
        mine = confidence.loc[(confidence["dataset"] == dataset) & (confidence["model"] == model)]
        cases = np.unique(part["case_id"])
        jobs = []
        for method, rows in mine.groupby("method", sort=False):
            chosen = _method_sample(rows, cases, sample)
            jobs.append(delayed(_method_rows)(str(method), chosen, scales.get(str(method)) == "probability", min_per_class))
        done: Any = Parallel(n_jobs=n_jobs)(jobs)
        blocks += [[{**label, **row} for row in block] for block in done]
    return pd.DataFrame([row for block in blocks for row in block], columns=pd.Index(COLUMNS))


def shared_rows(confidence: pd.DataFrame, methods: Sequence[str]) -> pd.DataFrame:
    """The keys (case_id, dataset, level, model) for which every one of ``methods`` has a confidence, sorted.

    Raises ``ValueError`` for no methods or a method that the table does not hold.
    """
    need_columns(confidence, [*KEYS, "method", "confidence"], "confidence")
    wanted, held = set(methods), set(confidence["method"])
    if not wanted or not wanted <= held:
        raise ValueError(f"methods must be one or more of {sorted(held)}; received {sorted(wanted)}")
    known = confidence.loc[confidence["method"].isin(list(wanted)) & confidence["confidence"].notna()]
    counts = known.groupby(KEYS, observed=True)["method"].nunique().reset_index()
    return counts.loc[counts["method"] == len(wanted), KEYS].reset_index(drop=True)


def _registered_scales() -> dict[str, str]:
    from trustlab.confidence import METHODS  # here, so that metrics alone never load the methods' libraries

    return {name: method.scale for name, method in METHODS.items()}


def _answer_sample(part: pd.DataFrame, n_draws: int, seed: int) -> _Sample:
    """The answers that were had and graded; every case is drawn, so that all methods share their draws."""
    cases, code = np.unique(part["case_id"], return_inverse=True)
    level, correct, failed, ungraded = (part[name].to_numpy() for name in ("level", "correct", "failed", "ungraded"))
    draws = np.ascontiguousarray(case_weights(cases, n_draws, seed).T, dtype=np.float64)
    asked = {int(q): int(np.sum(level == q)) for q in np.unique(level)}
    lost, open_ = ({q: int(which[level == q].sum()) for q in asked} for which in (failed, ungraded))
    had = ~failed & ~ungraded
    n = int(had.sum())
    return _Sample(code[had], level[had], correct[had], np.full(n, np.nan), np.zeros(n, bool), draws, asked, lost, open_)


def _method_sample(rows: pd.DataFrame, cases: np.ndarray, answers: _Sample) -> _Sample:
    known = rows.loc[rows["confidence"].notna()]
    lost = rows.loc[rows["confidence"].isna(), "missing"].fillna("no reason given").replace("", "no reason given")
    return replace(
        answers,
        case=np.searchsorted(cases, known["case_id"].to_numpy()),
        level=known["level"].to_numpy(),
        correct=known["correct"].to_numpy().astype(int),
        confidence=known["confidence"].to_numpy(),
        bounded=(known["bound"].notna() & (known["bound"] != "")).to_numpy(),
        why_missing=str(lost.mode().iloc[0]) if len(lost) else "no row in the table",
    )


def _accuracy_rows(sample: _Sample) -> list[dict]:
    parts = [*((str(level), sample.at(level)) for level in sample.n_asked), ("pooled", sample)]
    return [_row("accuracy", level, part, _mean(part.correct), part.mean_draws(part.correct)) for level, part in parts]


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _method_rows(method: str, sample: _Sample, is_probability: bool, min_per_class: int) -> list[dict]:
    by_level = {level: sample.at(level) for level in sample.n_asked}
    rows = []
    for level, part in by_level.items():
        rows.append(_row("mean_confidence", str(level), part, _mean(part.confidence), part.mean_draws(part.confidence)))
    rows += _discrimination_rows(sample, by_level, min_per_class)
    rows += _correlation_rows(sample, by_level)
    if is_probability:
        try:
            rows += _calibration_rows(sample)
        except ValueError as error:
            raise ValueError(f"method {method!r} has scale 'probability': {error}") from error
    return [{"method": method, **row} for row in rows]


def _discrimination_rows(sample: _Sample, by_level: Mapping[int, _Sample], min_per_class: int) -> list[dict]:
    """AUROC and AUPRC pooled, at each level, and as the mean over the levels that have both classes."""
    parts = {"pooled": sample, **{str(level): part for level, part in by_level.items()}}
    draws = {name: _ranking_draws(part) for name, part in parts.items() if _rarer_class(part)}
    mixed = [level for level in by_level if str(level) in draws]
    within = sample.at(*mixed) if len(sample.case) else sample
    left_out = ", ".join(str(level) for level in by_level if level not in mixed)
    note = f"one class only at level {left_out}: left out" if left_out else ""
    least = max(min_per_class, 1)
    withheld = f"fewer than {least} correct or wrong"
    rows = []
    for which, (metric, measure) in enumerate((("auroc", auroc), ("auprc", auprc))):
        values = {name: measure(part.correct, part.confidence) for name, part in parts.items()}
        chances = {name: 0.5 if metric == "auroc" else _mean(part.correct) for name, part in parts.items()}
        for name, part in parts.items():
            if _rarer_class(part) < least:
                rows.append(_row(metric, name, part, float("nan"), None, withheld))
            else:
                rows.append(_row(metric, name, part, values[name], draws[name][which], chance=_alone(chances[name])))
        if _rarer_class(within) < least:
            rows.append(_row(metric, "within", within, float("nan"), None, withheld))
        else:
            mean, chance = (float(np.mean([of[str(level)] for level in mixed])) for of in (values, chances))
            spread = _mean_of_known([draws[str(level)][which] for level in mixed])
            rows.append(_row(metric, "within", within, mean, spread, note, _alone(chance)))
    return rows


def _alone(chance: float) -> Band:
    """A level of chance that is known, and so has no band."""
    return float("nan"), chance, float("nan")


def _rarer_class(sample: _Sample) -> int:
    n_correct = int(sample.correct.sum())
    return min(n_correct, len(sample.correct) - n_correct)


def _ranking_draws(sample: _Sample) -> tuple[np.ndarray, np.ndarray]:
    chunks = [ranking_weighted(sample.correct, sample.confidence, weights) for weights in sample.weights()]
    return np.concatenate([c[0] for c in chunks]), np.concatenate([c[1] for c in chunks])


def _mean_of_known(draws: Sequence[np.ndarray]) -> np.ndarray:
    """Mean over levels of each draw's defined values, (n_draws,); NaN where no level has one."""
    stacked = np.stack(draws)
    known = ~np.isnan(stacked)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(known, stacked, 0).sum(axis=0) / known.sum(axis=0)


def _correlation_rows(sample: _Sample, by_level: Mapping[int, _Sample]) -> list[dict]:
    """Accuracy against mean confidence over the levels, both on the rows the method has."""
    parts = [part for part in by_level.values() if len(part.case)]
    accuracy, confidence = [part.correct.mean() for part in parts], [part.confidence.mean() for part in parts]
    draws = None
    if len(parts) >= 3:
        draws = (
            np.stack([part.mean_draws(part.correct) for part in parts], axis=1),
            np.stack([part.mean_draws(part.confidence) for part in parts], axis=1),
        )
    rows = []
    for metric, (measure, over_rows, permutation_p) in OVER_LEVELS.items():
        value = measure(accuracy, confidence)
        why, band, p = "", NOTHING, float("nan")
        if draws is None:
            why = "fewer than 3 levels"
        elif np.isnan(value):
            why = "accuracy or mean confidence is the same at every level"
        else:
            band = rising_band(accuracy, metric)
            p = permutation_p(accuracy, confidence) if len(parts) <= MAX_EXACT else p
        rows.append(_row(metric, "across", sample, value, None if draws is None else over_rows(*draws), why, band, p))
    return rows


def _calibration_rows(sample: _Sample) -> list[dict]:
    squared = (np.clip(sample.confidence, 0, 1) - sample.correct) ** 2
    value = brier(sample.correct, sample.confidence)
    error = ece(sample.correct, sample.confidence)
    chunks = [ece_weighted(sample.correct, sample.confidence, weights) for weights in sample.weights()]
    return [
        _row("brier", "pooled", sample, value, sample.mean_draws(squared)),
        _row("ece", "pooled", sample, error, without_excess(np.concatenate(chunks), error)),
    ]


def _row(
    metric: str,
    level: str,
    part: _Sample,
    value: float,
    draws: np.ndarray | None,
    why: str = "",
    chance: Band = NOTHING,
    p: float = float("nan"),
) -> dict:
    """One line of the table; no interval without a value, no value without rows."""
    notes = [why] if why else []
    n = len(part.case)
    low = high = float("nan")
    failed, ungraded = sum(part.n_failed.values()), sum(part.n_ungraded.values())
    if n == 0 and sum(part.n_asked.values()):
        nobody = "no graded answer" if ungraded else "no answer"
        notes = [nobody] if metric == "accuracy" else [f"no confidence: {part.why_missing}"]
    elif not np.isnan(value) and draws is not None:
        low, high, reason = bounded_interval(draws, part.case)
        if metric == "accuracy" and value in (0, 1) and reason.endswith("alike"):
            reason = "no interval: all answers are alike"
        notes += [reason] if reason else []
    if part.bounded.any():
        notes.append(f"{int(part.bounded.sum())} of {n} confidences are bounds")
    if failed:
        notes.append(f"{failed} answer{'s' if failed > 1 else ''} missing")
    if ungraded:
        notes.append(f"{ungraded} answer{'s' if ungraded > 1 else ''} ungraded")
    return {
        "metric": metric,
        "value": value,
        "level": level,
        "low": low,
        "high": high,
        "n": n,
        "n_cases": len(np.unique(part.case)),
        "n_rarer": _rarer_class(part),
        "n_missing": sum(part.n_asked.values()) - n,
        "chance": chance[1],
        "chance_low": chance[0],
        "chance_high": chance[2],
        "p": p,
        "reason": "; ".join(notes),
    }
