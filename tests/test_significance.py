"""P-values after correction for many tests, and from bootstrap draws: by hand."""

import numpy as np
import pytest
from each import each

from trustlab.metrics.estimate import bootstrap_p
from trustlab.metrics.significance import holm

NAN = float("nan")


def test_holm_steps_down():
    # Sorted 0.01, 0.02, 0.04: 3 x 0.01 = 0.03, 2 x 0.02 = 0.04, 1 x 0.04 = 0.04. The missing one is
    # no test.
    assert holm([0.04, NAN, 0.01, 0.02]) == pytest.approx([0.04, NAN, 0.03, 0.04], nan_ok=True)
    assert holm([0.02, 0.011, 0.9]) == pytest.approx([0.04, 0.033, 0.9]) and holm(
        [0.6, 0.7]
    ).tolist() == [1, 1]
    assert holm([0.01, 0.011])[1] == 0.02  # never below the one before it


def test_a_missing_p_value_changes_no_other():
    p = np.random.default_rng(0).random(20) ** 3
    holes = np.insert(p, [0, 7, 20], NAN)
    found = holm(holes)
    assert found[~np.isnan(holes)] == pytest.approx(holm(p))
    assert np.isnan(found[np.isnan(holes)]).all()


@each("bad", [[-0.1], [1.1], [0.2, np.inf], [[0.1, 0.2]], 0.3])
def test_what_is_no_p_value_is_refused(bad):
    with pytest.raises(ValueError, match="received"):
        holm(bad)


def test_bootstrap_p_by_hand():
    # 2 of 99 draws at or below 0, one of them 0 itself: (2·2 + 1)/100. The mirror image has the
    # same p.
    draws = np.concatenate([[-1.0, 0.0], np.linspace(0.1, 2, 97)])
    assert bootstrap_p(draws) == pytest.approx(0.05) and bootstrap_p(-draws) == pytest.approx(0.05)
    assert bootstrap_p(np.linspace(0.1, 2, 99)) == pytest.approx(0.01)  # never 0
    assert bootstrap_p([-1, 0, 0, 1]) == 1  # at most 1


def test_draws_that_are_zero_but_for_rounding_count_on_both_sides():
    assert bootstrap_p([0.1 + 0.2 - 0.3] * 9 + [1.0] * 10) == pytest.approx(19 / 20)


def test_bootstrap_p_agrees_with_the_interval():
    shifts = np.random.default_rng(0).normal(size=1999)
    low = np.quantile(shifts, 0.025)
    assert bootstrap_p(shifts - low + 0.01) < 0.05 < bootstrap_p(shifts - low - 0.02)


def test_bootstrap_p_leaves_out_undefined_draws_up_to_a_tenth():
    known = [-1.0, *[1.0] * 17]
    assert bootstrap_p([*known, NAN, NAN]) == bootstrap_p(known) == pytest.approx(3 / 19)
    assert np.isnan(bootstrap_p([*known, NAN, NAN, NAN])) and np.isnan(bootstrap_p([NAN]))


@each("bad", [[], [[0.1, 0.2]], [0.1, np.inf]])
def test_what_are_no_draws_are_refused(bad):
    with pytest.raises(ValueError, match="received"):
        bootstrap_p(bad)
