"""Charts of generated patients: age, sex, pregnancy, allergies, medication, illnesses, kidney
function, tests done.

The law. Age is drawn evenly from the condition's range, or (:data:`ANY_AGE`) from 1 to 95; the rest
independently of the condition, so that only age and sex speak for a diagnosis. What the patient
told agrees: an illness that was affirmed is in the chart, one that was denied is not, nor is the
condition itself (that a few illnesses are never there where they are the condition is left out of
:func:`posterior`, exact otherwise). A field is now and then not recorded; some charts hold age and
sex alone, a few nothing.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from trustlab.agents.safety_table import Entry, Rule, Safety, load_safety
from trustlab.knowledge.chart import Chart
from trustlab.records import normalise

from .world import Patient, World

ANY_AGE, AGES = 0.15, (1, 95)
FERTILE = (15, 50)
PREGNANT, BREASTFEEDING = 0.15, 0.06
N_ALLERGIES = (0.55, 0.35, 0.10)
N_DRUGS = (0.30, 0.30, 0.25, 0.15)
N_ILLNESSES = (0.45, 0.35, 0.20)
N_TESTS = (0.55, 0.30, 0.15)
"""Chances of 0, 1, 2 ... of them."""
KIDNEYS = ((0.60, 60, 100), (0.20, 30, 59), (0.20, 8, 29))
"""Chance, lowest and highest eGFR in ml/min/1.73 m²."""
NOT_RECORDED, ONLY_AGE_AND_SEX, NOTHING = 0.1, 0.15, 0.03


def draw(world: World, patient: Patient, rng: np.random.Generator) -> Chart:
    """A chart for a generated patient."""
    safety, condition = load_safety(), world.knowledge.conditions[patient.condition]
    low, high = AGES if rng.random() < ANY_AGE else condition.age
    age = int(rng.integers(max(low, AGES[0]), min(high, AGES[1]) + 1))
    chart = full(world, patient, age, rng)
    u = rng.random()
    if u < NOTHING:
        return Chart()
    if u < NOTHING + ONLY_AGE_AND_SEX:
        return agreeing(Chart(age, patient.sex), world, patient, safety)
    for field in ("pregnancy", "allergies", "medication", "conditions", "tests_done"):
        if rng.random() < NOT_RECORDED:
            chart = replace(chart, **{field: None})
    if rng.random() < 4 * NOT_RECORDED:
        chart = replace(chart, renal_function=None)
    return agreeing(chart, world, patient, safety)


def full(world: World, patient: Patient, age: int, rng: np.random.Generator) -> Chart:
    """A chart of a patient of that age in which everything is recorded."""
    safety = load_safety()
    chart = Chart(
        age,
        patient.sex,
        pregnancy=_pregnancy(patient.sex, age, rng),
        allergies=_some([a.phrase for a in safety.allergies.values()], N_ALLERGIES, rng),
        medication=_some([d.name for d in safety.drugs.values()], N_DRUGS, rng),
        conditions=_some([i.phrase for i in safety.illnesses.values()], N_ILLNESSES, rng),
        renal_function=_kidneys(rng),
        tests_done=_some([t.name for t in safety.tests.values()], N_TESTS, rng),
    )
    return agreeing(chart, world, patient, safety)


def agreeing(chart: Chart, world: World, patient: Patient, safety: Safety) -> Chart:
    """The chart without what contradicts the patient's words or names the condition, with the
    illnesses that were affirmed."""
    told = {f.finding: f.affirmed for f in patient.facts}
    names = {normalise(n) for n in world.knowledge.conditions[patient.condition].names}
    if "pregnancy" in told and chart.sex == "female":
        chart = replace(chart, pregnancy="pregnant" if told["pregnancy"] else "not pregnant")
    kept = [
        f.phrase
        for phrase in chart.conditions or ()
        if (f := safety.fact_named("illnesses", phrase))
        and f.finding not in told
        and not _names(f.phrase, f.synonyms) & names
    ]
    kept += [f.phrase for f in safety.illnesses.values() if told.get(f.finding or "")]
    if chart.conditions is not None or kept:
        chart = replace(chart, conditions=tuple(kept))
    if chart.medication:
        denied = {
            d.name for d in safety.drugs.values() if d.finding and told.get(d.finding) is False
        }
        chart = replace(chart, medication=tuple(m for m in chart.medication if m not in denied))
    return chart


def posterior(world: World, patient: Patient, chart: Chart) -> np.ndarray:
    """P(condition | what was told, and the age and sex of the chart), exact, shape (condition,)."""
    p = world.posterior(patient.facts, chart.sex)
    if chart.age is None:
        return p
    low, high = np.array([c.age for c in world.conditions]).T
    low, high = np.maximum(low, AGES[0]), np.minimum(high, AGES[1])
    inside = (chart.age >= low) & (chart.age <= high)
    p = p * (ANY_AGE / (AGES[1] - AGES[0] + 1) + (1 - ANY_AGE) * inside / (high - low + 1))
    return p / p.sum()


@lru_cache(maxsize=1)
def troubles() -> dict[str, tuple[Rule, ...]]:
    """Drug or test id -> its rules that a fact of the chart can set off."""
    safety = load_safety()
    listed = [*safety.drugs.values(), *safety.tests.values()]
    return {
        e.id: tuple(r for r in safety.rules_for(e) if r.kind not in ("also", "sex")) for e in listed
    }


def with_trouble(chart: Chart, entry: Entry, rng: np.random.Generator) -> Chart:
    """The chart with a fact that speaks against ``entry`` by one of its rules, where age and sex
    allow for one."""
    rules = [r for r in troubles()[entry.id] if _possible(r, chart)]
    if not rules:
        return chart
    return with_fact(chart, rules[int(rng.integers(len(rules)))], rng)


def with_fact(chart: Chart, rule: Rule, rng: np.random.Generator) -> Chart:
    """The chart with a fact that ``rule`` looks for; a limit of age is left to the age there is."""
    safety = load_safety()

    def one(entries) -> str:
        hits = [
            e
            for e in entries.values()
            if (e.kinds if isinstance(e, Entry) else {e.id}) & rule.values
        ]
        chosen = hits[int(rng.integers(len(hits)))]
        return chosen.name if isinstance(chosen, Entry) else chosen.phrase

    lists = {
        "allergy": ("allergies", safety.allergies),
        "condition": ("conditions", safety.illnesses),
        "medication": ("medication", safety.drugs),
        "done": ("tests_done", safety.tests),
    }
    if rule.kind in lists:
        field, entries = lists[rule.kind]
        new = one(entries)
        return replace(
            chart,
            **{
                field: (
                    *[phrase for phrase in getattr(chart, field) or () if phrase != new][:2],
                    new,
                )
            },
        )
    if rule.kind == "pregnancy":
        return replace(chart, pregnancy=one(safety.pregnancy))
    if rule.kind == "egfr_below" and rule.number:
        return replace(chart, renal_function=int(rng.integers(8, int(rule.number))))
    return chart


def _possible(rule: Rule, chart: Chart) -> bool:
    age = chart.age or 0
    if rule.kind == "pregnancy":
        return chart.sex == "female" and FERTILE[0] <= age <= FERTILE[1]
    if rule.kind in ("age_below", "age_from") and rule.number:
        return chart.age is not None and ((age < rule.number) == (rule.kind == "age_below"))
    return True


def _names(phrase: str, synonyms: tuple[str, ...]) -> set[str]:
    return {normalise(n) for n in (phrase, *synonyms)}


def _pregnancy(sex: str, age: int, rng: np.random.Generator) -> str | None:
    if sex == "male" or not FERTILE[0] <= age <= FERTILE[1]:
        return None
    u = rng.random()
    return (
        "pregnant"
        if u < PREGNANT
        else "breastfeeding"
        if u < PREGNANT + BREASTFEEDING
        else "not pregnant"
    )


def _kidneys(rng: np.random.Generator) -> int:
    _, low, high = KIDNEYS[int(rng.choice(len(KIDNEYS), p=[k[0] for k in KIDNEYS]))]
    return int(rng.integers(low, high + 1))


def _some(
    phrases: list[str], chances: tuple[float, ...], rng: np.random.Generator
) -> tuple[str, ...]:
    n = int(rng.choice(len(chances), p=chances))
    return tuple(phrases[i] for i in rng.choice(len(phrases), n, replace=False))
