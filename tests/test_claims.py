"""The pages that say what came out: each number of ours is that of the cell which a comment behind
it names (tests/findings.py), and each verdict is no larger than its cells."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pkgutil import resolve_name
from typing import Any

import pandas as pd
from each import each
from findings import CELL, KEPT, PAGES, REFERENCE, THOSE, in_cell, table_of, value_of
from same.tables import read_tables

from trustlab.cli.run_notebooks import notebook_path
from trustlab.confidence import PAPER
from trustlab.confidence.registry import METHODS
from trustlab.metrics import coverage
from trustlab.metrics.combined import combine
from trustlab.metrics.significance import holm
from trustlab.paths import ROOT
from trustlab.runs.measures import scales_of

CLAIMS, FINDINGS, SOURCES = (page.read_text(encoding="utf-8") for page in PAGES)
ROWS = [line.strip("| ").split(" | ") for line in CLAIMS.splitlines() if line.startswith("| ")][1:]
FOUND = re.findall(r"^\*\*Finding\.\*\* (.+)$", FINDINGS, re.M)


@each("cell", [cell for page in (CLAIMS, FINDINGS, SOURCES) for cell in CELL.finditer(page)])
def test_a_number_is_that_of_its_cell(cell: re.Match[str]) -> None:
    assert in_cell(cell) == cell[0]


@each("row", ROWS)
def test_no_number_of_ours_stands_without_its_cell(row: list[str]) -> None:
    claim, *_, ours = row
    assert not re.search(r"\d", re.sub(r"`[^`]*`", "", CELL.sub("", ours))), claim
    assert len(row) == 5 and (CELL.search(ours) or "Cannot speak" in ours), claim


METRICS = "figures/reference/01_benchmark/metrics.csv"
COMPARED, PARTS = "figures/01_compared.csv", "figures/03_parts.csv"
FRONTIER, TURNED = "figures/04_frontier.csv", "figures/01_turned.csv"
PANEL = "kept:05_trust_indices/panel-table"
STABLE = "kept:02_robustness/more-stable-code"
TWO = "kept:02_robustness/two-code"
OF_CE = "dataset == 'starter' and metric == 'CV sample' and method == 'ce'"
WITHIN = "model == 'embedded' and dataset == 'starter' and level == 'within' and metric == 'auroc'"
ECE = "model == 'embedded' and dataset == 'starter' and level == 'pooled' and metric == 'ece'"
PICKED = "drawn == 'picked elsewhere' and metric == "


def rows(name: str, query: str) -> Any:
    """The rows of a table that a verdict is about."""
    return table_of(name).query(query)


def best_within() -> str:
    """The method with the highest level-stratified AUROC, references aside."""
    listed = rows(METRICS, f"{WITHIN} and method != 'exact_posterior'").set_index("method")
    return str(listed["value"].idxmax())


def spans_zero(name: str, query: str, low: str = "low", high: str = "high") -> bool:
    (row,) = rows(name, query).to_dict("records")
    return row[low] < 0 < row[high]


def above_chance(method: str) -> bool:
    """Whether an ECE is above what a calibrated confidence shows."""
    (row,) = rows(METRICS, f"{ECE} and method == '{method}'").to_dict("records")
    return row["value"] > row["chance_high"]


def as_right(method: str, other: str) -> bool:
    """Whether two rules that stop a consultation are right equally often, to two in a hundred."""
    first = value_of(FRONTIER, f"method == '{method}' and {PICKED} 'accuracy'", "value")
    second = value_of(FRONTIER, f"method == '{other}' and {PICKED} 'accuracy'", "value")
    return abs(first - second) < 0.02


def costliest() -> str:
    told = rows("figures/02_accuracy.csv", "dataset == 'starter' and level == 'all'")
    told = told[told["metric"] == "difference"].set_index("condition")
    return str(told["value"].idxmin())


def combination_p() -> list[float]:
    """The corrected p-values of the combination against the best in training, of each model."""
    shown = dict(read_tables(KEPT / "07_calibration.json.xz")["cell combined #1"])["method"]
    several = [name for name in shown if name in METHODS]
    run = [pd.read_parquet(REFERENCE / f"{name}.parquet") for name in ("answers", "confidence")]
    answers, confidence = (table[table["dataset"].eq("starter")] for table in run)
    confidence = confidence[confidence["method"].isin(several)]
    table = combine(answers, confidence, several, scales_of(confidence)).table
    return table["p_holm"].dropna().tolist()


def said(notebook: str, cell: str) -> str:
    """The lines that a cell of a notebook printed, in one."""
    return " ".join(dict(read_tables(KEPT / f"{notebook}.json.xz")[f"cell {cell}"])["text"])


def on_ddxplus(metric: str) -> Any:
    """A metric of each method of `embedded` on DDXPlus, over all levels."""
    query = f"model == 'embedded' and dataset == 'ddxplus' and metric == '{metric}'"
    found = rows(METRICS, f"{query} and level in ['pooled', 'across']").set_index("method")["value"]
    return found.reindex([*THOSE, "medconf"])


def pooled_of_medconf() -> Any:
    """MedConf's pooled AUROC, by data set."""
    query = "model == 'embedded' and method == 'medconf' and metric == 'auroc'"
    return rows(METRICS, f"{query} and level == 'pooled'").set_index("dataset")["value"]


def later_of_gpt4(told: str) -> Any:
    """Each later method's AUROC with GPT-4 (1106), by way of telling."""
    table = rows("kept:09_large_models/later-code", "model == 'gpt4_1106'")
    return table.set_index("method")[told]


LATER = "figures/01_later.csv"
SETS = "kept:09_large_models/sets-code"
VERDICTS = [
    ("the probability of the whole diagnosis has the highest AUROC",
     lambda: best_within() == "sequence_probability" and "sequence_probability" not in PAPER),
    ("it was picked on these very answers, and its lead over MC-SE",
     lambda: spans_zero("paired:embedded/starter/sequence_probability/mc_se", "level == 'within'")),
    ("**With a model made too sure**, MedConf ranks better",
     lambda: value_of(TURNED, "model == 'embedded' and dataset == 'starter' and method == "
                      "'sequence_probability'", "p_holm") > 0.05
     > value_of(TURNED, "model == 'embedded-overconfident' and dataset == 'starter' and "
                "method == 'sequence_probability'", "p_holm")
     and value_of(TURNED, "model == 'embedded-overconfident' and dataset == 'starter' and "
                  "method == 'sequence_probability'", "high") < 0),
    ("small talk moves accuracy farthest over both levels", lambda: costliest() == "small_talk"),
    ("after Holm that is not beyond chance",
     lambda: value_of(STABLE, OF_CE, "p_Holm") > 0.05),
    ("No part of MedConf is shown to help",
     lambda: not len(rows(PARTS, "dataset == 'starter' and method == 'medconf' and against == "
                          "'MedConf without a part' and p_holm < 0.05 and difference < 0"))),
    ("Nor are the right passages",
     lambda: spans_zero(PARTS, "dataset == 'starter' and method == 'medconf' and variant == "
                        "'control: passages of another disease'")),
    ("the fixed number with about the same accuracy", lambda: as_right("medconf", "fixed 12")),
    ("The index does not show that a panel is better than one doctor",
     lambda: spans_zero(PANEL, "dataset == 'starter' and metric == 'FTI'", "difference_low",
                        "difference_high")),
    (", too few cases for an interval.",
     lambda: (rows(PANEL, "dataset != 'starter' and metric == 'FTI'")["cases"]
              < coverage.sizes()["difference of fti"].n_cases).all()),
    ("Neither CE nor PoC is calibrated",
     lambda: above_chance("ce") and above_chance("poc")),
    ("MC-SE, picked on these answers, has the largest difference",
     lambda: rows(COMPARED, "level == 'within'").set_index("method").reindex(THOSE)
     ["difference"].idxmax() == "mc_se"),
    ("one comparison speaks against it",
     lambda: len(rows(TURNED, "difference > 0 and p_holm < 0.05")) == 1),
    ("A correction over all comparisons would not keep that one",
     lambda: holm(table_of(TURNED)["p"])[table_of(TURNED)["difference"] > 0].min() > 0.05),
    ("MedConf is not shown to rank better than CE",
     lambda: spans_zero(TURNED, "model == 'embedded-overconfident' and dataset == 'starter' and "
                        "method == 'ce'")),
    ("MSP pulls down, as it does the mean AUROC",
     lambda: all(on_ddxplus(m).idxmin() == "msp" for m in ("auroc", "pearson"))),
    ("Most of the published methods are above MedConf in both",
     lambda: all((on_ddxplus(m)[THOSE] > on_ddxplus(m)["medconf"]).mean() > 0.5
                 for m in ("auroc", "pearson"))),
    ("none of the three is beyond chance",
     lambda: set(rows(STABLE, "dataset == 'starter' and metric == 'CV sample' and p_Holm < 0.05")
                 ["method"]).isdisjoint({"asp", "ce", "poc"})),
    ("the accuracy (either diagnosis counts) changes by",
     lambda: value_of(TWO, "dataset == 'ddxplus' and method == 'accuracy (either diagnosis)'",
                      "difference_high") < 0
     < value_of(TWO, "dataset == 'ddxplus' and method == 'medconf'", "difference_low")),
    ("is above the band of any rising confidence on generated patients",
     lambda: set(rows(METRICS, "model == 'embedded' and method == 'medconf' and "
                      "metric == 'pearson' and value > chance_high")["dataset"])
     == {"starter", "ddxplus"}),
    ("BSDetector has the highest AUROC within a level",
     lambda: rows(LATER, "level == 'within'").set_index("method")["value"].idxmax()
     == "bsdetector"),
    ("and self-certainty the lowest",
     lambda: rows(LATER, "level == 'within'").set_index("method")["value"].idxmin()
     == "self_certainty"),
    ("on the same answers. BSDetector was picked",
     lambda: set(rows(LATER, "level == 'within'")["n"])
     == set(rows(METRICS, f"{WITHIN} and method == 'medconf'")["n"])),
    ("after Holm, over the two combinations of a model, none is beyond chance",
     lambda: min(combination_p()) > 0.05),
    ("no difference in accuracy, in mean confidence minus accuracy or in AUROC is beyond chance",
     lambda: "0 of 25 differences are beyond chance" in said("07_calibration", "groups #2")),
    ("In conversation, which the promise does not cover, such sets hold it less often",
     lambda: (rows(SETS, "model == 'gpt4_1106' and set == 'another data set'")["high"]
              < 0.9).all()),
    ("kept by sets of all four options",
     lambda: (rows(SETS, "model == 'gpt3_1106'")["value"] == 1).all()),
    ("noncontradiction and LUQ have the highest AUROC of those with a value for all these answers",
     lambda: all(later_of_gpt4(told).max() == later_of_gpt4(told)[method]
                 for told in ("vignette", "multiturn") for method in ("noncontradiction", "luq"))),
    ("Its pooled AUROC is between",
     lambda: [pooled_of_medconf().idxmin(), pooled_of_medconf().idxmax()]
     == ["starter-report", "ddxplus"]),
    ("Ours does not bear it out",
     lambda: value_of("kept:05_trust_indices/ranks-figure", "index_dataset == 'starter'", "10")
     == -1),
]  # fmt: skip
"""Words of a page, and what must be so in the tables for them to be no larger than their cells."""


@each(("words", "holds"), VERDICTS)
def test_a_verdict_is_no_larger_than_its_cells(words: str, holds: Callable[[], bool]) -> None:
    assert sum(words in CELL.sub("", page) for page in (CLAIMS, FINDINGS, SOURCES)) == 1
    assert holds(), f"the tables no longer bear out: {words}"


@each("words", ["intervals overlap", "intervals that overlap", "nearly half", "clearly better"])
def test_no_page_reads_a_difference_from_intervals_side_by_side(words: str) -> None:
    pages = (CLAIMS, FINDINGS, SOURCES, (ROOT / "README.md").read_text(encoding="utf-8"))
    assert not any(words in page for page in pages)


def test_a_notebook_s_finding_has_three_sentences_and_six_numbers_at_most() -> None:
    names = sorted(file.stem for file in (ROOT / "notebooks").glob("*.ipynb"))
    assert re.findall(r"section of `(\w+)`", FINDINGS) == names and len(FOUND) == len(names)
    for found in FOUND:
        words = CELL.sub("", found)
        assert 1 <= len(CELL.findall(found)) <= 6 and not re.search(r"\d", words), found
        assert len(re.findall(r"[.!?](?= |$)", words)) <= 3, found


def test_a_section_that_findings_names_is_there() -> None:
    for block in FINDINGS.split("section of `")[1:]:
        cells = json.loads(notebook_path(block.partition("`")[0]).read_text("utf-8"))["cells"]
        heads = {h for c in cells for h in re.findall(r"^#+ (.+)", "".join(c["source"]), re.M)}
        rows = re.findall(r"^\| .+ \| (.+) \|$", block.partition("\n## ")[0], re.M)
        for row in rows:
            assert row.startswith(("the same", "any")) or set(row.split("; ")[:1]) <= heads, row


def test_what_the_page_of_the_indices_sources_names_is_there() -> None:
    page = (ROOT / "docs" / "trust_sources.md").read_text(encoding="utf-8")
    for name in re.findall(r"`(trustlab\.[\w.]+)`", page):
        assert callable(resolve_name(name)), name
    cells = json.loads(notebook_path("05_trust_indices").read_text(encoding="utf-8"))["cells"]
    heads = {h for c in cells for h in re.findall(r"^#+ (.+)", "".join(c["source"]), re.M)}
    assert set(re.findall(r"\*([A-Z][^*]+)\*", page)) <= heads
