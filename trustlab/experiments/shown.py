"""Tables to read: a value with its interval as text in each cell, "–" where it is missing."""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportCallIssue=false, reportReturnType=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

BRIEF = {
    "brier": "Brier",
    "ece": "ECE",
    "miscalibration": "miscalibration",
    "discrimination": "discrimination",
}


def pivoted(
    table: pd.DataFrame,
    index: Sequence[str],
    columns: str = "metric",
    digits: int = 2,
    counted: bool = False,
) -> pd.DataFrame:
    """``value [low, high]`` as text.

    A row for each of ``index``, a column for each of ``columns``, in the table's order. ``counted``
    adds each value's own ``n``.
    """
    if table.empty:
        return table[list(index)]
    ends = zip(table["value"], table["low"], table["high"], strict=True)
    cells = [with_interval(*each, digits) for each in ends]
    if counted:
        cells = [f"{cell}, n {n:,}" for cell, n in zip(cells, table["n"], strict=True)]
    wide = table.assign(shown=cells).pivot(index=list(index), columns=columns, values="shown")
    rows = table[list(index)].drop_duplicates()
    wide = wide[list(dict.fromkeys(table[columns]))].reset_index().rename_axis(columns=None)
    return rows.merge(wide, on=list(index), validate="one_to_one")


def with_interval(value: float, low: float, high: float, digits: int = 2) -> str:
    """A value with its interval in brackets, where it has one; "–" where it is missing."""
    if pd.isna(value):
        return "–"
    told = _plain(value, digits)
    return told if pd.isna(low) else f"{told} [{_plain(low, digits)}, {_plain(high, digits)}]"


def _plain(value: float, digits: int) -> str:
    return f"{round(value, digits) + 0.0:.{digits}f}"  # + 0.0 turns -0.0 into 0.0


def calibration_shown(
    table: pd.DataFrame, hows: Sequence[str] = ("as given", "isotonic", "platt")
) -> pd.DataFrame:
    """The table of ``calibration_table`` to read.

    A row a method, a column for each measure and each of ``hows``.
    """
    kept: Any = table[table["metric"].isin(list(BRIEF)) & table["how"].isin(list(hows))]
    kept = kept.assign(column=kept["metric"].map(BRIEF) + ", " + kept["how"])
    order = [f"{name}, {how}" for name in BRIEF.values() for how in hows]
    wide = pivoted(kept, ["model", "method"], "column")
    return wide[["model", "method", *[name for name in order if name in wide]]].fillna("–")


def missingness_shown(table: pd.DataFrame) -> pd.DataFrame:
    """The table of ``missingness_table`` to read.

    ``value [worst, best]`` and coverage, a row a method that misses anything.
    """
    lacking = table[table["n_missing"].gt(0) & table["worst"].notna() & table["n"].gt(0)]
    lacking = lacking.rename(columns={"worst": "low", "best": "high"})
    lacking = lacking.assign(
        coverage=[f"{row.n} of {row.n + row.n_missing}" for row in lacking.itertuples()]
    )
    lacking = lacking.assign(method=lacking["method"].replace("", "(the answers)"))
    return pivoted(lacking, ["model", "dataset", "method", "coverage"], "metric").fillna("–")
