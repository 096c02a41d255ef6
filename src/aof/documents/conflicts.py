"""Where proposals and disagreements stand, how they are posted, and what the channels must not be used for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, Literal

import msgspec

from aof.documents import projection
from aof.documents.charter import parse_charter
from aof.documents.mail_rules import MailMessage
from aof.documents.worklog import LINK, envelopes, links
from aof.documents.worklog_rules import PostEntry
from aof.documents.worklog_text import ARCHIVE, CHARTER, PATH, Decided, Entry, parse_worklog
from aof.errors import AofError, Call, ConflictNotFound, ConflictSettled, NotAllowed, RebuttalLate, RebuttalUsed
from aof.kernel.commands import Decide, Needs, NeedsOf, Records, Verdict
from aof.kernel.findings import DocumentFinding
from aof.kernel.model import millis

OPEN: Final = "open"
COUNTERED, REBUTTED, DEFAULTED, ADJUDICATED = 1, 2, 3, 4
_DAY_MS: Final = 86_400_000
_MOMENT: Final = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(?::\d\d(?:\.\d+)?)?(?: ?UTC|Z)?)?")

State = Literal["open", "objected", "ready", "decided", "accepted", "rejected", "superseded"]


class _Record(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The form of all records here."""


class Version(_Record, frozen=True, kw_only=True):
    """One version of a proposal."""

    event_id: str
    timestamp: str
    text: str


class Proposal(_Record, frozen=True, kw_only=True):
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


class Dispute(_Record, frozen=True, kw_only=True):
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


class ConflictReview(_Record, frozen=True, kw_only=True):
    """What waits for the maintainer: an escalation that no decision links to."""

    id: str
    agent: str
    subject: str
    decides: str
    about: tuple[str, ...] = ()


class Standing(_Record, frozen=True, kw_only=True):
    """All proposals, disputes and escalations of a WORKLOG."""

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
    """The state of all proposals, disputes and escalations at a moment; the entries come oldest first."""
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
            state=_state(status, decided, any(one.is_open for one in objections), objections_end(deadline), now),
            status=status,
            deadline=deadline,
            fields={key: str(value) for key, value in last.fields.items()},
            versions=tuple(
                Version(event_id=name, timestamp=f"{entry.date} {entry.time}".strip(), text=entry.text)
                for name, entry in own
            ),
            objections=tuple(one.id for one in objections),
            decided_by=decided,
        )


def _state(status: str, decided: str | None, objected: bool, deadline: int | None, now: int) -> State:  # noqa: FBT001 - one fact of several
    if status in ("accepted", "rejected", "superseded"):
        return status  # type: ignore[return-value]
    if decided is not None:
        return "decided"
    if objected:
        return "objected"
    return "ready" if deadline is not None and deadline <= now else "open"


def objections_end(deadline: str) -> int | None:
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
        about = tuple(known.links[name])
        if known.deciding(name, *(link for link in about if link.startswith(("WL-", "PROP-", "MSG-")))) is None:
            yield ConflictReview(
                id=name,
                agent=entry.actor,
                subject=str(entry.fields.get("Escalation") or entry.subject),
                decides=str(entry.fields.get("Decides") or "Maintainer"),
                about=about,
            )


_READ: Final = frozenset({PATH, ARCHIVE, CHARTER})


class ConflictEntry(PostEntry, frozen=True, kw_only=True):
    """An entry about a proposal or a disagreement, whose rules look at what was posted before."""

    def needs(self, known: Records, needs: NeedsOf) -> Needs:
        """The whole WORKLOG, and the charter."""
        own = super().needs(known, needs)
        return msgspec.structs.replace(own, documents=own.documents | _READ)

    def decide(self, records: Records, now: int, decide: Decide) -> Verdict:
        """What stands comes first, then the entry itself."""
        return self.settled(records, _standing(records, now)) or super().decide(records, now, decide)

    def settled(self, records: Records, known: Standing) -> AofError | None:
        """Why the entry does not fit to what stands."""
        raise NotImplementedError


class PostObjection(ConflictEntry, frozen=True, kw_only=True):
    """A counter-recommendation, or a rebuttal where it links to one.

    `turns` is how many turns of the agent have begun since each counter-recommendation.
    """

    turns: Mapping[str, int] = {}

    def settled(self, records: Records, known: Standing) -> AofError | None:
        """One rebuttal each, within the window."""
        found = next((one for link in self.said.links if (one := known.dispute(link)) is not None), None)
        if found is None:
            return None
        if not found.is_open:
            return _over(found)
        if self.acting in found.rebutted_by:
            return RebuttalUsed(
                f"{self.acting} has had its rebuttal in {found.id}",
                "agree, or escalate it to the maintainer",
                Call("conflict_settle", {"conflict_id": found.id, "text": "…"}),
                conflict=found.id,
            )
        window = parse_charter(records.documents[CHARTER]).escalation.rebuttal_cycles
        if self.turns.get(found.id, 0) > window:
            return RebuttalLate(
                f"the time for a rebuttal in {found.id} is over: {window} of {self.acting}'s turns",
                "agree, or let a lower-risk default stand until the maintainer decides",
                Call("conflict_default", {"conflict_id": found.id, "text": "…", "reasons": ["…"]}),
                conflict=found.id,
            )
        return None


class SettleConflict(ConflictEntry, frozen=True, kw_only=True):
    """The agents agree, or the maintainer decides: a decision that links to a disagreement or a proposal."""

    conflict: str

    def settled(self, records: Records, known: Standing) -> AofError | None:
        """The refusal of somebody who takes no part in the conflict, or where the charter leaves it to a maintainer."""
        found = known.dispute(self.conflict)
        proposed = next((one for one in known.proposals if one.id == self.conflict), None)
        escalated = next((one for one in known.reviews if one.id == self.conflict), None)
        if found is None and proposed is None and escalated is None:
            return _unknown(self.conflict)
        if found is not None and not found.is_open:
            return _over(found)
        if projection.is_maintainer(records.policy, self.acting) or not records.policy.has_maintainers:
            return None
        mode = parse_charter(records.documents[CHARTER]).governance.decision_mode
        part = (found.agent, found.other) if found is not None else (proposed.author,) if proposed is not None else ()
        if mode == "maintainer-adjudicated" or self.acting not in part:
            return NotAllowed(
                f"{self.acting} may not settle {self.conflict}",
                "let a maintainer decide it" if mode == "maintainer-adjudicated" else "let an agent that is part of it",
                Call("worklog_add", {"type": "escalation.requested", "subject": "…", "links": [self.conflict]}),
                agent=self.acting,
            )
        if proposed is not None and proposed.state not in ("ready", "decided"):
            return NotAllowed(
                f"{proposed.id} is {proposed.state}: agents decide it once nobody has objected until its deadline",
                "wait, answer the objections, or let a maintainer decide",
                Call("conflict_show", {"conflict_id": proposed.id}),
                agent=self.acting,
            )
        return None


class PostDefault(ConflictEntry, frozen=True, kw_only=True):
    """Go on with the lower-risk way for the time being, flagged for the maintainer."""

    conflict: str

    def settled(self, records: Records, known: Standing) -> AofError | None:  # noqa: ARG002 - the rule's signature
        """The refusal where the disagreement is not open."""
        found = known.dispute(self.conflict)
        if found is None:
            return _unknown(self.conflict)
        return None if found.is_open else _over(found)


def _standing(records: Records, now: int) -> Standing:
    texts = (records.documents[path] for path in (ARCHIVE, PATH))
    return standing([entry for text in texts for entry in parse_worklog(text).entries], now)


def _over(found: Dispute) -> ConflictSettled:
    return ConflictSettled(
        f"{found.id} is settled by {found.settled_by}",
        "look at it; post a new counter-recommendation if there is a new reason",
        Call("conflict_show", {"conflict_id": found.id}),
        conflict=found.id,
    )


def _unknown(name: str) -> ConflictNotFound:
    return ConflictNotFound(
        f"no proposal, disagreement or escalation is called {name[:80]!r}",
        "see what is open",
        Call("conflict_list", {}),
    )


_NAME: Final = r"[A-Za-z0-9][A-Za-z0-9._@+-]*"
_AGREED: Final = re.compile(
    rf"\b(?:in consent with|with the consent of|agreed (?:with|by)|in agreement with)[ \t]+"
    rf"({_NAME}(?:(?:,[ \t]*|[ \t]+and[ \t]+){_NAME})*)",
    re.IGNORECASE,
)
_REFERS: Final = re.compile(r"WL-[0-9a-f]{16}|WORKLOG|Decision Index", re.IGNORECASE)
_WORK: Final = ("handoff", "quick")


def only_in_mailbox(
    cards: Iterable[tuple[int, MailMessage]],
    closed: Iterable[MailMessage],
    entries: Sequence[Entry],
    decisions: Sequence[Decided],
) -> Iterator[DocumentFinding]:
    """Messages that decided or handed over something of which the WORKLOG knows nothing."""
    decided = {link for entry in entries if entry.form == "decision" for link in links(entry)}
    decided |= {link for row in decisions for link in LINK.findall(f"{row.decision} {row.section}")}
    there = list(cards)
    for line, message in (*there, *((1, message) for message in closed)):
        if _decides(message) and message.message_id not in decided:
            what = f"{message.message_id} was decided, and no decision of the WORKLOG names it"
            yield DocumentFinding(line, "decision_only_in_mailbox", f"{what}; record it: aof worklog decide … --link")
    for line, message in there:
        text = f"{message.subject}\n{message.body}\n" + "\n".join(message.fields.values())
        if message.type == "handoff-ready" and not handed_over(entries, message.sender, text):
            what = f"{message.message_id} says that work is ready, and no handoff of {message.sender} is in the WORKLOG"
            yield DocumentFinding(line, "handoff_only_in_mailbox", what)
        recorded = _decides(message) and message.message_id in decided
        if recorded and message.acks and not _REFERS.search(message.acks[-1].reason):
            what = f"the last answer to {message.message_id} does not refer to its decision in the WORKLOG"
            yield DocumentFinding(line, "decision_not_referred_to", what, "warning")


def _decides(message: MailMessage) -> bool:
    resolved = message.status == "closed" and message.disposition == "resolved"
    return message.type == "decision-required" and (message.status == "actioned" or resolved)


def handed_over(entries: Sequence[Entry], sender: str, text: str) -> bool:
    """Whether the text refers to a handoff that the sender has posted: to the entry itself, or to its task."""
    named = set(LINK.findall(text))
    return any(
        one.event_id in named or named & {*one.links}
        for one, entry in zip(envelopes(entries), entries, strict=True)
        if entry.form in _WORK and sender in (entry.actor, entry.owner)
    )


def unproven_agreements(entries: Sequence[Entry], acks: Mapping[str, AbstractSet[str]]) -> Iterator[DocumentFinding]:
    """Decisions that claim somebody's agreement, of whom no entry, answer or decision tells so.

    `acks` are those who have answered each message.
    """
    known = list(zip(envelopes(entries), entries, strict=True))
    for one, entry in known:
        if entry.form != "decision":
            continue
        for name in _said_to_agree(entry):
            others = [other for other, _ in known if other.actor == name and other.event_id != one.event_id]
            linked = {*one.links, one.event_id}
            proven = any(linked & {*other.links, other.event_id} for other in others)
            if not proven and not any(name in acks.get(link, ()) for link in one.links):
                what = f"'{entry.subject[:60]}' says that {name} agrees, and nothing of {name} says so"
                yield DocumentFinding(entry.line, "agreement_unproven", what)


def _said_to_agree(entry: Entry) -> list[str]:
    found = [name for names in _AGREED.findall(entry.text) for name in re.split(r",[ \t]*|[ \t]+and[ \t]+", names)]
    return [name for name in dict.fromkeys(one.rstrip(".") for one in found) if name and name != entry.actor]
