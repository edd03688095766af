"""Checks of lesson 9: Your model, your thirty patients."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from lesson import exercise, function, number
from scipy.stats import binomtest


@exercise("9a")
def with_unread(answer: Any) -> str:
    slips = {
        18 / 26: "this is the accuracy among those that were read; the others were asked, too",
        22 / 30: "an unread answer counts as right here",
        26 / 30: "this is the share that could be read, not the share of right ones",
        18: "this is a number of answers; divide it by all that were asked",
    }
    return number(answer, 18 / 30, slips)


def _p(a: np.ndarray, b: np.ndarray) -> float:
    only, back = int((a > b).sum()), int((b > a).sum())
    return float(binomtest(only, only + back).pvalue) if only + back else 1.0


def _slips(a: np.ndarray, b: np.ndarray) -> dict[float, str]:
    totals = float(binomtest(int(a.sum()), int(a.sum() + b.sum())).pvalue)
    return {
        _p(a, b) / 2: "this looks at one side; double it",
        totals: "count patients for whom only one is right, not all that are right",
    }


@exercise("9b", function=True)
def paired(answer: Any) -> str:
    a = np.array([1, 1, 1, 1, 1, 1, 1, 1, 0, 0])
    b = np.array([1, 0, 0, 0, 0, 0, 0, 0, 1, 0])
    return function(answer, _p, [(a, b), (b, a), (a[:6], b[:6]), (a[:4], a[:4])], _slips)


MADE = "(?<!not )(generated|starter|synthetic|simulated|artificial|virtual|vignette|made[ -]up)"
NAMES_OF_A, NAMES_OF_B = ("A", "embedded"), ("B", "embedded-overconfident")
KEYS = ["model", "against", "patients", "n", "unread", "accuracy", "low", "high", "p", "better"]
SLIPS = {
    18 / 30: "this is B's",
    20: "this is a number of patients; divide it by all",
    2 / 30: "this is the difference; give A's accuracy",
}


@exercise("9c")
def sentence(answer: Any) -> str:
    if not isinstance(answer, dict):
        return f"a dictionary is needed; this is {type(answer).__name__}"
    if absent := [key for key in KEYS if answer.get(key) in (None, "", ...)]:
        return f"a reader asks for: {', '.join(absent)}"
    if answer["model"] not in NAMES_OF_A or answer["against"] not in NAMES_OF_B:
        return "the question is about model A against model B: name them A and B"
    if not re.search(MADE, str(answer["patients"]).casefold()):
        return "patients: a reader would take them for a hospital's; say that they are generated"
    more = "each patient counts once, whatever the number of models"
    if wrong := number(answer["n"], 30, {60: more, 90: more}):
        return f"n: {wrong}"
    if wrong := number(answer["unread"], 0):
        return f"unread: {wrong}; how many answers of A and B could not be read?"
    if wrong := number(answer["accuracy"], 20 / 30, SLIPS):
        return f"accuracy: {wrong}"
    for end, right in {"low": 0.5, "high": 0.83}.items():
        if isinstance(answer[end], int | float) and answer[end] > 1:
            return f"{end}: this is a percentage; give a number between 0 and 1"
        if not isinstance(answer[end], int | float) or abs(answer[end] - right) > 0.06:
            return f"{end}: the interval of A's accuracy ends elsewhere (bootstrap over patients)"
    if wrong := number(answer["p"], 0.5, {0.25: "this looks at one side; double it"}):
        return f"p: {wrong}"
    better = str(answer["better"]).casefold().strip(" .")
    if better == "no":
        return "better: a large p does not show that there is no difference"
    if better not in ("not known", "unknown"):
        return "better: with this p the thirty patients do not show it"
    return ""
