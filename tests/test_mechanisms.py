"""The walkthrough's tables on a run made by hand, and the pack that its answers come from."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import trustlab as tl
from studies import walkthrough
from trustlab.knowledge import load_knowledge
from trustlab.records import Generation, Reply, TokenTrace
from trustlab.run_notebooks import check_parameters, notebook_path

NAN = float("nan")
# case, level, answer, correct, its tokens' probabilities, PoC, MedConf
ROWS = [
    ("a", 1, "Influenza", 0, (0.2, 0.9), 0.9, 0.1),
    ("a", 100, "Pneumonia", 1, (0.6, 1.0, 0.8), 1.0, 0.9),
    ("b", 1, "Influenza", 1, (0.5, 0.7), 0.8, NAN),
    ("b", 100, "Flu of Mars", 0, None, 0.5, 0.3),
    ("c", 1, None, 0, None, NAN, NAN),
    ("c", 100, "influenza", 0, (0.4,), 0.7, 0.4),
]


def made_run(rows=ROWS) -> Any:
    answers, confidence, generations = [], [], []
    for case, level, answer, correct, probs, poc, medconf in rows:
        key = {"case_id": case, "dataset": "d", "level": level, "model": "m"}
        n = 1 if level == 1 else 12
        answers.append({**key, "answer": answer, "truth": "x", "correct": correct})
        answers[-1] |= {"n_statements": n, "n_words": 9}
        for method, value in (("poc", poc), ("medconf", medconf), ("word_count", 9.0)):
            missing = "" if value == value else "unreadable answer"
            told = {"method": method, "confidence": value, "bound": "", "missing": missing}
            confidence.append(key | told)
        trace = None if probs is None else TokenTrace(("x",) * len(probs), logprobs=np.log(probs))
        said = Reply(answer, trace)
        generations.append(Generation(case, level, "m", 0, n, 12, 9, answer=said))
    shuffled = pd.DataFrame(confidence).iloc[::-1]
    made = tuple(generations)
    return SimpleNamespace(answers=pd.DataFrame(answers), confidence=shuffled, generations=made)


def test_agreement_table_gives_the_answered_conditions_share_of_the_priors():
    knowledge = load_knowledge()
    found = walkthrough.agreement_table(made_run(), knowledge)
    columns = ["case_id", "level", "model", "answer", "prior", "poc", "correct", "n"]
    assert list(found.columns) == columns
    whole = sum(c.prior for c in knowledge.conditions.values())
    named = [knowledge.condition_named(name) for name in ("Influenza", "Pneumonia")]
    flu, pneumonia = (condition.prior / whole for condition in named if condition)
    np.testing.assert_allclose(found["prior"], [flu, pneumonia, flu, NAN, NAN, flu])
    np.testing.assert_allclose(found["poc"], [0.9, 1.0, 0.8, 0.5, NAN, 0.7])
    assert found["correct"].tolist() == [0, 1, 1, 0, 0, 0]
    run = made_run()
    run.confidence = run.confidence[run.confidence["method"] != "poc"]
    with pytest.raises(ValueError, match="no method 'poc'"):
        walkthrough.agreement_table(run, knowledge)


# The pack


def answers_with(tmp_path, **choices: Any) -> walkthrough.Answers:
    asked = check_parameters(notebook_path("00_walkthrough"), choices)
    return walkthrough.Answers(tl.opened(asked).with_(run_dir=tmp_path, quiet=True))


def test_the_pack_answers_its_own_choices_alone(tmp_path):
    for given in ({}, {"draws": 100}, {"n_jobs": 2}, {"cache": str(tmp_path / "x")}):
        assert answers_with(tmp_path, **given).packed, given
    others = ({"live": True}, {"model": "embedded-closed"}, {"n": 8}, {"seed": 1})
    for given in others:
        assert not answers_with(tmp_path, **given).packed, given


def test_other_cases_methods_levels_or_words_are_asked_of_the_model(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(walkthrough, "benchmark", lambda *given: asked.append(given))
    monkeypatch.setattr(walkthrough, "assess", lambda *given, **_: asked.append(given) or [])
    answers = answers_with(tmp_path)
    answers.models = ["a model"]
    cases = tl.load_sets("starter", n=240, seed=0)
    known = answers.of("sets/starter", cases, walkthrough.JUDGED, [100])
    assert len(known.answers) == 240 and (tmp_path / "sets" / "starter" / "run.json").is_file()
    held = json.loads((walkthrough.PACK / "held.json").read_text(encoding="utf-8"))
    first, second = answers.assessed(held["told"], held["diagnosis"])
    assert first.diagnosis == second.diagnosis == held["diagnosis"] and first != second
    assert asked == []
    answers.of("sets/starter", cases[:10], walkthrough.JUDGED, [100])
    monkeypatch.setattr(tl.Workbench, "cached", lambda _, model: model)
    answers.assessed(held["told"], "Influenza")
    answers.assessed([*held["told"], "And a rash."], held["diagnosis"])
    assert len(asked) == 3
