"""Cards in every form that people write them."""

from __future__ import annotations

import pytest

from aof.documents import mail_cards, mailbox
from aof.documents.mail_rules import Ack, StatusChange
from tests.support.mail import AT, POLICY, message
from tests.support.requirements import requirement

_TABLE = f"""### MSG-20260221-001

| Field | Value |
|-------|-------|
| Date | {AT} |
| From | ada |
| To | bob |
| Type | request |
| Priority | P1 |
| Related | MSG-20260220-001 |
| Context | the login page |
| Closure owner | ada |
| Review scope | none |
| Response needed by | next session |
| Status | acknowledged |
| Subject | Question 1 |

Summary:
- first
- second

Ack:
- bob — {AT} — read
"""
_SAME = message(
    1,
    status="acknowledged",
    body="- first\n- second",
    acks=(Ack("bob", AT, "read"),),
    fields={"Related": "MSG-20260220-001", "Context": "the login page"},
)


@requirement("comms.message.card-fields")
def test_a_written_card_has_its_bold_lines_in_order() -> None:
    lines = mailbox.render(message(1)).split("\n")
    assert lines[0] == "### MSG-20260221-001"
    assert [line.partition(":** ")[0].strip("*") for line in lines if line.startswith("**")] == [
        "From", "Date", "Type", "Priority", "Status", "Subject", "Closure owner", "Review scope", "Response needed by",
    ]  # fmt: skip
    assert "**From:** ada -> bob" in lines


@requirement("comms.message.card-fields")
def test_a_field_that_somebody_added_survives_an_acknowledgement() -> None:
    text = mailbox.with_message(mailbox.new_mailbox("Mailbox — x"), message(1), POLICY)
    text = text.replace("**Subject:** Question 1", "**Subject:** Question 1\n**Mode:** audit-mirror")
    after = mailbox.with_change(
        text, "MSG-20260221-001", StatusChange("acknowledged", "r"), Ack("bob", AT, "r"), POLICY
    )
    assert "**Mode:** audit-mirror" in after
    assert mailbox.Mailbox(after).heads[0].fields == {"Mode": "audit-mirror"}


@requirement("comms.message.table-card")
def test_a_card_as_a_table_says_the_same_as_one_in_bold_lines() -> None:
    assert mail_cards.read_card(_TABLE).message == _SAME
    assert mail_cards.read_card(mailbox.render(_SAME)).message == _SAME
    arrow = _TABLE.replace("| From | ada |\n| To | bob |", "| From | ada -> bob |")
    assert mail_cards.read_card(arrow).message == _SAME


@requirement("comms.message.table-card")
def test_a_change_keeps_the_form_of_a_table() -> None:
    text = mailbox.new_mailbox("Mailbox — x").replace("## Closed Summary", f"{_TABLE}\n## Closed Summary")
    after = mailbox.with_change(
        text, "MSG-20260221-001", StatusChange("actioned", "done"), Ack("bob", AT, "done"), POLICY
    )
    assert "| Status | actioned |" in after
    assert f"Ack:\n- bob — {AT} — read\n- bob — {AT} — done\n" in after
    found = mailbox.Mailbox(after)
    assert [ack.reason for ack in found.card(found.outline.cards[0]).message.acks] == ["read", "done"]


@requirement("comms.message.ack-line")
@pytest.mark.parametrize(
    "line",
    [
        f"**Ack:** bob — {AT} — read it",
        f"**Ack:** bob | {AT} | read it",
        f"**Ack (bob):** {AT} — read it",
        f"**Ack:**\n- bob — {AT} — read it",
        f"**Ack**\n- bob | {AT} | read it",
    ],
)
def test_every_spelling_of_an_acknowledgement_says_the_same(line: str) -> None:
    text = f"{mailbox.render(message(1, status='acknowledged'))}\n{line}\n"
    assert mail_cards.read_card(text).message.acks == (Ack("bob", AT, "read it"),)
    assert mail_cards.read_card(text).message.body == "Please look at this."


@requirement("comms.lifecycle.statuses")
@pytest.mark.parametrize(
    ("said", "status", "disposition"),
    [
        ("new", "unread", None),
        ("Unread", "unread", None),
        ("resolved", "closed", "resolved"),
        ("closed (abandoned)", "closed", "abandoned"),
    ],
)
def test_a_status_is_read_as_what_it_means(said: str, status: str, disposition: str | None) -> None:
    found = mail_cards.read_card(
        mailbox.render(message(1)).replace("**Status:** unread", f"**Status:** {said}")
    ).message
    assert (found.status, found.disposition) == (status, disposition)


def test_two_status_lines_and_an_unknown_one_are_reported_by_their_lines() -> None:
    text = mailbox.render(message(1)).replace("**Status:** unread", "**Status:** unread\n**Status:** closed")
    found = mail_cards.read_card(text)
    assert found.message.status == "unread"
    assert [(problem.line, problem.code) for problem in found.problems] == [(7, "duplicate_field")]
    odd = mail_cards.read_card(mailbox.render(message(1)).replace("**Status:** unread", "**Status:** pending"))
    assert [(problem.line, problem.code) for problem in odd.problems] == [(6, "unknown_status")]
