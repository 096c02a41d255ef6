"""Progress that a run reports, which is a sign of life too. Must not know what becomes of the task."""

from __future__ import annotations

from typing import Any, Final

from aof.core.errors.base import AofError, Call, InvalidInput
from aof.core.model.commands import ReportProgress
from aof.core.model.events import Draft
from aof.core.model.records import Decision, Records, Verdict
from aof.core.model.task import Task
from aof.core.runs.lease import authorize, next_beat
from aof.core.validation import limits

_RESERVED: Final = frozenset({"workLog", "note", "blockers", "at", "runId", "hop"})
_PERCENT: Final = 100


def report(records: Records, command: ReportProgress, now: int) -> Verdict:
    """Append progress to the current run; it is a sign of life too."""
    task = records.task(command.task_id)
    holder = authorize(task, command)
    if isinstance(holder, AofError):
        return holder
    draft = progress_of(task, command, holder, task.lease.run_id if task.lease else None)
    if isinstance(draft, AofError):
        return draft
    return Decision(drafts=(draft,), heartbeat=next_beat(records, task, now), agent=holder)


def progress_of(task: Task, command: ReportProgress, agent: str, run: str | None) -> Draft | AofError:
    """The event of a run's progress, or what is wrong with it."""
    given = (("text", command.text), ("percent", command.percent), ("phase", command.phase))
    payload: dict[str, Any] = command.facts | {name: value for name, value in given if value is not None}
    parts = (("Progress", command.text), ("Notes", command.note), ("Blockers", "; ".join(command.blockers)))
    said = " | ".join(f"{label}: {value}" for label, value in parts if value)
    if problem := _bad_report(task, command, payload) or (None if payload or said else _silence(task)):
        return problem
    if said:
        payload["workLog"] = f"{agent}: {said}"
    return Draft(type="task.progress", task_id=task.id, run_id=run, payload=payload)


def _bad_report(task: Task, command: ReportProgress, payload: dict[str, Any]) -> AofError | None:
    if taken := sorted(_RESERVED & command.facts.keys()):
        return InvalidInput(f"{', '.join(taken)} cannot be reported as a fact", "use another name for it")
    if command.percent is not None and not 0 <= command.percent <= _PERCENT:
        return InvalidInput(f"percent {command.percent} is not between 0 and 100", "give a number from 0 to 100")
    return (
        limits.text("text", command.text, limits.PROGRESS)
        or limits.text("note", command.note, limits.NOTES)
        or limits.line("phase", command.phase, limits.ITEM)
        or limits.items("blockers", command.blockers, limits.BLOCKERS)
        or limits.data("progress", task.progress | payload, limits.PROGRESS_BYTES)
    )


def _silence(task: Task) -> InvalidInput:
    return InvalidInput(
        "there is nothing to report",
        "give a text, a percentage, a phase, a note or a blocker",
        Call("progress", {"task_id": task.id, "text": "…"}),
    )
