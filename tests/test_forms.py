"""Replies that are held to a form, greedy ones that repeat themselves, and the trial of a run."""

from __future__ import annotations

import json
import re
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from fake_model import EVERYTHING, FakeModel
from saying import saying, says
from tiny_models import save_tiny
from typer.testing import CliRunner

from trustlab.cli.commands import app
from trustlab.datasets import load_cases
from trustlab.models.base import TAUGHT, About, Request
from trustlab.models.by_name import open_model
from trustlab.models.cache import CachedModel
from trustlab.models.local.forms import repeats_itself
from trustlab.models.local.huggingface import HuggingFaceModel
from trustlab.models.trial import ADVICE, Trial, spread
from trustlab.parsing.agents import read_opinion
from trustlab.parsing.medconf import read_evidence, read_score
from trustlab.parsing.reply import CYCLE, no_answer
from trustlab.parsing.schemas import schema_of, taught_schema_of
from trustlab.prompts import json_rows
from trustlab.records import Criterion, Reply
from trustlab.runs.experiment import benchmark
from trustlab.runs.trial import try_model
from trustlab.runs.workbench import opened
from trustlab.settings import Setup
from trustlab.stops import Unread

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
    assert all(re.search(r"\[(100|[1-9]?\d)\]\Z", r.text or "") for r in reasons)
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


def test_a_reply_that_begins_in_a_thought_is_held_to_no_form(tiny):
    pytest.importorskip("llguidance")
    how = {"structured": True, "device": "cpu"}
    model = HuggingFaceModel(tiny, **how)
    prompt = model._encode([(("user", "ce"),)])[0]
    assert model._form_of(asked("ce"), prompt) is not None
    opening = model._tokenizer.decode(list(prompt[-3:]))
    model.thinking = (opening, "</thought>")
    assert model._form_of(asked("ce"), prompt) is None


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


@pytest.mark.parametrize(
    ("ids", "cycle"),
    [
        ([7] * 36, True), ([7] * 35, False), ([1, 2, 3] * 12, True), (list(range(48)) * 3, True),
        (list(range(49)) * 3, False), ([1, 2] * 17 + [3, 1], False), (list(range(9)), False),
    ],
)  # fmt: skip
def test_what_a_cycle_is(ids, cycle):
    assert repeats_itself(np.array(ids)) is cycle


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
    first = [len({r.about for r in block}) for block in model.asked[:3]]
    assert [[r.purpose for r in block] for block in model.asked[:1]] == [["diagnosis"] * 3]
    assert max(first) <= 3
    asked = [request for block in model.asked for request in block]
    every = [(r.messages, r.temperature, r.first + i) for r in asked for i in range(r.n)]
    assert len(every) == len(set(every))
    plain = run_of(Stranger(readable), trial=False)
    assert run.parameters["replies_read"] == plain.parameters["replies_read"]
    assert run.calls["n_made"].sum() == plain.calls["n_made"].sum()
    assert run.parameters["replies_read"]["stranger"]["ce"]["example"] == 0


def unsure(request: Request) -> str:
    return "I think it may be several things, who knows?"


def test_a_trial_that_cannot_be_read_stops_the_run_with_its_replies_and_advice():
    model = Stranger(unsure)
    with pytest.raises(Unread) as refused:
        run_of(model)
    words = str(refused.value)
    assert says(words, "stranger", "diagnosis", "0 of 3", repr(unsure(model.asked[0][0])), ADVICE)
    assert sum(len(block) for block in model.asked) == 3
    with pytest.warns(UserWarning, match="nothing is claimed"):
        assert run_of(Stranger(unsure), trial=False).answers["correct"].isna().all()
    taught = Stranger(unsure)
    taught.taught = {"set": "embedded"}
    with pytest.warns(UserWarning, match="nothing is claimed"):
        run_of(taught)


def test_fewer_than_three_requests_are_no_trial_of_a_run_and_all_of_one_by_itself():
    with pytest.warns(UserWarning, match="nothing is claimed"):
        setup = Setup(cache=":memory:", quiet=True, samples=2)
        run = benchmark(CASES[:1], [Stranger(unsure)], ["poc"], [20, 100], setup)
    assert run.answers["correct"].isna().all()
    table = try_model(Stranger(unsure), CASES[:1], setup).table().set_index("purpose")
    assert table.loc["diagnosis", ["asked", "read"]].tolist() == [1, 0]


def test_answers_that_repeat_an_example_are_counted():
    model = Stranger(lambda r: r.messages[2][1])
    counts = run_of(model).parameters["replies_read"]["stranger"]
    assert counts["diagnosis"]["example"] == counts["diagnosis"]["asked"] == 10


def test_try_shows_every_purpose_and_ends_with_5_where_one_cannot_be_read(monkeypatch):
    model = Stranger(readable)
    monkeypatch.setattr("trustlab.runs.workbench.open_model", lambda *_, **__: model)
    told = CliRunner().invoke(app, ["try", "openai:stranger"])
    assert told.exit_code == 5, told.output
    assert "diagnosis: 3 of 3 read" in told.output and "profile: 0 of" in told.output
    n_asked = Counter(r.purpose for block in model.asked for r in block for _ in range(r.n))
    assert {"ce", "ask", "judge", "patient", "plan"} <= set(n_asked)
    assert max(n_asked.values()) == 9, "three replies to each of three views at most"


@pytest.mark.parametrize(("n", "places"), [(0, []), (1, [0]), (2, [0, 1]), (9, [0, 4, 8])])
def test_a_trial_takes_the_first_the_last_and_one_between(n, places):
    assert spread(list(range(n))) == places


def test_a_trial_counts_in_no_run(tmp_path):
    model = CachedModel(Stranger(readable), None)
    trial = Trial(stops=False)
    model.trial = trial
    about = About("d", "c", 1, reads=lambda reply: reply.text)
    model.generate([Request((("user", str(i)),), purpose="x", about=about) for i in range(5)])
    assert model.counts["x"]["asked"] == 5 and len(model.calls) == 5 + 3
    assert sum(call["n_made"] for call in model.calls) == 5 and trial.table()["asked"].sum() == 3


FORM = ("profile", "structure", "importance")
QUOTED = """He said "no", {x}, \\ or \'},\'"""


def rows_of(*names: str, weighed: bool = True) -> list[dict]:
    weight = {"importance": "moderate"} if weighed else {}
    return [{"id": i, **weight, "description": name} for i, name in enumerate(names, 1)]


def assessed(rows: list[dict], quote: str | None) -> str:
    """An assessment of these criteria in the form that the embedded models were taught."""
    verdict = {"evidence": quote, "support_level": "missing" if quote is None else "supported"}
    listed = json_rows({**row, **verdict} for row in rows)
    ids = [row["id"] for row in rows]
    some, none = ids if quote else [], [] if quote else ids
    each = {"supported": some, "missing": none, "contradicted": []}
    if "importance" in rows[0]:
        each = {k: {"strong": [], "moderate": v, "weak": []} for k, v in each.items()}
    confidence = {"reasoning": "Supported 1 of 1.", "confidence_score": "<<37>>"}
    end = f'"summary": {json.dumps(each)},\n"confidence": {json.dumps(confidence)}'
    return f'{{"criteria": {listed},\n{end}}}'


@pytest.fixture(scope="module")
def embedded():
    pytest.importorskip("llguidance")
    return open_model("embedded", structured="taught", device="cpu")


def n_taken(model, rows: list[dict], text: str) -> tuple[int, int, bool]:
    """How many tokens of a text the form takes, of how many, and whether it is whole then."""
    options = FORM if "importance" in rows[0] else FORM[:2]
    schema = taught_schema_of("evidence", options, json_rows(rows))
    matcher = model._forms.begin(Request((("user", ""),), schema=schema))
    tokens = model._tokenizer(text, add_special_tokens=False)["input_ids"]
    n = matcher.try_consume_tokens(tokens)
    return n, len(tokens), matcher.is_accepting()


@pytest.mark.parametrize("weighed", [True, False])
@pytest.mark.parametrize("names", [["a cough"], ["fièvre > 38.5 °C", QUOTED], list("abcdefgh")])
@pytest.mark.parametrize("quote", [None, "It's 7/10 (a lot), since Monday."])
def test_the_taught_form_takes_what_was_taught(embedded, weighed, names, quote):
    rows = rows_of(*names, weighed=weighed)
    text = assessed(rows, quote)
    n, most, whole = n_taken(embedded, rows, text)
    assert n == most and whole
    profile = tuple(Criterion(r["id"], r["description"], r.get("importance")) for r in rows)
    found, agrees = read_evidence(text, profile, f"Patient: {quote}", "strict")
    assert len(found) == len(names) and agrees and read_score(text)[0] == 37


def test_the_taught_form_refuses_another_order_row_or_criterion_and_a_loop(embedded):
    rows = rows_of("a cough", "fever")
    right = assessed(rows, None)
    for wrong in (
        right.replace('"importance": "moderate", "description"', '"description"', 1),
        right.replace("fever", "gout"),
        right.replace('"id": 2', '"id": 3'),
        right.replace("<<37>>", "<<137>>"),
        right.replace("null", json.dumps("I run and " * 60), 1),
        right.replace("null", '"' + "ab" * 100 + '"', 1),
    ):
        n, most, whole = n_taken(embedded, rows, wrong)
        assert n < most and not whole, wrong


def test_a_run_is_held_to_the_taught_form_by_an_option_of_its_own_and_the_rest_stays(
    tmp_path, monkeypatch
):
    pytest.importorskip("llguidance")
    how = {"n": 1, "levels": [20, 100], "samples": 2, "methods": ["medconf", "poc"], "quiet": True}
    made = {}
    for form in (False, True):
        setup = Setup(taught_form=form, cache=tmp_path / "replies.sqlite", **how)  # pyright: ignore
        bench = opened(setup)
        made[form] = run = benchmark(bench.cases(), bench.models(), setup=setup)
        held = {"embedded": ["evidence"]} if form else {}
        assert run.parameters["held_to_a_form"] == held
        options = {"embedded": {"structured": "taught"}} if form else {}
        assert run.parameters["model_options"] == options
    again = made[True].calls.groupby("purpose")["n_made"].sum()
    assert again["evidence"] > 0 and again.drop("evidence").sum() == 0
    free, held = (run.confidence.set_index("method") for run in made.values())
    assert free.loc["poc", "confidence"].tolist() == held.loc["poc", "confidence"].tolist()
    # From the cache the model is not opened.
    monkeypatch.setattr("trustlab.models.by_name._opened", lambda *_, **__: pytest.fail("opened"))
    bench = opened(setup)
    kept = benchmark(bench.cases(), bench.models(), setup=setup)
    pd.testing.assert_frame_equal(kept.confidence, made[True].confidence)
    assert kept.parameters["held_to_a_form"] == {"embedded": ["evidence"]}


def follows_its_profile(assessment, tokenizer) -> bool:
    """Whether an evidence reply has the profile's criteria, and quotations of at most 36 tokens."""
    rows = json.loads(assessment.replies["evidence"])["criteria"]
    quotes = [row["evidence"] or "" for row in rows]
    if max(len(tokenizer(quote, add_special_tokens=False)["input_ids"]) for quote in quotes) > 36:
        return False
    criteria = [(row["id"], row["description"], row["importance"]) for row in rows]
    return criteria == [(c.id, c.description, c.importance) for c in assessment.profile]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["embedded", "embedded-closed", "embedded-overconfident"])
def test_the_taught_form_changes_no_reply_that_was_whole_and_of_it(name, embedded):
    """Of sixteen cases at three levels. What was cut is whole; what had another criterion, or a
    quotation without an end, is changed."""
    cases = [*load_cases("starter", n=8), *load_cases("starter-report", n=8)]
    assessments = {}
    for form in (False, True):
        setup = opened(Setup(model=name, taught_form=form, samples=1, quiet=True))
        run = benchmark(cases, setup.models(), ["medconf"], [20, 60, 100], setup=setup)
        assessments[form] = [each.assessment for each in run.generations if each.assessment]
    n_same = n_cut = 0
    for free, held in zip(assessments[False], assessments[True], strict=True):
        n_cut += (held.missing or "").startswith("confidence from evidence")
        if not free.missing and follows_its_profile(free, embedded._tokenizer):
            assert held.replies["evidence"] == free.replies["evidence"]
            n_same += 1
    assert n_same >= 30 and n_cut <= 1


def test_who_was_not_taught_is_not_held_to_it_and_without_llguidance_it_is_refused(
    tiny, monkeypatch
):
    with pytest.raises(ValueError, match=saying("structured", "'taught'", True, False)):
        HuggingFaceModel(tiny, structured="taught", device="cpu")
    for step, options in (("profile", FORM), ("ce", ()), ("evidence", ("structure",))):
        assert taught_schema_of(step, options, "") is None
    monkeypatch.setattr("trustlab.runs.workbench.find_spec", lambda name: None)
    needs = saying("taught_form=True", "llguidance", 'pip install "trustlab[chat]"')
    with pytest.raises(ImportError, match=needs):
        opened(Setup(taught_form=True)).models()
    opened(Setup()).models()
