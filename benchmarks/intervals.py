"""Do the intervals hold what they promise, and does the paired test? ``python -m
benchmarks.intervals``.

Populations whose true values are known from a very large sample: 170 cases of six answers each (one
an information level), which go together, since an easy case is answered rightly, and confidently,
at most levels. In each repetition a new sample is drawn, its interval made as the tables make it
(cases drawn, with all their answers), and asked whether the truth lies inside. Beside it what
drawing single answers would claim: answers of one case are not independent. Then the paired test on
two methods that are equally good (how often does it find a difference at 5 %?) and on two that are
not (how often does it see it?).

The exit status is 1 if the coverage for accuracy, AUROC or the paired difference leaves 92 to 97 %,
or the test's error 3 to 8 %, by more than chance explains (three standard errors). The other
metrics are printed to be known, ECE above all: it is biased upwards.
"""

# pandas' types leave open what a row of a table holds.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy import special

from trustlab.metrics.calibration import ece_weighted
from trustlab.metrics.discrimination import ranking_weighted
from trustlab.metrics.estimate import Draws, bounded_interval, without_excess
from trustlab.metrics.paired import paired_differences
from trustlab.metrics.selective import selective_weighted
from trustlab.metrics.significance import sample_size_for_power

LEVELS = 6
TRUTH = 100_000
"""Cases from which the true values are taken."""
CHUNK = 100
"""Draws handled at once: keeps the working arrays near the processor's cache."""
DIFFERENCES = ("auroc, a minus b", "auroc within, a minus b")
"""Pooled over the levels, and level-stratified."""
ASKED = ("accuracy", "auroc", "auroc level-stratified", *DIFFERENCES)
"""What the exit status is about; the others are printed."""
COVERAGE, ERROR = (0.92, 0.97), (0.03, 0.08)


Measures = Callable[["Sample", np.ndarray], dict[str, np.ndarray]]


@dataclass(frozen=True)
class Population:
    """How right answers and confidences of methods a and b come about; all effects are in standard
    deviations of their noise.

    ``signal`` and ``signal_b``: how far right answers lie above wrong ones in confidence. ``ease``:
    how much easier the answers of this population are. ``steps``: the confidence is rounded to so
    many steps (0: not at all), as the share of 15 samples is.
    """

    name: str
    signal: float
    ease: float = 0.0
    steps: int = 0
    signal_b: float | None = None


@dataclass(frozen=True)
class Sample:
    """Answers: case and level (n,), correct (n,) and the confidences of methods a and b (n,), in
    (0, 1)."""

    case: np.ndarray
    level: np.ndarray
    correct: np.ndarray
    a: np.ndarray
    b: np.ndarray


POPULATIONS = (
    Population("weak", 0.0),
    Population("middle", 0.7),
    Population("strong, 15 steps", 1.6, steps=15),
    Population("few wrong", 0.7, ease=1.5),
)
EQUAL = (
    Population("weak", 0.0),
    Population("strong", 1.6),
    Population("middle, 15 steps", 0.7, steps=15),
)
UNEQUAL = (Population("slightly", 0.8, signal_b=0.65), Population("clearly", 0.9, signal_b=0.6))


def drawn(population: Population, rng: np.random.Generator, n_cases: int) -> Sample:
    """``n_cases`` new cases, each with an ease of its own, which makes answers right and methods
    sure; so does the level."""
    case = np.repeat(np.arange(n_cases), LEVELS)
    level = np.tile(np.arange(LEVELS), n_cases)
    easy = rng.normal(size=n_cases)[case]
    correct = (
        rng.random(len(case)) < special.expit(-1.0 + 0.45 * level + 1.2 * easy + population.ease)
    ).astype(int)
    common = rng.normal(size=len(case))
    sides = []
    for signal in (
        population.signal,
        population.signal if population.signal_b is None else population.signal_b,
    ):
        noise = np.sqrt(0.5) * (common + rng.normal(size=len(case)))
        sure = special.expit(signal * (correct - 0.5) + 0.12 * level + 0.4 * easy + noise)
        sides.append(
            np.round(sure * population.steps) / population.steps if population.steps else sure
        )
    return Sample(case, level, correct, *sides)


def plain(s: Sample, weights: np.ndarray) -> dict[str, np.ndarray]:
    """Accuracy and AUROC under each of B weightings (B, n) of the sample's answers: name ->
    (B,)."""
    first, second = (ranking_weighted(s.correct, one, weights)[0] for one in (s.a, s.b))
    return {
        "accuracy": weights @ s.correct / weights.sum(axis=1),
        "auroc": first,
        "auroc, a minus b": first - second,
    }


def within_level(s: Sample, confidence: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """AUROC as the mean over the levels, (B,); every level here holds right and wrong answers."""
    levels = [s.level == level for level in range(LEVELS)]
    return np.mean(
        [ranking_weighted(s.correct[at], confidence[at], weights.T[at].T)[0] for at in levels],
        axis=0,
    )


def measured(s: Sample, weights: np.ndarray) -> dict[str, np.ndarray]:
    """Every metric, as :func:`plain` gives its own."""
    within, other = (within_level(s, one, weights) for one in (s.a, s.b))
    return {
        **plain(s, weights),
        "auroc level-stratified": within,
        "auroc within, a minus b": within - other,
        "auprc": ranking_weighted(s.correct, s.a, weights)[1],
        "prediction-rejection ratio": selective_weighted(s.correct, s.a, weights)[1],
        "brier": weights @ (s.a - s.correct) ** 2 / weights.sum(axis=1),
        "ece": ece_weighted(s.correct, s.a, weights),
    }


def in_draws(
    measures: Measures, s: Sample, unit: np.ndarray, n_draws: int, seed: int
) -> dict[str, np.ndarray]:
    """``measures`` in ``n_draws`` bootstrap draws of ``unit`` (n,): the cases, or the answers one
    by one."""
    names, code = np.unique(unit, return_inverse=True)
    draws = Draws.of(names, n_draws, seed).times
    parts = [measures(s, draws[:, i : i + CHUNK][code].T) for i in range(0, n_draws, CHUNK)]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def one_repetition(
    population: Population, key: Sequence[int], n_cases: int, n_draws: int
) -> list[dict[str, Any]]:
    """A new sample: each metric's value and its interval, once drawing cases and once drawing
    answers."""
    s = drawn(population, np.random.default_rng(key), n_cases)
    values = measured(s, np.ones((1, len(s.case)), int))
    rows = []
    for unit, ids, measures in (
        ("cases", s.case, measured),
        ("answers", np.arange(len(s.case)), plain),
    ):
        for metric, draws in in_draws(measures, s, ids, n_draws, key[-1]).items():
            kept = without_excess(draws, values[metric][0]) if metric == "ece" else draws
            low, high, _ = bounded_interval(kept, s.case)
            rows.append(
                {
                    "unit": unit,
                    "metric": metric,
                    "value": values[metric][0],
                    "low": low,
                    "high": high,
                }
            )
    return rows


def coverage(population: Population, at: int, o: argparse.Namespace) -> pd.DataFrame:
    """How often the truth lies inside: a row a metric, with the truth, the mean estimate and the
    mean width."""
    truth = true_values(population, o.seed + at)
    keys = [(o.seed, at, r) for r in range(o.repetitions)]
    done: Any = Parallel(n_jobs=o.jobs)(
        delayed(one_repetition)(population, key, o.cases, o.draws) for key in keys
    )
    table = pd.DataFrame([row for rows in done for row in rows])
    right = np.array([truth[metric] for metric in table["metric"]])
    table = table.assign(
        truth=right,
        inside=(table["low"] <= right) & (right <= table["high"]),
        width=table["high"] - table["low"],
        none=table["low"].isna(),
    )
    grouped: Any = table.groupby(["metric", "unit"], sort=False)
    means = grouped[["truth", "value", "inside", "width", "none"]].mean().unstack("unit")
    found = pd.DataFrame({
        "truth": means["truth"]["cases"], "mean": means["value"]["cases"],
        "inside": means["inside"]["cases"], "width": means["width"]["cases"],
        "inside_answers": means["inside"]["answers"], "none": means["none"]["cases"],
    })  # fmt: skip
    return found.rename_axis("metric").reset_index().assign(population=population.name)


def true_values(population: Population, seed: int) -> dict[str, float]:
    """Every metric in a very large sample; methods that are equally good differ by nothing."""
    huge = drawn(population, np.random.default_rng((seed, TRUTH)), TRUTH)
    found = {
        name: float(draws[0])
        for name, draws in measured(huge, np.ones((1, len(huge.case)), int)).items()
    }
    return found | (dict.fromkeys(DIFFERENCES, 0.0) if population.signal_b is None else {})


def one_test(
    population: Population, key: Sequence[int], n_cases: int, n_draws: int
) -> pd.DataFrame:
    """Method a against b on a new sample, by the package's own paired test: a row pooled and one
    level-stratified."""
    s = drawn(population, np.random.default_rng(key), n_cases)
    common = {
        "case_id": s.case,
        "dataset": "made",
        "level": s.level,
        "model": "made",
        "correct": s.correct,
    }
    table = pd.concat(
        [
            pd.DataFrame({**common, "variant": name, "confidence": getattr(s, name)})
            for name in ("a", "b")
        ]
    )
    return paired_differences(table, "b", metrics=("auroc",), n_draws=n_draws, seed=key[-1])


def tests(population: Population, at: int, o: argparse.Namespace) -> pd.DataFrame:
    """How often p is below 0.05: a row pooled and one level-stratified, with the true difference
    and its standard error."""
    keys = [
        (o.seed, 100 + at, r)
        for r in range(o.tests if population.signal_b is None else o.tests // 2)
    ]
    done: Any = Parallel(n_jobs=o.jobs)(
        delayed(one_test)(population, key, o.cases, o.draws) for key in keys
    )
    table = pd.concat(done)
    truth = (
        dict.fromkeys(DIFFERENCES, 0.0)
        if population.signal_b is None
        else true_values(population, o.seed + 100 + at)
    )
    rows = []
    for level, part in table.groupby("level", sort=False):
        error, right = float(part["standard_error"].mean()), truth[DIFFERENCES[level == "within"]]
        rows.append({
            "population": population.name, "level": level, "difference": right,
            "standard_error": error, "found": float((part["p"] < 0.05).mean()),
            "cases_for_80": sample_size_for_power(right, error, o.cases),
        })  # fmt: skip
    return pd.DataFrame(rows)


def leaves(share: float, allowed: tuple[float, float], n: int) -> bool:
    """Whether ``share`` of ``n`` lies outside ``allowed`` by more than three standard errors of the
    bound that it leaves."""
    low, high = (
        bound + sign * 3 * np.sqrt(bound * (1 - bound) / n)
        for bound, sign in zip(allowed, (-1, 1), strict=True)
    )
    return not low <= share <= high


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="benchmarks.intervals", description="Simulate the coverage of the intervals."
    )
    parser.add_argument(
        "--repetitions",
        type=int,
        default=500,
        help="samples for each population (default: %(default)s)",
    )
    parser.add_argument(
        "--tests",
        type=int,
        default=500,
        help="tests for equal methods, half for others (default: %(default)s)",
    )
    parser.add_argument(
        "--draws",
        type=int,
        default=500,
        help="bootstrap draws of each sample (default: %(default)s)",
    )
    parser.add_argument(
        "--cases",
        type=int,
        default=170,
        help="cases in each sample, six answers each (default: %(default)s)",
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    o = parser.parse_args()
    began, bad = time.perf_counter(), []
    print(
        f"{o.cases} cases x {LEVELS} answers, {o.repetitions} samples, {o.draws} draws each,"
        " nominal 95 %\n"
    )
    print(
        f"{'population':<18}{'metric':<28}{'truth':>8}{'mean':>8}{'width':>8}"
        f"{'inside, cases drawn':>21}{'answers drawn':>15}"
    )
    for at, population in enumerate(POPULATIONS):
        for row in coverage(population, at, o).itertuples():
            mark = ""
            if row.metric in ASKED and leaves(row.inside, COVERAGE, o.repetitions):
                bad.append(f"{row.population}: {row.metric}")
                mark = "  outside 92 to 97 %"
            without = f"  ({100 * row.none:.0f} % without interval)" if row.none else ""
            numbers = f"{row.truth:>8.3f}{row.mean:>8.3f}{row.width:>8.3f}"
            alone = "" if np.isnan(row.inside_answers) else f"{100 * row.inside_answers:>13.1f} %"
            shares = f"{100 * row.inside:>19.1f} %{alone}"
            print(f"{row.population:<18}{row.metric:<28}{numbers}{shares}{mark}{without}")
        print(flush=True)
    print(
        f"the paired test at 5 %, {o.tests} samples: AUROC of method a minus that of b on the same"
        " answers\n"
    )
    print(
        f"{'population':<18}{'level':<10}{'difference':>12}{'standard error':>16}"
        f"{'found':>10}{'cases for 80 % power':>23}"
    )
    for at, population in enumerate((*EQUAL, *UNEQUAL)):
        for row in tests(population, at, o).itertuples():
            mark = ""
            if population.signal_b is None and leaves(row.found, ERROR, o.tests):
                bad.append(f"{row.population}: type-I error, {row.level}")
                mark = "  outside 3 to 8 %"
            numbers = f"{row.difference:>12.3f}{row.standard_error:>16.4f}{100 * row.found:>8.1f} %"
            cases = "" if np.isnan(row.cases_for_80) else f"{row.cases_for_80:,.0f}"
            print(f"{row.population:<18}{row.level:<10}{numbers}{cases:>23}{mark}")
    print(
        f"\n{time.perf_counter() - began:.0f} s; outside by more than chance explains:"
        f" {', '.join(bad) or 'nothing'}"
    )
    sys.exit(int(bool(bad)))


if __name__ == "__main__":
    main()
