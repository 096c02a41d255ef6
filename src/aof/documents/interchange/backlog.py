"""Reads Backlog.md: a folder of Markdown files with YAML frontmatter. Must not know any other tool."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from aof.core.errors.base import InvalidInput
from aof.core.model.kinds import Priority
from aof.documents.interchange import model
from aof.documents.interchange.model import ForeignTask, NotMapped, Reading, SourceFile, Target

_STATUS: Final[Mapping[str, Target]] = {
    "to-do": "ready",
    "todo": "ready",
    "draft": "backlog",
    "in-progress": "ready",
    "review": "ready",
    "blocked": "blocked",
    "done": "done",
    "completed": "done",
    "cancelled": "cancelled",
}
_INEXACT: Final = {"in-progress": "nobody holds a lease", "review": "there is no run to review"}
_PRIORITY: Final[Mapping[str, Priority]] = {"critical": "critical", "high": "high", "medium": "normal", "low": "low"}
_FRONTMATTER = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?\n)---[ \t]*\r?\n?", re.DOTALL)
_MOST_FRONTMATTER: Final = 65_536
_MARK = re.compile(r"^[ \t]*<!--\s*(?:SECTION|AC|DOD):[\w:]*(?:BEGIN|END)\s*-->[ \t]*\n?", re.MULTILINE)
_CRITERIA = re.compile(r"^##[ \t]+Acceptance Criteria[^\n]*\n(.*?)(?=^##[ \t]|\Z)", re.DOTALL | re.MULTILINE)
_POINT = re.compile(r"^[ \t]*[-*][ \t]+\[[ xX]\][ \t]*(?:#\d+[ \t]+)?(.+)$", re.MULTILINE)
_TICKED = re.compile(r"^[ \t]*[-*][ \t]+\[[xX]\]", re.MULTILINE)
_ABOUT: Final = (
    "created_date",
    "updated_date",
    "completed_date",
    "milestone",
    "reporter",
    "references",
    "documentation",
    "ordinal",
    "subtasks",
)
_USED: Final = (
    *_ABOUT, "id", "title", "status", "assignee", "labels", "dependencies", "parent_task_id", "priority",
)  # fmt: skip

Yaml = Callable[[str], object]


def read(yaml: Yaml, files: list[SourceFile]) -> Reading | InvalidInput:
    """Every Markdown file with an ID in its frontmatter is a task; what is in an archive folder was cancelled.

    `yaml` reads frontmatter, and says None of what cannot be read.
    """
    reading = Reading([], [])
    for file in files:
        if not file.name.endswith(".md"):
            continue
        found = _FRONTMATTER.match(file.text)
        given = yaml(found[1]) if found and len(found[1]) <= _MOST_FRONTMATTER else None
        if not isinstance(given, dict) or not model.line(given.get("id")):
            reading.lost.append(NotMapped(model.line(file.name)[:200], "file", "has no frontmatter with an id"))
            continue
        assert found is not None
        reading.tasks.append(_task(file, given, file.text[found.end() :]))
    if not reading.tasks:
        return InvalidInput("there is no task of Backlog.md among these files", "give the folder 'backlog'")
    return reading


def _task(file: SourceFile, given: dict[str, Any], body: str) -> ForeignTask:
    task = model.new_task(_key(given["id"]), given.get("title"))
    body = _MARK.sub("", body)
    criteria = _CRITERIA.search(body)
    if criteria is not None:
        points = _POINT.findall(criteria[1])
        model.set_acceptance(task, points)
        if ticked := len(_TICKED.findall(criteria[1])):
            task.lose("checkboxes", f"ticked there: {ticked} of {len(points)}")
        body = body[: criteria.start()] + body[criteria.end() :] if points else body
    model.sections(task, (("", re.sub(r"\A\s*##[ \t]+Description[ \t]*\n", "", body)),))
    folders = file.name.split("/")[:-1]
    if "archive" in folders:
        task.status = "cancelled"
    elif "drafts" in folders:
        task.status = "backlog"
    else:
        model.set_status(task, given.get("status"), _STATUS, _INEXACT)
        task.status = "done" if "completed" in folders else task.status
    model.set_priority(task, given.get("priority"), _PRIORITY)
    model.set_tags(task, model.listed(given.get("labels")))
    model.set_owner(task, model.listed(given.get("assignee")))
    task.depends_on = tuple(dict.fromkeys(_key(one) for one in model.listed(given.get("dependencies"))))
    parent = model.line(given.get("parent_task_id"))
    number = task.key.rpartition("-")[2]
    if parent:
        task.parent = _key(parent)
    elif "." in number:
        task.parent = task.key.rpartition(".")[0]
    task.about |= {name: given[name] for name in _ABOUT if given.get(name)}
    model.note_rest(task, given, _USED)
    return task


def _key(given: object) -> str:
    """IDs are written as `task-7`, `TASK-7` and `7`."""
    text = model.line(given).lower()
    return text if "-" in text or not text[:1].isdigit() else f"task-{text}"
