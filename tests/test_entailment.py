"""Entailment between diagnoses: the protocol's helpers, the stand-in's rules, and a real
cross-encoder with random weights."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from fake_model import FakeEncoder
from saying import saying

from trustlab.knowledge.same_or_narrower import verdict
from trustlab.knowledge.words import word_lists
from trustlab.meaning.entailment import (
    CrossEncoderEntailment,
    Entailment,
    Pair,
    StandInEntailment,
    classes,
    matrices,
)

SAYS = {
    ("a", "b"): (0.7, 0.2, 0.1), ("b", "a"): (0.1, 0.8, 0.1),
    ("a", "c"): (0.1, 0.1, 0.8), ("c", "a"): (0.6, 0.3, 0.1),
    ("b", "c"): (0.0, 0.1, 0.9), ("c", "b"): (0.2, 0.2, 0.6),
}  # fmt: skip


class Counting(FakeEncoder):
    """Keeps the texts that it encodes."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        self.groups.append(list(texts))
        return super().encode(texts)


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
    assert classes(Told(), []).shape == (0,)


# The stand-in


@pytest.fixture(scope="module")
def stand_in() -> StandInEntailment:
    return StandInEntailment()


def test_it_is_named_as_a_stand_in(stand_in: StandInEntailment):
    assert isinstance(stand_in, Entailment) and stand_in.stand_in
    assert stand_in.name == "rule-based proxy" and stand_in.revision.startswith(stand_in.name)


# premise | hypothesis | class that way, and back (entailment, neutral, contradiction) | one set?
CONCLUSIONS = """
Pulmonary embolism (PE) | Pulmonary embolism | e | e | one
Bronchitis, acute | Acute bronchitis | e | e | one
Atrial fibrillation | AF | e | e | one
left-sided pneumothorax | right-sided pneumothorax | c | c | two
left-sided pneumothorax | pneumothorax | e | n | one
gastroenteritis | stomach flu | n | e | one
Deep vein thrombosis | Pulmonary embolism | c | c | two
Ischaemic stroke | Haemorrhagic stroke | c | c | two
acute appendicitis | appendicitis | e | n | one
Acute cholecystitis | Chronic cholecystitis | c | c | two
Mild pneumonia | Severe pneumonia | c | c | two
Viral pneumonia | Bacterial pneumonia | c | c | two
Acute dacryocystitis | Recurrent dacryocystitis | n | n | two
Type 1 diabetes | Type 2 diabetes | c | c | two
Type 2 diabetes | Diabetes mellitus | e | n | one
Diabetes insipidus | Diabetes | c | c | two
NSTEMI | STEMI | c | c | two
Stage I lung cancer | Stage III lung cancer | c | c | two
Hodgkin lymphoma | Non-Hodgkin lymphoma | c | c | two
Hypothyroidism | Hyperthyroidism | c | c | two
Migraine with aura | Migraine without aura | c | c | two
Cushing's disease | Cushing's syndrome | c | c | two
Acute exacerbation of COPD | Chronic obstructive pulmonary disease | e | n | one
Pneumonia or asthma | Asthma | c | c | two
Pneumonia | Asthma | c | c | two
no appendicitis | appendicitis | c | c | two
No appendicitis | No acute appendicitis | e | n | one
Pneumonia ruled out | Pneumonia | c | c | two
Not pneumonia | Pneumonia excluded | e | e | one
 | Pneumonia | n | n | two
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


REFUSED = re.compile(r"\band\b|\b[a-z]\b|^t\dd$")
"""What graders take for a list, or for a letter of a word that was cut off."""


def test_the_graders_and_the_stand_in_read_every_listed_name_alike(stand_in):
    """One list of names for both: names of one disease, and kinds of one."""
    lists = word_lists("disease_names")
    groups = [[name.strip() for name in group.split("|")] for group in lists["same"]]
    same = [(name, group[0]) for group in groups for name in group[1:]]
    kinds = [(k.strip(), of) for of, names in lists["kinds"].items() for k in names.split("|")]
    table = stand_in.knowledge
    wrong = []
    for name, other in same + kinds:
        if REFUSED.search(name):
            continue
        graded = verdict(name, [other], table)
        judged = stand_in.probabilities([(name, other), (other, name)]).argmax(axis=1).tolist()
        expected = {"same": [[0, 0]], "narrower": [[0, 1], [0, 0]]}.get(graded, [])
        wrong += [] if judged in expected else [f"{name} | {other}: {graded}, {judged}"]
    assert len(same) > 2_000 and len(kinds) > 150
    assert not wrong, f"{len(wrong)} of {len(same + kinds)}:\n" + "\n".join(wrong)


def test_no_two_names_of_different_conditions_are_one_set_whatever_the_encoder_thinks():
    judge = StandInEntailment(FakeEncoder())  # type: ignore[arg-type]
    names = [(n, c.id) for c in judge.knowledge.conditions.values() for n in c.names]
    found = judge.probabilities([(a, b) for a, i in names for b, j in names if i != j])
    assert len(found) > 90_000 and (found.argmax(axis=1) == 2).all()


def test_a_synonym_of_the_table_entails_its_condition_whatever_the_encoder_thinks():
    judge = StandInEntailment(FakeEncoder())  # type: ignore[arg-type]
    pairs = [(name, c.name) for c in judge.knowledge.conditions.values() for name in c.names[1:]]
    assert len(pairs) > 200
    assert (judge.probabilities([*pairs, *((b, a) for a, b in pairs)])[:, 0] == 1).all()


def test_unknown_names_are_judged_by_their_cosine_and_each_text_is_encoded_once():
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
    return save_nli(tmp_path_factory.mktemp("nli") / "model")


def save_nli(folder: Path) -> Path:
    """A tiny BERT with random weights; its three labels stand in an order of its own."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    folder.mkdir()
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words += ["pneumonia", "asthma", "angina", "no", "viral"]
    (folder / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    labels = {0: "contradiction", 1: "entailment", 2: "neutral"}
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
    message = saying("label_0", "entailment", "neutral", "contradiction")
    with pytest.raises(ValueError, match=message):
        other.probabilities(PAIRS)


def test_answers_are_kept_on_disk_and_the_model_is_then_not_loaded(
    nli_folder: Path, tmp_path: Path
):
    path = tmp_path / "e.sqlite"
    first = CrossEncoderEntailment(nli_folder, cache_path=path).probabilities(PAIRS[:3])
    again = CrossEncoderEntailment(nli_folder, cache_path=path)
    assert again.probabilities([PAIRS[2], PAIRS[0]]).tolist() == first[[2, 0]].tolist()
    assert "model" not in vars(again)
    again.probabilities(PAIRS)
    assert "model" in vars(again)


def test_its_revision_follows_its_weights(nli_folder: Path, tmp_path: Path):
    before = CrossEncoderEntailment(nli_folder)
    copy = Path(shutil.copytree(nli_folder, tmp_path / "copy"))
    assert CrossEncoderEntailment(copy).fingerprint == before.fingerprint
    (copy / "config.json").write_text((copy / "config.json").read_text() + " ", encoding="utf-8")
    assert CrossEncoderEntailment(copy).fingerprint != before.fingerprint
