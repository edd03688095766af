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


OTHERS: list[tuple[str, str, Callable[[], Any], Any]] = [
    *series("correlation.pearson", correlation.pearson),
    *series("correlation.spearman", correlation.spearman),
    *series("correlation.spearman_permutation_p", correlation.spearman_permutation_p),
    *series("correlation.pearson_permutation_p", correlation.pearson_permutation_p),
    (
        "correlation.pearson_rows",
        "constant",
        lambda: correlation.pearson_rows(np.array([FLAT]), np.array([RISING])),
        NAN,
    ),
    (
        "correlation.pearson_rows",
        "no rows",
        lambda: correlation.pearson_rows(np.empty((0, 4)), np.empty((0, 4))),
        NOTHING,
    ),
    (
        "correlation.spearman_rows",
        "constant",
        lambda: correlation.spearman_rows(np.array([FLAT]), np.array([RISING])),
        NAN,
    ),
    (
        "correlation.spearman_rows",
        "no rows",
        lambda: correlation.spearman_rows(np.empty((0, 4)), np.empty((0, 4))),
        NOTHING,
    ),
    *[
        (f"correlation.{p.__name__}", situation, lambda p=p, given=given: p(*given), expected)
        for p in (correlation.spearman_exact_p,)
        for situation, given, expected in (
            ("missing", (NAN, 6), NAN),
            ("no points", (0.5, 0), NAN),
            ("two points", (1.0, 2), NAN),
            ("infinite", (INF, 6), REFUSED),
            ("past 1", (1.2, 6), REFUSED),
        )
    ],
    ("correlation.spearman_values", "two points", lambda: correlation.spearman_values(2), REFUSED),
    (
        "correlation.spearman_values",
        "three points",
        lambda: correlation.spearman_values(3),
        (-1, -0.5, 0.5, 1),
    ),
    ("correlation.rising_null", "two points", lambda: correlation.rising_null(SHORT), REFUSED),
    (
        "correlation.rising_null",
        "infinite",
        lambda: correlation.rising_null([1, 2, INF]),
        REFUSED,
    ),
    ("correlation.rising_band", "two points", lambda: correlation.rising_band(SHORT), REFUSED),
    ("correlation.rising_band", "constant", lambda: correlation.rising_band(FLAT), NAN),
    ("correlation.rising_band", "missing", lambda: correlation.rising_band([1, 2, NAN]), REFUSED),
    (
        "correlation.unordered_band",
        "three points",
        lambda: correlation.unordered_band(3),
        (NAN, 0, NAN),
    ),
    ("correlation.unordered_band", "two points", lambda: correlation.unordered_band(2), REFUSED),
    # draws and p-values
    ("ties.tied", "nothing", lambda: ties.tied([]), NOTHING),
    ("ties.tied", "all missing", lambda: ties.tied([NAN] * 2), [NAN, NAN]),
    ("ties.tied", "infinite", lambda: ties.tied([INF, -INF, INF]), [INF, -INF, INF]),
    ("ties.width", "nothing", lambda: ties.width([]), 0),
    ("ties.width", "infinite and missing", lambda: ties.width([INF, NAN]), 0),
    ("ties.reaches", "missing", lambda: ties.reaches([NAN, 1.0], 1.0), [0, 1]),
    ("ties.reaches", "a missing threshold", lambda: ties.reaches([0.0, INF], NAN), [0, 0]),
    ("estimate.percentile_interval", "no draws", lambda: estimate.percentile_interval([]), REFUSED),
    (
        "estimate.percentile_interval",
        "infinite",
        lambda: estimate.percentile_interval([1.0, INF]),
        REFUSED,
    ),
    (
        "estimate.percentile_interval",
        "all missing",
        lambda: estimate.percentile_interval([NAN] * 9),
        NAN,
    ),
    (
        "estimate.bounded_interval",
        "all missing",
        lambda: estimate.bounded_interval([NAN] * 9, MANY),
        NAN,
    ),
    ("estimate.bounded_interval", "all alike", lambda: estimate.bounded_interval(ALIKE, MANY), NAN),
    (
        "estimate.bounded_interval",
        "nearly all alike",
        lambda: estimate.bounded_interval([0.5, *[1.0] * 99], MANY),
        NAN,
    ),
    (
        "estimate.bounded_interval",
        "four cases",
        lambda: estimate.bounded_interval(np.arange(50), FEW),
        NAN,
    ),
    (
        "estimate.bounded_interval",
        "no cases",
        lambda: estimate.bounded_interval(np.arange(50), []),
        NAN,
    ),
    ("estimate.bounded_interval", "no draws", lambda: estimate.bounded_interval([], MANY), REFUSED),
    (
        "estimate.bounded_interval",
        "infinite",
        lambda: estimate.bounded_interval([1.0, INF], MANY),
        REFUSED,
    ),
    ("estimate.enough_cases", "no rows", lambda: estimate.enough_cases([]), False),
    ("estimate.enough_cases", "one case", lambda: estimate.enough_cases(["a"] * 60), False),
    ("estimate.all_alike", "none", lambda: estimate.all_alike(np.array([])), True),
    ("estimate.all_alike", "alike", lambda: estimate.all_alike(ALIKE), True),
    ("estimate.checked_draws", "none", lambda: estimate.checked_draws([]), REFUSED),
    ("estimate.checked_draws", "infinite", lambda: estimate.checked_draws([INF]), REFUSED),
    (
        "estimate.without_excess",
        "all missing",
        lambda: estimate.without_excess([NAN] * 9, 0.5),
        NAN,
    ),
    ("estimate.without_excess", "all alike", lambda: estimate.without_excess(ALIKE, 0.5), 0.5),
    ("estimate.without_excess", "no draws", lambda: estimate.without_excess([], 0.5), REFUSED),
    (
        "estimate.without_excess",
        "infinite",
        lambda: estimate.without_excess([0.1, INF], 0.5),
        REFUSED,
    ),
    ("estimate.bootstrap_p", "all alike", lambda: estimate.bootstrap_p(ALIKE), NAN),
    ("estimate.bootstrap_p", "all missing", lambda: estimate.bootstrap_p([NAN] * 9), NAN),
    ("estimate.bootstrap_p", "one draw", lambda: estimate.bootstrap_p([0.4]), NAN),
    ("estimate.bootstrap_p", "no draws", lambda: estimate.bootstrap_p([]), REFUSED),
    ("estimate.bootstrap_p", "infinite", lambda: estimate.bootstrap_p([0.1, INF]), REFUSED),
    *[
        ("significance.holm", situation, lambda p=p: significance.holm(p), expected)
        for situation, p, expected in (
            ("no tests", [], NOTHING),
            ("one test", [0.03], 0.03),
            ("all missing", [NAN, NAN], NAN),
            ("ties everywhere", [1.0] * 3, 1),
            ("infinite", [0.1, INF], REFUSED),
        )
    ],
    ("estimate.interval", "all alike", lambda: estimate.interval(ALIKE, MANY, test=True), NAN),
    (
        "estimate.interval",
        "all missing",
        lambda: estimate.interval(np.full(9, NAN), MANY, test=True),
        NAN,
    ),
    (
        "estimate.interval",
        "one case",
        lambda: estimate.interval(np.arange(9.0), np.zeros(9), test=True),
        NAN,
    ),
    (
        "estimate.interval",
        "infinite",
        lambda: estimate.interval(np.array([INF, 1.0]), MANY, test=True),
        REFUSED,
    ),
    ("paired.chosen_in", "no methods", lambda: paired.chosen_in(np.empty((0, 5))), REFUSED),
    ("paired.chosen_in", "no draws", lambda: paired.chosen_in(np.empty((2, 0))), NAN),
    ("paired.chosen_in", "all missing", lambda: paired.chosen_in(np.full((2, 5), NAN)), NAN),
    ("paired.chosen_in", "ties everywhere", lambda: paired.chosen_in(np.ones((4, 5))), 0.25),
    (
        "paired.best_against",
        "no methods",
        lambda: paired.best_against([], np.empty((0, 5)), 0.5, ALIKE[:5], MANY),
        REFUSED,
    ),
    (
        "paired.best_against",
        "infinite",
        lambda: paired.best_against([INF], [ALIKE], 0.5, ALIKE, MANY),
        REFUSED,
    ),
    (
        "paired.best_against",
        "all alike",
        lambda: paired.best_against([0.25, 0.25], [ALIKE, ALIKE], 0.25, ALIKE, MANY),
        (0, 1, 0.5, 0, *[NAN] * 4),
    ),
    # rates by formula
    *[
        (
            "significance.sample_size_for_power",
            situation,
            lambda given=given: significance.sample_size_for_power(*given),
            expected,
        )
        for situation, given, expected in (
            ("no difference", (0, 0.1, 40), NAN),
            ("no spread", (0.1, 0, 40), NAN),
            ("no cases", (0.1, 0.1, 0), NAN),
            ("missing", (NAN, 0.1, 40), NAN),
            ("infinite", (0.1, INF, 40), NAN),
        )
    ],
    ("significance.cases_shown", "missing", lambda: significance.cases_shown(NAN), NOTHING),
    ("significance.cases_shown", "infinite", lambda: significance.cases_shown(INF), NOTHING),
    # graders
    (
        "agreement.cohen_kappa_weighted",
        "no rows",
        lambda: agreement.cohen_kappa_weighted([], [], once(0)),
        NAN,
    ),
    (
        "agreement.cohen_kappa_weighted",
        "one class",
        lambda: agreement.cohen_kappa_weighted([1, 1], [1, 1], once(2)),
        NAN,
    ),
    (
        "agreement.cohen_kappa_weighted",
        "missing",
        lambda: agreement.cohen_kappa_weighted([NAN], [1], once(1)),
        REFUSED,
    ),
    (
        "agreement.agreement",
        "no rows",
        lambda: agreement.agreement([], [], []),
        (0, 0, 0, 0, *NO_VALUE, 0, 0, 0),
    ),
    (
        "agreement.agreement",
        "one class",
        lambda: agreement.agreement([1], [1], ["a"]),
        (1, 0, 0, 0, *NO_VALUE, 1, 1, 0, 1, 0, 0, 0, 1, NAN, NAN, 1, 1, 0),
    ),
    (
        "agreement.agreement",
        "one case",
        lambda: agreement.agreement([1, 0], [1, 0], [1, 1]),
        (1, 0, 0, 1, 1, NAN, NAN, 2, 1, 0),
    ),
    (
        "agreement.agreement",
        "all agree",
        lambda: agreement.agreement(MANY % 2, MANY % 2, MANY, n_draws=50),
        (6, 0, 0, 6, 1, NAN, NAN, 12, 12, 0),
    ),
    ("agreement.agreement", "infinite", lambda: agreement.agreement([INF], [1], ["a"]), REFUSED),
    # coefficients of variation: value, low, high, n, n_cases, n_missing, n_zero
    *[
        (
            f"stability.{cv.__name__}",
            situation,
            lambda cv=cv, rows=rows, cases=cases: cv(rows, cases, n_draws=50),
            expected,
        )
        for cv in (stability.cv_group, stability.cv_sample)
        for situation, rows, cases, expected in (
            ("no rows", np.empty((0, 2)), [], (*NO_VALUE, 0, 0, 0, 0)),
            ("all missing", np.full((3, 2), NAN), [1, 2, 3], (*NO_VALUE, 0, 0, 3, 0)),
            ("one row", [[0.4, 0.6]], [1], (20, NAN, NAN, 1, 1, 0, 0)),
            ("constant", np.full((12, 2), 0.4), MANY, (0, NAN, NAN, 12, 12, 0, 0)),
            (
                "all zero",
                np.zeros((12, 2)),
                MANY,
                (
                    *NO_VALUE,
                    12 * (cv is stability.cv_group),
                    12 * (cv is stability.cv_group),
                    0,
                    12,
                ),
            ),
            ("infinite", [[0.4, INF]], [1], REFUSED),
        )
    ],
    (
        "stability.cv_group_by_chance",
        "no rows",
        lambda: stability.cv_group_by_chance(np.empty((0, 2)), 9),
        NAN,
    ),
    (
        "stability.cv_group_by_chance",
        "all missing",
        lambda: stability.cv_group_by_chance(np.full((3, 2), NAN), 9),
        NAN,
    ),
    (
        "stability.cv_group_by_chance",
        "constant",
        lambda: stability.cv_group_by_chance(np.full((3, 2), 0.4), 9),
        0,
    ),
    (
        "stability.cv_group_by_chance",
        "infinite",
        lambda: stability.cv_group_by_chance([[0.4, INF]], 9),
        REFUSED,
    ),
    # when to stop
    ("stopping.stop_turns", "no rows", lambda: stopping.stop_turns(EMPTY_TURNS, 0.5), NOTHING),
    ("stopping.stop_turns", "all missing", lambda: stopping.stop_turns([[NAN] * 3], 0.5), 2),
    (
        "stopping.stop_turns",
        "no turns",
        lambda: stopping.stop_turns(np.empty((2, 0)), 0.5),
        REFUSED,
    ),
    (
        "stopping.frontier",
        "no rows",
        lambda: stopping.frontier(EMPTY_TURNS, EMPTY_TURNS, EMPTY_TURNS),
        REFUSED,
    ),
    (
        "stopping.frontier",
        "all missing",
        lambda: stopping.frontier([[NAN, NAN]], [[0, 1]], [[2, 4]]),
        (INF, 1, 4, 0),
    ),
    (
        "stopping.frontier",
        "unknown answer",
        lambda: stopping.frontier([[0.1, 0.2]], [[NAN, 1]], [[2, 4]]),
        REFUSED,
    ),
    ("stopping.along", "no rows", lambda: stopping.along(EMPTY_TURNS, np.empty(0, int)), NOTHING),
    ("stopping.along", "other lengths", lambda: stopping.along([[1, 2]], [0, 1]), REFUSED),
    (
        "stopping.best_threshold",
        "all missing",
        lambda: stopping.best_threshold([[NAN, NAN]], [[0, 1]], [[2, 4]], 0.0),
        INF,
    ),
    (
        "stopping.best_threshold",
        "price missing",
        lambda: stopping.best_threshold([[0.1]], [[1]], [[2]], NAN),
        REFUSED,
    ),
    ("stopping.fold_of", "no rows", lambda: stopping.fold_of([], 2), NOTHING),
    ("stopping.fold_of", "one case twice", lambda: stopping.fold_of(["a", "a"], 2), REFUSED),
    # doctors
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
    ("trust.majority", "all missing", lambda: trust.majority([None, None], "a"), NOTHING),
    ("trust.rdc", "no doctors", lambda: trust.rdc([]), NAN),
    ("trust.rdc", "all missing", lambda: trust.rdc([None, NAN]), NAN),
    ("trust.rdc", "infinite", lambda: trust.rdc([INF]), REFUSED),
    ("trust.rdc_from_cosine", "missing", lambda: trust.rdc_from_cosine(NAN), NAN),
    ("trust.rdc_from_cosine", "infinite", lambda: trust.rdc_from_cosine(INF), REFUSED),
    ("trust.eti", "missing", lambda: trust.eti(0.5, NAN, 0.5), NAN),
    ("trust.eti", "infinite", lambda: trust.eti(INF, 0.5, 0.5), REFUSED),
    ("trust.unsafe_rx_percent", "no rows", lambda: trust.unsafe_rx_percent(0, 0, 0), NAN),
    ("trust.test_alerts_percent", "no rows", lambda: trust.test_alerts_percent(0, 0, 0), NAN),
    (
        "trust.unsafe_rx_percent",
        "none rated",
        lambda: trust.unsafe_rx_percent(0, 0, 0, n_proposed=1),
        NAN,
    ),
    ("trust.test_alerts_percent", "none rated", lambda: trust.test_alerts_percent(0, 0, 0, 1), NAN),
    ("trust.osi", "missing", lambda: trust.osi(NAN, 50.0), NAN),
    ("trust.osi", "infinite", lambda: trust.osi(INF, 50.0), REFUSED),
    ("trust.fti", "missing", lambda: trust.fti(NAN, 50.0), NAN),
    ("trust.fti", "infinite", lambda: trust.fti(0.5, INF), REFUSED),
    ("trust.check_formulation", "unknown", lambda: trust.check_formulation(""), REFUSED),
    ("trust.check_weights", "missing", lambda: trust.check_weights([NAN, 1], 2), REFUSED),
    ("ties.numbers", "infinite", lambda: ties.numbers("x", [INF], missing=True), REFUSED),
    ("ties.numbers", "missing", lambda: ties.numbers("x", [NAN]), REFUSED),
    ("ties.numbers", "missing, allowed", lambda: ties.numbers("x", [NAN], missing=True), NAN),
    ("ties.same_shape", "other", lambda: ties.same_shape(x=FEW, y=MANY), REFUSED),
    ("discrimination.one_class", "none", lambda: discrimination.one_class(NO_ROWS), True),
    (
        "discrimination.check_pair",
        "infinite",
        lambda: discrimination.check_pair([1], [INF]),
        REFUSED,
    ),
    (
        "discrimination.check_weights",
        "infinite",
        lambda: discrimination.check_weights([[INF]], 1),
        REFUSED,
    ),
]
