"""`evolve(task, event)`: what each kind of event makes of a task. The log alone rebuilds every task this way.

An event of a kind that is not in the table changes only `rev` and `updatedAt`. A report names an acceptance criterion
as text (then it is met), as `{"criterion": …, "met": true}`, or as `{criterion: "met"}`; the last word counts, and what
nobody reported reads as unknown. Must not judge: whether an event may happen was decided before it was written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from aof.handoffs import context as handoffs_context
from aof.handoffs import model as handoffs_model
from aof.kernel.events import Draft, Event, about_handoff
from aof.kernel.model import FINISHED, WAITS_FOR_DEPENDENCIES, is_tagged
from aof.runs import model as runs_model
from aof.runs.model import begun_lease, checked_call, is_named, named_authors, progress_after, run_by
from aof.support.hashing import hexdigest
from aof.support.typed import prepare_type
from aof.tasks import body as tasks_body
from aof.tasks.model import Blocked, Cancel, Failure, Key, LateResult, Link, Task
from aof.workflows import evolve as workflows_evolve

_NAMES: Final = ("criterion", "id", "text")
_WORDS: Final = {True: "met", False: "unmet"}
_LONG: Final = 40  # bytes of a criterion's name that the record repeats; a longer one goes by its digest
REPORTS: Final = frozenset(
    {"task.completed", "task.progress", "task.transitioned", "task.retrying", "task.hop.approved"}
)
_replace = msgspec.structs.replace
_REQUESTS = 32
_LATE, _LATE_FILES, _LATE_FILE = 500, 10, 200  # characters of a late result's summary, its files, characters of each


def criterion_name(criterion: Any) -> str:
    """The name by which reports refer to an acceptance criterion."""
    if isinstance(criterion, dict):
        return next((str(criterion[name]) for name in _NAMES if name in criterion), "")
    return str(criterion)


def reported_criteria(reports: Iterable[Any]) -> dict[str, str]:
    """The status of each criterion that the reports name; of several reports on one, the last counts."""
    said: dict[str, str] = {}
    for report in reports:
        if isinstance(report, str):
            said[report] = "met"
        elif isinstance(report, dict) and (name := criterion_name(report)):
            said[name] = str(report.get("status", _WORDS[bool(report.get("met", True))]))
        elif isinstance(report, dict):
            said |= {str(one): str(word) for one, word in report.items()}
    return {name: word for name, word in said.items() if word in _WORDS.values()}


def criteria_status(task: Task, reports: Iterable[Any] = ()) -> list[str]:
    """The status of each acceptance criterion, in the task's order, with these reports included."""
    kept, said = task.validation.get("acceptance", {}), reported_criteria(reports)
    names = [criterion_name(one) for one in task.acceptance]
    return [said.get(name) or kept.get(_key(name), "unknown") for name in names]


def _key(name: str) -> str:
    return name if len(name.encode()) <= _LONG else f"sha256:{hexdigest(name.encode())[:24]}"


def validation_after(task: Task, event: Event) -> dict[str, Any]:
    """The task's `validation` after an event; an event that sends the work back empties it."""
    if event.type in ("task.transitioned", "task.hop.approved"):
        said = event.payload
        if "acceptance" in said:
            return {"validation": task.validation | {"acceptance": _kept(task, said["acceptance"])}}
        sent_back = said.get("from") == "review" and said.get("to") in ("ready", "in-progress")
        return {"validation": {}} if sent_back and task.validation else {}
    if event.type == "task.retrying":
        return {"validation": {}} if event.payload.get("byHand") and task.validation else {}
    told = event.payload if event.type == "task.progress" else event.payload.get("result", {})
    reports, tests = told.get("acceptance"), told.get("tests")
    account = dict(task.validation)
    if task.acceptance and isinstance(reports, list | tuple):
        account["acceptance"] = _kept(task, reports)
    if isinstance(tests, dict):
        account["tests"] = tests
    return {"validation": account} if account != task.validation else {}


def _kept(task: Task, reports: Iterable[Any]) -> dict[str, str]:
    words = zip(task.acceptance, criteria_status(task, reports), strict=True)
    return {_key(criterion_name(one)): word for one, word in words if word != "unknown"}


def evolve(task: Task | None, event: Event) -> Task:
    """The task after the event."""
    if task is None:
        return _created(event)
    if event.seq <= task.rev:
        return task
    if event.type == "task.restored":  # from a file that knew more than the log
        return _created(event)
    payload = event.payload
    if "hop" in payload or event.type.startswith("task.workflow."):
        changes = workflows_evolve.task_changes(task, event.type, payload, event.run_id, event.timestamp)
    elif (handler := _HANDLERS.get(event.type)) is not None:
        changes = handler(task, event)
    elif event.type.startswith("context."):
        changes = handoffs_context.context_changes(task, event)
    else:
        is_handoff = task.handoffs and about_handoff(event)
        changes = handoffs_model.open_handoff_changed(task, event) if is_handoff else {}
    if event.type in REPORTS:
        changes |= validation_after(task, event)
    entry = payload.get("workLog")
    if entry is not None:
        changes["body"] = tasks_body.append(changes.get("body", task.body), event.timestamp, entry)
    if "idempotency" in payload:  # the last requests that had a key; older ones are forgotten
        changes["requests"] = (*task.requests, Key(**payload["idempotency"]))[-_REQUESTS:]
    layout = task.layout if event.layout is None else event.layout or None  # empty: canonical again
    # A task's own times do not run backwards, also where the clock was turned back.
    at = max(task.updated_at, event.timestamp)
    after = _replace(task, rev=event.seq, updated_at=at, layout=layout, **changes)
    return _replace(after, locks=handoffs_model.kept_locks(after, event)) if after.locks else after


def _moment(task: Task, event: Event) -> str:
    """When the event was: a task's own times do not run backwards, also where the clock was turned back."""
    return max(task.updated_at, event.timestamp)


def evolve_draft(draft: Draft, timestamp: str) -> Task:
    """The task that a draft of its creation will bring into being."""
    return _created(
        Event(
            seq=0,
            type=draft.type,
            timestamp=timestamp,
            actor="",
            task_id=draft.task_id,
            payload=draft.payload,
            commit=(1, 1),
        )
    )


def _created(event: Event) -> Task:
    if event.type not in ("task.created", "task.restored"):
        message = f"event {event.seq} ({event.type}) comes before the creation of {event.task_id}"
        raise ValueError(message)
    fields = dict(event.payload["task"])
    body = fields.pop("body", "")
    extra = fields.pop("extra", {})
    stamps = dict.fromkeys(("createdAt", "lastTransitionAt"), event.timestamp)
    fields = stamps | fields | {"id": event.task_id, "rev": event.seq, "updatedAt": event.timestamp}
    task = msgspec.convert(fields, prepare_type(Task))
    return _replace(task, body=body, extra=extra, layout=event.layout)


def _transitioned(task: Task, event: Event) -> dict[str, Any]:
    payload = event.payload
    target = payload["to"]
    changes: dict[str, Any] = {"status": target, "last_transition_at": _moment(task, event)}
    if task.status == "in-progress":
        changes["lease"] = None
    if target == "blocked":
        changes["blocked"] = msgspec.convert(payload["blocked"], prepare_type(Blocked))
    elif task.blocked is not None:
        changes["blocked"] = None
    if "error" in payload:
        changes["last_error"] = msgspec.convert(payload["error"], prepare_type(Failure))
    if task.gated and task.status in ("blocked", "backlog"):
        changes["workflow"] = workflows_evolve.resumed(task.workflow, event.timestamp)
    if target not in ("backlog", "blocked") and WAITS_FOR_DEPENDENCIES in task.metadata:  # a block leads back there
        changes["metadata"] = {key: value for key, value in task.metadata.items() if key != WAITS_FOR_DEPENDENCIES}
    judged = task.status == "review" and target in ("done", "ready", "in-progress")
    if judged and task.retry.ran_by and not is_named(task.retry.ran_by, event.agent or event.actor, event.called_by):
        changes["retry"] = _replace(task.retry, ran_by=())  # who only takes their own work back judges nothing
    if target in FINISHED:
        changes["ended_at"] = _moment(task, event)
    elif task.ended_at is not None:
        changes["ended_at"] = None
    return changes


def _attempt_started(task: Task, event: Event) -> dict[str, Any]:
    run = event.run_id if event.run_id is not None and is_tagged(event.run_id) else None
    retry = _replace(
        task.retry,
        attempts=event.payload["attempt"],
        not_before=None,
        cause=None,
        last_run=run,
        waits_for_children=False,
    )
    if "ranBy" in event.payload:
        retry = _replace(retry, ran_by=named_authors(retry.ran_by, event.payload))
    return {
        "lease": begun_lease(event.payload, event.run_id, event.timestamp),
        "retry": retry,
        "progress": {},
        "started_at": task.started_at or _moment(task, event),
    }


def _reported(task: Task, event: Event) -> dict[str, Any]:
    if "ranBy" not in event.payload:
        return {}
    return {"retry": _replace(task.retry, ran_by=named_authors(task.retry.ran_by, event.payload))}


def _attempt_completed(task: Task, event: Event) -> dict[str, Any]:
    return {"retry": run_by(task.retry, event.payload["agent"]), "last_error": None}


def _attempt_failed(task: Task, event: Event) -> dict[str, Any]:
    payload = event.payload
    error = msgspec.convert(payload["error"], prepare_type(Failure))
    if payload["counts"]:
        retry = run_by(task.retry, payload["agent"], failures=task.retry.failures + 1, cause=payload["cause"])
        return {"retry": retry, "last_error": error}
    waits = bool(payload.get("waitsForChildren"))
    retry = run_by(task.retry, payload["agent"], cause=payload["cause"], waits_for_children=waits)
    changes: dict[str, Any] = {"retry": retry}
    if task.cancel is not None:
        changes["cancel"] = _replace(task.cancel, stopped=True)
    return changes


def _retrying(task: Task, event: Event) -> dict[str, Any]:
    payload = event.payload
    retry = _replace(task.retry, not_before=payload.get("notBefore"), cause=payload["cause"])
    if payload.get("byHand"):
        retry = _replace(retry, failures=0, waits_for_children=False)
        return {"retry": retry, "cancel": None, "last_error": None, "delivery": {}}
    return {"retry": retry}


def _updated(task: Task, event: Event) -> dict[str, Any]:
    changes = event.payload["changes"]
    whole = msgspec.to_builtins(task)
    body, extra = changes.get("body", task.body), task.extra
    for name, value in changes.items():
        if name == "extra":
            extra = value
        elif name != "body":
            if value is None:
                whole.pop(name, None)
            else:
                whole[name] = value
    fresh = msgspec.convert(whole, prepare_type(Task))
    renewed = {name: getattr(fresh, name) for name in Task.__struct_fields__}
    for name in ("rev", "updated_at", "layout"):
        del renewed[name]
    if task.retry.attempts and fresh.routing.agent not in (None, task.routing.agent):
        renewed["retry"] = _replace(fresh.retry, cause="rerouted")
    return renewed | {"body": body, "extra": extra}


def _progress(task: Task, event: Event) -> dict[str, Any]:
    return {"progress": progress_after(task, event.payload, event.run_id, event.timestamp)}


def _cancel_requested(_task: Task, event: Event) -> dict[str, Any]:
    payload = event.payload
    return {"cancel": Cancel(by=payload["by"], at=event.timestamp, reason=payload.get("reason"))}


def _dependency_updated(_task: Task, event: Event) -> dict[str, Any]:
    depends_on = event.payload.get("dependsOn")
    return {} if depends_on is None else {"depends_on": tuple(depends_on)}


def _linked(task: Task, event: Event) -> dict[str, Any]:
    edge = (event.payload["kind"], event.payload["targetId"])
    links = tuple(link for link in task.links if (link.kind, link.target_id) != edge)
    if event.type == "task.link.added":
        reason = event.payload.get("reason")
        digest = event.payload.get("sha256")
        links += (Link(kind=edge[0], target_id=edge[1], created_at=event.timestamp, reason=reason, sha256=digest),)
    return {"links": links}


def _delivered(_task: Task, event: Event) -> dict[str, Any]:
    said = {name: event.payload[name] for name in ("state", "targetId", "reason") if name in event.payload}
    return {"delivery": said | {"at": event.timestamp}}


def _sla_alert(task: Task, event: Event) -> dict[str, Any]:
    said = {name: event.payload[name] for name in ("status", "since")}
    return {"metadata": task.metadata | {"slaAlert": said}}


def _overdue(task: Task, event: Event) -> dict[str, Any]:
    return {"metadata": task.metadata | {"overdueAlert": event.payload["due"]}}


def _delegated(task: Task, event: Event) -> dict[str, Any]:
    """A task that is handed to another agent says how deep, by which handoff, and that it is meant for that agent."""
    changes: dict[str, Any] = {"metadata": task.metadata | {"delegationDepth": event.payload["depth"]}}
    if agent := event.payload.get("agent"):
        changes["routing"] = _replace(task.routing, agent=agent)
    return changes | handoffs_model.open_handoff_begun(task, event)


def _handed(task: Task, event: Event) -> dict[str, Any]:
    return handoffs_model.open_handoff_begun(task, event)


def _unanswered(task: Task, event: Event) -> dict[str, Any]:
    return {"metadata": task.metadata | {"handoffUnanswered": event.payload["handoffId"]}}


def _locked(task: Task, event: Event) -> dict[str, Any]:
    return handoffs_model.files_locked(task, event)


def _unlocked(task: Task, event: Event) -> dict[str, Any]:
    return handoffs_model.files_unlocked(task, event)


def _commented(task: Task, event: Event) -> dict[str, Any]:
    payload = event.payload
    return {"body": tasks_body.add_comment(task.body, event.timestamp, payload["by"], payload["text"])}


def _merged(task: Task, event: Event) -> dict[str, Any]:
    """Histories came together: no number of a run is given out again that any of them has used."""
    payload = event.payload
    changes: dict[str, Any] = {}
    if (attempts := payload.get("attempts", 0)) > task.retry.attempts:
        changes["retry"] = _replace(task.retry, attempts=attempts)
    if aliases := payload.get("aliases"):
        changes["aliases"] = tuple(sorted({*task.aliases, *aliases}))
    if payload.get("contested") and task.lease is not None:
        changes["lease"] = _replace(task.lease, contested=True)
    if "epochs" in payload or "contestedHops" in payload:
        changes["workflow"] = workflows_evolve.merged_workflow(
            task.workflow, payload.get("epochs", {}), payload.get("contestedHops", ())
        )
    return changes


def _late_result(task: Task, event: Event) -> dict[str, Any]:
    said = event.payload["result"]
    summary, files = said.get("notes"), tuple(path[:_LATE_FILE] for path in said.get("deliverables", ()))
    late = LateResult(
        agent=event.payload["agent"],
        at=event.timestamp,
        digest=event.payload["digest"],
        run_id=event.run_id,
        outcome=said.get("outcome"),
        summary=summary if summary is None or len(summary) <= _LATE else f"{summary[: _LATE - 1]}…",
        deliverables=files[:_LATE_FILES],
    )
    return {"late_results": (*task.late_results, late)}


def _archived(_task: Task, event: Event) -> dict[str, Any]:
    return {"archived": event.type == "task.archived"}


_HANDLERS: dict[str, Callable[[Task, Event], dict[str, Any]]] = {
    "task.transitioned": _transitioned,
    "task.attempt.started": _attempt_started,
    "task.completed": _reported,
    "task.attempt.completed": _attempt_completed,
    "task.attempt.failed": _attempt_failed,
    "task.retrying": _retrying,
    "task.updated": _updated,
    "task.progress": _progress,
    "task.cancel_requested": _cancel_requested,
    "task.dependency.updated": _dependency_updated,
    "task.link.added": _linked,
    "task.link.removed": _linked,
    "task.archived": _archived,
    "task.commented": _commented,
    "task.question.asked": runs_model.question_asked,
    "task.question.answered": runs_model.question_answered,
    "task.unarchived": _archived,
    "task.merged": _merged,
    "task.late_result": _late_result,
    "task.delivery.updated": _delivered,
    "task.sla_alert": _sla_alert,
    "task.overdue": _overdue,
    "delegation.requested": _delegated,
    "handoff.initiated": _handed,
    "handoff.unanswered": _unanswered,
    "autonomy.checked": checked_call,
    "file.locked": _locked,
    "file.unlocked": _unlocked,
}
