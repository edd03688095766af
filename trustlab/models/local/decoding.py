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
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from trustlab.models.base import STATISTICS, Request
from trustlab.models.ranges import EXCESS, ROUNDING

BOUNDS = {"entropies": "lower", "renyi": "upper", "fisher_rao": "upper"}
"""Which side of the truth each statistic of :func:`bounds` lies on."""


class Bounds(NamedTuple):
    """Entropy at least (nats); Rényi divergence (nats) and Fisher-Rao distance ([0, 1]) at most,
    ``None`` where the vocabulary's size is not known."""

    entropy: float
    renyi: float | None = None
    fisher_rao: float | None = None


def bounds(
    logprobs: Sequence[float], cap: float | None, *, alpha: float,
    vocabulary_size: int | None = None,
) -> Bounds | None:  # fmt: skip
    """What is certain of a distribution of which some tokens are known. ``logprobs`` (m,): natural
    log-probabilities of distinct known tokens; ``None`` where there is none or they sum to more
    than 1. ``cap``: what no hidden token exceeds; ``None``: the rest may be one token. The
    divergence of order ``alpha`` and the distance need a ``vocabulary_size`` that the tokens
    fit."""
    values = np.asarray(logprobs, dtype=np.float64)
    counts = np.ones(len(values))
    rest = 1.0 - float(np.exp(values).sum())
    if not len(values) or rest < -EXCESS:
        return None
    if rest > ROUNDING:  # servers lose less by rounding
        for logprob, n_tokens in hidden_tokens(rest, cap):
            values = np.append(values, logprob)
            counts = np.append(counts, float(n_tokens))
    probs = np.exp(values)
    entropy = max(0.0, float(-(counts * probs * values).sum()))
    if vocabulary_size is None or counts.sum() > vocabulary_size:
        return Bounds(entropy)
    log_n = math.log(vocabulary_size)
    renyi = log_n - entropy
    if alpha != 1:
        power: Any = logsumexp(alpha * values, b=counts)
        renyi = (float(power) - (1 - alpha) * log_n) / (alpha - 1)
    roots = np.exp(values / 2)
    root_sum = float((counts * roots).sum())
    overlap = root_sum / math.sqrt(vocabulary_size)
    angle = math.acos(min(1.0, overlap))
    return Bounds(entropy, max(0.0, renyi), 2 / math.pi * angle)


def hidden_tokens(rest: float, cap: float | None) -> list[tuple[float, int]]:
    """The probability ``rest`` packed into the fewest hidden tokens: (log-probability of each, how
    many). ``cap`` as in :func:`bounds`."""
    largest = 1.0
    if cap is not None:
        largest = math.exp(cap)
    if largest <= 0:
        return []
    n_full = math.floor(rest / largest)
    remainder = rest - n_full * largest
    hidden = []
    for p, n in ((largest, n_full), (remainder, 1)):
        if n and p > 1e-300:
            hidden.append((math.log(p), n))
    return hidden


Ids = tuple[int, ...]


def uniforms(slot: ReplySlot, n: int) -> np.ndarray:
    """``n`` uniforms in [0, 1) for a reply: a function of its seed, index and messages only."""
    request = slot.request
    index = request.first + slot.reply_index
    text = json.dumps([request.seed, index, request.messages])
    digest = hashlib.sha256(text.encode()).digest()
    key = int.from_bytes(digest[:16], "little")
    bits = np.random.Philox(key=key)
    return np.random.Generator(bits).random(n)


STRIDE = 16  # tokens after which a text that ends with a letter is taken for settled


def text_pieces(ids: Ids, decode: Callable[[Ids], str]) -> list[str]:
    """The text that each token adds; joined they are ``decode(ids)``. A token that completes no
    character adds ''."""
    if not ids:
        return []
    text = decode(ids)
    ends = [0]
    # The ids before ``start`` are text[:n_settled]; what follows is read behind ids[back:start],
    # which are n_behind characters.
    back = 0
    start = 0
    n_settled = 0
    n_behind = 0
    for k in range(1, len(ids)):
        piece = decode(ids[back:k])[n_behind:]
        expected = text[n_settled : n_settled + len(piece)]
        n_agreed = n_settled + n_common(piece, expected)
        ends.append(max(ends[-1], n_agreed))
        is_whole = n_agreed == n_settled + len(piece)
        n_unsettled = k - start
        if is_whole and n_unsettled >= STRIDE and piece[-1:].isalnum():
            back = start
            start = k
            n_settled = n_agreed
            n_behind = len(decode(ids[back:start]))
    ends.append(len(text))
    return [text[start:stop] for start, stop in itertools.pairwise(ends)]


def n_common(first: Any, second: Any) -> int:
    """How many items both begin with."""
    if first == second[: len(first)]:  # nearly always, and the quicker question
        return len(first)
    return len(os.path.commonprefix([first, second]))


def left_padded(rows: Sequence[Ids]) -> tuple[np.ndarray, np.ndarray]:
    """Token ids (n, width), and how many zeros each row has on its left (n,)."""
    lengths = np.array([len(row) for row in rows])
    width = lengths.max()
    padding = width - lengths
    ids = np.zeros((len(rows), width), dtype=np.int64)
    for i, row in enumerate(rows):
        start = padding[i]
        ids[i, start:] = row
    return ids, padding


LEAST = {"n": 1, "max_tokens": 1, "first": 0, "n_alternatives": 1}
"""The least value of a request's numbers."""


def check(request: Request) -> None:
    """ValueError for a request that cannot be answered."""
    for name, least in LEAST.items():
        value = getattr(request, name)
        if value < least:
            raise ValueError(f"{name} must be at least {least}, got {name}={value}")
    if not 0 < request.renyi_alpha < math.inf:
        raise ValueError(
            f"renyi_alpha must be finite and above 0, got {request.renyi_alpha}"
        )
    if not 0 <= request.temperature < math.inf:
        raise ValueError(
            f"temperature must be finite and at least 0, got {request.temperature}"
        )
    unknown = request.want - set(STATISTICS)
    if unknown:
        raise ValueError(f"want must be among {STATISTICS}, got {sorted(unknown)}")
    if "prior" in request.want and request.prior_messages is None:
        what = "give the messages without patient information"
        raise ValueError(f"prior is wanted but prior_messages is None; {what}")


class ReplySlot(NamedTuple):
    """Which reply of a batch: the row of its prompt in the batch, its request, that request's
    place among all requests, which of the request's replies it is, and its most tokens."""

    prompt: int
    request: Request
    request_index: int
    reply_index: int
    limit: float


Alternatives = dict[int, tuple[tuple[int, float], ...]]
"""Node -> (token, log-probability) of its most probable tokens."""


class GrowingReplies:
    """The R replies of one batch, up to T tokens each, filled in while they grow; arrays are (R,)
    or (R, T). ``statistics`` (5, R, T): logprobs, entropies, renyi, fisher_rao, certainty.
    ``node``: where each reply stood at a step; ``alternatives``: of each step. ``length``: without
    the end token."""

    def __init__(self, slots: list[ReplySlot]) -> None:
        requests = [slot.request for slot in slots]
        self.slots = slots
        self.requests = requests
        temperatures = [float(request.temperature) for request in requests]
        alphas = [float(request.renyi_alpha) for request in requests]
        wants_distributions = ["distributions" in request.want for request in requests]
        limits = [slot.limit for slot in slots]
        self.prompt = np.array([slot.prompt for slot in slots])
        self.temperature = np.array(temperatures)
        self.alpha = np.array(alphas)
        self.wants_distributions = np.array(wants_distributions)
        self.n_alternatives = max(request.n_alternatives for request in requests)
        self.limit = np.array(limits, np.int64)
        n_replies = len(slots)
        n_steps = int(self.limit.max())
        shape = (n_replies, n_steps)
        self.uniform = np.zeros(shape)  # of greedy replies
        for i, slot in enumerate(slots):
            if slot.request.temperature > 0:
                self.uniform[i] = uniforms(slot, n_steps)
        self.tokens = np.zeros(shape, dtype=np.int64)
        self.node = np.zeros(shape, dtype=np.int64)
        self.statistics = np.full((5, *shape), np.nan)
        self.length = self.limit.copy()
        self.stopped = np.zeros(n_replies, dtype=bool)
        self.cycled = np.zeros(n_replies, dtype=bool)
        self.alternatives: list[Alternatives] = []

    def ids(self, i: int) -> Ids:
        """The tokens of reply ``i`` so far, without the end token."""
        tokens = self.tokens[i, : self.length[i]]
        return tuple(tokens.tolist())


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
# the least and the most tokens of each half of what a model is tried on
PROBED = (16, 256)
ROOM = 64  # columns that a cache has ahead of what it holds
PIECE = 4096
"""The most tokens of a tree; one prompt may be longer."""
SHARED = 0.15  # the least share of prompts' tokens that a tree must spare


def reaches(config: Any) -> list[int]:
    """The numbers of a config that may bound how many tokens one sees (:data:`NARROW`)."""
    reaches = []
    for name, value in config.to_dict().items():
        if not NARROW.search(name):
            continue
        numbers = value
        if not isinstance(value, list):
            numbers = [value]
        for number in numbers:
            if type(number) is int and number > 0:
                reaches.append(number)
    return reaches


NEVER = 1 << 62


def rotary_switch(config: Any) -> int:
    """After how many tokens a model turns every position by other factors (longrope): the library
    chooses them by the longest row of a pass. :data:`NEVER` where it has one set; those of
    "dynamic" change beyond max_position_embeddings alone, where no window reaches."""
    rotary = config.to_dict().get("rope_parameters") or {}
    switches = set()
    for kind in (rotary, *rotary.values()):
        if isinstance(kind, dict) and kind.get("rope_type") == "longrope":
            switches.add(kind["original_max_position_embeddings"])
    if not switches:
        return NEVER
    [switch] = switches
    return switch


def probes_of(config: Any) -> list[Ids]:
    """Three prompts of different lengths on which a model is tried, beyond what it may see."""
    least, most = PROBED
    n = least
    for reach in reaches(config):
        if reach <= most:
            n = max(n, reach)
    n_positions = getattr(config, "max_position_embeddings", None) or 0
    if n_positions > 0:
        n = min(n, (n_positions - 4) // 2)
    # What lies far is unlike what lies near.
    far = (3,) * n + (4,) * n
    return [far + end for end in ((1, 5), (2,), (2, 6, 5))]


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
        self.model = model
        self.device = device
        self._accepts = set(inspect.signature(model.forward).parameters)
        self._is_exact = model.dtype.itemsize >= 4
        config = model.config.get_text_config()
        layers = set(getattr(config, "layer_types", None) or ())
        self.switch = rotary_switch(config)
        self.cache = self._cache_name()
        self._probes = probes_of(config)
        is_stateless = layers <= ATTENTION and not model._is_stateful
        takes_padding = {"attention_mask", "position_ids"} <= self._accepts
        self.pads = is_stateless and self.switch == NEVER and takes_padding
        if "position_ids" in self._accepts and not self._has_own_logits(1):
            # Some count positions from elsewhere (RoBERTa from its padding's): they count alone.
            self._accepts -= {"position_ids"}
            self.pads = False
            if not self._has_own_logits(1):
                kind = type(model).__name__
                raise ValueError(f"{kind} gives other probabilities here than alone")
        self.pads = self.pads and self._has_own_logits(len(self._probes))
        self.has_room = bool(self.cache) and self.pads and layers <= {"full_attention"}

    def _cache_name(self) -> str:
        # Some keep their state in the modules, where rows cannot be chosen.
        for module in self.model.modules():
            if hasattr(module, "_setup_cache"):
                return ""
        for name in CACHES:
            if name in self._accepts:
                return name
        return ""

    def _has_own_logits(self, n_probes: int) -> bool:
        """Whether logits after prompts that share a pass are those of the model's own for each."""
        probes = self._probes[:n_probes]
        logits = self._logits_of_probes(probes, None)
        alone = []
        with self._torch.inference_mode():
            for probe in probes:
                ids = self._tensor(np.array([probe]))
                alone.append(self.model(ids).logits[:, -1])
        return self._is_alike(logits, self._torch.cat(alone))

    def _logits_of_probes(self, probes: list[Ids], cache: Any) -> Any:
        ids, padding = left_padded(probes)
        logits, _ = self.run(ids, padding, past=0, cache=cache, keep=1)
        return logits[:, 0]

    def _is_alike(self, logits: Any, expected: Any) -> bool:
        share = ALIKE
        if not self._is_exact:
            share = ROUNDED
        largest_gap = (logits - expected).abs().amax()
        return bool(largest_gap <= share * expected.abs().amax())

    def _tensor(self, values: np.ndarray) -> Any:
        return self._torch.from_numpy(values).to(self.device)

    @functools.cached_property
    def trees(self) -> int:
        """Tokens of one pass over prompts with a common beginning (:func:`tree_of`): about where
        their masked attention costs a quarter of all else. 0 where the model may see less than was
        tried, does not take such a mask, or gives other logits."""
        config = self.model.config.get_text_config()
        probes = self._probes
        n_tried = 0
        if self._is_exact:
            n_tried = len(probes[0]) // 2
        sees_less = any(reach > n_tried for reach in reaches(config))
        if sees_less or not self.has_room or "logits_to_keep" not in self._accepts:
            return 0
        expected = self._logits_of_probes(probes, with_room())
        tree = tree_of(probes, range(len(probes)))
        try:
            logits, _ = self.run_tree(tree)
        except Exception:  # a model raises anything at a mask that it does not take
            return 0
        if not self._is_alike(logits, expected):
            return 0
        width = getattr(config, "hidden_size", 0)
        return min(PIECE, max(256, 3 * width // 2))

    def run_tree(self, tree: Tree) -> tuple[Any, Any]:
        """Logits after each prompt of a tree (prompts, N), and the cache of its tokens."""
        torch = self._torch
        kind = self.model.dtype
        mask = torch.zeros(tree.sees.shape, dtype=kind, device=self.device)
        hidden = ~self._tensor(tree.sees)
        mask.masked_fill_(hidden, torch.finfo(kind).min)
        last_places = np.array([path[-1] for path in tree.paths])
        cache = {self.cache: with_room()}
        with torch.inference_mode():
            output = self.model(
                input_ids=self._tensor(tree.ids[None]),
                position_ids=self._tensor(tree.depth[None]),
                attention_mask=mask[None, None],
                use_cache=True,
                logits_to_keep=self._tensor(last_places),
                **cache,
            )
        return output.logits[0], getattr(output, self.cache)

    def run(
        self, ids: np.ndarray, padding: np.ndarray, past: int, cache: Any, keep: int
    ) -> tuple[Any, Any]:
        """Logits of the last ``keep`` positions, a tensor (n, keep, N), and the cache.
        ``ids`` (n, width) are the new columns behind ``past`` ones, ``padding`` (n,) how many
        columns of each row are filling. The cache is ``None`` where the model has none whose rows
        can be chosen: then ``ids`` must be everything so far."""
        columns = np.arange(past + ids.shape[1])
        positions = np.maximum(columns[past:] - padding[:, None], 0)
        inputs: dict[str, Any] = {
            "input_ids": self._tensor(ids),
            "position_ids": self._tensor(positions),
            "logits_to_keep": keep,  # spares the vocabulary-wide product elsewhere
            "use_cache": False,
        }
        if self.pads:
            is_text = columns >= padding[:, None]
            inputs["attention_mask"] = self._tensor(is_text.astype(np.int64))
        accepted = {
            name: value for name, value in inputs.items() if name in self._accepts
        }
        if self.cache:
            accepted["use_cache"] = True
            accepted[self.cache] = cache
        with self._torch.inference_mode():
            output = self.model(**accepted)
        new_cache = getattr(output, self.cache, None)
        if not hasattr(new_cache, "reorder_cache"):
            self.cache = ""
            new_cache = None
        return output.logits[:, -keep:], new_cache


def with_room() -> Any:
    """An empty cache whose layers write into room that they have; transformers' own copy all they
    hold at every token."""
    from transformers.cache_utils import Cache

    return Cache(layer_class_to_replicate=_layer())


class WideStates:
    """Keys or values (rows, heads, columns, width): the first columns of a wider tensor."""

    def __init__(self, wide: Any, n_columns: int) -> None:
        self.wide = wide
        self.n_columns = n_columns

    @classmethod
    def zeros(cls, states: Any, n_rows: int, n_columns: int) -> WideStates:
        """Zeros with the heads and the width of ``states``."""
        _, n_heads, _, width = states.shape
        shape = (n_rows, n_heads, n_columns + ROOM, width)
        return cls(states.new_zeros(shape), n_columns)

    @property
    def filled(self) -> Any:
        """The columns in use."""
        return self.wide[..., : self.n_columns, :]

    def append(self, states: Any) -> None:
        """Put new columns behind the others."""
        n_new = states.shape[-2]
        start = self.n_columns
        stop = start + n_new
        if stop > self.wide.shape[-2]:
            from torch.nn.functional import pad

            self.wide = pad(self.filled, (0, 0, 0, n_new + ROOM))
        self.wide[..., start:stop, :] = states
        self.n_columns = stop

    def put(self, states: Any, row: int) -> None:
        """Put the columns of one prompt into a row, to end with the others."""
        stop = self.n_columns
        start = stop - states.shape[2]
        self.wide[row, :, start:stop] = states[0]

    def choose(self, rows: Any) -> None:
        """These rows in the place of all."""
        self.wide = self.wide.index_select(0, rows)

    def fill(self, rows: Any, movers: Any, n_rows: int) -> None:
        """Keep the first ``n_rows``, with the rows ``movers`` in the place of ``rows``."""
        stop = self.n_columns
        moved = self.wide[movers, :, :stop]
        self.wide[rows, :, :stop] = moved
        self.wide = self.wide[:n_rows]


@functools.cache
def _layer() -> Any:
    from transformers.cache_utils import DynamicLayer

    class Layer(DynamicLayer):
        """A layer of a cache whose keys and values are :class:`WideStates`."""

        wide_keys: WideStates
        wide_values: WideStates

        def update(self, key_states: Any, value_states: Any, *_: Any, **__: Any) -> Any:
            """All keys and values, the new ones last."""
            if self.is_initialized:
                self.wide_keys.append(key_states)
                self.wide_values.append(value_states)
            else:
                self.lazy_initialization(key_states, value_states)
                n_columns = key_states.shape[-2]
                self.wide_keys = WideStates(key_states, n_columns)
                self.wide_values = WideStates(value_states, n_columns)
            self._show()
            return self.keys, self.values

        def take(
            self, keys: Any, values: Any, row: int, n_rows: int, n_columns: int
        ) -> None:
            """Put the keys and values of one prompt into a row, to end at ``n_columns``."""
            if not self.is_initialized:
                self.lazy_initialization(keys, values)
                self.wide_keys = WideStates.zeros(keys, n_rows, n_columns)
                self.wide_values = WideStates.zeros(values, n_rows, n_columns)
            self.wide_keys.put(keys, row)
            self.wide_values.put(values, row)
            self._show()

        def reorder_cache(self, beam_idx: Any) -> None:
            """Rows ``beam_idx`` in the place of all."""
            self.wide_keys.choose(beam_idx)
            self.wide_values.choose(beam_idx)
            self._show()

        def fill(self, rows: Any, movers: Any, n_rows: int) -> None:
            """Keep the first ``n_rows``, with the rows ``movers`` in the place of ``rows``."""
            self.wide_keys.fill(rows, movers, n_rows)
            self.wide_values.fill(rows, movers, n_rows)
            self._show()

        def _show(self) -> None:
            self.keys = self.wide_keys.filled
            self.values = self.wide_values.filled

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


def tree_of(prompts: Sequence[Ids], rows: Sequence[int]) -> Tree:
    """The tree of some prompts, which come in the order of their tokens."""
    ids = []
    depth = []
    paths: list[np.ndarray] = []
    starts = []  # of what is new in each path
    last_prompt = ()
    path = np.arange(0)
    for row in rows:
        prompt = prompts[row]
        start = n_common(last_prompt, prompt)
        n_before = len(ids)
        ids += prompt[start:]
        depth += range(start, len(prompt))
        new_places = np.arange(n_before, len(ids))
        path = np.concatenate([path[:start], new_places])
        paths.append(path)
        starts.append(start)
        last_prompt = prompt
    n_tokens = len(ids)
    sees = np.zeros((n_tokens, n_tokens), bool)
    for path, start in zip(paths, starts, strict=True):
        depths = np.arange(len(path))
        is_before = depths <= depths[start:, None]
        sees[np.ix_(path[start:], path)] = is_before
    return Tree(
        ids=np.array(ids),
        depth=np.array(depth, np.int64),
        sees=sees,
        rows=list(rows),
        paths=paths,
    )


def trees(prompts: Sequence[Ids], most: int) -> list[Tree]:
    """Trees of at most ``most`` tokens, or of one prompt, that hold all prompts; none where less
    than :data:`SHARED` is spared."""
    parts = []
    n_tokens = 0
    last_prompt = ()
    for row in sorted(range(len(prompts)), key=prompts.__getitem__):
        prompt = prompts[row]
        n_new = len(prompt) - n_common(last_prompt, prompt)
        if not parts or n_tokens + n_new > most:
            parts.append([])
            n_tokens = 0
            n_new = len(prompt)
        parts[-1].append(row)
        n_tokens += n_new
        last_prompt = prompt
    planted = [tree_of(prompts, part) for part in parts]
    n_read = sum(len(tree.ids) for tree in planted)
    spared = 1 - n_read / sum(map(len, prompts))
    if spared < SHARED:
        return []
    return planted


class Branches:
    """The distinct beginnings of the replies to a batch of prompts, a row each."""

    def __init__(self, passes: Passes, prompts: Sequence[Ids]) -> None:
        self._passes = passes
        self._prompts = prompts
        self._ids, self._padding = left_padded(prompts)
        self._past = 0
        self._cache: Any = None

    def read(self) -> Any:
        """Logits of the next token at every node, a tensor (n, N)."""
        if self._past == self._passes.switch:  # read with other factors
            self._past = 0
            self._cache = None
        if not self._past and self._passes.has_room:
            return self._begin()
        new_ids = self._ids[:, self._past :]
        logits, self._cache = self._passes.run(
            new_ids, self._padding, past=self._past, cache=self._cache, keep=1
        )
        self._past = 0
        if self._cache is not None:
            self._past = self._ids.shape[1]
        return logits[:, 0]

    def _begin(self) -> Any:
        """The prompts' logits. Where they share enough they are read as trees, whose caches are put
        together in one."""
        n_rows, self._past = self._ids.shape
        self._cache = with_room()
        prompt_trees = []
        if n_rows > 1 and self._passes.trees:
            prompt_trees = trees(self._prompts, self._passes.trees)
        if not prompt_trees:
            logits, _ = self._passes.run(
                self._ids, self._padding, past=0, cache=self._cache, keep=1
            )
            return logits[:, 0]
        logits_by_tree = []
        rows = []
        for tree in prompt_trees:
            logits, cache = self._passes.run_tree(tree)
            logits_by_tree.append(logits)
            rows += tree.rows
            self._take(tree, cache)
        return self._passes._torch.cat(logits_by_tree)[np.argsort(rows)]

    def _take(self, tree: Tree, cache: Any) -> None:
        """Put the keys and values of a tree's prompts into their rows."""
        n_rows = len(self._ids)
        layers = self._cache.layers
        for row, path in zip(tree.rows, tree.paths, strict=True):
            for i, layer in enumerate(cache.layers):
                if i == len(layers):
                    layers.append(type(layer)())
                keys = layer.keys[:, :, path]
                values = layer.values[:, :, path]
                layers[i].take(keys, values, row, n_rows, self._past)

    def extend(self, parent: np.ndarray, token: np.ndarray) -> np.ndarray:
        """Replace the nodes by ``parent[i]`` followed by ``token[i]``, (m,); their rows (m,)."""
        rows = np.arange(len(parent))
        nodes = np.arange(len(self._padding))
        is_changed = not np.array_equal(parent, nodes)
        if is_changed and self._cache is not None:
            rows = self._arrange(parent)
        order = np.argsort(rows)
        ids = self._ids[parent]
        longer = np.concatenate([ids, token[:, None]], axis=1)
        padding = self._padding[parent]
        self._ids = longer[order]
        self._padding = padding[order]
        return rows

    def _arrange(self, parent: np.ndarray) -> np.ndarray:
        """The cache's rows for the new nodes: where none has two, only the last rows move, to those
        that nobody goes on from."""
        rows = np.arange(len(parent))
        tensor = self._passes._tensor
        has_twins = len(np.unique(parent)) < len(parent)
        if has_twins or not self._passes.has_room:
            self._cache.reorder_cache(tensor(parent))
            return rows
        free_rows = np.setdiff1d(rows, parent)
        stays = parent < len(parent)
        movers = parent[~stays]
        rows[stays] = parent[stays]
        rows[~stays] = free_rows
        for layer in self._cache.layers:
            layer.fill(tensor(free_rows), tensor(movers), len(parent))
        return rows
