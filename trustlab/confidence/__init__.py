"""Confidence methods: one file a family, each method a pure function that registers itself."""

# Tables list methods in the order in which these files register them.
# isort: off
from trustlab.confidence import (  # noqa: F401
    token,
    sar,
    consistency,
    meaning_sets,
    verbalized,
    others,
)

# isort: on
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
from trustlab.records import PARAMETERS, Parameters

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
