"""A claimed run in the hands of an agent written in Python: reports by method, heartbeats by themselves.

    with fabric.claim(agent="swe-backend") as work:
        work.progress("read the brief", percent=10)
        work.complete("done")

Leaving the block by an exception reports a failure, leaving it without a result one too (`no_completion_report`): a run
never ends in silence. A grant is what a claim has given: the task, the run that holds it, and its secret. Must not know
any rule about runs; it only calls the fabric's operations.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, NamedTuple, Self

import msgspec

from aof.errors import AofError, Call, Conflict, InvalidInput, NotFound, StaleLease
from aof.kernel.arguments import checks_arguments
from aof.kernel.limits import NOTES
from aof.kernel.model import attempt_of, task_of_run
from aof.kernel.results import AskedQuestion, Claimed, Commented, Completed, Created, Moved, Released, Reported, Sent
from aof.runs.leases import BEATS_PER_LEASE
from aof.tasks.model import Lease, Task
from aof.workflows import model as workflows_model

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.api.fabric import Fabric
    from aof.kernel.kinds import Outcome, Priority
else:  # the rules refuse other words, and say which ones there are
    Outcome = Priority = str


class Grant(NamedTuple):
    """A task in the hands of a run; the secret is returned once, to the claimant.

    `again` says that the claimant held it already.
    """

    task: Task
    run: str | None = None
    secret: str | None = None
    again: bool = False

    @property
    def holding(self) -> tuple[Lease | None, str | None]:
        """The lease, and the hop that it holds where the task is gated."""
        return holding(self.task, self.run)


def own(get: Callable[[str], Task], run_id: str | None) -> Grant:
    """The run that somebody else claimed for this process."""
    task_id = task_of_run(run_id or "")
    if run_id is None or task_id is None:
        raise InvalidInput(
            "this process was not started for a run", "claim a task instead", Call("claim", {"agent": "…"})
        )
    task = get(task_id)
    lease, _ = holding(task, run_id)
    if lease is None or lease.run_id != run_id:
        raise StaleLease(
            f"run {run_id} no longer holds {task_id}", "stop this work", Call("show", {"task_id": task_id})
        )
    return Grant(task, run_id)


def holding(task: Task, run: str | None) -> tuple[Lease | None, str | None]:
    """The lease of a run, and the hop that it holds where the task is gated."""
    if not task.gated:
        return task.lease, None
    held = (
        (hop.lease, hop.id)
        for hop in workflows_model.workflow_of(task).hops
        if hop.lease is not None and hop.run_id == run
    )
    return next(held, (None, None))


class _Care:
    """What keeps a run alive beside the fields that everybody sees."""

    def __init__(self, fabric: Fabric, every: float) -> None:
        self.fabric = fabric
        self.proves = False
        self.every = every
        self.over = threading.Event()
        self.lost = threading.Event()
        self.beats: threading.Thread | None = None


@checks_arguments("work")
class ClaimedRun(Claimed, frozen=True, kw_only=True, dict=True):
    """What a claim answers, with the operations that its holder needs."""

    @classmethod
    def of(cls, fabric: Fabric, grant: Grant) -> Self:
        """The run that holds the task now, or a hop of it. Its secret goes along with everything it does."""
        (lease, hop), task, secret = grant.holding, grant.task, grant.secret
        assert lease is not None
        held = cls(
            task_id=task.id,
            run_id=lease.run_id,
            epoch=lease.epoch,
            attempt=attempt_of(lease.run_id),
            hop=hop,
            expires_at=lease.expires_at,
            file_path=fabric.store.path_of(task),
            held=grant.again,
            kept=lease.kept_by is not None,
            secret=secret or msgspec.UNSET,
        )
        held.__dict__["care"] = _Care(fabric, lease.ttl_ms / 1000 / BEATS_PER_LEASE)
        return held

    @property
    def task(self) -> Task:
        """The task as it is now, with its body."""
        return self._fabric.get(self.task_id)

    @property
    def lost(self) -> bool:
        """Whether the run was ended by others while the block went on: its later writes are refused."""
        return self._care.lost.is_set()

    def progress(
        self,
        text: str | None = None,
        *,
        percent: float | None = None,
        phase: str | None = None,
        note: str | None = None,
        blockers: Sequence[str] = (),
        facts: dict[str, Any] | None = None,
        key: str | None = None,
    ) -> Reported:
        """Report how far the work is."""
        return self._fabric.progress(
            self.task_id,
            text,
            percent=percent,
            phase=phase,
            note=note,
            blockers=blockers,
            facts=facts,
            run=self.run_id,
            key=key,
        )

    def comment(self, text: str, *, key: str | None = None) -> Commented:
        """Say something of the task, for everybody who reads it."""
        return self._fabric.comment(self.task_id, text, key=key)

    def ask(
        self,
        text: str | None = None,
        *,
        choices: Sequence[str] = (),
        question: str | None = None,
        wait: float | None = None,
        leave: bool = False,
        key: str | None = None,
    ) -> AskedQuestion:
        """Ask a person, and `wait` so many seconds for the answer; without `wait`, do not wait for it.

        With `question` instead of a text, wait for the answer to an earlier question. With `leave` the run ends, and
        the next one is told the answer.
        """
        asked = self._fabric.ask(
            self.task_id,
            text,
            choices=choices,
            question=question,
            wait=wait or 0.0,
            leave=leave,
            run=self.run_id,
            key=key,
        )
        if leave:
            self._care.over.set()
        return asked

    def delegate(
        self,
        title: str,
        brief: str = "",
        *,
        agent: str | None = None,
        role: str | None = None,
        team: str | None = None,
        priority: Priority | None = None,
        depends_on: Sequence[str] = (),
        tags: Sequence[str] = (),
        review: bool | None = None,
        key: str | None = None,
    ) -> Created:
        """Create a task below this one, for another agent; `release(wait_for_children=True)` then waits for it.

        With a `key`, every run of this task that asks for it gets the same one.
        """
        return self._fabric.create(
            title,
            brief,
            agent=agent,
            role=role,
            team=team,
            priority=priority,
            depends_on=depends_on,
            parent_id=self.task_id,
            tags=tags,
            review=review,
            key=f"{self.task_id} {key}" if key is not None else None,
        )

    def complete(
        self,
        summary: str | None = None,
        *,
        outcome: Outcome | None = None,
        blockers: Sequence[str] = (),
        summary_ref: str | None = None,
        deliverables: Sequence[str] = (),
        tests: dict[str, int] | None = None,
        notes: str | None = None,
        acceptance: Sequence[Any] = (),
        caller_role: str | None = None,
        allow_open_children: bool = False,
        withdraw_questions: bool = False,
        key: str | None = None,
    ) -> Completed:
        """End the run with a result.

        A hop has three outcomes, and this is the one that goes on; see `reject` and `block`.
        """
        completed = self._fabric.complete(
            self.task_id,
            summary,
            outcome=outcome,
            blockers=blockers,
            summary_ref=summary_ref,
            deliverables=deliverables,
            tests=tests,
            notes=notes,
            acceptance=acceptance,
            caller_role=caller_role,
            allow_open_children=allow_open_children,
            withdraw_questions=withdraw_questions,
            run=self.run_id,
            key=key,
        )
        self._care.over.set()
        return completed

    def block(self, *reasons: str, summary: str | None = None) -> Completed:
        """End the run: it cannot go on before these are out of the way."""
        return self.complete(summary, outcome="blocked", blockers=reasons)

    blocked = block  # its earlier name

    def reject(self, *blockers: str, summary: str | None = None) -> Completed:
        """End a hop that judges: what came before it is to be done again, for these reasons."""
        return self.complete(summary, outcome="needs_review", blockers=blockers)

    def fail(self, message: str, *, code: str = "failed", retryable: bool = True) -> Moved:
        """End the run as failed; the retry policy decides what follows."""
        failed = self._fabric.fail(self.task_id, message, run=self.run_id, code=code, retryable=retryable)
        self._care.over.set()
        return failed

    def release(self, reason: str | None = None, *, wait_for_children: bool = False) -> Released:
        """Give the task back unfinished, which is not a failure.

        With `wait_for_children` it can be claimed again when the tasks below it have ended.
        """
        released = self._fabric.release(self.task_id, reason, run=self.run_id, wait_for_children=wait_for_children)
        self._care.over.set()
        return released

    def send(self, *messages: Any) -> tuple[Sent, ...]:
        """Send AOF/1 messages in the name of this run."""
        return self._fabric.send(*messages, run=self.run_id)

    def __enter__(self) -> Self:
        self._care.beats = threading.Thread(target=self._beat, name=f"heartbeat {self.run_id}", daemon=True)
        self._care.beats.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        reported = self._care.over.is_set()
        self._care.over.set()
        if self._care.beats is not None:
            self._care.beats.join()
        if reported:
            return
        if error is None:
            with suppress(StaleLease):  # ended by others, or by the agent on another way
                self._fabric.session_end(run=self.run_id)
        else:
            with suppress(AofError):  # what went wrong first is what the caller must see
                self._broken_off(error)

    def _broken_off(self, error: BaseException) -> None:
        if isinstance(error, Exception):
            self.fail(f"{type(error).__name__}: {error}"[:NOTES], code="exception")
        else:
            self.release("interrupted")

    def _beat(self) -> None:
        """Renew the lease until the run is over; trouble of the machine is tried again."""
        while not self._care.over.wait(self._care.every):
            try:
                self._fabric.heartbeat(self.task_id, run=self.run_id)
            except (Conflict, NotFound):
                self._care.lost.set()
                return
            except AofError:
                continue

    @property
    def _care(self) -> _Care:
        care: _Care = self.__dict__["care"]
        return care

    @property
    def _fabric(self) -> Fabric:
        """Of the run, where it has a secret; made when it is first needed."""
        care = self._care
        if not care.proves and isinstance(self.secret, str):
            care.fabric, care.proves = care.fabric.as_run(self.secret), True
        return care.fabric
