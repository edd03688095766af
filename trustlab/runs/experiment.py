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

from trustlab import cluster, graders
from trustlab.agents.medconf import Profiles
from trustlab.confidence import Method, select
from trustlab.datasets.replies_file import RecordedReplies, Table, read_replies
from trustlab.levels import Show, view, views
from trustlab.meaning.parts import Readers
from trustlab.metrics.run_tables import checked_answers, joined
from trustlab.models.base import Model
from trustlab.models.cache import CachedModel
from trustlab.models.trial import spread
from trustlab.parsing.counts import Counts, ReadReply, add, count
from trustlab.parsing.schemas import HELD, TAUGHT_STEPS
from trustlab.paths import Growing
from trustlab.processes import beside, progress, seldom_collected
from trustlab.prompts import prompts_of
from trustlab.records import (
    CUT,
    LEVELS,
    NO_DIAGNOSIS,
    PLACEHOLDER,
    SEVERAL,
    Case,
    Generation,
    Grader,
    View,
)
from trustlab.runs.collect import collect, needs_of
from trustlab.runs.folder.records_file import NAME as RECORDS
from trustlab.runs.folder.records_file import line_of
from trustlab.runs.folder.replies_log import packed, recording
from trustlab.runs.folder.saved import COLUMNS, KEPT_UP_TO, save_run
from trustlab.runs.formatted import remark_lines, together
from trustlab.runs.gate import samples_alike, unknown_answers, withheld, without_unread
from trustlab.runs.run import (
    ConfidenceRow,
    Run,
    case_facts,
    confidence_table,
    grade_answers,
    refuse_repeats,
    score_answers,
)
from trustlab.runs.workbench import Workbench, opened
from trustlab.settings import Setup, given
from trustlab.stops import Waiting

T = TypeVar("T")
ASSESSMENT_COUNTS = ("passages_dropped", "baseless_assessments", "keywords_unread")
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
    bench = opened(setup)
    experiment = Experiment(cases, models, methods, levels, bench, asked_before, show)
    gathered = ask_models(experiment)
    run = without_unread(gathered.run())
    if bench.run_dir:
        save_run(run, bench.run_dir, tables=gathered.keep, records=False)
        if withheld(run.parameters, run.methods) and not gathered.keep:
            # they were written before the gate withheld values
            run.answers.to_parquet(bench.run_dir / "answers.parquet", index=False)
            run.confidence.to_parquet(bench.run_dir / "confidence.parquet", index=False)
    warn(run.parameters)
    return run


class Experiment:
    """The cases, models, methods and helpers of a benchmark: all opened, and nothing spent.
    ``ValueError`` for what cannot be run."""

    def __init__(
        self,
        cases: Sequence[Case],
        models: Any,
        methods: str | Sequence[str] | None,
        levels: Sequence[int] | None,
        setup: Workbench,
        earlier_models: Sequence[CachedModel],
        show: Show,
    ) -> None:
        self.setup = setup
        self.cases = cases
        self.earlier_models = earlier_models
        self.levels = given(levels, setup.levels, LEVELS)
        self.models = setup.models(models)
        refuse_repeats(cases, self.models, self.levels)
        self.methods = select(given(methods, setup.methods, "paper"))
        self.views = views(cases, self.levels, show)
        needs = needs_of(self.methods)
        judge = setup.judge
        self.readers = setup.readers
        self.readers.check({method.name: method.needs for method in self.methods})
        self.assessor = setup.assessed_by
        warning = graders.unknown_truths_warning(judge, cases)
        if warning:
            warnings.warn(warning, stacklevel=3)
        self.library = setup.library if "assessment" in needs else None
        self.doctors: list[CachedModel] = []
        if "panel" in needs:
            for doctor in setup.role("panel", self.models) or []:
                self.doctors.append(setup.cached(doctor))
        helpers = [self.assessor, *self.doctors, *judges_of(judge)]
        self.helpers = [helper for helper in helpers if helper is not None]
        for model in [*self.models, *self.helpers]:
            prompts = setup.prompts_for(model)
            prompts.check(case.question for case in cases)
        # a judge may serve several runs; each counts its own calls
        for helper in self.helpers:
            helper.reset_calls()

    def collect(
        self, model: Model, views: Sequence[View], profiles: Profiles | None = None
    ) -> list[Generation]:
        """Requests, replies and readings of a model, as the plain run has them."""
        return collect(
            model,
            views,
            self.methods,
            self.setup.settings,
            readers=self.readers,
            retriever=self.library,
            assessor=self.assessor,
            doctors=self.doctors,
            profiles=profiles,
        )


def judges_of(grader: Grader) -> list[Any]:
    """The model behind a grader that asks one, in a list; else none."""
    return [grader.model] if isinstance(grader, graders.JudgeGrader) else []


def ask_models(experiment: Experiment) -> Gathered:
    """Every model about every view; a large run's rows go to files as they come."""
    setup = experiment.setup
    folder = setup.run_dir
    helpers = experiment.helpers
    earlier_models = experiment.earlier_models
    n_views = len(experiment.views) * len(experiment.models)
    n_cases = len(experiment.cases) * len(experiment.models)
    keep = setup.keep_generations
    if keep is None:
        keep = n_views <= KEPT_UP_TO
    n_jobs = setup.n_jobs if n_views > PART else 1
    with (
        seldom_collected(),
        packed(folder / RECORDS) if folder else nullcontext() as records,
        beside(n_jobs, _scored) as begin,
        Growing(COLUMNS, folder, keep) as tables,
        recording(folder) as attach,
        progress(n_cases, "case", "cases", not setup.quiet) as bar,
    ):
        tables.add("facts", case_facts(experiment.cases))
        gathered = Gathered(experiment, keep, tables, records, begin)
        attach(*helpers)
        for model in experiment.models:
            cached = setup.cached(model)
            cached.reset_calls()
            attach(cached)
            gathered.models.append(cached)
            ask_model(gathered, cached, bar.update)
            if cached is not model:
                cached.close()
        refuse_waiting(gathered.repliers)
        gathered.add_scores()
        gathered.add_calls([*earlier_models, *helpers])
        for doctor in experiment.doctors:
            doctor.close()
    return gathered


def ask_model(
    gathered: Gathered, model: CachedModel, report: Callable[[int], object]
) -> None:
    """One model about every view, part by part: requests, replies, readings, grades and scores.
    Nothing is scored while replies wait. ``report`` gets the number of cases of each part."""
    experiment = gathered.experiment
    helpers = experiment.helpers
    repliers = [model, *experiment.earlier_models, *helpers]
    let_go_each_part = [] if gathered.keep else [model, *helpers]
    trial = experiment.setup.tried
    if trial is not None and model.trial is trial:
        with trial.apart([model, *helpers]):
            experiment.collect(model, spread(experiment.views))
    profiles: Profiles = {}
    seconds = 0.0
    for part in _whole_cases(experiment.views):
        began = perf_counter()
        generations = experiment.collect(model, part, profiles)
        seconds += perf_counter() - began
        report(len(part) // len(experiment.levels))
        gathered.grade(part, generations)
        if not _waiting(repliers):
            gathered.score(part, generations)
        gathered.add_calls(let_go_each_part)
    gathered.add_calls([model] if gathered.keep else [])
    gathered.seconds[model.name] = round(seconds, 3)


def facts_of(gathered: Gathered) -> dict[str, Any]:
    """Facts of a benchmark for its manifest: models, cases, settings, readers, counts."""
    experiment = gathered.experiment
    setup = experiment.setup
    models = experiment.models
    helpers = experiment.helpers
    library = experiment.library
    assessor = experiment.assessor
    repliers = gathered.repliers
    settings = asdict(setup.settings)
    parameters = settings.pop("parameters")
    if not settings["max_tokens_answer"]:
        budgets = [prompts_of(model).answer_tokens for model in gathered.models]
        settings["max_tokens_answer"] = max(budgets)
    small_library = []
    if library is not None and setup.corpus is None and setup.retriever is None:
        small_library = [
            model.name for model in [*gathered.models, *helpers] if not model.taught
        ]
    return {
        "models": {model.name: model.revision for model in models},
        "dataset": sorted({case.dataset for case in experiment.cases}),
        "cases": len(experiment.cases),
        "small_library": small_library,
        **cluster.facts(),
        "cases_sha256": cases_hash(experiment.cases),
        "methods": [method.name for method in experiment.methods],
        "levels": list(experiment.levels),
        **parameters,
        **settings,
        **_reader_facts(experiment.readers),
        "retriever": library and library.revision,
        "assessor": assessor and {assessor.name: assessor.revision},
        "panel": {doctor.name: doctor.revision for doctor in experiment.doctors}
        or None,
        "grader": setup.judge.name,
        "collect_s": gathered.seconds,
        "usage": {model.name: dict(model.usage) for model in models if model.usage},
        **gathered.facts(),
        "served_by": served_by(repliers),
        **request_facts(repliers),
    }


def score(
    table: Table,
    methods: str | Sequence[str] | None = None,
    setup: Setup | Workbench | None = None,
    *,
    confidence: pd.DataFrame | None = None,
) -> Run:
    """Score replies that exist already, by every method that they allow; no model is asked.

    - ``table``: one row for each answer, or a file of such rows; its columns are
      :data:`trustlab.datasets.replies_file.COLUMNS`. A method whose input is absent is
      missing, with that reason. Or another tool's log: its file, or what
      :func:`trustlab.read_log` reads. A table's own scores (``confidence:NAME``) are always among
      the methods.
    - ``methods``: if ``None``, those of ``setup``, else "variants". The sentence encoder, the judge
      of entailment, the grader and seed come from ``setup``.
    - ``confidence``: known confidences, as in a run's table. They are used unchanged, and without
      ``methods`` nothing else is computed.
    - Raises :class:`~trustlab.datasets.DataError` as
      :func:`~trustlab.datasets.replies_file.read_replies`.
    """
    bench = opened(setup)
    own_methods = (
        [] if confidence is None else select(list(confidence["method"].unique()))
    )
    wanted = given(methods, bench.methods, "variants" if confidence is None else [])
    computed = []
    replies = read_replies(table, bench.chosen, bench.seed)
    if wanted:
        named = [wanted] if isinstance(wanted, str) else list(wanted)
        all_named = select([*named, *replies.own])
        computed = [method for method in all_named if method not in own_methods]
    generations = bench.readers.read(
        replies.generations, replies.views, needs_of(computed)
    )
    scores = confidence_table(replies.views, generations, computed)
    answers = grade_replies(replies, bench)
    if confidence is not None:
        joined(checked_answers(answers), confidence)  # refuses what does not fit
        own: Any = confidence[list(COLUMNS["confidence"])]
        scores = pd.concat([own, scores], ignore_index=True) if computed else own
    methods = [method.name for method in [*own_methods, *computed]]
    facts = score_facts(answers, generations, methods, bench)
    facts = {"replies": Path(replies.file).name, **facts, **replies.log}
    calls = pd.DataFrame(columns=list(COLUMNS["calls"]))
    rows = case_facts(view.case for view in replies.views)
    of_cases = pd.DataFrame(rows, columns=list(COLUMNS["facts"]))
    run = Run(
        answers, scores, calls, facts, tuple(generations), bench.run_dir, of_cases
    )
    run = without_unread(run)
    if bench.run_dir:
        save_run(run, bench.run_dir)
    warn(facts)
    return run


def score_facts(
    answers: pd.DataFrame,
    generations: Sequence[Generation],
    methods: Sequence[str],
    setup: Workbench,
) -> dict[str, Any]:
    """Facts for the manifest of a run whose replies somebody else collected."""
    digest = hashlib.sha256(str(answers.to_json()).encode()).hexdigest()
    wordings = Counter((record.model, record.n_wordings) for record in generations)
    return {
        "answers_sha256": digest[:16],
        "models": dict.fromkeys(answers["model"], ""),
        "dataset": sorted(set(answers["dataset"])),
        "cases": len(answers[["dataset", "case_id"]].drop_duplicates()),
        "methods": methods,
        "levels": sorted(set(answers["level"])),
        **asdict(setup.chosen),
        **_reader_facts(setup.readers),
        "grader": setup.judge.name,
        "samples_alike": samples_alike(wordings),
        "replies_read": count_read(generations),
        "unknown_answers": unknown_answers(answers),
    }


def grade_replies(replies: RecordedReplies, setup: Workbench) -> pd.DataFrame:
    """The answers table of replies that exist already: with the verdict that a row brings, else the
    grader's."""
    judges = judges_of(setup.judge)
    with recording(setup.run_dir if judges else None) as attach:
        attach(*judges)
        graded = grade_answers(replies.views, replies.generations, setup.judge)
    rows = []
    for row, verdict, why, n_samples in zip(
        graded, replies.correct, replies.missing, replies.n_samples, strict=True
    ):
        correct = math.nan if why else row.correct
        if verdict is not None:
            correct = int(verdict)
        graded_row = row._replace(
            correct=correct,
            n_statements=row.n_statements or None,  # 0: not told
            n_words=row.n_words or None,
            n_samples=n_samples,
            missing=why or row.missing,
        )
        rows.append(graded_row)
    return pd.DataFrame(rows, columns=list(COLUMNS["answers"]))


def count_read(generations: Iterable[Generation]) -> Counts:
    """Counts of answers that could be read, in replies that somebody else collected."""
    counts: Counts = {}
    kinds = {
        "": "read",
        NO_DIAGNOSIS: "unread",
        SEVERAL: "unread",
        PLACEHOLDER: "placeholder",
    }
    for generation in generations:
        answer = generation.answer
        if not answer:
            continue
        why = answer.missing or ""
        kind = "cut" if why.startswith(CUT) else kinds.get(why)
        if kind:
            of_model = counts.setdefault(generation.model, {})
            count(of_model, "diagnosis", [ReadReply(kind)])
    return counts


def _whole_cases(shown: Sequence[View]) -> Iterator[Sequence[View]]:
    """The views in parts of whole cases."""
    starts = [0]
    for i, (before, after) in enumerate(pairwise(shown), 1):
        if after.case.case_id == before.case.case_id:
            continue
        if i - starts[-1] >= PART:
            starts.append(i)
    for start, stop in pairwise([*starts, len(shown)]):
        yield shown[start:stop]


class Gathered:
    """The results of a run, part by part: its tables, counts over its generations and, with
    ``keep``, these themselves."""

    def __init__(
        self,
        experiment: Experiment,
        keep: bool,
        tables: Growing,
        records: BinaryIO | None,
        begin: Callable[..., Future[Any]],
    ) -> None:
        self.experiment = experiment
        self.keep = keep
        self.tables = tables
        self.models: list[CachedModel] = []
        self.seconds: dict[str, float] = {}
        self.generations: list[Generation] = []
        self._judge = experiment.setup.judge
        self._records = records
        self._begin = begin
        self._scores: deque[Future[tuple[list[ConfidenceRow], list[bytes]]]] = deque()
        self._wordings: Counter[tuple[str, int | None]] = Counter()
        self._assessed = Counter(dict.fromkeys(ASSESSMENT_COUNTS, 0))
        self._grades_of_both: list[tuple[int | None, float]] = []

    @property
    def repliers(self) -> list[CachedModel]:
        """All that were asked so far, helpers too."""
        experiment = self.experiment
        return [*self.models, *experiment.earlier_models, *experiment.helpers]

    def grade(self, views: Sequence[View], generations: Sequence[Generation]) -> None:
        """Grade these answers, and compare the rules with a judge, where one grades."""
        rows = grade_answers(views, generations, self._judge)
        self.tables.add("answers", rows)
        if not isinstance(self._judge, graders.JudgeGrader):
            return
        answers = [row.answer for row in rows]
        cases = [view.case for view in views]
        by_rules = graders.SynonymGrader().grade(answers, cases)
        for grade, row in zip(by_rules, rows, strict=True):
            self._grades_of_both.append((grade.correct, row.correct))

    def score(self, views: Sequence[View], generations: Sequence[Generation]) -> None:
        """Count a part's generations, and begin to score them in another process."""
        self._wordings.update(
            (record.model, record.n_wordings) for record in generations
        )
        for generation in generations:
            assessment = generation.assessment
            if assessment:
                self._assessed["passages_dropped"] += assessment.n_dropped
                self._assessed["baseless_assessments"] += assessment.is_baseless
                self._assessed["keywords_unread"] += not assessment.keyword_read
        self.add_scores(AHEAD - 1)
        datasets = [view.case.dataset for view in views]
        methods = self.experiment.methods
        with_lines = self._records is not None
        scores = self._begin(_scored, datasets, generations, methods, with_lines)
        self._scores.append(scores)
        if self.keep:
            self.generations += generations

    def add_scores(self, most_left: int = 0) -> None:
        """Add the scores that were begun, as far as they are done; wait for all but ``most_left``
        parts."""
        while self._scores:
            if len(self._scores) <= most_left and not self._scores[0].done():
                return
            rows, lines = self._scores.popleft().result()
            self.tables.add("confidence", rows)
            if self._records is not None:
                self._records.writelines(lines)

    def add_calls(self, models: Iterable[CachedModel]) -> None:
        """Add the calls of these models; of a large run they are let go there."""
        for model in models:
            rows = [(*call.values(), model.name) for call in model.calls]
            self.tables.add("calls", rows)
            if not self.keep:
                model.calls.clear()
        self.tables.end_part()

    def facts(self) -> dict[str, Any]:
        """Counts over the generations for a manifest, and how far the rules and a judge agree."""
        agreement = None
        if isinstance(self._judge, graders.JudgeGrader):
            agreement = graders.agreement_sentence(
                self._grades_of_both, self._judge.name
            )
        replies_read: Counts = {}
        for model in dict.fromkeys(self.repliers):
            add(replies_read, {model.name: model.counts})
        return {
            "samples_alike": samples_alike(self._wordings),
            "replies_read": replies_read,
            **self._assessed,
            "agreement": agreement,
        }

    def run(self) -> Run:
        """All that was gathered, as a run."""
        tables = self.tables.frames()
        facts = facts_of(self)
        facts["unknown_answers"] = unknown_answers(tables["answers"])
        folder = self.experiment.setup.run_dir
        return Run(
            **tables,
            parameters=facts,
            generations=tuple(self.generations),
            folder=folder,
        )


def refuse_waiting(models: Iterable[object]) -> None:
    """:class:`~trustlab.stops.Waiting` where requests of a model among these wait in batch
    files."""
    steps = [model.next_step() for model in _waiting(models)]
    if steps:
        raise Waiting("; ".join(steps))


def _waiting(models: Iterable[object]) -> list[Model]:
    """The backends of the models among these whose requests wait in batch files."""
    backends = {}
    for model in models:
        if isinstance(model, Model):
            backends[id(model.innermost)] = model.innermost
    return [backend for backend in backends.values() if backend.waiting]


def run_each(runs: Mapping[str, Callable[[], T]]) -> dict[str, T]:
    """Every run by its name. Where one waits for its replies, the others put their questions before
    :class:`~trustlab.stops.Waiting` is raised."""
    results = {}
    steps = []
    for name, run in runs.items():
        try:
            results[name] = run()
        except Waiting as waiting:
            steps.append(str(waiting))
    if steps:
        raise Waiting("; ".join(dict.fromkeys(steps)))
    return results


def served_by(models: Iterable[Model]) -> dict[str, dict[str, int]]:
    """Model -> name that its server gave -> replies handed out under it; without the models whose
    servers give none."""
    facts = {}  # by object: two models may share a name
    for model in models:
        if model.served:
            facts[id(model)] = {"served_by": {model.name: model.served}}
    return together(facts.values())["served_by"]


def request_facts(models: Iterable[Model]) -> dict[str, Any]:
    """How models receive requests, for a manifest: options that are not the default, prompts, forms
    of replies; and the models that use their own temperature, take no schema, or cut prompts."""
    options = {}
    prompts = {}
    forms = {}
    settled = {}
    by_name = {model.name: model for model in models}
    for name, model in by_name.items():
        prompts[name] = prompts_of(model).facts
        if model.asked_with:
            options[name] = dict(model.asked_with)
        if model.structured:
            forms[name] = list(TAUGHT_STEPS if model.taught else HELD)
        if model.settled is not None:
            settled[name] = model.settled
    return {
        "model_options": options,
        "prompts": prompts,
        "held_to_a_form": forms,
        "own_temperature": [name for name in settled if not settled[name].temperature],
        "unstructured": [name for name in settled if not settled[name].structured],
        "cut_prompts": [name for name in by_name if by_name[name].n_cut_prompts],
    }


def warn(parameters: Mapping[str, Any]) -> None:
    """Warn the caller of a study, in the :func:`remark_lines` of a run's ``parameters``."""
    for line in remark_lines(parameters):
        warnings.warn(line, stacklevel=4)


def _reader_facts(readers: Readers) -> dict[str, Any]:
    """Who read the models' words, for the manifest."""
    medical = readers.medical
    judge = readers.entailment
    return {
        "encoder": readers.encoder.revision,
        "medical_encoder": medical and medical.revision,
        "entailment": {
            "name": judge.name,
            "stand_in": judge.stand_in,
            "revision": judge.revision,
        },
    }


def cases_hash(cases: Sequence[Case]) -> str:
    """A fingerprint of what is shown and what is true, 16 hex digits."""
    rows = []
    for case in cases:
        row = [
            case.case_id,
            case.diagnosis,
            [statement.text for statement in case.facts],
        ]
        if case.question:
            row.append(case.question)
        rows.append(row)
    text = json.dumps(rows)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _scored(
    datasets: Sequence[str],
    generations: Sequence[Generation],
    methods: Sequence[Method],
    with_lines: bool,
) -> tuple[list[ConfidenceRow], list[bytes]]:
    """Rows of scores; ``with_lines`` also each record as a line."""
    rows = score_answers(datasets, generations, methods)
    lines = map(line_of, generations) if with_lines else ()
    return rows, list(lines)
