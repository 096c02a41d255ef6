"""A camera that takes snapshots of a room, and checks each against the published contract."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker

from aof.kernel.model import attempt_of, task_of_run
from aof.portable.operations import PortableService
from aof.portable.schemas import EVENTS, KINDS, STATUSES
from tests.support.repository import ROOT
from tests.support.room import Room

__all__ = ["EVENTS", "KINDS", "STATUSES", "Camera", "Fields", "Tape", "run_file", "valid", "valid_event"]

Fields = dict[str, Any]


def _published(name: str) -> Draft202012Validator:
    schema = json.loads((ROOT / "docs/reference" / name).read_text(encoding="utf-8"))
    return Draft202012Validator(schema, format_checker=FormatChecker())


_SNAPSHOT = _published("agent-task-snapshot.schema.json")
_EVENT = _published("agent-task-event.schema.json")


def valid(view: Fields) -> Fields:
    """The snapshot as plain JSON, once it is known to keep the contract."""
    return _checked(_SNAPSHOT, view)


def valid_event(line: Fields) -> Fields:
    """A portable event, checked in the same way."""
    return _checked(_EVENT, line)


def _checked(validator: Draft202012Validator, given: Fields) -> Fields:
    plain: Fields = json.loads(json.dumps(given))
    problems = [f"{error.json_path}: {error.message}" for error in validator.iter_errors(plain)]
    assert problems == []
    return plain


class Camera:
    """Takes snapshots of a room."""

    def __init__(self, room: Room) -> None:
        self.room = room

    def view(self, at: int | None = None, *, archived: bool = False) -> Fields:
        """A snapshot, which changes nothing, and which a process that was never asked before would take as well."""
        view = valid(self.room.idle(self.room.fabric.snapshot, at=at, archived=archived))
        asked_first = PortableService(self.room.fabric.services.environment)
        assert view == valid(asked_first.snapshot(at=at, archived=archived))
        return view

    def tasks(self, at: int | None = None) -> dict[str, Fields]:
        """All tasks by their IDs, also those that were put away."""
        return {task["taskId"]: task for task in self.view(at, archived=True)["tasks"]}

    def task(self, task_id: str, at: int | None = None) -> Fields:
        """One task."""
        return self.tasks(at)[task_id]

    def status(self, task_id: str) -> str:
        """Its normalized status."""
        return str(self.task(task_id)["status"])

    def edges(self, task_id: str, kind: str | None = None) -> dict[tuple[str, str], Fields]:
        """Its relationships by kind and target."""
        found = self.task(task_id)["relationships"]
        return {(edge["kind"], edge["targetId"]): edge for edge in found if kind in (None, edge["kind"])}

    def resolve(self, ref: str) -> Any:
        """What a ref leads to, as the manual says."""
        if found := re.fullmatch(r"aof://tasks/([A-Z0-9-]+)\?at=(\d+)", ref):
            return self.room.fabric.show(found[1], at=int(found[2]))
        if found := re.fullmatch(r"aof://tasks/([A-Z0-9-]+)/(.+)", ref):
            return (self.room.file(found[1]).with_suffix("") / found[2]).read_text()
        if found := re.fullmatch(r"aof://log/(\d+)(?:-(\d+))?", ref):
            first, last = int(found[1]), int(found[2] or found[1])
            return [event for event in self.room.fabric.events(after=first - 1) if event.seq <= last]
        if found := re.fullmatch(r"aof://handoffs/([A-Z0-9-]+)", ref):
            return json.loads((self.room.root / "handoffs" / f"{found[1]}.json").read_text())
        found = re.fullmatch(r"aof://runs/(RUN-[0-9a-f-]+)/([a-z.]+)", ref)
        assert found is not None, ref
        return run_file(self.room.root, found[1], found[2]).read_text()


class Tape:
    """The portable log of a room."""

    def __init__(self, room: Room) -> None:
        self._room = room

    def lines(self, task_id: str | None = None, kind: str | None = None) -> list[Fields]:
        """What it has of a task, under a name."""
        found: list[Fields] = self._room.idle(self._room.fabric.portable_log, task_id, type=kind)["events"]
        return [valid_event(line) for line in found]

    def types(self, task_id: str) -> list[str]:
        """The names of a task's events, in order and without their common part."""
        return [line["type"].removeprefix("task.") for line in self.lines(task_id)]

    def count(self, task_id: str, kind: str) -> int:
        """How often a name comes."""
        return self.types(task_id).count(kind)


def run_file(root: Path, run_id: str, name: str) -> Path:
    """A file of a run, also of one that was put away."""
    below = f"runs/{task_of_run(run_id)}/attempts/{attempt_of(run_id)}/{name}"
    return next(path for path in (root / below, root / "archive" / below) if path.exists())
