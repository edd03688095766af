"""Measures a run: the metrics, given each method's family and scale; groups of its cases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from trustlab.confidence import METHODS
from trustlab.metrics import combined, paired, run_tables, schema
from trustlab.metrics.groups import UNSTATED, group_table, in_bands
from trustlab.records import Case
from trustlab.runs.run import CASE, FACTS, Run, case_facts

AGES = (18.0, 40.0, 65.0)
"""Ages in years between which ``by="age"`` draws its bands."""
FREQUENCY = "frequency"


def families(methods: Iterable[str] = ()) -> dict[str, str]:
    """Registered method -> its family; also of those of ``methods`` that a table brings."""
    names = dict.fromkeys([*METHODS, *methods])
    return {name: METHODS[name].family for name in names if name in METHODS}


def scales_of(confidence: pd.DataFrame) -> dict[str, str]:
    """Registered method -> its scale; also of those that a table of confidences brings."""
    names = dict.fromkeys([*METHODS, *confidence["method"]])
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
    against: str = "",
    methods: Sequence[str] | None = None,
    cases: Sequence[Case] | None = None,
) -> pd.DataFrame:
    """Accuracy, confidence minus accuracy, AUROC and ECE in each group of cases, with differences:
    :func:`trustlab.metrics.groups.group_table`.

    - ``by``: "sex"; "age", in bands between ``edges`` in years, default :data:`AGES`; "frequency",
      how many of the run's cases have the same diagnosis, default below and from its median; a
      table's own ``group:NAME``; or any fact of ``cases``. With ``edges`` its values are numbers.
    - ``against``: the group that the others are compared with; default the largest.
    - ``methods``: default all of the run. Fewer make fewer tests, which Holm corrects together.
    - ``ValueError``: a fact that no case has, a value that is no number where there are bands,
      fewer than two groups, ``against`` no group, a method that the run does not have.
    """
    facts = _facts_of(run, by, cases)
    keys = run.answers[CASE].astype(str)
    values = keys.merge(facts, how="left", on=CASE, validate="many_to_one")["value"]
    if by == "age":
        edges = edges or AGES
    if by == FREQUENCY:
        edges = edges or [float(values.median())]
    groups = values.fillna(UNSTATED).astype(str)
    if edges:
        numbers = pd.to_numeric(values, errors="coerce")
        is_bad = values.notna() & numbers.isna()
        schema.refuse(keys.assign(value=values), is_bad, f"{by} must be a number")
        groups = in_bands(numbers, edges)
    names = set(groups)
    if len(names - {UNSTATED}) < 2:
        raise ValueError(f"by is {by!r}: all cases are in one group, {sorted(names)}")
    confidence = run.confidence
    if methods is not None:
        confidence = schema.pick(confidence, method=list(methods))
    answers = run.answers.assign(group=groups.array)
    return group_table(answers, confidence, scales_of(confidence), by, against)


def _facts_of(run: Run, by: str, cases: Sequence[Case] | None) -> pd.DataFrame:
    """What is known of each case: ``dataset``, ``case_id`` and ``value``."""
    if by == FREQUENCY:
        return _frequencies(run.answers)
    facts = run.cases
    if cases is not None:
        rows = case_facts(cases, by)
        facts = pd.DataFrame(rows, columns=list(FACTS))
    names = list(facts["fact"].unique())
    if by not in names:
        words = f"the cases have {[*names, FREQUENCY]}"
        raise ValueError(f"by is {by!r}; {words}; cases= may bring other facts")
    chosen = schema.pick(facts, fact=by)
    return chosen[[*CASE, "value"]]


def _frequencies(answers: pd.DataFrame) -> pd.DataFrame:
    """How many cases have the diagnosis of each case, where it is known; as :func:`_facts_of`."""
    of_case = answers.drop_duplicates(CASE)
    truth = of_case["truth"].fillna("")
    named = schema.rows_where(of_case, truth.ne(""))
    by_truth = named.groupby(["dataset", "truth"])
    counts = by_truth["case_id"].transform("size")
    return named[CASE].astype(str).assign(value=counts)


def combine(run: Run, methods: Sequence[str], *, seed: int = 0) -> combined.Combined:
    """Several methods as one, ``combined``, against the best of them in the training folds:
    :func:`trustlab.metrics.combined.combine`."""
    scales = scales_of(run.confidence)
    return combined.combine(run.answers, run.confidence, methods, scales, seed=seed)
