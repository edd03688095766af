"""Progress: bars in a terminal, also those of a notebook's cells; a state a minute in a log."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path

import nbformat
import pytest
from fake_model import FakeModel, made_cases

import trustlab as tl
from trustlab.cli.run_notebooks import UP, BarsOfCells
from trustlab.paths import ROOT
from trustlab.processes import progress

RUN = "cases:  50%|#####     | 2/4 [00:10<00:10,  5.00s/case]"
CALL = "fake: samples:  25%|##5       | 1/4 [00:01<00:03,  1.00s/request, unread 1 of 9 replies]"


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("tqdm.std.time", lambda: now[0])
    return now


def states(capsys) -> list[str]:
    """The states of bars on stderr, each once."""
    pieces = capsys.readouterr().err.replace(UP, "").replace("\r", "\n").split("\n")
    return [piece.strip() for piece in pieces if piece.strip()]


def test_a_log_gets_a_bar_s_state_once_a_minute(clock, capsys):
    with progress(100, "case", "cases", True, "unread 1 of 9 replies") as bar:
        for seconds in (1, 30, 59, 61, 62, 90, 122):
            clock[0] = seconds
            bar.update(10)
    first, second = states(capsys)
    assert first.startswith("cases:  40%|") and "40/100 [01:01<01:31" in first
    assert second.startswith("cases:  70%|") and second.endswith("unread 1 of 9 replies]")


def test_a_run_says_its_cases_and_the_replies_that_could_not_be_read(clock, capsys, monkeypatch):
    model = FakeModel()
    answer = model.generate

    def slowly(requests, **options):
        clock[0] += 61
        return answer(requests, **options)

    monkeypatch.setattr(model, "generate", slowly)
    setup = tl.Setup(samples=2, levels=[100], cache=":memory:", trial=False)
    tl.benchmark(made_cases(3), model, ["poc", "ce"], setup=setup)
    shown = states(capsys)
    assert any(state.startswith("cases: 100%|") and "3/3 [" in state for state in shown)
    assert any(": ce:" in state and "unread 0 of 9 replies" in state for state in shown)
    tl.benchmark(made_cases(3), model, ["poc", "ce"], setup=setup.with_(quiet=True))
    assert states(capsys) == []


@pytest.mark.parametrize("is_terminal", [True, False])
def test_of_cells_a_terminal_shows_the_bars_alone(is_terminal, capsys, monkeypatch):
    cells = BarsOfCells()
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal, raising=False)
    wiped = "\r        \r"
    for text in (f"\r{RUN}", "a.py:1: UserWarning: few\n", f"\n\r{CALL}{UP}", wiped, "\n"):
        cells.write(text)
    cells.flush()
    expected = f"\r{RUN}\n\r{CALL}{UP}{wiped}\n" if is_terminal else ""
    assert capsys.readouterr().err == expected


CELL = """
import sys, warnings
from trustlab.processes import progress
warnings.warn("few cases")
with progress(4, "case", "cases", True) as bar:
    bar.update(2)
    bar.refresh()
"""


def notebook(file: Path) -> Path:
    parameters = nbformat.v4.new_code_cell("n = 4", metadata={"tags": ["parameters"]})
    cells = [nbformat.v4.new_markdown_cell("# Is it seen?"), parameters]
    book = nbformat.v4.new_notebook(cells=[*cells, nbformat.v4.new_code_cell(CELL)])
    nbformat.write(book, file)
    return file


@pytest.mark.notebook
@pytest.mark.parametrize("is_terminal", [True, False])
def test_trustlab_run_shows_the_bars_of_cells_in_a_terminal(is_terminal, tmp_path):
    command = [sys.executable, "-m", "trustlab", "run", str(notebook(tmp_path / "my.ipynb"))]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "TRUSTLAB_RUNS": str(tmp_path / "runs")}
    reader, writer = pty.openpty()
    fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 90, 0, 0))
    stderr = writer if is_terminal else subprocess.PIPE
    with subprocess.Popen(command, env=env, stderr=stderr, stdout=subprocess.PIPE) as process:
        os.close(writer)
        said = b""
        if is_terminal:
            while chunk := _next_of(reader):
                said += chunk
        out, err = process.communicate()
    os.close(reader)
    assert process.returncode == 0, (out, err, said)
    shown = said.decode()
    assert ("cases:  50%|" in shown and "2/4 [" in shown) == is_terminal
    assert "few cases" not in shown and b"few cases" not in (err or b"")
    assert "Executing: 100%" in shown or b"Executing: 100%" in err
    assert is_terminal or b"cases:" not in err
    page = (tmp_path / "runs" / "my" / "my.ipynb").read_text(encoding="utf-8")
    assert "few cases" in page and "%|" not in page


def _next_of(reader: int) -> bytes:
    try:
        return os.read(reader, 65536)
    except OSError:  # the last who could write has ended
        return b""
