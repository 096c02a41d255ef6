"""The file: its layout, and that a change touches only the lines that it must."""

from __future__ import annotations

import difflib

from hypothesis import given
from hypothesis import strategies as st

from aof.documents import mailbox
from aof.documents.mail_rules import Ack, StatusChange
from aof.documents.mailbox import Mailbox, problems
from tests.support.mail import AT, POLICY, message, objections
from tests.support.requirements import requirement

_ID = "MSG-20260221-001"
_ACK = Ack("bob", AT, "read")
_HAND = """# Our mail

Some words before.

## Quick Reply

Use short sentences.

## Inbox Snapshot

| Agent | Unread | Oldest unread | Needs response by |
|-------|--------|---------------|-------------------|
| bob   | 1      | MSG-20260221-001 | none |

## Open Queue (Newest First)

| ID | From -> To | Priority | Subject |
|----|------------|----------|---------|
| MSG-20260221-001 | ada -> bob | P2 | By hand |

## Active Messages (Newest First)

### MSG-20260221-001

| Field | Value |
|-------|-------|
| Date | 2026-02-21 |
| From | ada |
| To | bob |
| Type | request |
| Priority | P2 |
| Related | none |
| Closure owner | ada |
| Review scope | none |
| Response needed by | none |
| Status | new |
| Subject | By hand |

Summary:
- one point
- another point

## Closed Summary (Newest First)

| ID | Date | From -> To | Final status | Outcome |
|----|------|------------|--------------|---------|
| MSG-20260220-001 | 2026-02-20 | bob -> ada | actioned | done |
"""


def _sent(*numbers: int) -> str:
    text = mailbox.new_mailbox("Mailbox — x")
    for number in numbers:
        text = mailbox.with_message(text, message(number), POLICY)
    return text


def _changed(before: str, after: str) -> list[str]:
    found = difflib.ndiff(before.splitlines(), after.splitlines())
    return [line for line in found if line[0] in "+-"]


@requirement("comms.mailbox.layout")
def test_a_new_mailbox_has_its_four_sections_and_tables() -> None:
    lines = mailbox.new_mailbox("Mailbox — x").split("\n")
    assert [line for line in lines if line.startswith(("#", "| A", "| I"))] == [
        "# Mailbox — x",
        "## Inbox Snapshot",
        "| Agent | Unread | Oldest unread | Needs response by |",
        "## Open Queue (Newest First)",
        "| ID | From -> To | Priority | Subject |",
        "## Active Messages (Newest First)",
        "## Closed Summary",
        "| ID | Date | From -> To | Final status | Outcome |",
    ]


@requirement("comms.mailbox.layout", "comms.lifecycle.statuses")
def test_a_mailbox_by_hand_is_read_and_keeps_everything_else() -> None:
    box = Mailbox(_HAND)
    assert [head.status for head in box.heads] == ["unread"]
    assert box.closed_ids == ("MSG-20260220-001",)
    after = mailbox.with_message(_HAND, message(2), POLICY)
    assert [line for line in _changed(_HAND, after) if line[0] == "-"] == [
        "- | bob   | 1      | MSG-20260221-001 | none |",
        "- | Status | new |",
    ]
    assert "## Quick Reply\n\nUse short sentences." in after
    assert "## Closed Summary (Newest First)" in after
    assert "| Status | unread |" in after
    assert "| bob | 2 | MSG-20260221-001 | next session |" in after


@requirement("comms.mailbox.newest-first")
def test_cards_and_queue_are_newest_first_with_a_line_between_cards() -> None:
    text = _sent(1, 2, 3)
    ids = ["MSG-20260221-003", "MSG-20260221-002", "MSG-20260221-001"]
    assert [head.message_id for head in Mailbox(text).heads] == ids
    queue = Mailbox(text).table("Open Queue (Newest First)")
    assert queue is not None
    assert [row.cells[0] for row in queue.rows] == ids
    active = text.partition("## Active Messages")[2].partition("## Closed")[0]
    assert [line for line in active.split("\n") if line.startswith(("---", "###"))] == [
        f"### {ids[0]}", "---", f"### {ids[1]}", "---", f"### {ids[2]}",
    ]  # fmt: skip


@requirement("comms.mailbox.inbox-snapshot")
def test_the_snapshot_counts_what_each_agent_has_not_acknowledged() -> None:
    text = _sent(1, 2)
    assert "| bob | 2 | MSG-20260221-001 | next session |" in text
    for number in (1, 2):
        text = mailbox.with_change(text, f"MSG-20260221-00{number}", StatusChange("acknowledged", "read"), _ACK, POLICY)
    assert "| bob | 0 | none | none |" in text
    both = mailbox.with_message(_sent(1), message(2, receiver="cyd"), POLICY)
    both = mailbox.with_message(both, message(3, receiver="all"), POLICY)
    assert "| bob | 2 | MSG-20260221-001 |" in both
    assert "| cyd | 2 | MSG-20260221-002 |" in both
    assert "| maya | 1 | MSG-20260221-003 |" in both
    assert "| ada | 0 | none | none |" in both


@requirement("comms.mailbox.inbox-snapshot")
def test_one_of_many_receivers_answers_for_itself_only() -> None:
    text = mailbox.with_message(_sent(1), message(2, receiver="all"), POLICY)
    after = mailbox.with_change(text, "MSG-20260221-002", StatusChange("unread", "read"), _ACK, POLICY)
    assert "| bob | 1 | MSG-20260221-001 |" in after
    assert "| maya | 1 | MSG-20260221-002 |" in after


@requirement("comms.mailbox.fixed-text")
def test_a_change_of_status_changes_the_status_and_adds_a_line() -> None:
    text = _sent(1)
    once = mailbox.with_change(text, _ID, StatusChange("acknowledged", "read"), _ACK, POLICY)
    twice = mailbox.with_change(once, _ID, StatusChange("actioned", "done"), Ack("bob", AT, "done"), POLICY)
    card = [line for line in _changed(text, twice) if not line[2:].startswith("|")]
    assert card == [
        "- **Status:** unread",
        "+ **Status:** actioned",
        f"+ **Ack:** bob — {AT} — read",
        f"+ **Ack:** bob — {AT} — done",
        "+ ",
    ]


def test_a_windows_file_keeps_its_line_ends() -> None:
    text = _HAND.replace("\n", "\r\n")
    after = mailbox.with_message(text, message(2, body="two\nlines"), POLICY)
    after = mailbox.with_change(after, _ID, StatusChange("acknowledged", "read"), _ACK, POLICY)
    after, archived = mailbox.without_card(
        after,
        "MSG-20260221-002",
        StatusChange("closed", "x", "resolved"),
        Ack("ada", AT, "Closed (resolved): x"),
        POLICY,
    )
    assert after.count("\n") == after.count("\r\n")
    assert archived.count("\n") == archived.count("\r\n")
    assert [problem.code for problem in problems(after, POLICY)] == []


@requirement("comms.lifecycle.archive-on-close")
def test_a_closed_card_leaves_the_active_ones_whole() -> None:
    text = _sent(1, 2, 3)
    for number in (2, 3, 1):
        one = f"MSG-20260221-00{number}"
        ack = Ack("ada", AT, "Closed (resolved): thanks")
        text, archived = mailbox.without_card(text, one, StatusChange("closed", "thanks", "resolved"), ack, POLICY)
        assert one not in [head.message_id for head in Mailbox(text).heads]
        assert text.count(one) == 1
        assert f"| {one} | 2026-02-21 | ada -> bob | resolved | thanks |" in text
        assert "Please look at this." in archived
        assert archived.endswith(f"**Ack:** ada — {AT} — Closed (resolved): thanks\n")
        assert objections(text) == []
    assert Mailbox(text).heads == ()
    assert "---\n" not in text.partition("## Active")[2].partition("## Closed")[0]


def test_a_mailbox_without_its_sections_gets_them_and_keeps_the_rest() -> None:
    text = mailbox.complete("# Notes\n\nmine\n", "Mailbox — x")
    after = mailbox.with_message(text, message(1), POLICY)
    assert after.startswith("# Notes\n\nmine\n")
    assert objections(after) == []


_pieces = st.sampled_from(
    [*_HAND.split("\n"), *mailbox.render(message(7)).split("\n"), "```", "<!--", "\tx", "|||", "|"]
)


@given(st.lists(_pieces, max_size=60), st.sampled_from(["\n", "\r\n"]))
def test_no_file_by_hand_breaks_reading_and_no_line_of_it_is_lost(lines: list[str], eol: str) -> None:
    text = eol.join(lines)
    problems(text, POLICY)
    before = mailbox.complete(text, "Mailbox — x")
    assert before.startswith(text.rstrip("\r\n")) or not text.strip()
    after = mailbox.with_message(before, message(1000), POLICY)
    kept = {line for line in before.split("\n") if not line.strip().startswith("|") and "tatus" not in line}
    assert kept - set(after.split("\n")) <= {"", "\r"}
    assert any(head.message_id == "MSG-20260221-1000" for head in Mailbox(after).heads)
    assert all(place.title.startswith("MSG") for place in Mailbox(before).outline.cards)


@given(st.lists(st.tuples(st.sampled_from(["send", "ack", "action", "close"]), st.integers(0, 20)), max_size=25))
def test_after_every_step_the_tables_say_what_the_cards_say(steps: list[tuple[str, int]]) -> None:
    text, number = mailbox.new_mailbox("Mailbox — x"), 0
    for what, which in steps:
        there = [head.message_id for head in Mailbox(text).heads]
        if what == "send":
            number += 1
            text = mailbox.with_message(text, message(number, receiver="bob" if which % 2 else "cyd"), POLICY)
        elif there and what == "close":
            ack = Ack("ada", AT, "Closed (resolved): x")
            text, _ = mailbox.without_card(
                text, there[which % len(there)], StatusChange("closed", "x", "resolved"), ack, POLICY
            )
        elif there:
            status = "acknowledged" if what == "ack" else "actioned"
            text = mailbox.with_change(text, there[which % len(there)], StatusChange(status, "x"), _ACK, POLICY)
        assert objections(text) == []
        assert problems(text, POLICY) == []
