"""The package away from its checkout: what importing loads, where runs go, wheel and workbench."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import nbformat
import pytest
from typer.testing import CliRunner

import trustlab as tl
from trustlab.cli import app
from trustlab.paths import ROOT
from trustlab.run_notebooks import default_parameters, notebook_names

HEAVY = ("pandas", "torch", "scipy", "sklearn", "matplotlib")


def python(code: str, folder: Path, **variables: str) -> str:
    """What code prints, in a process of its own that is in ``folder``."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("TRUSTLAB_")}
    env |= {"PYTHONPATH": str(ROOT), **variables}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=folder, env=env, check=True, capture_output=True,
                          text=True).stdout.strip()  # fmt: skip


def test_importing_loads_nothing_large_and_every_public_name_is_there(tmp_path):
    code = f"""
import sys, types, trustlab as tl
print([m for m in {HEAVY} if m in sys.modules])
own = [n for n in tl.__all__ if isinstance(getattr(tl, n), types.ModuleType)]
print(own, set(tl.__all__) <= set(dir(tl)))"""
    assert python(code, tmp_path) == "[]\n['confidence', 'metrics'] True"
    modules = {file.stem for file in (ROOT / "trustlab").iterdir()}
    assert set(tl.__all__) & modules == {"confidence", "metrics"}  # no module hides a name


PLACES = "from trustlab import paths; print(paths.RUNS, paths.NOTEBOOKS, paths.FIGURES, sep='|')"


def test_runs_go_to_the_working_folder_or_the_workbench_around_it(tmp_path):
    found = python(PLACES, tmp_path).split("|")
    assert found == [str(tmp_path / "runs"), str(ROOT / "notebooks"), str(tmp_path / "figures")]
    bench = tmp_path / "bench"
    assert CliRunner().invoke(app, ["init", str(bench)]).exit_code == 0
    own = [str(bench / name) for name in ("runs", "notebooks", "figures")]
    for folder in (bench, bench / "notebooks" / "parameters"):
        assert python(PLACES, folder).split("|") == own
    elsewhere = python(PLACES, bench, TRUSTLAB_RUNS=str(tmp_path / "x")).split("|")
    assert elsewhere[0] == str(tmp_path / "x")
    assert python(PLACES, ROOT / "tests").split("|")[0] == str(ROOT / "runs")


def test_a_workbench_has_all_that_its_page_names_and_nothing_is_overwritten(tmp_path):
    done = CliRunner().invoke(app, ["init", str(tmp_path / "bench")])
    assert done.exit_code == 0 and "begin with" in done.output and tl.NOTICE in done.output
    names = {f.stem for f in (tmp_path / "bench" / "notebooks").glob("*.ipynb")}
    assert names == set(notebook_names())
    for name in ("README.md", "cases.csv", "replies.jsonl", "notebooks/parameters/small.yml"):
        assert (tmp_path / "bench" / name).is_file()
    (tmp_path / "bench" / "README.md").write_text("mine")
    again = CliRunner().invoke(app, ["init", str(tmp_path / "bench")])
    assert again.exit_code == 2 and "there already; choose another folder" in again.stderr
    assert (tmp_path / "bench" / "README.md").read_text() == "mine"
    (tmp_path / "half" / "notebooks").mkdir(parents=True)
    (tmp_path / "half" / "cases.csv").write_text("mine")
    assert CliRunner().invoke(app, ["init", str(tmp_path / "half")]).exit_code == 2
    assert not list((tmp_path / "half" / "notebooks").iterdir())


def own_notebook(file: Path, parameters: str, code: str, tag: str = "parameters") -> Path:
    cell = nbformat.v4.new_code_cell(parameters, metadata={"tags": [tag]})
    book = nbformat.v4.new_notebook(cells=[cell, nbformat.v4.new_code_cell(code)])
    file.parent.mkdir(exist_ok=True)
    nbformat.write(book, file)
    return file


@pytest.mark.notebook
def test_a_notebook_of_one_s_own_runs_where_it_lies(tmp_path, monkeypatch):
    mine = own_notebook(
        tmp_path / "here" / "mine.ipynb",
        "n = 2\nmine = 'x'",
        "from pathlib import Path\nfrom trustlab import paths\n"
        "Path('told.txt').write_text(f'{n} {mine} {paths.RUNS}')",
    )
    monkeypatch.setattr("trustlab.paths.RUNS", tmp_path / "runs")
    monkeypatch.delenv("TRUSTLAB_RUNS", raising=False)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["run", "here/mine.ipynb", "-p", "mine=y"])
    assert done.exit_code == 0, done.output
    assert (mine.parent / "told.txt").read_text() == f"2 y {tmp_path / 'runs'}"
    manifest = json.loads((tmp_path / "runs" / "mine" / "manifest.json").read_text())
    assert manifest["ok"] and manifest["parameters"] == {"mine": "y"}
    assert (tmp_path / "runs" / "mine" / "mine.html").is_file()
    for words, told in (
        (["-p", "nn=3"], "mine has no parameter 'nn'; did you mean n"),
        (["-p", "n=0"], "n is 0; it must be a whole number"),
    ):
        refused = CliRunner().invoke(app, ["run", "here/mine.ipynb", *words])
        assert refused.exit_code == 2 and told in refused.stderr, refused.stderr
    planned = CliRunner().invoke(app, ["plan", "here/mine.ipynb"])
    assert planned.exit_code == 2 and "a notebook of your own" in planned.stderr


def test_what_is_no_notebook_is_refused_with_the_reason(tmp_path):
    bare = own_notebook(tmp_path / "bare.ipynb", "n = 2", "1", tag="other")
    odd = own_notebook(tmp_path / "odd.ipynb", "n = len('ab')", "1")
    (tmp_path / "text.ipynb").write_text("no notebook")
    for file, told in (
        (bare, "has no cell with the tag 'parameters'"),
        (odd, "may assign literals alone"),
        (tmp_path / "text.ipynb", "is no notebook"),
    ):
        with pytest.raises(ValueError, match=told):
            default_parameters(file)


MOST_MIB = 70


@pytest.mark.slow
def test_the_wheel_holds_what_the_package_reads_and_is_not_large(tmp_path):
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "-q"]
    source = tmp_path / "source"
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT,
                            capture_output=True, check=True, text=True).stdout  # fmt: skip
    parts = ("trustlab/", "data/", "notebooks/", "pyproject", "setup.py", "README", "LICENSE")
    for name in filter(lambda n: n.startswith(parts), listed.splitlines()):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).symlink_to(ROOT / name)  # builds leave files beside what they build
    subprocess.run([*command, "-w", str(tmp_path / "dist"), str(source)], check=True)
    (wheel,) = (tmp_path / "dist").glob("trustlab-0.2.0-*.whl")
    assert wheel.stat().st_size < MOST_MIB * 2**20
    with zipfile.ZipFile(wheel) as made:
        names = set(made.namelist())
        book = json.loads(made.read("trustlab/_data/notebooks/01_benchmark.ipynb"))
    there = [f for f in listed.splitlines() if f.startswith(("data/", "notebooks/"))]
    expected = {f"trustlab/_data/{f}" for f in there if not f.startswith("data/replies/")}
    assert {n for n in names if n.startswith("trustlab/_data/")} == expected
    code = {f for f in listed.splitlines() if f.startswith("trustlab/")}
    assert code <= names
    assert not any(cell.get("outputs") for cell in book["cells"])
