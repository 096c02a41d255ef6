"""Operations on the WORKLOG, and on the proposals and disagreements in it.

And the check that holds file, archive, log and tasks against each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Annotated, Any, Literal

import msgspec

from aof.documents import conflicts, hand_edits, mail_rules, projection, reading, worklog, worklog_rules
from aof.documents.conflicts import ConflictReview, Dispute, PostObjection, Proposal, Standing, standing
from aof.documents.mail_rules import TURN_BEGAN, TURN_ENDED
from aof.documents.projection import lock_of
from aof.documents.worklog import ENTRY, EntryEnvelope, envelopes
from aof.documents.worklog_text import (
    ARCHIVE,
    CHARTER,
    EDITS,
    NAME,
    PATH,
    PROPOSAL_STATUSES,
    STATUSES,
    Entry,
    EventType,
    Worklog,
    last_session,
    parse_entry,
    parse_worklog,
    session_id,
)
from aof.errors import AofError, Call, ConflictNotFound
from aof.kernel import limits as kernel_limits
from aof.kernel import unit_of_work
from aof.kernel.declarations import one_of, param
from aof.kernel.findings import Finding
from aof.kernel.model import OURSELVES, iso, millis
from aof.kernel.operation import Family, Spelling, method, operation
from aof.kernel.results import Result
from aof.store.port import Scope

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.kernel.context import CallContext, Environment, Lookup
    from aof.kernel.events import Draft, Event


class Pinned(Result, frozen=True, kw_only=True):
    """A line of the pinned block."""

    key: str
    text: str


class WorklogView(Result, frozen=True, kw_only=True):
    """What the WORKLOG says: pinned lines, decisions and entries, and up to which moment and event that is known."""

    as_of: str
    seq: int
    status: list[dict[str, str]]
    decisions: list[dict[str, str]]
    total: int
    entries: list[dict[str, Any]]


class DocumentCheck(Result, frozen=True, kw_only=True):
    """What is wrong with a document; warnings alone leave it valid."""

    ok: bool
    problems: list[dict[str, Any]]


class Compacted(Result, frozen=True, kw_only=True):
    """The sessions that were moved to the archive."""

    moved: list[int]
    archive: str
    lines: int


_FAMILY = Family(
    verb="worklog",
    help="read and write the team's WORKLOG, check or compact it",
    place="what you work on, what was decided, or a file to check",
    example='aof worklog now --agent swe-backend "the parser"',
    section="team",
    order=50,
)
_worklog = partial(operation, family=_FAMILY, tier="mail")
Speaker = Annotated[str, param("agent that says it; else the caller", Spelling(metavar="A"))]
Task = Annotated[str, param("task that it is about", Spelling(metavar="ID"))]
Body = Annotated[str, param("more about it", Spelling(stdin=True, metavar="T"))]
Reasons = Annotated[Sequence[str], param("a reason", Spelling(option="--reason", metavar="T"))]
Links = Annotated[
    Sequence[str], param("entry, task, message, proposal or file that it refers to", Spelling(option="--link"))
]
Level = Annotated[
    int, param("level of the escalation ladder; 4 is the maintainer's", Spelling(metavar="N"), ge=1, le=4)
]
_TEXT = Spelling(place="TEXT", target="text", also=("--text",))


@_worklog(effect="write", example='aof worklog now --agent ada "the parser"', acts="agent")
def worklog_now(
    context: CallContext,
    text: Annotated[str, param("what you work on now", _TEXT)],
    *,
    agent: Speaker | None = None,
    line: Annotated[
        Literal["now", "focus", "checkpoint"], param("pinned line; the last two are the maintainer's")
    ] = "now",
    actor: str | None = None,
) -> Pinned:
    """Say what an agent works on now: its pinned line in the WORKLOG."""
    given = {"text": text, "line": line, "agent": agent, "actor": actor}
    done = context.dispatch(context.dispatcher.command(worklog_rules.SetStatus, given))
    payload = done.events[-1].payload
    return Pinned(key=payload["key"], text=payload["text"])


@_worklog(
    effect="append",
    example='aof worklog add --type handoff.posted --quick --subject "parser ready" --next-owner bob',
    acts="agent",
)
def worklog_add(
    context: CallContext,
    type: Annotated[EventType, param("type of the entry", Spelling(metavar="T"))],  # noqa: A002 - the word of the entry
    *,
    agent: Speaker | None = None,
    subject: Annotated[str, param("title of the entry", Spelling(metavar="S"))] = "",
    body: Body = "",
    task: Task | None = None,
    status: Annotated[
        str,
        param("of a handoff: In progress, Ready for review, Ready for merge or Complete", says=one_of(STATUSES)),
    ]
    | None = None,
    changed: Annotated[Sequence[str], param("changed file, or none", Spelling(option="--changed", metavar="F"))]
    | None = None,
    tests: Annotated[Sequence[str], param("tests that ran with their result, or none", Spelling(option="--test"))]
    | None = None,
    risks: Annotated[Sequence[str], param("risk or assumption, or none", Spelling(option="--risk"))] | None = None,
    blocking: Annotated[Sequence[str], param("what is in the way, or none", Spelling(option="--blocking"))]
    | None = None,
    next_owner: Annotated[str, param("who goes on", Spelling(metavar="A"))] | None = None,
    next: Annotated[str, param("what the next owner does", Spelling(metavar="T"))] = "",  # noqa: A002 - the word of the entry
    result: Annotated[str, param("result, in a quick line", Spelling(metavar="T"))] = "",
    quick: Annotated[bool, param("one line in place of a full handoff")] = False,
    other: Annotated[str, param("agent whose recommendation it objects to", Spelling(metavar="A"))] | None = None,
    recommended: Annotated[str, param("what that agent recommended", Spelling(metavar="T"))] = "",
    counter: Annotated[str, param("what to do instead", Spelling(metavar="T"))] = "",
    reasons: Reasons = (),
    compromise: Annotated[str, param("proposed compromise", Spelling(metavar="T"))] = "",
    agreed: Annotated[str, param("agreed action, if there is one", Spelling(metavar="T"))] = "",
    proposal_id: Annotated[str, param("proposal to amend", Spelling(metavar="PROP"))] | None = None,
    scope: Annotated[str, param("scope of a proposal", Spelling(metavar="T"))] = "",
    proposal: Annotated[str, param("what is proposed", Spelling(stdin=True, metavar="T"))] = "",
    rollback: Annotated[str, param("how to undo what is proposed", Spelling(metavar="T"))] = "",
    deadline: Annotated[str, param("until when somebody may object", Spelling(metavar="T"))] = "",
    proposal_status: Annotated[
        str,
        param(
            "proposal: open, accepted, rejected or superseded",
            Spelling(metavar="S"),
            says=one_of(PROPOSAL_STATUSES),
        ),
    ] = "open",
    decides: Annotated[str, param("who must decide what is escalated", Spelling(metavar="A"))] | None = None,
    links: Links = (),
    level: Level | None = None,
    actor: str | None = None,
) -> EntryEnvelope:
    """Post an entry to the WORKLOG: a handoff, proposal, objection, decision or escalation."""
    kinds = EventType.__args__  # type: ignore[attr-defined]
    if problem := kernel_limits.choice("type", type, kinds):
        raise problem
    full = context.environment.lookup.resolve(task) if task else None
    changed, tests, risks, blocking = (
        None if items is None else tuple(items) for items in (changed, tests, risks, blocking)
    )
    said = worklog_rules.Wording(
        subject=subject,
        body=body,
        task=full,
        status=status,
        changed=changed,
        tests=tests,
        risks=risks,
        blocking=blocking,
        next_owner=next_owner,
        next=next,
        result=result,
        quick=quick,
        other=other,
        recommended=recommended,
        counter=counter,
        reasons=tuple(reasons),
        compromise=compromise,
        agreed=agreed,
        proposal_id=proposal_id,
        scope=scope,
        proposal=proposal,
        rollback=rollback,
        deadline=deadline,
        proposal_status=proposal_status,
        decides=decides,
        links=tuple(links),
    )
    given: dict[str, Any] = {"kind": type, "said": said, "level": level, "agent": agent, "actor": actor}
    if type == "objection.raised":
        given["turns"] = turns_since(context.environment, agent or actor or context.actor, links)
        return _post(context, context.dispatcher.command(PostObjection, given))
    return _post(context, context.dispatcher.command(worklog_rules.PostEntry, given))


@_worklog(effect="append", example='aof worklog decide --owner ada "use SQLite"', acts="owner")
def worklog_decide(
    context: CallContext,
    text: Annotated[str, param("the decision", _TEXT)],
    *,
    owner: Annotated[str, param("who decided; else the caller", Spelling(metavar="A"))] | None = None,
    reasons: Reasons = (),
    body: Body = "",
    task: Task | None = None,
    links: Links = (),
    level: Level | None = None,
    actor: str | None = None,
) -> EntryEnvelope:
    """Record a decision: an entry and a row in the decision index."""
    return worklog_add(
        context,
        "decision.recorded",
        agent=owner,
        subject=text,
        reasons=reasons,
        body=body,
        task=task,
        links=links,
        level=level,
        actor=actor,
    )


def _post(context: CallContext, command: Any) -> EntryEnvelope:
    done = context.dispatch(command)
    event = done.events[-1]
    here = context.environment
    note, texts = reading.noted(here, NAME, CHARTER)
    session, end = session_id(texts[CHARTER]), worklog.end_of_file(note)
    if end is not None:  # the file is long, and the note about it tells
        number = end.session
    else:
        with here.store.unit(Scope()) as unit:
            number = last_session(unit.document(PATH))
    entry = parse_entry(event.payload["text"], event.timestamp[:10], number)
    (found,) = worklog.envelopes([entry], session)
    kind = event.payload["type"]
    return found if found.event_type == kind else msgspec.structs.replace(found, event_type=kind)


@_worklog(effect="read", example="aof worklog show --limit 10")
def worklog_show(
    context: CallContext,
    *,
    type: Annotated[EventType, param("only entries of this type", Spelling(metavar="T"))] | None = None,  # noqa: A002 - the word of the entry
    agent: Annotated[str, param("only entries of this agent", Spelling(metavar="A"))] | None = None,
    task: Annotated[str, param("only entries about this task", Spelling(metavar="ID"))] | None = None,
    limit: Annotated[int, param("only the last so many", Spelling(metavar="N"), ge=0)] | None = None,
    archived: Annotated[bool, param("archived sessions too")] = False,
    unseen_by: Annotated[str, param("only what this agent cannot have read yet", Spelling(metavar="A"))] | None = None,
) -> WorklogView:
    """The pinned lines, decisions and entries of the WORKLOG, as JSON envelopes.

    `unseen_by` gives only what an agent cannot have read: what was posted since its latest turn began.
    """
    full = context.environment.lookup.resolve(task) if task else None
    unseen = since_latest_turn(context.environment, unseen_by) if unseen_by is not None else None

    def wanted(one: EntryEnvelope) -> bool:
        return (
            type in (None, one.event_type)
            and agent in (None, one.actor)
            and (full is None or full in one.links)
            and (unseen is None or unseen(one))
        )

    return _view(context, wanted, limit, archived=archived)


@method
def catch_up(context: CallContext, agent: str, limit: int) -> WorklogView:
    """What an agent reads when its turn begins: with what others posted since its previous one, archived or not."""
    return _view(context, since_previous_turn(context.environment, agent), limit, archived=True)


def _view(
    context: CallContext, wanted: Callable[[EntryEnvelope], bool], limit: int | None, *, archived: bool
) -> WorklogView:
    here = context.environment
    seq, now = here.store.head(), here.clock.now()
    found = reading.texts(here, NAME, PATH, ARCHIVE, CHARTER)
    known, old = parse_worklog(found[PATH]), parse_worklog(found[ARCHIVE])
    entries = (*old.entries, *known.entries)
    every = list(worklog.envelopes(entries, session_id(found[CHARTER])))[0 if archived else len(old.entries) :]
    shown = [one for one in every if wanted(one)]
    last = shown if limit is None else shown[max(len(shown) - limit, 0) :]
    return WorklogView(
        as_of=iso(now),
        seq=seq,
        status=[{"key": one.key, "text": one.text} for one in known.status],
        decisions=[
            {"decision": one.decision, "owner": one.owner, "timestamp": one.timestamp, "section": one.section}
            for one in known.decisions
        ],
        total=len(shown),
        entries=[msgspec.to_builtins(one) for one in last],
    )


@_worklog(effect="read", example="aof worklog check")
def worklog_check(
    context: CallContext,
    text: Annotated[str, param("a WORKLOG to check by itself", Spelling(place="[FILE]", target="text"))] | None = None,
) -> DocumentCheck:
    """What is wrong with the WORKLOG: entries that were edited or deleted, and lines that cannot be read."""
    here = context.environment
    findings = list(_text_findings(here, text) if text is not None else file_findings(here))
    ok = all(finding.severity != "error" for finding in findings)
    return DocumentCheck(ok=ok, problems=[finding.as_dict() for finding in findings])


@_worklog(effect="write", example="aof worklog compact", acts="agent", needs="lead")
def worklog_compact(context: CallContext, *, agent: Speaker | None = None, actor: str | None = None) -> Compacted:
    """Move the finished sessions of the WORKLOG to its archive."""
    done = context.dispatch(context.dispatcher.command(worklog_rules.Compact, {"agent": agent, "actor": actor}))
    moved = [one["session"] for event in done.events for one in event.payload["sessions"]]
    text = reading.texts(context.environment, NAME, PATH)[PATH]
    return Compacted(moved=moved, archive=ARCHIVE, lines=parse_worklog(text).lines)


_MAILBOX = ("MAILBOX.md", "MAILBOX_ARCHIVE.md")


def _text_findings(environment: Environment, text: str) -> Iterator[Finding]:
    """What is wrong with a text by itself."""
    known = parse_worklog(text)
    yield from known.findings
    yield from _of_parts(environment, known, Worklog(title=""))


def file_findings(environment: Environment) -> Iterator[Finding]:
    """What is wrong with the WORKLOG as it will be after it catches up, also where it differs from the log."""
    store = environment.store
    found = reading.foreseen(environment, NAME, PATH, ARCHIVE, EDITS, *_MAILBOX)
    known, old = parse_worklog(found[PATH]), parse_worklog(found[ARCHIVE])
    entries = (*old.entries, *known.entries)
    types = worklog.WorklogDocument(environment.policy).types
    events = [event for event in store.events() if event.type.startswith(types)]
    yield from known.findings
    yield from _of_parts(environment, known, old)
    yield from worklog_rules.log_findings(entries, known.decisions, events, _said(environment))
    yield from worklog_rules.edit_findings(found[EDITS])
    yield from worklog_rules.link_findings(entries, lambda link: _exists(environment, link, found))
    done = store.find(environment.read_models.query(status="done")).tasks
    yield from worklog_rules.unreported_task_findings(entries, (task.id for task in done))
    yield from worklog_rules.long_work_findings(known.entries, _minutes(events))
    answered: dict[str, set[str]] = {}  # who has answered each message
    for event in store.events_of_types((mail_rules.CHANGED, mail_rules.CLOSED)):
        _, ack = mail_rules.change_in(event.payload)
        answered.setdefault(event.payload["messageId"], set()).add(ack.actor)
    for one in conflicts.unproven_agreements(entries, answered):
        yield worklog_rules.finding(one.code, one.line, one.detail, "link to where that agent says so", one.severity)


def restore(environment: Environment) -> None:
    """Put back entries that were deleted, as the log has them, and move edits by hand to the log."""
    if _restored(environment, reading.foreseen(environment, NAME, PATH, ARCHIVE, EDITS)) is None:
        return  # nothing is written where nothing is to be put back
    draft = _restored(environment, reading.texts(environment, NAME, PATH, ARCHIVE, EDITS))
    if draft is None:
        return
    names, policy = frozenset({lock_of(NAME)}), reading.policy_of(environment)
    with environment.store.unit(Scope(names=names)) as unit:
        unit.commit((draft,), actor=OURSELVES, agent=None, now=environment.clock.now())
        unit_of_work.follow(unit, names, policy)


def _restored(environment: Environment, found: dict[str, str]) -> Draft | None:
    """The event that puts back what the documents lack; None where they lack nothing."""
    entries = (*parse_worklog(found[ARCHIVE]).entries, *parse_worklog(found[PATH]).entries)
    types = worklog.WorklogDocument(environment.policy).types
    events = (event for event in environment.store.events() if event.type.startswith(types))
    lost = worklog.lost_entries(entries, events, _said(environment))
    return worklog.restoration_draft(lost, (edit for _, edit in hand_edits.kept_edits(found[EDITS])))


def _of_parts(environment: Environment, known: Worklog, archived: Worklog) -> Iterator[Finding]:
    policy = reading.policy_of(environment)
    yield from worklog_rules.entry_findings(
        known, lambda name: name.lower() == "maintainer" or projection.stranger(policy, name) is None
    )
    yield from worklog_rules.evidence_findings(known.entries)
    yield from worklog_rules.index_findings(known, archived)
    if known.lines > policy.worklog.longest:
        what = f"the file has {known.lines} lines, more than {policy.worklog.longest}"
        yield worklog_rules.finding("long", known.lines, what, "let a maintainer run 'aof worklog compact'", "warning")


def _said(environment: Environment) -> worklog.EntryText:
    """The entry of an event, with the title that its task has now."""
    return worklog.EntryTexts(_Titles(environment.lookup)).of


class _Titles:
    """What a line is made from beside its event."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup

    def title(self, task_id: str) -> str | None:
        try:
            return self._lookup.get(task_id).title
        except AofError:
            return None

    def held_by(self, agent: str) -> tuple[str, ...]:  # noqa: ARG002 - the contract's form
        return ()


def _exists(environment: Environment, link: str, found: dict[str, str]) -> bool:
    if link.startswith("TASK-"):
        return link in environment.store.ids(link)
    return link.startswith("MSG-") and any(link in found[path] for path in _MAILBOX)


def _minutes(events: Sequence[Event]) -> dict[str, float]:
    """How long the run took that completed each task."""
    began: dict[str | None, int] = {}
    took: dict[str, float] = {}
    for event in events:
        if event.type == "task.attempt.started":
            began[event.run_id] = millis(event.timestamp)
        elif event.type == "task.completed" and event.run_id in began:
            took[event.task_id] = (millis(event.timestamp) - began[event.run_id]) / 60_000
    return took


class Conflicts(Result, frozen=True, kw_only=True):
    """What is open: proposals, disagreements, and what waits for the maintainer."""

    proposals: tuple[Proposal, ...]
    disputes: tuple[Dispute, ...]
    reviews: tuple[ConflictReview, ...]


class ConflictShown(Result, frozen=True, kw_only=True):
    """One proposal, disagreement or escalation, and every entry that belongs to it, oldest first."""

    conflict_id: str
    kind: str
    state: str
    standing: dict[str, Any]
    entries: list[dict[str, Any]]


class Posted(Result, frozen=True, kw_only=True):
    """The entry that was posted."""

    event_id: str
    event_type: str
    actor: str
    subject: str
    links: list[str]


_CONFLICTS = Family(
    verb="conflict",
    help="see open proposals and disagreements, and settle them",
    default="list",
    example="aof conflict settle WL-0123456789abcdef 'use JSON Lines' --agent ada",
    section="team",
    order=50,
)
_Settlement = Annotated[
    str, param("what was agreed, decided or is done meanwhile", Spelling(place="TEXT", also=("--text",)))
]
_conflict = partial(operation, family=_CONFLICTS, tier="mail")
_Id = Annotated[
    str, param("proposal (PROP-001), counter-recommendation or escalation (WL-…)", Spelling(place="CONFLICT"))
]


@_conflict(effect="read", example="aof conflict")
def conflict_list(
    context: CallContext, *, settled: Annotated[bool, param("also those that are settled")] = False
) -> Conflicts:
    """Open proposals and disagreements, and what waits for the maintainer."""
    known = _standing(context)
    over = ("decided", "accepted", "rejected", "superseded")
    return Conflicts(
        proposals=tuple(one for one in known.proposals if settled or one.state not in over),
        disputes=tuple(one for one in known.disputes if settled or one.is_open),
        reviews=known.reviews,
    )


@_conflict(effect="read", example="aof conflict show PROP-001")
def conflict_show(context: CallContext, conflict_id: _Id) -> ConflictShown:
    """A proposal or a disagreement with everything that belongs to it."""
    known = _standing(context)
    dispute = known.dispute(conflict_id)
    every: list[Proposal | Dispute | ConflictReview] = [*known.proposals, *known.reviews]
    found = dispute or next((one for one in every if one.id == conflict_id), None)
    if found is None:
        raise ConflictNotFound(
            f"no proposal, disagreement or escalation is called {conflict_id[:80]!r}",
            "see what is open",
            Call("conflict_list", {}),
        )
    parts: tuple[str, ...] = ()
    state = "open"
    if isinstance(found, Proposal):
        parts, state = tuple(version.event_id for version in found.versions), found.state
    elif isinstance(found, Dispute):
        parts, state = found.rebuttals, "open" if found.is_open else "settled"
    names = {found.id, *parts}
    mine = [one for one in envelopes(_entries(context)) if one.event_id in names or names & {*one.links}]
    return ConflictShown(
        conflict_id=found.id,
        kind=type(found).__name__.lower(),
        state=state,
        standing=msgspec.to_builtins(found),
        entries=[msgspec.to_builtins(one) for one in mine],
    )


@_conflict(effect="append", example="aof conflict settle PROP-001 'we do it'", acts="agent")
def conflict_settle(
    context: CallContext,
    conflict_id: _Id,
    text: _Settlement,
    *,
    agent: Speaker | None = None,
    reasons: Reasons = (),
    actor: str | None = None,
) -> Posted:
    """Record what was agreed or decided, as a decision that links back."""
    # A decision about an escalation is one about what was escalated too.
    review = next((one for one in _standing(context).reviews if one.id == conflict_id), None)
    about = tuple(link for link in review.about if link.startswith(("WL-", "PROP-", "MSG-"))) if review else ()
    links = (conflict_id, *about)
    said = worklog_rules.Wording(subject=text, reasons=tuple(reasons), links=links)
    given = {"kind": "decision.recorded", "said": said, "conflict": conflict_id, "agent": agent, "actor": actor}
    return _posted(context, conflicts.SettleConflict, given)


@_conflict(effect="append", example="aof conflict default WL-0123456789abcdef 'keep the old format'", acts="agent")
def conflict_default(
    context: CallContext,
    conflict_id: _Id,
    text: _Settlement,
    *,
    agent: Speaker | None = None,
    reasons: Reasons = (),
    actor: str | None = None,
) -> Posted:
    """Go on with the lower-risk way for the time being; it waits for the maintainer's decision."""
    said = worklog_rules.Wording(
        subject=f"Lower-risk default: {text}", decides="Maintainer", reasons=tuple(reasons), links=(conflict_id,)
    )
    given = {"kind": "escalation.requested", "said": said, "conflict": conflict_id, "agent": agent, "actor": actor}
    return _posted(context, conflicts.PostDefault, given)


def _posted(context: CallContext, kind: type[conflicts.ConflictEntry], given: dict[str, Any]) -> Posted:
    done = context.dispatch(context.dispatcher.command(kind, given))
    event = done.events[-1]
    entry = parse_entry(event.payload["text"], event.timestamp[:10])
    (one,) = envelopes([entry])
    return Posted(
        event_id=one.event_id,
        event_type=event.payload["type"],
        actor=one.actor,
        subject=one.subject,
        links=one.links,
    )


def _entries(context: CallContext) -> list[Entry]:
    found = reading.texts(context.environment, NAME, PATH, ARCHIVE)
    return [*parse_worklog(found[ARCHIVE]).entries, *parse_worklog(found[PATH]).entries]


def _standing(context: CallContext) -> Standing:
    return standing(_entries(context), context.environment.clock.now())


def turns_since(environment: Environment, agent: str, links: Sequence[str]) -> dict[str, int]:
    """How many turns of an agent have begun since each counter-recommendation was posted; none where nothing links."""
    if not any(link.startswith("WL-") for link in links):
        return {}
    counts: dict[str, int] = {}
    for event in environment.store.events_of_types((ENTRY, TURN_BEGAN)):
        if event.type == ENTRY:
            entry = parse_entry(event.payload["text"], event.timestamp[:10])
            (one,) = envelopes([entry])
            if entry.form == "counter":
                counts[one.event_id] = 0
        elif event.payload.get("agent") == agent:
            counts = {name: count + 1 for name, count in counts.items()}
    return counts


_MINUTE = 16  # characters of a moment up to its minute, which is as exact as the file is


def since_latest_turn(environment: Environment, agent: str) -> Callable[[EntryEnvelope], bool]:
    """Says of an entry whether it was posted after the agent's latest turn began; everything is, before its first."""
    return _after(environment, agent, in_turn=False)


def since_previous_turn(environment: Environment, agent: str) -> Callable[[EntryEnvelope], bool]:
    """Says of an entry whether others posted it after the agent's previous turn began: the last one that has ended.

    That stays the same during a turn, however often the agent asks, and after one that broke off.
    """
    unseen = _after(environment, agent, in_turn=True)
    return lambda one: one.actor != agent and unseen(one)


def _after(environment: Environment, agent: str, *, in_turn: bool) -> Callable[[EntryEnvelope], bool]:
    latest, ended, posted = (0, ""), (0, ""), dict[str, int]()
    for event in environment.store.events_of_types((ENTRY, TURN_BEGAN, TURN_ENDED)):
        if event.type == ENTRY:
            (one,) = envelopes([parse_entry(event.payload["text"], event.timestamp[:10])])
            posted[one.event_id] = event.seq
        elif event.payload.get("agent") != agent:
            continue
        elif event.type == TURN_BEGAN:
            latest = event.seq, event.timestamp
        else:
            ended = latest
    turn, moment = ended if in_turn else latest

    def unseen(one: EntryEnvelope) -> bool:
        seq = posted.get(one.event_id)
        return seq > turn if seq is not None else one.timestamp[:_MINUTE] >= moment[:_MINUTE]

    return unseen
