"""Reads the agents' replies: questions, doctors, plans, reviews."""

from __future__ import annotations

import re
from itertools import islice
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from trustlab.choices import utf8
from trustlab.parsing import chat, json_reply
from trustlab.parsing.json_reply import Id, Strict, valid
from trustlab.parsing.marks import own_words, without_footnotes
from trustlab.parsing.reply import BLANK, Unreadable, diagnosis, groups, unnamed, whole, writable
from trustlab.records import Mark, Plan, Prescription, Reading, ReasoningFrom, Reply, normalise

MAX_WORDING, MAX_QUESTION = 600, 300  # characters
MAX_GROUPS = 20  # groups that a patient's reply may have
_DECIDES = re.compile(
    r"(enough) (?:is|has been|information is) (?:known|said|asked|told)(?: to name the diagnosis)?"
    r"|(?:the patient (?:should|must) be asked|ask(?: the patient)?|i need) (more)(?: questions)?"
)
_BLANK, _SPEAKER = chat.SAYS["blank"], chat.SAYS["speaker"]


def read_wording(reply: Reply, reading: Reading = "chat") -> str:
    """The new wording: the reply's only group in square brackets, white space made single; in chat
    also a line without brackets (:func:`trustlab.parsing.chat.spoken`), but no courtesy.

    :class:`Unreadable` where it holds no letter, more than :data:`MAX_WORDING` characters or some
    that no file takes, speaks for somebody ("Doctor:") or is a placeholder.
    """
    return _spoken(reply, "wording", MAX_WORDING, reading)


def read_question(reply: Reply, reading: Reading = "chat") -> str:
    """The doctor's question, as :func:`read_wording`, of at most :data:`MAX_QUESTION` characters; a
    question mark is asked for only without brackets."""
    return _spoken(reply, "question", MAX_QUESTION, reading)


def _spoken(reply: Reply, what: str, most: int, reading: Reading) -> str:
    text = _only(reply, what, reading)
    if not any(c.isalpha() for c in text) or len(text) > most or not utf8(text) or "\x00" in text:
        holds = f"no letter, more than {most} characters, or some that no file takes"
        raise Unreadable(f"the {what} holds {holds}")
    if _SPEAKER.search(text):
        raise Unreadable(f"the {what} speaks for doctor or patient")
    return text


def read_enough(reply: Reply, reading: Reading = "chat") -> bool:
    """Whether the doctor has heard enough: the only group, or in chat the reply, is ``enough`` or
    ``more``, or a sentence of that."""
    said = _only(reply, "decision", reading).casefold().rstrip(".!")
    if reading == "chat" and (sentence := _DECIDES.fullmatch(said)):
        said = sentence[1] or sentence[2]
    if said not in ("enough", "more"):
        raise Unreadable(f"the decision is neither enough nor more: {said[:40]!r}")
    return said == "enough"


def read_replies(reply: Reply, reading: Reading = "chat") -> list[str]:
    """What the patient says: every group in square brackets, :data:`MAX_GROUPS` at most, or in chat
    the one line that the reply is, white space made single."""
    found = [" ".join(span.text.split()) for span in islice(groups(_words(reply)), MAX_GROUPS + 1)]
    if len(found) > MAX_GROUPS:
        raise Unreadable(f"more than {MAX_GROUPS} groups in square brackets")
    if not found and (line := _line(reply, "answer", reading)) and not _SPEAKER.search(line):
        return [line]
    if not found:
        raise Unreadable("no words in square brackets")
    if any(map(_BLANK.fullmatch, found)):
        raise Unreadable(f"{BLANK} of an answer")
    return found


def _words(reply: Reply) -> str:
    return without_footnotes(own_words(whole(reply)))


def _only(reply: Reply, what: str, reading: Reading) -> str:
    words = _words(reply)
    found = [span.text for span in groups(words)]
    if not found and (line := _line(reply, what, reading)):
        return line
    if len(found) == 1 and _BLANK.fullmatch(found[0]):
        raise Unreadable(f"{BLANK} of a {what}")
    if len(found) != 1:
        several = f"{len(found)} {what}s" if found else f"no {what}"
        raise Unreadable(f"{several} in square brackets, one is needed")
    if what == "question" and "?" in words and "?" not in found[0]:
        raise Unreadable("the question stands outside the square brackets")
    return " ".join(found[0].split())


def _line(reply: Reply, what: str, reading: Reading) -> str:
    """The one line that a reply is, as chat models write it; '' where there is none."""
    text = _words(reply)
    label = f"(?x:{chat.SAYS['line_label'].pattern}){'|patient' if what == 'answer' else ''}"
    place = chat.spoken(text, label) if reading == "chat" else None
    line = " ".join(text[slice(*place)].split()) if place else ""
    ends = {"question": r"[^?:]+\?", "wording": r".+[.!?]"}.get(what, ".*")
    return line if re.fullmatch(ends, line) and not chat.SAYS["courtesy_first"].match(line) else ""


OPEN, CLOSE = "<thinking_process>", "</thinking_process>"
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


class _Said(Strict):
    id: Id
    quote: _Words | None = None
    reason: Annotated[_Words, StringConstraints(max_length=500)] | None = None


class _Rated(_Said):
    rating: Literal["SAFE", "SAFE WITH CAUTION", "UNSAFE", "UNKNOWN"]


class _Flagged(_Said):
    flag: Literal["FINE", "RISKY", "REDUNDANT", "UNKNOWN"]


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
    marks = (text.count(OPEN), text.count(CLOSE))
    if marks == (0, 0):
        thinking = reply.reasoning or "" if reasoning_from == "thought" else ""
    elif marks != (1, 1) or text.index(CLOSE) < text.index(OPEN):
        return None, None, "the reasoning does not stand in one closed section"
    else:
        thinking, _, text = text.partition(OPEN)[2].partition(CLOSE)
    thinking = thinking.strip() or None
    if (found := diagnosis(text, reading)) is None:
        return thinking, None, unnamed(text)
    return thinking, found.text, "" if thinking else "no reasoning"


def read_plan(reply: Reply, reading: Reading = "chat") -> Plan:
    """The plan: one JSON object with both lists, every entry whole."""
    return json_reply.read_json(writable(reply), _plan, chat.unwrapped, reading)


def _plan(made: Any, _: str) -> Plan:
    found = valid(_Plan, json_reply.an_object(made), "plan")
    prescribed = tuple(Prescription(p.drug, p.dose, p.route) for p in found.prescriptions)
    return Plan(prescribed, tuple(found.tests))


def read_ratings(reply: Reply, n: int, shown: str, reading: Reading = "chat") -> tuple[Mark, ...]:
    """A mark for each of ``n`` prescriptions; see :func:`_marks`."""
    return _marks(reply, n, shown, _Rated, "rating", reading)


def read_flags(reply: Reply, n: int, shown: str, reading: Reading = "chat") -> tuple[Mark, ...]:
    """A mark for each of ``n`` tests; see :func:`_marks`."""
    return _marks(reply, n, shown, _Flagged, "flag", reading)


_Marked = type[_Rated] | type[_Flagged]


def _marks(
    reply: Reply, n: int, shown: str, kind: _Marked, key: str, reading: Reading
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
        by_id = _by_id(rows, text, n, key)
    except Unreadable as error:
        return (Mark(None, missing=str(error)),) * n
    said = f" {normalise(shown)} "
    return tuple(_mark(by_id.get(i), i, said, kind, key) for i in range(1, n + 1))


def _by_id(rows: Any, text: str, n: int, key: str) -> dict[int, Any]:
    """The entries by their numbers; :class:`Unreadable` where they are not of 1 to ``n``."""
    if not isinstance(rows, list):
        raise Unreadable("no JSON list")
    ids = [row.get("id") if isinstance(row, dict) else None for row in rows]
    numbers = all(type(i) is int for i in ids)
    if not numbers or len(set(ids)) < len(ids) or set(ids) - set(range(1, n + 1)):
        raise Unreadable(f"the items marked are {str(ids)[:60]}, those asked for 1 to {n}")
    if text.count(f'"{key}"') > len(rows):
        raise Unreadable(f"{key} stands more often than there are entries")
    return {row["id"]: row for row in rows}


def _mark(row: Any, number: int, said: str, kind: _Marked, key: str) -> Mark:
    if row is None:
        return Mark(None, missing="it is not marked")
    try:
        found = valid(kind, row, f"item {number}")
    except Unreadable as error:
        return Mark(None, missing=str(error))
    quote = found.quote or None
    return Mark(getattr(found, key), quote, json_reply.quoted(quote, said), found.reason or None)
