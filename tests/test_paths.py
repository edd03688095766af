"""A result is there whole or not at all: a full disk and a kill leave the old file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import nbformat
import pandas as pd
import pytest
from each import each

from trustlab.html.notebook import write_html
from trustlab.paths import ROOT, save_json, save_table, save_text, whole

MANY = pd.DataFrame({"n_made": range(5000), "n_cached": 0, "missing": "none", "value": 1.0})
ROOM = 4096
"""Bytes that a file may have on the disk that is full."""


@contextmanager
def full_disk() -> Iterator[None]:
    """No file can grow over :data:`ROOM` bytes."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@each("error", [ValueError, KeyboardInterrupt, None])
def test_a_file_takes_its_name_once_it_is_whole_and_else_the_old_one_stays(error, tmp_path):
    path = tmp_path / "new" / "a.txt"
    save_text("old", path)
    try:
        with whole(path) as beside:
            beside.write_text("half", encoding="utf-8")
            assert beside.parent == path.parent and path.read_text() == "old"
            if error:
                raise error
    except (ValueError, KeyboardInterrupt):
        assert error
    assert path.read_text() == ("old" if error else "half") and list(path.parent.iterdir()) == [
        path
    ]


def converted(folder: Path) -> Callable[[], object]:
    nbformat.write(nbformat.v4.new_notebook(), folder / "a.ipynb")
    return lambda: write_html(folder / "a.ipynb")


WRITERS: dict[str, tuple[str, Callable[[Path], Callable[[], object]]]] = {
    "a table": ("a.csv", lambda folder: lambda: save_table(MANY, folder / "a.csv")),
    "facts": ("a.json", lambda folder: lambda: save_json({"a": "a" * 9999}, folder / "a.json")),
    "an HTML copy": ("a.html", converted),
}


@each("what", WRITERS)
def test_on_a_full_disk_the_old_file_stays(what, tmp_path):
    name, made = WRITERS[what]
    save = made(tmp_path)
    (tmp_path / name).write_text("old", encoding="utf-8")
    before, there = (tmp_path / name).read_bytes(), set(tmp_path.iterdir())
    with full_disk(), pytest.raises(OSError):
        save()
    assert (tmp_path / name).read_bytes() == before and set(tmp_path.iterdir()) == there
    save()
    assert (tmp_path / name).stat().st_size > ROOM


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL on Windows")
def test_a_kill_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old", encoding="utf-8")
    script = f"""
import os, signal
from pathlib import Path
from trustlab.paths import whole
with whole(Path({str(path)!r})) as beside:
    beside.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    here = {**os.environ, "PYTHONPATH": str(ROOT)}
    killed = subprocess.run([sys.executable, "-c", script], env=here)
    assert killed.returncode == -signal.SIGKILL
    assert path.read_text(encoding="utf-8") == "old"
    (left,) = tmp_path.glob("*.part")
    assert left.read_text(encoding="utf-8") == "half"
    (alive := tmp_path / f"a.txt.{os.getppid()}.part").touch()
    save_text("new", path)
    assert sorted(tmp_path.iterdir()) == [path, alive]
