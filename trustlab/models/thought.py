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

_WRITTEN = read_yaml(Path(__file__).with_name("thought.yml"))
MARKERS, IN_WORDS = (tuple(map(tuple, _WRITTEN[name])) for name in ("markers", "in_words"))
Thinking = str | Sequence[str]  # "auto" (MARKERS), "none", or a beginning and an end of one's own


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
    ends = thinking if isinstance(thinking, list | tuple) else ()
    own = len(ends) == 2 and all(isinstance(end, str) and end for end in ends)
    if thinking not in ("auto", "none") and not own:
        allowed = "'auto', 'none', or a list of two texts, the markers of its beginning and end"
        raise ValueError(f"thinking is {thinking!r}; it must be {allowed}")


def _markers(thinking: Thinking) -> Sequence[Sequence[str]]:
    own = [thinking] if not isinstance(thinking, str) else []
    return own or (MARKERS if thinking == "auto" else ())


def opened(prompt: str, thinking: Thinking = "auto") -> bool:
    """Whether a prompt ends with the beginning of a thought, which its template wrote."""
    return prompt.rstrip().endswith(tuple(opens.rstrip() for opens, _ in _markers(thinking)))


def parts(text: str, thinking: Thinking = "auto") -> Parts:
    """Where thought ends and the answer begins: behind the last end of any pair, unless a beginning
    stands behind that."""
    stop = len(text.rstrip())
    pairs = [*_markers(thinking)]
    if thinking == "auto":
        pairs += [p for p in IN_WORDS if text.lstrip().startswith(p[0]) and p[1] in text]
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


def unscored(trace: TokenTrace) -> TokenTrace:
    """The trace of an answer behind a thought: without a prior (:data:`NOT_SCORED`)."""
    return replace(trace, prior_logprobs=None, lacks={**trace.lacks, "prior_logprobs": NOT_SCORED})


def apart(
    reply: Reply, thinking: Thinking = "auto", pieces: Sequence[str] = (),
    named: Sequence[str] = (), *, begun: bool = False,
) -> Reply:  # fmt: skip
    """The reply with its thought in ``reasoning``, its text and trace the answer's alone; the text
    is empty where no answer stands behind it.

    - ``pieces``: what each token adds to the text; ``named``: the same with the names of special
      tokens, which the text lacks. Without them only the text is parted.
    - ``begun``: the prompt has :func:`opened` a thought, so a reply without its end is all thought.
    """
    if reply.text is None:
        return reply
    whole = "".join(named) or reply.text
    thought, start, stop = parts(whole, thinking)
    if thought is None and begun:
        thought, start = whole, None
    if thought is None and (start, stop) == (0, len(whole)):
        return reply
    thought = reply.reasoning if thought is None else thought.strip()
    start = stop if start is None else start
    if start >= stop or not named:
        return replace(reply, text=whole[start:stop], trace=None, reasoning=thought)
    ends = list(accumulate(map(len, named)))
    k = bisect_right(ends, start)
    last = bisect_left(ends, stop)
    said = [
        name[max(0, start - end + len(name)) : stop - end + len(name)] if name == piece else piece
        for name, piece, end in zip(named, pieces, ends, strict=True)
    ][k : last + 1]
    trace = reply.trace and replace(reply.trace.part(k, last + 1), tokens=tuple(said))
    if trace is not None and trace.prior_logprobs is not None and thought:
        trace = unscored(trace)
    return replace(reply, text="".join(said), trace=trace, reasoning=thought)
