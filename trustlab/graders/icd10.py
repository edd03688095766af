"""Looks a disease's name up in ICD-10-CM.

The terminology takes seconds to open, so it is opened at the first name that nothing else settles.
"""

from __future__ import annotations

import re
import warnings
from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from trustlab.graders.disease_names import read_name

_LEFT_OUT = re.compile(r"[VWXYZ]|[ST].{5}|.{7}")
"""Codes of circumstances, and those of most detail: sides, joints, encounters."""
_RESIDUAL = re.compile(r"^other\b|\bother specified\b|\bunspecified\b|\bnot elsewhere\b", re.I)
_UNSPECIFIED = re.compile(
    r",? \(?(?:unspecified(?: (?:organism|site|type|part|complications?))*|nos)\)?$"
    r"|,? not elsewhere classified$",
    re.I,
)
_ASIDE = re.compile(r" *\([^()]*\)")
_ALIAS = re.compile(r"(.+?) \[([^\]]+)\](.*)")


class Place(NamedTuple):
    """Where a name stands: as the ``title`` of its code, or its ``only`` inclusion term. Terms of a
    category ("includes") and "NOS" have no ``code``: they may be wider."""

    code: str
    title: bool
    only: bool = False


@lru_cache(maxsize=1)
def _places() -> dict[frozenset[str], list[Place]]:
    """The words of every title and inclusion term -> where it stands."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of its way to read its own files
        import simple_icd_10_cm as icd

    places = defaultdict(list)
    for code in icd.get_all_codes():
        known = not (icd.is_chapter_or_block(code) or icd.is_extended_subcategory(code))
        if _LEFT_OUT.match(code) or not known:
            continue
        title = icd.get_description(code)
        alias = _ALIAS.fullmatch(title)
        titles = [alias[1] + alias[3], alias[2]] if alias else [title]
        terms = icd.get_inclusion_term(code)
        both = [*terms, *icd.get_includes(code)]
        only = len(both) == 1 and not _RESIDUAL.search(title)
        for name in titles:
            places[_words(_UNSPECIFIED.sub("", name))].append(Place(code, True))
        for i, name in enumerate(both):
            close = only or (i < len(terms) and not name.endswith("NOS"))
            places[_words(name)].append(Place(code if close else "", False, only))
    return places


def _words(name: str) -> frozenset[str]:
    return read_name(_ASIDE.sub("", name)).words


@lru_cache(maxsize=1)
def vocabulary() -> frozenset[str]:
    """Every word of a name."""
    return frozenset().union(*_places())


def is_known(name: str) -> bool:
    """Whether ICD-10-CM has the name."""
    return _words(name) in _places()


def relation(name: str, truths: Iterable[str]) -> str:
    """How a name stands to those of the truth: ``same`` (both titles of a code, or a title and its
    only inclusion term of other words), ``narrower`` (under the truth's title), else ''."""
    said, places = _words(name), _places()
    best = ""
    for true in map(_words, truths):
        pairs = ((here, there) for here in places.get(said, ()) for there in places.get(true, ()))
        for here, there in pairs:
            only = (here.only or there.only) and not said & true
            if here.code and here.code == there.code and (only or (here.title and there.title)):
                return "same"
            if there.title and here.code.startswith(there.code):
                best = "narrower"
    return best
