"""Who gets a handoff: the orchestrator's decision. Agents may suggest a target, and the record shows both.

Must not know what the handoff is about, nor how it is answered.
"""

from __future__ import annotations

from collections.abc import Mapping

from aof.core.errors.base import AofError
from aof.core.model.handoffs.record import MAX_LEVEL, Handoff
from aof.core.model.org_chart import HUMAN, OrgChart
from aof.core.model.policy import Policy
from aof.core.org import autonomy, capacity, escalation, guard, routing
from aof.core.org.rights import is_person

Load = Mapping[str, int]


def unknown(policy: Policy, *names: str) -> AofError | None:
    """The refusal of the first name that the chart does not list and that is no person's either."""
    chart = policy.org
    if chart is None or not chart.declared:
        return None
    strangers = (one for one in names if one != HUMAN and not is_person(chart, one, policy.maintainers))
    return next((refusal for one in strangers if (refusal := guard.unknown_names(chart, {"agent": one}))), None)


def orchestrator(policy: Policy, handoff: Handoff) -> str:
    """Who decides where work goes: the orchestrator of the sender's team, else its lead, else the sender itself."""
    chart = policy.org
    sender = chart.by_id.get(handoff.from_agent) if chart is not None else None
    team = chart.teams_by_id.get(sender.team or "") if chart is not None and sender is not None else None
    return (team.orchestrator or team.lead or handoff.from_agent) if team is not None else handoff.from_agent


def alternatives(policy: Policy, handoff: Handoff, load: Load) -> tuple[str, ...]:
    """The agents that could take the handoff instead, the least busy first; those at their limit come last.

    They have all that is required. Where nothing is, they share a role or a capability with the first target.
    """
    chart = policy.org
    if chart is None or not chart.declared:
        return ()
    asked = {handoff.from_agent, handoff.to_agent, *handoff.tried}
    able = [agent.id for agent in chart.agents if agent.id not in asked and _able(chart, handoff, agent.id)]
    busy = {name: capacity.full(chart, chart.by_id[name], load) is not None for name in able}
    return tuple(sorted(able, key=lambda name: (busy[name], load.get(name, 0))))


def _able(chart: OrgChart, handoff: Handoff, name: str) -> bool:
    agent, wanted = chart.by_id[name], handoff.validation.wanted
    if not agent.active or agent.runner.kind == HUMAN:
        return False
    if autonomy.too_little(agent, level=handoff.validation.autonomy_budget, risk=handoff.audit.risk_level) is not None:
        return False
    if wanted:
        return not routing.lacking(chart.skills[name], wanted)
    first = (*handoff.tried, handoff.to_agent)[0]
    kinds = chart.roles_of.get(first, frozenset()) | set(chart.skills.get(first, ()))
    return not kinds or bool(kinds & (chart.roles_of[name] | set(chart.skills[name])))


def next_level(policy: Policy, origin: str, handoff: Handoff, taken: tuple[str, ...]) -> str:
    """Who is asked at the level that the handoff has: the chain from its origin upward, a person at its end."""
    chart = policy.org
    if chart is None or not chart.declared or handoff.level >= MAX_LEVEL:
        return HUMAN
    chain = [one for one in escalation.chain(chart, origin) if one == HUMAN or one not in taken]
    fit = (one for one in chain if one == HUMAN or _trusted(chart, handoff, one))
    return next(fit, HUMAN)


def _trusted(chart: OrgChart, handoff: Handoff, name: str) -> bool:
    agent = chart.by_id[name]
    level, risk = handoff.validation.autonomy_budget, handoff.audit.risk_level
    return autonomy.too_little(agent, level=level, risk=risk) is None


def in_chain(policy: Policy, origin: str, suggested: str) -> bool:
    """Whether a suggested target is one that the origin may escalate to: without a chain, anybody is."""
    chart = policy.org
    if chart is None or not chart.declared:
        return True
    chain = escalation.chain(chart, origin)
    return suggested == HUMAN or suggested in chain or chain in ((), (HUMAN,))
