"""The stages that ``docs/reading.md`` lists are the code that runs: plainly, and for long."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from asking import ask
from fake_model import FakeModel, made_cases

import trustlab
from trustlab import levels
from trustlab.confidence import select
from trustlab.files import ROOT
from trustlab.graders import SynonymGrader
from trustlab.runs import run
from trustlab.runs.experiment import benchmark

PAGE = (ROOT / "docs/reading.md").read_text(encoding="utf-8")
STAGES = re.findall(r"^\| (\w+) \| `trustlab\.([\w.]+)` \|", PAGE, re.M)
CASES, METHODS, LEVELS = made_cases(4), ["asp", "poc", "ce"], [20, 100]


class ReplacedError(Exception):
    """Raised by a stage that a test has replaced."""


def plain_run() -> run.Run:
    return run.ask(FakeModel(), levels.views(CASES, LEVELS), select(METHODS), SynonymGrader())


def long_run(folder: Path) -> run.Run:
    return ask(
        benchmark, CASES, [FakeModel()], METHODS, LEVELS, grader=SynonymGrader(), run_dir=folder
    )


def replace_stage(patch: pytest.MonkeyPatch, stage: str, other: Callable[..., Any]) -> None:
    """In every module of the package that has this function."""
    function = attrgetter(stage)(trustlab)
    for name, module in list(sys.modules.items()):
        if name.startswith("trustlab."):
            for attribute, value in list(vars(module).items()):
                if value is function:
                    patch.setattr(module, attribute, other)


def test_the_page_lists_every_stage() -> None:
    wanted = ["views", "requests", "replies", "readings", "grades", "scores", "saved"]
    assert [name for name, _ in STAGES] == wanted


@pytest.mark.parametrize(("name", "stage"), STAGES, ids=[name for name, _ in STAGES])
def test_both_runs_go_through_a_stage(monkeypatch, tmp_path, name: str, stage: str) -> None:
    def refuse(*arguments: Any, **named: Any) -> None:
        raise ReplacedError(stage)

    replace_stage(monkeypatch, stage, refuse)
    with pytest.raises(ReplacedError):
        long_run(tmp_path)
    if name == "saved":
        assert len(plain_run().answers)  # it writes nothing
        return
    with pytest.raises(ReplacedError):
        plain_run()


def test_another_stage_of_scores_changes_both_runs(monkeypatch, tmp_path) -> None:
    scored = run.score_answers

    def halves(*arguments: Any) -> list[run.ConfidenceRow]:
        return [row._replace(confidence=0.5) for row in scored(*arguments)]

    before = (plain_run(), long_run(tmp_path))
    replace_stage(monkeypatch, "runs.run.score_answers", halves)
    after = (plain_run(), long_run(tmp_path))
    for whole, changed in zip(before, after, strict=True):
        assert not whole.confidence["confidence"].eq(0.5).all()
        assert changed.confidence["confidence"].eq(0.5).all()


def test_both_runs_make_the_same_tables(tmp_path) -> None:
    plain, long = plain_run(), long_run(tmp_path)
    pd.testing.assert_frame_equal(plain.answers, long.answers)
    pd.testing.assert_frame_equal(plain.confidence, long.confidence)
    assert list(plain.answers) == list(run.ANSWERS)
    assert list(plain.confidence) == list(run.CONFIDENCE)
