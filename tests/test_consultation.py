"""The loop: what is asked, said and kept, why it ends, and that a replay stops where a loop that
really stops does."""

from __future__ import annotations

from dataclasses import replace

import pytest
from asking import ask
from each import each
from fake_consultation import QUESTIONS, TOLD, Talker, asked, cases, told_case
from fake_model import FakeEncoder

from studies import consultation as tables
from studies.consultation import consult_until
from trustlab.agents.consultation import (
    Consultation,
    Spent,
    consult,
    repeats,
    requests_after,
    turn_view,
)
from trustlab.agents.patient import FactPatient
from trustlab.knowledge.findings import load_knowledge
from trustlab.metrics.stopping import stop_turns
from trustlab.records import Reply, Statement


def talk(max_turns=4, patient=None, tries=4, **options) -> tuple[Consultation, ...]:
    doctor = Talker(QUESTIONS, **options)
    return consult([told_case()], doctor, patient, max_turns=max_turns, tries=tries)


def test_the_doctor_is_asked_for_a_question_and_whether_enough_is_known_both_greedy() -> None:
    model = Talker()
    for window, room in ((10_000, 96), (200, 50)):  # at most a quarter of a small window
        model.window = window
        case = replace(told_case(), statements=(Statement("Patient: I cough."),))
        question, enough = requests_after(model, turn_view(case, 0), seed=7)
        assert (question.purpose, enough.purpose) == ("ask", "enough")
        for request in (question, enough):
            assert (request.n, request.temperature, request.seed) == (1, 0.0, 7)
            assert "<patient>\nPatient: I cough.\n</patient>" in request.messages[1][1]
        assert question.max_tokens == room


TABLE = load_knowledge().findings["cough"].question
ASKED, NOT_KNOWN = "Doctor: Have you got a cough?", "\nPatient: I don't know."


@each(
    ("question", "told", "again"),
    [
        ("have you got a COUGH", Statement(ASKED + NOT_KNOWN), True),
        (TABLE, Statement(ASKED + NOT_KNOWN), True),
        ("Any rash?", Statement(f"Doctor: {TABLE}{NOT_KNOWN}"), False),
        # what was told without a question need not be asked for
        (TABLE, Statement("Patient: I cough.", "cough", True), True),
    ],
)
def test_the_same_words_or_the_same_finding_are_a_repetition(
    question: str, told: Statement, again: bool
) -> None:
    assert repeats(question, (told,), told_case()) is again


def test_it_opens_with_the_first_statement_adds_an_exchange_a_turn_and_tells_a_case() -> None:
    (c,) = talk()
    assert c.statements[0] == told_case().statements[0]
    exchanges = [f"Doctor: {t.question}\nPatient: {t.answer.words}" for t in c.turns]
    assert [s.text for s in c.statements[1:]] == exchanges
    assert len(c.turns) == 4 and (c.ended, c.why) == ("turn limit", "")
    assert [c.utterances(level) for level in range(6)] == [2, 4, 6, 8, 10, 10]
    by_question = {q: (f, a) for f, q, a in TOLD}
    for statement, turn in zip(c.statements[1:], c.turns, strict=True):
        finding, answer = by_question.get(turn.question, (None, "I don't know."))
        assert (statement.finding, turn.answer.words) == (finding, answer)
    told = c.as_case
    assert (told.dataset, told.case_id, told.diagnosis) == ("made-consultation", "a", "Influenza")
    assert turn_view(told, 0).statements == c.statements[:1]
    assert turn_view(told, 2).statements == c.statements[:3]
    assert turn_view(told, 9).statements == c.statements
    with pytest.raises(ValueError, match="level is -1"):
        turn_view(told, -1)


def test_each_turn_sees_what_was_said_before_and_all_cases_take_it_together() -> None:
    model = Talker(QUESTIONS)
    (c, _) = consult([told_case(i) for i in "ab"], model, max_turns=3)
    assert [[r.purpose for r in call] for call in model.asked] == [
        ["ask", "enough"] * 2, ["patient"] * 2,
    ] * 3  # fmt: skip
    shown = [r.messages[1][1] for r in model.requests if r.purpose == "ask"][::2]
    for level, prompt in enumerate(shown):
        said = prompt.partition("<patient>\n")[2].partition("\n</patient>")[0]
        assert said == "\n".join(s.text for s in c.statements[: level + 1])


class Stubborn(Talker):
    """Its greedy question is always the same, and so is the first one it draws; what it draws next
    is new."""

    def reply(self, request, i):
        if request.purpose != "ask":
            return super().reply(request, i)
        new = f"[Number {request.messages[1][1].count('Doctor:')}?]"
        return Reply(new if request.temperature and i else "[Do you swim?]")


def test_a_repetition_is_tried_again_at_random_and_the_first_new_question_is_put() -> None:
    model = Stubborn(QUESTIONS)
    (c,) = consult([told_case()], model, max_turns=3, seed=5)
    put = [(t.question, t.tries) for t in c.turns]
    assert put == [("Do you swim?", 1), ("Number 2?", 3), ("Number 3?", 3)]
    second = [r for r in model.requests if r.purpose == "ask"][1:4]
    how = [(r.temperature, r.n, r.first, r.seed) for r in second]
    assert how == [(0, 1, 0, 5), (1, 1, 0, 5), (1, 1, 1, 5)]
    assert len({r.messages for r in second}) == 1
    # tries are a batch for all that still wait, and stop at their number
    model = Stubborn(QUESTIONS)
    both = consult([told_case(), told_case("b")], model, max_turns=2, tries=2)
    assert [len(call) for call in model.asked] == [4, 2, 4, 2]
    assert [(c.ended, len(c.turns)) for c in both] == [("repeats itself", 1)] * 2


def swims(user: str) -> str:
    return "[Do you swim?]" if "swim" not in user else "[do you SWIM]"


@each(
    ("replies", "tries", "turns", "ended", "why"),
    [
        (swims, 3, 1, "repeats itself", "do you SWIM"),
        ("Do you swim? Or run?", 1, 0, "no readable question", "no question in square brackets"),
        (Reply(None, missing="too long"), 1, 0, "no readable question", "too long"),
    ],
)  # fmt: skip
def test_a_doctor_without_a_new_question_is_stopped_with_the_reason(
    replies, tries: int, turns: int, ended: str, why: str
) -> None:
    (c,) = talk(replies={"ask": replies}, tries=tries)
    assert (len(c.turns), c.ended) == (turns, ended) and why in c.why
    if turns == 0:
        assert c.as_case.statements == told_case().statements[:1]


def test_it_ends_confident_before_the_question_at_which_stop_says_so_and_asks_no_more() -> None:
    model, seen = Talker(QUESTIONS), []

    def stop(going):
        seen.append([(c.case.case_id, len(c.turns)) for c in going])
        return [c.case.case_id == "a" and len(c.turns) == 1 for c in going]

    both = consult([told_case("a"), told_case("b")], model, max_turns=3, stop=stop)
    assert [(len(c.turns), c.ended) for c in both] == [(1, "confident"), (3, "turn limit")]
    assert seen == [[("a", 0), ("b", 0)], [("a", 1), ("b", 1)], [("b", 2)]]
    assert [len(call) for call in model.asked] == [4, 2, 2, 1, 2, 1]


def test_what_the_talk_took_is_counted_and_a_patient_that_leaks_is_not_heard() -> None:
    (c,) = talk(max_turns=1, replies={"patient": "[It is influenza]"})
    assert c.spent[:2] == (Spent(0, "ask", 50, 5), Spent(0, "enough", 50, 5))
    assert c.spent[2].purpose == "patient" and {t.answer.outcome for t in c.turns} == {"leaked"}
    assert "nfluenza" not in turn_view(c.as_case, 4).text
    (c,) = talk(max_turns=1, patient=FactPatient())
    assert [s.purpose for s in c.spent] == ["ask", "enough"]


@each("wrong", [{"max_turns": 0}, {"tries": 0}, {"cases": [replace(told_case(), statements=())]}])
def test_what_cannot_be_a_consultation_is_refused(wrong: dict) -> None:
    with pytest.raises(ValueError, match="at least 1 is needed|a has none"):
        consult(**{"cases": [told_case()], "doctor": Talker(QUESTIONS), **wrong})


def test_asking_until_a_threshold_stops_where_the_replay_does_and_asks_less(tmp_path) -> None:
    recorded, full = Talker(QUESTIONS), asked(8, max_turns=5)
    asked(8, max_turns=5, model=recorded, methods=("ce",), cache=tmp_path / "whole.sqlite")
    for threshold in (0.3, 0.9):
        at = stop_turns(tables.grid(full, "fake").confidence["ce"], threshold)
        model, kept = Talker(QUESTIONS), tmp_path / f"{threshold}.sqlite"
        how = {"samples": 3, "encoder": FakeEncoder(), "cache": kept}
        made, answers = ask(consult_until, cases(8), model, "ce", threshold, 5, **how)
        for c, whole, level in zip(made, full.consultations["fake"], at, strict=True):
            assert (len(c.turns), c.ended) == (level, "confident" if level < 5 else "turn limit")
            assert c.statements == whole.statements[: level + 1]
        last = answers.groupby("case_id")["level"].max()
        assert last.to_list() == at.tolist() and not answers.duplicated(["case_id", "level"]).any()
        said = [sum(r.purpose == "patient" for r in m.requests) for m in (model, recorded)]
        assert said[0] == at.sum() < said[1] == 8 * 5 and len(set(at)) > 1
    again = Talker(QUESTIONS)
    assert ask(consult_until, cases(8), again, "ce", threshold, 5, **how)[0] == made
    assert not again.asked
