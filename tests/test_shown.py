"""Tables to read: values with intervals as text."""

from __future__ import annotations

import pandas as pd
import pytest

from trustlab import formatted

NAN = float("nan")


@pytest.mark.parametrize(
    "value, low, high, words",
    [
        (0.5, 0.25, 0.756, "0.50 [0.25, 0.76]"),
        (0.5, NAN, NAN, "0.50"),
        (NAN, 0.1, 0.2, "–"),
        (None, NAN, NAN, "–"),
        (pd.NA, NAN, NAN, "–"),
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
