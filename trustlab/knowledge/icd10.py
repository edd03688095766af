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
from pathlib import Path
from typing import NamedTuple

from trustlab import paths
from trustlab.knowledge.disease_names import read_name
from trustlab.processes import seldom_collected

_LEFT_OUT = re.compile(r"[VWXYZ]|[ST].{5}|.{7}|P22$")
"""Codes of circumstances, and those of most detail: sides, joints, encounters. Respiratory distress
of the newborn (P22) is read as its syndrome, which is but one kind of it."""
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
        with suppress(OSError):  # a folder that is read-only, or full: the next process reads anew
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
        return {frozenset(name.split()): [Place(*at) for at in places] for name, places in names}


def _as_text(places: Places, key: str) -> str:
    """A line with a digest, which tells a torn or another file, then the reading as JSON."""
    text = json.dumps([(" ".join(sorted(name)), at) for name, at in places.items()])
    return f"{_digest(text, key)}\n{text}"


def _digest(text: str, key: str) -> str:
    return hashlib.sha256((key + text).encode()).hexdigest()


def _read() -> Places:
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


@lru_cache(maxsize=1)
def _names_by_word() -> dict[str, set[frozenset[str]]]:
    names = defaultdict(set)
    for name in _places():
        for word in name:
            names[word].add(name)
    return dict(names)


def has_words(words: frozenset[str]) -> bool:
    """Whether one name of ICD-10-CM has all of these words."""
    names = [_names_by_word().get(word, set()) for word in words]
    return bool(names) and bool(set.intersection(*names))


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
