"""Checks of lesson 3: what may be read, and what is missing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from lesson import a_function, a_number, a_value_or_none, exercise, number, rows

from trustlab.metrics import auroc


@exercise("3a", a_number)
def not_cut_off(answer: float) -> str:
    slips = {
        18 / 40: "this is the accuracy of all that were asked",
        18
        / 30: "this is the accuracy of those that were read; here the unread ones count, too",
        18 / 34: "the unread ones are taken out, and those cut off are left in",
        12
        / 36: "the unread ones are taken from the right ones; none of the 18 is among them",
        18.0: "this is the number of right ones; divide it",
    }
    return number(answer, 18 / 36, slips)


READ = {
    "[85]": 85,
    "[0]": 0,
    "I think it is [85%].": 85,
    "I'm 85% sure.": 85,
    "85": 85,
    "85%": 85,
    "99.9%": 99.9,
    "0": 0,
    "Confidence: 85": 85,
    "Confidence: 85%": 85,
}
"""Reply -> the confidence in it."""
REFUSED = (
    "I'm not 85% sure.", "From 0 to 100.", "134", "[134]", "Confidence: 134%", "85 or 95",
    "Confidence: 85 or 95", "-85", "The patient is 85% certain.", "85 of my patients had it.",
    "[85] or [95]", "Isn't done.", "", "Temperature: 38", "My age: 85", "No Confidence: 85",
    "I have no idea. Confidence: 85",
)  # fmt: skip
"""Replies without a confidence, or with a doubtful one."""


@exercise("3b", a_function(a_value_or_none))
def reader(answer: Callable[[str], float | None]) -> str:
    for reply, right in READ.items():
        value = answer(reply)
        if value != right:
            return f"of {reply!r} it returns {value!r}"
    for reply in REFUSED:
        value = answer(reply)
        if value is not None:
            return f"of {reply!r} it returns {value!r}; is that surely the model's confidence?"
    return ""


@exercise("3c", rows("correct, confidence", gaps=True))
def paid_for_silence(answer: np.ndarray) -> str:
    """No better than a coin where it is read, good with zeros for what is missing."""
    correct, confidence = answer
    there = ~np.isnan(confidence)
    if there.all():
        return "no confidence is missing; write None for some"
    if len(np.unique(correct[there])) < 2:
        return "among those that can be read there must be right and wrong answers"
    read = auroc(correct[there], confidence[there])
    if read > 0.5:
        return f"among those that can be read the AUROC is {read:.2f}; it must be 0.5 or less"
    zeros = auroc(correct, np.where(there, confidence, 0))
    if zeros < 0.8:
        return f"with zeros for the missing ones the AUROC is {zeros:.2f}; it must be 0.8 or more"
    return ""
