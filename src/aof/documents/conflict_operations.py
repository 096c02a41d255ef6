"""Operations on proposals and disagreements. Must not know how entries are written, nor any surface."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any

import msgspec

from aof.documents import conflicts, reading, worklog_rules
from aof.documents.conflicts import ConflictReview, Dispute, Proposal, Standing, standing
from aof.documents.mail_rules import TURN_BEGAN, TURN_ENDED
from aof.documents.worklog import ENTRY, EntryEnvelope, envelopes
from aof.documents.worklog_text import ARCHIVE, NAME, PATH, Entry, parse_entry, parse_worklog
from aof.errors import Call, ConflictNotFound
from aof.kernel.declarations import Family, Spelling, param
from aof.kernel.operation import operation
from aof.kernel.results import Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aof.kernel.context import CallContext, Environment


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


_FAMILY = Family(
    verb="conflict",
    help="see open proposals and disagreements, and settle them",
    default="list",
    example="aof conflict settle WL-0123456789abcdef 'use JSON Lines' --agent ada",
    section="team",
    order=50,
)
_conflict = partial(operation, family=_FAMILY, tier="mail")
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
    text: _Text,
    *,
    agent: _Agent | None = None,
    reasons: _Reasons = (),
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
    text: _Text,
    *,
    agent: _Agent | None = None,
    reasons: _Reasons = (),
    actor: str | None = None,
) -> Posted:
    """Go on with the lower-risk way for the time being; it waits for the maintainer's decision."""
    said = worklog_rules.Wording(
        subject=f"Lower-risk default: {text}", decides="Maintainer", reasons=tuple(reasons), links=(conflict_id,)
    )
    given = {"kind": "escalation.requested", "said": said, "conflict": conflict_id, "agent": agent, "actor": actor}
    return _posted(context, conflicts.Default, given)


def _posted(context: CallContext, kind: type[conflicts.Follow], given: dict[str, Any]) -> Posted:
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
    for event in environment.store.told((ENTRY, TURN_BEGAN)):
        if event.type == ENTRY:
            entry = parse_entry(event.payload["text"], event.timestamp[:10])
            (one,) = envelopes([entry])
            if entry.form == "counter":
                counts[one.event_id] = 0
        elif event.payload.get("agent") == agent:
            counts = {name: count + 1 for name, count in counts.items()}
    return counts


_MINUTE = 16  # characters of a moment up to its minute, which is as exact as the file is


def unseen_by(environment: Environment, agent: str) -> Callable[[EntryEnvelope], bool]:
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
    for event in environment.store.told((ENTRY, TURN_BEGAN, TURN_ENDED)):
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


_Text = Annotated[str, param("what was agreed, decided or is done meanwhile", Spelling(place="TEXT", also=("--text",)))]
_Agent = Annotated[str, param("agent that says it; else the caller", Spelling(metavar="A"))]
_Reasons = Annotated[Sequence[str], param("a reason", Spelling(option="--reason", metavar="T"))]
