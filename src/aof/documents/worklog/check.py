"""What is wrong with a WORKLOG: with each entry by itself, and with the file held against the log.

Only reads. An error means that something is lost, changed or missing; a warning that something could be better. Must
not know where the file or the log comes from.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from aof.core.model.events import Event
from aof.core.validation.findings import Finding, Severity
from aof.core.validation.visible import visible_line
from aof.documents import edits
from aof.documents.worklog import forms
from aof.documents.worklog.envelope import event_id, event_type, links
from aof.documents.worklog.model import EDITS, PATH, UNKNOWN, Decided, Entry, Worklog
from aof.documents.worklog.restoration import Said, decided_rows, lost_entries, named

_QUICK_LINES: Final = 3
_QUICK_MINUTES: Final = 30
_SHOWN: Final = 60
_URL: Final = re.compile(r"<?https?://\S+>?\Z")
_SECTION: Final = re.compile(r"Session (\d+)")


def finding(code: str, line: int | None, detail: str, fix: str, severity: Severity = "error") -> Finding:
    """One problem of the file."""
    return Finding(code=code, severity=severity, at=(PATH,), detail=detail, fix=fix, line=line)


def of_entries(known: Worklog, roster: Callable[[str], bool]) -> Iterator[Finding]:
    """What is wrong with single entries; `roster` says whether a name may be an owner."""
    loose: list[Entry] = []
    for entry in known.entries:
        yield from _of_entry(entry, roster)
        if entry.form == "none":
            loose.append(entry)
            if not _is_question(entry):
                what = f"{named(entry)} has none of the forms of an entry"
                yield finding("unstructured", entry.line, what, "post a handoff, a decision or a proposal", "warning")
        elif loose:
            yield from _talk(loose)
            loose = []
    yield from _talk(loose)


def _of_entry(entry: Entry, roster: Callable[[str], bool]) -> Iterator[Finding]:
    if entry.form == "handoff":
        yield from _of_handoff(entry, roster)
    elif entry.form == "quick" and entry.text.count("\n") >= _QUICK_LINES:
        what = f"{named(entry)} has more than {_QUICK_LINES} lines"
        yield finding("quick_too_long", entry.line, what, "write a full handoff", "warning")
    if entry.actor and entry.owner and entry.actor != entry.owner:
        what = f"the heading says {entry.actor}, and the block says {entry.owner}"
        yield finding("owner_differs", entry.line, what, "name one of them", "warning")
    yield from _readable(entry)


def _of_handoff(entry: Entry, roster: Callable[[str], bool]) -> Iterator[Finding]:
    for key in forms.HANDOFF_KEYS:
        if key not in entry.fields:
            what = f"{named(entry)} lacks '{key}'"
            yield finding("handoff_key_missing", entry.line, what, f"add '{key}: none' or what there is")
    status = str(entry.fields.get("Status", forms.STATUSES[0]))
    if status not in forms.STATUSES:
        there = ", ".join(forms.STATUSES)
        yield finding("handoff_status", entry.line, f"{named(entry)} has the status '{status}'", f"use one of: {there}")
    for key in ("Owner", "Next owner"):
        name = forms.noted(str(entry.fields.get(key, "")))[0]
        if name and name.lower() != forms.NONE and not roster(name):
            yield finding("owner_unknown", entry.line, f"{named(entry)}: nobody is called {name}", "use a known name")


def _readable(entry: Entry) -> Iterator[Finding]:
    """A person must understand an entry without tools."""
    lines = entry.text.split("\n")
    for place, line in enumerate(lines):
        if re.match(r" {0,3}(```|~~~)[ \t]*dense\b", line):
            after = next((at for at in range(place + 1, len(lines)) if re.match(r" {0,3}(```|~~~)", lines[at])), place)
            if not (after + 1 < len(lines) and lines[after + 1].startswith("Paraphrase:")):
                fix = "say it in plain words: 'Paraphrase: …' right behind the block"
                yield finding(
                    "no_paraphrase", entry.line + place, f"{named(entry)} has dense text only", fix, "warning"
                )
    if entry.form == "none" and _URL.match(entry.body.strip()):
        yield finding("only_a_link", entry.line, f"{named(entry)} is only a link", "say what is there", "warning")


def _is_question(entry: Entry) -> bool:
    return entry.body.strip().endswith("?") and "\n\n" not in entry.body.strip()


def _talk(loose: Sequence[Entry]) -> Iterator[Finding]:
    """Several loose entries in a row are a conversation."""
    if len(loose) > 2:  # noqa: PLR2004 - a question and an answer may be
        what = f"{len(loose)} entries in a row, from line {loose[0].line} to {loose[-1].line}, are free conversation"
        yield finding("chat_room", loose[0].line, what, "use the mailbox, or post a decision", "warning")


def against_log(
    entries: Sequence[Entry], decisions: Sequence[Decided], events: Iterable[Event], said: Said
) -> Iterator[Finding]:
    """Entries and rows that the log has and the file has not, or has in another form."""
    known = list(events)
    yield from _lost(lost_entries(entries, known, said))
    yield from _of_rows(decisions, known)


def unsettled(text: str) -> Iterator[Finding]:
    """What people have changed by hand and nobody has settled, from the file that keeps it."""
    fix = "if it is meant, post a counter-recommendation or a further decision; then delete its section of that file"
    for line, edit in edits.kept(text):
        yield Finding(code="entry_edited", severity="error", at=(EDITS,), detail=edit.what, fix=fix, line=line)


def _lost(lost: Iterable[tuple[Event, Entry, Entry | None]]) -> Iterator[Finding]:
    """An entry that is not there is edited where another stands in its place, else deleted."""
    for event, wanted, there in lost:
        author = event.payload.get("actor") or wanted.actor
        if there is None:
            what = f"{author} wrote {named(wanted)} at {event.timestamp} (event {event.seq}), and it is gone"
            yield finding("entry_deleted", None, what, "'aof doctor --fix' puts it back")
            continue
        change = edits.difference(wanted.text, there.text)
        what = f"{author} wrote {named(wanted)} (event {event.seq}), and it was changed: {change}"
        fix = "post a counter-recommendation instead; 'aof doctor --fix' undoes the change"
        yield finding("entry_edited", there.line, what, fix)


def _of_rows(found: Sequence[Decided], events: Iterable[Event]) -> Iterator[Finding]:
    """Rows that were written and are not there any more, or in another order."""
    places: list[int] = []
    for cells, row, as_written in decided_rows(found, events):
        if row is not None and as_written:
            places.append(row.number)
            continue
        line, code, how = (None, "deleted", "is gone") if row is None else (row.number, "edited", "was changed")
        what = f"the decision '{visible_line(cells[0])[:_SHOWN]}' of {cells[1]} at {cells[2]} {how}"
        yield finding(f"decision_{code}", line, what, "put the row back as it was; a correction is a further decision")
    if places != sorted(places):
        yield finding("decision_moved", min(places), "the rows of the index are in another order", "put them back")


def of_index(known: Worklog, archived: Worklog) -> Iterator[Finding]:
    """Each decision has a row, and each row leads somewhere."""
    rows = [row.decision for row in (*known.decisions, *archived.decisions)]
    for entry in known.entries:
        if entry.form == "decision" and str(entry.fields["Decision"]).strip() not in rows:
            what = f"{named(entry)} has no row in the Decision Index"
            yield finding("decision_without_row", entry.line, what, "add one; 'aof worklog decide' does both")
    sessions = {session.number for session in (*known.sessions, *archived.sessions)}
    headings = [f"{entry.actor}: {entry.subject}" for entry in (*archived.entries, *known.entries)]
    for row in known.decisions:
        section = _SECTION.search(row.section)
        resolved = (section is not None and int(section[1]) in sessions) or "MSG-" in row.section
        if not resolved and row.section not in headings:
            what = f"the row '{visible_line(row.decision)[:_SHOWN]}' names a section that is not there"
            yield finding("section_unknown", row.number, what, "name a session or an entry", "warning")


def of_links(entries: Iterable[Entry], known: Callable[[str], bool]) -> Iterator[Finding]:
    """Links to records that do not exist."""
    entries = list(entries)
    own = {event_id(entry) for entry in entries}
    own |= {str(entry.fields["ID"]) for entry in entries if entry.form == "proposal"}
    for entry in entries:
        for link in links(entry):
            ours = re.match(r"(TASK|MSG|PROP|WL)-", link)
            if ours is not None and link not in own and not known(link):
                what = f"{named(entry)} refers to {link}, which is not there"
                yield finding("link_unknown", entry.line, what, "correct the reference in a further entry", "warning")


def of_evidence(entries: Iterable[Entry]) -> Iterator[Finding]:
    """Entries that complete something say what was tested."""
    for entry in entries:
        if event_type(entry) == "task.completed" and entry.form == "handoff" and "Tests run" not in entry.fields:
            fix = "add 'Tests run: none' or what ran"
            yield finding("no_evidence", entry.line, f"{named(entry)} does not say what was tested", fix)


def of_tasks(entries: Iterable[Entry], done: Iterable[str]) -> Iterator[Finding]:
    """Tasks that are done and that no entry completes."""
    told: set[str] = set()
    for entry in entries:
        if event_type(entry) in ("task.completed", "handoff.posted", UNKNOWN):
            told.update(links(entry))
    for task_id in done:
        if task_id not in told:
            fix = f"aof worklog add --type task.completed --task {task_id} --agent …"
            yield finding("no_handoff", None, f"{task_id} is done, and no entry says so", fix)


def of_length(known: Worklog, longest: int) -> Iterator[Finding]:
    """A file that has grown too long to read."""
    if known.lines > longest:
        what = f"the file has {known.lines} lines, more than {longest}"
        yield finding("long", known.lines, what, "let a maintainer run 'aof worklog compact'", "warning")


def of_long_work(entries: Sequence[Entry], minutes: dict[str, float]) -> Iterator[Finding]:
    """Quick lines for work that took long, where no full handoff tells more."""
    full = {link for entry in entries if entry.form == "handoff" for link in links(entry)}
    for entry in entries:
        if entry.form != "quick" or event_type(entry) != "task.completed":
            continue
        for task_id in links(entry):
            if minutes.get(task_id, 0) > _QUICK_MINUTES and task_id not in full:
                what = f"{named(entry)} is one line for {minutes[task_id]:.0f} minutes of work"
                fix = f"add a full handoff: aof worklog add --type task.completed --task {task_id} …"
                yield finding("quick_for_long_work", entry.line, what, fix, "warning")
