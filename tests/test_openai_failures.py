"""The OpenAI backend when things go wrong: failures become reasons, nothing finished is lost, and
the key reaches nothing."""

from __future__ import annotations

import gzip
import json
import logging
import os
import select
import signal
import sqlite3
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from email.utils import formatdate
from multiprocessing import get_context

import pytest
from each import each
from openai_server import KEY, Server, ask
from saying import saying, says

from trustlab.models.base import Request
from trustlab.models.cache import CachedModel
from trustlab.models.server.openai import OpenAIModel
from trustlab.models.server.openai_wire import ECHOED, Address, key_for, pause_of
from trustlab.models.wrapper import TextOnly
from trustlab.stops import Gone, Stopped

OPENED = {"provides": ["logprobs"]}


@pytest.fixture
def server(server, monkeypatch) -> Server:
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")  # nobody is there, nor is it asked
    return server


def asks(n: int) -> list[Request]:
    return [ask(str(k)) for k in range(n)]


def patient_of(body: dict) -> str:
    return body["messages"][-1]["content"]


# Failures that become reasons


@each(
    ("action", "reason", "n_calls"),
    [
        (500, ("HTTP 500", "1 retry", "Something"), 2),
        (400, ("HTTP 400", "Something"), 1),
        ("garbage", ("JSON", "1 retry", "'<html>502 Bad Gateway</html>'"), 2),
        ("hang", ("0.3 s", "1 retry"), 2),
        ("cut", ("connection", "127.0.0.1"), 2),
        ("no choices", "no choices", 1),
        ("null content", ("no text", "'stop'"), 1),
        ("filter", ("withheld", "content filter"), 1),
        ("refusal", ("refused", "I cannot help with that."), 1),
    ],
)
def test_a_failed_call_is_a_missing_reply_with_its_reason(action, reason, n_calls, server, opened):
    """The others are untouched."""
    server.plan = lambda k, body: action if patient_of(body) == "bad" else None
    model, n_before = opened(timeout_s=0.3 if action == "hang" else 5.0), len(server.chats())
    requests = [ask("good"), ask("bad", n=3, temperature=1.0), ask("better", n=2, temperature=1.0)]
    good, bad, better = model.generate(requests)
    assert len(bad) == 3 and len(better) == 2
    for reply in bad:
        assert (reply.text, reply.trace, reply.finish) == (None, None, "error")
        assert says(reply.missing, reason) and len(reply.missing) < 300
    assert all(reply.text and reply.missing is None for reply in (*good, *better))
    assert sum(patient_of(body) == "bad" for body in server.chats()[n_before:]) == n_calls
    assert (model.usage["retries"], model.usage["failures"]) == (n_calls - 1, 3)


@each("action", [429, 503, "hang", "cut"])
def test_a_failure_that_passes_is_tried_again_and_counted(action, server, opened):
    first = len(server.received)
    server.plan = lambda k, body: action if k == first else None
    model = opened(timeout_s=0.3 if action == "hang" else 5.0)
    ((reply,),) = model.generate([ask()])
    assert reply.text is not None and reply.missing is None
    assert (model.usage["requests"], model.usage["retries"], model.usage["failures"]) == (1, 1, 0)


@each("status", [429, 500])
def test_the_server_says_how_long_to_wait_before_the_next_try(status, server, opened):
    server.retry_after, first = {"retry-after": "0.4"}, len(server.received)
    server.plan = lambda k, body: status if k == first else None
    began = time.monotonic()
    assert opened(max_retries=3).generate([ask()])[0][0].text
    assert 0.4 <= time.monotonic() - began < 3 and len(server.chats()) == first + 2


@each(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": formatdate(time.time() + 3600, usegmt=True)}, 0),
        ({"retry-after": "soon"}, 0),
        ({"retry-after": "-3"}, 0),
        ({"retry-after": "1e999"}, 0),
        ({}, 0),
    ],
)
def test_how_long_is_read_where_it_is_a_number(headers: dict[str, str], seconds: float) -> None:
    assert pause_of(headers) == pytest.approx(seconds)


def test_a_call_that_is_refused_is_given_up_only_where_no_other_gets_through(server, opened):
    refused = Counter()

    def plan(k, body):
        refused[patient_of(body)] += patient_of(body) == "bad"
        time.sleep(0.02)
        return 429 if 0 < refused[patient_of(body)] <= 3 else None

    server.plan = plan
    model = opened(max_retries=1, concurrency=2)
    rows = model.generate([ask("bad"), *asks(20)])
    assert [row[0].missing for row in rows if not row[0].text] == []
    assert model.usage["retries"] == 3
    server.plan = lambda k, body: 429
    ((reply,),) = opened(max_retries=1).generate([ask()])
    assert reply.missing is not None and reply.missing.startswith("HTTP 429 after 1 retry: ")


def test_calls_beyond_a_rate_are_not_lost_and_few_are_refused(server, opened):
    server.per_second, server.retry_after = 20, {}
    rows = opened(concurrency=32, max_retries=5).generate(asks(40))
    assert all(row[0].text for row in rows)
    assert len(server.chats()) < 40 + 32 + 20  # the first burst, and one more


def test_a_call_has_its_time_from_beginning_to_end(server, opened):
    server.plan = lambda k, body: "drip"
    began = time.monotonic()
    ((reply,),) = opened(timeout_s=0.4, max_retries=0).generate([ask()])
    assert reply.missing == "no answer within 0.4 s" and time.monotonic() - began < 2


def test_no_redirect_is_followed(server, opened):
    with Server() as other:
        server.elsewhere = f"{other.url}/chat/completions"
        server.plan = lambda k, body: "redirect"
        ((reply,),) = opened(max_retries=3).generate([ask("Secret cough.")])
        assert reply.missing == "HTTP 307: Temporary Redirect"
        assert other.received == [] and len(server.chats()) == 1


@each("patient", ["half \ud83d", "whole"])
def test_what_cannot_be_written_or_read_makes_one_reply_missing(patient, server, opened):
    server.plan = lambda k, body: "digits" if patient_of(body) == "whole" else None
    bad, good = opened(max_retries=0).generate([ask(patient), ask("well")])
    assert bad[0].text is None and bad[0].missing and good[0].text


# What ends a run, and what is kept of it


def test_a_server_that_is_gone_stops_the_run_and_a_rerun_goes_on(server, opened, tmp_path):
    server.plan = lambda k, body: None if k < 5 else 500
    model = opened(max_retries=0, concurrency=4)
    cached = CachedModel(model, tmp_path / "replies.sqlite")
    with pytest.raises(Gone, match=saying("127.0.0.1", "gone", "10 calls", "HTTP 500")):
        cached.generate(asks(60))
    cached.close()
    first = len(server.chats())
    assert first <= 5 + 10 + 2 * 4  # in flight at the end, or before the last passed
    # What a run ended with does not end the next.
    server.plan = lambda k, body: 500 if k == first else None
    again = CachedModel(model, tmp_path / "replies.sqlite")
    assert sum(row[0].text is None for row in again.generate(asks(60))) == 1
    again.close()
    assert len(server.chats()) - first == 55
    server.plan = lambda k, body: 500 if k % 2 else None  # a few failures among others
    rows = opened(max_retries=0, concurrency=1).generate(asks(30))
    assert sum(row[0].text is None for row in rows) == 15


def test_a_server_that_asks_to_wait_for_an_hour_stops_the_run(server, opened):
    server.retry_after = {"retry-after": "3600"}
    server.plan = lambda k, body: 429 if k == 3 else None
    with pytest.raises(Gone, match=saying("3,600 s", "HTTP 429")) as caught:
        opened(concurrency=1).generate(asks(9))
    assert sum(row[0].text is not None for row in caught.value.replies) == 3


STATUS = {401: PermissionError, 403: PermissionError, 404: FileNotFoundError}


@each(("status", "error"), STATUS.items())
def test_a_refused_key_or_model_stops_everything_at_once(status, error, server, opened):
    server.plan, n_before = lambda k, body: status, len(server.chats())
    model = opened(concurrency=2)
    with pytest.raises(error, match=saying("127.0.0.1", "'toy'", f"HTTP {status}")):
        model.generate(asks(20))
    assert len(server.chats()) <= n_before + 4
    with pytest.raises(error):
        _ = opened(provides=None).provides


@each(
    ("then", "options", "words", "n_done"),
    [
        (401, {}, "HTTP 401", 3),
        (402, {}, "HTTP 402", 3),
        (None, {"max_calls": 4}, "4 calls", 4),
        # A call takes 8 tokens in ("user=0;>") and 4 out: after the fourth, 48 are spent.
        (None, {"max_tokens_total": 40}, "40 tokens", 4),
        (500, {"max_calls": 5, "max_retries": 5}, "5 calls", 3),
    ],
)
def test_what_a_stopped_run_finished_is_handed_over(then, options, words, n_done, server, opened):
    first = len(server.chats())
    server.plan = lambda k, body: None if k < first + 3 else then
    with pytest.raises(Stopped, match=saying(words, f"{n_done} of 8")) as why:
        opened(**{"concurrency": 1, **options}).generate(asks(8))
    texts = [row[0].text for row in why.value.replies]
    assert all(texts[:n_done]) and texts[n_done:] == [None] * (8 - n_done)
    assert all("not asked" in str(row[0].missing) for row in why.value.replies[n_done + 1 :])


def test_a_budget_of_calls_is_kept_to_and_a_cache_goes_on_where_it_ended(server, opened, tmp_path):
    requests = [*asks(6), ask("samples", n=4, temperature=1.0)]
    poor = CachedModel(opened(max_calls=4, concurrency=2), tmp_path / "replies.sqlite")
    with pytest.raises(Stopped, match=saying("4 of 10", "larger")):
        poor.generate(requests)
    poor.close()
    assert len(server.chats()) == 4
    rich = CachedModel(opened(max_calls=3), tmp_path / "replies.sqlite")  # exactly what is needed
    assert all(reply.text for row in rich.generate(requests) for reply in row)
    rich.close()
    asked = [patient_of(body) for body in server.chats()]
    assert len(asked) == 7 and len(set(asked)) == 7  # nothing was asked twice
    server.ignores_n = True
    with pytest.raises(Stopped, match="2 of 5") as caught:
        opened(max_calls=2, concurrency=1).generate([ask(n=5, temperature=1.0)])
    (row,) = caught.value.replies
    assert len(row) == 5 and row[0].text and row[1].text and row[2].text is None


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C is heard also where the tests run in the background, which begins with ears closed."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupted_run_hands_over_what_is_finished(server, opened):
    def interrupt(k: int, body: dict) -> str | None:
        if k < 2:
            return None
        os.kill(os.getpid(), signal.SIGINT)
        return "hang"

    server.plan = interrupt
    with pytest.raises(Stopped, match=saying("interrupted", "2 of 5")) as caught:
        opened(concurrency=1).generate(asks(5))
    assert [row[0].text is not None for row in caught.value.replies] == [True] * 2 + [False] * 3


def test_each_reply_is_kept_as_it_comes_and_waits_for_no_other(server, opened, tmp_path):
    file, seen = tmp_path / "replies.sqlite", []

    def plan(k, body):
        if patient_of(body) == "slow":
            with closing(sqlite3.connect(file)) as kept:
                for _ in range(600):  # until the others are there
                    time.sleep(0.05)
                    (n,) = kept.execute("SELECT count(*) FROM replies").fetchone()
                    if n == 10:
                        break
            seen.append(n)

    server.plan = plan
    cached, done = CachedModel(opened(concurrency=2, timeout_s=60), file), []
    cached._answered([ask("slow"), *asks(10)], done.append)
    cached.close()
    assert seen == [10] and sum(done) == 11


def test_a_reply_that_passing_failure_left_unscored_is_used_and_not_kept(server, opened, tmp_path):
    server.scores_chats = True
    server.plan = lambda k, body: 503 if "prompt_logprobs" in body else None
    gives = ["logprobs", "prior"]
    request = ask(want=frozenset(gives), prior_messages=(("user", "Well?"),))
    cached = CachedModel(opened(provides=gives), tmp_path / "replies.sqlite")
    ((reply,),) = cached.generate([request])
    assert reply.text and reply.trace and reply.trace.prior_logprobs is None
    assert reply.missing is not None and reply.missing.startswith("not scored: HTTP 503")
    server.plan = lambda k, body: None
    ((again,),) = cached.generate([request])
    cached.close()
    assert again.trace and again.trace.prior_logprobs is not None and again.missing is None
    with pytest.raises(Stopped, match="0 of 1 replies"):  # better asked again
        opened(provides=gives, max_calls=1).generate([request])


def test_what_a_server_says_of_itself_is_counted_as_far_as_it_can_be(server, opened, tmp_path):
    server.named = lambda k: "toy-1" if k < 3 else "toy-2"
    server.n_tokens = 1e30
    for _ in range(2):  # once as it comes, once as it was kept
        model = opened(concurrency=1)
        cached = CachedModel(model, tmp_path / "replies.sqlite")
        rows = cached.generate(asks(4))
        assert cached.served == {"toy-1": 3, "toy-2": 1}
        assert (rows[0][0].n_tokens_in, model.usage["n_tokens_in"]) == (None, 0)
        assert cached.calls_table()["n_tokens_in"].isna().all()
        cached.close()
    assert len(server.chats()) == 4


def test_a_text_only_view_of_a_server_is_opened_again_without_asking_it(server, opened, tmp_path):
    seen = CachedModel(TextOnly(opened(provides=None), "toy-text"), tmp_path / "c.sqlite")
    (row,) = seen.generate([ask()])
    seen.close()
    calls, model = len(server.received), TextOnly(opened(provides=None), "toy-text")
    again = CachedModel(model, tmp_path / "c.sqlite", offline=True)
    assert again.provides == {"text"} and again.lacks == {}
    assert again.generate([ask()]) == [row] and len(server.received) == calls


def test_a_refusal_amid_a_run_concerns_its_reply_alone(server, opened):
    model, words = opened(provides=None), "logprobs are not available for this prompt"
    assert "distributions" in model.provides
    bad = (400, json.dumps({"error": {"message": words}}).encode())
    server.plan = lambda k, body: bad if patient_of(body) == "1" else None
    want, n_before = frozenset({"logprobs", "distributions"}), len(server.chats())
    rows = model.generate([ask(str(k), n=2, temperature=0.5, want=want) for k in range(4)])
    assert [reply.text is None for row in rows for reply in row] == [k in (2, 3) for k in range(8)]
    assert all(reply.missing and words in reply.missing for reply in rows[1])
    assert all(reply.trace and reply.trace.alternatives for k in (0, 2, 3) for reply in rows[k])
    sent = server.chats()[n_before:]
    assert len(sent) == 4 and len({tuple(sorted(body)) for body in sent}) == 1


@each("encoding", ["gzip, gzip", "br"])
def test_a_packed_answer_is_refused_before_it_is_unpacked(encoding, server, opened):
    bomb = b'{"choices": []}'
    if encoding == "gzip, gzip":
        bomb = gzip.compress(gzip.compress(b" " * 150_000_000))
    head = {"content-encoding": encoding}
    server.plan = lambda k, body: (200, bomb, head) if patient_of(body) == "1" else None
    began = time.monotonic()
    model = opened()
    rows = model.generate(asks(3))
    assert [row[0].text is None for row in rows] == [False, True, False]
    assert says(rows[1][0].missing, f"({encoding})", "not read") and time.monotonic() - began < 2


def test_an_answer_that_says_it_is_not_packed_is_read(server, opened):
    def plan(k: int, body: dict) -> tuple[int, bytes, dict[str, str]]:
        return 200, json.dumps(server.chat(body, None)).encode(), {"content-encoding": "identity"}

    server.plan = plan
    assert opened().generate([ask()])[0][0].text


# A forked process


def replies_of(model: OpenAIModel, patient: str) -> str | None:
    return model.generate([ask(patient)])[0][0].text


SHARED: dict[str, OpenAIModel] = {}  # what a pool's processes have of this one


def of_shared(patient: str) -> str | None:
    return replies_of(SHARED["model"], patient)


def in_child(work: Callable[[], object]) -> str:
    """What ``work`` gives, or says, in a forked process; it is killed after 20 s."""
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        try:
            text = str(work())
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
        os.write(write, text.encode())
        os._exit(0)
    os.close(write)
    try:
        ready, _, _ = select.select([read], [], [], 20)
        return os.read(read, 10_000).decode() if ready else "hangs"
    finally:
        os.close(read)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="no process is forked here")


@forks
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@each("before", ["unused", "used", "closed"])
def test_a_model_that_was_opened_before_a_fork_asks_in_both_processes(before, server, opened):
    model = opened(timeout_s=5.0)
    if before != "unused":
        assert replies_of(model, "one")
    if before == "closed":
        model.close()
    texts = [in_child(lambda: replies_of(model, "two")) for _ in range(2)]
    assert texts == [replies_of(model, "two")] * 2
    assert in_child(model.close) == "None" and replies_of(model, "three")
    nested = in_child(lambda: in_child(lambda: replies_of(model, "two")))
    assert nested == texts[0]


@forks
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_pool_of_forked_processes_may_ask(server, opened):
    SHARED["model"] = opened()
    expected = [of_shared(text) for text in "abcd"]
    with ProcessPoolExecutor(2, mp_context=get_context("fork")) as pool:
        assert list(pool.map(of_shared, "abcd", timeout=20)) == expected


@forks
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@each("path", ["replies.sqlite", None])
def test_a_cache_that_was_opened_before_a_fork_says_so(path, server, opened, tmp_path):
    """SQLite's locks do not reach the forked process; replies in memory do."""
    file = path and tmp_path / path
    cached = CachedModel(opened(), file)
    first = cached.generate([ask("a")])[0][0].text
    words = in_child(lambda: cached.generate([ask("a")])[0][0].text)
    assert words == first if file is None else ("forked" in words and str(file) in words)
    if file is not None:
        again = in_child(lambda: CachedModel(opened(), file).generate([ask("a")])[0][0].text)
        assert again == first
    assert cached.generate([ask("b")])[0][0].text
    cached.close()


# Addresses and keys


@each("path", ["", "/chat/completions"])
@each("provides", [None, ["text"]])
def test_an_address_without_v1_is_said_where_nothing_is_found(path, provides, server, opened):
    url = server.url.removesuffix("/v1") + path
    model = opened(base_url=url, provides=provides)
    with pytest.raises(FileNotFoundError, match=saying("HTTP 404", "lack /v1")) as caught:
        model.generate([ask()]) if provides else model.abilities
    assert "refuses" not in str(caught.value)


@each("path", ["/v1", "/v1/", "/v1//", "/v1/chat/completions", "/v1/chat/completions/"])
def test_an_address_is_the_same_with_the_path_of_a_call(path, server, opened):
    model = opened(base_url=server.url.removesuffix("/v1") + path)
    assert model.generate([ask()])[0][0].text and set(server.paths) == {"/v1/chat/completions"}


@each("status", [200, 405])
def test_a_page_in_place_of_a_server_may_lack_v1_and_a_model_that_is_not_there_does_not(
    status, server, opened
):
    server.plan = lambda k, body: (status, b"<html>Welcome</html>")
    with pytest.raises(RuntimeError, match="Welcome.* lack /v1"):
        _ = opened(provides=None, max_retries=0, base_url=server.url.removesuffix("/v1")).provides
    server.plan = lambda k, body: 404
    with pytest.raises(FileNotFoundError, match="refuses 'toy': HTTP 404") as caught:
        _ = opened(provides=None).provides
    assert "lack" not in str(caught.value)


def test_a_server_that_is_not_there_is_named():
    with closing(OpenAIModel("toy", base_url="http://127.0.0.1:9/v1", max_retries=0)) as model:
        with pytest.raises(ConnectionError, match=saying("'toy'", "127.0.0.1:9/v1")):
            _ = model.provides
        ((reply,),) = model.generate([ask()])
        assert says(reply.missing, "connection", "127.0.0.1:9/v1")


@each("key", ["sk-one two", "sk-one\ntwo", "sk-\u200bone", "sk-schl\u00fcssel"])
def test_a_key_with_blanks_or_other_characters_is_refused_and_not_repeated(key, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(ValueError, match=saying("OPENAI_API_KEY", "characters")) as caught:
        key_for(Address.of("http://host/v1"))
    assert key[3:] not in str(caught.value) and key[:5] not in str(caught.value)
    monkeypatch.setenv("OPENAI_API_KEY", " sk-one\r\n")
    assert key_for(Address.of(" http://host/v1/chat/completions\n")) == "sk-one"
    monkeypatch.delenv("OPENAI_API_KEY")
    assert key_for(Address.of("http://host/v1")) == "none"  # the client insists on one
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(ValueError, match=saying("OPENAI_API_KEY", "not set")):
        key_for(Address.of(None))


SECRET = (
    "user:pa\u2100ss77@host/v1",
    "user:pass77/v1",
    "user:pass77@host/v1",
    "host/v1?key=pass77",
)


@each("url", SECRET)
def test_an_address_that_is_none_or_holds_a_secret_is_not_repeated(url):
    with pytest.raises(ValueError, match="base_url") as caught:
        Address.of(f"http://{url}")
    assert "77" not in str(caught.value)


@each("path", ["v1", "openai/deployments/gpt-4o", "api/v1beta", "qwen2.5-7b/v1", "llama3"])
def test_an_ordinary_address_is_shown_whole_so_that_its_replies_are_found_again(path: str) -> None:
    assert Address.of(f"http://host:8000/{path}").shown == f"host:8000/{path}"


@each("part", ["canary0token1in2path", "a1b2c3d4e5f6", "t-0123456789abcdef"])
def test_what_may_be_a_token_in_an_address_is_not(part: str) -> None:
    shown = Address.of(f"http://host/{part}/v1").shown
    assert part not in shown and shown == Address.of(f"http://host/{part}/v1").shown


def test_a_reply_that_holds_the_key_is_missing_and_kept_nowhere(server, opened, tmp_path):
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in KEY)

    def in_escapes(answer: dict) -> bytes:
        answer["choices"][0]["message"]["content"] = "[KEY]"
        return json.dumps(answer).replace("KEY", escaped).encode()

    actions = {"bad": "echo", "escaped": in_escapes}
    server.plan = lambda k, body: actions.get(patient_of(body))
    cached = CachedModel(opened(max_retries=3), tmp_path / "replies.sqlite")
    (good,), (bad,), (worse,) = cached.generate([ask("good"), ask("bad"), ask("escaped")])
    cached.close()
    assert good.text and bad.text is worse.text is None
    assert bad.missing == worse.missing == ECHOED and len(server.chats()) == 3
    assert not any(KEY.encode() in file.read_bytes() for file in tmp_path.iterdir())


def test_the_key_reaches_no_file_log_exception_or_name(server, opened, tmp_path, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    seen: list[str] = []
    # Every failure of this server repeats the Authorization header that it got.
    for action in (None, 400, 401, 404, 429, 500, "garbage"):
        server.plan = lambda k, body, then=action: None if len(server.chats()) % 2 else then
        model = opened(max_retries=0, concurrency=1)
        cached = CachedModel(model, tmp_path / f"{action}.sqlite")
        try:
            replies = cached.generate(asks(4))
            seen += [f"{reply!r}" for row in replies for reply in row]
        except (Stopped, PermissionError, FileNotFoundError) as error:
            seen += ["".join(traceback.format_exception(error, chain=True)), repr(error)]
            seen += [repr(error.replies)] if isinstance(error, Stopped) else []
        seen += [repr(model), str(vars(model)), str(model._line), str(vars(cached))]
        cached.close()
    seen += [path.read_bytes().decode("latin-1") for path in tmp_path.iterdir()]
    seen += [caplog.text, *(str(record.__dict__) for record in caplog.records), *capfd.readouterr()]
    assert {headers["authorization"] for headers in server.headers} == {f"Bearer {KEY}"}
    assert any("[key]" in text for text in seen)
    assert [text[:500] for text in seen if KEY in text] == []


LOGIN = "http://user:open-sesame@host"
BASIC = "Basic dXNlcjpwYXNzd29yZA=="


@each(
    "shown",
    [
        KEY,
        "sk-other-0123456789",
        "sk-ab********wxyz",
        "Bearer abcdef",
        "bearer abcdef",
        BASIC,
        "basic YWRtaW46c2VzYW1l",
        "Authorization: Basic dTpwMQ==",
        LOGIN,
        "https://token7@host",
    ],
)
def test_what_looks_like_a_key_in_a_servers_words_is_cut_out(shown, opened):
    model = opened()
    model.generate([ask()])
    words = model._line.scrubbed(f"Incorrect API key provided: {shown}. See the manual.")
    secret = shown.partition("://")[2].partition("@")[0] or shown.split()[-1]
    assert "[key]" in words and secret not in words
    assert words.startswith("Incorrect") and "manual" in words


@each(
    "words", ["a basic metabolic panel", "Basic Metabolic Panel", "basic life support", "at a://b"]
)
def test_ordinary_words_are_not_cut_out(words, opened):
    model = opened()
    assert model._line.scrubbed(f"Flagged: {words}.") == f"Flagged: {words}."


@each("value", [BASIC, "basic dXNlcjpwYXNzd29yZA", LOGIN, "say Bearer abcdef77"])
def test_parameters_that_hold_credentials_are_refused_and_not_repeated(value, opened):
    with pytest.raises(ValueError, match="key") as caught:
        opened(extra_body={"user": value})
    assert value.split()[-1] not in str(caught.value)
