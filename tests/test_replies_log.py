"""``replies.jsonl.gz``: from a number to the words behind it, without a growing memory."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from asking import ask
from fake_consultation import asked
from fake_model import FakeEncoder, FakeModel, made_cases
from fake_panel import FakePanel, Wordy, marks_json, opinion, plan_json
from fake_panel import case as charted

import studies.trust_indices
import trustlab as tl
from trustlab.folder.replies_log import NAME, Replies, recording
from trustlab.models.base import About, Request
from trustlab.models.cache import CachedModel, request_keys
from trustlab.parsing.reply import Unreadable
from trustlab.prompts import render
from trustlab.records import NO_DIAGNOSIS, Reply

CASES = made_cases(2)
FIRST = CASES[0].case_id
VIEW = ("made", FIRST, 20)


def made(folder: Path, *models: FakeModel, **more: Any) -> tl.Run:
    how = {"methods": "all", "samples": 3, "encoder": FakeEncoder(), "levels": [20, 100]}
    return ask(tl.benchmark, CASES, models or [FakeModel()], run_dir=folder, **how | more)


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.open(folder / NAME)]


def test_every_request_has_a_row_with_its_case_prompt_and_replies(tmp_path):
    run = made(tmp_path)
    found = rows(tmp_path)
    assert [r["purpose"] for r in found] == list(run.calls["purpose"])
    assert [len(r["replies"]) for r in found] == list(run.calls["n"])
    assert all(r["dataset"] == "made" and r["case_id"] and r["messages"] for r in found)
    whose = {(r["case_id"], r["level"]) for r in found if r["purpose"] == "diagnosis"}
    assert whose == set(zip(run.answers["case_id"], run.answers["level"], strict=True))
    counted = [list(r)[-3:] for r in found]
    assert counted == [["n_cached", "n_made", "seconds"]] * len(found)


def test_what_was_read_is_what_the_record_holds(tmp_path):
    run = made(tmp_path, FakeModel(unreadable=lambda r, i: i == 1))
    kept = Replies(tmp_path)
    for g in run.generations:
        told = {r["purpose"]: r for r in kept.of("made", g.case_id, g.level)}
        assert g.answer and g.samples is not None and g.assessment and g.panel
        assert told["diagnosis"]["replies"][0]["read"] == g.answer.text
        samples = told["samples"]["replies"]
        assert [r["read"] for r in samples if r["read"]] == [s.text for s in g.samples]
        assert [r["why"] for r in samples] == ["", NO_DIAGNOSIS, ""]
        assert [r["raw"] for r in told["p_true"]["replies"]] == [r.raw for r in g.probes["p_true"]]
        assert [r["read"] for r in told["doctor"]["replies"]] == [
            o.diagnosis for o in g.panel.opinions
        ]
        if g.assessment.missing is None:
            assert told["evidence"]["replies"][0]["read"]["score"] == g.assessment.score
        (keyword,) = kept.about(g.assessment.diagnosis, ["keyword"])
        assert keyword["replies"][0]["read"]["keyword"] == g.assessment.keyword


def test_a_request_that_serves_several_views_names_the_first_and_counts_them(tmp_path):
    run = made(tmp_path)
    answers = list(run.answers["answer"])
    for row in (r for r in rows(tmp_path) if r["purpose"] == "profile"):
        first = run.answers.iloc[answers.index(row["diagnosis"])]
        assert (row["case_id"], row["level"]) == (first["case_id"], first["level"])
        assert row["n_views"] == answers.count(row["diagnosis"])


def test_only_time_and_counts_change_when_the_run_is_made_again(tmp_path):
    for folder in ("a", "b"):
        made(tmp_path / folder, cache=tmp_path / "replies.sqlite")
    first, again = rows(tmp_path / "a"), rows(tmp_path / "b")
    assert sum(r["n_made"] for r in first) > 0 == sum(r["n_made"] for r in again)
    for row in (*first, *again):
        for name in ("n_cached", "n_made", "seconds"):
            row.pop(name)
    assert first == again
    made(tmp_path / "c", cache=tmp_path / "replies.sqlite")
    assert (tmp_path / "b" / NAME).read_bytes() == (tmp_path / "c" / NAME).read_bytes()


def test_about_plays_no_part_in_keys_or_prompts_and_no_model_is_given_it():
    plain = Request(render("diagnosis", patient="a cough"), 2, 0.5)
    told = replace(plain, about=About(*VIEW))
    assert told == plain and hash(told) == hash(plain)
    assert request_keys(told, "m", "r") == request_keys(plain, "m", "r")
    model = FakeModel()
    CachedModel(model, None).generate([told])
    assert model.asked[0][0].about is None


def test_a_reply_keeps_its_thought_apart_and_says_why_it_was_not_read(tmp_path):
    def reads(reply: Reply) -> str:
        raise Unreadable(f"<b>{reply.text}</b>")

    class Thinks(FakeModel):
        def reply(self, request: Request, i: int) -> Reply:
            return Reply("\ud800 no", reasoning="so be it") if i else Reply(None, missing="gone")

    cached = CachedModel(Thinks(), None)
    with recording(tmp_path) as attach:
        attach(cached, cached, "no model")
        cached.generate([Request((("user", "q"),), 2, 1.0, about=About(*VIEW, reads=reads))])
    assert cached.recorder is None
    (row,) = rows(tmp_path)
    none, odd = row["replies"]
    assert (none["raw"], none["why"]) == (None, "gone")
    assert (odd["raw"], odd["thought"]) == ("\ud800 no", "so be it")
    assert odd["why"] == "<b>\ud800 no</b>" and odd["read"] is None


def test_levels_and_counts_may_be_numpys(tmp_path):
    cached = CachedModel(FakeModel(), None)
    with recording(tmp_path) as attach:
        attach(cached)
        about = About("made", FIRST, np.int64(20))  # pyright: ignore[reportArgumentType]
        cached.generate([Request(render("diagnosis", patient="x"), seed=np.int64(3), about=about)])
    (row,) = rows(tmp_path)
    assert (row["level"], row["seed"]) == (20, 3)


def test_nothing_is_recorded_without_a_folder_and_a_failed_run_leaves_no_file(tmp_path):
    with recording(None) as attach:
        attach(cached := CachedModel(FakeModel(), None))
        assert cached.recorder is None
    with pytest.raises(KeyError), recording(tmp_path) as attach:
        attach(cached)
        raise KeyError
    assert cached.recorder is None and not list(tmp_path.iterdir()) and not Replies(tmp_path)


def test_turns_of_a_consultation_have_their_level(tmp_path):
    run = asked(2, 2, run_dir=tmp_path, cache=":memory:")
    found = rows(tmp_path)
    assert {r["purpose"] for r in found} == {"ask", "enough", "patient"}
    assert {r["level"] for r in found} <= {0, 1} and 0 in {r["level"] for r in found}
    assert {r["dataset"] for r in found} == set(run.answers["dataset"])
    said = [r["replies"][0]["read"]["words"] for r in found if r["purpose"] == "patient"]
    assert said == list(run.turns.sort_values("turn", kind="stable")["reply"])
    below = next(tmp_path.glob(f"*/{NAME}"))
    assert {r["purpose"] for r in rows(below.parent)} == {"diagnosis", "samples", "ce"}


def test_plans_and_reviews_are_kept_with_their_marks(tmp_path):
    model = FakePanel(
        "m1",
        doctor=[opinion("Influenza"), "no words"],
        plan=plan_json("ibuprofen"),
        review_prescriptions=marks_json("rating", "SAFE"),
    )
    run = ask(
        studies.trust_indices.trust,
        [charted("c1")],
        [model],
        encoder=Wordy(),
        run_dir=tmp_path,
        n_doctors=2,
    )
    found = {r["purpose"]: r for r in rows(tmp_path)}
    assert [r["read"] for r in found["doctor"]["replies"]] == ["Influenza", None]
    assert found["doctor"]["replies"][1]["why"] == list(run.opinions["missing"])[1]
    plan, marks = (found[p]["replies"][0]["read"] for p in ("plan", "review_prescriptions"))
    assert plan["prescriptions"][0]["drug"] == "ibuprofen" and marks == [{"verdict": "SAFE"}]
    assert found["plan"]["diagnosis"] == "Influenza" and found["plan"]["level"] == 100


@pytest.mark.parametrize(
    ("content", "match"),
    [(b"no gzip", "not a whole gzip file"), (gzip.compress(b'{"a": 1}\n'), "line 1 is no row")],
    ids=["no gzip", "no row"],
)
def test_a_damaged_file_is_named_with_its_line(tmp_path, content, match):
    (tmp_path / NAME).write_bytes(content)
    with pytest.raises(ValueError, match=match):
        Replies(tmp_path).of(*VIEW)
