"""How many calls a server takes at once, and how often: learned from what it refuses."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable
from contextlib import suppress

LONGEST_WAIT_S = 120.0  # a server that asks for a longer pause is gone for this run
LONGEST_PAUSE_S = 30.0  # between two tries of a server that does not say how long
IDLE_S, SLOWEST = 1.0, 0.2
"""Seconds without a call that are no part of a rate, and the lowest rate, in calls a second."""
FEW = 5  # calls passed before the first refusals that are too few to tell a rate from


class Limiter:
    """Places for calls, at most ``most`` at once; to be used inside one event loop.

    - A refusal (HTTP 429 or 503) makes all wait: as long as the server says, else 0.5 s, doubled
      with each refusal in a row, and a random part more. One call then tries; each that passes
      opens a place more, up to half of those before, and one a round above that.
    - The rate at which calls passed before a refusal becomes the pace at which they begin: 10 %
      less after each further refusal, and 2 % of it more each second without one.
    - ``refused``: refusals in a row; ``failed``: calls given up in a row; 0 once a call passes.
    """

    def __init__(self, most: int) -> None:
        self.most, self.refused, self.failed = most, 0, 0
        self._places, self._enough, self._taken = 1.0 * most, 1.0 * most, 0
        self._rate = self._steady = math.inf  # calls a second
        self._searching, self._least = False, 0.0
        self._cut = self._opens = self._next = -math.inf  # loop times
        self._since, self._last = -math.inf, -math.inf  # counted since; last given back
        self._passed = 0
        self._turn, self._change = asyncio.Lock(), asyncio.Condition()
        self._random = random.Random()

    @property
    def idle(self) -> bool:
        """Whether no place is taken."""
        return not self._taken

    async def take(self, stopped: Callable[[], object] = lambda: False) -> float | None:
        """Wait for a place; the loop's time, to be given back with it. ``None`` once ``stopped()``
        (:meth:`wake` has all look)."""
        clock = asyncio.get_running_loop().time
        async with self._turn:  # first come, first served: a refused call goes behind the others
            while (wait := max(self._opens, self._next) - clock()) > 0 or self._taken >= int(
                self._places
            ):
                if stopped():
                    break
                async with self._change:
                    with suppress(TimeoutError):
                        async with asyncio.timeout(wait if wait > 0 else None):
                            await self._change.wait()
            if stopped():
                return None
            now = clock()
            if not self._taken and now - max(self._last, self._opens) > IDLE_S:
                self._since, self._passed = now, 0  # time without work tells nothing
            self._taken += 1
            self._next = now + 1 / self._rate
            return now

    async def give(self, taken: float, *, passed: bool, pause: float | None = None) -> None:
        """Give the place back that was ``taken``. A ``pause`` (seconds that the server asked for,
        or 0): it refused; neither that nor ``passed``: the call failed, which teaches nothing."""
        self._taken -= 1
        now = self._last = asyncio.get_running_loop().time()
        if passed:
            self._pass()
        elif pause is not None and taken >= self._cut:  # earlier ones are of the same crowd
            self._refuse(now, pause)
        await self.wake()

    async def wake(self) -> None:
        """Have those that wait for a place look again."""
        async with self._change:
            self._change.notify_all()

    def _pass(self) -> None:
        self.refused = self.failed = 0
        self._passed += 1
        more = 1.0 if self._places < self._enough else 1 / self._places
        self._places = min(self.most, self._places + more)
        if self._searching:
            self._rate *= 1.1
        elif self._rate < math.inf:
            self._rate += 0.02 * self._steady / self._rate

    def _refuse(self, now: float, pause: float) -> None:
        self._enough, self._places = max(1.0, self._places / 2), 1.0
        if self._rate < math.inf:
            slower = self._rate * (0.85 if self._searching else 0.9)
            self._rate = max(self._least, slower)
            self._searching = self._searching and not self._passed
        elif self._passed and self._cut > -math.inf:
            self._rate = max(self._passed / max(now - self._since, 0.01), SLOWEST)
            self._least, self._searching = self._rate / 2, self._passed < FEW
        self._steady, self._passed = self._rate, 0
        own = min(0.5 * 2**self.refused, LONGEST_PAUSE_S)
        wait = max(pause, own / 2) if pause and self.refused else pause or own
        self._cut = self._since = now
        self._opens = now + wait * self._random.uniform(1, 1.25)
        self.refused += 1
