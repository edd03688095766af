"""What could be known: the exact posterior as a reference, and the Bayes-optimal answer."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import trustlab as tl
from studies.benchmark import bayes_optimal_table
from trustlab.paths import DATA
from trustlab.runs.collect import NOT_KNOWN, chance_of

CASES = tl.load_cases("starter")


def test_a_name_is_found_by_the_table_s_other_names_and_a_stranger_has_none():
    known = {"Influenza": 0.7, "Pneumonia": 0.2, "Gout": 0.1}
    assert chance_of("influenza", known) == chance_of("Flu", known) == 0.7
    assert chance_of("gout", known) == 0.1  # not in the table: the data set's own name
    assert chance_of("Acute asthma exacerbation", known) == 0.0
    assert chance_of("Martian fever", known) is None


def test_what_is_shown_otherwise_has_no_posterior():
    shown = tl.view(CASES[0], 40)
    assert shown.posterior is not None
    assert replace(shown, statements=shown.statements[::-1]).posterior is None
    told = tl.load_cases("starter-dialogue", n=1)[0]
    assert all(tl.view(told, level).posterior is None for level in tl.LEVELS)
    table = bayes_optimal_table(tl.load_cases("starter-report", n=3), [100])
    assert table["value"].isna().all() and table["n_missing"].tolist() == [3]
    assert table["missing"].tolist() == [NOT_KNOWN]


def test_the_best_answer_is_right_as_often_as_it_is_sure():
    table = bayes_optimal_table(CASES).set_index("level")
    assert list(table.index) == list(tl.LEVELS) and (table["n"] == 240).all()
    assert table["value"].is_monotonic_increasing
    assert table.loc[1, "value"] < 0.45 and table.loc[100, "value"] > 0.9
    lines = (DATA / "starter" / "posterior.jsonl").read_text(encoding="utf-8").splitlines()
    truth, hits = {case.case_id: case.diagnosis for case in CASES}, 0
    for row in map(json.loads, lines):
        last = list(row["posterior"].values())[-1]
        hits += max(last, key=last.get) == truth[row["case_id"]]
    assert table.loc[100, "value"] == pytest.approx(hits / 240)
