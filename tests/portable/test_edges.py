"""The edges and the attempts of a task in the snapshot, from both ends and over every retry."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from aof.api.fabric import Fabric
from aof.testing import FakeClock
from tests.support.messages import Post, accepted, request
from tests.support.portable import KINDS, Camera
from tests.support.requirements import requirement
from tests.support.room import Room


@pytest.fixture
def camera(room: Room) -> Camera:
    """Takes snapshots of the room."""
    return Camera(room)


def produce(room: Room, task_id: str, *names: str) -> list[str]:
    """Files in the task's `outputs/`, each with its own name in it; their paths below the task's folder."""
    folder = room.file(task_id).with_suffix("") / "outputs"
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text(f"this is {name}")
    return [f"outputs/{name}" for name in names]


@requirement("task.graph.parent-child")
def test_a_child_and_a_delegated_task_are_seen_from_both_ends(camera: Camera, post: Post) -> None:
    parent, delegated = post.pair()
    child = post.room.task(parent_id=parent)
    post.takes(request(delegated, parent))
    for below in (child, delegated):
        assert camera.edges(parent, "child")["child", below]["status"] == "active"
        assert list(camera.edges(below, "parent")) == [("parent", parent)]
        assert camera.task(below)["parentTaskId"] == parent


@requirement("task.graph.blocks")
def test_a_dependency_has_two_ends_also_once_it_is_satisfied(room: Room, camera: Camera, fabric: Fabric) -> None:
    blocker, task_id = room.task(review=False), room.task()
    fabric.dep_add(task_id, blocker)

    def ends() -> set[str]:
        both = camera.edges(task_id)["blocked_by", blocker], camera.edges(blocker)["blocks", task_id]
        return {edge["status"] for edge in both}

    assert ends() == {"active"}
    room.refused("not_ready", fabric.claim, task_id, agent="ada")
    fabric.complete(blocker)
    assert ends() == {"satisfied"}
    fabric.claim(task_id, agent="ada")
    assert ends() == {"satisfied"}


@requirement("task.graph.produced-artifact")
def test_every_deliverable_is_an_artifact_of_its_task(room: Room, camera: Camera, fabric: Fabric) -> None:
    task_id = room.task("in-progress")
    fabric.complete(task_id, agent="ada", deliverables=produce(room, task_id, "a.md", "b.md"))
    targets = [target for _, target in camera.edges(task_id, "produced_artifact")]
    assert [camera.resolve(target) for target in targets] == ["this is a.md", "this is b.md"]


@requirement("task.graph.consumed-artifact")
def test_what_a_handoff_brings_is_an_artifact_that_the_task_consumes(camera: Camera, post: Post) -> None:
    parent, child = post.pair()
    post.takes(request(child, parent, contextRefs=["docs/api.md"]))
    targets = [target for _, target in camera.edges(child, "consumed_artifact")]
    assert "docs/api.md" in targets
    attached = [camera.resolve(target) for target in targets if target.startswith("aof://")]
    assert json.loads(attached[0])["contextRefs"] == ["docs/api.md"]
    assert camera.edges(parent, "consumed_artifact") == {}
    assert {"kind": "consumed", "ref": "docs/api.md"} in camera.task(child)["artifacts"]


@requirement("task.graph.evidence")
def test_a_test_report_and_a_review_are_evidence(room: Room, camera: Camera, fabric: Fabric) -> None:
    task_id = room.task("in-progress")
    fabric.complete(task_id, agent="ada", tests={"total": 7, "passed": 7, "failed": 0})
    fabric.approve(task_id, reason="looks right", actor="lea")
    report, review = camera.edges(task_id, "evidence").values()
    assert report["reason"] == "tests: failed 0, passed 7, total 7"
    (event,) = camera.resolve(report["targetId"])
    assert event.payload["result"]["tests"]["passed"] == 7
    assert review["reason"] == "lea: approved"
    (event,) = camera.resolve(review["targetId"])
    assert (event.type, event.payload["to"], event.payload["by"]) == ("task.transitioned", "done", "lea")
    assert {report["targetId"], review["targetId"]} <= set(camera.task(task_id)["evidenceRefs"])


@requirement("task.graph.edge-fields")
def test_an_edge_says_since_when_how_it_stands_and_why(
    room: Room, camera: Camera, fabric: Fabric, clock: FakeClock
) -> None:
    blocker, task_id = room.task(), room.task()
    clock.sleep(10)
    fabric.dep_add(task_id, blocker)
    fabric.link(task_id, "source_task", blocker, reason="came from it")
    added = camera.edges(task_id)["blocked_by", blocker]
    assert added["createdAt"] == added["updatedAt"] == room.events(task_id, "task.dependency.updated")[0].timestamp
    assert "reason" not in added
    assert camera.edges(task_id)["source_task", blocker]["reason"] == "came from it"
    clock.sleep(10)
    fabric.cancel(blocker, reason="superseded")
    broken = camera.edges(task_id)["blocked_by", blocker]
    assert broken["createdAt"] == added["createdAt"] < broken["updatedAt"]
    assert (broken["status"], broken["reason"]) == ("broken", f"{blocker} is cancelled: superseded")
    assert camera.edges(blocker)["blocks", task_id] == broken | {"kind": "blocks", "targetId": task_id}
    fabric.unlink(task_id, "source_task", blocker)
    assert ("source_task", blocker) not in camera.edges(task_id)
    assert [event.type for event in room.events(task_id)][-1] == "task.link.removed"


@requirement("task.record.relationships")
def test_the_relationships_of_a_task_agree_with_the_graph(camera: Camera, post: Post) -> None:
    room, fabric = post.room, post.fabric
    task_id, child = post.pair()
    parent, blocker, behind = room.task(), room.task("in-progress"), room.task()
    for kind, target in (
        ("parent", parent),
        ("blocks", behind),
        ("source_task", blocker),
        ("source_attempt", room.attempts(blocker)[0]["runId"]),
        ("consumed_artifact", "inputs/data.csv"),
        ("evidence", "https://ci.example/17"),
    ):
        fabric.link(task_id, kind, target)
    post.takes(request(child, task_id))
    post.takes(accepted(child))
    fabric.complete(task_id, agent="ada", deliverables=["outputs/a.md"])
    fabric.link(task_id, "blocked_by", blocker)
    view = camera.view()
    edges = camera.task(task_id)["relationships"]
    assert {edge["kind"] for edge in edges} == set(KINDS)
    assert edges == [
        {name: value for name, value in edge.items() if name != "sourceId"}
        for edge in view["taskGraph"]["edges"]
        if edge["sourceId"] == task_id
    ]
    assert camera.edges(task_id)["spawned_subagent", "bob"]["status"] == "satisfied"


@requirement("task.record.attempts", "task.attempts.ids")
def test_every_run_is_an_attempt_with_one_id_in_all_places(room: Room, camera: Camera, clock: FakeClock) -> None:
    ids = [room.task(review=False) for _ in range(2)]
    runs: list[str] = []
    for task_id in ids:
        own: list[str] = []
        for number in (1, 2, 3):
            own.append(room.fabric.claim(task_id, agent=f"ada{number}").run_id)
            task = camera.task(task_id)
            assert [one["runId"] for one in task["attempts"]] == own
            assert task["attempts"][-1]["attemptId"] == own[-1]
            assert room.run_file(task_id)["runId"] == room.front(task_id)["lease"]["runId"] == own[-1]
            assert room.events(task_id, "task.attempt.started")[-1].run_id == own[-1]
            if number < 3:
                room.fabric.fail(task_id, run=own[-1])
                clock.sleep(1000)
            else:
                room.fabric.complete(task_id, run=own[-1])
        runs += own
    assert len(set(runs)) == 6
    before = camera.tasks()
    for task_id in ids:
        older = [room.root / f"runs/{task_id}/attempts/{number}/run.json" for number in (1, 2)]
        on_disk = [json.loads(path.read_text())["runId"] for path in older] + [room.run_file(task_id)["runId"]]
        assert on_disk == [one["runId"] for one in before[task_id]["attempts"]]
        assert [one["attemptCount"] for one in before[task_id]["attempts"]] == [1, 2, 3]
    room.fabric.close()
    (room.root / "index.sqlite").unlink(missing_ok=True)
    room.fabric = room.opened()
    assert camera.tasks() == before


@requirement("task.attempts.status")
def test_an_attempt_has_a_status_of_its_own(room: Room, camera: Camera, fabric: Fabric, clock: FakeClock) -> None:
    task_id = room.task(review=False)
    fabric.fail(task_id, run=fabric.claim(task_id, agent="ada").run_id)
    clock.sleep(1000)
    fabric.claim(task_id, agent="bob", ttl=60)
    clock.sleep(61)
    assert camera.task(task_id)["attempts"][-1]["status"] == "unavailable"
    fabric.recover()
    clock.sleep(1000)
    fabric.complete(task_id, run=fabric.claim(task_id, agent="eve").run_id)
    task = camera.task(task_id)
    assert task["status"] == "completed"
    assert [one["status"] for one in task["attempts"]] == ["failed", "unavailable", "completed"]
    assert [one["nativeStatus"] for one in task["attempts"]] == ["failed", "expired", "completed"]
    other = room.task("in-progress")
    fabric.cancel(other)
    assert camera.task(other)["attempts"][0]["status"] == "cancelled"


@requirement("task.attempts.input-refs")
def test_the_input_of_an_attempt_is_the_task_as_it_was_then(room: Room, camera: Camera, fabric: Fabric) -> None:
    task_id = room.task(brief="The first idea.\n")
    fabric.fail(task_id, run=fabric.claim(task_id, agent="ada").run_id)
    fabric.edit(task_id, description="A better idea.\n")
    fabric.retry(task_id, reason="with the better idea")
    fabric.claim(task_id, agent="bob")
    fabric.edit(task_id, description="Too late.\n")
    first, second = (camera.resolve(one["inputRefs"][0]["ref"]) for one in camera.task(task_id)["attempts"])
    assert (first["body"].splitlines()[0], second["body"].splitlines()[0]) == ("The first idea.", "A better idea.")
    assert second["lease"]["agent"] == "bob"


@requirement("task.attempts.checkpoint-refs")
def test_a_lost_attempt_names_the_point_to_go_on_from(
    room: Room, camera: Camera, fabric: Fabric, clock: FakeClock
) -> None:
    task_id = room.task()
    run = fabric.claim(task_id, agent="ada", ttl=60).run_id
    assert camera.task(task_id)["attempts"][0]["checkpointRefs"] == []
    fabric.progress(task_id, percent=40, facts={"partial": "rows 1-400"}, run=run)
    fabric.progress(task_id, percent=60, facts={"partial": "rows 1-600"}, run=run)
    clock.sleep(1000)
    fabric.recover()
    clock.sleep(1000)
    fabric.claim(task_id, agent="bob")
    lost, now = camera.task(task_id)["attempts"]
    assert (lost["status"], now["checkpointRefs"]) == ("unavailable", [])
    (point,) = lost["checkpointRefs"]
    assert camera.resolve(point["ref"])[0].payload["partial"] == "rows 1-600"
    (past,) = fabric.replay(point["sequence"])["tasks"]
    assert past["progress"]["partial"] == "rows 1-600"


@requirement("task.attempts.retry-policy")
def test_the_policy_that_is_shown_is_the_one_that_is_kept(
    room: Room, camera: Camera, fabric: Fabric, clock: FakeClock
) -> None:
    task_id = room.task(max_attempts=5)
    delays: list[float] = []
    policy: dict[str, Any] = {}
    while fabric.get(task_id).status == "ready":
        run = fabric.claim(task_id, agent="ada").run_id
        policy = camera.task(task_id)["attempts"][-1]["retryPolicy"]
        fabric.fail(task_id, run=run)
        began = clock.now()
        while camera.status(task_id) == "retrying":
            clock.sleep(20)
        delays.append((clock.now() - began) / 1000)
    backoff = policy["backoff"]
    expected = [min(backoff["initialMs"] * backoff["factor"] ** n, backoff["maxMs"]) / 1000 for n in range(4)]
    assert delays == [*expected, 0]
    assert len(camera.task(task_id)["attempts"]) == policy["maxAttempts"] == 5
    usual = room.task("in-progress")
    assert camera.task(usual)["attempts"][0]["retryPolicy"] == {
        "maxAttempts": 3,
        "backoff": {"initialMs": 60_000, "factor": 3, "maxMs": 900_000},
        "nonRetryable": "as reported",
        "limits": {"leaseTtlMs": 300_000},
    }
    fabric.fail(usual, code="no_such_repository", retryable=False, agent="ada")
    assert camera.status(usual) == "failed"
    assert len(camera.task(usual)["attempts"]) == 1


@requirement("task.record.artifacts-and-evidence")
def test_a_ref_leads_to_its_file_wherever_the_task_moves(room: Room, camera: Camera, fabric: Fabric) -> None:
    task_id = room.task("in-progress")
    fabric.complete(task_id, agent="ada", deliverables=produce(room, task_id, "a.md"), tests={"total": 1, "passed": 1})
    (artifact,) = camera.task(task_id)["artifacts"]
    proofs = camera.task(task_id)["evidenceRefs"]
    folders = set()
    for move in (lambda: None, lambda: fabric.approve(task_id), lambda: fabric.archive(task_id)):
        move()
        task = camera.task(task_id)
        assert task["artifacts"] == [artifact | {"kind": "produced"}]
        assert camera.resolve(artifact["ref"]) == "this is a.md"
        assert all(camera.resolve(ref) for ref in (*proofs, *task["evidenceRefs"]))
        folders.add(room.file(task_id).parent)
    assert len(folders) == 3


@requirement("task.record.artifacts-and-evidence", "task.graph.edge-fields")
def test_artifacts_and_evidence_are_known_by_their_content(room: Room, camera: Camera, fabric: Fabric) -> None:
    task_id = room.task("in-progress")
    produced, proof, large = produce(room, task_id, "a.md", "proof.txt", "large.bin")
    folder = room.file(task_id).with_suffix("")
    (folder / large).write_bytes(bytes(5 * 1024 * 1024))
    (folder / "outputs/link.md").symlink_to(room.root / "aof.toml")
    fabric.link(task_id, "evidence", proof, reason="seen")
    fabric.link(task_id, "evidence", "https://ci.example/7")
    fabric.link(task_id, "evidence", "outputs/link.md")
    fabric.complete(task_id, agent="ada", deliverables=[produced, large, "outputs/gone.md"])
    (room.file(task_id).with_suffix("") / produced).write_text("changed afterwards")
    edges = camera.edges(task_id)
    hashes = {target.rpartition("/")[2]: edge.get("sha256") for (_, target), edge in edges.items()}
    assert hashes["a.md"] == hashlib.sha256(b"this is a.md").hexdigest(), "what was delivered, not what lies there now"
    assert hashes["proof.txt"] == hashlib.sha256(b"this is proof.txt").hexdigest()
    assert [hashes[name] for name in ("7", "link.md", "large.bin", "gone.md")] == [None] * 4
    task = camera.task(task_id)
    assert task["artifacts"][0]["sha256"] == hashes["a.md"]
    assert task["attempts"][0]["outputRefs"][1]["sha256"] == hashes["a.md"]
