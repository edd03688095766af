"""Whatever a reply says: no parser raises what it does not document, and nothing is returned that
the reply does not say."""

from __future__ import annotations

import json
import re
from typing import Any

from each import each
from fake_medconf import CRITERIA, LEVELS, PATIENT, evidence_json, profile_json, rows_of
from hypothesis import given, settings
from hypothesis import strategies as st

from trustlab.parsing.medconf import read_evidence, read_profile, read_score
from trustlab.parsing.reply import Unreadable, diagnosis, diagnosis_reply
from trustlab.parsing.scores import guesses, score_0_100, true_or_false
from trustlab.records import IMPORTANCES, SUPPORT_LEVELS, Reading, Reply

some = settings(max_examples=150, deadline=None)

PIECES = st.sampled_from(
    [
        "[",
        "]",
        "[[",
        "]]",
        "[85]",
        "[7.5%]",
        "[Flu]",
        "[x]",
        "G1:",
        "G2:",
        " ",
        "\n",
        "\u2028",
        "/",
        "out of",
        "100",
        "9",
        ".",
    ]
    + [
        "-",
        "<<",
        ">>",
        "<<70>>",
        "{",
        "}",
        '"',
        "'",
        ":",
        ",",
        "```json\n",
        "```",
        "\\",
        "null",
        "None",
        '"id": 1',
        "True",
    ]
    + ['"criteria": [', '"support_level": "supported"', '"confidence_score": "<<7>>"']
    + ["\x00", "\ufeff", "\u200b", "\ud800", "\u0668"]
)
WORDS = st.one_of(
    st.lists(PIECES, max_size=40).map("".join),
    st.text(st.characters(exclude_categories=[]), max_size=60),
    st.text(alphabet="[]{}<>\"':,\n 0159.%-/aFG\ud800", max_size=60),
)
"""Any text, lone surrogates among it; mostly made of what parsers look at."""
PROFILE, EVIDENCE = profile_json(), evidence_json()


def read(text: str, reading: Reading = "chat") -> dict[str, Any]:
    """All that MedConf's parsers read from ``text``; a parser that refuses is left out."""
    found = {}
    for name, parse in {
        "profile": lambda: read_profile(text, reading=reading),
        "evidence": lambda: read_evidence(text, CRITERIA, PATIENT, reading),
        "score": lambda: read_score(text, reading=reading),
    }.items():
        try:
            found[name] = parse()
        except Unreadable:
            continue
    return found


def bracketed(number: float, text: str) -> bool:
    """Whether ``text`` holds this number in square brackets, by another road than the parser's."""
    return number in [
        float(digits) for digits in re.findall(r"\[\s*([0-9]+(?:\.[0-9]+)?)\s*%?\s*\]", text)
    ]


@some
@given(WORDS)
def test_what_is_read_from_brackets_stands_in_the_reply(text: str) -> None:
    named, score, five, verdict = (
        diagnosis(text, "strict"),
        score_0_100(text, reading="strict"),
        guesses(text, 2, reading="strict"),
        true_or_false(text, "strict"),
    )
    if named is not None:
        assert text[named.start : named.stop] == named.text and len(named.text) <= 200
        assert named.text.encode("utf-8") and any(c.isalpha() for c in named.text)
    for number in ([] if score is None else [score]) + list(five or ()):
        assert 0 <= number <= 100 and bracketed(number, text)
    assert verdict is None or str(verdict).lower() in text.lower()
    whole = diagnosis_reply(Reply(text))
    assert whole.raw == text and (whole.text is None) == (whole.missing is not None)


@some
@given(WORDS)
def test_what_is_read_from_json_stands_in_the_reply(text: str) -> None:
    found = read(text, "strict")
    for criterion in found.get("profile", ()):
        assert (
            str(criterion.id) in text
            and criterion.importance in IMPORTANCES
            and criterion.importance in text
        )
    if "evidence" in found:
        assert [e.criterion for e in found["evidence"][0]] == list(CRITERIA)
        assert sum(text.count(level) for level in SUPPORT_LEVELS) >= len(CRITERIA)
    if "score" in found:
        assert 0 <= found["score"][0] <= 100
        assert found["score"][0] in [
            float(digits) for digits in re.findall(r"<<\s*([0-9]+(?:\.[0-9]+)?)\s*%?\s*>>", text)
        ]


@some
@given(
    st.text(alphabet="abc .\n(]", max_size=20),
    st.integers(0, 100),
    st.text(alphabet="abc .\n([", max_size=20),
    st.integers(0, 999),
)
def test_a_second_number_turns_a_score_into_none(
    before: str, score: int, after: str, second: int
) -> None:
    text = f"{before}[{score}]{after}"
    assert score_0_100(text) == score
    assert score_0_100(f"{text} [{second}]") is None
    assert score_0_100(f"[{second}] {text}") is None


@some
@given(WORDS, st.integers(0, 100), WORDS)
def test_a_number_that_the_patient_put_in_brackets_is_never_read(
    before: str, number: int, after: str
) -> None:
    for text in (f"[{number}]", f"{before}[{number}]{after}"):
        assert (
            score_0_100(text, patient=f"I say [{number}].") in (None, score_0_100(text))
            and score_0_100(text, f"[{number}]") != number
        )


@some
@given(
    st.sampled_from([PROFILE, EVIDENCE]),
    st.text(alphabet=" \n\t\r", max_size=6),
    st.sampled_from(
        ["{}", "```json\n{}\n```", "```\n{}```", "```JSON\r\n{}\r\n```", "```json  \n\n{}\n\n```"]
    ),
    st.sampled_from([None, 0, 2]),
)
def test_a_fence_and_white_space_change_nothing(
    text: str, space: str, fence: str, indent: int | None
) -> None:
    laid_out = json.dumps(json.loads(text), indent=indent)
    assert read(space + fence.replace("{}", laid_out) + space) == read(text)


MENDABLE = {
    "as asked for": EVIDENCE,
    "in a fence": f"```json\n{EVIDENCE}\n```\n",
    "in single quotes": evidence_json(quotes={}).replace('"', "'"),
    "with Python's None": EVIDENCE.replace("null", "None"),
    "with trailing commas": EVIDENCE.replace("}", ",}"),
    "without commas between fields": EVIDENCE.replace(', "', ' "'),
    "laid out": json.dumps(json.loads(EVIDENCE), indent=2),
    "a profile": PROFILE,
    "a profile with trailing commas": PROFILE.replace("}", ",}"),
    "a profile without quotes": PROFILE.replace('"', ""),
}
"""Replies that are read whole; most only once their punctuation is mended."""


@each("text", MENDABLE.values(), ids=MENDABLE)
def test_a_reply_cut_off_anywhere_is_refused_or_says_the_same(text: str) -> None:
    whole = read(text)
    assert (
        whole == read(PROFILE)
        or whole["score"] == (70.0, "It fits well.")
        and len(whole["evidence"][0]) == 3
    )
    for stop in range(len(text)):
        cut = read(text[:stop])
        assert cut in ({}, whole)
        assert cut == {} or not text[stop:].strip(" \n`")  # white space, or the fence's end
        assert read(text[:stop], "strict") == ({} if text[stop:].strip() else cut)


@some
@given(st.sampled_from(list(MENDABLE.values())), st.data())
def test_a_reply_cut_off_twice_is_never_completed(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    stop = data.draw(st.integers(start, len(text)))
    part = text[start:stop]
    found = read(part)
    if "evidence" in found:  # its list may stand alone, whole: then it says what it said
        assert found["evidence"][0] == read(text)["evidence"][0]
        assert found == read(text) or part.strip(" ,:")[:1] != "{"
    for criterion in found.get("profile", ()):
        assert criterion in CRITERIA


@some
@given(st.sampled_from(list(MENDABLE.values())), st.data())
def test_a_lost_character_never_adds_a_criterion_or_turns_its_support(
    text: str, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(text) - 1))
    found = read(text[:at] + text[at + 1 :])
    if "evidence" in found:
        assert {e.criterion.id: e.support_level for e in found["evidence"][0]} == LEVELS
    for criterion in found.get("profile", ()):
        assert (
            str(criterion.id) in "123"
            and criterion.importance == CRITERIA[criterion.id - 1].importance
        )
        assert not set(criterion.description) & set('"{}[]:')
    assert found.get("score", (70,))[0] in (70, 7, 0)


@some
@given(st.text(alphabet="\"'{}[],:\\ x\n", max_size=12), st.data())
def test_a_quotation_never_reaches_beyond_its_own_string(words: str, data: st.DataObject) -> None:
    """Said within JSON's rules, any words are a quotation; said against them, the reply says no
    more than before."""
    said = json.dumps(
        {"criteria": rows_of(quotes={1: words}), "confidence": {"confidence_score": "<<70>>"}}
    )
    assert {e.criterion.id: e.support_level for e in read(said)["evidence"][0]} == LEVELS
    raw = said.replace(json.dumps(words), f'"{words}"', 1)
    found = read(raw)
    if "evidence" in found:
        assert {e.criterion.id: e.support_level for e in found["evidence"][0]} == LEVELS
    assert found.get("score", (70,))[0] == 70


@some
@given(
    st.permutations(list(LEVELS)),
    st.lists(st.sampled_from(SUPPORT_LEVELS), min_size=3, max_size=3),
    st.integers(0, 100),
)
def test_what_is_said_as_asked_for_is_read(
    order: list[int], support: list[str], score: int
) -> None:
    levels = dict(zip(order, support, strict=True))
    found = read(evidence_json(levels, score=f"<<{score}>>"))
    assert {e.criterion.id: e.support_level for e in found["evidence"][0]} == levels
    assert found["score"][0] == score and found["evidence"][1] is True


@each(
    "piece",
    [
        "{",
        "[",
        "{}",
        "[]",
        '{"a":',
        '"',
        "'",
        "\\",
        ",",
        "[1,",
        "{'a': 'b' ",
        '["a" "b"]',
        "<<7>>",
        "```",
        "// ",
        "\ud800",
    ],
)
@each("around", ["{}", "[{}]", '{{"criteria": [{}]}}', "```json\n{}\n```"])
def test_a_megabyte_of_anything_is_refused(piece: str, around: str) -> None:
    head, tail = around.replace("{{", "\0").replace("}}", "\1").split("{}")
    text = (head + piece * (1_000_000 // len(piece)) + tail).replace("\0", "{").replace("\1", "}")
    assert read(text) == {}
