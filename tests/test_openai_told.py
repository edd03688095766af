"""What a server tells besides its replies, and how it wants to be asked: window, length of a
prompt, score of a chat, temperature, template options."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from each import each
from openai_server import TEMPLATE, VOCABULARY, Server, least, opening
from tiny_models import byte_tokenizer

import trustlab as tl
from trustlab.agents.medconf import MedConf, fits, reply_room
from trustlab.folder.saved import manifest
from trustlab.formatted import remark_lines
from trustlab.models.base import Abilities, Request
from trustlab.models.cache import (
    CachedModel,
    decode_abilities,
    export_cache,
    import_cache,
    request_keys,
    to_json,
)
from trustlab.models.openai_replies import prior_of
from trustlab.models.openai_wire import window_of
from trustlab.models.thought import NOT_SCORED
from trustlab.parsing.agents import read_flags, read_plan, read_ratings
from trustlab.parsing.medconf import read_evidence, read_profile, read_score
from trustlab.parsing.schemas import schema_of
from trustlab.records import Criterion, Reply
from trustlab.reporting import report
from trustlab.settings import Setup

ASKED = (("system", "You are a doctor."), ("user", "Cough?"))
PRIOR = (("system", "You are a doctor."), ("user", "Nothing."))
IN_MEMORY: dict[str, Any] = {"cache": ":memory:", "quiet": True}
EVERYTHING = frozenset({"logprobs", "distributions", "prior"})
ONE = (Criterion(1, "fever", "strong"),)
N_PROMPT = 38
"""Tokens of :data:`ASKED`: characters, and the template's."""


@pytest.fixture
def server(monkeypatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with Server() as running:
        yield running


@pytest.fixture
def opened(server) -> Iterator[Any]:
    with opening(server) as open_it:
        yield open_it


# Window and length of a prompt


def test_a_server_s_window_is_taken_from_its_list_and_replies_are_fitted_to_it(server, opened):
    server.window = N_PROMPT + 3
    model = opened()
    assert (model.window, model.count_tokens(ASKED)) == (N_PROMPT + 3, N_PROMPT)
    ((reply,),) = model.generate([Request(ASKED, max_tokens=64)])
    assert reply.finish == "length" and server.chats()[-1]["max_tokens"] == 3
    server.window = N_PROMPT + 8
    other = opened()
    assert other.window and other.generate([Request(ASKED, max_tokens=4)])[0][0].finish == "stop"


def test_a_prompt_longer_than_the_window_is_not_sent(server, opened):
    server.window = N_PROMPT
    model = opened()
    assert model.provides
    n_calls = len(server.chats())
    ((one, two),) = model.generate([Request(ASKED, n=2, temperature=0.5)])
    assert (
        one.missing == two.missing == f"the prompt is longer than the window of toy, {N_PROMPT}"
        " tokens"
    )
    assert len(server.chats()) == n_calls


def test_a_server_that_does_not_count_is_asked_as_it_is(server, opened):
    server.window, server.counts = N_PROMPT + 3, False
    model = opened()
    assert model.window == N_PROMPT + 3 and model.count_tokens(ASKED) is None
    ((reply,),) = model.generate([Request(ASKED, max_tokens=64)])
    assert "maximum context length" in str(reply.missing)


def test_short_prompts_are_not_counted(server, opened):
    server.window = 100_000
    model = opened()
    assert model.window == 100_000
    server.paths.clear()
    server.received.clear()
    model.generate([Request(ASKED, max_tokens=64)])
    assert server.paths == ["/v1/chat/completions"]


def test_a_window_of_ones_own_counts_before_the_server_s(server, opened):
    server.window = 1000
    assert opened(window=200).window == 200
    assert opened(window=200).revision != opened().revision
    with pytest.raises(ValueError, match="window must be at least 1, got 0"):
        opened(window=0)


@each(
    ("answer", "window"),
    [
        ({"data": [{"id": "toy", "max_model_len": 10}]}, 10),
        ({"data": [{"id": "other", "context_length": 20}]}, 20),
        ({"data": [{"id": "toy", "context_window": 5}, {"id": "b", "context_window": 9}]}, 5),
        ({"data": [{"id": "a", "max_model_len": 5}, {"id": "b", "max_model_len": 9}]}, None),
        ({"data": [{"id": "toy", "max_model_len": "10"}]}, None),
        ({"data": [{"id": "toy", "max_model_len": -10}]}, None),
        ({"data": [{"id": "toy", "max_model_len": True}]}, None),
        ({"data": ["toy", None]}, None),
        ({"data": None}, None),
        ([], None),
        (None, None),
    ],
)
def test_what_a_list_of_models_says_of_the_window(answer, window):
    assert window_of(answer, "toy") == (float("inf") if window is None else window)


def test_what_was_found_out_is_kept_so_that_a_replay_needs_no_server(server, opened, tmp_path):
    server.window, server.only_default, server.scores_chats = 300, True, True
    request = Request(ASKED, max_tokens=4)
    with opening(server) as open_it:
        cached = CachedModel(open_it(), tmp_path / "a.sqlite")
        assert reply_room(cached, 2048) == 75 and fits(cached, request)
        kept = cached.generate([request]), cached.abilities, cached.count_tokens(ASKED)
        cached.close()
    assert kept[1].window == 300 and kept[1].counts and not kept[1].temperature
    export_cache(tmp_path / "a.sqlite", tmp_path / "a.jsonl.gz")
    assert import_cache(tmp_path / "b.sqlite", tmp_path / "a.jsonl.gz")["new"] == 3
    n_calls = len(server.received)
    again = CachedModel(opened(), tmp_path / "b.sqlite", offline=True)
    assert reply_room(again, 2048) == 75 and fits(again, request)
    assert (again.generate([request]), again.abilities, again.count_tokens(ASKED)) == kept
    with pytest.raises(LookupError, match="how long a prompt is"):
        again.count_tokens(PRIOR)
    again.close()
    # Online, what is known is not found out again.
    more = CachedModel(opened(), tmp_path / "b.sqlite")
    assert more.window == 300 and len(server.received) == n_calls
    more.generate([Request(PRIOR, max_tokens=4)])
    assert "temperature" not in server.received[-1]


def test_a_file_from_before_windows_were_kept_has_none(server, opened, tmp_path):
    CachedModel(opened(), tmp_path / "a.sqlite").close()
    assert CachedModel(opened(), tmp_path / "a.sqlite", offline=True).window == float("inf")
    assert server.received == []


@each("more", [{"window": 0}, {"window": "9"}, {"counts": 1}, {"temperature": None}, {"other": 1}])
def test_abilities_that_cannot_be_are_refused(more):
    able = Abilities(frozenset({"text"}), {}, 9, True, False)
    assert decode_abilities(to_json(able)) == able
    with pytest.raises(ValueError):
        decode_abilities(to_json({"provides": ["text"], "lacks": {}} | more))


# The score of a chat


def test_a_chat_is_scored_in_the_server_s_own_template(server, opened):
    server.scores_chats = True
    model = opened()
    assert "prior" in model.provides and "answer.prior_logprobs" not in model.lacks
    request = Request(ASKED, max_tokens=8, want=EVERYTHING, prior_messages=PRIOR)
    ((reply,),) = model.generate([request])
    ((by_template,),) = opened(chat_template=TEMPLATE).generate([request])
    assert reply.trace.prior_logprobs.tolist() == by_template.trace.prior_logprobs.tolist()
    body = server.chats()[-2]
    assert body["continue_final_message"] and not body["add_generation_prompt"]
    assert body["messages"][-1] == {"role": "assistant", "content": reply.text}


def test_an_answer_behind_a_thought_has_no_prior(server, opened):
    server.scores_chats, server.message = True, {"reasoning": "It is the cough."}
    ((reply,),) = opened().generate([Request(ASKED, want=EVERYTHING, prior_messages=PRIOR)])
    assert reply.trace.prior_logprobs is None
    assert reply.trace.lacks == {"prior_logprobs": NOT_SCORED}


@each(
    ("scored", "tokens", "values"),
    [
        ([("a", -1.0), ("[", -2.0), (" flu", -3.0)], ["[", " flu"], [-2.0, -3.0]),
        ([("[", -2.0), ("flu", -3.0)], ["[", " flu"], [-2.0, -3.0]),  # a blank cut off
        ([("[", -2.0), ("gout", -3.0)], ["[", " flu"], None),
        ([("[", -2.0)], ["[", " flu"], None),
        ([None, ("flu", -3.0)], ["[", " flu"], None),
        ([("[", -2.0), ("\ufffd", -3.0)], ["[", " flu"], [-2.0, -3.0]),
        ([("[", -2.0), ("\ufffd", -3.0)], ["[", ""], [-2.0, -3.0]),
        ([("[", -9999.0), (" flu", -3.0)], ["[", " flu"], None),
        ([("[", float("nan")), (" flu", -3.0)], ["[", " flu"], None),
        ([("[", 0.5), (" flu", -3.0)], ["[", " flu"], None),
        ([("x", -1.0)], [], []),
    ],
)
def test_the_last_tokens_of_a_scored_chat_must_be_the_reply_s(scored, tokens, values):
    rows = [
        one and {"7": {"logprob": one[1], "decoded_token": one[0]}, "8": {"logprob": -0.1}}
        for one in scored
    ]
    found = prior_of({"prompt_logprobs": rows}, tokens)
    assert (None if found is None else found.tolist()) == values


def test_a_named_tokenizer_tells_the_size_of_the_vocabulary_and_counts(server, opened, tmp_path):
    tokenizer = byte_tokenizer()
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(tmp_path)
    model = opened(chat_template=str(tmp_path))
    assert model.vocabulary_size == len(tokenizer) and "answer.renyi" not in model.lacks
    n_bytes = len("system=You are a doctor.;user=Cough?;>")
    assert model.count_tokens(ASKED) == n_bytes
    assert (
        opened(chat_template=str(tmp_path), vocabulary_size=len(VOCABULARY)).vocabulary_size == 24
    )


def test_a_run_says_with_which_options_its_models_were_asked(server, opened):
    options = {"template_options": {"enable_thinking": False}, "thinking_tokens": 50}
    for given in ({}, options):
        setup = tl.opened(Setup(**IN_MEMORY))
        run = tl.benchmark(tl.load_cases("starter", n=1), [opened(**given)], "asp", [100], setup)
        assert manifest(run)["benchmark"]["model_options"] == ({"toy": given} if given else {})


# Temperature


def test_a_model_that_takes_only_its_own_temperature_is_asked_so_and_it_is_said(server, opened):
    server.only_default = True
    cases = tl.load_cases("starter", n=2)
    run = tl.benchmark(cases, [opened()], ["asp", "poc"], [100], Setup(samples=2, **IN_MEMORY))
    assert run.parameters["own_temperature"] == ["toy"]
    assert all(run.answers["missing"] == "")
    assert not any("temperature" in body for body in server.chats()[1:])
    (line,) = [told for told in remark_lines(run.parameters) if "temperature" in told]
    assert line.startswith("toy: asked at its own temperature")
    assert "- Decoding: greedy, but toy at the default temperature;" in report(run).text


def test_a_model_that_takes_no_temperature_of_0_is_asked_nearly_at_0_and_it_is_said(server, opened):
    server.no_zero = True
    cases = tl.load_cases("starter", n=2)
    run = tl.benchmark(cases, [opened()], ["asp", "poc"], [100], Setup(samples=2, **IN_MEMORY))
    assert run.parameters["nearly_greedy"] == ["toy"] and run.parameters["own_temperature"] == []
    assert all(run.answers["missing"] == "")
    told = [body["temperature"] for body in server.chats()[3:]]  # what a server takes is settled
    assert set(told) == {0.01, 0.5} and told.count(0.5) == 2
    (line,) = [told for told in remark_lines(run.parameters) if "temperature" in told]
    assert line == "toy: asked at temperature 0.01 in place of 0, which it does not take"
    found = Abilities(frozenset({"text"}), coldest=0.01)
    assert decode_abilities(to_json(found)) == found
    with pytest.raises(ValueError, match="temperature='default'"):  # not tried out
        opened(provides=["text"]).generate([Request(ASKED)])


def test_a_default_temperature_can_be_declared(server, opened):
    model = opened(temperature="default", provides=["text"])
    model.generate([Request(ASKED, max_tokens=4, temperature=0.5)])
    assert "temperature" not in server.received[0] and not model.abilities.temperature
    assert model.revision != opened(provides=["text"]).revision
    with pytest.raises(ValueError, match="temperature must be one of asked, default, got 0.5"):
        opened(temperature=0.5)


# Template options


def test_template_options_go_to_the_server_s_template(server, opened):
    options = {"enable_thinking": False, "reasoning_effort": "low"}
    server.scores_chats = True
    model = opened(template_options=options)
    model.generate([Request(ASKED, max_tokens=4, want=EVERYTHING, prior_messages=PRIOR)])
    for body in server.chats():
        assert body["chat_template_kwargs"] == {"enable_thinking": False}
        assert body["reasoning_effort"] == "low"
    assert len({opened(**o).revision for o in ({}, {"template_options": options})}) == 2


def test_template_options_reach_a_template_of_ones_own(server, opened):
    shown = TEMPLATE + "{{ 'no thought' if enable_thinking is false }}"
    model = opened(chat_template=shown, template_options={"enable_thinking": False})
    request = Request(ASKED, max_tokens=4, want=EVERYTHING, prior_messages=PRIOR)
    model.generate([request])
    prompts = [body["prompt"] for body in server.received if "prompt" in body]
    assert prompts[-1].startswith("system=You are a doctor.;user=Nothing.;>no thought")


@each(
    "options",
    [
        {"extra_body": {"temperature": 1}},
        {"extra_body": {"n": 3}},
        {"extra_body": {"max_tokens": 10}},
        {"extra_body": {"seed": 1}},
        {"extra_body": {"top_logprobs": 1}},
        {"extra_body": {"chat_template_kwargs": {}}, "template_options": {"date_string": "x"}},
        {"extra_body": ["top_k"]},
        {"extra_body": {"options": {"temperature": 0.1}}},
        {"extra_body": {"generation_config": '{"max_new_tokens": 5}'}},
        {"extra_body": {"guided_json": {}}},
        {"template_options": "enable_thinking"},
    ],
)
def test_an_extra_body_that_contradicts_the_run_is_refused(options, opened):
    with pytest.raises(ValueError, match="extra_body|template_options"):
        opened(**options)
    with pytest.raises(ValueError, match="extra_body|template_options"):
        tl.opened(Setup(model="openai:toy", model_options=options))


# Budgets


def test_every_budget_reaches_its_step():
    budgets: Any = {"profile": 500, "evidence": 900, "keyword": 9, "doctor": 700, "answer": 80}
    setup = tl.opened(Setup(budgets=budgets))
    procedure = setup.procedure
    assert (procedure.max_tokens_profile, procedure.max_tokens_evidence) == (500, 900)
    assert procedure.max_tokens_keyword == 9
    asked = setup.settings
    assert (asked.max_tokens_doctor, asked.max_tokens_answer) == (700, 80)
    assert tl.opened(Setup()).procedure == MedConf()


def test_room_for_thought_is_kept_in_the_window(server, opened):
    server.window = 200
    request = Request((("user", "x" * 140),), max_tokens=40)
    for thought, there in ((0, True), (100, False)):
        model = CachedModel(opened(thinking_tokens=thought), None)
        assert fits(model, request) is there


def test_a_budget_for_thought_reaches_the_models(server, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    setup = tl.opened(Setup(model="openai:toy", reviewer="openai:toy", budgets={"thinking": 100}))
    for model in (setup.models()[0], setup.role("reviewer")):
        model.generate([Request(ASKED, max_tokens=4)])
        assert server.received[-1]["max_tokens"] == 104
        model.close()  # pyright: ignore
    with pytest.raises(
        ValueError, match="a model is open already; open it with thinking_tokens=100"
    ):
        setup.with_(model=setup.models()[0])
    setup = setup.with_(model_options={"thinking_tokens": 7})
    setup.models()[0].generate([Request(ASKED, max_tokens=4)])
    assert server.received[-1]["max_tokens"] == 11


# Structured output

PLAN = Request(ASKED, max_tokens=64, schema=schema_of("plan"))


def test_replies_are_held_to_their_schemas_where_that_is_asked_for_and_the_server_does_it(
    server, opened
):
    server.holds = True
    plain, held = opened(), opened(structured=True)
    for model in (plain, held):
        run = tl.benchmark(
            tl.load_cases("starter", n=1), [model], "medconf", [100],
            Setup(medconf=MedConf(retrieval=False), **IN_MEMORY),
        )  # fmt: skip
        sent = [b["response_format"] for b in server.chats() if "response_format" in b]
        assert run.parameters["unstructured"] == []
        if model is plain:
            assert sent == [] and all(run.confidence["missing"] != "")
    steps = [told["json_schema"] for told in sent[1:]]  # after the trial
    options = MedConf(retrieval=False).options
    wanted = [schema_of(step, options, (1,)) for step in ("profile", "evidence")]
    assert [json.dumps(told["schema"]) for told in steps] == wanted
    assert all(told["strict"] for told in steps)
    assert run.confidence["confidence"].tolist() == [0.5]
    assert held.revision != plain.revision


@each("how", ["refused", "ignored"])
def test_a_server_that_holds_no_reply_to_a_schema_is_asked_in_words_and_it_is_said(
    how, server, opened
):
    server.received.clear()
    server.paths.clear()
    server.refuses = {"response_format"} if how == "refused" else set()
    model = opened(structured=True)
    run = tl.benchmark(
        tl.load_cases("starter", n=1), [model], "medconf", [100],
        Setup(**IN_MEMORY),
    )  # fmt: skip
    assert run.parameters["unstructured"] == ["toy"] and not model.abilities.structured
    assert sum("response_format" in body for body in server.chats()) == 2  # each form once
    (line,) = [told for told in remark_lines(run.parameters) if "schema" in told]
    assert line.startswith("toy: its server does not hold replies to a schema")
    assert decode_abilities(to_json(model.abilities)) == model.abilities


def test_llama_cpp_python_takes_a_schema_in_its_own_form(server, opened):
    server.holds = "json_object"
    model = opened(structured=True)
    assert model.abilities.structured and model.abilities.schema_form == "json_object"
    assert not model.abilities.unsure
    assert sum("response_format" in body for body in server.chats()) == 2  # each form once
    again = opened(structured=True)
    again.abilities = decode_abilities(to_json(model.abilities))
    for one in (model, again):
        server.received.clear()
        server.paths.clear()
        ((reply,),) = one.generate([PLAN])
        (body,) = server.chats()
        assert body["response_format"] == {"type": "json_object", "schema": json.loads(PLAN.schema)}
        assert read_plan(reply).tests


def test_a_schema_that_is_refused_amid_a_run_stops_it(server, opened):
    server.holds = True
    model = opened(structured=True)
    assert model.abilities.structured
    server.refuses = {"response_format"}
    with pytest.raises(ValueError, match="response_format.*without structured=True"):
        model.generate([PLAN])


def test_options_that_a_manifest_holds_have_no_key_and_can_be_written(opened):
    with pytest.raises(ValueError, match="which may carry a key"):
        opened(extra_body={"api_key": "abc"})
    assert json.dumps(opened(provides={"logprobs", "text"}).asked_with)


def test_a_schema_is_part_of_the_key_only_where_it_is_sent(server, opened):
    bare = replace(PLAN, schema=None)
    keys = [request_keys(r, "m", "1") for r in (bare, PLAN)]
    assert keys[0] != keys[1]
    cached = CachedModel(opened(), None)
    for request in (PLAN, bare):
        cached.generate([request])
    assert cached.calls_table()["n_cached"].tolist() == [0, 1]


@each(
    ("step", "off", "read"),
    [
        ("profile", "", lambda said: read_profile(said)[0].importance),
        ("profile", "importance", lambda said: read_profile(said, importance=False)[0].importance),
        ("evidence", "", lambda said: read_evidence(said, ONE, "x")[0][0].support_level),
        ("evidence", "structure", lambda said: read_score(said)[0]),
        ("plan", "", lambda said: len(read_plan(Reply(said)).prescriptions)),
        ("review_prescriptions", "", lambda said: read_ratings(Reply(said), 1, "")[0].verdict),
        ("review_tests", "", lambda said: read_flags(Reply(said), 1, "")[0].verdict),
    ],
)
def test_a_reply_that_fits_its_schema_is_read(step, off, read):
    schema = json.loads(str(schema_of(step, MedConf().options - {off}, (1,))))
    expected = {
        "review_prescriptions": "SAFE", "review_tests": "FINE", "plan": 1, "evidence": "supported",
    }  # fmt: skip
    expected["profile"] = None if off else "strong"
    expected["evidence"] = 50.0 if off else "supported"
    assert read(json.dumps(least(schema))) == expected[step]


def test_replies_that_are_no_json_have_no_schema():
    assert schema_of("diagnosis") is schema_of("keyword") is None
    assert schema_of("profile", MedConf(structure=False).options) is None
