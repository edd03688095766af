"""Does the stopping rule keep its promise? ``python -m benchmarks.stopping``.

Populations whose true error is known: draw calibration cases, ask for a threshold, and look up how
often those whom it stops early are truly wrong. The share of draws in which that exceeds ``alpha``
should be at most ``delta``. A rule that never gives a threshold would pass too, so the share of
draws with one is printed beside it, with the mean share of cases stopped early. The exit status is
1 if a population breaks the promise by more than chance explains (three standard errors).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

import numpy as np

from trustlab.metrics.stopping import GRID, along, guarantee, stop_turns

Population = Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray]]
TURNS = 6
TRUTH = 400_000
"""Cases from which the true error of every threshold is taken."""


def informed(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Confidence rises, and the diagnosis is right with a chance that follows it."""
    sure = np.sort(rng.uniform(0, 1, (n, TURNS)), axis=1)
    return sure, (rng.uniform(0, 1, (n, TURNS)) < sure**0.3).astype(int)


def overconfident(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Confidence follows the chance of being right, but lies far above it."""
    chance = np.sort(rng.uniform(0.2, 0.9, (n, TURNS)), axis=1)
    return chance**0.2, (rng.uniform(0, 1, (n, TURNS)) < chance).astype(int)


def uninformative(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Confidence has nothing to do with the diagnosis, which is wrong a little more often than one
    case in five."""
    return rng.uniform(0, 1, (n, TURNS)), (rng.uniform(0, 1, (n, TURNS)) > 0.21).astype(int)


def backwards(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The surer, the more often wrong."""
    sure = rng.uniform(0, 1, (n, TURNS))
    return sure, (rng.uniform(0, 1, (n, TURNS)) < 0.95 - 0.4 * sure).astype(int)


def at_the_edge(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Every case stops at once and is wrong just above the allowed rate of 0.2: the hardest to tell
    from one that is allowed."""
    right = (rng.uniform(0, 1, (n, 1)) > 0.2001).astype(int)
    return np.full((n, TURNS), 0.999), np.repeat(right, TURNS, axis=1)


def few_steps(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Confidence takes three values only, as a model that is asked for a number gives, and some
    never reach any threshold."""
    sure = rng.choice([np.nan, 0.5, 0.8, 0.95], p=[0.3, 0.3, 0.2, 0.2], size=(n, TURNS))
    return sure, (
        rng.uniform(0, 1, (n, TURNS))
        < np.where(np.isnan(sure), 0.3, 0.6 + 0.35 * np.nan_to_num(sure))
    ).astype(int)


POPULATIONS: tuple[Population, ...] = (
    informed,
    overconfident,
    uninformative,
    backwards,
    at_the_edge,
    few_steps,
)


def true_errors(
    population: Population, rng: np.random.Generator
) -> dict[float, tuple[float, float]]:
    """Threshold -> (error among those stopped early, share stopped early), from :data:`TRUTH`
    cases."""
    sure, right = population(rng, TRUTH)
    found = {}
    for threshold in GRID:
        at = stop_turns(sure, threshold)
        early = at < TURNS - 1
        found[float(threshold)] = (
            1 - along(right, at)[early].mean() if early.any() else 0.0,
            early.mean(),
        )
    return found


def simulate(
    population: Population, n_cases: int, alpha: float, delta: float, draws: int, seed: int
) -> tuple[float, float, float]:
    """Shares of draws in which the true error exceeds ``alpha`` and in which there is a threshold;
    mean share stopped early."""
    rng = np.random.default_rng(seed)
    truth = true_errors(population, rng)
    given = [guarantee(*population(rng, n_cases), alpha, delta).threshold for _ in range(draws)]
    kept = [truth[t] for t in given if t is not None]
    broken = sum(error > alpha for error, _ in kept) / draws
    return (
        broken,
        len(kept) / draws,
        float(np.mean([share for _, share in kept])) if kept else float("nan"),
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="benchmarks.stopping", description="Simulate the guarantee of the stopping rule."
    )
    parser.add_argument(
        "--draws",
        type=int,
        default=500,
        help="calibration sets for each row (default: %(default)s)",
    )
    parser.add_argument(
        "--cases",
        type=int,
        nargs="+",
        default=[50, 200, 1000],
        help="cases in each (default: 50 200 1000)",
    )
    parser.add_argument(
        "--alpha",
        type=float,
        default=0.2,
        help="allowed error among those stopped early (default: %(default)s)",
    )
    parser.add_argument(
        "--delta",
        type=float,
        default=0.1,
        help="allowed share of draws that break it (default: %(default)s)",
    )
    parser.add_argument("--seed", type=int, default=0)
    o = parser.parse_args()
    print(
        f"alpha {o.alpha}, delta {o.delta}, {o.draws} draws, {len(GRID)} thresholds, {TURNS}"
        " turns\n"
    )
    print(
        f"{'population':<16}{'cases':>7}{'draws that break it':>22}"
        f"{'draws with a threshold':>25}{'stopped early':>16}"
    )
    allowed = o.delta + 3 * np.sqrt(o.delta * (1 - o.delta) / o.draws)
    worst = 0.0
    for population in POPULATIONS:
        for n_cases in o.cases:
            broken, given, early = simulate(population, n_cases, o.alpha, o.delta, o.draws, o.seed)
            worst = max(worst, broken)
            print(
                f"{population.__name__:<16}{n_cases:>7}{broken:>22.3f}{given:>25.3f}{early:>16.3f}"
            )
    print(f"\nworst {worst:.3f}, allowed {o.delta} (with chance {allowed:.3f})")
    sys.exit(int(worst > allowed))


if __name__ == "__main__":
    main()
