"""Lets a doctor question a patient, turn by turn.

Ren et al. 2026 stop at a confidence: ``stop`` of :func:`consult`; without it thresholds are
replayed on the full length."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from trustlab.agents.asking import put, read_by, reply_room, request
from trustlab.agents.patient import (
    ENDING,
    Answer,
    AnswerAndReply,
    CaseQuestion,
    ModelPatient,
    findings_sought,
    parts_of,
)
from trustlab.models.base import About, Model, Request
from trustlab.parsing.agents import read_enough, read_question
from trustlab.parsing.reply import Unreadable
from trustlab.records import Case, Reading, Reply, Statement, View, normalise

MAX_TOKENS_QUESTION = 96
MAX_TOKENS_ENOUGH = 16
TURN_LIMIT = "turn limit"
REPEATS = "repeats itself"
NO_QUESTION = "no readable question"
CONFIDENT = "confident"
ENDS = (TURN_LIMIT, REPEATS, NO_QUESTION, CONFIDENT)
"""Why a consultation ended."""


class Patient(Protocol):
    """Anybody who answers questions about a case: :class:`ModelPatient`, :class:`FactPatient`."""

    def answer(
        self, questions: Sequence[CaseQuestion], turn: int
    ) -> list[AnswerAndReply]:
        """The answer to each (case, question), and the model's reply behind it, if any."""
        ...


@dataclass(frozen=True)
class Spent:
    """One request of the talk: ``level`` is the number of questions asked before it."""

    level: int
    purpose: str
    n_tokens_in: int | None
    n_tokens_out: int | None


@dataclass(frozen=True)
class Turn:
    """One question and what was said to it; ``tries``: which of the doctor's, 1 the greedy one."""

    question: str
    answer: Answer
    tries: int = 1


@dataclass(frozen=True)
class Consultation:
    """A recorded consultation; a *level* is the number of questions asked, 0: the opening alone.
    ``enough[level]``: the doctor's own decision there, where it was asked (``None``: unreadable).
    ``ended``: one of :data:`ENDS`; ``why`` says more. ``spent``: requests of doctor and patient."""

    case: Case
    max_turns: int
    turns: tuple[Turn, ...] = ()
    enough: tuple[bool | None, ...] = ()
    ended: str = ""
    why: str = ""
    spent: tuple[Spent, ...] = ()

    @property
    def opening(self) -> Statement:
        """The case's first statement, with which every consultation begins."""
        return self.case.statements[0]

    @property
    def statements(self) -> tuple[Statement, ...]:
        """All that was said: the opening, then a statement a turn, with its fact's finding."""
        exchanges = [
            turn.answer.statement(self.case, turn.question) for turn in self.turns
        ]
        return (self.opening, *exchanges)

    @property
    def as_case(self) -> Case:
        """The consultation as a case of its own, of another data set (:data:`ENDING`)."""
        return replace(
            self.case,
            dataset=f"{self.case.dataset}{ENDING}",
            statements=self.statements,
            posteriors={},  # the case's are of what it tells itself
        )

    def utterances(self, level: int) -> int:
        """What both have said up to ``level``: 2 an exchange; an opening that is none counts 1."""
        n_opening = 2 if all(parts_of(self.opening)) else 1
        n_turns = min(level, len(self.turns))
        return n_opening + 2 * n_turns


def turn_view(case: Case, level: int) -> View:
    """What is shown after ``level`` questions, at the end of all; ``ValueError`` below 0."""
    if level < 0:
        raise ValueError(
            f"level is {level!r}; a consultation's levels are 0 (the opening), 1, ..."
        )
    return View(case, level, case.statements[: level + 1])


def consult(  # noqa: PLR0913
    cases: Sequence[Case],
    doctor: Model,
    patient: Patient | None = None,
    *,
    max_turns: int = 12,
    tries: int = 4,
    seed: int = 0,
    stop: Callable[[Sequence[Consultation]], Sequence[bool]] | None = None,
    reading: Reading = "chat",
) -> tuple[Consultation, ...]:
    """One consultation for each case, at full length; all cases go through each turn together.

    - ``patient=None``: the doctor's model answers.
    - A question is greedy. For a repeated or unreadable one, up to ``tries - 1`` more are drawn at
      temperature 1. If all fail, the consultation ends early.
    - ``stop``: called before each question with those that still go on; True ends one, confident.
    - ``ValueError``: no turn, no try, a case without statements, a ``stop`` that skips one.
    """
    _check_limits(cases, max_turns, tries)
    speaker = patient or ModelPatient(doctor, seed, reading)
    asker = _Doctor(doctor, tries, seed, reading)
    talks = [Consultation(case, max_turns) for case in cases]
    for turn in range(max_turns):
        going = _going(talks)
        if stop is not None and going:
            decisions = stop([talks[i] for i in going])
            for i, is_confident in zip(going, decisions, strict=True):
                if is_confident:
                    talks[i] = replace(talks[i], ended=CONFIDENT)
            going = _going(talks)
        if not going:
            break
        questions = asker.questions(talks, going)
        case_questions = [
            (talks[i].case, question.text) for i, question in questions.items()
        ]
        answers = speaker.answer(case_questions, turn)
        for (i, question), (answer, reply) in zip(
            questions.items(), answers, strict=True
        ):
            if reply is not None:
                talks[i] = _spent(talks[i], "patient", reply)
            exchange = Turn(question.text, answer, question.tries)
            talks[i] = replace(talks[i], turns=(*talks[i].turns, exchange))
    return tuple(replace(talk, ended=talk.ended or TURN_LIMIT) for talk in talks)


def _check_limits(cases: Sequence[Case], max_turns: int, tries: int) -> None:
    if max_turns < 1 or tries < 1:
        raise ValueError(
            f"max_turns is {max_turns} and tries is {tries}; at least 1 is needed"
        )
    silent = [case.case_id for case in cases if not case.statements]
    if silent:
        none = f"{', '.join(silent)} has none"
        raise ValueError(f"a consultation opens with a case's first statement; {none}")


def _going(talks: Sequence[Consultation]) -> list[int]:
    """The places of the consultations that still go on."""
    return [i for i, talk in enumerate(talks) if not talk.ended]


class _Question(NamedTuple):
    """A question, and which of the doctor's tries it is, 1 the greedy one."""

    text: str
    tries: int


class _Attempt(NamedTuple):
    """A question; or a ``problem``, one of :data:`ENDS`, and the text that says more of it."""

    text: str
    problem: str = ""


class _Requests(NamedTuple):
    """What the doctor is asked at a turn: the next question, and whether enough is known."""

    question: Request
    enough: Request


@dataclass(frozen=True)
class _Doctor:
    """Who asks, and how."""

    model: Model
    tries: int
    seed: int
    reading: Reading

    def questions(
        self, talks: list[Consultation], going: Sequence[int]
    ) -> dict[int, _Question]:
        """Place in ``talks`` -> the next question; those without one are ended there, by the
        problem that comes first in :data:`ENDS`."""
        turn = len(talks[going[0]].turns)
        requests: dict[int, _Requests] = {}
        for i in going:
            view = turn_view(talks[i].as_case, turn)
            requests[i] = requests_after(self.model, view, self.seed, self.reading)
        replies = self._first_replies(talks, requests)
        questions: dict[int, _Question] = {}
        failures: dict[int, list[_Attempt]] = {i: [] for i in going}
        for n in range(1, self.tries + 1):
            for i, reply in replies.items():
                attempt = self._attempt(talks[i], reply)
                if attempt.problem:
                    failures[i].append(attempt)
                else:
                    questions[i] = _Question(attempt.text, n)
            waiting = [i for i in replies if i not in questions]
            if not waiting or n == self.tries:
                break
            more = [
                replace(requests[i].question, temperature=1.0, first=n - 1)
                for i in waiting
            ]
            replies = dict(zip(waiting, put(self.model, more), strict=True))
            for i, reply in replies.items():
                talks[i] = _spent(talks[i], "ask", reply)
        for i in going:
            if i not in questions:
                first = min(failures[i], key=lambda each: ENDS.index(each.problem))
                talks[i] = replace(talks[i], ended=first.problem, why=first.text)
        return questions

    def _first_replies(
        self, talks: list[Consultation], requests: Mapping[int, _Requests]
    ) -> dict[int, Reply]:
        """Place in ``talks`` -> the greedy reply; the decisions are noted in ``talks``."""
        in_turn = []
        for pair in requests.values():
            in_turn += pair
        replies = put(self.model, in_turn)
        questions = replies[::2]
        decisions = replies[1::2]
        for i, question, decision in zip(requests, questions, decisions, strict=True):
            talk = _spent(talks[i], "ask", question)
            talk = _spent(talk, "enough", decision)
            is_enough = None
            with suppress(Unreadable):
                is_enough = read_enough(decision, self.reading)
            talks[i] = replace(talk, enough=(*talk.enough, is_enough))
        return dict(zip(requests, questions, strict=True))

    def _attempt(self, talk: Consultation, reply: Reply) -> _Attempt:
        try:
            question = read_question(reply, self.reading)
        except Unreadable as error:
            return _Attempt(str(error), NO_QUESTION)
        if repeats(question, talk.statements, talk.case):
            return _Attempt(question, REPEATS)
        return _Attempt(question)


def _spent(talk: Consultation, purpose: str, reply: Reply) -> Consultation:
    """The consultation with one more request that it took."""
    spent = Spent(len(talk.turns), purpose, reply.n_tokens_in, reply.n_tokens_out)
    return replace(talk, spent=(*talk.spent, spent))


def requests_after(
    model: Model, view: View, seed: int = 0, reading: Reading = "chat"
) -> _Requests:
    """The two greedy requests to the doctor after what ``view`` shows: for the next question, and
    whether enough is known."""
    about = About.of(view)
    question = request(
        "ask",
        model,
        reply_room(model, MAX_TOKENS_QUESTION),
        seed,
        read_by(about, read_question, reading),
        patient=view.text,
        asks=view.case.question,
    )
    enough = request(
        "enough",
        model,
        MAX_TOKENS_ENOUGH,
        seed,
        read_by(about, read_enough, reading),
        patient=view.text,
        asks=view.case.question,
    )
    return _Requests(question, enough)


def repeats(question: str, statements: Sequence[Statement], case: Case) -> bool:
    """Whether ``question`` stands in ``statements``: in the same words but for case and
    punctuation, or after one of the same findings (:func:`findings_sought`)."""
    plain = normalise(question)
    findings = findings_sought(question, case)
    for statement in statements:
        earlier = parts_of(statement).question
        if earlier and normalise(earlier) == plain:
            return True
        # a finding that came without its question, as in an opening, counts as asked for too
        if statement.finding in findings:
            return True
        if earlier and not findings.isdisjoint(findings_sought(earlier, case)):
            return True
    return False
