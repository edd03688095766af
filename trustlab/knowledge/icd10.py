"""Looks a disease's name up in ICD-10-CM.

To read the terminology takes seconds, so it is read at the first name that nothing else settles,
and the reading is kept in the user's cache folder.
"""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import NamedTuple

from trustlab import paths
from trustlab.knowledge.disease_names import read_name
from trustlab.processes import seldom_collected

_LEFT_OUT = re.compile(r"[VWXYZ]|[ST].{5}|.{7}|P22$")
"""Codes of circumstances, and those of most detail: sides, joints, encounters. Respiratory distress
of the newborn (P22) is read as its syndrome, which is but one kind of it."""
_RESIDUAL = re.compile(
    r"^other\b|\bother specified\b|\bunspecified\b|\bnot elsewhere\b", re.I
)
_UNSPECIFIED = re.compile(
    r",? \(?(?:unspecified(?: (?:organism|site|type|part|complications?))*|nos)\)?$"
    r"|,? not elsewhere classified$",
    re.I,
)
_IN_BRACKETS = re.compile(r" *\([^()]*\)")
_ALIAS = re.compile(r"(.+?) \[([^\]]+)\](.*)")


class Place(NamedTuple):
    """Where a name stands: as the ``title`` of its code, or its ``only`` inclusion term. Terms of a
    category ("includes") and "NOS" have no ``code``: they may be wider."""

    code: str
    title: bool
    only: bool = False


Places = dict[frozenset[str], list[Place]]
PACKAGE = Path(__file__).parents[1]
RULES = (
    "knowledge/disease_names.py",
    "knowledge/icd10.py",
    "knowledge/same_*.py",
    "knowledge/words/*.*",
    "records.py",
    "files.py",
)
"""The files of the package that decide how a name is read."""


@lru_cache(maxsize=1)
def _places() -> Places:
    """The reading in the user's cache folder, else a fresh one, which is put there."""
    key = _key()
    file = paths.user_cache() / f"icd10cm-{key}.json"
    places = _stored(file, key)
    if places is None:
        places = _read()
        # a folder that is read-only, or full: the next process reads anew
        with suppress(OSError):
            paths.save_text(_as_text(places, key), file)
    return places


def _key() -> str:
    """What a reading depends on: the terminology's version, and a hash of our rules."""
    digest = hashlib.sha256()
    for pattern in RULES:
        for file in sorted(PACKAGE.glob(pattern)):
            digest.update(file.read_bytes())
    return f"{version('simple-icd-10-cm')}-{digest.hexdigest()[:16]}"


def _stored(file: Path, key: str) -> Places | None:
    """The reading in a file; ``None`` unless it is there, whole, and of this key."""
    try:
        digest, text = file.read_text(encoding="utf-8").split("\n")
    except (OSError, ValueError):
        return None
    if digest != _digest(text, key):
        return None
    with seldom_collected():
        names = json.loads(text)
        places = {}
        for name, columns in names:
            places[frozenset(name.split())] = [Place(*row) for row in columns]
        return places


def _as_text(places: Places, key: str) -> str:
    """A line with a digest, which tells a torn or another file, then the reading as JSON."""
    names = [(" ".join(sorted(words)), rows) for words, rows in places.items()]
    text = json.dumps(names)
    return f"{_digest(text, key)}\n{text}"


def _digest(text: str, key: str) -> str:
    """What tells a reading that is torn, or of another key."""
    return hashlib.sha256((key + text).encode()).hexdigest()


def _read() -> Places:
    """The words of every title and inclusion term -> where it stands."""
    with warnings.catch_warnings():
        # of its way to read its own files
        warnings.simplefilter("ignore", DeprecationWarning)
        import simple_icd_10_cm as icd

    places = defaultdict(list)
    for code in icd.get_all_codes():
        is_group = icd.is_chapter_or_block(code) or icd.is_extended_subcategory(code)
        if is_group or _LEFT_OUT.match(code):
            continue
        title = icd.get_description(code)
        alias = _ALIAS.fullmatch(title)
        titles = [alias[1] + alias[3], alias[2]] if alias else [title]
        own_terms = icd.get_inclusion_term(code)
        terms = [*own_terms, *icd.get_includes(code)]
        is_only = len(terms) == 1 and not _RESIDUAL.search(title)
        for name in titles:
            places[_name_words(_UNSPECIFIED.sub("", name))].append(Place(code, True))
        for i, name in enumerate(terms):
            is_own = i < len(own_terms) and not name.endswith("NOS")
            term_code = code if is_only or is_own else ""
            places[_name_words(name)].append(Place(term_code, False, is_only))
    return places


def _name_words(name: str) -> frozenset[str]:
    """The words of a name, without what stands in brackets."""
    return read_name(_IN_BRACKETS.sub("", name)).words


@lru_cache(maxsize=1)
def vocabulary() -> frozenset[str]:
    """Every word of a name."""
    return frozenset().union(*_places())


def has_name(name: str) -> bool:
    """Whether ICD-10-CM has the name."""
    return _name_words(name) in _places()


@lru_cache(maxsize=1)
def _names_by_word() -> dict[str, set[frozenset[str]]]:
    """Word -> the words of each name that has it."""
    names_by_word = defaultdict(set)
    for name in _places():
        for word in name:
            names_by_word[word].add(name)
    return dict(names_by_word)


def has_words(words: frozenset[str]) -> bool:
    """Whether one name of ICD-10-CM has all of these words."""
    names = [_names_by_word().get(word, set()) for word in words]
    return bool(names) and bool(set.intersection(*names))


def relation(name: str, truths: Iterable[str]) -> str:
    """How a name stands to those of the truth: ``same`` (both titles of a code, or a title and its
    only inclusion term of other words), ``narrower`` (under the truth's title), else ''."""
    words = _name_words(name)
    places = _places()
    own_places = places.get(words, [])
    kind = ""
    for true_words in map(_name_words, truths):
        has_other_words = words.isdisjoint(true_words)
        for own, true in product(own_places, places.get(true_words, [])):
            if _is_same_place(own, true, has_other_words):
                return "same"
            if true.title and own.code.startswith(true.code):
                kind = "narrower"
    return kind


def _is_same_place(place: Place, other: Place, has_other_words: bool) -> bool:
    """Whether both are titles of a code, or a title and its only inclusion term of other words."""
    if not place.code or place.code != other.code:
        return False
    is_only_term = (place.only or other.only) and has_other_words
    return is_only_term or (place.title and other.title)
