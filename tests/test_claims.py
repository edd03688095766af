"""docs/claims.md and docs/findings.md: each number of ours is that of the cell which a comment
behind it names (tests/findings.py)."""

from __future__ import annotations

import json
import re
from pkgutil import resolve_name

from each import each
from findings import CELL, PAGES, in_cell

from trustlab.paths import ROOT
from trustlab.run_notebooks import notebook_path

CLAIMS, FINDINGS = (page.read_text(encoding="utf-8") for page in PAGES)
ROWS = [line.strip("| ").split(" | ") for line in CLAIMS.splitlines() if line.startswith("| ")][1:]
FOUND = re.findall(r"^\*\*Finding\.\*\* (.+)$", FINDINGS, re.M)


@each("cell", [*CELL.finditer(CLAIMS), *CELL.finditer(FINDINGS)])
def test_a_number_is_that_of_its_cell(cell: re.Match[str]) -> None:
    assert in_cell(cell) == cell[0]


@each("row", ROWS)
def test_no_number_of_ours_stands_without_its_cell(row: list[str]) -> None:
    claim, *_, ours = row
    assert not re.search(r"\d", re.sub(r"`[^`]*`", "", CELL.sub("", ours))), claim
    assert len(row) == 5 and (CELL.search(ours) or "Cannot speak" in ours), claim


def test_a_notebook_s_finding_has_three_sentences_and_six_numbers_at_most() -> None:
    names = sorted(file.stem for file in (ROOT / "notebooks").glob("*.ipynb"))
    assert re.findall(r"section of `(\w+)`", FINDINGS) == names and len(FOUND) == len(names)
    for found in FOUND:
        words = CELL.sub("", found)
        assert 1 <= len(CELL.findall(found)) <= 6 and not re.search(r"\d", words), found
        assert len(re.findall(r"[.!?](?= |$)", words)) <= 3, found


def test_a_section_that_findings_names_is_there() -> None:
    for block in FINDINGS.split("section of `")[1:]:
        cells = json.loads(notebook_path(block.partition("`")[0]).read_text("utf-8"))["cells"]
        heads = {h for c in cells for h in re.findall(r"^#+ (.+)", "".join(c["source"]), re.M)}
        rows = re.findall(r"^\| .+ \| (.+) \|$", block.partition("\n## ")[0], re.M)
        for row in rows:
            assert row.startswith(("the same", "any")) or set(row.split("; ")[:1]) <= heads, row


def test_what_the_page_of_the_indices_sources_names_is_there() -> None:
    page = (ROOT / "docs" / "trust_sources.md").read_text(encoding="utf-8")
    for name in re.findall(r"`(trustlab\.[\w.]+)`", page):
        assert callable(resolve_name(name)), name
    cells = json.loads(notebook_path("05_trust_indices").read_text(encoding="utf-8"))["cells"]
    heads = {h for c in cells for h in re.findall(r"^#+ (.+)", "".join(c["source"]), re.M)}
    assert set(re.findall(r"\*([A-Z][^*]+)\*", page)) <= heads
