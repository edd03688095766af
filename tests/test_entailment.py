"""Entailment between diagnoses: the protocol's helpers, the stand-in's rules, and a real cross-encoder with random weights."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from fake_model import FakeEncoder

from trustlab.entailment import (
    CrossEncoderEntailment,
    Entailment,
    Pair,
    StandInEntailment,
    classes,
    matrices,
    open_entailment,
)

SAYS = {
    ("a", "b"): (0.7, 0.2, 0.1), ("b", "a"): (0.1, 0.8, 0.1), ("a", "c"): (0.1, 0.1, 0.8), ("c", "a"): (0.6, 0.3, 0.1),
    ("b", "c"): (0.0, 0.1, 0.9), ("c", "b"): (0.2, 0.2, 0.6),
}  # fmt: skip


class Told:
    """A judge that was told what to say; ``asked`` keeps the pairs of each call."""

    name, revision, stand_in = "told", "told r1", False

    def __init__(self) -> None:
        self.asked: list[list[Pair]] = []

    def probabilities(self, pairs: Sequence[Pair]) -> np.ndarray:
        self.asked.append(list(pairs))
        return np.array([SAYS[pair] for pair in pairs]).reshape(len(pairs), 3)


# Over everything at once


def test_matrices_have_premises_in_rows_and_equal_strings_entail_each_other():
    ((entails, contradicts),) = matrices(Told(), [["a", "b", "a"]])
    assert entails.tolist() == [[1, 0.7, 1], [0.1, 1, 0.1], [1, 0.7, 1]]
    assert contradicts.tolist() == [[0, 0.1, 0], [0.1, 0, 0.1], [0, 0.1, 0]]


def test_each_distinct_pair_of_all_groups_is_judged_once_and_equal_strings_never():
    judge = Told()
    found = matrices(judge, [["a", "b", "a"], ["b", "a", "c"], ["c", "c"], []])
    (asked,) = judge.asked
    assert sorted(asked) == sorted(SAYS)
    assert [m[0].shape for m in found] == [(3, 3), (3, 3), (2, 2), (0, 0)]
    assert found[2][0].tolist() == [[1, 1], [1, 1]] and found[2][1].tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize(
    ("pair", "kind"),
    [
        (("a", "a"), 1),  # equal, not judged
        (("a", "b"), 1),  # entails forward, neutral backward: the one that is not neutral
        (("b", "c"), -1),  # contradict both ways
        (("a", "c"), 0),  # contradicts forward, entails backward: opposite
        (("b", "a"), 1),  # the same from the other side
    ],
)
def test_the_class_of_a_pair_combines_both_directions(pair: Pair, kind: int):
    assert classes(Told(), [pair]).tolist() == [kind]


def test_no_pairs_no_classes():
    assert classes(Told(), []).shape == (0,)


# The stand-in


@pytest.fixture(scope="module")
def stand_in() -> StandInEntailment:
    return StandInEntailment()


def test_it_is_named_as_a_stand_in(stand_in: StandInEntailment):
    assert isinstance(stand_in, Entailment)
    assert stand_in.stand_in and stand_in.name == "stand-in" and stand_in.revision.startswith("stand-in")


@pytest.mark.parametrize(
    ("premise", "hypothesis", "likeliest"),
    [
        ("Pulmonary embolism", "pulmonary  EMBOLISM.", "entailment"),  # the same words
        ("Atrial fibrillation", "AF", "entailment"),  # two names of one condition in the table
        ("Pneumonia", "No pneumonia", "contradiction"),
        ("Pneumonia ruled out", "Pneumonia", "contradiction"),
        ("Not pneumonia", "Pneumonia excluded", "entailment"),  # both negated
        ("No pneumonia", "Asthma", "neutral"),
        ("Stable angina", "Unstable angina", "contradiction"),  # two conditions whose names are close
        ("Pneumonia", "Asthma", "contradiction"),
        ("Purulent meningitis", "Meningitis", "entailment"),  # the longer says more
        ("Meningitis", "Purulent meningitis", "neutral"),
        ("Broken wrist", "Schizophrenia", "contradiction"),
        ("", "Pneumonia", "neutral"),
        ("!?", "Pneumonia", "neutral"),
    ],
)
def test_what_the_stand_in_concludes(stand_in: StandInEntailment, premise: str, hypothesis: str, likeliest: str):
    (row,) = stand_in.probabilities([(premise, hypothesis)])
    assert ("entailment", "neutral", "contradiction")[row.argmax()] == likeliest
    assert row.sum() == pytest.approx(1) and row.min() >= 0


def test_two_conditions_of_the_table_never_entail_each_other(stand_in: StandInEntailment):
    names = [condition.name for condition in stand_in.knowledge.conditions.values()]
    found = stand_in.probabilities([(a, b) for a in names for b in names if a != b])
    assert (found[:, 2] > found[:, 0]).all()


def test_a_synonym_of_the_table_entails_its_condition_whatever_the_encoder_thinks():
    judge = StandInEntailment(FakeEncoder())  # type: ignore[arg-type]
    pairs = [(name, c.name) for c in judge.knowledge.conditions.values() for name in c.names[1:]]
    assert len(pairs) > 200
    assert (judge.probabilities(pairs)[:, 0] == 1).all()


def test_unknown_names_are_judged_by_their_cosine_and_each_text_is_encoded_once():
    class Counting(FakeEncoder):
        def encode(self, texts: Sequence[str]) -> np.ndarray:
            self.groups.append(list(texts))
            return super().encode(texts)

    encoder = Counting()
    judge = StandInEntailment(encoder)  # type: ignore[arg-type]
    pairs = [("xyz", "zyxx"), ("xyz", "abc"), ("xyz", "abc"), ("abc", "xyz")]
    found = judge.probabilities(pairs)
    assert encoder.groups == [["xyz", "zyxx", "abc"]]
    half = 1 / (1 + np.exp((judge.HALF - 1) / judge.SLOPE))
    assert found[0] == pytest.approx([half, 0, 1 - half])  # the same letters: cosine 1
    assert found[1] == pytest.approx(found[2]) and found[1][2] > 0.999  # none in common: cosine 0
    judge.probabilities(pairs)
    assert encoder.groups[1:] == [[]]  # nothing new


# A cross-encoder


@pytest.fixture(scope="module")
def nli_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny BERT with random weights that sorts pairs into three labels, in an order of its own."""
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    folder = tmp_path_factory.mktemp("nli")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "pneumonia", "asthma", "angina", "no", "viral"]
    (folder / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    labels = {0: "contradiction", 1: "entailment", 2: "neutral"}
    import torch

    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(words), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=64, initializer_range=1.0, id2label=labels, label2id={v: k for k, v in labels.items()},
    )  # fmt: skip
    BertForSequenceClassification(config).save_pretrained(folder)
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    return folder


PAIRS = [("viral pneumonia", "pneumonia"), ("pneumonia", "viral pneumonia"), ("asthma", "angina"), ("no asthma", "asthma")]


def test_a_cross_encoder_s_labels_are_brought_into_order(nli_folder: Path):
    judge = CrossEncoderEntailment(nli_folder)
    found = judge.probabilities(PAIRS)
    assert isinstance(judge, Entailment) and not judge.stand_in
    assert found.shape == (4, 3) and found.sum(axis=1) == pytest.approx(1) and len(np.unique(found.round(6), axis=0)) == 4
    tokens = judge.model.tokenizer([a for a, _ in PAIRS], [b for _, b in PAIRS], padding=True, return_tensors="pt")
    logits = judge.model.model(**tokens).logits.detach().softmax(-1).numpy()
    assert found == pytest.approx(logits[:, [1, 2, 0]], abs=1e-5)


def test_answers_are_kept_on_disk_and_the_model_is_then_not_loaded(nli_folder: Path, tmp_path: Path):
    first = CrossEncoderEntailment(nli_folder, cache_path=tmp_path / "e.sqlite").probabilities(PAIRS[:3])
    again = CrossEncoderEntailment(nli_folder, cache_path=tmp_path / "e.sqlite")
    assert again.probabilities([PAIRS[2], PAIRS[0]]).tolist() == first[[2, 0]].tolist()
    assert "model" not in vars(again)
    again.probabilities(PAIRS)
    assert "model" in vars(again)


def test_each_distinct_pair_is_put_to_the_cross_encoder_once(nli_folder: Path, monkeypatch: pytest.MonkeyPatch):
    judge, asked = CrossEncoderEntailment(nli_folder), []
    predict = judge.model.predict
    monkeypatch.setattr(judge.model, "predict", lambda pairs, **how: asked.extend(map(tuple, pairs)) or predict(pairs, **how))
    judge.probabilities([*PAIRS, *PAIRS, PAIRS[0]])
    judge.probabilities(PAIRS[:2])
    assert sorted(asked) == sorted(PAIRS)


def test_other_labels_are_refused(nli_folder: Path):
    judge = CrossEncoderEntailment(nli_folder)
    judge.model.config.id2label = {0: "LABEL_0", 1: "LABEL_1", 2: "LABEL_2"}
    with pytest.raises(ValueError, match="label_0.*entailment, neutral and contradiction are needed"):
        judge.probabilities(PAIRS)


def test_its_revision_follows_its_weights(nli_folder: Path, tmp_path: Path):
    before = CrossEncoderEntailment(nli_folder)
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in nli_folder.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    assert CrossEncoderEntailment(copy).fingerprint == before.fingerprint
    (copy / "config.json").write_text((copy / "config.json").read_text() + " ", encoding="utf-8")
    assert CrossEncoderEntailment(copy).fingerprint != before.fingerprint


def test_a_judge_is_opened_by_name(nli_folder: Path, tmp_path: Path):
    assert open_entailment(None, encoder=FakeEncoder()).stand_in  # type: ignore[arg-type]
    assert open_entailment("stand-in", encoder=FakeEncoder()).stand_in  # type: ignore[arg-type]
    assert open_entailment(str(nli_folder)).name == str(nli_folder)
    with pytest.raises(ValueError, match="a folder that exists or a hub name"):
        open_entailment(str(tmp_path / "absent"))
    with pytest.raises(ValueError, match="a folder that exists or a hub name"):
        open_entailment("./absent")
