"""What a doctor calls a diagnosis on saying it, and whether earlier words give it away."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from os.path import commonprefix

from trustlab.records import Case, normalise
from trustlab.words import word_lists
from trustlab.words.sentences import lay_names

_WORDS = word_lists("giveaway")
GENERIC = frozenset(_WORDS["generic"].split())
"""Words of a name that do not give it away by themselves."""
NO_DISEASES = frozenset(_WORDS["no_diseases"].split())
"""Words in capitals that name no disease."""
_ALSO_WORDS = frozenset(_WORDS["also_words"].split())

_LONG = 4
_PREFIX, _ENDING = 6, 3
_HYPHEN = re.compile(r"(?<=\w)[-\u2010\u2011](?=\w)")


@dataclass(frozen=True)
class Giveaway:
    """What must not be heard before the diagnosis.

    ``names``, ``words``: normalised; those of 4 letters or more also count inside a longer word
    ("asthmatic"), and a word also with another ending: 6 letters or more in common, 3 or fewer
    after them ("diabetes", "diabetic"). ``whole``: normalised; whole words alone, perhaps with a
    plural s: acronyms of 3 letters or more, everyday names. ``acronyms``: count in capitals alone:
    those of 2 letters, and those which are also words, such as "ALL".
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


def giveaway(names: Sequence[str], utterance: str) -> Giveaway:
    """What gives the diagnosis away that has these ``names`` and that ``utterance`` speaks.

    - Every name, spoken there or not, and its everyday names (:func:`lay_names`).
    - The names' words that the utterance says, unless short (2 letters or fewer), numbers or
      :data:`GENERIC`; a plural s, another ending or a hyphen makes no difference.
    - Acronyms that it says, of 3 letters or more, but for :data:`NO_DISEASES`, words ("NOT") and
      what is all in capitals. One of 2 letters, or which is a word, where its letters begin the
      words of a name, or of a run in the utterance that shares such a word with a name.
    - An acronym that is itself a name, as a word of its own: "URTI" is not heard in "hurting".

    Not seen: everyday names that the list lacks, a disease told by what it does, its drugs or its
    organism, spelling mistakes, acronyms with digits, words of like meaning ("renal").
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
    in_capitals = {
        acronym for acronym in acronyms if len(acronym) < 3 or acronym.lower() in _ALSO_WORDS
    }
    return Giveaway(
        names=frozenset(p for n in names if n not in acronyms for p in _spellings(n) if p),
        words=frozenset(said),
        whole=frozenset(acronym.lower() for acronym in acronyms - in_capitals) | lay_names(names),
        acronyms=frozenset(in_capitals),
    )


_of_names = lru_cache(maxsize=2**10)(giveaway)


def names_its_diagnosis(case: Case) -> bool:
    """Whether a statement says the diagnosis: an accepted or an everyday name, even to deny it."""
    names = (case.diagnosis, *case.accepted)
    return any(_heard(names, statement.text) for statement in case.statements)


@lru_cache(maxsize=2**16)
def _heard(names: tuple[str, ...], text: str) -> bool:
    """Data sets from templates repeat few texts very often."""
    return _of_names(names, "").heard_in(text)


def _spellings(text: str) -> tuple[str, str]:
    """``text`` normalised, its hyphens as spaces and as nothing."""
    return normalise(text), normalise(_HYPHEN.sub("", text))


def _same(word: str, own: str) -> bool:
    """Whether two words differ in their endings alone."""
    shared = len(commonprefix((word, own)))
    return shared >= _PREFIX and max(len(word), len(own)) - shared <= _ENDING


def _stem(word: str) -> str:
    return word.removesuffix("s") if len(word) > _LONG else word
