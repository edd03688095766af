"""What an embedded model can do, measured once training is over: ``python -m training.evaluate
--name NAME [--ddxplus FOLDER]``.

Those that diagnose are asked about generated patients they never met, where the exact posterior's
own accuracy stands beside the model's: the best that anyone could do in that world. Real DDXPlus
patients are only reported on, never chosen by. ``embedded-clinic`` is given its own tasks
(``evaluate_talk``, ``evaluate_clinic``). Writes ``data/models/NAME/evaluation.json``.
"""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import trustlab as tl
from trustlab.levels import n_shown
from trustlab.metrics import auroc, brier, ece
from trustlab.models.base import Model, Request
from trustlab.models.by_name import EMBEDDED
from trustlab.records import SUPPORT_LEVELS, Assessment, Case, Generation, Statement, View

from .evaluate_clinic import clinic_report
from .evaluate_talk import talk_report
from .evidence import MOST, mark
from .passages import Criterion, Passage, by_condition, passages
from .replies import nobody, rows_of
from .speech import told
from .world import Fact, Patient, World

SEED = 77_001
GENERATED, TASKS = 60, 200
"""Generated patients; for ``embedded-clinic`` examples of each task."""
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
ASSESSED = re.compile(
    r'"description": "([^"]*)", "evidence": (null|".*?"), "support_level": "(\w+)"'
)
"""A criterion, its quotation and its label in a reply."""


def evaluated(
    name: str, model: Model, n: int | None = None, ddxplus: Sequence[Case] = (), n_jobs: int = 1
) -> dict[str, Any]:
    """What the model ``name`` can do, on ``n`` generated patients or examples of each task."""
    world, n = World(), n or (TASKS if name == "embedded-clinic" else GENERATED)
    found: dict[str, Any] = {"revision": model.revision}
    if name == "embedded-clinic":
        tasks = {"talk": talk_report(world, model, n), "clinic": clinic_report(world, model, n)}
        return found | tasks
    cases, patients = generated_cases(world, n)
    best = {"best_possible_accuracy": ceiling(world, patients)}
    found["generated"] = report(world, cases, model, n_jobs) | best
    if name == "embedded":
        found["labels"] = labels_right(world, model, 2 * n)
    if ddxplus:
        found["ddxplus"] = report(world, ddxplus, model, n_jobs)
    return found


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


def report(world: World, cases: Sequence[Case], model: Model, n_jobs: int = 1) -> dict[str, Any]:
    """Accuracy by level, how well each confidence separates and is calibrated over all levels, and
    MedConf's steps."""
    setup = tl.Setup(cache=":memory:", n_jobs=n_jobs, keep_generations=True)
    run = tl.benchmark(list(cases), [model], METHODS, setup=setup)
    rows: Any = run.confidence.merge(
        run.answers[["case_id", "level", "correct"]],
        on=["case_id", "level"],
        validate="many_to_one",
    )
    levels: Any = run.answers.groupby("level")["correct"].mean()
    asked = run.parameters["replies_read"].get(model.name, {}).get("diagnosis", {})
    found: dict[str, Any] = {
        "cases": len(cases),
        "unreadable_answers": asked.get("unread", 0) + asked.get("placeholder", 0),
        "accuracy": {
            str(k): None if v != v else round(float(v), 4)  # nothing is claimed of too few read
            for k, v in levels.items()
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
                "auroc_within_level": _within(part),
                "ece": round(ece(correct, confidence), 4),
                "brier": round(brier(correct, confidence), 4),
            }
    return found | {"medconf_steps": steps(world, tl.views(cases), run.generations)}


def _within(part: Any) -> float | None:
    """Mean over the levels that have right and wrong answers; ``None`` where none has."""
    values = [
        auroc(p["correct"].to_numpy(float), p["confidence"].to_numpy())
        for _, p in part.groupby("level")
        if p["correct"].nunique() == 2
    ]
    return round(float(np.mean(values)), 4) if values else None


def labels_right(world: World, model: Model, n: int, seed: int = 909) -> dict[str, dict[str, Any]]:
    """Of ``n`` lists of evidence as they are taught, contradictions made frequent: by true label
    how many criteria, and the shares labelled so and quoted so."""
    rng, rows = np.random.default_rng(seed), []
    while len(rows) < n:
        made = rows_of(world, rng, {"evidence": 1.0}, n, nobody)
        rows += [r for r in made if '"criteria"' in str(r.reply[0])]
    rows = rows[:n]
    replies = model.generate([Request(r.messages, max_tokens=600) for r in rows])
    hits: dict[str, list[tuple[bool, bool]]] = {level: [] for level in SUPPORT_LEVELS}
    for row, (reply, *_) in zip(rows, replies, strict=True):
        said = {name: found for name, *found in ASSESSED.findall(reply.text or "")}
        for name, quote, level in ASSESSED.findall(str(row.reply[0])):
            its_quote, its_level = said.get(name, ("", ""))
            hits[level].append((its_level == level, its_quote == quote))
    return {
        level: {"n": len(found)}
        | dict(zip(("labelled", "quoted"), np.mean(found, axis=0).round(4).tolist(), strict=True))
        for level, found in hits.items()
        if found
    }


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
    parser.add_argument("--name", choices=list(EMBEDDED), default="embedded")
    parser.add_argument("--n", type=int, help="generated patients, or examples of each task")
    parser.add_argument("--ddxplus", type=Path, help="folder of the official DDXPlus release")
    parser.add_argument(
        "--n-ddxplus", type=int, default=120, help="DDXPlus patients, picked at random"
    )
    parser.add_argument("--n-jobs", type=int, default=1, help="processes that hold the model")
    args = parser.parse_args()
    cases: Sequence[Case] = ()
    if args.ddxplus and args.name != "embedded-clinic":
        cases = tl.load_cases("ddxplus", path=args.ddxplus, n=args.n_ddxplus)
    model = tl.open_model(args.name, n_jobs=args.n_jobs)
    text = json.dumps(evaluated(args.name, model, args.n, cases, args.n_jobs), indent=1)
    (EMBEDDED[args.name] / "evaluation.json").write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
