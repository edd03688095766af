"""Tables that stand behind the benchmark's figures: each a pure function of a run's tidy tables."""

# pandas' types leave open what a selection gives.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from trustlab.confidence import METHODS
from trustlab.metrics import schema
from trustlab.metrics.correlation import pearson_p, spearman
from trustlab.metrics.estimate import MIN_CASES
from trustlab.records import Assessment

JUDGED = {"entailment", "contradiction", "alternative_entailment"}
"""Needs that a judge of entailment meets."""
KEYS = ["case_id", "dataset", "level", "model"]


def about(answers: pd.DataFrame) -> dict[str, Any]:
    """What a caption says of these answers.

    Models and data sets by name, numbers of cases and answers, the levels. ``n_failed`` of the
    answers could not be had or graded and count for nothing.
    """
    cases = answers[["dataset", "case_id"]].drop_duplicates()
    named = {column: list(dict.fromkeys(answers[column])) for column in ("model", "dataset")}
    n_failed, levels = (
        int(answers["correct"].isna().to_numpy().sum()),
        sorted({int(level) for level in answers["level"]}),
    )
    return {
        **named,
        "n_cases": len(cases),
        "n_rows": len(answers),
        "n_failed": n_failed,
        "levels": levels,
    }


def interval_words(table: pd.DataFrame, words: str) -> str:
    """What a caption says of the intervals of ``table``: ``words``, or why it has none."""
    if "low" not in table or table["low"].notna().to_numpy().any():
        return words
    return f"no intervals: fewer than {MIN_CASES} cases, values all alike, or none"


def rank_correlations(confidence: pd.DataFrame, model: str) -> pd.DataFrame:
    """Spearman's correlation between every two methods over the answers that both judged.

    A row a pair, ``first`` and ``second``, in the run's order; without intervals. Methods without
    any value are in no pair.
    """
    mine = confidence[confidence["model"] == model]
    wide: Any = mine.pivot(index=["case_id", "level"], columns="method", values="confidence")
    names = [m for m in confidence["method"].unique() if m in wide and wide[m].notna().any()]
    lines = []
    for first, second in combinations(names, 2):
        both = wide[[first, second]].dropna()
        value = spearman(*both.to_numpy().T) if len(both) > 2 else np.nan
        counts = {"n": len(both), "n_cases": both.index.get_level_values("case_id").nunique()}
        why = "fewer than 3 answers" if len(both) <= 2 else "all alike" if np.isnan(value) else ""
        label = {"model": model, "first": first, "second": second, "metric": "spearman"}
        more = {"value": value, "n_missing": len(wide) - len(both), "missing": why}
        lines.append(label | counts | more)
    return schema.table(lines, ["model", "first", "second"]).drop(columns=["low", "high"])


def correlation_table(metrics: pd.DataFrame) -> pd.DataFrame:
    """Pearson and Spearman between accuracy and mean confidence over the levels, to read.

    A row a model, data set and method. Columns model dataset method n_levels, then of Pearson:
    ``pearson`` with its interval as text, ``p_t_test`` (r and n_levels alone, normal points),
    ``p_permutation`` (exact, every order as likely), ``pearson_by_chance``, the median and middle
    95 % over confidences that merely rise beside the same accuracies; then ``spearman``,
    ``p_exact`` and ``spearman_by_chance``. A small p speaks against 0 only, and whatever rises is
    far from 0 by chance. All as text, '' where there is none.
    """
    rows = metrics[metrics["level"].eq("across") & metrics["metric"].isin(["pearson", "spearman"])]
    keys = ["model", "dataset", "method"]
    means = metrics[metrics["metric"].eq("mean_confidence") & metrics["value"].notna()]
    n_levels: dict[Any, int] = means.groupby(keys, sort=False)["level"].nunique().to_dict()
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for row in rows.itertuples():
        key = (row.model, row.dataset, row.method)
        n = n_levels.get(key, 0)
        band = _text(row.chance, ".3g")
        if row.chance_low < row.chance_high:
            band = f"{row.chance:.2f} [{row.chance_low:.2f}, {row.chance_high:.2f}]"
        mine = found.setdefault(key, {**dict(zip(keys, key, strict=True)), "n_levels": n})
        mine |= {row.metric: _with_interval(row)}
        if row.metric == "pearson":
            mine |= {"p_t_test": _p_text(pearson_p(row.value, n)), "p_permutation": _p_text(row.p)}
        else:
            mine |= {"p_exact": _p_text(row.p)}
        mine |= {f"{row.metric}_by_chance": band}
    order = [
        "pearson",
        "p_t_test",
        "p_permutation",
        "pearson_by_chance",
        "spearman",
        "p_exact",
        "spearman_by_chance",
    ]
    return pd.DataFrame(list(found.values()), columns=[*keys, "n_levels", *order])


def _p_text(p: float) -> str:
    return "<0.001" if p < 0.001 else _text(p, ".3f")


def _text(value: float, form: str) -> str:
    return "" if pd.isna(value) else format(value, form)


def table_by_set(metrics: pd.DataFrame, methods: Sequence[str]) -> pd.DataFrame:
    """Accuracy, and mean confidence of ``methods``, at the highest level.

    A row a model, data set and quantity, 0 to 1. Columns model dataset level quantity value low
    high n n_cases n_missing reason, as in ``metrics``; ``quantity`` is "accuracy" or a method. A
    method's mean is over the ``n`` answers that it has a value for, which need not be the answers
    behind the accuracy.
    """
    single = metrics[metrics["level"].astype(str).str.isdigit()]
    top = single[single["level"].astype(int) == single["level"].astype(int).max()]
    wanted = ["accuracy", *methods]
    quantity = top["method"].where(top["metric"] == "mean_confidence", top["metric"])
    table = top.assign(quantity=quantity)[quantity.isin(wanted).to_numpy()]
    order = table["quantity"].map(wanted.index)
    runs = table.groupby(["model", "dataset"], sort=False).ngroup()
    table = table.iloc[np.lexsort((order, runs))]
    return schema.table(table.to_dict("records"), ["model", "dataset", "level", "quantity"])


def _with_interval(row: Any) -> str:
    if pd.isna(row.value):
        return f"missing ({row.missing})" if row.missing else "missing"
    return (
        f"{row.value:.3f} [{row.low:.3f}, {row.high:.3f}]"
        if pd.notna(row.low)
        else f"{row.value:.3f}"
    )


def cost_table(calls: pd.DataFrame) -> pd.DataFrame:
    """What was asked, by purpose: requests, replies, tokens.

    Each request is counted once, whatever number of methods read it.
    """
    grouped: Any = calls.assign(n_requests=1).groupby(["model", "purpose"], sort=False)
    table = (
        grouped[["n_requests", "n", "n_tokens_in", "n_tokens_out", "n_made", "n_cached"]]
        .sum()
        .reset_index()
    )
    return table.rename(columns={"n": "n_replies"})


def variants_and_bases(methods: Sequence[str]) -> list[str]:
    """Of the methods, those that vary a formula and those they vary.

    Each base stands before its variants (by equation).
    """
    equation = {
        m: METHODS[m].equation.removesuffix(" (variant)")
        for m in methods
        if m in METHODS and METHODS[m].equation
    }
    varied = {equation[m] for m in equation if METHODS[m].equation != equation[m]}
    listed = [m for m in equation if equation[m] in varied]
    return sorted(
        listed,
        key=lambda m: (
            list(equation.values()).index(equation[m]),
            METHODS[m].equation != equation[m],
        ),
    )


def stand_in_note(parameters: Mapping[str, Any], methods: Iterable[str]) -> str:
    """What a caption says where any of ``methods`` was judged by a stand-in for an NLI model.

    '' elsewhere. ``parameters`` are a run's. Methods that are not registered read nothing.
    """
    reading = [m for m in dict.fromkeys(methods) if _is_judged(m)]
    if not reading or not parameters["entailment"]["stand_in"]:
        return ""
    return f"entailment by a stand-in, no NLI model: {', '.join(reading)}"


def coverage_table(
    confidence: pd.DataFrame, parameters: Mapping[str, Any] | None = None
) -> pd.DataFrame:
    """What each model gave of each method.

    Computed, bound or missing with the reason, one row a model and method. Columns model method
    family access status n n_bound bound n_missing reasons. ``status`` is "computed" (every row has
    its value), "bound" (every row has one, some of them only a bound on it), "partly" (some rows
    have one) or "missing" (none has). ``n`` counts the values, ``n_bound`` the bounds among them,
    and ``bound`` is their kind: "upper", "lower" or "lower, upper". ``reasons`` are those of the
    ``n_missing`` rows without one, most frequent first. ``family`` and ``access`` are '' for a
    method that is not registered. With a run's ``parameters`` a column ``judge`` says who judged
    entailment, where a method needs that: "stand-in", or the name of an NLI model.
    """
    rows = []
    groups: Any = confidence.groupby(["model", "method"], sort=False)
    for (model, method), part in groups:
        known = METHODS.get(method)
        place = (known.family, known.access) if known else ("", "")
        given, gone = part[part["confidence"].notna()], part[part["confidence"].isna()]
        bounds = given["bound"].astype(object).fillna("")
        bounds = bounds[bounds != ""]
        status = (
            "missing"
            if not len(given)
            else "partly"
            if len(gone)
            else "bound"
            if len(bounds)
            else "computed"
        )
        why = (
            gone["missing"].astype(object).fillna("").replace("", "no reason given").value_counts()
        )
        reasons = "; ".join(f"{r} ({n})" for r, n in why.items())
        kinds = ", ".join(sorted(bounds.unique()))
        rows.append(
            (model, method, *place, status, len(given), len(bounds), kinds, len(gone), reasons)
        )
    columns = [
        "model",
        "method",
        "family",
        "access",
        "status",
        "n",
        "n_bound",
        "bound",
        "n_missing",
        "reasons",
    ]
    table = pd.DataFrame(rows, columns=columns)
    if parameters is not None:
        judges = [
            parameters["entailment"]["name"] if _is_judged(m) else "" for m in table["method"]
        ]
        table.insert(columns.index("status"), "judge", judges)
    return table


def _is_judged(method: str) -> bool:
    """Whether the method asks a judge of entailment."""
    return method in METHODS and bool(JUDGED & set(METHODS[method].needs))


def evidence_table(assessment: Assessment) -> pd.DataFrame:
    """MedConf's evidence as a table.

    Id criterion importance support_level quotation quotation_occurs.
    """
    rows = [
        (
            e.criterion.id,
            e.criterion.description,
            e.criterion.importance,
            e.support_level,
            e.quote,
            e.quote_occurs,
        )
        for e in assessment.evidence
    ]
    return pd.DataFrame(
        rows,
        columns=["id", "criterion", "importance", "support_level", "quotation", "quotation_occurs"],
    )
