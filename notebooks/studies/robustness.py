"""02: does a confidence stay put when the wording changes? And two patients told as one."""

# pyright: reportArgumentType=false, reportReturnType=false
# pyright: reportAttributeAccessIssue=false, reportGeneralTypeIssues=false
# pyright: reportCallIssue=false

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, Self

import numpy as np
import pandas as pd
from pydantic import Field, model_validator

from trustlab.agents.rephrase import newly_names, reword
from trustlab.changes.changes import (
    ORIGINAL,
    PARAPHRASES,
    Change,
    merged,
    named,
    pairs,
    paraphrased,
    picked,
)
from trustlab.changes.paraphrase_check import ParaphraseChecker, Verdict
from trustlab.choices import Seed, choices
from trustlab.confidence import select
from trustlab.folder.replies_log import recording
from trustlab.graders import Grader
from trustlab.knowledge import Knowledge, load_knowledge
from trustlab.levels import view
from trustlab.measures import families
from trustlab.metrics.estimate import Rows, estimate, grouped, groups, mean, measure
from trustlab.metrics.paired import (
    MIN_COVERAGE,
    best_against,
    compared,
    corrected,
    families_of,
    told_best,
)
from trustlab.metrics.schema import table
from trustlab.metrics.stability import (
    CVS,
    NO_MEAN,
    cv_group,
    cv_group_by_chance,
    cv_sample,
    views,
)
from trustlab.models.base import About, Model
from trustlab.models.cache import CachedModel
from trustlab.parsing.counts import why_few
from trustlab.paths import save_table
from trustlab.records import Case, Statement, normalise
from trustlab.run import Run, benchmark, each_asked
from trustlab.settings import Setup, given
from trustlab.workbench import Workbench, opened

WORDED = ("rephrase_question", "rephrase_reply", "rephrase_statement")
"""Purposes of the requests for new words."""


METHODS_SHOWN = "ratio"
"""Every method on a ratio scale, where a coefficient of variation means something."""
CHANGES = ("small_talk", "other_system", "reordered", "instruction_100")
SEEDS = (1, 2, 3)
"""Of the three paraphrased conditions."""
WORDING_COLUMNS = ["text", "wording", "verdict", "how", "why", "used", "n"]


@choices
class Asked(Setup):
    """The choices of notebook 02."""

    changes: Annotated[Sequence[str], Field(description="a list of names of changes")] = CHANGES
    paraphrase_seeds: Annotated[
        Sequence[Seed], Field(description="a list of whole numbers, at least 0, or []")
    ] = SEEDS
    """A paraphrased condition for each."""

    @model_validator(mode="after")
    def _changes(self) -> Self:
        named(self.changes)
        return self


@dataclass(frozen=True)
class Robustness:
    """The tables of every condition, tidy, and what made them.

    ``answers`` and ``confidence`` are those of :class:`~trustlab.run.Run` with three columns more:
    ``condition`` (``original`` among them), ``changed`` (whether what was shown differs from what
    is shown in its original form: at one statement no order changes, and a paraphrase may not have
    been had) and ``shown`` (a digest of the text that was shown, so that conditions which happen to
    show the same are known). ``paraphrases`` has a row for each distinct statement that a
    paraphrased condition drew (:func:`paraphrases`). ``left_out``: why there is no paraphrased
    condition. ``parameters`` are the runs' own, by condition.
    """

    answers: pd.DataFrame
    confidence: pd.DataFrame
    calls: pd.DataFrame
    paraphrases: pd.DataFrame
    conditions: tuple[Change, ...]
    parameters: Mapping[str, Mapping[str, Any]]
    left_out: str = ""
    runs: Mapping[str, Run] = field(default_factory=dict, repr=False)

    @property
    def labels(self) -> dict[str, str]:
        """Name of a condition -> its short human label."""
        return {c.name: c.label for c in self.conditions}

    @property
    def families(self) -> dict[str, str]:
        """Method -> family, for the methods of this experiment."""
        return self.runs[ORIGINAL.name].families


def robustness(
    cases: Sequence[Case],
    models: Sequence[Model],
    methods: str | Sequence[str] | None = None,
    levels: Sequence[int] | None = None,
    setup: Setup | Workbench | None = None,
    *,
    changes: Sequence[Change] | None = None,
    paraphrase_seeds: Sequence[int] = SEEDS,
    knowledge: Knowledge | None = None,
    asked_before: Sequence[CachedModel] = (),
) -> Robustness:
    """Ask every model about every case as it is, paraphrased (a condition a seed) and under
    ``changes``.

    - ``methods`` and ``levels``: those of ``setup``, else every method on a ratio scale, at 100.
    - ``setup.wording`` (default: the first of ``models``) words the paraphrases; those that add,
      drop or turn a finding are caught by
      :class:`~trustlab.changes.paraphrase_check.ParaphraseChecker` and not used. Where none is
      usable, the paraphrased conditions are left out with the reason.
    - ``setup.run_dir`` receives each condition's tables in ``runs/NAME``, and ``paraphrases.csv``.
    - ``ValueError`` as :func:`~trustlab.run.benchmark`, and for names given twice.
    """
    setup = opened(setup).shared()
    methods = given(methods, setup.methods, METHODS_SHOWN)
    levels = given(levels, setup.levels, (100,))
    changes = list(named(CHANGES, setup.seed) if changes is None else changes)
    checker = ParaphraseChecker(knowledge or load_knowledge(), setup.encoder)
    voice: list[CachedModel] = []
    wordings, left_out = pd.DataFrame(columns=WORDING_COLUMNS), "none was asked for"
    if paraphrase_seeds:
        voice = [_voice(setup.role("wording", models) or models[0], setup.store)]
        with recording(setup.run_dir) as attach:
            attach(*voice)
            wordings = paraphrases(cases, levels, paraphrase_seeds, voice[0], checker)
        unread = why_few({"": voice[0].counts}, "", WORDED)
        left_out = unread or _none_usable(wordings, voice[0].name)
        if out := setup.run_dir:
            save_table(wordings, out / "paraphrases.csv")
    usable = dict(
        zip(
            *(wordings.loc[wordings["used"].astype(bool), c] for c in ("text", "wording")),
            strict=True,
        )
    )
    said_again = [] if left_out else [paraphrased(usable, s) for s in paraphrase_seeds]
    conditions = (ORIGINAL, *said_again, *changes)
    if again := [name for name, n in Counter(c.name for c in conditions).items() if n > 1]:
        raise ValueError(f"each condition may be given once; given again: {', '.join(again)}")

    def under(change: Change) -> Run:
        before = [*asked_before, *voice] if change is ORIGINAL else []
        here = setup.below(f"runs/{change.name}")
        how = {"asked_before": before, "show": change.show}
        return benchmark(cases, models, methods, levels, here, **how)

    runs = each_asked({change.name: partial(under, change) for change in conditions})
    return Robustness(
        answers=_stacked(runs, "answers", cases, levels, conditions),
        confidence=_stacked(runs, "confidence", cases, levels, conditions),
        calls=pd.concat(
            [run.calls.assign(condition=name) for name, run in runs.items()], ignore_index=True
        ),
        paraphrases=wordings,
        conditions=conditions,
        parameters={name: run.parameters for name, run in runs.items()},
        left_out=left_out,
        runs=runs,
    )


def paraphrases(
    cases: Sequence[Case],
    levels: Sequence[int],
    seeds: Sequence[int],
    model: Model,
    checker: ParaphraseChecker,
) -> pd.DataFrame:
    """Each distinct statement that the conditions ``seeds`` draw, in the new words of ``model``,
    and whether they are used.

    Columns text wording verdict how why used n: ``wording`` is missing where nothing usable came
    back (``verdict`` "no new words", ``why`` says why); ``n`` counts how often the statement is
    drawn over all conditions, cases and levels. New words that are the old ones are "no new words"
    too. A question without usable new words stays as it is beside the new answer.
    """
    views = [(seed, case, level) for seed in seeds for case in cases for level in levels]
    each = [(s, case, level) for seed, case, level in views for s in picked(case, level, seed)]
    counts, statement = Counter(s.text for s, *_ in each), {s.text: s for s, *_ in each}
    about = {
        s.text: About(case.dataset, case.case_id, level, counts[s.text])
        for s, case, level in reversed(each)
    }
    rows = [
        _wording_row(statement[text], new, why, checker, counts[text])
        for text, (new, why) in reword(counts, model, keep_question=True, about=about).items()
    ]
    return pd.DataFrame(rows, columns=WORDING_COLUMNS)


def appended_table(
    result: Robustness, cases: Sequence[Case], levels: Sequence[int]
) -> pd.DataFrame:
    """Of each paraphrased condition: condition n_views n_drawn n_no_words n_caught n_named
    n_appended n_unchanged.

    ``n_drawn`` statements were to be said again in ``n_views`` views; of these ``n_no_words`` had
    no new words, ``n_caught`` had words that say something else, ``n_named`` words that name the
    case's diagnosis; ``n_unchanged`` views got nothing appended.
    """
    table = result.paraphrases.set_index("text")
    rows = []
    for change in (c for c in result.conditions if c.is_paraphrase):
        seed, fates, unchanged = int(change.name.rpartition("_")[2]), Counter(), 0
        views = [(case, level) for case in cases for level in levels]
        for case, level in views:
            told = [_fate(case, s, table) for s in picked(case, level, seed)]
            fates.update(told)
            unchanged += "appended" not in told
        kinds = [fates[k] for k in ("no words", "caught", "named", "appended")]
        rows.append((change.name, len(views), sum(kinds), *kinds, unchanged))
    columns = [
        "condition",
        "n_views",
        "n_drawn",
        "n_no_words",
        "n_caught",
        "n_named",
        "n_appended",
        "n_unchanged",
    ]
    return pd.DataFrame(rows, columns=columns)


def _fate(case: Case, statement: Statement, table: pd.DataFrame) -> str:
    row: Any = table.loc[statement.text]
    if not row["used"]:
        return "no words" if row["verdict"] == NO_WORDS else "caught"
    return "named" if newly_names(case, statement.text, row["wording"]) else "appended"


NO_WORDS = "no new words"


def _wording_row(
    statement: Statement, new: str, why: str, checker: ParaphraseChecker, n: int
) -> tuple:
    if why or new == statement.text:
        verdict = Verdict(NO_WORDS, "not checked", why or "the old words came back")
        return statement.text, None, verdict.verdict, verdict.how, verdict.why, False, n
    verdict, plainer = checker.check(statement, new), _with_old_question(statement.text, new)
    doubtful = verdict.caught or verdict.verdict == "unclear"
    if (
        doubtful
        and plainer != statement.text
        and (again := checker.check(statement, plainer)).verdict == "same"
    ):
        verdict, new = (
            Verdict(again.verdict, again.how, f"the question stays, for the new one {verdict.why}"),
            plainer,
        )
    return statement.text, new, verdict.verdict, verdict.how, verdict.why, not verdict.caught, n


def _voice(model: Model, store: Any) -> CachedModel:
    """The model with a list of calls of its own, so that what it words is counted apart from what
    it answers."""
    if isinstance(model, CachedModel):
        return CachedModel(model.model, model.path, offline=model.offline)
    return CachedModel(model, store)


def _with_old_question(old: str, new: str) -> str:
    """The new answer after the old question; ``new`` where there is no question."""
    asked, answered = old.partition("\n"), new.partition("\n")
    return f"{asked[0]}\n{answered[2]}" if asked[2] and answered[2] else new


def _none_usable(wordings: pd.DataFrame, name: str) -> str:
    if wordings["used"].any():
        return ""
    reasons = Counter(f"{r.verdict}: {r.why}" for r in wordings.itertuples()).most_common(2)
    told = "; ".join(f"{why} ({n:,})" for why, n in reasons)
    return f"{name} gave no usable paraphrase of {len(wordings):,} statements: {told}"


def _stacked(
    runs: Mapping[str, Run],
    table: str,
    cases: Iterable[Case],
    levels: Sequence[int],
    conditions: Sequence[Change],
) -> pd.DataFrame:
    """The runs' tables below one another, with ``condition``, ``changed`` and ``shown``."""
    parts = []
    cases = list(cases)
    for change in conditions:
        part: pd.DataFrame = getattr(runs[change.name], table).copy()
        texts = {(c.case_id, q): change.show(c, q).text for c in cases for q in levels}
        moved = {
            (c.case_id, q): texts[c.case_id, q] != view(c, q).text for c in cases for q in levels
        }
        digests = {
            key: hashlib.sha256(text.encode()).hexdigest()[:16] for key, text in texts.items()
        }
        keys = list(zip(part["case_id"], part["level"], strict=True))
        part.insert(4, "condition", change.name)
        part.insert(5, "changed", [moved[key] for key in keys])
        part.insert(6, "shown", [digests[key] for key in keys])
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


RUN = ["model", "dataset"]
VIEW = ["case_id", "level"]
ROW = [*RUN, *VIEW]
LEAST_SHARE = 0.5
"""A method with a value on a smaller share of the rows would take too many from the others."""
SAME = "the paraphrased conditions show the same text"
NOT_SHARED = "no row has a value of every compared method"
NOT_BOTH = "no value in both conditions"
MOVED = ("accuracy", "difference", "other_answer")


def variation_table(confidence: pd.DataFrame, n_draws: int = 2000, seed: int = 0) -> pd.DataFrame:
    """CV group and CV sample (percent) of each method on a ratio scale over the paraphrases.

    - Left out are views where two paraphrased conditions show the same text (``n_same``), and those
      where a condition changed nothing or has no value, the original included (``n_missing``).
    - Methods stand on the rows that they share; one that has fewer than half on its own
      (``own_rows``). ``chance``: :func:`~trustlab.metrics.stability.cv_group_by_chance`.
    - Empty where there are fewer than two paraphrased conditions.
    """
    lines = []
    for about, part in groups(compared_views(confidence), [*RUN, "level", "method"]):
        apart = part[~part["same"]]
        values = apart[conditions(apart)].where(apart["used"])
        lost = (apart["whole"] & apart["possible"]).any() and not apart["used"].any()
        alike = part["same"].any() and not part["possible"].any()
        why = NOT_SHARED if lost else SAME if alike else ""
        about |= {"own_rows": part["own"].any(), "n_same": part["same"].sum()}
        group, each = (cv(values, apart["case_id"], n_draws, seed) for cv in (cv_group, cv_sample))
        group["chance"] = cv_group_by_chance(values, n_draws, seed)
        for metric, line in (("cv_group", group), ("cv_sample", each)):
            lines.append(about | line | {"metric": metric, "missing": why or line["missing"]})
    return table(lines, [*RUN, "method", "level"], ["n_same", "n_zero", "chance", "own_rows"])


def compared_views(confidence: pd.DataFrame) -> pd.DataFrame:
    """What variation is taken over: a row for each method on a ratio scale, view and level.

    Columns model dataset method case_id percent level; a value for each condition, original
    included; ``same``: two paraphrased conditions show one text; ``possible``: they do not, and
    each changed something; ``whole``: every condition has a value; and those of
    :func:`compared_rows`.
    """
    again = conditions(confidence["condition"].unique())
    ratio = [m.name for m in select("ratio")]
    ours = confidence["condition"].isin([ORIGINAL.name, *again]) & confidence["method"].isin(ratio)
    asked: Any = confidence[ours & (len(again) > 1)]
    texts = asked.drop_duplicates([*ROW, "condition"]).set_index([*ROW, "condition"])
    shown, changed = (texts[name].unstack("condition") for name in ("shown", "changed"))
    moved = changed[conditions(changed)].astype(bool).all(axis=1)
    same = moved & (shown[conditions(shown)].nunique(axis=1) < len(again))
    views = pd.DataFrame({"same": same, "possible": moved & ~same}).reset_index()
    values = asked.pivot(index=[*ROW, "method"], columns="condition", values="confidence")
    found = asked[[*RUN, "method"]].drop_duplicates().merge(views, on=RUN)
    found = found.join(values, on=[*ROW, "method"])
    found["whole"] = found[values.columns].notna().all(axis=1)
    return compared_rows(by_level(found, RUN), [*RUN, "level"])


def conditions(names: Any) -> list[str]:
    """The paraphrased conditions among these names."""
    return [name for name in names if name.startswith(PARAPHRASES)]


def compared_rows(rows: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """``used``: which rows of each method are compared; ``own``: whether it stands on its own.

    Methods that are ``whole`` on at least half of the ``possible`` rows are compared on those where
    all of them are; the others keep their own.
    """
    had = rows.assign(used=rows["whole"] & rows["possible"])
    of_method: Any = had.groupby([*by, "method"])[["used", "possible"]].transform("sum")
    own = of_method["used"] < LEAST_SHARE * of_method["possible"]
    own |= of_method["possible"].eq(0)
    free = had.assign(used=had["used"] | own)
    shared = free.groupby([*by, "case_id", "percent"])["used"].transform("all")
    return had.assign(used=had["used"] & (shared | own), own=own & (of_method["used"] > 0))


def by_level(rows: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """The rows at each ``level`` (now ``percent``), ascending, then at "all"; ``by`` in order."""
    rows = rows.rename(columns={"level": "percent"})
    each = [rows[rows["percent"] == q].assign(level=str(q)) for q in sorted(set(rows["percent"]))]
    found = pd.concat([*each, rows.assign(level="all")])
    return found.sort_values(by, key=lambda column: pd.factorize(column)[0], kind="stable")


def accuracy_table(answers: pd.DataFrame, n_draws: int = 2000, seed: int = 0) -> pd.DataFrame:
    """What each condition does to the answers, over the rows that it changed and that both have.

    ``metric``: "accuracy" under the condition, "difference" (less that of the original on the same
    rows) or "other_answer" (share of answers in other words than originally; case and punctuation
    aside).
    """
    is_told = answers["condition"] == ORIGINAL.name
    both = _with_told(answers, ROW, "correct")
    both = both.assign(accuracy=both["correct"].astype(float), other_answer=~_same_answer(both))
    both["difference"] = both["accuracy"] - both["correct_told"]
    both["possible"] = is_told | both["changed"].astype(bool)
    keys = [*RUN, "condition", "level"]
    rows = by_level(both, keys[:-1])
    how: Any = "difference", n_draws, seed, NOT_BOTH
    held = ((key, Rows.of(part[part["possible"]], *how)) for key, part in groups(rows, keys))
    found: Any = table(measure(held, {name: mean(name) for name in MOVED}), keys)
    plain = found["condition"].eq(ORIGINAL.name) & found["metric"].ne("accuracy")
    return found[~plain].reset_index(drop=True)


def _with_told(rows: pd.DataFrame, index: list[str], column: str) -> Any:
    """The rows with what the same ones have in the original beside them: ``column`` and the
    answer."""
    told = rows[rows["condition"] == ORIGINAL.name].set_index(index)[[column, "answer"]]
    return rows.join(told.add_suffix("_told"), on=index)


def _same_answer(both: pd.DataFrame) -> Any:
    """Whether ``answer`` and ``answer_told`` are the same words, case and punctuation aside."""
    words = both[["answer", "answer_told"]]
    words = words.map(lambda a: normalise(a) if isinstance(a, str) else " ")
    return words["answer"] == words["answer_told"]


NO_METHOD = "no method has a value on half of the views"
KEYS = [*RUN, "method", "family", "against", "level"]
CHOSEN = ["low_chosen", "high_chosen", "chosen_in", "n_methods", "left_out"]


def cv_differences(
    confidence: pd.DataFrame, reference: str = "medconf", n_draws: int = 2000, seed: int = 0
) -> pd.DataFrame:
    """CV group and CV sample of each method against those of ``reference``, at each level and all.

    - Methods stand on the views of ``variation_table``, one with rows of its own on those that it
      and the reference have; for CV sample without views in which either has mean 0.
    - ``ValueError`` for a reference that the run has no such values of.
    """
    lines = []
    for about, of in _compared(confidence, reference):
        for method in (m for m in of if m != reference):
            both = of[method], of[reference]
            own = any(part["own"].any() for part in both)
            values = [_confidences(part, "possible" if own else "used") for part in both]
            label = about | {"method": method, "family": families().get(method, "other")}
            for metric, statistic in CVS.items():
                mine, theirs = views(metric, values, both[0]["case_id"], n_draws, seed, NOT_SHARED)
                found = compared(replace(mine, reference=theirs), statistic, undefined=NO_MEAN)
                lines.append(label | {"metric": metric} | found)
    return corrected(lines, KEYS)


def most_stable_of_families(
    confidence: pd.DataFrame, reference: str = "medconf", n_draws: int = 2000, seed: int = 0
) -> pd.DataFrame:
    """In each family the method with the lowest CV, against ``reference``: as ``best_of_families``.

    - All methods of a family and the reference stand on the views that all of them have; a method
      with less than half of the views is named in ``left_out``.
    - A method that always says the same is the most stable there can be: read it beside its AUROC.
    """
    lines = []
    for about, of in _compared(confidence, reference):
        values = {m: _confidences(part, "possible") for m, part in of.items()}
        has = {m: ~np.isnan(each).any(axis=1) for m, each in values.items()}
        least = max(MIN_COVERAGE * np.any(list(has.values()), axis=0).sum(), 1)
        for family, members in families_of(of, families(), reference).items():
            kept = [m for m in members if has[m].sum() >= least]
            left_out = ", ".join(m for m in members if m not in kept)
            label = about | {"family": family, "n_methods": len(kept), "left_out": left_out}
            both, cases = [values[m] for m in [*kept, reference]], of[reference]["case_id"]
            for metric in CVS:
                rows = views(metric, both, cases, n_draws, seed)
                label |= {"metric": metric, "n": len(rows[0]), "n_cases": rows[0].n_cases}
                label["n_missing"] = len(cases) - len(rows[0])
                lines.append(label | _best(rows, kept, metric))
    return corrected(lines, KEYS, CHOSEN)


def _compared(
    confidence: pd.DataFrame, reference: str
) -> Iterator[tuple[dict[str, Any], dict[str, pd.DataFrame]]]:
    """Each run at each level: what it is about, and each method's views, in one order."""
    for about, part in groups(compared_views(confidence), [*RUN, "level"]):
        of = {str(m): mine for m, mine in part.groupby("method", sort=False)}
        if reference not in of:
            raise ValueError(f"reference is {reference!r}; the run has {list(of)}")
        yield about | {"against": reference}, of


def _confidences(part: pd.DataFrame, where: str) -> np.ndarray:
    """A method's values under the paraphrased conditions, (n, C), NaN where not compared."""
    return part[conditions(part)].where(part["whole"] & part[where]).to_numpy(float)


def _best(rows: list[Rows], kept: list[str], metric: str) -> dict[str, Any]:
    """The best of ``kept``, whose rows come first, against the last."""
    if not kept or not len(rows[0]):
        return {"method": "", "missing": NOT_SHARED if kept else NO_METHOD}
    drawn = np.stack([one.drawn(CVS[metric]) for one in rows])
    if np.isnan(drawn[:, 0]).any():
        return {"method": "", "missing": NO_MEAN}
    theirs, mine = drawn[-1], drawn[:-1]
    cases = rows[0]["case_id"]
    best = best_against(mine[:, 0], mine[:, 1:], theirs[0], theirs[1:], cases, lowest=True)
    return told_best(best, kept, theirs[0])


ONE, TWO = "one patient", "two at once"
ABOUT = [*RUN, "method", "metric"]


@dataclass(frozen=True)
class TwoAtOnce:
    """The run over the merged cases; ``pairs``: case id -> the two cases that are in it.

    ``answers["correct"]`` is 1 where an answer names either diagnosis.
    """

    answers: pd.DataFrame
    confidence: pd.DataFrame
    pairs: Mapping[str, tuple[Case, Case]]
    run: Run


def two_at_once(
    cases: Sequence[Case],
    models: Sequence[Model],
    methods: str | Sequence[str] | None = None,
    levels: Sequence[int] | None = None,
    setup: Setup | Workbench | None = None,
) -> TwoAtOnce:
    """Pair the cases, merge each pair, and ask about the merged cases as the benchmark does.

    At level q, q % of the merged statements are shown: about as much of each patient as alone.
    ``ValueError`` without a pair.
    """
    setup = opened(setup)
    found = [(a, b, merged(a, b, setup.seed)) for a, b in pairs(cases, setup.seed)]
    if not found:
        raise ValueError(f"no two of {len(cases)} cases have different diagnoses and the same sex")
    both, held = [m for *_, m in found], {m.case_id: (a, b) for a, b, m in found}
    run = benchmark(both, models, methods, levels, setup)
    right = either_named(run.answers, held, setup.judge)
    return TwoAtOnce(run.answers.assign(correct=right), run.confidence, held, run)


def either_named(
    answers: pd.DataFrame, pairs: Mapping[str, tuple[Case, Case]], grader: Grader
) -> pd.Series:
    """Of each answer about a merged case: 1 where it names either diagnosis, 0 where neither, NaN
    where there is no answer."""
    said = [a if isinstance(a, str) else None for a in answers["answer"]]
    had = ~(answers["correct"].isna() & answers["answer"].isna())
    grades = [grader.grade(said, [pairs[c][i] for c in answers["case_id"]]) for i in (0, 1)]
    right = [[g.correct for g in of_one] for of_one in grades]
    either = pd.DataFrame(right, columns=answers.index, dtype=float).max(skipna=False)
    return either.where(had)


def two_at_once_table(
    singles: tuple[pd.DataFrame, pd.DataFrame], two: TwoAtOnce, n_draws: int = 2000, seed: int = 0
) -> pd.DataFrame:
    """Merged against single, all levels: accuracy (of either) and mean_confidence.

    - ``singles``: answers and confidence of the original; only patients that are in a pair.
    - ``told``: "one patient", "two at once" or "difference" (two less one, paired: a merged case
      against the mean of its two patients at the same level; resampled by pair).
    """
    patients = [c.case_id for pair in two.pairs.values() for c in pair]
    alone: Any = tuple(t[t["case_id"].isin(patients)] for t in singles)
    lines = []
    for told, (answers, confidence) in ((ONE, alone), (TWO, (two.answers, two.confidence))):
        lines += _means(_values(answers, confidence).assign(told=told), n_draws, seed)
    keys = [*ABOUT, *VIEW]
    change, one = _values(two.answers, two.confidence), _values(*alone).set_index(keys)["value"]
    halves = 0
    for i in (0, 1):
        theirs = change.assign(case_id=[two.pairs[c][i].case_id for c in change["case_id"]])
        halves += one.reindex(pd.MultiIndex.from_frame(theirs[keys])).to_numpy() / 2
    change = change.assign(told="difference", value=change["value"] - halves)
    return table([*lines, *_means(change, n_draws, seed)], [*RUN, "method", "told"])


def _values(answers: pd.DataFrame, confidence: pd.DataFrame) -> Any:
    """A row a value, case_id level value and :data:`ABOUT`: accuracy, then each confidence."""
    right = answers.assign(method="", metric="accuracy", value=answers["correct"].astype(float))
    sure = confidence.assign(metric="mean_confidence", value=confidence["confidence"])
    return pd.concat([part[[*ABOUT, *VIEW, "value"]] for part in (right, sure)])


def _means(values: pd.DataFrame, n_draws: int, seed: int) -> Iterator[dict[str, Any]]:
    held = grouped(values, [*ABOUT, "told"], "value", n_draws=n_draws, seed=seed, none=NOT_BOTH)
    for about, rows in held:
        yield about | estimate(rows, mean("value"))


def dry_run(cases: Sequence[Case], models: Sequence[Any], asked: Any) -> None:
    """Ask what the notebook asks, for ``trustlab plan``."""
    changes = named(asked.changes, asked.seed)
    seeds = asked.paraphrase_seeds
    robustness(cases, models, setup=asked, changes=changes, paraphrase_seeds=seeds)
    if pairs(cases, asked.seed):
        two_at_once(cases, models, setup=asked)
