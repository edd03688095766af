"""The command line: what it prints, and that bad input ends in one line that helps."""

from __future__ import annotations

import pytest
from asking import ask
from each import each
from fake_model import FakeEncoder, FakeModel, made_cases
from papermill.exceptions import PapermillExecutionError
from saying import saying, says
from typer.testing import CliRunner

from trustlab.cli.commands import app
from trustlab.cli.run_notebooks import notebook_names
from trustlab.models.cache import CachedModel
from trustlab.paths import ROOT, RUNS, save_json
from trustlab.runs import workbench
from trustlab.runs.experiment import benchmark
from trustlab.settings import Setup
from trustlab.stops import Gone, Waiting


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
    assert n == 64 and says(lines[10], n, f"{tokens_in:,}", f"{tokens_out:,}")
    dollars = (tokens_in * 1000 + tokens_out * 2000) / 1e6
    assert says(lines[11], f"{dollars:,.2f} US dollars", "at most")


def test_a_plan_takes_a_file_and_pairs_and_counts_every_data_set_and_model(tmp_path):
    (tmp_path / "p.yml").write_text("n: 3\nsamples: 4\nlevels: [1]\nmethods: [poc]\n")
    given = ("plan", "01_benchmark", "--params", tmp_path / "p.yml")
    assert "in all 21 replies" in trustlab(*given, "-p", "samples=6")  # 3 answers, 3 x 6 samples
    more = ("-p", "dataset=[starter, starter-dialogue]", "-p", "model=[embedded, embedded-closed]")
    told = trustlab(*given, *more)
    assert "in all 60 replies" in told and "dollars" not in told


def test_a_plan_of_all_says_what_is_lacking_and_counts_what_can_be_counted(tmp_path):
    file = tmp_path / "p.yml"
    file.write_text(
        "needs: {who: a model, from: a folder}\n"
        "01_benchmark: {model: $who, grader: $who, n: 2, levels: [1], methods: [poc], samples: 4}\n"
        "05_trust_indices: {dataset: ddxplus, path: $from}\n"
        "departures: [{where: here, what: another way, why: there is none}]\n"
    )
    lines = trustlab("plan", "--params", file, "--usd-in", 1000, "--usd-out", 0).splitlines()
    assert says(lines[0], "a model", "-p who=VALUE") and says(lines[1], "a folder", "-p from=VALUE")
    assert any(says(line, "05_trust_indices", "without from") for line in lines)
    rows = [line.split() for line in lines if line.split()[0] in ("01_benchmark", "in")]
    assert [row[-5] for row in rows] == ["12", "12"]  # 2 answers, 2 x 4 samples, 2 verdicts
    assert rows[0][-4:] == rows[1][-4:]
    assert float(rows[0][-1]) == round(int(rows[0][-4]) / 1000, 2)
    assert says(lines[-1], "here", "another way", "there is none")
    given = trustlab("plan", "--params", file, "-p", "who=embedded", "-p", "grader=exact")
    assert "who is needed" not in given and "from is needed" in given


# Running all


def test_run_all_gives_each_notebook_its_section_or_its_defaults(tmp_path, monkeypatch):
    given = {"01_benchmark": {"n": 3}}
    monkeypatch.setattr("trustlab.cli.run_notebooks.read_sections", lambda _: (given, {}, []))
    asked = {}
    monkeypatch.setattr(
        "trustlab.cli.commands._executed",
        lambda name, values, *_: asked.update({name: values}) or tmp_path,
    )
    (tmp_path / "manifest.json").write_text("{}")
    trustlab("run", "all")
    assert asked == {name: given.get(name, {}) for name in notebook_names()}
    assert next(iter(asked)) == "00_walkthrough"  # the first to look at
    trustlab("run", "all", "-p", "n=2", "-p", "max_turns=3")
    assert asked["01_benchmark"] == {"n": 2} and asked["04_consultation"]["max_turns"] == 3
    assert asked["06_published_tables"] == {}
    told = trustlab("run", "all", "-p", "smaples=2", status=2)
    assert says(told, "'smaples'", "samples")
    given["01_benchmark"]["smaples"] = 3
    asked.clear()
    assert says(trustlab("run", "all", status=2), "01_benchmark", "'smaples'")
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
        patch.setattr("trustlab.cli.run_notebooks.run_notebook", run_notebook)
        assert words in trustlab("run", "01_benchmark", status=status)
        assert words in trustlab("run", "all", status=status)
    assert begun[0] == "01_benchmark" and "00_walkthrough" in begun[1:] and len(begun) <= 3
    assert f"\n| {status} | " in (ROOT / "docs" / "python.md").read_text(encoding="utf-8")


def test_run_all_goes_on_after_a_refusal_or_where_too_little_was_read(tmp_path, monkeypatch):
    refused: dict[str, Exception] = {"01": ValueError("n is many"), "03": OSError("no such disk")}

    def run_notebook(name, *_):
        if name[:2] in refused:
            raise refused[name[:2]]
        few = ["m: only 1 of 9"] if name[:2] == "02" else []
        (tmp_path / name).mkdir(exist_ok=True)
        save_json({"nothing_claimed": few}, tmp_path / name / "manifest.json")
        return tmp_path / name

    monkeypatch.setattr("trustlab.cli.run_notebooks.run_notebook", run_notebook)
    monkeypatch.setattr("trustlab.processes.processes", lambda _: 1)
    done = CliRunner().invoke(app, ["run", "all"])
    assert done.exit_code == 2
    told = ["01_benchmark: n is many", "03_ablations: no such disk"]
    assert set(done.stderr.splitlines()) >= {f"trustlab: {line}" for line in told}
    assert done.stdout.count("replies asked of the model") == len(notebook_names()) - 2
    refused.clear()
    done = CliRunner().invoke(app, ["run", "all"])
    assert done.exit_code == 5 and "[10 of 10] " in done.output
    assert says(done.output, "nothing is claimed", "m", "1 of 9")


def test_an_error_after_a_run_is_no_refusal(tmp_path, monkeypatch):
    (tmp_path / "manifest.json").write_text("{}")
    monkeypatch.setattr("trustlab.cli.run_notebooks.run_notebook", lambda *_: tmp_path)

    def write_index(runs):
        raise OSError("the disk is full")

    monkeypatch.setattr("trustlab.reports.html.index.write_index", write_index)
    told = trustlab("run", "01_benchmark", status=1)
    assert says(told, "trustlab:", "it ran", "the disk is full")


# Bad input


@each("command", ["run", "plan"])
@each(
    ("words", "message"),
    [
        (["99_nothing"], ("'99_nothing'", "00_walkthrough", "01_benchmark")),
        (["01_benchmark", "-p", "smaples=3"], ("'smaples'", "samples")),
        (["01_benchmark", "-p", "run_dir=x"], ("01_benchmark", "'run_dir'")),
        (["01_benchmark", "-p", "n=many"], ("n", "'many'", 1)),
        (["01_benchmark", "-p", "path=a\udcff"], ("path", "UTF-8")),
        (["01_benchmark", "-p", "n"], ("'n'", "name=value")),
    ],
)
def test_bad_input_is_refused_before_anything_runs(command, words, message):
    assert says(trustlab(command, *words, status=2), message)
    assert not (RUNS / "01_benchmark").exists()


def test_a_notebook_that_asks_no_model_cannot_be_planned_or_spread():
    refused = trustlab("plan", "06_published_tables", status=2)
    assert says(refused, "06_published_tables", "no model")
    refused = trustlab("run", "06_published_tables", "--cluster", "local:2", status=2)
    assert says(refused, "06_published_tables", "'cluster'")


def test_without_dask_a_cluster_names_the_command(monkeypatch):
    monkeypatch.setattr(workbench, "find_spec", lambda library: None)
    refused = trustlab("run", "01_benchmark", "--cluster", "local:2", status=2)
    assert says(refused, "local:2", 'pip install "trustlab[cluster]"')


@each("cluster", ["", "2", "local:0", "local", "http://a:1", "tcp://a", "tcp://me:pw@a:1"])
def test_a_cluster_is_a_scheduler_s_address_or_some_workers_here(cluster, monkeypatch):
    if "@" not in cluster:
        refused = trustlab("run", "01_benchmark", "--cluster", cluster, status=2)
        assert says(refused, repr(cluster), "tcp://HOST:PORT", "local:N")
    with pytest.raises(ValueError, match=saying("cluster")):
        Setup(cluster=cluster)
    if cluster:  # set to nothing it is none
        monkeypatch.setenv("TRUSTLAB_CLUSTER", cluster)
        with pytest.raises(ValueError, match=saying("cluster")):
            Setup()


# Cache


def test_the_cache_travels_in_one_file(tmp_path):
    cached = CachedModel(FakeModel(), tmp_path / "a.sqlite")
    ask(benchmark, made_cases(2), [cached], ["poc"], [1], encoder=FakeEncoder())
    cached.close()
    out, a, b = (tmp_path / name for name in ("replies.jsonl.gz", "a.sqlite", "b.sqlite"))
    told = trustlab("cache", "export", out, "--path", a)
    assert told == f"32 replies written to {out}\n"
    told = trustlab("cache", "import", out, "--path", b)
    assert told == f"{out}: 32 new, 0 known, 0 conflicting\n"
    told = trustlab("cache", "import", out, a, "--path", b)
    assert told == "".join(f"{file}: 0 new, 32 known, 0 conflicting\n" for file in (out, a))
    unasked = FakeModel()
    replayed = CachedModel(unasked, b, offline=True)
    ask(benchmark, made_cases(2), [replayed], ["poc"], [1], encoder=FakeEncoder())
    assert unasked.asked == []
