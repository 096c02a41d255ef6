"""Who a caller has proven to be, and for whom it may speak: by a token, by the secret of a run, or by neither.

A caller that proves nothing, where nobody asks for proof, loads none of the rules. Draws the secrets of new runs, too.
While a run's secret is in the environment, nothing is allowed that would widen its rights: tokens, trust, `init`,
`import`, `up`. Must not know how a secret arrives, what a command does, nor which store or surface is in use.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from aof.errors import ActorMismatch, NotAllowed, TaskNotFound, Unauthenticated
from aof.kernel import commands
from aof.kernel.commands import OnTask
from aof.org import rights
from aof.runs import authentication
from aof.runs.authentication import Secret
from aof.support.hashing import hexdigest
from aof.tasks.model import Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    Get = Callable[[str], Task]
    from aof.kernel.context import Environment, Principal
    from aof.org.model import OrgChart

_BYTES = 32
SECRET = "AOF_RUN_SECRET"  # noqa: S105 - the name of the variable


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a caller.

    `agent` is the name in a token: the caller acts as nobody else. `secret` is of a run: its sender acts as its agent.
    `kept` are secrets that speak only for writes to their own runs.
    `behalf` is the caller where that is another who acts for the agent, such as the one that claimed for it.
    `session` is the one actor that a session or a token is, also where it may act for others; `token` says which.
    `limited` says that the token is for work only, or that nobody chose the session's name. `unproven` says the latter:
    the caller is no maintainer, whatever its name.
    `scope` is that of the token.
    `trusted` is the service itself, which looks after everybody's runs; with an `agent` it passes on that one's word.
    """

    agent: str | None = None
    secret: str | None = None
    kept: tuple[str, ...] = ()
    behalf: str | None = None
    session: str | None = None
    token: bool = False
    limited: bool = False
    unproven: bool = False
    scope: str | None = None
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
    if isinstance(command, commands.Claim) or (command.task_id != own.task_id and command.run != own.run):
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
    is_own = isinstance(command, commands.OwnRule) and not isinstance(command, commands.OnDocument)
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


class Authentication:
    """Answers for one principal."""

    def __init__(self, environment: Environment, principal: Principal) -> None:
        self._environment = environment
        self._policy = environment.policy
        self._principal = principal
        self._caller = principal.identity

    @property
    def binds_callers(self) -> bool:
        """Whether a session, a token or a run is one actor: where there is an org chart, or identity is strict."""
        return self._policy.strict or self._environment.chart.readable() is not None

    def standing(self, name: str) -> tuple[bool, bool]:
        """Whether callers are bound, and whether this one speaks for others then."""
        chart = self._environment.chart.readable()
        binds = self._policy.strict or chart is not None
        return binds, binds and self._may_speak(chart, name)

    def speaks_for_others(self, name: str) -> bool:
        """Whether somebody may act for others at all; for whom, and on which task, is decided with each command."""
        return self._may_speak(self._environment.chart.readable(), name)

    def _may_speak(self, chart: OrgChart | None, name: str) -> bool:
        return name in self._policy.maintainers or (chart is not None and rights.orchestrates(chart, name))

    def only_name(self) -> str | None:
        """The one actor that the caller is; None where it may speak for others, or where nothing binds it."""
        who = self._caller
        name = name_of(who) if who is not None else None
        if name is not None or not self.binds_callers or (who is not None and who.trusted):
            return name
        name = who.session if who is not None else None
        name = self._principal.actor if name is None and self._policy.strict else name
        return None if name is None or self.speaks_for_others(name) else name

    def needs_proof(self, name: str, *, given: bool) -> Unauthenticated | None:
        """Why a session may not just say that this is its name; where nobody has `given` one, it is the user's."""
        chart, maintainers = self._environment.chart.readable(), self._policy.maintainers
        listed = chart is not None and rights.kind_of(chart, name) != "worker"
        if not (listed or (given and name in maintainers)):
            return None
        what = "an agent that reviews or leads" if listed else "a maintainer"
        return Unauthenticated(
            f"this session has not proven that it is {name[:80]}, and that is the name of {what}",
            f"set AOF_ACTOR={name[:80]} in the settings of the MCP client, or connect over HTTP with a token: "
            f"'aof admin token create {name[:80]}'; without either, use the name of a worker",
            actor=name[:80],
        )

    def require_maintainer(self, what: str) -> str:
        """The name of the caller, who is a maintainer and no run; raises NotAllowed or Unauthenticated."""
        who, name = self._caller, self._principal.actor
        if who is not None and who.secret is not None:
            raise _inside_a_run(what)
        if who is not None and who.unproven:
            raise Unauthenticated(
                f"nobody has said who this session is, and only a maintainer may {what}",
                "set AOF_ACTOR in the settings of the MCP client, or use the command line",
            )
        if not {name, self.session_name() or name} <= set(self._policy.maintainers):
            raise NotAllowed(
                f"{name[:80]} is no maintainer and may not {what}",
                f"let a maintainer do it: {', '.join(self._policy.maintainers[:5]) or 'name one in aof.toml'}",
                agent=name[:80],
            )
        return name

    def session_name(self) -> str | None:
        """The name in the caller's token, secret or session, whatever name a call gives."""
        who = self._caller
        return None if who is None else name_of(who) or who.session

    def refuse_claim_for(self, agent: str) -> None:
        """Refuse a claim for somebody else before anybody looks for a task."""
        name = self.only_name()
        if name is not None and name != agent:
            raise authentication.mismatch(name, agent)

    def stamped(self, command: OnTask) -> OnTask:
        """The command with what its caller has proven; raises where that contradicts what the caller says."""
        asked, who = self._policy.require_secret, self._caller
        if who is None and self._principal.is_default(self._environment.place):
            command = msgspec.structs.replace(command, unnamed=command.actor == self._principal.actor)
        if asked or who is not None:
            get = self._environment.lookup.get
            return stamped(get, who or NOBODY, command, asked=asked)
        if self._policy.strict or self._environment.org is not None:
            return msgspec.structs.replace(command, outside=True)
        return command


def refuse_in_run(what: str, environment: Mapping[str, str]) -> None:
    """Refuse `what` (such as "make tokens") in a process that works for a run; raises NotAllowed.

    Any run's secret counts, also that of another data directory and of a run that has ended.
    """
    if environment.get(SECRET):
        raise _inside_a_run(what)


def _inside_a_run(what: str) -> NotAllowed:
    return NotAllowed(
        f"a run may not {what}: {SECRET} is set, so this process works for an agent's run",
        "let a person do it in a shell of their own, where no run's secret is set",
        reason="inside_a_run",
    )
