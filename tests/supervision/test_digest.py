"""What a message to people holds: bounded, readable, and nothing that a service would obey."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aof.kernel.limits import visible_line
from aof.kernel.ports import Notification
from aof.supervision.notifications import digest


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
