"""A benchmark killed again and again asks for nothing that it finished, and ends with the tables of
one left alone.

Run as a script it is the run that gets killed: ``test_kill.py FOLDER``, or with the address of a
server ``test_kill.py FOLDER ADDRESS``.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pytest
from asking import ask
from openai_server import Server

from trustlab.datasets import load_cases
from trustlab.experiment import benchmark
from trustlab.models import open_model
from trustlab.models.base import Model, Request
from trustlab.models.cache import CachedModel, request_keys
from trustlab.models.openai import OpenAIModel
from trustlab.records import Reply
from trustlab.run import Run

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "NO_PROXY": "127.0.0.1"}
N_CASES, SAMPLES, BLOCK = 6, 5, 4
N_VIEWS = N_CASES * 6
POINTS = (0, 1 / 3, 2 / 3)  # share of all replies kept, above which the run is killed
LIMIT_S = 120
METHODS = ["asp", "poc", "ce", "p_true", "information_level"]
"""They ask for an answer, SAMPLES samples, a score and SAMPLES judgements of each view."""


class Noting:
    """A model that first writes down, one key a line, each reply that it is asked for."""

    taught = {"set": "embedded"}

    def __init__(self, model: Model, file: Path) -> None:
        self.model, self.file = model, file
        self.name, self.revision, self.provides = model.name, model.revision, model.provides

    def generate(self, requests: Sequence[Request]) -> list[list[Reply]]:
        keys = [key for r in requests for key in request_keys(r, self.name, self.revision)]
        with self.file.open("a", encoding="utf-8") as file:
            file.write("".join(f"{key}\n" for key in keys))
        return self.model.generate(requests)


def run_in(folder: Path) -> Run:
    """The small benchmark, with several commits; replies and tables go to ``folder``."""
    folder.mkdir(exist_ok=True)
    model = Noting(open_model("embedded", device="cpu"), folder / "asked.txt")
    cached = CachedModel(model, folder / "replies.sqlite", block=BLOCK)
    cases = load_cases("starter", n=N_CASES, seed=0)
    return ask(benchmark, cases, [cached], METHODS, samples=SAMPLES, run_dir=folder)


def keys_kept(folder: Path) -> set[str]:
    """Keys of the replies on disk; none while there is no table yet."""
    if not (folder / "replies.sqlite").is_file():
        return set()
    connection = sqlite3.connect(folder / "replies.sqlite", timeout=10)
    try:
        return {key for (key,) in connection.execute("SELECT key FROM replies")}
    except sqlite3.OperationalError:
        return set()
    finally:
        connection.close()


def keys_asked(folder: Path) -> list[str]:
    """Every reply asked for so far, by all runs in ``folder`` together."""
    file = folder / "asked.txt"
    return file.read_text(encoding="utf-8").split() if file.is_file() else []


def start(folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, __file__, str(folder)], env=ENVIRONMENT)


def start_and_kill(folder: Path, n_rows: int) -> None:
    """SIGKILL the run once more than ``n_rows`` replies are on disk."""
    process, deadline = start(folder), time.monotonic() + LIMIT_S
    try:
        while len(keys_kept(folder)) <= n_rows:
            assert process.poll() is None, (
                f"the run ended by itself with status {process.returncode}"
            )
            assert time.monotonic() < deadline, (
                f"{len(keys_kept(folder))} replies after {LIMIT_S} s"
            )
            time.sleep(0.004)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == -signal.SIGKILL, "the run ended before it was killed"


def tables(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    return pd.read_csv(folder / "answers.csv"), pd.read_csv(folder / "confidence.csv")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL on Windows")
def test_killed_three_times_nothing_finished_is_asked_again(tmp_path):
    alone, killed = tmp_path / "alone", tmp_path / "killed"
    whole = run_in(alone)
    every = keys_kept(alone)
    total = int(whole.calls["n_made"].sum())
    assert total == len(every) == len(keys_asked(alone)) == N_VIEWS * 2 * (1 + SAMPLES)

    stored: set[str] = set()
    for point in POINTS:
        n_asked = len(keys_asked(killed))
        start_and_kill(killed, max(int(point * total), len(stored)))
        assert not stored & set(keys_asked(killed)[n_asked:]), (
            "a finished reply was asked for again"
        )
        assert stored < keys_kept(killed) < every
        stored = keys_kept(killed)
        assert not (killed / "run.json").exists()

    n_asked = len(keys_asked(killed))
    process = start(killed)
    assert process.wait(LIMIT_S) == 0
    last = keys_asked(killed)[n_asked:]
    assert not stored & set(last)
    calls = pd.read_csv(killed / "calls.csv")
    assert calls["n_made"].sum() == len(last) == total - len(stored)
    assert calls["n_cached"].sum() == len(stored)
    assert keys_kept(killed) == every
    # At most the block that was being asked is lost at each kill.
    assert len(keys_asked(killed)) - total <= len(POINTS) * BLOCK * (1 + SAMPLES)

    for mine, theirs in zip(tables(killed), tables(alone), strict=True):
        pd.testing.assert_frame_equal(mine, theirs, rtol=0, atol=1e-6)


KILLS, IN_FLIGHT = 6, 4
LATENCY_S = 0.06


def ask_server(folder: Path, address: str) -> Run:
    """The small benchmark by a server, ``IN_FLIGHT`` calls at once."""
    model = OpenAIModel("toy", base_url=address, concurrency=IN_FLIGHT, provides=["logprobs"])
    cases = load_cases("starter", n=2 * N_CASES, seed=0)
    methods = ["asp", "poc", "ce", "p_true"]
    with model:
        given = {"samples": SAMPLES, "prompts": "embedded", "trial": False}
        return ask(benchmark, cases, [model], methods, **given, run_dir=folder)


def killed_again_and_again(folder: Path, kills: int) -> tuple[int, int]:
    """Run in ``folder``, killed at random moments, and at last to its end: calls that the server
    saw, and those of them that it had seen before."""
    rng = random.Random(0)
    command = [sys.executable, __file__, str(folder / "killed")]
    with Server(latency_s=LATENCY_S) as server:
        ask_server(folder / "alone", server.url)
        total = len(server.received)
        server.received.clear()
        for _ in range(kills):
            before, seen = len(server.received), Counter(map(json.dumps, server.received))
            with subprocess.Popen([*command, server.url], env=ENVIRONMENT) as process:
                while len(server.received) == before:
                    assert process.poll() is None, "the run ended before it was killed"
                    time.sleep(0.002)
                time.sleep(rng.uniform(0, 2 * LATENCY_S))
                process.kill()
            time.sleep(2 * LATENCY_S)  # what was in flight is answered into nothing
            asked = Counter(map(json.dumps, server.received[before:]))
            assert max(asked.values()) == 1 and sum((asked & seen).values()) <= IN_FLIGHT
        assert len(server.received) < total, "nothing was left for the last run"
        subprocess.run([*command, server.url], env=ENVIRONMENT, check=True, timeout=LIMIT_S)
        assert len(Counter(map(json.dumps, server.received))) == total
        return len(server.received), len(server.received) - total


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL on Windows")
def test_killed_six_times_only_calls_in_flight_are_asked_again(tmp_path, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    _, again = killed_again_and_again(tmp_path, KILLS)
    assert again <= KILLS * IN_FLIGHT
    for name in ("answers.csv", "confidence.csv"):
        alone, killed = ((tmp_path / which / name).read_bytes() for which in ("alone", "killed"))
        assert alone == killed


if __name__ == "__main__":
    ask_server(Path(sys.argv[1]), sys.argv[2]) if sys.argv[2:] else run_in(Path(sys.argv[1]))
