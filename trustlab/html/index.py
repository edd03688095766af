"""``index.html``: all runs of a folder, each with its question, its first figure and its facts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from trustlab.html.opening import parameters_of, right_of
from trustlab.html.pages import PAGE
from trustlab.html.show import render
from trustlab.parsing.counts import read_line
from trustlab.paths import save_text

INDEX = "index.html"


def write_index(runs: Path) -> Path:
    """Write ``index.html`` into a folder of runs; a folder in it is one where it has an executed
    notebook beside its manifest. One that cannot be read, as a run's that goes on, is left out."""
    found = []
    for manifest in sorted(runs.glob("*/manifest.json")):
        with suppress(OSError, ValueError, LookupError, TypeError):
            facts = json.loads(manifest.read_text(encoding="utf-8"))
            found.append(_entry(manifest.parent, facts))
    save_text(render("runs", runs=found), runs / INDEX)
    return runs / INDEX


def _entry(folder: Path, facts: Mapping[str, Any]) -> dict[str, Any]:
    """What the index says of a run; ``OSError`` without its notebook."""
    notebook = folder / f"{facts['notebook']}.ipynb"
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    lines = "".join(cells[0]["source"]).splitlines() if cells else []
    title = next((line[2:] for line in lines if line.startswith("# ")), folder.name)
    shown = [output.get("metadata", {}) for cell in cells for output in cell.get("outputs", ())]
    figures = [
        (_href(folder, of["file"]), str(of.get("image/png", {}).get("alt") or of["file"]))
        for of in shown
        if (folder / of.get("file", "/")).is_file()
    ]
    made = [parameters_of(run) for run in (facts, *facts.get("runs", {}).values())]
    asked = facts.get("parameters", {})
    pages = {notebook.with_suffix(".html").name: "the notebook", PAGE: "answers by case"}
    kinds = ("*.csv", "*.parquet", "figures/*.csv")
    tables = [table for kind in kinds for table in sorted(folder.glob(kind))]
    return {
        "name": folder.name,
        "title": title,
        "href": _href(folder, notebook.with_suffix(".html").name),
        "figure": figures[0] if figures else None,
        "read": read_line(facts.get("replies_read", {})),
        "unread": [*facts.get("nothing_claimed", []), *facts.get("warnings", [])],
        "right": [unescape(line) for line in right_of(folder)],
        "ended": "" if facts.get("ok") else "stopped: the notebook as far as it came",
        "facts": {
            "date": str(facts.get("started", ""))[:10],
            "models": _names([m.get("models") for m in made]) or _names([asked.get("model")]),
            "data": _names([m.get("dataset") for m in made]) or _names([asked.get("dataset")]),
            "cases": max((m.get("cases", 0) for m in made), default=0) or "",
        },
        "pages": [(_href(folder, f), w) for f, w in pages.items() if (folder / f).is_file()],
        "tables": [(_href(folder, str(t.relative_to(folder))), t.name) for t in tables],
    }


def _names(several: list[Any]) -> str:
    """The names in several lists, mappings or single names, each once."""
    found = [name for one in several for name in ([one] if isinstance(one, str) else one or ())]
    return ", ".join(dict.fromkeys(map(str, found)))


def _href(folder: Path, name: str) -> str:
    return f"{quote(folder.name)}/{quote(name)}"
