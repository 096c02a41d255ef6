"""The way of every command: identify, choose the policy, execute, notify.

Must not know any surface, store or rule.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Final

import msgspec

from aof.errors import AlreadyClaimed, AtCapacity, NotAttached, NothingReady, NotReady, ResourceBusy, RevisionConflict
from aof.kernel import commands, identity, results, unit_of_work
from aof.kernel.arguments import invalid_arguments
from aof.kernel.model import FINISHED, OURSELVES, is_task_id, task_of_run
from aof.kernel.ports import Notifier
from aof.kernel.unit_of_work import Done
from aof.queries import history as queries_history
from aof.runs import authentication as runs_authentication
from aof.supervision.notifications import news_of
from aof.support.typed import prepare_type
from aof.tasks.model import Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from aof.kernel.commands import Decision, OnTask
    from aof.kernel.context import Environment, Principal
    from aof.kernel.identity import Authentication
    from aof.kernel.model import Policy
    from aof.kernel.results import Moved


class Dispatcher:
    """Has commands carried out for one principal."""

    def __init__(self, environment: Environment, principal: Principal, authentication: Authentication) -> None:
        self._environment = environment
        self._principal = principal
        self._caller = principal.identity
        self._authentication = authentication

    @property
    def actor(self) -> str:
        """The name of the caller."""
        return self._principal.actor

    def dispatch(self, command: OnTask) -> Done:
        """Carry out what the caller wants; the secret of a run that begins is returned here and nowhere else."""
        command = self._authentication.stamped(command)
        if not hasattr(command, "secret_digest") or getattr(command, "status", "in-progress") != "in-progress":
            return self.dispatch_trusted(command)  # no run begins with it
        random, digest = identity.draw()
        # Whether the run outlives the session: a claim says so itself, for all others the connection does.
        if isinstance(command, commands.Claim):
            keep = command.keep
        else:
            keep = self._principal.keeps and runs_authentication.lasting(command)
        done = self.dispatch_trusted(msgspec.structs.replace(command, secret_digest=digest, keep=keep))
        for event in done.events:
            if event.payload.get("secretDigest") == digest:
                secret = runs_authentication.secret_of(str(event.run_id), event.payload["agent"], random)
                return msgspec.structs.replace(done, secret=secret)
        return done

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
            raise queries_history.compared(here.store, outdated) from None
        if here.notifier is not None and done.events:
            for task_id in notify(here.notifier, done, here.lookup.get):
                self._undelivered(task_id)
        return done

    def _policy_for(self, command: OnTask) -> Policy:
        """What is in force for the command; a caller that has only said its name is no maintainer."""
        here, who = self._environment, self._caller
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
        command: OnTask = struct_from(kind, given)
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
        """The decision on a command that is built already; changes nothing, and raises the refusal."""
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
        who = self._caller
        known = (run is not None and task_of_run(run) == task_id) or (who is not None and who.trusted)
        return task_id if known and is_task_id(task_id) else self._environment.lookup.resolve(task_id)

    def move(self, kind: type[OnTask], task_id: str, /, **given: Any) -> Moved:
        """Dispatch a command about one task, and answer with the status that the task has now."""
        task = require_task(self.on_task(kind, task_id, **given))
        return results.Moved(task_id=task.id, status=task.status)


def struct_from(kind: type[Any], given: dict[str, Any]) -> Any:
    """A struct from values that a caller gave; raises InvalidInput, which names the field as the caller knows it."""
    try:
        return msgspec.convert(given, prepare_type(kind))
    except msgspec.ValidationError as error:
        raise invalid_arguments(str(error), kind, given) from None


def require_task(done: Done) -> Task:
    """The task of a command that cannot succeed without one."""
    assert done.task is not None
    return done.task


TOLD: Final = frozenset({"review", "blocked", "done"})


def notify(notifier: Notifier, done: Done, look: Callable[[str], Task]) -> tuple[str, ...]:
    """One notification for each task that a commit left in such a status, or handed in vain. A failure is warned of.

    A step of a handoff that somebody must hear of, such as a rejection, is told by itself. Answers with the tasks that
    are done and of which nobody heard.
    """
    unheard: list[str] = []
    last = {event.task_id: event for event in done.events if event.type in ("task.transitioned", "handoff.unanswered")}
    moved = [event for event in last.values() if event.payload.get("to", "done") in TOLD]
    told = [event for event in done.events if "notify" in event.payload]
    if not moved:  # else the question is why it was blocked
        told += [event for event in done.events if event.type == "task.question.asked"]
    for event in (*told, *moved):
        try:
            task = done.task if done.task is not None and done.task.id == event.task_id else look(event.task_id)
            heard = notifier.notify(news_of(event, task))
        except Exception as error:  # noqa: BLE001 - the change is made, whatever a notifier does
            heard = False
            warnings.warn(f"{event.task_id}: the notification failed: {error}", RuntimeWarning, stacklevel=2)
        if heard is False and event.type == "task.transitioned" and event.payload["to"] == "done":
            unheard.append(event.task_id)
    return tuple(unheard)


PASSING = (NothingReady, AtCapacity, NotReady, AlreadyClaimed, ResourceBusy)
Passing = NothingReady | AtCapacity | NotReady | AlreadyClaimed | ResourceBusy


def may_pass(refusal: Passing) -> bool:
    """Whether it makes sense to wait and try again: not for a task that is over."""
    return refusal.details.get("status") not in FINISHED
