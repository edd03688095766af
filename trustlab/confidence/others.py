"""Holds MedConf's score (asked for in ``agents``), the baselines, the doctors' agreement."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from statistics import fmean

from trustlab.confidence.registry import MissingValue, method
from trustlab.records import Assessment, Evidence, Generation


@method("Information level", "score", "shown", family="baseline")
def information_level(generation: Generation) -> float:
    """Share of the case's statements shown, in (0, 1]."""
    if generation.n_total < 1:
        raise MissingValue("it is not known how many statements the case has")
    return generation.n_statements / generation.n_total


@method("Word count", "score", "shown", family="baseline")
def word_count(generation: Generation) -> float:
    """Number of words of patient information shown, at least 1."""
    if generation.n_words < 1:
        raise MissingValue("it is not known how many words were shown")
    return generation.n_words


@method("Random", "score", "shown", family="baseline")
def random(generation: Generation) -> float:
    """A hash of seed, case and level, uniform in [0, 1): the same in every run, and knows
    nothing."""
    key = json.dumps([generation.seed, generation.case_id, generation.level]).encode()
    return (int.from_bytes(hashlib.sha256(key).digest()[:8], "big") >> 11) / 2**53


WEIGHTS = {"strong": 3, "moderate": 2, "weak": 1, None: 1}
"""Weight of a criterion by its importance; criteria without importance weigh the same."""
SIGNS = {"supported": 1, "missing": 0, "contradicted": -1}


def weighted_support(evidence: tuple[Evidence, ...]) -> float:
    """(sum w supported - sum w contradicted) / sum w over the criteria, clipped to [0, 1]; ours.
    ``ValueError`` for no criteria. The evidence table of the paper's case study gives 5/17."""
    if not evidence:
        raise ValueError("no criteria")
    weighed = [
        (WEIGHTS[e.criterion.importance], SIGNS[e.support_level]) for e in evidence
    ]
    share = sum(w * sign for w, sign in weighed) / sum(w for w, _ in weighed)
    return min(max(share, 0.0), 1.0)


def _assessment(generation: Generation) -> Assessment:
    assert generation.assessment is not None
    return generation.assessment


@method(
    "MedConf", "probability", "assessment", "5-8", "ren2026towards", family="medconf"
)
def medconf(generation: Generation) -> float:
    """The model's score from 0 to 100 after holding a symptom profile against the patient's words,
    divided by 100."""
    assessment = _assessment(generation)
    if assessment.score is None:
        raise MissingValue(assessment.missing or "no score")
    return assessment.score / 100


@method(
    "MedConf (fixed weights)", "score", "assessment", "", "ren2026towards", family="medconf",
    ratio=True,
)  # fmt: skip
def medconf_weighted(generation: Generation) -> float:
    """The same evidence table by a fixed formula: weighted share of supported minus contradicted
    criteria, in [0, 1]."""
    assessment = _assessment(generation)
    if not assessment.evidence:
        no_table = "no table of evidence without a structured profile"
        raise MissingValue(assessment.missing or no_table)
    return weighted_support(assessment.evidence)


@method("Exact posterior", "probability", "exact", family="reference")
def exact_posterior(generation: Generation) -> float:
    """The chance of the model's answer given what was shown, by the law that made the patient, in
    [0, 1]: no method, but the best that one could do. Generated patients only."""
    assert generation.exact is not None
    return generation.exact


@method("Agreement of doctors", "score", "panel", "1 - CDR", family="trust")
def agreement(generation: Generation) -> float:
    """Share of the panel's readable diagnoses that the largest group has, in (0, 1]; of three
    doctors 1/3, 2/3 or 1."""
    votes = (
        [v for v in generation.panel.votes if v is not None] if generation.panel else []
    )
    if len(votes) < 2:
        raise MissingValue("fewer than two readable diagnoses in the panel")
    return max(Counter(votes).values()) / len(votes)


@method("RDC", "score", "panel panel.cosines", "RDC", family="trust")
def rdc(generation: Generation) -> float:
    """Mean over the panel's doctors of the cosine of reasoning and diagnosis, in [-1, 1]."""
    assert generation.panel is not None and generation.panel.cosines is not None
    cosines = [c for c in generation.panel.cosines if c is not None and c == c]
    if not cosines:
        raise MissingValue("no doctor of the panel gave both reasoning and diagnosis")
    return fmean(cosines)
