"""Forward passes of a causal language model, with whatever cache and padding its kind allows."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np

from trustlab.models.decoding import Ids, left_padded

CACHES = ("past_key_values", "cache_params")
"""What the cache is called among a model's arguments and outputs."""
ATTENTION = {"full_attention", "sliding_attention", "chunked_attention"}
"""Layers that a mask can keep from seeing padding; convolutions and recurrences run through it."""


class Passes:
    """The forward pass of ``model`` on ``device``.

    ``pads``: rows of different lengths may share a pass. Not so in models that take no positions or no mask, or have
    recurrent layers.
    """

    def __init__(self, model: Any, device: str) -> None:
        import torch

        self._torch: Any = torch
        self.model, self.device = model, device
        self._accepts = set(inspect.signature(model.forward).parameters)
        layers = set(getattr(model.config.get_text_config(), "layer_types", None) or ())
        masked = layers <= ATTENTION and not getattr(model, "_is_stateful", False)
        self.pads = masked and {"attention_mask", "position_ids"} <= self._accepts
        self._cache = next((name for name in CACHES if name in self._accepts), None)
        # Some keep their state in the modules, where rows cannot be chosen.
        if any(hasattr(module, "_setup_cache") for module in model.modules()):
            self._cache = None

    def run(self, ids: np.ndarray, padding: np.ndarray, past: int, cache: Any, keep: int) -> tuple[np.ndarray, Any]:
        """Logits of the last ``keep`` positions, (n, keep, N), and the cache; it held ``past`` columns before.

        ``ids`` (n, width) are the new columns, ``padding`` (n,) how many columns of each row are filling. The cache is
        ``None`` where the model has none whose rows can be chosen: then ``ids`` must be everything so far.
        """
        columns = np.arange(past + ids.shape[1])
        inputs = {"input_ids": ids, "position_ids": np.maximum(columns[past:] - padding[:, None], 0)}
        if self.pads:
            inputs["attention_mask"] = (columns >= padding[:, None]).astype(np.int64)
        given: dict[str, Any] = {k: self._torch.from_numpy(v).to(self.device) for k, v in inputs.items() if k in self._accepts}
        if "logits_to_keep" in self._accepts:  # spares the vocabulary-wide product at every other position
            given["logits_to_keep"] = keep
        given |= {"use_cache": True, self._cache: cache} if self._cache else {}
        if not self._cache and "use_cache" in self._accepts:
            given["use_cache"] = False
        with self._torch.inference_mode():
            out = self.model(**given)
        held = getattr(out, self._cache, None) if self._cache else None
        if not hasattr(held, "reorder_cache"):
            self._cache = held = None
        logits = out.logits[:, -keep:]
        return (logits if logits.dtype == self._torch.float64 else logits.float()).cpu().numpy(), held


class Branches:
    """The distinct beginnings of the replies to a batch of prompts: a prefix tree's nodes of one depth, a row each."""

    def __init__(self, passes: Passes, prompts: Sequence[Ids]) -> None:
        self._passes = passes
        self._ids, self._padding = left_padded(prompts)
        self._past, self._cache = 0, None

    def read(self) -> np.ndarray:
        """Logits of the next token at every node, (n, N)."""
        logits, self._cache = self._passes.run(self._ids, self._padding, self._past, self._cache, keep=1)
        return logits[:, 0]

    def extend(self, parent: np.ndarray, token: np.ndarray) -> None:
        """Replace the nodes: new node i is old node ``parent[i]`` followed by ``token[i]``, both (m,)."""
        if self._cache is None:
            self._ids = np.concatenate([self._ids[parent], token[:, None]], axis=1)
        else:
            self._past += self._ids.shape[1]
            self._ids = token[:, None]
            if not np.array_equal(parent, np.arange(len(self._padding))):
                self._cache.reorder_cache(self._passes._torch.from_numpy(parent).to(self._passes.device))
        self._padding = self._padding[parent]
