"""What the doctor is asked, and what counts as asking again."""

from __future__ import annotations

import pytest
from fake_consultation import Talker, told_case

from trustlab.agents.consultation import repeats, requests_after
from trustlab.knowledge import load_knowledge
from trustlab.records import Statement


def test_the_doctor_is_asked_for_a_question_and_whether_enough_is_known_both_greedy() -> None:
    ask, enough = requests_after(Talker(), "Patient: I cough.", seed=7)
    assert (ask.purpose, enough.purpose) == ("ask", "enough")
    for request in (ask, enough):
        assert (request.n, request.temperature, request.seed, request.want) == (
            1,
            0.0,
            7,
            frozenset(),
        )
        assert "<patient>\nPatient: I cough.\n</patient>" in request.messages[1][1]
    assert "single question" in ask.messages[1][1] and "[enough] or [more]" in enough.messages[1][1]


def test_a_reply_takes_at_most_a_quarter_of_a_small_window() -> None:
    model = Talker()
    model.window = 200
    assert requests_after(model, "x")[0].max_tokens == 50
    model.window = 10_000
    assert requests_after(model, "x")[0].max_tokens == 96


TABLE = load_knowledge().findings["cough"].question


@pytest.mark.parametrize(
    ("question", "told", "again"),
    [
        ("have you got a COUGH", "Doctor: Have you got a cough?\nPatient: I don't know.", True),
        (
            "Have you got a cough or a cold?",
            "Doctor: Have you got a cough?\nPatient: I don't know.",
            False,
        ),
        (TABLE, "Doctor: Have you got a cough?\nPatient: I don't know.", True),
        ("Have you got a cough?", f"Doctor: {TABLE}\nPatient: I don't know.", True),
        ("Any rash?", f"Doctor: {TABLE}\nPatient: I don't know.", False),
        ("What is it?", "Patient: I cough.", False),
    ],
)
def test_the_same_words_or_the_same_finding_are_a_repetition(
    question: str, told: str, again: bool
) -> None:
    assert repeats(question, (Statement(told),), told_case()) is again


def test_what_was_told_without_a_question_need_not_be_asked_for() -> None:
    told = (Statement("Patient: I cough.", "cough", True),)
    assert repeats(TABLE, told, told_case()) and repeats("Have you got a cough?", told, told_case())
    assert not repeats(load_knowledge().findings["pain"].question, told, told_case())
