"""A model that is asked by files: a run ends with what waits, and goes on from what came back.

Run as a script it is the run that gets killed: ``test_batch.py FOLDER PLACE COUNT``.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from each import each
from openai_server import Server, opening

import trustlab as tl
from trustlab.models import batch
from trustlab.models.base import Request, Waiting
from trustlab.models.batch import BatchModel
from trustlab.models.cache import import_cache
from trustlab.paths import save_table
from trustlab.settings import Setup

ASKED = (("system", "You are a doctor."), ("user", "Cough?"))
GIVES = ("logprobs", "distributions")
METHODS = ("asp", "entropy", "poc", "mc_se", "ce", "topk_ce", "medconf", "agreement")


def answered(folder: Path, server: Server, change: Callable[[list[dict]], Any] = list) -> int:
    """Run every input file without an output, as a service would; the lines that it wrote."""
    n = 0
    for file in sorted(folder.glob("in-*.jsonl")):
        out = folder / file.name.replace("in", "out")
        if out.exists():
            continue
        rows = []
        for line in file.read_text("utf-8").splitlines():
            row = json.loads(line)
            problem = server.problem(row["body"])
            body = server.chat(row["body"], None) if problem is None else problem[1]
            told = {"status_code": 200 if problem is None else problem[0], "body": body}
            rows.append(
                {
                    "id": f"{out.name} {len(rows)}",
                    "custom_id": row["custom_id"],
                    "response": told,
                    "error": None,
                }
            )
        lines = [r if isinstance(r, str) else json.dumps(r) for r in change(rows)]
        out.write_text("".join(f"{line}\n" for line in lines), "utf-8")
        n += len(lines)
    return n


def in_rounds(
    folder: Path, server: Server, run: Callable[[], Any], change: Callable[[list[dict]], Any] = list
) -> tuple[Any, list[int]]:
    """What ``run`` gives in the end, and how many lines were answered in each round."""
    rounds = []
    for _ in range(40):
        try:
            return run(), rounds
        except Waiting:
            rounds.append(answered(folder, server, change))
    raise AssertionError(f"no end after {rounds}")


def benchmarked(model: Any, cases: Any = None, **choices: Any) -> tl.Run:
    asked = {
        "samples": 3,
        "cache": ":memory:",
        "quiet": True,
        "prompts": "embedded",
        "trial": False,
    }
    setup = tl.opened(Setup(**asked | choices))
    cases = cases or tl.load_cases("starter", n=3)
    return tl.benchmark(cases, [model], METHODS, [20, 100], setup)


def same(one: tl.Run, other: tl.Run) -> None:
    for name in ("answers", "confidence"):
        pd.testing.assert_frame_equal(getattr(one, name), getattr(other, name))


@pytest.fixture
def online(monkeypatch) -> tl.Run:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with Server() as server, opening(server, provides=GIVES) as opened:
        return benchmarked(opened())


def test_three_shards_and_a_run_in_parts_give_the_tables_of_one_online(
    online, tmp_path, monkeypatch
):
    setup = tl.opened(Setup(n=3))
    shares, folder = [], tmp_path / "batch"
    monkeypatch.setattr("trustlab.experiment.PART", 2)  # a case each
    for i in (1, 2, 3):
        shares.append(setup.with_(shard=f"{i}/3").cases())
        kept = tmp_path / f"{i}.sqlite"
        if shares[-1]:
            where = folder / str(i)

            def run(cases: Any = shares[-1], where: Path = where, kept: Path = kept, i: int = i):
                model = BatchModel("toy", batch_dir=where)
                return benchmarked(model, cases, cache=kept, shard=f"{i}/3")

            part, rounds = in_rounds(where, Server(), run)
            assert part.parameters["shard"] == f"{i}/3" and len(rounds) <= 4
            assert import_cache(tmp_path / "all.sqlite", kept)["new"] > 0
    cases = setup.cases()
    of_all = [case.case_id for share in shares for case in share]
    assert sorted(of_all) == sorted(c.case_id for c in cases) and len(cases) == 3
    assert max(map(len, shares)) < 3
    model = BatchModel("toy", batch_dir=tmp_path / "none")
    whole = benchmarked(model, cases, cache=tmp_path / "all.sqlite")
    same(whole, online)
    assert whole.calls["n_made"].sum() == 0 and not list((tmp_path / "none").iterdir())
    for name in ("answers", "confidence"):
        save_table(getattr(whole, name), tmp_path / f"{name}.csv")
        save_table(getattr(online, name), tmp_path / f"{name}-online.csv")
        bytes_of = [(tmp_path / f"{name}{end}.csv").read_bytes() for end in ("", "-online")]
        assert bytes_of[0] == bytes_of[1]


def test_a_run_in_rounds_gives_the_tables_of_one_online(online, tmp_path):
    folder, server = tmp_path / "batch", Server()
    run, rounds = in_rounds(
        folder, server, lambda: benchmarked(BatchModel("toy", batch_dir=folder))
    )
    same(run, online)
    assert 2 <= len(rounds) <= 4


def shuffled(rows: list[dict]) -> list[Any]:
    """Twice, in another order, with strangers' lines, a cut one and an empty one."""
    other = {"custom_id": "stranger", "response": {"status_code": 200, "body": {"choices": []}}}
    mixed: list[Any] = [*rows, *rows, other, json.dumps(rows[0])[:40], "", "[1, 2]"]
    random.Random(0).shuffle(mixed)
    return mixed


def failing_once() -> Callable[[list[dict]], list[Any]]:
    """The second half of a file fails in passing, in the manners of several servers; each request
    once."""
    expired = {"response": None, "error": {"code": "batch_expired", "message": "expired"}}
    busy = {"response": {"status_code": 500, "body": {"error": {"message": "busy"}}}, "error": None}
    failed: set[str] = set()

    def change(rows: list[dict]) -> list[Any]:
        told: list[Any] = []
        for i, row in enumerate(rows):
            fails = i >= len(rows) // 2 and row["custom_id"] not in failed
            failed.update({row["custom_id"]} if fails else ())
            told.append(row | (expired if i % 2 else busy) if fails else row)
        return told + told

    return change


@each("change", [shuffled, failing_once()], ids=["shuffled", "failing"])
def test_an_output_twice_in_part_or_with_errors_does_no_harm(change, online, tmp_path):
    folder = tmp_path / "batch"
    run, rounds = in_rounds(
        folder, Server(), lambda: benchmarked(BatchModel("toy", batch_dir=folder)), change
    )
    same(run, online)
    assert change is shuffled or len(rounds) > 3


def test_what_waits_is_written_once_and_named(tmp_path):
    requests = [Request((("user", str(k)),), max_tokens=4) for k in range(3)]
    for _ in range(2):
        model = BatchModel("toy", batch_dir=tmp_path)
        replies = model.generate(requests)
        assert [row[0].missing for row in replies] == [batch.WAITS] * 3 and model.waiting == 3
        model.next_step()
        assert [f.name for f in tmp_path.glob("in-*")] == ["in-001.jsonl"]
    assert "3 requests of toy wait" in model.next_step() and "in-001.jsonl" in model.next_step()
    answered(tmp_path, Server())
    model = BatchModel("toy", batch_dir=tmp_path)
    assert all(row[0].text for row in model.generate(requests)) and model.waiting == 0
    more = model.generate([Request((("user", "new"),), max_tokens=4)])
    assert "1 requests of toy wait" in model.next_step()
    assert more[0][0].missing == batch.WAITS and (tmp_path / "in-002.jsonl").is_file()


def test_what_is_asked_again_before_the_file_is_made_is_written_once(tmp_path):
    model = BatchModel("toy", batch_dir=tmp_path)
    for _ in range(2):
        model.generate([Request(ASKED, max_tokens=4)])
    model.next_step()
    assert len((tmp_path / "in-001.jsonl").read_text().splitlines()) == 1 == model.waiting


def test_files_stay_within_what_services_take(tmp_path, monkeypatch):
    requests = [Request((("user", str(k)),), max_tokens=4) for k in range(10)]
    monkeypatch.setattr(batch, "MOST_LINES", 4)
    model = BatchModel("toy", batch_dir=tmp_path / "a")
    for request in requests:
        model.generate([request])
    model.next_step()
    sizes = [len(f.read_text().splitlines()) for f in sorted((tmp_path / "a").glob("in-*"))]
    assert sizes == [4, 4, 2]
    monkeypatch.setattr(batch, "MOST_BYTES", 700)
    model = BatchModel("toy", batch_dir=tmp_path / "b")
    model.generate(requests)
    model.next_step()
    files = sorted((tmp_path / "b").glob("in-*"))
    assert len(files) > 3 and all(f.stat().st_size <= 700 for f in files)


def test_a_request_that_fails_each_time_is_missing_with_its_reason(tmp_path):
    def failing(rows: list[dict]) -> list[dict]:
        body = {"error": {"message": "overloaded"}}
        return [row | {"response": {"status_code": 503, "body": body}} for row in rows]

    request = Request(ASKED, max_tokens=4)
    for n in range(1, batch.TRIES + 1):
        model = BatchModel("toy", batch_dir=tmp_path)
        assert model.generate([request])[0][0].missing == batch.WAITS and model.next_step()
        assert answered(tmp_path, Server(), failing) == 1 and len(list(tmp_path.glob("in-*"))) == n
    model = BatchModel("toy", batch_dir=tmp_path)
    assert model.generate([request])[0][0].missing == "the batch: HTTP 503: overloaded"
    assert not model.waiting


def test_a_server_s_dialect_is_learned_from_what_it_refused(tmp_path):
    server = Server(limit="max_completion_tokens")
    request = Request(ASKED, n=2, temperature=0.5, max_tokens=4)

    def run() -> Any:
        model = BatchModel("toy", batch_dir=tmp_path)
        replies = model.generate([request])
        if model.waiting:
            raise Waiting(model.next_step())
        return replies

    replies, rounds = in_rounds(tmp_path, server, run)
    assert all(reply.text for reply in replies[0]) and rounds == [1, 1]


def test_options_are_checked_with_a_run_s_settings(tmp_path):
    with pytest.raises(ValueError, match="model_options has no option 'concurrency'"):
        tl.opened(Setup(model="openai-batch:toy", model_options={"concurrency": 3}))
    with pytest.raises(ValueError, match="extra_body has 'n'"):
        BatchModel("toy", batch_dir=tmp_path, extra_body={"n": 3})
    options = {"batch_dir": str(tmp_path), "provides": ["logprobs"], "window": 300}
    (model,) = tl.opened(Setup(model="openai-batch:toy", model_options=options)).models()
    assert isinstance(model, BatchModel) and model.window == 300
    assert model.provides == {"text", "logprobs"}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL on Windows")
def test_a_run_killed_during_its_rounds_and_between_them_ends_with_the_same_tables(
    online, tmp_path
):
    folder, server = tmp_path / "batch", Server()
    run, where = None, {"PYTHONPATH": os.pathsep.join(sys.path)}
    for place, count in (("_write", 5), ("copy", 1), ("_write", 1), ("copy", 1), ("_write", 1)):
        command = [sys.executable, __file__, str(folder), place, str(count)]
        ended = subprocess.run(command, env=os.environ | where).returncode
        try:
            run = benchmarked(BatchModel("toy", batch_dir=folder))
            assert ended == 0  # nothing was left to ask for
            break
        except Waiting:
            assert ended == -signal.SIGKILL
            answered(folder, server)
    assert run is not None
    same(run, online)
    lines = [line for file in folder.glob("in-*.jsonl") for line in file.open()]
    names = [json.loads(line)["custom_id"] for line in lines]
    assert len(set(names)) == len(names)


def killed(folder: Path, place: str, count: int) -> None:
    """The same run, which kills itself when it does something for the ``count``-th time."""
    line, left = batch.FileLine, [count]

    def counting(done: Callable[..., Any]) -> Callable[..., Any]:
        def do(*given: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return done(*given)

        return do

    if place == "_write":
        line._write = counting(line._write)
    else:
        batch.shutil.copyfileobj = counting(batch.shutil.copyfileobj)
    benchmarked(BatchModel("toy", batch_dir=folder))


if __name__ == "__main__":
    killed(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
