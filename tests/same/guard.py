"""Keeping a reference and checking against it: each notebook in a process, then table by table."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from publish import reference_tables

from same.compare import ELSEWHERE, SAME_MACHINE, Difference, Tolerance, differences
from same.packing import pack
from same.tables import Table, read_file, read_tables, table_of, write_tables
from trustlab.cli.run_notebooks import ORDER, read_sections
from trustlab.paths import DATA, FIGURES, ROOT
from trustlab.runs.folder.kept import unpack

KEPT = DATA / "replies"
ABOUT = "about.json"
RENAMED = Path(__file__).with_name("renamed.yml")
GONE = Path(__file__).with_name("gone.yml")
"""Notebook -> table (fnmatch) -> why it left, or "new: ..."; what is there is compared."""
LIBRARIES = ("numpy", "pandas", "scipy", "scikit-learn", "torch")
ERROR = "error"
"""The only table of a notebook that stopped: why."""
MOST_SHOWN = 12
"""Differences shown of one table."""
ROUNDED = 1.01e-6
"""Two numbers written to six decimals may be rounded apart."""

Tables = dict[str, Table]


def recorded(
    parameters: Path,
    scratch: Path,
    *,
    kept: Path | None = None,
    runs: Path | None = None,
    names: Sequence[str] | None = None,
    at_once: int = 2,
) -> dict[str, Tables]:
    """The tables of the notebooks of ``parameters``, run into ``scratch``.

    From the ``kept`` replies alone, or on the caches in ``runs``: what they read is then copied to
    ``scratch/used``. ``names``: the notebooks; all of ``parameters`` by default.
    """
    known = list(read_sections(parameters)[0])
    names = names or known
    for name in names:
        if name not in known:
            raise ValueError(f"{parameters.name} has no section {name!r}, but {', '.join(known)}")
    here = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])}
    here |= {"MPLBACKEND": "agg", "TOKENIZERS_PARALLELISM": "false"}
    if kept is not None:
        unpack(kept, scratch / "caches")
        here |= {"TRUSTLAB_OFFLINE": "replies"}
    else:
        here |= {"TRUSTLAB_OFFLINE": "0"}
    here.setdefault("OMP_NUM_THREADS", "1")  # the processes are at once already

    def one(name: str) -> Tables:
        own = {"TRUSTLAB_RUNS": str(_own(scratch / "caches", name) if kept else runs)}
        recorder = [sys.executable, "-m", "same.record"]
        command = [*recorder, name, str(parameters.resolve()), str(scratch)]
        done = subprocess.run(command, env=here | own, cwd=ROOT, capture_output=True, text=True)
        if done.returncode == 0:
            return read_tables(scratch / f"{name}.json.xz")
        _, stopped, why = done.stderr.rpartition(f"{name} stopped in cell ")
        return {ERROR: [("text", [(stopped + why).strip()])]}

    order = sorted(names, key=lambda name: ORDER.find(name[:2]))
    with ThreadPoolExecutor(at_once) as pool:
        found = dict(zip(order, pool.map(one, order), strict=True))
    return {name: found[name] for name in sorted(names)}


def _own(caches: Path, name: str) -> Path:
    """A notebook's own folder beside the ``caches``, with their replies: two that are run at once
    would give each other vectors, whose last bits hang on the batch that they were made in."""
    folder = caches / name
    folder.mkdir(parents=True)
    for file in caches.glob("*.sqlite"):
        (folder / file.name).symlink_to(file)
    return folder


def keep(
    parameters: Path, runs: Path, kept: Path, scratch: Path, at_once: int = 2
) -> dict[str, int]:
    """Write the replies that the notebooks read and all their tables into ``kept``; how many.

    ``RuntimeError``, and nothing written, where a notebook fails, or gives other tables from the
    pack alone.
    """
    made = scratch / "made"
    live = recorded(parameters, scratch / "live", runs=runs, at_once=at_once)
    _whole(live)
    counts = pack(scratch / "live" / "used", made)
    replayed = recorded(parameters, scratch / "replayed", kept=made, at_once=at_once)
    _whole(replayed)
    apart = [d for name in live for d in differences(live[name], replayed[name], SAME_MACHINE)]
    if apart:
        shown = "\n".join(map(str, apart[:MOST_SHOWN]))
        raise RuntimeError(f"the pack gives other tables ({len(apart)} differences):\n{shown}")
    for name, tables in replayed.items():
        write_tables(tables, made / "tables" / f"{name}.json.xz")
    counts["tables"] = sum(map(len, replayed.values()))
    about = counts | {"machine": machine(), "versions": versions()}
    (made / ABOUT).write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    for left in (*kept.glob("*.xz"), *kept.glob("*.npz"), *kept.glob("tables/*.xz")):
        left.unlink()
    shutil.copytree(made, kept, dirs_exist_ok=True)
    return counts


def keep_tables(parameters: Path, kept: Path, scratch: Path, at_once: int = 2) -> int:
    """Write all tables that the notebooks make from the ``kept`` replies beside these; how many.
    ``RuntimeError``, and nothing written, where a notebook fails."""
    made = recorded(parameters, scratch, kept=kept, at_once=at_once)
    _whole(made)
    for left in kept.glob("tables/*.xz"):
        left.unlink()
    for name, tables in made.items():
        write_tables(tables, kept / "tables" / f"{name}.json.xz")
    about = json.loads((kept / ABOUT).read_text(encoding="utf-8"))
    about |= {"tables": sum(map(len, made.values())), "machine": machine(), "versions": versions()}
    (kept / ABOUT).write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    return about["tables"]


def _whole(tables: Mapping[str, Tables]) -> None:
    if failed := [found[ERROR][0][1][0] for found in tables.values() if ERROR in found]:
        raise RuntimeError("\n".join(failed))


def found_different(
    now: Mapping[str, Tables],
    kept: Path,
    scratch: Path,
    tolerance: Tolerance,
    figures: Path = FIGURES,
) -> dict[str, list[Difference]]:
    """Notebook -> what differs from the kept tables, and from those committed in ``figures``."""
    renames, gone = (yaml.safe_load(f.read_text(encoding="utf-8")) or {} for f in (RENAMED, GONE))
    found = {}
    for name, tables in now.items():
        if ERROR in tables:
            found[name] = [Difference(ERROR, "", "", None, tables[ERROR][0][1][0])]
            continue
        renamed = renames.get(name, {})
        then = read_tables(kept / "tables" / f"{name}.json.xz")
        found[name] = list(differences(then, tables, tolerance, renamed))
        written = written_tables(name, figures, figures / "reference" / name)
        made = written_tables(name, scratch / name / "figures", scratch / name)
        rounded = max(tolerance.number, ROUNDED), max(tolerance.metric, ROUNDED)
        found[name] += differences(written, made, Tolerance(*rounded, tolerance.text), renamed)
        found[name] = [d for d in found[name] if not is_gone(d, gone.get(name) or {})]
    return found


def is_gone(difference: Difference, gone: Mapping[str, str]) -> bool:
    """Whether ``gone`` names a table that is there on one side alone, as a whole."""
    whole = not difference.row and None in (difference.then, difference.now)
    return whole and any(fnmatchcase(difference.table, name) for name in gone)


def written_tables(name: str, figures: Path, run: Path) -> Tables:
    """The tables that a notebook leaves as CSV: of its figures, and of the run as a whole."""
    files = [*sorted(figures.glob(f"{name[:2]}_*.csv")), *reference_tables(run)]
    return {f"file {file.name}": table_of(read_file(file)) for file in files}


def tolerance_for(kept: Path, elsewhere: bool = False) -> Tolerance:
    """The tolerance here: strict where this machine made the kept tables, with these libraries."""
    about: dict[str, Any] = json.loads((kept / ABOUT).read_text(encoding="utf-8"))
    return SAME_MACHINE if about["machine"] == machine() and not elsewhere else ELSEWHERE


def machine() -> str:
    """A fingerprint of what decides the last digits: processor, instructions and libraries."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.is_file() else []
    cpu = sorted({line for line in lines if re.match(r"model name|flags|Features|CPU part", line)})
    parts = [platform.machine(), platform.system(), platform.processor(), *cpu]
    return hashlib.sha256("\n".join([*parts, json.dumps(versions())]).encode()).hexdigest()[:16]


def versions() -> dict[str, str]:
    """The libraries that compute, and what numpy multiplies matrices with."""
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]  # type: ignore[index]
    found = {name: version(name) for name in LIBRARIES}
    return found | {"blas": f"{blas['name']} {blas['version']}"}


def told(found: Mapping[str, Sequence[Difference]], tolerance: Tolerance) -> str:
    """The differences in lines, the first of each table."""
    return "\n".join(_lines(found, tolerance))


def _lines(found: Mapping[str, Sequence[Difference]], tolerance: Tolerance) -> Iterator[str]:
    where = "on the machine that made them" if tolerance == SAME_MACHINE else "elsewhere"
    for name, apart in found.items():
        if [difference.table for difference in apart] == [ERROR]:
            yield apart[0].now
            continue
        by_table: dict[str, list[Difference]] = {}
        for difference in apart:
            by_table.setdefault(difference.table, []).append(difference)
        what = f"{len(apart):,} differences in {len(by_table)} tables" if apart else "the same"
        yield f"{name}: {what} ({where})"
        for several in by_table.values():
            yield from (f"  {difference}" for difference in several[:MOST_SHOWN])
            if len(several) > MOST_SHOWN:
                yield f"  ... and {len(several) - MOST_SHOWN:,} more in {several[0].table}"
