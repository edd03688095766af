"""Draws tokens from a local model, one forward pass after another."""

from __future__ import annotations

import functools
import hashlib
import inspect
import itertools
import json
import math
import os
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from trustlab.models.base import STATISTICS, Messages, Request
from trustlab.models.ranges import EXCESS, ROUNDING

BOUNDS = {"entropies": "lower", "renyi": "upper", "fisher_rao": "upper"}
"""Which side of the truth each statistic of :func:`bounds` lies on."""


def bounds(
    logprobs: Sequence[float], cap: float | None, *, alpha: float,
    vocabulary_size: int | None = None,
) -> tuple[float, float | None, float | None] | None:  # fmt: skip
    """(entropy at least, Rényi divergence of order ``alpha`` at most, Fisher-Rao distance at most),
    in nats, nats, [0, 1]. ``logprobs`` (m,): natural log-probabilities of distinct known tokens;
    ``None`` where there is none or they sum to more than 1. ``cap``: what no hidden token exceeds;
    ``None``: the rest may be one token. The distances are ``None`` without a ``vocabulary_size``
    that the tokens fit."""
    known = np.asarray(logprobs, dtype=np.float64)
    rest = 1.0 - float(np.exp(known).sum())
    if not len(known) or rest < -EXCESS:
        return None
    values, counts = known, np.ones(len(known))
    if rest > ROUNDING:  # servers lose less by rounding
        # The rest packed into as few hidden tokens as the cap allows.
        most = 1.0 if cap is None else math.exp(cap)
        n_full = math.floor(rest / most) if most > 0 else 0
        packed = [(most, n_full), (rest - n_full * most if most > 0 else 0.0, 1)]
        for p, n in ((p, n) for p, n in packed if n and p > 1e-300):
            values, counts = np.append(values, math.log(p)), np.append(counts, float(n))
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


Ids = tuple[int, ...]


def uniforms(messages: Messages, seed: int, index: int, n: int) -> np.ndarray:
    """``n`` uniforms in [0, 1) for reply ``index``: a function of seed, index and messages only."""
    key = hashlib.sha256(json.dumps([seed, index, messages]).encode()).digest()[:16]
    return np.random.Generator(np.random.Philox(key=int.from_bytes(key, "little"))).random(n)


STRIDE = 16  # tokens after which a text that ends with a letter is taken for settled


def text_pieces(ids: Ids, decode: Callable[[Ids], str]) -> list[str]:
    """The text that each token adds; joined they are ``decode(ids)``. A token that completes no
    character adds ''."""
    text, ends = decode(ids), [0]
    # The ids before ``start`` are text[:settled]; what follows is read behind ids[back:start].
    back, start, settled, head = 0, 0, 0, 0
    for k in range(1, len(ids)):
        begun = decode(ids[back:k])[head:]
        agreed = settled + n_common(begun, text[settled : settled + len(begun)])
        ends.append(max(ends[-1], agreed))
        whole = agreed == settled + len(begun)
        if whole and k - start >= STRIDE and begun[-1:].isalnum():
            back, start, settled = start, k, agreed
            head = len(decode(ids[back:start]))
    ends.append(len(text))
    return [text[a:b] for a, b in itertools.pairwise(ends)] if ids else []


def n_common(one: Any, other: Any) -> int:
    """How many items both begin with."""
    whole = one == other[: len(one)]  # nearly always, and the quicker question
    return len(one) if whole else len(os.path.commonprefix([one, other]))


def left_padded(rows: Sequence[Ids]) -> tuple[np.ndarray, np.ndarray]:
    """Token ids (n, width), and how many zeros each row has on its left (n,)."""
    lengths = np.array([len(row) for row in rows])
    ids = np.zeros((len(rows), lengths.max()), dtype=np.int64)
    for i, row in enumerate(rows):
        ids[i, -len(row) :] = row
    return ids, lengths.max() - lengths


def check(request: Request) -> None:
    """ValueError for a request that cannot be answered."""
    for name, least in (("n", 1), ("max_tokens", 1), ("first", 0), ("n_alternatives", 1)):
        if (n := getattr(request, name)) < least:
            raise ValueError(f"{name} must be at least {least}, got {name}={n}")
    if not 0 < request.renyi_alpha < math.inf:
        raise ValueError(f"renyi_alpha must be finite and above 0, got {request.renyi_alpha}")
    if not 0 <= request.temperature < math.inf:
        raise ValueError(f"temperature must be finite and at least 0, got {request.temperature}")
    if unknown := request.want - set(STATISTICS):
        raise ValueError(f"want must be among {STATISTICS}, got {sorted(unknown)}")
    if "prior" in request.want and request.prior_messages is None:
        what = "give the messages without patient information"
        raise ValueError(f"prior is wanted but prior_messages is None; {what}")


class GrowingReplies:
    """The R replies of one batch, up to T tokens each, filled in while they grow; arrays are (R,)
    or (R, T). ``owners``: (prompt, request, reply index) of each; ``room``: tokens that fit after
    each prompt. ``statistics`` (4, R, T): logprobs, entropies, renyi, fisher_rao. ``node``: where
    each reply stood at a step; ``best``: of each step the alternatives by node. ``length``: without
    the end token."""

    def __init__(self, owners: list[tuple[int, Request, int]], room: list[float]) -> None:
        self.requests = requests = [request for _, request, _ in owners]
        self.prompt = np.array([row for row, _, _ in owners])
        self.temperature = np.array([float(q.temperature) for q in requests])
        self.distributions = np.array(["distributions" in q.want for q in requests])
        self.alpha = np.array([float(q.renyi_alpha) for q in requests])
        self.n_alternatives = max(q.n_alternatives for q in requests)
        self.limit = np.array([min(q.max_tokens, room[row]) for row, q, _ in owners], np.int64)
        shape = (len(owners), int(self.limit.max()))
        self.uniform = np.zeros(shape)
        for r, (_, q, k) in enumerate(owners):
            if q.temperature > 0:
                self.uniform[r] = uniforms(q.messages, q.seed, q.first + k, shape[1])
        self.tokens, self.node = np.zeros((2, *shape), dtype=np.int64)
        self.statistics = np.full((4, *shape), np.nan)
        self.length = self.limit.copy()
        self.stopped, self.cycled = np.zeros((2, len(owners)), dtype=bool)
        self.best: list[dict[int, tuple[tuple[int, float], ...]]] = []

    def ids(self, r: int) -> Ids:
        """The tokens of reply ``r`` so far, without the end token."""
        return tuple(self.tokens[r, : self.length[r]].tolist())


CACHES = ("cache", "past_key_values", "cache_params")
"""What the cache is called among a model's arguments and outputs: from transformers 5.24 on, before
it, and before it in recurrent models."""
NARROW = re.compile("window(?!_layers)|chunk|local|span")
"""In names of a config's numbers that may bound how far a token sees."""
ATTENTION = {"full_attention", "sliding_attention", "chunked_attention"}
"""Layers that a mask can keep from seeing padding; convolutions and recurrences run through it."""
ALIKE, ROUNDED = 1e-4, 5e-2
"""Logits of two ways through a model differ by less, as a share of the largest: in full precision,
and in half."""
PROBED = (16, 256)  # the least and the most tokens of each half of what a model is tried on
ROOM = 64  # columns that a cache has ahead of what it holds
PIECE = 4096
"""The most tokens of a tree; one prompt may be longer."""
SHARED = 0.15  # the least share of prompts' tokens that a tree must spare


def reaches(config: Any) -> list[int]:
    """The numbers of a config that may bound how many tokens one sees (:data:`NARROW`)."""
    values = [value for name, value in config.to_dict().items() if NARROW.search(name)]
    numbers = [n for value in values for n in (value if isinstance(value, list) else [value])]
    return [n for n in numbers if type(n) is int and n > 0]


NEVER = 1 << 62


def rotary_switch(config: Any) -> int:
    """After how many tokens a model turns every position by other factors (longrope): the library
    chooses them by the longest row of a pass. :data:`NEVER` where it has one set; those of
    "dynamic" change beyond max_position_embeddings alone, where no window reaches."""
    rotary = config.to_dict().get("rope_parameters") or {}
    [switch] = {
        kind["original_max_position_embeddings"]
        for kind in (rotary, *rotary.values())
        if isinstance(kind, dict) and kind.get("rope_type") == "longrope"
    } or {NEVER}
    return switch


class Passes:
    """The forward pass of ``model`` on ``device``.
    ``pads``: rows of different lengths may share a pass, which was tried: each has the logits that
    it has alone. ``has_room``: its cache may be :func:`with_room`. ``cache``: the name of a cache
    whose rows can be chosen, or "". ``switch``: :func:`rotary_switch`, beyond which all is read
    again. ValueError where a prompt has other logits than in the model's own pass, with positions
    and without."""

    def __init__(self, model: Any, device: str) -> None:
        import torch

        self._torch: Any = torch
        self.model, self.device = model, device
        self._accepts = set(inspect.signature(model.forward).parameters)
        self._is_exact = model.dtype.itemsize >= 4
        config = model.config.get_text_config()
        layers = set(getattr(config, "layer_types", None) or ())
        self.switch = rotary_switch(config)
        stateless = layers <= ATTENTION and not model._is_stateful
        self.pads = (
            stateless
            and self.switch == NEVER
            and {"attention_mask", "position_ids"} <= self._accepts
        )
        self.cache = next((name for name in CACHES if name in self._accepts), "")
        # Some keep their state in the modules, where rows cannot be chosen.
        if any(hasattr(module, "_setup_cache") for module in model.modules()):
            self.cache = ""
        least, most = PROBED
        n = max([least, *(reach for reach in reaches(config) if reach <= most)])
        if (positions := getattr(config, "max_position_embeddings", None) or 0) > 0:
            n = min(n, (positions - 4) // 2)
        # What lies far is unlike what lies near.
        far = (3,) * n + (4,) * n
        self._probes = [far + end for end in ((1, 5), (2,), (2, 6, 5))]
        if "position_ids" in self._accepts and not self._as_alone(1):
            # Some count positions from elsewhere (RoBERTa from its padding's): they count alone.
            self._accepts -= {"position_ids"}
            self.pads = False
            if not self._as_alone(1):
                kind = type(model).__name__
                raise ValueError(f"{kind} gives other probabilities here than alone")
        self.pads = self.pads and self._as_alone(len(self._probes))
        self.has_room = bool(self.cache) and self.pads and layers <= {"full_attention"}

    def _as_alone(self, n_rows: int) -> bool:
        """Whether logits after prompts that share a pass are those of the model's own for each."""
        probes = self._probes[:n_rows]
        mine, _ = self.run(*left_padded(probes), 0, None, keep=1)
        with self._torch.inference_mode():
            each = [self.model(self._tensor(np.array([p]))).logits[:, -1] for p in probes]
        return self._alike(mine[:, 0], self._torch.cat(each))

    def _alike(self, mine: Any, plain: Any) -> bool:
        share = ALIKE if self._is_exact else ROUNDED
        return bool((mine - plain).abs().amax() <= share * plain.abs().amax())

    def _tensor(self, values: np.ndarray) -> Any:
        return self._torch.from_numpy(values).to(self.device)

    @functools.cached_property
    def trees(self) -> int:
        """Tokens of one pass over prompts with a common beginning (:func:`tree_of`): about where
        their masked attention costs a quarter of all else. 0 where the model may see less than was
        tried, does not take such a mask, or gives other logits."""
        config, probes = self.model.config.get_text_config(), self._probes
        tried = len(probes[0]) // 2 if self._is_exact else 0
        far = any(reach > tried for reach in reaches(config))
        if far or not self.has_room or "logits_to_keep" not in self._accepts:
            return 0
        plain = self.run(*left_padded(probes), 0, with_room(), keep=1)[0][:, 0]
        try:
            found, _ = self.run_tree(tree_of(probes, range(len(probes))))
        except Exception:  # a model raises anything at a mask that it does not take
            return 0
        width = getattr(config, "hidden_size", 0)
        return min(PIECE, max(256, 3 * width // 2)) if self._alike(found, plain) else 0

    def run_tree(self, tree: Tree) -> tuple[Any, Any]:
        """Logits after each prompt of a tree (prompts, N), and the cache of its tokens."""
        torch, kind = self._torch, self.model.dtype
        mask = torch.zeros(tree.sees.shape, dtype=kind, device=self.device)
        mask.masked_fill_(~self._tensor(tree.sees), torch.finfo(kind).min)
        with torch.inference_mode():
            out = self.model(
                input_ids=self._tensor(tree.ids[None]), position_ids=self._tensor(tree.depth[None]),
                attention_mask=mask[None, None], use_cache=True, **{self.cache: with_room()},
                logits_to_keep=self._tensor(np.array([path[-1] for path in tree.paths])),
            )  # fmt: skip
        return out.logits[0], getattr(out, self.cache)

    def run(
        self, ids: np.ndarray, padding: np.ndarray, past: int, cache: Any, keep: int
    ) -> tuple[Any, Any]:
        """Logits of the last ``keep`` positions, a tensor (n, keep, N), and the cache.
        ``ids`` (n, width) are the new columns behind ``past`` ones, ``padding`` (n,) how many
        columns of each row are filling. The cache is ``None`` where the model has none whose rows
        can be chosen: then ``ids`` must be everything so far."""
        columns = np.arange(past + ids.shape[1])
        inputs: dict[str, Any] = {
            "input_ids": self._tensor(ids),
            "position_ids": self._tensor(np.maximum(columns[past:] - padding[:, None], 0)),
            "logits_to_keep": keep,  # spares the vocabulary-wide product elsewhere
            "use_cache": False,
        }
        if self.pads:
            inputs["attention_mask"] = self._tensor((columns >= padding[:, None]).astype(np.int64))
        given = {name: value for name, value in inputs.items() if name in self._accepts}
        if self.cache:
            given |= {"use_cache": True, self.cache: cache}
        with self._torch.inference_mode():
            out = self.model(**given)
        held = getattr(out, self.cache, None)
        if not hasattr(held, "reorder_cache"):
            self.cache, held = "", None
        return out.logits[:, -keep:], held


def with_room() -> Any:
    """An empty cache whose layers write into room that they have; transformers' own copy all they
    hold at every token."""
    from transformers.cache_utils import Cache

    return Cache(layer_class_to_replicate=_layer())


@functools.cache
def _layer() -> Any:
    import torch
    from transformers.cache_utils import DynamicLayer

    class Layer(DynamicLayer):
        """Keys and values (rows, heads, columns, width): the first columns of a wider tensor."""

        keys: Any
        values: Any
        wide: list[Any]

        def update(self, key_states: Any, value_states: Any, *_: Any, **__: Any) -> Any:
            """All keys and values, the new ones last."""
            new = key_states.shape[-2]
            if not self.is_initialized:
                self.lazy_initialization(key_states, value_states)
                return self._holds([key_states, value_states], new)
            held = self.keys.shape[-2]
            if held + new > self.wide[0].shape[-2]:
                whole, more = (self.keys, self.values), (0, 0, 0, new + ROOM)
                self.wide = [torch.nn.functional.pad(states, more) for states in whole]
            for wide, states in zip(self.wide, (key_states, value_states), strict=True):
                wide[..., held : held + new, :] = states
            return self._holds(self.wide, held + new)

        def take(self, states: Any, row: int, n_rows: int, columns: int) -> None:
            """Put the keys and values of one prompt into a row, to end at ``columns``."""
            if not self.is_initialized:
                self.lazy_initialization(*states)
                shapes = ((n_rows, s.shape[1], columns + ROOM, s.shape[3]) for s in states)
                self._holds([states[0].new_zeros(shape) for shape in shapes], columns)
            for wide, held in zip(self.wide, states, strict=True):
                wide[row, :, columns - held.shape[2] : columns] = held[0]

        def reorder_cache(self, beam_idx: Any) -> None:
            """Rows ``beam_idx`` in the place of all."""
            chosen = [states.index_select(0, beam_idx) for states in self.wide]
            self._holds(chosen, self.keys.shape[-2])

        def fill(self, rows: Any, movers: Any, n_rows: int) -> None:
            """Keep the first ``n_rows``, with the rows ``movers`` in the place of ``rows``."""
            held = self.keys.shape[-2]
            for states in self.wide:
                states[rows, :, :held] = states[movers, :, :held]
            self._holds([states[:n_rows] for states in self.wide], held)

        def _holds(self, wide: list[Any], columns: int) -> Any:
            self.wide = wide
            self.keys, self.values = (states[..., :columns, :] for states in wide)
            return self.keys, self.values

    return Layer


class Tree(NamedTuple):
    """Prompts in one row of tokens, what several begin with once.
    ``ids`` and ``depth`` (T,): tokens and their positions; ``sees`` (T, T): the tokens before each
    in its prompt, and itself; ``rows``: which prompts; ``paths``: the places of each one's
    tokens."""

    ids: np.ndarray
    depth: np.ndarray
    sees: np.ndarray
    rows: list[int]
    paths: list[np.ndarray]


def tree_of(prompts: Sequence[Ids], rows: Iterable[int]) -> Tree:
    """The tree of some prompts, which come in the order of their tokens."""
    ids: list[int] = []
    begins, paths, last = [], [np.arange(0)], ()
    for prompt in (prompts[row] for row in rows):
        shared = n_common(last, prompt)
        new = np.arange(len(ids), len(ids) + len(prompt) - shared)
        begins.append((shared, new))
        paths.append(np.r_[paths[-1][:shared], new])
        ids += prompt[shared:]
        last = prompt
    depth, sees = np.zeros(len(ids), np.int64), np.zeros((len(ids), len(ids)), bool)
    for path, (shared, new) in zip(paths[1:], begins, strict=True):
        depth[new] = np.arange(shared, len(path))
        sees[np.ix_(new, path)] = np.arange(len(path)) <= depth[new][:, None]
    return Tree(np.array(ids), depth, sees, list(rows), paths[1:])


def trees(prompts: Sequence[Ids], most: int) -> list[Tree]:
    """Trees of at most ``most`` tokens, or of one prompt, that hold all prompts; none where less
    than :data:`SHARED` is spared."""
    parts: list[list[int]] = []
    n_tokens, last = 0, ()
    for row in sorted(range(len(prompts)), key=lambda row: prompts[row]):
        new = len(prompts[row]) - n_common(last, prompts[row])
        if not parts or n_tokens + new > most:
            parts.append([])
            n_tokens, new = 0, len(prompts[row])
        parts[-1].append(row)
        n_tokens, last = n_tokens + new, prompts[row]
    made = [tree_of(prompts, part) for part in parts]
    spared = 1 - sum(len(tree.ids) for tree in made) / sum(map(len, prompts))
    return made if spared >= SHARED else []


class Branches:
    """The distinct beginnings of the replies to a batch of prompts, a row each."""

    def __init__(self, passes: Passes, prompts: Sequence[Ids]) -> None:
        self._passes, self._prompts = passes, prompts
        self._ids, self._padding = left_padded(prompts)
        self._past = 0
        self._cache: Any = None

    def read(self) -> Any:
        """Logits of the next token at every node, a tensor (n, N)."""
        if self._past == self._passes.switch:
            self._past, self._cache = 0, None  # read with other factors
        if not self._past and self._passes.has_room:
            return self._begin()
        now = self._ids[:, self._past :], self._padding, self._past, self._cache
        logits, self._cache = self._passes.run(*now, keep=1)
        self._past = self._ids.shape[1] if self._cache is not None else 0
        return logits[:, 0]

    def _begin(self) -> Any:
        """The prompts' logits. Where they share enough they are read as trees, whose caches are put
        together in one."""
        n_rows, self._past = self._ids.shape
        self._cache = with_room()
        most = self._passes.trees if n_rows > 1 else 0
        if not (planted := trees(self._prompts, most) if most else []):
            logits, _ = self._passes.run(self._ids, self._padding, 0, self._cache, keep=1)
            return logits[:, 0]
        read, order = [], []
        for tree in planted:
            logits, cache = self._passes.run_tree(tree)
            read.append(logits)
            order += tree.rows
            for row, path in zip(tree.rows, tree.paths, strict=True):
                for i, layer in enumerate(cache.layers):
                    if i == len(self._cache.layers):
                        self._cache.layers.append(type(layer)())
                    states = [held[:, :, path] for held in (layer.keys, layer.values)]
                    self._cache.layers[i].take(states, row, n_rows, self._past)
        return self._passes._torch.cat(read)[np.argsort(order)]

    def extend(self, parent: np.ndarray, token: np.ndarray) -> np.ndarray:
        """Replace the nodes by ``parent[i]`` followed by ``token[i]``, (m,); their rows (m,)."""
        rows, n_rows = np.arange(len(parent)), len(self._padding)
        if self._cache is not None and not np.array_equal(parent, np.arange(n_rows)):
            rows = self._arrange(parent)
        order = np.argsort(rows)
        longer = np.concatenate([self._ids[parent], token[:, None]], axis=1)
        self._ids, self._padding = longer[order], self._padding[parent[order]]
        return rows

    def _arrange(self, parent: np.ndarray) -> np.ndarray:
        """The cache's rows for the new nodes: where none has two, only the last rows move, to those
        that nobody goes on from."""
        rows, tensor = np.arange(len(parent)), self._passes._tensor
        if not self._passes.has_room or len(np.unique(parent)) < len(parent):
            self._cache.reorder_cache(tensor(parent))
            return rows
        left, stays = np.setdiff1d(rows, parent), parent < len(parent)
        rows[stays], rows[~stays] = parent[stays], left
        for layer in self._cache.layers:
            layer.fill(tensor(left), tensor(parent[~stays]), len(parent))
        return rows
