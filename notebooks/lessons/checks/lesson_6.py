"""Checks of lesson 6: Calibration."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from lesson import a_function, a_list, a_number, exercise, missing, number, rows

from trustlab.metrics import auroc, ece


@exercise("6a", a_number)
def two_bins(answer: float) -> str:
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


def _risk(right: np.ndarray, confidence: np.ndarray, threshold: float) -> float:
    return 1 - right[confidence >= threshold].mean()


def _slips(
    right: np.ndarray, confidence: np.ndarray, threshold: float
) -> dict[float, str]:
    passes = confidence >= threshold
    above = confidence > threshold
    n_wrong = (1 - right[passes]).sum()
    slips = {
        right[
            passes
        ].mean(): "this is the share of right ones; the risk is the share of wrong ones",
        n_wrong
        / len(right): "divide by the number of answers that are given, not by all",
    }
    if above.any():
        strict = 1 - right[above].mean()
        slips[strict] = "a confidence equal to the threshold is given, too"
    return slips


RIGHT = np.array([1.0, 0.0, 1.0, 1.0, 0.0])
CONFIDENCE = np.array([0.9, 0.7, 0.7, 0.4, 0.2])


@exercise("6b", a_function())
def risk(answer: Callable[..., float]) -> str:
    for threshold in (0.7, 0.3, 0.0, 0.9):
        arguments = RIGHT, CONFIDENCE, threshold
        wrong = number(answer(*arguments), _risk(*arguments), _slips(*arguments))
        if wrong:
            return f"for the threshold {threshold}: {wrong}"
    return missing(answer, (RIGHT, CONFIDENCE, 0.95), "if no answer is given")


@exercise("6c", rows("correct, confidence"))
def calibrated_and_useless(answer: np.ndarray) -> str:
    correct, confidence = answer
    if len(correct) < 10 or len(set(correct)) < 2:
        return "at least ten answers are needed, right ones and wrong ones"
    apart = auroc(correct, confidence)
    if apart > 0.5:
        return f"its AUROC is {apart:.2f}: it separates right from wrong"
    gap = ece(correct, confidence)
    if gap > 0.01:
        return f"its ECE is {gap:.2f}: it does not keep its word"
    return ""


@exercise("6d", a_list("a pair of numbers"))
def does_it_keep_its_word(answer: list[float]) -> str:
    """ECE of GPT-4.1's stated confidence and of its token probability."""
    if len(answer) != 2:
        return f"a pair of numbers is needed; the numbers here: {len(answer)}"
    swapped = "this is that of the other one: change their order"
    slips = {"stated": {0.060643: swapped}, "token": {0.181897: swapped}}
    right = {"stated": 0.181897, "token": 0.060643}
    for name, value in zip(right, answer, strict=True):
        wrong = number(a_number(value), right[name], slips[name])
        if wrong:
            return f"the {name} one is wrong: {wrong}"
    return ""
