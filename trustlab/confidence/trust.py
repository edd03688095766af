"""The trust indices' ingredients, judged as confidences: what a panel of doctors agrees on, and how its reasoning fits."""

from __future__ import annotations

from trustlab.confidence.registry import MissingValue, method
from trustlab.metrics.trust import cdr
from trustlab.metrics.trust import rdc as mean_cosine
from trustlab.records import Generation


@method(
    family="trust",
    access="black",
    scale="score",
    equation="1 - CDR",
    needs=("panel",),
    cite="",
)
def agreement(generation: Generation) -> float:
    """Share of the panel's readable diagnoses that the largest group has, in (0, 1]; of three doctors 1/3, 2/3 or 1."""
    if generation.panel is None or sum(v is not None for v in generation.panel.votes) < 2:
        raise MissingValue("fewer than two readable diagnoses in the panel")
    return 1 - cdr(generation.panel.votes)


@method(
    family="trust",
    access="black",
    scale="score",
    equation="RDC",
    needs=("panel", "panel.cosines"),
    cite="",
)
def rdc(generation: Generation) -> float:
    """Mean over the panel's doctors of the cosine of reasoning and diagnosis, in [-1, 1]."""
    assert generation.panel is not None and generation.panel.cosines is not None
    value = mean_cosine(generation.panel.cosines)
    if value != value:
        raise MissingValue("no doctor of the panel gave both reasoning and diagnosis")
    return value
