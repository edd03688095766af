"""Data that say nothing: what every public function of the metrics makes of them.

No rows, one row, one class, a constant confidence, ties everywhere, nothing but missing values,
infinite ones. The result is NaN (with a reason, where there is a place for one), the number that
the definition gives, or a ``ValueError``; never a warning, another error, or an interval without
width. The functions are found by looking, so that a new one cannot be forgotten. Tables are put to
the same in test_degenerate_tables.py.
"""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
import pytest
from degenerate_facts import (
    A_SHARE,
    INF,
    NAN,
    NO_VALUE,
    NOTHING,
    OTHERS,
    REFUSED,
    check,
    numbers,
    once,
)
from each import each

import trustlab.metrics
from trustlab.metrics import calibration, discrimination, selective
from trustlab.metrics.estimate import Rows

pytestmark = pytest.mark.filterwarnings("error")

# Right and wrong answers with their confidences

PAIRS: dict[str, tuple[list, list]] = {
    "no rows": ([], []),
    "one row": ([1], [0.7]),
    "one class": ([1, 1, 1], [0.2, 0.5, 0.9]),
    "constant confidence": ([1, 0, 1, 0], [0.5] * 4),
    "ties everywhere": ([1, 0, 1, 0, 0], [0.2, 0.2, 0.8, 0.8, 0.8]),
}
OF_PAIRS: dict[str, tuple[Callable[[Any, Any], Any], tuple[Any, ...]]] = {
    "discrimination.auroc": (discrimination.auroc, (*NO_VALUE, 0.5, 2.5 / 6)),
    "discrimination.auprc": (discrimination.auprc, (*NO_VALUE, 0.5, 11 / 30)),
    "discrimination.ranking_weighted": (
        lambda c, s: np.stack(discrimination.ranking_weighted(c, s, once(c)), axis=1),
        (*NO_VALUE, (0.5, 0.5), (2.5 / 6, 11 / 30)),
    ),
    "calibration.brier": (calibration.brier, (NAN, 0.09, 0.3, 0.25, 0.4)),
    "calibration.ece": (calibration.ece, (NAN, 0.3, 1.4 / 3, 0, (2 * 0.3 + 3 * (0.8 - 1 / 3)) / 5)),
    "calibration.ece_weighted": (
        lambda c, s: calibration.ece_weighted(c, s, once(c)),
        (NAN, 0.3, 1.4 / 3, 0, (2 * 0.3 + 3 * (0.8 - 1 / 3)) / 5),
    ),
    "calibration.brier_parts_weighted": (
        lambda c, s: calibration.brier_parts_weighted(c, s, once(c)),
        (NO_VALUE, NO_VALUE, NO_VALUE, (0, 0, 0.25), (0.16, 0, 0.24)),
    ),
    "calibration.cross_fitted": (
        lambda c, s: calibration.cross_fitted(c, s, np.arange(np.size(c)), n_folds=2, seed=1),
        (NOTHING, NAN, NAN, A_SHARE, A_SHARE),
    ),
    "selective.risk_at": (
        lambda c, s: selective.risk_at(c, s, once(c), [1.0]),
        (NAN, 0, 0, 0.5, 0.6),
    ),
    "selective.selective_weighted": (
        lambda c, s: np.stack(selective.selective_weighted(c, s, once(c)), axis=1),
        (*NO_VALUE, (0.5, 0), (0.645, -0.045 / (0.6 - 0.86 / 3))),
    ),
}


@each("situation", PAIRS)
@each("name", OF_PAIRS)
def test_answers_with_confidences(name, situation):
    call, expected = OF_PAIRS[name]
    check(lambda: call(*PAIRS[situation]), expected[list(PAIRS).index(situation)])


NOT_FINITE = {
    "infinite": ([1, 0, 1], [0.1, INF, 0.9]),
    "minus infinite": ([1, 0, 1], [-INF, 0.1, 0.9]),
    "missing confidence": ([1, 0, 1], [0.5, NAN, 0.9]),
    "unknown answer": ([1, NAN, 0], [0.5, 0.4, 0.9]),
    "other lengths": ([1, 0, 1], [0.5, 0.4]),
}


@each("situation", NOT_FINITE)
@each("name", OF_PAIRS)
def test_answers_or_confidences_that_are_no_numbers_are_refused(name, situation):
    check(lambda: OF_PAIRS[name][0](*NOT_FINITE[situation]), REFUSED)


# Whatever measures answers with confidences, found by its arguments

OF_ARRAYS = (["correct", "confidence"], ["correct", "confidence", "weights"])


READ = ("costs", "formatted")
"""Modules that count, read or write what others have measured; test_costs, test_tables."""


def public() -> dict[str, Any]:
    """Every public function of the metrics, and every class that is fitted, by module.name."""
    found = {}
    for module in pkgutil.iter_modules(trustlab.metrics.__path__):
        if module.name in READ:
            continue
        held = import_module(f"trustlab.metrics.{module.name}")
        for name, thing in vars(held).items():
            own = getattr(thing, "__module__", "") == held.__name__ and not name.startswith("_")
            if own and (
                inspect.isfunction(thing) or hasattr(thing, "cache_info") or hasattr(thing, "fit")
            ):
                found[f"{module.name}.{name}"] = thing
    return found


def measures() -> dict[str, tuple[Callable[[Any, Any], Any], bool]]:
    """What measures (correct, confidence), maybe weighted, or rows that hold them; whether it takes
    arrays."""
    found: dict[str, tuple[Callable[[Any, Any], Any], bool]] = {}
    for name, thing in public().items():
        wanted = [*inspect.signature(thing).parameters] if inspect.isfunction(thing) else []
        if wanted == ["rows"]:
            found[name] = (lambda c, s, of=thing: of(rows_of(c, s)), False)
        elif wanted in OF_ARRAYS:
            more = len(wanted) > 2
            found[name] = (
                lambda c, s, of=thing, more=more: of(c, s, *([once(c)] if more else [])),
                True,
            )
    return found


def rows_of(correct: Any, confidence: Any) -> Rows:
    table = pd.DataFrame({"correct": correct, "confidence": confidence, "level": 1})
    table = table.assign(case_id=[f"c{i:02d}" for i in range(len(table))], missing="none")
    return Rows.of(table, "confidence", 20)


@each("situation", PAIRS)
@each("name", measures())
def test_a_measure_is_a_number_or_none_or_refused(name, situation):
    try:
        found = numbers(measures()[name][0](*PAIRS[situation]))
    except ValueError as error:
        assert str(error)
    else:
        assert not np.isinf(found).any()


@each("situation", NOT_FINITE)
@each("name", [name for name, (_, of_arrays) in measures().items() if of_arrays])
def test_a_measure_refuses_what_is_no_number(name, situation):
    check(lambda: measures()[name][0](*NOT_FINITE[situation]), REFUSED)


# Everything else


@each(
    "call, expected",
    [fact[2:] for fact in OTHERS],
    ids=[f"{fact[0]}, {fact[1]}" for fact in OTHERS],
)
def test_everything_else(call, expected):
    check(call, expected)


# Nothing is forgotten

OF_ROWS = [
    "estimate", "measure", "groups", "grouped", "mean", "within", "across", "difference", "share",
    "of_answers", "part", "at_least", "most_frequent", "mean_of_known", "of_kind", "kind_of",
]  # fmt: skip
ELSEWHERE = {
    "discrimination.cumulated": "inside ranking_weighted and selective_weighted",
    "paired.paired_differences": "test_degenerate_tables.py",
    "run_tables.metrics_table": "test_degenerate_tables.py",
    "run_tables.stratified": "inside metrics_table; test_degenerate_tables.py",
    "run_tables.checked_answers": "keys and reasons alone; test_metrics_table.py",
    "run_tables.joined": "keys and reasons alone; test_metrics_table.py",
    "run_tables.rows_of_methods": "test_degenerate_tables.py",
    "schema.table": "columns alone; test_estimate.py",
    "schema.need": "columns alone; test_estimate.py",
    "schema.described": "columns alone; test_estimate.py",
    "schema.refuse": "names a row; test_trust_indices.py",
    "paired.corrected": "test_degenerate_tables.py",
    "paired.compare_methods": "test_degenerate_tables.py",
    "paired.best_of_families": "test_degenerate_tables.py",
    **dict.fromkeys(
        [f"paired.{n}" for n in ("covered", "families_of", "reference_of")],
        "names alone; test_compare.py",
    ),
    **dict.fromkeys(["coverage.withheld", "coverage.simulated"], "test_coverage.py"),
    "calibration.ece_by_chance": "test_coverage.py",
    "paired.compared": "test_degenerate_tables.py",
    **dict.fromkeys([f"estimate.{name}" for name in OF_ROWS], "test_estimate.py"),
    "stability.views": "inside cv_group and cv_sample",
    "trust_table.trust_indices": "test_degenerate_tables.py",
    "trust_table.check_reviews": "test_degenerate_tables.py",
    "trust_table.review_counts": "test_trust_indices.py",
    "trust_table.configurations": "inside trust_indices",
    "trust_table.indices": "inside trust_indices",
    "trust_table.answered": "inside trust_indices",
    "trust_table.each_case": "inside trust_indices",
}
"""Functions that are put to the test in another form than a row above."""


def test_every_public_function_is_put_to_degenerate_data():
    tried = {*OF_PAIRS, *measures(), *ELSEWHERE, *(name for name, *_ in OTHERS)}
    assert public().keys() - tried == set(), "add each to OF_PAIRS, OTHERS, the tables or ELSEWHERE"
    assert tried - public().keys() == set(), "these are gone"
