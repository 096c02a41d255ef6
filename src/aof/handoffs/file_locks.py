"""Locks on the files of the project: a run locks what it will write, and others keep away from it."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from aof.errors import AofError, Call, FileLocked, InvalidInput, LockRequired, PayloadTooLarge
from aof.handoffs.participants import holding, subject_task
from aof.kernel import limits
from aof.kernel.commands import Decide, Decision, Needs, NeedsOf, OwnRule, Records, Verdict
from aof.kernel.events import Draft
from aof.kernel.kinds import LockMode
from aof.kernel.limits import covers, normalised, overlap
from aof.org.budgets import AskedAction, Point, Ruling, denied, entry, ruling
from aof.org.model import Agent
from aof.runs.model import lease_end
from aof.tasks.model import FileLock, Lease, Task
from aof.workflows.model import held_leases

MODES: Final[tuple[LockMode, ...]] = ("exclusive", "shared")
_ALL_LOCKS: Final = frozenset({"files"})  # locks are taken one after the other: a folder may cover any other path
_BYTES: Final = 6_144  # of all locks of a task, which stand in its frontmatter
_BYTES_BESIDE_NAMES: Final = 100  # of one lock: its keys, mode and time


class LockFiles(OwnRule, frozen=True, kw_only=True):
    """Lock files or folders for a run: all of them, or none."""

    paths: tuple[str, ...]
    mode: str = "exclusive"

    def needs(self, known: Records, needs: NeedsOf) -> Needs:
        """The task, and those that hold a lock in the way, with their holders' signs of life."""
        own = frozenset({self.task_id})
        wanted = normalised_all(self.paths)
        paths = () if isinstance(wanted, AofError) else wanted
        near = frozenset(
            task_id
            for task_id, locks in known.file_locks.items()
            if task_id != self.task_id and any(overlap(lock.path, path) for lock in locks for path in paths)
        )
        loaded = [task for task in map(known.tasks.get, (self.task_id, *sorted(near))) if task is not None]
        beats = frozenset(place for task in loaded for place in task.run_places)
        return Needs(write=own | near, names=_ALL_LOCKS, file_locks=True, heartbeats=beats)

    def decide(self, records: Records, now: int, decide: Decide) -> Verdict:
        """Give the locks to the run, or say who has one; that is recorded too."""
        found = _of_run(records, self)
        if isinstance(found, AofError):
            return found
        task, paths, lease = found
        enough = (self.mode, "exclusive")
        held = {lock.path for lock in task.locks if lock.run_id == lease.run_id and lock.mode in enough}
        missing = tuple(path for path in paths if path not in held)
        if not missing:
            return Decision(agent=lease.agent)
        agent = entry(records, lease.agent)
        if ruled := self._forbidden(task, missing, lease, agent):
            payload = {"agent": agent.id, "subject": missing[0], **msgspec.to_builtins(ruled)}
            checked = Draft(type="autonomy.checked", task_id=task.id, run_id=lease.run_id, payload=payload)
            return Decision(drafts=(checked,), agent=agent.id, refusal=denied(agent, ruled))
        if too_many := _too_many(task, missing, lease):
            return too_many
        return self._locked(records, task, missing, lease, now)

    def _forbidden(self, task: Task, missing: tuple[str, ...], lease: Lease, agent: Agent) -> Ruling | None:
        """The ruling by which the agent may not work on one of the paths in this way, or not on so many."""
        point: Point = "write" if self.mode == "exclusive" else "read"
        actions = [AskedAction(point=point, subject=path) for path in missing]
        if point == "write":
            own = {lock.path for lock in task.locks if lock.run_id == lease.run_id and lock.mode == self.mode}
            actions.append(AskedAction(point="files", amount=len(own.union(missing))))
        rulings = (ruling(agent, action) for action in actions)
        return next((one for one in rulings if one.outcome == "blocked" and one.stage != "security"), None)

    def _locked(self, records: Records, task: Task, missing: tuple[str, ...], lease: Lease, now: int) -> Verdict:
        """The first lock in the way whose holder is alive refuses the call; the locks of the others end."""
        lost: list[Draft] = []
        for owner in sorted((one for one in records.tasks.values() if one is not None), key=lambda one: one.id):
            for lock in owner.locks:
                shared = lock.mode == self.mode == "shared"
                if shared or lock.run_id == lease.run_id or not any(overlap(lock.path, path) for path in missing):
                    continue
                if not lock_alive(records, owner, lock, now):
                    lost.append(unlocked(owner, (lock,), "holder_lost"))
                    continue
                refusal = locked_by(owner, lock, missing)
                held = {name: refusal.details[name] for name in ("path", "holder", "holder_task", "holder_run")}
                payload: dict[str, Any] = {"paths": list(self.paths), "mode": self.mode, "agent": lease.agent}
                payload |= {"reason": refusal.code, "held": held}
                refused = Draft(type="file.refused", task_id=task.id, run_id=lease.run_id, payload=payload)
                return Decision(drafts=(refused,), agent=lease.agent, refusal=refusal)
        payload = {"paths": list(missing), "mode": self.mode, "agent": lease.agent}
        locked = Draft(type="file.locked", task_id=task.id, run_id=lease.run_id, payload=payload)
        return Decision(drafts=(*lost, locked), agent=lease.agent)


class UnlockFiles(OwnRule, frozen=True, kw_only=True):
    """Give back locks of a run: those on these paths, or all; what it does not hold is left alone."""

    paths: tuple[str, ...] = ()

    def needs(self, known: Records, needs: NeedsOf) -> Needs:
        """The task only: nobody gives back another's lock."""
        return Needs(write=frozenset({self.task_id}))

    def decide(self, records: Records, now: int, decide: Decide) -> Verdict:
        """Drop the locks of the caller's own run."""
        found = _of_run(records, self)
        if isinstance(found, AofError):
            return found
        task, paths, lease = found
        own = tuple(lock for lock in task.locks if lock.run_id == lease.run_id and (not paths or lock.path in paths))
        return Decision(drafts=(unlocked(task, own, "released"),) if own else (), agent=lease.agent)


def _of_run(records: Records, command: LockFiles | UnlockFiles) -> tuple[Task, tuple[str, ...], Lease] | AofError:
    """The task, the paths in their one spelling, and the lease that the caller holds."""
    task = subject_task(records, command)
    if isinstance(task, AofError):
        return task
    paths = normalised_all(command.paths) if command.paths or isinstance(command, LockFiles) else ()
    if isinstance(paths, AofError):
        return paths
    bad_mode = limits.choice("lock_type", command.mode, MODES) if isinstance(command, LockFiles) else None
    lease = bad_mode or holding(task, command)
    return lease if isinstance(lease, AofError) else (task, paths, lease)


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


def _too_many(task: Task, paths: tuple[str, ...], lease: Lease) -> PayloadTooLarge | None:
    locks = [(lock.path, lock.agent, lock.run_id) for lock in task.locks]
    locks += [(path, lease.agent, lease.run_id) for path in paths]
    size = sum(len(path.encode()) + len(agent) + len(run) + _BYTES_BESIDE_NAMES for path, agent, run in locks)
    if size <= _BYTES:
        return None
    return PayloadTooLarge(f"{task.id} would hold too many locks", "lock the folder that they are in instead")


def lock_alive(records: Records, owner: Task, lock: FileLock, now: int) -> bool:
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


def lock_missing(task: Task, run: str, path: str) -> LockRequired | None:
    """The refusal of a write to a path on which, or on a folder above which, the run has no exclusive lock."""
    if any(lock.run_id == run and lock.mode == "exclusive" and covers(lock.path, path) for lock in task.locks):
        return None
    return LockRequired(
        f"'{path[:80]}' may be written only under an exclusive lock, and the run of {task.id} holds none on it",
        "lock it first",
        Call("lock", {"path": path, "task_id": task.id}),
        path=path,
    )


def listed_lock(owner: Task, lock: FileLock, *, lost: bool = False) -> dict[str, Any]:
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
