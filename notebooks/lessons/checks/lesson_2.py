"""Checks of lesson 2: Samples."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
from lesson import exercise, function, number


@exercise("2a")
def most_frequent(answer: Any) -> str:
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


@exercise("2b", function=True)
def minus_entropy(answer: Any) -> str:
    inputs = [([0.6, 0.2, 0.2],), ([0.5, 0.5],), ([1.0],), ([0.7, 0.3, 0.0],)]
    return function(answer, _minus_entropy, inputs, _slips)


@exercise("2c")
def two_panels(answer: Any) -> str:
    """Ranked one way by PoC, the other way by the entropy of the shares."""
    if np.shape(answer) != (2, 15):
        return "two lists of fifteen answers are needed"
    shares = [[n / 15 for n in Counter(panel).values()] for panel in answer]
    (poc_a, poc_b), (a, b) = map(max, shares), map(_minus_entropy, shares)
    if poc_a <= poc_b:
        return f"PoC is {poc_a:.2f} for A and {poc_b:.2f} for B; A must have the higher one"
    if b <= a:
        return f"the entropy's confidence is {a:.2f} for A and {b:.2f} for B; B must be higher"
    return ""


@exercise("2d")
def copies(answer: Any) -> str:
    """The share of vignettes whose five replies are one text."""
    slips = {
        0.4626: "these are the short forms; another model took them from the replies",
        0.0: "this is the share with more than one text",
    }
    return number(answer, 1.0, slips)
