"""What ``python -m tests.tree`` writes into docs/, and tests hold the pages against.

The tree of the package and the studies, a line a file, from the first sentence of each docstring;
and the table of all methods.
"""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

from trustlab.confidence import METHODS as REGISTERED
from trustlab.confidence.registry import FAMILIES
from trustlab.runs.costs import calls, readers

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "tree.md"
METHODS = ROOT / "docs" / "all_methods.md"
PACKAGE, STUDIES = ROOT / "trustlab", ROOT / "notebooks" / "studies"
LAYERS = """## trustlab/: its rooms

A room may import every room in a paragraph further down, and none in its own; the last paragraph's
modules may import each other. `make check` holds this. A room without a section of
its own further down has one module, `__init__.py`."""
CORE = """## The core

The ten stops of [Reading the core](reading.md) lead through it. It imports nothing else of ours."""
MARK = "<!-- from here on `python -m tests.tree` writes this page -->\n"


def contract(beginning: str) -> dict:
    """The contract of imports in ``pyproject.toml`` whose name begins so."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    return next(c for c in contracts if c["name"].startswith(beginning))


def sentence(file: Path) -> str:
    """What a module does: the first sentence of its docstring."""
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return re.split(r"(?<=[.?!]) (?=[A-Z`])", " ".join(text.split("\n\n")[0].split()))[0]


def line(file: Path) -> str:
    """A line for a file; ``__init__`` stands for its folder."""
    name = f"{file.parent.name}/" if file.name == "__init__.py" else file.name
    return f"    {name:22} {sentence(file).replace('``', '')}"


def rooms() -> list[str]:
    """A paragraph a layer, the highest first, with a line for each of its rooms and modules."""
    paragraphs = []
    for layer in contract("Layers")["layers"]:
        names = sorted(re.split(r" [|:] ", layer))
        files = [PACKAGE / name / "__init__.py" for name in names]
        lines = [line(f if f.exists() else f.parent.with_suffix(".py")) for f in files]
        paragraphs.append("\n".join(lines))
    return paragraphs


def room(folder: Path) -> str:
    """A heading, and a line for each file and folder in it."""
    files = [*folder.glob("[a-z]*.py"), *folder.glob("[a-z]*/__init__.py")]
    name = folder.relative_to(ROOT).as_posix()
    return "\n".join([f"## {name}/", "", *map(line, sorted(files))]) + "\n"


def core() -> str:
    """The modules of the core, room by room."""
    parts: dict[str, list[str]] = {}
    for module in contract("The core")["source_modules"]:
        name, _, file = module.removeprefix("trustlab.").partition(".")
        parts.setdefault(name, []).extend([f"{file}.py"] if file else [])
    lines = []
    for name, files in sorted(parts.items()):
        whole = f"{name}/" if (PACKAGE / name).is_dir() else f"{name}.py"
        lines.append(f"    {f'{name}/' if files else whole:22} {', '.join(files) or 'all of it'}")
    return "\n".join(lines) + "\n"


def tree() -> str:
    """The layers, the core, then each room and the studies; every level fits on a screen."""
    folders = sorted(f.parent for f in PACKAGE.rglob("[a-z]*/__init__.py"))
    shown = [f for f in (*folders, STUDIES) if any(f.glob("[a-z]*.py"))]
    return (
        "\n\n".join([LAYERS, *rooms(), f"{CORE}\n\n{core()}"]) + "\n" + "\n".join(map(room, shown))
    )


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
