"""How well a doctor's reasoning fits its diagnosis: the cosine, and reasoning that is longer than
the encoder's window."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from each import each
from fake_panel import Wordy

from trustlab.meaning import encoder as semantics
from trustlab.meaning.encoder import SURELY_WHOLE, Encoder
from trustlab.meaning.relevance import cosines, with_cosines
from trustlab.records import Opinion, Panel

HALF, NAN = 1 / math.sqrt(2), math.nan


def opinion(thinking: str | None, diagnosis: str | None) -> Opinion:
    return Opinion("m", 0, thinking, diagnosis)


@each(
    ("thinking", "diagnosis", "cosine"),
    [
        ("Fever, much fever.", "Fever", 1),
        ("Fever.", "Cough", 0),
        ("Fever and cough.", "Cough", HALF),
        ("Fever, fever, fever, fever; cough, cough, cough.", "Cough", 3 / 5),
        # no reasoning or diagnosis
        *((*of, NAN) for of in [(None, "Cough"), ("Cough.", None), ("", "Cough"), ("Cough.", "")]),
        (None, None, NAN),
    ],
)
def test_the_cosine_is_between_the_reasoning_and_the_doctors_own_diagnosis(
    thinking, diagnosis, cosine: float
) -> None:
    beside = [opinion("Fever.", "Cough"), opinion("Cough.", "Cough")]  # keep theirs
    found = cosines(Wordy(), [beside[0], opinion(thinking, diagnosis), beside[1]])
    assert found == pytest.approx([0, cosine, 1], abs=1e-6, nan_ok=True)


def unloaded(self) -> None:
    pytest.fail("the model was loaded")


def test_no_encoder_is_loaded_where_nobody_reasoned_or_a_text_is_short(monkeypatch) -> None:
    monkeypatch.setattr(Encoder, "model", property(unloaded))
    assert math.isnan(cosines(Encoder(), [opinion(None, "Cough")])[0])
    assert cosines(Encoder(), []) == []
    assert Encoder().windows("x" * SURELY_WHOLE) == ["x" * SURELY_WHOLE]


def test_long_reasoning_is_read_in_windows_that_count_alike() -> None:
    """Windows of two words: (fever, fever) is (1, 0), (cough) is (0, 1), their mean at 45 degrees;
    whole, it would be 2 to 1."""
    long = opinion("fever fever cough", "Cough")
    assert cosines(Wordy(room=2), [long]) == pytest.approx([HALF])
    assert cosines(Wordy(room=3), [long]) == pytest.approx([1 / math.sqrt(5)])


def test_texts_are_encoded_together_and_each_once_before_they_are_looked_up() -> None:
    seen: list[list[str]] = []

    class Noting(Wordy):
        def encode(self, texts):
            seen.append(list(texts))
            return super().encode(texts)

    said = [("Fever.", "Cough"), ("Fever.", "Fever"), ("Cough.", "Cough"), ("Lost.", None)]
    cosines(Noting(), [opinion(*of) for of in said])
    assert sorted(seen[0]) == ["Cough", "Cough.", "Fever", "Fever."]


def test_each_panel_gets_the_cosines_of_its_own_doctors() -> None:
    two = (opinion("Fever.", "Fever"), opinion(None, "Cough"))
    one = Panel(two, ("Fever", "Cough"), "Fever", ("Cough", "Fever"))
    other = Panel((opinion("Fever.", "Cough"),), ("Cough",), "Cough")
    found = with_cosines(Wordy(), [one, other])
    assert found[0].cosines == pytest.approx((1, NAN), nan_ok=True)
    assert found[1].cosines == pytest.approx((0,), abs=1e-6)
    assert [replace(panel, cosines=None) for panel in found] == [one, other]
    assert with_cosines(Wordy(), []) == []


# The windows of the real encoder's class


class Pieces:
    """A tokenizer's model: a word is as many pieces as it has letters."""

    max_seq_length = 12  # ten pieces beside the marks at both ends

    @property
    def tokenizer(self):
        return self

    def tokenize(self, word: str) -> list[str]:
        return list(word)


@pytest.fixture
def encoder(monkeypatch: pytest.MonkeyPatch) -> Encoder:
    monkeypatch.setattr(semantics, "SURELY_WHOLE", 5)
    monkeypatch.setattr(Encoder, "model", Pieces())
    return Encoder()


@each(
    ("text", "parts"),
    [
        ("", [""]),
        ("aa bb", ["aa bb"]),
        ("aaaaa  bbbbb", ["aaaaa  bbbbb"]),  # ten pieces: fits, and stays as it is written
        ("aaaaa bbbbbb", ["aaaaa", "bbbbbb"]),  # eleven
        ("aaa bbb cccc d\ne", ["aaa bbb cccc", "d e"]),
        ("x" * 11, ["x" * 11]),  # a word longer than a window
        ("aa " + "x" * 11 + " bb", ["aa", "x" * 11, "bb"]),
        ("aaaaa bbbbb ccccc ddddd eeeee", ["aaaaa bbbbb", "ccccc ddddd", "eeeee"]),
    ],
)
def test_a_text_is_cut_between_words_into_parts_that_fit(
    encoder: Encoder, text: str, parts: list[str]
) -> None:
    assert encoder.windows(text) == parts


def test_the_packaged_encoder_reads_every_part_whole() -> None:
    encoder = Encoder()
    text = " ".join(
        f"On day {i} there was fever, retrosternal discomfort and dyspnoea." for i in range(60)
    )
    parts = encoder.windows(text)
    room = encoder.model.max_seq_length
    assert room == 256 and " ".join(parts) == text
    lengths = [len(encoder.model.tokenizer(part)["input_ids"]) for part in parts]
    assert max(lengths) <= room and min(lengths[:-1]) > room - 10
    last = np.stack([encoder.encode([part])[0] for part in parts]).mean(0)
    (whole,) = cosines(encoder, [opinion(text, "Pneumonia")])
    of_diagnosis = encoder.encode(["Pneumonia"])[0]
    assert whole == pytest.approx(float(last @ of_diagnosis / np.linalg.norm(last)), abs=1e-5)
    cut = encoder.encode([text])[0] @ of_diagnosis
    assert abs(whole - cut) > 1e-4
