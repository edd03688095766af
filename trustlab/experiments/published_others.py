"""Tables 3, 5 and 6 of Ren et al. 2026 (arXiv 2601.15645 v1): do they agree with Table 2, and what does it take to print them?

Figures, no verdicts. ``audit`` is the table of :func:`trustlab.experiments.published_audit.correlations`.
"""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false, reportGeneralTypeIssues=false
# pyright: reportReturnType=false, reportOperatorIssue=false

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from trustlab.audit import attainable_n
from trustlab.confidence import METHODS
from trustlab.experiments.published import CELL, DATASETS, published_claims, published_table
from trustlab.metrics.significance import auroc_difference_standard_error, cases_to_tell_apart
from trustlab.plots.style import label

MEASURES = {"AUROC": "auroc", "Pearson": "pearson"}
"""Quantities that Tables 3 and 6 both print -> their columns."""


def disagreements(audit: pd.DataFrame) -> pd.DataFrame:
    """Every quantity that two tables print, side by side, those that differ most first.

    Columns quantity model dataset method first value_first second value_second difference also; ``also`` names the other methods
    for which Table 2 prints the second table's value, for the same model, data set and statistic.
    """
    two = audit[audit["statistic"] == "pearson"]
    three, six = published_table("comparison"), published_table("ablation")
    both = two.merge(three[[*CELL, "pearson"]], on=CELL, validate="one_to_one")
    rows = [
        ("Pearson", *_cell(row), 2, row["r"], 3, row["pearson"]) for row in both.to_dict("records")
    ]
    whole = (
        six[six["variant"] == "full"]
        .assign(method="medconf")
        .merge(three, on=CELL, suffixes=("_6", "_3"), validate="1:1")
    )
    for row in whole.to_dict("records"):
        rows += [
            (name, *_cell(row), 3, row[f"{key}_3"], 6, row[f"{key}_6"])
            for name, key in MEASURES.items()
        ]
    columns = ["quantity", *CELL, "first", "value_first", "second", "value_second"]
    table = pd.DataFrame(rows, columns=columns)
    table["difference"] = (table["value_second"] - table["value_first"]).round(6)
    table["also"] = [
        _also(two, row) if row["difference"] else "" for row in table.to_dict("records")
    ]
    return table.sort_values(
        "difference", key=abs, ascending=False, kind="stable", ignore_index=True
    )


def consultations(max_n: int = 200) -> pd.DataFrame:
    """Over how many consultations the means of Table 5 can be taken: a row a reading, the numbers up to ``max_n`` that fit.

    Columns reading smallest n_fit numbers; ``numbers`` is a list. Utterances are in hundredths, accuracy in whole percent.
    """
    table = published_table("consultation", as_text=True)
    talked = list(table["utterances"])
    right = [f"{float(percent) / 100:.2f}" for percent in table["accuracy_percent"]]
    found = {
        "mean utterances": attainable_n(talked, max_n),
        "mean utterances, an even number in each consultation": attainable_n(talked, max_n, step=2),
        "accuracy": attainable_n(right, max_n),
        "mean utterances, were nothing rounded": attainable_n(talked, max_n, exactly=True),
        "accuracy, were nothing rounded": attainable_n(right, max_n, exactly=True),
    }
    words = list(found)
    found["both"] = sorted(set(found[words[0]]) & set(found[words[2]]))
    found["both, utterances even"] = sorted(set(found[words[1]]) & set(found[words[2]]))
    found["both, were nothing rounded"] = sorted(set(found[words[3]]) & set(found[words[4]]))
    rows = [(reading, min(n, default=np.nan), len(n), n) for reading, n in found.items()]
    return pd.DataFrame(rows, columns=["reading", "smallest", "n_fit", "numbers"])


def auroc_differences(
    share_right: float = 0.5,
    correlation: float = 0.0,
    n_levels: int = 6,
    power: float = 0.8,
    alpha: float = 0.05,
) -> pd.DataFrame:
    """MedConf's AUROC minus each baseline's of Table 3, with what its sampling error may be and how many cases would show it.

    Two rows a difference: ``unit`` "answer" takes the ``n_levels`` answers of a case for
    independent, "case" lets a case count once: the truth lies between. ``share_right`` of the
    answers are taken to be right (the tables do not say), and the two AUROCs to correlate so over
    samples. Columns model dataset method family medconf baseline difference unit n n_rarer se low
    high n_cases cases; ``n_rarer``: right or wrong answers, whichever are taken to be fewer. Hanley
    & McNeil 1982, 1983; ``low`` and ``high`` bound the normal 95 % interval. ``ValueError`` for a
    share outside (0, 1).
    """
    if not 0 < share_right < 1:
        raise ValueError(f"share_right must lie between 0 and 1; received {share_right}")
    sizes = {name: int(claimed(f"cases_{name}")) for name in DATASETS}
    rows = []
    for row in advantages().to_dict("records"):
        cases = sizes[row["dataset"]]
        for unit, n in (("answer", n_levels * cases), ("case", cases)):
            right = round(share_right * n)
            se = auroc_difference_standard_error(
                row["medconf"], row["baseline"], right, n - right, correlation
            )
            needed = cases_to_tell_apart(row["difference"], se, cases, power, alpha)
            reach = 1.959964 * se
            ends = {"low": row["difference"] - reach, "high": row["difference"] + reach}
            counts = {"unit": unit, "n": n, "n_rarer": min(right, n - right)}
            rows.append({**row, **counts, "se": se, **ends, "n_cases": cases, "cases": needed})
    return pd.DataFrame(rows)


def advantages() -> pd.DataFrame:
    """MedConf's AUROC and each baseline's of Table 3: model dataset method family medconf baseline difference best.

    ``best``: the baseline with the highest AUROC of its model and data set.
    """
    table = published_table("comparison")
    whole = table[table["method"] == "medconf"].rename(columns={"auroc": "medconf"})[
        ["model", "dataset", "medconf"]
    ]
    rest = (
        table[table["method"] != "medconf"]
        .rename(columns={"auroc": "baseline"})
        .drop(columns="pearson")
    )
    joined = rest.merge(whole, on=["model", "dataset"], validate="many_to_one")
    joined["family"] = [METHODS[name].family for name in joined["method"]]
    joined["difference"] = (joined["medconf"] - joined["baseline"]).round(6)
    best = joined.groupby(["model", "dataset"])["baseline"].transform("max") == joined["baseline"]
    return joined[[*CELL, "family", "medconf", "baseline", "difference"]].assign(best=best)


def claimed(which: str) -> float:
    """The figure of the claim with this id; NaN where it gives none. Raises ``KeyError`` for an unknown id."""
    return float(published_claims().set_index("id").loc[which, "claimed"] or "nan")


def _cell(row: dict[str, Any]) -> tuple[str, ...]:
    return tuple(row[name] for name in CELL)


def _also(two: pd.DataFrame, row: dict[str, Any]) -> str:
    """The other methods for which Table 2 prints the value of ``row``'s second table."""
    if row["quantity"] != "Pearson":
        return ""
    here = two[
        (two["model"] == row["model"])
        & (two["dataset"] == row["dataset"])
        & (two["r"] == row["value_second"])
    ]
    return ", ".join(label(name) for name in here["method"] if name != row["method"])
