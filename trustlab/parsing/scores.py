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
from typing import Any, NamedTuple

from trustlab.parsing import chat
from trustlab.parsing.chat import has_pattern
from trustlab.parsing.marks import own_words, without_footnotes
from trustlab.parsing.reply import Span, groups, no_answer
from trustlab.records import GIVEN, NO_VERDICT, Generation, Reading, Reply

NO_SCORE = "no single number from 0 to 100 in square brackets"
NO_GUESSES = "not exactly five guesses G1 to G5 from 0 to 100 in square brackets"

_MISSING = {"topk_ce": NO_GUESSES, "p_true": NO_VERDICT}
"""Probe -> why nothing is read of it; a score's is :data:`NO_SCORE`."""

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
    score = _bracketed_score(words, patient)
    if score is not None and score.value not in _bracketed_numbers(patient):
        return score.value
    if reading == "chat":
        return chat.score(words, patient)
    return None


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
    before, *pieces = _GUESS.split(words)
    labels = pieces[::2]
    parts = pieces[1::2]
    if not labels and reading == "chat":
        scores = chat.listed(words, n)
        return _unless_of_patient(scores, patient)
    if labels != [str(k) for k in range(1, n + 1)]:
        return None
    if any(_numeric_groups(before)):
        return None
    scores = _bracketed_guesses(parts, patient)
    if scores is not None and not set(scores) <= _bracketed_numbers(patient):
        return scores
    if reading == "strict":
        return None
    written = [value for value in map(chat.guess, parts) if value is not None]
    if len(written) != n:
        return None
    return _unless_of_patient(tuple(written), patient)


def _unless_of_patient(
    written: tuple[float, ...] | None, patient: str | None
) -> tuple[float, ...] | None:
    """Guesses without brackets; ``None`` where all stand in the patient's words."""
    if not written or set(written) <= chat.all_numbers(patient or ""):
        return None
    return written


def _bracketed_guesses(
    parts: Sequence[str], patient: str | None
) -> tuple[float, ...] | None:
    """The bracketed number that each part begins with; ``None`` where one has none, or another."""
    values = []
    for part in parts:
        score = _bracketed_score(part, patient)
        if score is None or part[: score.start].strip(" \t\r\n*["):
            return None
        values.append(score.value)
    return tuple(values)


@lru_cache(maxsize=1 << 12)
def true_or_false(text: str | None, reading: Reading = "chat") -> bool | None:
    r"""Whether the reply is the one word True or False, in any case, whatever marks stand around
    it. Only ``reading="chat"`` reads "Answer: True", ``\boxed{True}`` and "True. It fits."
    """
    words = without_footnotes(own_words(text or ""))
    word = words.strip(_DECORATION).lower()
    if word in ("true", "false"):
        return word == "true"
    if reading == "chat":
        return chat.verdict(words)
    return None


def probed(probe: str, patient: str | None, reply: Reply, reading: Reading) -> Any:
    """What is read of a reply to a question about an answer; ``patient``: the patient's words."""
    if probe == "topk_ce":
        return guesses(reply.text, patient=patient, reading=reading)
    if probe == "p_true":
        return true_or_false(reply.text, reading)
    return score_0_100(reply.text, patient, reading)


def probe_reply(
    probe: str, patient: str | None, reply: Reply, reading: Reading = "chat"
) -> Reply:
    """``reply`` to a question about an answer reduced to what it says (:func:`probed`).

    ``text`` is a score, five with spaces between (``topk_ce``), or "True" or "False" (``p_true``),
    ``raw`` the whole; ``missing`` says why nothing is read.
    """
    reason = no_answer(reply)
    value = None
    if not reason:
        value = probed(probe, patient, reply, reading)
    raw = reply.raw if reply.text is None else reply.text
    if value is None:
        missing = reason or _MISSING.get(probe, NO_SCORE)
        return replace(reply, text=None, raw=raw, missing=missing)
    values = value if isinstance(value, tuple) else (value,)
    text = " ".join(map(repr, values))
    return replace(reply, text=text, raw=raw, missing=None)


def probes_read(generation: Generation) -> Generation:
    """The record with every reply about its answer read (:func:`probe_reply`), no given text."""
    reading = generation.parameters.reading
    probes = dict(generation.probes)
    for probe, replies in generation.probes.items():
        if probe not in GIVEN:
            read = [
                probe_reply(probe, generation.told, reply, reading) for reply in replies
            ]
            probes[probe] = tuple(read)
    return replace(generation, probes=probes)


def out_of(before: str, after: str) -> bool:
    """Whether a number between these two texts is the x of "x out of y", or the y."""
    is_x = _OUT_OF_Y.match(after[:_NEAR])
    is_y = _X_OUT_OF.search(before[-_NEAR:])
    return bool(is_x or is_y)


def _numeric_groups(text: str) -> Iterator[Span]:
    """The groups with digits and no letters."""
    for span in groups(text):
        has_letters = any(map(str.isalpha, span.text))
        if not has_letters and any(map(str.isdigit, span.text)):
            yield span


def _bracketed_numbers(patient: str | None) -> set[float]:
    """The plain numbers that stand in square brackets in the patient's words."""
    numbers = set()
    for span in _numeric_groups(patient or ""):
        number = _PLAIN_NUMBER.fullmatch(span.text)
        if number:
            numbers.add(float(number[1]))
    return numbers


class _Score(NamedTuple):
    """A bracketed number, and where the content of its brackets begins."""

    start: int
    value: float


def _bracketed_score(text: str, patient: str | None) -> _Score | None:
    """The one bracketed number of ``text``, by the rules at the top."""
    words = text.split()
    if len(set(words)) == 1:  # the same once more
        text = words[0]
    numeric = list(islice(_numeric_groups(text), 2))
    if len(numeric) != 1:
        return None
    span = numeric[0]
    number = _PLAIN_NUMBER.fullmatch(span.text)
    if number is None:
        return None
    value = float(number[1])
    if value > 100:
        return None
    line = text[: span.start].rpartition("\n")[2]
    if re.search(r"\w", line) and not has_pattern(line[-_NEAR:], "place"):
        return None
    before = text[: span.start].rstrip("[ \t")
    after = text[span.stop :].lstrip("] \t")
    if out_of(before, after) or chat.rivals(before, after, patient) - {value}:
        return None
    return _Score(span.start, value)
