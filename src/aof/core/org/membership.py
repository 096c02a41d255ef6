"""What a name is to an org chart: a listed agent, a maintainer, or unknown.

An unknown name is a worker at most: no role, no capability, one task at a time. A maintainer outside of the
chart is a person, and the chart does not restrict people. Must not know tasks or commands.
"""

from __future__ import annotations

from aof.core.errors.base import Call
from aof.core.errors.org import NotAllowed
from aof.core.model.org_chart import Agent, OrgChart
from aof.core.model.policy import Policy

_AT_ONCE = 1


def is_person(chart: OrgChart | None, name: str, maintainers: tuple[str, ...]) -> bool:
    """Whether the name is a maintainer's who is not an agent of the chart."""
    return name in maintainers and (chart is None or name not in chart.by_id)


def entry_of(chart: OrgChart, name: str, maintainers: tuple[str, ...]) -> Agent | None:
    """What the chart says of a name, and of an unknown one what every unknown one is; None for a person."""
    if is_person(chart, name, maintainers):
        return None
    return chart.by_id.get(name) or Agent(id=name, concurrency=_AT_ONCE)


def roles_of(chart: OrgChart, name: str) -> frozenset[str]:
    """The roles of a name: none where the chart does not list it."""
    return chart.roles_of.get(name, frozenset())


def unlisted(policy: Policy, *names: str | None) -> NotAllowed | None:
    """The refusal of the first name that neither the chart nor the settings know, where such names are refused."""
    if policy.org is None or not policy.refuse_unlisted:
        return None
    for name in names:
        if name is not None and name not in policy.org.by_id and name not in policy.maintainers:
            return NotAllowed(
                f"{name[:80]} is neither in the org chart nor a maintainer, and unlisted agents may not write here",
                "call as an agent of the chart, or let a maintainer add this one",
                Call("org_show", {}),
                agent=name[:80],
            )
    return None
