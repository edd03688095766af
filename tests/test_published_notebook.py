"""06: what the notebook computes from the printed tables, held against values had by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import nbformat
import numpy as np
import pandas as pd
import pytest
from each import each

from trustlab.run_notebooks import notebook_path

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


@each(
    ("name", "value", "agrees"),
    [
        ("mean_pearson", 0.968 - 15.07 / 27, "yes"), ("best_mean", 0.313 / 6, "no"),
        ("best_most", 0.795 - 0.682, "no"), ("black_box", 12, "no"), ("superior_pearson", 2, "no"),
        ("cot_spearman", 0.086, "yes"),
    ],
)  # fmt: skip
def test_claims_by_hand(made: dict[str, Any], name: str, value: float, agrees: str) -> None:
    claims = made["claims"]
    row = claims.loc[name]
    assert row["recomputed"] == pytest.approx(value, abs=1e-6) and row["agrees"] == agrees
    assert claims["agrees"].value_counts().to_dict() == {
        "yes": 26, "cannot be recomputed": 11, "no": 8, "no figure is claimed": 1,
    }  # fmt: skip
