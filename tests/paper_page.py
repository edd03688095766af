"""What ``python -m tests.paper_page`` writes into docs/paper.md: each table and figure of the paper
beside the reference run's, with its command, its notebook and its files."""

from __future__ import annotations

from trustlab.paper import PARTS, tables
from trustlab.paths import FIGURES, ROOT
from trustlab.published import TABLES

PAGE = ROOT / "docs" / "paper.md"
MARK = "<!-- from here on `python -m tests.paper_page` writes this page -->\n"
RUNS = FIGURES / "reference"
PRINTED = {f"Table {number}": f"{kind}.csv" for kind, number in TABLES.items()}


def links(name: str) -> str:
    """The files behind a table or figure: ours, where the reference run has them, and theirs."""
    part = PARTS[name]
    ours = [RUNS / part.notebook / f if f.endswith(".csv") else ROOT / f for f in part.files]
    ours += [file.with_suffix(".csv") for file in ours if file.suffix == ".png"]
    theirs = [ROOT / "data" / "published" / file for file in (PRINTED.get(name),) if file]
    found = [
        f"{whose} [{file.name}](../{file.relative_to(ROOT).as_posix()})"
        for whose, files in (("ours", ours), ("printed", theirs))
        for file in files
        if file.is_file()
    ]
    return ", ".join(found) or "–"


def overview() -> str:
    """A line a table or figure: where its values come from."""
    lines = ["| of the paper | command | notebook and heading | files |", "|---|---|---|---|"]
    for name, part in PARTS.items():
        command = f"`trustlab run {part.notebook}`" if part.notebook else "–"
        notebook = f"[{part.notebook}](../notebooks/{part.notebook}.ipynb): {part.heading}"
        of = [f"[{name}](#{name.lower().replace(' ', '-')})", command]
        lines.append(f"| {' | '.join([*of, notebook if part.notebook else '–', links(name)])} |")
    return "\n".join(lines)


def section(name: str, shown: dict[str, str]) -> str:
    """A table beside the printed one, or the figure, under its name."""
    part = PARTS[name]
    if name in shown:
        return f"## {name}\n\n{shown[name]}\n"
    parts = [f"## {name}", f"{part.about}."]
    for file in part.files:
        there = (ROOT / file).is_file()
        parts.append(f"![{part.about}](../{file})" if there else f"`{file}`: not run")
    return "\n\n".join(parts) + "\n"


def page() -> str:
    """The head as it is, and the rest made anew."""
    head = PAGE.read_text(encoding="utf-8").split(MARK)[0]
    shown = {name: table.markdown() for name, table in tables(RUNS).items()}
    sections = [section(name, shown) for name in PARTS]
    return "\n".join([head + MARK, overview() + "\n", *sections])


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
