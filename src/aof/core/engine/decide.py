"""`decide(records, command, now)`: events, or a refusal as a value. One row a command; the rules stand beside.

Must not load or record anything.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from aof.core.engine import decide_gated, update
from aof.core.model import commands as c
from aof.core.model.errors import AofError
from aof.core.model.records import Decision, Records, Verdict
from aof.core.org import callers, guard
from aof.core.runs import completion, lease, process_exit, progress, recovery, retry, review
from aof.core.runs.authentication import contradicted
from aof.core.tasks import (
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
from aof.core.workflows import control, failures


def decide(records: Records, command: c.OnTask, now: int) -> Verdict:
    """What the command does to what is loaded; the same input always gives the same answer."""
    if refusal := contradicted(records, command) or _not_for_caller(records, command):
        return refusal
    if isinstance(command, c.OwnRule):
        return command.decide(records, now, decide)
    refusal = _unheard(records, command) or _forbidden(records, command)
    return refusal or _gated(records, command, now) or _DECIDERS[type(command)](records, command, now)


def _not_for_caller(records: Records, command: c.OnTask) -> AofError | None:
    """Why this caller may not give the command: it is somebody else, or the gates are not its to change or to pass."""
    policy = records.policy
    asked = policy.binds or policy.require_secret or command.vouched == "secret" or command.limited
    if not asked or not (command.outside or isinstance(command, c.Edit)):
        return None

    return callers.refused(records, command)


def _unheard(records: Records, command: c.OnTask) -> AofError | None:
    """Why the command is not even looked at: a nameless caller, no such task, or one that is being cancelled."""
    problem = limits.line("actor", command.actor, _NAME, required=True) or limits.line("run", command.run, _NAME)
    if problem or (problem := limits.name("agent", command.agent)):
        return problem
    if isinstance(command, c.Create) or (isinstance(command, c.TakeIn) and command.created is not None):
        return None
    task = records.look(command.task_id)
    if task is None:
        return graph.missing(command.task_id)
    return graph.being_cancelled(task) if isinstance(command, _NOT_WHILE_CANCELLING) else None


def _forbidden(records: Records, command: c.OnTask) -> AofError | None:
    """Why the org chart does not allow the command; without a chart nothing is asked or loaded."""
    chart = records.policy.org
    if chart is None:
        return None

    return guard.forbidden(records, chart, command)


def _gated(records: Records, command: c.OnTask, now: int) -> Verdict | None:
    """What the command means for a task that passes through a workflow; None where that makes no difference."""
    task = None if isinstance(command, c.Create) else records.look(command.task_id)
    if task is None or not (task.gated or task.routing.workflow):
        return None

    return decide_gated.gated(records, task, command, now)


def _create_gated(records: Records, command: c.CreateGated, now: int) -> Verdict:

    return control.create(records, command, now)


def _attach(records: Records, command: c.Attach, now: int) -> Verdict:

    return control.attach(records, command, now)


def _time_out(records: Records, command: c.TimeOut, now: int) -> Verdict:
    if not records.task(command.task_id).workflow:
        return Decision()

    return failures.time_out(records, command, now)


_NAME: Final = 128
_NOT_WHILE_CANCELLING: Final = (c.Approve, c.Reject, c.Block, c.Unblock, c.Pause, c.Resume, c.RetryTask)
_DECIDERS: dict[type[c.OnTask], Callable[[Records, Any, int], Verdict]] = {
    c.Create: creation.create,
    c.CreateGated: _create_gated,
    c.Attach: _attach,
    c.Claim: lease.claim,
    c.Beat: lease.beat,
    c.Release: lease.release,
    c.Report: progress.report,
    c.Update: update.update,
    c.Edit: edit.edit,
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
    c.Archive: edit.archive,
    c.AddDependency: dependencies.add_dependency,
    c.RemoveDependency: dependencies.remove_dependency,
    c.Link: links.link,
    c.Unlink: links.unlink,
    c.Expire: recovery.expire,
    c.TimeOut: _time_out,
    c.Promote: maintenance.promote,
    c.Bury: maintenance.bury,
    c.Alert: maintenance.alert,
    c.Exited: process_exit.exited,
    c.TakeIn: manual_edit.take_in,
}
