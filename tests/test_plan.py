"""The plan counts what a run then asks, no more and no less."""

from __future__ import annotations

from typing import Any

from asking import ask
from each import each
from fake_model import FakeEncoder, FakeModel

from studies import benchmark as study
from trustlab.cli.plan import plan_study
from trustlab.datasets import load_cases
from trustlab.runs.experiment import benchmark
from trustlab.settings import Setup

DEFAULTS: dict[str, Any] = {"samples": 15, "levels": [1, 20, 40, 60, 80, 100]}
DISTINCT = ["keyword", "profile"]
"""Asked once a distinct answer, which nobody knows beforehand."""


def plan_of(setup: Setup) -> Any:
    return plan_study("01_benchmark", setup)[0]


@each(
    "changed",
    [
        {"n": 2, "samples": 4, "levels": [1, 60]},
        {"n": 2, "methods": ["poc", "p_true"], "samples": 7},
    ],
)
def test_a_run_asks_what_was_planned(changed):
    setup = Setup(**DEFAULTS | changed)
    plan = plan_of(setup).set_index("purpose")
    cases, model = load_cases("starter", n=setup.n, seed=0), FakeModel()
    how = {"levels": setup.levels, "samples": setup.samples, "methods": setup.methods}
    run = ask(benchmark, cases, [model], **how, encoder=FakeEncoder())
    asked = run.calls.groupby("purpose")["n"].agg(["sum", "size"])
    assert set(plan.index) == set(asked.index) and asked["sum"].to_dict() == dict(model.n_replies)
    exact = plan.drop(index=DISTINCT, errors="ignore")
    assert exact["n_replies"].to_dict() == asked.loc[exact.index, "sum"].to_dict()
    assert exact["n_requests"].to_dict() == asked.loc[exact.index, "size"].to_dict()


def test_the_counts_of_the_defaults_by_hand():
    plan = plan_of(Setup(n=20, **DEFAULTS)).set_index("purpose")
    distinct = dict.fromkeys(DISTINCT, len({c.diagnosis for c in load_cases("starter", n=20)}))
    once = dict.fromkeys(("diagnosis", "ce", "cot_ce", "topk_ce", "evidence"), 120)
    sampled = {"samples": 1800, "p_true": 1800}
    assert plan["n_requests"].to_dict() == once | dict.fromkeys(sampled, 120) | distinct
    assert plan["n_replies"].to_dict() == once | sampled | distinct
    longest = {"diagnosis": 64, "samples": 64, "ce": 16, "cot_ce": 256, "topk_ce": 64, "p_true": 16}
    longest |= {"keyword": 32, "profile": 1024, "evidence": 2048}
    out = {name: plan.at[name, "n_replies"] * n for name, n in longest.items()}
    assert plan["n_tokens_out"].to_dict() == out


def test_a_judge_is_counted_once_an_answer_and_new_wordings_once_a_statement_whatever_the_models():
    setup = Setup(
        n=3, levels=[20, 100], methods=["random"], model=["embedded", "embedded-closed"],
        grader="judge:embedded", wording="embedded",
    )  # fmt: skip
    plan = plan_of(setup).set_index("purpose")["n_replies"]
    statements = {s.text for c in load_cases("starter", n=3, seed=0) for s in c.statements}
    questions = {text.split("\n")[0] for text in statements}
    assert len(questions) < len(statements)
    asked = {"rephrase_question": len(questions), "rephrase_reply": len(statements)}
    assert plan.to_dict() == {"diagnosis": 12, "judge": 12} | asked


def test_room_for_thought_is_counted_with_every_reply():
    setup = Setup(n=2, levels=[100], methods=["poc", "medconf"], grader="judge:embedded")
    without = plan_of(setup).set_index("purpose")
    more = setup.with_(budgets={"thinking": 100}, reader_options={"thinking_tokens": 7})
    table = plan_of(more).set_index("purpose")
    added = (table["n_tokens_out"] - without["n_tokens_out"]) / without["n_replies"]
    assert added.to_dict() == {purpose: 100 for purpose in table.index} | {"judge": 7}


def test_models_and_roles_apart_are_each_asked_for_themselves():
    how: dict[str, Any] = {"n": 2, "levels": [100]}
    two = Setup(**how, methods=["medconf"], model=["openai:x", "openai:y"], assessor="openai:z")
    assert plan_of(two).set_index("purpose").at["evidence", "n_requests"] == 4
    team = Setup(**how, methods=["agreement"], model="openai:x", panel=["openai:a", "openai:b"])
    doctors = plan_of(team).set_index("purpose").loc["doctor", ["n_replies", "n_requests"]]
    assert doctors.tolist() == [6, 4]


def test_text_that_only_some_backends_score_is_counted():
    plan = plan_of(Setup(n=2, levels=[100], methods=["p_true_probability"])).set_index("purpose")
    assert plan["n_requests"].to_dict() == {"diagnosis": 2, "p_true_probability": 4}


@each(
    ("task", "purposes"),
    [
        ("free", {"diagnosis"}),
        ("choice", {"choice"}),
        ("unlisted", {"choice"}),
        ("free and choice", {"diagnosis", "choice"}),
    ],
)
def test_a_choice_alone_asks_nothing_else_and_the_plan_counts_it(task, purposes, tmp_path):
    chosen = study.setup(
        n=2,
        levels=[100],
        methods=["sequence_probability"],
        run_dir=tmp_path,
        more={"task": task, "cache": tmp_path / "replies.sqlite", "quiet": True},
    )
    assert set(plan_of(chosen)["purpose"]) == purposes
    model = FakeModel()
    run = benchmark(chosen.cases(), study.models_for_free_text([model], chosen), setup=chosen)
    if "free" in task:
        assert len(model.asked) == 1
        return
    assert not model.asked
    assert set(run.answers["missing"]) == {"not asked: task names only a choice"}
    assert not run.parameters["replies_read"]
