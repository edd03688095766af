"""Reads the confidence that the model states itself."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from statistics import fmean

from scipy.special import softmax

from trustlab.confidence.registry import MissingValue, method
from trustlab.records import NO_VERDICT, Generation, Reply

_method = partial(method, family="verbalized")
COMBINATIONS = {"mean": fmean, "first": lambda scores: scores[0], "max": max}


@_method("CE", "probability", "probes.ce", "", "tian2023just")
def ce(generation: Generation) -> float:
    """The score from 0 to 100 that the model gives its answer, divided by 100, in [0, 1]."""
    return _stated("ce", generation)


@_method("CoT-CE", "probability", "probes.cot_ce", "", "xiong2024can")
def cot_ce(generation: Generation) -> float:
    """The score from 0 to 100 that the model gives its answer after saying why, divided by 100, in
    [0, 1]."""
    return _stated("cot_ce", generation)


@_method("Top-k CE", "probability", "probes.topk_ce", "", "tian2023just")
def topk_ce(generation: Generation) -> float:
    """Mean of the model's five guesses of the score from 0 to 100, divided by 100, in [0, 1].

    The parameter ``topk_combination`` may take the first or the highest guess instead of the
    mean."""
    scores = [float(score) for score in _read(generation.probes["topk_ce"][0]).split()]
    return COMBINATIONS[generation.parameters.topk_combination](scores) / 100


@_method("P(True)", "probability", "probes.p_true", "4", "kadavath2022language")
def p_true(generation: Generation) -> float:
    """Share of "True" among the model's sampled judgements of its answer, in [0, 1].

    Fewer than 2 readable judgements are missing. The paper calls it white-box; sampling needs text
    only."""
    replies = generation.probes["p_true"]
    judgements = [reply.text == "True" for reply in replies if reply.text is not None]
    if len(judgements) < 2:
        raise MissingValue(_why_few(replies))
    return sum(judgements) / len(judgements)


@_method(
    "CE (expected)",
    "probability",
    "probes.ce_expected",
    "",
    "tian2023just liu2023geval",
)
def ce_expected(generation: Generation) -> float:
    """Mean of the scores 0, 5, ... 100, each weighed by its likelihood as the reply to CE's
    question, divided by 100, in [0, 1]."""
    of_texts = shares(generation, "ce_expected").items()
    return min(
        1.0, sum(share * float(text.strip("[]")) for text, share in of_texts) / 100
    )


@_method(
    "P(True), probability", "probability", "probes.p_true_probability", "4 (variant)",
    "kadavath2022language",
)  # fmt: skip
def p_true_probability(generation: Generation) -> float:
    """Likelihood of "True" against "False" as the model's judgement of its answer, in [0, 1]."""
    return shares(generation, "p_true_probability")["True"]


def shares(generation: Generation, probe: str) -> dict[str, float]:
    """Given text -> its likelihood as the reply to a probe, out of that of all its texts."""
    logs: dict[str, float] = {}
    for reply in generation.probes[probe]:
        if reply.trace is None or reply.trace.logprobs is None:
            raise MissingValue(
                reply.missing or "the backend gave a text no log-probabilities"
            )
        logs[_read(reply)] = float(reply.trace.logprobs.sum())
    return dict(zip(logs, softmax(list(logs.values())).tolist(), strict=True))


def _stated(probe: str, generation: Generation) -> float:
    """The one score of the reply to a probe, divided by 100."""
    return float(_read(generation.probes[probe][0])) / 100


def _read(reply: Reply) -> str:
    """What was read of a reply; :class:`MissingValue` where that is nothing."""
    if reply.text is None:
        raise MissingValue(reply.missing)
    return reply.text


def _why_few(replies: Sequence[Reply]) -> str:
    """Why fewer than 2 judgements can be read: what all replies have in common, if anything."""
    why, *others = {reply.missing for reply in replies}
    if others or why in (None, NO_VERDICT):
        return "fewer than 2 replies are True or False"
    return why
