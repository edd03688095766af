"""Does a confidence stay put? The benchmark again under each of several changes to what is told.

Each condition is a full rerun (diagnosis, samples, confidence) through :func:`trustlab.experiments.benchmark.benchmark` over
the same cache, so that only what is new is asked. METHODS: Ren et al. 2026, robustness.
"""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportReturnType=false, reportAttributeAccessIssue=false, reportGeneralTypeIssues=false

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from trustlab.agents.rephrase import newly_names, reword
from trustlab.changes import AS_TOLD, Change, named, paraphrased, picked
from trustlab.experiments.benchmark import Run, benchmark
from trustlab.knowledge import Knowledge, load_knowledge
from trustlab.levels import view
from trustlab.metrics.stability import RATIO
from trustlab.models.base import Model
from trustlab.models.cache import CachedModel
from trustlab.paraphrases import ParaphraseChecker, Verdict
from trustlab.records import Case, Statement
from trustlab.semantics import Encoder

METHODS_SHOWN = RATIO
"""Every method on a ratio scale."""
CHANGES = ("small_talk", "other_system", "reordered", "instruction_100")
SEEDS = (1, 2, 3)
"""Of the three paraphrased conditions."""
WORDING_COLUMNS = ["text", "wording", "verdict", "how", "why", "used", "n"]


@dataclass(frozen=True)
class Robustness:
    """The tables of every condition, tidy, and what made them.

    ``answers`` and ``confidence`` are those of :class:`~trustlab.experiments.benchmark.Run` with three columns more:
    ``condition`` (``as_told`` among them), ``changed`` (whether what was shown differs from what is shown as told: at one
    statement no order changes, and a paraphrase may not have been had) and ``shown`` (a digest of the text that was shown, so
    that conditions which happen to show the same are known). ``paraphrases`` has a row for each distinct statement
    that a paraphrased condition drew (:func:`paraphrases`). ``left_out``: why there is no paraphrased condition.
    ``parameters`` are the runs' own, by condition.
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
        return self.runs[AS_TOLD.name].families

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
        return f"{int(table['used'].sum()):,} of {len(table):,} distinct statements have a paraphrase that is used: {parts}"


def robustness(
    cases: Sequence[Case],
    models: Sequence[Model],
    methods: str | Sequence[str] = METHODS_SHOWN,
    levels: Sequence[int] = (100,),
    samples: int = 15,
    temperature: float = 0.5,
    seed: int = 0,
    run_dir: str | Path | None = None,
    n_jobs: int = 1,
    *,
    changes: Sequence[Change] | None = None,
    paraphrase_seeds: Sequence[int] = SEEDS,
    wording: Model | None = None,
    cache: str | Path | None = None,
    encoder: Encoder | None = None,
    knowledge: Knowledge | None = None,
    **asking: Any,
) -> Robustness:
    """Ask every model about every case as told, paraphrased (a condition a seed) and under each of ``changes``.

    ``wording`` (default: the first of ``models``) words the paraphrases; those that add, drop or turn a finding are caught by
    :class:`~trustlab.paraphrases.ParaphraseChecker` and not used. Where it gives no usable one at all, the paraphrased
    conditions are left out with the reason. ``run_dir`` receives each condition's tables in ``runs/NAME``, and
    ``paraphrases.csv``. The other arguments and errors are those of :func:`~trustlab.experiments.benchmark.benchmark`;
    ``ValueError`` too for names given twice.
    """
    changes = list(named(CHANGES, seed) if changes is None else changes)
    out = Path(run_dir) if run_dir else None
    store = cache or (out / "replies.sqlite" if out else None)
    encoder = encoder or Encoder(
        cache_path=Path(store).with_name("vectors.sqlite") if store else None
    )
    checker = ParaphraseChecker(knowledge or load_knowledge(), encoder)
    voice: list[CachedModel] = []
    wordings, left_out = pd.DataFrame(columns=WORDING_COLUMNS), "none was asked for"
    if paraphrase_seeds:
        voice = [_voice(models[0] if wording is None else wording, store)]
        wordings = paraphrases(cases, levels, paraphrase_seeds, voice[0], checker)
        left_out = _none_usable(wordings, voice[0].name)
        if out:
            out.mkdir(parents=True, exist_ok=True)
            wordings.to_csv(out / "paraphrases.csv", index=False)
    usable = dict(
        zip(
            *(wordings.loc[wordings["used"].astype(bool), c] for c in ("text", "wording")),
            strict=True,
        )
    )
    said_again = [] if left_out else [paraphrased(usable, s) for s in paraphrase_seeds]
    conditions = (AS_TOLD, *said_again, *changes)
    if again := [name for name, n in Counter(c.name for c in conditions).items() if n > 1]:
        raise ValueError(f"each condition may be given once; given again: {', '.join(again)}")
    asking |= {"cache": store, "encoder": encoder}
    runs = {}
    for i, change in enumerate(conditions):
        folder = out / "runs" / change.name if out else None
        before = (
            {"asked_before": [*asking.get("asked_before", ()), *voice]}
            if i == 0
            else {"asked_before": ()}
        )
        _count_anew(asking)
        fixed = (methods, levels, samples, temperature, seed, folder, n_jobs)
        runs[change.name] = benchmark(cases, models, *fixed, **(asking | before), show=change.show)
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
    """Each distinct statement that the conditions ``seeds`` draw, in the new words of ``model``, and whether they are used.

    Columns text wording verdict how why used n: ``wording`` is missing where nothing usable came back (``verdict`` "no new
    words", ``why`` says why); ``n`` counts how often the statement is drawn over all conditions, cases and levels. New words that
    are the old ones are "no new words" too. A question without usable new words stays as it is beside the new answer.
    """
    drawn = [
        s for seed in seeds for case in cases for level in levels for s in picked(case, level, seed)
    ]
    counts, statement = Counter(s.text for s in drawn), {s.text: s for s in drawn}
    rows = [
        _wording_row(statement[text], new, why, checker, counts[text])
        for text, (new, why) in reword(counts, model, keep_question=True).items()
    ]
    return pd.DataFrame(rows, columns=WORDING_COLUMNS)


def appended_table(
    result: Robustness, cases: Sequence[Case], levels: Sequence[int]
) -> pd.DataFrame:
    """Of each paraphrased condition: condition n_views n_drawn n_no_words n_caught n_named n_appended n_unchanged.

    ``n_drawn`` statements were to be said again in ``n_views`` views; of these ``n_no_words`` had no new words, ``n_caught`` had
    words that say something else, ``n_named`` words that name the case's diagnosis; ``n_unchanged`` views got nothing appended.
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
    """The model with a list of calls of its own, so that what it words is counted apart from what it answers."""
    if isinstance(model, CachedModel):
        return CachedModel(model.model, model.path, offline=model.offline)
    return CachedModel(model, store)


def _count_anew(asking: Mapping[str, Any]) -> None:
    """Set back the calls of the other models that several runs share, so that each run counts its own."""
    for other in (getattr(asking.get("grader"), "model", None), asking.get("assessor")):
        if isinstance(other, CachedModel):
            other.reset_calls()


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
