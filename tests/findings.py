"""``python -m tests.findings``: fills the numbers of the pages that say what came out.

Each is that of the cell that a comment behind it names: ``<!-- TABLE; QUERY; COLUMN -->``, or
``AGGREGATE COLUMN`` of several rows. It keeps its number of decimals, and its percent sign. TABLE
is a CSV; ``kept:NOTEBOOK/CELL``, the first table that a notebook's cell shows (``CELL#2``: the
second), where a cell such as "0.4 [0.1, 0.7]" has ``_low`` and ``_high`` columns for its ends; or
``paired:MODEL/DATASET/METHOD/REFERENCE``, two methods compared on the answers of the reference run.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pandas as pd

from tests.same.tables import read_tables
from trustlab import paths
from trustlab.confidence import PAPER
from trustlab.confidence.registry import METHODS
from trustlab.runs.measures import compare_methods

PAGES = [paths.ROOT / "docs" / name for name in ("claims.md", "findings.md", "trust_sources.md")]
CELL = re.compile(r"(−?\d+(?:\.\d+)?)( %)?(<!-- (\S+); (.+?); (?:(\w+) )?(\w+) -->)")
THOSE = [m for m in PAPER if METHODS[m].family not in ("medconf", "baseline")]
KEPT = paths.ROOT / "data" / "replies" / "tables"
REFERENCE = paths.FIGURES / "reference" / "01_benchmark"
WITH_ENDS = r"^(-?[\d.]+)(?: \[(-?[\d.]+), (-?[\d.]+)\])?(?:, n [\d,]+)?$"


def kept_cell(notebook: str, cell: str) -> pd.DataFrame:
    """A table that a notebook's cell shows, with its texts as numbers where they are."""
    cell, _, number = cell.partition("#")
    columns = read_tables(KEPT / f"{notebook}.json.xz")[f"cell {cell} #{number or 1}"]
    table = pd.DataFrame(dict(columns))
    table.columns = [re.sub(r"\W+", "_", name).strip("_") for name in table]
    for name in list(table):
        ends = table[name].astype(str).str.extract(WITH_ENDS).astype(float)
        if ends[1].notna().any():
            table[[name, f"{name}_low", f"{name}_high"]] = ends
        elif ends[0].notna().any():
            table[name] = ends[0]
    return table


def paired(model: str, dataset: str, method: str, reference: str) -> pd.DataFrame:
    """A method's AUROC less that of ``reference``, by level, on the reference run's answers."""
    run = [pd.read_parquet(REFERENCE / f"{name}.parquet") for name in ("answers", "confidence")]
    answers, confidence = (t[t["model"].eq(model) & t["dataset"].eq(dataset)] for t in run)
    confidence = confidence[confidence["method"].isin([method, reference])]
    return compare_methods(answers, confidence, reference=reference)


@cache
def table_of(name: str) -> pd.DataFrame:
    """The table that a comment names."""
    kind, _, place = name.partition(":")
    if kind == "kept":
        return kept_cell(*place.split("/"))
    if kind == "paired":
        return paired(*place.split("/"))
    file = paths.ROOT / name
    return pd.read_csv(file, dtype={"level": str}, keep_default_na=False, na_values=[""])


def saved(values: pd.Series) -> float:
    """How much less the first of two values is, as a share of the second."""
    first, second = values
    return 1 - first / second


def same(values: pd.Series) -> float:
    """The value that all of them are; ``ValueError`` where they differ."""
    (value,) = set(values)
    return value


def most_lost(values: pd.Series) -> float:
    """How far the lowest of them lies below 0."""
    return -values.min()


OWN = {"saved": saved, "same": same, "most_lost": most_lost}


def value_of(name: str, query: str, column: str, aggregate: str | None = None) -> Any:
    """What the cell of a table holds, or several of its cells together."""
    table = table_of(name)
    table = table.assign(**{c: table[c].fillna("") for c in ("method",) if c in table})
    values: Any = table.query(query, local_dict={"those": THOSE})[column]
    if aggregate in OWN:
        return OWN[aggregate](values)
    return getattr(values, aggregate)() if aggregate else values.item()


def in_cell(found: re.Match[str]) -> str:
    """The number of a match of :data:`CELL`, as its table has it now."""
    shown, percent, comment, name, query, aggregate, column = found.groups()
    value = value_of(name, query, column, aggregate) * (100 if percent else 1)
    number = f"{value:.{len(shown.partition('.')[2])}f}".replace("-", "−")
    return f"{number}{percent or ''}{comment}"


if __name__ == "__main__":
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        page.write_text(CELL.sub(in_cell, text), encoding="utf-8")
