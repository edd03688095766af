"""The tables behind the committed figures: each value with its counts, no interval below twelve
cases, no ranking of fewer than ten right or wrong answers. The reference run makes them."""

from __future__ import annotations

import re

import pandas as pd
from each import each

from trustlab.metrics.estimate import MIN_CASES
from trustlab.paths import FIGURES

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
    assert told and {name for name in told if name not in drawn} == set()
