"""Checks of lesson 5: AUROC."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from lesson import columns, exercise, number

from trustlab.metrics import auroc


@exercise("5a")
def four_pairs(answer: Any) -> str:
    slips = {
        1.0: "a tie is no win; it counts a half",
        0.75: "a tie counts a half, not nothing",
        0.125: "this is the chance that the wrong answer has the higher confidence",
        3.5: "this is the sum over the pairs; divide it by the number of pairs",
    }
    return number(answer, 3.5 / 4, slips)


@exercise("5b", function=True)
def by_level(answer: Any) -> str:
    level = np.array([1, 1, 1, 1, 2, 2, 2, 2])
    correct = np.array([0, 0, 0, 1, 0, 1, 1, 1])
    confidence = np.array([0.1, 0.2, 0.4, 0.3, 0.6, 0.5, 0.7, 0.8])
    right, pooled = 2 / 3, auroc(correct, confidence)
    slips = {
        pooled: "this is the pooled AUROC",
        2 * right: "this is the sum; the mean over all pairs is asked for",
    }
    if wrong := number(answer(level, correct, confidence), right, slips):
        return f"for two levels: {wrong}"
    third = np.array([3, 3]), np.array([1, 1]), np.array([0.9, 0.1])
    more = [
        np.append(a, b)
        for a, b in zip((level, correct, confidence), third, strict=True)
    ]
    slips = {
        (4 / 3 + 0.5) / 3: "it counts as 0.5; leave it out",
        (4 / 3) / 3: "it counts as 0; leave it out",
        (4 / 3 + 1) / 3: "it counts as 1; leave it out",
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a mean of nothing is nan
        area = answer(*more)
    if wrong := number(area, right, slips):
        return f"for a third level that has right answers only: {wrong}"
    level, correct = np.array([20] * 6 + [1] * 2), np.array([0, 0, 0, 1, 1, 1, 0, 1])
    confidence = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.9, 0.9])
    slips = {
        0.75: "each level counts the same; levels count by their pairs",
        (6 * 1 + 2 * 0.5)
        / 8: "levels count by their answers; they count by their pairs",
    }
    wrong = number(answer(level, correct, confidence), (9 * 1 + 0.5) / 10, slips)
    return f"for a large level and a small one with a tie: {wrong}" if wrong else ""


@exercise("5c")
def paradox(answer: Any) -> str:
    """Worse than chance at every level, better pooled."""
    level, correct, confidence = columns(answer, "level, correct, confidence")
    if len(levels := np.unique(level)) < 2:
        return "at least two levels are needed"
    for here in levels:
        part = correct[level == here], confidence[level == here]
        if len(np.unique(part[0])) < 2:
            return f"level {here} needs right and wrong answers"
        if (inside := auroc(*part)) >= 0.5:
            return f"at level {here} the AUROC is {inside:.2f}; it must be below 0.5"
    if (pooled := auroc(correct, confidence)) <= 0.5:
        return f"the levels are as they should be; pooled it is {pooled:.2f}, not above 0.5"
    return ""


@exercise("5d")
def stated_or_tokens(answer: Any) -> str:
    """How much better GPT-4.1's stated confidence ranks than its token probability."""
    slips = {
        -0.0583: "this is the token probability less the stated confidence",
        0.6997: "this is the AUROC of the stated confidence; subtract the other",
        0.6413: "this is the AUROC of the token probability; subtract it from the other",
    }
    return number(answer, 0.0583, slips)
