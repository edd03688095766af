"""Thresholds on recorded consultations: who stops when, and a guarantee held in simulation."""

from __future__ import annotations

from itertools import product
from math import comb, inf

import numpy as np
import pytest
from each import each
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from trustlab.metrics.stopping import (
    GRID,
    along,
    best_threshold,
    early_needed,
    fold_of,
    frontier,
    guarantee,
    stop_turns,
)

NAN = float("nan")
SURE = [[0.2, 0.9, 0.5], [0.6, 0.1, 0.7], [NAN, NAN, NAN]]
RIGHT = [[0, 1, 0], [0, 0, 1], [1, 1, 1]]
SAID = [[2, 4, 6]] * 3


@each(
    ("threshold", "turns"),
    [(0.0, [0, 0, 2]), (0.2, [0, 0, 2]), (0.5, [1, 0, 2]), (0.7, [1, 2, 2]), (np.inf, [2, 2, 2])],
)
def test_a_case_stops_at_the_first_turn_that_reaches_the_threshold_or_at_the_last(
    threshold: float, turns: list[int]
) -> None:
    assert stop_turns(SURE, threshold).tolist() == turns


def test_the_frontier_by_hand() -> None:
    found = frontier(SURE, RIGHT, SAID, [0.5, np.inf, 0.7])
    assert found.thresholds.tolist() == [np.inf, 0.7, 0.5]
    assert found.accuracy.tolist() == pytest.approx([2 / 3, 1, 2 / 3])
    assert found.utterances.tolist() == pytest.approx([6, 16 / 3, 4])
    assert found.early.tolist() == pytest.approx([0, 1 / 3, 2 / 3])


def test_by_default_every_confidence_is_a_threshold_and_so_is_never() -> None:
    assert frontier(SURE, RIGHT, SAID).thresholds.tolist() == [np.inf, 0.9, 0.7, 0.6, 0.5, 0.2, 0.1]


@given(arrays(float, (7, 4), elements=st.floats(0, 1)), st.integers(0, 2**28 - 1))
def test_a_laxer_threshold_never_asks_more(sure: np.ndarray, bits: int) -> None:
    right = np.array([bits >> i & 1 for i in range(28)]).reshape(7, 4)
    found = frontier(sure, right, np.tile([1, 2, 3, 4], (7, 1)))
    assert (np.diff(found.utterances) <= 0).all() and (np.diff(found.early) >= 0).all()
    assert found.accuracy[0] == right[:, -1].mean() and found.utterances[0] == 4


def population(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Consultations whose diagnosis is right with a chance that rises with the confidence.

    But stays below it.
    """
    sure = np.sort(rng.uniform(0, 1, (n, 5)), axis=1)
    return sure, (rng.uniform(0, 1, (n, 5)) < 0.99 * sure**0.3).astype(int)


def test_the_guarantee_holds_in_simulation() -> None:
    """At most delta of the draws may give a threshold whose true error exceeds alpha.

    The truth from 200,000 further cases.
    """
    rng = np.random.default_rng(5)
    sure, right = population(rng, 200_000)
    alpha, delta, found = 0.2, 0.1, []
    for _ in range(200):
        found.append(guarantee(*population(rng, 250), alpha, delta).threshold)
    error = {}
    for threshold in {t for t in found if t is not None}:
        at = stop_turns(sure, threshold)
        early = at < 4
        error[threshold] = 1 - right[np.arange(len(sure)), at][early].mean()
    exceeded = np.mean([t is not None and error[t] > alpha for t in found])
    assert exceeded <= delta
    assert sum(t is not None for t in found) > 100, (
        "a rule that never gives a threshold would pass as well"
    )


def test_a_guarantee_takes_the_laxest_threshold_that_can_be_vouched_for() -> None:
    sure = np.tile([0.5, 0.9, 1.0], (100, 1))
    always = guarantee(sure, np.ones((100, 3)), 0.1)
    assert always.threshold == min(GRID) and (always.n_early, always.n_wrong) == (100, 0)
    late = np.tile([0, 1, 1], (100, 1))
    assert guarantee(sure, late, 0.1).threshold == 0.55


def test_the_more_thresholds_are_tried_the_more_it_takes() -> None:
    """14 early cases without an error.

    0.8 to the 14th is 0.044, enough for 0.1 and too much for 0.1 by 3.
    """
    sure, right = np.full((14, 2), 0.95), np.ones((14, 2))
    assert [guarantee(sure, right, 0.2, 0.1, tried).threshold for tried in ([0.9], [0.8, 0.9])] == [
        0.9,
        0.8,
    ]
    assert guarantee(sure, right, 0.2, 0.1, [0.7, 0.8, 0.9]).threshold is None


@each(
    ("n", "right", "why"),
    [
        (20, 1, "51 cases without an error would do, at most 20 stop early"),
        (200, 0, "too many errors"),
        (0, 1, "at most 0 stop early"),
    ],
)
def test_without_a_threshold_to_vouch_for_it_says_why(n: int, right: int, why: str) -> None:
    found = guarantee(np.full((n, 2), 0.9), np.full((n, 2), right), 0.1)
    assert found.threshold is None and why in found.reason


@each(
    "wrong",
    [
        lambda: stop_turns([0.1, 0.2], 0.5),
        lambda: frontier(SURE, RIGHT[:2], SAID),
        lambda: frontier(SURE, [[0.5] * 3] * 3, SAID),
        lambda: frontier(np.zeros((0, 2)), np.zeros((0, 2)), np.zeros((0, 2))),
        lambda: guarantee(SURE, RIGHT, 0),
        lambda: guarantee(SURE, RIGHT, 0.1, thresholds=[]),
        lambda: guarantee(SURE, [[1]], 0.1),
        lambda: along(SURE, [0, 1]),
        lambda: best_threshold(SURE, RIGHT, SAID, -0.1),
        lambda: best_threshold(SURE, RIGHT, SAID, NAN),
        lambda: fold_of(["a", "b"], 1),
        lambda: fold_of(["a", "a"], 2),
    ],
)
def test_other_shapes_and_values_are_refused(wrong) -> None:
    with pytest.raises(ValueError, match="received|must hold|price is"):
        wrong()


def test_each_case_has_its_value_where_it_stops() -> None:
    assert along(SAID, [0, 2, 1]).tolist() == [2, 6, 4]
    assert along(SAID, [[0, 0, 0], [2, 1, 0]]).tolist() == [[2, 2, 2], [6, 4, 2]]


@each(
    ("price", "threshold"),
    # accuracy and utterances: never 2/3 and 6; 0.9 and 0.7 1 and 16/3; 0.6 and 0.5 2/3 and 4; 0.2
    # and 0.1 1/3 and 10/3
    [(0, 0.7), (0.2, 0.7), (0.4, 0.5), (1, 0.1)],
)
def test_the_best_threshold_weighs_accuracy_against_utterances(
    price: float, threshold: float
) -> None:
    assert best_threshold(SURE, RIGHT, SAID, price) == threshold


def test_the_best_threshold_is_lowest_if_asking_brings_nothing_and_highest_if_misled() -> None:
    assert best_threshold([[0.3, 0.9]] * 4, [[1, 1]] * 4, [[2, 4]] * 4, 0) == 0.3
    assert best_threshold([[0.3, 0.9]] * 4, [[0, 1]] * 4, [[2, 4]] * 4, 0.01) == 0.9
    assert best_threshold([[0.9, 0.3]] * 4, [[0, 1]] * 4, [[2, 4]] * 4, 0.01) == inf


def test_folds_are_even_and_do_not_hang_on_the_order_of_cases() -> None:
    ids = [f"case-{i}" for i in range(11)]
    folds = fold_of(ids, 3, 1)
    assert sorted(np.bincount(folds)) == [3, 4, 4]
    assert fold_of(ids[::-1], 3, 1).tolist() == folds[::-1].tolist()
    assert fold_of(ids, 3, 2).tolist() != folds.tolist()
    assert fold_of([], 2).tolist() == []


def multinomial(counts: tuple[int, ...], chances: tuple[float, ...]) -> float:
    """The chance of just these counts."""
    left, p = sum(counts), 1.0
    for count, chance in zip(counts, chances, strict=True):
        p *= comb(left, count) * chance**count
        left -= count
    return p


def chance_of_breaking(
    n: int, kinds: tuple[tuple[float, float, int], ...], alpha: float, delta: float
) -> tuple[float, float]:
    """Exact, over every calibration sample of ``n``.

    The chances of a threshold whose true error exceeds alpha, and of any. ``kinds``: (chance,
    confidence at the first of two turns, right or wrong there) of the kinds of case.
    """
    thresholds = (0.3, 0.6, 0.9)
    error = {}
    for t in thresholds:
        early = [(p, right) for p, sure, right in kinds if sure >= t]
        error[t] = sum(p for p, right in early if not right) / sum(p for p, _ in early)
    broken = given = 0.0
    for counts in product(range(n + 1), repeat=len(kinds)):
        if sum(counts) != n:
            continue
        sure = np.repeat([[sure, 0.0] for _, sure, _ in kinds], counts, axis=0)
        right = np.repeat([[right, 1] for *_, right in kinds], counts, axis=0)
        found = guarantee(sure, right, alpha, delta, thresholds).threshold
        if found is not None:
            p = multinomial(counts, tuple(p for p, *_ in kinds))
            given += p
            broken += p if error[found] > alpha else 0
    return broken, given


@each(
    ("kinds", "useful"),
    [
        # the sure are right; a laxer threshold takes in too many that are wrong
        (((0.35, 0.5, 0), (0.15, 0.5, 1), (0.5, 0.95, 1)), True),
        # confidence tells nothing: at every threshold a bit more than the allowed 30 % are wrong
        (((0.31, 0.95, 0), (0.69, 0.95, 1)), False),
        (((0.155, 0.95, 0), (0.345, 0.95, 1), (0.155, 0.4, 0), (0.345, 0.4, 1)), False),
        # the surer, the more often wrong
        (((0.3, 0.95, 0), (0.3, 0.95, 1), (0.02, 0.4, 0), (0.38, 0.4, 1)), False),
    ],
)
def test_the_guarantee_holds_exactly_in_small_populations(kinds, useful: bool) -> None:
    broken, given = chance_of_breaking(14, kinds, alpha=0.3, delta=0.3)
    assert 0 <= broken <= 0.3
    assert (given > 0.3) is useful, "where most are right it is given often, else hardly"


@pytest.mark.parametrize(
    "error, alpha, n",
    # without an error 0.6^n, 0.8^n ... must be at most 0.1 / 5
    [(0.0, 0.4, 8), (0.0, 0.2, 18), (0.0, 0.05, 77), (0.2, 0.2, NAN), (0.39, 0.4, inf)],
)
def test_how_many_stopped_early_would_certify_a_threshold(error, alpha, n) -> None:
    assert early_needed(error, alpha, 0.1, 5) == pytest.approx(n, nan_ok=True)


def test_so_many_stopped_early_are_certified_four_times_in_five() -> None:
    n = int(early_needed(0.1, 0.3, 0.1, 5))
    shares = []
    for size in (n - 1, n):
        wrong = np.random.default_rng(0).binomial(size, 0.1, 2000)
        sure, right = np.tile([0.9, 0.9], (size, 1)), np.ones((size, 2))
        certified = {}
        for k in np.unique(wrong):
            right[:, 0] = np.arange(size) >= k
            found = guarantee(sure, right, 0.3, 0.1, [0.5, 0.6, 0.7, 0.8, 0.9])
            certified[k] = found.threshold is not None
        shares.append(np.mean([certified[k] for k in wrong]))
    assert shares[0] < 0.8 <= shares[1] + 0.02


@pytest.mark.parametrize("wrong", [(1.5, 0.2, 0.1, 5), (0.1, 0.0, 0.1, 5), (0.1, 0.2, 0.1, 0)])
def test_what_cannot_be_certified_at_all_is_refused(wrong) -> None:
    with pytest.raises(ValueError):
        early_needed(*wrong)
