"""Answers a doctor's question from the case's facts alone. Spoken is a fact, the knowledge table's
denial of what is not so, or "I don't know."; what it tried is counted."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from zlib import crc32

from trustlab.agents.asking import put, read_by, reply_room, request
from trustlab.knowledge.findings import load_knowledge
from trustlab.knowledge.giveaway import Giveaway, giveaway
from trustlab.knowledge.words import word_lists
from trustlab.models.base import About, Model
from trustlab.parsing.agents import read_replies
from trustlab.parsing.reply import Unreadable
from trustlab.records import Case, Reading, Reply, Statement, normalise

ENDING = "-consultation"
"""What is added to the name of a data set of consultations."""
UNKNOWN, NOT_SO = "I don't know.", "not so"
OUTCOMES = (
    "answered", "does not know", "volunteered", "invented", "leaked", "out of place", "unreadable",
)  # fmt: skip
"""What a patient's reply may be (:func:`read_answer`); the first and third alone are spoken."""
MAX_TOKENS = 160
LEAST = 3
"""Telling words (not :data:`_BARE`) by which a part of an answer points at its fact."""
_WORDS = word_lists("patient")
_UNKNOWN = {normalise(words) for words in _WORDS["unknown"]}
_EXCHANGE = re.compile(r"Doctor: (.+?)\nPatient: (.+)", re.DOTALL)
_ALONE = re.compile(r"(Doctor|Patient): (.+)", re.DOTALL)
_BETWEEN = frozenset(("", "and", "also", "and also", "but"))
WHY_NOT = {
    "invented": "words of no fact",
    "unreadable": "words of several facts",
    "out of place": "an answer to another question",
}
"""Outcome of words that are no answer -> why, the gravest first."""
_BARE = frozenset(_WORDS["bare"].split())
"""Words that tell nothing without their question, as digits do."""


@dataclass(frozen=True)
class Said:
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
        fact = Statement("") if self.fact is None else case.facts[self.fact]
        return Statement(text, fact.finding, fact.affirmed)


@dataclass(frozen=True)
class ModelPatient:
    """A patient for whom ``model`` speaks; ``reading``: how its replies are read."""

    model: Model
    seed: int = 0
    reading: Reading = "chat"

    def answer(
        self, asked: Sequence[tuple[Case, str]], turn: int
    ) -> list[tuple[Said, Reply | None]]:
        """What is said to each (case, question), one batch, with the reply behind it."""
        room, requests = reply_room(self.model, MAX_TOKENS), []
        for case, question in asked:
            about = About(f"{case.dataset}{ENDING}", case.case_id, turn)
            about = read_by(about, partial(_said, case=case, question=question), self.reading)
            options = ("complete",) if case.denies else ()
            facts = "\n".join(s.text for s in case.facts)
            fill = {"facts": facts, "question": question, "options": options}
            requests.append(request("patient", self.model, room, self.seed, about, **fill))
        replies = put(self.model, requests)
        pairs = zip(replies, asked, strict=True)
        return [(read_answer(r, *of, self.reading), r) for r, of in pairs]


class FactPatient:
    """A stand-in without a model: it answers the knowledge table's questions and the case's own."""

    def answer(
        self, asked: Sequence[tuple[Case, str]], turn: int
    ) -> list[tuple[Said, Reply | None]]:
        """What is said to each (case, question); nothing is asked of a model."""
        return [(self.said(case, question), None) for case, question in asked]

    def said(self, case: Case, question: str) -> Said:
        """The fact that the question asks for; where there is none, ``why``: the finding is not so,
        not told, facts do not say which findings they tell, or nobody knows the question."""
        plain = normalise(question)
        findings = findings_of_question().get(plain, frozenset())
        own = [i for i, s in enumerate(case.facts) if normalise(parts_of(s)[0]) == plain]
        told = [i for i, s in enumerate(case.facts) if s.finding in findings]
        for i in (*own, *told):
            if words := parts_of(case.facts[i])[1]:
                return Said(" ".join(words.split()), "answered", i)
        if denial := _denial(case, findings):
            return denial
        marked = case.denies or all(s.finding for s in case.statements if parts_of(s)[1])
        why = "not told" if marked else "findings not marked"
        return Said(UNKNOWN, "does not know", why=why if findings else "not a known question")


@lru_cache(maxsize=1)
def findings_of_question() -> dict[str, frozenset[str]]:
    """Question of the knowledge table, normalised -> the findings that it asks for."""
    found: dict[str, frozenset[str]] = {}
    for finding in load_knowledge().findings.values():
        key = normalise(finding.question)
        found[key] = found.get(key, frozenset()) | {finding.id}
    return found


def findings_asked(question: str, case: Case) -> frozenset[str]:
    """The findings that ``question`` asks for, in the table's words or the case's; empty where that
    is not known."""
    plain = normalise(question)
    held = (s for s in case.statements if s.finding and plain)
    own = {s.finding for s in held if s.finding and normalise(parts_of(s)[0]) == plain}
    return findings_of_question().get(plain, frozenset()) | own


def parts_of(statement: Statement) -> tuple[str, str]:
    """(question, patient's words) of a statement, '' for none; running text is the latter."""
    if exchange := _EXCHANGE.fullmatch(statement.text):
        return exchange[1], exchange[2]
    if alone := _ALONE.fullmatch(statement.text):
        return (alone[2], "") if alone[1] == "Doctor" else ("", alone[2])
    return "", statement.text


def _denial(case: Case, findings: Collection[str], raw: str = "") -> Said | None:
    """The knowledge table's words for what is not so, in a wording that is the case's; ``None``
    unless one known finding is asked for that no fact has and that the case denies.
    A follow-up's denial is that of what it follows ("where does it hurt?": nothing does)."""
    if len(findings) != 1 or any(s.finding in findings for s in case.facts):
        return None
    (finding,) = findings
    known, so = load_knowledge().findings, {s.finding for s in case.facts if s.affirmed}
    parent = known[finding].parent
    finding = finding if parent is None or parent in so else parent
    if finding not in case.denies:
        return None
    deny = known[finding].deny
    words = deny[crc32(f"{case.case_id} {finding}".encode()) % len(deny)]
    return Said(words, "answered", why=NOT_SO, raw=raw, denied=finding)


def _said(reply: Reply, case: Case, question: str, reading: Reading) -> dict[str, str]:
    """What a reply may say aloud, and how that is called."""
    said = read_answer(reply, case, question, reading)
    if said.outcome == "unreadable":
        raise Unreadable(said.why)
    return {"outcome": said.outcome, "words": said.words}


def read_answer(reply: Reply, case: Case, question: str, reading: Reading = "chat") -> Said:
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
    answers = {i: a for i, s in enumerate(case.facts) if (a := normalise(parts_of(s)[1]))}

    def refused(outcome: str, why: str = "") -> Said:
        return Said(UNKNOWN, outcome, why=why, raw=raw)

    if _leaks(raw, case, question, answers):
        return refused("leaked", "names the diagnosis")
    try:
        replies = read_replies(reply, reading)
        known = findings_of_question().get(normalise(question), frozenset())
        no = [normalise(words.removeprefix("Patient:")) for words in replies] == ["no"]
        if no and (denial := _denial(case, known, raw)):
            return denial
        found = [_facts_in(words, case, question, answers) for words in replies]
    except Unreadable as error:
        return refused("unreadable", str(error))
    facts = list(dict.fromkeys(i for hits, _ in found for i in hits))
    problems = {problem for _, problem in found} - {""}
    for outcome, why in WHY_NOT.items():
        if outcome in problems:
            return refused(outcome, why)
    if "does not know" in problems:
        both = "a fact and that it is not known"
        return refused("unreadable", both) if facts else refused("does not know")
    asked = findings_asked(question, case)
    own = [i for i in facts if _is_own(question, case.facts[i])]
    fitting = own or [i for i in facts if not asked or case.facts[i].finding in (None, *asked)]
    if not fitting:
        return refused("out of place", "a fact of another finding")
    words = " ".join(parts_of(case.facts[fitting[0]])[1].split())
    return Said(words, "answered" if len(facts) == 1 else "volunteered", fitting[0], raw=raw)


def _leaks(raw: str, case: Case, question: str, answers: dict[int, str]) -> bool:
    """Whether a reply says the diagnosis, and no question or fact quoted, even cut off, does."""
    names = _names((case.diagnosis, *case.accepted))
    if not names.heard_in(raw):
        return False
    parts = (p.strip().removeprefix("Patient:") for p in (raw, *re.split(r"[\[\]]", raw)))
    cut = [p for p in map(normalise, parts) if len(p.split()) >= LEAST]  # off within a word, too
    whole = f" {normalise(raw)} "
    quoted = [
        case.facts[i].text
        for i, answer in answers.items()
        if f" {answer} " in whole or any(f" {p}" in f" {answer}" for p in cut)
    ]
    return not names.heard_in("\n".join([question, *quoted]))


@lru_cache(maxsize=1024)
def _names(names: tuple[str, ...]) -> Giveaway:
    """What gives these names away: each telling word; of one in capitals ("ALL") only itself."""
    return giveaway(names, " ".join(name for name in names if not name.isupper()))


def _facts_in(
    words: str, case: Case, question: str, answers: dict[int, str]
) -> tuple[list[int], str]:
    """The facts that ``words`` are, in their order there, and '' or what is wrong with them."""
    plain = normalise(words.removeprefix("Patient:"))
    if plain in _UNKNOWN:
        return [], "does not know"

    def own(hits: list[int]) -> list[int]:
        return [i for i in hits if _is_own(question, case.facts[i])]

    hits = [i for i, a in answers.items() if a == plain]
    if not hits and len(plain.split()) >= LEAST:
        hits = [i for i, a in answers.items() if f" {plain} " in f" {a} "]
        n_telling = sum(not _is_bare(word) for word in plain.split())
        if hits and n_telling < LEAST:  # "No, I don't" is part of many a fact
            hits = own(hits)
            if not hits:
                return [], "out of place"
    if len(hits) > 1:  # the same words twice: its own question tells which
        hits = own(hits)[:1]
        if not hits:
            return [], "out of place" if _is_bare(plain) else "unreadable"
    if hits:
        bare = _is_bare(answers[hits[0]]) and not own(hits[:1])
        return ([], "out of place") if bare else (hits, "")
    return _joined(plain, answers)


def _joined(plain: str, answers: dict[int, str]) -> tuple[list[int], str]:
    """Several facts' whole answers in a row, longest first: none is taken for a part of another."""
    rest, places = f" {plain} ", {}
    for i, answer in sorted(answers.items(), key=lambda item: -len(item[1])):
        if not _is_bare(answer) and f" {answer} " in rest:
            places[i] = f" {plain} ".index(f" {answer} ")
            rest = rest.replace(f" {answer} ", " | ", 1)
    if len(places) > 1 and all(part.strip() in _BETWEEN for part in rest.split("|")):
        return sorted(places, key=lambda i: places[i]), ""
    return [], "invented"


def _is_bare(plain: str) -> bool:
    return all(word in _BARE or word.isdigit() for word in plain.split())


def _is_own(question: str, statement: Statement) -> bool:
    """Whether ``question`` is the one that the statement answers, in its words or the table's."""
    plain = normalise(question)
    known = findings_of_question().get(plain, ())
    return plain == normalise(parts_of(statement)[0]) or statement.finding in known
