"""The tables behind the committed figures: each value with its counts, no interval below twelve
cases, no ranking of fewer than ten right or wrong answers. The reference run makes them.

And every table that sets methods side by side, committed or made anew from the reference run's
answers: those without a mark stand on the same number of answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pandas as pd
import pytest
from each import each

from studies import ablations, calibration, robustness
from trustlab.agents.changes import ORIGINAL
from trustlab.confidence import METHODS
from trustlab.metrics.estimate import MIN_CASES, groups
from trustlab.paths import FIGURES, ROOT
from trustlab.reports.compare import compare_runs
from trustlab.runs.folder.saved import table_in
from trustlab.runs.measures import metrics_table
from trustlab.runs.run import Run

MIN_PER_CLASS = 10
VALUES = ("value", "difference", "confidence", "r")
"""What a figure draws, in this order of preference."""
BY_RULE = "05_indices"
"""An index may hold by rule, without any case."""
ONE_ANSWER, OF_NO_CASES = ("00_moves", "00_story", "04_one_consultation"), ("06_",)
"""One answer a row; points of no patients."""


def violations(name: str, table: pd.DataFrame) -> list[str]:
    """What is wrong with the table of a figure; nothing where it holds."""
    if name.startswith((*ONE_ANSWER, *OF_NO_CASES)):
        return [] if "n" in table or name.startswith("04_") else ["no n"]
    value = next(table[column] for column in VALUES if column in table)
    told = table["missing"].astype(object).fillna("").ne("")
    known, least = value.notna(), 0 if name.startswith(BY_RULE) else 1
    found = {"a value is missing without a reason": ~known & ~told}
    found["a value without its n"] = known & ~(table["n"] >= least)
    found["a value without its cases"] = known & table["n_cases"].isna()
    if "low" in table:
        ends = table[["low", "high"]].notna()
        found["half an interval"] = ends.any(axis=1) & ~ends.all(axis=1)
        found["an interval of few cases"] = ends.any(axis=1) & ~(table["n_cases"] >= MIN_CASES)
    if "n_rarer" in table and "metric" in table:
        ranks = known & table["metric"].isin(["auroc", "auprc", "risk"])
        found["a ranking of few"] = ranks & ~(table["n_rarer"] >= MIN_PER_CLASS)
    return [f"{what} ({int(bad.sum())} rows)" for what, bad in found.items() if bad.any()]


@each("name", sorted(path.stem for path in FIGURES.glob("*.csv")))
def test_the_table_behind_a_committed_figure_holds(name: str) -> None:
    assert violations(name, pd.read_csv(FIGURES / f"{name}.csv")) == []


def test_the_list_of_figures_tells_what_each_is_for() -> None:
    told = re.findall(r"^\| `(\w+)` \| \S.{20,}", (FIGURES / "README.md").read_text("utf-8"), re.M)
    drawn = {path.stem for path in FIGURES.glob("*.csv")}
    assert sorted(told) == sorted(drawn)


PAIRED = "difference"
"""A table with this column sets each method against a reference on answers that both have."""
NOT_OF_A_RUN = (*ONE_ANSWER, *OF_NO_CASES, "00_beyond")
"""Figures of single answers and of made points."""
WHAT = ["model", "dataset", "level", "metric", "how", "role", "coverage", "condition"]
"""Methods that agree in these stand side by side."""
POINT = ["method", "variant", "n_samples", "temperature"]


def sets_side_by_side(table: pd.DataFrame) -> bool:
    """Whether the table has values of several methods, each on answers of a run."""
    if PAIRED in table or not {"method", "metric", "value", "n"} <= set(table):
        return False
    return table["method"].dropna().nunique() > 1


def unequal(table: pd.DataFrame) -> Iterator[str]:
    """What stands on other answers than its neighbours, and has no mark."""
    marked = table["own_rows"].eq(True) if "own_rows" in table else False
    named = table["method"].fillna("").ne("")
    role = table["role"].ne("reference") if "role" in table else True
    beside = table[table["value"].notna() & named & role & ~pd.Series(marked, table.index)]
    what, point = ([name for name in names if name in table] for names in (WHAT, POINT))
    n = "n_shared" if "n_shared" in table else "n"
    if "bin" in table:  # what a method stands on is that of all its bins
        counted = beside[beside["bin"].notna()].groupby([*what, *point], dropna=False)[n]
        beside = counted.sum().reset_index()
    for about, part in groups(beside, what):
        if part[n].nunique() > 1:
            sizes = part[[*point, n]].drop_duplicates(n).to_dict("records")
            yield f"{about}: {sizes}"


COMMITTED = sorted(path.relative_to(ROOT).as_posix() for path in FIGURES.rglob("*.csv"))


@each("name", COMMITTED)
def test_methods_of_a_committed_table_stand_on_the_same_answers_or_have_a_mark(name: str) -> None:
    table = pd.read_csv(ROOT / name, low_memory=False)
    if not Path(name).stem.startswith(NOT_OF_A_RUN) and sets_side_by_side(table):
        assert list(unequal(table)) == []


LOSSY, SET = "embedded-closed", "starter"
"""A model and data set of the reference run where MedConf lacks many wrong answers."""
SCALES = {name: method.scale for name, method in METHODS.items()}


@cache
def kept_run() -> Run:
    """The reference run's answers of :data:`LOSSY`, and confidences of some methods."""
    folder = FIGURES / "reference" / "01_benchmark"
    both = [pd.read_parquet(table_in(folder, name)) for name in ("answers", "confidence")]
    answers, confidence = (t[t["model"].eq(LOSSY) & t["dataset"].eq(SET)] for t in both)
    confidence = confidence[confidence["method"].isin(["poc", "ce", "cot_ce", "medconf"])]
    return Run(answers, confidence, pd.DataFrame(), {"n_samples": 15, "sample_temperature": 0.5})


def of_variants() -> pd.DataFrame:
    """MedConf beside itself without its missing values: as two variants."""
    run = kept_run()
    confidence = run.confidence.assign(variant="1")
    filled = confidence.assign(variant="2", confidence=confidence["confidence"].fillna(0.5))
    facts = {**run.parameters, "medconf": {"n_passages": 15}}
    runs = dict.fromkeys(("1", "2"), Run(run.answers, run.confidence, run.calls, facts))
    table = pd.concat([confidence, filled])
    made = ablations.Ablations(run.answers, table, pd.DataFrame(), runs)
    return ablations.variants_table(made)


def of_conditions() -> pd.DataFrame:
    """The kept answers as they would be under three paraphrases, each text another."""
    run, tables = kept_run(), []
    for table in (run.answers, run.confidence):
        parts = [
            table.assign(condition=name, shown=name, changed=name != ORIGINAL.name)
            for name in (ORIGINAL.name, "paraphrase_1", "paraphrase_2", "paraphrase_3")
        ]
        tables.append(pd.concat(parts, ignore_index=True))
    return robustness.variation_table(*tables)


def of_sides() -> pd.DataFrame:
    run = kept_run()
    return compare_runs(run, run).metrics


def of_risk() -> pd.DataFrame:
    run = kept_run()
    methods = list(run.confidence["method"].unique())
    return calibration.risk_coverage_table(run.answers, run.confidence, methods)


FRESH: dict[str, Callable[[], pd.DataFrame]] = {
    "metrics_table": lambda: metrics_table(kept_run()),
    "calibration_table": lambda: calibration.calibration_table(
        kept_run().answers, kept_run().confidence, SCALES
    ),
    "reliability_table": lambda: calibration.reliability_table(
        kept_run().answers, kept_run().confidence, SCALES
    ),
    "risk_coverage_table": of_risk,
    "variants_table": of_variants,
    "variation_table": of_conditions,
    "compare_runs": of_sides,
}


@pytest.mark.slow
@each("name", list(FRESH))
def test_methods_of_a_fresh_table_stand_on_the_same_answers_or_have_a_mark(name: str) -> None:
    table = FRESH[name]()
    assert sets_side_by_side(table)
    assert list(unequal(table)) == []
    own = table.loc[table["own_rows"].eq(True), "method"]
    assert set(own) == {"medconf"}
    assert any("medconf" in line for line in unequal(table.assign(own_rows=False)))
