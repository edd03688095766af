"""P-values, the best of several, and how many cases tell a difference: by hand and simulated."""

import math

import numpy as np
import pytest
from resampled import case_weights

from trustlab.metrics.estimate import TOO_FEW, bootstrap_p, percentile_interval
from trustlab.metrics.paired import best_against, chosen_in
from trustlab.metrics.significance import cases_shown, holm, sample_size_for_power

pytestmark = pytest.mark.usefixtures("every_interval")
NAN = float("nan")
CASES = np.arange(30)


def test_holm_steps_down():
    # Sorted 0.01, 0.02, 0.04: 3 x 0.01 = 0.03, 2 x 0.02 = 0.04, 1 x 0.04. The missing one is none.
    assert holm([0.04, NAN, 0.01, 0.02]) == pytest.approx([0.04, NAN, 0.03, 0.04], nan_ok=True)
    assert holm([0.02, 0.011, 0.9]) == pytest.approx([0.04, 0.033, 0.9])
    assert holm([0.6, 0.7]).tolist() == [1, 1]
    assert holm([0.01, 0.011])[1] == 0.02  # never below the one before it
    p = np.random.default_rng(0).random(20) ** 3
    holes = np.insert(p, [0, 7, 20], NAN)
    assert holm(holes)[~np.isnan(holes)] == pytest.approx(holm(p))


def test_bootstrap_p_by_hand():
    # 2 of 99 draws at or below 0, one of them 0 itself: (2·2 + 1)/100, also of the mirror image.
    draws = np.concatenate([[-1.0, 0.0], np.linspace(0.1, 2, 97)])
    assert bootstrap_p(draws) == pytest.approx(0.05) and bootstrap_p(-draws) == pytest.approx(0.05)
    assert bootstrap_p(np.linspace(0.1, 2, 99)) == pytest.approx(0.01)  # never 0
    assert bootstrap_p([-1, 0, 0, 1]) == 1  # at most 1
    # 0 but for rounding counts on both sides
    assert bootstrap_p([0.1 + 0.2 - 0.3] * 9 + [1.0] * 10) == pytest.approx(19 / 20)
    known = [-1.0, *[1.0] * 17]  # undefined draws are left out up to a tenth
    assert bootstrap_p([*known, NAN, NAN]) == bootstrap_p(known) == pytest.approx(3 / 19)
    assert np.isnan(bootstrap_p([*known, NAN, NAN, NAN]))


def test_bootstrap_p_agrees_with_the_interval():
    shifts = np.random.default_rng(0).normal(size=1999)
    low = np.quantile(shifts, 0.025)
    assert bootstrap_p(shifts - low + 0.01) < 0.05 < bootstrap_p(shifts - low - 0.02)


def test_cases_needed_by_hand_and_by_simulation():
    # (1.959964 + 0.841621) * 0.05 / 0.1 = 1.400793; its square times 40 is 78.49
    assert sample_size_for_power(0.1, 0.05, 40) == 79 == sample_size_for_power(-0.1, 0.05, 40)
    assert sample_size_for_power(0.9, 1e-6, 40) == 2  # never fewer
    rng, gap = np.random.default_rng(1), 0.3
    n = int(sample_size_for_power(gap, 1 / math.sqrt(20), 20))
    means = rng.normal(gap, 1 / math.sqrt(n), 20_000)
    assert np.mean(np.abs(means) > 1.959964 / math.sqrt(n)) == pytest.approx(0.8, abs=0.01)
    shown = [cases_shown(n) for n in (67.0, 1234.0, 10_000.0, 10_001.0, NAN)]
    assert shown == ["67", "1,234", "10,000", "> 10,000", "–"]


def test_shares_of_being_chosen_by_hand():
    draws = [[3, 1, 2, 2], [1, 2, 2, NAN], [0, 1, 2, 9]]
    # first: draw 1, a third of draw 3; second: draw 2, a third of draw 3; the fourth does not count
    assert chosen_in(draws).tolist() == pytest.approx([4 / 9, 4 / 9, 1 / 9])
    assert np.isnan(chosen_in([[NAN, NAN], [1, 2]])).all()


def test_the_best_is_held_against_the_reference_as_if_it_had_been_named():
    scores = np.random.default_rng(0).normal(0, 1, (30, 5))  # the reference last
    scores[:, 0] += 0.8
    values, draws = scores.mean(axis=0), (case_weights(CASES, 400) @ scores / 30).T
    found = best_against(values[:-1], draws[:-1], values[-1], draws[-1], CASES)
    gaps = draws[0] - draws[-1]
    assert (found["which"], found["tied"], found["missing"]) == (0, (), "")
    assert found["difference"] == pytest.approx(values[0] - values[-1])
    assert (found["low"], found["high"]) == pytest.approx(percentile_interval(gaps))
    assert found["standard_error"] == pytest.approx(gaps.std(ddof=1))
    assert 0.9 < found["chosen_in"] <= 1
    alone = best_against(values[:1], draws[:1], values[-1], draws[-1], CASES)
    assert alone["chosen_in"] == 1
    twins = best_against(values[[0] * 3], draws[[0] * 3], values[-1], draws[-1], CASES)
    assert (twins["which"], twins["tied"]) == (0, (1, 2))
    assert twins["chosen_in"] == pytest.approx(1 / 3)
    few = best_against(values[:-1], draws[:-1], values[-1], draws[-1], CASES[:11])
    assert few["missing"] == TOO_FEW
    assert np.isnan([few[name] for name in ("low", "p", "standard_error", "chosen_in")]).all()
