"""Who a caller has proven to be, put to every command that it gives: by a token, by the secret of a run, or by neither.

Draws the secrets of new runs, too. Must not know how a secret arrives or what a command does.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from aof._support.hashing import hexdigest
from aof.core.errors.org import ActorMismatch
from aof.core.errors.tasks import TaskNotFound
from aof.core.model import commands as c
from aof.core.model.commands import OnTask
from aof.core.model.task import Task
from aof.core.runs import authentication
from aof.core.runs.authentication import Secret

if TYPE_CHECKING:
    Get = Callable[[str], Task]

_BYTES = 32


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a caller.

    `agent` is the name in a token: the caller acts as nobody else. `secret` is of a run: its sender acts as its agent.
    `kept` are secrets that speak only for writes to their own runs.
    `behalf` is the caller where that is another who acts for the agent, such as the one that claimed for it.
    `session` is the one actor that a session or a token is, also where it may act for others; `token` says which.
    `limited` says that the token is for work only, or that nobody chose the session's name.
    `trusted` is the service itself, which looks after everybody's runs; with an `agent` it passes on that one's word.
    """

    agent: str | None = None
    secret: str | None = None
    kept: tuple[str, ...] = ()
    behalf: str | None = None
    session: str | None = None
    token: bool = False
    limited: bool = False
    trusted: bool = False

    def __repr__(self) -> str:
        return f"Identity(agent={self.agent!r})"


NOBODY = Identity()
SERVICE = Identity(trusted=True)


def draw() -> tuple[str, str]:
    """The random part of a new secret, and its digest."""
    random = os.urandom(_BYTES).hex()
    return random, hexdigest(random.encode())


def name_of(identity: Identity) -> str | None:
    """Whom a token or a secret names; None where neither does."""
    own = authentication.understood(identity.secret) if identity.secret is not None else None
    return identity.agent or (own.agent if own is not None else None)


def stamped(get: Get, identity: Identity, command: OnTask, *, asked: bool) -> OnTask:
    """The command with what its caller has proven; raises where that contradicts what the caller claims.

    `get` finds a task. `asked` says that writes to a run must come with its secret.
    """
    if identity.trusted:
        if identity.agent is not None and command.acting != identity.agent:
            raise authentication.mismatch(identity.agent, command.acting, command)
        return command
    name = identity.agent
    changes: dict[str, Any] = {"outside": True, "session": identity.session or name}
    changes |= {"proof": ""} if asked else {}
    changes |= {"vouched": "token"} if identity.token else {}
    changes |= {"limited": True} if identity.limited else {}
    own = _fitting(identity, command)
    if own is not None:
        if name is not None and name != own.agent:
            raise ActorMismatch(
                f"this is a secret of {own.agent}, and the caller is {name[:80]}",
                "send the secret of a run of your own, or none",
                actor=name[:80],
            )
        name = own.agent
        changes |= _with_secret(get, own, command) | {"vouched": "secret"}
        changes["session"] = identity.session or (name if identity.behalf is None else None)
    if name is not None:
        changes |= _as(name, command, identity.behalf)
    return msgspec.structs.replace(command, **changes)


def _fitting(identity: Identity, command: OnTask) -> Secret | None:
    """The secret that speaks for this command; of several runs of one task the caller must say which is meant."""
    kept = [own for own in map(authentication.understood, identity.kept) if own is not None]
    if command.run is not None:
        fitting = [own for own in kept if own.run == command.run]
    else:
        fitting = [own for own in kept if own.task_id == command.task_id]
    if len(fitting) == 1:
        return fitting[0]
    if identity.secret is None:
        return None
    sent = authentication.understood(identity.secret)
    if sent is None:
        raise authentication.unknown_secret()
    return sent


def _with_secret(get: Get, own: Secret, command: OnTask) -> dict[str, Any]:
    """A write to its own run is held against the lease when it is decided; for any other the run is looked up here."""
    if isinstance(command, c.Claim) or (command.task_id != own.task_id and command.run != own.run):
        _refuse_forged(get, own)
        return {}
    if command.run not in (None, own.run):
        raise ActorMismatch(
            f"this is the secret of {own.run}, and the call is for {str(command.run)[:80]}",
            "leave 'run' out, or send the secret of that run",
            run_id=own.run,
        )
    return {"proof": hexdigest(own.random.encode()), "run": own.run}


def _as(name: str, command: OnTask, behalf: str | None) -> dict[str, Any]:
    """The proven name is the agent that acts; the caller is the same, or acts on its behalf."""
    caller = getattr(command, "caller", command.actor)
    if caller not in (name, behalf):
        raise authentication.mismatch(name, caller, command)
    is_own = isinstance(command, c.OwnRule) and not isinstance(command, c.OnDocument)
    if command.actor != name and command.agent is None and not is_own:
        return {"proven": name, "agent": name}
    return {"proven": name}


def _refuse_forged(get: Get, own: Secret) -> None:
    """The secret must be that of its run, and the run must be under way: of one that is over it proves nothing."""
    try:
        task = get(own.task_id)
    except TaskNotFound:
        raise authentication.unknown_secret() from None
    lease = authentication.lease_of(task, own.run)
    if lease is None:
        raise authentication.over(own.task_id, own.run)
    if lease.secret_digest != hexdigest(own.random.encode()) or lease.agent != own.agent:
        raise authentication.unknown_secret()
