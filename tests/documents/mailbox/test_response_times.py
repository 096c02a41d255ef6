"""Turns, response times and escalation."""

from __future__ import annotations

from aof.documents import mail_rules
from tests.documents.mailbox.conftest import Post
from tests.support.requirements import requirement


def _escalated(post: Post) -> list[str]:
    return [event.payload["text"] for event in post.fabric.store.events() if event.type == mail_rules.ESCALATED]


@requirement("comms.sla.p0", "comms.sla.escalation")
def test_a_p0_message_is_escalated_after_one_turn_and_only_once(post: Post) -> None:
    sent = post.send(priority="P0", subject="Port?")
    assert post.fabric.tick().actions == ()
    post.turn("bob")
    assert [one.message_id for one in post.fabric.mail_list().overdue] == [sent]
    assert [one.message_id for one in post.fabric.tick(dry_run=True).actions] == [sent]
    assert _escalated(post) == []
    assert [one.message_id for one in post.fabric.tick().actions] == [sent]
    assert post.fabric.tick().actions == ()
    assert _escalated(post) == [f"Escalated: {sent} — Port? — receiver did not ack within P0 window"]
    notices = post.fabric.mail_inbox(agent="maya").messages
    assert [(one.priority, one.fields["Related"]) for one in notices] == [("P0", sent)]
    assert post.fabric.mail_show(sent).status == "unread"
    assert f"| {sent} | ada -> bob |" in post.text()


@requirement("comms.sla.p0")
def test_a_p0_message_that_was_acknowledged_in_that_turn_is_not(post: Post) -> None:
    sent = post.send(priority="P0")
    post.fabric.turn_began("bob", "test")
    post.fabric.mail_ack(sent, agent="bob", reason="read")
    post.fabric.turn_ended("bob", "test")
    assert post.fabric.tick().actions == ()


@requirement("comms.sla.p1")
def test_a_p1_message_is_escalated_after_two_turns(post: Post) -> None:
    post.send(priority="P1")
    post.turn("bob")
    post.turn("cyd")
    assert post.fabric.tick().actions == ()
    post.turn("bob")
    assert len(post.fabric.tick().actions) == 1


@requirement("comms.sla.no-duty", "comms.sla.turns")
def test_what_asks_for_no_answer_is_never_escalated(post: Post) -> None:
    post.send(priority="P2")
    post.send(priority="P0", type="notify")
    blocked, taken = post.send(priority="P0"), post.send(priority="P0")
    for one in (blocked, taken):
        post.fabric.mail_ack(one, agent="bob", reason="read")
    post.fabric.mail_block(blocked, agent="bob", reason="waits")
    for _ in range(10):
        post.turn("bob")
        post.clock.sleep(86_400)
    assert post.fabric.tick().actions == ()


@requirement("comms.sla.turns")
def test_time_alone_makes_nothing_overdue(post: Post) -> None:
    post.send(priority="P0")
    post.clock.sleep(30 * 86_400)
    assert post.fabric.mail_list().overdue == ()
    assert post.fabric.tick().actions == ()


@requirement("comms.sla.due-date")
def test_a_time_is_a_time(post: Post) -> None:
    sent = post.send(priority="P1", needed_by="2026-01-05T10:00:00Z")
    decision = post.send(priority="P2", type="decision-required", needed_by="2026-01-05T10:00:00Z")
    plain = post.send(priority="P2", needed_by="2026-01-05T10:00:00Z")
    assert post.fabric.tick().next_at == "2026-01-05T10:00:00.001Z"
    post.clock.sleep(3601)
    assert {one.message_id for one in post.fabric.mail_list().overdue} == {sent, decision, plain}
    assert {one.message_id for one in post.fabric.tick().actions} == {sent, decision}


@requirement("comms.sla.escalation")
def test_the_maintainers_own_message_gives_an_entry_and_no_message(post: Post) -> None:
    post.send(from_agent="maya", priority="P0")
    post.turn("bob")
    post.fabric.tick()
    assert len(_escalated(post)) == 1
    assert post.fabric.mail_inbox(agent="maya").unread == 0


def test_mail_to_all_waits_for_each(post: Post) -> None:
    post.send(to="cyd", subject="so that cyd is known")
    sent = post.send(to="all", priority="P0")
    post.fabric.mail_ack(sent, agent="bob", reason="read")
    post.turn("bob")
    assert post.fabric.mail_list().overdue == ()
    post.turn("cyd")
    assert [(one.message_id, one.agent) for one in post.fabric.mail_list().overdue] == [(sent, "cyd")]


@requirement("comms.mailbox.turn-trigger")
def test_a_turn_begins_with_its_mail_and_acknowledges_nothing(post: Post) -> None:
    from aof.runs.brief import prime  # noqa: PLC0415 - only here

    sent = post.send(subject="Which port?", body="Tell me.")
    text = prime(post.fabric, "bob")
    assert sent in text
    assert "Tell me." in text
    assert "Which port?" not in prime(post.fabric, "cyd")
    post.fabric.tick()
    post.fabric.mail_list()
    assert post.fabric.mail_show(sent).status == "unread"
    began = [event.payload["agent"] for event in post.fabric.store.events() if event.type == mail_rules.TURN_BEGAN]
    assert began == ["bob", "cyd"]


@requirement("comms.validate.turn-end")
def test_the_end_of_a_turn_lists_what_is_left_to_do(post: Post) -> None:
    unread = post.send()
    own = post.send(from_agent="bob", to="cyd")
    post.fabric.mail_action(own, agent="cyd", reason="done")
    left = post.fabric.turn_ended("bob", "test")
    assert (left.unread, left.to_close) == ((unread,), (own,))
    report = post.fabric.mail_check(turn_end=True, agent="bob")
    assert (report.ok, [one.code for one in report.problems]) == (False, ["turn_unclosed", "turn_unread"])
    post.fabric.mail_ack(unread, agent="bob", reason="read")
    post.fabric.mail_close(own, agent="bob", disposition="resolved", reason="thanks")
    assert post.fabric.turn_ended("bob", "test").unread == ()
    assert post.fabric.mail_check(turn_end=True, agent="bob").ok


def test_without_a_mailbox_turns_leave_no_trace(post: Post) -> None:
    post.turn("bob")
    assert list(post.fabric.store.events()) == []


@requirement("comms.sla.escalation")
def test_an_escalation_is_an_entry_of_the_worklog(post: Post) -> None:
    sent = post.send(priority="P0", subject="Port?")
    post.turn("bob")
    for _ in range(3):
        post.fabric.tick()
    entries = [one for one in post.fabric.worklog_show().entries if one["event_type"] == "escalation.requested"]
    assert len(entries) == 1
    text = post.text("WORKLOG.md")
    assert text.count(f"Escalated: {sent} — Port? — receiver did not ack within P0 window") == 1
