"""The best of several: who it is, how sure the choice is, and an interval that knows that there was
one."""

from __future__ import annotations

import numpy as np
import pytest
from resampled import case_weights

from trustlab.metrics.estimate import TOO_FEW, percentile_interval
from trustlab.metrics.paired import best_against, chosen_in

CASES = np.arange(30)
NAN = float("nan")


def drawn(
    n_methods: int = 4, seed: int = 0, lift: float = 0.0, n_draws: int = 400
) -> tuple[np.ndarray, np.ndarray]:
    """Means over 30 cases of noisy scores, the first raised by ``lift``: values (M + 1,) and draws,
    the reference last."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(0, 1, (30, n_methods + 1))
    scores[:, 0] += lift
    return scores.mean(axis=0), (case_weights(CASES, n_draws, seed) @ scores / 30).T


def test_shares_of_being_chosen_by_hand() -> None:
    draws = [[3, 1, 2, 2], [1, 2, 2, NAN], [0, 1, 2, 9]]
    # first: draw 1, a third of draw 3; second: draw 2 alone, a third of draw 3; the fourth draw
    # does not count
    assert chosen_in(draws).tolist() == pytest.approx([4 / 9, 4 / 9, 1 / 9])
    assert chosen_in(draws, lowest=True).tolist() == pytest.approx(
        [1 / 6 + 1 / 9, 1 / 9, 1 / 3 + 1 / 6 + 1 / 9]
    )
    assert np.isnan(chosen_in([[NAN, NAN], [1, 2]])).all()


def test_the_best_is_held_against_the_reference_as_if_it_had_been_named() -> None:
    values, draws = drawn(lift=0.8)
    found = best_against(values[:-1], draws[:-1], values[-1], draws[-1], CASES)
    gaps = draws[0] - draws[-1]
    assert (found.which, found.tied, found.reason) == (0, (), "")
    assert found.difference == pytest.approx(values[0] - values[-1])
    assert (found.low, found.high) == pytest.approx(percentile_interval(gaps))
    assert found.standard_error == pytest.approx(gaps.std(ddof=1)) and 0.9 < found.chosen_in <= 1


def test_the_interval_of_the_choice_takes_off_twice_what_choosing_gains_in_a_draw() -> None:
    values, draws = drawn()
    found = best_against(values[:-1], draws[:-1], values[-1], draws[-1], CASES)
    best = draws[:-1].max(axis=0)
    low, high = percentile_interval(best - draws[-1])
    gain = (best - draws[found.which]).mean()
    assert gain > 0.01 and (found.low_chosen, found.high_chosen) == pytest.approx(
        (low - 2 * gain, high - 2 * gain)
    )
    # the best of four equals lies above their true value: what takes that off lies lower than what
    # does not
    assert found.low_chosen < found.low and found.high_chosen < found.high


def test_where_all_are_equally_good_the_interval_of_the_choice_holds_0_and_percentiles_do_not() -> (
    None
):
    held = percentiles = 0
    for seed in range(60):
        values, draws = drawn(12, seed, n_draws=200)
        found = best_against(values[:-1], draws[:-1], values[-1], draws[-1], CASES)
        low, high = percentile_interval(draws[:-1].max(axis=0) - draws[-1])
        held += found.low_chosen <= 0 <= found.high_chosen
        percentiles += low <= 0 <= high
    assert held >= 48 and percentiles <= 35


def test_the_lowest_is_the_highest_upside_down() -> None:
    values, draws = drawn(lift=0.3)
    up = best_against(values[:-1], draws[:-1], values[-1], draws[-1], CASES)
    down = best_against(-values[:-1], -draws[:-1], -values[-1], -draws[-1], CASES, lowest=True)
    assert (down.which, down.p, down.chosen_in) == (up.which, up.p, up.chosen_in)
    assert (down.difference, down.low, down.high) == pytest.approx(
        (-up.difference, -up.high, -up.low)
    )
    assert (down.low_chosen, down.high_chosen) == pytest.approx((-up.high_chosen, -up.low_chosen))


def test_of_one_nothing_is_chosen_and_equals_are_named() -> None:
    values, draws = drawn(1)
    alone = best_against(values[:1], draws[:1], values[-1], draws[-1], CASES)
    assert (alone.low_chosen, alone.high_chosen, alone.chosen_in) == (alone.low, alone.high, 1)
    twins = best_against(
        np.repeat(values[:1], 3), np.repeat(draws[:1], 3, axis=0), values[-1], draws[-1], CASES
    )
    assert (twins.low_chosen, twins.high_chosen) == (twins.low, twins.high)
    assert (twins.which, twins.tied) == (0, (1, 2)) and twins.chosen_in == pytest.approx(1 / 3)


def test_a_method_that_is_undefined_in_many_draws_leaves_the_choice_without_an_interval() -> None:
    values, draws = drawn(lift=1.0)
    for lost in (0.2, 1.0):
        gone = draws.copy()
        gone[2, : int(lost * 400)] = NAN
        found = best_against(values[:-1], gone[:-1], values[-1], gone[-1], CASES)
        assert (
            found.which == 0
            and found.low > 0
            and np.isnan([found.low_chosen, found.high_chosen]).all()
        )


def test_few_cases_or_draws_all_alike_have_no_interval_and_say_so() -> None:
    values, draws = drawn()
    few = best_against(values[:-1], draws[:-1], values[-1], draws[-1], CASES[:9])
    assert (
        few.reason == TOO_FEW
        and np.isnan([few.low, few.p, few.low_chosen, few.standard_error, few.chosen_in]).all()
    )
    same = best_against([0.7, 0.6], np.full((2, 50), 0.7), 0.5, np.full(50, 0.5), CASES)
    assert (
        same.reason == "no interval: all draws alike"
        and np.isnan([same.low, same.high_chosen, same.p]).all()
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"values": []}, "values must be"),
        ({"draws": np.zeros((2, 3))}, "values must be"),
        ({"values": [NAN, 0.2]}, "must be finite"),
        ({"reference": NAN}, "must be finite"),
    ],
)
def test_what_has_no_best_is_refused(change, message) -> None:
    given = {
        "values": [0.1, 0.2],
        "draws": np.zeros((2, 5)),
        "reference": 0.1,
        "reference_draws": np.zeros(5),
        "case_ids": CASES,
    }
    with pytest.raises(ValueError, match=message):
        best_against(**(given | change))
    with pytest.raises(ValueError, match="draws must have 2"):
        chosen_in(np.zeros(5))
