"""The commands about the WORKLOG, how entries are worded, and what is wrong with a WORKLOG."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, Final, Literal

import msgspec

from aof.documents import hand_edits, projection, worklog_text
from aof.documents.markdown import contained
from aof.documents.projection import DocumentCommand
from aof.documents.worklog import (
    COMPACTED,
    ENTRY,
    STATUS,
    EntryText,
    decided_rows,
    entry_name,
    event_id,
    event_type,
    links,
    lost_entries,
)
from aof.documents.worklog_text import (
    ARCHIVE,
    CHECKPOINT,
    EDITS,
    FOCUS,
    HANDOFF_KEYS,
    LISTS,
    NAME,
    NONE,
    PATH,
    PROPOSAL_KEYS,
    STATUSES,
    UNKNOWN,
    Decided,
    Entry,
    EventType,
    Worklog,
    WorklogSession,
    parse_worklog,
    text_of,
)
from aof.errors import AofError, Call, InvalidInput, NotAllowed, NotFound, PayloadTooLarge
from aof.kernel import limits as kernel_limits
from aof.kernel.commands import Decision, Needs, NeedsOf, Records, Verdict
from aof.kernel.events import Draft, Event
from aof.kernel.findings import Finding, Severity
from aof.kernel.limits import visible_line
from aof.kernel.model import is_task_id, iso
from aof.org import rights
from aof.runs import authentication
from aof.support.hashing import hexdigest
from aof.tasks import graph
from aof.workflows.model import leases

_LINE: Final = 300
_PROPOSALS: Final = ("proposal.created", "proposal.amended")
_ADJUDICATED: Final = 4


class Wording(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of an entry; which of them it needs depends on its kind."""

    subject: str = ""
    body: str = ""
    task: str | None = None
    status: str | None = None
    changed: tuple[str, ...] | None = None
    tests: tuple[str, ...] | None = None
    risks: tuple[str, ...] | None = None
    blocking: tuple[str, ...] | None = None
    next_owner: str | None = None
    next: str = ""
    result: str = ""
    quick: bool = False
    other: str | None = None
    recommended: str = ""
    counter: str = ""
    reasons: tuple[str, ...] = ()
    compromise: str = ""
    agreed: str = ""
    proposal_id: str | None = None
    scope: str = ""
    proposal: str = ""
    rollback: str = ""
    deadline: str = ""
    proposal_status: str = "open"
    decides: str | None = None
    links: tuple[str, ...] = ()


class WorklogCommand(DocumentCommand, frozen=True, kw_only=True):
    """A command about the WORKLOG."""

    document: ClassVar[str] = NAME


class PostEntry(WorklogCommand, frozen=True, kw_only=True):
    """Post an entry. `level` is that of the escalation ladder; at its end only a maintainer decides."""

    kind: EventType
    said: Wording
    level: int | None = None

    def needs(self, known: Records, needs: NeedsOf) -> Needs:
        """The document's lock, the task that it is about, and for proposals what was proposed before."""
        own, task = super().needs(known, needs), self.said.task
        read = frozenset({task}) if task is not None and is_task_id(task) else frozenset()
        whole = frozenset({PATH, ARCHIVE}) if self.kind in _PROPOSALS else frozenset()
        return msgspec.structs.replace(own, read=read, documents=whole)

    def settle(self, records: Records, now: int) -> Verdict:
        """One event with the text of the entry, or why it cannot be posted."""
        if refusal := self._refused(records):
            return refusal
        said = self.said
        if self.kind in _PROPOSALS:
            numbered = _numbered(records, self.kind, said, self.acting)
            if isinstance(numbered, AofError):
                return numbered
            said = numbered
        text = worded(self.kind, said, self.acting, iso(now))
        if isinstance(text, AofError):
            return text
        return Decision(drafts=(posted(self.kind, text, self.acting, said.subject),), agent=self.acting)

    def _refused(self, records: Records) -> AofError | None:
        policy, said = records.policy, self.said
        if refusal := wording_problem(self.kind, said):
            return refusal
        for name in (said.next_owner, said.other, said.decides):
            if name is not None and name != "Maintainer":
                wrong = kernel_limits.name("agent", name) or projection.stranger(policy, name)
                if wrong is not None:
                    return wrong
        if self.kind == "handoff.posted" and said.next_owner == self.acting:
            hint = "name the agent that goes on; use task.completed where the work is done"
            return InvalidInput(f"{self.acting} cannot hand over to itself", hint)
        if self.kind == "decision.recorded" and self.level == _ADJUDICATED:
            return projection.not_maintainer(policy, self, "decide what was escalated to the maintainer")
        return _not_its_work(records, said.task, self.kind, self.acting)


def posted(kind: EventType, text: str, actor: str, subject: str) -> Draft:
    """The event of an entry, with the digest that proves its text."""
    payload: dict[str, Any] = {
        "document": NAME,
        "type": kind,
        "actor": actor,
        "text": text,
        "digest": hexdigest(text.encode()),
    }
    if kind == "decision.recorded":
        payload["decision"] = subject
    return Draft(type=ENTRY, task_id="", payload=payload)


def _not_its_work(records: Records, task_id: str | None, kind: EventType, agent: str) -> AofError | None:
    """The refusal to speak of a task that does not exist, or of the begin or end of work that was another's."""
    if task_id is None and kind == "task.claimed":
        call = Call("worklog_add", {"type": kind, "task": "…"})
        return InvalidInput("an entry about a claim names its task", "give it", call)
    if task_id is None:
        return None
    task = records.find(task_id)
    if task is None:
        return graph.missing(task_id)
    holders = [lease.agent for lease in leases(task)]
    if kind == "task.claimed" and agent not in holders:
        what = "holds"
    elif kind == "task.completed" and not (authentication.ran_work(task, agent) or agent in holders):
        what = "has worked on"
    else:
        return None
    return NotAllowed(
        f"only an agent that {what} {task.id} says so, and {agent} is none"
        + (f"; {holders[0]} holds it" if holders else ""),
        "claim it first, or let the agent that did the work say it",
        Call("show", {"task_id": task.id}),
        agent=agent,
    )


def _numbered(records: Records, kind: EventType, said: Wording, actor: str) -> Wording | AofError:
    """A new proposal with the next number; a further version with what it does not say anew."""
    entries = (entry for path in (ARCHIVE, PATH) for entry in parse_worklog(records.documents[path]).entries)
    versions = [entry for entry in entries if entry.form == "proposal"]
    if kind == "proposal.created":
        highest = max((int(found) for entry in versions if (found := str(entry.fields["ID"])[5:]).isdigit()), default=0)
        return msgspec.structs.replace(said, proposal_id=f"PROP-{highest + 1:03d}")
    own = [entry for entry in versions if entry.fields["ID"] == said.proposal_id]
    if not own:
        there = ", ".join(dict.fromkeys(str(entry.fields["ID"]) for entry in versions)) or "none"
        return NotFound(f"there is no proposal {said.proposal_id}", f"amend one of: {there}")
    author = str(own[0].fields.get("Author") or own[0].actor)
    if author != actor:
        return NotAllowed(
            f"{said.proposal_id} is {author}'s, and {actor} cannot amend it", "post an objection instead", agent=actor
        )
    last = own[-1]
    names = {"scope": "Scope", "proposal": "Proposal", "rollback": "Rollback", "deadline": "Objection deadline"}
    more = {name: str(last.fields.get(key, "")) for name, key in names.items() if not getattr(said, name)}
    if said.risks is None:
        more["risks"] = tuple(one.removeprefix("- ") for one in str(last.fields.get("Risks", "")).split("\n"))  # type: ignore[assignment]
    if not said.subject:
        more["subject"] = last.subject
    return msgspec.structs.replace(said, **more)


class SetStatus(WorklogCommand, frozen=True, kw_only=True):
    """Change a pinned line: one's own, or as a maintainer anybody's and the maintainer's."""

    line: Literal["now", "focus", "checkpoint"] = "now"
    text: str

    def settle(self, records: Records, now: int) -> Verdict:  # noqa: ARG002 - every command's signature
        """One event with the new text of the line."""
        policy = records.policy
        if wrong := kernel_limits.line("text", self.text, _LINE, required=True):
            return wrong
        others = bool(policy.maintainers) and self.acting != self.actor
        if others and not rights.may_act_for(policy, self.actor, self.acting, None):
            return rights.mismatch(self.actor, self.acting)
        if self.line != "now" and (refusal := projection.not_maintainer(policy, self, "change the maintainer's lines")):
            return refusal
        key = {"now": self.acting, "focus": FOCUS, "checkpoint": CHECKPOINT}[self.line]
        payload = {"document": NAME, "key": key, "text": self.text.strip()}
        return Decision(drafts=(Draft(type=STATUS, task_id="", payload=payload),), agent=self.acting)


class Compact(WorklogCommand, frozen=True, kw_only=True):
    """Move the finished sessions to the archive."""

    reads: ClassVar[frozenset[str]] = frozenset({PATH})

    def settle(self, records: Records, now: int) -> Verdict:  # noqa: ARG002 - every command's signature
        """One event that names the sessions before the current one; none where there is nothing to move."""
        if refusal := projection.not_maintainer(records.policy, self, "compact the WORKLOG"):
            return refusal
        text = records.documents[PATH]
        sessions = parse_worklog(text).sessions
        numbers = {session.number for session in sessions}
        finished = sessions[:-1] if len(numbers) == len(sessions) else ()  # else their numbers do not tell them apart
        if not finished:
            return Decision()
        moved = [
            {
                "session": one.number,
                "date": one.date,
                "summary": summary(one),
                "digest": hexdigest(text_of(text, one).encode("utf-8", "surrogateescape")),
            }
            for one in finished
        ]
        draft = Draft(type=COMPACTED, task_id="", payload={"document": NAME, "sessions": moved})
        return Decision(drafts=(draft,), agent=self.acting)


def summary(session: WorklogSession) -> str:
    """What a row says of an archived session."""
    people = list(dict.fromkeys(entry.actor for entry in session.entries if entry.actor))
    decided = sum(entry.form == "decision" for entry in session.entries)
    said = f"{len(session.entries)} entries" + (f" by {', '.join(people[:5])}" if people else "")
    return f"{said}; {decided} decisions" if decided else said


BODY: Final = 20_000
WHOLE: Final = 60_000
_SHORT: Final = 1_000
_BLOB: Final = re.compile(r"[A-Za-z0-9+/=_-]{1000,}")
_LONG: Final = ("body", "recommended", "counter", "compromise", "agreed", "proposal", "rollback")
_PROPOSAL: Final = {
    "Scope": "scope",
    "Proposal": "proposal",
    "Risks": "risks",
    "Rollback": "rollback",
    "Objection deadline": "deadline",
}


def wording_problem(kind: EventType, said: Wording) -> AofError | None:
    """What no entry may hold, whatever its kind: too much, what no text file holds, and what no person can read."""
    for name in said.__struct_fields__:
        value = getattr(said, name)
        if isinstance(value, tuple) and len(value) > kernel_limits.ITEMS:
            what = f"'{name}' has {len(value)} items, the limit is {kernel_limits.ITEMS}"
            return PayloadTooLarge(what, "name the most important ones, and keep the rest in a file")
        long = name in _LONG or (name == "subject" and kind == "decision.recorded")
        for one in value if isinstance(value, tuple) else (value,):
            if not isinstance(one, str):
                continue
            most = kernel_limits.TITLE if name == "subject" else BODY if long else _SHORT
            check = kernel_limits.text if long or name == "reasons" else kernel_limits.line
            if (found := check(name, one, most)) is not None:
                return found
            if _BLOB.search(one):
                return InvalidInput(
                    f"'{name}' holds encoded data that no person can read",
                    "keep it in a file, and name the file in the entry",
                )
    return None


def worded(kind: EventType, said: Wording, actor: str, moment: str) -> str | AofError:
    """The entry, or what is missing from it, or that it is too long to be read."""
    text = _worded(kind, said, actor, moment)
    if isinstance(text, str) and len(text) > WHOLE:
        what = f"the entry has {len(text):,} characters, the limit is {WHOLE:,}"
        return PayloadTooLarge(what, "keep long text in a file, and name the file in the entry")
    return text


def _worded(kind: EventType, said: Wording, actor: str, moment: str) -> str | AofError:
    if kind in ("task.claimed", "task.completed", "handoff.posted"):
        return _work(kind, said, actor, moment)
    if not said.subject.strip():
        return _missing("subject", kind)
    if kind in ("proposal.created", "proposal.amended"):
        form = _proposal(kind, said, actor, moment)
    elif kind == "objection.raised":
        form = _counter(said, actor)
    elif kind == "decision.recorded":
        form = [("Decision", said.subject), *_reasons(said)]
    else:
        form = [("Escalation", said.subject), ("Decides", said.decides or "Maintainer"), *_reasons(said)]
    if isinstance(form, AofError):
        return form
    linked = [("Links", ", ".join(said.links))] if said.links else []
    body = [("Details", said.body)] if said.body.strip() else []
    return worklog_text.entry(actor, said.subject, moment, worklog_text.bold([*form, *linked, *body]))


def _missing(field: str, kind: str, hint: str = "") -> InvalidInput:
    example: dict[str, Any] = {"type": kind, "agent": "…", field: "…"}
    return InvalidInput(f"an entry of the type {kind} needs '{field}'", hint or "give it", Call("worklog_add", example))


def _work(kind: EventType, said: Wording, actor: str, moment: str) -> str | AofError:
    """A handoff in full, or a quick line: a claim is always quick, the others when they are asked for so."""
    subject = said.subject.strip() or said.task or ""
    if not subject:
        return _missing("subject", kind)
    if said.quick or kind == "task.claimed":
        return _quick(kind, said, subject, actor, moment)
    given = said.status or ("Complete" if kind == "task.completed" else "")
    status = next((one for one in STATUSES if one.lower() == given.strip().lower()), given)
    lists = dict(zip(LISTS, (said.changed, said.tests, said.risks, said.blocking), strict=True))
    if refusal := _incomplete(kind, said, status, lists):
        return refusal
    named = {key: [one for one in items or () if one.strip().lower() != NONE] for key, items in lists.items()}
    following = f"{said.next_owner} ({said.next})" if said.next else said.next_owner
    fields = dict(zip(HANDOFF_KEYS, (subject, actor, status), strict=False)) | named | {"Next owner": following}
    about = f"Task: {said.task}" if said.task and said.task not in subject else ""
    see = f"See {', '.join(said.links)}" if said.links else ""
    body = "\n\n".join(part for part in (about, see, said.body) if part.strip())
    return worklog_text.entry(actor, subject, moment, worklog_text.block(fields), body)


def _incomplete(
    kind: EventType, said: Wording, status: str, lists: dict[str, tuple[str, ...] | None]
) -> AofError | None:
    """What a full handoff lacks."""
    if not status:
        return _missing("status", kind, f"give one of {', '.join(STATUSES)}; for one line, use quick")
    if (wrong := kernel_limits.choice("status", status, STATUSES)) is not None:
        return wrong
    if (kind == "task.completed") != (status == "Complete"):
        return InvalidInput(
            f"an entry of the type {kind} cannot have the status '{status}'",
            "use task.completed for work that is complete, and handoff.posted for the rest",
        )
    if said.next_owner is None:
        return _missing("next_owner", kind, "say who goes on, or Maintainer")
    lacking = next((key for key, items in lists.items() if items is None), None)
    if lacking is not None:
        return InvalidInput(f"a full handoff needs '{lacking}'", "give it; 'none' says that there are none")
    return None


def _quick(kind: EventType, said: Wording, subject: str, actor: str, moment: str) -> str | AofError:
    what = subject if kind != "task.claimed" or subject.lower().startswith("claimed") else f"claimed {subject}"
    if said.task and said.task not in what:
        what = f"{what}, {said.task}"
    result = said.result
    if kind == "task.completed" and "tests run" not in result.lower():
        tests = ", ".join(said.tests or ()) or NONE
        result = f"{result}; Tests run: {tests}" if result else f"Tests run: {tests}"
    if kind == "handoff.posted" and said.next_owner is None:
        return _missing("next_owner", kind, "say who goes on")
    line = worklog_text.quick_line(moment[11:16], actor, what, result, (said.next_owner or "", said.next))
    if not said.body.strip():
        return line
    more = contained(said.body, worklog_text.RESERVED).split("\n")
    return "\n".join([line, *(one for one in more if one.strip())])


def _reasons(said: Wording) -> list[tuple[str, str]]:
    if not said.reasons:
        return []
    return [("Reasoning", "\n".join(f"- {' '.join(reason.split())}" for reason in said.reasons))]


def _counter(said: Wording, actor: str) -> list[tuple[str, str]] | AofError:
    kind = "objection.raised"
    if not said.other:
        return _missing("other", kind, "name the agent that recommended it")
    if said.other == actor:
        return InvalidInput(f"{actor} cannot object to itself", "name the agent that recommended it")
    for name in ("recommended", "counter"):
        if not getattr(said, name).strip():
            return _missing(name, kind)
    if not said.reasons:
        return _missing("reasons", kind, "a counter-recommendation gives at least one reason")
    form = [
        (f"{said.other} recommended", said.recommended),
        (f"{actor}'s counter-recommendation", said.counter),
        *_reasons(said),
    ]
    if said.compromise:
        form.append(("Proposed compromise", said.compromise))
    return [*form, ("Agreed action", said.agreed or "open")]


def _proposal(kind: EventType, said: Wording, actor: str, moment: str) -> list[tuple[str, str]] | AofError:
    if said.proposal_id is None:
        return _missing("proposal_id", kind)
    if (
        wrong := kernel_limits.choice("proposal_status", said.proposal_status, worklog_text.PROPOSAL_STATUSES)
    ) is not None:
        return wrong
    values = {"ID": said.proposal_id, "Author": actor, "Date": moment[:10], "Status": said.proposal_status}
    for key, name in _PROPOSAL.items():
        given = getattr(said, name)
        text = "\n".join(f"- {one}" for one in given) if isinstance(given, tuple) else given or ""
        if not text.strip():
            return _missing(name, kind, f"a proposal says its '{key}'")
        values[key] = text
    return [(key, values[key]) for key in PROPOSAL_KEYS]


_QUICK_LINES: Final = 3
_QUICK_MINUTES: Final = 30
_SHOWN: Final = 60
_URL: Final = re.compile(r"<?https?://\S+>?\Z")
_SECTION: Final = re.compile(r"Session (\d+)")


def finding(code: str, line: int | None, detail: str, fix: str, severity: Severity = "error") -> Finding:
    """One problem of the file."""
    return Finding(code=code, severity=severity, at=(PATH,), detail=detail, fix=fix, line=line)


def entry_findings(known: Worklog, roster: Callable[[str], bool]) -> Iterator[Finding]:
    """What is wrong with single entries; `roster` says whether a name may be an owner."""
    loose: list[Entry] = []
    for entry in known.entries:
        yield from _of_entry(entry, roster)
        if entry.form == "none":
            loose.append(entry)
            body = entry.body.strip()
            if not body.endswith("?") or "\n\n" in body:
                what = f"{entry_name(entry)} has none of the forms of an entry"
                yield finding("unstructured", entry.line, what, "post a handoff, a decision or a proposal", "warning")
        elif loose:
            yield from _talk(loose)
            loose = []
    yield from _talk(loose)


def _of_entry(entry: Entry, roster: Callable[[str], bool]) -> Iterator[Finding]:
    if entry.form == "handoff":
        yield from _of_handoff(entry, roster)
    elif entry.form == "quick" and entry.text.count("\n") >= _QUICK_LINES:
        what = f"{entry_name(entry)} has more than {_QUICK_LINES} lines"
        yield finding("quick_too_long", entry.line, what, "write a full handoff", "warning")
    if entry.actor and entry.owner and entry.actor != entry.owner:
        what = f"the heading says {entry.actor}, and the block says {entry.owner}"
        yield finding("owner_differs", entry.line, what, "name one of them", "warning")
    yield from _readable(entry)


def _of_handoff(entry: Entry, roster: Callable[[str], bool]) -> Iterator[Finding]:
    for key in worklog_text.HANDOFF_KEYS:
        if key not in entry.fields:
            what = f"{entry_name(entry)} lacks '{key}'"
            yield finding("handoff_key_missing", entry.line, what, f"add '{key}: none' or what there is")
    status = str(entry.fields.get("Status", worklog_text.STATUSES[0]))
    if status not in worklog_text.STATUSES:
        there = ", ".join(worklog_text.STATUSES)
        yield finding(
            "handoff_status", entry.line, f"{entry_name(entry)} has the status '{status}'", f"use one of: {there}"
        )
    for key in ("Owner", "Next owner"):
        name = worklog_text.noted(str(entry.fields.get(key, "")))[0]
        if name and name.lower() != worklog_text.NONE and not roster(name):
            yield finding(
                "owner_unknown", entry.line, f"{entry_name(entry)}: nobody is called {name}", "use a known name"
            )


def _readable(entry: Entry) -> Iterator[Finding]:
    """A person must understand an entry without tools."""
    lines = entry.text.split("\n")
    for place, line in enumerate(lines):
        if re.match(r" {0,3}(```|~~~)[ \t]*dense\b", line):
            after = next((at for at in range(place + 1, len(lines)) if re.match(r" {0,3}(```|~~~)", lines[at])), place)
            if not (after + 1 < len(lines) and lines[after + 1].startswith("Paraphrase:")):
                fix = "say it in plain words: 'Paraphrase: …' right behind the block"
                yield finding(
                    "no_paraphrase", entry.line + place, f"{entry_name(entry)} has dense text only", fix, "warning"
                )
    if entry.form == "none" and _URL.match(entry.body.strip()):
        yield finding("only_a_link", entry.line, f"{entry_name(entry)} is only a link", "say what is there", "warning")


def _talk(loose: Sequence[Entry]) -> Iterator[Finding]:
    """Several loose entries in a row are a conversation."""
    if len(loose) > 2:  # noqa: PLR2004 - a question and an answer may be
        what = f"{len(loose)} entries in a row, from line {loose[0].line} to {loose[-1].line}, are free conversation"
        yield finding("chat_room", loose[0].line, what, "use the mailbox, or post a decision", "warning")


def log_findings(
    entries: Sequence[Entry], decisions: Sequence[Decided], events: Iterable[Event], text_of: EntryText
) -> Iterator[Finding]:
    """Entries and decisions that the log has and the file lacks, or has in another form."""
    known = list(events)
    for event, wanted, there in lost_entries(entries, known, text_of):
        author = event.payload.get("actor") or wanted.actor
        if there is None:
            what = f"{author} wrote {entry_name(wanted)} at {event.timestamp} (event {event.seq}), and it is gone"
            yield finding("entry_deleted", None, what, "'aof doctor --fix' puts it back")
        else:
            change = hand_edits.edit_difference(wanted.text, there.text)
            what = f"{author} wrote {entry_name(wanted)} (event {event.seq}), and it was changed: {change}"
            fix = "post a counter-recommendation instead; 'aof doctor --fix' undoes the change"
            yield finding("entry_edited", there.line, what, fix)
    yield from _of_rows(decisions, known)


def edit_findings(text: str) -> Iterator[Finding]:
    """Edits by hand that the file of edits keeps and that nobody has settled."""
    fix = "if it is meant, post a counter-recommendation or a further decision; then delete its section of that file"
    for line, edit in hand_edits.kept_edits(text):
        yield Finding(code="entry_edited", severity="error", at=(EDITS,), detail=edit.what, fix=fix, line=line)


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


def index_findings(known: Worklog, archived: Worklog) -> Iterator[Finding]:
    """Decisions without a row in the index, and rows that lead nowhere."""
    rows = [row.decision for row in (*known.decisions, *archived.decisions)]
    for entry in known.entries:
        if entry.form == "decision" and str(entry.fields["Decision"]).strip() not in rows:
            what = f"{entry_name(entry)} has no row in the Decision Index"
            yield finding("decision_without_row", entry.line, what, "add one; 'aof worklog decide' does both")
    sessions = {session.number for session in (*known.sessions, *archived.sessions)}
    headings = [f"{entry.actor}: {entry.subject}" for entry in (*archived.entries, *known.entries)]
    for row in known.decisions:
        section = _SECTION.search(row.section)
        resolved = (section is not None and int(section[1]) in sessions) or "MSG-" in row.section
        if not resolved and row.section not in headings:
            what = f"the row '{visible_line(row.decision)[:_SHOWN]}' names a section that is not there"
            yield finding("section_unknown", row.number, what, "name a session or an entry", "warning")


def link_findings(entries: Iterable[Entry], known: Callable[[str], bool]) -> Iterator[Finding]:
    """Links to records that do not exist."""
    entries = list(entries)
    own = {event_id(entry) for entry in entries}
    own |= {str(entry.fields["ID"]) for entry in entries if entry.form == "proposal"}
    for entry in entries:
        for link in links(entry):
            ours = re.match(r"(TASK|MSG|PROP|WL)-", link)
            if ours is not None and link not in own and not known(link):
                what = f"{entry_name(entry)} refers to {link}, which is not there"
                yield finding("link_unknown", entry.line, what, "correct the reference in a further entry", "warning")


def evidence_findings(entries: Iterable[Entry]) -> Iterator[Finding]:
    """Entries that complete something and do not say what was tested."""
    for entry in entries:
        if event_type(entry) == "task.completed" and entry.form == "handoff" and "Tests run" not in entry.fields:
            fix = "add 'Tests run: none' or what ran"
            yield finding("no_evidence", entry.line, f"{entry_name(entry)} does not say what was tested", fix)


def unreported_task_findings(entries: Iterable[Entry], done: Iterable[str]) -> Iterator[Finding]:
    """Tasks that are done although no entry completes them."""
    told: set[str] = set()
    for entry in entries:
        if event_type(entry) in ("task.completed", "handoff.posted", UNKNOWN):
            told.update(links(entry))
    for task_id in done:
        if task_id not in told:
            fix = f"aof worklog add --type task.completed --task {task_id} --agent …"
            yield finding("no_handoff", None, f"{task_id} is done, and no entry says so", fix)


def long_work_findings(entries: Sequence[Entry], minutes: dict[str, float]) -> Iterator[Finding]:
    """Quick lines for work that took long, where no full handoff says more."""
    full = {link for entry in entries if entry.form == "handoff" for link in links(entry)}
    for entry in entries:
        if entry.form != "quick" or event_type(entry) != "task.completed":
            continue
        for task_id in links(entry):
            if minutes.get(task_id, 0) > _QUICK_MINUTES and task_id not in full:
                what = f"{entry_name(entry)} is one line for {minutes[task_id]:.0f} minutes of work"
                fix = f"add a full handoff: aof worklog add --type task.completed --task {task_id} …"
                yield finding("quick_for_long_work", entry.line, what, fix, "warning")
