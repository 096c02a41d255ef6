"""`aof up` and its peers over A2A: delegated work survives that either side is killed."""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aof.entrypoints import serve
from aof.entrypoints.bootstrap import open_fabric, trust_data_dir
from tests.support.requirements import requirement
from tests.support.scripted_peer import ScriptedPeer, serving
from tests.support.served import create, events, once, task
from tests.support.service import Up, directory, scripted
from tests.support.waiting import BOUND, eventually

SETTINGS = """schemaVersion = 1
[storage]
durability = "relaxed"
[retry]
base = 0.05
cap = 0.2
maxAttempts = {attempts}
[lease]
ttl = 60
"""


def peer_agent(url: str, patience: float, **more: Any) -> dict[str, Any]:
    """An agent of the chart that is a peer."""
    env = {"AOF_PEER_PATIENCE": str(patience)}
    return {"runner": {"kind": "a2a", "url": url, "env": env, **more}}


def snapshot(root: Path, task_id: str) -> dict[str, Any]:
    """The task as the snapshot shows it."""
    with open_fabric(root, actor="pm") as fabric:
        found: dict[str, Any] = next(one for one in fabric.snapshot()["tasks"] if one["taskId"] == task_id)
    return found


@requirement("task.a2a.wrapper")
def test_work_at_a_peer_is_an_ordinary_task_and_is_recovered_when_the_peer_vanishes(tmp_path: Path) -> None:
    with serving(ScriptedPeer("working")) as peer:
        agents = {"pia": peer_agent(peer.address, 0.5)}
        root = directory(tmp_path, agents, SETTINGS.format(attempts=2))
        task_id = create(root, "pia", brief="Far away")
        with Up(root) as up:
            assert peer.asked.wait(BOUND)
            running = task(root, task_id)
            assert (root / "tasks/in-progress" / f"{task_id}.md").is_file()
            assert running.lease is not None
            assert (running.lease.agent, running.lease.worker) == ("pia", "a2a")
            peer.garbage = {"card", "SendMessage", "GetTask", "ListTasks"}  # from here on it says nothing that counts
            eventually(lambda: task(root, task_id).status == "deadletter", "end of the task")
            assert up.end() == 0
    shown = snapshot(root, task_id)
    assert (shown["status"], shown["taskId"]) == ("lost", task_id)
    assert len(shown["attempts"]) == 2
    assert shown["remoteTaskId"] == "remote-1"


@requirement("task.a2a.protocol-and-ids")
def test_after_a_kill_the_same_remote_task_is_followed_and_no_second_one_is_made(tmp_path: Path) -> None:
    with serving(ScriptedPeer("working")) as peer:
        root = directory(tmp_path, {"pia": peer_agent(peer.address, 20)}, SETTINGS.format(attempts=5))
        task_id = create(root, "pia")
        with Up(root) as up:
            assert peer.asked.wait(BOUND)
            up.end(signal.SIGKILL)
        kept = task(root, task_id).metadata["remote"]
        assert (kept["nativeProtocol"], kept["remoteTaskId"]) == ("a2a", "remote-1")
        peer.states = ["completed"]
        once(root)
        assert task(root, task_id).status == "review"
        assert len(peer.messages()) == 1
        shown = snapshot(root, task_id)
        assert (shown["remoteContextId"], shown["remoteStatus"]) == ("context-1", "completed")


@requirement("task.attempts.worker")
def test_each_attempt_names_what_ran_it(tmp_path: Path) -> None:
    with serving(ScriptedPeer("completed")) as peer:
        root = directory(tmp_path, {"ada": scripted("report=done"), "pia": peer_agent(peer.address, 20), "bob": {}})
        by_process, by_peer, by_hand = create(root, "ada"), create(root, "pia"), create(root, "bob")
        with open_fabric(root, actor="bob") as fabric:
            run = fabric.claim(by_hand, agent="bob")
            fabric.complete(by_hand, run=run.run_id, summary="by hand")
        once(root)
        found = {one: snapshot(root, one)["attempts"][0]["worker"] for one in (by_process, by_peer, by_hand)}
        assert found == {
            by_process: {"agentId": "ada", "kind": "process"},
            by_peer: {"agentId": "pia", "kind": "a2a"},
            by_hand: {"agentId": "bob", "kind": "pull"},
        }


def test_a_cancelled_task_is_cancelled_at_the_peer_too(tmp_path: Path) -> None:
    with serving(ScriptedPeer("working")) as peer:
        root = directory(tmp_path, {"pia": peer_agent(peer.address, 20)}, SETTINGS.format(attempts=5))
        task_id = create(root, "pia")
        with Up(root) as up:
            eventually(
                lambda: "remoteTaskId" in task(root, task_id).metadata.get("remote", {}), "the peer's task is known"
            )
            with open_fabric(root, actor="pm") as fabric:
                fabric.cancel(task_id, reason="not needed")
            up.wait("exit", task_id)
            assert up.end() == 0
        assert task(root, task_id).status == "cancelled"
        assert [one["id"] for one in peer.called("CancelTask")] == ["remote-1"]


def test_an_address_that_nobody_has_trusted_is_not_called(tmp_path: Path) -> None:
    with serving(ScriptedPeer("completed")) as peer, serving(ScriptedPeer("completed")) as other:
        root = directory(tmp_path, {"pia": peer_agent(peer.address, 20)}, SETTINGS.format(attempts=5))
        chart = root / "org/org-chart.yaml"
        chart.write_text(chart.read_text().replace(peer.address, other.address))
        task_id = create(root, "pia")
        once(root)
        assert task(root, task_id).status == "ready"
        assert not other.calls


def _free_port() -> int:
    """A port that a service can be started at again."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Fabrics:
    """Two services that are peers of each other, each with its port, and people who approve."""

    def __init__(self, folder: Path, set_env: Callable[[str, str], None]) -> None:
        self.ports = {name: _free_port() for name in "ab"}
        self.roots: dict[str, Path] = {}
        self.ups: dict[str, Up] = {}
        for name, other in ("ab", "ba"):
            (folder / name).mkdir()
            url = f"http://127.0.0.1:{self.ports[other]}"
            agents = {
                "worker": {"runner": {"kind": "process", "command": scripted("report=done")}},
                "friend": peer_agent(url, 30, tokenEnv=f"PEER_TOKEN_{name.upper()}"),
            }
            self.roots[name] = directory(folder / name, agents, SETTINGS.format(attempts=20))
        for name, other in ("ab", "ba"):
            token = serve.create_token(str(self.roots[other]), f"fabric-{name}", None).token
            set_env(f"PEER_TOKEN_{name.upper()}", token)
        self._rules("a", "worker")
        self._rules("b", "friend")

    def _rules(self, name: str, agent: str) -> None:
        """Who gets what comes from peers."""
        path = self.roots[name] / "org/org-chart.yaml"
        chart = json.loads(path.read_text())
        chart["routing"] = [{"tags": ["a2a"], "to": {"agent": agent}}]
        path.write_text(json.dumps(chart))
        trust_data_dir(self.roots[name])

    def start(self, name: str) -> None:
        self.ups[name] = Up(self.roots[name], "--http", str(self.ports[name]))
        self.ups[name].wait("http")

    def kill(self, name: str) -> None:
        self.ups[name].end(signal.SIGKILL)
        self.start(name)

    def approve(self) -> None:
        for root in self.roots.values():
            with open_fabric(root, actor="pm") as fabric:
                for one in fabric.tasks(status="review"):
                    fabric.approve(one.id)

    def from_peer(self, name: str) -> list[str]:
        """The tasks that came from the other one."""
        with open_fabric(self.roots[name], actor="pm") as fabric:
            return [one.id for one in fabric.tasks(tag="a2a")]


def _chain(both: Fabrics, kills: int) -> None:
    """From a to b, from there back to a, which does it; either is killed on the way."""
    for name in "ab":
        both.start(name)
    first = create(both.roots["a"], "friend", title="There and back")
    eventually(lambda: both.from_peer("b"), "task at b")
    both.kill("a")
    eventually(lambda: both.from_peer("a"), "task back at a")
    both.kill("b")
    for number in range(kills):
        both.kill("ab"[number % 2])

    def finished() -> bool:
        both.approve()
        return task(both.roots["a"], first).status == "done"

    eventually(finished, "end of the chain")
    (at_b,), (back_at_a,) = both.from_peer("b"), both.from_peer("a")
    ours, theirs, last = task(both.roots["a"], first), task(both.roots["b"], at_b), task(both.roots["a"], back_at_a)
    assert [one.status for one in (ours, theirs, last)] == ["done"] * 3
    assert ours.metadata["remote"]["remoteTaskId"] == at_b
    assert theirs.metadata["remote"]["remoteTaskId"] == back_at_a
    assert (theirs.created_by, last.created_by) == ("fabric-a", "fabric-b")
    for root, task_id in ((both.roots["a"], first), (both.roots["b"], at_b), (both.roots["a"], back_at_a)):
        assert len(events(root, "task.completed", task_id)) == 1
    for up in both.ups.values():
        assert up.end() == 0


def _ended(both: Fabrics) -> None:
    for up in both.ups.values():
        with up:
            pass


def test_two_services_finish_a_chain_of_delegated_tasks_while_either_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = Fabrics(tmp_path, monkeypatch.setenv)
    try:
        _chain(both, kills=0)
    finally:
        _ended(both)


@pytest.mark.full
def test_a_chain_survives_many_kills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both = Fabrics(tmp_path, monkeypatch.setenv)
    try:
        _chain(both, kills=8)
    finally:
        _ended(both)
