"""The first cell of each notebook says what the committed tables say."""

from __future__ import annotations

import inspect
import re

import nbformat
import pytest

from tests import findings
from trustlab.paths import NOTICE
from trustlab.run_notebooks import notebook_path

NUMBER = re.compile(r"(?<![\w.{:+#\[])\d+(?:\.\d+)?(?![\w}\]])")
NAMES = (
    "Table 2",
    "Table 3",
    "2026",
    "95 %",
    "0.05",
    "100",
    "CDR of 0",
    "0 by definition",
    "above 0",
)
"""What a finding may say with digits that no table holds: names, levels, ends of a scale."""


@pytest.mark.parametrize("name", findings.BULLETS)
def test_the_first_cell_holds_the_finding_word_for_word(name: str) -> None:
    first = nbformat.read(notebook_path(name), as_version=4).cells[0].source
    title, *finding, caveat = first.split("\n\n")
    assert "\n\n".join(finding) == findings.finding(name), "make same-keep writes it anew"
    assert title.startswith("# ") and NOTICE.removesuffix(".") in caveat


def test_the_readme_has_a_line_for_each_notebook() -> None:
    told = findings.README.read_text(encoding="utf-8").split(findings.FIRST)[1]
    assert told.split(findings.LAST)[0] == findings.readme_lines(), "python -m tests.findings"
    for line in findings.readme_lines().splitlines():
        assert len(line.split()) < 65 and re.search(r"\d", line.rpartition("* ")[2]), line


def test_no_number_of_a_finding_is_written_by_hand() -> None:
    written = {}
    for name, bullets in findings.BULLETS.items():
        source = inspect.getsource(bullets)
        texts = re.findall(r'f?"((?:[^"\\]|\\.)*)"', source[source.index("return [") :])
        words = " ".join(re.sub(r"\{[^{}]*\}", "", text) for text in texts)
        for allowed in NAMES:
            words = words.replace(allowed, "")
        written |= {name: found} if (found := NUMBER.findall(words)) else {}
    assert not written
