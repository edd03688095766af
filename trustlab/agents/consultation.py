"""Lets a doctor question a patient, turn by turn. Ren et al. 2026 stop at a confidence: ``stop`` of
:func:`consult`; without it thresholds are replayed on the full length."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Protocol

from trustlab.agents.asking import put, read_by, reply_room, request
from trustlab.agents.patient import ENDING, ModelPatient, Said, findings_asked, parts_of
from trustlab.models.base import About, Model, Request
from trustlab.parsing.agents import read_enough, read_question
from trustlab.parsing.reply import Unreadable
from trustlab.records import Case, Reading, Reply, Statement, View, normalise

MAX_TOKENS_QUESTION, MAX_TOKENS_ENOUGH = 96, 16
ENDS = TURN_LIMIT, REPEATS, NO_QUESTION, CONFIDENT = (
    "turn limit", "repeats itself", "no readable question", "confident",
)  # fmt: skip
"""Why a consultation ended."""


class Patient(Protocol):
    """Anybody who answers questions about a case: :class:`ModelPatient`, :class:`FactPatient`."""

    def answer(
        self, asked: Sequence[tuple[Case, str]], turn: int
    ) -> list[tuple[Said, Reply | None]]:
        """What is said to each (case, question), and the model's reply behind it, if any."""
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
    said: Said
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
        return (self.opening, *(t.said.statement(self.case, t.question) for t in self.turns))

    @property
    def case_told(self) -> Case:
        """The consultation as a case of its own, of another data set (:data:`ENDING`)."""
        named = f"{self.case.dataset}{ENDING}"  # the case's posteriors are of what it tells
        return replace(self.case, dataset=named, statements=self.statements, posteriors={})

    def utterances(self, level: int) -> int:
        """What both have said up to ``level``: 2 an exchange; an opening that is none counts 1."""
        return (2 if all(parts_of(self.opening)) else 1) + 2 * min(level, len(self.turns))


def turn_view(case: Case, level: int) -> View:
    """What is shown after ``level`` questions, at the end of all; ``ValueError`` below 0."""
    if level < 0:
        raise ValueError(f"level is {level!r}; a consultation's levels are 0 (the opening), 1, ...")
    return View(case, level, case.statements[: level + 1])


def consult(
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
    if max_turns < 1 or tries < 1:
        raise ValueError(f"max_turns is {max_turns} and tries is {tries}; at least 1 is needed")
    if empty := [case.case_id for case in cases if not case.statements]:
        none = f"{', '.join(empty)} has none"
        raise ValueError(f"a consultation opens with a case's first statement; {none}")
    speaker = patient or ModelPatient(doctor, seed, reading)
    asker = _Doctor(doctor, tries, seed, reading)
    made = [Consultation(case, max_turns) for case in cases]
    for turn in range(max_turns):
        going = [i for i, c in enumerate(made) if not c.ended]
        if stop is not None and going:
            for i, confident in zip(going, stop([made[i] for i in going]), strict=True):
                made[i] = replace(made[i], ended=CONFIDENT if confident else "")
            going = [i for i in going if not made[i].ended]
        if not going:
            break
        questions = asker.questions(made, going)
        asked = [(made[i].case, question) for i, (question, _) in questions.items()]
        heard = speaker.answer(asked, turn)
        for (i, (question, n)), (said, reply) in zip(questions.items(), heard, strict=True):
            c = _spent(made[i], "patient", [] if reply is None else [reply])
            made[i] = replace(c, turns=(*c.turns, Turn(question, said, n)))
    return tuple(replace(c, ended=c.ended or TURN_LIMIT) for c in made)


@dataclass(frozen=True)
class _Doctor:
    """Who asks, and how."""

    model: Model
    tries: int
    seed: int
    reading: Reading

    def questions(
        self, made: list[Consultation], going: Sequence[int]
    ) -> dict[int, tuple[str, int]]:
        """Place in ``made`` -> the next question and its try; those without one are ended there."""
        turn, pairs = len(made[going[0]].turns), {}
        for i in going:
            view = turn_view(made[i].case_told, turn)
            pairs[i] = requests_after(self.model, view, self.seed, self.reading)
        replies = put(self.model, [r for pair in pairs.values() for r in pair])
        for i, greedy, decision in zip(going, replies[::2], replies[1::2], strict=True):
            c = _spent(_spent(made[i], "ask", [greedy]), "enough", [decision])
            made[i] = replace(c, enough=(*c.enough, self._decision(decision)))
        waiting = dict(zip(going, replies[::2], strict=True))
        found: dict[int, tuple[str, int]] = {}
        failed: dict[int, list[tuple[str, str]]] = {i: [] for i in going}
        for n in range(1, self.tries + 1):
            for i, reply in waiting.items():
                question, problem = self._judged(made[i], reply)
                if problem is None:
                    found[i] = (question, n)
                else:
                    failed[i].append((problem, question))
            left = [i for i in waiting if i not in found]
            if not left or n == self.tries:
                break
            more = [another(pairs[i][0], n) for i in left]
            waiting = dict(zip(left, put(self.model, more), strict=True))
            for i, reply in waiting.items():
                made[i] = _spent(made[i], "ask", [reply])
        for i in failed.keys() - found.keys():
            problem, why = min(failed[i], key=lambda f: ENDS.index(f[0]))
            made[i] = replace(made[i], ended=problem, why=why)
        return found

    def _judged(self, c: Consultation, reply: Reply) -> tuple[str, str | None]:
        """The question and ``None``; or the words that say what is wrong with it, and what is."""
        try:
            question = read_question(reply, self.reading)
        except Unreadable as error:
            return str(error), NO_QUESTION
        return question, REPEATS if repeats(question, c.statements, c.case) else None

    def _decision(self, reply: Reply) -> bool | None:
        with suppress(Unreadable):
            return read_enough(reply, self.reading)
        return None


def _spent(c: Consultation, purpose: str, replies: Iterable[Reply]) -> Consultation:
    each = (Spent(len(c.turns), purpose, r.n_tokens_in, r.n_tokens_out) for r in replies)
    return replace(c, spent=(*c.spent, *each))


def requests_after(
    model: Model, view: View, seed: int = 0, reading: Reading = "chat"
) -> tuple[Request, Request]:
    """What the doctor is asked after what was told, greedy: the next question; is enough known?"""
    room, told = reply_room(model, MAX_TOKENS_QUESTION), About.of(view)
    question, enough = (read_by(told, r, reading) for r in (read_question, read_enough))
    text, asks = view.text, view.case.question
    return (
        request("ask", model, room, seed, question, patient=text, asks=asks),
        request("enough", model, MAX_TOKENS_ENOUGH, seed, enough, patient=text, asks=asks),
    )


def another(request: Request, tries: int) -> Request:
    """A question once more, drawn at temperature 1, after ``tries`` of them."""
    return replace(request, temperature=1.0, first=tries - 1)


def repeats(question: str, told: Sequence[Statement], case: Case) -> bool:
    """Whether ``question`` has been asked in ``told``: in the same words but for case and
    punctuation, or after one of the same findings (:func:`findings_asked`)."""
    asked = [words for s in told if (words := parts_of(s)[0])]
    if normalise(question) in map(normalise, asked):
        return True
    # a finding that was told without its question, as in an opening, counts as asked for too
    known = {s.finding for s in told if s.finding}
    known |= {f for words in asked for f in findings_asked(words, case)}
    return bool(findings_asked(question, case) & known)
