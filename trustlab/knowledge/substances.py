"""Names drugs and organisms, which questions of one's own ask for in place of a disease."""

from __future__ import annotations

import re
from functools import cache

from trustlab.files import DATA, read_yaml
from trustlab.knowledge.words import word_lists
from trustlab.records import normalise

_LISTS = word_lists("substances")
SPECIES = {genus: names.split() for genus, names in _LISTS["organisms"].items()}
"""The species of each genus that we list."""
OTHER_DRUGS = frozenset(map(normalise, _LISTS["other_drugs"]))
"""What the table has as a name of a drug, since the same speaks against both."""
_SHORT_GENUS = re.compile(r"^\s*([A-Za-z]+)\.?\s+([a-z]+)\b", re.ASCII)
"""The beginning of "S. aureus" and "Staph aureus"."""


@cache
def _drugs() -> dict[str, tuple[str, ...]]:
    """All names of a drug of our table, by each of them (:func:`_joined`)."""
    names_of_drug = {}
    for row in read_yaml(DATA / "knowledge" / "drugs.yml"):
        names = [row["name"]]
        for synonym in row["synonyms"]:
            if normalise(synonym) not in OTHER_DRUGS:
                names.append(synonym)
        for name in names:
            names_of_drug[_joined(name)] = tuple(names)
    return names_of_drug


def _joined(name: str) -> str:
    """The normalised name of a drug; one of two parts is alike with "with", a dash or a slash."""
    words = normalise(name).split()
    return " ".join(word for word in words if word not in ("with", "and"))


def drug_names(name: str) -> tuple[str, ...]:
    """All names of the drug that our table has by this one; none of another thing."""
    return _drugs().get(_joined(name), ())


def is_substance(name: str) -> bool:
    """Whether a text is the name of a drug of our table, or of a listed organism: a genus alone, or
    with a species."""
    genus, _, species = normalise(name).partition(" ")
    is_organism = genus in SPECIES and species in ("", *SPECIES[genus])
    return is_organism or bool(drug_names(name))


def with_whole_genus(text: str) -> str:
    """As "Staphylococcus aureus …" what begins with "S. aureus" or "Staph aureus"."""
    start = _SHORT_GENUS.match(text)
    if start is None:
        return text
    for genus, species in SPECIES.items():
        if genus.startswith(start[1].casefold()) and start[2] in species:
            return f"{genus.capitalize()} {text[start.start(2) :]}"
    return text
