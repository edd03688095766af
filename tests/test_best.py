"""The best of several: who it is, how sure the choice is, and its interval where it holds."""

from __future__ import annotations

import numpy as np
import pytest
from resampled import case_weights

from trustlab.metrics.estimate import TOO_FEW, percentile_interval
from trustlab.metrics.paired import best_against, chosen_in

pytestmark = pytest.mark.usefixtures("every_interval")
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
    assert np.isnan(chosen_in([[NAN, NAN], [1, 2]])).all()


def test_the_best_is_held_against_the_reference_as_if_it_had_been_named() -> None:
    values, draws = drawn(lift=0.8)
    found = best_against(values[:-1], draws[:-1], values[-1], draws[-1], CASES)
    gaps = draws[0] - draws[-1]
    assert (found["which"], found["tied"], found["missing"]) == (0, (), "")
    assert found["difference"] == pytest.approx(values[0] - values[-1])
    assert (found["low"], found["high"]) == pytest.approx(percentile_interval(gaps))
    assert (
        found["standard_error"] == pytest.approx(gaps.std(ddof=1)) and 0.9 < found["chosen_in"] <= 1
    )


def test_of_one_nothing_is_chosen_and_equals_are_named() -> None:
    values, draws = drawn(1)
    alone = best_against(values[:1], draws[:1], values[-1], draws[-1], CASES)
    assert alone["chosen_in"] == 1
    twins = best_against(
        np.repeat(values[:1], 3), np.repeat(draws[:1], 3, axis=0), values[-1], draws[-1], CASES
    )
    assert (twins["which"], twins["tied"]) == (0, (1, 2)) and twins["chosen_in"] == pytest.approx(
        1 / 3
    )


def test_few_cases_or_draws_all_alike_have_no_interval_and_say_so() -> None:
    values, draws = drawn()
    few = best_against(values[:-1], draws[:-1], values[-1], draws[-1], CASES[:11])
    assert (
        few["missing"] == TOO_FEW
        and np.isnan([few["low"], few["p"], few["standard_error"], few["chosen_in"]]).all()
    )
    same = best_against([0.7, 0.6], np.full((2, 50), 0.7), 0.5, np.full(50, 0.5), CASES)
    assert (
        same["missing"] == "no interval: all draws alike"
        and np.isnan([same["low"], same["high"], same["p"]]).all()
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
