"""Times our confidence methods and lm-polygraph's on the same records: ``python -m
benchmarks.methods``.

1,000 generations with 15 samples each, all matrices given; no text occurs in two records, so that
nothing kept from one helps with the next. Both sides take turns, three rounds, and each time is a
median. What a side must work out before its methods can run is a row of its own: token statistics
from the distributions on both sides, sets of meanings on theirs (our methods make them themselves).
How to install lm-polygraph: ``parity.py``. Without it our side is timed alone, and the exit status
is 2.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics as averages
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.parity import (
    N_SAMPLES,
    PAIRS,
    Pair,
    available,
    semantic_classes_of,
    statistics,
)
from benchmarks.records import Made, random_records
from trustlab.confidence import METHODS, consistency
from trustlab.models.local.logits import statistics_of

AIM = 10
"""How many times faster our side should be on the methods that both have."""

Task = Callable[[], object]


def seconds(task: Task) -> float:
    began = time.perf_counter()
    task()
    return time.perf_counter() - began


def scoring(name: str, made: list[Made]) -> Task:
    """Evaluates one of our methods on every record; what an earlier round kept is forgotten."""
    evaluate, generations = METHODS[name].evaluate, [m.generation for m in made]
    evaluate(generations[0])  # so that no import is timed

    def score() -> None:
        for value in vars(consistency).values():
            getattr(value, "cache_clear", lambda: None)()
        for g in generations:
            evaluate(g)

    return score


def our_statistics(made: list[Made]) -> Task:
    """Entropy, Rényi divergence and Fisher-Rao distance of every token, all in one, as a model's
    backend does."""
    return lambda: [statistics_of(m.log_distributions, 0.5) for m in made]


def their_entropies(made: list[Made]) -> Task:
    from lm_polygraph.stat_calculators.entropy import (
        EntropyCalculator,
    )  # pyright: ignore[reportMissingImports]

    calculator, read = (
        EntropyCalculator(),
        {"greedy_log_probs": [m.log_distributions for m in made]},
    )
    return lambda: calculator(read)


def their_estimates(pair: Pair, stats: dict[str, Any]) -> Task:
    estimator = pair.open()

    def estimate() -> None:
        with np.errstate(invalid="ignore", divide="ignore"):
            estimator(stats)

    return estimate


def both(made: list[Made]) -> dict[str, tuple[Task | None, Task | None]]:
    """Row -> our task and theirs, ``None`` where a side has nothing to do."""
    stats = statistics(made)
    rows: dict[str, tuple[Task | None, Task | None]] = {
        "(token statistics)": (our_statistics(made), their_entropies(made)),
        "(sets of meanings)": (None, semantic_classes_of(made)),
    }
    for pair in PAIRS:  # the first of two pairs for one method does
        rows.setdefault(
            pair.ours, (scoring(pair.ours, made), their_estimates(pair, stats))
        )
    return rows


def compare(made: list[Made], rounds: int) -> float:
    """Print both sides row by row; how many times faster ours is over all rows."""
    rows = both(made)
    times: dict[str, tuple[list[float], list[float]]] = {
        name: ([], []) for name in rows
    }
    for _ in range(rounds):
        for name, tasks in rows.items():
            for task, taken in zip(tasks, times[name], strict=True):
                taken.append(seconds(task) if task else 0.0)
    medians = {
        name: tuple(averages.median(taken) for taken in pair)
        for name, pair in times.items()
    }
    print(
        f"{'methods both have':<28}{'ours, s':>10}{'lm-polygraph, s':>17}{'ratio':>8}"
    )
    for name, (ours, theirs) in medians.items():
        print(
            f"{name:<28}{ours:>10.3f}{theirs:>17.3f}{theirs / ours if ours else np.nan:>8.1f}"
        )
    total = np.array(list(medians.values())).sum(axis=0)
    rest = total - np.array(medians["lexical_similarity"])
    for name, (ours, theirs) in {
        "all of these": total,
        "without lexical_similarity": rest,
    }.items():
        print(f"{name:<28}{ours:>10.3f}{theirs:>17.3f}{theirs / ours:>8.1f}")
    return float(total[1] / total[0])


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="benchmarks.methods",
        description="Time the confidence methods beside lm-polygraph's.",
    )
    parser.add_argument(
        "--records",
        type=int,
        default=1000,
        help="how many generations (default: %(default)s)",
    )
    parser.add_argument(
        "--rounds",
        type=int,
        default=3,
        help="times each side has its turn (default: %(default)s)",
    )
    parser.add_argument(
        "--vocabulary",
        type=int,
        default=1000,
        help="tokens in a distribution (default: %(default)s)",
    )
    options = parser.parse_args()
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    made = random_records(
        options.records,
        n_samples=N_SAMPLES,
        n_vocabulary=options.vocabulary,
        own_names=True,
    )
    print(
        f"{options.records:,} generations, K = {N_SAMPLES}, {options.vocabulary:,} tokens, medians"
        f" of {options.rounds}\n"
    )
    there = available()
    if there:
        print(f"\nratio {compare(made, options.rounds):.1f}, aim {AIM}")
    own = {
        name: averages.median(
            seconds(scoring(name, made)) for _ in range(options.rounds)
        )
        for name in METHODS
    }
    slowest = ", ".join(
        f"{name} {own[name]:.3f}" for name in sorted(own, key=lambda n: -own[n])[:5]
    )
    print(
        f"\nall {len(METHODS)} of our methods: {sum(own.values()):.3f} s; slowest: {slowest}"
    )
    print(
        f"Python {platform.python_version()}, numpy {np.__version__}, {os.cpu_count()} cores; load"
        f" before the start {load}"
    )
    sys.exit(0 if there else 2)


if __name__ == "__main__":
    main()
