"""Asks how far K sampled diagnoses agree. Equation numbers: Ren et al. 2026. Where its formula is
an uncertainty, confidence is its negative."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache, partial
from itertools import combinations
from statistics import fmean
from types import SimpleNamespace

import numpy as np

from trustlab.confidence.registry import MissingValue, method
from trustlab.records import Generation, Reply, normalise

_method = partial(method, family="consistency")
TOO_FEW = "fewer than 2 readable samples"


@_method("PoC", "probability", "samples", "A13", "xiong2024can")
def poc(generation: Generation) -> float:
    """Share of the most frequent diagnosis among the samples, in [1/K, 1].

    Compared without case, punctuation and spacing."""
    counts = Counter(sample_names(generation))
    return max(counts.values()) / counts.total()


@_method(
    "Lexical similarity",
    "score",
    "samples",
    "A15",
    "lin2004rouge fadeeva2023lm",
    ratio=True,
)
def lexical_similarity(generation: Generation) -> float:
    """Mean ROUGE-L F1 over ordered pairs of different samples, in [0, 1]."""
    counts = Counter(_texts(generation))
    same = sum(map(_n_ordered_pairs, counts.values()))
    unlike = []
    for a, b in combinations(sorted(counts), 2):
        n_pairs = 2 * counts[a] * counts[b]
        likeness = _rouge_l(a, b)
        unlike.append(n_pairs * likeness)
    n_all = _n_ordered_pairs(counts.total())
    return (same + sum(unlike)) / n_all


@_method(
    "Semantic similarity", "score", "samples similarity", "A14",
    "reimers2019sentence wang2020minilm",
)  # fmt: skip
def semantic_similarity(generation: Generation) -> float:
    """Mean cosine over ordered pairs of different samples, in [-1, 1], by a general sentence
    encoder."""
    return mean_off_diagonal(generation.similarity, len(readable(generation)))


@_method(
    "Semantic similarity (medical)",
    "score",
    "samples similarity_med",
    "A14",
    "reimers2019sentence",
)
def semantic_similarity_med(generation: Generation) -> float:
    """Mean cosine over ordered pairs of different samples, in [-1, 1], by a medical sentence
    encoder that the user names."""
    return mean_off_diagonal(generation.similarity_med, len(readable(generation)))


@_method("MC-SE", "score", "samples.logprobs", "A21", "malinin2021uncertainty")
def mc_se(generation: Generation) -> float:
    """Minus the Monte-Carlo sequence entropy: mean log-probability of the sampled diagnoses, in
    nats, at most 0.

    Printed as a confidence without the minus."""
    return fmean([logprobs.sum() for logprobs in sample_logprobs(generation)])


@_method("MC-NSE", "score", "samples.logprobs", "A22", "malinin2021uncertainty")
def mc_nse(generation: Generation) -> float:
    """Minus the normalised Monte-Carlo sequence entropy: as mc_se, each divided by its number of
    tokens, at most 0."""
    return fmean([logprobs.mean() for logprobs in sample_logprobs(generation)])


@_method("SNNE", "score", "samples similarity", cite="nguyen2025beyond")
def snne(generation: Generation) -> float:
    """Minus the semantic nearest-neighbour entropy of the samples: mean over samples of the log of
    the mean of exp(cosine - 1) to all samples, itself included; in nats, at most 0.

    The paper's value less 1 + log K, so that samples of one name give 0 whatever K is."""
    cosines = by_name(generation, generation.similarity, 1.0)
    near = np.exp(np.clip(cosines, 0.0, 1.0) - 1)
    return np.log(near.mean(axis=1)).mean()


def readable(generation: Generation) -> list[Reply]:
    """The samples that name a diagnosis; :class:`MissingValue` where there are fewer than 2."""
    samples = [sample for sample in generation.samples or () if sample.text is not None]
    if len(samples) < 2:
        raise MissingValue(TOO_FEW)
    return samples


def _texts(generation: Generation) -> list[str]:
    return [sample.text or "" for sample in readable(generation)]


def sample_names(generation: Generation) -> list[str]:
    """The readable samples without case, punctuation and spacing: equal ones are one name."""
    return [normalise(text) for text in _texts(generation)]


def by_name(
    generation: Generation, matrix: np.ndarray | None, same: float
) -> np.ndarray:
    """A matrix over the readable samples (K, K), with ``same`` wherever two are one name."""
    names = np.array(sample_names(generation))
    return np.where(names[:, None] == names, same, square(matrix, len(names)))


def sample_logprobs(generation: Generation) -> list[np.ndarray]:
    """Log-probabilities of each readable sample's tokens, K arrays of shape (L_k,)."""
    traces = [sample.trace for sample in readable(generation)]
    arrays = [
        trace.logprobs
        for trace in traces
        if trace is not None and trace.logprobs is not None
    ]
    # its sum, 0, would read as certainty
    if any(len(logprobs) == 0 for logprobs in arrays):
        raise MissingValue("a sampled diagnosis has no tokens")
    return arrays


def square(matrix: np.ndarray | None, k: int) -> np.ndarray:
    """The matrix as it is; ``ValueError`` unless it is (k, k), of k readable samples."""
    shape = None if matrix is None else matrix.shape
    if matrix is None or shape != (k, k):
        wanted = f"expected a matrix of shape {(k, k)}, one row per readable sample"
        raise ValueError(f"{wanted}; received {shape}")
    return matrix


def mean_off_diagonal(matrix: np.ndarray | None, k: int) -> float:
    """The mean over ordered pairs of different samples; ``ValueError`` as :func:`square`."""
    matrix = square(matrix, k)
    return (matrix.sum() - np.trace(matrix)) / _n_ordered_pairs(k)


def _n_ordered_pairs(n: int) -> int:
    """How many pairs n things make, in both orders."""
    return n * (n - 1)


@lru_cache(maxsize=1)
def _scorer():
    from rouge_score.rouge_scorer import RougeScorer
    from rouge_score.tokenizers import DefaultTokenizer

    # Stemming is nearly all of the cost, so each text is read once.
    tokenize = lru_cache(maxsize=65536)(DefaultTokenizer(use_stemmer=True).tokenize)
    return RougeScorer(["rougeL"], tokenizer=SimpleNamespace(tokenize=tokenize))


@lru_cache(maxsize=65536)
def _rouge_l(a: str, b: str) -> float:
    """ROUGE-L F1 of two strings, which is symmetric."""
    return _scorer().score(a, b)["rougeL"].fmeasure
