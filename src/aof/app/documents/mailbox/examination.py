"""What is wrong with the mailbox beyond its own text: what the log knows better, what the archive lacks, what waits.

A card or a line that nobody sent through AOF is a person's word and only warned of, where callers are not bound; a
card that says something else than what was sent is wrong anywhere. Changes nothing. Must not know any surface.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from aof.app.documents import reading
from aof.core.documents.mailbox import facts, receivers
from aof.core.documents.mailbox.message import MailMessage
from aof.documents import edits
from aof.documents.conflicts import anti_patterns
from aof.documents.mailbox import check, json_view
from aof.documents.mailbox.card import CardProblem
from aof.documents.mailbox.mailbox import Mailbox, opened
from aof.documents.mailbox.outline import cards_of, line_number
from aof.documents.worklog import model as worklog
from aof.documents.worklog.parser import parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.app.commands.context import Environment
    from aof.core.documents.mailbox.message import Ack
    from aof.core.model.policy import Policy

JSON = "MAILBOX.json"
UNREAD, UNCLOSED = "turn_unread", "turn_unclosed"
_FIXED = ("sender", "receiver", "date", "type", "priority", "subject", "body")


def problems(here: Environment, policy: Policy, text: str | None) -> list[CardProblem]:
    """Everything that is wrong with the mailbox of the data directory, or with a text."""
    if text is not None:
        return check.problems(text, policy)
    texts = reading.foreseen(here, facts.DOCUMENT, facts.PATH, facts.ARCHIVE, JSON, facts.EDITS)
    own, archive, kept = (texts[path] for path in (facts.PATH, facts.ARCHIVE, JSON))
    if not own:
        return []
    ids = frozenset(place.title for place in cards_of(archive))
    found = check.problems(own, policy, ids)
    found += _against_log(opened(own), _Told(here), bound=policy.binds)
    found += _stale(own, kept)
    found += _by_hand(texts[facts.EDITS])
    found += _beside_worklog(here, Mailbox(own))
    return sorted(found, key=lambda problem: problem.line)


def _beside_worklog(here: Environment, box: Mailbox) -> Iterator[CardProblem]:
    """Decisions and handoffs of which the WORKLOG knows nothing."""
    found = reading.texts(here, worklog.NAME, worklog.PATH, worklog.ARCHIVE)
    known, old = parse(found[worklog.PATH]), parse(found[worklog.ARCHIVE])
    cards = [(line_number(box.text, place.start), box.card(place).message) for place in box.outline.cards]
    there = {message.message_id for _, message in cards}
    closed = [message for message in _closed(here) if message.message_id not in there]
    entries, rows = (*old.entries, *known.entries), (*old.decisions, *known.decisions)
    for one in anti_patterns.only_in_mailbox(cards, closed, entries, rows):
        yield CardProblem(one.line, one.code, one.detail, one.severity)


def _closed(here: Environment) -> Iterator[MailMessage]:
    """The messages that the log says were closed, each with its disposition."""
    sent: dict[str, MailMessage] = {}
    for event in here.store.told((facts.SENT, facts.CLOSED)):
        if event.type == facts.SENT:
            message = facts.message_in(event.payload)
            sent[message.message_id] = message
        elif event.payload["messageId"] in sent:
            disposition = event.payload.get("disposition")
            yield msgspec.structs.replace(sent[event.payload["messageId"]], status="closed", disposition=disposition)


class _Told:
    """What the log tells of messages."""

    def __init__(self, here: Environment) -> None:
        self.sent: dict[str, MailMessage] = {}
        self.acks: dict[str, list[Ack]] = {}
        self.status: dict[str, str] = {}
        for event in here.store.told((facts.TYPES,)):
            if event.type == facts.SENT:
                message = facts.message_in(event.payload)
                self.sent[message.message_id] = message
            elif event.type in (facts.CHANGED, facts.CLOSED):
                change, ack = facts.change_in(event.payload)
                self.acks.setdefault(event.payload["messageId"], []).append(ack)
                self.status[event.payload["messageId"]] = change.status


def _against_log(box: Mailbox, told: _Told, *, bound: bool) -> Iterator[CardProblem]:
    seen = set()
    for place in box.outline.cards:
        card = box.card(place)
        message, begin = card.message, line_number(box.text, place.start)
        seen.add(message.message_id)
        original = told.sent.get(message.message_id)
        if original is None:
            yield CardProblem(begin, "not_in_log", f"{message.message_id} was not sent through AOF", "warning")
        else:
            yield from _changed_text(begin, original, message)
        yield from _unknown_acks(begin, message, told.acks.get(message.message_id, []), bound=bound)
        known = told.status.get(message.message_id, "unread" if original is not None else None)
        if (
            known is not None
            and known != message.status
            and message.is_open
            and len(message.acks) <= len(told.acks.get(message.message_id, ()))
        ):
            detail = (
                f"{message.message_id} is {message.status} in the file, and {known} in the log; no Ack line says why"
            )
            yield CardProblem(begin + (card.status_line or 0), "status_without_ack", detail)
    gone = [one for one in told.sent if one not in seen and told.status.get(one) != "closed"]
    for one in gone:
        yield CardProblem(1, "deleted_card", f"{one} was sent and never closed, and its card is gone")


def _changed_text(begin: int, original: MailMessage, message: MailMessage) -> Iterator[CardProblem]:
    for name in _FIXED:
        if getattr(original, name) != getattr(message, name):
            yield CardProblem(begin, "changed_text", f"the {name} of {message.message_id} is not what was sent")


def _unknown_acks(begin: int, message: MailMessage, known: list[Ack], *, bound: bool) -> Iterator[CardProblem]:
    for ack in message.acks:
        if ack in known:
            continue
        foreign = ack.actor not in (message.receiver, message.sender) and not receivers.is_group(message.receiver)
        detail = f"the log has no such answer to {message.message_id}: {ack.actor} — {ack.date} — {ack.reason}"
        yield CardProblem(begin, "unproven_ack", detail, "error" if bound or foreign else "warning")
    for ack in known:
        if ack not in message.acks:
            detail = f"an answer to {message.message_id} is gone: {ack.actor} — {ack.date} — {ack.reason}"
            yield CardProblem(begin, "deleted_ack", detail)


def _by_hand(text: str) -> Iterator[CardProblem]:
    """What people have changed and nobody has settled."""
    for line, edit in edits.kept(text):
        how = f"the original stands in {facts.PATH}; say it anew if it is meant, then delete the section"
        yield CardProblem(1, "changed_text", f"{edit.what}, see {facts.EDITS}:{line}; {how}")


def _stale(own: str, kept: str) -> Iterator[CardProblem]:
    """A projection that somebody keeps beside the mailbox, and that says something else."""
    if not kept:
        return
    try:
        said = msgspec.json.decode(kept)
    except msgspec.DecodeError:
        said = None
    now = json_view.projected(opened(own))
    if not isinstance(said, dict) or any(said.get(name) != value for name, value in now.items()):
        yield CardProblem(
            1, "stale_projection", f"{JSON} does not say what {facts.PATH} says; export it again", "warning"
        )


def left_over(box: Mailbox, agent: str, policy: Policy) -> list[CardProblem]:
    """What an agent leaves behind at the end of its turn: unread mail, and what it has to close."""
    everybody = (*receivers.roster(policy, box.known_names), agent)
    found = []
    for place, head in zip(box.outline.cards, box.heads, strict=True):
        line = line_number(box.text, place.start)
        if receivers.is_unread_by(head, agent, policy, everybody):
            found.append(CardProblem(line, UNREAD, f"{head.message_id} is unread by {agent}"))
        elif head.status == "actioned" and _owns(head, agent, policy):
            found.append(CardProblem(line, UNCLOSED, f"{head.message_id} is actioned, and {agent} has to close it"))
    return found


def _owns(message: MailMessage, agent: str, policy: Policy) -> bool:
    """Whether the agent is the one that is reminded to close the message."""
    owner = message.closure_owner
    return owner == agent or (owner == receivers.MAINTAINER and agent in policy.maintainers)
