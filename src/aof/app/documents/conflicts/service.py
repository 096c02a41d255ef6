"""Operations on proposals and disagreements. Must not know how entries are written, nor any surface."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from aof.app.documents import reading
from aof.app.operations.results import Result
from aof.core.documents.mailbox.facts import TURN_BEGAN
from aof.core.errors.base import Call
from aof.core.errors.conflicts import ConflictNotFound
from aof.documents.conflicts import commands
from aof.documents.conflicts.standing import ConflictReview, Dispute, Proposal, Standing, standing
from aof.documents.worklog import wording
from aof.documents.worklog.envelope import envelopes
from aof.documents.worklog.model import ARCHIVE, NAME, PATH, Entry
from aof.documents.worklog.parser import parse, parse_entry
from aof.documents.worklog.restoration import ENTRY

if TYPE_CHECKING:
    from aof.app.commands.context import Environment
    from aof.app.commands.dispatcher import Dispatcher


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


class ConflictService:
    """Shows where conflicts stand, and settles them."""

    def __init__(self, environment: Environment, dispatcher: Dispatcher) -> None:
        self._environment = environment
        self._dispatcher = dispatcher

    def conflict_list(self, *, settled: bool = False) -> Conflicts:
        """Open proposals and disagreements, and what waits for the maintainer; `settled` shows those that are over."""
        known = self._standing()
        over = ("decided", "accepted", "rejected", "superseded")
        return Conflicts(
            proposals=tuple(one for one in known.proposals if settled or one.state not in over),
            disputes=tuple(one for one in known.disputes if settled or one.is_open),
            reviews=known.reviews,
        )

    def conflict_show(self, conflict_id: str) -> ConflictShown:
        """One of them, with every version and every entry that belongs to it."""
        known = self._standing()
        dispute = known.dispute(conflict_id)
        every: list[Proposal | Dispute | ConflictReview] = [*known.proposals, *known.reviews]
        found = dispute or next((one for one in every if one.id == conflict_id), None)
        if found is None:
            raise ConflictNotFound(
                f"no proposal, disagreement or escalation is called {conflict_id[:80]!r}",
                "see what is open",
                Call("conflict_list", {}),
            )
        kind = type(found).__name__.lower()
        state = found.state if isinstance(found, Proposal) else _state(found)
        names = {found.id, *_own(found)}
        mine = [one for one in envelopes(self._entries()) if one.event_id in names or names & {*one.links}]
        return ConflictShown(
            conflict_id=found.id,
            kind=kind,
            state=state,
            standing=msgspec.to_builtins(found),
            entries=[msgspec.to_builtins(one) for one in mine],
        )

    def conflict_settle(
        self,
        conflict_id: str,
        text: str,
        *,
        agent: str | None = None,
        reasons: Sequence[str] = (),
        actor: str | None = None,
    ) -> Posted:
        """Record what was agreed or decided, as a decision that links back; what was posted stays as it is."""
        known = self._standing()
        links = _back(known, conflict_id)
        said = wording.Said(subject=text, reasons=tuple(reasons), links=links)
        given = {"kind": "decision.recorded", "said": said, "conflict": conflict_id, "agent": agent, "actor": actor}
        return self._posted(commands.SettleConflict, given)

    def conflict_default(
        self,
        conflict_id: str,
        text: str,
        *,
        agent: str | None = None,
        reasons: Sequence[str] = (),
        actor: str | None = None,
    ) -> Posted:
        """Go on with the lower-risk way for the time being; it waits for the maintainer's decision."""
        said = wording.Said(
            subject=f"Lower-risk default: {text}", decides="Maintainer", reasons=tuple(reasons), links=(conflict_id,)
        )
        given = {"kind": "escalation.requested", "said": said, "conflict": conflict_id, "agent": agent, "actor": actor}
        return self._posted(commands.Default, given)

    def _posted(self, kind: type[commands.Follow], given: dict[str, Any]) -> Posted:
        done = self._dispatcher.dispatch(self._dispatcher.command(kind, given))
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

    def _entries(self) -> list[Entry]:
        found = reading.texts(self._environment, NAME, PATH, ARCHIVE)
        return [*parse(found[ARCHIVE]).entries, *parse(found[PATH]).entries]

    def _standing(self) -> Standing:
        return standing(self._entries(), self._environment.clock.now())


def _own(found: Proposal | Dispute | ConflictReview) -> tuple[str, ...]:
    if isinstance(found, Proposal):
        return tuple(version.event_id for version in found.versions)
    return found.rebuttals if isinstance(found, Dispute) else ()


def _state(found: Dispute | ConflictReview) -> str:
    return "open" if isinstance(found, ConflictReview) or found.is_open else "settled"


def _back(known: Standing, conflict_id: str) -> tuple[str, ...]:
    """A decision about an escalation is one about what was escalated too."""
    review = next((one for one in known.reviews if one.id == conflict_id), None)
    about = tuple(link for link in review.about if link.startswith(("WL-", "PROP-", "MSG-"))) if review else ()
    return (conflict_id, *about)


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
