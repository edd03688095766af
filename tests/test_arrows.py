"""No circle of modules: imports inside functions and by name count, those for types alone do not.

The nevers themselves are contracts in ``pyproject.toml``, which ``make check`` keeps.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from trustlab.paths import ROOT

DYNAMIC = ("import_module", "__import__", "find_spec")


def modules() -> dict[str, Path]:
    found = {}
    for name, parent in {"trustlab": ROOT, "studies": ROOT / "notebooks"}.items():
        for file in sorted((parent / name).rglob("*.py")):
            parts = file.relative_to(parent).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def imported(code: str, known: dict[str, Path] | set[str]) -> Iterator[str]:
    tree = ast.parse(code)
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert not node.level, f"a relative import in line {node.lineno}"
            for name in node.names:
                full = f"{node.module}.{name.name}"
                yield full if full in known else str(node.module)
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(DYNAMIC):
            yield from (v for a in node.args if isinstance(v := getattr(a, "value", 0), str))


def arrows() -> dict[str, set[str]]:
    known = modules()
    code = {name: file.read_text(encoding="utf-8") for name, file in known.items()}
    return {name: set(imported(text, known)) & set(known) - {name} for name, text in code.items()}


def test_no_circle_of_modules() -> None:
    try:
        TopologicalSorter(arrows()).prepare()
    except CycleError as error:
        pytest.fail(" <- ".join(error.args[1]))


def test_imports_in_functions_and_by_name_count_and_those_for_types_do_not() -> None:
    code = """
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    import trustlab.a
def f():
    from trustlab import b
    importlib.import_module("trustlab.c")
"""
    assert {*imported(code, {"trustlab.b"})} == {"typing", "trustlab.b", "trustlab.c"}
