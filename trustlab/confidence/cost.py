"""What a method costs, read from what it needs: model calls for one answer, and other readers."""

from __future__ import annotations

from trustlab.confidence.registry import Method

CALLS = (
    (("answer.prior_logprobs",), "1 scoring"),
    (("samples", "samples.logprobs", "similarity", "similarity_med", "entailment", "contradiction", "sample_relevance"), "K"),
    (("probes.ce",), "1"),
    (("probes.cot_ce",), "1"),
    (("probes.topk_ce",), "1"),
    (("probes.p_true",), "K"),
    (("assessment",), "1 + 2 per distinct answer"),
    (("panel", "panel.cosines"), "K doctors"),
)
"""Needs, and the calls that any of them adds to the one that gives the answer."""
READERS = (
    (("similarity", "relevance", "sample_relevance", "panel.cosines"), "encoder"),
    (("similarity_med",), "medical encoder"),
    (("entailment", "contradiction", "alternative_entailment"), "entailment"),
    (("assessment",), "retriever"),
)
"""Needs, and who else has to read for them."""


def calls(method: Method) -> str:
    """Model calls for one answer, such as ``1 + K``; '0' where nothing the model says is read.

    The answer's own call is the first 1, samples are K replies to the same prompt. Methods that need the same share it.
    """
    if set(method.needs) <= {"shown"}:
        return "0"
    return " + ".join(["1", *_needed(method, CALLS)])


def readers(method: Method) -> str:
    """Who else reads, such as ``encoder, entailment``; '' if nobody."""
    return ", ".join(_needed(method, READERS))


def _needed(method: Method, table: tuple[tuple[tuple[str, ...], str], ...]) -> list[str]:
    return [words for needs, words in table if set(needs) & set(method.needs)]
