"""A process that is asked again goes on from where it was: the answer is the one that a new process would give."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aof.api.fabric import Fabric
from aof.errors import AofError
from aof.kernel.events import Event
from aof.org.model import OrgChart
from aof.portable import operations as portable_operations
from aof.portable.operations import PortableService
from aof.testing import FakeClock, memory_fabric
from tests.support.room import Room
from tests.support.team import chart_of

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
STEPS = st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, 11), st.integers(0, 11)), max_size=40)


def _assert_agreed_on_every_step(steps: list[tuple[str, int, int]], org: OrgChart | None) -> None:
    clock = FakeClock()
    fabric = memory_fabric(clock=clock, org=org)
    walk = Steps(fabric, clock)
    for what, which, other in steps:
        walk.take(what, which, other)
        agreed(fabric, archived=bool(which % 2))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=STEPS, charted=st.booleans())
def test_a_snapshot_after_any_change_is_the_one_that_a_new_process_takes(
    steps: list[tuple[str, int, int]], *, charted: bool
) -> None:
    _assert_agreed_on_every_step(steps, _team() if charted else None)


@pytest.mark.full
@settings(max_examples=3000, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=STEPS, charted=st.booleans())
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
