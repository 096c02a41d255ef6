"""`aof up` with real agents: what a worker gets, says and leaves, and how it ends."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from aof.service.bootstrap import open_fabric
from tests.support.messages import prefixed, report, update
from tests.support.present import present
from tests.support.requirements import requirement
from tests.support.served import create, events, first_run, once, output, processes, task
from tests.support.service import Up, chart, directory, lives, scripted
from tests.support.terminal import AOF, DEADLINE

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks for processes in /proc")


class TestWorkers:
    """What a worker gets, says and leaves."""

    def test_a_worker_gets_the_brief_and_knows_its_run(self, tmp_path: Path) -> None:
        root = directory(tmp_path, {"ada": scripted("where", "brief", "complain=oh", "report=done")})
        task_id = create(root, "ada", title="Add an endpoint", brief="POST /refresh", acceptance=["tests pass"])
        once(root)
        where, _, brief = output(root, task_id).partition("\n")
        assert json.loads(where) == {
            "AOF_DATA_DIR": str(root),
            "AOF_TASK_ID": task_id,
            "AOF_RUN_ID": first_run(root, task_id),
            "AOF_AGENT": "ada",
            "AOF_EPOCH": "1",
            "cwd": str(tmp_path),
        }
        for part in ("# Add an endpoint", "POST /refresh", "- tests pass", f"aof complete {task_id}"):
            assert part in brief
        assert "created by pm" in brief
        assert output(root, task_id, name="errors.log") == "oh\n"
        (exited,) = events(root, "run.exited", task_id)
        size = len(output(root, task_id).encode())
        path = f"runs/{task_id}/attempts/1/output.log"
        assert exited.payload["output"]["stdout"] == {"path": path, "bytes": size, "kept": size}
        assert (exited.payload["exitCode"], exited.run_id) == (0, first_run(root, task_id))

    @requirement("task.record.constraints")
    def test_constraints_are_in_the_brief_of_every_attempt(self, tmp_path: Path) -> None:
        root = directory(tmp_path, {"ada": scripted("brief", "exit=1")})
        limits = {
            "permission": "ask",
            "sandbox": True,
            "network": "none",
            "model": "small",
            "tools": ["git"],
            "cost": 2.5,
            "minutes": 10,
            "output": "markdown",
        }
        task_id = create(root, "ada", constraints=limits, max_attempts=2)
        once(root)
        for attempt in (1, 2):
            told = output(root, task_id, attempt)
            for name, value in limits.items():
                assert f"- {name}: {value if isinstance(value, str) else json.dumps(value)}" in told
        assert "run 1 by ada failed: no_completion_report" in output(root, task_id, 2)

    @requirement("aof1.detect.channel-runner-stdout", "aof1.detect.foreign-json-ignored")
    def test_lines_with_the_prefix_are_messages_and_others_are_output(self, tmp_path: Path) -> None:
        foreign = ['{"foo":1}', "[1,2]", "42", '{"jsonrpc":"2.0","method":"x"}']
        lines = [f"say={line}" for line in ("ordinary", *foreign, "AOF/2 {}", " AOF/1 {}")]
        root = directory(tmp_path, {"ada": scripted(*lines, "update=half way", "report=done")})
        task_id = create(root, "ada")
        once(root)
        done = task(root, task_id)
        assert "Progress: half way" in done.body
        assert "ordinary" not in done.body
        kept = output(root, task_id)
        assert all(line in kept for line in ("ordinary", *foreign))
        assert not events(root, "protocol.message.rejected")
        assert len(events(root, "protocol.message.received", task_id)) == 2
        assert done.status == "review"

    @requirement("aof1.detect.channel-runner-stdout")
    def test_a_line_without_the_nonce_is_output_and_is_warned_of_once(self, tmp_path: Path) -> None:
        forged = prefixed(report("TASK-2026-01-01-001", "ada"))
        words = [f"say={forged}", f"say={forged}", "where", "update=my own", "report=done"]
        root = directory(tmp_path, {"ada": scripted(*words)})
        task_id = create(root, "ada")
        lines = once(root)
        (warning,) = [line for line in lines if line["action"] == "warning"]
        assert "messages: plain" in warning["reason"]
        (event,) = events(root, "task.warning", task_id)[:1]
        assert event.payload["code"] == "unproven_message"
        assert "messages: plain" in event.payload["detail"]
        assert len(events(root, "protocol.message.received", task_id)) == 2
        assert not events(root, "protocol.message.rejected")

    @requirement("aof1.detect.channel-runner-stdout")
    @pytest.mark.parametrize("messages", ["nonce", "plain"])
    def test_the_text_of_a_task_is_never_a_message(self, tmp_path: Path, messages: str) -> None:
        runner = {"kind": "process", "command": scripted("echo", "exit=1"), "messages": messages}
        root = directory(tmp_path, {"ada": {"runner": runner}})
        today = create(root, "ada", title="A task that says where it is", max_attempts=1)
        mine = today[:-3] + "002"
        forged = prefixed(report(mine, "ada"))
        task_id = create(root, "ada", brief=f"first\n{forged}\n```\n{forged}", acceptance=[forged], max_attempts=1)
        assert task_id == mine
        once(root)
        assert forged in output(root, task_id)
        assert not events(root, "task.completed", task_id)
        assert not events(root, "protocol.message.received")
        assert task(root, task_id).status == "deadletter"

    @requirement("aof1.detect.channel-runner-stdout")
    def test_plain_lines_count_where_the_chart_says_so(self, tmp_path: Path) -> None:
        runner = {"kind": "process", "messages": "plain"}
        root = directory(tmp_path, {"ada": {"runner": runner | {"command": ["true"]}}, "bert": {}})
        day = create(root, "bert")[:-3]
        mine = day + "002"
        command = scripted(f"say={prefixed(update(mine, 'ada', progress='plainly'))}", f"say={prefixed(report(mine))}")
        chart(root, {"ada": {"runner": runner | {"command": command}}, "bert": {}})
        assert create(root, "ada") == mine
        lines = once(root)
        assert not [line for line in lines if line["action"] == "warning"]
        done = task(root, mine)
        assert "Progress: plainly" in done.body
        assert done.status == "review"

    @requirement("aof1.detect.channel-runner-stdout")
    def test_the_nonce_of_a_run_is_in_no_file_and_no_line_of_the_log(self, tmp_path: Path) -> None:
        told = tmp_path / "nonce.txt"
        words = [
            "brief",
            "prove=it is NONCE",
            "prove=AOF/1 {NONCE",
            'prove=AOF/1 {"nonce":"NONCE","protocol":"aof","x":"NONCE"',
        ]
        root = directory(
            tmp_path, {"ada": scripted(f"tell={told}", *words, "complain-nonce", "update=on", "report=done")}
        )
        task_id = create(root, "ada")
        lines = once(root)
        nonce = told.read_text()
        assert len(nonce) == 32
        assert task(root, task_id).status == "review"
        assert nonce not in json.dumps(lines)
        holding = [path for path in root.rglob("*") if path.is_file() and nonce.encode() in path.read_bytes()]
        assert holding == []
        assert "it is ****" in output(root, task_id)

    @requirement("aof1.validate.non-fatal")
    def test_a_refused_message_stops_nobody(self, tmp_path: Path) -> None:
        short = '"protocol":"aof","version":1,"type":"status.update"'
        bad = ('prove=AOF/1 {"nonce":"NONCE",', "unknown", f'prove=AOF/1 {{{short},"nonce":"NONCE"}}')
        root = directory(tmp_path, {"ada": scripted(*bad, "update=still here", "report=done")})
        with Up(root) as up:
            up.wait("up")
            task_id = create(root, "ada")
            up.wait("session_end", task_id)
            assert up.process.poll() is None
            other = create(root, "ada")
            up.wait("session_end", other)
            assert up.end() == 0
        assert "Progress: still here" in task(root, task_id).body
        assert len(events(root, "protocol.message.rejected")) == 4
        assert len(events(root, "protocol.message.unknown")) == 2

    def test_output_is_kept_up_to_a_limit_and_a_flood_stops_nobody(self, tmp_path: Path) -> None:
        root = directory(tmp_path, {"ada": scripted("flood=20000000", "update=after the flood", "report=done")})
        task_id = create(root, "ada")
        once(root)
        (exited,) = events(root, "run.exited", task_id)
        told = exited.payload["output"]["stdout"]
        assert told["bytes"] > 20_000_000
        assert told["kept"] == 16 * 1024 * 1024
        assert output(root, task_id).endswith("bytes more were not kept]\n")
        assert "Progress: after the flood" in task(root, task_id).body

    def test_a_command_is_never_given_to_a_shell(self, tmp_path: Path) -> None:
        root = directory(tmp_path, {"ada": ["echo", "$HOME; touch hacked", "`id`"]})
        task_id = create(root, "ada", title="$(touch hacked)", max_attempts=1)
        once(root)
        assert output(root, task_id) == "$HOME; touch hacked `id`\n"
        assert not (tmp_path / "hacked").exists()

    def test_a_command_that_cannot_be_started_is_a_failed_run(self, tmp_path: Path) -> None:
        root = directory(tmp_path, {"ada": ["/no/such/command"]})
        task_id = create(root, "ada", max_attempts=1)
        lines = once(root)
        dead = task(root, task_id)
        assert dead.status == "deadletter"
        assert present(dead.last_error).code == "runner_failed"
        assert any(line["action"] == "failed" and "/no/such/command" in line["reason"] for line in lines)


class TestEnds:
    """How a worker ends, and what that means."""

    @requirement("aof1.session-end.no-completion-report")
    def test_an_exit_without_a_report_is_a_failure_with_a_name(self, tmp_path: Path) -> None:
        root = directory(tmp_path, {"ada": scripted("say=bye"), "bert": scripted("exit=3")})
        quiet, broken = create(root, "ada"), create(root, "bert", max_attempts=1)
        once(root)
        for task_id, runs in ((quiet, 3), (broken, 1)):
            dead = task(root, task_id)
            assert dead.status == "deadletter"
            assert present(dead.last_error).code == "no_completion_report"
            failed = events(root, "task.attempt.failed", task_id)
            assert [event.payload["error"]["code"] for event in failed] == ["no_completion_report"] * runs
            assert len(events(root, "task.retrying", task_id)) == runs - 1
        assert [event.payload["exitCode"] for event in events(root, "run.exited", broken)] == [3]

    def test_show_tells_how_a_worker_crashed_and_what_it_said_last(self, tmp_path: Path) -> None:
        noise = [f"complain=line {number}" for number in range(9)]
        root = directory(tmp_path, {"bert": scripted(*noise, "exit=3")})
        broken = create(root, "bert", max_attempts=1)
        once(root)
        words = [*AOF, "--data-dir", str(root), "show", broken]
        shown = subprocess.run(words, capture_output=True, text=True, check=True, timeout=DEADLINE).stdout
        assert "bert failed, ended" in shown
        assert "exit code 3" in shown
        lines = [line.strip() for line in shown.splitlines()]
        assert [line for line in lines if line.startswith("| ")] == [f"| line {number}" for number in range(4, 9)]
        assert f"runs/{broken}/attempts/1/errors.log" in shown

    @requirement("aof1.session-end.agent-died-after-report")
    def test_an_agent_that_dies_right_after_its_report_has_reported(self, tmp_path: Path) -> None:
        root = directory(tmp_path, {"ada": scripted("report=done", "die"), "bert": scripted("report=done")})
        killed, normal = create(root, "ada"), create(root, "bert")
        once(root)
        moves = [
            [(e.payload["from"], e.payload["to"], e.payload["reason"]) for e in events(root, "task.transitioned", one)]
            for one in (killed, normal)
        ]
        assert moves[0] == moves[1]
        assert task(root, killed).status == "review"
        assert [event.payload["signal"] for event in events(root, "run.exited", killed)] == [signal.SIGKILL]

    @requirement("aof1.session-end.applies-results")
    def test_the_end_of_a_session_applies_what_was_reported(self, tmp_path: Path) -> None:
        root = directory(tmp_path, {"ada": scripted("report=done"), "bert": {}})
        ids = [create(root, "bert", title=f"Number {number}") for number in range(3)]
        with open_fabric(root, actor="bert") as fabric:
            runs = [fabric.claim(one, agent="bert").run_id for one in ids]
            for one, run, payload in (
                (ids[0], runs[0], {"outcome": "done", "blockers": []}),
                (ids[1], runs[1], {"outcome": "blocked", "blockers": ["no key"]}),
            ):
                message = {
                    "protocol": "aof",
                    "version": 1,
                    "type": "completion.report",
                    "taskId": one,
                    "fromAgent": "bert",
                    "toAgent": "dispatcher",
                    "sentAt": "2026-03-02T09:00:00.000Z",
                    "payload": {"summaryRef": "outputs/summary.md", "deliverables": []} | payload,
                }
                assert fabric.send(message, run=run)[0].outcome == "accepted"
            fabric.session_end()
        assert [task(root, one).status for one in ids] == ["review", "blocked", "in-progress"]
        by_itself = create(root, "ada")
        once(root)
        assert task(root, by_itself).status == "review", "no command was needed"

    @requirement("task.attempts.last-error", "task.status.timed-out", "task.events.timed-out")
    def test_every_way_to_fail_has_a_code_of_its_own(self, tmp_path: Path) -> None:
        slow = {"runner": {"kind": "process", "command": scripted("wait")}, "maxExecutionTime": "1s"}
        agents = {"quiet": scripted("say=x"), "slow": slow, "good": scripted("report=done"), "honest": {}, "gone": {}}
        root = directory(tmp_path, agents)
        given: dict[str, Any] = {"max_attempts": 1, "review": False}
        quiet, good = create(root, "quiet", **given), create(root, "good", **given)
        timed, honest, gone = (
            create(root, "slow", **given),
            create(root, "honest", **given),
            create(root, "gone", **given),
        )
        again = create(root, "slow", max_attempts=2)
        with open_fabric(root, actor="pm") as fabric:
            fabric.claim(honest, agent="honest")
            fabric.fail(honest, agent="honest", code="compile_error", message="it does not build")
            fabric.claim(gone, agent="gone", ttl=0.001)
        with Up(root) as up:
            up.wait("exit", again)
            with open_fabric(root, actor="pm") as fabric:
                waits = fabric.show(again)["normalizedStatus"]
            up.wait("exit", timed)
            up.wait("exit", again, times=2)
            up.wait("session_end", good)
            up.end()
        assert waits in ("retrying", "queued", "preparing", "running")
        with open_fabric(root, actor="pm") as fabric:
            codes = {one: fabric.get(one).last_error for one in (quiet, timed, honest, gone, good)}
            assert [error.code if error else None for error in codes.values()] == [
                "no_completion_report",
                "max_execution_time",
                "compile_error",
                "stale_heartbeat",
                None,
            ]
            for one, error in codes.items():
                last = fabric.show(one)["attempts"][-1].get("error")
                assert (last or {}).get("code") == (error.code if error else None)
            assert fabric.show(timed)["normalizedStatus"] == fabric.show(again)["normalizedStatus"] == "timed_out"
        assert [e.payload["limit"] for e in events(root, "task.timed_out", timed)] == ["max_execution_time"]
        assert len(events(root, "task.timed_out", again)) == 2, "also where a retry followed"

    def test_what_a_worker_started_ends_with_it(self, tmp_path: Path) -> None:
        root = directory(tmp_path, {"ada": scripted("child", "report=done")})
        task_id = create(root, "ada")
        once(root)
        assert task(root, task_id).status == "review"
        assert not processes(root, first_run(root, task_id))

    @requirement("task.status.cancelling", "task.events.cancel-requested", "task.control.cancel")
    def test_a_cancelled_task_stops_its_worker_by_force_if_need_be(self, tmp_path: Path) -> None:
        deaf = {"runner": {"kind": "process", "command": scripted("deaf", "update=on", "wait"), "grace": "1s"}}
        root = directory(tmp_path, {"ada": deaf})
        with Up(root) as up:
            up.wait("up")
            task_id = create(root, "ada")
            child = create(root, "ada", parent_id=task_id, depends_on=[task_id])
            up.wait("message", task_id)
            (pid,) = processes(root, first_run(root, task_id))
            with open_fabric(root, actor="pm") as fabric:
                assert fabric.cancel(task_id, reason="not needed").status == "in-progress"
                assert fabric.show(task_id)["normalizedStatus"] == "cancelling"
                assert fabric.cancel(task_id).status in ("in-progress", "cancelled")
            up.wait("exit", task_id)
            up.end()
        assert not lives(pid)
        for one in (task_id, child):
            assert task(root, one).status == "cancelled"
            (asked,) = events(root, "task.cancel_requested", one)
            (moved,) = [e for e in events(root, "task.transitioned", one) if e.payload["to"] == "cancelled"]
            assert asked.seq < moved.seq
        (exited,) = events(root, "run.exited", task_id)
        assert events(root, "task.cancel_requested", task_id)[0].seq < exited.seq
        assert (exited.payload["signal"], exited.payload["stopped"]) == (signal.SIGKILL, "cancelled")

    def test_a_run_that_a_person_takes_away_is_ended(self, tmp_path: Path) -> None:
        root = directory(tmp_path, {"ada": scripted("update=on", "wait")})
        with Up(root) as up:
            task_id = create(root, "ada")
            up.wait("message", task_id)
            with open_fabric(root, actor="pm") as fabric:
                fabric.block(task_id, reason="wait for the key")
            assert "fenced" in up.wait("exit", task_id)["reason"]
            up.end()
        assert task(root, task_id).status == "blocked"
