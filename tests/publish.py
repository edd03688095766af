"""``python -m tests.publish NAME [FOLDER]``: makes a run the reference run of the repository."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import nbformat

from tests import paper_page
from trustlab import paths
from trustlab.cli import run_notebooks
from trustlab.reports.html.notebook import without_progress
from trustlab.reports.html.opening import filled, opening
from trustlab.runs.folder.saved import find_table

REFERENCE = ("answers", "confidence", "metrics")
"""Tables of the reference run that the repository keeps, and that a test makes again in part."""
LONG = 25
"""Rows of a table from which on JupyterLab gives it a pane that scrolls."""
OF_PAPER = ("variation.csv", "variants.csv", "chosen.csv")
"""Tables that stand beside the paper's in docs/paper.md."""


def reference_tables(run_dir: Path) -> list[Path]:
    """The files of :data:`REFERENCE` in a run's folder, where they are all there, and those of
    :data:`OF_PAPER` that are."""
    found = [find_table(run_dir, name) for name in REFERENCE]
    kept = [table for table in found if table] if all(found) else []
    return [*kept, *(run_dir / name for name in OF_PAPER if (run_dir / name).is_file())]


def publish(run_dir: Path, name: str) -> None:
    """Figures to ``figures/``, tables to ``figures/reference/NAME/``, outputs into the notebook.

    What this run no longer makes is deleted there. The notebook keeps its own cells and default
    parameters; only outputs are copied, and no path of this machine. The tables in
    :data:`REFERENCE` are kept where the run left them all, in full precision: rounded ones hold
    ties that the run did not have, which moves AUROC.
    """
    source = run_notebooks.notebook_path(name)
    ours, made = nbformat.read(source, 4), nbformat.read(run_dir / source.name, 4)
    code = [c for c in made.cells if c.cell_type == "code"]
    executed = [c for c in code if "injected-parameters" not in c.metadata.get("tags", [])]
    mine = [c for c in ours.cells if c.cell_type == "code"]
    if [c.source for c in executed] != [c.source for c in mine]:
        raise ValueError(f"{run_dir} was made by another version of {source.name}; run it again")
    for cell, done in zip(mine, executed, strict=True):
        shown = without_progress(done.outputs)
        cell.outputs = [o for o in shown if o.get("name") != "stderr"]
        html = "".join(o.get("data", {}).get("text/html", "") for o in cell.outputs)
        if html.count("<tr") > LONG:
            cell.metadata["scrolled"] = True
        cell.execution_count = None
        for output in cell.outputs:
            if "execution_count" in output:
                output["execution_count"] = None
    if block := opening(run_dir):
        ours.cells[0].source = filled(ours.cells[0].source, block)
    with paths.whole(source) as beside:
        nbformat.write(ours, beside)
    figures = paths.FIGURES
    files = {file: figures / file.name for file in sorted((run_dir / "figures").glob("*"))}
    reference = figures / "reference" / source.stem
    files |= {table: reference / table.name for table in reference_tables(run_dir)}
    old = {*figures.glob(f"{source.stem[:2]}_*.*"), *reference.glob("*")}
    for file in old - set(files.values()):
        file.unlink()
    for file, target in files.items():
        with paths.whole(target) as beside:
            shutil.copyfile(file, beside)


if __name__ == "__main__":
    notebook, *folder = sys.argv[1:]
    publish(Path(folder[0]) if folder else paths.RUNS / notebook, notebook)
    paper_page.main()
