"""Overdue tasks: the scheduler says so once for each due date, and people are told."""

from __future__ import annotations

from aof.api.fabric import Fabric
from aof.runs.brief import prime
from aof.supervision.notifications import is_news, news_of
from aof.testing import FakeClock
from tests.support.room import Room

DAY = 86_400


def alerts(fabric: Fabric) -> list[tuple[str, str]]:
    """The task and due date of each alert in the log."""
    return [(event.task_id[-3:], event.payload["due"]) for event in fabric.events() if event.type == "task.overdue"]


def test_each_unfinished_task_is_told_of_once_for_each_due_date(room: Room, fabric: Fabric, clock: FakeClock) -> None:
    for status in ("ready", "backlog", "blocked", "review", "done"):
        room.task(status, due="2026-03-02")
    fabric.tick()
    assert alerts(fabric) == []
    clock.sleep(DAY)
    foreseen = [(one.action, one.task_id[-3:]) for one in fabric.tick(dry_run=True).actions if "overdue" in one.action]
    assert len(foreseen) == 4
    for _ in range(3):
        fabric.tick()
    assert sorted(number for number, _ in alerts(fabric)) == ["001", "002", "003", "004"]
    fabric.edit("001", due="2026-03-04")
    fabric.tick()
    assert len(alerts(fabric)) == 4
    clock.sleep(2 * DAY)
    fabric.tick()
    fabric.tick()
    assert alerts(fabric)[4:] == [("001", "2026-03-04")]


def test_the_alert_is_news_that_names_the_due_date(room: Room, fabric: Fabric, clock: FakeClock) -> None:
    task_id = room.task(due="2026-03-01", agent="ada")
    fabric.tick()
    (event,) = [event for event in fabric.events() if event.type == "task.overdue"]
    assert is_news(event)
    news = news_of(event, fabric.get(task_id))
    assert (news.kind, news.reason, news.agent) == ("sla", "it was due 2026-03-01", "ada")


def test_an_agent_is_told_what_is_due_and_what_is_overdue(room: Room, fabric: Fabric) -> None:
    room.task(due="2026-03-01", agent="ada", title="Late")
    room.task(due="2026-03-09", agent="ada", title="In time")
    text = prime(fabric, "ada")
    assert "overdue since 2026-03-01) Late" in text
    assert "due 2026-03-09) In time" in text
