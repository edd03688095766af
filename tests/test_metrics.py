"""Metrics against scikit-learn and values worked out by hand; test_degenerate.py: their edges."""

from itertools import permutations

import numpy as np
import pytest
from each import each
from resampled import cohen_kappa, jackknife, without_each
from sklearn.metrics import average_precision_score, cohen_kappa_score, roc_auc_score

from trustlab.metrics import auprc, auroc, brier, ece
from trustlab.metrics.agreement import COUNTS, agreement
from trustlab.metrics.discrimination import concordance
from trustlab.metrics.intervals import agresti_coull, effective_n
from trustlab.metrics.selective import aurc, prediction_rejection_ratio, risk_at
from trustlab.metrics.stopping import best_threshold, fold_of, stop_turns, thresholds_of
from trustlab.metrics.ties import reaches, tied

NAN = float("nan")
pytestmark = pytest.mark.usefixtures("every_interval")


def scored(n: int, n_values: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Answers whose confidences take n_values values (few: many ties) and lean the right way."""
    rng = np.random.default_rng(seed)
    correct = rng.integers(0, 2, n)
    return correct, np.round((rng.random(n) + 0.3 * correct) * n_values) / n_values


def test_a_group_is_a_millionth_of_the_spread_wide():
    spread = [*[0.0] * 10, *[1.0] * 10]
    near = [*spread, 0.3, 0.5 + 9e-7, 0.5, 0.5 + 1.8e-6, 0.5, 0.5 + 3e-6, np.nan]
    expected = [*spread, 0.3, 0.5, 0.5, 0.5 + 1.8e-6, 0.5, 0.5 + 3e-6, np.nan]
    np.testing.assert_array_equal(tied([near, near[::-1]]), [expected, expected[::-1]])
    mostly_one = [*[5.0] * 98, 5 + 1e-7, 6.0]  # the percentiles are alike: smallest and largest
    assert tied(mostly_one).tolist() == [*[5.0] * 99, 6.0]
    far = [*np.linspace(0, 1, 50), 1e9]  # one far value ties no others
    assert tied(far).tolist() == far


def test_a_threshold_is_reached_from_the_width_of_a_tie_below_it():
    assert reaches([0.8, 0.8 - 4e-7, 2.0, 0.2], 0.8).tolist() == [True, True, True, False]
    assert not reaches([0.8 - 2e-6, 0.2, np.nan], 0.8).any()
    assert reaches([1e9, -1e9], np.inf).tolist() == [False, False]
    assert reaches([5e-9, 1e-9], 4e-9).tolist() == [True, False]
    assert reaches(0.3 - 5e-16, 0.3) and not reaches(0.3 - 1e-12, 0.3)


@each("n_values", [1, 2, 5, 10_000])
@each("n_cases", [4, 20, 60])
def test_discrimination_agrees_with_scikit_learn_also_without_each_case(n_values, n_cases):
    correct, confidence = scored(60, n_values)
    case = np.random.default_rng(1).permutation(np.arange(60) % n_cases)
    whole = np.zeros(60, int)
    for plain, theirs in ((auroc, roc_auc_score), (auprc, average_precision_score)):
        assert plain(correct, confidence) == pytest.approx(theirs(correct, confidence), abs=1e-12)
    shares = concordance(correct, confidence, case, whole)
    expected = without_each(roc_auc_score, case, correct, confidence)
    np.testing.assert_allclose(shares, [auroc(correct, confidence), *expected], atol=1e-12)


def stratified_by_hand(correct, confidence, stratum) -> float:
    """Every pair of a right and a wrong answer of one stratum, one after another."""
    won = n = 0.0
    for i, j in permutations(range(len(correct)), 2):
        if stratum[i] == stratum[j] and correct[i] and not correct[j]:
            n += 1
            won += (confidence[i] > confidence[j]) + 0.5 * (confidence[i] == confidence[j])
    return won / n if n else np.nan


@each("seed", range(4))
def test_pairs_within_strata_count_alike_and_those_within_a_case_once(seed):
    rng = np.random.default_rng(seed)
    correct, confidence = scored(40, 6, seed)
    case, stratum = rng.integers(0, 9, 40), rng.integers(0, 3, 40)
    case[:9] = np.arange(9)
    shares = concordance(correct, confidence, case, stratum)
    assert shares[0] == pytest.approx(stratified_by_hand(correct, confidence, stratum))
    expected = without_each(stratified_by_hand, case, correct, confidence, stratum)
    np.testing.assert_allclose(shares[1:], expected)
    order = rng.permutation(40)
    again = concordance(correct[order], confidence[order] * 3 - 1, case[order], 2 - stratum[order])
    np.testing.assert_allclose(again, shares)


def test_auroc_by_hand_and_missing_where_one_class_is_left():
    # Pairs (correct, wrong): 0.9>0.8, 0.9>0.1, 0.5<0.8, 0.5>0.1, 0.8=0.8, 0.8>0.1: 4 won, 1 tied
    assert auroc([1, 0, 1, 1, 0], [0.9, 0.8, 0.5, 0.8, 0.1]) == pytest.approx(4.5 / 6)
    shares = concordance([1, 0, 1], [0.9, 0.5, 0.1], np.arange(3), np.zeros(3, int))
    np.testing.assert_array_equal(shares, [0.5, 0, np.nan, 1])


def test_brier_and_ece_by_hand():
    correct, confidence = [1, 0, 1, 1], [0.9, 0.2, 0.6, 0.4]
    assert brier(correct, confidence) == pytest.approx((0.01 + 0.04 + 0.16 + 0.36) / 4)
    # Two bins: {0.2, 0.4} half right, said 0.3 on average; {0.6, 0.9} all right, said 0.75.
    assert ece(correct, confidence, bins=2) == pytest.approx((0.2 + 0.25) / 2)
    assert ece(correct, confidence, bins=1) == pytest.approx(0.75 - 0.525)
    for value in (1.1, -0.1):
        with pytest.raises(ValueError, match=str(value)):
            brier([1, 0], [0.5, value])


# Risk and coverage


def risks(correct, confidence) -> np.ndarray:
    """Risk after 1, 2, ... n answers, the mean over every order from the surest down."""
    n, found = len(confidence), []
    for order in permutations(range(n)):
        if all(confidence[a] >= confidence[b] for a, b in zip(order, order[1:], strict=False)):
            wrong = 1 - np.asarray(correct)[list(order)]
            found.append(np.cumsum(wrong) / np.arange(1, n + 1))
    return np.mean(found, axis=0)


def test_area_and_ratio_by_hand():
    # Risks 0, 0, 1/3, 1/2 of the right order, and 1, 1, 2/3, 1/2 of the wrong one.
    assert aurc([1, 1, 0, 0], [4, 3, 2, 1]) == pytest.approx((1 / 3 + 1 / 2) / 4)
    assert aurc([1, 1, 0, 0], [1, 2, 3, 4]) == pytest.approx((1 + 1 + 2 / 3 + 1 / 2) / 4)
    # Order right, wrong, right: risks 0, 1/2, 1/3; the best order has 0, 0, 1/3, any order 1/3
    # throughout: the share of the possible gain
    found = prediction_rejection_ratio([1, 0, 1], [3, 2, 1])
    assert found == pytest.approx((1 / 3 - (1 / 2 + 1 / 3) / 3) / (1 / 3 - 1 / 9))
    correct = np.array([1, 0, 1, 1, 0, 1, 1])
    assert prediction_rejection_ratio(correct, correct) == pytest.approx(1)
    assert prediction_rejection_ratio(correct, -correct) < 0


@each("seed", range(8))
def test_risk_and_area_are_means_over_every_order_of_equal_confidences(seed):
    rng = np.random.default_rng(seed)
    correct, confidence = np.append(rng.integers(0, 2, 4), [0, 1]), rng.integers(0, 3, 6)
    expected = risks(correct, confidence)
    assert aurc(correct, confidence) == pytest.approx(expected.mean())
    found = risk_at(correct, confidence, np.arange(1, 7) / 6)
    np.testing.assert_allclose(found, expected)
    between = risk_at(correct, confidence, [1.5 / 6])  # half of the second answer counts
    assert between == pytest.approx((2 * expected[1] + expected[0]) / 3)


# Two graders

# 20 both right, 5 only the first, 10 only the second, 15 both wrong: 0.7 agree, 0.5 by chance
FIRST = np.repeat([1, 1, 0, 0], [20, 5, 10, 15])
SECOND = np.repeat([1, 0, 1, 0], [20, 5, 10, 15])
HALVES = np.arange(50) // 2


def test_kappa_by_hand_and_as_scikit_learn_has_it():
    assert cohen_kappa(FIRST, SECOND) == pytest.approx(0.4)  # (0.7 - 0.5) / (1 - 0.5)
    for first, second, kappa in [
        ([1, 0, 1], [1, 0, 1], 1),
        ([1, 0], [0, 1], -1),
        ([1, 1], [1, 0], 0),
    ]:
        assert cohen_kappa(first, second) == pytest.approx(kappa)
    rng = np.random.default_rng(0)
    for share in (0.1, 0.5, 0.9):
        one, other = rng.random((2, 40)) < share
        theirs = cohen_kappa_score(one, other, labels=[0, 1])
        assert cohen_kappa(one, other) == pytest.approx(theirs)


def test_the_counts_say_where_two_graders_part_and_intervals_are_over_cases():
    found = agreement(FIRST, SECOND, HALVES)
    for line, value in zip(found, (0.4, 0.7), strict=True):
        assert [line[k] for k in ("n", *COUNTS)] == [50, 20, 5, 10, 15] and line["n_cases"] == 25
        assert line["value"] == pytest.approx(value)
    leaves = without_each(cohen_kappa, HALVES, FIRST, SECOND)
    ends = jackknife(0.4, leaves, (-1, 1))
    assert (found[0]["low"], found[0]["high"]) == pytest.approx(ends)
    same = np.bincount(HALVES, FIRST == SECOND)
    ends = agresti_coull(0.7, effective_n(same, np.full(25, 2)), 25)
    assert (found[1]["low"], found[1]["high"]) == pytest.approx(ends)


def test_what_one_did_not_grade_is_missing_and_nothing_that_both_graded_is_no_agreement():
    kappa, _ = agreement([1, 0, np.nan, 1], [1, 0, 1, np.nan], list("abcd"))
    assert [kappa[k] for k in ("n", "n_missing", "both_right", "value")] == [2, 2, 1, 1]
    for nothing in (agreement([], [], []), agreement([1.0], [np.nan], ["a"])):
        assert {x["n"] for x in nothing} == {0} and np.isnan([x["value"] for x in nothing]).all()
        assert {"both graded" in x["missing"] for x in nothing} == {True}


# Where to stop

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


def test_every_threshold_that_decides_otherwise_is_tried() -> None:
    assert thresholds_of(SURE).tolist() == [np.inf, 0.9, 0.7, 0.6, 0.5, 0.2, 0.1]


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


def test_folds_are_even_and_do_not_hang_on_the_order_of_cases() -> None:
    ids = [f"case-{i}" for i in range(11)]
    folds = fold_of(ids, 3, 1)
    assert sorted(np.bincount(folds)) == [3, 4, 4]
    assert fold_of(ids[::-1], 3, 1).tolist() == folds[::-1].tolist()
    assert fold_of(ids, 3, 2).tolist() != folds.tolist()
