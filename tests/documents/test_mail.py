"""Mail from sending to the archive, on every store."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from aof.api.fabric import Fabric
from aof.documents import mail_rules
from aof.errors import AofError
from aof.kernel.model import Policy
from aof.store.files.store import FilesystemStore
from aof.store.port import Scope
from aof.testing import FakeClock, memory_fabric
from tests.support.mail import objections
from tests.support.requirements import requirement
from tests.support.team import chart_of

# --- A team that leaves mail for each other: in memory and on disk, on a clock that only the test moves


class Post:
    """A fabric whose caller is the maintainer, and the mailbox as a text."""

    def __init__(self, fabric: Fabric, clock: FakeClock, root: Path | None) -> None:
        self.fabric = fabric
        self.clock = clock
        self.root = root

    def text(self, path: str = mail_rules.PATH) -> str:
        """A file as it lies there."""
        with self.fabric.store.unit(Scope()) as unit:
            return unit.document(path)

    def write(self, text: str, path: str = mail_rules.PATH) -> None:
        """What a person saves."""
        if self.root is not None:
            (self.root / path).write_text(text, newline="")
        else:
            kept = self.fabric.store._state  # type: ignore[attr-defined]
            kept.texts[path] = (text, kept.texts.get(path, ("", 0))[1] + 1)

    def send(self, **given: Any) -> str:
        """A message from ada to bob."""
        defaults: dict[str, Any] = {"from_agent": "ada", "to": "bob", "subject": "Question"}
        return self.fabric.mail_send(**(defaults | given)).message_id

    def turn(self, agent: str) -> None:
        """A whole turn of an agent."""
        self.fabric.turn_began(agent, "test")
        self.fabric.turn_ended(agent, "test")

    def refused(self, call: Callable[..., object], *given: Any, **named: Any) -> AofError:
        """The refusal of a call, which changes no byte."""
        before = self.text()
        with pytest.raises(AofError) as caught:
            call(*given, **named)
        assert self.text() == before
        return caught.value

    def codes(self, **given: Any) -> list[str]:
        """What the check finds."""
        return [one.code for one in self.fabric.mail_check(**given).problems]


@pytest.fixture(params=["memory", "filesystem"])
def post(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Post]:
    """A mailbox of a team: maya maintains, ada, bob and cyd work."""
    clock = FakeClock()
    policy = Policy(maintainers=("maya",), project="demo")
    if request.param == "memory":
        yield Post(memory_fabric("maya", clock, policy), clock, None)
        return
    root = tmp_path / ".aof"
    FilesystemStore.create(str(root))
    with Fabric(FilesystemStore(str(root), clock), clock, policy, "maya") as fabric:
        yield Post(fabric, clock, root)


# --- mail from sending to the archive, on every store


def _changed(before: str, after: str) -> list[str]:
    return [line for line in difflib.ndiff(before.splitlines(), after.splitlines()) if line[0] in "+-"]


@requirement("comms.channel.mailbox-optional")
def test_the_first_message_makes_the_mailbox(post: Post) -> None:
    assert post.text() == ""
    assert post.fabric.mail_inbox(agent="bob").messages == ()
    assert post.fabric.mail_list().total == 0
    assert post.text() == ""
    post.send()
    text = post.text()
    assert text.startswith("# Mailbox — demo\n\n## Inbox Snapshot\n")
    assert text.count("### MSG-") == 1
    assert objections(text) == []


@requirement("comms.message.id")
def test_a_number_is_never_used_again(post: Post) -> None:
    first = post.send()
    post.fabric.mail_close(first, agent="ada", disposition="withdrawn", reason="never mind")
    assert post.send() == first.replace("-001", "-002")
    post.clock.sleep(9 * 86_400)
    assert post.fabric.mail_archive().message_ids == (first,)
    assert first not in post.text()
    post.write(post.text().replace("-002", "-999"))
    post.clock.set("2026-01-05T10:00:00Z")
    assert post.send().endswith("-1000")


@requirement("comms.lifecycle.acknowledge", "comms.lifecycle.action")
def test_only_the_receiver_answers(post: Post) -> None:
    sent = post.send()
    for who in ("ada", "cyd", "maya"):
        assert post.refused(post.fabric.mail_ack, sent, agent=who, reason="read").code == "not_receiver"
    answered = post.fabric.mail_ack(sent, agent="bob", reason="read")
    assert (answered.status, len(answered.acks)) == ("acknowledged", 1)
    assert "| bob | 0 | none | none |" in post.text()
    post.fabric.mail_action(sent, agent="bob", reason="done")
    assert f"| {sent} | ada -> bob |" in post.text()


@requirement("comms.mailbox.fixed-text")
def test_a_change_by_hand_of_what_was_sent_is_found(post: Post) -> None:
    sent = post.send(body="Please.")
    before = post.text()
    post.fabric.mail_ack(sent, agent="bob", reason="read")
    post.fabric.mail_action(sent, agent="bob", reason="done")
    changed = [line for line in _changed(before, post.text()) if not line[2:].startswith("|")]
    assert [line[:14] for line in changed if line.strip("+- ")] == [
        "- **Status:** ", "+ **Status:** ", "+ **Ack:** bob", "+ **Ack:** bob",
    ]  # fmt: skip
    assert post.fabric.mail_check().ok
    post.write(post.text().replace("Please.", "Please pay me."))
    report = post.fabric.mail_check()
    assert not report.ok
    assert [(one.code, sent in one.detail) for one in report.problems] == [("changed_text", True)]
    assert post.fabric.mail_show(sent).body == "Please."
    assert "Please pay me." not in post.text()
    assert "Please pay me." in post.text("MAILBOX_EDITS.md")
    assert not post.fabric.mail_check().ok, "until somebody settles it"
    post.write(post.text("MAILBOX_EDITS.md").partition("\n## ")[0], "MAILBOX_EDITS.md")
    assert post.fabric.mail_check().ok


@requirement("comms.mailbox.no-private")
def test_everybody_reads_every_message(post: Post) -> None:
    sent = post.send(body="Between us.")
    for who in ("maya", "cyd"):
        seen = post.fabric.as_actor(who).mail_list().messages
        assert [(one.message_id, one.body) for one in seen] == [(sent, "Between us.")]
    assert post.fabric.mail_list(agent="cyd").total == 0


@requirement("comms.lifecycle.archive-on-close")
def test_a_closed_message_is_in_the_archive_and_in_the_summary(post: Post) -> None:
    first, second = post.send(body="One."), post.send(body="Two.")
    for sent in (second, first):
        closed = post.fabric.mail_close(sent, agent="ada", disposition="resolved", reason="thanks")
        assert (closed.status, closed.disposition) == ("closed", "resolved")
        assert closed.acks[-1].reason == "Closed (resolved): thanks"
    archive = post.text(mail_rules.ARCHIVE)
    assert archive.index(second) < archive.index(first)
    assert "One." in archive
    assert post.text().count(first) == 1
    assert f"| {first} | 2026-01-05 | ada -> bob | resolved | thanks |" in post.text()
    assert post.fabric.mail_check().problems == ()
    again = post.fabric.mail_close(first, agent="ada", disposition="resolved", reason="again")
    assert len(again.acks) == 1
    assert post.refused(post.fabric.mail_ack, first, agent="bob", reason="late").code == "message_closed"


@requirement("comms.lifecycle.dispositions", "comms.sla.no-duty")
def test_a_maintainer_abandons_what_stayed_unanswered_after_an_escalation(post: Post) -> None:
    sent = post.send(priority="P2")
    assert post.refused(post.fabric.mail_close, sent, agent="maya", disposition="abandoned", reason="silence").code == (
        "status_not_allowed"
    )
    post.turn("bob")
    assert post.fabric.tick().actions == ()
    post.fabric.mail_escalate(sent, agent="ada", reason="no answer")
    post.turn("bob")
    assert post.refused(post.fabric.mail_close, sent, agent="maya", disposition="abandoned", reason="silence").code == (
        "status_not_allowed"
    )
    post.turn("bob")
    closed = post.fabric.mail_close(sent, agent="maya", disposition="abandoned", reason="silence")
    assert closed.disposition == "abandoned"
    other = post.send()
    deferred = post.fabric.mail_close(other, agent="maya", disposition="deferred", reason="after the release")
    assert (deferred.status, deferred.acks[-1].reason) == ("unread", "Deferred: after the release")
    assert f"| {other} | ada -> bob |" in post.text()


@requirement("comms.lifecycle.block-and-resume")
def test_a_blocked_message_says_what_it_waits_for(post: Post) -> None:
    sent = post.send()
    assert post.refused(post.fabric.mail_block, sent, agent="bob", reason="x").code == "status_not_allowed"
    post.fabric.mail_ack(sent, agent="bob", reason="read")
    blocked = post.fabric.mail_block(sent, agent="bob", reason="waits for the port")
    assert (blocked.status, blocked.acks[-1].reason) == ("blocked", "waits for the port")
    resumed = post.fabric.mail_ack(sent, agent="bob", reason="the port is known")
    assert (resumed.status, len(resumed.acks)) == ("acknowledged", 3)


@requirement("comms.message.table-card", "comms.lifecycle.statuses")
def test_a_card_that_a_person_wrote_is_answered_like_any_other(post: Post) -> None:
    post.send(subject="First")
    table = """### MSG-20260105-007

| Field | Value |
|-------|-------|
| Date | 2026-01-05 |
| From | cyd |
| To | bob |
| Type | request |
| Priority | P1 |
| Status | new |
| Subject | By hand |

Summary:
- one
"""
    post.write(post.text().replace("### MSG-20260105-001", f"{table}\n---\n\n### MSG-20260105-001"))
    assert [one.subject for one in post.fabric.mail_inbox(agent="bob").messages] == ["By hand", "First"]
    post.fabric.mail_ack("MSG-20260105-007", agent="bob", reason="read")
    text = post.text()
    assert "| Status | acknowledged |" in text
    assert "**Ack:** bob — 2026-01-05T09:00:00.000Z — read" in text
    assert "| MSG-20260105-007 | cyd -> bob | P1 | By hand |" in text
    report = post.fabric.mail_check()
    assert report.ok
    assert [one.code for one in report.problems] == ["not_in_log"]
    assert post.send().endswith("-008")


@requirement("comms.message.echo-and-resend", "comms.message.payload-cap", "comms.message.payload-first")
def test_a_payload_is_sent_with_its_token_and_answered_with_it(post: Post) -> None:
    review = {"review_scope": "full", "files": ["a.py"], "topic": "login"}
    assert post.refused(post.send, review_scope="full", body="see a.py").code == "malformed_payload"
    assert post.refused(post.send, payload="x\n" * 302, **review).code == "malformed_payload"
    sent = post.send(payload="new text\n", **review)
    body = post.fabric.mail_show(sent).body
    token = next(line.partition(": ")[2] for line in body.split("\n") if line.startswith("Revision: "))
    assert token.startswith("REV-20260105-login-01-h")
    assert post.refused(post.fabric.mail_ack, sent, agent="bob", reason="good").code == "revision_mismatch"
    post.fabric.mail_ack(sent, agent="bob", reason="good", revision=token)
    assert f"{token} — good" in post.text()
    first, third = (post.send(payload=f"{number}\n", part=f"{number}/3", **review) for number in (1, 3))
    token = next(
        line.partition(": ")[2] for line in post.fabric.mail_show(first).body.split("\n") if line.startswith("Revision")
    )
    missing = post.refused(post.fabric.mail_ack, first, agent="bob", reason="good", revision=token)
    assert (missing.code, "part 2 of 3" in missing.message) == ("missing_part", True)
    assert post.fabric.mail_show(third).status == "unread"
    assert post.fabric.mail_check().problems == ()


@requirement("comms.message.echo-and-resend", "comms.message.revision-token")
def test_a_payload_that_is_malformed_twice_is_escalated_once(post: Post) -> None:
    review = {"review_scope": "full", "files": ["a.py"], "topic": "login", "payload": "right\n"}
    for number in (1, 2):
        sent = post.send(**review)
        post.write(post.text().replace("right", "wrong"))
        assert "changed_text" in post.codes()
        post.fabric.mail_ack(sent, agent="bob", reason="needs-resend: the token does not fit")
        told = [event for event in post.fabric.store.events() if event.type == mail_rules.ESCALATED]
        assert len(told) == number - 1
    notices = post.fabric.mail_list(to="maya").messages
    assert len(notices) == 1
    assert "REV-20260105-login-01" in notices[0].body
    assert "REV-20260105-login-01" in told[0].payload["text"]


@requirement("comms.mailbox.projection")
def test_the_mailbox_as_json_follows_from_the_file_and_never_leads(post: Post) -> None:
    import json  # noqa: PLC0415 - only here

    sent = post.send(body="- one\n- two", related="TASK-2026-01-05-001")
    said = post.fabric.mail_export()
    assert said["format_version"] == "mailbox-compact-v1"
    assert said["inbox_snapshot"][0] == {
        "agent": "bob", "unread": 1, "oldest_unread": sent, "needs_response_by": "none",
    }  # fmt: skip
    assert [row["id"] for row in said["open_queue"]] == [sent]
    assert said["open_queue"][0]["from_to"] == "ada -> bob"
    assert said["active_messages"][0]["fields"]["related"] == "TASK-2026-01-05-001"
    assert said["active_messages"][0]["summary"] == ["one", "two"]
    post.write(json.dumps(said), "MAILBOX.json")
    assert post.codes() == []
    post.write(json.dumps(said | {"open_queue": []}), "MAILBOX.json")
    assert post.codes() == ["stale_projection"]
    assert post.fabric.mail_list().total == 1
    assert post.fabric.mail_check().ok


@requirement("comms.message.ack-line", "comms.validate.report")
def test_an_answer_that_nobody_gave_through_aof_is_reported_by_line(post: Post) -> None:
    sent = post.send()
    whole = post.text()
    post.write(whole.replace("**Status:** unread", "**Status:** acknowledged"))
    assert post.codes() == ["changed_text"]
    assert post.fabric.mail_show(sent).status == "unread"
    forged = "Response needed by:** none\n\n**Ack:** cyd — 2026-01-05 — read\n"
    post.write(whole.rstrip("\n").replace("Response needed by:** none\n", forged))
    assert post.fabric.mail_show(sent).acks == ()
    assert "cyd — 2026-01-05" in post.text("MAILBOX_EDITS.md")
    report = post.fabric.mail_check()
    assert {(one.code, one.severity, sent in one.detail) for one in report.problems} == {
        ("changed_text", "error", True)
    }
    post.write(whole.replace("Response needed by:** none\n", forged.replace("cyd", "bob")))
    assert [one.actor for one in post.fabric.mail_show(sent).acks] == ["bob"], "where nobody is bound, a person's word"


def test_where_callers_are_bound_nobody_answers_for_another() -> None:
    fabric = memory_fabric("maya", policy=Policy(maintainers=("maya",), strict=True))
    post = Post(fabric, FakeClock(), None)
    sent = post.send()
    mallory = fabric.as_actor("mallory")
    assert post.refused(mallory.mail_ack, sent, agent="bob", reason="read").code == "actor_mismatch"
    assert post.refused(mallory.mail_send, "cyd", "x", from_agent="bob").code == "actor_mismatch"
    fabric.as_actor("bob").mail_ack(sent, reason="read")
    assert fabric.mail_show(sent).status == "acknowledged"
    text = post.text().replace("— read", "— read\n**Ack:** bob — 2026-01-05 — and done")
    post.write(text)
    assert [(one.code, one.severity) for one in fabric.mail_check().problems] == [("changed_text", "error")]
    assert [one.reason for one in fabric.mail_show(sent).acks] == ["read"]


@pytest.mark.parametrize(
    "text", ["", "\x00", "## Active Messages (Newest First)\n### MSG", "| a |\n" * 50, "```\n" * 9]
)
def test_a_damaged_mailbox_is_reported_and_written_to_all_the_same(post: Post, text: str) -> None:
    post.write(text)
    post.fabric.mail_check()
    sent = post.send()
    assert post.fabric.mail_show(sent).subject == "Question"
    assert text.strip("\n\x00") in post.text()


def test_two_cards_with_one_id_are_answered_by_nobody(post: Post) -> None:
    sent = post.send()
    text = post.text()
    card = text[text.index(f"### {sent}") : text.index("## Closed Summary")]
    post.write(text.replace("## Closed Summary", f"---\n\n{card}## Closed Summary"))
    assert "duplicate_id" in post.codes()
    assert post.refused(post.fabric.mail_ack, sent, agent="bob", reason="read").code == "unreadable_message"
    assert post.send() == sent.replace("-001", "-002")


def test_a_mailbox_that_was_deleted_comes_back_from_the_log(post: Post) -> None:
    kept, closed = post.send(subject="Kept"), post.send(subject="Closed")
    post.fabric.mail_ack(kept, agent="bob", reason="read")
    post.fabric.mail_close(closed, agent="ada", disposition="withdrawn", reason="never mind")
    before = post.text()
    post.write("")
    assert [one.status for one in post.fabric.mail_list().messages] == ["acknowledged"]
    assert post.text() == before


@requirement("comms.validate.inbox")
def test_the_doctor_writes_a_wrong_snapshot_again(post: Post) -> None:
    post.send()
    right = post.text()
    wrong = right.replace("| bob | 1 |", "| bob | 0 |")
    post.write(wrong)
    assert "inbox_unread" in [one.code for one in post.fabric.doctor().problems]
    assert post.text() == wrong
    assert "inbox_unread" in [one.code for one in post.fabric.doctor(fix=True).healed]
    assert post.text() == right
    assert post.fabric.mail_check().problems == ()


@requirement("comms.mailbox.inbox-snapshot", "comms.message.card-fields")
def test_mail_to_a_role_counts_for_each_agent_that_has_it() -> None:
    agents = [
        {"id": "ada", "roles": ["dev"]},
        {"id": "bob", "roles": ["reviewer"]},
        {"id": "cyd", "roles": ["reviewer"]},
    ]
    policy = Policy(maintainers=("maya",))
    fabric = memory_fabric("maya", policy=policy, org=chart_of(schemaVersion=1, agents=agents))
    post = Post(fabric, FakeClock(), None)
    sent = post.send(to="role:reviewer", priority="P0")
    assert "| ada | 0 | none | none |" in post.text()
    assert f"| bob | 1 | {sent} | next session |" in post.text()
    assert post.refused(fabric.mail_ack, sent, agent="ada", reason="read").code == "not_receiver"
    assert fabric.mail_ack(sent, agent="bob", reason="read").status == "unread"
    assert "| bob | 0 | none | none |" in post.text()
    assert f"| cyd | 1 | {sent} | next session |" in post.text()
    post.turn("bob")
    assert fabric.tick().actions == ()
    post.turn("cyd")
    assert [one.message_id for one in fabric.tick().actions] == [sent]
    assert fabric.mail_ack(sent, agent="cyd", reason="read").status == "acknowledged"
    assert "bob" in post.refused(post.send, to="bobby").hint


def test_a_receiver_can_still_acknowledge_what_was_marked_so_without_a_line(post: Post) -> None:
    sent = post.send(priority="P0")
    post.write(post.text().replace("**Status:** unread", "**Status:** acknowledged"))
    assert "changed_text" in post.codes()
    assert post.fabric.mail_show(sent).status == "unread"
    post.refused(post.fabric.mail_ack, sent, agent="cyd", reason="mine")
    acknowledged = post.fabric.mail_ack(sent, agent="bob", reason="read it now")
    assert [(one.actor, one.reason) for one in acknowledged.acks] == [("bob", "read it now")]
    assert post.codes() == ["changed_text"], "the edit is not settled"
    before = post.text()
    post.fabric.mail_ack(sent, agent="bob", reason="again")
    assert post.text() == before


# --- turns, response times and escalation


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
