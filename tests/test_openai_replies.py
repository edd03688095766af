"""What a server's answer says: tokens that spell the text, statistics that line up with it, and
nothing else."""

from __future__ import annotations

import math

import pytest
from each import each

from trustlab.models.base import Request
from trustlab.models.openai_replies import Reply, pieces, prior_of, reply_of
from trustlab.models.openai_wire import MAX_WORDS, shortened, turns
from trustlab.parsing.reply import diagnosis_reply

EVERYTHING = frozenset({"logprobs", "distributions"})


def parts(*tokens: str | bytes) -> list[bytes]:
    return [token if isinstance(token, bytes) else token.encode() for token in tokens]


def read(text: str | None, tokens: list[dict] | None, n_top: int = 2, **request) -> Reply:
    """The reply of a body with one choice."""
    logprobs = None if tokens is None else {"content": tokens}
    body = {
        "choices": [{"message": {"content": text}, "finish_reason": "stop", "logprobs": logprobs}]
    }
    asked = Request((), want=EVERYTHING, **request)
    return reply_of(body["choices"][0], asked, (7, 5), n_top, None)


def said(
    token: str,
    logprob: float,
    top: list[tuple[str, float]] | None = None,
    raw: list[int] | None = None,
) -> dict:
    listed = [{"token": t, "logprob": p} for t, p in top or ()]
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
        (
            "[flu]",
            parts("Let me think of [flu].", "</think>", "\n\n", "[", "flu", "]"),
            (3, ["[", "flu", "]"]),
        ),
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
    listed = [said("[Sj", -1.0), said("bytes:\\xc3", -2.0)]
    listed += [said("?", -3.0, raw=[0xB6]), said("gren]", -4.0)]
    reply = diagnosis_reply(read("[Sjögren]", listed))
    assert reply.trace is not None and reply.trace.logprobs is not None
    assert (reply.text, reply.trace.tokens) == ("Sjögren", ("[Sj", "", "ö", "gren]"))
    assert reply.trace.logprobs.tolist() == [-1, -2, -3, -4]


@pytest.mark.parametrize("bad", [-9999.0, -math.inf, math.nan, 0.5, None, "much"])
def test_a_log_probability_that_is_not_told_leaves_none_for_the_reply(bad):
    reply = read("[flu]", [said("[", -0.1, [("[", -0.1)]), {**said("flu]", -0.2), "logprob": bad}])
    assert reply.text == "[flu]" and reply.trace is not None
    assert reply.trace.tokens == ("[", "flu]") and reply.trace.logprobs is None


def test_alternatives_come_best_first_with_the_chosen_token_among_them():
    listed = [said("flu", math.log(0.1), [("gout", math.log(0.3)), ("cold", math.log(0.5))])]
    trace = read("flu", listed).trace
    assert trace is not None and trace.alternatives is not None and trace.entropies is not None
    assert [token for token, _ in trace.alternatives[0]] == ["cold", "gout", "flu"]
    assert (
        trace.bounds == {"entropies": "lower"} and trace.renyi is None and trace.fisher_rao is None
    )
    # Known 0.5, 0.3, 0.1; the hidden tenth fits one token, since any up to 0.3 could be hidden.
    assert trace.entropies[0] == pytest.approx(-sum(p * math.log(p) for p in (0.5, 0.3, 0.1, 0.1)))
    fewer = read("flu", listed, n_alternatives=1).trace
    assert fewer is not None and fewer.alternatives == (
        (("cold", math.log(0.5)), ("flu", math.log(0.1))),
    )
    assert fewer.entropies is not None and fewer.entropies[0] == trace.entropies[0]


def test_the_chosen_token_is_called_as_in_the_trace_wherever_a_server_writes_it_otherwise():
    listed = [("Ġflu", -0.7), ("Ġgout", -0.7), ("Ġcold", -3.0)]
    reply = read(" flu", [said("Ġflu", -0.7, listed, raw=list(b" flu"))])
    assert reply.trace is not None and reply.trace.tokens == (" flu",)
    assert reply.trace.alternatives == (((" flu", -0.7), *listed[1:]),)


@pytest.mark.parametrize(
    ("n_top", "top"),
    [(3, [("flu", 0.5), ("cold", 0.1)]), (2, [("cold", 0.1), ("flu", 0.5)][::-1])],
    ids=["fewer listed than asked for", "as many as asked for"],
)
def test_the_rest_is_capped_by_the_last_listed_token_only_where_the_list_is_whole(n_top, top):
    trace = read(
        "flu", [said("flu", math.log(0.5), [(t, math.log(p)) for t, p in top])], n_top=n_top
    ).trace
    assert trace is not None and trace.entropies is not None
    hidden = [0.4] if n_top == 3 else [0.1] * 4
    assert trace.entropies[0] == pytest.approx(-sum(p * math.log(p) for p in (0.5, 0.1, *hidden)))


def test_a_chosen_token_at_the_end_of_the_list_may_have_been_put_there():
    trace = read(
        "flu", [said("flu", math.log(0.1), [("cold", math.log(0.5)), ("flu", math.log(0.1))])]
    ).trace
    assert trace is not None and trace.entropies is not None
    assert trace.entropies[0] == pytest.approx(-sum(p * math.log(p) for p in (0.5, 0.1, 0.4)))


def scored(tokens: list[str], n_made: int | None, finish: str = "length") -> dict:
    logprobs = {
        "tokens": tokens,
        "token_logprobs": [None, *(-float(k) for k in range(1, len(tokens)))],
    }
    usage = None if n_made is None else {"prompt_tokens": 3, "completion_tokens": n_made}
    return {"choices": [{"logprobs": logprobs, "finish_reason": finish}], "usage": usage}


@each(
    ("answer", "expected"),
    [
        (scored(["x", ">", "[", "flu]", "!"], 1), [-2, -3]),
        (scored(["x", ">", "[", "flu]"], 0), [-2, -3]),
        (scored(["x", ">", "[", "flu]", "!"], None), [-2, -3]),
        (scored(["x", ">", "[", "flu]"], 1, "stop"), [-2, -3]),
        (scored(["x", ">", "[", "flu]", "</s>"], 1, "stop"), [-2, -3]),
        (scored(["x", ">", "[f", "lu]", "!"], 1), None),
        (scored(["x", ">", "[", "flu]"], 1), None),
        (scored(["flu]"], 0), None),
    ],
)
def test_prior_log_probabilities_line_up_with_the_tokens_or_are_not_used(answer, expected):
    found = prior_of(answer, ("[", "flu]"))
    assert (None if found is None else found.tolist()) == expected


def test_a_reply_that_two_places_could_hold_is_not_scored():
    assert prior_of(scored(["x", "a", "a", "a"], None), ("a", "a")) is None


def test_system_messages_go_before_the_user_where_a_server_knows_no_system():
    asked = (("system", "You are a doctor."), ("user", "Cough."))
    told = (*asked, ("assistant", "[flu]"), ("user", "Sure?"))
    assert turns(told, "auto")[0] == {"role": "system", "content": "You are a doctor."}
    assert turns(told, "developer")[0]["role"] == "developer"
    assert [(t["role"], t["content"]) for t in turns(told, "user")] == [
        ("user", "You are a doctor.\n\nCough."),
        ("assistant", "[flu]"),
        ("user", "Sure?"),
    ]


def test_a_server_s_words_are_quoted_on_one_line_and_cut_where_they_are_long():
    assert shortened(" no such\n\n model\t") == "no such model"
    assert shortened("x" * MAX_WORDS) == "x" * MAX_WORDS
    assert shortened("x" * (MAX_WORDS + 1)) == "x" * (MAX_WORDS - 1) + "…"
