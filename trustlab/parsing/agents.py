"""Reads the agents' replies: questions, doctors, plans, reviews."""

from __future__ import annotations

import re
from itertools import islice
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, StringConstraints

from trustlab.choices import utf8
from trustlab.parsing import chat, json_reply
from trustlab.parsing.chat import has_pattern
from trustlab.parsing.json_reply import Id, Strict, valid
from trustlab.parsing.marks import own_words, without_footnotes
from trustlab.parsing.reply import (
    BLANK,
    Unreadable,
    diagnosis,
    groups,
    unnamed,
    whole,
    writable,
)
from trustlab.records import (
    Mark,
    Plan,
    Prescription,
    Reading,
    ReasoningFrom,
    Reply,
    normalise,
)

MAX_WORDING = 600  # characters
MAX_QUESTION = 300  # characters
MAX_GROUPS = 20  # groups that a patient's reply may have
_DECIDES = re.compile(
    r"(enough) (?:is|has been|information is) (?:known|said|asked|told)(?: to name the diagnosis)?"
    r"|(?:the patient (?:should|must) be asked|ask(?: the patient)?|i need) (more)(?: questions)?"
)
_BLANK = chat.PATTERNS["blank"]


def read_wording(reply: Reply, reading: Reading = "chat") -> str:
    """The new wording: the reply's only group in square brackets, white space made single; in chat
    also a line without brackets (:func:`trustlab.parsing.chat.spoken`), but no courtesy.

    :class:`Unreadable` where it holds no letter, more than :data:`MAX_WORDING` characters or some
    that no file takes, speaks for somebody ("Doctor:") or is a placeholder.
    """
    return _utterance(reply, "wording", MAX_WORDING, reading)


def read_question(reply: Reply, reading: Reading = "chat") -> str:
    """The doctor's question, as :func:`read_wording`, of at most :data:`MAX_QUESTION` characters; a
    question mark is asked for only without brackets."""
    return _utterance(reply, "question", MAX_QUESTION, reading)


def _utterance(reply: Reply, what: str, most: int, reading: Reading) -> str:
    """The only utterance of a reply, of at most ``most`` characters."""
    text = _only_group(reply, what, reading)
    has_letter = any(map(str.isalpha, text))
    is_writable = utf8(text) and "\x00" not in text
    if len(text) > most or not has_letter or not is_writable:
        faults = f"no letter, more than {most} characters, or some that no file takes"
        raise Unreadable(f"the {what} holds {faults}")
    if has_pattern(text, "speaker"):
        raise Unreadable(f"the {what} speaks for doctor or patient")
    return text


def read_enough(reply: Reply, reading: Reading = "chat") -> bool:
    """Whether the doctor has heard enough: the only group, or in chat the reply, is ``enough`` or
    ``more``, or a sentence of that."""
    decision = _only_group(reply, "decision", reading).casefold().rstrip(".!")
    if reading == "chat":
        sentence = _DECIDES.fullmatch(decision)
        if sentence:
            decision = sentence[1] or sentence[2]
    if decision not in ("enough", "more"):
        raise Unreadable(f"the decision is neither enough nor more: {decision[:40]!r}")
    return decision == "enough"


def read_replies(reply: Reply, reading: Reading = "chat") -> list[str]:
    """What the patient says: every group in square brackets, :data:`MAX_GROUPS` at most, or in chat
    the one line that the reply is, white space made single."""
    spans = islice(groups(_answer_words(reply)), MAX_GROUPS + 1)
    answers = [" ".join(span.text.split()) for span in spans]
    if len(answers) > MAX_GROUPS:
        raise Unreadable(f"more than {MAX_GROUPS} groups in square brackets")
    if not answers:
        line = _only_line(reply, "answer", reading)
        if not line or has_pattern(line, "speaker"):
            raise Unreadable("no words in square brackets")
        return [line]
    if any(map(_BLANK.fullmatch, answers)):
        raise Unreadable(f"{BLANK} of an answer")
    return answers


def _answer_words(reply: Reply) -> str:
    """The words of a reply without sources and footnotes."""
    return without_footnotes(own_words(whole(reply)))


def _only_group(reply: Reply, what: str, reading: Reading) -> str:
    """The only group in square brackets, or in chat the only line."""
    words = _answer_words(reply)
    group_texts = [span.text for span in groups(words)]
    if not group_texts:
        line = _only_line(reply, what, reading)
        if not line:
            raise Unreadable(f"no {what} in square brackets, one is needed")
        return line
    if len(group_texts) > 1:
        raise Unreadable(
            f"{len(group_texts)} {what}s in square brackets, one is needed"
        )
    text = group_texts[0]
    if _BLANK.fullmatch(text):
        raise Unreadable(f"{BLANK} of a {what}")
    if what == "question" and "?" in words and "?" not in text:
        raise Unreadable("the question stands outside the square brackets")
    return " ".join(text.split())


_LINE_FORMS = {"question": r"[^?:]+\?", "wording": r".+[.!?]"}
"""What is asked for -> the form of a line without brackets; any other line will do."""


def _only_line(reply: Reply, what: str, reading: Reading) -> str:
    """The one line that a reply is, as chat models write it; '' where there is none."""
    if reading != "chat":
        return ""
    label = f"(?x:{chat.PATTERNS['line_label'].pattern})"
    if what == "answer":
        label += "|patient"
    span = chat.spoken(_answer_words(reply), label)
    line = " ".join(span.text.split()) if span else ""
    if not re.fullmatch(_LINE_FORMS.get(what, ".*"), line):
        return ""
    if chat.PATTERNS["courtesy_first"].match(line):
        return ""
    return line


OPEN = "<thinking_process>"
CLOSE = "</thinking_process>"
MAX_ITEMS = 30  # prescriptions, or tests, of the longest plan
_Name = Annotated[
    str,
    StringConstraints(
        strip_whitespace=True, min_length=1, max_length=120, pattern=r"^[^\x00-\x1f]*$"
    ),
]
_Words = Annotated[str, StringConstraints(strip_whitespace=True, pattern=r"^[^\x00]*$")]


class _Prescription(Strict):
    drug: _Name
    dose: _Name
    route: _Name


class _Plan(Strict):
    prescriptions: Annotated[list[_Prescription], Field(max_length=MAX_ITEMS)]
    tests: Annotated[list[_Name], Field(max_length=MAX_ITEMS)]


class _Item(Strict):
    id: Id
    quote: _Words | None = None
    reason: Annotated[_Words, StringConstraints(max_length=500)] | None = None


class _Rated(_Item):
    mark_key: ClassVar = "rating"
    rating: Literal["SAFE", "SAFE WITH CAUTION", "UNSAFE", "UNKNOWN"]

    @property
    def mark(self) -> str:
        return self.rating


class _Flagged(_Item):
    mark_key: ClassVar = "flag"
    flag: Literal["FINE", "RISKY", "REDUNDANT", "UNKNOWN"]

    @property
    def mark(self) -> str:
        return self.flag


def read_opinion(
    reply: Reply, reading: Reading = "chat", reasoning_from: ReasoningFrom = "section"
) -> tuple[str | None, str | None, str]:
    """(reasoning, diagnosis, why something is missing).

    The diagnosis is read behind the section of reasoning. Without a section
    ``reasoning_from="thought"`` takes what the model thought before its reply; one that is not
    closed, or a second one, makes the whole unreadable.
    """
    try:
        text = writable(reply)
    except Unreadable as error:
        return None, None, str(error)
    n_marks = (text.count(OPEN), text.count(CLOSE))
    if n_marks == (0, 0):
        reasoning = reply.reasoning if reasoning_from == "thought" else None
    elif n_marks != (1, 1) or text.index(CLOSE) < text.index(OPEN):
        return None, None, "the reasoning does not stand in one closed section"
    else:
        section = text.partition(OPEN)[2]
        reasoning, _, text = section.partition(CLOSE)
    reasoning = (reasoning or "").strip() or None
    span = diagnosis(text, reading)
    if span is None:
        return reasoning, None, unnamed(text)
    return reasoning, span.text, "" if reasoning else "no reasoning"


def read_plan(reply: Reply, reading: Reading = "chat") -> Plan:
    """The plan: one JSON object with both lists, every entry whole."""
    return json_reply.read_json(writable(reply), _plan, chat.unwrapped, reading)


def _plan(value: Any, _: str) -> Plan:
    plan = valid(_Plan, json_reply.an_object(value), "plan")
    prescriptions = []
    for row in plan.prescriptions:
        prescriptions.append(Prescription(row.drug, row.dose, row.route))
    return Plan(tuple(prescriptions), tuple(plan.tests))


def read_ratings(
    reply: Reply, n: int, shown: str, reading: Reading = "chat"
) -> tuple[Mark, ...]:
    """A mark for each of ``n`` prescriptions; see :func:`_marks`."""
    return _marks(reply, n, shown, _Rated, reading)


def read_flags(
    reply: Reply, n: int, shown: str, reading: Reading = "chat"
) -> tuple[Mark, ...]:
    """A mark for each of ``n`` tests; see :func:`_marks`."""
    return _marks(reply, n, shown, _Flagged, reading)


_Marked = type[_Rated] | type[_Flagged]


def _marks(
    reply: Reply, n: int, shown: str, kind: _Marked, reading: Reading
) -> tuple[Mark, ...]:
    """A mark for each item, by its number from 1; ``shown`` is what quotations are looked up in.

    An item that is not marked, or wrongly, is unreadable; all are where the reply is no list of
    these items, each once.
    """
    try:
        text = writable(reply)
        if reading == "chat":
            rows, text = json_reply.chatted(text, chat.rows)
        else:
            rows = json_reply.only_value(json_reply.json_value(text))
        rows_by_id = _rows_by_id(rows, text, n, kind)
    except Unreadable as error:
        return (Mark(None, missing=str(error)),) * n
    shown_words = f" {normalise(shown)} "
    marks = []
    for number in range(1, n + 1):
        row = rows_by_id.get(number)
        marks.append(_mark(row, number, shown_words, kind))
    return tuple(marks)


def _rows_by_id(rows: Any, text: str, n: int, kind: _Marked) -> dict[int, Any]:
    """The entries by their numbers; :class:`Unreadable` where they are not of 1 to ``n``."""
    if not isinstance(rows, list):
        raise Unreadable("no JSON list")
    ids = []
    for row in rows:
        ids.append(row.get("id") if isinstance(row, dict) else None)
    are_numbers = all(type(number) is int for number in ids)
    are_distinct = are_numbers and len(set(ids)) == len(ids)
    if not are_distinct or set(ids) - set(range(1, n + 1)):
        raise Unreadable(
            f"the items marked are {str(ids)[:60]}, those asked for 1 to {n}"
        )
    if text.count(f'"{kind.mark_key}"') > len(rows):
        raise Unreadable(f"{kind.mark_key} stands more often than there are entries")
    return dict(zip(ids, rows, strict=True))


def _mark(row: Any, number: int, shown_words: str, kind: _Marked) -> Mark:
    if row is None:
        return Mark(None, missing="it is not marked")
    try:
        item = valid(kind, row, f"item {number}")
    except Unreadable as error:
        return Mark(None, missing=str(error))
    quote = item.quote or None
    is_quoted = json_reply.is_quoted(quote, shown_words)
    return Mark(item.mark, quote, is_quoted, item.reason or None)
