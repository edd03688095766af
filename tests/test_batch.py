"""A model that is asked by files: a run ends with what waits, and goes on from what came back."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from each import each
from openai_server import Server, opening
from saying import saying, says

import trustlab as tl
from trustlab.models.base import Request
from trustlab.models.cache import CachedModel, import_cache
from trustlab.models.server import batch
from trustlab.models.server.batch import BatchModel
from trustlab.settings import Setup
from trustlab.stops import Waiting

ASKED = Request((("system", "You are a doctor."), ("user", "Cough?")), max_tokens=4)
GIVES = ("logprobs", "distributions")
METHODS = ("asp", "entropy", "poc", "ce", "medconf")


def asks(n: int) -> list[Request]:
    return [Request((("user", str(k)),), max_tokens=4) for k in range(n)]


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
            status, body = server.problem(row["body"]) or (200, server.chat(row["body"], None))
            told = {"status_code": status, "body": body}
            named = {"id": f"{out.name} {len(rows)}", "custom_id": row["custom_id"]}
            rows.append({**named, "response": told, "error": None})
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


def asked(folder: Path, requests: list[Request]) -> Any:
    """The replies, or :class:`Waiting`."""
    model = BatchModel("toy", batch_dir=folder)
    rows = model.generate(requests)
    if model.waiting:
        raise Waiting(model.next_step(), rows)
    return rows


def benchmarked(model: Any, cases: Any = None, **choices: Any) -> tl.Run:
    how = {"samples": 3, "cache": ":memory:", "quiet": True, "prompts": "embedded", "trial": False}
    setup = tl.opened(Setup(**how | choices))
    return tl.benchmark(cases or tl.load_cases("starter", n=3), [model], METHODS, [20, 100], setup)


def same(one: tl.Run, other: tl.Run) -> None:
    for name in ("answers", "confidence"):
        pd.testing.assert_frame_equal(getattr(one, name), getattr(other, name))


@pytest.fixture(scope="module")
def online() -> Iterator[tl.Run]:
    with pytest.MonkeyPatch.context() as patch, Server() as server:
        patch.setenv("NO_PROXY", "127.0.0.1")
        with opening(server, provides=GIVES) as opened:
            yield benchmarked(opened())


def test_sites_that_import_and_a_run_in_parts_give_the_tables_of_one_online(
    online, tmp_path, monkeypatch
):
    cases, folder = tl.load_cases("starter", n=3, seed=0), tmp_path / "batch"
    monkeypatch.setattr("trustlab.runs.experiment.PART", 2)  # a case each
    for i, share in enumerate((cases[:1], cases[1:])):
        where, kept = folder / str(i), tmp_path / f"{i}.sqlite"

        def run(share: Any = share, where: Path = where, kept: Path = kept) -> tl.Run:
            return benchmarked(BatchModel("toy", batch_dir=where), share, cache=kept)

        _, rounds = in_rounds(where, Server(), run)
        assert len(rounds) <= 4
        assert import_cache(tmp_path / "all.sqlite", kept)["new"] > 0
    model = BatchModel("toy", batch_dir=tmp_path / "none")
    whole = benchmarked(model, cases, cache=tmp_path / "all.sqlite")
    same(whole, online)
    assert whole.calls["n_made"].sum() == 0 and not list((tmp_path / "none").iterdir())


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


@each(("change", "least"), [(list, 2), (shuffled, 2), (failing_once(), 4)])
def test_a_run_in_rounds_gives_the_replies_of_one_online(change, least, tmp_path):
    """Also where an output comes twice, in another order, in part or with errors."""
    whole, other = (tmp_path / name for name in ("whole", "other"))
    first, second = asks(4), [Request((("user", str(k)),), 3, 0.5) for k in range(3)]

    def run(folder: Path) -> Any:
        return [asked(folder, requests) for requests in (first, second)]

    rows, _ = in_rounds(whole, Server(), lambda: run(whole))
    told, rounds = in_rounds(other, Server(), lambda: run(other), change)
    assert told == rows and len(rounds) >= least
    assert all(reply.text for requests in rows for row in requests for reply in row)


def test_what_waits_is_written_once_and_named(tmp_path):
    for _ in range(2):
        model = BatchModel("toy", batch_dir=tmp_path)
        for _ in range(2):  # also where it is asked again before the file is made
            replies = model.generate(asks(3))
            assert [row[0].missing for row in replies] == [batch.WAITS] * 3 and model.waiting == 3
        told = model.next_step()
        assert says(told, 3, "toy", "wait", "in-001.jsonl")
    assert [f.name for f in tmp_path.glob("in-*")] == ["in-001.jsonl"]
    assert answered(tmp_path, Server()) == 3
    model = BatchModel("toy", batch_dir=tmp_path)
    rows = model.generate([*asks(3), ASKED])
    assert all(row[0].text for row in rows[:3]) and rows[3][0].missing == batch.WAITS
    assert says(model.next_step(), 1, "toy", "wait") and (tmp_path / "in-002.jsonl").is_file()


@each(("what", "most", "sizes"), [("MOST_LINES", 4, [4, 4, 2]), ("MOST_BYTES", 700, [2] * 5)])
def test_files_stay_within_what_services_take(what, most, sizes, tmp_path, monkeypatch):
    monkeypatch.setattr(batch, what, most)
    model = BatchModel("toy", batch_dir=tmp_path)
    model.generate(asks(10))
    model.next_step()
    files = sorted(tmp_path.glob("in-*"))
    assert [len(f.read_text().splitlines()) for f in files] == sizes
    assert what == "MOST_LINES" or all(f.stat().st_size <= 700 for f in files)


def test_a_request_that_fails_each_time_is_missing_with_its_reason(tmp_path):
    def failing(rows: list[dict]) -> list[dict]:
        body = {"error": {"message": "overloaded"}}
        return [row | {"response": {"status_code": 503, "body": body}} for row in rows]

    for _ in range(3):  # an input that was not run again is not written again
        with pytest.raises(Waiting):
            asked(tmp_path, [ASKED])
    assert len(list(tmp_path.glob("in-*"))) == 1
    (((reply,),), rounds) = in_rounds(tmp_path, Server(), lambda: asked(tmp_path, [ASKED]), failing)
    assert says(reply.missing, "batch", "HTTP 503", "overloaded") and rounds == [1] * batch.TRIES


def test_what_a_cut_output_lacks_is_asked_again(tmp_path):
    def cut(rows: list[dict]) -> list[Any]:
        return [*rows[:-1], "\ufeff" + json.dumps(rows[-1])[:-20]]

    with pytest.raises(Waiting):
        asked(tmp_path, asks(3))
    answered(tmp_path, Server(), cut)
    for _ in range(2):  # written once
        with pytest.raises(Waiting) as waits:
            asked(tmp_path, asks(3))
        assert [row[0].text is None for row in waits.value.replies].count(True) == 1
    assert not (tmp_path / "in-003.jsonl").exists() and answered(tmp_path, Server()) == 1
    assert all(row[0].text for row in asked(tmp_path, asks(3)))


def test_a_refusal_in_a_file_names_the_option_that_cures_it(tmp_path):
    server, more = Server(limit="max_completion_tokens"), {}

    def run() -> Any:
        model = BatchModel("toy", batch_dir=tmp_path, **more)
        rows = model.generate([ASKED])
        if model.waiting:
            raise Waiting(model.next_step(), rows)
        return rows

    ((reply,),), rounds = in_rounds(tmp_path, server, run)
    assert says(reply.missing, "HTTP 400", "limit='max_completion_tokens'") and rounds == [1]
    more = {"limit": "max_completion_tokens"}
    ((reply,),), rounds = in_rounds(tmp_path, server, run)
    assert reply.text and rounds == [1]


def test_options_are_checked_with_a_run_s_settings(tmp_path):
    with pytest.raises(ValueError, match=saying("model_options", "'concurrency'")):
        tl.opened(Setup(model="openai-batch:toy", model_options={"concurrency": 3}))
    with pytest.raises(ValueError, match="extra_body has 'n'"):
        BatchModel("toy", batch_dir=tmp_path, extra_body={"n": 3})
    options = {"batch_dir": str(tmp_path), "provides": ["logprobs"], "window": 300}
    (model,) = tl.opened(Setup(model="openai-batch:toy", model_options=options)).models()
    assert isinstance(model, BatchModel) and model.window == 300
    assert model.provides == {"text", "logprobs"}


@each("usage", [None, {}, {"prompt_tokens": 0, "completion_tokens": 0}, {"prompt_tokens": None}])
def test_batch_files_are_the_user_s_alone_and_may_count_no_tokens(usage, tmp_path):
    def uncounted(rows: list[dict]) -> list[dict]:
        for row in rows:
            row["response"]["body"]["usage"] = usage
        return rows

    before = os.umask(0)
    try:
        cached = CachedModel(BatchModel("toy", batch_dir=tmp_path, provides=[]), None)
        cached.generate(asks(2))
        cached.model.next_step()  # pyright: ignore
    finally:
        os.umask(before)
    assert [oct(f.stat().st_mode & 0o777) for f in tmp_path.iterdir()] == ["0o600"]
    answered(tmp_path, Server(), uncounted)
    cached = CachedModel(BatchModel("toy", batch_dir=tmp_path, provides=[]), None)
    assert all(row[0].text for row in cached.generate(asks(2)))
    assert cached.calls_table()[["n_tokens_in", "n_tokens_out"]].isna().all(axis=None)
