"""Checks of lesson 1: Tokens."""

from __future__ import annotations

import math
from collections.abc import Callable

from lesson import a_function, a_number, exercise, function, number


@exercise("1a", a_number)
def longer_name(answer: float) -> str:
    return number(answer, 5.3 / 6, {0.3: "this is the product of all; ASP is the mean"})


def _perplexity(p: list[float]) -> float:
    return math.exp(-sum(map(math.log, p)) / len(p))


def _slips(p: list[float]) -> dict[float, str]:
    right = _perplexity(p)
    return {
        -right: "this is the confidence already; the exercise asks for the perplexity, at least 1",
        1 / right: "this is the geometric mean; perplexity is one divided by it",
    }


@exercise("1b", a_function())
def perplexity(answer: Callable[..., float]) -> str:
    inputs = [([0.5, 0.5],), ([0.3, 1.0, 1.0],), ([0.9],)]
    return function(answer, _perplexity, inputs, _slips)


SPELLINGS = (
    [0.3],
    [0.3, 1.0, 1.0, 1.0, 1.0],
    [0.3] + [1.0] * 20,
    [1.0, 0.3],
    [1.0] * 5 + [0.3, 1.0],
)
"""A token that decides, with sure ones behind and in front of it."""


@exercise("1c", a_function())
def deciding_token(answer: Callable[..., float]) -> str:
    """A confidence that sure tokens neither raise nor lower, wherever they stand."""
    unsure, surer, sure = answer([0.3, 1.0]), answer([0.9, 1.0]), answer([1.0, 1.0])
    if any(map(math.isnan, (unsure, surer, sure))):
        return "it is nan for [0.3, 1.0], [0.9, 1.0] or [1.0, 1.0]"
    if surer <= unsure or sure <= surer:
        return "a surer token does not get the higher confidence"
    for tokens in SPELLINGS:
        value = answer(tokens)
        if not math.isclose(value, unsure, rel_tol=1e-6):
            return f"spelling still counts: {unsure:.3g} for [0.3, 1.0], {value:.3g} for {tokens}"
    return ""
