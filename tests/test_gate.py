"""No run is believed that was not read: counts, denominators, pages and exit codes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
import pytest
from asking import ask
from bs4 import BeautifulSoup
from each import each
from fake_model import made_cases
from gate_models import KINDS, NASTY, Manner
from made_reviews import many_cases
from typer.testing import CliRunner

import trustlab as tl
from trustlab.cli import app
from trustlab.html.opening import BEGIN, END, accuracies
from trustlab.metrics.trust_table import trust_indices
from trustlab.parsing.counts import percent, too_few, why_few
from trustlab.run import load_run
from trustlab.run_notebooks import check_parameters, notebook_path, parameters_table, placed

METHODS = ["ce", "poc", "word_count"]
LEVELS = [20, 60, 100]
pytestmark = pytest.mark.filterwarnings("ignore:.*could not be read")


def counts(run: tl.Run) -> dict[str, dict[str, int]]:
    (found,) = run.parameters["replies_read"].values()
    return found


def test_what_is_not_read_enough_is_not_claimed_and_the_rest_is(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="replies to 'ce' could not be read; nothing is claimed"):
        how = {"samples": 3, "run_dir": tmp_path}
        run: Any = ask(tl.benchmark, made_cases(12), [Manner("chatty")], METHODS, LEVELS, **how)
    n = counts(run)
    assert n["diagnosis"]["chat"] == n["diagnosis"]["read"] > 0.5 * n["diagnosis"]["asked"]
    assert 0 < n["ce"]["read"] < 0.5 * n["ce"]["asked"]
    why = f"only {n['ce']['read']} of {n['ce']['asked']} replies to 'ce' could be read"
    table = tl.metrics_table(load_run(tmp_path), n_draws=10, min_per_class=1)
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
    table = tl.metrics_table(run, n_draws=10)
    pooled = table[table["level"].eq("pooled") & table["method"].eq("")].set_index("metric")
    n_cut = counts(run)["diagnosis"]["cut"]
    assert 0 < n_cut < 18 and pooled.loc["accuracy_asked", "n"] == 36
    assert pooled.loc["accuracy", "n"] == pooled.loc["accuracy_read", "n"] == 36 - n_cut
    right = run.answers["correct"].sum()
    shares = [right / (36 - n_cut), right / 36, right / (36 - n_cut)]
    names = ["accuracy", "accuracy_asked", "accuracy_read"]
    assert pooled["value"].to_dict() == dict(zip(names, shares, strict=True))
    (line,) = accuracies(run.answers)
    assert f"of 36 asked, {percent(int(right), 36 - n_cut)} of {36 - n_cut} not cut" in line


def test_half_is_enough_and_others_answer_in_a_model_s_place() -> None:
    def n(read: int, asked: int) -> dict[str, int]:
        return {"asked": asked, "read": read, "unread": asked - read}

    found = {"a": {"diagnosis": n(5, 10), "ce": n(4, 10)}, "b": {"doctor": n(1, 3)}}
    assert set(too_few(found)) == {("a", "ce"), ("b", "doctor")}
    assert why_few(found, "a", ["diagnosis"]) == ""
    assert why_few(found, "a", ["diagnosis", "ce"]).startswith("only 4 of 10")
    assert why_few(found, "a", ["doctor"]) == "only 1 of 3 replies to 'doctor' could be read"
    assert why_few(found, "b", ["ce"]).startswith("only 4 of 10")
    shares = [percent(*of) for of in ((1, 2000), (0, 9), (9, 9), (1999, 2000), (98, 100))]
    assert shares == ["0.1 %", "0 %", "100 %", "99.9 %", "98 %"]


# A notebook, its page, its exit code

CODE = """
import sys, trustlab as tl
sys.path.insert(0, tests)
from gate_models import Manner
from fake_model import made_cases
setup = tl.Setup.of(globals()).with_(samples=3, levels=[20, 60, 100], methods=["ce", "poc"])
run = tl.benchmark(made_cases(12), [Manner("never")], setup=setup)
tl.metrics_table(run, n_draws=10).to_csv(setup.run_dir / "metrics.csv", index=False)
"""


@pytest.mark.notebook
def test_a_run_that_was_not_read_ends_with_5_and_its_page_shows_what_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRUSTLAB_RUNS", str(tmp_path / "cache"))
    path, folder, new = tmp_path / "my.ipynb", tmp_path / "out", nbformat.v4
    choices = f"quiet = True\nrun_dir = None\ntests = {str(Path(__file__).parent)!r}"
    made = new.new_notebook()
    made.cells = [
        new.new_markdown_cell(f"# Is it read?\n\n{BEGIN}\nold\n{END}\n\n*No use.*"),
        new.new_code_cell(choices, metadata={"tags": ["parameters"]}),
        new.new_code_cell(CODE),
    ]
    made.metadata["kernelspec"] = {"name": "python3", "display_name": "", "language": "python"}
    nbformat.write(made, path)
    done = CliRunner().invoke(app, ["run", str(path), "--out", str(folder)])
    assert done.exit_code == 5, done.output
    why = "nothing is claimed: never: only 0 of 36 replies to 'diagnosis' could be read"
    assert why in done.output and "0 % of 144 replies read (" in done.output
    (head,) = [c.source for c in nbformat.read(folder / "my.ipynb", 4).cells if BEGIN in c.source]
    assert head.startswith("# Is it read?") and head.endswith("*No use.*")
    assert "12 cases" in head and "\nold\n" not in head and NASTY not in head
    soup = BeautifulSoup((folder / "my.html").read_text(encoding="utf-8"), "html.parser")
    shown = [pre.get_text() for pre in soup.find_all("pre") if "highlight" not in str(pre.parent)]
    assert {said.replace("\ufffd", "\u202e") for said in shown} >= set(KINDS)
    assert not soup.find_all("script", string=lambda s: bool(s) and "alert(1)" in s)
    metrics = pd.read_csv(folder / "metrics.csv")
    assert len(metrics) and metrics["value"].isna().all()


@each(
    ("given", "words"),
    [
        ({"quite": 1}, "no parameter 'quite'"),
        ({"run_dir": 1}, "no parameter 'run_dir'"),
        ({"more": {"quite": 1}}, "did you mean quiet"),
        ({"draws": 0}, "draws is 0; it must be a whole number, at least 1"),
    ],
)
def test_any_choice_is_given_by_name_and_others_are_refused(given: dict, words: str) -> None:
    path = notebook_path("01_benchmark")
    shown = {row["name"]: row["shown"] for row in parameters_table("01_benchmark")}
    assert not shown["quiet"] and placed(path, {"quiet": False})["more"]["quiet"] is False
    assert check_parameters(path, {"quiet": False}).quiet is False
    with pytest.raises(ValueError, match=words):
        check_parameters(path, given)


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
