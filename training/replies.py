"""The package's own prompts, rendered for generated patients, with the reply an informed clinician
would give.

What is taught:

- ``diagnosis``: the patient's condition, in square brackets, on the exact posterior of all
  conditions; ``prior``: the same with the patient left out; ``hard``: the model's own answer, as if
  it were certain.
- ``p_true``, ``ce``, ``cot_ce``, ``topk_ce``: how sure a proposed diagnosis is. **Scores are exact
  posteriors**, not stretched and by no formula. ``cot_ce`` names first what speaks for it (findings
  that the table lists for it and the patient affirms), against it (listed ones that are denied) and
  what it leaves unexplained. Most proposals are the model's own answers, some those of a hasty
  reader, so that a wrong one is plausible.
- ``keyword``, ``profile``, ``evidence``: MedConf's steps (``training/evidence.py``), whole and with
  each ablation. A profile is asked for with the passages in changing subsets and orders, so that it
  must be read off them; evidence is met often where something contradicts the proposal. ``lookup``
  is the evidence prompt for a patient who has told little and a profile of one to four criteria,
  with the reply up to the end of its list: short and dense.
- ``ask``, ``enough``, ``patient``: a consultation (``training/talk.py``). ``rephrase_reply``,
  ``rephrase_question``: other words for the same (``training/rewording.py``). ``doctor``, ``plan``,
  ``review_prescriptions``, ``review_tests``: a panel and its reviewers (``training/clinic.py``).

Patients speak in the table's words, in conversation, or in a report (``training/manner.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trustlab.agents.medconf import library_text
from trustlab.knowledge.findings import Condition, phrase_list
from trustlab.models.base import Messages
from trustlab.prompts import render
from trustlab.records import Statement

from . import evidence as ev
from . import talk
from .clinic import doctor_row, plan_row, review_prescriptions_row, review_tests_row
from .manner import MANNERS, tell
from .passages import Passage, by_condition, keywords, passages
from .rewording import question_row, reply_row
from .speech import spoken, told
from .world import Fact, Patient, World

TALK: Mapping[str, Callable[[World, np.random.Generator], tuple[Patient, talk.Row]]] = {
    "ask": talk.ask_row,
    "enough": talk.enough_row,
    "patient": talk.patient_row,
    "rephrase_reply": reply_row,
    "rephrase_question": question_row,
    "doctor": doctor_row,
    "plan": plan_row,
    "review_prescriptions": review_prescriptions_row,
    "review_tests": review_tests_row,
}
VARIANTS = {
    ("retrieval", "profile", "structure", "importance"): 0.72,
    ("retrieval", "profile", "structure"): 0.07,
    ("retrieval", "profile", "importance"): 0.07,
    ("profile", "structure", "importance"): 0.07,
    ("retrieval", "structure", "importance"): 0.07,
}
"""The whole procedure and its four ablations: their shares of the profile and evidence examples."""
MANNER = {"diagnosis": (0.58, 0.28), "hard": (0.5, 0.25), "evidence": (0.8, 0.12)}
"""Shares of the patients told in the table's words and in conversation; the rest in reports."""
OTHER_MANNER = (0.72, 0.18)
CONSULTED = 0.25
"""Share of the table's patients who were asked."""
TALKATIVE, SHORT_PROFILES = 0.6, 0.4
"""Shares of the evidence examples with a patient who tells much, and with a profile of one to four
criteria."""
OWN, HASTY = 0.6, 0.4
"""Share of the proposals that are the model's own answers; of the rest, those of a hasty reader."""
AGAINST = 0.5
"""Share of the evidence examples that hold a contradiction, where one is found in ten draws."""
SCORED = ("p_true", "ce", "cot_ce", "topk_ce", "evidence", "hard")
OWN_ANSWER = -2
"""Stands for the model's own answer until it is known."""
GUESSES = (0.0, -0.5, 0.5, -1.0, 1.0)
"""Log-odds by which five guesses differ from the posterior."""
Part = str | float
"""Text of a reply, or a score in it: a posterior."""


@dataclass(frozen=True)
class Row:
    """One exchange: the messages, the reply in parts, and what could stand in its place.

    ``chances`` are exact: of each condition being the answer (shape (condition,)), or of True and
    False. Training on them instead of on the one reply that was drawn teaches the same law with
    less noise. ``options``: every reply that would do, with its chance.
    """

    skill: str
    messages: Messages
    reply: tuple[Part, ...]
    chances: np.ndarray | None = None
    options: Mapping[str, float] | None = None


@dataclass
class Draft:
    """A patient about whom something is asked, before the model's own answer is known."""

    skill: str
    patient: Patient
    statements: tuple[Statement, ...]
    text: str
    posterior: np.ndarray
    proposed: int = -1


def rows_of(
    world: World, rng: np.random.Generator, shares: Mapping[str, float], n: int, answer: Any
) -> list[Row]:
    """``n`` rows; ``answer(texts)`` gives the model's own diagnoses, by place, -1 for no one."""
    skills = rng.choice(list(shares), size=n, p=list(shares.values()))
    made: list[Row] = []
    drafts: list[Draft] = []
    for skill in map(str, skills):
        if skill in TALK:
            _, (messages, reply, options) = TALK[skill](world, rng)
            made.append(Row(skill, messages, (reply,), options=options))
        elif skill == "lookup":
            made.append(_lookup_row(world, rng))
        elif skill in ("keyword", "profile"):
            made.append(_library_row(world, rng, skill))
        elif skill == "prior":
            truth = world.conditions[int(rng.choice(len(world.prior), p=world.prior))]
            asked = render("diagnosis", patient=None)
            made.append(Row(skill, asked, (f"[{truth.name}]",), chances=world.prior))
        else:
            drafts.append(_draft(world, rng, skill))
    settled = [None if d.skill not in SCORED else _given(world, d, rng) for d in drafts]
    waiting = [d for d, given in zip(drafts, settled, strict=True) if given == OWN_ANSWER]
    own = iter(answer([d.text for d in waiting]))
    for d, given in zip(drafts, settled, strict=True):
        if given is not None:
            d.proposed = next(own) if given == OWN_ANSWER else given
            d.proposed = d.proposed if d.proposed >= 0 else _plausible(world, d, rng)
    return made + [_row(world, d, rng) for d in drafts]


def nobody(texts: Sequence[str]) -> list[int]:
    """The answers of no model: a plausible one is proposed in their place."""
    return [-1] * len(texts)


def _draft(world: World, rng: np.random.Generator, skill: str) -> Draft:
    table, conversation = MANNER.get(skill, OTHER_MANNER)
    u = rng.random()
    manner = MANNERS[0 if u < table else 1 if u < table + conversation else 2]
    if manner == "table" and skill != "evidence" and rng.random() < CONSULTED:
        patient, facts, answers = talk.consulted(world, rng)
        every = (*facts, *answers)
        statements = tuple(spoken(world, f, rng) for f in every)
        text = text_of(talk.in_vain(world, statements, rng))
        chances = world.posterior(facts, answers=answers)
        return Draft(skill, replace(patient, facts=every), statements, text, chances)
    much = skill == "evidence" and rng.random() < TALKATIVE
    patient = talkative(world, rng) if much else world.draw(rng)
    return Draft(skill, patient, *tell(world, patient, manner, rng))


def _given(world: World, d: Draft, rng: np.random.Generator) -> int:
    """A condition to be judged: for evidence now and then one that something told speaks against;
    the model's own answer; or another plausible one."""
    if d.skill == "hard":
        return OWN_ANSWER
    if d.skill == "evidence" and rng.random() < AGAINST:
        for i in rng.permutation(np.argsort(-d.posterior)[:10]):
            if _contradicted(world, int(i), d):
                return int(i)
    return OWN_ANSWER if rng.random() < OWN else _plausible(world, d, rng)


def _plausible(world: World, d: Draft, rng: np.random.Generator) -> int:
    """A hasty reader's, or one of the posterior's."""
    chances = d.posterior
    if rng.random() < HASTY:
        some = d.patient.facts[: int(rng.integers(1, max(2, len(d.patient.facts) // 2 + 1)))]
        chances = world.posterior(some) if rng.random() < 0.5 else d.posterior**0.5
    return int(rng.choice(len(chances), p=chances / chances.sum()))


def _contradicted(world: World, i: int, d: Draft) -> bool:
    criteria = ev.criteria_of(world.conditions[i].id, by_condition()[world.conditions[i].id])
    return any(ev.mark(c, d.patient.facts, d.statements).level == "contradicted" for c in criteria)


def _row(world: World, d: Draft, rng: np.random.Generator) -> Row:
    if d.skill == "diagnosis":
        truth = world.knowledge.conditions[d.patient.condition]
        asked = render("diagnosis", patient=d.text)
        return Row(d.skill, asked, (f"[{truth.name}]",), chances=d.posterior)
    condition, p = world.conditions[d.proposed], float(d.posterior[d.proposed])
    if d.skill == "hard":
        return Row(d.skill, render("diagnosis", patient=d.text), (f"[{condition.name}]",))
    if d.skill == "evidence":
        return _evidence_row(world, d, p, rng)
    messages = render(d.skill, patient=d.text, answer=condition.name)
    if d.skill == "p_true":
        said = str(condition.id == d.patient.condition)
        return Row(d.skill, messages, (said,), chances=np.array([p, 1 - p]))
    if d.skill == "topk_ce":
        odds = np.log(np.clip(p, 1e-6, 1 - 1e-6) / (1 - np.clip(p, 1e-6, 1 - 1e-6)))
        parts: list[Part] = []
        for k, shift in enumerate(GUESSES, 1):
            guess = float(1 / (1 + np.exp(-odds - shift)))
            parts += [f"G{k}: [" if k == 1 else f"] G{k}: [", guess]
        return Row(d.skill, messages, (*parts, "]"))
    why = "" if d.skill == "ce" else f"{reasons(world, condition, d.patient.facts)}. "
    return Row(d.skill, messages, (f"{why}[", p, "]"))


def _evidence_row(world: World, d: Draft, p: float, rng: np.random.Generator) -> Row:
    """MedConf's last step, whole or with an ablation; its score is the posterior."""
    options, condition = _options(rng), world.conditions[d.proposed]
    importance, every = "importance" in options, by_condition()[condition.id]
    has_profile = "profile" in options
    shown = every if has_profile and rng.random() < 0.6 else shown_passages(condition.id, rng)
    criteria = ev.criteria_of(condition.id, shown)
    if has_profile:
        criteria = criteria or ev.criteria_of(condition.id, every)
        if rng.random() < SHORT_PROFILES:
            some = min(int(rng.integers(1, 5)), len(criteria))
            chosen = np.sort(rng.choice(len(criteria), some, replace=False))
            criteria = [criteria[i] for i in chosen]
    marks = [ev.mark(c, d.patient.facts, d.statements) for c in criteria]
    write = ev.profile_json if "structure" in options else ev.profile_prose
    messages = render(
        "evidence", patient=d.text, answer=condition.name, profile=write(criteria, importance),
        passages=library_text(shown), options=options,  # type: ignore[arg-type]
    )  # fmt: skip
    whole = {"profile", "structure"} <= options
    reply = ev.evidence_json(marks, importance) if whole else ev.verdict_json(marks)
    before, after = reply.split(ev.OPEN)
    return Row(d.skill, messages, (f"{before}<<", p, f">>{after}"))


def _library_row(world: World, rng: np.random.Generator, skill: str) -> Row:
    condition = world.conditions[int(rng.integers(len(world.conditions)))]
    if skill == "keyword":
        asked = render("keyword", answer=condition.name)
        return Row(skill, asked, (f"[{keywords()[condition.id]}]",))
    options = _options(rng) | {"profile"}
    retrieved = "retrieval" in options
    shown = shown_passages(condition.id, rng) if retrieved else by_condition()[condition.id]
    write = ev.profile_json if "structure" in options else ev.profile_prose
    found = library_text(shown) if retrieved else None  # type: ignore[arg-type]
    messages = render("profile", answer=condition.name, passages=found, options=options)
    criteria = ev.criteria_of(condition.id, shown)
    return Row(skill, messages, (write(criteria, "importance" in options),))


def _lookup_row(world: World, rng: np.random.Generator) -> Row:
    options = frozenset(next(iter(VARIANTS)))
    while True:
        patient = talkative(world, rng)
        facts, statements = patient.facts[: int(rng.integers(1, 6))], told(world, patient, rng)
        statements = statements[: len(facts)]
        condition = world.knowledge.conditions[patient.condition]
        own = ev.criteria_of(condition.id, by_condition()[condition.id])
        said = [c for c in own if ev.mark(c, facts, statements).level != "missing"]
        if said:
            break
    others = [c for c in own if c not in said]
    listed = [said[i] for i in rng.permutation(len(said))][: 1 + int(rng.random() < 0.4)]
    listed += [others[i] for i in rng.permutation(len(others))][: int(rng.integers(0, 3))]
    listed = [listed[i] for i in rng.permutation(len(listed))]
    marks = [ev.mark(c, facts, statements) for c in listed]
    reply = ev.evidence_json(marks).partition('\n"summary"')[0]
    messages = render(
        "evidence", patient=text_of(statements), answer=condition.name,
        profile=ev.profile_json(listed), options=options,
    )  # fmt: skip
    return Row("lookup", messages, (reply,))


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


def talkative(world: World, rng: np.random.Generator) -> Patient:
    """A patient who tells and denies much: more to hold criteria against."""
    return world.draw(
        rng, talk=float(rng.choice((0.5, 0.7, 0.9))), denial=float(rng.choice((0.4, 0.8)))
    )


def shown_passages(condition: str, rng: np.random.Generator) -> list[Passage]:
    """Some of the condition's passages, at least one, among some of others, in any order."""
    own, every = by_condition()[condition], passages()
    keep = own if rng.random() < 0.5 else [p for p in own if rng.random() < 0.6]
    keep = keep or own[:1]
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
