"""What people changed in a task's file or where they put it, judged like any other command.

Merged with what the log has written since.
"""

from __future__ import annotations

import difflib
from typing import Any, Final

import msgspec

from aof.errors import AofError, Call, InvalidInput, InvalidTransition
from aof.kernel import limits as kernel_limits
from aof.kernel.commands import CancelTask, Decision, ImportEdit, Records, Verdict
from aof.kernel.events import SCHEMA_VERSION, Draft
from aof.kernel.model import FINISHED, STATUSES, is_task_id, status_allows
from aof.tasks import fields as tasks_fields
from aof.tasks import graph, lifecycle, rules
from aof.tasks.fields import malformed
from aof.tasks.model import Task
from aof.tasks.rules import (
    bad_edges,
    close_run,
    creation_events,
    dead_lettered,
    failure,
    no_draft_any_more,
    no_edge,
    revived,
    to_blocked,
    transition,
)

BY_HAND: Final = "edited by hand"
MOVED: Final = "moved by hand"
BIRTHPLACES: Final = ("backlog", "ready")
THEIRS: Final = frozenset({*(row.key for row in tasks_fields.WHOLE), "body", "extra"})
_NEVER_NULL: Final = {row.key: row.default for row in tasks_fields.WHOLE if not row.nullable} | {"body": ""}


def import_edit(records: Records, command: ImportEdit, now: int) -> Verdict:
    """Record what a person did to a file."""
    if command.created is not None:
        return _adopt(records, command, now)
    task = records.task(command.task_id)
    changes = theirs(command.changes)
    if task.gated and "routing" in changes:
        changes["routing"] = (changes["routing"] or {}) | {"workflow": task.routing.workflow}
    if problem := malformed(changes) or _bad_place(task, command) or _bad_edges(records, task, changes):
        return problem
    after = msgspec.structs.replace(task, depends_on=tuple(changes.get("dependsOn", task.depends_on)))
    followed = _followed(records, task, after, command, now)
    if isinstance(followed, AofError):
        return followed
    drafts: list[Draft] = []
    if changes or command.layout is not None or command.conflicts:
        payload: dict[str, Any] = {"changes": changes, "fields": sorted(changes), "reason": BY_HAND}
        if command.conflicts:
            payload["conflicts"] = list(command.conflicts)
        drafts.append(Draft(type="task.updated", task_id=task.id, payload=payload))
    return Decision(drafts=(*drafts, *no_draft_any_more(task, changes), *followed))


def theirs(given: dict[str, Any]) -> dict[str, Any]:
    """What of the changes is a person's to make; a line that was taken out means the default."""
    changes = {
        name: _NEVER_NULL.get(name) if value is None else value for name, value in given.items() if name in THEIRS
    }
    if isinstance(edges := changes.get("dependsOn"), list | tuple) and all(isinstance(edge, str) for edge in edges):
        changes["dependsOn"] = list(dict.fromkeys(edges))
    return changes


def _followed(records: Records, task: Task, after: Task, command: ImportEdit, now: int) -> tuple[Draft, ...] | AofError:
    """What the move, or the new dependencies, do to the status."""
    if command.status is not None and command.status != task.status:
        return _moved(records, after, command, now)
    held_by = task.blocked.dependency if task.blocked is not None else None
    if task.blocked is not None and held_by is not None and held_by not in after.depends_on:
        return rules.back_to_waiting(records, after, task.blocked.was, now, reason="dependency removed")
    return rules.hold_waiting(records, after, after.depends_on, now) if after.depends_on != task.depends_on else ()


def _bad_place(task: Task, command: ImportEdit) -> AofError | None:
    target = command.status
    if target is None or target == task.status:
        return None
    if target == "in-progress":
        return InvalidTransition(
            f"{task.id} was put into in-progress by hand, but nobody holds a lease",
            f"{_put_back(task)} and claim it",
            Call("claim", {"task_id": task.id, "agent": "…"}),
        )
    if problem := kernel_limits.choice("status", target, STATUSES):
        return problem
    if refusal := _past_its_hops(task, target) or (graph.being_cancelled(task) if target != "cancelled" else None):
        return refusal
    if status_allows(task.status, target) or (target == "ready" and task.status in FINISHED):
        return None
    return no_edge(task, target, _put_back(task))


def _put_back(task: Task) -> str:
    """How a person undoes a move, whether they moved the file or changed its line."""
    return f"move the file back to tasks/{task.status}/, with the line 'status: {task.status}' in it"


def _past_its_hops(task: Task, target: str) -> AofError | None:
    """No file is moved past the gates of a workflow."""
    if not task.gated or not (target in ("done", "review") or (task.status == "review" and target == "ready")):
        return None
    return InvalidTransition(
        f"{task.id} is in a DAG workflow and was put into {target} by hand",
        f"{_put_back(task)}; only the outcomes of its hops move it on",
        Call("complete", {"task_id": task.id, "outcome": "complete", "summary": "…"}),
    )


def _moved(records: Records, task: Task, command: ImportEdit, now: int) -> tuple[Draft, ...] | AofError:
    target = str(command.status)
    if target == "ready" and task.status in FINISHED:
        above = task.parent_id is not None and records.find(task.parent_id) is not None
        refusal = graph.closed_to_children(records, str(task.parent_id)) if above else None
        return refusal or revived(records, task, now, MOVED)
    if target == "cancelled":
        asked = CancelTask(actor=command.actor, agent=command.agent, task_id=task.id, reason=MOVED)
        verdict = lifecycle.cancel(records, asked, now)
        return verdict if isinstance(verdict, AofError) else verdict.drafts
    closed = close_run(task, now, status="cancelled", code="moved_by_hand")
    if target == "deadletter":
        error = failure(task, now, "moved_by_hand", MOVED, "failed")
        return (*closed, *dead_lettered(records, task, now, reason=MOVED, error=error))
    if target == "blocked":
        return (*closed, to_blocked(task, now, kind="blocked", reason=MOVED, by=command.acting))
    if target in ("ready", "backlog"):
        return (*closed, *rules.back_to_waiting(records, task, target, now, reason=MOVED))
    return _unopposed(records, task, target, closed)


def _unopposed(records: Records, task: Task, target: str, closed: tuple[Draft, ...]) -> tuple[Draft, ...] | AofError:
    """Into `review`, or into `done`: who moves a file there approves it."""
    if target != "done":
        return (*closed, transition(task, target, reason=MOVED))
    refusal = lifecycle.not_reconciled(task, lifecycle.open_points(records, task, approved=True))
    return refusal or (*closed, transition(task, target, reason=MOVED, **lifecycle.vouched(task)))


def _adopt(records: Records, command: ImportEdit, now: int) -> Verdict:
    given = {name: value for name, value in (command.created or {}).items() if value is not None}
    fields: dict[str, Any] = {"title": None, "priority": "normal"} | theirs(given)
    status = command.status or "backlog"
    if status not in BIRTHPLACES:
        return InvalidInput(f"a new task cannot begin in {status[:80]!r}", "put the file into backlog/ or ready/")
    if not is_task_id(command.task_id) or records.find(command.task_id) is not None:
        return InvalidInput(f"{command.task_id[:80]!r} cannot name a new task", "rename the file")
    problem = malformed(fields) or bad_edges(records, tuple(fields.get("dependsOn", ())), fields.get("parentId"))
    if problem:
        return problem
    fields |= {"schemaVersion": SCHEMA_VERSION, "status": status, "createdBy": command.acting}
    return Decision(drafts=creation_events(records, command.task_id, {"task": fields, "reason": BY_HAND}, now))


def _bad_edges(records: Records, task: Task, changes: dict[str, Any]) -> AofError | None:
    for blocker in changes.get("dependsOn", ()):
        if blocker in task.depends_on:
            continue
        if records.find(blocker) is None:
            return graph.missing(blocker)
        if circle := rules.closed_circle(records, task.id, blocker):
            return circle
    parent = changes.get("parentId")
    if parent is None or parent == task.parent_id:
        return None
    if is_task_id(parent) and graph.stands_below(records, parent, task.id):
        return InvalidInput(f"{task.id} cannot stand below itself", "correct 'parentId' in the file")
    return graph.closed_to_children(records, parent)


_COMPARISONS: Final = 4_000_000

_Edit = tuple[int, int, list[str]]


def merge_fields(
    base: dict[str, Any], ours: dict[str, Any], theirs: dict[str, Any]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What the person changed and the log did not, and the names that both changed in different ways.

    A field that the person took away comes as None.
    """
    changes: dict[str, Any] = {}
    conflicts: list[str] = []
    for name in sorted(base.keys() | theirs.keys()):
        before, mine, wanted = base.get(name), ours.get(name), theirs.get(name)
        if _same(wanted, before) or _same(wanted, mine):
            continue
        if _same(mine, before):
            changes[name] = wanted
        else:
            conflicts.append(name)
    return changes, tuple(conflicts)


def _same(one: Any, other: Any) -> bool:
    """Whether two values are one in JSON, where 1, 1.0 and true differ."""
    return one == other and msgspec.json.encode(one, order="sorted") == msgspec.json.encode(other, order="sorted")


def merge_text(base: str, ours: str, theirs: str) -> str | None:
    """Both sides' changes to the lines of a text; None when they touch the same or neighbouring lines."""
    if theirs in (base, ours):
        return ours
    if ours == base:
        return theirs
    lines = base.splitlines(keepends=True)
    mine = _edits(lines, ours.splitlines(keepends=True))
    edits = mine + [edit for edit in _edits(lines, theirs.splitlines(keepends=True)) if edit not in mine]
    edits.sort(key=lambda edit: (edit[0], edit[1]))
    merged: list[str] = []
    position = -1
    for start, end, replacement in edits:
        if start <= position:
            return None
        merged += lines[max(position, 0) : start] + replacement
        position = end
    return "".join(merged + lines[max(position, 0) :])


def _edits(before: list[str], after: list[str]) -> list[_Edit]:
    """The changed ranges. Where comparing would take too long, all between the first and last difference is one."""
    shorter = min(len(before), len(after))
    head = next((at for at in range(shorter) if before[at] != after[at]), shorter)
    tail = next((at for at in range(shorter - head) if before[-1 - at] != after[-1 - at]), shorter - head)
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    if len(old) * len(new) > _COMPARISONS:
        return [(head, head + len(old), new)]
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    return [(head + i1, head + i2, new[j1:j2]) for tag, i1, i2, j1, j2 in matcher.get_opcodes() if tag != "equal"]
