"""Asks which sampled diagnoses mean the same.

- K readable samples; ``entailment[i, j]``, ``contradiction[i, j]``: the probability that sample i
  entails, contradicts sample j. Two mean the same where entailment is the likelier in both
  directions; sets are the transitive closure.
- Graphs weigh an edge by S = (entailment + its transpose) / 2; K equal samples are K rows of S.
- Equation numbers: Ren et al. 2026. Where its formula is an uncertainty, confidence is its
  negative.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.linalg import expm
from scipy.special import xlogy

from trustlab.confidence.consistency import (
    by_name,
    mean_off_diagonal,
    readable,
    sample_logprobs,
    square,
)
from trustlab.confidence.registry import MissingValue, method
from trustlab.records import Generation

_method = partial(method, family="consistency")
SETS, GRAPH = "samples entailment contradiction", "samples entailment"
PROBABLE_SETS = "samples.logprobs entailment contradiction"
NOISE = 1e-12
"""An eigensolver's own: equal samples would otherwise differ by it with K, and rank."""
AT_THE_CUT = 1e-6
"""An eigenvalue this near to ``eigenvalue_cut`` stands at it, not below, against rounding."""
HEAT_TIME, LEAST_EIGENVALUE = 0.3, 1e-8
"""Of kernel language entropy: how long heat spreads, and the eigenvalues that count."""


@_method(
    "Semantic PoC",
    "probability",
    SETS,
    "A13 (variant)",
    "xiong2024can kuhn2023semantic",
)
def semantic_poc(generation: Generation) -> float:
    """Share of the largest set of samples that mean the same, in [1/K, 1]."""
    return set_shares(generation).max()


@_method("NumSet", "score", SETS, "A16", "lin2024generating", ratio=True)
def num_set(generation: Generation) -> float:
    """1 minus the number of sets of samples that mean the same, by K; in [0, 1 - 1/K]."""
    return 1 - len(set_shares(generation)) / len(readable(generation))


@_method("EigV", "score", GRAPH, "A17-A18", "lin2024generating")
def eigv(generation: Generation) -> float:
    """1 minus the sum of max(0, 1 - eigenvalue) of the samples' normalised graph Laplacian, at most
    0.

    The sum is a continuous count of meanings: 1 where all samples entail each other, K where none
    does."""
    eigenvalues = np.linalg.eigvalsh(laplacian(generation))
    meanings_counted = np.maximum(0.0, 1 - eigenvalues).sum()
    return 1 - (1.0 if abs(meanings_counted - 1) < NOISE else meanings_counted)


@_method("Deg", "score", GRAPH, "A19", "lin2024generating", ratio=True)
def deg(generation: Generation) -> float:
    """Mean mutual entailment of the samples, each with itself included: trace of the degree matrix
    by K squared, in (0, 1]."""
    return similarity_graph(generation).mean()


@_method("Ecc", "score", GRAPH, "A20", "lin2024generating")
def ecc(generation: Generation) -> float:
    """1 minus the length of the samples' centred spectral embeddings, in [1 - sqrt(K - 1), 1].

    The eigenvectors are those with an eigenvalue below ``eigenvalue_cut`` (not given by the
    paper)."""
    eigenvalues, vectors = np.linalg.eigh(laplacian(generation))
    cut = generation.parameters.eigenvalue_cut - AT_THE_CUT
    is_below = eigenvalues < cut
    chosen = vectors[:, is_below]
    centred = chosen - chosen.mean(axis=0)
    spread = (centred**2).sum()
    length = 0.0 if spread < NOISE else np.sqrt(spread)
    return 1 - length


@_method("Semantic entropy", "score", PROBABLE_SETS, "A23", "kuhn2023semantic")
def semantic_entropy(generation: Generation) -> float:
    """Minus the semantic entropy: over sets, the set's share of samples times log of its summed
    probability; in nats.

    As printed: repeated samples can push a set's sum over 1 and the confidence over 0."""
    total = _log_sum_by_set(_log_probabilities(generation), meanings(generation))
    return float(set_shares(generation) @ total)


@_method(
    "Semantic entropy (normalised)", "score", PROBABLE_SETS, "A23 (variant)",
    "farquhar2024detecting", either_way="samples.logprobs",
)  # fmt: skip
def semantic_entropy_normalised(generation: Generation) -> float:
    """Minus the entropy of the sets' probabilities, each distinct string counted once and their sum
    scaled to 1; at most 0.

    A string that came as different tokens counts with the likeliest."""
    logprobs = _log_probabilities(generation)
    sets = meanings(generation)
    likeliest: dict[str, int] = {}
    for i, sample in enumerate(readable(generation)):
        best = likeliest.setdefault(str(sample.text), i)
        if logprobs[i] > logprobs[best]:
            likeliest[str(sample.text)] = i
    distinct = np.array(list(likeliest.values()))
    total = _log_sum_by_set(logprobs[distinct], sets[distinct])
    total -= np.logaddexp.reduce(total)
    shares = np.exp(total)
    # a set without any probability adds nothing
    return float(xlogy(shares, shares).sum())


@_method(
    "Semantic entropy (discrete)",
    "score",
    SETS,
    "A23 (variant)",
    "farquhar2024detecting",
)
def semantic_entropy_discrete(generation: Generation) -> float:
    """Minus the entropy of the sets' shares of samples, in nats, in [-log K, 0]."""
    shares = set_shares(generation)
    return float((shares * np.log(shares)).sum())


@_method(
    "Kernel language entropy", "score", SETS, cite="nikitin2024kernel",
)  # fmt: skip
def kernel_language_entropy(generation: Generation) -> float:
    """Minus the von Neumann entropy of the heat kernel of the samples' entailment graph, in nats,
    in [-log K, 0].

    It depends on K, so it is missing where fewer samples than the run's own can be read."""
    k = len(readable(generation))
    n_samples = generation.parameters.n_samples
    if k < n_samples:
        raise MissingValue(
            f"{k} samples can be read; the value holds for the run's {n_samples}"
        )
    return _kernel_entropy(generation, HEAT_TIME)


@_method(
    "Kernel language entropy (rescaled)", "score", SETS, cite="nikitin2024kernel",
)  # fmt: skip
def kernel_language_entropy_rescaled(generation: Generation) -> float:
    """As kernel_language_entropy, also of fewer samples than the run's own: heat then spreads
    longer, by the run's number over K; in nats, in [-log K, 0]."""
    n_times = generation.parameters.n_samples / len(readable(generation))
    return _kernel_entropy(generation, n_times * HEAT_TIME)


@_method("LUQ", "score", SETS, cite="zhang2024luq")
def luq(generation: Generation) -> float:
    """Mean over ordered pairs of different samples of entailment by the sum of entailment and
    contradiction, in [0, 1].

    Where both are 0, a half. A diagnosis is one sentence; the authors' judge is asked by prompt."""
    entailment = by_name(generation, generation.entailment, 1.0)
    contradiction = by_name(generation, generation.contradiction, 0.0)
    decisive = entailment + contradiction
    shares = np.full_like(decisive, 0.5)
    np.divide(entailment, decisive, out=shares, where=decisive > 0)
    return mean_off_diagonal(shares, len(shares))


def meanings(generation: Generation) -> np.ndarray:
    """The number of each readable sample's set, (K,): the index of the set's first sample."""
    k = len(readable(generation))
    likelier = square(generation.entailment, k) > square(generation.contradiction, k)
    reached = (likelier & likelier.T) | np.eye(k, dtype=bool)
    while True:
        further = reached @ reached
        if np.array_equal(further, reached):
            return reached.argmax(axis=1)
        reached = further


def set_shares(generation: Generation) -> np.ndarray:
    """Each set's share of the samples, (sets,), in the order of their first samples."""
    sets = meanings(generation)
    return np.unique(sets, return_counts=True)[1] / len(sets)


def similarity_graph(generation: Generation) -> np.ndarray:
    """S, (K, K): mutual entailment, the mean of both directions."""
    entailment = square(generation.entailment, len(readable(generation)))
    return (entailment + entailment.T) / 2


def laplacian(generation: Generation) -> np.ndarray:
    """I - D^(-1/2) S D^(-1/2), (K, K), with D the sums of S's rows."""
    s = similarity_graph(generation)
    degrees = s.sum(axis=1)
    if not (degrees > 0).all():
        raise MissingValue("a sample entails nothing and is entailed by nothing")
    scale = degrees**-0.5
    return np.eye(len(s)) - scale[:, None] * s * scale


def _kernel_entropy(generation: Generation, time: float) -> float:
    """Sum of eigenvalue times its log, of the heat kernel scaled to a trace of 1."""
    entailment = by_name(generation, generation.entailment, 1.0)
    contradiction = by_name(generation, generation.contradiction, 0.0)
    neutral = 1 - entailment - contradiction
    weights = entailment + neutral / 2
    edges = weights + weights.T
    np.fill_diagonal(edges, 0.0)
    degrees = np.diag(edges.sum(axis=1))
    kernel = expm(time * (edges - degrees))
    scale = np.diag(kernel) ** -0.5
    density = np.outer(scale, scale) * kernel / len(kernel)
    eigenvalues = np.linalg.eigvalsh(density)
    counted = eigenvalues[eigenvalues > LEAST_EIGENVALUE]
    return float(xlogy(counted, counted).sum())


def _log_probabilities(generation: Generation) -> np.ndarray:
    return np.array([logprobs.sum() for logprobs in sample_logprobs(generation)])


def _log_sum_by_set(logprobs: np.ndarray, sets: np.ndarray) -> np.ndarray:
    """Log of the summed probability of each set, (sets,), in the order of the sets' numbers."""
    return np.array(
        [np.logaddexp.reduce(logprobs[sets == number]) for number in np.unique(sets)]
    )
