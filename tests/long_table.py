"""Whether a table of numbers has the columns of every table, and whole counts."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from trustlab.metrics.schema import LINE, need


def check(found: pd.DataFrame, keys: Sequence[str] = ()) -> None:
    """``ValueError`` unless a table has ``LINE`` and ``keys``, and its counts are whole."""
    need(found, [*keys, *LINE])
    for name in (name for name in found if str(name) == "n" or str(name).startswith("n_")):
        counts = found[name].dropna().astype(float)
        if not ((counts % 1 == 0) & (counts >= 0)).all():
            raise ValueError(f"column {name!r} holds no counts: received {counts.tolist()}")
