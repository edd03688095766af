"""Names drugs and organisms, which questions of one's own ask for in place of a disease."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from trustlab.files import DATA, read_yaml
from trustlab.knowledge.words import word_lists
from trustlab.records import normalise

_LISTS = word_lists("substances")
GENERA = frozenset(_LISTS["genera"].split())
OTHER_DRUGS = frozenset(map(normalise, _LISTS["other_drugs"]))
"""What the table has as a name of a drug, since the same speaks against both."""
_ORGANISM = re.compile(r"^([A-Za-z]+)\.? +([a-z]{4,})\b", re.ASCII)
"""A genus, perhaps shortened, and a species: "Staphylococcus aureus", "S. aureus"."""


@cache
def _drugs() -> dict[str, tuple[str, ...]]:
    """All names of a drug of our table, by each of them, normalised."""
    names_of_drug = {}
    for row in read_yaml(DATA / "knowledge" / "drugs.yml"):
        names = [row["name"]]
        for synonym in row["synonyms"]:
            if normalise(synonym) not in OTHER_DRUGS:
                names.append(synonym)
        for name in names:
            names_of_drug[normalise(name)] = tuple(names)
    return names_of_drug


def drug_names(name: str) -> tuple[str, ...]:
    """All names of the drug that our table has by this one; none of another thing."""
    return _drugs().get(normalise(name), ())


def is_substance(name: str) -> bool:
    """Whether a text is the name of a drug of our table, or of an organism: a genus alone, or with
    a species."""
    words = normalise(name).split()
    is_organism = 1 <= len(words) <= 2 and words[0] in GENERA
    return is_organism or bool(drug_names(name))


def with_whole_genus(text: str, names: Sequence[str]) -> str:
    """The text with the genus that one of the names has in full: "S. aureus" is Staphylococcus
    aureus where that is a name."""
    short = _ORGANISM.match(text.strip())
    for name in names:
        whole = _ORGANISM.match(name.strip())
        if short is None or whole is None or whole[1].casefold() not in GENERA:
            continue
        begins_alike = whole[1].casefold().startswith(short[1].casefold())
        if begins_alike and short[2] == whole[2]:
            return f"{whole[1]} {text.strip()[short.start(2) :]}"
    return text
