"""The benchmark: cases at every level, one model after the other, every method judged on the same
answers."""

from __future__ import annotations

import hashlib
import io
import json
import math
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any, BinaryIO, TypeVar

import pandas as pd
from tqdm import tqdm

from trustlab import graders
from trustlab.agents.medconf import Ask, Profiles
from trustlab.collect import collect, needs_of, samples_alike
from trustlab.confidence import METHODS, Method, select
from trustlab.costs import purposes_of
from trustlab.datasets.replies_file import Kept, read_replies
from trustlab.folder.records_file import NAME as RECORDS
from trustlab.folder.records_file import find_records, line_of, read_records, save_records
from trustlab.folder.replies_log import packed, recording
from trustlab.formatted import remark_lines, together
from trustlab.levels import Show, view
from trustlab.levels import views as views_of
from trustlab.meaning.parts import Readers, with_meaning
from trustlab.metrics.run_tables import KEYS, checked_answers, joined
from trustlab.models.base import Model, Request, Waiting
from trustlab.models.cache import CALL_COLUMNS, CachedModel
from trustlab.models.trial import spread
from trustlab.parsing.counts import Counts, ReadReply, add, count, too_few, totals, why_few
from trustlab.parsing.schemas import HELD
from trustlab.paths import NOTICE, Growing, from_spreadsheet, save_json, save_tables
from trustlab.processes import beside, seldom_collected
from trustlab.prompts import prompts_of
from trustlab.records import (
    CUT,
    LEVELS,
    NO_DIAGNOSIS,
    PLACEHOLDER,
    UNNAMED,
    Case,
    Generation,
    Reply,
    View,
)
from trustlab.settings import Setup, given
from trustlab.tables import table_text
from trustlab.workbench import Workbench, opened

T = TypeVar("T")
LIBRARIES = (
    "numpy", "pandas", "scipy", "scikit-learn", "torch", "transformers", "sentence-transformers",
    "papermill",
)  # fmt: skip

RUN = "run.json"
_KEYS = {"case_id": "string", "dataset": "string", "level": "int64", "model": "string"}
COLUMNS = {
    "answers": _KEYS | {
        "answer": "string", "truth": "string", "correct": "float64", "n_statements": "int64",
        "n_words": "int64", "n_samples": "float64", "missing": "string",
    },
    "confidence": _KEYS | {
        "method": "string", "confidence": "float64", "bound": "string", "missing": "string",
    },
    "calls": dict.fromkeys(CALL_COLUMNS, "int64")
    | {"purpose": "string", "seconds": "float64", "model": "string"},
}  # fmt: skip
"""Table -> column -> its type in a Parquet file."""
LEAST = {
    "answers": (*KEYS, "answer", "correct"),
    "confidence": (*KEYS, "method", "confidence", "bound", "missing"),
    "calls": (),
}
"""Columns without which a saved table is none."""
UNDER_ALL = ("diagnosis", "judge", "ask", "patient")
"""Purposes on whose replies every number of a run rests."""
ASSESSED = ("passages_dropped", "baseless_assessments", "keywords_unread")
"""What is counted of MedConf's assessments: passages that did not fit; scores of 100 without a
supported criterion; keywords for which the diagnosis stood in."""
AHEAD = 3
"""Parts that may wait for their scores while others are asked."""
PART = 600
"""Views that are asked about, scored and, of a large run, let go together: whole cases, in order,
so that a server which keeps the beginnings of prompts meets a patient's again soon."""
KEPT_UP_TO = 5_000
"""Views of a run up to which its generations are kept, where ``keep_generations`` is ``None``."""


@dataclass(frozen=True)
class Run:
    """The tables of one benchmark, each tidy (one observation a row), and what made them.

    - ``answers``, ``confidence`` and ``calls`` (a row a request) have :data:`COLUMNS`. An answer
      that the backend failed to give is neither right nor wrong, and ``missing`` says why.
    - ``generations``: the records themselves; of a large run empty. ``folder``: where it was saved,
      with every reply (:func:`load_run`).
    """

    answers: pd.DataFrame
    confidence: pd.DataFrame
    calls: pd.DataFrame
    parameters: dict[str, Any]
    generations: tuple[Generation, ...] = field(default=(), repr=False)
    folder: Path | None = field(default=None, repr=False, compare=False)

    @property
    def methods(self) -> list[str]:
        """The methods that were asked for, in order; of tables alone those that they hold."""
        return list(self.parameters.get("methods") or self.confidence["method"].unique())

    @cached_property
    def families(self) -> dict[str, str]:
        """Method -> family, for the methods of this run."""
        return {m.name: m.family for m in select(self.methods)} if self.methods else {}

    @cached_property
    def _records(self) -> dict[tuple[str, str, int], Generation]:
        return {(g.model, g.case_id, g.level): g for g in self.generations}

    @cached_property
    def _places(self) -> tuple[dict[Any, Any], ...]:
        """Of answers and confidences (model, case, level) -> the places of their rows;
        ``ValueError`` where a case's id is in two data sets, since records do not say which."""
        cases: Any = self.answers[["dataset", "case_id"]].drop_duplicates()
        again = cases.loc[cases["case_id"].duplicated(keep=False)]
        if len(again):
            name, sets = again["case_id"].iloc[0], ", ".join(sorted(set(again["dataset"])))
            told = f"the case id {name!r} is in several data sets ({sets})"
            raise ValueError(f"no answer can be shown: {told}; give each case an id of its own")
        keys, tables = ["model", "case_id", "level"], (self.answers, self.confidence)
        return tuple(table.groupby(keys, observed=True).indices for table in tables)

    def of_answer(
        self, model: str, case_id: str, level: int
    ) -> tuple[pd.DataFrame, pd.DataFrame, Generation | None]:
        """Of one answer: its row of ``answers`` (none where there is no such answer), its rows of
        ``confidence``, and its record where it was kept."""
        key = (model, case_id, level)
        answers, confidence = (places.get(key, []) for places in self._places)
        record = self._records.get(key)
        if not self.generations and self.folder and (kept := self.folder / RECORDS).is_file():
            record = next(find_records(kept, {(case_id, level, model)}), None)
        return self.answers.iloc[answers], self.confidence.iloc[confidence], record

    def save(self, folder: Path, tables: bool = True, records: bool = True) -> None:
        """Write the tables (CSV, full precision), the records that the run holds, and ``run.json``
        (parameters, versions, hashes, calls); without ``tables`` and ``records`` where these are
        written already."""
        if tables:
            save_tables(self, COLUMNS, folder)
        for name in COLUMNS:  # of an earlier run
            (folder / f"{name}.{'parquet' if tables else 'csv'}").unlink(missing_ok=True)
        if records and self.generations:
            save_records(self.generations, folder / RECORDS)
        elif records:
            (folder / RECORDS).unlink(missing_ok=True)
        save_json(self.manifest(), folder / RUN)

    def manifest(self) -> dict[str, Any]:
        """What a reader needs to know to make the run again, and how many calls were made and taken
        from the cache."""
        lost: Any = self.confidence[self.confidence["missing"] != ""]
        lost = sorted(lost.groupby(["method", "missing"]).size().items())
        return {
            "notice": NOTICE,
            "benchmark": self.parameters,
            "calls_made": int(self.calls["n_made"].to_numpy().sum()),
            "calls_from_cache": int(self.calls["n_cached"].to_numpy().sum()),
            "missing": [{"method": m, "reason": r, "n": int(n)} for (m, r), n in lost],
            "warnings": remark_lines(self.parameters),
            "versions": {name: version(name).split("+")[0] for name in (*LIBRARIES, "trustlab")},
        }


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
    """Ask every model about every case at every level, and score every method on what came back.

    - ``models``: one or several, each open or by its name; ``None``: those of ``setup``.
    - ``methods`` and ``levels``: those of ``setup``, else "paper" and all six levels.
    - ``setup.run_dir`` receives the tables and every request with its replies
      (:mod:`trustlab.folder.replies_log`).
    - Replies are kept in ``setup.cache``, else in ``replies.sqlite`` of ``run_dir``, without one in
      ``runs/replies.sqlite``: from there a killed run resumes. What was found of meaning is kept
      beside it.
    - ``asked_before``: models whose calls belong to this run, such as one that worded the cases.
    - ``show`` makes what is shown of a case at a level, where that is not its first statements.
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
                began, shown_steps = perf_counter(), partial(step_bar, model.name, setup.quiet)
                more = {"progress": shown_steps, "profiles": profiles}
                made = collect(cached, part, chosen, settings, **how, **more)
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
        "usage": {m.name: dict(usage) for m in models if (usage := getattr(m, "usage", None))},
        **gathered.facts(),
        "served_by": served_by(everyone),
        **how_asked(everyone),
    }
    tables, made = gathered.tables.frames(), tuple(gathered.generations)
    run = without_unread(Run(**tables, parameters=facts, generations=made, folder=setup.run_dir))
    if setup.run_dir:
        run.save(setup.run_dir, tables=keep, records=False)
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
    """Replies that somebody has already, scored by every method that they allow; no model is asked.

    - ``table``: a row an answer, or a file of such rows; its columns are
      :data:`trustlab.datasets.replies_file.COLUMNS`. A method that needs what is not there is
      missing, with that reason.
    - ``methods``: "variants" where ``None``. The sentence encoder, the judge of entailment, the
      grader, seed and draws are those of ``setup``.
    - ``confidence``: confidences that are known, as in a run's table. They are taken as they are,
      and without ``methods`` nothing else is computed.
    - Raises :class:`~trustlab.datasets.DataError` as
      :func:`~trustlab.datasets.replies_file.read_replies`.
    """
    setup = opened(setup)
    known = [] if confidence is None else select(list(confidence["method"].unique()))
    wanted = given(methods, setup.methods, "variants" if confidence is None else [])
    chosen = [m for m in (select(wanted) if wanted else []) if m not in known]
    kept = read_replies(table, setup.chosen, setup.seed)
    readers, needs = setup.readers, needs_of(chosen)
    made = with_meaning(kept.generations, kept.views, needs, readers)
    scored = confidence_table(kept.views, made, chosen)
    judge = getattr(setup.judge, "model", None)
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
    }
    calls = pd.DataFrame(columns=list(COLUMNS["calls"]))
    run = without_unread(Run(answers, scored, calls, facts, tuple(made), setup.run_dir))
    if setup.run_dir:
        run.save(setup.run_dir)
    warn(facts)
    return run


def _own_answers(kept: Kept, setup: Workbench) -> list[tuple]:
    """Rows of the answers table: with the verdict that a row brings, else the grader's."""
    rows = _answers(kept.views, kept.generations, setup.judge)
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
    kinds = {"": "read", NO_DIAGNOSIS: "unread", PLACEHOLDER: "placeholder"}
    for g in generations:
        why = (g.answer.missing or "") if g.answer else "not had"
        if kind := "cut" if why.startswith(CUT) else kinds.get(why):
            count(counts.setdefault(g.model, {}), "diagnosis", [ReadReply(kind)])
    return counts


def load_run(folder: str | Path, records: bool | None = None) -> Run:
    """A saved run, from its folder alone: no model, no encoder, no download.

    Its tables, parameters and, where they were kept and ``records`` are wanted, its generations;
    ``None``: of a run of at most :data:`KEPT_UP_TO` answers. ``ValueError`` for a folder that is
    no run's, with what is missing, and for a file that is damaged, with its line;
    ``FileNotFoundError`` where there is no such folder.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}")
    if not (file := folder / RUN).is_file():
        raise ValueError(f"{folder} has no {RUN}: {_no_run(folder)}")
    try:
        facts = dict(json.loads(file.read_text(encoding="utf-8"))["benchmark"])
    except (ValueError, LookupError, TypeError) as error:
        raise ValueError(f"{file} is not that of a benchmark's run: {error!r}") from error
    tables = {name: _table(folder, name) for name in COLUMNS}
    kept = folder / RECORDS
    wanted = len(tables["answers"]) <= KEPT_UP_TO if records is None else records
    made = read_records(kept) if wanted and kept.is_file() else ()
    return without_unread(Run(**tables, parameters=facts, generations=made, folder=folder))


def table_in(folder: Path, name: str) -> Path:
    """The file of a run's table; ``ValueError`` where the folder has none."""
    if found := find_table(folder, name):
        return found
    raise ValueError(f"{folder} has no {name}.csv or {name}.parquet: {_no_run(folder)}")


def _no_run(folder: Path) -> str:
    runs = sorted(str(file.parent.relative_to(folder)) for file in folder.rglob(RUN))
    return "it is no run's folder" + (f"; below it are those of {', '.join(runs)}" if runs else "")


def find_table(folder: Path, name: str) -> Path | None:
    """The file of a run's table, Parquet before CSV, or ``None``."""
    files = (folder / f"{name}.{kind}" for kind in ("parquet", "csv"))
    return next((file for file in files if file.is_file()), None)


def read_table(file: Path) -> pd.DataFrame:
    """A run's table from its file, as it was before it was saved, text as text: a case may be
    called 007, an answer NA."""
    if file.suffix == ".parquet":
        table = pd.read_parquet(file)
    else:
        kinds = {name: kind for of in COLUMNS.values() for name, kind in of.items()}
        words: Any = {name: "str" for name, kind in kinds.items() if kind == "string"}
        none: Any = {c: ["", "NA", "NaN", "nan"] for c in kinds if c not in words}
        none |= {"answer": [""]}  # other texts are empty, never missing
        how: dict[str, Any] = {"dtype": words, "keep_default_na": False, "na_values": none}
        table: Any = pd.read_csv(io.StringIO(table_text(file)), **how)
        table = table.assign(**{c: table[c].map(from_spreadsheet) for c in words if c in table})
        lost = [c for c in ("answer", "n_samples") if c in table and not table[c].count()]
        table = table.assign(**{c: pd.Series([None] * len(table), dtype=object) for c in lost})
    return table.assign(**{c: table[c].fillna("") for c in ("bound", "missing") if c in table})


def _table(folder: Path, name: str) -> pd.DataFrame:
    if not LEAST[name] and find_table(folder, name) is None:
        return pd.DataFrame(columns=list(COLUMNS[name]))
    table = read_table(table_in(folder, name))
    if lacking := [c for c in LEAST[name] if c not in table]:
        raise ValueError(f"the columns of {name} in {folder} lack {', '.join(lacking)}")
    return table


def withheld(parameters: Mapping[str, Any], methods: Iterable[str]) -> dict[tuple[str, str], str]:
    """(model, method) -> why nothing is claimed of it: less than half of the replies that it rests
    on could be read. Method '' is for the answers."""
    counts: Counts = parameters.get("replies_read") or {}
    own = {name: purposes_of(METHODS[name]) for name in methods if name in METHODS}
    return {
        (model, name): why
        for model in (parameters.get("models", ()) if too_few(counts) else ())
        for name, of in {"": (), **own}.items()
        if (why := why_few(counts, model, (*UNDER_ALL, *of)))
    }


def without_unread(run: Run) -> Run:
    """The run with its :func:`withheld` values missing, which gives their reason: nothing that is
    made of it claims a number of them."""
    reasons = withheld(run.parameters, run.methods)
    if not reasons:
        return run
    answers, confidence = run.answers.copy(), run.confidence.copy()
    for table in (answers, confidence):
        table["missing"] = table["missing"].astype(object) if "missing" in table else ""
    for (model, method), why in reasons.items():
        if method:
            rows = confidence["model"].eq(model) & confidence["method"].eq(method)
            confidence.loc[rows, ["confidence", "bound", "missing"]] = [math.nan, "", why]
            continue
        rows = answers["model"].eq(model)
        answers.loc[rows, "correct"] = math.nan
        for own in answers.loc[rows, "missing"].unique():
            both = own if why in own else f"{why} ({own})" if own else why
            answers.loc[rows & answers["missing"].eq(own), "missing"] = both
    return replace(run, answers=answers, confidence=confidence)


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
        rows = _answers(views, made, judge := self._setup.judge)
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
    """:class:`~trustlab.models.base.Waiting` where requests of a model, or of one that somebody
    has, wait in batch files."""
    if told := [model.next_step() for model in _waiting(asked)]:
        raise Waiting("; ".join(told))


def _waiting(asked: Iterable[object]) -> list[Any]:
    """The models among these, or that one of them has, whose requests wait in batch files."""
    found: dict[int, Any] = {}
    for one in asked:
        while (inner := getattr(one, "model", None)) is not None:
            one = inner
        found[id(one)] = one
    return [model for model in found.values() if getattr(model, "waiting", 0)]


def each_asked(runs: Mapping[str, Callable[[], T]]) -> dict[str, T]:
    """Every run by its name. Where one waits for its replies, the others put their questions before
    :class:`~trustlab.models.base.Waiting` is raised."""
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
    each = {id(m): {m.name: served} for m in models if (served := getattr(m, "served", None))}
    return together({"served_by": of} for of in each.values())["served_by"]


def how_asked(models: Iterable[Any]) -> dict[str, Any]:
    """The models' options that are not the default, their prompts, and which of their replies were
    held to a form; and which models were asked otherwise than was wished: at their own temperature,
    nearly at 0 in place of 0, not held to a schema."""
    asked = {m.name: m for m in models}
    inner = {name: getattr(m, "model", m) for name, m in asked.items()}
    options = {name: dict(getattr(m, "asked_with", {})) for name, m in inner.items()}
    held = [name for name, m in inner.items() if getattr(m, "structured", False)]
    known = {name: able for name, m in asked.items() if (able := vars(m).get("abilities"))}
    return {
        "model_options": {name: given for name, given in options.items() if given},
        "prompts": {name: prompts_of(m).facts for name, m in asked.items()},
        "held_to_a_form": {name: list(HELD) for name in held},
        "own_temperature": [name for name, able in known.items() if not able.temperature],
        "nearly_greedy": [name for name, able in known.items() if able.coldest],
        "unstructured": [name for name, able in known.items() if not able.structured],
    }


def sharded(setup: Workbench) -> dict[str, str]:
    """What a manifest tells of the share of the cases that this process took."""
    return {"shard": setup.shard} if setup.shard else {}


def warn(parameters: Mapping[str, Any]) -> None:
    """Warn the caller of a study of what a run's ``parameters`` hold against its models."""
    for line in remark_lines(parameters):
        warnings.warn(line, stacklevel=4)


def given_once(cases: Sequence[Case], models: Sequence[Model], levels: Sequence[int]) -> None:
    """``ValueError`` unless there is at least one of each, and none twice."""
    names = {"case": [c.case_id for c in cases], "model": [m.name for m in models], "level": levels}
    for what, keys in names.items():
        if len(keys) == 0:
            raise ValueError(f"no {what}s; at least one is needed")
        if again := [str(key) for key, n in Counter(keys).items() if n > 1]:
            raise ValueError(f"each {what} may be given once; given again: {', '.join(again)}")


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
    text = json.dumps([[c.case_id, c.diagnosis, [s.text for s in c.facts]] for c in cases])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def confidence_table(
    views: Sequence[View], generations: Sequence[Generation], methods: Sequence[Method]
) -> pd.DataFrame:
    """Every method on every generation."""
    rows, _ = _scored([v.case.dataset for v in views], generations, methods)
    return pd.DataFrame(rows, columns=list(COLUMNS["confidence"]))


def _scored(
    datasets: Sequence[str],
    generations: Sequence[Generation],
    methods: Sequence[Method],
    lines: bool = False,
) -> tuple[list[tuple], list[bytes]]:
    """Rows of the table of confidences; with ``lines`` also each record as one."""
    rows = []
    for dataset, g in zip(datasets, generations, strict=True):
        absences: dict[str, str] = {}
        for m in methods:
            e = m.evaluate(g, absences)
            key = (g.case_id, dataset, g.level, g.model, m.name)
            rows.append((*key, e.confidence, e.bound, e.missing))
    return rows, [line_of(g) for g in generations] if lines else []


def _answers(
    views: Sequence[View], generations: Sequence[Generation], grader: graders.Grader
) -> list[tuple]:
    """Rows of the answers table. What the backend failed to give, or the grader could not judge, is
    neither right nor wrong."""
    said = [g.answer.text if g.answer else None for g in generations]
    grades, rows = grader.grade(said, [v.case for v in views]), []
    for v, g, answer, grade in zip(views, generations, said, grades, strict=True):
        lost = g.answer and answer is None and g.answer.missing not in UNNAMED
        failed = g.answer.missing if g.answer and lost else ""
        correct = math.nan if failed or grade.correct is None else grade.correct
        n_samples = None if g.samples is None else len(g.samples)
        asked = (g.case_id, v.case.dataset, g.level, g.model, answer, v.case.diagnosis, correct)
        rows.append((*asked, g.n_statements, g.n_words, n_samples, failed or grade.missing))
    return rows


def step_bar(name: str, quiet: bool, step: str, total: int) -> Any:
    """A bar of the requests of a step, such as :func:`trustlab.collect.collect` shows."""
    words = f"{name}: {step}"
    return tqdm(total=total, desc=words, unit="request", leave=False, disable=quiet)


def with_progress(name: str) -> Ask:
    """Puts requests to a model, a cached one under a progress bar that begins with ``name``."""

    def put(model: Model, requests: list[Request], step: str) -> list[list[Reply]]:
        if not isinstance(model, CachedModel):
            return model.generate(requests)
        with step_bar(name, False, step, len(requests)) as bar:
            return model.generate(requests, progress=bar.update)

    return put
