"""A result is there whole or not at all: a full disk and a kill leave the old file."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import matplotlib.pyplot as plt
import nbformat
import pandas as pd
import pytest
from each import each
from publish import publish

from trustlab import paths
from trustlab.paths import ROOT, save_json, save_table, save_text, whole
from trustlab.reports.html.notebook import write_html
from trustlab.reports.plots import save_figure

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
    assert path.read_text() == ("old" if error else "half")
    assert list(path.parent.iterdir()) == [path]


@each("umask", [0o000, 0o022, 0o077])
@each("error", [None, ValueError])
def test_whatever_is_written_is_the_user_s_alone(umask, error, tmp_path):
    before = os.umask(umask)
    try:
        (tmp_path / "old.txt").write_text("old")
        (tmp_path / "old.txt").chmod(0o644)
        for name in ("old.txt", "new.txt"):
            with suppress(ValueError), whole(tmp_path / name) as beside:
                assert beside.stat().st_mode & 0o777 == 0o600  # from the beginning
                beside.write_text("words", encoding="utf-8")
                if error:
                    raise error
        save_table(MANY[:2], tmp_path / "a.csv")
        save_table(MANY[:2], tmp_path / "a.parquet")
        save_json({}, tmp_path / "a.json")
    finally:
        os.umask(before)
    modes = {file.name: oct(file.stat().st_mode & 0o777) for file in tmp_path.iterdir()}
    kept = {"old.txt": "0o644"} if error else {"old.txt": "0o600", "new.txt": "0o600"}
    assert modes == dict.fromkeys(("a.csv", "a.parquet", "a.json"), "0o600") | kept


def drawn(folder: Path) -> Callable[[], object]:
    """A figure whose pixels fit on the disk, and whose lines do not."""
    figure = plt.figure()
    figure.text(0.1, 0.5, "word", url="a" * 2 * ROOM)
    return lambda: save_figure(figure, MANY, "x", folder)


def converted(folder: Path) -> Callable[[], object]:
    nbformat.write(nbformat.v4.new_notebook(), folder / "a.ipynb")
    return lambda: write_html(folder / "a.ipynb")


def published(folder: Path) -> Callable[[], object]:
    cell = nbformat.v4.new_code_cell("x")
    cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text="x" * 2 * ROOM)]
    for book in (folder / "09_a.ipynb", folder / "run" / "09_a.ipynb"):
        book.parent.mkdir(exist_ok=True)
        nbformat.write(nbformat.v4.new_notebook(cells=[cell]), book)
    return lambda: publish(folder / "run", "09_a")


WRITERS: dict[str, tuple[str, Callable[[Path], Callable[[], object]]]] = {
    "a table": ("a.csv", lambda folder: lambda: save_table(MANY, folder / "a.csv")),
    "facts": ("a.json", lambda folder: lambda: save_json({"a": "a" * 9999}, folder / "a.json")),
    "a figure as lines": ("x.svg", drawn),
    "an HTML copy": ("a.html", converted),
    "a published notebook": ("09_a.ipynb", published),
}


@each("what", WRITERS)
def test_on_a_full_disk_the_old_file_stays(what, tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "NOTEBOOKS", tmp_path)
    monkeypatch.setattr(paths, "FIGURES", tmp_path / "figures")
    name, made = WRITERS[what]
    save = made(tmp_path)
    if what != "a published notebook":
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
    save_text("new", path)
    assert path.read_text(encoding="utf-8") == "new"


OWN = ("paths.py", "datasets/fetch.py", "retrieval/disk_index.py")
"""Files that write to another name first by themselves."""


def test_nothing_else_in_the_package_writes_to_a_result_s_own_name():
    names = r"(\w+)\.write_(?:text|bytes)|to_csv|savefig|copyfile|nbformat\.write"
    writes = re.compile(rf"(?:{names})\(")
    found = []
    for file in sorted((ROOT / "trustlab").rglob("*.py")):
        if file.relative_to(ROOT / "trustlab").as_posix() in OWN:
            continue
        text = file.read_text(encoding="utf-8")
        beside = set(re.findall(r"whole\(\w+\) as (\w+)", text))
        for call in writes.finditer(text):
            arguments = text[call.end() :].split(")")[0]
            if not beside & {call[1], *re.findall(r"\w+", arguments)}:
                found.append((file.name, call[0]))
    assert found == []
