"""The parts of a WORKLOG, as they were read. Must not know how they are written down."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from aof.core.validation.findings import Finding

NAME: Final = "WORKLOG"
PATH: Final = "WORKLOG.md"
ARCHIVE: Final = "WORKLOG_ARCHIVE.md"
EDITS: Final = "WORKLOG_EDITS.md"
CHARTER: Final = "SESSION_CHARTER.md"
LONGEST: Final = 500  # lines, after which compaction is proposed
UNKNOWN: Final = "unknown"
IDLE: Final = "idle"
FOCUS, CHECKPOINT = "Maintainer Focus", "Next Review Checkpoint"

EventType = Literal[
    "task.claimed",
    "task.completed",
    "handoff.posted",
    "proposal.created",
    "proposal.amended",
    "objection.raised",
    "decision.recorded",
    "escalation.requested",
]
Form = Literal["quick", "handoff", "counter", "proposal", "decision", "escalation", "none"]


class StatusLine(msgspec.Struct, frozen=True):
    """One line of the pinned block: `key` is an agent, or the name of one of the maintainer's lines."""

    number: int
    key: str
    text: str
    agent: bool


class Decided(msgspec.Struct, frozen=True):
    """One row of the decision index."""

    number: int
    decision: str
    owner: str
    timestamp: str
    section: str


class Archived(msgspec.Struct, frozen=True):
    """One row of the table of archived sessions."""

    number: int
    session: str
    date: str
    summary: str


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One entry: where it stands, what it says of itself, and its text with plain line feeds and no blank ends.

    `fields` are what its form names; `body` is the rest. `time` is `HH:MM`, `date` a day; either may be unknown.
    """

    line: int
    session: int
    form: Form
    actor: str
    subject: str
    text: str
    date: str = ""
    time: str = ""
    owner: str = ""
    fields: dict[str, Any] = {}
    body: str = ""

    @property
    def anchor(self) -> tuple[str, str, str, str]:
        """What an entry is recognised by, also where somebody has changed what it says."""
        return self.date, self.time, self.actor, "" if self.form == "quick" else self.subject


class WorklogSession(msgspec.Struct, frozen=True, kw_only=True):
    """A section of entries: its lines reach from `begin` to before `end`."""

    number: int
    date: str
    begin: int
    end: int
    entries: tuple[Entry, ...]


class Worklog(msgspec.Struct, frozen=True, kw_only=True):
    """A whole file. `index` is the number of the line behind the decision table, `status_end` behind the block."""

    title: str
    status: tuple[StatusLine, ...] = ()
    status_end: int = 0
    decisions: tuple[Decided, ...] = ()
    index_end: int = 0
    archived: tuple[Archived, ...] = ()
    archived_end: int = 0
    sessions: tuple[WorklogSession, ...] = ()
    last_is_session: bool = False
    lines: int = 0
    findings: tuple[Finding, ...] = ()

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Every entry, oldest first."""
        return tuple(entry for session in self.sessions for entry in session.entries)
