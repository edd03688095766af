"""Whether a table of numbers has the columns that the schema writes down, each of its type."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from trustlab.metrics.schema import COLUMNS, LINE, need


def check(found: pd.DataFrame, keys: Sequence[str] = ()) -> None:
    """``ValueError`` unless a table has ``LINE`` and every column that it has is of its type.

    ``keys``: further columns that it must have. Columns that are not written down here may be
    anything.
    """
    need(found, [*keys, *LINE])
    for name in (n for n in found.columns if n in COLUMNS):
        kind, values = COLUMNS[name].type, pd.Series(found[name]).dropna()
        if kind == "text":
            right = values.map(lambda v: isinstance(v, str)).all() or name == "level"
        elif kind == "names":
            right = values.map(lambda v: isinstance(v, tuple)).all()
        elif kind == "count":
            right = (values.astype(float) % 1 == 0).all() and (values.astype(float) >= 0).all()
        else:
            right = not len(values) or pd.api.types.is_numeric_dtype(values.infer_objects())
        if not right:
            raise ValueError(f"column {name!r} holds no {kind}s: received {values.iloc[0]!r}")
