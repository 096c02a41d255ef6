"""The agent card: who we are, where and how we are called, and what for. Must not know requests or tasks.

Each revision of the protocol has a card of its own: one for both would be valid for neither.
"""

from __future__ import annotations

from typing import Any, Literal

from a2a.compat.v0_3.conversions import to_compat_agent_card
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
from google.protobuf.json_format import MessageToDict

from aof.adapters.a2a.content import INPUT_MODES
from aof.core.model.org_chart import OrgChart

PREFIX = "/a2a"
RPC = f"{PREFIX}/rpc"
_BINDINGS = (("JSONRPC", RPC), ("HTTP+JSON", PREFIX))
_SCHEME = "token"
Revision = Literal["1.0", "0.3"]


def told(card: AgentCard, revision: Revision) -> dict[str, Any]:
    """A card as JSON of that revision."""
    if revision == "1.0":
        return MessageToDict(card)
    return to_compat_agent_card(card).model_dump(mode="json", by_alias=True, exclude_none=True)


def agent_card(
    base: str, project: str, version: str, chart: OrgChart | None, *, push: bool, revision: Revision = "1.0"
) -> AgentCard:
    """The card of a data directory that is served at this address, for peers of that revision."""
    interfaces = [
        AgentInterface(url=f"{base}{path}", protocol_binding=binding, protocol_version=revision)
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
