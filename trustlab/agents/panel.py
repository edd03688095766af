"""Doctors who judge a patient independently, the plan of the one in charge, reviewers who check it.
Each doctor has a random stream of its own; synonyms count as one diagnosis. Prompts: ``doctor``,
``plan``, ``review_prescriptions``, ``review_tests``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from trustlab import records
from trustlab.agents.asking import Ask, put, reply_room, request
from trustlab.agents.chart import chart_of, chart_text
from trustlab.knowledge import load_knowledge
from trustlab.metrics.trust import majority
from trustlab.models.base import About, Model, Request
from trustlab.parsing.agents import read_flags, read_opinion, read_plan, read_ratings
from trustlab.parsing.counts import both
from trustlab.parsing.reply import Unreadable
from trustlab.prompts import Prompts, prompts_of
from trustlab.records import Mark, Opinion, Panel, Plan, Reading, ReasoningFrom, Reply, View

MAX_TOKENS, MAX_TOKENS_REVIEW = 512, 768


@dataclass(frozen=True)
class Doctor:
    """One member of a panel: a model, and the number of its random stream."""

    model: Model
    number: int = 0


def doctors_of(models: Sequence[Model], n: int) -> tuple[Doctor, ...]:
    """``n`` doctors, of the models in turn. ``ValueError`` for fewer than one, or no model."""
    if n < 1 or not models:
        raise ValueError(f"{n} doctors of {len(models)} models; at least one of each is needed")
    return tuple(Doctor(models[i % len(models)], i // len(models)) for i in range(n))


def doctor_request(
    view: View,
    prompts: Prompts,
    temperature: float,
    seed: int,
    n: int = 1,
    max_tokens: int = MAX_TOKENS,
    reading: Reading = "chat",
) -> Request:
    """What ``n`` doctors of one model are asked, each from a random stream of its own."""
    about, chart = About.of(view, **both(_diagnosed, reading)), _chart(view)
    one = request("doctor", prompts, max_tokens, seed, about, chart=chart, patient=view.text)
    return replace(one, n=n, temperature=temperature)


def _chart(view: View) -> str:
    return chart_text(chart_of(view.case, view.statements))


def _diagnosed(reply: Reply, reading: Reading) -> str:
    _, diagnosis, missing = read_opinion(reply, reading)
    if diagnosis is None:
        raise Unreadable(missing)
    return diagnosis


def convene(
    views: Sequence[View],
    doctors: Sequence[Doctor],
    *,
    temperature: float = 0.5,
    seed: int = 0,
    max_tokens: int = MAX_TOKENS,
    reading: Reading = "chat",
    reasoning_from: ReasoningFrom = "section",
    ask: Ask | None = None,
) -> list[Panel]:
    """The panel's opinions and its majority for each view; doctors of a model share one request a
    view. ``ValueError`` where a doctor is listed twice."""
    if len({(id(d.model), d.number) for d in doctors}) < len(doctors):
        raise ValueError("a doctor is listed twice; doctors of one model need different numbers")
    given: dict[tuple[int, int], list[Reply]] = {}
    for model in {id(d.model): d.model for d in doctors}.values():
        numbers = [d.number for d in doctors if d.model is model]
        first, n = min(numbers), max(numbers) - min(numbers) + 1
        how = (prompts_of(model), temperature, seed, n, reply_room(model, max_tokens), reading)
        requests = [replace(doctor_request(v, *how), first=first) for v in views]
        rows = model.generate(requests) if ask is None else ask(model, requests, "doctors")
        given |= {(id(model), k): [row[k - first] for row in rows] for k in numbers}
    seats = [[(d, given[id(d.model), d.number][i]) for d in doctors] for i in range(len(views))]
    return [
        decide([_opinion(d, reply, reading, reasoning_from) for d, reply in seat], v.case.case_id)
        for seat, v in zip(seats, views, strict=True)
    ]


def _opinion(
    doctor: Doctor, reply: Reply, reading: Reading, reasoning_from: ReasoningFrom
) -> Opinion:
    thinking, named, missing = read_opinion(reply, reading, reasoning_from)
    return Opinion(doctor.model.name, doctor.number, thinking, named, missing, reply.text)


def decide(opinions: Sequence[Opinion], case_id: str) -> Panel:
    """The panel that these opinions make; ties are drawn by a hash of the case."""
    votes = tuple(vote(o.diagnosis) for o in opinions)
    winner, tied = majority(votes, case_id)
    return Panel(tuple(opinions), votes, winner, tied)


def vote(diagnosis: str | None) -> str | None:
    """The name under which a diagnosis is counted: the knowledge table's, else its own words."""
    if diagnosis is None:
        return None
    known = load_knowledge().condition_named(diagnosis)
    return known.name if known else records.normalise(diagnosis) or None


def in_charge(panel: Panel) -> int | None:
    """The place of the doctor in charge, the first who voted for the panel's diagnosis, if any."""
    return panel.votes.index(panel.diagnosis) if panel.diagnosis is not None else None


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
    ask: Ask | None = None,
) -> list[Proposed]:
    """A plan for each (view, diagnosis), drawn as the doctors' opinions are, in one batch."""
    room, requests = reply_room(model, max_tokens), []
    for view, diagnosis in asked:
        about = About.of(view, diagnosis=diagnosis, **both(read_plan, reading))
        fill: dict[str, Any] = {"chart": _chart(view), "patient": view.text}
        one = request("plan", model, room, seed, about, answer=diagnosis, **fill)
        requests.append(replace(one, temperature=temperature))
    made = []
    for reply in put(ask, model, requests, "plans"):
        try:
            made.append(Proposed(read_plan(reply, reading), raw=reply.text))
        except Unreadable as error:
            made.append(Proposed(None, str(error), reply.text))
    return made


Planned = tuple[View, str, Plan]
"""What is reviewed: a patient, the diagnosis, and the plan for it."""


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
    ask: Ask | None = None,
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
            fill: dict[str, Any] = {"chart": _chart(view), "patient": view.text}
            fill |= {"answer": diagnosis, "plan": plan_text(items[i])}
            ids = range(1, len(items[i]) + 1)
            requests.append(request(name, model, room, seed, about, ids=ids, **fill))
        found: list[tuple[Mark, ...]] = [()] * len(asked)
        replies = put(ask, model, requests, name.replace("_", " of "))
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
    return "\n".join([_chart(view), view.text, diagnosis, *items])
