"""What an embedded model can do, measured once training is over: ``python -m training.evaluate [--ddxplus FOLDER]``.

On generated patients it never met the exact posterior's own accuracy stands beside the model's: the best that anyone could
do in that world. Real DDXPlus patients are only reported on, never chosen by. Writes ``data/models/NAME/evaluation.json``.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

import trustlab as tl
from trustlab.levels import n_shown
from trustlab.metrics import auroc, brier, ece
from trustlab.models import Model
from trustlab.paths import DATA
from trustlab.records import Case

from .world import Patient, World

SEED = 77_001
METHODS = ["sequence_probability", "asp", "ce", "p_true"]
JUDGED = ("sequence_probability", "ce", "p_true")


def generated_cases(world: World, n: int) -> tuple[list[Case], list[Patient]]:
    """``n`` talkative patients with more than 10 statements, from a seed of their own; half of them deny little."""
    rng, cases, patients = np.random.default_rng(SEED), [], []
    while len(cases) < n:
        patient = world.draw(rng, talk=0.9, denial=(0.0, 0.4)[len(cases) % 2])
        if 10 < len(patient.facts) <= 36:
            condition = world.knowledge.conditions[patient.condition]
            told = tuple(world.statement(f, rng) for f in patient.facts)
            cases.append(Case(f"generated-{len(cases)}", "generated", told, condition.name, condition.names))
            patients.append(patient)
    return cases, patients


def ceiling(world: World, patients: list[Patient]) -> dict[str, float]:
    """Accuracy of the exact posterior's first choice, by level."""
    right = {}
    for level in tl.LEVELS:
        hits = [
            world.conditions[int(world.posterior(p.facts[: n_shown(len(p.facts), level)]).argmax())].id == p.condition
            for p in patients
        ]
        right[str(level)] = round(float(np.mean(hits)), 4)
    return right


def report(cases: list[Case], model: Model) -> dict[str, Any]:
    """Accuracy by level, and how well three confidences separate and are calibrated over all levels."""
    run: Any = tl.benchmark(cases, [model], METHODS)
    rows: Any = run.confidence.merge(
        run.answers[["case_id", "level", "correct"]], on=["case_id", "level"], validate="many_to_one"
    )
    found: dict[str, Any] = {
        "cases": len(cases),
        "unreadable_answers": int(run.answers["answer"].isna().sum()),
        "accuracy": {str(k): round(float(v), 4) for k, v in run.answers.groupby("level")["correct"].mean().items()},
    }
    for name in JUDGED:
        part = rows[rows["method"].eq(name) & rows["confidence"].notna()]
        correct, confidence = part["correct"].to_numpy(float), part["confidence"].to_numpy()
        found[name] = {
            "n": len(part),
            "mean_by_level": {str(k): round(float(v), 4) for k, v in part.groupby("level")["confidence"].mean().items()},
            "auroc": round(auroc(correct, confidence), 4),
            "auroc_within_level": round(_within(part), 4),
            "ece": round(ece(correct, confidence), 4),
            "brier": round(brier(correct, confidence), 4),
        }
    return found


def _within(part: Any) -> float:
    values = [auroc(p["correct"].to_numpy(float), p["confidence"].to_numpy()) for _, p in part.groupby("level")]
    return float(np.nanmean(values))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", default="embedded")
    parser.add_argument("--generated", type=int, default=300, help="generated patients")
    parser.add_argument("--ddxplus", type=Path, help="folder of the official DDXPlus release")
    args = parser.parse_args()
    world, model = World(), tl.open_model(args.name)
    cases, patients = generated_cases(world, args.generated)
    result = {
        "revision": model.revision,
        "generated": report(cases, model) | {"best_possible_accuracy": ceiling(world, patients)},
    }
    if args.ddxplus:
        result["ddxplus"] = report(tl.load_cases("ddxplus", path=args.ddxplus), model)
    target = DATA / "models" / args.name / "evaluation.json"
    target.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
