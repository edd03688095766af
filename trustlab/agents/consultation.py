"""A consultation: the doctor asks one question at a time, the patient answers from the facts, up to
a number of turns; ``prompts/ask.txt`` and ``prompts/enough.txt``.

Ren et al. 2026 ask only while the confidence is below a threshold: :func:`consult` with ``stop``
does. Without it a consultation is recorded to its full length, once, and each threshold is
replayed: later turns never change earlier ones, so a replay stops where the loop would have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from trustlab.agents.medconf import Ask, reply_room
from trustlab.agents.patient import ModelPatient, Said, findings_asked, parts_of
from trustlab.models.base import About, Model, Request
from trustlab.parsing.agents import read_enough, read_question
from trustlab.parsing.counts import both
from trustlab.parsing.reply import Unreadable
from trustlab.prompts import render
from trustlab.records import Case, Reading, Reply, Statement, View, normalise

MAX_TOKENS_QUESTION, MAX_TOKENS_ENOUGH = 96, 16
ENDING = "-consultation"
"""What is added to the data set's name."""
TURN_LIMIT, REPEATS, NO_QUESTION, CONFIDENT = (
    "turn limit",
    "repeats itself",
    "no readable question",
    "confident",
)
ENDS = (TURN_LIMIT, REPEATS, NO_QUESTION, CONFIDENT)
"""Why a consultation ended."""


class Patient(Protocol):
    """Anybody who answers questions about a case: :class:`ModelPatient`, :class:`FactPatient`."""

    @property
    def name(self) -> str:
        """What tables call it."""
        ...

    def answer(
        self, asked: Sequence[tuple[Case, str]], put: Ask
    ) -> list[tuple[Said, Reply | None]]:
        """What is said to each (case, question), and the model's reply behind it, if any."""
        ...


@dataclass(frozen=True)
class Spent:
    """One request of the talk: ``level`` is the number of questions asked before it."""

    level: int
    purpose: str
    n_tokens_in: int
    n_tokens_out: int


@dataclass(frozen=True)
class Turn:
    """One question and what was said to it; ``tries`` is which of the doctor's tries it was, 1 the
    greedy one."""

    question: str
    said: Said
    tries: int = 1


@dataclass(frozen=True)
class Consultation:
    """A recorded consultation; a *level* is the number of questions asked so far, 0 with the
    opening alone.

    ``enough[level]`` is the doctor's own decision after that level, for every level at which it was
    asked (``None``: unreadable). ``ended`` is one of :data:`ENDS`, ``why`` says more. ``spent``
    lists the requests of doctor and patient.
    """

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
        """Everything said: the opening, then a statement a turn, with the finding that its fact
        tells."""
        return (self.opening, *(t.said.statement(self.case, t.question) for t in self.turns))

    @property
    def case_told(self) -> Case:
        """The consultation as a case of its own, for :func:`turn_view`; its data set's name ends in
        "-consultation"."""
        return replace(
            self.case,
            dataset=f"{self.case.dataset}{ENDING}",
            statements=self.statements,
            posteriors={},  # of what the case tells, not of these
        )

    def utterances(self, level: int) -> int:
        """What both speakers have said up to ``level``: 2 for an opening that is an exchange (1
        otherwise), 2 a turn."""
        return (2 if all(parts_of(self.opening)) else 1) + 2 * min(level, len(self.turns))


def turn_view(case: Case, level: int) -> View:
    """What is shown of a consultation after ``level`` questions; beyond its end, its last state.
    ``ValueError`` below 0."""
    if level < 0:
        raise ValueError(
            f"level is {level!r}; a consultation's levels are 0 (the opening), 1, 2, ..."
        )
    return View(case, level, case.statements[: level + 1])


def consult(
    cases: Sequence[Case],
    doctor: Model,
    patient: Patient | None = None,
    *,
    max_turns: int = 12,
    tries: int = 4,
    seed: int = 0,
    ask: Ask | None = None,
    stop: Callable[[Sequence[Consultation]], Sequence[bool]] | None = None,
    reading: Reading = "chat",
) -> tuple[Consultation, ...]:
    """A consultation for each case, to its full length; all cases take each turn together, a batch
    for each step.

    ``patient`` is the doctor's model itself where ``None``. ``ask`` is how requests are put
    (default: at once). A question is greedy; where it is a repetition or unreadable, up to ``tries
    - 1`` more are drawn at temperature 1, and the first that is neither is asked. Where all fail
    the consultation ends early, and none of them is put. ``stop`` is asked before each question,
    with the consultations that still go on: those for which it says True end there, confident.
    Raises ``ValueError`` for fewer than one turn or try, a case without statements, or a ``stop``
    that does not answer for each.
    """
    if max_turns < 1 or tries < 1:
        raise ValueError(f"max_turns is {max_turns} and tries is {tries}; at least 1 is needed")
    if empty := [case.case_id for case in cases if not case.statements]:
        raise ValueError(
            f"a consultation opens with a case's first statement; {', '.join(empty)} has none"
        )
    put, speaker = (
        ask or (lambda m, requests, _: m.generate(requests)),
        patient or ModelPatient(doctor, seed, reading),
    )
    made = [Consultation(case, max_turns) for case in cases]
    asking = partial(requests_after, doctor, seed=seed, reading=reading)
    for _ in range(max_turns):
        going = [i for i, c in enumerate(made) if not c.ended]
        if stop is not None and going:
            for i, confident in zip(going, stop([made[i] for i in going]), strict=True):
                made[i] = replace(made[i], ended=CONFIDENT) if confident else made[i]
            going = [i for i in going if not made[i].ended]
        if not going:
            break
        questions = _questions(made, going, asking, doctor, tries, reading, put)
        heard = speaker.answer(
            [(made[i].case, question) for i, (question, _) in questions.items()],
            _at_turn(put, len(made[going[0]].turns)),
        )
        for (i, (question, n)), (said, reply) in zip(questions.items(), heard, strict=True):
            made[i] = _answered(made[i], Turn(question, said, n), reply)
    return tuple(replace(c, ended=c.ended or TURN_LIMIT) for c in made)


def _at_turn(put: Ask, turn: int) -> Ask:
    """Puts a patient's requests, which know no turn."""

    def whose(about: About | None) -> About | None:
        return about and about._replace(dataset=f"{about.dataset}{ENDING}", level=turn)

    return lambda m, requests, step: put(
        m, [replace(r, about=whose(r.about)) for r in requests], step
    )


def _told(c: Consultation) -> View:
    return turn_view(c.case_told, len(c.turns))


def _questions(
    made: list[Consultation],
    going: Sequence[int],
    asking: Callable[..., tuple[Request, Request]],
    doctor: Model,
    tries: int,
    reading: Reading,
    put: Ask,
) -> dict[int, tuple[str, int]]:
    """Place in ``made`` -> the next question and which try it was; consultations without one are
    ended in ``made``."""
    told = {i: _told(made[i]) for i in going}
    pairs = {i: asking(v.text, about=About.of(v)) for i, v in told.items()}
    step = f"question {len(made[going[0]].turns) + 1}"
    replies = [row[0] for row in put(doctor, [r for pair in pairs.values() for r in pair], step)]
    waiting = dict(zip(pairs, replies[::2], strict=True))
    for i, greedy, decision in zip(pairs, replies[::2], replies[1::2], strict=True):
        made[i] = _decided(_spent(made[i], "ask", greedy), decision, reading)
    found: dict[int, tuple[str, int]] = {}
    failed: dict[int, list[tuple[str, str]]] = {i: [] for i in pairs}
    for n in range(1, tries + 1):
        for i, reply in waiting.items():
            question, problem = _judged(made[i], reply, reading)
            if problem is None:
                found[i] = (question, n)
            else:
                failed[i].append((problem, question))
        left = [i for i in waiting if i not in found]
        if not left or n == tries:
            break
        again = put(doctor, [another(pairs[i][0], n) for i in left], f"{step}, try {n + 1}")
        waiting = {i: row[0] for i, row in zip(left, again, strict=True)}
        for i, reply in waiting.items():
            made[i] = _spent(made[i], "ask", reply)
    for i in pairs:
        if i not in found:
            problem, why = min(failed[i], key=lambda f: ENDS.index(f[0]))
            made[i] = replace(made[i], ended=problem, why=why)
    return found


def _judged(c: Consultation, reply: Reply, reading: Reading) -> tuple[str, str | None]:
    """The question and ``None``; or what is wrong with it, with the words that say so in front."""
    try:
        question = read_question(reply, reading)
    except Unreadable as error:
        return str(error), NO_QUESTION
    return question, REPEATS if repeats(question, c.statements, c.case) else None


def _decided(c: Consultation, reply: Reply, reading: Reading) -> Consultation:
    try:
        enough = read_enough(reply, reading)
    except Unreadable:
        enough = None
    return replace(_spent(c, "enough", reply), enough=(*c.enough, enough))


def _answered(c: Consultation, turn: Turn, reply: Reply | None) -> Consultation:
    return replace(c if reply is None else _spent(c, "patient", reply), turns=(*c.turns, turn))


def _spent(c: Consultation, purpose: str, reply: Reply) -> Consultation:
    return replace(
        c, spent=(*c.spent, Spent(len(c.turns), purpose, reply.n_tokens_in, reply.n_tokens_out))
    )


def requests_after(
    model: Model,
    told: str,
    seed: int = 0,
    about: About | None = None,
    reading: Reading = "chat",
) -> tuple[Request, Request]:
    """What the doctor is asked after what has been told: for the next question, and whether enough
    is known. Both greedy."""
    room = reply_room(model, MAX_TOKENS_QUESTION)
    return (
        Request(
            render("ask", to=model, patient=told),
            max_tokens=room,
            seed=seed,
            purpose="ask",
            about=about and about._replace(**both(read_question, reading)),
        ),
        Request(
            render("enough", to=model, patient=told),
            max_tokens=MAX_TOKENS_ENOUGH,
            seed=seed,
            purpose="enough",
            about=about and about._replace(**both(read_enough, reading)),
        ),
    )


def another(request: Request, tries: int) -> Request:
    """The request for a question once more, drawn at temperature 1; ``tries`` is how many questions
    there have been."""
    return replace(request, temperature=1.0, first=tries - 1)


def repeats(question: str, told: Sequence[Statement], case: Case) -> bool:
    """Whether ``question`` has been asked in ``told``: the same words without case and punctuation,
    or the same finding.

    A finding's question is the knowledge table's, or the one that ``case`` itself has for it. What
    it cannot see: the same thing asked in other words that neither has.
    """
    asked = [parts_of(s)[0] for s in told]
    if normalise(question) in {normalise(q) for q in asked if q}:
        return True
    # a finding that was told without its question, as in an opening, counts as asked for too
    known = {s.finding for s in told if s.finding} | {
        f for q in asked for f in findings_asked(q, case)
    }
    return bool(findings_asked(question, case) & known)
