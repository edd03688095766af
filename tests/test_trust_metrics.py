"""Votes, agreement and the formulas of the trust indices: by hand and by properties."""

from __future__ import annotations

from hashlib import sha256
from itertools import product

import numpy as np
import pytest
from each import each
from hypothesis import given
from hypothesis import strategies as st

from trustlab.metrics.trust import (
    FORMULATIONS,
    any_disagreement,
    cdr,
    eti,
    fti,
    majority,
    osi,
    rdc,
    test_alerts_percent,
    unsafe_rx_percent,
)

NAN = float("nan")
VOTES = st.lists(st.sampled_from(["flu", "cold", "gout", None]), min_size=1, max_size=7)
SHARE, COSINE = st.floats(0, 1), st.floats(-1, 1)


@each(
    ("diagnoses", "dropped", "disagrees"),
    [
        (["flu", "flu", "flu"], (0, 0), (0, 0)),
        (["flu", "flu", "cold"], (1 / 3, 1), (1 / 3, 1)),
        (["flu", "cold", "gout"], (2 / 3, 1), (2 / 3, 1)),  # the largest for three doctors, not 1
        (["flu", "flu", "cold", "cold"], (1 / 2, 1), (1 / 2, 1)),
        (["flu", None, "cold", "flu"], (1 / 3, 1), (1 / 2, 1)),  # an unreadable one is no vote
        (["flu", "flu", None], (0, 0), (1 / 3, 1)),
        (["flu", None, None], (NAN, NAN), (2 / 3, 1)),  # below two readable votes of several
        ([None, None, None], (NAN, NAN), (2 / 3, 1)),
        (["flu"], (0, 0), (0, 0)),
        ([None], (NAN, NAN), (NAN, NAN)),
    ],
)
def test_disagreement_of_one_case_by_hand(diagnoses, dropped, disagrees) -> None:
    both = (cdr, any_disagreement)
    assert [of(diagnoses) for of in both] == pytest.approx(dropped, nan_ok=True)
    assert [of(diagnoses, "disagrees") for of in both] == pytest.approx(disagrees, nan_ok=True)


@given(VOTES, st.randoms(), st.text(max_size=5))
def test_cdr_lies_between_0_and_1_less_one_kth_whatever_the_order_and_who_is_unreadable(
    diagnoses, random, case_id
) -> None:
    other = random.sample(diagnoses, len(diagnoses))
    assert majority(diagnoses, case_id) == majority(other, case_id)
    for measure in (cdr, any_disagreement):
        assert measure(diagnoses) == pytest.approx(measure(other), nan_ok=True)
    known = [d for d in diagnoses if d is not None]
    value = cdr(diagnoses)
    assert np.isnan(value) == (len(known) < min(len(diagnoses), 2))
    assert np.isnan(value) or 0 <= value <= 1 - 1 / len(known) + 1e-12
    if len(diagnoses) > 1:
        assert cdr([*diagnoses, None]) == pytest.approx(value, nan_ok=True)


def test_cdr_rises_with_the_number_of_doctors() -> None:
    chance = {"flu": 0.7, "cold": 0.3}  # what each doctor says, alone
    expected = [
        sum(np.prod([chance[d] for d in votes]) * cdr(votes) for votes in product(chance, repeat=k))
        for k in (1, 2, 5)
    ]
    # 0.42/2 for two; for five 0.2 · (0.36015 + 0.02835) + 0.4 · (0.3087 + 0.1323)
    assert expected == pytest.approx([0, 0.21, 0.2541])


def test_the_majority_wins_and_a_tie_is_drawn_by_a_hash_of_the_case_over_the_sorted_names() -> None:
    assert majority(["cold", "flu", None, None, None, "flu"], "a") == ("flu", ())
    assert majority([None, None], "a") == (None, ())
    for case_id in "abcdefgh":
        drawn = ["cold", "flu", "gout"][int(sha256(case_id.encode()).hexdigest(), 16) % 3]
        assert majority(["gout", "flu", "cold"], case_id) == (drawn, ("cold", "flu", "gout"))
    assert {majority(["flu", "cold"], str(i))[0] for i in range(20)} == {"flu", "cold"}
    # gout has not tied
    assert majority(["flu", "cold", "flu", "cold", "gout"], "a")[1] == ("cold", "flu")


@each(
    ("found", "by_hand"),
    [
        (rdc([0.4]), 0.4),
        (rdc([0.4], "medguard-x"), 70),  # its place between 0 and 100
        (rdc([0.6, None, -0.2, NAN]), 0.2),
        (rdc([0.6, -0.2], "medguard-x"), 60),
        (rdc([1 + 1e-7]), 1),  # rounding in single precision
        (eti(0.5, 1 / 6, 0.3), 0.4 * 0.5 + 0.3 * 5 / 6 + 0.3 * 0.3),
        (eti(50, 50 / 3, 65, formulation="medguard-x"), 20 + 25 + 19.5),
        (eti(0.5, 0.2, -0.4, (0.2, 0.5, 0.3)), 0.1 + 0.4 - 0.12),
        (eti(0, 2 / 3, -1), -0.2),  # its ends for three doctors
        (eti(1, 0, 1), 1),
        (eti(np.array([0.5, 1]), np.array([0.2, 0]), np.array([0.1, 1])), [0.47, 1]),
        (osi(50, 40), 55),
        (osi(50, 40, formulation="medguard-x"), 55),
        (osi(50, 40, (0.8, 0.2)), 100 - 48),
        (osi(np.array([50, NAN]), np.array([40.0, 0])), [55, NAN]),
        (osi(10, 20, safety=False), 0),
        (osi(NAN, NAN, safety=False), 0),
        (osi(np.array([NAN, NAN]), np.array([NAN, NAN]), safety=False), [0, 0]),
        (osi(10, 20, safety=False, formulation="medguard-x"), NAN),
        (fti(0.54, 55), 54.5),
        (fti(0.54, 55, as_printed=True), 0.27 + 27.5),
        (fti(64.5, 55, formulation="medguard-x"), 59.75),
        (fti(64.5, 55, (0.5, 0.5), "medguard-x", True), 59.75),
        (fti(0.54, 55, (0.9, 0.1)), 48.6 + 5.5),
        (fti(60, NAN, formulation="medguard-x"), NAN),
        (fti(0.54, osi(NAN, NAN, safety=False)), 27),
        (unsafe_rx_percent(1, 2, 4), 75),  # shares of what was rated
        (unsafe_rx_percent(1, 2, 4, "unsafe"), 25),
        (unsafe_rx_percent(1, 2, 4, n_proposed=12), 75),
        (unsafe_rx_percent(np.array([1, 0]), np.array([1, 0]), np.array([4, 2])), [50, 0]),
        (test_alerts_percent(1, 2, 12), 25),
        (test_alerts_percent(1, 2, 12, 13), 25),
        (unsafe_rx_percent(0, 0, 0, n_proposed=0), 0),  # nothing proposed
        (test_alerts_percent(0, 0, 0, 0), 0),
        (unsafe_rx_percent(0, 0, 0, n_proposed=12), NAN),  # proposed, and none rated
        (
            unsafe_rx_percent(
                np.array([1.0, 0, 0]), np.zeros(3), np.array([4.0, 0, 0]), n_proposed=[9.0, 9, 0]
            ),
            [25, NAN, 0],
        ),
    ],
)
def test_the_indices_by_hand(found, by_hand) -> None:
    assert found == pytest.approx(by_hand, nan_ok=True)


@pytest.mark.parametrize("formulation", FORMULATIONS)
@given(st.data())
def test_each_index_rises_with_each_of_its_components_and_keeps_its_bounds(
    formulation, data
) -> None:
    full, how = {"trust-x": 1, "medguard-x": 100}[formulation], {"formulation": formulation}
    right, apart, shift = (data.draw(SHARE, name) for name in ("accuracy", "cdr", "shift"))
    same = rdc([data.draw(COSINE, "cosine")], formulation)
    right, apart = right * full, apart * full
    value = eti(right, apart, same, **how)
    assert (-0.3 if full == 1 else 0) - 1e-9 <= value <= full + 1e-9
    assert eti(right + shift * (full - right), apart, same, **how) >= value - 1e-9
    assert eti(right, apart + shift * (full - apart), same, **how) <= value + 1e-9
    assert eti(right, apart, same + shift * (full - same), **how) >= value - 1e-9
    rx, alerts = (100 * data.draw(SHARE, name) for name in ("rx", "alerts"))
    safe = osi(rx, alerts, **how)
    assert 0 <= safe <= 100 and osi(rx + shift * (100 - rx), alerts, **how) <= safe + 1e-9
    assert osi(rx, alerts + shift * (100 - alerts), **how) <= safe + 1e-9
    total = fti(value, safe, **how)
    assert fti(value, safe * (1 - shift), **how) <= total + 1e-9
    less = value * (1 - shift) if value > 0 else value
    assert fti(less, safe, **how) <= total + 1e-9


@each(
    ("call", "message"),
    [
        (lambda: eti(1.2, 0, 0), "accuracy must lie between 0 and 1; received 1.2"),
        (lambda: eti(1, 0, 0, (0.5, 0.5)), "weights must be 3 numbers"),
        (lambda: osi(101, 0), "unsafe_rx_percent must lie between 0 and 100; received 101"),
        (lambda: fti(54, 50), "eti must lie between -1 and 1; received 54"),
        (lambda: rdc([1.2]), "a cosine must lie between -1 and 1; received 1.2"),
        (lambda: unsafe_rx_percent(2, 3, 4), r"above those rated; received \[2.0, 3.0, 4.0\]"),
        (lambda: osi(0, 0, formulation="x"), "formulation is 'x'; allowed are"),
        (lambda: cdr("flu"), "an entry for each doctor; received the text 'flu'"),
    ],
)
def test_what_is_out_of_range_is_named(call, message) -> None:
    with pytest.raises(ValueError, match=message):
        call()
