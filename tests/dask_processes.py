"""A Dask scheduler and workers as processes of this machine, which tests may kill."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LIMIT_S = 240
# of one that is killed again and again only the fourth loss would end a task
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "false",
    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "100",
}


def squared(x: int) -> int:
    if x == 1:
        time.sleep(0.5)
    return x * x


def failing() -> None:
    raise LookupError("no such thing")


def _folders(path: Path) -> str:
    own = os.environ.get("PYTHONPATH", "")
    return os.pathsep.join((str(path), str(ROOT / "tests"), own))


class Dask:
    """A scheduler on loopback, with ``n`` workers of one thread; all end with the block."""

    def __init__(self, folder: Path, n: int, **environment: str) -> None:
        self.folder = folder
        # the scheduler, too, imports the functions that it passes on
        paths = {"PYTHONPATH": _folders(ROOT)}
        self.environment = {**os.environ, **ENVIRONMENT, **paths, **environment}
        file = folder / "scheduler.json"
        self.processes: list[subprocess.Popen[bytes]] = []
        self.workers: list[subprocess.Popen[bytes]] = []
        listens = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        self.start("dask_scheduler", *listens, "--scheduler-file", str(file))
        deadline = time.monotonic() + LIMIT_S
        while not (file.is_file() and file.stat().st_size):
            assert time.monotonic() < deadline, "no scheduler"
            time.sleep(0.05)
        time.sleep(0.1)
        self.address = json.loads(file.read_text())["address"]
        for _ in range(n):
            self.add()

    def start(self, program: str, *words: str, **how: Any) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.{program}", *words]
        with (self.folder / f"{program}.txt").open("ab") as log:
            process = subprocess.Popen(
                command, stderr=log, stdout=log, **{"env": self.environment, **how}
            )
        self.processes.append(process)
        return process

    def add(self, threads: int = 1, path: Path = ROOT, cwd: Path | None = None) -> Any:
        """One more worker, whose trustlab is that of ``path``."""
        environment = {**self.environment, "PYTHONPATH": _folders(path)}
        words = ("--nthreads", str(threads), "--no-nanny", "--no-dashboard")
        words += ("--local-directory", str(self.folder))
        worker = self.start("dask_worker", self.address, *words, env=environment, cwd=cwd or path)
        self.workers.append(worker)
        return worker

    def __enter__(self) -> Dask:
        return self

    def __exit__(self, *raised: object) -> None:
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()
