"""Checks of lesson 2: Samples."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

import numpy as np
from lesson import a_function, a_list, a_number, exercise, function, missing, number


@exercise("2a", a_number)
def most_frequent(answer: float) -> str:
    slips = {
        6 / 9: "the other samples count below the line, too: divide by all fifteen",
        1 / 3: "this is one of three names; ask how many samples say it",
        6: "this is a number of samples; divide it by all samples",
    }
    return number(answer, 6 / 15, slips)


def _minus_entropy(shares: list[float]) -> float:
    return sum(q * math.log(q) for q in shares if q > 0)


def _slips(shares: list[float]) -> dict[float, str]:
    right = _minus_entropy(shares)
    return {
        -right: "this grows with disagreement; a confidence gets a minus",
        right / math.log(2): "this is in bits; take the natural logarithm",
        right / math.log(10): "this is log10; take the natural logarithm",
        math.exp(-right): "this is the effective number; return the sum alone",
    }


@exercise("2b", a_function())
def minus_entropy(answer: Callable[..., float]) -> str:
    inputs = [([0.6, 0.2, 0.2],), ([0.5, 0.5],), ([1.0],), ([0.7, 0.3, 0.0],)]
    return function(answer, _minus_entropy, inputs, _slips)


@exercise("2c", a_list("a pair (A, B) of lists"))
def two_panels(answer: list[list[str]]) -> str:
    """Ranked one way by PoC, the other way by the entropy of the shares."""
    is_list = [isinstance(panel, list | tuple) for panel in answer]
    if is_list != [True, True] or list(map(len, answer)) != [15, 15]:
        return "two lists of fifteen answers are needed"
    shares = []
    for panel in answer:
        if not all(isinstance(name, str) for name in panel):
            return "write each answer as a text in quotation marks"
        counts = Counter(panel).values()
        shares.append([n / 15 for n in counts])
    poc_a, poc_b = map(max, shares)
    a, b = map(_minus_entropy, shares)
    if poc_a <= poc_b:
        return f"PoC is {poc_a:.2f} for A and {poc_b:.2f} for B; A must have the higher one"
    if b <= a:
        return f"the entropy's confidence is {a:.2f} for A and {b:.2f} for B; B must be higher"
    return ""


@exercise("2d", a_number)
def copies(answer: float) -> str:
    """The share of vignettes whose five replies are one text."""
    slips = {
        0.75699: "these are the short forms; another model took them from the replies",
        0.73355: "these are the short forms; another model took them from the replies",
        0.0: "this is the share with more than one text",
    }
    return number(answer, 1.0, slips)


@exercise("2e", a_number)
def three_groups(answer: float) -> str:
    slips = {
        3.0: "this is the number of groups; EigV is 1 less it",
        2.0: "more groups must give less confidence: look at the signs",
        -14.0: "this counts each sample; a group of equal samples has one eigenvalue of 0",
        0.0: "these are the small eigenvalues; EigV counts them",
    }
    return number(answer, -2.0, slips)


def _deg_of_pairs(weights: np.ndarray) -> float:
    k = len(weights)
    return (weights.sum() - np.trace(weights)) / (k * (k - 1))


def _slips_of_pairs(weights: np.ndarray) -> dict[float, str]:
    k = len(weights)
    without = weights.sum() - np.trace(weights)
    return {
        weights.mean(): "this is Deg; leave out each sample with itself",
        without / k**2: "divide by the number of pairs that are left, K (K - 1)",
    }


@exercise("2f", a_function())
def deg_of_pairs(answer: Callable[..., float]) -> str:
    """Deg without the diagonal: nan for one sample."""
    tables = [
        [[1.0, 0.2], [0.2, 1.0]],
        [[1.0, 0.6, 0.1], [0.6, 1.0, 0.3], [0.1, 0.3, 1.0]],
        [[0.9, 0.5], [0.5, 0.7]],
    ]
    inputs = [(np.array(table),) for table in tables]
    wrong = function(answer, _deg_of_pairs, inputs, _slips_of_pairs)
    return wrong or missing(answer, (np.ones((1, 1)),), "for a single sample")
