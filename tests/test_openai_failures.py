"""The OpenAI backend when things go wrong: failures become reasons, nothing finished is lost, and
the key reaches nothing."""

from __future__ import annotations

import base64
import logging
import os
import signal
import sqlite3
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from email.utils import formatdate

import pytest
from asking import ask as ask_benchmark
from fake_model import made_cases
from openai_server import KEY, TEMPLATE, Server, opening

from trustlab.experiment import benchmark
from trustlab.models import open_model
from trustlab.models.base import Gone, Request, Stopped, TextOnly
from trustlab.models.cache import CachedModel
from trustlab.models.openai import OpenAIModel
from trustlab.models.openai_replies import ALL_ZERO, NOT_NUMBERS
from trustlab.models.openai_wire import Address, pause_of
from trustlab.run_notebooks import run_notebook

PASSWORD = "open-sesame"


@pytest.fixture
def server(monkeypatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with Server() as running:
        yield running


@pytest.fixture
def opened(server) -> Iterator:
    """Opens models of the server, and closes them at the end."""
    with opening(server, provides=["logprobs"]) as open_it:
        yield open_it


def ask(patient: str = "Cough?", **options) -> Request:
    return Request((("user", patient),), **{"max_tokens": 8, **options})


def patient_of(body: dict) -> str:
    return body["messages"][-1]["content"]


@pytest.mark.parametrize(
    ("action", "reason", "n_calls"),
    [
        (500, "HTTP 500 after 1 retry: Something", 2),
        (400, "HTTP 400: Something", 1),
        ("garbage", "not JSON after 1 retry: '<html>502 Bad Gateway</html>'", 2),
        ("hang", "no answer within 0.3 s after 1 retry", 2),
        ("cut", "the connection to 127.0.0.1:", 2),
        ("no choices", "the server sent no choices", 1),
        ("null content", "the server sent no text (finish 'stop')", 1),
        ("filter", "withheld by the server's content filter", 1),
        ("refusal", "the model refused: I cannot help with that.", 1),
    ],
)
@pytest.mark.parametrize("n", [1, 3])
def test_a_failed_call_is_a_missing_reply_with_its_reason_and_the_others_are_untouched(
    server, opened, action, reason, n_calls, n
):
    server.plan = lambda k, body: action if patient_of(body) == "bad" else None
    model = opened(timeout_s=0.3 if action == "hang" else 5.0)
    requests = [ask("good"), ask("bad", n=n, temperature=1.0), ask("better", n=2, temperature=1.0)]
    good, bad, better = model.generate(requests)
    assert len(bad) == n and len(better) == 2
    for reply in bad:
        assert (reply.text, reply.trace, reply.finish) == (None, None, "error")
        assert reply.missing is not None and reason in reply.missing and len(reply.missing) < 300
    assert all(reply.text and reply.missing is None for reply in (*good, *better))
    assert sum(patient_of(body) == "bad" for body in server.chats()) == n_calls
    assert (model.usage["retries"], model.usage["failures"]) == (n_calls - 1, n)


@pytest.mark.parametrize("action", [429, 500, 503, "garbage", "hang", "cut"])
def test_a_failure_that_passes_is_tried_again_and_counted(server, opened, action):
    server.plan = lambda k, body: action if k == 0 else None
    model = opened(timeout_s=0.3 if action == "hang" else 5.0)
    ((reply,),) = model.generate([ask()])
    assert reply.text is not None and reply.missing is None
    assert (model.usage["requests"], model.usage["retries"], model.usage["failures"]) == (1, 1, 0)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_the_server_says_how_long_to_wait_before_the_next_try(server, opened, status):
    server.retry_after = {"retry-after": "0.4"}
    server.plan = lambda k, body: status if k == 0 else None
    model = opened(max_retries=3)
    began = time.monotonic()
    assert model.generate([ask()])[0][0].text
    assert 0.4 <= time.monotonic() - began < 3 and len(server.chats()) == 2


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": formatdate(time.time() + 3600, usegmt=True)}, 3600),
        ({"retry-after": formatdate(time.time() - 3600, usegmt=True)}, 0),
        ({"retry-after": "soon"}, 0),
        ({"retry-after": "-3"}, 0),
        ({"retry-after": "1e999"}, 0),
        ({}, 0),
    ],
)
def test_how_long_is_read_in_every_form(headers: dict[str, str], seconds: float) -> None:
    assert pause_of(headers) == pytest.approx(seconds, abs=1800 if seconds > 60 else 1e-9)


def test_a_call_that_is_refused_is_not_given_up_while_others_get_through(server, opened):
    refused = Counter()

    def plan(k, body):
        refused[patient_of(body)] += patient_of(body) == "bad"
        time.sleep(0.02)
        return 429 if 0 < refused[patient_of(body)] <= 5 else None

    server.plan = plan
    model = opened(max_retries=1, concurrency=2)
    rows = model.generate([ask("bad"), *(ask(str(k)) for k in range(40))])
    assert [row[0].missing for row in rows if not row[0].text] == []
    assert model.usage["retries"] == 5


def test_a_call_that_is_refused_alone_is_given_up_after_its_retries(server, opened):
    server.plan = lambda k, body: 429
    ((reply,),) = opened(max_retries=2).generate([ask()])
    assert reply.missing is not None and reply.missing.startswith("HTTP 429 after 2 retries: ")


def test_calls_beyond_a_rate_are_not_lost_and_few_are_refused(server, opened):
    server.per_second, server.retry_after = 20, {}
    model = opened(concurrency=32, max_retries=5)
    rows = model.generate([ask(str(k)) for k in range(60)])
    assert all(row[0].text for row in rows)
    assert len(server.chats()) < 60 + 32 + 20  # the first burst, and one more


def test_a_server_that_is_gone_stops_the_run_and_a_rerun_goes_on(server, opened, tmp_path):
    server.plan = lambda k, body: None if k < 5 else 500
    requests = [ask(str(k)) for k in range(60)]
    cached = CachedModel(opened(max_retries=0, concurrency=4), tmp_path / "replies.sqlite")
    with pytest.raises(Gone, match=r"127.0.0.1:.* is gone: 10 calls in a row failed, the last"):
        cached.generate(requests)
    cached.close()
    assert len(server.chats()) <= 5 + 10 + 2 * 4  # in flight at the end, or before the last passed
    server.plan = lambda k, body: None
    before = len(server.chats())
    again = CachedModel(opened(), tmp_path / "replies.sqlite")
    assert all(row[0].text for row in again.generate(requests))
    again.close()
    assert len(server.chats()) - before == 55


def test_a_few_failures_among_others_do_not_stop_a_run(server, opened):
    server.plan = lambda k, body: 500 if k % 2 else None
    rows = opened(max_retries=0, concurrency=1).generate([ask(str(k)) for k in range(60)])
    assert sum(row[0].text is None for row in rows) == 30


def test_a_server_that_asks_to_wait_for_an_hour_stops_the_run(server, opened):
    server.retry_after = {"retry-after": "3600"}
    server.plan = lambda k, body: 429 if k == 3 else None
    began = time.monotonic()
    with pytest.raises(Gone, match="asks to wait 3,600 s: HTTP 429") as caught:
        opened(concurrency=1).generate([ask(str(k)) for k in range(9)])
    assert time.monotonic() - began < 5
    assert sum(row[0].text is not None for row in caught.value.replies) == 3


def test_a_call_has_its_time_from_beginning_to_end(server, opened):
    server.plan = lambda k, body: "drip"
    began = time.monotonic()
    ((reply,),) = opened(timeout_s=0.4, max_retries=0).generate([ask()])
    assert reply.missing == "no answer within 0.4 s" and time.monotonic() - began < 2


def test_a_redirect_to_another_address_is_not_followed(server, opened):
    with Server() as other:
        server.elsewhere = f"{other.url}/chat/completions"
        server.plan = lambda k, body: "redirect"
        ((reply,),) = opened(max_retries=3).generate([ask("Secret cough.")])
        assert reply.missing == "the server redirects to another address"
        assert other.received == [] and len(server.chats()) == 1


def test_a_redirect_at_the_same_address_is(server, opened):
    server.elsewhere = f"{server.url}/chat/completions"
    server.plan = lambda k, body: "redirect" if k == 0 else None
    assert opened().generate([ask()])[0][0].text


def test_a_reply_that_holds_the_key_is_missing_and_kept_nowhere(server, opened, tmp_path):
    server.plan = lambda k, body: "echo" if patient_of(body) == "bad" else None
    with CachedModelClosing(opened(max_retries=3), tmp_path / "replies.sqlite") as cached:
        (good,), (bad,) = cached.generate([ask("good"), ask("bad")])
    assert good.text and (bad.text, bad.missing) == (None, "the server echoed the key")
    assert len(server.chats()) == 2
    assert not any(KEY.encode() in file.read_bytes() for file in tmp_path.iterdir())


def test_a_short_key_is_not_searched_for_in_words(server, opened, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    server.content = "[Hypoxia]"
    assert opened().generate([ask()])[0][0].text == "[Hypoxia]"
    server.plan = lambda k, body: 400
    ((reply,),) = opened(max_retries=0).generate([ask()])
    assert reply.missing == "HTTP 400: Something about x went wrong (400)"


def test_a_count_of_tokens_that_cannot_be_is_not_believed(server, opened, tmp_path):
    server.n_tokens = 1e30
    model = opened()
    with CachedModelClosing(model, tmp_path / "replies.sqlite") as cached:
        ((reply,),) = cached.generate([ask()])
        assert (reply.n_tokens_in, model.usage["n_tokens_in"]) == (0, 0)
        assert cached.calls_table()["n_tokens_in"].tolist() == [0]
        assert cached.generate([ask()]) == [[reply]]


@pytest.mark.parametrize(
    ("logprobs", "why"), [("zero", ALL_ZERO), ("nan", NOT_NUMBERS), ("positive", NOT_NUMBERS)]
)
def test_log_probabilities_that_cannot_be_are_missing_with_the_reason(
    server, opened, tmp_path, logprobs, why
):
    server.logprobs = logprobs
    case = made_cases(1)[0]
    with CachedModelClosing(opened(), tmp_path / "replies.sqlite") as cached:
        for _ in range(2):  # once as it comes, once as it was kept
            methods = ["asp", "perplexity", "mc_se", "ce"]
            run = ask_benchmark(benchmark, [case], [cached], methods, levels=[100], samples=2)
            missing = run.confidence.set_index("method")["missing"]
            assert missing["asp"] == missing["perplexity"] == missing["mc_se"] == why
    assert len(server.chats()) == 3


def test_the_model_that_a_server_names_is_counted_also_from_kept_replies(server, opened, tmp_path):
    server.named = lambda k: "toy-1" if k < 3 else "toy-2"
    requests = [ask(str(k)) for k in range(4)]
    for _ in range(2):
        with CachedModelClosing(opened(concurrency=1), tmp_path / "replies.sqlite") as cached:
            cached.generate(requests)
            assert cached.served == {"toy-1": 3, "toy-2": 1}
    assert len(server.chats()) == 4


def test_each_reply_is_kept_as_it_comes_and_waits_for_no_other(server, opened, tmp_path):
    file, seen = tmp_path / "replies.sqlite", []

    def plan(k, body):
        if patient_of(body) == "slow":
            with closing(sqlite3.connect(file)) as kept:
                for _ in range(600):  # until the others are there
                    time.sleep(0.05)
                    (n,) = kept.execute("SELECT count(*) FROM replies").fetchone()
                    if n == 30:
                        break
            seen.append(n)

    server.plan = plan
    with CachedModelClosing(opened(concurrency=2, timeout_s=60), file) as cached:
        done = []
        cached.generate([ask("slow"), *(ask(str(k)) for k in range(30))], progress=done.append)
    assert seen == [30] and sum(done) == 31


@pytest.mark.parametrize(
    ("status", "error"), [(401, PermissionError), (403, PermissionError), (404, FileNotFoundError)]
)
def test_a_refused_key_or_model_stops_everything_at_once(server, opened, status, error):
    server.plan = lambda k, body: status
    model = opened(concurrency=2)
    with pytest.raises(error, match=f"127.0.0.1:.* refuses 'toy': HTTP {status}"):
        model.generate([ask(str(k)) for k in range(20)])
    assert len(server.chats()) <= 4
    with pytest.raises(error):
        _ = opened(provides=None).provides


def test_what_was_finished_before_a_refusal_is_handed_over(server, opened):
    server.plan = lambda k, body: None if k < 3 else 401
    with pytest.raises(
        Stopped, match="HTTP 401.*; 3 of 8 replies are finished; run again to go on"
    ) as caught:
        opened(concurrency=1).generate([ask(str(k)) for k in range(8)])
    texts = [row[0].text for row in caught.value.replies]
    assert all(texts[:3]) and texts[3:] == [None] * 5
    assert all("not asked" in str(row[0].missing) for row in caught.value.replies[4:])


def test_a_server_that_is_not_there_is_named():
    with OpenAIModel("toy", base_url="http://127.0.0.1:9/v1", max_retries=0) as model:
        with pytest.raises(ConnectionError, match=r"'toy' cannot be reached at 127.0.0.1:9/v1"):
            _ = model.provides
        ((reply,),) = model.generate([ask()])
        assert reply.text is None and "the connection to 127.0.0.1:9/v1 failed" in str(
            reply.missing
        )


def test_openai_itself_needs_a_key(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(ValueError, match="OPENAI_API_KEY is not set"):
        open_model("openai:gpt").generate([ask()])


def test_a_server_of_ones_own_needs_none(server, opened, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    assert opened().generate([ask()])[0][0].text
    assert server.headers[0]["authorization"] == "Bearer none"


def test_a_budget_of_calls_is_kept_to_and_a_cache_goes_on_where_it_ended(server, opened, tmp_path):
    requests = [ask(str(k)) for k in range(6)] + [ask("samples", n=4, temperature=1.0)]
    poor = CachedModel(opened(max_calls=4, concurrency=2), tmp_path / "replies.sqlite")
    with pytest.raises(
        Stopped,
        match=(
            "the budget of 4 calls is spent; 4 of 10 replies are finished; run again with a larger"
        ),
    ):
        poor.generate(requests)
    poor.close()
    assert len(server.chats()) == 4
    model = opened()
    rich = CachedModel(model, tmp_path / "replies.sqlite")
    replies = rich.generate(requests)
    rich.close()
    assert all(reply.text for row in replies for reply in row)
    asked = [patient_of(body) for body in server.chats()]
    assert len(asked) == 7 and len(set(asked)) == 7  # nothing was asked twice


def test_a_budget_of_exactly_what_is_needed_is_enough(opened):
    model = opened(max_calls=3)
    assert len(model.generate([ask(str(k)) for k in range(3)])) == 3
    with pytest.raises(Stopped):
        model.generate([ask("one more")])


def test_a_budget_of_tokens_lets_begun_calls_finish_and_begins_no_other(server, opened):
    model = opened(max_tokens_total=40, concurrency=1)
    with pytest.raises(Stopped, match="the budget of 40 tokens is spent") as caught:
        model.generate([ask(str(k)) for k in range(10)])
    n_done = sum(row[0].text is not None for row in caught.value.replies)
    # A call takes 8 tokens in ("user=0;>") and 4 out: after the fourth, 48 are spent.
    assert n_done == len(server.chats()) == 4


def test_samples_that_came_before_a_budget_ended_are_kept(server, opened):
    server.ignores_n = True
    with pytest.raises(Stopped, match="2 of 5 replies are finished") as caught:
        opened(max_calls=2, concurrency=1).generate([ask(n=5, temperature=1.0)])
    (row,) = caught.value.replies
    assert len(row) == 5 and row[0].text and row[1].text and row[2].text is None


def test_an_account_without_money_stops_the_run(server, opened):
    server.plan = lambda k, body: 402 if k else None
    with pytest.raises(Stopped, match="HTTP 402.*1 of 6 replies"):
        opened(concurrency=1).generate([ask(str(k)) for k in range(6)])


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
    with pytest.raises(
        Stopped, match="interrupted; 2 of 5 replies are finished; run again to go on"
    ) as caught:
        opened(concurrency=1).generate([ask(str(k)) for k in range(5)])
    assert [row[0].text is not None for row in caught.value.replies] == [
        True,
        True,
        False,
        False,
        False,
    ]


def test_a_reply_that_a_passing_failure_left_unscored_is_used_and_not_kept(
    server, opened, tmp_path
):
    server.plan = lambda k, body: 503 if "prompt" in body else None
    request = ask(want=frozenset({"logprobs", "prior"}), prior_messages=(("user", "Well?"),))
    model = opened(chat_template=TEMPLATE, provides=["logprobs", "prior"])
    with CachedModelClosing(model, tmp_path / "replies.sqlite") as cached:
        ((reply,),) = cached.generate([request])
        assert reply.text and reply.trace and reply.trace.prior_logprobs is None
        assert reply.missing is not None and reply.missing.startswith("not scored: HTTP 503")
        server.plan = lambda k, body: None
        ((again,),) = cached.generate([request])
    assert again.trace and again.trace.prior_logprobs is not None and again.missing is None


def test_a_budget_that_ends_before_the_scoring_leaves_the_reply_to_be_asked_again(opened):
    request = ask(want=frozenset({"logprobs", "prior"}), prior_messages=(("user", "Well?"),))
    with pytest.raises(Stopped, match="0 of 1 replies"):
        opened(chat_template=TEMPLATE, provides=["logprobs", "prior"], max_calls=1).generate(
            [request]
        )


class CachedModelClosing(CachedModel):
    def __enter__(self) -> CachedModel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@pytest.mark.parametrize("login", ["", f"me:{PASSWORD}@"], ids=["key", "password in the address"])
def test_the_key_reaches_no_file_log_exception_or_name(
    server, opened, login, tmp_path, caplog, capfd
):
    caplog.set_level(logging.DEBUG)
    seen: list[str] = []
    address = server.url.replace("//", f"//{login}")
    # Every failure of this server repeats the Authorization header that it got.
    for action in (None, 400, 401, 403, 404, 429, 500, "garbage", "cut"):
        server.plan = lambda k, body, action=action: (
            action if len(server.chats()) % 2 == 0 else None
        )
        model = opened(base_url=address, max_retries=0, concurrency=1)
        cached = CachedModel(model, tmp_path / f"{action}.sqlite")
        try:
            replies = cached.generate([ask(str(k)) for k in range(4)])
            seen += [f"{reply!r}" for row in replies for reply in row]
        except (Stopped, PermissionError, FileNotFoundError) as error:
            seen += [
                "".join(traceback.format_exception(error, chain=True)),
                repr(error),
                repr(error.__context__),
            ]
            seen += [repr(error.replies)] if isinstance(error, Stopped) else []
        seen += [
            repr(model),
            str(vars(model)),
            model.revision,
            str(model.usage),
            str(model._line),
            str(vars(cached)),
        ]
        cached.close()
    seen += [path.read_bytes().decode("latin-1") for path in tmp_path.iterdir()]
    seen += [caplog.text, *(str(record.__dict__) for record in caplog.records), *capfd.readouterr()]
    sent = {headers["authorization"] for headers in server.headers}
    assert len(sent) == 1 and (KEY in str(sent)) == (login == "")  # it was sent, and that was all
    assert any("[key]" in text for text in seen)
    secrets = [KEY, PASSWORD, *(value.split()[1] for value in sent)]
    for text in seen:
        assert not any(secret in text for secret in secrets), text[:500]


@pytest.mark.parametrize(
    "shown", [KEY, "sk-other-0123456789", "sk-ab********wxyz", "Bearer abcdef"]
)
def test_what_looks_like_a_key_in_a_servers_words_is_cut_out(server, opened, shown):
    model = opened()
    model.generate([ask()])
    words = model._line.scrubbed(f"Incorrect API key provided: {shown}. See the manual.")
    assert (
        "[key]" in words
        and shown.split()[-1] not in words
        and words.startswith("Incorrect")
        and "manual" in words
    )


def test_a_key_in_the_query_of_an_address_is_refused_without_being_repeated():
    with pytest.raises(ValueError, match="a key belongs in OPENAI_API_KEY") as caught:
        OpenAIModel("toy", base_url=f"http://127.0.0.1:9/v1?key={KEY}")
    assert KEY not in str(caught.value)


CANARIES = ("canary-key-0123456789", "canary-password", "canary0token1in2path")


@pytest.mark.slow
@pytest.mark.notebook
@pytest.mark.parametrize("failure", ["echo", 401, 500])
def test_no_canary_reaches_a_file_of_a_run(server, tmp_path, monkeypatch, caplog, capfd, failure):
    """Key, password and token of the environment, with a server that repeats what it gets."""
    caplog.set_level(logging.DEBUG)
    key, password, token = CANARIES
    monkeypatch.setenv("OPENAI_API_KEY", key)
    host = server.url.split("/")[2]
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://me:{password}@{host}/{token}/v1")
    monkeypatch.setenv("TRUSTLAB_RUNS", str(tmp_path / "runs"))
    server.plan = lambda k, body: failure if k > 4 and (failure != "echo" or k % 3 == 0) else None
    monkeypatch.setattr(server, "prefix", f"/{token}")
    few = {"n": 2, "levels": [100], "methods": ["asp", "ce"], "samples": 2, "draws": 20}
    seen = []
    try:
        options = {"max_retries": 0, "concurrency": 1}
        run_notebook(
            "01_benchmark", {**few, "model": "openai:toy", "model_options": options}, tmp_path / "r"
        )
    except Exception as error:
        seen += traceback.format_exception(error, chain=True)
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert {"manifest.json", "01_benchmark.ipynb"} <= {file.name for file in files}
    seen += [file.read_bytes().decode("latin-1") for file in files]
    seen += [caplog.text, *map(str, capfd.readouterr())]
    assert len(server.received) > 4
    encoded = base64.b64encode(f"me:{password}".encode()).decode()
    for canary in (*CANARIES, encoded):
        found = [text.partition(canary)[0][-200:] for text in seen if canary in text]
        assert not found, canary


@pytest.mark.parametrize(
    "options",
    [
        {"api_key": CANARIES[0]},
        {"base_url": f"http://me:{CANARIES[1]}@host/v1"},
        {"base_url": f"http://host/v1?token={CANARIES[1]}"},
        {"extra_body": {"extra_headers": {"x": CANARIES[0]}}},
        {"extra_body": [{"password": CANARIES[1]}]},
        {"extra_body": {"user": "Bearer " + CANARIES[0]}},
    ],
)
@pytest.mark.parametrize("name", ["model_options", "reader_options"])
def test_options_that_may_carry_a_key_are_refused_before_anything_is_written(
    tmp_path, name, options
):
    with pytest.raises(ValueError, match=f"{name} (has|holds) .*OPENAI_API_KEY") as caught:
        run_notebook("01_benchmark", {"model": "openai:toy", name: options}, tmp_path / "run")
    assert not any(canary in str(caught.value) for canary in CANARIES)
    assert not (tmp_path / "run").exists()


def test_a_stop_is_told_at_once_though_many_jobs_are_left(server, opened):
    server.per_second, server.retry_after = 20, {}
    began = time.monotonic()
    with pytest.raises(Stopped, match="the budget of 30 calls"):
        opened(max_calls=30, max_retries=5).generate([ask(str(k)) for k in range(2000)])
    assert time.monotonic() - began < 8


def test_what_a_run_ended_with_does_not_end_the_next(server, opened):
    model = opened(max_retries=0, concurrency=2)
    server.plan = lambda k, body: 500
    with pytest.raises(Gone):
        model.generate([ask(str(k)) for k in range(30)])
    first = len(server.chats())
    server.plan = lambda k, body: 500 if k == first else None
    assert sum(row[0].text is None for row in model.generate([ask(str(k)) for k in range(12)])) == 1


@pytest.mark.parametrize("patient", ["half \ud83d", "whole"])
def test_what_cannot_be_written_or_read_makes_one_reply_missing(server, opened, patient):
    server.message = {"content": "[Flu]"} if patient == "whole" else {}
    server.plan = lambda k, body: "digits" if patient_of(body) == "whole" else None
    bad, good = opened(max_retries=0).generate([ask(patient), ask("well")])
    assert bad[0].text is None and bad[0].missing and good[0].text


@pytest.mark.parametrize(
    "path",
    [
        "v1",
        "compatible-mode/v1",
        "openai/deployments/gpt-4o",
        "api/v1beta",
        "qwen2.5-7b/v1",
        "llama3",
    ],
)
def test_an_ordinary_address_is_shown_whole_so_that_its_replies_are_found_again(path: str) -> None:
    assert Address.of(f"http://host:8000/{path}").shown == f"host:8000/{path}"


@pytest.mark.parametrize("part", [CANARIES[2], "a1b2c3d4e5f6", "t-0123456789abcdef"])
def test_what_may_be_a_token_in_an_address_is_not(part: str) -> None:
    shown = Address.of(f"http://host/{part}/v1").shown
    assert part not in shown and shown == Address.of(f"http://host/{part}/v1").shown


def test_a_text_only_view_of_a_server_is_opened_again_without_asking_it(server, opened, tmp_path):
    seen = TextOnly(opened(provides=None), "toy-text")
    with CachedModelClosing(seen, tmp_path / "replies.sqlite") as cached:
        (row,) = cached.generate([ask()])
    calls = len(server.received)
    seen = TextOnly(opened(provides=None), "toy-text")
    with CachedModelClosing(seen, tmp_path / "replies.sqlite", offline=True) as cached:
        assert cached.provides == {"text"} and cached.lacks == {}
        assert cached.generate([ask()]) == [row] and len(server.received) == calls
