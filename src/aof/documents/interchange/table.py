"""Tasks as a table of comma-separated values: reads one with a header, and writes one that it can read again.

A value that a spreadsheet would take for a formula is written with an apostrophe before it, which reading takes away.
Must not know how tasks are found.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from aof._support.hashing import hexdigest
from aof.core.errors.base import InvalidInput
from aof.core.evolve import work_log
from aof.core.model.kinds import Priority
from aof.core.model.task import Task
from aof.documents.interchange import model
from aof.documents.interchange.model import ForeignTask, NotMapped, Reading, SourceFile, Target

COLUMNS: Final = (
    "id", "title", "status", "priority", "tags", "owner", "agent", "role", "team", "dependsOn", "parent", "due",
    "createdAt", "updatedAt", "endedAt", "description",
)  # fmt: skip
_LINE_END: Final = re.compile(r"(?<=\n)|(?<=\r)(?!\n)")  # other separators of Unicode are text
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
_SAME: Final = {
    "key": "id", "number": "id", "summary": "title", "name": "title", "subject": "title", "body": "description",
    "details": "description", "state": "status", "labels": "tags", "label": "tags", "tag": "tags", "assignee": "owner",
    "assignees": "owner", "dependson": "dependsOn", "depends_on": "dependsOn", "depends on": "dependsOn",
    "dependencies": "dependsOn", "blocked by": "dependsOn", "parentid": "parent", "parent_id": "parent",
    "createdat": "createdAt", "created": "createdAt", "updatedat": "updatedAt", "updated": "updatedAt",
    "endedat": "endedAt", "due date": "due", "due_date": "due", "deadline": "due",
}  # fmt: skip
_STATUS: Final[Mapping[str, Target]] = {
    "ready": "ready", "open": "ready", "to-do": "ready", "todo": "ready", "new": "ready", "pending": "ready",
    "in-progress": "ready", "doing": "ready", "review": "ready", "backlog": "backlog", "draft": "backlog",
    "deferred": "backlog", "blocked": "blocked", "done": "done", "closed": "done", "completed": "done",
    "resolved": "done", "cancelled": "cancelled", "canceled": "cancelled", "wontfix": "cancelled",
    "deadletter": "cancelled",
}  # fmt: skip
_INEXACT: Final = {
    "in-progress": "nobody holds a lease",
    "doing": "nobody holds a lease",
    "review": "there is no run to review",
    "deadletter": "there is no run that has failed",
}
_PRIORITY: Final[Mapping[str, Priority]] = {
    "critical": "critical", "urgent": "critical", "highest": "critical", "high": "high", "normal": "normal",
    "medium": "normal", "low": "low", "lowest": "low",
}  # fmt: skip


def read(files: list[SourceFile]) -> Reading | InvalidInput:
    """Every row is a task; without a column of IDs, its title is its ID."""
    reading = Reading([], [])
    for file in files:
        problem = _read_one(file, reading)
        if problem is not None:
            return problem
    return reading


def _read_one(file: SourceFile, reading: Reading) -> InvalidInput | None:
    rows = csv.reader(_LINE_END.split(file.text.removeprefix("\ufeff")), strict=True)
    try:
        header = [model.line(one) for one in next(rows, [])]
        names = [_SAME.get(one.lower(), one if one in COLUMNS else one.lower()) for one in header]
        twice = sorted({name for name in names if names.count(name) > 1})
        if "title" not in names or twice:
            wrong = f"names {', '.join(twice)[:80]} twice" if twice else "has no column 'title'"
            there = ", ".join(COLUMNS)
            return InvalidInput(f"the first line of {file.name[:80]} {wrong}", f"name the columns, such as: {there}")
        for shown, name in zip(header, names, strict=True):
            if name not in COLUMNS:
                reading.lost.append(
                    NotMapped(
                        file.name[:200],
                        shown[:80],
                        "this column has no place here; its values are kept in metadata.source",
                    )
                )
        for row in rows:
            if any(one.strip() for one in row):
                task = _task(dict(zip(names, map(_plain, row), strict=False)))
                more = {
                    shown: _plain(one)
                    for shown, name, one in zip(header, names, row, strict=False)
                    if name not in COLUMNS
                }
                model.keep(task, more, more)
                if any(one.strip() for one in row[len(names) :]):
                    task.lose("columns", f"the row has {len(row)} values, the header {len(names)}")
                reading.tasks.append(task)
    except csv.Error as error:
        return InvalidInput(f"{file.name[:80]}, line {rows.line_num}: {error}", "save it as CSV in UTF-8")
    return None


def _plain(value: str) -> str:
    return value[1:] if value.startswith("'") and value[1:].startswith(_FORMULA) else value


def _task(given: dict[str, str]) -> ForeignTask:
    title = model.line(given.get("title"))
    task = model.new_task(given.get("id") or f"title-{hexdigest(title.encode())[:16]}", title)
    model.sections(task, (("", given.get("description")),))
    model.set_status(task, given.get("status"), _STATUS, _INEXACT)
    model.set_priority(task, given.get("priority"), _PRIORITY)
    model.set_tags(task, model.listed(given.get("tags")))
    model.set_owner(task, model.listed(given.get("owner")))
    model.set_due(task, given.get("due"))
    task.depends_on = tuple(dict.fromkeys(model.listed(given.get("dependsOn"))))
    task.parent = model.line(given.get("parent")) or None
    model.keep(task, given, ("createdAt", "updatedAt", "endedAt"))
    for name in ("agent", "role", "team"):
        if given.get(name):
            task.lose(name, "routing is not imported; set it with 'aof bulk edit'")
    return task


class _Lines:
    """What a writer of rows writes to."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def write(self, text: str) -> None:
        """Keep one row."""
        self.texts.append(text)


def write(tasks: Iterable[Task]) -> str:
    """The table of these tasks."""
    out = _Lines()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(COLUMNS)
    for task in tasks:
        rows.writerow([_safe(one) for one in _row(task)])
    return "".join(out.texts)


def _safe(value: str) -> str:
    return f"'{value}" if value.startswith(_FORMULA) else value


def _row(task: Task) -> Iterator[str]:
    values: dict[str, Any] = {
        "id": task.id,
        "title": task.title,
        "status": task.status,
        "priority": task.priority,
        "tags": ",".join(task.routing.tags),
        "owner": task.owner,
        "agent": task.routing.agent,
        "role": task.routing.role,
        "team": task.routing.team,
        "dependsOn": ",".join(task.depends_on),
        "parent": task.parent_id,
        "due": task.due,
        "createdAt": task.created_at,
        "updatedAt": task.updated_at,
        "endedAt": task.ended_at,
        "description": work_log.description(task.body).strip(),
    }
    return (str(values[name] or "") for name in COLUMNS)
