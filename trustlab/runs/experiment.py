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
from trustlab.levels import Show, view, views
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
from trustlab.runs.run import (
    AnswerRow,
    ConfidenceRow,
    Run,
    confidence_table,
    given_once,
    grade_answers,
    score_answers,
)
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
    bench = opened(setup)
    experiment = Experiment(cases, models, methods, levels, bench, asked_before, show)
    gathered = ask_models(experiment)
    run = without_unread(gathered.run())
    if bench.run_dir:
        save_large(run, bench.run_dir, gathered.keep)
    warn(run.parameters)
    return run


class Experiment:
    """What is asked, of whom, and who helps: all opened, and nothing spent. ``ValueError`` for what
    cannot be run."""

    def __init__(
        self,
        cases: Sequence[Case],
        models: Any,
        methods: str | Sequence[str] | None,
        levels: Sequence[int] | None,
        setup: Workbench,
        asked_before: Sequence[CachedModel],
        show: Show,
    ) -> None:
        self.setup, self.cases, self.asked_before = setup, cases, asked_before
        self.levels, self.models = given(levels, setup.levels, LEVELS), setup.models(models)
        given_once(cases, self.models, self.levels)
        self.methods = select(given(methods, setup.methods, "paper"))
        self.views = views(cases, self.levels, show)
        needs, judge = needs_of(self.methods), setup.judge
        self.readers, self.assessor = setup.readers, setup.assessed_by
        warning = graders.unknown_truths_warning(judge, cases)
        if warning:
            warnings.warn(warning, stacklevel=3)
        self.library = setup.library if "assessment" in needs else None
        panel = setup.role("panel", self.models) if "panel" in needs else None
        self.doctors = [setup.cached(doctor) for doctor in panel or []]
        judges: Any = [judge.model] if isinstance(judge, graders.JudgeGrader) else []
        self.helpers = [*filter(None, [self.assessor]), *self.doctors, *judges]
        for model in [*self.models, *self.helpers]:
            setup.prompts_for(model).check(case.question for case in cases)
        for helper in self.helpers:  # a judge may serve several runs; each counts its own calls
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


def ask_models(experiment: Experiment) -> Gathered:
    """Every model about every view; a large run's rows go to files as they come."""
    setup, folder, helpers = experiment.setup, experiment.setup.run_dir, experiment.helpers
    n_views = len(experiment.views) * len(experiment.models)
    n_cases = len(experiment.cases) * len(experiment.models)
    keep = n_views <= KEPT_UP_TO if setup.keep_generations is None else setup.keep_generations
    with (
        seldom_collected(),
        packed(folder / RECORDS) if folder else nullcontext() as records,
        beside(setup.n_jobs if n_views > PART else 1, _scored) as begin,
        Growing(COLUMNS, folder, keep) as tables,
        recording(folder) as attach,
        tqdm(total=n_cases, unit="case", leave=False, disable=setup.quiet) as bar,
    ):
        gathered = Gathered(experiment, keep, tables, records, begin)
        attach(*helpers)
        for model in experiment.models:
            cached = setup.cached(model)
            cached.reset_calls()
            attach(cached)
            gathered.models.append(cached)
            ask_model(gathered, cached, bar)
            if cached is not model:
                cached.close()
        refuse_waiting([*gathered.models, *experiment.asked_before, *helpers])
        gathered.take()
        gathered.count([*experiment.asked_before, *helpers])
        for doctor in experiment.doctors:
            doctor.close()
    return gathered


def ask_model(gathered: Gathered, model: CachedModel, bar: tqdm[Any]) -> None:
    """One model about every view, part by part: requests, replies, readings, grades and scores.
    Nothing is scored while replies wait."""
    experiment = gathered.experiment
    helpers = experiment.helpers
    trial = experiment.setup.tried
    if trial is not None and model.trial is trial:
        with trial.apart([model, *helpers]):
            experiment.collect(model, spread(experiment.views))
    profiles: Profiles = {}
    seconds = 0.0
    for part in _parts(experiment.views):
        began = perf_counter()
        generations = experiment.collect(model, part, profiles)
        seconds += perf_counter() - began
        n = totals({model.name: model.counts})
        bar.set_postfix_str(f"unread {n['asked'] - n['read']:,} of {n['asked']:,}")
        bar.update(len(part) // len(experiment.levels))
        gathered.grade(part, generations)
        if not _waiting([model, *experiment.asked_before, *helpers]):
            gathered.score(part, generations)
        gathered.count([] if gathered.keep else [model, *helpers])
    gathered.count([model] if gathered.keep else [])
    gathered.seconds[model.name] = round(seconds, 3)


def facts_of(gathered: Gathered) -> dict[str, Any]:
    """What the manifest tells of a benchmark."""
    experiment = gathered.experiment
    setup, models, helpers = experiment.setup, experiment.models, experiment.helpers
    library, assessor = experiment.library, experiment.assessor
    everyone = [*gathered.models, *experiment.asked_before, *helpers]
    settings = asdict(setup.settings)
    parameters = settings.pop("parameters")
    answer_tokens = max(prompts_of(model).answer_tokens for model in gathered.models)
    starter = library is not None and setup.corpus is None and setup.retriever is None
    return {
        "models": {m.name: m.revision for m in models},
        "dataset": sorted({c.dataset for c in experiment.cases}),
        "cases": len(experiment.cases),
        "small_library": [m.name for m in [*gathered.models, *helpers] if starter and not m.taught],
        **sharded(setup),
        "cases_sha256": cases_hash(experiment.cases),
        "methods": [m.name for m in experiment.methods],
        "levels": list(experiment.levels),
        **parameters,
        **settings,
        "max_tokens_answer": settings["max_tokens_answer"] or answer_tokens,
        **_read_by(experiment.readers),
        "retriever": library and library.revision,
        "assessor": assessor and {assessor.name: assessor.revision},
        "panel": {doctor.name: doctor.revision for doctor in experiment.doctors} or None,
        "grader": setup.judge.name,
        "collect_s": gathered.seconds,
        "usage": {m.name: dict(m.usage) for m in models if m.usage},
        **gathered.facts(),
        "served_by": served_by(everyone),
        **how_asked(everyone),
    }


def save_large(run: Run, folder: Path, keep: bool) -> None:
    """Save a run whose records are written already, and of a large one the tables, too; what was
    taken back of these is written again."""
    save_run(run, folder, tables=keep, records=False)
    unread = withheld(run.parameters, run.methods)
    if unread and not keep:
        run.answers.to_parquet(folder / "answers.parquet", index=False)
        run.confidence.to_parquet(folder / "confidence.parquet", index=False)


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


def _own_answers(kept: RecordedReplies, setup: Workbench) -> list[AnswerRow]:
    """Rows of the answers table: with the verdict that a row brings, else the grader's."""
    graded = grade_answers(kept.views, kept.generations, setup.judge)
    rows = []
    for row, verdict, why, n in zip(
        graded, kept.correct, kept.missing, kept.n_samples, strict=True
    ):
        own = math.nan if why else row.correct
        changed = row._replace(
            correct=own if verdict is None else int(verdict),
            n_statements=row.n_statements or None,  # 0: not told
            n_words=row.n_words or None,
            n_samples=n,
            missing=why or row.missing,
        )
        rows.append(changed)
    return rows


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
        experiment: Experiment,
        keep: bool,
        tables: Growing,
        records: BinaryIO | None,
        begin: Callable[..., Future[Any]],
    ) -> None:
        self.experiment, self.keep, self.tables = experiment, keep, tables
        self._judge, self._records, self._begin = experiment.setup.judge, records, begin
        self._begun: deque[Future[tuple[list[ConfidenceRow], list[bytes]]]] = deque()
        self.models: list[CachedModel] = []
        self.seconds: dict[str, float] = {}
        self.generations: list[Generation] = []
        self._wordings: Counter[tuple[str, int | None]] = Counter()
        self._assessed = Counter(dict.fromkeys(ASSESSED, 0))
        self._read: Counts = {}
        self._both: list[tuple[int | None, float]] = []

    def grade(self, views: Sequence[View], generations: Sequence[Generation]) -> None:
        """Grade these answers, and see whether the rules agree with a judge."""
        rows = grade_answers(views, generations, self._judge)
        self.tables.add("answers", rows)
        if isinstance(self._judge, graders.JudgeGrader):
            rules = graders.SynonymGrader().grade([r.answer for r in rows], [v.case for v in views])
            self._both += [(a.correct, r.correct) for a, r in zip(rules, rows, strict=True)]

    def score(self, views: Sequence[View], generations: Sequence[Generation]) -> None:
        """Count these, and begin to score them while the next are asked."""
        self._wordings.update((g.model, g.n_wordings) for g in generations)
        for a in (g.assessment for g in generations if g.assessment):
            each = (a.n_dropped, a.is_baseless, not a.keyword_read)
            counts = zip(ASSESSED, each, strict=True)
            self._assessed.update(dict(counts))
        self.take(AHEAD - 1)
        datasets = [v.case.dataset for v in views]
        methods = self.experiment.methods
        lines = self._records is not None
        scores = self._begin(_scored, datasets, generations, methods, lines)
        self._begun.append(scores)
        if self.keep:
            self.generations += generations

    def take(self, most: int = 0) -> None:
        """Add the scores that were begun, as far as they are done; wait for all but ``most``."""
        while len(self._begun) > most or (self._begun and self._begun[0].done()):
            rows, lines = self._begun.popleft().result()
            self.tables.add("confidence", rows)
            if self._records is not None:
                self._records.writelines(lines)

    def count(self, models: Iterable[CachedModel]) -> None:
        """Take the calls of these models and what became of their replies; of a large run they are
        let go there."""
        for model in models:
            self.tables.add("calls", [(*call.values(), model.name) for call in model.calls])
            add(self._read, {model.name: model.counts})
            if not self.keep:
                model.calls.clear()
                model.counts.clear()
        self.tables.end_part()

    def facts(self) -> dict[str, Any]:
        """What a manifest tells of the generations, and how far the rules and a judge agree."""
        judged = isinstance(self._judge, graders.JudgeGrader)
        return {
            "samples_alike": samples_alike(self._wordings),
            "replies_read": self._read,
            **self._assessed,
            "agreement": (
                graders.agreement_sentence(self._both, self._judge.name) if judged else None
            ),
        }

    def run(self) -> Run:
        """All that was gathered, as a run."""
        tables, facts = self.tables.frames(), facts_of(self)
        facts["unknown_answers"] = unknown_answers(tables["answers"])
        folder = self.experiment.setup.run_dir
        return Run(**tables, parameters=facts, generations=tuple(self.generations), folder=folder)


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
) -> tuple[list[ConfidenceRow], list[bytes]]:
    """Scores; with ``lines`` also each record as one."""
    rows = score_answers(datasets, generations, methods)
    return rows, [line_of(g) for g in generations] if lines else []
