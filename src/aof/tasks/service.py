"""Operations of people and programs that give out tasks, change them and steer them. Must not know any surface."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from aof.errors import AofError, Call, IdTaken, Internal, InvalidInput, Unavailable, UnreadableTask
from aof.kernel import commands
from aof.kernel import limits as kernel_limits
from aof.kernel import results as kernel_results
from aof.kernel.dispatcher import require_task
from aof.queries import views as queries_views
from aof.tasks import body as tasks_body
from aof.tasks import fields as tasks_fields
from aof.tasks import reversal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from aof.kernel.context import Environment
    from aof.kernel.dispatcher import Dispatcher
    from aof.kernel.kinds import BlockedKind, Status
    from aof.kernel.results import Assigned, Commented, Created, Depends, Edited, Moved, TaskTemplates, Updated
    from aof.kernel.unit_of_work import Done
    from aof.tasks.model import Task


class TaskService:
    """Creates tasks, edits them, connects them, holds and stops them."""

    def __init__(self, environment: Environment, dispatcher: Dispatcher) -> None:
        self._environment = environment
        self._dispatcher = dispatcher
        self._resolve = environment.lookup.resolve

    def create(
        self,
        title: str,
        brief: str = "",
        *,
        max_attempts: int | None = None,
        backlog: bool | None = None,
        review: bool | None = None,
        template: str | None = None,
        key: str | None = None,
        actor: str | None = None,
        **fields: Any,
    ) -> Created:
        """Create a task. With a key, the same call again answers with the same task.

        With a template, the task begins with what that says, too.
        """
        if unknown := fields.keys() - {row.name for row in tasks_fields.FIELDS if row.creates}:
            message = f"a task is not created with {', '.join(sorted(unknown))}"
            raise TypeError(message)
        if template is not None:
            from aof.tasks import templates

            said = {"brief": brief, "max_attempts": max_attempts, "backlog": backlog, "review": review} | fields
            whole = templates.merge_template(self._environment.store, template, said)
            return self.create(title, **whole, key=key, actor=actor)
        parent = fields.get("parent_id")
        workflow, priority = fields.get("workflow"), fields.get("priority")
        plain = {row.key: fields[row.name] for row in tasks_fields.PLAIN if fields.get(row.name) not in (None, (), {})}
        given = {
            "actor": actor,
            "title": title,
            "body": brief,
            "assignee": fields.get("agent"),
            "role": fields.get("role"),
            "team": fields.get("team"),
            "priority": "normal" if priority is None else priority,
            "tags": tuple(fields.get("tags", ())),
            "workflow": workflow,
            "depends_on": tuple(self._resolve(part) for part in fields.get("depends_on", ())),
            "parent_id": self._resolve(parent) if parent else None,
            "fields": self._as_kept(plain),
            "metadata": (fields.get("metadata") or {}) | ({"reviewRequired": False} if review is False else {}),
            "max_attempts": max_attempts,
            "status": "backlog" if backlog else "ready",
            "key": key,
            "conversation": self._dispatcher.conversation,
        }
        task = self._created(given, workflow)
        path, warning = self._environment.store.path_of(task), self._environment.chart.no_route(task)
        return kernel_results.Created(
            task_id=task.id, status=task.status, file_path=path, waits=self._waits(task), warning=warning
        )

    def templates(self) -> TaskTemplates:
        """The templates that tasks can be created from."""
        from aof.tasks import templates

        return kernel_results.TaskTemplates(templates=templates.list_templates(self._environment.store))

    def _waits(self, task: Task) -> str | None:
        if task.status != "ready" or not task.depends_on:
            return None
        environment = self._environment
        return queries_views.wait_of(environment.store, environment.policy, task)

    def _created(self, given: dict[str, Any], workflow: str | None) -> Task:
        """The new task, or the one that has its key."""

        def create(task_id: str) -> Done:
            command = self._dispatcher.command(commands.Create, given | {"task_id": task_id})
            return self._dispatcher.dispatch(self._environment.templates.gated(command, workflow))

        return require_task(with_new_id(self._environment, create))

    def update(
        self,
        task_id: str,
        *,
        body: str | None = None,
        note: str | None = None,
        status: Status | None = None,
        wait_for_children: bool = False,
        reason: str | None = None,
        run: str | None = None,
        agent: str | None = None,
        key: str | None = None,
        actor: str | None = None,
    ) -> Updated:
        """Add a note to the work log, replace the body or move the status; with none of them, only a sign of life."""
        done = self._dispatcher.on_task(
            commands.Update,
            task_id,
            run=run,
            agent=agent,
            actor=actor,
            key=key,
            body=body,
            note=note,
            status=status,
            wait_for_children=wait_for_children,
            reason=reason,
        )
        task = require_task(done)
        kinds = {event.type for event in done.events}
        return kernel_results.Updated(
            task_id=task.id,
            status=task.status,
            updated_at=task.updated_at,
            body_updated="task.updated" in kinds,
            transitioned="task.transitioned" in kinds,
            secret=done.secret or msgspec.UNSET,
        )

    def _as_kept(self, given: dict[str, Any]) -> dict[str, Any]:
        """Values of fields, by their keys, as tasks keep them: a moment such as `+3d` is counted from now."""
        kept = dict(given)
        for key, value in given.items():
            row = tasks_fields.BY_KEY.get(key)
            if row is not None and row.kind == "moment" and value is not None:
                kept[key] = kernel_limits.moment(key, str(value), self._environment.clock.now())
                if isinstance(kept[key], InvalidInput):
                    raise kept[key]
        return kept

    def edit(
        self,
        task_id: str,
        *,
        parent_id: str | None = None,
        clear: Sequence[str] = (),
        key: str | None = None,
        actor: str | None = None,
        **changes: Any,
    ) -> Edited:
        """Change title, description, priority, routing and the like; what `clear` names is taken away."""
        if parent_id is not None:
            changes["parentId"] = self._resolve(parent_id)
        changes = self._as_kept(changes)
        if clear:
            changes |= _cleared(clear, changes)
        done = self._dispatcher.on_task(commands.Edit, task_id, actor=actor, key=key, changes=changes)
        task = require_task(done)
        fields: Sequence[str] = next(
            (event.payload["fields"] for event in done.events if event.type == "task.updated"), []
        )
        shown = {"title": task.title, "status": task.status, "priority": task.priority}
        return kernel_results.Edited(task_id=task.id, updated_fields=tuple(fields), task=shown)

    def assign(
        self,
        task_id: str,
        agent: str | None = None,
        *,
        nobody: bool = False,
        key: str | None = None,
        actor: str | None = None,
    ) -> Assigned:
        """Reserve the task for an agent, or for `nobody`: then the first that can take it gets it."""
        if (agent is None) != nobody:
            raise InvalidInput(
                "say whom the task is for: one agent, or nobody",
                "name the agent",
                Call("assign", {"task_id": task_id, "agent": "…"}),
                parameter="agent",
            )
        changes = {"routing": {"agent": agent}}
        task = require_task(self._dispatcher.on_task(commands.Edit, task_id, actor=actor, key=key, changes=changes))
        return kernel_results.Assigned(task_id=task.id, status=task.status, agent=task.routing.agent)

    def comment(
        self, task_id: str, text: str, *, agent: str | None = None, key: str | None = None, actor: str | None = None
    ) -> Commented:
        """Say something of a task, whatever its status; the comment is in its file and in the log."""
        done = self._dispatcher.on_task(commands.Comment, task_id, agent=agent, actor=actor, key=key, text=text)
        task = require_task(done)
        said = tasks_body.comments_of(task.body)
        return kernel_results.Commented(task_id=task.id, status=task.status, comments=len(said))

    def cancel(
        self, task_id: str, reason: str | None = None, *, key: str | None = None, actor: str | None = None
    ) -> Moved:
        """Cancel the task and everything unfinished below it."""
        return self._dispatcher.move(commands.CancelTask, task_id, actor=actor, key=key, reason=reason)

    def settle(self, task_id: str, *, actor: str | None = None) -> Moved:
        """Say that the worker of a task that is being cancelled has stopped."""
        return self._dispatcher.move(commands.Settle, task_id, actor=actor)

    def block(
        self,
        task_id: str,
        reason: str,
        *,
        kind: BlockedKind = "blocked",
        key: str | None = None,
        actor: str | None = None,
    ) -> Moved:
        """Hold the task for a reason that is no other task."""
        return self._dispatcher.move(commands.Block, task_id, actor=actor, key=key, reason=reason, kind=kind)

    def unblock(self, task_id: str, *, key: str | None = None, actor: str | None = None) -> Moved:
        """Make a blocked task ready again."""
        return self._dispatcher.move(commands.Unblock, task_id, actor=actor, key=key)

    def pause(
        self, task_id: str, reason: str | None = None, *, key: str | None = None, actor: str | None = None
    ) -> Moved:
        """Hold the task on purpose."""
        return self._dispatcher.move(commands.Pause, task_id, actor=actor, key=key, reason=reason)

    def resume(self, task_id: str, *, key: str | None = None, actor: str | None = None) -> Moved:
        """Let a paused task go on."""
        return self._dispatcher.move(commands.Resume, task_id, actor=actor, key=key)

    def retry(self, task_id: str, reason: str, *, key: str | None = None, actor: str | None = None) -> Moved:
        """Run a finished task again, or end the wait of a retry."""
        return self._dispatcher.move(commands.RetryTask, task_id, actor=actor, key=key, reason=reason)

    def archive(self, task_id: str, *, key: str | None = None, actor: str | None = None) -> Moved:
        """Put a finished task away."""
        return self._dispatcher.move(commands.ArchiveTask, task_id, actor=actor, key=key)

    def unarchive(self, task_id: str, *, key: str | None = None, actor: str | None = None) -> Moved:
        """Take a task out of the archive, in the status that it had."""
        return self._dispatcher.move(commands.UnarchiveTask, task_id, actor=actor, key=key)

    def reopen(
        self,
        task_id: str,
        reason: str | None = None,
        *,
        backlog: bool = False,
        key: str | None = None,
        actor: str | None = None,
    ) -> Moved:
        """Open a finished task again, archived or not: ready, or in the backlog."""
        return self._dispatcher.move(reversal.ReopenTask, task_id, actor=actor, key=key, reason=reason, backlog=backlog)

    def dep_add(self, task_id: str, blocker_id: str, *, key: str | None = None, actor: str | None = None) -> Depends:
        """Let the task wait for another one."""
        return self._depends(commands.AddDependency, task_id, blocker_id, actor, key)

    def dep_remove(self, task_id: str, blocker_id: str, *, key: str | None = None, actor: str | None = None) -> Depends:
        """Let the task no longer wait for another one."""
        return self._depends(commands.RemoveDependency, task_id, blocker_id, actor, key)

    def link(
        self,
        task_id: str,
        kind: str,
        target: str,
        *,
        reason: str | None = None,
        key: str | None = None,
        actor: str | None = None,
    ) -> Moved:
        """Connect a task with another one, a run, an artifact or evidence."""
        return self._linked(commands.AddLink, task_id, kind, target, actor, key=key, reason=reason)

    def unlink(
        self, task_id: str, kind: str, target: str, *, key: str | None = None, actor: str | None = None
    ) -> Moved:
        """Remove a link between a task and something else."""
        return self._linked(commands.RemoveLink, task_id, kind, target, actor, key=key)

    def _linked(
        self, command: type[commands.OnTask], task_id: str, kind: str, target: str, actor: str | None, **given: Any
    ) -> Moved:
        """Each edge is written at one end: a dependency at the task that waits, a parent at the child."""
        if kind in ("child", "blocks"):
            task_id, kind, target = target, {"child": "parent", "blocks": "blocked_by"}[kind], task_id
        if kind == "blocked_by":
            change = self.dep_add if command is commands.AddLink else self.dep_remove
            change(task_id, target, actor=actor, key=given.get("key"))
            task = self._environment.lookup.get(task_id)
            return kernel_results.Moved(task_id=task.id, status=task.status)
        to_task = kind in ("parent", "source_task")
        target_id = self._resolve(target) if to_task else target
        return self._dispatcher.move(command, task_id, actor=actor, kind=kind, target_id=target_id, **given)

    def _depends(
        self, kind: type[commands.OnTask], task_id: str, blocker_id: str, actor: str | None, key: str | None
    ) -> Depends:
        blocker = self._resolve(blocker_id)
        task = require_task(self._dispatcher.on_task(kind, task_id, actor=actor, key=key, blocker_id=blocker))
        return kernel_results.Depends(task_id=task.id, blocker_id=blocker, depends_on=task.depends_on)


def _cleared(names: Sequence[str], given: dict[str, Any]) -> dict[str, Any]:
    """What an edit takes away, as changes to null."""
    routing: dict[str, Any] = given.get("routing") or {}
    taken: dict[str, Any] = {}
    parts: dict[str, Any] = {}
    for name in names:
        row = tasks_fields.CLEARABLE.get(name)
        if row is None:
            there = ", ".join(tasks_fields.CLEARABLE)
            raise InvalidInput(f"'clear' cannot be {str(name)[:80]!r}", f"choose among {there}", parameter="clear")
        if row.key in (routing if row.inside == "routing" else given):
            raise InvalidInput(f"{name} is both set and cleared", "give it once", parameter="clear")
        (parts if row.inside == "routing" else taken)[row.key] = None
    return taken | ({"routing": routing | parts} if parts else {})


def with_new_id(environment: Environment, create: Callable[[str], Done]) -> Done:
    """Let something create a task under a new ID. A number that is not needed after all is put back."""
    store = environment.store
    while True:
        task_id = store.reserve_id(environment.clock.now())
        try:
            done = create(task_id)
        except (Unavailable, Internal):  # something may have come of it
            raise
        except AofError as error:
            if error.details.get("task_id") != task_id or not isinstance(error, IdTaken | UnreadableTask):
                store.put_back_id(task_id)
                raise
            continue  # a person has a file of this name; the next number is free
        if done.task is None or done.task.id != task_id:
            store.put_back_id(task_id)
        return done
