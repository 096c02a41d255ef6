"""Reads Task Master's `tasks.json`: one list, or one per tag, with subtasks. Must not know any other tool."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from aof.core.errors.base import InvalidInput
from aof.core.model.kinds import Priority
from aof.documents.interchange import model
from aof.documents.interchange.model import ForeignTask, Reading, SourceFile, Target

_STATUS: Final[Mapping[str, Target]] = {
    "pending": "ready",
    "in-progress": "ready",
    "review": "ready",
    "blocked": "blocked",
    "deferred": "backlog",
    "done": "done",
    "completed": "done",
    "cancelled": "cancelled",
}
_INEXACT: Final = {"in-progress": "nobody holds a lease", "review": "there is no run to review"}
_PRIORITY: Final[Mapping[str, Priority]] = {"critical": "critical", "high": "high", "medium": "normal", "low": "low"}
_USED: Final = (
    "id", "title", "description", "details", "testStrategy", "status", "priority", "dependencies", "subtasks",
    "metadata", "parentId", "parentTaskId",
)  # fmt: skip
_MAIN: Final = "master"


def read(files: list[SourceFile]) -> Reading | InvalidInput:
    """All tasks of all tags; those of other tags than `master` get the tag's name."""
    reading = Reading([], [])
    for file in files:
        whole = model.decoded(file)
        if isinstance(whole, InvalidInput):
            return whole
        lists = _lists(whole)
        if lists is None:
            return InvalidInput(
                f"{file.name[:80]} is not a tasks.json of Task Master",
                "give the file .taskmaster/tasks/tasks.json",
            )
        for tag, tasks in lists.items():
            for one in tasks:
                if not isinstance(one, dict) or not model.line(one.get("id")):
                    return InvalidInput(f"{file.name[:80]} has a task without an id", "repair it in Task Master first")
                reading.tasks += _with_subtasks(tag, one, model.line(one["id"]), None)
        if isinstance(whole, dict):
            lists_there = [whole, *(one for one in whole.values() if isinstance(one, dict))]
            model.note_parts(reading, file, "file", lists_there, ("tasks", *lists))
    return reading


def _lists(whole: object) -> dict[str, list[Any]] | None:
    if isinstance(whole, list):
        return {_MAIN: whole}
    if not isinstance(whole, dict):
        return None
    if isinstance(whole.get("tasks"), list):
        return {_MAIN: whole["tasks"]}
    tagged = {
        model.line(tag): one["tasks"]
        for tag, one in whole.items()
        if isinstance(one, dict) and isinstance(one.get("tasks"), list)
    }
    return tagged or None


def _with_subtasks(tag: str, given: dict[str, Any], own: str, parent: str | None) -> Iterator[ForeignTask]:
    task = _task(tag, given, own, parent)
    yield task
    subtasks = given.get("subtasks")
    for one in subtasks if isinstance(subtasks, list) else []:
        if isinstance(one, dict):
            number = model.line(one.get("id"))
            yield from _with_subtasks(tag, one, number if "." in number else f"{own}.{number}", own)
        else:
            task.lose("subtasks", f"{model.line(one)[:80]!r} is no subtask")


def _task(tag: str, given: dict[str, Any], own: str, parent: str | None) -> ForeignTask:
    task = model.new_task(_key(tag, own), given.get("title"))
    parts = (("", "description"), ("Details", "details"), ("Test strategy", "testStrategy"))
    model.sections(task, [(heading, given.get(name)) for heading, name in parts])
    model.set_status(task, given.get("status"), _STATUS, _INEXACT)
    model.set_priority(task, given.get("priority"), _PRIORITY)
    if tag != _MAIN:
        model.set_tags(task, [tag])
    task.parent = _key(tag, parent) if parent is not None else None
    waits = given.get("dependencies")
    found = [model.line(one) for one in waits] if isinstance(waits, list) else []
    task.depends_on = tuple(dict.fromkeys(_key(tag, _whole(one, parent)) for one in found if one))
    metadata = given.get("metadata")
    if metadata:
        task.about["metadata"] = metadata
    model.note_rest(task, given, _USED)
    return task


def _key(tag: str, number: str) -> str:
    return number if tag == _MAIN else f"{tag}/{number}"


def _whole(number: str, parent: str | None) -> str:
    """A subtask names its siblings by their last number."""
    return f"{parent}.{number}" if parent is not None and "." not in number else number
