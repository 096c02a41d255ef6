"""Changing the fields of a task, commenting on it, and archiving it. Must not know rights."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from aof.core.errors.base import AofError, Call, InvalidInput
from aof.core.errors.tasks import InvalidTransition
from aof.core.evolve import comments, work_log
from aof.core.model import times
from aof.core.model.commands import ArchiveTask, Comment, Edit, UnarchiveTask, Update
from aof.core.model.events import Draft
from aof.core.model.lifecycle import FINISHED
from aof.core.model.records import Decision, Records, Verdict
from aof.core.model.task import Task
from aof.core.tasks import links
from aof.core.validation import limits
from aof.core.validation.task_fields import malformed

_DEFAULTS: Final[dict[str, Any]] = {
    "title": "",
    "priority": "normal",
    "routing": {},
    "owner": None,
    "acceptance": [],
    "constraints": {},
    "profile": {},
    "resource": None,
    "visibility": "foreground",
    "due": None,
    "parentId": None,
    "metadata": {},
}
EDITABLE: Final = ("description", *_DEFAULTS)


def edit(records: Records, command: Edit, _now: int) -> Verdict:
    """Apply any subset of the editable fields in one commit; equal values write nothing."""
    task = records.task(command.task_id)
    if problem := _not_editable(task, command.changes) or malformed(command.changes):
        return problem
    current, changes = _current(task), changed(task, command.changes)
    if refusal := links.bad_parent(records, task, changes.get("parentId")):
        return refusal
    if "description" in command.changes:
        body = work_log.with_description(task.body, command.changes["description"] or "")
        changes |= {"body": body} if body != task.body else {}
    if not changes:
        return Decision()
    kept = {name: (current | changes)[name] for name in _DEFAULTS}
    if problem := limits.data("the task", kept | {"context": task.context}):
        return problem
    fields = [name for name in command.changes if ("body" if name == "description" else name) in changes]
    updated = Draft(type="task.updated", task_id=task.id, payload={"changes": changes, "fields": fields})
    return Decision(drafts=(updated, *no_draft_any_more(task, changes)))


def changed(task: Task, given: dict[str, Any]) -> dict[str, Any]:
    """The fields whose values an edit would change, with what they would be; the description is not among them."""
    if malformed(given) or not set(given) <= set(EDITABLE):
        return {}
    # Over JSON, so that lists and tuples compare as what the file will hold.
    asked: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(given))
    current = _current(task)
    wanted = {name: _wanted(current[name], value) for name, value in asked.items() if name != "description"}
    return {name: value for name, value in wanted.items() if value != current[name]}


def _current(task: Task) -> dict[str, Any]:
    whole: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(task))
    return _DEFAULTS | whole


def _not_editable(task: Task, given: dict[str, Any]) -> AofError | None:
    if given and set(given) <= set(EDITABLE):
        return None
    wrong = ", ".join(sorted(str(name)[:80] for name in set(given) - set(EDITABLE)))
    return InvalidInput(
        f"{wrong} cannot be edited" if wrong else "there is nothing to change",
        f"give one or more of: {', '.join(EDITABLE)}",
        Call("edit", {"task_id": task.id, "title": "…"}),
    )


def _wanted(current: Any, given: Any) -> Any:
    """Of an object only the keys that are given change, and a null takes one away; a null takes a whole field away."""
    if isinstance(current, dict):
        merged = current | given if given is not None else {}
        return {name: value for name, value in merged.items() if value is not None and value != []}
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
    if problem := limits.text("text", command.text, limits.NOTES, required=True):
        return problem
    body = comments.add(task.body, times.iso(now), author, command.text)
    said = {"by": author, "text": command.text.strip()}
    return limits.text("the body with all comments", body, limits.BODY) or Decision(
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
    body = work_log.with_comments_of(task.body, work_log.ended(fresh)) if fresh is not None else task.body
    changes = {"body": body} if body != task.body else {}
    payload: dict[str, Any] = {"changes": changes, "fields": [*changes]}
    if command.note is not None:
        payload |= {"workLog": f"{by}: {command.note}", "fields": [*changes, "workLog"]}
    return Draft(type="task.updated", task_id=task.id, payload=payload) if payload["fields"] else None
