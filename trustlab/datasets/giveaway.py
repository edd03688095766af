"""What a doctor calls a diagnosis on saying it, and whether earlier words give it away."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from trustlab.knowledge import normalise

_GENERIC = """
disease diseases disorder disorders syndrome syndromes condition conditions illness infection infections infectious
inflammation inflammatory virus viral bacterial fungal bacteria injury attack failure insufficiency deficiency reaction
problem problems lesion episode exacerbation complication history form other unspecified due with without from the and
acute subacute chronic severe mild moderate recurrent stable unstable idiopathic essential primary secondary congenital
acquired simple common first initial possible probable suspected left right upper lower bilateral early late type stage
pain ache cough coughing fever swelling rash weakness shortness breath breathing heart cardiac lung lungs pulmonary chest
airway airways respiratory tract throat nose ear eye head neck back spine spinal shoulder arm elbow wrist hand finger hip
leg knee ankle foot feet toe joint joints muscle muscles muscular tendon bone bones nerve skin blood vessel vein artery
stomach abdominal abdomen bowel gastric liver kidney renal bladder urinary brain body tissue soft system wall
"""
GENERIC = frozenset(_GENERIC.split())
"""Words of a name that do not give it away by themselves: kinds and courses of disease, complaints, places in the body."""

_LONG = 4


@dataclass(frozen=True)
class Giveaway:
    """What must not be heard before the diagnosis.

    ``names``, ``words``: normalised; those of 4 letters or more also count inside a longer word ("asthmatic").
    ``acronyms``: in capitals; those of 3 letters or fewer count in capitals alone, since "ALL" and "MS" are also words.
    """

    names: frozenset[str]
    words: frozenset[str]
    acronyms: frozenset[str]

    def heard_in(self, text: str) -> bool:
        """Whether ``text`` says any of it."""
        plain = f" {normalise(text)} "
        tokens = set(re.findall(r"[^\W_]+", text))
        return (
            any(term in plain if len(term) >= _LONG else f" {term} " in plain for term in self.names | self.words)
            or any(acronym in tokens for acronym in self.acronyms)
            or any(len(a) >= _LONG and f" {a.lower()} " in plain for a in self.acronyms)
        )


def giveaway(names: Sequence[str], utterance: str) -> Giveaway:
    """What gives the diagnosis away that has these ``names`` and that ``utterance`` speaks.

    - Every name, whether spoken there or not. One of up to 3 letters, all capitals ("PE"), counts as an acronym.
    - The words of the names that the utterance says, unless they are short (2 letters or fewer), numbers or
      :data:`GENERIC`; a plural s on either side makes no difference.
    - An acronym that the utterance says, where its letters begin the words of a name, or words that follow each other in
      the utterance and share such a word with a name: "COPD, chronic obstructive pulmonary disorder" for the name
      chronic obstructive airway disease.
    """
    spoken = normalise(utterance).split()
    words = {_stem(word) for name in names for word in normalise(name).split() if _distinctive(word)}
    said = {stem for word in spoken if (stem := _stem(word)) in words}
    phrases = [normalise(name).split() for name in names]
    acronyms = {name for name in names if name.isupper() and len(name) < _LONG}
    for token in re.findall(r"\b[A-Z][A-Za-z]+\b", utterance):
        acronym = token.removesuffix("s")
        if len(acronym) < 2 or not acronym.isupper():
            continue
        runs = [spoken[i : i + len(acronym)] for i in range(len(spoken))]
        own = [run for run in runs if any(_stem(word) in said for word in run)]
        if any(_initials(run) == acronym for run in [*phrases, *own]):
            acronyms.add(acronym)
    return Giveaway(
        names=frozenset(filter(None, (normalise(name) for name in names if name not in acronyms))),
        words=frozenset(said),
        acronyms=frozenset(acronyms),
    )


def _distinctive(word: str) -> bool:
    return len(word) > 2 and not word.isdigit() and word not in GENERIC


def _stem(word: str) -> str:
    return word.removesuffix("s") if len(word) > _LONG else word


def _initials(words: Sequence[str]) -> str:
    return "".join(word[0] for word in words).upper()
