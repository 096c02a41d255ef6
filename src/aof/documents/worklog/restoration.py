"""Entries that were changed or deleted by hand: which ones, and the file with the originals.

What somebody said through AOF is put back as soon as the file is read, and the changed text is kept beside it; what was
deleted comes back when somebody asks for it, by an event. Must not know who asks, nor where the file lies.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

from aof.core.model.events import Draft, Event
from aof.core.validation.visible import visible_line
from aof.documents import markdown
from aof.documents.edits import HandEdit, difference
from aof.documents.worklog.envelope import links
from aof.documents.worklog.model import NAME, Decided, Entry
from aof.documents.worklog.parser import parse, parse_entry
from aof.documents.worklog.renderer import when

ENTRY: Final = "document.worklog.entry"
RESTORED: Final = "document.worklog.restored"
_MOST: Final = 20  # entries that one event puts back
_ALIKE: Final = 0.6
_SHOWN: Final = 60
Said = Callable[[Event], str | None]  # the entry that an event leaves


def named(entry: Entry) -> str:
    """An entry in a few words."""
    name = f"{entry.actor}: {entry.subject}" if entry.actor else entry.text.split("\n", 1)[0]
    return f"'{visible_line(name)[:_SHOWN]}' of session {entry.session}"


def lost_entries(
    entries: Sequence[Entry], events: Iterable[Event], said: Said, *, nearby: bool = True
) -> Iterator[tuple[Event, Entry, Entry | None]]:
    """Each entry of the log that is not there as it was written, with what stands in its place; None: it is gone.

    What the log has is in nobody's place. A line without a date of its own stands in the session that was open, and
    that is a later day's where the clock was set back. Without `nearby`, only author and time tell an entry.
    """
    there = _Standing(entries)
    sessions = {entry.date: entry.session for entry in entries}
    wanted: list[tuple[Event, Entry]] = []
    for event in events:
        if (text := said(event)) is not None:
            day = event.timestamp[:10]
            wanted.append((event, parse_entry(text, day, sessions.get(day, 0))))
    places = [there.take(entry, entry.date) for _, entry in wanted]
    for number, (_, entry) in enumerate(wanted):
        if places[number] is None:
            places[number] = there.take(entry)
    for number, (event, entry) in enumerate(wanted):
        if places[number] is not None:
            continue
        before = next((place for place in reversed(places[:number]) if place is not None), -1)
        after = next((place for place in places[number + 1 :] if place is not None), len(entries))
        found = there.instead(entry, range(before + 1, after) if nearby else range(0))
        if found is None or event.type == ENTRY or not _retitled(found, entry):
            yield event, entry, found


class _Standing:
    """The entries of a file that no event has been found for yet."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._entries = entries
        self._left = dict.fromkeys(range(len(entries)))
        self._by_text: dict[str, list[int]] = {}
        for place, entry in enumerate(entries):
            self._by_text.setdefault(entry.text, []).append(place)

    def take(self, wanted: Entry, date: str = "") -> int | None:
        """The place of the same text, on that date or any later one."""
        for place in self._by_text.get(wanted.text, ()):
            found = self._entries[place].date
            if place in self._left and (found == date if date else found > wanted.date):
                del self._left[place]
                return place
        return None

    def instead(self, wanted: Entry, between: range) -> Entry | None:
        """What stands in the place of an entry: of the same author and time, or much alike between its neighbours."""
        own = next((place for place in self._left if _in_place_of(self._entries[place], wanted)), None)
        if own is None:
            near = [(_alikeness(self._entries[place], wanted), place) for place in between if place in self._left]
            alike, own = max(near, default=(0.0, None))
            own = own if alike >= _ALIKE else None
        if own is None:
            return None
        del self._left[own]
        return self._entries[own]


def _alikeness(entry: Entry, wanted: Entry) -> float:
    return difflib.SequenceMatcher(None, entry.text, wanted.text).ratio() if entry.form == wanted.form else 0.0


def _in_place_of(entry: Entry, wanted: Entry) -> bool:
    if wanted.form != "quick":
        return entry.anchor == wanted.anchor or (
            entry.form == wanted.form and bool(wanted.time) and entry.anchor[:3] == wanted.anchor[:3]
        )
    task = next((one for one in links(wanted) if one.startswith("TASK-")), None)
    return entry.anchor == wanted.anchor and (task is None or task in entry.text)


def _retitled(there: Entry, wanted: Entry) -> bool:
    """Whether two automatic lines differ in the title only, which may have changed since."""
    strip = re.compile(r' ".*"')
    return strip.sub("", there.text) == strip.sub("", wanted.text)


def decided_rows(
    rows: Sequence[Decided], events: Iterable[Event]
) -> list[tuple[tuple[str, str, str], Decided | None, bool]]:
    """What was decided, oldest first, with its row in the index, and whether that is as it was written; None: gone."""
    left = list(rows)
    found: list[tuple[tuple[str, str, str], Decided | None, bool]] = []
    for event in events:
        if event.type == ENTRY and "decision" in event.payload:
            cells = event.payload["decision"].strip(), event.payload["actor"], when(event.timestamp)
            row = next((one for one in left if (one.decision, one.owner, one.timestamp) == cells), None)
            found.append((cells, row, row is not None))
            if row is not None:
                left.remove(row)
    for number, (cells, row, _) in enumerate(found):
        if row is None:
            like = next((one for one in left if _is_like(one, cells)), None)
            found[number] = cells, like, False
            if like is not None:
                left.remove(like)
    return found


def _is_like(row: Decided, cells: tuple[str, str, str]) -> bool:
    """Whether one cell of a row was changed."""
    return sum(map(str.__eq__, (row.decision, row.owner, row.timestamp), cells)) == len(cells) - 1


def originals(text: str, events: Sequence[Event], said: Said, *, nearby: bool = True) -> tuple[str, list[HandEdit]]:
    """The file with what was said through AOF as it was said, and what people had made of it."""
    known, lines, end = parse(text), markdown.split(text), markdown.ending(text)
    kept: list[HandEdit] = []
    lost = lost_entries(known.entries, events, said, nearby=nearby)
    changed = [(event, wanted, there) for event, wanted, there in lost if there is not None and event.type == ENTRY]
    for row, like, as_written in decided_rows(known.decisions, events):
        if like is None or as_written:
            continue
        before = lines[like.number - 1].rstrip("\r\n")
        lines[like.number - 1] = markdown.row((*row, like.section)) + end
        what = f"a person changed the decision '{visible_line(row[0])[:_SHOWN]}' of {row[1]} at {row[2]}"
        kept.append(HandEdit(what, before))
    for event, wanted, there in sorted(changed, key=lambda one: -one[2].line):
        who = event.payload.get("actor") or wanted.actor
        what = f"{who} wrote {named(wanted)} (event {event.seq}), and a person changed it"
        kept.append(HandEdit(f"{what}: {difference(wanted.text, there.text)}", there.text))
        last = there.line - 1 + there.text.count("\n")
        ended = end if lines[last].endswith("\n") else ""
        lines[there.line - 1 : last + 1] = [markdown.with_ending(wanted.text, end) + ended]
    return "".join(lines), without_rows(kept[::-1])


def without_rows(kept: Sequence[HandEdit]) -> list[HandEdit]:
    """The edits without rows of decisions whose entry was changed in the same way."""
    entries = [edit.text for edit in kept if not edit.text.startswith("|")]
    return [
        edit
        for edit in kept
        if not edit.text.startswith("|") or not any(markdown.cells(edit.text)[0] in text for text in entries)
    ]


def draft(lost: Iterable[tuple[Event, Entry, Entry | None]], kept: Iterable[HandEdit] = ()) -> Draft | None:
    """The event that puts entries back and settles kept edits; None where there is nothing to do."""
    entries: list[dict[str, Any]] = [
        {"text": wanted.text, "date": wanted.date, "instead": there.text if there is not None else ""}
        for _, wanted, there in islice(lost, _MOST)
    ]
    settled = [{"what": edit.what, "text": edit.text} for edit in islice(kept, _MOST)]
    if not entries and not settled:
        return None
    payload = {"document": NAME, "entries": entries} | ({"edits": settled} if settled else {})
    return Draft(type=RESTORED, task_id="", payload=payload)


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
