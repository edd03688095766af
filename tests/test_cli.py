"""The command line: what it prints, and that bad input ends in one line that helps."""

from __future__ import annotations

import pytest
from asking import ask
from each import each
from fake_model import FakeEncoder, FakeModel, made_cases
from papermill.exceptions import PapermillExecutionError
from typer.testing import CliRunner

from trustlab.cli import app
from trustlab.datasets import load_cases
from trustlab.experiment import benchmark
from trustlab.models.base import Gone, Waiting
from trustlab.models.cache import CachedModel
from trustlab.paths import ROOT, RUNS, in_shard, save_json, shard_of
from trustlab.run_notebooks import has_cases, notebook_names


def trustlab(*words: object, status: int = 0) -> str:
    """What the command prints on the stream of its outcome; the status must be the expected one."""
    result = CliRunner().invoke(
        app, [str(word) for word in words], env={"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}
    )
    assert result.exit_code == status, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert "Traceback" not in result.output
    return result.stderr if status else result.stdout


# Plan


def test_a_plan_counts_and_prices():
    asked = ("-p", "n=2", "-p", "levels=[1, 100]", "-p", "samples=5")
    rates = ("--usd-in", 1000, "--usd-out", 2000)
    lines = trustlab("plan", "01_benchmark", *asked, *rates).splitlines()
    rows = {words[0]: [int(w) for w in words[1:]] for words in map(str.split, lines[1:10])}
    n, tokens_in, tokens_out = (sum(row[i] for row in rows.values()) for i in range(3))
    told = f"in all {n} replies, about {tokens_in:,} tokens in and at most {tokens_out:,} out"
    assert n == 64 and lines[10] == told
    dollars = (tokens_in * 1000 + tokens_out * 2000) / 1e6
    assert lines[11] == f"about {dollars:,.2f} US dollars at your rates, at most"


# Running all


def test_run_all_gives_each_notebook_its_section_or_its_defaults(tmp_path, monkeypatch):
    given = {"01_benchmark": {"n": 3}}
    monkeypatch.setattr("trustlab.run_notebooks.read_sections", lambda file: given)
    asked = {}
    monkeypatch.setattr(
        "trustlab.cli._executed", lambda name, values, *_: asked.update({name: values}) or tmp_path
    )
    (tmp_path / "manifest.json").write_text("{}")
    trustlab("run", "all")
    assert asked == {name: given.get(name, {}) for name in notebook_names()}
    assert next(iter(asked)) == "00_walkthrough"  # the first to look at
    given["01_benchmark"]["smaples"] = 3
    asked.clear()
    assert "01_benchmark has no parameter 'smaples'" in trustlab("run", "all", status=2)
    assert not asked


@each(
    ("raised", "status", "words"),
    [
        (PapermillExecutionError(1, 1, "1 / 0", "ZeroDivisionError", "by 0", []), 1, "by 0"),
        (Waiting("3 requests wait"), 3, "3 requests wait"),
        (Gone("no answer", []), 4, "no answer"),
    ],
)
def test_each_end_has_its_exit_code_and_run_all_begins_no_other_notebook(raised, status, words):
    begun = []

    def run_notebook(name, values, *_):
        begun.append(name)
        raise raised

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("trustlab.run_notebooks.run_notebook", run_notebook)
        assert words in trustlab("run", "01_benchmark", status=status)
        assert words in trustlab("run", "all", status=status)
    assert begun[0] == "01_benchmark" and "00_walkthrough" in begun[1:] and len(begun) <= 3
    assert f"\n| {status} | " in (ROOT / "docs" / "python.md").read_text(encoding="utf-8")


@each("error", [ValueError("n is many"), ImportError("pip install it"), OSError("no such disk")])
def test_run_all_names_a_notebook_that_is_refused_and_goes_on(error, tmp_path, monkeypatch):
    def run_notebook(name, *_):
        if name[:2] == "01":
            raise error
        (tmp_path / name).mkdir()
        save_json({}, tmp_path / name / "manifest.json")
        return tmp_path / name

    monkeypatch.setattr("trustlab.run_notebooks.run_notebook", run_notebook)
    done = CliRunner().invoke(app, ["run", "all"])
    assert done.exit_code == 2
    told = [f"01_benchmark: {error}", "with errors: 01_benchmark"]
    assert done.stderr.splitlines() == [f"trustlab: {line}" for line in told]
    assert done.stdout.count("replies asked of the model") == len(notebook_names()) - 1


# Bad input


@each("command", ["run", "plan"])
@each(
    ("words", "message"),
    [
        (["99_nothing"], "there is no notebook '99_nothing'; known are 00_walkthrough, "),
        (["01_benchmark", "-p", "smaples=3"], "has no parameter 'smaples'; did you mean samples?"),
        (["01_benchmark", "-p", "n=many"], "n is 'many'; it must be a whole number, at least 1"),
        (["01_benchmark", "-p", "n"], "parameter 'n' is not of the form name=value"),
    ],
)
def test_bad_input_is_refused_before_anything_runs(command, words, message):
    assert message in trustlab(command, *words, status=2)
    assert not (RUNS / "01_benchmark").exists()


def test_a_notebook_that_asks_no_model_cannot_be_planned_or_shared_out():
    assert "06_published_tables asks no model" in trustlab("plan", "06_published_tables", status=2)
    refused = trustlab("run", "06_published_tables", "--shard", "1/2", status=2)
    assert "06_published_tables loads no cases" in refused


@each("shard", ["", "2", "0/3", "4/3", "a/3"])
def test_a_shard_is_one_of_several(shard):
    wanted = "it must be i/n, the i-th of n shares, such as 1/3"
    if shard:
        assert wanted in trustlab("run", "01_benchmark", "--shard", shard, status=2)
    with pytest.raises(ValueError, match=wanted):
        shard_of(shard)


def test_a_shard_without_cases_ends_well(monkeypatch):
    monkeypatch.setattr("trustlab.run_notebooks.run_notebook", None)  # nothing is run
    (case,) = load_cases("starter", n=1)
    (there,) = [i for i in range(1, 51) if in_shard(case.case_id, f"{i}/50")]
    assert has_cases("01_benchmark", {"n": 1}, f"{there}/50")
    empty = f"{there % 50 + 1}/50"
    told = trustlab("run", "01_benchmark", "-p", "n=1", "--shard", empty)
    assert told == f"01_benchmark: shard {empty} has no cases; nothing to do\n"


# Cache


def test_the_cache_travels_in_one_file(tmp_path):
    cached = CachedModel(FakeModel(), tmp_path / "a.sqlite")
    ask(benchmark, made_cases(2), [cached], ["poc"], [1], encoder=FakeEncoder())
    cached.close()
    out = tmp_path / "replies.jsonl.gz"
    assert (
        trustlab("cache", "export", out, "--path", tmp_path / "a.sqlite")
        == f"32 replies written to {out}\n"
    )
    assert (
        trustlab("cache", "import", out, "--path", tmp_path / "b.sqlite")
        == f"{out}: 32 new, 0 known, 0 conflicting\n"
    )
    unasked = FakeModel()
    replayed = CachedModel(unasked, tmp_path / "b.sqlite", offline=True)
    ask(benchmark, made_cases(2), [replayed], ["poc"], [1], encoder=FakeEncoder())
    assert unasked.asked == []
