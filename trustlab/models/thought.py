"""Sets a model's thought apart from its answer."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from trustlab.models.base import Request
from trustlab.paths import read_yaml
from trustlab.records import Reply, TokenTrace


class Markers(NamedTuple):
    """What a thought begins and ends with."""

    opening: str
    closing: str


_YAML = read_yaml(Path(__file__).with_name("thought.yml"))
MARKERS = tuple(Markers(*pair) for pair in _YAML["markers"])
IN_WORDS = tuple(Markers(*pair) for pair in _YAML["in_words"])
# "auto" (MARKERS), "none", or a beginning and an end of one's own
Thinking = str | Sequence[str]


class Span(NamedTuple):
    """Where a marker stands in a text."""

    start: int
    stop: int


class Parts(NamedTuple):
    """A reply's ``thought`` (``None``: it has none), and where its answer starts and stops;
    ``start`` is ``None`` where the thought has no end."""

    thought: str | None
    start: int | None
    stop: int


def check_thinking(thinking: Thinking, n_tokens: int) -> None:
    """``ValueError`` for what is no way to tell thought apart, or no budget for it."""
    if n_tokens < 0:
        raise ValueError(f"thinking_tokens must be at least 0, got {n_tokens}")
    is_pair = isinstance(thinking, list | tuple) and len(thinking) == 2
    if is_pair:
        is_pair = all(isinstance(marker, str) and marker for marker in thinking)
    if thinking not in ("auto", "none") and not is_pair:
        allowed = "'auto', 'none', or a list of two texts, the markers of its beginning and end"
        raise ValueError(f"thinking is {thinking!r}; it must be {allowed}")


def _markers(thinking: Thinking) -> list[Markers]:
    if thinking == "auto":
        return list(MARKERS)
    if isinstance(thinking, str):
        return []
    return [Markers(*thinking)]


def has_opened_thought(prompt: str, thinking: Thinking = "auto") -> bool:
    """Whether a prompt ends with the beginning of a thought, which its template wrote."""
    openings = [pair.opening.rstrip() for pair in _markers(thinking)]
    return prompt.rstrip().endswith(tuple(openings))


def parts(text: str, thinking: Thinking = "auto") -> Parts:
    """Where thought ends and the answer begins: behind the last end of any pair, unless a beginning
    stands behind that."""
    pairs = _markers(thinking)
    if thinking == "auto":
        for pair in IN_WORDS:
            if text.lstrip().startswith(pair.opening) and pair.closing in text:
                pairs.append(pair)
    opening = Span(len(text), len(text))  # the first
    last_opening = -1
    closing = Span(-1, -1)  # the last
    for pair in pairs:
        start = text.find(pair.opening)
        if start >= 0:
            opening = min(opening, Span(start, start + len(pair.opening)))
            last_opening = max(last_opening, text.rfind(pair.opening))
        start = text.rfind(pair.closing)
        closing = max(closing, Span(start, start + len(pair.closing)))
    stop = len(text.rstrip())
    if last_opening > closing.start:
        return Parts(text[opening.stop :], None, stop)
    if closing.start >= 0:
        start = 0
        if opening.start < closing.start:
            start = opening.stop
        thought = text[start : closing.start]
        answer = text[closing.stop :].lstrip()
        return Parts(thought, len(text) - len(answer), stop)
    return Parts(None, 0, len(text))


def with_thought(requests: Sequence[Request], n_tokens: int) -> list[Request]:
    """The requests with ``n_tokens`` more for what is thought before each reply."""
    return [
        replace(request, max_tokens=request.max_tokens + n_tokens)
        for request in requests
    ]


NOT_SCORED = "the answer stands behind a thought, which tells what the patient said"


def unscored(trace: TokenTrace) -> TokenTrace:
    """The trace of an answer behind a thought: without a prior (:data:`NOT_SCORED`)."""
    lacks = {**trace.lacks, "prior_logprobs": NOT_SCORED}
    return replace(trace, prior_logprobs=None, lacks=lacks)


def apart(
    reply: Reply, thinking: Thinking = "auto", pieces: Sequence[str] = (),
    named: Sequence[str] = (), *, begun: bool = False,
) -> Reply:  # fmt: skip
    """The reply with its thought in ``reasoning``, its text and trace the answer's alone; the text
    is empty where no answer stands behind it.

    - ``pieces``: what each token adds to the text; ``named``: the same with the names of special
      tokens, which the text lacks. Without them only the text is parted.
    - ``begun``: the prompt has opened a thought (:func:`has_opened_thought`), so a reply without
      its end is all thought.
    """
    if reply.text is None:
        return reply
    whole = "".join(named) or reply.text
    thought, start, stop = parts(whole, thinking)
    if thought is None and begun:
        thought = whole
        start = None
    if thought is None and (start, stop) == (0, len(whole)):
        return reply
    reasoning = reply.reasoning
    if thought is not None:
        reasoning = thought.strip()
    if start is None:
        start = stop
    if start >= stop or not named:
        return replace(reply, text=whole[start:stop], trace=None, reasoning=reasoning)
    first, texts = _pieces_between(start, stop, pieces, named)
    trace = reply.trace
    if trace:
        part = trace.part(first, first + len(texts))
        trace = replace(part, tokens=tuple(texts))
    if trace is not None and trace.prior_logprobs is not None and reasoning:
        trace = unscored(trace)
    return replace(reply, text="".join(texts), trace=trace, reasoning=reasoning)


def _pieces_between(
    start: int, stop: int, pieces: Sequence[str], named: Sequence[str]
) -> tuple[int, list[str]]:
    """Of the text ``start`` to ``stop``, places in the joined ``named``: its first token, and what
    each of its tokens adds to it."""
    ends = list(accumulate(map(len, named)))
    first = bisect_right(ends, start)
    last = bisect_left(ends, stop)
    texts = []
    for name, piece, end in zip(named, pieces, ends, strict=True):
        if name == piece:
            begin = end - len(name)
            piece = piece[max(0, start - begin) : stop - begin]
        texts.append(piece)
    return first, texts[first : last + 1]
