"""``python -m tests.findings``: fills the numbers of docs/claims.md and docs/findings.md.

Each is that of the cell that a comment behind it names: ``<!-- FILE; QUERY; COLUMN -->``, or
``AGGREGATE COLUMN`` of several rows. It keeps its number of decimals, and its percent sign.
"""

from __future__ import annotations

import re
from typing import Any

import pandas as pd

from trustlab import paths
from trustlab.confidence import PAPER
from trustlab.confidence.registry import METHODS

PAGES = [paths.ROOT / "docs" / name for name in ("claims.md", "findings.md")]
CELL = re.compile(r"(−?\d+(?:\.\d+)?)( %)?(<!-- (\S+); (.+?); (?:(\w+) )?(\w+) -->)")
THOSE = [m for m in PAPER if METHODS[m].family not in ("medconf", "baseline")]


def in_cell(found: re.Match[str]) -> str:
    """The number of a match of :data:`CELL`, as its table has it now."""
    shown, percent, comment, file, query, aggregate, column = found.groups()
    table = pd.read_csv(
        paths.ROOT / file, dtype={"level": str}, keep_default_na=False, na_values=[""]
    )
    table = table.assign(**{c: table[c].fillna("") for c in ("method",) if c in table})
    values: Any = table.query(query, local_dict={"those": THOSE})[column]
    value = (getattr(values, aggregate)() if aggregate else values.item()) * (100 if percent else 1)
    number = f"{value:.{len(shown.partition('.')[2])}f}".replace("-", "−")
    return f"{number}{percent or ''}{comment}"


if __name__ == "__main__":
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        page.write_text(CELL.sub(in_cell, text), encoding="utf-8")
