"""Agents that have nothing but the tools listed for workers finish a gated task without one refused call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from aof.api.fabric import Fabric
from aof.service.bootstrap import init_data_dir, open_fabric
from tests.support.service import workflow
from tests.surfaces.doors import OverMcp, mcp_session

GATED = {
    "name": "gated",
    "hops": [
        {"id": "implement", "role": "developer"},
        {"id": "check", "role": "reviewer", "dependsOn": ["implement"], "canReject": True},
    ],
}
NAMES = ("ada", "bob", "rita")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = Path(init_data_dir(tmp_path / ".aof", actor="pm")[0])
    workflow(made, GATED)
    return made


@pytest.fixture
def fabric(root: Path) -> Iterator[Fabric]:
    with open_fabric(root, actor="pm") as one:
        yield one


@pytest.fixture
def agents(root: Path, fabric: Fabric) -> Iterator[dict[str, OverMcp]]:
    """A session for each of them, that renews what it claims."""
    with ExitStack() as begun:
        sessions = {name: begun.enter_context(mcp_session(root, tools="worker", actor=name)) for name in NAMES}
        yield {name: OverMcp(root, fabric, *session) for name, session in sessions.items()}


def test_a_gated_task_with_a_question_a_delegation_and_rework_takes_no_refused_call(
    fabric: Fabric, agents: dict[str, OverMcp]
) -> None:
    def call(name: str, tool: str, **given: Any) -> dict[str, Any]:
        answer = agents[name].call(tool, given)
        assert isinstance(answer, dict), (name, tool, given, answer)
        return answer

    task = fabric.create("Add a greeting", "In three languages.", workflow="gated").task_id
    assert call("ada", "aof_task_claim")["taskId"] == task
    asked = call("ada", "aof_ask", taskId=task, text="Which is the third?", choices=["French", "Spanish"], wait=0)
    fabric.answer(task, "French", question=asked["question"])
    assert call("ada", "aof_ask", taskId=task, question=asked["question"], wait=5)["answer"]["text"] == "French"

    part = call("ada", "aof_dispatch", title="Test it", brief="It exits 0.", parentId=task, agent="bob")["taskId"]
    assert call("ada", "aof_task_release", taskId=task, waitForChildren=True)["waitsFor"] == [part]
    assert call("bob", "aof_task_claim")["taskId"] == part
    call("bob", "aof_task_progress", taskId=part, text="drafted", percent=50)
    assert call("bob", "aof_task_complete", taskId=part, summary="it exits 0")["status"] == "review"
    assert call("ada", "aof_task_complete", taskId=part, summary="looks right")["status"] == "done"

    assert call("ada", "aof_task_claim")["taskId"] == task
    (result,) = call("ada", "aof_task_show", taskId=task)["children"]["tasks"]
    assert result["summary"] == "it exits 0"
    call("ada", "aof_task_complete", taskId=task, summary="three languages")
    assert call("rita", "aof_task_claim")["hop"] == "check"
    sent_back = call("rita", "aof_task_complete", taskId=task, outcome="changes_requested", blockers=["no newline"])
    assert sent_back["sentBack"] == ["implement"]
    assert call("ada", "aof_task_claim")["hop"] == "implement"
    assert call("ada", "aof_task_show", taskId=task)["workflow"]["feedback"]["blockers"] == ["no newline"]
    call("ada", "aof_task_complete", taskId=task, summary="newline added")
    call("rita", "aof_task_claim")
    assert call("rita", "aof_task_complete", taskId=task, summary="good", outcome="approved")["status"] == "done"
