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
    - ``n_in_use``: places in use. ``refused``, ``failed``: refusals, and calls given up, in a row.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.refused = 0
        self.failed = 0
        self.n_in_use = 0
        self._n_places = float(most)
        # places up to which each call that passes opens one more
        self._n_safe = float(most)
        self._last_refusal = -math.inf  # loop time
        self._next_try = -math.inf  # loop time
        self._turn = asyncio.Lock()
        self._change = asyncio.Condition()
        self._random = random.Random()

    async def take(self, stopped: Callable[[], object] = lambda: False) -> float | None:
        """Wait for a place: the loop time at which it was taken, or ``None`` once ``stopped`` is
        true (:meth:`wake` has all look)."""
        clock = asyncio.get_running_loop().time
        # first come, first served: a refused call goes behind the others
        async with self._turn:
            while not stopped():
                wait = self._next_try - clock()
                if wait <= 0 and self.n_in_use < int(self._n_places):
                    self.n_in_use += 1
                    return clock()
                async with self._change:
                    with suppress(TimeoutError):
                        async with asyncio.timeout(wait if wait > 0 else None):
                            await self._change.wait()
            return None

    async def give(
        self, start: float, *, passed: bool, pause: float | None = None
    ) -> None:
        """Give back the place that was taken at ``start``. A ``pause`` (seconds that the server
        asked for, or 0): it refused; neither that nor ``passed``: the call failed, which teaches
        nothing."""
        self.n_in_use -= 1
        if passed:
            self.refused = 0
            self.failed = 0
            more = 1.0 if self._n_places < self._n_safe else 1 / self._n_places
            self._n_places = min(self.most, self._n_places + more)
        # earlier ones are of one crowd
        elif pause is not None and start >= self._last_refusal:
            self._refuse(pause)
        await self.wake()

    async def wake(self) -> None:
        """Have those that wait for a place look again."""
        async with self._change:
            self._change.notify_all()

    def _refuse(self, pause: float) -> None:
        """Halve the places, and have all wait: as long as the server says, or longer each time."""
        self._n_safe = max(1.0, self._n_places / 2)
        self._n_places = 1.0
        own_pause = min(0.5 * 2**self.refused, LONGEST_PAUSE_S)
        wait = pause or own_pause
        if pause and self.refused:
            wait = max(pause, own_pause / 2)
        now = asyncio.get_running_loop().time()
        self._last_refusal = now
        self._next_try = now + wait * self._random.uniform(1, 1.25)
        self.refused += 1
