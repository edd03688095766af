"""Reads what an OpenAI-compatible server sends."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from pydantic import BaseModel, TypeAdapter, ValidationError

from trustlab.models.base import Request
from trustlab.models.local.decoding import BOUNDS, bounds
from trustlab.models.ranges import ROUNDING, SENTINEL, are_alternatives, is_untold
from trustlab.models.server.openai_wire import MOST_TOKENS, field, shortened
from trustlab.models.thought import Thinking, apart
from trustlab.records import Reply, TokenTrace

NEAR = 0.01  # nats by which the chosen token's log-probability may differ from its own in the list

NO_USAGE = (
    "does not tell how many tokens a call took (usage), so max_tokens_total cannot be kept to;"
    " give max_calls in its place"
)
NO_LOGPROBS = "the server tells no log-probabilities"
NO_LIST = "the server lists no alternative tokens"
NO_SIZE = "the server does not tell the size of its vocabulary; give vocabulary_size"
NO_SCORE = "the server scores no chat (prompt_logprobs)"
OTHER_TOKENS = "the server scored other tokens than the reply's, or gave no log-probabilities"
NOT_SPELT = "the server's tokens do not spell the reply"
NOT_ALL = "the server tells no log-probability of a token"
NOT_NUMBERS = "the server's log-probabilities are not all numbers of at most 0"
ALL_ZERO = "the server's log-probabilities are all 0"
CONTRADICTED = "the server's list of alternatives contradicts the reply's own token"
OVER_ONE = "the probabilities of a token's alternatives sum to more than 1"
WIDE = (*BOUNDS, "alternatives")
NEEDED = (*TokenTrace.ARRAYS, "alternatives")

_SPECIALS = rb"(\s|<[^<>\s]*>|\[/?(INST|EOS|PAD|BOS)\])*\Z"
"""Blanks and special tokens at the end of a reply."""


def _or_none(value: Any, validate: Any) -> Any:
    try:
        return validate(value)
    except ValidationError:
        return None


class Top(BaseModel):
    """One listed token of a position."""

    token: str
    logprob: float


class Said(BaseModel):
    """One token of a reply. ``bytes``: its UTF-8 bytes, where it may be part of a character."""

    token: str
    logprob: float | None = None
    bytes: list[int] | None = None
    top_logprobs: list[Top] | None = None


class Message(BaseModel):
    """What a model said. ``reasoning``: its thought, under either name."""

    content: str | None = None
    refusal: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None


class Choice(BaseModel):
    """One reply, and how it ended."""

    message: Message
    finish_reason: str | None = None
    error: None = None


class PromptToken(BaseModel):
    """One token of a prompt that a server scored."""

    logprob: float
    decoded_token: str | None = None


_SAID: Any = TypeAdapter(list[Said])
_PROMPT: Any = TypeAdapter(list[dict[str, PromptToken] | None])


Counts = tuple[int | None, int | None]
"""Tokens in and out; ``None``: the server does not count them."""


def missing(reason: str, n_tokens: Counts = (0, 0)) -> Reply:
    """A reply that could not be had, with its reason and the tokens it cost, in and out."""
    return Reply(None, None, *n_tokens, finish="error", missing=reason)


def reasons_lacking(provides: frozenset[str], has_size: bool) -> dict[str, str]:
    """Need -> why a server that gives no more than ``provides`` cannot meet it."""
    bare = "logprobs" not in provides
    chosen = ["answer.logprobs", "samples.logprobs"] if bare else []
    lacks: dict[str, str] = dict.fromkeys(chosen, NO_LOGPROBS)
    if "distributions" not in provides:
        wide = ("answer.entropies", "answer.renyi", "answer.fisher_rao", "answer.alternatives")
        lacks |= dict.fromkeys(wide, NO_LOGPROBS if bare else NO_LIST)
    elif not has_size:
        lacks |= dict.fromkeys(("answer.renyi", "answer.fisher_rao"), NO_SIZE)
    if "prior" not in provides:
        lacks["answer.prior_logprobs"] = NO_LOGPROBS if bare else NO_SCORE
    return lacks


def count_of(answer: Any, name: str) -> int | None:
    """A number of tokens in an answer's ``usage``; ``None``: not told, or not believed."""
    n = field(answer, "usage", name)
    return n if type(n) is int and 0 <= n <= MOST_TOKENS else None


def counts_of(answer: Any) -> Counts:
    """Tokens of a chat call. A 0 is none of a prompt, nor of replies that have a text."""
    n_in, n_out = (count_of(answer, name) for name in ("prompt_tokens", "completion_tokens"))
    texts = [field(choice, "message", "content") for choice in choices_of(answer) or ()]
    return n_in or None, None if n_out == 0 and any(texts) else n_out


def choices_of(answer: Any) -> list[Any] | None:
    """The choices of an answer; ``None``: it has another form, or they are not numbered in order
    from 0."""
    choices = field(answer, "choices")
    if not isinstance(choices, list):
        return None
    places = [field(choice, "index") for choice in choices]
    return choices if places == list(range(len(choices))) else None


def reply_of(
    choice: Any, request: Request, n_tokens: Counts, n_top: int,
    vocabulary_size: int | None, thinking: Thinking = "auto",
) -> Reply:  # fmt: skip
    """One reply, with its trace where the request wants statistics and the server's tokens spell
    the text. ``n_tokens``: in, and out where the server lists no tokens. ``n_top``: how many
    alternatives were asked for. A reply that was cut off has finish "length", perhaps with an empty
    text. ``ValueError``: the choice has another form."""
    told = Choice.model_validate(choice)
    message, finish = told.message, told.finish_reason
    said = said_in(choice)
    counts = n_tokens[0], len(said) or n_tokens[1]
    if message.refusal:
        return missing(f"the model refused: {shortened(message.refusal)}", counts)
    if finish == "content_filter":
        return missing("withheld by the server's content filter", counts)
    if finish not in ("stop", "length"):
        how = f"(finish {shortened(str(finish))!r})"
        return missing(f"the server ended the reply in a way nobody knows {how}", counts)
    cut = finish == "length"
    thought = message.reasoning or message.reasoning_content
    if thinking == "none":
        thought = None
    if message.content is None and not cut and not thought:
        return missing(f"the server sent no text (finish {finish!r})", counts)
    reply = apart(Reply(message.content or "", None, *counts), thinking)
    if thought:
        thoughts = "\n".join(filter(None, [thought, reply.reasoning]))
        reply = replace(reply, text=str(reply.text).lstrip(), reasoning=thoughts)
    trace = None
    if request.want and said and reply.text:
        trace = trace_of(reply.text, said, request, n_top, vocabulary_size)
    return replace(reply, trace=trace, finish="length" if cut else "stop")


def said_in(choice: Any) -> list[Said]:
    """The tokens of a choice; none where the server lists none, or what are none."""
    return _or_none(field(choice, "logprobs", "content"), _SAID.validate_python) or []


def _token_bytes(said: Said) -> bytes:
    if said.bytes is not None and all(0 <= b < 256 for b in said.bytes):
        return bytes(said.bytes)
    return said.token.encode("utf-8", "replace")


def pieces(text: str, parts: Sequence[bytes]) -> tuple[int, list[str]] | None:
    """Where the tokens ``parts`` that make up ``text`` begin, and the text that each adds ('' for
    one that completes no character); ``None`` if they do not spell it. Tokens before the text are
    passed over (reasoning, say), and blanks and special tokens after it."""
    spoken, joined = text.encode(), b"".join(parts)
    found = re.search(re.escape(spoken) + _SPECIALS, joined)
    if found is None:
        return None
    start = found.start()
    end = start + len(spoken)
    offsets = np.cumsum([0, *map(len, parts)])
    inside = [k for k in range(len(parts)) if offsets[k] < end and offsets[k + 1] > start]
    if not inside:
        return 0, []
    first, last = inside[0], inside[-1] + 1
    within = [min(max(int(o) - start, 0), len(spoken)) for o in offsets[first : last + 1]]
    seen = [len(spoken[:end].decode("utf-8", "ignore")) for end in within]
    return first, [text[a:b] for a, b in zip(seen[:-1], seen[1:], strict=True)]


def trace_of(
    text: str, said: list[Said], request: Request, n_top: int, vocabulary_size: int | None
) -> TokenTrace:
    """The statistics of a reply's tokens; what any token lacks is ``None``, with the reason.
    All are lacking where the tokens do not spell the text, or the log-probabilities of the whole
    reply are 0, or no numbers. What follows from the lists of alternatives is a bound
    (:func:`~trustlab.models.local.decoding.bounds`); none is taken from a list that contradicts the
    chosen token."""
    if (found := pieces(text, [_token_bytes(s) for s in said])) is None:
        return TokenTrace((text,), lacks=dict.fromkeys(NEEDED, NOT_SPELT))
    first, tokens = found
    if (doubt := _doubtful([s.logprob for s in said])) in (NOT_NUMBERS, ALL_ZERO):
        return TokenTrace(tuple(tokens), lacks=dict.fromkeys(NEEDED, doubt))
    said = said[first : first + len(tokens)]
    values = [s.logprob for s in said]
    logprobs, lacks = _logprobs(values), {}
    if logprobs is None and "logprobs" in request.want:
        lacks = {"logprobs": _doubtful(values)}
    wide: dict[str, Any] = {}
    lists = [_listed(s) for s in said] if "distributions" in request.want else []
    if lists and any(map(_contradicts, said, lists, [n_top] * len(said))):
        lacks |= dict.fromkeys(WIDE, CONTRADICTED)
    elif lists and all(lists):
        size = vocabulary_size
        at_least = [
            bounds(*_known(s, top, n_top), alpha=request.renyi_alpha, vocabulary_size=size)
            for s, top in zip(said, lists, strict=True)
        ]
        named = zip(said, lists, tokens, strict=True)
        best = tuple(_best(s, top, t, request.n_alternatives) for s, top, t in named)
        if None in at_least or not all(map(are_alternatives, best)):
            lacks |= dict.fromkeys(WIDE, OVER_ONE)
        else:
            wide = {"alternatives": best, "bounds": {}}
            for name, column in zip(BOUNDS, zip(*at_least, strict=True), strict=True):
                if None not in column:
                    wide[name] = np.array(column, dtype=np.float64)
                    wide["bounds"][name] = BOUNDS[name]
    shown = logprobs if "logprobs" in request.want else None
    return TokenTrace(tuple(tokens), shown, lacks=lacks, **wide)


def _doubtful(values: Sequence[float | None]) -> str:
    """Why a reply's log-probabilities are not believed; "" where they are."""
    if any(map(is_untold, values)):
        return NOT_ALL
    if not all(SENTINEL < (value or 0.0) <= ROUNDING for value in values):  # NaN, too
        return NOT_NUMBERS
    return "" if any(values) or not values else ALL_ZERO


def _logprobs(values: Sequence[float | None]) -> np.ndarray | None:
    """The log-probabilities as an array (L,); ``None`` where they are not believed."""
    if _doubtful(values) not in ("", ALL_ZERO):  # of a whole reply that alone is in doubt
        return None
    return np.minimum(np.array(values, dtype=np.float64), 0.0)


def _listed(said: Said) -> list[Top]:
    """The listed tokens with a log-probability, best first."""
    told = [t for t in said.top_logprobs or () if SENTINEL < t.logprob <= ROUNDING]
    return sorted(told, key=lambda t: -t.logprob)


def _own(said: Said, top: list[Top]) -> float | None:
    """The chosen token's log-probability where it is told, and not in the list."""
    told = not is_untold(said.logprob)
    return said.logprob if told and said.token not in {t.token for t in top} else None


def _contradicts(said: Said, top: list[Top], n_top: int) -> bool:
    """Whether a list gives the chosen token another log-probability, or leaves it out before a
    worse one. Names of parts of characters are alike, and say nothing."""
    if not top or said.logprob is None or not said.token.replace("\ufffd", "").strip():
        return False
    same = [t.logprob for t in top if t.token == said.token]
    if same:
        return min(abs(value - said.logprob) for value in same) > NEAR
    return said.logprob > top[min(len(top), max(n_top, 1)) - 1].logprob + NEAR


def _known(said: Said, top: list[Top], n_top: int) -> tuple[list[float], float | None]:
    """Log-probabilities of all known tokens, and the cap on the others, where the list is whole: as
    long as asked for, and not only by the chosen token put at its end. Servers that key it by the
    tokens' text lose those that look alike."""
    known = [t.logprob for t in top]
    whole = len(top) >= n_top and not (1 < len(top) == n_top and top[-1].token == said.token)
    cap = known[n_top - 1] if whole and n_top >= 1 else None
    own = _own(said, top)
    return known + ([] if own is None else [own]), cap


def _best(said: Said, top: list[Top], piece: str, n: int) -> tuple[tuple[str, float], ...]:
    """The ``n`` most probable tokens, best first, the chosen one, called ``piece`` as in the trace,
    at its place if not among them."""
    best = [(t.token, t.logprob) for t in top[:n]]
    if (own := _own(said, top[:n])) is not None:
        best = sorted([*best, (said.token, own)], key=lambda pair: -pair[1])
    return tuple((piece if token == said.token else token, logprob) for token, logprob in best)


def scored_in(answer: Any) -> list[tuple[str, float | None]]:
    """(token, log P) of a chat that a server scored (``prompt_logprobs``): each position has the
    token itself and perhaps others behind it."""
    rows = _or_none(field(answer, "prompt_logprobs"), _PROMPT.validate_python) or []
    each = [next(iter((row or {}).values()), None) for row in rows]
    return [("", None) if t is None else (t.decoded_token or "", t.logprob) for t in each]


def prior_of(answer: Any, tokens: Sequence[str]) -> np.ndarray | None:
    """Log P of each of ``tokens`` (L,) at the end of a scored chat; ``None`` unless the server cut
    it into the same tokens, but for blanks and parts of characters."""

    def same(said: str, token: str) -> bool:
        return not token or "\ufffd" in said or said.strip() == token.strip()

    end = scored_in(answer)[-len(tokens) :] if tokens else []
    if len(end) != len(tokens) or not all(map(same, [said for said, _ in end], tokens)):
        return None
    return _logprobs([value for _, value in end])
