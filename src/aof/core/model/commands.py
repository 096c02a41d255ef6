"""Every command that can be given to the core, as data. Must not know how it arrived."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

import msgspec

from aof.core.model.kinds import BlockedKind, Cause, Priority, Status, Visibility
from aof.core.model.records import Needs, Records, Verdict


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """Who gave the command: `actor` called, `agent` acts (else the actor), `run` is the run it acts for.

    `proven` is the caller's name as a token or a secret proves it: it may act under no other. `proof` is the digest of
    the secret that came with it; empty where one is required and none came, None where none is required.

    `outside` says that a caller gave the command and not AOF itself. `session` is the one actor that the caller's
    session, token or run is; None where only a name was given. `vouched` says what proves it. `limited` says that its
    token is for work only, or that its name is a default: it may neither approve nor reject anything. `unnamed` says
    that nobody named the caller and `actor` is the user of the operating system.

    `key` is an idempotency key: the same request again gives the same answer. `expect_rev` is the revision that the
    caller has seen: if the task has another one by now, the command is refused. `undoes` is the first event of the
    commit that the command reverses, `bulk` that of the bulk change which the command continues.
    """

    actor: str
    agent: str | None = None
    run: str | None = None
    proven: str | None = None
    proof: str | None = None
    outside: bool = False
    session: str | None = None
    vouched: Literal["token", "secret"] | None = None
    limited: bool = False
    unnamed: bool = False
    key: str | None = None
    expect_rev: int | None = None
    undoes: int | None = None
    bulk: int | None = None

    @property
    def acting(self) -> str:
        """The name whose rights apply when no run says otherwise."""
        return self.agent or self.actor


class OnTask(Command, frozen=True, kw_only=True):
    """A command about one existing task."""

    task_id: str


_OWN: Final = ("key", "expect_rev", "undoes", "bulk")  # what is said of one command as a whole


class OwnRule(OnTask, frozen=True, kw_only=True):
    """A command that brings its own rule, so that only callers that give it load that rule.

    The rule is asked in any case, also where there is no such task. Where it carries out another command, it asks the
    dispatch tables, which it gets as arguments: rules stand below them.
    """

    def needs(self, known: Records, needs: NeedsOf) -> Needs:
        """What must be locked and loaded; asked again with more known, as the table `needs` is."""
        raise NotImplementedError

    def decide(self, records: Records, now: int, decide: Decide) -> Verdict:
        """What it does to what is loaded."""
        raise NotImplementedError

    def passed_on(self) -> dict[str, Any]:
        """What another command of the same caller on the same task begins with; key and revision belong to this one."""
        return {name: getattr(self, name) for name in OnTask.__struct_fields__ if name not in _OWN}


class OnDocument(OwnRule, frozen=True, kw_only=True):
    """A command about a document, such as the WORKLOG. It belongs to no task, and it may read some."""

    task_id: str = ""


Decide = Callable[[Records, OnTask, int], Verdict]
NeedsOf = Callable[[OnTask, Records], Needs]


class Create(OnTask, frozen=True, kw_only=True):
    """Create a task under an ID that was reserved for it.

    `conversation` is the session or context that the call came by. It is no part of the request: the same request may
    be made again from another session.
    """

    title: str
    body: str = ""
    status: Status = "ready"
    priority: Priority = "normal"
    assignee: str | None = None
    role: str | None = None
    team: str | None = None
    tags: tuple[str, ...] = ()
    workflow: str | None = None
    depends_on: tuple[str, ...] = ()
    parent_id: str | None = None
    owner: str | None = None
    resource: str | None = None
    visibility: Visibility = "foreground"
    due: str | None = None
    acceptance: tuple[Any, ...] = ()
    constraints: dict[str, Any] = {}
    profile: dict[str, Any] = {}
    metadata: dict[str, Any] = {}
    max_attempts: int | None = None
    conversation: str | None = None


class CreateGated(Create, frozen=True, kw_only=True):
    """Create a task that passes through a workflow, with the template as it is now."""

    template: dict[str, Any]


class Attach(OnTask, frozen=True, kw_only=True):
    """Let a task that names a workflow begin it, with the template as it is now."""

    template: dict[str, Any]


class Claim(OnTask, frozen=True, kw_only=True):
    """Take the task, or one of its hops: a new run under a new lease, with the secret that has this digest.

    With `keep` the claim outlives the session that makes it, and its caller is recognised by name. With `steal` a task
    that is reserved for somebody else is assigned to the claimant first.
    """

    hop: str | None = None
    keep: bool = False
    steal: bool = False
    secret_digest: str | None = None
    ttl_ms: int | None = None
    worker: str = "pull"


class RecordHeartbeat(OnTask, frozen=True, kw_only=True):
    """A sign of life from the host of a run, which renews its lease."""

    ttl_ms: int | None = None


class Release(OnTask, frozen=True, kw_only=True):
    """Give the task back unfinished, without calling it a failure; it may wait until its children have ended."""

    reason: str | None = None
    wait_for_children: bool = False


class ReportProgress(OnTask, frozen=True, kw_only=True):
    """Append progress to the running run."""

    text: str | None = None
    percent: float | None = None
    phase: str | None = None
    note: str | None = None
    blockers: tuple[str, ...] = ()
    facts: dict[str, Any] = {}


class RecordDelivery(OnTask, frozen=True, kw_only=True):
    """Say whether the task's output has reached its receiver."""

    state: str
    target: str | None = None
    reason: str | None = None


class Update(OnTask, frozen=True, kw_only=True):
    """Replace the body, change the status, or renew the lease. A run that it starts has the secret with this digest.

    With `keep` that run outlives the session. `note` is added to the work log and leaves the rest of the body as it is.
    A run that it ends by `ready` can leave the task waiting for its children.
    """

    body: str | None = None
    note: str | None = None
    status: Status | None = None
    wait_for_children: bool = False
    reason: str | None = None
    secret_digest: str | None = None
    keep: bool = False


class Edit(OnTask, frozen=True, kw_only=True):
    """Change what the task says of itself; only what is given changes."""

    changes: dict[str, Any]


class Comment(OnTask, frozen=True, kw_only=True):
    """Say something of the task, whatever its status."""

    text: str


class Ask(OnTask, frozen=True, kw_only=True):
    """Ask a person something about a running task. With `leave` the run ends, and the answer makes the task ready."""

    text: str
    choices: tuple[str, ...] = ()
    leave: bool = False


class AnswerQuestion(OnTask, frozen=True, kw_only=True):
    """Answer a question of an agent; without `question` the only open one."""

    text: str
    question: str | None = None


class Complete(OnTask, frozen=True, kw_only=True):
    """End the run with a reported outcome; on a task in review it is the approval.

    With `withdraw_questions` the work is done although its agent has asked something that nobody has answered.
    """

    outcome: str | None = None
    summary: str | None = None
    summary_ref: str | None = None
    deliverables: tuple[str, ...] = ()
    tests: dict[str, int] | None = None
    blockers: tuple[str, ...] = ()
    notes: str | None = None
    acceptance: tuple[Any, ...] = ()
    caller_role: str | None = None
    hop: str | None = None
    allow_open_children: bool = False
    withdraw_questions: bool = False


class Approve(OnTask, frozen=True, kw_only=True):
    """Accept what is in review."""

    reason: str | None = None
    hop: str | None = None
    allow_open_children: bool = False


class Reject(OnTask, frozen=True, kw_only=True):
    """Send what is in review back to be done again."""

    blockers: tuple[str, ...]
    hop: str | None = None


class Fail(OnTask, frozen=True, kw_only=True):
    """End the run as failed; the retry policy decides what follows."""

    code: str = "failed"
    message: str = ""
    cause: Cause = "failed"
    retryable: bool = True


class CancelTask(OnTask, frozen=True, kw_only=True):
    """Stop the task and everything unfinished below it."""

    reason: str | None = None


class Settle(OnTask, frozen=True, kw_only=True):
    """The worker of a task that is being cancelled has been stopped."""


class Block(OnTask, frozen=True, kw_only=True):
    """Block the task for an external reason."""

    reason: str
    kind: BlockedKind = "blocked"


class Unblock(OnTask, frozen=True, kw_only=True):
    """Make a blocked task ready again."""


class Pause(OnTask, frozen=True, kw_only=True):
    """Hold the task on purpose."""

    reason: str | None = None


class Resume(OnTask, frozen=True, kw_only=True):
    """Resume a paused task where it was."""


class RetryTask(OnTask, frozen=True, kw_only=True):
    """Run a finished task again, or end the wait of a retry."""

    reason: str


class ArchiveTask(OnTask, frozen=True, kw_only=True):
    """Archive a finished task: it leaves scheduling and lists."""

    reason: str | None = None


class UnarchiveTask(OnTask, frozen=True, kw_only=True):
    """Take a task out of the archive, in the status that it had."""


class AddDependency(OnTask, frozen=True, kw_only=True):
    """Make the task depend on another one."""

    blocker_id: str


class RemoveDependency(OnTask, frozen=True, kw_only=True):
    """Remove a dependency of the task."""

    blocker_id: str


class AddLink(OnTask, frozen=True, kw_only=True):
    """Add an edge that does not affect scheduling order."""

    kind: str
    target_id: str
    reason: str | None = None


class RemoveLink(OnTask, frozen=True, kw_only=True):
    """Remove such an edge."""

    kind: str
    target_id: str


class Expire(OnTask, frozen=True, kw_only=True):
    """Recover a run whose lease has ended: by its reported result, else by requeueing."""


class TimeOut(OnTask, frozen=True, kw_only=True):
    """End a hop that has exceeded its timeout; it is checked again."""

    hop: str


class Promote(OnTask, frozen=True, kw_only=True):
    """Move a task that waits for nothing from backlog to ready."""

    reason: str


class DeadLetter(OnTask, frozen=True, kw_only=True):
    """Move a waiting task that has used up its attempts to `deadletter`."""

    reason: str


class Alert(OnTask, frozen=True, kw_only=True):
    """Record that a task has been in its status for too long or, with `due`, that it was due then."""

    status: Status
    reason: str
    due: str | None = None


class Exited(OnTask, frozen=True, kw_only=True):
    """The worker process of a run has ended; `stopped` says why, when its host ended it."""

    exit_code: int | None = None
    signal: int | None = None
    stopped: str | None = None
    output: dict[str, Any] = {}


class ImportEdit(OnTask, frozen=True, kw_only=True):
    """A person's edit or move of the file: what they changed, as the store found it.

    `accepted` says that a maintainer, the actor, has confirmed it.
    """

    changes: dict[str, Any] = {}
    status: Status | None = None
    layout: str | None = None
    conflicts: tuple[str, ...] = ()
    created: dict[str, Any] | None = None
    accepted: bool = False
