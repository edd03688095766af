"""Checks of lesson 9: Your model, your thirty patients."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
from lesson import exercise, number
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


@exercise("9b")
def paired(answer: Any) -> str:
    if not callable(answer):
        return f"a function is needed; this is {type(answer).__name__}"
    a = np.array([1, 1, 1, 1, 1, 1, 1, 1, 0, 0])
    b = np.array([1, 0, 0, 0, 0, 0, 0, 0, 1, 0])
    for one, other in ((a, b), (b, a), (a[:6], b[:6]), (a[:4], a[:4])):
        only, back = int(((one == 1) & (other == 0)).sum()), int(((one == 0) & (other == 1)).sum())
        right = binomtest(only, only + back).pvalue if only + back else 1.0
        try:
            found = answer(one, other)
        except (ValueError, ZeroDivisionError) as error:
            if "ambiguous" in str(error):
                return "paired_p takes two counts: count the patients for whom only one is right"
            if only + back:
                raise
            return f"where no patient tells the two apart it ends in an error ({error}), not in 1"
        if found is None or found is ...:
            return "it returns nothing yet"
        if math.isnan(found) or (not only + back and found != 1):
            return f"where no patient tells the two apart it is {found}, not 1"
        slips = {right / 2: "this looks at one side; double it"} if right < 1 else {}
        totals = binomtest(int(one.sum()), int(one.sum() + other.sum())).pvalue
        slips |= {totals: "count patients for whom only one is right, not all that are right"}
        slips.pop(right, None)
        if wrong := number(float(found), float(right), slips):
            return f"with {only} right only by A and {back} only by B: {wrong}"
    return ""


def letters(model: Any) -> set[str]:
    """The models that a text names, by letter or by name."""
    words = set(re.findall(r"[a-z][a-z0-9-]*", str(model).casefold()))
    named = {w.upper() for w in words & set("abc")}
    named |= {"A"} if "embedded" in words else set()
    named |= {"B"} if "embedded-overconfident" in words else set()
    return named | ({"C"} if any(w.startswith("smollm") for w in words) else set())


MADE = "(?<!not )(generated|starter|synthetic|simulated|artificial|virtual|vignette|made[ -]up)"
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
    if letters(answer["model"]) != {"A"} or letters(answer["against"]) != {"B"}:
        return "the question is about model A against model B"
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
