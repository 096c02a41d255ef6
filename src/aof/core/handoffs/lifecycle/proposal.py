"""What a sender gives for a new handoff, and whether it makes sense. Must not know tasks or charts."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from aof.core.errors.base import AofError, Call, InvalidInput
from aof.core.handoffs.lifecycle.kinds import KINDS
from aof.core.model.handoffs.record import (
    AGGREGATIONS,
    Aggregation,
    HandoffType,
    OnTimeout,
    RequiredCapability,
    Trigger,
)
from aof.core.model.org_chart import Risk
from aof.core.model.times import EXAMPLES, duration_ms, millis
from aof.core.validation import limits
from aof.core.validation.required_capabilities import KEY, bad_capabilities
from aof.core.validation.required_capabilities import required as asked_for

MOST_TARGETS: Final = 20
_MOST_LEVEL: Final = 3


class HandoffProposal(msgspec.Struct, frozen=True, kw_only=True):
    """A handoff as its sender wants it. `to` may be empty for an escalation: the chain decides.

    `no_return` are targets of a broadcast that owe no return. `wait` says whether the sender's own task is held until
    the return; None leaves that to the type. `segment_complete` says that the sender's part of the task is done.
    `transfer` says how much of the `history` goes along. With `coordinate`, the receivers of a broadcast see what the
    others bring back.
    """

    type: HandoffType
    to: tuple[str, ...] = ()
    reason: str
    rationale: str = ""
    risk: Risk = "low"
    timeout: str | None = None
    on_timeout: OnTimeout = "retry"
    capabilities: tuple[Any, ...] = ()
    autonomy_budget: int | None = None
    aggregation: Aggregation | None = None
    no_return: tuple[str, ...] = ()
    wait: bool | None = None
    segment_complete: bool = False
    history: tuple[Any, ...] = ()
    transfer: dict[str, Any] = {}
    variables: dict[str, Any] = {}
    artifacts: tuple[Any, ...] = ()
    coordinate: bool = False
    budget: float | None = None
    deadline: str | None = None
    trigger: Trigger | None = None


def malformed(asked: HandoffProposal, sender: str, task_id: str) -> AofError | None:
    """What is wrong with a proposal, whatever it is about."""
    return (
        limits.text("reason", asked.reason, limits.REASON, required=True)
        or limits.text("rationale", asked.rationale, limits.NOTES)
        or _bad_targets(asked, sender, task_id)
        or _bad_return(asked)
        or _bad_rationale(asked, sender, task_id)
        or bad_capabilities("capabilities", list(asked.capabilities))
        or _bad_figures(asked)
    )


def _bad_targets(asked: HandoffProposal, sender: str, task_id: str) -> AofError | None:
    if not asked.to and asked.type != "escalation":
        return InvalidInput(
            "'to' must name an agent", "say who gets it", _example(asked, sender, task_id), parameter="to"
        )
    problem = limits.names(**{"from_agent": sender} | {f"to[{n}]": one for n, one in enumerate(asked.to)})
    if problem or len(asked.to) > MOST_TARGETS:
        return problem or InvalidInput(f"'to' names {len(asked.to)} agents, the limit is {MOST_TARGETS}", "name fewer")
    if len(asked.to) > 1 and not KINDS[asked.type].several:
        return InvalidInput(f"a {asked.type} goes to one agent", "use the type broadcast for several")
    if len(set(asked.to)) < len(asked.to) or sender in asked.to:
        return InvalidInput("'to' names an agent twice, or the sender", "name each other agent once")
    if stray := set(asked.no_return) - set(asked.to):
        return InvalidInput(f"'no_return' names {min(stray)[:80]!r}, which is no target", "name targets only")
    return None


def _bad_return(asked: HandoffProposal) -> AofError | None:
    if asked.timeout is not None and duration_ms(asked.timeout) is None:
        return InvalidInput(f"'timeout' is no duration: {asked.timeout[:80]!r}", f"use one such as {EXAMPLES}")
    if asked.aggregation is not None and not KINDS[asked.type].several:
        return InvalidInput(f"a {asked.type} has no 'aggregation'", "leave it out, or use the type broadcast")
    return limits.choice("aggregation", asked.aggregation or "all", AGGREGATIONS)


def _bad_rationale(asked: HandoffProposal, sender: str, task_id: str) -> AofError | None:
    if not KINDS[asked.type].rationale or asked.rationale.strip():
        return None
    return InvalidInput(
        f"an {asked.type} needs 'rationale' (audit.decision_rationale): why it goes beyond the sender",
        "say why",
        _example(asked, sender, task_id),
        parameter="rationale",
    )


def _bad_figures(asked: HandoffProposal) -> AofError | None:
    level = asked.autonomy_budget
    if level is not None and not 0 <= level <= _MOST_LEVEL:
        return InvalidInput(f"'autonomy_budget' cannot be {level}", "give a level from 0 to 3")
    return bad_moment("deadline", asked.deadline)


def bad_moment(field: str, text: str | None) -> InvalidInput | None:
    """Refuse what is no moment in ISO-8601."""
    try:
        if text is not None:
            millis(text)
    except (ValueError, OverflowError):
        return InvalidInput(f"'{field}' is no moment: {str(text)[:80]!r}", "use one such as 2026-02-21T12:00:00Z")
    return None


def required(given: tuple[Any, ...]) -> tuple[str | RequiredCapability, ...]:
    """The required capabilities as the record has them: a plain name where any proficiency will do."""
    asked = asked_for({KEY: list(given)})
    return tuple(
        RequiredCapability(capability_id=name, min_proficiency=least) if least else name
        for name, least in asked.items()
    )


def _example(asked: HandoffProposal, sender: str, task_id: str) -> Call:
    given: dict[str, Any] = {"type": asked.type, "task_id": task_id, "from_agent": sender}
    given |= {"to": list(asked.to) or ["…"], "reason": asked.reason[:80] or "…"}
    given |= {"rationale": "…"} if KINDS[asked.type].rationale else {}
    return Call("handoff_new", given)
