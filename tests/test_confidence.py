"""Every confidence method: worked values, and properties that hold for whatever is registered."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import pytest
from fake_medconf import table
from generations import FULL, answered, array, cosines, generation, reordered, said, sampled, told, without
from hypothesis import given, settings
from hypothesis import strategies as st

from trustlab.confidence import METHODS, NEEDS, PARAMETERS, MissingValue
from trustlab.confidence.registry import FAMILIES, WHITE_NEEDS
from trustlab.records import IMPORTANCES, SUPPORT_LEVELS, Assessment, Generation, Reply

RANDOM_C1 = 0.36057109133365406
"""First 53 bits of sha256sum's digest of '[0, "c1", 20]', over 2**53."""


EVERY = pytest.mark.parametrize("name", list(METHODS))

P, Q, R = math.log(0.5), math.log(0.25), math.log(0.1)
S = math.log(0.05)

WORKED: dict[str, tuple[Generation, float]] = {
    "asp": (FULL, 0.375),
    "msp": (FULL, 0.5),
    "sequence_probability": (FULL, 0.125),
    "min_token_probability": (FULL, 0.25),
    "perplexity": (FULL, -math.sqrt(8)),
    "entropy": (FULL, -1.0),
    "pmi": (FULL, math.log(5)),  # both tokens became five times as probable
    "conditional_pmi": (FULL, (P + Q) / 2 + 0.5 / 2 * R),  # only the first token's entropy reaches 1 nat
    "conditional_pmi_original": (FULL, (P + Q) / 2 - 0.5 / 2 * R),
    "renyi_divergence": (FULL, 3.0),
    "fisher_rao": (FULL, 0.7),
    "poc": (FULL, 2 / 3),
    # "Flu" and "flu." are one word to ROUGE; neither shares a word with "Acute croup".
    "lexical_similarity": (FULL, 1 / 3),
    "semantic_similarity": (FULL, 0.4),
    "mc_se": (FULL, (math.log(0.125) + math.log(0.25) + math.log(0.008)) / 3),
    "mc_nse": (FULL, (math.log(0.125) / 2 + math.log(0.25) / 2 + math.log(0.008) / 3) / 3),
    "ce": (FULL, 0.85),
    "cot_ce": (FULL, 0.8),
    "topk_ce": (FULL, 0.82),
    "p_true": (FULL, 2 / 3),
    "medconf": (FULL, 0.35),
    "medconf_weighted": (FULL, 5 / 17),  # of 3 strong, 3 moderate and 2 weak criteria a strong and a moderate are supported
    "information_level": (FULL, 0.25),
    "word_count": (FULL, 40),
}

RANGE: dict[str, tuple[float, float]] = {
    "perplexity": (-math.inf, -1),
    "entropy": (-math.inf, 0),
    "pmi": (-math.inf, math.inf),
    "conditional_pmi": (-math.inf, 0),
    "conditional_pmi_original": (-math.inf, math.inf),
    "renyi_divergence": (0, math.inf),
    "fisher_rao": (0, 1),
    "lexical_similarity": (0, 1),
    "semantic_similarity": (-1, 1),
    "mc_se": (-math.inf, 0),
    "mc_nse": (-math.inf, 0),
    "medconf_weighted": (0, 1),
    "information_level": (0, 1),
    "word_count": (0, math.inf),
    "random": (0, 1),
}
"""Of the methods on the score scale; those on the probability scale are all in [0, 1]."""


def samples_with(*probs: tuple[float, ...]) -> Generation:
    return generation(samples=tuple(said("Flu", p) for p in probs))


def pmi_of(probs, priors, entropies=(2, 2)) -> Generation:
    return answered(probs, prior_logprobs=np.log(priors), entropies=entropies)


def guessing(*scores: float) -> Generation:
    return generation(probes={"topk_ce": told(" ".join(f"G{k}: [{score}]" for k, score in enumerate(scores, 1)))})


def weighed(*levels: str, score: float | None = None) -> Generation:
    """An assessment of a strong, a moderate and a weak criterion."""
    return generation(assessment=Assessment("Flu", score=score, evidence=table(levels, IMPORTANCES)))


SURER: dict[str, tuple[Generation, Generation]] = {
    "asp": (answered((0.9, 0.5)), answered((0.8, 0.5))),
    "msp": (answered((0.9, 0.5)), answered((0.8, 0.5))),
    "sequence_probability": (answered((0.9, 0.5)), answered((0.9, 0.5, 0.9))),
    "min_token_probability": (answered((0.9, 0.5)), answered((0.9, 0.4))),
    "perplexity": (answered((0.9, 0.5)), answered((0.8, 0.5))),
    "entropy": (answered(entropies=[0.1, 0.2]), answered(entropies=[0.1, 0.3])),
    "pmi": (pmi_of((0.9, 0.5), (0.1, 0.1)), pmi_of((0.9, 0.5), (0.1, 0.2))),
    "conditional_pmi": (pmi_of((0.9, 0.5), (0.1, 0.1)), pmi_of((0.8, 0.5), (0.1, 0.1))),
    # Only at equal entropies: a token that crosses the threshold gains confidence, as its authors print it.
    "conditional_pmi_original": (pmi_of((0.9, 0.5), (0.1, 0.1)), pmi_of((0.8, 0.5), (0.1, 0.1))),
    "renyi_divergence": (answered(renyi=[3, 3]), answered(renyi=[3, 2])),
    "fisher_rao": (answered(fisher_rao=[0.9, 0.9]), answered(fisher_rao=[0.9, 0.8])),
    "poc": (sampled("Flu", "flu", "Croup"), sampled("Flu", "Influenza", "Croup")),
    "lexical_similarity": (sampled("viral croup", "croup", "flu"), sampled("viral croup", "asthma", "flu")),
    "semantic_similarity": (replace(FULL, similarity=cosines(0.9, 0.3, 0.1)), replace(FULL, similarity=cosines(0.9, 0.2, 0.1))),
    "mc_se": (samples_with((0.9, 0.9), (0.5,)), samples_with((0.9, 0.8), (0.5,))),
    "mc_nse": (samples_with((0.9, 0.9), (0.5,)), samples_with((0.9, 0.8), (0.5,))),
    "ce": (generation(probes={"ce": told("[90]")}), generation(probes={"ce": told("[89]")})),
    "cot_ce": (generation(probes={"cot_ce": told("Why? [90]")}), generation(probes={"cot_ce": told("Why? [89]")})),
    "topk_ce": (guessing(80, 80, 80, 80, 81), guessing(80, 80, 80, 80, 80)),
    "p_true": (generation(probes={"p_true": told("True", "", "True")}), generation(probes={"p_true": told("True", "False")})),
    "medconf": (weighed("missing", "missing", "missing", score=41), weighed("supported", "supported", "supported", score=40)),
    "medconf_weighted": (weighed("supported", "missing", "missing"), weighed("missing", "supported", "missing")),
}
"""Per method a generation that is surer and one that is less sure, by the meaning of what the method reads."""


def leaves(thing: object) -> Iterator[object]:
    """Every array and plain value inside a record."""
    if is_dataclass(thing):
        for part in fields(thing):
            yield from leaves(getattr(thing, part.name))
    elif isinstance(thing, dict):
        for key, value in thing.items():
            yield key
            yield from leaves(value)
    elif isinstance(thing, tuple):
        for value in thing:
            yield from leaves(value)
    else:
        yield thing.tolist() if isinstance(thing, np.ndarray) else thing


@pytest.mark.parametrize("name", [n for n in METHODS if n != "random"])
def test_worked_value(name: str) -> None:
    assert name in WORKED, f"work out a value of {name} by hand and add it to WORKED"
    whole, value = WORKED[name]
    assert METHODS[name].score(whole) == pytest.approx(value, rel=1e-12)
    assert METHODS[name].evaluate(whole)[1:] == ("", "")


@pytest.mark.parametrize("name", [n for n, m in METHODS.items() if m.family != "baseline"])
def test_surer_scores_higher(name: str) -> None:
    assert name in SURER, f"add a surer and a less sure generation for {name} to SURER"
    surer, unsurer = SURER[name]
    assert METHODS[name].score(surer) > METHODS[name].score(unsurer)


@EVERY
def test_order_of_samples_does_not_matter(name: str) -> None:
    for order in ([1, 0, 2], [2, 1, 0], [1, 2, 0]):
        assert METHODS[name].score(reordered(FULL, order)) == pytest.approx(METHODS[name].score(FULL), rel=1e-12)


@EVERY
def test_input_is_not_changed(name: str) -> None:
    before = copy.deepcopy(list(leaves(FULL)))
    first, second = METHODS[name].score(FULL), METHODS[name].score(FULL)
    assert list(leaves(FULL)) == before
    assert first == second


@EVERY
def test_a_missing_need_gives_a_reason_and_no_number(name: str) -> None:
    for need in METHODS[name].needs:
        if need == "shown":
            continue
        confidence, missing, bound = METHODS[name].evaluate(without(FULL, need))
        assert math.isnan(confidence) and bound == ""
        assert missing == f"{need} not collected"
        given_reason = replace(without(FULL, need), reasons={need: "the server gives no such thing"})
        assert METHODS[name].evaluate(given_reason).missing == "the server gives no such thing"
        with pytest.raises(MissingValue, match="not collected"):
            METHODS[name].score(without(FULL, need))


@EVERY
def test_only_the_needs_are_read(name: str) -> None:
    bare = FULL
    for need in sorted(set(NEEDS) - {"shown", "panel", "alternative_entailment"}, key=len, reverse=True):
        if not any(n == need or n.startswith(need + ".") for n in METHODS[name].needs):
            bare = bare if getattr(bare, need.partition(".")[0]) is None else without(bare, need)
    assert METHODS[name].score(bare) == METHODS[name].score(FULL)


@EVERY
def test_an_unreadable_answer_is_missing_for_every_method(name: str) -> None:
    unreadable = replace(FULL, answer=Reply(None, missing="no diagnosis in square brackets"))
    confidence, missing, _ = METHODS[name].evaluate(unreadable)
    assert math.isnan(confidence) and missing == "unreadable answer"


@EVERY
def test_access_follows_from_the_needs(name: str) -> None:
    assert METHODS[name].access == ("white" if WHITE_NEEDS & set(METHODS[name].needs) else "black")


@EVERY
def test_declaration_is_whole(name: str) -> None:
    m = METHODS[name]
    assert m.name == name and m.summary.endswith((".", ":")) and m.needs and m.family in FAMILIES
    assert m.scale == "probability" or name in RANGE, f"add the range of {name} to RANGE"
    assert m.cite or m.family == "baseline"


unit = st.floats(0.001, 1)
nats = st.floats(0, 11)


@st.composite
def generations(draw: st.DrawFn) -> Generation:
    """A generation with answers, samples and similarities of any size that a model could give."""
    n_tokens, k = draw(st.integers(1, 4)), draw(st.integers(2, 4))

    def row(value: st.SearchStrategy, n: int) -> list:
        return draw(st.lists(value, min_size=n, max_size=n))

    statistics = {
        "entropies": row(nats, n_tokens),
        "renyi": row(nats, n_tokens),
        "fisher_rao": row(st.floats(0, 0.999), n_tokens),
    }
    answer = said("Flu", row(unit, n_tokens), prior_logprobs=np.log(row(unit, n_tokens)), **statistics)
    names = st.sampled_from(["Flu", "flu", "Acute croup", "croup", "Viral flu", "インフルエンザ"])
    samples = tuple(said(draw(names), row(unit, draw(st.integers(1, 3)))) for _ in range(k))
    vectors = np.random.default_rng(draw(st.integers(0, 99))).normal(size=(k, 5))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    ce = draw(st.integers(0, 100))
    judged = draw(st.lists(st.sampled_from(["True", "False", "?"]), min_size=1, max_size=5))
    guessed = draw(st.lists(st.integers(0, 101), min_size=4, max_size=6))
    topk = " ".join(f"G{i}: [{score}]" for i, score in enumerate(guessed, 1))
    probes = {"ce": told(f"[{ce}]"), "cot_ce": told(f"It fits. [{ce}]"), "topk_ce": told(topk), "p_true": told(*judged)}
    levels = row(st.sampled_from(SUPPORT_LEVELS), draw(st.integers(0, 5)))
    evidence = table(levels, row(st.sampled_from((*IMPORTANCES, None)), len(levels)))
    assessment = Assessment("Flu", evidence=evidence, score=draw(st.none() | st.floats(0, 100)))
    similarity = array(vectors @ vectors.T)
    return generation(answer=answer, samples=samples, similarity=similarity, probes=probes, assessment=assessment)


@settings(max_examples=60, deadline=None)
@given(generations())
def test_values_are_in_the_declared_range(made: Generation) -> None:
    for name, m in METHODS.items():
        low, high = (0, 1) if m.scale == "probability" else RANGE[name]
        confidence, missing, _ = m.evaluate(made)
        assert low - 1e-12 <= confidence <= high + 1e-12 or missing, f"{name} is {confidence}, outside {low} to {high}"
        assert math.isnan(confidence) == bool(missing)


def test_lexical_similarity_counts_ordered_pairs_and_stems() -> None:
    score = METHODS["lexical_similarity"].score
    assert score(sampled("lung infections", "lung infection")) == 1  # one stem
    assert score(sampled("viral croup", "croup")) == pytest.approx(2 / 3)  # recall 1/2, precision 1
    # Pairs: croup-croup 1; twice croup against "viral croup" 2/3.
    assert score(sampled("croup", "viral croup", "croup")) == pytest.approx((1 + 2 / 3 + 2 / 3) / 3)
    assert score(sampled("インフルエンザ", "インフルエンザ")) == 1  # rouge-score reads no word here, but they are one


def test_poc_compares_names_and_not_writing() -> None:
    assert METHODS["poc"].score(sampled(" Flu ", "flu.", "FLU", "The flu")) == 0.75


def test_mc_se_of_one_improbable_sample() -> None:
    made = samples_with((0.1, 0.1), (1.0,))
    assert METHODS["mc_se"].score(made) == pytest.approx(2 * R / 2)
    assert METHODS["mc_nse"].score(made) == pytest.approx(R / 2)


def test_conditional_pmi_includes_the_threshold_itself() -> None:
    assert PARAMETERS.pmi_threshold == 1.0
    made = pmi_of((0.5, 0.25), (0.1, 0.05), entropies=(1.0, 0.999))
    assert METHODS["conditional_pmi"].score(made) == pytest.approx((P + Q) / 2 + R / 4)
    both = pmi_of((0.5, 0.25), (0.1, 0.05), entropies=(1.0, 1.0))
    assert METHODS["conditional_pmi"].score(both) == pytest.approx((P + Q) / 2 + (R + S) / 4)


@pytest.mark.parametrize("name", ["poc", "lexical_similarity", "semantic_similarity", "mc_se", "mc_nse"])
@pytest.mark.parametrize("k", [0, 1])
def test_one_sample_says_nothing_about_consistency(name: str, k: int) -> None:
    made = generation(samples=(said("Flu"),) * k, similarity=array(np.ones((k, k))))
    assert METHODS[name].evaluate(made).missing == "fewer than 2 readable samples"


def test_a_diagnosis_without_tokens_is_missing() -> None:
    assert METHODS["sequence_probability"].evaluate(answered(())).missing == "the diagnosis has no tokens"
    assert METHODS["mc_se"].evaluate(samples_with((), (0.5,))).missing == "a sampled diagnosis has no tokens"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_result_that_is_not_finite_is_missing(value: float) -> None:
    confidence, missing, _ = METHODS["renyi_divergence"].evaluate(answered(renyi=[1.0, value]))
    assert math.isnan(confidence) and missing == f"renyi_divergence is {value}"


@pytest.mark.parametrize("name", ["ce", "cot_ce"])
@pytest.mark.parametrize("text", ["85", "[101]", "[80] [90]", None])
def test_an_unreadable_score_is_missing(text: str | None, name: str) -> None:
    made = generation(probes={name: (Reply(text, missing=None if text else "refused"),)})
    expected = "no single number from 0 to 100 in square brackets" if text else "refused"
    assert METHODS[name].evaluate(made).missing == expected


@pytest.mark.parametrize("scores", [(80, 85, 90, 75), (80, 85, 90, 75, 80, 85), (80, 85, 90, 75, 101)])
def test_topk_ce_takes_exactly_five_guesses(scores: tuple[float, ...]) -> None:
    expected = "not exactly five guesses G1 to G5 from 0 to 100 in square brackets"
    assert METHODS["topk_ce"].evaluate(guessing(*scores)).missing == expected
    refused = generation(probes={"topk_ce": (Reply(None, missing="refused"),)})
    assert METHODS["topk_ce"].evaluate(refused).missing == "refused"


@pytest.mark.parametrize(("combination", "value"), [("mean", 0.82), ("first", 0.8), ("max", 0.9)])
def test_topk_combination_is_a_parameter(combination: Any, value: float) -> None:
    assert PARAMETERS.topk_combination == "mean"
    chosen = replace(FULL, parameters=replace(PARAMETERS, topk_combination=combination))
    assert METHODS["topk_ce"].score(chosen) == pytest.approx(value, rel=1e-12)


def test_p_true_counts_readable_replies_only() -> None:
    score = METHODS["p_true"].evaluate
    assert score(generation(probes={"p_true": told("True", None, "maybe", "false.")})).confidence == 0.5
    assert score(generation(probes={"p_true": told("True", "maybe")})).missing == "fewer than 2 replies are True or False"


def test_random_is_a_hash() -> None:
    score: Callable[[Generation], float] = METHODS["random"].score
    drawn = [score(replace(generation(), case_id=f"c{i}", level=level)) for i in range(500) for level in (1, 20)]
    assert len(set(drawn)) == 1000 and min(drawn) >= 0 and max(drawn) < 1
    assert np.mean(drawn) == pytest.approx(0.5, abs=0.04)  # four standard errors
    assert score(generation()) == score(replace(FULL, model="another")) == RANDOM_C1
    assert score(replace(generation(), seed=1)) != RANDOM_C1


def test_information_level_of_an_empty_case_is_missing() -> None:
    assert METHODS["information_level"].evaluate(generation(n_total=0, n_statements=0)).missing == "the case has no statements"


def test_a_matrix_of_another_size_is_our_own_mistake() -> None:
    with pytest.raises(ValueError, match=r"shape \(3, 3\).*received \(2, 2\)"):
        METHODS["semantic_similarity"].evaluate(replace(FULL, similarity=array(np.eye(2))))
