"""Identifiers: their exact form, how a short form finds its task, and which number comes next."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from aof.kernel import model as kernel_model
from aof.kernel.commands import FIRST_AFTER_DERIVED, FIRST_DERIVED, FIRST_OF_BLOCKS, LARGEST, Numbers

TASKS = [
    "TASK-2026-02-21-001",
    "TASK-2026-02-21-002",
    "TASK-2026-02-22-001",
    "TASK-2026-02-21-1000",
    "TASK-2026-02-21-0010",
]


@pytest.mark.parametrize("good", ["TASK-2026-02-21-001", "TASK-2026-02-21-1005", "TASK-2026-02-21-123456789"])
def test_a_whole_id_is_one(good: str) -> None:
    assert kernel_model.is_task_id(good)


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "TASK-2026-02-21-01",
        "TASK-2026-02-21-0005",
        "TASK-2026-02-21-1234567890",
        "TASK-2026-02-21-001\n",
        "\nTASK-2026-02-21-001",
        " TASK-2026-02-21-001",
        "TASK-2026-02-21-00\u0661",
        "TASK-\uff12\uff10\uff12\uff16-02-21-001",
        "task-2026-02-21-001",
        "TASK-2026-02-21-001/../x",
        "../TASK-2026-02-21-001",
        "TASK-2026-02-21-001.md",
    ],
)
def test_anything_else_is_none(bad: str) -> None:
    assert not kernel_model.is_task_id(bad)


@given(day=st.dates().map(str), number=st.integers(1, 999_999_999))
def test_an_id_says_its_day_and_number(day: str, number: int) -> None:
    made = kernel_model.task_id(day, number)
    assert kernel_model.is_task_id(made)
    assert kernel_model.split_task_id(made) == (day, number)


TAGS = st.text("0123456789abcdef", min_size=8, max_size=8)


@given(number=st.integers(1, 10_000), attempt=st.integers(1, 10_000), tag=TAGS | st.just(""))
def test_a_run_names_its_task_and_attempt_also_without_a_tag(number: int, attempt: int, tag: str) -> None:
    task = kernel_model.task_id("2026-02-21", number)
    run = kernel_model.run_id(task, attempt, tag)
    assert (kernel_model.task_of_run(run), kernel_model.attempt_of(run)) == (task, attempt)
    assert kernel_model.is_tagged(run) == bool(tag)


@given(
    first=st.tuples(st.integers(1, 2000), st.integers(1, 2000), TAGS),
    second=st.tuples(st.integers(1, 2000), st.integers(1, 2000), TAGS),
)
def test_no_two_runs_share_an_id(first: tuple[int, int, str], second: tuple[int, int, str]) -> None:
    one, other = (
        kernel_model.run_id(kernel_model.task_id("2026-02-21", number), attempt, tag)
        for number, attempt, tag in (first, second)
    )
    assert (one == other) == (first == second)


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "RUN-",
        "RUN-2026-02-21-001",
        "RUN-x-1",
        "RUN-2026-02-21-001-",
        "RUN-2026-02-21-001-\u0661",
        "x",
        "RUN-2026-02-21-001-1-",
        "RUN-2026-02-21-001-1-abcdefg0",
        "RUN-2026-02-21-001-1-ABCDEF00",
        "RUN-2026-02-21-001-1-0123456",
        "RUN-2026-02-21-001-1-01234567-1",
        "RUN-2026-02-21-001-1-01234567\n",
    ],
)
def test_what_is_no_run_names_no_task(bad: str) -> None:
    assert kernel_model.task_of_run(bad) is None


@pytest.mark.parametrize(
    ("part", "found"),
    [
        ("TASK-2026-02-21-001", ["TASK-2026-02-21-001"]),
        ("2026-02-21-002", ["TASK-2026-02-21-002"]),
        ("02-21-002", ["TASK-2026-02-21-002"]),
        ("002", ["TASK-2026-02-21-002"]),
        ("02-21-001", ["TASK-2026-02-21-001"]),
        ("1000", ["TASK-2026-02-21-1000"]),
        ("001", ["TASK-2026-02-21-001", "TASK-2026-02-22-001", "TASK-2026-02-21-0010"]),
        ("02-22", ["TASK-2026-02-22-001"]),
        ("TASK-2026-02-22", ["TASK-2026-02-22-001"]),
        ("6-02-21-002", []),
        ("01", []),
        ("999", []),
    ],
)
def test_a_part_stands_for_what_it_begins_in_from_a_dash_on(part: str, found: list[str]) -> None:
    assert kernel_model.matching_ids(part, TASKS) == found


@pytest.mark.parametrize(
    ("text", "good"), [("2026-02", True), ("001", True), ("", False), ("a", False), ("001\n", False), ("../x", False)]
)
def test_what_could_be_a_part_is_told_apart(text: str, good: bool) -> None:  # noqa: FBT001 - a table
    assert kernel_model.is_part(text) is good


@pytest.mark.parametrize("good", ["a", "swe-backend", "user@host", "a.b_c:d+e", "9", "x" * 128])
def test_a_name_is_one(good: str) -> None:
    assert kernel_model.is_agent_name(good)


@pytest.mark.parametrize("bad", ["", " ", "-a", ".a", "a b", "a/b", "a\n", "ä", "x" * 129, "../a", "a\\b", "\u0663"])
def test_what_could_be_a_path_or_a_line_is_no_name(bad: str) -> None:
    assert not kernel_model.is_agent_name(bad)


# --- numbers in blocks: the first clone counts from one, any other in a block, and none meets what a merge gave

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
