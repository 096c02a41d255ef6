"""An entry as JSON: the envelope of the communications protocol, derived from the Markdown and never read back.

Must not know how entries are written.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from aof._support.hashing import hexdigest
from aof.documents.worklog import automatic
from aof.documents.worklog.forms import noted
from aof.documents.worklog.model import UNKNOWN, Entry

LINK: Final = re.compile(
    r"https?://\S+"
    r"|\b(?:TASK-\d{4}-\d\d-\d\d-\d{3,}|MSG-\d{8}-\d{3,}|PROP-\d{3,}|REV-[A-Za-z0-9][\w.-]*\w|WL-[0-9a-f]{16})\b"
    r"|(?<![\w/.-])(?:[\w.-]+/)+[\w.-]*\.\w{1,8}\b"
)
_DONE: Final = re.compile(r"\b(?:done|complete[ds]?|finished|merged|fixed|shipped)\b", re.IGNORECASE)
_KEY: Final = re.compile(r"[^a-z0-9]+")
_DIGITS: Final = 16
_TYPES: Final[dict[str, str]] = {
    "counter": "objection.raised",
    "decision": "decision.recorded",
    "escalation": "escalation.requested",
}


class EntryEnvelope(msgspec.Struct, frozen=True, kw_only=True):
    """The eight keys, in their order."""

    event_id: str
    event_type: str
    session_id: str
    actor: str
    timestamp: str
    subject: str
    payload: dict[str, Any]
    links: list[str]


def envelopes(entries: Iterable[Entry], session_id: str = UNKNOWN) -> Iterator[EntryEnvelope]:
    """Every entry, oldest first, each with an ID that stays the same wherever the entry is moved to."""
    seen: Counter[str] = Counter()
    proposed: set[str] = set()
    for entry in entries:
        base = _base(entry)
        number, seen[base] = seen[base], seen[base] + 1
        yield EntryEnvelope(
            event_id=event_id(entry, number),
            event_type=event_type(entry, proposed),
            session_id=session_id,
            actor=entry.actor or UNKNOWN,
            timestamp=timestamp(entry),
            subject=entry.subject,
            payload=payload(entry),
            links=links(entry),
        )


def event_id(entry: Entry, number: int = 0) -> str:
    """From what the entry says and when; `number` tells entries apart that say the same."""
    whole = f"{_base(entry)}\n{number}".encode("utf-8", "surrogateescape")
    return f"WL-{hexdigest(whole)[:_DIGITS]}"


def _base(entry: Entry) -> str:
    return f"{entry.date}\n{entry.text}"


def event_type(entry: Entry, proposed: set[str] | None = None) -> str:
    """Which of the eight it is, by its form; `proposed` are the proposals seen so far."""
    if entry.form == "quick":
        return _quick(entry)
    if entry.form == "handoff":
        complete = str(entry.fields.get("Status", "")).strip().lower() == "complete"
        return "task.completed" if complete else "handoff.posted"
    if entry.form == "proposal":
        return _proposal(str(entry.fields["ID"]), proposed if proposed is not None else set())
    return _TYPES.get(entry.form, UNKNOWN)


def _proposal(name: str, proposed: set[str]) -> str:
    kind = "proposal.amended" if name in proposed else "proposal.created"
    proposed.add(name)
    return kind


def _quick(entry: Entry) -> str:
    what = entry.subject.lower()
    if what.startswith(automatic.CLAIMED):
        return "task.claimed"
    if what.startswith((automatic.HANDED, automatic.HANDED_BACK)):
        return "handoff.posted"
    given = entry.fields.get("nextOwner", entry.owner) != entry.owner
    return "handoff.posted" if given and not _DONE.search(what) else "task.completed"


def timestamp(entry: Entry) -> str:
    """ISO-8601, as exact as the entry is."""
    if not entry.date:
        return UNKNOWN
    return f"{entry.date}T{entry.time}Z" if entry.time else entry.date


def payload(entry: Entry) -> dict[str, Any]:
    """What the entry says, by its form; `text` is the rest of it, unshortened."""
    said: dict[str, Any] = {"form": entry.form, "session": entry.session}
    for key, value in entry.fields.items():
        name = _KEY.sub("_", key.lower()).strip("_") if key != "nextOwner" else "next_owner"
        said[name or "more"] = value
    if entry.form == "handoff" and "next_owner" in said:
        said["next_owner"], said["next_note"] = noted(str(said["next_owner"]))
    return said | {"text": entry.body}


def links(entry: Entry) -> list[str]:
    """What the entry refers to, in order of mention, each once; addresses are no records of ours."""
    found = (mark.group() for mark in LINK.finditer(entry.text))
    return list(dict.fromkeys(one for one in found if not one.startswith("http")))
