"""What comes from an OpenAI-compatible server: replies, their tokens, and scores of a text."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, Field, ValidationError, WrapValidator

from trustlab.choices import WRITABLE, utf8
from trustlab.models.base import Request
from trustlab.models.decoding import BOUNDS, ROUNDING, bounds
from trustlab.models.openai_wire import shortened
from trustlab.models.thought import Thinking, apart
from trustlab.records import Reply, TokenTrace

SENTINEL = -9998.0
"""Servers write -9999 for a log-probability that they do not tell."""

BROKEN_OFF = frozenset({"error", "abort", "aborted", "cancelled", "tool_calls", "function_call"})
"""How servers call an end that is none."""
CUT_SHORT = frozenset({"length", "max_tokens", "model_length"})
"""How servers call an end by the token budget or the window; "length" is OpenAI's word."""

NO_LOGPROBS = "the server tells no log-probabilities"
NO_LIST = "the server lists no alternative tokens"
NO_SIZE = (
    "the server does not tell the size of its vocabulary; give vocabulary_size, or a tokenizer"
    " as chat_template"
)
NO_TEMPLATE = (
    "the server scores no chat (prompt_logprobs), and does not tell its chat template, which"
    " scoring needs; give chat_template"
)
OTHER_TOKENS = "the server scored other tokens than the reply's, or gave no log-probabilities"
NO_ECHO = "the server does not score a given text (completions with echo)"

_SPECIAL = re.compile(rb"\s*(<[^<>\s]*>|\[/?(INST|EOS|PAD|BOS)\])?\s*", re.DOTALL)
_SHOWN = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_HIDDEN = (b for b in range(0x100) if b not in _SHOWN)
BYTES = {chr(b): b for b in _SHOWN} | {chr(0x100 + i): b for i, b in enumerate(_HIDDEN)}
"""GPT-2's byte alphabet: character -> byte."""
_ESCAPED = re.compile(r"bytes:((?:\\x[0-9a-fA-F]{2})+)")


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
    logprob: Annotated[float | None, WrapValidator(_or_none)] = None
    bytes: Annotated[list[int] | None, WrapValidator(_or_none)] = None
    top_logprobs: Annotated[list[Top] | None, WrapValidator(_or_none)] = None


class Logprobs(BaseModel):
    """The tokens of a reply, in order."""

    content: list[Said] | None = None


class Message(BaseModel):
    """What was said, or why not."""

    content: str | None = None
    reasoning: Annotated[str | None, WrapValidator(_or_none)] = None
    reasoning_content: Annotated[str | None, WrapValidator(_or_none)] = None
    refusal: Annotated[str | None, WrapValidator(_or_none)] = None


class Choice(BaseModel):
    """One of the replies to a request."""

    message: Message
    finish_reason: Annotated[str | None, WrapValidator(_or_none)] = None
    logprobs: Annotated[Logprobs | None, WrapValidator(_or_none)] = None


MOST_TOKENS = 10_000_000
"""Of one call, in or out; a server that counts more is not believed."""
Tokens = Annotated[Annotated[int, Field(ge=0, le=MOST_TOKENS)] | None, WrapValidator(_or_none)]


class Usage(BaseModel):
    """Tokens of the prompt, and of all replies together; ``None``: not told, or not believed."""

    prompt_tokens: Tokens = None
    completion_tokens: Tokens = None


class ChatAnswer(BaseModel):
    """The answer of ``/chat/completions``."""

    choices: list[Choice]
    usage: Annotated[Usage | None, WrapValidator(_or_none)] = None
    system_fingerprint: Annotated[str | None, WrapValidator(_or_none)] = None
    model: Annotated[str | None, WrapValidator(_or_none)] = None


class Scored(BaseModel):
    """The tokens of a text that a server scored, with their log-probabilities."""

    tokens: list[str]
    token_logprobs: list[float | None]


class ScoredChoice(BaseModel):
    """The one choice of a scoring answer."""

    logprobs: Scored
    finish_reason: Annotated[str | None, WrapValidator(_or_none)] = None


class ScoreAnswer(BaseModel):
    """The answer of ``/completions`` with ``echo``."""

    choices: list[ScoredChoice]
    usage: Annotated[Usage | None, WrapValidator(_or_none)] = None


def believed(reply: Reply) -> Reply:
    """The reply, from a server or kept; ``ValueError`` where it holds what none can: numbers of
    tokens out of range, log-probabilities above rounding, half a character."""
    for name in ("n_tokens_in", "n_tokens_out"):
        if not 0 <= (n := getattr(reply, name)) <= MOST_TOKENS:
            raise ValueError(f"{name} is {n}; it must be a whole number from 0 to {MOST_TOKENS:,}")
    texts = [reply.text, reply.raw, reply.reasoning, reply.finish, reply.served_by]
    if (trace := reply.trace) is not None:
        best = [pair for row in trace.alternatives or () for pair in row]
        texts += [*trace.tokens, *trace.lacks.values(), *(token for token, _ in best)]
        _check_numbers("alternatives", [logprob for _, logprob in best], highest=ROUNDING)
        for name in ("logprobs", "prior_logprobs"):
            _check_numbers(name, getattr(trace, name), highest=ROUNDING)
        _check_numbers("entropies", trace.entropies, lowest=-ROUNDING)
    if not utf8("".join(filter(None, texts))):
        raise ValueError(f"a text of the reply has half a character; it must be {WRITABLE}")
    return reply


def _check_numbers(
    name: str, values: Any, lowest: float = -math.inf, highest: float = math.inf
) -> None:
    """``ValueError`` unless ``values`` (n,), where there are any, are finite and within."""
    if values is None or not len(values):
        return
    listed = values if isinstance(values, list) else values.tolist()
    if not (math.isfinite(sum(listed)) and lowest <= min(listed) <= max(listed) <= highest):
        side = "at most 0" if highest < math.inf else "at least 0"
        raise ValueError(f"{name} are not all numbers of {side}: {listed}")


def missing(reason: str, n_tokens: tuple[int, int] = (0, 0)) -> Reply:
    """A reply that could not be had, with its reason and the tokens it cost, in and out."""
    return Reply(None, None, *n_tokens, finish="error", missing=reason)


def reasons_lacking(provides: frozenset[str], has_template: bool, has_size: bool) -> dict[str, str]:
    """Need -> why a server that gives no more than ``provides`` cannot meet it."""
    lacks: dict[str, str] = {}
    if "logprobs" not in provides:
        lacks |= dict.fromkeys(("answer.logprobs", "samples.logprobs"), NO_LOGPROBS)
    if "distributions" not in provides:
        wide = ("answer.entropies", "answer.renyi", "answer.fisher_rao", "answer.alternatives")
        lacks |= dict.fromkeys(wide, NO_LIST if "logprobs" in provides else NO_LOGPROBS)
    elif not has_size:
        lacks |= dict.fromkeys(("answer.renyi", "answer.fisher_rao"), NO_SIZE)
    if "prior" not in provides:
        lacks["answer.prior_logprobs"] = (
            NO_TEMPLATE if not has_template else NO_ECHO if "logprobs" in provides else NO_LOGPROBS
        )
    return lacks


def reply_of(
    choice: Choice,
    request: Request,
    n_tokens: tuple[int, int],
    n_top: int,
    vocabulary_size: int | None,
    thinking: Thinking = "auto",
) -> Reply:
    """One reply, with its trace where the request wants statistics and the server's tokens spell
    the text.

    ``n_tokens``: in, and out where the server lists no tokens. ``n_top``: how many alternatives
    were asked for. A reply that was cut off has finish "length", and an empty text if it came to
    none (its thought took all tokens, say); where the server does not say how it ended, its tokens
    are counted.
    """
    said = choice.logprobs.content if choice.logprobs is not None else None
    counts = n_tokens[0], len(said) if said else n_tokens[1]
    if choice.message.refusal:
        return missing(f"the model refused: {shortened(choice.message.refusal)}", counts)
    if choice.finish_reason == "content_filter":
        return missing("withheld by the server's content filter", counts)
    end = choice.finish_reason
    cut = end in CUT_SHORT or (end is None and counts[1] >= request.max_tokens)
    thought = choice.message.reasoning or choice.message.reasoning_content or None
    if end in BROKEN_OFF:
        return missing(f"the server broke the reply off (finish {end!r})", counts)
    if choice.message.content is None and not cut and (not thought or thinking == "none"):
        return missing(f"the server sent no text (finish {choice.finish_reason!r})", counts)
    # A lone surrogate cannot be written to any file.
    text = (choice.message.content or "").encode("utf-8", "replace").decode()
    reply = apart(Reply(text, None, *counts), thinking)
    if thought is not None and thinking != "none":
        thoughts = "\n".join(filter(None, [thought, reply.reasoning]))
        thoughts = thoughts.encode("utf-8", "replace").decode()
        reply = replace(reply, text=str(reply.text).lstrip(), reasoning=thoughts)
    trace = None
    if request.want and said and reply.text:
        trace = trace_of(reply.text, said, request, n_top, vocabulary_size)
    return replace(reply, trace=trace, finish="length" if cut else "stop")


def token_bytes(said: Said) -> bytes:
    """The bytes that a token adds to the text."""
    if said.bytes is not None and all(0 <= b < 256 for b in said.bytes):
        return bytes(said.bytes)
    if escaped := _ESCAPED.fullmatch(said.token):
        return bytes.fromhex(escaped[1].replace("\\x", ""))
    return said.token.encode("utf-8", "replace")


def alphabet_bytes(said: Said) -> bytes:
    """The bytes of a token that is named in GPT-2's byte alphabet ("Ã©" for "é"); what is not in it
    is a byte that no text has."""
    return bytes(BYTES.get(c, 0xFF) for c in said.token)


def pieces(text: str, parts: Sequence[bytes]) -> tuple[int, list[str]] | None:
    """Where the tokens ``parts`` that make up ``text`` begin, and the text that each adds; ``None``
    if they do not spell it.

    Tokens before the text (reasoning that the server moved elsewhere, blanks it stripped) are
    passed over, and so are blanks and special tokens after it. A token that completes no character
    adds ''; joined, the pieces are ``text``.
    """
    spoken, joined = text.encode(), b"".join(parts)
    stop, last = len(joined), len(parts)
    while True:
        # Stripped blanks first as they came, then without: a text may itself end in some.
        ends = [end for end in (stop, len(joined[:stop].rstrip())) if joined[:end].endswith(spoken)]
        if ends:
            break
        if last == 0 or not _SPECIAL.fullmatch(parts[last - 1]):
            return None
        last -= 1
        stop -= len(parts[last])
    start = ends[0] - len(spoken)
    offsets = np.cumsum([0, *map(len, parts)])
    inside = [k for k in range(last) if offsets[k] < ends[0] and offsets[k + 1] > start]
    if not inside:
        return 0, []
    first, last = inside[0], inside[-1] + 1
    within = [min(max(int(o) - start, 0), len(spoken)) for o in offsets[first : last + 1]]
    seen = [len(spoken[:end].decode("utf-8", "ignore")) for end in within]
    return first, [text[a:b] for a, b in zip(seen[:-1], seen[1:], strict=True)]


def trace_of(
    text: str, said: list[Said], request: Request, n_top: int, vocabulary_size: int | None
) -> TokenTrace:
    """The statistics of a reply's tokens.

    A statistic that any token lacks is ``None``, and all are, with ``lacks`` saying why, where the
    tokens do not spell the text, or the log-probabilities of the whole reply are 0, or no numbers.
    Entropies are lower bounds, Rényi divergences and Fisher-Rao distances upper ones (``None``
    without ``vocabulary_size``): see :mod:`trustlab.models.decoding`.
    """
    spellings = ([of(s) for s in said] for of in (token_bytes, alphabet_bytes))
    found = next(filter(None, (pieces(text, parts) for parts in spellings)), None)
    if found is None:
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
    if "distributions" in request.want and all(_told(s) for s in said):
        at_least = [
            bounds(*_listed(s, n_top), alpha=request.renyi_alpha, vocabulary_size=vocabulary_size)
            for s in said
        ]
        for k, name in enumerate(BOUNDS):
            column = [None if row is None else row[k] for row in at_least]
            whole = all(value is not None for value in column)
            wide[name] = np.array(column, dtype=np.float64) if whole else None
        named = zip(said, tokens, strict=True)
        wide["alternatives"] = tuple(_alternatives(s, t, request.n_alternatives) for s, t in named)
        wide["bounds"] = {name: side for name, side in BOUNDS.items() if wide[name] is not None}
    shown = logprobs if "logprobs" in request.want else None
    return TokenTrace(tuple(tokens), shown, lacks=lacks, **wide)


NOT_SPELT = "the server's tokens do not spell the reply"
NOT_ALL = "the server tells no log-probability of a token"
NOT_NUMBERS = "the server's log-probabilities are not all numbers of at most 0"
ALL_ZERO = "the server's log-probabilities are all 0"
NEEDED = (*TokenTrace.ARRAYS, "alternatives")


def _doubtful(values: Sequence[float | None]) -> str:
    """Why a reply's log-probabilities are not believed; "" where they are."""
    if any(value is None or value <= SENTINEL for value in values):
        return NOT_ALL
    if not all(SENTINEL < (value or 0.0) <= ROUNDING for value in values):  # NaN, too
        return NOT_NUMBERS
    return "" if any(values) or not values else ALL_ZERO


def _logprobs(values: Sequence[float | None]) -> np.ndarray | None:
    """The log-probabilities as an array (L,); ``None`` where they are not believed."""
    if _doubtful(values) not in ("", ALL_ZERO):  # of a whole reply that alone is in doubt
        return None
    return np.minimum(np.array(values, dtype=np.float64), 0.0)


def _told(said: Said) -> list[Top]:
    """The listed tokens with a log-probability, best first."""
    told = [t for t in said.top_logprobs or () if SENTINEL < t.logprob <= ROUNDING]
    return sorted(told, key=lambda t: -t.logprob)


def _listed(said: Said, n_top: int) -> tuple[list[float], float | None]:
    """Log-probabilities of all known tokens, and the cap on the others.

    There is a cap only where the list is whole: as long as asked for, and not brought to that
    length by the chosen token put at its end. Servers that key it by the tokens' text lose those
    that look alike, and these may be any but the most probable.
    """
    told = _told(said)
    known = [t.logprob for t in told]
    whole = len(told) >= n_top and not (1 < len(told) == n_top and told[-1].token == said.token)
    cap = known[n_top - 1] if whole and n_top >= 1 else None
    if (
        said.logprob is not None
        and said.token not in {t.token for t in told}
        and said.logprob > SENTINEL
    ):
        known.append(said.logprob)
    return known, cap


def _alternatives(said: Said, piece: str, n: int) -> tuple[tuple[str, float], ...]:
    """The ``n`` most probable tokens, best first, the chosen one at its place if not among them.

    The chosen one is called as in the trace, ``piece``: servers may write it otherwise.
    """
    best = [(t.token, t.logprob) for t in _told(said)[:n]]
    if (
        said.logprob is not None
        and said.token not in {token for token, _ in best}
        and said.logprob > SENTINEL
    ):
        best = sorted([*best, (said.token, said.logprob)], key=lambda pair: -pair[1])
    return tuple((piece if token == said.token else token, logprob) for token, logprob in best)


class PromptToken(BaseModel):
    """One token of a prompt that a server scored."""

    logprob: float
    decoded_token: str | None = None


class PromptAnswer(BaseModel):
    """The answer of ``/chat/completions`` with ``prompt_logprobs``: of each token of the prompt,
    but the first, the token itself and perhaps others behind it."""

    prompt_logprobs: list[dict[str, PromptToken] | None]


def prior_in_chat(answer: PromptAnswer, tokens: Sequence[str]) -> np.ndarray | None:
    """Log P of each of ``tokens`` (L,) at the end of a scored chat; ``None`` unless it ends with
    these, blanks and parts of characters aside."""
    if not tokens:
        return np.zeros(0)
    scored = answer.prompt_logprobs[-len(tokens) :]
    found = [next(iter(told.values()), None) if told else None for told in scored]
    if len(found) < len(tokens) or any(one is None for one in found):
        return None
    for one, token in zip(found, tokens, strict=True):
        said = (one and one.decoded_token) or ""
        if token and "\ufffd" not in said and said.strip() != token.strip():
            return None
    return _logprobs([one.logprob for one in found if one is not None])


def prior_of(answer: ScoreAnswer, tokens: Sequence[str]) -> np.ndarray | None:
    """Log P of each of ``tokens`` (L,) at the end of a scored text; ``None`` unless the server cut
    the text into the same tokens.

    The scored text was the prompt and the reply; the server was made to add one token, which it may
    or may not list. The last tokens must be the reply's own, in one way only. Offsets are not used:
    servers count them differently.
    """
    if not answer.choices or not tokens:
        return np.zeros(0) if not tokens else None
    choice = answer.choices[0]
    scored = choice.logprobs
    n_made = answer.usage.completion_tokens if answer.usage is not None else None
    cuts = {n_made} if n_made in (0, 1) else {0, 1}
    if choice.finish_reason == "stop":
        cuts.add(0)  # an end token is counted, and listed or not
    fits = []
    for cut in cuts:
        stop = len(scored.tokens) - cut
        if stop >= len(tokens) and scored.tokens[stop - len(tokens) : stop] == list(tokens):
            fits.append(scored.token_logprobs[stop - len(tokens) : stop])
    return _logprobs(fits[0]) if len(fits) == 1 else None
