"""Delivery of output as a recorded fact: to the parent, to a channel, and when it fails."""

from __future__ import annotations

from typing import Any

import pytest

from aof.api.fabric import Fabric
from aof.kernel.commands import Records
from aof.kernel.events import Draft
from aof.kernel.model import Policy
from aof.kernel.ports import Notification
from aof.org.model import Agent, OrgChart
from aof.runs.leases import EVENT, to_parent
from aof.store.files.store import FilesystemStore
from aof.store.memory import FixedChart
from tests.support.portable import Camera
from tests.support.requirements import requirement
from tests.support.room import Room


class Channel:
    """A notifier that may be out of order."""

    def __init__(self) -> None:
        self.broken = True

    def notify(self, notification: Notification) -> bool:
        """Whether it got through."""
        return not (self.broken and notification.status == "done")


@requirement("task.progress.delivery-state")
def test_the_end_of_a_child_records_whether_its_parent_has_the_output(room: Room, fabric: Fabric) -> None:
    camera = Camera(room)
    alive, dead, gone = room.task(), room.task(), room.task()
    children = {parent: room.task(parent_id=parent, review=False) for parent in (alive, dead, gone)}
    fabric.link(dead, "source_task", alive)
    assert {camera.task(one)["deliveryState"]["state"] for one in children.values()} == {"pending"}
    fabric.fail(dead, run=fabric.claim(dead, agent="ada").run_id, retryable=False)
    for parent in (alive, dead):
        fabric.complete(children[parent], actor="ada")
    states = {parent: camera.task(child)["deliveryState"] for parent, child in children.items()}
    assert (states[alive]["state"], states[alive]["targetId"]) == ("delivered", alive)
    assert (states[dead]["state"], states[dead]["reason"]) == ("failed", f"{dead} is deadletter")
    assert camera.task(room.task("done"))["deliveryState"] == {"state": "not_applicable"}
    (event,) = room.events(children[alive], "task.delivery.updated")
    done = room.events(children[alive], "task.transitioned")[-1]
    assert event.seq == done.seq + 1, "in the same commit"
    assert room.front(children[alive])["delivery"]["state"] == "delivered"
    lines = room.fabric.portable_log(children[alive], type="task.progress")["events"]
    assert [line["payload"]["deliveryState"]["state"] for line in lines] == ["delivered"]


@requirement("task.progress.delivery-state")
def test_a_child_whose_parent_was_lost_with_a_part_of_the_log_says_so(room: Room, fabric: Fabric) -> None:
    child = room.task(parent_id=room.task(), review=False)
    task = fabric.get(child)
    records = Records(tasks={child: task, str(task.parent_id): None})
    moved = Draft(type="task.transitioned", task_id=child, payload={"from": "review", "to": "done"})
    _, told = to_parent(records, (moved,))
    assert (told.type, told.payload) == (EVENT, {"state": "parent_missing", "targetId": task.parent_id})


@requirement("task.snapshot.delivery-state")
def test_finished_work_of_which_nobody_heard_is_found_until_it_is_delivered(room: Room) -> None:
    channel = Channel()
    store = FilesystemStore(str(room.root), room.clock, durable=False)
    chart = FixedChart(OrgChart(agents=(Agent(id="ada"),)))
    room.fabric.close()
    room.fabric = fabric = Fabric(store, room.clock, Policy(maintainers=("pm",)), "pm", notifier=channel, org=chart)
    parent = room.task()
    child = room.task(parent_id=parent, review=False)
    fabric.complete(child, actor="ada")
    camera = Camera(room)
    state = camera.view()["deliveryState"]
    assert (state["byState"]["failed"], state["undelivered"]) == (1, [child])
    assert camera.task(child)["deliveryState"]["targetId"] == "notifications"
    assert camera.task(child)["status"] == "completed", "which is another fact"
    channel.broken = False
    fabric.deliver(child)
    assert camera.view()["deliveryState"]["undelivered"] == []
    assert camera.task(child)["deliveryState"]["state"] == "delivered"
    assert room.idle(fabric.deliver, child).status == "done"
    heard = room.task(parent_id=parent, review=False)
    fabric.complete(heard, actor="ada")
    assert camera.task(heard)["deliveryState"]["state"] == "delivered"


def test_a_task_that_demands_delivery_is_complete_when_its_worker_has_delivered(room: Room, fabric: Fabric) -> None:
    task_id = room.task("in-progress", review=False, constraints={"output": {"delivery": True}})
    assert room.refused("not_reconciled", fabric.complete, task_id, agent="ada").details["open"] == [
        "delivery is pending"
    ]
    fabric.deliver(task_id, state="failed", target="channel:releases", reason="no route", agent="ada")
    assert room.refused("not_reconciled", fabric.complete, task_id, agent="ada").details["open"] == [
        "delivery is failed"
    ]
    room.refused("not_lease_holder", fabric.deliver, task_id, agent="bob")
    fabric.deliver(task_id, agent="ada")
    assert fabric.get(task_id).delivery["targetId"] == "channel:releases"
    assert fabric.complete(task_id, agent="ada").status == "done"
    fabric.retry(task_id, reason="again")
    assert fabric.get(task_id).delivery == {}, "the next run has to deliver its own output"


@pytest.mark.parametrize("wrong", [{"state": "sent"}, {"target": "x" * 300}, {"reason": "x" * 600}])
def test_what_is_no_state_of_delivery_is_refused(room: Room, fabric: Fabric, wrong: dict[str, Any]) -> None:
    with pytest.raises(Exception, match=r"state|target|reason"):
        fabric.deliver(room.task(), **wrong)
