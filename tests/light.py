"""``python tests/light.py PART ...`` does what works without the extra ``local``, all parts by
default, in the Python that runs it and in the current folder. ``make fresh`` runs it in an
environment of the wheel alone, and ``tests/test_light.py`` where torch is hidden.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("TRUSTLAB_RUNS", str(Path("runs").resolve()))

import nbformat
from openai_server import KEY, Server
from typer.testing import CliRunner, Result

import trustlab as tl
from trustlab import paths
from trustlab.cli.commands import app

COMMAND = 'pip install "trustlab[local]"'
PARTS: dict[str, Callable[[], object]] = {}


def part(function: Callable[[], object]) -> Callable[[], object]:
    PARTS[function.__name__] = function
    return function


def trustlab(*words: str, code: int = 0) -> Result:
    """A command's output; it must end with this exit code."""
    done = CliRunner().invoke(app, words)
    assert done.exit_code == code, (words, done.output, done.exception)
    return done


@part
def commands() -> None:
    """A table scored, a plan, a page of an answer, two runs compared."""
    replies = str(paths.DATA / "workbench" / "replies.jsonl")
    trustlab("score", replies)
    run = tl.load_run(paths.RUNS / "score-replies")
    table = run.confidence.set_index("method")
    assert table.loc[["asp", "poc", "ce"], "missing"].eq("").any()
    why = f"the sentence encoder needs sentence-transformers: {COMMAND}"
    assert set(table.loc["semantic_similarity", "missing"]) == {why}
    trustlab("score", replies, "-p", "methods=[asp, ce]", "--out", "two")
    for model in ("embedded", "hf:somebody/something", "openai:something"):
        planned = trustlab("plan", "01_benchmark", "-p", "n=4", "-p", f"model={model}")
        assert "replies, about" in planned.output, planned.output
    trustlab("show", str(paths.DATA / "walkthrough" / "patient"), "--out", "page.html")
    trustlab("show", str(paths.RUNS / "score-replies"), "--all", "--out", "pages")
    trustlab("compare", str(paths.DATA / "walkthrough" / "cases"),
             str(paths.DATA / "walkthrough" / "sets" / "starter"))  # fmt: skip
    assert "semantic_similarity" in trustlab("methods").output


@part
def server() -> None:
    """A model behind a server; what needs an encoder is refused before it is asked."""
    cases = tl.load_cases("starter", n=2)
    os.environ["OPENAI_API_KEY"] = KEY
    with Server() as answering:
        model = tl.open_model("openai:toy", base_url=answering.url)
        setup = tl.Setup(trial=False, quiet=True, samples=2)
        by_local = setup.with_(assessor="embedded")
        refused(lambda: tl.benchmark(cases, model, "variants", [100], setup), "semantic_similarity")
        refused(lambda: tl.benchmark(cases, model, ["medconf"], [100], by_local), "embedded")
        assert not answering.chats()
        run = tl.benchmark(cases, model, ["asp", "poc", "ce"], [100], setup)
        assert answering.chats() and len(run.answers) == 2
        assert run.confidence["missing"].eq("").any() and len(tl.metrics_table(run))


def refused(call: Callable[[], object], *words: str) -> None:
    """The call is refused in one line that ends with the command."""
    try:
        call()
    except ImportError as error:
        line = str(error)
        assert line.endswith(COMMAND) and "\n" not in line, line
        assert all(word in line for word in words), line
    else:
        raise AssertionError(f"not refused: {words}")


@part
def refusals() -> None:
    """What needs the extra says so with the command."""
    for model in ("embedded", "embedded-closed", "hf:somebody/something"):
        refused(lambda model=model: tl.open_model(model), model)
        done = trustlab("try", model, code=2)
        assert COMMAND in done.stderr, done.stderr
    refused(lambda: tl.Encoder().encode(["a text that nobody keeps"]), "encoder")
    refused(lambda: tl.open_grader("encoder"), "encoder")
    for choice in ("encoder", "medical_encoder", "entailment"):
        choices = {choice: "somebody/something"}
        refused(lambda choices=choices: tl.benchmark([], "embedded", setup=tl.Setup(**choices)),
                choice)  # fmt: skip


@part
def lessons() -> None:
    """The code of every lesson, with the answers that come along."""
    import matplotlib.pyplot as plt

    folder = paths.NOTEBOOKS / "lessons"
    sys.path.insert(0, str(folder))
    for file in sorted(folder.glob("*.ipynb")):
        variables: dict[str, object] = {}
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            for cell in nbformat.read(file, as_version=4).cells:
                if cell.cell_type == "code":
                    exec(compile(cell.source, f"{file.stem}, {cell.id}", "exec"), variables)
        plt.close("all")


if __name__ == "__main__":
    there = [name for name in ("torch", "transformers", "sentence_transformers") if find_spec(name)]
    assert not there, f"{there} are installed: this is no light environment"
    for name in sys.argv[1:] or PARTS:
        PARTS[name]()
        print(f"{name}: works")
