"""What a cluster costs: ``python -m benchmarks.cluster``. Runs in turns here (``n_jobs`` 1 and 2)
and on a scheduler and 1, 2 workers of this machine, each from empty caches in its own process.

Seconds are those of the whole client: imports, opening, asking, scoring, tables, intervals.
Processor seconds are the client's, its processes' and the workers'; a busy machine does not count.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from dask_processes import Dask  # noqa: E402  # pyright: ignore[reportMissingImports]

SPAWN = multiprocessing.get_context("spawn")


def processor_s(process: psutil.Process) -> float:
    """Of a process and its children that live."""
    times = [part.cpu_times() for part in (process, *process.children(recursive=True))]
    return sum(t.user + t.system for t in times)


def client(
    folder: Path, options: Any, n_jobs: int, address: str | None, told: Any
) -> None:
    """One run and its intervals; ``told`` gets its processor seconds."""
    import os

    import torch
    from joblib.externals.loky import get_reusable_executor

    import trustlab as tl

    torch.set_num_threads(1)
    setup = tl.Setup(
        samples=options.samples, n_jobs=n_jobs, cluster=address, cache=folder / "replies.sqlite",
        run_dir=folder, trial=False, quiet=True, model="embedded",
    )  # fmt: skip
    cases = tl.load_cases(options.dataset, n=options.cases, seed=0)
    run = tl.benchmark(cases, None, setup=setup)
    tl.metrics_table(run, n_jobs=n_jobs).to_csv(folder / "metrics.csv")
    told.put(processor_s(psutil.Process(os.getpid())))
    # a process that multiprocessing starts would wait for joblib's own to be idle for minutes
    get_reusable_executor().shutdown(wait=True)


class Cost(NamedTuple):
    """Seconds of a run, by the clock and by the processors of client and workers."""

    seconds: float
    client: float
    workers: float


def measured(
    options: Any, n: int, on_cluster: bool
) -> Iterator[tuple[str, Cost, list[pd.DataFrame]]]:
    """Where it ran, cost and tables of a run with ``n`` processes or workers; on a cluster of a
    second one, too, whose workers have imported and opened everything before."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        address, workers = None, []
        places = [f"n_jobs={n}"]
        if on_cluster:
            dask = stack.enter_context(Dask(Path(name), n))
            address = dask.address
            workers = [psutil.Process(worker.pid) for worker in dask.workers]
            workers.append(psutil.Process(dask.processes[0].pid))
            time.sleep(options.pause)  # they come
            places = [f"{n} new worker(s)", f"{n} worker(s)"]
        for place in places:
            folder = Path(name) / place
            folder.mkdir()
            before = sum(map(processor_s, workers))
            told = SPAWN.Queue()
            began = time.perf_counter()
            arguments = (folder, options, n, address, told)
            process = SPAWN.Process(target=client, args=arguments)
            process.start()
            of_client = told.get()
            process.join()
            seconds = time.perf_counter() - began
            of_workers = sum(map(processor_s, workers)) - before
            names = ("answers.csv", "confidence.csv", "metrics.csv")
            tables = [pd.read_csv(folder / name) for name in names]
            yield place, Cost(seconds, of_client, of_workers), tables


def alike(tables: list[pd.DataFrame], others: list[pd.DataFrame]) -> bool:
    """Whether tables are equal, numbers to 1e-5."""
    for table, other in zip(tables, others, strict=True):
        try:
            pd.testing.assert_frame_equal(table, other, rtol=0, atol=1e-5)
        except AssertionError as error:
            print(error)
            return False
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", default="starter")
    parser.add_argument("--cases", type=int, default=120)
    parser.add_argument("--samples", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--pause", type=float, default=20)
    options = parser.parse_args()
    first = None
    for k in range(options.rounds):
        for n in (1, 2):
            for on_cluster in (False, True):
                for place, cost, tables in measured(options, n, on_cluster):
                    first = first or tables
                    equal = "equal" if alike(tables, first) else "DIFFER"
                    print(
                        f"round {k}  {place:15} {cost.seconds:7.1f} s; processor:"
                        f" {cost.client:7.1f} s here, {cost.workers:7.1f} s workers;"
                        f" tables {equal}", flush=True,
                    )  # fmt: skip


if __name__ == "__main__":
    main()
