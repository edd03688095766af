"""Checks of the exercises: each says what is wrong and gives no answer away."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from lesson import exercise, function, number

import trustlab as tl
from trustlab.metrics import auroc


@exercise("1a")
def longer_name(answer: Any) -> str:
    return number(answer, 5.3 / 6, {0.3: "this is the product of all; ASP is the mean"})


@exercise("1b")
def perplexity(answer: Any) -> str:
    inputs = [([0.5, 0.5],), ([0.3, 1.0, 1.0],), ([0.9],)]

    def right(p: list[float]) -> float:
        return math.exp(-sum(map(math.log, p)) / len(p))

    if callable(answer) and math.isclose(answer([0.5, 0.5]), -2):
        return "this is the confidence already; the exercise asks for the perplexity, at least 1"
    if callable(answer) and math.isclose(answer([0.5, 0.5]), 0.5):
        return "this is the geometric mean; perplexity is one divided by it"
    return function(answer, right, inputs)


@exercise("1c")
def deciding_token(answer: Any) -> str:
    """A confidence that spelling cannot raise: it gives a long and a short name the same."""
    if not callable(answer):
        return f"a function of a list of probabilities is needed; this is {type(answer).__name__}"
    if answer([0.9, 1.0]) <= answer([0.3, 1.0]):
        return "a surer first token does not get the higher confidence"
    short, long = answer([0.3, 1.0]), answer([0.3, *[1.0] * 6])
    if not math.isclose(short, long, rel_tol=1e-6):
        return f"spelling still counts: 1 sure token gives {short:.3g}, 6 give {long:.3g}"
    return ""


@exercise("4a")
def evidence_by_hand(answer: Any) -> str:
    slips = {
        2 / 3: "the missing criterion is left out; its weight counts below the line",
        5 / 8: "the contradicted criterion is counted as missing",
        1 / 4: "all four weigh the same here, or the missing one is counted as contradicted",
        6 / 8: "the contradicted criterion is counted as supported",
        4: "this is above the line; divide it by the sum of all weights",
    }
    return number(answer, 4 / 8, slips)


def _criteria(*rows: tuple[str, str, bool | None]) -> tuple[tl.Evidence, ...]:
    """Evidence of importance, support and whether the quotation occurs."""
    each = enumerate(rows, 1)
    named = [(tl.Criterion(i, f"sign {i}", how), level, real) for i, (how, level, real) in each]
    quotes = [None if real is None else "as quoted" for _, _, real in named]
    return tuple(tl.Evidence(c, v, q, r) for (c, v, r), q in zip(named, quotes, strict=True))


@exercise("4b")
def careful(answer: Any) -> str:
    if not callable(answer):
        return f"a function is needed; this is {type(answer).__name__}"
    missing = ("moderate", "missing", None)
    invented = _criteria(("strong", "supported", True), missing, ("weak", "supported", False))
    against = _criteria(("strong", "supported", True), missing, ("weak", "contradicted", False))
    whole = _criteria(("strong", "supported", True), missing, ("weak", "contradicted", True))
    below = _criteria(("strong", "contradicted", True), missing, ("weak", "supported", True))
    said = [(invented, "an invented support", 3 / 6), (against, "an invented denial", 3 / 6)]
    said += [(whole, "no invented quotation", 2 / 6), (below, "more against than for", 0.0)]
    slips = {
        "an invented support": {
            4 / 6: "the invented support still counts",
            3 / 5: "the criterion is left out; its weight still counts below the line",
            2 / 6: "it counts as contradicted; it is missing",
            1.0: "the weight of missing criteria still counts below the line",
            0.0: "the real quotation does not count; does the function read e.quote_occurs?",
        },
        "an invented denial": {
            2 / 6: "the invented denial still counts",
            3 / 5: "the criterion is left out; its weight still counts below the line",
            4 / 6: "it counts as supported; it is missing",
        },
        "more against than for": {-2 / 6: "the score never falls below 0"},
    }
    for evidence, what, right in said:
        found = answer(evidence)
        if found is None or found is ...:
            return "it returns nothing yet"
        if wrong := number(found, right, slips.get(what)):
            return f"for a table with {what}: {wrong}"
    return ""


@exercise("4c")
def speaks_of(answer: Any) -> str:
    """A relation of a criterion and a quotation: a shared word will do, in any form."""
    if not callable(answer):
        return f"a function is needed; this is {type(answer).__name__}"
    pairs = [
        ("fever", "I've had a fever since yesterday.", True),
        ("repeated vomiting or retching", "No, I haven't vomited repeatedly.", True),
        ("chills or shivering", "No, I haven't vomited repeatedly.", False),
        ("Cough", "No, I don't have a COUGH!", True),
        ("cigarette smoking", "Yes, I have smoked since I was twenty.", True),
        ("abdominal bloating", "I am bloated.", True),
        ("hoarse or altered voice", "Yes, I have had it for a week or two.", False),
        ("pain in the loin", "The fever began in the night.", False),
        ("cough", "Yes, it is bad enough.", False),
    ]
    for criterion, quote, right in pairs:
        found = answer(criterion, quote)
        if found is None or found is ...:
            return "it returns nothing yet"
        if bool(found) != right:
            return f"it says {bool(found)} for {criterion!r} and {quote!r}"
    return ""


@exercise("5a")
def four_pairs(answer: Any) -> str:
    slips = {
        1.0: "a tie is no win; it counts a half",
        0.75: "a tie counts a half, not nothing",
        0.125: "this is the chance that the wrong answer has the higher confidence",
        3.5: "this is the sum over the pairs; divide it by the number of pairs",
    }
    return number(answer, 3.5 / 4, slips)


@exercise("5b")
def by_level(answer: Any) -> str:
    if not callable(answer):
        return f"a function is needed; this is {type(answer).__name__}"
    level = np.array([1, 1, 1, 1, 2, 2, 2, 2])
    correct = np.array([0, 0, 0, 1, 0, 1, 1, 1])
    confidence = np.array([0.1, 0.2, 0.4, 0.3, 0.6, 0.5, 0.7, 0.8])
    right, pooled = 2 / 3, auroc(correct, confidence)
    slips = {
        pooled: "this is the pooled AUROC",
        2 * right: "this is the sum; the mean is asked for",
    }
    wrong = _stratified(answer, (level, correct, confidence), right, slips)
    if wrong:
        return f"for two levels: {wrong}"
    third = np.array([3, 3]), np.array([1, 1]), np.array([0.9, 0.1])
    more = [np.append(a, b) for a, b in zip((level, correct, confidence), third, strict=True)]
    slips = {
        (4 / 3 + 0.5) / 3: "it counts as 0.5; leave it out",
        (4 / 3) / 3: "it counts as 0; leave it out",
        (4 / 3 + 1) / 3: "it counts as 1; leave it out",
    }
    wrong = _stratified(answer, more, right, slips)
    if wrong:
        return f"for a third level that has right answers only: {wrong}"
    uneven = np.array([20] * 6 + [1] * 2), np.array([0, 0, 0, 1, 1, 1, 0, 1])
    uneven = *uneven, np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.9, 0.9])
    slips = {(9 * 1 + 0.5) / 10: "levels count by their pairs; each level counts the same"}
    slips |= {(6 * 1 + 2 * 0.5) / 8: "levels count by their answers; each level counts the same"}
    wrong = _stratified(answer, uneven, 0.75, slips)
    return f"for a large level and a small one with a tie: {wrong}" if wrong else ""


def _stratified(answer: Any, arrays: Any, right: float, slips: dict[float, str]) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a mean of nothing says so below
        found = answer(*arrays)
    if found is None or found is ...:
        return "it returns nothing yet"
    if np.isscalar(found) and np.isnan(found):
        alone = any(len(set(arrays[1][arrays[0] == one])) < 2 for one in arrays[0])
        told = "a level with one kind of answers alone has no AUROC; leave it out"
        return f"it is nan: {told if alone else 'is the order level, correct, confidence?'}"
    return number(found, right, slips)


@exercise("5c")
def paradox(answer: Any) -> str:
    """Worse than chance at every level, better pooled."""
    rows = answer.to_numpy() if hasattr(answer, "to_numpy") else answer
    rows = [tuple(row) for row in rows]
    if not rows or any(len(row) != 3 for row in rows):
        return "a list of (level, correct, confidence) is needed, with three entries each"
    level, correct, confidence = (np.array(column) for column in zip(*rows, strict=True))
    correct, confidence = correct.astype(float), confidence.astype(float)
    if not np.isin(correct, (0, 1)).all():
        return "the second entry of each answer is 1 (right) or 0 (wrong)"
    if len(levels := np.unique(level)) < 2:
        return "at least two levels are needed"
    for one in levels:
        part = correct[level == one], confidence[level == one]
        if len(np.unique(part[0])) < 2:
            return f"level {one} needs right and wrong answers"
        if (inside := auroc(*part)) >= 0.5:
            return f"at level {one} the AUROC is {inside:.2f}; it must be below 0.5"
    if (pooled := auroc(correct, confidence)) <= 0.5:
        return f"the levels are as they should be; pooled it is {pooled:.2f}, not above 0.5"
    return ""
