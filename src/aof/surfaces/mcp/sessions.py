"""One agent's session (who it speaks for, which runs it has claimed) and what all sessions of a server share.

While a session lasts, it renews the leases of the runs that it has claimed; over HTTP, only while its client is there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from threading import Lock
from time import monotonic
from typing import Any, Final, TypeVar

import anyio
import anyio.from_thread
import anyio.to_thread
import msgspec
from anyio.abc import TaskGroup
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from aof.api.async_bridge import Follower
from aof.api.call import Caller
from aof.api.catalogue import Operation, Params
from aof.api.fabric import Fabric
from aof.errors import ActorMismatch, AofError
from aof.kernel.model import millis, task_of_run
from aof.runs.authentication import lease_of
from aof.support.hashing import hexdigest
from aof.workflows.model import leases

_Result = TypeVar("_Result")
CallerOf = Callable[[Any], Caller]
SESSION_HEADER: Final = "mcp-session-id"
_STATE: Final = "aof.session"
_BEATS_PER_LEASE: Final = 3
_SHORTEST: Final = 0.05  # seconds between two heartbeats
_MOST_CLIENTS: Final = 1000  # that are remembered before silent ones are forgotten
_OLD: Final = 3600.0  # seconds: longer than any session stays idle
_log = logging.getLogger(__name__)


class Hub:
    """What the connections of one server share. `caller_of` tells who sent a request."""

    def __init__(
        self,
        follower: Follower,
        caller_of: CallerOf,
        tiers: tuple[str, ...],
        presence: Presence | None = None,
    ) -> None:
        self.follower = follower
        self.fabric = follower.fabric
        self.caller_of = caller_of
        self.tiers = tiers
        self.presence = presence or Presence()
        self.bus = InMemorySubscriptionBus()
        self.sessions: set[Session] = set()
        self.named: dict[str, Session] = {}  # those of them that have called a tool over HTTP, by their IDs
        self.stamp: dict[str, Any] = {}  # what says in answers of the newest revision who has answered
        self.stopping = False
        self.background: TaskGroup | None = None

    def tiers_of(self, caller: Caller) -> tuple[str, ...]:
        """The tiers whose tools are listed for a caller: those that its token names, else those of the server."""
        return caller.tools or self.tiers

    async def ask(self, function: Callable[..., _Result], *given: Any, **named: Any) -> _Result:
        """Call something synchronous in a thread."""
        return await anyio.to_thread.run_sync(partial(function, *given, **named), abandon_on_cancel=True)

    def start(self, work: Callable[..., Any], *given: Any) -> None:
        """Let something run beside the requests, for as long as the server does."""
        assert self.background is not None
        self.background.start_soon(work, *given)


class Session:
    """One agent's connection."""

    def __init__(
        self,
        hub: Hub,
        caller: Caller,
        run: str | None = None,
        name: str | None = None,
        by_client: Mapping[str, str] | None = None,
    ) -> None:
        self.caller = caller
        self.name = name  # its ID, where the transport gives it one
        self._by_client = by_client or {}
        self._hub = hub
        self._claimed: dict[str, str] = {}  # the task of each run: of a gated task several hops may be held
        self._kept: set[str] = set()  # the runs that outlive the session
        self._secrets: dict[str, str] = {}  # by run
        self._given = {task_of_run(run): run} if run else {}
        self._first: str | None = None  # the name that a session without one has used first; empty for the default
        self._naming = Lock()
        self._turns: set[str] = set()  # the agents whose turns have begun with this session
        # What its tasks call it: always the same, and no help to anybody who would take the session over.
        self._conversation = None if name is None else f"MCP-{hexdigest(name.encode())[:16]}"
        hub.sessions.add(self)

    def identify_client(self, client: str) -> None:
        """Take the actor that the settings give to this client, if they give one. The first request decides."""
        actor = next((actor for part, actor in self._by_client.items() if part in client.lower()), None)
        self._by_client = {}
        if actor is not None:
            self.caller = msgspec.structs.replace(self.caller, actor=actor, session=actor, default=False)

    def run_of(self, task_id: str) -> str | None:
        """The run that this session holds the task with; with several, the caller must say which."""
        claimed = self._runs_of(task_id)
        return claimed[0] if len(claimed) == 1 else None if claimed else self._given.get(task_id)

    def _runs_of(self, task_id: str) -> list[str]:
        return [run for run, task in list(self._claimed.items()) if task == task_id]

    def note(self, operation: Operation, result: Any, secrets: list[str]) -> None:
        """Remember what a call has claimed, and forget what has ended. Runs beside other calls, in a thread."""
        for secret in secrets:
            run = secret.partition("/")[0]
            self._secrets[run] = secret
            task_id = task_of_run(run)
            if operation.name != "claim" and task_id is not None:  # a handoff, for example, begins runs as well
                lease = lease_of(self._hub.fabric.get(task_id), run)
                if lease is not None:
                    self._hold(task_id, run, lease.expires_at, kept=lease.kept_by is not None)
        task_id = getattr(result, "task_id", None)
        if task_id is None:
            return
        status = getattr(result, "status", None)
        if operation.name == "claim":
            self._hold(task_id, result.run_id, result.expires_at, kept=bool(result.kept))
        elif status is not None and (held := self._runs_of(task_id)):
            # Of a gated task, one hop may be done while others go on.
            going_on = set()
            if status == "in-progress":
                going_on = {lease.run_id for lease in leases(self._hub.fabric.get(task_id))}
            for run in held:
                if run not in going_on:
                    self._drop(run)

    def _hold(self, task_id: str, run: str, expires_at: str, *, kept: bool) -> None:
        """Renew the lease of this run from now on."""
        if kept:
            self._kept.add(run)
        if run not in self._claimed:
            self._claimed[run] = task_id
            anyio.from_thread.run_sync(self._hub.start, self._renew, task_id, run, expires_at)

    def _drop(self, run: str) -> None:
        self._claimed.pop(run, None)
        self._secrets.pop(run, None)
        self._kept.discard(run)

    def speaker(self, operation: Operation, params: Params, caller: Caller) -> Caller:
        """Who a call of this session comes from. The turn of an agent begins with its first call."""
        if caller.default and operation.effect != "read" and self._hub.fabric.binds_callers:
            caller = self._named(operation, params, caller)
        if caller.actor not in self._turns:
            self._turns.add(caller.actor)
            if operation.name != "prime":  # which says so itself
                self._hub.fabric.as_actor(caller.actor).turn_began(caller.actor, "mcp")
        return msgspec.structs.replace(caller, kept=tuple(self._secrets.values()), conversation=self._conversation)

    def _named(self, operation: Operation, params: Params, caller: Caller) -> Caller:
        """The caller by the first name that the session has used, which is its name for good where callers are bound.

        A call without a name uses the default. The name is not proven, so it cannot be one that others trust: a
        reviewer's, a lead's or a maintainer's.
        """
        with self._naming:  # calls run beside each other
            first = self._first
            if first is None:
                given = (params.actor, getattr(params, operation.acts) if operation.acts else None)
                first = next((name for name in given if isinstance(name, str)), "")
            name = first or caller.actor
            if refusal := self._hub.fabric.services.authentication.needs_proof(name, given=bool(first)):
                raise refusal
            self._first = first
        return msgspec.structs.replace(caller, actor=name, session=name)

    def _as_holder(self, run: str) -> Fabric:
        secret, fabric = self._secrets.get(run), self._hub.fabric
        if secret is None:
            return fabric.as_actor(self._first or self.caller.actor)
        return fabric.as_actor(secret.split("/")[1]).as_run(secret)

    async def _renew(self, task_id: str, run: str, expires_at: str) -> None:
        """Renew a lease until the run is over. A client that is away may be so for as long as the lease lasts."""
        pause = self._until_next(expires_at)
        while True:
            await anyio.sleep(pause)
            if run not in self._claimed:
                return
            if self.name is not None and not self._hub.presence.of(self.name).is_there:
                continue
            try:
                renewed = await self._hub.ask(self._as_holder(run).heartbeat, task_id, run=run)
            except AofError as error:
                if error.kind != "unavailable":
                    self._drop(run)
                    return
            else:
                pause = self._until_next(renewed.expires_at)

    def _until_next(self, expires_at: str) -> float:
        """Seconds from one heartbeat to the next."""
        left = millis(expires_at) - self._hub.fabric.now()
        return max(left / 1000 / _BEATS_PER_LEASE, _SHORTEST)

    async def end(self) -> None:
        """End the session: runs with a report end as it says, and runs without one fail by name."""
        held, self._claimed = self._claimed.keys() - self._kept, {}
        self._hub.sessions.discard(self)
        if self.name is not None:
            self._hub.named.pop(self.name, None)
            self._hub.presence.forget(self.name)
        if self._hub.stopping:
            return  # the server goes, not the agent: it may come back and name its run
        for agent in () if self._kept else self._turns:  # the turn goes on with what is kept
            await self._hub.ask(self._hub.fabric.as_actor(agent).turn_ended, agent, "mcp")
        for run in held:
            try:
                await self._hub.ask(self._as_holder(run).session_end, run=run)
            except AofError as error:
                _log.debug("%s could not be ended: %s", run, error.message)


def session_of(hub: Hub, ctx: ServerRequestContext[Any, Any], alone: Session | None) -> tuple[Caller, Session | None]:
    """Who sent a request, and the session that it belongs to.

    On stdio the process is the session. Over HTTP it is the handshake's; the newest revision has none there, so its
    callers name their runs.
    """
    if alone is not None:
        client = ctx.session.client_params
        alone.identify_client(client.client_info.name if client is not None else "")
        return alone.caller, alone
    caller = hub.caller_of(ctx.request)
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        return caller, None
    connection = ctx.session._connection  # noqa: SLF001 - the only way to what lives as long as the connection
    session = connection.state.get(_STATE)
    if session is None:
        name = ctx.request.headers.get(SESSION_HEADER) if ctx.request is not None else None
        session = connection.state[_STATE] = Session(hub, caller, name=name)
        if name is not None:
            hub.named[name] = session
        connection.exit_stack.push_async_callback(session.end)
    if (session.caller.actor, session.caller.role) != (caller.actor, caller.role):
        raise ActorMismatch(f"this session is {session.caller.actor}'s", "open a session of your own")
    return caller, session


class Client:
    """Whether the client of one session over HTTP is still there: by its open requests and streams."""

    def __init__(self) -> None:
        self._requests = 0
        self._listened = False
        self._last = monotonic()

    @property
    def is_there(self) -> bool:
        """Whether somebody would notice if the session ended."""
        return self._requests > 0 or not self._listened

    @contextmanager
    def calling(self, *, listens: bool) -> Iterator[None]:
        """Count a request for as long as it is answered."""
        self._requests += 1
        self._listened |= listens
        try:
            yield
        finally:
            self._requests -= 1
            self._last = monotonic()

    @property
    def is_old(self) -> bool:
        """Whether it has been silent for longer than any session lasts."""
        return self._requests == 0 and monotonic() - self._last > _OLD


class Presence:
    """The clients of all sessions."""

    def __init__(self) -> None:
        self._clients: dict[str, Client] = {}

    def of(self, session: str) -> Client:
        """A session's client."""
        if session not in self._clients:
            if len(self._clients) >= _MOST_CLIENTS:
                self._clients = {name: client for name, client in self._clients.items() if not client.is_old}
            self._clients[session] = Client()
        return self._clients[session]

    def forget(self, session: str) -> None:
        """Forget a session that is over, or that never was."""
        self._clients.pop(session, None)
