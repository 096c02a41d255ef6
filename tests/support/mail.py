"""Messages, cards and mailboxes for tests, and a second opinion on whether a mailbox is in order.

`objections` repeats, in its own words, the checks that the protocol's own validator makes: it splits lines and tables
as naively as that one does, so that what AOF writes is in order for readers that know no fences and no escapes.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from aof.documents.mail_rules import MailMessage
from aof.kernel.model import Policy

POLICY = Policy(maintainers=("maya",))
DAY = "2026-02-21"
AT = "2026-02-21T09:00:00.000Z"


def message(number: int = 1, **changes: Any) -> MailMessage:
    """A request from ada to bob."""
    given: dict[str, Any] = {
        "message_id": f"MSG-20260221-{number:03d}",
        "sender": "ada",
        "receiver": "bob",
        "date": AT,
        "type": "request",
        "priority": "P1",
        "status": "unread",
        "subject": f"Question {number}",
        "closure_owner": "ada",
        "review_scope": "none",
        "response_needed_by": "next session",
        "body": "Please look at this.",
    }
    return MailMessage(**(given | changes))


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]


def _section(lines: list[str], title: str) -> list[str]:
    bare = [line.strip() for line in lines]
    if f"## {title}" not in bare:
        return []
    rest = bare[bare.index(f"## {title}") + 1 :]
    return rest[: next((place for place, line in enumerate(rest) if line.startswith("## ")), len(rest))]


def _rows(lines: list[str], title: str) -> list[list[str]]:
    table = [line for line in _section(lines, title) if line.startswith("|")]
    return [row for row in map(_cells, table[2:]) if len(row) == len(_cells(table[0]))] if table else []


def cards(text: str) -> list[dict[str, str]]:
    """Each active card as a naive reader sees it: its ID, and the last bold line of each name."""
    found: list[dict[str, str]] = []
    for line in _section(text.replace("\r\n", "\n").split("\n"), "Active Messages (Newest First)"):
        if line.startswith("### MSG-"):
            found.append({"id": line[4:].strip()})
        elif found and line.startswith("**") and ":** " in line:
            name, _, value = line[2:].partition(":** ")
            found[-1][name] = value.strip()
    return found


def objections(text: str) -> list[str]:
    """What the protocol's own rules have against a mailbox."""
    lines = text.replace("\r\n", "\n").split("\n")
    active = cards(text)
    ids = [card["id"] for card in active]
    queue = [row[0] for row in _rows(lines, "Open Queue (Newest First)")]
    closed = [row[0] for row in _rows(lines, "Closed Summary")]
    wrong = [f"{one} twice" for one, count in Counter(ids).items() if count > 1]
    wrong += [f"{one} closed twice" for one, count in Counter(closed).items() if count > 1]
    wrong += [f"{one} in the queue only" for one in set(queue) - set(ids)]
    wrong += [f"{one} not in the queue" for one in set(ids) - set(queue)]
    wrong += [f"{card['id']} is {card.get('Status')}" for card in active if card.get("Status") == "closed"]
    wrong += [f"empty cell in {row}" for row in _rows(lines, "Closed Summary") if not all(row)]
    waiting: dict[str, list[str]] = {}
    for card in active:
        if card.get("Status") == "unread":
            waiting.setdefault(card.get("From", "").rpartition(" -> ")[2], []).append(card["id"])
    for agent, unread, oldest, due in _rows(lines, "Inbox Snapshot"):
        own = waiting.get(agent, [])
        if (int(unread), oldest) != (len(own), own[-1] if own else "none"):
            wrong.append(f"{agent}: {unread} {oldest}, and the cards say {own}")
        if not own and due != "none":
            wrong.append(f"{agent}: an answer by {due}, and nothing unread")
    return wrong
