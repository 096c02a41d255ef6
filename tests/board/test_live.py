"""What keeps pages up to date: every change is told once, in order, also to a page that was cut off."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anyio
import msgspec

from aof.api.async_bridge import Follower
from aof.api.fabric import Fabric
from aof.surfaces.board.app import changes

BOUND = 20


def _with(fabric: Fabric, scene: Callable[[Follower], Awaitable[None]]) -> None:
    async def run() -> None:
        follower = Follower(fabric)
        with anyio.fail_after(BOUND):
            async with follower.running():
                await scene(follower)

    anyio.run(run)


async def _next(stream: AsyncIterator[bytes]) -> dict[str, Any]:
    """The next change that a page is told of."""
    async for frame in stream:
        if b"event: change" in frame:
            found: dict[str, Any] = msgspec.json.decode(frame.partition(b"data: ")[2])
            assert frame.startswith(b"id: %d\n" % found["head"])
            return found
    raise AssertionError


def test_a_page_is_told_which_tasks_changed(fabric: Fabric) -> None:
    fabric.create("Old")

    async def scene(follower: Follower) -> None:
        stream = changes(follower, fabric.store.head())
        await anext(stream)
        one = fabric.create("New").task_id
        told = await _next(stream)
        while told["head"] < fabric.store.head():
            told = await _next(stream)
        assert told == {"head": fabric.store.head(), "tasks": [one]}

    _with(fabric, scene)


def test_a_page_that_was_cut_off_is_told_of_all_that_it_missed(fabric: Fabric) -> None:
    seen = fabric.store.head()
    ids = [fabric.create(f"Task {number}").task_id for number in range(3)]

    async def scene(follower: Follower) -> None:
        assert await _next(changes(follower, seen)) == {"head": fabric.store.head(), "tasks": ids}

    _with(fabric, scene)


def test_a_page_that_missed_very_much_looks_at_everything(fabric: Fabric) -> None:
    task_id = fabric.create("Busy").task_id
    run = fabric.claim(task_id, agent="ada").run_id
    for number in range(510):
        fabric.progress(task_id, run=run, text=f"step {number}")

    async def scene(follower: Follower) -> None:
        assert await _next(changes(follower, 0)) == {"head": fabric.store.head(), "tasks": None}

    _with(fabric, scene)


def test_a_page_of_another_log_looks_at_everything(fabric: Fabric) -> None:
    fabric.create("One")

    async def scene(follower: Follower) -> None:
        assert await _next(changes(follower, 10_000)) == {"head": fabric.store.head(), "tasks": None}

    _with(fabric, scene)
