"""What an agent over MCP is told of hops that review the work of others, before it claims one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from aof.api.fabric import Fabric
from aof.service.bootstrap import init_data_dir, open_fabric
from tests.support.service import workflow
from tests.support.workflows import REVIEW
from tests.surfaces.doors import mcp_session, root_of


@pytest.fixture
def fabric(tmp_path: Path) -> Iterator[Fabric]:
    """A data directory with a task that ada has implemented, and one that is reserved for eve."""
    root = Path(init_data_dir(tmp_path / ".aof")[0])
    workflow(root, REVIEW)
    with open_fabric(root, actor="pm") as fabric:
        fabric.create("Add refresh", workflow="review")
        fabric.claim("001", agent="ada")
        fabric.complete("001", "It works.", agent="ada")
        fabric.create("Eve's", agent="eve")
        yield fabric


class _Agent:
    """An agent's session."""

    def __init__(self, portal: Any, client: Any) -> None:
        self._portal = portal
        self._client = client

    def prompt(self, name: str, **given: str) -> str:
        messages = self._portal.call(self._client.get_prompt, name, given).messages
        return "\n".join(getattr(one.content, "text", "") for one in messages)

    def call(self, name: str, **given: Any) -> Any:
        return json.loads(self._portal.call(self._client.call_tool, name, given).content[0].text)


@pytest.fixture
def agent(fabric: Fabric) -> Iterator[Any]:
    """Opens sessions."""
    with ExitStack() as stack:
        root = root_of(fabric)
        yield lambda name: _Agent(*stack.enter_context(mcp_session(root, actor=name)))


def test_the_review_prompt_knows_hops(agent: Any) -> None:
    bob, ada = agent("bob"), agent("ada")
    for said in (bob.prompt("review"), bob.prompt("review", taskId="001")):
        assert 'aof_task_claim({"taskId":"TASK-' in said
        assert '"hop":"code-review"' in said
        assert '"outcome":"needs_review"' in said
    assert "Nothing waits for your review" in ada.prompt("review")
    with pytest.raises(MCPError, match="has worked on hop 'implement'"):
        ada.prompt("review", taskId="001")
    bob.call("aof_task_claim", taskId="001")
    said = bob.prompt("review")
    assert '"outcome":"needs_review"' in said
    assert "aof_task_claim" not in said


def test_what_no_hop_reviews_is_refused_with_a_call_that_goes_on(fabric: Fabric, agent: Any) -> None:
    fabric.create("New", workflow="review")
    with pytest.raises(MCPError, match="nothing of it waits for a review") as refused:
        agent("bob").prompt("review", taskId="003")
    assert "aof_task_show" in refused.value.error.data["hint"]


def test_a_session_is_offered_what_it_can_claim_with_the_hop_before_the_claim(agent: Any) -> None:
    (row,) = agent("bob").call("aof_ready")["tasks"]
    assert (row["hop"], row["role"], row["reviews"]) == ("code-review", "reviewer", ["ada"])
    assert "code-review (reviewer) of ada's work" in agent("bob").prompt("work-next")
    assert [one["title"] for one in agent("eve").call("aof_ready")["tasks"]] == ["Add refresh", "Eve's"]
    ada = agent("ada").call("aof_ready", explain=True)
    assert ada["tasks"] == []
    assert "ada has worked on hop 'implement'" in ada["notReady"][0]["reason"]
