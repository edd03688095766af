"""The package's own prompts, rendered for generated patients, with the reply an informed clinician would give.

What is taught, fixed before any real patient is met:

- ``diagnosis``: the patient's condition, in square brackets.
- ``p_true``: whether the proposed answer is the patient's condition. Proposals are drawn from the exact posterior,
  so wrong ones are plausible, and the share of True among equal proposals is their posterior.
- ``ce``: the exact posterior p of the proposed answer, stretched towards certainty (its log-odds times 1.5, as people
  overstate) and rounded to 5, in square brackets.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trustlab.models.base import Messages
from trustlab.prompts import render

from .world import Patient, World

SKILLS = {"diagnosis": 0.62, "p_true": 0.18, "ce": 0.18, "prior": 0.02}
"""Shares of the training examples. ``prior`` is the diagnosis prompt with the patient left out: any condition, by its prior."""
STRETCH = 1.5


@dataclass(frozen=True)
class Example:
    """One exchange to learn from."""

    skill: str
    messages: Messages
    reply: str
    patient: Patient
    proposed: str | None = None
    posterior: float | None = None


def elicited_score(p: float) -> int:
    """The taught confidence score, 0 to 100 in steps of 5, for an exact posterior ``p``."""
    p = min(max(p, 1e-9), 1 - 1e-9)
    stretched = 1 / (1 + (p / (1 - p)) ** -STRETCH)
    return int(5 * round(20 * stretched))


def proposal(world: World, posterior: np.ndarray, rng: np.random.Generator, skill: str) -> int:
    """A condition to be judged: from the posterior for ``p_true``; for ``ce`` sometimes the best or any."""
    u = rng.random()
    if skill == "ce" and u < 0.35:
        return int(posterior.argmax())
    if skill == "ce" and u < 0.45:
        return int(rng.integers(len(posterior)))
    return int(rng.choice(len(posterior), p=posterior))


def example(world: World, rng: np.random.Generator, skill: str | None = None) -> Example:
    """One training example; ``skill`` is drawn by :data:`SKILLS` unless given."""
    skill = skill or str(rng.choice(list(SKILLS), p=list(SKILLS.values())))
    patient = world.draw(rng)
    truth = world.knowledge.conditions[patient.condition]
    if skill == "prior":
        return Example(skill, render("diagnosis", patient=None), f"[{truth.name}]", patient)
    told = "\n".join(world.statement(f, rng).text for f in patient.facts)
    if skill == "diagnosis":
        return Example(skill, render("diagnosis", patient=told), f"[{truth.name}]", patient)
    posterior = world.posterior(patient.facts)
    k = proposal(world, posterior, rng, skill)
    proposed = world.conditions[k]
    right = proposed.id == truth.id
    reply = str(right) if skill == "p_true" else f"[{elicited_score(float(posterior[k]))}]"
    messages = render(skill, patient=told, answer=proposed.name)
    return Example(skill, messages, reply, patient, proposed.id, float(posterior[k]))
