"""What the merge of histories takes and gives, what it does with each type of event, and what people are told of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final, Literal, NamedTuple

import msgspec

from aof.errors import UnmergeableHistory
from aof.kernel.events import Event
from aof.tasks.model import Task
from aof.workflows.model import leases

GENESIS: Final = "0" * 64  # what the first event of all builds on
RULE: Final = 1  # the number of the rules in this package; other rules give other bytes, so they get another number


class Commit(NamedTuple):
    """The events of one commit, with the numbers and hashes that they have in their lane."""

    events: tuple[Event, ...]

    @property
    def key(self) -> str:
        """What the commit goes by: the hash of its last event."""
        return self.events[-1].hash


class Lane(NamedTuple):
    """What one writer appended, or one merge wrote.

    `after` is the hash of the event that its first event builds on, `GENESIS` for the root lane, whose name is empty.
    A merge lane has the hashes of the commits that it brought together, and the number of its rule. Of a lane that goes
    on in the file of another day, all commits are here.
    """

    name: str
    after: str
    commits: Sequence[Commit]
    heads: tuple[str, ...] = ()
    rule: int = 0


class Closing(NamedTuple):
    """The last event of a task in a merge lane, which the store completes when it seals it.

    `commit` and `event` are its place in `Merged.commits`. The store sets `files` to the path and SHA-256 of the
    task's file, and `layout` to what `layout_after` gives for the task ("" where it has none any more but had one).
    `task` is the record after the event: its `rev` is the event's number.
    """

    commit: int
    event: int
    task: Task


class Renumbered(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A task, or a message, that got another number because two clones had given out the same one."""

    old: str
    new: str
    title: str


class SupersededRun(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A run that lost against another clone's: it is kept as an attempt, and its agent cannot write any more."""

    run_id: str
    agent: str
    hop: str | None = None
    outcome: str | None = None


class Clash(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A field that two clones changed in different ways: the value that stands, and the other one."""

    field: str
    kept: Any
    other: Any


class TaskReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What a person should know of one task; `notes` say it in words."""

    task_id: str
    title: str
    status: str
    notes: tuple[str, ...] = ()
    was: tuple[str, ...] = ()
    superseded: tuple[SupersededRun, ...] = ()
    clashes: tuple[Clash, ...] = ()
    left_out: tuple[str, ...] = ()
    held_by: str | None = None


class Report(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What came together: lanes, commits and tasks, and of these the ones that there is something to say about.

    `tasks` are those with notes, in the order of their IDs; `touched` counts all. `notes` concern no single task.
    """

    lanes: tuple[str, ...]
    commits: int
    touched: int
    renumbered: tuple[Renumbered, ...] = ()
    tasks: tuple[TaskReport, ...] = ()
    notes: tuple[str, ...] = ()


class Merged(NamedTuple):
    """A merge lane before it is sealed.

    `heads` are the last original commits, sorted: earlier merge lanes are expanded, so that every grouping of merges
    names the same. The events have their numbers and places; `hash` and `files` are empty, and `closings` says which of
    them the store completes.
    """

    after: str
    seq: int
    heads: tuple[str, ...]
    rule: int
    commits: list[tuple[Event, ...]]
    closings: tuple[Closing, ...]
    report: Report


Rule = Literal["births", "content", "life", "handoff", "added", "remark", "mail", "jobs", "document", "merge"]

_EVENTS: Final[dict[Rule, tuple[str, ...]]] = {
    "births": (
        "task.created", "task.restored",
    ),
    "content": (
        "task.updated", "task.dependency.updated",
    ),
    "life": (
        "task.transitioned", "task.attempt.started", "task.attempt.completed", "task.attempt.failed", "task.completed",
        "task.retrying", "task.progress", "task.cancel_requested", "task.lost", "task.timed_out", "task.archived",
        "task.unarchived", "task.workflow.attached", "task.workflow.closed", "run.exited", "autonomy.checked",
        "file.locked", "file.unlocked",
    ),
    "added": (
        "task.accepted", "task.queued", "task.commented", "task.late_result", "task.noted", "task.link.added",
        "task.link.removed", "task.request.answered", "task.delivery.updated", "task.delegated", "task.question.asked",
        "task.question.answered", "task.sla_alert", "task.overdue", "context.set", "context.decided",
        "context.artifact", "context.rule",
    ),
    "handoff": (
        "delegation.requested", "delegation.accepted", "delegation.rejected", "delegation.restored",
        "handoff.initiated", "handoff.accepted", "handoff.rejected", "handoff.deferred", "handoff.escalated",
        "handoff.rerouted", "handoff.returned", "handoff.late_return", "handoff.completed", "handoff.failed",
        "handoff.resent", "handoff.reminded", "handoff.timeout", "handoff.delivered", "handoff.informed",
        "handoff.released", "handoff.warning", "handoff.unanswered",
    ),
    "remark": (
        "protocol.message.received", "protocol.message.rejected", "protocol.message.unknown", "task.warning",
        "context.conflict", "context.refused", "file.refused", "handoff.refused", "http.authentication.failed",
        "a2a.push.set", "a2a.push.dropped", "agent.turn.began", "agent.turn.ended", "agent.unavailable",
        "agent.available",
    ),
    "mail": (
        "document.mail.sent", "document.mail.changed", "document.mail.closed", "document.mail.escalated",
        "document.mail.archived", "document.mail.settled",
    ),
    "jobs": (
        "document.job.added", "document.job.paused", "document.job.resumed", "document.job.dispatched",
        "document.job.failed", "document.job.removed",
    ),
    "document": (
        "document.worklog.entry", "document.worklog.status", "document.worklog.compacted", "document.worklog.restored",
        "document.charter.created", "document.charter.amended", "document.charter.signed",
    ),
    "merge": (
        "document.superseded", "task.superseded", "task.merged",
    ),
}  # fmt: skip
RULES: Final = {kind: rule for rule, kinds in _EVENTS.items() for kind in kinds}
HOPS: Final = "task.hop."  # every step of a hop is life


def rule_of(kind: str) -> Rule:
    """The rule for a type of event."""
    rule = RULES.get(kind)
    if rule is None and kind.startswith(HOPS):
        return "life"
    if rule is None or rule == "merge":
        raise UnmergeableHistory(
            f"a commit has an event '{kind[:80]}', which this version of AOF cannot merge",
            "update AOF in every clone, then try again",
        )
    return rule


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
