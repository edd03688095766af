"""A server that fails in many ways, and what becomes of a run: ``python -m benchmarks.attack``.

The server is the tests' toy, on the loopback interface. Each row is one run through a cache of its
own, then the same run again once the server has recovered: what was kept is not asked for again.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path.insert(0, str(TESTS))

from openai_server import KEY, Server  # noqa: E402  # pyright: ignore[reportMissingImports]

from trustlab.models.base import Request  # noqa: E402
from trustlab.models.cache import CachedModel  # noqa: E402
from trustlab.models.server.openai import OpenAIModel  # noqa: E402
from trustlab.stops import Stopped  # noqa: E402

TAIL = random.Random(0)


class Attack(NamedTuple):
    """A server's ways (fields of the toy), how many requests it gets, options of the model."""

    name: str
    ways: dict[str, Any]
    n: int = 200
    options: dict[str, Any] = {}


def every(n: int, action: Any) -> Callable[[int, dict], Any]:
    return lambda k, body: action if k % n == 0 else None


def slow(k: int, body: dict) -> None:
    time.sleep(0.5 * TAIL.lognormvariate(0, 0.7))


ATTACKS = [
    Attack("10 requests a second", {"per_second": 10, "retry_after": {}}),
    Attack(
        "10 a second, Retry-After: 1",
        {"per_second": 10, "retry_after": {"retry-after": "1"}},
    ),
    Attack("every third call refused (429)", {"plan": every(3, 429)}),
    Attack("every third call fails (500)", {"plan": every(3, 500)}),
    Attack("every third call fails (503)", {"plan": every(3, 503)}),
    Attack("every fifth answer is no JSON", {"plan": every(5, "garbage")}),
    Attack("every fifth connection cut", {"plan": every(5, "cut")}),
    Attack(
        "every fifth answer drips", {"plan": every(5, "drip")}, 60, {"timeout_s": 0.5}
    ),
    Attack("gone after 50 calls", {"plan": lambda k, body: 500 if k >= 50 else None}),
    Attack(
        "asks to wait an hour",
        {
            "plan": lambda k, body: 429 if k >= 50 else None,
            "retry_after": {"retry-after": "3600"},
        },
    ),
    Attack(
        "redirects elsewhere",
        {"plan": every(1, "redirect"), "elsewhere": "http://[::1]:9/"},
        8,
    ),
    Attack("every fifth reply holds the key", {"plan": every(5, "echo")}),
    Attack("says that it used 1e30 tokens", {"n_tokens": 1e30}),
    Attack("log-probabilities all 0", {"logprobs": "zero"}),
    Attack("log-probabilities no numbers", {"logprobs": "nan"}),
    Attack("0.5 s a call, with a long tail", {"plan": slow}, 640),
]


def run(attack: Attack, folder: Path) -> dict[str, Any]:
    """One run under the attack, and the same once more on a server that is well again."""
    want = frozenset({"logprobs"})
    requests = [
        Request((("user", f"Patient {k}."),), max_tokens=8, want=want)
        for k in range(attack.n)
    ]
    with Server(**attack.ways) as server:
        began, stopped, missing = time.perf_counter(), "", Counter()
        options = {"base_url": server.url, "provides": ["logprobs"], **attack.options}
        with closing(OpenAIModel("toy", **options)) as model:
            cached = CachedModel(model, folder / "replies.sqlite")
            try:
                rows = cached.generate(requests)
            except Stopped as error:
                rows, stopped = (
                    error.replies,
                    str(error).partition(";")[0].rpartition(": ")[0],
                )
            cached.close()
        seconds, calls = time.perf_counter() - began, len(server.received)
        replies = [row[0] for row in rows]
        for reply in replies:
            trace = reply.trace
            why = reply.missing or next(iter(trace.lacks.values() if trace else ()), "")
            missing[why.partition(": ")[0].partition(" (")[0]] += 1
        server.plan, server.per_second = lambda k, body: None, 0
        with closing(OpenAIModel("toy", **options)) as model:
            cached = CachedModel(model, folder / "replies.sqlite")
            cached.generate(requests)
            cached.close()
        again = len(server.received) - calls
    n_read = sum(reply.text is not None for reply in replies)
    assert not any(KEY.encode() in file.read_bytes() for file in folder.iterdir())
    del missing[""]
    why = "; ".join(f"{reason} ({n})" for reason, n in missing.most_common(2))
    return {
        "the server": attack.name,
        "requests": attack.n,
        "calls": calls,
        "replies": n_read,
        "without": attack.n - n_read,
        "what is said": stopped.replace(server.url.split("/")[2], "HOST") or why or "–",
        "seconds": f"{seconds:.1f}",
        "asked again later": again,
    }


def main() -> None:
    argparse.ArgumentParser(prog="benchmarks.attack", description=__doc__).parse_args()
    os.environ |= {"OPENAI_API_KEY": KEY, "NO_PROXY": "127.0.0.1"}
    heads: list[str] = []
    for attack in ATTACKS:
        with tempfile.TemporaryDirectory() as folder:
            row = run(attack, Path(folder))
        if not heads:
            heads = list(row)
            print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
        print(f"| {' | '.join(map(str, row.values()))} |", flush=True)


if __name__ == "__main__":
    main()
