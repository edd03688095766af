"""Data sets by name. A loader is one file: a path and a seed in, cases in file order out."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from trustlab.datasets import ddxplus, spoken, starter, table
from trustlab.datasets.errors import DataError
from trustlab.records import Case

__all__ = ["ABOUT", "LOADERS", "DataError", "load_cases", "load_sets"]

ABOUT = {
    "starter": "120 generated patients that come with the project (data/starter)",
    "starter-structured": "the same, by its full name",
    "ddxplus": "DDXPlus, English release: give the folder of the download as path (CC BY)",
    "starter-dialogue": "32 written conversations that come with the project (data/starter/dialogue.jsonl)",
    "starter-report": "32 written case reports that come with the project (data/starter/report.jsonl)",
    "table": "your own cases: give a .csv, .tsv or .jsonl file as path (data/README.md shows the format)",
}
"""A line on each data set, for people."""

LOADERS: dict[str, Callable[[Path | None, int], list[Case]]] = {
    "starter": starter.load,
    "starter-structured": starter.load,
    "ddxplus": ddxplus.load,
    "starter-dialogue": spoken.load_dialogue,
    "starter-report": spoken.load_report,
    "table": table.load,
}


def load_cases(name: str, *, path: str | Path | None = None, n: int | None = None, seed: int = 0) -> list[Case]:
    """The cases of data set ``name``, in file order; ``n`` of them picked at random where given.

    ``seed`` decides the pick and whatever order or wording the data set itself leaves open. Picks with one seed
    nest: the cases of a smaller ``n`` are among those of a larger one. Raises ``ValueError`` for an unknown name, a
    missing path or an ``n`` out of reach, and its subclass :class:`DataError` for a file that breaks its format.
    """
    return _picked(_loaded(name, path, seed), name, n, seed)


def load_sets(
    names: str | Sequence[str],
    *,
    path: str | Path | Sequence[str | Path | None] | None = None,
    n: int | None = None,
    seed: int = 0,
) -> list[Case]:
    """The cases of one data set or several, one set after the other; ``n`` of each set, or all where it has fewer.

    ``path`` is one path for one data set, and a list for several: one entry each, ``None`` where none is needed.
    Otherwise as :func:`load_cases`. Raises ``ValueError`` where names and paths do not pair up or a case is there twice.
    """
    asked = [names] if isinstance(names, str) else list(names)
    paths = [None] * len(asked) if path is None else [path] if isinstance(path, str | Path) else list(path)
    if not asked or len(paths) != len(asked):
        raise ValueError(f"{len(asked)} data sets need a path each (null where none is needed); path is {path!r}")
    cases: list[Case] = []
    for name, where in zip(asked, paths, strict=True):
        found = _loaded(name, where, seed)
        cases += _picked(found, name, n and min(n, len(found)), seed)
    if again := [case_id for case_id, times in Counter(c.case_id for c in cases).items() if times > 1]:
        raise ValueError(f"{len(again)} cases are in the data sets {', '.join(asked)} more than once, {again[0]!r} among them")
    return cases


def _loaded(name: str, path: str | Path | None, seed: int) -> list[Case]:
    if name not in LOADERS:
        raise ValueError(f"name is {name!r}; allowed are {', '.join(LOADERS)}")
    cases = LOADERS[name](None if path is None else Path(path).expanduser(), seed)
    if not cases:
        raise ValueError(f"{name} at {path} holds no case with more than 10 statements")
    return cases


def _picked(cases: list[Case], name: str, n: int | None, seed: int) -> list[Case]:
    if n is None:
        return cases
    if not 1 <= n <= len(cases):
        raise ValueError(f"n is {n}; {name} has {len(cases)} cases, allowed are 1 to {len(cases)}")
    order = list(range(len(cases)))
    random.Random(seed).shuffle(order)
    return [cases[i] for i in sorted(order[:n])]
