"""The walkthrough's tables on a run made by hand, and the pack that its answers come from."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

import trustlab as tl
from studies import walkthrough
from trustlab.cli.run_notebooks import check_parameters, notebook_path
from trustlab.knowledge.findings import load_knowledge
from trustlab.records import Generation

NAN = float("nan")
# level, answer, correct, PoC, MedConf
ROWS = [
    (1, "Influenza", 0, 0.9, 0.1),
    (100, "Pneumonia", 1, 1.0, 0.9),
    (1, "Influenza", 1, 0.8, NAN),
    (100, "Flu of Mars", 0, 0.5, 0.3),
    (1, None, 0, NAN, NAN),
    (100, "influenza", 0, 0.7, 0.4),
    (1, None, NAN, 0.95, NAN),  # not had: neither right nor wrong
]


def test_shares_of_priors_and_answers_over_the_threshold_by_hand():
    rows, confidence = [], []
    for i, (level, answer, correct, poc, medconf) in enumerate(ROWS):
        key = {"case_id": "aabbccd"[i], "dataset": "d", "level": level, "model": "m"}
        n = 1 if level == 1 else 12
        rows.append(key | {"answer": answer, "correct": correct, "n_statements": n})
        for method, value in (("poc", poc), ("medconf", medconf)):
            told = {"confidence": value, "bound": "", "missing": "" if value == value else "none"}
            confidence.append(key | {"method": method} | told)
    made = [Generation(a["case_id"], a["level"], "m", 0, a["n_statements"], 12, 9) for a in rows]
    run: Any = SimpleNamespace(
        answers=pd.DataFrame(rows).assign(truth="x", n_words=9),
        confidence=pd.DataFrame(confidence).iloc[::-1],
        generations=tuple(made),
    )
    knowledge = load_knowledge()
    whole = sum(c.prior for c in knowledge.conditions.values())
    named = [knowledge.condition_named(name) for name in ("Influenza", "Pneumonia")]
    flu, pneumonia = (condition.prior / whole for condition in named if condition)
    found = walkthrough.agreement_table(run, knowledge)
    np.testing.assert_allclose(found["prior"][:6], [flu, pneumonia, flu, NAN, NAN, flu])
    np.testing.assert_allclose(found["poc"][:6], [0.9, 1.0, 0.8, 0.5, NAN, 0.7])
    kept = walkthrough.consistent_table(run, 0.8)
    of = {metric: part.set_index("level") for metric, part in kept.groupby("metric")}
    right = of["accuracy"]
    assert right["n"].to_dict() == {1: 2, 100: 1} and right["n_answers"].to_dict() == {1: 3, 100: 3}
    assert right["value"].to_dict() == {1: 0.5, 100: 1.0}
    values = [of[metric].loc[1, "value"] for metric in ("poc", "medconf", "shown")]
    np.testing.assert_allclose(values, [0.85, 0.1, 1 / 12])
    assert of["medconf"]["n_missing"].to_dict() == {1: 1, 100: 0}


def answers_with(tmp_path, **choices: Any) -> walkthrough.Answers:
    asked = check_parameters(notebook_path("00_walkthrough"), choices)
    return walkthrough.Answers(tl.opened(asked).with_(run_dir=tmp_path, quiet=True))


def test_the_pack_answers_its_own_choices_alone(tmp_path):
    for given in ({}, {"n_jobs": 2}, {"cache": str(tmp_path / "x")}):
        assert answers_with(tmp_path, **given).packed, given
    others = ({"live": True}, {"model": "embedded-closed"}, {"n": 8}, {"n": None}, {"seed": 1},
              {"samples": 5}, {"temperature": 1.0}, {"levels": [1, 100]}, {"grader": "exact"},
              {"parameters": {"renyi_alpha": 2.0}}, {"reading": "strict"})  # fmt: skip
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
    answers.of("sets/starter", cases, walkthrough.JUDGED, [20])
    answers.of("sets/starter", cases, ["poc"], [100])
    monkeypatch.setattr(tl.Workbench, "cached", lambda _, model: model)
    answers.assessed(held["told"], "Influenza")
    answers.assessed([*held["told"], "And a rash."], held["diagnosis"])
    assert len(asked) == 5
