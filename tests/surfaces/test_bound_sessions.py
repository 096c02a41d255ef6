"""A session is one actor, and a run cannot promote itself: with real processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from aof.api.fabric import Fabric
from aof.service.bootstrap import init_data_dir, open_fabric
from tests.support.messages import prefixed, update
from tests.support.service import chart, workflow
from tests.surfaces.doors import (
    OnTheCommandLine,
    Refusal,
    code_of,
    mcp_on,
    refusal_of,
    root_of,
)


@pytest.fixture
def fabric(tmp_path: Path) -> Iterator[Fabric]:
    """A data directory with a chart, and a maintainer who is not in it."""
    root, _ = init_data_dir(tmp_path / ".aof", actor="pm")
    chart(Path(root), {"ada": {}, "bob": {}, "rev": {"roles": ["reviewer"]}})
    with open_fabric(root, actor="pm") as fabric:
        yield fabric


def test_a_session_that_nobody_named_is_whoever_it_first_says_it_is(fabric: Fabric) -> None:
    first, second = (fabric.create(title).task_id for title in ("First", "Second"))
    with mcp_on(fabric, tools="all", actor="") as mcp:
        assert code_of(mcp.ask("show", task_id=first, actor="rev")) == "yes", "who reads has not said who it is"
        assert code_of(mcp.ask("claim", task_id=first, agent="ada")) == "yes"
        assert code_of(mcp.ask("complete", task_id=first)) == "yes"
        for operation, given in (("approve", {"actor": "rev"}), ("complete", {"actor": "pm"}), ("approve", {})):
            answer = mcp.ask(operation, task_id=first, **given)
            assert code_of(answer) == ("actor_mismatch" if given else "not_allowed")
        assert code_of(mcp.ask("claim", task_id=second, agent="bob")) == "actor_mismatch"
    completed = next(event for event in fabric.events(task_id=first) if event.type == "task.completed")
    assert (completed.actor, completed.called_by) == ("ada", None)
    assert fabric.get(first).status == "review"


def _in_review(fabric: Fabric) -> str:
    task_id = fabric.create("Reviewed").task_id
    fabric.claim(task_id, agent="bob")
    fabric.complete(task_id, agent="bob")
    return task_id


@pytest.mark.parametrize("name", ["pm", "rev"])
def test_an_unproven_session_does_not_have_the_name_of_a_maintainer_or_a_reviewer(fabric: Fabric, name: str) -> None:
    task_id, free = _in_review(fabric), fabric.create("Free").task_id
    with mcp_on(fabric, tools="all", actor="") as mcp:
        text = prefixed(update(task_id, name, status="done"))
        for operation, given in (
            ("approve", {"task_id": task_id, "actor": name}),
            ("complete", {"task_id": task_id, "actor": name}),
            ("update", {"task_id": task_id, "actor": name, "status": "done"}),
            ("claim", {"task_id": free, "agent": name}),
            ("send", {"messages": [text], "actor": name}),
            ("sync", {"accept": task_id, "actor": name}),
        ):
            answer = refusal_of(mcp.ask(operation, **given), "unauthenticated")
            assert f"AOF_ACTOR={name}" in answer.hint
            assert "aof admin token create" in answer.hint
        assert code_of(mcp.ask("claim", task_id=free, agent="ada")) == "yes", "a worker's name is enough for work"
        assert code_of(mcp.ask("approve", task_id=task_id)) == "not_allowed"
        assert code_of(mcp.ask("approve", task_id=task_id, actor=name)) == "actor_mismatch"
        sent = mcp.ask("send", messages=[text])
        assert isinstance(sent, Refusal) or sent["results"][0]["outcome"] == "rejected"
        assert fabric.get(task_id).status == "review"
    with mcp_on(fabric, tools="all", actor=name) as mcp:
        assert code_of(mcp.ask("approve", task_id=task_id)) == "yes", "who configured the client has said so"


def test_an_unproven_session_takes_nothing_that_is_for_a_role(fabric: Fabric) -> None:
    hops = {"name": "build", "hops": [{"id": "make", "role": "reviewer"}]}
    workflow(root_of(fabric), hops)
    gated = fabric.create("Gated", workflow="build").task_id
    routed = fabric.create("Routed", role="reviewer").task_id
    with mcp_on(fabric, tools="all", actor="") as mcp:
        for task_id in (gated, routed):
            for operation, given in (("claim", {"agent": "ada"}), ("complete", {"actor": "ada"})):
                answer = mcp.ask(operation, task_id=task_id, **given)
                assert isinstance(answer, Refusal), operation
                assert (answer.code, "AOF_ACTOR=ada" in answer.hint) == ("not_allowed", True)


def test_a_session_that_never_says_a_name_is_no_maintainer_even_if_the_user_is_one(
    fabric: Fabric, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("USER", "pm")
    theirs = fabric.create("Theirs", actor="ada").task_id
    with mcp_on(fabric, tools="all", actor="") as mcp:
        assert code_of(mcp.ask("create", title="Own", brief="Do it.")) == "yes"
        assert code_of(mcp.ask("edit", task_id=theirs, metadata={"reviewRequired": False})) == "not_allowed"
        assert code_of(mcp.ask("cancel", task_id=theirs)) == "not_allowed"
        assert code_of(mcp.ask("sync", accept=theirs)) == "unauthenticated"
        assert code_of(mcp.ask("charter_init")) == "not_allowed"


@pytest.mark.parametrize("given", [{}, {"actor": "pm"}, {"agent": "pm"}])
def test_without_a_chart_too_only_a_proven_name_is_a_maintainers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, str]
) -> None:
    monkeypatch.setenv("USER", "pm")
    root, _ = init_data_dir(tmp_path / ".aof", actor="pm")
    with open_fabric(root, actor="pm") as fabric:
        with mcp_on(fabric, tools="all", actor="") as mcp:
            assert code_of(mcp.ask("charter_init", **given)) == "not_allowed"
            assert code_of(mcp.ask("worklog_now", text="the release", line="focus", **given)) == "not_allowed"
            assert code_of(mcp.ask("mail_send", to="maintainer", subject="Question")) == "yes", "mail still finds them"
        with mcp_on(fabric, tools="all", actor="pm") as mcp:
            assert code_of(mcp.ask("charter_init")) == "yes"


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
    inside = OnTheCommandLine(root_of(fabric), fabric, {"AOF_ACTOR": "", "AOF_RUN_SECRET": secret})
    assert "AOF_RUN_SECRET" in refusal_of(inside.run(*words), "not_allowed").message


def test_a_process_with_a_runs_secret_acts_as_nobody_else(fabric: Fabric) -> None:
    secret = fabric.claim(fabric.create("Work").task_id, agent="ada").secret
    assert isinstance(secret, str)
    other = fabric.create("Other").task_id
    inside = OnTheCommandLine(root_of(fabric), fabric, {"AOF_ACTOR": "", "AOF_RUN_SECRET": secret})
    assert code_of(inside.run("claim", other, "--agent", "bob")) == "actor_mismatch"
    assert code_of(inside.run("cancel", other, "--actor", "pm")) == "actor_mismatch"
