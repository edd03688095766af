"""Claim-conditioned probability: of what the model might have said at each token, how much means the same.

Fadeeva et al. 2024; equation A12 of Ren et al. 2026, which gives no aggregation over tokens: the product, as in the method's own
paper, and two variants. Alternatives are the ``n_alternatives`` most probable tokens, put in place in the answer; their
probabilities are not scaled to sum 1.
"""

from __future__ import annotations

import numpy as np

from trustlab.confidence.registry import MissingValue, method
from trustlab.records import Generation

NEEDS = ("answer.logprobs", "answer.alternatives", "alternative_entailment")
ENTAILS, NEUTRAL, CONTRADICTS = 1, 0, -1


@method(family="token", access="white", scale="probability", equation="A12", needs=NEEDS, cite="fadeeva2024fact")
def ccp(generation: Generation) -> float:
    """Product over tokens of the share of entailing among entailing and contradicting alternatives, in [0, 1]."""
    return float(token_shares(generation).prod())


@method(family="token", access="white", scale="probability", equation="A12 (variant)", needs=NEEDS, cite="fadeeva2024fact")
def ccp_min(generation: Generation) -> float:
    """Smallest over tokens of the share of entailing among entailing and contradicting alternatives, in [0, 1]."""
    return float(token_shares(generation).min())


@method(family="token", access="white", scale="probability", equation="A12 (variant)", needs=NEEDS, cite="fadeeva2024fact")
def ccp_mean(generation: Generation) -> float:
    """Mean over tokens of the share of entailing among entailing and contradicting alternatives, in [0, 1]."""
    return float(token_shares(generation).mean())


def token_shares(generation: Generation) -> np.ndarray:
    """For each token, probability of the alternatives that entail, by that of those that entail or contradict, (L,).

    The token itself entails, also where it is not among the alternatives.
    """
    trace, classes = generation.answer and generation.answer.trace, generation.alternative_entailment
    assert trace is not None and trace.alternatives is not None and trace.logprobs is not None and classes is not None
    shares = []
    for token, logprob, listed, kinds in zip(trace.tokens, trace.logprobs, trace.alternatives, classes, strict=True):
        kept = listed[: generation.parameters.n_alternatives]
        chances = np.exp([lp for _, lp in kept])
        if len(kept) < generation.parameters.n_alternatives and chances.sum() < 0.999:
            raise MissingValue(
                f"{len(kept)} alternatives are listed; n_alternatives asks for {generation.parameters.n_alternatives}"
            )
        if len(kinds) != len(kept):
            raise ValueError(f"expected a class for each of {len(kept)} alternatives; received {len(kinds)}")
        own = 0.0 if place_of(token, float(logprob), kept) is not None else float(np.exp(logprob))
        entailing = own + chances[kinds == ENTAILS].sum()
        told = entailing + chances[kinds == CONTRADICTS].sum()
        if told == 0:
            raise MissingValue("a token and all that entails or contradicts it have probability 0")
        shares.append(entailing / told)
    return np.array(shares)


def place_of(token: str, logprob: float, alternatives: tuple[tuple[str, float], ...]) -> int | None:
    """Where among the alternatives the token itself stands; ``None`` where it is none of them.

    Its text tells, and of several alternatives with its text the probability. A token that
    completes no character has no text of its own ('' or the replacement character): there, and only
    there, an alternative of the same probability is taken for it.
    """
    near = [lp == logprob or abs(lp - logprob) < 1e-6 for _, lp in alternatives]
    same = [text == token for text, _ in alternatives]
    tells = [_tells(text) and _tells(token) for text, _ in alternatives]
    places = range(len(alternatives))
    found = [i for i in places if same[i] and near[i]]
    found += [i for i in places if same[i] and tells[i]]
    found += [i for i in places if near[i] and not tells[i]]
    return found[0] if found else None


def _tells(text: str) -> bool:
    """Whether a token's text says which token it is."""
    return bool(text) and "\ufffd" not in text
