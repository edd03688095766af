"""04: consultations recorded to their full length, and what stopping at a threshold brings."""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false
# pyright: reportReturnType=false, reportCallIssue=false
# pyright: reportOptionalMemberAccess=false
# pyright: reportArgumentType=false, reportReturnType=false

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
from pydantic import Field
from tqdm import tqdm

from trustlab.agents.consultation import (
    CONFIDENT,
    ENDS,
    TURN_LIMIT,
    Consultation,
    Patient,
    consult,
    turn_view,
)
from trustlab.agents.medconf import Ask
from trustlab.agents.patient import NOT_SO, OUTCOMES, FactPatient, ModelPatient
from trustlab.choices import Chance, Count, Weight, choices
from trustlab.collect import SAMPLE_NEEDS
from trustlab.confidence import METHODS, select
from trustlab.confidence.registry import label as method_label
from trustlab.folder.replies_log import recording
from trustlab.metrics import stopping as rules
from trustlab.metrics.estimate import (
    MIN_CASES,
    Draws,
    Labelled,
    Metric,
    Rows,
    difference,
    estimate,
    grouped,
    mean,
    measure,
    share,
)
from trustlab.metrics.formatted import bullets, in_short, pivoted, together
from trustlab.metrics.paired import compared, corrected
from trustlab.metrics.schema import table
from trustlab.metrics.significance import about_cases
from trustlab.metrics.stopping import Guarantee, along, fold_of, stop_turns
from trustlab.metrics.ties import reaches
from trustlab.models.base import Model, Request
from trustlab.models.cache import CachedModel
from trustlab.parsing.counts import why_few
from trustlab.paths import save_tables
from trustlab.records import Case, Reply
from trustlab.run import Run, benchmark, refuse_waiting
from trustlab.settings import Setup, given
from trustlab.workbench import Workbench, opened

FOUR = ("medconf", "asp", "poc", "ce")
"""The methods of the published experiment."""
FACTS = "facts"
STEPS = ("keyword", "profile", "evidence")
PROBES = ("ce", "cot_ce", "topk_ce", "p_true")
SPENT = [
    "model",
    "case_id",
    "level",
    "purpose",
    "n_requests",
    "n_replies",
    "n_tokens_in",
    "n_tokens_out",
]


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
    delta: Chance = 0.1
    """Chance that the guarantee may fail."""


@dataclass(frozen=True)
class ConsultationRun:
    """Tidy tables of recorded consultations; ``level`` is the number of questions asked so far, 0
    to ``max_turns``.

    ``turns``: model case_id dataset turn question tries reply outcome why fact reference
    n_utterances; ``tries`` is which of the doctor's tries the question was, ``reference`` what the
    rule patient would have said: a fact's number, that it is not so, or why it would not know
    (:meth:`FactPatient.said`). ``ended``: model case_id dataset n_turns ended why. ``enough``:
    model case_id level enough (1, 0, NaN unreadable). ``answers`` and ``confidence`` are the
    benchmark's, with ``n_utterances`` among the answers. ``spent``: model case_id level purpose
    n_requests n_replies n_tokens_in n_tokens_out, each request where the loop would have made it;
    samples are one request with several replies. ``calls`` has a row a request as it was made.
    After its end a consultation keeps its last state.
    """

    turns: pd.DataFrame
    ended: pd.DataFrame
    enough: pd.DataFrame
    answers: pd.DataFrame
    confidence: pd.DataFrame
    spent: pd.DataFrame
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
        names = ("turns", "ended", "enough", "answers", "confidence", "spent", "calls")
        save_tables(self, names, folder)


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
            here = here.with_(keep_generations=True)  # what each answer cost is read from them
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


def with_progress(name: str) -> Ask:
    """Puts requests to a model, a cached one under a progress bar that begins with ``name``."""

    def put(model: Model, requests: list[Request], step: str) -> list[list[Reply]]:
        if not isinstance(model, CachedModel):
            return model.generate(requests)
        with closing(
            tqdm(total=len(requests), desc=f"{name}: {step}", unit="request", leave=False)
        ) as bar:
            return model.generate(requests, progress=bar.update)

    return put


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
    keys = {(name, c.case.case_id): c for name, c in each}
    turns = [row for name, c in each for row in _turn_rows(name, c)]
    unread = {n: why_few(r.parameters["replies_read"], n, ["enough"]) for n, r in runs.items()}
    enough = [
        (name, c.case.case_id, level, np.nan if unread[name] else e)
        for name, c in each
        for level, e in enumerate(c.enough)
    ]
    answers = pd.concat([run.answers for run in runs.values()], ignore_index=True)
    said = [
        keys[m, i].utterances(level)
        for m, i, level in zip(answers["model"], answers["case_id"], answers["level"], strict=True)
    ]
    columns = [
        "model",
        "case_id",
        "dataset",
        "turn",
        "question",
        "tries",
        "reply",
        "outcome",
        "why",
        "fact",
        "reference",
        "n_utterances",
    ]
    return ConsultationRun(
        turns=pd.DataFrame(turns, columns=columns),
        ended=pd.DataFrame(
            [
                (name, c.case.case_id, c.case_told.dataset, len(c.turns), c.ended, c.why)
                for name, c in each
            ],
            columns=["model", "case_id", "dataset", "n_turns", "ended", "why"],
        ),
        enough=pd.DataFrame(enough, columns=["model", "case_id", "level", "enough"]).astype(
            {"enough": float}
        ),
        answers=answers.assign(n_utterances=said),
        confidence=pd.concat([run.confidence for run in runs.values()], ignore_index=True),
        spent=pd.DataFrame(
            [row for name in talked for row in spent_rows(talked[name], runs[name])], columns=SPENT
        ),
        calls=pd.concat([run.calls for run in runs.values()], ignore_index=True),
        max_turns=max_turns,
        patient=patient,
        doctor=doctor,
        consultations=talked,
        runs=runs,
    )


def _turn_rows(name: str, c: Consultation) -> Iterator[tuple]:
    rule = FactPatient()
    for k, turn in enumerate(c.turns, 1):
        said = turn.said
        known = rule.said(c.case, turn.question)
        fact, reference = ("" if x is None else str(x) for x in (said.fact, known.fact))
        fact = NOT_SO if said.denied else fact
        where = (name, c.case.case_id, c.case_told.dataset, k)
        yield (
            *where,
            turn.question,
            turn.tries,
            said.words,
            said.outcome,
            said.why,
            fact,
            reference or known.why,
            c.utterances(k),
        )


def purposes_of(method: str) -> frozenset[str]:
    """The purposes of the requests that a method's confidence takes, the diagnosis's own among
    them."""
    needs = set(METHODS[method].needs)
    found = {"diagnosis"} | {p for p in PROBES if f"probes.{p}" in needs}
    found |= {"samples"} if needs & SAMPLE_NEEDS else set()
    return frozenset(found | (set(STEPS) if "assessment" in needs else set()))


COUNTED = ("n", "n_tokens_in", "n_tokens_out")
"""What a row of a run's calls counts."""


def spent_rows(talked: Sequence[Consultation], run: Run) -> Iterator[tuple]:
    """What was spent on each consultation's state: the rows of ``spent``, see
    :class:`ConsultationRun`.

    The benchmark asks in the order of its answers, so its calls are told apart by their order
    within a purpose. A keyword and a profile belong to the first level at which the case's answer
    came up; states after a consultation's end spend nothing.
    """
    (name,) = run.parameters["models"]
    rows = {
        purpose: iter(part.to_dict("records"))
        for purpose, part in run.calls.groupby("purpose", sort=False)
    }
    length = {c.case.case_id: len(c.turns) for c in talked}
    for c in talked:
        for s in c.spent:
            yield (name, c.case.case_id, s.level, s.purpose, 1, 1, s.n_tokens_in, s.n_tokens_out)
    for purpose in ("diagnosis", "samples", *PROBES, "evidence"):
        for g in run.generations if purpose in rows else ():
            if _asks(g, purpose):
                call = next(rows[purpose])
                if g.level <= length[g.case_id]:
                    yield (name, g.case_id, g.level, purpose, 1, *(call[c] for c in COUNTED))
    for purpose in ("keyword", "profile"):
        answers: dict[str, dict[str, Any]] = {}
        seen = set()
        for g in run.generations if purpose in rows else ():
            if not _asks(g, purpose):
                continue
            text = g.assessment.diagnosis
            if text not in answers:
                answers[text] = next(rows[purpose])
            if (g.case_id, text) not in seen:
                seen.add((g.case_id, text))
                counts = (answers[text][c] for c in COUNTED)
                yield (name, g.case_id, g.level, purpose, 1, *counts)


def _asks(g: Any, purpose: str) -> bool:
    """Whether the benchmark asked for ``purpose`` about this generation."""
    if purpose in PROBES:
        return purpose in g.probes
    if purpose in STEPS:
        return g.assessment is not None and purpose in g.assessment.replies
    return purpose == "diagnosis" or g.samples is not None


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
    told = run.confidence[
        (run.confidence["model"] == model) & (run.confidence["case_id"] == case_id)
    ]
    wide = told.pivot(index="level", columns="method", values="confidence")
    table = mine.set_index("level")[["answer", "correct", "n_utterances"]]
    for method in run.families:
        table[method] = wide[method]
    length = len(next(c for c in run.consultations[model] if c.case.case_id == case_id).turns)
    table = table.reset_index()
    return table[table["level"] <= length].reset_index(drop=True)


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
    - With the cache of :func:`consultations` nothing is asked twice. A method that reads how much
      was shown of the whole (``information_level``) knows no whole here.
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
        made = consult(
            cases,
            with_cache[0],
            speaker,
            max_turns=max_turns,
            tries=tries,
            seed=setup.seed,
            stop=stop,
        )
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


def left_out_table(run: ConsultationRun) -> pd.DataFrame:
    """The consultations that the tables of stopping leave out: a row an answer not judged.

    Columns model case_id level missing. They are not left out at random: a long consultation may
    not fit the model's window.
    """
    gone: Any = run.answers[run.answers["correct"].isna()]
    return gone[["model", "case_id", "level", "missing"]].reset_index(drop=True)


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
ALPHAS = (0.05, 0.1, 0.2, 0.3, 0.4)
FEW = (0.5, 0.6, 0.7, 0.8, 0.9)
"""Thresholds tried for the guarantee: the fewer, the fewer cases it takes. Fixed beforehand."""
OUTSIDE = "outside the thresholds: no confidence from 0 to 1"
NONE = "no consultation could be judged throughout"
NOBODY = "nobody could follow this rule"
REACHED = {name: mean(name) for name in ("accuracy", "utterances", "early", "questions")}
"""Means a case; ``early`` is the share of cases that stop before the last turn."""
COST = {name: Metric(mean(name), undefined=NOBODY) for name in ("calls", "replies", "tokens")}
"""What the loop asks up to its stop, a case: fifteen samples are one call and fifteen replies."""


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
        found[method][~others] = rules.best_threshold(sure[others], right, said, price)
    return found


def stops(run: ConsultationRun, model: str, **how: Any) -> dict[str, np.ndarray]:
    """Where each policy stops each case, level (n,).

    - Methods at their :func:`chosen_thresholds`; ``how``: n_folds, price and seed of these.
    - "decides itself": the first level at which the doctor said enough; "fixed k": after k
      questions; "oracle": where the diagnosis is first right, else at the end: no rule can know
      that.
    """
    g = grid(run, model)
    n, last = g.correct.shape[0], g.correct.shape[1] - 1
    chosen = chosen_thresholds(g, **how).items()
    found = {method: stop_turns(g.confidence[method], t[:, None]) for method, t in chosen}
    found[ITSELF] = stop_turns(g.enough, 1.0)
    found |= {f"fixed {k}": np.full(n, k) for k in sorted({0, *range(2, last + 1, 2), last})}
    return found | {ORACLE: stop_turns(g.correct, 1.0)}


def stopped(
    run: ConsultationRun, model: str, n_draws: int = 2000, seed: int = 0, **how: Any
) -> dict[str, Rows]:
    """Policy -> a row a case with what it brought: :data:`REACHED`, :data:`COST`, ``threshold``.

    ``how``: n_folds and price of :func:`chosen_thresholds`.
    """
    g = grid(run, model)
    draws = Draws.of(g.case_ids, n_draws, seed)
    picked = chosen_thresholds(g, seed=seed, **how)
    found = {}
    for policy, at in stops(run, model, seed=seed, **how).items():
        cost: Any = _cost(run, g, policy, at)
        found[policy] = _stopped(g, at, draws, threshold=picked.get(policy, np.nan), **cost)
    return found


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
        for t in rules.frontier(sure, g.correct, g.utterances).thresholds
    )
    shown = {name: REACHED[name] for name in ("accuracy", "utterances", "early")}
    return table(measure(labelled, shown), ["model", "method", "threshold"])


def chosen_table(
    run: ConsultationRun, model: str, against: str | None = "medconf", **how: Any
) -> pd.DataFrame:
    """What each policy of :func:`stops` brings, its threshold picked on other cases.

    - Metrics :data:`REACHED`, :data:`COST` (a fixed length and the model's own decision ask for one
      diagnosis, at the end), and ``difference``: its accuracy minus that of ``against``, or of the
      longest consultation where that has no value, paired by case.
    - ``threshold_low`` and ``threshold_high``: of the folds, infinity for never early.
    - ``how``: as in :func:`stopped`.
    """
    base, found = _paired(run, model, against, how)
    gap = {"difference": difference(REACHED["accuracy"])}
    lines: list[dict[str, Any]] = []
    for policy, rows in found.items():
        picked: Any = rows.asked["threshold"]
        label = {"model": model, "policy": policy, "against": base}
        label |= {"threshold_low": picked.min(), "threshold_high": picked.max()}
        lines += measure([(label, rows)], REACHED | COST | (gap if policy != base else {}))
    return table(lines, ["model", "policy", "against", "threshold_low", "threshold_high"])


def chosen_shown(table: pd.DataFrame) -> pd.DataFrame:
    """:func:`chosen_table` to read: a row a policy, shares in percent, costs without interval.

    ``threshold`` is the folds', from the lowest to the highest.
    """
    percent = table["metric"].isin(["accuracy", "early", "difference"])
    whole = percent | table["metric"].eq("tokens")
    ends = {c: table[c].where(percent | table["metric"].eq("utterances")) for c in ("low", "high")}
    spans = zip(table["threshold_low"], table["threshold_high"], strict=True)
    shown: Any = table.assign(**ends, threshold=[_span(*pair) for pair in spans])
    shown[["value", "low", "high"]] *= np.where(percent, 100, 1)[:, None]
    parts = [
        pivoted(shown[x], ["policy", "threshold"], digits=d) for x, d in ((whole, 0), (~whole, 1))
    ]
    names = {"policy": "stops by", "accuracy": "accuracy, %", "early": "early, %"}
    names["difference"] = f"accuracy minus {table['against'].iloc[0]}'s"
    return parts[0].merge(parts[1]).rename(columns=names).fillna("–")


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


def rules_compared(
    run: ConsultationRun, model: str, against: str | None = "medconf", **how: Any
) -> pd.DataFrame:
    """Accuracy (0 to 1) and utterances of each rule of :func:`stops` against ``against``'s.

    - The columns of :func:`~trustlab.metrics.paired.corrected`; ``p_holm`` is over the rules of a
      metric. Thresholds are picked on other cases, and held fixed in the draws.
    - Where ``against`` has no rule the longest consultation stands for it. The oracle is left out,
      since nobody could follow it.
    - ``how``: as in :func:`stopped`.
    """
    base, found = _paired(run, model, against, how)
    lines = [
        {"model": model, "policy": policy, "against": base, "metric": metric}
        | compared(rows, REACHED[metric])
        for metric in ("accuracy", "utterances")
        for policy, rows in found.items()
        if policy not in (base, ORACLE)
    ]
    return corrected(lines, ["model", "policy", "against"], family=["metric"])


def stops_table(run: ConsultationRun, model: str, **how: Any) -> pd.DataFrame:
    """Which share of the consultations each rule stops after how many ``questions``.

    A consultation that ended by itself counts with the questions it had. ``how``: as in
    :func:`stopped`.
    """
    lines = [
        {"model": model, "policy": policy, "questions": k, "metric": "share"}
        | share(rows, "questions", k)
        for policy, rows in stopped(run, model, **how).items()
        if not policy.startswith("fixed")
        for k in range(run.max_turns + 1)
    ]
    return table(lines, ["model", "policy", "questions"], ["n_hits"])


def guarantee_table(
    run: ConsultationRun,
    model: str,
    alphas: Sequence[float] = ALPHAS,
    delta: float = 0.1,
    thresholds: Sequence[float] = FEW,
    seed: int = 0,
) -> pd.DataFrame:
    """A stopping rule with a guarantee, calibrated on one half of the cases, tried on the other.

    - ``value``: the error of the ``n`` cases of the other half that were diagnosed before the last
      turn, ``n_hits`` of them wrongly, with a Clopper-Pearson interval; ``n_missing`` were not.
    - Where no ``threshold`` can be certified ``missing`` says why. Scores beyond 0 to 1 are
      outside the thresholds. The assumption: :func:`trustlab.metrics.stopping.guarantee`.
    - Each row's promise stands for a method and a rate named **before** the table was seen;
      choosing the best row afterwards voids it. It is about the population that the cases come
      from: the error of a few of them neither proves nor refutes it.
    """
    g = grid(run, model)
    test = fold_of(g.case_ids, 2, seed) == 1
    lines = []
    for (method, sure), alpha in product(g.confidence.items(), alphas):
        found = Guarantee(None, alpha, delta, reason=OUTSIDE)
        if not ((sure < 0) | (sure > 1)).any():  # NaN compares false
            found = rules.guarantee(sure[~test], g.correct[~test], alpha, delta, thresholds)
        threshold = np.nan if found.threshold is None else found.threshold  # NaN stops nobody
        label = {"model": model, "method": method, "alpha": alpha, "delta": delta}
        label |= {"threshold": threshold, "metric": "error", "n_calibration": int((~test).sum())}
        at = stop_turns(sure, threshold)
        wrong = np.where(at < g.correct.shape[1] - 1, 1 - along(g.correct, at), np.nan)
        tried: Any = pd.DataFrame({"case_id": g.case_ids, "wrong": wrong})[test]
        rows = Rows.of(tried, "wrong", 0, none=found.reason or "nobody diagnosed early")
        lines.append(label | share(rows, "wrong", exact=True))
    keys = ["model", "method", "alpha", "delta", "threshold"]
    return table(lines, keys, ["n_calibration", "n_hits"])


def guarantee_shown(table: pd.DataFrame) -> pd.DataFrame:
    """:func:`guarantee_table` to read: threshold and errors on the other half, a row a method.

    One cell, named beforehand, carries the guarantee; the best of them, chosen here, does not.
    """
    rows: Any = table.itertuples()
    words = [f"from {r.threshold:g}: {r.n_hits} of {r.n} wrong" for r in rows]
    none = np.where(table["missing"] == OUTSIDE, "no confidence from 0 to 1", "none")
    texts = np.where(table["threshold"].notna(), words, none)
    shown = table.assign(text=texts, allowed=[f"{100 * a:g} % allowed" for a in table["alpha"]])
    wide = shown.pivot(index="method", columns="allowed", values="text").rename_axis(columns=None)
    return wide.loc[shown["method"].unique(), shown["allowed"].unique()]


def guarantee_needs(
    run: ConsultationRun,
    model: str,
    alphas: Sequence[float] = ALPHAS,
    delta: float = 0.1,
    thresholds: Sequence[float] = FEW,
) -> pd.DataFrame:
    """How many cases a guarantee would take, at each method's rates of error: a row a rate allowed.

    - Of the thresholds that stop ten cases or more early, the one that takes the fewest cases,
      both halves together: ``value`` is the share wrong of the ``n`` stopped early, ``n_hits``.
    - ``cases_needed`` are for 80 % power (:func:`~trustlab.metrics.stopping.early_needed`), if the
      rates seen on all cases were the true ones, which is a guess: a guide only. Infinite above
      10,000; NaN where no number would do, or no rate can be had: ``missing`` says why.
    """
    g, lines = grid(run, model), []
    for method, sure in g.confidence.items():
        tried = [_early(g, sure, threshold) for threshold in thresholds]
        enough = [each for each in tried if each["n"] >= MIN_CASES]
        most = max(each["n"] for each in tried)
        why = f"at most {most} of {len(g.case_ids)} stop early: too few for a rate of errors"
        why = "no threshold has so few errors" if enough else why
        why = OUTSIDE if ((sure < 0) | (sure > 1)).any() else why
        for alpha in alphas:
            label = {"model": model, "method": method, "alpha": alpha, "delta": delta}
            label |= {"metric": "error", "missing": why}
            found = []
            for each in enough if why != OUTSIDE else ():
                n_early = rules.early_needed(each["value"], alpha, delta, len(thresholds))
                needed = 2 * np.ceil(n_early * len(g.case_ids) / each["n"])
                found += [] if np.isnan(needed) else [each | {"cases_needed": needed}]
            best = min(found, key=lambda each: each["cases_needed"]) if found else {}
            lines.append(label | best)
    keys = ["model", "method", "alpha", "delta", "threshold"]
    return table(lines, keys, ["n_hits", "cases_needed"])


def _early(g: Grid, sure: np.ndarray, threshold: float) -> dict[str, Any]:
    """How many cases a threshold stops before the last turn, and how many of them wrongly."""
    at = stop_turns(sure, threshold)
    early = at < g.correct.shape[1] - 1
    n, wrong = int(early.sum()), int((1 - along(g.correct, at))[early].sum())
    counts = {"n": n, "n_cases": n, "n_missing": len(early) - n, "n_hits": wrong}
    return {"threshold": threshold, "value": wrong / n if n else np.nan, "missing": "", **counts}


def guarantee_told(found: pd.DataFrame, needs: pd.DataFrame) -> str:
    """Can a threshold be vouched for? A line a method, of :func:`guarantee_table` and
    :func:`guarantee_needs`: which rates are certified, and how many cases the others would take."""
    lines = []
    for method, part in needs.groupby("method", sort=False):
        mine: Any = found[found["method"].eq(method)]
        certified = dict(zip(mine["alpha"], mine["threshold"], strict=True))
        parts: dict[str, list[str]] = {}
        for row in part.to_dict("records"):
            if pd.notna(certified[row["alpha"]]):
                words = f"certified from {certified[row['alpha']]:g}"
            elif pd.isna(row["cases_needed"]):
                words = f"none ({row['missing']})"
            else:
                words = f"would take {about_cases(row['cases_needed'], 0)} cases like these"
                words += " (from {threshold:g}: {n_hits:g} of {n:g} wrong)".format_map(row)
            parts.setdefault(words, []).append(f"{100 * row['alpha']:g}")
        told = "; ".join(f"{', '.join(rates)} % {words}" for words, rates in parts.items())
        lines.append(f"{method_label(str(method))}, errors allowed: {told}.")
    return bullets(lines)


def talk_message(rows: pd.DataFrame, methods: Sequence[str]) -> str:
    """What one consultation (:func:`transcript_rows`) shows: when its diagnosis turns right for
    good, and the first of ``methods`` with a value before and after; '' where none was judged."""
    right = rows.dropna(subset="correct").reset_index(drop=True)
    if right.empty:
        return ""
    wrong = right.index[right["correct"].eq(0)]
    turn = int(wrong.max()) + 1 if len(wrong) else 0
    if turn == len(right):
        return "The diagnosis is wrong to the end."
    if not turn:
        return "The diagnosis is right from the opening on."
    k = int(right["level"].to_numpy()[turn])
    asked = f"{k} question{'' if k == 1 else 's'}"
    said = f"The diagnosis is right for good after {asked}"
    before, after = (right[list(methods)].astype(float).loc[k] for k in (turn - 1, turn))
    known = [m for m in methods if not (np.isnan(before[m]) or np.isnan(after[m]))]
    steps = [f"{method_label(m)} from {before[m]:.2f} to {after[m]:.2f}" for m in known]
    return f"{said}; there the confidence goes: {', '.join(steps)}." if steps else f"{said}."


def frontier_message(picked: pd.DataFrame, gaps: pd.DataFrame) -> str:
    """What asking more brings, of :func:`chosen_table`, and whether a rule is right more often than
    the reference's (:func:`rules_compared`); '' where nothing could be judged."""
    of = {
        metric: part.set_index("policy")
        for metric, part in picked.groupby("metric")
        if metric in ("accuracy", "utterances")
    }
    right, said = of["accuracy"]["value"], of["utterances"]["value"]
    if right.dropna().empty:
        return ""
    fixed = [policy for policy in right.index if policy.startswith("fixed")]
    ends = [f"{100 * right[policy]:.0f} % right after {said[policy]:.1f}" for policy in fixed]
    told = f"All asked alike: {ends[0]} utterances, {ends[-1]} with most questions."
    against = rule_name(str(picked["against"].iloc[0]))
    words = f"Right more often than {against}", f"Right less often than {against}"
    accuracy = gaps[gaps["metric"].eq("accuracy")]
    short = in_short(accuracy, named_rule, *words, unit=100, digits=0)
    return f"{told} {short}".strip()


def rule_name(policy: str) -> str:
    """A rule of :func:`stops` in words."""
    if policy.startswith("fixed"):
        k = int(policy.removeprefix("fixed"))
        return f"{k or 'no'} question{'' if k == 1 else 's'} to all"
    return policy if policy in (ITSELF, ORACLE) else f"the rule of {method_label(policy)}"


def named_rule(row: Any) -> str:
    """Which rule a row of :func:`rules_compared` is about, in words."""
    return rule_name(row["policy"])


def _paired(
    run: ConsultationRun, model: str, against: str | None, how: dict[str, Any]
) -> tuple[str, dict[str, Rows]]:
    """The reference, ``against`` or the longest consultation, and :func:`stopped` beside it."""
    found = stopped(run, model, **how)
    base = against if against in found else [p for p in found if p.startswith("fixed")][-1]
    return base, {p: replace(rows, reference=found[base]) for p, rows in found.items()}


def _stopped(g: Grid, at: np.ndarray, draws: Draws, **more: Any) -> Rows:
    """A row a case stopped at turns ``at`` (n,), and ``more`` of it; those left out lack all."""
    reached = {
        "accuracy": along(g.correct, at),
        "utterances": along(g.utterances, at),
        "early": (at < g.correct.shape[1] - 1).astype(float),
        "questions": np.minimum(at, g.length),
    }
    cases = pd.DataFrame(reached | more, index=pd.Index(g.case_ids, name="case_id"))
    every = cases.reindex([*g.case_ids, *g.left_out]).reset_index()
    return Rows.of(every, "accuracy", draws, none=NONE)


def _cost(run: ConsultationRun, g: Grid, policy: str, at: np.ndarray) -> pd.DataFrame:
    """Calls, replies and tokens of each case up to its stop; NaN for the oracle's."""
    if policy == ORACLE:
        return pd.DataFrame(np.nan, g.case_ids, list(COST))
    where = pd.DataFrame({"case_id": g.case_ids, "stop": at, "end": np.minimum(at, g.length)})
    spent = run.spent[run.spent["model"] == g.model].merge(where, on="case_id")
    purpose, level = spent["purpose"], spent["level"]
    keep = purpose.isin(["ask", "patient"]) & (level < spent["stop"])
    if policy in g.confidence:
        keep |= purpose.isin(list(purposes_of(policy))) & (level <= spent["end"])
    else:
        keep |= purpose.eq("diagnosis") & (level == spent["end"])
    if policy == ITSELF:
        keep |= purpose.eq("enough") & (level <= spent["stop"])
    tokens = spent["n_tokens_in"] + spent["n_tokens_out"]
    named: Any = spent.assign(calls=spent["n_requests"], replies=spent["n_replies"], tokens=tokens)
    return named[keep].groupby("case_id")[list(COST)].sum().reindex(g.case_ids, fill_value=0)


def _span(low: float, high: float) -> str:
    """Thresholds to read: one, or the lowest and the highest; infinity is "never"."""
    ends = ("–" if np.isnan(t) else "never" if np.isinf(t) else f"{t:.2f}" for t in (low, high))
    return " to ".join(dict.fromkeys(ends))


def dry_run(cases: Sequence[Case], models: Sequence[Any], asked: Any) -> None:
    """Ask what the notebook asks, for ``trustlab plan``."""
    turns = {"max_turns": asked.max_turns, "tries": asked.tries}
    consultations(cases, models, setup=asked, **turns)
