"""Where running text is cut, what stays whole, and that nothing of it is lost."""

from __future__ import annotations

import pytest
from each import each
from hypothesis import example, given
from hypothesis import strategies as st

from trustlab.datasets.sentences import sentences


@each(
    "whole",
    [
        "Dr. Meyer saw her vs. a colleague, approx. 3 days before.",
        "Her temperature is 38.9°C (102.0°F) and the creatinine 1.2 mg/dL.",
        "The leukocyte count is 14,200/mm3.",
        "She was given ceftriaxone i.v. Metronidazole was added to it.",
        "He takes lisinopril q.d. Metoprolol as well.",
        "This is patient No. 3 of the ward.",
        "The surgeon, J. Smith, and Dr. K. Brown agree.",
        "J. R. Smith is the surgeon.",
        "He said: 'It hurts.' and left.",
        "1. Chest pain.",
        "He is 5 ft. 4 in. tall.",
        "She is 5 ft. 4 in. 120 lb is her weight.",
        "She takes max. 3 doses, with min. 2 hours between.",
        "Her Hct. 30% is low, and T. 38 is not.",
    ],
)
def test_a_full_stop_inside_a_sentence_does_not_cut_it(whole: str) -> None:
    assert sentences(whole) == [whole]


@each(
    ("first", "second"),
    [
        ("He takes aspirin q.d.", "He does not smoke."),
        ("The pain began at 4 p.m.", "She took nothing."),
        ("Her son has hepatitis B.", "Serum is drawn."),
        ("It is a disease of vitamin C.", "Citrus fruit helps."),
        ("It eased after 5 min.", "2 hours later it came back."),
        ("She came in.", "2 days later she left."),
        ("He is 5 ft. 4 in.", "His weight is normal."),
        ("Her temp.", "She took it at home."),
        ("Did it hurt? No.", "The patient smiled."),
        ("The pulse is 98.", "72 hours later it is 60."),
        ("The pain is sharp (8 of 10).", "It comes and goes."),
        ('She said: "It hurts."', "Then she left!"),
        ("It began on a ship\nin the north.", "Others fell ill\ntoo."),
        ("Without a stop", "After a blank line"),
    ],
)
def test_two_sentences_are_cut_in_two(first: str, second: str) -> None:
    found = sentences(f"{first}\n\n{second}" if first == "Without a stop" else f"{first} {second}")
    assert " ".join(found[-1].split()) == " ".join(second.split())
    assert " ".join(found[:-1]) == " ".join(first.split())


TABLE = "Hemoglobin 9.8 g/dL\nSerum\nNa+\n131 mEq/L\nGlucose (fasting) 90 mg/dL (N = 70-100)"
FLAT = "Hemoglobin 9.8 g/dL Serum Na+ 131 mEq/L Glucose (fasting) 90 mg/dL (N = 70-100)"


@each("intro", ["Laboratory studies show:", "His values are as follows:", "Serum:"])
@each("gap", ["\n", "\n\n", " \n"])
def test_a_table_is_one_statement_with_the_words_that_introduce_it(intro: str, gap: str) -> None:
    found = sentences(f"He is pale. {intro}{gap}{TABLE}{gap}An ECG is normal. What is it?")
    assert found == ["He is pale.", f"{intro} {FLAT}", "An ECG is normal.", "What is it?"]


def test_a_table_in_parts_with_blank_lines_between_stays_one() -> None:
    assert sentences("Results are below:\n\nPlatelets: 9\n\nSerum:\nNa+: 139\n\nWhich is it?") == [
        "Results are below: Platelets: 9 Serum: Na+: 139",
        "Which is it?",
    ]


def test_a_second_introduction_begins_a_second_statement() -> None:
    assert sentences(
        "Blood tests show:\nSodium 140\nThe urine dipstick shows:\nProtein 2+\nHe is well."
    ) == [
        "Blood tests show: Sodium 140",
        "The urine dipstick shows: Protein 2+",
        "He is well.",
    ]


def test_a_line_that_wraps_after_a_colon_is_no_table() -> None:
    wrapped = (
        "She has the following:\na cough that began two days ago and has become\nworse since then."
        " She smokes."
    )
    assert sentences(wrapped) == [
        "She has the following: a cough that began two days ago and has become worse since then.",
        "She smokes.",
    ]


def test_a_table_in_one_line_without_full_stops_is_one_sentence() -> None:
    assert sentences(f"He is pale. Studies show: {FLAT}") == [
        "He is pale.",
        f"Studies show: {FLAT}",
    ]


@pytest.mark.parametrize("nothing", ["", "  ", "\n\n \n"])
def test_no_text_has_no_sentence(nothing: str) -> None:
    assert sentences(nothing) == []


PIECES = st.sampled_from(
    [
        "Dr.",
        "i.v.",
        "q.d.",
        "No.",
        "3",
        "9.8",
        "J.",
        "Smith",
        "hepatitis",
        "B.",
        "She",
        "well.",
        "pain",
        "show:",
        "shows:",
        "is",
    ]
    + ["min.", "in.", "ft.", "T.", "Hct."]
    + [
        "1.",
        "...",
        "?!",
        '"',
        "(N",
        "5)",
        "\n",
        "\n\n",
        "\t",
        " ",
        "etc.",
        "a",
        "é",
        "\u2028",
        "\x1c",
        ".",
    ]
)
TEXTS = st.one_of(
    st.text(max_size=60),
    st.lists(PIECES, max_size=25).map(" ".join),
    st.lists(PIECES, max_size=25).map("".join),
)


@given(TEXTS)
@example("show:\n1.\nX")
def test_nothing_is_lost_and_nothing_comes_twice(text: str) -> None:
    assert "".join("".join(sentences(text)).split()) == "".join(text.split())


@given(TEXTS)
@example("Labs show:\n3 i.v.\nThe end")
def test_a_sentence_cut_again_stays_as_it_is(text: str) -> None:
    for sentence in sentences(text):
        assert sentences(sentence) == [sentence]


@given(TEXTS)
def test_no_sentence_is_empty_or_holds_white_space_that_is_not_single(text: str) -> None:
    for sentence in sentences(text):
        assert sentence and sentence == " ".join(sentence.split())
