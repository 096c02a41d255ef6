"""Load, decide, commit: how every command is carried out, on whatever store.

First with the locks that are surely needed; if it turns out that more is read, it releases all and starts over
with the union, so that no decision rests on something that was not locked. Must not know any surface or any rule.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from aof.errors import AnotherTask, AofError, CommitUnknown, EditWaits, Unavailable, UnreadableTask
from aof.kernel import commands, decide, needs
from aof.kernel.commands import Decision, ImportEdit, Needs, OnTask, Records, Verdict
from aof.kernel.events import Event, is_remark
from aof.kernel.evolve import evolve
from aof.kernel.model import TAG_DIGITS, Policy, run_place
from aof.runs.model import present_heartbeat, stamped_heartbeat
from aof.store.port import Clock, Scope, ScopeTooNarrow, Store, Unit
from aof.tasks.model import Task

_ENTROPY_BYTES = 16
PolicyOf = Callable[[], Policy]  # asked only where a person has changed a file


class Done(msgspec.Struct, frozen=True):
    """What a command did: the events, the task as it is now, and the secret of a run that it began."""

    task: Task | None
    events: tuple[Event, ...] = ()
    decision: Decision = Decision()
    secret: str | None = None


def draw() -> tuple[str, str]:
    """The random parts of IDs that a command may give: that of a run, and the text that those of handoffs come from."""
    random = os.urandom(TAG_DIGITS // 2 + _ENTROPY_BYTES).hex()
    return random[:TAG_DIGITS], random[TAG_DIGITS:]


def execute(store: Store, clock: Clock, policy: Policy, command: OnTask) -> Done:
    """Carry out a command, or raise the refusal."""
    scope = Scope(write=frozenset({command.task_id})) if command.task_id else Scope()
    while True:
        try:
            with store.unit(scope) as unit:
                done = _within(unit, scope, clock, policy, command)
                again = done.decision.repeats
                return done if again is None else _answered(store, command.task_id, again, done.decision)
        except ScopeTooNarrow as wider:
            scope = scope.union(wider.scope)


def rehearse(store: Store, clock: Clock, policy: Policy, command: OnTask) -> Decision:
    """What the command would do now, or raise the refusal. Nothing is recorded, and no edit by hand is imported."""
    scope = Scope(write=frozenset({command.task_id}))
    while True:
        try:
            with store.unit(scope) as unit:
                verdict = _decided(_load(unit, scope, policy, command), clock, command, clock.now())
                unit.flush()
        except ScopeTooNarrow as wider:
            scope = scope.union(wider.scope)
            continue
        if isinstance(verdict, AofError):
            raise verdict
        return verdict


def _decided(records: Records, clock: Clock, command: OnTask, now: int) -> Verdict:
    """The decision; what the last signs of life say is put in terms of this clock before."""
    for task_id, heartbeat in records.heartbeats.items():
        records.heartbeats[task_id] = present_heartbeat(heartbeat, now, clock.boot())
    return decide.decide(records, command, now)


def _within(unit: Unit, scope: Scope, clock: Clock, policy: Policy, command: OnTask) -> Done:
    records = _load(unit, scope, policy, command)
    while _take_in(unit, scope, clock, lambda: policy, records.tasks, subject=command.task_id):
        records = _load(unit, scope, policy, command)
    now = clock.now()
    verdict = _decided(records, clock, command, now)
    if isinstance(verdict, AofError):
        unit.flush()
        raise verdict
    events: tuple[Event, ...] = ()
    if verdict.drafts:
        agent = verdict.agent or command.agent
        events = unit.commit(verdict.drafts, actor=command.actor, agent=agent, now=now, caller=command.session)
    else:
        unit.flush()
    if events and isinstance(command, commands.OnDocument):
        _follow_commit(unit, scope, policy)
    if verdict.heartbeat is not None:
        try:
            beat = verdict.heartbeat
            before = unit.heartbeat(run_place(beat.task_id, beat.hop)) if beat.beat_count else None
            unit.beat(stamped_heartbeat(beat, before, clock.boot()))
        except Unavailable:
            if not events:  # else the change is made, and only its sign of life is missing
                raise
    subject = verdict.replayed or command.task_id
    return Done(unit.task(subject), events, verdict)


def _answered(store: Store, task_id: str, key: str, decision: Decision) -> Done:
    """What a command did when it was first given: its events, and the task as they left it."""
    history = tuple(store.events(task_id=task_id))
    asked = next(event for event in reversed(history) if event.payload.get("idempotency", {}).get("value") == key)
    place, size = asked.commit
    end = asked.seq - place + size
    task: Task | None = None
    for event in history:
        if event.seq <= end and not is_remark(event):
            task = evolve(task, event)
    return Done(task, tuple(event for event in history if asked.seq <= event.seq <= end), decision)


def _take_in(
    unit: Unit,
    scope: Scope,
    clock: Clock,
    policy: PolicyOf,
    task_ids: Iterable[str],
    *,
    subject: str,
    accepted_by: str | None = None,
) -> bool:
    """What people did to the files of the loaded tasks becomes part of the log first; returns whether anything did.

    What cannot be imported stops a command on that very task; for all others the task is as the log has it. An edit
    that waits for a maintainer stops nothing: the log's version counts, and the file stays the person's.
    """
    taken = False
    for task_id in task_ids:
        edit = unit.edit(task_id)
        if edit is None:
            continue
        if accepted_by is not None and isinstance(edit, ImportEdit):
            edit = msgspec.structs.replace(edit, actor=accepted_by, accepted=True)
        now = clock.now()
        verdict = _judged(unit, scope, policy(), edit, now)
        if isinstance(verdict, Decision) and isinstance(edit, ImportEdit):
            unit.take_in(edit, verdict.drafts, now)
            taken = True
        elif isinstance(verdict, AofError) and task_id == subject and not isinstance(verdict, EditWaits):
            raise _in_the_way(task_id, verdict)
    return taken


def _judged(unit: Unit, scope: Scope, policy: Policy, edit: ImportEdit | AofError, now: int) -> Verdict:
    return edit if isinstance(edit, AofError) else decide.decide(_load(unit, scope, policy, edit), edit, now)


def _in_the_way(task_id: str, problem: AofError) -> AofError:
    if isinstance(problem, (UnreadableTask, AnotherTask, EditWaits)):
        return problem
    return UnreadableTask(
        f"the change made by hand to the file of {task_id} cannot be imported: {problem.message}",
        f"{problem.hint or 'undo it'}; or let 'aof doctor --fix' restore the log's version",
        task_id=task_id,
        reason=problem.code,
    )


def _load(unit: Unit, scope: Scope, policy: Policy, command: OnTask) -> Records:
    """Everything that the command needs, loaded until nothing new comes; all of it must be locked."""
    own = frozenset({command.task_id})
    only_own = Needs(write=own)
    run_tag, entropy = draw()
    records = Records(policy=policy, run_tag=run_tag, entropy=entropy)
    if own <= scope.write:  # every command needs its own task, and most need nothing else
        records.tasks[command.task_id] = unit.task(command.task_id)
    loaded: Needs | None = None
    while True:
        wanted = needs.needs(command, records)
        if wanted == loaded or (wanted == only_own and command.task_id in records.tasks):
            return records
        asked = Scope(wanted.write, wanted.read - wanted.write, wanted.names)
        if not scope.covers(asked):
            raise ScopeTooNarrow(asked)
        if wanted.documents - records.documents.keys():
            follow(unit, scope.names, policy)
        if not _fill(unit, wanted, records):
            return records
        loaded = wanted


def _fill(unit: Unit, wanted: Needs, records: Records) -> bool:
    """Load what is wanted. Tells whether more may be needed now: an empty answer means what none at all means."""
    more = bool(wanted.documents or wanted.trees or wanted.file_locks or wanted.handoffs)
    for task_id in wanted.write | wanted.read:
        if task_id not in records.tasks:
            records.tasks[task_id] = unit.task(task_id)
            more = True
    for place in wanted.heartbeats:  # of which nothing follows
        records.heartbeats[place] = unit.heartbeat(place)
    asked: tuple[tuple[frozenset[str], dict[str, Any], Callable[[str], Any]], ...] = (
        (wanted.results, records.results, unit.result),
        (wanted.above, records.above, unit.above),
        (wanted.children, records.children, unit.children),
        (wanted.reachable, records.reachable, unit.reachable),
        (wanted.resources, records.resource_holders, unit.resource_holders),
        (wanted.agents, records.held, unit.held_by),
        (wanted.keys, records.key_owners, unit.key_owner),
    )
    for names, answers, ask in asked:
        for name in names:
            answer = answers[name] = ask(name)
            more = more or bool(answer)
    for root in wanted.trees - records.children.keys():  # under the same locks it would be the same tree
        records.children |= unit.tree(root)
    if unknown := wanted.dependents - records.dependents.keys():
        records.dependents |= unit.dependents_of(unknown)
        more = more or any(map(records.dependents.get, unknown))
    _fill_rarer(unit, wanted, records)
    return more


def follow(unit: Unit, names: Iterable[str], policy: Policy) -> list[str]:
    """Let every document whose lock is among the names catch up with the log; answers with the note about each."""
    from aof.documents import reading as documents_reading

    return [unit.follow(projection) for projection in documents_reading.locked_documents(names, policy)]


def _follow_commit(unit: Unit, scope: Scope, policy: Policy) -> None:
    """Let documents follow what was just committed; an error here leaves the commit in the log."""
    try:
        follow(unit, scope.names, policy)
    except ScopeTooNarrow:
        pass  # somebody has deleted the lock: whoever takes it next lets the document follow
    except (AofError, OSError) as error:
        why = error.message if isinstance(error, AofError) else error.strerror
        raise CommitUnknown(
            f"what was said is in the log, but its document could not be written ({why})",
            "put that right; the next command that reads or writes the document writes it",
        ) from error


def _fill_rarer(unit: Unit, wanted: Needs, records: Records) -> None:
    """What documents, locks on files, handoffs and reports with files ask for."""
    if wanted.documents:
        records.documents |= {path: unit.document(path) for path in wanted.documents}
        records.numbers = unit.numbers()
    if wanted.file_locks:
        records.file_locks |= unit.file_locks()
    if not (wanted.handoffs or wanted.files or wanted.sizes or wanted.digests):
        return
    records.digests |= {(task_id, ref): unit.digest(task_id, ref) for task_id, ref in wanted.digests}
    records.sizes |= {(task_id, ref): unit.size(task_id, ref) for task_id, ref in wanted.sizes}
    for task_id in wanted.handoffs:
        records.handoffs[task_id] = unit.handoffs(task_id)
    records.missing.update((task_id, ref) for task_id, ref in wanted.files if unit.lacks(task_id, ref))


def load_task(store: Store, clock: Clock, policy: PolicyOf, task_id: str) -> Task | None:
    """One task as it is now; a person's edit of its file is imported first."""
    return settle(store, clock, policy, task_id)[1]


def settle(
    store: Store, clock: Clock, policy: PolicyOf, task_id: str, *, odd: bool = False, accepted_by: str | None = None
) -> tuple[Task | None, Task | None]:
    """Take in what a person did to a task's file: the task as the log had it, and as it is now.

    `odd` says that there is something to import, which saves a look; `accepted_by` is the maintainer who confirms it.
    """
    own = frozenset({task_id})
    scope = Scope(write=own) if odd else Scope(read=own)
    while True:
        try:
            with store.unit(scope) as unit:
                before = unit.task(task_id)
                _take_in(unit, scope, clock, policy, (task_id,), subject=task_id, accepted_by=accepted_by)
                return before, unit.task(task_id)
        except ScopeTooNarrow as wider:
            scope = scope.union(wider.scope)


def refusal(store: Store, clock: Clock, policy: PolicyOf, task_id: str) -> AofError | None:
    """Why a person's change to a task's file is not imported; None when it can be. Changes nothing."""
    scope = Scope(read=frozenset({task_id}))
    while True:
        try:
            with store.unit(scope) as unit:
                unit.task(task_id)
                edit = unit.edit(task_id)
                verdict = None if edit is None else _judged(unit, scope, policy(), edit, clock.now())
                return _in_the_way(task_id, verdict) if isinstance(verdict, AofError) else None
        except ScopeTooNarrow as wider:
            scope = scope.union(wider.scope)
