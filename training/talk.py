"""What a consultation takes: to ask the question that helps most, to know when enough is known, to
answer as a patient.

- ``ask``: among the table's questions, those by which most would be learned of the condition: by
  the mutual information of condition and outcome (told, denied or unknown, by the world's law at
  full talk), given the exact posterior. The five best may be asked, with chances that grow with the
  fourth power of what they bring.
- ``enough``: whether the exact posterior of the best condition has reached :data:`ENOUGH`.
- ``patient``: the words of the fact that the question asks for, as they stand, or that the patient
  does not know.

Half of the consultations up to then went as patients tell; in the others the best question was
asked at each turn. What a patient was asked in vain ("I don't know") tells nothing here.
"""

from __future__ import annotations

import numpy as np

from trustlab.knowledge import say
from trustlab.prompts import render
from trustlab.records import Statement

from .speech import LOOSE_PATIENTS, loose_wordings, spoken, told
from .world import Fact, Patient, World

UNKNOWN = "I don't know."
ENOUGH = 0.9
BEST = 5
TALK, DENIAL = 0.9, 0.8
"""The patient's talkativeness and rate of denial that a doctor counts on."""
IN_VAIN = 0.3
"""Share of the patients who were asked some things in vain."""
Row = tuple[tuple[tuple[str, str], ...], str, dict[str, float]]
"""Messages, the reply, and every reply that would do with its chance."""


def in_vain(
    world: World, statements: tuple[Statement, ...], rng: np.random.Generator
) -> tuple[Statement, ...]:
    """The statements, sometimes with questions among them that the patient could not answer; the
    first stays the first."""
    if rng.random() >= IN_VAIN:
        return statements
    findings = [
        f for f in world.knowledge.findings.values() if f.id not in {s.finding for s in statements}
    ]
    listed = list(statements)
    for i in rng.choice(len(findings), int(rng.integers(1, 9)), replace=False):
        listed.insert(int(rng.integers(1, len(listed) + 1)), Statement(say(findings[i], UNKNOWN)))
    return tuple(listed)


def gains(world: World, facts: tuple[Fact, ...], asked: set[str]) -> dict[str, float]:
    """What each question that may be asked would tell of the condition on average, in nats: finding
    id -> mutual information."""
    p = world.posterior(facts)
    affirmed = {f.finding for f in facts if f.affirmed}
    found: dict[str, float] = {}
    w, a = world.presence.mean(0), world.asked.mean(0)
    outcomes = np.stack([TALK * w, TALK * DENIAL * (1 - w) * a])
    outcomes = np.concatenate([outcomes, 1 - outcomes.sum(0, keepdims=True)])
    binary = _information(p, outcomes)
    for j, f in enumerate(world.findings):
        if f.id not in asked and (f.parent is None or f.parent in affirmed):
            found[f.id] = float(binary[j])
    for f in world.valued:
        if f.id not in asked and (f.parent is None or f.parent in affirmed):
            chances, none, _ = world.value_chance[f.id]
            value = chances.mean(0)
            value = value / value.sum(1, keepdims=True) * (1 - none)[:, None]
            found[f.id] = TALK * float(
                _information(p, np.concatenate([value.T, none[None]])[:, :, None])[0]
            )
    return found


def _information(p: np.ndarray, outcomes: np.ndarray) -> np.ndarray:
    """Mutual information of condition, chances (c,), and outcome, chances (o, c, questions); shape
    (questions,)."""

    def entropy(chance: np.ndarray) -> np.ndarray:
        return -(chance * np.log(np.maximum(chance, 1e-12))).sum(0)

    return entropy(np.einsum("c,ocq->oq", p, outcomes)) - p @ entropy(outcomes)


def best_questions(world: World, facts: tuple[Fact, ...], asked: set[str]) -> dict[str, float]:
    """The :data:`BEST` findings to ask for, best first, with their chances."""
    ranked = sorted(gains(world, facts, asked).items(), key=lambda g: -g[1])[:BEST]
    weight = np.array([max(g, 1e-9) for _, g in ranked]) ** 4
    return {f: float(w) for (f, _), w in zip(ranked, weight / weight.sum(), strict=True)}


def history(
    world: World, rng: np.random.Generator
) -> tuple[Patient, tuple[Fact, ...], tuple[Statement, ...], set[str]]:
    """A consultation up to some turn: the patient, what was told, the words, and every finding that
    was asked for."""
    patient = world.draw(
        rng, talk=float(rng.choice((0.5, 0.7, 0.9))), denial=float(rng.choice((0.0, 0.4, 0.8)))
    )
    if rng.random() < 0.5:
        facts = patient.facts[: int(rng.integers(1, min(20, len(patient.facts)) + 1))]
        statements = in_vain(world, told(world, patient, rng)[: len(facts)], rng)
        asked = {f.finding for f in facts}
        questions = {f.question: f.id for f in world.knowledge.findings.values()}
        asked |= {
            questions.get(s.text.partition("\n")[0].removeprefix("Doctor: "), "")
            for s in statements
        }
        return patient, facts, statements, asked
    by_finding = {f.finding: f for f in patient.facts}
    facts, asked, statements = [patient.facts[0]], {patient.facts[0].finding}, []
    statements.append(spoken(world, patient.facts[0], rng, bool(rng.random() < LOOSE_PATIENTS)))
    for _ in range(int(rng.integers(0, 14))):
        options = best_questions(world, tuple(facts), asked)
        finding = str(rng.choice(list(options), p=list(options.values())))
        asked.add(finding)
        if finding in by_finding:
            facts.append(by_finding[finding])
            statements.append(spoken(world, by_finding[finding], rng))
        else:
            statements.append(Statement(say(world.knowledge.findings[finding], UNKNOWN)))
    return patient, tuple(facts), tuple(statements), asked


def ask_row(world: World, rng: np.random.Generator) -> tuple[Patient, Row]:
    """The prompt ``ask`` and its reply."""
    patient, facts, statements, asked = history(world, rng)
    options = best_questions(world, facts, asked)
    replies = {f"[{world.knowledge.findings[f].question}]": p for f, p in options.items()}
    return patient, (render("ask", patient=_text(statements)), next(iter(replies)), replies)


def enough_row(world: World, rng: np.random.Generator) -> tuple[Patient, Row]:
    """The prompt ``enough`` and its reply."""
    patient, facts, statements, _ = history(world, rng)
    reply = "[enough]" if world.posterior(facts).max() >= ENOUGH else "[more]"
    return patient, (render("enough", patient=_text(statements)), reply, {reply: 1.0})


def patient_row(world: World, rng: np.random.Generator) -> tuple[Patient, Row]:
    """The prompt ``patient`` and its reply."""
    patient = world.draw(
        rng, talk=float(rng.choice((0.2, 0.5, 0.9))), denial=float(rng.choice((0.0, 0.4, 0.8)))
    )
    statements = told(world, patient, rng)
    findings = world.knowledge.findings
    if rng.random() < 0.65:
        chosen = statements[int(rng.integers(len(statements)))]
        finding, reply = findings[chosen.finding or ""], chosen.text.partition("\nPatient: ")[2]
    else:
        others = [f for f in findings.values() if f.id not in {s.finding for s in statements}]
        finding, reply = others[int(rng.integers(len(others)))], UNKNOWN
    loose = loose_wordings().get(finding.id, {}).get("ask", [])
    question = str(rng.choice(loose)) if loose and rng.random() < 0.15 else finding.question
    messages = render("patient", facts=_text(statements), question=question)
    return patient, (messages, f"[{reply}]", {f"[{reply}]": 1.0})


def _text(statements: tuple[Statement, ...]) -> str:
    return "\n".join(s.text for s in statements)
