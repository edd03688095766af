"""Checks of lesson 6: Calibration."""

from __future__ import annotations

from typing import Any

import numpy as np
from lesson import columns, exercise, missing, number

from trustlab.metrics import auroc, ece


@exercise("6a")
def two_bins(answer: Any) -> str:
    slips = {
        0.025: "the gaps of two bins must not cancel: take each without its sign",
        -0.025: "the gaps of two bins must not cancel: take each without its sign",
        1.1: "this is the sum over all answers; divide it by their number",
        0.55: "this is the sum of the gaps; each bin has half of the answers",
        0.475: "this is the mean gap of single answers; take the means of each bin first",
        0.525: "this is the mean confidence",
        0.5: "this is the share of right answers",
    }
    return number(answer, 0.275, slips)


@exercise("6b", function=True)
def risk(answer: Any) -> str:
    right = np.array([1.0, 0.0, 1.0, 1.0, 0.0])
    confidence = np.array([0.9, 0.7, 0.7, 0.4, 0.2])
    slips = {
        0.7: {
            2
            / 3: "this is the share of right ones; the risk is the share of wrong ones",
            1 / 5: "divide by the number of answers that are given, not by all",
            0.0: "a confidence equal to the threshold is given, too",
        },
    }
    for threshold, value in {0.0: 2 / 5, 0.3: 1 / 4, 0.7: 1 / 3, 0.9: 0.0}.items():
        if wrong := number(
            answer(right, confidence, threshold), value, slips.get(threshold)
        ):
            return f"for the threshold {threshold}: {wrong}"
    return missing(answer, (right, confidence, 0.95), "if no answer is given")


@exercise("6c")
def calibrated_and_useless(answer: Any) -> str:
    correct, confidence = columns(answer, "correct, confidence")
    if len(correct) < 10 or len(set(correct)) < 2:
        return "at least ten answers are needed, right ones and wrong ones"
    if (apart := auroc(correct, confidence)) > 0.5:
        return f"its AUROC is {apart:.2f}: it separates right from wrong"
    if (gap := ece(correct, confidence)) > 0.01:
        return f"its ECE is {gap:.2f}: it does not keep its word"
    return ""


@exercise("6d")
def does_it_keep_its_word(answer: Any) -> str:
    """ECE of GPT-4.1's stated confidence and of its token probability."""
    if len(pair := list(answer)) != 2:
        return f"a pair of numbers is needed; these are {len(pair)}"
    for name, value, right in zip(
        ("stated", "token"), pair, (0.1819, 0.0606), strict=True
    ):
        if wrong := number(value, right):
            return f"the {name} one is wrong: {wrong}"
    return ""
