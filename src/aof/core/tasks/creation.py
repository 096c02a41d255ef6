"""Creating a task, once per idempotency key. Must not know how an ID is reserved."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from aof._support.hashing import hexdigest
from aof.core.errors.base import AofError, Call, InvalidInput
from aof.core.errors.tasks import IdTaken, KeyConflict
from aof.core.evolve import work_log
from aof.core.model.commands import Create
from aof.core.model.events import DELEGATED, SCHEMA_VERSION, Draft
from aof.core.model.ids import is_task_id
from aof.core.model.lifecycle import WAITS_FOR_DEPENDENCIES
from aof.core.model.records import Decision, Records, Verdict
from aof.core.model.task import Retry
from aof.core.tasks import dependencies, graph
from aof.core.validation import limits
from aof.core.validation.task_fields import malformed

_EMPTY: Final[tuple[object, ...]] = (None, (), {})
_MOST_ATTEMPTS: Final = 100
# What is known of the caller, and not a part of the request. Nor is `due`: `+3d` is another moment each time.
_NOT_SAID: Final = ("outside", "session", "vouched", "limited", "conversation", "expect_rev", "undoes", "bulk", "due")


def create(records: Records, command: Create, now: int, more: dict[str, Any] | None = None) -> Verdict:
    """Create the task, or answer with the one that its key already made."""
    if problem := _malformed(command):
        return problem
    if command.key is not None:
        owner_id = records.key_owners[command.key]
        if owner_id is not None:
            return _replay(records, command, owner_id)
    refusal = _impossible_id(records, command.task_id) or bad_edges(records, command.depends_on, command.parent_id)
    if refusal:
        return refusal
    draft = bool(command.metadata.get("draft"))
    fields = _fields(command, "backlog" if draft else command.status, records.policy.max_attempts) | (more or {})
    if command.status == "backlog" and command.depends_on and not draft:
        fields["metadata"] = fields.get("metadata", {}) | {WAITS_FOR_DEPENDENCIES: True}
    front = {name: value for name, value in fields.items() if name != "body"}
    return limits.data("the task", front) or Decision(drafts=born(records, command.task_id, {"task": fields}, now))


def _impossible_id(records: Records, task_id: str) -> AofError | None:
    if not is_task_id(task_id):
        return InvalidInput(f"{task_id[:80]!r} is not a task ID", "use an ID such as TASK-2026-02-21-001")
    if records.look(task_id) is not None:
        call = Call("show", {"task_id": task_id})
        return IdTaken(f"{task_id} exists already", "reserve another ID", call, task_id=task_id)
    return None


def bad_edges(records: Records, depends_on: tuple[str, ...], parent_id: str | None) -> AofError | None:
    """The refusal of a new task that would hang on something missing, or under something cancelled."""
    for dependency in depends_on:
        if records.look(dependency) is None:
            return graph.missing(dependency, "create the dependency first")
    return None if parent_id is None else graph.closed_to_children(records, parent_id)


def born(records: Records, task_id: str, payload: dict[str, Any], now: int) -> tuple[Draft, ...]:
    """The events of a new task; blocked from the start when a dependency of it is dead already."""
    fields = payload["task"]
    drafts = [Draft(type="task.created", task_id=task_id, payload=payload)]
    if not fields.get("metadata", {}).get("draft"):
        drafts.append(Draft(type="task.accepted", task_id=task_id))
        if fields["status"] == "ready":
            drafts.append(Draft(type="task.queued", task_id=task_id))
    dead = dependencies.dead_dependency(records, tuple(fields.get("dependsOn", ())))
    if dead is not None:
        drafts.append(dependencies.hold_at_birth(task_id, dead, now, fields["status"]))
    parent = fields.get("parentId")
    if parent is not None:
        told = {"kind": "child", "targetId": task_id, "parentTaskId": parent}
        drafts.append(Draft(type=DELEGATED, task_id=task_id, payload=told))
    return tuple(drafts)


def _fields(command: Create, status: str, max_attempts: int) -> dict[str, Any]:
    optional: dict[str, Any] = {
        "owner": command.owner,
        "parentId": command.parent_id,
        "dependsOn": list(dict.fromkeys(command.depends_on)),
        "routing": {name: value for name, value in _routing(command).items() if value},
        "acceptance": list(command.acceptance),
        "constraints": command.constraints,
        "profile": command.profile,
        "resource": command.resource,
        "due": command.due,
        "metadata": ({"sessionId": command.conversation} if command.conversation else {}) | command.metadata,
        "body": work_log.ended(command.body),
    }
    fields: dict[str, Any] = {
        "schemaVersion": SCHEMA_VERSION,
        "title": command.title.strip(),
        "status": status,
        "priority": command.priority,
        "createdBy": command.acting,
    }
    fields |= {name: value for name, value in optional.items() if value}
    if command.visibility != "foreground":
        fields["visibility"] = command.visibility
    if (most := command.max_attempts or max_attempts) != Retry().max_attempts:
        fields["retry"] = {"maxAttempts": most}
    if command.key is not None:
        fields["key"] = {"value": command.key, "digest": digest(command)}
    return fields


def _routing(command: Create) -> dict[str, Any]:
    return {
        "agent": command.assignee,
        "role": command.role,
        "team": command.team,
        "tags": list(command.tags),
        "workflow": command.workflow,
    }


def digest(command: Create) -> str:
    """What makes two requests with one key the same request: everything but the caller and the reserved ID."""
    fields = {name: getattr(command, name) for name in Create.__struct_fields__}  # a template is none of the caller's
    request = Create(**fields | {"task_id": "", "actor": "", "run": None})
    said = msgspec.to_builtins(request, order="deterministic")
    for name in _NOT_SAID:
        said.pop(name)
    return hexdigest(msgspec.json.encode(said))[:32]


def _replay(records: Records, command: Create, owner_id: str) -> Verdict:
    owner = records.look(owner_id)
    if owner is not None and owner.key is not None and owner.key.digest == digest(command):
        return Decision(replayed=owner_id)
    return KeyConflict(
        f"the key '{command.key}' already stands for {owner_id}, which was created with other content",
        "use a new key for a new task",
        Call("show", {"task_id": owner_id}),
        task_id=owner_id,
    )


def _malformed(command: Create) -> AofError | None:
    if command.status not in ("ready", "backlog"):
        return InvalidInput(
            f"a task cannot be created as {str(command.status)[:80]!r}", "create it as ready or backlog"
        )
    if command.max_attempts is not None and not 1 <= command.max_attempts <= _MOST_ATTEMPTS:
        return InvalidInput(
            f"'max_attempts' cannot be {command.max_attempts}; choose a number from 1 to {_MOST_ATTEMPTS}",
            "without it, the settings say how often a task is tried",
        )
    given = {
        "title": command.title,
        "body": command.body,
        "priority": command.priority,
        "visibility": command.visibility,
        "owner": command.owner,
        "resource": command.resource,
        "due": command.due,
        "parentId": command.parent_id,
        "dependsOn": command.depends_on,
        "routing": _routing(command),
        "acceptance": command.acceptance,
        "constraints": command.constraints,
        "profile": command.profile,
        "metadata": command.metadata,
    }
    said = {name: value for name, value in given.items() if value not in _EMPTY}
    return limits.key(command.key) or malformed(said)
