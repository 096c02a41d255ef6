"""What is told to whom needs to know: the outbox, and its digest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aof.config import load_settings
from aof.kernel.limits import visible_line
from aof.kernel.model import Policy, SchedulingPolicy
from aof.kernel.ports import ChannelFailed, Notification
from aof.store.files.service_files import DeliveryFiles
from aof.supervision.notifications import ELSEWHERE, IDLE, DeliveryPlan, Outbox, Rules, digest
from aof.testing import FakeClock
from tests.support.room import Room

# --- what a channel is sent: chosen by rules, in one message, once, and after a failure again


class Recording:
    """A channel that keeps what it is sent, until it is told to fail."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str]] = []
        self.broken = False
        self.why: str | None = None

    def refused(self) -> str | None:
        """Why nothing may be sent."""
        return self.why

    def send(self, subject: str, text: str) -> None:
        """Keep it."""
        if self.broken:
            raise ChannelFailed("the service cannot be reached")
        self.sent.append((subject, text))


class Desk:
    """One channel of a room, and what was told about it."""

    def __init__(self, room: Room) -> None:
        self.room = room
        self.channel = Recording()
        self.told: list[tuple[str, str]] = []

    def box(self, **given: Any) -> Outbox:
        """An outbox as a new process would have it, started before anything happens."""
        settings: dict[str, Any] = {"name": "team", "batch": 10.0, "quiet": 60.0} | given
        plan = DeliveryPlan(**settings)
        made = Outbox(
            plan,
            self.channel,
            log=self.room.fabric.store,
            deliveries=DeliveryFiles(str(self.room.root), self.room.clock),
            clock=self.room.clock,
            look=self.room.fabric.services.environment.lookup.get,
            project="demo",
            tell=lambda action, text: self.told.append((action, text)),
        )
        made.step()
        return made


@pytest.fixture
def desk(room: Room) -> Desk:
    """A desk in the room."""
    return Desk(room)


def test_news_of_several_tasks_comes_in_one_message_after_the_batch_time(desk: Desk, clock: FakeClock) -> None:
    box = desk.box()
    first, second = desk.room.task("review", priority="high"), desk.room.task("blocked")
    assert box.step() == 10.0
    clock.sleep(4)
    third = desk.room.task("done")
    assert box.step() == 6.0
    assert desk.channel.sent == []
    clock.sleep(6)
    assert box.step() == 0.0
    ((subject, text),) = desk.channel.sent
    assert subject == "demo: 3 tasks need a look"
    assert [line for line in text.splitlines() if line.startswith("TASK-")] == [
        f"{first} [high] is now in review (ada): One that is review",
        f"{second} is now in blocked (pm): One that is blocked",
        f"{third} is now in done (ada): One that is done",
    ]
    assert "    waits for the key" in text.splitlines()
    assert box.step() == IDLE
    assert len(desk.channel.sent) == 1


def test_what_happened_before_the_channel_was_there_is_no_news(desk: Desk, clock: FakeClock) -> None:
    desk.room.task("review")
    box = desk.box()
    clock.sleep(3600)
    assert box.step(now_or_never=True) == IDLE
    assert desk.channel.sent == []


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (Rules(statuses=("review",)), ["low review", "critical review"]),
        (Rules(priorities=("critical",)), ["critical review", "critical blocked"]),
        (Rules(statuses=(), sla=False, handoffs=False), []),
        (Rules(agents=("ad?",)), ["low review", "critical review"]),
        (Rules(agents=("bob", "pm"), statuses=("blocked",)), ["critical blocked"]),
    ],
)
def test_rules_choose_by_status_priority_and_agent(desk: Desk, rules: Rules, expected: list[str]) -> None:
    box = desk.box(rules=rules)
    desk.room.task("review", priority="low", title="low review")
    desk.room.task("review", priority="critical", title="critical review")
    desk.room.task("blocked", priority="critical", title="critical blocked")
    box.step(now_or_never=True)
    text = "".join(text for _, text in desk.channel.sent)
    assert [title for title in ("low review", "critical review", "critical blocked") if title in text] == expected


def test_a_task_that_waits_past_its_sla_is_news_when_the_channel_takes_such(room: Room, clock: FakeClock) -> None:
    task_id = room.task("review")
    desk, deaf = Desk(room), Desk(room)
    box = desk.box(rules=Rules(statuses=()))
    other = deaf.box(name="deaf", rules=Rules(statuses=(), sla=False))
    clock.sleep(100)
    policy = Policy(scheduling=SchedulingPolicy(patience_ms={"review": 60_000}))
    room.fabric.services.environment.policy = policy
    assert [one.action for one in room.fabric.tick().actions] == ["sla_alert"]
    box.step(now_or_never=True)
    other.step(now_or_never=True)
    assert desk.channel.sent[0][0] == f"demo: {task_id} waits too long in review"
    assert deaf.channel.sent == []


def test_mail_that_nobody_answered_is_news_when_the_channel_takes_such(room: Room) -> None:
    desk, deaf, others = Desk(room), Desk(room), Desk(room)
    box = desk.box(rules=Rules(statuses=()))
    silent = (deaf.box(name="deaf", rules=Rules(mail=False)), others.box(name="others", rules=Rules(agents=("eve",))))
    fabric = room.fabric
    sent = fabric.mail_send("bob", "Port?", priority="P0", type="request", body="secret words").message_id
    fabric.turn_began("bob", "test")
    fabric.turn_ended("bob", "test")
    assert [one.action for one in fabric.tick().actions] == ["mail_escalate"]
    room.task("blocked")
    for one in (box, *silent):
        one.step(now_or_never=True)
        one.step(now_or_never=True)
    ((subject, text),) = desk.channel.sent
    assert subject == f"demo: {sent} nobody answered this message, it is escalated"
    assert "Port?" in text
    assert "bob" in text
    assert "secret words" not in text
    assert not any(sent in text for _, text in (*deaf.channel.sent, *others.channel.sent))


def test_only_the_newest_of_a_task_is_told_and_the_same_not_twice_within_the_quiet_time(
    desk: Desk, clock: FakeClock
) -> None:
    box, fabric = desk.box(quiet=60.0), desk.room.fabric
    task_id = desk.room.task("blocked")
    fabric.unblock(task_id)
    fabric.block(task_id, reason="waits for the key")
    box.step(now_or_never=True)
    assert desk.channel.sent[0][1].count(task_id) == 1
    for seconds, messages in ((30, 1), (31, 2)):
        clock.sleep(seconds)
        fabric.unblock(task_id)
        fabric.block(task_id, reason="waits for the key")
        box.step(now_or_never=True)
        assert len(desk.channel.sent) == messages
    fabric.unblock(task_id)
    fabric.block(task_id, reason="another reason")
    box.step(now_or_never=True)
    assert len(desk.channel.sent) == 3


def test_a_failing_channel_is_tried_again_later_and_later_and_loses_nothing(desk: Desk, clock: FakeClock) -> None:
    box = desk.box()
    first = desk.room.task("review")
    desk.channel.broken = True
    clock.sleep(10)
    box.step()
    clock.sleep(10)
    waits = []
    for _ in range(8):
        waits.append(box.step())
        clock.sleep(waits[-1])
    assert waits == [5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0]
    assert desk.told[0] == (
        "trouble",
        "channel team: the service cannot be reached; it is tried again in 5 s",
    )
    known = DeliveryFiles(str(desk.room.root), clock).load("team")
    assert known is not None
    assert (known.failures, known.error) == (8, "the service cannot be reached")
    second = desk.room.task("blocked")
    box = desk.box()  # another process takes over
    desk.channel.broken = False
    box.step(now_or_never=True)
    ((_, text),) = desk.channel.sent
    assert first in text
    assert second in text
    assert desk.told[-1] == ("notify", "channel team works again after 8 failures")


def test_a_channel_that_nobody_trusts_gets_nothing_then_or_later(desk: Desk) -> None:
    desk.channel.why = "the notify channel team is not trusted"
    box = desk.box()
    desk.room.task("review")
    assert box.step(now_or_never=True) == ELSEWHERE
    assert desk.told == [("untrusted", "channel team: the notify channel team is not trusted")]
    desk.channel.why = None
    box.step(now_or_never=True)
    assert desk.channel.sent == []
    later = desk.room.task("review")
    box.step(now_or_never=True)
    assert later in desk.channel.sent[0][1]


def test_two_processes_send_each_piece_of_news_once(desk: Desk) -> None:
    one, two = desk.box(), desk.box()
    desk.room.task("review")
    with DeliveryFiles(str(desk.room.root), desk.room.clock).alone("team") as alone:
        assert alone
        assert one.step(now_or_never=True) == ELSEWHERE
    one.step(now_or_never=True)
    two.step(now_or_never=True)
    assert len(desk.channel.sent) == 1


def test_a_flood_is_one_short_message(desk: Desk) -> None:
    box = desk.box()
    for number in range(25):
        desk.room.fabric.block(desk.room.task(title=f"{number} " + "x" * 400), reason="y" * 400)
    box.step(now_or_never=True)
    ((subject, text),) = desk.channel.sent
    assert subject == "demo: 25 tasks need a look"
    assert text.endswith("… and 5 more: aof list")
    assert len(text) < 20 * 500


def test_damaged_state_only_means_that_news_begins_now(desk: Desk) -> None:
    desk.box()
    desk.room.task("review")
    (path,) = [path for path in (desk.room.root / "locks").iterdir() if path.suffix == ".json"]
    path.write_text("{]")
    assert desk.box().step(now_or_never=True) == IDLE
    later = desk.room.task("review")
    desk.box().step(now_or_never=True)
    assert [text for _, text in desk.channel.sent if later in text]


def test_the_settings_of_channels_are_read(tmp_path: Path) -> None:
    (tmp_path / "aof.toml").write_text(
        '[[notify.channels]]\nname = "a"\nurlEnv = "X"\nstatus = ["review"]\npriority = ["high"]\nbatch = 3\n'
        '[[notify.channels]]\nname = "b"\nurl = "json://localhost"\n'
    )
    first, second = load_settings(str(tmp_path)).notify.channels
    assert (first.name, first.url_env, first.status, first.batch) == ("a", "X", ("review",), 3.0)
    assert (second.name, second.status) == ("b", ("review", "blocked", "done", "deadletter"))


# --- what a message to people holds: bounded, readable, and nothing that a service would obey


def news(title: str = "Add refresh", reason: str | None = None, actor: str = "ada", **more: str) -> Notification:
    return Notification(
        task_id="TASK-2026-03-02-001",
        title=title,
        from_status="ready",
        status="blocked",
        actor=actor,
        timestamp="2026-03-02T09:00:00.000Z",
        seq=7,
        reason=reason,
        **more,  # type: ignore[arg-type]
    )


@given(st.text(max_size=600), st.text(max_size=600), st.text(max_size=80))
def test_whatever_somebody_writes_stays_on_its_line_within_bounds(title: str, reason: str, actor: str) -> None:
    subject, text = digest("demo", [news(title, reason, actor)])
    assert subject == "demo: TASK-2026-03-02-001 is now in blocked"
    assert len(text.splitlines()) == (2 if reason else 1)
    assert len(text) < 600
    assert visible_line(text.replace("\n", "")) == text.replace("\n", ""), "nothing hidden is left"


def test_nobody_is_mentioned_and_no_command_of_a_chat_is_said() -> None:
    _, text = digest("demo", [news("@everyone look", "<!channel> <@U123> a@b")])
    assert "@everyone" not in text
    assert "<!" not in text
    assert "<@" not in text
    assert "everyone look" in text


def test_without_details_only_ids_and_statuses_leave_the_machine() -> None:
    _, text = digest("demo", [news("secret plan", "the key is 1234", agent="bob")], details=False)
    assert text == "TASK-2026-03-02-001 is now in blocked"
