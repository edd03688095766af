"""The tables behind the figures, on rows few enough to count by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from each import each

from studies import calibration
from trustlab import formatted

pytestmark = pytest.mark.usefixtures("every_interval")


NAN = float("nan")


def run_tables(rows, methods=("m",), model: str = "x") -> tuple[pd.DataFrame, pd.DataFrame]:
    """``rows``: (case, level, correct, one confidence per method).

    NaN is missing for the reason "none".
    """
    keys = [{"case_id": c, "dataset": "d", "level": level, "model": model} for c, level, *_ in rows]
    answers = pd.DataFrame([{**k, "correct": row[2]} for k, row in zip(keys, rows, strict=True)])
    confidence = pd.DataFrame(
        [
            {
                **k,
                "method": name,
                "confidence": value,
                "bound": "",
                "missing": "" if value == value else "none",
            }
            for k, row in zip(keys, rows, strict=True)
            for name, value in zip(methods, row[3:], strict=True)
        ]
    )
    return answers, confidence


def test_an_answer_that_failed_is_neither_right_nor_wrong():
    rows = [("a", 1, 0, 0.3), ("b", 1, NAN, 0.9), ("c", 1, 1, 0.6)]
    answers, confidence = run_tables(rows)
    found = calibration.reliability_table(
        answers, confidence, {"m": "probability"}, bins=1, n_draws=50
    )
    assert found[["confidence", "value", "n"]].to_numpy().tolist() == [
        [pytest.approx(0.45), 0.5, 2]
    ]


def test_answers_given_twice_are_refused():
    answers, confidence = run_tables([("a", 1, 0, 0.3)])
    with pytest.raises(pd.errors.MergeError):
        calibration.reliability_table(
            pd.concat([answers, answers]), confidence, {"m": "probability"}
        )


# Reliability


def test_reliability_bins_hold_equal_numbers_of_answers():
    values = [(0.1, 0), (0.2, 0), (0.3, 1), (0.6, 0), (0.7, 1), (0.9, 1)] * 4
    answers, confidence = run_tables([(f"c{i}", 1, hit, p) for i, (p, hit) in enumerate(values)])
    found = calibration.reliability_table(
        answers, confidence, {"m": "probability"}, bins=2, n_draws=500
    )
    columns = [
        "model",
        "method",
        "bin",
        "confidence",
        "metric",
        "value",
        "low",
        "high",
        "n",
        "n_cases",
        "n_missing",
    ]
    assert list(found.columns) == [*columns, "missing"]
    assert found[["bin", "n", "n_cases"]].to_numpy().tolist() == [[0, 12, 12], [1, 12, 12]]
    np.testing.assert_allclose(found["confidence"], [0.2, 2.2 / 3])
    np.testing.assert_allclose(found["value"], [1 / 3, 2 / 3])
    assert ((found["low"] <= found["value"]) & (found["value"] <= found["high"])).all()


def test_a_bin_of_nine_cases_has_no_interval_though_all_bins_together_have_more():
    rows = [(f"c{i}", 1, i % 2, 0.1 + 0.05 * i) for i in range(18)]
    found = calibration.reliability_table(
        *run_tables(rows), {"m": "probability"}, bins=2, n_draws=200
    )
    assert found["n"].tolist() == [9, 9] and found[["low", "high"]].isna().all(axis=None)
    assert found["missing"].tolist() == ["no interval: fewer than 12 cases"] * 2


def test_equal_confidences_share_a_bin():
    answers, confidence = run_tables(
        [(f"c{i}", 1, i % 2, p) for i, p in enumerate([0.5] * 6 + [0.9] * 2)]
    )
    found = calibration.reliability_table(
        answers, confidence, {"m": "probability"}, bins=4, n_draws=50
    )
    # Mean ranks 3.5 and 7.5 of 8 lie in the second and the last of four bins.
    assert found[["bin", "confidence", "value", "n"]].to_numpy().tolist() == [
        [1, 0.5, 0.5, 6],
        [3, 0.9, 0.5, 2],
    ]


def test_reliability_is_for_probabilities_and_each_model_apart():
    rows = [("a", 1, 0, 0.2, -3.0), ("b", 1, 1, 0.8, -1.0)]
    one, two = run_tables(rows, ("p", "s")), run_tables([("a", 1, 1, 0.4, -2.0)], ("p", "s"), "y")
    answers, confidence = (pd.concat(pair) for pair in zip(one, two, strict=True))
    found = calibration.reliability_table(
        answers, confidence, {"p": "probability", "s": "score"}, bins=1, n_draws=50
    )
    assert found[["model", "method", "n", "value"]].to_numpy().tolist() == [
        ["x", "p", 2, 0.5],
        ["y", "p", 1, 1.0],
    ]


def test_the_interval_resamples_cases_not_answers():
    # Six cases are always right and six always wrong: the number right in a draw is binomial (12,
    # 1/2), 95 % of it in 3 to 9.
    rows = [
        (case, level, case in "abcdef", 0.5)
        for case in "abcdefghijkl"
        for level in (1, 20, 40, 60, 80, 100)
    ]
    found = calibration.reliability_table(
        *run_tables(rows), {"m": "probability"}, bins=1, n_draws=500
    )
    np.testing.assert_allclose(found[["value", "low", "high"]], [[0.5, 0.25, 0.75]])


# Tables of text and counts


def test_cost_table_sums_requests_once():
    columns = [
        "model",
        "purpose",
        "n",
        "n_tokens_in",
        "n_tokens_out",
        "n_made",
        "n_cached",
        "seconds",
    ]
    rows = [
        ("x", "diagnosis", 1, 40, 5, 1, 0, 0.5),
        ("x", "samples", 15, 40, 70, 15, 0, 1.0),
        ("x", "diagnosis", 1, 50, 6, 0, 1, 0.0),
    ]
    found = formatted.cost_table(
        pd.DataFrame([*rows, ("y", "diagnosis", 1, 9, 2, 1, 0, 0.1)], columns=columns)
    )
    assert found.to_dict("split")["data"] == [
        ["x", "diagnosis", 2, 2, 90, 11, 1, 1],
        ["x", "samples", 1, 15, 40, 70, 15, 0],
        ["y", "diagnosis", 1, 1, 9, 2, 1, 0],
    ]  # fmt: skip
    wanted = [
        "model",
        "purpose",
        "n_requests",
        "n_replies",
        "n_tokens_in",
        "n_tokens_out",
        "n_made",
        "n_cached",
    ]
    assert list(found.columns) == wanted


COVERAGE = [
    "model",
    "method",
    "family",
    "access",
    "status",
    "n",
    "n_bound",
    "bound",
    "n_missing",
    "reasons",
]


def test_coverage_table_counts_reasons_most_frequent_first():
    _, confidence = run_tables(
        [("a", 1, 0, 0.3, NAN), ("b", 1, 0, 0.4, NAN), ("c", 1, 0, NAN, NAN)], ("p", "q")
    )
    confidence.loc[confidence.query("method == 'q' and case_id == 'b'").index, "missing"] = (
        "too few"
    )
    found = formatted.coverage_table(confidence)
    assert list(found.columns) == COVERAGE
    assert found.to_numpy().tolist() == [
        ["x", "p", "", "", "partly", 2, 0, "", 1, "none (1)"],
        ["x", "q", "", "", "missing", 0, 0, "", 3, "none (2); too few (1)"],
    ]


@each(
    ("bounds", "status", "n_bound", "bound"),
    [
        (["", ""], "computed", 0, ""),
        ([NAN, NAN], "computed", 0, ""),
        (["upper", ""], "bound", 1, "upper"),
        (["lower", "lower"], "bound", 2, "lower"),
        (["upper", "lower"], "bound", 2, "lower, upper"),
    ],
)
def test_coverage_table_tells_computed_values_from_bounds(bounds, status, n_bound, bound):
    _, confidence = run_tables([("a", 1, 0, 0.3), ("b", 1, 0, 0.4)])
    (row,) = formatted.coverage_table(confidence.assign(bound=bounds)).to_dict("records")
    assert (row["status"], row["n"], row["n_bound"], row["bound"], row["n_missing"]) == (
        status,
        2,
        n_bound,
        bound,
        0,
    )


def test_coverage_table_gives_each_model_its_own_rows_and_each_method_its_family():
    both = (
        run_tables([("a", 1, 0, value, 0.5)], ("entropy", "ce"), name)[1]
        for name, value in (("y", NAN), ("x", -0.2))
    )
    found = formatted.coverage_table(pd.concat(both))
    assert found[["model", "method", "family", "access", "status"]].to_numpy().tolist() == [
        ["y", "entropy", "token", "white", "missing"],
        ["y", "ce", "verbalized", "black", "computed"],
        ["x", "entropy", "token", "white", "computed"],
        ["x", "ce", "verbalized", "black", "computed"],
    ]  # fmt: skip


# Stand-ins and variants


def test_a_server_that_changed_its_model_is_told_of_in_coverage_and_captions() -> None:
    _, confidence = run_tables([("a", 1, 0, 0.3, 0.5)], ("ce", "poc"))
    parameters: dict[str, Any] = {"entailment": {"name": "proxy", "stand_in": True}}
    parameters |= {"models": {"x": "r1", "y": "r1"}, "samples_alike": ["x"]}
    parameters["served_by"] = {"x": {"A": 3, "B": 1}, "y": {"A": 2}, "judge": {"J": 1, "K": 1}}
    changed = "the server changed its model during the run: A 3, B 1 replies"
    alike = "all samples alike (temperature ignored?)"
    found = formatted.coverage_table(confidence, parameters)
    assert found["note"].tolist() == [changed, f"{alike}; {changed}"]
    judge = f"judge: {changed.replace('A 3, B', 'J 1, K')}"
    assert formatted.run_notes(parameters, ["ce"], ["x"]) == [f"x: {changed}", judge]
    assert formatted.run_notes(parameters, ["ce"], ["y"]) == [judge]
