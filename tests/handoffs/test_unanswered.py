"""A handoff that gets no answer is noticed: soon where AOF starts the agent, else when the answer is due."""

from __future__ import annotations

from typing import Any

import pytest

from aof.api.fabric import Fabric
from aof.config import HandoffSettings, Settings
from aof.kernel.model import Policy, iso
from aof.scheduler.model import Action
from aof.scheduler.tick import Tick
from aof.store.files.definitions import OrgFile
from aof.store.files.handoffs import HandoffRecords
from aof.store.files.store import FilesystemStore
from aof.testing import FakeClock, memory_fabric
from tests.kernel.test_notifications import Recorder
from tests.support.command_line import Aof
from tests.support.handoff_team import MOMENT
from tests.support.messages import Post, accepted, rejected, request
from tests.support.requirements import requirement
from tests.support.room import Room
from tests.support.service import chart, scripted

HOUR = 3600.0
PULLING: dict[str, Any] = {}
LATE = "handoff_unanswered"


@pytest.fixture(autouse=True)
def recorder(room: Room) -> Recorder:
    """A notifier on the room's fabric, and a chart.

    Bob is started by AOF, eve pulls, and dan pulls and is expected to answer within a minute.
    """
    watched = {"runner": {"kind": "pull", "ackTimeout": "1m"}}
    chart(room.root, {"ada": PULLING, "bob": scripted("report=done"), "eve": PULLING, "dan": watched})
    made = Recorder()
    room.fabric.close()
    store = FilesystemStore(str(room.root), room.clock, durable=False)
    room.fabric = Fabric(store, room.clock, Policy(), "pm", org=OrgFile(str(room.root), store.disk), notifier=made)
    return made


def asked(post: Post, to_agent: str, **payload: Any) -> str:
    """A child task that ada asks somebody to take."""
    parent, child = post.pair()
    post.takes(request(child, parent, to_agent=to_agent, **payload))
    return child


def late(fabric: Fabric, *, dry_run: bool = True) -> list[Action]:
    """What a tick does, or would do, about handoffs."""
    return [one for one in fabric.tick(dry_run=dry_run).actions if one.action == LATE]


@requirement("aof1.handoff.unanswered-seen")
def test_an_agent_that_is_started_has_30_seconds_to_answer(post: Post, clock: FakeClock) -> None:
    child = asked(post, "bob", dueBy="2030-01-01T00:00:00.000Z")
    due = clock.now() + 30_000
    assert post.fabric.tick(dry_run=True).next_at == iso(due)
    clock.sleep(30 - MOMENT)
    assert late(post.fabric) == []
    clock.sleep(MOMENT)
    (handoff,) = post.fabric.handoff_list()
    (action,) = late(post.fabric)
    assert (action.task_id, action.handoff_id, action.agent) == (child, handoff.id, "bob")
    assert action.reason == f"bob has not answered {handoff.id} by {iso(due)}"


@requirement("aof1.handoff.unanswered-seen")
def test_the_command_line_shows_it_with_its_reason_and_changes_nothing(post: Post, aof: Aof) -> None:
    child = asked(post, "bob")
    before = post.room.contents()
    (action,) = [one for one in aof("tick", "--dry-run").data["actions"] if one["action"] == LATE]
    (handoff,) = post.fabric.handoff_list()
    assert (action["taskId"], action["handoffId"]) == (child, handoff.id)
    assert action["reason"].startswith(f"bob has not answered {handoff.id} by ")
    assert post.room.contents() == before


@requirement("aof1.handoff.unanswered-seen")
@pytest.mark.parametrize("answer", [accepted, rejected])
def test_an_answer_in_time_leaves_nothing_to_notice(post: Post, clock: FakeClock, answer: Any) -> None:
    child = asked(post, "bob")
    tick = Tick(post.fabric.services.environment, post.fabric.services.dispatcher)
    assert LATE not in [one.action for one in tick.ticked().actions]
    clock.sleep(29)
    post.takes(answer(child))
    clock.sleep(2 * HOUR)
    assert late(post.fabric) == []
    assert LATE not in [one.action for one in tick.ticked().actions], "what a tick remembers is no older than the task"


@requirement("aof1.handoff.unanswered-seen")
@pytest.mark.parametrize("who", ["eve", "somebody-who-is-not-in-the-chart"])
def test_a_pulling_agent_or_a_person_has_an_hour(post: Post, clock: FakeClock, who: str) -> None:
    child = asked(post, who)
    clock.sleep(HOUR - MOMENT)
    assert late(post.fabric) == []
    clock.sleep(MOMENT)
    assert [one.task_id for one in late(post.fabric)] == [child]


def test_a_pulling_agent_has_until_the_request_is_due(post: Post, clock: FakeClock) -> None:
    soon, later = asked(post, "eve", dueBy=iso(clock.now() + 60_000)), asked(post, "eve", dueBy="2030-01-01T00:00:00Z")
    clock.sleep(59.999)
    assert late(post.fabric) == []
    clock.sleep(MOMENT)
    assert [one.task_id for one in late(post.fabric)] == [soon]
    clock.sleep(2 * HOUR)
    assert later not in [one.task_id for one in late(post.fabric)]


def test_the_chart_may_say_how_long_an_answer_takes(post: Post, clock: FakeClock) -> None:
    child = asked(post, "dan")
    clock.sleep(60 - MOMENT)
    assert late(post.fabric) == []
    clock.sleep(MOMENT)
    assert [one.task_id for one in late(post.fabric)] == [child]


def test_the_settings_say_how_long_the_others_have() -> None:
    assert Settings().policy().scheduling.handoff_ms == 3_600_000
    assert Settings(handoff=HandoffSettings(default_timeout=2.5)).policy().scheduling.handoff_ms == 2_500


@requirement("aof1.handoff.unanswered-seen")
def test_it_is_recorded_and_told_once_for_each_handoff(post: Post, clock: FakeClock, recorder: Recorder) -> None:
    child = asked(post, "eve")
    clock.sleep(HOUR)
    (planned,) = late(post.fabric)
    recorder.news()
    assert late(post.fabric, dry_run=False) == [planned]
    assert late(post.fabric, dry_run=False) == []
    (event,) = post.room.events(child, "handoff.unanswered")
    assert event.actor == "aof"
    assert event.payload["handoffId"] == planned.handoff_id
    assert event.payload["reason"] == planned.reason
    assert [(one.task_id, one.status, one.reason) for one in recorder.told] == [(child, "ready", planned.reason)]
    assert post.fabric.handoff_show(str(planned.handoff_id)).state == "requested", "an answer may still come"
    post.takes(rejected(child, "eve"))
    post.fabric.unblock(child)
    (parent,) = {str(one.parent_task_id) for one in post.fabric.handoff_list()}
    post.takes(request(child, parent, to_agent="eve") | {"sentAt": iso(clock.now())})
    clock.sleep(HOUR)
    (again,) = late(post.fabric, dry_run=False)
    assert again.handoff_id != planned.handoff_id
    assert len(post.room.events(child, "handoff.unanswered")) == 2


def test_an_answer_between_plan_and_deed_is_respected(post: Post, clock: FakeClock) -> None:
    child = asked(post, "eve")
    clock.sleep(HOUR)
    tick = Tick(post.fabric.services.environment, post.fabric.services.dispatcher)
    (action,) = [one for one in tick.planned(tick.snapshot(explain=False)).actions if one.action == LATE]
    post.takes(accepted(child, "eve"))
    assert tick._carried_out(action, post.fabric.get(child)) == "it has changed in the meantime"
    assert post.room.events(child, "handoff.unanswered") == []


def test_a_tick_reads_handoffs_only_of_tasks_that_were_handed_on_and_once(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    original = HandoffRecords._read

    def counted(self: HandoffRecords, name: str) -> Any:
        read.append(name)
        return original(self, name)

    monkeypatch.setattr(HandoffRecords, "_read", counted)
    post.room.task()
    tick = Tick(post.fabric.services.environment, post.fabric.services.dispatcher)
    tick.ticked(dry_run=True)
    assert read == []
    asked(post, "eve")
    read.clear()
    tick.ticked(dry_run=True)
    assert len(read) == 1
    tick.ticked(dry_run=True)
    assert len(read) == 1


def test_without_files_it_is_the_same() -> None:
    clock = FakeClock()
    fabric = memory_fabric(clock=clock)
    parent, child = fabric.create("Parent").task_id, fabric.create("Child").task_id
    fabric.claim(parent, agent="ada")
    fabric.send(request(child, parent, to_agent="eve"))
    clock.sleep(HOUR)
    assert [one.task_id for one in late(fabric, dry_run=False)] == [child]
    assert late(fabric, dry_run=False) == []
