"""Every notebook runs at its own defaults, shows something wherever it shows anything, and is fit
to be read as it is committed; what runs them, and the parameters they take."""

from __future__ import annotations

import ast
import copy
import json
import os
import re
import shutil
from pathlib import Path

import nbformat
import pandas as pd
import pytest
from each import each
from papermill.exceptions import PapermillExecutionError
from publish import REFERENCE, publish
from smoke import contents
from test_figures_hold import violations
from typer.testing import CliRunner

from trustlab import paths, run_notebooks
from trustlab.cli import app
from trustlab.folder.replies_log import NAME as REPLIES
from trustlab.folder.replies_log import json_lines
from trustlab.html.prompts import prompts_of
from trustlab.models.base import Gone, Waiting
from trustlab.paths import FIGURES, NOTEBOOKS, NOTICE
from trustlab.plan import plan_study
from trustlab.run_notebooks import (
    MANIFEST,
    check_parameters,
    default_parameters,
    notebook_names,
    notebook_path,
    read_parameters,
    read_sections,
    run_notebook,
)

NAMES = notebook_names()
QUICK = ("00_walkthrough", "06_published_tables")
"""Those that ask no model at their own defaults."""
CHAINED = ("07_calibration", "08_graders")
"""Those that ask what 01_benchmark has asked."""
MACHINE = re.compile(r"/(?:work|home|root|tmp|Users|mnt|usr|opt|var)/\w|[A-Z]:\\\\|site-packages")
WIDGET = "application/vnd.jupyter.widget-view+json"
EMPTY = re.compile(r"Nothing to draw|Empty DataFrame|\b0 rows × |<tbody>\s*</tbody>")
LOADED = re.compile(r"<(?!a\b|area\b)\w+[^>]*(?:src|href)=.(?:https?:)?//|url\(.?(?:https?:)?//")
LONGEST_CELL = 40
"""Lines of a cell, at most 100 wide; only the parameters, each with its remark, may be more."""


def manifest(folder: Path) -> dict:
    return json.loads((folder / MANIFEST).read_text(encoding="utf-8"))


def code(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def empty(notebook: nbformat.NotebookNode) -> list[str]:
    """The ids of cells that show a table without rows, or say that a figure has nothing to draw."""
    shown = [
        (cell.id, text)
        for cell in code(notebook)
        for output in cell.outputs
        for text in (output.get("text", ""), *map(str, output.get("data", {}).values()))
    ]
    return list(dict.fromkeys(name for name, text in shown if EMPTY.search(text)))


def problems(notebook: nbformat.NotebookNode) -> list[str]:
    """What makes a notebook unfit to be committed."""
    found = []
    for i, cell in enumerate(code(notebook)):
        is_long = len(cell.source.splitlines()) > LONGEST_CELL
        if is_long and "parameters" not in cell.metadata.get("tags", []):
            found.append(f"code cell {i} has {len(cell.source.splitlines())} lines")
        for output in cell.outputs:
            if output.output_type == "error" or output.get("name") == "stderr":
                found.append(f"code cell {i} has an output of {output.get('name', 'error')}")
            if WIDGET in output.get("data", {}):
                found.append(f"code cell {i} shows a progress bar")
            shown = copy.deepcopy(output)
            shown.get("data", {}).pop("image/png", None)  # any letters may meet in there
            if path := MACHINE.search(json.dumps(shown)):
                found.append(f"code cell {i} shows {path[0]}")
    return found


# Each notebook as it is opened


@pytest.mark.notebook
@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in NAMES]
)
def test_at_its_own_defaults_a_notebook_shows_no_empty_table_and_all_that_it_asked(
    name, smoke_runs
):
    if name in CHAINED:
        smoke_runs.of("01_benchmark")
    folder = smoke_runs.of(name)
    found = manifest(folder)
    assert (found["ok"], found["notebook"], found["notice"]) == (True, name, NOTICE)
    assert found["parameters"] == {} and found["started"] <= found["finished"]
    assert name != "01_benchmark" or found["warnings"] == []
    book = nbformat.read(folder / f"{name}.ipynb", 4)
    assert empty(book) == []
    files = contents(folder / "figures")
    figures = {file.rpartition(".")[0] for file in files}
    assert figures and set(files) == {f"{f}.{e}" for f in figures for e in ("csv", "png", "svg")}
    for figure in figures:
        table = pd.read_csv(folder / "figures" / f"{figure}.csv")
        assert len(table) and figure.startswith(name[:3]) and violations(figure, table) == []
        assert files[f"{figure}.png"].startswith(b"\x89PNG")
        assert b"not for clinical use" in files[f"{figure}.svg"]
    html = (folder / f"{name}.html").read_text(encoding="utf-8")
    assert not LOADED.search(re.sub("<script.*?</script>", "", html, flags=re.DOTALL))
    assert html.count("data:image/png;base64,") >= len(figures) and NOTICE in html
    if "runs" in found:
        for key in ("calls_made", "calls_from_cache"):
            assert found[key] == sum(part[key] for part in found["runs"].values())
    if name in (*QUICK, *CHAINED):
        assert found.get("calls_made", 0) == 0
    if name in CHAINED:
        assert found["calls_from_cache"] > 0
    rows = [line for file in folder.rglob(REPLIES) for _, line in json_lines(file)]
    asked = {json.loads(row)["purpose"] for row in rows}
    pages = [
        output.data["text/html"]
        for cell in code(book)
        if "tl.prompts_shown(" in cell.source
        for output in cell.outputs
    ]
    prompts = re.findall(r"<details [^>]*><summary [^>]*><b>(\w+)</b>", "".join(pages))
    assert set(prompts) == set(prompts_of(asked))


@pytest.mark.slow
@pytest.mark.notebook
@each("name", ["02_robustness", "03_ablations", "04_consultation", "05_trust_indices"])
def test_a_plan_names_what_the_notebook_then_asks(name, smoke_runs):
    asked = check_parameters(notebook_path(name), {})
    planned = plan_study(name, asked)[0].set_index("purpose")["n_replies"]
    tables = [pd.read_csv(file) for file in smoke_runs.of(name).rglob("calls.csv")]
    served = pd.concat([t.groupby("purpose")["n"].sum() for t in tables], axis=1)  # a column a run
    assert set(planned.index) == set(served.index)
    known = {"diagnosis", "samples", "p_true"} if name != "04_consultation" else set()
    exact = [purpose for purpose in planned.index if purpose in known]
    assert (planned[exact] <= served.sum(axis=1)[exact]).all()  # runs share what is the same
    assert (planned[exact] >= served.max(axis=1)[exact]).all()


@pytest.mark.slow
@pytest.mark.notebook
@pytest.mark.parametrize("name", ["01_benchmark", "04_consultation"])
def test_a_second_run_asks_nothing_and_gives_the_same(name, smoke_runs, tmp_path):
    first, again = smoke_runs.of(name), smoke_runs.again(name, tmp_path)
    assert manifest(again)["calls_made"] == 0 and manifest(again)["calls_from_cache"] > 0
    for file in first.rglob("answers.csv"):
        assert (again / file.relative_to(first)).read_bytes() == file.read_bytes()
    assert contents(again / "figures") == contents(first / "figures")


@pytest.mark.notebook
def test_publishing_copies_outputs_and_nothing_of_this_machine(smoke_runs, tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "NOTEBOOKS", tmp_path / "notebooks")
    monkeypatch.setattr(paths, "FIGURES", tmp_path / "figures")
    shutil.copytree(NOTEBOOKS, tmp_path / "notebooks")
    name = "06_published_tables"
    run = smoke_runs.of(name)
    old, kept = (tmp_path / "figures" / f for f in ("06_gone.png", "02_stability.png"))
    for file in (old, kept):
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b"of another run")
    publish(run, name)
    figures = contents(run / "figures")
    assert contents(tmp_path / "figures") == figures | {kept.name: b"of another run"}
    ours, made = (
        nbformat.read(f / f"{name}.ipynb", 4) for f in (NOTEBOOKS, tmp_path / "notebooks")
    )
    told = [[(c.cell_type, c.source) for c in book.cells[1:]] for book in (made, ours)]
    assert told[0] == told[1]  # the first has the opening
    assert sum("image/png" in o.get("data", {}) for c in code(made) for o in c.outputs) > 0
    assert problems(made) == []
    code(made)[-1].source += "\nprint('more')"
    nbformat.write(made, tmp_path / "notebooks" / f"{name}.ipynb")
    with pytest.raises(ValueError, match=f"made by another version of {name}.ipynb"):
        publish(run, name)
    assert REFERENCE == ("answers", "confidence", "metrics")


# What goes wrong


@pytest.fixture
def bench(tmp_path, monkeypatch) -> Path:
    """Folders of our own for notebooks and runs."""
    monkeypatch.setattr(paths, "NOTEBOOKS", tmp_path / "notebooks")
    monkeypatch.setattr(paths, "RUNS", tmp_path / "runs")
    monkeypatch.setattr(run_notebooks, "read_sections", lambda file: {})
    return tmp_path


def small_notebook(folder: Path, *cells: str, name: str = "09_small") -> None:
    """One more notebook in a folder, whose only parameters are ``n`` and ``run_dir``."""
    folder.mkdir(exist_ok=True)
    made = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source) for source in ("n = 1\nrun_dir = None", *cells)]
    )
    made.cells[0].metadata["tags"] = ["parameters"]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    made.metadata["kernelspec"] = kernel
    nbformat.write(made, folder / f"{name}.ipynb")


@pytest.mark.notebook
def test_a_failing_cell_leaves_the_notebook_and_a_manifest_of_this_run_alone(bench):
    small_notebook(bench / "notebooks", "print('came here', n)", "1 / 0", "print('never here')")
    out = bench / "out"
    (out / "figures").mkdir(parents=True)
    (out / "run.json").write_text('{"calls_made": 5}')
    for name in ("09_gone.png", "10_kept.png"):
        (out / "figures" / name).write_bytes(b"of an earlier run")
    with pytest.raises(PapermillExecutionError, match="ZeroDivisionError"):
        run_notebook("09_small", {"n": 7}, out)
    found = manifest(out)
    assert (found["ok"], found["parameters"]) == (False, {"n": 7})
    assert "calls_made" not in found and "stopped" not in found
    assert [p.name for p in (out / "figures").iterdir()] == ["10_kept.png"]
    outputs = json.dumps([c.outputs for c in code(nbformat.read(out / "09_small.ipynb", 4))])
    assert "came here 7" in outputs and "ZeroDivisionError" in outputs
    assert "never here" not in outputs
    assert "ZeroDivisionError" in (out / "09_small.html").read_text(encoding="utf-8")


@pytest.mark.notebook
@pytest.mark.parametrize(
    ("end", "status", "words"),
    [
        (Gone, 4, ["08_gone stopped: no answer for 9 minutes", None]),
        (Waiting, 3, ["08_gone waits: no answer for 9 minutes"]),
    ],
)
def test_a_run_that_stops_or_waits_says_so_and_no_other_begins(end, status, words, bench):
    name = end.__name__
    gone = f"from trustlab.models.base import {name}\nraise {name}('no answer\\nfor 9 minutes', [])"
    small_notebook(bench / "notebooks", gone, name="08_gone")
    small_notebook(bench / "notebooks", "print('never here')")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("trustlab.processes.processes", lambda n_jobs: 1)
        done = CliRunner().invoke(app, ["run", "all"])
    assert done.exit_code == status, done.output
    told = [f"trustlab: {w}" if w else "  the same command goes on where it stopped" for w in words]
    assert done.stderr.splitlines()[-len(told) :] == told  # after the progress bar
    found = manifest(bench / "runs" / "08_gone")
    assert (found["ok"], found["stopped"]) == (False, "no answer\nfor 9 minutes")
    assert not (bench / "runs" / "09_small").exists()


@pytest.mark.notebook
def test_notebooks_that_run_at_once_share_a_folder_for_runs_and_leave_nothing_behind(
    bench, monkeypatch
):
    """The first ends while the second goes on, and the third begins after that."""
    monkeypatch.setattr("trustlab.processes.processes", lambda n_jobs: 2)
    for name in ("TRUSTLAB_RUNS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    told = "import os\nprint(os.environ['TRUSTLAB_RUNS'], os.environ['OMP_NUM_THREADS'])"
    for name, seconds in (("07_a", 0), ("08_b", 2), ("09_c", 0)):
        wait = f"import time\ntime.sleep({seconds})"
        small_notebook(bench / "notebooks", wait, told, name=name)
    before = dict(os.environ)
    done = CliRunner().invoke(app, ["run", "all"])
    assert done.exit_code == 0, done.output
    assert dict(os.environ) == before
    index = (bench / "runs" / "index.html").read_text(encoding="utf-8")
    for name in ("07_a", "08_b", "09_c"):
        assert manifest(bench / "runs" / name)["ok"]
        cells = nbformat.read(bench / "runs" / name / f"{name}.ipynb", 4).cells
        assert cells[-1].outputs[0].text == f"{bench / 'runs'} 1\n"
        assert f'href="{name}/{name}.html"' in index


def test_a_manifest_holds_the_warnings_of_all_its_runs_together(tmp_path):
    """Each run was served by one model, but not all by the same."""
    for name, kind, alike in (("a", "benchmark", ["x", "y"]), ("b", "trust", ["x"])):
        (tmp_path / name).mkdir()
        held = {"samples_alike": alike, "served_by": {"x": {name: 3, "both": 1}, "y": {"y": 1}}}
        (tmp_path / name / "run.json").write_text(json.dumps({kind: held}))
    assert run_notebooks._run_facts(tmp_path)["warnings"] == [
        "x: all samples alike (temperature ignored?); the server changed its model during the run:"
        " a 3, both 2, b 3 replies",
        "y: all samples alike (temperature ignored?)",
    ]


# Parameters, from a file and from a shell


@each(
    ("pair", "meant"),
    [
        ("path=a #2, b.csv", "a #2, b.csv"),
        ("path=007", "007"),
        ("path=[007, 1e2]", ["007", "1e2"]),
        ("path='[draft] x.csv'", "[draft] x.csv"),
        ("path=@a.csv", "@a.csv"),
        ("path=", ""),
        ("path=null", None),
        ("corpus=no", "no"),
        ("model=1", "1"),
        ("model=openai:", "openai:"),
        ("more={corpus: 010, samples: 010}", {"corpus": "010", "samples": 10}),
        ("model_options={today: 2026-01-31}", {"today": "2026-01-31"}),
        ("n=010", 10),
        ("n=1e2", 100),
        ("temperature=1e-1", 0.1),
        ("seed=1:30", "1:30"),
        ("n=1_0", "1_0"),
        ("n=20 #5", "20 #5"),
        ("quiet=true", True),
        ("quiet=yes", "yes"),
    ],
)
def test_a_value_means_what_is_written_from_a_shell_and_in_a_file(pair, meant, tmp_path):
    name, _, value = pair.partition("=")
    assert read_parameters(None, [pair], "01_benchmark") == {name: meant}
    if value and "#" not in value and value[-1] != ":" and value[0] not in "@[":
        (tmp_path / "p.yml").write_text(f"01_benchmark:\n  {name}: {value}\n", "utf-8-sig")
        assert read_parameters(tmp_path / "p.yml", (), "01_benchmark") == {name: meant}


def test_pairs_go_over_a_file_and_of_its_sections_the_one_of_the_notebook_counts(tmp_path):
    file = tmp_path / "p.yml"
    file.write_text("01_benchmark: {n: 3, samples: 5}\n02_robustness:\n")
    assert read_parameters(file, ["n=4"], "01_benchmark") == {"n": 4, "samples": 5}
    assert read_parameters(file, notebook="02_robustness.ipynb") == {}
    assert read_sections(file) == {"01_benchmark": {"n": 3, "samples": 5}, "02_robustness": {}}
    file.write_text("n: {a: 3}\n")
    assert read_parameters(file, notebook="01_benchmark") == {"n": {"a": 3}}


@each(
    ("content", "pairs", "words"),
    [
        (b"n: 3\nsamples: 5\nn: 4\n", [], "p.yml: n is given twice"),
        (b"01_benchmark: {n: 3, n: 4}\n", [], "p.yml: n is given twice"),
        (b"path: /data/F\xe4lle.csv\n", [], "p.yml, encoding: received b'.* UTF-8 text"),
        (b"n: 3\n", ["n=4", "n=5"], "parameter n is given twice: 4, and '5'"),
        (b"02_robustness: {n: 3}\n", [], "no section for 01_benchmark; it has 02_robustness"),
        (b"01_benchmark: {n: 3}\n09_none: {n: 3}\n", [], "there is no notebook '09_none'"),
        (b"01_benchmark: 3\n", [], "holds int for 01_benchmark; it must be a mapping"),
        (b"- n\n", [], "holds list; it must be a mapping"),
        (b"n: [1\n", [], "p.yml is not YAML"),
        (b"", ["n"], "parameter 'n' is not of the form name=value"),
        (b"", ["n=[1"], "parameter n is not YAML"),
    ],
)
def test_a_file_or_pair_of_another_form_is_refused(content, pairs, words, tmp_path):
    (tmp_path / "p.yml").write_bytes(content)
    with pytest.raises(ValueError, match=words):
        read_parameters(tmp_path / "p.yml", pairs, "01_benchmark")


@each(
    ("name", "given", "absolute"),
    [
        ("path", [None, "own"], [None, "OWN"]),
        ("model", ["embedded", "hf:own", "hf:a/b"], ["embedded", "hf:OWN", "hf:a/b"]),
        ("methods", "own", "own"),
        ("entailment", "own", "OWN"),
        ("entailment", "a/b", "a/b"),
        ("wording", "hf:own", "hf:OWN"),
        ("grader", "judge:hf:own", "judge:hf:OWN"),
        ("grader", "synonym", "synonym"),
        ("patient", None, None),
        ("corpora", {"mine": "own"}, {"mine": "OWN"}),
        ("more", {"corpus": "own"}, {"corpus": "OWN"}),
        (
            "data_options",
            {"a": {"ids": "own", "split": "own"}},
            {"a": {"ids": "OWN", "split": "own"}},
        ),
    ],
)
def test_paths_are_made_absolute(name, given, absolute, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own").mkdir()
    found = json.dumps(run_notebooks._from_here(name, given))
    assert json.loads(found.replace(str(tmp_path / "own"), "OWN")) == absolute


# As committed


def unescaped(tree: ast.AST) -> list[str]:
    """The uses of a table's ``.style`` that no ``.format(escape="html")`` follows: a Styler alone
    escapes nothing."""
    escaped = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            told = {k.arg: ast.unparse(k.value) for k in node.keywords}
            if node.func.attr == "format" and told.get("escape") == "'html'":
                escaped |= {id(inner) for inner in ast.walk(node.func)}
    uses = (n for n in ast.walk(tree) if isinstance(n, ast.Attribute) and n.attr == "style")
    return [u for n in uses if id(n) not in escaped and (u := ast.unparse(n)) != "plots.style"]


PUBLISHED = read_sections(NOTEBOOKS / "parameters" / "published.yml")


@pytest.mark.parametrize("name", NAMES)
def test_a_committed_notebook_is_fit_to_read(name):
    notebook = nbformat.read(notebook_path(name), 4)
    nbformat.validate(notebook)
    first = notebook.cells[0].source
    title = first.splitlines()[0]
    assert notebook.cells[0].cell_type == "markdown" and NOTICE in first
    assert title.startswith("# ") and title.endswith("?"), title
    assert sum("parameters" in cell.metadata.get("tags", []) for cell in notebook.cells) == 1
    assert problems(notebook) == [] and notebook.metadata["kernelspec"]["name"] == "python3"
    assert [use for cell in code(notebook) for use in unescaped(ast.parse(cell.source))] == []
    drawn = {f.stem for f in FIGURES.glob(f"{name[:3]}*.png")}
    assert drawn, "no figure of it is committed"
    own = default_parameters(notebook_path(name))
    assert "run_dir" in own
    if name in PUBLISHED:  # the first cell says where "Run All" makes a smaller run
        reference = own | PUBLISHED[name]
        smaller = "n" in own and (reference["n"] is None or own["n"] < reference["n"])
        assert ("a smaller run of your own" in first) == smaller
        assert smaller or own.get("n") == reference.get("n")


@pytest.mark.parametrize(
    "file", sorted((NOTEBOOKS / "parameters").glob("*.yml")), ids=lambda file: file.stem
)
def test_each_file_of_parameters_fits_the_notebooks_it_names(file, tmp_path):
    sections = read_sections(file)
    assert "01_benchmark" in sections
    for name, values in sections.items():
        sets = values.get("dataset", "")
        own = {"path": [str(tmp_path) if s in ("meditod", "medqa") else None for s in sets]}
        check_parameters(notebook_path(name), values | (own if isinstance(sets, list) else {}))
