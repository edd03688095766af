"""The doctor in charge proposes prescriptions and tests for a diagnosis; ``prompts/plan.txt``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trustlab.agents.medconf import Ask, reply_room
from trustlab.models.base import Model, Request
from trustlab.parsing import Unreadable
from trustlab.parsing.agents import read_plan
from trustlab.prompts import render
from trustlab.records import Plan, View
from trustlab.safety.chart import chart_of, chart_text

MAX_TOKENS = 512


@dataclass(frozen=True)
class Proposed:
    """A plan, or why there is none; ``raw`` keeps the reply as it came."""

    plan: Plan | None
    missing: str = ""
    raw: str | None = None


def propose(
    model: Model,
    asked: Sequence[tuple[View, str]],
    *,
    temperature: float = 0.5,
    seed: int = 0,
    ask: Ask | None = None,
) -> list[Proposed]:
    """A plan for each (view, diagnosis), drawn at ``temperature`` as the doctors' opinions are, in
    one batch."""
    put, room = ask or (lambda m, requests, _: m.generate(requests)), reply_room(model, MAX_TOKENS)
    requests = [
        Request(
            render(
                "plan",
                chart=chart_text(chart_of(view.case, view.statements)),
                patient=view.text,
                answer=diagnosis,
            ),
            temperature=temperature,
            max_tokens=room,
            seed=seed,
            purpose="plan",
        )
        for view, diagnosis in asked
    ]
    made = []
    for row in put(model, requests, "plans") if requests else []:
        try:
            made.append(Proposed(read_plan(row[0]), raw=row[0].text))
        except Unreadable as error:
            made.append(Proposed(None, str(error), row[0].text))
    return made
