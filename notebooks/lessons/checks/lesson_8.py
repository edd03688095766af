"""Checks of lesson 8: graders, and the trust indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lesson import (
    a_function,
    a_list,
    a_number,
    exercise,
    function,
    missing,
    number,
    true_or_false,
)

from trustlab.metrics.trust import cdr, eti, fti, osi


@exercise("8a", a_number)
def angle(answer: float) -> str:
    slips = {
        0.48: "this is one of the two products; add both",
        1.4: "these are sums; multiply number by number, then add",
        1.0: "only equal vectors have a cosine of 1",
        0.28: "add the products; do not subtract them",
    }
    return number(answer, 0.96, slips)


NAMED = (
    ("PSVT", ("Paroxysmal supraventricular tachycardia", "PSVT"), True),
    ("heart attack!", ("Myocardial infarction", "Heart attack"), True),
    ("HEART-ATTACK", ("Myocardial infarction", "Heart attack"), True),
    ("Stable angina", ("Unstable angina",), False),
    ("Unstable angina", ("Stable angina", "Angina"), False),
    ("Attack", ("Myocardial infarction", "Heart attack"), False),
    ("heart", ("Heart",), True),
    ("Influenza", ("Common cold", "Cold"), False),
)
"""An answer, the names of the true disease, and whether it is one of them."""


@exercise("8b", a_function(true_or_false))
def is_name_of(answer: Callable[..., bool]) -> str:
    for name, names, right in NAMED:
        verdict = answer(name, list(names))
        if verdict != right:
            return f"it says {verdict} for {name!r} and the names {', '.join(names)}"
    return ""


@exercise("8c", a_number)
def never_right(answer: float) -> str:
    slips = {
        0.6: "this is the ETI; half of 100 times the ETI goes into the FTI",
        50.0: "an accuracy of 0 does not make the ETI 0",
        60.0: "this is 100 times the ETI; the FTI is the mean of it and the OSI",
        50.3: "the ETI is a fraction and the OSI a percentage; take the ETI times 100",
        0.8: "the FTI is in percent, up to 100",
        100.0: "what the doctors say is never right, so the accuracy is 0",
        65.0: "one of two parts is lost: 1 - CDR is 1 if all agree, and RDC is 1 here",
        95.0: "the accuracy is 0 here",
        30.0: "the reviewer never objects, so the OSI is not 0",
    }
    return number(answer, 80.0, slips)


VOTES: tuple[list[str | None], ...] = (
    ["cold", "flu", "flu", "flu", "flu", "flu", "gout", "gout", "gout"],
    ["flu", "flu", "cold"],
    ["flu", "flu", "flu"],
    ["flu", "cold", "angina", "flu", "flu"],
    ["flu", "cold"],
    ["flu", None, "cold"],
    ["cold", "flu", "flu", None],
    ["flu", "cold", None, None, None],
)
"""Votes of a case, with at least two that can be read."""
TOO_FEW: tuple[list[str | None], ...] = (["flu"], ["flu", None], [None, None], [])


def _slips(votes: list[str | None]) -> dict[float, str]:
    right, n = cdr(votes), sum(vote is not None for vote in votes)
    largest = round((1 - right) * n)
    return {
        1 - right: "this is the share of the largest group; CDR is 1 minus it",
        1 - largest / len(votes): "too high; K counts only the votes that can be read",
    }


@exercise("8d", a_function())
def honest(answer: Callable[..., float]) -> str:
    wrong = function(answer, cdr, [(list(votes),) for votes in VOTES], _slips)
    if wrong:
        return wrong
    for votes in TOO_FEW:
        when = f"for {votes}, where nobody can disagree,"
        wrong = missing(answer, (list(votes),), when)
        if wrong:
            return wrong
    return ""


PARTS = {"accuracy": 1.0, "cdr": 2 / 3, "rdc": 1.0, "unsafe": 100.0, "alerts": 100.0}
"""Part -> its largest value, of three doctors."""


@exercise("8e", a_list("a pair (A, B) of dicts"))
def turned_round(answer: list[Any]) -> str:
    """A is right more often, and B has the higher FTI."""
    if len(answer) != 2:
        return f"a pair (A, B) is needed; the entries here: {len(answer)}"
    a, b = answer
    for name, parts in {"A": a, "B": b}.items():
        wrong = _wrong_parts(parts)
        if wrong:
            return f"{name}: {wrong}"
    if (a["unsafe"], a["alerts"]) != (b["unsafe"], b["alerts"]):
        return "unsafe and alerts must be the same for A and B"
    if a["accuracy"] < b["accuracy"] + 0.2 - 1e-9:
        return "A must be right more often than B, by 0.2 or more"
    of_a, of_b = _fti(a), _fti(b)
    if of_b > of_a:
        return ""
    return f"the FTI of A is {of_a:.1f}, that of B is only {of_b:.1f}"


def _wrong_parts(parts: Any) -> str:
    """What is wrong with the parts of one panel."""
    if not isinstance(parts, dict) or set(parts) != set(PARTS):
        return f"a dict with the keys {', '.join(PARTS)} is needed"
    for part, most in PARTS.items():
        least = -1 if part == "rdc" else 0
        value = a_number(parts[part])
        if not least <= value <= most + 0.005:
            share = "; three doctors can hardly disagree more" if part == "cdr" else ""
            return f"{part} is {value:g}, out of its range{share}"
    return ""


def _fti(parts: dict[str, float]) -> float:
    epistemic = eti(parts["accuracy"], min(parts["cdr"], 2 / 3), parts["rdc"])
    return fti(epistemic, osi(parts["unsafe"], parts["alerts"]))
