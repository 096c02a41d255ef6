"""The text of a mailbox: its tables and cards, bodies and payloads in them, and what its check finds."""

from __future__ import annotations

import difflib
import hashlib
import time
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aof.documents import mail_cards, mail_rules, mailbox
from aof.documents.mail_cards import contained_body, found_in, original_body, payload_block, trimmed_body
from aof.documents.mail_rules import (
    Ack,
    ReviewPayload,
    StatusChange,
    echo_refusal,
    payload_defects,
    payload_refusal,
    token,
)
from aof.documents.mailbox import Mailbox, problems
from aof.documents.markdown import plain_text
from aof.errors import AofError
from aof.kernel.findings import DocumentFinding
from tests.support.mail import AT, DAY, POLICY, cards, message, objections
from tests.support.requirements import requirement

# --- the file: its layout, and that a change touches only the lines that it must


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


# --- cards in every form that people write them


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


# --- bodies inside of cards: whatever they say, they stay one body


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


# --- payloads for review: their fields, their token, their size and their parts


_CONTENT = "one\ntwo\n"
_ROOT = "REV-20260221-login-01"


def _payload(content: str | None = _CONTENT, **changes: Any) -> ReviewPayload:
    given = ReviewPayload(
        revision=token(_ROOT, content or ""),
        format="full-text",
        scope="full",
        ask="review-only",
        files=("src/login.py",),
        content=content,
    )
    return msgspec.structs.replace(given, **changes)


@requirement("comms.message.payload-first")
def test_a_payload_is_written_and_read_with_its_five_fields_and_a_fence() -> None:
    text = f"Please.\n\n{payload_block(_payload())}\n\nThanks."
    assert found_in(text) == _payload()
    for name in ("Revision", "Format", "Review scope", "Ask", "Files"):
        assert f"{name}:" in text
    assert list(payload_defects(_payload())) == []
    assert found_in("Just words, and src/login.py") is None


@requirement("comms.message.payload-first")
@pytest.mark.parametrize("name", ["revision", "format", "scope", "ask", "files", "content"])
def test_a_missing_field_is_named(name: str) -> None:
    empty: Any = {"files": (), "content": None}.get(name, "")
    said = list(payload_defects(_payload(**{name: empty})))
    word = {"scope": "Review scope", "content": "fenced block"}.get(name, name.capitalize())
    assert any(word in one for one in said)
    paths_only = payload_refusal(None)
    assert isinstance(paths_only, AofError)
    assert "Revision: REV-" in paths_only.hint
    fyi = _payload(None, ask="fyi")
    assert list(payload_defects(fyi)) == []


@requirement("comms.message.revision-token")
def test_the_token_has_the_first_digits_of_the_contents_hash() -> None:
    right = hashlib.sha256(_CONTENT.encode()).hexdigest()[:8]
    assert token(_ROOT, _CONTENT) == f"{_ROOT}-h{right}"
    assert token(_ROOT, _CONTENT.replace("\n", "\r\n")) == f"{_ROOT}-h{right}"
    changed = _payload(content="one\ntwi\n", revision=token(_ROOT, _CONTENT))
    [said] = payload_defects(changed)
    assert right in said
    assert mail_rules.digest_digits("one\ntwi\n") in said
    assert any("form" in one for one in payload_defects(_payload(revision="REV-1")))


@requirement("comms.message.payload-cap")
def test_a_block_that_is_too_large_is_refused_with_the_way_to_split_it() -> None:
    for content in ("x" * 16_384 + "\n", "x\n" * 302):
        whole = _payload(content)
        refused = payload_refusal(whole)
        assert isinstance(refused, AofError)
        assert "-p1ofN" in refused.message
    assert payload_refusal(_payload("x\n" * 300)) is None


@requirement("comms.message.payload-cap")
def test_a_review_waits_for_all_parts() -> None:
    first, second, third = (
        _payload(f"{number}\n", revision=token(_ROOT, f"{number}\n", (number, 3))) for number in (1, 2, 3)
    )
    missing = echo_refusal(first, f"{first.revision} looks good", [third])
    assert isinstance(missing, AofError)
    assert "part 2 of 3" in missing.message
    assert echo_refusal(first, f"{first.revision} looks good", [second, third]) is None
    assert echo_refusal(first, "needs-resend: part 2 is missing", [third]) is None


@requirement("comms.message.echo-and-resend")
def test_an_answer_repeats_the_revision() -> None:
    whole = _payload()
    assert echo_refusal(whole, f"{whole.revision} applied", []) is None
    for reason in ("applied", f"{token(_ROOT, 'other')} applied"):
        refused = echo_refusal(whole, reason, [])
        assert isinstance(refused, AofError)
        assert refused.code == "revision_mismatch"
        assert whole.revision in refused.hint


def test_content_with_fences_of_its_own_stays_inside() -> None:
    content = "```\ncode\n```\n"
    assert found_in(payload_block(_payload(content, revision=token(_ROOT, content)))) == _payload(
        content, revision=token(_ROOT, content)
    )


# --- what the check of a mailbox finds, each with its line; and what it says of what AOF wrote: nothing


_ROW = f"| {_ID} | ada -> bob | P1 | Question 1 |"


def _box(**given: str) -> str:
    return mailbox.with_message(mailbox.new_mailbox("Mailbox — x"), message(1, **given), POLICY)


def _closed() -> str:
    ack = Ack("ada", AT, "Closed (resolved): thanks")
    return mailbox.without_card(_box(), _ID, StatusChange("closed", "thanks", "resolved"), ack, POLICY)[0]


def _only(text: str, archived: frozenset[str] | None = None) -> DocumentFinding:
    (found,) = problems(text, POLICY, archived)
    return found


def _line(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n") + 1


@requirement("comms.validate.ids-and-closed-rows")
def test_ids_that_are_malformed_or_doubled_are_found() -> None:
    text = _box().replace(_ID, "MSG-2026-1")
    assert (_only(text).code, _only(text).line) == ("malformed_id", _line(text, "### MSG"))
    card = mailbox.render(message(1))
    doubled = _box().replace("## Closed Summary", f"---\n\n{card}\n## Closed Summary")
    assert "duplicate_id" in [one.code for one in problems(doubled, POLICY)]
    row = f"| {_ID} | 2026-02-21 | ada -> bob | resolved | thanks |\n"
    twice = _closed() + row
    assert (_only(twice).code, _only(twice).line) == ("duplicate_id", twice.count("\n"))
    assert _ID in _only(_box() + row).detail
    assert _only(_closed(), frozenset()).code == "not_archived"
    assert problems(_closed(), POLICY, frozenset({_ID})) == []


@requirement("comms.validate.ids-and-closed-rows")
@pytest.mark.parametrize(
    ("old", "new", "column"),
    [
        ("| 2026-02-21 |", "|  |", "Date"),
        ("| ada -> bob |", "|  |", "From -> To"),
        ("| resolved |", "|  |", "Final status"),
        ("| thanks |", "|  |", "Outcome"),
        (f"| {_ID} |", "|  |", "ID"),
    ],
)
def test_a_closed_row_without_a_cell_is_an_error_that_names_it(old: str, new: str, column: str) -> None:
    found = _only(_closed().replace(old, new))
    assert (found.code, found.severity) == ("closed_cells", "error")
    assert column in found.detail


@requirement("comms.validate.queue")
def test_queue_and_cards_must_match_both_ways() -> None:
    text = _box()
    unknown = text.replace(_ROW, f"| MSG-20260221-009 | a -> b | P1 | x |\n{_ROW}")
    assert (_only(unknown).code, _only(unknown).line) == ("queue_unknown", _line(unknown, "| MSG-20260221-009"))
    missing = text.replace(f"{_ROW}\n", "")
    assert (_only(missing).code, _ID in _only(missing).detail) == ("queue_missing", True)
    closed = text.replace("**Status:** unread", "**Status:** closed").replace("| bob | 1 |", "| bob | 0 |")
    closed = closed.replace(f"| 0 | {_ID} | next session |", "| 0 | none | none |")
    assert {one.code for one in problems(closed, POLICY)} == {"closed_card", "queue_closed"}
    left = closed.replace(f"{_ROW}\n", "")
    assert _only(left).code == "closed_card"


@requirement("comms.validate.inbox")
def test_a_wrong_snapshot_is_an_error_with_both_values() -> None:
    text = _box().replace("| bob | 1 |", "| bob | 0 |")
    found = _only(text)
    assert (found.code, found.severity, found.line) == ("inbox_unread", "error", _line(text, "| bob |"))
    assert "0" in found.detail
    assert "1" in found.detail
    oldest = _only(_box().replace(f"| 1 | {_ID} |", "| 1 | MSG-20260101-001 |"))
    assert (oldest.code, _ID in oldest.detail) == ("inbox_oldest", True)
    due = _only(_closed().replace("| bob | 0 | none | none |", "| bob | 0 | none | next session |"))
    assert (due.code, due.severity) == ("inbox_due", "warning")


def test_half_edited_tables_and_doubled_sections_are_found_by_line() -> None:
    text = _box()
    half = text.replace(_ROW, f"{_ROW}\n| MSG-2026")
    assert {(one.code, one.line) for one in problems(half, POLICY)} >= {("row_cells", _line(half, "| MSG-2026\n"))}
    twice = text + "\n## Inbox Snapshot\n\n| Agent |\n"
    assert (_only(twice).code, _only(twice).line) == ("duplicate_section", twice.count("\n") - 2)
    assert [one.code for one in problems("", POLICY)] == ["missing_section"] * 4
    merged = text.replace("Please look", "<<<<<<< ours\nPlease look").replace("at this.", "at this.\n>>>>>>> theirs")
    assert [one.code for one in problems(merged, POLICY)] == ["conflict_mark", "conflict_mark"]


@requirement("comms.validate.report")
@given(st.text(max_size=300) | st.binary(max_size=300).map(lambda data: data.decode("utf-8", "surrogateescape")))
def test_no_text_breaks_the_check(text: str) -> None:
    assert isinstance(problems(text, POLICY), list)


_STEPS = st.lists(
    st.tuples(st.sampled_from(["send", "acknowledged", "blocked", "actioned", "close"]), st.integers(0, 9)), max_size=20
)


@requirement("comms.validate.reference-pass")
@given(_STEPS)
def test_what_aof_writes_is_in_order_for_the_protocols_own_rules_after_every_step(steps: list[tuple[str, int]]) -> None:
    text, number = mailbox.new_mailbox("Mailbox — x"), 0
    for what, which in steps:
        there = [head.message_id for head in mailbox.Mailbox(text).heads]
        if what == "send" or not there:
            number += 1
            body = ["", "**Status:** closed", "### MSG-20260221-001", "| a | b |", "---"][which % 5]
            sent = message(number, receiver=["bob", "cyd", "maya"][which % 3], body=body, subject=f"a | {body}".strip())
            text = mailbox.with_message(text, sent, POLICY)
        elif what == "close":
            ack = Ack("ada", AT, "Closed (resolved): a | b")
            text, _ = mailbox.without_card(
                text, there[which % len(there)], StatusChange("closed", "", "resolved"), ack, POLICY
            )
        else:
            text = mailbox.with_change(
                text, there[which % len(there)], StatusChange(what, "r"), Ack("bob", AT, "a | b — c"), POLICY
            )
        assert objections(text) == []
        assert problems(text, POLICY) == []


_BY_HAND = (
    "```",
    "<!-- x",
    "-->",
    "### MSG-20260221-002",
    "### MSG-20260221-003\n\n**From:** cyd -> dan\n**Status:** new",
    "  ### MSG-20260221-004",
    "| MSG-20260221-001 | ada -> bob | P1 | x |",
    "| bob | 7 | none | none |",
    "| all | 7 | none | none |",
    "## Else",
    "",
)
_EDITS = st.tuples(st.integers(0, 10_000), st.sampled_from(_BY_HAND))


@requirement("comms.mailbox.projection")
@given(st.lists(st.tuples(_STEPS, st.none() | _EDITS), max_size=4), st.sampled_from(["\n", "\r\n"]))
def test_a_text_known_from_its_last_change_becomes_what_it_would_if_it_were_read(
    parts: list[tuple[list[tuple[str, int]], tuple[int, str] | None]], eol: str
) -> None:
    text = mailbox.new_mailbox("Mailbox — x").replace("\n", eol)
    for steps, by_hand in parts:
        for what, which in steps:
            changed = _stepped(text, what, which)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(mailbox, "_lately", ())
                patch.setattr(mailbox, "counted", lambda _box, _policy: None)
                assert changed == _stepped(text, what, which)
            known, read = mailbox.opened(changed), Mailbox(changed)
            assert known.sections == read.outline.sections
            assert known.highest_number(DAY) == read.highest_number(DAY)
            assert [known.places(head.message_id) for head in read.heads] == [
                read.places(head.message_id) for head in read.heads
            ]
            text = changed
        if by_hand is not None:
            lines = text.split("\n")
            lines.insert(by_hand[0] % len(lines), by_hand[1])
            text = "\n".join(lines)


def _stepped(text: str, what: str, which: int) -> str:
    """The text after a step with one of its messages; with none, or where nothing else is wanted, one is sent."""
    box = Mailbox(text)
    there = [head.message_id for head in box.heads]
    if what == "send" or not there:
        number = box.highest_number(DAY) + 1
        body = ["", "```\n### MSG-20260221-001\n```", "```", "<!-- said", "### MSG-20260221-001"][which % 5]
        sent = message(number, receiver=["bob", "all", "maya", "maintainer"][which % 4], body=body)
        return mailbox.with_message(mailbox.complete(text, "Mailbox — x"), sent, POLICY)
    one = there[which % len(there)]
    if what == "close":
        change = StatusChange("closed", "", "resolved")
        return mailbox.without_card(text, one, change, Ack("ada", AT, "Closed (resolved): done"), POLICY)[0]
    return mailbox.with_change(text, one, StatusChange(what, "r"), Ack("bob", AT, "a | b"), POLICY)
