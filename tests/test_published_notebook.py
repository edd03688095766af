"""06: what the notebook computes from the printed tables, held against values had by hand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import nbformat
import numpy as np
import pandas as pd
import pytest

import trustlab as tl
from trustlab.cli.run_notebooks import notebook_path
from trustlab.paths import ROOT
from trustlab.reports.published import DATASETS

NAME = "06_published_tables"


def executed(folder: Path, **values: Any) -> dict[str, Any]:
    """The variables after all code cells, with ``values`` in place of the parameters' own."""
    found: dict[str, Any] = {}
    for cell in nbformat.read(notebook_path(NAME), as_version=4).cells:
        if cell.cell_type == "code":
            exec(compile(cell.source, f"cell {cell.id}", "exec"), found)
        if "parameters" in cell.metadata.get("tags", []):
            found |= {"run_dir": str(folder), **values}
    return found


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return executed(tmp_path_factory.mktemp("06"))


@pytest.fixture(scope="module")
def audit(made: dict[str, Any]) -> pd.DataFrame:
    return made["audit"].set_index(["model", "dataset", "method", "statistic"])


def test_p_over_six_points_is_that_of_the_closed_form(audit: pd.DataFrame) -> None:
    r = audit["r"].abs()
    assert len(audit) == (27 + 11) * 3 * 2 and audit.index.is_unique and (audit["r"] >= 0).all()
    # Student's t with 4 degrees of freedom
    assert np.allclose(audit["p_t"], 1 - 1.5 * r + 0.5 * r**3, atol=1e-12)
    # 0.14 stands with two digits: anything from 0.135
    (two,) = audit.loc[audit["value"] == "0.14", "p_high"]
    assert two == pytest.approx(1 - 1.5 * 0.135 + 0.5 * 0.135**3)


def test_corrections_count_the_whole_table_as_one_family(audit: pd.DataFrame) -> None:
    p = audit["p_t"].sort_values().to_numpy()
    n_holm = np.argmin(p * np.arange(228, 0, -1) <= 0.05)
    n_bh = np.flatnonzero(p <= 0.05 * np.arange(1, 229) / 228).max() + 1
    assert (n_holm, n_bh) == (20, 49)
    assert audit["standing"].value_counts().to_dict() == {
        "not significant": 228 - 85,
        "printed only": 85 - n_bh,
        "Benjamini–Hochberg": n_bh - n_holm,
        "Holm": n_holm,
    }


def test_the_lead_in_auroc_has_the_error_of_hanley_and_mcneil(made: dict[str, Any]) -> None:
    gaps = made["gaps"]
    assert gaps.groupby("unit").size().to_dict() == {"answer": 15, "case": 15}
    ce = gaps.query("model == 'llama-3.1' and dataset == 'ddxplus' and method == 'ce'")
    ce = ce.set_index("unit")
    assert ce["difference"].tolist() == [0.052, 0.052]
    assert ce["n"].to_dict() == {"answer": 1026, "case": 171}
    variances = []
    for a in (0.722, 0.670):  # 513 right and 513 wrong
        q1, q2 = a / (2 - a), 2 * a * a / (1 + a)
        variances.append((a * (1 - a) + 512 * (q1 - a * a) + 512 * (q2 - a * a)) / 513**2)
    assert ce.loc["answer", "se"] == pytest.approx(sum(variances) ** 0.5)
    needed = 171 * ((1.959964 + 0.841621) * ce.loc["case", "se"] / 0.052) ** 2
    assert ce.loc["case", "cases"] == np.ceil(needed)
    assert (gaps["low"] > 0).groupby(gaps["unit"]).sum().to_dict() == {"answer": 13, "case": 6}
    # the example of Hanley & McNeil 1982
    assert made["variance"](0.893, 51, 58) ** 0.5 == pytest.approx(0.0325, abs=5e-5)


def test_fifty_consultations_are_the_fewest_that_fit(made: dict[str, Any]) -> None:
    readings = made["readings"]
    assert min(readings["mean utterances"]) == 25 and min(readings["accuracy"]) == 33
    assert readings["both"][0] == readings["both, utterances even"][0] == 50
    assert readings["both, were nothing rounded"] == [50, 100]
    assert 70 in readings["both"] and 70 not in readings["both, utterances even"]
    fitting = made["fitting"]
    by_hand = [n for n in range(1, 21) if any(abs(k / n - 5.2) <= 0.005 for k in range(0, 200, 2))]
    assert [n for n in fitting(pd.Series([5.2]), step=2) if n <= 20] == by_hand


def test_claims_by_hand(made: dict[str, Any]) -> None:
    claims = made["claims"]
    assert claims["agrees"].value_counts().to_dict() == {
        "yes": 28, "cannot be recomputed": 11, "no": 7, "no figure is claimed": 2,
    }  # fmt: skip
    by_hand = {
        "mean_pearson": 0.968 - 15.07 / 27, "best_mean": 0.313 / 6, "best_most": 0.795 - 0.682,
        "black_box": 11, "ce_significant": 21, "robust_ce_sample": 47.575 - 12.401,
        "case_asp": (32.04 + 97.22 + 99.99) / 3, "case_poc": 1000 / 15, "white_box": 16,
        "consistency_medqa": 2, "asp_ddxplus": 3,
    }  # fmt: skip
    found = claims.loc[list(by_hand), "recomputed"].to_dict()
    assert found == pytest.approx(by_hand, abs=1e-6)
    at_odds = claims.index[claims["agrees"] == "no"]
    assert {"consistency_medqa", "asp_ddxplus"} <= set(at_odds)
    assert not {"black_box", "white_box", "ce_significant"} & set(at_odds)  # notes, no misfits


def test_every_exception_to_a_claim_is_listed(made: dict[str, Any], audit: pd.DataFrame) -> None:
    """The paper names one exception as an example; the table has these."""
    of_ce = audit[audit.index.get_level_values("method").isin(["ce", "cot_ce"])]
    lost = of_ce[of_ce["p_number"] > 0.05]
    assert len(of_ce) == 24 and len(lost) == 24 - 21
    how = made["claims"].at["ce_significant", "how"]
    for (_, dataset, method, statistic), row in lost.iterrows():
        words = f"{tl.METHODS[method].label} on {DATASETS[dataset]}"
        assert words in how and f"{statistic} {row['value']} ({row['p_printed']})" in how


def test_the_page_of_claims_counts_what_the_tables_alone_say(made: dict[str, Any]) -> None:
    """docs/claims.md: `yes 2, no 1<!-- beginnings of ids -->`, each id in one row."""
    page = (ROOT / "docs" / "claims.md").read_text(encoding="utf-8")
    claims, counted = made["claims"], 0
    for words, begin in re.findall(r"\| ([a-z0-9, ]+)<!-- ([\w ]+) -->", page):
        part = claims[claims.index.str.startswith(tuple(begin.split()))]
        counts = part["agrees"].value_counts().to_dict()
        assert counts == {k: int(n) for k, n in re.findall(r"([a-z][a-z ]*) (\d+)", words)}, begin
        counted += len(part)
    assert counted == len(claims)
