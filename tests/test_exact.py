"""What could be known: the exact posterior as a reference, and the Bayes-optimal answer."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from fake_model import FakeModel

import trustlab as tl
from studies.benchmark import bayes_optimal_table
from trustlab.collect import NO_NAME, NOT_KNOWN, chance_of
from trustlab.paths import DATA
from trustlab.settings import Setup

CASES = tl.load_cases("starter")


def asked(cases: list[tl.Case], model: FakeModel) -> tl.Run:
    setup = Setup(cache=":memory:", quiet=True)
    return tl.benchmark(cases, [model], ["exact_posterior", "random"], setup=setup)


def test_the_value_is_that_of_the_model_s_own_answer_and_nobody_is_shown_it():
    run = asked(CASES[:4], model := FakeModel())
    by_id = {case.case_id: case for case in CASES}
    values = run.confidence.query("method == 'exact_posterior'")
    assert set(values["missing"]) == {"", NO_NAME}  # the fake model says some names of its own
    for row, answer in zip(values.itertuples(), run.answers.itertuples(), strict=True):
        chance = chance_of(answer.answer, tl.view(by_id[row.case_id], row.level).posterior)
        assert row.missing == NO_NAME if chance is None else row.confidence == chance
    words = " ".join(content for r in model.requests for _, content in r.messages)
    known = tl.view(CASES[0], 1).posterior
    assert known and str(next(iter(known.values()))) not in words


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
    run = asked([replace(CASES[0], posteriors={})], FakeModel())
    assert set(run.confidence.query("method != 'random'")["missing"]) == {NOT_KNOWN}
    told = tl.load_cases("starter-dialogue", n=1)[0]
    assert all(tl.view(told, level).posterior is None for level in tl.LEVELS)
    table = bayes_optimal_table(tl.load_cases("starter-report", n=3), [100])
    assert table["value"].isna().all() and table["n_missing"].tolist() == [3]
    assert table["missing"].tolist() == [NOT_KNOWN]


def test_the_best_answer_is_right_as_often_as_it_is_sure():
    table = bayes_optimal_table(CASES, n_draws=200).set_index("level")
    assert list(table.index) == list(tl.LEVELS) and (table["n"] == 240).all()
    assert table["value"].is_monotonic_increasing
    assert table.loc[1, "value"] < 0.45 and table.loc[100, "value"] > 0.9
    lines = (DATA / "starter" / "posterior.jsonl").read_text(encoding="utf-8").splitlines()
    truth, hits = {case.case_id: case.diagnosis for case in CASES}, 0
    for row in map(json.loads, lines):
        last = list(row["posterior"].values())[-1]
        hits += max(last, key=last.get) == truth[row["case_id"]]
    assert table.loc[100, "value"] == pytest.approx(hits / 240)
