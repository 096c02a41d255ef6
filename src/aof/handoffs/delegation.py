"""Delegation by AOF/1 messages: the request, its answer, the brief in the child's folder, and missing answers."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from aof.errors import AofError, Call, InvalidTransition, NestedDelegation, NotLeaseHolder, ParentNotFound
from aof.handoffs import rules
from aof.handoffs.audit import AUDIT, audited
from aof.handoffs.model import (
    Handoff,
    Rationale,
    Request,
    ReturnProtocol,
    Validation,
    request_context,
    request_reason,
    uuid4,
)
from aof.handoffs.rules import finished_refusal
from aof.kernel.commands import AddLink, Block, Create, Decide, Decision, Needs, NeedsOf, OwnRule, Records, Verdict
from aof.kernel.events import Draft, Event
from aof.kernel.limits import REASON, text
from aof.kernel.model import OURSELVES, iso, millis, status_allows
from aof.messages.rules import Message, is_held, sender
from aof.org import rights, routing
from aof.support.typed import prepare_type
from aof.tasks import graph
from aof.tasks.model import Task

ATTACHED = ("inputs/handoff.json", "inputs/handoff.md")
TAG: Final = "handoff-answer"
EVENT: Final = "handoff.unanswered"
_DEEPEST: Final = 1
_ANSWERS: Final = "answersHandoff"  # the key in the metadata of a task that answers a handoff
_TITLE: Final = 120  # characters


class _AboutChild(Message, frozen=True, kw_only=True):
    """A message about the handoff of a child task."""

    def beside(self, refusal: AofError) -> tuple[Draft, ...]:
        """A child that does not exist is also reported as a failed delegation."""
        return (self._failed(refusal.code),) if refusal.code == "task_not_found" else ()

    def _failed(self, reason: str) -> Draft:
        return Draft(type="delegation.rejected", task_id=self.task_id, payload={"reason": reason})


class HandoffRequest(_AboutChild, frozen=True, kw_only=True):
    """A parent's agent asks another one to take a child task. `odd` is what was wrong and does no harm."""

    request: Request
    odd: tuple[dict[str, str], ...] = ()

    def needs(self, known: Records, needs: NeedsOf) -> Needs:
        """The child, what was asked of it before, and the parent."""
        own = frozenset({self.task_id})
        files = frozenset((self.task_id, place) for place in ATTACHED)
        return Needs(write=own, read=frozenset({self.request.parent_task_id}) - own, handoffs=own, files=files)

    def judge(self, records: Records, now: int, decide: Decide) -> Verdict:
        """One handoff for one request, however often it arrives."""
        child = records.find(self.task_id)
        if child is None:
            return graph.missing(self.task_id, "create the child task first")
        parent = records.find(self.request.parent_task_id)
        if failure := self._impossible(parent):
            return Decision(drafts=(self._failed(failure.code),), refusal=failure)
        assert parent is not None
        if refusal := self._unentitled(parent) or finished_refusal(child) or self._not_its_own(records, child, parent):
            return refusal
        last = records.handoffs[child.id][-1] if records.handoffs[child.id] else None
        same = last is not None and last.request == self.request
        if last is not None and same and (last.state != "rejected" or last.sent_at == self.sent_at):
            return self._restored(records, last)  # the same message again, or the same request while it stands
        pending = last is not None and last.state == "requested" and last.from_agent == self.actor
        asked = self._handoff(records, child, last if pending else None, now)
        payload: dict[str, Any] = {
            "handoffId": asked.id,
            "depth": _depth(parent) + 1,
            "sentAt": self.sent_at,
            "request": msgspec.to_builtins(self.request),
            "handoff": rules.record_of(asked),
            AUDIT: audited("initiated", child, asked),
        }
        chart, receiver = records.policy.org, self.request.to_agent
        if (chart is None or receiver in chart.by_id) and not child.gated and not is_held(child):
            payload["agent"] = receiver  # the child is now meant for it: nobody runs it, and it has no hops that say
        warnings = [{"code": "schema_error", **one} for one in self.odd]
        drafts = [Draft(type="task.warning", task_id=child.id, payload=warning) for warning in warnings]
        return Decision(drafts=(*drafts, Draft(type="delegation.requested", task_id=child.id, payload=payload)))

    def _restored(self, records: Records, last: Handoff) -> Decision:
        """The request is known: nothing changes, but files of it that got lost are written again."""
        if not any((self.task_id, place) in records.missing for place in ATTACHED):
            return Decision()
        payload = {"handoffId": last.id, "request": msgspec.to_builtins(self.request)}
        return Decision(drafts=(Draft(type="delegation.restored", task_id=self.task_id, payload=payload),))

    def _handoff(self, records: Records, child: Task, pending: Handoff | None, now: int) -> Handoff:
        """The delegation in the engine; while it has no answer, the sender may say better what it asks for."""
        request = self.request
        number = max((one.number for one in records.handoffs[child.id]), default=0) + 1
        due = None if request.due_by is msgspec.UNSET else max(millis(request.due_by) - now, 1)
        timeout = records.policy.scheduling.handoff_ms if due is None else due
        return Handoff(
            id=pending.id if pending is not None else uuid4(records.entropy, number),
            timestamp=pending.timestamp if pending is not None else iso(now),
            from_agent=request.from_agent,
            to_agent=request.to_agent,
            type="delegation",
            reason=request_reason(request),
            context=request_context(request),
            validation=Validation(),
            return_protocol=ReturnProtocol(expected=True, timeout=f"{timeout}ms"),
            audit=Rationale(),
            state="requested",
            rev=0,
            number=pending.number if pending is not None else number,
            trigger="explicit_request",
            parent_task_id=request.parent_task_id,
        )

    def _impossible(self, parent: Task | None) -> AofError | None:
        if parent is None:
            return ParentNotFound(f"there is no task {self.request.parent_task_id}", "name a parent that exists")
        if _depth(parent) + 1 > _DEEPEST:
            return NestedDelegation(
                f"{parent.id} was delegated itself, and what was delegated is not delegated on",
                "do it yourself, or let the agent of the task above delegate it",
                Call("show", {"task_id": parent.id}),
            )
        return None

    def _unentitled(self, parent: Task) -> AofError | None:
        """Only the parent's agent delegates: the holder of its lease, else the one that it is meant for."""
        if self.request.from_agent != self.actor:
            hint = "an agent speaks for itself: 'payload.fromAgent' and 'fromAgent' must be the same"
            return _not_from(self.actor, self.request.from_agent, hint)
        if is_held(parent):
            holder = sender(parent, self)
            return holder if isinstance(holder, AofError) else None
        meant = parent.routing.agent
        if meant is not None and meant != self.actor:
            return _not_from(self.actor, meant, f"only {meant}, whose task {parent.id} is, may delegate parts of it")
        return None

    def _not_its_own(self, records: Records, child: Task, parent: Task) -> AofError | None:
        """With a chart, an agent hands on only what it may change: a handoff writes to the child and its brief.

        An agent that runs the parent may also hand on what it could take itself; one that has asked may ask again.
        """
        chart = records.policy.org
        if chart is None:
            return None
        asked = any(one.from_agent == self.actor for one in records.handoffs[child.id])
        if asked or (child.parent_id == parent.id and rights.owns(parent, self.actor)):
            return None
        if child.status in ("backlog", "ready", "blocked") and not child.gated and is_held(parent):
            work = routing.work_of(child.routing, child.profile)
            if routing.routing_refusal(chart, work, self.actor) is None:
                return None
        change = AddLink(actor=self.actor, task_id=child.id, kind="handoff", target_id=parent.id)
        return rights.not_allowed(records, chart, child, change)


class HandoffAnswer(_AboutChild, frozen=True, kw_only=True):
    """The addressee takes the child task, or says why not."""

    accepted: bool
    reason: str | None = None

    def needs(self, known: Records, needs: NeedsOf) -> Needs:
        """The child, and what was asked of it."""
        own = frozenset({self.task_id})
        return Needs(write=own, handoffs=own)

    def judge(self, records: Records, now: int, decide: Decide) -> Verdict:
        """An acceptance moves nothing; a rejection blocks the child."""
        child = records.find(self.task_id)
        if child is None:
            return graph.missing(self.task_id)
        last = records.handoffs[child.id][-1] if records.handoffs[child.id] else None
        if refusal := self._unentitled(child, last):
            return refusal
        if last is not None and last.state == ("accepted" if self.accepted else "rejected"):
            return Decision()
        if self.accepted:
            if last is not None and last.state == "rejected":
                what = f"the handoff {last.id} of {child.id} was rejected already"
                return InvalidTransition(what, "ask for a new handoff.request")
            record = {} if last is None else {AUDIT: audited("accepted", child, last)}
            return Decision(drafts=(self._answer("delegation.accepted", child, last, **record),))
        holder = sender(child, self) if is_held(child) else None
        return holder if isinstance(holder, AofError) else self._turned_down(records, child, last, now, decide)

    def _unentitled(self, child: Task, last: Handoff | None) -> AofError | None:
        held_by = child.lease.agent if child.lease is not None else child.routing.agent
        addressee = last.to_agent if last is not None else held_by
        if addressee is not None and addressee != self.actor:
            return _not_from(self.actor, addressee, f"only {addressee}, who was asked, may answer for {child.id}")
        return None

    def _turned_down(self, records: Records, child: Task, last: Handoff | None, now: int, decide: Decide) -> Decision:
        """The rejection, and the block of the child, where it can be blocked."""
        reason, blocked = str(self.reason), tuple[Draft, ...]()
        if status_allows(child.status, "blocked"):
            block = Block(actor=self.actor, run=self.run, task_id=child.id, reason=reason)
            verdict = decide(records, block, now)
            blocked = verdict.drafts if isinstance(verdict, Decision) else ()
        record = {} if last is None else {AUDIT: audited("rejected", child, last, reason=reason, resolved=now)}
        return Decision(drafts=(*blocked, self._answer("delegation.rejected", child, last, reason=reason, **record)))

    def _answer(self, kind: str, child: Task, last: Handoff | None, **more: Any) -> Draft:
        known = {"handoffId": last.id, "parentTaskId": last.parent_task_id} if last is not None else {}
        return Draft(type=kind, task_id=child.id, payload=known | more)


def _depth(task: Task) -> int:
    depth = task.metadata.get("delegationDepth")
    return int(depth) if isinstance(depth, int | float) and not isinstance(depth, bool) else 0


def _not_from(actor: str, entitled: str, hint: str) -> NotLeaseHolder:
    return NotLeaseHolder(f"the message is from {actor}, and {entitled} is the one to send it", hint, holder=entitled)


def attached(event: Event) -> dict[str, bytes]:
    """The files that an event puts into its task's folder, by their place in it."""
    if event.type not in ("delegation.requested", "delegation.restored"):
        return {}
    request = msgspec.convert(event.payload["request"], prepare_type(Request))
    whole = msgspec.json.format(msgspec.json.encode(request), indent=2) + b"\n"
    return dict(zip(ATTACHED, (whole, _markdown(request).encode()), strict=True))


def _markdown(request: Request) -> str:
    head = ["# Handoff Request", "", f"**From:** {request.from_agent}", f"**To:** {request.to_agent}"]
    if request.due_by:
        head.append(f"**Due By:** {request.due_by}")
    lists = (
        ("Acceptance Criteria", request.acceptance_criteria),
        ("Expected Outputs", request.expected_outputs),
        ("Context References", request.context_refs),
        ("Constraints", request.constraints),
    )
    for title, items in lists:
        indented = ("\n  ".join(item.splitlines()) for item in items)  # more than one line stays one item of the list
        head += ["", f"## {title}", *([""] if items else []), *(f"- {item}" for item in indented)]
    return "\n".join(head) + "\n"


def handoff_of(answer: Task) -> str | None:
    """The handoff that a task was made to answer."""
    found = answer.metadata.get(_ANSWERS)
    return found if isinstance(found, str) else None


def answer_task(task: Task, handoff: Handoff, task_id: str) -> Create:
    """The task for the receiver; asking again makes no second one."""
    title = f"Answer {handoff.from_agent}: {handoff.reason}"
    why = handoff.audit.decision_rationale
    body = [
        f"{handoff.from_agent} asks you about {task.id} ({task.title}): {handoff.reason}",
        *([why] if why and why != handoff.reason else []),
        f"Look at it with `aof show {task.id}` and `aof handoff show {handoff.id}`. Do not work on {task.id} itself.",
        f"Complete this task with your answer as its summary: it is returned to {handoff.from_agent}.",
    ]
    return Create(
        actor=OURSELVES,
        task_id=task_id,
        title=title if len(title) <= _TITLE else f"{title[: _TITLE - 1]}…",
        body="\n\n".join(body),
        assignee=handoff.to_agent,
        priority=task.priority,
        tags=(TAG,),
        metadata={_ANSWERS: handoff.id, "answersTask": task.id, "reviewRequired": False},
        key=f"answer:{handoff.id}",
    )


def recorded_unanswered(task: Task, handoff_id: str) -> bool:
    """Whether it is recorded already that this handoff of the task has no answer."""
    return bool(task.metadata.get("handoffUnanswered") == handoff_id)


class RecordUnanswered(OwnRule, frozen=True, kw_only=True):
    """Record that a handoff of the task waits for its answer for too long."""

    handoff_id: str
    reason: str

    def needs(self, known: Records, needs: NeedsOf) -> Needs:
        """The child, and what was asked of it."""
        own = frozenset({self.task_id})
        return Needs(write=own, handoffs=own)

    def decide(self, records: Records, now: int, decide: Decide) -> Verdict:
        """Leave alone what was answered in the meantime, or recorded already."""
        task = records.find(self.task_id)
        if task is None:
            return graph.missing(self.task_id)
        last = records.handoffs[task.id][-1] if records.handoffs[task.id] else None
        waits = last is not None and last.id == self.handoff_id and last.state == "requested"
        if last is None or not waits or recorded_unanswered(task, last.id):
            return Decision()
        if problem := text("reason", self.reason, REASON, required=True):
            return problem
        payload = {
            "handoffId": last.id,
            "parentTaskId": last.parent_task_id,
            "fromAgent": last.from_agent,
            "toAgent": last.to_agent,
            "reason": self.reason,
            AUDIT: audited("timeout", task, last, reason=self.reason),
        }
        return Decision(drafts=(Draft(type=EVENT, task_id=task.id, payload=payload),))
