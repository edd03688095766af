"""Generations made by hand, for tests of what reads them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from fake_medconf import CASE_STUDY

from trustlab.metrics.trust import majority
from trustlab.parsing.scores import probes_read
from trustlab.records import (
    GIVEN,
    PARAMETERS,
    Assessment,
    Generation,
    Opinion,
    Panel,
    Reply,
    TokenTrace,
)


def array(values) -> np.ndarray:
    made = np.array(values, dtype=float)
    made.setflags(write=False)
    return made


def said(text: str | None, probs=(0.5, 0.25), **statistics) -> Reply:
    """A readable diagnosis whose tokens have these probabilities and other statistics."""
    bounds = statistics.pop("bounds", {})
    rows: dict[str, Any] = {name: array(values) for name, values in statistics.items()}
    with np.errstate(divide="ignore"):
        rows["logprobs"] = array(np.log(probs))
    return Reply(text, TokenTrace(("x",) * len(probs), bounds=bounds, **rows))


def told(*texts: str | None) -> tuple[Reply, ...]:
    return tuple(Reply(text) for text in texts)


def generation(**parts) -> Generation:
    """A generation of case c1 at 20 %, with ``parts`` filled in and its ``probes`` read."""
    shown: dict[str, Any] = {"n_statements": 3, "n_total": 12, "n_words": 40} | parts
    return probes_read(Generation(case_id="c1", level=20, model="made", seed=0, **shown))


def sampled(*texts: str) -> Generation:
    return generation(samples=told(*texts))


def answered(probs=(0.5, 0.25), **statistics) -> Generation:
    return generation(answer=said("Flu", probs, **statistics))


def pmi_of(probs, priors, entropies=(2, 2)) -> Generation:
    """Tokens with these probabilities with the patient information and without it."""
    return answered(probs, prior_logprobs=np.log(priors), entropies=entropies)


def guessing(*scores: float) -> Generation:
    """An answer with several guesses of its score."""
    reply = " ".join(f"G{k}: [{score}]" for k, score in enumerate(scores, 1))
    return generation(probes={"topk_ce": told(reply)})


def given(probe: str, likely: dict[str, Any], rest: Any = (1e-3, 1e-3)) -> dict[str, Any]:
    """The texts of a probe as scored: text -> its tokens' probabilities, ``rest`` for others."""
    return {probe: tuple(said(text, likely.get(text, rest)) for text in GIVEN[probe][1])}


def cosines(*off: float) -> np.ndarray:
    """Three samples' cosines: of 1 and 2, 1 and 3, 2 and 3."""
    a, b, c = off
    return array([[1, a, b], [a, 1, c], [b, c, 1]])


def meant(
    *sets: int, samples: tuple[Reply, ...] | None = None, similarity: np.ndarray | None = None
) -> Generation:
    """Samples that mean what their numbers say: equal numbers entail each other 0.9 and contradict
    0.05, others reversed."""
    same = np.equal.outer(sets, sets)
    own = np.eye(len(sets), dtype=bool)
    return generation(
        samples=samples or tuple(said(f"name {i}") for i in range(len(sets))),
        similarity=similarity,
        entailment=array(np.where(own, 1.0, np.where(same, 0.9, 0.05))),
        contradiction=array(np.where(own, 0.0, np.where(same, 0.05, 0.9))),
    )


def panel(*votes: str | None, cosines: tuple[float, ...] | None = None) -> Panel:
    """Doctors with these diagnoses, and what their panel decides."""
    opinions = tuple(Opinion("made", i, "It fits.", vote) for i, vote in enumerate(votes))
    return Panel(opinions, votes, *majority(votes, "c1"), cosines)


STATISTICS = {
    "entropies": [1.5, 0.5],
    "renyi": [2.0, 4.0],
    "fisher_rao": [0.6, 0.8],
    "prior_logprobs": np.log([0.1, 0.05]),
    "certainty": [3.0, 2.0],
}
ALTERNATIVES = tuple(
    tuple((token, float(np.log(p))) for token, p in listed)
    for listed in ([("x", 0.5), ("y", 0.3), ("z", 0.2)], [("y", 0.5), ("x", 0.25), ("z", 0.25)])
)
"""The whole of two distributions over three tokens."""
FULL_ANSWER = said("Flu", **STATISTICS)
assert FULL_ANSWER.trace is not None
FULL = generation(
    answer=replace(FULL_ANSWER, trace=replace(FULL_ANSWER.trace, alternatives=ALTERNATIVES)),
    samples=(said("Flu"), said("flu.", (0.5, 0.5)), said("Acute croup", (0.4, 0.2, 0.1))),
    similarity=cosines(0.9, 0.2, 0.1),
    similarity_med=cosines(0.8, 0.4, 0.3),
    entailment=cosines(0.9, 0.1, 0.2),
    contradiction=array([[0, 0.05, 0.7], [0.05, 0, 0.6], [0.7, 0.6, 0]]),
    answer_similarity=array([1, 0.9, 0.2]),
    answer_entailment=array([[1, 0.9, 0.1], [1, 0.9, 0.2]]),
    answer_contradiction=array([[0, 0.05, 0.7], [0, 0.05, 0.5]]),
    relevance=array([0.7, 0.3]),
    sample_relevance=(array([0.7, 0.3]), array([0.5, 0.5]), array([0.2, 0.5, 0.3])),
    alternative_entailment=(np.array([1, -1, 0]), np.array([1, 1, -1])),
    probes={
        "ce": told("[85]"),
        "cot_ce": told("It fits. [80]"),
        "topk_ce": told("G1: [80] G2: [85] G3: [90] G4: [75] G5: [80]"),
        "p_true": told("True", "False", "True", "perhaps"),
        **given("ce_expected", {"[80]": (0.5, 0.4), "[95]": (0.5, 0.2)}, (1e-300,)),
        **given("p_true_probability", {"True": (0.6,), "False": (0.5, 0.4)}),
    },
    assessment=Assessment("Flu", score=35.0, evidence=CASE_STUDY),
    panel=panel("flu", "flu", "croup", cosines=(0.4, 0.1, 0.3)),
    exact=0.62,
    parameters=replace(PARAMETERS, n_samples=3, n_alternatives=3),
)
"""Everything a method may need, each part a different number."""


def without(whole: Generation, need: str) -> Generation:
    """``whole`` with the part that ``need`` names taken out."""
    head, _, tail = need.partition(".")
    if head == "probes":
        kept = {name: replies for name, replies in whole.probes.items() if name != tail}
        return replace(whole, probes=kept)
    if not tail:
        return replace(whole, **{head: None})
    if head == "panel":
        assert whole.panel is not None
        return replace(whole, panel=replace(whole.panel, **{tail: None}))

    def cut(reply: Reply) -> Reply:
        assert reply.trace is not None
        return replace(reply, trace=replace(reply.trace, **{tail: None}))

    part = getattr(whole, head)
    return replace(whole, **{head: tuple(map(cut, part)) if head == "samples" else cut(part)})


def reordered(whole: Generation, order: list[int]) -> Generation:
    """``whole`` with its samples, and every matrix and list about them, in another order."""
    square = np.ix_(order, order)
    names = ("similarity", "similarity_med", "entailment", "contradiction")
    parts: dict[str, Any] = {name: getattr(whole, name)[square] for name in names}
    for name in ("answer_similarity", "answer_entailment", "answer_contradiction"):
        parts[name] = getattr(whole, name)[..., order]
    for name in ("samples", "sample_relevance"):
        parts[name] = tuple(getattr(whole, name)[i] for i in order)
    return replace(whole, **parts)
