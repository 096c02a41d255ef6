"""Tasks in the portable format: fields, statuses, edges, and what is refused."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest

from aof.api.fabric import Fabric
from aof.kernel.kinds import BlockedKind
from aof.kernel.model import STATUSES, Policy
from aof.org.model import Agent, OrgChart, RunnerSettings, Team
from aof.store.memory import FixedChart
from aof.testing import FakeClock, memory_fabric
from tests.support.command_line import Aof
from tests.support.messages import Post, accepted, request
from tests.support.portable import KINDS, Camera, valid
from tests.support.portable import STATUSES as NORMALIZED
from tests.support.requirements import requirement
from tests.support.room import Room

# --- one task in the snapshot: what it is, who it belongs to, how it stands and why


CHART = OrgChart(
    agents=(
        Agent(id="ada", concurrency=1),
        Agent(id="lea", team="eng", runner=RunnerSettings(kind="human")),
        Agent(id="bob"),
        Agent(id="pia", runner=RunnerSettings(kind="a2a", url="http://127.0.0.1:1")),
    ),
    teams=(Team(id="eng", lead="lea"),),
)

PARALLEL = {
    "name": "parallel",
    "hops": [{"id": "build", "role": "developer"}, {"id": "test", "role": "tester"}],
}


@pytest.fixture
def camera(room: Room) -> Camera:
    """Takes snapshots of the room."""
    return Camera(room)


@pytest.fixture
def staffed(room: Room) -> Fabric:
    """A fabric on the same room that has an org chart."""
    policy = Policy(maintainers=("pm",), project="apollo")
    room.fabric = Fabric(room.fabric.store, room.clock, policy, "pm", org=FixedChart(CHART))
    return room.fabric


@requirement("task.model.task")
def test_a_task_stays_itself_over_retry_reassignment_pause_and_crash(
    room: Room, camera: Camera, clock: FakeClock
) -> None:
    parent, blocker = room.task(), room.task("done")
    task_id = room.task(parent_id=parent, depends_on=[blocker], acceptance=["it works", {"criterion": "it is fast"}])

    def itself() -> tuple[Any, ...]:
        task = camera.task(task_id)
        edges = {(edge["kind"], edge["targetId"]) for edge in task["relationships"]}
        return (
            task["taskId"],
            task["parentTaskId"],
            edges & {("parent", parent), ("blocked_by", blocker)},
            task["acceptance"],
        )

    first = itself()
    assert len(first[2]) == 2
    room.fabric.fail(task_id, run=room.fabric.claim(task_id, agent="ada").run_id)
    room.fabric.retry(task_id, reason="again")
    assert itself() == first
    room.fabric.edit(task_id, routing={"agent": "bob"})
    room.fabric.claim(task_id, agent="bob", ttl=60)
    assert itself() == first
    room.reopen()
    clock.sleep(61)
    room.fabric.recover()
    assert itself() == first
    room.fabric.pause(task_id)
    assert itself() == first
    room.fabric.resume(task_id)
    assert itself() == first
    assert len(camera.task(task_id)["attempts"]) == 2


@requirement("task.model.kept-apart")
def test_task_attempts_steps_counters_and_checklist_have_each_their_place(
    room: Room, camera: Camera, fabric: Fabric
) -> None:
    task_id = room.task(brief="- [x] read\n- [ ] write\n- [ ] test\n")
    first = fabric.claim(task_id, agent="ada").run_id
    fabric.fail(task_id, run=first)
    fabric.retry(task_id, reason="again")
    run = fabric.claim(task_id, agent="bob").run_id
    for step in ("reading", "writing"):
        fabric.progress(task_id, run=run, phase="working", facts={"step": step, "counters": {"files": {"done": 1}}})
    task = camera.task(task_id)
    assert task["taskId"] == task_id
    assert [one["runId"] for one in task["attempts"]] == [first, run]
    progress = task["progress"]
    assert (progress["step"], progress["runId"]) == ("writing", run)
    assert progress["counters"] == {"files": {"done": 1}}
    assert progress["checklist"] == {"done": 1, "total": 3}
    assert len(camera.tasks()) == 1
    steps = [event.payload["step"] for event in room.events(task_id, "task.progress")]
    assert steps == ["reading", "writing"]


@requirement("task.record.parent-and-root")
def test_three_generations_know_their_parent_and_their_root(room: Room, camera: Camera) -> None:
    top = room.task()
    middle = room.task(parent_id=top)
    low = room.task(parent_id=middle)
    tasks = camera.tasks()
    found = {one: (tasks[one]["parentTaskId"], tasks[one]["rootTaskId"]) for one in (top, middle, low)}
    assert found == {top: ("not_applicable", top), middle: (top, top), low: (middle, top)}


@requirement("task.record.title-and-objective")
def test_title_and_objective_are_what_a_person_reads_in_the_file(room: Room, camera: Camera, fabric: Fabric) -> None:
    task_id = room.task(title="Add refresh", brief="POST /refresh renews a token.\n")
    long = room.task(title="Rewrite", brief="A very long story.\n" * 500)
    fabric.claim(task_id, agent="ada")
    fabric.progress(task_id, text="half", agent="ada")
    task = camera.task(task_id)
    assert (task["title"], task["objective"]) == ("Add refresh", "POST /refresh renews a token.")
    assert room.front(task_id)["title"] == task["title"]
    assert task["objective"] in room.body(task_id)
    assert camera.resolve(camera.task(long)["objective"])["body"] == room.body(long)


@requirement("task.record.kind-and-family")
def test_a_task_keeps_the_class_that_it_was_given(room: Room, camera: Camera, fabric: Fabric) -> None:
    given = room.task("done", metadata={"taskKind": "bugfix", "taskFamily": "coding"})
    plain = room.task("done")

    def classes(task_id: str) -> tuple[str, str]:
        task = camera.task(task_id)
        return task["taskKind"], task["taskFamily"]

    for change in (
        lambda one: fabric.edit(one, title="Another", metadata={"more": 1}),
        lambda one: fabric.retry(one, reason="again"),
    ):
        assert (classes(given), classes(plain)) == (("bugfix", "coding"), ("unknown", "unknown"))
        for task_id in (given, plain):
            change(task_id)
    assert (classes(given), classes(plain)) == (("bugfix", "coding"), ("unknown", "unknown"))


@requirement("task.record.status", "task.status.native")
def test_every_state_reads_as_one_of_the_twenty_beside_its_folder(
    room: Room, camera: Camera, fabric: Fabric, clock: FakeClock
) -> None:
    expected = dict(
        zip(
            STATUSES,
            ("accepted", "queued", "preparing", "waiting_permission", "blocked", "completed", "cancelled", "failed"),
            strict=True,
        )
    )
    ids = {status: room.task(status) for status in STATUSES}
    put_away = room.task("done")
    fabric.archive(put_away)
    tasks = camera.tasks()
    for status, task_id in ids.items():
        assert (tasks[task_id]["nativeStatus"], tasks[task_id]["status"]) == (status, expected[status])
        assert room.file(task_id).parent.name == tasks[task_id]["nativeStatus"]
        assert "normalizedStatus" not in room.front(task_id)
    assert (tasks[put_away]["nativeStatus"], tasks[put_away]["status"]) == ("archive", "archived")
    assert room.file(put_away).parent.parent.name == "archive"

    moved = room.file(ids["ready"])
    moved.rename(room.root / "tasks/backlog" / moved.name)
    assert camera.status(ids["ready"]) == "stale"
    fabric.sync()
    assert (camera.status(ids["ready"]), camera.task(ids["ready"])["nativeStatus"]) == ("accepted", "backlog")
    clock.sleep(100_000)
    assert camera.status(ids["in-progress"]) == "lost"
    assert {task["status"] for task in camera.tasks().values()} <= set(NORMALIZED)


@requirement("task.record.attribution")
def test_who_asked_who_answers_and_who_works_are_three_things(room: Room, camera: Camera, staffed: Fabric) -> None:
    task_id = staffed.create("Shared", owner="lea", actor="ada").task_id
    staffed.claim(task_id, agent="bob")

    def people() -> tuple[Any, Any, Any]:
        task = camera.task(task_id)
        return task["requestedBy"], task["owner"], task["assignee"]

    asked, owner, holder = people()
    assert (asked, owner) == ({"id": "ada", "kind": "agent"}, {"id": "lea", "kind": "person"})
    assert holder == {"id": "bob", "kind": "agent"}
    staffed.release(task_id, agent="bob")
    assert people() == (asked, owner, {"state": "not_applicable"})
    others = {owner: staffed.create("Owned", owner=owner).task_id for owner in ("eng", "pia", "pm")}
    tasks = camera.tasks()
    kinds = {owner: tasks[one]["owner"]["kind"] for owner, one in others.items()}
    assert kinds == {"eng": "team", "pia": "peer", "pm": "person"}


@requirement("task.record.scope")
@pytest.mark.usefixtures("staffed")
def test_the_scope_names_the_project_and_the_refs_that_were_given(room: Room, camera: Camera) -> None:
    plain = room.task()
    given = room.task(metadata={"scope": {"workspace": "file:src/api", "environment": "staging"}})
    assert camera.task(plain)["scope"] == {"project": "apollo"}
    scope = {"project": "apollo", "workspace": "file:src/api", "environment": "staging"}
    assert camera.task(given)["scope"] == scope


def test_a_project_without_a_name_goes_by_the_folder_of_its_data_directory(room: Room, aof: Aof) -> None:
    room.task()
    (task,) = aof("snapshot").data["tasks"]
    assert task["scope"] == {"project": room.root.parent.name}


@requirement("task.record.acceptance", "task.progress.validation")
@pytest.mark.parametrize("way", ["progress", "result"])
def test_a_criterion_that_nobody_reported_is_unknown_and_not_met(
    room: Room, camera: Camera, fabric: Fabric, way: str
) -> None:
    task_id = room.task("in-progress", acceptance=["it works", "it is fast", {"id": "docs", "text": "it is told"}])
    assert [one["status"] for one in camera.task(task_id)["acceptance"]] == ["unknown"] * 3
    met, tests = [{"criterion": "it is fast", "met": True}], {"total": 5, "passed": 4, "failed": 1}
    if way == "progress":
        fabric.progress(task_id, facts={"acceptance": met, "tests": tests}, agent="ada")
    else:
        fabric.complete(task_id, outcome="needs_review", acceptance=met, tests=tests, agent="ada")
    task = camera.task(task_id)
    assert [one["status"] for one in task["acceptance"]] == ["unknown", "met", "unknown"]
    assert task["progress"]["validation"] == {"tests": tests, "acceptance": {"met": 1, "total": 3}}
    assert room.front(task_id)["acceptance"][0] == "it works"

    other = room.task("in-progress", acceptance=["it works"])
    fabric.complete(other, acceptance=["it works"], agent="ada")
    assert camera.task(other)["progress"]["validation"]["tests"] == {"state": "unknown"}


@requirement("task.record.current-run")
def test_the_current_run_is_the_one_that_holds_the_lease(
    room: Room, camera: Camera, fabric: Fabric, clock: FakeClock
) -> None:
    task_id = room.task()
    runs = []
    for agent, end in (("ada", "release"), ("bob", "expire"), ("eve", None)):
        runs.append(fabric.claim(task_id, agent=agent, ttl=60).run_id)
        three = (camera.task(task_id)["currentRunId"], room.front(task_id)["lease"]["runId"])
        assert {*three, room.run_file(task_id)["runId"]} == {runs[-1]}
        if end == "release":
            fabric.release(task_id, run=runs[-1])
            assert camera.task(task_id)["currentRunId"] == "not_applicable"
        elif end == "expire":
            clock.sleep(61)
            fabric.recover()
            assert camera.task(task_id)["currentRunId"] == "not_applicable"
            clock.sleep(61)
    assert len(set(runs)) == 3


@requirement("task.record.current-run")
def test_in_a_workflow_the_current_run_is_that_of_the_hop_taken_last() -> None:
    clock = FakeClock()
    fabric = memory_fabric(clock=clock, workflows=[PARALLEL])
    task_id = fabric.create("Gated", workflow="parallel").task_id

    def task() -> dict[str, Any]:
        return dict(valid(fabric.snapshot())["tasks"][0])

    first = fabric.claim(task_id, agent="ada", hop="build", ttl=60)
    second = fabric.claim(task_id, agent="bob", hop="test", ttl=600)
    hops = {hop["id"]: hop["lease"]["runId"] for hop in fabric.get(task_id).workflow["hops"]}
    assert hops == {"build": first.run_id, "test": second.run_id}
    assert task()["currentRunId"] == second.run_id
    fabric.heartbeat(task_id, run=second.run_id, ttl=600)
    clock.sleep(61)
    assert [one["status"] for one in task()["attempts"]] == ["unavailable", "running"], "each by its own lease"
    fabric.complete(task_id, run=second.run_id, outcome="complete")
    assert [(one["hop"], one["status"]) for one in task()["attempts"]][1] == ("test", "completed")
    assert task()["currentRunId"] == first.run_id


@requirement("task.record.error-and-reason")
def test_every_status_that_calls_for_a_reason_has_one(
    room: Room, camera: Camera, fabric: Fabric, clock: FakeClock
) -> None:
    held, asked, review, dropped = room.task("blocked"), room.task(), room.task("review"), room.task()
    fabric.block(asked, reason="which colour?", kind="waiting_input")
    fabric.cancel(dropped, reason="superseded")
    failed, late, gone = room.task("in-progress"), room.task("in-progress"), room.task()
    fabric.fail(failed, code="tests_failed", message="3 of 20", retryable=False, agent="ada")
    fabric.fail(late, code="too_late", message="after 30 min", cause="timed_out", retryable=False, agent="ada")
    for _ in range(3):
        clock.sleep(1000)
        fabric.claim(gone, agent="ada", ttl=60)
        clock.sleep(61)
        assert camera.task(gone)["status"] == "lost"
        assert camera.task(gone)["statusReason"] == "the lease of ada ran out"
        assert camera.task(gone)["lastError"]["code"] in ("lease_expired", "stale_heartbeat")
        fabric.recover()
    tasks = camera.tasks()
    expected = {
        held: ("blocked", "waits for the key"),
        asked: ("waiting_input", "which colour?"),
        review: ("waiting_permission", "it waits for an approval"),
        dropped: ("cancelled", "superseded"),
        failed: ("failed", "tests_failed: 3 of 20"),
        late: ("timed_out", "too_late: after 30 min"),
    }
    assert {one: (tasks[one]["status"], tasks[one]["statusReason"]) for one in expected} == expected
    assert tasks[gone]["status"] == "lost"
    assert tasks[gone]["statusReason"]
    for one, code in ((failed, "tests_failed"), (late, "too_late"), (gone, "stale_heartbeat")):
        error = tasks[one]["lastError"]
        assert error["code"] == code
        assert error["runId"] == tasks[one]["attempts"][-1]["runId"]
        assert error["message"]
        assert error["at"] <= tasks[one]["updatedAt"]
    assert not any("lastError" in tasks[one] for one in (held, asked, review, dropped))


@requirement("task.status.queued")
def test_a_queued_task_says_what_it_waits_for(room: Room, camera: Camera, staffed: Fabric) -> None:
    first = room.task(agent="bob")
    waiting = room.task(depends_on=[first])
    staffed.claim(room.task(agent="ada"), agent="ada")
    behind = room.task(agent="ada")
    tasks = camera.tasks()
    assert {tasks[one]["status"] for one in (first, waiting, behind)} == {"queued"}
    assert tasks[first]["statusReason"] == "it waits for its turn"
    assert first in tasks[waiting]["statusReason"]
    assert "ada cannot take another task now: it holds 1 of the 1" in tasks[behind]["statusReason"]


@requirement("task.status.waiting-input")
def test_a_task_that_waits_for_input_says_what_is_asked_of_whom(room: Room, camera: Camera, fabric: Fabric) -> None:
    task_id = room.task()
    fabric.block(task_id, reason="lea: which colour?", kind="waiting_input")
    task = camera.task(task_id)
    assert (task["status"], task["statusReason"]) == ("waiting_input", "lea: which colour?")
    fabric.unblock(task_id)
    assert camera.status(task_id) == "queued"


@requirement("task.status.completed")
def test_a_completed_task_has_result_refs_and_acceptance_at_that_same_event(
    room: Room, camera: Camera, fabric: Fabric
) -> None:
    task_id = room.task("in-progress", review=False, acceptance=["it works"])
    before = fabric.store.head()
    room.file(task_id).with_suffix("").joinpath("outputs").mkdir(parents=True)
    room.file(task_id).with_suffix("").joinpath("outputs/a.md").write_text("the work")
    fabric.complete(
        task_id, agent="ada", deliverables=["outputs/a.md"], acceptance=["it works"], tests={"total": 1, "passed": 1}
    )
    done = fabric.store.head()
    assert camera.task(task_id, before)["status"] != "completed"
    assert all(camera.task(task_id, at)["status"] != "completed" for at in range(before, done))
    task = camera.task(task_id, done)
    assert (task["status"], task["nativeStatus"]) == ("completed", "done")
    assert task["acceptance"] == [{"criterion": "it works", "status": "met"}]
    assert [one["kind"] for one in task["attempts"][0]["outputRefs"]] == ["result", "artifact"]
    result, artifact = (camera.resolve(one["ref"]) for one in task["attempts"][0]["outputRefs"])
    assert (result[0].payload["result"]["outcome"], artifact) == ("done", "the work")
    assert all(camera.resolve(ref) for ref in task["evidenceRefs"])


@requirement("task.status.archived")
def test_an_archived_task_is_in_the_snapshot_when_it_is_asked_for(
    room: Room, camera: Camera, fabric: Fabric, aof: Aof
) -> None:
    task_id = room.task("done")
    fabric.archive(task_id)
    lies = room.root / "archive"
    assert (lies / f"tasks/{task_id}.md").is_file()
    assert (lies / f"runs/{task_id}/run_result.json").is_file()
    assert not (room.root / "runs" / task_id).exists()
    assert aof("list").data["tasks"] == []
    assert aof("tick", "--dry-run").data["actions"] == []
    assert aof("snapshot").data["tasks"] == []
    (task,) = aof("snapshot", "--archived").data["tasks"]
    assert (task["taskId"], task["status"]) == (task_id, "archived")
    assert len(task["attempts"]) == 1
    assert aof("show", task_id).data["id"] == task_id
    assert aof("log", task_id).data["events"]


@requirement("task.status.stale")
def test_a_file_that_was_edited_is_stale_until_somebody_takes_it_in(
    room: Room, camera: Camera, fabric: Fabric, aof: Aof
) -> None:
    ids = room.task(title="First"), room.task(title="Second")
    for task_id, title in zip(ids, ("First", "Second"), strict=True):
        path = room.file(task_id)
        path.write_text(path.read_text().replace(f'title: "{title}"', f'title: "{title} and more"'))
    before = len(room.events())
    for view in (aof("snapshot").data, camera.view()):
        assert [(task["status"], task["title"]) for task in view["tasks"]] == [("stale", "First"), ("stale", "Second")]
    assert len(room.events()) == before
    assert aof("show", ids[1]).data["title"] == "Second and more"
    assert [camera.status(one) for one in ids] == ["stale", "queued"]
    fabric.sync()
    tasks = camera.tasks()
    assert [(tasks[one]["status"], tasks[one]["title"]) for one in ids] == [
        ("queued", "First and more"),
        ("queued", "Second and more"),
    ]


@requirement("task.progress.facts")
def test_progress_is_shown_as_it_was_reported_and_text_is_never_read_for_facts(
    room: Room, camera: Camera, fabric: Fabric
) -> None:
    told, said = room.task("in-progress"), room.task("in-progress")
    fabric.progress(told, percent=40, phase="verifying", facts={"step": "tests"}, agent="ada")
    fabric.progress(said, text="100 percent done, phase delivering, all 3 tests passed", agent="ada")
    tasks = camera.tasks()
    first, second = tasks[told]["progress"], tasks[said]["progress"]
    assert (first["percent"], first["phase"], first["step"]) == (40, "verifying", "tests")
    assert first["runId"] == tasks[told]["currentRunId"]
    assert set(second) == {"text", "at", "runId"}
    assert second["runId"] == tasks[said]["currentRunId"]


@requirement("task.progress.counters")
def test_reported_counters_stand_beside_those_of_the_graph(room: Room, camera: Camera, fabric: Fabric) -> None:
    parent = room.task("in-progress")
    reported = {name: {"done": 1, "total": 4} for name in ("items", "jobItems", "toolCalls", "tests", "files")}
    room.task("done", parent_id=parent)
    room.task(parent_id=parent)
    assert camera.task(parent)["progress"] == {
        "state": "unknown",
        "counters": {"childTasks": {"done": 1, "total": 2}},
    }
    fabric.progress(parent, facts={"counters": reported | {"childTasks": {"done": 9, "total": 9}}}, agent="ada")
    counters = camera.task(parent)["progress"]["counters"]
    assert counters == reported | {"childTasks": {"done": 1, "total": 2}}
    children = camera.edges(parent, "child").values()
    assert [edge["status"] for edge in children] == ["satisfied", "active"]


# --- every one of the twenty statuses, reached for real, and the same in the snapshot and in `show`


class Driver:
    """Brings a task into a status."""

    def __init__(self, room: Room) -> None:
        self.room = room
        self.fabric: Fabric = room.fabric
        self.clock: FakeClock = room.clock

    def draft(self) -> str:
        return self.room.task("backlog", metadata={"draft": True})

    def accepted(self) -> str:
        return self.room.task("backlog")

    def queued(self) -> str:
        return self.room.task()

    def preparing(self) -> str:
        return self.room.task("in-progress")

    def running(self) -> str:
        task_id = self.room.task("in-progress")
        self.fabric.heartbeat(task_id, agent="ada")
        return task_id

    def waiting_input(self) -> str:
        return self._held("waiting_input")

    def waiting_permission(self) -> str:
        return self.room.task("review")

    def waiting_resource(self) -> str:
        return self._held("waiting_resource")

    def blocked(self) -> str:
        blocker = self.room.task()
        task_id = self.room.task(depends_on=[blocker])
        self.fabric.cancel(blocker)
        return task_id

    def _held(self, kind: BlockedKind) -> str:
        task_id = self.room.task("in-progress")
        self.fabric.block(task_id, reason="it is missing", kind=kind)
        return task_id

    def paused(self) -> str:
        task_id = self.running()
        self.fabric.pause(task_id, reason="not today")
        return task_id

    def retrying(self) -> str:
        task_id = self.room.task("in-progress")
        self.fabric.fail(task_id, agent="ada")
        return task_id

    def cancelling(self) -> str:
        """Its worker has a host, which has not stopped it yet."""
        task_id = self.room.task()
        self.fabric.claim(task_id, agent="ada", worker="process")
        self.fabric.cancel(task_id)
        return task_id

    def cancelled(self) -> str:
        task_id = self.cancelling()
        self.fabric.settle(task_id)
        return task_id

    def timed_out(self) -> str:
        task_id = self.room.task("in-progress")
        self.fabric.fail(task_id, cause="timed_out", retryable=False, agent="ada")
        return task_id

    def failed(self) -> str:
        return self.room.task("deadletter")

    def lost(self) -> str:
        task_id = self.room.task()
        self.fabric.claim(task_id, agent="ada", ttl=60)
        self.clock.sleep(61)
        return task_id

    def completed(self) -> str:
        return self.room.task("done")

    def archived(self) -> str:
        task_id = self.room.task("done")
        self.fabric.archive(task_id)
        return task_id

    def stale(self) -> str:
        """A person has edited the file, and nothing has imported that yet."""
        path = self.room.file(task_id := self.room.task())
        path.write_text(path.read_text().replace("title:", "owner: lea\ntitle:"))
        return task_id

    def unknown(self) -> str:
        self.room.file(task_id := self.room.task()).write_text("---\n{no: [yaml\n---\n")
        return task_id


@requirement("task.record.status", "task.status.mapping-total")
@pytest.mark.parametrize("status", NORMALIZED)
def test_a_task_can_be_driven_into_each_status_and_every_view_says_so(room: Room, status: str) -> None:
    drive: Callable[[], str] = getattr(Driver(room), status)
    task_id = drive()
    camera = Camera(room)
    task = camera.task(task_id)
    assert task["status"] == status
    summary = camera.view(archived=True)["taskSummary"]
    assert summary["byStatus"][status] >= 1
    if status not in ("stale", "unknown"):  # `show` imports an edit first, and refuses what it cannot read
        assert room.normalized(task_id) == status
    if status in ("timed_out", "failed", "lost"):
        assert task["lastError"]["code"]
    if status not in ("draft", "accepted", "preparing", "running", "completed", "archived"):
        assert task["statusReason"]


# --- the edges and the attempts of a task in the snapshot, from both ends and over every retry


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


# --- bad input, by call and by hand: it is refused or shown as what it is, and nothing of it reads as success


NOWHERE = "TASK-2020-01-01-999"


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
