"""What an embedded model can do, measured once training is over: ``python -m training.evaluate
[--ddxplus FOLDER]``.

On generated patients it never met the exact posterior's own accuracy stands beside the model's: the
best that anyone could do in that world. Real DDXPlus patients are only reported on, never chosen
by. Writes ``data/models/NAME/evaluation.json``.
"""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import trustlab as tl
from trustlab.levels import n_shown
from trustlab.metrics import auroc, brier, ece
from trustlab.models import Model
from trustlab.paths import DATA
from trustlab.records import Assessment, Case, Generation, Statement, View

from .evaluate_clinic import clinic_report
from .evaluate_talk import talk_report
from .evidence import MOST, mark
from .passages import Criterion, Passage, by_condition, passages
from .speech import told
from .world import Fact, Patient, World

SEED = 77_001
METHODS = [
    "sequence_probability",
    "poc",
    "ce",
    "cot_ce",
    "topk_ce",
    "p_true",
    "medconf",
    "medconf_weighted",
]


def generated_cases(world: World, n: int) -> tuple[list[Case], list[Patient]]:
    """``n`` talkative patients with more than 10 statements, from a seed of their own; half of them
    deny little."""
    rng, cases, patients = np.random.default_rng(SEED), [], []
    while len(cases) < n:
        patient = world.draw(rng, talk=0.9, denial=(0.0, 0.4)[len(cases) % 2])
        if 10 < len(patient.facts) <= 36:
            condition = world.knowledge.conditions[patient.condition]
            statements = told(world, patient, rng, loose=0.0)
            cases.append(
                Case(
                    f"generated-{len(cases)}",
                    "generated",
                    statements,
                    condition.name,
                    condition.names,
                )
            )
            patients.append(patient)
    return cases, patients


def ceiling(world: World, patients: list[Patient]) -> dict[str, float]:
    """Accuracy of the exact posterior's first choice, by level."""
    right = {}
    for level in tl.LEVELS:
        hits = [
            world.conditions[
                int(world.posterior(p.facts[: n_shown(len(p.facts), level)]).argmax())
            ].id
            == p.condition
            for p in patients
        ]
        right[str(level)] = round(float(np.mean(hits)), 4)
    return right


def report(world: World, cases: list[Case], model: Model) -> dict[str, Any]:
    """Accuracy by level, how well each confidence separates and is calibrated over all levels, and
    MedConf's steps."""
    run = tl.benchmark(cases, [model], METHODS, setup=tl.Setup(cache=":memory:"))
    rows: Any = run.confidence.merge(
        run.answers[["case_id", "level", "correct"]],
        on=["case_id", "level"],
        validate="many_to_one",
    )
    found: dict[str, Any] = {
        "cases": len(cases),
        "unreadable_answers": int(
            (run.answers["answer"].isna() & run.answers["correct"].notna()).sum()
        ),
        "accuracy": {
            str(k): round(float(v), 4)
            for k, v in run.answers.groupby("level")["correct"].mean().items()
        },
        "replies_that_parse": {},
    }
    for name in METHODS:
        part = rows[rows["method"].eq(name) & rows["confidence"].notna() & rows["correct"].notna()]
        found["replies_that_parse"][name] = round(len(part) / len(run.answers), 4)
        correct, confidence = part["correct"].to_numpy(float), part["confidence"].to_numpy()
        if len(part) and 0 < correct.mean() < 1:
            found[name] = {
                "n": len(part),
                "mean_by_level": {
                    str(k): round(float(v), 4)
                    for k, v in part.groupby("level")["confidence"].mean().items()
                },
                "auroc": round(auroc(correct, confidence), 4),
                "auroc_within_level": round(_within(part), 4),
                "ece": round(ece(correct, confidence), 4),
                "brier": round(brier(correct, confidence), 4),
            }
    return found | {"medconf_steps": steps(world, tl.views(cases), run.generations)}


def _within(part: Any) -> float:
    values = [
        auroc(p["correct"].to_numpy(float), p["confidence"].to_numpy())
        for _, p in part.groupby("level")
    ]
    return float(np.nanmean(values))


def steps(world: World, views: Sequence[View], generations: Sequence[Generation]) -> dict[str, Any]:
    """How often each of MedConf's steps is right, over all assessments that got so far."""
    assessed = [(v, g.assessment) for v, g in zip(views, generations, strict=True) if g.assessment]
    first = {a.diagnosis: a for _, a in assessed}.values()
    entries = [c.description in _stated(world, a) for a in first for c in a.profile]
    recall = [
        name in {c.description for c in a.profile}
        for a in first
        if a.profile
        for name in _stated(world, a)[:MOST]
    ]
    labels: list[tuple[str, str]] = []
    quotes: list[bool] = []
    for v, a in assessed:
        facts = [fact_of(world, s) for s in v.statements]
        for e in a.evidence:
            if e.quote is not None:
                quotes.append(bool(e.quote_occurs))
            criterion = _criterion(world, a.diagnosis, e.criterion.description)
            if criterion is not None:
                labels.append((mark(criterion, facts, v.statements).level, e.support_level))
    by_label = {
        level: [said == level for true, said in labels if true == level]
        for level in ("supported", "missing", "contradicted")
    }
    summaries = [a.summary_agrees for _, a in assessed if a.evidence]
    return {
        "assessments": len(assessed),
        "with_a_score": _share([a.score is not None for _, a in assessed]),
        "keywords_that_find": _share([bool(a.passages) for a in first]),
        "profile_entries_the_passages_state": _share(entries),
        "criteria_of_the_passages_in_the_profile": _share(recall),
        "criteria_labelled_right": _share([true == said for true, said in labels]),
        "labelled_right_by_true_label": {level: _share(hits) for level, hits in by_label.items()},
        "criteria": len(labels),
        "quotations": len(quotes),
        "quotations_that_occur": _share(quotes),
        "summaries_that_agree": _share([s is True for s in summaries]),
    }


def _share(hits: Sequence[bool]) -> float | None:
    return round(float(np.mean(hits)), 4) if hits else None


def _stated(world: World, a: Assessment) -> list[str]:
    """What the passages state of the diagnosis, in the order they were shown; a profile has room
    for the first of it."""
    condition, by_id = world.knowledge.condition_named(a.diagnosis), {p.id: p for p in passages()}
    shown = [by_id[i] for i in a.passages if i in by_id]
    return [
        c.name for c in _criteria(p for p in shown if condition and p.condition == condition.id)
    ]


def _criteria(listed: Iterable[Passage]) -> list[Criterion]:
    return [c for p in listed for s in p.sentences for c in s.criteria]


def _criterion(world: World, diagnosis: str, description: str) -> Criterion | None:
    """The criterion that a profile's entry names: the diagnosis's own, or any finding of that
    name."""
    condition = world.knowledge.condition_named(diagnosis)
    own = _criteria(by_condition()[condition.id]) if condition else []
    findings = (Criterion(f.id, f.name, "weak") for f in world.findings)
    return next((c for c in (*own, *findings) if c.name == description), None)


def fact_of(world: World, statement: Statement) -> Fact:
    """What a statement tells, with the places it names."""
    assert statement.finding is not None and statement.affirmed is not None
    words, places = statement.text.partition("\nPatient: ")[2], []
    if statement.finding == "pain_site":
        for v in sorted(world.knowledge.values.values(), key=lambda v: -len(v.phrase)):
            if v.kind == "site" and v.phrase in words:
                places.append(v.id)
                words = words.replace(v.phrase, "")
    return Fact(statement.finding, statement.affirmed, tuple(places))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", default="embedded")
    parser.add_argument("--generated", type=int, default=200, help="generated patients")
    parser.add_argument("--ddxplus", type=Path, help="folder of the official DDXPlus release")
    parser.add_argument(
        "--n", type=int, default=171, help="DDXPlus patients, picked at random (the paper has 171)"
    )
    args = parser.parse_args()
    world, model = World(), tl.open_model(args.name)
    cases, patients = generated_cases(world, args.generated)
    result = {
        "revision": model.revision,
        "generated": (
            report(world, cases, model) | {"best_possible_accuracy": ceiling(world, patients)}
        ),
        "talk": talk_report(world, model),
        "clinic": clinic_report(world, model),
    }
    if args.ddxplus:
        result["ddxplus"] = report(
            world, tl.load_cases("ddxplus", path=args.ddxplus, n=args.n), model
        )
    target = DATA / "models" / args.name / "evaluation.json"
    target.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
