"""The plan counts what a run then asks, no more and no less."""

from __future__ import annotations

from typing import Any

import pytest
from asking import ask
from fake_model import FakeEncoder, FakeModel
from made_medqa import ASKED, official, row, vignette

from trustlab.datasets import load_cases
from trustlab.experiment import benchmark
from trustlab.plan import plan_benchmark
from trustlab.run_notebooks import default_parameters, notebook_path
from trustlab.settings import Setup

DEFAULTS: dict[str, Any] = default_parameters(notebook_path("01_benchmark"))
del DEFAULTS["more"]
DEFAULTS |= {"temperature": 0.5, "seed": 0}


@pytest.mark.parametrize(
    "changed",
    [
        {"n": 3},
        {"n": 2, "samples": 4, "levels": [1, 60]},
        {"n": 2, "methods": "paper"},
        {"n": 2, "methods": ["asp", "information_level"]},
        {"n": 2, "methods": ["poc", "p_true"], "samples": 7},
        {"n": 1, "methods": ["ce"], "levels": [100]},
    ],
    ids=str,
)
def test_a_run_asks_what_was_planned(changed):
    parameters = DEFAULTS | changed
    plan = plan_benchmark(Setup(**parameters)).set_index("purpose")
    cases = load_cases(parameters["dataset"], n=parameters["n"], seed=parameters["seed"])
    model = FakeModel()
    how = {
        name: parameters[name] for name in ("methods", "levels", "samples", "temperature", "seed")
    }
    run = ask(benchmark, cases, [model], **how, encoder=FakeEncoder())
    assert run.calls.groupby("purpose")["n"].sum().to_dict() == dict(model.n_replies)
    assert set(plan.index) == set(run.calls["purpose"])
    exact = plan.drop(
        index=["keyword", "profile"], errors="ignore"
    )  # once a distinct answer, which nobody knows beforehand
    assert (
        exact["n_replies"].to_dict()
        == run.calls.groupby("purpose")["n"].sum().loc[exact.index].to_dict()
    )
    assert (
        exact["n_requests"].to_dict()
        == run.calls.groupby("purpose").size().loc[exact.index].to_dict()
    )


def test_the_counts_of_the_defaults_by_hand():
    changed = {"n": 20, "samples": 15, "levels": [1, 20, 40, 60, 80, 100]}
    plan = plan_benchmark(Setup(**(DEFAULTS | changed))).set_index("purpose")
    distinct = len({c.diagnosis for c in load_cases("starter", n=20, seed=DEFAULTS["seed"])})
    once = ("diagnosis", "ce", "cot_ce", "topk_ce", "evidence")
    sampled = {"samples": 1800, "p_true": 1800}
    assert plan["n_requests"].to_dict() == dict.fromkeys((*once, *sampled), 120) | {
        "keyword": distinct,
        "profile": distinct,
    }
    assert plan["n_replies"].to_dict() == dict.fromkeys(once, 120) | sampled | {
        "keyword": distinct,
        "profile": distinct,
    }
    longest = {"diagnosis": 64, "samples": 64, "ce": 16, "cot_ce": 256, "topk_ce": 64, "p_true": 16}
    longest |= {"keyword": 32, "profile": 1024, "evidence": 2048}
    assert plan["n_tokens_out"].to_dict() == {
        k: plan.at[k, "n_replies"] * n for k, n in longest.items()
    }


def test_tokens_in_are_four_thirds_of_the_words_sent_and_counted_once_a_request():
    parameters = DEFAULTS | {"n": 1, "levels": [100], "methods": ["poc"]}
    plan = plan_benchmark(Setup(**parameters)).set_index("purpose")["n_tokens_in"]
    model = FakeModel()
    cases = load_cases("starter", n=1, seed=parameters["seed"])
    ask(benchmark, cases, [model], ["poc"], [100], encoder=FakeEncoder())
    words = len(" ".join(content for _, content in model.requests[0].messages).split())
    assert plan.to_dict() == {"diagnosis": round(words * 4 / 3), "samples": round(words * 4 / 3)}


def test_a_judge_is_counted_once_an_answer_and_new_wordings_once_a_statement_whatever_the_models():
    parameters = {
        "n": 3,
        "levels": [20, 100],
        "methods": ["random"],
        "model": ["embedded", "embedded-closed"],
    }
    setup = Setup(**parameters, grader="judge:embedded", wording="embedded")
    plan = plan_benchmark(setup).set_index("purpose")["n_replies"]
    statements = {s.text for c in load_cases("starter", n=3, seed=0) for s in c.statements}
    questions = {text.split("\n")[0] for text in statements}
    assert len(questions) < len(statements)
    asked = {"rephrase_question": len(questions), "rephrase_reply": len(statements)}
    assert plan.to_dict() == {"diagnosis": 12, "judge": 12} | asked


def test_room_for_thought_is_counted_with_every_reply():
    setup = Setup(n=2, levels=[100], methods=["poc", "medconf"], grader="judge:embedded")
    without = plan_benchmark(setup).set_index("purpose")
    more = setup.with_(budgets={"thinking": 100}, reader_options={"thinking_tokens": 7})
    table = plan_benchmark(more).set_index("purpose")
    added = (table["n_tokens_out"] - without["n_tokens_out"]) / without["n_replies"]
    assert added.to_dict() == {purpose: 100 for purpose in table.index} | {"judge": 7}


def test_a_data_set_s_own_options_are_heeded(tmp_path):
    path = official(
        tmp_path, [row(f"{vignette(12, who)} {ASKED}") for who in ("baker", "nurse", "cook")]
    )
    parameters = DEFAULTS | {
        "dataset": "medqa",
        "path": str(path),
        "n": None,
        "methods": ["random"],
        "levels": [100],
    }
    assert plan_benchmark(Setup(**parameters))["n_replies"].tolist() == [3]
    assert plan_benchmark(Setup(**parameters).with_(data_options={"medqa": {"ids": ["1", "3"]}}))[
        "n_replies"
    ].tolist() == [2]
