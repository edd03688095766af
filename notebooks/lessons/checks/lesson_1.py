"""Checks of lesson 1: Tokens."""

from __future__ import annotations

import math
from typing import Any

from lesson import exercise, function, number


@exercise("1a")
def longer_name(answer: Any) -> str:
    return number(answer, 5.3 / 6, {0.3: "this is the product of all; ASP is the mean"})


def _perplexity(p: list[float]) -> float:
    return math.exp(-sum(map(math.log, p)) / len(p))


def _slips(p: list[float]) -> dict[float, str]:
    right = _perplexity(p)
    return {
        -right: "this is the confidence already; the exercise asks for the perplexity, at least 1",
        1 / right: "this is the geometric mean; perplexity is one divided by it",
    }


@exercise("1b", function=True)
def perplexity(answer: Any) -> str:
    return function(
        answer, _perplexity, [([0.5, 0.5],), ([0.3, 1.0, 1.0],), ([0.9],)], _slips
    )


@exercise("1c", function=True)
def deciding_token(answer: Any) -> str:
    """A confidence that spelling cannot raise: it gives a long and a short name the same."""
    if answer([0.9, 1.0]) <= answer([0.3, 1.0]):
        return "a surer first token does not get the higher confidence"
    short, long = answer([0.3, 1.0]), answer([0.3, *[1.0] * 6])
    if not math.isclose(short, long, rel_tol=1e-6):
        return (
            f"spelling still counts: 1 sure token gives {short:.3g}, 6 give {long:.3g}"
        )
    return ""
