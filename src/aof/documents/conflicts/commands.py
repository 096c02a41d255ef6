"""Posting what belongs to a disagreement: the entries of the WORKLOG, and the rules of the escalation ladder.

One counter-recommendation, one rebuttal each within the charter's window, a lower-risk default, and at the end the
maintainer's decision. Must not know any surface.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from aof.core.documents import speakers
from aof.core.errors.base import AofError, Call
from aof.core.errors.conflicts import ConflictNotFound, ConflictSettled, RebuttalLate, RebuttalUsed
from aof.core.errors.org import NotAllowed
from aof.core.model.commands import Decide, NeedsOf
from aof.core.model.records import Needs, Records, Verdict
from aof.documents.charter.parse import parse as parse_charter
from aof.documents.conflicts.standing import Dispute, Standing, standing
from aof.documents.worklog.commands import Say
from aof.documents.worklog.model import ARCHIVE, CHARTER, PATH
from aof.documents.worklog.parser import parse

_READ: Final = frozenset({PATH, ARCHIVE, CHARTER})


class Follow(Say, frozen=True, kw_only=True):
    """An entry whose rules look at what was posted before."""

    def needs(self, known: Records, needs: NeedsOf) -> Needs:
        """The whole WORKLOG, and the charter."""
        own = Say.needs(self, known, needs)
        return msgspec.structs.replace(own, documents=own.documents | _READ)

    def decide(self, records: Records, now: int, decide: Decide) -> Verdict:
        """What stands comes first, then the entry itself."""
        return self.settled(records, _standing(records, now)) or Say.decide(self, records, now, decide)

    def settled(self, records: Records, known: Standing) -> AofError | None:
        """Why the entry does not fit to what stands."""
        raise NotImplementedError


class Object(Follow, frozen=True, kw_only=True):
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


class SettleConflict(Follow, frozen=True, kw_only=True):
    """The agents agree, or the maintainer decides: a decision that links to a disagreement or a proposal."""

    conflict: str

    def settled(self, records: Records, known: Standing) -> AofError | None:
        """Who is part of it may settle it, unless the charter leaves that to the maintainer."""
        found = known.dispute(self.conflict)
        proposed = next((one for one in known.proposals if one.id == self.conflict), None)
        escalated = next((one for one in known.reviews if one.id == self.conflict), None)
        if found is None and proposed is None and escalated is None:
            return _unknown(self.conflict)
        if found is not None and not found.is_open:
            return _over(found)
        if speakers.is_maintainer(records.policy, self.acting) or not records.policy.has_maintainers:
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


class Default(Follow, frozen=True, kw_only=True):
    """What is done for the time being, flagged for the maintainer."""

    conflict: str

    def settled(self, records: Records, known: Standing) -> AofError | None:  # noqa: ARG002 - the rule's signature
        """Only of a disagreement that is open."""
        found = known.dispute(self.conflict)
        if found is None:
            return _unknown(self.conflict)
        return None if found.is_open else _over(found)


def _standing(records: Records, now: int) -> Standing:
    texts = (records.documents[path] for path in (ARCHIVE, PATH))
    return standing([entry for text in texts for entry in parse(text).entries], now)


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
