"""Confidence from the probabilities of the diagnosis's own tokens (l = 1..L), at temperature 1.

Equation numbers are those of Ren et al. 2026. Where its formula is an uncertainty, the confidence is its negative.
"""

from __future__ import annotations

import numpy as np

from trustlab.confidence.registry import method
from trustlab.records import Generation


@method(family="token", access="white", scale="probability", equation="A1", needs=("answer.logprobs",), cite="huang2025look")
def asp(generation: Generation) -> float:
    """Mean probability of the diagnosis's tokens, in [0, 1]."""
    return np.exp(_array(generation, "logprobs")).mean()


@method(family="token", access="white", scale="probability", equation="A2", needs=("answer.logprobs",), cite="huang2025look")
def msp(generation: Generation) -> float:
    """Largest probability of the diagnosis's tokens, in [0, 1].

    As printed, and so nearly always near 1; elsewhere "MSP" is the product: :func:`sequence_probability`.
    """
    return np.exp(_array(generation, "logprobs")).max()


@method(
    family="token", access="white", scale="probability", equation="A2 (variant)", needs=("answer.logprobs",), cite="fadeeva2023lm"
)
def sequence_probability(generation: Generation) -> float:
    """Product of the diagnosis's token probabilities: P(diagnosis given patient), in [0, 1]."""
    return np.exp(_array(generation, "logprobs").sum())


@method(
    family="token", access="white", scale="probability", equation="A2 (variant)", needs=("answer.logprobs",), cite="huang2025look"
)
def min_token_probability(generation: Generation) -> float:
    """Smallest probability of the diagnosis's tokens, in [0, 1]."""
    return np.exp(_array(generation, "logprobs")).min()


@method(family="token", access="white", scale="score", equation="A3", needs=("answer.logprobs",), cite="fadeeva2023lm")
def perplexity(generation: Generation) -> float:
    """Minus the diagnosis's perplexity, -exp(-mean log p), at most -1 (printed without the minus)."""
    return -np.exp(-_array(generation, "logprobs").mean())


@method(
    family="token", access="white", scale="score", equation="A4", needs=("answer.entropies",), cite="huang2025look",
    falls_with=("answer.entropies",),
)  # fmt: skip
def entropy(generation: Generation) -> float:
    """Minus the mean entropy of the next-token distributions, in nats, at most 0 (printed without the minus)."""
    return -_array(generation, "entropies").mean()


@method(
    family="token", access="white", scale="score", equation="A5", needs=("answer.logprobs", "answer.prior_logprobs"),
    cite="takayama2019relevant", falls_with=("answer.prior_logprobs",),
)  # fmt: skip
def pmi(generation: Generation) -> float:
    """How much the patient information raises the diagnosis, mean log(p / prior) in nats, unbounded.

    The prior is the same prompt without the patient information. Printed the other way round.
    """
    return (_array(generation, "logprobs") - _array(generation, "prior_logprobs")).mean()


@method(
    family="token", access="white", scale="score", equation="A6-A7",
    needs=("answer.logprobs", "answer.entropies", "answer.prior_logprobs"), cite="vanderpoel2022mutual",
    falls_with=("answer.entropies",),
)  # fmt: skip
def conditional_pmi(generation: Generation) -> float:
    """Mean log p plus the weighted log prior of tokens whose entropy reaches the threshold, in nats, at most 0.

    As printed, with a plus before the weight; weight and threshold are not given (``pmi_weight``, ``pmi_threshold``).
    """
    return _array(generation, "logprobs").mean() + _uncertain_prior(generation)


@method(
    family="token", access="white", scale="score", equation="A6-A7 (variant)",
    needs=("answer.logprobs", "answer.entropies", "answer.prior_logprobs"), cite="vanderpoel2022mutual",
    falls_with=("answer.prior_logprobs",),
)  # fmt: skip
def conditional_pmi_original(generation: Generation) -> float:
    """Mean log p minus the weighted log prior of tokens whose entropy reaches the threshold, in nats, unbounded.

    The method's own paper. A token whose entropy crosses the threshold gains confidence.
    """
    return _array(generation, "logprobs").mean() - _uncertain_prior(generation)


@method(family="token", access="white", scale="score", equation="A8", needs=("answer.renyi",), cite="darrin2023rainproof")
def renyi_divergence(generation: Generation) -> float:
    """Mean Rényi divergence of the next-token distributions from the uniform one, in nats, at least 0.

    The backend computes it per token, with order ``renyi_alpha`` (not given by the paper).
    """
    return _array(generation, "renyi").mean()


@method(family="token", access="white", scale="score", equation="A9", needs=("answer.fisher_rao",), cite="darrin2023rainproof")
def fisher_rao(generation: Generation) -> float:
    """Mean Fisher-Rao distance of the next-token distributions from the uniform one, in [0, 1)."""
    return _array(generation, "fisher_rao").mean()


def _array(generation: Generation, name: str) -> np.ndarray:
    """A statistic of the answer's tokens, (L,); the registry has checked that it is there."""
    return getattr(generation.answer and generation.answer.trace, name)


def _uncertain_prior(generation: Generation) -> float:
    p = generation.parameters
    uncertain = _array(generation, "entropies") >= p.pmi_threshold
    return p.pmi_weight * np.where(uncertain, _array(generation, "prior_logprobs"), 0.0).mean()
