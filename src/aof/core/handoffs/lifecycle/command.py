"""What all commands about handoffs have in common: they act on one task, and a refusal is recorded with its code.

Must not know what any of them does.
"""

from __future__ import annotations

from typing import Any, ClassVar

from aof.core.errors.base import AofError, Call
from aof.core.errors.handoffs import NotAddressee
from aof.core.errors.messages import HandoffNotFound
from aof.core.errors.tasks import InvalidTransition
from aof.core.model.commands import Decide, NeedsOf, OwnRule
from aof.core.model.events import Draft
from aof.core.model.handoffs.record import Handoff
from aof.core.model.lifecycle import FINISHED
from aof.core.model.org_chart import HUMAN
from aof.core.model.records import Decision, Needs, Records, Verdict
from aof.core.model.task import Task
from aof.core.org import capacity
from aof.core.org.rights import is_person
from aof.core.tasks import graph

_TOLD = 500


class HandoffCommand(OwnRule, frozen=True, kw_only=True):
    """A command about handoffs of one task."""

    operation: ClassVar[str] = ""

    def judge(self, records: Records, task: Task, now: int, decide: Decide) -> Verdict:
        """What the command does, or why it is refused."""
        raise NotImplementedError

    def needs(self, known: Records, needs: NeedsOf) -> Needs:  # noqa: ARG002 - the contract's form
        """The task, its handoffs, the tasks above it, of which the topmost keeps the context, and everybody's load.

        The load decides whom to ask first. It is read without the locks of the agents, for it is looked at again under
        the lock when an agent accepts.
        """
        own = frozenset({self.task_id})
        chain = (self.task_id, *known.above.get(self.task_id, ()))
        waiting = frozenset(
            one.waiting_task_id for one in known.handoffs.get(self.task_id, ()) if one.waiting_task_id is not None
        )
        write = own | frozenset(chain[1:2]) | frozenset(chain[-1:]) | waiting
        return Needs(write=write, read=frozenset(chain) - write, handoffs=own, above=own, agents=_limited(known))

    def decide(self, records: Records, now: int, decide: Decide) -> Verdict:
        """A refusal is an event too: whoever asks later finds out who tried what."""
        task = records.look(self.task_id)
        verdict = graph.missing(self.task_id) if task is None else self.judge(records, task, now, decide)
        return self.refused(verdict) if isinstance(verdict, AofError) else verdict

    def refused(self, refusal: AofError, *drafts: Draft) -> Decision:
        """The refusal, and what is recorded of it."""
        about = {"handoffId": name} if (name := getattr(self, "handoff_id", None)) is not None else {}
        remark = refused(self.operation, self.task_id, self.acting, refusal, run=self.run, **about)
        return Decision(drafts=(*drafts, remark), refusal=refusal)


def refused(operation: str, task_id: str, agent: str, refusal: AofError, run: str | None = None, **about: str) -> Draft:
    """What is recorded of a call that was refused."""
    payload: dict[str, Any] = {"operation": operation, "agent": agent, "code": refusal.code}
    payload |= {"detail": refusal.message[:_TOLD], **about}
    return Draft(type="handoff.refused", task_id=task_id, run_id=run, payload=payload)


class OnHandoff(HandoffCommand, frozen=True, kw_only=True):
    """A command about one handoff that there is."""

    handoff_id: str

    def judge(self, records: Records, task: Task, now: int, decide: Decide) -> Verdict:
        """Find the handoff, then ask the rule."""
        handoff = next((one for one in records.handoffs[task.id] if one.id == self.handoff_id), None)
        if handoff is None:
            return not_found(self.handoff_id)
        return self.judge_one(records, task, handoff, now, decide)

    def judge_one(self, records: Records, task: Task, handoff: Handoff, now: int, decide: Decide) -> Verdict:
        """What the command does to the handoff."""
        raise NotImplementedError

    def not_receiver(self, records: Records, handoff: Handoff) -> AofError | None:
        """Why the acting agent may not speak for the receiver; maintainers may, and any person for `human`."""
        policy, agent = records.policy, self.acting
        known = agent not in policy.only_said  # else the name is a maintainer's, and nobody has proven it
        if agent in policy.maintainers or (known and agent == handoff.to_agent):
            return None
        if handoff.to_agent == HUMAN and known and _is_human(records, agent):
            return None
        whom = "a person" if handoff.to_agent == HUMAN else handoff.to_agent
        return NotAddressee(
            f"handoff {handoff.id} is addressed to {whom}, not to {agent}",
            f"only {whom} may answer it, or a maintainer",
            Call("handoff_show", {"handoff_id": handoff.id}),
            agent=agent,
            addressee=handoff.to_agent,
        )

    def not_sender(self, records: Records, handoff: Handoff) -> AofError | None:
        """Why the acting agent may not speak for the sender."""
        policy, agent = records.policy, self.acting
        if agent in policy.maintainers or (agent == handoff.from_agent and agent not in policy.only_said):
            return None
        return NotAddressee(
            f"handoff {handoff.id} is from {handoff.from_agent}, not from {self.acting}",
            f"only {handoff.from_agent} may do that, or a maintainer",
            Call("handoff_show", {"handoff_id": handoff.id}),
            agent=self.acting,
        )

    def speaker(self, handoff: Handoff) -> str | None:
        """The one that answers, where that is another than the receiver."""
        return self.acting if self.acting != handoff.to_agent else None


def over(task: Task) -> InvalidTransition | None:
    """The refusal of a handoff of what is finished."""
    if task.status not in FINISHED:
        return None
    return InvalidTransition(
        f"{task.id} is {task.status}; only an unfinished task can be handed to somebody",
        "retry it first, or create another one",
        Call("retry", {"task_id": task.id, "reason": "…"}),
        status=task.status,
    )


def not_found(handoff_id: str) -> HandoffNotFound:
    """The refusal of an ID that no handoff has."""
    return HandoffNotFound(f"there is no handoff {handoff_id[:80]!r}", "list what there is", Call("handoff_list", {}))


def _is_human(records: Records, name: str) -> bool:
    chart, maintainers = records.policy.org, records.policy.maintainers
    if chart is None:
        return not records.policy.has_maintainers or name in maintainers
    listed = chart.by_id.get(name)
    return is_person(chart, name, maintainers) or (listed is not None and listed.runner.kind == "human")


def _limited(known: Records) -> frozenset[str]:
    """The agents whose load is counted somewhere."""
    chart = known.policy.org
    if chart is None:
        return frozenset()
    return frozenset().union(*(capacity.counted(chart, agent) for agent in chart.agents))


def load_of(records: Records) -> dict[str, int]:
    """How much each agent holds whose load is counted."""
    return {agent: len(held) for agent, held in records.held.items()}
