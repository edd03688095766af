"""What a model's reply says, by written rules: anything they do not read is ``None``, and nothing is guessed.

Brackets are square, matched within one line (a line break forgets open ones). A *group* is a pair with no bracket
inside it and no pair around it, except that doubled brackets ``[[x]]`` are one group ``x``. Its content is trimmed.
No function takes longer than sorting the reply's brackets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate

from trustlab.records import Reply

MAX_CHARACTERS = 200
"""A longer group is not the name of a disease."""
NO_DIAGNOSIS = "no diagnosis in square brackets"

_MARK = re.compile(r"[\[\]\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_PLAIN_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*%?")
_OUT_OF = r"\s*%?\s*(?:/|\b(?:out\s+)?of\b)\s*"
_OUT_OF_Y = re.compile(_OUT_OF + r"\[?\s*[0-9]", re.IGNORECASE)
_X_OUT_OF = re.compile(r"[0-9]" + _OUT_OF + r"\Z", re.IGNORECASE)
_GUESS = re.compile(r"(?<!\w)G([0-9]+)[* \t]*:")
_NEAR = 40
"""Characters looked at on each side of a bracketed number for "x out of y"."""
_DECORATION = " \t\r\n\v\f.,!\"'`*_()[]{}<>\u2018\u2019\u201c\u201d\u00ab\u00bb\u00a0"


@dataclass(frozen=True)
class Span:
    """A part of a reply: ``reply[start:stop] == text``."""

    text: str
    start: int
    stop: int


def diagnosis(text: str | None) -> Span | None:
    """The last group that can name a disease, with its place in ``text``; ``None`` if there is none.

    It holds at least one letter and at most 200 characters, and is not a number ("1e2", "nan" are). So the ``[1]`` of
    a citation is passed over, and of two names the last counts.
    """
    found = None
    for span in _groups(text or ""):
        if len(span.text) <= MAX_CHARACTERS and any(c.isalpha() for c in span.text) and not _is_number(span.text):
            found = span
    return found


def diagnosis_reply(reply: Reply) -> Reply:
    """``reply`` reduced to its diagnosis: ``text`` its name, ``raw`` the whole, ``trace`` only the name's tokens.

    A token counts when it carries any character of the name, or no character but stands inside it (the first bytes of
    a character that a later token completes). Without a diagnosis ``text`` and ``trace`` are ``None`` and ``missing``
    says so. Raises ``ValueError`` if the trace's tokens do not spell the reply.
    """
    if reply.text is None:
        return replace(reply, trace=None, missing=reply.missing or "no reply")
    span = diagnosis(reply.text)
    if span is None:
        return replace(reply, text=None, raw=reply.text, trace=None, missing=NO_DIAGNOSIS)
    trace = reply.trace
    if trace is not None:
        if "".join(trace.tokens) != reply.text:
            raise ValueError(f"the tokens spell {''.join(trace.tokens)[:80]!r}, the reply is {reply.text[:80]!r}")
        ends = list(accumulate(map(len, trace.tokens)))
        begins = [0, *ends[:-1]]
        inside = [i for i, (a, b) in enumerate(zip(begins, ends, strict=True)) if a < span.stop and max(b, a + 1) > span.start]
        trace = trace.part(inside[0], inside[-1] + 1)
    return replace(reply, text=span.text, raw=reply.text, trace=trace, missing=None)


def score_0_100(text: str | None) -> float | None:
    """The one bracketed number of a reply, 0 to 100; ``None`` if there is none, or any doubt.

    A group is numeric when it has digits and no letters. There must be exactly one; it must be a plain number (digits,
    optionally a point and digits) within 0..100; a ``%`` inside is allowed (``[85%]`` is 85). Signs, ranges, fractions
    and "x out of y", inside the brackets or across them, are refused. Groups with letters are passed over.
    """
    found = _score(text or "")
    return None if found is None else found[1]


def guesses(text: str | None, n: int = 5) -> tuple[float, ...] | None:
    """The numbers of "G1: [80] G2: [85] ..." in order, ``n`` of them, each 0 to 100; ``None`` if there is any doubt.

    The labels are G1 to Gn with a colon, each once, in order, and no other such label. Between a label and its number stand
    only spaces, line breaks and Markdown's stars. From a label to the next, or to the end, is exactly one bracketed
    number, by the rules of :func:`score_0_100`; before the first label there is none. Other words are passed over.
    """
    before, *rest = _GUESS.split(text or "")
    labels, parts = rest[::2], rest[1::2]
    if labels != [str(k) for k in range(1, n + 1)] or _numeric(before):
        return None
    found = [_score(part) for part in parts]
    if any(score is None or part[: score[0]].strip(" \t\r\n*[") for part, score in zip(parts, found, strict=True)):
        return None
    return tuple(score[1] for score in found if score is not None)


def true_or_false(text: str | None) -> bool | None:
    """Whether the reply is the one word True or False, in any case; ``None`` for anything else.

    Spaces, full stops, commas, exclamation marks, quotes, brackets and Markdown's marks around the word are ignored.
    More words, both words or neither are not read: "not true" would otherwise be.
    """
    return {"true": True, "false": False}.get((text or "").strip(_DECORATION).lower())


def _groups(text: str) -> Iterator[Span]:
    """Every group of ``text`` with something in it, in order, with the place of its trimmed content."""
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


def _numeric(text: str) -> list[Span]:
    """The groups with digits and no letters."""
    return [s for s in _groups(text) if any(c.isdigit() for c in s.text) and not any(c.isalpha() for c in s.text)]


def _score(text: str) -> tuple[int, float] | None:
    """Where the one bracketed number of ``text`` begins and what it is, by the rules of :func:`score_0_100`."""
    numeric = _numeric(text)
    if len(numeric) != 1:
        return None
    plain = _PLAIN_NUMBER.fullmatch(numeric[0].text)
    before = text[: numeric[0].start].rstrip("[ \t")[-_NEAR:]
    after = text[numeric[0].stop :].lstrip("] \t")[:_NEAR]
    if plain is None or _OUT_OF_Y.match(after) or _X_OUT_OF.search(before):
        return None
    value = float(plain[1])
    return (numeric[0].start, value) if value <= 100 else None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
