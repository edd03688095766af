"""Checks of lesson 3: what may be read, and what is missing."""

from __future__ import annotations

from typing import Any

import numpy as np
from lesson import exercise, number

from trustlab.metrics import auroc


@exercise("3a")
def not_cut_off(answer: Any) -> str:
    slips = {
        18 / 40: "this is the accuracy of all that were asked",
        18 / 30: "this is the accuracy of those that were read; here the unread ones count, too",
        18 / 34: "the unread ones are taken out, and those cut off are left in",
        12 / 36: "the unread ones are taken from the right ones; none of the 18 is among them",
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


@exercise("3b")
def reader(answer: Any) -> str:
    if not callable(answer):
        return f"a function is needed; this is {type(answer).__name__}"
    if all(answer(reply) in (None, ...) for reply in READ):
        return "it reads nothing yet"
    for reply, right in READ.items():
        found = answer(reply)
        if found is None or found is ...:
            return f"it does not read {reply!r}"
        if isinstance(found, bool | str) or not np.isscalar(found):
            return f"of {reply!r} it returns {found!r}; a number is needed"
        if not np.isclose(found, right):
            return f"of {reply!r} it returns {found!r}"
    for reply in REFUSED:
        if (found := answer(reply)) is not None:
            return f"of {reply!r} it returns {found!r}; is that surely the model's confidence?"
    return ""


@exercise("3c")
def paid_for_silence(answer: Any) -> str:
    """No better than a coin where it is read, good with zeros for what is missing."""
    rows = [tuple(row) for row in answer]
    if not rows or any(len(row) != 2 for row in rows):
        return "a list of (correct, confidence) is needed, with two entries each"
    correct = np.array([row[0] for row in rows], dtype=float)
    confidence = np.array([np.nan if c is None else c for _, c in rows], dtype=float)
    if not np.isin(correct, (0, 1)).all():
        return "the first entry of each answer is 1 (right) or 0 (wrong)"
    there = ~np.isnan(confidence)
    if there.all():
        return "no confidence is missing; write None for some"
    if ((confidence[there] < 0) | (confidence[there] > 1)).any():
        return "a confidence lies between 0 and 1"
    if len(np.unique(correct[there])) < 2:
        return "among those that can be read there must be right and wrong answers"
    if (read := auroc(correct[there], confidence[there])) > 0.5:
        return f"among those that can be read the AUROC is {read:.2f}; it must be 0.5 or less"
    if (zeros := auroc(correct, np.where(there, confidence, 0))) < 0.8:
        return f"with zeros for the missing ones the AUROC is {zeros:.2f}; it must be 0.8 or more"
    return ""
