"""Do the reviewers see what the rule check sees? From the table of marks.

``marks`` is that of :class:`trustlab.experiments.trust.TrustRun`: a row a prescription or test,
with the reviewer's verdict and the rule check's. The rule check is no truth: it knows the safety
table and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import pandas as pd

from trustlab.chart import Chart, chart_of
from trustlab.metrics.estimate import Rows, estimate, grouped, mean, measure
from trustlab.metrics.schema import need, table
from trustlab.records import FLAGS, RATINGS, Case
from trustlab.safety import Safety, load_safety

BY = ["model", "dataset", "level", "kind"]
SAID = ["item", "text", "verdict", "quote", "reason", "rule"]
NEEDED = [*BY, "case_id", "configuration", *SAID, "known", "quote_occurs", "rule_verdict"]
KINDS = ("prescription", "test")
OBJECTIONS = (*RATINGS[1:3], *FLAGS[1:3])
FINE = (RATINGS[0], FLAGS[0])
RULE_WORDS = {
    "allergy": "allergy", "medication": "another drug", "condition": "illness",
    "pregnancy": "pregnancy", "sex": "sex", "age_below": "age", "age_from": "age",
    "egfr_below": "kidney function", "done": "a test done before",
    "also": "another test of the plan", "duplicate": "taken already",
    "repeat": "done or ordered already",
}  # fmt: skip
"""What a rule hangs on, in words."""
NO_RULE = "the rule check objects to none"
ALL_OBJECT = "the rule check objects to all"
NO_OBJECTION = "the reviewer objects to none"
NOTHING = "no item that both have rated"
MEASURES = {
    "sensitivity": ("rule_objects", True, "objects", NO_RULE),
    "specificity": ("rule_objects", False, "accepts", ALL_OBJECT),
    "quotation": ("objects", True, "quotes", NO_OBJECTION),
}
"""Name -> (column, the value it must have, what is counted among those, why there is none)."""


def compared(marks: pd.DataFrame, safety: Safety | None = None) -> pd.DataFrame:
    """The items that both have rated: known to the table, and read as an objection or as fine.

    - Adds ``objects`` and ``accepts`` (the reviewer), ``quotes`` (its quotation occurs in what it
      was shown), ``rule_objects`` and ``rule_kind`` (what the rule hangs on, in words; "" without).
    - A review that came out the same, item by item, for one doctor and for the panel counts once.
    - ``ValueError`` for lacking columns.
    """
    items, known = _once(marks), safety or load_safety()
    items = items[items["known"].astype(bool) & items["verdict"].isin([*OBJECTIONS, *FINE])]
    rules: Any = {name: of.kind for name, of in {**known.test_rules, **known.drug_rules}.items()}
    rule: Any = items["rule"].where(items["rule"].map(lambda r: isinstance(r, str)), "")
    return items.assign(
        objects=items["verdict"].isin(OBJECTIONS),
        accepts=items["verdict"].isin(FINE),
        quotes=items["quote_occurs"].eq(True),
        rule_objects=items["rule_verdict"].isin(OBJECTIONS),
        rule_kind=rule.map(lambda r: r and RULE_WORDS.get(rules.get(r, r), r)),
    )


def reviewer_table(
    marks: pd.DataFrame,
    reviews: pd.DataFrame | None = None,
    draws: int = 2000,
    seed: int = 0,
    safety: Safety | None = None,
) -> pd.DataFrame:
    """How the reviewers compare with the rule check, by kind: shares of ``n`` items, 0 to 1.

    - ``sensitivity``: of the items that the rules object to, those to which the reviewer objects
      too, whatever the degree; ``specificity``: of the others, those that it lets pass;
      ``quotation``: of its objections, those whose quotation occurs in what it was shown.
    - What the table does not know, and what could not be read, is left out:
      :func:`left_out_table` counts it.
    - With ``reviews`` (a run's) models and data sets of which nothing was marked have rows, too.
    """
    items, lines = _by_case(compared(marks, safety)), []
    runs = (marks if reviews is None else reviews)[BY[:3]].drop_duplicates()
    for label in runs.merge(pd.DataFrame({"kind": KINDS}), how="cross").to_dict("records"):
        part = items[(items[BY] == pd.Series(label)).all(axis=1)]
        for metric, (column, value, counted, none) in MEASURES.items():
            none = none if len(part) else NOTHING
            rows = Rows.of(part[part[column] == value], counted, draws, seed, none)
            lines.append({**label, "metric": metric, **estimate(rows, mean(counted))})
    return table(lines, BY)


def rule_kind_table(
    marks: pd.DataFrame, draws: int = 2000, seed: int = 0, safety: Safety | None = None
) -> pd.DataFrame:
    """Sensitivity by what the rule hangs on, over all data sets and levels, most items first.

    Where several rules speak against an item, the worst one counts.
    """
    items, keys = _by_case(compared(marks, safety)), ["model", "kind", "rule_kind"]
    groups = grouped(items[items["rule_objects"]], keys, "objects", n_draws=draws, seed=seed)
    found = table(measure(groups, {"sensitivity": mean("objects")}), keys)
    order: Any = {"ascending": [True, True, False], "kind": "stable", "ignore_index": True}
    return found.sort_values(["model", "kind", "n"], **order)


def left_out_table(marks: pd.DataFrame) -> pd.DataFrame:
    """What could not be compared: a row a model, data set, level and kind, each review once.

    Columns: n_items, n_compared, and of the rest n_unknown (to the table), n_unreadable (the
    reviewer's mark), n_said_unknown (to the reviewer, though the table knows it).
    """
    items = _once(marks)
    known = items["known"].astype(bool)
    counted = items[BY].assign(
        n_items=1,
        n_compared=known & items["verdict"].isin([*OBJECTIONS, *FINE]),
        n_unknown=~known,
        n_unreadable=known & items["verdict"].isna(),
        n_said_unknown=known & items["verdict"].eq("UNKNOWN"),
    )
    return counted.groupby(BY, sort=False, observed=True).sum().astype(int).reset_index()


def verdict_table(marks: pd.DataFrame) -> pd.DataFrame:
    """How often the reviewer gave which verdict where the rule check gave which, each review once.

    Counts of items, unreadable marks and unknown items too. Index model, kind, rule check; a column
    a verdict of the reviewer, worst last.
    """
    items, keys = _once(marks), ["model", "kind", "rule check", "reviewer"]
    order = [*RATINGS, *FLAGS[:3], "unreadable"]
    rule = pd.Categorical(items["rule_verdict"], order)
    said = pd.Categorical(items["verdict"].fillna("unreadable"), order)
    named = items[keys[:2]].assign(**{"rule check": rule, "reviewer": said})
    return named.groupby(keys, observed=True).size().unstack("reviewer", fill_value=0)


def charts_table(cases: Sequence[Case]) -> pd.DataFrame:
    """How many cases (``n_cases``) have each field of a chart recorded: a row a data set."""
    names = [field.name for field in fields(Chart)]
    charts = pd.DataFrame([vars(chart_of(case)) for case in cases], columns=names).notna()
    charts.insert(0, "n_cases", 1)
    of = pd.Series([case.dataset for case in cases], name="dataset", dtype=object)
    found: Any = charts.groupby(of, sort=False).sum()
    return found.astype(int).reset_index()


def _once(marks: pd.DataFrame) -> Any:
    """Each review once: of configurations whose reviews are alike in every item, the first."""
    need(marks, NEEDED, "marks")
    review = [*BY, "case_id", "configuration"]
    texts = list(marks[SAID].astype(str).itertuples(index=False, name=None))
    said = pd.Series(texts, marks.index, dtype=object)
    each: Any = marks[review].assign(said=said).groupby(review, sort=False)["said"].agg(tuple)
    first = each.reset_index().drop_duplicates([*review[:-1], "said"])
    return marks.merge(first[review], on=review, validate="many_to_one")


def _by_case(items: pd.DataFrame) -> Any:
    """The items with ``case_id`` naming their data set, too: all data sets are drawn together."""
    return items.assign(case_id=items["dataset"].astype(str) + " " + items["case_id"].astype(str))
