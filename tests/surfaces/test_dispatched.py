"""What an agent dispatches or cancels with a tool, and what the scheduler then makes of it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import ryaml

from aof.service.bootstrap import open_fabric
from aof.service.runners.processes import processes_of_run
from aof.service.upkeep import trust_data_dir
from tests.support.requirements import requirement
from tests.support.service import Up, definition, directory, lives, scripted
from tests.surfaces.doors import (
    OnTheCommandLine,
    OverMcp,
    answer_of,
    mcp_door,
    mcp_session,
    of_tool,
    refusal_of,
)

PROCESS = {"kind": "process", "command": scripted("report=done")}
EVERYBODY: dict[str, Any] = {
    "first": {},
    "ada": {},
    "tess": {"roles": ["tester"]},
    "lea": {"team": "eng"},
    "otto": {"team": "eng", "concurrency": 1},
    "dan": {},
    "dora": {},
    "sam": {"capabilities": ["sql", "api"]},
    "sue": {"capabilities": ["sql", "api"]},
    "sid": {"capabilities": ["sql"]},
}
CHART = {
    "schemaVersion": 1,
    "agents": [{"id": name, "concurrency": 9, "runner": PROCESS} | given for name, given in EVERYBODY.items()],
    "teams": [{"id": "eng", "lead": "lea", "orchestrator": "otto"}],
    "routing": [
        {"tags": ["docs"], "to": {"agent": "dan"}, "weight": 1},
        {"tags": ["docs"], "to": {"agent": "dora"}, "weight": 5},
    ],
}


@pytest.fixture
def mcp(tmp_path: Path) -> Iterator[OverMcp]:
    """A session of its own on an empty directory."""
    with mcp_door(tmp_path) as door:
        yield door


@pytest.fixture
def cli(mcp: OverMcp) -> OnTheCommandLine:
    """The command on the same directory."""
    return OnTheCommandLine(mcp.root, mcp.elsewhere)


@pytest.fixture
def team(mcp: OverMcp) -> None:
    """An org chart, whose commands are trusted."""
    definition(mcp.root, "org/org-chart.yaml", CHART)
    trust_data_dir(mcp.root)


def dispatch(mcp: OverMcp, **given: Any) -> str:
    """The ID of a task that the tool has made."""
    said = answer_of(mcp.call("aof_dispatch", {"title": "Do it", "brief": "All of it."} | given))
    assert "warning" not in said
    return str(said["taskId"])


def front(root: Path, task_id: str) -> dict[str, Any]:
    """The frontmatter of its file."""
    (path,) = root.glob(f"tasks/*/{task_id}.md")
    return msgspec.convert(ryaml.loads(path.read_text().split("\n---\n")[0][4:]), dict[str, Any])


def planned(cli: OnTheCommandLine) -> dict[str, str]:
    """Who would be given which task by the next tick, in its order."""
    said = answer_of(cli.run("tick", "--dry-run"))
    return {one["taskId"]: one["agent"] for one in said["actions"] if one["action"] == "assign"}


@pytest.mark.usefixtures("team")
class TestTarget:
    """Who gets a task."""

    @requirement("tools.dispatch.target")
    def test_what_a_dispatch_says_decides_in_its_order_and_is_stored(self, mcp: OverMcp, cli: OnTheCommandLine) -> None:
        targets: tuple[tuple[dict[str, Any], str], ...] = (
            ({"agent": "ada"}, "ada"),
            ({"role": "tester"}, "tess"),
            ({"team": "eng"}, "otto"),
            ({"tags": ["docs"]}, "dora"),
            ({"agent": "ada", "role": "tester", "team": "eng", "tags": ["docs"]}, "ada"),
            ({"role": "tester", "team": "eng", "tags": ["docs"]}, "tess"),
            ({"team": "eng", "tags": ["docs"]}, "otto"),
        )
        for given, agent in targets:
            task_id = dispatch(mcp, **given)
            assert planned(cli) == {task_id: agent}
            assert front(mcp.root, task_id)["routing"] == given
            mcp.elsewhere.cancel(task_id)

    @requirement("tools.dispatch.target")
    def test_a_team_whose_orchestrator_is_busy_gives_the_task_to_its_lead(
        self, mcp: OverMcp, cli: OnTheCommandLine
    ) -> None:
        first, second = dispatch(mcp, team="eng"), dispatch(mcp, team="eng")
        assert planned(cli) == {first: "otto", second: "lea"}

    @requirement("tools.dispatch.target")
    def test_without_a_target_the_least_busy_that_can_do_all_of_it_gets_the_task(
        self, mcp: OverMcp, cli: OnTheCommandLine
    ) -> None:
        held = dispatch(mcp, agent="sam")
        mcp.elsewhere.claim(held, agent="sam")
        by_tag = dispatch(mcp, tags=["sql", "api"])
        assert planned(cli) == {by_tag: "sue"}
        mcp.elsewhere.cancel(by_tag)
        said = answer_of(cli.run("create", "Needs both", "--capability", "sql", "--capability", "api"))
        assert planned(cli) == {said["taskId"]: "sue"}
        assert "routing" not in front(mcp.root, said["taskId"]), "nobody was named"


@requirement("tools.dispatch.priority")
@pytest.mark.usefixtures("team")
def test_the_most_urgent_comes_first_however_late_it_was_dispatched(mcp: OverMcp, cli: OnTheCommandLine) -> None:
    order = ("low", "normal", "high", "critical")
    ids = [dispatch(mcp, priority=one, agent="ada") for one in (*order, *order)]
    expected = [ids[place] for place in (3, 7, 2, 6, 1, 5, 0, 4)]
    assert list(planned(cli)) == expected
    ready = answer_of(cli.run("ready"))
    assert [row["id"] for row in ready["tasks"]] == expected
    assert [front(mcp.root, one)["priority"] for one in ids] == [*order, *order]

    for bad in ("urgent", "critical!", "", 1):
        refused = refusal_of(mcp.call("aof_dispatch", {"title": "Do it", "brief": "Now.", "priority": bad}), "invalid")
        assert all(one in f"{refused.message} {refused.hint}" for one in order), refused
    refused = refusal_of(cli.run("create", "Do it", "--priority", "urgent"), "invalid")
    assert all(one in f"{refused.message} {refused.hint}" for one in order), refused
    assert mcp.elsewhere.list().total == len(ids), "a refused dispatch makes no task"


@requirement("task.record.priority")
@pytest.mark.usefixtures("team")
def test_an_urgent_task_that_waits_holds_up_nothing(mcp: OverMcp, cli: OnTheCommandLine) -> None:
    blocker = dispatch(mcp, agent="sam")
    run = mcp.elsewhere.claim(blocker, agent="sam").run_id
    urgent = dispatch(mcp, agent="otto", priority="critical", dependsOn=[blocker])
    low = dispatch(mcp, agent="otto", priority="low")
    assert planned(cli) == {low: "otto"}
    mcp.elsewhere.complete(blocker, run=run)
    mcp.elsewhere.approve(blocker)
    assert planned(cli) == {urgent: "otto"}, "now the low one waits: there is room for one"


@requirement("tools.cancel.running")
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks for processes in /proc")
def test_a_cancelled_worker_is_asked_then_made_to_stop_and_writes_nothing_more(tmp_path: Path) -> None:
    words = ("hear=heard TERM", "say=begun", "update=on", "wait", "report=done", "update=late", "wait")
    runner = {"kind": "process", "command": scripted(*words), "grace": "5s"}
    root = directory(tmp_path, {"ada": {"runner": runner}})
    with open_fabric(root, actor="pm") as fabric, Up(root) as up:
        task_id = fabric.create("Too long", agent="ada").task_id
        up.wait("message", task_id)
        lease = fabric.get(task_id).lease
        assert lease is not None
        (pid,) = processes_of_run(str(root), lease.run_id)
        late = {"taskId": task_id, "body": "Late.\n"}
        with mcp_session(root, tools="all", actor="ada", run=lease.run_id) as (portal, client):

            def call(tool: str, arguments: dict[str, Any]) -> Any:
                return of_tool(portal.call(client.call_tool, tool, arguments))

            body = fabric.get(task_id).body
            assert call("aof_task_cancel", {"taskId": task_id, "reason": "not needed"})["status"] == "in-progress"
            assert fabric.show(task_id)["normalizedStatus"] == "cancelling"
            assert call("aof_task_update", late).code == "stale_lease"
            up.wait("exit", task_id)
            assert up.end() == 0
            shown = fabric.show(task_id)
            assert (shown["status"], shown["normalizedStatus"]) == ("cancelled", "cancelled")
            assert call("aof_task_complete", {"taskId": task_id}).code == "stale_lease"
            assert call("aof_task_update", late).code == "stale_lease"
        log = list(fabric.events(task_id=task_id))
        assert fabric.get(task_id).body == body, "what it said when it was to stop has changed nothing"
    (asked,), (exited,), (moved,) = (
        [event for event in log if event.type == kind and event.payload.get("to") in (None, "cancelled")]
        for kind in ("task.cancel_requested", "run.exited", "task.transitioned")
    )
    assert asked.seq < exited.seq <= moved.seq
    assert (exited.payload["signal"], exited.payload["stopped"]) == (signal.SIGKILL, "cancelled")
    assert "heard TERM" in (root / "runs" / task_id / "attempts/1/output.log").read_text()
    refused = [event.payload["reason"] for event in log if event.type == "protocol.message.rejected"]
    assert refused == ["stale_lease"] * 2
    assert not lives(pid)


@requirement("tools.dispatch.parent-and-metadata")
def test_a_dispatched_child_stands_below_its_parent_and_keeps_its_metadata(mcp: OverMcp, cli: OnTheCommandLine) -> None:
    links = {"pr": [17, {"draft": None, "deep": {"er": [True, 2.5, "ü"]}}]}
    nested = {"estimate": 3, "links": links, "vendor.x": False, "unheardOf": [], "empty": ""}
    parent = dispatch(mcp)
    child = dispatch(mcp, parentId=parent[-3:], metadata=nested)
    assert front(mcp.root, child)["parentId"] == parent

    def edges() -> set[tuple[str, str, str]]:
        view = answer_of(cli.run("snapshot"))
        return {(edge["sourceId"], edge["kind"], edge["targetId"]) for edge in view["taskGraph"]["edges"]}

    assert edges() == {(parent, "child", child), (child, "parent", parent)}

    for tool, given in (
        ("aof_task_edit", {"title": "Do it well", "priority": "high", "routing": {"tags": ["x"]}}),
        ("aof_task_update", {"body": "Other words."}),
        ("aof_task_block", {"reason": "no key"}),
        ("aof_task_unblock", {}),
    ):
        answer_of(mcp.call(tool, {"taskId": child} | given))
    assert front(mcp.root, child)["metadata"] == answer_of(mcp.ask("show", task_id=child))["metadata"] == nested
    answer_of(mcp.call("aof_task_edit", {"taskId": child, "metadata": {"more": True}}))
    kept = front(mcp.root, child)["metadata"]
    assert (kept["estimate"], kept["links"], kept["vendor.x"], kept["more"]) == (3, links, False, True)

    before, total = edges(), mcp.elsewhere.list().total
    answer_of(mcp.call("aof_task_cancel", {"taskId": parent, "reason": "superseded"}))
    for wrong, code in ((parent, "cancel_requested"), ("999", "task_not_found")):
        refusal_of(mcp.call("aof_dispatch", {"title": "Late", "brief": "Too late.", "parentId": wrong}), code)
    assert (edges(), mcp.elsewhere.list().total) == (before, total)
