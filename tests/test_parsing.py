"""What replies say, by the rules written in trustlab.parsing."""

from __future__ import annotations

import numpy as np
import pytest
from each import each
from hypothesis import given
from hypothesis import strategies as st

from trustlab.parsing.reply import THINKING, THOUGHT, diagnosis, diagnosis_reply, is_placeholder
from trustlab.parsing.scores import (
    NO_GUESSES,
    NO_SCORE,
    guesses,
    probe_reply,
    score_0_100,
    true_or_false,
)
from trustlab.records import CUT, NO_DIAGNOSIS, NO_VERDICT, Reply, TokenTrace

DIAGNOSES = {
    "[Flu]": "Flu",
    "The diagnosis is [Acute otitis media].": "Acute otitis media",
    "[  Pulmonary embolism \t]": "Pulmonary embolism",
    "[Flu] or rather [Croup]": "Croup",
    "**[Flu]**": "Flu",
    "[Flu](https://example.org)": "Flu",
    "[Pneumonia] as described in [1].": "Pneumonia",
    "[1] [2]": None,
    "[Type 2 diabetes]": "Type 2 diabetes",
    "[HIV (initial infection)]": "HIV (initial infection)",
    "[85]": None,
    "[1e5]": None,
    "[nan]": None,
    "[-3.5]": None,
    "[???]": None,
    "[]": None,
    "[   ]": None,
    "": None,
    "Flu": "Flu",
    "Flu?": None,
    "[Flu": None,
    "Flu]": None,
    "]Flu[": None,
    "(Flu)": None,
    "[Influenza [type A]]": None,
    "[Flu] [Influenza [type A]]": "Flu",
    "[[Flu]]": "Flu",
    "[[Flu] [Croup]]": None,
    "[Flu or [Croup]": "Croup",
    "[Flu\nor Croup]": None,
    "[Flu\r\nor [Croup]]": "Croup",
    "[Flu\u2028]": None,
    "[Flu\n[Croup]": "Croup",
    "[" + "a" * 200 + "]": "a" * 200,
    "[" + " " * 300 + "Flu]": "Flu",
    "[" + "a" * 201 + "]": None,
    "[Flu] [" + "a" * 201 + "]": "Flu",
    "[Guillain-Barré-Syndrom]": "Guillain-Barré-Syndrom",
    "[インフルエンザ]": "インフルエンザ",
    "[\u00a0Flu\u00a0]": "Flu",
    "[Flu]]]": "Flu",
}


@each(("text", "name"), DIAGNOSES.items())
def test_diagnosis(text: str, name: str | None) -> None:
    span = diagnosis(text)
    assert (None if span is None else span.text) == name
    if span is not None:
        assert text[span.start : span.stop] == name


SCORES = {
    "[85]": 85,
    "[0]": 0,
    "[100]": 100,
    "[ 72.5 ]": 72.5,
    "[85%]": 85,
    "[85 %]": 85,
    "[85]%": 85,
    "I give it a confidence of [85].": 85,
    "[Flu] fits well: [40]": 40,
    "The [type 2 diabetes] is sure. [90]": 90,
    "[[85]]": 85,
    "[0.85]": 0.85,
    "[085]": 85,
    "85": None,
    "85%": None,
    "(85)": None,
    "<<85>>": None,
    "[101]": None,
    "[100.01]": None,
    "[-5]": None,
    "[\u22125]": None,
    "[+5]": None,
    "[150] [85]": None,
    "[80] [85]": None,
    "[80] [80]": None,
    "[80-85]": None,
    "[85/100]": None,
    "[85]/100": None,
    "[8] out of 10": None,
    "[8] of [10]": None,
    "8 out of [10]": None,
    "85/[100]": None,
    "[85 out of 100]": None,
    "[eighty-five]": None,
    "[1e2]": None,
    "[.5]": None,
    "[85.]": None,
    "[85,5]": None,
    "[1,000]": None,
    "[٨٥]": None,
    "[%]": None,
    "[nan]": None,
    "[inf]": None,
    "[8[5]]": None,
    "[85": None,
    "[8\n5]": None,
    "[" + "9" * 5000 + "]": None,
    "": None,
}


@each(("text", "score"), SCORES.items())
def test_score(text: str, score: float | None) -> None:
    assert score_0_100(text, reading="strict") == score
    in_chat = {"85": 85, "85%": 85, "<<85>>": 85, "[85/100]": 85, "[85]/100": 85}
    assert score_0_100(text) == in_chat.get(text, score)


JUDGEMENTS = {
    "True": True,
    "false": False,
    " TRUE.\n": True,
    '"False"': False,
    "[True]": True,
    "**True**": True,
    "\u201ctrue\u201d.": True,
    "True, because of the fever": None,
    "not true": None,
    "True or False": None,
    "true false": None,
    "untrue": None,
    "Yes": None,
    "1": None,
    "": None,
    "...": None,
}


@each(("text", "verdict"), JUDGEMENTS.items())
def test_true_or_false(text: str, verdict: bool | None) -> None:
    assert true_or_false(text) is verdict


FIVE = "G1: [80] G2: [85] G3: [90] G4: [75] G5: [80]"
READ = (80, 85, 90, 75, 80)
GUESSES = {
    FIVE: READ,
    FIVE.replace(" G", "\nG"): READ,
    FIVE.replace(" G", ", G"): READ,
    FIVE.replace("]", "%]"): READ,
    FIVE.replace("G", "**G").replace(":", ":**"): READ,
    FIVE.replace("G", "**G").replace(":", "**:"): READ,
    FIVE.replace(": ", ":"): READ,
    FIVE.replace(": ", " :\n"): READ,
    FIVE.replace("[", "[[").replace("]", "]]"): READ,
    "My guesses of [type 2 diabetes]: " + FIVE + ". That is all [Flu].": READ,
    "G1: [0] G2: [100] G3: [72.5] G4: [ 50 ] G5: [0.5]": (0, 100, 72.5, 50, 0.5),
    "G1: [80] G2: [85] G3: [90] G4: [75]": None,
    FIVE + " G6: [80]": None,
    FIVE + " G5: [80]": None,
    FIVE + " " + FIVE: None,
    FIVE + " mean [82]": None,
    FIVE + " out of 100": None,
    "[80] " + FIVE: None,
    "G1: [number] " + FIVE: None,
    FIVE.replace("G3", "G2"): None,
    FIVE.replace("G4", "G04"): None,
    FIVE.replace("G1", "G0"): None,
    "G2: [85] G1: [80] G3: [90] G4: [75] G5: [80]": None,
    FIVE.replace("G", "g"): None,
    FIVE.replace("G1", "AG1"): None,
    FIVE.replace(":", ""): None,
    FIVE.replace("[90]", "90"): None,
    FIVE.replace("[90]", "<<90>>"): None,
    FIVE.replace("[90]", "[101]"): None,
    FIVE.replace("[90]", "[-90]"): None,
    FIVE.replace("[90]", "[85-90]"): None,
    FIVE.replace("[90]", "[90] [91]"): None,
    FIVE.replace("[90]", "[9]/10"): None,
    FIVE.replace("[90]", "[ninety]"): None,
    FIVE.replace("[90]", "[]"): None,
    FIVE.replace("[90]", "about [90]"): None,
    FIVE.replace("[90]", "95 [90]"): None,
    FIVE.replace("[90]", "[Flu] [90]"): None,
    FIVE.replace("[90]", "[[95] x] [90]"): None,
    FIVE.replace("G3: ", ""): None,
    FIVE.removesuffix("]"): None,
    "[80] [85] [90] [75]": None,
    "[80]": None,
    "": None,
}


@each(("text", "scores"), GUESSES.items())
def test_guesses(text: str, scores: tuple[float, ...] | None) -> None:
    assert guesses(text, reading="strict") == scores
    in_chat = [FIVE.replace("[90]", other) for other in ("90", "<<90>>")]
    assert guesses(text) == (READ if text in in_chat else scores)


def test_guesses_of_another_number() -> None:
    assert guesses("G1: [80] G2: [85]", n=2) == (80, 85)
    assert guesses("G1: [80]", n=2) is None
    assert guesses(FIVE, n=4) is None
    assert guesses(" ".join(f"G{k}: [{k}]" for k in range(1, 13)), n=12) == tuple(range(1, 13))


@given(
    st.lists(st.integers(0, 100), min_size=1, max_size=7), st.text(alphabet=",.; \n", max_size=5)
)
def test_five_guesses_are_read_and_no_other_number_of_them(scores: list[int], between: str) -> None:
    text = between.join(f"G{k}: [{score}]" for k, score in enumerate(scores, 1))
    assert guesses(text) == (tuple(scores) if len(scores) == 5 else None)
    assert guesses(text, n=len(scores)) == tuple(scores)


def test_nothing_said_is_nothing_read() -> None:
    assert (diagnosis(None), score_0_100(None), true_or_false(None), guesses(None)) == (
        None,
        None,
        None,
        None,
    )


@each(
    ("probe", "words", "text", "why"),
    [
        ("ce", "[85]", "85.0", None),
        ("ce", "[0.1]", "0.1", None),
        ("cot_ce", "It fits. [66.666666666666671]", "66.66666666666667", None),
        ("topk_ce", FIVE, "80.0 85.0 90.0 75.0 80.0", None),
        ("p_true", "false.", "False", None),
        ("ce", "[7]", None, NO_SCORE),  # the patient's own number
        ("cot_ce", "", None, NO_SCORE),
        ("topk_ce", "[80]", None, NO_GUESSES),
        ("p_true", "perhaps", None, NO_VERDICT),
        ("p_true", None, None, "no reply"),
    ],
)
def test_a_reply_about_an_answer_is_what_it_says_beside_its_words(
    probe: str, words: str | None, text: str | None, why: str | None
) -> None:
    found = probe_reply(probe, "I said [7].", Reply(words, n_tokens_out=3))
    assert found == Reply(text, n_tokens_out=3, missing=why, raw=words)


def test_a_reply_about_an_answer_that_is_none_keeps_its_words() -> None:
    cut, spent = Reply("[85]", finish="length"), Reply("", reasoning="Hm.", finish="length")
    for came, why in ((cut, CUT), (spent, THINKING), (Reply("", reasoning="Hm."), THOUGHT)):
        found = probe_reply("ce", None, came)
        assert (found.text, found.raw, found.missing) == (None, came.text, why)
    refused = Reply(None, missing="refused", finish="error")
    assert probe_reply("ce", None, refused) == refused


@given(st.floats(0, 100))
def test_a_score_is_read_without_loss(score: float) -> None:
    found = probe_reply("ce", None, Reply(f"[{score:.20f}]"))
    assert float(str(found.text)) == float(f"{score:.20f}")


TRICKY = st.text(alphabet="[]\n 0159.%-/aFéG:\u2028of", max_size=60) | st.text(max_size=60)


@given(TRICKY)
def test_any_text_is_read_or_refused(text: str) -> None:
    span, score, verdict = diagnosis(text), score_0_100(text), true_or_false(text)
    if span is not None:
        assert text[span.start : span.stop] == span.text == span.text.strip()
        assert (
            1 <= len(span.text) <= 200
            and not set(span.text) & set("[]\n")
            and any(c.isalpha() for c in span.text)
        )
    assert score is None or 0 <= score <= 100
    assert verdict in (None, True, False)
    found = guesses(text, n=1)
    assert found is None or (len(found) == 1 and 0 <= found[0] <= 100)


@given(
    st.from_regex(r"[A-Za-z][a-z ]{0,40}[a-z]", fullmatch=True),
    st.integers(0, 100),
    st.text(alphabet="abc .\n(", max_size=20),
)
def test_what_was_asked_for_is_read(name: str, score: int, words: str) -> None:
    if name not in ("nan", "inf") and not is_placeholder(name):
        span = diagnosis(f"{words}[{name}]{words}")
        assert span is not None and span.text == name
    assert score_0_100(f"{words}[{score}]{words}") == score


@each(
    "piece",
    [
        "[",
        "]",
        "[]",
        "[[",
        "[a",
        "[1",
        "[1] out of ",
        " " * 9 + "[",
        "True ",
        "[9] of",
        "G1: [9] ",
        "G1 ",
        "G1:" + " " * 9,
        "9",
    ],
)
def test_very_long_replies(piece: str) -> None:
    text = piece * 100_000
    for read in (diagnosis, score_0_100, true_or_false, guesses):
        read(text)


def test_a_score_in_very_many_brackets() -> None:
    nested = "[" * 100_000 + "85" + "]" * 100_000
    assert score_0_100(nested) == 85


def traced(*pieces: str) -> Reply:
    """A reply whose l-th token has log-probability -l and prior -10 l."""
    rank = np.arange(len(pieces), dtype=float)
    alternatives = tuple(((piece, -float(i)),) for i, piece in enumerate(pieces))
    trace = TokenTrace(
        pieces, logprobs=-rank, entropies=rank, prior_logprobs=-10 * rank, alternatives=alternatives
    )
    return Reply("".join(pieces), trace, n_tokens_in=7, n_tokens_out=len(pieces))


@each(
    ("pieces", "name", "kept"),
    [
        (("[", "Fl", "u", "]"), "Flu", (1, 2)),
        (("It is", " [Flu", "]."), "Flu", (1,)),
        (("[Fl", "u]", " yes"), "Flu", (0, 1)),
        (("[", "Flu", "](", "x)"), "Flu", (1,)),
        (("[", " ", "Flu", " ", "]"), "Flu", (2,)),
        (("[", "Flu", "] [", "Cro", "up", "]"), "Croup", (3, 4)),
        (("[", "M", "", "é", "ni", "]"), "Méni", (1, 2, 3, 4)),
        (("[", "", "ét", "é", "", "]"), "été", (1, 2, 3)),
        (("", "[", "Flu", "]", ""), "Flu", (2,)),
        (("[Flu]",), "Flu", (0,)),
    ],
)
def test_trace_is_cut_to_the_diagnosis(
    pieces: tuple[str, ...], name: str, kept: tuple[int, ...]
) -> None:
    whole = traced(*pieces)
    reply = diagnosis_reply(whole)
    assert (reply.text, reply.raw, reply.missing) == (name, whole.text, None)
    assert (reply.n_tokens_in, reply.n_tokens_out) == (7, len(pieces))
    trace = reply.trace
    assert (
        trace is not None
        and trace.logprobs is not None
        and trace.prior_logprobs is not None
        and trace.alternatives is not None
    )
    assert trace.tokens == tuple(pieces[i] for i in kept)
    assert trace.logprobs.tolist() == [-i for i in kept]
    assert trace.prior_logprobs.tolist() == [-10 * i for i in kept]
    assert [best[0][0] for best in trace.alternatives] == [pieces[i] for i in kept]
    assert trace.renyi is None


def test_reply_without_a_diagnosis_says_so() -> None:
    reply = diagnosis_reply(traced("Fl", "u?"))
    assert (reply.text, reply.raw, reply.trace, reply.missing) == (None, "Flu?", None, NO_DIAGNOSIS)


def test_reply_that_never_came_keeps_its_reason() -> None:
    assert diagnosis_reply(Reply(None, missing="refused")).missing == "refused"


def test_reply_without_a_trace_has_none_afterwards() -> None:
    assert diagnosis_reply(Reply("[Flu]")) == Reply("Flu", raw="[Flu]")


def test_tokens_that_spell_another_text_are_refused() -> None:
    reply = Reply("[Flu]", TokenTrace(("[", "Croup", "]"), logprobs=np.zeros(3)))
    with pytest.raises(ValueError, match="Croup"):
        diagnosis_reply(reply)
