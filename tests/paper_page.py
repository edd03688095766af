"""What ``python -m tests.paper_page`` writes into docs/paper.md: each table and figure of the paper
beside the reference run's, with its command, its notebook and its files."""

from __future__ import annotations

import pandas as pd

from trustlab.confidence import PAPER
from trustlab.confidence.registry import label
from trustlab.paths import FIGURES, ROOT
from trustlab.reports.paper import PARTS, tables
from trustlab.reports.published import TABLES
from trustlab.runs import formatted
from trustlab.runs.folder.saved import table_in

PAGE = ROOT / "docs" / "paper.md"
MARK = "<!-- from here on `python -m tests.paper_page` writes this page -->\n"
RUNS = FIGURES / "reference"
PRINTED = {f"Table {number}": [f"{kind}.csv"] for kind, number in TABLES.items()}
BENCHMARK = RUNS / "01_benchmark"
LACKING = (
    "Answers of the benchmark without a value, for the paper's methods, and how many of the answers"
    " are right where there is a value and where there is none: what is missing is rarely missing"
    " at random. A method that is not listed has a value for every answer of the model and data"
    " set, or for none."
)
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


def lacking(answers: pd.DataFrame, confidence: pd.DataFrame) -> list[str]:
    """Lines of a table: a row a model, data set and method that has a value for some answers."""
    counted = "with a value | right of these | without a value | right of these"
    lines = [f"| model | data set | method | {counted} |", "|---|---|---|--:|--:|--:|--:|"]
    mine = confidence[confidence["method"].isin(PAPER)]
    for dataset, part in mine.groupby("dataset", sort=False):
        for row in formatted.coverage_table(part, answers=answers).itertuples():
            if row.status == "partly":
                with_value = f"{row.n:,} | {100 * row.accuracy_with:.0f} %"
                without = f"{row.n_missing:,} | {100 * row.accuracy_without:.0f} %"
                about = f"{row.model} | {dataset} | {label(row.method)}"
                lines.append(f"| {about} | {with_value} | {without} |")
    return lines


def missing_values() -> str:
    """The section on answers without a value, from the tables of the reference run."""
    read = {name: table_in(BENCHMARK, name) for name in ("answers", "confidence")}
    lines = lacking(*(pd.read_parquet(file) for file in read.values()))
    return "\n".join(["\n## What is missing\n", LACKING, "", *lines])


def page() -> str:
    """The head as it is, and the rest made anew."""
    head = PAGE.read_text(encoding="utf-8").split(MARK)[0]
    shown = {name: table.markdown() for name, table in tables(RUNS).items()}
    rows = [*HEADS, *map(row, PARTS)]
    sections = [f"\n## {name}\n\n{shown.get(name) or figure(name)}" for name in PARTS]
    return "\n".join([head + MARK, *rows, *sections, missing_values(), ""])


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
