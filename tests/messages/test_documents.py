"""Several messages in one text."""

from __future__ import annotations

import json

import pytest

from aof.messages.protocol import messages_in
from tests.support.messages import prefixed, report, update

ONE, TWO = report(), update(progress="x")


@pytest.mark.parametrize(
    "text",
    [
        json.dumps([ONE, TWO]),
        json.dumps([ONE, TWO], indent=2),
        f"{json.dumps(ONE)}\n{json.dumps(TWO)}\n",
        f"{json.dumps(ONE, indent=2)}\n\n{json.dumps(TWO, indent=2)}",
        json.dumps(ONE) + json.dumps(TWO),
    ],
)
def test_json_in_any_layout_is_read(text: str) -> None:
    assert messages_in(text) == [ONE, TWO]


def test_a_text_that_is_not_all_json_is_read_by_lines() -> None:
    text = f"hello\n{json.dumps(ONE)}\n\n{prefixed(TWO)}\n{{broken\n"
    assert messages_in(text) == ["hello", json.dumps(ONE), prefixed(TWO), "{broken"]
    assert messages_in(f"{prefixed(ONE)}\n{prefixed(TWO)}") == [prefixed(ONE), prefixed(TWO)]


def test_a_byte_order_mark_is_no_part_of_the_first_message() -> None:
    assert messages_in(f"\ufeff{json.dumps(ONE)}\n{json.dumps(TWO)}\n") == [ONE, TWO]
    assert messages_in(f"\ufeff{prefixed(ONE)}\r\n{prefixed(TWO)}\r\n") == [prefixed(ONE), prefixed(TWO)]


@pytest.mark.parametrize("separator", ["\x85", "\u2028", "\u2029"])
def test_a_line_ends_where_json_says_so_and_not_inside_a_text(separator: str) -> None:
    wide = f"AOF/1 {json.dumps(update(notes=f'one{separator}AOF/1 two'), ensure_ascii=False)}"
    assert messages_in(f"{prefixed(ONE)}\n{wide}\n") == [prefixed(ONE), wide]


def test_one_prefixed_message_may_be_laid_out_over_lines() -> None:
    text = f"AOF/1 {json.dumps(ONE, indent=2)}\n"
    assert messages_in(text) == [text]


@pytest.mark.parametrize(
    ("text", "found"), [("", []), ("\n \n", []), ("42", [42]), ("[]", []), ("{", ["{"]), ("[" * 9_999, ["[" * 9_999])]
)
def test_anything_else_is_handed_on_as_it_is(text: str, found: list[object]) -> None:
    assert messages_in(text) == found


def test_a_broken_message_over_several_lines_stays_together() -> None:
    broken = json.dumps(ONE, indent=2).replace('"version": 1,', '"version": 1,,')
    assert messages_in(broken) == [broken]
    mixed = f"hello\n{broken}\n{json.dumps(TWO)}\n{{not json\nbye\n{prefixed(TWO)}\n"
    assert messages_in(mixed) == ["hello", broken, json.dumps(TWO), "{not json", "bye", prefixed(TWO)]


def test_a_sound_message_beside_a_broken_one_is_still_read_over_several_lines() -> None:
    sound = json.dumps(ONE, indent=2)
    assert messages_in(f"{sound}\n{sound[:-2]}") == [sound, sound[:-2].rstrip()]


def test_lines_inside_a_broken_list_stay_with_it() -> None:
    broken = json.dumps([ONE, TWO], indent=2)[:-2]
    assert messages_in(broken) == [broken]
