"""Tables to read: costs and coverage of a run, on rows few enough to count by hand, and intervals
as text."""

from __future__ import annotations

from typing import Any

import pandas as pd
from each import each
from saying import says

from trustlab.runs import formatted

NAN = float("nan")


@each(
    ("value", "low", "high", "words"),
    [
        (0.5, 0.25, 0.756, "0.50 [0.25, 0.76]"),
        (0.5, NAN, NAN, "0.50"),
        (NAN, 0.1, 0.2, "–"),
        (None, NAN, NAN, "–"),
        (-0.001, NAN, NAN, "0.00"),
    ],
)
def test_a_value_stands_with_its_interval_where_it_has_one(value, low, high, words):
    assert formatted.with_interval(value, low, high) == words


def test_a_pivoted_table_keeps_the_order_of_rows_and_columns():
    rows = [("b", "y", 0.5), ("b", "x", 0.25), ("a", "y", NAN), ("a", "x", 1.0)]
    table = pd.DataFrame(rows, columns=["method", "metric", "value"]).assign(low=NAN, high=NAN)
    found = formatted.pivoted(table, ["method"])
    assert list(found) == ["method", "y", "x"]
    assert found.to_numpy().tolist() == [["b", "0.50", "0.25"], ["a", "–", "1.00"]]
    assert formatted.pivoted(table[:0], ["method"]).empty


def told(method: str, *values: float, model: str = "x", **more: Any) -> pd.DataFrame:
    """A method's confidences in cases a, b, ...; NaN is missing for the reason "none"."""
    table = pd.DataFrame({"case_id": list("abcd")[: len(values)], "confidence": values})
    table["missing"] = table["confidence"].isna().map({True: "none", False: ""})
    key = {"dataset": "d", "level": 1, "model": model, "method": method, "bound": ""}
    return table.assign(**key | more)


def test_coverage_table_counts_reasons_most_frequent_first_for_each_model_and_method():
    reasons = {"missing": ["none", "too few", "none"]}
    parts = [told("ce", 0.3, 0.4, NAN), told("entropy", NAN, NAN, NAN, **reasons)]
    found = formatted.coverage_table(pd.concat([*parts, told("p", 0.5, model="w")]))
    columns = ["model", "method", "family", "access", "status", "n", "n_bound", "bound"]
    assert list(found.columns) == [*columns, "n_missing", "reasons"]
    assert found.to_numpy().tolist() == [
        ["x", "ce", "verbalized", "black", "partly", 2, 0, "", 1, "none (1)"],
        ["x", "entropy", "token", "white", "missing", 0, 0, "", 3, "none (2); too few (1)"],
        ["w", "p", "", "", "computed", 1, 0, "", 0, ""],
    ]


@each(
    ("bounds", "expected"),
    [
        (["", NAN], ["computed", 0, ""]),
        (["upper", ""], ["bound", 1, "upper"]),
        (["upper", "lower"], ["bound", 2, "lower, upper"]),
    ],
)
def test_coverage_table_tells_computed_values_from_bounds(bounds, expected):
    (row,) = formatted.coverage_table(told("m", 0.3, 0.4, bound=bounds)).to_dict("records")
    assert [row[name] for name in ("status", "n_bound", "bound")] == expected


def test_a_server_that_changed_its_model_is_told_of_in_coverage_and_captions():
    parameters: dict[str, Any] = {"entailment": {"name": "proxy", "stand_in": True}}
    parameters |= {"models": {"x": "r1", "y": "r1"}, "samples_alike": ["x"]}
    parameters["served_by"] = {"x": {"A": 3, "B": 1}, "y": {"A": 2}, "judge": {"J": 1, "K": 1}}
    confidence = pd.concat([told("ce", 0.3), told("poc", 0.5)])
    found = formatted.coverage_table(confidence, parameters)["note"].tolist()
    assert says(found[0], "A 3, B 1") and says(found[1], "A 3, B 1", "samples alike", "temperature")
    of_x, of_judge = formatted.run_notes(parameters, ["ce"], ["x"])
    assert says(of_x, "x", "A 3, B 1") and says(of_judge, "judge", "J 1, K 1")
    assert formatted.run_notes(parameters, ["ce"], ["y"]) == [of_judge]
