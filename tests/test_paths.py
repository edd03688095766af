"""A result is there whole or not at all: a full disk and a kill leave the old file."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import matplotlib.pyplot as plt
import nbformat
import pandas as pd
import pytest
from each import each
from publish import publish

from studies.consultation import ConsultationRun
from studies.trust_indices import TrustRun
from trustlab import paths
from trustlab.html.notebook import write_html
from trustlab.paths import ROOT, save_json, save_table, save_tables, save_text, whole
from trustlab.plots import save_figure
from trustlab.run import Run

MANY = pd.DataFrame({"n_made": range(5000), "n_cached": 0, "missing": "none", "method": "asp"})
EMPTY = {"parameters": {}, "generations": ()}
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


def test_a_file_takes_its_name_once_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.txt"
    with whole(path) as beside:
        beside.write_text("half", encoding="utf-8")
        assert beside.parent == path.parent and not path.exists()
    assert path.read_text(encoding="utf-8") == "half" and list(path.parent.iterdir()) == [path]


@each("error", [ValueError, KeyboardInterrupt])
def test_where_writing_fails_the_old_file_stays_and_nothing_else(
    tmp_path: Path, error: type[BaseException]
) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old", encoding="utf-8")
    with pytest.raises(error), whole(path) as beside:
        beside.write_text("half", encoding="utf-8")
        raise error
    assert path.read_text(encoding="utf-8") == "old" and list(tmp_path.iterdir()) == [path]


def test_two_processes_write_to_names_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.txt"
    with whole(path) as first:
        first.write_text("first", encoding="utf-8")
        monkeypatch.setattr(os, "getpid", lambda: -1)
        with whole(path) as second:
            second.write_text("second", encoding="utf-8")
        assert path.read_text(encoding="utf-8") == "second"
    assert path.read_text(encoding="utf-8") == "first"


def of_many(run: type, tmp_path: Path) -> Callable[[], object]:
    """The saving of a run all of whose tables are :data:`MANY`."""
    made = object.__new__(run)
    for name in run.__annotations__:
        object.__setattr__(made, name, EMPTY.get(name, MANY))
    return lambda: made.save(tmp_path)


def drawn(tmp_path: Path) -> Callable[[], object]:
    figure = plt.figure()
    for i in range(100):
        figure.text(i % 10 / 10, i / 100, f"word {i}")
    return lambda: save_figure(figure, MANY.assign(value=1.0), "x", tmp_path)


def drawn_as_lines(tmp_path: Path) -> Callable[[], object]:
    """A figure whose pixels fit on the disk, and whose lines do not."""
    figure = plt.figure()
    figure.text(0.1, 0.5, "word", url="a" * 2 * ROOM)
    return lambda: save_figure(figure, MANY.assign(value=1.0), "x", tmp_path)


def converted(tmp_path: Path) -> Callable[[], object]:
    nbformat.write(nbformat.v4.new_notebook(), tmp_path / "a.ipynb")
    return lambda: write_html(tmp_path / "a.ipynb")


WRITERS: dict[str, tuple[str, Callable[[Path], Callable[[], object]]]] = {
    "a table": ("a.csv", lambda tmp_path: lambda: save_table(MANY, tmp_path / "a.csv")),
    "facts": ("a.json", lambda tmp_path: lambda: save_json({"a": "a" * 9999}, tmp_path / "a.json")),
    "a benchmark": ("answers.csv", lambda tmp_path: of_many(Run, tmp_path)),
    "consultations": ("turns.csv", lambda tmp_path: of_many(ConsultationRun, tmp_path)),
    "trust indices": ("reviews.csv", lambda tmp_path: of_many(TrustRun, tmp_path)),
    "a figure": ("x.png", drawn),
    "a figure as lines": ("x.svg", drawn_as_lines),
    "an HTML copy": ("a.html", converted),
}


@each("what", WRITERS)
def test_on_a_full_disk_the_old_file_stays(tmp_path: Path, what: str) -> None:
    name, made = WRITERS[what]
    save = made(tmp_path)
    (tmp_path / name).write_text("old", encoding="utf-8")
    there = set(tmp_path.iterdir())
    with full_disk(), pytest.raises(OSError):
        save()
    assert (tmp_path / name).read_text(encoding="utf-8") == "old"
    assert set(tmp_path.iterdir()) == there
    save()
    assert (tmp_path / name).stat().st_size > ROOM


def test_on_a_full_disk_what_is_published_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebooks, figures, run = (tmp_path / name for name in ("notebooks", "figures", "run"))
    for folder in (notebooks, figures, run / "figures"):
        folder.mkdir(parents=True)
    monkeypatch.setattr(paths, "NOTEBOOKS", notebooks)
    monkeypatch.setattr(paths, "FIGURES", figures)
    cell = nbformat.v4.new_code_cell("x")
    ours = nbformat.v4.new_notebook(cells=[cell])
    nbformat.write(ours, notebooks / "09_small.ipynb")
    nbformat.write(ours, run / "09_small.ipynb")
    (run / "figures" / "09_a.csv").write_bytes(b"x" * 2 * ROOM)
    (figures / "09_a.csv").write_bytes(b"old")
    with full_disk(), pytest.raises(OSError):
        publish(run, "09_small")
    assert (figures / "09_a.csv").read_bytes() == b"old"

    before = (notebooks / "09_small.ipynb").read_bytes()
    cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text="x" * 2 * ROOM)]
    nbformat.write(ours, run / "09_small.ipynb")
    with full_disk(), pytest.raises(OSError):
        publish(run, "09_small")
    assert (notebooks / "09_small.ipynb").read_bytes() == before
    publish(run, "09_small")
    assert (figures / "09_a.csv").read_bytes() == b"x" * 2 * ROOM
    assert not list(tmp_path.rglob("*.part"))


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL on Windows")
def test_a_kill_leaves_the_old_file(tmp_path: Path) -> None:
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
    killed = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert killed.returncode == -signal.SIGKILL
    assert path.read_text(encoding="utf-8") == "old"
    (left,) = tmp_path.glob("*.part")
    assert left.read_text(encoding="utf-8") == "half"
    (alive := tmp_path / f"a.txt.{os.getppid()}.part").touch()
    save_text("new", path)
    assert sorted(tmp_path.iterdir()) == [path, alive]


def test_the_named_tables_come_back_in_full_precision(tmp_path: Path) -> None:
    class Two:
        first, second = pd.DataFrame({"x": [0.1 + 0.2]}), pd.DataFrame({"y": ["a"]})

    save_tables(Two(), ("first", "second"), tmp_path)
    assert (tmp_path / "first.csv").read_bytes() == b"x\n0.30000000000000004\n"
    assert (tmp_path / "second.csv").read_bytes() == b"y\na\n"


OWN = ("paths.py", "datasets/fetch.py", "disk_index.py")
"""Files that write to another name first by themselves."""


def test_nothing_else_in_the_package_writes_to_a_result_s_own_name() -> None:
    writes = re.compile(
        r"(\w+)\.write_(?:text|bytes)\(|(?:to_csv|savefig|copyfile|nbformat\.write)\("
    )
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
