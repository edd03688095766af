"""Checks of lesson 9: Your model, your thirty patients."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from lesson import (
    NotYet,
    Wrong,
    a_function,
    a_number,
    described,
    exercise,
    function,
    number,
)
from scipy.stats import binomtest


@exercise("9a", a_number)
def with_unread(answer: float) -> str:
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


@exercise("9b", a_function())
def paired(answer: Callable[..., float]) -> str:
    return function(answer, _p, [(a.copy(), b.copy()) for a, b in PAIRS], _slips)


GENERATED = (
    "generated|starter|synthetic|simulated|artificial|virtual|vignette|made[ -]up"
)
REAL = r"\b(real|not|no|non|hospital|clinic|actual)\b"
NOT_REAL = (
    r"\b(not|no|non)[ -](from )?(a |an |any )?(real|hospital|clinic|actual)( ones)?\b"
)
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
TWICE = "each patient counts once, whatever the number of models"
RIGHT = {
    "n": (30, {60: TWICE, 90: TWICE}),
    "unread": (0, {}),
    "accuracy": (
        20 / 30,
        {
            18 / 30: "this is B's",
            20: "this is a number of patients; divide it by all",
            2 / 30: "this is the difference; give A's accuracy",
        },
    ),
    "p": (0.5, {0.25: "this looks at one side; double it"}),
}
"""Key of a number -> its value, and known wrong ones with what led to them."""


def _a_sentence(answer: Any) -> dict[str, Any]:
    if answer is ... or answer is None:
        raise NotYet("not answered yet")
    if not isinstance(answer, dict) or not answer:
        raise Wrong(f"a dict is needed; {described(answer)}")
    if all(value in (..., None) for value in answer.values()):
        raise NotYet("not answered yet")
    absent = [key for key in KEYS if answer.get(key) in (None, "", ...)]
    if absent:
        raise Wrong(f"a reader asks for: {', '.join(absent)}")
    unknown = [str(key) for key in answer if key not in KEYS]
    if unknown:
        raise Wrong(
            f"there is no key {', '.join(unknown)}; the keys are {', '.join(KEYS)}"
        )
    return answer


@exercise("9c", _a_sentence)
def sentence(answer: dict[str, Any]) -> str:
    for check in (_wrong_words, _wrong_numbers, _wrong_interval, _wrong_conclusion):
        wrong = check(answer)
        if wrong:
            return wrong
    return ""


def _wrong_words(answer: Mapping[str, Any]) -> str:
    """What is wrong with the names of the models and the words for the patients."""
    first, second = (
        str(answer[key]).removeprefix("model ").removeprefix("Model ")
        for key in ("model", "against")
    )
    if first not in NAMES_OF_A or second not in NAMES_OF_B:
        return "the question is about model A against model B: name them A and B"
    patients = re.sub(NOT_REAL, "", str(answer["patients"]).casefold())
    if not re.search(GENERATED, patients) or re.search(REAL, patients):
        return "patients: a reader would take them for a hospital's; say that they are generated"
    return ""


def _wrong_numbers(answer: Mapping[str, Any]) -> str:
    for key, (right, slips) in RIGHT.items():
        wrong = number(_number(answer, key), right, slips)
        if wrong:
            return f"{key}: {wrong}"
    return ""


ENDS = {"low": (0.465, 0.515), "high": (0.795, 0.845)}
"""Where a 95 % interval of 20 of 30 may end: bootstrap, Agresti and Coull, Wilson, exact."""


def _wrong_interval(answer: Mapping[str, Any]) -> str:
    """What is wrong with the ends of the accuracy's interval."""
    for end, (least, most) in ENDS.items():
        value = _number(answer, end)
        if value > 1:
            return f"{end}: this is a percentage; give a number between 0 and 1"
        if not least <= value <= most:
            return f"{end}: the 95 % interval of A's accuracy ends elsewhere"
    return ""


def _number(answer: Mapping[str, Any], key: str) -> float:
    try:
        return a_number(answer[key])
    except Wrong as wrong:
        raise Wrong(f"{key}: {wrong}") from None


def _wrong_conclusion(answer: Mapping[str, Any]) -> str:
    """What is wrong with what is concluded from the p-value."""
    better = str(answer["better"]).casefold().strip(" .")
    if better == "no":
        return "better: a large p does not show that there is no difference"
    if better not in ("not known", "unknown"):
        return "better: with this p the thirty patients do not show it"
    return ""
