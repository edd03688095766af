"""Lets doctors judge a patient independently, and vote.

Each doctor has a random stream of its own; synonyms count as one diagnosis. Prompts: ``doctor``,
``plan``, ``review_prescriptions``, ``review_tests``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle, islice

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
        numbers = f"{n} doctors of {len(models)} models"
        raise ValueError(
            f"{numbers}; at least one model is needed, and a doctor for each"
        )
    in_turn = islice(cycle(models), n)
    return tuple(in_turn)


def chart_shown(view: View) -> str:
    """The chart as a doctor reads it beside what the view shows."""
    chart = chart_of(view.case, view.statements)
    return chart_text(chart)


def _diagnosis_of(reply: Reply, reading: Reading) -> str:
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
    n_doctors = Counter(map(id, doctors))
    models = {id(doctor): doctor for doctor in doctors}
    replies: dict[int, list[list[Reply]]] = {}
    for key, model in models.items():
        room = reply_room(model, max_tokens)
        requests = []
        for view in views:
            opinion = request(
                "doctor",
                model,
                room,
                seed,
                read_by(About.of(view), _diagnosis_of, reading),
                patient=view.text,
                asks=view.case.question,
                chart=chart_shown(view),
            )
            requests.append(replace(opinion, n=n_doctors[key], temperature=temperature))
        replies[key] = model.generate(requests)
    panels = []
    for place, view in enumerate(views):
        opinions = []
        seated: Counter[int] = Counter()
        for doctor in doctors:
            number = seated[id(doctor)]
            seated[id(doctor)] += 1
            reply = replies[id(doctor)][place][number]
            opinion = read_opinion(reply, reading, reasoning_from)
            opinions.append(Opinion(doctor.name, number, *opinion, reply.text))
        panels.append(decide(opinions, view.case.case_id))
    return panels


def decide(opinions: Sequence[Opinion], case_id: str) -> Panel:
    """The panel that these opinions make; ties are drawn by a hash of the case."""
    votes = tuple(vote(opinion.diagnosis) for opinion in opinions)
    winner, tied = majority(votes, case_id)
    return Panel(tuple(opinions), votes, winner, tied)


def vote(diagnosis: str | None) -> str | None:
    """The name under which a diagnosis is counted: the knowledge table's, else its own words."""
    if diagnosis is None:
        return None
    condition = load_knowledge().condition_named(diagnosis)
    if condition is not None:
        return condition.name
    return records.normalise(diagnosis) or None


def in_charge(panel: Panel) -> int | None:
    """The place of the doctor in charge, the first who voted for the panel's diagnosis, if any."""
    if panel.diagnosis is None:
        return None
    return panel.votes.index(panel.diagnosis)
