"""Every notebook runs at its own defaults, shows something wherever it shows anything, and is fit
to be read as it is committed."""

from __future__ import annotations

import copy
import json
import os
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

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
from trustlab.confidence import METHODS, select
from trustlab.html.notebook import without_progress, write_html
from trustlab.models.base import Gone, Waiting
from trustlab.paths import NOTEBOOKS, NOTICE, ROOT
from trustlab.plan import plan_study
from trustlab.records import GIVEN, LEVELS
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
VARIANTS = [m.name for m in select(["variants", "exact_posterior"])]
"""What 01_benchmark asks for by default."""
PANEL = {"agreement", "rdc"}
"""All other methods but those that score given texts: what a panel of doctors gives."""
assert PANEL | set(VARIANTS) | set(GIVEN) == set(METHODS)
METRICS = {"accuracy", "mean_confidence", "auroc", "auprc", "pearson", "spearman", "brier", "ece"}
FIGURES_OF_01 = {
    "01_auroc", "01_confidence_and_accuracy", "01_compared", "01_level_correlations", "01_turned",
}  # fmt: skip
MACHINE = re.compile(r"/(?:work|home|root|tmp|Users|mnt|usr|opt|var)/\w|[A-Z]:\\\\|site-packages")
WIDGET = "application/vnd.jupyter.widget-view+json"
LONGEST_CELL = 40
"""Lines of a cell, at most 100 wide; only the parameters, each with its remark, may be more."""


def defaults_of_01() -> dict:
    return default_parameters(notebook_path("01_benchmark"))


def manifest(folder: Path) -> dict:
    return json.loads((folder / MANIFEST).read_text(encoding="utf-8"))


def code(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


@pytest.fixture
def repository(tmp_path, monkeypatch) -> Path:
    """Where to publish to: a copy of our ``notebooks/``, and a ``figures/`` that is not there
    yet."""
    folder = tmp_path / "repository"
    monkeypatch.setattr(paths, "NOTEBOOKS", folder / "notebooks")
    monkeypatch.setattr(paths, "FIGURES", folder / "figures")
    shutil.copytree(NOTEBOOKS, folder / "notebooks")
    return folder


# Each notebook as it is opened

EMPTY = re.compile(r"Nothing to draw|Empty DataFrame|\b0 rows × |<tbody>\s*</tbody>")
QUICK = ("00_walkthrough", "06_published_tables")
"""Those that ask no model at their own defaults."""


def empty(notebook: nbformat.NotebookNode) -> list[str]:
    """The ids of cells that show a table without rows, or say that a figure has nothing to draw."""
    shown = [
        (cell.id, text)
        for cell in code(notebook)
        for output in cell.outputs
        for text in (output.get("text", ""), *map(str, output.get("data", {}).values()))
    ]
    return list(dict.fromkeys(name for name, text in shown if EMPTY.search(text)))


@pytest.mark.notebook
@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in NAMES]
)
def test_at_its_own_defaults_a_notebook_shows_no_empty_table_or_figure(name, smoke_runs):
    folder = smoke_runs.of(name)
    assert manifest(folder)["ok"] and manifest(folder)["parameters"] == {}
    assert empty(nbformat.read(folder / f"{name}.ipynb", 4)) == []
    tables = {f.name: pd.read_csv(f) for f in (folder / "figures").glob("*.csv")}
    assert tables and [of for of, table in tables.items() if table.empty] == []


# One run of the benchmark notebook


@pytest.fixture(scope="module")
def smoke(smoke_runs) -> Path:
    """The folder of ``01_benchmark``'s run."""
    return smoke_runs.of("01_benchmark")


@pytest.mark.slow
@pytest.mark.notebook
def test_a_run_leaves_complete_tables(smoke):
    answers, confidence, metrics, calls = (
        pd.read_csv(smoke / f"{name}.csv") for name in ("answers", "confidence", "metrics", "calls")
    )
    n_cases = defaults_of_01()["n"]
    assert len(answers) == n_cases * len(LEVELS)
    assert len(confidence) == len(answers) * len(VARIANTS)
    assert set(confidence["method"]) == set(VARIANTS)
    assert set(metrics["metric"]) == METRICS
    assert set(metrics["method"].dropna()) == set(VARIANTS)
    assert (
        calls.groupby("purpose")["n"].sum().to_dict().items()
        >= {
            "diagnosis": len(answers),
            "samples": len(answers) * defaults_of_01()["samples"],
        }.items()
    )
    per_method = metrics.dropna(subset="method").groupby("method")["metric"].agg(set)
    for name, found in per_method.items():
        assert found == METRICS - {"accuracy"} - (
            set() if METHODS[name].scale == "probability" else {"brier", "ece"}
        )
    assert (metrics.loc[metrics["value"].isna(), "missing"].fillna("") != "").all()


@pytest.mark.slow
@pytest.mark.notebook
def test_the_embedded_model_s_answers_can_be_read_and_differ(smoke, smoke_runs):
    """The methods that ask a panel are looked at in ``05_trust_indices``."""
    ways = ("answers", "confidence")
    answers, confidence = (pd.read_csv(smoke / f"{name}.csv") for name in ways)
    panel = pd.read_csv(smoke_runs.of("05_trust_indices") / "confidence" / "confidence.csv")
    panel = panel[panel["method"].isin(PANEL)]
    assert set(panel["method"]) == PANEL and panel["confidence"].notna().any()
    confidence = pd.concat([confidence, panel])
    confidence["missing"] = confidence["missing"].fillna("")
    assert (confidence["confidence"].isna() == (confidence["missing"] != "")).all()
    # It was taught to answer in brackets: most answers can be read, and then only what is read
    # from further words can be missing.
    readable = answers["answer"].notna()
    assert readable.mean() > 0.8
    silent = confidence[~confidence["missing"].isin(["", "unreadable answer"])]
    without_encoder = silent["method"] == "semantic_similarity_med"
    reasons = set(silent.loc[without_encoder, "missing"])
    assert reasons == {"no medical encoder is named"}
    families = {METHODS[name].family for name in silent.loc[~without_encoder, "method"]}
    assert families <= {"verbalized", "medconf", "reference"}
    scale = confidence["method"].map(lambda m: METHODS[m].scale)
    chances = confidence[scale == "probability"]["confidence"].dropna()
    assert len(chances) and chances.between(0, 1).all()
    # Within a level the answers differ, and so do the samples behind them.
    assert answers["answer"].nunique() > 5
    assert confidence.query("method == 'poc'")["confidence"].nunique() > 1


@pytest.mark.slow
@pytest.mark.notebook
def test_each_figure_is_three_files(smoke):
    files = sorted(p.name for p in (smoke / "figures").iterdir())
    assert files == sorted(
        f"{name}.{ending}" for name in FIGURES_OF_01 for ending in ("csv", "png", "svg")
    )
    for file in (smoke / "figures").iterdir():
        start = file.read_bytes()[:200]
        assert {
            ".png": start.startswith(b"\x89PNG"),
            ".svg": b"<?xml" in start,
            ".csv": b"," in start,
        }[file.suffix], file.name
        assert file.suffix != ".csv" or violations(file.stem, pd.read_csv(file)) == []


@pytest.mark.slow
@pytest.mark.notebook
def test_the_manifest_says_what_was_run(smoke):
    found = manifest(smoke)
    assert (found["ok"], found["notebook"], found["notice"]) == (True, "01_benchmark", NOTICE)
    assert found["parameters"] == {}
    assert found["started"] <= found["finished"]
    calls = pd.read_csv(smoke / "calls.csv")[["n_made", "n_cached"]].sum()
    assert (found["calls_made"], found["calls_from_cache"]) == tuple(calls)
    given = defaults_of_01()
    n_answers = given["n"] * len(LEVELS)
    assert calls["n_made"] > 0 and calls.sum() > n_answers * given["samples"]
    assert found["benchmark"]["cases"] == given["n"]
    assert found["benchmark"]["dataset"] == [given["dataset"]]
    assert {"versions", "missing"} <= set(found)
    assert found["benchmark"]["prompts"]["embedded"]["set"] == "embedded"
    assert found["benchmark"]["samples_alike"] == found["warnings"] == []


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
def test_a_second_run_calls_no_model_and_gives_the_same_tables(smoke, smoke_runs, tmp_path):
    assert (smoke_runs.cache / "replies.sqlite").is_file()
    again = smoke_runs.again("01_benchmark", tmp_path)
    found, first = manifest(again), manifest(smoke)
    assert (found["ok"], found["calls_made"]) == (True, 0)
    assert found["calls_from_cache"] == first["calls_made"] + first["calls_from_cache"]
    for table in REFERENCE:
        name = f"{table}.csv"
        assert (again / name).read_bytes() == (smoke / name).read_bytes(), table
    assert contents(again / "figures") == contents(smoke / "figures")


class Loaded(HTMLParser):
    """What a page would fetch: every src, every href that is no link to click, and what style
    sheets and modules name."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.inside = ""

    def handle_starttag(self, tag, attrs):
        self.inside = tag
        for name, value in attrs:
            wanted = name in ("src", "srcset", "data", "poster") or (
                name in ("href", "xlink:href") and tag not in ("a", "area")
            )
            if wanted and re.match(r"\s*(?:https?:)?//", value or ""):
                self.found.append(f"<{tag} {name}={value}>")

    def handle_endtag(self, tag):
        self.inside = ""

    def handle_data(self, data):
        if self.inside == "style":
            self.found += re.findall(r"(?:@import|url\()\s*[\"']?(?:https?:)?//[^\s\"')]+", data)
        if self.inside == "script":
            self.found += re.findall(r"(?:import\s*\(?|from)\s*[\"'](?:https?:)?//[^\"']+", data)


def loaded(html: str) -> list[str]:
    parser = Loaded()
    parser.feed(html)
    return parser.found


@pytest.mark.slow
@pytest.mark.notebook
def test_the_html_copy_opens_without_a_network(smoke):
    html = (smoke / "01_benchmark.html").read_text(encoding="utf-8")
    assert loaded(html) == []
    assert "widget-view" not in html
    assert html.count("data:image/png;base64,") >= len(FIGURES_OF_01)
    assert "Which confidence tells when a diagnosis is right?" in html


@pytest.mark.slow
@pytest.mark.notebook
def test_figures_lead_to_answers_and_each_answer_to_its_page(smoke):
    html = (smoke / "01_benchmark.html").read_text(encoding="utf-8")
    assert html.count('<a href="answers.html">') == 1 + len(FIGURES_OF_01)
    page = (smoke / "answers.html").read_text(encoding="utf-8")
    assert loaded(page) == [] and NOTICE in page
    assert page.count("<tr data-sure=") == len(pd.read_csv(smoke / "answers.csv"))
    pages = re.findall(r'<td><a href="([^"]*)">', page)
    assert 0 < len(pages) <= 200 and all((smoke / unquote(to)).is_file() for to in pages)


@pytest.mark.slow
@pytest.mark.notebook
def test_publishing_copies_figures_tables_and_outputs_and_nothing_of_this_machine(
    smoke, repository
):
    publish(smoke, "01_benchmark")
    expected = {name: data for name, data in contents(smoke / "figures").items()}
    kept = {name: (smoke / f"{name}.csv").read_bytes() for name in REFERENCE}
    expected |= {f"reference/01_benchmark/{name}.csv": of for name, of in kept.items()}
    assert contents(repository / "figures") == expected
    folders = (NOTEBOOKS, repository / "notebooks")
    ours, made = (nbformat.read(folder / "01_benchmark.ipynb", 4) for folder in folders)
    assert [(c.cell_type, c.source, c.metadata) for c in made.cells[1:]] == [
        (c.cell_type, c.source, c.metadata)
        for c in ours.cells[1:]  # the first has the opening
    ]
    assert sum("image/png" in o.get("data", {}) for c in code(made) for o in c.outputs) == len(
        FIGURES_OF_01
    )
    assert problems(made) == []
    nbformat.validate(made)


@pytest.mark.slow
@pytest.mark.notebook
def test_publishing_deletes_what_the_run_no_longer_makes(smoke, repository):
    old = {f"01_gone.{ending}" for ending in ("csv", "png", "svg")} | {
        "reference/01_benchmark/gone.csv"
    }
    kept = {"02_stability.png", "reference/02_robustness/answers.csv"}
    for name in old | kept:
        (repository / "figures" / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / "figures" / name).write_bytes(b"of another run")
    publish(smoke, "01_benchmark")
    there = set(contents(repository / "figures"))
    assert not there & old and kept < there


@pytest.mark.slow
@pytest.mark.notebook
def test_a_run_of_another_version_is_not_published(smoke, repository):
    changed = nbformat.read(repository / "notebooks" / "01_benchmark.ipynb", 4)
    code(changed)[-1].source += "\nprint('more')"
    nbformat.write(changed, repository / "notebooks" / "01_benchmark.ipynb")
    with pytest.raises(ValueError, match="made by another version of 01_benchmark.ipynb"):
        publish(smoke, "01_benchmark")
    assert not (repository / "figures").exists()


# What was a part of it


@pytest.mark.slow
@pytest.mark.notebook
@each(
    ("name", "figures"),
    [("07_calibration", {"07_reliability", "07_risk_coverage"}), ("08_graders", {"08_accuracy"})],
)
def test_what_the_benchmark_asked_is_not_asked_again(name, figures, smoke, smoke_runs):
    assert manifest(smoke)["ok"]  # its replies are in the cache
    folder = smoke_runs.of(name)
    found = manifest(folder)
    assert (found["ok"], found["calls_made"]) == (True, 0) and found["calls_from_cache"] > 0
    assert {file.stem for file in (folder / "figures").iterdir()} == figures
    for file in (folder / "figures").glob("*.csv"):
        assert violations(file.stem, pd.read_csv(file)) == []


# One run of the walkthrough


@pytest.fixture(scope="module")
def walk(smoke_runs) -> Path:
    """The folder of ``00_walkthrough``'s run."""
    return smoke_runs.of("00_walkthrough")


@pytest.mark.notebook
def test_the_walkthrough_leaves_its_figures_and_shows_its_tables(walk):
    names = {"moves", "consistent", "beyond"}
    assert {p.name for p in (walk / "figures").iterdir()} == {
        f"00_{n}.{e}" for n in names for e in ("csv", "png", "svg")
    }
    page = (walk / "00_walkthrough.html").read_text(encoding="utf-8")
    for table in (walk / "figures").glob("*.csv"):
        assert violations(table.stem, pd.read_csv(table)) == []
    for said in (
        "in the pit of my stomach",
        "Evidence for",
        "supported",
        "76.42",
        "66.67",
        "29.412",
        "In the paper, a large model",
        NOTICE,
    ):
        assert said in page, said
    beyond = pd.read_csv(walk / "figures" / "00_beyond.csv")
    accuracy = beyond[beyond["metric"] == "accuracy"].set_index("set")["value"]
    assert len(accuracy) == 4 and accuracy["unknown diseases"] == 0


@pytest.mark.notebook
def test_the_walkthrough_counts_the_calls_of_all_its_runs(walk):
    found = manifest(walk)
    names = ("starter", "starter-dialogue", "starter-report", "unknown")
    sets = {f"sets/{name}" for name in names}
    assert found["ok"] and set(found["runs"]) == {"patient", "cases"} | sets
    cached = [facts["calls_from_cache"] for facts in found["runs"].values()]
    assert found["calls_made"] == 0 and found["calls_from_cache"] == sum(cached) > 100
    assert (
        found["runs"]["patient"]["benchmark"]["cases"] == 1
        and found["runs"]["cases"]["benchmark"]["cases"] == 240
    )


@pytest.mark.notebook
def test_the_walkthrough_publishes_figures_only(walk, repository):
    publish(walk, "00_walkthrough")
    assert (
        not (repository / "figures" / "reference").exists()
        and (repository / "figures" / "00_moves.png").is_file()
    )


# What goes wrong


def small_notebook(folder: Path, *cells: str, name: str = "09_small") -> None:
    """One more notebook in a folder, ``09_small``, whose only parameters are ``n`` and
    ``run_dir``."""
    folder.mkdir(exist_ok=True)
    made = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source) for source in ("n = 1\nrun_dir = None", *cells)]
    )
    made.cells[0].metadata["tags"] = ["parameters"]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    made.metadata["kernelspec"] = kernel
    nbformat.write(made, folder / f"{name}.ipynb")


@pytest.mark.notebook
@pytest.mark.parametrize("alone", [True, False])
def test_a_failing_cell_leaves_the_notebook_and_a_manifest_that_says_so(
    tmp_path, monkeypatch, alone
):
    monkeypatch.setattr(paths, "NOTEBOOKS", tmp_path / "notebooks")
    small_notebook(tmp_path / "notebooks", "print('came here', n)", "1 / 0", "print('never here')")
    with pytest.raises(PapermillExecutionError, match="ZeroDivisionError"):
        run_notebook("09_small", {"n": 7}, tmp_path / "out", alone=alone)
    found = manifest(tmp_path / "out")
    assert (found["ok"], found["parameters"], "calls_made" in found) == (False, {"n": 7}, False)
    assert "stopped" not in found
    made = nbformat.read(tmp_path / "out" / "09_small.ipynb", 4)
    outputs = json.dumps([cell.outputs for cell in code(made)])
    assert (
        "came here 7" in outputs and "ZeroDivisionError" in outputs and "never here" not in outputs
    )
    assert "ZeroDivisionError" in (tmp_path / "out" / "09_small.html").read_text(encoding="utf-8")


@pytest.mark.notebook
@pytest.mark.parametrize(
    ("end", "status", "words"),
    [
        (Gone, 4, ["08_gone stopped: no answer for 9 minutes", None]),
        (Waiting, 3, ["08_gone waits: no answer for 9 minutes"]),
    ],
)
def test_a_run_that_stops_or_waits_says_so_and_its_manifest_too(
    end, status, words, tmp_path, monkeypatch
):
    monkeypatch.setattr(paths, "NOTEBOOKS", tmp_path / "notebooks")
    monkeypatch.setattr(paths, "RUNS", tmp_path / "runs")
    monkeypatch.setattr(run_notebooks, "read_sections", lambda file: {})
    name = end.__name__
    gone = f"from trustlab.models.base import {name}\nraise {name}('no answer\\nfor 9 minutes', [])"
    small_notebook(tmp_path / "notebooks", gone, name="08_gone")
    small_notebook(tmp_path / "notebooks", "print('never here')")
    monkeypatch.setattr("trustlab.processes.processes", lambda n_jobs: 1)
    done = CliRunner().invoke(app, ["run", "all"])
    assert done.exit_code == status, done.output
    told = [f"trustlab: {w}" if w else "  the same command goes on where it stopped" for w in words]
    assert done.stderr.splitlines()[-len(told) :] == told  # after the progress bar
    found = manifest(tmp_path / "runs" / "08_gone")
    assert (found["ok"], found["stopped"]) == (False, "no answer\nfor 9 minutes")
    assert not (tmp_path / "runs" / "09_small").exists()
    with pytest.raises(end, match="for 9 minutes"):
        run_notebook("08_gone", {}, tmp_path / "out")


@pytest.mark.notebook
def test_notebooks_that_run_at_once_share_a_folder_for_runs_and_leave_nothing_behind(
    tmp_path, monkeypatch
):
    """The first ends while the second goes on, and the third begins after that."""
    monkeypatch.setattr(paths, "NOTEBOOKS", tmp_path / "notebooks")
    monkeypatch.setattr(paths, "RUNS", tmp_path / "runs")
    monkeypatch.setattr(run_notebooks, "read_sections", lambda file: {})
    monkeypatch.setattr("trustlab.processes.processes", lambda n_jobs: 2)
    for name in ("TRUSTLAB_RUNS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    told = "import os\nprint(os.environ['TRUSTLAB_RUNS'], os.environ['OMP_NUM_THREADS'])"
    for name, seconds in (("07_a", 0), ("08_b", 3), ("09_c", 0)):
        small_notebook(
            tmp_path / "notebooks", f"import time\ntime.sleep({seconds})", told, name=name
        )
    before = dict(os.environ)
    done = CliRunner().invoke(app, ["run", "all"])
    assert done.exit_code == 0, done.output
    assert dict(os.environ) == before
    for name in ("07_a", "08_b", "09_c"):
        assert manifest(tmp_path / "runs" / name)["ok"]
        cells = nbformat.read(tmp_path / "runs" / name / f"{name}.ipynb", 4).cells
        assert cells[-1].outputs[0].text == f"{tmp_path / 'runs'} 1\n"
    index = (tmp_path / "runs" / "index.html").read_text(encoding="utf-8")
    assert all(f'href="{name}/{name}.html"' in index for name in ("07_a", "08_b", "09_c"))


@pytest.mark.notebook
def test_a_manifest_holds_no_facts_of_an_earlier_run_in_the_same_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "NOTEBOOKS", tmp_path / "notebooks")
    small_notebook(tmp_path / "notebooks", "1 / 0")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "run.json").write_text('{"calls_made": 5}')
    (tmp_path / "out" / "figures").mkdir()
    for name in ("09_gone.png", "10_kept.png"):
        (tmp_path / "out" / "figures" / name).write_bytes(b"of an earlier run")
    with pytest.raises(PapermillExecutionError):
        run_notebook("09_small", {}, tmp_path / "out")
    assert "calls_made" not in manifest(tmp_path / "out")
    assert [p.name for p in (tmp_path / "out" / "figures").iterdir()] == ["10_kept.png"]


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


@pytest.mark.parametrize(
    "values", [{"smaples": 5}, {"n": "many"}, {"seed": True}, {"run_dir": "elsewhere"}], ids=str
)
def test_a_wrong_parameter_is_refused_before_anything_is_executed(values, tmp_path):
    with pytest.raises(ValueError, match=next(iter(values))):
        run_notebook("01_benchmark", values, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_unknown_notebook_is_refused():
    with pytest.raises(
        ValueError, match="there is no notebook '01_bench'; known are 00_walkthrough, 01_benchmark"
    ):
        notebook_path("01_bench")
    assert notebook_path("01_benchmark.ipynb") == notebook_path("01_benchmark")


def test_parameters_are_read_from_a_file_and_pairs_over_it(tmp_path):
    (tmp_path / "p.yml").write_text("n: 3\nmethods: paper\n")
    found = read_parameters(
        tmp_path / "p.yml", ["n=20", "levels=[1, 100]", "path=", "model=hf:a/b"]
    )
    assert found == {"n": 20, "methods": "paper", "levels": [1, 100], "path": "", "model": "hf:a/b"}
    (tmp_path / "empty.yml").write_text("# nothing\n")
    assert read_parameters(tmp_path / "empty.yml") == {}
    dated = read_parameters(None, ["model_options={template_options: {today: 2026-01-31}}"])
    assert dated["model_options"]["template_options"] == {"today": "2026-01-31"}


@each(
    ("pair", "meant"),
    [
        ("path=a #2, b.csv", "a #2, b.csv"),
        ("path=007", "007"),
        ("path=[007, 1e2]", ["007", "1e2"]),
        ("path='[draft] x.csv'", "[draft] x.csv"),
        ("path='a: b.csv'", "a: b.csv"),
        ("path=@a.csv", "@a.csv"),
        ("path=null", None),
        ("corpus=no", "no"),
        ("model=1", "1"),
        ("model=openai:", "openai:"),
        ("more={corpus: 010, samples: 010}", {"corpus": "010", "samples": 10}),
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
    if "#" not in value and value[-1] != ":" and value[0] not in "@[":
        (tmp_path / "p.yml").write_text(f"01_benchmark:\n  {name}: {value}\n", "utf-8-sig")
        assert read_parameters(tmp_path / "p.yml", (), "01_benchmark") == {name: meant}


@each(
    ("content", "pairs", "words"),
    [
        (b"n: 3\nsamples: 5\nn: 4\n", [], "p.yml: n is given twice"),
        (b"01_benchmark: {n: 3, n: 4}\n", [], "p.yml: n is given twice"),
        (b"path: /data/F\xe4lle.csv\n", [], "p.yml, encoding: received b'.* UTF-8 text"),
        (b"n: 3\n", ["n=4", "n=5"], "parameter n is given twice: 4, and '5'"),
    ],
)
def test_a_name_twice_and_another_encoding_are_refused(content, pairs, words, tmp_path):
    (tmp_path / "p.yml").write_bytes(content)
    with pytest.raises(ValueError, match=words):
        read_parameters(tmp_path / "p.yml", pairs, "01_benchmark")


@each(
    "name", ["model", "assessor", "doctor", "patient", "panel", "encoder", "retriever", "medconf"]
)
@each("value", [{"a": 1}, [], 3, True, [["a"]]])
def test_data_where_a_name_belongs_is_refused(name, value):
    with pytest.raises(ValueError, match=r"^\w+ is .*(it must be a|at least one|allowed are)"):
        check_parameters(notebook_path("01_benchmark"), {name: value})


def test_annotated_parameters_are_parameters(tmp_path):
    source = "n: int = 20\npath: str = None\nlevels = [5]\nshown: bool\n"
    cells = [nbformat.v4.new_code_cell(source, metadata={"tags": ["parameters"]})]
    own = tmp_path / "own.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), own)
    assert default_parameters(own) == {"n": 20, "path": None, "levels": [5]}
    assert read_parameters(None, ["path=007", "n=007"], str(own)) == {"path": "007", "n": 7}
    check_parameters(own, {"n": 3})


def test_of_a_file_with_sections_the_one_of_the_notebook_counts(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "NOTEBOOKS", tmp_path)
    for name in ("01_one", "02_two", "03_three"):
        (tmp_path / f"{name}.ipynb").touch()
    file = tmp_path / "p.yml"
    file.write_text("01_one: {n: 3, samples: 5}\n02_two:\n")
    assert read_parameters(file, ["n=4"], "01_one") == {"n": 4, "samples": 5}
    assert read_parameters(file, notebook="01_one.ipynb") == {"n": 3, "samples": 5}
    assert read_parameters(file, notebook="02_two") == {}
    assert read_sections(file) == {"01_one": {"n": 3, "samples": 5}, "02_two": {}}
    with pytest.raises(ValueError, match="no section for 03_three; it has 01_one, 02_two"):
        read_parameters(file, notebook="03_three")
    file.write_text("01_one: {n: 3}\n09_none: {n: 3}\n")
    with pytest.raises(ValueError, match="there is no notebook '09_none'"):
        read_parameters(file, notebook="01_one")
    file.write_text("01_one: 3\n")
    with pytest.raises(ValueError, match="holds int for 01_one; it must be a mapping"):
        read_parameters(file, notebook="01_one")


def test_a_flat_file_with_a_mapping_as_value_stays_flat(tmp_path):
    (tmp_path / "p.yml").write_text("n: {a: 3}\n")
    assert read_parameters(tmp_path / "p.yml", notebook="01_benchmark") == {"n": {"a": 3}}
    with pytest.raises(
        ValueError, match="must hold a section for each notebook; its first key is 'n'"
    ):
        read_sections(tmp_path / "p.yml")


def test_paths_in_a_list_are_made_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own").mkdir()
    assert run_notebooks._from_here("path", [None, "own"]) == [None, str(tmp_path / "own")]
    assert run_notebooks._from_here("model", ["embedded", "hf:own", "hf:a/b"]) == [
        "embedded",
        f"hf:{tmp_path / 'own'}",
        "hf:a/b",
    ]
    assert [
        run_notebooks._from_here(p, "own") for p in ("entailment", "medical_encoder", "methods")
    ] == [*[str(tmp_path / "own")] * 2, "own"]
    assert (
        run_notebooks._from_here("entailment", "a/b") == "a/b"
        and run_notebooks._from_here("entailment", None) is None
    )
    assert run_notebooks._from_here("corpus", ["own", None]) == [str(tmp_path / "own"), None]
    assert run_notebooks._from_here("wording", "hf:own") == f"hf:{tmp_path / 'own'}"
    assert run_notebooks._from_here("grader", "judge:hf:own") == f"judge:hf:{tmp_path / 'own'}"
    assert (
        run_notebooks._from_here("grader", "synonym") == "synonym"
        and run_notebooks._from_here("wording", None) is None
    )
    assert (
        run_notebooks._from_here("patient", "hf:own") == f"hf:{tmp_path / 'own'}"
        and run_notebooks._from_here("patient", None) is None
    )
    assert run_notebooks._from_here("corpora", {"mine": "own"}) == {"mine": str(tmp_path / "own")}
    asked = {"medqa": {"ids": "own"}, "meditod": {"split": "own"}}
    assert run_notebooks._from_here("data_options", asked) == {
        "medqa": {"ids": str(tmp_path / "own")},
        "meditod": {"split": "own"},
    }


def test_a_page_with_a_formula_loads_nothing(tmp_path):
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# A\n$x^2$")])
    nbformat.write(made, tmp_path / "a.ipynb")
    assert loaded(write_html(tmp_path / "a.ipynb").read_text(encoding="utf-8")) == []


def views_of_widgets() -> list[nbformat.NotebookNode]:
    """A progress bar, something with a page beside its widget, and something with a picture."""
    bar = nbformat.v4.new_output(
        "display_data", data={WIDGET: {"model_id": "1"}, "text/plain": "0%"}
    )
    beside = {"text/html": "<p>a still page</p>", "text/plain": "Explorer"}
    page = nbformat.v4.new_output(
        "execute_result", data={WIDGET: {"model_id": "2"}, **beside}, execution_count=1
    )
    picture = nbformat.v4.new_output(
        "display_data", data={WIDGET: {"model_id": "3"}, "image/png": "iVBORw0KGgo="}
    )
    return [bar, page, picture]


def test_of_a_widget_only_the_page_or_picture_beside_it_is_kept():
    given = [nbformat.v4.new_output("stream", name="stdout", text="x"), *views_of_widgets()]
    kept = without_progress(given)
    assert [sorted(o.get("data", {})) for o in kept] == [
        [],
        ["text/html", "text/plain"],
        ["image/png"],
    ]
    assert kept[0] == given[0] and kept[1].output_type == "execute_result"


def test_the_html_copy_shows_the_page_beside_a_widget_and_no_progress_bar(tmp_path):
    cell = nbformat.v4.new_code_cell("x", outputs=views_of_widgets())
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "a.ipynb")
    html = write_html(tmp_path / "a.ipynb").read_text(encoding="utf-8")
    assert "<p>a still page</p>" in html and "data:image/png;base64,iVBORw0KGgo=" in html
    assert "widget-view" not in html and "0%</pre>" not in html


def test_publishing_keeps_the_page_beside_a_widget(tmp_path, repository):
    small_notebook(repository / "notebooks", "x")
    made = nbformat.read(repository / "notebooks" / "09_small.ipynb", 4)
    code(made)[-1].outputs = views_of_widgets()
    (tmp_path / "run").mkdir()
    nbformat.write(made, tmp_path / "run" / "09_small.ipynb")
    publish(tmp_path / "run", "09_small")
    published = nbformat.read(repository / "notebooks" / "09_small.ipynb", 4)
    nbformat.validate(published)
    assert [sorted(o.data) for o in code(published)[-1].outputs] == [
        ["text/html", "text/plain"],
        ["image/png"],
    ]
    assert problems(published) == []


# As committed


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


@pytest.mark.parametrize("name", NAMES)
def test_a_committed_notebook_is_fit_to_read(name):
    notebook = nbformat.read(notebook_path(name), 4)
    nbformat.validate(notebook)
    title = notebook.cells[0].source.splitlines()[0]
    assert notebook.cells[0].cell_type == "markdown"
    assert title.startswith("# ") and title.endswith("?"), title
    assert NOTICE.rstrip(".") in notebook.cells[0].source
    assert sum("parameters" in cell.metadata.get("tags", []) for cell in notebook.cells) == 1
    assert "run_dir" in default_parameters(notebook_path(name))
    assert problems(notebook) == []
    assert notebook.metadata["kernelspec"]["name"] == "python3"


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


def test_every_notebook_file_can_be_run_by_name():
    assert [p.stem for p in sorted(NOTEBOOKS.glob("*.ipynb"))] == NAMES
    assert ROOT / "notebooks" == NOTEBOOKS
