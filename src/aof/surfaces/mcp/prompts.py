"""Prompts that a person picks in a client, and the completion of what they type there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CompleteRequestParams,
    Completion,
    ContentBlock,
    EmbeddedResource,
    GetPromptResult,
    Prompt,
    PromptArgument,
    PromptMessage,
    PromptReference,
    TextContent,
    TextResourceContents,
)

from aof.api.call import Caller, error_payload, parameters, perform
from aof.api.catalogue import BY_NAME
from aof.errors import AofError, Call, InvalidInput
from aof.kernel.kinds import Status
from aof.kernel.model import STATUSES
from aof.org.operations import waiting_for
from aof.queries.ready_queue import ReadyQueue
from aof.store.lists import Row
from aof.surfaces.mcp.resources import JSON, TASKS
from aof.surfaces.mcp.sessions import Hub
from aof.surfaces.mcp.tools import spell
from aof.workflows.model import HopState

_FEW: Final = 5  # tasks that a prompt lists
_MOST: Final = 100  # values that the protocol allows in one answer
_LATEST: Final = 1_000  # tasks whose agents are offered


class _Offer(NamedTuple):
    """One prompt: what it is for, its arguments with their meaning, and what writes it."""

    text: str
    arguments: dict[str, str]
    write: Callable[[Hub, dict[str, str], Caller], list[ContentBlock]]


def prompts() -> list[Prompt]:
    """What a client lists."""
    return [
        Prompt(
            name=name,
            description=offer.text,
            arguments=[
                PromptArgument(name=one, description=meaning, required=False)
                for one, meaning in offer.arguments.items()
            ],
        )
        for name, offer in _OFFERS.items()
    ]


async def get_prompt(hub: Hub, name: str, given: dict[str, str], caller: Caller) -> GetPromptResult:
    """One prompt, as the fabric is now."""
    offer = _OFFERS.get(name)
    if offer is None:
        raise MCPError(INVALID_PARAMS, f"Unknown prompt: {name[:80]}; there are {', '.join(_OFFERS)}")
    if unknown := sorted(given.keys() - offer.arguments.keys()):
        raise MCPError(INVALID_PARAMS, f"the prompt {name} has no argument {unknown[0][:80]!r}")
    try:
        contents = await hub.ask(offer.write, hub, given, caller)
    except AofError as error:
        raise MCPError(INVALID_PARAMS, error.message, msgspec.to_builtins(error_payload(error, spell))) from None
    return GetPromptResult(
        description=offer.text, messages=[PromptMessage(role="user", content=content) for content in contents]
    )


def _ask(hub: Hub, operation: str, given: dict[str, Any], caller: Caller) -> Any:
    row = BY_NAME[operation]
    return perform(hub.fabric, row, parameters(row, given), caller)


def _prime(hub: Hub, given: dict[str, str], caller: Caller) -> list[ContentBlock]:
    return [TextContent(text=_ask(hub, "prime", given, caller).text)]


def _work_next(hub: Hub, given: dict[str, str], caller: Caller) -> list[ContentBlock]:
    agent = given.get("agent", caller.actor)
    ready = _ask(hub, "ready", {"agent": agent, "limit": _FEW}, caller)
    lines = [f"You are {agent}. Take the next task and finish it.", ""]
    if ready.tasks:
        lines += ["Ready for you, most urgent first:", *map(_line, ready.tasks), ""]
    else:
        lines += ["Nothing is ready for you now; a claim with `wait` waits for up to a minute.", ""]
    claim = {} if "agent" not in given else {"agent": agent}
    lines += [
        f"1. Claim it: {spell(BY_NAME['claim'], claim)}. The answer names the task and your run.",
        f"2. Read it: {spell(BY_NAME['show'], {'taskId': '…'})}. Its acceptance criteria are what counts.",
        f"3. Note what you do: {spell(BY_NAME['update'], {'taskId': '…', 'note': '…'})}.",
        f"4. Finish it: {spell(BY_NAME['complete'], {'taskId': '…', 'summary': '…'})}.",
        *_judging(ready.tasks),
        f"   If you cannot go on: {spell(BY_NAME['block'], {'taskId': '…', 'reason': '…'})}.",
        "",
        "If a call is refused, its hint shows the call that works.",
    ]
    return [TextContent(text="\n".join(lines))]


def _judging(rows: Sequence[Row]) -> list[str]:
    """How a review among these tasks is sent back; nothing where there is none."""
    if not any("reviews" in row for row in rows):
        return []
    back = {"taskId": "…", "outcome": "needs_review", "blockers": ["…"]}
    return [f"   A review, if the work is not good: {spell(BY_NAME['complete'], back)}."]


def _review(hub: Hub, given: dict[str, str], caller: Caller) -> list[ContentBlock]:
    agent = given.get("agent", caller.actor)
    if "taskId" not in given:
        return [TextContent(text=_to_review(hub, agent, caller))]
    task_id = hub.fabric.resolve(given["taskId"])
    shown = _ask(hub, "show", {"taskId": task_id}, caller)
    hop = _hop(hub, task_id, agent, caller) if shown["status"] != "review" else None
    text = msgspec.json.encode(shown).decode()
    resource = TextResourceContents(uri=f"{TASKS}/{task_id}", mime_type=JSON, text=text)
    return [EmbeddedResource(resource=resource), TextContent(text=_how_to_judge(task_id, hop, agent))]


def _queue(hub: Hub, caller: Caller) -> ReadyQueue:
    services = hub.fabric.as_actor(caller.actor).services
    return ReadyQueue(services.environment, services.principal)


def _hop(hub: Hub, task_id: str, agent: str, caller: Caller) -> HopState:
    """The hop in which the agent reviews the task; raises the refusal where it may not, or where there is none."""
    task = hub.fabric.get(task_id)
    found = _queue(hub, caller).review(task, agent) if task.gated else None
    if isinstance(found, AofError):
        raise found
    if found is None:
        raise InvalidInput(
            f"{task_id} is {task.status}, and nothing of it waits for a review",
            "see how it stands",
            Call("show", {"task_id": task_id}),
        )
    return found


def _to_review(hub: Hub, agent: str, caller: Caller) -> str:
    waiting, hops = waiting_for(hub.fabric, agent), _queue(hub, caller).reviews(agent)
    if not waiting and not hops:
        return f"You are {agent}. Nothing waits for your review."
    listed = [f"- {task.id} {task.title}" for task in waiting]
    listed += [f"- {task.id} {task.title}: hop {hop.id} of a workflow" for task, hop in hops]
    more = [f"- and {len(listed) - _FEW} more"] if len(listed) > _FEW else []
    head = f"You are {agent}. These tasks wait for your review; take them one by one:"
    how = [_how_to_judge("…")] if waiting else []
    how += [_how_to_judge(task.id, hop, agent) for task, hop in hops[:_FEW]]
    return "\n".join([head, *listed[:_FEW], *more, "", "\n\n".join(how)])


def _line(row: Row) -> str:
    """A task that can be claimed, and of a workflow the hop."""
    return f"- {row.id} {row.title}" + (f": {row.step}" if row.step is not None else "")


def _how_to_judge(task_id: str, hop: HopState | None = None, agent: str = "") -> str:
    """The calls for both verdicts; a hop of a workflow is claimed first."""
    claim = [] if hop is None or hop.lease is not None else [{"taskId": task_id, "hop": hop.id, "agent": agent}]
    approve = spell(BY_NAME["complete"], {"taskId": task_id, "summary": "…"})
    reject = {"taskId": task_id, "outcome": "needs_review", "blockers": ["…"]}
    return "\n".join(
        [
            f"Review {task_id}: read it and what it delivers, and compare both with its acceptance criteria.",
            *(f"- Claim it first: {spell(BY_NAME['claim'], one)}" for one in claim),
            f"- Approve it: {approve}",
            f"- Send it back, with what has to change: {spell(BY_NAME['complete'], reject)}",
            "Do not approve work of your own.",
        ]
    )


_AGENT: Final = "whose session it is; default: the caller"
_OFFERS: Final = {
    "prime": _Offer("What an agent needs to know when its session begins.", {"agent": _AGENT}, _prime),
    "work-next": _Offer("Take the next task that is ready, and finish it.", {"agent": _AGENT}, _work_next),
    "review": _Offer(
        "Review what waits for it, or one task.",
        {"taskId": "task to review; without it, what waits", "agent": _AGENT},
        _review,
    ),
}


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
