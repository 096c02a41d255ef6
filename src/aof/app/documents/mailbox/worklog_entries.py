"""What an escalation of mail leaves in the WORKLOG: one entry, in the same commit.

Must not know when mail is escalated.
"""

from __future__ import annotations

from aof.core.documents.mailbox import facts
from aof.core.model.events import Draft
from aof.core.model.ids import OURSELVES
from aof.core.model.times import iso
from aof.documents.escaping import inline
from aof.documents.worklog import renderer
from aof.documents.worklog.commands import posted


def with_entries(drafts: tuple[Draft, ...], now: int) -> tuple[Draft, ...]:
    """The drafts, and an entry for each escalation among them."""
    entries = [_entry(draft, now) for draft in drafts if draft.type == facts.ESCALATED]
    return (*drafts, *entries)


def _entry(draft: Draft, now: int) -> Draft:
    subject = f"{draft.payload['messageId']} for {draft.payload['agent']}"
    text = renderer.entry(OURSELVES, subject, iso(now), inline(draft.payload["text"]))
    return posted("escalation.requested", text, OURSELVES, subject)
