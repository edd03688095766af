"""What a reader of the code has to take in: ``python -m tests.counts`` prints it.

Counted are the package, the studies, the lessons' module and the notebooks' code cells. A node is a
node of Python's syntax tree; docstrings and comments are none. A pattern is code too: four of its
characters count as a node, wherever it stands. Lines are those of a copy that ruff has laid out,
so that layout does not count.
"""

from __future__ import annotations

import ast
import io
import json
import shutil
import subprocess
import sys
import tempfile
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WIDTH = 88
DENSE = 14
"""Nodes a line above which a function is dense."""
LEAST_LINES = 5
"""Shorter functions are not called dense."""
PATTERN_CHARACTERS = 4
"""Characters of a pattern that count as a node."""
PUZZLES = {"told", "found", "said", "made", "held", "known", "asked", "given", "one", "kept"}
"""Words that do not say what a name holds, whole or between underscores."""
NO_CODE = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENDMARKER,
}  # fmt: skip
KINDS = ("nodes", "lines", "statements", "dense functions", "puzzle names", "walruses")


def is_docstring(node: ast.AST) -> bool:
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
        return False
    return isinstance(node.value.value, str)


def n_nodes(tree: ast.AST) -> int:
    """Nodes of a tree, patterns that are given to ``re`` among them."""
    nodes = 0
    for node in ast.walk(tree):
        nodes += 1
        if is_docstring(node):
            nodes -= 2  # the expression and its constant
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("re."):
            first = node.args[0] if node.args else None
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                nodes += len(first.value) // PATTERN_CHARACTERS
    return nodes


def code_lines(source: str, tree: ast.AST) -> set[int]:
    """Numbers of the lines that hold code: no comment, no docstring, no blank."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and is_docstring(node):
            lines.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return lines


def bound_names(tree: ast.AST) -> Iterator[str]:
    """Names of variables, attributes, parameters and functions, where they are bound."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name


def is_dense(function: ast.FunctionDef | ast.AsyncFunctionDef, lines: set[int]) -> bool:
    last = function.end_lineno or function.lineno
    n_lines = len(lines.intersection(range(function.lineno, last + 1)))
    return n_lines >= LEAST_LINES and n_nodes(function) / n_lines > DENSE


def counts_of(source: str) -> Counter[str]:
    """The :data:`KINDS` in one source."""
    tree = ast.parse(source)
    lines = code_lines(source, tree)
    counts = Counter(nodes=n_nodes(tree), lines=len(lines))
    for node in ast.walk(tree):
        counts["statements"] += isinstance(node, ast.stmt) and not is_docstring(node)
        counts["walruses"] += isinstance(node, ast.NamedExpr)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            counts["dense functions"] += is_dense(node, lines)
    for name in bound_names(tree):
        counts["puzzle names"] += not PUZZLES.isdisjoint(name.strip("_").split("_"))
    return counts


def cells_of(notebook: Path) -> Iterator[str]:
    """The source of each code cell, without lines for IPython."""
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            yield "".join(line for line in cell["source"] if line.lstrip()[:1] not in ("%", "!"))


def laid_out(sources: list[str]) -> list[str]:
    """The sources as ruff writes them at :data:`WIDTH` columns; commas keep nothing apart."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"source_{i}.py" for i in range(len(sources))]
        for file, source in zip(files, sources, strict=True):
            file.write_text(source, encoding="utf-8")
        ruff = shutil.which("ruff", path=str(Path(sys.executable).parent)) or "ruff"
        layout = ["--line-length", str(WIDTH), "--config", "format.skip-magic-trailing-comma=true"]
        subprocess.run([ruff, "format", "--isolated", "-q", *layout, folder], check=True)
        return [file.read_text(encoding="utf-8") for file in files]


def sources_by_room() -> dict[str, list[str]]:
    """Room -> sources: a folder of the package, its modules beside the folders, the notebooks'
    modules, the cells."""
    package, notebooks = ROOT / "trustlab", ROOT / "notebooks"
    rooms: dict[str, list[str]] = {}
    for file in sorted(package.rglob("*.py")):
        folder = file.relative_to(package).parts[0]
        room = "trustlab" if folder == file.name else f"trustlab/{folder}"
        rooms.setdefault(room, []).append(file.read_text(encoding="utf-8"))
    modules = sorted(notebooks.rglob("*.py"))
    rooms["notebooks' modules"] = [file.read_text(encoding="utf-8") for file in modules]
    books = [n for n in sorted(notebooks.rglob("*.ipynb")) if ".ipynb_checkpoints" not in n.parts]
    rooms["notebooks' cells"] = [cell for notebook in books for cell in cells_of(notebook)]
    return rooms


def counts_by_room() -> dict[str, Counter[str]]:
    """Room -> :data:`KINDS`, with patterns that stand in YAML as a room of their own."""
    by_room = {}
    for room, sources in sources_by_room().items():
        by_room[room] = sum(map(counts_of, laid_out(sources)), Counter())
    characters = 0
    for folder in ("parsing", "models"):
        for file in (ROOT / "trustlab" / folder).rglob("*.yml"):
            characters += len(file.read_text(encoding="utf-8"))
    by_room["patterns in YAML"] = Counter(nodes=characters // PATTERN_CHARACTERS)
    return by_room


def main() -> None:
    by_room = counts_by_room()
    by_room["everything"] = sum(by_room.values(), Counter())
    print(f"{'room':22}", *(f"{kind:>16}" for kind in KINDS), f"{'nodes a line':>16}")
    for room, counts in by_room.items():
        a_line = counts["nodes"] / max(1, counts["lines"])
        print(f"{room:22}", *(f"{counts[kind]:16,}" for kind in KINDS), f"{a_line:16.1f}")


if __name__ == "__main__":
    main()
