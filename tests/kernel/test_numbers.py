"""Numbers in blocks: the first clone counts from one, any other in a block, and none meets what a merge gave."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aof.kernel.commands import FIRST_AFTER_DERIVED, FIRST_DERIVED, FIRST_OF_BLOCKS, LARGEST, Numbers

_TOKENS = st.binary(min_size=8, max_size=8).map(bytes.hex)
_USED = st.sets(st.integers(min_value=0, max_value=999_999_999), max_size=60)


def test_a_clone_that_is_alone_goes_on_after_any_number_that_it_finds() -> None:
    alone = Numbers()
    assert alone.next(()) == 1
    assert alone.next({0, 3, 417_001}) == 417_002
    assert alone.next({7, LARGEST + 3}) == 8, "a number that leaves no room for others is passed over"
    assert alone.next({7, LARGEST - 1}) == 8


def test_the_first_clone_never_counts_where_others_do() -> None:
    first = Numbers(alone=False)
    assert first.next({3, 417_001, 2_345_678}) == 4
    assert first.next({3, FIRST_AFTER_DERIVED - 1}) == 4
    assert first.next({3, LARGEST - 1}) == 4
    assert first.next({FIRST_OF_BLOCKS - 1}) == FIRST_AFTER_DERIVED
    assert first.next({FIRST_OF_BLOCKS - 1, FIRST_AFTER_DERIVED + 4}) == FIRST_AFTER_DERIVED + 5


def test_another_clone_counts_in_a_block_of_three_digits_and_begins_another_when_it_is_full() -> None:
    clone = Numbers("5e1f00d15e1f00d1")
    begun = clone.next({1, 2, 3})
    assert begun % 1000 == 1
    assert clone.next({begun, begun + 1, 5}) == begun + 2
    full = set(range(begun, begun + 999))
    other = clone.next(full)
    assert other % 1000 == 1
    assert other not in full
    assert clone.next(full | {other}) == other + 1


@given(_TOKENS, _USED)
def test_the_next_number_is_free_has_room_behind_it_and_is_no_derived_one(token: str, used: set[int]) -> None:
    for numbers in (Numbers(token), Numbers(alone=False)):
        following = numbers.next(used)
        assert following not in used
        assert following < LARGEST
        assert not FIRST_DERIVED <= following < FIRST_AFTER_DERIVED
        assert numbers.room(following - 1) >= 1
        assert (FIRST_OF_BLOCKS <= following < FIRST_DERIVED) == bool(numbers.clone)


@given(_TOKENS, st.integers(min_value=1, max_value=FIRST_OF_BLOCKS - 1))
def test_a_number_of_the_first_clone_is_not_gone_on_after_by_another_one(token: str, number: int) -> None:
    assert Numbers(token).room(number) == 0
