"""What a reader has to take in does not grow unseen: ``tests/counts.yml`` bounds it."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
import yaml

from tests.counts import ROOT, counts_by_room, counts_of

MOST = yaml.safe_load((Path(__file__).parent / "counts.yml").read_text(encoding="utf-8"))["most"]
MANY_PARAMETERS = {
    "trustlab/agents/consultation.py": ["consult"],
    "trustlab/agents/medconf.py": ["assess"],
    "trustlab/cli/commands.py": ["score"],
    "trustlab/confidence/registry.py": ["method"],
    "trustlab/models/local/huggingface.py": ["__init__"],
    "trustlab/models/server/batch.py": ["__init__"],
    "trustlab/models/server/openai.py": ["__init__"],
    "trustlab/reports/plots/curves.py": ["curves"],
    "trustlab/reports/plots/figures.py": ["__init__", "__call__"],
    "trustlab/reports/plots/intervals.py": ["intervals"],
    "trustlab/reports/plots/style.py": ["caption"],
    "trustlab/runs/collect.py": ["collect"],
}
"""Public functions that may have more than seven parameters, by file."""


@pytest.fixture(scope="module")
def everything() -> Counter[str]:
    return sum(counts_by_room().values(), Counter())


@pytest.mark.parametrize("kind", ["nodes", "dense functions", "puzzle names", "walruses"])
def test_nothing_grows_unseen(kind: str, everything: Counter[str]) -> None:
    most = MOST[kind]
    assert everything[kind] <= most, f"{everything[kind]:,} {kind}, at most {most:,}: what leaves?"


@pytest.mark.parametrize(("kind", "per"), [("line", "lines"), ("statement", "statements")])
def test_code_is_not_packed(kind: str, per: str, everything: Counter[str]) -> None:
    density = everything["nodes"] / everything[per]
    assert density <= MOST[f"nodes a {kind}"], f"{density:.2f} nodes a {kind}: one thing a line"


def test_counts_by_hand() -> None:
    """Module, Assign, Name, Store, Constant; then FunctionDef, arguments, arg, Return, Name, Load;
    the docstring is no node and no line."""
    assert counts_of("asked = 1\n")["nodes"] == 5
    code = '# why\ndef told(x):\n    """What."""\n\n    return x\n'
    counts = counts_of(code)
    assert (counts["nodes"], counts["lines"], counts["statements"]) == (7, 2, 2)
    assert counts["puzzle names"] == 1 and counts["dense functions"] == 0


def test_patterns_and_walruses_count() -> None:
    plain, longer = "re.sub('', '', x)", "re.sub('12345678', '', x)"
    assert counts_of(longer)["nodes"] - counts_of(plain)["nodes"] == 2
    assert counts_of("if (n := f()):\n    g(n)\n")["walruses"] == 1


def test_a_function_above_14_nodes_a_line_is_dense() -> None:
    line = "    x = [a + b * c - d / e for a, b, c, d, e in zip(p, q, r, s, t)]\n"
    assert counts_of("def f():\n" + 4 * line)["dense functions"] == 1
    assert counts_of("def f():\n" + 3 * line)["dense functions"] == 0  # too short to be called so


def test_shape_is_excepted_as_listed_alone() -> None:
    """Ruff bounds branches, statements and parameters; the package excepts parameters alone."""
    excepted: dict[str, list[str]] = {}
    for file in sorted((ROOT / "trustlab").rglob("*.py")):
        for line in file.read_text(encoding="utf-8").splitlines():
            if re.search("noqa: (C901|PLR)", line):
                function = re.search(r"def (\w+)\(  # noqa: PLR0913$", line)
                assert function, f"{file}: {line.strip()}"
                excepted.setdefault(file.relative_to(ROOT).as_posix(), []).append(function[1])
    assert excepted == MANY_PARAMETERS
