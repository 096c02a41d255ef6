"""The snapshot as a whole: shape, counts, graph, what it says of missing data, and that it is one moment."""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from aof.api.fabric import Fabric
from aof.errors import AofError
from aof.kernel.model import STATUSES, attempt_of
from aof.portable import schemas
from aof.surfaces.cli.main import main
from aof.testing import FakeClock, memory_fabric
from tests.support.command_line import Aof
from tests.support.portable import Camera, valid
from tests.support.repository import ROOT
from tests.support.requirements import requirement
from tests.support.room import Room, SameMoment


@pytest.fixture
def camera(room: Room) -> Camera:
    """Takes snapshots of the room."""
    return Camera(room)


def test_a_snapshot_of_an_event_that_there_is_not_is_refused_with_the_last_one(room: Room, fabric: Fabric) -> None:
    room.task()
    last = fabric.store.head()
    error = room.refused("invalid", fabric.snapshot, at=last + 1)
    assert f"the last one is {last}" in error.message
    assert error.call is not None
    assert error.call.operation == "log"
    room.refused("invalid", fabric.snapshot, at=-1)


def test_the_same_log_gives_the_same_bytes_in_the_order_of_the_ids(room: Room, fabric: Fabric) -> None:
    for status in STATUSES:
        room.task(status)
    head = fabric.store.head()
    first = msgspec.json.encode(fabric.snapshot(at=head))
    room.clock.sleep(100_000)
    again = room.reopen().snapshot(at=head)
    assert msgspec.json.encode(again) == first
    ids = [task["taskId"] for task in again["tasks"]]
    assert ids == sorted(ids)


def test_every_moment_of_the_past_can_be_seen(room: Room, camera: Camera, fabric: Fabric) -> None:
    task_id = room.task()
    created = fabric.store.head()
    run = fabric.claim(task_id, agent="ada", ttl=60).run_id
    claimed = fabric.store.head()
    fabric.complete(task_id, run=run)
    assert camera.view(0)["tasks"] == []
    assert [camera.task(task_id, at)["nativeStatus"] for at in (created, claimed)] == ["ready", "in-progress"]
    assert camera.task(task_id, claimed)["currentRunId"] == run
    assert camera.status(task_id) == "waiting_permission"
    assert [camera.view(at)["sequence"] for at in (created, claimed)] == [created, claimed]


@requirement("task.snapshot.shape")
def test_an_empty_a_small_and_a_broken_directory_keep_the_contract(room: Room, camera: Camera, aof: Aof) -> None:
    empty = valid(aof("snapshot").data)
    assert (empty["tasks"], empty["threads"], empty["blockedTasks"]) == ([], [], [])
    assert isinstance(empty["schemaVersion"], str)
    assert "updatedAt" not in empty, "nothing has happened yet"
    ids = [room.task(status) for status in STATUSES]
    small = valid(aof("snapshot").data)
    assert [task["taskId"] for task in small["tasks"]] == ids
    assert small["updatedAt"] == room.events()[-1].timestamp
    for task_id, damage in zip(ids, ("title: [", "---\n", ""), strict=False):
        room.file(task_id).write_text(damage)
    broken = camera.view()
    assert [task["taskId"] for task in broken["tasks"]] == ids
    assert {task["status"] for task in broken["tasks"][:3]} <= {"unknown", "stale"}


@requirement("task.snapshot.attempts")
def test_active_and_recent_attempts_are_read_without_their_tasks(room: Room, camera: Camera, fabric: Fabric) -> None:
    task_id, other = room.task(review=False), room.task()
    first = fabric.claim(task_id, agent="ada").run_id
    fabric.progress(task_id, run=first, text="half of it")
    fabric.complete(task_id, run=first, summary="All of it.", deliverables=["outputs/report.md"])
    second = fabric.claim(other, agent="bob").run_id
    running, done = camera.view()["attempts"]
    assert (running["taskId"], running["runId"], running["nativeStatus"]) == (other, second, "running")
    assert (done["taskId"], done["runId"], done["status"]) == (task_id, first, "completed")
    assert {ref["kind"] for ref in done["outputRefs"]} == {"result", "artifact"}
    assert [ref["kind"] for ref in done["checkpointRefs"]] == ["sequence"]


@pytest.mark.parametrize(("hold", "cause"), [("pause", "paused"), ("block", "blocked"), ("cancel", "cancelled")])
def test_a_run_that_a_person_ends_did_not_fail(room: Room, camera: Camera, hold: str, cause: str) -> None:
    fabric, task_id = room.fabric, room.task()
    fabric.claim(task_id, agent="ada")
    getattr(fabric, hold)(task_id, reason="lunch")
    (attempt,) = camera.task(task_id)["attempts"]
    assert attempt["lastError"]["cause"] == cause
    (shown,) = fabric.show(task_id)["attempts"]
    assert shown["error"]["cause"] == cause
    (event,) = [one for one in room.events() if one.type == "task.attempt.failed"]
    assert event.payload["error"]["cause"] == cause


def test_a_person_reads_that_a_run_was_paused(room: Room, aof: Aof, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    task_id = room.task("in-progress")
    assert aof("pause", task_id, "--reason", "lunch").code == 0
    assert main(["show", task_id]) == 0
    assert b"ada paused, ended" in capsysbinary.readouterr().out
    assert main(["log", task_id, "--type", "attempt.failed"]) == 0
    assert b"paused" in capsysbinary.readouterr().out


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ("create", "claim", "complete", "fail", "block", "pause", "cancel", "expire", "archive", "wait", "bury")
        ),
        st.integers(0, 7),
    ),
    max_size=40,
)


def _step(fabric: Fabric, clock: FakeClock, what: str, ids: list[str], which: int) -> None:
    if what == "create" or not ids:
        parent = ids[-1] if which == 3 and ids else None
        with suppress(AofError):  # nothing begins below what is cancelled
            ids.append(fabric.create("One", review=bool(which % 2), parent_id=parent).task_id)
        return
    task_id = ids[which % len(ids)]
    lease = fabric.get(task_id).lease
    run = lease.run_id if lease is not None else None
    calls: dict[str, Any] = {
        "claim": lambda: fabric.claim(task_id, agent="ada", ttl=60),
        "complete": lambda: fabric.complete(task_id, run=run),
        "fail": lambda: fabric.fail(task_id, run=run),
        "bury": lambda: fabric.fail(task_id, run=run, retryable=False, cause="timed_out"),
        "block": lambda: fabric.block(task_id, reason="waits", kind="waiting_input"),
        "pause": lambda: fabric.pause(task_id),
        "cancel": lambda: fabric.cancel(task_id),
        "archive": lambda: fabric.archive(task_id),
        "expire": lambda: clock.sleep(61),
        "wait": lambda: clock.sleep(1000),
    }
    try:
        calls[what]()
    except AofError:
        return


@requirement("task.snapshot.summary")
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=STEPS)
def test_every_count_is_what_one_counts_in_the_tasks(steps: list[tuple[str, int]]) -> None:
    clock = FakeClock()
    fabric = memory_fabric(clock=clock)
    ids: list[str] = []
    for what, which in steps:
        _step(fabric, clock, what, ids, which)
    view = valid(fabric.snapshot(archived=True))
    tasks, summary = view["tasks"], view["taskSummary"]

    def counted(*statuses: str) -> int:
        return sum(task["status"] in statuses for task in tasks)

    over = [task for task in tasks if task["nativeStatus"] in ("done", "cancelled", "deadletter", "archive")]
    assert summary["totalCount"] == len(tasks) == len(ids)
    assert summary["terminalCount"] == len(over)
    assert summary["activeCount"] == len(tasks) - len(over)
    assert summary["failedCount"] == counted("failed", "timed_out")
    assert summary["lostCount"] == counted("lost")
    assert summary["waitingCount"] == counted(
        "waiting_input", "waiting_permission", "waiting_resource", "blocked", "paused"
    )
    assert summary["byStatus"] == {status: counted(status) for status in {task["status"] for task in tasks}}
    recent = summary["recentTerminalTasks"]
    assert [one["endedAt"] for one in recent] == sorted((one["endedAt"] for one in recent), reverse=True)
    assert len(recent) == min(len(over), 10)
    assert {one["taskId"] for one in recent} <= {task["taskId"] for task in over}
    every = [{"taskId": task["taskId"]} | one for task in tasks for one in task["attempts"]]
    running = [one for one in every if one["nativeStatus"] == "running"]
    ended = sorted((one for one in every if "endedAt" in one), key=lambda one: (one["endedAt"], one["runId"]))
    assert view["attempts"] == [*running, *ended[:-11:-1]]


@settings(max_examples=25, deadline=None)
@given(steps=STEPS)
def test_a_past_snapshot_equals_what_was_recorded_then(steps: list[tuple[str, int]]) -> None:
    clock = FakeClock()
    fabric = memory_fabric(clock=clock)
    ids: list[str] = []
    recorded: dict[int, dict[str, Any]] = {}
    for what, which in steps:
        _step(fabric, clock, what, ids, which)
        head = fabric.store.head()
        view = recorded.setdefault(head, fabric.snapshot(at=head, archived=True))
        for task in view["tasks"]:
            known = fabric.get(task["taskId"])
            assert task["nativeStatus"] == ("archive" if known.archived else known.status)
            assert (task["title"], task["priority"]) == (known.title, known.priority)
    clock.sleep(100_000)
    for head, view in recorded.items():
        assert fabric.snapshot(at=head, archived=True) == view


def test_the_published_schemas_are_those_of_the_code() -> None:
    for name, text in schemas.documents().items():
        published = (ROOT / "docs/reference" / name).read_text(encoding="utf-8")
        assert published == text, "write them anew: python -m aof.portable.schemas"
        Draft202012Validator.check_schema(json.loads(text))


@requirement("task.snapshot.tasks")
def test_a_task_stays_small_however_much_it_says_and_prints(room: Room, camera: Camera, fabric: Fabric) -> None:
    huge = "A long story.\n" * 20_000
    plain, task_id = room.task("in-progress"), room.task("in-progress", brief=huge, acceptance=["it works"])
    fabric.progress(task_id, text="half", percent=50, note="x" * 9_000, agent="ada")
    fabric.complete(
        task_id,
        summary="y" * 9_000,
        notes="z" * 9_000,
        deliverables=["outputs/log.txt"],
        agent="ada",
        acceptance=["it works"],
    )
    fabric.complete(plain, agent="ada")
    sizes = {one: len(json.dumps(task)) for one, task in camera.tasks().items()}
    assert sizes[task_id] < sizes[plain] + 3_000
    task = camera.task(task_id)
    assert "body" not in task
    assert camera.resolve(task["objective"])["body"].startswith(huge)
    assert task["relationships"]
    assert task["progress"]["percent"] == 50


@requirement("task.snapshot.graph")
def test_tree_and_order_can_be_rebuilt_from_the_snapshot_alone(room: Room, camera: Camera, fabric: Fabric) -> None:
    ids = [room.task()]
    for number in range(1, 30):
        ids.append(room.task(parent_id=ids[number // 3], depends_on=[ids[(number * 7) % number], ids[number - 1]]))
    fabric.link(ids[5], "parent", ids[29])
    fabric.dep_remove(ids[9], ids[8])
    edges = camera.view()["taskGraph"]["edges"]
    parents = {edge["sourceId"]: edge["targetId"] for edge in edges if edge["kind"] == "parent"}
    waits = {(edge["sourceId"], edge["targetId"]) for edge in edges if edge["kind"] == "blocked_by"}
    fronts = {task_id: room.front(task_id) for task_id in ids}
    assert parents == {one: front["parentId"] for one, front in fronts.items() if "parentId" in front}
    assert waits == {(one, blocker) for one, front in fronts.items() for blocker in front.get("dependsOn", ())}
    inverse = {"child": "parent", "blocks": "blocked_by"}
    other = {(edge["targetId"], inverse[edge["kind"]], edge["sourceId"]) for edge in edges if edge["kind"] in inverse}
    assert other == {(edge["sourceId"], edge["kind"], edge["targetId"]) for edge in edges} - {
        (edge["sourceId"], edge["kind"], edge["targetId"]) for edge in edges if edge["kind"] in inverse
    }


@requirement("task.snapshot.attempts")
def test_active_and_earlier_attempts_stand_with_their_task(room: Room, camera: Camera, fabric: Fabric) -> None:
    task_id = room.task()
    for number in (1, 2):
        run = fabric.claim(task_id, agent="ada").run_id
        fabric.progress(task_id, percent=10 * number, run=run)
        fabric.fail(task_id, code=f"broke_{number}", run=run)
        fabric.retry(task_id, reason="again")
    run = fabric.claim(task_id, agent="bob").run_id
    fabric.heartbeat(task_id, run=run)
    task = camera.task(task_id)
    assert [one["status"] for one in task["attempts"]] == ["failed", "failed", "running"]
    assert [attempt_of(one["runId"]) for one in task["attempts"]] == [1, 2, 3]
    for attempt in task["attempts"]:
        assert isinstance(attempt["outputRefs"], list)
        for ref in (*attempt["inputRefs"], *attempt["outputRefs"], *attempt["checkpointRefs"]):
            assert camera.resolve(ref["ref"]), ref
    points = [camera.resolve(one["checkpointRefs"][0]["ref"])[0].payload["percent"] for one in task["attempts"][:2]]
    assert points == [10, 20]
    assert task["attempts"][2]["checkpointRefs"] == []
    (thread,) = [one for one in camera.view()["threads"] if one["threadId"] == "bob"]
    assert (thread["status"], thread["activeTurnId"]) == ("running", run)


@requirement("task.snapshot.blocked-tasks")
def test_carrying_out_the_named_action_frees_what_is_blocked(
    room: Room, camera: Camera, fabric: Fabric, clock: FakeClock
) -> None:
    first = room.task(review=False)
    waiting = room.task(depends_on=[first])
    dead = room.task("deadletter")
    behind = fabric.create("Behind it", depends_on=[dead]).task_id
    held, paused, review, retrying = room.task("blocked"), room.task(), room.task("review"), room.task()
    asked = room.task()
    fabric.block(asked, reason="which colour?", kind="waiting_input")
    fabric.pause(paused)
    fabric.fail(retrying, run=fabric.claim(retrying, agent="ada").run_id)
    handed = room.task()
    fabric.handoff_new(type="delegation", from_agent="ada", to=("bob",), task_id=handed, reason="yours", timeout=60)
    expected = {waiting, behind, held, paused, review, retrying, asked, handed}

    def blocked() -> dict[str, Any]:
        return {one["taskId"]: one for one in camera.view()["blockedTasks"]}

    found = blocked()
    assert set(found) == expected
    assert found[waiting]["blockers"] == [{"kind": "task", "id": first, "status": "ready"}]
    assert found[waiting]["actions"][0]["actionId"] == f"complete:{first}"
    assert found[review]["actions"][0]["actionId"] == f"approve:{review}"
    assert found[behind]["blockers"][0]["id"] == dead
    assert found[asked]["reason"] == "which colour?"
    assert found[handed]["blockers"][0]["kind"] == "handoff"
    assert found[handed]["actions"][0]["actionId"] == f"handoff_accept:{found[handed]['blockers'][0]['id']}"
    for task_id, entry in found.items():
        action = entry["actions"][0]
        names = {"taskId": "task_id", "blockerId": "blocker_id", "handoffId": "handoff_id"}
        given = {names.get(name, name): value for name, value in action["arguments"].items()}
        getattr(fabric, action["operation"])(**given)
        assert task_id not in blocked()
    assert blocked() == {}


@requirement("task.snapshot.missing-data")
def test_what_is_not_known_is_said_and_never_made_up(room: Room, camera: Camera, fabric: Fabric) -> None:
    running, broken, edited, done = room.task("in-progress"), room.task(), room.task(), room.task("done")
    for path in (room.root / "runs" / running).iterdir():
        path.unlink()
    room.file(broken).write_text("---\ntitle: [\n---\n")
    room.file(edited).write_text(room.file(edited).read_text().replace("One that is ready", "Another"))
    tasks = camera.tasks()
    assert (tasks[broken]["status"], tasks[edited]["status"]) == ("unknown", "stale")
    assert "cannot be read" in tasks[broken]["statusReason"]
    assert tasks[running]["status"] == "preparing", "no sign of life is not one"
    assert tasks[running]["progress"] == {"state": "unknown"}
    assert tasks[running]["owner"] == {"state": "unknown"}
    assert tasks[done]["assignee"] == {"state": "not_applicable"}
    assert tasks[done]["currentRunId"] == "not_applicable"
    assert tasks[done]["deliveryState"] == {"state": "not_applicable"}
    assert tasks[edited]["parentTaskId"] == "not_applicable"
    assert tasks[edited]["taskKind"] == "unknown"
    assert "startedAt" not in tasks[edited]
    assert "endedAt" not in tasks[running]
    fabric.complete(running, agent="ada")
    assert camera.task(running)["attempts"][0]["outputRefs"]


@requirement("task.snapshot.consistent")
def test_a_snapshot_under_writers_is_one_moment_and_equals_the_one_from_the_log(room: Room) -> None:
    roots = [room.task(review=False) for _ in range(3)]

    def write(agent: str) -> None:
        with room.opened(actor=agent, clock=SameMoment(room.clock)) as mine:
            for number in range(12):
                parent = roots[number % 3]
                task_id = mine.create("Child", parent_id=parent, depends_on=[parent], review=False).task_id
                mine.dep_remove(task_id, parent)
                mine.complete(task_id, run=mine.claim(task_id, agent=agent).run_id)

    writers = [threading.Thread(target=write, args=(name,)) for name in ("ada", "bob")]
    for writer in writers:
        writer.start()
    taken = []
    with room.opened(clock=SameMoment(room.clock)) as reader:
        while any(writer.is_alive() for writer in writers):
            taken.append(valid(reader.snapshot()))
        for writer in writers:
            writer.join()
        taken.append(valid(reader.snapshot()))
    stamps = {event.seq: event.timestamp for event in room.events()}
    assert len(room.fabric.list().tasks) == 3 + 2 * 12
    for view in taken:
        assert view["updatedAt"] == stamps[view["sequence"]]
        assert view["taskSummary"]["totalCount"] == len(view["tasks"])
        ids = {task["taskId"] for task in view["tasks"]}
        assert {edge["sourceId"] for edge in view["taskGraph"]["edges"]} <= ids
        own = [{"sourceId": task["taskId"]} | edge for task in view["tasks"] for edge in task["relationships"]]
        assert own == view["taskGraph"]["edges"]
        assert view == valid(room.fabric.snapshot(at=view["sequence"]))
