"""Any model as its users see it behind an interface that returns words and no probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from trustlab.models.base import Model, Request
from trustlab.records import Reply

SHOWN = ("window", "count_tokens", "usage", "lacks")
"""What else of the wrapped model can be read, where it has it."""


class TextOnly:
    """``model`` with its token statistics hidden: the same words, no traces.

    ``name`` is what tables show (the wrapped model's where ``None``); ``revision`` is the wrapped model's with ``-text``.
    """

    provides: frozenset[str] = frozenset({"text"})

    def __init__(self, model: Model, name: str | None = None) -> None:
        self.model, self.name, self.revision = model, name or model.name, f"{model.revision}-text"

    def generate(self, requests: Sequence[Request]) -> list[list[Reply]]:
        """Answer every request with its ``n`` replies, in order; what it wants beside the text is not passed on."""
        asked = [replace(request, want=frozenset(), prior_messages=None) for request in requests]
        return [[replace(reply, trace=None) for reply in replies] for replies in self.model.generate(asked)]

    def __getattr__(self, name: str) -> Any:
        if name in SHOWN:
            return getattr(self.model, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
