"""What a confidence method has to beat: how much was told, and chance. They read nothing the model said."""

from __future__ import annotations

import hashlib
import json

from trustlab.confidence.registry import MissingValue, method
from trustlab.records import Generation


@method(family="baseline", access="black", scale="score", equation="", needs=("shown",), cite="")
def information_level(generation: Generation) -> float:
    """Share of the case's statements shown, in (0, 1]."""
    if generation.n_total < 1:
        raise MissingValue("the case has no statements")
    return generation.n_statements / generation.n_total


@method(family="baseline", access="black", scale="score", equation="", needs=("shown",), cite="")
def word_count(generation: Generation) -> float:
    """Number of words of patient information shown, at least 0."""
    return generation.n_words


@method(family="baseline", access="black", scale="score", equation="", needs=("shown",), cite="")
def random(generation: Generation) -> float:
    """A hash of seed, case and level, uniform in [0, 1): the same in every run, and knows nothing."""
    key = json.dumps([generation.seed, generation.case_id, generation.level]).encode()
    return (int.from_bytes(hashlib.sha256(key).digest()[:8], "big") >> 11) / 2**53
