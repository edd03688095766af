"""Write ``data/starter/structured.jsonl``, 240 generated patients from a seed that no training set
uses, each with its whole record, and ``posterior.jsonl``: what could be known of each at every
information level.

``python -m training.starter`` gives the same files each time.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import asdict

import numpy as np

from trustlab.agents.safety_table import load_safety
from trustlab.knowledge.findings import Condition
from trustlab.levels import n_shown
from trustlab.paths import DATA
from trustlab.records import LEVELS, Statement, normalise

from .charts import agreeing, full, with_trouble
from .talk import untold
from .world import Fact, Patient, World

SEED = 20261124
N_CASES = 240
TALK, DENIAL = 0.85, 0.6
TROUBLED = 0.6
"""Share of the charts that are given a fact that speaks against the usual plan."""
N_STATEMENTS = range(11, 25)
GROWN = frozenset(
    [
        "alcohol_excess",
        "current_smoker",
        "former_smoker",
        "hormone_therapy",
        "unprotected_sex_multiple_partners",
        "stimulant_drug_use",
        "intravenous_drug_use",
        "hiv_positive_partner",
        "energy_drinks",
        "coffee_or_tea",
        "works_in_agriculture",
        "works_in_mining",
        "works_in_construction",
    ]
)
FERTILE = frozenset(
    [
        "pregnancy",
        "missed_period",
        "vaginal_spotting",
        "previous_ectopic",
        "prolonged_breastfeeding",
        "heavy_periods",
    ]
)
"""Findings that only a grown-up, or a woman from 16 to 50, can affirm: they bound the age that is
drawn."""
NO_COMPLAINT = frozenset(
    [
        "allergen_exposure",
        "antacid_relief",
        "eased_leaning_forward",
        "exertional_symptoms",
        "fatty_food_pain",
        "gluten_trigger",
        "pain_on_deep_breath",
        "pain_on_movement",
        "relief_after_stool",
        "still_passing_stool_or_gas",
        "stress_trigger",
        "worse_after_eating",
        "worse_at_night",
        "worse_lying_down",
        "worse_with_straining",
        "worsening_with_less_effort",
    ]
)
"""Symptoms that nobody comes with: they say what another one depends on, or that something still
works."""


def speaks_diagnosis(text: str, condition: Condition) -> bool:
    """Whether one of the condition's names stands in ``text`` as whole words."""
    said = f" {normalise(text)} "
    return any(f" {normalise(name)} " in said for name in condition.names)


def rows(world: World) -> list[tuple[dict, Patient]]:
    """The lines of the file in order, each with its patient, the same each time: the condition is
    drawn by its prior, then patients of it until one fits. Charts come from a stream of their
    own."""
    rng, made = np.random.default_rng(SEED), []
    of_charts = np.random.default_rng([SEED, 1])
    while len(made) < N_CASES:
        condition, new = int(rng.choice(len(world.conditions), p=world.prior)), None
        while new is None:
            patient = world.draw(rng, talk=TALK, denial=DENIAL, condition=condition)
            new = row(len(made) + 1, world, patient, rng)
        new["patient"] |= chart_row(world, patient, new["patient"]["age"], of_charts)
        made.append((new, patient))
    return made


def row(number: int, world: World, patient: Patient, rng: np.random.Generator) -> dict | None:
    """The patient as a line of the file, with what is so and not told; ``None`` where too little or
    too much would be told or too little denied, where something else than a complaint comes first,
    no age fits, or something cannot be said without the diagnosis: no statement is dropped."""
    condition = world.knowledge.conditions[patient.condition]
    worded = [_unspoken(world, f, condition, rng) for f in (*patient.facts, *untold(patient))]
    if None in worded:
        return None
    listed = _listed(s for s in worded if s)
    told, record = listed[: len(patient.facts)], listed[len(patient.facts) :]
    age = _age(condition, {f.finding for f in patient.record}, rng)
    few = sum(not s["affirmed"] for s in told) < 2
    if len(told) not in N_STATEMENTS or few or told[0]["finding"] in NO_COMPLAINT or age is None:
        return None
    return {
        "case_id": f"starter-{number:03d}",
        "diagnosis": condition.name,
        "condition": condition.id,
        "patient": {"age": age, "sex": patient.sex},
        "statements": told,
        "record": record,
    }


def _listed(statements: Iterable[Statement]) -> list[dict]:
    return [{"text": s.text, "finding": s.finding, "affirmed": s.affirmed} for s in statements]


def _age(
    condition: Condition, affirmed: Collection[str | None], rng: np.random.Generator
) -> int | None:
    """An age that fits the condition and what is affirmed; ``None`` where none does."""
    low, high = condition.age
    low = max(low, 18 if GROWN & set(affirmed) else 0, 16 if FERTILE & set(affirmed) else 0)
    high = min(high, 50 if FERTILE & set(affirmed) else high)
    return None if low > high else int(rng.integers(low, high + 1))


def _unspoken(
    world: World, fact: Fact, condition: Condition, rng: np.random.Generator
) -> Statement | None:
    """The fact in words that do not speak the diagnosis, if any of some do."""
    tried = (world.statement(fact, rng) for _ in range(12))
    return next((s for s in tried if not speaks_diagnosis(s.text, condition)), None)


LEAST = 1e-4
"""Chances below it are left out of the file."""


def posterior_row(world: World, row: dict, patient: Patient) -> dict:
    """The chance of each diagnosis after the statements of each level, exact under the world's law
    for a reader who knows neither the patient's sex nor how talkative it is.

    What is not told yet counts as not spoken of.
    """
    facts, found = patient.facts, {}
    for n in sorted({n_shown(len(facts), level) for level in LEVELS}):
        chances = zip(world.conditions, world.posterior(facts[:n]), strict=True)
        found[str(n)] = {c.name: round(float(p), 5) for c, p in chances if p >= LEAST}
    return {"case_id": row["case_id"], "posterior": found}


def chart_row(world: World, patient: Patient, age: int, rng: np.random.Generator) -> dict:
    """What is recorded of the patient beside age and sex; in some charts a fact that speaks against
    the usual plan."""
    chart, safety = full(world, patient, age, rng), load_safety()
    usual = safety.plans[patient.condition]
    first = [safety.drugs[need[0]] for need in usual.prescriptions] + [
        safety.tests[t] for t in usual.tests[:2]
    ]
    if rng.random() < TROUBLED:
        chart = agreeing(
            with_trouble(chart, first[int(rng.integers(len(first)))], rng), world, patient, safety
        )
    return {
        k: list(v) if isinstance(v, tuple) else v
        for k, v in asdict(chart).items()
        if k not in ("age", "sex") and v is not None
    }


def text(made: list[dict]) -> str:
    """The rows as the file holds them: one JSON object a line."""
    return "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in made)


def main() -> None:
    world, folder = World(), DATA / "starter"
    both = rows(world)
    made = [new for new, _ in both]
    (folder / "structured.jsonl").write_text(text(made), encoding="utf-8")
    known = [posterior_row(world, *each) for each in both]
    (folder / "posterior.jsonl").write_text(text(known), encoding="utf-8")
    statements = [s for r in made for s in r["statements"]]
    denied = sum(not s["affirmed"] for s in statements) / len(statements)
    n_more, n_conditions = sum(len(r["record"]) for r in made), len({r["condition"] for r in made})
    print(
        f"{len(made)} cases, {len(statements)} statements, {denied:.0%} denials, {n_more} more in"
        f" the records, {n_conditions} conditions"
    )


if __name__ == "__main__":
    main()
