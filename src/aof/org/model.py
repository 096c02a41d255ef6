"""The org chart as data: agents, teams, roles, routing rules, the escalation chain; and the gates of the charter."""

from __future__ import annotations

from functools import cached_property
from typing import Final, Literal

import msgspec

from aof.kernel.model import duration_ms

SCHEMA_VERSION: Final = 1
HUMAN: Final = "human"  # at the end of an escalation: any person

Risk = Literal["low", "medium", "high"]
RunnerKind = Literal["process", "pull", "a2a", "human"]
RoleKind = Literal["worker", "reviewer", "lead"]
MessageForm = Literal["nonce", "plain"]


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """Common form of everything in a chart."""


class Capability(_Part, frozen=True, kw_only=True):
    """Something that an agent can do, and how well: from 0.0 to 1.0."""

    id: str
    proficiency: float = 1.0


class AutonomyLimits(_Part, frozen=True, kw_only=True):
    """How much an agent may use in one run; what is not said follows from its autonomy level."""

    iterations: int | None = None
    minutes: int | None = None
    files: int | None = None
    lines: int | None = None
    tool_calls: int | None = None


class Permissions(_Part, frozen=True, kw_only=True):
    """Patterns of paths, commands and hosts, as shell globs."""

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    network: tuple[str, ...] = ()


class Autonomy(_Part, frozen=True, kw_only=True):
    """How far an agent may go on its own. Nothing said: no limit. What is denied stays denied, also if allowed."""

    level: int | None = None
    max_risk: Risk | None = None
    limits: AutonomyLimits = AutonomyLimits()
    deny: Permissions = Permissions()
    allow: Permissions = Permissions()


class RunnerSettings(_Part, frozen=True, kw_only=True):
    """What executes an agent's runs. A process gets an argument list, never a shell.

    `messages` says which printed lines are messages: those with the run's nonce, or also plain ones.
    `url` and `token_env` are of a peer: its address, and the variable of the service that holds the token for it.
    Of the service's environment it gets a short list, and what `inherit_env` names.
    """

    kind: RunnerKind = "pull"
    command: tuple[str, ...] = ()
    url: str | None = None
    env: dict[str, str] = {}
    inherit_env: tuple[str, ...] | Literal["all"] = ()
    cwd: str | None = None
    grace: str | None = None
    ack_timeout: str | None = None
    messages: MessageForm = "nonce"
    token_env: str | None = None

    @property
    def grace_ms(self) -> int | None:
        """How long a process may take to end when it is asked to."""
        return duration_ms(self.grace)

    @property
    def ack_timeout_ms(self) -> int | None:
        """How long the agent may take to acknowledge a handoff, if that is to be watched."""
        return duration_ms(self.ack_timeout)


class Agent(_Part, frozen=True, kw_only=True):
    """Somebody who can take tasks. Only `id` is required; no `concurrency` means no limit."""

    id: str
    name: str | None = None
    team: str | None = None
    roles: tuple[str, ...] = ()
    capabilities: tuple[str | Capability, ...] = ()
    concurrency: int | None = None
    autonomy: Autonomy = Autonomy()
    max_execution_time: str | None = None
    max_lease_time: str | None = None
    escalates_to: str | None = None
    runner: RunnerSettings = RunnerSettings()
    active: bool = True

    @property
    def skills(self) -> dict[str, float]:
        """Each capability with its proficiency; a plain name means 1.0."""
        given = (Capability(id=one) if isinstance(one, str) else one for one in self.capabilities)
        return {capability.id: capability.proficiency for capability in given}

    @property
    def max_execution_ms(self) -> int | None:
        """How long one run may take, if that is limited."""
        return duration_ms(self.max_execution_time)

    @property
    def max_lease_ms(self) -> int | None:
        """How long a lease of this agent may be, where that is more than usual."""
        return duration_ms(self.max_lease_time)


class TeamLimits(_Part, frozen=True, kw_only=True):
    """What a team may do at once."""

    max_concurrent: int | None = None


class Team(_Part, frozen=True, kw_only=True):
    """Agents that work together. Its orchestrator gets what is sent to the team, else its lead."""

    id: str
    name: str | None = None
    lead: str | None = None
    orchestrator: str | None = None
    limits: TeamLimits = TeamLimits()


class Role(_Part, frozen=True, kw_only=True):
    """A hat that agents wear. `kind` says what it allows; without one the role's name decides."""

    agents: tuple[str, ...] = ()
    kind: RoleKind | None = None


class Target(_Part, frozen=True, kw_only=True):
    """Whom a routing rule sends to: exactly one of these."""

    agent: str | None = None
    role: str | None = None
    team: str | None = None


class RoutingRule(_Part, frozen=True, kw_only=True):
    """Tasks with all of these tags go there; the heaviest rule that matches decides, the first of equals."""

    tags: tuple[str, ...]
    to: Target
    weight: float = 1.0


class OrgChart(_Part, frozen=True, kw_only=True, dict=True):
    """Everything that `org/org-chart.yaml` says."""

    schema_version: int = SCHEMA_VERSION
    agents: tuple[Agent, ...] = ()
    teams: tuple[Team, ...] = ()
    roles: dict[str, Role] = {}
    routing: tuple[RoutingRule, ...] = ()
    escalation: tuple[str, ...] = ()

    @property
    def declared(self) -> bool:
        """Whether the chart says anything: without agents nothing is checked."""
        return bool(self.agents)

    @cached_property
    def by_id(self) -> dict[str, Agent]:
        """The agents by their IDs."""
        return {agent.id: agent for agent in self.agents}

    @cached_property
    def teams_by_id(self) -> dict[str, Team]:
        """The teams by their IDs."""
        return {team.id: team for team in self.teams}

    @cached_property
    def members(self) -> dict[str, tuple[str, ...]]:
        """The agents of each team, in the order of the chart."""
        found: dict[str, list[str]] = {team.id: [] for team in self.teams}
        for agent in self.agents:
            if agent.team is not None:
                found.setdefault(agent.team, []).append(agent.id)
        return {team: tuple(agents) for team, agents in found.items()}

    @cached_property
    def holders(self) -> dict[str, tuple[str, ...]]:
        """Who has each role, whether the role names the agent or the agent the role; in the order of the chart."""
        named = {role: set(given.agents) for role, given in self.roles.items()}
        for agent in self.agents:
            for role in agent.roles:
                named.setdefault(role, set()).add(agent.id)
        order = {agent.id: number for number, agent in enumerate(self.agents)}
        return {role: tuple(sorted(agents & order.keys(), key=order.__getitem__)) for role, agents in named.items()}

    @cached_property
    def skills(self) -> dict[str, dict[str, float]]:
        """What each agent can do, and how well."""
        return {agent.id: agent.skills for agent in self.agents}

    @cached_property
    def capabilities(self) -> frozenset[str]:
        """Everything that somebody can do."""
        return frozenset(skill for skills in self.skills.values() for skill in skills)

    @cached_property
    def roles_of(self) -> dict[str, frozenset[str]]:
        """The roles of each agent."""
        found: dict[str, set[str]] = {agent.id: set() for agent in self.agents}
        for role, agents in self.holders.items():
            for agent in agents:
                found[agent].add(role)
        return {agent: frozenset(roles) for agent, roles in found.items()}


EMPTY: Final = OrgChart()

Band = Literal["auto", "delay", "approval"]
ACTIONS: Final = ("complete", "cancel", "retry", "archive")
SELECTORS: Final = ("tag", "risk", "priority", "agent", "team")


class Gate(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One band: what it covers, one item each, and the delay of the middle one.

    An item is an action, selectors such as `tag:release`, or both; selectors alone are about completing such a task.
    Whatever else it says is for people only.
    """

    band: Band
    scope: tuple[str, ...] = ()
    delay_seconds: int = 0
    line: int = 0


def enforced(item: str) -> tuple[str, tuple[tuple[str, str], ...]] | None:
    """The action and the selectors that an item names; None where it says something else."""
    action, selected = "", list[tuple[str, str]]()
    for word in item.split():
        key, colon, value = word.partition(":")
        if colon and key in SELECTORS and value:
            selected.append((key, value))
        elif word in ACTIONS and not action:
            action = word
        else:
            return None
    return (action or "complete", tuple(selected)) if action or selected else None


class KeptChart(msgspec.Struct, frozen=True, kw_only=True):
    """The last usable version of the chart, and the SHA-256 of the bytes that it came from."""

    digest: str
    chart: OrgChart
