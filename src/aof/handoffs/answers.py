"""How a handoff is answered, returned, aggregated over a broadcast, reminded of and timed out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

import msgspec

from aof.errors import (
    AlreadyReturned,
    AofError,
    Call,
    CapabilityMismatch,
    InvalidInput,
    NoReturnExpected,
    NotAddressee,
    StaleHandoff,
)
from aof.handoffs import rules
from aof.handoffs.audit import Outcome, audited
from aof.handoffs.initiation import closed_refusal, escalated_further, escalated_to, not_accepted_refusal, passed_on
from aof.handoffs.model import (
    MAX_RESENDS,
    UNANSWERED,
    Aggregation,
    ContentType,
    ContextUpdates,
    Handoff,
    HandoffState,
    Return,
    ReturnAudit,
    ReturnedResult,
    ReturnStatus,
)
from aof.handoffs.payload import addition, bad_moment
from aof.handoffs.rules import OnHandoff, capability_gap, ended, finished_refusal, load_of, rejected, step
from aof.kernel import limits
from aof.kernel.commands import Claim, DeadLetter, Decide, Decision, Needs, NeedsOf, Records, Verdict
from aof.kernel.events import Draft
from aof.kernel.model import iso
from aof.org import routing
from aof.org.model import HUMAN
from aof.support.answer import StructAnswer
from aof.tasks.model import Task

GroupState = Literal["open", "success", "failed", "sent"]
UNAVAILABLE: Final = "unavailable"
_MOST_LATE: Final = 5  # returns of one handoff that came too late and are kept
_MOST_NAMED: Final = 10  # variables that were not applied
_OUTCOMES: Final[dict[ReturnStatus, Outcome]] = {
    "success": "success",
    "partial": "partial",
    "failed": "failed",
    "timeout": "failed",
}
_replace = msgspec.structs.replace


class Accept(OnHandoff, frozen=True, kw_only=True):
    """Accept the handoff. A run that this begins has the secret with this digest; without `begin` others begin it.

    With `keep` that run outlives the session.
    """

    operation = "handoff_accept"
    reason: str | None = None
    estimated_completion: str | None = None
    secret_digest: str | None = None
    keep: bool = False
    begin: bool = True

    def needs(self, known: Records, needs: NeedsOf) -> Needs:
        """What a claim would read as well, and the locks under which the receiver's load is counted."""
        base = super().needs(known, needs)
        task, chart = known.tasks.get(self.task_id), known.policy.org
        handoff = next((one for one in known.handoffs.get(self.task_id, ()) if one.id == self.handoff_id), None)
        if task is None or handoff is None:
            return base
        read = frozenset(task.depends_on) - base.write
        resources = frozenset({task.resource} if task.resource else ())
        names = frozenset(f"resource:{one}" for one in resources)
        agent = rules.listed_agent(known.policy, handoff.to_agent)
        if chart is not None and agent is not None:
            names |= routing.capacity_locks(chart, agent)
        children = frozenset({task.id} if task.waits_for_children else ())
        below = frozenset(one for task_id in children for one in known.children.get(task_id, ()))
        return _replace(
            base, read=base.read | read | (below - base.write), names=names, resources=resources, children=children
        )

    def judge_one(self, records: Records, task: Task, handoff: Handoff, now: int, decide: Decide) -> Verdict:
        """Capability, capacity and autonomy are checked here, whatever the receiver says."""
        problem = (
            self.not_receiver(records, handoff)
            or limits.text("reason", self.reason, limits.REASON)
            or bad_moment("estimated_completion", self.estimated_completion)
        )
        if problem:
            return problem
        if handoff.state == "accepted":
            return Decision()
        if handoff.state not in UNANSWERED:
            return closed_refusal(handoff)
        over = None if handoff.outlives(task.status) else finished_refusal(task)
        if refusal := over or self._unable(records, handoff):
            return refusal
        claim = None
        if self.begin:
            receiver = handoff.to_agent
            claim = Claim(
                actor=receiver, agent=receiver, task_id=task.id, secret_digest=self.secret_digest, keep=self.keep
            )
        taken = rules.ownership_taken(records, task, handoff, now, decide, claim)
        if isinstance(taken, AofError):
            return taken
        drafts = (*self._accepted(records, task, handoff, now), *taken.drafts)
        if not handoff.return_protocol.expected:
            drafts += ended(task, handoff, "success", now)
        return _replace(taken, drafts=drafts, agent=self.acting)

    def _unable(self, records: Records, handoff: Handoff) -> AofError | None:
        chart, agent = records.policy.org, rules.listed_agent(records.policy, handoff.to_agent)
        if chart is None or agent is None:
            return None
        matched, missing = rules.capability_match(agent, handoff.validation)
        if matched == "none":
            return CapabilityMismatch(
                f"{agent.id} has none of the capabilities that handoff {handoff.id} requires: {', '.join(missing)}",
                "reject it, and it goes to an agent that has them",
                Call("handoff_reject", {"handoff_id": handoff.id, "agent": agent.id, "reason": "…"}),
                missing=list(missing),
            )
        short = rules.autonomy_refusal(records.policy, handoff, agent.id)
        return short or (routing.at_capacity(chart, agent, load_of(records)) if self.begin else None)

    def _accepted(self, records: Records, task: Task, handoff: Handoff, now: int) -> tuple[Draft, ...]:
        checks = rules.check_receiver(records, handoff, now)
        missing = checks.missing
        notes = f"lacks {', '.join(missing)}" if missing else None
        accepted = step(
            "handoff.accepted",
            handoff,
            audited("accepted", task, handoff, notes=notes),
            acceptance=_acceptance(self, handoff),
            checks=msgspec.to_builtins(checks),
            **({"warnings": [f"{handoff.to_agent} lacks {one}" for one in missing]} if missing else {}),
        )
        return (accepted, *((capability_gap(handoff, missing),) if missing else ()))


class RejectHandoff(OnHandoff, frozen=True, kw_only=True):
    """Reject the handoff; another agent is asked, or a person."""

    operation = "handoff_reject"
    reason: str

    def judge_one(self, records: Records, task: Task, handoff: Handoff, now: int, decide: Decide) -> Verdict:
        """A rejection is final for this record; the work goes on elsewhere in the same commit."""
        if problem := _bad_answer(self, records, handoff, self.reason):
            return problem
        if handoff.state not in UNANSWERED:
            return closed_refusal(handoff)
        drafts = turned_down(records, task, handoff, self.reason, now, by=self.speaker(handoff))
        return Decision(drafts=drafts, agent=self.acting)


def turned_down(
    records: Records, task: Task, handoff: Handoff, reason: str, now: int, *, by: str | None = None
) -> tuple[Draft, ...]:
    """The events of a rejection: the work goes on with another agent or a person, and a broadcast may be decided."""
    over = _replace(handoff, state="rejected")
    notify = rules.orchestrator(records.policy, handoff)
    first = rejected(task, handoff, reason, now, notify=notify, by=by)
    if handoff.request is not None:  # an AOF/1 rejection blocks the child, and nobody else is asked
        return (first, *rules.blocked(task, handoff, reason, now))
    following = passed_on(records, task, over, reason, now)
    return (first, *following, *(() if following else released(records, over)))


def released(records: Records, handoff: Handoff) -> tuple[Draft, ...]:
    """The events that let the sender go on once no more results can come, of one handoff or of its whole group."""
    if handoff.broadcast_group_id is not None and aggregated(_members(records, handoff)).state == "open":
        return ()
    return rules.sender_resumed(records, handoff)


class Defer(OnHandoff, frozen=True, kw_only=True):
    """Acknowledge the handoff and put the answer off. It stays open, and nobody works under it."""

    operation = "handoff_defer"
    reason: str
    estimated_completion: str | None = None

    def judge_one(self, records: Records, task: Task, handoff: Handoff, now: int, decide: Decide) -> Verdict:
        """Counts as acknowledged: the audit says `accepted` with the status `deferred`."""
        problem = _bad_answer(self, records, handoff, self.reason)
        if problem := problem or bad_moment("estimated_completion", self.estimated_completion):
            return problem
        if handoff.state not in UNANSWERED:
            return closed_refusal(handoff)
        record = audited("accepted", task, handoff, reason=self.reason, status="deferred")
        draft = step("handoff.deferred", handoff, record, acceptance=_acceptance(self, handoff))
        return Decision(drafts=(draft,), agent=self.acting)


def _acceptance(command: Accept | Defer, handoff: Handoff) -> dict[str, Any]:
    """The receiver's answer, as its event and the record hold it."""
    answer = {
        "status": "accepted" if isinstance(command, Accept) else "deferred",
        "reason": command.reason,
        "estimated_completion": command.estimated_completion,
        "by": command.speaker(handoff),
    }
    return {name: value for name, value in answer.items() if value is not None}


def _bad_answer(command: OnHandoff, records: Records, handoff: Handoff, reason: str) -> AofError | None:
    refusal = command.not_receiver(records, handoff)
    return refusal or limits.text("reason", reason, limits.REASON, required=True)


class MemberResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What has come from one receiver so far."""

    handoff_id: str
    agent: str
    state: str
    expected: bool
    status: str | None = None
    result: Any = None


class Group(StructAnswer, frozen=True, kw_only=True):
    """A broadcast as its sender sees it. `sent` says that nobody owes a return."""

    broadcast_group_id: str
    task_id: str
    from_agent: str
    aggregation: Aggregation
    state: GroupState
    results: tuple[MemberResult, ...]


def _members(records: Records, handoff: Handoff) -> list[Handoff]:
    """The handoffs of a broadcast, with this one as it will be."""
    same = [one for one in records.handoffs[handoff.task_id] if one.broadcast_group_id == handoff.broadcast_group_id]
    return [handoff if one.id == handoff.id else one for one in same]


def aggregated(members: Sequence[Handoff]) -> Group:
    """The broadcast that these handoffs are; members that were passed on count by who has them now."""
    first = members[0]
    mode: Aggregation = first.aggregation or "all"
    owed = [one for one in members if one.return_protocol.expected and one.forwarded_to is None]
    good = sum(one.state == "completed" and one.outcome == "success" for one in owed)
    bad = sum(not one.is_open for one in owed) - good
    return Group(
        broadcast_group_id=first.broadcast_group_id or "",
        task_id=first.task_id,
        from_agent=first.from_agent,
        aggregation=mode,
        state=group_state(mode, len(owed), good, bad),
        results=tuple(
            MemberResult(
                handoff_id=one.id,
                agent=one.to_agent,
                state=one.state,
                expected=one.return_protocol.expected,
                status=one.returned.status if one.returned is not None else None,
                result=msgspec.to_builtins(one.returned.result) if one.returned is not None else None,
            )
            for one in members
        ),
    )


def group_state(mode: Aggregation, owed: int, good: int, bad: int) -> GroupState:
    """How the group stands with so many successes and failures."""
    if not owed:
        return "sent"
    needed = {"all": owed, "any": 1, "majority": owed // 2 + 1}[mode]
    if good >= needed:
        return "success"
    return "failed" if owed - bad < needed else "open"


class ReturnResult(OnHandoff, frozen=True, kw_only=True):
    """Return the result of an accepted handoff. `to_agent` may name the sender that it goes to."""

    operation = "handoff_return"
    status: ReturnStatus
    result: Any = None
    content_type: ContentType | None = None
    to_agent: str | None = None
    variables_changed: dict[str, Any] = {}  # noqa: RUF012 - a struct copies it
    artifacts_produced: tuple[Any, ...] = ()
    tokens_consumed: int | None = None
    notes: str = ""

    def judge_one(self, records: Records, task: Task, handoff: Handoff, now: int, decide: Decide) -> Verdict:
        """The return and its processing are one commit, so that `completed` stands right after it."""
        refusal = self.not_receiver(records, handoff) or self._other_party(handoff) or self._malformed()
        if refusal:
            return refusal
        brought = self._brought(handoff, now)
        if handoff.state != "accepted":
            return self._too_late(handoff, brought)
        if not handoff.return_protocol.expected:
            return _unexpected(handoff)
        drafts = processed(records, task, handoff, brought, now)
        return drafts if isinstance(drafts, AofError) else Decision(drafts=drafts, agent=self.acting)

    def _too_late(self, handoff: Handoff, brought: Return) -> Verdict:
        """Why a return is not applied; one from an agent that was replaced stays on the record."""
        if handoff.state in UNANSWERED:
            return not_accepted_refusal(handoff)
        if handoff.returned is not None:
            return AlreadyReturned(
                f"handoff {handoff.id} was returned at {handoff.returned.audit.completion_time}",
                "look at what became of it",
                Call("handoff_show", {"handoff_id": handoff.id}),
            )
        if not handoff.return_protocol.expected:
            return _unexpected(handoff)
        if handoff.acceptance is None or handoff.acceptance.status == "rejected":
            return closed_refusal(handoff)
        stale = StaleHandoff(
            f"handoff {handoff.id} is {handoff.state}: it went on without {handoff.to_agent}",
            "the result was recorded and not applied; the sender can read it on the handoff",
            Call("handoff_show", {"handoff_id": handoff.id}),
            state=handoff.state,
        )
        if len(handoff.late_returns) >= _MOST_LATE:
            return stale
        late = step("handoff.late_return", handoff, **{"return": msgspec.to_builtins(brought)})
        return self.refused(stale, late)

    def _brought(self, handoff: Handoff, now: int) -> Return:
        text = isinstance(self.result, str)
        kind: ContentType = self.content_type or ("text" if text else "json")
        return Return(
            handoff_id=handoff.id,
            from_agent=handoff.to_agent,
            to_agent=handoff.from_agent,
            status=self.status,
            result=None if self.result is None else ReturnedResult(content_type=kind, body=self.result),
            context_updates=ContextUpdates(
                variables_changed=self.variables_changed, artifacts_produced=self.artifacts_produced
            ),
            audit=ReturnAudit(completion_time=iso(now), tokens_consumed=self.tokens_consumed, notes=self.notes),
        )

    def _other_party(self, handoff: Handoff) -> AofError | None:
        if self.to_agent in (None, handoff.from_agent):
            return None
        return NotAddressee(
            f"handoff {handoff.id} is from {handoff.from_agent}, and its result does not go to {self.to_agent}",
            f"leave out who gets it, or name {handoff.from_agent}",
            Call("handoff_show", {"handoff_id": handoff.id}),
        )

    def _malformed(self) -> AofError | None:
        if self.content_type in ("text", "artifact_ref") and not isinstance(self.result, str):
            return InvalidInput(f"a result of the type '{self.content_type}' is a text", "send 'json', or a text")
        if self.tokens_consumed is not None and self.tokens_consumed < 0:
            return InvalidInput("'tokens_consumed' must not be negative", "count them, or leave it out")
        return (
            limits.data("result", self.result)
            or limits.data("variables_changed", self.variables_changed)
            or limits.data("artifacts_produced", self.artifacts_produced)
            or limits.text("notes", self.notes, limits.NOTES)
        )


def processed(
    records: Records, task: Task, handoff: Handoff, brought: Return, now: int
) -> tuple[Draft, ...] | AofError:
    """The return, its closing record, and what follows: context, ownership, and whoever waited for it.

    The record says which of the changes to the context were not applied, and why.
    """
    outcome = _OUTCOMES[brought.status]
    state: HandoffState = "failed" if outcome == "failed" else "completed"
    over = _replace(handoff, state=state, outcome=outcome, returned=brought)
    returned = step("handoff.returned", handoff, **{"return": msgspec.to_builtins(brought)})
    updates = brought.context_updates
    added = addition(records, task, handoff.to_agent, updates.variables_changed, updates.artifacts_produced, now)
    if isinstance(added, AofError):
        return added
    more: dict[str, Any] = {"group": group} if (group := _group(records, over)) else {}
    unapplied = [f"not applied: {refusal.message}" for refusal in added.refusals[:_MOST_NAMED]]
    if (others := len(added.refusals) - _MOST_NAMED) > 0:
        unapplied.append(f"not applied: {others} more")
    if unapplied:
        more["warnings"] = [*handoff.warnings, *unapplied]
    closing = ended(task, handoff, outcome, now, returned=brought, remarks=unapplied, **more)
    written = {draft.payload["name"] for draft in added.drafts if draft.type == "context.set"}
    changed = {name: value for name, value in updates.variables_changed.items() if name in written}
    informed: tuple[Draft, ...] = ()
    if handoff.coordinate and changed:  # the other receivers of the broadcast see what this one has changed
        members = (one for one in _members(records, over) if one.id != handoff.id and one.is_open)
        informed = tuple(step("handoff.informed", one, variables=changed, by=handoff.to_agent) for one in members)
    escalated = handoff.type == "escalation"
    owner = rules.owner_changed(task, owner=handoff.from_agent) if escalated else ()  # the answer gives it back
    return (returned, *added.drafts, *closing, *informed, *owner, *released(records, over))


def _group(records: Records, handoff: Handoff) -> dict[str, Any] | None:
    """What the broadcast comes to, where this return decides it."""
    if handoff.broadcast_group_id is None:
        return None
    before = [one for one in records.handoffs[handoff.task_id] if one.broadcast_group_id == handoff.broadcast_group_id]
    if aggregated(before).state != "open":
        return None
    after = aggregated(_members(records, handoff))
    whole: dict[str, Any] = msgspec.to_builtins(after)
    return whole if after.state != "open" else None


def _unexpected(handoff: Handoff) -> NoReturnExpected:
    return NoReturnExpected(
        f"nobody waits for a return of handoff {handoff.id}: it is {handoff.type}",
        "report on the task itself",
        Call("show", {"task_id": handoff.task_id}),
    )


class AnswerHandoff(OnHandoff, frozen=True, kw_only=True):
    """A person's answer: acceptance and return in one commit."""

    operation = "handoff_answer"
    text: str
    status: ReturnStatus = "success"

    def needs(self, known: Records, needs: NeedsOf) -> Needs:
        """What an acceptance needs."""
        return self._accept().needs(known, needs)

    def judge_one(self, records: Records, task: Task, handoff: Handoff, now: int, decide: Decide) -> Verdict:
        """Whoever may accept may answer."""
        if problem := limits.text("text", self.text, limits.NOTES, required=True):
            return problem
        accepted: Verdict = Decision()
        if handoff.state in UNANSWERED:
            accepted = self._accept().judge_one(records, task, handoff, now, decide)
        if isinstance(accepted, AofError):
            return accepted
        brought = ReturnResult(
            actor=self.actor,
            agent=self.agent,
            task_id=self.task_id,
            handoff_id=self.handoff_id,
            status=self.status,
            result=self.text,
        )
        held = handoff if handoff.state not in UNANSWERED else _replace(handoff, state="accepted")
        returned = brought.judge_one(records, task, held, now, decide)
        if isinstance(returned, AofError) or returned.refusal is not None:
            return returned
        return Decision(drafts=(*accepted.drafts, *returned.drafts), agent=self.acting)

    def _accept(self) -> Accept:
        return Accept(actor=self.actor, agent=self.agent, task_id=self.task_id, handoff_id=self.handoff_id)


class Deliver(OnHandoff, frozen=True, kw_only=True):
    """A queued handoff reaches its receiver, who is not at its limit any more."""

    operation = "handoff_deliver"

    def judge_one(self, records: Records, task: Task, handoff: Handoff, now: int, decide: Decide) -> Verdict:
        """Deliver it, unless the receiver is still busy."""
        if handoff.state != "queued" or rules.is_full(records, handoff.to_agent):
            return Decision()
        return Decision(drafts=(step("handoff.delivered", handoff),))


class Resend(OnHandoff, frozen=True, kw_only=True):
    """Send the handoff to the same agent again."""

    operation = "handoff_resend"
    reason: str | None = None

    def judge_one(self, records: Records, task: Task, handoff: Handoff, now: int, decide: Decide) -> Verdict:
        """At most three times; after that only another agent or a person helps."""
        problem = self.not_sender(records, handoff) or limits.text("reason", self.reason, limits.REASON)
        if problem:
            return problem
        if not handoff.is_open or handoff.resends >= MAX_RESENDS:
            return closed_refusal(handoff)
        return Decision(drafts=(resent(handoff, self.reason),), agent=self.acting)


def resent(handoff: Handoff, reason: str | None) -> Draft:
    """The handoff goes to the same agent again."""
    payload: dict[str, Any] = {"attempt": handoff.resends + 1} | ({"reason": reason} if reason else {})
    return step("handoff.resent", handoff, **payload)


class Remind(OnHandoff, frozen=True, kw_only=True):
    """Tell the receiver once that a return is overdue."""

    operation = "handoff_remind"

    def judge_one(self, records: Records, task: Task, handoff: Handoff, now: int, decide: Decide) -> Verdict:
        """A handoff that is over, or was reminded of, is left alone."""
        owed = handoff.state == "accepted" and handoff.return_protocol.expected
        if not owed or handoff.reminded_at is not None:
            return Decision()
        return Decision(drafts=(step("handoff.reminded", handoff, toAgent=handoff.to_agent),))


class TimeOutHandoff(OnHandoff, frozen=True, kw_only=True):
    """The time for an answer, or for the return, is over. `state` is the one that the timer ran in."""

    operation = "handoff_timeout"
    state: str
    reason: str

    def needs(self, known: Records, needs: NeedsOf) -> Needs:
        """What every handoff needs, and the tasks that wait for a subtask which this may fail."""
        base = super().needs(known, needs)
        more = needs(DeadLetter(actor=self.actor, task_id=self.task_id, reason=self.reason), known)
        write = base.write | more.write
        read = (base.read | more.read) - write
        return _replace(base, write=write, read=read, dependents=more.dependents, above=base.above | more.above)

    def judge_one(self, records: Records, task: Task, handoff: Handoff, now: int, decide: Decide) -> Verdict:
        """What was answered or returned in the meantime is left alone."""
        if handoff.state != self.state or not handoff.is_open:
            return Decision()
        record = audited("timeout", task, handoff, reason=self.reason)
        first = step("handoff.timeout", handoff, record, reason=self.reason)
        policy = handoff.return_protocol.on_timeout
        if handoff.state in UNANSWERED and task.priority == "critical" and handoff.type != "broadcast":
            over = _replace(handoff, state="rejected")  # what is critical goes up at once
            notify = rules.orchestrator(records.policy, handoff)
            refused = rejected(task, handoff, UNAVAILABLE, now, notify=notify)
            following = (refused, *escalated_further(records, task, over, self.reason, now))
        elif handoff.state in UNANSWERED:
            following = turned_down(records, task, handoff, UNAVAILABLE, now)
        elif policy == "retry" and handoff.resends < MAX_RESENDS:
            following = (resent(handoff, self.reason),)
        elif policy == "fail" or handoff.type == "broadcast":
            lost = rules.subtask_failed(records, task, handoff, self.reason, now)
            following = (*lost, *failed(records, task, handoff, self.reason, now))
        else:  # also a retry that is used up becomes an escalation
            following = escalated_further(records, task, handoff, self.reason, now)
        return Decision(drafts=(first, *following))


class FailHandoff(OnHandoff, frozen=True, kw_only=True):
    """End the handoff as failed; a person is asked to step in."""

    operation = "handoff_fail"
    reason: str

    def judge_one(self, records: Records, task: Task, handoff: Handoff, now: int, decide: Decide) -> Verdict:
        """What is over stays as it ended."""
        if not handoff.is_open:
            return closed_refusal(handoff)
        return Decision(drafts=failed(records, task, handoff, self.reason, now))


def failed(records: Records, task: Task, handoff: Handoff, reason: str, now: int) -> tuple[Draft, ...]:
    """The handoff has failed; of a broadcast only this member has, and the others may do."""
    over = _replace(handoff, state="failed", outcome="failed")
    notify = rules.orchestrator(records.policy, handoff)
    first = ended(task, handoff, "failed", now, reason=reason, notify=notify)
    if handoff.type == "broadcast":
        return (*first, *released(records, over))
    return (*first, *escalated_to(records, task, over, HUMAN, reason, now))


class Withdraw(OnHandoff, frozen=True, kw_only=True):
    """The sender takes the handoff back; nobody else is asked."""

    operation = "handoff_withdraw"
    reason: str

    def judge_one(self, records: Records, task: Task, handoff: Handoff, now: int, decide: Decide) -> Verdict:
        """Before an answer it counts as rejected, afterwards as failed."""
        problem = self.not_sender(records, handoff) or limits.text("reason", self.reason, limits.REASON, required=True)
        if problem:
            return problem
        if not handoff.is_open:
            return closed_refusal(handoff)
        reason = f"withdrawn: {self.reason}"
        over = _replace(handoff, state="failed", outcome="failed")
        if handoff.state in UNANSWERED:
            drafts: tuple[Draft, ...] = (rejected(task, handoff, reason, now, by=self.acting),)
        else:
            drafts = ended(task, handoff, "failed", now, reason=reason)
        return Decision(drafts=(*drafts, *released(records, over)), agent=self.acting)
