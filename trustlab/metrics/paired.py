"""Asks whether one method beats another on the same answers. Each against a reference, and the
best. Everything is paired: the same rows of the same cases; p-values corrected over a family."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from trustlab.metrics import coverage, schema
from trustlab.metrics import estimate as engine
from trustlab.metrics.correlation import OVER_LEVELS
from trustlab.metrics.discrimination import RANKING, STRATIFIED
from trustlab.metrics.estimate import Line, Metric, Rows, Statistic, estimate, groups
from trustlab.metrics.run_tables import (
    FLAT,
    KEYS,
    ROW,
    note_of_left_out,
    stratified,
    too_few_levels,
)
from trustlab.metrics.significance import holm, sample_size_for_power
from trustlab.metrics.ties import tied

RUN = ["model", "dataset"]
OTHER = "other"
METRICS = (*RANKING, *OVER_LEVELS)
ALLOWED = (*METRICS, "accuracy")
MIN_COVERAGE = 0.5
"""A column with a value in a smaller share of the answers is left out of common comparisons."""
FAMILY = [*RUN, "metric", "level"]
"""What is compared within one of these is a family of tests, corrected together."""
DIFFERENCE = ["reference", "difference", "p", "p_holm", "standard_error"]
"""What a table of differences has beside the columns of every table."""


def paired_differences(
    table: pd.DataFrame,
    reference: str,
    *,
    by: str = "variant",
    metrics: Sequence[str] = METRICS,
    min_per_class: int = 10,
) -> pd.DataFrame:
    """Each column of confidences against ``reference`` on the same rows: their metrics and the gap.

    - ``table`` is tidy: case_id dataset level model, the name of the column (``by``), confidence
      and correct (0, 1 or NaN), maybe method (compared within) and missing. Each column is judged
      by its own ``correct``.
    - One row for each model, data set, method, column, metric and level. Levels are 'pooled' and
      'within' (pairs of answers of the same level) for auroc and auprc,
      'across' for pearson and spearman, 'pooled' for accuracy.
    - ``difference`` is ``value`` (the column's) minus ``reference``; ``low`` and ``high`` bound it;
      ``p`` is two-sided, ``p_holm`` is over one :data:`FAMILY`.
    - Both are measured on the ``n`` shared rows; ``n_rarer`` is of the column that has fewer.
    - Values are withheld below ``min_per_class`` right or wrong answers; ``missing`` says why.
    - ``ValueError`` for lacking columns, unknown metric or reference, repeated rows, no other
      column.
    """
    checked = _check_table(table, reference, by, metrics)
    inner = _inner(table, by)
    least = max(min_per_class, 1)
    lines: list[Line] = []
    for run_label, run in groups(checked, RUN):
        for inner_label, part in groups(run, inner):
            label = run_label | inner_label
            by_name = part.set_index(ROW).groupby(by, sort=False)
            sides = {str(name): side for name, side in by_name}
            if reference not in sides:
                raise ValueError(
                    f"{by} has no {reference!r} for {label}; it has {list(sides)}"
                )
            reference_side = sides.pop(reference)
            for name, side in sides.items():
                for line in _metric_lines(_pair(side, reference_side), metrics, least):
                    lines.append({**label, by: name, **line})
    return corrected(lines, [*RUN, *inner, by, "level"], ["n_rarer"])


def corrected(
    lines: Iterable[Mapping[str, Any]],
    keys: Sequence[str],
    more: Sequence[str] = (),
    family: Sequence[str] = FAMILY,
) -> pd.DataFrame:
    """Lines of differences as a table: Holm within each ``family`` where it holds, and
    ``cases_needed``, :func:`~trustlab.metrics.significance.sample_size_for_power` of the difference
    observed."""
    table = schema.table(lines, keys, [*DIFFERENCE, "cases_needed", *more])
    if not len(table):
        return table.assign(p_holm=np.nan, cases_needed=np.nan)
    needed = []
    is_shown = []
    rows = zip(
        table["difference"], table["standard_error"], table["n_cases"], strict=True
    )
    for difference, error, n_cases in rows:
        n_needed = sample_size_for_power(float(difference), float(error), int(n_cases))
        needed.append(n_needed)
        is_shown.append(not coverage.withheld("Holm's correction", n_cases, n_cases))
    p_holm = table.groupby(list(family), sort=False)["p"].transform(holm)
    return table.assign(
        p_holm=p_holm.where(is_shown), cases_needed=np.array(needed, dtype=float)
    )


def compared(
    pair: Rows,
    statistic: Statistic,
    *,
    withheld: Callable[[Rows], str] = lambda rows: "",
    undefined: str = "undefined",
    note: str = "",
) -> Line:
    """One line of a difference: the rows' value, their reference's, and the first minus the second.
    ``withheld`` and ``undefined``: of :class:`~trustlab.metrics.estimate.Metric`."""
    metric = Metric(engine.difference(statistic), withheld, undefined)
    line = estimate(pair, metric, note=note, test=True)
    value = np.nan
    reference = np.nan
    if len(pair) and not withheld(pair):
        value = float(statistic(pair)[0])
        reference = float(statistic(engine.reference_rows(pair))[0])
    difference = line["value"]
    return line | {"value": value, "reference": reference, "difference": difference}


def _check_table(
    table: pd.DataFrame, reference: str, by: str, metrics: Sequence[str]
) -> pd.DataFrame:
    """The table with names as text and levels as whole numbers; ``ValueError`` for what
    :func:`paired_differences` does not take."""
    schema.need(table, [*KEYS, by, "confidence", "correct"])
    if not metrics or not set(metrics) <= set(ALLOWED):
        raise ValueError(
            f"metrics must be some of {list(ALLOWED)}; received {list(metrics)}"
        )
    column = table[by].astype(str)
    names = list(dict.fromkeys(column))
    if reference not in names or len(names) < 2:
        must = f"{by} must hold the reference {reference!r} and another"
        raise ValueError(f"{must}; it holds {names}")
    keys = [*KEYS, by, *_inner(table, by)]
    schema.refuse(
        table, table.duplicated(keys), f"each {', '.join(keys)} may come once"
    )
    return table.assign(**{by: column, "level": table["level"].astype(int)})


def _inner(table: pd.DataFrame, by: str) -> list[str]:
    """The column that is compared within, if there is one beside ``by``."""
    if "method" in table and by != "method":
        return ["method"]
    return []


def _pair(side: Any, reference: Any) -> Rows:
    """A column with the reference beside it, on all rows of either; what both have is known."""
    rows = side.index.union(reference.index)
    measured = _measured_rows(side)
    measured_reference = _measured_rows(reference)
    shared = measured.intersection(measured_reference)
    has_both = np.asarray(rows.isin(shared))
    none = "no graded answer that both have"
    empty = [table for table in (side, reference) if table["confidence"].isna().all()]
    if empty:
        none = f"no confidence: {engine.most_frequent(empty[0])}"
    columns = [name for name in ("correct", "confidence", "method") if name in side]
    reference_table = reference[columns].reindex(rows).reset_index()
    table = side[columns].reindex(rows).reset_index()
    beside = Rows(reference_table, has_both, none=none)
    return Rows(table, has_both, none=none, reference=beside)


def _measured_rows(side: Any) -> Any:
    """The rows of a column that have a confidence and a grade."""
    is_measured = side[["confidence", "correct"]].notna().all(axis=1)
    return side.index[is_measured]


def _metric_lines(pair: Rows, metrics: Sequence[str], least: int) -> Iterator[Line]:
    """Accuracy; AUROC and AUPRC pooled and level-stratified; correlations over the levels."""
    if "accuracy" in metrics:
        line = compared(pair, engine.rate("correct"))
        yield {"metric": "accuracy", "level": "pooled", **line}
    yield from _ranking_lines(pair, metrics, least)
    for metric, correlation in OVER_LEVELS.items():
        if metric in metrics:
            statistic = engine.across(correlation)
            line = compared(pair, statistic, withheld=too_few_levels, undefined=FLAT)
            yield {"metric": metric, "level": "across", **line}


def _ranking_lines(pair: Rows, metrics: Sequence[str], least: int) -> Iterator[Line]:
    """AUROC and AUPRC of all answers, and of the pairs of one level."""
    mixed = pair.mixed_levels
    inside = pair
    if mixed:
        inside = pair.where("level", mixed)
    left_out = [
        level
        for level, part in pair.by("level").items()
        if len(part) and level not in mixed
    ]
    note = note_of_left_out(left_out)
    too_few = engine.at_least(least)
    for metric in RANKING:
        if metric not in metrics:
            continue
        pooled = compared(pair, RANKING[metric], withheld=too_few, undefined="")
        yield {"metric": metric, "level": "pooled", **pooled}
        statistic = STRATIFIED[metric]
        within = compared(inside, statistic, withheld=too_few, undefined="", note=note)
        within["n_missing"] = len(pair.asked) - within["n"]
        yield {"metric": metric, "level": "within", **within}


BEST = [*RUN, "family", "method", "against", "level"]
OF_BEST = ["n_methods", "left_out", "n_rarer"]
"""What a table of bests has beside the columns of differences."""


def compare_methods(
    answers: pd.DataFrame,
    confidence: pd.DataFrame,
    families: Mapping[str, str],
    reference: str = "medconf",
    min_per_class: int = 10,
) -> pd.DataFrame:
    """The AUROC of every method against ``reference``, on the rows that both have.
    The rows are those of :func:`paired_differences`, with ``family`` and ``against``; ``p_holm`` is
    over all methods of a model, data set, metric and level. ``ValueError``: unknown reference."""
    table = _with_correct(answers, confidence, reference)
    if len(set(table["method"])) == 1:
        differences = corrected([], [*RUN, "method", "level"], ["n_rarer"])
    else:
        differences = paired_differences(
            table,
            reference,
            by="method",
            metrics=["auroc"],
            min_per_class=min_per_class,
        )
    family = [families.get(method, OTHER) for method in differences["method"]]
    differences.insert(3, "family", family)
    differences.insert(4, "against", reference)
    return differences


def best_of_families(
    answers: pd.DataFrame,
    confidence: pd.DataFrame,
    families: Mapping[str, str],
    reference: str = "medconf",
    min_per_class: int = 10,
) -> pd.DataFrame:
    """The method with the highest level-stratified AUROC in each family, against ``reference``.

    - It uses the rows that all methods of the family and the reference have. ``left_out`` names
      methods with a value on less than half of the graded answers; ``n_methods`` counts the others.
    - The best is chosen on the cases on which it is judged, so that no interval and no p of it
      holds.
    - Values are withheld as in :func:`compare_methods`; ``missing`` names equally good methods.
    """
    lines: list[Line] = []
    for run_label, run in groups(_with_correct(answers, confidence, reference), RUN):
        label = {
            **run_label,
            "against": reference,
            "level": "within",
            "metric": "auroc",
        }
        table = _side_by_side(run)
        no_reference = _why_no_reference(run, table, reference)
        n_answers = len(run.drop_duplicates(ROW))
        others = run[run["method"].ne(reference)]
        family_of = others["method"].map(lambda name: families.get(name, OTHER))
        for family, part in others.groupby(family_of, sort=False):
            members = []
            left_out = []
            for method in part["method"].unique():
                is_member = (
                    method in table and table[method].notna().mean() >= MIN_COVERAGE
                )
                if is_member:
                    members.append(method)
                else:
                    left_out.append(method)
            rows = _family_rows(table, [*members, reference], no_reference)
            line = _best(rows, members, reference, min_per_class)
            counts = {
                "n_missing": n_answers - line["n"],
                "n_methods": len(members),
                "left_out": ", ".join(left_out),
            }
            lines.append({**label, "family": family, **line, **counts})
    return corrected(lines, BEST, OF_BEST)


def _side_by_side(run: pd.DataFrame) -> Any:
    """The graded answers of a run: a row each, with ``correct`` and a column a method."""
    graded = run.dropna(subset="correct")
    wide = graded.pivot(index=ROW, columns="method", values="confidence")
    grades = graded.drop_duplicates(ROW).set_index(ROW)
    correct = grades["correct"].reindex(wide.index)
    return wide.assign(correct=correct.astype(float)).reset_index()


def _why_no_reference(run: pd.DataFrame, table: Any, reference: str) -> str:
    """Why the reference has no value on a graded answer, or ''."""
    if reference in table and table[reference].notna().any():
        return ""
    reason = "no graded answer has a value"
    lost = run[run["method"].eq(reference) & run["confidence"].isna()]
    if len(lost):
        reason = engine.most_frequent(lost)
    return f"no {reference}: {reason}"


def _family_rows(table: Any, methods: Sequence[str], no_reference: str) -> Rows:
    """The answers that all members of a family and the reference, the last of ``methods``, have."""
    none = no_reference
    if not none and len(methods) == 1:
        none = "no method has a value on half of the answers"
    if none:
        return Rows(table, np.zeros(len(table), bool), none=none)
    has_all = table[list(methods)].notna().all(axis=1).to_numpy()
    return Rows(table, has_all, none="no graded answer that all have")


def _best(rows: Rows, members: Sequence[str], reference: str, least: int) -> Line:
    """The best of ``members`` beside the reference, or the reason why it is withheld."""
    lines = {}
    for method in [*members, reference]:
        confidence = rows.asked.get(method, np.nan)
        of_method = rows.asked.assign(confidence=confidence, method=method)
        lines[method] = stratified(replace(rows, asked=of_method), "auroc", least)
    line = lines.pop(reference) | {"low": np.nan, "high": np.nan, "method": ""}
    reference_value = line["value"]
    if np.isnan(reference_value):
        return line
    values = np.array([of_method["value"] for of_method in lines.values()])
    with_ties = tied(values)
    is_best = with_ties == with_ties.max()
    places = np.flatnonzero(is_best)
    best, *equals = (members[int(i)] for i in places)
    missing = coverage.NOT_HELD
    if equals:
        missing = f"{missing}; as good: {', '.join(equals)}"
    value = lines[best]["value"]
    return line | {
        "method": best,
        "value": value,
        "reference": reference_value,
        "difference": value - reference_value,
        "missing": missing,
    }


def reference_of(methods: Iterable[str], wanted: str = "medconf") -> str:
    """``wanted`` where it is among the methods, or there is none; else the first of them."""
    names = list(methods)
    if wanted in names or not names:
        return wanted
    return names[0]


def _with_correct(
    answers: pd.DataFrame, confidence: pd.DataFrame, reference: str
) -> pd.DataFrame:
    """The confidences with ``correct`` beside them."""
    names = list(dict.fromkeys(confidence["method"]))
    if reference not in names:
        raise ValueError(f"reference is {reference!r}; the confidences are of {names}")
    grades = answers[[*KEYS, "correct"]]
    return confidence.merge(grades, on=KEYS, how="left", validate="many_to_one")
