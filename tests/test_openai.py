"""The OpenAI backend against a real HTTP server on the loopback interface: what it asks, what a
server gives and takes, and what is kept of that."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from each import each
from openai_server import VOCABULARY, Server, ask, cut, distribution, drawn, rendered
from saying import saying, says

import trustlab as tl
from trustlab.agents.medconf import MedConf, fits, reply_room
from trustlab.models.abilities import Abilities
from trustlab.models.base import Request
from trustlab.models.cache import CachedModel, decode_abilities, export_cache, import_cache, to_json
from trustlab.models.server.openai import OpenAIModel
from trustlab.models.server.openai_replies import NO_LOGPROBS
from trustlab.models.server.openai_wire import window_of
from trustlab.models.thought import NOT_SCORED
from trustlab.parsing.schemas import schema_of
from trustlab.runs.folder.saved import manifest
from trustlab.runs.formatted import remark_lines
from trustlab.settings import Setup

EVERYTHING = frozenset({"logprobs", "distributions", "prior"})
ASKED = (("system", "You are a doctor."), ("user", "Cough?"))
PRIOR = (("system", "You are a doctor."), ("user", "Well?"))
WHOLE = Request(ASKED, want=EVERYTHING, prior_messages=PRIOR)
IN_MEMORY: dict[str, Any] = {"cache": ":memory:", "quiet": True}
N_PROMPT = 38
"""Tokens of :data:`ASKED`: characters, and the template's."""


def prompt(messages: tuple[tuple[str, str], ...]) -> str:
    return rendered([{"role": role, "content": content} for role, content in messages])


def expected_logprobs(messages: Any, tokens: tuple[str, ...]) -> list[np.ndarray]:
    return [distribution(prompt(messages), "".join(tokens[:k]), k) for k in range(len(tokens))]


def benchmarked(models: list[Any], methods: Any, n: int = 1, **choices: Any) -> tl.Run:
    setup = Setup(**IN_MEMORY | choices)
    return tl.benchmark(tl.load_cases("starter", n=n), models, methods, [100], setup)


# Replies and their statistics


def test_a_greedy_reply_is_the_toys_own_with_its_log_probabilities_prior_and_bounds(server, opened):
    server.scores_chats = True
    model = opened(vocabulary_size=len(VOCABULARY))
    assert model.provides == {"text", *EVERYTHING} and model.lacks == {}
    wanted = replace(WHOLE, renyi_alpha=2.0, n_alternatives=3)
    ((reply,),) = model.generate([wanted])
    best = tuple(VOCABULARY[i] for i in drawn(prompt(ASKED), 8, 0.0, None))
    trace = reply.trace
    assert reply.text == "".join(best) and trace.tokens == best
    n_in = len(cut(prompt(ASKED)))
    assert (reply.finish, reply.n_tokens_in, reply.n_tokens_out) == ("stop", n_in, 4)
    whole, before = expected_logprobs(ASKED, best), expected_logprobs(PRIOR, best)
    ids = [VOCABULARY.index(token) for token in best]
    for found, rows in ((trace.logprobs, whole), (trace.prior_logprobs, before)):
        np.testing.assert_allclose(found, [row[i] for row, i in zip(rows, ids, strict=True)])
    body = server.chats()[-1]
    assert body["continue_final_message"] and not body["add_generation_prompt"]
    assert body["messages"][-1] == {"role": "assistant", "content": reply.text}
    p = np.exp(whole)
    distance = 2 / np.pi * np.arccos(np.sqrt(p / len(VOCABULARY)).sum(axis=1))
    assert (trace.entropies <= -(p * whole).sum(axis=1) + 1e-9).all()
    assert (trace.renyi >= np.log((p**2).sum(axis=1) * len(VOCABULARY)) - 1e-9).all()
    assert (trace.fisher_rao >= distance - 1e-9).all()
    # All but four of 24 tokens are listed, so the bounds are near.
    np.testing.assert_allclose(trace.entropies, -(p * whole).sum(axis=1), atol=0.05)
    assert trace.bounds == {"entropies": "lower", "renyi": "upper", "fisher_rao": "upper"}
    for row, listed in zip(whole, trace.alternatives, strict=True):
        assert [token for token, _ in listed] == [VOCABULARY[i] for i in np.argsort(-row)[:3]]


def test_samples_are_the_toys_own_draws_each_from_another_stream(server, opened):
    request, model = ask(n=6, temperature=1.0, seed=3), opened()
    (replies,) = model.generate([request])
    (sent,) = server.chats()
    assert (sent["n"], sent["temperature"], sent["max_tokens"]) == (6, 1.0, 8)
    ids = [drawn(prompt(request.messages), 8, 1.0, sent["seed"] + j) for j in range(6)]
    expected = ["".join(VOCABULARY[i] for i in row) for row in ids]
    assert [reply.text for reply in replies] == expected and len(set(expected)) > 3
    (later,) = model.generate([ask(n=2, temperature=1.0, seed=3, first=3)])
    assert later == replies[3:5]
    model.generate([ask(seed=0), ask(seed=1), ask("Fever?")])
    assert len({body["seed"] for body in server.chats()[-3:]}) == 3


def test_a_greedy_request_is_asked_once_however_many_replies_it_wants(server, opened):
    (replies,) = opened().generate([ask(n=3)])
    assert len(server.chats()) == 1 and len(replies) == 3 and replies[0] == replies[2]
    assert "n" not in server.chats()[0] and server.chats()[0]["temperature"] == 0


@each("how", ["ignored", "refused"])
def test_samples_are_the_same_where_a_server_gives_one_reply_a_call(how, server, opened):
    server.ignores_n, server.refuses = False, set()
    request = ask(n=4, temperature=1.0, want=frozenset({"logprobs"}))
    (together,) = opened().generate([request])
    server.ignores_n, server.refuses = how == "ignored", {"n"} if how == "refused" else set()
    model = opened()
    assert model.provides
    n_before = len(server.chats())
    (alone,) = model.generate([request])
    assert [reply.text for reply in alone] == [reply.text for reply in together]
    assert all(reply.trace and "".join(reply.trace.tokens) == reply.text for reply in alone)
    assert len(server.chats()) - n_before == 4  # remembered: n is not tried again
    if how == "ignored":  # what was not settled is noticed in each call
        (again,) = opened(provides=["logprobs"]).generate([request])
        assert [reply.text for reply in again] == [reply.text for reply in alone]
        assert len(server.chats()) - n_before == 8


def test_no_more_calls_are_in_flight_than_allowed_and_connections_are_used_again(server, opened):
    server.latency_s = 0.02
    opened(concurrency=3).generate([ask(str(k)) for k in range(12)])
    assert server.most_in_flight == len(server.connections) == 3


def test_it_works_inside_a_running_event_loop_and_after_it_was_closed(opened):
    model = opened()

    async def cell() -> str | None:
        return model.generate([ask()])[0][0].text

    told = asyncio.run(cell())
    model.close()
    model.close()
    assert told == model.generate([ask()])[0][0].text


def test_calls_and_tokens_are_counted(opened):
    model = opened()
    model.generate([ask(), ask(n=3, temperature=1.0)])
    counts = {"requests": 2, "retries": 0, "failures": 0, "n_tokens_out": 16, "probes": 0}
    assert model.usage == {**counts, "n_tokens_in": 2 * len(cut(prompt(ask().messages)))}


def test_the_revision_says_where_and_what_and_changes_with_what_decides_a_reply():
    def revision(**options: Any) -> str:
        return OpenAIModel("toy", **{"base_url": "http://host/v1", **options}).revision

    plain = revision()
    assert plain == "host/v1 toy 2d40f10a"  # part of every key: it never changes
    others: list[dict[str, Any]] = [
        {"extra_body": {"top_k": 0}}, {"vocabulary_size": 24}, {"n_top": 5}, {"window": 9},
        {"template_options": {"enable_thinking": False}}, {"temperature": "default"},
        {"structured": True}, {"thinking_tokens": 5}, {"without": ["seed"]},
    ]  # fmt: skip
    assert len({plain, *(revision(**options) for options in others)}) == 10
    assert revision(concurrency=1, max_calls=3, timeout_s=1.0) == plain


# What a server gives and takes


@each("how", ["null", "content null", "empty", "malformed"])
def test_a_server_that_gives_no_log_probabilities_gives_text(how, server, opened):
    server.logprobs = how
    model = opened()
    assert model.provides == {"text"}
    assert NO_LOGPROBS in model.lacks.values()
    ((reply,),) = model.generate([ask(want=frozenset({"logprobs"}))])
    assert reply.text is not None and reply.trace is None


def test_what_a_server_does_not_tell_is_lacking_with_its_reason(server, opened):
    model = opened()
    assert "prior" not in model.provides and "distributions" in model.provides
    assert "vocabulary_size" in model.lacks["answer.renyi"]
    assert "answer.entropies" not in model.lacks and "answer.prior_logprobs" in model.lacks
    ((reply,),) = model.generate([WHOLE])
    assert reply.trace is not None and "scored other" in reply.trace.lacks["prior_logprobs"]
    server.scores_chats, server.message = True, {"reasoning": "It is the cough."}
    ((reply,),) = opened().generate([WHOLE])
    assert reply.trace.lacks == {"prior_logprobs": NOT_SCORED}  # a thought tells what was said


WIDE = frozenset({"distributions"})


@each(
    ("refusal", "cure", "options", "sent"),
    [
        ({"refuses": {"logprobs"}}, "provides without logprobs", {"provides": []}, {}),
        ({"refuses": {"seed"}}, r"without=\['seed'\]", {"without": ["seed"]}, {}),
        ({"only_default": True}, "temperature='default'", {"temperature": "default"}, {}),
        ({"most_top": 5}, "a smaller n_top", {"n_top": 5}, {"top_logprobs": 5}),
        ({"limit": "max_completion_tokens"}, "limit='max_completion_tokens'",
         {"limit": "max_completion_tokens"}, {"max_completion_tokens": 8}),
        ({"system": False}, "one of limit, .* without",
         {"without": ["system"]}, {"messages": [
            {"role": "user", "content": "You are a doctor.\n\nCough?"}]}),
    ],
)  # fmt: skip
def test_a_refusal_before_the_first_case_stops_and_the_option_that_it_names_helps(
    refusal, cure, options, sent, opened
):
    """Nothing is spent: the first question is the last."""
    with Server(**refusal) as server:
        how = {"base_url": server.url, "max_retries": 0}
        words = f"'toy': HTTP [45]00: .*{cure}"
        with pytest.raises(RuntimeError, match=words):
            _ = opened(**how).provides
        assert len(server.received) == 1
        model = opened(**how | options)
        assert model.provides and model.usage["probes"] <= 6
        want = WIDE & model.provides
        ((reply,),) = model.generate([Request(ASKED, max_tokens=8, temperature=1.0, want=want)])
        assert reply.text and (reply.trace is None) == (not want)
        assert server.chats()[-1] | sent == server.chats()[-1]


def test_a_part_that_is_refused_amid_a_run_names_the_option(server, opened):
    """Nothing is left out by itself, and the option that is named helps."""
    server.refuses = {"response_format"}
    n_before, more = len(server.chats()), {"provides": ["logprobs"], "structured": True}
    model, form = opened(**more), schema_of("plan")
    want = frozenset({"logprobs"})
    request = Request(ASKED, max_tokens=8, temperature=0.5, schema=form, want=want)
    ((reply,),) = model.generate([request])
    assert len(server.chats()) == n_before + 1
    assert says(reply.missing, "HTTP 400", "Unsupported parameter", "structured=False")
    ((reply,),) = opened(**more | {"structured": False}).generate([request])
    assert reply.text


def test_what_a_server_takes_is_settled_by_six_calls_at_most_and_kept(server, opened, tmp_path):
    server.window, server.ignores_n, server.scores_chats = 4000, True, True
    model = opened(structured=True)
    able = CachedModel(model, tmp_path / "a.sqlite").abilities
    assert model.usage["probes"] == 6 and not able.several and not able.structured
    assert able.window == 4000 and able.counts and "prior" in able.provides
    n_calls = len(server.received)
    again = CachedModel(opened(structured=True), tmp_path / "a.sqlite")
    assert again.abilities == able
    again.generate([ask("a", n=2, temperature=1.0)])
    assert len(server.received) == n_calls + 2 and "n" not in server.received[-1]
    told = opened(provides=["logprobs"])  # nothing is tried out
    assert told.provides == {"text", "logprobs"} and len(server.received) == n_calls + 2


def test_what_was_found_out_travels_so_that_a_replay_needs_no_server(server, opened, tmp_path):
    server.window, server.scores_chats = 300, True
    request = Request(ASKED, max_tokens=4)
    cached = CachedModel(opened(), tmp_path / "a.sqlite")
    assert reply_room(cached, 2048) == 75 and fits(cached, request)
    kept = cached.generate([request]), cached.abilities, cached.count_tokens(ASKED)
    cached.close()
    assert kept[1].window == 300 and kept[1].counts
    export_cache(tmp_path / "a.sqlite", tmp_path / "a.jsonl.gz")
    assert import_cache(tmp_path / "b.sqlite", tmp_path / "a.jsonl.gz")["new"] == 3
    n_calls = len(server.received)
    again = CachedModel(opened(), tmp_path / "b.sqlite", offline=True)
    assert (again.generate([request]), again.abilities, again.count_tokens(ASKED)) == kept
    with pytest.raises(LookupError, match="how long"):
        again.count_tokens(PRIOR)
    again.close()
    # Online, what is known is not found out again.
    more = CachedModel(opened(), tmp_path / "b.sqlite")
    assert more.window == 300 and len(server.received) == n_calls


@each("failing", ["/tokenize", "scoring"])
def test_what_fails_in_passing_stops_and_is_no_lack(failing, server, opened, tmp_path):
    server.window, server.scores_chats = 4000, True

    def plan(k: int, body: dict) -> int | None:
        at = "scoring" if "prompt_logprobs" in body else server.paths[-1]
        return 503 if at == failing and not well else None

    server.plan, well = plan, False
    with pytest.raises(RuntimeError, match="HTTP 503 after 1 retry"):
        _ = CachedModel(opened(), tmp_path / "a.sqlite").abilities
    well = True
    able = CachedModel(opened(), tmp_path / "a.sqlite").abilities
    assert able.window == 4000 and able.counts and "prior" in able.provides


@each("more", [{"window": 0}, {"window": "9"}, {"counts": 1}, {"temperature": None}])
def test_abilities_that_cannot_be_are_refused(more):
    able = Abilities(frozenset({"text"}), {}, 9, True, False)
    assert decode_abilities(to_json(able)) == able
    of_older_version = json.loads(to_json(able)) | {"coldest": 0.01, "dialect": {"takes_n": False}}
    assert decode_abilities(to_json(of_older_version)) == able
    with pytest.raises(ValueError):
        decode_abilities(to_json({"provides": ["text"], "lacks": {}} | more))


# Window and length of a prompt


def test_replies_are_fitted_to_the_server_s_window_and_a_longer_prompt_is_not_sent(server, opened):
    server.window = N_PROMPT + 3
    model = opened()
    assert (model.window, model.count_tokens(ASKED)) == (N_PROMPT + 3, N_PROMPT)
    ((reply,),) = model.generate([Request(ASKED, max_tokens=64)])
    assert reply.finish == "length" and server.chats()[-1]["max_tokens"] == 3
    server.window = N_PROMPT
    model = opened()
    assert model.provides
    n_calls = len(server.chats())
    ((one, two),) = model.generate([Request(ASKED, n=2, temperature=0.5)])
    assert one.missing == two.missing and says(one.missing, "window", "toy", N_PROMPT)
    assert len(server.chats()) == n_calls
    assert opened(window=200).window == 200  # one's own counts before the server's


def test_where_nothing_is_counted_all_is_sent_and_short_prompts_are_not_counted(server, opened):
    server.window, server.counts = N_PROMPT + 3, False
    model = opened()
    assert model.window == N_PROMPT + 3 and model.count_tokens(ASKED) is None
    ((reply,),) = model.generate([Request(ASKED, max_tokens=64)])
    assert "maximum context length" in str(reply.missing)
    server.window, server.counts = 100_000, True
    model = opened()
    assert model.window == 100_000
    n_calls = len(server.paths)
    model.generate([Request(ASKED, max_tokens=64)])
    assert server.paths[n_calls:] == ["/v1/chat/completions"]


@each(
    ("answer", "window"),
    [
        ({"data": [{"id": "toy", "max_model_len": 10}]}, 10),
        ({"data": [{"id": "a", "max_model_len": 5}, {"id": "toy", "max_model_len": 9}]}, 9),
        ({"data": [{"id": "other", "max_model_len": 20}]}, None),
        ({"data": [{"id": "toy", "max_model_len": -10}]}, None),
        ({"data": [{"id": "toy", "max_model_len": True}]}, None),
        ([], None),
    ],
)
def test_what_a_list_of_models_says_of_the_window(answer, window):
    assert window_of(answer, "toy") == (float("inf") if window is None else window)


# Temperature, template options, budgets


def test_a_temperature_of_its_own_is_used_and_said(server, opened):
    server.only_default = True
    n_before = len(server.chats())
    run = benchmarked([opened(temperature="default")], ["asp", "poc"], n=2, samples=2)
    server.only_default = False
    assert run.answers["answer"].notna().any()
    assert {body.get("temperature") for body in server.chats()[n_before:]} == {None}
    (line,) = [told for told in remark_lines(run.parameters) if "temperature" in told]
    assert run.parameters["own_temperature"] == ["toy"]
    assert says(line, "toy", "own temperature")


def test_a_default_temperature_can_be_declared_and_template_options_are_sent(server, opened):
    options = {"enable_thinking": False, "reasoning_effort": "low"}
    model = opened(temperature="default", provides=["text"], template_options=options)
    model.generate([Request(ASKED, max_tokens=4, temperature=0.5)])
    (body,) = server.chats()
    assert "temperature" not in body and not model.abilities.temperature
    assert body["chat_template_kwargs"] == {"enable_thinking": False}
    assert body["reasoning_effort"] == "low"


def test_a_budget_for_thought_reaches_the_models_and_the_manifest(server, opened, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    setup = tl.opened(Setup(model="openai:toy", reviewer="openai:toy", budgets={"thinking": 100}))
    for model in (setup.models()[0], setup.role("reviewer")):
        model.generate([Request(ASKED, max_tokens=4)])
        assert server.received[-1]["max_tokens"] == 104
        model.close()  # pyright: ignore
    server.window = 200
    request = Request((("user", "x" * 140),), max_tokens=40)
    for thought, there in ((0, True), (100, False)):
        assert fits(CachedModel(opened(thinking_tokens=thought), None), request) is there
    given = {"template_options": {"enable_thinking": False}, "thinking_tokens": 50}
    model = opened(**given, provides={"logprobs", "text"})
    run = benchmarked([model], "asp", trial=False)
    given = given | {"provides": ["logprobs", "text"]}
    assert manifest(run)["benchmark"]["model_options"] == {"toy": given}


# Structured output


def test_replies_are_held_to_their_schemas_where_that_is_asked_for(server, opened):
    server.holds = True
    procedure = MedConf(retrieval=False)
    for structured in (False, True):
        how = {"medconf": procedure, "prompts": "chat"}  # what embedded was taught is held locally
        run = benchmarked([opened(structured=structured)], "medconf", **how)
        sent = [b["response_format"] for b in server.chats() if "response_format" in b]
        assert run.parameters["unstructured"] == []
        if not structured:
            assert sent == [] and all(run.confidence["missing"] != "")
    steps = [told["json_schema"] for told in sent[1:]]  # after the trial
    wanted = [schema_of(step, procedure.options, (1,)) for step in ("profile", "evidence")]
    assert [json.dumps(told["schema"]) for told in steps] == wanted
    assert all(told["strict"] for told in steps)
    assert run.confidence["confidence"].tolist() == [0.5]


@each("how", ["refused", "ignored"])
def test_a_server_that_holds_no_reply_to_a_schema_is_asked_in_words(how, server, opened):
    n_before = len(server.chats())
    server.refuses = {"response_format"} if how == "refused" else set()
    model = opened(structured=True)
    run = benchmarked([model], "ce")
    assert run.parameters["unstructured"] == ["toy"] and not model.abilities.structured
    sent = server.chats()[n_before:]
    assert sum("response_format" in body for body in sent) == 1
    (line,) = [told for told in remark_lines(run.parameters) if "schema" in told]
    assert says(line, "toy", "not", "schema")


# Options that are refused

KEYS = ("sk-abcdef77", "hf_abcdefgh77", "ghp_abcdefgh77", "AKIA0123456789ABCDEF",
        "Bearer abcdef77", "eyJhbGciOiJI.eyJzdWIi77", "glpat-abcdefgh77", "xai-abcdefgh77",
        "tier=fast&api_key=sesame77")  # fmt: skip
NAMES = ("token", "api-key", "hfToken", "x_auth", "client_secret", "pwd", "jwt", "signing_key",
         "key2", "api_key_2", "TOKEN1", "apikey3", "2nd_password")  # fmt: skip


@each(
    ("options", "message"),
    [
        ({"concurrency": 0}, ("concurrency", 1, 0)),
        ({"window": 0}, ("window", 1, 0)),
        ({"timeout_s": 0}, ("timeout_s", "above 0")),
        ({"temperature": 0.5}, ("temperature", "asked", "default", 0.5)),
        ({"limit": "tokens"}, ("limit", "max_tokens", "max_completion_tokens", "tokens")),
        ({"without": ["stream"]}, ("without", "seed, n, system", ["stream"])),
        ({"provides": ["wisdom"]}, ("provides", ["wisdom"])),
        ({"base_url": "localhost:8000"}, "http://HOST/PATH"),
        *(({"extra_body": body}, "extra_body") for body in (
            {"temperature": 1}, {"n": 3}, {"max_tokens": 10}, ["top_k"],
            {"options": {"temperature": 0.1}}, {"generation_config": '{"max_new_tokens": 5}'},
            {"sampling_params": {}}, {"parameters": "seed=3"}, {"options": {"num_ctx": 8192}},
        )),
        ({"template_options": "enable_thinking"}, "template_options"),
        ({"extra_body": {"chat_template_kwargs": {}}, "template_options": {"x": 1}}, "give one"),
        *(({"extra_body": {name: "open sesame 77"}}, "key") for name in NAMES),
        *(({"extra_body": {"user": value}}, "key") for value in KEYS),
        ({"extra_body": {KEYS[0]: 1}}, "key"),
        ({"extra_body": {"more": [["X-Api-Key", "open sesame 77"]]}}, "key"),
        ({"extra_body": {"more": [{"name": "token2", "value": "open sesame 77"}]}}, "key"),
        ({"extra_body": {"more": [[{"pwd": "sesame 77"}, {"b": 1}]]}}, "key"),
        ({"template_options": {"a": [{"b": KEYS[0]}]}}, "key"),
    ],
)  # fmt: skip
def test_options_that_contradict_a_run_or_look_like_a_key_are_refused(options, message, opened):
    with pytest.raises(ValueError, match=saying(message)) as caught:
        opened(**options)
    if message in ("key", "extra_body", "template_options"):
        with pytest.raises(ValueError, match=f"{message}|OPENAI_API_KEY") as again:
            tl.opened(Setup(model="openai:toy", model_options=options))
        told = f"{caught.value} {again.value}"
        assert "77" not in told and "ABCDEF" not in told
    names = {"ban_eos_token": True, "stop_token_ids": [1], "keyword": "x", "least_tokens": 5}
    values = {"user": "xai-grok-2-vision-1212", "stop": ["token", "n=3"], "of": [["a", "b"]]}
    opened(extra_body=names | values)


def test_prompts_that_a_server_cuts_are_said(server, opened, tmp_path):
    """More of a case is never as many tokens."""
    server.n_tokens = 9
    setup = Setup(**IN_MEMORY, samples=2, run_dir=str(tmp_path))
    for n_tokens in (9, None):
        server.n_tokens = n_tokens
        run = tl.benchmark(tl.load_cases("starter", n=2), [opened()], ["asp"], [20, 100], setup)
        lines = [line for line in remark_lines(run.parameters) if "cut prompts" in line]
        assert bool(lines) == (n_tokens == 9) and lines == [
            line for line in manifest(run)["warnings"] if "cut prompts" in line
        ]
    modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
    assert {"answers.csv", "replies.jsonl.gz", "run.json", "generations.jsonl.gz"} <= modes.keys()
    assert set(modes.values()) == {0o600}
