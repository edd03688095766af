"""The tables of the trust indices to read: values with their intervals as text, and the counts."""

from __future__ import annotations

from typing import Any

import pandas as pd

from trustlab.experiments.shown import pivoted

NAMES = {
    "accuracy": "Accuracy", "cdr": "CDR", "rdc": "RDC", "eti_percent": "ETI",
    "unsafe_rx_percent": "UnsafeRx %", "test_alerts_percent": "TestAlerts %", "osi": "OSI", "fti": "FTI",
}  # fmt: skip
"""The indices shown -> their names."""
COUNTED = {
    "n_cases": "cases", "n_judged": "judged", "n_ties": "ties", "n_unreadable_diagnoses": "opinions unreadable",
    "n_no_plan": "no plan", "n_prescriptions": "prescriptions", "n_rx_rated": "rated", "n_unsafe": "unsafe",
    "n_caution": "with caution", "n_rx_unknown": "unknown drugs", "n_rx_unreadable": "marks unreadable",
    "rx_unrated_percent": "% unrated", "n_tests": "tests", "n_tests_rated": "tests rated",
    "n_risky": "risky", "n_redundant": "redundant", "n_tests_unknown": "unknown tests",
    "n_tests_unreadable": "test marks unreadable", "tests_unrated_percent": "% of tests unrated",
}  # fmt: skip
KEYS = ["model", "dataset", "level", "configuration"]


def in_percent(indices: pd.DataFrame) -> pd.DataFrame:
    """The indices with accuracy, CDR and RDC of ``trust-x`` times 100, intervals too."""
    fractions = indices["formulation"].eq("trust-x") & indices["metric"].isin(list(NAMES)[:3])
    ends = indices[["value", "low", "high"]].astype(float)
    return indices.assign(**ends.mul((1 + 99 * fractions), axis=0))


def indices_shown(indices: pd.DataFrame) -> pd.DataFrame:
    """Every index in percent with its interval as text: a row a configuration, safety, formulation.

    ETI and FTI with their n; the last columns name who stood in for the encoder that RDC asks for,
    and what to know of the intervals.
    """
    table = _named(in_percent(indices))
    keys = [name for name in (*KEYS, "formulation", "safety", "variant") if name in table]
    shown = pivoted(table, keys, digits=0)
    of = {name: table[table["metric"].eq(name)] for name in ("RDC", "ETI", "FTI")}
    for name in ("ETI", "FTI"):
        place = list(shown.columns).index(name) + 1
        shown.insert(place, f"n ({name})", of[name]["n"].to_numpy())
    told = (table["metric"] + ": " + table["missing"]).where(table["missing"].ne(""), "")
    notes = table.assign(note=told.where(table["low"].notna(), "")).groupby(keys, sort=False)[
        "note"
    ]
    note = notes.agg(lambda words: "; ".join(filter(None, words)))
    return shown.assign(**{"RDC by": of["RDC"]["proxy"].to_numpy(), "note": note.to_numpy()})


def proxy_note(indices: pd.DataFrame) -> str:
    """What a caption says where a general encoder stands in for a biomedical one; "" elsewhere."""
    used = indices.loc[indices["proxy"] != "", ["formulation", "proxy"]].drop_duplicates()
    return "; ".join(f"{form} RDC by {proxy}" for form, proxy in used.itertuples(index=False))


def why_missing(indices: pd.DataFrame) -> pd.DataFrame:
    """Which indices have no value or no interval, and why: a row a reason."""
    told = _named(indices[indices["low"].isna() & indices["missing"].ne("")])
    told = told.assign(missing=told["missing"].str.split("; ")).explode("missing")
    each = told.groupby(["formulation", "safety", "missing"], sort=False)["metric"]
    return each.agg(lambda names: ", ".join(dict.fromkeys(names))).reset_index()


def counts_shown(counts: pd.DataFrame) -> pd.DataFrame:
    """The counts behind the percentages (``review_counts``): a row a configuration, safety on."""
    once: Any = counts[counts["safety"].astype(bool)]
    return once[[*KEYS, *COUNTED]].rename(columns=COUNTED).reset_index(drop=True)


def _named(indices: Any) -> Any:
    """The indices shown, by their names, with safety "on" or "off"."""
    table = indices[indices["metric"].isin(list(NAMES))]
    on = table["safety"].map({True: "on", False: "off"})
    return table.assign(metric=table["metric"].map(NAMES), safety=on)
