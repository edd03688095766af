"""Compares the answer with the samples.

Texts that are equal without case, punctuation and spacing are one name: entailment 1, contradiction
0, cosine 1."""

from __future__ import annotations

from functools import partial

import numpy as np

from trustlab.confidence.consistency import readable, sample_logprobs, sample_names
from trustlab.confidence.registry import method
from trustlab.confidence.verbalized import p_true
from trustlab.records import Generation, normalise

_method = partial(method, family="consistency")
AGREEMENT_SHARE, OBSERVED_SHARE = 0.2, 0.7
"""Of BSDetector: what equal names count beside noncontradiction, and both beside P(True)."""


@_method(
    "Answer agreement", "probability", "answer samples",
    cite="xiong2024can bouchard2025uncertainty",
)  # fmt: skip
def answer_agreement(generation: Generation) -> float:
    """Share of the samples that name the answer, in [0, 1].

    Compared without case, punctuation and spacing. PoC takes the most frequent name instead, also
    where the answer is another."""
    return _is_answer(generation).mean()


@_method(
    "Noncontradiction", "score", "answer samples answer_contradiction",
    cite="chen2024quantifying bouchard2025uncertainty",
)  # fmt: skip
def noncontradiction(generation: Generation) -> float:
    """Mean over samples of 1 minus the probability of contradiction with the answer, both
    directions averaged, in [0, 1]."""
    return _noncontradictions(generation).mean()


@_method(
    "BSDetector", "score", "answer samples answer_contradiction probes.p_true",
    cite="chen2024quantifying",
)  # fmt: skip
def bsdetector(generation: Generation) -> float:
    """Noncontradiction (0.8) with agreement (0.2), 0.7 of it, and 0.3 of P(True); in [0, 1].

    The authors ask for a self-reflection in three steps in the place of P(True)."""
    observed = (1 - AGREEMENT_SHARE) * _noncontradictions(generation).mean()
    observed += AGREEMENT_SHARE * _is_answer(generation).mean()
    return OBSERVED_SHARE * observed + (1 - OBSERVED_SHARE) * p_true(generation)


@_method(
    "Semantic density",
    "score",
    "answer.logprobs samples.logprobs answer_entailment answer_contradiction",
    cite="qiu2024semantic",
    either_way="answer.logprobs samples.logprobs",
)
def semantic_density(generation: Generation) -> float:
    """Nearness to the answer of the distinct names of answer and samples, each weighed by the
    geometric mean of its tokens' probabilities; in [0, 1].

    Nearness is 1 minus contradiction minus half of neutral, both directions averaged."""
    entailment = _row(generation, generation.answer_entailment, 1.0)
    contradiction = _row(generation, generation.answer_contradiction, 0.0)
    neutral = 1 - entailment - contradiction
    nearness = (1 - contradiction - neutral / 2).mean(axis=0)
    # of each name its likeliest tokens, and how near it is
    likeliest = {_answer_name(generation): (_logprobs(generation).mean(), 1.0)}
    samples = zip(
        sample_names(generation), sample_logprobs(generation), nearness, strict=True
    )
    for name, logprobs, near in samples:
        tokens = (logprobs.mean(), near)
        likeliest[name] = max(likeliest.get(name, tokens), tokens)
    means, nearnesses = np.array([*likeliest.values()]).T
    weights = np.exp(means - means.max())
    return np.average(nearnesses, weights=weights)


@_method(
    "CoCoA (MSP)", "score", "answer.logprobs samples answer_similarity",
    cite="vashurin2025cocoa",
)  # fmt: skip
def cocoa_msp(generation: Generation) -> float:
    """Log-probability of the answer times the samples' mean distance from it, 1 minus the cosine;
    in nats, at most 0.

    0 where all samples name the answer, whatever its probability."""
    return 0.0 + _logprobs(generation).sum() * _distance(generation)


@_method(
    "CoCoA (PPL)", "score", "answer.logprobs samples answer_similarity",
    cite="vashurin2025cocoa",
)  # fmt: skip
def cocoa_ppl(generation: Generation) -> float:
    """As cocoa_msp, by the mean log-probability of the answer's tokens; in nats, at most 0."""
    return 0.0 + _logprobs(generation).mean() * _distance(generation)


def _is_answer(generation: Generation) -> np.ndarray:
    """Which of the readable samples name the answer, (K,)."""
    return np.array(sample_names(generation)) == _answer_name(generation)


def _answer_name(generation: Generation) -> str:
    """The answer without case, punctuation and spacing."""
    answer = generation.answer
    assert answer is not None
    return normalise(answer.text or "")


def _logprobs(generation: Generation) -> np.ndarray:
    """Log-probabilities of the answer's tokens, (L,)."""
    trace = generation.answer and generation.answer.trace
    assert trace is not None and trace.logprobs is not None
    return trace.logprobs


def _row(generation: Generation, part: np.ndarray | None, same: float) -> np.ndarray:
    """What the answer and the readable samples are to each other, (K,) or (2, K), with ``same``
    where a sample names the answer; ``ValueError`` for another number of samples."""
    k = len(readable(generation))
    if part is None or part.shape[-1] != k:
        received = None if part is None else part.shape
        raise ValueError(
            f"expected a column for each of {k} readable samples; received {received}"
        )
    return np.where(_is_answer(generation), same, part)


def _noncontradictions(generation: Generation) -> np.ndarray:
    """Of each sample, 1 minus the mean of contradiction in both directions, (K,)."""
    return 1 - _row(generation, generation.answer_contradiction, 0.0).mean(axis=0)


def _distance(generation: Generation) -> float:
    """The mean over samples of 1 minus the cosine to the answer, in [0, 1]."""
    cosines = _row(generation, generation.answer_similarity, 1.0)
    return float((1 - np.clip(cosines, 0.0, 1.0)).mean())
