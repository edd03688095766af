"""No run is believed that was not read: counts, denominators, pages and exit codes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
import pytest
from asking import ask
from bs4 import BeautifulSoup
from fake_model import made_cases
from gate_models import KINDS, NASTY, Manner
from saying import saying, says
from typer.testing import CliRunner

import trustlab as tl
from trustlab.cli.commands import app
from trustlab.parsing.counts import KINDS as COUNTED
from trustlab.parsing.counts import too_few, why_few
from trustlab.reports.html.opening import BEGIN, END, accuracies
from trustlab.runs.folder.saved import load_run
from trustlab.runs.formatted import not_read, percent, read_line

METHODS = ["ce", "poc", "word_count"]
LEVELS = [20, 60, 100]
pytestmark = pytest.mark.filterwarnings("ignore:.*could not be read")


def ran(manner: str, **choices: Any) -> tl.Run:
    study: Any = tl.benchmark
    return ask(study, made_cases(12), [Manner(manner)], METHODS, LEVELS, samples=3, **choices)


def counts(run: tl.Run) -> dict[str, dict[str, int]]:
    (found,) = run.parameters["replies_read"].values()
    return found


def test_every_reply_is_one_of_four() -> None:
    for manner in ("plain", "chatty", "never", "cut"):
        for purpose, n in counts(ran(manner)).items():
            assert set(n) == set(COUNTED)
            assert n["asked"] == n["cut"] + n["read"] + n["placeholder"] + n["unread"], purpose
            assert n["chat"] <= n["read"]


def test_a_model_that_answers_as_asked_is_read_to_the_last() -> None:
    run = ran("plain")
    assert counts(run)["samples"] == dict.fromkeys(COUNTED, 0) | {"asked": 108, "read": 108}
    assert read_line(run.parameters["replies_read"]) == "100 % of 180 replies read"
    table = tl.metrics_table(run)
    assert not table["metric"].str.startswith("accuracy_").any() and not not_read({"m": {}})


def test_what_is_not_read_enough_is_not_claimed_and_the_rest_is(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=saying("'ce'", "nothing is claimed")):
        run = ran("chatty", run_dir=tmp_path)
    n = counts(run)
    assert n["diagnosis"]["chat"] == n["diagnosis"]["read"] > 0.5 * n["diagnosis"]["asked"]
    assert 0 < n["ce"]["read"] < 0.5 * n["ce"]["asked"]
    why = f"only {n['ce']['read']} of {n['ce']['asked']} replies to 'ce' could be read"
    for each in (run, load_run(tmp_path)):
        table = tl.metrics_table(each, min_per_class=1)
        ce = table[table["method"].eq("ce")]
        assert ce["value"].isna().all() and ce["missing"].str.contains(why, regex=False).all()
        assert table.loc[table["method"].eq("poc"), "value"].notna().any()
        pooled = table[table["level"].eq("pooled") & table["method"].eq("")].set_index("metric")
        assert pooled.loc["accuracy", "n"] == pooled.loc["accuracy_asked", "n"] == 36
        read = pooled.loc["accuracy_read"]
        assert read["n"] == n["diagnosis"]["read"]
        right = float(pooled["value"]["accuracy"])
        assert read["value"] * read["n"] == pytest.approx(right * 36)


def test_a_cut_reply_counts_among_those_asked_for_alone() -> None:
    class Halves(Manner):
        def reply(self, request, i):
            self.name = "cut" if int(self.rng(request, i).integers(3)) == 0 else "plain"
            found = super().reply(request, i)
            self.name = "plain"
            return found

    run: Any = ask(tl.benchmark, made_cases(12), [Halves("plain")], ["poc"], LEVELS, samples=3)
    table = tl.metrics_table(run)
    pooled = table[table["level"].eq("pooled") & table["method"].eq("")].set_index("metric")
    n_cut = counts(run)["diagnosis"]["cut"]
    assert 0 < n_cut < 18 and pooled.loc["accuracy_asked", "n"] == 36
    assert pooled.loc["accuracy", "n"] == pooled.loc["accuracy_read", "n"] == 36 - n_cut
    right = run.answers["correct"].sum()
    share = right / (36 - n_cut)
    told = {"accuracy": share, "accuracy_asked": right / 36, "accuracy_read": share}
    assert pooled["value"].to_dict() == told
    (row,) = accuracies(run.answers)
    not_cut = f"{percent(int(right), 36 - n_cut)} of {36 - n_cut}"
    shares = [row.shares[f"all, {name}"] for name in ("asked", "not cut", "read")]
    assert shares == [f"{percent(int(right), 36)} of 36", not_cut, not_cut] and not row.missing


def test_half_is_enough_and_others_answer_in_a_model_s_place() -> None:
    def n(read: int, asked: int) -> dict[str, int]:
        return {"asked": asked, "read": read, "unread": asked - read}

    found = {"a": {"diagnosis": n(5, 10), "ce": n(4, 10)}, "b": {"doctor": n(1, 3)}}
    assert set(too_few(found)) == {("a", "ce"), ("b", "doctor")}
    assert why_few(found, "a", ["diagnosis"]) == ""
    assert why_few(found, "a", ["diagnosis", "ce"]).startswith("only 4 of 10")
    assert says(why_few(found, "a", ["doctor"]), "1 of 3", "'doctor'")
    assert why_few(found, "b", ["ce"]).startswith("only 4 of 10")
    shares = [percent(*of) for of in ((1, 2000), (0, 9), (9, 9), (1999, 2000), (98, 100))]
    assert shares == ["0.1 %", "0 %", "100 %", "99.9 %", "98 %"]


CODE = """
import sys, trustlab as tl
sys.path.insert(0, tests)
from gate_models import Manner
from fake_model import made_cases
setup = tl.Setup.of(quiet=quiet, run_dir=run_dir, more=more).with_(samples=3, methods=["ce", "poc"])
setup = setup.with_(levels=[20, 60, 100])
run = tl.benchmark(made_cases(12), [Manner(manner)], setup=setup)
tl.metrics_table(run).to_csv(setup.run_dir / "metrics.csv", index=False)
"""


def notebook(path: Path) -> Path:
    head = f"# Is it read?\n\n{BEGIN}\nold\n{END}\n\n*No use.*"
    made = nbformat.v4.new_notebook()
    choices = f"manner = 'plain'\nquiet = True\ntests = {str(Path(__file__).parent)!r}"
    choices += "\nrun_dir = None\nmore = {}"
    chosen = nbformat.v4.new_code_cell(choices, metadata={"tags": ["parameters"]})
    made.cells = [nbformat.v4.new_markdown_cell(head), chosen, nbformat.v4.new_code_cell(CODE)]
    made.metadata["kernelspec"] = {"name": "python3", "display_name": "", "language": "python"}
    nbformat.write(made, path)
    return path


def run(path: Path, folder: Path, *pairs: str) -> Any:
    given = [word for pair in pairs for word in ("-p", pair)]
    return CliRunner().invoke(app, ["run", str(path), "--out", str(folder), *given])


def block(folder: Path) -> str:
    cells = nbformat.read(folder / "my.ipynb", 4).cells
    head = next(cell.source for cell in cells if BEGIN in cell.source)
    assert head.startswith("# Is it read?") and head.endswith("*No use.*")
    return head.partition(BEGIN)[2].rpartition(END)[0]


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRUSTLAB_RUNS", str(tmp_path / "cache"))
    return tmp_path


@pytest.mark.notebook
def test_a_run_that_was_not_read_ends_with_5_and_so_does_its_rerun(runs: Path) -> None:
    path, folder = notebook(runs / "my.ipynb"), runs / "out"
    first = run(path, folder, "manner=never")
    told, page = block(folder), (folder / "my.html").read_text(encoding="utf-8")
    assert first.exit_code == 5, first.output
    assert says(first.output, "nothing is claimed", "never", "0 of 36", "'diagnosis'")
    assert says(first.output, "0 % of 144")
    assert says(told.strip().splitlines()[0], "- **never", "100 % of 36", "'diagnosis'")
    soup = BeautifulSoup(page, "html.parser")
    shown = [pre.get_text() for pre in soup.find_all("pre") if "highlight" not in str(pre.parent)]
    assert {said.replace("\ufffd", "\u202e") for said in shown} >= set(KINDS)
    assert not soup.find_all("script", string=lambda s: bool(s) and "alert(1)" in s)
    assert soup.find("h1").get_text().startswith("Is it read?") and NASTY not in told  # pyright: ignore
    assert "12 cases" in told and "\nold\n" not in told
    metrics = pd.read_csv(folder / "metrics.csv")
    assert len(metrics) and metrics["value"].isna().all()
    again = run(path, folder, "manner=never")
    assert again.exit_code == 5 and block(folder) == told
    assert "asked of the model 0," in again.output


def test_answers_that_the_grader_does_not_know_are_said_and_most_of_them_are_not_claimed() -> None:
    names = ["Pneumonia"] * 10 + [f"zorbulax {i}" for i in range(90)]
    rows = [
        {"case_id": str(i), "model": "m", "dataset": "d", "truth": "Pneumonia", "answer": name}
        for i, name in enumerate(names)
    ]

    def accuracy(n: int) -> tuple[float, float]:
        setup = tl.Setup(quiet=True, cache=":memory:")
        table = tl.metrics_table(tl.score(pd.DataFrame(rows[:n]), [], setup=setup))
        (line,) = table[table["metric"].eq("accuracy") & table["level"].eq("pooled")].to_dict(
            "records"
        )
        return line["value"], line["n"]

    assert accuracy(10) == (1.0, 10)
    with pytest.warns(UserWarning, match=saying("m", "33 % of 15", "grader")):
        assert accuracy(15) == (1.0, 10)
    words = saying("m", "90 % of 100", "nothing is claimed")
    with pytest.warns(UserWarning, match=words):
        value, n = accuracy(100)
    assert n == 0 and value != value
