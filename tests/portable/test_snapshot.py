"""Snapshots in the portable format, and the view that is kept for the next one."""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from aof.api.fabric import Fabric
from aof.errors import AofError
from aof.kernel.events import Event
from aof.kernel.model import STATUSES, attempt_of
from aof.org.model import OrgChart
from aof.portable import operations as portable_operations
from aof.portable import schemas
from aof.portable.operations import PortableService
from aof.surfaces.cli.main import main
from aof.testing import FakeClock, memory_fabric
from tests.support.command_line import Aof
from tests.support.portable import Camera, valid
from tests.support.repository import ROOT
from tests.support.requirements import requirement
from tests.support.room import Room, SameMoment
from tests.support.team import chart_of

# --- the snapshot as a whole: shape, counts, graph, what it says of missing data, and that it is one moment


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


# --- A process that is asked again goes on from where it was: the answer is the one that a new process would give


AGENTS = ("ada", "bob")


def _team() -> OrgChart:
    agents = [{"id": "ada", "concurrency": 1, "team": "eng"}, {"id": "bob", "team": "eng"}, {"id": "cy"}]
    return chart_of(
        schemaVersion=1, agents=agents, teams=[{"id": "eng", "lead": "ada", "limits": {"maxConcurrent": 2}}]
    )


def fresh(fabric: Fabric, **given: Any) -> dict[str, Any]:
    """What a process tells that was never asked before."""
    return PortableService(fabric.services.environment).snapshot(**given)


def agreed(fabric: Fabric, *, archived: bool = True) -> dict[str, Any]:
    """A snapshot, once it is known to be the one that a new process would take: the same bytes."""
    view = fabric.snapshot(archived=archived)
    assert msgspec.json.encode(view) == msgspec.json.encode(fresh(fabric, archived=archived))
    return view


class Steps:
    """Does this and that to tasks; what is refused is no matter here."""

    def __init__(self, fabric: Fabric, clock: FakeClock) -> None:
        self.fabric = fabric
        self.clock = clock
        self.ids: list[str] = []

    def take(self, what: str, which: int, other: int) -> None:
        self.clock.sleep(1)
        try:
            if what == "create" or not self.ids:
                self.create(which, other)
            else:
                self.change(what, self.ids[which % len(self.ids)], self.ids[other % len(self.ids)], which + other)
        except (AofError, IndexError):  # there is no handoff yet
            return

    def create(self, which: int, other: int) -> None:
        known = self.ids[other % len(self.ids)] if self.ids else None
        made = self.fabric.create(
            "One",
            review=bool(which % 2),
            parent_id=known if which % 3 == 1 else None,
            depends_on=(known,) if which % 3 == 2 and known is not None else (),
            resource=("gpu", None, None)[other % 3],
            agent=("ada", "bob", None, "eve")[which % 4],
            metadata={"waitForChildren": True} if other % 4 == 3 else {},
            max_attempts=1 + other % 2,
        )
        self.ids.append(made.task_id)

    def change(self, what: str, task_id: str, other: str, number: int) -> None:
        fabric, agent = self.fabric, AGENTS[number % 2]
        lease = fabric.get(task_id).lease
        run = lease.run_id if lease is not None else None
        calls: dict[str, Any] = {
            "claim": lambda: fabric.claim(task_id, agent=agent, ttl=60, steal=True),
            "beat": lambda: fabric.heartbeat(task_id, run=run),
            "progress": lambda: fabric.progress(task_id, run=run, text="so far", percent=50),
            "complete": lambda: fabric.complete(task_id, run=run, allow_open_children=bool(number % 2)),
            "release": lambda: fabric.release(task_id, run=run),
            "approve": lambda: fabric.approve(task_id),
            "reject": lambda: fabric.reject(task_id, blockers=("no",)),
            "fail": lambda: fabric.fail(task_id, run=run),
            "bury": lambda: fabric.fail(task_id, run=run, retryable=False, cause="timed_out"),
            "retry": lambda: fabric.retry(task_id, reason="again"),
            "block": lambda: fabric.block(task_id, reason="waits", kind="waiting_input"),
            "pause": lambda: fabric.pause(task_id),
            "resume": lambda: fabric.resume(task_id),
            "unblock": lambda: fabric.unblock(task_id),
            "cancel": lambda: fabric.cancel(task_id),
            "archive": lambda: fabric.archive(task_id),
            "unarchive": lambda: fabric.unarchive(task_id),
            "wait for": lambda: fabric.dep_add(task_id, other),
            "no more": lambda: fabric.dep_remove(task_id, other),
            "below": lambda: fabric.edit(task_id, parent_id=other),
            "alone": lambda: fabric.edit(task_id, clear=("parent",)),
            "route": lambda: fabric.edit(task_id, routing={"agent": agent}),
            "comment": lambda: fabric.comment(task_id, text="well"),
            "hand": lambda: fabric.handoff_new(
                type="delegation", from_agent=agent, to=("cy",), task_id=task_id, reason="yours", timeout=90
            ),
            "accept": lambda: fabric.handoff_accept(fabric.get(task_id).handoffs[-1].id, agent="cy"),
            "decline": lambda: fabric.handoff_reject(fabric.get(task_id).handoffs[-1].id, agent="cy", reason="no"),
            "recover": fabric.recover,
            "pass": lambda: self.clock.sleep(61),
            "wait": lambda: self.clock.sleep(1000),
        }
        calls[what]()


NAMES = (
    "create", "create", "claim", "claim", "beat", "progress", "complete", "release", "approve", "reject", "fail",
    "bury", "retry", "block", "pause", "resume", "unblock", "cancel", "archive", "unarchive", "wait for", "no more",
    "below", "alone", "route", "comment", "hand", "accept", "decline", "recover", "pass", "wait",
)  # fmt: skip
NAMED_STEPS = st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, 11), st.integers(0, 11)), max_size=40)


def _assert_agreed_on_every_step(steps: list[tuple[str, int, int]], org: OrgChart | None) -> None:
    clock = FakeClock()
    fabric = memory_fabric(clock=clock, org=org)
    walk = Steps(fabric, clock)
    for what, which, other in steps:
        walk.take(what, which, other)
        agreed(fabric, archived=bool(which % 2))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=NAMED_STEPS, charted=st.booleans())
def test_a_snapshot_after_any_change_is_the_one_that_a_new_process_takes(
    steps: list[tuple[str, int, int]], *, charted: bool
) -> None:
    _assert_agreed_on_every_step(steps, _team() if charted else None)


@pytest.mark.full
@settings(max_examples=3000, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=NAMED_STEPS, charted=st.booleans())
def test_after_many_long_histories_it_is_too(steps: list[tuple[str, int, int]], *, charted: bool) -> None:
    _assert_agreed_on_every_step(steps, _team() if charted else None)


def test_every_step_of_the_walk_happens() -> None:
    clock = FakeClock()
    fabric = memory_fabric(clock=clock)
    walk = Steps(fabric, clock)
    for which, other in ((0, 1), (3, 1), (1, 0), (2, 0)):
        walk.create(which, other)
    first, second, child, dependent = walk.ids
    parts = {task["taskId"]: task for task in agreed(fabric)["tasks"]}
    assert parts[child]["rootTaskId"] == parts[child]["parentTaskId"] == first
    assert [edge["kind"] for edge in parts[dependent]["relationships"]] == ["blocked_by"]
    for what in ("claim", "beat", "progress", "release", "claim", "fail", "retry", "claim", "bury", "retry"):
        walk.change(what, second, first, 0)
        agreed(fabric)
    for what in ("block", "unblock", "pause", "resume", "comment", "route", "below", "alone", "wait for", "no more"):
        walk.change(what, second, first, 0)
        agreed(fabric)
    for what in ("claim", "complete", "reject", "claim", "complete", "approve", "archive", "unarchive", "recover"):
        walk.change(what, child, second, 0)
        agreed(fabric)
    for what in ("cancel", "archive", "pass", "wait"):
        walk.change(what, dependent, second, 0)
        agreed(fabric)
    for what in ("hand", "decline", "hand", "accept"):
        walk.change(what, second, first, 0)
        agreed(fabric)


def test_a_changed_root_reaches_everything_below(room: Room) -> None:
    top, middle, leaf, other = (room.task() for _ in range(4))
    room.fabric.edit(middle, parent_id=top)
    room.fabric.edit(leaf, parent_id=middle)
    roots = {task["taskId"]: task["rootTaskId"] for task in agreed(room.fabric)["tasks"]}
    assert roots == {top: top, middle: top, leaf: top, other: other}
    room.fabric.edit(top, parent_id=other)
    roots = {task["taskId"]: task["rootTaskId"] for task in agreed(room.fabric)["tasks"]}
    assert set(roots.values()) == {other}


def test_what_a_relative_shows_follows_the_task(room: Room) -> None:
    blocker = room.task()
    dependent = room.task(depends_on=[blocker])
    agreed(room.fabric)
    room.clock.sleep(5)
    room.fabric.claim(blocker, agent="ada", ttl=60)
    tasks = {task["taskId"]: task for task in agreed(room.fabric)["tasks"]}
    assert tasks[dependent]["relationships"][0]["updatedAt"] == room.events(blocker)[-1].timestamp


def test_a_resource_that_was_taken_is_told_of_whoever_needs_it(room: Room) -> None:
    one, two = room.task(resource="gpu"), room.task(resource="gpu")
    assert agreed(room.fabric)["blockedTasks"] == []
    run = room.fabric.claim(one, agent="ada", ttl=60).run_id
    assert [held["taskId"] for held in agreed(room.fabric)["blockedTasks"]] == [two]
    room.fabric.release(one, run=run)
    assert agreed(room.fabric)["blockedTasks"] == []


def test_an_agent_that_is_full_is_told_of_the_tasks_that_are_meant_for_it() -> None:
    fabric = memory_fabric(org=_team())
    ids = [fabric.create("One", agent="ada").task_id for _ in range(2)]
    assert {task["statusReason"] for task in agreed(fabric)["tasks"]} == {"it waits for its turn"}
    run = fabric.claim(ids[0], agent="ada", ttl=60).run_id
    assert "1 of the 1" in agreed(fabric)["tasks"][1]["statusReason"]
    fabric.release(ids[0], run=run)
    assert agreed(fabric)["tasks"][1]["statusReason"] == "it waits for its turn"


def test_only_the_news_are_read_and_only_what_they_touch_is_made_again(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [room.task() for _ in range(6)]
    read: list[int] = []
    events = room.fabric.store.events

    def counted(after: int = 0, task_id: str | None = None) -> Iterator[Event]:
        for event in events(after, task_id):
            read.append(event.seq)
            yield event

    monkeypatch.setattr(room.fabric.store, "events", counted)
    first = room.fabric.snapshot()
    head = room.fabric.store.head()
    assert read == list(range(1, head + 1))
    room.fabric.block(ids[2], reason="no key")
    read.clear()
    second = room.fabric.snapshot()
    assert read == list(range(head, room.fabric.store.head() + 1)), "the last one again, to know the log by it"
    shared = [one is other for one, other in zip(first["tasks"], second["tasks"], strict=True)]
    assert shared == [True, True, False, True, True, True]


def test_time_and_signs_of_life_alone_change_what_is_told(room: Room) -> None:
    task_id = room.task()
    run = room.fabric.claim(task_id, agent="ada", ttl=60).run_id
    assert agreed(room.fabric)["tasks"][0]["status"] == "preparing"
    room.fabric.heartbeat(task_id, run=run)
    assert agreed(room.fabric)["tasks"][0]["status"] == "running"
    room.clock.sleep(61)
    assert agreed(room.fabric)["tasks"][0]["status"] == "lost"


def test_a_retry_whose_time_has_come_is_queued(room: Room) -> None:
    task_id = room.task()
    run = room.fabric.claim(task_id, agent="ada", ttl=60).run_id
    room.fabric.fail(task_id, run=run)
    assert agreed(room.fabric)["tasks"][0]["status"] == "retrying"
    room.clock.sleep(1_000)
    assert agreed(room.fabric)["tasks"][0]["status"] == "queued"


def test_edited_and_broken_files_are_told_and_so_is_that_they_are_well_again(room: Room) -> None:
    one, two = room.task(), room.task()
    assert {task["status"] for task in agreed(room.fabric)["tasks"]} == {"queued"}
    before = room.file(one).read_text()
    room.file(one).write_text(before.replace('title: "', 'title: "Another '))
    room.file(two).write_text("---\ntitle: [")
    assert [task["status"] for task in agreed(room.fabric)["tasks"]] == ["stale", "unknown"]
    room.file(one).write_text(before)
    assert [task["status"] for task in agreed(room.fabric)["tasks"]] == ["queued", "unknown"]


def test_a_snapshot_cannot_be_changed_by_who_got_it_but_a_copy_can(room: Room) -> None:
    room.task(metadata={"scope": {"paths": ["a"]}}, constraints={"files": ["b"]})
    view = room.fabric.snapshot()
    task = view["tasks"][0]
    for change in (
        lambda: task.update(title="forged"),
        lambda: task.pop("title"),
        lambda: task["scope"]["paths"].append("c"),
        task["constraints"]["files"].clear,
        lambda: task["owner"].setdefault("id", "eve"),
        lambda: task["relationships"].append({}),
    ):
        with pytest.raises(TypeError, match="copy"):
            change()
    view["tasks"].clear()
    plain = json.loads(json.dumps(task))
    assert copy.deepcopy(task) == task == plain == agreed(room.fabric)["tasks"][0]
    mine = copy.deepcopy(task)
    mine["scope"]["paths"].append("c")
    assert agreed(room.fabric)["tasks"][0] == plain


def test_another_log_in_its_place_is_told_from_its_beginning(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, lost = room.task(), room.task()
    told = list(room.fabric.store.events())
    assert [task["taskId"] for task in room.fabric.snapshot()["tasks"]] == [kept, lost]
    forged = [event for event in told if event.task_id == kept]
    forged += [msgspec.structs.replace(event, task_id=kept, hash="0" * 64) for event in told if event.task_id == lost][
        1:
    ]
    first, *rest = (msgspec.structs.replace(event, hash="1" * 64) for event in forged)
    other = [msgspec.structs.replace(first, timestamp="2026-03-01T00:00:00.000Z"), *rest]
    for log in (forged[: len(forged) // 2], forged, other):
        numbered = [msgspec.structs.replace(event, seq=seq) for seq, event in enumerate(log, 1)]
        monkeypatch.setattr(
            room.fabric.store, "events", lambda after=0, log=numbered: iter([one for one in log if one.seq > after])
        )
        view = agreed(room.fabric)
        assert [task["taskId"] for task in view["tasks"]] == [kept]
        assert view["sequence"] == len(log)


def test_a_fault_on_the_way_leaves_nothing_half_done(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    task_id = room.task()
    room.fabric.snapshot()
    room.fabric.claim(task_id, agent="ada", ttl=60)
    events = room.fabric.store.events

    def failing(after: int = 0) -> Iterator[Event]:
        yield from list(events(after))[:-1]
        raise OSError("gone")

    with monkeypatch.context() as broken:
        broken.setattr(room.fabric.store, "events", failing)
        with pytest.raises(OSError, match="gone"):
            room.fabric.snapshot()
    assert agreed(room.fabric)["tasks"][0]["nativeStatus"] == "in-progress"


def test_callers_in_many_threads_and_with_other_names_share_what_is_kept(room: Room) -> None:
    for _ in range(5):
        room.task("done")
    first = room.fabric.snapshot()
    views = [room.fabric, *(room.fabric.as_actor(name) for name in AGENTS)]
    with ThreadPoolExecutor(4) as pool:
        told = list(pool.map(lambda number: views[number % 3].snapshot(), range(12)))
    assert all(view == first and view["tasks"][0] is first["tasks"][0] for view in told)


def test_more_tasks_than_a_process_keeps_are_folded_each_time(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portable_operations, "_MOST_KEPT", 2)
    for _ in range(3):
        room.task()
    first, second = room.fabric.snapshot(), room.fabric.snapshot()
    assert first == second
    assert first["tasks"][0] is not second["tasks"][0]
