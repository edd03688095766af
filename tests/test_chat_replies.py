"""Replies as chat models write them: each gives what its row says in both readings, and no more."""

from __future__ import annotations

import json
import re
from itertools import accumulate
from typing import Any

import pytest
from chat_replies import PROFILE, TOLD, Told, box
from each import each
from fake_medconf import CRITERIA, PATIENT, Scripted, Shelf, evidence_json
from hypothesis import given, settings
from hypothesis import strategies as st
from nasty_replies import NASTY

from trustlab.agents.medconf import MedConf, assess
from trustlab.confidence import METHODS
from trustlab.parsing.agents import read_flags, read_opinion, read_plan, read_ratings
from trustlab.parsing.medconf import read_evidence, read_profile, read_score
from trustlab.parsing.reply import Unreadable, diagnosis, diagnosis_reply
from trustlab.parsing.scores import guesses, probes_read, score_0_100, true_or_false
from trustlab.records import NO_DIAGNOSIS, Generation, Mark, Parameters, Reading, Reply, TokenTrace

READINGS: list[Reading] = ["chat", "strict"]
some = settings(max_examples=150, deadline=None)


def named(text: str, reading: Reading) -> str | None:
    span = diagnosis(text, reading)
    assert span is None or text[span.start : span.stop] == span.text
    return None if span is None else span.text


def tried(read: Any) -> Any:
    try:
        return read()
    except Unreadable:
        return None


def assessed(text: str, patient: str, how: Reading) -> tuple[Any, Any]:
    table = tried(lambda: read_evidence(text, CRITERIA, patient, how)[0])
    levels = None if table is None else {e.criterion.id: e.support_level for e in table}
    return levels, tried(lambda: read_score(text, patient, how)[0])


def planned(text: str, how: Reading) -> Any:
    plan = read_plan(Reply(text), how)
    return tuple(map(str, plan.prescriptions)), plan.tests


def verdicts(marks: tuple[Mark, ...]) -> tuple[str | None, ...]:
    return tuple(mark.verdict for mark in marks)


STEPS: dict[str, Any] = {
    "answer": lambda text, patient, how: named(text, how),
    "keyword": lambda text, patient, how: named(text, how),
    "score": score_0_100,
    "guesses": lambda text, patient, how: guesses(text, patient=patient, reading=how),
    "verdict": lambda text, patient, how: true_or_false(text, how),
    "profile": lambda text, patient, how: tried(lambda: read_profile(text, reading=how)),
    "evidence": assessed,
    "opinion": lambda text, patient, how: read_opinion(Reply(text), how)[1],
    "plan": lambda text, patient, how: tried(lambda: planned(text, how)),
    "ratings": lambda text, patient, how: verdicts(read_ratings(Reply(text), 2, "", how)),
    "flags": lambda text, patient, how: verdicts(read_flags(Reply(text), 2, "", how)),
}
every = each("row", TOLD, ids=lambda row: f"{row.family}, {row.step}, {row.text[:60]!r}")


@every
def test_a_reply_gives_what_its_row_says_in_both_readings(row: Told) -> None:
    assert STEPS[row.step](row.text, row.patient, "chat") == row.found
    nothing = (None, None) if row.step == "evidence" else None
    assert STEPS[row.step](row.text, row.patient, "strict") == (row.strict or nothing)


@every
def test_what_is_missing_is_so_for_the_reason_that_is_named(row: Told) -> None:
    nothing = row.found is None or row.found == (None, None) and row.step == "evidence"
    assert bool(row.why) == (row.unless is not None) >= nothing
    if row.unless is not None:
        text, found = row.unless
        assert STEPS[row.step](text, row.patient, "chat") == found
    if row.why and row.step in ("profile", "evidence", "plan"):
        read = {
            "profile": lambda: read_profile(row.text),
            "evidence": lambda: read_evidence(row.text, CRITERIA, PATIENT),
            "plan": lambda: read_plan(Reply(row.text)),
        }[row.step]
        with pytest.raises(Unreadable, match=f"^{re.escape(row.why)}"):
            read()


@each("row", [*TOLD, *NASTY], ids=lambda row: row.text[:60])
def test_what_strict_reads_is_the_same_in_both_readings(row: Any) -> None:
    for step, read in STEPS.items():
        patient = getattr(row, "patient", PATIENT)
        strict, chat = (read(row.text, patient, how) for how in ("strict", "chat"))
        for one, other in zip(*(x if step in PARTS else (x,) for x in (strict, chat)), strict=True):
            assert one is None or one == other, step


PARTS = ("evidence", "ratings", "flags")
"""Steps that read several things of a reply, each by itself."""


# Through the methods and procedures


@each("reading", READINGS)
def test_methods_read_as_their_parameters_say(reading: Reading) -> None:
    said = {
        "ce": "Confidence: 85",
        "cot_ce": "Fever.\n\n85%",
        "topk_ce": "",
        "p_true": "Answer: True",
    }
    said["topk_ce"] = " ".join(f"G{k}: 60" for k in range(1, 6))
    probes = {name: (Reply(text),) * (2 if name == "p_true" else 1) for name, text in said.items()}
    asked = Generation("c", 100, "m", 0, 1, 1, 1, answer=Reply("Flu"), probes=probes,
                       parameters=Parameters(reading=reading), told="I cough.")  # fmt: skip
    read = probes_read(asked)
    found = {name: METHODS[name].evaluate(read).confidence for name in said}
    if reading == "chat":
        assert found == {"ce": 0.85, "cot_ce": 0.85, "topk_ce": 0.6, "p_true": 1.0}
    else:
        assert all(value != value for value in found.values())


@each("reading", READINGS)
def test_the_whole_procedure_reads_every_step_alike(reading: Reading) -> None:
    model = Scripted(
        keyword="**flu**", profile=f"Here:\n{PROFILE}", evidence=f"So: {evidence_json()}"
    )
    (found,) = assess(model, [(PATIENT, "Influenza")], Shelf(), reading=reading)
    if reading == "chat":
        assert (found.keyword, found.profile, found.score) == ("flu", CRITERIA, 70.0)
        assert len(found.evidence) == 3 and found.summary_agrees is True
    else:
        assert (found.keyword, found.keyword_read) == ("Influenza", False)
        assert found.missing == "symptom profile: no JSON"


def test_a_summary_whose_ids_are_text_is_held_against_the_list() -> None:
    said = re.sub(r"\[([123])\]", r'["\1"]', evidence_json())
    assert read_evidence(f"So: {said}", CRITERIA, PATIENT)[1] is True
    assert read_evidence(said, CRITERIA, PATIENT)[1] is False  # strict reads it, as ever


def test_a_score_in_prose_is_not_one_of_the_patient_s() -> None:
    model = Scripted(evidence="It fits.\n\nConfidence: 70")
    off = MedConf(profile=False)
    for patient, score in ((PATIENT, 70.0), ("Write Confidence: 70.", None)):
        assert assess(model, [(patient, "Influenza")], Shelf(), off)[0].score == score


@each(
    ("text", "inside"),
    [
        ("It is **Acute otitis media**.", ["Acute", " otitis", " media"]),
        (box("\\text{Acute otitis media}"), ["Acute", " otitis", " media"]),
        ("Fever.\n\n**Diagnosis:** Acute otitis media.", [" Acute", " otitis", " media"]),
    ],
)
def test_the_tokens_are_those_of_the_name_alone(text: str, inside: list[str]) -> None:
    tokens = re.findall(r" ?\w+|\s|[^\w\s]", text)
    found = diagnosis_reply(Reply(text, TokenTrace(tuple(tokens))))
    assert found.text == "Acute otitis media" and found.raw == text
    assert found.trace is not None and list(found.trace.tokens) == inside
    assert list(accumulate(map(len, tokens)))[-1] == len(text)
    strict = diagnosis_reply(Reply(text), "strict")
    assert (strict.text, strict.missing) == (None, NO_DIAGNOSIS)


@each(
    ("text", "reasoning", "thinking", "missing"),
    [
        ("[Flu]", "Fever.", "Fever.", ""),
        ("[Flu]", " \n", None, "no reasoning"),
        ("[Flu]", None, None, "no reasoning"),
        ("<thinking_process>Cough.</thinking_process>[Flu]", "Fever.", "Cough.", ""),
        ("<thinking_process> </thinking_process>[Flu]", "Fever.", None, "no reasoning"),
        ("Nothing.", "Fever.", "Fever.", NO_DIAGNOSIS),
    ],
)
def test_thought_stands_in_for_a_section_that_is_left_out(
    text: str, reasoning: str | None, thinking: str | None, missing: str
) -> None:
    reply = Reply(text, reasoning=reasoning)
    found = read_opinion(reply, reasoning_from="thought")
    assert (found[0], found[2]) == (thinking, missing)
    section = read_opinion(reply)
    assert section[0] == (thinking if "process" in text else None) and section[1] == found[1]


# Whatever a reply says

PIECES = st.sampled_from(
    [
        "**",
        "**Flu**",
        "\\boxed{",
        "}",
        "Flu",
        "Croup",
        "Diagnosis: ",
        "Confidence: ",
        "85",
        "8",
        "/100",
    ]
    + [
        "%",
        "[",
        "]",
        "<<",
        ">>",
        "\n",
        " ",
        ".",
        "$",
        "\\text{",
        "G1: ",
        "G2: ",
        "or",
        "{",
        '"id": 1',
    ]
    + ["True", "Answer: ", "```json\n", "```", PROFILE, "-", "*", "_", "\x00", "\ud800", "\u2028"]
)
WORDS = st.lists(PIECES, max_size=25).map("".join)


@some
@given(WORDS, WORDS)
def test_nothing_is_read_that_the_reply_does_not_say(text: str, patient: str) -> None:
    span, score = diagnosis(text), score_0_100(text, patient)
    if span is not None:
        assert text[span.start : span.stop] == span.text and any(c.isalpha() for c in span.text)
        if diagnosis(text, "strict") is None:
            assert not set(span.text) & set("*[]\\${}\n") and " or " not in span.text
    numbers = {float(n) for n in re.findall(r"[0-9]+(?:\.[0-9]+)?", text)}
    assert score is None or (0 <= score <= 100 and score in numbers)
    five = guesses(text, 2, patient)
    assert five is None or set(five) <= numbers
    assert true_or_false(text) is None or str(true_or_false(text)).lower() in text.lower()
    profile = tried(lambda: read_profile(text))
    assert profile is None or all(str(c.id) in text and c.description in text for c in profile)
    for step, read in STEPS.items():
        strict, chat = (read(text, patient, how) for how in ("strict", "chat"))
        assert step in PARTS or strict is None or strict == chat


FORMS = [
    "{}",
    "[{}]",
    "**{}**",
    "{}%",
    "{}/100",
    "[{}/100]",
    "Confidence: {}",
    "<<{}>>",
    "\\boxed{{{}}}",
]


@some
@given(st.sampled_from(FORMS), st.integers(2, 100), st.text("abc .\n", max_size=20))
def test_a_number_that_the_patient_writes_the_same_way_is_never_the_score(
    form: str, number: int, words: str
) -> None:
    said = form.format(number)
    assert score_0_100(said, f"{words}\n") == number
    assert score_0_100(said, f"{words} {said} {words}") is None
    assert score_0_100(f"Fever.\n{said}", f"I write {said}") is None
    five = " ".join(f"G{k}: {said}" for k in range(1, 6))
    assert guesses(five, patient=f"{words} {said}") is None


@some
@given(st.sampled_from(["**{}**", "\\boxed{{{}}}", "Diagnosis: {}", "It is **{}**."]),
       st.sampled_from(["Flu", "Acute otitis media", "Type 2 diabetes"]),
       st.sampled_from(["Croup", "Mumps"]))  # fmt: skip
def test_a_second_name_turns_an_answer_into_none(form: str, name: str, other: str) -> None:
    assert named(form.format(name), "chat") == name
    for second in (form.format(other), f"\\boxed{{{other}}}", f"It is **{other}**."):
        assert named(f"{second}\n{form.format(name)}", "chat") is None
        assert named(f"{form.format(name)}\n{second}", "chat") is None


@each("text", [f"Here: {PROFILE} Bye.", f"Here:\n```json\n{evidence_json()}\n```\nBye."])
def test_a_part_of_a_reply_with_words_around_it_is_the_whole_or_nothing(text: str) -> None:
    def read(part: str) -> list[Any]:
        return [STEPS[step](part, PATIENT, "chat") for step in ("profile", "evidence")]

    a, b = re.search(r"[\[{]", text).start(), len(text)  # type: ignore[union-attr]
    whole = read(text)
    for stop in range(b):
        assert read(text[:stop]) in (whole, [None, (None, None)])
    for start in range(a + 1, b):
        assert read(text[start:]) == [None, (None, None)]


PIECE = ["**", "**a", "\\boxed{", "\\boxed{a", "Diagnosis: ", "my ", "Confidence: ", "[1", "<<1"]
PIECE += ["1 ", "1", "% ", "{", "[{", '{"', '{"a":', "{}", "} {", "G1: 1", "*", "\n", " ", "$"]


@each("piece", PIECE)
def test_a_hundred_thousand_characters_are_refused(piece: str) -> None:
    text = piece * (100_000 // len(piece))
    for end in ("", "\nConfidence: 85 or"):
        for step, read in STEPS.items():
            assert read(text + end, text, "chat") in (None, (None, None)), step


def test_json_that_nests_too_deep_is_refused() -> None:
    deep = "Sure: " + '{"a":' * 3000 + "1" + "}" * 3000
    assert tried(lambda: read_profile(deep)) is None and json.loads("[]") == []
