"""Runs that are killed, disks that are full, bits that flip: ``python -m benchmarks.kills``.

Each row is one kind of harm, done again and again at random moments and places (seeded) to a small
run of the tests, which is then finished. **lost** counts what had been kept and was gone or asked
for again, **asked again** what a model was asked once more: in flight when the run ended, or
damaged. A run's tables must be those of a run left alone. It exits with 1 where anything kept is
lost, where tables differ, where a flipped bit changes a reply in silence, and where one takes more
replies than its own.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import test_batch  # noqa: E402  # pyright: ignore[reportMissingImports]
import test_cache  # noqa: E402  # pyright: ignore[reportMissingImports]
import test_kill  # noqa: E402  # pyright: ignore[reportMissingImports]
from dask_processes import Dask  # noqa: E402  # pyright: ignore[reportMissingImports]
from openai_server import KEY, Server  # noqa: E402  # pyright: ignore[reportMissingImports]

import trustlab as tl  # noqa: E402
from trustlab.models.base import Model, Request  # noqa: E402
from trustlab.models.cache import (  # noqa: E402
    CachedModel,
    damaged_rows,
    export_cache,
    import_cache,
    request_keys,
)
from trustlab.models.server import batch  # noqa: E402
from trustlab.models.server.batch import BatchModel  # noqa: E402
from trustlab.models.wrapper import Wrapper  # noqa: E402
from trustlab.records import Reply  # noqa: E402
from trustlab.stops import Waiting  # noqa: E402

FORK = multiprocessing.get_context("forkserver")
"""Children that find everything imported, so that a run begins at once."""
TABLES = ("answers.csv", "confidence.csv")
LATENCY_S, IN_FLIGHT = test_kill.LATENCY_S, test_kill.IN_FLIGHT
MOST = 3
"""Replies that one flipped bit may take: a row, and what SQLite moves with it."""
Row = dict[str, Any]


def same_tables(one: Path, other: Path) -> bool:
    """Whether two runs' tables are the same bytes."""
    return all(
        (one / name).read_bytes() == (other / name).read_bytes() for name in TABLES
    )


def wait(process: Any, until: Callable[[], bool]) -> None:
    """Until something is so; an error where the process ends before."""
    while not until():
        if not process.is_alive():
            raise RuntimeError(f"the run ended by itself, with {process.exitcode}")
        time.sleep(0.002)


def by_server(folder: Path, n: int, rng: random.Random) -> Row:
    """A benchmark asks a server that counts its calls; begun anew when it has ended."""
    again = lost = done = 0
    equal = True
    with Server(latency_s=LATENCY_S) as server:
        test_kill.ask_server(folder / "alone", server.url)
        total = len(server.received)
        while done < n:
            shutil.rmtree(folder / "killed", ignore_errors=True)
            server.received.clear()
            while done < n and len(server.received) < 0.8 * total:
                before, seen = (
                    len(server.received),
                    Counter(map(json.dumps, server.received)),
                )
                process = FORK.Process(
                    target=test_kill.ask_server, args=(folder / "killed", server.url)
                )
                process.start()
                wait(process, lambda before=before: len(server.received) > before)
                time.sleep(rng.uniform(0, 3 * LATENCY_S))
                process.kill()
                process.join()
                time.sleep(2 * LATENCY_S)  # what was in flight is answered into nothing
                asked = Counter(map(json.dumps, server.received[before:]))
                twice = sum((asked & seen).values())
                again, lost, done = (
                    again + twice,
                    lost + max(0, twice - IN_FLIGHT),
                    done + 1,
                )
            test_kill.ask_server(folder / "killed", server.url)
            equal &= same_tables(folder / "alone", folder / "killed")
    what = f"SIGKILL of a run by a server, {IN_FLIGHT} calls in flight"
    return {
        "what": what,
        "n": done,
        "lost": lost,
        "asked again": again,
        "tables equal": equal,
    }


N_CASES, SAMPLES, BLOCK = 6, 5, 4
METHODS = ["asp", "poc", "ce", "p_true", "information_level"]


class Noting(Wrapper):
    """A model that first writes down, one key a line, each reply that it is asked for."""

    def __init__(self, model: Model, file: Path) -> None:
        super().__init__(model)
        self.file = file

    def generate(self, requests: Sequence[Request]) -> list[list[Reply]]:
        keys = [
            key for r in requests for key in request_keys(r, self.name, self.revision)
        ]
        with self.file.open("a", encoding="utf-8") as file:
            file.write("".join(f"{key}\n" for key in keys))
        return self.model.generate(requests)


def keys_kept(folder: Path) -> set[str]:
    """Keys of the replies on disk; none while there is no table yet."""
    if not (folder / "replies.sqlite").is_file():
        return set()
    with closing(sqlite3.connect(folder / "replies.sqlite", timeout=10)) as connection:
        try:
            return {key for (key,) in connection.execute("SELECT key FROM replies")}
        except sqlite3.OperationalError:
            return set()


def local(folder: Path, share: int, attempt: int) -> None:
    """The tests' small run of the embedded model; two share its kept replies, not its tables."""
    import torch

    torch.set_num_threads(1)
    (folder / str(share)).mkdir(parents=True, exist_ok=True)
    noted = folder / f"asked-{attempt}-{share}.txt"
    model = Noting(tl.open_model("embedded", device="cpu"), noted)
    cached = CachedModel(model, folder / "replies.sqlite", block=BLOCK)
    cases = tl.load_cases("starter", n=N_CASES, seed=0)
    named = {"samples": SAMPLES, "run_dir": folder / str(share)}
    test_kill.ask(tl.benchmark, cases, [cached], METHODS, **named)


def asked_in(folder: Path, attempt: int) -> list[str]:
    """The keys of the replies that an attempt asked for."""
    files = folder.glob(f"asked-{attempt}-*.txt")
    return [key for file in files for key in file.read_text().split()]


def by_two(folder: Path, n: int, rng: random.Random) -> Row:
    """Two processes with the embedded model share a file; both are killed."""
    local(folder / "alone", 0, 0)
    total, done, again, lost, equal = len(asked_in(folder / "alone", 0)), 0, 0, 0, True
    while done < n:
        where, attempt = folder / f"killed-{done}", 0
        while done < n and len(keys_kept(where)) < 0.8 * total:
            kept, attempt = keys_kept(where), attempt + 1
            both = [
                FORK.Process(target=local, args=(where, i, attempt)) for i in range(2)
            ]
            for process in both:
                process.start()
            wait(both[0], lambda w=where, a=attempt: len(asked_in(w, a)) > 0)
            time.sleep(rng.uniform(0, 0.5))
            for process in both:
                process.kill()
                process.join()
            twice = sum(key in kept for key in asked_in(where, attempt))
            gone = len(kept - keys_kept(where))
            again, lost, done = again + twice, lost + twice + gone, done + len(both)
        for share in range(2):
            local(where, share, attempt + 1)
            for name in TABLES:
                mine, theirs = (
                    pd.read_csv(of / name)
                    for of in (where / str(share), folder / "alone/0")
                )
                equal &= bool(mine.round(6).equals(theirs.round(6)))
    what = "SIGKILL of two local runs that share a file (tables to 1e-6)"
    return {
        "what": what,
        "n": done,
        "lost": lost,
        "asked again": again,
        "tables equal": equal,
    }


def on_cluster(folder: Path, address: str | None) -> None:
    """The small run on a cluster, or in two processes here."""
    cases = tl.load_cases("starter", n=N_CASES, seed=0)
    choices = {"samples": SAMPLES, "model": "embedded", "n_jobs": 2, "cluster": address}
    test_kill.ask(tl.benchmark, cases, None, METHODS, run_dir=folder, **choices)


class Watched:
    """A scheduler and two workers that note each reply they are asked for, a key a line."""

    def __init__(self, folder: Path) -> None:
        self.noted = folder / "noted.txt"
        self.noted.touch()
        on_cluster(folder / "alone", None)
        noting = {
            "DASK_DISTRIBUTED__WORKER__PRELOAD": str(
                ROOT / "tests" / "noting_worker.py"
            ),
            "NOTED": str(self.noted),
        }
        self.dask = Dask(folder, 2, **noting)

    def keys(self) -> list[str]:
        """What workers were asked for, in order."""
        return self.noted.read_text().split()

    def begun(self, folder: Path) -> Any:
        """A client at work: its workers are asked."""
        before = len(self.keys())
        client = FORK.Process(target=on_cluster, args=(folder, self.dask.address))
        client.start()
        while client.is_alive() and len(self.keys()) == before:
            time.sleep(0.002)
        return client

    def row(self, what: str, n: int, lost: int, runs: Sequence[Path]) -> Row:
        """Told of ``n`` kills; of every run each key is asked for once but for ``asked again``."""
        alone = self.noted.parent / "alone"
        asked = len(self.keys()) - len(set(self.keys())) * len(runs)
        equal = all(same_tables(alone, run) for run in runs)
        once = all(keys_kept(run) == keys_kept(alone) for run in runs)
        return {
            "what": what,
            "n": n,
            "lost": lost,
            "asked again": asked,
            "tables equal": equal and once,
        }


def of_workers(folder: Path, n: int, rng: random.Random) -> Row:
    """One of two workers of a cluster is killed, and another comes."""
    watched, done, lost, runs = Watched(folder), 0, 0, []
    with watched.dask as dask:
        while done < n:
            runs.append(folder / f"run-{len(runs)}")
            client, kills = watched.begun(runs[-1]), []
            while client.is_alive() and done < n:
                time.sleep(rng.uniform(0, 2))
                kills.append((keys_kept(runs[-1]), len(watched.keys())))
                if client.is_alive():
                    dask.workers.pop(rng.randrange(2)).kill()
                    dask.add()
                    done += 1
            client.join()
            while client.exitcode:  # no worker for a minute: the same command again
                client = watched.begun(runs[-1])
                client.join()
            keys = watched.keys()
            lost += sum(len(kept.intersection(keys[before:])) for kept, before in kills)
        return watched.row(
            "SIGKILL of one of two workers of a cluster", done, lost, runs
        )


def of_clients(folder: Path, n: int, rng: random.Random) -> Row:
    """The client of a cluster is killed, and the same command is given again."""
    watched, done, lost, runs = Watched(folder), 0, 0, []
    with watched.dask:
        while done < n:
            runs.append(folder / f"run-{len(runs)}")
            client = None
            while client is None or client.exitcode:
                kept, before = keys_kept(runs[-1]), len(watched.keys())
                client = watched.begun(runs[-1])
                if done < n:
                    client.join(rng.uniform(0, 4))
                    done += client.is_alive()
                    client.kill()
                client.join()
                lost += len(kept.intersection(watched.keys()[before:]))
        return watched.row("SIGKILL of the client of a cluster", done, lost, runs)


def killed_by_itself(folder: Path, place: str, count: int) -> None:
    """A run in batch files that kills itself when it writes or copies for the ``count``-th time."""
    left = [count]

    def counting(done: Callable[..., Any]) -> Callable[..., Any]:
        def do(*given: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return done(*given)

        return do

    if place == "_write":
        batch.FileLine._write = counting(batch.FileLine._write)
    else:
        batch.whole = counting(batch.whole)
    test_batch.benchmarked(BatchModel("toy", batch_dir=folder))


def by_files(folder: Path, n: int, rng: random.Random) -> Row:
    """A run in batch rounds kills itself while it writes or copies, or between two rounds."""
    with (
        Server() as online,
        test_batch.opening(online, provides=test_batch.GIVES) as opened,
    ):
        alone = test_batch.benchmarked(opened())
    done, twice, equal, server, turn = 0, 0, True, Server(), 0
    while done < n:
        turn += 1
        where, run = folder / str(turn), None
        while run is None:
            place, count = rng.choice([("_write", rng.randint(1, 40)), ("whole", 1)])
            process = FORK.Process(
                target=quietly, args=(killed_by_itself, where, place, count)
            )
            process.start()
            process.join()
            done += process.exitcode == -9
            if rng.random() < 0.5:  # else it is killed in the same round again
                try:
                    run = test_batch.benchmarked(BatchModel("toy", batch_dir=where))
                except Waiting:
                    test_batch.answered(where, server)
        equal &= all(
            getattr(run, name).equals(getattr(alone, name))
            for name in ("answers", "confidence")
        )
        lines = [line for file in where.glob("in-*.jsonl") for line in file.open()]
        twice += len(lines) - len({json.loads(line)["custom_id"] for line in lines})
    what = "SIGKILL between and amid batch rounds"
    return {
        "what": what,
        "n": done,
        "lost": twice,
        "asked again": twice,
        "tables equal": equal,
    }


def quietly(do: Callable[..., Any], *given: Any) -> None:
    """Do it; how it ends is written to no terminal."""
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
        do(*given)


def told(folder: Path, url: str, why: Path) -> None:
    """The run by a server; the error with which it ends is written to ``why``."""
    try:
        test_kill.ask_server(folder, url)
    except Exception as error:
        why.write_text(f"{type(error).__name__}: {error}")


def full_disk(folder: Path, n: int, rng: random.Random) -> Row:
    """A disk (tmpfs) fills during a run by a server, is made larger, and the run is finished."""
    again, lost, equal, disk, why = 0, 0, True, folder / "disk", folder / "why.txt"
    disk.mkdir()
    with Server(latency_s=0.01) as server:
        test_kill.ask_server(folder / "alone", server.url)
        for _ in range(n):
            server.received.clear()
            why.unlink(missing_ok=True)
            size = f"size={rng.randint(100, 600)}k"
            subprocess.run(
                ["mount", "-t", "tmpfs", "-o", size, "kills", disk], check=True
            )
            try:
                process = FORK.Process(
                    target=told, args=(disk / "run", server.url, why)
                )
                process.start()
                process.join()
                words = why.read_text() if why.is_file() else "it ended well"
                if (
                    str(disk) not in words
                    or "full" not in words
                    and "space" not in words
                ):
                    raise RuntimeError(f"a full disk is not named: {words}")
                seen = Counter(map(json.dumps, server.received))
                before = len(server.received)
                subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
                test_kill.ask_server(disk / "run", server.url)
                twice = Counter(map(json.dumps, server.received[before:])) & seen
                again, lost = (
                    again + twice.total(),
                    lost + max(0, twice.total() - IN_FLIGHT),
                )
                equal &= same_tables(folder / "alone", disk / "run")
            finally:
                subprocess.run(["umount", disk], check=True)
    what = "a disk that is full during a run, then larger"
    return {
        "what": what,
        "n": n,
        "lost": lost,
        "asked again": again,
        "tables equal": equal,
    }


class Wordy(test_cache.Fake):
    """Some replies are longer than a page of SQLite's."""

    def reply(self, request: Any, i: int) -> Any:
        made = super().reply(request, i)
        words = f"{made.text} " * (12 if i == 1 else 1)
        return test_cache.replace(made, text=words, trace=test_cache.trace_of(words))


def flipped(source: Path, target: Path, at: int) -> None:
    """A copy with one bit the other way."""
    raw = bytearray(source.read_bytes())
    raw[at // 8] ^= 1 << at % 8
    target.write_bytes(raw)


def outcome(path: Path, requests: list[Any], right: list[list[str]]) -> tuple[str, int]:
    """What becomes of a file of replies in a run, and the replies that were asked again."""
    cached, model = None, Wordy()
    try:
        cached = CachedModel(model, path)
        rows = cached.generate(requests)
    except Exception as error:
        if path.name not in str(error):
            raise
        return "refused", 0
    finally:
        if cached is not None:
            cached.close()
    wrong = test_cache.written(rows) != right
    n = sum(request.n for block in model.asked for request in block)
    return "SILENT" if wrong else "asked again" if n else "harmless", n


def flips(folder: Path, n: int, rng: random.Random, structure: bool = False) -> Row:
    """A bit flips in the file; of one that is refused, what ``trustlab cache export`` saves is
    taken into a new one."""
    whole, copy, requests = (
        folder / "whole.sqlite",
        folder / "copy.sqlite",
        test_cache.batch(60),
    )
    cached = CachedModel(Wordy(), whole)
    right = test_cache.written(cached.generate(requests))
    cached.close()
    places = range(whole.stat().st_size)
    if structure:
        places = [k for k in places if k < 600 or 3896 <= k < 4096 or k % 4096 < 40]
    met: Counter[str] = Counter()
    again = most = 0
    for place in rng.sample(places, n):
        for file in folder.glob("copy.sqlite*"):
            file.unlink()
        at = 8 * place + rng.randrange(8)
        flipped(whole, copy, at)
        became, asked = outcome(copy, requests, right)
        if became == "refused":
            flipped(whole, copy, at)
            named = damaged_rows(copy)
            export_cache(copy, folder / "saved.jsonl.gz")
            (saved := folder / "saved.sqlite").unlink(missing_ok=True)
            import_cache(saved, folder / "saved.jsonl.gz")
            ended, asked = outcome(saved, requests, right)
            became = (
                "refused, saved"
                if named and ended in ("harmless", "asked again")
                else "SILENT"
            )
        met[became] += 1
        again, most = again + asked, max(most, asked)
    parts = ", ".join(f"{count} {became}" for became, count in met.most_common())
    place = (
        "where the file and its pages begin" if structure else "anywhere in the file"
    )
    what = f"a bit flips, {place}: {parts}; most at once: {most}"
    return {
        "what": what,
        "n": n,
        "lost": most if most > MOST else 0,
        "asked again": again,
        "tables equal": not met["SILENT"],
    }


def flips_of_structure(folder: Path, n: int, rng: random.Random) -> Row:
    """The same where the file and its pages begin."""
    return flips(folder, n, rng, structure=True)


def flips_of_pack(folder: Path, n: int, rng: random.Random) -> Row:
    """A bit flips in a pack of replies: it is refused by name, or every reply is as it was."""
    cached = CachedModel(Wordy(), folder / "whole.sqlite")
    cached.generate(test_cache.batch(20))
    cached.close()
    export_cache(folder / "whole.sqlite", pack := folder / "pack.jsonl.xz")
    met: Counter[str] = Counter()
    for at in rng.sample(range(8 * pack.stat().st_size), n):
        flipped(pack, bad := folder / "bad.jsonl.xz", at)
        (folder / "into.sqlite").unlink(missing_ok=True)
        try:
            import_cache(folder / "into.sqlite", bad)
            export_cache(folder / "into.sqlite", out := folder / "out.jsonl.xz")
            met["harmless" if out.read_bytes() == pack.read_bytes() else "SILENT"] += 1
        except ValueError as error:
            met["refused" if "bad.jsonl.xz" in str(error) else "SILENT"] += 1
    parts = ", ".join(f"{count} {became}" for became, count in met.most_common())
    what = f"a bit flips in a pack of replies: {parts}"
    return {
        "what": what,
        "n": n,
        "lost": 0,
        "asked again": 0,
        "tables equal": not met["SILENT"],
    }


HARMS = {
    by_server: 100, by_two: 30, by_files: 30, full_disk: 10, flips: 60, flips_of_structure: 60,
    flips_of_pack: 60, of_workers: 10, of_clients: 5,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.kills", description=__doc__)
    parser.add_argument("--only", nargs="*", choices=[harm.__name__ for harm in HARMS])
    parser.add_argument(
        "--share", type=float, default=1.0, help="of the numbers in full"
    )
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    os.environ |= {
        "OPENAI_API_KEY": KEY,
        "NO_PROXY": "127.0.0.1",
        "OMP_NUM_THREADS": "1",
    }
    FORK.set_forkserver_preload(["test_kill", "test_batch", "openai", "torch"])
    warnings.simplefilter("ignore")
    good = True
    for harm, n in HARMS.items():
        if asked.only and harm.__name__ not in asked.only:
            continue
        began = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            row = harm(
                Path(folder), max(1, round(n * asked.share)), random.Random(asked.seed)
            )
        good &= row["tables equal"] and not row["lost"]
        cells = [date.today(), *row.values(), f"{time.perf_counter() - began:.0f}"]
        if began and harm is next(iter(HARMS)) or asked.only:
            heads = ["date", *row, "seconds"]
            print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
        print(f"| {' | '.join(map(str, cells))} |", flush=True)
    sys.exit(not good)


if __name__ == "__main__":
    main()
