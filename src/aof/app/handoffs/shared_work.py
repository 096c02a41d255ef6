"""Operations on what the agents of a workflow share: context, artifacts and locks on files.

Must not know which store is in use.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec

from aof._support.typed import prepare_type
from aof.app.handoffs import results
from aof.core.errors.storage import CommitUnknown, DiskFull, StorageFailed
from aof.core.handoffs import context as contexts
from aof.core.handoffs import decisions, file_locks, preflight, shared_context
from aof.core.model import run as runs
from aof.core.model.handoffs import context as model
from aof.core.model.workflow import held_leases
from aof.core.validation import project_paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from aof.app.commands.context import Environment
    from aof.app.commands.dispatcher import Dispatcher
    from aof.app.commands.unit_of_work import Done
    from aof.app.handoffs.results import ContextShown, DecisionRecorded, Locked, LockList, Preflighted, Unlocked
    from aof.core.model.commands import OnTask
    from aof.core.model.handoffs.context import Artifact
    from aof.core.model.task import FileLock, Task


class SharedWorkService:
    """Reads and writes what agents share."""

    def __init__(self, environment: Environment, dispatcher: Dispatcher) -> None:
        self._environment = environment
        self._dispatcher = dispatcher

    def lock(
        self,
        path: str,
        *,
        task_id: str,
        also: Sequence[str] = (),
        lock_type: str = "exclusive",
        run: str | None = None,
        actor: str | None = None,
    ) -> Locked:
        """Lock files or folders of the project for a run: all of them, or none."""
        given: dict[str, Any] = {"paths": [path, *also], "mode": lock_type, "run": run, "actor": actor}
        task = self._changed(file_locks.LockFiles, task_id, given)
        return results.Locked(task_id=task.id, locks=tuple(file_locks.told(task, lock) for lock in task.locks))

    def unlock(
        self, path: str | None = None, *, task_id: str, run: str | None = None, actor: str | None = None
    ) -> Unlocked:
        """Give back a lock of a run, or all that it has."""
        given: dict[str, Any] = {"paths": [path] if path is not None else [], "run": run, "actor": actor}
        done = self._done(file_locks.UnlockFiles, task_id, given)
        released = [one for event in done.events for one in event.payload["paths"]]
        assert done.task is not None
        return results.Unlocked(task_id=done.task.id, released=tuple(released))

    def locks(self, path: str | None = None, *, task_id: str | None = None, agent: str | None = None) -> LockList:
        """The locks on files: all, or those that concern a path, a task or an agent."""
        wanted = project_paths.normalised("path", path) if path is not None else project_paths.WHOLE
        if not isinstance(wanted, str):
            raise wanted
        only = self._environment.lookup.resolve(task_id) if task_id is not None else None
        tasks = [task for task in self._environment.store.locking() if only in (None, task.id)]
        found = tuple(
            file_locks.told(task, lock, lost=lock.run_id in lost)
            for task in tasks
            for lost in (self._lost(task),)
            for lock in sorted(task.locks, key=lambda lock: lock.path)
            if project_paths.overlap(wanted, lock.path) and agent in (None, lock.agent)
        )
        return results.LockList(total=len(found), locks=found)

    def _lost(self, task: Task) -> frozenset[str]:
        """The runs of a task whose leases are over, though nobody has reclaimed them yet."""
        here = self._environment
        held, now = held_leases(task), here.clock.now()
        beats = here.store.heartbeats([place for place, _ in held])
        return frozenset(lease.run_id for place, lease in held if runs.lease_end(lease, beats[place]) <= now)

    def context_show(self, task_id: str) -> ContextShown:
        """What the agents of the workflow share, from the place of one of its tasks."""
        task = self._environment.lookup.get(task_id)
        top = self._top(task)
        return self._shown(task, top)

    def context_set(
        self,
        task_id: str,
        *,
        variables: dict[str, Any] | None = None,
        scope: str | None = None,
        base: int | None = None,
        conflicts: str | None = None,
        run: str | None = None,
        actor: str | None = None,
    ) -> ContextShown:
        """Write variables that the agents of the workflow share, each within its scope."""
        given: dict[str, Any] = {"variables": variables or {}, "scope": scope, "base": base, "conflicts": conflicts}
        done = self._done(shared_context.SetContext, task_id, given | {"run": run, "actor": actor})
        assert done.task is not None
        with _made():
            return self.context_show(done.task.id)

    def context_decide(
        self,
        task_id: str,
        description: str,
        *,
        risk: str | None = None,
        run: str | None = None,
        actor: str | None = None,
    ) -> DecisionRecorded:
        """Record a decision for all agents of the workflow. Above the agent's own risk it becomes an escalation."""
        given = {"description": description, "risk": risk, "run": run, "actor": actor}
        done = self._done(decisions.RecordDecision, task_id, given)
        with _made():
            return self._recorded(self._environment.lookup.get(task_id), done, description, risk)

    def _recorded(self, task: Task, done: Done, description: str, risk: str | None) -> DecisionRecorded:
        agent = str(done.decision.agent)
        asked = decisions.escalation_of(self._environment.store.handoffs((task,)), description, agent, risk)
        if asked is not None and asked.is_open:
            return results.DecisionRecorded(
                state="escalated", description=description.strip(), task_id=task.id, handoff_id=asked.id
            )
        made = decisions.decided(model.context_of(self._top(task)), description, agent)
        assert made is not None
        return results.DecisionRecorded(state="recorded", **msgspec.structs.asdict(made))

    def context_artifact(
        self,
        task_id: str,
        *,
        path: str,
        type: str | None = None,  # noqa: A002 - what it is called everywhere
        status: str | None = None,
        description: str | None = None,
        run: str | None = None,
        actor: str | None = None,
    ) -> Artifact:
        """Record something that was made in the workflow, or its new status."""
        given = {"path": path, "type": type, "status": status, "description": description}
        done = self._done(shared_context.RecordArtifact, task_id, given | {"run": run, "actor": actor})
        assert done.task is not None
        with _made():
            artifact = shared_context.artifact_of(self._top(done.task), path)
        assert artifact is not None
        return artifact

    def preflight(
        self,
        task_id: str,
        *,
        point: str | None = None,
        subject: str | None = None,
        amount: int | None = None,
        risk: str | None = None,
        agent: str | None = None,
        run: str | None = None,
        actor: str | None = None,
    ) -> Preflighted:
        """Ask whether an agent may begin a task, or whether its run may do something; the answer is recorded."""
        given: dict[str, Any] = {"point": point, "subject": subject, "amount": amount, "risk": risk, "agent": agent}
        (event,) = self._done(preflight.Preflight, task_id, given | {"run": run, "actor": actor}).events
        ruled = {name: event.payload[name] for name in ("outcome", "point", "stage", "reason", "agent")}
        warnings = event.payload.get("warnings", [])
        return msgspec.convert(
            ruled | {"taskId": event.task_id, "warnings": warnings}, prepare_type(results.Preflighted)
        )

    def _top(self, task: Task) -> Task:
        here = self._environment
        with here.store.unit(results.reading(task.id)) as unit:
            above = unit.above(task.id)
        return here.lookup.get(above[-1]) if above else task

    def _shown(self, task: Task, top: Task) -> ContextShown:
        context = model.context_of(top)
        taken = contexts.snapshot(task, "sequential", top=top, files=self._files(top))
        return results.ContextShown(
            task_id=task.id,
            top_task_id=top.id,
            context_variables=taken.context_variables,
            context_variables_hash=taken.context_variables_hash,
            variables=context.variables,
            artifacts=taken.artifacts,
            conflicts=context.rule,
        )

    def _files(self, top: Task) -> list[FileLock]:
        """What the tasks of the tree have locked."""
        tasks = self._environment.store.locking()
        if not tasks:
            return []
        with self._environment.store.unit(results.reading(top.id)) as unit:
            tree = {top.id, *(child for children in unit.tree(top.id).values() for child in children)}
        return [lock for task in tasks if task.id in tree for lock in task.locks]

    def _changed(self, kind: type[OnTask], task_id: str, given: dict[str, Any]) -> Task:
        done = self._done(kind, task_id, given)
        assert done.task is not None
        return done.task

    def _done(self, kind: type[OnTask], task_id: str, given: dict[str, Any]) -> Done:
        return self._dispatcher.on_task(kind, task_id, **given)


@contextmanager
def _made() -> Iterator[None]:
    """The change is in the log: a disk that fails while the answer is read must not be taken for a refusal."""
    try:
        yield
    except (DiskFull, StorageFailed) as error:
        raise CommitUnknown(
            f"the change is made, but its answer could not be read ({error.message})", error.hint or "look again"
        ) from error
