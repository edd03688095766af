"""The tables of the trust indices to read: values with their intervals as text, and the counts behind the percentages."""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false, reportReturnType=false

from __future__ import annotations

import pandas as pd

from trustlab.experiments import tables
from trustlab.experiments.shown import pivoted, with_interval

__all__ = [
    "counts_shown", "in_percent", "indices_shown", "interval_words", "pivoted", "proxy_note",
    "why_missing", "with_interval",
]  # fmt: skip

NAMES = {
    "accuracy": "Accuracy", "cdr": "CDR", "rdc": "RDC", "eti_percent": "ETI", "unsafe_rx_percent": "UnsafeRx %",
    "test_alerts_percent": "TestAlerts %", "osi": "OSI", "fti": "FTI",
}  # fmt: skip
"""Columns of the indices -> their names."""
FRACTIONS = ("accuracy", "cdr", "rdc")
"""Fractions in ``trust-x``, percent in ``medguard-x``."""
COUNTED = {
    "n_cases": "cases", "n_judged": "judged", "n_ties": "ties", "n_unreadable_diagnoses": "opinions unreadable",
    "n_no_plan": "no plan", "n_prescriptions": "prescriptions", "n_rx_rated": "rated", "n_unsafe": "unsafe",
    "n_caution": "with caution", "n_rx_unknown": "unknown drugs", "n_rx_unreadable": "marks unreadable",
    "rx_unrated_percent": "% unrated", "n_tests": "tests", "n_tests_rated": "tests rated",
    "n_risky": "risky", "n_redundant": "redundant", "n_tests_unknown": "unknown tests",
    "n_tests_unreadable": "test marks unreadable", "tests_unrated_percent": "% of tests unrated", "flag": "note",
}  # fmt: skip
KEYS = ["model", "dataset", "level", "configuration"]


def in_percent(indices: pd.DataFrame) -> pd.DataFrame:
    """The indices with accuracy, CDR and RDC of ``trust-x`` times 100, intervals too, so that all columns are percent."""
    table = indices.copy()
    fractions = table["formulation"] == "trust-x"
    for name in FRACTIONS:
        for column in (name, f"{name}_low", f"{name}_high"):
            table[column] = table[column].astype(float).where(~fractions, 100 * table[column].astype(float))
    return table


def indices_shown(indices: pd.DataFrame) -> pd.DataFrame:
    """Every index in percent with its interval as text: a row a configuration, safety and formulation; "–" is missing.

    ETI and FTI with the smallest n of their parts; a last column names a proxy, one more a variant.
    """
    table = in_percent(indices)
    shown = table[[*KEYS, "formulation"]].assign(safety=table["safety"].map({True: "on", False: "off"}))
    for column, name in NAMES.items():
        cells = zip(table[column], table[f"{column}_low"], table[f"{column}_high"], strict=True)
        shown[name] = [with_interval(*cell, digits=0) for cell in cells]
        if name in ("ETI", "FTI"):
            shown[f"n ({name})"] = table[f"{column}_n"]
    named = {"variant": "variant", "proxy": "RDC by"}
    return shown.assign(**{name: table[c] for c, name in named.items() if c in table})


def proxy_note(indices: pd.DataFrame) -> str:
    """What a caption says where a general encoder stands in for a biomedical one; "" elsewhere."""
    used = indices.loc[indices["proxy"] != "", ["formulation", "proxy"]].drop_duplicates()
    return "; ".join(f"{form} RDC by {proxy}" for form, proxy in used.itertuples(index=False))


def why_missing(indices: pd.DataFrame) -> pd.DataFrame:
    """Which indices have no value and why, and which no interval: a row a reason."""
    rows = []
    for row in indices.to_dict("records"):
        where = {"formulation": row["formulation"], "safety": "on" if row["safety"] else "off"}
        for column in ("missing", "no_interval"):
            for part in filter(None, str(row[column]).split("; ")):
                name, _, reason = part.partition(": ")
                rows.append(where | {"what": column.replace("_", " "), "index": NAMES.get(name, name.upper()), "missing": reason})
    table = pd.DataFrame(rows, columns=["formulation", "safety", "what", "index", "missing"])
    merged = table.groupby(["formulation", "safety", "what", "missing"], sort=False)["index"].agg(
        lambda x: ", ".join(dict.fromkeys(x))
    )
    return merged.reset_index()


def interval_words(indices: pd.DataFrame, words: str = "95 % case-bootstrap interval") -> str:
    """What a caption says of the intervals of ``indices``: ``words``, or that it has none."""
    return tables.interval_words(pd.DataFrame({"low": indices.filter(like="_low").to_numpy(float).ravel()}), words)


def counts_shown(indices: pd.DataFrame) -> pd.DataFrame:
    """The counts behind the percentages: a row a configuration with safety on; the formulations share them."""
    once = indices[indices["safety"].astype(bool)].drop_duplicates(KEYS)
    return once[[*KEYS, *COUNTED]].rename(columns=COUNTED).reset_index(drop=True)
