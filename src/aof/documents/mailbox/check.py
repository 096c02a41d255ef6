"""What is wrong with a mailbox, by line: its sections, cards, tables, and whether they agree. Changes nothing.

Must not know the log: what somebody changed behind its back is another question.
"""

from __future__ import annotations

from collections.abc import Iterator

from aof.core.documents.mailbox import inbox
from aof.core.documents.mailbox import payload as payloads
from aof.core.documents.mailbox.message import NONE, SCOPES, MailMessage, is_message_id
from aof.core.model.policy import Policy
from aof.documents.mailbox import payload as blocks
from aof.documents.mailbox.card import Card, CardProblem
from aof.documents.mailbox.mailbox import Mailbox, opened
from aof.documents.mailbox.outline import CLOSED, INBOX, QUEUE, SECTIONS, CardPlace, line_number
from aof.documents.mailbox.tables import HEADERS, RowPlace, TablePlace
from aof.documents.markdown import conflict_marks, scan, unclosed


def problems(text: str, policy: Policy, archived: frozenset[str] | None = None) -> list[CardProblem]:
    """Everything that is wrong, in the order of the lines. `archived` are the IDs in the archive, where it is known."""
    box = opened(text)
    cards = [(place, box.card(place)) for place in box.outline.cards]
    found = [
        *_of_text(box),
        *_of_sections(box),
        *_of_cards(box, cards),
        *_of_queue(box, cards),
        *_of_closed(box, cards, archived),
        *_of_inbox(box, [card.message for _, card in cards], policy),
    ]
    return sorted(found, key=lambda problem: problem.line)


def _of_text(box: Mailbox) -> Iterator[CardProblem]:
    lines = scan(box.text)
    for number in unclosed(lines):
        yield CardProblem(number, "unclosed", "a fenced block or a comment that is never closed", "warning")
    for number in conflict_marks(lines):
        yield CardProblem(number, "conflict_mark", "a mark that a failed merge has left")


def _of_sections(box: Mailbox) -> Iterator[CardProblem]:
    seen: set[str] = set()
    for section in box.outline.sections:
        line = line_number(box.text, section.start)
        if section.name in seen and section.name in SECTIONS:
            yield CardProblem(line, "duplicate_section", f"a second section {section.name!r}; the first one counts")
        seen.add(section.name)
    for name in SECTIONS:
        if name not in seen:
            yield CardProblem(1, "missing_section", f"there is no section '## {name}'")
    for name in HEADERS:
        named, table = box.outline.section(name), box.table(name)
        if named is None:
            continue
        start = line_number(box.text, named.start)
        if table is None:
            yield CardProblem(start, "missing_table", f"the section {name!r} has no table")
        elif table.header != HEADERS[name]:
            yield CardProblem(start, "table_header", f"the columns of {name!r} are {' | '.join(HEADERS[name])}")
        else:
            yield from _uneven(box, name, table)


def _uneven(box: Mailbox, name: str, table: TablePlace) -> Iterator[CardProblem]:
    for row in table.rows:
        if len(row.cells) != len(table.header) and name != CLOSED:
            detail = f"a row of {name!r} has {len(table.header)} cells, this one has {len(row.cells)}"
            yield CardProblem(line_number(box.text, row.start), "row_cells", detail)


def _of_cards(box: Mailbox, cards: list[tuple[CardPlace, Card]]) -> Iterator[CardProblem]:
    seen: set[str] = set()
    for place, card in cards:
        begin = line_number(box.text, place.start)
        message = card.message
        for problem in card.problems:
            yield CardProblem(begin + problem.line, problem.code, problem.detail, problem.severity)
        if message.message_id in seen:
            yield CardProblem(begin, "duplicate_id", f"{message.message_id} occurs twice among the active messages")
        seen.add(message.message_id)
        if message.status == "closed":
            detail = f"{message.message_id} is closed and still among the active messages"
            yield CardProblem(begin, "closed_card", detail)
        if message.status not in ("unread", "closed") and not message.acks and message.is_open:
            detail = f"{message.message_id} is {message.status}, and no Ack line says by whom"
            yield CardProblem(begin + (card.status_line or 0), "status_without_ack", detail)
        if message.review_scope not in SCOPES:
            detail = f"Review scope {message.review_scope[:40]!r} is none of {', '.join(SCOPES)}"
            yield CardProblem(begin, "unknown_scope", detail)
        yield from _of_payload(begin, message)


def _of_payload(begin: int, message: MailMessage) -> Iterator[CardProblem]:
    found = blocks.found_in(message.body)
    if found is None and not (message.review_scope in SCOPES and payloads.asks_for_review(message.review_scope)):
        return
    for defect in payloads.defects(found or payloads.ReviewPayload(scope=message.review_scope)):
        yield CardProblem(begin, "malformed_payload", f"{message.message_id}: {defect}")


def _of_queue(box: Mailbox, cards: list[tuple[CardPlace, Card]]) -> Iterator[CardProblem]:
    by_id = {card.message.message_id: card.message for _, card in cards}
    table = box.table(QUEUE)
    rows = table.rows if table is not None else ()
    listed: set[str] = set()
    for row in rows:
        name = row.first
        line = line_number(box.text, row.start)
        if name in listed:
            yield CardProblem(line, "duplicate_row", f"{name} is twice in the open queue")
        listed.add(name)
        if name not in by_id:
            yield CardProblem(line, "queue_unknown", f"the open queue has {name or 'a row'}, and no active card does")
        elif by_id[name].status == "closed":
            yield CardProblem(line, "queue_closed", f"the open queue has {name}, which is closed")
    for place, card in cards:
        message = card.message
        if message.is_open and message.message_id not in listed:
            detail = f"{message.message_id} is {message.status} and missing from the open queue"
            yield CardProblem(line_number(box.text, place.start), "queue_missing", detail)


def _of_closed(
    box: Mailbox, cards: list[tuple[CardPlace, Card]], archived: frozenset[str] | None
) -> Iterator[CardProblem]:
    active = {card.message.message_id for _, card in cards}
    table = box.table(CLOSED)
    seen: set[str] = set()
    for row in table.rows if table is not None else ():
        line = line_number(box.text, row.start)
        name = row.first
        if missing := _missing(row):
            yield CardProblem(
                line, "closed_cells", f"the closed row of {name or 'a message'} has no {', '.join(missing)}"
            )
        if not name:
            continue
        if not is_message_id(name):
            yield CardProblem(line, "malformed_id", f"{name[:80]!r} is no message ID such as MSG-20260221-001")
        if name in seen or name in active:
            where = "in the closed summary" if name in seen else "active and closed"
            yield CardProblem(line, "duplicate_id", f"{name} occurs twice: {where}")
        seen.add(name)
        if archived is not None and name not in archived:
            yield CardProblem(line, "not_archived", f"no archive has the full text of {name}")


def _missing(row: RowPlace) -> list[str]:
    given = dict(zip(HEADERS[CLOSED], row.cells, strict=False))
    return [name for name in HEADERS[CLOSED] if not given.get(name)]


def _of_inbox(box: Mailbox, messages: list[MailMessage], policy: Policy) -> Iterator[CardProblem]:
    table = box.table(INBOX)
    if table is None:
        return
    wanted = {row.agent: row for row in inbox.inbox(messages, policy, box.known_names)}
    there = {row.first: row for row in reversed(table.rows)}
    for agent, row in wanted.items():
        if agent not in there and row.unread:
            detail = f"{agent} has {row.unread} unread and no row in the snapshot"
            yield CardProblem(line_number(box.text, table.top), "inbox_missing", detail)
    seen: set[str] = set()
    for one in table.rows:
        line, agent = line_number(box.text, one.start), one.cells[0] if one.cells else ""
        if agent in seen:
            yield CardProblem(line, "duplicate_row", f"{agent} has two rows in the snapshot")
        seen.add(agent)
        expected = wanted.get(agent)
        if expected is None or len(one.cells) != len(HEADERS[INBOX]):
            continue
        yield from _compared(line, one.cells, expected)


def _compared(line: int, said: tuple[str, ...], wanted: inbox.InboxRow) -> Iterator[CardProblem]:
    if said[1] != str(wanted.unread):
        detail = f"the snapshot says {said[1]} unread for {wanted.agent}, and the cards say {wanted.unread}"
        yield CardProblem(line, "inbox_unread", detail)
    if said[2] != wanted.oldest_unread:
        detail = f"the snapshot says {said[2]} is the oldest unread of {wanted.agent}, and it is {wanted.oldest_unread}"
        yield CardProblem(line, "inbox_oldest", detail)
    if wanted.unread == 0 and said[3] != NONE:
        yield CardProblem(
            line, "inbox_due", f"{wanted.agent} has nothing unread, and an answer by {said[3]}", "warning"
        )
