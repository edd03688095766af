"""docs/claims.md: each number of ours is that of the cell which a comment behind it names,
``<!-- FILE; QUERY; COLUMN -->`` or ``AGGREGATE COLUMN`` of several rows."""

from __future__ import annotations

import json
import re
from pkgutil import resolve_name
from typing import Any

import pandas as pd
from each import each

from trustlab.confidence import PAPER
from trustlab.confidence.registry import METHODS
from trustlab.paths import ROOT
from trustlab.run_notebooks import notebook_path

TEXT = (ROOT / "docs" / "claims.md").read_text(encoding="utf-8")
CELL = re.compile(r"(−?\d+(?:\.\d+)?)( %)?<!-- (\S+); (.+?); (?:(\w+) )?(\w+) -->")
THOSE = [m for m in PAPER if METHODS[m].family not in ("medconf", "baseline")]
ROWS = [line.strip("| ").split(" | ") for line in TEXT.splitlines() if line.startswith("| ")][1:]


@each(("shown", "percent", "file", "query", "aggregate", "column"), CELL.findall(TEXT))
def test_a_number_is_that_of_its_cell(
    shown: str, percent: str, file: str, query: str, aggregate: str, column: str
) -> None:
    table = pd.read_csv(ROOT / file, dtype={"level": str}, keep_default_na=False, na_values=[""])
    table = table.assign(**{c: table[c].fillna("") for c in ("method",) if c in table})
    values: Any = table.query(query, local_dict={"those": THOSE})[column]
    value = getattr(values, aggregate)() if aggregate else values.item()
    digits = len(shown.partition(".")[2])
    assert f"{100 * value if percent else value:.{digits}f}" == shown.replace("−", "-"), query


@each("row", ROWS)
def test_no_number_of_ours_stands_without_its_cell(row: list[str]) -> None:
    claim, *_, ours = row
    assert not re.search(r"\d", re.sub(r"`[^`]*`", "", CELL.sub("", ours))), claim
    assert len(row) == 5 and (CELL.search(ours) or "Cannot speak" in ours), claim


def test_what_the_page_of_the_indices_sources_names_is_there() -> None:
    page = (ROOT / "docs" / "trust_sources.md").read_text(encoding="utf-8")
    for name in re.findall(r"`(trustlab\.[\w.]+)`", page):
        assert callable(resolve_name(name)), name
    cells = json.loads(notebook_path("05_trust_indices").read_text(encoding="utf-8"))["cells"]
    heads = {h for c in cells for h in re.findall(r"^#+ (.+)", "".join(c["source"]), re.M)}
    assert set(re.findall(r"\*([A-Z][^*]+)\*", page)) <= heads
