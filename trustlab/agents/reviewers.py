"""A reviewer of prescriptions and one of tests: each item of a plan marked, with the words and the
rule that speak against it.

``prompts/review_prescriptions.txt`` and ``prompts/review_tests.txt``. What a reviewer says is held
beside the rule check (:mod:`trustlab.safety.rule_check`), which knows the safety table and nothing
else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trustlab.agents.medconf import Ask, reply_room
from trustlab.models.base import Model, Request
from trustlab.parsing.agents import read_flags, read_ratings
from trustlab.prompts import render
from trustlab.records import Mark, Plan, View
from trustlab.safety.chart import chart_of, chart_text

MAX_TOKENS = 768
Asked = tuple[View, str, Plan]
"""What is reviewed: a patient, the diagnosis, and the plan for it."""


@dataclass(frozen=True)
class Review:
    """A mark for each prescription and each test of a plan, in its order."""

    prescriptions: tuple[Mark, ...]
    tests: tuple[Mark, ...]


def review(
    model: Model, asked: Sequence[Asked], *, seed: int = 0, ask: Ask | None = None
) -> list[Review]:
    """The review of each plan, greedy; one batch for prescriptions and one for tests. An empty list
    is not asked about."""
    put, room = ask or (lambda m, requests, _: m.generate(requests)), reply_room(model, MAX_TOKENS)

    def marked(name: str, items: Sequence[Sequence[str]], read) -> list[tuple[Mark, ...]]:
        at = [i for i, listed in enumerate(items) if listed]
        messages = [_messages(name, asked[i], items[i]) for i in at]
        requests = [Request(m, max_tokens=room, seed=seed, purpose=name) for m in messages]
        replies = put(model, requests, name.replace("_", " of ")) if requests else []
        found: list[tuple[Mark, ...]] = [()] * len(asked)
        for i, row in zip(at, replies, strict=True):
            found[i] = read(row[0], len(items[i]), shown_text(asked[i], items[i]))
        return found

    drugs = marked(
        "review_prescriptions",
        [[str(p) for p in plan.prescriptions] for _, _, plan in asked],
        read_ratings,
    )
    tests = marked("review_tests", [list(plan.tests) for _, _, plan in asked], read_flags)
    return [Review(a, b) for a, b in zip(drugs, tests, strict=True)]


def plan_text(items: Sequence[str]) -> str:
    """Prescriptions or tests as a prompt shows them: numbered, one a line."""
    return "\n".join(f"{i}. {' '.join(item.split())}" for i, item in enumerate(items, 1))


def shown_text(asked: Asked, items: Sequence[str]) -> str:
    """All that a reviewer may quote: chart, patient, diagnosis and the items that it is shown."""
    view, diagnosis, _ = asked
    return "\n".join(
        [chart_text(chart_of(view.case, view.statements)), view.text, diagnosis, *items]
    )


def _messages(name: str, asked: Asked, items: Sequence[str]):
    view, diagnosis, _ = asked
    return render(
        name,
        chart=chart_text(chart_of(view.case, view.statements)),
        patient=view.text,
        answer=diagnosis,
        plan=plan_text(items),
    )
