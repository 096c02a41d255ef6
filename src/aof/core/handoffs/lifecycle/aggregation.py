"""What the returns of a broadcast come to together: all, any or the majority of those that are owed.

Receivers that owe no return do not count. A receiver that rejects counts like one that fails. Must not know events.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from aof.core.model.handoffs.record import Aggregation, Handoff

GroupState = Literal["open", "success", "failed", "sent"]


class MemberResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What has come from one receiver so far."""

    handoff_id: str
    agent: str
    state: str
    expected: bool
    status: str | None = None
    result: Any = None


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """A broadcast as its sender sees it. `sent` says that nobody owes a return."""

    broadcast_group_id: str
    task_id: str
    from_agent: str
    aggregation: Aggregation
    state: GroupState
    results: tuple[MemberResult, ...]


def aggregated(members: Sequence[Handoff]) -> Group:
    """The broadcast that these handoffs are; members that were passed on count by who has them now."""
    first = members[0]
    mode: Aggregation = first.aggregation or "all"
    owed = [one for one in members if one.return_protocol.expected and one.forwarded_to is None]
    good = sum(one.state == "completed" and one.outcome == "success" for one in owed)
    bad = sum(not one.is_open for one in owed) - good
    return Group(
        broadcast_group_id=first.broadcast_group_id or "",
        task_id=first.task_id,
        from_agent=first.from_agent,
        aggregation=mode,
        state=decided(mode, len(owed), good, bad),
        results=tuple(_result(one) for one in members),
    )


def decided(mode: Aggregation, owed: int, good: int, bad: int) -> GroupState:
    """How the group stands with so many successes and failures."""
    if not owed:
        return "sent"
    needed = {"all": owed, "any": 1, "majority": owed // 2 + 1}[mode]
    if good >= needed:
        return "success"
    return "failed" if owed - bad < needed else "open"


def _result(one: Handoff) -> MemberResult:
    back = one.returned
    return MemberResult(
        handoff_id=one.id,
        agent=one.to_agent,
        state=one.state,
        expected=one.return_protocol.expected,
        status=back.status if back is not None else None,
        result=msgspec.to_builtins(back.result) if back is not None and back.result is not None else None,
    )
