"""Errors about who may do what: identity, rights, routing and the org chart."""

from __future__ import annotations

from aof.core.errors.base import Invalid, Refused


class Unauthenticated(Refused):
    """The caller did not prove who it is."""

    code = "unauthenticated"


class NoRoute(Refused):
    """Nobody in the org chart could take the task."""

    code = "no_route"


class NotRouted(Refused):
    """The org chart sends the task to somebody else."""

    code = "not_routed"


class AtCapacity(Refused):
    """The agent, or its team, holds as many tasks as it may."""

    code = "at_capacity"


class AgentInactive(Refused):
    """The org chart says that the agent takes no work."""

    code = "agent_inactive"


class NotAllowed(Refused):
    """The caller's roles do not allow this."""

    code = "not_allowed"


class ActorMismatch(Refused):
    """The caller claims to be somebody else than its token, or the secret of its run, says."""

    code = "actor_mismatch"


class OwnWork(Refused):
    """An agent cannot judge its own work."""

    code = "own_work"


class ReviewRequired(Refused):
    """The settings demand that such a task is reviewed, and only a maintainer may decide otherwise."""

    code = "review_required"


class UnusableOrgChart(Invalid):
    """The org chart cannot be understood, and there is no earlier version that could."""

    code = "unusable_org_chart"
