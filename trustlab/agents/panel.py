"""Doctors who judge a patient independently, and the majority that decides; ``prompts/doctor.txt``.

METHODS: trust indices. K doctors (3 by default) reason and diagnose, each from a random stream of
its own, of one model or of several. Synonyms of the knowledge table count as one diagnosis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trustlab.agents.medconf import Ask, reply_room
from trustlab.knowledge import load_knowledge, normalise
from trustlab.metrics.trust import majority
from trustlab.models.base import Model, Request
from trustlab.parsing.agents import read_opinion
from trustlab.prompts import render
from trustlab.records import Opinion, Panel, Reply, View
from trustlab.safety.chart import chart_of, chart_text

MAX_TOKENS = 512


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
    temperature: float,
    seed: int,
    n: int = 1,
    first: int = 0,
    max_tokens: int = MAX_TOKENS,
) -> Request:
    """What ``n`` doctors of one model are asked, from the random stream ``first`` on."""
    messages = render(
        "doctor", chart=chart_text(chart_of(view.case, view.statements)), patient=view.text
    )
    return Request(
        messages, n, temperature, max_tokens=max_tokens, seed=seed, purpose="doctor", first=first
    )


def convene(
    views: Sequence[View],
    doctors: Sequence[Doctor],
    *,
    temperature: float = 0.5,
    seed: int = 0,
    ask: Ask | None = None,
) -> list[Panel]:
    """The panel's opinions and its majority for each view; all doctors of a model share one request
    a view.

    ``ValueError`` where a doctor is listed twice.
    """
    put = ask or (lambda m, requests, _: m.generate(requests))
    if len({(id(d.model), d.number) for d in doctors}) < len(doctors):
        raise ValueError("a doctor is listed twice; doctors of one model need different numbers")
    given: dict[tuple[int, int], list[Reply]] = {}
    for model in {id(d.model): d.model for d in doctors}.values():
        numbers = [d.number for d in doctors if d.model is model]
        first, n = min(numbers), max(numbers) - min(numbers) + 1
        room = reply_room(model, MAX_TOKENS)
        rows = put(
            model, [doctor_request(v, temperature, seed, n, first, room) for v in views], "doctors"
        )
        given |= {(id(model), number): [row[number - first] for row in rows] for number in numbers}
    seats = [[(d, given[id(d.model), d.number][i]) for d in doctors] for i in range(len(views))]
    return [
        decide([_opinion(d, reply) for d, reply in seat], v.case.case_id)
        for seat, v in zip(seats, views, strict=True)
    ]


def _opinion(doctor: Doctor, reply: Reply) -> Opinion:
    thinking, named, missing = read_opinion(reply)
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
