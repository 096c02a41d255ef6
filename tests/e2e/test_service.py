"""`aof up` itself: what it says, how it is stopped, and what it goes on with."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from aof.service.bootstrap import open_fabric
from tests.support.requirements import requirement
from tests.support.served import create, events, first_run, freeze, once, output, processes, task
from tests.support.service import SETTINGS, Up, chart, directory, lives, scripted
from tests.support.waiting import eventually
from tests.support.warm import warm

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks for processes in /proc")


class TestTheServiceItself:
    """Signals, crashes, two at once, hand edits."""

    @requirement("aof1.resume.host-renews")
    def test_a_silent_worker_is_kept_while_it_lives_and_recovered_when_all_is_killed(self, tmp_path: Path) -> None:
        root = directory(tmp_path, {"ada": scripted("update=on", "wait")}, SETTINGS.replace("ttl = 60", "ttl = 0.6"))
        beats = root / "runs"
        with Up(root) as up:
            task_id = create(root, "ada")
            up.wait("message", task_id)
            path = beats / task_id / "run_heartbeat.json"
            begun = json.loads(path.read_text())["beatCount"]
            eventually(lambda: json.loads(path.read_text())["beatCount"] >= begun + 8, "beats over several leases")
            assert task(root, task_id).status == "in-progress"
            (pid,) = processes(root, first_run(root, task_id))
            up.end(signal.SIGKILL)
        eventually(lambda: not lives(pid), "the end of the worker with its service")
        with open_fabric(root, actor="pm") as fabric:
            eventually(lambda: [one.action for one in fabric.tick().actions] == ["stale_heartbeat"], "recovery")
            assert fabric.get(task_id).status == "ready"

    @requirement("task.attempts.new-when")
    def test_after_a_killed_service_the_next_one_ends_the_orphans_and_goes_on(self, tmp_path: Path) -> None:
        root = directory(tmp_path, {"ada": scripted("deaf", "child", "update=on", "wait"), "bert": {}})
        with Up(root) as up:
            task_id = create(root, "ada")
            up.wait("message", task_id)
            orphans = processes(root, first_run(root, task_id))
            assert len(orphans) == 2
            freeze(root, task_id)
            up.end(signal.SIGKILL)
        assert all(lives(pid) for pid in orphans)
        chart(root, {"ada": scripted("report=done"), "bert": {}})
        with Up(root) as up:
            up.wait("requeue", task_id)
            eventually(lambda: not any(lives(pid) for pid in orphans), "the end of the orphans")
            up.wait("session_end", task_id)
            up.end()
        done = task(root, task_id)
        assert (done.status, done.retry.attempts) == ("review", 2)
        (failed,) = events(root, "task.attempt.failed", task_id)
        assert failed.payload["error"]["code"] == "host_died"
        first, second = events(root, "task.attempt.started", task_id)
        assert (first.payload["cause"], second.payload["cause"]) == ("first", "crash_recovery")
        assert first.run_id != second.run_id

    def test_the_same_run_of_another_data_directory_is_no_orphan(self, tmp_path: Path) -> None:
        agents = {"ada": scripted("update=on", "wait")}
        here, there = directory(tmp_path / "here", agents), directory(tmp_path / "there", agents)
        with Up(there) as other:
            mine, theirs = create(here, "ada"), create(there, "ada")
            other.wait("message", theirs)
            with Up(here) as up:
                up.wait("message", mine)
                freeze(here, mine)
                up.end(signal.SIGKILL)
            (orphan,), (neighbour,) = (
                processes(root, first_run(root, one)) for root, one in ((here, mine), (there, theirs))
            )
            (tmp_path / "link").symlink_to(here)
            with Up(tmp_path / "link") as up:
                up.wait("requeue", mine)
                eventually(lambda: not lives(orphan), "the end of the orphan")
                up.end()
            assert lives(neighbour)
            assert task(there, theirs).status == "in-progress"
            other.end()
        assert mine == theirs, "each is the first of its day"

    def test_a_signal_lets_workers_end_and_gives_their_tasks_back(self, tmp_path: Path) -> None:
        root = directory(tmp_path, {"ada": scripted("update=on", "wait"), "bert": scripted("report=done", "wait")})
        with Up(root) as up:
            open_one, reported = create(root, "ada"), create(root, "bert")
            up.wait("message", open_one)
            up.wait("message", reported)
            assert up.end(signal.SIGINT) == 0
        given_back = task(root, open_one)
        assert (given_back.status, given_back.retry.failures) == ("ready", 0)
        assert task(root, reported).status == "review"
        assert not processes(root, first_run(root, open_one))

    def test_a_second_signal_does_not_wait(self, tmp_path: Path) -> None:
        slow = {"runner": {"kind": "process", "command": scripted("deaf", "update=on", "wait"), "grace": "10m"}}
        root = directory(tmp_path, {"ada": slow})
        with Up(root) as up:
            task_id = create(root, "ada")
            up.wait("message", task_id)
            up.process.send_signal(signal.SIGTERM)
            up.wait("stopping")
            assert up.end(signal.SIGTERM) == 1
        assert not processes(root, first_run(root, task_id))
        assert task(root, task_id).status == "ready"

    def test_two_services_at_once_run_each_task_once(self, tmp_path: Path) -> None:
        agents = {f"agent-{number}": scripted("report=done") for number in range(4)}
        root = directory(tmp_path, agents, SETTINGS + "[scheduler]\nmaxConcurrent = 3\n")
        with Up(root) as one, Up(root) as two:
            one.wait("up")
            two.wait("up")
            ids = [create(root, f"agent-{number % 4}", review=False) for number in range(16)]
            with open_fabric(root, actor="pm") as fabric:
                eventually(lambda: fabric.list(status="done").total == 16, "the end of all tasks")
            one.end()
            two.end()
        for task_id in ids:
            assert len(events(root, "task.attempt.started", task_id)) == 1
        running = most = 0
        with open_fabric(root, actor="pm") as fabric:
            for event in fabric.events():
                running += {"task.attempt.started": 1, "task.attempt.completed": -1}.get(event.type, 0)
                most = max(most, running)
        assert 1 <= most <= 3

    def test_what_a_person_writes_is_taken_in_and_done(self, tmp_path: Path) -> None:
        root = directory(tmp_path, {"ada": scripted("brief", "report=done")})
        with Up(root) as up:
            up.wait("up")
            held = create(root, "ada", metadata={"draft": True})
            (path,) = root.glob(f"tasks/*/{held}.md")
            path.write_text(path.read_text().replace('metadata: {"draft":true}', "metadata: {}"))
            path.rename(root / "tasks/ready" / path.name)
            up.wait("session_end", held)
            (root / "tasks/ready/idea.md").write_text("---\ntitle: By hand\nrouting: {agent: ada}\n---\nDo it.\n")
            new = up.wait("taken_in")["taskId"]
            up.wait("session_end", new)
            assert "Do it." in output(root, new)
            up.end()

    def test_a_broken_chart_stops_no_service(self, tmp_path: Path) -> None:
        root = directory(tmp_path, {"ada": scripted("report=done"), "bert": {}})
        path = root / "org/org-chart.yaml"
        good = path.read_text()
        task_id = create(root, "ada", metadata={"draft": True})
        with open_fabric(root, actor="bert") as fabric:
            gone = fabric.claim(create(root, "bert"), agent="bert", ttl=0.001).task_id
        with Up(root) as up:
            up.wait("stale_heartbeat", gone)
            path.write_text("agents: [")
            assert "cannot be used (last_good)" in up.wait("trouble")["reason"]
            path.write_text(good)
            up.wait("chart")
            with open_fabric(root, actor="pm") as fabric:
                fabric.edit(task_id, metadata={"draft": None})
                fabric.update(task_id, status="ready")
            up.wait("session_end", task_id)
            assert up.end() == 0

    def test_a_chart_that_never_was_good_gives_nobody_work_and_stops_no_tick(self, tmp_path: Path) -> None:
        root = directory(tmp_path, {})
        (root / "org/org-chart.yaml").unlink()
        task_id = create(root, "ada")
        (root / "org/org-chart.yaml").write_text("agents: [")
        with open_fabric(root, actor="pm") as fabric:
            ticked = fabric.tick()
        assert ticked.actions == ()
        assert [(one.task_id, "org-chart.yaml" in one.reason) for one in ticked.left] == [(task_id, True)]

    @requirement("task.anti-pattern.ticks-are-no-tasks")
    def test_an_idle_service_writes_nothing(self, tmp_path: Path) -> None:
        root = directory(tmp_path, {"ada": scripted("report=done"), "bert": {}})
        create(root, "bert")
        once(root)
        with open_fabric(root, actor="pm") as fabric:
            head, total = fabric.store.head(), fabric.list().total
            for _ in range(50):
                assert fabric.tick().actions == ()
            with Up(root) as up:
                up.wait("up")
                up.end()
            assert (fabric.store.head(), fabric.list().total) == (head, total)

    @requirement("task.anti-pattern.no-prose-only-runs")
    def test_a_long_run_can_be_watched_while_it_lasts(self, tmp_path: Path) -> None:
        pipe = tmp_path / "go-on"
        os.mkfifo(pipe)
        words = ("say=line one", "update=half way", f"read={pipe}", "complain=boom", "exit=7")
        root = directory(tmp_path, {"ada": scripted(*words)}, SETTINGS.replace("ttl = 60", "ttl = 0.6"))
        with Up(root) as up:
            task_id = create(root, "ada", max_attempts=1)
            up.wait("message", task_id)
            beat = root / "runs" / task_id / "run_heartbeat.json"
            eventually(lambda: json.loads(beat.read_text())["beatCount"] > 1, "a heartbeat")
            assert output(root, task_id).startswith("line one\n")
            with open_fabric(root, actor="pm") as fabric:
                assert fabric.show(task_id)["normalizedStatus"] == "running"
                assert "half way" in fabric.get(task_id).body
            pipe.write_text("go")
            up.wait("exit", task_id)
            up.end()
        assert output(root, task_id, name="errors.log") == "boom\n"
        dead = task(root, task_id)
        assert dead.last_error is not None
        assert dead.last_error.code == "no_completion_report"

    def test_one_line_a_decision_for_a_person(self, tmp_path: Path) -> None:
        root = directory(tmp_path, {"ada": scripted("report=done")})
        task_id = create(root, "ada")
        command = [*warm(), "aof", "--data-dir", str(root), "up", "--once"]
        said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.splitlines()
        assert [line.split()[1] for line in said] == [
            "up",
            "environment",
            "assign",
            "message",
            "exit",
            "session_end",
            "down",
        ]
        assert all(task_id in line for line in said[1:-1])
