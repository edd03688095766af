"""Work over processes: how many there are, what they give, and that none is left behind.

Run as a script it is the scoring that gets killed: ``test_processes.py FOLDER BACKEND``.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from queue import Empty, Queue
from types import SimpleNamespace

import numpy as np
import pytest
from each import each
from joblib import effective_n_jobs, parallel_config

import trustlab as tl
from trustlab import processes as module
from trustlab.models import spread as spread_model
from trustlab.models.base import Request
from trustlab.models.cache import CachedModel
from trustlab.models.spread import SpreadModel
from trustlab.processes import beside, processes, spread
from trustlab.prompts import render

ROOT = Path(__file__).resolve().parents[1]
N_CORES = effective_n_jobs(-1)
LIMIT_S = 60


@contextmanager
def offering(monkeypatch: pytest.MonkeyPatch, most: int) -> Iterator[None]:
    """A backend that offers ``most``; nothing has been told before."""
    monkeypatch.setattr(module, "effective_n_jobs", lambda n_jobs: most if n_jobs == -1 else n_jobs)
    module._told.cache_clear()
    yield
    module._told.cache_clear()


@each(("n_jobs", "used"), [(1, 1), (2, 2), (3, 3), (-1, 3)])
def test_as_many_are_used_as_are_asked_for(
    monkeypatch: pytest.MonkeyPatch, n_jobs: int, used: int
) -> None:
    with offering(monkeypatch, 3), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert processes(n_jobs) == used


def test_no_more_are_used_than_the_backend_offers_which_is_told_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with offering(monkeypatch, 3), pytest.warns(UserWarning) as caught:
        assert processes(5000) == processes(5000) == 3
    assert [str(one.message) for one in caught] == [
        "n_jobs is 5000; joblib's backend offers 3 at most, and no more are used"
    ]


def test_the_active_backend_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    from joblib._parallel_backends import ThreadingBackend

    monkeypatch.setattr(
        ThreadingBackend, "effective_n_jobs", lambda self, n_jobs: 7 if n_jobs == -1 else n_jobs
    )
    with parallel_config(backend="threading"):
        assert processes(-1) == processes(6) + 1 == 7
    assert processes(-1) == N_CORES


def test_none_is_no_number_of_processes() -> None:
    with pytest.raises(ValueError, match="n_jobs == 0"):
        processes(0)


def squared(x: int, plus: int) -> tuple[int, int]:
    return x * x + plus, os.getpid()


@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_what_they_give_is_in_order(backend: str, n_jobs: int) -> None:
    with parallel_config(backend=backend):
        made = spread(squared, ((x, 1) for x in range(9)), n_jobs)
    assert [value for value, _ in made] == [x * x + 1 for x in range(9)]
    own = n_jobs == 1 or backend == "threading" or N_CORES == 1
    assert (os.getpid() in {where for _, where in made}) == own


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


def grown(n_bytes: int, held: list = []) -> int:  # noqa: B006 - what a worker has opened
    held.append(b"x" * n_bytes)
    time.sleep(1.1)  # joblib looks once a second
    return os.getpid()


@pytest.mark.skipif(N_CORES == 1, reason="one core: no other process is used")
def test_a_worker_that_opens_something_large_goes_on() -> None:
    with beside(2, squared) as begin, warnings.catch_warnings():
        warnings.simplefilter("error")  # "A worker stopped ... by a memory leak"
        where = [begin(grown, n).result(LIMIT_S) for n in (0, 350_000_000, 0)]
    assert len(set(where)) == 1 and where[0] != os.getpid()


def test_python_looks_for_circles_less_often_meanwhile_and_then_as_before() -> None:
    before = gc.get_threshold()
    with pytest.raises(LookupError), module.seldom_collected():
        assert gc.get_threshold()[0] == 100 * before[0]
        failing()
    assert gc.get_threshold() == before
    gc.set_threshold(1_000_000)  # somebody's own; one within another passes no limit
    try:
        with module.seldom_collected(), module.seldom_collected(), module.seldom_collected():
            assert gc.get_threshold()[0] == 1 << 30
        assert gc.get_threshold()[0] == 1_000_000
    finally:
        gc.set_threshold(*before)


OWN, OTHER, FORK_SERVER = os.getpid(), -1, -2


@each(
    ("parent", "adopted_by", "watched"),
    [
        (None, OWN, False),
        (OTHER, OTHER, False),
        (OWN, OWN, True),
        (OWN, 1, True),
        (OWN, FORK_SERVER, False),
    ],
    ids=["the asker", "another's process", "a worker", "its parent is gone", "a fork server's"],
)
def test_who_ends_with_its_parent(
    monkeypatch: pytest.MonkeyPatch, parent: int | None, adopted_by: int, watched: bool
) -> None:
    found = None if parent is None else SimpleNamespace(pid=parent)
    monkeypatch.setattr(multiprocessing, "parent_process", lambda: found)
    monkeypatch.setattr(os, "getppid", lambda: adopted_by)
    seen: Queue[int] = Queue()
    monkeypatch.setattr(module, "_watch", seen.put)
    module._end_with.cache_clear()
    for _ in range(2):
        assert module._in_worker(OWN, squared, 2, 0) == (4, OWN)
    if watched:
        assert seen.get(timeout=LIMIT_S) == OWN
    with pytest.raises(Empty):  # once is enough
        seen.get(timeout=0.05)
    module._end_with.cache_clear()


def test_a_worker_whose_parent_is_gone_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    def ended(status: int) -> None:
        raise SystemExit(status)

    monkeypatch.setattr(os, "getppid", iter([OWN, OWN, 1]).__next__)
    monkeypatch.setattr(os, "_exit", ended)
    monkeypatch.setattr(module, "LOOKS_EVERY_S", 0.0)
    with pytest.raises(SystemExit):
        module._watch(OWN)


# Killed


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


def test_a_local_model_says_the_same_in_any_number_of_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spread_model, "CHUNK", 5)
    views = tl.views(tl.load_cases("starter", n=2))
    asked = [
        Request(render("diagnosis", patient=v.text), n, t, 16, want=frozenset({"logprobs"}))
        for v in views
        for n, t in ((1, 0.0), (3, 0.5))
    ]
    each, kept = [], []
    for n_jobs in (1, 2):
        model = tl.open_model("embedded", n_jobs=n_jobs)
        with closing(CachedModel(model, tmp_path / f"{n_jobs}.sqlite")) as cached:
            each.append(cached.generate(asked, progress=kept.append))
            cached.generate(asked)
        assert sum(call["n_made"] for call in cached.calls) == 2 * (1 + 3) * 6
        assert cached.name == "embedded" and sum(kept) == len(asked)
        kept.clear()
    assert isinstance(model._model, SpreadModel)
    assert model.window == tl.open_model("embedded").window
    for one, two in zip(*each, strict=True):
        assert [r.text for r in one] == [r.text for r in two]
        for a, b in zip(one, two, strict=True):
            np.testing.assert_allclose(a.trace.logprobs, b.trace.logprobs, atol=1e-5)


def test_a_model_of_words_alone_keeps_to_them_in_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spread_model, "CHUNK", 2)
    asked = [Request((("user", w),), max_tokens=4, want=frozenset({"logprobs"})) for w in "abcde"]
    replies = tl.open_model("embedded-closed", n_jobs=2).generate(asked)
    assert [r.trace for row in replies for r in row] == [None] * 5
    with pytest.raises(ValueError, match="must be at least 1, got n=0"):
        tl.open_model("embedded", n_jobs=2).generate([replace(asked[0], n=0), *asked])
