"""`aof bulk` and `aof undo` as people type them."""

from __future__ import annotations

import pytest

from aof.surfaces.cli.parser import UsageError, parse
from tests.support.command_line import Aof


def test_many_ids_stand_one_after_the_other() -> None:
    assert parse(["bulk", "cancel", "001", "002", "--reason", "no", "003"]).values == {
        "command": "cancel",
        "task_ids": ["001", "002", "003"],
        "reason": "no",
    }
    assert "task_ids" not in parse(["bulk", "archive", "--status", "done"]).values
    with pytest.raises(UsageError, match="COMMAND"):
        parse(["bulk"])


@pytest.mark.parametrize("verb", ["cancel", "archive", "retry", "edit"])
def test_a_verb_for_one_task_shows_the_one_for_many(verb: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse([verb, "001", "002"])
    assert refused.value.hint == f"for several tasks: aof bulk {verb} 001 002"


def test_the_exit_code_says_that_some_were_refused(aof: Aof) -> None:
    first, second = (str(aof("--json", "create", title).data["taskId"]) for title in ("One", "Two"))
    assert aof("--json", "bulk", "archive", first, second, "--dry-run").code == 1
    assert aof("--json", "bulk", "cancel", first, second).code == 0
    said = aof(
        "--json",
        "bulk",
        "edit",
        "--status",
        "cancelled",
        "--set-priority",
        "high",
        "--set-tag",
        "a",
        "--set-owner",
        "bo",
    )
    assert (said.code, said.data["changed"]) == (0, 2)
    task = aof("--json", "show", first).data
    assert (task["priority"], task["routing"]["tags"], task["owner"]) == ("high", ["a"], "bo")
    assert aof("--json", "bulk", "edit", first, "--set-owner", "").data["changed"] == 1
    assert "owner" not in aof("--json", "show", first).data
    assert aof("--json", "bulk", "cancel").code == 2


def test_a_report_counts_one_task_that_follows_as_one(aof: Aof) -> None:
    aof("create", "Blocker")
    aof("create", "Waits", "--dep", "001")
    assert aof("bulk", "cancel", "001").out.endswith("1 changed, 0 unchanged, 0 refused; with them 1 other task\n")
