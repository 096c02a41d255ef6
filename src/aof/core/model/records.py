"""What a decision may look at: the loaded records, and the policy in force.

The application fills it from the store. Must not know how to load anything.
"""

from __future__ import annotations

from typing import Any

import msgspec

from aof.core.errors.base import AofError
from aof.core.model.events import Draft
from aof.core.model.handoffs import record
from aof.core.model.ids import is_task_id
from aof.core.model.numbers import Numbers
from aof.core.model.policy import Policy
from aof.core.model.run import Heartbeat, RunResult
from aof.core.model.task import FileLock, Task

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
    handoffs: dict[str, tuple[record.Handoff, ...]] = {}
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

    def look(self, task_id: str) -> Task | None:
        """A task that may not exist; what is not an ID was never asked for and names nothing."""
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
