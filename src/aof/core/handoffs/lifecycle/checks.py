"""Whether an agent can take a handoff: capabilities, capacity, autonomy. What a chart does not say is not checked.

Must not know how the handoff came about or what follows.
"""

from __future__ import annotations

from collections.abc import Mapping

from aof.core.errors.base import Call
from aof.core.errors.guards import BudgetTooSmall
from aof.core.errors.handoffs import CapabilityMismatch
from aof.core.model.handoffs.record import CapabilityMatch, Checks, Handoff, Rationale, Validation
from aof.core.model.org_chart import Agent, OrgChart
from aof.core.model.policy import Policy
from aof.core.model.times import iso
from aof.core.org import autonomy, capacity, routing
from aof.core.org.rights import entry_of


def listed(policy: Policy, name: str) -> Agent | None:
    """What is known of an agent: None where nothing is, so that nothing is checked."""
    chart = policy.org
    if chart is None or not chart.declared or name not in chart.by_id:
        return None
    return entry_of(chart, name, policy.maintainers)


def match(agent: Agent | None, validation: Validation) -> tuple[CapabilityMatch, tuple[str, ...]]:
    """How far the agent has what is required, and what it lacks."""
    wanted = validation.wanted
    if agent is None or not wanted:
        return "full", ()
    missing = routing.lacking(agent.skills, wanted)
    if not missing:
        return "full", ()
    return ("none" if len(missing) == len(wanted) else "partial"), missing


def is_full(chart: OrgChart | None, agent: Agent | None, load: Mapping[str, int]) -> bool:
    """Whether the agent is at its limit, or its team is."""
    return chart is not None and agent is not None and capacity.full(chart, agent, load) is not None


def check(policy: Policy, name: str, validation: Validation, load: Mapping[str, int], now: int) -> Checks:
    """What the record says of a check."""
    agent = listed(policy, name)
    matched, missing = match(agent, validation)
    limit = agent.concurrency if agent is not None else None
    held = load.get(name) if limit is not None else None
    return Checks(capability=matched, missing=missing, load=held, limit=limit, at=iso(now))


def too_little(policy: Policy, name: str, validation: Validation, audit: Rationale) -> BudgetTooSmall | None:
    """The refusal of an agent whose autonomy does not suffice; None when it does."""
    return autonomy.may_take(policy.org, name, level=validation.autonomy_budget, risk=audit.risk_level)


def unable(policy: Policy, handoff: Handoff, name: str, load: Mapping[str, int]) -> bool:
    """Whether the agent could not take the handoff now, whatever it says itself."""
    agent = listed(policy, name)
    if agent is None:
        return False
    short = too_little(policy, name, handoff.validation, handoff.audit) is not None
    return (
        not agent.active or short or match(agent, handoff.validation)[0] == "none" or is_full(policy.org, agent, load)
    )


def no_capability(handoff: Handoff, name: str, missing: tuple[str, ...]) -> CapabilityMismatch:
    """The refusal of an agent that has nothing of what is required."""
    return CapabilityMismatch(
        f"{name} has none of the capabilities that handoff {handoff.id} requires: {', '.join(missing)}",
        "reject it, and it goes to an agent that has them",
        Call("handoff_reject", {"handoff_id": handoff.id, "agent": name, "reason": "…"}),
        missing=list(missing),
    )
