"""What a reply says as a whole: was it cut, is there an answer, what stands in brackets."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate
from typing import TypeVar

from trustlab.parsing import chat
from trustlab.records import CUT, NO_DIAGNOSIS, PLACEHOLDER, Reading, Reply

THINKING = f"{CUT} while thinking"
"""Why a reply that ran out of tokens before its answer is none."""
THOUGHT = "thought, and gave no answer"
"""Why a reply that ended by itself and is all thought is no answer."""
CYCLE = f"{CUT} repeating itself"
"""Why a reply that was ended since it said the same again and again is no answer."""
BLANK = "a placeholder in place"
"""How a reason begins where the reply is a form that nobody filled in."""
UNWRITABLE = re.compile("[\x00\ud800-\udfff]")
"""Characters that no text file takes: NUL and halves of surrogate pairs."""


class Unreadable(ValueError):
    """A reply that does not have the asked-for form; its words say what is wrong."""


T = TypeVar("T")


def read(printed: Callable[[], T], chatted: Callable[[], T], reading: Reading) -> T:
    """What ``printed`` reads; where it refuses and ``reading`` is "chat", what ``chatted`` reads.

    Raises the :class:`Unreadable` of the first, or of the second where the first found no JSON.
    """
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
    """Why a reply is no answer, neither right nor wrong: :data:`CUT`, :data:`THINKING`,
    :data:`THOUGHT`, or why it is missing.

    '' where it is one, readable or not.
    """
    if reply.reasoning is not None and reply.text == "":
        return THINKING if reply.finish == "length" else THOUGHT
    if reply.finish in ("length", "cycle"):
        return CUT if reply.finish == "length" else CYCLE
    return "" if reply.text is not None else reply.missing or "no reply"


def whole(reply: Reply) -> str:
    """The reply's text; :class:`Unreadable` where it is missing or was cut off."""
    if why := no_answer(reply):
        raise Unreadable(why)
    return reply.text or ""


def writable(reply: Reply) -> str:
    """The reply's text; :class:`Unreadable` also where no file could hold it."""
    if UNWRITABLE.search(text := whole(reply)):
        raise Unreadable("characters that are no text")
    return text


MAX_CHARACTERS = 200
"""A longer group is not the name of a disease."""
_FORM = re.compile(chat.WORDS["form"])
"""Words of a form. Brackets that hold nothing else, but numbers and single letters, were never
filled in."""
_INSTRUCTION = re.compile(
    r"(?:please\s+)?(?:insert|enter|fill|specify|provide|replace|write|choose|select|describe)\s"
    r"|(?:name|type|state|give|put)\s+(?:the|your)\s|.*\b(?:goes\s+)?here\Z"
)
_LETTER = re.compile("[A-Zs]")
"""A letter that numbers ("Disease A"), and the end of a genitive."""
_CODE = re.compile(
    r"(?:icd|snomed|code|dsm|omim|mesh|orpha)[\s:#-]*[\s\w.:#-]*\d[\da-z.]*"
    r"|[a-z]\d{1,3}|[a-z]\d[\da-z]\.[\da-z]{1,4}|[\da-z]{2}\d[\da-z]\.[\da-z]{1,2}"
)
"""A code in place of a name, behind the name of its list or alone: of ICD-10, of ICD-11."""

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
    """The last group that can name a disease, with its place in ``text``; ``None`` if there is
    none.

    It holds at least one letter and at most 200 characters, all of which a file can hold (no NUL,
    no lone surrogate). It is neither a number ("1e2", "nan" are) nor one Latin letter: the ``[1]``
    of a citation, the ``[x]`` of a box that is ticked and the ``[B]`` of an option are passed over.
    So is a placeholder (:func:`is_placeholder`). Of two names the last counts. Words that name no
    disease are read all the same: whether "no" or "unknown" is right is for the grader to say.
    Where no group names one, ``reading="chat"`` takes the answer's other forms
    (:mod:`trustlab.parsing.chat`).
    """
    found = None
    for span in groups(text or ""):
        if _can_name(span.text) and not _escaped(text, span):
            found = span
    if found is None and text and reading == "chat" and (place := chat.name(text)):
        span = Span(text[slice(*place)], *place)
        found = span if _can_name(span.text) else None
    return found


def diagnosis_reply(reply: Reply, reading: Reading = "chat") -> Reply:
    """``reply`` reduced to its diagnosis: ``text`` its name, ``raw`` the whole, ``trace`` only the
    name's tokens.

    A token counts when it carries any character of the name, or no character but stands inside it
    (the first bytes of a character that a later token completes). Without a diagnosis ``text`` and
    ``trace`` are ``None`` and ``missing`` says so: :data:`NO_DIAGNOSIS` or :data:`PLACEHOLDER` of
    an answer that names none, another reason of a reply that is no answer (:func:`no_answer`).
    Raises ``ValueError`` if the trace's tokens do not spell the reply.
    """
    why = no_answer(reply)
    span = None if why else diagnosis(reply.text, reading)
    if span is None or reply.text is None:
        raw = reply.raw if reply.text is None else reply.text
        return replace(reply, text=None, raw=raw, trace=None, missing=why or unnamed(reply.text))
    trace = reply.trace
    if trace is not None:
        if "".join(trace.tokens) != reply.text:
            raise ValueError(
                f"the tokens spell {''.join(trace.tokens)[:80]!r}, the reply is {reply.text[:80]!r}"
            )
        ends = list(accumulate(map(len, trace.tokens)))
        begins = [0, *ends[:-1]]
        inside = [
            i
            for i, (a, b) in enumerate(zip(begins, ends, strict=True))
            if a < span.stop and max(b, a + 1) > span.start
        ]
        trace = trace.part(inside[0], inside[-1] + 1)
    return replace(reply, text=span.text, raw=reply.text, trace=trace, missing=None)


def is_placeholder(text: str) -> bool:
    r"""Whether the content of brackets is a form that nobody filled in, a code, or was escaped.

    "Diagnosis: ", "Patient's Name", "Insert diagnosis here", "X", "...", "J18.9", and what
    ``\[...\]`` holds. Words that say that no disease is known ("unknown", "N/A") are none.
    """
    said = text.casefold().replace("_", " ").strip(" .:#\"'")
    named = re.split(r"[\W_]+", text.strip(" .:#\"'"))
    words = [w.casefold() for w in named if not (w.isdigit() or _LETTER.fullmatch(w)) and w]
    if text.endswith("\\") or said == "x" or not any(c.isalnum() for c in text):
        return True
    if words and all(_FORM.fullmatch(word) for word in words):
        return True
    return bool(_CODE.fullmatch(said) or _INSTRUCTION.match(said))


def unnamed(text: str | None) -> str:
    """Why a reply names no diagnosis: :data:`PLACEHOLDER` or :data:`NO_DIAGNOSIS`."""
    held = any(is_placeholder(span.text) or _escaped(text, span) for span in groups(text or ""))
    return PLACEHOLDER if held else NO_DIAGNOSIS


def _escaped(text: str | None, span: Span) -> bool:
    """Whether the bracket in front of this content is escaped."""
    return (text or "")[: span.start].rstrip(" \t").rstrip("[").endswith("\\")


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
