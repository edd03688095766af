"""The reply cache: what is in a key, what is kept, and that a killed run resumes.

Run as a script it is the run that gets killed: ``test_cache.py CACHE POINT``.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
import os
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from each import each
from saying import saying, says
from typer.testing import CliRunner

from trustlab.cli.commands import app
from trustlab.models import cache
from trustlab.models.abilities import too_long
from trustlab.models.base import Model, Request
from trustlab.models.by_name import open_model
from trustlab.models.cache import (
    CachedModel,
    CacheMiss,
    decode_reply,
    encode_reply,
    export_cache,
    import_cache,
    request_keys,
)
from trustlab.prompts import render
from trustlab.records import Reply, TokenTrace
from trustlab.stops import Stopped

ROOT = Path(__file__).resolve().parents[1]
BLOCK = 2
POINTS = {"asking": 4, "committing": 2}
"""Where the run is killed -> requests then kept, of 8."""
ASKED = (("system", "Name it."), ("user", "Chest pain."))
ONE = Request(ASKED, n=3, temperature=0.5, seed=7, purpose="samples")


def trace_of(text: str) -> TokenTrace:
    """Numbers with full mantissas, all decided by the text."""
    rng, tokens = np.random.default_rng(list(text.encode())), tuple(text.split())
    n = len(tokens)
    others = (tuple((f"{t}'", -2.0 - rng.exponential()) for _ in range(3)) for t in tokens)
    return TokenTrace(
        tokens=tokens,
        logprobs=-rng.exponential(size=n),
        entropies=rng.exponential(size=n),
        fisher_rao=rng.random(n) * 1e-300,
        alternatives=tuple(others),
        bounds={"entropies": "lower"},
    )


class Fake(Model):
    """Reply i is a function of everything but n and purpose; ``asked`` keeps the requests of each
    call."""

    provides = frozenset({"text", "logprobs"})

    def __init__(self, name: str = "fake", revision: str = "r1", fail: Sequence[int] = ()) -> None:
        self.name, self.revision, self.fail = name, revision, set(fail)
        self.asked: list[list[Request]] = []

    def generate(self, requests: Sequence[Request]) -> list[list[Reply]]:
        self.asked.append(list(requests))
        return [[self.reply(r, r.first + i) for i in range(r.n)] for r in requests]

    def reply(self, request: Request, i: int) -> Reply:
        if i in self.fail:
            return Reply(None, missing="HTTP 500 after 3 tries", finish="error")
        settings = (request.temperature, request.max_tokens, request.seed)
        content = (self.name, request.messages, *settings, i)
        text = f"angina {hashlib.sha256(repr(content).encode()).hexdigest()[:8]} é"
        return Reply(text, trace_of(text), n_tokens_in=40, n_tokens_out=3, raw=f"raw {text}")

    @property
    def n_asked(self) -> int:
        return sum(len(block) for block in self.asked)


def batch(n: int) -> list[Request]:
    return [replace(ONE, messages=(("user", f"Patient {i}"),)) for i in range(n)]


def written(rows: list[list[Reply]]) -> list[list[str]]:
    """Replies as text, numbers in full precision."""
    return [[encode_reply(reply) for reply in row] for row in rows]


def n_rows(path: Path) -> int:
    return sqlite3.connect(path).execute("SELECT count(*) FROM replies").fetchone()[0]


# What is in a key


@each(
    "change",
    [
        {"messages": (("system", "Name it."), ("user", "Chest pain!"))},
        {"messages": (("user", "Name it."), ("user", "Chest pain."))},
        {"messages": (("system", "Name it."),)},
        {"temperature": 0.6},
        {"temperature": 0.0},
        {"max_tokens": 33},
        {"seed": 8},
        {"want": frozenset({"logprobs"})},
        {"want": frozenset({"prior"}), "prior_messages": (("user", ""),)},
        {"want": frozenset({"distributions"})},
        {"first": 3},
        {"schema": "{}"},
        {"continuation": "x"},
    ],
    ids=lambda change: "+".join(change),
)
def test_every_setting_is_in_the_key(change):
    plain, changed = (request_keys(replace(ONE, **c), "m", "r") for c in ({}, change))
    assert not set(plain) & set(changed)


IDLE = [{"purpose": "answer"}, {"prior_messages": (("user", "x"),)}]
IDLE += [{"renyi_alpha": 2.0}, {"n_alternatives": 5}]


@each("change", IDLE)
def test_what_decides_no_reply_is_not(change):
    plain, changed = (request_keys(replace(ONE, **c), "m", "r") for c in ({}, change))
    assert plain == changed
    if "purpose" not in change:  # where it is wanted it does
        want = frozenset({"prior" if "prior_messages" in change else "distributions"})
        wide = replace(ONE, want=want, prior_messages=(("user", "y"),))
        keys = [request_keys(replace(wide, **c), "m", "r") for c in ({}, change)]
        assert not set(keys[0]) & set(keys[1])


def test_the_key_is_the_sha256_of_the_content_as_json():
    messages = [["system", "Name it."], ["user", "Chest pain."]]
    content = ["m", "r", messages, 0.5, 32, 7, ["logprobs", "prior"], [["user", ""]], 1]
    request = replace(ONE, want=frozenset({"prior", "logprobs"}), prior_messages=(("user", ""),))
    expected = hashlib.sha256(json.dumps(content, separators=(",", ":")).encode()).hexdigest()
    assert request_keys(request, "m", "r")[1] == expected
    every = request_keys(replace(ONE, n=5), "m", "r")
    assert request_keys(replace(ONE, n=2, first=3), "m", "r") == every[3:]
    names = [("m", "r"), ("other", "r"), ("m", "r2")]
    assert len({request_keys(ONE, *name)[0] for name in names}) == 3


# What is asked and what is kept


def test_fifteen_samples_are_fifteen_rows_and_greedy_replies_one(tmp_path):
    model = CachedModel(Fake(), tmp_path / "c")
    (replies,) = model.generate([replace(ONE, n=15)])
    assert n_rows(tmp_path / "c") == len({reply.text for reply in replies}) == 15
    (greedy,) = model.generate([replace(ONE, n=5, temperature=0.0)])
    assert len(greedy) == 5 and len({r.text for r in greedy}) == 1
    assert n_rows(tmp_path / "c") == 16 and model.model.asked[-1][0].n == 1
    assert (model.calls[-1]["n_made"], model.calls[-1]["n_cached"]) == (1, 0)


def test_of_the_replies_only_the_unknown_runs_are_asked_for():
    for known in ([1], [0, 3], [1, 2, 5], [0, 1, 2]):
        model = CachedModel(Fake(), None)
        for i in known:
            model.generate([replace(ONE, n=1, first=i)])
        model.model.asked.clear()
        (six,) = model.generate([replace(ONE, n=6)])
        asked = [r.first + i for block in model.model.asked for r in block for i in range(r.n)]
        assert sorted(asked) == sorted({*range(6)} - {*known})
        assert [r.text for r in six] == [model.model.reply(ONE, i).text for i in range(6)]
        made, kept = (model.calls[-1][name] for name in ("n_made", "n_cached"))
        assert (made, kept) == (6 - len(known), len(known))


def test_only_what_is_missing_is_asked_in_blocks_of_message_lists():
    requests = batch(5)
    model = CachedModel(Fake(), None, block=2)
    model.generate(requests[1:2])
    probe = replace(requests[0], temperature=0.0, n=1, purpose="probe")
    model.generate([*requests, probe])
    users = [[r.messages[0][1] for r in block] for block in model.model.asked[1:]]
    assert users == [["Patient 0", "Patient 0", "Patient 2"], ["Patient 3", "Patient 4"]]


def test_the_same_request_twice_is_asked_once_for_the_most_replies():
    model = CachedModel(Fake(), None)
    asked = zip((2, 4, 3), "abc", strict=True)
    replies = model.generate([replace(ONE, n=n, purpose=purpose) for n, purpose in asked])
    assert [[r.n for r in block] for block in model.model.asked] == [[4]]
    assert [len(row) for row in replies] == [2, 4, 3] and replies[0] == replies[1][:2]
    assert [row["n_made"] for row in model.calls] == [0, 4, 0]
    schema = replace(ONE, schema="{}")  # of a model that holds no reply to one
    model.generate([schema])
    assert len(model.model.asked) == 1 and model.calls[-1]["n_cached"] == 3


TWO = np.array([-0.0, -5e-324])


@each(
    "reply",
    [
        Reply("", None),
        Reply("x", TokenTrace(())),
        Reply("x", TokenTrace(("a", "b"), TWO, prior_logprobs=np.array([-1 / 3, -9997.999]))),
        Reply("x", TokenTrace(("a",), alternatives=(((" a", -0.1),),)), raw="\u2028{x}\x00"),
        Reply("x", TokenTrace(("a", "b"), certainty=TWO + 9000)),
        Reply("x", TokenTrace((), logprobs=np.zeros(0), alternatives=()), finish="length"),
        Reply("x", reasoning="so", served_by="toy-1"),
    ],
)
def test_encoding_loses_nothing(reply):
    back = decode_reply(encode_reply(reply))
    assert replace(back, trace=None) == replace(reply, trace=None)
    for name in (*TokenTrace.ARRAYS, "tokens", "alternatives") if reply.trace else ():
        one, other = getattr(reply.trace, name), getattr(back.trace, name)
        if isinstance(one, np.ndarray):
            assert (one.dtype, one.tobytes()) == (other.dtype, other.tobytes())
        else:
            assert one == other


@each(
    "odd",
    [
        *(Reply("b", TokenTrace(("b",), np.array([bad]))) for bad in (np.nan, np.inf, -np.inf)),
        *(Reply("b", TokenTrace(("b",), alternatives=((("b", bad),),))) for bad in (np.nan, 0.5)),
        Reply("b", n_tokens_out=-1),
    ],
)
def test_what_is_not_believed_is_returned_and_never_kept(odd, tmp_path):
    model = Fake()
    model.reply = lambda request, i: odd if i == 1 else Fake.reply(model, request, i)
    with pytest.warns(UserWarning, match="not kept"):
        (replies,) = CachedModel(model, tmp_path / "c").generate([ONE])
    assert replies[1] is odd and n_rows(tmp_path / "c") == 2


def test_failures_are_returned_not_kept(tmp_path):
    (replies,) = CachedModel(Fake(fail=[1]), tmp_path / "c").generate([ONE])
    assert [r.missing for r in replies] == [None, "HTTP 500 after 3 tries", None]
    assert n_rows(tmp_path / "c") == 2
    (mended,) = CachedModel(Fake(), tmp_path / "c").generate([ONE])
    assert written([mended[:1]]) == written([replies[:1]])
    assert mended[1].text is not None and n_rows(tmp_path / "c") == 3


class Stopping(Fake):
    """Stops in its second call, after the first reply of each request."""

    def generate(self, requests: Sequence[Request]) -> list[list[Reply]]:
        replies = super().generate(requests)
        if len(self.asked) == 2:
            missing = Reply(None, missing="the budget is spent")
            kept = [[row[0], *[missing] * (len(row) - 1)] for row in replies]
            raise Stopped("the budget is spent", kept)
        return replies


def test_what_was_finished_before_a_stop_is_kept(tmp_path):
    requests, model = batch(4), CachedModel(Stopping(), tmp_path / "c", block=2)
    with pytest.raises(Stopped, match="the budget is spent"):
        model.generate(requests)
    assert n_rows(tmp_path / "c") == 2 * requests[0].n + 2
    again = CachedModel(Fake(), tmp_path / "c")
    again.generate(requests)
    asked = [(r.first, r.n) for block in again.model.asked for r in block]
    assert asked == [(1, requests[2].n - 1), (1, requests[3].n - 1)]


@each(
    ("error", "match"),
    [(RuntimeError("server gone"), "server gone"), (None, r"\[2, 2\] replies for n=\[3, 3\]")],
)
def test_finished_blocks_survive_an_error(error, match, tmp_path):
    class Failing(Fake):
        def generate(self, requests):
            if len(self.asked) < 2:
                return super().generate(requests)
            if error is not None:
                raise error
            return [row[:-1] for row in super().generate(requests)]

    with pytest.raises((RuntimeError, ValueError), match=match):
        CachedModel(Failing(), tmp_path / "c", block=2).generate(batch(6))
    rest = Fake()
    CachedModel(rest, tmp_path / "c", block=2).generate(batch(6))
    assert rest.n_asked == 2


def test_settings_are_checked(tmp_path):
    with pytest.raises(ValueError, match=saying("block", 1, 0)):
        CachedModel(Fake(), None, block=0)
    with pytest.raises(ValueError, match=saying("n", 1, 0)):
        CachedModel(Fake(), None).generate([replace(ONE, n=0)])
    with pytest.raises(FileNotFoundError, match=saying(tmp_path / "c")):
        CachedModel(Fake(), tmp_path / "c", offline=True)
    model = CachedModel(Fake(), tmp_path / "new" / "c")
    assert isinstance(model, Model) and model.generate([]) == []
    assert (model.name, model.revision, model.provides) == ("fake", "r1", Fake.provides)


# What a model says of itself


class Probing(Fake):
    """Has to find out what it provides; ``n_probes`` counts."""

    lacks: ClassVar = {"answer.renyi": "no vocabulary size"}
    n_probes = 0
    finds_out = True

    @property
    def provides(self) -> frozenset[str]:  # type: ignore[override]
        self.n_probes += 1
        return frozenset({"text", "logprobs"})


def test_what_a_model_found_out_about_itself_is_kept_and_replays_without_it(tmp_path):
    first = CachedModel(Probing(), tmp_path / "c")
    with pytest.raises(LookupError, match=saying("fake", "provides")):
        _ = CachedModel(Probing(), tmp_path / "c", offline=True).provides
    assert first.provides == {"text", "logprobs"} and first.provides and first.model.n_probes == 1
    first.generate([ONE])
    first.close()
    assert export_cache(tmp_path / "c", tmp_path / "e.gz") == 4
    assert import_cache(tmp_path / "d", tmp_path / "e.gz")["new"] == 4
    for path in (tmp_path / "c", tmp_path / "d"):
        again = CachedModel(Probing(), path, offline=True)
        assert (again.provides, again.lacks) == ({"text", "logprobs"}, Probing.lacks)
        assert again.generate([ONE]) and again.model.n_probes == 0


class Narrow(Fake):
    """Reads 20 tokens, one a word, and counts."""

    window = 20

    def count_tokens(self, messages):
        return sum(len(text.split()) for _, text in messages)

    def reply(self, request, i):
        n = self.count_tokens(request.messages)
        return too_long(self.name, 20, n) if n > 20 else super().reply(request, i)


def test_a_prompt_that_was_found_too_long_is_so_again_without_the_model(tmp_path):
    long = replace(ONE, messages=(("user", "pain " * 30),))
    first = CachedModel(Narrow(), tmp_path / "c").generate([ONE, long])
    assert first[1] == [too_long("fake", 20, 30)] * ONE.n and first[0][0].missing is None
    again = CachedModel(Narrow(), tmp_path / "c", offline=True)
    found = again.generate([long, ONE])
    assert found[0] == first[1] and [r.text for r in found[1]] == [r.text for r in first[0]]
    assert again.model.asked == []
    other = replace(ONE, messages=(("user", "pain " * 31),))
    with pytest.raises(CacheMiss):
        again.generate([other])


def test_an_embedded_model_is_opened_when_it_is_asked_and_a_replay_does_without(tmp_path):
    asked = [Request(render("diagnosis", patient="I cough."), 1, 0.0, 8)]
    model = open_model("embedded")
    cached = CachedModel(model, tmp_path / "a.sqlite")
    assert model._model is None
    first, provides, window = cached.generate(asked), cached.provides, cached.window
    assert model._model is not None and model._model.device == "cpu"
    again = CachedModel(open_model("embedded"), tmp_path / "a.sqlite", offline=True)
    assert again.generate(asked) == first
    assert (again.provides, again.window) == (provides, window)
    assert again.model._model is None


# Offline, calls and progress


def test_an_offline_miss_shows_the_request(tmp_path):
    CachedModel(Fake(), tmp_path / "c").generate([ONE])
    offline = CachedModel(Fake(), tmp_path / "c", offline=True)
    long = replace(ONE, messages=(("user", "pain " * 100),), max_tokens=99, purpose="probe")
    with pytest.raises(CacheMiss) as miss:
        offline.generate([ONE, long])
    told = str(miss.value)
    for part in ("1 request(s)", "fake", "r1", "'probe'", "max_tokens=99", "seed=7", "user: 'pain"):
        assert part in told
    assert "pain " * 50 not in told and miss.value.request is long
    assert isinstance(miss.value, LookupError) and offline.model.asked == []


def test_calls_count_tokens_and_share_the_time(monkeypatch):
    clock = iter([100.0, 104.0])
    monkeypatch.setattr("trustlab.models.cache.time.perf_counter", lambda: next(clock))
    model = CachedModel(Fake(), None)
    model.generate([ONE, replace(ONE, messages=(("user", "b"),), n=1, purpose="answer")])
    model.generate([ONE])
    table = model.calls_table()
    assert table.drop(columns="seconds").to_dict("list") == {
        "purpose": ["samples", "answer", "samples"],
        "n": [3, 1, 3],
        "n_tokens_in": [40, 40, 40],
        "n_tokens_out": [9, 3, 9],
        "n_made": [3, 1, 0],
        "n_cached": [0, 0, 3],
    }
    assert table["seconds"].tolist() == [3, 1, 0]  # 4 s by 9 and 3 tokens; the second time none
    model.reset_calls()
    assert list(model.calls_table().columns) == list(table.columns) and model.calls == []
    steps: list[int] = []
    monkeypatch.undo()
    CachedModel(Fake(), None, block=2)._answered(batch(5), steps.append)
    assert steps == [2, 2, 1]


# Killed, and side by side


def run_until(path: str, point: str) -> None:
    """Stop for ever at ``point``, saying so: the parent kills the process there."""

    def stop() -> None:
        print("here", flush=True)
        time.sleep(600)

    class Stopping(Fake):
        def generate(self, requests):
            if point == "asking" and len(self.asked) == 2:
                stop()
            return super().generate(requests)

    model = CachedModel(Stopping(), path, block=BLOCK)
    commits: list[str] = []

    def trace(sql: str) -> None:
        commits.extend([sql] * (sql.strip().upper() == "COMMIT"))
        if point == "committing" and len(commits) == 2:
            stop()

    model._connection.set_trace_callback(trace)
    model.generate(batch(8))


def script(path: Path, point: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, __file__, str(path), point]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


@pytest.mark.parametrize("point", POINTS)
def test_a_killed_run_resumes(point, tmp_path):
    path = tmp_path / "c"
    with script(path, point) as process:
        assert process.stdout is not None and process.stdout.readline() == "here\n"
        process.kill()
    rest = Fake()
    resumed = CachedModel(rest, path, block=BLOCK).generate(batch(8))
    asked = [r for block in rest.asked for r in block]
    assert [r.messages for r in asked] == [r.messages for r in batch(8)[POINTS[point] :]]
    assert written(resumed) == written(Fake().generate(batch(8))) and n_rows(path) == 8 * ONE.n


def test_two_processes_write_at_once(tmp_path):
    path = tmp_path / "c"
    processes = [script(path, "never") for _ in range(2)]
    assert [(p.communicate(timeout=60), p.returncode) for p in processes] == [(("", None), 0)] * 2
    kept = CachedModel(Fake(), path, offline=True).generate(batch(8))
    assert written(kept) == written(Fake().generate(batch(8))) and n_rows(path) == 8 * ONE.n


def test_a_reply_that_another_process_wrote_first_is_the_one_returned(tmp_path):
    class Raced(Fake):
        def generate(self, requests):
            winner = Fake(name="fake")
            winner.reply = lambda request, i: Reply(f"first {i}")
            CachedModel(winner, tmp_path / "c").generate(requests)
            return super().generate(requests)

    (replies,) = CachedModel(Raced(), tmp_path / "c").generate([ONE])
    assert [r.text for r in replies] == ["first 0", "first 1", "first 2"]


# One file that travels


@each("name", ["replies.jsonl.gz", "replies.jsonl.xz"])
def test_export_and_import_round_trip_in_the_same_bytes(name, tmp_path):
    first = CachedModel(Fake(), tmp_path / "a").generate(batch(4))
    CachedModel(Fake(), tmp_path / "b", block=1).generate(batch(4)[::-1])
    packs = [tmp_path / which / name for which in ("out", "other", "again")]
    assert export_cache(tmp_path / "a", packs[0]) == export_cache(tmp_path / "b", packs[1]) == 12
    counts = {"new": 12, "known": 0, "conflicting": 0}
    assert import_cache(tmp_path / "c", packs[0]) == counts
    assert import_cache(tmp_path / "c", packs[0]) == counts | {"new": 0, "known": 12}
    assert import_cache(tmp_path / "d", tmp_path / "c") == counts  # another cache
    again = CachedModel(Fake(), tmp_path / "d", offline=True).generate(batch(4))
    assert written(again) == written(first)
    export_cache(tmp_path / "d", packs[2])
    assert packs[0].read_bytes() == packs[1].read_bytes() == packs[2].read_bytes()
    assert [p.name for p in (tmp_path / "out").iterdir()] == [name]


def test_import_never_overwrites_what_is_whole(tmp_path):
    fake, other = Fake(), Fake()
    other.reply = lambda request, i: Reply(f"other {i}")  # type: ignore[method-assign]
    CachedModel(fake, tmp_path / "a").generate([replace(ONE, n=2)])
    CachedModel(other, tmp_path / "b").generate([ONE])
    counts = {"new": 1, "known": 0, "conflicting": 2}
    assert import_cache(tmp_path / "a", tmp_path / "b") == counts
    (replies,) = CachedModel(fake, tmp_path / "a", offline=True).generate([ONE])
    assert [r.text for r in replies] == [*(fake.reply(ONE, i).text for i in (0, 1)), "other 2"]
    with sqlite3.connect(tmp_path / "a") as file:
        file.execute("UPDATE replies SET value = '{' || value")
    assert import_cache(tmp_path / "a", tmp_path / "b")["new"] == 3  # damaged rows make room


GOOD = json.loads(encode_reply(Reply("x", TokenTrace(("a",), logprobs=np.array([-0.5])))))


def row(**change: object) -> str:
    return json.dumps({"key": "0" * 64, "value": {**GOOD, **change}})


def traced(**change: object) -> str:
    return row(trace={**GOOD["trace"], **change})


def abilities(**change: object) -> str:
    value = {"provides": ["text"], "lacks": {}, **change}
    return json.dumps({"key": "0" * 64, "value": value})


@each(
    ("line", "message"),
    [
        ("{", "a line is"),
        ("[]", "a line is"),
        ("[" * 100_000, "a line is"),
        (row().replace("0" * 64, "ab"), ("key", 64, "'ab'")),
        (row(text=None), ("text", "null", "string")),
        (row(missing="late"), ("missing", '"late"')),
        (row(n_tokens_in="3"), ("n_tokens_in", '"3"', "integer")),
        (row(n_tokens_out=10**30), ("n_tokens_out", 10**30)),
        (row(trace={"tokens": []}), ("trace", "required")),
        (traced(logprobs=[-1.0, -2.0]), ("logprobs", 2, 1)),
        (traced(logprobs=[float("nan")]), ("logprobs.0", "NaN", "finite")),
        (traced(logprobs=[5.0]), ("logprobs.0", 5.0, 0)),
        (row().replace("-0.5", "-1e999"), ("logprobs.0", "-Infinity", "finite")),
        (abilities(provides=["magic"]), ("provides", '"magic"')),
        (abilities(window=0), ("window", 0, 1)),
        (traced(alternatives=[3]), ("trace.alternatives.0", 3)),
    ],
)
def test_import_names_the_bad_line_and_adds_nothing(line, message, tmp_path):
    good = json.dumps({"key": "f" * 64, "value": GOOD})
    with gzip.open(tmp_path / "in.gz", "wt") as file:
        file.write(f"{good}\n{line}\n")
    with pytest.raises(ValueError, match=saying("in.gz", "line 2", message)):
        import_cache(tmp_path / "c", tmp_path / "in.gz")
    assert n_rows(tmp_path / "c") == 0


@each("name", ["in.gz", "in.xz"])
def test_an_import_s_line_that_never_ends_is_refused(tmp_path, monkeypatch, name):
    CachedModel(Fake(), tmp_path / "a").generate(batch(4))
    export_cache(tmp_path / "a", tmp_path / name)
    with (lzma if name == "in.xz" else gzip).open(tmp_path / name) as file:
        longest = max(map(len, file))
    monkeypatch.setattr(cache, "LONGEST_LINE", longest)
    assert import_cache(tmp_path / "c", tmp_path / name)["new"] == 12
    monkeypatch.setattr(cache, "LONGEST_LINE", longest - 1)
    with pytest.raises(ValueError, match=saying(name, "line", "more")):
        import_cache(tmp_path / "d", tmp_path / name)
    assert n_rows(tmp_path / "d") == 0


def test_import_of_a_cut_or_plain_file_is_an_error(tmp_path):
    CachedModel(Fake(), tmp_path / "a").generate(batch(4))
    export_cache(tmp_path / "a", tmp_path / "whole.gz")
    (tmp_path / "cut.gz").write_bytes((tmp_path / "whole.gz").read_bytes()[:-300])
    (tmp_path / "plain.gz").write_text("{}")
    for name in ("cut.gz", "plain.gz"):
        with pytest.raises(ValueError, match=saying(name, "gzip")):
            import_cache(tmp_path / "b", tmp_path / name)
    assert n_rows(tmp_path / "b") == 0


# What is damaged

HALF = json.loads(r'"\ud800"')
SAID = {"tokens": ["a"], "logprobs": [-0.5], "alternatives": [[["a", -0.5]]], "entropies": [0.5]}
TRACE = {**GOOD["trace"], **SAID}
DAMAGED = {
    r"trace\.logprobs\.0 is 5.0": {"trace": {**TRACE, "logprobs": [5.0]}},
    r"prior_logprobs\.0 is 0.001": {"trace": {**TRACE, "prior_logprobs": [1e-3]}},
    r"alternatives\.0\.0\.1 is 0.5": {"trace": {**TRACE, "alternatives": [[["a", 0.5]]]}},
    r"entropies\.0 is -0.5": {"trace": {**TRACE, "entropies": [-0.5]}},
    r"logprobs\.0 is -9999.0": {"trace": {**TRACE, "logprobs": [-9999.0]}},
    r"prior_logprobs\.0 is -9998.0": {"trace": {**TRACE, "prior_logprobs": [-9998.0]}},
    r"alternatives\.0\.0\.1 is -9999.0": {"trace": {**TRACE, "alternatives": [[["a", -9999.0]]]}},
    "alternatives .* over 1": {
        "trace": {**TRACE, "alternatives": [[["a", -0.5], ["b", -0.5], ["c", -9.0]]]}
    },
    r"entropies\.0 is 9999.0": {"trace": {**TRACE, "entropies": [9999.0]}},
    r"renyi\.0 is -0.01": {"trace": {**TRACE, "renyi": [-0.01]}},
    r"renyi\.0 is 16.7": {"trace": {**TRACE, "renyi": [16.7]}},
    r"fisher_rao\.0 is 1.0": {"trace": {**TRACE, "fisher_rao": [1.0]}},
    r"fisher_rao\.0 is -0.2": {"trace": {**TRACE, "fisher_rao": [-0.2]}},
    "n_tokens_in is -7": {"n_tokens_in": -7},
    "n_tokens_out is 1000": {"n_tokens_out": 10**30},
    "hex escape": {"reasoning": HALF},
    "lone leading surrogate|hex escape": {"trace": {**TRACE, "tokens": [HALF]}},
    "more is 1": {"more": 1},
}


@each(("why", "change"), DAMAGED.items())
def test_a_damaged_row_is_named_dropped_asked_again_and_never_leaves(why, change, tmp_path):
    fake, path = Fake(), tmp_path / "c.sqlite"
    (first,) = CachedModel(fake, path).generate([ONE])
    key = request_keys(ONE, fake.name, fake.revision)[1]
    assert cache.damaged_rows(path) == {}

    with sqlite3.connect(path) as file:
        value = json.dumps({**GOOD, **change})
        file.execute("UPDATE replies SET value = ? WHERE key = ?", (value, key))
    assert list(found := cache.damaged_rows(path)) == [key] and re.search(why, found[key])
    with pytest.raises(ValueError, match=f"{key}.*{why}"):
        import_cache(tmp_path / "other", path)
    with pytest.warns(UserWarning, match=saying(key, "not written")):
        assert export_cache(path, tmp_path / "out.gz") == 2
    with pytest.warns(UserWarning, match=saying(key, "left out")), pytest.raises(CacheMiss):
        CachedModel(fake, path, offline=True).generate([ONE])
    with pytest.warns(UserWarning, match=f"c.sqlite.*{key}.*dropped.*{why}"):
        (again,) = CachedModel(fake, path).generate([ONE])
    assert written([first]) == written([again])
    assert cache.damaged_rows(path) == {} and n_rows(path) == 3


def test_a_row_that_could_be_believed_and_is_not_what_was_kept_is_damaged(tmp_path):
    (kept,) = CachedModel(Fake(), tmp_path / "c").generate([ONE])
    more = """UPDATE replies SET value = replace(value, '"n_tokens_in":', '"n_tokens_in":1')"""
    with sqlite3.connect(tmp_path / "c") as file:
        file.execute(more)
    assert all("checksum" in why for why in cache.damaged_rows(tmp_path / "c").values())
    told = CliRunner().invoke(app, ["cache", "check", "--path", str(tmp_path / "c")])
    assert told.exit_code == 1 and says(told.output, 3, "damaged")
    with pytest.warns(UserWarning, match="checksum"):
        (again,) = CachedModel(Fake(), tmp_path / "c").generate([ONE])
    assert written([again]) == written([kept]) and cache.damaged_rows(tmp_path / "c") == {}
    with sqlite3.connect(tmp_path / "c") as file:  # as older versions kept it
        file.execute("UPDATE replies SET value = substr(value, 1, instr(value, char(10)) - 1)")
    assert cache.damaged_rows(tmp_path / "c") == {}
    (read,) = CachedModel(Fake(), tmp_path / "c", offline=True).generate([ONE])
    assert written([read]) == written([kept])


PAGES_CELLS = 104
"""Where a file says how many cells its first page holds, the description of its tables."""


def flip(path: Path, at: int, bits: int = 1) -> None:
    raw = bytearray(path.read_bytes())
    raw[at] ^= bits
    path.write_bytes(raw)


def closed_cache(path: Path, **how: Any) -> list[list[str]]:
    """What a cache gives that is closed then."""
    with closing(CachedModel(Fake(), path, **how)) as cached:
        return written(cached.generate(batch(40)))


def test_a_file_whose_own_description_is_damaged_is_refused_and_exported_whole(tmp_path):
    made = closed_cache(path := tmp_path / "c.sqlite")
    flip(path, PAGES_CELLS)
    before = path.read_bytes()
    for opens in (lambda: CachedModel(Fake(), path), lambda: import_cache(tmp_path / "d", path)):
        with pytest.raises(ValueError, match=r"c.sqlite.*the file|c.sqlite.*damaged"):
            opens()
    assert says(cache.damaged_rows(path)["the file"], "trustlab cache export", 120)
    with pytest.warns(UserWarning, match=saying("the file", "not written")):
        assert export_cache(path, tmp_path / "saved.gz") == 120
    assert path.read_bytes() == before
    import_cache(tmp_path / "new.sqlite", tmp_path / "saved.gz")
    assert closed_cache(tmp_path / "new.sqlite", offline=True) == made


class Wordy(Fake):
    """Its replies are longer than two pages of SQLite's."""

    def reply(self, request: Request, i: int) -> Reply:
        made = super().reply(request, i)
        return replace(made, text=f"{made.text} " * 500)


def test_long_rows_of_a_damaged_file_are_exported_whole(tmp_path):
    with closing(CachedModel(Wordy(), path := tmp_path / "c.sqlite")) as cached:
        made = written(cached.generate(batch(4)))
    flip(path, PAGES_CELLS)
    with pytest.warns(UserWarning, match=saying("the file", "damaged")):
        assert export_cache(path, tmp_path / "saved.gz") == 12
    import_cache(tmp_path / "new.sqlite", tmp_path / "saved.gz")
    kept = CachedModel(Wordy(), tmp_path / "new.sqlite", offline=True)
    assert written(kept.generate(batch(4))) == made


def test_a_row_is_dropped_from_no_file_whose_index_is_damaged(tmp_path):
    cached = CachedModel(Fake(), path := tmp_path / "c")
    cached.generate([ONE])
    cached.close()
    raw = path.read_bytes()
    two, three = (re.search(rb"[0-9a-f]{64}" + bytes([k]), raw).end() - 1 for k in (2, 3))
    flip(path, two)  # each key leads to the other's row
    flip(path, three)
    with pytest.raises(ValueError, match=r"c: .*trustlab cache export"):
        CachedModel(Fake(), path).generate([ONE])
    assert n_rows(path) == 3


def test_another_s_file_is_no_reply_cache(tmp_path):
    with closing(sqlite3.connect(path := tmp_path / "theirs")) as theirs, theirs:
        theirs.execute("CREATE TABLE patients (name)")
    before = path.read_bytes()
    with pytest.raises(ValueError, match=saying("theirs", "replies")):
        CachedModel(Fake(), path)
    assert path.read_bytes() == before
    (tmp_path / "text").write_text("no database, " * 100)
    with pytest.raises(ValueError, match=saying(tmp_path / "text", "SQLite")):
        CachedModel(Fake(), tmp_path / "text")


@each(
    "statement",
    [
        "CREATE VIEW replies AS SELECT 'a' AS key, 'b' AS value",
        "CREATE TABLE kept (key, value); CREATE VIEW Replies AS SELECT * FROM kept",
        "CREATE TABLE kept (key); CREATE INDEX replies ON kept (key)",
        "CREATE TABLE kept (key); CREATE TRIGGER replies AFTER INSERT ON kept BEGIN SELECT 1; END",
    ],
)
def test_replies_that_are_no_table_are_refused(statement, tmp_path):
    with closing(sqlite3.connect(path := tmp_path / "theirs")) as theirs:
        theirs.executescript(statement)
    before = path.read_bytes()
    for opens in (
        lambda: CachedModel(Fake(), path),
        lambda: import_cache(tmp_path / "c", path),
        lambda: cache.damaged_rows(path),
    ):
        with pytest.raises(ValueError, match=saying(path, "replies", "another's")):
            opens()
    assert path.read_bytes() == before and n_rows(tmp_path / "c") == 0


# Files that may not be written


@pytest.fixture
def read_only(tmp_path, monkeypatch) -> Iterator[Path]:
    """A cache with the replies of ``batch(4)`` in a folder that takes no file."""
    made = CachedModel(Fake(), tmp_path / "shelf" / "replies.sqlite")
    made.generate(batch(4))
    made.close()
    (tmp_path / "shelf" / "replies.sqlite").chmod(0o444)
    (tmp_path / "shelf").chmod(0o555)
    if os.access(tmp_path / "shelf", os.W_OK):  # whoever may write everywhere
        monkeypatch.setattr(cache.os, "access", lambda path, how: False)
    yield tmp_path / "shelf" / "replies.sqlite"
    (tmp_path / "shelf").chmod(0o755)


def test_a_cache_that_may_not_be_written_is_read_and_nothing_is_asked(read_only):
    before = read_only.read_bytes()
    cached = CachedModel(model := Fake(), read_only)
    assert written(cached.generate(batch(4))) == written(Fake().generate(batch(4)))
    with pytest.raises(CacheMiss, match="not be written"):
        cached.generate(batch(5))
    cached.close()
    assert not model.asked and before == read_only.read_bytes()
    with pytest.raises(ValueError, match=saying(read_only, "not be written")):
        CachedModel(Fake(), read_only, offline=False)


# Whose file it is


@each("umask", [0o000, 0o022, 0o077])
def test_a_cache_and_what_it_is_exported_to_are_the_user_s_alone(umask, tmp_path):
    file, before = tmp_path / "new" / "replies.sqlite", os.umask(umask)
    try:
        cached = CachedModel(Fake(), file)
        cached.generate(batch(4))
        modes = {path.name: oct(path.stat().st_mode & 0o777) for path in file.parent.iterdir()}
        cached.close()
        for name in ("a.jsonl.gz", "a.jsonl.xz"):
            export_cache(file, tmp_path / name)
        import_cache(tmp_path / "other.sqlite", tmp_path / "a.jsonl.gz")
    finally:
        os.umask(before)
    assert modes == dict.fromkeys([file.name, f"{file.name}-wal", f"{file.name}-shm"], "0o600")
    assert {oct(f.stat().st_mode & 0o777) for f in tmp_path.iterdir() if f.is_file()} == {"0o600"}


def test_a_file_whose_rights_the_user_widened_keeps_them(tmp_path):
    file = tmp_path / "replies.sqlite"
    CachedModel(Fake(), file).close()
    file.chmod(0o660)
    CachedModel(Fake(), file).close()
    assert file.stat().st_mode & 0o777 == 0o660


@each("words", ["locking protocol", "disk I/O error", "database or disk is full", "unable to open"])
def test_what_sqlite_cannot_do_names_the_file_and_the_way_out(words, tmp_path):
    store = cache.connect(tmp_path / "a.sqlite", cache.SCHEMA)
    with pytest.raises(sqlite3.OperationalError) as caught, store.named():
        raise sqlite3.OperationalError(words)
    store.close()
    said = str(caught.value)
    assert said.startswith(f"{tmp_path / 'a.sqlite'}: {words}")
    assert "cache=" in said and "TRUSTLAB_RUNS" in said and said.count("cache=") == 1


# Prompts that contain each other


class Counting(Fake):
    """A server that says ``n_tokens(prompt)``."""

    finds_out = True

    def __init__(self, n_tokens: Any) -> None:
        super().__init__()
        self.n_tokens = n_tokens

    @property
    def provides(self) -> frozenset[str]:  # pyright: ignore
        return frozenset({"text"})

    def reply(self, request: Request, i: int) -> Reply:
        return Reply("[flu]", n_tokens_in=self.n_tokens(request.messages[-1][1]), n_tokens_out=3)


PROMPTS = ("Patient: cough.", "Patient: cough. Fever since Monday evening.", "Hi.")


@each(
    ("n_tokens", "prompts", "n"),
    [
        (lambda text: 9, PROMPTS, 1),
        (lambda text: 9, PROMPTS[::-1], 1),  # whichever comes first
        (lambda text: min(len(text.split()), 2), PROMPTS[:2], 1),  # cut at a window
        (lambda text: len(text.split()), PROMPTS, 0),
        (lambda text: 0, PROMPTS, 0),  # nothing is counted, which is said elsewhere
        (lambda text: None, PROMPTS, 0),
        (lambda text: 9, ("a cough", "a coughing"), 0),  # may be one token
        (lambda text: 9, ("a dry cough and pain", "a wet cough, fever and much pain"), 0),
        (lambda text: 9, ("a cough. So?", "a cough and fever since Monday. So?"), 1),
        (lambda text: 9, ("a cough", "a cough"), 0),
    ],
)
def test_prompts_that_contain_each_other_cannot_have_as_many_tokens(n_tokens, prompts, n):
    cached = CachedModel(Counting(n_tokens), None)
    cached.generate([replace(ONE, messages=(("user", text),)) for text in prompts])
    assert cached.n_cut_prompts == n
    cached.reset_calls()
    assert cached.n_cut_prompts == 0


if __name__ == "__main__":
    run_until(*sys.argv[1:])
