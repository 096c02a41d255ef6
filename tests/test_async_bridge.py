"""Many clients and few threads: the log is followed only while somebody listens, and long calls leave threads free."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

import anyio
import msgspec
import pytest

from aof.api.async_bridge import Follower, perform_async
from aof.api.catalogue import BY_NAME
from aof.kernel.declarations import Params
from aof.testing import memory_fabric

_BOUND = 20


def _send(messages: list[str]) -> Params:
    return msgspec.convert({"messages": messages}, BY_NAME["send"].parameters)


def test_the_log_is_looked_at_only_while_somebody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    fabric = memory_fabric()
    looks: list[int] = []

    def counted(wait: Callable[[int, float], bool], after: int, timeout: float) -> bool:
        looks.append(after)
        return wait(after, timeout)

    monkeypatch.setattr(fabric.store, "wait", partial(counted, fabric.store.wait))

    async def scene() -> None:
        follower = Follower(fabric)
        async with follower.running():
            fabric.create("Nobody listens")
            await anyio.wait_all_tasks_blocked()
            assert looks == []
            with anyio.fail_after(_BOUND):
                assert await follower.after(0)
            assert looks[0] == 0
            seen = fabric.store.head()
            fabric.create("Somebody listens")
            with anyio.fail_after(_BOUND):
                assert await follower.after(seen)

    anyio.run(scene)


def test_however_many_long_sends_there_are_other_calls_find_a_thread() -> None:
    released = threading.Event()

    def blocked(_params: Params) -> bool:
        return released.wait(_BOUND)

    async def scene() -> None:
        follower = Follower(memory_fabric())
        with anyio.fail_after(_BOUND):
            async with anyio.create_task_group() as group:
                for _ in range(100):
                    group.start_soon(perform_async, follower, _send(["talk"] * 1_000), blocked)
                await anyio.wait_all_tasks_blocked()
                try:
                    assert await perform_async(follower, _send(["talk"]), lambda _params: "answered") == "answered"
                finally:
                    released.set()

    anyio.run(scene)
