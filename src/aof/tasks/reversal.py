"""What reverses a commit: commands that bring its tasks back to what they were before it.

Also reopening a finished task.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

import msgspec

from aof.errors import AofError, Call, NotUndoable
from aof.kernel import commands
from aof.kernel.commands import Decide, Decision, Needs, NeedsOf, OwnRule, Records, RetryTask, Verdict
from aof.kernel.events import DOCUMENT, Draft, Event
from aof.kernel.model import FINISHED
from aof.tasks import body, fields, graph
from aof.tasks.model import Blocked, Task
from aof.tasks.rules import transition

_UNDOABLE: Final = frozenset(
    {
        "task.created",
        "task.accepted",
        "task.queued",
        "task.updated",
        "task.transitioned",
        "task.cancel_requested",
        "task.retrying",
        "task.archived",
        "task.unarchived",
        "task.dependency.updated",
        "task.link.added",
        "task.link.removed",
        "task.request.answered",
    }
)
# Facts beside a task's own content: that they came in between does not stand in the way of an undo.
_IMMATERIAL: Final = frozenset(
    {
        "task.sla_alert",
        "task.overdue",
        "task.commented",
        "task.late_result",
        "task.question.asked",
        "task.question.answered",
        "task.request.answered",
        "task.accepted",
        "task.queued",
    }
)
_RUN: Final = "task.attempt."
_WAITING: Final = ("backlog", "ready")
_WORDS: Final = 40  # characters of a value


class Step(msgspec.Struct, frozen=True):
    """One command that is a part of an undo: its kind, the task, its values, and what it does in words."""

    kind: type[commands.OnTask]
    task_id: str
    given: dict[str, Any]
    words: str


Undoing = tuple[Step, ...] | NotUndoable


class _Refusal(Exception):
    """Why there is no way back."""

    def __init__(self, refusal: NotUndoable) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


def is_material(event: Event) -> bool:
    """Whether an event changes what an undo would bring back."""
    edge_only = event.type == "task.dependency.updated" and "dependsOn" not in event.payload
    return event.type not in _IMMATERIAL and not edge_only


def inverse(commit: Sequence[Event], before: dict[str, Task | None], after: dict[str, Task]) -> Undoing:
    """The steps that reverse a commit, parents before children; a refusal where one of its tasks has no way back."""
    try:
        for event in sorted(commit, key=lambda event: not event.type.startswith(_RUN)):  # which tells the most
            _refuse_final(event)
        steps: list[Step] = []
        for task_id in _parents_first(after):
            if not _only_followed(commit, before.get(task_id), after[task_id], after.keys()):
                steps += _restored(before.get(task_id), after[task_id])
        if not steps:
            raise _without_steps(commit[0])
    except _Refusal as refused:
        return refused.refusal
    return tuple(steps)


def _refuse_final(event: Event) -> None:
    """What reports on a run, speaks to others or belongs to a workflow has been acted upon, and stands."""
    if event.type.startswith(DOCUMENT):
        said = "what was said in WORKLOG, MAILBOX or charter is never taken back"
        raise _Refusal(NotUndoable(said, "add another entry"))
    if "hop" in event.payload or event.type.startswith("task.workflow."):
        raise _refused(event.task_id, "its workflow has moved on with it", "see how far it is", "show")
    if event.type == "task.attempt.started":
        raise _refused(event.task_id, "it began a run", "give the run back", "release", run=event.run_id)
    if event.type.startswith(_RUN):
        raise _refused(event.task_id, "it ended a run, and a run does not come back", "see where it is now", "show")
    if event.type not in _UNDOABLE:
        why = f"it was a report ('{event.type}'), and a report cannot be taken back"
        raise _refused(event.task_id, why, "see what happened", "log")


def _without_steps(event: Event) -> _Refusal:
    """A change of which a task's content and status say nothing, such as the end of the pause before a retry."""
    if event.type == "task.retrying":
        why = "it ended the pause before the next run, and that pause does not come back"
        return _refused(event.task_id, why, "keep it from being claimed", "pause")
    return _refused(event.task_id, f"it ('{event.type}') left nothing to bring back", "see what happened", "log")


def _refused(task_id: str, why: str, hint: str, operation: str, **given: Any) -> _Refusal:
    return _Refusal(
        NotUndoable(
            f"the last change of {task_id} cannot be undone: {why}",
            hint,
            Call(operation, {"task_id": task_id, **given}),
        )
    )


def _parents_first(after: dict[str, Task]) -> Iterator[str]:
    """The tasks of the commit, each after its parent where that is among them."""
    left = dict(after)
    while left:
        free = [task_id for task_id, task in left.items() if task.parent_id not in left or task.parent_id == task_id]
        for task_id in free or [*left]:
            yield task_id
            del left[task_id]


def _only_followed(commit: Sequence[Event], before: Task | None, after: Task, tasks: Collection[str]) -> bool:
    """Whether nothing of the task itself has changed, or its status followed that of another task of the commit.

    Such a task follows the undo of the other one as well.
    """
    if before is None or before.status == after.status:
        return not any(is_material(event) for event in commit if event.task_id == after.id)
    held = before.blocked or after.blocked
    return held is not None and held.dependency in tasks


def _restored(before: Task | None, after: Task) -> Iterator[Step]:
    if before is None:
        if after.status in FINISHED:
            raise _refused(after.id, f"it was created as {after.status}", "archive it", "archive")
        yield Step(
            commands.CancelTask, after.id, {"reason": "its creation was undone"}, "cancel it, as it was just created"
        )
        return
    if before.archived and not after.archived and before.status == after.status:
        yield Step(commands.ArchiveTask, after.id, {}, "archive it again")
    elif after.archived and not before.archived:
        yield Step(commands.UnarchiveTask, after.id, {}, "take it out of the archive")
    yield from _content(before, after)
    yield from _edges(before, after)
    if before.status != after.status:
        yield from _status(before, after)
        if before.archived and not after.archived:
            yield Step(commands.ArchiveTask, after.id, {}, "archive it again")


def _content(before: Task, after: Task) -> Iterator[Step]:
    """Fields that people set, brought back by an edit; a body that an update replaced, by another one."""
    old, new = _builtins(before), _builtins(after)
    changes = {
        name: _way_back(old.get(name), new.get(name))
        for name in fields.EDITABLE
        if name not in ("description", "parentId") and old.get(name) != new.get(name)
    }
    words = [text for name in changes for text in _in_words(name, old.get(name), new.get(name))]
    if before.body != after.body:
        text = body.description(before.body)
        if body.with_description(after.body, text) == before.body:
            changes["description"] = text
            words.append("description as it was")
        else:
            yield Step(commands.Update, after.id, {"body": before.body}, "body as it was")
    if changes:
        yield Step(commands.Edit, after.id, {"changes": changes}, "; ".join(words))


def _builtins(task: Task) -> dict[str, Any]:
    whole: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(task))
    return whole


def _way_back(old: Any, new: Any) -> Any:
    """What an edit must say: an object keeps the keys that it is not told of, so those that came are taken away."""
    if isinstance(new, dict) or isinstance(old, dict):
        return dict.fromkeys(new or {}) | (old or {})
    return old


def _in_words(name: str, old: Any, new: Any) -> Iterator[str]:
    """What goes back to what; of an object each key that differs."""
    if not isinstance(old or {}, dict) or not isinstance(new or {}, dict):
        yield f"{name} {_shown(new)} → {_shown(old)}"
        return
    was, now = old or {}, new or {}
    for key in {**was, **now}:
        if was.get(key) != now.get(key):
            yield f"{name} {key} {_shown(now.get(key))} → {_shown(was.get(key))}"


def _shown(value: Any) -> str:
    if value in (None, "", [], {}):
        return "nothing"
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        text = ", ".join(value)
    else:
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return f"{text[:_WORDS]}…" if len(text) > _WORDS else text


def _edges(before: Task, after: Task) -> Iterator[Step]:
    for blocker in after.depends_on:
        if blocker not in before.depends_on:
            yield Step(commands.RemoveDependency, after.id, {"blocker_id": blocker}, f"no longer wait for {blocker}")
    for blocker in before.depends_on:
        if blocker not in after.depends_on:
            yield Step(commands.AddDependency, after.id, {"blocker_id": blocker}, f"wait for {blocker} again")
    if before.parent_id != after.parent_id:
        kind, target = (
            (commands.AddLink, before.parent_id) if before.parent_id else (commands.RemoveLink, after.parent_id)
        )
        yield Step(kind, after.id, {"kind": "parent", "target_id": target}, f"parent {before.parent_id or 'none'}")
    old, new = ({(one.kind, one.target_id): one for one in task.links} for task in (before, after))
    for edge in new:
        if edge not in old:
            gone = {"kind": edge[0], "target_id": edge[1]}
            yield Step(commands.RemoveLink, after.id, gone, f"remove the link to {edge[1]}")
    for edge, one in old.items():
        if edge not in new:
            given = {"kind": edge[0], "target_id": edge[1], "reason": one.reason}
            yield Step(commands.AddLink, after.id, given, f"link {edge[1]} again")


def _status(before: Task, after: Task) -> Iterator[Step]:
    old, new = before.status, after.status
    words = f"{new} → {old}"
    if {old, new} == {"backlog", "ready"}:
        yield Step(commands.Update, after.id, {"status": old}, words)
    elif new == "cancelled" and old in (*_WAITING, "blocked"):
        was = before.blocked.was if before.blocked is not None else old
        yield Step(ReopenTask, after.id, {"reason": "undone", "backlog": was == "backlog"}, words)
        if (held := _by_somebody(before)) is not None:
            yield from _held_again(after.id, held, held.was)
    elif new == "blocked" and (held := _by_somebody(after)) is not None and old in _WAITING:
        yield from _freed(before, after, held)
    elif old == "blocked" and (held := _by_somebody(before)) is not None and new in _WAITING:
        yield from _held_again(after.id, held, new)
    elif old == "cancelled" and new in _WAITING:
        reason = before.cancel.reason if before.cancel is not None else None
        yield Step(commands.CancelTask, after.id, {"reason": reason}, words)
    else:
        why = f"a task does not go back from {new} to {old}"
        if new in FINISHED:
            raise _refused(after.id, why, "open it again", "reopen")
        raise _refused(after.id, why, "see what can be done with it", "moves")


def _by_somebody(task: Task) -> Blocked | None:
    """Why somebody has blocked the task; None where one that it depends on did."""
    return task.blocked if task.blocked is not None and task.blocked.dependency is None else None


def _held_again(task_id: str, blocked: Blocked, status: str) -> Iterator[Step]:
    """Block the task as it was, from where it was: there it goes when it is unblocked."""
    if status != blocked.was:
        yield Step(commands.Update, task_id, {"status": blocked.was}, f"{status} → {blocked.was}")
    if blocked.kind == "paused":
        yield Step(commands.Pause, task_id, {"reason": blocked.reason}, "pause it again")
    else:
        given = {"reason": blocked.reason, "kind": blocked.kind}
        yield Step(commands.Block, task_id, given, f"block it again: {blocked.reason}")


def _freed(before: Task, after: Task, blocked: Blocked) -> Iterator[Step]:
    if blocked.kind == "paused":
        yield Step(commands.Resume, after.id, {}, f"blocked → {before.status}")
        return
    yield Step(commands.Unblock, after.id, {}, "blocked → ready")
    if before.status == "backlog" and not before.metadata.get("draft"):
        yield Step(commands.Update, after.id, {"status": "backlog"}, "ready → backlog")


class ReopenTask(OwnRule, frozen=True, kw_only=True):
    """Open a finished task again: ready, or in the backlog. One that is open stays as it is."""

    reason: str | None = None
    backlog: bool = False

    def needs(self, known: Records, needs: NeedsOf) -> Needs:
        """What a retry needs."""
        return needs(self._retry(), known)

    def decide(self, records: Records, now: int, decide: Decide) -> Verdict:
        """Out of the archive where it is there, then ready, then into the backlog where that is wanted."""
        task = records.find(self.task_id)
        if task is None:
            return graph.missing(self.task_id)
        if task.status not in FINISHED:
            return Decision()
        present = msgspec.structs.replace(task, archived=False)
        loaded = msgspec.structs.replace(records, tasks=records.tasks | {task.id: present})
        verdict = decide(loaded, self._retry(), now)
        if isinstance(verdict, AofError):
            return verdict
        out = (Draft(type="task.unarchived", task_id=task.id),) if task.archived else ()
        drafts = (*out, *verdict.drafts)
        moves = [one.payload["to"] for one in drafts if one.type == "task.transitioned" and one.task_id == task.id]
        if self.backlog and moves[-1:] == ["ready"]:
            drafts += (transition(present, "backlog", origin="ready", reason=self.reason),)
        return msgspec.structs.replace(verdict, drafts=drafts)

    def _retry(self) -> RetryTask:
        return RetryTask(**self.passed_on(), reason=self.reason or f"reopened by {self.acting}")
