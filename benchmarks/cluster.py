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
from contextlib import ExitStack
from pathlib import Path
from typing import Any

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


def measured(
    options: Any, n: int, on_cluster: bool
) -> tuple[float, float, list[bytes]]:
    """Seconds, processor seconds and tables of one run with ``n`` processes or workers."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder, address, workers = Path(name), None, []
        if on_cluster:
            dask = stack.enter_context(Dask(folder, n))
            address = dask.address
            workers = [psutil.Process(worker.pid) for worker in dask.workers]
            workers.append(psutil.Process(dask.processes[0].pid))
            time.sleep(options.pause)  # they come
        before = sum(map(processor_s, workers))
        told = SPAWN.Queue()
        began = time.perf_counter()
        process = SPAWN.Process(target=client, args=(folder, options, n, address, told))
        process.start()
        used = told.get()
        process.join()
        seconds = time.perf_counter() - began
        used += sum(map(processor_s, workers)) - before
        names = ("answers.csv", "confidence.csv", "metrics.csv")
        return seconds, used, [(folder / name).read_bytes() for name in names]


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
                seconds, used, tables = measured(options, n, on_cluster)
                first = first or tables
                where = f"{n} worker(s)" if on_cluster else f"n_jobs={n}"
                print(
                    f"round {k}  {where:12} {seconds:7.1f} s {used:7.1f} s of processor,"
                    f" tables {'equal' if tables == first else 'DIFFER'}", flush=True,
                )  # fmt: skip


if __name__ == "__main__":
    main()
