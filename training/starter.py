"""Write ``data/starter/structured.jsonl``: 120 generated patients, from a seed that no training set
uses.

``python -m training.starter`` gives the same file each time.
"""

from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np

from trustlab.knowledge import Condition, normalise
from trustlab.paths import DATA
from trustlab.safety.table import load_safety

from .charts import agreeing, full, with_trouble
from .world import Patient, World

SEED = 20261121
N_CASES = 120
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


def speaks_diagnosis(text: str, condition: Condition) -> bool:
    """Whether one of the condition's names stands in ``text`` as whole words."""
    said = f" {normalise(text)} "
    return any(f" {normalise(name)} " in said for name in condition.names)


def row(number: int, world: World, patient: Patient, rng: np.random.Generator) -> dict | None:
    """The patient as a line of the file; ``None`` where too little or too much would be told,
    nothing denied, or no age fits."""
    condition = world.knowledge.conditions[patient.condition]
    told = [world.statement(f, rng) for f in patient.facts]
    told = [s for s in told if not speaks_diagnosis(s.text, condition)]
    denied = sum(not s.affirmed for s in told)
    if len(told) not in N_STATEMENTS or not told[0].affirmed or denied < 2:
        return None
    affirmed = {s.finding for s in told if s.affirmed}
    low, high = condition.age
    low = max(low, 18 if affirmed & GROWN else 0, 16 if affirmed & FERTILE else 0)
    high = min(high, 50 if affirmed & FERTILE else high)
    if low > high:
        return None
    return {
        "case_id": f"starter-{number:03d}",
        "diagnosis": condition.name,
        "condition": condition.id,
        "patient": {"age": int(rng.integers(low, high + 1)), "sex": patient.sex},
        "statements": [
            {"text": s.text, "finding": s.finding, "affirmed": s.affirmed} for s in told
        ],
    }


def rows() -> list[dict]:
    """The lines of the file in order, the same each time; charts come from a stream of their
    own."""
    world, rng, made = World(), np.random.default_rng(SEED), []
    of_charts = np.random.default_rng([SEED, 1])
    while len(made) < N_CASES:
        patient = world.draw(rng, talk=TALK, denial=DENIAL)
        if new := row(len(made) + 1, world, patient, rng):
            new["patient"] |= chart_row(world, patient, new["patient"]["age"], of_charts)
            made.append(new)
    return made


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
    made = rows()
    (DATA / "starter" / "structured.jsonl").write_text(text(made), encoding="utf-8")
    statements = [s for r in made for s in r["statements"]]
    denied = sum(not s["affirmed"] for s in statements) / len(statements)
    n_conditions = len({r["condition"] for r in made})
    print(
        f"{len(made)} cases, {len(statements)} statements, {denied:.0%} denials, {n_conditions}"
        " conditions"
    )


if __name__ == "__main__":
    main()
