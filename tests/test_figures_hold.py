"""The table behind every figure.

Each value drawn has its own n, no interval below ten cases, no ranking of fewer than ten.
:data:`DRAWN` says of each figure what it draws and which columns count it; a figure that is not
listed there fails. What is committed was made by the reference run: after a change here or in a
table, run it again.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd
from each import each

from trustlab.metrics.estimate import MIN_CASES
from trustlab.paths import FIGURES

MIN_PER_CLASS = 10
"""Right answers, and wrong ones, below which a ranking of right against wrong is withheld (METHODS,
section 5)."""
ENDING = r"(_embedded-(closed|overconfident))?(_starter[a-z-]*|_ddxplus)?"
"""What tells the files of the other models and of other data sets of the reference run."""


def of_ranking_metrics(table: pd.DataFrame) -> pd.Series:
    return table["metric"].isin(["auroc", "auprc"])


def everywhere(table: pd.DataFrame) -> pd.Series:
    return pd.Series(True, index=table.index)


@dataclass(frozen=True)
class Marks:
    """A column of values that a figure draws, and what counts them.

    ``n`` counts the answers (or points) behind a value, ``cases`` the patients ('' where it is of
    no patients); ``ends`` are its interval's; ``ranks``: the rows whose value ranks right above
    wrong, ``rarer`` counting the rarer of these; ``rows``: the rows that hold it; ``missing``:
    columns that say why one is missing ('' where none ever is). ``least`` is 0 where a value may
    hold by rule, without any case.
    """

    value: str = "value"
    n: str = "n"
    cases: str = "n_cases"
    ends: tuple[str, ...] = ("low", "high")
    ranks: Callable[[pd.DataFrame], pd.Series] | None = None
    rarer: str = "n_rarer"
    rows: Callable[[pd.DataFrame], pd.Series] = everywhere
    missing: tuple[str, ...] = ("missing",)
    least: int = 1


PLAIN = [Marks()]
RANKED = [Marks(ranks=of_ranking_metrics)]
ONE_OF_MANY = [Marks("difference", ranks=of_ranking_metrics)]
SINGLE = {"cases": "n", "ends": ()}
"""One answer of one patient a row."""
INDEX = [Marks(least=0)]
POINTS = {"cases": "", "ends": (), "missing": ()}
DRAWN: dict[str, list[Marks]] = {
    "00_moves": [Marks("confidence", missing=("missing",), **SINGLE)],
    "00_consistent": PLAIN,
    "00_beyond": PLAIN,
    "01_auroc": RANKED,
    "01_compared": ONE_OF_MANY,
    "01_confidence_and_accuracy": PLAIN,
    "01_level_correlations": PLAIN,
    "01_turned": ONE_OF_MANY,
    "02_accuracy": PLAIN,
    "02_variation": PLAIN,
    "03_parts": ONE_OF_MANY,
    "03_formulas": ONE_OF_MANY,
    "03_samples": RANKED,
    "04_one_consultation": [],  # one answer a row, a column a method
    "04_frontier": PLAIN,
    "05_indices": INDEX,
    "05_reviewers": PLAIN,
    "05_weights": [Marks(ends=())],
    "06_chance_band": [Marks("r", **POINTS)],
    "06_auroc_differences": [Marks("difference", ranks=everywhere, missing=())],
    "07_reliability": [Marks(), Marks("confidence", ends=())],
    "07_risk_coverage": [Marks(ranks=everywhere)],
    "08_accuracy": PLAIN,
}


def violations(name: str, table: pd.DataFrame) -> list[str]:
    """What is wrong with the table of the figure ``name``, a sentence each; none where it holds."""
    stem = next((s for s in DRAWN if re.fullmatch(re.escape(s) + ENDING, name)), None)
    if stem is None:
        return [f"{name}: DRAWN does not say what this figure draws"]
    return [f"{name}: {wrong}" for marks in DRAWN[stem] for wrong in _wrong(marks, table)]


def _wrong(marks: Marks, whole: pd.DataFrame) -> list[str]:
    needed = [
        marks.value,
        marks.n,
        *filter(None, [marks.cases]),
        *marks.ends,
        *marks.missing,
        *([marks.rarer] if marks.ranks else []),
    ]
    if lacking := [column for column in dict.fromkeys(needed) if column not in whole]:
        return [f"no column {', '.join(lacking)}"]
    table = whole[marks.rows(whole)]
    told = pd.Series(False, index=table.index)
    for column in marks.missing:
        told |= table[column].astype(object).fillna("").astype(str).ne("")
    known = table[marks.value].notna()
    printed = table["source"].eq("printed") if "source" in table else ~everywhere(table)
    excused = (
        printed & table["missing"].astype(object).fillna("").ne("")
        if "source" in table
        else printed
    )
    ours = table[known & ~printed]
    found = {
        f"{marks.value} is missing without a reason": ~known & ~told & bool(marks.missing),
        f"{marks.value} printed by others, without a word on its n": known
        & printed
        & table[marks.n].isna()
        & ~excused,
        f"{marks.value} without its n ({marks.n})": ~(ours[marks.n] >= marks.least),
        "half an interval": ours[list(marks.ends)].isna().any(axis=1)
        & ours[list(marks.ends)].notna().any(axis=1),
    }
    if marks.cases:
        n_cases = ours[marks.cases]
        found["no number of cases"] = n_cases.isna()
        found[f"an interval of {marks.value} below {MIN_CASES} cases"] = ours[
            list(marks.ends)
        ].notna().any(axis=1) & ~(n_cases >= MIN_CASES)
    if marks.ranks:
        ranked = marks.ranks(ours) & ~(ours[marks.rarer] >= MIN_PER_CLASS)
        found[f"{marks.value} ranks fewer than {MIN_PER_CLASS} right or wrong"] = ranked
    return [f"{what} ({int(rows.sum())} rows)" for what, rows in found.items() if rows.any()]


@each("name", sorted(path.stem for path in FIGURES.glob("*.csv")))
def test_the_table_behind_a_committed_figure_holds(name: str) -> None:
    assert violations(name, pd.read_csv(FIGURES / f"{name}.csv")) == []


def test_the_list_of_figures_tells_what_each_is_for():
    told = re.findall(r"^\| `(\w+)` \| \S.{20,}", (FIGURES / "README.md").read_text("utf-8"), re.M)
    assert set(told) == set(DRAWN) and len(told) == len(DRAWN)
