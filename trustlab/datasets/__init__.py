"""Reads data sets by name, as cases. A loader is one file: a path and a seed in, cases in file
order out."""

from __future__ import annotations

import inspect
import random
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from trustlab.datasets import cases_file, craftmd, ddxplus, meditod, medqa, own
from trustlab.datasets.cases_file import Read
from trustlab.records import Case
from trustlab.tables import DataError, check_table

__all__ = ["ABOUT", "LOADERS", "DataError", "Read", "load_cases", "load_sets", "read_data"]

ABOUT = {
    "starter": "240 generated patients that come with the project (data/starter)",
    "starter-dialogue": "48 written conversations that come along (data/starter/dialogue.jsonl)",
    "starter-report": "48 written case reports that come along (data/starter/report.jsonl)",
    "ddxplus": "DDXPlus, English release: give the folder of the download as path (CC BY)",
    "ddxplus-171": "171 cases of DDXPlus that come along, in our words (data/ddxplus, CC BY)",
    "meditod": "MediTOD, interviews: give the repository or its data folder (no licence stated)",
    "medqa": "MedQA (USMLE), questions for a diagnosis: give the JSONL file as path (MIT)",
    "craftmd": "CRAFT-MD, simulated conversations: the folder of a model's files as path (MIT)",
    "table": "your own cases: give a .csv, .tsv or .jsonl file as path (format: data/README.md)",
}
"""A line on each data set, for people."""

LOADERS: dict[str, Callable[..., Read]] = {
    "starter": own.read_starter,
    "starter-dialogue": partial(own.read_spoken, "dialogue"),
    "starter-report": partial(own.read_spoken, "report"),
    "ddxplus": ddxplus.read,
    "ddxplus-171": own.read_ddxplus,
    "meditod": meditod.read,
    "medqa": medqa.read,
    "craftmd": craftmd.read,
    "table": cases_file.read_table,
}
"""Name -> ``read(path, seed, **options)``."""

NEED_PATH = (ddxplus.read, meditod.read, medqa.read, craftmd.read, cases_file.read_table)


def load_cases(
    name: str,
    *,
    path: str | Path | None = None,
    n: int | None = None,
    seed: int = 0,
    **options: Any,
) -> list[Case]:
    """The cases of data set ``name``, in file order; if ``n`` is given, a random ``n`` of them.
    ``seed`` decides which, and the order or wording if the data set leaves them open; with the same
    seed, a larger pick contains a smaller one. ``options`` are the loader's own, such as ``ids`` of
    medqa. ``ValueError``: an unknown name or option, a missing path, an ``n`` out of range; its
    subclass :class:`DataError`: a file that breaks its format."""
    return _picked(_some(name, path, seed, options), name, n, seed)


def load_sets(
    names: str | Sequence[str],
    *,
    path: str | Path | Sequence[str | Path | None] | None = None,
    n: int | Sequence[int | None] | None = None,
    seed: int = 0,
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[Case]:
    """The cases of one or several data sets, one set after the other; ``n`` of each set, or all if
    it has fewer (a list: one number for each set). ``path``: one path for one data set, a list for
    several, ``None`` if none is needed. ``options``: the loaders' own, by data set. Otherwise as
    :func:`load_cases`. ``ValueError`` also if names, paths, numbers or options do not pair up, or
    if a case occurs twice."""
    pairs, chosen = _pairs(names, path, options or {}, n), options or {}
    cases: list[Case] = []
    for name, where, most in pairs:
        found = _some(name, where, seed, chosen.get(name, {}))
        cases += _picked(found, name, most and min(most, len(found)), seed)
    times = Counter(case.case_id for case in cases)
    if again := [case_id for case_id, n_times in times.items() if n_times > 1]:
        sets = f"cases are in the data sets {', '.join(name for name, *_ in pairs)} more than once"
        raise ValueError(f"{len(again)} {sets}, {again[0]!r} among them")
    return cases


def _pairs(names: Any, path: Any, options: Any, n: Any = None) -> list[tuple[str, Any, Any]]:
    """Each data set with its path and number of cases; ``ValueError`` as :func:`load_sets`."""
    asked = [names] if isinstance(names, str) else list(names)
    columns: list[list[Any]] = []
    paths = [path] if isinstance(path, str | Path) else path  # one path stands for no other set
    each_of = (("path", "path each", paths), ("n", "n, or one each", n))
    for what, needed, given in each_of:
        values = list(given) if isinstance(given, list | tuple) else [given] * len(asked)
        if not asked or len(values) != len(asked):
            need = f"{len(asked)} data sets need one {needed} (null for none)"
            raise ValueError(f"{need}; {what} is {given!r}")
        columns.append(values)
    each = options.values() if isinstance(options, Mapping) else [options]
    if not all(isinstance(one, Mapping) for one in each):
        form = "a mapping such as {'medqa': {'ids': ...}}"
        raise ValueError(f"options are {options!r}; allowed is {form}")
    if strange := [repr(name) for name in options if name not in asked]:
        named = f"the data sets asked for are {', '.join(asked)}"
        raise ValueError(f"options are for {', '.join(strange)}; {named}")
    return list(zip(asked, *columns, strict=True))


def check_sets(names: Any, path: Any, options: Any, n: Any = None) -> None:
    """Refuse, before anything is read, what :func:`load_sets` would for names, paths, options and
    numbers, and a table of one's own of another kind of file."""
    for name, where, _ in _pairs(names, path, options, n):
        file = _checked_path(name, where, options.get(name, {}))
        if file is not None and LOADERS[name] is cases_file.read_table:
            check_table(file)


def read_data(name: str, *, path: str | Path | None = None, seed: int = 0, **options: Any) -> Read:
    """The cases that the loader of ``name`` makes of ``path``, and what it dropped and why. Errors
    are those of :func:`load_cases`."""
    file = _checked_path(name, path, options)
    if type(seed) is not int:
        raise ValueError(f"seed is {seed!r}; allowed is a whole number")
    return LOADERS[name](file, seed, **options)


def _checked_path(name: str, path: str | Path | None, options: Mapping[str, Any]) -> Path | None:
    """The path, which exists where ``name`` needs one; ``ValueError`` for another, a name that is
    no data set's, and an option that it does not have."""
    if name not in LOADERS:
        raise ValueError(f"name is {name!r}; allowed are {', '.join(LOADERS)}")
    known = [p for p in inspect.signature(LOADERS[name]).parameters if p not in ("path", "seed")]
    if strange := [option for option in options if option not in known]:
        choice = f"allowed are {', '.join(known)}" if known else "it has none"
        raise ValueError(f"{name} has no option {strange[0]!r}; {choice}")
    file = None if path is None else Path(path).expanduser()
    if LOADERS[name] not in NEED_PATH:
        if file is not None:
            raise ValueError(f"path is {str(path)!r}; allowed is None: {name} comes along")
    elif file is None or not file.exists():
        what = "None" if file is None else f"{str(path)!r}, which does not exist"
        fetch = "" if name == "table" else f"; trustlab data fetch {name} --to FOLDER gets it"
        raise ValueError(f"path is {what}; {name} is {ABOUT[name]}{fetch}")
    return file


def _some(
    name: str, path: str | Path | None, seed: int, options: Mapping[str, Any]
) -> Sequence[Case]:
    """The cases, at least one, and a warning of what a user's own table lost."""
    read = read_data(name, path=path, seed=seed, **options)
    losses = "; ".join(read.losses)
    if not read.cases:
        lost = f", dropped {losses}" * bool(losses)
        why = f"holds no case to use: {read.n_entries} entries read{lost}"
        raise ValueError(f"{name} at {path} {why}")
    if losses and LOADERS[name] is cases_file.read_table:
        n = sum(map(len, read.dropped.values()))
        warnings.warn(f"{path}: {n} of {read.n_entries} rows left out. {losses}", stacklevel=3)
    return read.cases


def _picked(cases: Sequence[Case], name: str, n: int | None, seed: int) -> list[Case]:
    if n is None:
        return list(cases)
    if type(n) is not int:
        numbers = f"whole numbers from 1 to {len(cases)}, or None for all"
        raise ValueError(f"n is {n!r}; allowed are {numbers}")
    if not 1 <= n <= len(cases):
        raise ValueError(f"n is {n}; {name} has {len(cases)} cases, allowed are 1 to {len(cases)}")
    order = list(range(len(cases)))
    random.Random(seed).shuffle(order)
    return [cases[i] for i in sorted(order[:n])]
