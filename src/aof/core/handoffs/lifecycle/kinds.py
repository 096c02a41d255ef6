"""The four types of handoffs, one row each: what is transferred, who owns the task, and whether a return is owed.

Must not know how the rules are carried out.
"""

from __future__ import annotations

from typing import Final

import msgspec

from aof.core.model.handoffs.record import HandoffType, Urgency
from aof.core.model.kinds import Priority


class HandoffKind(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of one type. With `timeout`, a return has the time of the settings where the sender gives none.

    `waits` says whether the sender's task is held until the return unless it says so.
    """

    returns: bool
    several: bool = False
    timeout: bool = False
    rationale: bool = False
    waits: bool = False


KINDS: Final[dict[HandoffType, HandoffKind]] = {
    "sequential": HandoffKind(returns=False),
    "delegation": HandoffKind(returns=True, timeout=True),
    "broadcast": HandoffKind(returns=True, several=True),
    "escalation": HandoffKind(returns=True, rationale=True, waits=True),
}
URGENCY: Final[dict[Priority, Urgency]] = {
    "critical": "immediate",
    "high": "immediate",
    "normal": "normal",
    "low": "low",
}
