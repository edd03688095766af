"""What 01 and 07 print beside the published tables, from tables of made numbers."""

from __future__ import annotations

import pandas as pd

from studies import benchmark as study

NAN = float("nan")


def measured(method: str, value: float, **more) -> list[dict]:
    """AUROC pooled and correlations of a method, each 0.1 to either side."""
    made = {"model": "m", "dataset": "d", "method": method, "value": value, "n": 144, "n_cases": 24}
    made |= {"low": value - 0.1, "high": value + 0.1, "missing": "" if value == value else "few"}
    at = {"auroc": "pooled", "pearson": "across", "spearman": "across"}
    return [made | {"metric": m, "level": q} | more for m, q in at.items()]


def test_the_published_tables_stand_beside_ours() -> None:
    ours = [*measured("asp", 0.8), *measured("poc", 0.7), *measured("information_level", 0.9)]
    ours += measured("asp", NAN, model="<i>n</i>", dataset="e")
    found = study.correlations_as_published(pd.DataFrame(ours), "pearson")
    runs = [("this run", "m", "d"), ("this run", "<i>n</i>", "e")]
    assert list(found.columns[:3]) == [*runs, ("as printed", "Llama-3.1", "DDXPlus")]
    row = found.loc[("token", "ASP")]
    assert row.iloc[:3].tolist() == ["0.80 [0.70, 0.90], n 144", "–", "0.794"]
    assert found.loc[("token", "PMI")].iloc[:3].tolist() == ["–", "–", "0.781"]
    assert "Information level" not in found.index.get_level_values("row")
    page = study.printed_in_grey(found, "x").to_html()
    assert "&lt;i&gt;n" in page and "<i>n" not in page and "not to be held against ours" in page


def test_the_best_of_each_family_beside_the_printed() -> None:
    ours = [*measured("asp", 0.6), *measured("msp", 0.8), *measured("medconf", 0.7)]
    found = study.comparison_as_published(pd.DataFrame(ours))
    mine, printed = found["this run", "m", "d"], found["as printed", "Llama-3.1", "DDXPlus"]
    assert mine["token", "AUROC"] == "MSP (as printed: largest token) 0.80 [0.70, 0.90], n 144"
    assert mine["token", "Pearson"].startswith("MSP") and mine["consistency", "AUROC"] == "–"
    assert printed["token", "AUROC"] == "PMI 0.593"
    assert printed["MedConf", "Pearson"] == "MedConf 0.968"
    nothing = study.comparison_as_published(pd.DataFrame(ours).assign(value=NAN, low=NAN, high=NAN))
    assert set(nothing["this run", "m", "d"]) == {"–"}
