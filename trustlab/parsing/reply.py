"""Finds the diagnosis in a reply, or why there is none."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from trustlab.parsing import chat
from trustlab.parsing.chat import Span, has_pattern, text_before
from trustlab.parsing.marks import own_turn, own_words, without_footnotes
from trustlab.records import (
    CUT,
    NO_DIAGNOSIS,
    PLACEHOLDER,
    SEVERAL,
    Reading,
    Reply,
    TokenTrace,
    normalise,
)

THINKING = f"{CUT} while thinking"  # before its answer
THOUGHT = "thought, and gave no answer"  # it ended by itself
CYCLE = f"{CUT} repeating itself"
BLANK = "a placeholder in place"  # how a reason begins for a form that nobody filled in
# NUL and halves of characters: in no text file
UNWRITABLE = re.compile("[\x00\ud800-\udfff]")


class Unreadable(ValueError):
    """A reply that does not have the asked-for form; its words say what is wrong."""


def no_answer(reply: Reply) -> str:
    """Why a reply is no answer, neither right nor wrong (cut, or missing); '' where it is one,
    readable or not."""
    is_cut = reply.finish == "length"
    if reply.reasoning is not None and reply.text == "":
        return THINKING if is_cut else THOUGHT
    if is_cut:
        return CUT
    if reply.finish == "cycle":
        return CYCLE
    if reply.text is None:
        return reply.missing or "no reply"
    return ""


def whole(reply: Reply) -> str:
    """The reply's own turn (:func:`trustlab.parsing.marks.own_turn`); :class:`Unreadable` where
    it is missing or was cut off."""
    reason = no_answer(reply)
    if reason:
        raise Unreadable(reason)
    return own_turn(reply.text or "")


def writable(reply: Reply) -> str:
    """The reply's text; :class:`Unreadable` also where no file could hold it."""
    text = whole(reply)
    if UNWRITABLE.search(text):
        raise Unreadable("characters that are no text")
    return text


MAX_CHARACTERS = 200  # a longer group is not the name of a disease
_PLACEHOLDER_WORD = re.compile(chat.WORDS["form"])
"""Brackets that hold nothing else, but numbers and single letters, were never filled in."""
# a letter that numbers ("Disease A"), and the end of a genitive
_LETTER = re.compile("[A-Zs]")
_BRACKET_OR_LINE_END = re.compile(r"[\[\]\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")


def groups(text: str) -> Iterator[Span]:
    """Every group of ``text`` in square brackets with something in it, in order, with the place of
    its trimmed content."""
    pairs = _bracket_pairs(text)
    every = set(pairs)
    last_end = -1
    for start, end in sorted(pairs):
        if start < last_end:  # inside the last
            continue
        last_end = end
        while (start + 1, end - 1) in every:
            start += 1
            end -= 1
        content = text[start + 1 : end]
        words = content.strip()
        if words and "[" not in content and "]" not in content:
            first = start + 1 + content.index(words)
            yield Span(words, first, first + len(words))


def _bracket_pairs(text: str) -> list[tuple[int, int]]:
    """Where a bracket opens, and where it closes on the same line."""
    openings: list[int] = []
    pairs: list[tuple[int, int]] = []
    for mark in _BRACKET_OR_LINE_END.finditer(text):
        if mark[0] == "[":
            openings.append(mark.start())
        elif mark[0] != "]":
            openings.clear()
        elif openings:
            pairs.append((openings.pop(), mark.start()))
    return pairs


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
    bracketed = _bracketed_names(words)
    if bracketed:
        names = {normalise(span.text) for span in bracketed}
        if len(names) > 1 or _is_doubted(words, bracketed):
            return None
        return bracketed[-1]
    if not words or reading != "chat":
        return None
    span = chat.name(without_footnotes(words))
    if span is None:
        return None
    text_there = words[span.start : span.stop]
    if not _can_name(text_there):
        return None
    return Span(text_there, span.start, span.stop)


def _bracketed_names(words: str) -> list[Span]:
    """The groups that can name a disease."""
    return [
        span
        for span in groups(words)
        if _can_name(span.text) and not _is_escaped(words, span)
    ]


def _is_doubted(words: str, bracketed: list[Span]) -> bool:
    """Whether one of these groups is denied, or the words around them give another name."""
    for span in bracketed:
        lead = text_before(words, span.start, 40)
        if has_pattern(lead, "denied_here"):
            return True
    around = _without_groups(words, bracketed)
    other = chat.name(around)
    if other is None or not chat.is_whole(around, other):
        return False
    if re.findall(r"\w+", other.text) == re.findall(r"\w+", around):
        first = bracketed[0]
        lead = around[: first.start].rstrip("[( \t\n*")
        if first.start < other.start or has_pattern(lead, "goes_in"):
            return False  # no name in front of the group
    return normalise(other.text) != normalise(bracketed[-1].text)


def _without_groups(words: str, bracketed: list[Span]) -> str:
    """The words with blanks in the place of groups and their brackets, and of footnotes."""
    around = words
    for span in bracketed:
        around = _blanked(around, span.start, span.stop)
    around = without_footnotes(around)
    for empty in re.finditer(r"\[+ +\]+", around):
        around = _blanked(around, empty.start(), empty.end())
    return around


def _blanked(text: str, start: int, stop: int) -> str:
    """The text with blanks from ``start`` to before ``stop``."""
    blanks = " " * (stop - start)
    return text[:start] + blanks + text[stop:]


def diagnosis_reply(reply: Reply, reading: Reading = "chat") -> Reply:
    """``reply`` reduced to its diagnosis: ``text`` its name, ``raw`` the whole, ``trace`` its
    tokens; without one ``text`` and ``trace`` are ``None``, and ``missing`` says why.
    ``ValueError``: the tokens do not spell the reply."""
    reason = no_answer(reply)
    span = None if reason else diagnosis(reply.text, reading)
    text = reply.text
    if span is None or text is None:
        raw = reply.raw if text is None else text
        missing = reason or unnamed(text)
        return replace(reply, text=None, raw=raw, trace=None, missing=missing)
    trace = None
    if reply.trace is not None:
        trace = _trace_of(span, reply.trace, text)
    return replace(reply, text=span.text, raw=text, trace=trace, missing=None)


def _trace_of(span: Span, trace: TokenTrace, text: str) -> TokenTrace:
    """The tokens of a part of a reply's text."""
    spelt = "".join(trace.tokens)
    if spelt != text:
        raise ValueError(f"the tokens spell {spelt[:80]!r}, the reply is {text[:80]!r}")
    inside = []
    end = 0
    for i, token in enumerate(trace.tokens):
        start = end
        end += len(token)
        if start < span.stop and max(end, start + 1) > span.start:
            inside.append(i)
    return trace.part(inside[0], inside[-1] + 1)


def is_placeholder(text: str) -> bool:
    r"""Whether the content of brackets is a form that nobody filled in ("Patient's Name", "Insert
    diagnosis here", "X", "..."), a code ("J18.9"), or was escaped (``\[...\]``); "unknown" is none.
    """
    plain = text.casefold().replace("_", " ").strip(" .:#\"'")
    if text.endswith("\\") or plain == "x" or not any(map(str.isalnum, text)):
        return True
    parts = re.split(r"[\W_]+", text.strip(" .:#\"'"))
    words = [
        w.casefold()
        for w in parts
        if w and not w.isdigit() and not _LETTER.fullmatch(w)
    ]
    if words and all(map(_PLACEHOLDER_WORD.fullmatch, words)):
        return True
    is_code = chat.PATTERNS["code"].fullmatch(plain)
    return bool(is_code or chat.PATTERNS["instruction"].match(plain))


def unnamed(text: str | None) -> str:
    """Why a reply names no diagnosis: :data:`SEVERAL`, :data:`PLACEHOLDER` or
    :data:`NO_DIAGNOSIS`."""
    words = own_words(text or "")
    if _bracketed_names(words):
        return SEVERAL
    for span in groups(words):
        if is_placeholder(span.text) or _is_escaped(words, span):
            return PLACEHOLDER
    return NO_DIAGNOSIS


def _is_escaped(text: str, span: Span) -> bool:
    """Whether the bracket in front of this content is escaped."""
    return text[: span.start].rstrip(" \t").rstrip("[").endswith("\\")


def _can_name(text: str) -> bool:
    """Whether a text can be a disease's name."""
    if len(text) > MAX_CHARACTERS or is_placeholder(text):
        return False
    if UNWRITABLE.search(text) or not any(map(str.isalpha, text)):
        return False
    return not (len(text) == 1 and text.isascii()) and not _is_number(text)


def _is_number(text: str) -> bool:
    """Whether Python reads a text as a number: "1e2", "inf"."""
    try:
        float(text)
    except ValueError:
        return False
    return True
