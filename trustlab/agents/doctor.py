"""A doctor who asks one question at a time and says whether enough is known; ``prompts/ask.txt``
and ``prompts/enough.txt``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trustlab.agents.medconf import reply_room
from trustlab.agents.patient import findings_asked, parts_of
from trustlab.knowledge import normalise
from trustlab.models.base import Model, Request
from trustlab.prompts import render
from trustlab.records import Case, Statement

MAX_TOKENS_QUESTION, MAX_TOKENS_ENOUGH = 96, 16


def requests_after(model: Model, told: str, seed: int = 0) -> tuple[Request, Request]:
    """What the doctor is asked after what has been told: for the next question, and whether enough
    is known. Both greedy."""
    room = reply_room(model, MAX_TOKENS_QUESTION)
    return (
        Request(render("ask", patient=told), max_tokens=room, seed=seed, purpose="ask"),
        Request(
            render("enough", patient=told),
            max_tokens=MAX_TOKENS_ENOUGH,
            seed=seed,
            purpose="enough",
        ),
    )


def another(request: Request, tries: int) -> Request:
    """The request for a question once more, drawn at temperature 1; ``tries`` is how many questions
    there have been."""
    return replace(request, temperature=1.0, first=tries - 1)


def repeats(question: str, told: Sequence[Statement], case: Case) -> bool:
    """Whether ``question`` has been asked in ``told``: the same words without case and punctuation,
    or the same finding.

    A finding's question is the knowledge table's, or the one that ``case`` itself has for it. What
    it cannot see: the same thing asked in other words that neither has.
    """
    asked = [parts_of(s)[0] for s in told]
    if normalise(question) in {normalise(q) for q in asked if q}:
        return True
    # a finding that was told without its question, as in an opening, counts as asked for too
    known = {s.finding for s in told if s.finding} | {
        f for q in asked for f in findings_asked(q, case)
    }
    return bool(findings_asked(question, case) & known)
