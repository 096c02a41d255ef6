"""`decide(records, command, now)`: events, or a refusal as a value. One row per command; the rules stand below.

A task remembers its last requests, so the same request with an idempotency key has no second effect and gives the same
answer. Creating and claiming have rules of their own, because their keys are not about a task that is known beforehand.
A command is refused where its task has changed since the caller looked. Must not load or record anything.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from aof._support.hashing import hexdigest
from aof.core.engine import decide_gated, update
from aof.core.errors.base import AofError, Call
from aof.core.errors.org import OwnWork
from aof.core.errors.tasks import KeyConflict, RevisionConflict
from aof.core.model import commands as c
from aof.core.model.events import Draft
from aof.core.model.records import Decision, Records, Verdict
from aof.core.model.task import Task
from aof.core.org import guard, reservation, rights, session_gates
from aof.core.org.budgets import enforcement, reported
from aof.core.runs import completion, delivery, lease, progress, retry, review
from aof.core.runs.authentication import contradicted
from aof.core.tasks import (
    authorship,
    cancellation,
    creation,
    dependencies,
    edit,
    graph,
    hold,
    links,
    maintenance,
    manual_edit,
)
from aof.core.validation import limits
from aof.core.workflows import control, failures, questions

_CALLER: Final = ("actor", "run", "proven", "proof", "outside", "session", "vouched", "limited", "secret_digest", "key")
_CIRCUMSTANCES: Final = ("expect_rev", "undoes", "bulk", "allow_open_children", "withdraw_questions", "keep")
_NAME: Final = 128
_APPLY_RESULTS: Final = (c.Expire, c.TimeOut)  # of runs that have reported and then vanished
_OF_RUNS: Final = ("task.attempt.started", "task.completed")
_MAY_TAKE: Final = (c.Claim, c.Complete, c.Update, c.Edit)  # or give to another agent
_NOT_WHILE_CANCELLING: Final = (
    c.Approve,
    c.Reject,
    c.Block,
    c.Unblock,
    c.Pause,
    c.Resume,
    c.RetryTask,
    c.AnswerQuestion,
)


def repeated(task: Task | None, command: c.OnTask) -> Verdict | None:
    """The answer to a request that was carried out before; None for one that is new or has no key."""
    if command.key is None or isinstance(command, (c.Create, c.Claim)):
        return None
    if problem := limits.key(command.key):
        return problem
    known = next((one for one in task.requests if one.value == command.key), None) if task is not None else None
    if known is None:
        return None
    if known.digest == request_digest(command):
        return Decision(repeats=command.key)
    return KeyConflict(
        f"the key '{command.key}' already stands for another request on {command.task_id}",
        "use a new key for a new request",
        Call("log", {"task_id": command.task_id}),
        task_id=command.task_id,
    )


def remembered(verdict: Verdict, command: c.OnTask) -> Verdict:
    """The decision with its request on record, also where the request changes nothing; a refusal is none."""
    if command.key is None or isinstance(verdict, AofError) or isinstance(command, (c.Create, c.Claim)):
        return verdict
    if verdict.refusal is not None:
        return verdict
    request = {"idempotency": {"value": command.key, "digest": request_digest(command)}}
    if (keyed := verdict.annotated(command.task_id, request)) is not None:
        return keyed
    noted = Draft(type="task.request.answered", task_id=command.task_id, payload=request)
    return msgspec.structs.replace(verdict, drafts=(noted, *verdict.drafts))


def request_digest(command: c.OnTask) -> str:
    """What makes two requests with one key the same request: what is asked, not who asks."""
    said: dict[str, Any] = msgspec.to_builtins(command, order="deterministic")
    for name in (*_CALLER, *_CIRCUMSTANCES):
        said.pop(name, None)
    request = [type(command).__name__, said]
    try:
        return hexdigest(msgspec.json.encode(request))[:32]
    except UnicodeEncodeError:  # half of a surrogate pair, which is no text; a request that changes nothing may have it
        return hexdigest(repr(request).encode("utf-8", "surrogatepass"))[:32]


def decide(records: Records, command: c.OnTask, now: int) -> Verdict:
    """What the command does to what is loaded; the same input always gives the same answer.

    A request that was carried out before is answered again before anything else: its run may have ended since.
    """
    if command.key is None:
        return _current(records, command, now)
    again = repeated(records.tasks.get(command.task_id), command)
    return again or remembered(_current(records, command, now), command)


def _current(records: Records, command: c.OnTask, now: int) -> Verdict:
    """The decision, unless the caller has seen another revision of the task than there is now."""
    outdated = _outdated(records.tasks.get(command.task_id), command)
    return outdated or _marked(_told(records, _signed(records, command, _held(records, command, now))), command)


def _signed(records: Records, command: c.OnTask, verdict: Verdict) -> Verdict:
    """The decision with the names of who is behind a run, where it begins one or records a report."""
    if isinstance(verdict, Decision) and any(draft.type in _OF_RUNS for draft in verdict.drafts):
        authorship.signed(records, command, verdict)
    return verdict


def _outdated(task: Task | None, command: c.OnTask) -> RevisionConflict | None:
    """The refusal of a command whose caller has seen another revision of the task."""
    if command.expect_rev is None or task is None or task.rev == command.expect_rev:
        return None
    return RevisionConflict(
        f"{task.id} is at revision {task.rev}, not {command.expect_rev}",
        "look at it again and decide anew",
        Call("show", {"task_id": task.id}),
        task_id=task.id,
        expected_rev=command.expect_rev,
        current_rev=task.rev,
    )


def _marked(verdict: Verdict, command: c.OnTask) -> Verdict:
    """The decision with what it reverses, or belongs to, on record."""
    marks = {name: mark for name, mark in (("undoes", command.undoes), ("bulk", command.bulk)) if mark is not None}
    if not marks or isinstance(verdict, AofError):
        return verdict
    return verdict.annotated(command.task_id, marks) or verdict


def _told(records: Records, verdict: Verdict) -> Verdict:
    """The decision with what follows from the end of a task: the news for those that wait for it, and its delivery."""
    if isinstance(verdict, AofError) or not verdict.drafts:
        return verdict
    drafts = verdict.drafts
    if any(task is not None and task.parent_id is not None for task in records.tasks.values()):
        drafts = delivery.to_parent(records, drafts)
    if any(records.dependents.values()):
        drafts = dependencies.told(records, drafts)
    return verdict if drafts is verdict.drafts else msgspec.structs.replace(verdict, drafts=drafts)


def _held(records: Records, command: c.OnTask, now: int) -> Verdict:
    """The decision as far as the gates of the session charter let it pass."""
    verdict = _decided(records, command, now)
    return session_gates.held(records, command, verdict) if records.policy.gates else verdict


def _decided(records: Records, command: c.OnTask, now: int) -> Verdict:
    if refusal := contradicted(records, command) or _not_for_caller(records, command):
        return refusal
    if isinstance(command, c.OwnRule):
        return command.decide(records, now, _held)
    own = _own_work(records, command)
    refusal = _unheard(records, command) or (None if records.policy.self_review else own)
    if refusal := refusal or _forbidden(records, command):
        return refusal
    if isinstance(command, _APPLY_RESULTS):
        within = reported.limited(records, command.task_id)
        return within.recorded(_by_rule(within.records, command, now))
    verdict = _by_rule(records, command, now)
    if own is not None and isinstance(verdict, Decision):
        verdict = verdict.annotated(command.task_id, {"selfReview": True}) or verdict
    return _before_children(records, command, verdict) or _over_budget(records, command, verdict, now) or verdict


def _by_rule(records: Records, command: c.OnTask, now: int) -> Verdict:
    return _gated(records, command, now) or _DECIDERS[type(command)](records, command, now)


def _not_for_caller(records: Records, command: c.OnTask) -> AofError | None:
    """Why this caller may not give the command: it acts under another name, or may not change or pass the gates."""
    policy = records.policy
    asked = policy.binds or policy.require_secret or command.vouched == "secret" or command.limited
    if not asked or not (command.outside or isinstance(command, c.Edit)):
        return None

    return guard.caller_refused(records, command)


def _unheard(records: Records, command: c.OnTask) -> AofError | None:
    """Why the command is not considered at all: no caller's name, no such task, or one that is being cancelled."""
    problem = limits.line("actor", command.actor, _NAME, required=True) or limits.line("run", command.run, _NAME)
    if problem or (problem := limits.name("agent", command.agent)):
        return problem
    if isinstance(command, c.Create) or (isinstance(command, c.ImportEdit) and command.created is not None):
        return None
    task = records.look(command.task_id)
    if task is None:
        return graph.missing(command.task_id)
    return graph.being_cancelled(task) if isinstance(command, _NOT_WHILE_CANCELLING) else None


def _own_work(records: Records, command: c.OnTask) -> OwnWork | None:
    """Why the caller may not approve what waits for a verdict: it is the caller's own work."""
    task = records.tasks.get(command.task_id)
    if task is None or not (task.status == "review" or task.gated):
        return None
    return rights.own_work(records, task, command)


def _forbidden(records: Records, command: c.OnTask) -> AofError | None:
    """Why the settings or the org chart do not allow the command; without either nothing is asked or loaded."""
    chart = records.policy.org
    if records.policy.review_required and (waived := guard.waived_review(records, command)):
        return waived
    parent = _parent_named(command)
    if parent is not None and (foreign := guard.foreign_parent(records, command, parent)):
        return foreign
    if isinstance(command, _MAY_TAKE) and (reserved := _reserved(records, command)):
        return reserved
    if chart is None:
        return None

    return guard.forbidden(records, chart, command)


def _reserved(records: Records, command: c.OnTask) -> AofError | None:
    task = records.look(command.task_id)
    return None if task is None or task.routing.agent is None else reservation.refused(records, task, command)


def _parent_named(command: c.OnTask) -> str | None:
    """The task that another one is to be put below."""
    if isinstance(command, c.Create):
        return command.parent_id
    if isinstance(command, c.Edit):
        return command.changes.get("parentId")
    return command.target_id if isinstance(command, c.AddLink) and command.kind == "parent" else None


def _over_budget(records: Records, command: c.OnTask, verdict: Verdict, now: int) -> Decision | None:
    """What refuses, and records, a completion that is in order but has used more than the agent may.

    Without a chart nothing is limited.
    """
    if records.policy.org is None or not isinstance(command, c.Complete):
        return None

    return enforcement.judged(records, command, verdict, now)


def _before_children(records: Records, command: c.OnTask, verdict: Verdict) -> AofError | None:
    """Why a parent is not called complete yet: a child of it is unfinished, and the caller has not said to go on."""
    if isinstance(verdict, AofError) or not records.children.get(command.task_id):
        return None
    if getattr(command, "allow_open_children", False):
        return None
    reports = isinstance(command, c.Complete) and command.outcome in (None, "complete", "done")
    ends = ("done", "review") if reports else ("done",)
    moved = [draft.payload["to"] for draft in verdict.drafts if _is_move(draft, command.task_id)]
    if not any(status in ends for status in moved):
        return None
    return graph.before_children(records, command)


def _is_move(draft: Draft, task_id: str) -> bool:
    return draft.type == "task.transitioned" and draft.task_id == task_id


def _gated(records: Records, command: c.OnTask, now: int) -> Verdict | None:
    """What the command means for a task that passes through a workflow; None where that makes no difference."""
    task = None if isinstance(command, c.Create) else records.look(command.task_id)
    if task is None or not (task.gated or task.routing.workflow):
        return None

    return decide_gated.gated(records, task, command, now)


# Rules that most calls do not need stand behind a function, so that their modules run only for their own commands.


def _create_gated(records: Records, command: c.CreateGated, now: int) -> Verdict:
    return control.create(records, command, now)


def _attach(records: Records, command: c.Attach, now: int) -> Verdict:
    return control.attach(records, command, now)


def _time_out(records: Records, command: c.TimeOut, now: int) -> Verdict:
    return failures.time_out(records, command, now) if records.task(command.task_id).workflow else Decision()


def _update(records: Records, command: c.Update, now: int) -> Verdict:
    return update.update(records, command, now)


def _report(records: Records, command: c.ReportProgress, now: int) -> Verdict:
    return progress.report(records, command, now)


def _ask(records: Records, command: c.Ask, now: int) -> Verdict:
    return questions.ask(records, command, now)


def _answer(records: Records, command: c.AnswerQuestion, now: int) -> Verdict:
    return questions.answer(records, command, now)


def _exited(records: Records, command: c.Exited, now: int) -> Verdict:
    return retry.exited(records, command, now)


def _expire(records: Records, command: c.Expire, now: int) -> Verdict:
    return retry.expire(records, command, now)


def _promote(records: Records, command: c.Promote, now: int) -> Verdict:
    return maintenance.promote(records, command, now)


def _dead_letter(records: Records, command: c.DeadLetter, now: int) -> Verdict:
    return maintenance.dead_letter(records, command, now)


def _alert(records: Records, command: c.Alert, now: int) -> Verdict:
    return maintenance.alert(records, command, now)


def _deliver(records: Records, command: c.RecordDelivery, now: int) -> Verdict:
    return delivery.record(records, command, now)


def _import_edit(records: Records, command: c.ImportEdit, now: int) -> Verdict:
    verdict = manual_edit.import_edit(records, command, now)
    return verdict if isinstance(verdict, AofError) else guard.waiting_edit(records, command) or verdict


_DECIDERS: dict[type[c.OnTask], Callable[[Records, Any, int], Verdict]] = {
    c.Create: creation.create,
    c.CreateGated: _create_gated,
    c.Attach: _attach,
    c.Claim: lease.claim,
    c.RecordHeartbeat: lease.heartbeat,
    c.Release: lease.release,
    c.ReportProgress: _report,
    c.RecordDelivery: _deliver,
    c.Ask: _ask,
    c.AnswerQuestion: _answer,
    c.Update: _update,
    c.Edit: edit.edit,
    c.Comment: edit.comment,
    c.Complete: completion.complete,
    c.Approve: review.approve,
    c.Reject: review.reject,
    c.Fail: retry.fail,
    c.CancelTask: cancellation.cancel,
    c.Settle: cancellation.settle,
    c.Block: hold.block,
    c.Unblock: hold.unblock,
    c.Pause: hold.pause,
    c.Resume: hold.resume,
    c.RetryTask: retry.retry,
    c.ArchiveTask: edit.archive,
    c.UnarchiveTask: edit.unarchive,
    c.AddDependency: dependencies.add_dependency,
    c.RemoveDependency: dependencies.remove_dependency,
    c.AddLink: links.link,
    c.RemoveLink: links.unlink,
    c.Expire: _expire,
    c.TimeOut: _time_out,
    c.Promote: _promote,
    c.DeadLetter: _dead_letter,
    c.Alert: _alert,
    c.Exited: _exited,
    c.ImportEdit: _import_edit,
}
