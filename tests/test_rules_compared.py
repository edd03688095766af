"""Stopping rules against a reference: paired by case, worked out by hand, with what cannot be
told."""

from __future__ import annotations

import numpy as np
import pytest
from test_consultations import FOUR, NAN, RIGHT, SURE, handmade

from studies.consultation import chosen_table, rules_compared
from trustlab.metrics.estimate import TOO_FEW, bootstrap_p, case_weights, percentile_interval
from trustlab.metrics.significance import holm

TWELVE = handmade(RIGHT * 3, SURE * 3, [3] * 12, [[0, 0, 1]] * 12)


def test_four_consultations_by_hand():
    found = rules_compared(FOUR, "fake", "fixed 3").set_index(["policy", "metric"])
    # stopped at once 1 of 4 is right, at the end 2; the utterances are 2 each, and 8, 8, 4 and 8
    assert found.loc[("fixed 0", "accuracy"), ["value", "reference", "difference"]].tolist() == [
        0.25,
        0.5,
        -0.25,
    ]
    assert found.loc[("fixed 0", "utterances"), ["value", "reference", "difference"]].tolist() == [
        2,
        7,
        -5,
    ]
    assert found.loc[("decides itself", "accuracy"), "difference"] == 0.25
    assert set(found["missing"]) == {TOO_FEW} and found[
        ["low", "p", "p_holm", "cases_needed"]
    ].isna().all(axis=None)


def test_the_interval_and_p_are_of_the_cases_differences():
    row = (
        rules_compared(TWELVE, "fake", "fixed 3", n_draws=300, seed=7)
        .set_index(["policy", "metric"])
        .loc[("fixed 0", "accuracy")]
    )
    gap = np.array([0 - 1, 0 - 1, 0, 1 - 0] * 3)
    draws = case_weights([f"c{i:02}" for i in range(12)], 300, 7) @ gap / 12
    assert (row["low"], row["high"]) == pytest.approx(percentile_interval(draws)) and row[
        "p"
    ] == bootstrap_p(draws)
    assert row["standard_error"] == pytest.approx(draws.std(ddof=1)) and row["n_cases"] == 12


def test_it_agrees_with_the_table_of_chosen_thresholds():
    table = chosen_table(TWELVE, "fake", against="ce", n_draws=200).set_index(["policy", "metric"])
    found = rules_compared(TWELVE, "fake", "ce", n_draws=200).set_index(["policy", "metric"])
    for policy in ("decides itself", "fixed 2", "fixed 3"):
        row = found.loc[(policy, "accuracy")]
        ours, theirs = (
            row[["difference", "low", "high"]],
            table.loc[(policy, "difference"), ["value", "low", "high"]],
        )
        assert ours.astype(float).tolist() == pytest.approx(
            theirs.astype(float).tolist(), nan_ok=True
        )
        for metric in ("accuracy", "utterances"):
            assert found.loc[(policy, metric), "value"] == table.loc[(policy, metric), "value"]


def test_neither_the_reference_nor_the_oracle_is_a_row_and_holm_is_over_the_rules_of_a_measure():
    found = rules_compared(TWELVE, "fake", "ce", n_draws=200)
    assert set(found["policy"]) == {"decides itself", "fixed 0", "fixed 2", "fixed 3"} and set(
        found["against"]
    ) == {"ce"}
    for _, part in found.groupby("metric"):
        assert part["p_holm"].tolist() == pytest.approx(holm(part["p"]).tolist(), nan_ok=True)


def test_without_a_rule_of_the_reference_the_longest_consultation_stands_for_it():
    assert set(rules_compared(TWELVE, "fake", "medconf", n_draws=20)["against"]) == {"fixed 3"}


def test_rules_that_stop_alike_have_no_interval_and_no_judged_case_no_value():
    same = rules_compared(
        handmade([[1] * 4] * 12, SURE * 3, [3] * 12, [[0] * 3] * 12), "fake", "fixed 3", n_draws=50
    )
    accuracy = same[same["metric"] == "accuracy"]
    assert (accuracy["difference"] == 0).all() and set(accuracy["missing"]) == {
        "no interval: all draws alike"
    }
    lost = rules_compared(
        handmade([[NAN, 1, 1, 1]] * 3, SURE[:3], [3] * 3, [[0] * 3] * 3), "fake", n_draws=20
    )
    assert lost["difference"].isna().all() and set(lost["missing"]) == {
        "no consultation could be judged throughout"
    }
