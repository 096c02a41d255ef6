"""A hint of the command line works when it is pasted: it keeps the data directory, the caller and the acting agent."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from aof.errors import Call
from aof.surfaces.cli.hints import in_text, spell
from tests.support.command_line import Aof, Said


def _pasted(aof: Aof, said: Said) -> Said:
    """Run the command that the hint ends with."""
    command = said.err.strip().rpartition(": ")[2]
    assert command.startswith("aof "), said.err
    return aof(*shlex.split(command)[1:])


def test_a_run_that_must_be_named_is_named_in_the_same_command(
    aof: Aof, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "far away"
    elsewhere.mkdir()
    there = ("--data-dir", str(tmp_path / ".aof"), "--actor", "pm")
    monkeypatch.chdir(elsewhere)
    assert aof(*there, "create", "Do it").code == 0
    for verb in ("claim", "release", "claim"):
        assert aof(*there, verb, "001", "--agent", "ada").code == 0
    refused = aof(*there, "complete", "001", "--agent", "ada", "--summary", "it's done: all of it")
    assert "[run_required]" in refused.err
    words = shlex.split(refused.err.strip().partition(": aof ")[2])
    assert words[:5] == [*there, "complete"]
    assert {"--run", "--agent", "it's done: all of it"} <= {*words}
    done = aof(*words)
    assert (done.code, done.err) == (0, "")


def test_the_agent_is_kept_where_it_acts_and_not_where_it_would_filter(aof: Aof) -> None:
    aof("create", "Do it")
    aof("claim", "001", "--agent", "ada")
    taken = aof("claim", "001", "--agent", "bob")
    assert "aof claim --agent bob" in taken.err
    missing = aof("claim", "009", "--agent", "bob")
    assert missing.err.strip().endswith("aof list")
    assert _pasted(aof, missing).code == 0


def test_commands_in_the_words_of_a_hint_keep_the_data_directory_too() -> None:
    assert (
        in_text("run 'aof doctor --fix'", {"data_dir": "a b/.aof"}) == "run 'aof --data-dir \"a b/.aof\" doctor --fix'"
    )
    assert in_text("run 'aof doctor'", {"json": True}) == "run 'aof doctor'"


def test_a_call_is_spelled_as_it_was_where_nothing_was_given() -> None:
    assert spell(Call("show", {"task_id": "001"})) == "aof show 001"
    assert (
        spell(Call("heartbeat", {"task_id": "001", "run": "R"}), {}, "ada") == "aof heartbeat 001 --run R --agent ada"
    )
