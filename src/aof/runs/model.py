"""A run, its result and its heartbeat, in the shapes that their JSON files have, and what events make of them.

And how long a lease lasts when the wall clock cannot be trusted. Must not know where the files lie.
"""

from __future__ import annotations

import contextlib
from typing import Any, Final, Literal

import msgspec

from aof.kernel.events import SUPERSEDED, Event, as_written
from aof.kernel.model import TAG_DIGITS, iso, millis
from aof.support.typed import prepare_type
from aof.tasks.model import Failure, Lease, Question, QuestionAnswer, Retry, Task

PULL = "pull"  # a worker that no host of ours started: it claims by itself
RunStatus = Literal["running", "completed", "failed", "expired", "cancelled", "released", "superseded"]
Outcome = Literal["done", "blocked", "needs_review", "partial"]
OUTCOMES: tuple[Outcome, ...] = ("done", "blocked", "needs_review", "partial")
OUTPUT_FILES: dict[str, str] = {"stdout": "output.log", "stderr": "errors.log"}
ARTIFACT_PATHS: dict[str, str] = {"inputs": "inputs/", "work": "work/", "output": "outputs/"}


class _Document(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Common form of a run's files."""

    task_id: str
    agent_id: str
    hop: str | None = None


class Run(_Document, frozen=True, kw_only=True):
    """`run.json`: one attempt at a task by one agent under one lease."""

    started_at: str
    status: RunStatus
    artifact_paths: dict[str, str]
    metadata: dict[str, Any]
    run_id: str
    epoch: int
    attempt: int
    worker: str
    cause: str
    ended_at: str | None = None
    error: Failure | None = None


def attempt_folder(run: Run) -> str:
    """The folder name of an earlier run; a superseded run may share its number with a valid one."""
    return f"{run.attempt}-{run.run_id[-TAG_DIGITS:]}" if run.status == "superseded" else str(run.attempt)


class RunResult(_Document, frozen=True, kw_only=True):
    """`run_result.json`: what the run reported. It belongs to its run and to no other.

    A list that was reported is written also when it is empty. `run_id` is empty only in a file that an agent wrote.
    """

    run_id: str = ""
    completed_at: str
    outcome: Outcome
    summary_ref: str | None = None
    handoff_ref: str | None = None
    deliverables: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    tests: dict[str, int] | None = None
    blockers: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    notes: str | None = None
    acceptance: tuple[Any, ...] = ()


class Pulse(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A sign of life by the machine's own count: milliseconds since its start, which no clock setting moves.

    `began` is when the run began, `at` the sign of life, `ends` the end of the lease.
    """

    boot_id: str
    began: int
    at: int
    ends: int


class Heartbeat(_Document, frozen=True, kw_only=True):
    """`run_heartbeat.json`: the sign of life. Not an event, never flushed; `clone` is where a clone has a name."""

    run_id: str
    last_heartbeat: str
    beat_count: int
    expires_at: str
    pulse: Pulse | None = None
    clone: str | None = None


def attributed(result: RunResult, lease: Lease | None) -> RunResult:
    """The result as that of the current run, where it names no run and can only have been written in this one."""
    if result.run_id or lease is None or result.agent_id != lease.agent:
        return result
    with contextlib.suppress(ValueError):
        if millis(result.completed_at) >= millis(lease.acquired_at):
            return msgspec.structs.replace(result, run_id=lease.run_id)
    return result


def lease_end(lease: Lease, heartbeat: Heartbeat | None) -> int:
    """When the lease ends: the later of what it says and the same run's last heartbeat, which may know both."""
    end = millis(lease.expires_at)
    if heartbeat is None or heartbeat.run_id != lease.run_id:
        return end
    last = millis(heartbeat.expires_at)
    return last if heartbeat.pulse is not None else max(end, last)


_CALLS: Final = frozenset({"read", "write", "command", "network"})
_ENDS: Final = frozenset({"task.attempt.completed", "task.attempt.failed"})
RUN_EVENTS = frozenset({"task.attempt.started", "task.attempt.completed", "task.attempt.failed", "task.completed"})


def begun_lease(payload: dict[str, Any], run_id: str | None, at: str) -> Lease:
    """The lease of a run, or of a hop's, that begins."""
    return Lease(
        agent=payload["agent"],
        run_id=run_id or "",
        epoch=payload["epoch"],
        acquired_at=at,
        expires_at=payload["expiresAt"],
        ttl_ms=payload["ttlMs"],
        worker=payload["worker"],
        key=payload.get("key"),
        secret_digest=payload.get("secretDigest"),
        kept_by=payload.get("keptBy"),
    )


def run_by(retry: Retry, agent: str, **changes: Any) -> Retry:
    """The count of runs after one that this agent has had."""
    agents = retry.agents if agent in retry.agents else (*retry.agents, agent)
    return msgspec.structs.replace(retry, agents=agents, **changes)


def named_authors(ran_by: tuple[str, ...], payload: dict[str, Any]) -> tuple[str, ...]:
    """Who ran the work, once the names in this event count too; events of earlier versions have none."""
    return tuple(dict.fromkeys((*ran_by, *payload.get("ranBy", ()))))


def is_named(ran_by: tuple[str, ...], *names: str | None) -> bool:
    """Whether one of these names is among those who ran the work, told apart without regard to upper and lower case."""
    return not {name.casefold() for name in names if name is not None}.isdisjoint(name.casefold() for name in ran_by)


def progress_after(task: Task, payload: dict[str, Any], run_id: str | None, at: str) -> dict[str, Any]:
    """The progress after a report, of the task's own run or of a hop's."""
    facts = {name: value for name, value in payload.items() if name not in ("workLog", "note", "blockers")}
    return task.progress | facts | {"at": at, "runId": run_id}


def checked_call(task: Task, event: Event) -> dict[str, Any]:
    """One more tool call of a run, where it may do what it asked for."""
    payload = event.payload
    if event.run_id is None or payload["outcome"] == "blocked" or payload["point"] not in _CALLS:
        return {}
    used = task.usage.get("toolCalls", 0) if task.usage.get("runId") == event.run_id else 0
    return {"usage": {"runId": event.run_id, "toolCalls": used + 1}}


def evolve_run(run: Run | None, event: Event) -> Run | None:
    """The run after the event; a new one begins with `task.attempt.started`."""
    payload = event.payload
    if event.type == "task.attempt.started":
        return _begun(event, payload, "running")
    if event.type == SUPERSEDED:
        return _superseded(run, event)
    if run is None or event.run_id != run.run_id:
        return run
    if event.type == "task.attempt.completed":
        return msgspec.structs.replace(run, status="completed", ended_at=event.timestamp)
    if event.type == "task.attempt.failed":
        error = msgspec.convert(payload["error"], prepare_type(Failure))
        return msgspec.structs.replace(run, status=payload["status"], ended_at=event.timestamp, error=error)
    return run


def _begun(event: Event, payload: dict[str, Any], status: RunStatus) -> Run:
    return Run(
        task_id=event.task_id,
        agent_id=payload["agent"],
        started_at=event.timestamp,
        status=status,
        artifact_paths=ARTIFACT_PATHS,
        metadata={},
        run_id=event.run_id or "",
        epoch=payload["epoch"],
        attempt=payload["attempt"],
        worker=payload["worker"],
        cause=payload["cause"],
        hop=payload.get("hop"),
    )


def _superseded(run: Run | None, event: Event) -> Run | None:
    """A run of another clone: it is kept, and its end is known where it had one; it stays superseded."""
    was = event.payload["was"]
    if was == "task.attempt.started":
        return _begun(event, event.payload["told"], "superseded")
    if run is None or run.run_id != event.run_id or run.status != "superseded" or was not in _ENDS:
        return run
    return msgspec.structs.replace(run, ended_at=event.timestamp)


def evolve_result(result: RunResult | None, event: Event) -> RunResult | None:
    """The current run's result after the event; a new run starts without one."""
    if event.type == "task.attempt.started":
        return None
    if event.type != "task.completed":
        return result
    return result_of(event)


def result_of(event: Event) -> RunResult:
    """The result that a `task.completed` event reports, also where it was superseded."""
    payload = as_written(event).payload
    fields: dict[str, Any] = dict(payload["result"])
    fields |= {"taskId": event.task_id, "runId": event.run_id, "completedAt": event.timestamp}
    if "hop" in payload:
        fields["hop"] = payload["hop"]
    return msgspec.convert(fields, prepare_type(RunResult))


_ANSWERED_BYTES: Final = 16_384  # of answered questions in a task's file
_replace = msgspec.structs.replace


def question_asked(task: Task, event: Event) -> dict[str, Any]:
    """One more question; one that is open already belongs to the run that asks it now."""
    question = msgspec.convert(event.payload["question"] | {"at": event.timestamp}, prepare_type(Question))
    if not any(one.id == question.id for one in task.questions):
        return {"questions": _kept((*task.questions, question))}
    mine = {"run_id": question.run_id, "hop": question.hop, "by": question.by}
    return {"questions": tuple(_replace(one, **mine) if one.id == question.id else one for one in task.questions)}


def question_answered(task: Task, event: Event) -> dict[str, Any]:
    """The question with its answer; what blocked the task without a question becomes one by being answered."""
    payload = event.payload
    questions = task.questions
    if "asked" in payload:
        questions = (*questions, msgspec.convert(payload["asked"], prepare_type(Question)))
    answer = QuestionAnswer(text=payload["text"], by=payload["by"], at=event.timestamp)
    return {
        "questions": _kept(
            tuple(_replace(one, answer=answer) if one.id == payload["question"] else one for one in questions)
        )
    }


def _kept(questions: tuple[Question, ...]) -> tuple[Question, ...]:
    """Without the oldest answered ones, where all of them together are long; the last question stays."""
    room = _ANSWERED_BYTES
    kept: list[Question] = []
    for place, one in enumerate(reversed(questions)):
        room -= len(msgspec.json.encode(one)) if one.answer is not None else 0
        if one.answer is None or room >= 0 or place == 0:
            kept.append(one)
    return tuple(reversed(kept))


class Boot(msgspec.Struct, frozen=True):
    """Which start of which machine this is, and the milliseconds since: they never jump."""

    id: str
    at: int


def stamped_heartbeat(heartbeat: Heartbeat, before: Heartbeat | None, boot: Boot | None) -> Heartbeat:
    """The heartbeat as it is written: with the count since the machine's start, where there is one."""
    if boot is None:
        return heartbeat
    ends = boot.at + millis(heartbeat.expires_at) - millis(heartbeat.last_heartbeat)
    last = before.pulse if before is not None and before.run_id == heartbeat.run_id else None
    if last is None or last.boot_id != boot.id:
        return msgspec.structs.replace(heartbeat, pulse=Pulse(boot_id=boot.id, began=boot.at, at=boot.at, ends=ends))
    pulse = Pulse(boot_id=boot.id, began=last.began, at=boot.at, ends=max(last.ends, ends))
    return msgspec.structs.replace(heartbeat, pulse=pulse)


def present_heartbeat(heartbeat: Heartbeat | None, now: int, boot: Boot | None) -> Heartbeat | None:
    """The heartbeat as it is read: its end said by the wall clock of now, whatever that did in the meantime."""
    if heartbeat is None or heartbeat.pulse is None:
        return heartbeat
    pulse = heartbeat.pulse
    if boot is not None and pulse.boot_id == boot.id:
        return msgspec.structs.replace(heartbeat, expires_at=iso(now + pulse.ends - boot.at))
    lasts = pulse.ends - pulse.at
    last = millis(heartbeat.last_heartbeat)
    end = last + lasts if last - now <= lasts else now
    return msgspec.structs.replace(heartbeat, expires_at=iso(end))


def running_for(lease: Lease, heartbeat: Heartbeat | None, now: int, boot: Boot | None) -> int:
    """How many milliseconds the run has lasted."""
    pulse = heartbeat.pulse if heartbeat is not None and heartbeat.run_id == lease.run_id else None
    if pulse is not None and boot is not None and pulse.boot_id == boot.id:
        return max(boot.at - pulse.began, 0)
    return max(now - millis(lease.acquired_at), 0)
