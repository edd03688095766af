"""Takes a disease's name apart: its words, its noun."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from trustlab.knowledge.same_diagnosis import QUALIFIERS, folded, is_qualifier, words_in_order
from trustlab.knowledge.words import word_lists
from trustlab.records import normalise

_LISTS = word_lists("disease_names")
_FORM = {form: one for one, forms in _LISTS["forms"].items() for form in forms.split()}
_SMALL = frozenset(_LISTS["small"].split())
"""Words that say nothing between two others."""
_PREFIX = re.compile(r"\b(non|pre|post|pseudo|para|anti) (?=[a-z])")
_ISE = re.compile(r"(?<=[a-z]{4})is(ed?|ing|ation)\b")
_ENDS = ("ss", "us", "is", "as", "os")
_CUT = re.compile(
    r"[ ,]+(?:with|without|(?:due|secondary|related) to|(?:caused|complicated|triggered|induced) by"
    r"|associated with|resulting from|leading to|causing|because of|from|following|after|during"
    r"|in the setting of|on|to|in(?! situ))\b"
)


_CAUSED = re.compile(
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
    text = normalise(re.sub(r"^a-", "a", folded(text))).replace("ae", "e").replace("oe", "e")
    text = _ISE.sub(r"iz\1", text)
    for pattern, phrase in _PHRASES:
        text = pattern.sub(phrase, text)
    words = _PREFIX.sub(r"\1", text).split()
    return " ".join(
        word[:-1] if len(word) > 4 and word[-1] == "s" and not word.endswith(_ENDS) else word
        for word in words
    )


def _words(name: str) -> list[str]:
    words = (_FORM.get(word, word) for word in words_in_order(name))
    return [word for word in words if word not in _SMALL]


_PHRASES = [(re.compile(rf"\b(?:{p})\b"), phrase) for p, phrase in _LISTS["phrases"].items()]
_GROUPS = [[_spelt(name) for name in group.split("|")] for group in _LISTS["same"]]
_FIRST = {name: group[0] for group in _GROUPS for name in group}
_LONGEST = max(len(name.split()) for name in _FIRST)


def word_set(text: str) -> frozenset[str]:
    """The words of a list, as names spell them."""
    return frozenset(_words(_spelt(text))) | frozenset(text.split())


ANATOMY = word_set(_LISTS["anatomy"])
_GROUPS_OF_WORDS = defaultdict(set)
for _group in _GROUPS:
    for _name in _group:
        _GROUPS_OF_WORDS[frozenset(_words(_name))].add(_group[0])
_FIRST_OF_WORDS = {
    words: min(firsts)
    for words, firsts in _GROUPS_OF_WORDS.items()
    if len(firsts) == 1 and words - ANATOMY
}
HARMLESS = word_set(_LISTS["harmless"])
NOT_NOW = word_set(_LISTS["not_now"])
_NO_NOUNS = ANATOMY | HARMLESS | word_set(_LISTS["states"])
AFTER_A_COMMA = _NO_NOUNS | QUALIFIERS
_CAUSE = {germ: cause for cause, germs in _LISTS["implied"].items() for germ in word_set(germs)}
VOCABULARY = (AFTER_A_COMMA | HARMLESS | _CAUSE.keys()).union(*_FIRST_OF_WORDS)
ANOTHER = [
    (frozenset(_words(_spelt(name))), word_set(words))
    for name, words in _LISTS["another_disease"].items()
]


@cache
def read_name(text: str) -> Name:
    """The name with its listed names put as one, and without harmless words where the rest still
    names a disease."""
    spelt = _by_first_names(_spelt(text).split())
    words = _words(spelt)
    if first := _FIRST_OF_WORDS.get(frozenset(words)):
        spelt, words = first, _words(first)
    described = _words(re.split(r" (?:of|in) ", before_the_cause(spelt))[0])
    noun = next((word for word in reversed(described) if _is_noun(word)), "")
    words += [_CAUSE[word] for word in words if word in _CAUSE]
    infectious = {"infection"} - set(spelt.split())  # "infective" is no harmless word
    rest = frozenset(words) - (HARMLESS - infectious)
    return Name(rest if any(map(_is_noun, rest)) else frozenset(words), noun, spelt)


def _by_first_names(words: list[str]) -> str:
    """The words with each listed name, the longest at a place, as the first of its group."""
    parts: list[str] = []
    while words:
        sizes = range(min(_LONGEST, len(words)), 0, -1)
        size = next((n for n in sizes if " ".join(words[:n]) in _FIRST), 1)
        part, words = " ".join(words[:size]), words[size:]
        parts.append(_FIRST.get(part, part))
    return " ".join(parts)


def _is_noun(word: str) -> bool:
    return not is_qualifier(word) and word not in _NO_NOUNS


def before_the_cause(text: str) -> str:
    """The X of "X due to Y" and "X with Y"; the whole where nothing of the kind follows."""
    return _CUT.split(text, maxsplit=1)[0]


def cause_behind(text: str) -> str:
    """As "X due to Y" what is "Y-induced X"."""
    return _CAUSED.sub(r"\2 due to \1", text, count=1)


def kinds_of(names: Iterable[str]) -> list[str]:
    """The names of kinds of these diseases that do not show it in their words."""
    distinct = dict.fromkeys(read_name(name).words for name in names)
    return [kind for words in distinct for kind in _KINDS.get(words, ())]


_KINDS: dict[frozenset[str], list[str]] = {}
for _name, _kinds in _LISTS["kinds"].items():
    _KINDS.setdefault(read_name(_name).words, []).extend(map(str.strip, _kinds.split("|")))


def is_listed(text: str) -> bool:
    """Whether the lists have the name."""
    return frozenset(_words(read_name(text).spelt)) in _GROUPS_OF_WORDS


_FINDINGS = [read_name(name).words for name in _LISTS["beside"]]
_COMPANIONS = [
    (read_name(name).words, read_name(other).words)
    for name, others in _LISTS["companions"].items()
    for other in others.split("|")
]


def goes_with(text: str, name: str) -> bool:
    """Whether a text is a finding of many diseases, or a cause or complication of this one."""
    other, disease = read_name(text).words, read_name(name).words
    if any(finding <= other <= finding | AFTER_A_COMMA for finding in _FINDINGS):
        return True
    return any(
        (a <= disease and b <= other) or (b <= disease and a <= other) for a, b in _COMPANIONS
    )
