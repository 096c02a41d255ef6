"""Values that a task's fields can hold, made from the rows of their table, so that a new field is tested as it is."""

from __future__ import annotations

from typing import Any

from aof.tasks.fields import BY_KEY, PLAIN, TaskField

_WORDS = {
    "line": ("One", "Two"),
    "text": ("One\n", "Two\n"),
    "name": ("ada", "bob"),
    "moment": ("2026-03-09", "2026-04-01"),
    "texts": (["x"], ["y"]),
    "list": (["it works"], ["it is fast"]),
    "object": ({"files": 3}, {"files": 4}),
}


def values(row: TaskField) -> tuple[Any, Any]:
    """Two values that the field can hold, neither of which is its default."""
    if row.kind == "whole":
        return row.least + 1, row.most
    if row.kind == "choice":
        one, other, *_ = (choice for choice in row.choices if choice != row.default)
        return one, other
    return _WORDS[row.kind]


def first() -> dict[str, Any]:
    """A value of each field that a creation carries by its key, by their names in Python."""
    return {row.name: values(row)[0] for row in PLAIN} | {"visibility": "background"}


def second() -> dict[str, Any]:
    """Another value of each."""
    return {row.name: values(row)[1] for row in PLAIN} | {"visibility": BY_KEY["visibility"].default}


def held(task: Any, row: TaskField) -> Any:
    """What a task has in the field, as JSON has it."""
    value = getattr(task, row.name)
    return list(value) if isinstance(value, tuple) else value
