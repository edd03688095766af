"""Confidence from evidence: what the model concludes, and the same evidence added up by a fixed formula."""

from __future__ import annotations

from trustlab.confidence.registry import MissingValue, method
from trustlab.records import Assessment, Evidence, Generation

WEIGHTS = {"strong": 3, "moderate": 2, "weak": 1, None: 1}
"""Weight of a criterion by its importance; criteria without importance weigh the same."""
SIGNS = {"supported": 1, "missing": 0, "contradicted": -1}


def weighted_support(evidence: tuple[Evidence, ...]) -> float:
    """(sum w supported - sum w contradicted) / sum w over the criteria, clipped to [0, 1]; ``ValueError`` for no criteria.

    Ours, beside the paper's method: on the evidence table of its case study it gives 5/17.
    """
    if not evidence:
        raise ValueError("no criteria")
    weights = [WEIGHTS[e.criterion.importance] for e in evidence]
    share = sum(w * SIGNS[e.support_level] for w, e in zip(weights, evidence, strict=True)) / sum(weights)
    return min(max(share, 0.0), 1.0)


def _assessment(generation: Generation) -> Assessment:
    assert generation.assessment is not None
    return generation.assessment


@method(family="medconf", access="black", scale="probability", equation="5-8", needs=("assessment",), cite="ren2026towards")
def medconf(generation: Generation) -> float:
    """The model's score from 0 to 100 after holding a symptom profile against the patient's words, divided by 100."""
    a = _assessment(generation)
    if a.score is None:
        raise MissingValue(a.missing or "no score")
    return a.score / 100


@method(family="medconf", access="black", scale="score", equation="", needs=("assessment",), cite="ren2026towards")
def medconf_weighted(generation: Generation) -> float:
    """The same evidence table by a fixed formula: weighted share of supported minus contradicted criteria, in [0, 1]."""
    a = _assessment(generation)
    if not a.evidence:
        raise MissingValue(a.missing or "no table of evidence without a structured profile")
    return weighted_support(a.evidence)
