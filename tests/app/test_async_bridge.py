"""Following the log for streams of events: only while somebody listens."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import anyio
import pytest

from aof.app.async_bridge import Follower
from aof.testing import memory_fabric

_BOUND = 20


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
