"""The sizes of rooms, as ``lines.yml`` gives them: lines with docstrings and blanks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from trustlab.paths import ROOT

BUDGET: dict[str, Any] = yaml.safe_load((ROOT / "lines.yml").read_text(encoding="utf-8"))


def lines(pattern: str) -> dict[Path, int]:
    files = [f for f in sorted(ROOT.glob(pattern)) if f.suffix == ".py"]
    assert files, f"lines.yml names {pattern}, and there is no such file"
    return {f: len(f.read_text(encoding="utf-8").splitlines()) for f in files}


def files_of(room: dict[str, Any]) -> dict[Path, int]:
    return {f: n for pattern in room["files"] for f, n in lines(pattern).items()}


def test_every_file_is_in_one_room() -> None:
    rooms = [set(files_of(room)) for room in BUDGET["rooms"].values()]
    every = set(lines("trustlab/**/*.py")) | set(lines("notebooks/studies/*.py"))
    assert sum(map(len, rooms)) == len(set.union(*rooms)), "a file is in two rooms"
    assert set.union(*rooms) == every, sorted(map(str, set.union(*rooms) ^ every))


def test_package_and_studies_keep_their_sum() -> None:
    """Rooms may trade until each is folded to its aim."""
    sizes = {name: sum(files_of(room).values()) for name, room in BUDGET["rooms"].items()}
    total, most = sum(sizes.values()), BUDGET["most"]["package and studies"]
    shown = ", ".join(f"{name} {n}" for name, n in sizes.items())
    assert total <= most, f"{total} lines, at most {most}: what leaves? {shown}"


def test_tests_keep_their_sum() -> None:
    total, most = sum(lines("tests/**/*.py").values()), BUDGET["most"]["tests"]
    assert total <= most, f"{total} lines of tests, at most {most}: what leaves?"
