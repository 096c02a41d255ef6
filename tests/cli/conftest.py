"""A command line in an empty folder: `aof("list", "--json")` answers exit code, output and parsed data."""

from __future__ import annotations

from pathlib import Path

import pytest

from aof.surfaces.cli.main import main
from tests.support.command_line import Aof, Said


@pytest.fixture
def aof(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> Aof:
    """The command, run in a folder of its own that has a data directory."""
    monkeypatch.chdir(tmp_path)
    for name in ("AOF_DATA_DIR", "AOF_RUN_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AOF_ACTOR", "tester")

    def run(*words: str) -> Said:
        code = main(list(words))
        out, err = capsysbinary.readouterr()
        return Said(code, out.decode(), err.decode())

    assert run("init").code == 0
    return run
