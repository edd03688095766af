"""Reads a number from 0 to 100, or True or False.

A group is *numeric* when it has digits and no letters; others are passed over. A *plain number* is
digits, perhaps a point and digits, perhaps a ``%``, at its word (``[0.85]`` is 0.85 of 100).
Refused are signs, ranges, lists, decimal commas, "x out of y", inside the brackets or across them,
the text of a link, a number that the patient has in square brackets, and one beside another number
that could be the score (:func:`trustlab.parsing.chat.rivals`) or right behind a word: it may be a
footnote's. Beyond any rule: one alone behind a finished sentence ("Likely. [1]") is read as 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from typing import Any

from trustlab.parsing import chat
from trustlab.parsing.marks import own_words, without_footnotes
from trustlab.parsing.reply import Span, groups, no_answer
from trustlab.records import GIVEN, NO_VERDICT, Generation, Reading, Reply

NO_SCORE = "no single number from 0 to 100 in square brackets"
NO_GUESSES = "not exactly five guesses G1 to G5 from 0 to 100 in square brackets"

_PLAIN_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*%?")
_OUT_OF = r"\s*%?\s*(?:/|\b(?:out\s+)?of\b)\s*"
_OUT_OF_Y = re.compile(_OUT_OF + r"\[?\s*[0-9]", re.IGNORECASE)
_X_OUT_OF = re.compile(r"[0-9]" + _OUT_OF + r"\Z", re.IGNORECASE)
_GUESS = re.compile(r"(?<!\w)G([0-9]+)[* \t]*:")
_NEAR = 40  # characters looked at on each side of a bracketed number for "x out of y"
_DECORATION = " \t\r\n\v\f.,!\"'`*_()[]{}<>\u2018\u2019\u201c\u201d\u00ab\u00bb\u00a0"


@lru_cache(maxsize=1 << 12)
def score_0_100(
    text: str | None, patient: str | None = None, reading: Reading = "chat"
) -> float | None:
    """The one bracketed number of a reply, 0 to 100; ``None`` if there is any doubt.

    There must be exactly one numeric group, a plain number (``[85%]`` is 85) that the ``patient``'s
    words do not have in square brackets, beside no number that could be the score.
    ``reading="chat"`` tries the score's other forms (:func:`trustlab.parsing.chat.score`) where
    that is refused.
    """
    words = own_words(text or "")
    found = _score(words, patient)
    if found is not None and found[1] not in _bracketed(patient):
        return found[1]
    return chat.score(words, patient) if reading == "chat" else None


@lru_cache(maxsize=1 << 12)
def guesses(
    text: str | None, n: int = 5, patient: str | None = None, reading: Reading = "chat"
) -> tuple[float, ...] | None:
    """The numbers of "G1: [80] G2: [85] ...", ``n`` of them, each 0 to 100; ``None`` if there is
    any doubt.

    - The labels are G1 to Gn with a colon, each once, in order; no number stands before the first.
    - Behind each stands one bracketed number (:func:`score_0_100`), white space and stars between.
    - ``reading="chat"``: numbers as a score's, or a list (:func:`trustlab.parsing.chat.listed`).
    - Guesses that all stand in the ``patient``'s words (in square brackets) are refused.
    """
    words = own_words(text or "")
    before, *rest = _GUESS.split(words)
    labels, parts = rest[::2], rest[1::2]
    known = chat.all_numbers(patient or "")
    if not labels and reading == "chat":
        plain = chat.listed(words, n)
        return plain if plain and not set(plain) <= known else None
    if labels != [str(k) for k in range(1, n + 1)] or any(_numeric(before)):
        return None
    scores = _bracketed_guesses(parts, patient)
    if scores is not None and not set(scores) <= _bracketed(patient):
        return scores
    if reading == "strict":
        return None
    written = [value for part in parts if (value := chat.guess(part)) is not None]
    return tuple(written) if len(written) == n and not set(written) <= known else None


def _bracketed_guesses(parts: Sequence[str], patient: str | None) -> tuple[float, ...] | None:
    """The bracketed number that each part begins with; ``None`` where one has none, or another."""
    scores = []
    for part in parts:
        found = _score(part, patient)
        if found is None or part[: found[0]].strip(" \t\r\n*["):
            return None
        scores.append(found[1])
    return tuple(scores)


@lru_cache(maxsize=1 << 12)
def true_or_false(text: str | None, reading: Reading = "chat") -> bool | None:
    r"""Whether the reply is the one word True or False, in any case, whatever marks stand around
    it. Only ``reading="chat"`` reads "Answer: True", ``\boxed{True}`` and "True. It fits."
    """
    words = without_footnotes(own_words(text or ""))
    found = {"true": True, "false": False}.get(words.strip(_DECORATION).lower())
    return chat.verdict(words) if found is None and reading == "chat" else found


def probed(probe: str, told: str | None, reply: Reply, reading: Reading) -> Any:
    """What is read of a reply to a question about an answer; ``told``: the patient's words."""
    if probe == "topk_ce":
        return guesses(reply.text, patient=told, reading=reading)
    if probe == "p_true":
        return true_or_false(reply.text, reading)
    return score_0_100(reply.text, told, reading)


def probe_reply(probe: str, told: str | None, reply: Reply, reading: Reading = "chat") -> Reply:
    """``reply`` to a question about an answer reduced to what it says (:func:`probed`).

    ``text`` is a score, five with spaces between (``topk_ce``), or "True" or "False" (``p_true``),
    ``raw`` the whole; ``missing`` says why nothing is read.
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
    for span in groups(text):
        if any(c.isdigit() for c in span.text) and not any(c.isalpha() for c in span.text):
            yield span


def _bracketed(patient: str | None) -> set[float]:
    """The plain numbers that stand in square brackets in the patient's words."""
    plain = (_PLAIN_NUMBER.fullmatch(span.text) for span in _numeric(patient or ""))
    return {float(number[1]) for number in plain if number}


def _score(text: str, patient: str | None) -> tuple[int, float] | None:
    """Where the one bracketed number of ``text`` begins and what it is, by the rules at the top."""
    if len(set(text.split())) == 1:  # the same once more
        text = text.split()[0]
    numeric = list(islice(_numeric(text), 2))
    if len(numeric) != 1:
        return None
    start, stop = numeric[0].start, numeric[0].stop
    plain = _PLAIN_NUMBER.fullmatch(numeric[0].text)
    if plain is None or float(plain[1]) > 100:
        return None
    line = text[:start].rpartition("\n")[2]
    if re.search(r"\w", line) and not chat.SAYS["place"].search(line[-_NEAR:]):
        return None
    before, after = text[:start].rstrip("[ \t"), text[stop:].lstrip("] \t")
    if out_of(before, after) or chat.rivals(before, after, patient) - {float(plain[1])}:
        return None
    return start, float(plain[1])
