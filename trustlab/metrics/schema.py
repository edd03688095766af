"""Names the columns of tables: type, unit, meaning. Every table is long, a number a row: what it is
about (:data:`KEYS`), the ``metric``, its ``value``, interval and counts; ``missing`` says why
something is not there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

KEYS = (
    "model", "dataset", "level", "condition", "configuration", "safety", "formulation",
    "variant", "n_doctors", "w_accuracy", "w_agreement", "w_rdc", "kind", "rule_kind", "set",
    "told", "policy", "threshold_low", "threshold_high", "questions", "ended", "tries",
    "method", "family", "role", "grader", "choice", "option", "how", "quantity", "first",
    "second", "against", "coverage", "threshold", "n_samples", "temperature", "n_passages",
    "bin", "n_tokens", "position", "prior", "correct", "confidence",
)  # fmt: skip
"""What a row is about."""
MEASURED = (
    "metric", "value", "reference", "difference", "low", "high", "p", "p_holm",
    "standard_error", "chance", "chance_low", "chance_high", "n", "n_cases",
    "n_answers", "n_methods", "left_out", "n_shared", "n_rarer", "n_hits", "n_missing",
    "n_zero", "n_same", "cases_needed", "both_right", "only_first", "only_second", "both_wrong",
    "own_rows", "least_sure", "winner", "tied", "margin", "proxy", "missing",
)  # fmt: skip
"""What is said of it."""
COLUMNS = (*KEYS, *MEASURED)
LINE = ("metric", "value", "low", "high", "n", "n_cases", "n_missing", "missing")
"""What every table of numbers has."""


def table(
    lines: Iterable[Mapping[str, Any]], keys: Sequence[str], more: Sequence[str] = ()
) -> pd.DataFrame:
    """Lines as a table: ``keys``, then :data:`LINE` and ``more`` in this module's order.
    ``ValueError`` for a column that is not written down here; what a line lacks is missing."""
    if unknown := [name for name in (*keys, *more) if name not in COLUMNS]:
        raise ValueError(f"columns {unknown} are not in trustlab.metrics.schema")
    named = [name for name in COLUMNS if name in {*LINE, *more} - {*keys}]
    return pd.DataFrame(list(lines), columns=[*keys, *named])


def need(found: pd.DataFrame, names: Iterable[str], what: str = "the table") -> None:
    """``ValueError`` where a table, called ``what``, lacks any of the columns ``names``."""
    if lacking := [name for name in names if name not in found.columns]:
        raise ValueError(f"{what} lacks the columns {lacking}; it has {list(found.columns)}")


def rows_where(found: pd.DataFrame, true: ArrayLike) -> pd.DataFrame:
    """The rows of a table where ``true``, a column of the same index or (n,), is true."""
    rows = found.loc[true]
    assert isinstance(rows, pd.DataFrame)
    return rows


def column_of(found: pd.DataFrame, name: str) -> pd.Series:
    """A column of a table that has it once."""
    values = found[name]
    assert isinstance(values, pd.Series)
    return values


def refuse(found: pd.DataFrame, bad: ArrayLike, message: str) -> None:
    """``ValueError`` with ``message`` and the first row where ``bad`` (n,) is true, if any is."""
    rows = np.flatnonzero(np.asarray(bad, dtype=bool))
    if len(rows):
        received = f"received {found.iloc[rows[0]].to_dict()} and {len(rows) - 1} more"
        raise ValueError(f"{message}; {received}")
