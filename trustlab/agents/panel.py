"""Doctors who judge a patient independently, the plan of the one in charge, reviewers who check it.

METHODS: trust indices. K doctors (3 by default) reason and diagnose, each from a random stream of
its own, of one model or of several. Synonyms of the knowledge table count as one diagnosis. What a
reviewer says is held beside the rule check (:mod:`trustlab.safety.rule_check`), which knows the
safety table and nothing else. Prompts: ``doctor.txt``, ``plan.txt``, ``review_prescriptions.txt``,
``review_tests.txt``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trustlab.agents.medconf import Ask, reply_room
from trustlab.knowledge import load_knowledge
from trustlab.metrics.trust import majority
from trustlab.models.base import About, Messages, Model, Request
from trustlab.parsing.agents import read_flags, read_opinion, read_plan, read_ratings
from trustlab.parsing.counts import both
from trustlab.parsing.reply import Unreadable
from trustlab.parsing.schemas import schema_of
from trustlab.prompts import Prompts, prompts_of, render
from trustlab.records import (
    Mark,
    Opinion,
    Panel,
    Plan,
    Reading,
    ReasoningFrom,
    Reply,
    View,
    normalise,
)
from trustlab.safety.chart import chart_of, chart_text

MAX_TOKENS, MAX_TOKENS_REVIEW = 512, 768


@dataclass(frozen=True)
class Doctor:
    """One member of a panel: a model, and the number of its random stream, so that doctors of one
    model differ."""

    model: Model
    number: int = 0


def doctors_of(models: Sequence[Model], n: int) -> tuple[Doctor, ...]:
    """``n`` doctors, of the models in turn. ``ValueError`` for fewer than one, or without a
    model."""
    if n < 1 or not models:
        raise ValueError(f"{n} doctors of {len(models)} models; at least one of each is needed")
    return tuple(Doctor(models[i % len(models)], i // len(models)) for i in range(n))


def doctor_request(
    view: View,
    prompts: Prompts,
    temperature: float,
    seed: int,
    n: int = 1,
    first: int = 0,
    max_tokens: int = MAX_TOKENS,
    reading: Reading = "chat",
) -> Request:
    """What ``n`` doctors of one model are asked, from the random stream ``first`` on."""
    messages = prompts.render(
        "doctor", chart=chart_text(chart_of(view.case, view.statements)), patient=view.text
    )
    return Request(
        messages,
        n,
        temperature,
        max_tokens=max_tokens,
        seed=seed,
        purpose="doctor",
        first=first,
        schema=schema_of("doctor"),
        about=About.of(view, **both(_diagnosed, reading)),
    )


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
    """The panel's opinions and its majority for each view; all doctors of a model share one request
    a view.

    ``reading`` and ``reasoning_from``: see :func:`trustlab.parsing.agents.read_opinion`.
    ``ValueError`` where a doctor is listed twice.
    """
    put = ask or (lambda m, requests, _: m.generate(requests))
    if len({(id(d.model), d.number) for d in doctors}) < len(doctors):
        raise ValueError("a doctor is listed twice; doctors of one model need different numbers")
    given: dict[tuple[int, int], list[Reply]] = {}
    for model in {id(d.model): d.model for d in doctors}.values():
        numbers = [d.number for d in doctors if d.model is model]
        first, n = min(numbers), max(numbers) - min(numbers) + 1
        room = reply_room(model, max_tokens)
        how = (prompts_of(model), temperature, seed, n, first, room, reading)
        rows = put(model, [doctor_request(v, *how) for v in views], "doctors")
        given |= {(id(model), number): [row[number - first] for row in rows] for number in numbers}
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
    """The panel that these opinions make; ties are drawn by a hash of the case, whatever the
    doctors' order."""
    votes = tuple(vote(o.diagnosis) for o in opinions)
    winner, tied = majority(votes, case_id)
    return Panel(tuple(opinions), votes, winner, tied)


def vote(diagnosis: str | None) -> str | None:
    """The name under which a diagnosis is counted: the knowledge table's where it knows it, else
    the words themselves."""
    if diagnosis is None:
        return None
    known = load_knowledge().condition_named(diagnosis)
    return known.name if known else normalise(diagnosis) or None


def in_charge(panel: Panel) -> int | None:
    """The place of the doctor in charge: the first who voted for the panel's diagnosis; ``None``
    where there is none."""
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
    """A plan for each (view, diagnosis), drawn at ``temperature`` as the doctors' opinions are, in
    one batch."""
    put, room = ask or (lambda m, requests, _: m.generate(requests)), reply_room(model, max_tokens)
    requests = [
        Request(
            render(
                "plan",
                to=model,
                chart=chart_text(chart_of(view.case, view.statements)),
                patient=view.text,
                answer=diagnosis,
            ),
            temperature=temperature,
            max_tokens=room,
            seed=seed,
            purpose="plan",
            schema=schema_of("plan"),
            about=About.of(view, diagnosis=diagnosis, **both(read_plan, reading)),
        )
        for view, diagnosis in asked
    ]
    made = []
    for row in put(model, requests, "plans") if requests else []:
        try:
            made.append(Proposed(read_plan(row[0], reading), raw=row[0].text))
        except Unreadable as error:
            made.append(Proposed(None, str(error), row[0].text))
    return made


Planned = tuple[View, str, Plan]
"""What is reviewed: a patient, the diagnosis, and the plan for it."""


@dataclass(frozen=True)
class Review:
    """A mark for each prescription and each test of a plan, in its order; ``replies`` keeps the
    replies as they came, by prompt."""

    prescriptions: tuple[Mark, ...]
    tests: tuple[Mark, ...]
    replies: Mapping[str, Reply] = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class Checked:
    """A configuration's panel for one view, the plan of the doctor in charge, the reviewers' marks
    and the rule check's; ``correct`` (0, 1 or NaN) is of the panel's diagnosis, ``correct_share``
    of all that tied for it."""

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
        case = self.view.case
        return {
            "model": self.model,
            "dataset": case.dataset,
            "level": self.view.level,
            "case_id": case.case_id,
        }


def review(
    model: Model,
    asked: Sequence[Planned],
    *,
    seed: int = 0,
    max_tokens: int = MAX_TOKENS_REVIEW,
    reading: Reading = "chat",
    ask: Ask | None = None,
) -> list[Review]:
    """The review of each plan, greedy; one batch for prescriptions and one for tests. An empty list
    is not asked about."""
    put, room = (
        ask or (lambda m, requests, _: m.generate(requests)),
        reply_room(model, max_tokens),
    )

    def marked(name: str, items: Sequence[Sequence[str]], read) -> list[tuple[Mark, ...]]:
        at = [i for i, listed in enumerate(items) if listed]
        asks = {"max_tokens": room, "seed": seed, "purpose": name}

        def request(i: int) -> Request:
            def marks(reply: Reply, reading: Reading) -> tuple[Mark, ...]:
                found = read(reply, len(items[i]), shown_text(asked[i], items[i]), reading)
                if not any(mark.verdict for mark in found):
                    raise Unreadable(found[0].missing)
                return found

            about = About.of(asked[i][0], diagnosis=asked[i][1], **both(marks, reading))
            schema = schema_of(name, ids=range(1, len(items[i]) + 1))
            messages = _messages(model, name, asked[i], items[i])
            return Request(messages, **asks, schema=schema, about=about)

        requests = [request(i) for i in at]
        replies = put(model, requests, name.replace("_", " of ")) if requests else []
        found: list[tuple[Mark, ...]] = [()] * len(asked)
        for i, row in zip(at, replies, strict=True):
            found[i] = read(row[0], len(items[i]), shown_text(asked[i], items[i]), reading)
            came[i][name] = row[0]
        return found

    came: list[dict[str, Reply]] = [{} for _ in asked]

    drugs = marked(
        "review_prescriptions",
        [[str(p) for p in plan.prescriptions] for _, _, plan in asked],
        read_ratings,
    )
    tests = marked("review_tests", [list(plan.tests) for _, _, plan in asked], read_flags)
    return [Review(*each) for each in zip(drugs, tests, came, strict=True)]


def plan_text(items: Sequence[str]) -> str:
    """Prescriptions or tests as a prompt shows them: numbered, one a line."""
    return "\n".join(f"{i}. {' '.join(item.split())}" for i, item in enumerate(items, 1))


def shown_text(asked: Planned, items: Sequence[str]) -> str:
    """All that a reviewer may quote: chart, patient, diagnosis and the items that it is shown."""
    view, diagnosis, _ = asked
    return "\n".join(
        [chart_text(chart_of(view.case, view.statements)), view.text, diagnosis, *items]
    )


def _messages(model: Model, name: str, asked: Planned, items: Sequence[str]) -> Messages:
    view, diagnosis, _ = asked
    return render(
        name,
        to=model,
        chart=chart_text(chart_of(view.case, view.statements)),
        patient=view.text,
        answer=diagnosis,
        plan=plan_text(items),
    )
