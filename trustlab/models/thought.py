"""Thought apart from the answer: what a model says to itself before it replies.

A server may send it in a field of its own; else it stands in front of the answer, between markers.
A chat template may have opened it already, so that only its end is seen.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple

from trustlab.models.base import Request
from trustlab.records import Reply, TokenTrace

MARKERS = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("[THINK]", "[/THINK]"),
    ("<seed:think>", "</seed:think>"),
    ("<unused94>", "<unused95>"),
    ("<reasoning>", "</reasoning>"),
    ("\u25c1think\u25b7", "\u25c1/think\u25b7"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|channel>thought", "<channel|>"),
    ("<|channel|>analysis<|message|>", "<|channel|>final<|message|>"),
    ("<|channel|>commentary", "<|channel|>final<|message|>"),
)
"""Beginning and end of a thought, as families of models write them."""
_MARK = re.compile("|".join(re.escape(mark) for pair in MARKERS for mark in pair))
ENDINGS = ("<|return|>", "<|end|>")
"""What may stand behind the answer of a model that has channels."""
Thinking = str | Sequence[str]
"""``"auto"`` (:data:`MARKERS`), ``"none"``, or a beginning and an end of one's own."""


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
    ends = tuple(thinking) if isinstance(thinking, list | tuple) else ()
    texts = [end for end in ends if isinstance(end, str) and end]
    if thinking not in ("auto", "none") and not len(texts) == len(ends) == 2:
        allowed = "'auto', 'none', or a list of two texts, the markers of its beginning and end"
        raise ValueError(f"thinking is {thinking!r}; it must be {allowed}")


def _markers(thinking: Thinking) -> Sequence[Sequence[str]]:
    own = [thinking] if not isinstance(thinking, str) else []
    return own or (MARKERS if thinking == "auto" else ())


def opened(prompt: str, thinking: Thinking = "auto") -> bool:
    """Whether a prompt ends with the beginning of a thought, which its template wrote."""
    return prompt.rstrip().endswith(tuple(opens.rstrip() for opens, _ in _markers(thinking)))


def parts(text: str, thinking: Thinking = "auto") -> Parts:
    """Where thought ends and the answer begins. The last marker decides: an answer stands behind
    the last end of any pair, and a beginning behind that has no end."""
    if thinking == "auto" and not _MARK.search(text):  # of most replies
        return Parts(None, 0, len(text))
    stop = len(text.rstrip())
    for ending in ENDINGS if thinking == "auto" else ():
        stop = stop - len(ending) if text[:stop].endswith(ending) else stop
    pairs = _markers(thinking)
    begins = [(at, len(opens)) for opens, _ in pairs if (at := text.find(opens)) >= 0]
    first, length = min(begins, default=(len(text), 0))
    last = max((text.rfind(opens) for opens, _ in pairs), default=-1)
    end, closing = max(((text.rfind(closes), len(closes)) for _, closes in pairs), default=(-1, 0))
    if last > end:
        return Parts(text[first + length :], None, stop)
    if end >= 0:
        thought = text[first + length : end] if first < end else text[:end]
        answer = text[end + closing :]
        return Parts(thought, len(text) - len(answer.lstrip()), stop)
    return Parts(None, 0, len(text))


def with_thought(requests: Sequence[Request], n_tokens: int) -> list[Request]:
    """The requests with ``n_tokens`` more for what is thought before each reply."""
    return [replace(q, max_tokens=q.max_tokens + n_tokens) for q in requests]


NOT_SCORED = "the answer stands behind a thought, which tells what the patient said"
"""Why an answer has no probability without the patient's words."""


def unscored(trace: TokenTrace) -> TokenTrace:
    """The trace of an answer behind a thought: without a prior, which is the answer's probability
    where nothing is told of the patient."""
    return replace(trace, prior_logprobs=None, lacks={**trace.lacks, "prior_logprobs": NOT_SCORED})


def apart(
    reply: Reply,
    thinking: Thinking = "auto",
    pieces: Sequence[str] = (),
    named: Sequence[str] = (),
    *,
    begun: bool = False,
) -> Reply:
    """The reply with its thought in ``reasoning``, its text and trace the answer's alone.

    - ``pieces``: what each token adds to the text; ``named``: the same with the names of special
      tokens, which the text lacks. Without them only the text is parted.
    - ``begun``: the prompt has :func:`opened` a thought; a reply without its end, cut or not, is
      all thought.
    - A thought without an end, and one without an answer behind it, leave an empty text.
    """
    if reply.text is None:
        return reply
    told = "".join(named) or reply.text
    thought, start, stop = parts(told, thinking)
    if thought is None and begun:
        thought, start = told, None
    if thought is None:
        return reply
    thought = thought.strip()
    if start is None or start >= stop:
        return replace(reply, text="", trace=None, reasoning=thought)
    if not named:
        return replace(reply, text=told[start:stop], trace=None, reasoning=thought)
    ends = list(accumulate(map(len, named)))
    k = next(i for i, end in enumerate(ends) if end > start)
    begins = named[k][start - ends[k] :] if named[k] == pieces[k] else ""
    said = (begins, *pieces[k + 1 :])
    trace = reply.trace and replace(reply.trace.part(k, len(named)), tokens=said)
    if trace is not None and trace.prior_logprobs is not None and thought:
        trace = unscored(trace)
    return replace(reply, text="".join(said), trace=trace, reasoning=thought)
