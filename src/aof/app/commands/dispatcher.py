"""The way of every command: identify → policy → execute → notify. Must not know any surface, store or rule."""

from __future__ import annotations

import msgspec

from aof._support.typed import prepare_type
from aof.app.commands import identity, notifications, unit_of_work
from aof.app.operations import results
from aof.app.operations.arguments import invalid
from aof.app.queries import versions
from aof.core.errors.tasks import RevisionConflict
from aof.core.errors.workflows import NotAttached
from aof.core.model import commands
from aof.core.model.ids import OURSELVES, is_task_id, task_of_run
from aof.core.runs import authentication as proofs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from aof.app.commands.context import Environment, Principal
    from aof.app.commands.identity import Authentication
    from aof.app.commands.unit_of_work import Done
    from aof.app.operations.results import Moved
    from aof.core.model.commands import OnTask
    from aof.core.model.policy import Policy
    from aof.core.model.records import Decision
    from aof.core.model.task import Task


class Dispatcher:
    """Has commands carried out for one principal."""

    def __init__(self, environment: Environment, principal: Principal, authentication: Authentication) -> None:
        self._environment = environment
        self._principal = principal
        self._authentication = authentication

    @property
    def actor(self) -> str:
        """The name of the caller."""
        return self._principal.actor

    @property
    def conversation(self) -> str | None:
        """The session or context that the call belongs to, where one was named."""
        return self._principal.conversation

    def dispatch(self, command: OnTask) -> Done:
        """Carry out what the caller wants; the secret of a run that begins is returned here and nowhere else."""
        command = self._authentication.stamped(command)
        if self._principal.expect_rev is not None:
            command = msgspec.structs.replace(command, expect_rev=self._principal.expect_rev)
        if not _begins(command):
            return self.dispatch_trusted(command)
        random, digest = identity.draw()
        done = self.dispatch_trusted(msgspec.structs.replace(command, secret_digest=digest, keep=self._keeps(command)))
        begun = next((event for event in done.events if event.payload.get("secretDigest") == digest), None)
        if begun is None:
            return done
        secret = proofs.secret_of(str(begun.run_id), begun.payload["agent"], random)
        return msgspec.structs.replace(done, secret=secret)

    def _keeps(self, command: OnTask) -> bool:
        """Whether the run outlives the session: a claim says so itself, for all others the connection does."""
        if isinstance(command, commands.Claim):
            return command.keep
        return self._principal.keeps and proofs.lasting(command)

    def dispatch_trusted(self, command: OnTask) -> Done:
        """Carry out a command of AOF itself, or one whose caller is known.

        A task that somebody wrote by hand begins its workflow when it is first taken.
        """
        try:
            return self._execute(command)
        except NotAttached as refused:
            attach = self._environment.templates.attaching(
                refused.details["task_id"], refused.details["workflow"], OURSELVES
            )
            self._execute(msgspec.structs.replace(attach, expect_rev=command.expect_rev))
            return self._execute(msgspec.structs.replace(command, expect_rev=None))

    def _execute(self, command: OnTask) -> Done:
        here, policy = self._environment, self._policy_for(command)
        try:
            done = unit_of_work.execute(here.store, here.clock, policy, command)
        except RevisionConflict as outdated:
            raise versions.compared(here.store, outdated) from None
        if here.notifier is not None and done.events:
            for task_id in notifications.tell(here.notifier, done, here.lookup.get):
                self._undelivered(task_id)
        return done

    def _policy_for(self, command: OnTask) -> Policy:
        """What is in force for the command; a caller that has only said its name is no maintainer."""
        here, who = self._environment, self._principal.identity
        policy = here.with_gates(here.chart.policy_for(command))
        if who is None or not who.unproven:
            return policy
        delivered_by = getattr(command, "caller", command.actor)
        return policy.without((command.actor, command.acting, delivered_by, who.session))

    def _undelivered(self, task_id: str) -> None:
        """Work that is done and of which nobody heard can be found by its delivery state."""
        said = {"state": "failed", "target": "notifications", "reason": "the notification failed"}
        command = msgspec.convert(
            {"actor": OURSELVES, "task_id": task_id} | said, prepare_type(commands.RecordDelivery)
        )
        here = self._environment
        unit_of_work.execute(here.store, here.clock, here.chart.policy_for(command), command)

    def command(self, kind: type[OnTask], given: dict[str, Any]) -> OnTask:
        """A command from values that a caller gave; raises InvalidInput."""
        given = given | {"actor": given.get("actor") or self._principal.actor}
        command: OnTask = values(kind, given)
        return command

    def on_task(self, kind: type[OnTask], task_id: str, /, **given: Any) -> Done:
        """Dispatch a command about one task, in the name of the caller's run where that holds the task."""
        done = self.dispatch(self._about(kind, task_id, given))
        if done.decision.refusal is not None:
            raise done.decision.refusal  # it is on record, and still a refusal
        return done

    def rehearse(self, kind: type[OnTask], task_id: str, /, **given: Any) -> Decision:
        """What the same command would do; changes nothing, and raises the refusal."""
        return self.rehearsed(self._about(kind, task_id, given))

    def rehearsed(self, command: OnTask) -> Decision:
        """The same for a command that is made already."""
        here, command = self._environment, self._authentication.stamped(command)
        decision = unit_of_work.rehearse(here.store, here.clock, self._policy_for(command), command)
        if decision.refusal is not None:
            raise decision.refusal
        return decision

    def _about(self, kind: type[OnTask], task_id: str, given: dict[str, Any]) -> OnTask:
        run, own = given.pop("run", None), self._principal.run
        full = self._meant(task_id, run or own)
        if run is None and own is not None and task_of_run(own) == full:
            run = own
        return self.command(kind, {"task_id": full, "run": run, **given})

    def _meant(self, task_id: str, run: str | None) -> str:
        """The whole ID; one that the caller's run names, or that AOF itself gives, needs no look at other tasks."""
        who = self._principal.identity
        known = (run is not None and task_of_run(run) == task_id) or (who is not None and who.trusted)
        return task_id if known and is_task_id(task_id) else self._environment.lookup.resolve(task_id)

    def move(self, kind: type[OnTask], task_id: str, /, **given: Any) -> Moved:
        """The same, answered with the status that the task has now."""
        task = require_task(self.on_task(kind, task_id, **given))
        return results.Moved(task_id=task.id, status=task.status)


def values(kind: type[Any], given: dict[str, Any]) -> Any:
    """A struct from values that a caller gave; raises InvalidInput, which names the field as the caller knows it."""
    try:
        return msgspec.convert(given, prepare_type(kind))
    except msgspec.ValidationError as error:
        raise invalid(str(error), kind, given) from None


def require_task(done: Done) -> Task:
    """The task of a command that cannot succeed without one."""
    assert done.task is not None
    return done.task


def _begins(command: OnTask) -> bool:
    """Whether the command may begin a run that goes on after it."""
    return hasattr(command, "secret_digest") and getattr(command, "status", "in-progress") == "in-progress"
