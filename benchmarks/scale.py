"""How a run grows: ``python -m benchmarks.scale``. Made cases against a model that answers at once.

Each size runs in a process of its own, so that its memory is its own. The model is the tests' fake,
whose replies are of full length with all token statistics; what it spends on making them is told
apart. What each number means: ``README.md`` beside this file.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path.insert(0, str(TESTS))
MIB = 2**20
PAUSE_S = 20
TABLES = ("answers", "confidence", "calls")


def resident() -> int:
    """Bytes of memory that this process holds now."""
    import resource  # not on Windows

    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


class Memory(threading.Thread):
    """Looks at the memory four times a second: ``seen``, (seconds, bytes)."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.began, self.seen = time.perf_counter(), [(0.0, resident())]

    def run(self) -> None:
        while True:
            time.sleep(0.25)
            self.seen.append((time.perf_counter() - self.began, resident()))

    def at(self, shares: Sequence[float], end: float) -> list[int]:
        """The memory when these shares of the time up to ``end`` had passed."""
        return [
            max(m for s, m in self.seen if s <= max(share * end, 0.0))
            for share in shares
        ]


def made_cases(n: int) -> list[Any]:
    """The starter cases again and again, each as a patient of its own."""
    from dataclasses import replace

    import trustlab as tl
    from trustlab.records import Statement

    starter = tl.load_cases("starter")
    found = []
    for k in range(n):
        case = starter[k % len(starter)]
        own = Statement(f"Doctor: Which number are you?\nPatient: {k}.")
        found.append(
            replace(case, case_id=f"p{k:06}", statements=(own, *case.statements))
        )
    return found


def measure(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """One size: replies, memory over time, bytes on disk, and the final tables."""
    from dask_processes import Dask  # pyright: ignore[reportMissingImports]
    from fake_model import FakeModel  # pyright: ignore[reportMissingImports]

    import trustlab as tl

    class Timed(FakeModel):
        """Counts its replies and the seconds spent on them, and forgets what it was asked."""

        seconds, n_made = 0.0, 0

        def generate(self, requests: Any) -> Any:
            began = time.perf_counter()
            replies = super().generate(requests)
            self.asked.clear()
            self.seconds += time.perf_counter() - began
            self.n_made += sum(map(len, replies))
            return replies

    cases = made_cases(options.n)
    memory = Memory()
    memory.start()
    model = Timed()
    how: dict[str, Any] = {"run_dir": folder, "quiet": True, "keep_generations": False}
    with ExitStack() as stack:
        if options.workers:
            dask = stack.enter_context(Dask(folder, options.workers))
            how["cluster"] = dask.address
            time.sleep(PAUSE_S)  # they come
        began = time.perf_counter()
        run = tl.benchmark(
            cases, [model], "all", setup=tl.Setup(**how, samples=options.samples)
        )
        asked = time.perf_counter() - began
        rss = memory.at([0.25, 0.5, 0.75, 1.0], asked)
        began = time.perf_counter()
        metrics = tl.metrics_table(run)
        tables_s = time.perf_counter() - began
    n_views = len(run.answers)
    size = {n: (folder / f"{n}.parquet").stat().st_size for n in TABLES}
    kept = sum(f.stat().st_size for f in folder.glob("*.sqlite*"))
    return {
        "cases": options.n,
        "views": n_views,
        "replies": model.n_made,
        "seconds": asked,
        "model_s": model.seconds,
        "rss": rss,
        "peak": max(m for _, m in memory.seen),
        "tables_per_view": sum(size.values()) / n_views,
        "replies_per_view": kept / n_views,
        "tables_s": tables_s,
        "values": len(metrics),
    }


def report(rows: Sequence[dict[str, Any]]) -> str:
    """The table in Markdown."""
    heads = [
        "cases",
        "views",
        "replies",
        "seconds",
        "of them the model's",
        "replies/s without it",
    ]
    heads += ["MiB at 25, 50, 75, 100 %", "peak MiB", "tables, bytes a view"]
    heads += ["replies, kB a view", "metrics_table, s"]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for r in rows:
        own = r["seconds"] - r["model_s"]
        cells = [
            f"{r['cases']:,}",
            f"{r['views']:,}",
            f"{r['replies']:,}",
            f"{r['seconds']:.0f}",
        ]
        cells += [f"{r['model_s']:.0f}", f"{r['replies'] / own:,.0f}"]
        cells += [
            ", ".join(f"{m / MIB:.0f}" for m in r["rss"]),
            f"{r['peak'] / MIB:.0f}",
        ]
        cells += [f"{r['tables_per_view']:.0f}", f"{r['replies_per_view'] / 1000:.1f}"]
        lines.append("| " + " | ".join([*cells, f"{r['tables_s']:.0f}"]) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, nargs="+", default=[300, 3000])
    parser.add_argument("--samples", type=int, default=15)
    parser.add_argument(
        "--workers", type=int, default=0, help="of a cluster here; 0: none"
    )
    parser.add_argument("--n", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.n is not None:
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(measure(options, Path(folder))))
        return
    rows = []
    for n in options.cases:
        command = [sys.executable, "-m", "benchmarks.scale", "--n", str(n)]
        command += ["--samples", str(options.samples)]
        command += ["--workers", str(options.workers)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        rows.append(json.loads(done.stdout.splitlines()[-1]))
        print(report(rows), flush=True)


if __name__ == "__main__":
    main()
