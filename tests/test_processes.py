"""Work over processes: how many there are, what they give, and that none is left behind.

Run as a script it is the scoring that gets killed: ``test_processes.py FOLDER BACKEND``.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from joblib import effective_n_jobs, parallel_config

import trustlab as tl
from trustlab.models.base import Request
from trustlab.models.cache import CachedModel
from trustlab.models.local import spread as spread_model
from trustlab.processes import as_they_come, beside, spread
from trustlab.prompts import render

ROOT = Path(__file__).resolve().parents[1]
N_CORES = effective_n_jobs(-1)
LIMIT_S = 60


def squared(x: int, plus: int) -> tuple[int, int]:
    return x * x + plus, os.getpid()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_what_they_give_is_in_order(n_jobs: int) -> None:
    made = spread(squared, ((x, 1) for x in range(9)), n_jobs)
    assert [value for value, _ in made] == [x * x + 1 for x in range(9)]
    own = n_jobs == 1 or N_CORES == 1
    assert (os.getpid() in {where for _, where in made}) == own


def test_a_backend_that_gives_a_list_alone_is_asked_for_one() -> None:
    """Ray's is a subclass of it."""
    with parallel_config(backend="multiprocessing"):
        made = as_they_come(squared, ((x, 1) for x in range(9)), 2)
        assert sorted(value for value, _ in made) == [x * x + 1 for x in range(9)]


def failing() -> None:
    raise LookupError("no such thing")


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_what_is_begun_beside_is_done_in_turn_and_fails_where_it_is_asked_for(n_jobs: int) -> None:
    with beside(n_jobs, squared) as begin:
        begun = [begin(squared, x, 1) for x in range(9)]
        made = [one.result(LIMIT_S) for one in begun]
        with pytest.raises(LookupError, match="no such thing"):
            begin(failing).result(LIMIT_S)
    assert [value for value, _ in made] == [x * x + 1 for x in range(9)]
    (where,) = {where for _, where in made}
    assert (where == os.getpid()) == (n_jobs == 1 or N_CORES == 1)


def noted(folder: str, seconds: float) -> None:
    """Work that leaves its process's number in ``folder`` and takes its time."""
    (Path(folder) / str(os.getpid())).touch()
    time.sleep(seconds)


def lives(pid: int) -> bool:
    """Whether a process is there and is no zombie."""
    told = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True)
    return told.stdout.strip()[:1] not in ("", "Z")


def until(true, what: str) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not true():
        assert time.monotonic() < deadline, f"not within {LIMIT_S} s: {what}"
        time.sleep(0.1)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL on Windows")
@pytest.mark.skipif(N_CORES < 2, reason="one core has no second process")
@pytest.mark.parametrize("backend", ["loky", "multiprocessing"])
def test_no_worker_is_left_when_its_parent_is_killed(tmp_path: Path, backend: str) -> None:
    parent = subprocess.Popen(
        [sys.executable, __file__, str(tmp_path), backend],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])},
    )

    def workers() -> list[int]:
        return [int(file.name) for file in tmp_path.iterdir()]

    try:
        until(lambda: len(workers()) == 2 or parent.poll() is not None, "two workers at work")
        assert parent.poll() is None and all(map(lives, workers()))
    finally:
        parent.kill()
        parent.wait()
    assert parent.returncode == -signal.SIGKILL
    try:
        until(lambda: not any(map(lives, workers())), f"the end of {workers()}")
    finally:
        for pid in filter(lives, workers()):
            os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    with parallel_config(backend=sys.argv[2]):
        spread(noted, [(sys.argv[1], 600.0)] * 4, 2)


def test_chunks_are_at_least_two_and_hold_each_request_once() -> None:
    views = tl.views(tl.load_cases("starter", n=20))
    asked = [Request(render("diagnosis", patient=v.text), 2, 0.5, 16) for v in views]
    for n in (2, 3, 20, 120):
        chunks = spread_model.chunks_of(asked[:n])
        assert sorted(i for chunk in chunks for i in chunk) == list(range(n))
        assert len(chunks) > 1 and max(map(len, chunks)) <= 64
    assert spread_model.chunks_of(asked[:1]) == [[0]] and spread_model.chunks_of([]) == []


def test_a_local_model_says_the_same_in_any_number_of_processes(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(spread_model, "CHUNK", 3)
    views = tl.views(tl.load_cases("starter", n=1))
    asked = [
        Request(render("diagnosis", patient=v.text), n, t, 16, want=frozenset({"logprobs"}))
        for v in views
        for n, t in ((1, 0.0), (3, 0.5))
    ]
    each = []
    for n_jobs in (1, 2):
        kept: list[int] = []
        model = tl.open_model("embedded", n_jobs=n_jobs)
        with closing(CachedModel(model, tmp_path / f"{n_jobs}.sqlite")) as cached:
            each.append(cached._answered(asked, kept.append))
            cached.generate(asked)
        assert sum(call["n_made"] for call in cached.calls) == (1 + 3) * 6
        assert sum(kept) == len(asked)
    for one, two in zip(*each, strict=True):
        assert [r.text for r in one] == [r.text for r in two]
        for a, b in zip(one, two, strict=True):
            np.testing.assert_allclose(a.trace.logprobs, b.trace.logprobs, atol=1e-5)
