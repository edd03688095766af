"""Accuracy beside mean confidence, set by set: each value with the answers behind it, and its
figure."""

from __future__ import annotations

from types import SimpleNamespace

import pandas as pd
import pytest

from studies.walkthrough import out_of_distribution_table

pytestmark = pytest.mark.usefixtures("every_interval")


NAN = float("nan")


def run_of(n: int, n_medconf: int) -> SimpleNamespace:
    """``n`` answers at one level; PoC for all of them, MedConf for the first ``n_medconf``."""
    cases = [f"c{i}" for i in range(n)]
    answers = pd.DataFrame({"case_id": cases, "correct": [i % 2 for i in range(n)]})
    poc = [(c, "poc", i / n, "") for i, c in enumerate(cases)]
    medconf = [
        (c, "medconf", *((0.5 + i / 100, "") if i < n_medconf else (NAN, "unreadable")))
        for i, c in enumerate(cases)
    ]
    return SimpleNamespace(
        answers=answers,
        confidence=pd.DataFrame(
            [*poc, *medconf], columns=["case_id", "method", "confidence", "missing"]
        ),
    )


def rows_of(n: int, n_medconf: int) -> dict[str, dict]:
    found = out_of_distribution_table(
        {"a set": run_of(n, n_medconf)}, ["poc", "medconf"], n_draws=200
    )
    return {row["method"] or row["metric"]: row for row in found.to_dict("records")}


def test_each_value_counts_the_answers_behind_itself():
    found = rows_of(24, 8)
    assert {what: row["n"] for what, row in found.items()} == {
        "accuracy": 24,
        "poc": 24,
        "medconf": 8,
    }


def test_below_ten_cases_there_is_a_value_and_no_interval():
    found = rows_of(24, 8)
    assert found["medconf"]["value"] == sum(0.5 + i / 100 for i in range(8)) / 8
    assert pd.isna([found["medconf"]["low"], found["medconf"]["high"]]).all()
    assert found["poc"]["low"] < found["poc"]["value"] < found["poc"]["high"]
    assert pd.notna(rows_of(24, 12)["medconf"]["low"])


def test_what_has_no_value_says_why_and_what_has_no_interval_too():
    found = rows_of(24, 0)["medconf"]
    assert (found["n"], found["n_missing"], found["missing"]) == (
        0,
        24,
        "no confidence: unreadable",
    )
    assert pd.isna(found["value"])
    few = rows_of(24, 8)["medconf"]
    assert (few["n_missing"], few["missing"]) == (16, "no interval: fewer than 12 cases")
