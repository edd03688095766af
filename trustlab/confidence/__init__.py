"""Confidence methods: one file a family, each method a pure function that registers itself."""

from trustlab.confidence import baselines, consistency, medconf, token, verbalized  # noqa: F401 (importing registers)
from trustlab.confidence.parameters import PARAMETERS
from trustlab.confidence.registry import METHODS, NEEDS, Evaluation, Method, MissingValue, method, select

__all__ = ["METHODS", "NEEDS", "PARAMETERS", "Evaluation", "Method", "MissingValue", "method", "select"]
