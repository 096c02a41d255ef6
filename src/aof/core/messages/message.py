"""What all messages have in common: they are recorded, also when they are refused, together with what they cause.

Must not know how a message is encoded or how it arrived.
"""

from __future__ import annotations

from typing import Any

import msgspec

from aof.core.errors.base import AofError
from aof.core.model.commands import Decide, OwnRule
from aof.core.model.events import Draft
from aof.core.model.records import Decision, Records, Verdict


class Message(OwnRule, frozen=True, kw_only=True):
    """A message about a task. `actor` sent it, `caller` delivered it."""

    type: str
    to_agent: str
    sent_at: str
    caller: str

    def judge(self, records: Records, now: int, decide: Decide) -> Verdict:
        """What the message causes, or why it is refused."""
        raise NotImplementedError

    def beside(self, refusal: AofError) -> tuple[Draft, ...]:  # noqa: ARG002 - for those that say more
        """What else is recorded when the message is refused."""
        return ()

    def decide(self, records: Records, now: int, decide: Decide) -> Verdict:
        """What was received and what it causes are one commit; so are a refusal and its reason."""
        verdict = self.judge(records, now, decide)
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
