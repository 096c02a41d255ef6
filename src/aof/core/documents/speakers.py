"""Who may speak in a document, and for whom: a document says who wrote what, so that must be true.

With a chart or strict identity a caller speaks for itself; a maintainer may speak for everybody, an orchestrator for
the members of its team. Otherwise the name that a call gives is taken as it is, as everywhere. Must not know any
single document.
"""

from __future__ import annotations

from aof.core.errors.base import AofError, Call
from aof.core.errors.org import NotAllowed
from aof.core.model.commands import OnDocument
from aof.core.model.policy import Policy
from aof.core.org import rights
from aof.core.validation import limits

_NAME = 128


def refused(policy: Policy, command: OnDocument) -> AofError | None:
    """Why the caller may not speak as the one that it names, or why that one may not speak at all."""
    named = limits.line("actor", command.actor, _NAME, required=True) or limits.names(agent=command.agent)
    if named is not None:
        return named
    agent = command.acting
    bound = policy.binds and command.outside
    if agent != command.actor and bound and not rights.may_act_for(policy, command.actor, agent, None):
        return rights.mismatch(command.actor, agent)
    return stranger(policy, agent)


def stranger(policy: Policy, name: str) -> AofError | None:
    """The refusal of a name that is not in the roster, where there is one."""
    chart = policy.org
    if chart is None or name in chart.by_id or is_maintainer(policy, name):
        return None
    return NotAllowed(
        f"{name[:80]} is neither in the org chart nor a maintainer",
        "use the name of an agent of the chart; see who there is",
        Call("org_show", {}),
        agent=name[:80],
    )


def is_maintainer(policy: Policy, name: str) -> bool:
    """Whether the settings name somebody as a maintainer."""
    return name in policy.maintainers


def not_maintainer(policy: Policy, command: OnDocument, what: str) -> NotAllowed | None:
    """The refusal of what only a maintainer may do; where the settings name none, everybody may."""
    if not policy.has_maintainers or is_maintainer(policy, command.acting):
        return None
    return NotAllowed(
        f"{command.acting[:80]} is no maintainer and may not {what}",
        f"let a maintainer do it: {', '.join(policy.maintainers[:5]) or 'one whose name is proven'}",
        agent=command.acting[:80],
    )
