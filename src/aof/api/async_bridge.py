"""Calls of the synchronous fabric from asynchronous servers, without holding a thread while a call waits.

A server has few threads. So `Follower` watches the log for all clients at once, and `perform_async` makes a call that
waits for work as many short ones. Must not know any surface.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TypeVar

import anyio
import anyio.to_thread
import msgspec

from aof.api.catalogue import BY_NAME
from aof.api.fabric import Fabric
from aof.errors import AofError, NothingReady
from aof.kernel.declarations import Params
from aof.kernel.dispatcher import PASSING, Passing, may_pass
from aof.kernel.faults import record
from aof.kernel.results import AskedQuestion
from aof.portable.operations import PortableFeed
from aof.runs.operations import beat_interval

_Answer = TypeVar("_Answer")
Gone = Callable[[], Awaitable[bool]]
PATIENCE = 1.0  # seconds that one look at the log waits
_AFTER_A_FAULT = 15.0  # seconds
_KEEPALIVE = 15.0  # seconds after which a silent stream says that it lives
_AT_ONCE = 4  # those who wait try again together, and leave threads to the others
_LONG_SEND = 10  # messages; more of them take a while, and leave threads to the others, too


class Follower:
    """Watches the log in one thread for all clients that wait, and only while one does. They share `portable`, too."""

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self.head = 0
        self.trying = anyio.CapacityLimiter(_AT_ONCE)
        self.sending = anyio.CapacityLimiter(_AT_ONCE)
        self.portable = PortableFeed(fabric.store.events)
        self._news = anyio.Event()
        self._waiting = 0
        self._wanted = anyio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Watch the log until the context ends."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._look)
            yield
            group.cancel_scope.cancel()

    async def _look(self) -> None:
        while True:
            await self._wanted.wait()
            try:
                wait = partial(self.fabric.store.wait, self.head, PATIENCE)
                if await anyio.to_thread.run_sync(wait, abandon_on_cancel=True):
                    self.head = await anyio.to_thread.run_sync(self.fabric.store.head)
                    self._news.set()
                    self._news = anyio.Event()
            except AofError:  # the caller gets the error; here it would be repeated endlessly
                await anyio.sleep(PATIENCE)
            except Exception as error:  # noqa: BLE001 - who waits here is everybody: look again, but say so
                record("following the log", error)
                await anyio.sleep(_AFTER_A_FAULT)

    async def after(self, seq: int) -> bool:
        """Wait for an event after this one; False when it is time to say that we live."""
        if self.head > seq:
            return True
        self._waiting += 1
        self._wanted.set()
        try:
            with anyio.move_on_after(_KEEPALIVE):
                await self._news.wait()
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._wanted = anyio.Event()
        return self.head > seq


async def perform_async(
    follower: Follower, params: Params, work: Callable[[Params], _Answer], gone: Gone | None = None
) -> _Answer:
    """Perform a call in a thread; a call that waits for work is tried again after each event.

    `gone` tells that the caller is no longer connected: then nothing is claimed for it.
    """
    wait = params.given().get("wait", 0)
    if isinstance(params, BY_NAME["ask"].parameters) and wait:
        return await _answered(follower, params, work, gone)
    if not isinstance(params, BY_NAME["claim"].parameters) or not wait:
        is_long = isinstance(params, BY_NAME["send"].parameters) and len(params.given()["messages"]) > _LONG_SEND
        return await anyio.to_thread.run_sync(work, params, limiter=follower.sending if is_long else None)
    deadline = anyio.current_time() + wait
    once = partial(_once, follower.fabric, work, msgspec.structs.replace(params, wait=msgspec.UNSET))
    while True:
        if gone is not None and await gone():
            raise NothingReady("nobody waits for the answer any more", "call again")
        seen, answer = await anyio.to_thread.run_sync(once, limiter=follower.trying)
        if not isinstance(answer, PASSING):
            return answer
        left = deadline - anyio.current_time()
        if left <= 0 or not may_pass(answer):
            raise answer
        with anyio.move_on_after(min(left, PATIENCE)):  # the wait of a retry ends without any event
            await follower.after(seen)


async def _answered(
    follower: Follower, params: Params, work: Callable[[Params], _Answer], gone: Gone | None
) -> _Answer:
    """Ask, then poll for the answer whenever something has happened: no thread waits. Each poll renews the lease.

    Who asked and has gone is not told: the question stands, and the answer can be asked for again.
    """
    deadline = anyio.current_time() + params.given()["wait"]
    params = msgspec.structs.replace(params, wait=msgspec.UNSET)
    while True:
        look = partial(_looked, follower.fabric, work, params)
        seen, answer, beat = await anyio.to_thread.run_sync(look, limiter=follower.trying)
        left, question = deadline - anyio.current_time(), _open_question(answer)
        if question is None or left <= 0 or (gone is not None and await gone()):
            return answer
        params = msgspec.structs.replace(params, text=msgspec.UNSET, choices=msgspec.UNSET, question=question.question)
        with anyio.move_on_after(min(left, beat)):
            await follower.after(seen)
        await anyio.sleep(min(PATIENCE, max(0.0, deadline - anyio.current_time())) if seen < follower.head else 0)


def _looked(fabric: Fabric, work: Callable[[Params], _Answer], params: Params) -> tuple[int, _Answer, float]:
    """One poll, with the number of the last event before it, and when the next heartbeat is due."""
    seen, answer = fabric.store.head(), work(params)
    question = _open_question(answer)
    return seen, answer, 0.0 if question is None else beat_interval(fabric.get(question.task_id))


def _open_question(answer: object) -> AskedQuestion | None:
    """The question that waits for its answer, if any; a surface may have put something beside the result."""
    result = answer[0] if isinstance(answer, tuple) else answer
    return result if isinstance(result, AskedQuestion) and not result.answered else None


def _once(fabric: Fabric, work: Callable[[Params], _Answer], params: Params) -> tuple[int, _Answer | Passing]:
    """One try, with the number of the last event before it."""
    seen = fabric.store.head()
    try:
        return seen, work(params)
    except PASSING as error:
        return seen, error
