"""What an MCP session holds: its leases are kept, its run is the one that writes, and both end with it."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from aof.api.fabric import Fabric
from aof.kernel.model import millis
from aof.service.bootstrap import open_fabric
from aof.workflows.model import workflow_of
from tests.support.messages import prefixed, report
from tests.support.portable import valid
from tests.support.present import present
from tests.support.requirements import requirement
from tests.support.service import workflow
from tests.support.waiting import eventually
from tests.support.workflows import hop, template
from tests.surfaces.conftest import Doors
from tests.surfaces.doors import OverHttp, answer_of, mcp_on, new_token, of_tool, refusal_of, root_of

LONG = 30.0  # seconds; a bound on waiting that only a failure reaches


def _beats(fabric: Fabric, task_id: str) -> int:
    return int(json.loads((root_of(fabric) / "runs" / task_id / "run_heartbeat.json").read_text())["beatCount"])


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_lease_is_renewed_while_the_session_lives_and_fails_by_name_when_it_ends(fabric: Fabric, mode: str) -> None:
    task_id = fabric.create("Long work").task_id
    with mcp_on(fabric, mode=mode, actor="ada") as mcp:
        claimed = answer_of(mcp.call("aof_task_claim", {"taskId": task_id, "ttl": 1}))
        first_end = millis(claimed["expiresAt"])
        eventually(lambda: fabric.now() > first_end and _beats(fabric, task_id) >= 2)
        assert fabric.recover() == ()
        lease = present(fabric.get(task_id).lease)
        assert lease.agent == "ada"
    eventually(lambda: fabric.get(task_id).lease is None)
    task = fabric.get(task_id)
    assert present(task.last_error).code == "no_completion_report"
    assert task.status == "ready"


def test_what_was_reported_before_the_session_ended_stays(fabric: Fabric) -> None:
    task_id = fabric.create("Short work").task_id
    with mcp_on(fabric, actor="ada") as mcp:
        mcp.call("aof_task_claim", {"taskId": task_id})
        done = mcp.call("aof_task_complete", {"taskId": task_id, "summary": "done"})
        assert done == {"taskId": task_id, "status": "review"}
    assert fabric.get(task_id).status == "review"
    assert fabric.get(task_id).last_error is None


def test_the_sessions_run_writes_also_for_an_agent_that_had_an_earlier_one(fabric: Fabric) -> None:
    task_id = fabric.create("Again").task_id
    fabric.release(task_id, run=fabric.claim(task_id, agent="ada").run_id)
    with mcp_on(fabric, actor="ada") as mcp:
        moved = answer_of(mcp.call("aof_task_update", {"taskId": task_id, "status": "in-progress"}))
        assert moved["transitioned"]
        said = mcp.call("aof_task_complete", {"taskId": task_id})
        assert said == {"taskId": task_id, "status": "review"}
    event = [event for event in fabric.events(task_id=task_id) if event.type == "task.completed"][-1]
    assert fabric.get(task_id).retry.attempts == 2
    assert (event.actor, event.run_id) == ("ada", fabric.get(task_id).last_run)


@pytest.mark.parametrize("claimed_by", ["the session", "who started it"])
def test_a_message_in_a_session_comes_from_the_run_that_it_holds(fabric: Fabric, claimed_by: str) -> None:
    task_id = fabric.create("Said by message").task_id
    earlier = fabric.claim(task_id, agent="ada").run_id
    fabric.release(task_id, run=earlier)
    said = report(task_id, "ada", notes="said")
    given = fabric.claim(task_id, agent="ada").run_id if claimed_by == "who started it" else None
    with mcp_on(fabric, actor="ada", run=given) as mcp:
        if given is None:
            mcp.call("aof_task_claim", {"taskId": task_id})
        sent = answer_of(mcp.call("aof_send", {"messages": [prefixed(said), {**said, "runId": earlier}]}))
    assert [(row["outcome"], row.get("reason")) for row in sent["results"]] == [
        ("accepted", None), ("rejected", "stale_lease"),
    ]  # fmt: skip
    if given is not None:
        fabric.session_end(run=given)
    eventually(lambda: fabric.get(task_id).lease is None)
    assert fabric.get(task_id).status == "review"


def test_a_run_that_the_process_was_started_for_is_the_default_and_is_left_to_its_runner(fabric: Fabric) -> None:
    task_id = fabric.create("Hosted").task_id
    run = fabric.claim(task_id, agent="bob", worker="process").run_id
    with mcp_on(fabric, actor="somebody", run=run) as mcp:
        updated = answer_of(mcp.call("aof_task_update", {"taskId": task_id, "body": "# By its run\n"}))
        assert updated["bodyUpdated"]
    assert fabric.get(task_id).lease is not None


@requirement("tools.dispatch.result")
def test_a_task_is_there_after_the_server_was_killed_right_after_its_answer(fabric: Fabric) -> None:
    root = root_of(fabric)
    with mcp_on(fabric) as mcp:
        made = mcp.call("aof_dispatch", {"title": "Kept", "brief": "Really."})
        (pid,) = _servers(root)
        os.kill(pid, signal.SIGKILL)
    assert isinstance(made, dict)
    assert set(made) == {"taskId", "status", "filePath"}
    with open_fabric(root) as later:
        assert later.get(made["taskId"]).status == made["status"] == "ready"
        assert (root / made["filePath"]).is_file()


@requirement("tools.dispatch.content")
def test_dispatch_keeps_title_and_brief_and_refuses_either_blank(fabric: Fabric) -> None:
    root = root_of(fabric)
    brief = "# Größe ✓\n\n- [ ] one\n\n```sh\n## not a heading\n```\n"
    with mcp_on(fabric) as mcp:
        made = answer_of(mcp.call("aof_dispatch", {"title": "Übung", "brief": brief}))
        text = (root / made["filePath"]).read_text()
        assert 'title: "Übung"' in text
        assert text.split("\n---\n", 1)[1].removeprefix("\n") == brief
        head, files = fabric.store.head(), sorted(root.glob("tasks/*/*"))
        for wrong in ({"brief": "x"}, {"title": "x"}, {"title": " ", "brief": "x"}, {"title": "x", "brief": " \n"}):
            refusal_of(mcp.call("aof_dispatch", wrong), "invalid")
        assert (fabric.store.head(), sorted(root.glob("tasks/*/*"))) == (head, files)


def test_over_http_the_session_of_the_handshake_keeps_and_ends_what_it_claimed(http: OverHttp) -> None:
    fabric = http.elsewhere
    task_id = fabric.create("Over HTTP").task_id
    with http.mcp("legacy") as (portal, client):
        claimed = answer_of(of_tool(portal.call(client.call_tool, "aof_task_claim", {"taskId": task_id, "ttl": 1})))
        eventually(lambda: fabric.now() > millis(claimed["expiresAt"]) and _beats(fabric, task_id) >= 2)
    eventually(lambda: fabric.get(task_id).lease is None)
    assert present(fabric.get(task_id).last_error).code == "no_completion_report"


def test_over_http_a_lease_is_not_renewed_for_a_client_that_has_gone_without_a_word(http: OverHttp) -> None:
    fabric, session = http.elsewhere, _RawSession(http)
    task_id = fabric.create("Left behind").task_id
    with session.listening():
        session.call("aof_task_claim", {"taskId": task_id, "ttl": 1})
        eventually(lambda: _beats(fabric, task_id) >= 2)
    eventually(lambda: fabric.now() > _end_of_lease(fabric, task_id))
    with session.listening():
        beats = _beats(fabric, task_id)
        eventually(lambda: _beats(fabric, task_id) > beats)
        assert fabric.get(task_id).status == "in-progress"


def test_over_http_a_session_is_only_for_the_caller_that_has_opened_it(http: OverHttp) -> None:
    fabric, session = http.elsewhere, _RawSession(http)
    task_id = fabric.create("Hers").task_id
    session.call("aof_task_claim", {"taskId": task_id})
    other = {**session.headers, "Authorization": f"Bearer {new_token(http.root, 'eve', 'agent')}"}
    with httpx.Client(base_url=http.client.base_url, timeout=30) as eve:
        for method in ("GET", "DELETE"):
            assert eve.request(method, "/mcp", headers=other).status_code == 404
        assert eve.post("/mcp", headers=other, json=_message("tools/list")).status_code == 404
    assert fabric.get(task_id).status == "in-progress"
    assert session.call("aof_task_complete", {"taskId": task_id, "summary": "Done."})["status"] in ("done", "review")


class _RawSession:
    """A session as a client sees it that knows only HTTP: it can go without saying so."""

    def __init__(self, http: OverHttp) -> None:
        self._client = http.client
        self.headers = {"Accept": "application/json, text/event-stream"}
        about = {"name": "raw", "version": "1"}
        asked = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about}
        opened = self._post(_message("initialize", asked))
        self.headers["Mcp-Session-Id"] = opened.headers["mcp-session-id"]
        self._post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _post(self, message: dict[str, Any]) -> httpx.Response:
        return self._client.post("/mcp", headers=self.headers, json=message)

    def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The structured answer of a tool."""
        said = self._post(_message("tools/call", {"name": tool, "arguments": arguments})).json()
        return dict(said["result"]["structuredContent"])

    @contextmanager
    def listening(self) -> Iterator[None]:
        """With the stream open on which a server speaks first."""
        with self._client.stream("GET", "/mcp", headers=self.headers) as response:
            assert response.status_code == 200
            yield


def _message(method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}


def _end_of_lease(fabric: Fabric, task_id: str) -> int:
    beat = json.loads((root_of(fabric) / "runs" / task_id / "run_heartbeat.json").read_text())
    return millis(beat["expiresAt"])


def _servers(root: Path) -> list[int]:
    """The server processes on a data directory that this test has started."""
    mine = f"AOF_DATA_DIR={root}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mine in (folder / "environ").read_bytes().split(b"\0") and b"mcp" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
    return found


def test_a_session_keeps_every_hop_that_it_holds_and_ends_each_by_name(fabric: Fabric) -> None:
    root = root_of(fabric)
    workflow(root, template(hop("a"), hop("b"), hop("c")))
    task_id = fabric.create("Gated", workflow="flow").task_id

    def beats(name: str) -> int:
        path = root / "runs" / task_id / "hops" / name / "run_heartbeat.json"
        return int(json.loads(path.read_text())["beatCount"])

    with mcp_on(fabric, tools="all", actor="ada") as mcp:

        def ask(tool: str, **given: Any) -> Any:
            return mcp.call(tool, {"taskId": task_id, **given})

        runs = {name: ask("aof_task_claim", hop=name, ttl=1)["runId"] for name in ("a", "b")}
        eventually(lambda: min(beats("a"), beats("b")) >= 2)
        refusal_of(ask("aof_task_complete", outcome="complete"), "run_required")
        assert ask("aof_task_complete", outcome="complete", run=runs["a"])["status"] == "in-progress"
        assert ask("aof_task_progress", text="the other one")["taskId"] == task_id, "one is left, and it is meant"
    eventually(lambda: workflow_of(fabric.get(task_id)).hop("b").lease is None)
    flow = workflow_of(fabric.get(task_id))
    assert (flow.hop("a").status, flow.hop("b").status, flow.hop("b").failures) == ("done", "ready", 1)


@requirement("task.record.context-ids")
def test_a_task_names_the_session_that_it_was_created_in_and_otherwise_none(http: OverHttp, doors: Doors) -> None:
    def context(fabric: Fabric, task_id: str) -> tuple[str, ...]:
        (task,) = [one for one in valid(fabric.snapshot())["tasks"] if one["taskId"] == task_id]
        return task["sessionId"], task["threadId"], task["turnId"]

    fabric, session = http.elsewhere, _RawSession(http)
    asked = {"title": "In a session", "brief": "Do it.", "key": "once"}
    one, two = (session.call("aof_dispatch", asked | {"key": key})["taskId"] for key in ("once", "twice"))
    name, *rest = context(fabric, one)
    assert name.startswith("MCP-")
    assert rest == ["unknown", "unknown"]
    assert session.headers["Mcp-Session-Id"] not in json.dumps(fabric.show(one)), "a session is not for others to use"
    assert context(fabric, two) == context(fabric, one)
    other = _RawSession(http)
    assert other.call("aof_dispatch", asked)["taskId"] == one, "the same request, from another session"
    assert context(fabric, other.call("aof_dispatch", asked | {"key": "3"})["taskId"])[0] not in (name, "unknown")
    said = {"sessionId": "chat-7", "threadId": "t-1", "turnId": "5"}
    given = session.call("aof_dispatch", asked | {"key": "4", "metadata": said})["taskId"]
    assert context(fabric, given) == ("chat-7", "t-1", "5")
    plain = doors["cli"].ask("create", title="From the command line")
    assert isinstance(plain, dict)
    assert context(doors["cli"].elsewhere, plain["taskId"]) == ("unknown", "unknown", "unknown")
