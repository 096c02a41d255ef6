"""Putting back entries that were changed or deleted by hand: what has to be said, and what it does to the file.

Must not know who asks for it, nor where the file lies.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any, Final

from aof.core.model.events import Draft, Event
from aof.documents import markdown
from aof.documents.worklog.model import NAME, Entry
from aof.documents.worklog.parser import parse

RESTORED: Final = "document.worklog.restored"
_MOST: Final = 20  # entries that one event puts back


def draft(lost: Iterable[tuple[Event, Entry, Entry | None]]) -> Draft | None:
    """The event that puts entries back; None where there is nothing to put back."""
    entries: list[dict[str, Any]] = [
        {"text": wanted.text, "date": wanted.date, "instead": there.text if there is not None else ""}
        for _, wanted, there in islice(lost, _MOST)
    ]
    if not entries:
        return None
    return Draft(type=RESTORED, task_id="", payload={"document": NAME, "entries": entries})


def restored(text: str, entries: Iterable[dict[str, Any]]) -> str:
    """The file with these entries as they were; one whose session is not there stays away."""
    end = markdown.ending(text)
    for one in entries:
        wanted, instead = (markdown.with_ending(one[key], end) for key in ("text", "instead"))
        if instead and instead in text:
            text = text.replace(instead, wanted, 1)
        elif not instead:
            text = _inserted(text, wanted, one["date"], end)
    return text


def _inserted(text: str, wanted: str, date: str, end: str) -> str:
    """An entry goes before the first later one of its session, else to the session's end."""
    lines = markdown.split(text)
    session = next((one for one in parse(text).sessions if one.date == date), None)
    own = next(iter(parse(f"## Session 1 — {date}\n\n{markdown.unix(wanted)}\n").entries), None)
    if session is None or own is None or any(entry.text == own.text for entry in session.entries):
        return text
    later = next((entry.line for entry in session.entries if entry.time > own.time), None)
    if later is not None:
        return "".join([*lines[: later - 1], wanted, end, end, *lines[later - 1 :]])
    before = "".join(lines[: session.end - 1]).rstrip("\r\n")
    after = "".join(lines[session.end - 1 :])
    return f"{before}{end}{end}{wanted}{end}" + (f"{end}{after}" if after else "")
