"""02: does a confidence stay put when the telling changes? And two patients told as one."""

# pyright: reportArgumentType=false, reportReturnType=false
# pyright: reportAttributeAccessIssue=false, reportGeneralTypeIssues=false
# pyright: reportCallIssue=false

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import Annotated, Any, Self

import numpy as np
import pandas as pd
from pydantic import Field, model_validator
from scipy.stats import ttest_1samp

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
from trustlab.confidence.registry import label
from trustlab.folder.replies_log import recording
from trustlab.graders import Grader
from trustlab.knowledge import Finding, Knowledge, load_knowledge
from trustlab.levels import view
from trustlab.metrics.estimate import NAN, Rows, estimate, grouped, groups, mean, measure
from trustlab.metrics.formatted import in_short, named_method, pivoted, signed, with_interval
from trustlab.metrics.paired import (
    MIN_COVERAGE,
    best_against,
    compared,
    corrected,
    families_of,
    family_name,
    told_best,
)
from trustlab.metrics.run_tables import Tables, metrics_table
from trustlab.metrics.schema import table
from trustlab.metrics.significance import ALPHA, holm
from trustlab.metrics.stability import (
    CVS,
    NO_MEAN,
    NO_SPREAD,
    cv_group,
    cv_group_by_chance,
    cv_sample,
    views,
)
from trustlab.models.base import About, Model
from trustlab.models.cache import CachedModel
from trustlab.paths import save_table
from trustlab.records import Case, Statement, normalise
from trustlab.run import Run, benchmark, each_asked
from trustlab.settings import Setup, given
from trustlab.workbench import Workbench, opened

STRATA = ("clear", "middle", "flat")


def differential(statements: Sequence[Statement], knowledge: Knowledge) -> dict[str, float]:
    """Condition id -> probability, summing to 1, most probable first: prior x chance of each
    finding told.

    A finding affirmed counts with its graded chance in the condition (``background`` where the
    condition does not list it), a denied one with 1 less that chance; each finding once, as first
    told; findings count as independent. Follow-ups ("where does it hurt?") and values are left out:
    the table grades them in another way. Age and sex are left out: no statement need tell them.
    Raises ``ValueError`` where no statement carries a finding that counts.
    """
    told = _told(statements, knowledge)
    if not told:
        raise ValueError(
            f"none of {len(statements)} statements carries a finding of the knowledge table"
        )
    weights = {
        c.id: (
            math.log(c.prior)
            + sum(_log_chance(c.findings.get(f.id, f.background), yes) for f, yes in told)
        )
        for c in knowledge.conditions.values()
    }
    top = max(weights.values())
    unscaled = {name: math.exp(weight - top) for name, weight in weights.items()}
    total = sum(unscaled.values())
    return {name: unscaled[name] / total for name in sorted(unscaled, key=lambda n: -unscaled[n])}


def flatness(probabilities: dict[str, float]) -> float:
    """Entropy of a differential in nats: 0 where one condition is certain, log(n) where n are
    equally probable."""
    return -sum(p * math.log(p) for p in probabilities.values() if p > 0)


@dataclass(frozen=True)
class Strata:
    """Groups of flatness, cut at given points: at most ``low`` nats is "clear", at most ``high``
    "middle", above it "flat"."""

    low: float
    high: float

    def of(self, value: float) -> str | None:
        """The stratum of a flatness; ``None`` for NaN."""
        if math.isnan(value):
            return None
        return STRATA[(value > self.low) + (value > self.high)]

    def describe(self, stratum: str) -> str:
        """The stratum with its cut points, in nats."""
        words = {
            "clear": f"up to {self.low:.2f}",
            "middle": f"{self.low:.2f} to {self.high:.2f}",
            "flat": f"above {self.high:.2f}",
        }
        if stratum not in words:
            raise ValueError(f"stratum is {stratum!r}; allowed are {', '.join(STRATA)}")
        return f"{stratum} ({words[stratum]} nats)"


def tertiles(values: Sequence[float]) -> Strata:
    """The strata whose cut points are the tertiles of ``values`` (NaN left out); ``ValueError`` for
    fewer than three."""
    known = [v for v in values if not math.isnan(v)]
    if len(known) < len(STRATA):
        raise ValueError(f"tertiles need at least {len(STRATA)} values; received {len(known)}")
    low, high = np.quantile(known, [1 / 3, 2 / 3])
    return Strata(float(low), float(high))


def _told(statements: Sequence[Statement], knowledge: Knowledge) -> list[tuple[Finding, bool]]:
    """Each finding that counts, once, with whether it was affirmed when first told."""
    found: dict[str, tuple[Finding, bool]] = {}
    for s in statements:
        finding = knowledge.findings.get(s.finding or "")
        if (
            finding
            and s.affirmed is not None
            and finding.parent is None
            and finding.form == "binary"
        ):
            found.setdefault(finding.id, (finding, s.affirmed))
    return list(found.values())


def _log_chance(chance: float, affirmed: bool) -> float:
    return math.log(chance if affirmed else 1 - chance)


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

    @property
    def told(self) -> str:
        """What became of the paraphrases, in a sentence."""
        if self.left_out:
            return f"no paraphrased condition: {self.left_out}"
        table = self.paraphrases
        counts = Counter(
            f"{v} ({h})" if h != "not checked" else v
            for v, h in zip(table["verdict"], table["how"], strict=True)
        )
        parts = "; ".join(f"{n:,} {what}" for what, n in counts.most_common())
        return (
            f"{int(table['used'].sum()):,} of {len(table):,} distinct statements have a paraphrase"
            f" that is used: {parts}"
        )


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
        left_out = _none_usable(wordings, voice[0].name)
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
METHOD = [*RUN, "method"]
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


def variation_cells(variation: pd.DataFrame) -> pd.DataFrame:
    """The table of :func:`variation_table` to read: a column a level, with interval and n."""
    return pivoted(variation, [*RUN, "method", "metric"], "level", 1, counted=True)


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


def shift_table(
    answers: pd.DataFrame, confidence: pd.DataFrame, n_draws: int = 2000, seed: int = 0
) -> pd.DataFrame:
    """How far each condition moves each method's mean confidence, in the method's own units.

    - Less the original, paired by case and level, over the rows that the condition changed and that
      have a value in both: the same for all methods of a condition but those with ``own_rows``.
    - ``among``: "all answers" or "same answer", since where the answer changed, the confidence may
      rightly change with it.
    - ``p``: two-sided paired t over cases, a case's shift its mean over levels, where there is an
      interval (a bootstrap's share could not be small enough for so many cells); ``p_holm`` over
      all conditions and methods of a run, level and ``among``.
    """
    said = answers[[*ROW, "condition", "answer"]]
    asked = confidence.merge(said, on=[*ROW, "condition"], how="left", validate="many_to_one")
    both = _with_told(asked, [*ROW, "method"], "confidence")
    both = both[both["condition"].ne(ORIGINAL.name) & both["changed"].astype(bool)]
    shift = both["confidence"] - both["confidence_told"]
    both = both.assign(shift=shift, whole=shift.notna())
    among = {"all answers": True, "same answer": _same_answer(both)}
    both = pd.concat([both.assign(among=name, possible=some) for name, some in among.items()])
    keys = [*RUN, "condition", "level", "among", "method"]
    rows = compared_rows(by_level(both, [*RUN, "condition"]), keys[:-1])
    rows["shift"] = rows["shift"].where(rows["used"])
    lines = []
    for about, part in groups(rows, keys):
        held: Any = Rows.of(part[part["possible"]], "shift", n_draws, seed, NOT_BOTH)
        about |= {"metric": "shift", "own_rows": held.asked["own"].any(), "p": NAN}
        line = about | estimate(held, mean("shift"))
        each = held.table.groupby("case_id")["shift"].mean().to_numpy()
        if pd.notna(line["low"]) and each.std() >= NO_SPREAD:
            line["p"] = ttest_1samp(each, 0)[1]
        lines.append(line)
    keys = [*RUN, "condition", "method", "level", "among"]
    found = table(lines, keys, ["own_rows", "p", "p_holm"])
    return found.assign(p_holm=found.groupby([*RUN, "level", "among"])["p"].transform(holm))


def _with_told(rows: pd.DataFrame, index: list[str], column: str) -> Any:
    """The rows with what the same ones have in the original beside them: ``column`` and the
    answer."""
    told = rows[rows["condition"] == ORIGINAL.name].set_index(index)[[column, "answer"]]
    return rows.join(told.add_suffix("_told"), on=index)


def scatter_table(
    variation: pd.DataFrame,
    answers: pd.DataFrame,
    confidence: pd.DataFrame,
    level: int | str = "all",
    n_draws: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """Stability beside discrimination on the same views at a level, three rows a method.

    ``metric``: cv_group and cv_sample of ``variation``, which :func:`variation_table` made of
    ``confidence``; auroc of the original, of "all" levels the level-stratified mean.
    """
    views: Any = compared_views(confidence)
    views = views[views["used"] & views["level"].eq(str(level))]
    views = views.drop(columns="level").rename(columns={"percent": "level"})
    said, sure = (pd.DataFrame(t[t["condition"] == ORIGINAL.name]) for t in (answers, confidence))
    areas: dict[Any, dict[str, Any]] = {}
    for _, part in views.groupby([*RUN, views["method"].where(views["own"], "")]):
        rows = part[ROW].drop_duplicates()
        mine = sure[sure["method"].isin(part["method"])].merge(rows, on=ROW)
        which = "within" if level == "all" else str(level)
        made = aurocs(said.merge(rows, on=ROW), mine, which, n_draws, seed)
        areas |= {tuple(line[name] for name in METHOD): line for line in made}
    lines, none = [], {"metric": "auroc", "n": 0, "n_cases": 0, "n_missing": 0}
    at_level = pd.DataFrame(variation[variation["level"] == str(level)])
    for key, part in groups(at_level, METHOD):
        of_cv: Any = part.to_dict("records")
        about = {name: of_cv[-1][name] for name in ("own_rows", "missing")}
        lines += [*of_cv, key | about | areas.get(tuple(key.values()), none)]
    return table(lines, METHOD, ["n_rarer", "own_rows"])


def aurocs(
    answers: pd.DataFrame, confidence: pd.DataFrame, level: str, n_draws: int, seed: int
) -> list[dict[str, Any]]:
    """Each method's AUROC at a level, as lines of
    :func:`~trustlab.metrics.run_tables.metrics_table`."""
    found: Any = metrics_table(Tables(answers, confidence), n_draws=n_draws, seed=seed)
    return found[found["metric"].eq("auroc") & found["level"].eq(level)].to_dict("records")


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
            label = about | {"method": method, "family": family_name(method)}
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
        for family, members in families_of(of, reference).items():
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
NO_VIEW = "no view of this kind has a value"


@dataclass(frozen=True)
class TwoAtOnce:
    """The run over the merged ``cases``; ``pairs``: case id -> the two cases that are in it.

    ``answers["correct"]`` is 1 where an answer names either diagnosis; ``names_first`` and
    ``names_second`` say which.
    """

    answers: pd.DataFrame
    confidence: pd.DataFrame
    pairs: Mapping[str, tuple[Case, Case]]
    cases: tuple[Case, ...]
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
    answers = which_named(run.answers, held, setup.judge)
    return TwoAtOnce(answers, run.confidence, held, tuple(both), run)


def which_named(
    answers: pd.DataFrame, held: Mapping[str, tuple[Case, Case]], grader: Grader
) -> pd.DataFrame:
    """``answers`` with ``names_first`` and ``names_second``, and ``correct``: either of them."""
    said = [a if isinstance(a, str) else None for a in answers["answer"]]
    had = ~(answers["correct"].isna() & answers["answer"].isna())
    named = {}
    for i, column in enumerate(("names_first", "names_second")):
        grades = grader.grade(said, [held[c][i] for c in answers["case_id"]])
        right = pd.Series([g.correct for g in grades], index=answers.index, dtype=float)
        named[column] = right.where(had)
    return answers.assign(**named, correct=pd.DataFrame(named).max(axis=1, skipna=False))


def named_table(answers: pd.DataFrame, n_draws: int = 2000, seed: int = 0) -> pd.DataFrame:
    """Which diagnosis the answers about merged cases name: who opens the story is told first."""
    columns = {"either": "correct", "told first": "names_first", "told second": "names_second"}
    keys, lines = [*RUN, "level"], []
    for about, part in groups(answers, keys):
        for metric, column in columns.items():
            rows = Rows.of(part, column, n_draws, seed, "no graded answer")
            lines.append(about | {"metric": metric} | estimate(rows, mean(column)))
    return table(lines, keys)


def flatness_table(
    cases: Sequence[Case], levels: Sequence[int], knowledge: Knowledge | None = None
) -> pd.DataFrame:
    """How flat the differential of each view is, in nats, or why it is ``missing``."""
    known, rows = knowledge or load_knowledge(), []
    for case, level in product(cases, levels):
        try:
            flat = flatness(differential(view(case, level).statements, known))
            rows.append((case.case_id, level, flat, ""))
        except ValueError as error:
            rows.append((case.case_id, level, NAN, str(error)))
    return pd.DataFrame(rows, columns=[*VIEW, "flatness", "missing"])


def two_at_once_table(
    singles: tuple[pd.DataFrame, pd.DataFrame], two: TwoAtOnce, n_draws: int = 2000, seed: int = 0
) -> pd.DataFrame:
    """Merged against single, all levels: accuracy (of either), mean_confidence and auroc.

    - ``singles``: answers and confidence of the original; only patients that are in a pair.
    - ``told``: "one patient", "two at once" or "difference" (two less one, paired: a merged case
      against the mean of its two patients at the same level; resampled by pair).
    - ``auroc`` is level-stratified and has no difference: it is not paired.
    """
    patients = [c.case_id for pair in two.pairs.values() for c in pair]
    alone: Any = tuple(t[t["case_id"].isin(patients)] for t in singles)
    lines = []
    for told, (answers, confidence) in ((ONE, alone), (TWO, (two.answers, two.confidence))):
        lines += _means(_values(answers, confidence).assign(told=told), n_draws, seed)
        area = aurocs(answers, confidence, "within", n_draws, seed)
        lines += [line | {"told": told} for line in area]
    keys = [*ABOUT, *VIEW]
    change, one = _values(two.answers, two.confidence), _values(*alone).set_index(keys)["value"]
    halves = 0
    for i in (0, 1):
        theirs = change.assign(case_id=[two.pairs[c][i].case_id for c in change["case_id"]])
        halves += one.reindex(pd.MultiIndex.from_frame(theirs[keys])).to_numpy() / 2
    change = change.assign(told="difference", value=change["value"] - halves)
    return table([*lines, *_means(change, n_draws, seed)], [*RUN, "method", "told"], ["n_rarer"])


def beside_alone(table: pd.DataFrame) -> pd.DataFrame:
    """Of :func:`two_at_once_table` what is drawn: accuracy and means, of one patient and of two.

    Beside each the ``difference`` in points, of ``n_pairs``, and at the means of two whether it
    ``holds``: its interval is without 0.
    """
    means = table[table["metric"].isin(["accuracy", "mean_confidence"])]
    change = means[means["told"].eq("difference")]
    apart = change["low"].gt(0) | change["high"].lt(0)
    change = change.assign(difference=100 * change["value"], n_pairs=change["n"], apart=apart)
    beside = change[[*METHOD, "difference", "n_pairs", "apart"]]
    means = means[means["told"].ne("difference")]
    means = means.merge(beside, on=METHOD, how="left", validate="many_to_one")
    holds = means["apart"].eq(True) & means["told"].eq(TWO)
    return means.drop(columns="apart").assign(holds=holds)


def strata_table(
    singles: tuple[pd.DataFrame, pd.DataFrame],
    two: TwoAtOnce,
    cases: Sequence[Case],
    level: int,
    knowledge: Knowledge | None = None,
    n_draws: int = 2000,
    seed: int = 0,
) -> tuple[pd.DataFrame, Strata | None]:
    """Accuracy and mean confidence at one level by how flat the differential is; the cut points.

    - One level alone, for the less is told the flatter a differential is: across levels the strata
      would be the levels.
    - The cut points are the thirds of the views of ``cases`` and of the merged cases, taken
      together: a ``stratum`` (clear, middle or flat) holds views that are about as flat.
    - Views without a known finding are in none; with fewer than three views that have one the table
      is empty and the cut points ``None``.
    """
    keys = [*RUN, "method", "told", "stratum"]
    flat = pd.concat([flatness_table(some, [level], knowledge) for some in (cases, two.cases)])
    try:
        cuts = tertiles(list(flat["flatness"]))
    except ValueError:
        return table([], keys), None
    stratum = flat.set_index(VIEW)[["flatness"]].map(cuts.of).set_axis(["stratum"], axis=1)
    one, both = _values(*singles), _values(two.answers, two.confidence)
    values = pd.concat([one.assign(told=ONE), both.assign(told=TWO)])
    placed = values[values["level"] == level].join(stratum, on=VIEW)
    lines = []
    for about, part in groups(placed, [*ABOUT, "told"]):
        for which in STRATA:
            rows = Rows.of(part[part["stratum"] == which], "value", n_draws, seed, NO_VIEW)
            lines.append(about | {"stratum": which} | estimate(rows, mean("value")))
    return table(lines, keys), cuts


def strata_cells(strata: pd.DataFrame) -> pd.DataFrame:
    """The table of :func:`strata_table` to read, in percent: a column a stratum, interval and n."""
    ends = strata[["value", "low", "high"]].astype(float) * 100
    named = strata.assign(method=strata["method"].replace("", "accuracy"), **ends)
    keys = [*RUN, "method", "told"]
    found: Any = pivoted(named, keys, "stratum", 0, counted=True)
    return found.sort_values(keys[:3], kind="stable", ignore_index=True)[[*keys, *STRATA]]


def _values(answers: pd.DataFrame, confidence: pd.DataFrame) -> Any:
    """A row a value, case_id level value and :data:`ABOUT`: accuracy, then each confidence."""
    right = answers.assign(method="", metric="accuracy", value=answers["correct"].astype(float))
    sure = confidence.assign(metric="mean_confidence", value=confidence["confidence"])
    return pd.concat([part[[*ABOUT, *VIEW, "value"]] for part in (right, sure)])


def _means(values: pd.DataFrame, n_draws: int, seed: int) -> Iterator[dict[str, Any]]:
    held = grouped(values, [*ABOUT, "told"], "value", n_draws=n_draws, seed=seed, none=NOT_BOTH)
    for about, rows in held:
        yield about | estimate(rows, mean("value"))


def answers_message(accuracy: pd.DataFrame, labels: Mapping[str, str]) -> str:
    """What the changes do to the answers of each model, of :func:`accuracy_table` on one data set,
    all levels; '' where nothing could be compared. ``labels``: the conditions in words."""

    def told(part: pd.DataFrame) -> str:
        change, other = (
            part[part["metric"].eq(name)].dropna(subset="value")
            for name in ("difference", "other_answer")
        )
        if change.empty:
            return ""
        most = change.loc[change["value"].abs().idxmax()]
        apart = int((change["low"].gt(0) | change["high"].lt(0)).sum())
        named = labels.get(most["condition"], most["condition"])
        words = f"accuracy changes by at most {_points(most)} ({named})"
        known = int(change["low"].notna().sum())
        words += f", {apart} of {known} intervals exclude 0" if known else ""
        ends = [f"{100 * end:.0f}" for end in (other["value"].min(), other["value"].max())]
        shares = " to ".join(dict.fromkeys(ends))
        return f"{words}; {shares} % of the answers become another diagnosis."

    return _by_model(accuracy[accuracy["level"].eq("all")], told)


def variation_message(variation: pd.DataFrame, gaps: pd.DataFrame) -> str:
    """Which confidence of each model varies least and most, of :func:`variation_table` at one level
    and data set, and how many differ from the reference, of :func:`cv_differences`."""

    def told(part: pd.DataFrame) -> str:
        each = part[part["metric"].eq("cv_sample")].dropna(subset="value").sort_values("value")
        if each.empty:
            return ""
        ends = [each.iloc[0], each.iloc[-1]][: len(each)]
        said = [
            f"{label(row['method'])} ({with_interval(row['value'], row['low'], row['high'], 1)} %)"
            for row in ends
        ]
        words = f"one patient's confidence varies by {said[0]}"
        words = words.replace("varies", "varies least", 1) if len(each) > 1 else words
        words += f" and most by {said[-1]}" if len(each) > 1 else ""
        mine = gaps[gaps["metric"].eq("cv_sample") & gaps["model"].eq(part["model"].iloc[0])]
        mine = mine[mine["dataset"].eq(part["dataset"].iloc[0])]
        short = in_short(mine, named_method, *more_or_less_stable(mine), digits=1)
        return f"{words}. {short}".strip()

    return _by_model(variation, told)


def more_or_less_stable(gaps: pd.DataFrame) -> tuple[str, str]:
    """What a difference of :func:`cv_differences` above 0 is called, and one below."""
    against = label(str(gaps["against"].iloc[0])) if len(gaps) else "the reference"
    return f"Less stable than {against}", f"More stable than {against}"


def shifts_message(shift: pd.DataFrame, labels: Mapping[str, str]) -> str:
    """How many shifts of :func:`shift_table` hold after Holm's correction, and the largest of
    them, or of all; '' where none could be tested."""
    tested = shift[shift["p_holm"].notna()]
    if tested.empty:
        return ""
    sure = tested[tested["p_holm"].lt(ALPHA)]
    of = sure if len(sure) else tested
    most = of.loc[of["value"].abs().idxmax()]
    ends = ", ".join(signed(most[end]) for end in ("low", "high"))
    named = labels.get(most["condition"], most["condition"])
    n = len(sure)
    return (
        f"{n or 'None'} of {len(tested)} shifts in mean confidence {'hold' if n > 1 else 'holds'}"
        f" after Holm's correction; the largest is {label(most['method'])},"
        f" {signed(most['value'])} [{ends}] ({named})."
    )


def two_message(both: pd.DataFrame) -> str:
    """What a second patient does to confidence and accuracy, of :func:`two_at_once_table` on one
    data set; '' where no difference has a value."""

    def told(part: pd.DataFrame) -> str:
        change = part[part["told"].eq("difference")].dropna(subset="value")
        sure = change[change["metric"].eq("mean_confidence") & change["low"].notna()]
        right = change[change["metric"].eq("accuracy")]
        if not len(sure):
            return ""
        apart = sure[sure["low"].gt(0) | sure["high"].lt(0)]
        up, down = (int(apart["value"].mul(sign).gt(0).sum()) for sign in (1, -1))
        words = f"told as one with a second patient, {up} of {len(sure)} mean confidences rise and"
        words += f" {down} fall by more than their interval"
        if len(apart):
            most = apart.loc[apart["value"].abs().idxmax()]
            words += f" (the largest: {label(most['method'])}, {_points(most)})"
        right = [f"; accuracy changes by {_points(row)}" for row in right.to_dict("records")]
        return f"{words}{''.join(right)}."

    return _by_model(both, told)


def _points(row: Any) -> str:
    """A difference of shares in points, with its interval where it has one."""
    value, low, high = (signed(100 * row[end], 0) for end in ("value", "low", "high"))
    return f"{value} points" if pd.isna(row["low"]) else f"{value} [{low}, {high}] points"


def _by_model(table: pd.DataFrame, told: Callable[[pd.DataFrame], str]) -> str:
    """What is told of each model, in a line that begins with its name where there are several."""
    said = {str(key["model"]): told(part) for key, part in groups(table, ["model"])}
    many = len(said) > 1
    lines = [f"{who}: {words}" if many else words for who, words in said.items() if words]
    return "\n".join(line if many else line[:1].upper() + line[1:] for line in lines)


def dry_run(cases: Sequence[Case], models: Sequence[Any], asked: Any) -> None:
    """Ask what the notebook asks, for ``trustlab plan``."""
    changes = named(asked.changes, asked.seed)
    seeds = asked.paraphrase_seeds
    robustness(cases, models, setup=asked, changes=changes, paraphrase_seeds=seeds)
    if pairs(cases, asked.seed):
        two_at_once(cases, models, setup=asked)
