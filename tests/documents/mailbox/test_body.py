"""Bodies inside of cards: whatever they say, they stay one body."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aof.documents import mail_cards, mailbox
from aof.documents.mail_cards import contained_body, original_body, trimmed_body
from aof.documents.mail_rules import Ack, StatusChange
from aof.documents.mailbox import Mailbox
from aof.documents.markdown import plain_text
from tests.support.mail import AT, POLICY, cards, message, objections
from tests.support.requirements import requirement

_HOSTILE = [
    "### MSG-20260221-999",
    "   ### MSG-20260221-999",
    "\t### MSG-20260221-999",
    "\u3000### MSG-20260221-999",
    "## Closed Summary",
    "## Active Messages (Newest First)",
    "**Status:** closed",
    "    **Status:** closed",
    "**Ack:** bob — 2026-02-21 — read",
    "**Ack**",
    "| Field | Value |",
    "---",
    "\t---",
    "\u3000---",
    "***",
    "\\### already escaped",
    "\\\\**twice**",
    "<!-- the rest is hidden",
    "-->",
    "```",
    "````text",
    "~~~",
    "| Status | closed |",
    "plain",
    "",
    "  indented",
]
_lines = st.lists(st.sampled_from(_HOSTILE) | st.text(max_size=30), max_size=12)


@given(_lines)
def test_a_body_comes_back_as_it_was_given(lines: list[str]) -> None:
    body = plain_text("\n".join(lines))
    assert original_body(contained_body(body)) == body


@given(_lines)
def test_a_card_with_any_body_is_one_card_with_that_body(lines: list[str]) -> None:
    body = trimmed_body(plain_text("\n".join(lines)))
    before = mailbox.with_message(mailbox.new_mailbox("Mailbox — x"), message(1), POLICY)
    after = mailbox.with_message(before, message(2, body=body), POLICY)
    box = Mailbox(after)
    assert [place.title for place in box.outline.cards] == ["MSG-20260221-002", "MSG-20260221-001"]
    assert box.card(box.outline.cards[0]).message == message(2, body=body)
    ack = Ack("bob", AT, "read")
    answered = Mailbox(
        mailbox.with_change(after, "MSG-20260221-002", StatusChange("acknowledged", "read"), ack, POLICY)
    )
    assert answered.card(answered.outline.cards[0]).message.body == body
    assert box.card(box.outline.cards[1]).message == message(1)
    assert not box.closed_ids


@requirement("comms.mailbox.forged-text")
@pytest.mark.parametrize("fenced", [False, True])
@pytest.mark.parametrize(
    "line", ["### MSG-20260221-009", "## Closed Summary", "**Status:** closed", "**Ack:** b — c — d"]
)
def test_a_line_of_a_body_that_looks_like_structure_is_none(line: str, *, fenced: bool) -> None:
    body = f"before\n\n```\n{line}\n```\n\nafter" if fenced else f"before\n{line}\nafter"
    before = mailbox.with_message(mailbox.new_mailbox("Mailbox — x"), message(1), POLICY)
    after = mailbox.with_message(before, message(2, body=body), POLICY)
    box = Mailbox(after)
    assert [head.status for head in box.heads] == ["unread", "unread"]
    assert box.card(box.outline.cards[0]).message.body == body
    assert [section.name for section in box.outline.sections] == [
        section.name for section in Mailbox(before).outline.sections
    ]
    if not fenced:
        assert objections(after) == []
        assert len(cards(after)) == 2
        assert cards(after)[0]["Status"] == "unread"


@requirement("comms.mailbox.forged-text")
def test_a_subject_that_looks_like_structure_is_only_a_subject() -> None:
    for subject in ("### MSG-20260221-009", "**Status:** closed", "a | b | c", "## Closed Summary"):
        text = mailbox.with_message(mailbox.new_mailbox("Mailbox — x"), message(1, subject=subject), POLICY)
        assert Mailbox(text).heads == (message(1, subject=subject, body=""),)
        assert objections(text) == []


def test_a_body_of_many_open_fences_costs_no_more_than_its_length() -> None:
    body = "```a\n" * 12_000
    began = time.process_time()
    assert original_body(contained_body(body)) == body.strip("\n")
    assert time.process_time() - began < 20  # it was minutes when each fence looked for its end anew


def test_a_card_in_our_own_form_is_read_alike_in_both_ways() -> None:
    text = mailbox.render(message(1, body=""))
    assert mail_cards.read_card_quickly(text) == mail_cards.read_card(text).message
