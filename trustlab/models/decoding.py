"""One forward pass after another: truncated distributions, decoding, and scoring of given
tokens."""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from trustlab.models.base import STATISTICS, Messages, Request

ROUNDING = 1e-6
"""A rest below it is what servers lose by rounding, not hidden tokens."""
EXCESS = 1e-3
"""Probabilities that sum to more than 1 + this are no distribution at temperature 1."""

BOUNDS = {"entropies": "lower", "renyi": "upper", "fisher_rao": "upper"}
"""Which side of the truth each statistic of :func:`bounds` lies on."""


def bounds(
    logprobs: Sequence[float],
    cap: float | None,
    *,
    alpha: float,
    vocabulary_size: int | None = None,
) -> tuple[float, float | None, float | None] | None:
    """(entropy at least, Rényi divergence of order ``alpha`` at most, Fisher-Rao distance at most),
    in nats, nats, [0, 1].

    ``logprobs`` (m,): natural log-probabilities of distinct known tokens. ``cap``: the
    log-probability that no hidden token exceeds; ``None`` where nothing is known of it, and the
    rest may be one token. Both distances are ``None`` without ``vocabulary_size`` or where the
    known tokens do not fit one of that size. ``None`` where there is no known token or their
    probabilities sum to more than 1.
    """
    known = np.asarray(logprobs, dtype=np.float64)
    rest = 1.0 - float(np.exp(known).sum())
    if not len(known) or rest < -EXCESS:
        return None
    values, counts = known, np.ones(len(known))
    if rest > ROUNDING:
        hidden, times = _packed(rest, 1.0 if cap is None else math.exp(cap))
        values, counts = np.append(known, hidden), np.append(counts, times)
    entropy = max(0.0, float(-(counts * np.exp(values) * values).sum()))
    if vocabulary_size is None or counts.sum() > vocabulary_size:
        return entropy, None, None
    log_n = math.log(vocabulary_size)
    renyi = log_n - entropy
    if alpha != 1:
        power: Any = logsumexp(alpha * values, b=counts)
        renyi = (float(power) - (1 - alpha) * log_n) / (alpha - 1)
    overlap = float((counts * np.exp(values / 2)).sum()) / math.sqrt(vocabulary_size)
    return entropy, max(0.0, renyi), 2 / math.pi * math.acos(min(1.0, overlap))


def _packed(rest: float, cap: float) -> tuple[list[float], list[float]]:
    """Log-probabilities of the packed hidden tokens, and how many have each."""
    if cap <= 0:
        return [], []
    n_full = math.floor(rest / cap)
    left = rest - n_full * cap
    found = [(math.log(p), n) for p, n in ((cap, float(n_full)), (left, 1.0)) if n and p > 1e-300]
    return [value for value, _ in found], [n for _, n in found]


Ids = tuple[int, ...]


def uniforms(messages: Messages, seed: int, index: int, n: int) -> np.ndarray:
    """``n`` uniforms in [0, 1) for reply ``index``: a function of seed, index and messages, and of
    nothing else."""
    key = hashlib.sha256(json.dumps([seed, index, messages]).encode()).digest()[:16]
    return np.random.Generator(np.random.Philox(key=int.from_bytes(key, "little"))).random(n)


STRIDE = 16
"""Tokens after which a reply's text so far is taken for settled, where it ends with a letter."""


def text_pieces(ids: Ids, decode: Callable[[Ids], str]) -> list[str]:
    """The text that each token adds; joined they are ``decode(ids)``. A token that completes no
    character adds ''."""
    text, ends = decode(ids), [0]
    # The ids before ``start`` are text[:settled]; what follows is read behind ids[back:start].
    back, start, settled, head = 0, 0, 0, ""
    for k in range(1, len(ids)):
        begun, known = decode(ids[back:k]), settled
        if begun.startswith(head):
            begun = begun[len(head) :]
        else:  # what seemed settled is not: a byte that fits nothing spoils its neighbours
            begun, known = decode(ids[:k]), 0
        whole = text.startswith(begun, known)
        near = text[known : known + len(begun)]
        agreed = known + len(begun if whole else os.path.commonprefix([begun, near]))
        ends.append(max(ends[-1], agreed))
        if whole and known == settled and k - start >= STRIDE and begun[-1:].isalnum():
            back, start, settled = start, k, agreed
            head = decode(ids[back:start])
    ends.append(len(text))
    return [text[a:b] for a, b in zip(ends[:-1], ends[1:], strict=True)] if ids else []


def piece_after(before: Ids, token: int, decode: Callable[[Ids], str]) -> str:
    """The text that ``token`` adds behind the tokens ``before``."""
    begun, text = decode(before), decode((*before, token))
    return (
        text.removeprefix(begun)
        if text.startswith(begun)
        else text[len(os.path.commonprefix([begun, text])) :]
    )


def batches(
    lengths: Sequence[int],
    extra: Sequence[int],
    rows: Sequence[int],
    limit: int,
    *,
    equal: bool = False,
) -> Iterator[list[int]]:
    """Indices by rising extra, then length, cut where all rows x (longest length + largest extra)
    would pass ``limit``; never empty.

    With ``equal`` they are cut where the length changes, too.
    """
    batch: list[int] = []
    for i in sorted(range(len(lengths)), key=lambda j: (extra[j], lengths[j])):
        more = [*batch, i]
        longest = max(lengths[j] for j in more) + extra[i]
        full = sum(rows[j] for j in more) * longest > limit
        if batch and (full or (equal and lengths[i] != lengths[batch[0]])):
            yield batch
            more = [i]
        batch = more
    if batch:
        yield batch


def left_padded(rows: Sequence[Ids]) -> tuple[np.ndarray, np.ndarray]:
    """Token ids (n, width), zeros on the left where a row is shorter, and how many of them each row
    has (n,)."""
    lengths = [len(row) for row in rows]
    ids = np.zeros((len(rows), max(lengths)), dtype=np.int64)
    for i, row in enumerate(rows):
        ids[i, -len(row) :] = row
    return ids, max(lengths) - np.array(lengths)


def check(request: Request) -> None:
    """ValueError for a request that cannot be answered."""
    if request.n < 1 or request.max_tokens < 1:
        raise ValueError(
            f"n and max_tokens must be at least 1, got n={request.n},"
            f" max_tokens={request.max_tokens}"
        )
    if request.first < 0 or request.n_alternatives < 1 or not 0 < request.renyi_alpha < math.inf:
        options = f"{request.first}, {request.n_alternatives}, {request.renyi_alpha}"
        raise ValueError(
            "first must be at least 0, n_alternatives at least 1 and renyi_alpha above 0, got"
            f" {options}"
        )
    if not 0 <= request.temperature < math.inf:
        raise ValueError(f"temperature must be finite and at least 0, got {request.temperature}")
    if unknown := request.want - set(STATISTICS):
        raise ValueError(f"want must be among {STATISTICS}, got {sorted(unknown)}")
    if "prior" in request.want and request.prior_messages is None:
        raise ValueError(
            "prior is wanted but prior_messages is None; give the messages without patient"
            " information"
        )


@dataclass
class GrowingReplies:
    """The R replies of one batch, up to T tokens each, filled in while they grow."""

    requests: list[Request]
    prompt: np.ndarray  # (R,) which prompt of the batch
    temperature: np.ndarray  # (R,)
    limit: np.ndarray  # (R,) tokens allowed
    distributions: np.ndarray  # (R,) bool: wanted
    alpha: np.ndarray  # (R,) order of the Rényi divergence
    n_alternatives: int  # the most that any of them lists
    uniform: np.ndarray  # (R, T)
    tokens: np.ndarray  # (R, T)
    node: np.ndarray  # (R, T) which node of step t the reply stood at
    statistics: np.ndarray  # (4, R, T): logprobs, entropies, renyi, fisher_rao
    length: np.ndarray  # (R,) without the final end token
    stopped: np.ndarray  # (R,) bool: an end token came
    cycled: np.ndarray  # (R,) bool: ended since it repeated itself
    best: list[dict[int, tuple[tuple[int, float], ...]]] = field(
        default_factory=list
    )  # per step: alternatives by node

    @classmethod
    def start(cls, owners: list[tuple[int, Request, int]], room: list[float]) -> GrowingReplies:
        """Nothing said yet, for (prompt, request, reply index) triples; ``room``: tokens that fit
        after each prompt."""
        requests = [request for _, request, _ in owners]
        limit = np.array(
            [min(request.max_tokens, room[row]) for row, request, _ in owners], dtype=np.int64
        )
        shape = (len(owners), int(limit.max()))
        uniform = np.zeros(shape)
        for r, (_, request, k) in enumerate(owners):
            if request.temperature > 0:
                uniform[r] = uniforms(request.messages, request.seed, request.first + k, shape[1])
        return cls(
            requests=requests, prompt=np.array([row for row, _, _ in owners]),
            temperature=np.array([float(request.temperature) for request in requests]), limit=limit,
            distributions=np.array(["distributions" in request.want for request in requests]),
            uniform=uniform, alpha=np.array([float(request.renyi_alpha) for request in requests]),
            n_alternatives=max(request.n_alternatives for request in requests),
            tokens=np.zeros(shape, dtype=np.int64), node=np.zeros(shape, dtype=np.int64),
            statistics=np.full((4, *shape), np.nan), length=limit.copy(),
            stopped=np.zeros(len(owners), dtype=bool), cycled=np.zeros(len(owners), dtype=bool),
        )  # fmt: skip

    def ids(self, r: int) -> Ids:
        """The tokens of reply ``r`` so far, without the end token."""
        return tuple(self.tokens[r, : self.length[r]].tolist())


CACHES = ("past_key_values", "cache_params")
"""What the cache is called among a model's arguments and outputs."""
_NARROW = re.compile("window(?!_layers)|chunk_size")  # attention that sees less than a prompt
ATTENTION = {"full_attention", "sliding_attention", "chunked_attention"}
"""Layers that a mask can keep from seeing padding; convolutions and recurrences run through it."""


class Passes:
    """The forward pass of ``model`` on ``device``.

    ``pads``: rows of different lengths may share a pass. Not so in models that take no positions or
    no mask, or have recurrent layers.
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
        self.has_room = self._cache == CACHES[0] and self.pads and layers <= {"full_attention"}
        # Some keep their state in the modules, where rows cannot be chosen.
        if any(hasattr(module, "_setup_cache") for module in model.modules()):
            self._cache, self.has_room = None, False
        if "position_ids" in self._accepts and not self._as_the_library():
            # Some count positions from elsewhere (RoBERTa from its padding's): they count alone.
            self._accepts -= {"position_ids"}
            self.pads = self.has_room = False
            if not self._as_the_library():
                raise ValueError(
                    f"{type(model).__name__} gives other probabilities here than alone"
                )

    def _as_the_library(self) -> bool:
        """Whether a prompt's logits are those of the model's own forward pass."""
        ids = np.array([[3, 1, 4, 1, 5, 9]])
        mine, _ = self.run(ids, np.zeros(1, int), 0, None, keep=1)
        with self._torch.inference_mode():
            plain = self.model(self._torch.from_numpy(ids).to(self.device)).logits[:, -1:]
        return bool((mine - plain).abs().amax() <= ALIKE * plain.abs().amax())

    @functools.cached_property
    def trees(self) -> int:
        """Tokens that prompts with a common beginning may have in one pass, each beginning once
        (:func:`tree_of`): about where their masked attention costs a quarter of all else. 0 where
        the model does not take such a mask, or gives other logits with it."""
        config = self.model.config.get_text_config()
        narrow = (n for name, n in config.to_dict().items() if _NARROW.search(name))
        if any(narrow) or not self.has_room or "logits_to_keep" not in self._accepts:
            return 0
        prompts = [(3, 1, 4, 1, 5), (3, 1, 4, 2), (3, 1, 4, 2, 6, 5)]
        ids, padding = left_padded(prompts)
        plain = self.run(ids, padding, 0, with_room(), keep=1)[0][:, 0]
        try:
            found, _ = self.run_tree(tree_of(prompts, range(len(prompts))))
        except (TypeError, ValueError, RuntimeError, LookupError, AttributeError, AssertionError):
            return 0  # not a mask that it takes
        close = (found - plain).abs().amax() <= ALIKE * plain.abs().amax()
        width = getattr(config, "hidden_size", 0)
        return min(PIECE, max(256, 3 * width // 2)) if bool(close) else 0

    def run_tree(self, tree: Tree) -> tuple[Any, Any]:
        """Logits after each prompt of a tree, a tensor (prompts, N), and the cache of its
        tokens."""
        torch, kind = self._torch, self.model.dtype
        sees = torch.from_numpy(tree.sees).to(self.device)
        mask = torch.zeros(sees.shape, dtype=kind, device=self.device)
        mask.masked_fill_(~sees, torch.finfo(kind).min)
        ends = torch.tensor([int(path[-1]) for path in tree.paths], device=self.device)
        with torch.inference_mode():
            out = self.model(
                input_ids=torch.from_numpy(tree.ids[None]).to(self.device),
                position_ids=torch.from_numpy(tree.depth[None]).to(self.device),
                attention_mask=mask[None, None],
                past_key_values=with_room(),
                use_cache=True,
                logits_to_keep=ends,
            )
        return out.logits[0], out.past_key_values

    def together(self, parts: Sequence[Any]) -> Any:
        """Tensors below each other."""
        return self._torch.cat(list(parts)) if len(parts) > 1 else parts[0]

    def run(
        self, ids: np.ndarray, padding: np.ndarray, past: int, cache: Any, keep: int
    ) -> tuple[Any, Any]:
        """Logits of the last ``keep`` positions, a tensor (n, keep, N), and the cache; it held
        ``past`` columns before.

        ``ids`` (n, width) are the new columns, ``padding`` (n,) how many columns of each row are
        filling. The cache is ``None`` where the model has none whose rows can be chosen: then
        ``ids`` must be everything so far.
        """
        columns = np.arange(past + ids.shape[1])
        inputs = {
            "input_ids": ids,
            "position_ids": np.maximum(columns[past:] - padding[:, None], 0),
        }
        if self.pads:
            inputs["attention_mask"] = (columns >= padding[:, None]).astype(np.int64)
        given: dict[str, Any] = {
            k: self._torch.from_numpy(v).to(self.device)
            for k, v in inputs.items()
            if k in self._accepts
        }
        if (
            "logits_to_keep" in self._accepts
        ):  # spares the vocabulary-wide product at every other position
            given["logits_to_keep"] = keep
        given |= {"use_cache": True, self._cache: cache} if self._cache else {}
        if not self._cache and "use_cache" in self._accepts:
            given["use_cache"] = False
        with self._torch.inference_mode():
            out = self.model(**given)
        held = getattr(out, self._cache, None) if self._cache else None
        if not hasattr(held, "reorder_cache"):
            self._cache = held = None
        return out.logits[:, -keep:], held


ROOM = 64
"""Columns that a cache has ahead of what it holds."""
PIECE = 4096
"""Tokens of prompts, with their padding, that are read at once; one prompt may be longer."""
FULL = 7 / 8
"""The least of a piece's rows that is no padding."""
SHARED = 0.15
"""The least share of prompts' tokens that a tree must spare."""
ALIKE = 1e-2
"""Logits of two ways through a model differ by less, as a share of the largest."""


def with_room() -> Any:
    """An empty cache of transformers whose layers write into room that they have, where its own
    copy all they hold at every token."""
    from transformers.cache_utils import Cache

    return Cache(layer_class_to_replicate=_layer())


@functools.cache
def _layer() -> Any:
    from transformers.cache_utils import DynamicLayer

    class Layer(DynamicLayer):
        """Keys and values (rows, heads, columns, width), each the first columns of a wider
        tensor."""

        keys: Any
        values: Any
        wide: Any = ()

        def update(self, key_states: Any, value_states: Any, *_: Any, **__: Any) -> Any:
            """All keys and values, the new ones last."""
            if not self.is_initialized:
                self.lazy_initialization(key_states, value_states)
                self.keys, self.values = key_states, value_states
                return self.keys, self.values
            held, new = self.keys.shape[-2], key_states.shape[-2]
            if not self.wide or held + new > self.wide[0].shape[-2]:
                self.wide = [_wider(states, new) for states in (self.keys, self.values)]
            for wide, states in zip(self.wide, (key_states, value_states), strict=True):
                wide[..., held : held + new, :] = states
            return self._holds(held + new)

        def take(self, states: Any, row: int, n_rows: int, columns: int) -> None:
            """Put keys and values into the rows from ``row`` on, of ``n_rows``, so that they end at
            ``columns``."""
            if not self.is_initialized:
                self.lazy_initialization(*states)
                shapes = ((n_rows, s.shape[1], columns + ROOM, s.shape[3]) for s in states)
                self.wide = [states[0].new_zeros(shape) for shape in shapes]
                self._holds(columns)
            for wide, held in zip(self.wide, states, strict=True):
                wide[row : row + len(held), :, columns - held.shape[2] : columns] = held

        def reorder_cache(self, beam_idx: Any) -> None:
            """Rows ``beam_idx`` in the place of all."""
            held = self.keys.shape[-2]
            chosen = self.wide or (self.keys, self.values)
            self.wide = [states.index_select(0, beam_idx) for states in chosen]
            self._holds(held)

        def fill(self, rows: Any, movers: Any, n_rows: int) -> None:
            """Keep the first ``n_rows``, with the rows ``movers`` in the place of ``rows``."""
            held, everything = self.keys.shape[-2], self.wide or (self.keys, self.values)
            for states in everything:
                states[rows, :, :held] = states[movers, :, :held]
            self.wide = [states[:n_rows] for states in everything]
            self._holds(held)

        def _holds(self, columns: int) -> Any:
            self.keys, self.values = (wide[..., :columns, :] for wide in self.wide)
            return self.keys, self.values

    return Layer


def _wider(states: Any, new: int) -> Any:
    rows, heads, held, width = states.shape
    wide = states.new_empty((rows, heads, held + new + ROOM, width))
    wide[..., :held, :] = states
    return wide


class Tree(NamedTuple):
    """Prompts in one row of tokens, what several begin with once.

    ``ids`` and ``depth`` (T,): tokens and their positions; ``sees`` (T, T): the tokens before each
    in its prompt, and itself; ``rows``: which prompts; ``paths``: the places of each one's tokens.
    """

    ids: np.ndarray
    depth: np.ndarray
    sees: np.ndarray
    rows: list[int]
    paths: list[np.ndarray]


def tree_of(prompts: Sequence[Ids], rows: Iterable[int]) -> Tree:
    """The tree of some prompts, which come in the order of their tokens."""
    ids: list[int] = []
    parts, paths, last = [], [np.arange(0)], ()
    for row in rows:
        shared = len(os.path.commonprefix([last, prompts[row]]))
        new = np.arange(len(ids), len(ids) + len(prompts[row]) - shared)
        parts.append((shared, new))
        paths.append(np.r_[paths[-1][:shared], new])
        ids += prompts[row][shared:]
        last = prompts[row]
    depth, sees = np.zeros(len(ids), np.int64), np.zeros((len(ids), len(ids)), bool)
    for path, (shared, new) in zip(paths[1:], parts, strict=True):
        depth[new] = np.arange(shared, len(path))
        sees[np.ix_(new, path)] = np.arange(len(path)) <= depth[new][:, None]
    return Tree(np.array(ids), depth, sees, list(rows), paths[1:])


def trees(prompts: Sequence[Ids], most: int) -> list[Tree]:
    """Trees of at most ``most`` tokens, or of one prompt, that hold all prompts; none where too
    little is shared (:data:`SHARED`)."""
    order = sorted(range(len(prompts)), key=lambda row: prompts[row])
    parts: list[list[int]] = []
    n_tokens, last = 0, ()
    for row in order:
        new = len(prompts[row]) - len(os.path.commonprefix([last, prompts[row]]))
        if not parts or n_tokens + new > most:
            parts.append([])
            n_tokens, new = 0, len(prompts[row])
        parts[-1].append(row)
        n_tokens, last = n_tokens + new, prompts[row]
    made = [tree_of(prompts, part) for part in parts]
    spared = 1 - sum(len(tree.ids) for tree in made) / sum(map(len, prompts))
    return made if spared >= SHARED else []


def _take(
    whole: Any, cache: Any, row: int, n_rows: int, columns: int, path: np.ndarray | None = None
) -> None:
    """Put what ``cache`` holds, or the columns ``path`` of it, into ``whole``: each layer
    ``take``s it."""
    for i, layer in enumerate(cache.layers):
        if i == len(whole.layers):
            whole.layers.append(type(layer)())
        states = layer.keys, layer.values
        whole.layers[i].take(
            [s if path is None else s[:, :, path] for s in states], row, n_rows, columns
        )


def pieces(lengths: Sequence[int]) -> Iterator[range]:
    """Neighbours among prompts of these lengths that are about as long, and no more tokens than
    :data:`PIECE`."""
    start = 0
    for stop in range(1, len(lengths) + 1):
        more = lengths[start : stop + 1]
        if stop == len(lengths) or min(more) < FULL * max(more) or len(more) * max(more) > PIECE:
            yield range(start, stop)
            start = stop


class Branches:
    """The distinct beginnings of the replies to a batch of prompts: a prefix tree's nodes of one
    depth, a row each."""

    def __init__(self, passes: Passes, prompts: Sequence[Ids]) -> None:
        self._passes, self._prompts = passes, prompts
        self._ids, self._padding = left_padded(prompts)
        self._past = 0
        self._cache: Any = None

    def read(self) -> Any:
        """Logits of the next token at every node, a tensor (n, N)."""
        if not self._past and self._passes.has_room:
            return self._begin()
        logits, self._cache = self._passes.run(
            self._ids, self._padding, self._past, self._cache, keep=1
        )
        self._past += self._ids.shape[1] if self._cache is not None else 0
        return logits[:, 0]

    def _begin(self) -> Any:
        """The prompts are read as trees where they share enough, else in pieces that need little
        padding, and their caches put together."""
        n_rows, longest = self._ids.shape
        planted = self._trees() if n_rows > 1 else []
        whole, read = with_room(), []
        for tree in planted:
            logits, cache = self._passes.run_tree(tree)
            read.append(logits)
            for row, path in zip(tree.rows, tree.paths, strict=True):
                _take(whole, cache, row, n_rows, longest, path)
        if planted:
            self._past, self._cache = longest, whole
            order = np.argsort([row for tree in planted for row in tree.rows])
            return self._passes.together(read)[order]
        parts = list(pieces([len(prompt) for prompt in self._prompts]))
        for part in parts:
            ids, padding = left_padded([self._prompts[row] for row in part])
            logits, cache = self._passes.run(ids, padding, 0, with_room(), keep=1)
            read.append(logits[:, 0])
            if len(parts) == 1:
                whole = cache
                break
            _take(whole, cache, part.start, n_rows, longest)
        self._past, self._cache = longest, whole
        return self._passes.together(read)

    def _trees(self) -> list[Tree]:
        return trees(self._prompts, most) if (most := self._passes.trees) else []

    def extend(self, parent: np.ndarray, token: np.ndarray) -> np.ndarray:
        """Replace the nodes by old node ``parent[i]`` followed by ``token[i]``, both (m,); the row
        of each, (m,)."""
        rows = np.arange(len(parent))
        if self._cache is None:
            self._ids = np.concatenate([self._ids[parent], token[:, None]], axis=1)
            self._padding = self._padding[parent]
            return rows
        if not np.array_equal(parent, np.arange(len(self._padding))):
            rows = self._arrange(parent)
        order = np.argsort(rows)
        self._ids, self._padding = token[order, None], self._padding[parent[order]]
        return rows

    def _arrange(self, parent: np.ndarray) -> np.ndarray:
        """The cache's rows for the new nodes: where none has two, only the last rows move, to
        those that nobody goes on from."""
        to = self._passes.device
        rows = np.arange(len(parent))
        if not self._passes.has_room or len(np.unique(parent)) < len(parent):
            self._cache.reorder_cache(self._passes._torch.from_numpy(parent).to(to))
            return rows
        left, stays = np.setdiff1d(rows, parent), parent < len(parent)
        rows[stays], rows[~stays] = parent[stays], left
        free, movers = (self._passes._torch.from_numpy(i).to(to) for i in (left, parent[~stays]))
        for layer in self._cache.layers:
            layer.fill(free, movers, len(parent))
        return rows
