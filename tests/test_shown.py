"""Tables to read: values with intervals as text."""

from __future__ import annotations

import pandas as pd
import pytest

from trustlab.metrics import formatted
from trustlab.metrics.significance import about_cases

NAN = float("nan")


@pytest.mark.parametrize(
    "value, low, high, words",
    [
        (0.5, 0.25, 0.756, "0.50 [0.25, 0.76]"),
        (0.5, NAN, NAN, "0.50"),
        (NAN, 0.1, 0.2, "–"),
        (-0.001, NAN, NAN, "0.00"),
    ],
)
def test_a_value_stands_with_its_interval_where_it_has_one(value, low, high, words):
    assert formatted.with_interval(value, low, high) == words


def test_a_pivoted_table_keeps_the_order_of_rows_and_columns():
    rows = [("b", "y", 0.5), ("b", "x", 0.25), ("a", "y", NAN), ("a", "x", 1.0)]
    table = pd.DataFrame(rows, columns=["method", "metric", "value"]).assign(low=NAN, high=NAN)
    assert formatted.pivoted(table, ["method"]).to_numpy().tolist() == [
        ["b", "0.50", "0.25"],
        ["a", "–", "1.00"],
    ]
    assert list(formatted.pivoted(table, ["method"])) == ["method", "y", "x"]
    assert formatted.pivoted(table[:0], ["method"]).empty


def calibration(rows):
    table = pd.DataFrame(rows, columns=["method", "how", "metric", "value"])
    return table.assign(model="m", low=NAN, high=NAN)


def test_calibration_is_shown_as_given_first_and_what_was_not_given_as_a_dash():
    rows = [
        ("asp", "as given", "brier", 0.2),
        ("asp", "isotonic", "brier", 0.1),
        ("poc", "isotonic", "brier", 0.3),
    ]
    rows += [("asp", "as given", "ece", 0.4), ("asp", "as given", "uncertainty", 0.25)]
    found = formatted.calibration_shown(calibration(rows))
    assert list(found) == ["model", "method", "Brier, as given", "Brier, isotonic", "ECE, as given"]
    assert found.to_numpy().tolist() == [
        ["m", "asp", "0.20", "0.10", "0.40"],
        ["m", "poc", "–", "0.30", "–"],
    ]
    assert list(formatted.calibration_shown(calibration(rows), hows=["isotonic"])) == [
        "model",
        "method",
        "Brier, isotonic",
    ]


def gaps(*rows):
    """A table of differences: (method, difference, standard error, p after Holm, reason) each."""
    table = pd.DataFrame(rows, columns=["method", "difference", "standard_error", "p_holm", "why"])
    half = 1.96 * table["standard_error"]
    ends = {"low": table["difference"] - half, "high": table["difference"] + half}
    return table.assign(**ends, n_cases=100, model="m").rename(columns={"why": "missing"})


def told(table, **how):
    return formatted.concluded(table, lambda r: r["method"], "Better", "Worse", **how)


def test_what_is_beyond_chance_is_told_with_its_interval_and_the_rest_with_the_cases_it_takes():
    rows = [("a", 0.2, 0.05, 0.001, ""), ("b", -0.3, 0.05, 0.001, ""), ("c", 0.1, 0.1, 0.6, "")]
    better, worse, left = told(gaps(*rows))
    assert better == "Better (beyond chance, Holm over 3, on 100 cases): a, +0.20 [+0.10, +0.30]."
    assert worse.startswith("Worse (") and worse.endswith(": b, -0.30 [-0.40, -0.20].")
    # 100 ((z at 1 - 0.05 / 6 + z at 0.8) 0.1 / 0.1) squared = 100 (2.394 + 0.842) squared = 1,047
    assert left == (
        "Cannot be told from 100 cases (for 80 % power, Holm over 3): c, +0.10 [-0.10, +0.30],"
        " would take about 1,100."
    )


def test_one_test_needs_no_correction_and_nothing_beyond_chance_is_said():
    (left,) = told(gaps(("c", 0.1, 0.1, 0.3, "")), unit=100, digits=0)
    assert left.startswith(
        "None is beyond chance. Cannot be told from 100 cases (for 80 % power, p"
    )
    assert left.endswith("c, +10 [-10, +30], would take about 790.")  # 100 (1.960 + 0.842) squared
    (left,) = told(gaps(("c", 0.1, 0.1, 0.3, "")).assign(n_tests=3))
    assert left.endswith("about 1,100.")


def test_no_difference_a_tiny_one_and_an_error_that_is_not_normal_have_no_number():
    rows = [("a", 0.0, 0.1, 1.0, ""), ("b", 1e-4, 0.1, 1.0, ""), ("c", 0.5, 0.05, 0.2, "")]
    (left,) = told(gaps(*rows))
    first, second, third = left.rpartition("): ")[2].split("; ")
    assert first.endswith("c, +0.50 [+0.40, +0.60], would take more than these 100")
    assert second.endswith("would take more than 10,000")
    assert third.endswith("would take no number of them (no difference was seen).")


def test_what_was_not_tested_keeps_its_reason_and_many_are_counted():
    rows = [(name, NAN, NAN, NAN, "fewer than 10 correct or wrong") for name in "abcde"]
    (none,) = told(gaps(*rows), most=2)
    assert none == "Not tested: a; b; and 3 more: fewer than 10 correct or wrong."
    assert told(gaps()) == []


def test_in_short_it_counts_each_kind_and_names_the_largest():
    rows = [("a", 0.2, 0.05, 0.001, ""), ("b", 0.3, 0.05, 0.001, ""), ("c", 0.1, 0.1, 0.6, "")]
    table = gaps(*rows, ("d", NAN, NAN, NAN, "too few"))

    def short(table):
        return formatted.in_short(table, lambda r: r["method"], "Better", "Worse")

    assert short(table) == (
        "Better: 2 of 3 (the largest: b, +0.30 [+0.20, +0.40])."
        " Not told apart by 100 cases: 1 of 3 (c, +0.10 [-0.10, +0.30])."
    )
    assert short(table[3:]) == short(table[:0]) == ""


def test_groups_are_named_where_there_are_several():
    table = gaps(("c", 0.1, 0.1, 0.3, ""))
    words = (lambda r: r["method"], "Better", "Worse")
    one = formatted.concluded_by(table, ["model"], *words)
    assert one.startswith("- None") and all(len(line) <= 100 for line in one.splitlines())
    both = formatted.concluded_by(pd.concat([table, table.assign(model="o")]), ["model"], *words)
    assert [line for line in both.splitlines() if line.endswith(":")] == ["m:", "o:"]
    assert formatted.concluded_by(table[:0], ["model"], *words) == ""


@pytest.mark.parametrize(
    "needed, words",
    [
        (101.0, "about 110"),
        (2137.0, "about 2,200"),
        (100.0, "more than these 100"),
        (10_001.0, "more than 10,000"),
        (NAN, "no number of them (no difference was seen)"),
    ],
)
def test_a_number_of_cases_is_rounded_up_and_never_below_those_at_hand(needed, words):
    assert about_cases(needed, 100) == words


def test_a_signed_number_has_no_sign_at_zero():
    assert [formatted.signed(v) for v in (0.004, -0.004, 0.006, -0.2, NAN)] == [
        "0.00",
        "0.00",
        "+0.01",
        "-0.20",
        "–",
    ]


def test_tests_are_counted_by_family():
    table = pd.DataFrame({"model": ["a", "a", "b"], "p": [0.1, NAN, 0.2]})
    assert formatted.counting_tests(table, ["model"])["n_tests"].tolist() == [1, 1, 1]
