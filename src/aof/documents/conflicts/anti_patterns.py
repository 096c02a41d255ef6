"""What the channels must not be used for: deciding and handing over in the mailbox only, and agreement nobody gave.

Only reads. Must not know where the texts come from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from aof.core.documents.finding import DocumentFinding
from aof.core.documents.mailbox.message import MailMessage
from aof.documents.worklog.envelope import LINK, envelopes, links
from aof.documents.worklog.model import Decided, Entry

_NAME: Final = r"[A-Za-z0-9][A-Za-z0-9._@+-]*"
_AGREED: Final = re.compile(
    rf"\b(?:in consent with|with the consent of|agreed (?:with|by)|in agreement with)[ \t]+"
    rf"({_NAME}(?:(?:,[ \t]*|[ \t]+and[ \t]+){_NAME})*)",
    re.IGNORECASE,
)
_REFERS: Final = re.compile(r"WL-[0-9a-f]{16}|WORKLOG|Decision Index", re.IGNORECASE)
_WORK: Final = ("handoff", "quick")


def only_in_mailbox(
    cards: Iterable[tuple[int, MailMessage]],
    closed: Iterable[MailMessage],
    entries: Sequence[Entry],
    decisions: Sequence[Decided],
) -> Iterator[DocumentFinding]:
    """Messages that decided or handed over something of which the WORKLOG knows nothing."""
    decided = {link for entry in entries if entry.form == "decision" for link in links(entry)}
    decided |= {link for row in decisions for link in LINK.findall(f"{row.decision} {row.section}")}
    there = list(cards)
    for line, message in (*there, *((1, message) for message in closed)):
        if _decides(message) and message.message_id not in decided:
            what = f"{message.message_id} was decided, and no decision of the WORKLOG names it"
            yield DocumentFinding(line, "decision_only_in_mailbox", f"{what}; record it: aof worklog decide … --link")
    for line, message in there:
        said = f"{message.subject}\n{message.body}\n" + "\n".join(message.fields.values())
        if message.type == "handoff-ready" and not handed_over(entries, message.sender, said):
            what = f"{message.message_id} says that work is ready, and no handoff of {message.sender} is in the WORKLOG"
            yield DocumentFinding(line, "handoff_only_in_mailbox", what)
        recorded = _decides(message) and message.message_id in decided
        if recorded and message.acks and not _REFERS.search(message.acks[-1].reason):
            what = f"the last answer to {message.message_id} does not refer to its decision in the WORKLOG"
            yield DocumentFinding(line, "decision_not_referred_to", what, "warning")


def _decides(message: MailMessage) -> bool:
    resolved = message.status == "closed" and message.disposition == "resolved"
    return message.type == "decision-required" and (message.status == "actioned" or resolved)


def handed_over(entries: Sequence[Entry], sender: str, text: str) -> bool:
    """Whether the text refers to a handoff that the sender has posted: to the entry itself, or to its task."""
    named = set(LINK.findall(text))
    own = [one for one, entry in zip(envelopes(entries), entries, strict=True) if _hands(entry, sender)]
    return any(one.event_id in named or named & {*one.links} for one in own)


def _hands(entry: Entry, sender: str) -> bool:
    return entry.form in _WORK and sender in (entry.actor, entry.owner)


def unproven_agreements(entries: Sequence[Entry], acks: Mapping[str, AbstractSet[str]]) -> Iterator[DocumentFinding]:
    """Decisions that claim somebody's agreement, of whom no entry, answer or decision tells so.

    `acks` are those who have answered each message.
    """
    known = list(zip(envelopes(entries), entries, strict=True))
    for one, entry in known:
        if entry.form != "decision":
            continue
        for name in _claimed(entry):
            others = [other for other, _ in known if other.actor == name and other.event_id != one.event_id]
            linked = {*one.links, one.event_id}
            told = any(linked & {*other.links, other.event_id} for other in others)
            if not told and not any(name in acks.get(link, ()) for link in one.links):
                what = f"'{entry.subject[:60]}' says that {name} agrees, and nothing of {name} says so"
                yield DocumentFinding(entry.line, "agreement_unproven", what)


def _claimed(entry: Entry) -> list[str]:
    found = [name for names in _AGREED.findall(entry.text) for name in re.split(r",[ \t]*|[ \t]+and[ \t]+", names)]
    return [name for name in dict.fromkeys(one.rstrip(".") for one in found) if name and name != entry.actor]
