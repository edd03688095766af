"""Accuracy beside mean confidence, set by set: each value with the answers behind it."""

from __future__ import annotations

from types import SimpleNamespace

import pandas as pd
import pytest

from studies.walkthrough import out_of_distribution_table

pytestmark = pytest.mark.usefixtures("every_interval")
NAN = float("nan")


def rows_of(n_medconf: int, n: int = 24) -> dict[str, dict]:
    """``n`` answers at one level; PoC for all of them, MedConf for the first ``n_medconf``."""
    cases = [f"c{i}" for i in range(n)]
    poc = [(c, "poc", i / n, "") for i, c in enumerate(cases)]
    medconf = [(c, "medconf", 0.5 + i / 100, "") for i, c in enumerate(cases[:n_medconf])]
    medconf += [(c, "medconf", NAN, "unreadable") for c in cases[n_medconf:]]
    columns = ["case_id", "method", "confidence", "missing"]
    run = SimpleNamespace(
        answers=pd.DataFrame({"case_id": cases, "correct": [i % 2 for i in range(n)]}),
        confidence=pd.DataFrame([*poc, *medconf], columns=columns),
    )
    found = out_of_distribution_table({"a set": run}, ["poc", "medconf"], n_draws=200)
    return {row["method"] or row["metric"]: row for row in found.to_dict("records")}


def test_each_value_counts_the_answers_behind_itself_and_few_have_no_interval():
    found = rows_of(8)
    counts = {what: (row["n"], row["n_missing"]) for what, row in found.items()}
    assert counts == {"accuracy": (24, 0), "poc": (24, 0), "medconf": (8, 16)}
    few = found["medconf"]
    assert few["value"] == sum(0.5 + i / 100 for i in range(8)) / 8
    assert pd.isna([few["low"], few["high"]]).all()
    assert few["missing"] == "no interval: fewer than 12 cases"
    assert found["poc"]["low"] < found["poc"]["value"] < found["poc"]["high"]
    assert pd.notna(rows_of(12)["medconf"]["low"])
    none = rows_of(0)["medconf"]
    assert (none["n"], none["n_missing"]) == (0, 24) and pd.isna(none["value"])
    assert none["missing"] == "no confidence: unreadable"
