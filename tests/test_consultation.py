"""The loop: what is said and kept, why it ends, and that a replay stops where really stopping would
have."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from asking import ask
from fake_consultation import QUESTIONS, TOLD, Talker, told_case
from fake_model import FakeEncoder

from trustlab.agents.consultation import Consultation, Spent, consult, turn_view
from trustlab.agents.patient import FactPatient
from trustlab.experiment import benchmark
from trustlab.metrics.stopping import stop_turns
from trustlab.records import Reply, Statement


def talk(
    max_turns: int = 4, n: int = 1, patient=None, tries: int = 4, **options
) -> tuple[Consultation, ...]:
    cases = [told_case(chr(ord("a") + i)) for i in range(n)]
    return consult(cases, Talker(QUESTIONS, **options), patient, max_turns=max_turns, tries=tries)


def test_it_opens_with_the_first_statement_and_adds_an_exchange_a_turn() -> None:
    (c,) = talk()
    assert c.statements[0] == told_case().statements[0]
    assert [s.text for s in c.statements[1:]] == [
        f"Doctor: {t.question}\nPatient: {t.said.words}" for t in c.turns
    ]
    assert len(c.turns) == 4 and c.ended == "turn limit" and c.why == ""
    by_question = {q: (f, a) for f, q, a in TOLD}
    for statement, turn in zip(c.statements[1:], c.turns, strict=True):
        finding, answer = by_question.get(turn.question, (None, "I don't know."))
        assert (statement.finding, turn.said.words) == (finding, answer)


def test_each_turn_sees_what_was_said_before_and_nothing_after() -> None:
    model = Talker(QUESTIONS)
    (c,) = consult([told_case()], model, max_turns=3)
    shown = [r.messages[1][1] for r in model.requests if r.purpose == "ask"]
    for level, prompt in enumerate(shown):
        said = prompt.partition("<patient>\n")[2].partition("\n</patient>")[0]
        assert said == "\n".join(s.text for s in c.statements[: level + 1])


def test_all_cases_take_a_turn_together_in_two_batches() -> None:
    model = Talker(QUESTIONS)
    consult([told_case(i) for i in "abc"], model, max_turns=2)
    assert [[r.purpose for r in call] for call in model.asked] == [
        ["ask", "enough"] * 3,
        ["patient"] * 3,
    ] * 2


def test_the_case_told_is_the_consultation_under_the_data_set_s_own_name() -> None:
    (c,) = talk()
    told = c.case_told
    assert (told.dataset, told.case_id, told.diagnosis) == ("made-consultation", "a", "Influenza")
    assert told.statements == c.statements
    assert (
        turn_view(told, 0).statements == c.statements[:1]
        and turn_view(told, 2).statements == c.statements[:3]
    )
    assert turn_view(told, 9).statements == c.statements
    with pytest.raises(ValueError, match="level is -1"):
        turn_view(told, -1)


@pytest.mark.parametrize(
    ("opening", "said"),
    [
        (TOLD[0], [2, 4, 6, 8, 10, 10]),
        ("Patient: Help.", [1, 3, 5, 7, 9, 9]),
        ("He coughs.", [1, 3, 5, 7, 9, 9]),
    ],
)
def test_utterances_count_both_speakers_and_stop_growing_at_the_end(
    opening, said: list[int]
) -> None:
    case = told_case()
    if isinstance(opening, str):
        case = replace(case, statements=(Statement(opening), *case.statements))
    (c,) = consult([case], Talker(QUESTIONS), max_turns=4)
    assert [c.utterances(level) for level in range(6)] == said


def test_a_doctor_who_repeats_itself_is_stopped_and_the_question_is_not_put() -> None:
    (c,) = talk(
        replies={"ask": lambda user: "[Do you swim?]" if "swim" not in user else "[do you SWIM]"},
        tries=3,
    )
    assert (len(c.turns), c.ended, c.why) == (1, "repeats itself", "do you SWIM")
    assert [s.purpose for s in c.spent] == [
        "ask",
        "enough",
        "patient",
        "ask",
        "enough",
        "ask",
        "ask",
    ]
    assert [s.level for s in c.spent] == [0, 0, 0, 1, 1, 1, 1]


class Stubborn(Talker):
    """Its greedy question is always the same, and so is the first one it draws; what it draws next
    is new."""

    def reply(self, request, i):
        if request.purpose != "ask":
            return super().reply(request, i)
        drawn = request.temperature and i
        return Reply(
            f"[Number {request.messages[1][1].count('Doctor:')}?]" if drawn else "[Do you swim?]"
        )


def test_a_repetition_is_tried_again_at_random_and_the_first_new_question_is_put() -> None:
    model = Stubborn(QUESTIONS)
    (c,) = consult([told_case()], model, max_turns=3, seed=5)
    assert [(t.question, t.tries) for t in c.turns] == [
        ("Do you swim?", 1),
        ("Number 2?", 3),
        ("Number 3?", 3),
    ]
    second = [r for r in model.requests if r.purpose == "ask"][1:4]
    assert [(r.temperature, r.n, r.first, r.seed) for r in second] == [
        (0, 1, 0, 5),
        (1, 1, 0, 5),
        (1, 1, 1, 5),
    ]
    assert len({r.messages for r in second}) == 1


def test_tries_are_a_batch_for_all_that_still_wait_and_stop_at_their_number() -> None:
    model = Stubborn(QUESTIONS)
    first, second = consult([told_case(), told_case("b")], model, max_turns=2, tries=2)
    assert [len(call) for call in model.asked] == [4, 2, 4, 2]
    assert {c.ended for c in (first, second)} == {"repeats itself"} and len(first.turns) == len(
        second.turns
    ) == 1


def test_of_an_unreadable_and_a_repeated_question_the_repetition_is_the_reason() -> None:
    replies = iter(["silence", "[Do you swim?]", "silence", "[Do you swim?]", "silence"])
    (c,) = talk(replies={"ask": lambda user: next(replies)}, tries=3)
    assert [t.tries for t in c.turns] == [2] and (c.ended, c.why) == (
        "repeats itself",
        "Do you swim?",
    )


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("Do you swim? Or run?", "no question in square brackets"),
        (Reply(None, missing="too long"), "too long"),
    ],
)
def test_without_a_readable_question_it_ends_with_the_reason(reply, why: str) -> None:
    (c,) = talk(replies={"ask": reply}, tries=1)
    assert (c.turns, c.ended) == ((), "no readable question") and why in c.why
    assert c.case_told.statements == told_case().statements[:1]


def test_one_that_ended_is_asked_nothing_more_while_others_go_on() -> None:
    model = Talker(QUESTIONS, replies={})
    model.replies["ask"] = lambda user: (
        "(silence)" if "opening b" in user else f"[Question {user.count('Doctor:')}?]"
    )
    cases = [told_case("a"), told_case("b")]
    cases[1] = replace(cases[1], statements=(Statement("Patient: opening b"), *cases[1].statements))
    first, second = consult(cases, model, max_turns=3, tries=1)
    assert (len(first.turns), len(second.turns)) == (3, 0)
    assert [len(call) for call in model.asked] == [4, 1, 2, 1, 2, 1]


def test_its_own_decision_is_recorded_at_every_level_and_stops_nothing() -> None:
    (c,) = talk(enough_from=2)
    assert c.enough == (False, False, True, True) and len(c.turns) == 4
    (c,) = talk(replies={"enough": "who knows"})
    assert c.enough == (None,) * 4


def test_it_ends_confident_before_the_question_at_which_stop_says_so_and_asks_no_more() -> None:
    model, seen = Talker(QUESTIONS), []

    def stop(going):
        seen.append([(c.case.case_id, len(c.turns)) for c in going])
        return [c.case.case_id == "a" and len(c.turns) == 1 for c in going]

    first, second = consult([told_case("a"), told_case("b")], model, max_turns=3, stop=stop)
    assert [(len(c.turns), c.ended) for c in (first, second)] == [
        (1, "confident"),
        (3, "turn limit"),
    ]
    assert seen == [[("a", 0), ("b", 0)], [("a", 1), ("b", 1)], [("b", 2)]]
    assert [len(call) for call in model.asked] == [4, 2, 2, 1, 2, 1]
    with pytest.raises(ValueError, match="zip"):
        consult([told_case()], model, stop=lambda going: [])


def test_what_the_talk_took_is_counted_by_level() -> None:
    (c,) = talk(max_turns=1)
    assert c.spent == (
        Spent(0, "ask", 50, 5),
        Spent(0, "enough", 50, 5),
        Spent(0, "patient", 50, 5),
    )
    (c,) = talk(max_turns=1, patient=FactPatient())
    assert [s.purpose for s in c.spent] == ["ask", "enough"]


def test_a_patient_that_leaks_is_not_heard() -> None:
    (c,) = talk(replies={"patient": "[It is influenza]"})
    assert {t.said.outcome for t in c.turns} == {"leaked"}
    assert "nfluenza" not in turn_view(c.case_told, 4).text


@pytest.mark.parametrize(
    "wrong", [{"max_turns": 0}, {"tries": 0}, {"cases": [replace(told_case(), statements=())]}]
)
def test_what_cannot_be_a_consultation_is_refused(wrong: dict) -> None:
    with pytest.raises(ValueError, match="at least 1 is needed|a has none"):
        consult(**{"cases": [told_case()], "doctor": Talker(QUESTIONS), **wrong})


def confidence_of(consultations: tuple[Consultation, ...], levels: list[int]) -> np.ndarray:
    told = [c.case_told for c in consultations]
    how = {"samples": 2, "show": turn_view, "encoder": FakeEncoder()}
    run = ask(benchmark, told, [Talker(QUESTIONS)], ["ce"], levels, **how)
    return run.confidence.pivot(index="case_id", columns="level", values="confidence").to_numpy()


@pytest.mark.parametrize("threshold", [0.3, 0.6, 0.9])
def test_a_replay_stops_where_a_loop_that_really_stops_would_have(threshold: float) -> None:
    """The loop asks a turn more only while the confidence is below the threshold; the replay has
    the whole recording."""
    recorded = talk(max_turns=5, n=6)
    replayed = stop_turns(confidence_of(recorded, list(range(6))), threshold)
    for i, c in enumerate(recorded):
        level, said = 0, (c.opening,)
        while confidence_of((_told(c, level, said),), [level])[0, 0] < threshold and level < 5:
            level += 1
            (longer,) = consult([c.case], Talker(QUESTIONS), max_turns=level)
            said = longer.statements
        assert level == replayed[i] and said == c.statements[: level + 1]
    assert len(set(replayed)) > 1, "all stop alike: nothing is shown"


def _told(c: Consultation, level: int, said: tuple[Statement, ...]) -> Consultation:
    assert len(said) == level + 1
    return replace(c, turns=c.turns[:level])
