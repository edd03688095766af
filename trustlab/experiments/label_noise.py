"""What an unreliable grader would do to AUROC: labels flipped at random, and the formula for what to expect."""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import kendalltau, rankdata

from trustlab.experiments.calibrated import judged
from trustlab.metrics.estimate import MIN_CASES, TOO_FEW
from trustlab.metrics.ties import tied

RATES = (0.0, 0.05, 0.1, 0.2)


def expected_auroc(auroc: float, prevalence: float, right_to_wrong: float, wrong_to_right: float | None = None) -> float:
    """AUROC to expect after flips that do not look at the confidence, in a large sample.

    ``prevalence`` is the true share of right answers, in (0, 1); the other two are the chances that a right answer is called
    wrong and a wrong one right (the same where ``None``). Let s be the share of right answers among those called right, minus
    their share among those called wrong. A pair of one called right and one called wrong is then as it seems, reversed or of
    one kind, so AUROC' = 1/2 + s (AUROC - 1/2). Raises ``ValueError`` for chances outside [0, 1] or a class left empty.
    """
    lost, gained = right_to_wrong, right_to_wrong if wrong_to_right is None else wrong_to_right
    if not (0 < prevalence < 1 and 0 <= lost <= 1 and 0 <= gained <= 1):
        raise ValueError(f"prevalence must lie in (0, 1) and flips in [0, 1]; received {prevalence}, {lost}, {gained}")
    called_right = prevalence * (1 - lost) + (1 - prevalence) * gained
    if not 0 < called_right < 1:
        raise ValueError(f"flips of {lost} and {gained} leave one class only")
    s = prevalence * (1 - lost) / called_right - prevalence * lost / (1 - called_right)
    return 0.5 + s * (auroc - 0.5)


def auroc_under_noise(
    answers: pd.DataFrame,
    confidence: pd.DataFrame,
    methods: Sequence[str],
    rates: Sequence[float] = RATES,
    n_repeats: int = 20,
    seed: int = 0,
    min_per_class: int = 10,
) -> pd.DataFrame:
    """AUROC of each method when each grade is flipped with chance ``rate``, right or wrong alike.

    Columns model dataset method rate level value low high expected n n_cases n_rarer reason.
    ``level`` is "pooled" or "within" (mean over the levels that have both classes without noise).
    ``value`` is the mean over the repeats and ``low`` and ``high`` their 2.5 and 97.5 percentiles:
    the spread over flips, not over cases, and none below 10 of these. ``n`` counts answers,
    ``n_rarer`` those of the rarer kind before any flip. ``expected`` is :func:`expected_auroc`,
    within level as the mean of the levels'. All methods share the flips, and a grade flipped at a
    rate stays flipped at a higher one. Withheld below ``min_per_class`` right or wrong answers,
    with the reason. Raises ``ValueError`` for rates outside [0, 1], no repeats, or a method that
    ``confidence`` does not hold.
    """
    rows = []
    for part in _parts(answers, confidence, methods, rates, n_repeats, seed, min_per_class):
        for method, draws in part.draws.items():
            for i, rate in enumerate(rates):
                known = draws[i][~np.isnan(draws[i])]
                counts, reason = part.counts[method], part.reasons[method]
                several = len(known) and counts["n_cases"] >= MIN_CASES
                low, high = np.percentile(known, [2.5, 97.5]) if several else (np.nan, np.nan)
                value = known.mean() if len(known) else np.nan
                reason = reason or ("" if several else TOO_FEW)
                rows.append(
                    {**part.label, "method": method, "rate": float(rate), "level": part.level, "value": value, "low": low}
                    | {"high": high, "expected": part.expected[method][i], **counts, "missing": reason}
                )
    columns = ["model", "dataset", "method", "rate", "level", "value", "low", "high", "expected"]
    columns += ["n", "n_cases", "n_rarer", "missing"]
    return pd.DataFrame(rows, columns=columns)


def order_under_noise(
    answers: pd.DataFrame,
    confidence: pd.DataFrame,
    methods: Sequence[str],
    rates: Sequence[float] = RATES,
    n_repeats: int = 20,
    seed: int = 0,
    min_per_class: int = 10,
) -> pd.DataFrame:
    """How far flipped grades change the order of the methods: Kendall's tau (b) against their order without noise.

    Columns model dataset level rate tau low high n_methods moved reason. ``tau`` is the mean over the repeats, ``low`` and
    ``high`` their 2.5 and 97.5 percentiles (the spread over flips). ``moved`` names the methods whose place changed in the order
    by mean AUROC, such as "poc 1 to 2". Methods without a value are left out. Otherwise as :func:`auroc_under_noise`.
    """
    rows = []
    for part in _parts(answers, confidence, methods, rates, n_repeats, seed, min_per_class):
        names = [m for m, draws in part.draws.items() if not np.isnan(draws).any()]
        clean = np.array([part.clean[m] for m in names])
        for i, rate in enumerate(rates):
            noisy = np.array([part.draws[m][i] for m in names]).reshape(len(names), -1)
            ranked = zip([tied(clean)] * noisy.shape[1], tied(noisy.T), strict=True)
            taus = np.array([kendalltau(*two).statistic for two in ranked] if len(names) > 1 else [])
            known = taus[~np.isnan(taus)]
            low, high = np.percentile(known, [2.5, 97.5]) if len(known) else (np.nan, np.nan)
            tau = known.mean() if len(known) else np.nan
            before, after = (_places(values) for values in (clean, noisy.mean(axis=1)))
            moved = ", ".join(f"{m} {b} to {a}" for m, b, a in zip(names, before, after, strict=True) if a != b)
            reason = "" if len(known) else "fewer than two methods that differ"
            rows.append(
                {**part.label, "level": part.level, "rate": float(rate), "tau": tau, "low": low, "high": high}
                | {"n_methods": len(names), "moved": moved, "missing": reason}
            )
    columns = ["model", "dataset", "level", "rate", "tau", "low", "high", "n_methods", "moved", "missing"]
    return pd.DataFrame(rows, columns=columns)


@dataclass(frozen=True)
class _Part:
    """One model, data set and level: of each method the AUROC without noise and in every draw, (n_rates, n_repeats)."""

    label: dict[str, Any]
    level: str
    clean: dict[str, float]
    draws: dict[str, np.ndarray]
    expected: dict[str, np.ndarray]
    counts: dict[str, dict[str, int]]
    reasons: dict[str, str]


def _parts(
    answers: pd.DataFrame,
    confidence: pd.DataFrame,
    methods: Sequence[str],
    rates: Sequence[float],
    n_repeats: int,
    seed: int,
    min_per_class: int,
) -> Iterator[_Part]:
    held = list(dict.fromkeys(confidence["method"]))
    if not methods or not set(methods) <= set(held):
        raise ValueError(f"methods must be one or more of {held}; received {list(methods)}")
    if n_repeats < 1 or not len(rates) or not all(0 <= rate <= 1 for rate in rates):
        raise ValueError(f"rates must lie in [0, 1] and n_repeats be at least 1; received {list(rates)} and {n_repeats}")
    readable = answers[answers["answer"].notna() & answers["correct"].notna()]
    groups: Any = readable.groupby(["model", "dataset"], sort=False)
    for (model, dataset), part in groups:
        part = part.sort_values(["case_id", "level"]).reset_index(drop=True)  # so that the flips do not hang on the rows' order
        chance = np.random.default_rng(seed).random((n_repeats, len(part)))
        part = part.assign(flips=np.arange(len(part)))
        mine = confidence[(confidence["model"] == model) & (confidence["dataset"] == dataset)]
        table = judged(part, mine[mine["method"].isin(list(methods))])
        table = table.merge(part[["case_id", "level", "flips"]], on=["case_id", "level"], validate="many_to_one")
        for level in ("pooled", "within"):
            found = {m: _measured(table[table["method"] == m], level, rates, chance, min_per_class) for m in methods}
            columns = [dict(zip(found, values, strict=True)) for values in zip(*found.values(), strict=True)]
            yield _Part({"model": model, "dataset": dataset}, level, *columns)


def _measured(
    rows: Any, level: str, rates: Sequence[float], chance: np.ndarray, min_per_class: int
) -> tuple[float, np.ndarray, np.ndarray, dict[str, int], str]:
    """AUROC without noise, under it (n_rates, n_repeats), as expected (n_rates,), the counts, and why missing."""
    groups = [rows] if level == "pooled" else [part for _, part in rows.groupby("level")]
    groups = [part for part in groups if part["correct"].nunique() == 2]
    n = sum(map(len, groups))
    n_right = int(sum(part["correct"].sum() for part in groups))
    nothing = np.full((len(rates), len(chance)), np.nan)
    n_cases = len({case for part in groups for case in part["case_id"]})
    counts = {"n": n, "n_cases": n_cases, "n_rarer": min(n_right, n - n_right)}
    if counts["n_rarer"] < max(min_per_class, 1):
        why = f"fewer than {max(min_per_class, 1)} correct or wrong" if len(rows) else "no confidence"
        return float("nan"), nothing, nothing[:, 0], counts, why
    clean, draws, expected = [], [], []
    for part in groups:
        correct, ranks = part["correct"].to_numpy(bool), rankdata(tied(part["confidence"]))
        flip = chance[:, part["flips"].to_numpy()]
        clean.append(_auroc(correct[None], ranks)[0])
        draws.append([_auroc(correct ^ (flip < rate), ranks) for rate in rates])
        expected.append([expected_auroc(clean[-1], correct.mean(), rate) for rate in rates])
    return float(np.mean(clean)), np.mean(draws, axis=0), np.mean(expected, axis=0), counts, ""


def _auroc(correct: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    """AUROC (R,) of labels (R, n) from the confidences' mid-ranks (n,): Mann and Whitney's count; NaN where one class is left."""
    n_right = correct.sum(axis=1)
    n_pairs = n_right * (correct.shape[1] - n_right)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(n_pairs > 0, (correct @ ranks - n_right * (n_right + 1) / 2) / n_pairs, np.nan)


def _places(values: np.ndarray) -> list[int]:
    """Place of each value, the largest first; near-ties in the order given."""
    order = np.argsort(-tied(values), kind="stable")
    return [int(place) + 1 for place in np.argsort(order, kind="stable")]
