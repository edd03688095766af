"""One file for each notebook, of the same name: what it asks, measures and shows."""

from __future__ import annotations

from typing import Any

import pandas as pd

from trustlab.confidence import METHODS
from trustlab.reports import plots


def use_style() -> None:
    """Give figures the project's look, and pandas' tables one that is wide enough to be read."""
    plots.use_style()
    pd.set_option("display.width", 150, "display.precision", 3)
    pd.set_option(
        "display.max_rows", 200, "display.max_columns", 40, "display.max_colwidth", 120
    )


def check_tables(run: Any, n_answers: int, *by: str) -> None:
    """Stop where ``run`` lacks an answer or a confidence, has one twice (of each ``by``), or holds
    a confidence that is missing without a reason or is no chance where it should be."""
    answers = run.answers
    confidence = run.confidence
    methods = confidence["method"]
    values = confidence["confidence"]
    assert len(answers) == n_answers
    assert len(confidence) == n_answers * methods.nunique()
    keys = ["case_id", "dataset", "level", "model", "method", *by]
    assert not confidence.duplicated(keys).any()
    assert values.isna().eq(confidence["missing"].ne("")).all()
    scale_by_method = {name: method.scale for name, method in METHODS.items()}
    is_chance = methods.map(scale_by_method).eq("probability")
    assert values[is_chance].dropna().between(0, 1).all()
