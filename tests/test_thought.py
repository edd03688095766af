"""Thought told apart from the answer, the same in every backend; what is all thought is none."""

from __future__ import annotations

import numpy as np
import pytest
from each import each
from openai_server import Server, opening
from saying import saying
from tiny_models import byte_tokenizer, speaking

from trustlab.models.base import Request
from trustlab.models.cache import CachedModel
from trustlab.models.thought import MARKERS, apart, check_thinking, parts
from trustlab.parsing.reply import THINKING, THOUGHT, diagnosis_reply, no_answer
from trustlab.records import CUT, Reply, TokenTrace

WANT = frozenset({"logprobs", "distributions"})


@each(("opens", "closes"), MARKERS)
def test_every_family_s_markers_are_known(opens: str, closes: str) -> None:
    text = f"{opens}Maybe [flu], but no.{closes}\n\n[Cold]"
    told = apart(Reply(text))
    assert (told.text, told.reasoning) == ("[Cold]", "Maybe [flu], but no.")
    assert no_answer(apart(Reply(f"{opens}Maybe [flu], but", finish="length"))) == THINKING
    assert no_answer(apart(Reply(f"{opens}Maybe [flu].{closes}\n"))) == THOUGHT
    # A template has opened it already.
    assert apart(Reply(f"Maybe [flu].{closes}[Cold]")).text == "[Cold]"


CHANNELS = "<|channel|>analysis<|message|>a<|end|><|start|>assistant"
CHANNELS += "<|channel|>final<|message|>[Cold]<|return|>"


@each(
    ("text", "thought", "answer"),
    [
        ("[Cold]", None, "[Cold]"),
        ("<think></think>[Cold]", "", "[Cold]"),
        ("</think>[Cold]", "", "[Cold]"),
        ("Well. <think>a</think> [Cold]", "a", "[Cold]"),
        ("[Flu]<think>or not", "or not", ""),
        (CHANNELS, "a<|end|><|start|>assistant", "[Cold]<|return|>"),
        ("## Thinking\n\na\n\n## Final Response\n\n[Cold]", "a", "[Cold]"),
        ("## Thinking\na\n## Diagnosis\n[Cold]", None, None),
        ("<think>a</think>\n<answer>[Cold]</answer>\n", "a", "<answer>[Cold]</answer>"),
        ("a < b and c > d [Cold]", None, None),
    ],
)
def test_the_last_marker_decides(text: str, thought: str | None, answer: str | None) -> None:
    told = apart(Reply(text))
    assert (told.reasoning, told.text) == (thought, text if answer is None else answer)


def test_the_tokens_are_those_inside_the_answer_s_marks() -> None:
    tokens = ("<think>", "a", "</think>", "\n<answer>[", "Cold", "]</", "answer>", "\n")
    reply = Reply("".join(tokens), trace=TokenTrace(tokens, np.arange(8.0)))
    found = apart(reply, pieces=tokens, named=tokens)
    named = diagnosis_reply(found)
    assert (named.text, named.reasoning) == ("Cold", "a")
    assert named.trace is not None and named.trace.tokens == ("Cold",)
    assert named.trace.logprobs is not None and list(named.trace.logprobs) == [4]


def test_markers_of_ones_own_and_none() -> None:
    text = "((a)) [Cold]"
    assert apart(Reply(text), ["((", "))"]).text == "[Cold]"
    assert parts("<think>a</think>[Cold]", "none") == (None, 0, 22)
    for wrong in ("yes", ["<a>"], ["<a>", ""], 3):
        with pytest.raises(ValueError, match=saying("'auto'", "'none'", "two")):
            check_thinking(wrong, 0)  # pyright: ignore


ANSWER = (b"\n\n", b"[", b"Cold", b"]")
FORMS: dict[str, tuple[bytes, ...]] = {
    opens: (opens.encode(), b" Maybe [", b"flu], but", closes.encode(), *ANSWER)
    for opens, closes in MARKERS[:2]
} | {"opened by the template": (b"Maybe [", b"flu].", b"</think>", *ANSWER)}


def asked(server: Server, **options) -> Reply:
    with opening(server, provides=WANT) as open_it:
        cached = CachedModel(open_it(**options), None)
        return cached.generate([Request((("user", "Cough."),), max_tokens=64, want=WANT)])[0][0]


@each("form", list(FORMS))
def test_a_server_s_text_is_parted_and_only_the_answer_s_tokens_are_read(form: str) -> None:
    with Server(said=list(FORMS[form])) as server:
        reply = asked(server)
        assert reply.text == "[Cold]" and "Maybe [flu]" in str(reply.reasoning)
        assert reply.trace is not None and reply.trace.tokens == ("[", "Cold", "]")
        assert reply.trace.logprobs is not None and reply.trace.logprobs.tolist() == [-0.5] * 3
        server.logprobs = "null"
        assert asked(server).text == "[Cold]" and asked(server).trace is None
        server.logprobs, server.finish = "given", "length"
        server.said = list(FORMS[form][:2])
        told = form in dict(MARKERS)  # else nothing tells that this is thought, but it was cut
        assert no_answer(asked(server)) == (THINKING if told else CUT)


@each("name", ["reasoning", "reasoning_content"])
def test_a_server_s_own_field_is_thought(name: str) -> None:
    with Server(said=[b"[", b"Cold", b"]"], message={name: "Maybe [flu]."}) as server:
        reply = asked(server)
        assert (reply.text, reply.reasoning) == ("[Cold]", "Maybe [flu].")
        assert reply.trace is not None and reply.trace.tokens == ("[", "Cold", "]")
        server.finish, server.message = "length", {name: "Maybe [flu]", "content": None}
        assert no_answer(asked(server)) == THINKING
        server.finish = "stop"
        assert no_answer(asked(server)) == THOUGHT


@each(("opens", "closes"), [("<think>", "</think>"), ("<unused94>", "<unused95>")])
def test_a_model_answers_behind_its_thought(opens, closes, tmp_path, monkeypatch) -> None:
    tokenizer = byte_tokenizer()
    if opens == "<unused94>":  # as special tokens, which a text does not show
        tokenizer.add_special_tokens({"additional_special_tokens": [opens, closes]})
    ids = tokenizer(f"{opens}a [b]{closes}\n[c]", add_special_tokens=False)["input_ids"]
    with monkeypatch.context() as patch:
        model = speaking(tmp_path / "whole", tokenizer, ids, patch)
        request = Request((("user", "x"),), max_tokens=64, want=WANT)
        ((reply,),) = model.generate([request])
        assert (reply.text, reply.reasoning, reply.finish) == ("[c]", "a [b]", "stop")
        assert reply.trace is not None and "".join(reply.trace.tokens) == "[c]"
        assert reply.trace.logprobs is not None and len(reply.trace.logprobs) == 3
        assert reply.trace.entropies is not None and len(reply.trace.entropies) == 3
    with monkeypatch.context() as patch:
        model = speaking(tmp_path / "cut", tokenizer, ids, patch)
        ((reply,),) = model.generate([Request((("user", "x"),), max_tokens=8)])
        assert no_answer(reply) == THINKING
