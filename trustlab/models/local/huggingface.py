"""Asks a model of the transformers library."""

from __future__ import annotations

import functools
import gc
import itertools
import json
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from trustlab.models.abilities import not_default, too_long
from trustlab.models.base import STATISTICS, Keep, Messages, Model, Request, taught_in
from trustlab.models.local import decoding, opening
from trustlab.models.local.decoding import (
    Branches,
    GrowingReplies,
    Ids,
    Passes,
    ReplySlot,
)
from trustlab.models.local.forms import Forms, repeats_itself
from trustlab.models.local.templates import (
    check_options,
    check_template,
    fix_date,
    system_in_user,
)
from trustlab.models.thought import (
    Thinking,
    apart,
    check_thinking,
    has_opened_thought,
    with_thought,
)
from trustlab.records import Reply, TokenTrace


def defused(tokenizer: Any, messages: Messages) -> Messages:
    """The messages with a space in every special token (``</s>``) that somebody wrote out."""
    special = set(tokenizer.all_special_tokens)
    for token in getattr(tokenizer, "added_tokens_decoder", {}).values():
        if token.special:
            special.add(str(token))
    visible = [token for token in special if len(token.strip()) > 1]
    for token in sorted(visible, key=len, reverse=True):
        broken = f"{token[0]} {token[1:]}"
        messages = tuple(
            (role, content.replace(token, broken)) for role, content in messages
        )
    return messages


def prompt_text(
    tokenizer: Any, messages: Messages, options: Mapping[str, Any] | None = None
) -> str:
    """The conversation as ``tokenizer``'s chat template writes it with ``options``, ready for the
    assistant's turn; without one, paragraphs of ``role: content``. Tried in turn, until the
    template refuses nothing and leaves nothing out: as it is, and with the system's text before the
    first user message; each also with contents in parts. ValueError, with the template's words, if
    none does. Special tokens written out are broken up (:func:`defused`)."""
    messages = defused(tokenizer, messages)
    if not tokenizer.chat_template:
        paragraphs = [f"{role}: {content}" for role, content in messages]
        return "\n\n".join([*paragraphs, "assistant:"])
    from jinja2 import TemplateError

    options = options or {}
    fix_date(tokenizer.get_chat_template(), options)
    refusal = "it leaves words out, or changes them"
    for attempt, in_parts in itertools.product(
        (messages, system_in_user(messages)), (False, True)
    ):
        turns = []
        for role, content in attempt:
            turn: dict[str, Any] = {"role": role, "content": content}
            if in_parts:
                turn["content"] = [{"type": "text", "text": content}]
            turns.append(turn)
        try:
            text = tokenizer.apply_chat_template(
                turns, add_generation_prompt=True, tokenize=False, **options
            )
        # the latter: parts where texts are added up
        except (TemplateError, TypeError) as error:
            if not in_parts:
                refusal = str(error)
            continue
        absent_roles = {
            role for role, content in attempt if content.strip() not in text
        }
        if absent_roles <= {"assistant"}:
            return text
    roles = [role for role, _ in messages]
    raise ValueError(
        f"the model's chat template does not take the roles {roles}: {refusal}"
    )


T = TypeVar("T")


class Owner(NamedTuple):
    """Whose a reply is: the place of its request among all, and which of its replies."""

    request_index: int
    reply_index: int


@dataclass(frozen=True)
class Share:
    """A prompt and the replies that grow from it, at most ``extra`` tokens long; replies that are
    one throughout share a row."""

    prompt: Ids
    rows: tuple[tuple[Owner, ...], ...]
    extra: int

    def within(self, limit: int) -> list[Share]:
        """Itself in parts of at most ``limit`` tokens, or of one row."""
        n_tokens = len(self.prompt) + self.extra
        n_rows = max(1, limit // n_tokens)
        parts = []
        for start in range(0, len(self.rows), n_rows):
            rows = self.rows[start : start + n_rows]
            parts.append(replace(self, rows=rows))
        return parts


def n_tokens_of(batch: Sequence[Share]) -> int:
    """All rows x (longest prompt + largest extra)."""
    longest_prompt = max(len(share.prompt) for share in batch)
    largest_extra = max(share.extra for share in batch)
    n_columns = longest_prompt + largest_extra
    n_rows = sum(len(share.rows) for share in batch)
    return n_rows * n_columns


def batches(
    shares: Sequence[Share], limit: int, *, equal: bool = False
) -> Iterator[list[int]]:
    """Indices by rising extra, then length, cut where :func:`n_tokens_of` would pass ``limit``, and
    with ``equal`` where the length changes; never empty."""
    order = sorted(
        range(len(shares)), key=lambda i: (shares[i].extra, len(shares[i].prompt))
    )
    batch = []
    for i in order:
        larger = [shares[k] for k in (*batch, i)]
        is_too_large = n_tokens_of(larger) > limit
        if equal and len({len(share.prompt) for share in larger}) > 1:
            is_too_large = True
        if batch and is_too_large:
            yield batch
            batch = []
        batch = [*batch, i]
    if batch:
        yield batch


def is_out_of_memory(error: BaseException) -> bool:
    """Whether Python, NumPy or torch, on any device, could not have the memory it asked for."""
    if isinstance(error, MemoryError):
        return True
    if not isinstance(error, RuntimeError):
        return False
    message = str(error).lower()
    return "out of memory" in message or "can't allocate memory" in message


def in_batches(
    shares: Iterable[Share],
    owner: Any,
    work: Callable[[list[Share]], T],
    *,
    equal: bool = False,
) -> Iterator[tuple[list[Share], T]]:
    """Every batch of ``shares`` with what ``work`` makes of it; ``equal``: only prompts of one
    length share a batch. When memory runs out, ``owner.batch_tokens`` falls to half of what the
    batch held (a warning, and a count in ``owner.usage["halvings"]``), and what is not done is cut
    anew. MemoryError: not even one row fits."""
    waiting = list(shares)
    while waiting:
        if owner.usage.get("halvings"):  # before, a prompt's replies stay together
            waiting = [
                part for share in waiting for part in share.within(owner.batch_tokens)
            ]
        finished = set()
        for indices in batches(waiting, owner.batch_tokens, equal=equal):
            batch = [waiting[i] for i in indices]
            results = _results(work, batch)
            if not results:
                _halve(owner, batch)
                break
            finished.update(indices)
            yield batch, results[0]
        waiting = [share for i, share in enumerate(waiting) if i not in finished]


def _results(work: Callable[[list[Share]], T], batch: list[Share]) -> list[T]:
    """What ``work`` makes of a batch; nothing where memory ran out. On return the error is gone,
    and with its frames what they filled."""
    try:
        return [work(batch)]
    except Exception as error:
        if not is_out_of_memory(error):
            raise
    return []


def _halve(owner: Any, batch: list[Share]) -> None:
    gc.collect()
    torch: Any = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()
    if sum(len(share.rows) for share in batch) == 1:
        [share] = batch
        what = f"one prompt of {len(share.prompt)} tokens with one reply of up to {share.extra}"
        raise MemoryError(
            f"memory does not suffice for {what}; shorten it, or choose a smaller model or dtype"
        )
    n_tokens = min(owner.batch_tokens, n_tokens_of(batch))
    owner.batch_tokens = max(1, n_tokens // 2)
    owner.usage["halvings"] = owner.usage.get("halvings", 0) + 1
    warnings.warn(
        f"memory ran out; a batch now holds at most {owner.batch_tokens} tokens",
        stacklevel=5,
    )


LEAST, MOST = 2_048, 65_536  # tokens of a batch where nobody says how many
CPU_CACHE = 1 << 29  # bytes of a batch's keys and values on a processor


def tokens_that_fit(model: Any, device: str) -> int:
    """Tokens whose keys and values take :data:`CPU_CACHE` bytes, or a quarter of a GPU's free
    memory, from :data:`LEAST` to :data:`MOST`."""
    import torch

    config = model.config.get_text_config()
    heads = getattr(config, "num_attention_heads", None) or 1
    key_heads = getattr(config, "num_key_value_heads", None) or heads
    width = (
        getattr(config, "head_dim", None)
        or getattr(config, "hidden_size", 4096) // heads
    )
    layers = getattr(config, "num_hidden_layers", None) or 1
    n_bytes = CPU_CACHE
    if device.startswith("cuda"):
        n_free, _ = torch.cuda.mem_get_info(device)
        n_bytes = n_free // 4
    bytes_a_token = 2 * layers * key_heads * width * model.dtype.itemsize
    return max(LEAST, min(MOST, n_bytes // bytes_a_token))


DTYPES = ("float32", "float64", "float16", "bfloat16", "auto")
# they shape no reply
BESIDE = {"name_or_path", "name", "device", "device_map", "batch_tokens"}
# tokens before an alternative that can change its text: a character's bytes at most
CONTEXT = 4
# how another turn begins in the paragraphs of a model without a chat template
TURN = re.compile(r"\n(?=(?:system|user|assistant):)")
EVERY = 8  # tokens after which greedy replies are looked at for repeating themselves
TAIL = 64  # last tokens of a prompt, where its template may have opened a thought
NO_CACHE = (
    "{} has no cache that can be used here: every new token reads its whole prompt again, and a"
    " reply of 24 tokens costs about 24 times as much as its first token, one of 300 about 300"
    " times"
)
NO_CHANCE = "a token of the vocabulary has probability 0"
IN_THOUGHT = (
    "the template opens a thought, where no given text is scored (template_options)"
)


class Continuation(NamedTuple):
    """Token ids of a prompt, and of a reply to be scored behind it."""

    prompt: Ids
    ids: Ids

    @property
    def n_read(self) -> int:
        """How many tokens a model reads to score it: the last is not read."""
        return len(self.prompt) + len(self.ids) - 1


Scores = dict[Continuation, np.ndarray]
"""Log P of each token of a continuation, (L,)."""


class HuggingFaceModel(Model):
    """A causal language model, or one of images and text that is asked for text alone, with all
    token statistics.

    - ``name_or_path``: a folder or a hub name.
    - ``device``: None uses a GPU if there is one. ``device_map`` ("auto", or modules by device)
      replaces it and spreads the model over several devices (needs accelerate).
    - ``dtype``: one of :data:`DTYPES`. None means "auto", the checkpoint's own, on a GPU, with
      ``device_map`` and for a quantised checkpoint; elsewhere None means float32.
    - ``batch_tokens``: the most that a batch has, rows x (longest prompt + max_tokens) (None:
      :func:`tokens_that_fit`); it falls by itself when memory runs out.
    - ``thinking``: how thought is told from the answer (:mod:`trustlab.models.thought`);
      ``thinking_tokens`` are added to every budget.
    - ``structured``: replies that must be JSON, a number, or True or False are kept to that form
      (:class:`~trustlab.models.local.forms.Forms`); names never are. "taught": of a model that we
      taught, which True leaves free, MedConf's evidence is kept to the form that it was taught.
    - ``template_options``: for the chat template (``{"enable_thinking": False}``); ``today``
      (YYYY-MM-DD) is the date that it prints, else :data:`~trustlab.models.local.templates.TODAY`.

    ``window`` is the config's ``max_position_embeddings``. A reply that reaches its end is cut,
    with finish "length". ``revision`` names the
    choices that shape the replies and are not the defaults.
    """

    provides: frozenset[str] = frozenset({"text", *STATISTICS})
    scores_text = True

    def __init__(  # noqa: PLR0913
        self, name_or_path: str | os.PathLike[str], *, name: str | None = None,
        device: str | None = None, dtype: str | None = None, batch_tokens: int | None = None,
        thinking: Thinking = "auto", thinking_tokens: int = 0,
        template_options: Mapping[str, Any] | None = None,
        device_map: str | Mapping[str, Any] | None = None, structured: bool | str = False,
    ) -> None:  # fmt: skip
        """FileNotFoundError: no such model, or a part of it is absent. ValueError: bad option,
        damaged files, or no causal language model. PermissionError: a gated model. ImportError:
        library absent."""
        self.asked_with: dict[str, Any] = not_default(
            HuggingFaceModel, locals(), BESIDE
        )
        self.check_options(locals())
        check_thinking(thinking, thinking_tokens)
        import torch

        from trustlab.models.local.logits import Logits

        self.thinking = thinking
        self.thinking_tokens = thinking_tokens
        self.usage: dict[str, float] = {}
        self._torch = torch
        self._logits = Logits
        self._template_options = dict(template_options or {})
        place = opening.locate(name_or_path)
        self.name = name or place.name
        self.taught = {}
        if place.commit is None:
            self.taught = taught_in(place.source)
        config, tokenizer = opening.open_tokenizer(place)
        self._tokenizer = tokenizer
        template = None
        if tokenizer.chat_template:
            template = tokenizer.get_chat_template()
        check_template(template, self._template_options)
        self.window: float = opening.window_of(config)
        if not device:
            device = "cuda" if torch.cuda.is_available() else "cpu"
        self.device = device
        self._model = self._open_weights(place, config, dtype, device_map)
        self._passes = Passes(self._model, self.device)
        if not self._passes.cache:
            warnings.warn(NO_CACHE.format(self.name), stacklevel=2)
        self.batch_tokens: int = batch_tokens or tokens_that_fit(
            self._model, self.device
        )
        ends = opening.end_tokens(self._model, tokenizer)
        more_ends = sorted(opening.ends_of_turn(tokenizer).difference(ends))
        self._ends = np.array(ends + more_ends, dtype=np.int64)
        self.revision = place.revision + self._revision_of_choices(more_ends)
        self._stops_cycles = not self.taught.get("free", False)
        self._forms = self._open_forms(structured)
        self._special = frozenset(tokenizer.all_special_ids)
        self._shown = functools.lru_cache(1 << 16)(self._text_after)

    def _open_weights(
        self, place: opening.Location, config: Any, dtype: str | None, device_map: Any
    ) -> Any:
        """The model on ``device``; spread over several, ``device`` becomes where it begins."""
        if device_map is None and opening.is_quantised(config):
            device_map = {"": self.device}
        if dtype is None:
            dtype = "float32"
            if device_map is not None or self.device.startswith("cuda"):
                dtype = "auto"
        kind: Any = dtype
        if dtype != "auto":
            kind = getattr(self._torch, dtype)
        model = opening.open_weights(place, config, kind, device_map)
        if device_map is None:
            model.to(self.device)
        else:
            self.device = str(model.device)
        return model.eval()

    def _open_forms(self, structured: bool | str) -> Forms | None:
        """The forms of replies, and whether there are any in ``self.structured``."""
        is_taught_form = structured == "taught"
        if is_taught_form and self._stops_cycles:
            raise ValueError(
                f"structured is 'taught'; {self.name} allows True and False alone"
            )
        self.structured = is_taught_form or (bool(structured) and self._stops_cycles)
        if not self.structured:
            return None
        n_tokens = self._model.config.get_text_config().vocab_size
        return Forms(
            self._tokenizer,
            ends=self._ends.tolist(),
            n_tokens=n_tokens,
            whole=is_taught_form,
        )

    def _revision_of_choices(self, more_ends: list[int]) -> str:
        """What the choices that shape the replies and are not the defaults add to the revision."""
        revision = ""
        dtype = str(self._model.dtype).removeprefix("torch.")
        if dtype != "float32":
            revision += f"-{dtype}"
        thinking = self.thinking
        if thinking != "auto" or self.thinking_tokens:
            markers = thinking
            if not isinstance(thinking, str):
                markers = list(thinking)
            revision += f"-thinking {markers} {self.thinking_tokens}"
        if self._template_options:
            revision += (
                f"-template {json.dumps(self._template_options, sort_keys=True)}"
            )
        if more_ends:
            revision += f"-ends {more_ends}"  # what was kept before ran over them
        if not self._tokenizer.chat_template:
            revision += "-turns"  # which end a reply
        return revision

    @staticmethod
    def check_options(options: Mapping[str, Any]) -> None:
        """``ValueError`` for options that contradict each other or are out of range."""
        check_options(options.get("template_options"))
        if options.get("device") is not None and options.get("device_map") is not None:
            raise ValueError(
                "device and device_map both say where the model goes; give one"
            )
        dtype = options.get("dtype")
        if dtype is not None and dtype not in DTYPES:
            raise ValueError(f"dtype must be one of {DTYPES}, got {dtype!r}")
        n = options.get("batch_tokens")
        if n is not None and (type(n) is not int or n < 1):
            raise ValueError(
                f"batch_tokens is {n!r}; it must be an integer of at least 1"
            )

    def generate(
        self, requests: Sequence[Request], *, keep: Keep | None = None
    ) -> list[list[Reply]]:
        """Answer every request with its ``n`` replies, in order; they are missing where the prompt
        is longer than the window. A reply has a trace, without the final end token, if its request
        wants any statistic. ValueError for an impossible request; MemoryError if one reply to one
        prompt does not fit."""
        to_draw = [request for request in requests if request.continuation is None]
        to_score = [request for request in requests if request.continuation is not None]
        drawn = iter(self._draw(with_thought(to_draw, self.thinking_tokens)))
        scored = self._continued(to_score)
        replies = []
        for request in requests:
            rows = drawn if request.continuation is None else scored
            replies.append(next(rows))
        return replies

    def _draw(self, requests: list[Request]) -> list[list[Reply]]:
        """The replies to requests without a continuation."""
        places_of: dict[Messages, list[int]] = {}
        priors = []
        for i, request in enumerate(requests):
            decoding.check(request)
            places_of.setdefault(request.messages, []).append(i)
            if "prior" in request.want:
                priors.append(request.prior_messages)
        prompts = self._prompts([*places_of, *priors])
        replies: list[list[Any]] = [[None] * request.n for request in requests]
        shares = []
        for messages, places in places_of.items():
            prompt = prompts[messages]
            if len(prompt) <= self.window:
                shares.append(self._share(prompt, places, requests))
                continue
            missing = too_long(self.name, self.window, len(prompt))
            for i in places:
                replies[i] = [missing] * requests[i].n
        prior_scores: Scores = {}
        grow = functools.partial(self._grow, requests)
        for _, grown in in_batches(shares, self, grow, equal=not self._passes.pads):
            batch_replies = self._replies(grown, prompts, prior_scores)
            for slot, reply in zip(grown.slots, batch_replies, strict=True):
                replies[slot.request_index][slot.reply_index] = reply
        return replies

    def _replies(
        self, grown: GrowingReplies, prompts: Mapping[Any, Ids], prior_scores: Scores
    ) -> Iterator[Reply]:
        """The replies of one batch in order. What was scored under prior prompts before is taken
        from ``prior_scores``, and what is new noted there."""
        continuations = {}
        for i, request in enumerate(grown.requests):
            if "prior" in request.want:
                prompt = prompts[request.prior_messages]
                continuations[i] = Continuation(prompt, grown.ids(i))
        new_continuations = set(continuations.values()) - prior_scores.keys()
        prior_scores |= self._score(new_continuations)
        pieces_of = {}
        for i, request in enumerate(grown.requests):
            ids = grown.ids(i)
            if ids not in pieces_of:
                pieces_of[ids] = decoding.text_pieces(ids, self._decode)
            prior = None
            if i in continuations:
                prior = prior_scores[continuations[i]]
            prompt = prompts[request.messages]
            yield self._reply(grown, i, pieces_of[ids], prompt, prior)

    def _prompts(self, conversations: Iterable[Messages]) -> dict[Messages, Ids]:
        """Token ids of each conversation as a prompt."""
        distinct = list(dict.fromkeys(conversations))
        return dict(zip(distinct, self._encode(distinct), strict=True))

    @staticmethod
    def _share(prompt: Ids, places: list[int], requests: Sequence[Request]) -> Share:
        """A prompt with the replies to the requests in these ``places``; all greedy replies are one
        row."""
        greedy = []
        sampled = []
        for i in places:
            for k in range(requests[i].n):
                if requests[i].temperature == 0:
                    greedy.append(Owner(i, k))
                else:
                    sampled.append((Owner(i, k),))
        rows = sampled
        if greedy:
            rows = [tuple(greedy), *sampled]
        extra = max(requests[i].max_tokens for i in places)
        return Share(prompt, tuple(rows), extra)

    def _decode(self, ids: Ids) -> str:
        return self._tokenizer.decode(
            list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False
        )

    def _text_after(self, before: Ids, token: int) -> str:
        """What ``token`` adds behind ``before``; a special token's name."""
        decode = functools.partial(
            self._tokenizer.decode, clean_up_tokenization_spaces=False
        )
        if token in self._special:
            return decode([token])
        text_before = ""
        if before:
            text_before = decode([*before])
        text = decode([*before, token])
        return text[decoding.n_common(text_before, text) :]

    def count_tokens(self, messages: Messages) -> int:
        """Length of the conversation as a prompt, in tokens."""
        return len(self._encode([messages])[0])

    def _encode(self, conversations: list[Messages]) -> list[Ids]:
        """Token ids of each conversation as a prompt; ValueError if one is empty."""
        texts = []
        for messages in conversations:
            texts.append(prompt_text(self._tokenizer, messages, self._template_options))
        # which writes the special tokens itself
        plain = not self._tokenizer.chat_template
        prompts = []
        for ids in self._cut(texts, plain):
            if not ids:
                raise ValueError(
                    f"a prompt has no tokens; {self.name} needs at least one"
                )
            # Some tokenizers end every text; a prompt goes on.
            if plain and len(ids) > 1 and ids[-1] in self._ends:
                ids = ids[:-1]
            prompts.append(tuple(ids))
        return prompts

    def _cut(self, texts: list[str], special: bool = False) -> list[list[int]]:
        """Token ids of texts, with ``special`` tokens around each."""
        if not texts:
            return []
        return self._tokenizer(texts, add_special_tokens=special, verbose=False)[
            "input_ids"
        ]

    def _grow(self, requests: Sequence[Request], shares: list[Share]) -> GrowingReplies:
        """The replies of one batch, decoded one token of every unfinished reply a step."""
        prompts = [share.prompt for share in shares]
        grown = GrowingReplies(self._slots(requests, shares))
        branches = Branches(self._passes, prompts)
        matchers = []
        for slot in grown.slots:
            matchers.append(self._form_of(slot.request, prompts[slot.prompt]))
        has_form = np.array([matcher is not None for matcher in matchers])
        active = np.arange(len(grown.slots))
        node = grown.prompt
        with self._torch.inference_mode():
            while True:
                logits = branches.read()
                if self._forms:
                    logits = self._forms.masked(
                        logits, node, [matchers[i] for i in active]
                    )
                tokens = self._choose(logits, node, active, grown)
                for i, token in zip(active.tolist(), tokens.tolist(), strict=True):
                    if matchers[i] is not None:
                        matchers[i].consume_token(token)
                goes_on = self._note_ends(grown, active, tokens, has_form[active])
                active = active[goes_on]
                if not len(active):
                    return grown
                # Replies that agree so far stay on one node: distinct (node, token) pairs are the
                # next nodes.
                n_vocabulary = logits.shape[1]
                pairs = node[goes_on] * n_vocabulary + tokens[goes_on]
                next_pairs, pair_of_reply = np.unique(pairs, return_inverse=True)
                parent, token = np.divmod(next_pairs, n_vocabulary)
                node = branches.extend(parent, token)[pair_of_reply]

    def _slots(
        self, requests: Sequence[Request], shares: Sequence[Share]
    ) -> list[ReplySlot]:
        """The replies of a batch in order of its prompts' rows; those of one row follow each
        other."""
        slots = []
        for prompt, share in enumerate(shares):
            room = self.window + 1 - len(share.prompt)
            for row in share.rows:
                for owner in row:
                    request = requests[owner.request_index]
                    slot = ReplySlot(
                        prompt=prompt,
                        request=request,
                        request_index=owner.request_index,
                        reply_index=owner.reply_index,
                        limit=min(request.max_tokens, room),
                    )
                    slots.append(slot)
        return slots

    def _note_ends(
        self,
        grown: GrowingReplies,
        active: np.ndarray,
        tokens: np.ndarray,
        has_form: np.ndarray,
    ) -> np.ndarray:
        """Which of the ``active`` replies grow beyond their last ``tokens``, (A,); the others get
        their length, and why they end. ``has_form`` (A,): a form ends the reply, no cycle."""
        n_steps = len(grown.alternatives)
        has_ended = np.isin(tokens, self._ends)
        grown.length[active[has_ended]] = n_steps - 1
        if not self._tokenizer.chat_template:
            for place in np.flatnonzero(~has_ended).tolist():
                i = active[place]
                n_own = self._n_of_turn(grown.tokens[i, :n_steps].tolist())
                if n_own < n_steps:
                    has_ended[place] = True
                    grown.length[i] = n_own
        grown.stopped[active[has_ended]] = True
        if self._stops_cycles and n_steps % EVERY == 0:
            is_greedy = grown.temperature[active] == 0
            for i in active[~has_ended & ~has_form & is_greedy].tolist():
                if repeats_itself(grown.tokens[i, :n_steps]):
                    grown.cycled[i] = True
                    grown.limit[i] = n_steps
                    grown.length[i] = n_steps
        return ~has_ended & (grown.limit[active] > n_steps)

    def _n_of_turn(self, ids: Sequence[int]) -> int:
        """How many tokens stand before another turn that begins among the last; all where none
        does."""
        n = len(ids)
        end_of_turn = TURN.search(self._decode(tuple(ids[-TAIL:])))
        if end_of_turn is None:
            return n
        start = max(0, n - TAIL)
        while n > start and len(self._decode(tuple(ids[start:n]))) > end_of_turn.end():
            n -= 1
        return n

    def _form_of(self, request: Request, prompt: Ids) -> Any:
        """The matcher that holds a reply to its form; ``None`` where none does, or a thought comes
        first."""
        if self._forms is None or self._has_opened_thought(prompt):
            return None
        return self._forms.begin(request)

    def _has_opened_thought(self, prompt: Ids) -> bool:
        """Whether the template has opened a thought at the end of a prompt."""
        end = self._tokenizer.decode(list(prompt[-TAIL:]))
        return has_opened_thought(end, self.thinking)

    def _choose(
        self, values: Any, node: np.ndarray, active: np.ndarray, grown: GrowingReplies
    ) -> np.ndarray:
        """The next tokens (A,) of the ``active`` replies, each at row ``node`` (A,) of the logits
        ``values`` (n, N); statistics are noted."""
        step = len(grown.alternatives)
        grown.alternatives.append({})
        grown.node[active, step] = node
        logits = self._logits(values)
        tokens = np.empty_like(node)
        temperatures = grown.temperature[active]
        for temperature in np.unique(temperatures).tolist():
            is_meant = temperatures == temperature
            rows, inverse = np.unique(node[is_meant], return_inverse=True)
            if temperature == 0:
                tokens[is_meant] = logits.likeliest(rows)[inverse]
            else:
                uniform = grown.uniform[active[is_meant], step]
                tokens[is_meant] = logits.drawn(rows, inverse, uniform, temperature)
        grown.tokens[active, step] = tokens
        if any(grown.requests[i].want for i in active):
            grown.statistics[0, active, step] = logits.logprobs(node, tokens)
        wanted = grown.wants_distributions[active]
        if wanted.any():
            self._note_distributions(logits, node[wanted], active[wanted], grown)
        return tokens

    @staticmethod
    def _note_distributions(
        logits: Any, node: np.ndarray, active: np.ndarray, grown: GrowingReplies
    ) -> None:
        """Note the statistics and alternatives of this step, of ``active`` replies (A,) at
        ``node`` (A,)."""
        step = len(grown.alternatives) - 1
        alphas = grown.alpha[active]
        for alpha in np.unique(alphas):
            is_meant = alphas == alpha
            rows, inverse = np.unique(node[is_meant], return_inverse=True)
            statistics = logits.statistics(rows, alpha)
            grown.statistics[1:, active[is_meant], step] = statistics[:, inverse]
        rows = np.unique(node)
        tokens, logprobs = logits.best(rows, grown.n_alternatives)
        by_node = grown.alternatives[step]
        for i, row in enumerate(rows.tolist()):
            best = zip(tokens[i].tolist(), logprobs[i].tolist(), strict=True)
            by_node[row] = tuple(best)

    def _reply(
        self, grown: GrowingReplies, i: int, pieces: list[str], prompt: Ids, prior: Any
    ) -> Reply:
        """Reply ``i`` of a batch, with the trace that its request wants."""
        trace = None
        if grown.requests[i].want:
            trace = self._trace(grown, i, pieces, prior)
        finish = "length"
        n_tokens = int(grown.length[i])
        if grown.stopped[i]:
            finish = "stop"
            n_tokens += 1  # the end token
        elif grown.cycled[i]:
            finish = "cycle"
        reply = Reply(
            text="".join(pieces),
            trace=trace,
            n_tokens_in=len(prompt),
            n_tokens_out=n_tokens,
            finish=finish,
        )
        named = []
        for token, piece in zip(grown.ids(i), pieces, strict=True):
            if token in self._special:
                piece = self._shown((), token)
            named.append(piece)
        return apart(
            reply, self.thinking, pieces, named, begun=self._has_opened_thought(prompt)
        )

    def _trace(
        self, grown: GrowingReplies, i: int, pieces: list[str], prior: Any
    ) -> TokenTrace:
        """The statistics of reply ``i`` that its request wants."""
        want = grown.requests[i].want
        length = grown.length[i]
        statistics = grown.statistics[:, i, :length].copy()
        logprobs, entropies, renyi, fisher_rao, certainty = statistics
        trace = TokenTrace(tuple(pieces), prior_logprobs=prior)
        if "logprobs" in want:
            trace = replace(trace, logprobs=logprobs)
        if "distributions" not in want:
            return trace
        if np.isfinite(certainty).all():
            trace = replace(trace, certainty=certainty)
        else:
            trace = replace(trace, lacks={"certainty": NO_CHANCE})
        return replace(
            trace,
            entropies=entropies,
            renyi=renyi,
            fisher_rao=fisher_rao,
            alternatives=self._alternatives(grown, i, pieces),
        )

    def _alternatives(
        self, grown: GrowingReplies, i: int, pieces: list[str]
    ) -> tuple[tuple[tuple[str, float], ...], ...]:
        """The alternatives of reply ``i``: what each would add in that place, and log-probability.
        The chosen token is called as in the trace, a special token by its name."""
        ids = grown.ids(i)
        n = grown.requests[i].n_alternatives
        by_position = []
        for k, chosen in enumerate(ids):
            before = ids[max(0, k - CONTEXT) : k]
            node = grown.node[i, k]
            best = grown.alternatives[k][node]
            alternatives = []
            for token, logprob in best[:n]:
                text = pieces[k]
                if token != chosen or token in self._special:
                    text = self._shown(before, token)
                alternatives.append((text, logprob))
            by_position.append(tuple(alternatives))
        return tuple(by_position)

    def _continued(self, requests: Sequence[Request]) -> Iterator[list[Reply]]:
        """The given texts as replies, each cut into tokens by itself, with log-probabilities."""
        prompt_ids = self._prompts(request.messages for request in requests)
        texts = [request.continuation or "" for request in requests]
        continuations = []
        for request, ids in zip(requests, self._cut(texts), strict=True):
            continuations.append(Continuation(prompt_ids[request.messages], tuple(ids)))
        within_window = {
            continuation
            for continuation in continuations
            if continuation.n_read <= self.window
        }
        logprobs = self._score_in_trees(within_window)
        for request, text, continuation in zip(
            requests, texts, continuations, strict=True
        ):
            ids_before, ids = continuation
            if self._has_opened_thought(ids_before):
                reply = Reply(None, missing=IN_THOUGHT, finish="error")
            elif continuation not in logprobs:
                reply = too_long(self.name, self.window)
            else:
                pieces = decoding.text_pieces(ids, self._decode)
                trace = TokenTrace(tuple(pieces), logprobs=logprobs[continuation])
                reply = Reply(
                    text, trace, n_tokens_in=len(ids_before), n_tokens_out=len(ids)
                )
            yield [reply] * request.n

    def _score_in_trees(self, continuations: set[Continuation]) -> Scores:
        """Log P of each token of each continuation; where trees are taken a prompt is read once for
        all its continuations."""
        # Each text to be read, and behind it the log-probability of each next token.
        logprobs_after: dict[Ids, dict[int, float]] = {}
        for prompt, ids in continuations:
            for k, token in enumerate(ids):
                logprobs_after.setdefault(prompt + ids[:k], {})[token] = 0.0
        planted = []
        if self._passes.trees and logprobs_after:
            # Room for the longest prompt with all its continuations.
            longest = max(len(text) for text in logprobs_after)
            most = max(self._passes.trees, 2 * longest)
            planted = decoding.trees(list(logprobs_after), most)
        if not planted:
            return self._score(continuations)
        logprobs_by_row = list(logprobs_after.values())
        for tree in planted:
            places = []
            tokens = []
            for place, row in enumerate(tree.rows):
                for token in logprobs_by_row[row]:
                    places.append(place)
                    tokens.append(token)
            values, _ = self._passes.run_tree(tree)
            logits = self._logits(values)
            logprobs = logits.logprobs(np.array(places), np.array(tokens))
            for place, token, logprob in zip(
                places, tokens, logprobs.tolist(), strict=True
            ):
                logprobs_by_row[tree.rows[place]][token] = logprob
        scores = {}
        for continuation in continuations:
            prompt, ids = continuation
            logprobs = [
                logprobs_after[prompt + ids[:k]][token] for k, token in enumerate(ids)
            ]
            scores[continuation] = np.array(logprobs)
        return scores

    def _score(self, continuations: Iterable[Continuation]) -> Scores:
        """Log P of each token of each continuation."""
        ordered = sorted(continuations)
        scores = {continuation: np.zeros(0) for continuation in ordered}
        with_tokens = [continuation for continuation in ordered if continuation.ids]
        shares = []
        for i, continuation in enumerate(with_tokens):
            prompt, ids = continuation
            if continuation.n_read > self.window:
                what = f"{len(prompt)} tokens and the reply {len(ids)}"
                window = f"the window of {self.name}, {self.window}"
                raise ValueError(f"the prior prompt has {what}, more than {window}")
            row = (Owner(i, 0),)
            shares.append(Share(prompt + ids, (row,), 0))
        read = functools.partial(self._read, with_tokens)
        for _, batch_scores in in_batches(
            shares, self, read, equal=not self._passes.pads
        ):
            scores |= batch_scores
        return scores

    def _read(
        self, continuations: Sequence[Continuation], shares: list[Share]
    ) -> Scores:
        """The scores of one batch, of the continuations that own its ``shares``."""
        batch = []
        for share in shares:
            [[owner]] = share.rows
            batch.append(continuations[owner.request_index])
        texts = [prompt + ids[:-1] for prompt, ids in batch]
        ids, padding = decoding.left_padded(texts)
        keep = max(len(continuation.ids) for continuation in batch)
        rows, _ = self._passes.run(ids, padding, past=0, cache=None, keep=keep)
        switch = self._passes.switch
        n_before = keep + switch - ids.shape[1]
        # rows of one length: what is up to the switch is read without
        if 0 < n_before < keep:
            early_ids = ids[:, :switch]
            early_rows, _ = self._passes.run(
                early_ids, padding, past=0, cache=None, keep=n_before
            )
            late_rows = rows[:, n_before:]
            rows = self._torch.cat([early_rows, late_rows], dim=1)
        scores = {}
        for continuation, row in zip(batch, rows, strict=True):
            tokens = np.array(continuation.ids)
            places = np.arange(len(tokens))
            logits = self._logits(row[-len(tokens) :])
            scores[continuation] = logits.logprobs(places, tokens)
        return scores
