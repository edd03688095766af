"""Do the reviewers see what the rule check sees? Their sensitivity, specificity and quotations, from the table of marks.

``marks`` is that of :class:`trustlab.experiments.trust.TrustRun`: a row a prescription or test, with the reviewer's verdict and
the rule check's. The rule check is no truth: it knows the safety table and nothing else. Intervals are 95 % percentile
bootstrap over cases, with all their items.
"""

# pandas' types leave open what a selection gives.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false, reportReturnType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import pandas as pd

from trustlab.chart import Chart, chart_of
from trustlab.metrics.estimate import TOO_FEW, case_weights, enough_cases, percentile_interval
from trustlab.records import FLAGS, RATINGS, Case
from trustlab.safety import Safety, load_safety

NEEDED = [
    "model", "dataset", "level", "case_id", "configuration", "kind", "item", "text", "known", "verdict", "quote", "quote_occurs",
    "reason", "rule_verdict", "rule",
]  # fmt: skip
BY = ("model", "dataset", "level", "kind")
KINDS = ("prescription", "test")
OBJECTIONS = (*RATINGS[1:3], *FLAGS[1:3])
FINE = (RATINGS[0], FLAGS[0])
RULE_WORDS = {
    "allergy": "allergy", "medication": "another drug", "condition": "illness", "pregnancy": "pregnancy", "sex": "sex",
    "age_below": "age", "age_from": "age", "egfr_below": "kidney function", "done": "a test done before",
    "also": "another test of the plan", "duplicate": "taken already", "repeat": "done or ordered already",
}  # fmt: skip
"""What a rule hangs on, in words."""
NO_RULE = "the rule check objects to none"
ALL_OBJECT = "the rule check objects to all"
NO_OBJECTION = "the reviewer objects to none"
NOTHING = "no item that both have rated"
ALIKE = "no interval: all items alike"
MEASURES = {
    "sensitivity": ("rule_objects", True, "objects", NO_RULE),
    "specificity": ("rule_objects", False, "accepts", ALL_OBJECT),
    "quotation": ("objects", True, "quotes", NO_OBJECTION),
}
"""Name -> (column, the value it must have, what is counted among those, why there is none)."""


def compared(marks: pd.DataFrame, safety: Safety | None = None) -> pd.DataFrame:
    """The items that both have rated: known to the table, and read as an objection or as fine by the reviewer.

    Adds ``objects`` and ``accepts`` (the reviewer), ``quotes`` (its quotation occurs in what it was shown), ``rule_objects``
    and ``rule_kind`` (what the rule hangs on, in words; "" without a rule). A review that came out the same, item by item, for
    one doctor and for the panel counts once. ``ValueError`` for lacking columns.
    """
    table = _once(_checked(marks))
    table = table[table["known"].astype(bool) & table["verdict"].isin([*OBJECTIONS, *FINE])]
    return table.assign(
        objects=table["verdict"].isin(OBJECTIONS),
        accepts=table["verdict"].isin(FINE),
        quotes=table["quote_occurs"].eq(True),
        rule_objects=table["rule_verdict"].isin(OBJECTIONS),
        rule_kind=[_kind(rule, safety or load_safety()) for rule in table["rule"]],
    )


def reviewer_table(
    marks: pd.DataFrame, reviews: pd.DataFrame | None = None, draws: int = 2000, seed: int = 0, safety: Safety | None = None
) -> pd.DataFrame:
    """How the reviewers compare with the rule check: a row a model, data set, level, kind and measure, values from 0 to 1.

    ``sensitivity``: share of the items that the rules object to, to which the reviewer objects too, whatever the degree;
    ``specificity``: share of the others that it lets pass; ``quotation``: share of its objections whose quotation occurs in
    what it was shown. Columns: the keys, measure, value, low, high, n_items, n_hits, n_cases (behind the value), reason. What
    the table does not know, and what could not be read, is left out: :func:`left_out_table` counts it. With ``reviews`` (a
    run's) models and data sets of which nothing was marked have their rows too.
    """
    table, rows = compared(marks, safety), []
    runs = (marks if reviews is None else reviews)[list(BY[:3])].drop_duplicates()
    for run in runs.to_dict("records"):
        for kind in KINDS:
            label = run | {"kind": kind}
            part = _where(table, label)
            for measure, (column, value, counted, why) in MEASURES.items():
                found = _share(part[part[column] == value], counted, why if len(part) else NOTHING, draws, seed)
                rows.append(label | {"metric": measure} | found)
    return pd.DataFrame(rows, columns=[*BY, "metric", "value", "low", "high", "n_items", "n_hits", "n_cases", "missing"])


def rule_kind_table(marks: pd.DataFrame, draws: int = 2000, seed: int = 0, safety: Safety | None = None) -> pd.DataFrame:
    """Sensitivity by what the rule hangs on, over all data sets and levels: a row a model, kind and rule kind, most items first.

    Columns as in :func:`reviewer_table`, with ``rule_kind``. Where several rules speak against an item, the worst one counts.
    """
    table = compared(marks, safety)
    table = table[table["rule_objects"]]
    rows = []
    for key, part in table.groupby(["model", "kind", "rule_kind"], sort=False, observed=True):
        rows.append(dict(zip(("model", "kind", "rule_kind"), key, strict=True)) | _share(part, "objects", NO_RULE, draws, seed))
    columns = ["model", "kind", "rule_kind", "value", "low", "high", "n_items", "n_hits", "n_cases", "missing"]
    found = pd.DataFrame(rows, columns=columns)
    return found.sort_values(["model", "kind", "n_items"], ascending=[True, True, False], kind="stable", ignore_index=True)


def left_out_table(marks: pd.DataFrame) -> pd.DataFrame:
    """What could not be compared: a row a model, data set, level and kind, each review once.

    Columns: n_items, n_compared, and of the rest n_unknown (the table does not know it), n_unreadable (the reviewer's mark),
    n_said_unknown (the reviewer says that it does not know an item of the table).
    """
    table = _once(_checked(marks))
    known = table["known"].astype(bool)
    counted = table[list(BY)].assign(
        n_items=1,
        n_compared=known & table["verdict"].isin([*OBJECTIONS, *FINE]),
        n_unknown=~known,
        n_unreadable=known & table["verdict"].isna(),
        n_said_unknown=known & table["verdict"].eq("UNKNOWN"),
    )
    return counted.groupby(list(BY), sort=False, observed=True).sum().astype(int).reset_index()


def verdict_table(marks: pd.DataFrame) -> pd.DataFrame:
    """How often the reviewer gave which verdict where the rule check gave which: counts of items, each review once.

    Index model, kind, rule check; a column a verdict of the reviewer, worst last. Unreadable marks and unknown items are in it.
    """
    table = _once(_checked(marks))
    order = [*RATINGS, *FLAGS[:3], "unreadable"]
    rule = pd.Categorical(table["rule_verdict"], order)
    said = pd.Categorical(table["verdict"].fillna("unreadable"), order)
    named = table[["model", "kind"]].assign(**{"rule check": rule, "reviewer": said})
    sizes = named.groupby(["model", "kind", "rule check", "reviewer"], observed=True).size()
    return sizes.unstack("reviewer", fill_value=0)


def charts_table(cases: Sequence[Case]) -> pd.DataFrame:
    """How many cases have each field of a chart recorded: a row a data set, columns n_cases and the fields."""
    names = [f.name for f in fields(Chart)]
    rows = []
    for case in cases:
        chart = chart_of(case)
        rows.append({"dataset": case.dataset, "n_cases": 1} | {name: getattr(chart, name) is not None for name in names})
    return (
        pd.DataFrame(rows, columns=["dataset", "n_cases", *names]).groupby("dataset", sort=False).sum().astype(int).reset_index()
    )


def _checked(marks: pd.DataFrame) -> pd.DataFrame:
    if lacking := [name for name in NEEDED if name not in marks.columns]:
        raise ValueError(f"marks lack the columns {lacking}; they have {list(marks.columns)}")
    return marks


def _once(marks: pd.DataFrame) -> pd.DataFrame:
    """Each review once: of configurations whose reviews are alike in every item, the first."""
    one = ["model", "dataset", "level", "case_id", "kind"]
    seen, kept = set(), []
    groups: Any = marks.groupby([*one, "configuration"], sort=False, observed=True)
    for (*key, _), part in groups:
        content = [tuple(row) for row in part[["item", "text", "verdict", "quote", "reason", "rule"]].astype(str).to_numpy()]
        review = (*key, *content)
        if review not in seen:
            seen.add(review)
            kept.append(part)
    return pd.concat(kept) if kept else marks


def _where(table: pd.DataFrame, label: Mapping[Any, Any]) -> pd.DataFrame:
    for name, value in label.items():
        table = table.loc[table[name] == value]  # pyright: ignore[reportAssignmentType]
    return table


def _share(part: pd.DataFrame, counted: str, none: str, draws: int, seed: int) -> dict[str, Any]:
    """The share of the rows for which ``counted`` holds, with its interval over cases or the reason why there is none."""
    hits = part[counted].to_numpy(float)
    cases = (part["dataset"].astype(str) + " " + part["case_id"].astype(str)).to_numpy(str)
    found = {"value": np.nan, "low": np.nan, "high": np.nan, "n_items": len(hits), "n_hits": int(hits.sum())}
    found |= {"n_cases": len(np.unique(cases)), "missing": none}
    if not len(hits):
        return found
    found |= {"value": float(hits.mean()), "missing": ""}
    if not enough_cases(cases):
        return found | {"missing": TOO_FEW}
    if np.ptp(hits) == 0:
        return found | {"missing": ALIKE}
    weights = case_weights(cases, draws, seed)
    found["low"], found["high"] = percentile_interval((weights @ hits) / weights.sum(axis=1))
    return found


def _kind(rule: object, safety: Safety) -> str:
    """What a rule of the table, or one of the rule check's own, hangs on."""
    if not isinstance(rule, str) or not rule:
        return ""
    known = safety.drug_rules.get(rule) or safety.test_rules.get(rule)
    return RULE_WORDS.get(known.kind if known else rule, rule)
