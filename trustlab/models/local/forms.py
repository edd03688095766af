"""Holds a local model's replies to a form."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from trustlab.models.base import Request

LEAST_REPEATED = 36
LONGEST_CYCLE = 48
TIMES = 3
"""A reply's last tokens, at least so many, are one piece, at most so long, at least so often."""
COMPACT: Any = {
    "whitespace_flexible": False,
    "item_separator": ", ",
    "key_separator": ": ",
}


def repeats_itself(ids: np.ndarray) -> bool:
    """Whether a reply's tokens (n,) end in a cycle."""
    longest = min(LONGEST_CYCLE, len(ids) // TIMES)
    for period in range(1, longest + 1):
        n_tail = max(LEAST_REPEATED, TIMES * period)
        tail = ids[-n_tail:]
        if len(tail) >= LEAST_REPEATED and np.array_equal(
            tail[period:], tail[:-period]
        ):
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
            raise ImportError(
                'structured=True needs llguidance: pip install "trustlab[chat]"'
            ) from error
        self._whole = whole
        self._tokens = llguidance.hf.from_tokenizer(tokenizer, n_tokens, list(ends))

    def begin(self, request: Request) -> Any:
        """A matcher that holds one reply to the request's form; ``None`` where it has none."""
        if request.schema is None or request.want:
            return None
        from llguidance import LLMatcher

        schema = json.loads(request.schema)
        if schema["type"] == "grammar":
            return LLMatcher(self._tokens, schema["lark"])
        if schema["type"] == "string":
            return LLMatcher(
                self._tokens, LLMatcher.grammar_from_regex(schema["pattern"])
            )
        grammar = LLMatcher.grammar_from_json_schema(request.schema, overrides=COMPACT)
        return LLMatcher(self._tokens, grammar)

    def masked(self, logits: Any, node: np.ndarray, matchers: Sequence[Any]) -> Any:
        """Logits (n, N) without the tokens that may not come next in the replies at ``node`` (A,),
        each with its matcher or ``None``; replies at one node have one form."""
        import torch
        from llguidance.numpy import allocate_token_bitmask, fill_next_token_bitmask

        matcher_by_row = {}
        for row, matcher in zip(node.tolist(), matchers, strict=True):
            if matcher is not None:
                matcher_by_row[row] = matcher
        if not matcher_by_row:
            return logits
        n_tokens = self._tokens.vocab_size
        bitmask = allocate_token_bitmask(1, n_tokens)
        logits = logits.clone()
        for row, matcher in matcher_by_row.items():
            fill_next_token_bitmask(matcher, bitmask, 0)
            bits = np.unpackbits(bitmask[0].view(np.uint8), bitorder="little")
            is_allowed = bits[:n_tokens]
            is_barred = np.ones(logits.shape[1], dtype=bool)
            is_barred[: len(is_allowed)] = is_allowed[: len(is_barred)] == 0
            if self._whole and is_barred[int(logits[row].argmax())]:
                shorter = self._shorter_tokens(
                    matcher, np.flatnonzero(~is_barred).tolist()
                )
                is_barred[shorter] = True
            mask = torch.from_numpy(is_barred).to(logits.device)
            logits[row].masked_fill_(mask, -torch.inf)
        return logits

    def _shorter_tokens(self, matcher: Any, allowed: list[int]) -> list[int]:
        """Of the ``allowed`` tokens those that begin what can only come next, but the longest."""
        only_text = matcher.compute_ff_bytes()
        if not only_text:
            return []
        length_of = {}
        for token in allowed:
            text = self._tokens.decode_bytes([token])
            if only_text.startswith(text):
                length_of[token] = len(text)
        return sorted(length_of, key=length_of.__getitem__)[:-1]
