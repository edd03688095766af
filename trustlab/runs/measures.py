"""Measures a run: the metrics, given each method's family and scale; groups of its cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from trustlab.confidence import METHODS
from trustlab.confidence.registry import families
from trustlab.metrics import combined, paired, run_tables, schema
from trustlab.metrics.groups import UNSTATED, group_table, in_bands
from trustlab.runs.run import CASE, Run

EDGES = {"age": (18, 40, 65)}
"""Fact -> the numbers between its bands."""


def scales_of(confidence: pd.DataFrame) -> dict[str, str]:
    """Method -> its scale, of those of a table of confidences that are registered."""
    names = dict.fromkeys(confidence["method"])
    return {name: METHODS[name].scale for name in names if name in METHODS}


def metrics_table(
    run: Any,
    scales: Mapping[str, str] | None = None,
    *,
    min_per_class: int = 10,
    n_jobs: int = 1,
) -> pd.DataFrame:
    """Every metric of every method: :func:`trustlab.metrics.run_tables.metrics_table`. It gives
    Brier score and ECE where ``scales`` says "probability"; ``None`` uses the registry's scales."""
    if scales is None:
        scales = scales_of(run.confidence)
    return run_tables.metrics_table(
        run, scales, min_per_class=min_per_class, n_jobs=n_jobs
    )


def compare_methods(
    answers: pd.DataFrame,
    confidence: pd.DataFrame,
    reference: str = "medconf",
    min_per_class: int = 10,
) -> pd.DataFrame:
    """Every method against ``reference``: :func:`trustlab.metrics.paired.compare_methods`."""
    family_of = families(confidence["method"])
    return paired.compare_methods(
        answers, confidence, family_of, reference, min_per_class
    )


def best_of_families(
    answers: pd.DataFrame,
    confidence: pd.DataFrame,
    reference: str = "medconf",
    min_per_class: int = 10,
) -> pd.DataFrame:
    """The method with the highest AUROC in each family, against ``reference``:
    :func:`trustlab.metrics.paired.best_of_families`."""
    family_of = families(confidence["method"])
    return paired.best_of_families(
        answers, confidence, family_of, reference, min_per_class
    )


def by_group(
    run: Run,
    by: str,
    *,
    edges: Sequence[float] | None = None,
    methods: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Accuracy, confidence minus accuracy, AUROC and ECE in each group of cases, with differences:
    :func:`trustlab.metrics.groups.group_table`.

    - ``by``: "sex"; "age" in years; "frequency", how many of the run's cases have the same
      diagnosis; or a table's own ``group:NAME``.
    - ``edges``: between bands of numbers; default :data:`EDGES`, else each value is a group.
    - ``methods``: default all of the run. Fewer make fewer tests, which Holm corrects together.
    - ``ValueError``: a fact that no case has, or one twice, a value that is no number where there
      are bands, a method that the run does not have.
    """
    facts: Any = _frequencies(run.answers)
    if by != "frequency":
        facts = schema.pick(run.facts, fact=by)[[*CASE, "value"]]
    schema.refuse(facts, facts.duplicated(CASE), f"a case may have {by} once")
    values = run.answers[CASE].merge(facts, how="left", on=CASE)["value"]
    edges = edges or EDGES.get(by)
    groups = values.fillna(UNSTATED)
    if edges:
        groups = in_bands(pd.to_numeric(values), edges)
    confidence = run.confidence
    if methods is not None:
        confidence = schema.pick(confidence, method=list(methods))
    answers = run.answers.assign(group=groups.array)
    return group_table(answers, confidence, scales_of(confidence), by)


def _frequencies(answers: pd.DataFrame) -> pd.DataFrame:
    """``dataset``, ``case_id``, and as ``value`` how many cases have the same diagnosis, where it
    is known."""
    truth = answers["truth"].fillna("")
    named = schema.rows_where(answers, truth.ne(""))
    of_case = named.drop_duplicates(CASE)
    by_truth = of_case.groupby(["dataset", "truth"])
    counts = by_truth["case_id"].transform("size")
    return of_case[CASE].assign(value=counts.astype(str))


def combine(run: Run, methods: Sequence[str]) -> combined.Combined:
    """Several methods as one, ``combined``, against the best of them in the training folds:
    :func:`trustlab.metrics.combined.combine`."""
    scales = scales_of(run.confidence)
    return combined.combine(run.answers, run.confidence, methods, scales)
