"""Checks of lesson 8: graders, and the trust indices."""

from __future__ import annotations

from typing import Any

from lesson import exercise, function, missing, number

from trustlab.metrics.trust import cdr, eti, fti, osi


@exercise("8a")
def never_right(answer: Any) -> str:
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
    ["cold", "flu", "flu", "flu", "flu", "gout", "gout"],
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


@exercise("8b", function=True)
def honest(answer: Any) -> str:
    if wrong := function(answer, cdr, [(list(votes),) for votes in VOTES], _slips):
        return wrong
    for votes in TOO_FEW:
        if wrong := missing(
            answer, (list(votes),), f"for {votes}, where nobody can disagree,"
        ):
            return wrong
    return ""


PARTS = {"accuracy": 1.0, "cdr": 2 / 3, "rdc": 1.0, "unsafe": 100.0, "alerts": 100.0}
"""Part -> its largest value, of three doctors."""


@exercise("8c")
def turned_round(answer: Any) -> str:
    """A is right more often, and B has the higher FTI."""
    if isinstance(answer, dict) or len(answer) != 2:
        return "a pair (A, B) is needed"
    a, b = answer
    for name, parts in {"A": a, "B": b}.items():
        if not isinstance(parts, dict) or set(parts) != set(PARTS):
            return f"{name} must be a dict with the keys {', '.join(PARTS)}"
        for part, most in PARTS.items():
            if not (-1 if part == "rdc" else 0) <= parts[part] <= most + 0.005:
                share = (
                    "; three doctors can hardly disagree more" if part == "cdr" else ""
                )
                return f"{part} of {name} is {parts[part]}, out of its range{share}"
    if (a["unsafe"], a["alerts"]) != (b["unsafe"], b["alerts"]):
        return "unsafe and alerts must be the same for A and B"
    if a["accuracy"] < b["accuracy"] + 0.2 - 1e-9:
        return "A must be right more often than B, by 0.2 or more"
    does = osi(a["unsafe"], a["alerts"])
    of_a = fti(eti(a["accuracy"], min(a["cdr"], 2 / 3), a["rdc"]), does)
    of_b = fti(eti(b["accuracy"], min(b["cdr"], 2 / 3), b["rdc"]), does)
    return (
        ""
        if of_b > of_a
        else f"the FTI of A is {of_a:.1f}, that of B is only {of_b:.1f}"
    )
