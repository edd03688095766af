"""Every file that is not code has a row in data/LICENSES.md, and every row a file."""

from __future__ import annotations

import re

from tests.test_ground import checked_in_files
from trustlab.paths import ROOT

TABLE = (ROOT / "data" / "LICENSES.md").read_text(encoding="utf-8").partition("## Not bundled")[0]
ROWS = re.findall(r"^\| `([^`]+)` \|(.+)\|$", TABLE, re.M)


def test_every_file_of_data_has_a_row() -> None:
    named = [path for path, _ in ROWS]
    folders = tuple(path for path in named if path.endswith("/"))
    files = [file.relative_to(ROOT).as_posix() for file in checked_in_files()]
    below = [name for name in files if name.startswith("data/")]
    assert below and [f for f in below if f not in named and not f.startswith(folders)] == []


def test_every_row_names_what_is_there_once_with_all_its_cells() -> None:
    named = [path for path, _ in ROWS]
    assert len(named) == len(set(named)) > 20
    for path, cells in ROWS:
        place = ROOT / path
        assert place.is_dir() if path.endswith("/") else place.is_file(), path
        assert len(cells.split("|")) == 4 and all(cell.strip() for cell in cells.split("|")), path
