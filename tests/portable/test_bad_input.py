"""Bad input, by call and by hand: it is refused or shown as what it is, and nothing of it reads as success."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable

import pytest

from aof.api.fabric import Fabric
from tests.support.command_line import Aof
from tests.support.portable import Camera
from tests.support.room import Room

NOWHERE = "TASK-2020-01-01-999"


@pytest.fixture
def camera(room: Room) -> Camera:
    """Takes snapshots of the room."""
    return Camera(room)


def by_hand(room: Room, task_id: str, old: str, new: str) -> None:
    """What a person does to the file of a task."""
    file = room.file(task_id)
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


@pytest.mark.parametrize("status", ["flying", "completed", "", "DONE", "archive", "done\u202e"])
def test_an_unknown_status_is_refused_with_the_statuses_that_there_are(room: Room, fabric: Fabric, status: str) -> None:
    task_id = room.task()
    if status:
        room.refused("invalid", fabric.update, task_id, status=status)
        assert room.refused("invalid", fabric.list, status=status).hint
    (line,) = [line for line in room.file(task_id).read_text().splitlines() if line.startswith("status:")]
    by_hand(room, task_id, line, f"status: {json.dumps(status)}")
    assert Camera(room).status(task_id) in ("stale", "unknown")
    room.fabric.sync()
    assert Camera(room).status(task_id) in ("stale", "unknown", "queued")
    assert room.fabric.list(status="done").total == 0


def test_a_folder_that_is_no_status_holds_no_task(room: Room, camera: Camera, fabric: Fabric, aof: Aof) -> None:
    task_id = room.task()
    (room.root / "tasks/flying").mkdir()
    room.file(task_id).rename(room.root / f"tasks/flying/{task_id}.md")
    assert camera.status(task_id) in ("stale", "unknown")
    assert [one["code"] for one in aof("doctor").data["problems"]]
    assert camera.view()["taskSummary"]["terminalCount"] == 0


@pytest.mark.parametrize(
    "ask",
    [
        lambda fabric, task_id: fabric.dep_add(task_id, NOWHERE),
        lambda fabric, task_id: fabric.create("New", depends_on=[task_id, NOWHERE]),
        lambda fabric, task_id: fabric.create("New", parent_id=NOWHERE),
        lambda fabric, task_id: fabric.link(task_id, "parent", NOWHERE),
        lambda fabric, task_id: fabric.link(task_id, "source_task", NOWHERE),
        lambda fabric, task_id: fabric.dep_add(NOWHERE, task_id),
    ],
)
def test_an_edge_to_nothing_is_refused(room: Room, ask: Callable[[Fabric, str], object]) -> None:
    assert room.refused("task_not_found", ask, room.fabric, room.task()).hint


@pytest.mark.parametrize("key", [f'dependsOn: ["{NOWHERE}"]', f'parentId: "{NOWHERE}"'])
def test_an_edge_to_nothing_in_a_file_is_told_and_never_satisfied(
    room: Room, camera: Camera, fabric: Fabric, aof: Aof, key: str
) -> None:
    task_id = room.task()
    by_hand(room, task_id, "\n---\n", f"\n{key}\n---\n")
    fabric.sync()
    assert camera.status(task_id) == "stale"
    assert aof("doctor").data["problems"]
    room.refused("unreadable_task", fabric.claim, task_id, agent="ada")
    edges = camera.edges(task_id)
    assert not any(edge["targetId"] == NOWHERE for edge in edges.values()), "what was refused is no edge"
    assert key in room.file(task_id).read_text(), "and the person's text is not lost"


def test_a_new_file_with_an_edge_to_nothing_is_no_task_yet(
    room: Room, camera: Camera, fabric: Fabric, aof: Aof
) -> None:
    task_id = "TASK-2026-03-02-500"
    path = room.root / f"tasks/ready/{task_id}.md"
    path.write_text(f'---\ntitle: "By hand"\ndependsOn: ["{NOWHERE}"]\n---\n\nDo it.\n')
    fabric.sync()
    assert aof("doctor").data["problems"]
    assert fabric.ready().total == 0
    assert task_id not in camera.tasks()
    path.write_text('---\ntitle: "By hand"\n---\n\nDo it.\n')
    fabric.sync()
    assert camera.status(task_id) == "queued"


@pytest.mark.parametrize("length", [1, 2, 3])
@pytest.mark.parametrize("kind", ["dependency", "parent"])
def test_a_cycle_is_refused_by_the_call_that_would_close_it(room: Room, fabric: Fabric, kind: str, length: int) -> None:
    ids = [room.task() for _ in range(length)]

    def join(one: str, other: str) -> object:
        return fabric.dep_add(one, other) if kind == "dependency" else fabric.link(one, "parent", other)

    for one, other in itertools.pairwise(ids):
        join(one, other)
    refused = room.refused("dependency_cycle", join, ids[-1], ids[0])
    assert ids[0] in refused.message


@pytest.mark.parametrize("kind", ["dependsOn", "parentId"])
def test_a_cycle_in_files_is_told_and_the_snapshot_still_ends(
    room: Room, camera: Camera, fabric: Fabric, aof: Aof, kind: str
) -> None:
    one, two = room.task(), room.task()
    for task_id, other in ((one, two), (two, one)):
        value = json.dumps([other] if kind == "dependsOn" else other)
        by_hand(room, task_id, "\n---\n", f"\n{kind}: {value}\n---\n")
    fabric.sync()
    assert aof("doctor").data["problems"], "one of the two cannot be taken in"
    seen = camera.tasks()
    assert sorted(task["status"] for task in seen.values()) == ["queued", "stale"]
    kinds = [edge["kind"] for edge in camera.view()["taskGraph"]["edges"]]
    assert kinds.count("blocked_by" if kind == "dependsOn" else "parent") == 1
    if kind == "dependsOn":
        assert fabric.ready().total == 1


def test_foreign_keys_stay_and_mean_nothing(room: Room, camera: Camera, fabric: Fabric) -> None:
    task_id = room.task()
    foreign = 'progress2: {"percent": 100}\nnativeStatus: "completed"\nendedAt2: "2026-03-02"\n'
    by_hand(room, task_id, "\n---\n", f"\n{foreign}---\n")
    fabric.sync()
    fabric.edit(task_id, title="Another")
    assert all(line in room.file(task_id).read_text() for line in foreign.splitlines())
    task = camera.task(task_id)
    assert (task["status"], task["nativeStatus"]) == ("queued", "ready")
    assert "endedAt" not in task
    assert task["progress"] == {"state": "unknown"}
    assert "progress2" not in json.dumps(task)


def test_keys_that_only_aof_writes_do_not_come_from_a_file(room: Room, camera: Camera, fabric: Fabric) -> None:
    task_id = room.task()
    run = "RUN-2026-03-02-001-1-0badc0de"
    forged = {"agent": "eve", "runId": run, "epoch": 9, "ttlMs": 9, "renewCount": 0, "worker": "pull"}
    forged |= {"acquiredAt": "2026-03-02T09:00:00.000Z", "expiresAt": "2036-03-02T09:00:00.000Z"}
    by_hand(room, task_id, "\n---\n", f"\nlease: {json.dumps(forged)}\n---\n")
    fabric.sync()
    assert fabric.get(task_id).lease is None
    assert camera.task(task_id)["currentRunId"] == "not_applicable"
    assert fabric.claim(task_id, agent="ada").run_id


@pytest.mark.parametrize(
    "ask",
    [
        lambda fabric, task_id: fabric.create("Another", key="k"),
        lambda fabric, task_id: fabric.edit(task_id, title="Another", key="e"),
    ],
)
def test_a_key_of_another_request_is_a_conflict(
    room: Room, fabric: Fabric, ask: Callable[[Fabric, str], object]
) -> None:
    task_id = fabric.create("One", key="k").task_id
    fabric.edit(task_id, title="Two", key="e")
    assert room.refused("key_conflict", ask, fabric, task_id).hint
