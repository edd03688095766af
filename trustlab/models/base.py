"""The one protocol every model backend satisfies: requests in, replies out, in batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from trustlab.records import Reply

Messages = tuple[tuple[str, str], ...]
"""(role, content) pairs; roles are ``system``, ``user`` and ``assistant``."""

STATISTICS = ("logprobs", "distributions", "prior")
"""What a request may want beside the text. ``distributions``: entropy, Rényi, Fisher-Rao, alternatives."""


@dataclass(frozen=True)
class Request:
    """One question to a model.

    ``temperature`` 0 is greedy. ``n`` replies are drawn, reply i from a random stream that depends on
    ``seed``, i and the messages only, so neither batch nor order matters. ``want`` is a subset of
    :data:`STATISTICS`; ``prior_messages`` is the same conversation with the patient information left out,
    under which the reply's tokens are scored when ``prior`` is wanted. ``purpose`` labels the call in
    tables and plays no part in the answer.
    """

    messages: Messages
    n: int = 1
    temperature: float = 0.0
    max_tokens: int = 32
    seed: int = 0
    want: frozenset[str] = frozenset()
    prior_messages: Messages | None = None
    purpose: str = ""


@runtime_checkable
class Model(Protocol):
    """A backend. ``provides`` is a subset of {"text", *STATISTICS}; ``name`` is what tables show."""

    name: str
    revision: str
    provides: frozenset[str]

    def generate(self, requests: Sequence[Request]) -> list[list[Reply]]:
        """Answer every request with its ``n`` replies, in order."""
        ...
