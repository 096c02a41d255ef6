"""What people wrote into a WORKLOG, found beside the entries that follow from the log, and added to them.

An entry of the log is recognised by its time and its author, whatever it calls its task by now. Must not know events.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from aof.core.model.events import Event
from aof.documents import edits, markdown
from aof.documents.projection import Files
from aof.documents.worklog import renderer
from aof.documents.worklog.model import ARCHIVE, EDITS, IDLE, PATH, Entry, Worklog
from aof.documents.worklog.parser import parse
from aof.documents.worklog.restoration import ENTRY, RESTORED, originals, restored, without_rows

FILES = (PATH, ARCHIVE, EDITS)
_NO_PROSE = ("#", "|", "---", "Now Working (")


def with_hand_written(told: dict[str, str], sides: Sequence[Files], events: Sequence[Event]) -> dict[str, str]:
    """The WORKLOG with every entry and line that some side has and the log does not; what people rewrote is kept."""
    text = told.get(PATH) or next((side.text(PATH) for side in sides if side.text(PATH)), "")
    archive = told.get(ARCHIVE, "")
    restored_sides = [originals(side.text(PATH), events, _entry, nearby=False) for side in sides]
    by_hand = [edit for _, found in restored_sides for edit in found]
    by_hand += [edit for side in sides for _, edit in edits.kept(side.text(EDITS))]
    said = {_entry(event) for event in events}  # and what somebody has settled
    said |= {one["text"] for event in events if event.type == RESTORED for one in event.payload.get("edits", ())}
    by_hand = [edit for edit in without_rows(by_hand) if edit.text not in said]
    kept = edits.with_kept("", PATH, sorted(_whole(by_hand, said), key=lambda edit: (edit.text, edit.what)))
    known = [*parse(text).entries, *parse(archive).entries]
    extra: dict[tuple[str, str, str], Entry] = {}
    for side, (own, _) in zip(sides, restored_sides, strict=True):
        for entry in _unknown(known, [*parse(side.text(ARCHIVE)).entries, *parse(own).entries]):
            extra[entry.date, entry.time, entry.text] = entry
    for key in sorted(extra):
        text = _with_entry(text, extra[key])
    for own, _ in restored_sides:
        text = _with_prose(_with_pinned(text, parse(own)), own)
    return told | {EDITS: kept, PATH: text}


def _whole(by_hand: Sequence[edits.HandEdit], said: Iterable[str | None]) -> list[edits.HandEdit]:
    """The edits without those that git has mixed from another one and the original."""
    there = {edit.text: edit for edit in by_hand}
    log = {line for text in said for line in (text or "").split("\n")}
    for text in sorted(there):
        if any(set(text.split("\n")) <= log.union(other.split("\n")) for other in there if other != text):
            del there[text]
    return list(there.values())


def _entry(event: Event) -> str | None:
    return event.payload["text"] if event.type == ENTRY else None


def _unknown(known: Sequence[Entry], entries: Sequence[Entry]) -> Iterator[Entry]:
    """The entries of a side beyond those that the log has of the same author and minute."""
    left = Counter(entry.anchor for entry in known)
    said = Counter(entry.text for entry in known)
    others = []
    for entry in entries:
        if said[entry.text]:
            said[entry.text] -= 1
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
    if any(session.date == entry.date for session in parse(text).sessions):
        return restored(text, [one])
    number = max((session.number for session in parse(text).sessions), default=0)
    appender = renderer.Appender(markdown.ending(text), number, "")
    appender.add(entry.text, entry.date)
    return (text if text.endswith("\n") else f"{text}\n") + appender.text()


def _with_pinned(text: str, side: Worklog) -> str:
    """Pinned lines that only a person has written."""
    there = {line.key: line.text.strip() for line in parse(text).status}
    for line in sorted(side.status, key=lambda line: line.key):
        said = line.text.strip()
        if said and said != IDLE and there.get(line.key, "") in ("", IDLE) and not (line.agent and line.key in there):
            text = renderer.with_status(text, line.key, said)
    return text


def _with_prose(text: str, side: str) -> str:
    """Lines that belong to no entry, no heading and no table go below the pinned block, each once."""
    known = parse(side)
    covered = {line.number for line in known.status}
    for entry in known.entries:
        covered.update(range(entry.line, entry.line + entry.text.count("\n") + 1))
    there = set(markdown.unix(text).split("\n"))
    lines = [line for line in markdown.scan(side) if line.number not in covered and line.text.strip()]
    loose = [line.text for line in lines if line.text not in there and not line.text.startswith(_NO_PROSE)]
    if not loose:
        return text
    end, split, at = markdown.ending(text), markdown.split(text), parse(text).status_end
    block = [end, *(f"{line}{end}" for line in loose)]
    return "".join([*split[:at], *block, *split[at:]])
