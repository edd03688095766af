"""Learns how many calls a server takes at once."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable
from contextlib import suppress

LONGEST_WAIT_S = 120.0  # a server that asks for a longer pause is gone for this run
LONGEST_PAUSE_S = 30.0  # between two tries of a server that does not say how long


class Limiter:
    """Places for calls, at most ``most`` at once; to be used inside one event loop.

    - A refusal (HTTP 429 or 503) makes all wait: as long as the server says, else 0.5 s, doubled
      with each refusal in a row, and a random part more. One call then tries; each that passes
      opens a place more, up to half of those before, and one a round above that.
    - ``taken``: places in use. ``refused``, ``failed``: refusals, and calls given up, in a row.
    """

    def __init__(self, most: int) -> None:
        self.most, self.refused, self.failed = most, 0, 0
        self._places, self._enough, self.taken = 1.0 * most, 1.0 * most, 0
        self._cut = self._opens = -math.inf  # loop times: of the last refusal, and of the next try
        self._turn, self._change = asyncio.Lock(), asyncio.Condition()
        self._random = random.Random()

    async def take(self, stopped: Callable[[], object] = lambda: False) -> float | None:
        """Wait for a place; when it was taken (loop time), or ``None`` once ``stopped`` is true
        (:meth:`wake` has all look)."""
        clock = asyncio.get_running_loop().time
        async with self._turn:  # first come, first served: a refused call goes behind the others
            while not stopped():
                wait = self._opens - clock()
                if wait <= 0 and self.taken < int(self._places):
                    self.taken += 1
                    return clock()
                async with self._change:
                    with suppress(TimeoutError):
                        async with asyncio.timeout(wait if wait > 0 else None):
                            await self._change.wait()
            return None

    async def give(self, taken: float, *, passed: bool, pause: float | None = None) -> None:
        """Give the place back that was ``taken``. A ``pause`` (seconds that the server asked for,
        or 0): it refused; neither that nor ``passed``: the call failed, which teaches nothing."""
        self.taken -= 1
        if passed:
            self.refused = self.failed = 0
            more = 1.0 if self._places < self._enough else 1 / self._places
            self._places = min(self.most, self._places + more)
        elif pause is not None and taken >= self._cut:  # earlier ones are of the same crowd
            self._refuse(pause)
        await self.wake()

    async def wake(self) -> None:
        """Have those that wait for a place look again."""
        async with self._change:
            self._change.notify_all()

    def _refuse(self, pause: float) -> None:
        self._enough, self._places = max(1.0, self._places / 2), 1.0
        own = min(0.5 * 2**self.refused, LONGEST_PAUSE_S)
        wait = max(pause, own / 2) if pause and self.refused else pause or own
        self._cut = asyncio.get_running_loop().time()
        self._opens = self._cut + wait * self._random.uniform(1, 1.25)
        self.refused += 1
