"""A task with all its runs, rebuilt from events alone. Must not know where the events come from."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

from aof.handoffs import delegation
from aof.handoffs import model as handoffs_evolve
from aof.handoffs.model import Handoff
from aof.kernel.events import SUPERSEDED, Event, about_handoff, is_remark
from aof.kernel.evolve import evolve
from aof.runs.model import RUN_EVENTS, Run, RunResult, evolve_result, evolve_run, result_of
from aof.tasks.model import Task


class Folded:
    """What the log says of one task.

    `attached` are files that events put among the task's own, and `attachments` what they have ever been. `late` are
    results that a merge has superseded, of runs that are not over yet.
    """

    __slots__ = (
        "attached",
        "attachments",
        "digests",
        "folders",
        "handoffs",
        "last_files",
        "late",
        "results",
        "runs",
        "task",
    )

    def __init__(self) -> None:
        self.task: Task | None = None
        self.runs: list[Run] = []
        self.results: dict[str, RunResult] = {}
        self.late: dict[str, RunResult] = {}
        self.last_files: dict[str, str] = {}
        self.digests: dict[str, int] = {}
        self.folders: dict[int, str] = {}
        self.handoffs: dict[str, Handoff] = {}
        self.attached: dict[str, bytes] = {}
        self.attachments: set[str] = set()

    def copy(self) -> Folded:
        """The same, to go on from without changing this one."""
        other = Folded()
        other.task, other.runs, other.results = self.task, [*self.runs], {**self.results}
        other.last_files, other.digests, other.folders = self.last_files, {**self.digests}, {**self.folders}
        other.handoffs, other.attached = {**self.handoffs}, {**self.attached}
        other.late = {**self.late}
        other.attachments = {*self.attachments}
        return other

    def add(self, event: Event) -> None:
        """Go on by one event."""
        if is_remark(event):
            return
        self.task = evolve(self.task, event)
        for path, digest in event.files.items():
            if path.endswith(f"{event.task_id}.md"):
                self.last_files = {path: digest}
                self.digests[digest] = event.seq
                self.folders[event.seq] = path.split("/")[-2] if path.startswith("tasks/") else "archive"
        if event.type not in RUN_EVENTS:
            if about_handoff(event):
                self._hand_off(event)
            elif event.type == SUPERSEDED:
                self._supersede(event)
            return
        if event.type == "task.attempt.started":
            started = evolve_run(None, event)
            assert started is not None
            self.runs.append(started)
        elif self.runs:
            number = self._numbered(event.run_id) if "hop" in event.payload else -1
            changed = evolve_run(self.runs[number], event)
            assert changed is not None
            self.runs[number] = changed
            self._keep_late(changed)
        result = evolve_result(None, event)
        if result is not None:
            self.results[result.run_id] = result

    def _supersede(self, event: Event) -> None:
        """A run of another clone is kept before those that stand: the last one is always the current one."""
        was = event.payload["was"]
        if was == "task.attempt.started":
            run = evolve_run(None, event)
            assert run is not None
            last = next((place for place, one in enumerate(self.runs) if self._stands_last(one, run)), len(self.runs))
            self.runs.insert(last, run)
            return
        number = self._numbered(event.run_id)
        known = self.runs[number] if number >= 0 else None
        if known is None:
            return
        self.runs[number] = evolve_run(known, event) or known
        if was == "task.completed":
            self.late[known.run_id] = result_of(event)
            self._keep_late(known)

    def _keep_late(self, run: Run) -> None:
        """What a run reported in another clone counts as its result once it is over, and never ends it."""
        if run.status != "running" and run.run_id in self.late:
            self.results.setdefault(run.run_id, self.late.pop(run.run_id))

    def _stands_last(self, one: Run, superseded: Run) -> bool:
        """Whether it is the current run of the hop, or of the task, that a superseded one belongs to."""
        return one.hop == superseded.hop and one.status != "superseded" and one is self.by_hop()[one.hop][-1]

    def _numbered(self, run_id: str | None) -> int:
        """Hops run in parallel: the last run is not always the one that is meant."""
        return next((number for number, run in enumerate(self.runs) if run.run_id == run_id), -1)

    def by_hop(self) -> dict[str | None, list[Run]]:
        """The runs of each hop, oldest first; those of the task itself under None."""
        found: dict[str | None, list[Run]] = {}
        for run in self.runs:
            found.setdefault(run.hop, []).append(run)
        return found

    def last_of(self, hop: str) -> Run | None:
        """The current or last run of a hop."""
        return next((run for run in reversed(self.runs) if run.hop == hop), None)

    def _hand_off(self, event: Event) -> None:
        name = event.payload["handoffId"]
        handoff = handoffs_evolve.evolve_handoff(self.handoffs.get(name), event)
        if handoff is not None:
            self.handoffs[name] = handoff
        for place, data in delegation.attached(event).items():
            self.attached[place] = data
            self.attachments.add(sha256(data).hexdigest())

    @property
    def run(self) -> Run | None:
        """The current or last run."""
        return self.runs[-1] if self.runs else None

    @property
    def result(self) -> RunResult | None:
        """What that run has reported."""
        return self.results.get(self.runs[-1].run_id) if self.runs else None


def fold(events: Iterable[Event], *, until: int | None = None) -> dict[str, Folded]:
    """Every task that the events speak of, at the end or as of a number."""
    folded: dict[str, Folded] = {}
    for event in events:
        if until is not None and event.seq > until:
            break
        if event.task_id and not is_remark(event):
            folded.setdefault(event.task_id, Folded()).add(event)
    return folded
