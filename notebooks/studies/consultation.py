"""04: consultations recorded to their full length, and what stopping at a threshold brings."""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false
# pyright: reportReturnType=false, reportCallIssue=false
# pyright: reportOptionalMemberAccess=false

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
from pydantic import Field

from trustlab.agents.consultation import (
    CONFIDENT,
    ENDS,
    TURN_LIMIT,
    Consultation,
    Patient,
    consult,
    turn_view,
)
from trustlab.agents.patient import NOT_SO, OUTCOMES, FactPatient, ModelPatient
from trustlab.choices import Count, Weight, choices
from trustlab.confidence import select
from trustlab.folder.replies_log import recording
from trustlab.formatted import pivoted, together
from trustlab.metrics.estimate import (
    Draws,
    Labelled,
    Rows,
    estimate,
    grouped,
    mean,
    measure,
    share,
)
from trustlab.metrics.schema import table
from trustlab.metrics.stopping import along, best_threshold, fold_of, frontier, stop_turns
from trustlab.metrics.ties import reaches
from trustlab.models.base import Model
from trustlab.models.cache import CachedModel
from trustlab.parsing.counts import why_few
from trustlab.paths import save_tables
from trustlab.records import Case
from trustlab.run import Run, benchmark, refuse_waiting, with_progress
from trustlab.settings import Setup, given
from trustlab.workbench import Workbench, opened

FOUR = ("medconf", "asp", "poc", "ce")
"""The methods of the published experiment."""
FACTS = "facts"
TURNS = [
    "model", "case_id", "dataset", "turn", "question", "tries", "reply", "outcome", "why", "fact",
    "reference", "n_utterances",
]  # fmt: skip
ENDED = ["model", "case_id", "dataset", "n_turns", "ended", "why"]
KEPT = ("turns", "ended", "enough", "answers", "confidence", "calls")


@choices
class Asked(Setup):
    """The choices of notebook 04."""

    max_turns: Count = 12
    """Questions in the longest consultation."""
    tries: Count = 4
    folds: Annotated[int, Field(ge=2, description="a whole number, at least 2")] = 5
    """A threshold is chosen on the other folds than the one it is tried on."""
    price: Weight = 0.005
    """Of one utterance, as a share of accuracy, when a threshold is chosen."""


@dataclass(frozen=True)
class ConsultationRun:
    """Tidy tables of recorded consultations; ``level`` is the number of questions asked so far, 0
    to ``max_turns``.

    ``turns``: model case_id dataset turn question tries reply outcome why fact reference
    n_utterances; ``tries`` is which of the doctor's tries the question was, ``reference`` what the
    rule patient would have said: a fact's number, that it is not so, or why it would not know
    (:meth:`FactPatient.said`). ``ended``: model case_id dataset n_turns ended why. ``enough``:
    model case_id level enough (1, 0, NaN unreadable). ``answers`` and ``confidence`` are the
    benchmark's, with ``n_utterances`` among the answers. ``calls`` has a row a request as it was
    made. After its end a consultation keeps its last state.
    """

    turns: pd.DataFrame
    ended: pd.DataFrame
    enough: pd.DataFrame
    answers: pd.DataFrame
    confidence: pd.DataFrame
    calls: pd.DataFrame
    max_turns: int
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
        """Those of the first model's benchmark, with what the benchmarks of all hold of their
        models."""
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
    """Consult about every case for each model, which names its diagnosis after each turn; every
    method judges that.

    - ``methods``: those of ``setup``, else the four of the published experiment.
    - ``tries``: questions that the doctor may try at a turn, see :func:`consult`.
    - ``setup.doctor``: who asks; where ``None`` the model itself or its sibling for that.
    - ``setup.patient``: who answers; the doctor's model where ``None``, or "facts", the rule
      patient.
    - Below ``run_dir`` each model has a folder with its benchmark, which counts the talk's calls;
      what was asked in the talk is among the replies above.
    - Baselines that read how much was shown of the whole (``information_level``) know when a
      consultation ended.
    - ``ValueError`` as the benchmark and :func:`consult`.
    """
    setup = opened(setup).shared()
    methods = given(methods, setup.methods, FOUR)
    select(methods)
    doctor, patient = setup.role("doctor", models), setup.role("patient")
    talked: dict[str, tuple[Consultation, ...]] = {}
    runs: dict[str, Run] = {}
    with recording(setup.run_dir) as attach:
        for model in models:
            with_cache, speaker = speakers(doctor or model, patient, setup.store, setup.seed)
            how: dict[str, Any] = {"max_turns": max_turns, "tries": tries, "seed": setup.seed}
            ask = None if setup.quiet else with_progress(model.name)
            attach(*with_cache)
            talked[model.name] = consult(cases, with_cache[0], speaker, ask=ask, **how)
            refuse_waiting([*with_cache, doctor, patient])
            told = [c.case_told for c in talked[model.name]]
            levels, here = list(range(max_turns + 1)), setup.below(_folder(model.name))
            how = {"asked_before": with_cache, "show": turn_view}
            runs[model.name] = benchmark(told, [model], methods, levels, here, **how)
            for mine in (m for m in with_cache if m not in (doctor, patient)):
                mine.close()
    name = FACTS if patient == FACTS else getattr(patient or doctor, "name", "the model itself")
    asked_by = {doctor.name: doctor.revision} if doctor else {}
    run = _tables(talked, runs, max_turns, str(name), asked_by)
    if setup.run_dir:
        run.save(setup.run_dir)
    return run


def speakers(
    doctor: Model, patient: Model | str | None, store: str | Path | None, seed: int = 0
) -> tuple[list[CachedModel], Patient]:
    """The models that talk, the doctor first, each over the cache ``store``, and who answers;
    arguments as above."""
    inner = doctor.model if isinstance(doctor, CachedModel) else doctor
    others = [m for m in (inner, patient) if not isinstance(m, str | None)]
    with_cache = [m if isinstance(m, CachedModel) else CachedModel(m, store) for m in others]
    return with_cache, FactPatient() if patient == FACTS else ModelPatient(with_cache[-1], seed)


def _folder(name: str) -> str:
    """A model's name as that of a folder."""
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in name)


def _tables(
    talked: dict[str, tuple[Consultation, ...]],
    runs: dict[str, Run],
    max_turns: int,
    patient: str,
    doctor: dict[str, str],
) -> ConsultationRun:
    each = [(name, c) for name, cs in talked.items() for c in cs]
    of = {(name, c.case.case_id): c for name, c in each}
    ended = [
        (name, c.case.case_id, c.case_told.dataset, len(c.turns), c.ended, c.why)
        for name, c in each
    ]
    unread = {n: why_few(r.parameters["replies_read"], n, ["enough"]) for n, r in runs.items()}
    enough = [
        (name, c.case.case_id, level, np.nan if unread[name] else said)
        for name, c in each
        for level, said in enumerate(c.enough)
    ]
    answers, confidence, calls = (
        pd.concat([getattr(run, part) for run in runs.values()], ignore_index=True)
        for part in ("answers", "confidence", "calls")
    )
    states = zip(answers["model"], answers["case_id"], answers["level"], strict=True)
    return ConsultationRun(
        turns=pd.DataFrame([row for name, c in each for row in _turn_rows(name, c)], columns=TURNS),
        ended=pd.DataFrame(ended, columns=ENDED),
        enough=pd.DataFrame(enough, columns=["model", "case_id", "level", "enough"]).astype(
            {"enough": float}
        ),
        answers=answers.assign(n_utterances=[of[m, i].utterances(k) for m, i, k in states]),
        confidence=confidence,
        calls=calls,
        max_turns=max_turns,
        patient=patient,
        doctor=doctor,
        consultations=talked,
        runs=runs,
    )


def _turn_rows(name: str, c: Consultation) -> Iterator[tuple]:
    rule, about = FactPatient(), (name, c.case.case_id, c.case_told.dataset)
    for k, turn in enumerate(c.turns, 1):
        said, known = turn.said, rule.said(c.case, turn.question)
        fact, reference = ("" if x is None else str(x) for x in (said.fact, known.fact))
        fact = NOT_SO if said.denied else fact
        told = (turn.question, turn.tries, said.words, said.outcome, said.why, fact)
        yield (*about, k, *told, reference or known.why, c.utterances(k))


def transcript_rows(run: ConsultationRun, model: str, case_id: str) -> pd.DataFrame:
    """One consultation as it went: a row a level with the answer, whether it was right, and each
    method's confidence.

    Columns level answer correct n_utterances, and one a method. ``ValueError`` for a consultation
    that there is not.
    """
    mine = run.answers[(run.answers["model"] == model) & (run.answers["case_id"] == case_id)]
    if not len(mine):
        raise ValueError(
            f"no consultation of {model!r} about {case_id!r}; cases are"
            f" {sorted(set(run.answers['case_id']))}"
        )
    sure = run.confidence
    sure = sure[(sure["model"] == model) & (sure["case_id"] == case_id)]
    wide = sure.pivot(index="level", columns="method", values="confidence")[list(run.families)]
    table = mine.set_index("level")[["answer", "correct", "n_utterances"]].join(wide)
    length = len(next(c for c in run.consultations[model] if c.case.case_id == case_id).turns)
    return table[table.index <= length].reset_index().rename_axis(columns=None)


def worth_reading(run: ConsultationRun, model: str) -> Consultation:
    """The longest consultation whose diagnosis turns from wrong to right, the first of equals; if
    there is none, the longest."""
    mine = run.answers[run.answers["model"] == model].sort_values("level")
    right = {i: part["correct"].to_list() for i, part in mine.groupby("case_id", sort=False)}
    turned = [
        c
        for c in run.consultations[model]
        if right[c.case.case_id][0] == 0 and right[c.case.case_id][-1] == 1
    ]
    return max(turned or run.consultations[model], key=lambda c: len(c.turns))


@dataclass(frozen=True)
class AskedUntil:
    """Consultations that stopped at a threshold, in the cases' order, and the benchmark's tables of
    every state asked about.

    A consultation that stopped has ``ended`` "confident"; its last ``level`` in ``answers`` holds
    the diagnosis it stopped with.
    """

    consultations: tuple[Consultation, ...]
    answers: pd.DataFrame
    confidence: pd.DataFrame


def consult_until(
    cases: Sequence[Case],
    model: Model,
    method: str,
    threshold: float,
    max_turns: int = 12,
    setup: Setup | Workbench | None = None,
    *,
    tries: int = 4,
) -> AskedUntil:
    """Ask about each case only while the confidence of ``method`` is below ``threshold``.

    - Before each question, of which there are ``max_turns`` at most, the model names its diagnosis,
      and ``method`` judges it; a missing confidence (NaN) reaches no threshold.
    - With the cache of :func:`consultations` nothing is asked twice, where the method wants as much
      of a diagnosis (such as its tokens) as those there did. A method that reads how much was shown
      of the whole (``information_level``) knows no whole here.
    - ``ValueError`` as there, for a threshold that is no number, no cases, a ``run_dir``, and a
      method that is not registered.
    """
    if threshold != threshold or not len(cases):
        raise ValueError(
            f"threshold is {threshold}, of {len(cases)} cases; a number and at least one case are"
            " needed"
        )
    setup = opened(setup).shared().with_(quiet=True)
    if setup.run_dir:
        raise ValueError(
            f"run_dir is {str(setup.run_dir)!r}; nothing is written but the replies: give their"
            " file as cache"
        )
    select([method])
    doctor, patient = setup.role("doctor", [model]), setup.role("patient")
    with_cache, speaker = speakers(doctor or model, patient, setup.store, setup.seed)
    runs: list[Run] = []

    def judged(going: Sequence[Consultation]) -> Run:
        told = [c.case_told for c in going]
        level = len(going[0].turns)  # all that go on have had as many questions
        run = benchmark(told, [model], [method], [level], setup, show=turn_view)
        runs.append(run)
        return run

    def stop(going: Sequence[Consultation]) -> list[bool]:
        table = judged(going).confidence
        sure = dict(zip(table["case_id"], table["confidence"], strict=True))
        return [bool(reaches(sure[c.case.case_id], threshold)) for c in going]

    try:
        how: dict[str, Any] = {"max_turns": max_turns, "tries": tries, "seed": setup.seed}
        made = consult(cases, with_cache[0], speaker, stop=stop, **how)
        if late := [c for c in made if c.ended == TURN_LIMIT]:
            judged(late)  # the diagnosis at the end
    finally:
        for mine in (m for m in with_cache if m not in (doctor, patient)):
            mine.close()
    answers, confidence = (
        pd.concat([getattr(r, name) for r in runs], ignore_index=True)
        for name in ("answers", "confidence")
    )
    return AskedUntil(made, answers, confidence)


ASKED_FOR = ("found", "missed", "another fact")
NOT_TOLD = ("rightly not known", "spoke though not told")


def patient_table(run: ConsultationRun, n_draws: int = 2000, seed: int = 0) -> pd.DataFrame:
    """What the patient's replies were, and how they compare with the rule patient: shares.

    Outcomes of all turns; :data:`ASKED_FOR` of those whose question asks for a known finding that
    is among the facts, or not so by them, :data:`NOT_TOLD` of those where nobody knows.
    """
    lines = []
    for label, rows in _of_models(run.turns, n_draws, seed):
        turns = rows.asked
        of_fact = turns["reference"].str.isdigit() | turns["reference"].eq(NOT_SO)
        known = of_fact.to_numpy(bool)
        not_told = turns["reference"].eq("not told").to_numpy()
        silent, same = turns["fact"].eq(""), turns["fact"].eq(turns["reference"])
        first = np.select([same, silent], ASKED_FOR[:2], ASKED_FOR[2])
        said = np.where(not_told, np.where(silent, *NOT_TOLD), first)
        rows = Rows.of(turns.assign(said=said), "said", rows.draws, none="no such question")
        lines += [{**label, "metric": o, **share(rows, "outcome", o)} for o in OUTCOMES]
        for part, names in ((rows.at(known), ASKED_FOR), (rows.at(not_told), NOT_TOLD)):
            lines += [{**label, "metric": m, **share(part, "said", m)} for m in names]
    return table(lines, ["model"], ["n_hits"])


def ended_table(run: ConsultationRun, n_draws: int = 2000, seed: int = 0) -> pd.DataFrame:
    """Why the consultations ended: the share of each reason, and the mean number of questions."""
    lines = []
    for label, rows in _of_models(run.ended, n_draws, seed):
        for why in ENDS:
            mine = rows.at(rows.asked["ended"].eq(why).to_numpy())
            if why == CONFIDENT and not len(mine):
                continue  # nothing stops a recorded consultation
            about = {**label, "ended": why}
            lines.append({**about, "metric": "share", **share(rows, "ended", why)})
            lines.append({**about, "metric": "questions", **estimate(mine, mean("n_turns"))})
    return table(lines, ["model", "ended"], ["n_hits"])


def tries_table(run: ConsultationRun, n_draws: int = 2000, seed: int = 0) -> pd.DataFrame:
    """Which of the doctor's tries the questions put were, as shares; 1 is the greedy question."""
    lines = [
        {**label, "tries": k, "metric": "share", **share(rows, "tries", k)}
        for label, rows in _of_models(run.turns, n_draws, seed)
        for k in range(1, int(rows["tries"].max()) + 1)
    ]
    return table(lines, ["model", "tries"], ["n_hits"])


def _of_models(found: pd.DataFrame, n_draws: int, seed: int) -> Labelled:
    how: Any = {"n_draws": n_draws, "seed": seed, "none": "none of them"}
    return grouped(found, ["model"], "case_id", **how)


PRICE = 0.005
"""Share of accuracy that one utterance is worth: a percentage point buys two of them."""
ITSELF, ORACLE = "decides itself", "oracle"
NONE = "no consultation could be judged throughout"
REACHED = {name: mean(name) for name in ("accuracy", "utterances", "early", "questions")}
"""Means a case; ``early`` is the share of cases that stop before the last turn."""


@dataclass(frozen=True)
class Grid:
    """One model's consultations as arrays over (n cases, T + 1 levels); no NaN in the first two.

    - ``length`` (n,): questions asked in all; ``enough``: the doctor's decision, NaN where none
      was had; ``confidence``: of each method; ``left_out``: the cases that are not among the n.
    """

    model: str
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
    """The consultations of ``model`` that were graded throughout; ``ValueError`` if it has none."""
    mine = run.answers[run.answers["model"] == model]
    if not len(mine):
        held = list(dict.fromkeys(run.answers["model"]))
        raise ValueError(f"model is {model!r}; the run has {held}")

    def wide(of: Any, value: str) -> pd.DataFrame:
        return of.pivot(index="case_id", columns="level", values=value).astype(float)

    every = wide(mine, "correct")
    correct = every.dropna()
    cases = correct.index
    told, decided, ended = (x[x["model"] == model] for x in (run.confidence, run.enough, run.ended))
    parts = {m: told[told["method"] == m] for m in dict.fromkeys(told["method"])}
    return Grid(
        model=model,
        case_ids=cases.to_numpy(),
        correct=correct.to_numpy(),
        utterances=wide(mine, "n_utterances").loc[cases].to_numpy(),
        length=ended.set_index("case_id")["n_turns"].loc[cases].to_numpy(int),
        enough=wide(decided, "enough").reindex(cases, columns=correct.columns).to_numpy(),
        confidence={m: wide(p, "confidence").loc[cases].to_numpy() for m, p in parts.items()},
        left_out=every.index.difference(cases).to_numpy(),
    )


def chosen_thresholds(
    g: Grid, n_folds: int = 5, price: float = PRICE, seed: int = 0
) -> dict[str, np.ndarray]:
    """Method -> the threshold for each case, (n,), chosen on the other folds than the case's own.

    The rule there: :func:`~trustlab.metrics.stopping.best_threshold`. Methods without any value are
    left out, and so are all where there are fewer than two cases.
    """
    folds = fold_of(g.case_ids, n_folds, seed)
    known = g.known if len(folds) > 1 else {}
    found = {method: np.empty(len(folds)) for method in known}
    for (method, sure), fold in product(known.items(), np.unique(folds)):
        others = folds != fold
        right, said = g.correct[others], g.utterances[others]
        found[method][~others] = best_threshold(sure[others], right, said, price)
    return found


def stops(g: Grid, picked: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Where each policy stops each case, level (n,): methods at the thresholds ``picked``.

    "decides itself": the first level at which the doctor said enough; "fixed k": after k questions;
    "oracle": where the diagnosis is first right, else at the end, which no rule can know.
    """
    n, last = g.correct.shape[0], g.correct.shape[1] - 1
    found = {m: stop_turns(g.confidence[m], each[:, None]) for m, each in picked.items()}
    found[ITSELF] = stop_turns(g.enough, 1.0)
    found |= {f"fixed {k}": np.full(n, k) for k in sorted({0, *range(2, last + 1, 2), last})}
    return found | {ORACLE: stop_turns(g.correct, 1.0)}


def stopped(
    run: ConsultationRun, model: str, n_draws: int = 2000, seed: int = 0, **how: Any
) -> dict[str, Rows]:
    """Policy -> a row a case with what it brought: :data:`REACHED` and ``threshold``.

    ``how``: n_folds and price of :func:`chosen_thresholds`.
    """
    g = grid(run, model)
    draws = Draws.of(g.case_ids, n_draws, seed)
    picked = chosen_thresholds(g, seed=seed, **how)
    return {
        policy: _stopped(g, at, draws, picked.get(policy, np.nan))
        for policy, at in stops(g, picked).items()
    }


def frontier_table(
    run: ConsultationRun, model: str, n_draws: int = 2000, seed: int = 0
) -> pd.DataFrame:
    """Accuracy, utterances and share of early stops at every threshold of every method.

    Strictest first (infinity: never early). Methods without any value are left out.
    """
    g = grid(run, model)
    draws = Draws.of(g.case_ids, n_draws, seed)
    labelled = (
        ({"model": model, "method": m, "threshold": t}, _stopped(g, stop_turns(sure, t), draws))
        for m, sure in g.known.items()
        for t in frontier(sure, g.correct, g.utterances).thresholds
    )
    shown = {name: REACHED[name] for name in ("accuracy", "utterances", "early")}
    return table(measure(labelled, shown), ["model", "method", "threshold"])


def chosen_table(run: ConsultationRun, model: str, **how: Any) -> pd.DataFrame:
    """What each policy of :func:`stops` brings (:data:`REACHED`), thresholds picked on other cases.

    ``threshold_low`` and ``threshold_high``: of the folds, infinity for never early. ``how``: as in
    :func:`stopped`.
    """
    lines: list[dict[str, Any]] = []
    for policy, rows in stopped(run, model, **how).items():
        picked: Any = rows.asked["threshold"]
        label = {"model": model, "policy": policy}
        label |= {"threshold_low": picked.min(), "threshold_high": picked.max()}
        lines += measure([(label, rows)], REACHED)
    return table(lines, ["model", "policy", "threshold_low", "threshold_high"])


def chosen_shown(table: pd.DataFrame) -> pd.DataFrame:
    """:func:`chosen_table` to read: a row a policy, shares in percent, questions without interval.

    ``threshold`` is the folds', from the lowest to the highest.
    """
    percent = table["metric"].isin(["accuracy", "early"])
    ends = {end: table[end].where(table["metric"].ne("questions")) for end in ("low", "high")}
    spans = zip(table["threshold_low"], table["threshold_high"], strict=True)
    shown: Any = table.assign(**ends, threshold=[_span(*pair) for pair in spans])
    shown[["value", "low", "high"]] *= np.where(percent, 100, 1)[:, None]
    shares, counts = (
        pivoted(shown[part], ["policy", "threshold"], digits=digits)
        for part, digits in ((percent, 0), (~percent, 1))
    )
    names = {"policy": "stops by", "accuracy": "accuracy, %", "early": "early, %"}
    return shares.merge(counts).rename(columns=names)


def chosen_marks(table: pd.DataFrame) -> pd.DataFrame:
    """Accuracy beside mean utterances, ``utterances_low`` and ``_high``, a row a policy.

    ``table`` is :func:`chosen_table`; ``rule`` is its policy, of all fixed lengths "fixed".
    """
    keys, ends = ["model", "policy"], ["value", "low", "high"]
    accuracy, said = (table[table["metric"] == name] for name in ("accuracy", "utterances"))
    named = dict(zip(ends, ["utterances", "utterances_low", "utterances_high"], strict=True))
    beside = said[[*keys, *ends]].rename(columns=named)
    rule = accuracy["policy"].str.replace(r"fixed \d+", "fixed", regex=True)
    return accuracy.assign(rule=rule).merge(beside, on=keys, validate="one_to_one")


def _stopped(g: Grid, at: np.ndarray, draws: Draws, threshold: Any = np.nan) -> Rows:
    """A row a case stopped at turns ``at`` (n,); those left out lack all."""
    reached = {
        "accuracy": along(g.correct, at),
        "utterances": along(g.utterances, at),
        "early": (at < g.correct.shape[1] - 1).astype(float),
        "questions": np.minimum(at, g.length),
        "threshold": threshold,
    }
    cases = pd.DataFrame(reached, index=pd.Index(g.case_ids, name="case_id"))
    every = cases.reindex([*g.case_ids, *g.left_out]).reset_index()
    return Rows.of(every, "accuracy", draws, none=NONE)


def _span(low: float, high: float) -> str:
    """Thresholds to read: one, or the lowest and the highest; infinity is "never"."""
    ends = ("–" if np.isnan(t) else "never" if np.isinf(t) else f"{t:.2f}" for t in (low, high))
    return " to ".join(dict.fromkeys(ends))


def dry_run(cases: Sequence[Case], models: Sequence[Any], asked: Any) -> None:
    """Ask what the notebook asks, for ``trustlab plan``."""
    turns = {"max_turns": asked.max_turns, "tries": asked.tries}
    consultations(cases, models, setup=asked, **turns)
