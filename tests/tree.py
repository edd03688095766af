"""What ``python -m tests.tree`` writes into docs/, and tests hold the pages against.

The tree of the package and the studies, a line a file, from the first sentence of each docstring;
and the table of all methods.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from trustlab.confidence import METHODS as REGISTERED
from trustlab.confidence.registry import FAMILIES, calls, readers

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "tree.md"
METHODS = ROOT / "docs" / "all_methods.md"
PACKAGE, STUDIES = ROOT / "trustlab", ROOT / "notebooks" / "studies"
FIRST, LAST = "    trustlab/\n", "    data/\n"
"""The lines of the page between which the tree stands."""


def told(file: Path) -> str:
    """What a module is for: its docstring's first sentence, begun in lower case."""
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    line = " ".join(text.split("\n\n")[0].split())
    line = re.split(r"(?<!et al)\. ", line)[0]
    line = line.replace("``", "").removesuffix(".")
    first = line.split(" ")[0]
    return line if first[1:] != first[1:].lower() else line[:1].lower() + line[1:]


def line_of(name: str, words: str, deep: int) -> str:
    """A line of the tree, ``deep`` rooms below the root."""
    indent = " " * (4 + 2 * deep)
    return f"{indent}{name:22} {words}"


def tree() -> str:
    """Rooms and modules in the order of their names, the top's modules first."""
    lines = [line_of(f.name, told(f), 1) for f in sorted(PACKAGE.glob("[a-z]*.py"))]
    for room in sorted(PACKAGE.glob("*/__init__.py")):
        lines.append(line_of(f"{room.parent.name}/", told(room), 1))
        lines += [line_of(f.name, told(f), 2) for f in sorted(room.parent.glob("[a-z]*.py"))]
    lines.append(line_of("notebooks/studies/", told(STUDIES / "__init__.py"), 0))
    lines += [line_of(f.name, told(f), 1) for f in sorted(STUDIES.glob("[a-z]*.py"))]
    return "\n".join(lines) + "\n"


def methods_markdown() -> str:
    """The registry as a Markdown table, family by family."""
    heads = ["method", "family", "access", "scale", "equation", "calls", "other readers"]
    lines = ["| " + " | ".join([*heads, "what it is"]) + " |", "|---" * 8 + "|"]
    for m in sorted(REGISTERED.values(), key=lambda m: FAMILIES.index(m.family)):
        declared = (m.family, m.access, m.scale, m.equation or "–", calls(m), readers(m) or "–")
        cells = (f"`{m.name}`", *declared, m.summary)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Write the tree into docs/tree.md, and the methods into docs/all_methods.md."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(FIRST)
    PAGE.write_text(before + FIRST + tree() + LAST + rest.split(LAST, 1)[1], encoding="utf-8")
    parts = METHODS.read_text(encoding="utf-8").split("\n\n")
    parts = [methods_markdown() if part.startswith("| method |") else part for part in parts]
    METHODS.write_text("\n\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
