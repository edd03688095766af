"""Checks of lesson 5: AUROC."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from lesson import a_function, a_number, exercise, number, rows

from trustlab.metrics import auroc


@exercise("5a", a_number)
def four_pairs(answer: float) -> str:
    slips = {
        1.0: "a tie is no win; it counts a half",
        0.75: "a tie counts a half, not nothing",
        0.125: "this is the chance that the wrong answer has the higher confidence",
        3.5: "this is the sum over the pairs; divide it by the number of pairs",
    }
    return number(answer, 3.5 / 4, slips)


def _by_level(
    level: np.ndarray, correct: np.ndarray, confidence: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """AUROC, pairs and answers of each level that has pairs."""
    areas = []
    pairs = []
    answers = []
    for name in np.unique(level):
        here = level == name
        n_right = correct[here].sum()
        n_wrong = here.sum() - n_right
        if n_right and n_wrong:
            area = auroc(correct[here], confidence[here])
            areas.append(area)
            pairs.append(n_right * n_wrong)
            answers.append(n_right + n_wrong)
    return np.array(areas), np.array(pairs), np.array(answers)


def _stratified(
    level: np.ndarray, correct: np.ndarray, confidence: np.ndarray
) -> float:
    areas, pairs, _ = _by_level(level, correct, confidence)
    return float(np.average(areas, weights=pairs))


def _slips(
    level: np.ndarray, correct: np.ndarray, confidence: np.ndarray
) -> dict[float, str]:
    areas, pairs, answers = _by_level(level, correct, confidence)
    slips = {
        auroc(correct, confidence): "this is the pooled AUROC",
        areas.sum(): "this is the sum over the levels; a mean is asked for",
        areas.mean(): "each level counts the same; levels count by their pairs",
        np.average(
            areas, weights=answers
        ): "levels count by their answers, not by their pairs",
        np.average(
            areas, weights=answers**2
        ): "a pair is one right and one wrong answer",
    }
    return slips


LEVELS = {
    "a third level that has right answers only": (
        [1, 1, 1, 2, 2, 2, 2, 3, 3],
        [0, 0, 1, 0, 0, 1, 1, 1, 1],
        [0.1, 0.4, 0.3, 0.6, 0.5, 0.5, 0.8, 0.9, 0.1],
    ),
    "a large level and a small one with a tie": (
        [20, 20, 20, 20, 20, 20, 1, 1],
        [0, 0, 0, 1, 1, 1, 0, 1],
        [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.9, 0.9],
    ),
    "levels in any order, with few right answers": (
        [80, 5, 80, 80, 5, 80, 5, 80, 80, 5],
        [0, 1, 0, 1, 0, 0, 1, 0, 0, 0],
        [0.2, 0.9, 0.9, 0.8, 0.4, 0.3, 0.7, 0.85, 0.1, 0.8],
    ),
}
"""What is special -> level, correct and confidence of its answers."""


@exercise("5b", a_function())
def by_level(answer: Callable[..., float]) -> str:
    for what, columns in LEVELS.items():
        arrays = [np.array(column) for column in columns]
        wrong = number(answer(*arrays), _stratified(*arrays), _slips(*arrays))
        if wrong:
            return f"for {what}: {wrong}"
    return ""


@exercise("5c", rows("level, correct, confidence"))
def paradox(answer: np.ndarray) -> str:
    """Worse than chance at every level, better pooled."""
    level, correct, confidence = answer
    levels = np.unique(level)
    if len(levels) < 2:
        return "at least two levels are needed"
    for name in levels:
        here = level == name
        if len(np.unique(correct[here])) < 2:
            return f"level {name:g} needs right and wrong answers"
        inside = auroc(correct[here], confidence[here])
        if inside >= 0.5:
            return f"at level {name:g} the AUROC is {inside:.2f}; it must be below 0.5"
    pooled = auroc(correct, confidence)
    if pooled <= 0.5:
        return f"the levels are as they should be; pooled it is {pooled:.2f}, not above 0.5"
    return ""


@exercise("5d", a_number)
def stated_or_tokens(answer: float) -> str:
    """How much better GPT-4.1's stated confidence ranks than its token probability."""
    slips = {
        -0.058309: "this is the token probability less the stated confidence",
        0.699653: "this is the AUROC of the stated confidence; subtract the other",
        0.641344: "this is the AUROC of the token probability; subtract it from the other",
    }
    return number(answer, 0.058309, slips)
