"""What each token adds to a diagnosis, what could stand in its place, and how a run collects
both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from fake_model import FakeEncoder, FakeModel, made_cases
from test_entailment import Told

from trustlab.collect import Settings, collect
from trustlab.confidence import METHODS, select
from trustlab.levels import views
from trustlab.meaning.entailment import Pair
from trustlab.meaning.parts import Readers
from trustlab.meaning.relevance import alternative_classes, pieces_of, relevances
from trustlab.records import Parameters, Reply, TokenTrace


def told(*tokens: str, alternatives: Sequence[Sequence[tuple[str, float]]] | None = None) -> Reply:
    listed = None if alternatives is None else tuple(map(tuple, alternatives))
    return Reply("x", TokenTrace(tokens, np.log(np.full(len(tokens), 0.5)), alternatives=listed))


class Counting(FakeEncoder):
    """Keeps the texts that it encodes."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        self.groups.append(list(texts))
        return super().encode(texts)


class Noting(Told):
    """Keeps the pairs that it judges, and calls all of them neutral."""

    def probabilities(self, pairs: Sequence[Pair]) -> np.ndarray:
        self.asked.append(list(pairs))
        return np.tile([0.0, 1.0, 0.0], (len(pairs), 1))


@pytest.mark.parametrize(
    ("tokens", "pieces"),
    [
        (("ab", "c d", "e"), ("ab", "c d", "e")),
        (("[ab", "c].\n"), ("ab", "c")),  # tokens that carry the brackets and what follows them
        (("x [", "ab", "]"), ("", "ab", "")),
        (("[[ab]]",), ("ab",)),
        ((), ()),
    ],
)
def test_pieces_are_the_tokens_texts_inside_the_brackets(
    tokens: tuple[str, ...], pieces: tuple[str, ...]
):
    assert pieces_of(told(*tokens)) == pieces


def test_a_reply_without_a_trace_has_no_pieces():
    assert pieces_of(Reply("x")) == ()


def test_relevance_is_one_less_the_cosine_with_the_text_without_the_token():
    # Letters of "abcd": without "ab" and without "cd", half of them; cosine 2 / sqrt(4 * 2).
    (found,) = relevances(FakeEncoder(), [(("ab", "cd"), "")])  # type: ignore[arg-type]
    assert found == pytest.approx([1 - 0.5**0.5] * 2)
    # "abab" without either piece has the same letters: nothing is lost.
    (found,) = relevances(FakeEncoder(), [(("ab", "ab"), "")])  # type: ignore[arg-type]
    assert found == pytest.approx([0, 0])


def test_a_context_follows_the_diagnosis_and_dilutes_its_tokens():
    encoder = Counting()
    bare, full = relevances(encoder, [(("ab", "cd"), ""), (("ab", "cd"), "efgh")])  # type: ignore[arg-type]
    assert set(encoder.groups[0]) == {"abcd", "cd", "ab", "abcd\nefgh", "cd\nefgh", "ab\nefgh"}
    assert (full < bare).all()


def test_each_distinct_string_is_encoded_once():
    encoder = Counting()
    relevances(encoder, [(("ab", "cd"), ""), (("ab", "cd"), ""), (("abcd",), ""), (("x",), "")])  # type: ignore[arg-type]
    (texts,) = encoder.groups
    assert sorted(texts) == sorted({"abcd", "cd", "ab", "", "x"})


def test_alternatives_are_put_in_place_and_judged_against_the_whole():
    # "a" with "b" in its place is "b": entails; with "c": opposite directions, neutral. The token
    # itself is 1 unasked.
    answer = told("a", alternatives=[[("a", np.log(0.5)), ("b", -2.0), ("c", -3.0)]])
    judge = Told()
    assert [k.tolist() for k in alternative_classes(judge, [(answer, "")], 10)[0] or ()] == [
        [1, 1, 0]
    ]
    assert ("a", "a") not in judge.asked[0]
    assert [k.tolist() for k in alternative_classes(Told(), [(answer, "")], 2)[0] or ()] == [[1, 1]]


def test_an_alternative_that_closes_the_bracket_ends_the_diagnosis():
    judge = Noting()
    answer = told(
        "[Pneu",
        "mo",
        "nia]",
        alternatives=[
            [("[Pneu", -0.7), ("[Asth", -3.0)],
            [("mo", -0.7), ("]", -3.0)],
            [("nia]", -0.7)],
        ],
    )
    alternative_classes(judge, [(answer, "")], 10)
    assert set(judge.asked[0]) == {
        ("Pneumonia", "Asthmonia"), ("Asthmonia", "Pneumonia"),
        ("Pneumonia", "Pneu"), ("Pneu", "Pneumonia"),
    }  # fmt: skip


def test_an_answer_without_alternatives_has_no_classes():
    assert alternative_classes(Told(), [(told("a"), ""), (Reply("x"), "")], 10) == [None, None]


# In a run

VIEWS = views(made_cases(3), [1, 100])


def collected(methods: Sequence[str], model: FakeModel | None = None, **parameters):
    encoder = Counting()
    settings = Settings(Parameters(n_samples=4, **parameters))
    readers = Readers.of(encoder)  # type: ignore[arg-type]
    return collect(model or FakeModel(), VIEWS, select(methods), settings, readers=readers), encoder


def test_a_run_collects_what_the_methods_need_in_the_shapes_that_they_read():
    generations, _ = collected(["sar", "token_sar", "ccp", "num_set", "semantic_entropy"])
    for g in generations:
        assert g.answer and g.answer.trace and g.samples
        n, k = len(g.answer.trace), len(g.samples)
        assert g.relevance is not None and g.relevance.shape == (n,)
        assert g.sample_relevance is not None and [r.shape for r in g.sample_relevance] == [
            (len(s.trace),) for s in g.samples
        ]  # type: ignore[arg-type]
        assert (
            g.entailment is not None
            and g.contradiction is not None
            and g.entailment.shape == g.contradiction.shape == (k, k)
        )
        assert (
            g.alternative_entailment is not None
            and [a.shape for a in g.alternative_entailment] == [(10,)] * n
        )


def test_what_no_method_needs_is_not_made():
    (g, *_), encoder = collected(["asp", "poc"])
    assert (
        g.relevance,
        g.sample_relevance,
        g.entailment,
        g.alternative_entailment,
        g.similarity,
    ) == (None,) * 5
    assert encoder.groups == []


def test_each_distinct_string_of_a_run_is_encoded_once_a_step():
    _, encoder = collected(["sar", "token_sar"])
    texts = encoder.groups[
        -1
    ]  # the step before hands the encoder whole groups, which it makes distinct itself
    assert len(texts) > 10 and len(texts) == len(set(texts))


def test_text_alone_leaves_them_missing_with_the_reason():
    generations, _ = collected(
        ["token_sar", "ccp", "sar", "num_set"], FakeModel(provides=frozenset({"text"}))
    )
    found = {
        name: METHODS[name].evaluate(generations[0]).missing
        for name in ("token_sar", "ccp", "sar", "num_set")
    }
    assert found == {
        "token_sar": "the backend gives no logprobs", "ccp": "the backend gives no logprobs",
        "sar": "the backend gives no logprobs", "num_set": "",
    }  # fmt: skip


def test_a_backend_may_say_itself_what_it_lacks():
    model = FakeModel()
    model.lacks = {"answer.renyi": "the size of the vocabulary is not known"}  # type: ignore[attr-defined]
    generations, _ = collected(["renyi_divergence"], model)
    without = replace(generations[0], answer=Reply("x", TokenTrace(("x",), np.array([-1.0]))))
    assert (
        METHODS["renyi_divergence"].evaluate(without).missing
        == "the size of the vocabulary is not known"
    )


def test_the_context_of_relevance_is_a_parameter():
    bare, full = (collected(["token_sar"], relevance_context=c)[0] for c in ("answer", "full"))
    assert not np.allclose(bare[0].relevance, full[0].relevance)  # type: ignore[arg-type]
    assert (
        bare[0].parameters.relevance_context == "answer"
        and full[0].parameters.relevance_context == "full"
    )


def test_the_stand_in_refuses_patient_information_in_front_of_a_diagnosis():
    with pytest.raises(ValueError, match="needs an NLI model"):
        collected(["num_set"], entailment_context="full")


def test_a_real_judge_reads_the_patient_information_in_front():
    judge = Noting()
    settings = Settings(Parameters(n_samples=4, entailment_context="full"))
    collect(
        FakeModel(),
        VIEWS[:1],
        select(["num_set"]),
        settings,
        readers=Readers(FakeEncoder(), None, judge),
    )  # type: ignore[arg-type]
    assert judge.asked[0] and all(
        text.startswith(VIEWS[0].text + "\n") for pair in judge.asked[0] for text in pair
    )


def test_a_medical_encoder_is_used_where_one_is_named():
    settings = Settings(Parameters(n_samples=4))
    readers = Readers(FakeEncoder(), FakeEncoder(), Told())  # type: ignore[arg-type]
    (g,) = collect(
        FakeModel(), VIEWS[:1], select(["semantic_similarity_med"]), settings, readers=readers
    )
    assert METHODS["semantic_similarity_med"].evaluate(g).missing == "" and g.similarity is None
