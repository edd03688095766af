"""The OpenAI backend against a real HTTP server on the loopback interface: replies, statistics,
dialects."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from openai_server import TEMPLATE, VOCABULARY, Server, cut, distribution, drawn, opening, rendered

from trustlab.models import open_model
from trustlab.models.base import Request
from trustlab.models.cache import CachedModel

EVERYTHING = frozenset({"logprobs", "distributions", "prior"})
ASKED = (("system", "You are a doctor."), ("user", "Cough?"))
PRIOR = (("system", "You are a doctor."), ("user", "Well?"))


@pytest.fixture
def server(monkeypatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with Server() as running:
        yield running


@pytest.fixture
def opened(server) -> Iterator:
    """Opens models of the server, and closes them at the end."""
    with opening(server) as open_it:
        yield open_it


def ask(patient: str = "Cough?", **options) -> Request:
    return Request((("user", patient),), **{"max_tokens": 8, **options})


def prompt(messages: tuple[tuple[str, str], ...]) -> str:
    return rendered([{"role": role, "content": content} for role, content in messages])


def expected_logprobs(
    messages: tuple[tuple[str, str], ...], tokens: tuple[str, ...]
) -> list[np.ndarray]:
    """The toy's whole distributions at each token, by its own rule."""
    return [distribution(prompt(messages), "".join(tokens[:k]), k) for k in range(len(tokens))]


def test_a_greedy_reply_is_the_toys_own_with_its_log_probabilities_prior_and_bounds(opened):
    model = opened(chat_template=TEMPLATE, vocabulary_size=len(VOCABULARY))
    assert model.provides == {"text", *EVERYTHING} and model.lacks == {}
    ((reply,),) = model.generate(
        [Request(ASKED, want=EVERYTHING, prior_messages=PRIOR, renyi_alpha=2.0, n_alternatives=3)]
    )
    best = tuple(VOCABULARY[i] for i in drawn(prompt(ASKED), 8, 0.0, None))
    trace = reply.trace
    assert reply.text == "".join(best) and trace.tokens == best
    assert (reply.finish, reply.n_tokens_in, reply.n_tokens_out) == (
        "stop",
        len(cut(prompt(ASKED))),
        4,
    )
    whole, before = expected_logprobs(ASKED, best), expected_logprobs(PRIOR, best)
    ids = [VOCABULARY.index(token) for token in best]
    np.testing.assert_allclose(trace.logprobs, [row[i] for row, i in zip(whole, ids, strict=True)])
    np.testing.assert_allclose(
        trace.prior_logprobs, [row[i] for row, i in zip(before, ids, strict=True)]
    )
    p = np.exp(whole)
    assert (trace.entropies <= -(p * whole).sum(axis=1) + 1e-9).all()
    assert (trace.renyi >= np.log((p**2).sum(axis=1) * len(VOCABULARY)) - 1e-9).all()
    assert (
        trace.fisher_rao >= 2 / np.pi * np.arccos(np.sqrt(p / len(VOCABULARY)).sum(axis=1)) - 1e-9
    ).all()
    # All but four of 24 tokens are listed, so the bounds are near.
    np.testing.assert_allclose(trace.entropies, -(p * whole).sum(axis=1), atol=0.05)
    assert trace.bounds == {"entropies": "lower", "renyi": "upper", "fisher_rao": "upper"}
    for row, listed in zip(whole, trace.alternatives, strict=True):
        assert [token for token, _ in listed] == [VOCABULARY[i] for i in np.argsort(-row)[:3]]


def test_samples_are_the_toys_own_draws_each_from_another_stream(server, opened):
    request = ask(n=6, temperature=1.0, seed=3)
    (replies,) = opened().generate([request])
    (sent,) = server.chats()
    assert (sent["n"], sent["temperature"], sent["top_p"], sent["max_tokens"]) == (6, 1.0, 1.0, 8)
    expected = [
        "".join(VOCABULARY[i] for i in drawn(prompt(request.messages), 8, 1.0, sent["seed"] + j))
        for j in range(6)
    ]
    assert [reply.text for reply in replies] == expected
    assert len(set(expected)) > 3
    assert all(reply.trace is None for reply in replies)


def test_seeds_differ_between_messages_and_between_seeds(server, opened):
    opened().generate([ask(seed=0), ask(seed=1), ask("Fever?")])
    assert len({body["seed"] for body in server.chats()}) == 3


@pytest.mark.parametrize("how", ["ignored", "refused", "never used"])
def test_samples_are_the_same_where_a_server_gives_one_reply_a_call(server, opened, how):
    request = ask(n=4, temperature=1.0, want=frozenset({"logprobs"}))
    (together,) = opened().generate([request])
    n_before = len(server.chats())
    server.ignores_n, server.refuses = how == "ignored", {"n"} if how == "refused" else set()
    model = opened(one_by_one=how == "never used")
    (alone,) = model.generate([request])
    assert [reply.text for reply in alone] == [reply.text for reply in together]
    assert all(reply.trace and "".join(reply.trace.tokens) == reply.text for reply in alone)
    n_first = len(server.chats()) - n_before
    assert n_first == {"ignored": 4, "refused": 5, "never used": 4}[how]
    model.generate([request])
    assert len(server.chats()) - n_before - n_first == 4  # remembered: n is not tried again
    assert all("n" not in body for body in server.chats()[-4:])


def test_later_replies_can_be_asked_for_alone(opened):
    model = opened()
    (replies,) = model.generate([ask(n=5, temperature=1.0)])
    (later,) = model.generate([ask(n=2, temperature=1.0, first=3)])
    assert later == replies[3:]


def test_a_greedy_request_is_asked_once_however_many_replies_it_wants(server, opened):
    (replies,) = opened().generate([ask(n=3)])
    assert len(server.chats()) == 1 and len(replies) == 3 and replies[0] == replies[2]
    assert "n" not in server.chats()[0] and server.chats()[0]["temperature"] == 0


def test_no_more_calls_are_in_flight_than_allowed_and_connections_are_used_again(server, opened):
    server.latency_s = 0.02
    opened(concurrency=3).generate([ask(str(k)) for k in range(12)])
    assert server.most_in_flight == 3
    assert len(server.connections) == 3


def test_it_works_inside_a_running_event_loop_as_in_a_notebook(opened):
    model = opened()

    async def cell() -> str | None:
        return model.generate([ask()])[0][0].text

    assert asyncio.run(cell()) == model.generate([ask()])[0][0].text


@pytest.mark.parametrize("how", ["null", "content null", "empty", "malformed"])
def test_a_server_that_gives_no_log_probabilities_gives_text(server, opened, how):
    server.logprobs = how
    model = opened(chat_template=TEMPLATE)
    assert model.provides == {"text"}
    assert set(model.lacks.values()) == {"the server tells no log-probabilities"}
    ((reply,),) = model.generate([ask(want=frozenset({"logprobs"}))])
    assert reply.text is not None and reply.trace is None


def test_tokens_that_do_not_spell_the_text_are_not_used(server, opened):
    server.content = "[something else]"
    ((reply,),) = opened().generate([ask(want=frozenset({"logprobs"}))])
    assert (reply.text, reply.missing) == ("[something else]", None)
    assert reply.trace is not None and reply.trace.logprobs is reply.trace.entropies is None
    assert reply.trace.lacks["logprobs"] == "the server's tokens do not spell the reply"


def test_log_probabilities_alone_are_asked_for_with_an_empty_list(server, opened):
    server.logprobs = "none without top"  # as llama.cpp does
    ((reply,),) = opened().generate([ask(want=frozenset({"logprobs"}))])
    assert reply.trace is not None and reply.trace.entropies is None
    assert server.chats()[0]["top_logprobs"] == 0


@pytest.mark.parametrize(
    ("refused", "gone"),
    [({"logprobs"}, {"logprobs", "top_logprobs"}), ({"seed"}, {"seed"}), ({"top_p"}, {"top_p"})],
)
@pytest.mark.parametrize("status", [400, 422])
def test_what_a_server_refuses_by_name_is_left_out_and_remembered(
    server, opened, refused, gone, status
):
    server.refuses, server.refuses_in = refused, status
    model = opened(max_retries=0)
    request = ask(temperature=1.0, want=frozenset({"logprobs"}))
    ((reply,),) = model.generate([request])
    assert reply.text is not None and (reply.trace is None) == ("logprobs" in refused)
    n_calls = len(server.chats())
    assert gone.isdisjoint(server.chats()[-1])
    model.generate([request])
    assert len(server.chats()) == n_calls + 1


def test_a_shorter_list_of_alternatives_is_asked_for_where_the_server_has_a_limit(server, opened):
    server.most_top = 5
    model = opened()
    assert "distributions" in model.provides
    ((reply,),) = model.generate([ask(want=frozenset({"distributions"}), n_alternatives=8)])
    assert server.chats()[-1]["top_logprobs"] == 5
    assert reply.trace is not None and {len(row) for row in reply.trace.alternatives or ()} == {5}


def test_a_server_that_wants_another_name_for_the_limit_gets_it(server, opened):
    server.limit = "max_completion_tokens"
    model = opened()
    replies = model.generate([ask(), ask("Fever?")])
    assert all(row[0].text for row in replies)
    model.generate([ask("Rash?")])
    assert (
        "max_tokens" not in server.chats()[-1] and server.chats()[-1]["max_completion_tokens"] == 8
    )


def test_a_refused_temperature_is_never_left_out(server, opened):
    server.refuses = {"temperature"}
    why = "'temperature' is not supported.*give temperature='default'"
    with pytest.raises(ValueError, match=why):
        opened(provides=["text"], concurrency=1).generate([ask(temperature=0.5)] * 3)
    assert len(server.chats()) == 1


def test_a_refused_system_message_goes_before_the_users(server, opened):
    server.system = False
    ((reply,),) = opened(max_retries=0).generate([Request(ASKED, max_tokens=8)])
    assert reply.text is not None
    assert server.chats()[-1]["messages"] == [
        {"role": "user", "content": "You are a doctor.\n\nCough?"}
    ]


def test_scoring_needs_a_template_and_a_server_that_echoes(server, opened):
    bare = opened()
    assert "prior" not in bare.provides and "chat_template" in bare.lacks["answer.prior_logprobs"]
    ((reply,),) = bare.generate([Request(ASKED, want=EVERYTHING, prior_messages=PRIOR)])
    assert reply.trace is not None and "scored other" in reply.trace.lacks["prior_logprobs"]
    server.echoes = False
    mute = opened(chat_template=TEMPLATE)
    assert "prior" not in mute.provides and "echo" in mute.lacks["answer.prior_logprobs"]


def test_a_template_can_be_a_tokenizers(opened, tmp_path):
    tokenizers, transformers = (
        pytest.importorskip("tokenizers"),
        pytest.importorskip("transformers"),
    )
    core = tokenizers.Tokenizer(tokenizers.models.WordLevel({"<s>": 0}, unk_token="<s>"))
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=core, bos_token="<s>")
    tokenizer.chat_template = "{{ bos_token }}" + TEMPLATE
    tokenizer.save_pretrained(tmp_path)
    request = Request(ASKED, want=EVERYTHING, prior_messages=PRIOR)
    # The server puts its own begin-of-text token before the text.
    replies = [opened(chat_template=t).generate([request])[0][0] for t in (TEMPLATE, str(tmp_path))]
    assert replies[0].trace.prior_logprobs.tolist() == replies[1].trace.prior_logprobs.tolist()
    with pytest.raises(FileNotFoundError, match="neither a Jinja template nor a tokenizer"):
        opened(chat_template=str(tmp_path / "nowhere" / "at" / "all"))
    with pytest.raises(ValueError, match="chat template fails"):
        opened(chat_template="{{ raise_exception('no') }}")


def test_a_server_that_has_no_size_of_vocabulary_to_tell_gives_no_distances(opened):
    model = opened()
    assert "distributions" in model.provides and "answer.entropies" not in model.lacks
    assert (
        "vocabulary_size" in model.lacks["answer.renyi"]
        and "vocabulary_size" in model.lacks["answer.fisher_rao"]
    )


def test_what_a_server_gives_is_tried_out_once_or_told(server, opened, capsys):
    model = opened(chat_template=TEMPLATE)
    assert model.usage["requests"] == 0
    assert model.provides == model.provides
    calls = model.usage["probes"], model.usage["requests"], len(server.received)
    assert calls == (4, 4, 3)  # one is a GET
    assert "gives distributions, logprobs, prior, text" in capsys.readouterr().err
    told = opened(provides=["logprobs"])
    assert told.provides == {"text", "logprobs"} and len(server.received) == 3


def test_extra_fields_go_into_every_chat_call(server, opened):
    opened(extra_body={"repeat_penalty": 1.0, "top_k": 0}).generate([ask()])
    assert server.chats()[0]["repeat_penalty"] == 1.0 and server.chats()[0]["top_k"] == 0


def test_the_revision_says_where_and_what_and_changes_with_what_decides_a_reply(opened, server):
    host = server.url.removeprefix("http://")
    plain = opened()
    assert plain.revision.startswith(f"{host} toy ")
    assert opened(base_url=f"http://me:secret@{host}/").revision == plain.revision
    others = [
        {"extra_body": {"top_k": 0}},
        {"vocabulary_size": 24},
        {"chat_template": TEMPLATE},
        {"n_top": 5},
    ]
    assert len({plain.revision, *(opened(**options).revision for options in others)}) == 5
    assert opened(concurrency=1, max_calls=3, timeout_s=1.0).revision == plain.revision


def test_it_is_opened_by_name_with_the_address_from_the_environment(server, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    with open_model("openai:toy") as model:  # pyright: ignore[reportGeneralTypeIssues]
        assert model.name == "toy" and CachedModel(model, None).provides == {
            "text",
            "logprobs",
            "distributions",
        }
        assert model.generate([]) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"concurrency": 0}, "concurrency must be at least 1, got 0"),
        ({"timeout_s": 0}, "timeout_s must be above 0"),
        ({"system_role": "boss"}, "auto, system, developer, user, got 'boss'"),
        ({"provides": ["wisdom"]}, r"got \['wisdom'\]"),
        ({"base_url": "localhost:8000"}, "http://HOST/PATH"),
        ({"vocabulary_size": 1}, "vocabulary_size must be at least 2, got 1"),
    ],
)
def test_options_out_of_range_are_refused(opened, options, message):
    with pytest.raises(ValueError, match=message):
        opened(**options)


def test_calls_and_tokens_are_counted(server, opened):
    server.fingerprint = "fp_1"
    model = opened()
    model.generate([ask(), ask(n=3, temperature=1.0)])
    n_in = len(cut(prompt(ask().messages)))
    assert model.usage == {
        "requests": 2, "retries": 0, "failures": 0, "n_tokens_in": 2 * n_in, "n_tokens_out": 16,
        "probes": 0, "fingerprint fp_1": 2,
    }  # fmt: skip


def test_a_closed_model_opens_again(opened):
    model = opened()
    first = model.generate([ask()])
    model.close()
    model.close()
    assert model.generate([ask()]) == first


def test_a_program_that_forgets_to_close_ends_without_a_warning(server):
    program = (
        "from trustlab.models.openai import OpenAIModel; from trustlab.models.base import Request\n"
        f"print(OpenAIModel('toy', base_url={server.url!r})"
        ".generate([Request((('user', 'a'),))])[0][0].text)"
    )
    command = [sys.executable, "-W", "default", "-c", program]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[1],
        timeout=120,
        check=True,
    )
    assert done.stdout.startswith("[") and done.stderr == ""
