"""Checks of lesson 4: Evidence."""

from __future__ import annotations

from collections.abc import Callable

from lesson import a_function, a_number, exercise, number, true_or_false

import trustlab as tl


@exercise("4a", a_number)
def evidence_by_hand(answer: float) -> str:
    slips = {
        2 / 3: "the missing criterion is left out; its weight counts below the line",
        5 / 8: "the contradicted criterion is counted as missing",
        1
        / 4: "all four weigh the same here, or the missing one is counted as contradicted",
        6 / 8: "the contradicted criterion is counted as supported",
        4: "this is above the line; divide it by the sum of all weights",
    }
    return number(answer, 4 / 8, slips)


def _criteria(*rows: tuple[str, str, bool | None]) -> tuple[tl.Evidence, ...]:
    """Evidence of importance, support and whether the quotation occurs."""
    each = enumerate(rows, 1)
    named = [
        (tl.Criterion(i, f"sign {i}", how), level, real)
        for i, (how, level, real) in each
    ]
    quotes = [None if real is None else "as quoted" for _, _, real in named]
    return tuple(
        tl.Evidence(c, v, q, r) for (c, v, r), q in zip(named, quotes, strict=True)
    )


@exercise("4b", a_function())
def careful(answer: Callable[..., float]) -> str:
    missing = ("moderate", "missing", None)
    invented = _criteria(
        ("strong", "supported", True), missing, ("weak", "supported", False)
    )
    against = _criteria(
        ("strong", "supported", True), missing, ("weak", "contradicted", False)
    )
    whole = _criteria(
        ("strong", "supported", True), missing, ("weak", "contradicted", True)
    )
    below = _criteria(
        ("strong", "contradicted", True), missing, ("weak", "supported", True)
    )
    tables = [
        (invented, "an invented support", 3 / 6),
        (against, "an invented denial", 3 / 6),
        (whole, "no invented quotation", 2 / 6),
        (below, "more against than for", 0.0),
    ]
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
    for evidence, what, right in tables:
        wrong = number(answer(evidence), right, slips.get(what))
        if wrong:
            return f"for a table with {what}: {wrong}"
    return ""


@exercise("4c", a_function(true_or_false))
def speaks_of(answer: Callable[[str, str], bool]) -> str:
    """A relation of a criterion and a quotation: a shared word will do, in any form."""
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
        verdict = answer(criterion, quote)
        if verdict != right:
            return f"it says {verdict} for {criterion!r} and {quote!r}"
    return ""
