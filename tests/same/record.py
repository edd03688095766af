"""Runs one notebook in this process; writes down every table behind a figure and all that is shown.

``python -m same.record NOTEBOOK PARAMETERS FOLDER``: FOLDER receives ``NOTEBOOK.json.xz``, the
run's own files in ``NOTEBOOK/`` and, unless TRUSTLAB_OFFLINE forbids to ask, the replies,
relevances and judgements that were read, in ``used/``.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import patch

import nbformat
import pandas as pd

from same.tables import Table, lines_of, table_of, write_tables
from trustlab.cli.run_notebooks import check_parameters, notebook_path, placed, read_sections
from trustlab.meaning import encoder, entailment
from trustlab.models import cache
from trustlab.models.local.huggingface import HuggingFaceModel
from trustlab.paths import offline
from trustlab.reports import plots


class Recorder:
    """What a notebook showed and drew, by cell and figure, without the ``folder`` of its files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tables: dict[str, Table] = {}
        self.cell = ""

    def keep(self, what: Any, of: str = "") -> None:
        """Write ``what`` down under ``of``, or the running cell and a number."""
        if not of:
            n = sum(name.startswith(f"{self.cell} #") for name in self.tables)
            of = f"{self.cell} #{n + 1}"
        if of in self.tables:
            raise ValueError(f"two tables are called {of!r}")
        self.tables[of] = what if isinstance(what, list) else table_of(what)

    def shown(self, shown: Any, bundle: dict[str, Any]) -> None:
        """Write down what a cell displays: a table as it is, anything else as its words."""
        frame = getattr(shown, "data", None) if type(shown).__name__ == "Styler" else shown
        if isinstance(frame, (pd.DataFrame, pd.Series)):
            self.keep(frame)
        elif not any(kind.startswith("image/") for kind in bundle):
            page = bundle.get("text/html")
            self.said(str(page or bundle.get("text/plain", "")), html=page is not None)

    def said(self, text: str, html: bool = False) -> None:
        """Write down the lines of a text or page."""
        table = lines_of(text.replace(str(self.folder), "RUN"), html)
        if table[0][1]:
            self.keep(table)


def record(name: str, values: dict[str, Any], folder: Path) -> dict[str, Table]:
    """Run notebook ``name`` with ``values`` into ``folder``; its tables, in order.

    ``RuntimeError`` names the cell that fails.
    """
    import matplotlib.pyplot as plt
    from IPython.core.interactiveshell import InteractiveShell

    source = notebook_path(name)
    check_parameters(source, values)
    recorder = Recorder(folder)
    shell = InteractiveShell.instance()
    shell.history_manager.enabled = False
    formatted, saved = shell.display_formatter.format, plots.save_figure

    def show(shown: Any, *args: Any, **words: Any) -> tuple[dict, dict]:
        is_frame = isinstance(shown, (pd.DataFrame, pd.Series))
        recorder.shown(shown, {} if is_frame else formatted(shown, *args, **words)[0])
        return {}, {}

    def save(fig: Any, table: pd.DataFrame, called: str, into: str | Path) -> Any:
        recorder.keep(table, f"figure {called}")
        return saved(fig, table, called, into)

    with (
        patch.object(shell.display_formatter, "format", show),
        patch.object(type(shell.displayhook), "write_output_prompt", lambda _: None),
        saved_by(save),
        # its table is enough
        patch("matplotlib.figure.Figure.savefig", lambda _, path, **__: Path(path).touch()),
        contextlib.chdir(source.parent),
    ):
        for cell in nbformat.read(source, 4).cells:
            if cell.cell_type != "code":
                continue
            recorder.cell = f"cell {cell.id}"
            code = cell.source
            if "parameters" in cell.metadata.get("tags", []):
                choices = {**placed(source, values), "run_dir": str(folder)}
                code += "".join(f"\n{key} = {value!r}" for key, value in choices.items())
            with contextlib.redirect_stdout(io.StringIO()) as out:
                done = shell.run_cell(code)
            if not done.success:
                error = done.error_before_exec or done.error_in_exec
                why = f"{type(error).__name__}: {error}"
                raise RuntimeError(f"{name} stopped in cell {cell.id}: {why}") from error
            recorder.said(out.getvalue())
            plt.close("all")
    return recorder.tables


@contextlib.contextmanager
def saved_by(save: Callable[..., Any]) -> Iterator[None]:
    """``save`` in the place of ``plots.save_figure``, in every module that has it by now."""
    with contextlib.ExitStack() as stack:
        for name, module in list(sys.modules.items()):
            if name.startswith("trustlab") and hasattr(module, "save_figure"):
                stack.enter_context(patch.object(module, "save_figure", save))
        yield


@contextlib.contextmanager
def nothing_asked() -> Iterator[None]:
    """No model may be asked, not even past the cache."""

    def refuse(self: Any, *_: Any, **__: Any) -> None:
        raise LookupError(f"offline, and {self.name} was asked past the cache")

    with patch.object(HuggingFaceModel, "generate", refuse):
        yield


@contextlib.contextmanager
def what_is_read(folder: Path) -> Iterator[None]:
    """Copy what is read meanwhile from the caches into caches of the same names in ``folder``."""
    found: dict[str, dict[str, Any]] = {"replies": {}, "entailment": {}, "relevances": {}}
    selected = cache.select

    def select(connection: Any, table: str, column: str, keys: Any) -> Iterator[tuple[str, Any]]:
        for key, value in selected(connection, table, column, keys):
            if table in found:
                found[table][key] = value
            yield key, value

    with patch.object(cache, "select", select), patch.object(encoder, "select", select):
        yield
    schemas = {
        "replies": cache.SCHEMA,
        "relevances": encoder.READ_OFF_SCHEMA,
        "entailment": entailment.SCHEMA,
    }
    for table, rows in found.items():
        if rows:
            with closing(cache.connect(folder / f"{table}.sqlite", schemas[table])) as store, store:
                store.executemany(f"INSERT OR IGNORE INTO {table} VALUES (?, ?)", rows.items())


def main(name: str, parameters: str, folder: str) -> None:
    """Record notebook ``name`` with its section of the file ``parameters`` into ``folder``."""
    into = Path(folder).resolve()
    values = read_sections(Path(parameters))[0].get(name, {})
    with nothing_asked() if offline(replies=True) else what_is_read(into / "used"):
        tables = record(name, values, into / name)
    write_tables(tables, into / f"{name}.json.xz")


if __name__ == "__main__":
    os.environ.setdefault("MPLBACKEND", "agg")
    main(*sys.argv[1:])
