"""The cards of the embedded models: numbers from the evaluation, shares from the sittings, words
from files."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from each import each
from safetensors.numpy import save_file

from training import card as program
from training.card import STEPS, card
from trustlab.models import EMBEDDED

LEVELS = ("1", "20", "40", "60", "80", "100")
CONFIG = {"num_hidden_layers": 3, "hidden_size": 64, "num_attention_heads": 2, "vocab_size": 12345}


def report(cases: int = 7, **more: Any) -> dict[str, Any]:
    by_level = {level: 0.1 + i / 10 for i, level in enumerate(LEVELS)}
    found: dict[str, Any] = {"n": 42, "mean_by_level": by_level, "auroc": 0.8126}
    found |= {"auroc_within_level": 0.7, "ece": 0.05, "brier": 0.2}
    steps = {name: 0.5 for name in STEPS} | {"summaries_that_agree": None}
    labels = {"supported": 0.9, "missing": 0.8, "contradicted": None}
    return {
        "cases": cases,
        "unreadable_answers": 3,
        "accuracy": by_level,
        "replies_that_parse": {"poc": 1.0, "medconf_weighted": 0.875, "ce": 0.0},
        "poc": found,
        "medconf_weighted": found,
        "medconf_steps": steps | {"labelled_right_by_true_label": labels},
    } | more


def evaluation(**sets: Any) -> dict[str, Any]:
    best = dict.fromkeys(LEVELS, 0.99)
    return {"revision": "abc", "generated": report(best_possible_accuracy=best), **sets}


def sitting(name: str = "embedded", pools: int = 10, **more: Any) -> dict[str, Any]:
    told = {"name": name, "minutes": 40, "seed": 5, "pools": pools, "steps": 1200}
    told |= {"tokens": 2_340_000, "done": 0.999, "loss": 0.4321}
    return told | {"mixture": {"diagnosis": 0.4, "evidence": 0.6}} | more


def made(name: str = "embedded", **parts: Any) -> str:
    given: dict[str, Any] = {"evaluation": evaluation(), "sittings": [sitting()], "config": CONFIG}
    return card(name, **given | {"size": 1_234_567, "cannot": "- It cannot fly.\n"} | parts)


def rows(text: str, first: str) -> list[str]:
    """The cells of the row that begins with ``first``."""
    (line,) = [line for line in text.splitlines() if line.startswith(f"| {first} |")]
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


# What it was taught, and how


def test_shares_stand_by_sitting_and_the_share_in_all_is_the_weighted_mean():
    later = {"diagnosis": 0.1, "hard": 0.9}
    text = made(sittings=[sitting(), sitting(pools=20), sitting(pools=10, mixture=later)])
    assert rows(text, "skill") == ["1 to 2", "3", "all"]
    # 30 pools of 0.4 and 10 of 0.1 in 40
    assert rows(text, r"*diagnosis*") == ["40.0", "10.0", "32.5"]
    assert rows(text, r"*evidence*") == ["60.0", "0.0", "45.0"]
    assert rows(text, r"*hard*") == ["0.0", "90.0", "22.5"]
    assert rows(made(), "skill") == ["1"]


# What was measured


def test_accuracies_stand_by_level_beside_the_best_possible():
    text = made(evaluation=evaluation(ddxplus=report(cases=9)))
    by_level = ["10.0", "20.0", "30.0", "40.0", "50.0", "60.0"]
    assert rows(text, "generated patients, n = 7") == by_level
    assert rows(text, "the same, best possible (exact posterior)") == ["99.0"] * 6
    assert rows(text, "DDXPlus patients, n = 9") == by_level
    assert "(54 answers;" in text and "(42 answers;" in text


def test_confidences_have_no_calibration_where_they_only_rank_and_no_number_without_values():
    text = made()
    assert rows(text, "`poc`") == ["0.813", "0.700", "0.050", "0.200", "100.0"]
    assert rows(text, "`medconf_weighted`") == ["0.813", "0.700", "–", "–", "87.5"]
    assert rows(text, "`ce`") == ["–", "–", "–", "–", "0.0"]


def test_labels_stand_by_their_true_label():
    labels = {"supported": {"n": 151, "labelled": 0.94, "quoted": 0.9}}
    labels |= {"contradicted": {"n": 53, "labelled": 0.62, "quoted": 0.5}}
    text = made(evaluation=evaluation(labels=labels))
    assert rows(text, "supported") == ["151", "94.0", "90.0"]
    assert rows(text, "contradicted") == ["53", "62.0", "50.0"]
    assert "by true label" not in made()


# The words around


@each(
    ("parts", "message"),
    [
        ({"name": "other"}, "name is 'other'; allowed are embedded, embedded-clinic"),
        ({"sittings": []}, r"embedded was taught \[\]"),
        ({"sittings": [sitting(mixture={"ce": 0.5, "to fly": 0.5})]}, r"taught \['ce', 'to fly'\]"),
    ],
)
def test_what_does_not_fit_together_is_refused(parts: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        made(**parts)


# From files


def test_the_command_reads_what_lies_there_and_writes_the_card(tmp_path, monkeypatch):
    monkeypatch.setattr(program, "EMBEDDED", {name: tmp_path / name for name in EMBEDDED})
    monkeypatch.setattr(program, "CARDS", tmp_path)
    folder = tmp_path / "embedded-closed"
    folder.mkdir()
    files = {"evaluation": evaluation(), "config": CONFIG, "sittings": [sitting()]}
    for file, held in files.items():
        (folder / f"{file}.json").write_text(json.dumps(held))
    weights = {"a": np.zeros((600, 1000), np.float16), "b": np.zeros(100_000, np.float16)}
    save_file(weights, folder / "model.safetensors")
    (tmp_path / "embedded-closed.txt").write_text("- Fly.\n")
    program.main(["--name", "embedded-closed"])
    wanted = made("embedded-closed", size=700_000, cannot="- Fly.")
    assert (folder / "README.md").read_text(encoding="utf-8") == wanted
    with pytest.raises(FileNotFoundError):
        program.main(["--name", "embedded"])


@each("name", EMBEDDED)
def test_the_card_beside_a_model_is_what_the_command_writes(name: str):
    folder = EMBEDDED[name]
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert card == program.made_of(name, folder), f"python -m training.card --name {name}"
    assert 4_000_000 < program.n_parameters(folder / "model.safetensors") < 6_400_000
