"""Holds a local model's replies to a form."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from trustlab.models.base import Request

LEAST_REPEATED, LONGEST_CYCLE, TIMES = 36, 48, 3
"""A reply's last tokens, at least so many, are one piece, at most so long, at least so often."""
COMPACT: Any = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}


def repeats_itself(ids: np.ndarray) -> bool:
    """Whether a reply's tokens (n,) end in a cycle."""
    for period in range(1, min(LONGEST_CYCLE, len(ids) // TIMES) + 1):
        tail = ids[-max(LEAST_REPEATED, TIMES * period) :]
        if len(tail) >= LEAST_REPEATED and np.array_equal(tail[period:], tail[:-period]):
            return True
    return False


class Forms:
    """What the replies of one model may say next. A request with a ``schema`` is held to it, unless
    it wants token statistics: no method sees a constrained distribution. ``whole``: where a
    model leaves the form, what can only come next comes in the longest tokens, as in replies that
    it was taught, and is not spelt by letters."""

    def __init__(
        self, tokenizer: Any, ends: Sequence[int], n_tokens: int, whole: bool = False
    ) -> None:
        try:
            import llguidance.hf
        except ImportError as error:
            how = 'pip install "trustlab[chat]"'
            raise ImportError(f"structured=True needs llguidance: {how}") from error
        self._whole = whole
        self._tokens = llguidance.hf.from_tokenizer(tokenizer, n_tokens, list(ends))

    def begin(self, request: Request) -> Any:
        """What holds one reply to the request; ``None`` where nothing does."""
        if request.schema is None or request.want:
            return None
        from llguidance import LLMatcher

        schema = json.loads(request.schema)
        if schema["type"] == "grammar":
            return LLMatcher(self._tokens, schema["lark"])
        if schema["type"] == "string":
            return LLMatcher(self._tokens, LLMatcher.grammar_from_regex(schema["pattern"]))
        grammar = LLMatcher.grammar_from_json_schema(request.schema, overrides=COMPACT)
        return LLMatcher(self._tokens, grammar)

    def masked(self, logits: Any, node: np.ndarray, matchers: Sequence[Any]) -> Any:
        """Logits (n, N) without the tokens that may not come next in the replies at ``node`` (A,),
        each with its matcher or ``None``; replies at one node have one form."""
        import torch
        from llguidance.numpy import allocate_token_bitmask, fill_next_token_bitmask

        each = zip(node.tolist(), matchers, strict=True)
        held = {row: matcher for row, matcher in each if matcher is not None}
        n_tokens = self._tokens.vocab_size
        words = allocate_token_bitmask(1, n_tokens)
        logits = logits.clone() if held else logits
        for row, matcher in held.items():
            fill_next_token_bitmask(matcher, words, 0)
            barred = np.ones(logits.shape[1], dtype=bool)
            allowed = np.unpackbits(words[0].view(np.uint8), bitorder="little")[:n_tokens]
            barred[: len(allowed)] = allowed[: len(barred)] == 0
            if self._whole and barred[int(logits[row].argmax())]:
                fixed, decoded = matcher.compute_ff_bytes(), self._tokens.decode_bytes
                allowed = np.flatnonzero(~barred).tolist() if fixed else []
                begun = [token for token in allowed if fixed.startswith(decoded([token]))]
                begun.sort(key=lambda token: len(decoded([token])))
                barred[begun[:-1]] = True
            logits[row].masked_fill_(torch.from_numpy(barred).to(logits.device), -torch.inf)
        return logits
