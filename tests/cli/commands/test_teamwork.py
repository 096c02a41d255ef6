"""Handoffs and the WORKLOG on the command line: what is refused shows the call that works."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.support.command_line import Aof


@pytest.mark.parametrize(("kind", "lacks"), [("escalation", "rationale")])
def test_the_hint_about_what_a_handoff_lacks_is_a_call_that_works(aof: Aof, kind: str, lacks: str) -> None:
    aof("create", "Work")
    words = ("handoff", "new", "--type", kind, "--from", "ada", "--to", "bob", "--task", "001", "--reason", "help")
    refused = aof(*words, "--json")
    assert (refused.code, refused.error["details"]["parameter"]) == (2, lacks)
    hint = refused.error["hint"].partition(": aof ")[2]
    assert aof(*shlex.split(hint), "--json").data["state"] == "requested"


@pytest.mark.parametrize(("option", "name"), [("--type", "type"), ("--risk", "risk"), ("--on-timeout", "on_timeout")])
def test_a_value_that_a_handoff_cannot_have_is_named_as_the_caller_knows_it(aof: Aof, option: str, name: str) -> None:
    aof("create", "Work")
    given = {
        "--type": "delegation",
        "--timeout": "1m",
        "--to": "bob",
        "--task": "001",
        "--reason": "x",
        option: "weird",
    }
    words = (word for pair in given.items() for word in pair)
    refused = aof("handoff", "new", *words, "--json")
    assert refused.code == 2
    assert refused.error["message"] == f"'{name}' cannot be 'weird'"
    assert refused.error["hint"].startswith(f"{name}: one of ")
    assert "proposal" not in refused.error["hint"]


def test_the_check_of_another_file_names_that_file(aof: Aof, tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("nothing\n", encoding="utf-8")
    found = aof("worklog", "check", "other.md", "--json")
    assert (found.code, {one["path"] for one in found.data["problems"]}) == (1, {"other.md"})
    missing = aof("mail", "check", "none.md", "--json")
    assert (missing.code, missing.data["problems"][0]["detail"]) == (
        2,
        "none.md cannot be read: No such file or directory",
    )


def test_a_full_handoff_without_a_status_is_told_which_there_are(aof: Aof) -> None:
    refused = aof("worklog", "add", "--agent", "ada", "--type", "handoff.posted", "--subject", "x", "--json").error
    assert refused["message"] == "an entry of the type handoff.posted needs 'status'"
    assert "Ready for review" in refused["hint"]
