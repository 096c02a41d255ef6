"""Reads beads: one JSON object per line, as in `.beads/issues.jsonl`. Must not know any other tool."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from aof.core.errors.base import InvalidInput
from aof.core.model.kinds import Priority
from aof.documents.interchange import model
from aof.documents.interchange.model import ForeignTask, Reading, SourceFile, Target

_STATUS: Final[Mapping[str, Target]] = {
    "open": "ready",
    "in-progress": "ready",
    "hooked": "ready",
    "blocked": "blocked",
    "deferred": "backlog",
    "pinned": "backlog",
    "closed": "done",
    "tombstone": "cancelled",
}
_INEXACT: Final = {
    "in-progress": "nobody holds a lease",
    "hooked": "nobody holds a lease",
    "pinned": "there are no pins",
}
_PRIORITY: Final[Mapping[str, Priority]] = {
    "0": "critical", "1": "high", "2": "normal", "3": "low", "4": "low",
    "p0": "critical", "p1": "high", "p2": "normal", "p3": "low", "p4": "low",
}  # fmt: skip
_BULLET: Final = re.compile(r"\A\s*(?:[-*+]\s+)?(?:\[[ xX]\]\s*)?")
_TICKED: Final = re.compile(r"^\s*(?:[-*+]\s+)?\[[xX]\]", re.MULTILINE)
_ABOUT: Final = ("issue_type", "created_at", "updated_at", "closed_at", "close_reason", "external_ref", "created_by")
_USED: Final = (
    *_ABOUT, "id", "title", "description", "design", "acceptance_criteria", "notes", "status", "priority", "assignee",
    "labels", "dependencies", "comments", "content_hash", "due_at",
)  # fmt: skip
_PARTS: Final = {
    "dependencies": ("issue_id", "depends_on_id", "type"),
    "comments": ("id", "issue_id", "author", "created_at", "text"),
}


def read(files: list[SourceFile]) -> Reading | InvalidInput:
    """Every line is an issue."""
    reading = Reading([], [])
    for file in files:
        rows: list[dict[str, Any]] = []
        for number, row in enumerate(file.text.split("\n"), 1):
            if not row.strip():
                continue
            given = model.decoded(SourceFile(f"{file.name}:{number}", row))
            if isinstance(given, InvalidInput):
                return given
            if not isinstance(given, dict) or not model.line(given.get("id")):
                return InvalidInput(f"{file.name[:80]}:{number} is not an issue of beads", "export it with: bd export")
            reading.tasks.append(_issue(given))
            rows += [given]
        for field, used in _PARTS.items():
            model.note_parts(reading, file, field, (one for row in rows for one in _rows(row.get(field))), used)
    return reading


def _issue(given: dict[str, Any]) -> ForeignTask:
    task = model.new_task(given["id"], given.get("title"))
    criteria = model.text(given.get("acceptance_criteria"))
    if ticked := len(_TICKED.findall(criteria)):
        task.lose("checkboxes", f"ticked there: {ticked}")
    model.sections(
        task,
        (
            ("", given.get("description")),
            ("Design", given.get("design")),
            ("Notes", given.get("notes")),
        ),
    )
    said = [one if isinstance(one, dict) else {"text": model.line(one)} for one in _rows(given.get("comments"))]
    model.set_comments(task, [(one.get("author"), one.get("created_at"), one.get("text")) for one in said])
    model.set_acceptance(task, (_BULLET.sub("", one) for one in criteria.splitlines()))
    model.set_status(task, given.get("status"), _STATUS, _INEXACT)
    model.set_priority(task, given.get("priority"), _PRIORITY)
    model.set_tags(task, [*model.listed(given.get("labels")), *_kind(given)])
    model.set_owner(task, model.listed([given.get("assignee")]))
    model.set_due(task, given.get("due_at"))
    _edges(task, given.get("dependencies"))
    model.keep(task, given, _ABOUT)
    model.note_rest(task, given, _USED)
    return task


def _kind(given: dict[str, Any]) -> list[str]:
    kind = model.line(given.get("issue_type"))
    return [kind] if kind and kind != "task" else []


def _rows(given: object) -> list[Any]:
    return given if isinstance(given, list) else []


def _edges(task: ForeignTask, given: object) -> None:
    waits: list[str] = []
    for one in _rows(given):
        edge = one if isinstance(one, dict) else {"depends_on_id": one}
        target, kind = model.line(edge.get("depends_on_id")), model.line(edge.get("type")) or "blocks"
        if kind == "blocks" and target:
            waits.append(target)
        elif kind == "parent-child" and target and task.parent is None:
            task.parent = target
        elif target:
            task.lose("dependencies", f"'{kind[:40]}' of {target[:80]} has no place here")
    task.depends_on = tuple(dict.fromkeys(waits))
