"""Counts what became of replies: read, cut, a placeholder, unread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
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
LEAST_READ = 0.5  # where a smaller share of a purpose is read, nothing is claimed from it


class ReadReply(NamedTuple):
    """``kind`` of :data:`KINDS`, '' where the backend failed or nobody reads it; what was ``read``,
    or ``why`` nothing; whether only as ``chat``."""

    kind: str
    read: Any = None
    why: str = ""
    chat: bool = False


def read_reply(reply: Reply, asked: About | None) -> ReadReply:
    """What became of a reply."""
    if why := no_answer(reply):
        return ReadReply("cut" if why.startswith(CUT) else "", None, why)
    if asked is None or asked.reads is None:
        return ReadReply("")
    found, why = _tried(asked.reads, reply)
    if why:
        return ReadReply("placeholder" if BLANK in why else "unread", None, why)
    chat = asked.strictly is not None and bool(_tried(asked.strictly, reply)[1])
    return ReadReply("read", found, "", chat)


def _tried(reads: Callable[[Reply], Any], reply: Reply) -> tuple[Any, str]:
    """What a reader makes of a reply, or why it makes nothing."""
    try:
        found = reads(reply)
    except Unreadable as error:
        return None, str(error) or NOTHING
    return found, NOTHING if found is None else ""


def count(
    found: dict[str, dict[str, int]], purpose: str, replies: Iterable[ReadReply],
    n_examples: int = 0,
) -> None:  # fmt: skip
    """Add these replies to what is counted by purpose, ``n_examples`` of which repeat one."""
    for one in replies:
        if one.kind:
            n = found.setdefault(purpose, dict.fromkeys(KINDS, 0))
            n["asked"] += 1
            n[one.kind] += 1
            n["chat"] += one.chat
    if n_examples and purpose in found:
        found[purpose]["example"] += n_examples


def add(found: Counts, more: Tally) -> Counts:
    """``found`` with ``more`` added to it."""
    for model, purpose, kinds in each_count(more):
        n = found.setdefault(model, {}).setdefault(purpose, dict.fromkeys(KINDS, 0))
        n |= {kind: n[kind] + kinds.get(kind, 0) for kind in KINDS}
    return found


def each_count(counts: Tally) -> Iterator[tuple[str, str, Mapping[str, int]]]:
    """(model, purpose, kind -> replies) of each."""
    for model, purposes in counts.items():
        yield from ((model, purpose, n) for purpose, n in purposes.items())


def too_few(counts: Tally) -> dict[tuple[str, str], str]:
    """(model, purpose) -> what is said where less than half of its replies could be read."""
    found = {}
    for model, purpose, n in each_count(counts):
        if n["read"] < LEAST_READ * n.get("asked", 0):
            of = f"{n['read']:,} of {n['asked']:,} replies to {purpose!r}"
            found[model, purpose] = f"only {of} {TOO_FEW}"
    return found


def why_few(counts: Tally, model: str, purposes: Iterable[str]) -> str:
    """Why nothing is claimed of ``model`` that rests on ``purposes``, '' without a reason. What it
    was not asked for, others answered in its place."""
    few = too_few(counts)
    for purpose in purposes if few else ():
        asked = [model] if purpose in counts.get(model, ()) else counts
        if whys := [few[who, purpose] for who in asked if (who, purpose) in few]:
            return whys[0]
    return ""


def totals(counts: Tally) -> dict[str, int]:
    """The sum over models and purposes, by kind."""
    return {kind: sum(n.get(kind, 0) for *_, n in each_count(counts)) for kind in KINDS}


def named(reply: Reply, reading: Reading) -> Any:
    """The diagnosis that an answer, a sample or a keyword names; :class:`Unreadable` without."""
    if (found := diagnosis(reply.text, reading)) is None:
        raise Unreadable(unnamed(reply.text))
    return found


def both(reads: Callable[..., Any], reading: Reading) -> dict[str, Any]:
    """``reads`` and ``strictly`` of an :class:`~trustlab.models.base.About`."""
    return {
        "reads": lambda reply: reads(reply, reading=reading),
        "strictly": (lambda reply: reads(reply, reading="strict")) if reading == "chat" else None,
    }
