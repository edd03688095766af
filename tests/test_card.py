"""The cards of the embedded models: numbers from the evaluation, shares from the recipe, words from
a file."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from training import card as program
from training.card import CARDS, TAUGHT, Stage, card, overall, stages
from training.replies import (
    CLINIC,
    FIRST,
    LATER,
    MORE_TALK,
    MOST_TALK,
    REVIEWS,
    SKILLS,
    TALK,
    WITH_TALK,
)
from training.train import BRANCHES, RECIPE
from trustlab.paths import DATA

LEVELS = ("1", "20", "40", "60", "80", "100")
CONFIG = {"num_hidden_layers": 3, "hidden_size": 64, "num_attention_heads": 2, "vocab_size": 12345}


def report(cases: int = 7, **more: Any) -> dict[str, Any]:
    by_level = {level: 0.1 + i / 10 for i, level in enumerate(LEVELS)}
    found = {
        "n": 42,
        "mean_by_level": by_level,
        "auroc": 0.8126,
        "auroc_within_level": 0.7,
        "ece": 0.05,
        "brier": 0.2,
    }
    steps = {name: 0.5 for name in program.STEPS} | {"summaries_that_agree": None}
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
    return {
        "revision": "abc",
        "generated": report(best_possible_accuracy=dict.fromkeys(LEVELS, 0.99)),
        **sets,
    }


def state(at: int = 4, length: int = 2, **more: Any) -> dict[str, Any]:
    recipe = RECIPE | {"pool": 100, "first": 1, "later": 3}
    pools = at + length
    counted = {
        "pools": pools,
        "steps": 55,
        "examples": 100 * pools,
        "tokens": 2_340_000,
        "seconds": 90.0,
        "loss": 0.4321,
    }
    return {**counted, "recipe": recipe, "branch": [at, length], **more}


def made(name: str = "embedded", **parts: Any) -> str:
    given = {
        "evaluation": evaluation(),
        "state": state(),
        "config": CONFIG,
        "size": 1_234_567,
        "cannot": "- It cannot fly.\n",
    }
    return card(name, **given | parts)


def rows(text: str, first: str) -> list[str]:
    """The cells of the row that begins with ``first``."""
    (line,) = [line for line in text.splitlines() if line.startswith(f"| {first} |")]
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


# What it was taught


@pytest.mark.parametrize(
    ("branch", "met"),
    [
        ((3, 2), [Stage(100, FIRST), Stage(400, SKILLS)]),
        ((4, 2), [Stage(100, FIRST), Stage(200, SKILLS), Stage(300, LATER)]),
        ((1, 2), [Stage(300, FIRST)]),
    ],
)
def test_stages_follow_the_trunk_and_then_the_branch(branch, met):
    assert stages({"pool": 100, "first": 1, "later": 3}, branch) == met


@pytest.mark.parametrize(
    ("branch", "examples"),
    [
        ((72, 14), [(4, FIRST), (68 + 14, SKILLS)]),
        ((104, 22), [(4, FIRST), (68, SKILLS), (32 + 22, LATER)]),
        (
            (150, 14),
            [
                (4, FIRST),
                (68, SKILLS),
                (40, LATER),
                (16, WITH_TALK),
                (12, MORE_TALK),
                (10 + 14, MOST_TALK),
            ],
        ),
        (
            (226, 10),
            [
                (4, FIRST),
                (68, SKILLS),
                (40, LATER),
                (16, WITH_TALK),
                (12, MORE_TALK),
                (20, MOST_TALK),
                (32, CLINIC),
                (34 + 10, REVIEWS),
            ],
        ),
    ],
)
def test_stages_of_the_recipe_by_hand(branch, examples):
    assert stages(RECIPE, branch) == [(1_200 * pools, mixture) for pools, mixture in examples]


@pytest.mark.parametrize("name", list(BRANCHES))
def test_a_model_has_met_as_many_examples_as_its_pools_hold(name):
    assert sum(stage.examples for stage in stages(RECIPE, BRANCHES[name])) == RECIPE["pool"] * sum(
        BRANCHES[name]
    )


def test_the_share_in_all_examples_is_the_weighted_mean():
    found = overall([Stage(100, FIRST), Stage(300, SKILLS)])
    assert found["lookup"] == pytest.approx((100 * 0.7 + 300 * 0.17) / 400)
    assert found["p_true"] == pytest.approx(300 * 0.09 / 400)
    assert sum(found.values()) == pytest.approx(1) and list(found) == list(TAUGHT)


def test_the_table_of_skills_has_a_column_a_stage_and_one_for_all():
    text = made()
    assert rows(text, "skill") == ["1 to 100", "101 to 300", "301 to 600", "all"]
    # 100 of 0.3, 200 of 0.34 and 300 of 0.54 in 600
    assert rows(text, r"*diagnosis*") == ["30.0", "34.0", "54.0", "43.3"]
    assert rows(text, r"*evidence*") == ["0.0", "15.0", "12.0", "11.0"]
    assert rows(made(state=state(1, 2)), "skill") == ["1 to 300"]


def test_every_skill_is_explained_and_no_other():
    assert list(TAUGHT) == [*SKILLS, *TALK]
    for skill in TAUGHT:
        assert f"- *{skill}*: " in made()


# What was measured


def test_accuracies_stand_by_level_beside_the_best_possible():
    text = made(evaluation=evaluation(ddxplus=report(cases=9)))
    assert rows(text, "generated patients, n = 7") == [
        "10.0",
        "20.0",
        "30.0",
        "40.0",
        "50.0",
        "60.0",
    ]
    assert rows(text, "the same, best possible (exact posterior)") == ["99.0"] * 6
    assert rows(text, "DDXPlus patients, n = 9") == ["10.0", "20.0", "30.0", "40.0", "50.0", "60.0"]
    assert "(54 answers;" in text and "(42 answers;" in text


def test_confidences_have_no_calibration_where_they_only_rank_and_no_number_without_values():
    text = made()
    assert rows(text, "`poc`") == ["0.813", "0.700", "0.050", "0.200", "100.0"]
    assert rows(text, "`medconf_weighted`") == ["0.813", "0.700", "–", "–", "87.5"]
    assert rows(text, "`ce`") == ["–", "–", "–", "–", "0.0"]


def test_what_was_measured_of_talk_stands_in_rows_of_its_own():
    talk = {
        "examples_of_each": 50,
        "ask": {"right": 0.9, "best": 0.5, "asked_before": 0.04},
        "enough": {"right": 0.8},
    }
    talk |= {"patient": {"right_where_known": 0.75, "right_where_unknown": None}}
    talk |= {"rephrase_reply": {"right": 0.6}, "rephrase_question": {"right": 0.3}}
    text = made(evaluation=evaluation(talk=talk))
    assert "50 generated prompts of each kind" in text
    assert rows(text, "a question that was asked before (none is best)") == ["4.0"]
    assert rows(text, 'as a patient: "I don\'t know", where none does') == ["–"]
    assert "generated prompts of each kind" not in made()


def test_what_a_panel_takes_is_told_where_it_was_measured():
    clinic = {skill: {} for skill, _ in program.PANEL}
    for k, (skill, measure) in enumerate(program.PANEL):
        clinic[skill][measure] = k / 100
    text = made(evaluation=evaluation(clinic={"examples_of_each": 50} | clinic))
    assert "To diagnose with a chart, to plan, to review: 50 generated prompts of each kind" in text
    assert [rows(text, told) for told in program.PANEL.values()] == [
        [f"{k}.0"] for k in range(len(program.PANEL))
    ]
    assert "To diagnose with a chart" not in made()


def test_a_vocabulary_that_grew_is_told():
    grown = {"examples": 134_400, "tokens_before": 11_321}
    words = " ".join(made(state=state(grown=grown)).split())
    assert (
        "after 134,400 examples the trunk was taken up under a vocabulary that had grown from"
        " 11,321 tokens" in words
    )
    assert "taken up under" not in made()


def test_token_probabilities_are_shown_only_where_the_model_gives_them():
    generated = report(sequence_probability=report()["poc"])
    assert rows(made(evaluation=evaluation(generated=generated)), "generated")[:2] == [
        "10.0",
        "20.0",
    ]
    assert "Mean sequence probability" not in made()


def test_steps_that_could_not_be_measured_are_dashes():
    text = made(evaluation=evaluation(ddxplus=report()))
    assert rows(text, "criteria labelled right") == ["50.0", "50.0"]
    assert rows(text, "... that are truly supported") == ["90.0", "90.0"]
    assert rows(text, "... that are truly contradicted") == ["–", "–"]
    assert rows(text, "summaries that agree with their list") == ["–", "–"]


def test_without_ddxplus_nothing_is_said_of_its_patients():
    text = made()
    assert "DDXPlus patients" not in text and "--ddxplus" not in text
    assert "3 generated. The numbers are of revision `abc`" in text


# The words around


@pytest.mark.parametrize("name", list(BRANCHES))
def test_a_card_says_what_it_is_how_it_was_made_and_what_it_cannot_do(name):
    text = made(name)
    words = " ".join(text.split())
    assert words.startswith(
        f"# {program.TITLES[name]} A causal language model of 1.2 million parameters (Llama"
        " architecture: 3 layers"
    )
    assert "Research only. Not for clinical use." in words and "The vocabulary (12,345)" in words
    assert (
        "600 examples, 2.3 million tokens, 55 steps" in words
        and "(400 examples), then falls to 2 % of it over the 200" in words
    )
    assert "Last training loss 0.432." in words
    cannot = words.partition("## What it cannot do ")[2]
    assert cannot.startswith("- It cannot fly. - It knows 65 conditions") and cannot.endswith(
        "doses it never weighs."
    )
    assert all(len(line) <= 130 for line in text.splitlines() if not line.startswith("|"))
    assert not re.search(r"[{}]|\n{3}|  \n", text)


def test_a_table_has_as_many_cells_in_every_row():
    for block in re.findall(r"(?:^\|.*\n)+", made(evaluation=evaluation(ddxplus=report())), re.M):
        assert len({line.count("|") for line in block.splitlines()}) == 1, block


@pytest.mark.parametrize("name", list(BRANCHES))
def test_each_model_has_its_hand_written_part(name):
    text = (CARDS / f"{name}.txt").read_text(encoding="utf-8")
    assert text.startswith("- ") and all(
        line.startswith(("- ", "  ")) and len(line) <= 130 for line in text.splitlines()
    )


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"name": "other"}, "name is 'other'; allowed are embedded, embedded-closed"),
        ({"state": state(pools=5)}, "training of embedded is not over: 5 of 6 pools"),
        (
            {"state": state(examples=599)},
            r"599 examples; its recipe and branch make \[100, 200, 300\]",
        ),
    ],
)
def test_what_does_not_fit_together_is_refused(parts, message):
    with pytest.raises(ValueError, match=message):
        made(**parts)


# From files


def test_the_command_reads_what_lies_there_and_writes_the_card(tmp_path, monkeypatch):
    for name, folder in (("DATA", "data"), ("CHECKPOINTS", "checkpoints"), ("CARDS", "cards")):
        monkeypatch.setattr(program, name, tmp_path / folder)
    folder = tmp_path / "data" / "models" / "embedded-closed"
    for each in (folder, tmp_path / "checkpoints", tmp_path / "cards"):
        each.mkdir(parents=True)
    (folder / "evaluation.json").write_text(json.dumps(evaluation()))
    (folder / "config.json").write_text(json.dumps(CONFIG))
    save_file(
        {"a": np.zeros((600, 1000), np.float16), "b": np.zeros(100_000, np.float16)},
        folder / "model.safetensors",
    )
    (tmp_path / "checkpoints" / "embedded-closed.json").write_text(json.dumps(state()))
    (tmp_path / "cards" / "embedded-closed.txt").write_text("- Fly.\n")
    program.main(["--name", "embedded-closed"])
    wanted = made("embedded-closed", size=700_000, cannot="- Fly.")
    assert (folder / "README.md").read_text(encoding="utf-8") == wanted
    with pytest.raises(FileNotFoundError):
        program.main(["--name", "embedded"])


def test_the_embedded_model_has_six_million_parameters():
    size = program.n_parameters(DATA / "models" / "embedded" / "model.safetensors")
    assert 5_800_000 < size < 6_400_000
