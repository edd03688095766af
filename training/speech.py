"""How generated patients speak: the table's phrasings, or loosely, in wordings that only training
uses."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
import yaml

from trustlab.records import Statement

from .world import Fact, Patient, World

FOLDER = Path(__file__).parent / "wordings"
LOOSE_PATIENTS = 0.2
"""Share of patients who speak loosely, each statement with a chance drawn for the patient."""
HEDGES_BEFORE = (
    "Well, ",
    "Um, ",
    "Hmm, ",
    "I think ",
    "Oh, ",
    "To be honest, ",
    "I suppose ",
    "Let me see, ",
    "You know, ",
    "Yeah, ",
)
HEDGES_AFTER = (
    ", I think",
    ", doctor",
    ", sort of",
    ", I suppose",
    ", more or less",
    ", as far as I know",
    ", really",
    ", if that helps",
)
TURNS = ("Okay. ", "Right. ", "I see. ", "Thank you. ")


@lru_cache(maxsize=1)
def loose_wordings() -> dict[str, dict[str, list[str]]]:
    """Finding id -> other ways to ask (``ask``), affirm (``yes``) and deny (``no``)."""
    return {
        k: v
        for path in sorted(FOLDER.glob("*.yml"))
        for k, v in yaml.safe_load(path.read_text(encoding="utf-8")).items()
    }


def _sentence(text: str, rng: np.random.Generator) -> str:
    """The wording with a hedge before or after it, now and then, and a full stop."""
    if rng.random() < 0.3:
        text = str(rng.choice(HEDGES_BEFORE)) + text
    if rng.random() < 0.2:
        text += str(rng.choice(HEDGES_AFTER))
    return text[0].upper() + text[1:] + "."


def spoken(world: World, fact: Fact, rng: np.random.Generator, loose: bool = False) -> Statement:
    """The fact in words: the table's, one of its phrasings picked at random, or loosely."""
    said = world.statement(fact, rng)
    wordings = loose_wordings().get(fact.finding, {}) if loose else {}
    if not wordings:
        return said
    question, _, answer = said.text.removeprefix("Doctor: ").partition("\nPatient: ")
    if rng.random() < 0.6:
        question = (str(rng.choice(TURNS)) if rng.random() < 0.2 else "") + str(
            rng.choice(wordings["ask"])
        )
    others = wordings.get("yes" if fact.affirmed else "no")
    if others and not fact.values and rng.random() < 0.8:
        answer = _sentence(str(rng.choice(others)), rng)
    return Statement(f"Doctor: {question}\nPatient: {answer}", fact.finding, fact.affirmed)


def told(
    world: World, patient: Patient, rng: np.random.Generator, loose: float = LOOSE_PATIENTS
) -> tuple[Statement, ...]:
    """All that the patient tells; ``loose`` is the chance of a patient who speaks loosely."""
    share = rng.random() if rng.random() < loose else 0.0
    return tuple(spoken(world, f, rng, bool(rng.random() < share)) for f in patient.facts)
