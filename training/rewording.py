"""Other words for the same: a finding's question and a patient's reply worded anew, as
``trustlab.agents.rephrase`` asks.

A reply becomes any other of the table's phrasings of the same finding, affirmed or denied as it was
and with the same values; a question becomes one of the loose wordings of the same finding, a loose
one the table's.
"""

from __future__ import annotations

import numpy as np

from trustlab.knowledge.findings import answer_text
from trustlab.prompts import render

from .speech import loose_wordings, spoken
from .talk import Row
from .world import Patient, World


def reply_row(world: World, rng: np.random.Generator) -> tuple[Patient, Row]:
    """The prompt ``rephrase_reply`` and its reply."""
    patient = world.draw(rng, talk=0.9, denial=0.8)
    fact = patient.facts[int(rng.integers(len(patient.facts)))]
    loose = bool(rng.random() < 0.15)
    question, _, reply = (
        spoken(world, fact, rng, loose).text.removeprefix("Doctor: ").partition("\nPatient: ")
    )
    f = world.knowledge.findings[fact.finding]
    phrases = [
        world.knowledge.values[v].phrase if v in world.knowledge.values else v for v in fact.values
    ]
    every = {
        answer_text(f, fact.affirmed, phrases, i)
        for i in range(len(f.affirm if fact.affirmed else f.deny))
    }
    others = sorted(every - {reply}) or [reply]
    replies = {f"[{text}]": 1 / len(others) for text in others}
    return patient, (
        render("rephrase_reply", question=question, reply=reply),
        next(iter(replies)),
        replies,
    )


def question_row(world: World, rng: np.random.Generator) -> tuple[Patient, Row]:
    """The prompt ``rephrase_question`` and its reply."""
    findings = [
        f for f in world.knowledge.findings.values() if loose_wordings().get(f.id, {}).get("ask")
    ]
    finding = findings[int(rng.integers(len(findings)))]
    loose = loose_wordings()[finding.id]["ask"]
    asked = finding.question if rng.random() < 0.85 else str(rng.choice(loose))
    others = loose if asked == finding.question else [finding.question]
    replies = {f"[{text}]": 1 / len(others) for text in others}
    nobody = Patient(world.conditions[0].id, "female", ())
    return nobody, (render("rephrase_question", question=asked), next(iter(replies)), replies)
