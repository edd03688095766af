"""Whether two names may mean one diagnosis: their words, what in them tells diagnoses apart, and slips of the pen."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence, Set
from difflib import SequenceMatcher
from functools import lru_cache

from trustlab.correctness.words import (
    DEGREES,
    EXCLUSIVE,
    LOOKALIKES,
    NEUTRAL,
    OPPOSITE_PREFIXES,
    PREFIXES,
    QUALIFIERS,
    ROMAN,
    SAME_WORD,
)
from trustlab.knowledge import normalise

CLOSE = 0.85
"""The ratio of ``difflib`` from which on two words count as one and its misspelling: otitis and ottitis (0.92)."""

CERTAINTY = re.compile(
    r"\b(?:(?:most |very |highly )?likely|probabl[ey]|possibl[ey]|suspected|suspicion of|suspicious for|presum(?:ed|ptive|ably)"
    r"|definite(?:ly)?|confirmed|consistent with|suggestive of|not otherwise specified|not elsewhere classified"
    r"|unspecified|nos)\b"
)
_POSSESSIVE = re.compile(r"[’'`]s\b")


def folded(name: str) -> str:
    """In small letters, without accents, invisible characters and possessive 's."""
    letters = unicodedata.normalize("NFKD", name)
    seen = "".join(c for c in letters if not unicodedata.combining(c) and unicodedata.category(c) != "Cf")
    return _POSSESSIVE.sub("", unicodedata.normalize("NFKC", seen).casefold()).strip()


def bare_name(name: str) -> str:
    """The normalised name without words of certainty and degree."""
    words = normalise(CERTAINTY.sub(" ", unicodedata.normalize("NFKC", name).casefold())).split()
    return " ".join(word for word in words if word not in DEGREES)


@lru_cache(maxsize=4096)
def content_words(name: str) -> frozenset[str]:
    """The words that say what it is, without certainty, degree and neutral words; those of ``SAME_WORD`` as one.

    ae and oe are written e, II is written 2, and numbers and single letters that stand together are one word, so that
    "MEN2B" and "MEN type 2 B" agree. A leading "a" in small letters is an article; any other lone letter says something.
    """
    words = normalise(CERTAINTY.sub(" ", folded(re.sub(r"^\s*a\s+", "", name)))).split()
    parts = [part for word in words for part in re.findall(r"\d+|[^\W\d]+", ROMAN.get(word, word))]
    kept: list[str] = []
    for part in parts:
        short = part.isdigit() or len(part) == 1
        if short and kept and _is_code(kept[-1]):
            kept[-1] += part
        elif short and kept and kept[-1] == "type":
            kept[-1] = part
        elif part not in NEUTRAL | DEGREES:
            kept.append(part)
    plain = (word.replace("ae", "e").replace("oe", "e") for word in kept)
    return frozenset(SAME_WORD.get(word, word) for word in plain)


def _is_code(word: str) -> bool:
    return len(word) == 1 or any(c.isdigit() for c in word)


def is_qualifier(word: str) -> bool:
    """Whether a content word sets cause, site, side, stage, course or kind by itself."""
    return word in QUALIFIERS or _is_code(word)


@lru_cache(maxsize=4096)
def qualifiers(name: str) -> frozenset[str]:
    """What in a name sets cause, site, side, stage, course or kind: words, numbers, single letters and prefixes."""
    words = content_words(name)
    return frozenset(w for w in words if is_qualifier(w)) | {p for p in PREFIXES for w in words if w.startswith(p)}


def clash(one: str, other: str) -> bool:
    """Whether a word makes them two diagnoses: another qualifier or degree, disease against syndrome, or a look-alike."""
    a, b = (set(normalise(folded(name)).split()) for name in (one, other))
    if (a & DEGREES) and (b & DEGREES) and (a & DEGREES) != (b & DEGREES):
        return True
    kinds = {"disease", "syndrome"}
    if (a & kinds) and (b & kinds) and not a & b & kinds:
        return True
    a, b = content_words(one), content_words(other)
    return qualifiers(one) != qualifiers(other) or any(a & group and b & group and a & group != b & group for group in LOOKALIKES)


def exclude(one: Set[str], other: Set[str]) -> bool:
    """Whether words of two names rule each other out: left and right, type 1 and type 2.

    Among the words of a group, and among numbers and single letters, each has one that the other
    lacks: "acute on chronic" does not rule "chronic" out, nor "type 2" the name without a type.
    """
    here, there = one - other, other - one
    return (
        any(there & group for word in here for group in _RULED_OUT.get(word, ()))
        or (any(map(_is_code, here)) and any(map(_is_code, there)))
        or any(_opposite(a, b) or _opposite(b, a) for a in here for b in there if a[-3:] == b[-3:])
    )


_GROUPS = (*EXCLUSIVE, *LOOKALIKES)
_RULED_OUT = {word: [g for g in _GROUPS if word in g] for group in _GROUPS for word in group}


def _opposite(one: str, other: str) -> bool:
    """Whether two words differ by opposite prefixes alone; four letters or fewer say nothing."""
    pairs = ((a, b) for a, b in OPPOSITE_PREFIXES if one.startswith(a))
    return len(other) > 4 and any(b + one[len(a) :] == other for a, b in pairs)


def another_kind(answer: str, names: Sequence[str]) -> bool:
    """Whether ``answer`` is a true name but for its qualifiers, degree or kind: "viral pneumonia" for "pneumonia"."""
    said = {word for word in content_words(answer) if not is_qualifier(word)}
    true = ((name, {word for word in content_words(name) if not is_qualifier(word)}) for name in names)
    return any(said == words and clash(answer, name) for name, words in true)


def unpaired(one: str, other: str) -> tuple[frozenset[str], frozenset[str]]:
    """The content words of each that the other has neither the same nor misspelt."""
    a, b = content_words(one), content_words(other)
    left, right = sorted(a - b), sorted(b - a)
    pairs = sorted(((_ratio(x, y), x, y) for x in left for y in right), reverse=True)
    for ratio, x, y in pairs:
        if ratio >= CLOSE and x in left and y in right and not (is_qualifier(x) or is_qualifier(y)):
            left.remove(x)
            right.remove(y)
    return frozenset(left), frozenset(right)


@lru_cache(maxsize=65536)
def _ratio(one: str, other: str) -> float:
    return max(SequenceMatcher(None, a, b, autojunk=False).ratio() for a, b in ((one, other), (other, one)))


def may_mean_the_same(one: str, other: str) -> bool:
    """Whether nothing in the words makes them two diagnoses.

    They do not clash; and where they have a word in common, every word of each is in the other, or close to a word of the
    other in letters (:data:`CLOSE`). Names without a common word ("Hay fever", "Pollinosis") are left to meaning.
    """
    if clash(one, other):
        return False
    a, b = unpaired(one, other)
    return (not a and not b) or (a == content_words(one) and b == content_words(other))


def comparable(answer: str, names: Sequence[str]) -> list[str]:
    """The true names that ``answer`` may mean; none where its words are more or fewer than those of any true name."""
    said = content_words(answer)
    if any(said < true or true < said for true in map(content_words, names)):
        return []
    alike = [name for name in names if may_mean_the_same(answer, name)]
    whole = [name for name in alike if unpaired(answer, name) == (frozenset(), frozenset())]
    if whole:
        return whole
    sides = [unpaired(answer, name) for name in names]
    return [] if any(bool(a) != bool(b) for a, b in sides) else alike
