"""The notebooks of the experiments run with their smoke parameters, ask nothing twice, and run on a server unchanged."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd
import pytest
from served_model import ServedModel

from trustlab.experiments.notebooks import MANIFEST, publish, read_parameters, run_notebook
from trustlab.models import open_model
from trustlab.paths import FIGURES, NOTEBOOKS, NOTICE

NAMES = ("02_robustness", "03_ablations", "04_consultation", "05_trust_indices")
SMOKE = NOTEBOOKS / "parameters" / "smoke.yml"

pytestmark = pytest.mark.notebook


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def manifest(folder: Path) -> dict:
    return json.loads((folder / MANIFEST).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def runs_folder(tmp_path_factory):
    """The reply cache of the kernels started here: empty at first, then shared by all of these notebooks."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("runs")
        patch.setenv("TRUSTLAB_RUNS", str(folder))
        yield folder


@pytest.fixture(scope="module", params=NAMES)
def made(request, runs_folder, tmp_path_factory) -> tuple[str, Path]:
    """A notebook's name, and the folder of its smoke run; nothing of ours may change meanwhile."""
    before = contents(FIGURES), contents(NOTEBOOKS)
    name = request.param
    folder = run_notebook(name, read_parameters(SMOKE, notebook=name), tmp_path_factory.mktemp(name))
    assert (contents(FIGURES), contents(NOTEBOOKS)) == before, "a run changed figures/ or notebooks/"
    return name, folder


def test_each_figure_is_three_files_and_holds_something(made):
    name, folder = made
    files = {p.name for p in (folder / "figures").iterdir()}
    figures = {f.rpartition(".")[0] for f in files}
    assert figures and files == {f"{f}.{ending}" for f in figures for ending in ("csv", "png", "svg")}
    assert all(f.startswith(name[:3]) for f in figures)
    for f in figures:
        assert len(pd.read_csv(folder / "figures" / f"{f}.csv")) > 0, f
        said = (folder / "figures" / f"{f}.svg").read_text(encoding="utf-8")
        assert re.search(r"\d cases?, [\d,]+ answers?", said) and "not for clinical use" in said, f


def test_the_manifest_counts_the_calls_of_every_part(made):
    _, folder = made
    found = manifest(folder)
    assert found["ok"] and len(found["runs"]) >= 1
    assert found["calls_made"] == sum(part["calls_made"] for part in found["runs"].values()) > 0
    assert all(part["notice"] == NOTICE for part in found["runs"].values())


@pytest.mark.parametrize("made", ["04_consultation"], indirect=True)  # the one whose questions depend on the replies
def test_a_second_run_asks_nothing_and_draws_the_same(made, tmp_path):
    name, folder = made
    again = run_notebook(name, read_parameters(SMOKE, notebook=name), tmp_path)
    assert manifest(again)["calls_made"] == 0 and manifest(again)["calls_from_cache"] > 0
    assert contents(again / "figures") == contents(folder / "figures")


def test_what_is_committed_was_drawn_by_the_notebook_as_it_is(made, tmp_path, monkeypatch):
    """Publishing refuses a run of other code: the committed notebook's code is that of the run."""
    from trustlab.experiments import notebooks

    name, folder = made
    monkeypatch.setattr(notebooks, "FIGURES", tmp_path / "figures")
    monkeypatch.setattr(notebooks, "NOTEBOOKS", tmp_path / "notebooks")
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / f"{name}.ipynb").write_bytes((NOTEBOOKS / f"{name}.ipynb").read_bytes())
    publish(folder, name)
    drawn = {p.name for p in (tmp_path / "figures").glob("*.png")}
    assert drawn <= {p.name for p in FIGURES.glob("*.png")}, "a figure that the reference run lacks"


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_same_notebook_runs_on_an_openai_compatible_server(name, tmp_path, monkeypatch):
    """The embedded model behind a loopback server: what the notebook then shows, it learned through that protocol."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("TRUSTLAB_RUNS", str(tmp_path / "cache"))
    values = read_parameters(SMOKE, notebook=name) | SERVED[name]
    with ServedModel(model=open_model("embedded", device="cpu")) as server:
        options = {"base_url": server.url, "concurrency": 2}
        folder = run_notebook(name, values | {"model": "openai:embedded", "model_options": options}, tmp_path / "run")
    found = manifest(folder)
    assert found["ok"] and found["calls_made"] > 0 and len(server.chats()) > 0
    answers = pd.concat(pd.read_csv(f) for f in folder.rglob("answers.csv"))
    assert set(answers["model"]) == {"embedded"} and answers["answer"].notna().mean() > 0.9


SERVED: dict[str, dict] = {
    "02_robustness": {"n": 2, "levels": [100], "samples": 2},
    "03_ablations": {"n": 2, "levels": [100], "samples": 2},
    "04_consultation": {"n": 2, "max_turns": 2, "samples": 2},
    "05_trust_indices": {"n": 2, "samples": 2},
}
