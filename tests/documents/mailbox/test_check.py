"""What the check of a mailbox finds, each with its line; and what it says of what AOF wrote: nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aof.documents import mailbox
from aof.documents.mail_rules import Ack, StatusChange
from aof.documents.mailbox import problems
from aof.kernel.findings import DocumentFinding
from tests.support.mail import AT, POLICY, message, objections
from tests.support.requirements import requirement

_ID = "MSG-20260221-001"
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
