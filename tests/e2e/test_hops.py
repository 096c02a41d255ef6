"""`aof up` with workflows: real processes for hops, beside each other, rejected, killed, and taken up again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from aof.kernel.events import Event
from aof.kernel.model import attempt_of
from aof.service.bootstrap import open_fabric
from aof.service.runners.processes import processes_of_run
from aof.workflows.model import Workflow, workflow_of
from tests.support.served import freeze
from tests.support.service import SETTINGS, Up, chart, directory, having, lives, workflow
from tests.support.waiting import eventually
from tests.support.warm import warm
from tests.support.workflows import DIAMOND, REVIEW


def begin(root: Path, name: str = "diamond", **given: Any) -> str:
    """A task that passes through a workflow."""
    with open_fabric(root, actor="pm") as fabric:
        return fabric.create("Add an endpoint", workflow=name, **given).task_id


def state(root: Path, task_id: str) -> Workflow:
    """Where its hops stand."""
    with open_fabric(root, actor="pm") as fabric:
        return workflow_of(fabric.get(task_id))


def status(root: Path, task_id: str) -> str:
    """Where the task is."""
    with open_fabric(root, actor="pm") as fabric:
        return fabric.get(task_id).status


def events(root: Path, kind: str, hop: str | None = None) -> list[Event]:
    """What the log has of a kind, about a hop."""
    with open_fabric(root, actor="pm") as fabric:
        found = [event for event in fabric.events() if event.type == kind]
    return [event for event in found if hop in (None, event.payload.get("hop"))]


def output(root: Path, task_id: str, hop: str, run: str) -> str:
    """What the worker of a hop's run printed."""
    return (root / "runs" / task_id / "hops" / hop / "attempts" / run.split("-")[5] / "output.log").read_text()


def sound(root: Path) -> bool:
    """Whether files and log agree."""
    with open_fabric(root, actor="pm") as fabric:
        found = fabric.doctor()
        assert found.ok, found.problems
        return found.ok


def test_parallel_hops_a_rejection_and_a_killed_worker_lead_to_the_end(tmp_path: Path) -> None:
    pipe = tmp_path / "meeting"
    os.mkfifo(pipe)
    agents = {
        "dev": having("developer", "where", "brief", "report=done"),
        "tess": having("tester", f"read={pipe}", "report=done"),
        "aude": having("auditor", "first=update=on", "first=wait", f"write={pipe}", "report=done"),
        "rel": having("releaser", "first=report=needs_review,no test for expiry", "later=report=done"),
    }
    root = directory(tmp_path, agents)
    workflow(root, DIAMOND)
    with Up(root) as up:
        up.wait("up")
        task_id = begin(root)
        up.wait("message", task_id, times=2)  # dev's report, and aude has begun
        audit = state(root, task_id).hop("audit")
        (pid,) = processes_of_run(str(root), audit.run_id or "")
        os.kill(pid, signal.SIGKILL)
        up.until(lambda: any("done: in-progress → done" in line["reason"] for line in up.lines), "the end")
        up.end()
    flow = state(root, task_id)
    assert status(root, task_id) == flow.state == "done"
    assert {hop.id: hop.status for hop in flow.hops} == dict.fromkeys(("build", "test", "audit", "ship"), "done")
    assert [one.payload["error"]["code"] for one in events(root, "task.attempt.failed")] == ["no_completion_report"]
    (rejected,) = events(root, "task.hop.rejected")
    assert (rejected.payload["hop"], rejected.payload["blockers"]) == ("ship", ["no test for expiry"])
    runs = {hop: [str(one.run_id) for one in events(root, "task.attempt.started", hop)] for hop in flow.statuses()}
    assert {hop: len(found) for hop, found in runs.items()} == {"build": 2, "test": 2, "audit": 3, "ship": 2}
    first, again = (output(root, task_id, "build", run) for run in runs["build"])
    where = json.loads(first.partition("\n")[0])
    assert (where["AOF_HOP"], where["AOF_RUN_ID"], where["AOF_TASK_ID"]) == ("build", runs["build"][0], task_id)
    assert "Hop build of the workflow diamond, as developer." in first
    assert "no test for expiry" not in first
    label = "Text by others (rejection by rel):"
    assert f"## Rejected by rel at hop ship\n\n{label}\n\n```text\n- no test for expiry\n```" in again
    assert not any(list(processes_of_run(str(root), run)) for found in runs.values() for run in found)
    assert sound(root)


def test_a_killed_service_leaves_no_orphans_and_the_next_one_takes_each_hop_up_again(tmp_path: Path) -> None:
    stuck = {"tess": having("tester", "deaf", "update=on", "wait"), "aude": having("auditor", "update=on", "wait")}
    others = {"dev": having("developer", "report=done"), "rel": having("releaser", "report=done")}
    root = directory(tmp_path, others | stuck)
    workflow(root, DIAMOND)
    with Up(root) as up:
        task_id = begin(root)
        up.wait("message", task_id, times=3)
        runs = [str(state(root, task_id).hop(name).run_id) for name in ("test", "audit")]
        orphans = [pid for run in runs for pid in processes_of_run(str(root), run)]
        assert len(orphans) == 2
        for hop, run in zip(("test", "audit"), runs, strict=True):
            freeze(root, f"{task_id}/hops/{hop}", attempt_of(run))
        up.end(signal.SIGKILL)
    assert all(lives(pid) for pid in orphans)
    chart(root, others | {"tess": having("tester", "report=done"), "aude": having("auditor", "report=done")})
    with Up(root, "--once") as up:
        assert up.finish() == 0
        requeued = [line for line in up.lines if line["action"] == "requeue"]
    assert {line["reason"] for line in requeued} == {
        "hop test: the host of its run has died",
        "hop audit: the host of its run has died",
    }
    assert not any(lives(pid) for pid in orphans)
    failed = events(root, "task.attempt.failed")
    assert {(one.run_id, one.payload["error"]["code"]) for one in failed} == {(run, "host_died") for run in runs}
    assert status(root, task_id) == "done"
    assert sound(root)


def test_a_hop_that_fails_too_often_ends_its_task_with_the_cause(tmp_path: Path) -> None:
    root = directory(tmp_path, {"dev": having("developer", "exit=3")})
    workflow(root, DIAMOND)
    task_id = begin(root, max_attempts=2)
    with Up(root, "--once") as up:
        assert up.finish() == 0
    assert status(root, task_id) == "deadletter"
    assert [one.payload["exitCode"] for one in events(root, "run.exited")] == [3, 3]
    hop = state(root, task_id).hop("build")
    assert (hop.status, hop.failures) == ("failed", 2)
    assert hop.reason is not None
    assert hop.reason.startswith("no_completion_report")


def test_a_hop_that_takes_too_long_is_ended_and_escalated(tmp_path: Path) -> None:
    timed = {"name": "timed", "hops": [{"id": "a", "role": "developer", "timeout": "4s", "escalateTo": "architect"}]}
    agents = {"dev": having("developer", "deaf", "update=on", "wait"), "arch": having("architect", "report=done")}
    agents["dev"]["runner"]["grace"] = "100ms"
    root = directory(tmp_path, agents)
    workflow(root, timed)
    task_id = begin(root, "timed")
    with Up(root, "--once") as up:
        assert up.finish() == 0
        assert any("hop a: it is not done in time" in line["reason"] for line in up.lines)
    assert status(root, task_id) == "done"
    assert [one.payload["agent"] for one in events(root, "task.attempt.started")] == ["dev", "arch"]
    (stopped,) = [one for one in events(root, "run.exited") if one.payload.get("stopped")]
    assert attempt_of(stopped.run_id or "") == 1
    assert (stopped.payload["stopped"], stopped.payload["signal"]) == ("fenced", signal.SIGKILL)


def test_an_agents_time_limit_holds_for_its_hops(tmp_path: Path) -> None:
    root = directory(tmp_path, {"dev": having("developer", "update=on", "wait", maxExecutionTime="1s")})
    workflow(root, DIAMOND)
    task_id = begin(root, max_attempts=1)
    with Up(root, "--once") as up:
        assert up.finish() == 0
    assert status(root, task_id) == "deadletter"
    (failed,) = events(root, "task.attempt.failed")
    assert failed.payload["error"]["code"] == "max_execution_time"
    assert state(root, task_id).hop("build").status == "timed_out"


def test_cancelling_stops_the_workers_of_all_hops_before_it_settles(tmp_path: Path) -> None:
    agents = {
        "dev": having("developer", "report=done"),
        "tess": having("tester", "update=on", "wait"),
        "aude": having("auditor", "deaf", "update=on", "wait"),
    }
    agents["aude"]["runner"]["grace"] = "300ms"
    root = directory(tmp_path, agents)
    workflow(root, DIAMOND)
    with Up(root) as up:
        task_id = begin(root)
        up.wait("message", task_id, times=3)
        runs = [str(state(root, task_id).hop(name).run_id) for name in ("test", "audit")]
        with open_fabric(root, actor="pm") as fabric:
            fabric.cancel(task_id, reason="not needed")
        up.wait("exit", task_id, times=3)
        up.end()
    assert status(root, task_id) == "cancelled"
    assert not any(list(processes_of_run(str(root), run)) for run in runs)
    ended = [one for one in events(root, "task.attempt.failed") if one.run_id in runs]
    assert [one.payload["error"]["code"] for one in ended] == ["cancelled", "cancelled"]
    (settled,) = [one for one in events(root, "task.transitioned") if one.payload["to"] == "cancelled"]
    assert max(one.seq for one in events(root, "run.exited")) < settled.seq, "no worker outlives its task"


def test_a_stopped_service_gives_hops_back_and_counts_no_failure(tmp_path: Path) -> None:
    agents = {"dev": having("developer", "report=done"), "tess": having("tester", "report=done", "wait")}
    agents["aude"] = having("auditor", "update=on", "wait")
    root = directory(tmp_path, agents)
    workflow(root, DIAMOND)
    with Up(root) as up:
        task_id = begin(root)
        up.wait("message", task_id, times=3)
        assert up.end() == 0
    flow = state(root, task_id)
    assert (flow.hop("test").status, flow.hop("audit").status) == ("done", "ready")
    assert flow.hop("audit").failures == 0
    assert status(root, task_id) == "ready"


def test_a_silent_worker_of_a_hop_is_kept_alive_and_recovered_when_all_is_killed(tmp_path: Path) -> None:
    root = directory(
        tmp_path, {"dev": having("developer", "update=on", "wait")}, SETTINGS.replace("ttl = 60", "ttl = 0.6")
    )
    workflow(root, DIAMOND)
    with Up(root) as up:
        task_id = begin(root)
        up.wait("message", task_id)
        run = str(state(root, task_id).hop("build").run_id)
        path = root / "runs" / task_id / "hops" / "build" / "run_heartbeat.json"
        first = json.loads(path.read_text())
        up_to = first["beatCount"] + 6
        eventually(lambda: json.loads(path.read_text())["beatCount"] >= up_to)
        later = json.loads(path.read_text())
        assert later["pulse"]["began"] == first["pulse"]["began"], "a run has one beginning"
        (pid,) = processes_of_run(str(root), run)
        up.end(signal.SIGKILL)
    eventually(lambda: not lives(pid))
    with open_fabric(root, actor="pm") as fabric:
        eventually(lambda: [(one.action, one.hop) for one in fabric.tick().actions] == [("stale_heartbeat", "build")])
    hop = state(root, task_id).hop("build")
    assert (hop.status, hop.failures) == ("ready", 1)


def test_an_agent_in_python_works_on_its_hop_and_rejects_by_method(tmp_path: Path) -> None:
    writes = "import aof\nwith aof.open() as f, f.own_run() as w: w.complete(f'{w.hop} done')"
    judges = (
        "import aof\nwith aof.open() as f, f.own_run() as w: "
        "w.reject('no test', summary='not yet') if w.epoch == 1 else w.complete('good')"
    )
    agents = {
        name: {"roles": [role], "runner": {"kind": "process", "command": [sys.executable, "-c", code]}}
        for name, role, code in (
            ("dev", "developer", writes),
            ("rev", "reviewer", judges),
            ("rel", "releaser", writes),
        )
    }
    root = directory(tmp_path, agents)
    workflow(root, REVIEW)
    task_id = begin(root, "review")
    with Up(root, "--once") as up:
        assert up.finish() == 0
    assert status(root, task_id) == "done"
    (rejected,) = events(root, "task.hop.rejected")
    assert (rejected.payload["agent"], rejected.payload["blockers"]) == ("rev", ["no test"])
    done = [(one.payload["hop"], one.payload["agent"]) for one in events(root, "task.hop.completed")]
    assert done == [("implement", "dev"), ("implement", "dev"), ("code-review", "rev"), ("ship", "rel")]


def test_a_dry_run_tells_each_hop_its_agent_and_why_the_others_wait(tmp_path: Path) -> None:
    agents = {"tess": having("tester", "wait"), "aude": having("auditor", "wait", active=False), "pat": {}}
    root = directory(tmp_path, agents)
    workflow(root, DIAMOND)
    task_id = begin(root)
    with open_fabric(root, actor="pm") as fabric:
        fabric.complete(task_id, hop="build", outcome="complete")
    before = events(root, "task.attempt.started")
    command = [*warm(), "aof", "--data-dir", str(root), "tick", "--dry-run", "--json"]
    answer = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=60).stdout)["data"]
    assert [one["action"] for one in answer["actions"]] == ["assign", "handoff_begin"]
    assert answer["actions"][:1] == [
        {
            "action": "assign",
            "taskId": task_id,
            "agent": "tess",
            "hop": "test",
            "reason": "hop test: tess has the role tester and can take it",
        }
    ]
    assert [one["reason"] for one in answer["left"]] == [
        "hop audit (auditor) is ready: role 'auditor': aude: it is not active"
    ]
    assert events(root, "task.attempt.started") == before


pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks for processes in /proc")
