"""What is committed in every notebook, read without running it: the caveat and escaped tables."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import nbformat
import pandas as pd
import pytest

from trustlab.paths import NOTEBOOKS
from trustlab.run_notebooks import (
    default_parameters,
    notebook_names,
    notebook_path,
    read_sections,
)

NAMES = notebook_names()
HOSTILE = "<img src=x onerror=alert(1)>"


def cells(name: str) -> list[ast.Module]:
    """The code cells of a notebook, parsed."""
    notebook = nbformat.read(notebook_path(name), as_version=4)
    return [ast.parse(cell.source) for cell in notebook.cells if cell.cell_type == "code"]


def calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """Every call in ``tree`` with the last part of the name that is called."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute)):
            yield node.func.id if isinstance(node.func, ast.Name) else node.func.attr, node


def unescaped(tree: ast.AST) -> list[str]:
    """The uses of a table's ``.style`` that no ``.format(escape="html")`` follows: a Styler alone
    escapes nothing."""
    escaped = set()
    for name, call in calls(tree):
        chosen = {k.arg: k.value.value for k in call.keywords if isinstance(k.value, ast.Constant)}
        if name == "format" and chosen.get("escape") == "html":
            escaped |= {id(node) for node in ast.walk(call.func)}
    uses = [
        n
        for n in ast.walk(tree)
        if isinstance(n, ast.Attribute)
        and n.attr == "style"
        and id(n) not in escaped
        and ast.unparse(n) != "plots.style"
    ]
    return [ast.unparse(use) for use in uses]


@pytest.mark.parametrize("name", NAMES)
def test_the_first_cell_says_that_it_is_research_only(name: str) -> None:
    first = nbformat.read(notebook_path(name), as_version=4).cells[0]
    assert first.cell_type == "markdown" and "Research only. Not for clinical use." in first.source


@pytest.mark.parametrize("name", NAMES)
def test_every_styled_table_escapes_what_a_model_wrote(name: str) -> None:
    assert [use for tree in cells(name) for use in unescaped(tree)] == []


def test_a_table_of_reasons_shows_a_models_words_and_runs_none() -> None:
    columns = ["model", "variant", "n_hits", "n", "missing"]
    lost = pd.DataFrame([dict.fromkeys(columns, HOSTILE) | {"n_hits": 3, "n": 4}])
    last = [tree.body[-1] for tree in cells("03_ablations")]
    shown = [one.value for one in last if isinstance(one, ast.Expr)]
    (styled,) = [one for one in shown if ".style" in ast.unparse(one)]
    cell = compile(ast.Expression(styled), "cell", "eval")
    page = eval(cell, {"lost": lost})._repr_html_()
    assert "<img" not in page and page.count("&lt;img src=x onerror=alert(1)&gt;") >= 3


REFERENCE = read_sections(NOTEBOOKS / "parameters" / "published.yml")


@pytest.mark.parametrize("name", REFERENCE)
def test_run_all_is_no_larger_than_the_reference_run(name: str) -> None:
    """The first cell says where "Run All" makes a smaller run."""
    own = default_parameters(notebook_path(name))
    reference = own | REFERENCE[name]
    first = nbformat.read(notebook_path(name), as_version=4).cells[0].source
    smaller = "n" in own and (reference["n"] is None or own["n"] < reference["n"])
    assert ("a smaller run of your own" in first) == smaller
    assert smaller or own.get("n") == reference.get("n")
