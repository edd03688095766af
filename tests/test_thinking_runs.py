"""Whole runs on servers that think: with a budget that suffices the answers are right, with one
that does not there are none, and it is said how many."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from each import each
from fake_medconf import CRITERIA, confidence, profile_json
from openai_server import Server, opening

import trustlab as tl
from trustlab.folder.saved import manifest
from trustlab.models.thought import MARKERS
from trustlab.prompts import names, template
from trustlab.settings import Setup

CASES = tl.load_cases("starter", n=3)
THOUGHT = "First I thought of [Migraine], since " + "this goes on for long " * 8 + "but [99] no. "
N_THOUGHT = len(re.findall(r"\S+\s*", THOUGHT))
OWN = ("((", "))")
FIELDS = ("reasoning", "reasoning_content")
FORMS = [*FIELDS, *MARKERS, OWN, "opened by the template"]
METHODS = ("asp", "poc", "ce", "cot_ce", "topk_ce", "p_true", "medconf", "agreement", "rdc")
ENOUGH = {"thinking": N_THOUGHT + 10}
TOO_LITTLE = {
    "answer": 20, "score": 20, "reasoning": 20, "guesses": 20, "keyword": 20, "profile": 20,
    "evidence": 20, "doctor": 20,
}  # fmt: skip


def answer(messages: list[dict[str, str]]) -> str:
    """What is said of the cases once it was thought."""
    asked = messages[-1]["content"]
    ends = {name: template(name)[1].splitlines()[-1] for name in names()}
    steps = (name for name, end in ends.items() if asked.endswith(end))
    step = next(steps, "evidence" if "<patient>" in asked else "profile")
    firsts = {f"<patient>\n{c.statements[0].text}": c.diagnosis for c in CASES}
    truth = next((d for first, d in firsts.items() if first in asked or d in asked), "?")
    rows = [
        {"id": c.id, "description": "x", "support_level": "supported", "evidence": None}
        for c in CRITERIA
    ]
    return {
        "ce": "[80]",
        "cot_ce": "It fits. [80]",
        "topk_ce": " ".join(f"G{i}: [80]" for i in range(1, 6)),
        "p_true": "True",
        "doctor": f"<thinking_process>{truth}</thinking_process> [{truth}]",
        "profile": profile_json(),
        "evidence": json.dumps({"criteria": rows, **confidence("<<80>>")}),
    }.get(step, f"[{truth}]")


class Thinker(Server):
    """Thinks before each answer in one of :data:`FORMS`; every word is a token."""

    form: Any = None

    def chat(self, body: dict, action: str | None) -> dict:
        opens, closes = {
            "opened by the template": ("", MARKERS[0][1]), **dict.fromkeys(FIELDS, ("", "")),
        }.get(self.form) or self.form  # fmt: skip
        said = answer(body["messages"]) if len(body["messages"]) > 1 else "ok"
        thought = [opens, *re.findall(r"\S+\s*", THOUGHT), closes]
        tokens = [t for t in [*thought, *re.findall(r"\S+\s*", said)] if t]
        n_thought = sum(map(bool, thought))
        whole, room = len(tokens), body["max_tokens"]
        tokens = tokens[:room]
        content: str | None = "".join(tokens)
        message: dict[str, Any] = {"role": "assistant"}
        if self.form in FIELDS:
            message[self.form] = "".join(tokens[:n_thought])
            content = "".join(tokens[n_thought:]) or None
        listed = {"content": [self.plain(t.encode()) for t in tokens]}
        choice = {
            "index": 0, "message": message | {"content": content},
            "finish_reason": "stop" if room >= whole else "length",
            "logprobs": listed if body.get("logprobs") and self.logprobs == "given" else None,
        }  # fmt: skip
        usage = {"prompt_tokens": 9, "completion_tokens": len(tokens)}
        n = body.get("n", 1)
        choices = [choice | {"index": i} for i in range(n)]
        return {"object": "chat.completion", "choices": choices, "usage": usage}


@pytest.fixture
def thinker(monkeypatch) -> Iterator[Thinker]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    running = Thinker()
    with running:
        yield running


def run_of(server: Thinker, form: Any, budgets: dict[str, int]) -> Any:
    server.form = form
    own = {"thinking": list(form)} if form == OWN else {}
    with opening(server) as open_it:
        model = open_it(thinking_tokens=budgets.get("thinking", 0), **own)
        setup = Setup(samples=2, cache=":memory:", quiet=True, budgets=budgets)  # pyright: ignore
        return tl.benchmark(CASES, [model], METHODS, [100], setup)


@each("form", FORMS)
@pytest.mark.parametrize("logprobs", ["given", "null"])
def test_a_budget_that_suffices_gives_the_right_answers(form, logprobs, thinker) -> None:
    thinker.logprobs = logprobs
    run = run_of(thinker, form, ENOUGH)
    assert run.answers["correct"].tolist() == [1, 1, 1]
    found: Any = run.confidence.groupby("method")["confidence"].agg(["mean", "count"])
    assert (found["count"].drop("asp") == 3).all()
    assert found["mean"].drop("asp").round(3).to_dict() == {
        "agreement": 1, "ce": 0.8, "cot_ce": 0.8, "medconf": 0.8, "p_true": 1, "poc": 1, "rdc": 1,
        "topk_ce": 0.8,
    }  # fmt: skip
    assert found.loc["asp", "count"] == (3 if logprobs == "given" else 0)


@each("form", FORMS)
@pytest.mark.parametrize("logprobs", ["given", "null"])
def test_a_budget_that_does_not_suffice_leaves_everything_missing(form, logprobs, thinker) -> None:
    thinker.logprobs = logprobs
    run = run_of(thinker, form, TOO_LITTLE)
    assert run.answers["correct"].isna().all() and run.answers["answer"].isna().all()
    # Nothing tells that a thought is one which the template has opened and which has no end.
    why = "ran out of tokens" + " while thinking" * (form != "opened by the template")
    assert {g.answer.missing for g in run.generations if g.answer} == {why}
    few = "only 0 of 3 replies to 'diagnosis' could be read"
    assert (
        set(run.answers["missing"]) == {f"{few} ({why})"}
        and run.confidence["confidence"].isna().all()
    )
    told = {row["method"]: (row["reason"], row["n"]) for row in manifest(run)["missing"]}
    assert told == dict.fromkeys(METHODS, (few, 3))
