"""04: consultations recorded to their full length, and what stopping at a threshold brings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
import pandas as pd
from pydantic import Field, model_validator

from trustlab.agents.consultation import TURN_LIMIT, Consultation, Patient, consult, turn_view
from trustlab.agents.patient import NOT_SO, FactPatient, ModelPatient
from trustlab.choices import Count, Weight, choices
from trustlab.confidence import select
from trustlab.metrics.estimate import Rows, mean_between, measure, rate
from trustlab.metrics.schema import table
from trustlab.metrics.stopping import along, best_threshold, fold_of, stop_turns, thresholds_of
from trustlab.metrics.ties import reaches
from trustlab.models.base import Model
from trustlab.models.cache import CachedModel
from trustlab.parsing.counts import why_few
from trustlab.paths import save_tables
from trustlab.records import Case
from trustlab.runs.experiment import benchmark, refuse_waiting
from trustlab.runs.folder.replies_log import recording
from trustlab.runs.formatted import together
from trustlab.runs.run import Run
from trustlab.runs.workbench import Workbench, opened
from trustlab.settings import Setup, given

FOUR = ("medconf", "asp", "poc", "ce")  # the methods of the published experiment
FACTS = "facts"
TURNS = [
    "model", "case_id", "dataset", "turn", "question", "tries", "reply", "outcome", "why", "fact",
    "reference", "n_utterances",
]  # fmt: skip
KEPT = ("turns", "ended", "enough", "answers", "confidence", "calls")


@choices
class Asked(Workbench):
    """The choices of notebook 04."""

    UNUSED = ("levels", "reviewer", "wording", "medical_proxy")

    max_turns: Count
    """Questions in the longest consultation."""
    tries: Count = 4
    folds: Annotated[int, Field(ge=2, description="a whole number, at least 2")] = 5
    """A threshold is chosen on the other folds than the one it is tried on."""
    price: Weight
    """Of one utterance, as a share of accuracy, when a threshold is chosen."""
    threshold: float | dict[str, float] | None = Field(
        None, description="a number, numbers by method (a dict), or None"
    )
    """Each method, or each that is named, also stops at this confidence."""

    @model_validator(mode="after")
    def _threshold(self) -> Self:
        if isinstance(self.threshold, dict):
            select(list(self.threshold))
        return self


setup = Asked.of


@dataclass(frozen=True)
class ConsultationRun:
    """Tidy tables of recorded consultations; ``level`` is the number of questions asked so far.

    - ``turns`` (:data:`TURNS`): ``tries``: which of the doctor's tries the question was,
      ``reference``: what the rule patient would have said (:meth:`FactPatient.said`).
    - ``ended``: model case_id dataset n_turns ended why. ``enough``: model case_id level enough (1,
      0, NaN unreadable). ``calls``: a row a request.
    - ``answers`` and ``confidence``: the benchmark's, with ``n_utterances`` among the answers.
      After its end a consultation keeps its last state.
    """

    turns: pd.DataFrame
    ended: pd.DataFrame
    enough: pd.DataFrame
    answers: pd.DataFrame
    confidence: pd.DataFrame
    calls: pd.DataFrame
    patient: str
    doctor: dict[str, str] = field(default_factory=dict)
    """Who asked, by name and revision, if not the models themselves."""
    consultations: dict[str, tuple[Consultation, ...]] = field(default_factory=dict, repr=False)
    runs: dict[str, Run] = field(default_factory=dict, repr=False)

    @property
    def families(self) -> dict[str, str]:
        """Method -> family, for the methods of this run."""
        return next(iter(self.runs.values())).families if self.runs else {}

    @property
    def parameters(self) -> dict[str, Any]:
        """Those of the first model's benchmark, with what those of all say of their models."""
        each = [run.parameters for run in self.runs.values()]
        models = {name: revision for p in each for name, revision in p["models"].items()}
        doctor = {"doctor": self.doctor} if self.doctor else {}
        return each[0] | {"models": models} | doctor | together(each) if each else {}

    def save(self, folder: Path) -> None:
        """Write the tables as CSV, in full precision."""
        save_tables(self, KEPT, folder)


def consultations(
    cases: Sequence[Case],
    models: Sequence[Model],
    methods: str | Sequence[str] | None = None,
    max_turns: int = 12,
    setup: Setup | Workbench | None = None,
    *,
    tries: int = 4,
) -> ConsultationRun:
    """Consult about every case for each model; every method judges the diagnosis named after each
    turn.

    - ``methods``: those of ``setup``, else the four of the published experiment.
    - ``tries``: questions that the doctor may try at a turn, see :func:`consult`.
    - ``setup.doctor`` asks (``None``: the model itself or its sibling for that), ``setup.patient``
      answers (``None``: the doctor's model; "facts": the rule patient).
    - Below ``run_dir`` each model has a folder with its benchmark, which counts the talk's calls.
    - Baselines that read ``information_level`` know when a consultation ended. ``ValueError`` as
      the benchmark and :func:`consult`.
    """
    setup = opened(setup).shared()
    methods = given(methods, setup.methods, FOUR)
    select(methods)
    doctor: Model | None = setup.role("doctor", models)
    patient: Model | str | None = setup.role("patient")
    talked: dict[str, tuple[Consultation, ...]] = {}
    runs: dict[str, Run] = {}
    levels = list(range(max_turns + 1))
    with recording(setup.run_dir) as attach:
        for model in models:
            with speakers(doctor or model, patient, setup) as (with_cache, speaker):
                attach(*with_cache)
                talked[model.name] = consult(
                    cases,
                    with_cache[0],
                    speaker,
                    max_turns=max_turns,
                    tries=tries,
                    seed=setup.seed,
                    reading=setup.reading,
                )
                refuse_waiting([*with_cache, doctor, patient])
                told = [c.case_told for c in talked[model.name]]
                folder = "".join(c if c.isalnum() or c in "-_." else "-" for c in model.name)
                runs[model.name] = benchmark(
                    told,
                    [model],
                    methods,
                    levels,
                    setup.below(folder),
                    asked_before=with_cache,
                    show=turn_view,
                )
    answering = patient or doctor
    if answering is None:
        name = "the model itself"
    else:
        name = answering if isinstance(answering, str) else answering.name
    run = _tables(talked, runs, name, {doctor.name: doctor.revision} if doctor else {})
    if setup.run_dir:
        run.save(setup.run_dir)
    return run


@contextmanager
def speakers(
    doctor: Model, patient: Model | str | None, setup: Workbench
) -> Iterator[tuple[list[CachedModel], Patient]]:
    """The models that talk, doctor first, over the store of ``setup``, and who answers; closed at
    the end."""
    inner = doctor.model if isinstance(doctor, CachedModel) else doctor
    others = [m for m in (inner, patient) if not isinstance(m, str | None)]
    with_cache = [setup.cached(m) for m in others]
    model = ModelPatient(with_cache[-1], setup.seed, setup.reading)
    try:
        yield with_cache, FactPatient() if patient == FACTS else model
    finally:
        for mine in (m for m in with_cache if m not in (doctor, patient)):
            mine.close()


def _tables(
    talked: dict[str, tuple[Consultation, ...]],
    runs: dict[str, Run],
    patient: str,
    doctor: dict[str, str],
) -> ConsultationRun:
    of = {(name, c.case.case_id): c for name, cs in talked.items() for c in cs}
    turns = [row for (name, _), c in of.items() for row in _turn_rows(name, c)]
    ended = [(*key, c.case_told.dataset, len(c.turns), c.ended, c.why) for key, c in of.items()]
    unread = {n: why_few(r.parameters["replies_read"], n, ["enough"]) for n, r in runs.items()}
    enough = [
        (*key, level, np.nan if unread[key[0]] else said)
        for key, c in of.items()
        for level, said in enumerate(c.enough)
    ]
    answers, confidence, calls = (
        pd.concat([getattr(run, part) for run in runs.values()], ignore_index=True)
        for part in ("answers", "confidence", "calls")
    )
    states = zip(answers["model"], answers["case_id"], answers["level"], strict=True)
    decided = pd.DataFrame(enough, columns=["model", "case_id", "level", "enough"])
    return ConsultationRun(
        turns=pd.DataFrame(turns, columns=TURNS),
        ended=pd.DataFrame(ended, columns=[*TURNS[:3], "n_turns", "ended", "why"]),
        enough=decided.astype({"enough": float}),
        answers=answers.assign(n_utterances=[of[m, i].utterances(k) for m, i, k in states]),
        confidence=confidence,
        calls=calls,
        patient=patient,
        doctor=doctor,
        consultations=talked,
        runs=runs,
    )


def _turn_rows(name: str, c: Consultation) -> Iterator[tuple]:
    rule = FactPatient()
    about = (name, c.case.case_id, c.case_told.dataset)
    for k, turn in enumerate(c.turns, 1):
        said = turn.said
        known = rule.said(c.case, turn.question)
        fact, reference = ("" if x is None else str(x) for x in (said.fact, known.fact))
        fact = NOT_SO if said.denied else fact
        told = (turn.question, turn.tries, said.words, said.outcome, said.why, fact)
        yield (*about, k, *told, reference or known.why, c.utterances(k))


def consult_until(
    cases: Sequence[Case],
    model: Model,
    method: str,
    threshold: float,
    max_turns: int = 12,
    setup: Setup | Workbench | None = None,
    *,
    tries: int = 4,
) -> tuple[tuple[Consultation, ...], pd.DataFrame]:
    """Ask about each case only while the confidence of ``method`` is below ``threshold``.

    - Consultations in the cases' order, "confident" where they stopped, and the benchmark's answers
      of every state asked about: at its last ``level`` the diagnosis that a case stopped with.
    - At most ``max_turns`` questions; a missing confidence (NaN) reaches no threshold.
    - With the cache of :func:`consultations` nothing is asked twice, where the method wants as much
      of a diagnosis. ``information_level`` knows no whole here.
    - Nothing is written but replies. ``ValueError`` as there, for a threshold that is no number, no
      cases, and a method that is not registered.
    """
    if threshold != threshold or not len(cases):
        raise ValueError(f"threshold is {threshold}, of {len(cases)} cases")
    setup = opened(setup).with_(quiet=True, run_dir=None).shared()
    select([method])
    doctor: Model | None = setup.role("doctor", [model])
    patient: Model | str | None = setup.role("patient")
    runs: list[Run] = []

    def judged(going: Sequence[Consultation]) -> Run:
        told = [c.case_told for c in going]
        level = len(going[0].turns)  # all that go on have had as many questions
        runs.append(benchmark(told, [model], [method], [level], setup, show=turn_view))
        return runs[-1]

    def stop(going: Sequence[Consultation]) -> list[bool]:
        table = judged(going).confidence
        sure = dict(zip(table["case_id"], table["confidence"], strict=True))
        return [bool(reaches(sure[c.case.case_id], threshold)) for c in going]

    with speakers(doctor or model, patient, setup) as (with_cache, speaker):
        made = consult(
            cases,
            with_cache[0],
            speaker,
            max_turns=max_turns,
            tries=tries,
            seed=setup.seed,
            stop=stop,
            reading=setup.reading,
        )
        if late := [c for c in made if c.ended == TURN_LIMIT]:
            judged(late)  # the diagnosis at the end
    return made, pd.concat([r.answers for r in runs], ignore_index=True)


REACHED = {
    "accuracy": rate("accuracy"),
    "utterances": mean_between("utterances", "fewest", "most"),
    "early": rate("early"),
    "questions": mean_between("questions", "none", "length"),
}
"""Means a case; ``early`` is the share of cases that stop before the last turn. Utterances and
questions lie between those of stopping at once and of never stopping."""


@dataclass(frozen=True)
class Grid:
    """One model's consultations as arrays over (n cases, T + 1 levels); no NaN in the first two.
    ``length`` (n,): questions in all; ``enough``: NaN where none was had; ``left_out``: cases not
    among n."""

    case_ids: np.ndarray
    correct: np.ndarray
    utterances: np.ndarray
    length: np.ndarray
    enough: np.ndarray
    confidence: dict[str, np.ndarray]
    left_out: np.ndarray

    @property
    def known(self) -> dict[str, np.ndarray]:
        """The confidence of the methods that have any value."""
        return {m: sure for m, sure in self.confidence.items() if not np.isnan(sure).all()}


def grid(run: ConsultationRun, model: str) -> Grid:
    """The consultations of ``model`` that were graded throughout."""

    def wide(of: Any, value: str) -> pd.DataFrame:
        return of.pivot(index="case_id", columns="level", values=value).astype(float)

    held = (run.answers, run.confidence, run.enough, run.ended)
    mine, told, decided, ended = (x[x["model"] == model] for x in held)
    every = wide(mine, "correct")
    correct = every.dropna()
    cases = correct.index
    parts = {m: told[told["method"] == m] for m in dict.fromkeys(told["method"])}
    return Grid(
        case_ids=cases.to_numpy(),
        correct=correct.to_numpy(),
        utterances=wide(mine, "n_utterances").loc[cases].to_numpy(),
        length=ended.set_index("case_id")["n_turns"].loc[cases].to_numpy(int),
        enough=wide(decided, "enough").reindex(cases, columns=correct.columns).to_numpy(),
        confidence={m: wide(p, "confidence").loc[cases].to_numpy() for m, p in parts.items()},
        left_out=every.index.difference(cases).to_numpy(),
    )


def chosen_thresholds(
    g: Grid, n_folds: int = 5, price: float = 0.005, seed: int = 0
) -> dict[str, np.ndarray]:
    """Method -> the threshold for each case, (n,), chosen on the other folds
    (:func:`~trustlab.metrics.stopping.best_threshold`).
    Methods without any value are left out, and all where there are fewer than two cases."""
    folds = fold_of(g.case_ids, n_folds, seed)
    known = g.known if len(folds) > 1 else {}
    found = {method: np.empty(len(folds)) for method in known}
    for (method, sure), fold in product(known.items(), np.unique(folds)):
        others = folds != fold
        right = g.correct[others]
        said = g.utterances[others]
        found[method][~others] = best_threshold(sure[others], right, said, price)
    return found


def stops(g: Grid, picked: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Where each policy stops each case, level (n,): methods at the thresholds ``picked``.
    "decides itself": the doctor said enough; "fixed k": after k questions; "oracle": first right,
    else at the end."""
    n = g.correct.shape[0]
    last = g.correct.shape[1] - 1
    found = {m: stop_turns(g.confidence[m], each[:, None]) for m, each in picked.items()}
    found["decides itself"] = stop_turns(g.enough, 1.0)
    found |= {f"fixed {k}": np.full(n, k) for k in sorted({0, *range(2, last + 1, 2), last})}
    return found | {"oracle": stop_turns(g.correct, 1.0)}


def stopped(
    run: ConsultationRun,
    model: str,
    *,
    n_folds: int = 5,
    price: float = 0.005,
    seed: int = 0,
    threshold: float | Mapping[str, float] | None = None,
) -> dict[str, Rows]:
    """Policy -> a row a case with what it brought: :data:`REACHED` and ``threshold``.
    ``n_folds``, ``price``, ``seed``: of :func:`chosen_thresholds`. A ``threshold`` of all methods
    or by method is a policy of each that has any value, such as "asp at 0.8"."""
    g = grid(run, model)
    chosen = chosen_thresholds(g, n_folds, price, seed)
    picked: dict[str, np.ndarray | float] = {**chosen}
    at = stops(g, chosen)
    known = g.known
    given = threshold if isinstance(threshold, Mapping) else dict.fromkeys(known, threshold)
    for method, level in given.items():
        if level is not None and method in known:
            picked[policy := f"{method} at {level:g}"] = level
            at[policy] = stop_turns(known[method], level)
    return {policy: _stopped(g, at[policy], picked.get(policy, np.nan)) for policy in at}


def frontier_table(run: ConsultationRun, model: str) -> pd.DataFrame:
    """Accuracy, utterances and share of early stops at every threshold of every method.
    Strictest first (infinity: never early). Methods without any value are left out."""
    g = grid(run, model)
    labelled = (
        ({"model": model, "method": m, "threshold": t}, _stopped(g, stop_turns(sure, t)))
        for m, sure in g.known.items()
        for t in thresholds_of(sure)
    )
    shown = {name: REACHED[name] for name in ("accuracy", "utterances", "early")}
    return table(measure(labelled, shown), ["model", "method", "threshold"])


def chosen_table(
    run: ConsultationRun,
    model: str,
    *,
    n_folds: int = 5,
    price: float = 0.005,
    seed: int = 0,
    threshold: float | Mapping[str, float] | None = None,
) -> pd.DataFrame:
    """What each policy of :func:`stops` brings (:data:`REACHED`), thresholds picked on other cases.
    ``threshold_low``, ``threshold_high``: of the folds, infinity for never early. The
    choices are those of :func:`stopped`."""
    lines: list[dict[str, Any]] = []
    of_policy = stopped(run, model, n_folds=n_folds, price=price, seed=seed, threshold=threshold)
    for policy, rows in of_policy.items():
        picked: Any = rows.asked["threshold"]
        label = {
            "model": model,
            "policy": policy,
            "threshold_low": picked.min(),
            "threshold_high": picked.max(),
        }
        lines += measure([(label, rows)], REACHED)
    return table(lines, ["model", "policy", "threshold_low", "threshold_high"])


def _stopped(g: Grid, at: np.ndarray, threshold: np.ndarray | float = np.nan) -> Rows:
    """A row a case stopped at turns ``at`` (n,); those left out lack all."""
    reached = {
        "accuracy": along(g.correct, at),
        "utterances": along(g.utterances, at),
        "fewest": g.utterances[:, 0],
        "most": g.utterances.max(axis=1),
        "early": (at < g.correct.shape[1] - 1).astype(float),
        "questions": np.minimum(at, g.length),
        "none": 0,
        "length": g.length,
        "threshold": threshold,
    }
    cases = pd.DataFrame(reached, index=pd.Index(g.case_ids, name="case_id"))
    every = cases.reindex([*g.case_ids, *g.left_out]).reset_index()
    return Rows.of(every, "accuracy", none="no consultation could be judged throughout")


def dry_run(cases: Sequence[Case], models: Sequence[Model], asked: Asked) -> None:
    """Ask what the notebook asks, for ``trustlab plan``."""
    consultations(cases, models, None, asked.max_turns, asked, tries=asked.tries)
