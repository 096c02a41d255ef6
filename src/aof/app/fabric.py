"""The fabric: one method an operation, the same on every surface. Must not know which store or surface is in use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType

import msgspec

from aof.app.commands import retryable as patience
from aof.app.commands.dispatcher import there
from aof.app.maintenance import service
from aof.app.operations import results
from aof.app.operations.arguments import checked
from aof.app.queries.read_models import Reading
from aof.app.queries.relatives import Families
from aof.app.runs import claimed_run
from aof.app.tasks.control import Controlling
from aof.app.tasks.relations import Relating
from aof.app.workflows.service import Gating
from aof.core.errors import org as org_errors
from aof.core.errors import runs as run_errors
from aof.core.errors import tasks as task_errors
from aof.core.errors.base import AofError, Call, Internal, InvalidInput, Refused, Unavailable
from aof.core.model import commands as c
from aof.core.validation import limits
from aof.ports import store as ports
from aof.ports.progress import Say, silent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

    from aof.app.maintenance.service import Diagnosis, Synced
    from aof.app.operations.results import Beaten, Created, Edited, Moved, Reported, Updated
    from aof.app.runs.claimed_run import Held
    from aof.core.model.policy import Policy
    from aof.core.model.task import Task
    from aof.ports.clock import Clock
    from aof.ports.notifier import Notifier
    from aof.ports.org import OrgSource
    from aof.ports.runner import Orphans
    from aof.ports.store import Store
    from aof.ports.trust import Trust
    from aof.ports.workflows import WorkflowSource

_FOREVER = 1e9  # seconds; the core has a stricter limit
_LOOK_AGAIN = 1.0  # seconds: the wait of a retry ends without any event


@checked(Reading.query, leave=("close",))
class Fabric(Gating, Relating, Controlling, Families):
    """Everything that can be asked of one data directory. `actor` is who calls unless a call says otherwise."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        policy: Policy,
        actor: str,
        run: str | None = None,
        *,
        org: OrgSource | None = None,
        notifier: Notifier | None = None,
        workflows: WorkflowSource | None = None,
        secret: str | None = None,
        orphans: Orphans | None = None,
        trust: Trust | None = None,
    ) -> None:
        super().__init__(store, clock, policy)
        self._orphans = orphans
        self._trust = trust
        self._org = org
        self._reading.noting = self._noting
        self._actor = actor
        self._run = run
        self._notifier = notifier
        self._workflows = workflows
        self._secret = secret or None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the data directory."""
        self.store.close()

    def create(
        self,
        title: str,
        *,
        brief: str = "",
        agent: str | None = None,
        role: str | None = None,
        team: str | None = None,
        priority: str = "normal",
        depends_on: Sequence[str] = (),
        parent_id: str | None = None,
        tags: Sequence[str] = (),
        workflow: str | None = None,
        metadata: dict[str, Any] | None = None,
        acceptance: Sequence[Any] = (),
        constraints: dict[str, Any] | None = None,
        profile: dict[str, Any] | None = None,
        resource: str | None = None,
        visibility: str = "foreground",
        owner: str | None = None,
        max_attempts: int | None = None,
        backlog: bool = False,
        review: bool = True,
        key: str | None = None,
        actor: str | None = None,
    ) -> Created:
        """Create a task. With a key, the same call again answers with the same task."""
        extra = {} if review else {"reviewRequired": False}
        given = {
            "actor": actor or self._actor,
            "title": title,
            "body": brief,
            "assignee": agent,
            "role": role,
            "team": team,
            "priority": priority,
            "tags": tuple(tags),
            "workflow": workflow,
            "owner": owner,
            "depends_on": tuple(self.resolve(part) for part in depends_on),
            "resource": resource,
            "parent_id": self.resolve(parent_id) if parent_id else None,
            "visibility": visibility,
            "metadata": (metadata or {}) | extra,
            "acceptance": tuple(acceptance),
            "constraints": constraints or {},
            "profile": profile or {},
            "max_attempts": max_attempts,
            "status": "backlog" if backlog else "ready",
            "key": key,
        }
        task = self._created(given, workflow)
        path, warning = self.store.path_of(task), self._no_route(task)
        return results.Created(task_id=task.id, status=task.status, file_path=path, warning=warning)

    def _created(self, given: dict[str, Any], workflow: str | None) -> Task:
        """The new task, or the one that has its key. A number that is not needed after all is put back."""
        while True:
            task_id = self.store.reserve_id(self._clock.now())
            try:
                command = self._gated(self._command(c.Create, given | {"task_id": task_id}), workflow)
                task = there(self._ask(command))
            except (Unavailable, Internal):  # something may have come of it
                raise
            except AofError as error:
                if error.details.get("task_id") != task_id or not isinstance(
                    error, task_errors.IdTaken | task_errors.UnreadableTask
                ):
                    self.store.put_back_id(task_id)
                    raise
                continue  # a person has a file of this name; the next number is free
            if task.id != task_id:
                self.store.put_back_id(task_id)
            return task

    def claim(
        self,
        task_id: str | None = None,
        *,
        agent: str,
        ttl: float | None = None,
        wait: float = 0.0,
        key: str | None = None,
        worker: str = "pull",
        hop: str | None = None,
        actor: str | None = None,
    ) -> Held:
        """Claim a task (of a gated one a hop), or the next one that this agent can take. Exactly one claimant wins.

        `wait` so many seconds for something to do, or for that task. With a `key`, the same call again answers with
        the same run for as long as that is held.
        """
        ttl_ms = _ttl_ms(ttl)
        given: dict[str, Any] = {
            "actor": actor or self._actor,
            "agent": agent,
            "ttl_ms": ttl_ms,
            "worker": worker,
            "key": key,
        }
        if task_id is not None:
            one = given | {"task_id": self.resolve(task_id), "hop": hop}
            return self._patiently(lambda: self._claimed(self._command(c.Claim, one)), wait)
        if problem := limits.name("agent", agent) or limits.line("key", key, limits.ITEM):
            raise problem
        self._claims_as(agent)
        if key is None:
            return self._patiently(lambda: self._claim_next(given), wait)
        with self.store.unit(ports.Scope(names=frozenset({f"claim:{key}"}))):
            held = self._running_under(key)
            if held is not None:
                return self._claimed(self._command(c.Claim, given | {"task_id": held.id}))
            return self._patiently(lambda: self._claim_next(given), wait)

    def _patiently(self, claim: Callable[[], Held], wait: float) -> Held:
        """Try again for so long, unless waiting could change nothing."""
        if not wait >= 0:
            raise InvalidInput(f"waiting for {wait} seconds is not possible", "give a number from 0 up, such as 60")
        deadline = self._clock.monotonic() + wait
        while True:
            seen = self.store.head() if wait > 0 else 0
            try:
                return claim()
            except patience.PASSING as refusal:
                left = deadline - self._clock.monotonic()
                if left <= 0 or not patience.may_pass(refusal):
                    raise
                self.store.wait(seen, min(left, _LOOK_AGAIN))

    def _claim_next(self, given: dict[str, Any]) -> Held:
        for candidate in self._offers(given["agent"]):
            try:
                return self._claimed(self._command(c.Claim, given | {"task_id": candidate}))
            except (org_errors.AtCapacity, org_errors.AgentInactive, org_errors.Unauthenticated):
                raise  # no other task would fare better
            except (run_errors.AlreadyClaimed, Refused, task_errors.UnreadableTask):
                continue
        raise task_errors.NothingReady(
            f"there is nothing that {given['agent']} can claim now",
            "see what each task waits for",
            Call("ready", {"explain": True}),
        )

    def heartbeat(
        self, task_id: str, *, run: str | None = None, agent: str | None = None, ttl: float | None = None
    ) -> Beaten:
        """Show that the run's worker lives."""
        ttl_ms = _ttl_ms(ttl)
        done = self._on(c.RecordHeartbeat, task_id, run=run, agent=agent, ttl_ms=ttl_ms)
        beat = done.decision.heartbeat
        assert beat is not None
        return results.Beaten(task_id=beat.task_id, run_id=beat.run_id, expires_at=beat.expires_at)

    def release(
        self, task_id: str, *, run: str | None = None, agent: str | None = None, reason: str | None = None
    ) -> Moved:
        """Give the task back unfinished."""
        return self._moved(c.Release, task_id, run=run, agent=agent, reason=reason)

    def progress(
        self,
        task_id: str,
        *,
        text: str | None = None,
        percent: float | None = None,
        phase: str | None = None,
        note: str | None = None,
        blockers: Sequence[str] = (),
        facts: dict[str, Any] | None = None,
        run: str | None = None,
        agent: str | None = None,
    ) -> Reported:
        """Report progress of the current run."""
        done = self._on(
            c.ReportProgress,
            task_id,
            run=run,
            agent=agent,
            text=text,
            percent=percent,
            phase=phase,
            note=note,
            blockers=tuple(blockers),
            facts=facts or {},
        )
        task = there(done)
        return results.Reported(task_id=task.id, progress=task.progress)

    def update(
        self,
        task_id: str,
        *,
        body: str | None = None,
        status: str | None = None,
        reason: str | None = None,
        run: str | None = None,
        agent: str | None = None,
        actor: str | None = None,
    ) -> Updated:
        """Replace the body or move the status; with neither, only a sign of life."""
        done = self._on(c.Update, task_id, run=run, agent=agent, actor=actor, body=body, status=status, reason=reason)
        task = there(done)
        kinds = {event.type for event in done.events}
        return results.Updated(
            task_id=task.id,
            status=task.status,
            updated_at=task.updated_at,
            body_updated="task.updated" in kinds,
            transitioned="task.transitioned" in kinds,
            secret=done.secret or msgspec.UNSET,
        )

    def edit(self, task_id: str, *, actor: str | None = None, **changes: Any) -> Edited:
        """Change title, description, priority, routing and the like."""
        done = self._on(c.Edit, task_id, actor=actor, changes=changes)
        task = there(done)
        fields: Sequence[str] = next(
            (event.payload["fields"] for event in done.events if event.type == "task.updated"), []
        )
        shown = {"title": task.title, "status": task.status, "priority": task.priority}
        return results.Edited(task_id=task.id, updated_fields=tuple(fields), task=shown)

    def complete(
        self,
        task_id: str,
        *,
        summary: str | None = None,
        outcome: str | None = None,
        blockers: Sequence[str] = (),
        summary_ref: str | None = None,
        deliverables: Sequence[str] = (),
        tests: dict[str, int] | None = None,
        notes: str | None = None,
        acceptance: Sequence[Any] = (),
        caller_role: str | None = None,
        hop: str | None = None,
        run: str | None = None,
        agent: str | None = None,
        actor: str | None = None,
    ) -> Moved:
        """End the run with its outcome; on a task in review this is the approval."""
        return self._moved(
            c.Complete,
            task_id,
            run=run,
            agent=agent,
            actor=actor,
            summary=summary,
            outcome=outcome,
            blockers=tuple(blockers),
            summary_ref=summary_ref,
            deliverables=tuple(deliverables),
            tests=tests,
            notes=notes,
            acceptance=tuple(acceptance),
            caller_role=caller_role,
            hop=hop,
        )

    def approve(
        self, task_id: str, *, reason: str | None = None, hop: str | None = None, actor: str | None = None
    ) -> Moved:
        """Accept what is in review."""
        return self._moved(c.Approve, task_id, actor=actor, reason=reason, hop=hop)

    def reject(
        self, task_id: str, *, blockers: Sequence[str], hop: str | None = None, actor: str | None = None
    ) -> Moved:
        """Send what is in review back."""
        return self._moved(c.Reject, task_id, actor=actor, blockers=tuple(blockers), hop=hop)

    def fail(
        self,
        task_id: str,
        *,
        code: str = "failed",
        message: str = "",
        cause: str = "failed",
        retryable: bool = True,
        run: str | None = None,
        agent: str | None = None,
    ) -> Moved:
        """End the run as failed; the retry policy decides what follows."""
        return self._moved(
            c.Fail, task_id, run=run, agent=agent, code=code, message=message, cause=cause, retryable=retryable
        )

    def sync(self, *, say: Say = silent) -> Synced:
        """Take in everything that people did to the files."""
        return service.sync(self.store, self._clock, self._policy, say=say)

    def doctor(self, *, fix: bool = False, say: Say = silent) -> Diagnosis:
        """Compare everything with everything else; `fix` heals what can be healed without a person."""
        return service.doctor(self.store, self._clock, self._policy, org=self._org, fix=fix, say=say)

    def _claimed(self, command: c.OnTask) -> claimed_run.Held:

        done = self._ask(command)
        run = next((event.run_id for event in done.events if event.type == "task.attempt.started"), None)
        return claimed_run.Held.of(self, there(done), run or done.decision.run, done.secret)


def _ttl_ms(ttl: float | None) -> int | None:
    if ttl is None:
        return None
    if not 0 < ttl < _FOREVER:
        raise InvalidInput(f"a lease of {ttl} seconds is not possible", "use between 0.001 seconds and 7 days")
    return int(ttl * 1000)
