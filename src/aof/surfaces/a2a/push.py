"""Push notifications to peers: what they have configured, the hosts that may be notified, and the sender.

A notification that is not taken is sent again, less and less often.
"""

from __future__ import annotations

import ipaddress
import json
import math
import re
from collections.abc import Callable, Iterable
from typing import Final

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
from aof.surfaces.a2a.content import Revision
from aof.surfaces.a2a.peer_tasks import EVENT_ID, TaskView, updates, view_task

ID_HEADER: Final = "X-A2A-Event-Id"
TOKEN_HEADER: Final = "X-A2A-Notification-Token"  # noqa: S105 - the header's name
_LONGEST: Final = 2_000  # characters of an address
_HOST: Final = re.compile(r"(?P<host>\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?")
_PORTS: Final = {"https": 443, "http": 80}
_HINT: Final = "the operator lists hosts as pushHosts under [a2a] in aof.toml"
_PER_TASK, _TASKS = 10, 10_000  # configurations
_NAME, _SECRET = 256, 4_096  # characters
_CHECK_EVERY: Final = 5.0  # seconds after which it is checked again whether another process still sends
_SECONDS: Final = 10.0  # for one request
_AT_ONCE: Final = 16  # tasks
_OK, _REDIRECT, _BAD = 200, 300, 400
_GONE: Final = 410
_ERROR: Final = 200  # characters


class PushHosts:
    """The hosts that peers may have notified; without any, push notifications are off."""

    def __init__(self, listed: Iterable[str]) -> None:
        self._listed = tuple(_host_and_port(text) for text in listed)

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
        if parsed.scheme not in _PORTS or not parsed.host:
            return "the address must begin with https://"
        name, port = host_of(url), parsed.port or _PORTS[parsed.scheme]
        if not any(host == name and (only is None or only == port) for host, only in self._listed):
            return f"push notifications to {name[:80]} are not allowed; {_HINT}"
        if parsed.scheme == "http" and not _is_loopback(name):
            return "the address must begin with https://; plain http is for this machine only"
        return None


def host_of(url: str) -> str:
    """The host of an address, which people may see: the path may be a secret."""
    import httpx

    try:
        return httpx.URL(url).raw_host.decode("ascii")
    except (httpx.InvalidURL, ValueError):
        return "?"


def _host_and_port(text: str) -> tuple[str, int | None]:
    found = _HOST.fullmatch(text.lower())
    if found is None:
        raise SettingsUnusable(
            f"aof.toml cannot be used: {text[:80]!r} in pushHosts of [a2a] is no host",
            'list names or addresses, perhaps with a port: pushHosts = ["hooks.example.org", "127.0.0.1:9000"]',
        )
    port = found["port"]
    return found["host"].strip("[]"), int(port) if port else None


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class PushConfigs:
    """The push notifications that peers have configured in one data directory."""

    def __init__(self, fabric: Fabric, hosts: PushHosts, targets: PushTargets) -> None:
        self._fabric = fabric
        self._hosts = hosts
        self._targets = targets

    def check(self, config: TaskPushNotificationConfig, caller: Caller) -> None:
        """Refuse what cannot be kept; raises an error of the protocol."""
        self._check_allowed(caller)
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
        self, config: TaskPushNotificationConfig, view: TaskView, caller: Caller, version: Revision
    ) -> TaskPushNotificationConfig:
        """Keep a configuration that was checked. It gets what comes after this view of the task."""
        task_id = view.task.id
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
            seq=view.seq,
            state=int(view.state),
        )
        known = self._targets.tasks()
        if task_id not in known and len(known) >= _TASKS:
            raise UnsupportedOperationError(f"{_TASKS:,} tasks have push notifications already; follow this one")

        def add(targets: Targets) -> Targets:
            others = tuple(one for one in targets if one.id != target.id)
            if len(others) >= _PER_TASK:
                raise UnsupportedOperationError(f"a task has at most {_PER_TASK} push notification configurations")
            return (*others, target)

        self._targets.change(task_id, add)
        self._fabric.remark("a2a.push.set", {"id": target.id, "host": host_of(target.url), "by": caller.actor}, task_id)
        return _config(target)

    def of(self, task_id: str, caller: Caller) -> list[TaskPushNotificationConfig]:
        """The configurations of a task that is the caller's own."""
        self._check_allowed(caller)
        return [_config(one) for one in self._targets.of(task_id)]

    def delete(self, task_id: str, config_id: str, caller: Caller) -> None:
        """Delete one; one that is gone already stays so."""
        self._check_allowed(caller)
        self._targets.change(task_id, lambda targets: tuple(one for one in targets if one.id != config_id))

    def _check_allowed(self, caller: Caller) -> None:
        if not self._hosts:
            raise PushNotificationNotSupportedError(f"push notifications are off here; {_HINT}")
        if caller.scope == "read":
            raise UnsupportedOperationError(
                "push notifications need a token with the scope work: "
                f"aof admin token create {caller.actor} --scope work"
            )


def _config(target: PushTarget) -> TaskPushNotificationConfig:
    config = TaskPushNotificationConfig(id=target.id, task_id=target.task_id, url=target.url, token=target.token)
    if target.scheme:
        config.authentication.CopyFrom(AuthenticationInfo(scheme=target.scheme, credentials=target.credentials))
    return config


class _Notification(msgspec.Struct, frozen=True):
    """The body of one request, its ID, and the number of the event up to which the target then knows everything."""

    body: bytes
    event_id: str
    seq: int


def _notifications(view: TaskView, target: PushTarget) -> list[_Notification]:
    """What the target does not know of the task yet, in order; before revision 1.0, the task itself."""
    pending = updates(view, target.seq, target.state)
    if target.version == "1.0" or not pending:
        return [
            _Notification(MessageToJson(one.response, indent=None).encode(), one.event_id, one.seq) for one in pending
        ]
    event_id = pending[-1].event_id
    task = conversions.to_compat_task(view.task).model_dump(mode="json", by_alias=True, exclude_none=True)
    task["metadata"] = (task.get("metadata") or {}) | {EVENT_ID: event_id}
    return [_Notification(json.dumps(task).encode(), event_id, view.seq)]


class Undelivered(Exception):
    """A notification was not taken. `final` says that none ever will be."""

    def __init__(self, why: str, *, final: bool = False) -> None:
        super().__init__(why)
        self.final = final


class Retries(msgspec.Struct, frozen=True, kw_only=True):
    """How often a notification is tried, and the seconds between two tries: each time twice as many, within bounds."""

    tries: int = 24
    first: float = 1.0
    longest: float = 300.0

    def pause(self, failures: int) -> float:
        """The seconds after so many failures."""
        return min(self.first * float(1 << min(failures - 1, 20)), self.longest)


class PushSender:
    """Sends the push notifications of one data directory. `is_known` says whether a peer may still call us.

    `_due` are the tasks whose targets are to be served, and when; `_busy` those that are being served; `_retry_at` the
    earliest time of the next try for a target, by task and ID.
    """

    def __init__(
        self,
        follower: Follower,
        hosts: PushHosts,
        targets: PushTargets,
        *,
        is_known: Callable[[str], bool],
        tell: Callable[[str, str], None],
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
        self._retry_at: dict[tuple[str, str], float] = {}
        self._wake = anyio.Event()

    def added(self, task_id: str) -> None:
        """Serve a target of this task that was set in this process."""
        self._known |= {task_id}
        self._schedule(task_id)

    async def run(self) -> None:
        """Send until cancelled, while no other process does."""
        while True:
            try:
                with self._targets.alone() as alone:
                    if alone:
                        async with httpx.AsyncClient(timeout=_SECONDS, follow_redirects=False, trust_env=False) as http:
                            await self._send_all(http)
            except Exception as error:  # noqa: BLE001 - the server around it goes on
                record("push notifications", error)
            await anyio.sleep(_CHECK_EVERY)

    async def _send_all(self, http: httpx.AsyncClient) -> None:
        limit = anyio.CapacityLimiter(_AT_ONCE)
        async with anyio.create_task_group() as group:
            group.start_soon(self._follow)
            while True:
                now = anyio.current_time()
                for task_id in [one for one, at in self._due.items() if at <= now and one not in self._busy]:
                    del self._due[task_id]
                    self._busy.add(task_id)
                    group.start_soon(self._serve, task_id, http, limit)
                waiting = [at for one, at in self._due.items() if one not in self._busy]
                with anyio.CancelScope(deadline=min(waiting, default=math.inf)):
                    await self._wake.wait()
                self._wake = anyio.Event()

    async def _follow(self) -> None:
        """Schedule the tasks that events name, and those whose targets another process has set."""
        reached = 0
        while True:
            try:
                found = await anyio.to_thread.run_sync(self._targets.tasks)
                new, self._known = found - self._known if reached else found, found
                changed, reached = await anyio.to_thread.run_sync(self._changes, reached)
            except (AofError, OSError):
                new, changed = frozenset(), set()
            for task_id in (*new, *(changed & self._known)):
                self._schedule(task_id)
            await self._follower.after(reached)

    def _changes(self, reached: int) -> tuple[set[str], int]:
        """The tasks of the events after that one, and the number of the last event."""
        changed, last = set[str](), reached
        if not reached or not self._known:
            return changed, self._fabric.store.head()
        for event in self._fabric.events(after=reached):
            changed.add(event.task_id)
            last = event.seq
        return changed, last

    def _schedule(self, task_id: str, after: float = 0.0) -> None:
        at = anyio.current_time() + after
        self._due[task_id] = min(at, self._due.get(task_id, at))
        self._wake.set()

    async def _serve(self, task_id: str, http: httpx.AsyncClient, limit: anyio.CapacityLimiter) -> None:
        try:
            async with limit:
                for target in await anyio.to_thread.run_sync(self._targets.of, task_id):
                    if (wait := await self._notify(target, http)) is not None:
                        self._schedule(task_id, wait)
        except Exception as error:  # noqa: BLE001 - the edge of one task: the others are served
            record("push notifications", error)
            self._schedule(task_id, self._retries.longest)
        finally:
            self._busy.discard(task_id)
            self._wake.set()

    async def _notify(self, target: PushTarget, http: httpx.AsyncClient) -> float | None:
        """Send one target all that it does not know; the seconds after which to try again, if so."""
        key = target.task_id, target.id
        if (wait := self._retry_at.get(key, 0.0) - anyio.current_time()) > 0 and target.failures:
            return wait
        reached = target
        try:
            view = await anyio.to_thread.run_sync(self._view_for, target)
            for notification in _notifications(view, target):
                await _post(http, target, notification)
                reached = msgspec.structs.replace(target, seq=notification.seq)
        except Undelivered as error:
            return await self._failed(reached, error)
        self._retry_at.pop(key, None)
        served = msgspec.structs.replace(target, seq=view.seq, state=int(view.state), failures=0, error=None)
        await self._replace(target, None if view.state in content.FINAL else served)
        return None

    def _view_for(self, target: PushTarget) -> TaskView:
        """The task as the target may see it; raises Undelivered where it may not, or where there is no such task."""
        if (refusal := self._hosts.refusal(target.url)) is not None:
            raise Undelivered(refusal, final=True)
        if not self._is_known(target.actor):
            raise Undelivered(f"{target.actor} has no valid token any more", final=True)
        try:
            return view_task(self._fabric, target.task_id)
        except AofError as error:
            raise Undelivered(error.message, final=isinstance(error, NotFound)) from None

    async def _failed(self, target: PushTarget, error: Undelivered) -> float | None:
        """Note when to try again, or remove a target that was tried in vain; the log says why before it is gone."""
        failures, why = target.failures + 1, clean(str(error))[:_ERROR]
        if not error.final and failures < self._retries.tries:
            wait = self._retries.pause(failures)
            self._retry_at[target.task_id, target.id] = anyio.current_time() + wait
            await self._replace(target, msgspec.structs.replace(target, failures=failures, error=why))
            return wait
        host, why = host_of(target.url), why if error.final else f"{failures} tries failed, the last with: {why}"
        payload = {"id": target.id, "host": host, "by": target.actor, "reason": why}
        await anyio.to_thread.run_sync(self._fabric.remark, "a2a.push.dropped", payload, target.task_id)
        self._tell("push", f"{target.task_id}: {host} is not notified any more: {why}")
        self._retry_at.pop((target.task_id, target.id), None)
        await self._replace(target, None)
        return None

    async def _replace(self, target: PushTarget, new: PushTarget | None) -> None:
        """Replace the target, or remove it; one that the peer has deleted or set anew meanwhile stays so."""

        def edit(targets: Targets) -> Targets:
            edited = ((new if one.is_same(target) else one) for one in targets)
            return tuple(one for one in edited if one is not None)

        if new != target:
            await anyio.to_thread.run_sync(self._targets.change, target.task_id, edit)


async def _post(http: httpx.AsyncClient, target: PushTarget, notification: _Notification) -> None:
    """Send one request; raises Undelivered. Only the status of the answer counts, and its body is not read."""
    headers = {"Content-Type": "application/json", ID_HEADER: notification.event_id}
    if target.token:
        headers[TOKEN_HEADER] = target.token
    if target.scheme:
        headers["Authorization"] = f"{target.scheme} {target.credentials}"
    try:
        with anyio.fail_after(_SECONDS):
            async with http.stream("POST", target.url, content=notification.body, headers=headers) as answer:
                status = answer.status_code
    except TimeoutError:
        raise Undelivered(f"no answer within {_SECONDS:g} s") from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise Undelivered(f"it cannot be reached: {error}") from None
    if _REDIRECT <= status < _BAD:
        raise Undelivered(f"it answers {status}, and redirects are not followed")
    if not _OK <= status < _REDIRECT:
        raise Undelivered(f"it answers {status}", final=status == _GONE)
