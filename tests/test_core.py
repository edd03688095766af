"""The core: small, read in ten stops, and alone. Which modules it is stands in ``pyproject.toml``,
in a contract of its own; ``make check`` holds its imports."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib

import pytest
import yaml

from tests.counts import n_nodes
from trustlab.files import ROOT

TOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
CORE = next(c for c in TOOLS["importlinter"]["contracts"] if c["name"].startswith("The core"))[
    "source_modules"
]
MOST = yaml.safe_load((ROOT / "tests/counts.yml").read_text(encoding="utf-8"))["most"]
STOPS = re.split(r"^## ", (ROOT / "docs/reading.md").read_text(encoding="utf-8"), flags=re.M)[1:]


def blocks(text: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)


def nodes_of(module: str) -> int:
    """Syntax nodes of a module, or of all modules of a folder."""
    folder = ROOT / module.replace(".", "/")
    files = sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]
    return sum(n_nodes(ast.parse(file.read_text(encoding="utf-8"))) for file in files)


def test_the_core_keeps_its_size() -> None:
    nodes = {module: nodes_of(module) for module in CORE}
    assert sum(nodes.values()) <= MOST["nodes of the core"], nodes


@pytest.mark.parametrize("stop", STOPS[:-1], ids=lambda stop: stop.partition("\n")[0])
def test_a_stop_shows_lines_of_its_file(stop: str) -> None:
    files = re.findall(r"\]\(\.\./(trustlab/[\w/]+\.py)\)", stop)
    code = [(ROOT / name).read_text(encoding="utf-8") for name in files]
    (shown,) = blocks(stop)
    assert any(shown in text for text in code) and len(shown.splitlines()) <= 10


def test_the_whole_way_loads_the_core_alone() -> None:
    (code,) = blocks(STOPS[-1])
    code += "import sys\nprint(*(m for m in sys.modules if m.startswith('trustlab.')))\n"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True
    )
    *_, auroc, loaded = done.stdout.splitlines()
    parents, own = {name.rpartition(".")[0] for name in CORE}, tuple(f"{name}." for name in CORE)
    strays = [m for m in loaded.split() if m not in parents and not f"{m}.".startswith(own)]
    assert (auroc, strays) == ("AUROC 0.75", [])
