"""`aof up` and its peers over A2A: delegated work survives that either side is killed."""

from __future__ import annotations

import json
import signal
import socket
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from aof.service import serve
from aof.service.bootstrap import open_fabric
from aof.service.upkeep import trust_data_dir
from tests.support import peers
from tests.support.receiver import receiver
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


def test_a_cancellation_before_the_peer_has_answered_the_send_reaches_it(tmp_path: Path) -> None:
    with serving(ScriptedPeer("working")) as peer:
        root = directory(tmp_path, {"pia": peer_agent(peer.address, 20)}, SETTINGS.format(attempts=5))
        tell, sent, looked = peer.answer, threading.Event(), threading.Event()

        def slow(method: str, params: dict[str, Any]) -> dict[str, Any]:
            answer = tell(method, params)
            if method == "SendMessage":
                sent.set()
                looked.wait(BOUND)  # the peer takes its time, and has the task only then
            if method == "ListTasks":
                said = [{"messageId": peer.messages()[0]["messageId"], "role": "ROLE_USER", "parts": [{"text": "x"}]}]
                made = [peer.task("working") | {"history": said}] if looked.is_set() else []
                looked.set()
                return answer | {"tasks": made, "totalSize": len(made)}
            return answer

        peer.answer = slow  # type: ignore[method-assign]
        task_id = create(root, "pia")
        with Up(root) as up:
            assert sent.wait(BOUND)
            with open_fabric(root, actor="pm") as fabric:
                fabric.cancel(task_id, reason="not needed")
            up.wait("exit", task_id)
            assert up.end() == 0
        assert task(root, task_id).status == "cancelled"
        assert [one["id"] for one in peer.called("CancelTask")] == ["remote-1"]
        assert len(peer.messages()) == 1
        kept = task(root, task_id).metadata["remote"]
        assert (kept["remoteTaskId"], kept["remoteStatus"]) == ("remote-1", "canceled")


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


def test_a_notification_in_doubt_when_the_service_is_killed_comes_again_with_the_same_id(tmp_path: Path) -> None:
    settings = f'{SETTINGS.format(attempts=5)}[a2a]\npushHosts = ["127.0.0.1"]\n'
    root = directory(tmp_path, {"ada": {}}, settings)
    token = serve.create_token(str(root), "mia", None).token

    async def send(address: str, hook: str) -> None:
        async with peers.client(address, token) as peer:
            asked = peers.request("Tell me")
            asked.configuration.task_push_notification_config.url = hook
            await peers.sent(peer, asked)

    with receiver() as hook:
        hook.held.clear()  # it takes the first notification, and says nothing
        port = _free_port()
        with Up(root, "--http", str(port)) as up:
            up.wait("http")
            anyio.run(send, f"http://127.0.0.1:{port}", hook.hook())
            with open_fabric(root, actor="ada") as fabric:
                (made,) = fabric.tasks()
                fabric.claim(made.id, agent="ada")
            hook.wait(1)
            up.end(signal.SIGKILL)
        hook.held.set()
        with Up(root, "--http", str(port)) as again:
            hook.wait(2)
            assert again.end() == 0
    first, second = hook.received[:2]
    assert first["statusUpdate"]["status"]["state"] == "TASK_STATE_WORKING"
    assert first["statusUpdate"]["metadata"] == second["statusUpdate"]["metadata"]


class Ring:
    """Services that are peers of each other: each has the next one as a friend, and the last one the first."""

    def __init__(self, folder: Path, set_env: Callable[[str, str], None], names: str) -> None:
        self.names = names
        self.next_of = dict(zip(names, names[1:] + names[0], strict=True))
        self.ports = {name: _free_port() for name in names}
        self.roots: dict[str, Path] = {}
        self.ups: dict[str, Up] = {}
        for name, other in self.next_of.items():
            (folder / name).mkdir()
            url = f"http://127.0.0.1:{self.ports[other]}"
            agents = {
                "worker": {"runner": {"kind": "process", "command": scripted("report=done")}},
                "friend": peer_agent(url, 30, tokenEnv=f"PEER_TOKEN_{name.upper()}"),
            }
            self.roots[name] = directory(folder / name, agents, SETTINGS.format(attempts=20))
        for name, other in self.next_of.items():
            token = serve.create_token(str(self.roots[other]), f"fabric-{name}", None).token
            set_env(f"PEER_TOKEN_{name.upper()}", token)
            self._rules(name, "worker" if name == names[0] else "friend")

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
        """The tasks that came from the one before."""
        with open_fabric(self.roots[name], actor="pm") as fabric:
            return [one.id for one in fabric.tasks(tag="a2a")]


def _assert_comes_around(ring: Ring, kills: int) -> None:
    """From the first to each of the others and back to the first, which does it; each is killed on the way."""
    for name in ring.names:
        ring.start(name)
    first = ring.names[0]
    began = create(ring.roots[first], "friend", title="There and back")
    for name, other in ring.next_of.items():
        eventually(partial(ring.from_peer, other), f"task at {other}")
        ring.kill(name)
    for number in range(kills):
        ring.kill(ring.names[number % len(ring.names)])

    def finished() -> bool:
        ring.approve()
        return task(ring.roots[first], began).status == "done"

    eventually(finished, "end of the chain")
    given = began
    for name, other in ring.next_of.items():
        (taken,) = ring.from_peer(other)
        ours, theirs = task(ring.roots[name], given), task(ring.roots[other], taken)
        assert (ours.status, theirs.status) == ("done", "done")
        assert (ours.metadata["remote"]["remoteTaskId"], theirs.created_by) == (taken, f"fabric-{name}")
        assert ours.metadata["remote"]["remoteStatus"] == "completed"
        for root, task_id in ((ring.roots[name], given), (ring.roots[other], taken)):
            assert len(events(root, "task.completed", task_id)) == 1
        given = taken
    for up in ring.ups.values():
        assert up.end() == 0


@pytest.mark.parametrize(
    ("names", "kills"),
    [
        pytest.param("ab", 0, id="two"),
        pytest.param("abc", 0, id="three", marks=pytest.mark.full),
        pytest.param("ab", 8, id="two, many times", marks=pytest.mark.full),
    ],
)
def test_services_finish_a_chain_of_delegated_tasks_while_each_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: str, kills: int
) -> None:
    ring = Ring(tmp_path, monkeypatch.setenv, names)
    try:
        _assert_comes_around(ring, kills)
    finally:
        for up in ring.ups.values():
            with up:
                pass
