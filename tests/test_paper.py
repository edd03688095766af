"""The paper's tables beside a run's: what stands in a cell, what is missing, how it is written."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
import pytest
from each import each
from saying import says
from test_run_pages import NASTY, Page, faults, made

from studies import ablations, calibration, consultation, graders
from tests import paper_page
from trustlab.cli.run_notebooks import notebook_path, read_sections
from trustlab.paths import NOTICE, ROOT, save_table
from trustlab.reports.html.index import PAPER, write_index
from trustlab.reports.paper import PARTS, Table, beside_printed, tables
from trustlab.reports.published import MODELS, TABLES

ODD = "m_1 | <b> & 5 %"
WHY = "no confidence: the backend gives no logprobs"
NUMBERS = ("value", "low", "high", "p", "n", "missing")


def rows(keys: dict[str, str], *measured: tuple) -> list[dict[str, Any]]:
    """Lines of a long table: metric, level, then NUMBERS."""
    return [keys | dict(zip(("metric", "level", *NUMBERS), one, strict=True)) for one in measured]


def metrics(model: str = ODD, dataset: str = "starter") -> pd.DataFrame:
    of, none = {"model": model, "dataset": dataset}, (None, None, None, None)
    lines = rows(
        of | {"method": "asp"},
        ("pearson", "across", 0.91234, None, None, 0.0123, 1440, "no interval"),
        ("spearman", "across", -0.2, -0.5, 0.1, 0.4, 1440, ""),
        ("auroc", "pooled", 0.7, 0.65, 0.75, None, 1440, ""),
        ("auroc", "within", 0.99, None, None, None, 1440, ""),
    )
    lines += rows(
        of | {"method": "entropy"},
        ("pearson", "across", 0.5, None, None, 0.2, 1200, ""),
        ("auroc", "pooled", 0.8, None, None, None, 1200, ""),
    )
    lines += rows(
        of | {"method": "poc"},
        ("pearson", "across", *none, 0, WHY),
        ("auroc", "pooled", *none, 0, WHY),
    )
    lines += rows(of | {"method": "random"}, ("auroc", "pooled", 0.9, None, None, None, 9, ""))
    lines += rows(of | {"method": "medconf"}, ("auroc", "pooled", 0.6, None, None, None, 30, ""))
    return pd.DataFrame(lines)


def others(kind: str) -> pd.DataFrame:
    """What 02, 03 and 04 leave."""
    of = {"model": "m", "dataset": "d"}
    if kind == "robustness":
        lines = rows(
            of | {"method": "asp"},
            ("cv_group", "20", 9.0, None, None, None, 5, ""),
            ("cv_group", "100", 2.5, None, None, None, 4, ""),
            ("cv_group", "all", 7.0, None, None, None, 9, ""),
            ("cv_sample", "100", 15.0, 14.0, 16.0, None, 4, ""),
        )
    elif kind == "consultation":
        measured = [
            ("accuracy", "", 0.5, 0.4, 0.6, None, 50, ""),
            ("utterances", "", 9.25, None, None, None, 50, ""),
        ]
        lines = rows(of | {"policy": "asp"}, *measured) + rows(of | {"policy": "oracle"}, *measured)
        return pd.DataFrame(lines).drop(columns="level")
    else:
        measured = [
            ("auroc", "pooled", 0.7, None, None, None, 8, ""),
            ("pearson", "across", 0.9, None, None, 0.01, 8, ""),
            ("brier", "pooled", 0.2, None, None, None, 8, ""),
        ]
        lines = rows(of | {"method": "medconf", "variant": "without_retrieval"}, *measured)
        lines += rows(of | {"method": "medconf_weighted", "variant": "full"}, *measured)
    return pd.DataFrame(lines)


def cell(table: Table, *down: str, source: str = "this run", model: str = ODD) -> str:
    (found,) = (text for head, text in table.cells.loc[down].items() if head[:2] == (source, model))
    return str(found)


CELLS = [
    ("correlation", ("token", "ASP", "Pearson"), "**0.912 (0.012), n 1,440**"),
    ("correlation", ("token", "ASP", "Spearman"), "−0.200 [−0.500, 0.100] (0.400), n 1,440"),
    ("correlation", ("consistency", "PoC", "Pearson"), "– (note 1)"),
    ("correlation", ("consistency", "Ecc", "Pearson"), "not run"),
    ("comparison", ("token", "AUROC"), "Entropy 0.800, n 1,200"),
    ("comparison", ("token", "Pearson"), "Entropy 0.500, n 1,200"),
    ("comparison", ("consistency", "AUROC"), "– (note 1)"),
    ("comparison", ("self-verbalised", "AUROC"), "not run"),
    ("robustness", ("ASP", "CV group, percent"), "2.500, n 4"),
    ("robustness", ("ASP", "CV sample, percent"), "15.000 [14.000, 16.000], n 4"),
    ("robustness", ("CE", "CV sample, percent"), "not run"),
    ("consultation", ("ASP", "accuracy, percent"), "50 [40, 60], n 50"),
    ("consultation", ("ASP", "utterances, mean"), "9.25, n 50"),
    ("ablation", ("Without retrieval", "Pearson"), "0.900, n 8"),
    ("ablation", ("Full", "AUROC"), "not run"),
]


@each(("kind", "down", "text"), CELLS)
def test_a_cell_of_ours(kind: str, down: tuple[str, ...], text: str) -> None:
    first = kind in ("correlation", "comparison")
    table = beside_printed(kind, metrics() if first else others(kind))
    assert cell(table, *down, model=ODD if first else "m") == text
    assert table.notes == ((WHY,) if first else ())


PRINTED = [
    ("correlation", ("token", "ASP", "Pearson"), ("Llama-3.1", "MedQA"), "**0.994 (<=0.05)**"),
    ("correlation", ("token", "ASP", "Pearson"), ("Llama-3.1", "DDXPlus"), "0.794 (0.059)"),
    ("correlation", ("token", "ASP", "Pearson"), ("GPT-4.1", "DDXPlus"), "not printed"),
    ("comparison", ("token", "AUROC"), ("Llama-3.1", "DDXPlus"), "PMI 0.593"),
    ("robustness", ("CE", "CV group, percent"), ("Llama-3.1", "DDXPlus"), "11.655"),
    ("consultation", ("ASP", "utterances, mean"), ("", ""), "5.20"),
    ("ablation", ("Full", "AUROC"), ("Llama-3.1", "DDXPlus"), "0.772"),
]


@each(("kind", "down", "head", "text"), PRINTED)
def test_a_printed_cell_and_what_was_not_run(kind, down, head, text) -> None:
    table = beside_printed(kind, None)
    assert table.cells.loc[down, ("as printed", *head)] == text
    assert set(table.cells["this run"].to_numpy().ravel()) == {"not run"}
    (why,) = table.notes
    assert says(why, "not run", ".csv")


def test_rows_are_the_paper_s_in_its_order_and_then_ours() -> None:
    table = beside_printed("correlation", metrics())
    methods = list(dict.fromkeys(table.cells.index.get_level_values("method")))
    assert (methods[0], len(methods)) == ("ASP", 27)
    assert "Random" not in methods
    assert list(table.cells.columns)[0] == ("this run", ODD, "starter")
    families = beside_printed("comparison", None).cells.index.get_level_values("family")
    assert list(dict.fromkeys(families)) == ["MedConf", "token", "consistency", "self-verbalised"]


@pytest.mark.parametrize("kind", TABLES)
def test_each_way_to_write_a_table_is_whole_and_escapes(kind: str) -> None:
    first = kind in ("correlation", "comparison")
    table = beside_printed(kind, metrics() if first else others(kind))
    lines = table.markdown().split("\n\n")[0].splitlines()
    bars = {len(re.findall(r"(?<!\\)\|", line)) for line in lines}
    assert bars == {table.flat().shape[1] + 1} and len(lines) == len(table.cells) + 2
    latex = re.sub(r"\\.", "", table.latex())  # no escaped brace
    assert latex.count("{") == latex.count("}") > 0
    ends = [line for line in table.latex().splitlines() if line.endswith(r"\\")]
    assert len(ends) == len(table.cells) + 1 and "−" not in latex
    n_columns = table.flat().shape[1]
    assert {len(re.findall(r"(?<!\\)&", line)) for line in ends} == {n_columns - 1}
    assert not table.flat().map(lambda text: "**" in text).to_numpy().any()
    html = table.styled().to_html()
    assert "<b>" not in html and (not first or "&lt;b&gt;" in html)
    assert (kind == "correlation") == ("bold" in html)


def test_the_page_of_runs(tmp_path: Path) -> None:
    assert not (write_index(tmp_path).parent / PAPER).exists()
    folder = tmp_path / "01_benchmark"
    made(folder)
    save_table(metrics(model=NASTY, dataset="007"), folder / "metrics.csv")
    (folder / "figures").mkdir()
    for file in ("01_benchmark.html", *PARTS["Figure 3"].files):
        (folder / file).write_text("")
    index, page = write_index(tmp_path), tmp_path / PAPER
    assert faults(index) == faults(page) == []
    seen = Page(page.read_text(encoding="utf-8"))
    assert PAPER in Page(index.read_text(encoding="utf-8")).links and "script" not in seen.tags
    words = [*PARTS, NOTICE, NASTY, "007", WHY, "0.912 (0.012), n 1,440", "0.794 (0.059)"]
    words += ["trustlab run 04_consultation", "04_consultation, not run", "auroc_grid.png: not run"]
    for text in words:
        assert text in seen.text, text
    kept = sorted(file.name for file in (tmp_path / "paper").iterdir())
    assert kept == sorted(
        f"table_{n}.{end}" for n, end in product(range(2, 7), ("csv", "md", "tex"))
    )
    assert tables(tmp_path)["Table 2"].cells.columns[0] == ("this run", NASTY, "007")
    (folder / "metrics.csv").write_text("broken,\n1\n")
    assert "paper.html is not made" in write_index(tmp_path).read_text(encoding="utf-8")
    assert not page.exists()


@each("name", [name for name, part in PARTS.items() if part.notebook])
def test_a_part_names_a_heading_of_its_notebook(name: str) -> None:
    part = PARTS[name]
    cells = nbformat.read(notebook_path(part.notebook), 4).cells
    heads = re.findall(r"^#+ (.+)$", "\n".join(c.source for c in cells), re.M)
    source = "\n".join(c.source for c in cells if c.cell_type == "code")
    assert part.heading in heads
    for file in part.files:
        stem = Path(file).stem.removeprefix(f"{part.notebook[:2]}_").replace("auroc_grid", "_grid")
        assert stem.replace("auprc_grid", "_grid") in source, file


ABSENT = ("Table 1", "Figures 1 and 2", "Figures 5 and 6", "Figures A1 to A13")


def test_the_page_says_what_is_absent_and_what_was_never_run() -> None:
    assert [name for name, part in PARTS.items() if not part.notebook] == sorted(
        ABSENT, key=list(PARTS).index
    )
    head = paper_page.PAGE.read_text(encoding="utf-8").split(paper_page.MARK)[0]
    lines = dict(re.findall(r"^- \*\*(.+?)\*\*: (.+)$", head, re.M))
    for words in ("Figures 1 and 2", "Figures 5 and 6", "A1 to A13", "Table 1"):
        assert words in lines["Absent or elsewhere"]
    for words in (*MODELS.values(), "MediTOD", "MedQA"):
        assert words in lines["Never run here"]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "The paper's models, MediTOD and MedQA were never run here" in readme


def test_the_page_names_the_notebooks_that_refuse_new_words() -> None:
    page = paper_page.PAGE.read_text(encoding="utf-8")
    (named,) = re.findall(r"notebooks ([\d, and]+) show DDXPlus in our templates' words", page)
    paper = (ROOT / "notebooks" / "parameters" / "paper.yml").read_text(encoding="utf-8")
    studies = {"03": ablations, "04": consultation, "07": calibration, "08": graders}
    assert re.findall(r"\d+", named) == list(studies)
    assert all("wording" in study.Asked.UNUSED for study in studies.values())
    assert f"{named} in our templates' words alone" in paper


def test_the_documentation_s_page_is_that_of_the_reference_run() -> None:
    assert paper_page.PAGE.read_text(encoding="utf-8") == paper_page.page()


def test_the_paper_s_file_asks_each_study_about_the_set_that_its_source_names() -> None:
    file = ROOT / "notebooks" / "parameters" / "paper.yml"
    sections, needs, _ = read_sections(file)
    panel = sections["05_trust_indices"]
    assert (panel["dataset"], panel["path"]) == ("medqa", "$medqa")
    assert sections["01_benchmark"]["dataset"] == ["ddxplus", "meditod", "medqa"]
    assert "Bio_ClinicalBERT" in needs["medbert"]
