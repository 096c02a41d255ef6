"""A session is one actor, and a run cannot promote itself: with real processes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from aof.app.fabric import Fabric
from aof.entrypoints.bootstrap import init_data_dir, open_fabric
from tests.surfaces.doors import Answer, OnTheCommandLine, OverMcp, Refusal, mcp_session

CHART = {"schemaVersion": 1, "agents": [{"id": "ada"}, {"id": "bob"}, {"id": "rev", "roles": ["reviewer"]}]}


@pytest.fixture
def fabric(tmp_path: Path) -> Iterator[Fabric]:
    """A data directory with a chart, and a maintainer who is not in it."""
    root, _ = init_data_dir(tmp_path / ".aof", actor="pm")
    chart = Path(root, "org/org-chart.yaml")
    chart.parent.mkdir(exist_ok=True)
    chart.write_text(json.dumps(CHART))
    with open_fabric(root, actor="pm") as fabric:
        yield fabric


def _root(fabric: Fabric) -> Path:
    return Path(fabric.store.paths.root)  # type: ignore[attr-defined]


def _code(answer: Answer) -> str:
    return answer.code if isinstance(answer, Refusal) else "yes"


def test_a_session_that_nobody_named_is_whoever_it_first_says_it_is(fabric: Fabric) -> None:
    first, second = (fabric.create(title).task_id for title in ("First", "Second"))
    with mcp_session(_root(fabric), tools="all", actor="") as (portal, client):
        mcp = OverMcp(_root(fabric), fabric, portal, client)
        assert _code(mcp.ask("show", task_id=first, actor="rev")) == "yes", "who reads has not said who it is"
        assert _code(mcp.ask("claim", task_id=first, agent="ada")) == "yes"
        assert _code(mcp.ask("complete", task_id=first)) == "yes"
        for operation, given in (("approve", {"actor": "rev"}), ("complete", {"actor": "pm"}), ("approve", {})):
            answer = mcp.ask(operation, task_id=first, **given)
            assert _code(answer) == ("actor_mismatch" if given else "own_work")
        assert _code(mcp.ask("claim", task_id=second, agent="bob")) == "actor_mismatch"
    completed = next(event for event in fabric.events(task_id=first) if event.type == "task.completed")
    assert (completed.actor, completed.called_by) == ("ada", None)
    assert fabric.get(first).status == "review"


@pytest.mark.parametrize(
    "words",
    [
        ("token", "create", "ada", "--role", "admin"),
        ("token", "list"),
        ("token", "revoke", "0"),
        ("init",),
        ("import", "all.tar"),
        ("up", "--once"),
    ],
    ids=" ".join,
)
def test_a_process_with_a_runs_secret_gives_itself_no_rights(fabric: Fabric, words: tuple[str, ...]) -> None:
    secret = fabric.claim(fabric.create("Work").task_id, agent="ada").secret
    assert isinstance(secret, str)
    inside = OnTheCommandLine(_root(fabric), fabric, {"AOF_ACTOR": "", "AOF_RUN_SECRET": secret})
    answer = inside.run(*words)
    assert isinstance(answer, Refusal)
    assert answer.code == "not_allowed"
    assert "AOF_RUN_SECRET" in answer.message


def test_a_process_with_a_runs_secret_acts_as_nobody_else(fabric: Fabric) -> None:
    secret = fabric.claim(fabric.create("Work").task_id, agent="ada").secret
    assert isinstance(secret, str)
    other = fabric.create("Other").task_id
    inside = OnTheCommandLine(_root(fabric), fabric, {"AOF_ACTOR": "", "AOF_RUN_SECRET": secret})
    assert _code(inside.run("claim", other, "--agent", "bob")) == "actor_mismatch"
    assert _code(inside.run("cancel", other, "--actor", "pm")) == "actor_mismatch"
