"""What all messages have in common: they are recorded, also when they are refused, together with what they cause.

Must not know how a message is written or by which way it came.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from aof.core.model.commands import OwnRule
from aof.core.model.errors import AofError
from aof.core.model.events import Draft
from aof.core.model.records import Decision, Records, Verdict
from aof.core.model.task import Task
from aof.core.runs.lease import authorize, not_holder


class Message(OwnRule, frozen=True, kw_only=True):
    """A message about a task. `actor` is who sent it, `caller` who delivered it."""

    type: str
    to_agent: str
    sent_at: str
    caller: str

    if TYPE_CHECKING:  # what each kind of message defines

        def judge(self, records: Records, now: int) -> Verdict:
            """What the message causes, or why it is refused."""
            ...

    def beside(self, refusal: AofError) -> tuple[Draft, ...]:  # noqa: ARG002 - for those that say more
        """What else is recorded when the message is refused."""
        return ()

    def decide(self, records: Records, now: int) -> Verdict:
        """What was received and what it causes are one commit; so are a refusal and its reason."""
        verdict = self.judge(records, now)
        if isinstance(verdict, AofError):
            return Decision(drafts=(self._rejected(verdict), *self.beside(verdict)), refusal=verdict)
        return msgspec.structs.replace(verdict, drafts=(self._received(verdict), *verdict.drafts))

    def _received(self, verdict: Decision) -> Draft:
        payload: dict[str, Any] = {"type": self.type, "toAgent": self.to_agent, "sentAt": self.sent_at}
        if self.caller != self.actor:
            payload["calledBy"] = self.caller
        if verdict.instead is not None:
            payload["notApplied"] = {"reason": verdict.instead.code, "detail": verdict.instead.message}
        return self._remark("protocol.message.received", payload)

    def _rejected(self, refusal: AofError) -> Draft:
        payload: dict[str, Any] = {"reason": refusal.code, "type": self.type, "detail": refusal.message}
        if self.caller != self.actor:
            payload["calledBy"] = self.caller
        return self._remark("protocol.message.rejected", payload)

    def _remark(self, kind: str, payload: dict[str, Any]) -> Draft:
        return Draft(type=kind, task_id=self.task_id, run_id=self.run, payload=payload)


def is_held(task: Task) -> bool:
    """Whether somebody runs the task, or a hop of it."""
    return task.lease is not None or (task.gated and any("lease" in hop for hop in task.workflow["hops"]))


def sender(task: Task, message: Message) -> str | AofError:
    """The holder of the task's lease, if the message is from it; naming its run does not make one the holder."""
    if task.gated:
        from aof.core.workflows.message_reports import held_hop  # noqa: PLC0415 - few tasks have a workflow

        hop = held_hop(task, message)
        return hop if isinstance(hop, AofError) else str(hop.agent)
    holder = authorize(task, message)
    if isinstance(holder, str) and task.lease is not None and message.actor != holder:
        return not_holder(task, task.lease, message.actor)
    return holder
