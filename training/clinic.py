"""What a panel takes: to reason and diagnose, to propose a plan, and to review the plans of others.

- ``doctor``: what was told and denied (three of each at most), the three likeliest conditions, then
  the diagnosis; all conditions that it may be, with their exact chances.
- ``plan``: what ``data/knowledge/plans.yml`` gives for the proposed diagnosis. A careful doctor
  takes the first drug for each need that the rule check finds safe (safe with caution failing that,
  none failing both) and leaves out the tests it flags; a careless one (:data:`CARELESS`) does not
  look at the chart. So plans are unsafe now and then, and a reviewer has something to find.
- ``review_prescriptions``, ``review_tests``: what the rule check says of a list of drugs and tests,
  with the words that speak against it and the rule's reason. Some of the lists are plans,
  the others any drugs and tests; most charts hold facts that speak against some of them. Drugs and
  tests under names that the table does not have are UNKNOWN.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from trustlab.agents.rule_check import (
    DUPLICATE,
    REPEAT,
    REPEAT_IN_PLAN,
    check_prescriptions,
    check_tests,
)
from trustlab.agents.safety_table import Entry, Usual, load_safety
from trustlab.knowledge.chart import LISTS, NONE, Chart, chart_text
from trustlab.knowledge.findings import phrase_list
from trustlab.prompts import numbered, render
from trustlab.records import FLAGS, RATINGS, Mark, Plan, Prescription

from .charts import draw, posterior, with_trouble
from .speech import told
from .talk import Row, in_vain
from .world import Fact, Patient, World

CARELESS = 0.45
TROUBLED = 0.75
"""Share of the plans whose chart is given a fact that speaks against one of the usual items."""
AGAINST = 0.45
"""Chance of each reviewed item that the chart is given a fact that speaks against it."""
FROM_PLAN = 0.4
BRIEF = 0.6
"""Share of the reviewed patients of whom only a few words are shown: the chart is what matters."""
UNKNOWN_ITEM = 0.06
"""Share of the items under a name that the table does not have."""
NO_DRUGS = (
    "zelotrine", "cardivex", "amolidone", "pravexil", "norbetan", "quivastine", "tolmeprazine",
    "ferulimab", "oxandrel", "besilarone",
)  # fmt: skip
NO_TESTS = (
    "aura reading",
    "pulse photogram",
    "iris map",
    "vital resonance scan",
    "full humour profile",
    "bone tone index",
)
"""Made-up names."""
MAX_OTHER = 4
CHILD = 12
"""Years below which doses are per kilogram."""


def thinking(world: World, facts: tuple[Fact, ...], chances: np.ndarray) -> str:
    """What was told and denied, and what it may be: a doctor's reasoning, on one line."""
    names = world.knowledge.findings

    def listed(affirmed: bool) -> str:
        some = [
            names[f.finding].name
            for f in facts
            if f.affirmed == affirmed and not names[f.finding].parent
        ][:3]
        return phrase_list(some) if some else "nothing"

    best = [
        world.conditions[i].name
        for i in np.argsort(-chances, kind="stable")[:3]
        if chances[i] > 0.01
    ]
    may = best[0] if len(best) == 1 else ", ".join(best[:-1]) + " or " + best[-1]
    return (
        f"<thinking_process>Told: {listed(True)}. Denied: {listed(False)}. It may be"
        f" {may}.</thinking_process>"
    )


def doctor_row(world: World, rng: np.random.Generator) -> tuple[Patient, Row]:
    """The prompt ``doctor`` and its reply."""
    patient = world.draw(rng)
    chart = draw(world, patient, rng)
    p = posterior(world, patient, chart)
    words = _text(world, patient, rng)
    thought = thinking(world, patient.facts, p)
    replies = {
        f"{thought}\n[{c.name}]": float(x)
        for c, x in zip(world.conditions, p, strict=True)
        if x > 1e-4
    }
    truth = f"{thought}\n[{world.knowledge.conditions[patient.condition].name}]"
    replies.setdefault(truth, float(p[world.index[patient.condition]]) + 1e-9)
    return patient, (render("doctor", chart=chart_text(chart), patient=words), truth, replies)


def plan_row(world: World, rng: np.random.Generator) -> tuple[Patient, Row]:
    """The prompt ``plan`` and its reply."""
    patient = world.draw(rng)
    chart = draw(world, patient, rng)
    p = posterior(world, patient, chart)
    condition = world.conditions[int(rng.choice(len(p), p=p))]
    usual, safety = load_safety().plans[condition.id], load_safety()
    if rng.random() < TROUBLED:
        first = [safety.drugs[need[0]] for need in usual.prescriptions] + [
            safety.tests[t] for t in usual.tests[:3]
        ]
        chart = with_trouble(chart, first[int(rng.integers(len(first)))], rng)
    plan = (
        careless_plan(usual, chart.age, rng)
        if rng.random() < CARELESS
        else careful_plan(usual, chart, condition.name, rng)
    )
    words = _text(world, patient, rng)
    reply = plan_json(plan)
    return patient, (
        render("plan", chart=chart_text(chart), patient=words, answer=condition.name),
        reply,
        {reply: 1.0},
    )


def careful_plan(usual: Usual, chart: Chart, diagnosis: str, rng: np.random.Generator) -> Plan:
    """For each need the first drug of the best rating that is left, and the tests that are not
    flagged, up to a drawn number."""
    chosen: list[Prescription] = []
    for need in usual.prescriptions:
        rated = []
        for drug in need:
            tried = Plan((*chosen, prescription(drug, chart.age)))
            rated.append(check_prescriptions(tried, chart, diagnosis)[-1].verdict)
        for rating in RATINGS[:2]:
            if rating in rated:
                chosen.append(prescription(need[rated.index(rating)], chart.age))
                break
    tests: list[str] = []
    for test in usual.tests[: int(rng.integers(1, len(usual.tests) + 1))]:
        name = load_safety().tests[test].name
        if (
            check_tests(Plan(tuple(chosen), (*tests, name)), chart, diagnosis)[-1].verdict
            == FLAGS[0]
        ):
            tests.append(name)
    return Plan(tuple(chosen), tuple(tests))


def careless_plan(usual: Usual, age: int | None, rng: np.random.Generator) -> Plan:
    """The first drug for each need, now and then another, and the first tests, whatever else the
    chart says."""
    drugs = [
        need[0] if rng.random() < 0.7 else need[int(rng.integers(len(need)))]
        for need in usual.prescriptions
    ]
    tests = usual.tests[: int(rng.integers(1, len(usual.tests) + 1))]
    return Plan(
        tuple(prescription(d, age) for d in dict.fromkeys(drugs)),
        tuple(load_safety().tests[t].name for t in tests),
    )


def prescription(drug: str, age: int | None = None) -> Prescription:
    """The drug in its usual regimen; a child's (per kilogram) below :data:`CHILD` years, where
    there is one."""
    entry = load_safety().drugs[drug]
    child = (
        [r for r in entry.regimens if "/kg" in r.dose] if age is not None and age < CHILD else []
    )
    regimen = (child or entry.regimens)[0]
    return Prescription(entry.name, regimen.dose, regimen.route)


def review_row(world: World, rng: np.random.Generator, name: str) -> tuple[Patient, Row]:
    """The prompt ``name`` of the two reviewers, and its reply."""
    safety, of_drugs = load_safety(), name == "review_prescriptions"
    patient = world.draw(rng)
    chart = draw(world, patient, rng)
    condition = (
        world.conditions[int(rng.integers(len(world.conditions)))] if rng.random() < 0.3 else None
    )
    condition = condition or world.knowledge.conditions[patient.condition]
    usual = safety.plans[condition.id]
    plan = careless_plan(usual, chart.age, rng)
    if rng.random() >= FROM_PLAN:
        plan = any_plan(rng)
    plan = _with_unknown(plan, rng, of_drugs)
    for entry in _entries(plan, of_drugs):
        if entry and rng.random() < AGAINST:
            chart = with_trouble(chart, entry, rng)
    if of_drugs:
        listed, marks = (
            [str(p) for p in plan.prescriptions],
            check_prescriptions(plan, chart, condition.name),
        )
    else:
        listed, marks = list(plan.tests), check_tests(plan, chart, condition.name)
    brief = replace(patient, facts=patient.facts[: int(rng.integers(1, 4))])
    words = _text(world, brief if rng.random() < BRIEF else patient, rng)
    reply = marks_json(marks, "rating" if of_drugs else "flag")
    messages = render(
        name, chart=chart_text(chart), patient=words, answer=condition.name, plan=numbered(listed)
    )
    return patient, (messages, reply, {reply: 1.0})


def review_prescriptions_row(world: World, rng: np.random.Generator) -> tuple[Patient, Row]:
    """The prompt ``review_prescriptions`` and its reply."""
    return review_row(world, rng, "review_prescriptions")


def review_tests_row(world: World, rng: np.random.Generator) -> tuple[Patient, Row]:
    """The prompt ``review_tests`` and its reply."""
    return review_row(world, rng, "review_tests")


def any_plan(rng: np.random.Generator) -> Plan:
    """Any drugs and any tests of the table, one to :data:`MAX_OTHER` of each."""
    drugs, tests = _prescribed(), list(load_safety().tests.values())
    some = [
        drugs[i] for i in rng.choice(len(drugs), int(rng.integers(1, MAX_OTHER + 1)), replace=False)
    ]
    ordered = [
        tests[i].name
        for i in rng.choice(len(tests), int(rng.integers(1, MAX_OTHER + 1)), replace=False)
    ]
    return Plan(tuple(map(prescription, some)), tuple(ordered))


@lru_cache(maxsize=1)
def _prescribed() -> list[str]:
    return [d.id for d in load_safety().drugs.values() if d.regimens]


def _entries(plan: Plan, of_drugs: bool) -> list[Entry | None]:
    safety = load_safety()
    if of_drugs:
        return [safety.drug_named(p.drug) for p in plan.prescriptions]
    return [safety.test_named(t) for t in plan.tests]


def _with_unknown(plan: Plan, rng: np.random.Generator, of_drugs: bool) -> Plan:
    """The plan with some items under names that the table does not have; with one at least, where
    it was empty."""
    drugs, tests = list(plan.prescriptions), list(plan.tests)
    if of_drugs:
        drugs = drugs or [prescription(_prescribed()[int(rng.integers(len(_prescribed())))])]
        drugs = [
            (
                Prescription(str(rng.choice(NO_DRUGS)), p.dose, p.route)
                if rng.random() < UNKNOWN_ITEM
                else p
            )
            for p in drugs
        ]
    else:
        tests = [str(rng.choice(NO_TESTS)) if rng.random() < UNKNOWN_ITEM else t for t in tests]
    return Plan(tuple(drugs), tuple(tests))


def plan_json(plan: Plan) -> str:
    """The plan as a doctor is taught to write it, on one line."""
    drugs = [{"drug": p.drug, "dose": p.dose, "route": p.route} for p in plan.prescriptions]
    return json.dumps({"prescriptions": drugs, "tests": list(plan.tests)}, ensure_ascii=False)


def marks_json(marks: Sequence[Mark], key: str) -> str:
    """The marks as a reviewer is taught to write them, an item a line."""
    rows = [
        json.dumps(
            {
                "id": i,
                "quote": m.quote,
                key: m.verdict,
                "reason": None if m.verdict == "UNKNOWN" else m.reason,
            },
            ensure_ascii=False,
        )
        for i, m in enumerate(marks, 1)
    ]
    return "[\n" + ",\n".join(rows) + "\n]"


def pieces() -> Iterator[str]:
    """The fixed pieces of charts, plans and these replies, and the table's phrases: one token
    each."""
    safety = load_safety()
    yield from (
        "\nAge: ",
        " years",
        "\nSex: ",
        "\nPregnancy: ",
        "not recorded",
        NONE,
        "male",
        "female",
    )
    yield from (f"\n{head}: " for head in LISTS.values())
    yield from ("\nKidney function: ", "eGFR ", " ml/min")
    yield from (
        f.phrase
        for facts in (safety.allergies, safety.illnesses, safety.pregnancy)
        for f in facts.values()
    )
    for drug in safety.drugs.values():
        yield drug.name
        for regimen in drug.regimens:
            yield from (regimen.dose, regimen.route)
    yield from (t.name for t in safety.tests.values())
    yield from (
        r.reason for rules in (safety.drug_rules, safety.test_rules) for r in rules.values()
    )
    yield from (DUPLICATE, REPEAT, REPEAT_IN_PLAN)
    yield from (
        '{"prescriptions": [',
        '{"drug": "',
        '", "dose": "',
        '", "route": "',
        '"}',
        '], "tests": [',
        '", "',
        '"]}',
        "]}",
    )
    yield from (
        '{"prescriptions": [], "tests": [',
        '"',
        '\n{"id": ',
        ', "quote": "',
        ', "quote": null',
    )
    for key, verdicts in (("rating", RATINGS), ("flag", FLAGS)):
        yield from (f'{quote}, "{key}": "{v}", "reason": ' for v in verdicts for quote in ("", '"'))
    yield from ("null}", "null},", '"},', "\n]", "[")
    yield from (
        "<thinking_process>Told: ",
        ". Denied: ",
        ". It may be ",
        ".</thinking_process>",
        " or ",
        "nothing",
        "\n[",
    )


def _text(world: World, patient: Patient, rng: np.random.Generator) -> str:
    return "\n".join(s.text for s in in_vain(world, told(world, patient, rng), rng))
