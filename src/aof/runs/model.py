"""A run, its result and its heartbeat, in the shapes that their JSON files have. Must not know where these lie."""

from __future__ import annotations

import contextlib
from typing import Any, Literal

import msgspec

from aof.kernel.model import TAG_DIGITS, millis
from aof.tasks.model import Failure, Lease

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
