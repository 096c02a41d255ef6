"""What each command looks at, so that exactly this can be locked and loaded before it is decided.

`needs` is asked again after each loading, with more known; once nothing new comes, the set is complete. What is no task
ID is never asked for. Must not decide anything: asking for too much costs time, asking for too little is a bug.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from aof.kernel import commands, limits
from aof.kernel.commands import Needs, Records
from aof.kernel.model import FINISHED, is_task_id, run_place
from aof.org import budgets, rights, routing
from aof.runs import results as runs_results
from aof.tasks import lifecycle, manual_edits
from aof.tasks.fields import escaping_reference
from aof.tasks.lifecycle import topmost
from aof.tasks.model import Task
from aof.tasks.rules import TO_FILES, target_task

_GRAPH = frozenset({"graph"})


class Known:
    """What has been loaded so far, with nothing instead of an error for what has not."""

    def __init__(self, records: Records) -> None:
        self.records = msgspec.structs.replace(records, tasks=_Loaded(records.tasks))

    def task(self, task_id: str) -> Task | None:
        """The task, if it has been loaded and is there."""
        return self.records.tasks[task_id]

    def children(self, task_id: str) -> tuple[str, ...]:
        """The tasks directly below, as far as known."""
        return self.records.children.get(task_id, ())

    def dependents(self, task_id: str) -> tuple[str, ...]:
        """The tasks that wait for it, as far as known."""
        return self.records.dependents.get(task_id, ())

    def above(self, task_id: str) -> set[str]:
        """Every ancestor, once they have been asked for."""
        return ids(self.records.above.get(task_id, ()))

    def gatekeepers(self, parent_id: str | None) -> Needs:
        """The tasks that decide whether a task may be created or run below the parent.

        A cancellation reaches every unfinished task below it in the same commit, so an unfinished parent answers for
        all that stands above it. A finished one is passed over by the cancellation: then all ancestors are asked.
        """
        if parent_id is None:
            return Needs()
        parent = ids([parent_id])
        tasks = [task for task in map(self.task, parent) if task is not None]
        finished = frozenset(task.id for task in tasks if task.status in FINISHED)
        return Needs(read=frozenset(parent.union(*map(self.above, finished))), above=finished)


class _Loaded(dict[str, Task | None]):
    """Tasks by ID, None for those that have not been loaded."""

    def __missing__(self, key: str) -> None:
        return None


def ids(found: Iterable[object]) -> set[str]:
    """Those that can be task IDs; the others name nothing that could be loaded."""
    return {task_id for task_id in found if isinstance(task_id, str) and is_task_id(task_id)} if found else set()


def needs(command: commands.OnTask, known: Records) -> Needs:
    """The records and locks that the command needs, as far as can be said from what is known."""
    if isinstance(command, commands.OnDocument):
        return command.needs(known, needs)
    if not is_task_id(command.task_id):
        return Needs()
    describe = _NEEDS.get(type(command))
    if describe is not None:
        return describe(command, Known(known))
    return (
        command.needs(known, needs)
        if isinstance(command, commands.OwnRule)
        else Needs(write=frozenset({command.task_id}))
    )


def _create(command: commands.Create, known: Known) -> Needs:
    parent = known.gatekeepers(command.parent_id)
    read = ids(command.depends_on) | parent.read
    own = frozenset({command.task_id})
    if command.key is None or limits.key(command.key):
        return Needs(write=own, read=frozenset(read), above=parent.above)
    read |= ids([known.records.key_owners.get(command.key)])
    names, keys = frozenset({f"key:{command.key}"}), frozenset({command.key})
    return Needs(write=own, read=frozenset(read), names=names, keys=keys, above=parent.above)


def _starting(command: commands.OnTask, known: Known) -> Needs:
    """A new run reads the dependencies, the children it may wait for, and the tasks that occupy the resource."""
    task = known.task(command.task_id)
    own = frozenset({command.task_id})
    if task is None or (task.status not in ("ready", "review") and not (task.gated and task.waits_for_children)):
        return Needs(write=own)
    read = ids(task.depends_on)
    waits = task.waits_for_children
    if waits:
        read |= ids(known.children(task.id))
    resources = frozenset({task.resource}) if task.resource else frozenset()
    return Needs(
        write=own,
        read=frozenset(read),
        names=frozenset(f"resource:{resource}" for resource in resources),
        children=own if waits else frozenset(),
        resources=resources,
    )


def _claiming(command: commands.OnTask, known: Known) -> Needs:
    """Where the org chart limits how much an agent may hold, a claim also looks at what it and its team hold."""
    base = msgspec.structs.replace(_starting(command, known), heartbeats=_held(command, known))
    chart, task = known.records.policy.org, known.task(command.task_id)
    takes = task is not None and (task.status in ("ready", "review") or (task.gated and task.status == "in-progress"))
    if chart is None or not takes:
        return base

    agent = rights.entry_of(chart, command.acting, known.records.policy.maintainers)
    if agent is None:
        return base
    return msgspec.structs.replace(
        base, names=base.names | routing.capacity_locks(chart, agent), agents=routing.counted_agents(chart, agent)
    )


def _beating(command: commands.OnTask, known: Known) -> Needs:
    return Needs(write=frozenset({command.task_id}), heartbeats=_running(command, known))


def _held(command: commands.OnTask, known: Known) -> frozenset[str]:
    """The runs that a claim finds there: whoever is refused because of one is told whether its lease has ended."""
    task = known.task(command.task_id)
    return frozenset() if task is None or task.status != "in-progress" else frozenset(task.run_places)


def _running(command: commands.OnTask, known: Known) -> frozenset[str]:
    """What the records of the current run go by, or those of the hops that run."""
    task = known.task(command.task_id)
    return frozenset({command.task_id} if task is None else task.run_places)


def _completing(command: commands.Complete, known: Known) -> Needs:
    """A report ends a run; in a workflow it may also kill the task. What it delivers is measured where that counts."""
    base = _finishing(_starting(command, known), command, known)
    base = msgspec.structs.replace(base, digests=_delivered(command))
    task = known.task(command.task_id)
    if task is not None and task.status != "in-progress" and task.retry.attempts and not task.gated:
        base = msgspec.structs.replace(base, results=frozenset({task.id}))  # whether the report is a repeated one
    if known.records.policy.org is not None and command.deliverables:
        base = msgspec.structs.replace(base, sizes=budgets.sizes(known.records, task, command, command.deliverables))
    if task is None or not task.gated:
        return base
    more = _ending(command, known)
    write = base.write | more.write
    read = (base.read | more.read) - write
    over = (hop["id"] for hop in task.workflow["hops"] if "runId" in hop and "lease" not in hop)
    results = frozenset(run_place(task.id, hop) for hop in over)  # whether the report is a repeated one
    return msgspec.structs.replace(
        base, write=write, read=read, dependents=more.dependents, above=more.above, results=results
    )


def _delivered(command: commands.Complete) -> frozenset[tuple[str, str]]:
    """What is delivered is known by its content."""
    paths = command.deliverables if len(command.deliverables) <= limits.ITEMS else ()
    return frozenset((command.task_id, path) for path in paths if _is_inside(path))


def _is_inside(ref: str) -> bool:
    """Whether it can name a file of the task."""
    return limits.line("ref", ref, limits.REASON) is None and escaping_reference(("ref", ref)) is None


def _finishing(base: Needs, command: commands.OnTask, known: Known) -> Needs:
    """What may finish a task looks for the files that the task requires, and tells those that wait for it."""
    task = known.task(command.task_id)
    if task is None:
        return base
    base = msgspec.structs.replace(
        base,
        children=base.children | {task.id},
        read=(base.read | ids(known.children(task.id))) - base.write,
        files=base.files | lifecycle.required_files(task),
    )
    reviewed = task.status != "review" and task.metadata.get("reviewRequired") is not False
    if reviewed:
        return base
    write = base.write | ids(known.dependents(task.id))
    read = (base.read | ids([task.parent_id])) - write
    return msgspec.structs.replace(base, write=write, read=read, dependents=base.dependents | {task.id})


def _approving(command: commands.OnTask, known: Known) -> Needs:
    return _finishing(_judging(command, known), command, known)


def _releasing(command: commands.Release, known: Known) -> Needs:
    return _with_children(_judging(command, known), command, known)


def _with_children(base: Needs, command: commands.Release | commands.Update, known: Known) -> Needs:
    """A task that is to wait for its children asks which of them have not ended."""
    if not command.wait_for_children:
        return base
    below = ids(known.children(command.task_id))
    return msgspec.structs.replace(
        base, read=(base.read | below) - base.write, children=base.children | {command.task_id}
    )


def _judging(command: commands.OnTask, known: Known) -> Needs:
    """Like `_returning`; what lets a workflow go on may also find that it has failed."""
    task = known.task(command.task_id)
    return _ending(command, known) if task is not None and task.gated else _returning(command, known)


def _returning(command: commands.OnTask, known: Known) -> Needs:
    """A task that goes back to waiting reads whether its dependencies are alive."""
    task = known.task(command.task_id)
    return Needs(write=frozenset({command.task_id}), read=frozenset(ids(task.depends_on if task else ())))


def _ending(command: commands.OnTask, known: Known) -> Needs:
    """A command that may end or revive a task tells its dependents; these read their other dependencies."""
    own = frozenset({command.task_id})
    task = known.task(command.task_id)
    waiting = known.dependents(command.task_id)
    parent = known.gatekeepers(task.parent_id if task else None)
    read = ids(task.depends_on if task else ()) | parent.read
    for dependent_id in waiting:
        dependent = known.task(dependent_id)
        read |= ids(dependent.depends_on if dependent is not None else ())
    write = own | ids(waiting)
    return Needs(write=write, read=frozenset(read) - write, dependents=own, above=parent.above)


def _cancelling(command: commands.OnTask, known: Known) -> Needs:
    """The whole tree of the cancellation that this belongs to, and everything that depends on any of it."""
    task = known.task(command.task_id)
    own = frozenset({command.task_id})
    above = known.above(command.task_id) if task is not None and task.cancel is not None else set()
    top = topmost(known.records, task).id if task is not None and task.cancel is not None else command.task_id
    tree = [top] if top == command.task_id else [top, command.task_id]
    write = set(tree)
    for member in tree:
        fresh = ids(known.children(member)) - write
        tree += sorted(fresh)
        write |= fresh
    for member in tree:
        write |= ids(known.dependents(member))
    return Needs(
        write=frozenset(write),
        read=frozenset(above - write),
        above=own if task is not None and task.cancel is not None else frozenset(),
        trees=own | {top},
        dependents=frozenset(tree),
    )


def _settling(command: commands.OnTask, known: Known) -> Needs:
    task = known.task(command.task_id)
    cancelled = task is not None and task.cancel is not None
    return _cancelling(command, known) if cancelled else Needs(write=frozenset({command.task_id}))


def _expire(command: commands.OnTask, known: Known) -> Needs:
    task = known.task(command.task_id)
    cancelled = task is not None and task.cancel is not None
    base = _cancelling(command, known) if cancelled else _ending(command, known)
    running = _running(command, known)
    files = runs_results.referred_files(known.records, command.task_id)
    sizes = budgets.sizes_of_report(known.records, command.task_id)
    return msgspec.structs.replace(base, heartbeats=running, results=running, files=files, sizes=sizes)


def _timing_out(command: commands.OnTask, known: Known) -> Needs:
    """A hop whose run has reported is ended by that."""
    running, files = _running(command, known), runs_results.referred_files(known.records, command.task_id)
    sizes = budgets.sizes_of_report(known.records, command.task_id)
    return msgspec.structs.replace(_ending(command, known), results=running, files=files, sizes=sizes)


def _dependency(command: commands.AddDependency, _known: Known) -> Needs:
    blocker = frozenset(ids([command.blocker_id]))
    own = frozenset({command.task_id})
    return Needs(write=own, read=blocker - own, names=_GRAPH, reachable=blocker)


def _no_dependency(command: commands.RemoveDependency, known: Known) -> Needs:
    base = _returning(command, known)
    blocker = frozenset(ids([command.blocker_id])) - base.write
    return msgspec.structs.replace(base, read=base.read | blocker, names=_GRAPH)


def _link(command: commands.AddLink, known: Known) -> Needs:
    own = frozenset({command.task_id})
    if command.kind == "parent":
        return _new_parent(own, command.target_id, known)
    inside = command.kind in TO_FILES and _is_inside(command.target_id)
    digests = frozenset({(command.task_id, command.target_id)}) if inside else frozenset()
    other = target_task(command)
    return Needs(write=own, read=frozenset(ids([other] if other else ())) - own, digests=digests)


def _new_parent(own: frozenset[str], parent_id: str, known: Known) -> Needs:
    parent = known.gatekeepers(parent_id)
    above = parent.above | ids([parent_id])
    return Needs(write=own, read=parent.read - own, names=_GRAPH, above=above)


def _edit(command: commands.Edit, known: Known) -> Needs:
    own, parent = frozenset({command.task_id}), command.changes.get("parentId")
    return _new_parent(own, parent, known) if isinstance(parent, str) else Needs(write=own)


def _update(command: commands.Update, known: Known) -> Needs:
    describe = _claiming if command.status == "in-progress" else _MOVES.get(str(command.status), _beating)
    base = _with_children(describe(command, known), command, known)
    return msgspec.structs.replace(base, heartbeats=_running(command, known))


def _take_in(command: commands.ImportEdit, known: Known) -> Needs:
    own = frozenset({command.task_id})
    task = known.task(command.task_id)
    given = manual_edits.theirs(command.created if command.created is not None else command.changes)
    base = _MOVES.get(str(command.status), _returning)(command, known)
    edges = given.get("dependsOn")
    parent = given.get("parentId")
    listed = ids(edges) if isinstance(edges, list | tuple) else set()
    fresh = listed - set(task.depends_on) if task is not None else set()
    named = parent if isinstance(parent, str) else None
    gate = known.gatekeepers(named)
    return msgspec.structs.replace(
        base,
        read=frozenset((base.read | listed | gate.read) - base.write - own),
        above=base.above | gate.above | ids([named]),
        names=base.names | (_GRAPH if fresh or parent is not None else frozenset()),
        reachable=frozenset(fresh),
    )


_MOVES: dict[str, Callable[[Any, Known], Needs]] = {
    "in-progress": _starting,
    "cancelled": _cancelling,
    "deadletter": _ending,
    "ready": _ending,
    "backlog": _returning,
    "done": _approving,
}
_NEEDS: dict[type[commands.OnTask], Callable[[Any, Known], Needs]] = {
    commands.Create: _create,
    commands.CreateGated: _create,
    commands.Claim: _claiming,
    commands.Complete: _completing,
    commands.RecordHeartbeat: _beating,
    commands.ReportProgress: _beating,
    commands.Ask: _beating,
    commands.AnswerQuestion: _judging,
    commands.Release: _releasing,
    commands.Approve: _approving,
    commands.Reject: _judging,
    commands.Unblock: _judging,
    commands.Resume: _judging,
    commands.Fail: _ending,
    commands.RetryTask: _ending,
    commands.TimeOut: _timing_out,
    commands.CancelTask: _cancelling,
    commands.Settle: _settling,
    commands.Expire: _expire,
    commands.Promote: _judging,
    commands.DeadLetter: _ending,
    commands.AddDependency: _dependency,
    commands.RemoveDependency: _no_dependency,
    commands.AddLink: _link,
    commands.Edit: _edit,
    commands.Update: _update,
    commands.ImportEdit: _take_in,
}
