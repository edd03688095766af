"""The lessons run from kept answers, and their exercises know right answers from wrong ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import nbformat
import pytest

FOLDER = Path(__file__).parent.parent / "notebooks" / "lessons"
CAREFUL = (
    "lambda evidence: score([e.criterion.importance for e in evidence],"
    " ['missing' if e.quote_occurs is False else e.support_level for e in evidence])"
)
STEMS = (
    "lambda c, q: any(a[:4] == b[:4] for a in plain(c).split() for b in plain(q).split()"
    " if min(len(a), len(b)) > 3)"
)
BY_LEVEL = (
    "lambda q, y, c: np.mean([auroc(y[q == one], c[q == one]) for one in set(q.tolist())"
    " if 0 < y[q == one].mean() < 1])"
)
WORSE = "(1, 0, .1), (1, 0, .2), (1, 0, .3), (1, 0, .4), (1, 1, .25), (1, 1, .1)"
BETTER = "(2, 1, .6), (2, 1, .7), (2, 1, .8), (2, 1, .9), (2, 0, .9)"
PERPLEXITY = "lambda p: np.exp(-np.mean(np.log(p)))"
ANSWERS: dict[str, tuple[list[str], list[str]]] = {
    "1a": (["5.3 / 6", "0.883"], ["0.3", "88.3", "0.65", "'0.883'"]),
    "1b": (
        [PERPLEXITY, f"lambda p: float(({PERPLEXITY})(p))"],
        [PERPLEXITY.replace("np", "-np", 1), "lambda p: np.exp(np.mean(np.log(p)))", "2"],
    ),
    "1c": (
        ["min", "np.prod", "lambda p: p[0]"],
        ["np.mean", "max", "len", "lambda p: 1 / 0", "0.3"],
    ),
    "4a": (["0.5", "4 / 8", "np.float64(0.5)"], ["2 / 3", "0.25", "50", "'0.5'"]),
    "4b": (
        [CAREFUL, CAREFUL.replace("e.quote_occurs is False", "not e.quote_occurs")],
        [
            "lambda evidence: weighted_support(evidence)",
            "lambda evidence: weighted_support([e for e in evidence if e.quote_occurs])",
            CAREFUL.replace("'missing' if", "'contradicted' if"),
            "careful_score",
        ],
    ),
    "4c": (
        [STEMS, f"lambda c, q: int(({STEMS})(c, q))"],
        [
            "lambda c, q: any(word in plain(q) for word in plain(c).split())",
            "lambda c, q: occurs(c, q)",
            "lambda c, q: True",
            "True",
        ],
    ),
    "5a": (["0.875", "7 / 8", "np.array([0.875])"], ["1", "0.75", "3.5", "0.125", "87.5"]),
    "5b": (
        [BY_LEVEL, BY_LEVEL.replace("set(q.tolist())", "np.unique(q)")],
        [
            "lambda q, y, c: auroc(y, c)",
            "lambda q, y, c: np.mean([auroc(y[q == one], c[q == one]) for one in np.unique(q)])",
            BY_LEVEL.replace("np.mean", "sum"),
            "my_stratified",
        ],
    ),
    "5c": (
        [f"[{WORSE}, {BETTER}]", f"np.array([{WORSE}, {BETTER}])"],
        [f"[{WORSE}]", "[(1, 0, .2), (1, 1, .3), (2, 0, .7), (2, 1, .8)]", "[(1, 0), (1, 1)]"],
    ),
}
"""Exercise -> right answers and wrong ones, as a student writes them into the notebook."""


def executed(lesson: Path) -> dict[str, Any]:
    """The variables after all code cells."""
    found: dict[str, Any] = {}
    for cell in nbformat.read(lesson, as_version=4).cells:
        if cell.cell_type == "code":
            exec(compile(cell.source, f"cell {cell.id}", "exec"), found)
    return found


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
        for answers, is_right in zip(ANSWERS[name], (True, False), strict=True):
            for answer in answers:
                capsys.readouterr()
                found["check"](name, eval(answer, found))
                said = capsys.readouterr().out
                assert (said == f"{name}: right\n") == is_right, (answer, said)
