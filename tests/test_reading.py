"""``reading`` and ``reasoning_from`` through whole runs: what is read, counted, said, and asked."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from asking import ask
from fake_model import FakeModel, made_cases
from fake_panel import FakePanel, Wordy, case, marks_json, plan_json
from saying import saying, says

import studies.trust_indices
import trustlab as tl
from trustlab.models.base import Request
from trustlab.records import Reply
from trustlab.runs.formatted import remark_lines

METHODS = ["ce", "cot_ce", "topk_ce", "p_true", "poc", "medconf", "agreement"]


class Chatty(FakeModel):
    """The model without weights, in the manner of chat models."""

    def reply(self, request: Request, i: int) -> Reply:
        found = super().reply(request, i)
        text = str(found.text)
        if request.purpose in ("diagnosis", "samples", "keyword", "doctor"):
            text = re.sub(r"\[(.*)\]\Z", r"**\1**", text)
        elif request.purpose in ("profile", "evidence"):
            text = f"Here it is:\n\n```json\n{text}\n```"
        elif request.purpose == "p_true":
            text = f"Answer: {text}"
        else:
            text = re.sub(r"(?:\A|fits\. )\[", r"It fits.\n\nConfidence: [", text)
            text = re.sub(r"\[(\d+)\]", r"\1", text)
        return replace(found, text=text)


def ran(model: FakeModel, **choices: Any) -> tl.Run:
    return ask(tl.benchmark, made_cases(2), [model], METHODS, [100], samples=3, **choices)


def test_a_model_that_chats_is_read_as_one_that_does_not_and_it_is_counted() -> None:
    plain, chat = ran(FakeModel()), ran(Chatty())
    assert list(chat.answers["answer"]) == list(plain.answers["answer"])
    np.testing.assert_array_equal(chat.confidence["confidence"], plain.confidence["confidence"])
    counts = chat.parameters["replies_read"]["fake"]
    for purpose, n in plain.parameters["replies_read"]["fake"].items():
        assert n["asked"] == n["read"] and n["chat"] == 0
        assert counts[purpose] == n | {"chat": n["read"]}
    probes = ["ce", "cot_ce", "topk_ce", "p_true"]
    assert set(counts) == {
        "diagnosis", "samples", *probes, "keyword", "profile", "evidence", "doctor"
    }  # fmt: skip
    assert counts["samples"]["read"] == 6 and counts["doctor"]["read"] == 6
    assert remark_lines(chat.parameters) == []


def test_strict_reading_asks_nothing_else_and_refuses_it_all(tmp_path: Path) -> None:
    store = {"cache": tmp_path / "replies.sqlite", "run_dir": tmp_path / "strict"}
    ran(Chatty(), cache=store["cache"])
    model = Chatty()
    with pytest.warns(UserWarning, match=saying("100 % of 2", "'diagnosis'")):
        strict = ran(model, reading="strict", **store)
    assert not model.asked and strict.answers["answer"].isna().to_numpy().all()
    assert strict.confidence["confidence"].isna().to_numpy().all()
    found = json.loads((tmp_path / "strict" / "run.json").read_text(encoding="utf-8"))
    assert found["benchmark"]["reading"] == "strict" and found["warnings"]
    counts = found["benchmark"]["replies_read"]["fake"]
    assert [n["read"] for n in counts.values()] == [0] * len(counts)


SCRIPT: dict[str, Any] = {
    "doctor": [Reply("**Fever disease**", reasoning="Fever."),
               Reply("Diagnosis: Fever disease", reasoning="Cough."),
               Reply("<thinking_process>Fever, cough.</thinking_process>[Fever disease]",
                     reasoning="Cough.")],
    "plan": f"The plan:\n{plan_json('Paracetamol', tests=['ECG'])}",
    "review_prescriptions": marks_json("rating", "Safe"),
    "review_tests": marks_json("flag", "FINE"),
}  # fmt: skip


def trusted(tmp_path: Path, **choices: Any) -> Any:
    study: Any = studies.trust_indices.trust
    return ask(study, [case("a", "Fever disease")], [FakePanel(**SCRIPT)], encoder=Wordy(),
               cache=tmp_path / "replies.sqlite", **choices)  # fmt: skip


def test_a_panel_is_read_and_counted_and_thought_stands_in_where_it_may(tmp_path: Path) -> None:
    run = trusted(tmp_path, run_dir=tmp_path / "run")
    assert [o.thinking for o in run.checked[-1].panel.opinions] == [None, None, "Fever, cough."]
    told = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))
    assert (told["trust"]["reading"], told["trust"]["reasoning_from"]) == ("chat", "section")
    counts = told["trust"]["replies_read"]["fake"]
    read = {purpose: (n["read"], n["chat"]) for purpose, n in counts.items()}
    reviews = {"review_prescriptions": (2, 2), "review_tests": (2, 0)}
    assert read == {"doctor": (3, 2), "plan": (2, 2)} | reviews and told["warnings"] == []
    safe = run.reviews[run.reviews["safety"]]
    assert list(safe["n_safe"]) == [1, 1] and list(safe["n_unflagged"]) == [1, 1]
    thought = trusted(tmp_path, reasoning_from="thought")
    opinions = thought.checked[-1].panel.opinions
    assert [o.thinking for o in opinions] == ["Fever.", "Cough.", "Fever, cough."]
    assert thought.parameters["reasoning_from"] == "thought"
    strict = trusted(tmp_path, reading="strict")
    assert [o.diagnosis for o in strict.checked[-1].panel.opinions] == [None, None, "Fever disease"]
    assert strict.parameters["replies_read"]["fake"]["doctor"]["read"] == 1
    assert {says(why, "1 of 3", "'doctor'") for why in strict.reviews["unread"]} == {True}
    assert strict.reviews["diagnosis"].isna().all() and strict.reviews["correct"].isna().all()
