"""What 01 and 07 draw and print beside the published tables, from tables of made numbers."""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportGeneralTypeIssues=false, reportOptionalMemberAccess=false

from __future__ import annotations

import pandas as pd

from studies import benchmark as study
from trustlab.confidence import METHODS

NAN = float("nan")
FAMILIES = {name: method.family for name, method in METHODS.items()}


def line(method: str, value: float = NAN, low: float = NAN, high: float = NAN, **more) -> dict:
    """A line of a table of numbers, of ten cases or more where it has an interval."""
    n_cases = 24 if low == low or value != value else 5
    made = {"model": "m", "dataset": "d", "method": method, "level": "within", "metric": "auroc"}
    made |= {"value": value, "low": low, "high": high, "n": 144, "n_cases": n_cases}
    return made | {"missing": "" if value == value else "fewer than 10 correct or wrong"} | more


def table(*lines: dict) -> pd.DataFrame:
    return pd.DataFrame(list(lines))


def measured(method: str, value: float, **more) -> list[dict]:
    """AUROC pooled and Pearson of a method, each 0.1 to either side."""
    at = {"auroc": "pooled", "pearson": "across", "spearman": "across"}
    return [
        line(method, value, value - 0.1, value + 0.1, metric=m, level=q, **more)
        for m, q in at.items()
    ]


def test_the_published_tables_stand_beside_ours() -> None:
    ours = [*measured("asp", 0.8), *measured("poc", 0.7), *measured("information_level", 0.9)]
    ours += measured("asp", NAN, model="<i>n</i>", dataset="e")
    found = study.correlations_as_published(table(*ours), "pearson")
    assert list(found.columns[:3]) == [
        ("this run", "m", "d"),
        ("this run", "<i>n</i>", "e"),
        ("as printed", "Llama-3.1", "DDXPlus"),
    ]
    row = found.loc[("token", "ASP")]
    assert row.iloc[:3].tolist() == ["0.80 [0.70, 0.90], n 144", "–", "0.794"]
    assert found.loc[("token", "PMI")].iloc[:3].tolist() == ["–", "–", "0.781"]
    assert "Information level" not in found.index.get_level_values("row")
    page = study.printed_in_grey(found, "x").to_html()
    assert "&lt;i&gt;n" in page and "<i>n" not in page and "not to be held against ours" in page
    assert page == study.printed_in_grey(found, "x").to_html()


def test_the_best_of_each_family_beside_the_printed() -> None:
    ours = table(*measured("asp", 0.6), *measured("msp", 0.8), *measured("medconf", 0.7))
    found = study.comparison_as_published(ours)
    mine = found["this run", "m", "d"]
    assert mine["token", "AUROC"] == "MSP (as printed: largest token) 0.80 [0.70, 0.90], n 144"
    assert mine["token", "Pearson"].startswith("MSP") and mine["consistency", "AUROC"] == "–"
    printed = found["as printed", "Llama-3.1", "DDXPlus"]
    assert (
        printed["token", "AUROC"] == "PMI 0.593"
        and printed["MedConf", "Pearson"] == "MedConf 0.968"
    )
    nothing = study.comparison_as_published(ours.assign(value=NAN, low=NAN, high=NAN))
    assert set(nothing["this run", "m", "d"]) == {"–"}
