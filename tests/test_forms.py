"""Replies that are held to a form, greedy ones that repeat themselves, and the trial of a run."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from fake_model import EVERYTHING, FakeModel
from tiny_models import save_tiny
from typer.testing import CliRunner

from trustlab.cli import app
from trustlab.datasets import load_cases
from trustlab.experiment import benchmark
from trustlab.models.base import TAUGHT, Request, Unread
from trustlab.models.huggingface import HuggingFaceModel
from trustlab.models.trial import ADVICE
from trustlab.parsing.agents import read_opinion
from trustlab.parsing.medconf import read_evidence, read_score
from trustlab.parsing.reply import CYCLE, no_answer
from trustlab.parsing.schemas import schema_of
from trustlab.parsing.scores import probed
from trustlab.records import Criterion, Reply
from trustlab.settings import Setup

WHOLE = ("retrieval", "profile", "structure", "importance")
CASES = load_cases("starter", n=5, seed=1)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return save_tiny(tmp_path_factory.mktemp("tiny"), max_position_embeddings=4096)


def asked(name: str, **how) -> Request:
    how = {"max_tokens": 16, "temperature": 1.0, "n": 3} | how
    return Request((("user", name),), schema=schema_of(name, WHOLE, (1, 2)), **how)


def test_a_local_model_is_held_to_the_form_and_its_statistics_never_are(tiny):
    pytest.importorskip("llguidance")
    held, free = (HuggingFaceModel(tiny, structured=on, device="cpu") for on in (True, False))
    number, verdict = held.generate([asked("ce"), asked("p_true")])
    assert all(re.fullmatch(r"\[(100|[1-9]?\d)\]", r.text or "") for r in number)
    assert {r.text for r in verdict} <= {"True", "False"}
    reasons, opinions = held.generate([asked(s, max_tokens=2000) for s in ("cot_ce", "doctor")])
    assert all(probed("cot_ce", "", r, "strict") is not None for r in reasons)
    assert all(read_opinion(r)[0] for r in opinions)
    (evidence,) = held.generate([asked("evidence", max_tokens=2000, n=1)])
    rows = (Criterion(1, "cough"), Criterion(2, "fever"))
    found, _ = read_evidence(evidence[0].text or "", rows, "I cough.", "strict")
    score, reason = read_score(evidence[0].text or "", "I cough.", "strict")
    assert len(found) == 2 and 0 <= score <= 100 and len(reason or "") <= 300
    for request in (asked("ce", want=frozenset({"logprobs"})), asked("diagnosis")):
        both = [model.generate([request])[0] for model in (held, free)]
        assert [r.text for r in both[0]] == [r.text for r in both[1]]
    (tiny / TAUGHT).write_text("set: embedded\nfree: true\n", encoding="utf-8")
    taught = HuggingFaceModel(tiny, structured=True, device="cpu")
    (tiny / TAUGHT).unlink()
    assert not taught.structured and taught.revision == free.revision
    both = [model.generate([asked("ce")])[0] for model in (taught, free)]
    assert [r.text for r in both[0]] == [r.text for r in both[1]]


def test_a_greedy_reply_that_repeats_itself_ends_there_with_that_reason(tiny):
    model = HuggingFaceModel(tiny, device="cpu")
    model._ends = np.array([], dtype=np.int64)
    for weights in model._model.parameters():  # every token is as likely: the first, always
        weights.data.zero_()
    greedy = Request((("user", "x"),), max_tokens=400)
    ((reply,),) = model.generate([greedy])
    assert reply.finish == "cycle" and reply.n_tokens_out < 400 and no_answer(reply) == CYCLE
    model._stops_cycles = False
    ((whole,),) = model.generate([greedy])
    assert whole.finish == "length" and (whole.text or "").startswith(reply.text or "")


class Stranger(FakeModel):
    """A model that nobody taught our prompts; it answers as ``says`` does."""

    taught = {}

    def __init__(self, says) -> None:
        super().__init__("stranger", EVERYTHING)
        self.says = says

    def reply(self, request, i):
        return Reply(self.says(request), n_tokens_out=3)


def readable(request: Request) -> str:
    if request.purpose == "keyword":
        return "[" + request.messages[-1][1].partition("The disease: ")[2].split("\n")[0] + "]"
    return {"ce": "[40]", "p_true": "True"}.get(request.purpose, "[Gout]")


def run_of(model, **how):
    setup = Setup(cache=":memory:", quiet=True, samples=2, **how)
    return benchmark(CASES, [model], ["poc", "ce", "p_true"], [20, 100], setup)


def test_a_trial_asks_three_views_of_each_purpose_first_and_nothing_twice():
    model = Stranger(readable)
    run = run_of(model)
    assert max(len({r.about for r in block}) for block in model.asked[:3]) <= 3
    assert [r.purpose for r in model.asked[0]] == ["diagnosis"] * 3
    asked = [request for block in model.asked for request in block]
    every = [(r.messages, r.temperature, r.first + i) for r in asked for i in range(r.n)]
    assert len(every) == len(set(every))
    plain = run_of(Stranger(readable), trial=False)
    assert run.parameters["replies_read"] == plain.parameters["replies_read"]
    assert run.calls["n_made"].sum() == plain.calls["n_made"].sum()


def test_a_trial_that_cannot_be_read_stops_the_run_with_its_replies_and_advice():
    model = Stranger(lambda request: "It may be several things, who knows?")
    with pytest.raises(Unread) as refused:
        run_of(model)
    words = str(refused.value)
    assert "trial of stranger, diagnosis: 0 of 3 read" in words and ADVICE in words
    assert "'It may be several things, who knows?' -> no diagnosis" in words
    assert sum(len(block) for block in model.asked) == 3
    with pytest.warns(UserWarning, match="nothing is claimed"):
        assert run_of(Stranger(model.says), trial=False).answers["correct"].isna().all()


def test_try_shows_every_purpose_and_ends_with_5_where_one_cannot_be_read(tmp_path, monkeypatch):
    monkeypatch.setattr("trustlab.models.trial.TRIALS", tmp_path / "trials.json")
    model = Stranger(readable)
    monkeypatch.setattr("trustlab.workbench.open_model", lambda *_, **__: model)
    told = CliRunner().invoke(app, ["try", "openai:stranger"])
    assert told.exit_code == 5, told.output
    assert "diagnosis: 3 of 3 read" in told.output and "profile: 0 of" in told.output
    known = json.loads((tmp_path / "trials.json").read_text(encoding="utf-8"))
    assert {"ce", "ask", "judge", "patient", "plan"} <= set(known["openai:stranger"])
