"""How WORKLOG.md follows from the log.

Entries that AOF writes by itself, entries as JSON, originals of what was changed by hand, and merged versions.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, Final

import msgspec

from aof.documents import hand_edits, markdown, worklog_text
from aof.documents.hand_edits import HandEdit
from aof.documents.projection import Extension, Facts, Files, PastEvents, Projection, Rewritten
from aof.documents.worklog_text import (
    ARCHIVE,
    EDITS,
    IDLE,
    NAME,
    NONE,
    PATH,
    UNKNOWN,
    Decided,
    Entry,
    Worklog,
    noted,
    parse_entry,
    parse_worklog,
    quick_line,
    shown_moment,
)
from aof.kernel.events import DOCUMENT, SUPERSEDED, Draft, Event, as_written
from aof.kernel.limits import visible_line
from aof.kernel.model import Policy
from aof.support import nesting
from aof.support.answer import StructAnswer
from aof.support.hashing import hexdigest

_OWN: Final = f"{DOCUMENT}worklog."
ENTRY: Final = "document.worklog.entry"
STATUS: Final = "document.worklog.status"
COMPACTED: Final = "document.worklog.compacted"
RESTORED: Final = "document.worklog.restored"
TYPES: Final = ("task.attempt.", "task.completed", "delegation.requested", "handoff.initiated", SUPERSEDED)
_WHOLE: Final = (STATUS, COMPACTED, RESTORED)  # events that change more than the end of the file
_LATEST: Final = 100  # events whose entries may have been written in part
_NO_PROSE: Final = ("#", "|", "---", "Now Working (")

EntryText = Callable[[Event], str | None]  # the entry that an event leaves; None for most events


class WorklogDocument(Projection):
    """The WORKLOG, its archive and the file of edits by hand."""

    name, path, files = NAME, PATH, (PATH, ARCHIVE, EDITS)

    def __init__(self, policy: Policy, *, anew: bool = False) -> None:
        super().__init__(policy, anew=anew)
        self.types = (_OWN, *TYPES) if policy.worklog.automatic else (_OWN,)

    def extend(self, note: str, fresh: Sequence[Event], facts: Facts) -> Extension | None:
        """Entries go to the end; pinned lines, index and compaction need the whole text."""
        known = end_of_file(note)
        if known is None or any(agent_of(event) is not None or event.type in _WHOLE for event in fresh):
            return None
        if any(event.type == ENTRY and "decision" in event.payload for event in fresh):
            return None
        appender = worklog_text.Appender(known.end, known.session, known.date)
        for event in fresh:
            if (text := entry_text(event, facts)) is not None:
                appender.add(text, event.timestamp[:10])
        return Extension(appender.text(), _note(appender))

    def updated(self, files: Files, fresh: Sequence[Event], past: PastEvents | None, facts: Facts) -> Rewritten:
        """The whole file, with what is missing at its end written first."""
        before, wanted, known = files.text(PATH), list(fresh), True
        texts = EntryTexts(facts)
        kept: dict[str, str] = {}
        if past is not None:
            events = chain(reversed(fresh), past.events)
            latest = list(islice(events, _LATEST))
            before = _without_part(before, latest, texts)
            events = chain(latest, events)
            read = _since_first_day(before, events)
            put_back, by_hand = originals(before, read[::-1], texts.of)
            if by_hand:  # what the log has from any time is nobody's edit
                read += events
                put_back, by_hand = originals(before, read[::-1], texts.of)
            before = put_back
            wanted = _missing(before, files, chain(read, events), texts)
            known = past.applied
            if by_hand:  # before the file itself: nothing that a person wrote is ever nowhere
                kept = {EDITS: hand_edits.with_kept(files.text(EDITS), PATH, by_hand)}
        if not before and not any(event.type.startswith(_OWN) or texts.of(event) is not None for event in wanted):
            return Rewritten({})
        writer = _Writer(self._policy, before, files, facts, texts)
        first = fresh[0].seq if fresh else 0
        for event in wanted:
            writer.apply(event, pinned=past is None or not known or event.seq >= first > 0)
        done = writer.done()
        return Rewritten({**kept, **done.texts}, done.note)

    def with_hand_written(
        self, from_log: dict[str, str], sides: Sequence[Files], events: Sequence[Event]
    ) -> dict[str, str]:
        """Every entry and line that some side has and the log does not; what people rewrote is kept as an edit."""
        text = from_log.get(PATH) or next((side.text(PATH) for side in sides if side.text(PATH)), "")
        put_back = [originals(side.text(PATH), events, _posted_text, nearby=False) for side in sides]
        by_hand = [edit for _, edits in put_back for edit in edits]
        by_hand += [edit for side in sides for _, edit in hand_edits.kept_edits(side.text(EDITS))]
        logged = {_posted_text(event) for event in events}  # and what somebody has settled
        logged |= {
            edit["text"] for event in events if event.type == RESTORED for edit in event.payload.get("edits", ())
        }
        by_hand = [edit for edit in without_rows(by_hand) if edit.text not in logged]
        by_hand = sorted(_unmixed(by_hand, logged), key=lambda edit: (edit.text, edit.what))
        known = [*parse_worklog(text).entries, *parse_worklog(from_log.get(ARCHIVE, "")).entries]
        extra: dict[tuple[str, str, str], Entry] = {}
        for side, (own, _) in zip(sides, put_back, strict=True):
            for entry in _unknown(known, [*parse_worklog(side.text(ARCHIVE)).entries, *parse_worklog(own).entries]):
                extra[entry.date, entry.time, entry.text] = entry
        for key in sorted(extra):
            text = _with_entry(text, extra[key])
        for own, _ in put_back:
            text = _with_prose(_with_pinned(text, parse_worklog(own)), own)
        return {EDITS: hand_edits.with_kept("", PATH, by_hand), PATH: text}


class FileEnd(msgspec.Struct, frozen=True):
    """What is known of the end of the file: its line ending, and the session that entries go to."""

    end: str
    session: int
    date: str


def end_of_file(note: str) -> FileEnd | None:
    """What the note about the file says of its end; None where there is no note that can be read."""
    try:
        return nesting.decode_json(note, FileEnd) if note else None
    except msgspec.DecodeError:
        return None


def _note(appender: worklog_text.Appender) -> str:
    return msgspec.json.encode(FileEnd(appender.end, appender.session, appender.date)).decode()


def entry_text(event: Event, facts: Facts) -> str | None:
    """The entry that an event leaves, without a line feed at its end."""
    return event.payload["text"] if event.type == ENTRY else automatic_line(event, facts)


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


class _Writer:
    """The file while events are written: lines in its middle change at once, entries are added at its end together."""

    def __init__(self, policy: Policy, text: str, files: Files, facts: Facts, entries: EntryTexts) -> None:
        self._policy = policy
        self._facts = facts
        self._entries = entries
        self._read = files.text
        self._texts: dict[str, str] = {}
        self._text = text or worklog_text.new_worklog(policy.project)
        self._touched: dict[str, None] = {}
        left = end_of_file(files.note) if text else None  # how AOF has left the file, where nobody else has written it
        known = parse_worklog(self._text if left is None else worklog_text.pinned_part(self._text))
        self._lines = {line.key: line.text for line in known.status}
        agents = policy.org.agents if policy.org is not None else ()
        self._pinned = {agent.id: IDLE for agent in agents if agent.active and agent.id not in self._lines}
        if left is None:
            self._begin(known)
        else:
            self._appender = worklog_text.Appender(left.end, left.session, left.date)

    def _begin(self, known: Worklog) -> None:
        last = known.sessions[-1] if known.sessions else None
        number = max((session.number for session in known.sessions), default=0)
        if not number and known.archived:
            number = max((int(row.session) for row in known.archived if row.session.isdigit()), default=0)
        open_ended = known.last_is_session and last is not None and last.number == number
        date = last.date if open_ended and last is not None else ""
        self._appender = worklog_text.Appender(markdown.ending(self._text), number, date)
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
                self._texts[EDITS] = hand_edits.without_edits(self._texts.get(EDITS) or self._read(EDITS), settled)
        text = self._entries.of(event)
        if text is not None:
            self._appender.add(text, event.timestamp[:10])
            if decision := event.payload.get("decision") if event.type == ENTRY else None:
                section = f"Session {self._appender.session}"
                cells = (decision, event.payload["actor"], worklog_text.shown_moment(event.timestamp), section)
                self._text = worklog_text.with_row(self._text, worklog_text.INDEX, cells)
        if pinned and (agent := agent_of(event)) is not None:
            self._touched[agent] = None
            if event.type == "task.attempt.started":
                self._pinned[agent] = self._named(event.task_id)

    def _compact(self, event: Event) -> None:
        """Sessions go to the archive, each once, and leave a row; what is there already is not added again."""
        wanted = {one["session"]: one for one in event.payload["sessions"]}
        known = parse_worklog(self._text)
        moved = [session for session in known.sessions if session.number in wanted]
        there = (
            self._texts.get(ARCHIVE)
            or self._read(ARCHIVE)
            or f"# {worklog_text.TITLE} archive — {markdown.inline(self._policy.project)}\n"
        )
        end = self._appender.end
        for session in moved:
            section = worklog_text.text_of(self._text, session).strip()
            if section not in there:
                there = f"{there.rstrip()}{end}{end}{section}{end}"
        rows = {row.session for row in known.archived}
        cells = [
            (str(number), one["date"], one["summary"]) for number, one in wanted.items() if str(number) not in rows
        ]
        self._texts[ARCHIVE] = there
        self._text = worklog_text.without_sessions(self._text, moved, cells)
        self._begin(parse_worklog(self._text))

    def _settle(self) -> None:
        self._text += self._appender.text()
        self._begin(parse_worklog(self._text))

    def _named(self, task_id: str) -> str:
        title = self._facts.title(task_id)
        return f"{task_id} {title}" if title else task_id

    def done(self) -> Rewritten:
        """The files, the archive first: what leaves the WORKLOG must be there before."""
        note = _note(self._appender)
        for agent in self._touched:
            held, line = self._facts.held_by(agent), self._pinned.get(agent) or self._lines.get(agent, "")
            if not held:
                self._pinned[agent] = IDLE
            elif not any(task_id in line for task_id in held):
                self._pinned[agent] = self._named(held[-1])
        self._text = worklog_text.with_status(self._text, self._pinned)
        self._text += self._appender.text()
        return Rewritten({**self._texts, PATH: self._text}, note)


def _without_part(text: str, latest: Sequence[Event], texts: EntryTexts) -> str:
    """The file without the beginning of an entry that a dead writer or a power cut has left at its end."""
    if not text:
        return text
    known, lines = parse_worklog(text), markdown.split_lines(text)
    last = known.entries[-1].line if known.entries else len(lines) + 1
    tail = markdown.unix("".join(lines[last - 1 :])).rstrip("\n")
    for event in latest:
        entry = texts.of(event)
        if entry is not None and tail and tail != entry and entry.startswith(tail):
            return "".join(lines[: last - 1])
    if lines and not text.endswith("\n") and "## Session ".startswith(lines[-1][: len("## Session ")]):
        return "".join(lines[:-1])
    return text


def _since_first_day(text: str, events: Iterator[Event]) -> list[Event]:
    """The events from the first day of the file on, newest first; those before have no entry in it."""
    days = [session.date for session in parse_worklog(text).sessions if session.date]
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
    known = parse_worklog(text)
    found: Counter[tuple[str, ...]] = Counter(entry.anchor for entry in known.entries)
    archived = parse_worklog(files.text(ARCHIVE)).entries if known.archived else ()
    found.update(entry.anchor for entry in archived)
    recent: list[tuple[Event, Entry | None]] = []
    minute = ""
    for event in events:
        if minute and event.timestamp[:16] < minute:
            break
        written = texts.of(event)
        entry = None if written is None else parse_entry(written, event.timestamp[:10])
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


CLAIMED, COMPLETED, HANDED_BACK, HANDED = "claimed", "completed", "handed back", "handed over"
_TITLE: Final = 80


def automatic_line(event: Event, facts: Facts) -> str | None:
    """The line that an event leaves in the WORKLOG; None for most of them."""
    event = as_written(event)  # it was written in its clone, and a merge takes no line away
    payload, time = event.payload, event.timestamp[11:16]
    if event.type == "task.attempt.started":
        agent, hop = str(payload.get("agent")), payload.get("hop")
        attempt = f"attempt {payload.get('attempt', 1)}"
        result = f"hop {hop}, {attempt}" if hop else attempt
        return quick_line(time, agent, f"{CLAIMED} {_named(event, facts)}", result, (agent, event.task_id))
    if event.type == "task.completed":
        report: dict[str, Any] = payload.get("result") or {}
        agent, outcome = str(report.get("agentId") or event.agent or event.actor), str(report.get("outcome", "done"))
        tests, ran = report.get("tests"), NONE
        if isinstance(tests, dict):
            ran = f"{tests.get('passed', 0)} of {tests.get('total', 0)} passed, {tests.get('failed', 0)} failed"
        what = COMPLETED if outcome == "done" else HANDED_BACK
        return quick_line(time, agent, f"{what} {_named(event, facts)}", f"{outcome}; Tests run: {ran}")
    if event.type not in ("delegation.requested", "handoff.initiated"):
        return None
    request: dict[str, Any] = payload.get("request") or payload.get("audit") or payload
    sender = request.get("fromAgent") or request.get("from_agent") or event.agent or event.actor
    target = request.get("toAgent") or request.get("to_agent")
    if not isinstance(sender, str) or not isinstance(target, str):
        return None
    return quick_line(time, sender, f"{HANDED} {_named(event, facts)}", f"to {target}", (target, event.task_id))


def _named(event: Event, facts: Facts) -> str:
    """A task with its title, where that is known."""
    title = facts.title(event.task_id) or ""
    shown = title if len(title) <= _TITLE else f"{title[: _TITLE - 1]}…"
    return f'{event.task_id} "{shown}"' if shown else event.task_id


def agent_of(event: Event) -> str | None:
    """The agent whose work an event begins or ends."""
    agent = event.payload.get("agent") if event.type.startswith("task.attempt.") else None
    return agent if isinstance(agent, str) else None


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


class EntryEnvelope(StructAnswer, frozen=True, kw_only=True):
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
        base = f"{entry.date}\n{entry.text}"
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
        if entry.form == "proposal":
            proposed.add(str(entry.fields["ID"]))


def event_id(entry: Entry, number: int = 0) -> str:
    """From what the entry says and when; `number` tells entries apart that say the same."""
    whole = f"{entry.date}\n{entry.text}\n{number}".encode("utf-8", "surrogateescape")
    return f"WL-{hexdigest(whole)[:_DIGITS]}"


def event_type(entry: Entry, proposed: Container[str] = ()) -> str:
    """Which of the eight it is, by its form; `proposed` are the proposals before it."""
    if entry.form == "quick":
        what = entry.subject.lower()
        if what.startswith(CLAIMED):
            return "task.claimed"
        given = entry.fields.get("nextOwner", entry.owner) != entry.owner and not _DONE.search(what)
        return "handoff.posted" if given or what.startswith((HANDED, HANDED_BACK)) else "task.completed"
    if entry.form == "handoff":
        complete = str(entry.fields.get("Status", "")).strip().lower() == "complete"
        return "task.completed" if complete else "handoff.posted"
    if entry.form == "proposal":
        return "proposal.amended" if str(entry.fields["ID"]) in proposed else "proposal.created"
    return _TYPES.get(entry.form, UNKNOWN)


def timestamp(entry: Entry) -> str:
    """ISO-8601, as exact as the entry is."""
    if not entry.date:
        return UNKNOWN
    return f"{entry.date}T{entry.time}Z" if entry.time else entry.date


def payload(entry: Entry) -> dict[str, Any]:
    """What the entry says, by its form; `text` is the rest of it, unshortened."""
    values: dict[str, Any] = {"form": entry.form, "session": entry.session}
    for key, value in entry.fields.items():
        name = _KEY.sub("_", key.lower()).strip("_") if key != "nextOwner" else "next_owner"
        values[name or "more"] = value
    if entry.form == "handoff" and "next_owner" in values:
        values["next_owner"], values["next_note"] = noted(str(values["next_owner"]))
    return values | {"text": entry.body}


def links(entry: Entry) -> list[str]:
    """What the entry refers to, in order of mention, each once; addresses are no records of ours."""
    found = (mark.group() for mark in LINK.finditer(entry.text))
    return list(dict.fromkeys(one for one in found if not one.startswith("http")))


_MOST: Final = 20  # entries that one event puts back
_ALIKE: Final = 0.6
_QUOTED: Final = re.compile(r' ".*"')
_SHOWN: Final = 60


def entry_name(entry: Entry) -> str:
    """An entry in a few words."""
    name = f"{entry.actor}: {entry.subject}" if entry.actor else entry.text.split("\n", 1)[0]
    return f"'{visible_line(name)[:_SHOWN]}' of session {entry.session}"


def lost_entries(
    entries: Sequence[Entry], events: Iterable[Event], text_of: EntryText, *, nearby: bool = True
) -> Iterator[tuple[Event, Entry, Entry | None]]:
    """Entries of the log that the file lacks or has in another form, each with that form; None where it is gone.

    An entry that the log has is never the changed form of another one. A line without a date of its own belongs to the
    session that was open, which may be of a later day where the clock was set back. Without `nearby`, only author and
    time identify an entry.
    """
    there = _EntriesLeft(entries)
    sessions = {entry.date: entry.session for entry in entries}
    wanted: list[tuple[Event, Entry]] = []
    for event in events:
        if (text := text_of(event)) is not None:
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
        # Two automatic lines may differ in the title of the task, which may have changed since.
        retitled = found is not None and _QUOTED.sub("", found.text) == _QUOTED.sub("", entry.text)
        if event.type == ENTRY or not retitled:
            yield event, entry, found


class _EntriesLeft:
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
            near = [(self._alikeness(place, wanted), place) for place in between if place in self._left]
            alike, own = max(near, default=(0.0, None))
            if alike < _ALIKE or own is None:
                return None
        del self._left[own]
        return self._entries[own]

    def _alikeness(self, place: int, wanted: Entry) -> float:
        there = self._entries[place]
        return difflib.SequenceMatcher(None, there.text, wanted.text).ratio() if there.form == wanted.form else 0.0


def _in_place_of(entry: Entry, wanted: Entry) -> bool:
    if wanted.form != "quick":
        return entry.anchor == wanted.anchor or (
            entry.form == wanted.form and bool(wanted.time) and entry.anchor[:3] == wanted.anchor[:3]
        )
    task = next((one for one in links(wanted) if one.startswith("TASK-")), None)
    return entry.anchor == wanted.anchor and (task is None or task in entry.text)


def decided_rows(
    rows: Sequence[Decided], events: Iterable[Event]
) -> list[tuple[tuple[str, str, str], Decided | None, bool]]:
    """What was decided, oldest first, with its row in the index, and whether that is as it was written; None: gone."""
    left = list(rows)
    found: list[tuple[tuple[str, str, str], Decided | None, bool]] = []
    for event in events:
        if event.type == ENTRY and "decision" in event.payload:
            cells = event.payload["decision"].strip(), event.payload["actor"], shown_moment(event.timestamp)
            row = next((one for one in left if (one.decision, one.owner, one.timestamp) == cells), None)
            found.append((cells, row, row is not None))
            if row is not None:
                left.remove(row)
    for number, (cells, row, _) in enumerate(found):
        if row is None:
            changed_in_one = (
                one
                for one in left
                if sum(map(str.__eq__, (one.decision, one.owner, one.timestamp), cells)) == len(cells) - 1
            )
            like = next(changed_in_one, None)
            found[number] = cells, like, False
            if like is not None:
                left.remove(like)
    return found


def originals(
    text: str, events: Sequence[Event], text_of: EntryText, *, nearby: bool = True
) -> tuple[str, list[HandEdit]]:
    """The file with what was said through AOF as it was said, and what people had made of it."""
    known, lines, end = parse_worklog(text), markdown.split_lines(text), markdown.ending(text)
    kept: list[HandEdit] = []
    lost = lost_entries(known.entries, events, text_of, nearby=nearby)
    changed = [(event, wanted, there) for event, wanted, there in lost if there is not None and event.type == ENTRY]
    for row, like, unchanged in decided_rows(known.decisions, events):
        if like is None or unchanged:
            continue
        before = lines[like.number - 1].rstrip("\r\n")
        lines[like.number - 1] = markdown.row((*row, like.section)) + end
        what = f"a person changed the decision '{visible_line(row[0])[:_SHOWN]}' of {row[1]} at {row[2]}"
        kept.append(HandEdit(what, before))
    for event, wanted, there in sorted(changed, key=lambda one: -one[2].line):
        who = event.payload.get("actor") or wanted.actor
        what = f"{who} wrote {entry_name(wanted)} (event {event.seq}), and a person changed it"
        kept.append(HandEdit(f"{what}: {hand_edits.edit_difference(wanted.text, there.text)}", there.text))
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


def restoration_draft(lost: Iterable[tuple[Event, Entry, Entry | None]], kept: Iterable[HandEdit] = ()) -> Draft | None:
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
    lines = markdown.split_lines(text)
    session = next((one for one in parse_worklog(text).sessions if one.date == date), None)
    own = next(iter(parse_worklog(f"## Session 1 — {date}\n\n{markdown.unix(wanted)}\n").entries), None)
    if session is None or own is None or any(entry.text == own.text for entry in session.entries):
        return text
    later = next((entry.line for entry in session.entries if entry.time > own.time), None)
    if later is not None:
        return "".join([*lines[: later - 1], wanted, end, end, *lines[later - 1 :]])
    before = "".join(lines[: session.end - 1]).rstrip("\r\n")
    after = "".join(lines[session.end - 1 :])
    return f"{before}{end}{end}{wanted}{end}" + (f"{end}{after}" if after else "")


def _unmixed(by_hand: Sequence[HandEdit], logged: Iterable[str | None]) -> list[HandEdit]:
    """The edits without those that git has mixed from another one and the original."""
    there = {edit.text: edit for edit in by_hand}
    log = {line for text in logged for line in (text or "").split("\n")}
    for text in sorted(there):
        if any(set(text.split("\n")) <= log.union(other.split("\n")) for other in there if other != text):
            del there[text]
    return list(there.values())


def _posted_text(event: Event) -> str | None:
    return event.payload["text"] if event.type == ENTRY else None


def _unknown(known: Sequence[Entry], entries: Sequence[Entry]) -> Iterator[Entry]:
    """The entries of a side beyond those that the log has of the same author and minute."""
    left = Counter(entry.anchor for entry in known)
    same = Counter(entry.text for entry in known)
    others = []
    for entry in entries:
        if same[entry.text]:
            same[entry.text] -= 1
            left[entry.anchor] -= 1
        else:
            others.append(entry)
    for entry in others:
        if left[entry.anchor] > 0:
            left[entry.anchor] -= 1
        else:
            yield entry


def _with_entry(text: str, entry: Entry) -> str:
    """The entry in the session of its day; one of a day that has none gets a session at the end."""
    one = {"text": entry.text, "date": entry.date, "instead": ""}
    if any(session.date == entry.date for session in parse_worklog(text).sessions):
        return restored(text, [one])
    number = max((session.number for session in parse_worklog(text).sessions), default=0)
    appender = worklog_text.Appender(markdown.ending(text), number, "")
    appender.add(entry.text, entry.date)
    return (text if text.endswith("\n") else f"{text}\n") + appender.text()


def _with_pinned(text: str, side: Worklog) -> str:
    """Pinned lines that only a person has written."""
    there = {line.key: line.text.strip() for line in parse_worklog(text).status}
    wanted: dict[str, str] = {}
    for line in sorted(side.status, key=lambda line: line.key):
        own = line.text.strip()
        if own and own != IDLE and there.get(line.key, "") in ("", IDLE) and not (line.agent and line.key in there):
            wanted[line.key] = own
    return worklog_text.with_status(text, wanted)


def _with_prose(text: str, side: str) -> str:
    """Lines that belong to no entry, no heading and no table go below the pinned block, each once."""
    known = parse_worklog(side)
    covered = {line.number for line in known.status}
    for entry in known.entries:
        covered.update(range(entry.line, entry.line + entry.text.count("\n") + 1))
    there = set(markdown.unix(text).split("\n"))
    lines = [line for line in markdown.scan(side) if line.number not in covered and line.text.strip()]
    loose = [line.text for line in lines if line.text not in there and not line.text.startswith(_NO_PROSE)]
    if not loose:
        return text
    end, split, at = markdown.ending(text), markdown.split_lines(text), parse_worklog(text).status_end
    block = [end, *(f"{line}{end}" for line in loose)]
    return "".join([*split[:at], *block, *split[at:]])
