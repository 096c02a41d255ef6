"""`aof worklog` on the command line: what it answers, and how it ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command_line import Aof
from tests.support.room import Room


def test_the_verbs_answer_with_entries_and_lines(aof: Aof, room: Room) -> None:
    pinned = aof("worklog", "now", "--agent", "ada", "the parser")
    assert (pinned.code, pinned.data) == (0, {"key": "ada", "text": "the parser"})
    decided = aof("worklog", "decide", "--owner", "ada", "use it", "--reason", "it works")
    assert decided.data["event_type"] == "decision.recorded"
    quick = ("--quick", "--subject", "parser ready", "--next-owner", "bob")
    added = aof("worklog", "add", "--agent", "ada", "--type", "handoff.posted", *quick)
    assert added.data["actor"] == "ada"
    shown = aof("worklog", "show", "--limit", "1").data
    assert [one["event_id"] for one in shown["entries"]] == [added.data["event_id"]]
    assert shown["total"] == 2


@pytest.mark.parametrize("words", [("now",), ("decide",), ("add",), ("dance",)])
def test_a_call_that_makes_no_sense_is_a_usage_error(aof: Aof, words: tuple[str, ...]) -> None:
    assert aof("worklog", *words).code == 2


@pytest.mark.parametrize("data", [b"", b"\x00\xff\xfe", b"# Worklog\n\n## Session 2\n## Session 1\n", b"|\n" * 5_000])
def test_any_file_can_be_checked_and_stays_as_it_is(aof: Aof, tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "any.md"
    path.write_bytes(data)
    said = aof("worklog", "check", str(path))
    assert said.code in (0, 1)
    assert said.data["ok"] == (said.code == 0)
    assert all({"line", "code", "detail"} <= problem.keys() for problem in said.data["problems"])
    assert path.read_bytes() == data
    assert aof("worklog", "check", str(tmp_path / "missing.md")).code == 2


def test_a_warning_leaves_the_exit_code_alone(aof: Aof, room: Room) -> None:
    aof("worklog", "now", "--agent", "ada", "x")
    path = room.root / "WORKLOG.md"
    path.write_text(path.read_text() + "\n## Session 1 — 2026-03-02\n\nJust talking.\n")
    said = aof("worklog", "check")
    assert (said.code, said.data["ok"]) == (0, True)
    assert [problem["code"] for problem in said.data["problems"]] == ["unstructured"]


def test_a_second_pinned_block_is_named(aof: Aof, room: Room) -> None:
    aof("worklog", "decide", "--owner", "ada", "use it")
    path = room.root / "WORKLOG.md"
    path.write_text(
        path.read_text() + "\n### bob: Status\n\nNow Working (ada): one thing\nNow Working (ada): another\n"
    )
    found = aof("worklog", "check").data["problems"]
    assert [problem["code"] for problem in found].count("status_line_misplaced") == 2
