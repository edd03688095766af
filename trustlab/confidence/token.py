"""Reads the probabilities of the answer's tokens."""

from __future__ import annotations

from functools import partial
from statistics import fmean

import numpy as np

from trustlab.confidence.registry import MissingValue, method
from trustlab.records import Generation, place_of

_method = partial(method, family="token")
PRIOR_OF_UNCERTAIN = "answer.logprobs answer.entropies answer.prior_logprobs"


@_method("ASP", "probability", "answer.logprobs", "A1", "huang2025look")
def asp(generation: Generation) -> float:
    """Mean probability of the diagnosis's tokens, in [0, 1]."""
    return np.exp(_array(generation, "logprobs")).mean()


@_method(
    "MSP (as printed: largest token)",
    "probability",
    "answer.logprobs",
    "A2",
    "huang2025look",
)
def msp(generation: Generation) -> float:
    """Largest probability of the diagnosis's tokens, in [0, 1].

    As printed; elsewhere "MSP" is the product, :func:`sequence_probability`."""
    return np.exp(_array(generation, "logprobs")).max()


@_method(
    "Sequence probability",
    "probability",
    "answer.logprobs",
    "A2 (variant)",
    "fadeeva2023lm",
)
def sequence_probability(generation: Generation) -> float:
    """Product of the diagnosis's token probabilities: P(diagnosis given patient), in [0, 1]."""
    return np.exp(_array(generation, "logprobs").sum())


@_method(
    "Smallest token probability",
    "probability",
    "answer.logprobs",
    "A2 (variant)",
    "huang2025look",
)
def min_token_probability(generation: Generation) -> float:
    """Smallest probability of the diagnosis's tokens, in [0, 1]."""
    return np.exp(_array(generation, "logprobs")).min()


@_method("Perplexity", "score", "answer.logprobs", "A3", "fadeeva2023lm")
def perplexity(generation: Generation) -> float:
    """Minus the diagnosis's perplexity, -exp(-mean log p), at most -1 (printed without the
    minus)."""
    return -np.exp(-_array(generation, "logprobs").mean())


@_method(
    "Entropy",
    "score",
    "answer.entropies",
    "A4",
    "huang2025look",
    falls_with="answer.entropies",
)
def entropy(generation: Generation) -> float:
    """Minus the mean entropy of the next-token distributions, in nats, at most 0 (printed without
    the minus)."""
    return -_array(generation, "entropies").mean()


@_method(
    "PMI", "score", "answer.logprobs answer.prior_logprobs", "A5", "takayama2019relevant",
    falls_with="answer.prior_logprobs",
)  # fmt: skip
def pmi(generation: Generation) -> float:
    """How much the patient information raises the diagnosis, mean log(p / prior) in nats,
    unbounded.

    The prior is the same prompt without the patient information. Printed the other way round."""
    return (
        _array(generation, "logprobs") - _array(generation, "prior_logprobs")
    ).mean()


@_method(
    "Conditional PMI", "score", PRIOR_OF_UNCERTAIN, "A6-A7", "vanderpoel2022mutual",
    falls_with="answer.entropies",
)  # fmt: skip
def conditional_pmi(generation: Generation) -> float:
    """Mean log p plus the weighted log prior of tokens whose entropy reaches the threshold, in
    nats, at most 0.

    As printed, with a plus; ``pmi_weight`` and ``pmi_threshold`` are not given."""
    return _array(generation, "logprobs").mean() + _uncertain_prior(generation)


@_method(
    "Conditional PMI (original sign)", "score", PRIOR_OF_UNCERTAIN, "A6-A7 (variant)",
    "vanderpoel2022mutual", falls_with="answer.prior_logprobs",
)  # fmt: skip
def conditional_pmi_original(generation: Generation) -> float:
    """Mean log p minus the weighted log prior of tokens whose entropy reaches the threshold, in
    nats, unbounded.

    The method's own paper. A token whose entropy crosses the threshold gains confidence."""
    return _array(generation, "logprobs").mean() - _uncertain_prior(generation)


@_method("Rényi divergence", "score", "answer.renyi", "A8", "darrin2023rainproof")
def renyi_divergence(generation: Generation) -> float:
    """Mean Rényi divergence of the next-token distributions from the uniform one, in nats, at least
    0.

    By the backend, per token, with order ``renyi_alpha`` (not given by the paper)."""
    return _array(generation, "renyi").mean()


@_method("Fisher–Rao", "score", "answer.fisher_rao", "A9", "darrin2023rainproof")
def fisher_rao(generation: Generation) -> float:
    """Mean Fisher-Rao distance of the next-token distributions from the uniform one, in [0, 1)."""
    return _array(generation, "fisher_rao").mean()


@_method("Self-certainty", "score", "answer.certainty", cite="kang2025scalable")
def self_certainty(generation: Generation) -> float:
    """Mean over the diagnosis's tokens of minus the mean over the vocabulary of log(V p): the
    divergence of the uniform distribution from the next token's; in nats, at least 0."""
    return _array(generation, "certainty").mean()


@_method("DeepConf (lowest)", "score", "answer.alternatives", cite="fu2025deep")
def deepconf_lowest(generation: Generation) -> float:
    """Least mean, over windows of ``deepconf_window`` tokens, of minus the mean log-probability of
    the ``n_alternatives`` likeliest tokens; in nats, at least log ``n_alternatives``.

    Missing where fewer are listed, or one has probability 0."""
    parameters = generation.parameters
    n = parameters.n_alternatives
    peaks = []
    for listed in _array(generation, "alternatives"):
        logprobs = [logprob for _, logprob in listed[:n]]
        if len(logprobs) < n:
            raise MissingValue(few_listed(len(logprobs), n))
        if min(logprobs) == -np.inf:
            raise MissingValue("an alternative has probability 0")
        peaks.append(-fmean(logprobs))
    width = min(parameters.deepconf_window, len(peaks))
    windows = np.lib.stride_tricks.sliding_window_view(peaks, width)
    return windows.mean(axis=1).min()


def few_listed(n_listed: int, n: int) -> str:
    """Why a value is missing that reads ``n`` alternatives."""
    return f"{n_listed} alternatives are listed; n_alternatives asks for {n}"


def _array(generation: Generation, name: str) -> np.ndarray:
    """A statistic of the answer's tokens, (L,); the registry has checked that it is there."""
    return getattr(generation.answer and generation.answer.trace, name)


def _uncertain_prior(generation: Generation) -> float:
    p = generation.parameters
    uncertain = _array(generation, "entropies") >= p.pmi_threshold
    return (
        p.pmi_weight
        * np.where(uncertain, _array(generation, "prior_logprobs"), 0.0).mean()
    )


NEEDS = "answer.logprobs answer.alternatives alternative_entailment"
ENTAILS, NEUTRAL, CONTRADICTS = 1, 0, -1


@_method("CCP", "probability", NEEDS, "A12", "fadeeva2024fact")
def ccp(generation: Generation) -> float:
    """Product over tokens of the share of entailing among entailing and contradicting alternatives,
    in [0, 1]."""
    return float(token_shares(generation).prod())


@_method("CCP (smallest)", "score", NEEDS, "A12 (variant)", "fadeeva2024fact")
def ccp_min(generation: Generation) -> float:
    """Smallest over tokens of the share of entailing among entailing and contradicting
    alternatives, in [0, 1]."""
    return float(token_shares(generation).min())


@_method("CCP (mean)", "score", NEEDS, "A12 (variant)", "fadeeva2024fact")
def ccp_mean(generation: Generation) -> float:
    """Mean over tokens of the share of entailing among entailing and contradicting alternatives, in
    [0, 1]."""
    return float(token_shares(generation).mean())


def token_shares(generation: Generation) -> np.ndarray:
    """Each token's probability of alternatives that entail, by that of those that entail or
    contradict, (L,).
    The token itself entails, also where it is not among the alternatives."""
    trace = generation.answer and generation.answer.trace
    classes = generation.alternative_entailment
    assert trace is not None and trace.alternatives is not None
    assert trace.logprobs is not None and classes is not None
    n = generation.parameters.n_alternatives
    shares = []
    each = zip(trace.tokens, trace.logprobs, trace.alternatives, classes, strict=True)
    for token, logprob, listed, kinds in each:
        considered = listed[:n]
        n_considered = len(considered)
        chances = np.exp([lp for _, lp in considered])
        if n_considered < n and chances.sum() < 0.999:
            raise MissingValue(few_listed(n_considered, n))
        if len(kinds) != n_considered:
            wanted = f"expected a class for each of {n_considered} alternatives"
            raise ValueError(f"{wanted}; received {len(kinds)}")
        is_considered = place_of(token, float(logprob), considered) is not None
        own = 0.0 if is_considered else float(np.exp(logprob))
        entailing = own + chances[kinds == ENTAILS].sum()
        decisive = entailing + chances[kinds == CONTRADICTS].sum()
        if decisive == 0:
            raise MissingValue(
                "a token and all that entails or contradicts it have probability 0"
            )
        shares.append(entailing / decisive)
    return np.array(shares)
