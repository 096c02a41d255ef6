"""What can be asked about the charter: create it, amend it, sign it. Must not know any surface."""

from __future__ import annotations

import msgspec

from aof.core.documents import speakers
from aof.core.documents.charter import changes as c
from aof.core.documents.charter import model, values
from aof.core.errors.base import AofError, Call
from aof.core.errors.charter import CharterExists, NoCharter
from aof.core.errors.org import NotAllowed
from aof.core.model.commands import Decide, NeedsOf, OnDocument
from aof.core.model.events import Draft
from aof.core.model.records import Decision, Needs, Records, Verdict
from aof.core.model.times import iso
from aof.core.org import rights
from aof.core.validation import limits
from aof.documents.charter.edit import apply
from aof.documents.charter.parse import parse
from aof.documents.charter.projection import AMENDED, CREATED, NAME, PATH, SIGNED
from aof.documents.projection import lock_of
from aof.documents.worklog import model as worklog
from aof.documents.worklog import wording
from aof.documents.worklog.commands import posted

_REASON, _DECISION = 512, 400


class OnCharter(OnDocument, frozen=True, kw_only=True):
    """A command about the charter."""

    def needs(self, known: Records, needs: NeedsOf) -> Needs:  # noqa: ARG002 - the rule's signature
        """Its lock and its text."""
        return Needs(names=frozenset({lock_of(NAME)}), documents=frozenset({PATH}))

    def decide(self, records: Records, now: int, decide: Decide) -> Verdict:  # noqa: ARG002 - the rule's signature
        """Who may speak comes first."""
        refused = speakers.refused(records.policy, self)
        return refused or self.settle(records, records.documents[PATH], now)

    def settle(self, records: Records, text: str, now: int) -> Verdict:
        """What it does to the charter as it is."""
        raise NotImplementedError


class CreateCharter(OnCharter, frozen=True, kw_only=True):
    """Begin a session."""

    charter: model.Charter

    def settle(self, records: Records, text: str, now: int) -> Verdict:  # noqa: ARG002 - the rule's signature
        """Once per session."""
        refused = speakers.not_maintainer(records.policy, self, "create the charter") or values.refused(self.charter)
        if refused is not None:
            return refused
        if text.strip():
            return CharterExists(
                f"there is a charter already, of session {parse(text).session_id[:80] or 'unknown'}",
                f"amend it, or move {PATH} away to begin a new session",
                Call("charter_amend", {"reason": "…"}),
            )
        payload = {"document": NAME, "charter": msgspec.to_builtins(self.charter)}
        return Decision(drafts=(Draft(type=CREATED, task_id="", payload=payload),))


class AmendCharter(OnCharter, frozen=True, kw_only=True):
    """Change what was agreed, by decision of the maintainer."""

    changes: tuple[c.Change, ...]
    reason: str

    def needs(self, known: Records, needs: NeedsOf) -> Needs:
        """The WORKLOG gets the decision in the same commit."""
        own = super().needs(known, needs)
        return msgspec.structs.replace(own, names=own.names | {lock_of(worklog.NAME)})

    def settle(self, records: Records, text: str, now: int) -> Verdict:
        """Only what changes something is recorded, with a decision in the index of the WORKLOG."""
        refused = (
            speakers.not_maintainer(records.policy, self, "amend the charter")
            or limits.line("reason", self.reason, _REASON, required=True)
            or _absent(text)
            or values.refused(parse(new := apply(text, self.changes)))
        )
        if refused is not None:
            return refused
        if new == text:
            return Decision()
        payload = {"document": NAME, "changes": c.packed(self.changes), "reason": self.reason}
        decided = wording.Said(
            subject=f"Charter amended: {c.described(self.changes)}"[:_DECISION], reasons=(self.reason,)
        )
        entry = wording.worded("decision.recorded", decided, self.acting, iso(now))
        if isinstance(entry, AofError):
            return entry
        row = posted("decision.recorded", entry, self.acting, decided.subject)
        return Decision(drafts=(Draft(type=AMENDED, task_id="", payload=payload), row), agent=self.acting)


class SignCharter(OnCharter, frozen=True, kw_only=True):
    """An agent accepts its role and lane."""

    status: str = model.HANDSHAKE_STATUSES[0]
    notes: str = ""

    def settle(self, records: Records, text: str, now: int) -> Verdict:
        """An agent signs for itself; signing again what holds changes nothing."""
        refused = (
            _absent(text)
            or limits.choice("status", self.status, model.HANDSHAKE_STATUSES)
            or limits.line("notes", self.notes, _REASON)
        )
        if refused is not None:
            return refused
        charter, agent = parse(text), self.acting
        if agent != self.actor and not speakers.is_maintainer(records.policy, self.actor):
            return rights.mismatch(self.actor, agent)
        seat = charter.participant(agent)
        if seat is None or seat.is_observer:
            return NotAllowed(
                f"{agent[:80]} has no seat in the roster to sign for",
                "let a maintainer add it to the roster",
                Call("charter_amend", {"participants": [f"{agent}:Developer:LANE"], "reason": "…"}),
            )
        before = charter.signature(agent)
        if before is not None and (before.status, before.notes) == (self.status, self.notes):
            return Decision()
        signature = model.Signature(
            agent=agent,
            signed=agent,
            role=seat.role,
            lane=seat.lane,
            status=self.status,
            notes=self.notes,
            timestamp=iso(now),
        )
        payload = {"document": NAME, "changes": c.packed((c.Sign(signature=signature),))}
        return Decision(drafts=(Draft(type=SIGNED, task_id="", payload=payload),))


def _absent(text: str) -> AofError | None:
    if text.strip():
        return None
    return NoCharter("there is no session charter", "let a maintainer create one", Call("charter_init", {}))
