"""The service on a system that tells neither of changes nor of ends: it looks for itself."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from aof.service.bootstrap import open_fabric
from aof.service.up import Service
from tests.support.service import directory, scripted


def nothing() -> None:
    raise OSError("there is no inotify here")


def test_agents_are_started_and_their_ends_seen_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aof.service.up.Inotify", nothing)
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    root = directory(tmp_path, {"ada": scripted("update=on", "report=done"), "bert": scripted("exit=1")})
    said = io.StringIO()
    with open_fabric(root, actor="pm") as fabric:
        good = fabric.create("Work", agent="ada").task_id
        waits = fabric.create("More", agent="ada", depends_on=[good], review=False).task_id
        bad = fabric.create("Fails", agent="bert", max_attempts=2).task_id
        assert Service(fabric, once=True, out=said).run() == 0
        assert [fabric.get(one).status for one in (good, waits, bad)] == ["review", "ready", "deadletter"]
        fabric.approve(good)
        assert Service(fabric, once=True, out=said).run() == 0
        assert fabric.get(waits).status == "done"
    assert said.getvalue().count(" session_end ") == 4
