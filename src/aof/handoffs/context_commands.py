"""Commands on the context that the agents of a workflow share: set variables, record artifacts and decisions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from aof.errors import AofError, BudgetTooSmall, Call, InvalidInput, InvalidTransition, LockRequired, NotAllowed
from aof.handoffs import context as shared
from aof.handoffs.access import lock_missing, subject_task, writer
from aof.handoffs.initiation import Initiate
from aof.handoffs.model import Handoff
from aof.handoffs.payload import HandoffProposal
from aof.kernel import limits
from aof.kernel.commands import Decide, Decision, Needs, NeedsOf, OwnRule, Records, Verdict
from aof.kernel.events import Draft
from aof.kernel.limits import bad_reference, is_uri, normalised
from aof.kernel.model import iso
from aof.org.model import Risk
from aof.org.routing import RISKS, may_take
from aof.runs.model import ARTIFACT_PATHS
from aof.support.hashing import hexdigest
from aof.tasks.model import Task
from aof.workflows.model import leases

_ESCALATION_REASON = "a decision above the agent's risk"
_replace = msgspec.structs.replace


class ContextCommand(OwnRule, frozen=True, kw_only=True):
    """A command on the context of the tree that a task belongs to."""

    def needs(self, known: Records, needs: NeedsOf) -> Needs:
        """The task and all above it; the topmost is written."""
        own = frozenset({self.task_id})
        chain = (self.task_id, *known.above.get(self.task_id, ()))
        return Needs(write=frozenset({chain[-1]}), read=frozenset(chain[:-1]), above=own)

    def decide(self, records: Records, now: int, decide: Decide) -> Verdict:
        """Find out who writes, then what."""
        task = subject_task(records, self)
        if isinstance(task, AofError):
            return task
        top = shared.top_of(records, task)
        if top.archived:
            return InvalidTransition(f"{top.id} is archived, and its context with it", "create a new task")
        by = writer(records, task, self)
        return by if isinstance(by, AofError) else self.written(records, task, top, by, now)

    def written(self, records: Records, task: Task, top: Task, by: shared.Writer, now: int) -> Verdict:
        """What the command records in the context of the topmost task."""
        raise NotImplementedError


class SetContext(ContextCommand, frozen=True, kw_only=True):
    """Write variables, from the version that the writer has read; or say which of two conflicting writes holds."""

    variables: dict[str, Any] = msgspec.field(default_factory=dict)
    scope: str | None = None
    base: int | None = None
    conflicts: str | None = None

    def written(self, records: Records, task: Task, top: Task, by: shared.Writer, now: int) -> Verdict:
        """All of the variables that may be written; the first refusal is answered, and every one recorded."""
        if len(self.variables) > limits.ITEMS or not (self.variables or self.conflicts):
            return InvalidInput("'variables' must name between 1 and 50 variables", "set fewer at once")
        rule: tuple[Draft, ...] = ()
        if self.conflicts is not None:
            if problem := limits.choice("conflicts", self.conflicts, shared.CONFLICT_RULES):
                return problem
            if not by.steers:
                return NotAllowed(
                    f"{by.agent} may not say which of two conflicting writes holds",
                    "leave it to the orchestrator, a lead or a maintainer",
                    agent=by.agent,
                )
            if self.conflicts != shared.context_of(top).rule:
                rule = (Draft(type="context.rule", task_id=top.id, payload={"rule": self.conflicts}),)
        writes = tuple(
            shared.Write(name=name, value=value, scope=self.scope, base=self.base)
            for name, value in self.variables.items()
        )
        result = shared.write(top, writes, writer=by, task_id=task.id)
        refusal = next(iter(result.refusals), None)
        return Decision(drafts=(*rule, *result.drafts), agent=by.agent, refusal=refusal)


class RecordArtifact(ContextCommand, frozen=True, kw_only=True):
    """Record something that was made in the workflow, or the new status of what is recorded already."""

    path: str
    type: str | None = None
    status: str | None = None
    description: str | None = None

    def written(self, records: Records, task: Task, top: Task, by: shared.Writer, now: int) -> Verdict:
        """A known artifact keeps all that identifies it; one that is superseded makes way for another."""
        context = shared.context_of(top)
        known = next((one for one in context.artifacts[::-1] if one.path == self.path), None)
        if known is not None and known.status == "superseded" and self.status != "superseded":
            known = None
        run = next((lease.run_id for lease in leases(task) if lease.agent == by.agent), None)
        if refusal := self._malformed(known) or self._lacks_lock(task, run):
            return refusal
        artifact = known or shared.RecordedArtifact(
            id=_artifact_id(f"{top.id}/{top.rev}/{self.path}"),
            type=self.type or "file",  # type: ignore[arg-type] # judged above
            path=self.path,
            created_by=by.agent,
            created_at=iso(now),
            description=(self.description or "").strip(),
            task_id=task.id,
            run_id=run,
        )
        artifact = _replace(artifact, status=self.status or artifact.status)
        if artifact == known:
            return Decision(agent=by.agent)
        others = tuple(one for one in context.artifacts if one.id != artifact.id)
        after = _replace(context, artifacts=(*others, artifact))
        payload = {"artifact": msgspec.to_builtins(artifact)}
        drafts = (Draft(type="context.artifact", task_id=top.id, payload=payload),)
        return shared.oversize(top, after) or Decision(drafts=drafts, agent=by.agent)

    def _malformed(self, known: shared.RecordedArtifact | None) -> AofError | None:
        problem = (
            bad_reference("path", self.path)
            or (limits.choice("type", self.type, shared.ARTIFACT_TYPES) if self.type is not None else None)
            or (limits.choice("status", self.status, shared.ARTIFACT_STATUSES) if self.status is not None else None)
            or limits.text("description", self.description, limits.PROGRESS)
        )
        if problem is not None or known is None:
            return problem
        if self.type in (None, known.type) and self.description in (None, known.description):
            return None
        return InvalidInput(
            f"'{self.path[:80]}' is recorded already, and keeps its type and description",
            "change its status only, or mark it as superseded and record it anew",
        )

    def _lacks_lock(self, task: Task, run: str | None) -> LockRequired | None:
        """To report a file of the project, a run must hold its lock; what lies in the task's own folder needs none."""
        if run is None or is_uri(self.path) or self.path.startswith(tuple(ARTIFACT_PATHS.values())):
            return None
        path = normalised("path", self.path)
        return None if isinstance(path, AofError) else lock_missing(task, run, path)


def _artifact_id(name: str) -> str:
    """The UUID (version 8) of a name: the same name has the same one, and no two artifacts of a tree share a name."""
    digits = hexdigest(name.encode())
    return f"{digits[:8]}-{digits[8:12]}-8{digits[13:16]}-a{digits[17:20]}-{digits[20:32]}"


def artifact_of(top: Task, path: str) -> shared.Artifact | None:
    """The artifact that was recorded last under a path."""
    return next((shared.reference(one) for one in shared.context_of(top).artifacts[::-1] if one.path == path), None)


class RecordDecision(ContextCommand, frozen=True, kw_only=True):
    """Record a decision that an agent of the workflow has made. Of a risk above its own it is escalated instead."""

    description: str
    risk: str | None = None

    def needs(self, known: Records, needs: NeedsOf) -> Needs:
        """What every context command needs; with a risk, what an escalation needs as well."""
        base, risk = super().needs(known, needs), self._risk()
        if risk is None:
            return base
        more = self._escalation(self.acting, risk).needs(known, needs)
        fields = {name: getattr(base, name) | getattr(more, name) for name in Needs.__struct_fields__}
        return Needs(**fields | {"read": fields["read"] - fields["write"]})

    def written(self, records: Records, task: Task, top: Task, by: shared.Writer, now: int) -> Verdict:
        """One more decision, under the next number; or the escalation that it becomes."""
        if problem := limits.text("description", self.description, limits.PROGRESS, required=True):
            return problem
        if self.risk is not None and (problem := limits.choice("risk", self.risk, RISKS)):
            return problem
        if (risk := self._risk()) is not None:
            refusal = may_take(records.policy.org, by.agent, level=None, risk=risk)
            if refusal is not None and (verdict := self._escalated(records, task, by, risk, refusal, now)) is not None:
                return verdict
        context = shared.context_of(top)
        if decision_made(context, self.description, by.agent) is not None:
            return Decision(agent=by.agent)
        made = shared.RecordedDecision(
            decision_id=f"D-{len(context.decisions) + 1}",
            description=self.description.strip(),
            made_by=by.agent,
            timestamp=iso(now),
            task_id=task.id,
        )
        after = _replace(context, decisions=(*context.decisions, made))
        payload = msgspec.to_builtins(made)
        del payload["timestamp"]  # the event says when
        drafts = (Draft(type="context.decided", task_id=top.id, payload=payload),)
        return shared.oversize(top, after) or Decision(drafts=drafts, agent=by.agent)

    def _risk(self) -> Risk | None:
        return next((risk for risk in RISKS if risk == self.risk), None)

    def _escalated(  # noqa: PLR0917 - who decides what
        self, records: Records, task: Task, by: shared.Writer, risk: Risk, refusal: BudgetTooSmall, now: int
    ) -> Verdict | None:
        """The escalation of this very decision: begun, under way or turned down; None once it is approved."""
        last = escalation_of(records.handoffs[task.id], self.description, by.agent, risk)
        if last is None:
            return self._escalation(by.agent, risk).decide(records, now, _decides_nothing)
        if last.is_open:
            return Decision(agent=by.agent)
        if last.outcome == "success":
            return None
        return BudgetTooSmall(
            f"{refusal.message}; the escalation {last.id} did not approve it",
            "decide something else, or leave it to an agent with a larger budget",
            Call("handoff_show", {"handoff_id": last.id}),
            handoff_id=last.id,
        )

    def _escalation(self, agent: str, risk: Risk) -> Initiate:
        same = {name: getattr(self, name) for name in Initiate.__struct_fields__ if hasattr(self, name)}
        proposal = HandoffProposal(
            type="escalation",
            reason=_ESCALATION_REASON,
            rationale=self.description.strip(),
            risk=risk,
            trigger="escalation",
        )
        return Initiate(**same | {"agent": agent}, proposal=proposal)


def decision_made(context: shared.SharedContext, description: str, agent: str) -> shared.RecordedDecision | None:
    """The decision that the agent has made in these words: said again, it is still the same one."""
    same = (agent, description.strip())
    return next((one for one in context.decisions if (one.made_by, one.description) == same), None)


def escalation_of(handoffs: Iterable[Handoff], description: str, agent: str, risk: str | None) -> Handoff | None:
    """The last escalation of this very decision; where it went further up, the record that it has come to."""
    found = [
        one
        for one in handoffs
        if (one.type, one.from_agent, one.forwarded_to) == ("escalation", agent, None)
        and (one.audit.decision_rationale, one.audit.risk_level) == (description.strip(), risk)
    ]
    return found[-1] if found else None


def _decides_nothing(_records: Records, _command: object, _now: int) -> Verdict:
    """An escalation marks no part of the task as complete, and so carries out no other command."""
    raise NotImplementedError
