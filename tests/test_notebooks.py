"""Every notebook runs at its own defaults, shows something wherever it shows anything, and is fit
to be read as it is committed; what runs them, and the parameters they take."""

from __future__ import annotations

import copy
import json
import os
import re
from pathlib import Path

import nbformat
import pandas as pd
import pytest
from each import each
from papermill.exceptions import PapermillExecutionError
from saying import saying, says
from smoke import contents
from test_figures_hold import violations
from typer.testing import CliRunner

from trustlab import paths
from trustlab.cli.commands import app
from trustlab.cli.run_notebooks import (
    MANIFEST,
    check_parameters,
    default_parameters,
    filled,
    lacking,
    notebook_names,
    notebook_path,
    read_parameters,
    read_sections,
    run_notebook,
)
from trustlab.paths import DATA, FIGURES, NOTEBOOKS, NOTICE
from trustlab.reports.html.prompts import prompts_of
from trustlab.runs.folder.replies_log import NAME as REPLIES
from trustlab.runs.folder.replies_log import json_lines

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
    cells = [cell for cell in code(book) if "tl.prompts_shown(" in cell.source]
    page = "".join(output.data["text/html"] for cell in cells for output in cell.outputs)
    prompts = re.findall(r"<details [^>]*><summary [^>]*><b>(\w+)</b>", page)
    assert set(prompts) == set(prompts_of(asked))


# What goes wrong


@pytest.fixture
def bench(tmp_path, monkeypatch) -> Path:
    """Folders of our own for notebooks and runs."""
    monkeypatch.setattr(paths, "NOTEBOOKS", tmp_path / "notebooks")
    monkeypatch.setattr(paths, "RUNS", tmp_path / "runs")
    monkeypatch.setattr("trustlab.cli.commands.SETS", tmp_path)
    (tmp_path / "small.yml").touch()
    return tmp_path


def small_notebook(folder: Path, *cells: str, name: str = "09_small") -> None:
    """One more notebook in a folder, whose only parameters are ``n`` and ``run_dir``."""
    folder.mkdir(exist_ok=True)
    sources = ("n = 1\nrun_dir = None", *cells)
    made = nbformat.v4.new_notebook(cells=list(map(nbformat.v4.new_code_cell, sources)))
    made.cells[0].metadata["tags"] = ["parameters"]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    made.metadata["kernelspec"] = kernel
    nbformat.write(made, folder / f"{name}.ipynb")


@pytest.mark.notebook
def test_a_failing_cell_leaves_the_notebook_and_a_manifest_of_this_run_alone(bench):
    small_notebook(bench / "notebooks", "print('came here', n)", "1 / 0", "print('never here')")
    out = bench / "out"
    out.mkdir()
    (out / "run.json").write_text('{"calls_made": 5}')
    with pytest.raises(PapermillExecutionError, match="ZeroDivisionError"):
        run_notebook("09_small", {"n": 7}, out)
    found = manifest(out)
    assert (found["ok"], found["parameters"]) == (False, {"n": 7})
    assert "calls_made" not in found and "stopped" not in found
    outputs = json.dumps([c.outputs for c in code(nbformat.read(out / "09_small.ipynb", 4))])
    assert "came here 7" in outputs and "ZeroDivisionError" in outputs
    assert "never here" not in outputs


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
    monkeypatch.setenv("MPLBACKEND", "agg")  # a command sets it for good
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


# Parameters, from a file and from a shell


@each(
    ("pair", "meant"),
    [
        ("path=a #2, b.csv", "a #2, b.csv"),
        ("path=['007', \"1e2\"]", ["007", "1e2"]),
        ("path=007", 7),
        ("corpus=no", "no"),
        (
            "more={corpus: a, samples: 010, temperature: 1e-1}",
            {"corpus": "a", "samples": 10, "temperature": 0.1},
        ),
        ("model_options={today: 2026-01-31}", {"today": "2026-01-31"}),
        ("n=010", 10),
        ("n=20 #5", "20 #5"),
        ("quiet=true", True),
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
    assert read_sections(file)[0] == {"01_benchmark": {"n": 3, "samples": 5}, "02_robustness": {}}
    file.write_text("n: {a: 3}\n")
    assert read_parameters(file, notebook="01_benchmark") == {"n": {"a": 3}}


def test_a_need_of_a_section_is_filled_or_refused_in_a_line_before_anything_is_opened(tmp_path):
    file = tmp_path / "p.yml"
    file.write_text(
        "needs: {who: a model, whose: another, from: a folder}\n"
        "01_benchmark: {model: [$who, $whose], data_options: {medqa: {ids: [$from]}}, n: 3}\n"
        "06_published_tables: {seed: 1}\n"
    )
    given = ["who=embedded", "from=a", "whose=[b, c]"]
    assert read_parameters(file, given, "01_benchmark") == {
        "model": ["embedded", ["b", "c"]],
        "data_options": {"medqa": {"ids": ["a"]}},
        "n": 3,
    }
    assert read_parameters(file, ["who=embedded"], "06_published_tables") == {"seed": 1}
    with pytest.raises(ValueError) as refused:
        read_parameters(file, ["from=a"], "01_benchmark")
    who, whose = str(refused.value).splitlines()
    assert says(who, "a model", "-p who=VALUE") and says(whose, "another", "-p whose=VALUE")
    assert (
        read_parameters(file, ["model=embedded", "from=a"], "01_benchmark")["model"] == "embedded"
    )


@each(
    ("content", "pairs", "words"),
    [
        (b"n: 3\nsamples: 5\nn: 4\n", [], ("p.yml", "n", "twice")),
        (b"path: /data/F\xe4lle.csv\n", [], ("p.yml", "encoding", "UTF-8")),
        (b"01_benchmark: {n: 3}\n09_none: {n: 3}\n", [], "'09_none'"),
        (
            b"needs: {corpus: a file}\n01_benchmark: {n: 3}\n",
            [],
            ("'corpus'", "parameter"),
        ),
        (b"departures: [{what: x}]\n", [], ("departures", "where", "what", "why")),
        (b"- n\n", [], ("p.yml", "list", "mapping")),
        (b"", ["n=[1"], ("parameter", "n", "YAML")),
    ],
)
def test_a_file_or_pair_of_another_form_is_refused(content, pairs, words, tmp_path):
    (tmp_path / "p.yml").write_bytes(content)
    with pytest.raises(ValueError, match=saying(words)):
        read_parameters(tmp_path / "p.yml", pairs, "01_benchmark")


# As committed


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
    assert [*FIGURES.glob(f"{name[:3]}*.png")], "no figure of it is committed"
    assert "run_dir" in default_parameters(notebook_path(name))


@pytest.mark.parametrize(
    "file", sorted((NOTEBOOKS / "parameters").glob("*.yml")), ids=lambda file: file.stem
)
def test_each_file_of_parameters_fits_the_notebooks_it_names(file, tmp_path):
    sections, needs, _ = read_sections(file)
    assert "01_benchmark" in sections and len(lacking(sections, needs)) == len(needs)
    given = dict.fromkeys(needs, str(tmp_path))
    given |= {"gpt": "embedded", "llama": "embedded-closed", "judge": "judge:embedded"}
    given |= {"paraphraser": "embedded", "library": str(DATA / "corpus")}
    for name, values in sections.items():
        check_parameters(notebook_path(name), filled(values, given))
