"""Numbers from 0 to 100 in square brackets, and the one word True or False.

A group (see ``brackets``) is *numeric* when it has digits and no letters; groups with letters are
passed over, so ``[8O]`` with a letter O, ``[1e2]`` and ``[95 out of 100]`` are no numbers. A *plain
number* is written in the digits 0 to 9, optionally with a point and digits; a ``%`` may follow. It
is taken at its word: ``[0.85]`` is 0.85 of 100, not 85.

Refused are signs, ranges, lists, decimal commas, fractions and "x out of y", inside the brackets or
across them, and a number that is a link's text. A number that stands in square brackets in the
patient's own words is never the model's. What stays beyond any rule: the ``[1]`` of a footnote in a
reply with no other number is read as 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from typing import Any

from trustlab.parsing import chat
from trustlab.parsing.reply import Span, groups, no_answer
from trustlab.records import GIVEN, NO_VERDICT, Generation, Reading, Reply

NO_SCORE = "no single number from 0 to 100 in square brackets"
NO_GUESSES = "not exactly five guesses G1 to G5 from 0 to 100 in square brackets"

_PLAIN_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*%?")
_OUT_OF = r"\s*%?\s*(?:/|\b(?:out\s+)?of\b)\s*"
_OUT_OF_Y = re.compile(_OUT_OF + r"\[?\s*[0-9]", re.IGNORECASE)
_X_OUT_OF = re.compile(r"[0-9]" + _OUT_OF + r"\Z", re.IGNORECASE)
_LINK = re.compile(r"\s*\]+\([^()\n]*\)")
_GUESS = re.compile(r"(?<!\w)G([0-9]+)[* \t]*:")
_NEAR = 40
"""Characters looked at on each side of a bracketed number for "x out of y"."""
_DECORATION = " \t\r\n\v\f.,!\"'`*_()[]{}<>\u2018\u2019\u201c\u201d\u00ab\u00bb\u00a0"


@lru_cache(maxsize=1 << 12)
def score_0_100(
    text: str | None, patient: str | None = None, reading: Reading = "chat"
) -> float | None:
    """The one bracketed number of a reply, 0 to 100; ``None`` if there is none, or any doubt.

    There must be exactly one numeric group; it must be a plain number within 0..100 (``[85%]`` is
    85). ``patient``, where given, are the patient's words: a number that stands in square brackets
    there too is refused, whether the reply quotes it or obeys it. What is refused
    ``reading="chat"`` tries in the score's other forms (:mod:`trustlab.parsing.chat`).
    """
    found = _score(text or "")
    if found is not None and found[1] not in _bracketed(patient):
        return found[1]
    return chat.score(text or "", patient) if reading == "chat" else None


@lru_cache(maxsize=1 << 12)
def guesses(
    text: str | None, n: int = 5, patient: str | None = None, reading: Reading = "chat"
) -> tuple[float, ...] | None:
    """The numbers of "G1: [80] G2: [85] ..." in order, ``n`` of them, each 0 to 100; ``None`` if
    there is any doubt.

    The labels are G1 to Gn with a colon, each once, in order, and no other such label. Between a
    label and its number stand only spaces, line breaks and Markdown's stars. From a label to the
    next, or to the end, is exactly one bracketed number, by the rules of :func:`score_0_100`;
    before the first label there is none. Other words are passed over. Guesses that all stand in
    square brackets in the ``patient``'s words, where given, are refused. With ``reading="chat"``
    the numbers may be written as a score may, and no other digit stands between them, or they are
    a plain list (:func:`trustlab.parsing.chat.listed`); then guesses that all stand in the
    ``patient``'s words are refused.
    """
    before, *rest = _GUESS.split(text or "")
    labels, parts = rest[::2], rest[1::2]
    known = chat.all_numbers(patient or "")
    if not labels and reading == "chat":
        plain = chat.listed(text or "", n)
        return plain if plain and not set(plain) <= known else None
    if labels != [str(k) for k in range(1, n + 1)] or any(_numeric(before)):
        return None
    scores = _bracketed_guesses(parts)
    if scores is not None and not set(scores) <= _bracketed(patient):
        return scores
    if reading == "strict":
        return None
    written = [value for part in parts if (value := chat.guess(part)) is not None]
    return tuple(written) if len(written) == n and not set(written) <= known else None


def _bracketed_guesses(parts: Sequence[str]) -> tuple[float, ...] | None:
    """The bracketed number that each part begins with; ``None`` where one has none, or another."""
    found = [_score(part) for part in parts]
    if any(
        score is None or part[: score[0]].strip(" \t\r\n*[")
        for part, score in zip(parts, found, strict=True)
    ):
        return None
    return tuple(score[1] for score in found if score is not None)


def true_or_false(text: str | None, reading: Reading = "chat") -> bool | None:
    r"""Whether the reply is the one word True or False, in any case; ``None`` for anything else.

    Spaces, full stops, commas, exclamation marks, quotes, brackets and Markdown's marks around the
    word are ignored. More words, both words or neither are not read: "not true" would otherwise be.
    Only ``reading="chat"`` reads "Answer: True", ``\boxed{True}`` and "True. It fits."
    """
    found = {"true": True, "false": False}.get((text or "").strip(_DECORATION).lower())
    return chat.verdict(text or "") if found is None and reading == "chat" else found


def probed(probe: str, told: str | None, reply: Reply, reading: Reading) -> Any:
    """What is read of a reply to a question about an answer; ``told`` are the patient's words."""
    if probe == "topk_ce":
        return guesses(reply.text, patient=told, reading=reading)
    if probe == "p_true":
        return true_or_false(reply.text, reading)
    return score_0_100(reply.text, told, reading)


def probe_reply(probe: str, told: str | None, reply: Reply, reading: Reading = "chat") -> Reply:
    """``reply`` to a question about an answer reduced to what it says: ``text`` that, ``raw`` the
    whole.

    ``text`` is a score from 0 to 100 (``ce``, ``cot_ce``), five of them with spaces between
    (``topk_ce``), or "True" or "False" (``p_true``); ``float`` gives every number back exactly.
    Where nothing can be read it is ``None``, and ``missing`` says why. ``told`` as :func:`probed`.
    """
    why = no_answer(reply)
    found = None if why else probed(probe, told, reply, reading)
    raw = reply.raw if reply.text is None else reply.text
    if found is None:
        nothing = {"topk_ce": NO_GUESSES, "p_true": NO_VERDICT}.get(probe, NO_SCORE)
        return replace(reply, text=None, raw=raw, missing=why or nothing)
    said = found if isinstance(found, tuple) else (found,)
    return replace(reply, text=" ".join(map(repr, said)), raw=raw, missing=None)


def probes_read(generation: Generation) -> Generation:
    """The record with every reply about its answer read (:func:`probe_reply`), no given text."""
    told, reading = generation.told, generation.parameters.reading
    read = {
        name: tuple(probe_reply(name, told, reply, reading) for reply in replies)
        for name, replies in generation.probes.items()
        if name not in GIVEN
    }
    return replace(generation, probes={**generation.probes, **read})


def out_of(before: str, after: str) -> bool:
    """Whether a number between these two texts is the x of "x out of y", or the y."""
    return bool(_OUT_OF_Y.match(after[:_NEAR]) or _X_OUT_OF.search(before[-_NEAR:]))


def _numeric(text: str) -> Iterator[Span]:
    """The groups with digits and no letters."""
    return (
        s
        for s in groups(text)
        if any(c.isdigit() for c in s.text) and not any(c.isalpha() for c in s.text)
    )


def _bracketed(patient: str | None) -> set[float]:
    """The plain numbers that stand in square brackets in the patient's words."""
    plain = (_PLAIN_NUMBER.fullmatch(span.text) for span in _numeric(patient or ""))
    return {float(number[1]) for number in plain if number}


def _score(text: str) -> tuple[int, float] | None:
    """Where the one bracketed number of ``text`` begins and what it is, by the rules at the top."""
    numeric = list(islice(_numeric(text), 2))
    if len(numeric) != 1:
        return None
    start, stop = numeric[0].start, numeric[0].stop
    plain = _PLAIN_NUMBER.fullmatch(numeric[0].text)
    if (
        plain is None
        or _LINK.match(text, stop)
        or out_of(text[:start].rstrip("[ \t"), text[stop:].lstrip("] \t"))
    ):
        return None
    value = float(plain[1])
    return (start, value) if value <= 100 else None
