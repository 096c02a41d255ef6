"""The session charter as data: who takes part, who owns which files, how decisions are made, what needs a person.

Must not know how it is written down.
"""

from __future__ import annotations

from typing import Final

import msgspec

from aof.core.model.gate import Band, Gate

TITLES: Final = {
    1: "Session metadata",
    2: "Agent roster",
    3: "Lane ownership",
    4: "Shared contract",
    5: "Governance settings",
    6: "Approval gates",
    7: "Conflict escalation",
    8: "Acceptance criteria",
    9: "Handshake acknowledgments",
    10: "Session kickoff checklist",
}
METADATA: Final = ("Session ID", "Date", "Project", "Milestone", "Risk tier")
CONTRACT: Final = ("Contract location", "Contract owner", "Validation tests", "Status")
GOVERNANCE: Final = ("Decision mode", "Objection window", "Cross-review mode", "Merge policy", "Test policy")
ROSTER: Final = ("Role", "Agent", "Model/Provider", "Lane")
LANES: Final = ("Lane", "Owner", "Files/Scope")
BANDS: Final = ("Auto", "Notify + Delay", "Approval Required")
LEVELS: Final = (
    "Counter-recommendation",
    "Time-boxed rebuttal",
    "Risk-minimizing default",
    "Maintainer adjudication",
)
KICKOFF: Final = (
    "Lanes are assigned, and every file has one owner",
    "The shared contract is locked, or there is none",
    "The WORKLOG has its pinned status block",
    "Handoff formats are agreed",
    "Acceptance criteria are written down",
    "Every agent has signed the handshake",
    "A retro is planned",
)
RISK_TIERS: Final = ("Low", "Medium", "High")
CONTRACT_STATUSES: Final = ("Not started", "Draft", "Locked")
DECISION_MODES: Final = ("consent", "quorum", "maintainer-adjudicated")
CROSS_REVIEW_MODES: Final = ("aspirational", "mandatory")
HANDSHAKE_STATUSES: Final = ("Accepted", "Accepted with reservations")
MAINTAINER: Final = "Maintainer"
OBSERVER: Final = "Observer"
EVERYBODY: Final = "All agents"
NONE: Final = "none"
ONE_CYCLE: Final = "1 cycle"

__all__ = ["Band", "Gate"]


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A part of the charter."""


class Participant(_Part, frozen=True, kw_only=True):
    """One row of the roster; `lane` is empty for somebody without one."""

    role: str
    agent: str
    model: str = ""
    lane: str = ""
    line: int = 0

    @property
    def is_maintainer(self) -> bool:
        """Whether the row names the maintainer."""
        return self.role.casefold() == MAINTAINER.casefold()

    @property
    def is_observer(self) -> bool:
        """Whether the row names somebody who only looks."""
        return self.role.casefold() == OBSERVER.casefold()


class CharterLane(_Part, frozen=True, kw_only=True):
    """One row of lane ownership: patterns of files, and who owns them."""

    name: str
    owner: str
    patterns: tuple[str, ...] = ()
    line: int = 0

    @property
    def shared(self) -> bool:
        """Whether everybody may append there, which makes it nobody's."""
        return self.owner.casefold() in (EVERYBODY.casefold(), "all")


class Contract(_Part, frozen=True, kw_only=True):
    """What several lanes build against; without a location there is none."""

    location: str = ""
    owner: str = ""
    tests: str = ""
    status: str = "Not started"


class Governance(_Part, frozen=True, kw_only=True):
    """How decisions are made."""

    decision_mode: str = "consent"
    objection_window: str = ONE_CYCLE
    cross_review_mode: str = "aspirational"
    merge_policy: str = ""
    test_policy: str = ""


class Escalation(_Part, frozen=True, kw_only=True):
    """How a conflict climbs. `rebuttal_cycles` is the window of level 2, in WORKLOG cycles."""

    levels: tuple[str, ...] = LEVELS
    rebuttal_cycles: int = 1
    tie_break: str = ""


class Signature(_Part, frozen=True, kw_only=True):
    """An agent's handshake: it has read the charter and takes its role and lane in it."""

    agent: str
    signed: str = ""
    role: str = ""
    lane: str = ""
    status: str = ""
    notes: str = ""
    timestamp: str = ""
    line: int = 0


class Item(_Part, frozen=True, kw_only=True):
    """One line of the kickoff checklist."""

    text: str
    done: bool
    line: int = 0


class Charter(_Part, frozen=True, kw_only=True):
    """The whole charter."""

    session_id: str = ""
    date: str = ""
    project: str = ""
    milestone: str = ""
    risk_tier: str = ""
    roster: tuple[Participant, ...] = ()
    lanes: tuple[CharterLane, ...] = ()
    contract: Contract = Contract()
    governance: Governance = Governance()
    gates: tuple[Gate, ...] = ()
    escalation: Escalation = Escalation()
    acceptance: tuple[str, ...] = ()
    handshakes: tuple[Signature, ...] = ()
    checklist: tuple[Item, ...] = ()

    def participant(self, agent: str) -> Participant | None:
        """The row of somebody in the roster."""
        return next((one for one in self.roster if one.agent == agent), None)

    def signature(self, agent: str) -> Signature | None:
        """The handshake of an agent, as long as it holds for its role and lane."""
        seat = self.participant(agent)
        for one in self.handshakes:
            if one.agent == agent and one.signed and one.status in HANDSHAKE_STATUSES:
                holds = seat is None or (one.role == seat.role and one.lane == seat.lane)
                return one if holds else None
        return None

    @property
    def agents(self) -> tuple[str, ...]:
        """Those who work: neither the maintainer nor observers."""
        return tuple(one.agent for one in self.roster if not one.is_maintainer and not one.is_observer)

    @property
    def unsigned(self) -> tuple[str, ...]:
        """The agents whose handshake is missing, or no longer holds."""
        return tuple(agent for agent in self.agents if self.signature(agent) is None)
