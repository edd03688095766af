"""Odd servers, a row a kind: what the reply gets, that the others lose nothing, what is said."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from each import each
from openai_server import KEY, Server, opening

import trustlab as tl
from trustlab.models import openai_wire
from trustlab.models.base import Request, Stopped
from trustlab.models.batch import BatchModel
from trustlab.models.cache import CachedModel, decode_abilities, encode_reply, to_json
from trustlab.models.openai_replies import CONTRADICTED, end_of
from trustlab.models.openai_wire import Address, Dialect, Outcome, error_in, key_for
from trustlab.parsing.reply import diagnosis_reply, no_answer
from trustlab.settings import Setup

WANT = frozenset({"logprobs", "distributions"})


@pytest.fixture
def server(monkeypatch) -> Iterator[Server]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")  # nobody is there
    with Server() as running:
        yield running


@pytest.fixture
def opened(server) -> Iterator[Any]:
    with opening(server, provides=WANT, max_retries=0) as open_it:
        yield open_it


def ask(patient: str, **options: Any) -> Request:
    return Request((("user", patient),), **{"max_tokens": 8, **options})


def bad(body: dict) -> bool:
    return body["messages"][-1]["content"] == "bad"


def on_first(change: Callable[[dict], Any]) -> Callable[[dict], dict]:
    """Changes the first choice in place, or puts another there."""

    def odd(answer: dict) -> dict:
        answer["choices"][0] = change(answer["choices"][0]) or answer["choices"][0]
        return answer

    return odd


def message(**fields: Any) -> Callable[[dict], dict]:
    return on_first(lambda choice: choice["message"].update(fields))


def ended(finish: Any) -> Callable[[dict], dict]:
    return on_first(lambda choice: choice.update(finish_reason=finish))


PARTS = [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}, "[", {"text": "Flu]"}]
FLU = {"content": "[Flu]"}
ONE: list[tuple[Callable[[dict], Any], str | None, str]] = [
    # what is odd of one choice, the text that it has then, part of why it has none
    (ended("MAX_TOKENS"), "", "ran out of tokens"),
    (ended({"type": "length", "length": 8}), "", "ran out of tokens"),
    (ended("FINISH_REASON_SAFETY"), None, "withheld"),
    (ended("insufficient_system_resource"), None, "broke the reply off"),
    (ended("flux"), None, "in a way nobody knows (finish 'flux')"),
    (message(content=[{"type": "text", "text": "[Flu]"}]), "[Flu]", ""),
    (message(content=PARTS), "[Flu]", ""),
    (message(content={"type": "output_text", "text": {"value": "[Flu]"}}), "[Flu]", ""),
    (message(content=[{"type": "refusal", "refusal": "No."}]), None, "refused: No."),
    (message(content=None, reasoning_content="It is [Flu]."), "", "thought, and gave no answer"),
    (message(content="", reasoning_details=[{"text": "Hm."}]), "", "thought, and gave no answer"),
    (message(content="[Fl\ud800u]"), "[Fl?u]", ""),
    (message(content="\u200b[Flu]\ufeff"), "\u200b[Flu]\ufeff", ""),
    (message(content=7), None, "no text"),
    (on_first(lambda choice: "nonsense"), None, "another form"),
    (on_first(lambda choice: {"index": 0}), None, "another form"),
    (on_first(lambda choice: {"error": {"message": "too busy"}}), None, "an error: "),
    (on_first(lambda choice: {"text": "[Flu]", "finish_reason": "eos"}), "[Flu]", ""),
]


@each(("odd", "text", "why"), ONE)
def test_one_odd_choice_of_three_takes_nothing_from_the_others(odd, text, why, server, opened):
    server.plan = lambda k, body: odd if bad(body) else None
    request = ask("bad", n=3, temperature=1.0, want=WANT)
    (first, *others), (good,) = opened().generate([request, ask("good")])
    assert why in no_answer(first) and (first.missing is None or len(first.missing) < 300)
    if text is None or text:
        assert first.text == text
    assert all(r.text and r.trace and r.missing is None for r in others) and good.text
    if first.missing is None:
        encode_reply(first)
    if text and first.missing is None and "?" not in text:
        assert diagnosis_reply(first).text == "Flu"


@each(
    ("end", "finish"),
    [
        *((end, "stop") for end in ("eos", "eos_token", "STOP", "end_turn", "COMPLETE")),
        *((end, "length") for end in ("max_output_tokens", "TOKEN_LIMIT", "MaxTokens", "length")),
        *((end, "withheld") for end in ("RECITATION", "contentFilter", "guardrail_intervened")),
        *((end, "broken") for end in ("ERROR_TOXIC", "abort", "tool_calls", "time_limit")),
        ("userStopped", "broken"), ("", ""), (None, ""), (1, ""), ("flux", "unknown"),
    ],
)  # fmt: skip
def test_an_end_is_known_in_any_spelling(end, finish):
    assert end_of(end) == finish


BUSY = {"message": "Rate limit exceeded", "code": 429}
POOR = {"message": "Insufficient credits", "code": 402}


@each(
    ("answer", "status"),
    [
        ({"error": BUSY}, 429),
        ({"error": "Rate limit exceeded", "choices": []}, 429),
        ([{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED"}}], 429),
        ({"object": "error", "message": "overloaded", "code": "503"}, 503),
        ({"detail": "Incorrect API key provided"}, 401),
        ({"errors": [{"message": "the model x does not exist"}]}, 404),
        ({"choices": [{"error": BUSY, "finish_reason": "error"}]}, 429),
        ({"choices": None, "error": {"type": "insufficient_quota"}}, 402),
        ({"base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}}, 402),
        ({"success": False, "msg": "who knows"}, 200),
        (b'data: {"error": {"code": 429, "message": "slow down"}}\n\n', 429),
        ({"error": None, "choices": [{"message": FLU}]}, None),
        ({"choices": [{"error": BUSY}, {"message": FLU}]}, None),
        ({"count": 3, "message": "ok"}, None),
    ],
)
def test_an_error_inside_a_200_is_one_of_its_kind_wherever_it_stands(answer, status, opened):
    content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    outcome = opened()._line._told(content)
    assert (outcome.answer is not None) == (status is None)
    assert outcome.status == (status or 200) and outcome.passing == (status in (429, 503, 200))
    assert error_in({"choices": "none"}) is None


@each(("error", "n_calls", "stopped"), [(BUSY, 3, ""), ("Sorry", 3, ""), (POOR, 1, "credits")])
def test_an_error_inside_a_200_is_tried_again_or_stops_the_run(
    error, n_calls, stopped, server, opened
):
    server.received.clear(), server.paths.clear()
    server.plan = lambda k, body: lambda answer: {"error": error}
    model = opened(max_retries=2)
    if stopped:
        with pytest.raises(Stopped, match=stopped):
            model.generate([ask("a")])
    else:
        ((reply,),) = model.generate([ask("a")])
        assert "inside HTTP 200 after 2 retries" in str(reply.missing)
    assert len(server.chats()) == n_calls


@each(
    ("odd", "text", "why"),
    [
        (lambda answer: b"\xef\xbb\xbf" + json.dumps(answer).encode(), True, ""),
        (lambda answer: json.dumps(answer).encode().replace(b"[", b"[\xff", 1), None, "not JSON"),
        (lambda answer: json.dumps(answer).encode()[:-9], None, "not JSON"),
        (lambda answer: b"[" * 100_000, None, "not JSON"),
        (lambda answer: b'data: {"choices": [{"delta": {"content": "["}}]}\n\n', None, "not JSON"),
        (lambda answer: b"null", None, "null"),
        (lambda answer: {**answer, "choices": {"0": 1}}, None, "another form"),
        (lambda answer: {**answer, "usage": {"prompt_tokens": "9" * 99}, "model": 7}, True, ""),
        (lambda answer: {**answer, "choices": answer["choices"][::-1]}, True, ""),
    ],
)
def test_an_odd_answer_is_read_or_missing_and_the_next_is_read(odd, text, why, server, opened):
    server.plan = lambda k, body: odd if bad(body) else None
    (first,), (good,) = opened().generate([ask("bad"), ask("good")])
    assert why in str(first.missing or "") and bool(first.text) == bool(text) and good.text


def test_bytes_that_are_no_utf_8_are_marked_and_choices_come_in_their_order(server, opened):
    model = opened()
    (usual,) = model.generate([ask("bad", n=3, temperature=1.0)])
    server.plan = lambda k, body: lambda answer: {**answer, "choices": answer["choices"][::-1]}
    assert model.generate([ask("bad", n=3, temperature=1.0)]) == [usual]
    server.message = {"content": "[Flu"}
    server.plan = lambda k, body: (
        lambda answer: json.dumps(answer).encode().replace(b"[Flu", b"[M\xe9n]")
    )
    assert model.generate([ask("bad")])[0][0].text == "[M\ufffdn]"


@each("own", [-0.9, -3.0])
def test_a_list_that_contradicts_the_chosen_token_gives_no_distribution(own, server, opened):
    def odd(choice: dict) -> None:
        for token in choice["logprobs"]["content"]:
            token["top_logprobs"] = [{"token": t, "logprob": -2.0} for t in "xyz"]
            if own == -3.0:  # listed, with another value
                token["top_logprobs"][0] = {"token": token["token"], "logprob": -0.1}
            token["logprob"] = own

    server.plan = lambda k, body: on_first(odd)
    ((reply,),) = opened(n_top=3).generate([ask("a", want=WANT)])
    assert reply.trace.entropies is reply.trace.alternatives is None
    assert reply.trace.lacks["entropies"] == CONTRADICTED and reply.trace.logprobs is not None


@each(
    ("told", "pieces"),
    [
        (["[M", "Ã©", "niÃ¨re]"], ["[M", "é", "nière]"]),  # GPT-2's alphabet
        (["\u2581[M", "<0xC3>", "<0xA9>", "nière]"], ["[M", "", "é", "nière]"]),  # SentencePiece's
    ],
)
def test_tokens_named_in_bytes_spell_the_reply(told, pieces, server, opened):
    listed = [{"token": t, "logprob": -0.5, "top_logprobs": []} for t in told]
    choice = {"message": {"content": "[Ménière]"}, "logprobs": {"content": listed}}
    server.plan = lambda k, body: on_first(lambda _: {**choice, "finish_reason": "stop"})
    ((reply,),) = opened().generate([ask("a", want=frozenset({"logprobs"}))])
    assert list(reply.trace.tokens) == pieces and reply.trace.logprobs is not None


SENT = {"seed": 1, "top_p": 1.0, "temperature": 0.5, "n": 2, "logprobs": True, "top_logprobs": 0}


@each(
    ("words", "gone"),
    [
        ("Extra inputs are not permitted: seed, top_p", {"takes_seed", "takes_top_p"}),
        (
            str([{"loc": ["body", "seed"]}, {"loc": ["body", "logprobs"]}]),
            {"takes_seed", "fewest_top"},
        ),
        ("seed is unknown. Supported parameters: temperature, top_p, n", {"takes_seed"}),
        ("`temperature` and `top_p` cannot both be specified", {"takes_top_p"}),
        ("maximum context length is 9; temperature", set()),
    ],
)
def test_all_that_a_refusal_names_is_left_out_at_once(words, gone):
    learned = Dialect().after(SENT, Outcome(status=422, named=words))
    assert set(learned.differing(Dialect())) == gone


def test_what_a_server_takes_is_settled_whole_by_twelve_calls_at_most_and_kept(server, tmp_path):
    server.refuses, server.most_top, server.window = {"seed", "top_p"}, 5, 4000
    server.ignores_n, server.scores_chats = True, True
    with opening(server) as open_it:
        model = open_it()
        with_cache = CachedModel(model, tmp_path / "a.sqlite")
        able = with_cache.abilities
        assert model.usage["probes"] <= 12 and able.dialect["most_top"] == 5
        assert able.window == 4000 and able.counts and "prior" in able.provides
        assert not able.dialect["takes_seed"] and not able.dialect["takes_top_p"]
        assert decode_abilities(to_json(able)) == able
        assert model.asked_with["server"] == able.dialect
        n_calls = len(server.received)
        again = CachedModel(open_it(), tmp_path / "a.sqlite")
        assert again.abilities == able
        again.generate([ask("a", temperature=1.0)])
        assert len(server.received) == n_calls + 1 and "seed" not in server.received[-1]


@each("failing", ["/tokenize", "scoring"])
def test_what_fails_in_passing_is_no_lack_for_good(failing, server, tmp_path):
    server.window, server.scores_chats = 4000, True

    def plan(k: int, body: dict) -> int | None:
        at = "scoring" if "prompt_logprobs" in body else server.paths[-1]
        return 503 if at == failing and not well else None

    server.plan, well = plan, False
    with opening(server, max_retries=1) as open_it:
        able = CachedModel(open_it(), tmp_path / "a.sqlite").abilities
        assert "HTTP 503" in able.unsure and not (able.counts and "prior" in able.provides)
        if failing == "scoring":
            assert able.lacks["answer.prior_logprobs"].startswith("not settled: HTTP 503")
        well = True
        able = CachedModel(open_it(), tmp_path / "a.sqlite").abilities
    assert able.window == 4000 and able.counts and "prior" in able.provides and not able.unsure


@each("words", ["body temperature 39 C was measured", "eats a poppy seed bagel daily"])
@each("status", [500, 400])
def test_words_of_the_prompt_are_no_refusal_of_parameters(words, status, server, opened):
    error = {"message": f"input was flagged: 'a man whose {words} and who coughs'"}
    server.plan = lambda k, body: lambda answer: {"error": error | {"code": status}}
    request = ask(f"This is a man whose {words} and who coughs", temperature=0.5)
    model = opened()
    ((reply,),) = model.generate([request])
    assert "flagged" in str(reply.missing) and "server" not in model.asked_with


def test_a_key_that_comes_in_parts_is_in_no_reply(server, opened):
    parts = [{"type": "text", "text": f"[{KEY[:5]}"}, {"type": "text", "text": f"{KEY[5:]}]"}]
    server.plan = lambda k, body: on_first(lambda c: c | {"message": {"content": parts}})
    ((reply,),) = opened().generate([ask("a")])
    assert (reply.text, reply.missing) == (None, openai_wire.ECHOED)


@each(
    "odd",
    [b"[" * 700 + b"]" * 700, b"event:" + b" " * 300_000, b'{"a": ' * 900 + b"1" + b"}" * 900],
)
def test_an_odd_body_raises_nothing_and_takes_no_time(odd, server, opened):
    server.plan = lambda k, body: (lambda answer: odd) if bad(body) else None
    (first,), (second,) = opened(timeout_s=5.0).generate([ask("bad"), ask("good")])
    assert first.text is None and first.missing and second.text


def test_a_pause_that_is_no_date_is_none():
    assert openai_wire.pause_of({"retry-after": "Mon, 01 Jan 2020 00:00:00 +99999999999999"}) == 0


@each("url", ["http://user:pa\u2100ss77@host/v1", "http://user:pass77/v1"])
def test_an_address_that_is_none_is_not_repeated(url):
    with pytest.raises(ValueError, match="base_url must be") as caught:
        Address.of(url)
    assert "77" not in str(caught.value)


def test_a_choice_that_is_left_out_is_asked_for_and_no_other_is_put_in_its_place(server, opened):
    def lose(answer: dict) -> dict:
        del answer["choices"][1]
        return answer

    request = ask("a", n=3, temperature=1.0)
    ((*whole,),) = opened().generate([request])
    server.plan = lambda k, body: lose if body.get("n") == 3 else None
    ((*mended,),) = opened().generate([request])
    assert [r.text for r in mended] == [r.text for r in whole]


def test_a_budget_of_calls_counts_those_that_are_tried_again(server, opened):
    server.plan = lambda k, body: 500
    with pytest.raises(Stopped, match="the budget of 2 calls is spent"):
        opened(max_retries=5, max_calls=2).generate([ask("a"), ask("b")])
    assert len(server.received) == 2


def test_a_batch_that_was_not_run_again_is_not_written_again(tmp_path):
    requests = [ask(str(k)) for k in range(2)]

    def run() -> int:
        model = BatchModel("toy", batch_dir=tmp_path)
        model.generate(requests)
        model.next_step()
        return model.waiting

    assert run() == 2
    first, second = (json.loads(line) for line in (tmp_path / "in-001.jsonl").open())
    body = {"choices": [{"message": FLU, "finish_reason": "stop"}]}
    rows = [(first, 200, body), (second, 500, {"error": {"message": "oops"}})]
    told = [
        {"custom_id": of["custom_id"], "response": {"status_code": status, "body": said}}
        for of, status, said in rows
    ]
    (tmp_path / "out-001.jsonl").write_text("\n".join(map(json.dumps, told)), "utf-8")
    for _ in range(4):  # in-002 waits for whoever runs it
        assert run() == 1 and not (tmp_path / "in-003.jsonl").exists()


@each("key", ["sk-one two", "sk-one\ntwo", "sk-\u200bone", "sk-schl\u00fcssel"])
def test_a_key_with_blanks_or_other_characters_is_refused_and_not_repeated(key, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(ValueError, match="OPENAI_API_KEY holds characters") as caught:
        key_for(Address.of("http://host/v1"))
    assert key[3:] not in str(caught.value) and key[:5] not in str(caught.value)
    monkeypatch.setenv("OPENAI_API_KEY", " sk-one\r\n")
    assert key_for(Address.of(" http://host/v1/chat/completions\n")) == "sk-one"


@each("kind", ["models", "tokenize", "chat"])
def test_no_answer_is_read_without_end(kind, server, opened, monkeypatch):
    monkeypatch.setattr(openai_wire, "MOST_BYTES", 160_000)
    server.window, endless = 200, b'{"data": [' + b" " * 200_000 + b"]}"
    if kind == "models":
        server.models = endless
    else:
        path = {"tokenize": "/tokenize", "chat": "/v1/chat/completions"}[kind]
        server.plan = lambda k, body: (lambda answer: endless) if server.paths[-1] == path else None
    outcome = opened()._line
    told = outcome.run(outcome.post(kind, {"model": "toy", "messages": [], "max_tokens": 1}))
    assert "has more than" in told.reason and not told.passing


@each(
    "options",
    [
        *({"extra_body": {name: "open sesame 77"}} for name in (
            "token", "api-key", "hfToken", "x_auth", "client_secret", "pwd", "jwt", "signing_key",
        )),
        *({"extra_body": {"user": value}} for value in (
            "sk-abcdef77", "hf_abcdefgh77", "ghp_abcdefgh77", "AKIA0123456789ABCDEF",
            "Bearer abcdef77", "eyJhbGciOiJI.eyJzdWIi77", "glpat-abcdefgh77",
        )),
        {"extra_body": "sk-abcdef77"},
        {"extra_body": {"sk-abcdef77": 1}},
        {"system_role": "sk-abcdef77"},
        {"template_options": {"a": [{"b": "sk-abcdef77"}]}},
    ],
)  # fmt: skip
def test_what_looks_like_a_key_is_refused_and_not_repeated(options, opened):
    for refuse in (opened, lambda **o: tl.opened(Setup(model="openai:toy", model_options=o))):
        with pytest.raises(ValueError, match=r"key|OPENAI_API_KEY") as caught:
            refuse(**options)
        assert "77" not in str(caught.value) and "ABCDEF" not in str(caught.value)


def test_names_of_tokens_that_are_none_are_no_keys(opened):
    opened(extra_body={"ban_eos_token": True, "stop_token_ids": [1], "top_k": 3, "keyword": "x"})


def test_what_a_cut_output_lacks_is_asked_again(tmp_path):
    requests = [ask(str(k)) for k in range(3)]

    def run() -> tuple[int, list[str | None]]:
        model = BatchModel("toy", batch_dir=tmp_path)
        rows = model.generate(requests)
        model.next_step()
        return model.waiting, [row[0].text for row in rows]

    assert run()[0] == 3
    told = [json.loads(line) for line in (tmp_path / "in-001.jsonl").open()]
    lines = [
        json.dumps({"custom_id": row["custom_id"], "response": {"status_code": 200, "body": body}})
        for row in told
        for body in [{"choices": [{"message": FLU, "finish_reason": "stop"}]}]
    ]
    (tmp_path / "out-001.jsonl").write_text("\ufeff" + "\n".join(lines)[:-20], "utf-8")
    for _ in range(2):  # written once
        n_waiting, texts = run()
        assert n_waiting == 1 and texts.count("[Flu]") == 2
    again = (tmp_path / "in-002.jsonl").read_text("utf-8").splitlines()
    assert len(again) == 1 and not (tmp_path / "in-003.jsonl").exists()
    (tmp_path / "out-002.jsonl").write_text(lines[2], "utf-8")
    assert run() == (0, ["[Flu]"] * 3)
