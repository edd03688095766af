"""Checks of lesson 9: Your model, your thirty patients."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from lesson import exercise, number
from scipy.stats import binomtest


@exercise("9a")
def with_unread(answer: Any) -> str:
    slips = {
        18 / 26: "this is the accuracy among those that were read; the others were asked, too",
        22 / 30: "an unread answer counts as right here",
        18: "this is a number of answers; divide it by all that were asked",
    }
    return number(answer, 18 / 30, slips)


@exercise("9b")
def paired(answer: Any) -> str:
    if not callable(answer):
        return f"a function is needed; this is {type(answer).__name__}"
    a = np.array([1, 1, 1, 1, 1, 1, 1, 1, 0, 0])
    b = np.array([1, 0, 0, 0, 0, 0, 0, 0, 1, 0])
    for one, other in ((a, b), (b, a), (a[:6], b[:6]), (a[:4], a[:4])):
        only, back = int(((one == 1) & (other == 0)).sum()), int(((one == 0) & (other == 1)).sum())
        right = binomtest(only, only + back).pvalue if only + back else 1.0
        found = answer(one, other)
        if found is None or found is ...:
            return "it returns nothing yet"
        if math.isnan(found) or (not only + back and found != 1):
            return f"where no patient tells the two apart it is {found}, not 1"
        half = {right / 2: "this looks at one side; double it"} if right < 1 else {}
        if wrong := number(float(found), float(right), half):
            return f"with {only} right only by A and {back} only by B: {wrong}"
    return ""


KEYS = ["model", "against", "patients", "n", "unread", "accuracy", "low", "high", "p", "better"]


@exercise("9c")
def sentence(answer: Any) -> str:
    if not isinstance(answer, dict):
        return f"a dictionary is needed; this is {type(answer).__name__}"
    if absent := [key for key in KEYS if answer.get(key) in (None, "", ...)]:
        return f"a reader asks for: {', '.join(absent)}"
    if "overconfident" in str(answer["model"]) or not str(answer["against"]).strip():
        return "A is the first model, B the one it is compared with"
    if wrong := number(answer["n"], 30):
        return f"n: {wrong}"
    if wrong := number(answer["unread"], 0):
        return f"unread: {wrong}; how many answers of A and B could not be read?"
    if wrong := number(answer["accuracy"], 20 / 30, {18 / 30: "this is B's"}):
        return f"accuracy: {wrong}"
    for end, right in {"low": 0.5, "high": 0.83}.items():
        if not isinstance(answer[end], int | float) or abs(answer[end] - right) > 0.06:
            return f"{end}: the interval of A's accuracy ends elsewhere (bootstrap over patients)"
    if wrong := number(answer["p"], 0.5):
        return f"p: {wrong}"
    if answer["better"] == "no":
        return "better: a large p does not show that there is no difference"
    if answer["better"] != "not known":
        return "better: with this p the thirty patients do not show it"
    return ""
