"""Every confidence method's values: by hand, and by an independent program on random records."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal, getcontext

import numpy as np
import pytest
from each import each
from generations import FULL, answered, array, cosines, meant, said
from reference_methods import CLOSE, REFERENCE, WORKED

from benchmarks.records import random_records
from trustlab.confidence import METHODS
from trustlab.records import PARAMETERS, Generation, Reply

log, sqrt = math.log, math.sqrt


OTHERWISE = replace(
    PARAMETERS, pmi_weight=2.0, pmi_threshold=2.0, n_alternatives=3, sar_temperature=0.5,
    eigenvalue_cut=0.3, renyi_alpha=2.0,
)  # fmt: skip
RECORDS = [made.generation for made in random_records(50, seed=11)]
RECORDS += [made.generation for made in random_records(20, seed=12, parameters=OTHERWISE)]


def test_every_method_is_worked_out_by_hand_and_by_the_independent_program() -> None:
    assert set(WORKED) == set(METHODS) == set(REFERENCE)


@each("name", list(METHODS))
def test_worked_value(name: str) -> None:
    whole, value = WORKED[name]
    assert METHODS[name].score(whole) == pytest.approx(value, rel=1e-12)
    assert METHODS[name].evaluate(whole)[1:] == ("", "")


@each("name", list(METHODS))
def test_the_independent_program_gives_the_same_values(name: str) -> None:
    ours = [METHODS[name].score(record) for record in RECORDS]
    theirs = [REFERENCE[name](record) for record in RECORDS]
    assert ours == pytest.approx(theirs, rel=1e-9, abs=1e-9)
    assert len(set(theirs)) > 5  # the records tell the values apart


@each(
    ("relevance", "value"),
    [
        ([0.5, 1e-7], -log(2)),  # below 1e-6 a relevance is nothing
        ([1e-7, 9e-7], -1.5 * log(2)),  # none is left: every token counts alike
    ],
)
def test_token_sar_weighs_by_relevance(relevance: list[float], value: float) -> None:
    made = replace(FULL, relevance=array(relevance))
    assert METHODS["token_sar"].score(made) == pytest.approx(value, rel=1e-12)


def test_sar_takes_a_cosine_below_zero_for_none() -> None:
    against = replace(FULL, similarity=cosines(-0.9, -0.2, -0.1))
    plain = METHODS["mc_se"].score(FULL)
    for name in ("sentence_sar", "sentence_sar_printed"):
        assert METHODS[name].score(against) == pytest.approx(plain, rel=1e-12)


@each(
    "name",
    ["semantic_entropy", "sentence_sar", "sentence_sar_printed", "semantic_entropy_normalised"],
)
def test_a_probability_too_small_for_a_float_keeps_its_logarithm(name: str) -> None:
    nothing = said("Flu", (1e-300, 1e-300))
    alone = meant(0, 1, samples=(nothing, replace(nothing, text="Croup")), similarity=np.eye(2))
    expected = -log(2) if name == "semantic_entropy_normalised" else -600 * log(10)
    assert METHODS[name].score(alone) == pytest.approx(expected, rel=1e-12)


def exact_sentence_sar(
    logprobs: list[float], alike: np.ndarray, t: float, printed: bool
) -> Decimal:
    """Equations A24 and A25 with forty digits."""
    getcontext().prec = 40
    chances = [Decimal(value).exp() for value in logprobs]
    total = Decimal(0)
    for k, chance in enumerate(chances):
        support = Decimal(0)
        for j, other in enumerate(chances):
            if j != k:
                support += Decimal(float(min(max(alike[k, j], 0.0), 1.0))) * other
        support /= Decimal(t)
        total += chance.ln() + support if printed else (chance + support).ln()
    return total / len(chances)


@each(
    "logprobs",
    [
        [-800.0, -800.0, -800.0],
        [-800.0, -801.5, -799.0],
        [-800.0, -2.0, -900.0],
        [-708.0, -745.2, -746.0],
        [-5000.0, -5001.0, -4999.0],
        [-0.7, -1.2, -3.4],
    ],
)
def test_sentence_sar_is_exact_where_a_probability_is_no_float(logprobs: list[float]) -> None:
    alike = cosines(0.9, 0.3, -0.2)
    replies = [said("Flu", (0.5, 0.25)) for _ in logprobs]
    samples = tuple(
        replace(reply, trace=replace(reply.trace, logprobs=array([0.25 * value, 0.75 * value])))
        for reply, value in zip(replies, logprobs, strict=True)
    )
    for t in (0.001, 1e-12, 10.0):
        made = replace(
            meant(0, 1, 2, samples=samples, similarity=alike),
            parameters=replace(PARAMETERS, sar_temperature=t),
        )
        equal = replace(made, sample_relevance=tuple(np.ones(2) for _ in samples))
        halves = [value / 2 for value in logprobs]
        for name, of, record, printed in (
            ("sentence_sar", logprobs, made, False),
            ("sentence_sar_printed", logprobs, made, True),
            ("sar", halves, equal, False),
        ):
            expected = float(exact_sentence_sar(of, alike, t, printed))
            assert METHODS[name].score(record) == pytest.approx(expected, rel=1e-13), name


def entailing(pairs: dict[tuple[int, int], float], k: int = 3) -> Generation:
    """Samples: 0.1 to entail each other but for ``pairs``, 0.3 to contradict."""
    entailment = np.full((k, k), 0.1) + 0.9 * np.eye(k)
    for (i, j), value in pairs.items():
        entailment[i, j] = value
    return replace(meant(*range(k)), entailment=entailment, contradiction=0.3 * (1 - np.eye(k)))


@each(
    ("pairs", "k", "n_sets"),
    [
        ({(0, 1): 0.9, (1, 0): 0.9}, 3, 2),
        ({(0, 1): 0.9}, 3, 3),  # one direction is not enough
        ({(0, 1): 0.4, (1, 0): 0.4}, 3, 2),  # neutral is likelier than both, and not asked
        ({(0, 2): 0.9, (2, 0): 0.9, (2, 1): 0.9, (1, 2): 0.9}, 3, 1),  # 0 and 1 meet in 2
    ],
)
def test_samples_mean_the_same_if_both_entail_more_than_contradict(pairs, k: int, n_sets: int):
    assert METHODS["num_set"].score(entailing(pairs, k)) == pytest.approx(1 - n_sets / k)


def test_eigenvalues_below_the_cut_are_taken_and_one_at_the_cut_is_not() -> None:
    # two vectors, whose plane holds (1, 1, 1)
    made = replace(CLOSE, parameters=replace(PARAMETERS, eigenvalue_cut=0.95))
    assert METHODS["ecc"].score(made) == pytest.approx(0)


@each("k", [2, 3, 15])
@each(("name", "value"), [("eigv", 0.0), ("ecc", 1.0), ("deg", 1.0), ("semantic_similarity", 1.0)])
def test_equal_samples_have_exactly_the_same_value_however_many_they_are(
    name: str, value: float, k: int
) -> None:
    ones, samples = np.ones((k, k)), tuple(Reply("Asthma") for _ in range(k))
    same = replace(FULL, samples=samples, similarity=ones, entailment=ones, contradiction=0 * ones)
    assert METHODS[name].score(same) == value


def listing(listed: dict[str, float], classes: list[int], p: float = 0.5) -> Generation:
    """A token "x" of this probability beside those listed."""
    made = answered((p,), alternatives=None)
    assert made.answer is not None and made.answer.trace is not None
    alternatives = (tuple((text, log(q)) for text, q in listed.items()),)
    answer = replace(made.answer, trace=replace(made.answer.trace, alternatives=alternatives))
    return replace(made, answer=answer, alternative_entailment=(np.array(classes),))


FIRST_TWO = replace(PARAMETERS, n_alternatives=2)


@each(
    ("made", "value"),
    [
        (listing({"x": 0.5, "y": 0.25, "z": 0.2}, [1, -1]), 0.5 / 0.75),  # the first two alone
        # a token that is not listed entails all the same
        (listing({"y": 0.6, "z": 0.2}, [-1, 0], p=0.1), 0.1 / 0.7),
        # another token of the same probability is not the chosen one
        (listing({"y": 0.4, "z": 0.2}, [-1, 1], p=0.4), (0.4 + 0.2) / (0.4 + 0.4 + 0.2)),
    ],
)
def test_ccp_by_hand(made: Generation, value: float) -> None:
    assert METHODS["ccp"].score(replace(made, parameters=FIRST_TWO)) == pytest.approx(value)
