"""Counts what became of replies: read, cut, a placeholder, unread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from trustlab.parsing.reply import BLANK, CUT, Unreadable, diagnosis, no_answer, unnamed
from trustlab.records import Reading, Reply

if TYPE_CHECKING:
    from trustlab.models.base import About

KINDS = ("asked", "cut", "read", "chat", "example", "placeholder", "unread")
"""What is counted of a purpose: ``asked`` are all replies, ``chat`` those of the read ones that
strict reading refuses, ``example`` those that repeat the reply of a worked example."""
Counts = dict[str, dict[str, dict[str, int]]]  # model -> purpose -> kind -> replies
Tally = Mapping[str, Mapping[str, Mapping[str, int]]]  # the same, only read
NOTHING = "nothing that can be read"
TOO_FEW = "could be read"  # how a reason ends where too few replies could be
# where a smaller share of a purpose is read, nothing is claimed from it
LEAST_READ = 0.5


class ReadReply(NamedTuple):
    """``kind`` of :data:`KINDS`, '' where the backend failed or nobody reads it; what was ``read``,
    or ``why`` nothing; whether only as ``chat``."""

    kind: str
    read: Any = None
    why: str = ""
    chat: bool = False


def read_reply(reply: Reply, about: About | None) -> ReadReply:
    """What became of a reply."""
    reason = no_answer(reply)
    if reason:
        kind = "cut" if reason.startswith(CUT) else ""
        return ReadReply(kind, None, reason)
    if about is None or about.reads is None:
        return ReadReply("")
    value, reason = _value_or_reason(about.reads, reply)
    if reason:
        kind = "placeholder" if BLANK in reason else "unread"
        return ReadReply(kind, None, reason)
    only_chat = False
    if about.strictly is not None:
        _, strict_reason = _value_or_reason(about.strictly, reply)
        only_chat = bool(strict_reason)
    return ReadReply("read", value, "", only_chat)


def _value_or_reason(reads: Callable[[Reply], Any], reply: Reply) -> tuple[Any, str]:
    """What a reader makes of a reply, or why it makes nothing."""
    try:
        value = reads(reply)
    except Unreadable as error:
        return None, str(error) or NOTHING
    return value, NOTHING if value is None else ""


def count(
    counts_by_purpose: dict[str, dict[str, int]],
    purpose: str,
    replies: Iterable[ReadReply],
    n_examples: int = 0,
) -> None:
    """Add these replies to what is counted by purpose, ``n_examples`` of which repeat one."""
    for reply in replies:
        if reply.kind:
            counts = counts_by_purpose.setdefault(purpose, dict.fromkeys(KINDS, 0))
            counts["asked"] += 1
            counts[reply.kind] += 1
            counts["chat"] += reply.chat
    if n_examples and purpose in counts_by_purpose:
        counts_by_purpose[purpose]["example"] += n_examples


def add(counts: Counts, more: Tally) -> Counts:
    """``counts`` with ``more`` added to them."""
    for model, purpose, n_by_kind in each_count(more):
        by_purpose = counts.setdefault(model, {})
        sums = by_purpose.setdefault(purpose, dict.fromkeys(KINDS, 0))
        for kind in KINDS:
            sums[kind] += n_by_kind.get(kind, 0)
    return counts


def each_count(counts: Tally) -> Iterator[tuple[str, str, Mapping[str, int]]]:
    """(model, purpose, kind -> replies) of each."""
    for model, counts_by_purpose in counts.items():
        for purpose, n_by_kind in counts_by_purpose.items():
            yield model, purpose, n_by_kind


def too_few(counts: Tally) -> dict[tuple[str, str], str]:
    """(model, purpose) -> the reason where less than half of its replies could be read."""
    reasons = {}
    for model, purpose, n_by_kind in each_count(counts):
        n_read = n_by_kind["read"]
        n_replies = n_by_kind.get("asked", 0)
        if n_read < LEAST_READ * n_replies:
            share = f"{n_read:,} of {n_replies:,} replies to {purpose!r}"
            reasons[model, purpose] = f"only {share} {TOO_FEW}"
    return reasons


def why_few(counts: Tally, model: str, purposes: Iterable[str]) -> str:
    """Why nothing is claimed of ``model`` that rests on ``purposes``, '' without a reason. What it
    was not asked for, others answered in its place."""
    reasons = too_few(counts)
    for purpose in purposes:
        is_own = purpose in counts.get(model, ())
        for answering in [model] if is_own else counts:
            if (answering, purpose) in reasons:
                return reasons[answering, purpose]
    return ""


def totals(counts: Tally) -> dict[str, int]:
    """The sum over models and purposes, by kind."""
    every = [n_by_kind for *_, n_by_kind in each_count(counts)]
    return {kind: sum(n.get(kind, 0) for n in every) for kind in KINDS}


def named(reply: Reply, reading: Reading) -> Any:
    """The diagnosis that an answer, a sample or a keyword names; :class:`Unreadable` without."""
    span = diagnosis(reply.text, reading)
    if span is None:
        raise Unreadable(unnamed(reply.text))
    return span


def both(reads: Callable[..., Any], reading: Reading) -> dict[str, Any]:
    """``reads`` and ``strictly`` of an :class:`~trustlab.models.base.About`."""
    strictly = partial(reads, reading="strict") if reading == "chat" else None
    return {"reads": partial(reads, reading=reading), "strictly": strictly}
