"""04: consultations recorded to their full length, and what stopping at a threshold brings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
import pandas as pd
from pydantic import Field, model_validator

from trustlab.agents.consultation import (
    TURN_LIMIT,
    Consultation,
    Patient,
    consult,
    turn_view,
)
from trustlab.agents.patient import NOT_SO, FactPatient, ModelPatient
from trustlab.choices import Count, Weight, choices
from trustlab.confidence import select
from trustlab.metrics.estimate import Rows, mean_between, measure, rate
from trustlab.metrics.schema import table
from trustlab.metrics.stopping import (
    along,
    best_threshold,
    fold_of,
    stop_turns,
    thresholds_of,
)
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
TABLES = ("turns", "ended", "enough", "answers", "confidence", "calls")


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
      ``reference``: what the rule patient would have said (:meth:`FactPatient.answer_to`).
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
    consultations: dict[str, tuple[Consultation, ...]] = field(
        default_factory=dict, repr=False
    )
    runs: dict[str, Run] = field(default_factory=dict, repr=False)

    @property
    def families(self) -> dict[str, str]:
        """Method -> family, for the methods of this run."""
        for run in self.runs.values():  # the first: all have the same methods
            return run.families
        return {}

    @property
    def parameters(self) -> dict[str, Any]:
        """Those of the first model's benchmark, with what those of all say of their models."""
        by_run = [run.parameters for run in self.runs.values()]
        if not by_run:
            return {}
        models = {}
        for parameters in by_run:
            models |= parameters["models"]
        facts = {**by_run[0], "models": models}
        if self.doctor:
            facts["doctor"] = self.doctor
        return facts | together(by_run)

    def save(self, folder: Path) -> None:
        """Write the tables as CSV, in full precision."""
        save_tables(self, TABLES, folder)


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
    talks: dict[str, tuple[Consultation, ...]] = {}
    runs: dict[str, Run] = {}
    levels = list(range(max_turns + 1))
    with recording(setup.run_dir) as attach:
        for model in models:
            with speakers(doctor or model, patient, setup) as (speaking, speaker):
                attach(*speaking)
                talks[model.name] = consult(
                    cases,
                    speaking[0],
                    speaker,
                    max_turns=max_turns,
                    tries=tries,
                    seed=setup.seed,
                    reading=setup.reading,
                )
                refuse_waiting([*speaking, doctor, patient])
                runs[model.name] = benchmark(
                    [consultation.as_case for consultation in talks[model.name]],
                    [model],
                    methods,
                    levels,
                    setup.below(folder_name(model.name)),
                    asked_before=speaking,
                    show=turn_view,
                )
    answering = patient or doctor
    if answering is None:
        answering = "the model itself"
    elif isinstance(answering, Model):
        answering = answering.name
    doctors = {doctor.name: doctor.revision} if doctor else {}
    run = _tables(talks, runs, answering, doctors)
    if setup.run_dir:
        run.save(setup.run_dir)
    return run


def folder_name(model: str) -> str:
    """The name of a model's folder: letters, digits, ``-``, ``_`` and ``.``."""
    return "".join(
        letter if letter.isalnum() or letter in "-_." else "-" for letter in model
    )


@contextmanager
def speakers(
    doctor: Model, patient: Model | str | None, setup: Workbench
) -> Iterator[tuple[list[CachedModel], Patient]]:
    """The models that talk, doctor first, over the store of ``setup``, and who answers; closed at
    the end."""
    inner = doctor.model if isinstance(doctor, CachedModel) else doctor
    talking = [inner]
    if isinstance(patient, Model):
        talking.append(patient)
    cached = [setup.cached(model) for model in talking]
    speaker: Patient = ModelPatient(cached[-1], setup.seed, setup.reading)
    if patient == FACTS:
        speaker = FactPatient()
    try:
        yield cached, speaker
    finally:
        for model in cached:
            if model not in (doctor, patient):
                model.close()


def _tables(
    talks: dict[str, tuple[Consultation, ...]],
    runs: dict[str, Run],
    patient: str,
    doctor: dict[str, str],
) -> ConsultationRun:
    """The tables of the models' consultations and benchmarks."""
    turns = []
    ended = []
    enough = []
    by_key: dict[tuple[str, str], Consultation] = {}
    for model, run in runs.items():
        unread = why_few(run.parameters["replies_read"], model, ["enough"])
        for consultation in talks[model]:
            turns += _turn_rows(model, consultation)
            case = consultation.as_case
            n_turns = len(consultation.turns)
            end = (n_turns, consultation.ended, consultation.why)
            case_id = consultation.case.case_id
            ended.append((model, case_id, case.dataset, *end))
            for level, decision in enumerate(consultation.enough):
                enough.append((model, case_id, level, np.nan if unread else decision))
            by_key[model, case_id] = consultation

    def stacked(table: str) -> pd.DataFrame:
        tables = [getattr(run, table) for run in runs.values()]
        return pd.concat(tables, ignore_index=True)

    answers = stacked("answers")
    states = answers[["model", "case_id", "level"]].itertuples(index=False, name=None)
    n_utterances = [
        by_key[model, case_id].utterances(level) for model, case_id, level in states
    ]
    decisions = pd.DataFrame(enough, columns=["model", "case_id", "level", "enough"])
    return ConsultationRun(
        turns=pd.DataFrame(turns, columns=TURNS),
        ended=pd.DataFrame(ended, columns=[*TURNS[:3], "n_turns", "ended", "why"]),
        enough=decisions.astype({"enough": float}),
        answers=answers.assign(n_utterances=n_utterances),
        confidence=stacked("confidence"),
        calls=stacked("calls"),
        patient=patient,
        doctor=doctor,
        consultations=talks,
        runs=runs,
    )


def _turn_rows(model: str, consultation: Consultation) -> Iterator[dict[str, Any]]:
    """The :data:`TURNS` of a consultation."""
    case = consultation.case
    for number, turn in enumerate(consultation.turns, 1):
        reply = turn.answer
        reference = FactPatient().answer_to(case, turn.question)
        fact = "" if reply.fact is None else str(reply.fact)
        reference_fact = "" if reference.fact is None else str(reference.fact)
        yield {
            "model": model,
            "case_id": case.case_id,
            "dataset": consultation.as_case.dataset,
            "turn": number,
            "question": turn.question,
            "tries": turn.tries,
            "reply": reply.words,
            "outcome": reply.outcome,
            "why": reply.why,
            "fact": NOT_SO if reply.denied else fact,
            "reference": reference_fact or reference.why,
            "n_utterances": consultation.utterances(number),
        }


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
    tables: list[pd.DataFrame] = []

    def judge(going: Sequence[Consultation]) -> pd.DataFrame:
        cases = [consultation.as_case for consultation in going]
        level = len(going[0].turns)  # all that go on have had as many questions
        run = benchmark(cases, [model], [method], [level], setup, show=turn_view)
        tables.append(run.answers)
        return run.confidence

    def stop(going: Sequence[Consultation]) -> list[bool]:
        table = judge(going)
        confidence = dict(zip(table["case_id"], table["confidence"], strict=True))
        return [
            bool(reaches(confidence[consultation.case.case_id], threshold))
            for consultation in going
        ]

    with speakers(doctor or model, patient, setup) as (speaking, speaker):
        talks = consult(
            cases,
            speaking[0],
            speaker,
            max_turns=max_turns,
            tries=tries,
            seed=setup.seed,
            stop=stop,
            reading=setup.reading,
        )
        late = [talk for talk in talks if talk.ended == TURN_LIMIT]
        if late:
            judge(late)  # the diagnosis at the end
    return talks, pd.concat(tables, ignore_index=True)


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
    def with_values(self) -> dict[str, np.ndarray]:
        """The confidence of the methods that have any value."""
        return {
            method: values
            for method, values in self.confidence.items()
            if not np.isnan(values).all()
        }


def grid(run: ConsultationRun, model: str) -> Grid:
    """The consultations of ``model`` that were graded throughout."""

    def of_model(rows: Any) -> Any:
        return rows[rows["model"] == model]

    def wide(rows: Any, column: str) -> pd.DataFrame:
        return rows.pivot(index="case_id", columns="level", values=column).astype(float)

    answers = of_model(run.answers)
    of_methods = of_model(run.confidence)
    ended = of_model(run.ended).set_index("case_id")
    correct = wide(answers, "correct")
    complete = correct.dropna()
    cases = complete.index
    confidence = {}
    for method in dict.fromkeys(of_methods["method"]):
        of_method = of_methods[of_methods["method"] == method]
        confidence[method] = wide(of_method, "confidence").loc[cases].to_numpy()
    enough = wide(of_model(run.enough), "enough")
    return Grid(
        case_ids=cases.to_numpy(),
        correct=complete.to_numpy(),
        utterances=wide(answers, "n_utterances").loc[cases].to_numpy(),
        length=ended["n_turns"].loc[cases].to_numpy(int),
        enough=enough.reindex(cases, columns=complete.columns).to_numpy(),
        confidence=confidence,
        left_out=correct.index.difference(cases).to_numpy(),
    )


def chosen_thresholds(
    consulted: Grid, n_folds: int, price: float = 0.005, seed: int = 0
) -> dict[str, np.ndarray]:
    """Method -> the threshold for each case, (n,), chosen on the other folds
    (:func:`~trustlab.metrics.stopping.best_threshold`).
    Methods without any value are left out, and all where there are fewer than two cases."""
    folds = fold_of(consulted.case_ids, n_folds, seed)
    if len(folds) < 2:
        return {}
    thresholds = {}
    for method, confidence in consulted.with_values.items():
        of_cases = np.empty(len(folds))
        for fold in np.unique(folds):
            others = folds != fold
            of_cases[~others] = best_threshold(
                confidence[others],
                consulted.correct[others],
                consulted.utterances[others],
                price,
            )
        thresholds[method] = of_cases
    return thresholds


def stops(consulted: Grid, thresholds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Where each policy stops each case, level (n,): methods at ``thresholds`` (n,).
    "decides itself": the doctor said enough; "fixed k": after k questions; "oracle": first right,
    else at the end."""
    n_cases, n_levels = consulted.correct.shape
    last = n_levels - 1
    turns = {
        method: stop_turns(consulted.confidence[method], of_cases[:, None])
        for method, of_cases in thresholds.items()
    }
    turns["decides itself"] = stop_turns(consulted.enough, 1.0)
    even = range(2, last + 1, 2)
    for k in sorted({0, *even, last}):
        turns[f"fixed {k}"] = np.full(n_cases, k)
    turns["oracle"] = stop_turns(consulted.correct, 1.0)
    return turns


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
    consulted = grid(run, model)
    chosen = chosen_thresholds(consulted, n_folds, price, seed)
    thresholds: dict[str, np.ndarray | float] = {**chosen}
    turns = stops(consulted, chosen)
    confidence = consulted.with_values
    if not isinstance(threshold, Mapping):
        threshold = {} if threshold is None else dict.fromkeys(confidence, threshold)
    for method, of_method in threshold.items():
        if method in confidence:
            policy = f"{method} at {of_method:g}"
            thresholds[policy] = of_method
            turns[policy] = stop_turns(confidence[method], of_method)
    return {
        policy: _stopped(consulted, of_policy, thresholds.get(policy, np.nan))
        for policy, of_policy in turns.items()
    }


def frontier_table(run: ConsultationRun, model: str) -> pd.DataFrame:
    """Accuracy, utterances and share of early stops at every threshold of every method.
    Strictest first (infinity: never early). Methods without any value are left out."""
    consulted = grid(run, model)

    def labelled() -> Iterator[tuple[dict[str, Any], Rows]]:
        for method, confidence in consulted.with_values.items():
            for threshold in thresholds_of(confidence):
                label = {"model": model, "method": method, "threshold": threshold}
                turns = stop_turns(confidence, threshold)
                yield label, _stopped(consulted, turns)

    names = ("accuracy", "utterances", "early")
    shown = {name: REACHED[name] for name in names}
    return table(measure(labelled(), shown), ["model", "method", "threshold"])


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
    rows_by_policy = stopped(
        run, model, n_folds=n_folds, price=price, seed=seed, threshold=threshold
    )
    labelled = []
    for policy, rows in rows_by_policy.items():
        thresholds: Any = rows.asked["threshold"]
        label = {
            "model": model,
            "policy": policy,
            "threshold_low": thresholds.min(),
            "threshold_high": thresholds.max(),
        }
        labelled.append((label, rows))
    keys = ["model", "policy", "threshold_low", "threshold_high"]
    return table(measure(labelled, REACHED), keys)


def _stopped(
    consulted: Grid, turns: np.ndarray, threshold: np.ndarray | float = np.nan
) -> Rows:
    """A row a case stopped at ``turns`` (n,); those left out lack all."""
    utterances = consulted.utterances
    last = consulted.correct.shape[1] - 1
    reached = {
        "accuracy": along(consulted.correct, turns),
        "utterances": along(utterances, turns),
        "fewest": utterances[:, 0],
        "most": utterances.max(axis=1),
        "early": (turns < last).astype(float),
        "questions": np.minimum(turns, consulted.length),
        "none": 0,
        "length": consulted.length,
        "threshold": threshold,
    }
    case_ids = pd.Index(consulted.case_ids, name="case_id")
    cases = pd.DataFrame(reached, index=case_ids)
    every_case = cases.reindex([*case_ids, *consulted.left_out]).reset_index()
    return Rows.of(
        every_case, "accuracy", none="no consultation could be judged throughout"
    )


def dry_run(
    cases: Sequence[Case], models: Sequence[Model], notebook_setup: Asked
) -> None:
    """Ask what the notebook asks, for ``trustlab plan``."""
    consultations(
        cases,
        models,
        max_turns=notebook_setup.max_turns,
        setup=notebook_setup,
        tries=notebook_setup.tries,
    )
