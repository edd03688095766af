"""How many cases tell a difference from 0: by hand and by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from each import each

from trustlab.metrics.significance import cases_shown, sample_size_for_power

NAN = float("nan")


def test_cases_by_hand():
    # (1.959964 + 0.841621) * 0.05 / 0.1 = 1.400793; its square times 40 is 78.49
    assert sample_size_for_power(0.1, 0.05, 40) == 79 == sample_size_for_power(-0.1, 0.05, 40)


def test_half_the_difference_takes_four_times_the_cases():
    assert sample_size_for_power(0.001, 0.05, 40) == pytest.approx(
        4 * sample_size_for_power(0.002, 0.05, 40), rel=1e-3
    )


def test_that_many_cases_do_tell_it_four_times_in_five():
    rng, difference, spread = np.random.default_rng(1), 0.3, 1.0
    n = int(sample_size_for_power(difference, spread / math.sqrt(20), 20))
    means = rng.normal(difference, spread / math.sqrt(n), 20_000)
    assert np.mean(np.abs(means) > 1.959964 * spread / math.sqrt(n)) == pytest.approx(0.8, abs=0.01)


def test_it_never_asks_for_fewer_than_two_cases():
    assert sample_size_for_power(0.9, 1e-6, 40) == 2


@each(
    ("call", "message"),
    [
        (
            lambda: sample_size_for_power(0.1, -0.1, 40),
            "standard_error and n_cases must be at least 0",
        ),
    ],
)
def test_what_cannot_be_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_number_of_cases_to_read():
    assert [cases_shown(n) for n in (67.0, 1234.0, 10_000.0, 10_001.0, NAN)] == [
        "67",
        "1,234",
        "10,000",
        "> 10,000",
        "–",
    ]
