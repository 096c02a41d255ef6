"""Creating and changing a task.

Status changes, dependencies, links, fields, comments, and the ends of its attempts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from aof.errors import (
    AofError,
    Call,
    DependencyCycle,
    IdTaken,
    InvalidInput,
    InvalidTransition,
    KeyConflict,
    TaskRunning,
)
from aof.kernel import limits as kernel_limits
from aof.kernel import model as kernel_model
from aof.kernel.commands import (
    AddDependency,
    AddLink,
    ArchiveTask,
    Comment,
    Create,
    Decision,
    Edit,
    Records,
    RemoveDependency,
    RemoveLink,
    UnarchiveTask,
    Update,
    Verdict,
)
from aof.kernel.events import DELEGATED, SCHEMA_VERSION, Draft
from aof.kernel.limits import DEPENDENCIES
from aof.kernel.model import (
    FAILED,
    FINISHED,
    OURSELVES,
    TRANSITIONS,
    WAITS_FOR_DEPENDENCIES,
    attempt_of,
    is_task_id,
    iso,
    task_of_run,
)
from aof.support.hashing import hexdigest
from aof.tasks import body as tasks_body
from aof.tasks import fields as tasks_fields
from aof.tasks import graph
from aof.tasks.fields import malformed
from aof.tasks.graph import find_path, missing
from aof.tasks.model import Lease, Retry, Task
from aof.workflows import model as workflows_model

_EMPTY: Final[tuple[object, ...]] = (None, (), {})
_MOST_ATTEMPTS: Final = 100
# What is known of the caller, and not a part of the request.
_NOT_SAID: Final = (
    "outside",
    "unnamed",
    "session",
    "vouched",
    "limited",
    "conversation",
    "expect_rev",
    "undoes",
    "bulk",
)
# Fields that are in the digest of every request, as they were in those that logs have; others only where they are said.
_ALWAYS_SAID: Final = ("owner", "resource", "visibility", "acceptance", "constraints", "profile")


def create(records: Records, command: Create, now: int, more: dict[str, Any] | None = None) -> Verdict:
    """Create the task, or answer with the one that its key already made."""
    if problem := _bad_creation(command):
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
    return kernel_limits.data("the task", front) or Decision(
        drafts=creation_events(records, command.task_id, {"task": fields}, now)
    )


def _impossible_id(records: Records, task_id: str) -> AofError | None:
    if not is_task_id(task_id):
        return InvalidInput(f"{task_id[:80]!r} is not a task ID", "use an ID such as TASK-2026-02-21-001")
    if records.find(task_id) is not None:
        call = Call("show", {"task_id": task_id})
        return IdTaken(f"{task_id} exists already", "reserve another ID", call, task_id=task_id)
    return None


def bad_edges(records: Records, depends_on: tuple[str, ...], parent_id: str | None) -> AofError | None:
    """The refusal of a new task that would hang on something missing, or under something cancelled."""
    for dependency in depends_on:
        if records.find(dependency) is None:
            return graph.missing(dependency, "create the dependency first")
    return None if parent_id is None else graph.closed_to_children(records, parent_id)


def creation_events(records: Records, task_id: str, payload: dict[str, Any], now: int) -> tuple[Draft, ...]:
    """The events of a new task; blocked from the start when a dependency of it is dead already."""
    fields = payload["task"]
    drafts = [Draft(type="task.created", task_id=task_id, payload=payload)]
    if not fields.get("metadata", {}).get("draft"):
        drafts.append(Draft(type="task.accepted", task_id=task_id))
        if fields["status"] == "ready":
            drafts.append(Draft(type="task.queued", task_id=task_id))
    dead = dead_dependency(records, tuple(fields.get("dependsOn", ())))
    if dead is not None:
        drafts.append(hold_at_birth(task_id, dead, now, fields["status"]))
    parent = fields.get("parentId")
    if parent is not None:
        told = {"kind": "child", "targetId": task_id, "parentTaskId": parent}
        drafts.append(Draft(type=DELEGATED, task_id=task_id, payload=told))
    return tuple(drafts)


def _fields(command: Create, status: str, max_attempts: int) -> dict[str, Any]:
    optional: dict[str, Any] = {
        "parentId": command.parent_id,
        "dependsOn": list(dict.fromkeys(command.depends_on)),
        "routing": {name: value for name, value in _routing(command).items() if value},
        **{key: value for key, value in command.fields.items() if value != tasks_fields.BY_KEY[key].default},
        "metadata": ({"sessionId": command.conversation} if command.conversation else {}) | command.metadata,
        "body": tasks_body.ended(command.body),
    }
    fields: dict[str, Any] = {
        "schemaVersion": SCHEMA_VERSION,
        "title": command.title.strip(),
        "status": status,
        "priority": command.priority,
        "createdBy": command.acting,
    }
    fields |= {name: value for name, value in optional.items() if value}
    if (most := command.max_attempts or max_attempts) != Retry().max_attempts:
        fields["retry"] = {"maxAttempts": most}
    if command.key is not None:
        fields["key"] = {"value": command.key, "digest": request_digest(command)}
    return fields


def _routing(command: Create) -> dict[str, Any]:
    return {
        "agent": command.assignee,
        "role": command.role,
        "team": command.team,
        "tags": list(command.tags),
        "workflow": command.workflow,
    }


def request_digest(command: Create) -> str:
    """What makes two requests with one key the same request: everything but the caller and the reserved ID.

    A moment is left out: `+3d` is another one each time.
    """
    request = {name: getattr(command, name) for name in Create.__struct_fields__}  # a template is none of the caller's
    request |= {"task_id": "", "actor": "", "run": None}
    given, metadata, most = request.pop("fields"), request.pop("metadata"), request.pop("max_attempts")
    request |= {name: given.get(name, tasks_fields.BY_KEY[name].default) for name in _ALWAYS_SAID}
    request |= {"metadata": metadata, "max_attempts": most}
    for row in tasks_fields.PLAIN:
        if row.key not in _ALWAYS_SAID and row.kind != "moment" and given.get(row.key) is not None:
            request[row.key] = given[row.key]
    said = {
        name: msgspec.to_builtins(value, order="deterministic")
        for name, value in request.items()
        if name not in _NOT_SAID
    }
    return hexdigest(msgspec.json.encode(said))[:32]


def _replay(records: Records, command: Create, owner_id: str) -> Verdict:
    owner = records.find(owner_id)
    if owner is not None and owner.key is not None and owner.key.digest == request_digest(command):
        return Decision(replayed=owner_id)
    return KeyConflict(
        f"the key '{command.key}' already stands for {owner_id}, which was created with other content",
        "use a new key for a new task",
        Call("show", {"task_id": owner_id}),
        task_id=owner_id,
    )


def _bad_creation(command: Create) -> AofError | None:
    if command.status not in ("ready", "backlog"):
        return InvalidInput(
            f"a task cannot be created as {str(command.status)[:80]!r}", "create it as ready or backlog"
        )
    if command.max_attempts is not None and not 1 <= command.max_attempts <= _MOST_ATTEMPTS:
        return InvalidInput(
            f"'max_attempts' cannot be {command.max_attempts}; choose a number from 1 to {_MOST_ATTEMPTS}",
            "without it, the settings say how often a task is tried",
        )
    if unknown := command.fields.keys() - {row.key for row in tasks_fields.PLAIN}:
        there = ", ".join(row.key for row in tasks_fields.PLAIN)
        return InvalidInput(f"{min(unknown)[:80]!r} is no field of a new task", f"use one or more of: {there}")
    given = {
        "title": command.title,
        "body": command.body,
        "priority": command.priority,
        "parentId": command.parent_id,
        "dependsOn": command.depends_on,
        "routing": _routing(command),
        **command.fields,
        "metadata": command.metadata,
    }
    said = {name: value for name, value in given.items() if value not in _EMPTY}
    return kernel_limits.key(command.key) or malformed(said)


_DEFAULTS: Final[dict[str, Any]] = {row.key: row.default for row in tasks_fields.WHOLE if row.edits}


def edit(records: Records, command: Edit, _now: int) -> Verdict:
    """Apply any subset of the editable fields in one commit; equal values write nothing."""
    task = records.task(command.task_id)
    if problem := _not_editable(task, command.changes) or malformed(command.changes):
        return problem
    current, changes = _current(task), changed_fields(task, command.changes)
    if refusal := bad_parent(records, task, changes.get("parentId")):
        return refusal
    if "description" in command.changes:
        body = tasks_body.with_description(task.body, command.changes["description"] or "")
        changes |= {"body": body} if body != task.body else {}
    if not changes:
        return Decision()
    if task.extra.keys() & changes.keys():  # a person's own keys, from before there was a field of that name
        changes["extra"] = {name: value for name, value in task.extra.items() if name not in changes}
    kept = {name: (current | changes)[name] for name in _DEFAULTS}
    if problem := kernel_limits.data("the task", kept | {"context": task.context}):
        return problem
    fields = [name for name in command.changes if ("body" if name == "description" else name) in changes]
    updated = Draft(type="task.updated", task_id=task.id, payload={"changes": changes, "fields": fields})
    return Decision(drafts=(updated, *no_draft_any_more(task, changes)))


def changed_fields(task: Task, given: dict[str, Any]) -> dict[str, Any]:
    """The fields whose values an edit would change, with what they would be; the description is not among them."""
    if malformed(given) or not set(given) <= {*tasks_fields.EDITABLE}:
        return {}
    # Over JSON, so that lists and tuples compare as what the file will hold.
    asked: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(given))
    current = _current(task)
    routing = asked.get("routing")
    if routing and routing.get("tags") == []:  # as a task without tags has it
        routing["tags"] = None
    wanted = {name: _wanted(current[name], value) for name, value in asked.items() if name != "description"}
    return {name: value for name, value in wanted.items() if value != current[name]}


def _current(task: Task) -> dict[str, Any]:
    whole: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(task))
    return _DEFAULTS | whole


def _not_editable(task: Task, given: dict[str, Any]) -> AofError | None:
    wrong = ", ".join(sorted(str(name)[:80] for name in set(given) - {*tasks_fields.EDITABLE}))
    if given and not wrong:
        return None
    return InvalidInput(
        f"{wrong} cannot be edited" if wrong else "there is nothing to change",
        f"give one or more of: {', '.join(tasks_fields.EDITABLE)}",
        Call("edit", {"task_id": task.id, "title": "…"}),
    )


def _wanted(current: Any, given: Any) -> Any:
    """Of an object only the keys that are given change, and a null takes one away; a null takes a whole field away."""
    if isinstance(current, dict):
        merged = current | given if given is not None else {}
        return {name: value for name, value in merged.items() if value is not None or name not in given}
    if isinstance(current, list):
        return given or []
    return given.strip() if isinstance(given, str) else given


def no_draft_any_more(task: Task, changes: dict[str, Any]) -> tuple[Draft, ...]:
    """A draft is accepted when its mark is taken away."""
    cleared = task.metadata.get("draft") and "metadata" in changes and not (changes["metadata"] or {}).get("draft")
    return (Draft(type="task.accepted", task_id=task.id),) if cleared else ()


def comment(records: Records, command: Comment, now: int) -> Verdict:
    """Add a comment; anybody may, whatever the status."""
    task, author = records.task(command.task_id), command.acting
    if problem := kernel_limits.text("text", command.text, kernel_limits.NOTES, required=True):
        return problem
    body = tasks_body.add_comment(task.body, kernel_model.iso(now), author, command.text)
    said = {"by": author, "text": command.text.strip()}
    return kernel_limits.text("the body with all comments", body, kernel_limits.BODY) or Decision(
        drafts=(Draft(type="task.commented", task_id=task.id, payload=said),)
    )


def archive(records: Records, command: ArchiveTask, _now: int) -> Verdict:
    """Archive a finished task."""
    task = records.task(command.task_id)
    if task.archived:
        return Decision()
    if task.status not in FINISHED:
        return InvalidTransition(
            f"{task.id} is {task.status}; only a done, cancelled or dead task can be archived",
            "cancel it first if it is not wanted",
            Call("cancel", {"task_id": task.id}),
            status=task.status,
        )
    told = {"reason": command.reason} if command.reason is not None else {}
    return Decision(drafts=(Draft(type="task.archived", task_id=task.id, payload=told),))


def unarchive(records: Records, command: UnarchiveTask, _now: int) -> Verdict:
    """Take a task out of the archive; one that is not archived stays as it is."""
    task = records.task(command.task_id)
    return Decision(drafts=(Draft(type="task.unarchived", task_id=task.id),) if task.archived else ())


def write_body(task: Task, command: Update, by: str) -> Draft | None:
    """The event of a new body, which keeps the comments, of an entry in its work log, or of both, if any."""
    fresh = command.body
    body = tasks_body.with_comments_of(task.body, tasks_body.ended(fresh)) if fresh is not None else task.body
    changes = {"body": body} if body != task.body else {}
    payload: dict[str, Any] = {"changes": changes, "fields": [*changes]}
    if command.note is not None:
        payload |= {"workLog": f"{by}: {command.note}", "fields": [*changes, "workLog"]}
    return Draft(type="task.updated", task_id=task.id, payload=payload) if payload["fields"] else None


def transition(task: Task, target: str, *, origin: str | None = None, reason: str | None = None, **more: Any) -> Draft:
    """The event of a status change; `origin` where the task is not in its stored status any more."""
    payload: dict[str, Any] = {"from": origin or task.status, "to": target}
    if reason:
        payload["reason"] = reason
    return Draft(type="task.transitioned", task_id=task.id, payload=payload | more)


def to_blocked(
    task: Task,
    now: int,
    *,
    kind: str,
    reason: str,
    by: str,
    origin: str | None = None,
    dependency: str | None = None,
    **more: Any,
) -> Draft:
    """The event of becoming blocked. Only from `backlog` a task returns there; from elsewhere it returns to `ready`."""
    return transition(
        task, "blocked", origin=origin, **_why(now, kind, reason, by, origin or task.status, dependency), **more
    )


def born_blocked(task_id: str, now: int, *, reason: str, origin: str, dependency: str) -> Draft:
    """The event by which a task that is created in this very commit becomes blocked."""
    payload = {"from": origin, "to": "blocked", **_why(now, "blocked", reason, OURSELVES, origin, dependency)}
    return Draft(type="task.transitioned", task_id=task_id, payload=payload)


def _why(  # noqa: PLR0917 - the facts that `blocked` holds
    now: int, kind: str, reason: str, by: str, origin: str, dependency: str | None
) -> dict[str, Any]:
    blocked: dict[str, Any] = {"kind": kind, "reason": reason, "by": by, "since": iso(now)}
    if origin == "backlog":
        blocked["was"] = origin
    if dependency is not None:
        blocked["dependency"] = dependency
    return {"reason": reason, "blocked": blocked}


def no_edge(task: Task, target: str, hint: str = "", call: Call | None = None, *, only: str = "") -> InvalidTransition:
    """The refusal that names both statuses and lists where the task may go, or says what `only` the verb is for."""
    allowed = ", ".join(TRANSITIONS[task.status]) or "nowhere but by retry"
    return InvalidTransition(
        f"{task.id} is {task.status}; {only}"
        if only
        else f"{task.id} is {task.status} and cannot go to {target}; from {task.status} it may go to: {allowed}",
        hint or "choose one of these, or retry a finished task",
        call or Call("show", {"task_id": task.id}),
        status=task.status,
        allowed=list(TRANSITIONS[task.status]),
    )


_HELD = ("backlog", "ready")


def add_dependency(records: Records, command: AddDependency, now: int) -> Verdict:
    """Let a task wait for another, unless that would make it wait for itself."""
    task, blocker_id = records.task(command.task_id), command.blocker_id
    blocker = records.find(blocker_id)
    if blocker is None:
        return missing(blocker_id)
    if blocker_id in task.depends_on:
        return Decision()
    if len(task.depends_on) >= DEPENDENCIES:
        return InvalidInput(f"{task.id} has {DEPENDENCIES} dependencies already", "group some of them under one task")
    if refusal := closed_circle(records, task.id, blocker_id) or _running(task):
        return refusal
    edges = [*task.depends_on, blocker_id]
    added = Draft(type="task.dependency.updated", task_id=task.id, payload={"dependsOn": edges, "added": blocker_id})
    held = (held_by(task, blocker, now),) if blocker.status in FAILED and task.status in _HELD else ()
    return Decision(drafts=(added, *held))


def _running(task: Task) -> TaskRunning | None:
    """The refusal to let work wait that somebody has begun: it would go on, and nobody would notice the edge."""
    held = workflows_model.leases(task)
    if not held:
        return None
    return TaskRunning(
        f"{held[0].agent} is running {task.id}, so it cannot begin to wait",
        "release it first",
        Call("release", {"task_id": task.id, "run": held[0].run_id}),
        holder=held[0].agent,
        run_id=held[0].run_id,
    )


def closed_circle(records: Records, task_id: str, blocker_id: str) -> DependencyCycle | None:
    """The refusal for an edge by which the task would wait for itself, with the way around."""
    path = find_path(records.reachable[blocker_id], blocker_id, task_id)
    if not path:
        return None
    if task_id == blocker_id:
        return DependencyCycle(
            f"{task_id} cannot wait for itself", "name another task", Call("show", {"task_id": task_id}), path=[task_id]
        )
    return DependencyCycle(
        f"{task_id} cannot wait for {blocker_id}: {' → '.join((task_id, *path))} would be a circle",
        "remove one of these dependencies first",
        Call("dep_remove", {"task_id": path[-2], "blocker_id": path[-1]}),
        path=[task_id, *path],
    )


def remove_dependency(records: Records, command: RemoveDependency, now: int) -> Verdict:
    """Let a task no longer wait for another; what was blocked because of it goes on."""
    task = records.task(command.task_id)
    if command.blocker_id not in task.depends_on:
        return Decision() if records.find(command.blocker_id) is not None else missing(command.blocker_id)
    edges = [edge for edge in task.depends_on if edge != command.blocker_id]
    payload = {"dependsOn": edges, "removed": command.blocker_id}
    removed = Draft(type="task.dependency.updated", task_id=task.id, payload=payload)
    if task.blocked is None or task.blocked.dependency != command.blocker_id:
        return Decision(drafts=(removed,))
    freed = back_to_waiting(records, task, task.blocked.was, now, reason="dependency removed", but=command.blocker_id)
    return Decision(drafts=(removed, *freed))


def dead_dependency(records: Records, edges: tuple[str, ...], but: str | None = None) -> Task | None:
    """The first of the dependencies that was cancelled or died."""
    for edge in edges:
        blocker = records.find(edge) if edge != but else None
        if blocker is not None and blocker.status in FAILED:
            return blocker
    return None


def back_to_waiting(
    records: Records,
    task: Task,
    target: str,
    now: int,
    *,
    reason: str,
    but: str | None = None,
    **more: Any,
) -> tuple[Draft, ...]:
    """Return to `ready` or `backlog`; on to `blocked` where a dependency has died in the meantime."""
    moved = transition(task, target, reason=reason, **more)
    dead = dead_dependency(records, task.depends_on, but)
    return (moved,) if dead is None else (moved, held_by(task, dead, now, origin=target))


def cascade(records: Records, died: tuple[str, ...], status: str, now: int) -> tuple[Draft, ...]:
    """Dependents of tasks that were cancelled or died become blocked, each once, and say why."""
    drafts: list[Draft] = []
    told = set(died)
    for dead_id in died:
        for dependent_id in records.dependents[dead_id]:
            dependent = records.find(dependent_id)
            if (
                dependent is None
                or dependent_id in told
                or dependent.status not in _HELD
                or dependent.cancel is not None
            ):
                continue
            told.add(dependent_id)
            reason = f"dependency {dead_id} is {status}"
            drafts.append(to_blocked(dependent, now, kind="blocked", reason=reason, by=OURSELVES, dependency=dead_id))
    return tuple(drafts)


def edge_status(status: str) -> str:
    """How an edge stands whose deciding end has this status."""
    return "broken" if status in FAILED else "satisfied" if status == "done" else "active"


def tell_dependents(records: Records, drafts: tuple[Draft, ...]) -> tuple[Draft, ...]:
    """The drafts, and one at each unfinished dependent of a task that ends or begins again: its edge has changed."""
    last = {draft.task_id: place for place, draft in enumerate(drafts) if draft.type == "task.transitioned"}
    found: list[Draft] = []
    for place, draft in enumerate(drafts):
        found.append(draft)
        blocker = records.tasks.get(draft.task_id)
        if last.get(draft.task_id) != place or blocker is None:
            continue
        status = edge_status(draft.payload["to"])
        if status != edge_status(blocker.status):
            payload = {"kind": "blocked_by", "targetId": blocker.id, "status": status}
            found += [
                Draft(type="task.dependency.updated", task_id=one, payload=payload)
                for one in records.dependents.get(blocker.id, ())
                if (dependent := records.find(one)) is not None and dependent.status not in FINISHED
            ]
    return tuple(found)


def release_dependents(records: Records, revived: str, now: int) -> tuple[Draft, ...]:
    """What was blocked only because this task was dead goes back to where it was."""
    drafts: list[Draft] = []
    for dependent_id in records.dependents[revived]:
        dependent = records.find(dependent_id)
        if dependent is not None and dependent.blocked is not None and dependent.blocked.dependency == revived:
            reason = f"dependency {revived} is retried"
            drafts += back_to_waiting(records, dependent, dependent.blocked.was, now, reason=reason, but=revived)
    return tuple(drafts)


def hold_at_birth(task_id: str, dead: Task, now: int, origin: str) -> Draft:
    """A new task whose dependency is dead already is blocked from the start."""
    reason = f"dependency {dead.id} is {dead.status}"
    return born_blocked(task_id, now, reason=reason, origin=origin, dependency=dead.id)


def hold_waiting(records: Records, task: Task, edges: tuple[str, ...], now: int) -> tuple[Draft, ...]:
    """Block a waiting task at once when one of its new dependencies is dead already."""
    dead = dead_dependency(records, edges)
    return () if dead is None or task.status not in _HELD else (held_by(task, dead, now),)


def held_by(task: Task, dead: Task, now: int, origin: str | None = None) -> Draft:
    """The event by which a dead dependency blocks a task."""
    reason = f"dependency {dead.id} is {dead.status}"
    return to_blocked(task, now, kind="blocked", reason=reason, by=OURSELVES, origin=origin, dependency=dead.id)


def dead_lettered(records: Records, task: Task, now: int, *, reason: str, error: dict[str, str]) -> tuple[Draft, ...]:
    """Give the task up: `deadletter` with the cause on it, its dependents told."""
    dead = transition(task, "deadletter", reason=reason, error=error)
    return (dead, *cascade(records, (task.id,), "deadletter", now))


def revived(records: Records, task: Task, now: int, reason: str) -> tuple[Draft, ...]:
    """A finished task is ready again, and so is what was blocked because of it."""
    freed = release_dependents(records, task.id, now)
    return (by_hand(task, reason), *back_to_waiting(records, task, "ready", now, reason=reason), *freed)


def by_hand(task: Task, reason: str) -> Draft:
    """A retry on request: the count of failures starts over, and there is no wait."""
    payload = {"reason": reason, "attempt": task.retry.attempts + 1, "cause": "rerun", "byHand": True}
    return Draft(type="task.retrying", task_id=task.id, payload=payload)


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
    if problem := _links_malformed(command) or kernel_limits.text("reason", command.reason, kernel_limits.REASON):
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
    if problem := _links_malformed(command):
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
        return tasks_fields.escaping_reference(("target", target))
    if (owner := target_task(command)) is None:
        return None
    task = records.find(owner)
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


def _links_malformed(command: AddLink | RemoveLink) -> AofError | None:
    problem = kernel_limits.choice("kind", command.kind, ("parent", *KINDS)) or kernel_limits.line(
        "target", command.target_id, _TARGET, required=True
    )
    if problem:
        return problem
    if command.kind in ("parent", *TO_TASKS) and not is_task_id(command.target_id):
        return InvalidInput(f"'{command.target_id[:80]}' is not a task", "name a task by its ID", Call("list", {}))
    if isinstance(command, AddLink) and command.kind == TO_RUNS and task_of_run(command.target_id) is None:
        return InvalidInput(f"'{command.target_id[:80]}' is not a run", "name a run by its ID, such as RUN-…")
    return None


HOST_DIED: Final = "host_died"


def close_run(
    task: Task, now: int, *, status: str, code: str, message: str = "", cause: str | None = None, counts: bool = False
) -> tuple[Draft, ...]:
    """Close the current run, if one is open, or those of all hops. Only what counts as a failure uses up an attempt."""
    if task.cancel is not None and task.cancel.stopped:
        return ()
    how: dict[str, Any] = {"status": status, "code": code, "message": message, "cause": cause, "counts": counts}
    if task.gated:
        return close_hops(workflows_model.workflow_of(task).running(), task, now, **how)
    return () if task.lease is None else (_closed(task, task.lease, now, **how),)


def close_hop(task: Task, run: str, now: int, *, status: str, code: str) -> tuple[Draft, ...] | None:
    """Close one run while other runs of the task have a host; None where it is the last one with a host."""
    running = workflows_model.workflow_of(task).running()
    hosted = {hop.lease.run_id for hop in running if hop.lease is not None and hop.lease.worker != "pull"}
    if not hosted - {run}:
        return None
    return close_hops((hop for hop in running if hop.run_id == run), task, now, status=status, code=code)


def close_hops(
    hops: Iterable[workflows_model.HopState],
    task: Task,
    now: int,
    *,
    status: str,
    code: str,
    message: str = "",
    cause: str | None = None,
    counts: bool = False,
) -> tuple[Draft, ...]:
    """The events that end the runs of these hops without a result."""
    how: dict[str, Any] = {"status": status, "code": code, "message": message, "cause": cause, "counts": counts}
    return tuple(_closed(task, hop.lease, now, hop=hop.id, **how) for hop in hops if hop.lease is not None)


def _closed(
    task: Task,
    lease: Lease,
    now: int,
    *,
    status: str,
    code: str,
    message: str,
    cause: str | None,
    counts: bool,
    hop: str | None = None,
) -> Draft:
    payload: dict[str, Any] = {} if hop is None else {"hop": hop}
    cause = cause or _ending(status, code)
    payload |= {
        "agent": lease.agent,
        "status": status,
        "error": failure(task, now, code, message, cause) | {"runId": lease.run_id},
        "counts": counts,
        "cause": next_cause(cause, code) if counts else code,
    }
    return Draft(type="task.attempt.failed", task_id=task.id, run_id=lease.run_id, payload=payload)


def _ending(status: str, code: str) -> str:
    """How a run ended whose end nobody reported: what was done to its task."""
    if status in ("cancelled", "released"):
        return code if code in ("paused", "blocked") else status
    return "failed"


def next_cause(cause: str, code: str) -> str:
    """Why the run after a failed one is a new one."""
    if code == HOST_DIED:
        return "crash_recovery"
    return "lost_worker" if cause == "lost" else "retry"


def failure(task: Task, now: int, code: str, message: str, cause: str) -> dict[str, str]:
    """What went wrong, in the form that records hold."""
    error = {"code": code, "message": message or code, "at": iso(now), "cause": cause}
    return error | {"runId": task.lease.run_id} if task.lease else error
