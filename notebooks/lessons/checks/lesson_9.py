"""Checks of lesson 9: Your model, your thirty patients."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from lesson import exercise, function, number
from scipy.stats import binomtest


@exercise("9a")
def with_unread(answer: Any) -> str:
    slips = {
        18
        / 26: "this is the accuracy among those that were read; the others were asked, too",
        22 / 30: "an unread answer counts as right here",
        26 / 30: "this is the share that could be read, not the share of right ones",
        18: "this is a number of answers; divide it by all that were asked",
    }
    return number(answer, 18 / 30, slips)


def _p(a: np.ndarray, b: np.ndarray) -> float:
    only_a = int((a > b).sum())
    only_b = int((b > a).sum())
    n = only_a + only_b
    return float(binomtest(only_a, n).pvalue) if n else 1.0


def _slips(a: np.ndarray, b: np.ndarray) -> dict[float, str]:
    n_right = int(a.sum() + b.sum())
    of_totals = float(binomtest(int(a.sum()), n_right).pvalue)
    return {
        _p(a, b) / 2: "this looks at one side; double it",
        of_totals: "count patients for whom only one is right, not all that are right",
    }


A = np.repeat([1, 0], [8, 2])
B = np.repeat([1, 0, 1, 0], [1, 7, 1, 1])
PAIRS = [(A, B), (B, A), (A[:6], B[:6]), (A[:4], A[:4])]
"""Whether two models are right, patient by patient."""


@exercise("9b", function=True)
def paired(answer: Any) -> str:
    return function(answer, _p, [(a.copy(), b.copy()) for a, b in PAIRS], _slips)


MADE = "(?<!not )(generated|starter|synthetic|simulated|artificial|virtual|vignette|made[ -]up)"
NAMES_OF_A, NAMES_OF_B = ("A", "embedded"), ("B", "embedded-overconfident")
KEYS = [
    "model",
    "against",
    "patients",
    "n",
    "unread",
    "accuracy",
    "low",
    "high",
    "p",
    "better",
]
SLIPS = {
    18 / 30: "this is B's",
    20: "this is a number of patients; divide it by all",
    2 / 30: "this is the difference; give A's accuracy",
}


@exercise("9c")
def sentence(answer: Any) -> str:
    if not isinstance(answer, dict):
        return f"a dictionary is needed; this is {type(answer).__name__}"
    absent = [key for key in KEYS if answer.get(key) in (None, "", ...)]
    if absent:
        return f"a reader asks for: {', '.join(absent)}"
    for check in (_wrong_words, _wrong_numbers, _wrong_interval, _wrong_conclusion):
        wrong = check(answer)
        if wrong:
            return wrong
    return ""


def _wrong_words(answer: Mapping[str, Any]) -> str:
    """What is wrong with the names of the models and the words for the patients."""
    if answer["model"] not in NAMES_OF_A or answer["against"] not in NAMES_OF_B:
        return "the question is about model A against model B: name them A and B"
    if not re.search(MADE, str(answer["patients"]).casefold()):
        return "patients: a reader would take them for a hospital's; say that they are generated"
    return ""


def _wrong_numbers(answer: Mapping[str, Any]) -> str:
    """What is wrong with the numbers of patients and unread answers, and the accuracy."""
    more = "each patient counts once, whatever the number of models"
    wrong = number(answer["n"], 30, {60: more, 90: more})
    if wrong:
        return f"n: {wrong}"
    wrong = number(answer["unread"], 0)
    if wrong:
        return f"unread: {wrong}; how many answers of A and B could not be read?"
    wrong = number(answer["accuracy"], 20 / 30, SLIPS)
    return f"accuracy: {wrong}" if wrong else ""


def _wrong_interval(answer: Mapping[str, Any]) -> str:
    """What is wrong with the ends of the accuracy's interval."""
    for end, right in {"low": 0.5, "high": 0.83}.items():
        value = answer[end]
        is_number = isinstance(value, int | float)
        if is_number and value > 1:
            return f"{end}: this is a percentage; give a number between 0 and 1"
        if not is_number or abs(value - right) > 0.06:
            return f"{end}: the interval of A's accuracy ends elsewhere (bootstrap over patients)"
    return ""


def _wrong_conclusion(answer: Mapping[str, Any]) -> str:
    """What is wrong with the p-value and what is concluded from it."""
    wrong = number(answer["p"], 0.5, {0.25: "this looks at one side; double it"})
    if wrong:
        return f"p: {wrong}"
    better = str(answer["better"]).casefold().strip(" .")
    if better == "no":
        return "better: a large p does not show that there is no difference"
    if better not in ("not known", "unknown"):
        return "better: with this p the thirty patients do not show it"
    return ""
