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
BOTH = pytest.mark.parametrize("formulation", FORMULATIONS)
FULL = {"trust-x": 1, "medguard-x": 100}
VOTES = st.lists(st.sampled_from(["flu", "cold", "gout", None]), min_size=1, max_size=7)
SHARE, COSINE = st.floats(0, 1), st.floats(-1, 1)


# The vote


@each(
    ("diagnoses", "disagreement", "any_of_them"),
    [
        (["flu", "flu", "flu"], 0, 0),
        (["flu", "flu", "cold"], 1 / 3, 1),
        (["flu", "cold", "gout"], 2 / 3, 1),  # the largest value for three doctors, not 1
        (["flu", "flu", "cold", "cold"], 1 / 2, 1),
        (["flu", None, "cold", "flu"], 1 / 3, 1),  # an unreadable diagnosis is no vote
        (["flu", None], NAN, NAN),  # below two readable votes of several
        (["flu"], 0, 0),
        ([None], NAN, NAN),
    ],
)
def test_disagreement_of_one_case_by_hand(diagnoses, disagreement, any_of_them) -> None:
    found = [measure(diagnoses) for measure in (cdr, any_disagreement)]
    assert found == pytest.approx([disagreement, any_of_them], nan_ok=True)


@given(VOTES, st.randoms(), st.text(max_size=5))
def test_the_order_of_the_doctors_is_irrelevant(diagnoses, random, case_id) -> None:
    other = random.sample(diagnoses, len(diagnoses))
    assert majority(diagnoses, case_id) == majority(other, case_id)
    for measure in (cdr, any_disagreement):
        assert measure(diagnoses) == pytest.approx(measure(other), nan_ok=True)


@given(VOTES)
def test_cdr_lies_between_0_and_1_less_one_kth_and_unreadable_doctors_change_nothing(
    diagnoses,
) -> None:
    known = [d for d in diagnoses if d is not None]
    value = cdr(diagnoses)
    assert np.isnan(value) == (len(known) < min(len(diagnoses), 2))
    assert np.isnan(value) or 0 <= value <= 1 - 1 / len(known) + 1e-12
    if len(diagnoses) > 1:
        assert cdr([*diagnoses, None]) == pytest.approx(value, nan_ok=True)


@each(
    ("diagnoses", "disagreement", "any_of_them"),
    [
        (["A", None, None], 2 / 3, 1),
        ([None, None, None], 2 / 3, 1),
        (["A", "A", None], 1 / 3, 1),
        (["A", "A", "A"], 0, 0),
        (["A"], 0, 0),
        ([None], NAN, NAN),
        ([], NAN, NAN),
    ],
)
def test_an_unreadable_vote_can_be_taken_to_agree_with_nobody(
    diagnoses, disagreement, any_of_them
) -> None:
    found = [m(diagnoses, "disagrees") for m in (cdr, any_disagreement)]
    assert found == pytest.approx([disagreement, any_of_them], nan_ok=True)


def test_cdr_rises_with_the_number_of_doctors() -> None:
    chance = {"flu": 0.7, "cold": 0.3}  # what each doctor says, alone

    def expected(k):
        return sum(
            np.prod([chance[d] for d in votes]) * cdr(votes) for votes in product(chance, repeat=k)
        )

    # 0.42/2 for two; for five 0.2 · (0.36015 + 0.02835) + 0.4 · (0.3087 + 0.1323)
    assert [expected(k) for k in (1, 2, 5)] == pytest.approx([0, 0.21, 0.2541])


def test_the_majority_wins_and_unreadable_diagnoses_have_no_vote() -> None:
    assert majority(["cold", "flu", None, None, None, "flu"], "a") == ("flu", ())
    assert majority([None, None], "a") == (None, ())


def test_a_tie_is_drawn_by_a_hash_of_the_case_over_the_sorted_names() -> None:
    for case_id in "abcdefgh":
        drawn = ["cold", "flu", "gout"][int(sha256(case_id.encode()).hexdigest(), 16) % 3]
        assert majority(["gout", "flu", "cold"], case_id) == (drawn, ("cold", "flu", "gout"))
    assert {majority(["flu", "cold"], str(i))[0] for i in range(20)} == {"flu", "cold"}
    # gout has not tied
    assert majority(["flu", "cold", "flu", "cold", "gout"], "a")[1] == (
        "cold",
        "flu",
    )


def test_a_text_in_place_of_a_list_of_diagnoses_is_refused() -> None:
    with pytest.raises(
        ValueError, match="sequence with an entry for each doctor; received the text 'flu'"
    ):
        cdr("flu")


# The indices


def test_rdc_is_the_cosine_or_its_place_between_0_and_100() -> None:
    assert rdc([0.4]) == 0.4 and rdc([0.4], "medguard-x") == pytest.approx(70)
    assert rdc([0.6, None, -0.2, NAN]) == pytest.approx(0.2) and rdc(
        [0.6, -0.2], "medguard-x"
    ) == pytest.approx(60)
    assert np.isnan(rdc([None])) and np.isnan(rdc([], "medguard-x"))
    assert rdc([1 + 1e-7]) == 1  # rounding in single precision


def test_eti_osi_fti_by_hand() -> None:
    assert eti(0.5, 1 / 6, 0.3) == pytest.approx(0.4 * 0.5 + 0.3 * 5 / 6 + 0.3 * 0.3)  # 0.54
    assert eti(50, 50 / 3, 65, formulation="medguard-x") == pytest.approx(20 + 25 + 19.5)
    assert eti(0.5, 0.2, -0.4, (0.2, 0.5, 0.3)) == pytest.approx(0.1 + 0.4 - 0.12)
    # its ends for three doctors
    assert eti(0, 2 / 3, -1) == pytest.approx(-0.2) and eti(1, 0, 1) == pytest.approx(1)
    assert osi(50, 40) == osi(50, 40, formulation="medguard-x") == pytest.approx(55)
    assert osi(50, 40, (0.8, 0.2)) == pytest.approx(100 - 48)
    assert fti(0.54, 55) == pytest.approx(54.5) and fti(0.54, 55, as_printed=True) == pytest.approx(
        0.27 + 27.5
    )
    assert (
        fti(64.5, 55, formulation="medguard-x")
        == fti(64.5, 55, (0.5, 0.5), "medguard-x", True)
        == pytest.approx(59.75)
    )
    assert fti(0.54, 55, (0.9, 0.1)) == pytest.approx(48.6 + 5.5)


def test_with_safety_off_osi_is_0_or_missing() -> None:
    assert osi(NAN, NAN, safety=False) == 0 == osi(10, 20, safety=False)
    assert np.isnan(osi(10, 20, safety=False, formulation="medguard-x"))
    assert (
        np.isnan(osi(NAN, 20))
        and np.isnan(fti(60, NAN, formulation="medguard-x"))
        and np.isnan(eti(1, 0, NAN, (0.5, 0.5, 0)))
    )
    assert fti(0.54, osi(NAN, NAN, safety=False)) == pytest.approx(27)


def test_percentages_are_shares_of_what_was_rated() -> None:
    assert unsafe_rx_percent(1, 2, 4) == 75 and unsafe_rx_percent(1, 2, 4, "unsafe") == 25
    assert test_alerts_percent(1, 2, 12) == 25


def test_proposed_and_none_rated_is_missing_and_nothing_proposed_is_0() -> None:
    assert np.isnan(
        [unsafe_rx_percent(0, 0, 0, n_proposed=12), test_alerts_percent(0, 0, 0, 1)]
    ).all()
    assert unsafe_rx_percent(0, 0, 0, n_proposed=0) == test_alerts_percent(0, 0, 0, 0) == 0
    # not said what was proposed
    assert np.isnan([unsafe_rx_percent(0, 0, 0), test_alerts_percent(0, 0, 0)]).all()
    assert (
        unsafe_rx_percent(1, 2, 4, n_proposed=12) == 75 and test_alerts_percent(1, 2, 12, 13) == 25
    )
    rated, proposed = np.array([4.0, 0, 0]), np.array([9.0, 9, 0])
    found = unsafe_rx_percent(np.array([1.0, 0, 0]), np.zeros(3), rated, n_proposed=proposed)
    assert found == pytest.approx([25, NAN, 0], nan_ok=True)


def test_arrays_are_taken_element_by_element() -> None:
    assert eti(np.array([0.5, 1]), np.array([0.2, 0]), np.array([0.1, 1])) == pytest.approx(
        [0.47, 1]
    )
    assert osi(np.array([50, NAN]), np.array([40.0, 0])) == pytest.approx([55, NAN], nan_ok=True)
    assert osi(np.array([NAN, NAN]), np.array([NAN, NAN]), safety=False).tolist() == [0, 0]
    assert unsafe_rx_percent(np.array([1, 0]), np.array([1, 0]), np.array([4, 2])).tolist() == [
        50,
        0,
    ]
    with pytest.raises(ValueError, match="accuracy must lie between 0 and 1; received 7"):
        eti(np.array([0.5, 7]), np.zeros(2), np.zeros(2))


@BOTH
@given(st.data())
def test_each_index_rises_with_each_of_its_components_and_keeps_its_bounds(
    formulation, data
) -> None:
    full = FULL[formulation]
    right, apart, shift = (data.draw(SHARE, name) for name in ("accuracy", "cdr", "shift"))
    consistent = rdc([data.draw(COSINE, "cosine")], formulation)
    right, apart = right * full, apart * full
    value = eti(right, apart, consistent, formulation=formulation)
    assert (-0.3 if full == 1 else 0) - 1e-9 <= value <= full + 1e-9
    assert (
        eti(right + shift * (full - right), apart, consistent, formulation=formulation)
        >= value - 1e-9
    )
    assert (
        eti(right, apart + shift * (full - apart), consistent, formulation=formulation)
        <= value + 1e-9
    )
    assert (
        eti(right, apart, consistent + shift * (full - consistent), formulation=formulation)
        >= value - 1e-9
    )
    rx, alerts = (100 * data.draw(SHARE, name) for name in ("rx", "alerts"))
    safe = osi(rx, alerts, formulation=formulation)
    assert (
        0 <= safe <= 100
        and osi(rx + shift * (100 - rx), alerts, formulation=formulation) <= safe + 1e-9
    )
    assert osi(rx, alerts + shift * (100 - alerts), formulation=formulation) <= safe + 1e-9
    total = fti(value, safe, formulation=formulation)
    assert fti(value, safe * (1 - shift), formulation=formulation) <= total + 1e-9
    assert (
        fti(value * (1 - shift) if value > 0 else value, safe, formulation=formulation)
        <= total + 1e-9
    )


@each(
    ("call", "message"),
    [
        (lambda: eti(1.2, 0, 0), "accuracy must lie between 0 and 1; received 1.2"),
        (lambda: eti(0, -0.1, 0), "cdr must lie between 0 and 1; received -0.1"),
        (lambda: eti(0, 0, -1.1), "rdc must lie between -1 and 1; received -1.1"),
        (
            lambda: eti(0, 0, -1, formulation="medguard-x"),
            "rdc must lie between 0 and 100; received -1",
        ),
        (
            lambda: eti(101, 0, 0, formulation="medguard-x"),
            "accuracy must lie between 0 and 100; received 101",
        ),
        (lambda: eti(1, 0, 0, (0.5, 0.6, -0.1)), "none negative, that sum to 1; received"),
        (lambda: eti(1, 0, 0, (0.5, 0.2, 0.2)), "that sum to 1"),
        (lambda: eti(1, 0, 0, (0.5, 0.5)), "weights must be 3 numbers"),
        (lambda: eti(1, 0, 0, (NAN, 0.5, 0.5)), "weights must be 3 numbers"),
        (lambda: osi(101, 0), "unsafe_rx_percent must lie between 0 and 100; received 101"),
        (
            lambda: osi(0, float("inf")),
            "test_alerts_percent must lie between 0 and 100; received inf",
        ),
        (lambda: fti(54, 50), "eti must lie between -1 and 1; received 54"),
        (lambda: fti(0.5, -1), "osi must lie between 0 and 100; received -1"),
        (
            lambda: fti(-3, 1, formulation="medguard-x"),
            "eti must lie between 0 and 100; received -3",
        ),
        (lambda: rdc([1.2]), "a cosine must lie between -1 and 1; received 1.2"),
        (lambda: rdc([0.2], "x"), "formulation is 'x'; allowed are"),
        (lambda: osi(0, 0, formulation="x"), "formulation is 'x'; allowed are"),
        (lambda: unsafe_rx_percent(2, 3, 4), r"above those rated; received \[2.0, 3.0, 4.0\]"),
        (lambda: test_alerts_percent(-1, 0, 4), "counts must not be negative"),
        (lambda: unsafe_rx_percent(0, 0, 1, "all"), "variant is 'all'; allowed are"),
        (
            lambda: test_alerts_percent(0, 1, 4, 3),
            r"nor more rated than proposed, .* received \[0.0, 1.0, 4.0, 3.0\]",
        ),
        (
            lambda: cdr(["A", None], "wrong"),
            r"unreadable is 'wrong'; allowed are \['dropped', 'disagrees'\]",
        ),
    ],
)
def test_what_is_out_of_range_is_named(call, message) -> None:
    with pytest.raises(ValueError, match=message):
        call()
