"""Long work as the protocol's Tasks extension: a handle that survives restarts of both sides."""

from __future__ import annotations

from typing import Any, Literal

import anyio
import pytest
from mcp.client.client import Client
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.shared.exceptions import MCPError
from mcp_types import MISSING_REQUIRED_CLIENT_CAPABILITY, CallToolResult, Request, RequestParams, Result

from aof.api.fabric import Fabric
from tests.surfaces.doors import mcp_process, root_of

EXTENSION = "io.modelcontextprotocol/tasks"
NEWEST = "2026-07-28"


class Handle(Result):
    """What a client that knows the extension gets in place of a result."""

    result_type: Literal["task"] = "task"
    task_id: str
    status: str


class Followed(Result):
    """A task as the extension shows it."""

    task_id: str
    status: str
    status_message: str | None = None
    ttl_ms: int | None
    result: dict[str, Any] | None = None


class About(RequestParams):
    """Which task."""

    task_id: str


class Ask(Request[About, str]):
    """A request of the extension."""

    method: str
    params: About


class Tasks(ClientExtension):
    """A client that knows the extension and keeps the handles that it is given."""

    identifier = EXTENSION

    def __init__(self) -> None:
        self.handles: list[Handle] = []

    def claims(self) -> tuple[ResultClaim[Handle], ...]:
        return (ResultClaim(result_type="task", model=Handle, resolve=self._keep),)

    async def _keep(self, handle: Handle, _context: ClaimContext) -> CallToolResult:
        self.handles.append(handle)
        kept = {"taskId": handle.task_id, "status": handle.status, "filePath": ""}
        return CallToolResult(content=[], structured_content=kept)


def _talk(fabric: Fabric, calls: Any, *extensions: ClientExtension) -> Any:
    async def talk() -> Any:
        root = root_of(fabric)
        async with Client(mcp_process(root), mode=NEWEST, extensions=extensions) as client:
            return await calls(client)

    return anyio.run(talk)


def _dispatched(fabric: Fabric) -> Handle:
    known = Tasks()
    given = {"title": "Long", "brief": "Take your time.", "wait": True, "metadata": {"reviewRequired": False}}
    _talk(fabric, lambda client: client.call_tool("aof_dispatch", given), known)
    (handle,) = known.handles
    return handle


def _get(fabric: Fabric, task_id: str) -> Followed:
    asked = Ask(method="tasks/get", params=About(task_id=task_id))
    found: Followed = _talk(fabric, lambda client: client.session.send_request(asked, Followed), Tasks())
    return found


def test_a_dispatch_that_waits_answers_with_a_handle_that_other_processes_can_follow(fabric: Fabric) -> None:
    handle = _dispatched(fabric)
    assert handle.status == "working"
    assert fabric.get(handle.task_id).title == "Long"
    assert _get(fabric, handle.task_id).status == "working"
    fabric.block(handle.task_id, reason="no key")
    assert _get(fabric, handle.task_id).status_message == "blocked: no key"
    fabric.unblock(handle.task_id)
    fabric.complete(handle.task_id, agent="ada")
    done = _get(fabric, handle.task_id)
    assert (done.status, done.ttl_ms) == ("completed", None)
    assert done.result is not None
    path = f"tasks/done/{handle.task_id}.md"
    assert done.result["structuredContent"] == {"taskId": handle.task_id, "status": "done", "filePath": path}


def test_work_that_is_given_up_is_a_result_that_says_so(fabric: Fabric) -> None:
    handle = _dispatched(fabric)
    fabric.claim(handle.task_id, agent="ada")
    fabric.fail(handle.task_id, agent="ada", code="tests_failed", message="3 of 20", retryable=False)
    given_up = _get(fabric, handle.task_id)
    assert given_up.status == "completed"
    assert given_up.result is not None
    assert given_up.result["isError"]
    assert "tests_failed" in (given_up.status_message or "")


def test_a_handle_can_be_cancelled(fabric: Fabric) -> None:
    handle = _dispatched(fabric)
    asked = Ask(method="tasks/cancel", params=About(task_id=handle.task_id))
    _talk(fabric, lambda client: client.session.send_request(asked, Result), Tasks())
    assert fabric.get(handle.task_id).status == "cancelled"
    assert _get(fabric, handle.task_id).status == "cancelled"


def test_a_client_without_the_extension_gets_the_plain_answer(fabric: Fabric) -> None:
    given = {"title": "Long", "brief": "Take your time.", "wait": True}
    answer = _talk(fabric, lambda client: client.call_tool("aof_dispatch", given))
    assert answer.structured_content["status"] == "ready"


def test_who_does_not_know_the_extension_is_told_that_it_is_needed(fabric: Fabric) -> None:
    handle = _dispatched(fabric)

    async def ask(client: Client) -> None:
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            with pytest.raises(MCPError) as refused:
                await client.session.send_request(Ask(method=method, params=About(task_id=handle.task_id)), Result)
            assert refused.value.error.code == MISSING_REQUIRED_CLIENT_CAPABILITY
            assert refused.value.error.data == {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}

    _talk(fabric, ask)
    assert fabric.get(handle.task_id).status == "ready"


def test_a_handle_that_nobody_gave_is_refused(fabric: Fabric) -> None:
    async def ask(client: Client) -> None:
        with pytest.raises(MCPError, match="no task"):
            await client.session.send_request(
                Ask(method="tasks/get", params=About(task_id="TASK-1999-01-01-001")), Followed
            )

    _talk(fabric, ask, Tasks())
