"""What the merge does with each type of event: one row per type. A type that has no row cannot be merged.

`births` begin a task. `content` is merged field by field. `life` comes whole from one side, per hop where a task has
some. `handoff` comes whole from one side, per handoff. What is `added` stands beside what others added. A `remark`
changes no record; `mail`, `jobs` and `document` are what is said in documents. `merge` are the events that only merge
lanes have. Must not know how any of this is done.
"""

from __future__ import annotations

from typing import Final, Literal

from aof.core.errors.storage import UnmergeableHistory

Rule = Literal["births", "content", "life", "handoff", "added", "remark", "mail", "jobs", "document", "merge"]

RULES: Final[dict[str, Rule]] = {
    "task.created": "births",
    "task.restored": "births",
    "task.updated": "content",
    "task.dependency.updated": "content",
    "task.transitioned": "life",
    "task.attempt.started": "life",
    "task.attempt.completed": "life",
    "task.attempt.failed": "life",
    "task.completed": "life",
    "task.retrying": "life",
    "task.progress": "life",
    "task.cancel_requested": "life",
    "task.lost": "life",
    "task.timed_out": "life",
    "task.archived": "life",
    "task.unarchived": "life",
    "task.workflow.attached": "life",
    "task.workflow.closed": "life",
    "run.exited": "life",
    "autonomy.checked": "life",
    "file.locked": "life",
    "file.unlocked": "life",
    "task.accepted": "added",
    "task.queued": "added",
    "task.commented": "added",
    "task.late_result": "added",
    "task.noted": "added",
    "task.link.added": "added",
    "task.link.removed": "added",
    "task.request.answered": "added",
    "task.delivery.updated": "added",
    "task.delegated": "added",
    "task.question.asked": "added",
    "task.question.answered": "added",
    "task.sla_alert": "added",
    "task.overdue": "added",
    "context.set": "added",
    "context.decided": "added",
    "context.artifact": "added",
    "context.rule": "added",
    "delegation.requested": "handoff",
    "delegation.accepted": "handoff",
    "delegation.rejected": "handoff",
    "delegation.restored": "handoff",
    "handoff.initiated": "handoff",
    "handoff.accepted": "handoff",
    "handoff.rejected": "handoff",
    "handoff.deferred": "handoff",
    "handoff.escalated": "handoff",
    "handoff.rerouted": "handoff",
    "handoff.returned": "handoff",
    "handoff.late_return": "handoff",
    "handoff.completed": "handoff",
    "handoff.failed": "handoff",
    "handoff.resent": "handoff",
    "handoff.reminded": "handoff",
    "handoff.timeout": "handoff",
    "handoff.delivered": "handoff",
    "handoff.informed": "handoff",
    "handoff.released": "handoff",
    "handoff.warning": "handoff",
    "handoff.unanswered": "handoff",
    "protocol.message.received": "remark",
    "protocol.message.rejected": "remark",
    "protocol.message.unknown": "remark",
    "task.warning": "remark",
    "context.conflict": "remark",
    "context.refused": "remark",
    "file.refused": "remark",
    "handoff.refused": "remark",
    "http.authentication.failed": "remark",
    "a2a.push.set": "remark",
    "a2a.push.dropped": "remark",
    "agent.turn.began": "remark",
    "agent.turn.ended": "remark",
    "agent.unavailable": "remark",
    "agent.available": "remark",
    "document.mail.sent": "mail",
    "document.mail.changed": "mail",
    "document.mail.closed": "mail",
    "document.mail.escalated": "mail",
    "document.mail.archived": "mail",
    "document.mail.settled": "mail",
    "document.job.added": "jobs",
    "document.job.paused": "jobs",
    "document.job.resumed": "jobs",
    "document.job.dispatched": "jobs",
    "document.job.failed": "jobs",
    "document.job.removed": "jobs",
    "document.worklog.entry": "document",
    "document.worklog.status": "document",
    "document.worklog.compacted": "document",
    "document.worklog.restored": "document",
    "document.charter.created": "document",
    "document.charter.amended": "document",
    "document.charter.signed": "document",
    "document.superseded": "merge",
    "task.superseded": "merge",
    "task.merged": "merge",
}
HOPS: Final = "task.hop."  # every step of a hop is life


def rule_of(kind: str) -> Rule:
    """The rule for a type of event."""
    rule = RULES.get(kind)
    if rule is None and kind.startswith(HOPS):
        return "life"
    if rule is None or rule == "merge":
        raise UnmergeableHistory(
            f"a commit has an event '{kind[:80]}', which this version of AOF cannot merge",
            "update AOF in every clone, then try again",
        )
    return rule
