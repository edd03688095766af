"""One file for each notebook, of the same name: what it asks, measures and shows."""

from __future__ import annotations

from typing import Any

from trustlab.confidence import METHODS


def check_tables(made: Any, n_answers: int, *by: str) -> None:
    """Stop where ``made`` lacks an answer or a confidence, has one twice (of each ``by``), or holds
    a confidence that is missing without a reason or is no chance where it should be."""
    answers = made.answers
    confidence = made.confidence
    methods = confidence["method"]
    values = confidence["confidence"]
    assert len(answers) == n_answers and len(confidence) == n_answers * methods.nunique()
    keys = ["case_id", "dataset", "level", "model", "method", *by]
    assert not confidence.duplicated(keys).any()
    assert values.isna().eq(confidence["missing"].ne("")).all()
    scales = methods.map({name: method.scale for name, method in METHODS.items()})
    assert values[scales.eq("probability")].dropna().between(0, 1).all()
