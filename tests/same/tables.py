"""A table as plain data: what a cell showed or a figure was drawn from, in full precision."""

from __future__ import annotations

import json
import lzma
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

Column = tuple[str, list[Any]]
Table = list[Column]
"""Columns in order, the index first, each with a value for every row: None, bool, number or str."""

_TAG = re.compile(r"<(style|script)\b.*?</\1>|<[^>]+>", re.DOTALL)
_ADDRESS = re.compile(r"\bat 0x[0-9a-f]+")


def read_file(file: Path) -> pd.DataFrame:
    """The table of a figure, or of a run, as pandas reads it."""
    return (
        pd.read_parquet(file) if file.suffix == ".parquet" else pd.read_csv(file, low_memory=False)
    )


def table_of(frame: pd.DataFrame | pd.Series) -> Table:
    """The columns of ``frame``; an index is left out where it only counts the rows from 0."""
    frame = frame.to_frame() if isinstance(frame, pd.Series) else frame
    levels: list[Column] = []
    if not frame.index.equals(pd.RangeIndex(len(frame))):
        for i in range(frame.index.nlevels):
            name = frame.index.names[i]
            values = frame.index.get_level_values(i)
            levels.append((f"index {i if name is None else name}", [plain(v) for v in values]))
    found = [[plain(v) for v in frame.iloc[:, i]] for i in range(frame.shape[1])]
    named = [*levels, *zip(map(_heading, frame.columns), found, strict=True)]
    seen = Counter()
    for i, (heading, values) in enumerate(named):
        seen[heading] += 1
        if seen[heading] > 1:
            named[i] = f"{heading} #{seen[heading]}", values
    return named


def _heading(name: Any) -> str:
    return " / ".join(map(str, name)) if isinstance(name, tuple) else str(name)


def plain(value: Any) -> Any:
    """``value`` as JSON has it: null for any missing value, text for what is no number."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return None if math.isnan(value) else value
    if isinstance(value, (set, frozenset)):
        value = sorted(value, key=str)
    if isinstance(value, (list, tuple, np.ndarray)):
        return json.dumps([plain(v) for v in value], ensure_ascii=False)
    if isinstance(value, Mapping):
        pairs = {str(k): plain(v) for k, v in value.items()}
        return json.dumps(pairs, ensure_ascii=False, sort_keys=True)
    return None if pd.isna(value) else str(value)


def lines_of(text: str, html: bool = False) -> Table:
    """The lines of a text, or of what a page shows, as a table of one column."""
    if html:
        text = unescape(_TAG.sub("\n", text))
    lines = (" ".join(line.split()) for line in _ADDRESS.sub("", text).splitlines())
    return [("text", [line for line in lines if line])]


def write_tables(tables: Mapping[str, Table], file: Path) -> None:
    """Keep ``tables`` in one xz'd JSON file; the same tables give the same bytes."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with lzma.open(file, "wt", encoding="utf-8", preset=9) as out:
        for name, table in tables.items():
            out.write(json.dumps([name, table], ensure_ascii=False, separators=(",", ":")) + "\n")


def read_tables(file: Path) -> dict[str, Table]:
    """What :func:`write_tables` kept."""
    with lzma.open(file, "rt", encoding="utf-8") as lines:
        found: Sequence[Any] = [json.loads(line) for line in lines]
    return {name: [(heading, values) for heading, values in table] for name, table in found}
