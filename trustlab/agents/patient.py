"""Answers a doctor's question from the case's facts alone.

Spoken is a fact, the knowledge table's denial of what is not so, or "I don't know."; what a model
tried beside that is counted."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain
from typing import NamedTuple
from zlib import crc32

from trustlab.agents.asking import put, read_by, reply_room, request
from trustlab.knowledge.findings import load_knowledge
from trustlab.knowledge.giveaway import Giveaway, giveaway
from trustlab.knowledge.words import word_lists
from trustlab.models.base import About, Model, Request
from trustlab.parsing.agents import read_replies
from trustlab.parsing.reply import Unreadable
from trustlab.records import Case, Reading, Reply, Statement, normalise

ENDING = "-consultation"
"""What is added to the name of a data set of consultations."""
UNKNOWN = "I don't know."
NOT_SO = "not so"
OUTCOMES = (
    "answered", "does not know", "volunteered", "invented", "leaked", "out of place", "unreadable",
)  # fmt: skip
"""What a patient's reply may be (:func:`read_answer`); the first and third alone are spoken."""
MAX_TOKENS = 160
LEAST = 3
"""Telling words (not :data:`_BARE_WORDS`) by which a part of an answer points at its fact."""
_WORD_LISTS = word_lists("patient")
_NOT_KNOWING = {normalise(words) for words in _WORD_LISTS["unknown"]}
_EXCHANGE = re.compile(r"Doctor: (.+?)\nPatient: (.+)", re.DOTALL)
_ALONE = re.compile(r"(Doctor|Patient): (.+)", re.DOTALL)
_BETWEEN = frozenset(("", "and", "also", "and also", "but"))
WHY_NOT = {
    "invented": "words of no fact",
    "unreadable": "words of several facts",
    "out of place": "an answer to another question",
}
"""Outcome of words that are no answer -> why, the gravest first."""
_BARE_WORDS = frozenset(_WORD_LISTS["bare"].split())
"""Words that tell nothing without their question, as digits do."""


@dataclass(frozen=True)
class Answer:
    """What the patient says to one question: ``words`` as spoken, the ``fact`` (its place) or the
    finding ``denied``; the ``outcome``, ``why`` the reply was refused, ``raw`` as it came."""

    words: str
    outcome: str
    fact: int | None = None
    why: str = ""
    raw: str = ""
    denied: str | None = None

    def statement(self, case: Case, question: str) -> Statement:
        """The exchange, with the finding that it tells."""
        text = f"Doctor: {question}\nPatient: {self.words}"
        if self.denied is not None:
            return Statement(text, self.denied, False)
        if self.fact is None:
            return Statement(text)
        fact = case.facts[self.fact]
        return Statement(text, fact.finding, fact.affirmed)


CaseQuestion = tuple[Case, str]
"""A case, and a question about it."""
AnswerAndReply = tuple[Answer, Reply | None]
"""What a patient says, and the model's reply behind it, if any."""


@dataclass(frozen=True)
class ModelPatient:
    """A patient for whom ``model`` speaks; ``reading``: how its replies are read."""

    model: Model
    seed: int = 0
    reading: Reading = "chat"

    def answer(
        self, questions: Sequence[CaseQuestion], turn: int
    ) -> list[AnswerAndReply]:
        """The answer to each (case, question), one batch, with the reply behind it."""
        requests = [self._request(case, question, turn) for case, question in questions]
        replies = put(self.model, requests)
        answers: list[AnswerAndReply] = []
        for (case, question), reply in zip(questions, replies, strict=True):
            answer = read_answer(reply, case, question, self.reading)
            answers.append((answer, reply))
        return answers

    def _request(self, case: Case, question: str, turn: int) -> Request:
        about = About(f"{case.dataset}{ENDING}", case.case_id, turn)
        read = partial(_answer_record, case=case, question=question)
        return request(
            "patient",
            self.model,
            reply_room(self.model, MAX_TOKENS),
            self.seed,
            read_by(about, read, self.reading),
            facts="\n".join(fact.text for fact in case.facts),
            question=question,
            options=("complete",) if case.denies else (),
        )


class FactPatient:
    """A stand-in without a model: it answers the knowledge table's questions and the case's own."""

    def answer(
        self, questions: Sequence[CaseQuestion], turn: int
    ) -> list[AnswerAndReply]:
        """The answer to each (case, question); nothing is asked of a model."""
        return [(self.answer_to(case, question), None) for case, question in questions]

    def answer_to(self, case: Case, question: str) -> Answer:
        """The fact that the question asks for; where there is none, ``why``: the finding is not so,
        not told, facts do not say which findings they tell, or nobody knows the question."""
        plain = normalise(question)
        findings = _table_findings(plain)
        same_question, same_finding = [], []
        for place, fact in enumerate(case.facts):
            if normalise(parts_of(fact).question) == plain:
                same_question.append(place)
            if fact.finding in findings:
                same_finding.append(place)
        for place in (*same_question, *same_finding):
            words = parts_of(case.facts[place]).answer
            if words:
                return Answer(" ".join(words.split()), "answered", place)
        denial = _denial(case, findings)
        if denial is not None:
            return denial
        why = "not a known question"
        if findings:
            why = "not told" if _is_marked(case) else "findings not marked"
        return Answer(UNKNOWN, "does not know", why=why)


def _is_marked(case: Case) -> bool:
    """Whether a case says which findings its statements tell or it denies."""
    answers = [s for s in case.statements if parts_of(s).answer]
    return bool(case.denies) or all(s.finding for s in answers)


@lru_cache(maxsize=1)
def findings_of_question() -> dict[str, frozenset[str]]:
    """Question of the knowledge table, normalised -> the findings that it asks for."""
    by_question: dict[str, frozenset[str]] = {}
    for finding in load_knowledge().findings.values():
        plain = normalise(finding.question)
        earlier = by_question.get(plain, frozenset())
        by_question[plain] = earlier | {finding.id}
    return by_question


def _table_findings(plain: str) -> frozenset[str]:
    """The findings for which a normalised question asks in the table's words."""
    return findings_of_question().get(plain, frozenset())


def findings_sought(question: str, case: Case) -> frozenset[str]:
    """The findings that ``question`` asks for, in the table's words or the case's; empty where that
    is not known."""
    plain = normalise(question)
    if not plain:
        return _table_findings(plain)
    own_findings = set()
    for statement in case.statements:
        if statement.finding and normalise(parts_of(statement).question) == plain:
            own_findings.add(statement.finding)
    return _table_findings(plain) | own_findings


class Exchange(NamedTuple):
    """A doctor's question and the patient's words, either perhaps empty."""

    question: str
    answer: str


def parts_of(statement: Statement) -> Exchange:
    """(question, patient's words) of a statement, '' for none; running text is the latter."""
    both = _EXCHANGE.fullmatch(statement.text)
    if both:
        return Exchange(both[1], both[2])
    alone = _ALONE.fullmatch(statement.text)
    if alone and alone[1] == "Doctor":
        return Exchange(alone[2], "")
    return Exchange("", alone[2] if alone else statement.text)


def _denial(case: Case, findings: Collection[str], raw: str = "") -> Answer | None:
    """The knowledge table's words for what is not so, in a wording that is the case's; ``None``
    unless one known finding is asked for that no fact has and that the case denies.
    A follow-up's denial is that of what it follows ("where does it hurt?": nothing does)."""
    if len(findings) != 1 or any(s.finding in findings for s in case.facts):
        return None
    (finding,) = findings
    table = load_knowledge().findings
    affirmed = {s.finding for s in case.facts if s.affirmed}
    parent = table[finding].parent
    if parent is not None and parent not in affirmed:
        finding = parent
    if finding not in case.denies:
        return None
    wordings = table[finding].deny
    place = crc32(f"{case.case_id} {finding}".encode()) % len(wordings)
    return Answer(wordings[place], "answered", why=NOT_SO, raw=raw, denied=finding)


def _answer_record(
    reply: Reply, case: Case, question: str, reading: Reading
) -> dict[str, str]:
    """The outcome of a reply and what it may say aloud, as a run's folder keeps them."""
    answer = read_answer(reply, case, question, reading)
    if answer.outcome == "unreadable":
        raise Unreadable(answer.why)
    return {"outcome": answer.outcome, "words": answer.words}


def read_answer(
    reply: Reply, case: Case, question: str, reading: Reading = "chat"
) -> Answer:
    """What a model's reply may say aloud, compared without case and punctuation.

    - *answered*: words of exactly one fact (its answer, or :data:`LEAST` telling words of it),
      which is spoken; or "No" to the table's question for a finding that is not so.
    - *does not know*; *volunteered*: whole answers of several facts; the one asked for is spoken,
      else the first.
    - *leaked*: a telling word of the diagnosis that neither the question nor a fact quoted has.
    - *invented*: words of no fact. *unreadable*: no brackets, too many, cut, or of several facts.
    - *out of place*: "Yes." to another question than its own, a fact of another finding.
    """
    raw = reply.text or ""
    refuse = partial(Answer, UNKNOWN, raw=raw)
    answers_by_place = _answers_by_place(case)
    if _leaks(raw, case, question, answers_by_place):
        return refuse("leaked", why="names the diagnosis")
    try:
        spoken_parts = read_replies(reply, reading)
    except Unreadable as error:
        return refuse("unreadable", why=str(error))
    if [_plain(part) for part in spoken_parts] == ["no"]:
        denial = _denial(case, _table_findings(normalise(question)), raw)
        if denial is not None:
            return denial
    quotations = [
        _quotation(_plain(part), case, question, answers_by_place)
        for part in spoken_parts
    ]
    refusal = _refusal(quotations)
    if refusal is not None:
        return refuse(refusal.outcome, why=refusal.why)
    quoted_places = chain.from_iterable(quotation.places for quotation in quotations)
    places = list(dict.fromkeys(quoted_places))
    fitting = _fitting_places(places, case, question)
    if not fitting:
        return refuse("out of place", why="a fact of another finding")
    fact_answer = parts_of(case.facts[fitting[0]]).answer
    outcome = "answered" if len(places) == 1 else "volunteered"
    return Answer(" ".join(fact_answer.split()), outcome, fitting[0], raw=raw)


def _answers_by_place(case: Case) -> dict[int, str]:
    """Place of a fact -> its answer, normalised, where it has one."""
    answers = {}
    for place, fact in enumerate(case.facts):
        answer = normalise(parts_of(fact).answer)
        if answer:
            answers[place] = answer
    return answers


def _plain(words: str) -> str:
    return normalise(words.removeprefix("Patient:"))


def _fitting_places(places: list[int], case: Case, question: str) -> list[int]:
    """The quoted facts that answer the question: its own, else those of a finding it asks for."""
    own_places = _own_places(places, case, question)
    if own_places:
        return own_places
    findings = findings_sought(question, case)
    if not findings:
        return places
    return [place for place in places if case.facts[place].finding in (None, *findings)]


def _leaks(raw: str, case: Case, question: str, answers: dict[int, str]) -> bool:
    """Whether a reply says the diagnosis, and no question or fact quoted, even cut off, does."""
    diagnosis = _giveaway_of((case.diagnosis, *case.accepted))
    if not diagnosis.heard_in(raw):
        return False
    cut_parts = []  # each may be cut off within a word
    for part in (raw, *re.split(r"[\[\]]", raw)):
        plain = _plain(part.strip())
        if len(plain.split()) >= LEAST:
            cut_parts.append(plain)
    plain_reply = f" {normalise(raw)} "
    sources = [question]
    for place, answer in answers.items():
        is_whole = f" {answer} " in plain_reply
        if is_whole or any(f" {part}" in f" {answer}" for part in cut_parts):
            sources.append(case.facts[place].text)
    return not diagnosis.heard_in("\n".join(sources))


@lru_cache(maxsize=1024)
def _giveaway_of(names: tuple[str, ...]) -> Giveaway:
    """What gives these names away: each telling word; of one in capitals ("ALL") only itself."""
    utterance = " ".join(name for name in names if not name.isupper())
    return giveaway(names, utterance)


class Quotation(NamedTuple):
    """The facts whose words these are, by their places, or what is wrong with the words."""

    places: list[int]
    problem: str = ""


def _quotation(
    plain: str, case: Case, question: str, answers: dict[int, str]
) -> Quotation:
    """The facts of which normalised words are the answers, in their order there."""
    if plain in _NOT_KNOWING:
        return Quotation([], "does not know")
    places = [place for place, answer in answers.items() if answer == plain]
    if not places and len(plain.split()) >= LEAST:
        places = [
            place for place, answer in answers.items() if f" {plain} " in f" {answer} "
        ]
        n_telling = sum(not _is_bare(word) for word in plain.split())
        if places and n_telling < LEAST:  # "No, I don't" is part of many a fact
            places = _own_places(places, case, question)
            if not places:
                return Quotation([], "out of place")
    if not places:
        return _joined(plain, answers)
    own_places = _own_places(places, case, question)
    if len(places) > 1:  # the same words twice: its own question tells which
        if own_places:
            return Quotation(own_places[:1])
        return Quotation([], "out of place" if _is_bare(plain) else "unreadable")
    if _is_bare(answers[places[0]]) and not own_places:
        return Quotation([], "out of place")
    return Quotation(places)


class _Refusal(NamedTuple):
    """The outcome of a reply that is not spoken, and why."""

    outcome: str
    why: str = ""


def _refusal(quotations: Sequence[Quotation]) -> _Refusal | None:
    """The gravest that is wrong with the parts of a reply; ``None`` where nothing is."""
    problems = {quotation.problem for quotation in quotations}
    for outcome, why in WHY_NOT.items():
        if outcome in problems:
            return _Refusal(outcome, why)
    if "does not know" not in problems:
        return None
    if any(quotation.places for quotation in quotations):
        return _Refusal("unreadable", "a fact and that it is not known")
    return _Refusal("does not know")


def _joined(plain: str, answers: dict[int, str]) -> Quotation:
    """Several facts' whole answers in a row, longest first: none is taken for a part of another."""
    text = f" {plain} "
    rest = text
    starts: dict[int, int] = {}
    longest_first = sorted(answers, key=lambda place: -len(answers[place]))
    for place in longest_first:
        words = f" {answers[place]} "
        if not _is_bare(answers[place]) and words in rest:
            starts[place] = text.index(words)
            rest = rest.replace(words, " | ", 1)
    between = {part.strip() for part in rest.split("|")}
    if len(starts) > 1 and between <= _BETWEEN:
        return Quotation(sorted(starts, key=lambda place: starts[place]))
    return Quotation([], "invented")


def _is_bare(plain: str) -> bool:
    """Whether no word tells anything without its question."""
    return all(word in _BARE_WORDS or word.isdigit() for word in plain.split())


def _own_places(places: list[int], case: Case, question: str) -> list[int]:
    """The places of facts that answer ``question``, in their words or the table's."""
    plain = normalise(question)
    findings = _table_findings(plain)
    own_places = []
    for place in places:
        fact = case.facts[place]
        if plain == normalise(parts_of(fact).question) or fact.finding in findings:
            own_places.append(place)
    return own_places
