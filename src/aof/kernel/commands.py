"""Every command that can be given, as data; the records that a decision may look at; the numbers of what it makes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count
from typing import Any, Final, Literal

import msgspec

from aof.errors import AofError
from aof.handoffs import model as handoffs_model
from aof.kernel.events import Draft
from aof.kernel.kinds import BlockedKind, Cause, Priority, Status
from aof.kernel.model import Policy, is_task_id
from aof.runs.model import Heartbeat, RunResult
from aof.support.hashing import hexdigest
from aof.tasks.model import FileLock, Task

LARGEST: Final = 100_000_000  # a person may name a file as they like; the numbers after it must still be IDs
BLOCK_SIZE: Final = 1_000
FIRST_OF_BLOCKS: Final = 100_000
FIRST_DERIVED: Final = 1_000_000  # what a merge gives out, up to the next line
FIRST_AFTER_DERIVED: Final = 10_000_000  # where the first clone goes on, after more numbers than a day has ever seen
_LIKELY = 8  # blocks that a clone may have filled on one day; looking at more only costs time
_BLOCKS = range(FIRST_OF_BLOCKS // BLOCK_SIZE, FIRST_DERIVED // BLOCK_SIZE)


class Numbers:
    """How one clone counts: `clone` is its token, empty for the one that began the history.

    Where that one is alone, and no other clone has ever written, it goes on after any number that it finds.
    """

    __slots__ = ("alone", "clone")

    def __init__(self, clone: str = "", *, alone: bool = True) -> None:
        self.clone = clone
        self.alone = alone and not clone

    def last(self, used: Iterable[int]) -> int:
        """The number to go on after, of all that were used on a day: at least one that follows is free."""
        given = set(used)
        if self.alone:
            return _before_a_free_one({0}, given, _is_small)
        if not self.clone:
            begins = {0, FIRST_AFTER_DERIVED - 1} if FIRST_OF_BLOCKS - 1 in given else {0}
            return _before_a_free_one(begins, given, _is_first_ones)
        for turn in count():
            block = self._block(turn)
            last = max((number for number in given if number in block), default=block.start - 1)
            if last < block[-1]:
                return last
        raise AssertionError  # there is always another block to look at

    def room(self, last: int) -> int:
        """How many numbers follow this one without a gap; none where it is not, or no longer, this clone's to count."""
        if self.alone:
            return LARGEST
        if not self.clone:
            first = range(FIRST_OF_BLOCKS)
            rest = range(FIRST_AFTER_DERIVED - 1, LARGEST)
            return next((space[-1] - last for space in (first, rest) if last in space), 0)
        blocks = map(self._block, range(_LIKELY))
        return next((block[-1] - last for block in blocks if block.start - 1 <= last < block.stop), 0)

    def next(self, used: Iterable[int]) -> int:
        """The next free number."""
        return self.last(used) + 1

    def _block(self, turn: int) -> range:
        """The numbers of the clone's first block, or of one that it begins when those before it are full."""
        chosen = _BLOCKS[int(hexdigest(f"{self.clone}/{turn}".encode())[:12], 16) % len(_BLOCKS)]
        return range(chosen * BLOCK_SIZE + 1, (chosen + 1) * BLOCK_SIZE)


def _before_a_free_one(begins: set[int], used: set[int], is_ours: Callable[[int], bool]) -> int:
    """The largest number of ours, or beginning of ours, that a free number of ours follows."""
    candidates = begins.union(filter(is_ours, used))
    return max(one for one in candidates if is_ours(one + 1) and one + 1 not in used)


def _is_small(number: int) -> bool:
    return number < LARGEST


def _is_first_ones(number: int) -> bool:
    return number < FIRST_OF_BLOCKS or FIRST_AFTER_DERIVED <= number < LARGEST


_FIRST_CLONE = Numbers()


class Records(msgspec.Struct, kw_only=True):
    """Tasks by ID (None: looked for and not there), and the answers to questions about the graph.

    A result that is an error is one whose file cannot be read. `missing` are files that were looked for and not found.
    `run_tag` is the random part of the ID of a run that the decision may begin: eight hex digits, drawn by the caller.
    `entropy` is what the IDs of handoffs that it may begin are made from: random text, drawn by the caller.
    `above` has the ancestors of a task from its parent up; they are loaded only if `Needs.read` names them too.
    `documents` are texts by the name of their file, such as `WORKLOG.md`, and `numbers` says how to number in them.
    `file_locks` are those of all running tasks, by their tasks. `sizes` are files and lines of what lies among a task's
    own files, and `digests` the SHA-256 of single ones.
    """

    policy: Policy = Policy()
    run_tag: str = "00000000"
    entropy: str = ""
    tasks: dict[str, Task | None] = {}
    heartbeats: dict[str, Heartbeat | None] = {}
    results: dict[str, RunResult | AofError | None] = {}
    handoffs: dict[str, tuple[handoffs_model.Handoff, ...]] = {}
    missing: set[tuple[str, str]] = set()
    above: dict[str, tuple[str, ...]] = {}
    children: dict[str, tuple[str, ...]] = {}
    dependents: dict[str, tuple[str, ...]] = {}
    reachable: dict[str, dict[str, tuple[str, ...]]] = {}
    resource_holders: dict[str, tuple[str, ...]] = {}
    held: dict[str, tuple[str, ...]] = {}
    file_locks: dict[str, tuple[FileLock, ...]] = {}
    sizes: dict[tuple[str, str], tuple[int, int]] = {}
    digests: dict[tuple[str, str], str | None] = {}
    key_owners: dict[str, str | None] = {}
    documents: dict[str, str] = {}
    numbers: Numbers = _FIRST_CLONE

    def task(self, task_id: str) -> Task:
        """A task that is known to exist; looking at one that was not loaded is a programming error."""
        task = self.tasks[task_id]
        if task is None:
            raise KeyError(task_id)
        return task

    def find(self, task_id: str) -> Task | None:
        """The task, or None where there is none; also for what is not a task ID."""
        if task_id in self.tasks or is_task_id(task_id):
            return self.tasks[task_id]
        return None


class Needs(msgspec.Struct, frozen=True, kw_only=True):
    """What a command must have loaded, and therefore locked, before it can be decided.

    `above` asks for the ancestors of tasks, `trees` for the children of tasks and of everything below them. A document
    whose lock is among the `names` has caught up with the log before `documents` are read, and does after the commit.
    """

    write: frozenset[str] = frozenset()
    read: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    heartbeats: frozenset[str] = frozenset()
    results: frozenset[str] = frozenset()
    handoffs: frozenset[str] = frozenset()
    files: frozenset[tuple[str, str]] = frozenset()
    above: frozenset[str] = frozenset()
    trees: frozenset[str] = frozenset()
    children: frozenset[str] = frozenset()
    dependents: frozenset[str] = frozenset()
    reachable: frozenset[str] = frozenset()
    resources: frozenset[str] = frozenset()
    agents: frozenset[str] = frozenset()
    keys: frozenset[str] = frozenset()
    documents: frozenset[str] = frozenset()
    file_locks: bool = False
    sizes: frozenset[tuple[str, str]] = frozenset()
    digests: frozenset[tuple[str, str]] = frozenset()


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """The events to record (none: nothing changes), a sign of life to write, or the task that a key stands for.

    `repeats` is the idempotency key of an earlier request, whose answer is given again.
    `refusal` is set where being refused is itself recorded, as with messages; `instead` says why something else was
    done than what was asked for.
    """

    drafts: tuple[Draft, ...] = ()
    heartbeat: Heartbeat | None = None
    replayed: str | None = None
    repeats: str | None = None
    agent: str | None = None
    run: str | None = None
    refusal: AofError | None = None
    instead: AofError | None = None

    def followed_by(self, drafts: tuple[Draft, ...]) -> Decision:
        """The same decision with more to record."""
        return msgspec.structs.replace(self, drafts=self.drafts + drafts) if drafts else self

    def annotated(self, task_id: str, note: dict[str, Any]) -> Decision | None:
        """The same decision with a note in the task's first event; None where it has none."""
        own = next((place for place, draft in enumerate(self.drafts) if draft.task_id == task_id), None)
        if own is None:
            return None
        noted = msgspec.structs.replace(self.drafts[own], payload=self.drafts[own].payload | note)
        return msgspec.structs.replace(self, drafts=(*self.drafts[:own], noted, *self.drafts[own + 1 :]))


Verdict = Decision | AofError


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

    `fields` are those that no rule of a creation reads by name, such as `due`, by their keys in `tasks.fields`.
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
    fields: dict[str, Any] = {}
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
