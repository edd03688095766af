"""What functions of the metrics make of data that say nothing: a fact a line, with what tells
whether it holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, is_dataclass
from typing import Any

import numpy as np
import pytest

from trustlab.metrics import (
    agreement,
    correlation,
    discrimination,
    estimate,
    paired,
    significance,
    stability,
    stopping,
    ties,
    trust,
)

NAN, INF = float("nan"), float("inf")
NO_VALUE = (NAN,) * 3
REFUSED, NOTHING, A_SHARE = "ValueError", "no number at all", "numbers from 0 to 1"
"""What may be expected beside numbers."""


def once(n: int | Iterable[Any]) -> np.ndarray:
    """Two weightings in which every row counts once."""
    return np.ones((2, n if isinstance(n, int) else len(list(n))), int)


def numbers(result: Any) -> list[float]:
    """Every number in a result, in order; texts, names and counts of a mapping are left out."""
    if is_dataclass(result) and not isinstance(result, type):
        return numbers(asdict(result))
    if isinstance(result, Mapping):
        return [x for value in result.values() for x in numbers(value)]
    if isinstance(result, (np.ndarray, list, tuple)):
        return [x for value in result for x in numbers(value)]
    return [float(result)] if isinstance(result, (int, float, np.number, np.bool_)) else []


def check(call: Callable[[], Any], expected: Any) -> None:
    if expected is REFUSED:
        with pytest.raises(ValueError, match=r"\w"):
            call()
        return
    found = numbers(call())
    if expected is NOTHING:
        assert found == []
    elif expected is A_SHARE:
        assert found and all(0 <= x <= 1 for x in found)
    else:
        wanted = [float(x) for x in np.ravel(expected)]
        assert found == pytest.approx(
            wanted * (len(found) // len(wanted)) if found else wanted, nan_ok=True, abs=1e-9
        )


# Everything else: (function, situation, call, expected)

SHORT, FLAT, RISING = [0.1, 0.2], [0.3] * 4, [1, 2, 3, 4]
FEW = np.arange(4)
NO_ROWS = np.array([], dtype=bool)
MANY = np.arange(12)
ALIKE = np.full(50, 0.25)
EMPTY_TURNS = np.empty((0, 3))


def series(
    name: str, measure: Callable[[Any, Any], Any]
) -> list[tuple[str, str, Callable[[], Any], Any]]:
    """Two series over the levels."""
    pairs = {
        "no rows": ([], []),
        "two points": (SHORT, SHORT),
        "constant": (FLAT, RISING),
        "both constant": (FLAT, FLAT),
    }
    facts: list[tuple[str, str, Callable[[], Any], Any]] = [
        (name, situation, lambda pair=pair: measure(*pair), NAN)
        for situation, pair in pairs.items()
    ]
    bad = {
        "infinite": (RISING, [1, 2, INF, 4]),
        "missing": (RISING, [1, 2, NAN, 4]),
        "other lengths": (RISING, SHORT),
    }
    return facts + [
        (name, situation, lambda pair=pair: measure(*pair), REFUSED)
        for situation, pair in bad.items()
    ]


def given(*args: Any, **options: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What a function is called with."""
    return args, options


def facts(
    of: Callable[..., Any], expected: Mapping[str, tuple[Any, Any]]
) -> list[tuple[str, str, Callable[[], Any], Any]]:
    """What a function gives in each situation: its arguments, and what is expected."""
    name = f"{of.__module__.rpartition('.')[2]}.{of.__name__}"
    return [
        (name, situation, lambda args=args, options=options: of(*args, **options), wanted)
        for situation, ((args, options), wanted) in expected.items()
    ]


OTHERS: list[tuple[str, str, Callable[[], Any], Any]] = [
    *series("correlation.pearson", correlation.pearson),
    *series("correlation.spearman", correlation.spearman),
    *series("correlation.spearman_permutation_p", correlation.spearman_permutation_p),
    *series("correlation.pearson_permutation_p", correlation.pearson_permutation_p),
    *facts(correlation.pearson_rows, {
        "constant": (given(np.array([FLAT]), np.array([RISING])), NAN),
        "no rows": (given(np.empty((0, 4)), np.empty((0, 4))), NOTHING),
    }),
    *facts(correlation.spearman_rows, {
        "constant": (given(np.array([FLAT]), np.array([RISING])), NAN),
        "no rows": (given(np.empty((0, 4)), np.empty((0, 4))), NOTHING),
    }),
    *[fact for p in (correlation.pearson_p, correlation.spearman_exact_p) for fact in facts(p, {
        "missing": (given(NAN, 6), NAN),
        "no points": (given(0.5, 0), NAN),
        "two points": (given(1.0, 2), NAN),
        "infinite": (given(INF, 6), REFUSED),
        "past 1": (given(1.2, 6), REFUSED),
    })],
    *facts(correlation.pearson_p, {"all on a line": (given(-1, 6), 0)}),
    *facts(correlation.spearman_values, {
        "two points": (given(2), REFUSED),
        "three points": (given(3), (-1, -0.5, 0.5, 1)),
    }),
    *facts(correlation.rising_null, {
        "two points": (given(SHORT), REFUSED),
        "infinite": (given([1, 2, INF]), REFUSED),
    }),
    *facts(correlation.rising_band, {
        "two points": (given(SHORT), REFUSED),
        "constant": (given(FLAT), NAN),
        "missing": (given([1, 2, NAN]), REFUSED),
    }),
    *facts(correlation.unordered_band, {
        "three points": (given(3), (NAN, 0, NAN)),
        "two points": (given(2), REFUSED),
    }),
    *facts(ties.tied, {
        "nothing": (given([]), NOTHING),
        "all missing": (given([NAN] * 2), [NAN, NAN]),
        "infinite": (given([INF, -INF, INF]), [INF, -INF, INF]),
    }),
    *facts(ties.reaches, {
        "missing": (given([NAN, 1.0], 1.0), [0, 1]),
        "a missing threshold": (given([0.0, INF], NAN), [0, 0]),
    }),
    *facts(estimate.percentile_interval, {
        "no draws": (given([]), REFUSED),
        "infinite": (given([1.0, INF]), REFUSED),
        "all missing": (given([NAN] * 9), NAN),
    }),
    *facts(estimate.bounded_interval, {
        "all missing": (given([NAN] * 9, MANY), NAN),
        "all alike": (given(ALIKE, MANY), NAN),
        "nearly all alike": (given([0.5, *[1.0] * 99], MANY), NAN),
        "four cases": (given(np.arange(50), FEW), NAN),
        "no cases": (given(np.arange(50), []), NAN),
        "no draws": (given([], MANY), REFUSED),
        "infinite": (given([1.0, INF], MANY), REFUSED),
    }),
    *facts(estimate.enough_cases, {
        "no rows": (given([]), False),
        "one case": (given(["a"] * 60), False),
    }),
    *facts(estimate.all_alike, {
        "none": (given(np.array([])), True),
        "alike": (given(ALIKE), True),
    }),
    *facts(estimate.checked_draws, {
        "none": (given([]), REFUSED),
        "infinite": (given([INF]), REFUSED),
    }),
    *facts(estimate.without_excess, {
        "all missing": (given([NAN] * 9, 0.5), NAN),
        "all alike": (given(ALIKE, 0.5), 0.5),
        "no draws": (given([], 0.5), REFUSED),
        "infinite": (given([0.1, INF], 0.5), REFUSED),
    }),
    *facts(estimate.bootstrap_p, {
        "all alike": (given(ALIKE), NAN),
        "all missing": (given([NAN] * 9), NAN),
        "one draw": (given([0.4]), NAN),
        "no draws": (given([]), REFUSED),
        "infinite": (given([0.1, INF]), REFUSED),
    }),
    *facts(significance.holm, {
        "no tests": (given([]), NOTHING),
        "one test": (given([0.03]), 0.03),
        "all missing": (given([NAN, NAN]), NAN),
        "ties everywhere": (given([1.0] * 3), 1),
        "infinite": (given([0.1, INF]), REFUSED),
    }),
    *facts(estimate.interval, {
        "all alike": (given(ALIKE, MANY, test=True), NAN),
        "all missing": (given(np.full(9, NAN), MANY, test=True), NAN),
        "one case": (given(np.arange(9.0), np.zeros(9), test=True), NAN),
        "infinite": (given(np.array([INF, 1.0]), MANY, test=True), REFUSED),
    }),
    *facts(paired.chosen_in, {
        "no methods": (given(np.empty((0, 5))), REFUSED),
        "no draws": (given(np.empty((2, 0))), NAN),
        "all missing": (given(np.full((2, 5), NAN)), NAN),
        "ties everywhere": (given(np.ones((4, 5))), 0.25),
    }),
    *facts(paired.best_against, {
        "no methods": (given([], np.empty((0, 5)), 0.5, ALIKE[:5], MANY), REFUSED),
        "infinite": (given([INF], [ALIKE], 0.5, ALIKE, MANY), REFUSED),
        "all alike": (given([0.25, 0.25], [ALIKE, ALIKE], 0.25, ALIKE, MANY),
                      (0, 1, 0.5, 0, *[NAN] * 6)),
    }),
    *facts(significance.sample_size_for_power, {
        "no difference": (given(0, 0.1, 40), NAN),
        "no spread": (given(0.1, 0, 40), NAN),
        "no cases": (given(0.1, 0.1, 0), NAN),
        "missing": (given(NAN, 0.1, 40), NAN),
        "infinite": (given(0.1, INF, 40), NAN),
    }),
    *facts(significance.cases_shown, {
        "missing": (given(NAN), NOTHING),
        "infinite": (given(INF), NOTHING),
    }),
    *facts(agreement.cohen_kappa_weighted, {
        "no rows": (given([], [], once(0)), NAN),
        "one class": (given([1, 1], [1, 1], once(2)), NAN),
        "missing": (given([NAN], [1], once(1)), REFUSED),
    }),
    *facts(agreement.agreement, {
        "no rows": (given([], [], []), (0, 0, 0, 0, *NO_VALUE, 0, 0, 0)),
        "one class": (given([1], [1], ["a"]),
                      (1, 0, 0, 0, *NO_VALUE, 1, 1, 0, 1, 0, 0, 0, 1, NAN, NAN, 1, 1, 0)),
        "one case": (given([1, 0], [1, 0], [1, 1]), (1, 0, 0, 1, 1, NAN, NAN, 2, 1, 0)),
        "all agree": (given(MANY % 2, MANY % 2, MANY, n_draws=50),
                      (6, 0, 0, 6, 1, NAN, NAN, 12, 12, 0)),
        "infinite": (given([INF], [1], ["a"]), REFUSED),
    }),
    *[fact for cv, n in ((stability.cv_group, 12), (stability.cv_sample, 0)) for fact in facts(cv, {
        "no rows": (given(np.empty((0, 2)), [], n_draws=50), (*NO_VALUE, 0, 0, 0, 0)),
        "all missing": (given(np.full((3, 2), NAN), [1, 2, 3], n_draws=50),
                        (*NO_VALUE, 0, 0, 3, 0)),
        "one row": (given([[0.4, 0.6]], [1], n_draws=50), (20, NAN, NAN, 1, 1, 0, 0)),
        "constant": (given(np.full((12, 2), 0.4), MANY, n_draws=50), (0, NAN, NAN, 12, 12, 0, 0)),
        "all zero": (given(np.zeros((12, 2)), MANY, n_draws=50), (*NO_VALUE, n, n, 0, 12)),
        "infinite": (given([[0.4, INF]], [1], n_draws=50), REFUSED),
    })],
    *facts(stability.cv_group_by_chance, {
        "no rows": (given(np.empty((0, 2)), 9), NAN),
        "all missing": (given(np.full((3, 2), NAN), 9), NAN),
        "constant": (given(np.full((3, 2), 0.4), 9), 0),
        "infinite": (given([[0.4, INF]], 9), REFUSED),
    }),
    *facts(stopping.stop_turns, {
        "no rows": (given(EMPTY_TURNS, 0.5), NOTHING),
        "all missing": (given([[NAN] * 3], 0.5), 2),
        "no turns": (given(np.empty((2, 0)), 0.5), REFUSED),
    }),
    *facts(stopping.frontier, {
        "no rows": (given(EMPTY_TURNS, EMPTY_TURNS, EMPTY_TURNS), REFUSED),
        "all missing": (given([[NAN, NAN]], [[0, 1]], [[2, 4]]), (INF, 1, 4, 0)),
        "unknown answer": (given([[0.1, 0.2]], [[NAN, 1]], [[2, 4]]), REFUSED),
    }),
    *facts(stopping.along, {
        "no rows": (given(EMPTY_TURNS, np.empty(0, int)), NOTHING),
        "other lengths": (given([[1, 2]], [0, 1]), REFUSED),
    }),
    *facts(stopping.best_threshold, {
        "all missing": (given([[NAN, NAN]], [[0, 1]], [[2, 4]], 0.0), INF),
        "price missing": (given([[0.1]], [[1]], [[2]], NAN), REFUSED),
    }),
    *facts(stopping.fold_of, {
        "no rows": (given([], 2), NOTHING),
        "one case twice": (given(["a", "a"], 2), REFUSED),
    }),
    *[
        (
            f"trust.{measure.__name__}",
            situation,
            lambda measure=measure, said=said: measure(said),
            NAN,
        )
        for measure in (trust.cdr, trust.any_disagreement)
        for situation, said in (("no doctors", []), ("all missing", [None, None]))
    ],
    *facts(trust.majority, {"all missing": (given([None, None], "a"), NOTHING)}),
    *facts(trust.rdc, {
        "no doctors": (given([]), NAN),
        "all missing": (given([None, NAN]), NAN),
        "infinite": (given([INF]), REFUSED),
    }),
    *facts(trust.rdc_from_cosine, {
        "missing": (given(NAN), NAN),
        "infinite": (given(INF), REFUSED),
    }),
    *facts(trust.eti, {
        "missing": (given(0.5, NAN, 0.5), NAN),
        "infinite": (given(INF, 0.5, 0.5), REFUSED),
    }),
    *facts(trust.unsafe_rx_percent, {"no rows": (given(0, 0, 0), NAN)}),
    *facts(trust.test_alerts_percent, {"no rows": (given(0, 0, 0), NAN)}),
    *facts(trust.unsafe_rx_percent, {"none rated": (given(0, 0, 0, n_proposed=1), NAN)}),
    *facts(trust.test_alerts_percent, {"none rated": (given(0, 0, 0, 1), NAN)}),
    *facts(trust.osi, {
        "missing": (given(NAN, 50.0), NAN),
        "infinite": (given(INF, 50.0), REFUSED),
    }),
    *facts(trust.fti, {
        "missing": (given(NAN, 50.0), NAN),
        "infinite": (given(0.5, INF), REFUSED),
    }),
    *facts(trust.check_formulation, {"unknown": (given(""), REFUSED)}),
    *facts(trust.check_weights, {"missing": (given([NAN, 1], 2), REFUSED)}),
    *facts(ties.numbers, {
        "infinite": (given("x", [INF], missing=True), REFUSED),
        "missing": (given("x", [NAN]), REFUSED),
        "missing, allowed": (given("x", [NAN], missing=True), NAN),
    }),
    *facts(ties.same_shape, {"other": (given(x=FEW, y=MANY), REFUSED)}),
    *facts(discrimination.one_class, {"none": (given(NO_ROWS), True)}),
    *facts(discrimination.check_pair, {"infinite": (given([1], [INF]), REFUSED)}),
    *facts(discrimination.check_weights, {"infinite": (given([[INF]], 1), REFUSED)}),
]  # fmt: skip
