"""How well an embedded model reasons and diagnoses with a chart, proposes plans and reviews them,
on patients it never met."""

from __future__ import annotations

from typing import Any

import numpy as np

from trustlab.agents.safety_table import load_safety
from trustlab.models.base import Model, Request
from trustlab.parsing.agents import read_flags, read_opinion, read_plan, read_ratings
from trustlab.parsing.reply import Unreadable
from trustlab.records import Mark, Reply

from .clinic import doctor_row, plan_row, review_prescriptions_row, review_tests_row
from .world import World

SEED = 77_003
N = 200
"""Examples of each skill."""


def clinic_report(world: World, model: Model, n: int = N) -> dict[str, Any]:
    """For each skill what can be read and what of it is right; ``n`` examples each, greedy
    replies."""
    return {
        "examples_of_each": n,
        "doctor": _doctor(world, model, n),
        "plan": _plan(world, model, n),
        "review_prescriptions": _review(world, model, n, "rating"),
        "review_tests": _review(world, model, n, "flag"),
    }


def _replies(model: Model, rows: list) -> list[Reply]:
    return [
        r[0] for r in model.generate([Request(messages, max_tokens=256) for messages, _, _ in rows])
    ]


def _doctor(world: World, model: Model, n: int) -> dict[str, float | None]:
    rng = np.random.default_rng([SEED, 0])
    rows = [doctor_row(world, rng)[1] for _ in range(n)]
    read = [read_opinion(r) for r in _replies(model, rows)]
    truth = [reply.rpartition("\n[")[2][:-1] for _, reply, _ in rows]
    best = [
        max(options, key=lambda o: options[o]).rpartition("\n[")[2][:-1] for *_, options in rows
    ]
    thought = [reply.partition(">")[2].partition("<")[0] for _, reply, _ in rows]
    return {
        "readable": _share([d is not None and t is not None for t, d, _ in read]),
        "diagnosis_right": _share([d == t for (_, d, _), t in zip(read, truth, strict=True)]),
        "best_possible": _share([b == t for b, t in zip(best, truth, strict=True)]),
        "what_was_told_right": _share(
            [
                (t or "").split(". It may")[0] == w.split(". It may")[0]
                for (t, *_), w in zip(read, thought, strict=True)
            ]
        ),
    }


def _plan(world: World, model: Model, n: int) -> dict[str, float | None]:
    rng, safety = np.random.default_rng([SEED, 1]), load_safety()
    rows = [plan_row(world, rng)[1] for _ in range(n)]
    plans = []
    for reply in _replies(model, rows):
        try:
            plans.append(read_plan(reply))
        except Unreadable:
            plans.append(None)
    there = [(p, m) for p, (m, *_) in zip(plans, rows, strict=True) if p is not None]
    names = [(x.drug, "drug") for p, _ in there for x in p.prescriptions] + [
        (t, "test") for p, _ in there for t in p.tests
    ]
    usual = []
    for plan, messages in there:
        said = messages[1][1].rpartition("\nThe diagnosis: ")[2].partition("\n")[0]
        condition = world.knowledge.condition_named(said)
        assert condition is not None
        given = {
            safety.drugs[d].name for need in safety.plans[condition.id].prescriptions for d in need
        }
        usual += [p.drug in given for p in plan.prescriptions]
    return {
        "readable": _share([p is not None for p in plans]),
        "known_names": _share(
            [
                bool(safety.drug_named(t) if kind == "drug" else safety.test_named(t))
                for t, kind in names
            ]
        ),
        "drugs_that_are_usual": _share(usual),
    }


def _review(world: World, model: Model, n: int, key: str) -> dict[str, float | None]:
    rng = np.random.default_rng([SEED, 2 if key == "rating" else 3])
    make, read = (
        (review_prescriptions_row, read_ratings)
        if key == "rating"
        else (review_tests_row, read_flags)
    )
    rows = [make(world, rng)[1] for _ in range(n)]
    pairs: list[tuple[Mark, Mark]] = []
    for reply, (messages, right, _) in zip(_replies(model, rows), rows, strict=True):
        true = read(Reply(right), right.count('"id"'), messages[1][1])
        pairs += list(zip(true, read(reply, len(true), messages[1][1]), strict=True))
    fine = ("SAFE", "FINE")
    objected = [(t, s) for t, s in pairs if t.verdict not in (*fine, "UNKNOWN")]
    quoted = [s.quote_occurs for _, s in pairs if s.quote]
    return {
        "items": len(pairs),
        "readable": _share([s.verdict is not None for _, s in pairs]),
        "right": _share([s.verdict == t.verdict for t, s in pairs]),
        "sensitivity": _share(
            [s.verdict is not None and s.verdict not in (*fine, "UNKNOWN") for _, s in objected]
        ),
        "specificity": _share([s.verdict in fine for t, s in pairs if t.verdict in fine]),
        "unknown_seen": _share(
            [s.verdict == "UNKNOWN" for t, s in pairs if t.verdict == "UNKNOWN"]
        ),
        "quotations_that_occur": _share([bool(q) for q in quoted]),
        "quotations_right": _share([s.quote == t.quote for t, s in objected]),
    }


def _share(hits: list[bool]) -> float | None:
    return round(float(np.mean(hits)), 4) if hits else None
