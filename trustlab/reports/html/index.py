"""Writes index.html: all runs of a folder, each with its first figure; and paper.html."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from trustlab.paths import NOTEBOOKS, save_table, save_text
from trustlab.reports.html.opening import accuracies_of, heads_of
from trustlab.reports.html.pages import PAGE
from trustlab.reports.html.show import Html, render
from trustlab.reports.paper import PARTS, tables
from trustlab.runs.formatted import read_line

INDEX, PAPER = "index.html", "paper.html"


def write_index(runs: Path) -> Path:
    """Write ``index.html`` into a folder of runs: folders in it with an executed notebook beside a
    manifest. One that cannot be read, as a run's that goes on, is left out."""
    entries = []
    for manifest in sorted(runs.glob("*/manifest.json")):
        with suppress(OSError, ValueError, LookupError, TypeError):
            facts = json.loads(manifest.read_text(encoding="utf-8"))
            entries.append(_entry(manifest.parent, facts))
    paper = lacks = ""
    notebooks = {part.notebook for part in PARTS.values() if part.files}
    if any((runs / notebook / "manifest.json").is_file() for notebook in notebooks):
        try:
            paper = write_paper(runs).name
        # a table of another hand
        except (OSError, ValueError, LookupError, TypeError) as error:
            (runs / PAPER).unlink(missing_ok=True)
            lacks = f"{PAPER} is not made: {type(error).__name__}: {error}"
    lessons = sorted((NOTEBOOKS / "lessons").glob("*.ipynb"))
    links = [
        Path(os.path.relpath(lesson, runs.resolve())).as_posix() for lesson in lessons
    ]
    page = render("runs", runs=entries, lessons=links, paper=paper, lacks=lacks)
    save_text(page, runs / INDEX)
    return runs / INDEX


def write_paper(runs: Path) -> Path:
    """Write ``paper.html``, the paper's tables and figures beside a folder of runs, and into
    ``paper/`` each table as CSV, Markdown and LaTeX."""
    shown = {}
    for name, table in tables(runs).items():
        file = runs / "paper" / f"{name.replace(' ', '_').lower()}.csv"
        save_table(table.flat(), file)
        save_text(table.markdown() + "\n", file.with_suffix(".md"))
        save_text(table.latex(), file.with_suffix(".tex"))
        shown[name] = Html(table.styled().to_html())
    page = render("paper", parts=PARTS, tables=shown, runs=runs)
    save_text(page, runs / PAPER)
    return runs / PAPER


def _entry(folder: Path, facts: Mapping[str, Any]) -> dict[str, Any]:
    """What the index says of a run; ``OSError`` without its notebook."""
    notebook = folder / f"{facts['notebook']}.ipynb"
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    page = notebook.with_suffix(".html").name
    pages = {page: "the notebook", PAGE: "answers by case"}
    accuracies = accuracies_of(folder)
    return {
        "name": folder.name,
        "title": _title(cells) or folder.name,
        "page": page,
        "figure": _first_figure(folder, cells),
        "read": read_line(facts.get("replies_read", {})),
        "unread": [*facts.get("nothing_claimed", []), *facts.get("warnings", [])],
        "accuracies": accuracies,
        "heads": heads_of(accuracies),
        "ended": "" if facts.get("ok") else "stopped: the notebook as far as it came",
        "date": str(facts.get("started", ""))[:10],
        "pages": {
            file: words for file, words in pages.items() if (folder / file).is_file()
        },
        "tables": _tables(folder),
    }


def _title(cells: Sequence[Mapping[str, Any]]) -> str:
    """The first heading of a notebook's first cell; '' where there is none."""
    lines = "".join(cells[0]["source"]).splitlines() if cells else []
    for line in lines:
        if line.startswith("# "):
            return line[2:]
    return ""


def _first_figure(
    folder: Path, cells: Iterable[Mapping[str, Any]]
) -> Mapping[str, Any] | None:
    """What the first output with a file in the folder says of itself."""
    for cell in cells:
        for output in cell.get("outputs", ()):
            about = output.get("metadata", {})
            if (folder / about.get("file", "/")).is_file():
                return about
    return None


def _tables(folder: Path) -> list[str]:
    """The tables that a run has, kind by kind."""
    kinds = ("*.csv", "*.parquet", "figures/*.csv")
    files = [file for kind in kinds for file in sorted(folder.glob(kind))]
    return [file.relative_to(folder).as_posix() for file in files]
