"""The lessons run from kept answers, and their exercises know right answers from wrong ones."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import nbformat
import pytest
import yaml

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "notebooks" / "lessons"
SOLUTIONS = (ROOT / "docs" / "solutions.md").read_text(encoding="utf-8")
ANSWERS = yaml.safe_load((Path(__file__).parent / "data" / "lessons.yml").read_text())
"""Exercise -> right answers and wrong ones, as a student writes them into the notebook."""
SOLVED = re.compile(r"<summary>(\d[abcd])</summary>.*?```python\n(.*?)```", re.DOTALL)


def executed(lesson: Path) -> dict[str, Any]:
    """The variables after all code cells, of which there are few."""
    found: dict[str, Any] = {}
    cells = nbformat.read(lesson, as_version=4).cells
    assert len(cells) <= 25 and "$$" in "".join(cell.source for cell in cells)
    for cell in cells:
        if cell.cell_type == "code":
            exec(compile(cell.source, f"cell {cell.id}", "exec"), found)
    return found


def test_how_to_read_it_takes_two_sentences_at_most() -> None:
    for file in [*FOLDER.glob("*.ipynb"), *FOLDER.parent.glob("*.ipynb")]:
        words = "\n\n".join(cell.source for cell in nbformat.read(file, as_version=4).cells)
        for told in re.findall(r"\*How to read it\*: (.*?)(?:\n\n|$)", words, re.DOTALL):
            assert len(re.findall(r"[.!?](?=\s|$)", told)) <= 2, (file.name, told)


@pytest.mark.parametrize("lesson", sorted(FOLDER.glob("*.ipynb")), ids=lambda file: file.stem)
def test_a_lesson_runs_and_its_exercises_tell_right_from_wrong(
    lesson: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(FOLDER)
    with matplotlib.rc_context():
        found = executed(lesson)
        matplotlib.pyplot.close("all")
    found["check"]("1a", ...)  # registers all exercises
    exercises = [
        name for name in found["check"].__globals__["EXERCISES"] if name[0] == lesson.stem[0]
    ]
    for name in exercises:
        for kind in ("right", "wrong"):
            for answer in ANSWERS[name][kind]:
                capsys.readouterr()
                found["check"](name, eval(answer, found))
                said = capsys.readouterr().out
                assert (said == f"{name}: right\n") == (kind == "right"), (answer, said)
    solved = {name: code for name, code in SOLVED.findall(SOLUTIONS) if name in exercises}
    assert list(solved) == exercises
    for name, code in solved.items():
        exec(code, found)
        assert capsys.readouterr().out == f"{name}: right\n"
