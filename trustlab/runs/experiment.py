"""Runs the benchmark with all that a long run needs: a cache, a folder, several processes."""

from __future__ import annotations

import hashlib
import json
import math
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import nullcontext
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any, BinaryIO, TypeVar

import pandas as pd
from tqdm import tqdm

from trustlab import graders
from trustlab.agents.medconf import Profiles
from trustlab.confidence import Method, select
from trustlab.datasets.replies_file import RecordedReplies, read_replies
from trustlab.levels import Show, view
from trustlab.levels import views as views_of
from trustlab.meaning.parts import Readers
from trustlab.metrics.run_tables import checked_answers, joined
from trustlab.models.base import Model
from trustlab.models.cache import CachedModel
from trustlab.models.stops import Waiting
from trustlab.models.trial import spread
from trustlab.parsing.counts import Counts, ReadReply, add, count, totals
from trustlab.parsing.schemas import HELD, TAUGHT_STEPS
from trustlab.paths import Growing
from trustlab.processes import beside, seldom_collected
from trustlab.prompts import prompts_of
from trustlab.records import (
    CUT,
    LEVELS,
    NO_DIAGNOSIS,
    PLACEHOLDER,
    SEVERAL,
    Case,
    Generation,
    View,
)
from trustlab.runs.collect import collect, needs_of
from trustlab.runs.folder.records_file import NAME as RECORDS
from trustlab.runs.folder.records_file import line_of
from trustlab.runs.folder.replies_log import packed, recording
from trustlab.runs.folder.saved import COLUMNS, KEPT_UP_TO, save_run
from trustlab.runs.formatted import remark_lines, together
from trustlab.runs.gate import samples_alike, unknown_answers, withheld, without_unread
from trustlab.runs.run import Run, answer_rows, confidence_rows, confidence_table, given_once
from trustlab.runs.workbench import Workbench, opened
from trustlab.settings import Setup, given

T = TypeVar("T")
ASSESSED = ("passages_dropped", "baseless_assessments", "keywords_unread")
"""What is counted of MedConf's assessments: passages that did not fit; scores of 100 without a
supported criterion; keywords for which the diagnosis stood in."""
AHEAD = 3
"""Parts that may wait for their scores while others are asked."""
PART = 600
"""Views that are asked about, scored and, of a large run, let go together: whole cases, in order,
so that a server which keeps the beginnings of prompts meets a patient's again soon."""


def benchmark(
    cases: Sequence[Case],
    models: str | Model | Sequence[str | Model] | None,
    methods: str | Sequence[str] | None = None,
    levels: Sequence[int] | None = None,
    setup: Setup | Workbench | None = None,
    *,
    asked_before: Sequence[CachedModel] = (),
    show: Show = view,
) -> Run:
    """Ask every model about every case at every level, and score every method on the replies.

    - ``models``: one or several, each an open model or a name; ``None``: those of ``setup``.
    - ``methods`` and ``levels``: if ``None``, those of ``setup``, else "paper" and all six levels.
    - ``setup.run_dir`` receives the tables and every request with its replies
      (:mod:`trustlab.runs.folder.replies_log`).
    - Replies are saved in ``setup.cache``, else in ``replies.sqlite`` of ``run_dir``, else in
      ``runs/replies.sqlite``; a killed run resumes from there. Results of the encoders and of the
      judge of entailment are saved beside them.
    - ``asked_before``: models whose calls belong to this run, such as one that worded the cases.
    - ``show`` makes the view of a case at a level, if that is not its first statements.
    - METHODS: Ren et al. 2026 (benchmark), K = 15 samples at temperature 0.5.
    """
    setup = opened(setup)
    levels, models = given(levels, setup.levels, LEVELS), setup.models(models)
    given_once(cases, models, levels)
    chosen = select(given(methods, setup.methods, "paper"))
    shown, settings = views_of(cases, levels, show), setup.settings
    grader, readers, assessor = setup.judge, setup.readers, setup.assessed_by
    if warning := graders.unknown_truths_warning(grader, cases):
        warnings.warn(warning, stacklevel=2)
    needs = needs_of(chosen)
    library = setup.library if "assessment" in needs else None
    panel = setup.role("panel", models) if "panel" in needs else None
    doctors = [setup.cached(one) for one in panel or []]
    judge = grader.model if isinstance(grader, graders.JudgeGrader) else None
    own = [one for one in (assessor, *doctors, judge) if one is not None]
    for one in [*models, *own]:
        setup.prompts_for(one).check(next((c.question for c in cases if c.question), ""))
    for one in own:  # a judge may serve several runs; each counts its own calls
        one.reset_calls()
    n_views = len(shown) * len(models)
    keep = n_views <= KEPT_UP_TO if setup.keep_generations is None else setup.keep_generations
    held, seconds = [], dict.fromkeys((m.name for m in models), 0.0)
    how: Any = {"readers": readers, "retriever": library, "assessor": assessor, "doctors": doctors}
    with (
        seldom_collected(),
        packed(setup.run_dir / RECORDS) if setup.run_dir else nullcontext() as records,
        beside(setup.n_jobs if n_views > PART else 1, _scored) as begin,
        (gathered := Gathered(chosen, setup, keep, records, begin)).tables,
        recording(setup.run_dir) as attach,
        tqdm(total=len(cases) * len(models), unit="case", leave=False, disable=setup.quiet) as bar,
    ):
        attach(*own)
        for model in models:
            cached = setup.cached(model)
            cached.reset_calls()
            attach(cached)
            held.append(cached)
            if (trial := setup.tried) is not None and cached.trial is trial:
                with trial.apart([cached, *own]):
                    collect(cached, spread(shown), chosen, settings, **how)
            profiles: Profiles = {}
            for part in _parts(shown):
                began = perf_counter()
                made = collect(cached, part, chosen, settings, **how, profiles=profiles)
                seconds[model.name] += perf_counter() - began
                n = totals({model.name: cached.counts})
                bar.set_postfix_str(f"unread {n['asked'] - n['read']:,} of {n['asked']:,}")
                bar.update(len(part) // len(levels))
                gathered.add(part, made, waits=bool(_waiting([cached, *asked_before, *own])))
                gathered.count([] if keep else [cached, *own])
            gathered.count([cached] if keep else [])
            if cached is not model:
                cached.close()
        everyone = [*held, *asked_before, *own]
        refuse_waiting(everyone)
        gathered.take()
        gathered.count([*asked_before, *own])
        for one in doctors:
            one.close()
    asked = asdict(settings)
    open_choices = asked.pop("parameters")
    most = asked["max_tokens_answer"] or max(prompts_of(one).answer_tokens for one in held)
    starter = library is not None and setup.corpus is None and setup.retriever is None
    facts = {
        "models": {m.name: m.revision for m in models},
        "dataset": sorted({c.dataset for c in cases}),
        "cases": len(cases),
        "small_library": [m.name for m in [*held, *own] if starter and not m.taught],
        **sharded(setup),
        "cases_sha256": cases_hash(cases),
        "methods": [m.name for m in chosen],
        "levels": list(levels),
        **open_choices,
        **asked,
        "max_tokens_answer": most,
        **_read_by(readers),
        "retriever": library and library.revision,
        "assessor": assessor and {assessor.name: assessor.revision},
        "panel": {one.name: one.revision for one in doctors} or None,
        "grader": grader.name,
        "collect_s": {name: round(s, 3) for name, s in seconds.items()},
        "usage": {m.name: dict(m.usage) for m in models if m.usage},
        **gathered.facts(),
        "served_by": served_by(everyone),
        **how_asked(everyone),
    }
    tables, made = gathered.tables.frames(), tuple(gathered.generations)
    facts["unknown_answers"] = unknown_answers(tables["answers"])
    run = without_unread(Run(**tables, parameters=facts, generations=made, folder=setup.run_dir))
    if setup.run_dir:
        save_run(run, setup.run_dir, tables=keep, records=False)
        if not keep and withheld(facts, run.methods):
            for name in ("answers", "confidence"):
                getattr(run, name).to_parquet(setup.run_dir / f"{name}.parquet", index=False)
    warn(facts)
    return run


def score(
    table: pd.DataFrame | str | Path,
    methods: str | Sequence[str] | None = None,
    setup: Setup | Workbench | None = None,
    *,
    confidence: pd.DataFrame | None = None,
) -> Run:
    """Score replies that exist already, by every method that they allow; no model is asked.

    - ``table``: one row for each answer, or a file of such rows; its columns are
      :data:`trustlab.datasets.replies_file.COLUMNS`. A method whose input is absent is
      missing, with that reason.
    - ``methods``: if ``None``, those of ``setup``, else "variants". The sentence encoder, the judge
      of entailment, the grader and seed come from ``setup``.
    - ``confidence``: known confidences, as in a run's table. They are used unchanged, and without
      ``methods`` nothing else is computed.
    - Raises :class:`~trustlab.datasets.DataError` as
      :func:`~trustlab.datasets.replies_file.read_replies`.
    """
    setup = opened(setup)
    known = [] if confidence is None else select(list(confidence["method"].unique()))
    wanted = given(methods, setup.methods, "variants" if confidence is None else [])
    chosen = [m for m in (select(wanted) if wanted else []) if m not in known]
    kept = read_replies(table, setup.chosen, setup.seed)
    readers, needs = setup.readers, needs_of(chosen)
    made = readers.read(kept.generations, kept.views, needs)
    scored = confidence_table(kept.views, made, chosen)
    judge = setup.judge.model if isinstance(setup.judge, graders.JudgeGrader) else None
    with recording(setup.run_dir if judge else None) as attach:
        attach(judge)
        rows = _own_answers(kept, setup)
    answers = pd.DataFrame(rows, columns=list(COLUMNS["answers"]))
    if confidence is not None:
        joined(checked_answers(answers), confidence)  # refuses what does not fit
        own: Any = confidence[list(COLUMNS["confidence"])]
        scored = pd.concat([own, scored], ignore_index=True) if chosen else own
    facts = {
        "replies": "a table" if isinstance(table, pd.DataFrame) else Path(table).name,
        "answers_sha256": hashlib.sha256(str(answers.to_json()).encode()).hexdigest()[:16],
        "models": dict.fromkeys(answers["model"], ""),
        "dataset": sorted(set(answers["dataset"])),
        "cases": len(answers[["dataset", "case_id"]].drop_duplicates()),
        "methods": [m.name for m in [*known, *chosen]],
        "levels": sorted(set(answers["level"])),
        **asdict(setup.chosen),
        **_read_by(readers),
        "grader": setup.judge.name,
        "samples_alike": samples_alike(Counter((g.model, g.n_wordings) for g in made)),
        "replies_read": _read_of(made),
        "unknown_answers": unknown_answers(answers),
    }
    calls = pd.DataFrame(columns=list(COLUMNS["calls"]))
    run = without_unread(Run(answers, scored, calls, facts, tuple(made), setup.run_dir))
    if setup.run_dir:
        save_run(run, setup.run_dir)
    warn(facts)
    return run


def _own_answers(kept: RecordedReplies, setup: Workbench) -> list[tuple]:
    """Rows of the answers table: with the verdict that a row brings, else the grader's."""
    rows = answer_rows(kept.views, kept.generations, setup.judge)
    found = []
    for row, known, why, n in zip(rows, kept.correct, kept.missing, kept.n_samples, strict=True):
        graded = math.nan if why else row[6]
        verdict = graded if known is None else int(known)
        shown = (n or None for n in row[7:9])  # 0: not told
        found.append((*row[:6], verdict, *shown, n, why or row[-1]))
    return found


def _read_of(generations: Iterable[Generation]) -> Counts:
    """What is known of replies that somebody else asked for: which answers were read."""
    counts: Counts = {}
    kinds = {"": "read", NO_DIAGNOSIS: "unread", SEVERAL: "unread", PLACEHOLDER: "placeholder"}
    for g in generations:
        why = (g.answer.missing or "") if g.answer else "not had"
        if kind := "cut" if why.startswith(CUT) else kinds.get(why):
            count(counts.setdefault(g.model, {}), "diagnosis", [ReadReply(kind)])
    return counts


def _parts(shown: Sequence[View]) -> Iterator[Sequence[View]]:
    """The views in parts of whole cases."""
    starts = [0]
    for i in range(1, len(shown)):
        if i - starts[-1] >= PART and shown[i].case.case_id != shown[i - 1].case.case_id:
            starts.append(i)
    for start, stop in pairwise([*starts, len(shown)]):
        yield shown[start:stop]


class Gathered:
    """What a run gathers, part by part: its tables, counts over its generations and, with ``keep``,
    these themselves."""

    def __init__(
        self,
        methods: Sequence[Method],
        setup: Workbench,
        keep: bool,
        records: BinaryIO | None,
        begin: Callable[..., Future[Any]],
    ) -> None:
        self._methods, self._setup, self._keep = methods, setup, keep
        self._records, self._begin = records, begin
        self._begun: deque[Future[tuple[list[tuple], list[bytes]]]] = deque()
        self.tables = Growing(COLUMNS, setup.run_dir, keep)
        self.generations: list[Generation] = []
        self._wordings: Counter[tuple[str, int | None]] = Counter()
        self._assessed = Counter(dict.fromkeys(ASSESSED, 0))
        self._read: Counts = {}
        self._both: list[tuple[int | None, float]] = []

    def add(self, views: Sequence[View], made: Sequence[Generation], waits: bool) -> None:
        """Grade and count these, and begin to score them while the next are asked; nothing is
        scored while replies wait."""
        rows = answer_rows(views, made, judge := self._setup.judge)
        self.tables.add("answers", rows)
        if isinstance(judge, graders.JudgeGrader):
            rules = graders.SynonymGrader().grade([row[4] for row in rows], [v.case for v in views])
            self._both += [(a.correct, row[6]) for a, row in zip(rules, rows, strict=True)]
        if waits:
            return
        self._wordings.update((g.model, g.n_wordings) for g in made)
        for a in (g.assessment for g in made if g.assessment):
            each = (a.n_dropped, a.is_baseless, not a.keyword_read)
            self._assessed.update(dict(zip(ASSESSED, each, strict=True)))
        self.take(AHEAD - 1)
        datasets, lines = [v.case.dataset for v in views], self._records is not None
        self._begun.append(self._begin(_scored, datasets, made, self._methods, lines))
        if self._keep:
            self.generations += made

    def take(self, most: int = 0) -> None:
        """Add the scores that were begun, as far as they are done; wait for all but ``most``."""
        while len(self._begun) > most or (self._begun and self._begun[0].done()):
            rows, lines = self._begun.popleft().result()
            self.tables.add("confidence", rows)
            if self._records is not None:
                self._records.writelines(lines)

    def count(self, asked: Iterable[CachedModel]) -> None:
        """Take the calls of these models and what became of their replies; of a large run they are
        let go there."""
        for one in asked:
            self.tables.add("calls", [(*call.values(), one.name) for call in one.calls])
            add(self._read, {one.name: one.counts})
            if not self._keep:
                one.calls.clear()
                one.counts.clear()
        self.tables.end_part()

    def facts(self) -> dict[str, Any]:
        """What a manifest tells of the generations, and how far the rules and a judge agree."""
        judge = self._setup.judge
        judged = isinstance(judge, graders.JudgeGrader)
        return {
            "samples_alike": samples_alike(self._wordings),
            "replies_read": self._read,
            **self._assessed,
            "agreement": graders.agreement_sentence(self._both, judge.name) if judged else None,
        }


def refuse_waiting(asked: Iterable[object]) -> None:
    """:class:`~trustlab.models.stops.Waiting` where requests of a model among these wait in batch
    files."""
    steps = [model.next_step() for model in _waiting(asked)]
    if steps:
        raise Waiting("; ".join(steps))


def _waiting(asked: Iterable[object]) -> list[Model]:
    """The backends of the models among these whose requests wait in batch files."""
    backends = {id(m.innermost): m.innermost for m in asked if isinstance(m, Model)}
    return [model for model in backends.values() if model.waiting]


def each_asked(runs: Mapping[str, Callable[[], T]]) -> dict[str, T]:
    """Every run by its name. Where one waits for its replies, the others put their questions before
    :class:`~trustlab.models.stops.Waiting` is raised."""
    done, waits = {}, {}
    for name, run in runs.items():
        try:
            done[name] = run()
        except Waiting as waiting:
            waits[str(waiting)] = waiting
    if waits:
        raise Waiting("; ".join(waits))
    return done


def served_by(models: Iterable[Model]) -> dict[str, dict[str, int]]:
    """Model -> name that its server gave -> replies handed out under it; without the models whose
    servers give none."""
    each = {id(m): {m.name: m.served} for m in models if m.served}
    return together({"served_by": of} for of in each.values())["served_by"]


def how_asked(models: Iterable[Model]) -> dict[str, Any]:
    """The models' options that are not the default, their prompts, and which of their replies were
    held to a form; and which models were asked otherwise than was wished: at their own temperature,
    not held to a schema."""
    asked = {m.name: m for m in models}
    held = {name: m for name, m in asked.items() if m.structured}
    settled = {name: m.settled for name, m in asked.items() if m.settled is not None}
    return {
        "model_options": {name: dict(m.asked_with) for name, m in asked.items() if m.asked_with},
        "prompts": {name: prompts_of(m).facts for name, m in asked.items()},
        "held_to_a_form": {n: list(TAUGHT_STEPS if m.taught else HELD) for n, m in held.items()},
        "own_temperature": [name for name, able in settled.items() if not able.temperature],
        "unstructured": [name for name, able in settled.items() if not able.structured],
        "cut_prompts": [name for name, m in asked.items() if m.n_cut_prompts],
    }


def sharded(setup: Workbench) -> dict[str, str]:
    """What a manifest tells of the share of the cases that this process took."""
    return {"shard": setup.shard} if setup.shard else {}


def warn(parameters: Mapping[str, Any]) -> None:
    """Warn the caller of a study of what a run's ``parameters`` hold against its models."""
    for line in remark_lines(parameters):
        warnings.warn(line, stacklevel=4)


def _read_by(readers: Readers) -> dict[str, Any]:
    """Who read the models' words, for the manifest."""
    judge = readers.entailment
    return {
        "encoder": readers.encoder.revision,
        "medical_encoder": readers.medical and readers.medical.revision,
        "entailment": {name: getattr(judge, name) for name in ("name", "stand_in", "revision")},
    }


def cases_hash(cases: Sequence[Case]) -> str:
    """A fingerprint of what is shown and what is true, 16 hex digits."""
    shown = [(c, [s.text for s in c.facts], *filter(None, [c.question])) for c in cases]
    text = json.dumps([[c.case_id, c.diagnosis, *more] for c, *more in shown])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _scored(
    datasets: Sequence[str],
    generations: Sequence[Generation],
    methods: Sequence[Method],
    lines: bool,
) -> tuple[list[tuple], list[bytes]]:
    """Rows of the table of confidences; with ``lines`` also each record as one."""
    rows = confidence_rows(datasets, generations, methods)
    return rows, [line_of(g) for g in generations] if lines else []
