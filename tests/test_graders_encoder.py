"""The grader that compares names by a sentence encoder: what it forgives, and what no cosine makes
right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from made_graders import ALIKE, NO_TABLE, SYNONYM, case

from trustlab.graders import THRESHOLD, EncoderGrader, open_grader
from trustlab.graders.same_diagnosis import bare_name, comparable, same_name
from trustlab.knowledge import load_knowledge
from trustlab.meaning import encoder as module
from trustlab.meaning.encoder import Encoder


def test_the_encoder_forgives_wordings_and_the_words_alone_do_not() -> None:
    grader = EncoderGrader(knowledge=NO_TABLE)
    truth = case("Diverticulitis")
    assert grader.correct("Diverticulitus", truth) == 1 > SYNONYM.correct("Diverticulitus", truth)
    for one, other in [
        ("Acute inflammation of the gallbladder", "Acute gallbladder inflammation"),
        ("Bronchiectatic lung disease", "Bronchiectasis"),
        ("Diabetes mellitus type II", "Type 2 diabetes mellitus"),
        ("Crohn's disease", "Crohn disease"),
        ("Acute ottitis media", "Acute otitis media"),
        ("Hypokalaemia", "Hypokalemia"),
    ]:
        assert grader.correct(one, case(other)) == 1, one


@pytest.mark.parametrize(
    ("answer", "truth"),
    [
        ("not pneumonia", "Pneumonia"),
        ("Kidney stone", "Influenza"),
        ("Viral pneumonia", "Bacterial pneumonia"),
    ],
)
def test_the_encoder_keeps_different_diseases_apart(answer: str, truth: str) -> None:
    assert EncoderGrader(knowledge=NO_TABLE).correct(answer, case(truth)) == 0


def test_what_the_table_knows_as_another_condition_is_not_left_to_the_cosine() -> None:
    assert (
        ALIKE.correct("Croup", case("Influenza")) == 1
    )  # without a table, an encoder that sees no difference
    assert replace(ALIKE, knowledge=None).correct("Croup", case("Influenza")) == 0


def test_a_lower_threshold_lets_more_through() -> None:
    pair = ("Laryngotracheitis", case("Laryngitis"))
    strict, lax = (
        EncoderGrader(knowledge=NO_TABLE, threshold=0.8),
        EncoderGrader(knowledge=NO_TABLE, threshold=0.7),
    )
    assert (strict.correct(*pair), lax.correct(*pair)) == (0, 1)


@pytest.mark.parametrize("threshold", [0, -0.5, 1.01, float("nan")])
def test_a_threshold_is_a_cosine(threshold: float) -> None:
    with pytest.raises(ValueError, match="threshold"):
        EncoderGrader(threshold=threshold)


def test_the_default_threshold_is_the_smallest_that_takes_no_condition_for_another() -> None:
    conditions = list(load_knowledge().conditions.values())
    names = [(i, name) for i, c in enumerate(conditions) for name in c.names]
    cosine = Encoder().similarity([bare_name(name) for _, name in names]).round(3)
    place = {name: k for k, (_, name) in enumerate(names)}
    best = np.full((len(names), len(conditions)), -1.0)
    for k, (_, name) in enumerate(names):
        for j, other in enumerate(conditions):
            true = comparable(name, [n for n in other.names if n != name])
            best[k, j] = max((cosine[k, place[n]] for n in true), default=-1.0)
    owner = np.array([i for i, _ in names])
    others = best[owner[:, None] != np.arange(len(conditions))]
    assert [int((others >= t).sum()) for t in (THRESHOLD, THRESHOLD - 0.05)] == [0, 7] and len(
        others
    ) == 22_656
    spelt_alike = [any(i == j and a != b and same_name(a, b) for j, b in names) for i, a in names]
    own = best[np.arange(len(names)), owner][~np.array(spelt_alike)]
    assert ((own >= THRESHOLD).sum(), len(own)) == (49, 336)


@pytest.mark.parametrize(
    ("answer", "truth"),
    [
        ("Influenza pneumonia", "Influenza"),
        ("Viral lung infection", "Viral pneumonia"),
        ("Reflux", "Gastro-oesophageal reflux disease"),
        ("Femoral neck fracture", "Tibial neck fracture"),
        ("Bronchiolitis", "Bronchitis"),
        ("Beta thalassemia", "Alpha thalassemia"),
        ("Pathological rib fracture", "Spontaneous rib fracture"),
        ("Acute otitisitis", "Acute otitis media"),
    ],
)
def test_names_with_some_words_in_common_are_wrong_whatever_the_cosine(
    answer: str, truth: str
) -> None:
    assert replace(ALIKE, knowledge=None).correct(answer, case(truth)) == 0


def test_what_it_found_is_kept_beside_the_replies(tmp_path, monkeypatch) -> None:
    pair = ("Diverticulitus", case("Diverticulitis"))
    opened = [open_grader("encoder", cache=tmp_path / "replies.sqlite") for _ in range(2)]
    graded = opened[0].grade([pair[0]], [pair[1]])
    monkeypatch.setattr(module, "_REMEMBERED", {})
    monkeypatch.setattr(Encoder, "_encode_new", lambda self, texts: pytest.fail(f"anew: {texts}"))
    assert opened[1].grade([pair[0]], [pair[1]]) == graded
    with pytest.raises(pytest.fail.Exception, match="anew: "):
        open_grader("encoder").grade([pair[0]], [pair[1]])
