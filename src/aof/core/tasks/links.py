"""Edges of the task graph that order nothing: the parent, sources, artifacts, evidence.

Dependencies have commands of their own, because they decide what may run. Must not know who may do it.
"""

from __future__ import annotations

from typing import Any, Final

from aof.core.errors.base import AofError, Call, InvalidInput
from aof.core.errors.tasks import DependencyCycle
from aof.core.model.commands import AddLink, RemoveLink
from aof.core.model.events import Draft
from aof.core.model.ids import attempt_of, is_task_id, task_of_run
from aof.core.model.records import Decision, Records, Verdict
from aof.core.model.task import Task
from aof.core.tasks import graph
from aof.core.validation import limits, output

TO_TASKS: Final = ("source_task",)
TO_RUNS: Final = "source_attempt"
TO_FILES: Final = ("produced_artifact", "consumed_artifact", "evidence")
KINDS: Final = (
    *TO_TASKS,
    TO_RUNS,
    "spawned_subagent",
    "assigned_thread",
    *TO_FILES,
)
_TARGET: Final = 512
_URL: Final = "://"


def link(records: Records, command: AddLink, _now: int) -> Verdict:
    """Add an edge; one that is there already is left as it is."""
    task = records.task(command.task_id)
    if problem := _malformed(command) or limits.text("reason", command.reason, limits.REASON):
        return problem
    if command.kind == "parent":
        return _adopt(records, task, command.target_id)
    if problem := _leads_nowhere(records, command):
        return problem
    if _has(task, command):
        return Decision()
    payload: dict[str, Any] = {"kind": command.kind, "targetId": command.target_id}
    if command.reason:
        payload["reason"] = command.reason
    if (digest := records.digests.get((task.id, command.target_id))) is not None:
        payload["sha256"] = digest
    return Decision(drafts=(Draft(type="task.link.added", task_id=task.id, payload=payload),))


def unlink(records: Records, command: RemoveLink, _now: int) -> Verdict:
    """Remove an edge; one that is not there changes nothing."""
    task = records.task(command.task_id)
    if problem := _malformed(command):
        return problem
    if command.kind == "parent":
        return _set_parent(task, None) if task.parent_id == command.target_id else Decision()
    if not _has(task, command):
        return Decision()
    payload = {"kind": command.kind, "targetId": command.target_id}
    return Decision(drafts=(Draft(type="task.link.removed", task_id=task.id, payload=payload),))


def _leads_nowhere(records: Records, command: AddLink) -> AofError | None:
    """The refusal for a task or a run that there is not, and for a file outside of the task's folder."""
    target = command.target_id
    if command.kind in TO_FILES and _URL not in target:
        return output.escaping(("target", target))
    if (owner := target_task(command)) is None:
        return None
    task = records.look(owner)
    if task is None:
        return graph.missing(owner)
    if command.kind == TO_RUNS and not 1 <= attempt_of(target) <= task.retry.attempts:
        return InvalidInput(f"{owner} has no run {target}", "name one of its runs", Call("show", {"task_id": owner}))
    return None


def target_task(command: AddLink) -> str | None:
    """The other task that an edge which orders nothing leads to: itself, or the owner of a run."""
    if command.kind in TO_TASKS:
        return command.target_id
    return task_of_run(command.target_id) if command.kind == TO_RUNS else None


def _adopt(records: Records, task: Task, parent_id: str) -> Verdict:
    return bad_parent(records, task, parent_id) or (
        Decision() if task.parent_id == parent_id else _set_parent(task, parent_id)
    )


def bad_parent(records: Records, task: Task, parent_id: str | None) -> AofError | None:
    """Why the task cannot be put below this one; None where it can, or stands there already."""
    if parent_id is None or parent_id == task.parent_id:
        return None
    if refusal := graph.closed_to_children(records, parent_id):
        return refusal
    if not graph.stands_below(records, parent_id, task.id):
        return None
    return DependencyCycle(
        f"{task.id} cannot stand below {parent_id}, which is {task.id} itself or stands below it",
        "choose another parent",
        Call("graph", {"task_id": task.id}),
    )


def _set_parent(task: Task, parent_id: str | None) -> Decision:
    payload = {"changes": {"parentId": parent_id}, "fields": ["parentId"]}
    return Decision(drafts=(Draft(type="task.updated", task_id=task.id, payload=payload),))


def _has(task: Task, command: AddLink | RemoveLink) -> bool:
    return any((edge.kind, edge.target_id) == (command.kind, command.target_id) for edge in task.links)


def _malformed(command: AddLink | RemoveLink) -> AofError | None:
    problem = limits.choice("kind", command.kind, ("parent", *KINDS)) or limits.line(
        "target", command.target_id, _TARGET, required=True
    )
    if problem:
        return problem
    if command.kind in ("parent", *TO_TASKS) and not is_task_id(command.target_id):
        return InvalidInput(f"'{command.target_id[:80]}' is not a task", "name a task by its ID", Call("list", {}))
    if isinstance(command, AddLink) and command.kind == TO_RUNS and task_of_run(command.target_id) is None:
        return InvalidInput(f"'{command.target_id[:80]}' is not a run", "name a run by its ID, such as RUN-…")
    return None
