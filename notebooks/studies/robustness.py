"""02: does a confidence stay put when the wording changes? And two patients told as one."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, Self

import pandas as pd
from pydantic import Field, model_validator

from trustlab.agents import changes as ways
from trustlab.agents.paraphrase_check import ParaphraseChecker
from trustlab.agents.rephrase import reword
from trustlab.choices import Seed, Switch, choices
from trustlab.confidence import METHODS, select
from trustlab.graders import Grader
from trustlab.knowledge.findings import load_knowledge
from trustlab.metrics import paired, stability
from trustlab.metrics.estimate import Statistic, between, groups, mean, mean_share, rate
from trustlab.metrics.run_tables import shared_rows
from trustlab.metrics.schema import table
from trustlab.models.base import About, Model
from trustlab.models.cache import CachedModel
from trustlab.parsing.counts import why_few
from trustlab.paths import save_table
from trustlab.records import Case, Reading, Statement
from trustlab.runs.experiment import benchmark, run_each
from trustlab.runs.folder.replies_log import recording
from trustlab.runs.measures import families
from trustlab.runs.run import Run
from trustlab.runs.workbench import Workbench, opened
from trustlab.settings import Setup, given

WORDED = ("rephrase_question", "rephrase_reply", "rephrase_statement")
"""Purposes of the requests for new words."""
METHODS_SHOWN = "ratio"
"""Every method on a ratio scale, where a coefficient of variation means something."""
CHANGES = ("small_talk", "other_system", "reordered", "instruction_100")
SEEDS = (1, 2, 3)  # of the three paraphrased conditions
WORDING_COLUMNS = ["text", "wording", "verdict", "how", "why", "used", "n"]


@choices
class Asked(Workbench):
    """The choices of notebook 02."""

    UNUSED = ("doctor", "patient", "reviewer", "medical_proxy")

    changes: Annotated[Sequence[str], Field(description="a list of names of changes")]
    paraphrase_seeds: Annotated[
        Sequence[Seed], Field(description="a list of whole numbers, at least 0, or []")
    ]
    """A paraphrased condition for each."""
    two_at_once: Switch = True
    """Whether two patients are shown as one, too."""

    @model_validator(mode="after")
    def _changes(self) -> Self:
        ways.named(self.changes)
        return self


setup = Asked.of


@dataclass(frozen=True)
class Robustness:
    """The tables of every condition, tidy, and the runs that they are of.
    ``answers`` and ``confidence`` are those of :class:`~trustlab.runs.run.Run` with ``condition``,
    ``changed`` (the text shown differs from the original's) and ``shown`` (its digest).
    ``paraphrases``: see :func:`paraphrases`; ``left_out``: why there is no paraphrased
    condition."""

    answers: pd.DataFrame
    confidence: pd.DataFrame
    calls: pd.DataFrame
    paraphrases: pd.DataFrame
    conditions: tuple[ways.Change, ...]
    left_out: str = ""
    runs: Mapping[str, Run] = field(default_factory=dict, repr=False)


def robustness(
    cases: Sequence[Case],
    models: Sequence[Model],
    methods: str | Sequence[str] | None = None,
    levels: Sequence[int] | None = None,
    setup: Setup | Workbench | None = None,
    *,
    changes: Sequence[ways.Change] | None = None,
    paraphrase_seeds: Sequence[int] = SEEDS,
) -> Robustness:
    """Ask every model about every case as it is, paraphrased (a condition a seed) and under
    ``changes``.

    - ``methods`` and ``levels``: those of ``setup``, else every method on a ratio scale, at 100.
    - ``setup.wording`` (default: the first of ``models``) words the paraphrases; those that
      :class:`~trustlab.agents.paraphrase_check.ParaphraseChecker` catches are not used. Where none
      is usable, the paraphrased conditions are left out with the reason.
    - ``setup.run_dir`` receives each condition's tables in ``runs/NAME``, and ``paraphrases.csv``.
    - ``ValueError`` as :func:`~trustlab.runs.experiment.benchmark`, and for names given twice.
    """
    setup = opened(setup).shared()
    methods = given(methods, setup.methods, METHODS_SHOWN)
    levels = given(levels, setup.levels, (100,))
    changes = list(ways.named(CHANGES, setup.seed) if changes is None else changes)
    voice: list[CachedModel] = []
    wordings = pd.DataFrame(columns=WORDING_COLUMNS)
    left_out = "none was asked for"
    if paraphrase_seeds:
        voice = [_voice(setup.role("wording", models) or models[0], setup)]
        checker = ParaphraseChecker(load_knowledge(), setup.readers.encoder)
        with recording(setup.run_dir) as attach:
            attach(*voice)
            wordings = paraphrases(
                cases, levels, paraphrase_seeds, voice[0], checker, setup.reading
            )
        unread = why_few({"": voice[0].counts}, "", WORDED)
        left_out = unread or _none_usable(wordings, voice[0].name)
        if setup.run_dir:
            save_table(wordings, setup.run_dir / "paraphrases.csv")
    used = wordings[wordings["used"].astype(bool)]
    usable = dict(zip(used["text"], used["wording"], strict=True))
    said_again = [] if left_out else [ways.paraphrased(usable, s) for s in paraphrase_seeds]
    conditions = (ways.ORIGINAL, *said_again, *changes)
    if again := [name for name, n in Counter(c.name for c in conditions).items() if n > 1]:
        raise ValueError(f"each condition may be given once; given again: {', '.join(again)}")

    def under(change: ways.Change) -> Run:
        return benchmark(
            cases,
            models,
            methods,
            levels,
            setup.below(f"runs/{change.name}"),
            asked_before=voice if change is ways.ORIGINAL else [],
            show=change.show,
        )

    runs = run_each({change.name: partial(under, change) for change in conditions})
    calls = [run.calls.assign(condition=name) for name, run in runs.items()]
    views = [(case, level) for case in cases for level in levels]
    shown = {c.name: {(v[0].case_id, v[1]): c.show(*v).text for v in views} for c in conditions}
    answers, confidence = (_stacked(runs, name, shown) for name in ("answers", "confidence"))
    calls = pd.concat(calls, ignore_index=True)
    return Robustness(answers, confidence, calls, wordings, conditions, left_out, runs)


def paraphrases(
    cases: Sequence[Case],
    levels: Sequence[int],
    seeds: Sequence[int],
    model: Model,
    checker: ParaphraseChecker,
    reading: Reading = "chat",
) -> pd.DataFrame:
    """Each distinct statement that the conditions ``seeds`` draw, in the new words of ``model``.
    Columns: :data:`WORDING_COLUMNS`; ``wording`` is missing where nothing usable came back
    (``verdict`` "no new words", as for the old words; ``why``); ``n`` counts how often the
    statement is drawn. A question without usable new words stays as it is beside the new answer."""
    views = [(seed, case, level) for seed in seeds for case in cases for level in levels]
    each = [(s, case, level) for seed, case, level in views for s in ways.picked(case, level, seed)]
    counts = Counter(s.text for s, *_ in each)
    statement = {s.text: s for s, *_ in each}
    about = {
        s.text: About(case.dataset, case.case_id, level, counts[s.text])
        for s, case, level in reversed(each)
    }
    found = reword(counts, model, keep_question=True, about=about, reading=reading)
    rows = [_wording_row(statement[t], *new, checker, counts[t]) for t, new in found.items()]
    return pd.DataFrame(rows, columns=WORDING_COLUMNS)


def _wording_row(
    statement: Statement, new: str, why: str, checker: ParaphraseChecker, n: int
) -> tuple:
    old = statement.text
    if why or new == old:
        return old, None, "no new words", "not checked", why or "the old words came back", False, n
    found = checker.check(statement, new)
    plainer = _with_old_question(old, new)
    why = found.why
    if (found.caught or found.verdict == "unclear") and plainer != old:
        again = checker.check(statement, plainer)
        if again.verdict == "same":
            found = again
            new = plainer
            why = f"the question stays, for the new one {why}"
    return old, new, found.verdict, found.how, why, not found.caught, n


def _voice(model: Model, setup: Workbench) -> CachedModel:
    """The model with a list of calls of its own: its wordings are counted apart."""
    if isinstance(model, CachedModel):
        model = CachedModel(model.model, model.path, offline=model.offline)
    return setup.cached(model)


def _with_old_question(old: str, new: str) -> str:
    """The new answer after the old question; ``new`` where there is no question."""
    asked = old.partition("\n")
    answered = new.partition("\n")
    return f"{asked[0]}\n{answered[2]}" if asked[2] and answered[2] else new


def _none_usable(wordings: Any, name: str) -> str:
    if wordings["used"].any():
        return ""
    reasons = Counter(wordings["verdict"] + ": " + wordings["why"]).most_common(2)
    told = "; ".join(f"{why} ({n:,})" for why, n in reasons)
    return f"{name} gave no usable paraphrase of {len(wordings):,} statements: {told}"


def _stacked(
    runs: Mapping[str, Run], name: str, shown: Mapping[str, Mapping[tuple[str, int], str]]
) -> pd.DataFrame:
    """The runs' tables below one another, with ``condition``, ``changed`` and ``shown``."""
    parts = []
    for condition, texts in shown.items():
        part: pd.DataFrame = getattr(runs[condition], name).copy()
        keys = list(zip(part["case_id"], part["level"], strict=True))
        digests = [hashlib.sha256(texts[key].encode()).hexdigest()[:16] for key in keys]
        part.insert(4, "condition", condition)
        part.insert(5, "changed", [texts[key] != shown[ways.ORIGINAL.name][key] for key in keys])
        part.insert(6, "shown", digests)
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


RUN = ["model", "dataset"]
ROW = [*RUN, "case_id", "level"]
COEFFICIENTS = {"cv_group": stability.cv_group, "cv_sample": stability.cv_sample}
SAME = "the paraphrased conditions show the same text"
NOT_SHARED = "no row has a value of both methods"


def variation_table(answers: pd.DataFrame, confidence: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """CV group and CV sample (percent) of each method on a ratio scale over the paraphrases.

    - Left out are views where two paraphrased conditions show the same text (``n_same``), or where
      one changed nothing, has no graded answer or no value, the original included (``n_missing``).
    - CV sample is also without views whose mean is 0 (``n_zero``, among ``n_missing``).
    - Methods stand on the rows that they share, where an answer is right or wrong as the original's
      is; one that would take too many away on its own (``own_rows``), see :func:`compared_rows`.
    - ``chance``: :func:`~trustlab.metrics.stability.cv_group_by_chance` with ``seed``.
    - Empty where there are fewer than two paraphrased conditions.
    """
    lines = []
    by = [*RUN, "level", "method"]
    for metric, coefficient in COEFFICIENTS.items():
        for about, part in groups(compared_views(answers, confidence, metric), by):
            apart = part[~part["same"]]
            values = apart[conditions(apart)].where(apart["used"])
            line = coefficient(values, apart["case_id"])
            alike = part["same"].any() and not part["possible"].any()
            none = part["zero"].any() and not part["used"].any()
            line["missing"] = SAME if alike else stability.NO_MEAN if none else line["missing"]
            if metric == "cv_group":
                line["chance"] = stability.cv_group_by_chance(values, seed=seed)
            counts = {"n_same": part["same"].sum(), "n_zero": part["zero"].sum()}
            own = {"own_rows": part["own"].any(), "metric": metric}
            lines.append(about | line | counts | own)
    return table(lines, [*RUN, "method", "level"], ["n_same", "n_zero", "chance", "own_rows"])


def compared_views(answers: pd.DataFrame, confidence: pd.DataFrame, metric: str) -> pd.DataFrame:
    """What a variation is taken over: a row for each method on a ratio scale, view and level.
    ``metric``: "cv_group" or "cv_sample".
    Columns model dataset method case_id percent level; a value for each condition, original
    included; ``same``: two paraphrased conditions show one text; ``possible``: they do not, each
    changed something, and every answer is graded; ``correct``: whether the original's is right;
    ``zero``: the mean over the paraphrases is 0; ``whole``: every condition has a value, for CV
    sample not ``zero``; those of :func:`compared_rows`."""
    again = conditions(confidence["condition"].unique())
    ratio = [m.name for m in select("all") if m.ratio]
    compared = [ways.ORIGINAL.name, *again]
    ours = confidence["condition"].isin(compared) & confidence["method"].isin(ratio)
    asked: Any = confidence[ours & (len(again) > 1)]
    texts = asked.drop_duplicates([*ROW, "condition"]).set_index([*ROW, "condition"])
    shown, changed = (texts[name].unstack("condition") for name in ("shown", "changed"))
    moved = changed[conditions(changed)].astype(bool).all(axis=1)
    same = moved & (shown[conditions(shown)].nunique(axis=1) < len(again))
    grades: Any = answers[answers["condition"].isin(compared)]
    grades = grades.pivot(index=ROW, columns="condition", values="correct")
    grades = grades.reindex(index=moved.index, columns=compared)
    possible = moved & ~same & grades.notna().all(axis=1)
    views = pd.DataFrame({"same": same, "possible": possible})
    views = views.assign(correct=grades[ways.ORIGINAL.name]).reset_index()
    values = asked.pivot(index=[*ROW, "method"], columns="condition", values="confidence")
    found = asked[[*RUN, "method"]].drop_duplicates().merge(views, on=RUN)
    found = found.join(values, on=[*ROW, "method"])
    found["whole"] = found[values.columns].notna().all(axis=1)
    mean = found[conditions(values)].mean(axis=1, skipna=False)
    found["zero"] = found["whole"] & found["possible"] & mean.eq(0)
    if metric == "cv_sample":
        found["whole"] &= ~found["zero"]
    return compared_rows(by_level(found, RUN), [*RUN, "level"])


def conditions(names: Any) -> list[str]:
    """The paraphrased conditions among these names."""
    return [name for name in names if name.startswith(ways.PARAPHRASES)]


def compared_rows(rows: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """``used``: which rows of each method are compared; ``own``: whether it stands on its own.
    Of the ``possible`` rows, by :func:`~trustlab.metrics.run_tables.shared_rows`."""
    used = pd.Series(False, rows.index)
    own = used.copy()
    for _, part in groups(rows, by):
        of_methods = dict(list(part.groupby("method", sort=False)))
        first = next(iter(of_methods.values()))
        judged = first["possible"].to_numpy()
        correct = first["correct"].eq(1).to_numpy()
        has = {name: of["whole"].to_numpy() & judged for name, of in of_methods.items()}
        shared, members = shared_rows(has, judged, correct)
        for name, of in of_methods.items():
            used[of.index] = shared if name in members else has[name]
            own[of.index] = name not in members and bool(has[name].any())
    return rows.assign(used=used, own=own)


def by_level(rows: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """The rows at each ``level`` (now ``percent``), ascending, then at "all"; ``by`` in order."""
    rows = rows.rename(columns={"level": "percent"})
    each = [rows[rows["percent"] == q].assign(level=str(q)) for q in sorted(set(rows["percent"]))]
    found = pd.concat([*each, rows.assign(level="all")])
    return found.sort_values(
        by, key=lambda column: pd.factorize(column)[0], kind="stable", ignore_index=True
    )


KEYS = [*RUN, "method", "family", "against", "level"]


def cv_differences(
    answers: pd.DataFrame,
    confidence: pd.DataFrame,
    reference: str = "medconf",
) -> pd.DataFrame:
    """CV group and CV sample of each method against those of ``reference``, at each level and all.
    On the views of ``variation_table``; a method with rows of its own on those that it and the
    reference have; CV sample without views of mean 0. ``ValueError`` for a reference without
    values."""
    lines = []
    for metric, statistic in stability.CVS.items():
        for about, every in groups(compared_views(answers, confidence, metric), [*RUN, "level"]):
            of = {str(m): mine for m, mine in every.groupby("method", sort=False)}
            if reference not in of:
                raise ValueError(f"reference is {reference!r}; the run has {list(of)}")
            for method in (m for m in of if m != reference):
                both = of[method], of[reference]
                where = "possible" if any(part["own"].any() for part in both) else "used"
                shown = [part[conditions(part)].where(part["whole"] & part[where]) for part in both]
                values = [some.to_numpy(float) for some in shown]
                cases = both[0]["case_id"]
                mine, theirs = stability.views(metric, values, cases, NOT_SHARED)
                pair = replace(mine, reference=theirs)
                found = paired.compared(pair, statistic, undefined=stability.NO_MEAN)
                label = about | {"against": reference, "method": method, "metric": metric}
                lines.append(label | {"family": families().get(method, "other")} | found)
    return paired.corrected(lines, KEYS)


def mean_of(method: str, column: str = "value", *, change: bool = False) -> Statistic:
    """The mean of a column of accuracies (``method`` '') or of a method's confidences.
    ``change``: of differences of two such numbers, in [-1, 1]. What is no probability has no
    interval."""
    if method and METHODS[method].scale != "probability":
        return mean(column)
    of = mean_share(column) if method else rate(column)
    if not change:
        return of
    values = of.values  # a mean, of whatever the column holds
    return Statistic(values, f"difference of {of.kind}", between(-1.0, 1.0))


def two_at_once(
    cases: Sequence[Case],
    models: Sequence[Model],
    methods: str | Sequence[str] | None = None,
    levels: Sequence[int] | None = None,
    setup: Setup | Workbench | None = None,
) -> Run:
    """Pair the cases, merge each pair, and ask about the merged cases as the benchmark does.
    At level q, q % of the merged statements are shown. ``correct`` is 1 where an answer names
    either diagnosis. ``ValueError`` without a pair."""
    setup = opened(setup)
    of = {f"{a.case_id}+{b.case_id}": (a, b) for a, b in ways.pairs(cases, setup.seed)}
    if not of:
        raise ValueError(f"no two of {len(cases)} cases have different diagnoses and the same sex")
    both = [ways.merged(a, b, setup.seed) for a, b in of.values()]
    run = benchmark(both, models, methods, levels, setup)
    right = either_named(run.answers, of, setup.judge)
    return replace(run, answers=run.answers.assign(correct=right))


def either_named(
    answers: pd.DataFrame, pairs: Mapping[str, tuple[Case, Case]], grader: Grader
) -> pd.Series:
    """Of each answer about a merged case: 1 where it names either diagnosis, else 0, or NaN."""
    said = [a if isinstance(a, str) else None for a in answers["answer"]]
    had = ~(answers["correct"].isna() & answers["answer"].isna())
    grades = [grader.grade(said, [pairs[c][i] for c in answers["case_id"]]) for i in (0, 1)]
    right = [[g.correct for g in of_one] for of_one in grades]
    return pd.DataFrame(right, columns=answers.index, dtype=float).max(skipna=False).where(had)


def dry_run(cases: Sequence[Case], models: Sequence[Model], asked: Asked) -> None:
    """Ask what the notebook asks, for ``trustlab plan``."""
    changes = ways.named(asked.changes, asked.seed)
    seeds = asked.paraphrase_seeds
    robustness(cases, models, setup=asked, changes=changes, paraphrase_seeds=seeds)
    if asked.two_at_once and ways.pairs(cases, asked.seed):
        two_at_once(cases, models, setup=asked)
