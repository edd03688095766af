"""Two patients told as one: is a model right about either, and does its confidence notice that no one disease fits?

The paper's abstract claims stability under several diseases at once and shows no experiment; this one is ours.
"""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportGeneralTypeIssues=false, reportCallIssue=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from trustlab.changes import merged, pairs
from trustlab.correctness import Grader, SynonymGrader, open_grader
from trustlab.differential import STRATA, Strata, differential, flatness, tertiles
from trustlab.experiments.benchmark import Run, benchmark
from trustlab.experiments.robustness_tables import RUN, cell, mean
from trustlab.knowledge import Knowledge, load_knowledge
from trustlab.levels import view
from trustlab.metrics.table import metrics_table
from trustlab.models.base import Model
from trustlab.records import Case

ONE, TWO = "one patient", "two at once"


@dataclass(frozen=True)
class TwoAtOnce:
    """The run over the merged cases, who is in each of them, and which of the two each answer names.

    ``answers`` and ``confidence`` are the run's; ``answers["correct"]`` is 1 where the answer names either diagnosis, and
    ``names_first``, ``names_second`` say which (NaN where it could not be graded). ``singles`` are the cases merged.
    """

    answers: pd.DataFrame
    confidence: pd.DataFrame
    pairs: Mapping[str, tuple[Case, Case]]
    cases: tuple[Case, ...]
    run: Run


def two_at_once(
    cases: Sequence[Case], models: Sequence[Model], *asking: Any, seed: int = 0, run_dir: Path | None = None, **more: Any
) -> TwoAtOnce:
    """Pair the cases, merge each pair, and ask about the merged cases as the benchmark does; ``ValueError`` without a pair.

    ``asking`` are the benchmark's methods, levels, samples and temperature, ``more`` its keywords. At level q, q % of the merged
    statements are shown: about as much of each patient as alone, and twice as much in all.
    """
    found = [(a, b, merged(a, b, seed)) for a, b in pairs(cases, seed)]
    if not found:
        raise ValueError(f"no two of {len(cases)} cases have different diagnoses and the same sex")
    both, held = [m for *_, m in found], {m.case_id: (a, b) for a, b, m in found}
    run = benchmark(both, models, *asking, seed=seed, run_dir=run_dir, **more)
    grader = open_grader(more.get("grader") or SynonymGrader())
    answers = which_named(run.answers, held, grader)
    return TwoAtOnce(answers, run.confidence, held, tuple(both), run)


def which_named(answers: pd.DataFrame, held: Mapping[str, tuple[Case, Case]], grader: Grader) -> pd.DataFrame:
    """``answers`` with ``names_first`` and ``names_second`` (1, 0, or NaN where the grader cannot tell), ``correct`` = either."""
    said = [a if isinstance(a, str) else None for a in answers["answer"]]
    table = answers.copy()
    failed = answers["correct"].isna().to_numpy() & answers["answer"].isna().to_numpy()
    for i, column in enumerate(("names_first", "names_second")):
        grades = grader.grade(said, [held[c][i] for c in answers["case_id"]])
        table[column] = pd.Series([g.correct for g in grades], index=answers.index, dtype=float).mask(failed)
    return table.assign(correct=table[["names_first", "names_second"]].max(axis=1, skipna=False))


def named_table(answers: pd.DataFrame, n_draws: int = 2000, seed: int = 0) -> pd.DataFrame:
    """Which diagnosis the answers about merged cases name: model dataset level what value low high n n_cases reason.

    ``what`` is "either", "told first" or "told second" (the patient whose statement opens the story is the first); shares 0 to 1.
    """
    columns = {"either": "correct", "told first": "names_first", "told second": "names_second"}
    rows = []
    groups: Any = answers.groupby([*RUN, "level"], sort=False)
    for key, part in groups:
        for what, column in columns.items():
            known = part.dropna(subset=column)
            rows.append((*key, what, *mean(known[column], known["case_id"], n_draws, seed)))
    return pd.DataFrame(rows, columns=[*RUN, "level", "what", "value", "low", "high", "n", "n_cases", "missing"])


def flatness_table(cases: Sequence[Case], levels: Sequence[int], knowledge: Knowledge | None = None) -> pd.DataFrame:
    """case_id level flatness missing: how flat the differential of each view is, in nats; missing where no finding is known."""
    table, rows = knowledge or load_knowledge(), []
    for case in cases:
        for level in levels:
            try:
                rows.append((case.case_id, level, flatness(differential(view(case, level).statements, table)), ""))
            except ValueError as error:
                rows.append((case.case_id, level, float("nan"), str(error)))
    return pd.DataFrame(rows, columns=["case_id", "level", "flatness", "missing"])


def two_at_once_table(
    singles: tuple[pd.DataFrame, pd.DataFrame], two: TwoAtOnce, n_draws: int = 2000, seed: int = 0
) -> pd.DataFrame:
    """Merged against single, all levels: accuracy, mean confidence and AUROC, with their difference.

    Columns model dataset method metric told value low high n n_cases reason n_rarer.
    ``singles`` are the answers and confidence as told. ``told`` is "one patient", "two at once" or "difference" (two less one,
    paired: a merged case against the mean of its two patients at the same level, where all three have a value; resampled by
    pair). ``metric`` is accuracy (right about either of two), mean_confidence or auroc (within level; no difference, it is not
    paired; its ``n_rarer`` counts the rarer of right and wrong answers). Only patients that are in
    a pair.
    """
    patients = {c.case_id for pair in two.pairs.values() for c in pair}
    alone = tuple(t[t["case_id"].isin(patients)] for t in singles)
    rows, none = [], float("nan")
    for told, (answers, confidence) in ((ONE, alone), (TWO, (two.answers, two.confidence))):
        for key, name, part, column in _measures(answers, confidence):
            known = part.dropna(subset=column)
            rows.append((*key, *name, told, *mean(known[column], known["case_id"], n_draws, seed), none))
        rows += _auroc(answers, confidence, told, n_draws, seed)
    each_alone = {(key, name): part for key, name, part, _ in _measures(*alone)}
    for key, name, together, column in _measures(two.answers, two.confidence):
        each = each_alone[key, name]
        value: Any = each.set_index(["case_id", "level"])[column]
        ids = [[c.case_id for c in two.pairs[p]] for p in together["case_id"]]
        expected = [
            (float(value.get((a, q), float("nan"))) + float(value.get((b, q), float("nan")))) / 2
            for (a, b), q in zip(ids, together["level"], strict=True)
        ]
        change = (together[column].astype(float) - expected).dropna()
        rows.append((*key, *name, "difference", *mean(change, together.loc[change.index, "case_id"], n_draws, seed), none))
    columns = [*RUN, "method", "metric", "told", "value", "low", "high", "n", "n_cases", "missing", "n_rarer"]
    return pd.DataFrame(rows, columns=columns)


def strata_table(
    singles: tuple[pd.DataFrame, pd.DataFrame],
    two: TwoAtOnce,
    cases: Sequence[Case],
    level: int,
    knowledge: Knowledge | None = None,
    n_draws: int = 2000,
    seed: int = 0,
) -> tuple[pd.DataFrame, Strata | None]:
    """Accuracy and mean confidence at one level by how flat the differential is, and the cut points.

    One level alone, for the less is told the flatter a differential is: across levels the strata would be the levels. The cut
    points are the thirds of the views of ``cases`` and of the merged cases at ``level``, taken together, and the same for
    both: a stratum holds views that are about as flat, and as many of each kind as there happen to be (``n``). Columns model
    dataset method metric told stratum value low high n n_cases reason; ``stratum`` is clear, middle or flat. Views without a
    known finding are in none; with fewer than three views that have one the table is empty and the cut points ``None``.
    """
    flat = pd.concat([flatness_table(some, [level], knowledge) for some in (cases, two.cases)])
    columns = [*RUN, "method", "metric", "told", "stratum", "value", "low", "high", "n", "n_cases", "missing"]
    try:
        cuts = tertiles(list(flat["flatness"]))
    except ValueError:
        return pd.DataFrame(columns=columns), None
    stratum = flat.assign(stratum=[cuts.of(v) for v in flat["flatness"]]).set_index(["case_id", "level"])["stratum"]
    rows = []
    for told, (answers, confidence) in ((ONE, singles), (TWO, (two.answers, two.confidence))):
        for key, name, part, column in _measures(answers, confidence):
            placed = part[part["level"] == level].join(stratum, on=["case_id", "level"]).dropna(subset=column)
            for which in STRATA:
                at = placed[placed["stratum"] == which]
                rows.append((*key, *name, told, which, *mean(at[column], at["case_id"], n_draws, seed)))
    return pd.DataFrame(rows, columns=columns), cuts


def strata_cells(strata: pd.DataFrame) -> pd.DataFrame:
    """The table of :func:`strata_table` to read: a column a stratum, cells such as "62 [50, 74], n = 20" in percent.

    Rows: model dataset method ("accuracy" for accuracy) told. Without an interval the value stands alone, without a value "–".
    """
    text = strata.assign(
        cell=[cell(r, 0, 100) for r in strata.to_dict("records")], method=strata["method"].replace("", "accuracy")
    )
    index = [*RUN, "method", "told"]
    wide = text.set_index([*index, "stratum"])["cell"].unstack("stratum")
    return wide.reindex(index=pd.MultiIndex.from_frame(text[index].drop_duplicates()), columns=list(STRATA)).sort_index(
        level=[*RUN, "method"], sort_remaining=False, kind="stable"
    )


def _measures(answers: pd.DataFrame, confidence: pd.DataFrame) -> list[tuple[Any, tuple[str, str], pd.DataFrame, str]]:
    """(model, dataset), (method, metric), the rows and their column: accuracy, then each method's confidence."""
    groups: Any = answers.groupby(RUN, sort=False)
    found = [(key, ("", "accuracy"), part, "correct") for key, part in groups]
    groups = confidence.groupby([*RUN, "method"], sort=False)
    return [*found, *((key[:2], (key[2], "mean_confidence"), part, "confidence") for key, part in groups)]


def _auroc(answers: pd.DataFrame, confidence: pd.DataFrame, told: str, n_draws: int, seed: int) -> list[tuple]:
    @dataclass(frozen=True)
    class Tables:
        answers: pd.DataFrame
        confidence: pd.DataFrame

    table = metrics_table(Tables(answers, confidence), n_draws=n_draws, seed=seed)
    table = table[(table["metric"] == "auroc") & (table["level"] == "within")]
    numbers = ["value", "low", "high", "n", "n_cases", "missing", "n_rarer"]
    return [(r["model"], r["dataset"], r["method"], "auroc", told, *(r[c] for c in numbers)) for r in table.to_dict("records")]
