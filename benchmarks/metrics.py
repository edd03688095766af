"""How long do the intervals take? ``python -m benchmarks.metrics``.

2,000 bootstrap draws for 28 methods on 3,498 answers (583 cases at six levels): the AUROC over all
levels alone, as the package makes it (each method's answers put in order once, and weighed by how
often each case is drawn), with one process and with two; the whole ``metrics_table``, which holds
AUROC and AUPRC also at each level and level-stratified, calibration and correlations; and a plain
loop that draws the rows of each draw's cases and hands them to scikit-learn's ``roc_auc_score``.
The loop is timed on ``--few`` draws and scaled up. Both sides must give the same numbers on the
draws that both make, else the exit status is 1.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.metrics import roc_auc_score

from trustlab.measures import metrics_table
from trustlab.metrics.discrimination import ranking_weighted
from trustlab.metrics.estimate import Draws, percentile_interval

LEVELS = (1, 20, 40, 60, 80, 100)
AIM_S = 20
CHUNK = 250


def made(n_cases: int, n_methods: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Case (n,), correct (n,) and confidences (methods, n) of made answers; every other method
    gives steps of a fifteenth.

    The others are rounded: scikit-learn takes near-ties for different.
    """
    rng = np.random.default_rng(seed)
    case = np.repeat(np.arange(n_cases), len(LEVELS))
    correct = (rng.random(len(case)) < 0.6).astype(int)
    noise = rng.normal(size=(n_methods, len(case)))
    sure = 1 / (1 + np.exp(-(np.linspace(0, 2, n_methods)[:, None] * correct + noise)))
    sure[::2] = np.round(sure[::2] * 15) / 15
    sure[1::2] = sure[1::2].round(5)
    return case, correct, sure


def run_of(case: np.ndarray, correct: np.ndarray, sure: np.ndarray) -> SimpleNamespace:
    """The same as the tables of a run."""
    level = np.tile(LEVELS, len(case) // len(LEVELS))
    keys = pd.DataFrame(
        {
            "case_id": [f"case-{c:04d}" for c in case],
            "dataset": "made",
            "level": level,
            "model": "made",
        }
    )
    answers = keys.assign(
        answer="an answer", correct=correct, missing="", n_words=50, n_statements=10
    )
    parts = [
        keys.assign(method=f"m{i:02d}", confidence=row, bound="", missing="")
        for i, row in enumerate(sure)
    ]
    return SimpleNamespace(answers=answers, confidence=pd.concat(parts, ignore_index=True))


def ours(
    case: np.ndarray, correct: np.ndarray, sure: np.ndarray, n_draws: int, n_jobs: int
) -> np.ndarray:
    """The interval of every method's AUROC, (methods, 2)."""
    cases, code = np.unique(case, return_inverse=True)
    draws = Draws.of(cases, n_draws).times
    found: Any = Parallel(n_jobs=n_jobs)(
        delayed(_interval)(correct, row, draws, code) for row in sure
    )
    return np.array(found)


def _interval(
    correct: np.ndarray, sure: np.ndarray, draws: np.ndarray, code: np.ndarray
) -> tuple[float, float]:
    chunks = [
        ranking_weighted(correct, sure, draws[:, i : i + CHUNK][code].T)[0]
        for i in range(0, draws.shape[1], CHUNK)
    ]
    return percentile_interval(np.concatenate(chunks))


def loop(
    case: np.ndarray, correct: np.ndarray, sure: np.ndarray, n_draws: int, few: int
) -> np.ndarray:
    """The first ``few`` of ``n_draws`` draws of every method, by scikit-learn on the rows drawn:
    (methods, few)."""
    weights = Draws.of(case, n_draws).times[case, :few].T.astype(int)  # cases are 0, 1, 2 ...
    found = np.empty((len(sure), few))
    for b, weight in enumerate(weights):
        rows = np.repeat(np.arange(len(case)), weight)
        for m, row in enumerate(sure):
            found[m, b] = roc_auc_score(correct[rows], row[rows])
    return found


def seconds(task: Callable[[], Any]) -> tuple[float, float]:
    """Wall time, and this process's own work."""
    began, busy = time.perf_counter(), time.process_time()
    task()
    return time.perf_counter() - began, time.process_time() - busy


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="benchmarks.metrics", description="Time the bootstrap of AUROC and the whole table."
    )
    parser.add_argument(
        "--cases", type=int, default=583, help="cases, six answers each (default: %(default)s)"
    )
    parser.add_argument("--methods", type=int, default=28)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument(
        "--few", type=int, default=20, help="draws of the plain loop (default: %(default)s)"
    )
    o = parser.parse_args()
    case, correct, sure = made(o.cases, o.methods, 0)
    run: Any = run_of(case, correct, sure)
    scales = {f"m{i:02d}": "probability" if i % 2 else "score" for i in range(o.methods)}
    load = os.getloadavg()[0]
    weights = Draws.of(case, o.draws).times[case, : o.few].T
    same = np.stack([ranking_weighted(correct, row, weights)[0] for row in sure])
    few = loop(case, correct, sure, o.draws, o.few)
    apart = float(np.abs(few - same).max())
    Parallel(n_jobs=2)(
        delayed(_interval)(correct, row, np.ones((o.cases, 2)), case) for row in sure[:2]
    )  # starts the processes
    wall, busy = seconds(lambda: loop(case, correct, sure, o.draws, o.few))
    plain, plain_busy = wall * o.draws / o.few, busy * o.draws / o.few
    print(f"{len(case):,} answers of {o.cases} cases, {o.methods} methods, {o.draws:,} draws\n")
    print(f"{'':<44}{'seconds':>10}{'processor':>11}{'times faster':>14}{'processor':>11}")
    print(
        f"{f'roc_auc_score in a loop ({o.few} draws, scaled)':<44}{plain:>10.2f}{plain_busy:>11.2f}"
    )
    whole = {"n_draws": o.draws, "scales": scales}
    for name, n, task in (
        ("AUROC, one process", 1, lambda: ours(case, correct, sure, o.draws, 1)),
        ("AUROC, two processes", 2, lambda: ours(case, correct, sure, o.draws, 2)),
        ("metrics_table, all metrics, one process", 1, lambda: metrics_table(run, **whole)),
        (
            "metrics_table, all metrics, two processes",
            2,
            lambda: metrics_table(run, **whole, n_jobs=2),
        ),
    ):
        wall, busy = seconds(task)
        own = (f"{busy:>11.2f}", f"{plain_busy / busy:>11.1f}") if n == 1 else ("", "")
        print(f"{name:<44}{wall:>10.2f}{own[0]:>11}{plain / wall:>14.1f}{own[1]:>11}", flush=True)
    print(
        f"\nlargest difference from scikit-learn on the same draws {apart:.1e}; aim {AIM_S} s on"
        " two cores"
    )
    print(
        f"load before the start {load:.2f}; {platform.machine()}, {os.cpu_count()} cores, numpy"
        f" {np.__version__}"
    )
    sys.exit(int(apart > 1e-9))


if __name__ == "__main__":
    main()
