"""The places that a server's refusals leave: halved, and opened again one by one."""

from __future__ import annotations

import asyncio

import pytest

from trustlab.models.server.limiter import Limiter


async def free(limiter: Limiter) -> int:
    """How many places can be taken at once; they are given back as failed, which teaches
    nothing."""
    taken = []
    for _ in range(limiter.most + 1):
        try:
            async with asyncio.timeout(0.01):
                taken.append(await limiter.take())
        except TimeoutError:
            break
    for place in taken:
        await limiter.give(place, passed=False)
    return len(taken)


async def passes(limiter: Limiter, n: int) -> None:
    for _ in range(n):
        await limiter.give(await limiter.take(), passed=True)


def test_a_refusal_halves_the_places_which_open_one_by_one_and_then_slowly() -> None:
    async def scene() -> None:
        limiter = Limiter(8)
        await limiter.give(await limiter.take(), passed=False, pause=0.001)
        await asyncio.sleep(0.01)
        counted = [await free(limiter)]
        for _ in range(5):
            await passes(limiter, 1)
            counted.append(await free(limiter))
        assert counted == [1, 2, 3, 4, 4, 4]
        await passes(limiter, 3)
        assert await free(limiter) == 5

    asyncio.run(scene())


def test_refusals_of_one_crowd_count_once() -> None:
    async def scene() -> None:
        limiter = Limiter(16)
        crowd = [await limiter.take() for _ in range(16)]
        for place in crowd:
            await limiter.give(place, passed=False, pause=0.001)
        assert limiter.refused == 1
        await asyncio.sleep(0.01)
        await passes(limiter, 7)
        assert await free(limiter) == 8

    asyncio.run(scene())


@pytest.mark.parametrize(("pause", "least"), [(0.3, 0.3), (0.0, 0.5)])
def test_all_wait_as_long_as_the_server_says_else_half_a_second(pause, least) -> None:
    async def scene() -> float:
        limiter, clock = Limiter(4), asyncio.get_running_loop().time
        await limiter.give(await limiter.take(), passed=False, pause=pause)
        began = clock()
        await limiter.take()
        return clock() - began

    assert least <= asyncio.run(scene()) < 1.25 * least + 0.2


def test_a_refused_call_goes_behind_those_that_wait_and_they_keep_their_order() -> None:
    async def scene() -> None:
        limiter, order = Limiter(1), []

        async def call(name: int, refused: bool = False) -> None:
            taken = await limiter.take()
            await asyncio.sleep(0)
            await limiter.give(taken, passed=not refused, pause=0.01 if refused else None)
            if refused:
                await call(name)
            else:
                order.append(name)

        await asyncio.gather(call(0, refused=True), *(call(k) for k in range(1, 20)))
        assert order == [*range(1, 20), 0]

    asyncio.run(scene())
