"""Takes a disease's name apart: its words, its noun."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from trustlab.knowledge.same_diagnosis import (
    QUALIFIERS,
    folded,
    is_qualifier,
    words_in_order,
)
from trustlab.knowledge.words import word_lists
from trustlab.records import normalise

_LISTS = word_lists("disease_names")
_WORD_OF_FORM = {
    form: word for word, forms in _LISTS["forms"].items() for form in forms.split()
}
_SMALL = frozenset(_LISTS["small"].split())
"""Words that say nothing between two others."""
_LOOSE_PREFIX = re.compile(r"\b(non|pre|post|pseudo|para|anti) (?=[a-z])")
_ISE = re.compile(r"(?<=[a-z]{4})is(ed?|ing|ation)\b")
_SINGULAR_ENDS = ("ss", "us", "is", "as", "os")
_CAUSE_FOLLOWS = re.compile(
    r"[ ,]+(?:with|without|(?:due|secondary|related) to|(?:caused|complicated|triggered|induced) by"
    r"|associated with|resulting from|leading to|causing|because of|from|following|after|during"
    r"|in the setting of|(?<!acute )on|to|in(?! situ))\b"
)


_CAUSE_FIRST = re.compile(
    r"^(.*\w)[- ](?:induced|related|associated|triggered|mediated) (?!with|to|by)(.+)"
)


class Name(NamedTuple):
    """The words of a name, its noun ("embolism" of "acute pulmonary embolism"), and the name as it
    is spelt here."""

    words: frozenset[str]
    noun: str
    spelt: str

    @property
    def spoken(self) -> frozenset[str]:
        """Its words and those that it is spelt with: "with", "severe", "syndrome"."""
        return self.words.union(self.spelt.split())


def _spelt(text: str) -> str:
    """In small letters, with e for ae and oe, z in -ize, "non-x" as one word, without plural s;
    phrases as ``phrases`` reads them."""
    text = (
        normalise(re.sub(r"^a-", "a", folded(text)))
        .replace("ae", "e")
        .replace("oe", "e")
    )
    text = _ISE.sub(r"iz\1", text)
    for pattern, phrase in _PHRASES:
        text = pattern.sub(phrase, text)
    words = _LOOSE_PREFIX.sub(r"\1", text).split()
    return " ".join(map(_singular, words))


def _singular(word: str) -> str:
    """A word without the s of a plural."""
    if len(word) > 4 and word[-1] == "s" and not word.endswith(_SINGULAR_ENDS):
        return word[:-1]
    return word


def _telling_words(name: str) -> list[str]:
    """The words of a name in their listed forms, without small ones."""
    words = [_WORD_OF_FORM.get(word, word) for word in words_in_order(name)]
    return [word for word in words if word not in _SMALL]


_PHRASES = [
    (re.compile(rf"\b(?:{pattern})\b"), phrase)
    for pattern, phrase in _LISTS["phrases"].items()
]
_GROUPS = [[_spelt(name) for name in group.split("|")] for group in _LISTS["same"]]
_FIRST_NAME = {name: group[0] for group in _GROUPS for name in group}
_LONGEST = max(len(name.split()) for name in _FIRST_NAME)


def word_set(text: str) -> frozenset[str]:
    """The words of a list, as names spell them."""
    return frozenset(_telling_words(_spelt(text))) | frozenset(text.split())


ANATOMY = word_set(_LISTS["anatomy"])
_GROUPS_OF_WORDS = defaultdict(set)
for _group in _GROUPS:
    for _name in _group:
        _GROUPS_OF_WORDS[frozenset(_telling_words(_name))].add(_group[0])
_FIRST_OF_WORDS = {
    words: min(firsts)
    for words, firsts in _GROUPS_OF_WORDS.items()
    if len(firsts) == 1 and words - ANATOMY
}
HARMLESS = word_set(_LISTS["harmless"])
NOT_NOW = word_set(_LISTS["not_now"])
_NO_NOUNS = ANATOMY | HARMLESS | word_set(_LISTS["states"])
AFTER_A_COMMA = _NO_NOUNS | QUALIFIERS
_CAUSE = {
    germ: cause
    for cause, germs in _LISTS["implied"].items()
    for germ in word_set(germs)
}
VOCABULARY = (AFTER_A_COMMA | HARMLESS | _CAUSE.keys()).union(*_FIRST_OF_WORDS)
ANOTHER = [
    (frozenset(_telling_words(_spelt(name))), word_set(words))
    for name, words in _LISTS["another_disease"].items()
]


@cache
def read_name(text: str) -> Name:
    """The name with its listed names put as one, and without harmless words where the rest still
    names a disease."""
    spelt = _with_first_names(_spelt(text).split())
    words = _telling_words(spelt)
    first_name = _FIRST_OF_WORDS.get(frozenset(words))
    if first_name:
        spelt = first_name
        words = _telling_words(first_name)
    described = re.split(r" (?:of|in) ", before_the_cause(spelt))[0]
    nouns = [word for word in _telling_words(described) if _is_noun(word)]
    noun = nouns[-1] if nouns else ""
    causes = [_CAUSE[word] for word in words if word in _CAUSE]
    all_words = frozenset(words + causes)
    harmless = HARMLESS
    if "infection" not in spelt.split():
        harmless = HARMLESS - {"infection"}  # "infective" is no harmless word
    rest = all_words - harmless
    if not any(map(_is_noun, rest)):
        rest = all_words
    return Name(rest, noun, spelt)


def _with_first_names(words: list[str]) -> str:
    """The words with each listed name, the longest at a place, as the first of its group."""
    parts: list[str] = []
    while words:
        size = _n_listed(words)
        name = " ".join(words[:size])
        parts.append(_FIRST_NAME.get(name, name))
        words = words[size:]
    return " ".join(parts)


def _n_listed(words: list[str]) -> int:
    """How many words the longest listed name has that these begin with; 1 where none is listed."""
    for size in range(min(_LONGEST, len(words)), 0, -1):
        if " ".join(words[:size]) in _FIRST_NAME:
            return size
    return 1


def _is_noun(word: str) -> bool:
    """Whether a word can say what a disease is: no qualifier, organ or state."""
    return not is_qualifier(word) and word not in _NO_NOUNS


def before_the_cause(text: str) -> str:
    """The X of "X due to Y" and "X with Y"; the whole where nothing of the kind follows."""
    return _CAUSE_FOLLOWS.split(text, maxsplit=1)[0]


def cause_behind(text: str) -> str:
    """As "X due to Y" what is "Y-induced X"."""
    return _CAUSE_FIRST.sub(r"\2 due to \1", text, count=1)


def kinds_of(names: Iterable[str]) -> list[str]:
    """The names of kinds of these diseases that do not show it in their words."""
    kinds = []
    for words in dict.fromkeys(read_name(name).words for name in names):
        kinds += _KINDS.get(words, [])
    return kinds


_KINDS: dict[frozenset[str], list[str]] = {}
for _name, _kinds in _LISTS["kinds"].items():
    _KINDS.setdefault(read_name(_name).words, []).extend(
        map(str.strip, _kinds.split("|"))
    )


def is_listed(text: str) -> bool:
    """Whether the lists have the name."""
    return frozenset(_telling_words(read_name(text).spelt)) in _GROUPS_OF_WORDS


_FINDINGS = [read_name(name).words for name in _LISTS["beside"]]
_COMPANIONS = [
    (read_name(name).words, read_name(other).words)
    for name, others in _LISTS["companions"].items()
    for other in others.split("|")
]


def goes_with(text: str, name: str) -> bool:
    """Whether a text is a finding of many diseases, or a cause or complication of this one."""
    words = read_name(text).words
    disease = read_name(name).words
    for finding in _FINDINGS:
        if finding <= words <= finding | AFTER_A_COMMA:
            return True
    for first, second in _COMPANIONS:
        if (first <= disease and second <= words) or (
            second <= disease and first <= words
        ):
            return True
    return False
