"""Weighs tokens and samples by how much each means (SAR). Duan et al. 2024; equation numbers: Ren
et al. 2026. R_l = 1 - g(answer, answer without token l), g a cosine clipped to [0, 1] (a
cross-encoder in the method's own code). Where the formula is an uncertainty, the confidence is its
negative."""

from __future__ import annotations

from functools import partial
from statistics import fmean

import numpy as np

from trustlab.confidence.consistency import readable, sample_logprobs, square
from trustlab.confidence.registry import method
from trustlab.records import Generation

_method = partial(method, family="consistency")
IRRELEVANT = 1e-6
"""A relevance below it counts as 0: the sentence encoder's own noise."""


@method(
    "TokenSAR",
    "score",
    "answer.logprobs relevance",
    "A10-A11",
    "duan2024shifting",
    family="token",
)
def token_sar(generation: Generation) -> float:
    """Mean log-probability of the diagnosis's tokens, each weighed by its share of the relevance,
    in nats, at most 0.

    What a token's relevance is judged in is the parameter ``relevance_context``."""
    answer = generation.answer
    assert (
        answer is not None
        and answer.trace is not None
        and answer.trace.logprobs is not None
    )
    assert generation.relevance is not None
    return weighed(answer.trace.logprobs, generation.relevance)


@_method(
    "SentenceSAR", "score", "samples.logprobs similarity", "A24-A25", "duan2024shifting"
)
def sentence_sar(generation: Generation) -> float:
    """Mean log of each sample's probability plus the others' that mean alike, by
    ``sar_temperature``; in nats.

    As in the method's own paper; the benchmark prints it as :func:`sentence_sar_printed`."""
    return _sentence_sar(
        generation, [logprobs.sum() for logprobs in sample_logprobs(generation)]
    )


@_method(
    "SentenceSAR (as printed)", "score", "samples.logprobs similarity", "A24-A25 (variant)",
    "ren2026towards",
)  # fmt: skip
def sentence_sar_printed(generation: Generation) -> float:
    """Mean of each sample's log-probability plus the others' probability that mean alike, by
    ``sar_temperature``; as printed."""
    logprobs = np.array([logprobs.sum() for logprobs in sample_logprobs(generation)])
    support = (
        _likeness(generation) @ np.exp(logprobs) / generation.parameters.sar_temperature
    )
    return float((logprobs + support).mean())


@_method(
    "SAR",
    "score",
    "samples.logprobs similarity sample_relevance",
    "",
    "duan2024shifting",
)
def sar(generation: Generation) -> float:
    """Sentence-level SAR with each sample's probability made of its tokens by their shares of the
    relevance; in nats."""
    assert generation.sample_relevance is not None
    pairs = zip(sample_logprobs(generation), generation.sample_relevance, strict=True)
    return _sentence_sar(generation, [weighed(*pair) for pair in pairs])


def weighed(logprobs: np.ndarray, relevance: np.ndarray) -> float:
    """Sum of ``logprobs`` (L,), each times its share of ``relevance`` (L,).
    Equal shares where none is relevant; else what is not counts for nothing, even a log of 0."""
    if logprobs.shape != relevance.shape:
        wanted = f"expected one relevance a token, {logprobs.shape}"
        raise ValueError(f"{wanted}; received {relevance.shape}")
    counted = np.where(relevance < IRRELEVANT, 0.0, relevance)
    total = counted.sum()
    if not total:
        return fmean(logprobs)
    return float(np.where(counted > 0, logprobs, 0.0) @ counted / total)


def _likeness(generation: Generation) -> np.ndarray:
    """How alike two samples are, in [0, 1]; a sample and itself 0, (K, K)."""
    alike = np.clip(square(generation.similarity, len(readable(generation))), 0.0, 1.0)
    np.fill_diagonal(alike, 0.0)
    return alike


def _sentence_sar(generation: Generation, logprobs: list[float]) -> float:
    temperature = generation.parameters.sar_temperature
    support = _likeness(generation) / temperature
    weights = np.eye(len(logprobs)) + support
    terms = np.log(weights) + np.array(logprobs)
    log_sums = np.logaddexp.reduce(terms, axis=1)
    return float(log_sums.mean())
