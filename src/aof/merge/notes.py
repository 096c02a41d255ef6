"""What people are told about a merge, task by task."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import msgspec

from aof.kernel.events import Event
from aof.merge.model import Clash, SupersededRun, TaskReport
from aof.tasks.model import Task
from aof.workflows.model import leases

_SHOWN: Final = 80  # characters of a value in a sentence


class _TaskNotes:
    """What there is to say of one task: see `TaskReport`."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.was: list[str] = []
        self.runs: dict[str, SupersededRun] = {}
        self.clashes: list[Clash] = []
        self.left_out: list[str] = []
        self.held_by: str | None = None


class Notes:
    """The notes of all tasks, by their IDs in the merged history."""

    def __init__(self) -> None:
        self._tasks: dict[str, _TaskNotes] = {}
        self.general: list[str] = []

    def _of(self, task_id: str) -> _TaskNotes:
        if task_id not in self._tasks:
            self._tasks[task_id] = _TaskNotes()
        return self._tasks[task_id]

    def say(self, task_id: str, words: str) -> None:
        """Add a sentence about a task, unless it is there already."""
        about = self._of(task_id)
        if words not in about.words:
            about.words.append(words)

    def renumber(self, task_id: str, old: str) -> None:
        """A task had another number where it was made."""
        self._of(task_id).was.append(old)
        self.say(task_id, f"was {old} where it was made; {old} is another task")

    def supersede(self, event: Event) -> None:
        """An event does not stand: note its run as superseded, with the result that it had."""
        if event.run_id is None:
            return
        runs = self._of(event.task_id).runs
        known = runs.get(event.run_id)
        agent = event.payload.get("agent") or (known.agent if known is not None else event.agent or event.actor)
        run = known or SupersededRun(run_id=event.run_id, agent=str(agent), hop=event.payload.get("hop"))
        if event.type == "task.completed":
            run = msgspec.structs.replace(run, outcome=event.payload["result"]["outcome"])
        runs[event.run_id] = run

    def forget_standing(self, tasks: dict[str, Task]) -> None:
        """A run that goes on is not superseded, though another clone knew less or more of it."""
        for task_id, about in self._tasks.items():
            for lease in leases(tasks[task_id]):
                about.runs.pop(lease.run_id, None)

    def clash(self, task_id: str, clashes: list[Clash]) -> None:
        """Two clones changed fields in different ways."""
        for clash in clashes:
            self._of(task_id).clashes.append(clash)
            kept, other = shown_value(clash.kept), shown_value(clash.other)
            self.say(task_id, f"{clash.field}: two different changes; {kept} stands, the other was {other}")

    def leave_out(self, task_id: str, edge: str, kind: str = "dependency") -> None:
        """An edge was left out, for it would have closed a cycle."""
        self._of(task_id).left_out.append(edge)
        what = "dependency on" if kind == "dependency" else "parent"
        self.say(task_id, f"{what} {edge} left out: it would close a cycle with what another clone added")

    def hold(self, task_id: str, by: str, words: str) -> None:
        """A task waits for a person because of another one."""
        self._of(task_id).held_by = by
        self.say(task_id, words)

    def words(self, task_id: str) -> list[str]:
        """The sentences about a task, those about superseded runs last."""
        about = self._tasks.get(task_id)
        if about is None:
            return []
        return about.words + [_words_of_run(run) for run in about.runs.values()]

    def superseded(self, task_id: str) -> Collection[SupersededRun]:
        """The runs of a task that do not stand."""
        about = self._tasks.get(task_id)
        return about.runs.values() if about is not None else ()

    def reports(self, tasks: dict[str, Task]) -> tuple[TaskReport, ...]:
        """The tasks that there is something to say about, in the order of their IDs."""
        return tuple(
            TaskReport(
                task_id=task_id,
                title=tasks[task_id].title,
                status="archived" if tasks[task_id].archived else tasks[task_id].status,
                notes=tuple(self.words(task_id)),
                was=tuple(about.was),
                superseded=tuple(about.runs.values()),
                clashes=tuple(about.clashes),
                left_out=tuple(about.left_out),
                held_by=about.held_by,
            )
            for task_id, about in sorted(self._tasks.items())
        )


def _words_of_run(run: SupersededRun) -> str:
    where = f" of hop {run.hop}" if run.hop is not None else ""
    result = f"; its result ({run.outcome}) is kept as an attempt" if run.outcome is not None else ""
    return f"run {run.run_id}{where} by {run.agent} is superseded: it can no longer write{result}"


def shown_value(value: Any) -> str:
    """A value in a sentence."""
    if value is None:
        return "nothing"
    text = msgspec.json.encode(value).decode() if not isinstance(value, str) else f'"{value}"'
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
