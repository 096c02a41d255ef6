"""Push notifications to peers.

Their settings, the hosts they may go to, what is sent, and the sender that tries again within bounds.
"""

from __future__ import annotations

import ipaddress
import json
import math
import re
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Final, Literal

import anyio
import anyio.to_thread
import httpx
import msgspec
from a2a.compat.v0_3 import conversions
from a2a.types import AuthenticationInfo, TaskPushNotificationConfig
from a2a.utils.errors import InvalidParamsError, PushNotificationNotSupportedError, UnsupportedOperationError
from google.protobuf.json_format import MessageToJson

from aof.api.async_bridge import Follower
from aof.api.call import Caller
from aof.api.fabric import Fabric
from aof.errors import AofError, NotFound, SettingsUnusable
from aof.kernel.faults import record
from aof.kernel.model import iso
from aof.kernel.ports import PushTarget, PushTargets, Targets
from aof.support.printable import clean
from aof.surfaces.a2a import content
from aof.surfaces.a2a.task_view import EVENT_ID, TaskView, seen, updates

_LONGEST: Final = 2_000  # characters of an address
_ENTRY: Final = re.compile(r"(?P<host>\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?")
_USUAL: Final = {"https": 443, "http": 80}
_HINT: Final = "the operator lists hosts as pushHosts under [a2a] in aof.toml"


class PushHosts:
    """The hosts that peers may have notified; without any, push notifications are off."""

    def __init__(self, listed: Iterable[str]) -> None:
        self._listed = tuple(_entry(one) for one in listed)

    def __bool__(self) -> bool:
        return bool(self._listed)

    def refusal(self, url: str) -> str | None:
        """Why nothing is sent to this address; None when it may be."""
        import httpx

        try:
            parsed = httpx.URL(url)
        except (httpx.InvalidURL, ValueError, TypeError):
            return "the address is no URL"
        if len(url) > _LONGEST or not url.isascii() or not url.isprintable() or parsed.userinfo or parsed.fragment:
            return f"the address has more than {_LONGEST} characters, unusual ones, a password or a fragment"
        if parsed.scheme not in _USUAL or not parsed.host:
            return "the address must begin with https://"
        name, port = host_of(url), parsed.port or _USUAL[parsed.scheme]
        if not any(host == name and (only is None or only == port) for host, only in self._listed):
            return f"push notifications to {name[:80]} are not allowed; {_HINT}"
        if parsed.scheme == "http" and not _is_here(name):
            return "the address must begin with https://; plain http is for this machine only"
        return None


def host_of(url: str) -> str:
    """The part of an address that may be told to people: its path may be a secret."""
    import httpx

    try:
        return httpx.URL(url).raw_host.decode("ascii")
    except (httpx.InvalidURL, ValueError):
        return "?"


def _entry(text: str) -> tuple[str, int | None]:
    found = _ENTRY.fullmatch(text.lower())
    if found is None:
        raise SettingsUnusable(
            f"aof.toml cannot be used: {text[:80]!r} in pushHosts of [a2a] is no host",
            'list names or addresses, perhaps with a port: pushHosts = ["hooks.example.org", "127.0.0.1:9000"]',
        )
    port = found["port"]
    return found["host"].strip("[]"), int(port) if port else None


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


Version = Literal["1.0", "0.3"]
_OFF: Final = "push notifications are off here; the operator lists hosts as pushHosts under [a2a] in aof.toml"
_PER_TASK, _TASKS = 10, 10_000
_NAME, _SECRET = 256, 4_096  # characters
_READERS: Final = "read"  # the scope of a token that may not have anything sent


class PushConfigs:
    """The configurations of one data directory."""

    def __init__(self, fabric: Fabric, hosts: PushHosts, targets: PushTargets) -> None:
        self._fabric = fabric
        self._hosts = hosts
        self._targets = targets

    def check(self, config: TaskPushNotificationConfig, caller: Caller) -> None:
        """Refuse what cannot be kept; raises an error of the protocol."""
        self._check_on(caller)
        if (refusal := self._hosts.refusal(config.url)) is not None:
            raise InvalidParamsError(refusal)
        if len(config.id) > _NAME or not config.id.isprintable():
            raise InvalidParamsError(f"the ID of a configuration has up to {_NAME} printable characters")
        login = config.authentication
        for name, text in (("token", config.token), ("scheme", login.scheme), ("credentials", login.credentials)):
            if len(text) > _SECRET or not text.isascii() or not text.isprintable():
                raise InvalidParamsError(f"{name} must be printable ASCII of up to {_SECRET} characters")
        if " " in login.scheme or bool(login.scheme) != bool(login.credentials):
            raise InvalidParamsError("authentication needs a scheme of one word and credentials, or neither")

    def create(
        self, config: TaskPushNotificationConfig, shown: TaskView, caller: Caller, version: Version
    ) -> TaskPushNotificationConfig:
        """Keep a configuration that was checked. It is told what comes after this view of the task."""
        task_id = shown.task.id
        clock = self._fabric.services.environment.clock
        target = PushTarget(
            task_id=task_id,
            id=config.id or task_id,
            actor=caller.actor,
            url=config.url,
            token=config.token,
            scheme=config.authentication.scheme,
            credentials=config.authentication.credentials,
            version=version,
            made_at=iso(clock.now()),
            seq=shown.seq,
            state=int(shown.state),
        )
        known = self._targets.tasks()
        if task_id not in known and len(known) >= _TASKS:
            raise UnsupportedOperationError(f"{_TASKS:,} tasks have push notifications already; follow this one")

        def replaced(targets: Targets) -> Targets:
            others = tuple(one for one in targets if one.id != target.id)
            if len(others) >= _PER_TASK:
                raise UnsupportedOperationError(f"a task has at most {_PER_TASK} push notification configurations")
            return (*others, target)

        self._targets.change(task_id, replaced)
        self._fabric.remark("a2a.push.set", {"id": target.id, "host": host_of(target.url), "by": caller.actor}, task_id)
        return _config(target)

    def of(self, task_id: str, caller: Caller) -> list[TaskPushNotificationConfig]:
        """The configurations of a task that is the caller's own."""
        self._check_on(caller)
        return [_config(one) for one in self._targets.of(task_id)]

    def delete(self, task_id: str, config_id: str, caller: Caller) -> None:
        """Delete one; one that is gone already stays so."""
        self._check_on(caller)
        self._targets.change(task_id, lambda targets: tuple(one for one in targets if one.id != config_id))

    def _check_on(self, caller: Caller) -> None:
        if not self._hosts:
            raise PushNotificationNotSupportedError(_OFF)
        if caller.scope == _READERS:
            raise UnsupportedOperationError(
                "push notifications need a token with the scope work: "
                f"aof admin token create {caller.actor} --scope work"
            )


def _config(target: PushTarget) -> TaskPushNotificationConfig:
    config = TaskPushNotificationConfig(id=target.id, task_id=target.task_id, url=target.url, token=target.token)
    if target.scheme:
        config.authentication.CopyFrom(AuthenticationInfo(scheme=target.scheme, credentials=target.credentials))
    return config


ID_HEADER = "X-A2A-Event-Id"
TOKEN_HEADER = "X-A2A-Notification-Token"  # noqa: S105 - the header's name


class PushNotification(msgspec.Struct, frozen=True):
    """One request. With it, everything up to the event `seq` has been told."""

    body: bytes
    event_id: str
    seq: int

    def headers(self, target: PushTarget) -> dict[str, str]:
        """Its headers, with what the peer wants to know us by."""
        headers = {"Content-Type": "application/json", ID_HEADER: self.event_id}
        if target.token:
            headers[TOKEN_HEADER] = target.token
        if target.scheme:
            headers["Authorization"] = f"{target.scheme} {target.credentials}"
        return headers


def notifications(shown: TaskView, target: PushTarget) -> list[PushNotification]:
    """What the target has not been told of the task, in order."""
    pending = updates(shown, target.seq, target.state)
    if target.version == "1.0" or not pending:
        return [
            PushNotification(MessageToJson(one.response, indent=None).encode(), one.event_id, one.seq)
            for one in pending
        ]
    last = pending[-1]
    task = conversions.to_compat_task(shown.task).model_dump(mode="json", by_alias=True, exclude_none=True)
    task["metadata"] = (task.get("metadata") or {}) | {EVENT_ID: last.event_id}
    return [PushNotification(json.dumps(task).encode(), last.event_id, shown.seq)]


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
        await self._kept(target, None if shown.state in content.FINAL else told)
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
