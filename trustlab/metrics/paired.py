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
from trustlab.metrics.estimate import Metric, Rows, Statistic, estimate, groups
from trustlab.metrics.run_tables import FLAT, KEYS, ROW, stratified
from trustlab.metrics.significance import holm, sample_size_for_power
from trustlab.metrics.ties import tied

METRICS = (*RANKING, *OVER_LEVELS)
ALLOWED = (*METRICS, "accuracy")
MIN_COVERAGE = 0.5
"""A column with a value in a smaller share of the answers is left out of common comparisons."""
FAMILY = ["model", "dataset", "metric", "level"]
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
    checked = _checked(table, reference, by, metrics)
    inner = _inner(table, by)
    lines: list[dict[str, Any]] = []
    for of_run, run in groups(checked, ["model", "dataset"]):
        for within_run, part in groups(run, inner):
            label = of_run | within_run
            each = part.set_index(["case_id", "level"]).groupby(by, sort=False)
            sides = {str(name): side for name, side in each}
            if reference not in sides:
                raise ValueError(f"{by} has no {reference!r} for {label}; it has {list(sides)}")
            for name, pair in _pairs(sides, reference):
                made = _lines(pair, metrics, max(min_per_class, 1))
                lines += [{**label, by: name, **line} for line in made]
    return corrected(lines, ["model", "dataset", *inner, by, "level"], ["n_rarer"])


def corrected(
    lines: Iterable[Mapping[str, Any]],
    keys: Sequence[str],
    more: Sequence[str] = (),
    family: Sequence[str] = FAMILY,
) -> pd.DataFrame:
    """Lines of differences as a table: Holm within each ``family`` where it holds, and
    ``cases_needed``, :func:`~trustlab.metrics.significance.sample_size_for_power` of the difference
    observed."""
    found = schema.table(lines, keys, [*DIFFERENCE, "cases_needed", *more])
    if not len(found):
        return found.assign(p_holm=np.nan, cases_needed=np.nan)
    each = zip(found["difference"], found["standard_error"], found["n_cases"], strict=True)
    needed = [sample_size_for_power(float(d), float(e), int(n)) for d, e, n in each]
    tests = found.groupby(list(family), sort=False)["p"]
    holds = [not coverage.withheld("Holm's correction", n, n) for n in found["n_cases"]]
    needs = np.array(needed, dtype=float)
    return found.assign(p_holm=tests.transform(holm).where(holds), cases_needed=needs)


def compared(
    pair: Rows,
    statistic: Statistic,
    *,
    withheld: Callable[[Rows], str] = lambda rows: "",
    undefined: str = "undefined",
    note: str = "",
) -> dict[str, Any]:
    """One line of a difference: the rows' value, their reference's, and the first minus the second.
    ``withheld`` and ``undefined``: of :class:`~trustlab.metrics.estimate.Metric`."""
    metric = Metric(engine.difference(statistic), withheld, undefined)
    found = estimate(pair, metric, note=note, test=True)
    assert pair.reference is not None
    values = [np.nan, np.nan]
    if len(pair) and not withheld(pair):
        values = [float(statistic(side)[0]) for side in (pair, pair.reference)]
    return found | {"value": values[0], "reference": values[1], "difference": found["value"]}


def _checked(given: pd.DataFrame, reference: str, by: str, metrics: Sequence[str]) -> pd.DataFrame:
    schema.need(given, [*KEYS, by, "confidence", "correct"])
    if not metrics or not set(metrics) <= set(ALLOWED):
        raise ValueError(f"metrics must be some of {list(ALLOWED)}; received {list(metrics)}")
    names = list(dict.fromkeys(given[by].astype(str)))
    if reference not in names or len(names) < 2:
        must = f"{by} must hold the reference {reference!r} and another"
        raise ValueError(f"{must}; it holds {names}")
    keys = [*KEYS, by, *_inner(given, by)]
    schema.refuse(given, given.duplicated(keys), f"each {', '.join(keys)} may come once")
    return given.assign(**{by: given[by].astype(str), "level": given["level"].astype(int)})


def _inner(given: pd.DataFrame, by: str) -> list[str]:
    """The column that is compared within, if there is one beside ``by``."""
    return ["method"] if "method" in given and by != "method" else []


def _pairs(sides: dict[str, pd.DataFrame], reference: str) -> Iterator[tuple[str, Rows]]:
    """Each column with the reference beside it, on all rows of either; what both have is known."""
    values = ["confidence", "correct"]
    has = {name: side.index[side[values].notna().all(axis=1)] for name, side in sides.items()}
    for name, side in sides.items():
        if name == reference:
            continue
        every = side.index.union(sides[reference].index)
        both = np.asarray(every.isin(has[name].intersection(has[reference])))
        none = "no graded answer that both have"
        lost = [of for of in (side, sides[reference]) if not len(of.dropna(subset="confidence"))]
        if lost:
            none = f"no confidence: {engine.most_frequent(lost[0])}"
        columns = ["correct", "confidence", *({"method"} & set(side))]
        mine, theirs = (x[columns].reindex(every).reset_index() for x in (side, sides[reference]))
        yield name, Rows(mine, both, none=none, reference=Rows(theirs, both, none=none))


def _lines(pair: Rows, metrics: Sequence[str], least: int) -> Iterator[dict[str, Any]]:
    """Accuracy; AUROC and AUPRC pooled and level-stratified; correlations over the levels."""
    if "accuracy" in metrics:
        found = compared(pair, engine.rate("correct"))
        yield {"metric": "accuracy", "level": "pooled", **found}
    few = engine.at_least(least)
    levels = pair.by("level")
    mixed = [level for level, part in levels.items() if part.rarer]
    inside = pair.where("level", mixed) if mixed else pair
    left_out = ", ".join(str(q) for q, part in levels.items() if q not in mixed and len(part))
    note = f"one class only at level {left_out}: left out" if left_out else ""
    for metric in (m for m in RANKING if m in metrics):
        strata = (("pooled", pair, RANKING, ""), ("within", inside, STRATIFIED, note))
        for level, rows, of, words in strata:
            remark = "" if few(rows) else words
            found = compared(rows, of[metric], withheld=few, undefined="", note=remark)
            found["n_missing"] = len(pair.asked) - found["n"]
            yield {"metric": metric, "level": level, **found}
    short = "fewer than 3 levels" if sum(len(part) > 0 for part in levels.values()) < 3 else ""
    for metric in (m for m in OVER_LEVELS if m in metrics):
        of = engine.across(OVER_LEVELS[metric])
        found = compared(pair, of, withheld=lambda _: short, undefined=FLAT)
        yield {"metric": metric, "level": "across", **found}


RUN = ["model", "dataset"]
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
    table = _joined(answers, confidence, reference)
    if len(set(table["method"])) == 1:
        found = corrected([], [*RUN, "method", "level"], ["n_rarer"])
    else:
        found = paired_differences(
            table, reference, by="method", metrics=["auroc"], min_per_class=min_per_class
        )
    found.insert(3, "family", [families.get(m, OTHER) for m in found["method"]])
    found.insert(4, "against", reference)
    return found


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
    lines: list[dict[str, Any]] = []
    for run_label, run in groups(_joined(answers, confidence, reference), RUN):
        label = {**run_label, "against": reference, "level": "within"}
        graded = run.dropna(subset="correct")
        wide = graded.pivot(index=ROW, columns="method", values="confidence")
        right = graded.drop_duplicates(ROW).set_index(ROW)["correct"].reindex(wide.index)
        asked = wide.assign(correct=right.astype(float)).reset_index()
        n_asked = len(run.drop_duplicates(ROW))
        others = run[run["method"].ne(reference)]
        family_of = others["method"].astype(object).map(families).fillna(OTHER)
        for family, part in others.groupby(family_of, sort=False):
            members = list(part["method"].unique())
            share: Any = wide.notna().mean().reindex(members).fillna(0)
            kept = [m for m in members if share[m] >= MIN_COVERAGE]
            left_out = [m for m in members if m not in kept]
            none = "" if kept else "no method has a value on half of the answers"
            if reference not in wide or not wide[reference].notna().any():
                lost = run[run["method"].eq(reference) & run["confidence"].isna()]
                why = engine.most_frequent(lost) if len(lost) else "no graded answer has a value"
                none = f"no {reference}: {why}"
            known = np.full(len(asked), not none)
            if not none:
                known = asked[[*kept, reference]].notna().all(axis=1).to_numpy()
            rows = Rows(asked, known, none=none or "no graded answer that all have")
            counts = {"n_methods": len(kept), "left_out": ", ".join(left_out)}
            found = _best(rows, kept, reference, min_per_class) | counts
            found["n_missing"] = n_asked - found["n"]
            lines.append({**label, "metric": "auroc", "family": family, **found})
    return corrected(lines, BEST, OF_BEST)


def _best(rows: Rows, kept: Sequence[str], reference: str, least: int) -> dict[str, Any]:
    """The best of ``kept`` beside the reference, or the reason why it is withheld."""
    lines = {}
    for method in [*kept, reference]:
        asked = rows.asked.assign(confidence=rows.asked.get(method, np.nan), method=method)
        lines[method] = stratified(replace(rows, asked=asked), "auroc", least)
    found = lines.pop(reference) | {"low": np.nan, "high": np.nan, "method": ""}
    if np.isnan(found["value"]):
        return found
    values = tied(np.array([line["value"] for line in lines.values()]))
    best, *equals = (kept[int(i)] for i in np.flatnonzero(values == values.max()))
    value, other = lines[best]["value"], found["value"]
    same = f"{coverage.NOT_HELD}; as good: {', '.join(equals)}" if equals else coverage.NOT_HELD
    found |= {"method": best, "value": value, "reference": other, "difference": value - other}
    return found | {"missing": same}


def reference_of(methods: Iterable[str], wanted: str = "medconf") -> str:
    """``wanted`` where it is among the methods, or there is none; else the first of them."""
    names = list(methods)
    return wanted if wanted in names or not names else names[0]


OTHER = "other"


def _joined(answers: pd.DataFrame, confidence: pd.DataFrame, reference: str) -> pd.DataFrame:
    """The confidences with ``correct`` beside them."""
    names = list(dict.fromkeys(confidence["method"]))
    if reference not in names:
        raise ValueError(f"reference is {reference!r}; the confidences are of {names}")
    return confidence.merge(
        answers[[*KEYS, "correct"]], on=KEYS, how="left", validate="many_to_one"
    )
