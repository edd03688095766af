"""The package away from its checkout: what importing loads, where runs go, wheel and workbench."""

from __future__ import annotations

import json
import os
import posixpath
import re
import socket
import subprocess
import sys
import time
import zipfile
from contextlib import closing, suppress
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import nbformat
import pytest
from saying import saying, says
from typer.testing import CliRunner

import trustlab as tl
from trustlab.cli.commands import app
from trustlab.cli.run_notebooks import default_parameters, notebook_names, own_kernel
from trustlab.paths import ROOT

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


UNUSED = "torch transformers sentence_transformers openai papermill matplotlib seaborn sklearn"


def test_a_small_table_is_scored_without_what_only_others_need(tmp_path):
    rows = [{"case_id": k, "truth": "Influenza", "answer": "Influenza", "ce": 80} for k in "abc"]
    (tmp_path / "r.jsonl").write_text("\n".join(map(json.dumps, rows)))
    code = f"""
import sys
from typer.testing import CliRunner
from trustlab.cli.commands import app
done = CliRunner().invoke(app, ["score", "r.jsonl"])
print(done.exit_code, [m for m in {UNUSED.split()} if m in sys.modules])"""
    assert python(code, tmp_path) == "0 []"
    assert (tmp_path / "runs" / "score-r" / "metrics.csv").is_file()


def test_a_command_draws_whatever_matplotlib_of_the_user_s_is_set_to(tmp_path):
    rc = "text.usetex: True\nbackend: QtAgg\nfigure.constrained_layout.use: True\n"
    (tmp_path / "matplotlibrc").write_text(rc)
    lines = (ROOT / "data" / "workbench" / "replies.jsonl").read_text().splitlines()
    rows = [json.loads(line) | {"samples": None, "sample_logprobs": None} for line in lines]
    made = [row | {"case_id": f"{row['case_id']}-{k}"} for k in range(3) for row in rows]
    (tmp_path / "r.jsonl").write_text("\n".join(map(json.dumps, made)))
    code = """
from typer.testing import CliRunner
from trustlab.cli.commands import app
done = CliRunner().invoke(app, ["score", "r.jsonl", "-p", "methods=[ce]"])
print(done.exit_code)"""
    assert python(code, tmp_path, MPLBACKEND="no such") == "0"
    assert (tmp_path / "runs" / "score-r" / "figures" / "score_auroc.png").is_file()


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
    assert again.exit_code == 2 and says(again.stderr, tmp_path / "bench", "already")
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
def test_a_notebook_of_one_s_own_runs_where_the_command_is_given(tmp_path, monkeypatch):
    own_notebook(
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
    assert (tmp_path / "told.txt").read_text() == f"2 y {tmp_path / 'runs'}"
    manifest = json.loads((tmp_path / "runs" / "mine" / "manifest.json").read_text())
    assert manifest["ok"] and manifest["parameters"] == {"mine": "y"}
    assert (tmp_path / "runs" / "mine" / "mine.html").is_file()
    for words, told in (
        (["-p", "nn=3"], ("mine", "'nn'", "n")),
        (["-p", "n=0"], ("n", 0, "whole")),
    ):
        refused = CliRunner().invoke(app, ["run", "here/mine.ipynb", *words])
        assert refused.exit_code == 2 and says(refused.stderr, told), refused.stderr
    planned = CliRunner().invoke(app, ["plan", "here/mine.ipynb"])
    assert planned.exit_code == 2 and "a notebook of your own" in planned.stderr


def kernelspec(folder: Path, name: str = "python3") -> None:
    """The kernel of another Python."""
    (folder / "kernels" / name).mkdir(parents=True)
    spec = {"argv": ["/another/python", "-f", "{connection_file}"], "env": {"WHOSE": "another"}}
    spec |= {"display_name": "Python 3", "language": "python"}
    (folder / "kernels" / name / "kernel.json").write_text(json.dumps(spec))


@pytest.mark.parametrize("where", ["JUPYTER_PATH", "JUPYTER_DATA_DIR", "HOME", "as Python3", ""])
def test_a_kernel_is_of_this_python_whatever_kernelspecs_there_are(where, tmp_path, monkeypatch):
    below = ".local/share/jupyter" if where == "HOME" else ""
    kernelspec(tmp_path / below, "Python3" if where == "as Python3" else "python3")
    monkeypatch.setenv(where if where.isupper() else "JUPYTER_PATH", str(tmp_path))
    if not where:
        monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "0")
    kernel = own_kernel({"RUNS": "/a $HOME/${b}"})(kernel_name="python3").kernel_spec
    assert kernel.argv[0] == sys.executable and kernel.language == "python"
    assert kernel.env == {"RUNS": "/a $$HOME/$${b}"}  # what Jupyter reads as it is meant


@pytest.mark.notebook
def test_nothing_of_the_user_s_jupyter_runs_in_a_notebook(tmp_path, monkeypatch):
    kernelspec(tmp_path / "jupyter")
    startup = tmp_path / "ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    breaks = "raise SystemExit('of the user')"
    (startup / "00.py").write_text(breaks)
    (tmp_path / "first.py").write_text("whose = 'the user'")
    own_notebook(
        tmp_path / "mine.ipynb",
        "n = 1",
        "import json, os, sys\nimport matplotlib.pyplot as plt\nfrom trustlab import paths\n"
        "print(plt.figure())\n"
        "told = [sys.executable, 'whose' in globals(), os.environ.get('WHOSE'), str(paths.RUNS)]\n"
        "open('told.json', 'w').write(json.dumps(told))",
    )
    runs = tmp_path / "$HOME runs"
    for name, value in {
        "JUPYTER_PATH": tmp_path / "jupyter",
        "IPYTHONDIR": tmp_path / "ipython",
        "PYTHONSTARTUP": tmp_path / "first.py",
        "MPLBACKEND": "TkAgg",
        "TRUSTLAB_RUNS": runs,
    }.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.setattr("trustlab.paths.RUNS", runs)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["run", "mine.ipynb"])
    assert done.exit_code == 0, done.output
    told = json.loads((tmp_path / "told.json").read_text())
    assert told == [sys.executable, False, None, str(runs)]


def test_what_is_no_notebook_is_refused_with_the_reason(tmp_path):
    bare = own_notebook(tmp_path / "bare.ipynb", "n = 2", "1", tag="other")
    odd = own_notebook(tmp_path / "odd.ipynb", "n = len('ab')", "1")
    (tmp_path / "text.ipynb").write_text("no notebook")
    for file, told in (
        (bare, (bare, "'parameters'")),
        (odd, "literals"),
        (tmp_path / "text.ipynb", (tmp_path / "text.ipynb", "no notebook")),
    ):
        with pytest.raises(ValueError, match=saying(told)):
            default_parameters(file)


@pytest.mark.slow
def test_jupyterlab_starts_at_the_notebooks_with_the_documentation_in_reach(tmp_path):
    """As ``make lab`` starts it, asked where its links lead."""
    recipe = (ROOT / "Makefile").read_text().partition("\nlab: ")[2].splitlines()[1]
    options = recipe.partition("jupyter lab")[2].split()
    assert options and not [word for word in options if not word.startswith("--")]
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options += ["--no-browser", "--allow-root", "--IdentityProvider.token=x", f"--port={port}"]
    command = [sys.executable, "-m", "jupyterlab", *options]
    env = os.environ | {"HOME": str(tmp_path), "JUPYTER_RUNTIME_DIR": str(tmp_path)}
    process = subprocess.Popen(command, cwd=ROOT, env=env, stderr=subprocess.DEVNULL)

    def answer(path: str) -> tuple[str, str]:
        with urlopen(f"http://127.0.0.1:{port}/{path}?token=x") as reply:
            return reply.url, reply.read().decode()

    try:
        for _ in range(120):
            with suppress(URLError):
                answer("api/status")
                break
            time.sleep(0.5)
        assert "/lab/tree/notebooks" in answer("")[0]
        for name in ("01_benchmark", "lessons/1_tokens"):
            book = json.loads(answer(f"api/contents/notebooks/{name}.ipynb")[1])["content"]
            text = "".join(cell["source"] for cell in book["cells"])
            links = [link.partition("#")[0] for link in re.findall(r"\]\((\.\./[^)]+)\)", text)]
            for link in links:
                folder = posixpath.dirname(f"notebooks/{name}")
                path = posixpath.normpath(posixpath.join(folder, link))
                assert json.loads(answer(f"api/contents/{path}")[1])["path"] == path
        assert links
    finally:
        process.terminate()
        process.wait()


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
