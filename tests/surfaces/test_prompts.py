"""Prompts and completion over MCP: what a person picks in a client, and what it suggests while they type."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import EmbeddedResource, PromptReference, ResourceTemplateReference, TextContent, TextResourceContents

from aof.api.catalogue import BY_TOOL
from aof.api.fabric import Fabric
from aof.service.bootstrap import init_data_dir, open_fabric
from tests.support.service import chart
from tests.surfaces.doors import mcp_session, root_of


@pytest.fixture(scope="module")
def fabric(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fabric]:
    """A data directory with work of ada's in review, and work that is ready."""
    root = Path(init_data_dir(tmp_path_factory.mktemp("prompts") / ".aof")[0])
    chart(root, {"ada": {}, "bob": {}, "rita": {"roles": ["reviewer"]}})
    with open_fabric(root, actor="pm") as fabric:
        fabric.create("Judge me", acceptance=["it works"])
        fabric.complete(fabric.claim(agent="ada").task_id, agent="ada", summary="Built.", acceptance=["it works"])
        fabric.create("Take me", priority="high")
        fabric.create("Held up", agent="bob")
        fabric.block("003", reason="no key")
        yield fabric


@pytest.fixture(scope="module")
def rita(fabric: Fabric) -> Iterator[tuple[Any, Any]]:
    """The session of the reviewer."""
    with mcp_session(root_of(fabric), actor="rita") as session:
        yield session


@pytest.fixture
def prompted(rita: tuple[Any, Any]) -> Callable[..., list[Any]]:
    """The contents of a prompt."""
    portal, client = rita

    def get(name: str, **given: str) -> list[Any]:
        return [message.content for message in portal.call(client.get_prompt, name, given).messages]

    return get


def _text(contents: list[Any]) -> str:
    (content,) = contents
    assert isinstance(content, TextContent)
    return content.text


def test_the_prompts_are_listed_with_their_arguments(rita: tuple[Any, Any]) -> None:
    portal, client = rita
    listed = {one.name: [arg.name for arg in one.arguments] for one in portal.call(client.list_prompts).prompts}
    assert listed == {"prime": ["agent"], "work-next": ["agent"], "review": ["taskId", "agent"]}


def test_prime_says_what_waits_for_the_callers_review(fabric: Fabric, prompted: Callable[..., list[Any]]) -> None:
    text = _text(prompted("prime"))
    assert text.startswith("# AOF: you are rita")
    assert "Waiting for your review:\n- TASK-" in text
    assert "Judge me" in text
    assert "note" in text
    assert "in the body" not in text
    for other in ("ada", "bob"):
        assert "Waiting for your review" not in _text(prompted("prime", agent=other))


def test_work_next_names_what_is_ready_and_only_tools_of_the_core_set(prompted: Callable[..., list[Any]]) -> None:
    for text in (_text(prompted("work-next", agent="ada")), _text(prompted("review"))):
        named = {word.partition("(")[0] for word in text.split() if word.startswith("aof_")}
        assert named
        assert {BY_TOOL[name].tier for name in named} == {"core"}
    assert "Take me" in _text(prompted("work-next", agent="ada"))


def test_review_brings_the_task_along_or_says_why_not(prompted: Callable[..., list[Any]]) -> None:
    task, how = prompted("review", taskId="001")
    assert isinstance(task, EmbeddedResource)
    assert isinstance(task.resource, TextResourceContents)
    assert json.loads(task.resource.text)["acceptance"] == ["it works"]
    assert "aof_task_complete" in how.text
    assert "Judge me" in _text(prompted("review"))
    assert "Nothing waits" in _text(prompted("review", agent="ada"))
    for name, given in (
        ("review", {"taskId": "002"}),
        ("review", {"taskId": "999"}),
        ("none", {}),
        ("prime", {"x": "y"}),
    ):
        with pytest.raises(MCPError) as refused:
            prompted(name, **given)
        assert refused.value.code == -32602


@pytest.mark.parametrize(
    ("argument", "typed", "expected"),
    [
        ("status", "re", ["ready", "review"]),
        ("status", "none", []),
        ("agent", "", ["ada", "bob", "rita"]),
        ("agent", "B", ["bob"]),
        ("other", "x", []),
    ],
)
def test_agents_and_statuses_are_completed(
    rita: tuple[Any, Any], argument: str, typed: str, expected: list[str]
) -> None:
    portal, client = rita
    ref = ResourceTemplateReference(uri="aof://tasks{?status}")
    found = portal.call(client.complete, ref, {"name": argument, "value": typed}).completion
    assert (found.values, found.total, found.has_more) == (expected, len(expected), False)


def test_ids_are_completed_by_number_and_title_and_for_a_review_by_what_is_in_review(rita: tuple[Any, Any]) -> None:
    portal, client = rita

    def completed(ref: Any, name: str, typed: str) -> list[str]:
        return [one[-3:] for one in portal.call(client.complete, ref, {"name": name, "value": typed}).completion.values]

    task, review = ResourceTemplateReference(uri="aof://tasks/{id}"), PromptReference(name="review")
    assert completed(task, "id", "") == ["003", "002", "001"]
    assert completed(task, "id", "002") == ["002"]
    assert completed(task, "id", "judge") == ["001"]
    assert completed(review, "taskId", "") == ["001"]
