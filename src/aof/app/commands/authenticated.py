"""How a caller's commands reach the core: with who it has proven to be, and with a secret for each run that begins.

Must not know which store or surface is in use. Whoever proves nothing, and is not asked to, loads nothing here.
"""

from __future__ import annotations

import msgspec

from aof.app.commands import identity
from aof.app.commands.dispatcher import Carrying, there
from aof.app.operations import results
from aof.core.model.ids import task_of_run
from aof.core.org import acting
from aof.core.runs import authentication

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

    from aof.app.commands.identity import Identity
    from aof.app.commands.unit_of_work import Done
    from aof.app.operations.results import Moved
    from aof.core.model.commands import OnTask


class Asking(Carrying):
    """The part of a fabric that knows its caller."""

    _secret: str | None = None
    _identity: Identity | None = None

    @property
    def actor(self) -> str:
        """Who calls, unless a call says otherwise."""
        return self._actor

    @property
    def needs_secret(self) -> bool:
        """Whether writes to a run count only with its secret."""
        return self._policy.require_secret

    def as_actor(self, actor: str, run: str | None = None) -> Self:
        """The same data, asked by somebody else; closing either closes both. What was proven stays so."""
        return self._view(_actor=actor, _run=run)

    def as_run(self, secret: str) -> Self:
        """The same data, asked for the run whose secret this is: everything is done as that run's agent."""
        return self._known_as(identity.Identity(secret=secret, behalf=self._actor))

    def _as_service(self) -> Self:
        """The same data, asked by the service that looks after everybody's runs."""
        return self._known_as(identity.SERVICE)

    def _passing_on(self, agent: str) -> Self:
        """The same data, asked by the service for the worker whose output it reads; where callers are bound, as it."""
        return self._known_as(identity.Identity(agent=agent, trusted=True)) if self.binds_callers else self

    def _proven(self) -> str | None:
        """Who the caller has proven to be, where it acts as nobody else."""
        who = self._who()
        return identity.name_of(who) if who is not None else None

    @property
    def binds_callers(self) -> bool:
        """Whether a session, a token or a run is one actor: where there is an org chart, or identity is strict."""
        return self._policy.strict or self._chart_to_read() is not None

    def speaks_for_others(self, name: str) -> bool:
        """Whether somebody may act for others at all; for whom, and on which task, is decided with each command."""
        chart = self._chart_to_read()
        return name in self._policy.maintainers or (chart is not None and acting.orchestrates(chart, name))

    def _speaks_as(self) -> str | None:
        """The one actor that the caller is; None where it may speak for others, or where nothing binds it."""
        who, name = self._who(), self._proven()
        if name is not None or not self.binds_callers or (who is not None and who.trusted):
            return name
        name = who.session if who is not None else None
        name = self._actor if name is None and self._policy.strict else name
        return None if name is None or self.speaks_for_others(name) else name

    def _session_name(self) -> str | None:
        """Who the caller's token, secret or session says that it is, whatever name a call gives."""
        who = self._who()
        return None if who is None else identity.name_of(who) or who.session

    def _claims_as(self, agent: str) -> None:
        """Refuse a claim for another before anybody looks for a task."""
        name = self._speaks_as()
        if name is not None and name != agent:
            raise authentication.mismatch(name, agent)

    def _who(self) -> Identity | None:
        """What is known of the caller: by the surface that asks for it, else by the secret of this process."""
        if self._identity is None and self._secret is not None:
            self._identity = identity.Identity(secret=self._secret)
        return self._identity

    def _known_as(self, who: Identity | None) -> Self:
        """The same data, asked by a caller of whom this is known."""
        return self._view(_identity=who, _secret=None)

    def _view(self, **changes: object) -> Self:
        view = object.__new__(type(self))
        view.__dict__.update(self.__dict__ | changes)
        return view

    def _moved(self, kind: type[OnTask], task_id: str, /, **given: Any) -> Moved:
        task = there(self._on(kind, task_id, **given))
        return results.Moved(task_id=task.id, status=task.status)

    def _on(self, kind: type[OnTask], task_id: str, /, *, actor: str | None = None, **given: Any) -> Done:
        full = self._reading.resolve(task_id)
        run = given.pop("run", None)
        if run is None and self._run is not None and task_of_run(self._run) == full:
            run = self._run
        return self._ask(self._command(kind, {"actor": actor or self._actor, "task_id": full, "run": run, **given}))

    def _ask(self, command: OnTask) -> Done:
        """Carry out what the caller wants; the secret of a run that begins is told here and nowhere else."""
        asked, who = self._policy.require_secret, self._who()
        if asked or who is not None:
            command = identity.stamped(self.get, who or identity.NOBODY, command, asked=asked)
        elif self._policy.strict or self._org is not None:
            command = msgspec.structs.replace(command, outside=True)
        if not _begins(command):
            return self._execute(command)
        random, digest = identity.draw()
        done = self._execute(msgspec.structs.replace(command, secret_digest=digest))
        begun = next((event for event in done.events if event.payload.get("secretDigest") == digest), None)
        if begun is None:
            return done
        return msgspec.structs.replace(
            done, secret=authentication.secret_of(str(begun.run_id), begun.payload["agent"], random)
        )


def _begins(command: OnTask) -> bool:
    """Whether the command may begin a run that goes on after it."""
    return hasattr(command, "secret_digest") and getattr(command, "status", "in-progress") == "in-progress"
