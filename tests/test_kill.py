"""A benchmark by a server that is killed again and again asks for nothing that it finished, and
ends with the tables of one left alone.

Run as a script it is the run that gets killed: ``test_kill.py FOLDER ADDRESS``.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from asking import ask
from openai_server import Server

from trustlab.datasets import load_cases
from trustlab.models.server.openai import OpenAIModel
from trustlab.runs.experiment import benchmark
from trustlab.runs.run import Run

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "NO_PROXY": "127.0.0.1"}
KILLS, IN_FLIGHT, LATENCY_S, LIMIT_S = 6, 4, 0.06, 120


def ask_server(folder: Path, address: str) -> Run:
    """The small benchmark by a server, ``IN_FLIGHT`` calls at once."""
    model = OpenAIModel("toy", base_url=address, concurrency=IN_FLIGHT, provides=["logprobs"])
    methods, how = ["asp", "poc", "ce", "p_true"], {"prompts": "embedded", "trial": False}
    with closing(model):
        cases = load_cases("starter", n=12, seed=0)
        return ask(benchmark, cases, [model], methods, samples=5, **how, run_dir=folder)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL on Windows")
def test_killed_six_times_only_calls_in_flight_are_asked_again(tmp_path, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    rng, command = random.Random(0), [sys.executable, __file__, str(tmp_path / "killed")]
    with Server(latency_s=LATENCY_S) as server:
        ask_server(tmp_path / "alone", server.url)
        total = len(server.received)
        server.received.clear()
        for _ in range(KILLS):
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
        assert len(server.received) - total <= KILLS * IN_FLIGHT
    for name in ("answers.csv", "confidence.csv"):
        alone, killed = ((tmp_path / which / name).read_bytes() for which in ("alone", "killed"))
        assert alone == killed


if __name__ == "__main__":
    ask_server(Path(sys.argv[1]), sys.argv[2])
