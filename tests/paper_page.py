"""What ``python -m tests.paper_page`` writes into docs/paper.md: each table and figure of the paper
beside the reference run's, with its command, its notebook and its files."""

from __future__ import annotations

from trustlab.paper import PARTS, tables
from trustlab.paths import FIGURES, ROOT
from trustlab.published import TABLES

PAGE = ROOT / "docs" / "paper.md"
MARK = "<!-- from here on `python -m tests.paper_page` writes this page -->\n"
RUNS = FIGURES / "reference"
PRINTED = {f"Table {number}": [f"{kind}.csv"] for kind, number in TABLES.items()}
HEADS = ("| of the paper | command | notebook and heading | files |", "|---|---|---|---|")


def links(name: str) -> str:
    """The files behind a table or figure: ours, where the reference run has them, and theirs."""
    part, found = PARTS[name], {}
    for file in part.files:
        if file.endswith(".csv"):
            found[RUNS / part.notebook / file] = "ours"
        found |= dict.fromkeys(((ROOT / file).with_suffix(end) for end in (".png", ".csv")), "ours")
    found |= {ROOT / "data" / "published" / file: "printed" for file in PRINTED.get(name, ())}
    there = [(file, whose) for file, whose in found.items() if file.is_file()]
    shown = [f"{w} [{f.name}](../{f.relative_to(ROOT).as_posix()})" for f, w in there]
    return ", ".join(shown) or "–"


def row(name: str) -> str:
    """Where the values of a table or figure come from."""
    at, (_, notebook, heading, _) = name.lower().replace(" ", "-"), PARTS[name]
    command = f"`trustlab run {notebook}` | [{notebook}](../notebooks/{notebook}.ipynb): {heading}"
    return f"| [{name}](#{at}) | {command if notebook else '– | –'} | {links(name)} |"


def figure(name: str) -> str:
    """What a figure shows, and its images, where the reference run has them."""
    about, *_, files = PARTS[name]
    there = {file: (ROOT / file).is_file() for file in files}
    images = [f"![{about}](../{f})" if has else f"`{f}`: not run" for f, has in there.items()]
    return "\n\n".join([f"{about}.", *images])


def page() -> str:
    """The head as it is, and the rest made anew."""
    head = PAGE.read_text(encoding="utf-8").split(MARK)[0]
    shown = {name: table.markdown() for name, table in tables(RUNS).items()}
    rows = [*HEADS, *map(row, PARTS)]
    sections = [f"\n## {name}\n\n{shown.get(name) or figure(name)}" for name in PARTS]
    return "\n".join([head + MARK, *rows, *sections, ""])


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
