"""The package's own prompts, rendered for generated patients, with the reply an informed clinician
would give.

What is taught, fixed before any real patient is met:

- ``diagnosis``: the patient's condition, in square brackets.
- ``p_true``: whether the proposed answer is the patient's condition. Proposals are drawn from the
  exact posterior, so wrong ones are plausible, and the share of True among equal proposals is their
  posterior.
- ``ce``: the exact posterior p of the proposed answer, stretched towards certainty (its log-odds
  times 1.5, as people overstate) and rounded to 5, in square brackets. ``cot_ce``: the same after
  naming what speaks for it (findings that the table lists for it and the patient affirms), against
  it (listed ones that are denied) and what it leaves unexplained. ``topk_ce``: that number first,
  then those of log-odds 0.5 and 1 lower and higher.
- ``keyword``, ``profile``, ``evidence``: MedConf's steps (``training/evidence.py``), whole and with
  each ablation. A profile is asked for with the passages in changing subsets and orders, so that it
  must read them.
- ``ask``, ``enough``, ``patient``: a consultation (``training/talk.py``). ``rephrase_reply``,
  ``rephrase_question``: other words for the same (``training/rewording.py``). ``doctor``, ``plan``,
  ``review_prescriptions``, ``review_tests``: a panel and its reviewers (``training/clinic.py``).
  From then on some patients were asked a few things that they did not know.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from trustlab.agents.medconf import library_text
from trustlab.knowledge import Condition, phrase_list
from trustlab.models.base import Messages
from trustlab.prompts import render
from trustlab.records import Statement

from . import evidence as ev
from .clinic import doctor_row, plan_row, review_prescriptions_row, review_tests_row
from .passages import Passage, by_condition, keywords, passages
from .rewording import question_row, reply_row
from .speech import told
from .talk import Row, ask_row, enough_row, in_vain, patient_row
from .world import Fact, Patient, World

SKILLS = {
    "diagnosis": 0.34,
    "p_true": 0.09,
    "ce": 0.07,
    "cot_ce": 0.07,
    "topk_ce": 0.04,
    "prior": 0.01,
    "keyword": 0.01,
    "profile": 0.05,
    "evidence": 0.15,
    "lookup": 0.17,
}
"""Shares of the training examples. ``prior`` is the diagnosis prompt with the patient left out.

Any condition, by its prior. ``lookup`` is the evidence prompt for a patient who has told little and
a profile of one to three criteria, with the reply up to the end of its list: short and dense, so
that finding the words that speak of a criterion is learned early."""
FIRST = {"diagnosis": 0.3, "lookup": 0.7}
"""Shares of the first examples, before any other skill: models that began with the whole mixture
took to copying a word from somewhere, and to leaving criteria open, and had not unlearned it when
they were stopped."""
LATER = SKILLS | {
    "diagnosis": 0.54,
    "evidence": 0.12,
    "lookup": 0.05,
    "ce": 0.05,
    "cot_ce": 0.05,
    "topk_ce": 0.03,
}
"""Shares of the late examples: once looking up is learned, naming the disease is what takes the
most examples."""
WITH_TALK = {
    "diagnosis": 0.34,
    "p_true": 0.07,
    "ce": 0.04,
    "cot_ce": 0.04,
    "topk_ce": 0.03,
    "prior": 0.01,
    "keyword": 0.01,
    "profile": 0.03,
    "evidence": 0.11,
    "lookup": 0.03,
    "ask": 0.12,
    "enough": 0.03,
    "patient": 0.07,
    "rephrase_reply": 0.04,
    "rephrase_question": 0.03,
}
"""Shares of later examples, with what a consultation and other words take."""
MORE_TALK = WITH_TALK | {
    "diagnosis": 0.24,
    "p_true": 0.05,
    "ce": 0.03,
    "cot_ce": 0.03,
    "topk_ce": 0.02,
    "profile": 0.02,
    "evidence": 0.09,
    "lookup": 0.02,
    "ask": 0.15,
    "patient": 0.13,
    "rephrase_reply": 0.11,
    "rephrase_question": 0.06,
}
"""Shares of still later examples: some thousand phrases have to be met a few times before they are
said."""
MOST_TALK = MORE_TALK | {
    "diagnosis": 0.20,
    "p_true": 0.04,
    "ce": 0.02,
    "ask": 0.22,
    "patient": 0.16,
    "rephrase_reply": 0.09,
    "rephrase_question": 0.04,
}
"""Shares of the last examples: not to ask again what was asked is learned late."""
CLINIC = {
    "diagnosis": 0.12,
    "p_true": 0.03,
    "ce": 0.02,
    "cot_ce": 0.02,
    "topk_ce": 0.01,
    "prior": 0.01,
    "keyword": 0.01,
    "profile": 0.02,
    "evidence": 0.07,
    "lookup": 0.01,
    "ask": 0.09,
    "enough": 0.01,
    "patient": 0.06,
    "rephrase_reply": 0.04,
    "rephrase_question": 0.02,
    "doctor": 0.12,
    "plan": 0.08,
    "review_prescriptions": 0.16,
    "review_tests": 0.10,
}
"""Shares of the examples with what a panel of doctors and its reviewers take."""
REVIEWS = CLINIC | {
    "diagnosis": 0.10,
    "profile": 0.01,
    "evidence": 0.06,
    "ask": 0.07,
    "patient": 0.05,
    "plan": 0.07,
    "review_prescriptions": 0.22,
    "review_tests": 0.12,
}
"""Shares of the last examples: some hundred pairs of a drug and a fact have to be met a few times
each."""
TALK: Mapping[str, Callable[[World, np.random.Generator], tuple[Patient, Row]]] = {
    "ask": ask_row,
    "enough": enough_row,
    "patient": patient_row,
    "rephrase_reply": reply_row,
    "rephrase_question": question_row,
    "doctor": doctor_row,
    "plan": plan_row,
    "review_prescriptions": review_prescriptions_row,
    "review_tests": review_tests_row,
}
STRETCH = 1.5
Tell = Callable[[tuple[Statement, ...]], str]
"""How statements become what the model reads."""
VARIANTS = {
    ("retrieval", "profile", "structure", "importance"): 0.72,
    ("retrieval", "profile", "structure"): 0.07,
    ("retrieval", "profile", "importance"): 0.07,
    ("profile", "structure", "importance"): 0.07,
    ("retrieval", "structure", "importance"): 0.07,
}
"""The whole procedure and its four ablations: their shares of the profile and evidence examples."""

TALKATIVE, SHORT_PROFILES = 0.6, 0.6
"""Shares of the evidence examples with a patient who tells much, and with a profile of one to four
criteria."""


@dataclass(frozen=True)
class Example:
    """One exchange to learn from.

    ``chances`` are exact: of each condition being the answer (shape (condition,)), or of True and
    False. Training on them instead of on the one reply that was drawn teaches the same law with
    less noise. ``options``: every reply that would do, with its chance.
    """

    skill: str
    messages: Messages
    reply: str
    patient: Patient
    proposed: str | None = None
    posterior: float | None = None
    chances: np.ndarray | None = None
    options: Mapping[str, float] | None = None


def stretched(p: float, shift: float = 0.0) -> int:
    """The taught confidence score, 0 to 100 in steps of 5, for an exact posterior ``p`` whose
    log-odds are moved by ``shift``."""
    p = min(max(p, 1e-9), 1 - 1e-9)
    return int(5 * round(20 / (1 + np.exp(-STRETCH * (np.log(p / (1 - p)) + shift)))))


def elicited_score(p: float) -> int:
    """The taught score of a posterior."""
    return stretched(p)


def proposal(posterior: np.ndarray, rng: np.random.Generator, skill: str) -> int:
    """A condition to be judged: from the posterior for ``p_true``; for scores sometimes the best or
    any."""
    u = rng.random()
    if skill != "p_true" and u < 0.35:
        return int(posterior.argmax())
    if skill != "p_true" and u < 0.45:
        return int(rng.integers(len(posterior)))
    return int(rng.choice(len(posterior), p=posterior))


def reasons(world: World, condition: Condition, facts: tuple[Fact, ...]) -> str:
    """What speaks for and against ``condition`` and what it does not explain, at most three of
    each, as told."""
    listed = [f for f in facts if f.finding in world.column and f.finding != "pain"]
    grade = condition.findings
    name = world.knowledge.findings
    groups = {
        "For it: ": [f for f in listed if f.affirmed and grade.get(f.finding, 0) >= 0.3],
        "Against it, denied: ": [
            f for f in listed if not f.affirmed and grade.get(f.finding, 0) >= 0.3
        ],
        "Unexplained: ": [f for f in listed if f.affirmed and f.finding not in grade],
    }
    return ". ".join(
        head + (phrase_list([name[f.finding].name for f in group[:3]]) if group else "nothing")
        for head, group in groups.items()
    )


def reply_pieces() -> list[str]:
    """The fixed pieces of these replies: one token each."""
    return [
        "For it: ",
        ". Against it, denied: ",
        ". Unexplained: ",
        ". [",
        "G1: [",
        *(f"] G{k}: [" for k in range(2, 6)),
    ]


def text_of(statements: tuple[Statement, ...]) -> str:
    """What the model reads of a patient."""
    return "\n".join(s.text for s in statements)


def example(
    world: World,
    rng: np.random.Generator,
    skill: str | None = None,
    shares: Mapping[str, float] = SKILLS,
) -> Example:
    """One training example; ``skill`` is drawn by ``shares`` unless given."""
    skill = skill or str(rng.choice(list(shares), p=list(shares.values())))
    if skill in ("profile", "keyword"):
        return _library_example(world, rng, skill)
    if skill == "lookup":
        return _lookup_example(world, rng)
    if skill in TALK:
        patient, (messages, reply, options) = TALK[skill](world, rng)
        return Example(skill, messages, reply, patient, options=options)
    tell: Tell = (lambda s: text_of(in_vain(world, s, rng))) if set(TALK) & set(shares) else text_of
    patient = (
        talkative(world, rng)
        if skill == "evidence" and rng.random() < TALKATIVE
        else world.draw(rng)
    )
    truth = world.knowledge.conditions[patient.condition]
    if skill == "prior":
        return Example(
            skill,
            render("diagnosis", patient=None),
            f"[{truth.name}]",
            patient,
            chances=world.prior,
        )
    statements, posterior = told(world, patient, rng), world.posterior(patient.facts)
    if skill == "diagnosis":
        messages = render("diagnosis", patient=tell(statements))
        return Example(skill, messages, f"[{truth.name}]", patient, chances=posterior)
    k = proposal(posterior, rng, skill)
    proposed, p = world.conditions[k], float(posterior[k])
    if skill == "evidence":
        messages, reply = _evidence(proposed, patient, statements, rng, tell)
    else:
        messages = render(skill, patient=tell(statements), answer=proposed.name)
        reply = {
            "p_true": lambda: str(proposed.id == truth.id),
            "ce": lambda: f"[{elicited_score(p)}]",
            "cot_ce": lambda: f"{reasons(world, proposed, patient.facts)}. [{elicited_score(p)}]",
            "topk_ce": lambda: " ".join(
                f"G{i}: [{stretched(p, s)}]" for i, s in enumerate((0, -0.5, 0.5, -1, 1), 1)
            ),
        }[skill]()
    chances = np.array([p, 1 - p]) if skill == "p_true" else None
    return Example(skill, messages, reply, patient, proposed.id, p, chances)


def talkative(world: World, rng: np.random.Generator) -> Patient:
    """A patient who tells and denies much: more to hold criteria against."""
    return world.draw(
        rng, talk=float(rng.choice((0.5, 0.7, 0.9))), denial=float(rng.choice((0.4, 0.8)))
    )


def shown_passages(condition: str, rng: np.random.Generator) -> list[Passage]:
    """Some of the condition's passages among some of others, in any order; now and then none of its
    own."""
    own, every = by_condition()[condition], passages()
    keep = own if rng.random() < 0.5 else [p for p in own if rng.random() < 0.6]
    extra = [
        p
        for p in (every[i] for i in rng.choice(len(every), int(rng.integers(0, 13)), replace=False))
        if p not in own
    ]
    listed = [*keep, *extra]
    return listed if rng.random() < 0.4 else [listed[i] for i in rng.permutation(len(listed))]


def _options(rng: np.random.Generator) -> frozenset[str]:
    drawn = int(rng.choice(len(VARIANTS), p=list(VARIANTS.values())))
    return frozenset(list(VARIANTS)[drawn])


def _library_example(world: World, rng: np.random.Generator, skill: str) -> Example:
    condition = world.conditions[int(rng.integers(len(world.conditions)))]
    nobody = Patient(condition.id, "female", ())
    if skill == "keyword":
        return Example(
            skill, render("keyword", answer=condition.name), f"[{keywords()[condition.id]}]", nobody
        )
    options = _options(rng) | {"profile"}
    shown = (
        shown_passages(condition.id, rng)
        if "retrieval" in options
        else by_condition()[condition.id]
    )
    criteria = ev.criteria_of(condition.id, shown)
    write = ev.profile_json if "structure" in options else ev.profile_prose
    found = library_text(shown) if "retrieval" in options else None
    messages = render("profile", answer=condition.name, passages=found, options=options)
    return Example(skill, messages, write(criteria, "importance" in options), nobody)


def _lookup_example(world: World, rng: np.random.Generator) -> Example:
    options = frozenset(next(iter(VARIANTS)))
    while True:
        patient = talkative(world, rng)
        facts, statements = patient.facts[: int(rng.integers(1, 6))], told(world, patient, rng)
        statements = statements[: len(facts)]
        condition = world.knowledge.conditions[patient.condition]
        own = ev.criteria_of(condition.id, by_condition()[condition.id])
        spoken = [c for c in own if ev.mark(c, facts, statements).level != "missing"]
        if spoken:
            break
    others = [c for c in own if c not in spoken]
    listed = [spoken[i] for i in rng.permutation(len(spoken))][: 1 + int(rng.random() < 0.4)]
    listed += [others[i] for i in rng.permutation(len(others))][: int(rng.integers(0, 3))]
    listed = [listed[i] for i in rng.permutation(len(listed))]
    marks = [ev.mark(c, facts, statements) for c in listed]
    reply = ev.evidence_json(marks).partition('\n"summary"')[0]
    messages = render(
        "evidence",
        patient=text_of(statements),
        answer=condition.name,
        profile=ev.profile_json(listed),
        options=options,
    )
    return Example("lookup", messages, reply, patient, condition.id)


def _evidence(
    proposed: Condition,
    patient: Patient,
    statements: tuple[Statement, ...],
    rng: np.random.Generator,
    tell: Tell,
) -> tuple[Messages, str]:
    options = _options(rng)
    importance = "importance" in options
    every = by_condition()[proposed.id]
    shown = (
        every if "profile" in options and rng.random() < 0.6 else shown_passages(proposed.id, rng)
    )
    criteria = ev.criteria_of(proposed.id, shown)
    if "profile" in options:
        criteria = criteria or ev.criteria_of(proposed.id, every)
        if rng.random() < SHORT_PROFILES:
            some = min(int(rng.integers(1, 5)), len(criteria))
            criteria = [
                criteria[i] for i in np.sort(rng.choice(len(criteria), some, replace=False))
            ]
    marks = [ev.mark(c, patient.facts, statements) for c in criteria]
    whole = {"profile", "structure"} <= options
    write = ev.profile_json if "structure" in options else ev.profile_prose
    messages = render(
        "evidence",
        patient=tell(statements),
        answer=proposed.name,
        profile=write(criteria, importance),
        passages=library_text(shown),
        options=options,
    )
    return messages, (ev.evidence_json if whole else ev.verdict_json)(marks, importance)
