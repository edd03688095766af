"""What a server's answer says, a row a kind: tokens that spell the text, statistics that line up
with it, and odd replies that take nothing from the others."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from each import each
from openai_server import ask
from saying import says

from trustlab.models.base import Request
from trustlab.models.cache import encode_reply
from trustlab.models.server import openai_wire
from trustlab.models.server.openai_replies import (
    ALL_ZERO,
    CONTRADICTED,
    NOT_ALL,
    NOT_NUMBERS,
    NOT_SPELT,
    OVER_ONE,
    Reply,
    choices_of,
    pieces,
    prior_of,
    reply_of,
)
from trustlab.models.server.openai_wire import Dialect, turns
from trustlab.parsing.reply import THOUGHT, diagnosis_reply, no_answer

WANT = frozenset({"logprobs", "distributions"})
OPENED = {"provides": WANT, "max_retries": 0}

# One choice, read alone


def parts(*tokens: str | bytes) -> list[bytes]:
    return [token if isinstance(token, bytes) else token.encode() for token in tokens]


def read(text: str | None, tokens: list[dict] | None, n_top: int = 2, **request) -> Reply:
    """The reply of a body with one choice."""
    logprobs = None if tokens is None else {"content": tokens}
    choice = {"message": {"content": text}, "finish_reason": "stop", "logprobs": logprobs}
    return reply_of(choice, Request((), want=WANT, **request), (7, 5), n_top, None)


def said(token: str, logprob: float, top: Any = (), raw: list[int] | None = None) -> dict:
    listed = [{"token": t, "logprob": p} for t, p in top]
    return {"token": token, "logprob": logprob, "bytes": raw, "top_logprobs": listed}


@each(
    ("text", "tokens", "expected"),
    [
        ("[flu]", parts("[", "flu", "]"), (0, ["[", "flu", "]"])),
        ("[flu]", parts("[", "flu", "]", "<|im_end|>"), (0, ["[", "flu", "]"])),
        ("[flu]", parts("[", "flu", "]", "", "\n", "</s>"), (0, ["[", "flu", "]"])),
        ("[flu]", parts("[", "flu", "]\n"), (0, ["[", "flu", "]"])),
        ("flu", parts(" ", " flu"), (1, ["flu"])),
        ("flu ", parts(" flu", " "), (0, ["flu", " "])),
        ("[flu]", parts("On [flu].", "</think>", "\n", "[", "flu", "]"), (3, ["[", "flu", "]"])),
        ("Sjögren", parts("Sj", b"\xc3", b"\xb6", "gren"), (0, ["Sj", "", "ö", "gren"])),
        ("a</s>", parts("a", "</s>"), (0, ["a", "</s>"])),
        ("", parts("<|im_end|>"), (0, [])),
        ("[flu]", parts("[", "cold", "]"), None),
        ("[flu]", parts("[", "flu", "]", "more"), None),
        ("Sjögren", parts("Sj", "\ufffd", "\ufffd", "gren"), None),
    ],
)
def test_tokens_are_cut_to_spell_the_text_or_are_not_used(text, tokens, expected):
    assert pieces(text, tokens) == expected


def test_bytes_decide_where_tokens_are_parts_of_a_character():
    listed = [said("[Sj", -1.0), said("bytes:\\xc3", -2.0, raw=[0xC3])]
    listed += [said("?", -3.0, raw=[0xB6]), said("gren]", -4.0)]
    reply = diagnosis_reply(read("[Sjögren]", listed))
    assert reply.trace is not None and reply.trace.logprobs is not None
    assert (reply.text, reply.trace.tokens) == ("Sjögren", ("[Sj", "", "ö", "gren]"))
    assert reply.trace.logprobs.tolist() == [-1, -2, -3, -4]


def test_tokens_that_do_not_spell_the_reply_as_they_stand_are_not_used():
    named = ["[M", "Ã©", "niÃ¨re]"]  # GPT-2's alphabet of bytes
    trace = read("[Ménière]", [said(token, -0.5) for token in named]).trace
    assert trace is not None and trace.tokens == ("[Ménière]",)
    assert trace.lacks["logprobs"] == NOT_SPELT and trace.logprobs is trace.entropies is None


@each(
    ("bad", "why"),
    [
        *((bad, NOT_ALL) for bad in (-9999.0, None, -math.inf)),
        *((bad, NOT_NUMBERS) for bad in (math.nan, 0.5)),
        (0.0, ALL_ZERO),
    ],
)
def test_a_log_probability_that_is_not_told_leaves_none_for_the_reply(bad, why):
    other = 0.0 if why == ALL_ZERO else -0.1
    told = said("flu]", -0.2) | {"logprob": bad}
    reply = read("[flu]", [said("[", other, [("[", other)]), told])
    assert reply.text == "[flu]" and reply.trace is not None
    assert reply.trace.tokens == ("[", "flu]") and reply.trace.logprobs is None
    assert reply.trace.lacks["logprobs"] == why


def test_alternatives_come_best_first_with_the_chosen_token_among_them():
    listed = [said("flu", math.log(0.1), [("gout", math.log(0.3)), ("cold", math.log(0.5))])]
    trace = read("flu", listed).trace
    assert trace is not None and trace.alternatives is not None and trace.entropies is not None
    assert [token for token, _ in trace.alternatives[0]] == ["cold", "gout", "flu"]
    assert trace.bounds == {"entropies": "lower"} and trace.renyi is trace.fisher_rao is None
    # Known 0.5, 0.3, 0.1; the hidden tenth fits one token, since any up to 0.3 could be hidden.
    assert trace.entropies[0] == pytest.approx(-sum(p * math.log(p) for p in (0.5, 0.3, 0.1, 0.1)))
    fewer = read("flu", listed, n_alternatives=1).trace
    best = ("cold", math.log(0.5)), ("flu", math.log(0.1))
    assert fewer is not None and fewer.alternatives == (best,)
    assert fewer.entropies is not None and fewer.entropies[0] == trace.entropies[0]


@each(
    ("n_tokens", "certainty"), [(3, -math.log(0.5 * 0.3 * 0.2 * 27) / 3), (4, None), (None, None)]
)
def test_self_certainty_is_there_where_the_whole_vocabulary_is_listed(n_tokens, certainty):
    top = [(token, math.log(p)) for token, p in (("flu", 0.5), ("cold", 0.3), ("gout", 0.2))]
    listed = {"content": [said("flu", math.log(0.5), top)]}
    choice = {"message": {"content": "flu"}, "finish_reason": "stop", "logprobs": listed}
    trace = reply_of(choice, Request((), want=WANT), (7, 1), 3, n_tokens).trace
    assert trace is not None
    found = None if trace.certainty is None else trace.certainty[0]
    assert found == (None if certainty is None else pytest.approx(certainty))


def test_the_chosen_token_is_called_as_in_the_trace_wherever_a_server_writes_it_otherwise():
    listed = [("Ġflu", -0.8), ("Ġgout", -0.8), ("Ġcold", -3.0)]
    reply = read(" flu", [said("Ġflu", -0.8, listed, raw=list(b" flu"))])
    assert reply.trace is not None and reply.trace.tokens == (" flu",)
    assert reply.trace.alternatives == (((" flu", -0.8), *listed[1:]),)


@each(
    ("n_top", "top", "hidden"),
    [
        (3, [("flu", 0.5), ("cold", 0.1)], [0.4]),  # fewer listed than asked for: no cap
        (2, [("flu", 0.5), ("cold", 0.1)], [0.1] * 4),
        (2, [("gout", 0.5), ("flu", 0.1)], [0.4]),  # the chosen one may have been put at the end
    ],
)
def test_the_last_listed_token_caps_the_rest_only_where_the_list_is_whole(n_top, top, hidden):
    listed = [(t, math.log(p)) for t, p in top]
    trace = read("flu", [said("flu", dict(listed)["flu"], listed)], n_top=n_top).trace
    assert trace is not None and trace.entropies is not None
    expected = -sum(p * math.log(p) for p in (0.5, 0.1, *hidden))
    assert trace.entropies[0] == pytest.approx(expected)


@each(
    ("own", "listed"),
    [
        (-0.9, [("x", -2.0), ("y", -2.0), ("z", -2.0)]),  # it is likelier, and not there
        (-3.0, [("flu", -0.1), ("y", -2.0), ("z", -2.0)]),  # it is there, with another value
    ],
)
def test_a_list_that_contradicts_the_chosen_token_gives_no_distribution(own, listed):
    trace = read("flu", [said("flu", own, listed)], n_top=3).trace
    assert trace is not None and trace.entropies is trace.alternatives is None
    assert trace.lacks["entropies"] == CONTRADICTED and trace.logprobs is not None


@each("listed", [[("flu", 0.6), ("cold", 0.5)], [("flu", 0.9), ("cold", 0.9)]])
def test_alternatives_that_cannot_all_be_so_likely_give_no_distribution(listed):
    top = [(token, math.log(p)) for token, p in listed]
    trace = read("flu", [said("flu", top[0][1], top)]).trace
    assert trace is not None and trace.entropies is trace.alternatives is None
    assert trace.lacks["alternatives"] == trace.lacks["entropies"] == OVER_ONE


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


def test_system_messages_go_before_the_user_where_a_server_knows_no_system():
    asked = (("system", "You are a doctor."), ("user", "Cough."))
    told = (*asked, ("assistant", "[flu]"), ("user", "Sure?"))
    assert turns(told, Dialect())[0] == {"role": "system", "content": "You are a doctor."}
    in_user = Dialect(without=frozenset({"system"}))
    merged = [(t["role"], t["content"]) for t in turns(told, in_user)]
    assert merged == [("user", "You are a doctor.\n\nCough."), *told[2:]]


@each(
    ("indices", "are_numbered"),
    [
        ([0], True), ([0, 1, 2], True), ([], True), ([2, 0, 1], False), ([0, 2], False),
        ([0, 0], False), ([None, None], False), ([{}, "x"], False),
    ],
)  # fmt: skip
def test_choices_that_are_not_numbered_in_order_are_none(indices, are_numbered):
    choices = [{"index": index} for index in indices]
    assert choices_of({"choices": choices}) == (choices if are_numbered else None)
    assert choices_of({"choices": {"0": 1}}) is None


# Odd servers


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


FLU = {"content": "[Flu]"}
ONE: list[tuple[Callable[[dict], Any], str | None, str]] = [
    # what is odd of one choice, the text that it has then, part of why it has none
    (ended(None), None, "(finish 'None')"),
    (ended("flux"), None, "(finish 'flux')"),
    (message(content=[{"type": "text", "text": "[Flu]"}]), None, "message.content"),
    (message(content="[Flu]", reasoning=[{"type": "text", "text": "Hm."}]), None, "reasoning"),
    (message(content=None, reasoning_content="It is [Flu]."), "", THOUGHT),
    (message(content="", reasoning="Hm."), "", THOUGHT),
    (message(content="[Flu]", reasoning_details=[{"data": "gAAAA"}]), "[Flu]", ""),
    (message(content="\u200b[Flu]\ufeff"), "\u200b[Flu]\ufeff", ""),
    (on_first(lambda choice: choice | {"error": {"code": 502}}), None, "cannot be read: "),
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
    if text and first.missing is None:
        assert diagnosis_reply(first).text == "Flu"


BUSY = {"message": "Rate limit exceeded", "code": 429}


@each(
    ("answer", "is_one"),
    [
        ({"error": "Rate limit exceeded", "choices": []}, False),
        ({"error": BUSY, "choices": [{"message": FLU, "finish_reason": "error"}]}, False),
        ({"error": None, "choices": [{"message": FLU}]}, True),
        ({"error": {}, "choices": [{"message": FLU}]}, True),
    ],
)
def test_an_error_inside_a_200_is_no_answer(answer, is_one, opened):
    outcome = opened()._line._outcome_of(json.dumps(answer).encode())
    assert (outcome.answer is not None) == is_one
    assert outcome.status == 200 and outcome.may_pass_later == (not is_one)


def test_an_error_inside_a_200_is_tried_again_and_then_missing(server, opened):
    """Its code is no status: 402 alone would stop the run."""
    error = {"message": "Insufficient credits", "code": 402}
    server.plan = lambda k, body: lambda answer: {"error": error}
    ((reply,),) = opened(max_retries=1).generate([ask("a")])
    assert says(reply.missing, "HTTP 200", "1 retry", "Insufficient credits")
    assert len(server.chats()) == 2


@each("choices", [[], None, "gone", {}, [{"error": BUSY, "message": {"content": ""}}]])
def test_an_answer_without_a_choice_is_missing_and_settles_nothing(choices, server, opened):
    """With the server's words, and without the rest of the run."""
    blocked = {"choices": choices, "prompt_filter_results": "Blocked by a filter"}
    server.plan = lambda k, body: (lambda answer: blocked) if bad(body) else None
    (first,), (good,) = opened().generate([ask("bad"), ask("good", want=WANT)])
    assert first.text is None and first.finish == "error" and good.text and good.trace
    assert ("Blocked" if not isinstance(choices, list) or not choices else "Rate") in str(
        first.missing
    )
    server.plan = lambda k, body: lambda answer: blocked
    with pytest.raises(RuntimeError):  # nothing is taken for a server that gives text alone
        _ = opened(provides=None).provides


@each(
    ("odd", "text", "why"),
    [
        (lambda answer: b"\xef\xbb\xbf" + json.dumps(answer).encode(), True, ""),
        (
            lambda answer: json.dumps(answer).encode().replace(b"[", b"\\ud800[", 2),
            None,
            "not a JSON",
        ),
        (lambda answer: json.dumps(answer).encode().replace(b"[", b"[\xff", 1), None, "not a JSON"),
        (lambda answer: json.dumps(answer).encode()[:-9], None, "not a JSON"),
        (lambda answer: b"[" * 100_000, None, "not a JSON"),
        (lambda answer: {**answer, "choices": {"0": 1}}, None, "another form"),
        (lambda answer: {**answer, "usage": {"prompt_tokens": "9" * 99}, "model": 7}, True, ""),
    ],
)
def test_an_odd_answer_is_read_or_missing_and_the_next_is_read(odd, text, why, server, opened):
    server.plan = lambda k, body: odd if bad(body) else None
    (first,), (good,) = opened().generate([ask("bad"), ask("good")])
    assert why in str(first.missing or "") and bool(first.text) == bool(text) and good.text


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
    assert "has more than" in told.reason and not told.may_pass_later
