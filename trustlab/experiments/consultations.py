"""Consultations, recorded to their full length, and every method's confidence after each turn.

The talk is asked for first; then each consultation is a case whose levels are its turns, and goes through
:func:`trustlab.experiments.benchmark.benchmark` with the same collection and cache. Ren et al. 2026 (consultation).
"""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportReturnType=false, reportCallIssue=false
# pyright: reportOptionalMemberAccess=false

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
from tqdm import tqdm

from trustlab.agents.consultation import Consultation, Patient, consult, turn_view
from trustlab.agents.medconf import Ask
from trustlab.agents.patient import FactPatient, ModelPatient
from trustlab.collect import SAMPLE_NEEDS
from trustlab.confidence import METHODS, select
from trustlab.experiments.benchmark import Run, benchmark
from trustlab.models.base import Model, Request
from trustlab.models.cache import CachedModel
from trustlab.records import Case, Reply

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


@dataclass(frozen=True)
class ConsultationRun:
    """Tidy tables of recorded consultations; ``level`` is the number of questions asked so far, 0 to ``max_turns``.

    ``turns``: model case_id dataset turn question tries reply outcome why fact reference n_utterances; ``tries`` is which of the
    doctor's tries the question was, ``reference`` what the rule patient would have said: a fact's number, or why it would not
    know (:meth:`FactPatient.said`). ``ended``: model case_id dataset n_turns ended why. ``enough``: model case_id level enough
    (1, 0, NaN unreadable). ``answers`` and ``confidence`` are the benchmark's, with ``n_utterances`` among the answers.
    ``spent``: model case_id level purpose n_requests n_replies n_tokens_in n_tokens_out, each request where the loop would have
    made it; samples are one request with several replies.
    ``calls`` has a row a request as it was made. After its end a consultation keeps its last state.
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
    consultations: dict[str, tuple[Consultation, ...]] = field(default_factory=dict, repr=False)
    runs: dict[str, Run] = field(default_factory=dict, repr=False)

    @property
    def families(self) -> dict[str, str]:
        """Method -> family, for the methods of this run."""
        return next(iter(self.runs.values())).families if self.runs else {}

    def save(self, folder: Path) -> None:
        """Write the tables as CSV, in full precision."""
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("turns", "ended", "enough", "answers", "confidence", "spent", "calls"):
            getattr(self, name).to_csv(folder / f"{name}.csv", index=False)


def consultations(
    cases: Sequence[Case],
    models: Sequence[Model],
    methods: str | Sequence[str] = FOUR,
    max_turns: int = 12,
    *,
    patient: Model | str | None = None,
    tries: int = 4,
    seed: int = 0,
    run_dir: str | Path | None = None,
    cache: str | Path | None = None,
    quiet: bool = False,
    **asked: Any,
) -> ConsultationRun:
    """Let each model consult about every case, and judge its diagnosis after each turn by every method.

    ``tries``: questions that the doctor may try at a turn, see :func:`consult`.
    ``patient``: who answers; the model itself where ``None``, another model, or "facts" for the rule patient. ``asked`` goes to
    the benchmark (samples, temperature, grader, retriever, ...). Below ``run_dir`` each model has a folder with its benchmark,
    which counts the talk's calls too. Baselines that read how much was shown of the whole (``information_level``) know
    when a consultation ended. Raises ``ValueError`` as the benchmark and :func:`consult` do, and for another word as patient.
    """
    _known(patient)
    select(methods)
    store = cache or (Path(run_dir) / "replies.sqlite" if run_dir else None)
    talked: dict[str, tuple[Consultation, ...]] = {}
    runs: dict[str, Run] = {}
    for model in models:
        with_cache, speaker = speakers(model, patient, store, seed)
        how: dict[str, Any] = {"max_turns": max_turns, "tries": tries, "seed": seed}
        talked[model.name] = consult(
            cases, with_cache[0], speaker, ask=None if quiet else with_bar(model.name), **how
        )
        told = [c.case_told for c in talked[model.name]]
        place = {
            "run_dir": Path(run_dir) / _folder(model.name) if run_dir else None,
            "cache": store,
        }
        levels = list(range(max_turns + 1))
        runs[model.name] = benchmark(
            told,
            [model],
            methods,
            levels,
            seed=seed,
            asked_before=with_cache,
            show=turn_view,
            quiet=quiet,
            **place,
            **asked,
        )
        for mine in (m for m in with_cache if m is not patient):
            mine.close()
    name = FACTS if patient == FACTS else getattr(patient, "name", "the model itself")
    run = _tables(talked, runs, max_turns, str(name))
    if run_dir:
        run.save(Path(run_dir))
    return run


def speakers(
    model: Model, patient: Model | str | None, store: str | Path | None, seed: int = 0
) -> tuple[list[CachedModel], Patient]:
    """The models that talk, the doctor first, each over the cache ``store``, and who answers; arguments as above."""
    _known(patient)
    inner = model.model if isinstance(model, CachedModel) else model
    others = [m for m in (inner, patient) if not isinstance(m, str | None)]
    with_cache = [m if isinstance(m, CachedModel) else CachedModel(m, store) for m in others]
    return with_cache, FactPatient() if patient == FACTS else ModelPatient(with_cache[-1], seed)


def _known(patient: Model | str | None) -> None:
    if isinstance(patient, str) and patient != FACTS:
        raise ValueError(
            f"patient is {patient!r}; allowed are None (the model itself), a model, or {FACTS!r}"
        )


def with_bar(name: str) -> Ask:
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
    talked: dict[str, tuple[Consultation, ...]], runs: dict[str, Run], max_turns: int, patient: str
) -> ConsultationRun:
    each = [(name, c) for name, cs in talked.items() for c in cs]
    keys = {(name, c.case.case_id): c for name, c in each}
    turns = [row for name, c in each for row in _turn_rows(name, c)]
    enough = [
        (name, c.case.case_id, level, e) for name, c in each for level, e in enumerate(c.enough)
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
        consultations=talked,
        runs=runs,
    )


def _turn_rows(name: str, c: Consultation) -> Iterator[tuple]:
    rule = FactPatient()
    for k, turn in enumerate(c.turns, 1):
        said = turn.said
        known = rule.said(c.case, turn.question)
        fact, reference = ("" if x is None else str(x) for x in (said.fact, known.fact))
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
    """The purposes of the requests that a method's confidence takes, the diagnosis's own among them."""
    needs = set(METHODS[method].needs)
    found = {"diagnosis"} | {p for p in PROBES if f"probes.{p}" in needs}
    found |= {"samples"} if needs & SAMPLE_NEEDS else set()
    return frozenset(found | (set(STEPS) if "assessment" in needs else set()))


def spent_rows(talked: Sequence[Consultation], run: Run) -> Iterator[tuple]:
    """What was spent on each consultation's state: the rows of ``spent``, see :class:`ConsultationRun`.

    The benchmark asks in the order of its answers, so its calls are told apart by their order within a purpose. A keyword and
    a profile belong to the first level at which the case's answer came up; states after a consultation's end spend nothing.
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
                    yield (
                        name,
                        g.case_id,
                        g.level,
                        purpose,
                        1,
                        call["n"],
                        call["n_tokens_in"],
                        call["n_tokens_out"],
                    )
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
                call = answers[text]
                yield (
                    name,
                    g.case_id,
                    g.level,
                    purpose,
                    1,
                    call["n"],
                    call["n_tokens_in"],
                    call["n_tokens_out"],
                )


def _asks(g: Any, purpose: str) -> bool:
    """Whether the benchmark asked for ``purpose`` about this generation."""
    if purpose in PROBES:
        return purpose in g.probes
    if purpose in STEPS:
        return g.assessment is not None and purpose in g.assessment.replies
    return purpose == "diagnosis" or g.samples is not None


def transcript_rows(run: ConsultationRun, model: str, case_id: str) -> pd.DataFrame:
    """One consultation as it went: a row a level with the answer, whether it was right, and each method's confidence.

    Columns level answer correct n_utterances, and one a method. ``ValueError`` for a consultation that there is not.
    """
    mine = run.answers[(run.answers["model"] == model) & (run.answers["case_id"] == case_id)]
    if not len(mine):
        raise ValueError(
            f"no consultation of {model!r} about {case_id!r}; cases are {sorted(set(run.answers['case_id']))}"
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
    """The longest consultation whose diagnosis turns from wrong to right, the first of equals; if there is none, the longest."""
    mine = run.answers[run.answers["model"] == model].sort_values("level")
    right = {i: part["correct"].to_list() for i, part in mine.groupby("case_id", sort=False)}
    turned = [
        c
        for c in run.consultations[model]
        if right[c.case.case_id][0] == 0 and right[c.case.case_id][-1] == 1
    ]
    return max(turned or run.consultations[model], key=lambda c: len(c.turns))
