"""Operations on the WORKLOG. Must not know any surface."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, UnsetType

from aof.app.documents.worklog import Compacted, DocumentCheck, Pinned, WorklogView
from aof.app.operations.spec import Cli, Family, Operation, Params, Spelling, one_of, param
from aof.documents.worklog.envelope import EntryEnvelope
from aof.documents.worklog.forms import PROPOSAL_STATUSES, STATUSES
from aof.documents.worklog.model import EventType

_WORKLOG = Family(
    verb="worklog",
    help="read and write the team's WORKLOG, check or compact it",
    place="what you work on, what was decided, or a file to check",
    example='aof worklog now --agent swe-backend "the parser"',
)
_TEXT = Spelling(place="TEXT", target="text", also=("--text",))

Speaker = Annotated[str, param("agent that says it; else the caller", Spelling(metavar="A"))] | UnsetType
Task = Annotated[str, param("task that it is about", Spelling(metavar="ID"))] | UnsetType
Body = Annotated[str, param("more about it", Spelling(stdin=True, metavar="T"))] | UnsetType
Reasons = Annotated[list[str], param("a reason", Spelling(option="--reason", metavar="T"))] | UnsetType
Links = (
    Annotated[list[str], param("entry, task, message, proposal or file that it refers to", Spelling(option="--link"))]
    | UnsetType
)
Level = (
    Annotated[int, param("level of the escalation ladder; 4 is the maintainer's", Spelling(metavar="N"), ge=1, le=4)]
    | UnsetType
)


class WorklogNow(Params, frozen=True, kw_only=True):
    """Whose line, and its text."""

    text: Annotated[str, param("what you work on now", _TEXT)]
    agent: Speaker = UNSET
    line: (
        Annotated[Literal["now", "focus", "checkpoint"], param("pinned line; the last two are the maintainer's")]
        | UnsetType
    ) = UNSET


class WorklogDecide(Params, frozen=True, kw_only=True):
    """What was decided, and by whom."""

    text: Annotated[str, param("the decision", _TEXT)]
    owner: Annotated[str, param("who decided; else the caller", Spelling(metavar="A"))] | UnsetType = UNSET
    reasons: Reasons = UNSET
    body: Body = UNSET
    task: Task = UNSET
    links: Links = UNSET
    level: Level = UNSET


class WorklogAdd(Params, frozen=True, kw_only=True):
    """An entry: what it needs depends on its type."""

    type: Annotated[EventType, param("type of the entry", Spelling(metavar="T"))]
    agent: Speaker = UNSET
    subject: Annotated[str, param("title of the entry", Spelling(metavar="S"))] | UnsetType = UNSET
    body: Body = UNSET
    task: Task = UNSET
    status: (
        Annotated[
            str,
            param("of a handoff: In progress, Ready for review, Ready for merge or Complete", says=one_of(STATUSES)),
        ]
        | UnsetType
    ) = UNSET
    changed: (
        Annotated[list[str], param("changed file, or none", Spelling(option="--changed", metavar="F"))] | UnsetType
    ) = UNSET
    tests: (
        Annotated[list[str], param("tests that ran with their result, or none", Spelling(option="--test"))] | UnsetType
    ) = UNSET
    risks: Annotated[list[str], param("risk or assumption, or none", Spelling(option="--risk"))] | UnsetType = UNSET
    blocking: Annotated[list[str], param("what is in the way, or none", Spelling(option="--blocking"))] | UnsetType = (
        UNSET
    )
    next_owner: Annotated[str, param("who goes on", Spelling(metavar="A"))] | UnsetType = UNSET
    next: Annotated[str, param("what the next owner does", Spelling(metavar="T"))] | UnsetType = UNSET
    result: Annotated[str, param("result, in a quick line", Spelling(metavar="T"))] | UnsetType = UNSET
    quick: Annotated[bool, param("one line in place of a full handoff")] | UnsetType = UNSET
    other: Annotated[str, param("agent whose recommendation it objects to", Spelling(metavar="A"))] | UnsetType = UNSET
    recommended: Annotated[str, param("what that agent recommended", Spelling(metavar="T"))] | UnsetType = UNSET
    counter: Annotated[str, param("what to do instead", Spelling(metavar="T"))] | UnsetType = UNSET
    reasons: Reasons = UNSET
    compromise: Annotated[str, param("proposed compromise", Spelling(metavar="T"))] | UnsetType = UNSET
    agreed: Annotated[str, param("agreed action, if there is one", Spelling(metavar="T"))] | UnsetType = UNSET
    proposal_id: Annotated[str, param("proposal to amend", Spelling(metavar="PROP"))] | UnsetType = UNSET
    scope: Annotated[str, param("scope of a proposal", Spelling(metavar="T"))] | UnsetType = UNSET
    proposal: Annotated[str, param("what is proposed", Spelling(stdin=True, metavar="T"))] | UnsetType = UNSET
    rollback: Annotated[str, param("how to undo what is proposed", Spelling(metavar="T"))] | UnsetType = UNSET
    deadline: Annotated[str, param("until when somebody may object", Spelling(metavar="T"))] | UnsetType = UNSET
    proposal_status: (
        Annotated[
            str,
            param(
                "proposal: open, accepted, rejected or superseded",
                Spelling(metavar="S"),
                says=one_of(PROPOSAL_STATUSES),
            ),
        ]
        | UnsetType
    ) = UNSET
    decides: Annotated[str, param("who must decide what is escalated", Spelling(metavar="A"))] | UnsetType = UNSET
    links: Links = UNSET
    level: Level = UNSET


class WorklogShow(Params, frozen=True, kw_only=True):
    """Which entries."""

    type: Annotated[EventType, param("only entries of this type", Spelling(metavar="T"))] | UnsetType = UNSET
    agent: Annotated[str, param("only entries of this agent", Spelling(metavar="A"))] | UnsetType = UNSET
    task: Annotated[str, param("only entries about this task", Spelling(metavar="ID"))] | UnsetType = UNSET
    limit: Annotated[int, param("only the last so many", Spelling(metavar="N"), ge=0)] | UnsetType = UNSET
    archived: Annotated[bool, param("archived sessions too")] | UnsetType = UNSET
    unseen_by: Annotated[str, param("only what this agent cannot have read yet", Spelling(metavar="A"))] | UnsetType = (
        UNSET
    )


class WorklogCheck(Params, frozen=True, kw_only=True):
    """A text to check by itself; none: the WORKLOG, held against the log."""

    text: Annotated[str, param("a WORKLOG to check by itself", Spelling(place="[FILE]", target="text"))] | UnsetType = (
        UNSET
    )


class WorklogCompact(Params, frozen=True, kw_only=True):
    """Who does it."""

    agent: Speaker = UNSET


ROWS: tuple[Operation, ...] = (
    Operation(
        name="worklog_now",
        parameters=WorklogNow,
        result=Pinned,
        help="Say what an agent works on now: its pinned line in the WORKLOG.",
        effect="write",
        tool="aof_worklog_now",
        verb="worklog now",
        cli=Cli(section="team", order=50, example='aof worklog now --agent ada "the parser"', family=_WORKLOG),
        tier="mail",
        acts="agent",
    ),
    Operation(
        name="worklog_add",
        parameters=WorklogAdd,
        result=EntryEnvelope,
        help="Post an entry to the WORKLOG: a handoff, proposal, objection, decision or escalation.",
        effect="append",
        tool="aof_worklog_add",
        verb="worklog add",
        cli=Cli(
            section="team",
            order=50,
            example='aof worklog add --type handoff.posted --quick --subject "parser ready" --next-owner bob',
            family=_WORKLOG,
        ),
        tier="mail",
        acts="agent",
    ),
    Operation(
        name="worklog_decide",
        parameters=WorklogDecide,
        result=EntryEnvelope,
        help="Record a decision: an entry and a row in the decision index.",
        effect="append",
        tool="aof_worklog_decide",
        verb="worklog decide",
        cli=Cli(section="team", order=50, example='aof worklog decide --owner ada "use SQLite"', family=_WORKLOG),
        tier="mail",
        acts="owner",
    ),
    Operation(
        name="worklog_show",
        parameters=WorklogShow,
        result=WorklogView,
        help="The pinned lines, decisions and entries of the WORKLOG, as JSON envelopes.",
        effect="read",
        tool="aof_worklog_show",
        verb="worklog show",
        cli=Cli(section="team", order=50, example="aof worklog show --limit 10", family=_WORKLOG),
        tier="mail",
    ),
    Operation(
        name="worklog_check",
        parameters=WorklogCheck,
        result=DocumentCheck,
        help="What is wrong with the WORKLOG: entries that were edited or deleted, and lines that cannot be read.",
        effect="read",
        tool="aof_worklog_check",
        verb="worklog check",
        cli=Cli(section="team", order=50, example="aof worklog check", family=_WORKLOG),
        tier="mail",
    ),
    Operation(
        name="worklog_compact",
        parameters=WorklogCompact,
        result=Compacted,
        help="Move the finished sessions of the WORKLOG to its archive.",
        effect="write",
        tool="aof_worklog_compact",
        verb="worklog compact",
        cli=Cli(section="team", order=50, example="aof worklog compact", family=_WORKLOG),
        tier="mail",
        acts="agent",
        needs="lead",
    ),
)
