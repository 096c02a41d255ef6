"""The snapshot of work that real processes and sessions did: their output, their agents, their threads."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
import threading
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from aof.errors import PayloadTooLarge
from aof.service.bootstrap import init_data_dir, open_fabric
from tests.support.messages import request
from tests.support.portable import EVENTS, Fields, run_file, valid, valid_event
from tests.support.repository import ROOT
from tests.support.requirements import requirement
from tests.support.service import Up, chart, directory, scripted
from tests.support.waiting import eventually
from tests.surfaces.doors import mcp_session, of_tool

_FIFTY_MEGABYTES = 50 * 1024 * 1024
_LOOKS = 300  # a bound that only a failure reaches


def serve(root: Path) -> None:
    """Until nothing is left to do."""
    with Up(root, "--once") as up:
        assert up.finish() == 0


def seen(root: Path, task_id: str) -> Fields:
    """The task in a snapshot."""
    with open_fabric(root, actor="pm") as fabric:
        (task,) = [one for one in valid(fabric.snapshot())["tasks"] if one["taskId"] == task_id]
        return dict(task)


@requirement("task.attempts.output-refs", "task.graph.spawned-subagent")
def test_each_attempt_leads_to_what_its_own_process_printed(tmp_path: Path) -> None:
    root = directory(tmp_path, {"ada": scripted("say=first try", "complain=oh", "exit=1")})
    with open_fabric(root, actor="pm") as fabric:
        task_id = fabric.create("Work", agent="ada", max_attempts=1).task_id
    serve(root)
    chart(root, {"ada": scripted("say=second try", "report=done")})
    with open_fabric(root, actor="pm") as fabric:
        fabric.retry(task_id, reason="again")
    serve(root)
    task = seen(root, task_id)
    printed = []
    for attempt in task["attempts"]:
        assert attempt["worker"] == {"agentId": "ada", "kind": "process"}
        streams = {ref["kind"]: ref for ref in attempt["outputRefs"]}
        run_id, name = streams["stdout"]["ref"].removeprefix("aof://runs/").split("/")
        assert run_id == attempt["runId"]
        text = run_file(root, run_id, name).read_text()
        assert len(text.encode()) == streams["stdout"]["bytes"]
        printed.append(text.splitlines()[0])
        assert ("result" in streams) == (attempt["status"] == "completed")
    assert printed == ["first try", "second try"]
    errors = [ref["ref"] for ref in task["attempts"][0]["outputRefs"] if ref["kind"] == "stderr"]
    assert run_file(root, task["attempts"][0]["runId"], errors[0].rpartition("/")[2]).read_text() == "oh\n"

    edges = {(edge["kind"], edge["targetId"]): edge for edge in task["relationships"]}
    assert edges["spawned_subagent", "ada"]["status"] == "ended"
    with open_fabric(root, actor="pm") as fabric:
        parent, child = fabric.create("Parent").task_id, fabric.create("Child").task_id
        fabric.claim(parent, agent="lea")
        (sent,) = fabric.send(json.dumps(request(child, parent, "lea", "bob")))
        assert sent.outcome == "accepted"
    handed = [edge for edge in seen(root, parent)["relationships"] if edge["kind"] == "spawned_subagent"]
    assert [(edge["targetId"], edge["status"]) for edge in handed] == [("bob", "active")]


@requirement("task.progress.output-offsets")
def test_a_reader_goes_on_by_offset_while_the_run_prints_and_after_it_was_opened_anew(tmp_path: Path) -> None:
    pipe, first, second = tmp_path / "pipe", "über " * 40, "später " * 40
    os.mkfifo(pipe)
    words = (f"say={first}", "complain=oh", f"read={pipe}", f"say={second}", "report=done")
    root = directory(tmp_path, {"ada": scripted(*words)})
    with open_fabric(root, actor="pm") as fabric:
        task_id = fabric.create("Work", agent="ada").task_id
    read, offset = "", 0
    with Up(root) as up:
        while len(read) < len(first):
            with open_fabric(root, actor="pm") as fabric:
                eventually(lambda: fabric.show(task_id)["attempts"], "run")
                piece = fabric.output(task_id, offset=offset, limit=7)
            assert (piece.offset, piece.ended) == (offset, False)
            read, offset = read + piece.text, piece.next_offset
        assert read.rstrip("\n") == first
        pipe.write_text("go on")
        up.wait("session_end")
    with open_fabric(root, actor="pm") as fabric:
        while not (piece := fabric.output(task_id, attempt=1, offset=offset, limit=11)).ended:
            assert piece.text
            read, offset = read + piece.text, piece.next_offset
        read += piece.text
        assert fabric.output(task_id, stream="stderr").text == "oh\n"
        assert fabric.output(task_id, offset=piece.size).text == ""
        assert fabric.output(task_id, offset=piece.size + 10**9).next_offset == piece.size + 10**9
        whole = run_file(root, piece.run_id, "output.log").read_text()
        assert read == whole
        assert whole.startswith(f"{first}\n{second}\n")
        fabric.approve(task_id)
        fabric.archive(task_id)
        assert fabric.output(task_id).text == whole


@requirement("task.progress.large-output")
def test_log_and_snapshot_stay_small_whatever_a_run_prints(tmp_path: Path) -> None:
    root = directory(tmp_path, {"ada": scripted(f"flood={_FIFTY_MEGABYTES}", "report=done")})
    with open_fabric(root, actor="pm") as fabric:
        task_id = fabric.create("Loud", agent="ada").task_id
    serve(root)
    task = seen(root, task_id)
    stdout = next(ref for ref in task["attempts"][0]["outputRefs"] if ref["kind"] == "stdout")
    assert stdout["bytes"] > _FIFTY_MEGABYTES
    assert len(json.dumps(task)) < 10_000
    assert sum(path.stat().st_size for path in (root / "events").glob("*.jsonl")) < 20_000
    with open_fabric(root, actor="pm") as fabric:
        fabric.reject(task_id, blockers=["too loud"])
        run = fabric.claim(task_id, agent="ada").run_id
        with pytest.raises(PayloadTooLarge):
            fabric.progress(task_id, text="x" * 1_001, run=run)


@requirement("task.graph.assigned-thread")
def test_a_thread_is_assigned_while_its_session_holds_the_task(tmp_path: Path) -> None:
    root = Path(init_data_dir(tmp_path / ".aof")[0])
    with open_fabric(root, actor="pm") as fabric:
        task_id = fabric.create("Work").task_id

        def edge() -> Fields:
            (task,) = valid(fabric.snapshot())["tasks"]
            (found,) = [one for one in task["relationships"] if one["kind"] == "assigned_thread"]
            return dict(found)

        with mcp_session(root, actor="ada", tools="all") as (portal, client):
            claimed = of_tool(portal.call(client.call_tool, "aof_task_claim", {"taskId": task_id}))
            assert isinstance(claimed, dict)
            assert (edge()["targetId"], edge()["status"]) == ("ada", "active")
            (thread,) = fabric.snapshot()["threads"]
            assert (thread["threadId"], thread["activeTurnId"]) == ("ada", claimed["runId"])
        for _ in range(_LOOKS):
            if edge()["status"] != "active":
                break
            fabric.store.wait(fabric.store.head(), 0.1)
        assert (edge()["targetId"], edge()["status"]) == ("ada", "ended")
        assert edge()["updatedAt"] > edge()["createdAt"]
        (thread,) = fabric.snapshot()["threads"]
        assert thread["status"] == "idle"


@requirement("task.events.names-only")
def test_the_demo_gives_known_names_only_each_from_an_event_of_its_own(tmp_path: Path) -> None:
    examples = ROOT / "examples"
    spec = spec_from_file_location("demo", examples / "demo.py")
    assert spec is not None
    assert spec.loader is not None
    demo = module_from_spec(spec)
    spec.loader.exec_module(demo)
    root = Path(init_data_dir(tmp_path / ".aof")[0])
    shutil.copytree(examples / "agents", tmp_path / "agents")
    (root / "org").mkdir(exist_ok=True)
    shutil.copy(examples / "org-chart.yaml", root / "org/org-chart.yaml")
    (root / "aof.toml").write_text(demo.SETTINGS, encoding="utf-8")
    with open_fabric(root, actor="maintainer") as fabric:
        demo.create(fabric)
        demo.aof_command(str(root), "trust", "--yes")
        demo.aof_command(str(root), "up", "--once")
        native = {event.seq: event for event in fabric.events()}
        lines = fabric.portable_log()["events"]
    assert {line["type"] for line in lines} <= set(EVENTS)
    assert len({line["sequence"] for line in lines}) == len(lines)
    for line in lines:
        event = native[line["sequence"]]
        assert event.timestamp == line["timestamp"]
        assert event.task_id in (line["taskId"], line["payload"].get("targetId"))
    begun = [line for line in lines if line["type"] in ("task.created", "task.accepted", "task.queued")]
    first = [line["sequence"] for line in begun if line["taskId"] == lines[0]["taskId"]][:3]
    assert [native[seq].commit for seq in first] == [(1, 3), (2, 3), (3, 3)]
    left_out = {event.type for seq, event in native.items() if seq not in {line["sequence"] for line in lines}}
    assert {"run.exited", "task.completed"} <= left_out


def test_a_reader_that_is_killed_in_a_storm_of_writers_resumes_without_gap_or_repeat(tmp_path: Path) -> None:
    root = Path(init_data_dir(tmp_path / ".aof")[0])
    with open_fabric(root, actor="pm") as fabric:
        fabric.create("Before")
        begin = last = int(fabric.snapshot()["sequence"])
        writers = [threading.Thread(target=_storm, args=(root, number)) for number in range(3)]
        for writer in writers:
            writer.start()
        lines: list[Fields] = []
        for most in (3, 1, 8):  # fewer than one writer writes: none of these waits for what never comes
            lines += _followed(root, last, most, None)
            last = lines[-1]["sequence"]
        for writer in writers:
            writer.join(60)
            assert not writer.is_alive()
        told = fabric.portable_log(after=begin)["events"]
        for most in itertools.cycle((20, 40)):
            if last == told[-1]["sequence"]:
                break
            lines += _followed(root, last, most, told[-1]["sequence"])
            last = lines[-1]["sequence"]
        assert lines == told
        assert len(told) > 3 * 4 * 5


def _storm(root: Path, number: int) -> None:
    with open_fabric(root, actor=f"agent-{number}") as fabric:
        for one in range(4):
            task_id = fabric.create(f"Task {number}-{one}", review=False).task_id
            run = fabric.claim(task_id, agent=f"agent-{number}").run_id
            fabric.progress(task_id, run=run, percent=50)
            fabric.complete(task_id, run=run)


def _followed(root: Path, after: int, most: int, end: int | None) -> list[Fields]:
    """What a following process has printed in whole lines when it is killed: so many of them, or all up to an event."""
    words = ["log", "--format", "agentruntime", "--follow", "--after", str(after), "--json"]
    command = [sys.executable, "-m", "aof", "--data-dir", str(root), *words]
    read: list[Fields] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            while len(read) < most and not (read and read[-1]["sequence"] == end):
                read.append(valid_event(json.loads(process.stdout.readline())))
        finally:
            process.kill()
    return read
