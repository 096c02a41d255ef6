"""Identifiers: their exact form, and how a short form finds its task."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from aof.kernel import model as kernel_model

TASKS = [
    "TASK-2026-02-21-001",
    "TASK-2026-02-21-002",
    "TASK-2026-02-22-001",
    "TASK-2026-02-21-1000",
    "TASK-2026-02-21-0010",
]


@pytest.mark.parametrize("good", ["TASK-2026-02-21-001", "TASK-2026-02-21-1000", "TASK-2026-02-21-123456789"])
def test_a_whole_id_is_one(good: str) -> None:
    assert kernel_model.is_task_id(good)


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "TASK-2026-02-21-01",
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


TAGS = st.from_regex(r"[0-9a-f]{8}", fullmatch=True)


@given(number=st.integers(1, 10_000), attempt=st.integers(1, 10_000), tag=TAGS | st.just(""))
def test_a_run_names_its_task_and_attempt_also_without_a_tag(number: int, attempt: int, tag: str) -> None:
    task = kernel_model.task_id("2026-02-21", number)
    run = kernel_model.run_id(task, attempt, tag)
    assert (kernel_model.task_of_run(run), kernel_model.attempt_of(run), kernel_model.is_tagged(run)) == (
        task,
        attempt,
        bool(tag),
    )


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


def test_a_number_has_one_spelling() -> None:
    assert kernel_model.is_task_id("TASK-2026-03-02-005")
    assert kernel_model.is_task_id("TASK-2026-03-02-1005")
    assert not kernel_model.is_task_id("TASK-2026-03-02-0005")
