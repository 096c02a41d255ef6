"""A command line in an empty folder: `aof("list", "--json")` answers exit code, output and parsed data."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aof.adapters.cli.main import main


class Said:
    """What one call of the command gave."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err

    @property
    def answer(self) -> Any:
        """The JSON envelope."""
        return json.loads(self.out)

    @property
    def data(self) -> Any:
        """The envelope's data."""
        assert self.answer["schema_version"] == 1
        return self.answer["data"]

    @property
    def error(self) -> Any:
        """The envelope's error."""
        assert self.answer["schema_version"] == 1
        return self.answer["error"]


Aof = Callable[..., Said]


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
