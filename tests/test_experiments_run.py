"""The notebooks of the experiments run at their own defaults, ask nothing twice and show every
prompt."""

from __future__ import annotations

import json
import re
from pathlib import Path

import nbformat
import pandas as pd
import pytest
from publish import publish
from smoke import contents

from trustlab.folder.replies_log import NAME as REPLIES
from trustlab.folder.replies_log import json_lines
from trustlab.html.prompts import prompts_of
from trustlab.paths import FIGURES, NOTEBOOKS, NOTICE
from trustlab.run_notebooks import MANIFEST, notebook_names

NAMES = ("02_robustness", "03_ablations", "04_consultation", "05_trust_indices")

pytestmark = [pytest.mark.slow, pytest.mark.notebook]


def manifest(folder: Path) -> dict:
    return json.loads((folder / MANIFEST).read_text(encoding="utf-8"))


@pytest.fixture(scope="module", params=NAMES)
def made(request, smoke_runs) -> tuple[str, Path]:
    """A notebook's name, and the folder of its run."""
    return request.param, smoke_runs.of(request.param)


def test_each_figure_is_three_files_and_holds_something(made):
    name, folder = made
    files = {p.name for p in (folder / "figures").iterdir()}
    figures = {f.rpartition(".")[0] for f in files}
    assert figures and files == {
        f"{f}.{ending}" for f in figures for ending in ("csv", "png", "svg")
    }
    assert all(f.startswith(name[:3]) for f in figures)
    for f in figures:
        assert len(pd.read_csv(folder / "figures" / f"{f}.csv")) > 0, f
        said = (folder / "figures" / f"{f}.svg").read_text(encoding="utf-8")
        assert re.search(r"\d cases?, [\d,]+ answers?", said) and "not for clinical use" in said, f


def test_the_manifest_counts_the_calls_of_every_part(made):
    _, folder = made
    found = manifest(folder)
    assert found["ok"] and len(found["runs"]) >= 1
    assert found["calls_made"] == sum(part["calls_made"] for part in found["runs"].values())
    assert found["calls_made"] + found["calls_from_cache"] > 0
    assert all(part["notice"] == NOTICE for part in found["runs"].values())


@pytest.mark.parametrize(
    "made", ["04_consultation"], indirect=True
)  # the one whose questions depend on the replies
def test_a_second_run_asks_nothing_and_draws_the_same(made, smoke_runs, tmp_path):
    name, folder = made
    again = smoke_runs.again(name, tmp_path)
    assert manifest(again)["calls_made"] == 0 and manifest(again)["calls_from_cache"] > 0
    assert contents(again / "figures") == contents(folder / "figures")


def test_what_is_committed_was_drawn_by_the_notebook_as_it_is(made, tmp_path, monkeypatch):
    """Publishing refuses a run of other code: the committed notebook's code is that of the run."""
    from trustlab import paths

    name, folder = made
    monkeypatch.setattr(paths, "FIGURES", tmp_path / "figures")
    monkeypatch.setattr(paths, "NOTEBOOKS", tmp_path / "notebooks")
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / f"{name}.ipynb").write_bytes(
        (NOTEBOOKS / f"{name}.ipynb").read_bytes()
    )
    publish(folder, name)
    drawn = {p.name for p in (tmp_path / "figures").glob("*.png")}
    assert drawn <= {p.name for p in FIGURES.glob("*.png")}, "a figure that the reference run lacks"


@pytest.mark.parametrize("name", notebook_names())
def test_a_notebook_shows_every_prompt_that_it_asks_and_no_other(name, smoke_runs):
    folder = smoke_runs.of(name)
    rows = [line for file in folder.rglob(REPLIES) for _, line in json_lines(file)]
    cells = nbformat.read(folder / f"{name}.ipynb", as_version=4).cells
    pages = [
        output.data["text/html"]
        for cell in cells
        if cell.cell_type == "code" and "tl.prompts_shown(" in cell.source
        for output in cell.outputs
    ]
    shown = re.findall(r"<details [^>]*><summary [^>]*><b>(\w+)</b>", "".join(pages))
    assert set(shown) == set(prompts_of(json.loads(row)["purpose"] for row in rows))
