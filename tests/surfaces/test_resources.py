"""Tasks as MCP resources, and word of their changes for clients that ask for it."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest
from mcp.client.client import Client
from mcp.client.session import IncomingMessage
from mcp.client.subscriptions import ServerEvent
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ResourceUpdated
from mcp_types import ResourceUpdatedNotification

from aof.api.fabric import Fabric
from tests.support.portable import valid
from tests.support.requirements import requirement
from tests.surfaces.doors import OnTheCommandLine, mcp_process, mcp_session, root_of


def test_tasks_can_be_read_one_by_one_and_by_status(fabric: Fabric) -> None:
    ready, held = fabric.create("Ready").task_id, fabric.create("Held").task_id
    fabric.block(held, reason="x")
    with mcp_session(root_of(fabric)) as (portal, client):
        templates = portal.call(client.list_resource_templates).resource_templates
        assert {one.uri_template for one in templates} == {"aof://tasks/{id}", "aof://tasks{?status}"}
        assert [str(one.uri) for one in portal.call(client.list_resources).resources] == [
            "aof://tasks",
            "aof://snapshot",
            "aof://org",
        ]

        def read(uri: str) -> Any:
            (content,) = portal.call(client.read_resource, uri).contents
            assert content.mime_type == "application/json"
            return json.loads(content.text)  # type: ignore[union-attr]

        assert read(f"aof://tasks/{ready}")["title"] == "Ready"
        assert [row["id"] for row in read("aof://tasks")["tasks"]] == [ready, held]
        assert [row["id"] for row in read("aof://tasks?status=blocked")["tasks"]] == [held]
        for wrong in (
            "aof://tasks/TASK-1999-01-01-001",
            "aof://nothing",
            "aof://tasks?status=open",
            "file:///etc/passwd",
        ):
            with pytest.raises(MCPError) as refused:
                read(wrong)
            assert refused.value.error.data["uri"] == wrong


@pytest.mark.parametrize(("mode", "code"), [("legacy", -32002), ("auto", -32602)])
def test_a_resource_that_is_not_there_is_refused_in_the_words_of_the_revision(
    fabric: Fabric, mode: str, code: int
) -> None:
    uri = "aof://tasks/TASK-1999-01-01-001"
    with mcp_session(root_of(fabric), mode=mode) as (portal, client), pytest.raises(MCPError) as refused:
        portal.call(client.read_resource, uri)
    assert (refused.value.code, refused.value.error.data["uri"]) == (code, uri)
    assert refused.value.error.data["code"] == "task_not_found"


@requirement("task.snapshot.shape")
def test_the_snapshot_is_a_resource_in_the_same_form_as_on_the_command_line(fabric: Fabric) -> None:
    root = root_of(fabric)
    cli = OnTheCommandLine(root, fabric)
    with mcp_session(root) as (portal, client):

        def read() -> Any:
            (content,) = portal.call(client.read_resource, "aof://snapshot").contents
            assert content.mime_type == "application/json"
            view = valid(json.loads(content.text))  # type: ignore[union-attr]
            assert view == cli.run("snapshot")
            return view

        assert read()["tasks"] == []
        good, bad = fabric.create("Good").task_id, fabric.create("Bad").task_id
        assert [task["taskId"] for task in read()["tasks"]] == [good, bad]
        (root / f"tasks/ready/{bad}.md").write_text("---\ntitle: [\n---\n")
        assert [task["status"] for task in read()["tasks"]] == ["queued", "unknown"]


@pytest.mark.filterwarnings("ignore:resources/subscribe")
def test_a_client_of_the_older_era_hears_of_what_it_subscribed_to(fabric: Fabric) -> None:
    mine, other = fabric.create("Mine").task_id, fabric.create("Other").task_id

    async def talk() -> list[str]:
        heard: list[str] = []
        enough = anyio.Event()

        async def note(message: IncomingMessage) -> None:
            if isinstance(message, ResourceUpdatedNotification):
                heard.append(str(message.params.uri))
                enough.set()

        async with Client(mcp_process(root_of(fabric)), mode="legacy", message_handler=note) as client:
            await client.subscribe_resource(f"aof://tasks/{mine}")
            await anyio.to_thread.run_sync(lambda: fabric.block(other, reason="x"))
            await anyio.to_thread.run_sync(lambda: fabric.block(mine, reason="x"))
            with anyio.fail_after(30):
                await enough.wait()
        return heard

    assert set(anyio.run(talk)) == {f"aof://tasks/{mine}"}


def test_a_client_of_the_newest_era_listens_to_changes(fabric: Fabric) -> None:
    mine = fabric.create("Mine").task_id

    async def talk() -> ServerEvent:
        wanted = [f"aof://tasks/{mine}"]
        async with (
            Client(mcp_process(root_of(fabric)), mode="2026-07-28") as client,
            client.listen(resource_subscriptions=wanted) as changes,
        ):
            await anyio.to_thread.run_sync(lambda: fabric.block(mine, reason="x"))
            with anyio.fail_after(30):
                async for change in changes:
                    return change
        raise AssertionError

    assert anyio.run(talk) == ResourceUpdated(uri=f"aof://tasks/{mine}")
