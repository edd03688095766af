"""Prepares a table for a figure."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from trustlab.metrics.schema import need


def by_value(
    table: pd.DataFrame, x: str = "value", *, rising: bool = False
) -> list[str]:
    """Methods by their values, the highest first (``rising``: the lowest); missing last."""
    by_name = table.sort_values("method")
    ordered = by_name.sort_values(
        x, ascending=rising, kind="stable", na_position="last"
    )
    return list(dict.fromkeys(ordered["method"]))


def in_percent(
    table: pd.DataFrame, columns: Iterable[str] = ("value", "low", "high")
) -> pd.DataFrame:
    """The table with these shares times 100. ``ValueError`` for a column that it lacks."""
    columns = list(columns)
    need(table, columns)
    percent = table.copy()
    percent[columns] = 100 * table[columns].astype(float)
    return percent
