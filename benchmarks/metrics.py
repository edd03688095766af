"""How long do the intervals take? ``python -m benchmarks.metrics``.

The AUROC of 28 methods on 3,498 answers (583 cases at six levels) with its jackknife over cases, as
the package makes it (each method's answers put in order once); the whole ``metrics_table``, which
holds AUROC and AUPRC also at each level and level-stratified, calibration and correlations; and a
plain loop that hands the answers without each case to scikit-learn's ``roc_auc_score``. The loop is
timed on ``--few`` cases and scaled up. Both sides must give the same numbers, else the exit status
is 1.
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
from sklearn.metrics import roc_auc_score

from trustlab.metrics.discrimination import concordance
from trustlab.runs.measures import metrics_table

LEVELS = (1, 20, 40, 60, 80, 100)


def made(
    n_cases: int, n_methods: int, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
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
    return SimpleNamespace(
        answers=answers, confidence=pd.concat(parts, ignore_index=True)
    )


def ours(case: np.ndarray, correct: np.ndarray, sure: np.ndarray) -> np.ndarray:
    """Every method's AUROC, then that without each case, (methods, 1 + cases)."""
    whole = np.zeros(len(case), int)
    return np.stack([concordance(correct, row, case, whole) for row in sure])


def loop(
    case: np.ndarray, correct: np.ndarray, sure: np.ndarray, few: int
) -> np.ndarray:
    """The same without each of the first ``few`` cases, by scikit-learn: (methods, few)."""
    found = np.empty((len(sure), few))
    for left_out in range(few):  # cases are 0, 1, 2 ...
        kept = case != left_out
        for m, row in enumerate(sure):
            found[m, left_out] = roc_auc_score(correct[kept], row[kept])
    return found


def seconds(task: Callable[[], Any]) -> tuple[float, float]:
    """Wall time, and this process's own work."""
    began, busy = time.perf_counter(), time.process_time()
    task()
    return time.perf_counter() - began, time.process_time() - busy


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="benchmarks.metrics",
        description="Time the jackknife of AUROC and the whole table.",
    )
    parser.add_argument(
        "--cases",
        type=int,
        default=583,
        help="cases, six answers each (default: %(default)s)",
    )
    parser.add_argument("--methods", type=int, default=28)
    parser.add_argument(
        "--few",
        type=int,
        default=20,
        help="cases of the plain loop (default: %(default)s)",
    )
    o = parser.parse_args()
    case, correct, sure = made(o.cases, o.methods, 0)
    run: Any = run_of(case, correct, sure)
    scales = {
        f"m{i:02d}": "probability" if i % 2 else "score" for i in range(o.methods)
    }
    load = os.getloadavg()[0]
    same = ours(case, correct, sure)[:, 1 : 1 + o.few]
    apart = float(np.abs(loop(case, correct, sure, o.few) - same).max())
    wall, busy = seconds(lambda: loop(case, correct, sure, o.few))
    plain, plain_busy = wall * o.cases / o.few, busy * o.cases / o.few
    print(f"{len(case):,} answers of {o.cases} cases, {o.methods} methods\n")
    print(
        f"{'':<44}{'seconds':>10}{'processor':>11}{'times faster':>14}{'processor':>11}"
    )
    words = f"roc_auc_score in a loop ({o.few} cases, scaled)"
    print(f"{words:<44}{plain:>10.2f}{plain_busy:>11.2f}")
    for name, task in (
        ("AUROC with its jackknife", lambda: ours(case, correct, sure)),
        ("metrics_table, all metrics", lambda: metrics_table(run, scales=scales)),
    ):
        wall, busy = seconds(task)
        faster = f"{plain / wall:>14.1f}{plain_busy / busy:>11.1f}"
        print(f"{name:<44}{wall:>10.2f}{busy:>11.2f}{faster}", flush=True)
    print(f"\nlargest difference from scikit-learn {apart:.1e}")
    machine = f"{platform.machine()}, {os.cpu_count()} cores, numpy {np.__version__}"
    print(f"load before the start {load:.2f}; {machine}")
    sys.exit(int(apart > 1e-9))


if __name__ == "__main__":
    main()
