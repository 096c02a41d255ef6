"""Locks on the project's files: an exclusive one keeps every other run away, shared ones go together.

A lock belongs to a run and is part of its task's record, so it ends with the run, however that ends. A lock on a
folder covers what is below it. A holder that shows no life any more keeps nobody waiting: its lock is taken away.
Whoever locks a file is asked for the right to write it. Must not know whether a file is there.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from aof.core.errors.base import AofError, Call, InvalidInput, PayloadTooLarge
from aof.core.errors.guards import FileLocked, LockRequired
from aof.core.handoffs.author import heard, holding
from aof.core.model.commands import Decide, NeedsOf, OwnRule
from aof.core.model.events import Draft
from aof.core.model.kinds import LockMode
from aof.core.model.org_chart import Agent
from aof.core.model.records import Decision, Needs, Records, Verdict
from aof.core.model.run import lease_end
from aof.core.model.task import FileLock, Lease, Task
from aof.core.model.workflow import held_leases
from aof.core.org.budgets.enforcement import AskedAction, Point, Ruling, denied, entry, ruling
from aof.core.validation import limits
from aof.core.validation.project_paths import covers, normalised, overlap

MODES: Final[tuple[LockMode, ...]] = ("exclusive", "shared")
_NAME: Final = frozenset({"files"})  # locks are taken one after the other: a folder may cover any other path
_BYTES: Final = 6_144  # of all locks of a task, which stand in its frontmatter


class LockFiles(OwnRule, frozen=True, kw_only=True):
    """Lock files or folders for a run: all of them, or none."""

    paths: tuple[str, ...]
    mode: str = "exclusive"

    def needs(self, known: Records, needs: NeedsOf) -> Needs:  # noqa: ARG002 - the contract's form
        """The task, and those that hold a lock in the way, with their holders' signs of life."""
        own = frozenset({self.task_id})
        wanted = normalised_all(self.paths)
        found = () if isinstance(wanted, AofError) else wanted
        near = frozenset(
            task_id
            for task_id, locks in known.file_locks.items()
            if task_id != self.task_id and any(overlap(lock.path, path) for lock in locks for path in found)
        )
        loaded = [task for task in map(known.tasks.get, (self.task_id, *sorted(near))) if task is not None]
        beats = frozenset(place for task in loaded for place in task.run_places)
        return Needs(write=own | near, names=_NAME, file_locks=True, heartbeats=beats)

    def decide(self, records: Records, now: int, decide: Decide) -> Verdict:  # noqa: ARG002 - the contract's form
        """Give the locks to the run, or say who has one; that is recorded too."""
        task, paths = heard(records, self), normalised_all(self.paths)
        if isinstance(task, AofError):
            return task
        if isinstance(paths, AofError):
            return paths
        lease = limits.choice("lock_type", self.mode, MODES) or holding(task, self)
        if isinstance(lease, AofError):
            return lease
        missing = tuple(path for path in paths if not self._has(task, lease, path))
        return self._taken(records, task, missing, lease, now) if missing else Decision(agent=lease.agent)

    def _taken(self, records: Records, task: Task, missing: tuple[str, ...], lease: Lease, now: int) -> Verdict:
        agent = entry(records, lease.agent)
        if ruled := self._forbidden(task, missing, lease, agent):
            told = {"agent": agent.id, "subject": missing[0], **msgspec.to_builtins(ruled)}
            asked = Draft(type="autonomy.checked", task_id=task.id, run_id=lease.run_id, payload=told)
            return Decision(drafts=(asked,), agent=agent.id, refusal=denied(agent, ruled))
        if full := _full(task, missing, lease):
            return full
        taken, lost = self._in_the_way(records, missing, lease, now)
        if taken is not None:
            return Decision(drafts=(self._refused(task, lease, taken),), agent=lease.agent, refusal=taken)
        payload = {"paths": list(missing), "mode": self.mode, "agent": lease.agent}
        locked = Draft(type="file.locked", task_id=task.id, run_id=lease.run_id, payload=payload)
        return Decision(drafts=(*lost, locked), agent=lease.agent)

    def _forbidden(self, task: Task, missing: tuple[str, ...], lease: Lease, agent: Agent) -> Ruling | None:
        """The ruling by which the agent may not work on one of the paths in this way, or not on so many."""
        point: Point = "write" if self.mode == "exclusive" else "read"
        asked = [AskedAction(point=point, subject=path) for path in missing]
        if point == "write":
            own = {lock.path for lock in task.locks if lock.run_id == lease.run_id and lock.mode == self.mode}
            asked.append(AskedAction(point="files", amount=len(own.union(missing))))
        rulings = (ruling(agent, one) for one in asked)
        return next((one for one in rulings if one.outcome == "blocked" and one.stage != "security"), None)

    def _has(self, task: Task, lease: Lease, path: str) -> bool:
        enough = (self.mode, "exclusive")
        return any(lock.run_id == lease.run_id and lock.path == path and lock.mode in enough for lock in task.locks)

    def _in_the_way(
        self, records: Records, paths: tuple[str, ...], lease: Lease, now: int
    ) -> tuple[FileLocked | None, tuple[Draft, ...]]:
        """The refusal by the first lock of somebody alive, else what takes their locks from the others."""
        lost: list[Draft] = []
        for owner in sorted((one for one in records.tasks.values() if one is not None), key=lambda one: one.id):
            for lock in owner.locks:
                if lock.run_id == lease.run_id or not self._excludes(lock, paths):
                    continue
                if alive(records, owner, lock, now):
                    return locked_by(owner, lock, paths), ()
                lost.append(unlocked(owner, (lock,), "holder_lost"))
        return None, tuple(lost)

    def _excludes(self, lock: FileLock, paths: tuple[str, ...]) -> bool:
        together = lock.mode == self.mode == "shared"
        return not together and any(overlap(lock.path, path) for path in paths)

    def _refused(self, task: Task, lease: Lease, taken: FileLocked) -> Draft:
        payload = {"paths": list(self.paths), "mode": self.mode, "agent": lease.agent, "reason": taken.code}
        held = {name: taken.details[name] for name in ("path", "holder", "holder_task", "holder_run")}
        return Draft(type="file.refused", task_id=task.id, run_id=lease.run_id, payload=payload | {"held": held})


class UnlockFiles(OwnRule, frozen=True, kw_only=True):
    """Give back locks of a run: those on these paths, or all; what it does not hold is left alone."""

    paths: tuple[str, ...] = ()

    def needs(self, known: Records, needs: NeedsOf) -> Needs:  # noqa: ARG002 - the contract's form
        """The task only: nobody gives back another's lock."""
        return Needs(write=frozenset({self.task_id}))

    def decide(self, records: Records, now: int, decide: Decide) -> Verdict:  # noqa: ARG002 - the contract's form
        """Drop the locks of the caller's own run."""
        task, paths = heard(records, self), normalised_all(self.paths) if self.paths else ()
        if isinstance(task, AofError):
            return task
        if isinstance(paths, AofError):
            return paths
        lease = holding(task, self)
        if isinstance(lease, AofError):
            return lease
        own = tuple(lock for lock in task.locks if lock.run_id == lease.run_id and (not paths or lock.path in paths))
        drafts = (unlocked(task, own, "released"),) if own else ()
        return Decision(drafts=drafts, agent=lease.agent)


def normalised_all(paths: tuple[str, ...]) -> tuple[str, ...] | AofError:
    """Each path in its one spelling, once."""
    if not paths:
        return InvalidInput("'paths' must name at least one file", "name what the run will write, such as src/api.py")
    if len(paths) > limits.ITEMS:
        return PayloadTooLarge(f"'paths' has {len(paths)} items, the limit is {limits.ITEMS}", "lock their folder")
    found: dict[str, None] = {}
    for path in paths:
        one = normalised("paths", path)
        if isinstance(one, AofError):
            return one
        found[one] = None
    return tuple(found)


def _full(task: Task, paths: tuple[str, ...], lease: Lease) -> PayloadTooLarge | None:
    spelled = sum(len(lock.path.encode()) + len(lock.agent) + len(lock.run_id) + 100 for lock in task.locks)
    spelled += sum(len(path.encode()) + len(lease.agent) + len(lease.run_id) + 100 for path in paths)
    if spelled <= _BYTES:
        return None
    return PayloadTooLarge(f"{task.id} would hold too many locks", "lock the folder that they are in instead")


def alive(records: Records, owner: Task, lock: FileLock, now: int) -> bool:
    """Whether the run that holds the lock still has its lease, by its last sign of life."""
    for place, lease in held_leases(owner):
        if lease.run_id == lock.run_id:
            return lease_end(lease, records.heartbeats[place]) > now
    return False


def unlocked(owner: Task, locks: tuple[FileLock, ...], reason: str) -> Draft:
    """The event that ends locks of one run."""
    payload = {"paths": [lock.path for lock in locks], "agent": locks[0].agent, "reason": reason}
    return Draft(type="file.unlocked", task_id=owner.id, run_id=locks[0].run_id, payload=payload)


def locked_by(owner: Task, lock: FileLock, paths: tuple[str, ...]) -> FileLocked:
    """The refusal that says who holds what, and since when."""
    path = next(path for path in paths if overlap(lock.path, path))
    what = f"'{path[:80]}' is locked" if path == lock.path else f"'{path[:80]}' overlaps '{lock.path[:80]}', locked"
    return FileLocked(
        f"{what} ({lock.mode}) by {lock.agent} since {lock.since}, for run {lock.run_id} of {owner.id}",
        "work on something else until it is released, or hand the change over to its holder",
        Call("locks", {"path": path}),
        path=lock.path,
        mode=lock.mode,
        holder=lock.agent,
        holder_task=owner.id,
        holder_run=lock.run_id,
        since=lock.since,
    )


def may_write(task: Task, run: str, path: str) -> bool:
    """Whether the run has an exclusive lock on the path, or on a folder above it."""
    return any(lock.run_id == run and lock.mode == "exclusive" and covers(lock.path, path) for lock in task.locks)


def required(task: Task, path: str) -> LockRequired:
    """The refusal of a write without a lock."""
    return LockRequired(
        f"'{path[:80]}' may be written only under an exclusive lock, and the run of {task.id} holds none on it",
        "lock it first",
        Call("lock", {"path": path, "task_id": task.id}),
        path=path,
    )


def told(owner: Task, lock: FileLock, *, lost: bool = False) -> dict[str, Any]:
    """A lock as lists show it."""
    return {
        "path": lock.path,
        "lockType": lock.mode,
        "owner": lock.agent,
        "taskId": owner.id,
        "runId": lock.run_id,
        "since": lock.since,
        "state": "lost" if lost else "held",
    }
