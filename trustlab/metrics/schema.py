"""Names the columns of tables: type, unit, meaning. Every table is long, a number a row: what it is
about (:data:`SUBJECT`), the ``metric``, its ``value``, interval and counts; ``missing`` says why
something is not there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

SUBJECT = (
    "model", "dataset", "level", "condition", "configuration", "safety", "formulation",
    "variant", "n_doctors", "w_accuracy", "w_agreement", "w_rdc", "kind", "rule_kind", "set",
    "told", "policy", "threshold_low", "threshold_high", "questions", "ended", "tries",
    "method", "family", "role", "grader", "choice", "option", "how", "quantity", "first",
    "second", "by", "group", "against", "coverage", "threshold", "n_samples", "temperature",
    "n_passages", "bin", "n_tokens", "position", "prior", "correct", "confidence",
)  # fmt: skip
"""What a row is about."""
MEASURED = (
    "metric", "value", "reference", "difference", "low", "high", "p", "p_holm",
    "standard_error", "chance", "chance_low", "chance_high", "n", "n_cases",
    "n_answers", "n_methods", "left_out", "n_shared", "n_rarer", "n_hits", "n_missing",
    "n_zero", "n_same", "cases_needed", "both_right", "only_first", "only_second", "both_wrong",
    "own_rows", "promise", "outside", "least_sure", "winner", "tied", "margin", "proxy", "missing",
)  # fmt: skip
"""What is measured of it."""
COLUMNS = (*SUBJECT, *MEASURED)
LINE = ("metric", "value", "low", "high", "n", "n_cases", "n_missing", "missing")
"""What every table of numbers has."""


def table(
    lines: Iterable[Mapping[str, Any]], keys: Sequence[str], more: Sequence[str] = ()
) -> pd.DataFrame:
    """Lines as a table: ``keys``, then :data:`LINE` and ``more`` in this module's order.
    ``ValueError`` for a column that is not written down here; what a line lacks is missing."""
    named = [*keys, *more]
    unknown = [name for name in named if name not in COLUMNS]
    if unknown:
        raise ValueError(f"columns {unknown} are not in trustlab.metrics.schema")
    measured = {*LINE, *more}.difference(keys)
    ordered = [name for name in COLUMNS if name in measured]
    return pd.DataFrame(list(lines), columns=[*keys, *ordered])


def need(table: pd.DataFrame, names: Iterable[str], what: str = "the table") -> None:
    """``ValueError`` where a table, called ``what``, lacks any of the columns ``names``."""
    lacking = [name for name in names if name not in table.columns]
    if lacking:
        raise ValueError(
            f"{what} lacks the columns {lacking}; it has {list(table.columns)}"
        )


def pick(table: pd.DataFrame, **values: Any) -> pd.DataFrame:
    """The rows of a table where each named column has that value, or one of a list of values.

    ``tl.pick(metrics, metric="auroc", level=["pooled", "within"])``. Columns narrow the table in
    this order, so that some row always comes back. ``ValueError`` for a column that the table
    lacks, and for a value that the column does not have in what is left; both say what there is.
    """
    need(table, values)
    for name, value in values.items():
        wanted = list(value) if isinstance(value, list | tuple | set) else [value]
        column = column_of(table, name)
        present = list(column.dropna().unique())
        absent = [entry for entry in wanted if entry not in present]
        if absent:
            raise ValueError(f"column {name!r} has no {absent}; it has {present}")
        table = rows_where(table, column.isin(wanted))
    return table


def rows_where(table: pd.DataFrame, true: ArrayLike) -> pd.DataFrame:
    """The rows of a table where ``true``, a column of the same index or (n,), is true."""
    rows = table.loc[true]
    assert isinstance(rows, pd.DataFrame)
    return rows


def column_of(table: pd.DataFrame, name: str) -> pd.Series:
    """A column of a table that has it once."""
    values = table[name]
    assert isinstance(values, pd.Series)
    return values


def refuse(table: pd.DataFrame, bad: ArrayLike, message: str) -> None:
    """``ValueError`` with ``message`` and the first row where ``bad`` (n,) is true, if any is."""
    rows = np.flatnonzero(np.asarray(bad, dtype=bool))
    if len(rows):
        first = table.iloc[rows[0]].to_dict()
        n_more = len(rows) - 1
        raise ValueError(f"{message}; received {first} and {n_more} more")
