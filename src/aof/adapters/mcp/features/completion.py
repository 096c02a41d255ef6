"""Completes what somebody types in a client: task IDs, agents and statuses. Must not know sessions."""

from __future__ import annotations

from typing import Final

from mcp_types import CompleteRequestParams, Completion, PromptReference

from aof.adapters.mcp.sessions import Hub
from aof.core.model.kinds import Status
from aof.core.model.lifecycle import STATUSES

_MOST: Final = 100  # values that the protocol allows in one answer
_LATEST: Final = 1_000  # tasks whose agents are offered


async def complete(hub: Hub, params: CompleteRequestParams) -> Completion:
    """The values that begin with, or contain, what was typed; none for an argument that nobody declared.

    Nobody reads more than one answer, so no more are looked for, and of more than those the total is not told.
    """
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
    more = len(found) > _MOST
    return Completion(values=found[:_MOST], total=None if more else len(found), has_more=more)


def _ids(hub: Hub, typed: str, status: Status | None) -> list[str]:
    """IDs of tasks that a search for the text finds, the newest first."""
    rows = hub.fabric.list(search=typed or None, status=status, sort="id", reverse=True, limit=_MOST + 1).tasks
    return [row.id for row in rows]


def _agents(hub: Hub, typed: str) -> list[str]:
    """Agents of the org chart, and those that the latest tasks name."""
    latest = hub.fabric.list(sort="updated", reverse=True, limit=_LATEST).tasks
    named = {row.agent for row in latest if row.agent is not None}
    known = sorted({agent.id for agent in hub.fabric.org.agents} | named)
    return [name for name in known if name.casefold().startswith(typed)]
