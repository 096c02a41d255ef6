"""How WORKLOG.md follows from the log. Must not know who may write what, nor where files lie."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, Final

import msgspec

from aof._support import nesting
from aof.core.model.events import DOCUMENT, Event
from aof.core.model.policy import Policy
from aof.documents import edits, markdown
from aof.documents.projection import Extension, Facts, Files, PastEvents, Rewritten
from aof.documents.worklog import automatic, renderer
from aof.documents.worklog.model import ARCHIVE, EDITS, IDLE, NAME, PATH, Entry, Worklog
from aof.documents.worklog.parser import parse, parse_entry
from aof.documents.worklog.restoration import ENTRY, RESTORED, originals, restored

STATUS, COMPACTED = "document.worklog.status", "document.worklog.compacted"
_LATEST: Final = 100  # events whose entries may have been written in part
_OWN: Final = f"{DOCUMENT}worklog."


class WorklogFile:
    """Keeps the contract of `documents.projection.Projection`."""

    name, path = NAME, PATH

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._automatic = policy.worklog.automatic

    @property
    def types(self) -> tuple[str, ...]:
        """What is said in the WORKLOG, and what entries are written about by themselves."""
        return (_OWN, *automatic.TYPES) if self._automatic else (_OWN,)

    def extend(self, note: str, fresh: Sequence[Event], facts: Facts) -> Extension | None:
        """Entries go to the end; pinned lines, index and compaction need the whole text."""
        known = _Note.read(note)
        if known is None or any(_needs_whole(event) for event in fresh):
            return None
        appender = renderer.Appender(known.end, known.session, known.date)
        for event in fresh:
            if (said := entry_text(event, facts)) is not None:
                appender.add(said, event.timestamp[:10])
        return Extension(appender.text(), _Note.of(appender).text())

    def rewrite(self, files: Files, fresh: Sequence[Event], past: PastEvents | None, facts: Facts) -> Rewritten:
        """The whole file, with what is missing at its end written first."""
        before, wanted, known = files.text(PATH), list(fresh), True
        said = EntryTexts(facts)
        kept: dict[str, str] = {}
        if past is not None:
            events = chain(reversed(fresh), past.events)
            latest = list(islice(events, _LATEST))
            before = _without_part(before, latest, said)
            events = chain(latest, events)
            read = _since(before, events)
            restored_text, by_hand = originals(before, read[::-1], said.of)
            if by_hand:  # what the log has from any time is nobody's edit
                read += events
                restored_text, by_hand = originals(before, read[::-1], said.of)
            before = restored_text
            wanted = _missing(before, files, chain(read, events), said)
            known = past.applied
            if by_hand:  # before the file itself: nothing that a person wrote is ever nowhere
                kept = {EDITS: edits.with_kept(files.text(EDITS), PATH, by_hand)}
        if not before and not any(_writes(event, said) for event in wanted):
            return Rewritten({})
        change = _Change(self._policy, before, files, facts, said)
        first = fresh[0].seq if fresh else 0
        for event in wanted:
            change.apply(event, pinned=past is None or not known or event.seq >= first > 0)
        done = change.done()
        return Rewritten({**kept, **done.texts}, done.note)


class _Note(msgspec.Struct, frozen=True):
    """What is known of the end of the file: its line ending, and the session that entries go to."""

    end: str
    session: int
    date: str

    @staticmethod
    def read(text: str) -> _Note | None:
        try:
            return nesting.decode(text, _Note) if text else None
        except msgspec.DecodeError:
            return None

    @staticmethod
    def of(appender: renderer.Appender) -> _Note:
        return _Note(appender.end, appender.session, appender.date)

    def text(self) -> str:
        return msgspec.json.encode(self).decode()


def entry_text(event: Event, facts: Facts) -> str | None:
    """The entry that an event leaves, without a line feed at its end."""
    return event.payload["text"] if event.type == ENTRY else automatic.line(event, facts)


class EntryTexts:
    """The entries of events, each made once: the title that one shows is read from the task's file."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._known: dict[int, str | None] = {}

    def of(self, event: Event) -> str | None:
        """The entry that an event leaves; None for most of them."""
        if event.seq not in self._known:
            self._known[event.seq] = entry_text(event, self._facts)
        return self._known[event.seq]


def _needs_whole(event: Event) -> bool:
    changes = event.type in (STATUS, COMPACTED, RESTORED) or (event.type == ENTRY and "decision" in event.payload)
    return changes or automatic.agent_of(event) is not None


def _writes(event: Event, texts: EntryTexts) -> bool:
    return event.type.startswith(_OWN) or texts.of(event) is not None


class _Change:
    """A file that is being changed: lines in its middle at once, entries at its end together."""

    def __init__(self, policy: Policy, text: str, files: Files, facts: Facts, entries: EntryTexts) -> None:
        self._policy = policy
        self._facts = facts
        self._entries = entries
        self._read = files.text
        self._texts: dict[str, str] = {}
        self._text = text or renderer.new(policy.project)
        self._touched: dict[str, None] = {}
        known = parse(self._text)
        self._lines = {line.key: line.text for line in known.status}
        self._pinned = dict.fromkeys((agent for agent in active(policy) if agent not in self._lines), IDLE)
        self._begin(known)

    def _begin(self, known: Worklog) -> None:
        last = known.sessions[-1] if known.sessions else None
        number = max((session.number for session in known.sessions), default=0)
        if not number and known.archived:
            number = max((int(row.session) for row in known.archived if row.session.isdigit()), default=0)
        open_ended = known.last_is_session and last is not None and last.number == number
        date = last.date if open_ended and last is not None else ""
        self._appender = renderer.Appender(markdown.ending(self._text), number, date)
        if not self._text.endswith("\n"):
            self._text += self._appender.end

    def apply(self, event: Event, *, pinned: bool) -> None:
        """Do what an event says; `pinned` lines are left alone where a person may have changed them since."""
        if event.type == STATUS and pinned:
            self._pinned[event.payload["key"]] = event.payload["text"]
            self._touched.pop(event.payload["key"], None)  # what an agent says itself counts, until its work changes
        elif event.type == COMPACTED:
            self._settle()
            self._compact(event)
        elif event.type == RESTORED:
            self._settle()
            self._text = restored(self._text, event.payload["entries"])
            if settled := [one["text"] for one in event.payload.get("edits", ())]:
                self._texts[EDITS] = edits.without(self._texts.get(EDITS) or self._read(EDITS), settled)
        said = self._entries.of(event)
        if said is not None:
            self._appender.add(said, event.timestamp[:10])
            if decision := event.payload.get("decision") if event.type == ENTRY else None:
                section = f"Session {self._appender.session}"
                cells = (decision, event.payload["actor"], renderer.when(event.timestamp), section)
                self._text = renderer.with_decision(self._text, cells)
        if pinned and (agent := automatic.agent_of(event)) is not None:
            self._touched[agent] = None
            if event.type == "task.attempt.started":
                self._pinned[agent] = self._named(event.task_id)

    def _compact(self, event: Event) -> None:
        """Sessions go to the archive, each once, and leave a row; what is there already is not added again."""
        wanted = {one["session"]: one for one in event.payload["sessions"]}
        known = parse(self._text)
        moved = [session for session in known.sessions if session.number in wanted]
        there = self._texts.get(ARCHIVE) or self._read(ARCHIVE) or renderer.new_archive(self._policy.project)
        end = self._appender.end
        for session in moved:
            said = renderer.text_of(self._text, session).strip()
            if said not in there:
                there = f"{there.rstrip()}{end}{end}{said}{end}"
        rows = {row.session for row in known.archived}
        cells = [
            (str(number), one["date"], one["summary"]) for number, one in wanted.items() if str(number) not in rows
        ]
        self._texts[ARCHIVE] = there
        self._text = renderer.without(self._text, moved, cells)
        self._begin(parse(self._text))

    def _settle(self) -> None:
        self._text += self._appender.text()
        self._begin(parse(self._text))

    def _named(self, task_id: str) -> str:
        title = self._facts.title(task_id)
        return f"{task_id} {title}" if title else task_id

    def done(self) -> Rewritten:
        """The files, the archive first: what leaves the WORKLOG must be there before."""
        note = _Note.of(self._appender)
        for agent in self._touched:
            held, line = self._facts.held_by(agent), self._pinned.get(agent) or self._lines.get(agent, "")
            if not held:
                self._pinned[agent] = IDLE
            elif not any(task_id in line for task_id in held):
                self._pinned[agent] = self._named(held[-1])
        for key, said in self._pinned.items():
            self._text = renderer.with_status(self._text, key, said)
        self._text += self._appender.text()
        return Rewritten({**self._texts, PATH: self._text}, note.text())


def active(policy: Policy) -> tuple[str, ...]:
    """The agents of the chart that have a pinned line."""
    return tuple(agent.id for agent in policy.org.agents if agent.active) if policy.org is not None else ()


def _without_part(text: str, latest: Sequence[Event], texts: EntryTexts) -> str:
    """The file without the beginning of an entry that a dead writer or a power cut has left at its end."""
    if not text:
        return text
    known, lines = parse(text), markdown.split(text)
    last = known.entries[-1].line if known.entries else len(lines) + 1
    tail = markdown.unix("".join(lines[last - 1 :])).rstrip("\n")
    for event in latest:
        said = texts.of(event)
        if said is not None and tail and tail != said and said.startswith(tail):
            return "".join(lines[: last - 1])
    if lines and not text.endswith("\n") and "## Session ".startswith(lines[-1][: len("## Session ")]):
        return "".join(lines[:-1])
    return text


def _since(text: str, events: Iterator[Event]) -> list[Event]:
    """The events from the first day of the file on, newest first; those before have no entry in it."""
    days = [session.date for session in parse(text).sessions if session.date]
    read: list[Event] = []
    for event in events if days else ():
        read.append(event)
        if event.timestamp[:10] < min(days):
            break
    return read


def _missing(text: str, files: Files, events: Iterable[Event], texts: EntryTexts) -> list[Event]:
    """The last events whose entries stand neither in the file nor in the archive.

    Whatever stands before an entry that is found was there once, and is left as people have made it.
    """
    known = parse(text)
    found: Counter[tuple[str, ...]] = Counter(entry.anchor for entry in known.entries)
    archived = parse(files.text(ARCHIVE)).entries if known.archived else ()
    found.update(entry.anchor for entry in archived)
    recent: list[tuple[Event, Entry | None]] = []
    minute = ""
    for event, entry in _with_entries(events, texts):
        if minute and event.timestamp[:16] < minute:
            break
        recent.append((event, entry))
        if entry is not None and not minute and _standing(entry, found):
            minute = event.timestamp[:16]
    recent.reverse()
    last = -1
    for place, (_, entry) in enumerate(recent):
        if entry is not None and (anchor := _standing(entry, found)) is not None:
            found[anchor] -= 1
            last = place
    return [event for event, _ in recent[last + 1 :]]


def _standing(entry: Entry, found: Counter[tuple[str, ...]]) -> tuple[str, ...] | None:
    """What an entry is found by; where the clock was set back, it stands in the later session that was open then."""
    if found[entry.anchor]:
        return entry.anchor
    later = (one for one in found if one[1:] == entry.anchor[1:] and one[0] > entry.date and found[one])
    return next(later, None)


def _with_entries(events: Iterable[Event], texts: EntryTexts) -> Iterator[tuple[Event, Entry | None]]:
    for event in events:
        said: Any = texts.of(event)
        yield event, None if said is None else parse_entry(said, event.timestamp[:10])
