"""The notebook on the published tables: what its finding says is what the tables give, and a run
leaves what it promises."""

from __future__ import annotations

import json
import re

import nbformat
import pandas as pd
import pytest

from studies import published_tables as others
from studies import published_tables as recomputed
from studies.published_tables import claims_table
from trustlab.run_notebooks import MANIFEST, notebook_path

NAME = "06_published_tables"
FIGURES = {"p_values", "standings", "chance_band", "auroc_differences"}


def text() -> str:
    """The notebook's words, without its code."""
    notebook = nbformat.read(notebook_path(NAME), 4)
    return "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")


def test_the_finding_says_what_the_tables_give() -> None:
    finding = text().split("**The finding**")[1].split("*Research only")[0]
    audit = recomputed.correlations()
    off, standing, band = (
        recomputed.apart(audit),
        recomputed.standings(audit)["standing"],
        recomputed.over_band(audit),
    )
    far, exact = (off["apart"] > 0.05).sum(), len(recomputed.exact_fails(audit))
    ranks = audit.loc[audit["statistic"] == "spearman", "significant"].sum()
    place = band["place"].value_counts()
    answers = claims_table()["agrees"].value_counts()
    claimed, unsettled = (
        answers.sum() - answers["no figure is claimed"],
        answers["cannot be recomputed"],
    )
    gaps = others.auroc_differences()
    clear = gaps[gaps["low"] > 0].groupby("unit").size()
    inside = place["in its lower half"] + place["in its upper half"]
    for said in (
        f"prints {len(audit)} correlations",
        (
            f"{len(off)} of those printed as numbers are not the p of their coefficient over six"
            f" points, {far} of them by"
        ),
        (
            f"{len(recomputed.unattainable(audit))} rank correlations are values that six points"
            " cannot have"
        ),
        f"{audit['significant'].sum()} coefficients are printed at p ≤ 0.05",
        (
            f"as one family {(standing.isin(['Holm', 'Benjamini–Hochberg'])).sum()} stay"
            " significant after Benjamini–Hochberg"
        ),
        f"and {(standing == 'Holm').sum()} after Holm",
        f"{exact} of the {ranks} rank correlations among them stay above 0.05",
        (
            f"{place['above it']} of {len(band)} printed Pearsons lies above, {inside} within,"
            f" {place['below the band']} below"
        ),
        (
            f"Of {claimed} figures in the paper's sentences {answers['yes']} follow from its"
            f" tables, {answers['no']} come out"
        ),
        f"and {unsettled} cannot be settled",
        (
            f"for {clear['answer']} if each answer counts for itself, for {clear['case']} if each"
            " case counts once"
        ),
    ):
        assert said in finding, said
    assert audit.loc[audit["significant"], "p_t"].le(0.05).all()


def test_the_notebook_gives_figures_and_no_verdicts() -> None:
    assert not re.search(
        r"\b(wrong|flawed|suspicious|mistakes?|false)\b|(?<!sampling )\berrors?\b", text().lower()
    )


@pytest.mark.notebook
def test_a_run_leaves_its_figures_and_asks_no_model(smoke_runs) -> None:
    folder = smoke_runs.of(NAME)
    found = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    assert found["ok"] and found.get("calls_made", 0) == 0
    files = {file.name for file in (folder / "figures").iterdir()}
    assert files == {f"06_{name}.{ending}" for name in FIGURES for ending in ("csv", "png", "svg")}
    assert len(pd.read_csv(folder / "figures" / "06_p_values.csv")) == 17
    page = (folder / f"{NAME}.html").read_text(encoding="utf-8")
    for said in (
        "all checks passed",
        "Ren et al. 2026",
        "Not for clinical use",
        "0.052",
        "CoT-CE, MediTOD, GPT-4.1",
    ):
        assert said in page, said
