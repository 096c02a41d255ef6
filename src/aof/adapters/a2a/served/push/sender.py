"""Tells addresses of peers what happens to their tasks: follows the log, sends, and tries again within bounds.

The log is what is to be sent, and each target keeps how far it has been told: a restart loses nothing, and a crash
between sending and noting it repeats a notification with the same ID. A target that cannot be told any more is dropped,
and the log says why. One process of a data directory sends. Must not know what a notification says.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import anyio
import anyio.to_thread
import httpx
import msgspec

from aof._support.printable import clean
from aof.adapters.a2a import states
from aof.adapters.a2a.served.push.hosts import PushHosts, host_of
from aof.adapters.a2a.served.push.notification import PushNotification, notifications
from aof.adapters.a2a.served.view import TaskView, seen
from aof.app.async_bridge import Follower
from aof.app.faults import record
from aof.core.errors.base import AofError, NotFound
from aof.ports.push import PushTarget, PushTargets, Targets

_ELSEWHERE: Final = 5.0  # seconds after which it is looked again whether another process still sends
_SECONDS: Final = 10.0  # for one request
_AT_ONCE: Final = 16  # tasks
_OK, _REDIRECT, _BAD = 200, 300, 400
_GONE: Final = 410
_ERROR: Final = 200  # characters

Tell = Callable[[str, str], None]


class Undelivered(Exception):
    """A notification was not taken. `final` says that none ever will be."""

    def __init__(self, why: str, *, final: bool = False) -> None:
        super().__init__(why)
        self.final = final


Post = Callable[[PushTarget, PushNotification], Awaitable[None]]  # raises Undelivered


class Retries(msgspec.Struct, frozen=True, kw_only=True):
    """How often a notification is tried, and the seconds between two tries: each time twice as many, within bounds."""

    tries: int = 24
    first: float = 1.0
    longest: float = 300.0

    def pause(self, failures: int) -> float:
        """The seconds after so many failures."""
        return min(self.first * float(1 << min(failures - 1, 20)), self.longest)


class PushSender:
    """Tells the targets of one data directory. `is_known` says whether a peer may still call us."""

    def __init__(
        self,
        follower: Follower,
        hosts: PushHosts,
        targets: PushTargets,
        *,
        is_known: Callable[[str], bool],
        tell: Tell,
        retries: Retries | None = None,
    ) -> None:
        self._follower = follower
        self._fabric = follower.fabric
        self._hosts = hosts
        self._targets = targets
        self._is_known = is_known
        self._tell = tell
        self._retries = retries or Retries()
        self._due: dict[str, float] = {}
        self._known: frozenset[str] = frozenset()
        self._busy: set[str] = set()
        self._again: dict[tuple[str, str], float] = {}
        self._wake = anyio.Event()

    def added(self, task_id: str) -> None:
        """A target of this task was set in this process."""
        self._known |= {task_id}
        self._look(task_id)

    async def run(self) -> None:
        """Until cancelled: send while no other process does."""
        while True:
            try:
                with self._targets.alone() as alone:
                    if alone:
                        async with _client() as http:
                            await self._send_all(partial(_post, http))
            except Exception as error:  # noqa: BLE001 - the server around it goes on
                record("push notifications", error)
            await anyio.sleep(_ELSEWHERE)

    async def _send_all(self, post: Post) -> None:
        limit = anyio.CapacityLimiter(_AT_ONCE)
        async with anyio.create_task_group() as group:
            group.start_soon(self._follow)
            while True:
                now = anyio.current_time()
                for task_id in [one for one, at in self._due.items() if at <= now and one not in self._busy]:
                    del self._due[task_id]
                    self._busy.add(task_id)
                    group.start_soon(self._serve, task_id, post, limit)
                waiting = [at for one, at in self._due.items() if one not in self._busy]
                with anyio.CancelScope(deadline=min(waiting, default=math.inf)):
                    await self._wake.wait()
                self._wake = anyio.Event()

    async def _follow(self) -> None:
        """Look at the tasks that events name; now and then at what another process may have set."""
        reached = 0
        while True:
            try:
                found = await anyio.to_thread.run_sync(self._targets.tasks)
                new, self._known = found - self._known if reached else found, found
                changed, reached = await anyio.to_thread.run_sync(self._changes, reached)
            except (AofError, OSError):
                new, changed = frozenset(), set()
            for task_id in (*new, *(changed & self._known)):
                self._look(task_id)
            await self._follower.after(reached)

    def _changes(self, reached: int) -> tuple[set[str], int]:
        """The tasks of events after that one, and the number of the last event; at first all targets are looked at."""
        changed, last = set[str](), reached
        if not reached or not self._known:
            return changed, self._fabric.store.head()
        for event in self._fabric.events(after=reached):
            changed.add(event.task_id)
            last = event.seq
        return changed, last

    def _look(self, task_id: str, after: float = 0.0) -> None:
        at = anyio.current_time() + after
        self._due[task_id] = min(at, self._due.get(task_id, at))
        self._wake.set()

    async def _serve(self, task_id: str, post: Post, limit: anyio.CapacityLimiter) -> None:
        try:
            async with limit:
                for target in await anyio.to_thread.run_sync(self._targets.of, task_id):
                    if (wait := await self._told(target, post)) is not None:
                        self._look(task_id, wait)
        except Exception as error:  # noqa: BLE001 - the edge of one task: the others are served
            record("push notifications", error)
            self._look(task_id, self._retries.longest)
        finally:
            self._busy.discard(task_id)
            self._wake.set()

    async def _told(self, target: PushTarget, post: Post) -> float | None:
        """Tell one target all that it does not know; the seconds after which to try again, if so."""
        if (wait := self._again.get((target.task_id, target.id), 0.0) - anyio.current_time()) > 0 and target.failures:
            return wait
        reached = target
        try:
            shown = await anyio.to_thread.run_sync(self._shown, target)
            for one in notifications(shown, target):
                await post(target, one)
                reached = msgspec.structs.replace(target, seq=one.seq)
        except Undelivered as error:
            return await self._failed(reached, error)
        self._again.pop((target.task_id, target.id), None)
        told = msgspec.structs.replace(target, seq=shown.seq, state=int(shown.state), failures=0, error=None)
        await self._kept(target, None if shown.state in states.FINAL else told)
        return None

    def _shown(self, target: PushTarget) -> TaskView:
        """The task that the target is told of; raises Undelivered where it may not be told, or there is none."""
        if (refusal := self._hosts.refusal(target.url)) is not None:
            raise Undelivered(refusal, final=True)
        if not self._is_known(target.actor):
            raise Undelivered(f"{target.actor} has no valid token any more", final=True)
        try:
            return seen(self._fabric, target.task_id)
        except AofError as error:
            raise Undelivered(error.message, final=isinstance(error, NotFound)) from None

    async def _failed(self, target: PushTarget, error: Undelivered) -> float | None:
        failures, why = target.failures + 1, clean(str(error))[:_ERROR]
        if error.final or failures >= self._retries.tries:
            await self._dropped(target, why if error.final else f"{failures} tries failed, the last with: {why}")
            return None
        wait = self._retries.pause(failures)
        self._again[target.task_id, target.id] = anyio.current_time() + wait
        await self._kept(target, msgspec.structs.replace(target, failures=failures, error=why))
        return wait

    async def _dropped(self, target: PushTarget, why: str) -> None:
        """The log says why before the target is gone."""
        host = host_of(target.url)
        payload = {"id": target.id, "host": host, "by": target.actor, "reason": why}
        await anyio.to_thread.run_sync(self._fabric.remark, "a2a.push.dropped", payload, target.task_id)
        self._tell("push", f"{target.task_id}: {host} is not notified any more: {why}")
        self._again.pop((target.task_id, target.id), None)
        await self._kept(target, None)

    async def _kept(self, target: PushTarget, new: PushTarget | None) -> None:
        """Replace the target, or remove it; one that the peer has deleted or set anew meanwhile stays so."""

        def edited(targets: Targets) -> Targets:
            kept = ((new if one.is_same(target) else one) for one in targets)
            return tuple(one for one in kept if one is not None)

        if new != target:
            await anyio.to_thread.run_sync(self._targets.change, target.task_id, edited)


def _client() -> httpx.AsyncClient:
    """A client that follows no redirect and uses no proxy of the environment."""
    return httpx.AsyncClient(timeout=_SECONDS, follow_redirects=False, trust_env=False)


async def _post(http: httpx.AsyncClient, target: PushTarget, notification: PushNotification) -> None:
    """One request. Only the status of the answer counts, and its body is not read."""
    try:
        with anyio.fail_after(_SECONDS):
            asked = http.stream("POST", target.url, content=notification.body, headers=notification.headers(target))
            async with asked as answer:
                status = answer.status_code
    except TimeoutError:
        raise Undelivered(f"no answer within {_SECONDS:g} s") from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise Undelivered(f"it cannot be reached: {error}") from None
    if _REDIRECT <= status < _BAD:
        raise Undelivered(f"it answers {status}, and redirects are not followed")
    if not _OK <= status < _REDIRECT:
        raise Undelivered(f"it answers {status}", final=status == _GONE)
