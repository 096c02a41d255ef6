"""The task record, exactly as the frontmatter holds it, plus its body.

Field order is the order of the lines in a task's file. Must not know files, commands or events.
"""

from __future__ import annotations

from typing import Any

import msgspec

from aof.kernel.kinds import BlockedKind, Ending, LockMode, Priority, Status, Visibility
from aof.kernel.model import run_id, run_place
from aof.support.answer import StructAnswer


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Common form of every nested record."""


class Routing(_Part, frozen=True, kw_only=True):
    """Who should do the task."""

    agent: str | None = None
    role: str | None = None
    team: str | None = None
    tags: tuple[str, ...] = ()
    workflow: str | None = None


class Lease(_Part, frozen=True, kw_only=True):
    """Who may write to a running task, until when, under which epoch; the sender of its secret is the holder.

    `kept_by` is the caller that asked for the claim to outlive its session: that caller is recognised by name.
    `contested` says that a merge of histories ended another run of the task: a name no longer stands for the holder.
    A default that is left out must be a constant such as None or 0: which other one it is, msgspec tells by identity.
    """

    agent: str
    run_id: str
    epoch: int
    acquired_at: str
    expires_at: str
    renew_count: int = 0
    ttl_ms: int
    worker: str
    key: str | None = None
    secret_digest: str | None = None
    kept_by: str | None = None
    contested: bool = False


class Blocked(_Part, frozen=True, kw_only=True):
    """Why the task cannot go on, and where it came from."""

    kind: BlockedKind
    reason: str
    by: str
    since: str
    was: Status = "ready"
    dependency: str | None = None


class Retry(_Part, frozen=True, kw_only=True):
    """How often the task was run, how often in vain, by whom before, and when it may be run again.

    `cause` says why the next run is a new one, such as `retry`, `lost_worker` or `rerouted`. `last_run` is the ID of
    the last run where that has a random part: the others follow from the number of attempts. With `waits_for_children`
    the last run has delegated, and the next one begins after the children. `ran_by` are the agents, and the callers
    behind them, that ran it since somebody else last approved or rejected the work.
    """

    attempts: int = 0
    failures: int = 0
    max_attempts: int = 3
    not_before: str | None = None
    cause: str | None = None
    agents: tuple[str, ...] = ()
    last_run: str | None = None
    waits_for_children: bool = False
    ran_by: tuple[str, ...] = ()


class Cancel(_Part, frozen=True, kw_only=True):
    """A recorded wish to cancel: it stays with the task until that has settled, and after.

    `stopped` says that the task's own run has ended and only tasks below it have not settled yet.
    """

    by: str
    at: str
    reason: str | None = None
    stopped: bool = False


class Failure(_Part, frozen=True, kw_only=True):
    """The last thing that went wrong."""

    code: str
    message: str
    at: str
    cause: Ending = "failed"
    run_id: str | None = None


class Key(_Part, frozen=True, kw_only=True):
    """An idempotency key, and a digest of the request that used it first."""

    value: str
    digest: str


class Link(_Part, frozen=True, kw_only=True):
    """An edge of the task graph that orders nothing; `sha256` where it leads to one of the task's own files."""

    kind: str
    target_id: str
    created_at: str
    reason: str | None = None
    sha256: str | None = None


class OpenHandoff(_Part, frozen=True, kw_only=True):
    """A handoff of the task that something is still to come of; its record says the rest.

    `by_message` says that an AOF/1 message asked for it, which leaves the task to whoever claims it.
    """

    id: str
    type: str
    state: str
    from_agent: str
    to_agent: str
    by_message: bool = False

    @property
    def moves(self) -> bool:
        """Whether the task itself is to be done by the receiver, and by nobody else meanwhile."""
        return self.type in ("sequential", "delegation") and not self.by_message


class QuestionAnswer(_Part, frozen=True, kw_only=True):
    """What somebody answered to a question, and when."""

    text: str
    by: str
    at: str


class Question(_Part, frozen=True, kw_only=True):
    """What an agent asked about the task; `run_id` and `hop` are those of the run that asked last.

    Without an answer it is open, also where that run has ended: the next one is told the answer.
    """

    id: str
    text: str
    by: str
    at: str
    run_id: str | None = None
    hop: str | None = None
    choices: tuple[str, ...] = ()
    answer: QuestionAnswer | None = None


class LateResult(_Part, frozen=True, kw_only=True):
    """A report that came too late to count, in short; the event with this digest has all of it.

    Without `run_id` nobody said which run of the agent it was.
    """

    agent: str
    at: str
    digest: str
    run_id: str | None = None
    outcome: str | None = None
    summary: str | None = None
    deliverables: tuple[str, ...] = ()


class FileLock(_Part, frozen=True, kw_only=True):
    """A file or folder that a run of the task works on. It ends with that run, however that ends."""

    path: str
    mode: LockMode
    agent: str
    run_id: str
    since: str


class Task(StructAnswer, _Part, frozen=True, kw_only=True):
    """The durable objective. Stable over retries.

    `aliases` are IDs that the task had in other clones before histories were merged.
    `context` is what the agents of the whole tree share, and only the topmost task has it. `usage` is what the current
    run has used of its agent's budget.

    `body`, `extra` (a person's own keys), `layout` (frontmatter as a person laid it out) and `archived`
    are no frontmatter keys: the file's shape and place carry them.
    """

    schema_version: int
    id: str
    title: str
    status: Status
    priority: Priority
    rev: int
    created_at: str
    updated_at: str
    last_transition_at: str
    created_by: str
    owner: str | None = None
    parent_id: str | None = None
    depends_on: tuple[str, ...] = ()
    routing: Routing = Routing()
    lease: Lease | None = None
    blocked: Blocked | None = None
    cancel: Cancel | None = None
    retry: Retry = Retry()
    last_error: Failure | None = None
    progress: dict[str, Any] = {}
    workflow: dict[str, Any] = {}
    acceptance: tuple[Any, ...] = ()
    validation: dict[str, Any] = {}
    delivery: dict[str, Any] = {}
    constraints: dict[str, Any] = {}
    profile: dict[str, Any] = {}
    resource: str | None = None
    visibility: Visibility = "foreground"
    due: str | None = None
    estimate: int | None = None
    locks: tuple[FileLock, ...] = ()
    usage: dict[str, Any] = {}
    context: dict[str, Any] = {}
    links: tuple[Link, ...] = ()
    handoffs: tuple[OpenHandoff, ...] = ()
    questions: tuple[Question, ...] = ()
    late_results: tuple[LateResult, ...] = ()
    aliases: tuple[str, ...] = ()
    key: Key | None = None
    requests: tuple[Key, ...] = ()
    started_at: str | None = None
    ended_at: str | None = None
    metadata: dict[str, Any] = {}
    body: str = ""
    extra: dict[str, Any] = {}
    layout: str | None = None
    archived: bool = False

    @property
    def gated(self) -> bool:
        """Whether the task has begun a workflow, so that its hops are run and not the task itself."""
        return "template" in self.workflow

    @property
    def ends(self) -> tuple[str, ...]:
        """The tasks at the other ends of its edges that have to know of it when they end: dependencies and parent."""
        return self.depends_on if self.parent_id is None else (*self.depends_on, self.parent_id)

    @property
    def waits_for_children(self) -> bool:
        """Whether its next run begins after its children: each run of it, or the one after a release that said so."""
        return self.retry.waits_for_children or bool(self.metadata.get("waitForChildren"))

    @property
    def awaits_answer(self) -> bool:
        """Whether the task was handed to an agent that has not taken it yet: nobody begins it meanwhile."""
        return not self.gated and any(one.moves and one.state != "accepted" for one in self.handoffs)

    @property
    def open_questions(self) -> tuple[Question, ...]:
        """The questions that nobody has answered, oldest first."""
        return tuple(one for one in self.questions if one.answer is None)

    @property
    def last_run(self) -> str | None:
        """The ID of the task's own last run; None where it never had one."""
        return self.retry.last_run or (run_id(self.id, self.retry.attempts, "") if self.retry.attempts else None)

    @property
    def run_places(self) -> tuple[str, ...]:
        """What the records of its current run go by; of a gated task, those of each hop that somebody holds."""
        if not self.gated:
            return (self.id,)
        return tuple(run_place(self.id, hop["id"]) for hop in self.workflow["hops"] if "lease" in hop)


NOT_FRONTMATTER = ("body", "extra", "layout", "archived")
