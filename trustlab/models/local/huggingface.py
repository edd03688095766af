"""Asks a model of the transformers library."""

from __future__ import annotations

import functools
import gc
import itertools
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from trustlab.models.abilities import not_default, too_long
from trustlab.models.base import STATISTICS, Keep, Messages, Model, Request, taught_in
from trustlab.models.local import decoding, opening
from trustlab.models.local.decoding import Branches, GrowingReplies, Ids, Passes
from trustlab.models.local.forms import Forms, repeats_itself
from trustlab.models.local.templates import check_options, check_template, fix_date, system_in_user
from trustlab.models.thought import Thinking, apart, check_thinking, opened, with_thought
from trustlab.records import Reply, TokenTrace


def defused(tokenizer: Any, messages: Messages) -> Messages:
    """The messages with a space in every special token (``</s>``) that somebody wrote out."""
    added = getattr(tokenizer, "added_tokens_decoder", {})
    special = {str(t) for t in added.values() if t.special} | set(tokenizer.all_special_tokens)
    for token in sorted((t for t in special if len(t.strip()) > 1), key=len, reverse=True):
        broken = f"{token[0]} {token[1:]}"
        messages = tuple((role, content.replace(token, broken)) for role, content in messages)
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
        return "\n\n".join([*(f"{role}: {content}" for role, content in messages), "assistant:"])
    from jinja2 import TemplateError

    given = options or {}
    fix_date(tokenizer.get_chat_template(), given)
    refusal = "it leaves words out, or changes them"
    for attempt, in_parts in itertools.product((messages, system_in_user(messages)), (False, True)):
        turns = [
            {"role": role, "content": [{"type": "text", "text": text}] if in_parts else text}
            for role, text in attempt
        ]
        try:
            text = tokenizer.apply_chat_template(
                turns, add_generation_prompt=True, tokenize=False, **given
            )
        except (TemplateError, TypeError) as error:  # the latter: parts where texts are added up
            refusal = refusal if in_parts else str(error)
            continue
        lost = {role for role, content in attempt if content.strip() not in text}
        if not lost - {"assistant"}:
            return text
    roles = [role for role, _ in messages]
    raise ValueError(f"the model's chat template does not take the roles {roles}: {refusal}")


Owner = tuple[int, int]  # (request, reply index)
T = TypeVar("T")


@dataclass(frozen=True)
class Share:
    """A prompt and the replies that grow from it, at most ``extra`` tokens long; replies that are
    one throughout share a row."""

    prompt: Ids
    rows: tuple[tuple[Owner, ...], ...]
    extra: int

    def within(self, limit: int) -> list[Share]:
        """Itself in parts of at most ``limit`` tokens, or of one row."""
        size = max(1, limit // (len(self.prompt) + self.extra))
        starts = range(0, len(self.rows), size)
        return [replace(self, rows=self.rows[start : start + size]) for start in starts]


def n_tokens_of(batch: Sequence[Share]) -> int:
    """All rows x (longest prompt + largest extra)."""
    longest = max(len(share.prompt) for share in batch) + max(share.extra for share in batch)
    return sum(len(share.rows) for share in batch) * longest


def batches(shares: Sequence[Share], limit: int, *, equal: bool = False) -> Iterator[list[int]]:
    """Indices by rising extra, then length, cut where :func:`n_tokens_of` would pass ``limit``, and
    with ``equal`` where the length changes; never empty."""
    batch: list[int] = []
    order = sorted(range(len(shares)), key=lambda i: (shares[i].extra, len(shares[i].prompt)))
    for i in order:
        more = [shares[j] for j in (*batch, i)]
        other = equal and len(more[0].prompt) != len(more[-1].prompt)
        if batch and (other or n_tokens_of(more) > limit):
            yield batch
            batch = []
        batch = [*batch, i]
    if batch:
        yield batch


def is_out_of_memory(error: BaseException) -> bool:
    """Whether Python, NumPy or torch, on any device, could not have the memory it asked for."""
    words = ("out of memory", "can't allocate memory")
    said = str(error).lower() if isinstance(error, RuntimeError) else ""
    return isinstance(error, MemoryError) or any(word in said for word in words)


def in_batches(
    shares: Iterable[Share], owner: Any, work: Callable[[list[Share]], T], *, equal: bool = False
) -> Iterator[tuple[list[Share], T]]:
    """Every batch of ``shares`` with what ``work`` makes of it; ``equal``: only prompts of one
    length share a batch. When memory runs out, ``owner.batch_tokens`` falls to half of what the
    batch held (a warning, and a count in ``owner.usage["halvings"]``), and what is not done is cut
    anew. MemoryError: not even one row fits."""
    waiting = list(shares)
    while waiting:
        if owner.usage.get("halvings"):  # before, a prompt's replies stay together
            waiting = [part for share in waiting for part in share.within(owner.batch_tokens)]
        done: set[int] = set()
        for batch in batches(waiting, owner.batch_tokens, equal=equal):
            here = [waiting[i] for i in batch]
            made: list[T] = []
            try:
                made.append(work(here))
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
            if not made:  # the error is gone, and with its frames what they held
                _halve(owner, here)
                break
            done.update(batch)
            yield here, made[0]
        waiting = [share for i, share in enumerate(waiting) if i not in done]


def _halve(owner: Any, here: list[Share]) -> None:
    gc.collect()
    torch: Any = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()
    if sum(len(share.rows) for share in here) == 1:
        what = f"one prompt of {len(here[0].prompt)} tokens with one reply of up to {here[0].extra}"
        raise MemoryError(
            f"memory does not suffice for {what}; shorten it, or choose a smaller model or dtype"
        )
    owner.batch_tokens = max(1, min(owner.batch_tokens, n_tokens_of(here)) // 2)
    owner.usage["halvings"] = owner.usage.get("halvings", 0) + 1
    warnings.warn(
        f"memory ran out; a batch now holds at most {owner.batch_tokens} tokens", stacklevel=4
    )


LEAST, MOST = 2_048, 65_536  # tokens of a batch where nobody says how many
CPU_CACHE = 1 << 29  # bytes of a batch's keys and values on a processor


def tokens_that_fit(model: Any, device: str) -> int:
    """Tokens whose keys and values take :data:`CPU_CACHE` bytes, or a quarter of a GPU's free
    memory, from :data:`LEAST` to :data:`MOST`."""
    import torch

    text = model.config.get_text_config()
    heads = getattr(text, "num_attention_heads", None) or 1
    kept = getattr(text, "num_key_value_heads", None) or heads
    width = getattr(text, "head_dim", None) or getattr(text, "hidden_size", 4096) // heads
    layers = getattr(text, "num_hidden_layers", None) or 1
    free = torch.cuda.mem_get_info(device)[0] // 4 if device.startswith("cuda") else CPU_CACHE
    return max(LEAST, min(MOST, free // (2 * layers * kept * width * model.dtype.itemsize)))


DTYPES = ("float32", "float64", "float16", "bfloat16", "auto")
BESIDE = {"name_or_path", "name", "device", "device_map", "batch_tokens"}  # they shape no reply
CONTEXT = 4  # tokens before an alternative that can change its text: a character's bytes at most
EVERY = 8  # tokens after which greedy replies are looked at for repeating themselves
TAIL = 64  # last tokens of a prompt, where its template may have opened a thought
NO_CACHE = (
    "{} has no cache that can be used here: every new token reads its whole prompt again, and a"
    " reply of 24 tokens costs about 24 times as much as its first token, one of 300 about 300"
    " times"
)
IN_THOUGHT = "the template opens a thought, where no given text is scored (template_options)"


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

    def __init__(
        self, name_or_path: str | os.PathLike[str], *, name: str | None = None,
        device: str | None = None, dtype: str | None = None, batch_tokens: int | None = None,
        thinking: Thinking = "auto", thinking_tokens: int = 0,
        template_options: Mapping[str, Any] | None = None,
        device_map: str | Mapping[str, Any] | None = None, structured: bool | str = False,
    ) -> None:  # fmt: skip
        """FileNotFoundError: no such model, or a part of it is absent. ValueError: bad option,
        damaged files, or no causal language model. PermissionError: a gated model. ImportError:
        library absent."""
        self.asked_with: dict[str, Any] = not_default(HuggingFaceModel, locals(), BESIDE)
        self.check_options(locals())
        check_thinking(thinking, thinking_tokens)
        import torch

        from trustlab.models.local.logits import Logits

        self.thinking, self.thinking_tokens = thinking, thinking_tokens
        self.usage: dict[str, float] = {}
        self._torch, self._logits = torch, Logits
        source, commit, revision = opening.locate(name_or_path)
        self.name = name or (source if commit else opening.shown_name(source))
        self.taught = {} if commit else taught_in(source)
        config, tokenizer = opening.open_tokenizer(source, commit)
        self._tokenizer, self._template_options = tokenizer, dict(template_options or {})
        template = tokenizer.get_chat_template() if tokenizer.chat_template else None
        check_template(template, self._template_options)
        self.window: float = opening.window_of(config)
        self.device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        placed = device_map
        if device_map is None and opening.is_quantised(config):
            placed = {"": self.device}
        if dtype is None:
            dtype = "auto" if placed is not None or self.device.startswith("cuda") else "float32"
        kind = dtype if dtype == "auto" else getattr(torch, dtype)
        model = opening.open_weights(source, commit, config, kind, placed)
        if placed is None:
            model.to(self.device)
        else:
            self.device = str(model.device)
        self._model = model.eval()
        self._passes = Passes(self._model, self.device)
        if not self._passes.cache:
            warnings.warn(NO_CACHE.format(self.name), stacklevel=2)
        self.batch_tokens: int = batch_tokens or tokens_that_fit(model, self.device)
        kind = str(model.dtype).removeprefix("torch.")
        self.revision = revision if kind == "float32" else f"{revision}-{kind}"
        if thinking != "auto" or thinking_tokens:
            markers = thinking if isinstance(thinking, str) else list(thinking)
            self.revision += f"-thinking {markers} {thinking_tokens}"
        if self._template_options:
            self.revision += f"-template {json.dumps(self._template_options, sort_keys=True)}"
        ends = opening.end_tokens(model, tokenizer)
        if more := sorted(opening.ends_of_turn(tokenizer).difference(ends)):
            self.revision += f"-ends {more}"  # what was kept before ran over them
        self._ends = np.array(ends + more, dtype=np.int64)
        self._stops_cycles = not self.taught.get("free", False)
        if structured == "taught" and self._stops_cycles:
            raise ValueError(f"structured is 'taught'; {self.name} allows True and False alone")
        self.structured = structured == "taught" or (bool(structured) and self._stops_cycles)
        n_tokens = model.config.get_text_config().vocab_size
        ends, whole = self._ends.tolist(), structured == "taught"
        self._forms = Forms(tokenizer, ends, n_tokens, whole) if self.structured else None
        self._special = frozenset(tokenizer.all_special_ids)
        self._shown = functools.lru_cache(1 << 16)(self._text_after)

    @staticmethod
    def check_options(options: Mapping[str, Any]) -> None:
        """``ValueError`` for options that contradict each other or are out of range."""
        check_options(options.get("template_options"))
        if options.get("device") is not None and options.get("device_map") is not None:
            raise ValueError("device and device_map both say where the model goes; give one")
        if (dtype := options.get("dtype")) is not None and dtype not in DTYPES:
            raise ValueError(f"dtype must be one of {DTYPES}, got {dtype!r}")
        n = options.get("batch_tokens")
        if n is not None and (type(n) is not int or n < 1):
            raise ValueError(f"batch_tokens is {n!r}; it must be an integer of at least 1")

    def generate(
        self, requests: Sequence[Request], *, keep: Keep | None = None
    ) -> list[list[Reply]]:
        """Answer every request with its ``n`` replies, in order; they are missing where the prompt
        is longer than the window. A reply has a trace, without the final end token, if its request
        wants any statistic. ValueError for an impossible request; MemoryError if one reply to one
        prompt does not fit."""
        if given := [q for q in requests if q.continuation is not None]:
            drawn = iter(self.generate([q for q in requests if q.continuation is None]))
            scored = self._continued(given)
            return [next(drawn if q.continuation is None else scored) for q in requests]
        requests = with_thought(requests, self.thinking_tokens)
        sharing: dict[Messages, list[int]] = {}
        for i, request in enumerate(requests):
            decoding.check(request)
            sharing.setdefault(request.messages, []).append(i)
        priors: list[Any] = [q.prior_messages for q in requests if "prior" in q.want]
        each = list(dict.fromkeys([*sharing, *priors]))
        ids_of: dict[Any, Ids] = dict(zip(each, self._encode(each), strict=True))
        replies: list[list[Any]] = [[None] * q.n for q in requests]
        shares = []
        for messages, group in sharing.items():
            if len(prompt := ids_of[messages]) <= self.window:
                shares.append(self._share(prompt, group, requests))
                continue
            none = too_long(self.name, self.window, len(prompt))
            for i in group:
                replies[i] = [none] * requests[i].n
        scores: dict[Any, np.ndarray] = {}
        grow, equal = functools.partial(self._grow, requests), not self._passes.pads
        for here, grown in in_batches(shares, self, grow, equal=equal):
            owners = [(share, i, k) for share in here for row in share.rows for i, k in row]
            ids = [grown.ids(r) for r in range(len(owners))]
            pairs = [
                (ids_of[q.prior_messages], said) if "prior" in q.want else None
                for q, said in zip(grown.requests, ids, strict=True)
            ]
            scores |= self._score({pair for pair in pairs if pair} - scores.keys())
            pieces = {said: decoding.text_pieces(said, self._decode) for said in dict.fromkeys(ids)}
            for r, (share, i, k) in enumerate(owners):
                prior = scores.get(pairs[r])
                replies[i][k] = self._reply(grown, r, pieces[ids[r]], share.prompt, prior)
        return replies

    @staticmethod
    def _share(prompt: Ids, group: list[int], requests: Sequence[Request]) -> Share:
        """The requests of one prompt; all greedy replies are one row."""
        owners = [(i, k) for i in group for k in range(requests[i].n)]
        greedy = tuple(owner for owner in owners if requests[owner[0]].temperature == 0)
        sampled = [(owner,) for owner in owners if requests[owner[0]].temperature > 0]
        extra = max(requests[i].max_tokens for i in group)
        return Share(prompt, (*([greedy] if greedy else []), *sampled), extra)

    def _decode(self, ids: Ids) -> str:
        return self._tokenizer.decode(
            list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False
        )

    def _text_after(self, before: Ids, token: int) -> str:
        """What ``token`` adds behind ``before``; a special token's name."""
        decode = functools.partial(self._tokenizer.decode, clean_up_tokenization_spaces=False)
        if token in self._special:
            return decode([token])
        known = decode([*before]) if before else ""
        text = decode([*before, token])
        return text[decoding.n_common(known, text) :]

    def count_tokens(self, messages: Messages) -> int:
        """Length of the conversation as a prompt, in tokens."""
        return len(self._encode([messages])[0])

    def _encode(self, conversations: list[Messages]) -> list[Ids]:
        """Token ids of each conversation as a prompt; ValueError if one is empty."""
        texts = [prompt_text(self._tokenizer, m, self._template_options) for m in conversations]
        plain = not self._tokenizer.chat_template  # which writes the special tokens itself
        found = [tuple(ids) for ids in self._cut(texts, plain)]
        if not all(found):
            raise ValueError(f"a prompt has no tokens; {self.name} needs at least one")
        # Some tokenizers end every text; a prompt goes on.
        ended = [plain and len(ids) > 1 and ids[-1] in self._ends for ids in found]
        return [ids[:-1] if end else ids for ids, end in zip(found, ended, strict=True)]

    def _cut(self, texts: list[str], special: bool = False) -> list[list[int]]:
        """Token ids of texts, with ``special`` tokens around each."""
        how = {"add_special_tokens": special, "verbose": False}
        return self._tokenizer(texts, **how)["input_ids"] if texts else []

    def _grow(self, requests: Sequence[Request], shares: list[Share]) -> GrowingReplies:
        """The replies of one batch, decoded one token of every unfinished reply a step."""
        each = enumerate(shares)
        owners = [(row, requests[i], k) for row, s in each for same in s.rows for i, k in same]
        grown = GrowingReplies(owners, [self.window + 1 - len(share.prompt) for share in shares])
        branches = Branches(self._passes, [share.prompt for share in shares])
        active, node = np.arange(len(grown.prompt)), grown.prompt
        held = [self._form_of(request, shares[row].prompt) for row, request, _ in owners]
        with self._torch.inference_mode():
            while True:
                step = len(grown.best)
                logits = branches.read()
                if self._forms:
                    logits = self._forms.masked(logits, node, [held[r] for r in active])
                chosen = self._choose(logits, node, active, grown)
                for r, token in zip(active.tolist(), chosen.tolist(), strict=True):
                    if (matcher := held[r]) is not None:
                        matcher.consume_token(token)
                ended = np.isin(chosen, self._ends)
                grown.stopped[active[ended]] = True
                grown.length[active[ended]] = step
                if self._stops_cycles and step % EVERY == EVERY - 1:
                    for r in active[~ended & (grown.temperature[active] == 0)].tolist():
                        # A form has an end.
                        if held[r] is None and repeats_itself(grown.tokens[r, : step + 1]):
                            grown.cycled[r] = True
                            grown.limit[r] = grown.length[r] = step + 1
                goes_on = ~ended & (grown.limit[active] > step + 1)
                active = active[goes_on]
                if not len(active):
                    return grown
                # Replies that agree so far stay on one node: distinct (node, token) pairs are the
                # next nodes.
                pairs, node = np.unique(
                    node[goes_on] * logits.shape[1] + chosen[goes_on], return_inverse=True
                )
                node = branches.extend(*np.divmod(pairs, logits.shape[1]))[node]

    def _form_of(self, request: Request, prompt: Ids) -> Any:
        """What holds a reply to its form, where anything does and no thought comes first."""
        if self._forms is None or self._in_thought(prompt):
            return None
        return self._forms.begin(request)

    def _in_thought(self, prompt: Ids) -> bool:
        """Whether the template has opened a thought at the end of a prompt."""
        return opened(self._tokenizer.decode(list(prompt[-TAIL:])), self.thinking)

    def _choose(
        self, values: Any, node: np.ndarray, active: np.ndarray, grown: GrowingReplies
    ) -> np.ndarray:
        """The next tokens (A,) of the ``active`` replies, each at row ``node`` (A,) of the logits
        ``values`` (n, N); statistics are noted."""
        step = len(grown.best)
        grown.best.append({})
        grown.node[active, step] = node
        wanted, temperatures = grown.distributions[active], np.unique(grown.temperature[active])
        logits = self._logits(values)
        token = np.empty_like(node)
        for temperature in temperatures.tolist():
            same = grown.temperature[active] == temperature
            rows, back = np.unique(node[same], return_inverse=True)
            if temperature == 0:
                token[same] = logits.likeliest(rows)[back]
            else:
                uniform = grown.uniform[active[same], step]
                token[same] = logits.drawn(rows, back, uniform, temperature)
        grown.tokens[active, step] = token
        if any(grown.requests[r].want for r in active):
            grown.statistics[0, active, step] = logits.logprobs(node, token)
        if wanted.any():
            for alpha in np.unique(grown.alpha[active[wanted]]):
                same = wanted & (grown.alpha[active] == alpha)
                rows, back = np.unique(node[same], return_inverse=True)
                found = logits.statistics(rows, alpha)
                grown.statistics[1:, active[same], step] = found[:, back]
            rows = np.unique(node[wanted])
            best = (part.tolist() for part in logits.best(rows, grown.n_alternatives))
            named = (tuple(zip(*pair, strict=True)) for pair in zip(*best, strict=True))
            grown.best[step].update(zip(rows.tolist(), named, strict=True))
        return token

    def _reply(
        self, grown: GrowingReplies, r: int, pieces: list[str], prompt: Ids, prior: Any
    ) -> Reply:
        q, length, stopped = grown.requests[r], int(grown.length[r]), bool(grown.stopped[r])
        want = q.want
        trace = None
        if want:
            fields: list[Any] = list(grown.statistics[:, r, :length].copy())
            wide = "distributions" in want
            trace = TokenTrace(
                tokens=tuple(pieces), logprobs=fields[0] if "logprobs" in want else None,
                entropies=fields[1] if wide else None, renyi=fields[2] if wide else None,
                fisher_rao=fields[3] if wide else None, prior_logprobs=prior,
                alternatives=self._named(grown, r, pieces) if wide else None,
            )  # fmt: skip
        end = "stop" if stopped else "cycle" if grown.cycled[r] else "length"
        reply = Reply("".join(pieces), trace, len(prompt), length + stopped, end)
        named = [
            self._shown((), i) if i in self._special else piece
            for i, piece in zip(grown.ids(r), pieces, strict=True)
        ]
        return apart(reply, self.thinking, pieces, named, begun=self._in_thought(prompt))

    def _named(
        self, grown: GrowingReplies, r: int, pieces: list[str]
    ) -> tuple[tuple[tuple[str, float], ...], ...]:
        """The alternatives of reply ``r``: what each would add in that place, and log-probability.
        The chosen token is called as in the trace, a special token by its name."""
        said, n = grown.ids(r), grown.requests[r].n_alternatives
        named = []
        for t, node in enumerate(grown.node[r, : len(said)].tolist()):
            before = said[max(0, t - CONTEXT) : t]
            own = None if said[t] in self._special else said[t]
            best = grown.best[t][node][:n]
            texts = [pieces[t] if i == own else self._shown(before, i) for i, _ in best]
            named.append(tuple(zip(texts, (value for _, value in best), strict=True)))
        return tuple(named)

    def _continued(self, requests: Sequence[Request]) -> Iterator[list[Reply]]:
        """The given texts as replies, each cut into tokens by itself, with log-probabilities."""
        distinct = list(dict.fromkeys(q.messages for q in requests))
        prompts = dict(zip(distinct, self._encode(distinct), strict=True))
        texts = [q.continuation or "" for q in requests]
        cut = zip(requests, self._cut(texts), strict=True)
        pairs = [(prompts[q.messages], tuple(ids)) for q, ids in cut]
        scores = self._branches({(a, b) for a, b in pairs if len(a) + len(b) - 1 <= self.window})
        for q, text, (prompt, ids) in zip(requests, texts, pairs, strict=True):
            if self._in_thought(prompt):
                reply = Reply(None, missing=IN_THOUGHT, finish="error")
            elif (values := scores.get((prompt, ids))) is None:
                reply = too_long(self.name, self.window)
            else:
                trace = TokenTrace(tuple(decoding.text_pieces(ids, self._decode)), logprobs=values)
                reply = Reply(text, trace, len(prompt), len(ids))
            yield [reply] * q.n

    def _branches(self, pairs: set[tuple[Ids, Ids]]) -> dict[tuple[Ids, Ids], np.ndarray]:
        """As :meth:`_score`; where trees are taken a prompt is read once for all continuations."""
        nodes: dict[Ids, dict[int, float]] = {}  # what is read so far -> its next tokens
        for prompt, ids in pairs:
            for k, token in enumerate(ids):
                nodes.setdefault(prompt + ids[:k], {})[token] = 0.0
        # Room for the longest prompt with all its continuations.
        most = self._passes.trees and max([self._passes.trees, *(2 * len(node) for node in nodes)])
        if not (planted := decoding.trees(list(nodes), most) if most and nodes else []):
            return self._score(pairs)
        after = list(nodes.values())
        for tree in planted:
            steps = [(r, token) for r, row in enumerate(tree.rows) for token in after[row]]
            logits = self._logits(self._passes.run_tree(tree)[0])
            found = logits.logprobs(*map(np.array, zip(*steps, strict=True)))
            for (r, token), value in zip(steps, found.tolist(), strict=True):
                after[tree.rows[r]][token] = value
        return {
            (prompt, ids): np.array([nodes[prompt + ids[:k]][t] for k, t in enumerate(ids)])
            for prompt, ids in pairs
        }

    def _score(self, pairs: Iterable[tuple[Ids, Ids]]) -> dict[tuple[Ids, Ids], np.ndarray]:
        """(prompt, continuation) ids -> log P of each token of the continuation, (L,)."""
        each = sorted(pairs)
        asked = [(prompt, said) for prompt, said in each if said]
        for prompt, said in asked:
            if len(prompt) + len(said) - 1 > self.window:
                what = f"{len(prompt)} tokens and the reply {len(said)}"
                window = f"the window of {self.name}, {self.window}"
                raise ValueError(f"the prior prompt has {what}, more than {window}")

        def read(shares: list[Share]) -> dict[tuple[Ids, Ids], np.ndarray]:
            here = [asked[share.rows[0][0][0]] for share in shares]
            ids, padding = decoding.left_padded([prompt + said[:-1] for prompt, said in here])
            keep = max(len(said) for _, said in here)
            rows, _ = self._passes.run(ids, padding, 0, None, keep)
            switch = self._passes.switch
            before = keep + switch - ids.shape[1]
            if 0 < before < keep:  # rows of one length: what is up to the switch is read without
                early, _ = self._passes.run(ids[:, :switch], padding, 0, None, before)
                rows = self._torch.cat([early, rows[:, before:]], dim=1)
            found = {}
            for (prompt, said), row in zip(here, rows, strict=True):
                last = self._logits(row[-len(said) :])
                found[prompt, said] = last.logprobs(np.arange(len(said)), np.array(said))
            return found

        whole = [Share(prompt + said, (((j, 0),),), 0) for j, (prompt, said) in enumerate(asked)]
        scores = {pair: np.zeros(0) for pair in each}
        for _, found in in_batches(whole, self, read, equal=not self._passes.pads):
            scores |= found
        return scores
