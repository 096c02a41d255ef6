"""Interfaces to what lies outside the store: runners, notifiers, channels, tokens, and trusted commands.

The subjects use them; `service` and `store.files` implement them. Must not know how any of them is done.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol

import msgspec

PEER_URL = "AOF_PEER_URL"
PEER_TOKEN_NAME = "AOF_PEER_TOKEN_NAME"  # noqa: S105 - the variable with the name of the one that holds the token
PEER_PATIENCE = "AOF_PEER_PATIENCE"  # seconds


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a worker needs: whose run it is, its secret, the command as an argument list, and the brief.

    `nonce` proves that what the worker prints is meant as a message. It goes into the worker's environment only.
    Where `peer` is an address the peer does the work, and `token_env` names the variable with the token for it.
    `place` is what the files of the run go by: the task, or the hop that the run is about.
    """

    task_id: str
    hop: str | None = None
    place: str
    run_id: str
    epoch: int
    attempt: int
    agent: str
    command: tuple[str, ...]
    env: dict[str, str] = {}
    inherit_env: tuple[str, ...] | Literal["all"] = ()
    cwd: str | None = None
    brief: str = ""
    grace: float = 5.0
    secret: str = ""
    nonce: str = ""
    messages: str = "nonce"
    peer: str | None = None
    token_env: str | None = None

    def __repr__(self) -> str:
        return f"Work(run_id={self.run_id!r}, agent={self.agent!r})"


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How a worker ended: its exit code or the signal, why it was stopped if it was, and where its output lies."""

    work: Work
    exit_code: int | None = None
    signal: int | None = None
    stopped: str | None = None
    output: dict[str, Any] = {}

    @property
    def how(self) -> str:
        """How it ended, for people."""
        how = f"was ended by signal {self.signal}" if self.signal is not None else f"exited with code {self.exit_code}"
        return f"{how} ({self.stopped})" if self.stopped else how


class Listener(Protocol):
    """Receives what workers do."""

    def said(self, work: Work, text: str) -> None:
        """A worker has sent a protocol message."""
        ...

    def ended(self, ended: Ended) -> None:
        """A worker has ended, and nothing of it is left."""
        ...


class Orphans(Protocol):
    """Ends what is left of runs that nobody hosts."""

    def end(self, place: str, attempt: int, run_id: str) -> str | None:
        """End every process of the run; None when none is left, else why that is not so."""
        ...


class Runner(Orphans, Protocol):
    """Executes runs."""

    def reserve(self, place: str) -> str | None:
        """Keep every other worker from a place until one is started there; why it is not free, if so."""
        ...

    def give_back(self, place: str) -> None:
        """Let go of a place where no worker was started after all."""
        ...

    def start(self, work: Work) -> None:
        """Begin, in a place that is reserved or free; raises RunnerFailed when there is nothing to run."""
        ...

    def dropped(self, work: Work) -> tuple[str, ...]:
        """The names of variables that the worker does not get because its chart entry names none."""
        ...

    def stop(self, run_id: str, why: str, *, hard: bool = False) -> None:
        """Ask the worker to end, and make it when it does not; `hard` at once. The first reason counts."""
        ...

    def poll(self) -> float | None:
        """Do what is due, and tell in how many seconds something will be; None: nothing."""
        ...

    def orphaned(self, place: str, attempt: int) -> bool:
        """Whether the worker of a run was started on this machine by a host that has died."""
        ...


NotificationKind = Literal["status", "sla", "handoff", "mail", "question"]


class Notification(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A task has come to where somebody should look at it.

    `kind` says why: it came to a status, it stayed in one for too long, its agent has asked something (`reason` is
    the question), or nobody answered the handoff of it. Of mail
    that nobody answered, `task_id` is the ID of the message.
    `to` is who should hear of it, where that is one agent: of a handoff that was rejected, the orchestrator.
    """

    task_id: str
    title: str
    from_status: str
    status: str
    actor: str
    timestamp: str
    seq: int
    reason: str | None = None
    to: str | None = None
    handoff_id: str | None = None
    kind: NotificationKind = "status"
    priority: str = "normal"
    agent: str | None = None


class Notifier(Protocol):
    """Receives notifications."""

    def notify(self, notification: Notification) -> bool | None:
        """Pass it on. May raise, or answer False, where it did not get through."""
        ...


class ChannelFailed(Exception):
    """A channel did not take a message. Its text never holds an address or a secret."""


class Channel(Protocol):
    """A service that takes messages for people, such as a chat or a mail server."""

    def refused(self) -> str | None:
        """Why nothing may be sent there, if so; looked at anew."""
        ...

    def send(self, subject: str, text: str) -> None:
        """Send one message, within a bounded time. Raises ChannelFailed."""
        ...


class Delivery(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """How far a channel has come: everything up to `seq` was sent or is of no interest to it.

    `failures` counts those since the last success. `recent` has the moment at which each piece of news was sent.
    """

    seq: int
    sent: int = 0
    sent_at: str | None = None
    failures: int = 0
    failed_since: str | None = None
    error: str | None = None
    recent: dict[str, int] = {}


class Deliveries(Protocol):
    """Keeps how far each channel has come, and lets one process at a time send to it."""

    def alone(self, channel: str) -> AbstractContextManager[bool]:
        """Whether nobody else sends to the channel; then nobody else does until the block ends."""
        ...

    def load(self, channel: str) -> Delivery | None:
        """How far it has come; None when nothing is known."""
        ...

    def save(self, channel: str, delivery: Delivery) -> None:
        """Keep it."""
        ...


class PushTarget(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One address that is told what happens to one task.

    `actor` is the peer that asked for it, `version` the revision of the protocol that it speaks. Everything up to the
    event `seq` has been told, at last the state `state`. `failures` counts those since the last success.
    """

    task_id: str
    id: str
    actor: str
    url: str
    token: str = ""
    scheme: str = ""
    credentials: str = ""
    version: Literal["1.0", "0.3"] = "1.0"
    made_at: str
    seq: int
    state: int
    failures: int = 0
    error: str | None = None

    def __repr__(self) -> str:
        return f"PushTarget({self.task_id!r}, {self.id!r}, {self.actor!r})"

    def is_same(self, other: PushTarget) -> bool:
        """Whether both are the one that the peer has asked for, however far each has come."""
        return (self.id, self.made_at, self.url) == (other.id, other.made_at, other.url)


Targets = tuple[PushTarget, ...]


class PushTargets(Protocol):
    """Keeps the targets of a data directory, durably, and lets one process at a time send."""

    def alone(self) -> AbstractContextManager[bool]:
        """Whether nobody else sends; then nobody else does until the block ends."""
        ...

    def tasks(self) -> frozenset[str]:
        """The tasks that have a target."""
        ...

    def of(self, task_id: str) -> Targets:
        """The targets of a task."""
        ...

    def change(self, task_id: str, edit: Callable[[Targets], Targets]) -> Targets:
        """Replace the targets of a task by what `edit` makes of them, and return those."""
        ...


class Token(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One token: whose it is, what it allows, until when, and how it is recognised.

    `tools` are the tiers that MCP lists for it, such as `core,handoff`; None: those that the server lists.
    One without a scope is from before there were any: its role says what it allows.
    `use` is None for tokens that come with calls; the page for people has links that are used once (`link`) and
    sessions (`session`), which end with the token that they are `of`.
    """

    id: str
    actor: str
    role: str
    created_at: str
    digest: str
    scope: str | None = None
    expires_at: str | None = None
    tools: str | None = None
    use: str | None = None
    of: str | None = None


class Tokens(Protocol):
    """All tokens of a data directory."""

    def all(self) -> tuple[Token, ...]:
        """Every token that is valid."""
        ...

    def change(self, *, add: Token | None = None, remove: str | Collection[str] | None = None) -> bool:
        """Add one, remove one or some, durably; returns whether something changed."""
        ...


class CommandLine(msgspec.Struct, frozen=True, kw_only=True):
    """What would be started: argument list, variables and folder. What a script contains is not part of it.

    `source` says who declares it and is not part of what is trusted. Of the kind `file` nothing is started: its one
    argument is a file outside of the data directory that AOF would write to. Of the kind `channel` neither: it is a
    service that AOF would send to, and `hidden` is the part of it that is trusted with the rest but never shown.
    """

    source: str
    kind: Literal["runner", "notify", "file", "channel"]
    command: tuple[str, ...]
    env: dict[str, str] = {}
    inherit_env: tuple[str, ...] | Literal["all"] = ()
    cwd: str | None = None
    hidden: str = ""


class Trust(Protocol):
    """Knows what is allowed."""

    @property
    def folder(self) -> str:
        """The folder to watch for changes of what is trusted."""
        ...

    def covers(self, command: CommandLine) -> bool:
        """Whether exactly this command is allowed; looked at again."""
        ...
