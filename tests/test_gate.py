"""No run is believed that was not read: counts, denominators, pages and exit codes."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
import pytest
from asking import ask
from bs4 import BeautifulSoup
from fake_model import made_cases
from gate_models import KINDS, NASTY, Manner
from made_reviews import many_cases
from typer.testing import CliRunner

import trustlab as tl
from trustlab.cli import app
from trustlab.folder.saved import load_run
from trustlab.html.opening import BEGIN, END, accuracies, filled, opening
from trustlab.metrics.trust_table import trust_indices
from trustlab.parsing.counts import KINDS as COUNTED
from trustlab.parsing.counts import not_read, percent, read_line, too_few, why_few
from trustlab.run_notebooks import check_parameters, notebook_path, parameters_table, placed

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
    table = tl.metrics_table(run, n_draws=10)
    assert not table["metric"].str.startswith("accuracy_").any() and not not_read({"m": {}})


def test_what_is_not_read_enough_is_not_claimed_and_the_rest_is(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="replies to 'ce' could not be read; nothing is claimed"):
        run = ran("chatty", run_dir=tmp_path)
    n = counts(run)
    assert n["diagnosis"]["chat"] == n["diagnosis"]["read"] > 0.5 * n["diagnosis"]["asked"]
    assert 0 < n["ce"]["read"] < 0.5 * n["ce"]["asked"]
    why = f"only {n['ce']['read']} of {n['ce']['asked']} replies to 'ce' could be read"
    for each in (run, load_run(tmp_path)):
        table = tl.metrics_table(each, n_draws=10, min_per_class=1)
        ce = table[table["method"].eq("ce")]
        assert ce["value"].isna().all() and ce["missing"].str.contains(why, regex=False).all()
        assert table.loc[table["method"].eq("poc"), "value"].notna().any()
        pooled = table[table["level"].eq("pooled") & table["method"].eq("")].set_index("metric")
        assert pooled.loc["accuracy", "n"] == pooled.loc["accuracy_asked", "n"] == 36
        read = pooled.loc["accuracy_read"]
        assert read["n"] == n["diagnosis"]["read"]
        right = float(pooled["value"]["accuracy"])
        assert read["value"] * read["n"] == pytest.approx(right * 36)


def test_of_a_model_that_never_answers_as_asked_nothing_is_claimed() -> None:
    run = ran("never")
    table = tl.metrics_table(run, n_draws=10, min_per_class=1)
    n = counts(run)["diagnosis"]
    why = f"only 0 of {n['asked']} replies to 'diagnosis' could be read"
    assert table["value"].isna().all() and table["low"].isna().all()
    assert table.loc[table["metric"].eq("accuracy"), "missing"].str.startswith(why).all()
    assert n["placeholder"] and n["unread"] and "ce" not in counts(run)


def test_a_cut_reply_counts_among_those_asked_for_alone() -> None:
    class Halves(Manner):
        def reply(self, request, i):
            self.name = "cut" if int(self.rng(request, i).integers(3)) == 0 else "plain"
            found = super().reply(request, i)
            self.name = "plain"
            return found

    run: Any = ask(tl.benchmark, made_cases(12), [Halves("plain")], ["poc"], LEVELS, samples=3)
    table = tl.metrics_table(run, n_draws=10)
    pooled = table[table["level"].eq("pooled") & table["method"].eq("")].set_index("metric")
    n_cut = counts(run)["diagnosis"]["cut"]
    assert 0 < n_cut < 18 and pooled.loc["accuracy_asked", "n"] == 36
    assert pooled.loc["accuracy", "n"] == pooled.loc["accuracy_read", "n"] == 36 - n_cut
    right = run.answers["correct"].sum()
    assert pooled["value"].to_dict() == {
        "accuracy": right / (36 - n_cut),
        "accuracy_asked": right / 36,
        "accuracy_read": right / (36 - n_cut),
    }
    (line,) = accuracies(run.answers)
    assert f"of 36 asked, {percent(int(right), 36 - n_cut)} of {36 - n_cut} not cut" in line


def test_a_model_whose_replies_are_all_cut_off_claims_nothing() -> None:
    run = ran("cut")
    assert counts(run)["diagnosis"]["cut"] == 36
    table = tl.metrics_table(run, n_draws=10)
    assert table["value"].isna().all()
    assert "only 0 of 36 replies to 'diagnosis'" in set(table["missing"].str[:34]) or (
        table["missing"].str.contains("only 0 of 36 replies to 'diagnosis'").any()
    )


def test_half_is_enough_and_others_answer_in_a_model_s_place() -> None:
    def n(read: int, asked: int) -> dict[str, int]:
        return {"asked": asked, "read": read, "unread": asked - read}

    found = {"a": {"diagnosis": n(5, 10), "ce": n(4, 10)}, "b": {"doctor": n(1, 3)}}
    assert set(too_few(found)) == {("a", "ce"), ("b", "doctor")}
    assert why_few(found, "a", ["diagnosis"]) == ""
    assert why_few(found, "a", ["diagnosis", "ce"]).startswith("only 4 of 10")
    assert why_few(found, "a", ["doctor"]) == "only 1 of 3 replies to 'doctor' could be read"
    assert why_few(found, "b", ["ce"]).startswith("only 4 of 10")
    assert [percent(*of) for of in ((1, 2000), (0, 9), (9, 9), (1999, 2000), (98, 100))] == [
        "0.1 %", "0 %", "100 %", "99.9 %", "98 %",
    ]  # fmt: skip


def test_counts_of_an_earlier_version_withhold_nothing() -> None:
    old = {"m": {"ce": {"read": 4, "chat": 1}}}
    assert not too_few(old) and not not_read(old) and read_line(old) == ""


# A notebook, its page, its exit code

CODE = """
import sys, trustlab as tl
sys.path.insert(0, tests)
from gate_models import Manner
from fake_model import made_cases
setup = tl.Setup.of(globals()).with_(samples=3, levels=[20, 60, 100], methods=["ce", "poc"])
run = tl.benchmark(made_cases(12), [Manner(manner)], setup=setup)
if stops:
    raise RuntimeError("here")
tl.metrics_table(run, n_draws=10).to_csv(setup.run_dir / "metrics.csv", index=False)
"""


def notebook(path: Path, head: str = f"# Is it read?\n\n{BEGIN}\nold\n{END}\n\n*No use.*") -> Path:
    made = nbformat.v4.new_notebook()
    choices = (
        f"manner = 'plain'\nstops = False\nquiet = True\ntests = {str(Path(__file__).parent)!r}"
    )
    choices += "\nrun_dir = None"
    made.cells = [
        nbformat.v4.new_markdown_cell(head),
        nbformat.v4.new_code_cell(choices, metadata={"tags": ["parameters"]}),
        nbformat.v4.new_code_cell(CODE),
    ]
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
    assert "nothing is claimed: never: only 0 of 36 replies to 'diagnosis' could be read" in (
        first.output
    )
    assert "0 % of 144 replies read (" in first.output and "read only as chat" in first.output
    assert told.strip().startswith("- **never: 100 % of 36 replies to 'diagnosis' could not be")
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
    assert "replies asked of the model 0," in again.output


@pytest.mark.notebook
def test_a_chatty_run_says_so_first_and_claims_the_rest(runs: Path) -> None:
    path, folder = notebook(runs / "my.ipynb"), runs / "out"
    done = run(path, folder, "manner=chatty")
    told = block(folder)
    assert done.exit_code == 5 and "Rather sure." in told and "Hard to say." in told
    facts = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    (why,) = facts["nothing_claimed"]
    assert why.startswith("chatty: only ") and "'ce'" in why and facts["ok"]
    assert "| models | chatty |" in told and "; over all levels " in told
    rows = told.partition("<details>")[2]
    n = facts["replies_read"]["chatty"]["diagnosis"]
    cells = "".join(f'<td align="right">{n[kind]}</td>' for kind in COUNTED)
    assert f"<tr><td>chatty</td><td>diagnosis</td>{cells}</tr>" in rows
    page = (folder / "my.html").read_text(encoding="utf-8")
    assert (
        "<td>diagnosis</td>" in page.partition("Replies by purpose")[2].partition("</details>")[0]
    )


@pytest.mark.notebook
def test_a_stopped_run_fills_its_opening_and_a_notebook_without_a_place_gets_a_cell(
    runs: Path,
) -> None:
    folder = runs / "out"
    path = notebook(runs / "my.ipynb")
    assert run(path, folder, "stops=True").exit_code == 1
    assert "| read | plain: 100 % of 180 replies read |" in block(folder)
    notebook(path, "# Mine")
    assert run(path, folder, "manner=never").exit_code == 5
    first, second = nbformat.read(folder / "my.ipynb", 4).cells[:2]
    assert "could not be read" in first.source and second.source == "# Mine"


def test_any_choice_is_given_by_name_and_what_the_cell_does_not_show_goes_into_more() -> None:
    path = notebook_path("01_benchmark")
    hidden = "quiet"
    assert hidden in {row[1] for row in parameters_table("01_benchmark") if row[0] == " "}
    taken = placed(path, {"samples": 4, hidden: False})
    assert taken["more"][hidden] is False
    assert getattr(check_parameters(path, {hidden: False}), hidden) is False
    for name in ("quite", "run_dir"):
        with pytest.raises(ValueError, match=f"no parameter '{name}'"):
            check_parameters(path, {name: 1})
    with pytest.raises(ValueError, match="did you mean quiet"):
        check_parameters(path, {"more": {"quite": 1}})
    with pytest.raises(ValueError, match="draws is 0; it must be a whole number, at least 1"):
        check_parameters(path, {"draws": 0})
    done = CliRunner().invoke(app, ["parameters", "01_benchmark"])
    assert done.exit_code == 0 and "* dataset = " in done.output and "  quiet = " in done.output
    assert parameters_table()[0][1] == "dataset"


def test_the_block_of_a_folder_without_a_run_is_empty(tmp_path: Path) -> None:
    assert opening(tmp_path) == ""
    assert filled("# A\nno place", "x") == "# A\nno place"
    text = rf"{BEGIN} a {END} {BEGIN} b {END}"
    assert filled(text, r"\1 <x>") == f"{BEGIN}\n\\1 <x>\n{END} {BEGIN} b {END}"


def test_indices_of_reviewers_that_cannot_be_read_have_the_reason() -> None:
    why = "only 1 of 9 replies to 'plan' could be read"
    table: Any = many_cases(12)
    safe = table["safety"].astype(bool)
    rated = [c for c in table if c.startswith("n_") and c not in ("n_doctors", "n_no_answer")]
    table = table.assign(plan_missing=why, unread=why, **dict.fromkeys(rated, 0))
    found = trust_indices(table, draws=0)
    osi = found[found["metric"].eq("osi") & found["safety"].astype(bool)]
    assert safe.any() and osi["value"].isna().all() and osi["missing"].eq(why).all()
    assert Counter(found.loc[found["metric"].eq("accuracy"), "missing"])[why] == 0
