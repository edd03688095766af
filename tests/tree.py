"""What ``python -m tests.tree`` writes into docs/, and tests hold the pages against.

The tree of the package and the studies, a line a file, from the first sentence of each docstring;
and the table of all methods.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

from trustlab.confidence import METHODS as REGISTERED
from trustlab.confidence.registry import FAMILIES
from trustlab.costs import calls, readers

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "tree.md"
METHODS = ROOT / "docs" / "all_methods.md"
PACKAGE, STUDIES = ROOT / "trustlab", ROOT / "notebooks" / "studies"
MARK = "<!-- from here on `python -m tests.tree` writes this page -->\n"


def core() -> list[str]:
    """The modules and folders of the core, as ``pyproject.toml`` names them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    named = next(c for c in contracts if c["name"].startswith("8"))["source_modules"]
    return [name.removeprefix("trustlab.") for name in named]


def sentence(file: Path) -> str:
    """What a module does: the first sentence of its docstring."""
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return re.split(r"(?<=[.?!]) (?=[A-Z`])", " ".join(text.split("\n\n")[0].split()))[0]


def screen(head: str, files: Iterable[Path]) -> str:
    """A heading, and a line a file; a folder stands for its ``__init__``, and says which of its
    files are the core's where not all are."""
    lines = []
    for file in files:
        folder, words = file.parent.name, sentence(file).replace("``", "")
        name = f"{folder}/" if file.name == "__init__.py" else file.name
        own = [f"{n.partition('.')[2]}.py" for n in core() if n.startswith(f"{folder}.")]
        if name.endswith("/") and own:
            words += f" The core: {', '.join(own)}."
        lines.append(f"    {name:22} {words}")
    return "\n".join([f"## {head}", "", *lines]) + "\n"


def tree() -> str:
    """The core, what stands beside it, then each folder; every level fits on a screen."""
    first = {name.partition(".")[0] for name in core()}
    folders = sorted(PACKAGE.glob("*/__init__.py"))
    named = {f.stem: f for f in sorted(PACKAGE.glob("[a-z]*.py"))}
    named |= {f.parent.name: f for f in folders}
    of_core = [file for name, file in named.items() if name in first]
    beside = [file for name, file in named.items() if name not in first]
    parts = [screen("trustlab/: the core", of_core), screen("trustlab/: beside the core", beside)]
    for folder in (*(f.parent for f in folders), STUDIES):
        if files := sorted(folder.glob("[a-z]*.py")):
            parts.append(screen(f"{folder.relative_to(ROOT).as_posix()}/", files))
    return "\n".join(parts)


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
    head = PAGE.read_text(encoding="utf-8").split(MARK)[0]
    PAGE.write_text(f"{head}{MARK}\n{tree()}", encoding="utf-8")
    parts = METHODS.read_text(encoding="utf-8").split("\n\n")
    parts = [methods_markdown() if part.startswith("| method |") else part for part in parts]
    METHODS.write_text("\n\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
