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

__all__ = [
    "ABOUT",
    "LOADERS",
    "DataError",
    "Read",
    "load_cases",
    "load_sets",
    "read_data",
]

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

NEED_PATH = (
    ddxplus.read,
    meditod.read,
    medqa.read,
    craftmd.read,
    cases_file.read_table,
)


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
    cases = _read_some(name, path, seed, options)
    return _pick(cases, name, n, seed)


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
    set_options = options or {}
    choices = _set_choices(names, path, set_options, n)
    cases: list[Case] = []
    for name, set_path, n_cases in choices:
        set_cases = _read_some(name, set_path, seed, set_options.get(name, {}))
        if n_cases:
            n_cases = min(n_cases, len(set_cases))
        cases += _pick(set_cases, name, n_cases, seed)
    occurrences = Counter(case.case_id for case in cases)
    repeated = [case_id for case_id, count in occurrences.items() if count > 1]
    if repeated:
        set_names = ", ".join(name for name, _, _ in choices)
        raise ValueError(
            f"{len(repeated)} cases are in the data sets {set_names} more than once,"
            f" {repeated[0]!r} among them"
        )
    return cases


def _set_choices(
    names: Any, path: Any, options: Any, n: Any
) -> list[tuple[str, Any, Any]]:
    """Each data set with its path and number of cases, ``None`` for all; ``ValueError`` as
    :func:`load_sets`."""
    set_names = [names] if isinstance(names, str) else list(names)
    # one path stands for no other set
    paths = [path] if isinstance(path, str | Path) else path
    set_paths = _values_per_set(len(set_names), paths, "path", "path each")
    set_sizes = _values_per_set(len(set_names), n, "n", "n, or one each")
    groups = options.values() if isinstance(options, Mapping) else [options]
    if not all(isinstance(group, Mapping) for group in groups):
        form = "a mapping such as {'medqa': {'ids': ...}}"
        raise ValueError(f"options are {options!r}; allowed is {form}")
    strange = ", ".join(repr(name) for name in options if name not in set_names)
    if strange:
        wanted = ", ".join(set_names)
        raise ValueError(
            f"options are for {strange}; the data sets asked for are {wanted}"
        )
    return list(zip(set_names, set_paths, set_sizes, strict=True))


def _values_per_set(n_sets: int, value: Any, name: str, needed: str) -> list[Any]:
    """A list or tuple as a list, and any other value once for each data set; ``ValueError`` for a
    list of another length."""
    values = [value] * n_sets
    if isinstance(value, list | tuple):
        values = list(value)
    if not n_sets or len(values) != n_sets:
        need = f"{n_sets} data sets need one {needed} (null for none)"
        raise ValueError(f"{need}; {name} is {value!r}")
    return values


def check_sets(names: Any, path: Any, options: Any, n: Any) -> None:
    """Refuse, before anything is read, what :func:`load_sets` would for names, paths, options and
    numbers, and a table of one's own of another kind of file."""
    for name, set_path, _ in _set_choices(names, path, options, n):
        own_options = options.get(name, {})
        file = _path_for_loader(name, set_path, own_options)
        if file is not None and _is_own_table(name):
            check_table(file)


def _is_own_table(name: str) -> bool:
    return LOADERS[name] is cases_file.read_table


def read_data(
    name: str, *, path: str | Path | None = None, seed: int = 0, **options: Any
) -> Read:
    """The cases that the loader of ``name`` makes of ``path``, and what it dropped and why. Errors
    are those of :func:`load_cases`."""
    file = _path_for_loader(name, path, options)
    if type(seed) is not int:
        raise ValueError(f"seed is {seed!r}; allowed is a whole number")
    return LOADERS[name](file, seed, **options)


def _path_for_loader(
    name: str, path: str | Path | None, options: Mapping[str, Any]
) -> Path | None:
    """The path of a data set's files, which exists where ``name`` needs one; ``ValueError`` for
    another path, a name that is no data set's, and an option that it does not have."""
    if name not in LOADERS:
        raise ValueError(f"name is {name!r}; allowed are {', '.join(LOADERS)}")
    _check_options(name, options)
    file = None if path is None else Path(path).expanduser()
    if LOADERS[name] not in NEED_PATH:
        if file is not None:
            raise ValueError(
                f"path is {str(path)!r}; allowed is None: {name} comes along"
            )
    elif file is None or not file.exists():
        received = "None" if file is None else f"{str(path)!r}, which does not exist"
        hint = (
            ""
            if name == "table"
            else f"; trustlab data fetch {name} --to FOLDER gets it"
        )
        raise ValueError(f"path is {received}; {name} is {ABOUT[name]}{hint}")
    return file


def _check_options(name: str, options: Mapping[str, Any]) -> None:
    """``ValueError`` for an option that the loader of ``name`` does not have."""
    parameters = inspect.signature(LOADERS[name]).parameters
    own_names = [
        parameter for parameter in parameters if parameter not in ("path", "seed")
    ]
    for option in options:
        if option not in own_names:
            allowed = (
                f"allowed are {', '.join(own_names)}" if own_names else "it has none"
            )
            raise ValueError(f"{name} has no option {option!r}; {allowed}")


def _read_some(
    name: str, path: str | Path | None, seed: int, options: Mapping[str, Any]
) -> Sequence[Case]:
    """The cases of a data set, at least one, with a warning of what a user's own table lost."""
    read = read_data(name, path=path, seed=seed, **options)
    losses = "; ".join(read.losses)
    if not read.cases:
        drops = f", dropped {losses}" if losses else ""
        reason = f"holds no case to use: {read.n_entries} entries read{drops}"
        raise ValueError(f"{name} at {path} {reason}")
    if losses and _is_own_table(name):
        n_dropped = sum(map(len, read.dropped.values()))
        summary = f"{n_dropped} of {read.n_entries} rows left out"
        warnings.warn(f"{path}: {summary}. {losses}", stacklevel=3)
    return read.cases


def _pick(cases: Sequence[Case], name: str, n: int | None, seed: int) -> list[Case]:
    """A random ``n`` of the cases, in their order; all of them for ``None``."""
    if n is None:
        return list(cases)
    if type(n) is not int:
        numbers = f"whole numbers from 1 to {len(cases)}, or None for all"
        raise ValueError(f"n is {n!r}; allowed are {numbers}")
    if not 1 <= n <= len(cases):
        raise ValueError(
            f"n is {n}; {name} has {len(cases)} cases, allowed are 1 to {len(cases)}"
        )
    order = list(range(len(cases)))
    random.Random(seed).shuffle(order)
    picked = sorted(order[:n])
    return [cases[i] for i in picked]
