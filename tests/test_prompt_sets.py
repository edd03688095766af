"""The sets of prompts: which a model is asked with, worked examples, schemas, and that replies to
the examples are read."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
from fake_model import OPTIONS, FakeModel

from trustlab.models import EMBEDDED as MODELS
from trustlab.models import open_model
from trustlab.models.base import taught_in
from trustlab.parsing.agents import (
    read_enough,
    read_flags,
    read_opinion,
    read_plan,
    read_question,
    read_ratings,
    read_wording,
)
from trustlab.parsing.medconf import read_evidence, read_profile, read_score
from trustlab.parsing.reply import diagnosis
from trustlab.parsing.schemas import HELD, schema_of
from trustlab.parsing.scores import guesses, score_0_100, true_or_false
from trustlab.prompts import (
    CHAT,
    EMBEDDED,
    EXAMPLES,
    FOLDER,
    named,
    names,
    prompts_of,
    read_examples,
    worked,
)
from trustlab.records import Criterion, Reply
from trustlab.settings import Setup
from trustlab.workbench import opened

WHOLE = ("retrieval", "profile", "structure", "importance")
FOUR = read_examples(FOLDER / "chat" / EXAMPLES)


def test_every_model_is_asked_in_the_set_it_was_taught_or_in_chat(tmp_path):
    assert prompts_of(object()) is CHAT and prompts_of(FakeModel()) is EMBEDDED
    bench = opened(Setup(demonstrations=4, seed=7))
    for name in MODELS:
        assert taught_in(MODELS[name]) == {"set": "embedded", "free": True}
        assert prompts_of(open_model(name)) is EMBEDDED
        assert bench.prompts_for(name).demonstrations == 0
    assert bench.prompts_for("openai:x") == CHAT.having(4, 7)
    assert opened(Setup(prompts="embedded")).prompts_for("openai:x") == EMBEDDED
    (tmp_path / "prompts.yml").write_text("set: embeded", encoding="utf-8")
    with pytest.raises(ValueError, match="'embeded'; allowed are .*'chat'"):
        taught_in(tmp_path)


def test_a_folder_replaces_the_files_that_it_has(tmp_path):
    (tmp_path / "ce.txt").write_text("[system]\nS\n[user]\nHow sure? {answer}\n", encoding="utf-8")
    own = named(tmp_path).having(0, 0)
    assert own.render("ce", answer="Flu") == (("system", "S"), ("user", "How sure? Flu"))
    assert own.render("p_true", answer="Flu") == CHAT.having(0, 0).render("p_true", answer="Flu")
    (tmp_path / "sure.txt").write_text("x", encoding="utf-8")
    with pytest.raises(ValueError, match="sure.txt is no prompt .*known are ask, ce"):
        named(tmp_path)
    with pytest.raises(ValueError, match="'nowhere'; it must be embedded or chat, or a folder"):
        opened(Setup(prompts="nowhere"))


def test_examples_are_turns_right_and_wrong_in_an_order_that_the_seed_draws():
    both = {one["answer"]: one["right"] for one in FOUR}
    orders = set()
    for seed in range(8):
        told = CHAT.having(4, seed).render("ce", patient="I cough.", answer="Flu")
        assert [r for r, _ in told] == ["system", *["user", "assistant"] * 4, "user"]
        assert told == CHAT.having(4, seed).render("ce", patient="I cough.", answer="Flu")
        answers = [a for _, text in told[1:-1:2] for a in both if f"answered: {a}" in text]
        assert len(answers) == 4 and all(both[a] != both[b] for a, b in pairwise(answers))
        orders.add(tuple(answers))
    assert len(orders) > 3
    assert len(CHAT.having(2, 0).render("judge")) == 6
    assert sorted(one["score"] for one in FOUR)[::3] == [7, 92]


def said(name: str, example: dict, options: tuple[str, ...]) -> str:
    return worked(name, example, options)[1]


@pytest.mark.parametrize("example", FOUR, ids=[e["answer"] for e in FOUR])
def test_every_reply_of_an_example_is_read_strictly_and_fits_its_schema(example):
    e = example
    rows = [Criterion(i, c["description"], c["importance"]) for i, c in enumerate(e["criteria"], 1)]
    found = {name: said(name, e, WHOLE) for name in names()}
    for name in ("diagnosis", "keyword"):
        span = diagnosis(found[name], "strict")
        assert span is not None and span.text == e[name]
    assert score_0_100(found["ce"], e["patient"], "strict") == e["score"]
    assert score_0_100(found["cot_ce"], e["patient"], "strict") == e["score"]
    assert guesses(found["topk_ce"], patient=e["patient"], reading="strict") == tuple(e["guesses"])
    assert true_or_false(found["p_true"], "strict") is e["right"]
    assert true_or_false(found["judge"], "strict") is e["right"]
    assert read_profile(found["profile"], reading="strict") == tuple(rows)
    evidence, _ = read_evidence(found["evidence"], tuple(rows), e["patient"], "strict")
    assert [x.support_level for x in evidence] == [c["support_level"] for c in e["criteria"]]
    assert all(x.quote_occurs is not False for x in evidence)
    assert read_score(found["evidence"], e["patient"], "strict")[0] == e["score"]
    assert read_opinion(Reply(found["doctor"]), "strict")[1] == e["diagnosis"]
    plan = read_plan(Reply(found["plan"]), "strict")
    shown = "\n".join([e["chart"], e["patient"], *map(str, plan.prescriptions), *plan.tests])
    marks = read_ratings(Reply(found["review_prescriptions"]), len(plan.prescriptions), shown)
    marks += read_flags(Reply(found["review_tests"]), len(plan.tests), shown)
    assert all(mark.verdict for mark in marks)
    assert read_question(Reply(found["ask"])) == e["ask"]
    assert read_enough(Reply(found["enough"])) is (e["enough"] == "enough")
    for name in (n for n in found if n.startswith("rephrase")):
        assert read_wording(Reply(found[name]))
    for name in HELD:
        ids = {"evidence": len(rows), "review_tests": len(e["flags"])}.get(name, len(e["ratings"]))
        fits(found[name], schema_of(name, WHOLE, range(1, ids + 1)))


def fits(text: str, schema: str | None) -> None:
    """Let llguidance say whether the text is of the form; a bare list stands for its object."""
    llguidance = pytest.importorskip("llguidance")
    told = json.loads(schema or "")
    if told["type"] == "object" and text.startswith("["):
        text = json.dumps({next(iter(told["properties"])): json.loads(text)})
    make = llguidance.LLMatcher
    if told["type"] == "string":
        grammar = make.grammar_from_regex(told["pattern"])
    else:
        grammar = make.grammar_from_json_schema(schema, overrides={"whitespace_flexible": True})
    tokens = byte_tokens()
    matcher = make(tokens, grammar)
    for byte in tokens.tokenize_str(text):
        assert matcher.consume_token(byte), (text, told)
    assert matcher.is_accepting()


def byte_tokens():
    llguidance = pytest.importorskip("llguidance")
    return llguidance.LLTokenizer("byte")


def test_every_prompt_of_chat_says_the_task_first_the_form_last_and_never_its_name():
    for name in names():
        for options in OPTIONS if name in ("profile", "evidence") else ((),):
            (_, user) = CHAT.having(0, 0).render(name, options=options, answer="Flu")[1]
            first, *_, last = user.split("\n")
            assert not first.startswith("<") and first.endswith("."), (name, first)
            assert re.search(r"[Rr]eply with|end with only|in square brackets", last), (name, last)
            assert "its name" not in user.replace("each of its names", "")


def test_schemas_have_bounds_and_names_have_none():
    for name in ("diagnosis", "keyword", "ask", "patient"):
        assert schema_of(name) is None
    doctor = json.loads(schema_of("doctor") or "")["pattern"]
    said = "<thinking_process>It hurts, and it is red.</thinking_process>\n[Gout]"
    assert re.fullmatch(doctor, said) and re.fullmatch(doctor, said + " and more.")
    assert not re.fullmatch(doctor, said.replace("It hurts", "It hurts" * 99))
    evidence = json.loads(schema_of("evidence", WHOLE, (1, 4)) or "")["properties"]
    assert list(evidence["criteria"]["properties"]) == ["1", "4"] and "summary" not in evidence

    def unbounded(part) -> bool:
        if not isinstance(part, dict):
            return False
        bare = part.get("type") == "string" and not {"maxLength", "enum", "pattern"} & set(part)
        endless = part.get("type") == "array" and "maxItems" not in part
        inner = [*part.get("properties", {}).values(), part.get("items"), *part.get("anyOf", ())]
        return bare or endless or any(map(unbounded, inner))

    for name in HELD:
        assert not unbounded(json.loads(schema_of(name, WHOLE, (1, 2)) or "")), name
    assert Path(FOLDER / "embedded").is_dir()
