"""Asks for the plan of the doctor in charge, and has reviewers check it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

from trustlab.agents.asking import put, read_by, reply_room, request
from trustlab.agents.panel import MAX_TOKENS, chart_shown
from trustlab.models.base import About, Model, Request
from trustlab.parsing.agents import read_flags, read_plan, read_ratings
from trustlab.parsing.reply import Unreadable
from trustlab.prompts import numbered
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
    diagnosed: Sequence[tuple[View, str]],
    *,
    temperature: float = 0.5,
    seed: int = 0,
    max_tokens: int = MAX_TOKENS,
    reading: Reading = "chat",
) -> list[Proposed]:
    """A plan for each (view, diagnosis), drawn as the doctors' opinions are, in one batch."""
    room = reply_room(model, max_tokens)
    requests = []
    for view, diagnosis in diagnosed:
        plan_request = request(
            "plan",
            model,
            room,
            seed,
            read_by(About.of(view, diagnosis=diagnosis), read_plan, reading),
            chart=chart_shown(view),
            patient=view.text,
            answer=diagnosis,
            asks=view.case.question,
        )
        requests.append(replace(plan_request, temperature=temperature))
    proposals = []
    for reply in put(model, requests):
        try:
            proposal = Proposed(read_plan(reply, reading), raw=reply.text)
        except Unreadable as error:
            proposal = Proposed(None, str(error), reply.text)
        proposals.append(proposal)
    return proposals


# what is reviewed: a patient, the diagnosis, and the plan for it
Planned = tuple[View, str, Plan]
Marks = tuple[Mark, ...]
ReadMarks = Callable[..., Marks]


@dataclass(frozen=True)
class Review:
    """A mark for each prescription and each test of a plan, in its order; ``replies`` by prompt."""

    prescriptions: Marks
    tests: Marks
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
        """The cells with which each row of a table about it begins."""
        return {
            "model": self.model,
            "dataset": self.view.case.dataset,
            "level": self.view.level,
            "case_id": self.view.case.case_id,
        }


def review(
    model: Model,
    planned: Sequence[Planned],
    *,
    seed: int = 0,
    max_tokens: int = MAX_TOKENS_REVIEW,
    reading: Reading = "chat",
) -> list[Review]:
    """The review of each plan, greedy, in two batches: prescriptions and tests, where any are."""
    room = reply_room(model, max_tokens)

    def marked(name: str, listed: list[list[str]], read: ReadMarks) -> list[_Marked]:
        """The marks of each plan's ``listed`` items, which prompt ``name`` asks for."""
        requests: dict[int, Request] = {}
        readers: dict[int, ReadMarks] = {}
        for place, items in enumerate(listed):
            if not items:
                continue
            view, diagnosis, _ = planned[place]
            chart = chart_shown(view)
            shown = "\n".join([chart, view.text, diagnosis, *items])
            readers[place] = partial(read, n=len(items), shown=shown)
            readable = partial(_readable, readers[place])
            requests[place] = request(
                name,
                model,
                room,
                seed,
                read_by(About.of(view, diagnosis=diagnosis), readable, reading),
                ids=range(1, len(items) + 1),
                chart=chart,
                patient=view.text,
                answer=diagnosis,
                plan=numbered(items),
                asks=view.case.question,
            )
        results = [_Marked((), {})] * len(planned)
        replies = put(model, list(requests.values()))
        for place, reply in zip(requests, replies, strict=True):
            marks = readers[place](reply, reading=reading)
            results[place] = _Marked(marks, {name: reply})
        return results

    drugs = [
        [str(prescription) for prescription in plan.prescriptions]
        for *_, plan in planned
    ]
    tests = [list(plan.tests) for *_, plan in planned]
    drug_marks = marked("review_prescriptions", drugs, read_ratings)
    test_marks = marked("review_tests", tests, read_flags)
    reviews = []
    for of_drugs, of_tests in zip(drug_marks, test_marks, strict=True):
        replies = {**of_drugs.replies, **of_tests.replies}
        reviews.append(Review(of_drugs.marks, of_tests.marks, replies))
    return reviews


class _Marked(NamedTuple):
    """A plan's marks of one kind, and the reply that they are read from, by its prompt."""

    marks: Marks
    replies: dict[str, Reply]


def _readable(read: ReadMarks, reply: Reply, reading: Reading) -> Marks:
    """The marks of a reply; :class:`Unreadable` where there is not one verdict."""
    marks = read(reply, reading=reading)
    if not any(mark.verdict for mark in marks):
        raise Unreadable(marks[0].missing)
    return marks
