"""`aof admin token`: whose token it is, said in either of the two ways that people try."""

from __future__ import annotations

from pathlib import Path

import aof
from tests.support.terminal import aof as command


def test_a_token_is_for_whom_the_command_names(tmp_path: Path) -> None:
    aof.init(tmp_path / ".aof")
    for words in (("ada",), ("--for", "ada"), ("ada", "--for", "ada")):
        assert command("token", "create", *words, "--json", cwd=tmp_path).data["actor"] == "ada"
    assert command("token", "create", "--json", cwd=tmp_path).data["actor"] == "tester", "else for who calls"


def test_two_names_for_one_token_are_refused(tmp_path: Path) -> None:
    aof.init(tmp_path / ".aof")
    told = command("token", "create", "ada", "--for", "bob", "--json", cwd=tmp_path)
    assert (told.code, told.error["code"]) == (2, "usage")
    assert "aof admin token create ada" in told.error["hint"]
    assert command("token", "list", "--json", cwd=tmp_path).data["tokens"] == []
