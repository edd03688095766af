"""Finds words that give the diagnosis away."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from os.path import commonprefix

from trustlab.knowledge.words import word_lists
from trustlab.records import normalise

_WORDS = word_lists("giveaway")
GENERIC = frozenset(_WORDS["generic"].split())
"""Words of a name that do not give it away by themselves."""
NO_DISEASES = frozenset(_WORDS["no_diseases"].split())
"""Words in capitals that name no disease."""
_ALSO_WORDS = frozenset(_WORDS["also_words"].split())
LAY_NAMES = {
    normalise(name): tuple(map(normalise, everyday_names.split(",")))
    for name, everyday_names in word_lists("disease_names")["lay_names"].items()
}
"""Name -> its everyday names, all normalised; a list of our own, far from complete."""

_LONG_WORD = 4
_SHARED_PREFIX = 6
_ENDING = 3
_HYPHEN = re.compile(r"(?<=\w)[-\u2010\u2011](?=\w)")


@dataclass(frozen=True)
class Giveaway:
    """What must not be heard before the diagnosis.

    - ``names``, ``words``: normalised; those of 4 letters or more also inside a longer word, a word
      also with another ending: 6 letters in common, 3 or fewer after them ("diabetic").
    - ``whole_words``: normalised, whole words, perhaps with a plural s: acronyms, everyday names.
    - ``capitals``: in capitals alone: those of 2 letters, and words such as "ALL".
    """

    names: frozenset[str]
    words: frozenset[str]
    whole_words: frozenset[str]
    capitals: frozenset[str]

    def heard_in(self, text: str) -> bool:
        """Whether ``text`` says any of it, with its hyphens or without ("co-vid")."""
        tokens = {token.removesuffix("s") for token in re.findall(r"[^\W_]+", text)}
        if tokens & self.capitals:
            return True
        terms = [
            term if len(term) >= _LONG_WORD else f" {term} "
            for term in self.names | self.words
        ]
        for term in self.whole_words:
            terms += [f" {term} ", f" {term}s "]
        for spelling in _spellings(text):
            padded = f" {spelling} "
            if any(term in padded for term in terms):
                return True
        for word in _specific_words(text):
            if any(_is_same_word(word, own) for own in self.words):
                return True
        return False


def lay_names(names: Iterable[str]) -> frozenset[str]:
    """The everyday names, normalised, of whatever has one of these ``names``."""
    return frozenset(
        everyday_name
        for name in names
        for everyday_name in LAY_NAMES.get(normalise(name), ())
    )


def giveaway(names: Sequence[str], utterance: str) -> Giveaway:
    """What gives the diagnosis away that has these ``names`` and that ``utterance`` speaks.

    - Every name, spoken there or not, with its everyday names (:func:`lay_names`).
    - The words of the names that the utterance says, but for short ones (2 letters or fewer),
      numbers and :data:`GENERIC`; endings and hyphens make no difference.
    - Its acronyms of 3 letters or more, but for :data:`NO_DISEASES`, words ("NOT") and an utterance
      all in capitals; others where their letters begin the words of a name, or of a run there that
      shares a word with one.

    Not seen: everyday names that the list lacks, drugs, organisms, spelling mistakes, words of like
    meaning ("renal").
    """
    words = _words_spoken(names, utterance)
    acronyms = {name for name in names if _is_acronym(name)}
    acronyms |= _acronyms_spoken(names, utterance, words)
    only_in_capitals = {a for a in acronyms if len(a) < 3 or a.lower() in _ALSO_WORDS}
    whole_words = frozenset(acronym.lower() for acronym in acronyms - only_in_capitals)
    spellings = {
        spelling
        for name in names
        if name not in acronyms
        for spelling in _spellings(name)
    }
    return Giveaway(
        names=frozenset(spellings - {""}),
        words=words,
        whole_words=whole_words | lay_names(names),
        capitals=frozenset(only_in_capitals),
    )


def _words_spoken(names: Sequence[str], utterance: str) -> frozenset[str]:
    """The stems of the words of the names that the utterance says."""
    spoken = _specific_words(utterance)
    stems = set()
    for name in names:
        for word in _specific_words(name):
            stem = _stem(word)
            if len(word) <= 2 or word.isdigit():
                continue
            if any(
                _stem(other) == stem or _is_same_word(other, stem) for other in spoken
            ):
                stems.add(stem)
    return frozenset(stems)


def _is_acronym(name: str) -> bool:
    """Whether a name is short and all in capitals."""
    return name.isalpha() and name.isupper() and len(name) < _SHARED_PREFIX


def _acronyms_spoken(names: Sequence[str], utterance: str, words: Set[str]) -> set[str]:
    """The acronyms of an utterance that may give a name away; ``words``: those of the names."""
    spoken = normalise(utterance).split()
    initials_of_names = {_initials(normalise(name).split()) for name in names}
    acronyms = set()
    for token in re.findall(r"\b[A-Z][A-Za-z]+\b", utterance):
        acronym = token if token.isupper() else token.removesuffix("s")
        if len(acronym) < 2 or not acronym.isupper():
            continue
        is_begun = acronym in initials_of_names or _begins_words(acronym, spoken, words)
        if is_begun or (len(acronym) > 2 and not _is_shouted(acronym, utterance)):
            acronyms.add(acronym)
    return acronyms


def _begins_words(acronym: str, spoken: list[str], words: Set[str]) -> bool:
    """Whether its letters begin the words of a run that shares a word with a name."""
    for i in range(len(spoken)):
        run = spoken[i : i + len(acronym)]
        is_shared = not words.isdisjoint(map(_stem, run))
        if is_shared and _initials(run) == acronym:
            return True
    return False


def _initials(words: Iterable[str]) -> str:
    """The first letters of words, in capitals."""
    return "".join(word[0] for word in words).upper()


def _is_shouted(acronym: str, utterance: str) -> bool:
    """Whether capitals say nothing: all are, or the letters are a word or name no disease."""
    if utterance.isupper() or acronym.lower() in _ALSO_WORDS:
        return True
    return acronym in NO_DISEASES or acronym.removesuffix("S") in NO_DISEASES


def _spellings(text: str) -> tuple[str, str]:
    """``text`` normalised, its hyphens as spaces and as nothing."""
    return normalise(text), normalise(_HYPHEN.sub("", text))


def _specific_words(text: str) -> set[str]:
    """The words of both spellings of a text, but generic ones."""
    words = " ".join(_spellings(text)).split()
    return set(words) - GENERIC


def _is_same_word(word: str, other: str) -> bool:
    """Whether two words differ in their endings alone."""
    n_shared = len(commonprefix((word, other)))
    n_ending = max(len(word), len(other)) - n_shared
    return n_shared >= _SHARED_PREFIX and n_ending <= _ENDING


def _stem(word: str) -> str:
    return word.removesuffix("s") if len(word) > _LONG_WORD else word
