"""The agent card: who we are, where and how we are called, and what for. Must not know requests or tasks."""

from __future__ import annotations

from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    HTTPAuthSecurityScheme,
    SecurityRequirement,
    SecurityScheme,
    StringList,
)

from aof.adapters.a2a.content import INPUT_MODES
from aof.core.model.org_chart import OrgChart

PREFIX = "/a2a"
RPC = f"{PREFIX}/rpc"
CARD = "/.well-known/agent-card.json"
_BINDINGS = (("JSONRPC", RPC), ("HTTP+JSON", PREFIX))
_VERSIONS = ("1.0", "0.3")
_SCHEME = "token"


def agent_card(base: str, project: str, version: str, chart: OrgChart | None, *, push: bool) -> AgentCard:
    """The card of a data directory that is served at this address."""
    interfaces = [
        AgentInterface(url=f"{base}{path}", protocol_binding=binding, protocol_version=spoken)
        for spoken in _VERSIONS
        for binding, path in _BINDINGS
    ]
    bearer = SecurityScheme(http_auth_security_scheme=HTTPAuthSecurityScheme(scheme="Bearer"))
    return AgentCard(
        name=project,
        description=f"Tasks for the agents of {project}, kept by AOF.",
        version=version,
        supported_interfaces=interfaces,
        capabilities=AgentCapabilities(streaming=True, push_notifications=push),
        security_schemes={_SCHEME: bearer},
        security_requirements=[SecurityRequirement(schemes={_SCHEME: StringList()})],
        default_input_modes=INPUT_MODES,
        default_output_modes=("text/plain", "application/octet-stream"),
        skills=_skills(chart),
    )


def _skills(chart: OrgChart | None) -> list[AgentSkill]:
    """One for any task, and one per capability that some agent of the chart has. Names of agents are not told."""
    able = {name for agent in chart.agents if agent.active for name in agent.skills} if chart is not None else set()
    general = AgentSkill(
        id="task", name="Any task", description="Becomes a task for whoever fits, and is followed to its end.",
        tags=["task"],
    )  # fmt: skip
    return [general] + [
        AgentSkill(id=name, name=name, description=f"Work that needs {name}.", tags=[name]) for name in sorted(able)
    ]
