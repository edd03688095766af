"""Progress: bars in a terminal, also those of a notebook's cells; a line a minute in a log."""

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
from trustlab.paths import ROOT
from trustlab.processes import LINE_EVERY_S, UP, Bars

RUN = "cases:  50%|#####     | 2/4 [00:10<00:10,  5.00s/case]"
CALL = "fake: samples:  25%|##5       | 1/4 [00:01<00:03,  1.00s/request, unread 1 of 9 replies]"


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("trustlab.processes.time.monotonic", lambda: now[0])
    return now


def test_in_a_log_a_minute_s_last_state_is_a_line_behind_that_of_the_run(clock, capsys):
    lines = Bars()
    for text in (f"\r{RUN}", "\n", f"\r{CALL}", UP, "\r          \r"):
        lines.write(text)
    assert capsys.readouterr().err == ""
    clock[0] = LINE_EVERY_S
    for text in ("UserWarning: few", f"\r{CALL}", UP, f"\r{CALL}", f"\r{RUN}"):
        lines.write(text)
    assert capsys.readouterr().err == f"{RUN}; {CALL}\n"
    clock[0] = 2 * LINE_EVERY_S
    lines.write(f"\r{RUN}")
    assert capsys.readouterr().err == f"{RUN}\n"


def test_a_run_beside_no_terminal_writes_such_lines_and_no_bar(clock, capsys, monkeypatch):
    monkeypatch.setattr("trustlab.processes.LINES", Bars())
    model = FakeModel()
    answer = model.generate

    def slowly(requests, **options):
        clock[0] += LINE_EVERY_S
        return answer(requests, **options)

    monkeypatch.setattr(model, "generate", slowly)
    setup = tl.Setup(samples=2, levels=[100], cache=":memory:", trial=False)
    tl.benchmark(made_cases(3), model, ["poc", "ce"], setup=setup)
    lines = capsys.readouterr().err.splitlines()
    shown = [line for line in lines if "request" in line]
    assert shown and all(line.startswith("cases:") and "/3 [" in line for line in shown)
    assert any("unread 0 of 9 replies" in line for line in shown)
    tl.benchmark(made_cases(3), model, ["poc", "ce"], setup=setup.with_(quiet=True))
    assert "%|" not in capsys.readouterr().err


def test_of_cells_a_terminal_shows_the_bars_alone(capsys, monkeypatch):
    cells = Bars()
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    wiped = "\r        \r"
    for text in (f"\r{RUN}", "a.py:1: UserWarning: few\n", f"\n\r{CALL}{UP}", wiped, "\n"):
        cells.write(text)
    assert capsys.readouterr().err == f"\r{RUN}\n\r{CALL}{UP}{wiped}\n"


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
    assert ("Executing: 100%" in shown) == is_terminal
    assert "few cases" not in shown
    assert not err or b"%|" not in err
    page = (tmp_path / "runs" / "my" / "my.ipynb").read_text(encoding="utf-8")
    assert "few cases" in page and "%|" not in page


def _next_of(reader: int) -> bytes:
    try:
        return os.read(reader, 65536)
    except OSError:  # the last who could write has ended
        return b""
