"""Any causal language model of the Hugging Face library, from a local folder or from the hub.

Replies to the same messages grow as one prefix tree: replies that agree so far share one row of the key-value cache
and one forward pass, so a prompt is read once however many replies it gets. All statistics come from the logits of
the pass that made the tokens, in float64.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import math
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from trustlab.models.base import STATISTICS, Messages, Request
from trustlab.models.decoding import (
    GrowingReplies,
    Ids,
    batches,
    check,
    distribution_statistics,
    inverse_cdf,
    left_padded,
    shift,
    text_pieces,
)
from trustlab.records import Reply, TokenTrace

DTYPES = ("float32", "float64", "float16", "bfloat16")
BLOCK_VALUES = 1 << 21
"""Logits worked on at once: keeps the float64 copies of a step to some tens of megabytes."""

MODEL_FILES = (
    "*.safetensors", "*.bin", "*.model", "*.index.json", "config.json", "generation_config.json", "tokenizer*.json",
    "special_tokens_map.json", "added_tokens.json", "vocab.json", "vocab.txt", "merges.txt", "chat_template.*",
)  # fmt: skip
"""What the revision of a local folder is a hash of."""


def folder_revision(folder: Path) -> str:
    """First 16 hex digits of a sha256 over the names and bytes of a folder's weight, config and tokenizer files."""
    digest = hashlib.sha256()
    for path in sorted(p for p in folder.iterdir() if any(p.match(pattern) for pattern in MODEL_FILES)):
        digest.update(f"{path.name}\0{path.stat().st_size}\0".encode())
        with path.open("rb") as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
    return digest.hexdigest()[:16]


def locate(name_or_path: str | os.PathLike[str]) -> tuple[str, str | None, str]:
    """What to open, its commit (None for a local folder) and the revision to show; FileNotFoundError if absent."""
    from transformers.utils.hub import cached_file

    source = os.path.expanduser(os.fspath(name_or_path))
    if os.path.isdir(source) and os.path.isfile(os.path.join(source, "config.json")):
        return source, None, folder_revision(Path(source))
    if os.path.exists(source) or re.match(r"[./~\\]|[A-Za-z]:|[^/]+/[^/]+/", source):
        raise FileNotFoundError(f"no model at {source!r}: expected a folder with config.json, weights and a tokenizer")
    try:
        config = Path(cached_file(source, "config.json") or "")
    except OSError as error:
        reason = str(error).splitlines()[0]
        raise FileNotFoundError(f"no model {source!r}: not a local folder, and not to be had from the hub: {reason}") from error
    return source, config.parent.name, config.parent.name  # .../snapshots/<commit>/config.json


class HuggingFaceModel:
    """A causal language model with all token statistics.

    ``name_or_path``: a folder or a hub name. ``device``: None takes a GPU if there is one. ``dtype``: one of
    :data:`DTYPES`. ``batch_tokens`` bounds replies that may differ x (padded length + max_tokens) of a batch, so the
    cache; large caches are slow on a CPU. Prompts go through the tokenizer's chat template, without one as
    "role: content" paragraphs ending in "assistant:". Where the window ends a reply is cut, with finish "length".
    """

    provides: frozenset[str] = frozenset({"text", *STATISTICS})

    def __init__(
        self, name_or_path: str | os.PathLike[str], *, name: str | None = None, device: str | None = None,
        dtype: str = "float32", batch_tokens: int = 16384,
    ) -> None:  # fmt: skip
        """Open the model. FileNotFoundError: no such model. ValueError: bad option. ImportError: library absent."""
        if dtype not in DTYPES:
            raise ValueError(f"dtype must be one of {DTYPES}, got {dtype!r}")
        if batch_tokens < 1:
            raise ValueError(f"batch_tokens must be at least 1, got {batch_tokens}")
        try:
            import torch
            from transformers import AutoModelForCausalLM, AutoTokenizer
        except ImportError as error:
            raise ImportError("HuggingFaceModel needs torch and transformers: pip install torch transformers") from error
        self.batch_tokens = batch_tokens
        source, commit, self.revision = locate(name_or_path)
        self.name = name or (source if commit else Path(source).resolve().name)
        self.device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        self._torch: Any = torch
        at: dict[str, Any] = {"revision": commit} if commit else {}
        tokenizer: Any = AutoTokenizer.from_pretrained(source, **at)
        model: Any = AutoModelForCausalLM.from_pretrained(source, dtype=getattr(torch, dtype), **at)
        self._tokenizer, self._model = tokenizer, model.to(self.device).eval()
        self._accepts = set(inspect.signature(model.forward).parameters)
        self.window: float = getattr(model.config.get_text_config(), "max_position_embeddings", None) or math.inf
        ends = [tokenizer.eos_token_id, model.config.eos_token_id, getattr(model.generation_config, "eos_token_id", None)]
        self._ends = np.array([i for end in ends if end is not None for i in np.atleast_1d(end)], dtype=np.int64)
        self._shown = functools.cache(lambda i: tokenizer.decode([i], clean_up_tokenization_spaces=False))

    def generate(self, requests: Sequence[Request]) -> list[list[Reply]]:
        """Answer every request with its ``n`` replies, in order.

        A reply has a trace when its request wants any statistic; the trace leaves out the final end token. ValueError
        for an impossible request and for a prompt longer than the model's window.
        """
        sharing: dict[Messages, list[int]] = {}
        for i, request in enumerate(requests):
            check(request)
            sharing.setdefault(request.messages, []).append(i)
        members = list(sharing.values())
        prompts = self._encode(list(sharing))
        priors = list(dict.fromkeys(q.prior_messages for q in requests if "prior" in q.want and q.prior_messages is not None))
        prior_ids = dict(zip(priors, self._encode(priors), strict=True))
        scores: dict[tuple[Ids, Ids], np.ndarray] = {}
        replies: list[list[Reply]] = [[] for _ in requests]
        extra = [max(requests[i].max_tokens for i in group) for group in members]
        rows = [sum(requests[i].n if requests[i].temperature > 0 else 1 for i in group) for group in members]
        for batch in batches([len(prompt) for prompt in prompts], extra, rows, self.batch_tokens):
            owners = [(row, i, k) for row, j in enumerate(batch) for i in members[j] for k in range(requests[i].n)]
            here = [prompts[j] for j in batch]
            room = [self.window + 1 - len(prompt) for prompt in here]
            grown = GrowingReplies.start([(row, requests[i], k) for row, i, k in owners], room)
            self._grow(here, grown)
            ids = [grown.ids(r) for r in range(len(owners))]
            pairs = [(prior_ids[q.prior_messages], said) if "prior" in q.want and q.prior_messages is not None else None
                     for q, said in zip(grown.requests, ids, strict=True)]  # fmt: skip
            scores |= self._score({pair for pair in pairs if pair} - scores.keys())
            pieces = {said: text_pieces(said, self._decode) for said in dict.fromkeys(ids)}
            for r, (row, i, _) in enumerate(owners):
                pair = pairs[r]
                prior = None if pair is None else scores[pair]
                replies[i].append(self._reply(grown, r, pieces[ids[r]], len(here[row]), prior))
        return replies

    def _decode(self, ids: Ids) -> str:
        return self._tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)

    def count_tokens(self, messages: Messages) -> int:
        """Length of the conversation as a prompt, in tokens."""
        return len(self._tokenized([messages])[1][0])

    def _encode(self, conversations: list[Messages]) -> list[Ids]:
        """Token ids of each conversation as a prompt; ValueError if one is empty or longer than the window."""
        texts, encoded = self._tokenized(conversations)
        for ids, text in zip(encoded, texts, strict=True):
            if not 1 <= len(ids) <= self.window:
                what = f"the prompt has {len(ids)} tokens, {self.name} reads 1 to {self.window} (its window)"
                raise ValueError(f"{what}; the prompt begins {text[:80]!r}")
        return [tuple(ids) for ids in encoded]

    def _tokenized(self, conversations: list[Messages]) -> tuple[list[str], list[list[int]]]:
        chat = bool(self._tokenizer.chat_template)
        texts = []
        for messages in conversations:
            if chat:
                turns = [{"role": role, "content": content} for role, content in messages]
                texts.append(self._tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False))
            else:
                texts.append("\n\n".join([*(f"{role}: {content}" for role, content in messages), "assistant:"]))
        # A chat template writes the special tokens itself.
        return texts, self._tokenizer(texts, add_special_tokens=not chat)["input_ids"] if texts else []

    def _forward(self, ids: np.ndarray, padding: np.ndarray, past: int, cache: Any, keep: int) -> tuple[np.ndarray, Any]:
        """Logits of the last ``keep`` positions, (n, keep, N), and the cache, which held ``past`` columns before."""
        columns = np.arange(past + ids.shape[1])
        inputs = {"input_ids": ids, "attention_mask": (columns >= padding[:, None]).astype(np.int64),
                  "position_ids": np.maximum(columns[past:] - padding[:, None], 0)}  # fmt: skip
        given: dict[str, Any] = {k: self._torch.from_numpy(v).to(self.device) for k, v in inputs.items() if k in self._accepts}
        if "logits_to_keep" in self._accepts:  # spares the vocabulary-wide product at every other position
            given["logits_to_keep"] = keep
        with self._torch.inference_mode():
            out = self._model(**given, past_key_values=cache, use_cache=True)
        logits = out.logits[:, -keep:]
        return (logits if logits.dtype == self._torch.float64 else logits.float()).cpu().numpy(), out.past_key_values

    def _grow(self, prompts: list[Ids], grown: GrowingReplies) -> None:
        """Decode the replies of one batch, one token of every unfinished reply a step."""
        ids, padding = left_padded(prompts)
        active, node = np.arange(len(grown.prompt)), grown.prompt
        past, cache = 0, None
        while True:
            step = len(grown.best)
            logits, cache = self._forward(ids, padding, past, cache, keep=1)
            past += ids.shape[1]
            chosen = self._choose(logits[:, 0], node, active, grown)
            ended = np.isin(chosen, self._ends)
            grown.stopped[active[ended]] = True
            grown.length[active[ended]] = step
            goes_on = ~ended & (grown.limit[active] > step + 1)
            active = active[goes_on]
            if not len(active):
                return
            # Replies that agree so far stay on one node: distinct (node, token) pairs are the next nodes.
            pairs, node = np.unique(node[goes_on] * logits.shape[2] + chosen[goes_on], return_inverse=True)
            parent, token = np.divmod(pairs, logits.shape[2])
            if not np.array_equal(parent, np.arange(len(padding))):
                cache.reorder_cache(self._torch.from_numpy(parent).to(self.device))
            ids, padding = token[:, None], padding[parent]

    def _choose(self, logits: np.ndarray, node: np.ndarray, active: np.ndarray, grown: GrowingReplies) -> np.ndarray:
        """The next tokens (A,) of the ``active`` replies, each at row ``node`` (A,) of ``logits`` (n, N); statistics noted."""
        step = len(grown.best)
        grown.best.append({})
        grown.node[active, step] = node
        size = max(1, BLOCK_VALUES // logits.shape[1])
        for start in range(0, len(logits), size):
            here = (node >= start) & (node < start + size)
            reply, at = active[here], node[here] - start
            raw = logits[start : start + size]
            shifted, log_total = shift(raw)
            token = np.empty_like(at)
            for temperature in np.unique(grown.temperature[reply]):
                same = grown.temperature[reply] == temperature
                rows, back = np.unique(at[same], return_inverse=True)
                if temperature == 0:
                    token[same] = raw[rows].argmax(axis=1)[back]
                else:
                    cumulative = np.cumsum(np.exp(shifted[rows] / temperature), axis=1)
                    token[same] = inverse_cdf(cumulative, back, grown.uniform[reply[same], step])
            grown.tokens[reply, step] = token
            grown.statistics[0, reply, step] = shifted[at, token] - log_total[at]
            wanted = grown.distributions[reply]
            if wanted.any():
                for alpha in np.unique(grown.alpha[reply[wanted]]):
                    same = wanted & (grown.alpha[reply] == alpha)
                    rows, back = np.unique(at[same], return_inverse=True)
                    found = distribution_statistics(shifted[rows], log_total[rows], alpha)
                    grown.statistics[1:, reply[same], step] = found[:, back]
                rows = np.unique(at[wanted])
                best = self._alternatives(raw[rows], shifted[rows] - log_total[rows, None], grown.n_alternatives)
                grown.best[step].update(zip((rows + start).tolist(), best, strict=True))
        return grown.tokens[active, step]

    def _alternatives(self, logits: np.ndarray, logprobs: np.ndarray, n: int) -> Iterator[tuple[tuple[str, float], ...]]:
        """The most probable tokens of each row as (token, log-probability), best first; special tokens by name."""
        top = self._torch.topk(self._torch.from_numpy(logits), min(n, logits.shape[1])).indices.numpy()
        top = np.sort(top, axis=1)
        values = np.take_along_axis(logprobs, top, axis=1)
        order = np.argsort(-values, axis=1, kind="stable")
        top, values = np.take_along_axis(top, order, axis=1), np.take_along_axis(values, order, axis=1)
        for ids, row in zip(top.tolist(), values.tolist(), strict=True):
            yield tuple((self._shown(i), value) for i, value in zip(ids, row, strict=True))

    def _reply(self, grown: GrowingReplies, r: int, pieces: list[str], n_in: int, prior: np.ndarray | None) -> Reply:
        q, length, stopped = grown.requests[r], int(grown.length[r]), bool(grown.stopped[r])
        want = q.want
        trace = None
        if want:
            fields: list[Any] = list(grown.statistics[:, r, :length].copy())
            nodes = grown.node[r, :length].tolist()
            wide = "distributions" in want
            trace = TokenTrace(
                tokens=tuple(pieces), logprobs=fields[0] if "logprobs" in want else None,
                entropies=fields[1] if wide else None, renyi=fields[2] if wide else None,
                fisher_rao=fields[3] if wide else None, prior_logprobs=prior,
                alternatives=tuple(grown.best[t][n][: q.n_alternatives] for t, n in enumerate(nodes)) if wide else None,
            )  # fmt: skip
        return Reply("".join(pieces), trace, n_in, length + stopped, "stop" if stopped else "length")

    def _score(self, pairs: Iterable[tuple[Ids, Ids]]) -> dict[tuple[Ids, Ids], np.ndarray]:
        """Score log P(continuation_l | prompt, continuation_<l), each (L,), for (prompt, continuation) ids; one plain pass."""
        pairs = sorted(pairs)
        scores = {pair: np.zeros(0) for pair in pairs}
        asked = [(prompt, said) for prompt, said in pairs if said]
        for prompt, said in asked:
            if len(prompt) + len(said) - 1 > self.window:
                what = f"{len(prompt)} tokens and the reply {len(said)}"
                raise ValueError(f"the prior prompt has {what}, more than the window of {self.name}, {self.window}")
        lengths = [len(prompt) + len(said) for prompt, said in asked]
        for batch in batches(lengths, [0] * len(asked), [1] * len(asked), self.batch_tokens):
            here = [asked[j] for j in batch]
            keep = max(len(said) for _, said in here)
            logits, _ = self._forward(*left_padded([prompt + said[:-1] for prompt, said in here]), 0, None, keep)
            for pair, rows in zip(here, logits, strict=True):
                said = np.array(pair[1])
                shifted, log_total = shift(rows[-len(said) :])
                scores[pair] = shifted[np.arange(len(said)), said] - log_total
        return scores
