"""Writes index.html: all runs of a folder, each with its first figure; and paper.html."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
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
    found = []
    for manifest in sorted(runs.glob("*/manifest.json")):
        with suppress(OSError, ValueError, LookupError, TypeError):
            facts = json.loads(manifest.read_text(encoding="utf-8"))
            found.append(_entry(manifest.parent, facts))
    paper = lacks = ""
    if any((runs / p.notebook / "manifest.json").is_file() for p in PARTS.values() if p.files):
        try:
            paper = write_paper(runs).name
        except (OSError, ValueError, LookupError, TypeError) as error:  # a table of another hand
            (runs / PAPER).unlink(missing_ok=True)
            lacks = f"{PAPER} is not made: {type(error).__name__}: {error}"
    lessons = sorted((NOTEBOOKS / "lessons").glob("*.ipynb"))
    links = [Path(os.path.relpath(lesson, runs.resolve())).as_posix() for lesson in lessons]
    page = render("runs", runs=found, lessons=links, paper=paper, lacks=lacks)
    save_text(page, runs / INDEX)
    return runs / INDEX


def write_paper(runs: Path) -> Path:
    """Write ``paper.html``, the paper's tables and figures beside a folder of runs, and into
    ``paper/`` each table as CSV, Markdown and LaTeX."""
    made = tables(runs)
    for name, table in made.items():
        file = runs / "paper" / f"{name.replace(' ', '_').lower()}.csv"
        save_table(table.flat(), file)
        save_text(table.markdown() + "\n", file.with_suffix(".md"))
        save_text(table.latex(), file.with_suffix(".tex"))
    shown = {name: Html(table.styled().to_html()) for name, table in made.items()}
    save_text(render("paper", parts=PARTS, tables=shown, runs=runs), runs / PAPER)
    return runs / PAPER


def _entry(folder: Path, facts: Mapping[str, Any]) -> dict[str, Any]:
    """What the index says of a run; ``OSError`` without its notebook."""
    notebook = folder / f"{facts['notebook']}.ipynb"
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    lines = "".join(cells[0]["source"]).splitlines() if cells else []
    shown = [output.get("metadata", {}) for cell in cells for output in cell.get("outputs", ())]
    page = notebook.with_suffix(".html").name
    kinds = ("*.csv", "*.parquet", "figures/*.csv")
    return {
        "name": folder.name,
        "title": next((line[2:] for line in lines if line.startswith("# ")), folder.name),
        "page": page,
        "figure": next((of for of in shown if (folder / of.get("file", "/")).is_file()), None),
        "read": read_line(facts.get("replies_read", {})),
        "unread": [*facts.get("nothing_claimed", []), *facts.get("warnings", [])],
        "accuracies": (accuracies := accuracies_of(folder)),
        "heads": heads_of(accuracies),
        "ended": "" if facts.get("ok") else "stopped: the notebook as far as it came",
        "date": str(facts.get("started", ""))[:10],
        "pages": {
            file: words
            for file, words in ((page, "the notebook"), (PAGE, "answers by case"))
            if (folder / file).is_file()
        },
        "tables": [
            table.relative_to(folder).as_posix()
            for kind in kinds
            for table in sorted(folder.glob(kind))
        ],
    }
