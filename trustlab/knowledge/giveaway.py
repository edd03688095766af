"""Finds words that give the diagnosis away."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
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
    normalise(name): tuple(normalise(one) for one in lay.split(","))
    for name, lay in word_lists("disease_names")["lay_names"].items()
}
"""Name -> its everyday names, all normalised; a list of our own, far from complete."""

_LONG = 4
_PREFIX, _ENDING = 6, 3
_HYPHEN = re.compile(r"(?<=\w)[-\u2010\u2011](?=\w)")


@dataclass(frozen=True)
class Giveaway:
    """What must not be heard before the diagnosis.

    - ``names``, ``words``: normalised; those of 4 letters or more also inside a longer word, a word
      also with another ending: 6 letters in common, 3 or fewer after them ("diabetic").
    - ``whole``: normalised, whole words, perhaps with a plural s: acronyms, everyday names.
    - ``acronyms``: in capitals alone: those of 2 letters, and words such as "ALL".
    """

    names: frozenset[str]
    words: frozenset[str]
    whole: frozenset[str]
    acronyms: frozenset[str]

    def heard_in(self, text: str) -> bool:
        """Whether ``text`` says any of it, with its hyphens or without ("co-vid")."""
        tokens = {token.removesuffix("s") for token in re.findall(r"[^\W_]+", text)}
        if tokens & self.acronyms:
            return True
        inside = [term if len(term) >= _LONG else f" {term} " for term in self.names | self.words]
        inside += [end for term in self.whole for end in (f" {term} ", f" {term}s ")]
        for plain in _spellings(text):
            words = set(plain.split()) - GENERIC
            if any(term in f" {plain} " for term in inside):
                return True
            if any(_same(word, own) for word in words for own in self.words):
                return True
        return False


def lay_names(names: Iterable[str]) -> frozenset[str]:
    """The everyday names, normalised, of whatever has one of these ``names``."""
    return frozenset(lay for name in names for lay in LAY_NAMES.get(normalise(name), ()))


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
    spoken = normalise(utterance).split()
    heard = {word for plain in _spellings(utterance) for word in plain.split()} - GENERIC
    plain_words = (w for name in names for plain in _spellings(name) for w in plain.split())
    telling = (w for w in plain_words if len(w) > 2 and not w.isdigit() and w not in GENERIC)
    words = set(map(_stem, telling))
    said = {own for own in words if any(_stem(word) == own or _same(word, own) for word in heard)}
    phrases = [normalise(name).split() for name in names]
    acronyms = {name for name in names if name.isalpha() and name.isupper() and len(name) < _PREFIX}
    for token in re.findall(r"\b[A-Z][A-Za-z]+\b", utterance):
        acronym = token if token.isupper() else token.removesuffix("s")
        if len(acronym) < 2 or not acronym.isupper():
            continue
        runs = [spoken[i : i + len(acronym)] for i in range(len(spoken))]
        own = [run for run in runs if any(_stem(word) in said for word in run)]
        shouted = utterance.isupper() or acronym.lower() in _ALSO_WORDS
        shouted = shouted or bool({acronym, acronym.removesuffix("S")} & NO_DISEASES)
        begins = any("".join(w[0] for w in run).upper() == acronym for run in [*phrases, *own])
        if begins or (len(acronym) > 2 and not shouted):
            acronyms.add(acronym)
    in_capitals = {one for one in acronyms if len(one) < 3 or one.lower() in _ALSO_WORDS}
    return Giveaway(
        names=frozenset(p for n in names if n not in acronyms for p in _spellings(n) if p),
        words=frozenset(said),
        whole=frozenset(acronym.lower() for acronym in acronyms - in_capitals) | lay_names(names),
        acronyms=frozenset(in_capitals),
    )


def _spellings(text: str) -> tuple[str, str]:
    """``text`` normalised, its hyphens as spaces and as nothing."""
    return normalise(text), normalise(_HYPHEN.sub("", text))


def _same(word: str, own: str) -> bool:
    """Whether two words differ in their endings alone."""
    shared = len(commonprefix((word, own)))
    return shared >= _PREFIX and max(len(word), len(own)) - shared <= _ENDING


def _stem(word: str) -> str:
    return word.removesuffix("s") if len(word) > _LONG else word
