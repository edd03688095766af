"""What methods cost, added up by hand; which needs lead to which requests; and a run's facts."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from asking import ask
from each import each
from fake_model import TEXT_ONLY, FakeEncoder, FakeModel, made_cases
from openai_server import ask as asks
from saying import saying, says

import trustlab as tl
from trustlab.confidence import METHODS
from trustlab.models.server.openai import OpenAIModel
from trustlab.records import Reply
from trustlab.reports.reporting import report
from trustlab.runs.costs import CALLS, method_costs, purposes_of
from trustlab.runs.experiment import benchmark
from trustlab.runs.formatted import cost_table
from trustlab.runs.run import Run
from trustlab.settings import Setup
from trustlab.stops import Stopped

ONE_OF_EACH = list({METHODS[name].needs: name for name in METHODS}.values())
"""A method for each set of needs."""
ASKED = [
    ("diagnosis", 1, 10, 2),
    ("diagnosis", 1, 20, 4),
    ("samples", 3, 10, 6),
    ("samples", 3, 20, 12),
    ("ce", 1, 30, 1),  # the other answer could not be read
]


NAMED = ("asp", "poc", "ce", "p_true", "random")


def a_run(asked=ASKED, methods=NAMED, models=("m",), missing=(), **parameters) -> SimpleNamespace:
    """Two answers a model; each model is asked the same; methods in ``missing`` have no value."""
    answers = pd.DataFrame({"case_id": list("ab") * len(models), "dataset": "d", "level": 1})
    answers["model"] = [model for model in models for _ in "ab"]
    confidence = answers.merge(pd.DataFrame({"method": list(methods)}), how="cross")
    lost = confidence["method"].isin(missing)
    confidence = confidence.assign(confidence=np.where(lost, np.nan, 0.5))
    confidence["missing"] = np.where(lost, "no logprobs", "")
    calls = pd.DataFrame([(*row, m) for m in models for row in asked], columns=list(CALLS))
    told = {"methods": list(methods), "assessor": None, **parameters}
    return SimpleNamespace(answers=answers, confidence=confidence, calls=calls, parameters=told)


def costs_of(run, **options) -> pd.DataFrame:
    return method_costs(run, **options).set_index("method")


@each("name", ONE_OF_EACH)
def test_a_methods_purposes_are_what_a_run_of_it_alone_asks(name):
    model = type("S", (FakeModel,), {"scores_text": 1})()
    options = {"levels": [100], "samples": 2, "encoder": FakeEncoder()}
    options |= {"methods": [name], "medical_encoder": FakeEncoder()}
    run = ask(benchmark, made_cases(1), [model], **options)
    assert set(purposes_of(METHODS[name])) == set(run.calls["purpose"])
    found = method_costs(run).iloc[0]
    assert found["n_replies"] == run.calls["n"].sum()
    assert found["n_tokens_out"] == run.calls["n_tokens_out"].sum()


def test_an_answer_with_one_method_alone_by_hand():
    found = costs_of(a_run(), usd_in=1, usd_out=10)
    amounts = ["n_replies", "n_tokens_in", "n_tokens_out"]
    by_hand = {"asp": [1, 15, 3], "poc": [4, 30, 12], "ce": [1.5, 30, 3.5], "random": [1, 15, 3]}
    for name, expected in by_hand.items():
        assert found.loc[name, amounts].tolist() == expected
    # for a million tokens
    assert found.loc[["asp", "poc"], "usd"].tolist() == pytest.approx([45e-6, 150e-6])
    assert costs_of(a_run())["usd"].isna().all()
    others = [("judge", 1, 99, 9), ("rephrase_reply", 1, 99, 9)]  # are no methods' cost
    pd.testing.assert_frame_equal(method_costs(a_run([*ASKED, *others])), method_costs(a_run()))


def test_a_method_without_costs_or_values_keeps_its_row_and_says_why():
    row = costs_of(a_run()).loc["p_true"]
    assert row[["n_replies", "n_tokens_in"]].isna().all()
    assert row["missing"] == "never asked: p_true"
    row = costs_of(a_run(missing=["asp"])).loc["asp"]
    assert (row["n_values"], row["n_answers"], row["n_replies"]) == (0, 2, 1)
    assert says(row["missing"], "no value", "no logprobs")


def test_an_assessors_replies_are_shared_among_all_models_answers():
    run = a_run(models=("m", "k"), methods=["medconf"], assessor={"judge-model": "r1"})
    own = [("keyword", 1, 4, 2), ("profile", 1, 8, 4), ("evidence", 1, 12, 6)]
    mine = [(*row, "judge-model") for row in own]
    run.calls = pd.concat([run.calls, pd.DataFrame(mine, columns=list(CALLS))], ignore_index=True)
    found = method_costs(run)
    assert found["n_replies"].tolist() == [1.75, 1.75]  # an answer, and three for four answers
    assert found["n_tokens_in"].tolist() == [21, 21]
    assert {says(why, "judge-model", "shared") for why in found["missing"]} == {True}


def made(cases: int = 2, *models: FakeModel, **options: Any) -> Run:
    how = {"samples": 3, "levels": [1, 100], "encoder": FakeEncoder()}
    how |= {"methods": ["asp", "poc", "ce", "medconf", "random"]}
    return ask(benchmark, made_cases(cases), models or [FakeModel()], **how | options)


def test_what_is_missing_failed_or_unread_is_counted_apart_and_the_costs_stand_below():
    class Failing(FakeModel):
        def reply(self, request, i):
            if request.purpose == "diagnosis" and "Question 0 for a?" in request.messages[-1][1]:
                return Reply(None, missing="HTTP 500", finish="error")
            return super().reply(request, i)

    unread = Failing(unreadable=lambda r, i: "for b?" in r.messages[1][1])
    run = made(3, unread, FakeModel("<b>", provides=TEXT_ONLY), levels=[1], methods=["asp", "poc"])
    found = report(run, usd_in=1, usd_out=2)
    gone = int(run.confidence["confidence"].isna().sum())
    lines = found.text.splitlines()
    for told in ("Answers", 6, 1), ("Confidences", 12, gone), ("<b>", "asp", "logprobs"):
        assert any(says(line, told) for line in lines), told
    pd.testing.assert_frame_equal(found.costs, method_costs(run, 1, 2))
    assert "US dollars" in str(found) and "US dollars" not in str(report(run))
    page = found._repr_html_()
    assert "<b>," not in page and "&lt;b&gt;" in page


# Tokens that a server does not count


def without(answer: dict) -> dict:
    del answer["usage"]
    return answer


def usage(**fields: Any) -> Any:
    return lambda answer: answer | {"usage": answer["usage"] | fields}


UNCOUNTED = {
    "none": without,
    "zeros": usage(prompt_tokens=0, completion_tokens=0),
    "prompt alone": usage(completion_tokens=None),
    "reply alone": usage(prompt_tokens=None),
    "below 0": usage(prompt_tokens=-1, completion_tokens=-1),
}


def run_of(model: OpenAIModel, n: int = 2, **choices: Any) -> Run:
    setup = Setup(samples=2, cache=choices.pop("cache", ":memory:"), quiet=True, **choices)
    return tl.benchmark(tl.load_cases("starter", n=n), [model], ["poc", "ce"], [100], setup)


@each("kind", UNCOUNTED)
def test_what_a_server_does_not_count_costs_nobody_knows_what(kind, server, opened, tmp_path):
    server.logprobs = "null"  # else the reply's tokens can be counted
    server.plan = lambda k, body: UNCOUNTED[kind]
    run = run_of(opened(), run_dir=str(tmp_path))
    lost = [c for c in ("n_tokens_in", "n_tokens_out") if run.calls[c].isna().all()]
    one = {"prompt alone": ["n_tokens_out"], "reply alone": ["n_tokens_in"]}.get(kind)
    assert lost == (one or ["n_tokens_in", "n_tokens_out"])
    assert (cost_table(run.calls)[lost] == "not counted").all(axis=None)
    for made in (run, tl.load_run(tmp_path)):
        found = report(made, usd_in=1, usd_out=2)
        assert found.costs[[*lost, "usd"]].isna().all(axis=None)
        assert found.costs["not_counted"].str.startswith("tokens of diagnosis").all()
        assert says(found.text, "Tokens", "not counted", "6 of 6")
        assert "server" in found.text and "0.0000" not in str(found)


def test_a_part_that_is_not_counted_is_no_cost_of_0_and_counted_ones_stay_whole(server, opened):
    server.plan = lambda k, body: without if k % 3 == 0 and "n" in body else None
    run = run_of(opened(), n=6)
    n_lost = int(run.calls["n_tokens_in"].isna().sum())
    assert 0 < n_lost < 6 and f"not counted for {n_lost} of 18 requests" in report(run).text
    spent = cost_table(run.calls).set_index("purpose")
    assert spent["n_tokens_in"].eq("not counted").to_dict() == {
        "diagnosis": False, "samples": True, "ce": False,
    }  # fmt: skip
    costs = report(run, usd_in=1, usd_out=1).costs.set_index("method")
    assert costs["usd"].isna().to_dict() == {"poc": True, "ce": False}
    server.plan = lambda k, body: None
    counted = run_of(opened())
    assert counted.calls["n_tokens_in"].dtype == "int64"
    assert "not counted for" not in report(counted).text


@each("kind", UNCOUNTED)
def test_a_budget_of_tokens_is_refused_where_they_are_not_counted(kind, server, opened):
    server.plan, n_before = lambda k, body: UNCOUNTED[kind], len(server.chats())
    with pytest.raises(ValueError, match=saying("usage", "max_tokens_total", "max_calls")):
        run_of(opened(max_tokens_total=300))
    assert len(server.chats()) == n_before + 1  # of the questions before the first case
    model = opened(max_tokens_total=300, provides=["text"], concurrency=1)
    with pytest.raises(Stopped, match=saying("usage", "1 of 4")):
        model.generate([asks(str(k)) for k in range(4)])
    assert len(server.chats()) == n_before + 2
    run_of(opened(max_calls=30))  # which is kept to
    server.plan = lambda k, body: UNCOUNTED[kind] if "n" in body else None  # the third question
    with pytest.raises(ValueError, match="max_calls"):
        _ = opened(max_tokens_total=300).abilities


def test_an_old_cache_whose_server_counted_nothing_is_no_cost_of_0(server, opened, tmp_path):
    file = tmp_path / "replies.sqlite"
    run_of(opened(), cache=str(file))
    with closing(sqlite3.connect(file)) as kept, kept:  # as an older version kept them
        rows = kept.execute("SELECT key, value FROM replies").fetchall()
        for key, value in rows:
            words = re.sub(r'"n_tokens_in":\d+', '"n_tokens_in":0', value.partition("\n")[0])
            kept.execute("UPDATE replies SET value = ? WHERE key = ?", (words, key))
    assert run_of(opened(), cache=str(file)).calls["n_tokens_in"].isna().all()


def test_a_withheld_reply_without_tokens_is_counted(server, opened):
    def empty(answer: dict) -> dict:
        answer["choices"][0]["message"]["content"] = ""
        return usage(completion_tokens=0)(answer)

    server.logprobs, server.plan = "null", lambda k, body: empty
    model = opened(max_tokens_total=10_000, provides=["text"])
    assert [reply.n_tokens_out for (reply,) in model.generate([asks("a")])] == [0]
