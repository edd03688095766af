"""02: does a confidence stay put when the wording changes? And two patients told as one."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, NamedTuple, Self

import pandas as pd
from pydantic import Field, model_validator

from trustlab.agents import changes as ways
from trustlab.agents.paraphrase_check import ParaphraseChecker
from trustlab.agents.rephrase import reword
from trustlab.choices import Seed, Switch, choices
from trustlab.confidence import METHODS, select
from trustlab.confidence.registry import families
from trustlab.graders import Grader
from trustlab.knowledge.findings import load_knowledge
from trustlab.metrics import paired, stability
from trustlab.metrics.estimate import (
    Rows,
    Statistic,
    between,
    groups,
    mean,
    mean_share,
    rate,
)
from trustlab.metrics.run_tables import shared_rows
from trustlab.metrics.schema import table
from trustlab.models.base import About, Model
from trustlab.models.cache import CachedModel
from trustlab.parsing.counts import why_few
from trustlab.paths import save_table
from trustlab.records import Case, Reading, Statement
from trustlab.runs.experiment import benchmark, run_each
from trustlab.runs.folder.replies_log import recording
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
    if changes is None:
        changes = ways.named(CHANGES, setup.seed)
    wording = Wording([], pd.DataFrame(columns=WORDING_COLUMNS), "none was asked for")
    if paraphrase_seeds:
        wording = worded(cases, models, levels, paraphrase_seeds, setup)
    if not wording.left_out:
        usable = wording.usable()
        paraphrased = [ways.paraphrased(usable, seed) for seed in paraphrase_seeds]
        changes = [*paraphrased, *changes]
    conditions = (ways.ORIGINAL, *changes)
    counts = Counter(condition.name for condition in conditions)
    repeated = [name for name, n in counts.items() if n > 1]
    if repeated:
        names = ", ".join(repeated)
        raise ValueError(f"each condition may be given once; given again: {names}")

    def run_of(change: ways.Change) -> Run:
        return benchmark(
            cases,
            models,
            methods,
            levels,
            setup.below(f"runs/{change.name}"),
            asked_before=wording.models if change is ways.ORIGINAL else [],
            show=change.show,
        )

    runs = run_each({change.name: partial(run_of, change) for change in conditions})
    texts = {change.name: _shown_texts(cases, levels, change) for change in conditions}
    calls = [run.calls.assign(condition=name) for name, run in runs.items()]
    return Robustness(
        answers=_stacked_conditions(runs, "answers", texts),
        confidence=_stacked_conditions(runs, "confidence", texts),
        calls=pd.concat(calls, ignore_index=True),
        paraphrases=wording.paraphrases,
        conditions=conditions,
        left_out=wording.left_out,
        runs=runs,
    )


class Wording(NamedTuple):
    """The paraphrases of a run, whose words they are, and why none of them is used."""

    models: list[CachedModel]
    paraphrases: pd.DataFrame
    left_out: str

    def usable(self) -> dict[str, str]:
        """Statement -> its new words, of those that are used."""
        used = self.paraphrases[self.paraphrases["used"].astype(bool)]
        return dict(zip(used["text"], used["wording"], strict=True))


def worded(
    cases: Sequence[Case],
    models: Sequence[Model],
    levels: Sequence[int],
    seeds: Sequence[int],
    setup: Workbench,
) -> Wording:
    """The paraphrases by the model that ``setup`` names for them, which are also saved."""
    setup.readers.check({"paraphrases": ["similarity"]})
    model = setup.role("wording", models) or models[0]
    if isinstance(model, CachedModel):  # its wordings are counted apart
        model = CachedModel(model.model, model.path, offline=model.offline)
    cached = setup.cached(model)
    checker = ParaphraseChecker(load_knowledge(), setup.readers.encoder)
    with recording(setup.run_dir) as attach:
        attach(cached)
        table = paraphrases(cases, levels, seeds, cached, checker, setup.reading)
    unread = why_few({"": cached.counts}, "", WORDED)
    left_out = unread or _none_usable(table, cached.name)
    if setup.run_dir:
        save_table(table, setup.run_dir / "paraphrases.csv")
    return Wording([cached], table, left_out)


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
    statements: dict[str, Statement] = {}
    counts: Counter[str] = Counter()
    first_views: dict[str, tuple[Case, int]] = {}
    for seed in seeds:
        for case in cases:
            for level in levels:
                for statement in ways.picked(case, level, seed):
                    text = statement.text
                    statements[text] = statement
                    counts[text] += 1
                    first_views.setdefault(text, (case, level))
    about = {
        text: About(case.dataset, case.case_id, level, counts[text])
        for text, (case, level) in first_views.items()
    }
    wordings = reword(counts, model, keep_question=True, about=about, reading=reading)
    rows = [
        (*_wording_row(statements[text], *wording, checker), counts[text])
        for text, wording in wordings.items()
    ]
    return pd.DataFrame(rows, columns=WORDING_COLUMNS)


def _wording_row(
    statement: Statement, new_text: str, why: str, checker: ParaphraseChecker
) -> tuple[str, str | None, str, str, str, bool]:
    """The :data:`WORDING_COLUMNS` of a statement but its count."""
    old_text = statement.text
    if why or new_text == old_text:
        reason = why or "the old words came back"
        return old_text, None, "no new words", "not checked", reason, False
    verdict = checker.check(statement, new_text)
    why = verdict.why
    is_doubtful = verdict.caught or verdict.verdict == "unclear"
    plainer_text = _with_old_question(old_text, new_text)
    if is_doubtful and plainer_text != old_text:
        plainer_verdict = checker.check(statement, plainer_text)
        if plainer_verdict.verdict == "same":
            verdict = plainer_verdict
            new_text = plainer_text
            why = f"the question stays, for the new one {why}"
    return old_text, new_text, verdict.verdict, verdict.how, why, not verdict.caught


def _with_old_question(old_text: str, new_text: str) -> str:
    """The new answer after the old question; ``new_text`` where there is no question."""
    question, _, old_answer = old_text.partition("\n")
    _, _, new_answer = new_text.partition("\n")
    if old_answer and new_answer:
        return f"{question}\n{new_answer}"
    return new_text


def _none_usable(wordings: Any, name: str) -> str:
    """Why no paraphrase is usable; "" where one is."""
    if wordings["used"].any():
        return ""
    verdicts = wordings["verdict"] + ": " + wordings["why"]
    counts = Counter(verdicts)
    reasons = "; ".join(f"{why} ({n:,})" for why, n in counts.most_common(2))
    n_statements = f"{len(wordings):,}"
    return f"{name} gave no usable paraphrase of {n_statements} statements: {reasons}"


Texts = Mapping[tuple[str, int], str]
"""Case and level -> the text shown."""


def _shown_texts(
    cases: Sequence[Case], levels: Sequence[int], change: ways.Change
) -> Texts:
    return {
        (case.case_id, level): change.show(case, level).text
        for case in cases
        for level in levels
    }


def _stacked_conditions(
    runs: Mapping[str, Run], table: str, texts: Mapping[str, Texts]
) -> pd.DataFrame:
    """A table of the conditions' runs, below one another, with ``condition``, ``changed`` and
    ``shown``."""
    parts = []
    originals = texts[ways.ORIGINAL.name]
    for condition, text_of in texts.items():
        run = runs[condition]
        part = getattr(run, table).copy()
        keys = list(zip(part["case_id"], part["level"], strict=True))
        hashes = [hashlib.sha256(text_of[key].encode()).hexdigest() for key in keys]
        part.insert(4, "condition", condition)
        part.insert(5, "changed", [text_of[key] != originals[key] for key in keys])
        part.insert(6, "shown", [digits[:16] for digits in hashes])
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


RUN = ["model", "dataset"]
ROW = [*RUN, "case_id", "level"]
COEFFICIENTS = {"cv_group": stability.cv_group, "cv_sample": stability.cv_sample}
SAME = "the paraphrased conditions show the same text"
NOT_SHARED = "no row has a value of both methods"


def variation_table(
    answers: pd.DataFrame, confidence: pd.DataFrame, seed: int = 0
) -> pd.DataFrame:
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
            differing = part[~part["same"]]
            values = differing[conditions(differing)].where(differing["used"])
            line = coefficient(values, differing["case_id"])
            if part["same"].any() and not part["possible"].any():
                line["missing"] = SAME
            elif part["zero"].any() and not part["used"].any():
                line["missing"] = stability.NO_MEAN
            if metric == "cv_group":
                line["chance"] = stability.cv_group_by_chance(values, seed=seed)
            counts = {"n_same": part["same"].sum(), "n_zero": part["zero"].sum()}
            own_rows = part["own"].any()
            lines.append(
                {**about, "metric": metric, **line, **counts, "own_rows": own_rows}
            )
    return table(
        lines, [*RUN, "method", "level"], ["n_same", "n_zero", "chance", "own_rows"]
    )


def compared_views(
    answers: pd.DataFrame, confidence: pd.DataFrame, metric: str
) -> pd.DataFrame:
    """What a variation is taken over: a row for each method on a ratio scale, view and level.
    ``metric``: "cv_group" or "cv_sample".
    Columns model dataset method case_id percent level; a value for each condition, original
    included; ``same``: two paraphrased conditions show one text; ``possible``: they do not, each
    changed something, and every answer is graded; ``correct``: whether the original's is right;
    ``zero``: the mean over the paraphrases is 0; ``whole``: every condition has a value, for CV
    sample not ``zero``; those of :func:`compared_rows`."""
    paraphrased = conditions(confidence["condition"].unique())
    compared = [ways.ORIGINAL.name, *paraphrased]
    methods = [method.name for method in select("all") if method.ratio]
    is_compared = confidence["condition"].isin(compared) & confidence["method"].isin(
        methods
    )
    has_several = len(paraphrased) > 1
    rows: Any = confidence[is_compared & has_several]
    views = judged_views(rows, answers, compared)
    values = rows.pivot(
        index=[*ROW, "method"], columns="condition", values="confidence"
    )
    of_methods = rows[[*RUN, "method"]].drop_duplicates().merge(views, on=RUN)
    of_methods = of_methods.join(values, on=[*ROW, "method"])
    whole = of_methods[values.columns].notna().all(axis=1)
    mean = of_methods[conditions(values)].mean(axis=1, skipna=False)
    zero = whole & of_methods["possible"] & mean.eq(0)
    if metric == "cv_sample":
        whole = whole & ~zero
    of_methods = of_methods.assign(whole=whole, zero=zero)
    return compared_rows(by_level(of_methods, RUN), [*RUN, "level"])


def judged_views(
    rows: pd.DataFrame, answers: pd.DataFrame, compared: Sequence[str]
) -> pd.DataFrame:
    """A row for each view of the confidences ``rows``: ``same``, ``possible`` and ``correct`` of
    :func:`compared_views`."""
    keys = [*ROW, "condition"]
    views: Any = rows.drop_duplicates(keys).set_index(keys)
    shown = views["shown"].unstack("condition")
    changed = views["changed"].unstack("condition")
    all_changed = changed[conditions(changed)].astype(bool).all(axis=1)
    texts = shown[conditions(shown)]
    n_paraphrased = len(compared) - 1
    same = all_changed & (texts.nunique(axis=1) < n_paraphrased)
    graded: Any = answers[answers["condition"].isin(compared)]
    grades = graded.pivot(index=ROW, columns="condition", values="correct")
    grades = grades.reindex(index=same.index, columns=compared)
    possible = all_changed & ~same & grades.notna().all(axis=1)
    judged = pd.DataFrame({"same": same, "possible": possible})
    judged["correct"] = grades[ways.ORIGINAL.name]
    return judged.reset_index()


def conditions(names: Any) -> list[str]:
    """The paraphrased conditions among these names."""
    return [name for name in names if name.startswith(ways.PARAPHRASES)]


def compared_rows(rows: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """``used``: which rows of each method are compared; ``own``: whether it stands on its own.
    Of the ``possible`` rows, by :func:`~trustlab.metrics.run_tables.shared_rows`."""
    used = pd.Series(False, rows.index)
    own = used.copy()
    for _, part in groups(rows, by):
        by_method = dict(list(part.groupby("method", sort=False)))
        first = next(iter(by_method.values()))
        is_judged = first["possible"].to_numpy()
        is_correct = first["correct"].eq(1).to_numpy()
        has_value = {
            method: of_method["whole"].to_numpy() & is_judged
            for method, of_method in by_method.items()
        }
        shared, members = shared_rows(has_value, is_judged, is_correct)
        for method, of_method in by_method.items():
            if method in members:
                used[of_method.index] = shared
            else:
                used[of_method.index] = has_value[method]
                own[of_method.index] = has_value[method].any()
    return rows.assign(used=used, own=own)


def by_level(rows: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """The rows at each ``level`` (now ``percent``), ascending, then at "all"; ``by`` in order."""
    rows = rows.rename(columns={"level": "percent"})
    parts = [
        rows[rows["percent"] == percent].assign(level=str(percent))
        for percent in sorted(set(rows["percent"]))
    ]
    parts.append(rows.assign(level="all"))
    return pd.concat(parts).sort_values(
        by,
        key=lambda column: pd.factorize(column)[0],
        kind="stable",
        ignore_index=True,
    )


DIFFERENCE_KEYS = [*RUN, "method", "family", "against", "level"]


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
        for about, every in groups(
            compared_views(answers, confidence, metric), [*RUN, "level"]
        ):
            by_method = {
                str(name): rows for name, rows in every.groupby("method", sort=False)
            }
            theirs = by_method.pop(reference, None)
            if theirs is None:
                raise ValueError(
                    f"reference is {reference!r}; the run has {list(by_method)}"
                )
            label = {**about, "against": reference, "metric": metric}
            for method, own in by_method.items():
                family = families([method]).get(method, "other")
                pair = _pair_of_methods(own, theirs, metric)
                line = paired.compared(pair, statistic, undefined=stability.NO_MEAN)
                lines.append({**label, "method": method, "family": family, **line})
    return paired.corrected(lines, DIFFERENCE_KEYS)


def _pair_of_methods(own: Any, theirs: Any, metric: str) -> Rows:
    """A method's rows of :func:`compared_views` with the reference's beside them."""
    has_own_rows = own["own"].any() or theirs["own"].any()
    where = "possible" if has_own_rows else "used"
    values = []
    for part in (own, theirs):
        is_shown = part["whole"] & part[where]
        shown = part[conditions(part)].where(is_shown)
        values.append(shown.to_numpy(float))
    rows, reference = stability.views(metric, values, own["case_id"], NOT_SHARED)
    return replace(rows, reference=reference)


def mean_of(method: str, column: str = "value", *, change: bool = False) -> Statistic:
    """The mean of a column of accuracies (``method`` '') or of a method's confidences.
    ``change``: of differences of two such numbers, in [-1, 1]. What is no probability has no
    interval."""
    if method and METHODS[method].scale != "probability":
        return mean(column)
    statistic = mean_share(column) if method else rate(column)
    if not change:
        return statistic
    values = statistic.values  # a mean, of whatever the column holds
    return Statistic(values, f"difference of {statistic.kind}", between(-1.0, 1.0))


def two_at_once(
    cases: Sequence[Case],
    models: Sequence[Model],
    setup: Setup | Workbench | None = None,
) -> Run:
    """Pair the cases, merge each pair, and ask about the merged cases as the benchmark does.
    At level q, q % of the merged statements are shown. ``correct`` is 1 where an answer names
    either diagnosis. ``ValueError`` without a pair."""
    setup = opened(setup)
    pairs: dict[str, tuple[Case, Case]] = {}
    merged = []
    for first, second in ways.pairs(cases, setup.seed):
        pairs[f"{first.case_id}+{second.case_id}"] = (first, second)
        merged.append(ways.merged(first, second, setup.seed))
    if not pairs:
        raise ValueError(
            f"no two of {len(cases)} cases have different diagnoses and the same sex"
        )
    run = benchmark(merged, models, setup=setup)
    correct = either_named(run.answers, pairs, setup.judge)
    return replace(run, answers=run.answers.assign(correct=correct))


def either_named(
    answers: pd.DataFrame, pairs: Mapping[str, tuple[Case, Case]], grader: Grader
) -> pd.Series:
    """Of each answer about a merged case: 1 where it names either diagnosis, else 0, or NaN."""
    names = [name if isinstance(name, str) else None for name in answers["answer"]]
    is_judged = answers["correct"].notna() | answers["answer"].notna()
    pairs_of_rows = [pairs[case_id] for case_id in answers["case_id"]]
    correct = []
    sides = zip(*pairs_of_rows, strict=True)
    for cases in sides:
        grades = grader.grade(names, cases)
        correct.append([grade.correct for grade in grades])
    either = pd.DataFrame(correct, columns=answers.index, dtype=float).max(skipna=False)
    return either.where(is_judged)


def dry_run(
    cases: Sequence[Case], models: Sequence[Model], notebook_setup: Asked
) -> None:
    """Ask what the notebook asks, for ``trustlab plan``."""
    robustness(
        cases,
        models,
        setup=notebook_setup,
        changes=ways.named(notebook_setup.changes, notebook_setup.seed),
        paraphrase_seeds=notebook_setup.paraphrase_seeds,
    )
    if notebook_setup.two_at_once and ways.pairs(cases, notebook_setup.seed):
        two_at_once(cases, models, setup=notebook_setup)
