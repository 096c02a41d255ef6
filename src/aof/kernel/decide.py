"""`decide(records, command, now)`: events, or a refusal as a value. One row per command; the rules stand below.

A task remembers its last requests, so the same request with an idempotency key has no second effect and gives the same
answer. Creating and claiming have rules of their own, because their keys are not about a task that is known beforehand.
A command is refused where its task has changed since the caller looked. Must not load or record anything.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from aof.errors import AofError, Call, KeyConflict, OwnWork, RevisionConflict
from aof.kernel import commands, limits, update
from aof.kernel.commands import Decision, Records, Verdict
from aof.kernel.events import Draft
from aof.org import authorization, budgets, rights
from aof.runs import authentication, leases
from aof.runs import results as runs_results
from aof.runs.authentication import contradicted
from aof.support.hashing import hexdigest
from aof.tasks import graph, lifecycle, manual_edits
from aof.tasks import rules as tasks_rules
from aof.tasks.model import Task
from aof.workflows import control, outcomes

_CALLER: Final = ("actor", "run", "proven", "proof", "outside", "session", "vouched", "limited", "secret_digest", "key")
_CIRCUMSTANCES: Final = ("expect_rev", "undoes", "bulk", "allow_open_children", "withdraw_questions", "keep")
_NAME: Final = 128
_APPLY_RESULTS: Final = (commands.Expire, commands.TimeOut)  # of runs that have reported and then vanished
_OF_RUNS: Final = ("task.attempt.started", "task.completed")
_MAY_TAKE: Final = (commands.Claim, commands.Complete, commands.Update, commands.Edit)  # or give to another agent
_NOT_WHILE_CANCELLING: Final = (
    commands.Approve,
    commands.Reject,
    commands.Block,
    commands.Unblock,
    commands.Pause,
    commands.Resume,
    commands.RetryTask,
    commands.AnswerQuestion,
)


def repeated(task: Task | None, command: commands.OnTask) -> Verdict | None:
    """The decision that answers a repeated request again; None for a new request, or one without a key."""
    if command.key is None or isinstance(command, (commands.Create, commands.Claim)):
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


def remembered(verdict: Verdict, command: commands.OnTask) -> Verdict:
    """The decision with its idempotency key on record, also where nothing changes; refusals are not kept."""
    if command.key is None or isinstance(verdict, AofError) or isinstance(command, (commands.Create, commands.Claim)):
        return verdict
    if verdict.refusal is not None:
        return verdict
    request = {"idempotency": {"value": command.key, "digest": request_digest(command)}}
    if (keyed := verdict.annotated(command.task_id, request)) is not None:
        return keyed
    noted = Draft(type="task.request.answered", task_id=command.task_id, payload=request)
    return msgspec.structs.replace(verdict, drafts=(noted, *verdict.drafts))


def request_digest(command: commands.OnTask) -> str:
    """A digest by which a repeated request is recognised: of what is asked, not of who asks."""
    said: dict[str, Any] = msgspec.to_builtins(command, order="deterministic")
    for name in (*_CALLER, *_CIRCUMSTANCES):
        said.pop(name, None)
    request = [type(command).__name__, said]
    try:
        return hexdigest(msgspec.json.encode(request))[:32]
    except UnicodeEncodeError:  # half of a surrogate pair, which is no text; a request that changes nothing may have it
        return hexdigest(repr(request).encode("utf-8", "surrogatepass"))[:32]


def decide(records: Records, command: commands.OnTask, now: int) -> Verdict:
    """What the command does to what is loaded; the same input always gives the same answer.

    A request that was carried out before is answered again before anything else: its run may have ended since.
    """
    if command.key is None:
        return _current(records, command, now)
    again = repeated(records.tasks.get(command.task_id), command)
    return again or remembered(_current(records, command, now), command)


def _current(records: Records, command: commands.OnTask, now: int) -> Verdict:
    """The decision, unless the caller has seen another revision of the task than there is now.

    With it goes on record who is behind a run that it begins or reports, what follows from the end of a task, and what
    it reverses or belongs to.
    """
    if command.expect_rev is not None and (outdated := _outdated(records.tasks.get(command.task_id), command)):
        return outdated
    verdict = _held(records, command, now)
    if isinstance(verdict, AofError):
        return verdict
    for draft in verdict.drafts:
        if draft.type in _OF_RUNS:
            authentication.signed(records, command, verdict)
            break
    if verdict.drafts:
        verdict = _told(records, verdict)
    if command.undoes is None and command.bulk is None:
        return verdict
    marks = {name: mark for name, mark in (("undoes", command.undoes), ("bulk", command.bulk)) if mark is not None}
    return verdict.annotated(command.task_id, marks) or verdict


def _outdated(task: Task | None, command: commands.OnTask) -> RevisionConflict | None:
    """The refusal of a command whose caller has seen another revision of the task."""
    if task is None or task.rev == command.expect_rev:
        return None
    return RevisionConflict(
        f"{task.id} is at revision {task.rev}, not {command.expect_rev}",
        "look at it again and decide anew",
        Call("show", {"task_id": task.id}),
        task_id=task.id,
        expected_rev=command.expect_rev,
        current_rev=task.rev,
    )


def _told(records: Records, verdict: Decision) -> Decision:
    """The decision with what follows from the end of a task: the news for those that wait for it, and its delivery."""
    drafts = verdict.drafts
    for task in records.tasks.values():
        if task is not None and task.parent_id is not None:
            drafts = leases.to_parent(records, drafts)
            break
    if records.dependents and any(records.dependents.values()):
        drafts = tasks_rules.tell_dependents(records, drafts)
    return verdict if drafts is verdict.drafts else msgspec.structs.replace(verdict, drafts=drafts)


def _held(records: Records, command: commands.OnTask, now: int) -> Verdict:
    """The decision as far as the gates of the session charter let it pass."""
    verdict = _decided(records, command, now)
    return authorization.held_by_gates(records, command, verdict) if records.policy.gates else verdict


def _decided(records: Records, command: commands.OnTask, now: int) -> Verdict:
    refusal = contradicted(records, command)
    if refusal is None and (command.outside or isinstance(command, commands.Edit)):
        refusal = _not_for_caller(records, command)
    if refusal is not None:
        return refusal
    if isinstance(command, commands.OwnRule):
        return command.decide(records, now, _held)
    own = _own_work(records, command)
    refusal = _unheard(records, command) or (None if records.policy.self_review else own)
    if refusal := refusal or _forbidden(records, command):
        return refusal
    if isinstance(command, _APPLY_RESULTS):
        within = budgets.limited(records, command.task_id)
        return within.recorded(_by_rule(within.records, command, now))
    verdict = _by_rule(records, command, now)
    if own is not None and isinstance(verdict, Decision):
        verdict = verdict.annotated(command.task_id, {"selfReview": True}) or verdict
    instead = _before_children(records, command, verdict) if records.children.get(command.task_id) else None
    if instead is None and records.policy.org is not None and isinstance(command, commands.Complete):
        # What refuses, and records, a completion that is in order but has used more than the agent may.
        outcome, deliverables = command.outcome, command.deliverables
        return budgets.judged(records, command, verdict, now, outcome=outcome, deliverables=deliverables) or verdict
    return instead or verdict


def _by_rule(records: Records, command: commands.OnTask, now: int) -> Verdict:
    """The decision of the command's own rule, unless it means something else for a task in a workflow."""
    task = None if isinstance(command, commands.Create) else records.find(command.task_id)
    if task is not None and (task.gated or task.routing.workflow):
        gated = update.decide_gated(records, task, command, now)
        if gated is not None:
            return gated
    return _DECIDERS[type(command)](records, command, now)


def _not_for_caller(records: Records, command: commands.OnTask) -> AofError | None:
    """Why this caller may not give the command: it acts under another name, or may not change or pass the gates."""
    policy = records.policy
    if not (policy.binds or policy.require_secret or command.vouched == "secret" or command.limited):
        return None
    return authorization.caller_refused(records, command)


def _unheard(records: Records, command: commands.OnTask) -> AofError | None:
    """Why the command is not considered at all: no caller's name, no such task, or one that is being cancelled."""
    problem = limits.line("actor", command.actor, _NAME, required=True)
    if problem or (command.run is not None and (problem := limits.line("run", command.run, _NAME))):
        return problem
    if command.agent is not None and (refused := limits.name("agent", command.agent)):
        return refused
    if isinstance(command, commands.Create) or (
        isinstance(command, commands.ImportEdit) and command.created is not None
    ):
        return None
    task = records.find(command.task_id)
    if task is None:
        return graph.missing(command.task_id)
    return graph.being_cancelled(task) if isinstance(command, _NOT_WHILE_CANCELLING) else None


def _own_work(records: Records, command: commands.OnTask) -> OwnWork | None:
    """Why the caller may not approve what waits for a verdict: it is the caller's own work."""
    task = records.tasks.get(command.task_id)
    if task is None or not (task.status == "review" or task.gated):
        return None
    return rights.own_work(records, task, command)


def _forbidden(records: Records, command: commands.OnTask) -> AofError | None:
    """Why the settings or the org chart do not allow the command; without either nothing is asked or loaded."""
    chart = records.policy.org
    if records.policy.review_required and (waived := authorization.waived_review(records, command)):
        return waived
    parent = _parent_named(command)
    if parent is not None and (foreign := authorization.foreign_parent(records, command, parent)):
        return foreign
    if isinstance(command, _MAY_TAKE) and (reserved := _reserved(records, command)):
        return reserved
    if chart is None:
        return None

    return authorization.forbidden(records, chart, command)


def _reserved(records: Records, command: commands.OnTask) -> AofError | None:
    task = records.find(command.task_id)
    return None if task is None or task.routing.agent is None else rights.reservation_refusal(records, task, command)


def _parent_named(command: commands.OnTask) -> str | None:
    """The task that another one is to be put below."""
    if isinstance(command, commands.Create):
        return command.parent_id
    if isinstance(command, commands.Edit):
        return command.changes.get("parentId")
    return command.target_id if isinstance(command, commands.AddLink) and command.kind == "parent" else None


def _before_children(records: Records, command: commands.OnTask, verdict: Verdict) -> AofError | None:
    """Why a parent is not called complete yet: a child of it is unfinished, and the caller has not said to go on."""
    if isinstance(verdict, AofError):
        return None
    if getattr(command, "allow_open_children", False):
        return None
    reports = isinstance(command, commands.Complete) and command.outcome in (None, "complete", "done")
    ends = ("done", "review") if reports else ("done",)
    moved = [draft.payload["to"] for draft in verdict.drafts if _is_move(draft, command.task_id)]
    if not any(status in ends for status in moved):
        return None
    return graph.before_children(records, command)


def _is_move(draft: Draft, task_id: str) -> bool:
    return draft.type == "task.transitioned" and draft.task_id == task_id


# Rules that most calls do not need stand behind a function, so that their modules run only for their own commands.


def _create_gated(records: Records, command: commands.CreateGated, now: int) -> Verdict:
    return control.create(records, command, now)


def _attach(records: Records, command: commands.Attach, now: int) -> Verdict:
    return control.attach(records, command, now)


def _time_out(records: Records, command: commands.TimeOut, now: int) -> Verdict:
    return outcomes.time_out(records, command, now) if records.task(command.task_id).workflow else Decision()


def _update(records: Records, command: commands.Update, now: int) -> Verdict:
    return update.update(records, command, now)


def _report(records: Records, command: commands.ReportProgress, now: int) -> Verdict:
    return leases.report_progress(records, command, now)


def _ask(records: Records, command: commands.Ask, now: int) -> Verdict:
    return control.ask(records, command, now)


def _answer(records: Records, command: commands.AnswerQuestion, now: int) -> Verdict:
    return control.answer(records, command, now)


def _exited(records: Records, command: commands.Exited, now: int) -> Verdict:
    return runs_results.exited(records, command, now)


def _expire(records: Records, command: commands.Expire, now: int) -> Verdict:
    return runs_results.expire(records, command, now)


def _promote(records: Records, command: commands.Promote, now: int) -> Verdict:
    return lifecycle.promote(records, command, now)


def _dead_letter(records: Records, command: commands.DeadLetter, now: int) -> Verdict:
    return lifecycle.dead_letter(records, command, now)


def _alert(records: Records, command: commands.Alert, now: int) -> Verdict:
    return lifecycle.alert(records, command, now)


def _deliver(records: Records, command: commands.RecordDelivery, now: int) -> Verdict:
    return leases.record_delivery(records, command, now)


def _import_edit(records: Records, command: commands.ImportEdit, now: int) -> Verdict:
    verdict = manual_edits.import_edit(records, command, now)
    return verdict if isinstance(verdict, AofError) else authorization.waiting_edit(records, command) or verdict


_DECIDERS: dict[type[commands.OnTask], Callable[[Records, Any, int], Verdict]] = {
    commands.Create: tasks_rules.create,
    commands.CreateGated: _create_gated,
    commands.Attach: _attach,
    commands.Claim: leases.claim,
    commands.RecordHeartbeat: leases.heartbeat,
    commands.Release: leases.release,
    commands.ReportProgress: _report,
    commands.RecordDelivery: _deliver,
    commands.Ask: _ask,
    commands.AnswerQuestion: _answer,
    commands.Update: _update,
    commands.Edit: tasks_rules.edit,
    commands.Comment: tasks_rules.comment,
    commands.Complete: runs_results.complete,
    commands.Approve: runs_results.approve,
    commands.Reject: runs_results.reject,
    commands.Fail: runs_results.fail,
    commands.CancelTask: lifecycle.cancel,
    commands.Settle: lifecycle.settle,
    commands.Block: lifecycle.block,
    commands.Unblock: lifecycle.unblock,
    commands.Pause: lifecycle.pause,
    commands.Resume: lifecycle.resume,
    commands.RetryTask: runs_results.retry,
    commands.ArchiveTask: tasks_rules.archive,
    commands.UnarchiveTask: tasks_rules.unarchive,
    commands.AddDependency: tasks_rules.add_dependency,
    commands.RemoveDependency: tasks_rules.remove_dependency,
    commands.AddLink: tasks_rules.link,
    commands.RemoveLink: tasks_rules.unlink,
    commands.Expire: _expire,
    commands.TimeOut: _time_out,
    commands.Promote: _promote,
    commands.DeadLetter: _dead_letter,
    commands.Alert: _alert,
    commands.Exited: _exited,
    commands.ImportEdit: _import_edit,
}
