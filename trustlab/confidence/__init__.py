"""Confidence methods: a file a family, each method a function of one answer."""

# Tables list methods in the order in which these files register them.
# isort: off
from trustlab.confidence import token, sar, consistency  # noqa: F401
from trustlab.confidence import meaning_sets, verbalized, others, beside  # noqa: F401
from trustlab.confidence.registry import (
    METHODS,
    NEEDS,
    PAPER,
    Evaluation,
    Method,
    MissingValue,
)
from trustlab.confidence.registry import method, select
from trustlab.records import PARAMETERS, Parameters
# isort: on

__all__ = [
    "METHODS", "NEEDS", "PAPER", "PARAMETERS", "Parameters", "Evaluation", "Method",
    "MissingValue", "method", "select",
]  # fmt: skip
