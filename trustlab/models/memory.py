"""Work in batches that shrink when memory runs out, so that a batch too large costs a repeat and no reply."""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from trustlab.models.decoding import Ids, batches

Owner = tuple[int, int]
"""(request, reply index)."""
T = TypeVar("T")


@dataclass(frozen=True)
class Share:
    """A prompt and replies that grow from it, at most ``extra`` tokens long; replies that are one throughout share a row."""

    prompt: Ids
    rows: tuple[tuple[Owner, ...], ...]
    extra: int

    @property
    def n_tokens(self) -> int:
        """Tokens that one row may come to hold."""
        return len(self.prompt) + self.extra

    def within(self, limit: int) -> list[Share]:
        """Itself in parts of at most ``limit`` tokens, or of one row where a row is longer."""
        size = max(1, limit // self.n_tokens)
        return [replace(self, rows=self.rows[start : start + size]) for start in range(0, len(self.rows), size)]


class Batched(Protocol):
    """Who works in batches: the most tokens of a batch, and counts; ``usage["halvings"]`` appears with the first."""

    batch_tokens: int
    usage: dict[str, float]


def is_out_of_memory(error: BaseException) -> bool:
    """Whether Python, NumPy or torch, on any device, could not have the memory it asked for."""
    if isinstance(error, MemoryError):
        return True
    said = str(error).lower()
    return isinstance(error, RuntimeError) and ("out of memory" in said or "can't allocate memory" in said)


def in_batches(
    shares: Iterable[Share], owner: Batched, work: Callable[[list[Share]], T], *, equal: bool = False
) -> Iterator[tuple[list[Share], T]]:
    """Every batch of ``shares`` with what ``work`` makes of it; ``equal``: only prompts of one length share a batch.

    When memory runs out, ``owner.batch_tokens`` falls to half of what the batch held, with a warning, and what is not
    done is cut anew. MemoryError: not even one row fits.
    """
    waiting = list(shares)
    while waiting:
        if owner.usage.get("halvings"):  # before that, a prompt's replies stay together however many they are
            waiting = [part for share in waiting for part in share.within(owner.batch_tokens)]
        lengths, extra, rows = [len(s.prompt) for s in waiting], [s.extra for s in waiting], [len(s.rows) for s in waiting]
        done: set[int] = set()
        for batch in batches(lengths, extra, rows, owner.batch_tokens, equal=equal):
            here = [waiting[j] for j in batch]
            made = _attempt(work, here)
            if made is None:
                _halve(owner, here)
                break
            done.update(batch)
            yield here, made[0]
        waiting = [share for j, share in enumerate(waiting) if j not in done]


def _attempt(work: Callable[[list[Share]], T], here: list[Share]) -> tuple[T] | None:
    """The result; ``None`` when memory ran out. A function of its own, so that the error's frames let go what they held."""
    try:
        return (work(here),)
    except Exception as error:
        if not is_out_of_memory(error):
            raise
    return None


def _halve(owner: Batched, here: list[Share]) -> None:
    n_rows = sum(len(share.rows) for share in here)
    gc.collect()
    torch: Any = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()
    if n_rows == 1:
        what = f"one prompt of {len(here[0].prompt)} tokens with one reply of up to {here[0].extra}"
        raise MemoryError(f"memory does not suffice for {what}; shorten it, or choose a smaller model or dtype")
    held = n_rows * (max(len(share.prompt) for share in here) + max(share.extra for share in here))
    owner.batch_tokens = max(1, min(owner.batch_tokens, held) // 2)
    owner.usage["halvings"] = owner.usage.get("halvings", 0) + 1
    warnings.warn(f"memory ran out; a batch now holds at most {owner.batch_tokens} tokens", stacklevel=4)
