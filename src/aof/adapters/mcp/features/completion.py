"""Completes what somebody types in a client: task IDs, agents and statuses. Must not know sessions."""

from __future__ import annotations

from typing import Final

from mcp_types import CompleteRequestParams, Completion, PromptReference

from aof.adapters.mcp.sessions import Hub
from aof.core.model.lifecycle import STATUSES

_MOST: Final = 100  # values that the protocol allows in one answer


async def complete(hub: Hub, params: CompleteRequestParams) -> Completion:
    """The values that begin with, or contain, what was typed; none for an argument that nobody declared."""
    typed = params.argument.value.casefold()
    match params.argument.name:
        case "taskId" | "id":
            in_review = isinstance(params.ref, PromptReference) and params.ref.name == "review"
            found = await hub.ask(_ids, hub, typed, "review" if in_review else None)
        case "agent":
            found = await hub.ask(_agents, hub, typed)
        case "status":
            found = [status for status in STATUSES if status.startswith(typed)]
        case _:
            found = []
    return Completion(values=found[:_MOST], total=len(found), has_more=len(found) > _MOST)


def _ids(hub: Hub, typed: str, status: str | None) -> list[str]:
    """IDs of tasks with this text in ID or title, the newest first."""
    rows = hub.fabric.list(search=typed, status=status).tasks if typed else hub.fabric.list(status=status).tasks
    return sorted((row.id for row in rows), reverse=True)


def _agents(hub: Hub, typed: str) -> list[str]:
    """Agents of the org chart, and those that tasks name."""
    named = {row.agent for row in hub.fabric.list().tasks if isinstance(row.agent, str)}
    known = sorted({agent.id for agent in hub.fabric.org.agents} | named)
    return [name for name in known if name.casefold().startswith(typed)]
