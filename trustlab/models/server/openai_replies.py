"""Reads what an OpenAI-compatible server sends."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from pydantic import BaseModel, TypeAdapter, ValidationError

from trustlab.models.base import Request
from trustlab.models.local.decoding import BOUNDS, bounds
from trustlab.models.ranges import ROUNDING, SENTINEL, are_alternatives, is_untold
from trustlab.models.server.openai_wire import MOST_TOKENS, field, shortened
from trustlab.models.thought import Thinking, apart
from trustlab.records import Reply, TokenTrace

# nats by which the chosen token's log-probability may differ from its own in the list
NEAR = 0.01

NO_USAGE = (
    "does not tell how many tokens a call took (usage), so max_tokens_total cannot be kept to;"
    " give max_calls in its place"
)
NO_LOGPROBS = "the server tells no log-probabilities"
NO_LIST = "the server lists no alternative tokens"
NO_SIZE = "the server does not tell the size of its vocabulary; give vocabulary_size"
NO_SCORE = "the server scores no chat (prompt_logprobs)"
OTHER_TOKENS = (
    "the server scored other tokens than the reply's, or gave no log-probabilities"
)
NOT_SPELT = "the server's tokens do not spell the reply"
NOT_ALL = "the server tells no log-probability of a token"
NOT_NUMBERS = "the server's log-probabilities are not all numbers of at most 0"
ALL_ZERO = "the server's log-probabilities are all 0"
CONTRADICTED = "the server's list of alternatives contradicts the reply's own token"
OVER_ONE = "the probabilities of a token's alternatives sum to more than 1"
WIDE = (*BOUNDS, "certainty", "alternatives")
NEEDED = (*TokenTrace.ARRAYS, "alternatives")

_TAIL = rb"(\s|<[^<>\s]*>|\[/?(INST|EOS|PAD|BOS)\])*\Z"
"""Blanks and special tokens at the end of a reply."""


class Top(BaseModel):
    """One listed token of a position."""

    token: str
    logprob: float


class ReplyToken(BaseModel):
    """One token of a reply. ``bytes``: its UTF-8 bytes, where it may be part of a character."""

    token: str
    logprob: float | None = None
    bytes: list[int] | None = None
    top_logprobs: list[Top] | None = None


class Message(BaseModel):
    """What a model wrote. ``reasoning``: its thought, under either name."""

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


class ScoredToken(NamedTuple):
    """A token of a scored chat: its text, and its log-probability where the server has one."""

    text: str
    logprob: float | None


class Spelling(NamedTuple):
    """How a reply's tokens spell its text: the index of the ``first`` of them, and the text that
    each adds, '' for one that completes no character."""

    first: int
    texts: list[str]


_REPLY_TOKENS: Any = TypeAdapter(list[ReplyToken])
_PROMPT_TOKENS: Any = TypeAdapter(list[dict[str, PromptToken] | None])


Counts = tuple[int | None, int | None]
"""Tokens in and out; ``None``: the server does not count them."""
Alternatives = tuple[tuple[str, float], ...]
"""(token, log-probability) of the most probable tokens of a position, best first."""


def _rows_of(form: Any, value: Any) -> list[Any]:
    """The rows of a list that has this form; none where ``value`` has another."""
    try:
        return form.validate_python(value)
    except ValidationError:
        return []


def missing(reason: str, n_tokens: Counts = (0, 0)) -> Reply:
    """A reply that could not be had, with its reason and the tokens it cost, in and out."""
    return Reply(None, None, *n_tokens, finish="error", missing=reason)


def reasons_lacking(
    provides: frozenset[str], has_vocabulary_size: bool
) -> dict[str, str]:
    """Need -> why a server that gives no more than ``provides`` cannot meet it."""
    has_logprobs = "logprobs" in provides
    reasons: dict[str, str] = {}
    if not has_logprobs:
        reasons |= dict.fromkeys(("answer.logprobs", "samples.logprobs"), NO_LOGPROBS)
    if "distributions" not in provides:
        why = NO_LIST if has_logprobs else NO_LOGPROBS
        reasons |= dict.fromkeys([f"answer.{name}" for name in WIDE], why)
    elif not has_vocabulary_size:
        reasons |= dict.fromkeys(("answer.renyi", "answer.fisher_rao"), NO_SIZE)
    if "prior" not in provides:
        reasons["answer.prior_logprobs"] = NO_SCORE if has_logprobs else NO_LOGPROBS
    return reasons


def count_of(answer: Any, name: str) -> int | None:
    """A number of tokens in an answer's ``usage``; ``None``: it has none that can be believed."""
    n = field(answer, "usage", name)
    return n if type(n) is int and 0 <= n <= MOST_TOKENS else None


def counts_of(answer: Any) -> Counts:
    """Tokens of a chat call. A 0 is none of a prompt, nor of replies that have a text."""
    n_in = count_of(answer, "prompt_tokens")
    n_out = count_of(answer, "completion_tokens")
    if n_out == 0:
        choices = choices_of(answer) or []
        if any(field(choice, "message", "content") for choice in choices):
            n_out = None
    return n_in or None, n_out


def choices_of(answer: Any) -> list[Any] | None:
    """The choices of an answer; ``None``: it has another form, or they are not numbered in order
    from 0."""
    choices = field(answer, "choices")
    if not isinstance(choices, list):
        return None
    numbers = [field(choice, "index") for choice in choices]
    return choices if numbers == list(range(len(choices))) else None


def reply_of(
    choice: Any, request: Request, n_tokens: Counts, n_top: int,
    vocabulary_size: int | None, thinking: Thinking = "auto",
) -> Reply:  # fmt: skip
    """One reply, with its trace where the request wants statistics and the server's tokens spell
    the text. ``n_tokens``: in, and out where the server lists no tokens. ``n_top``: how many
    alternatives were requested. A reply that was cut off has finish "length", perhaps with an empty
    text. ``ValueError``: the choice has another form."""
    parsed = Choice.model_validate(choice)
    message = parsed.message
    thought = message.reasoning or message.reasoning_content
    if thinking == "none":
        thought = None
    reply_tokens = tokens_in(choice)
    n_in, n_out = n_tokens
    counts = n_in, len(reply_tokens) or n_out
    why = _why_missing(parsed, thought)
    if why:
        return missing(why, counts)
    reply = apart(Reply(message.content or "", None, *counts), thinking)
    if thought:
        thoughts = f"{thought}\n{reply.reasoning}" if reply.reasoning else thought
        reply = replace(reply, text=str(reply.text).lstrip(), reasoning=thoughts)
    trace = None
    if request.want and reply_tokens and reply.text:
        trace = trace_of(reply.text, reply_tokens, request, n_top, vocabulary_size)
    return replace(reply, trace=trace, finish=str(parsed.finish_reason))


def _why_missing(choice: Choice, thought: str | None) -> str:
    """Why a choice is no reply; '' where it is one."""
    message = choice.message
    finish = choice.finish_reason
    if message.refusal:
        return f"the model refused: {shortened(message.refusal)}"
    if finish == "content_filter":
        return "withheld by the server's content filter"
    if finish not in ("stop", "length"):
        how = f"(finish {shortened(str(finish))!r})"
        return f"the server ended the reply in a way nobody knows {how}"
    if message.content is None and finish == "stop" and not thought:
        return f"the server sent no text (finish {finish!r})"
    return ""


def tokens_in(choice: Any) -> list[ReplyToken]:
    """The tokens of a choice; none where the server lists none, or what are none."""
    return _rows_of(_REPLY_TOKENS, field(choice, "logprobs", "content"))


def _token_bytes(chosen: ReplyToken) -> bytes:
    values = chosen.bytes
    if values is not None and all(0 <= value < 256 for value in values):
        return bytes(values)
    return chosen.token.encode("utf-8", "replace")


def pieces(text: str, parts: Sequence[bytes]) -> Spelling | None:
    """How the tokens ``parts`` spell ``text``; ``None`` if they do not. Tokens before the text are
    passed over (reasoning, say), and blanks and special tokens after it."""
    text_bytes = text.encode()
    match = re.search(re.escape(text_bytes) + _TAIL, b"".join(parts))
    if match is None:
        return None
    start = match.start()
    end = start + len(text_bytes)
    first = 0
    begin = 0  # of a token, in bytes from the first token on
    n_written = 0  # characters of the text that are whole behind a token
    texts: list[str] = []
    for k, part in enumerate(parts):
        stop = begin + len(part)
        if begin < end and stop > start:
            if not texts:
                first = k
            n_whole = len(text_bytes[: stop - start].decode("utf-8", "ignore"))
            texts.append(text[n_written:n_whole])
            n_written = n_whole
        begin = stop
    return Spelling(first, texts)


def trace_of(
    text: str,
    reply_tokens: list[ReplyToken],
    request: Request,
    n_top: int,
    vocabulary_size: int | None,
) -> TokenTrace:
    """The statistics of a reply's tokens; what any token lacks is ``None``, with the reason.
    All are lacking where the tokens do not spell the text, or the log-probabilities of the whole
    reply are 0, or no numbers."""
    spelling = pieces(text, [_token_bytes(chosen) for chosen in reply_tokens])
    if spelling is None:
        return TokenTrace((text,), lacks=dict.fromkeys(NEEDED, NOT_SPELT))
    trace = TokenTrace(tuple(spelling.texts))
    doubt = _doubt([chosen.logprob for chosen in reply_tokens])
    if doubt in (NOT_NUMBERS, ALL_ZERO):
        return replace(trace, lacks=dict.fromkeys(NEEDED, doubt))
    last = spelling.first + len(spelling.texts)
    text_tokens = reply_tokens[spelling.first : last]
    if "logprobs" in request.want:
        values = [chosen.logprob for chosen in text_tokens]
        logprobs = _logprobs(values)
        lacks = {"logprobs": _doubt(values)} if logprobs is None else {}
        trace = replace(trace, logprobs=logprobs, lacks=lacks)
    if "distributions" in request.want:
        trace = _with_distributions(trace, text_tokens, request, n_top, vocabulary_size)
    return trace


def _with_distributions(
    trace: TokenTrace,
    text_tokens: Sequence[ReplyToken],
    request: Request,
    n_top: int,
    vocabulary_size: int | None,
) -> TokenTrace:
    """The trace with all that follows from the lists of alternatives, where each token has one: a
    bound (:func:`~trustlab.models.local.decoding.bounds`). None is taken from lists of which one
    contradicts its chosen token, or sums to more than 1."""
    lists = [_listed(chosen) for chosen in text_tokens]
    for chosen, listed in zip(text_tokens, lists, strict=True):
        if _contradicts(chosen, listed, n_top):
            return _without_distributions(trace, CONTRADICTED)
    if not lists or not all(lists):
        return trace
    alternatives: list[Alternatives] = []
    logprobs_by_token: list[list[float]] = []
    limits_by_token: list[tuple[float | None, ...]] = []
    for chosen, listed, text in zip(text_tokens, lists, trace.tokens, strict=True):
        best = _best(chosen, listed, text, request.n_alternatives)
        logprobs = [top.logprob for top in listed]
        unlisted = _unlisted_logprob(chosen, listed)
        if unlisted is not None:
            logprobs.append(unlisted)
        limits = bounds(
            logprobs,
            _cap(chosen, listed, n_top),
            alpha=request.renyi_alpha,
            vocabulary_size=vocabulary_size,
        )
        if limits is None or not are_alternatives(best):
            return _without_distributions(trace, OVER_ONE)
        alternatives.append(best)
        logprobs_by_token.append(logprobs)
        limits_by_token.append(limits)
    arrays: dict[str, np.ndarray] = {}
    for name, column in zip(BOUNDS, zip(*limits_by_token, strict=True), strict=True):
        if None not in column:
            arrays[name] = np.array(column, dtype=np.float64)
    return replace(
        trace,
        alternatives=tuple(alternatives),
        certainty=_certainty(logprobs_by_token, vocabulary_size),
        entropies=arrays.get("entropies"),
        renyi=arrays.get("renyi"),
        fisher_rao=arrays.get("fisher_rao"),
        bounds={name: BOUNDS[name] for name in arrays},
    )


def _certainty(
    logprobs_by_token: Sequence[Sequence[float]], vocabulary_size: int | None
) -> np.ndarray | None:
    """The self-certainty of each token (L,); ``None`` where a list is not the whole vocabulary."""
    if any(len(logprobs) != vocabulary_size for logprobs in logprobs_by_token):
        return None
    whole = np.array(logprobs_by_token)
    return -whole.mean(axis=1) - np.log(whole.shape[1])


def _without_distributions(trace: TokenTrace, why: str) -> TokenTrace:
    return replace(trace, lacks={**trace.lacks, **dict.fromkeys(WIDE, why)})


def _doubt(logprobs: Sequence[float | None]) -> str:
    """Why a reply's log-probabilities are not believed; '' where they are."""
    if any(map(is_untold, logprobs)):
        return NOT_ALL
    for logprob in logprobs:
        if not SENTINEL < (logprob or 0.0) <= ROUNDING:  # NaN, too
            return NOT_NUMBERS
    return ALL_ZERO if logprobs and not any(logprobs) else ""


def _logprobs(values: Sequence[float | None]) -> np.ndarray | None:
    """The log-probabilities as an array (L,); ``None`` where they are not believed."""
    if _doubt(values) not in ("", ALL_ZERO):  # of a whole reply that alone is in doubt
        return None
    return np.minimum(np.array(values, dtype=np.float64), 0.0)


def _listed(chosen: ReplyToken) -> list[Top]:
    """The listed tokens with a log-probability, best first."""
    listed = [
        top for top in chosen.top_logprobs or [] if SENTINEL < top.logprob <= ROUNDING
    ]
    return sorted(listed, key=lambda top: -top.logprob)


def _unlisted_logprob(chosen: ReplyToken, listed: list[Top]) -> float | None:
    """The chosen token's log-probability where the server has one, and the list lacks the token."""
    is_listed = any(top.token == chosen.token for top in listed)
    return None if is_listed or is_untold(chosen.logprob) else chosen.logprob


def _contradicts(chosen: ReplyToken, listed: list[Top], n_top: int) -> bool:
    """Whether a list gives the chosen token another log-probability, or leaves it out before a
    worse one. Names of parts of characters are alike, and say nothing."""
    is_part = not chosen.token.replace("\ufffd", "").strip()
    if not listed or chosen.logprob is None or is_part:
        return False
    distances = [
        abs(top.logprob - chosen.logprob) for top in listed if top.token == chosen.token
    ]
    if distances:
        return min(distances) > NEAR
    n_whole = min(len(listed), max(n_top, 1))
    return chosen.logprob > listed[n_whole - 1].logprob + NEAR


def _cap(chosen: ReplyToken, listed: list[Top], n_top: int) -> float | None:
    """What no token outside a whole list exceeds; ``None`` where the list is not whole: shorter
    than requested, or so long only by the chosen token put at its end. Servers that key it by the
    tokens' text lose those that look alike."""
    if n_top < 1 or len(listed) < n_top:
        return None
    if 1 < len(listed) == n_top and listed[-1].token == chosen.token:
        return None
    return listed[n_top - 1].logprob


def _best(chosen: ReplyToken, listed: list[Top], text: str, n: int) -> Alternatives:
    """The ``n`` most probable tokens, best first, the chosen one, called ``text`` as in the trace,
    at its place if not among them."""
    best = listed[:n]
    unlisted = _unlisted_logprob(chosen, best)
    if unlisted is not None:
        best.append(Top(token=chosen.token, logprob=unlisted))
        best.sort(key=lambda top: -top.logprob)
    pairs: list[tuple[str, float]] = []
    for top in best:
        name = text if top.token == chosen.token else top.token
        pairs.append((name, top.logprob))
    return tuple(pairs)


def scored_in(answer: Any) -> list[ScoredToken]:
    """The tokens of a chat that a server scored (``prompt_logprobs``): each position has the token
    itself and perhaps others behind it."""
    scored: list[ScoredToken] = []
    for row in _rows_of(_PROMPT_TOKENS, field(answer, "prompt_logprobs")):
        if row:
            prompt_token = next(iter(row.values()))
            scored.append(
                ScoredToken(prompt_token.decoded_token or "", prompt_token.logprob)
            )
        else:
            scored.append(ScoredToken("", None))
    return scored


def prior_of(answer: Any, tokens: Sequence[str]) -> np.ndarray | None:
    """Log P of each of ``tokens`` (L,) at the end of a scored chat; ``None`` unless the server cut
    it into the same tokens, but for blanks and parts of characters."""
    scored = scored_in(answer)[-len(tokens) :] if tokens else []
    if len(scored) != len(tokens):
        return None
    for server_token, token in zip(scored, tokens, strict=True):
        server_text = server_token.text
        is_part = not token or "\ufffd" in server_text
        if not is_part and server_text.strip() != token.strip():
            return None
    return _logprobs([server_token.logprob for server_token in scored])
