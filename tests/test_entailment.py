"""Entailment between diagnoses: the protocol's helpers, the stand-in's rules, and a real
cross-encoder with random weights."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from fake_model import FakeEncoder
from tiny_models import as_pickle

from trustlab.meaning.entailment import (
    CrossEncoderEntailment,
    Entailment,
    Pair,
    StandInEntailment,
    classes,
    matrices,
    open_entailment,
)

SAYS = {
    ("a", "b"): (0.7, 0.2, 0.1), ("b", "a"): (0.1, 0.8, 0.1),
    ("a", "c"): (0.1, 0.1, 0.8), ("c", "a"): (0.6, 0.3, 0.1),
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


def test_distinct_pairs_are_judged_once_and_equal_strings_entail_each_other():
    judge = Told()
    found = matrices(judge, [["a", "b", "a"], ["b", "a", "c"], ["c", "c"], []])
    assert sorted(judge.asked[0]) == sorted(SAYS) and len(judge.asked) == 1
    assert found[0][0].tolist() == [[1, 0.7, 1], [0.1, 1, 0.1], [1, 0.7, 1]]  # premises in rows
    assert found[0][1].tolist() == [[0, 0.1, 0], [0.1, 0, 0.1], [0, 0.1, 0]]
    assert found[2][0].tolist() == [[1, 1], [1, 1]] and found[3][0].shape == (0, 0)


def test_the_class_of_a_pair_combines_both_directions():
    """Equal; entails forward, neutral backward, and from the other side; both ways; opposite."""
    asked = [("a", "a"), ("a", "b"), ("b", "a"), ("b", "c"), ("a", "c")]
    assert classes(Told(), asked).tolist() == [1, 1, 1, -1, 0]
    assert classes(Told(), []).shape == (0,)


# The stand-in


@pytest.fixture(scope="module")
def stand_in() -> StandInEntailment:
    return StandInEntailment()


# premise | hypothesis | class that way, and back (entailment, neutral, contradiction) | one set?
CONCLUSIONS = """
Pulmonary embolism | pulmonary  EMBOLISM. | e | e | one
Pulmonary embolism (PE) | Pulmonary embolism | e | e | one
Probable pneumonia | Pneumonia | e | e | one
Atrial fibrillation | AF | e | e | one
Chronic lymphocytic leukaemia | CLL | e | e | one
left-sided pneumothorax | right-sided pneumothorax | c | c | two
left-sided pneumothorax | bilateral pneumothorax | c | c | two
left-sided pneumothorax | pneumothorax | e | n | one
Left otitis media | Right ear infection | c | c | two
gastroenteritis | stomach flu | e | e | one
Acute coronary syndrome | heart attack | e | n | one
Ischaemic stroke | Haemorrhagic stroke | c | c | two
acute appendicitis | appendicitis | e | n | one
Acute cholecystitis | Chronic cholecystitis | c | c | two
Severe pneumonia | Pneumonia | e | n | one
Viral pneumonia | Bacterial pneumonia | c | c | two
Acute alcoholic hepatitis | Acute hepatitis | e | n | one
Acute dacryocystitis | Recurrent dacryocystitis | n | n | two
Type 1 diabetes | Type 2 diabetes | c | c | two
Type II diabetes mellitus | diabetes type 2 | e | e | one
Type 2 diabetes | Diabetes mellitus | e | n | one
Diabetes insipidus | Diabetes | c | c | two
Hepatitis A | Hepatitis B | c | c | two
NSTEMI | STEMI | c | c | two
Heart failure, NYHA class II | Heart failure, NYHA class IV | c | c | two
Hodgkin lymphoma | Non-Hodgkin lymphoma | c | c | two
Migraine with aura | Migraine without aura | c | c | two
Dysphagia | Dysphasia | c | c | two
Cushing's disease | Cushing's syndrome | c | c | two
Acute exacerbation of COPD | Chronic obstructive pulmonary disease | e | n | one
Pneumonia or asthma | Asthma | c | c | two
Acute laryngitis | Acute obstructive laryngitis | c | c | two
Pneumonia | Asthma | c | c | two
no appendicitis | appendicitis | c | c | two
No acute appendicitis | Appendicitis | n | n | two
No appendicitis | No acute appendicitis | e | n | one
Pneumonia ruled out | Pneumonia | c | c | two
No pneumonia | Asthma | n | n | two
 | Pneumonia | n | n | two
!? | Pneumonia | n | n | two
"""


def test_what_the_stand_in_concludes_both_ways_and_which_names_are_one_set(stand_in):
    lines = CONCLUSIONS.strip("\n").split("\n")
    rows = [[cell.strip() for cell in line.split("|")] for line in lines]
    wrong = []
    for a, b, *expected in rows:
        forward, backward = found = stand_in.probabilities([(a, b), (b, a)])
        assert found.sum(axis=1) == pytest.approx(1) and found.min() >= 0
        one = forward[0] > forward[2] and backward[0] > backward[2]
        got = ["enc"[forward.argmax()], "enc"[backward.argmax()], "one" if one else "two"]
        wrong += [f"{a} | {b}: {got}, expected {expected}"] if got != expected else []
    assert not wrong, f"{len(wrong)} of {len(rows)}:\n" + "\n".join(wrong)


def test_no_two_names_of_different_conditions_are_one_set_whatever_the_encoder_thinks():
    judge = StandInEntailment(FakeEncoder())  # type: ignore[arg-type]
    names = [(n, c.id) for c in judge.knowledge.conditions.values() for n in c.names[:2]]
    found = judge.probabilities([(a, b) for a, i in names for b, j in names if i != j])
    assert len(found) > 10_000 and (found.argmax(axis=1) == 2).all()


def test_a_synonym_of_the_table_entails_its_condition_whatever_the_encoder_thinks():
    judge = StandInEntailment(FakeEncoder())  # type: ignore[arg-type]
    pairs = [(name, c.name) for c in judge.knowledge.conditions.values() for name in c.names[1:]]
    assert len(pairs) > 200
    assert (judge.probabilities([*pairs, *((b, a) for a, b in pairs)])[:, 0] == 1).all()


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
    assert encoder.groups[1:] == []  # nothing new


# A cross-encoder


@pytest.fixture(scope="module")
def nli_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny BERT with random weights that sorts pairs into three labels, in an order of its
    own."""
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    folder = tmp_path_factory.mktemp("nli")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words += ["pneumonia", "asthma", "angina", "no", "viral"]
    (folder / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    labels = {0: "contradiction", 1: "entailment", 2: "neutral"}
    import torch

    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(words), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=64, initializer_range=1.0, id2label=labels,
        label2id={v: k for k, v in labels.items()},
    )  # fmt: skip
    BertForSequenceClassification(config).save_pretrained(folder)
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    return folder


PAIRS = [
    ("viral pneumonia", "pneumonia"),
    ("pneumonia", "viral pneumonia"),
    ("asthma", "angina"),
    ("no asthma", "asthma"),
]


def test_a_cross_encoder_s_labels_are_brought_into_order(nli_folder: Path):
    judge = CrossEncoderEntailment(nli_folder)
    found = judge.probabilities(PAIRS)
    assert isinstance(judge, Entailment) and not judge.stand_in
    assert found.shape == (4, 3) and found.sum(axis=1) == pytest.approx(1)
    assert len(np.unique(found.round(6), axis=0)) == 4
    sides = [list(side) for side in zip(*PAIRS, strict=True)]
    tokens = judge.model.tokenizer(*sides, padding=True, return_tensors="pt")
    logits = judge.model.model(**tokens).logits.detach().softmax(-1).numpy()
    assert found == pytest.approx(logits[:, [1, 2, 0]], abs=1e-5)
    other = CrossEncoderEntailment(nli_folder)
    other.model.config.id2label = {0: "LABEL_0", 1: "LABEL_1", 2: "LABEL_2"}
    message = "label_0.*entailment, neutral and contradiction are needed"
    with pytest.raises(ValueError, match=message):
        other.probabilities(PAIRS)


def test_answers_are_kept_on_disk_and_the_model_is_then_not_loaded(nli_folder, tmp_path):
    path = tmp_path / "e.sqlite"
    first = CrossEncoderEntailment(nli_folder, cache_path=path).probabilities(PAIRS[:3])
    again = CrossEncoderEntailment(nli_folder, cache_path=path)
    assert again.probabilities([PAIRS[2], PAIRS[0]]).tolist() == first[[2, 0]].tolist()
    assert "model" not in vars(again)
    again.probabilities(PAIRS)
    assert "model" in vars(again)
    copy = Path(shutil.copytree(nli_folder, tmp_path / "copy"))
    (copy / "config.json").write_text((copy / "config.json").read_text() + " ", encoding="utf-8")
    assert CrossEncoderEntailment(copy).fingerprint != again.fingerprint
    as_pickle(copy)
    with pytest.raises(ValueError, match=r"copy' holds its weights as a pickle \(pytorch_mod"):
        CrossEncoderEntailment(copy).probabilities(PAIRS)


def test_a_judge_is_opened_by_name(nli_folder: Path, tmp_path: Path):
    assert open_entailment(None, encoder=FakeEncoder()).stand_in  # type: ignore[arg-type]
    assert open_entailment("rule-based proxy", encoder=FakeEncoder()).stand_in  # type: ignore[arg-type]
    assert open_entailment(str(nli_folder)).name == str(nli_folder)
    for name in (str(tmp_path / "absent"), "./absent"):
        with pytest.raises(ValueError, match="a folder that exists or a hub name"):
            open_entailment(name)
