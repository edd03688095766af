"""Times many calls of an OpenAI-compatible server that takes its time: ``python -m
benchmarks.openai``.

The server is the tests' toy, on the loopback interface and in a process of its own. What is
measured is what the backend adds to the waiting: with C calls in flight, N calls of s seconds
cannot take less than ceil(N / C) s.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import subprocess
import sys
import time
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

AIM = 1.15
TESTS = Path(__file__).resolve().parents[1] / "tests"


def serve(latency_s: float) -> None:
    """Serve until the standard input ends; the address goes to the standard output."""
    sys.path.insert(0, str(TESTS))
    from openai_server import Server  # pyright: ignore[reportMissingImports]

    with Server(latency_s=latency_s) as server:
        print(server.url, flush=True)
        sys.stdin.read()
        print(
            server.most_in_flight,
            len(server.connections),
            len(server.received),
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="benchmarks.openai", description="Time many calls of a slow server."
    )
    parser.add_argument(
        "--calls", type=int, default=1000, help="how many (default: %(default)s)"
    )
    parser.add_argument(
        "--in-flight",
        type=int,
        default=32,
        help="how many at once (default: %(default)s)",
    )
    parser.add_argument(
        "--latency",
        type=float,
        default=0.2,
        help="seconds the server waits with each (default: %(default)s)",
    )
    parser.add_argument(
        "--statistics",
        action="store_true",
        help="ask for log-probabilities and alternatives too",
    )
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve(options.latency)

    from trustlab.models.base import Request
    from trustlab.models.server.openai import OpenAIModel

    # As a module: run as a file, its folder would hide the library that it is named after.
    command = [
        sys.executable,
        "-m",
        "benchmarks.openai",
        "--serve",
        "--latency",
        str(options.latency),
    ]
    pipes = {
        "stdin": subprocess.PIPE,
        "stdout": subprocess.PIPE,
        "text": True,
        "cwd": TESTS.parent,
    }
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    with subprocess.Popen(command, **pipes) as server:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        want = (
            frozenset({"logprobs", "distributions"})
            if options.statistics
            else frozenset()
        )
        requests = [
            Request((("user", f"Patient {k}: cough and fever."),), want=want)
            for k in range(options.calls)
        ]
        how = {"base_url": address, "concurrency": options.in_flight, "provides": want}
        with closing(OpenAIModel("toy", **how)) as model:
            # imports and opens the client
            model.generate([Request((("user", "warm up"),))])
            began, cpu = time.perf_counter(), time.process_time()
            replies = model.generate(requests)
            seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
        seen, _ = server.communicate()
    most, connections, n_received = map(int, seen.split())
    ideal = math.ceil(options.calls / options.in_flight) * options.latency
    n_read = sum(
        reply.text is not None and (reply.trace is not None) == bool(want)
        for row in replies
        for reply in row
    )
    print(
        f"calls                 {options.calls:,} of {options.latency:g} s, {options.in_flight} in"
        " flight"
    )
    print(f"replies read          {n_read:,}")
    print(f"wall time             {seconds:.2f} s")
    print(f"ideal                 {ideal:.2f} s")
    print(f"ratio                 {seconds / ideal:.3f} (aim {AIM})")
    print(f"processor, per call   {1000 * cpu / options.calls:.2f} ms")
    print(
        f"seen by the server    {n_received:,} calls, at most {most} in flight, over {connections}"
        " connections"
    )
    machine = (
        f"{len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count()}"
        " cores"
    )
    print(
        f"machine               {machine}; {platform.system()}"
        + ("" if load is None else f"; load before {load:.1f}")
    )
    print(
        f"versions              Python {platform.python_version()}, openai {version('openai')}"
    )


if __name__ == "__main__":
    main()
