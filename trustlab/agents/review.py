"""Asks for the plan of the doctor in charge, and has reviewers check it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from trustlab.agents.asking import put, reply_room, request
from trustlab.agents.panel import MAX_TOKENS, chart_shown
from trustlab.models.base import About, Model
from trustlab.parsing.agents import read_flags, read_plan, read_ratings
from trustlab.parsing.counts import both
from trustlab.parsing.reply import Unreadable
from trustlab.records import Mark, Panel, Plan, Reading, Reply, View

MAX_TOKENS_REVIEW = 768


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
    max_tokens: int = MAX_TOKENS,
    reading: Reading = "chat",
) -> list[Proposed]:
    """A plan for each (view, diagnosis), drawn as the doctors' opinions are, in one batch."""
    room, requests = reply_room(model, max_tokens), []
    for view, diagnosis in asked:
        about = About.of(view, diagnosis=diagnosis, **both(read_plan, reading))
        fill: dict[str, Any] = {"chart": chart_shown(view), "patient": view.text}
        fill |= {"answer": diagnosis, "asks": view.case.question}
        one = request("plan", model, room, seed, about, **fill)
        requests.append(replace(one, temperature=temperature))
    made = []
    for reply in put(model, requests):
        try:
            made.append(Proposed(read_plan(reply, reading), raw=reply.text))
        except Unreadable as error:
            made.append(Proposed(None, str(error), reply.text))
    return made


Planned = tuple[View, str, Plan]  # what is reviewed: a patient, the diagnosis, and the plan for it


@dataclass(frozen=True)
class Review:
    """A mark for each prescription and each test of a plan, in its order; ``replies`` by prompt."""

    prescriptions: tuple[Mark, ...]
    tests: tuple[Mark, ...]
    replies: Mapping[str, Reply] = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class Checked:
    """A panel for one view, the plan of the doctor in charge, the reviewers' marks and the rules';
    ``correct`` (0, 1, NaN) is of the panel's diagnosis, ``correct_share`` of all that tied."""

    model: str
    configuration: str
    n_doctors: int
    view: View
    panel: Panel
    medical_cosines: tuple[float, ...] | None
    proposed: Proposed
    review: Review | None
    rules: Review | None
    correct: float = math.nan
    correct_share: float = math.nan
    proxy: str = ""

    @property
    def keys(self) -> dict[str, Any]:
        """What every row of it begins with."""
        case, level = self.view.case, self.view.level
        about = {"model": self.model, "dataset": case.dataset}
        return {**about, "level": level, "case_id": case.case_id}


def review(
    model: Model,
    asked: Sequence[Planned],
    *,
    seed: int = 0,
    max_tokens: int = MAX_TOKENS_REVIEW,
    reading: Reading = "chat",
) -> list[Review]:
    """The review of each plan, greedy, in two batches: prescriptions and tests, where any are."""
    room, came = reply_room(model, max_tokens), [dict[str, Reply]() for _ in asked]

    def marked(name: str, items: Sequence[list[str]], read: Callable[..., Any]) -> list[Any]:
        reads = {
            i: partial(read, n=len(listed), shown=shown_text(asked[i], listed))
            for i, listed in enumerate(items)
            if listed
        }
        requests = []
        for i, of in reads.items():
            view, diagnosis, _ = asked[i]
            about = About.of(view, diagnosis=diagnosis, **both(partial(_readable, of), reading))
            fill: dict[str, Any] = {"chart": chart_shown(view), "patient": view.text}
            fill |= {"answer": diagnosis, "plan": plan_text(items[i]), "asks": view.case.question}
            ids = range(1, len(items[i]) + 1)
            requests.append(request(name, model, room, seed, about, ids=ids, **fill))
        found: list[tuple[Mark, ...]] = [()] * len(asked)
        replies = put(model, requests)
        for (i, of), reply in zip(reads.items(), replies, strict=True):
            found[i], came[i][name] = of(reply, reading=reading), reply
        return found

    prescribed = [[str(p) for p in plan.prescriptions] for _, _, plan in asked]
    drugs = marked("review_prescriptions", prescribed, read_ratings)
    tests = marked("review_tests", [list(plan.tests) for _, _, plan in asked], read_flags)
    return [Review(*each) for each in zip(drugs, tests, came, strict=True)]


def _readable(marks: Callable[..., Any], reply: Reply, reading: Reading) -> tuple[Mark, ...]:
    """The marks of a reply; :class:`Unreadable` where there is not one verdict."""
    found = marks(reply, reading=reading)
    if not any(mark.verdict for mark in found):
        raise Unreadable(found[0].missing)
    return found


def plan_text(items: Sequence[str]) -> str:
    """Prescriptions or tests as a prompt shows them: numbered, one a line."""
    return "\n".join(f"{i}. {' '.join(item.split())}" for i, item in enumerate(items, 1))


def shown_text(asked: Planned, items: Sequence[str]) -> str:
    """All that a reviewer may quote: chart, patient, diagnosis and the items that it is shown."""
    view, diagnosis, _ = asked
    return "\n".join([chart_shown(view), view.text, diagnosis, *items])
