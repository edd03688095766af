"""Checks of lesson 6: Calibration."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from lesson import exercise, number

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


@exercise("6b")
def risk(answer: Any) -> str:
    if not callable(answer):
        return f"a function is needed; this is {type(answer).__name__}"
    right = np.array([1.0, 0.0, 1.0, 1.0, 0.0])
    confidence = np.array([0.9, 0.7, 0.7, 0.4, 0.2])
    slips = {
        0.7: {
            2 / 3: "this is the share of right ones; the risk is the share of wrong ones",
            1 / 5: "divide by the number of answers that are given, not by all",
            0.0: "a confidence equal to the threshold is given, too",
        },
    }
    for threshold, value in {0.0: 2 / 5, 0.3: 1 / 4, 0.7: 1 / 3, 0.9: 0.0}.items():
        found = answer(right, confidence, threshold)
        if found is None or found is ...:
            return "it returns nothing yet"
        if wrong := number(found, value, slips.get(threshold)):
            return f"for the threshold {threshold}: {wrong}"
    try:
        found = answer(right, confidence, 0.95)
    except ZeroDivisionError:
        return "if no answer is given it divides by zero; there is no risk then"
    if found is None or not math.isnan(found):
        return f"if no answer is given it says {found}; there is no risk then"
    return ""


@exercise("6c")
def calibrated_and_useless(answer: Any) -> str:
    rows = [tuple(row) for row in answer]
    if len(rows) < 10 or any(len(row) != 2 for row in rows):
        return "at least ten pairs of (correct, confidence) are needed"
    correct, confidence = (np.array(column, float) for column in zip(*rows, strict=True))
    if set(confidence) == {0.0, 1.0} != set(correct):
        return "the pairs are the other way round: (correct, confidence)"
    if set(correct) != {0.0, 1.0}:
        return "there must be right answers (1) and wrong ones (0), and nothing else"
    if confidence.min() < 0 or confidence.max() > 1:
        return "a confidence is a number from 0 to 1"
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
    for name, value, right in zip(("stated", "token"), pair, (0.1819, 0.0606), strict=True):
        if wrong := number(value, right):
            return f"the {name} one is wrong: {wrong}"
    return ""
