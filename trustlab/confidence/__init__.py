"""Confidence methods: one file a family, each method a pure function that registers itself."""

from trustlab.confidence import consistency, meaning_sets, others, sar, token, verbalized  # noqa: F401 (registers)
from trustlab.confidence.registry import (
    METHODS,
    NEEDS,
    PAPER,
    Evaluation,
    Method,
    MissingValue,
    method,
    select,
)
from trustlab.settings import PARAMETERS, Parameters

__all__ = [
    "METHODS",
    "NEEDS",
    "PAPER",
    "PARAMETERS",
    "Parameters",
    "Evaluation",
    "Method",
    "MissingValue",
    "method",
    "select",
]
