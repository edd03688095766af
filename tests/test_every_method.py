"""Properties of every registered method: a new one cannot be forgotten, since tables here must name
what is registered."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from each import each
from generations import FULL, reordered, said, without
from reference_methods import n_samples
from saying import says

from benchmarks.records import random_records
from trustlab.confidence import METHODS, MissingValue
from trustlab.confidence.registry import FAMILIES
from trustlab.records import Generation, Reply, TokenTrace

EVERY = each("name", list(METHODS))
RECORDS = [made.generation for made in random_records(200, seed=21)]


def test_every_method_is_declared_whole() -> None:
    for name, m in METHODS.items():
        assert m.name == name and m.summary.endswith((".", ":")), name
        assert m.needs and m.family in FAMILIES, name
        assert m.cite or m.family in ("baseline", "trust", "reference"), name


@each("name", [name for name, m in METHODS.items() if m.scale == "probability"])
def test_a_probability_is_from_0_to_1(name: str) -> None:
    for made in RECORDS:
        assert -1e-12 <= METHODS[name].score(made) <= 1 + 1e-12


@EVERY
def test_order_of_samples_does_not_matter(name: str) -> None:
    samples = (said("Flu"), said("Flu", (0.5, 0.5)), said("Acute croup", (0.4, 0.2, 0.1)))
    for made in (FULL, replace(FULL, samples=samples), *RECORDS[:20]):
        value, k = METHODS[name].score(made), n_samples(made)
        for order in ([*range(k)][::-1], [*range(1, k), 0]):
            found = METHODS[name].score(reordered(made, order))
            assert found == pytest.approx(value, rel=1e-9, abs=1e-12)


@EVERY
def test_a_missing_need_gives_a_reason_and_no_number(name: str) -> None:
    for need in METHODS[name].needs:
        if need == "shown":
            continue
        confidence, missing, bound = METHODS[name].evaluate(without(FULL, need))
        assert math.isnan(confidence) and bound == ""
        assert missing == f"{need} not collected"
        with pytest.raises(MissingValue, match="not collected"):
            METHODS[name].score(without(FULL, need))


def last_changed(part, value: float):
    """A copy of an array, or of the first array in a tuple, with ``value`` in its last place."""
    if isinstance(part, tuple):
        return (last_changed(part[0], value), *part[1:])
    changed = np.array(part, dtype=float)
    changed.flat[-1] = value
    return changed


def with_trace(
    made: Generation, need: str, position: int, change: Callable[[TokenTrace], dict[str, Any]]
) -> Generation:
    """``made`` with the trace that ``need`` reads changed: of the answer, or of the sample at
    ``position``."""

    def changed(reply: Reply) -> Reply:
        assert reply.trace is not None
        return replace(reply, trace=replace(reply.trace, **change(reply.trace)))

    if need.startswith("answer"):
        assert made.answer is not None
        return replace(made, answer=changed(made.answer))
    assert made.samples is not None
    samples = [changed(s) if i == position else s for i, s in enumerate(made.samples)]
    return replace(made, samples=tuple(samples))


def with_number(need: str, value: float, made: Generation = FULL) -> Generation:
    """``made`` with ``value`` as one of the numbers of ``need``, which holds some."""
    head, _, tail = need.partition(".")
    if not tail:
        return replace(made, **{head: last_changed(getattr(made, head), value)})

    def change(trace: TokenTrace) -> dict[str, Any]:
        part: Any = getattr(trace, tail)
        if tail == "alternatives":
            first, *rest = part
            return {tail: ((*first[:2], (first[2][0], value)), *rest)}
        return {tail: last_changed(part, value)}

    return with_trace(made, need, 0, change)


def quietly(name: str, made: Generation) -> tuple[float, str]:
    """What a method makes of a generation, and why it is missing; no warning may come with it."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        confidence, missing, _ = METHODS[name].evaluate(made)
    assert [str(w.message) for w in heard] == []
    return confidence, missing


NUMBERS = (
    "answer.logprobs", "answer.entropies", "answer.renyi", "answer.fisher_rao",
    "answer.prior_logprobs", "answer.alternatives", "samples.logprobs", "similarity",
    "similarity_med", "entailment", "contradiction", "relevance", "sample_relevance",
    "alternative_entailment",
)  # fmt: skip
LOGS = {"answer.logprobs", "answer.prior_logprobs", "answer.alternatives", "samples.logprobs"}
READ = [(name, need) for name, m in METHODS.items() for need in m.needs if need in NUMBERS]


@each(("name", "need"), READ)
def test_a_number_that_is_none_makes_the_value_missing(name: str, need: str) -> None:
    for value in (math.nan, math.inf, *([] if need in LOGS else [-math.inf])):
        confidence, missing = quietly(name, with_number(need, value))
        assert math.isnan(confidence) and says(missing, need, "NaN")


@EVERY
def test_an_unreadable_answer_is_missing_for_every_method(name: str) -> None:
    unreadable = replace(FULL, answer=Reply(None, missing="no diagnosis in square brackets"))
    confidence, missing, _ = METHODS[name].evaluate(unreadable)
    assert math.isnan(confidence) and missing == "unreadable answer"
    failed = replace(FULL, answer=Reply(None, missing="the server did not answer", finish="error"))
    assert METHODS[name].evaluate(failed).missing == "the server did not answer"


RAISED: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "logprobs": lambda values: values * 0.7,
    "prior_logprobs": lambda values: values * 0.7,
    "entropies": lambda values: values + 0.8,
    "renyi": lambda values: values + 0.1,
    "fisher_rao": lambda values: values + (1 - values) / 2,
}
"""Statistics that a truncated distribution may bound, and how to raise them."""
BELOW = {statistic: {statistic: "lower"} for statistic in RAISED}
BOUNDABLE = [
    (name, need)
    for name, m in METHODS.items()
    for need in m.needs
    if need.partition(".")[2] in RAISED
]


@each(("name", "need"), BOUNDABLE)
def test_a_bound_is_claimed_on_the_side_to_which_the_value_moves(name: str, need: str) -> None:
    statistic, m = need.partition(".")[2], METHODS[name]

    def raise_it(trace: TokenTrace) -> dict[str, Any]:
        return {statistic: RAISED[statistic](getattr(trace, statistic))}

    for made in RECORDS[:40]:
        position = n_samples(made) - 1
        lower = m.evaluate(with_trace(made, need, position, lambda _: {"bounds": BELOW[statistic]}))
        moved = m.score(with_trace(made, need, position, raise_it)) - m.score(made)
        assert lower.bound or lower.missing
        assert lower.bound != "lower" or moved >= -1e-9  # the true value, above what is reported
        assert lower.bound != "upper" or moved <= 1e-9
