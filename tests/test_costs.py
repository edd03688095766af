"""What methods cost, added up by hand; and which needs lead to which requests."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from asking import ask
from each import each
from fake_model import FakeEncoder, FakeModel, made_cases

from trustlab.confidence import METHODS
from trustlab.costs import (
    CALLS,
    method_costs,
    purposes_of,
)
from trustlab.run import benchmark

NAN = float("nan")
ONE_OF_EACH = list({METHODS[name].needs: name for name in METHODS}.values())
"""A method for each set of needs."""
ASKED = [
    ("diagnosis", 1, 10, 2, 1.0, 1, 0),
    ("diagnosis", 1, 20, 4, 3.0, 1, 0),
    ("samples", 3, 10, 6, 2.0, 3, 0),
    ("samples", 3, 20, 12, 0.0, 0, 3),  # from the cache
    ("ce", 1, 30, 1, 0.5, 1, 0),  # the other answer could not be read
]


def a_run(
    asked=ASKED,
    methods=("asp", "poc", "ce", "p_true", "random"),
    models=("m",),
    missing=(),
    **parameters,
) -> SimpleNamespace:
    """Two answers a model; each model is asked the same; methods in ``missing`` have no value."""
    keys = [{"case_id": c, "dataset": "d", "level": 1, "model": m} for m in models for c in "ab"]
    rows = [
        {
            **key,
            "method": name,
            "confidence": NAN if name in missing else 0.5,
            "missing": "no logprobs" if name in missing else "",
        }
        for key in keys
        for name in methods
    ]
    calls = [(*row, model) for model in models for row in asked]
    parameters = {"methods": list(methods), "assessor": None, **parameters}
    return SimpleNamespace(
        answers=pd.DataFrame(keys),
        confidence=pd.DataFrame(rows),
        calls=pd.DataFrame(calls, columns=list(CALLS)),
        parameters=parameters,
    )


def costs_of(run, **options) -> pd.DataFrame:
    return method_costs(run, **options).set_index("method")


# From needs to requests


@each("name", ONE_OF_EACH)
def test_a_methods_purposes_are_what_a_run_of_it_alone_asks(name):
    options = {
        "methods": [name],
        "levels": [100],
        "samples": 2,
        "encoder": FakeEncoder(),
        "medical_encoder": FakeEncoder(),
    }
    run = ask(benchmark, made_cases(1), [FakeModel()], **options)
    assert set(purposes_of(METHODS[name])) == set(run.calls["purpose"])
    found = method_costs(run).iloc[0]
    assert found["n_replies"] == run.calls["n"].sum()
    assert found["n_tokens_out"] == run.calls["n_tokens_out"].sum()


# Added up by hand


def test_an_answer_with_one_method_alone():
    found = costs_of(a_run())
    amounts = ["n_replies", "n_tokens_in", "n_tokens_out"]
    assert found.loc["asp", amounts].tolist() == [1, 15, 3]
    assert found.loc["poc", amounts].tolist() == [4, 30, 12]
    assert found.loc["ce", amounts].tolist() == [1.5, 30, 3.5]
    assert found.loc["random", amounts].tolist() == found.loc["asp", amounts].tolist()


def test_what_is_read_off_the_answer_costs_nothing_more():
    found = costs_of(a_run())
    extra = ["extra_replies", "extra_tokens_in", "extra_tokens_out", "extra_seconds"]
    assert found.loc["asp", extra].tolist() == [0, 0, 0, 0]
    assert found.loc["poc", extra].tolist() == [3, 15, 9, 2]


def test_seconds_are_those_of_what_was_asked_now_and_the_cached_are_taken_as_long():
    found = costs_of(a_run())
    # of poc 4 s for the diagnoses, 2 s for three of six samples
    assert found.loc[["asp", "poc"], "seconds"].tolist() == [
        2,
        4,
    ]
    assert found.loc[["asp", "poc"], "timed"].tolist() == [1, 0.75]
    assert (
        found.loc["asp", "missing"] == ""
        and found.loc["poc", "missing"] == "seconds from part of the requests"
    )


def test_seconds_are_missing_where_all_came_from_the_cache():
    cached = [(*row[:4], 0.0, 0, row[1]) for row in ASKED]
    found = costs_of(a_run(cached))
    assert found[["seconds", "extra_seconds", "total_seconds"]].isna().all(axis=None)
    assert found.loc["asp", "n_replies"] == 1
    assert found.loc["asp", "missing"] == "seconds unknown: replies came from the cache"


def test_a_request_of_which_only_part_was_asked_now_times_nothing():
    found = costs_of(a_run([*ASKED[:2], ("samples", 3, 10, 6, 2.0, 1, 2)], methods=["poc"]))
    assert np.isnan(found.loc["poc", "seconds"]) and found.loc["poc", "n_replies"] == 2.5


def test_a_prompt_shared_by_samples_counts_once():
    found = costs_of(a_run())
    assert found.loc["poc", "n_tokens_in"] == 30
    assert found.loc["asp", "n_tokens_in"] == 15


def test_money_follows_from_the_rates_for_a_million_tokens():
    found = costs_of(a_run(), usd_in=1, usd_out=10)
    assert found.loc["asp", ["usd", "extra_usd", "total_usd"]].tolist() == pytest.approx(
        [45e-6, 0, 90e-6]
    )
    assert found.loc["poc", ["usd", "extra_usd", "total_usd"]].tolist() == pytest.approx(
        [150e-6, 105e-6, 300e-6]
    )
    assert costs_of(a_run())[["usd", "extra_usd", "total_usd"]].isna().all(axis=None)


def test_each_model_has_its_own_rates_and_one_without_has_no_price():
    found = method_costs(
        a_run(models=("m", "k"), methods=["asp"]), usd_in={"m": 2}, usd_out={"m": 0}
    ).set_index("model")
    assert found.loc["m", "usd"] == pytest.approx(30e-6)
    assert np.isnan(found.loc["k", "usd"]) and found.loc["k", "n_tokens_in"] == 15


# What is missing


def test_a_method_that_was_never_asked_for_keeps_its_row_without_costs():
    row = costs_of(a_run()).loc["p_true"]
    assert (
        row[["n_replies", "n_tokens_in", "seconds", "extra_replies", "total_replies"]].isna().all()
    )
    assert row["missing"] == "never asked: p_true"


def test_a_method_without_values_keeps_its_row_with_what_it_cost_and_why():
    row = costs_of(a_run(missing=["asp"])).loc["asp"]
    assert (row["n_values"], row["n_answers"], row["n_replies"]) == (0, 2, 1)
    assert row["missing"] == "no value: no logprobs"


def test_judges_and_new_wordings_are_no_methods_cost():
    others = [("judge", 1, 99, 9, 1.0, 1, 0), ("rephrase_reply", 1, 99, 9, 1.0, 1, 0)]
    pd.testing.assert_frame_equal(method_costs(a_run([*ASKED, *others])), method_costs(a_run()))


def test_an_assessors_replies_are_shared_among_all_models_answers():
    run = a_run(models=("m", "k"), methods=["medconf"], assessor={"judge-model": "r1"})
    own = [("keyword", 1, 4, 2), ("profile", 1, 8, 4), ("evidence", 1, 12, 6)]
    mine = [(*row, 1.0, 1, 0, "judge-model") for row in own]
    run.calls = pd.concat([run.calls, pd.DataFrame(mine, columns=list(CALLS))], ignore_index=True)
    found = method_costs(
        run, usd_in={"judge-model": 1, "m": 0, "k": 0}, usd_out={"judge-model": 0, "m": 0, "k": 0}
    )
    assert found["extra_replies"].tolist() == [0.75, 0.75]  # three replies for four answers
    assert found["extra_tokens_in"].tolist() == [6, 6]
    assert found["usd"].tolist() == pytest.approx([6e-6, 6e-6])
    assert found["missing"].str.contains("assessor judge-model are shared equally").all()


@each(
    ("options", "message"),
    [
        ({"usd_in": 1}, "give usd_in and usd_out or neither; received 1 and None"),
        ({"usd_in": -1, "usd_out": 1}, "usd_in must be at least 0"),
        ({"usd_in": 1, "usd_out": {"m": float("inf")}}, "usd_out must be at least 0"),
    ],
)
def test_rates_that_make_no_sense_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        method_costs(a_run(), **options)


def test_calls_without_their_columns_are_refused():
    run = a_run()
    run.calls = run.calls.drop(columns=["n_made"])
    with pytest.raises(ValueError, match=r"calls lacks the columns \['n_made'\]"):
        method_costs(run)


def test_a_run_without_calls_gives_rows_without_costs():
    found = costs_of(a_run([]))
    assert (
        found["n_replies"].isna().all()
        and found["missing"].str.startswith("never asked: diagnosis").all()
    )
