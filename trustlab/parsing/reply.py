"""Finds the diagnosis in a reply, or why there is none."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate
from typing import TypeVar

from trustlab.parsing import chat
from trustlab.parsing.marks import own_turn, own_words, without_footnotes
from trustlab.records import CUT, NO_DIAGNOSIS, PLACEHOLDER, SEVERAL, Reading, Reply, normalise

THINKING = f"{CUT} while thinking"  # before its answer
THOUGHT = "thought, and gave no answer"  # it ended by itself
CYCLE = f"{CUT} repeating itself"
BLANK = "a placeholder in place"  # how a reason begins for a form that nobody filled in
UNWRITABLE = re.compile("[\x00\ud800-\udfff]")  # NUL and halves of characters: in no text file


class Unreadable(ValueError):
    """A reply that does not have the asked-for form; its words say what is wrong."""


T = TypeVar("T")


def read(printed: Callable[[], T], chatted: Callable[[], T], reading: Reading) -> T:
    """What ``printed`` reads; where it refuses and ``reading`` is "chat", what ``chatted`` reads.
    :class:`Unreadable`: of the first, or of the second where the first found no JSON."""
    try:
        return printed()
    except Unreadable as refused:
        if reading == "strict":
            raise
        try:
            return chatted()
        except Unreadable as again:
            raise (again if str(refused).startswith("no JSON") else refused) from None


def no_answer(reply: Reply) -> str:
    """Why a reply is no answer, neither right nor wrong (cut, or missing); '' where it is one,
    readable or not."""
    if reply.reasoning is not None and reply.text == "":
        return THINKING if reply.finish == "length" else THOUGHT
    if reply.finish in ("length", "cycle"):
        return CUT if reply.finish == "length" else CYCLE
    return "" if reply.text is not None else reply.missing or "no reply"


def whole(reply: Reply) -> str:
    """The reply's own turn (:func:`trustlab.parsing.marks.own_turn`); :class:`Unreadable` where
    it is missing or was cut off."""
    if why := no_answer(reply):
        raise Unreadable(why)
    return own_turn(reply.text or "")


def writable(reply: Reply) -> str:
    """The reply's text; :class:`Unreadable` also where no file could hold it."""
    if UNWRITABLE.search(text := whole(reply)):
        raise Unreadable("characters that are no text")
    return text


MAX_CHARACTERS = 200  # a longer group is not the name of a disease
_FORM = re.compile(chat.WORDS["form"])
"""Brackets that hold nothing else, but numbers and single letters, were never filled in."""
_LETTER = re.compile("[A-Zs]")  # a letter that numbers ("Disease A"), and the end of a genitive
_MARK = re.compile(r"[\[\]\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")


@dataclass(frozen=True)
class Span:
    """A part of a reply: ``reply[start:stop] == text``."""

    text: str
    start: int
    stop: int


def groups(text: str) -> Iterator[Span]:
    """Every group of ``text`` with something in it, in order, with the place of its trimmed
    content."""
    opened: list[int] = []
    pairs: list[tuple[int, int]] = []
    for mark in _MARK.finditer(text):
        if mark[0] == "[":
            opened.append(mark.start())
        elif mark[0] != "]":
            opened.clear()
        elif opened:
            pairs.append((opened.pop(), mark.start()))
    outermost: list[tuple[int, int]] = []
    for pair in sorted(pairs):
        if not outermost or pair[0] > outermost[-1][1]:
            outermost.append(pair)
    every = set(pairs)
    for a, b in outermost:
        while (a + 1, b - 1) in every:
            a, b = a + 1, b - 1
        content = text[a + 1 : b]
        trimmed = content.strip()
        if trimmed and "[" not in content and "]" not in content:
            start = a + 1 + content.index(trimmed)
            yield Span(trimmed, start, start + len(trimmed))


@lru_cache(maxsize=1 << 12)
def diagnosis(text: str | None, reading: Reading = "chat") -> Span | None:
    """The one name in square brackets, with its place in ``text`` (the last, if it stands there
    several times); ``None`` where there is none, it is denied ("not [Flu]"), or there are several
    different ones, in brackets or around them ("Diagnosis: Flu [Croup]").

    It holds a letter and at most 200 characters that a file can hold. Passed over are a number
    ("1e2"), one Latin letter (``[x]``), a placeholder (:func:`is_placeholder`), sources and labels
    (:func:`trustlab.parsing.marks.own_words`); "unknown" is graded. Without a group
    ``reading="chat"`` takes :func:`trustlab.parsing.chat.name`.
    """
    words = own_words(text or "")
    named = _named(words)
    if named:
        names = {normalise(span.text) for span in named}
        return named[-1] if len(names) == 1 and not _doubted(words, named) else None
    place = chat.name(without_footnotes(words)) if words and reading == "chat" else None
    if place is None:
        return None
    span = Span(words[slice(*place)], *place)
    return span if _can_name(span.text) else None


def _named(words: str) -> list[Span]:
    """The groups that can name a disease."""
    return [one for one in groups(words) if _can_name(one.text) and not _escaped(words, one)]


def _doubted(words: str, named: list[Span]) -> bool:
    """Whether one of these groups is denied, or the words around them give another name."""
    around = words
    for span in named:
        if chat.SAYS["denied_here"].search(words[max(0, span.start - 40) : span.start]):
            return True
        around = around[: span.start] + " " * len(span.text) + around[span.stop :]
    around = re.sub(r"\[+ +\]+", lambda empty: " " * len(empty[0]), without_footnotes(around))
    place = chat.name(around)
    if place is None or not chat.is_whole(around, *place):
        return False
    other = around[slice(*place)]
    lead = around[: named[0].start].rstrip("[( \t\n*")
    bare = re.findall(r"\w+", other) == re.findall(r"\w+", around)  # a name in front of the group
    if bare and (named[0].start < place[0] or chat.SAYS["goes_in"].search(lead)):
        return False
    return normalise(other) != normalise(named[-1].text)


def diagnosis_reply(reply: Reply, reading: Reading = "chat") -> Reply:
    """``reply`` reduced to its diagnosis: ``text`` its name, ``raw`` the whole, ``trace`` its
    tokens; without one ``text`` and ``trace`` are ``None``, and ``missing`` says why.
    ``ValueError``: the tokens do not spell the reply."""
    why = no_answer(reply)
    span = None if why else diagnosis(reply.text, reading)
    if span is None or reply.text is None:
        raw = reply.raw if reply.text is None else reply.text
        return replace(reply, text=None, raw=raw, trace=None, missing=why or unnamed(reply.text))
    trace = reply.trace
    if trace is not None:
        if (spelt := "".join(trace.tokens)) != reply.text:
            what = f"the tokens spell {spelt[:80]!r}, the reply is {reply.text[:80]!r}"
            raise ValueError(what)
        ends = list(accumulate(map(len, trace.tokens)))
        places = enumerate(zip([0, *ends[:-1]], ends, strict=True))
        inside = [i for i, (a, b) in places if a < span.stop and max(b, a + 1) > span.start]
        trace = trace.part(inside[0], inside[-1] + 1)
    return replace(reply, text=span.text, raw=reply.text, trace=trace, missing=None)


def is_placeholder(text: str) -> bool:
    r"""Whether the content of brackets is a form that nobody filled in ("Patient's Name", "Insert
    diagnosis here", "X", "..."), a code ("J18.9"), or was escaped (``\[...\]``); "unknown" is none.
    """
    said = text.casefold().replace("_", " ").strip(" .:#\"'")
    named = re.split(r"[\W_]+", text.strip(" .:#\"'"))
    words = [w.casefold() for w in named if not (w.isdigit() or _LETTER.fullmatch(w)) and w]
    if text.endswith("\\") or said == "x" or not any(c.isalnum() for c in text):
        return True
    if words and all(_FORM.fullmatch(word) for word in words):
        return True
    return bool(chat.SAYS["code"].fullmatch(said) or chat.SAYS["instruction"].match(said))


def unnamed(text: str | None) -> str:
    """Why a reply names no diagnosis: :data:`SEVERAL`, :data:`PLACEHOLDER` or
    :data:`NO_DIAGNOSIS`."""
    words = own_words(text or "")
    if _named(words):
        return SEVERAL
    blank = any(is_placeholder(span.text) or _escaped(words, span) for span in groups(words))
    return PLACEHOLDER if blank else NO_DIAGNOSIS


def _escaped(text: str, span: Span) -> bool:
    """Whether the bracket in front of this content is escaped."""
    return text[: span.start].rstrip(" \t").rstrip("[").endswith("\\")


def _can_name(text: str) -> bool:
    if len(text) > MAX_CHARACTERS or is_placeholder(text):
        return False
    if UNWRITABLE.search(text) or not any(c.isalpha() for c in text):
        return False
    return not (len(text) == 1 and text.isascii()) and not _is_number(text)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
