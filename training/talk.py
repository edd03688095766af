"""What a consultation takes: to ask the question that helps most, to know when enough is known, to
answer as a patient.

- ``ask``: among the table's questions, those by which most would be learned of the condition: by
  the mutual information of condition and answer, given the exact posterior; patients know their own
  facts. The five best may be asked, with chances that grow with the fourth power of what they
  bring.
- ``enough``: whether the exact posterior of the best condition has reached :data:`ENOUGH`.
- ``patient``: the words of the fact that the question asks for, as they stand; no, where the facts
  are complete and do not hold it; else that the patient does not know.

Half of the consultations up to then went as patients tell; in the others something was told, and
then questions were put: the best ones, or (:func:`consulted`) those that fit what is thought of.
What a patient was asked in vain ("I don't know") tells nothing here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trustlab.knowledge.findings import say
from trustlab.prompts import render
from trustlab.records import Statement

from .speech import LOOSE_PATIENTS, loose_wordings, spoken, told
from .world import Fact, Patient, World

UNKNOWN = "I don't know."
ENOUGH = 0.9
BEST = 5
IN_VAIN = 0.15
"""Share of the patients who were asked some things in vain."""
NO = "No."
COMPLETE, LISTED, STRANGE = 0.65, 0.6, 0.05
"""Shares of the patients whose facts are all that is so; of the questions that one of them answers;
of those that nobody knows."""
NOBODY_KNOWS = (
    "How are you feeling overall?",
    "What do you think it could be?",
    "What is your blood group?",
    "Who is your family doctor?",
    "How tall are you?",
    "What did the last blood test show?",
    "When did it start?",
    "Is there anything else that you would like to tell me?",
    "How did you get here today?",
    "What would you like me to do for you?",
)
"""Questions that the table does not have."""
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


def consulted(
    world: World, rng: np.random.Generator
) -> tuple[Patient, tuple[Fact, ...], tuple[Fact, ...]]:
    """A patient who tells a little and then answers what is asked: told facts, answers.

    Each question is for a finding of a condition that what was told makes likely. Which one is
    asked follows from what was said alone, so it tells nothing more. The posterior takes what was
    not told before the questions for not spoken of, which is not quite so where more would have
    been: of 4,000 such patients the likeliest condition has 0.64 on average and is right for 0.63.
    """
    patient = world.draw(rng)
    facts = patient.facts[: int(rng.integers(1, 4))]
    said = {f.finding for f in facts}
    likely = rng.choice(len(world.conditions), int(rng.integers(1, 16)), p=world.posterior(facts))
    answers: list[Fact] = []
    for i in likely:
        so = {f.finding for f in (*facts, *answers) if f.affirmed}
        listed = [*world.conditions[i].findings, *world.conditions[i].values]
        open_ = [
            f for f in listed if f not in said and world.knowledge.findings[f].parent in (None, *so)
        ]
        if open_:
            answers.append(patient.answer(open_[int(rng.integers(len(open_)))]))
            said.add(answers[-1].finding)
    return patient, facts, tuple(answers)


def gains(
    world: World, facts: tuple[Fact, ...], asked: set[str], answers: tuple[Fact, ...] = ()
) -> dict[str, float]:
    """What each question that may be asked would tell of the condition on average, in nats: finding
    id -> mutual information."""
    p = world.posterior(facts, answers=answers)
    affirmed = {f.finding for f in (*facts, *answers) if f.affirmed}
    found: dict[str, float] = {}
    w = world.presence.mean(0)
    binary = _information(p, np.stack([w, 1 - w]))
    for j, f in enumerate(world.findings):
        if f.id not in asked and (f.parent is None or f.parent in affirmed):
            found[f.id] = float(binary[j])
    for f in world.valued:
        if f.id not in asked and (f.parent is None or f.parent in affirmed):
            chances, none, _ = world.value_chance[f.id]
            value = chances.mean(0)
            value = value / value.sum(1, keepdims=True) * (1 - none)[:, None]
            found[f.id] = float(
                _information(p, np.concatenate([value.T, none[None]])[:, :, None])[0]
            )
    return found


def _information(p: np.ndarray, outcomes: np.ndarray) -> np.ndarray:
    """Mutual information of condition, chances (c,), and outcome, chances (o, c, questions); shape
    (questions,)."""

    def entropy(chance: np.ndarray) -> np.ndarray:
        return -(chance * np.log(np.maximum(chance, 1e-12))).sum(0)

    return entropy(np.einsum("c,ocq->oq", p, outcomes)) - p @ entropy(outcomes)


def best_questions(
    world: World, facts: tuple[Fact, ...], asked: set[str], answers: tuple[Fact, ...] = ()
) -> dict[str, float]:
    """The :data:`BEST` findings to ask for, best first, with their chances."""
    ranked = sorted(gains(world, facts, asked, answers).items(), key=lambda g: -g[1])[:BEST]
    weight = np.array([max(g, 1e-9) for _, g in ranked]) ** 4
    return {f: float(w) for (f, _), w in zip(ranked, weight / weight.sum(), strict=True)}


@dataclass(frozen=True)
class History:
    """A consultation up to some turn: what was told and answered, the words, and every finding that
    was asked for."""

    patient: Patient
    facts: tuple[Fact, ...]
    answers: tuple[Fact, ...]
    statements: tuple[Statement, ...]
    asked: set[str]


def history(world: World, rng: np.random.Generator) -> History:
    """A consultation up to some turn."""
    if (u := rng.random()) < 0.4:
        return _as_told(world, rng)
    if u < 0.7:
        patient, facts, answers = consulted(world, rng)
    else:
        patient = world.draw(rng)
        facts, answers = patient.facts[:1], ()
        for _ in range(int(rng.integers(0, 14))):
            asked = {f.finding for f in (*facts, *answers)}
            options = best_questions(world, facts, asked, answers)
            finding = str(rng.choice(list(options), p=list(options.values())))
            answers = (*answers, patient.answer(finding))
    loose = bool(rng.random() < LOOSE_PATIENTS)
    words = tuple(spoken(world, f, rng, loose) for f in (*facts, *answers))
    return History(patient, facts, answers, *_with_asides(world, words, rng))


def _as_told(world: World, rng: np.random.Generator) -> History:
    patient = world.draw(
        rng, talk=float(rng.choice((0.5, 0.7, 0.9))), denial=float(rng.choice((0.0, 0.4, 0.8)))
    )
    facts = patient.facts[: int(rng.integers(1, min(20, len(patient.facts)) + 1))]
    words = told(world, patient, rng)[: len(facts)]
    return History(patient, facts, (), *_with_asides(world, words, rng))


def _with_asides(
    world: World, words: tuple[Statement, ...], rng: np.random.Generator
) -> tuple[tuple[Statement, ...], set[str]]:
    """The statements, some asked in vain among them, and the findings that were asked for."""
    statements = in_vain(world, words, rng)
    questions = {f.question: f.id for f in world.knowledge.findings.values()}
    asked = {s.finding or "" for s in statements}
    asked |= {
        questions.get(s.text.partition("\n")[0].removeprefix("Doctor: "), "") for s in statements
    }
    return statements, asked - {""}


def ask_row(world: World, rng: np.random.Generator) -> tuple[Patient, Row]:
    """The prompt ``ask`` and its reply."""
    h = history(world, rng)
    options = best_questions(world, h.facts, h.asked, h.answers)
    replies = {f"[{world.knowledge.findings[f].question}]": p for f, p in options.items()}
    return h.patient, (render("ask", patient=_text(h.statements)), next(iter(replies)), replies)


def enough_row(world: World, rng: np.random.Generator) -> tuple[Patient, Row]:
    """The prompt ``enough`` and its reply."""
    h = history(world, rng)
    sure = world.posterior(h.facts, answers=h.answers).max() >= ENOUGH
    reply = "[enough]" if sure else "[more]"
    return h.patient, (render("enough", patient=_text(h.statements)), reply, {reply: 1.0})


def patient_row(world: World, rng: np.random.Generator) -> tuple[Patient, Row]:
    """The prompt ``patient`` and its reply."""
    patient = world.draw(
        rng, talk=float(rng.choice((0.2, 0.5, 0.9))), denial=float(rng.choice((0.0, 0.4, 0.8)))
    )
    complete, statements = bool(rng.random() < COMPLETE), told(world, patient, rng)
    if complete:
        statements = (*statements, *(world.statement(f, rng) for f in untold(patient)))
    findings = world.knowledge.findings
    if (u := rng.random()) < LISTED:
        chosen = statements[int(rng.integers(len(statements)))]
        finding, reply = findings[chosen.finding or ""], chosen.text.partition("\nPatient: ")[2]
    else:
        others = [f for f in findings.values() if f.id not in {s.finding for s in statements}]
        finding = others[int(rng.integers(len(others)))]
        reply = NO if complete and u < 1 - STRANGE else UNKNOWN
    loose = loose_wordings().get(finding.id, {}).get("ask", [])
    question = str(rng.choice(loose)) if loose and rng.random() < 0.15 else finding.question
    if complete and reply == UNKNOWN:
        question = str(rng.choice(NOBODY_KNOWS))
    messages = render(
        "patient",
        facts=_text(statements),
        question=question,
        options=("complete",) if complete else (),
    )
    return patient, (messages, f"[{reply}]", {f"[{reply}]": 1.0})


def untold(patient: Patient) -> list[Fact]:
    """What is so and was not told."""
    told_of = {f.finding for f in patient.facts}
    return [f for f in patient.record if f.finding not in told_of]


def _text(statements: tuple[Statement, ...]) -> str:
    return "\n".join(s.text for s in statements)
