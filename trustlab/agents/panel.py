"""Lets doctors judge a patient independently, and vote. Each doctor has a random stream of its own;
synonyms count as one diagnosis. Prompts: ``doctor``, ``plan``, ``review_prescriptions``,
``review_tests``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trustlab import records
from trustlab.agents.asking import read_by, reply_room, request
from trustlab.knowledge.chart import chart_of, chart_text
from trustlab.knowledge.findings import load_knowledge
from trustlab.metrics.trust import majority
from trustlab.models.base import About, Model
from trustlab.parsing.agents import read_opinion
from trustlab.parsing.reply import Unreadable
from trustlab.records import Opinion, Panel, Reading, ReasoningFrom, Reply, View

MAX_TOKENS = 512


def doctors_of(models: Sequence[Model], n: int) -> tuple[Model, ...]:
    """``n`` doctors: the models in turn. ``ValueError`` for no model, and for more models than
    doctors."""
    if n < len(models) or not models:
        many = f"{n} doctors of {len(models)} models"
        raise ValueError(f"{many}; at least one model is needed, and a doctor for each")
    return tuple(models[i % len(models)] for i in range(n))


def chart_shown(view: View) -> str:
    """The chart as a doctor reads it, after what is told."""
    return chart_text(chart_of(view.case, view.statements))


def _diagnosed(reply: Reply, reading: Reading) -> str:
    _, diagnosis, missing = read_opinion(reply, reading)
    if diagnosis is None:
        raise Unreadable(missing)
    return diagnosis


def convene(
    views: Sequence[View],
    doctors: Sequence[Model],
    *,
    temperature: float = 0.5,
    seed: int = 0,
    max_tokens: int = MAX_TOKENS,
    reading: Reading = "chat",
    reasoning_from: ReasoningFrom = "section",
) -> list[Panel]:
    """The panel's opinions and its majority for each view. Doctors of one model share one request
    for each view, each with a random stream of its own, and are numbered from 0 as they sit."""
    rows: dict[int, list[list[Reply]]] = {}
    for model in {id(doctor): doctor for doctor in doctors}.values():
        n = sum(doctor is model for doctor in doctors)
        room, requests = reply_room(model, max_tokens), []
        for view in views:
            about = read_by(About.of(view), _diagnosed, reading)
            fill = {"patient": view.text, "asks": view.case.question, "chart": chart_shown(view)}
            opinion = request("doctor", model, room, seed, about, (), **fill)
            requests.append(replace(opinion, n=n, temperature=temperature))
        rows[id(model)] = model.generate(requests)
    panels = []
    for place, view in enumerate(views):
        opinions = []
        for i, doctor in enumerate(doctors):
            number = sum(other is doctor for other in doctors[:i])
            reply = rows[id(doctor)][place][number]
            read = read_opinion(reply, reading, reasoning_from)
            opinions.append(Opinion(doctor.name, number, *read, reply.text))
        panels.append(decide(opinions, view.case.case_id))
    return panels


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
