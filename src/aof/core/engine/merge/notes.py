"""What people are told about a merge: gathered while it goes on, said in words at the end. Must not decide anything."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from aof.core.engine.merge.model import Clash, SupersededRun, TaskReport
from aof.core.model.events import Event
from aof.core.model.task import Task
from aof.core.model.workflow import leases

if TYPE_CHECKING:
    from aof.core.engine.merge.commits.naming import Names
    from aof.core.engine.merge.commits.order import Original
    from aof.core.engine.merge.life import Verdict
    from aof.core.engine.merge.views import TaskStanding, Views

_SHORT: Final = 80


class _About:
    """What there is to say of one task."""

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
        self._tasks: dict[str, _About] = {}
        self.general: list[str] = []

    def _of(self, task_id: str) -> _About:
        if task_id not in self._tasks:
            self._tasks[task_id] = _About()
        return self._tasks[task_id]

    def say(self, task_id: str, words: str) -> None:
        """A sentence about a task; the same one is said once."""
        about = self._of(task_id)
        if words not in about.words:
            about.words.append(words)

    def renumber(self, task_id: str, old: str) -> None:
        """A task that had another number where it was made."""
        self._of(task_id).was.append(old)
        self.say(task_id, f"was {old} where it was made; {old} is another task")

    def supersede(self, said: Event) -> None:
        """An event of a side whose life of the task does not stand."""
        if said.run_id is None:
            return
        runs = self._of(said.task_id).runs
        known = runs.get(said.run_id)
        agent = said.payload.get("agent") or (known.agent if known is not None else said.agent or said.actor)
        run = known or SupersededRun(run_id=said.run_id, agent=str(agent), hop=said.payload.get("hop"))
        if said.type == "task.completed":
            run = msgspec.structs.replace(run, outcome=said.payload["result"]["outcome"])
        runs[said.run_id] = run

    def forget_standing(self, tasks: dict[str, Task]) -> None:
        """A run that goes on is not superseded, though another clone knew less or more of it."""
        for task_id, about in self._tasks.items():
            for lease in leases(tasks[task_id]):
                about.runs.pop(lease.run_id, None)

    def clash(self, task_id: str, clashes: list[Clash]) -> None:
        """Fields that two clones changed in different ways."""
        for clash in clashes:
            self._of(task_id).clashes.append(clash)
            kept, other = shown(clash.kept), shown(clash.other)
            self.say(task_id, f"{clash.field}: two different changes; {kept} stands, the other was {other}")

    def leave_out(self, task_id: str, edge: str, kind: str = "dependency") -> None:
        """An edge that would have closed a cycle."""
        self._of(task_id).left_out.append(edge)
        what = "dependency on" if kind == "dependency" else "parent"
        self.say(task_id, f"{what} {edge} left out: it would close a cycle with what another clone added")

    def hold(self, task_id: str, by: str, words: str) -> None:
        """A task that waits for a person because of another one."""
        self._of(task_id).held_by = by
        self.say(task_id, words)

    def words(self, task_id: str) -> list[str]:
        """The sentences about a task, those about superseded runs last."""
        about = self._tasks.get(task_id)
        if about is None:
            return []
        return about.words + [_of_run(run) for run in about.runs.values()]

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


def tell(notes: Notes, names: Names, verdicts: dict[str, Verdict], views: Views) -> None:
    """Say whose life of each task stands, and against whom."""
    for birth, fresh in names.renumbered:
        if birth.name.startswith("TASK-"):
            notes.renumber(fresh, birth.name)
        elif birth.name.startswith("question:"):
            (_, task, old), new = birth.name.split(":"), fresh.rpartition(":")[2]
            notes.say(
                names.of(task), f"two questions had the number {old}; the later one is {new}: {shown(birth.title)}"
            )
    for key, verdict in verdicts.items():
        task_id = names.of(key)
        for contest in verdict.contests:
            best = views.after[contest.best.place, key]
            for loser in contest.losers:
                other = views.after[loser.place, key]
                if words := _chosen(_side(contest.best, best), _side(loser, other)):
                    notes.say(task_id, words)


class _Side(NamedTuple):
    """One side of a choice: how far it was, and by whom."""

    status: str
    who: str


def _side(original: Original, standing: TaskStanding) -> _Side:
    last = original.events[-1]
    status = "archived" if standing.archived else standing.status
    return _Side(status, standing.holder or last.agent or last.actor)


def _chosen(best: _Side, other: _Side) -> str:
    if best.status == "done" and other.status == "cancelled":
        return f"done by {best.who}; cancelled too late by {other.who}"
    if best.status == other.status == "done":
        return f"done twice: the result of {best.who} stands, that of {other.who} is kept as an attempt"
    if best.status == other.status == "in-progress":
        return f"claimed twice: {best.who} keeps the lease; the run of {other.who} is superseded"
    return f"{best.status} by {best.who} stands; {other.who} had it {other.status} in another clone"


def _of_run(run: SupersededRun) -> str:
    where = f" of hop {run.hop}" if run.hop is not None else ""
    result = f"; its result ({run.outcome}) is kept as an attempt" if run.outcome is not None else ""
    return f"run {run.run_id}{where} by {run.agent} is superseded: it can no longer write{result}"


def shown(value: Any) -> str:
    """A value in a sentence."""
    if value is None:
        return "nothing"
    text = msgspec.json.encode(value).decode() if not isinstance(value, str) else f'"{value}"'
    return text if len(text) <= _SHORT else f"{text[: _SHORT - 1]}…"
