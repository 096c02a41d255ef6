"""Where proposals and disagreements stand: worked out from the entries of a WORKLOG alone, and never kept.

An entry belongs to a disagreement by naming the ID of the counter-recommendation that began it. Nothing that was posted
is edited: whatever becomes of it is a later entry that links back. Must not know who may post what.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, Literal

import msgspec

from aof.core.model.times import millis
from aof.documents.worklog.envelope import envelopes, links
from aof.documents.worklog.model import Entry

OPEN: Final = "open"
COUNTERED, REBUTTED, DEFAULTED, ADJUDICATED = 1, 2, 3, 4
_DAY_MS: Final = 86_400_000
_MOMENT: Final = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(?::\d\d(?:\.\d+)?)?(?: ?UTC|Z)?)?")

State = Literal["open", "objected", "ready", "decided", "accepted", "rejected", "superseded"]


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A part of what stands."""


class Version(_Part, frozen=True, kw_only=True):
    """One version of a proposal."""

    event_id: str
    timestamp: str
    text: str


class Proposal(_Part, frozen=True, kw_only=True):
    """A proposal with all of its versions, the latest first in `fields`.

    Its `state` is `ready` once nobody has objected until the deadline: it may be decided, and is no decision yet.
    """

    id: str
    author: str
    subject: str
    state: State
    status: str
    deadline: str
    fields: dict[str, str]
    versions: tuple[Version, ...]
    objections: tuple[str, ...] = ()
    decided_by: str | None = None


class Dispute(_Part, frozen=True, kw_only=True):
    """A counter-recommendation and what followed: which level it has reached, who has rebutted, and what settled it."""

    id: str
    agent: str
    other: str
    subject: str
    level: int
    about: tuple[str, ...] = ()
    rebuttals: tuple[str, ...] = ()
    rebutted_by: tuple[str, ...] = ()
    settled_by: str | None = None

    @property
    def is_open(self) -> bool:
        """Whether nothing was agreed or decided yet."""
        return self.settled_by is None


class ConflictReview(_Part, frozen=True, kw_only=True):
    """What waits for the maintainer: an escalation that no decision links to."""

    id: str
    agent: str
    subject: str
    decides: str
    about: tuple[str, ...] = ()


class Standing(_Part, frozen=True, kw_only=True):
    """Everything that was proposed, disputed and escalated."""

    proposals: tuple[Proposal, ...] = ()
    disputes: tuple[Dispute, ...] = ()
    reviews: tuple[ConflictReview, ...] = ()

    def dispute(self, link: str) -> Dispute | None:
        """The disagreement that an entry began or belongs to."""
        return next((one for one in self.disputes if link in (one.id, *one.rebuttals)), None)


class _Known:
    """The entries with their IDs, and what links to what."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        named = [one.event_id for one in envelopes(entries)]
        self.entries = list(zip(named, entries, strict=True))
        self.links = {name: links(entry) for name, entry in self.entries}

    def of(self, *forms: str) -> Iterator[tuple[str, Entry]]:
        return ((name, entry) for name, entry in self.entries if entry.form in forms)

    def deciding(self, *names: str) -> str | None:
        """The first decision that links to one of these."""
        found = (name for name, _ in self.of("decision") if any(one in self.links[name] for one in names))
        return next(found, None)


def standing(entries: Sequence[Entry], now: int) -> Standing:
    """Where everything stands at a moment; the entries come oldest first."""
    known = _Known(entries)
    disputes = tuple(_disputes(known))
    return Standing(
        proposals=tuple(_proposals(known, disputes, now)),
        disputes=disputes,
        reviews=tuple(_reviews(known)),
    )


def _disputes(known: _Known) -> Iterator[Dispute]:
    counters = dict(known.of("counter"))
    for name, entry in counters.items():
        if any(link in counters for link in known.links[name]):
            continue  # a rebuttal
        replies = [one for one in counters if name in known.links[one]]
        defaults = [one for one, _ in known.of("escalation") if name in known.links[one]]
        agreed = str(entry.fields.get("Agreed action", OPEN)).strip().rstrip(".").casefold()
        settled = known.deciding(name, *replies, *defaults) or (name if agreed not in (OPEN, "", "none") else None)
        level = ADJUDICATED if settled and settled != name else DEFAULTED if defaults else REBUTTED if replies else 1
        yield Dispute(
            id=name,
            agent=str(entry.fields.get("this") or entry.actor),
            other=str(entry.fields.get("other", "")),
            subject=entry.subject,
            level=level,
            about=tuple(known.links[name]),
            rebuttals=tuple(replies),
            rebutted_by=tuple(counters[one].actor for one in replies),
            settled_by=settled,
        )


def _proposals(known: _Known, disputes: Sequence[Dispute], now: int) -> Iterator[Proposal]:
    versions: dict[str, list[tuple[str, Entry]]] = {}
    for name, entry in known.of("proposal"):
        versions.setdefault(str(entry.fields["ID"]), []).append((name, entry))
    for proposal_id, own in versions.items():
        (_, first), (_, last) = own[0], own[-1]
        names = (proposal_id, *(name for name, _ in own))
        objections = [one for one in disputes if any(name in one.about for name in names)]
        decided = known.deciding(*names)
        deadline = str(last.fields.get("Objection deadline", ""))
        status = str(last.fields.get("Status", OPEN)).strip().casefold()
        yield Proposal(
            id=proposal_id,
            author=str(first.fields.get("Author") or first.actor),
            subject=last.subject,
            state=_state(status, decided, any(one.is_open for one in objections), due(deadline), now),
            status=status,
            deadline=deadline,
            fields={key: str(value) for key, value in last.fields.items()},
            versions=tuple(_version(name, entry) for name, entry in own),
            objections=tuple(one.id for one in objections),
            decided_by=decided,
        )


def _version(name: str, entry: Entry) -> Version:
    return Version(event_id=name, timestamp=f"{entry.date} {entry.time}".strip(), text=entry.text)


def _state(status: str, decided: str | None, objected: bool, deadline: int | None, now: int) -> State:  # noqa: FBT001 - one fact of several
    if status in ("accepted", "rejected", "superseded"):
        return status  # type: ignore[return-value]
    if decided is not None:
        return "decided"
    if objected:
        return "objected"
    return "ready" if deadline is not None and deadline <= now else "open"


def due(deadline: str) -> int | None:
    """When the time for objections ends: a moment, or the end of a day; None where it cannot be told."""
    found = _MOMENT.search(deadline)
    if found is None:
        return None
    try:
        begin = millis(f"{found[1]}T{found[2] or '00:00'}:00.000Z")
    except ValueError:
        return None
    return begin if found[2] else begin + _DAY_MS


def _reviews(known: _Known) -> Iterator[ConflictReview]:
    for name, entry in known.of("escalation"):
        about = tuple(link for link in known.links[name])
        if known.deciding(name, *(link for link in about if link.startswith(("WL-", "PROP-", "MSG-")))) is None:
            yield ConflictReview(
                id=name,
                agent=entry.actor,
                subject=str(entry.fields.get("Escalation") or entry.subject),
                decides=str(entry.fields.get("Decides") or "Maintainer"),
                about=about,
            )
