"""What each token adds to a diagnosis, what could stand in its place; how well reasoning fits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from each import each
from fake_model import FakeEncoder, FakeModel, made_cases
from fake_panel import Wordy
from test_entailment import Counting, Told

from trustlab.confidence import select
from trustlab.levels import views
from trustlab.meaning.parts import Readers
from trustlab.meaning.relevance import alternative_classes, cosines, pieces_of, relevances
from trustlab.records import Opinion, Parameters, Reply, TokenTrace
from trustlab.runs.collect import Settings, collect


def told(*tokens: str, alternatives: Sequence[Sequence[tuple[str, float]]] | None = None) -> Reply:
    listed = None if alternatives is None else tuple(map(tuple, alternatives))
    return Reply("x", TokenTrace(tokens, np.log(np.full(len(tokens), 0.5)), alternatives=listed))


@each(
    ("reply", "pieces"),
    [
        (told("ab", "c d", "e"), ("ab", "c d", "e")),
        (told("[ab", "c].\n"), ("ab", "c")),  # tokens that carry the brackets and what follows them
        (told(), ()),
        (Reply("x"), ()),
    ],
)
def test_pieces_are_the_tokens_texts_inside_the_brackets(reply: Reply, pieces: tuple[str, ...]):
    assert pieces_of(reply) == pieces


def test_relevance_is_one_less_the_cosine_with_the_text_without_the_token():
    # Letters of "abcd": without "ab" and without "cd", half of them; cosine 2 / sqrt(4 * 2). "abab"
    # without either piece has the same letters: nothing is lost.
    assert [each.shape for each in relevances(FakeEncoder(), [((), "")])] == [(0,)]  # type: ignore[arg-type]
    found = relevances(FakeEncoder(), [(("ab", "cd"), ""), (("ab", "ab"), "")])  # type: ignore[arg-type]
    assert found[0] == pytest.approx([1 - 0.5**0.5] * 2) and found[1] == pytest.approx([0, 0])


def test_a_context_dilutes_tokens_and_each_distinct_string_is_encoded_once():
    encoder = Counting()
    asked = [(("ab", "cd"), ""), (("ab", "cd"), "efgh"), (("ab", "cd"), ""), (("abcd",), "")]
    bare, full, *_ = relevances(encoder, asked)  # type: ignore[arg-type]
    (texts,) = encoder.groups
    assert sorted(texts) == sorted(["", "abcd", "cd", "ab", "abcd\nefgh", "cd\nefgh", "ab\nefgh"])
    assert (full < bare).all()


def test_alternatives_are_put_in_place_and_judged_against_the_whole():
    # "a" with "b" in its place is "b": entails; with "c": opposite directions, neutral. The token
    # itself is 1 unasked.
    answer = told("a", alternatives=[[("a", np.log(0.5)), ("b", -2.0), ("c", -3.0)]])
    for n, expected in ((10, [1, 1, 0]), (2, [1, 1])):
        (found,) = alternative_classes(judge := Told(), [(answer, "")], n)
        assert [k.tolist() for k in found or ()] == [expected]
        assert ("a", "a") not in judge.asked[0]
    assert alternative_classes(Told(), [(told("a"), ""), (Reply("x"), "")], 10) == [None, None]


HALF, NAN = 1 / math.sqrt(2), math.nan


def opinion(thinking: str | None, diagnosis: str | None) -> Opinion:
    return Opinion("m", 0, thinking, diagnosis)


@each(
    ("thinking", "diagnosis", "cosine"),
    [
        ("Fever, much fever.", "Fever", 1),
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


def test_long_reasoning_is_read_in_windows_that_count_alike() -> None:
    """Windows of two words: (fever, fever) is (1, 0), (cough) is (0, 1), their mean at 45 degrees;
    whole, it would be 2 to 1."""
    long = opinion("fever fever cough", "Cough")
    assert cosines(Wordy(room=2), [long]) == pytest.approx([HALF])
    assert cosines(Wordy(room=3), [long]) == pytest.approx([1 / math.sqrt(5)])


VIEWS = views(made_cases(3), [1, 100])


def collected(method: str, **parameters):
    settings = Settings(Parameters(n_samples=4, **parameters))
    readers = Readers.of(FakeEncoder())  # type: ignore[arg-type]
    return collect(FakeModel(), VIEWS, select(method), settings, readers=readers)


def test_replies_without_tokens_ask_the_encoder_nothing():
    encoder = Counting()
    made = [replace(g, answer=Reply("x"), samples=[Reply("x")]) for g in collected("ce")]
    done = Readers.of(encoder).read(made, VIEWS, {"relevance", "sample_relevance"})  # type: ignore[arg-type]
    assert encoder.groups == [] and done[0].relevance is None and done[0].sample_relevance is None


def test_contexts_are_parameters_and_the_stand_in_refuses_patient_information():
    bare, full = (collected("token_sar", relevance_context=c)[0] for c in ("answer", "full"))
    assert not np.allclose(bare.relevance, full.relevance)  # type: ignore[arg-type]
    contexts = [g.parameters.relevance_context for g in (bare, full)]
    assert contexts == ["answer", "full"]
    with pytest.raises(ValueError, match="NLI model"):
        collected("num_set", entailment_context="full")
