"""Documents beside the service: what happens stands in them soon, without being asked for."""

from __future__ import annotations

from pathlib import Path

from aof.service.bootstrap import open_fabric
from tests.support.service import Up, directory
from tests.support.waiting import eventually


def test_under_the_service_claims_and_completions_are_written_down_by_themselves(tmp_path: Path) -> None:
    root = directory(tmp_path, {"ada": {}})
    path = root / "WORKLOG.md"
    with Up(root) as up, open_fabric(root, actor="pm") as fabric:
        up.wait("up")
        fabric.create("Write it", review=False, agent="ada")
        run = fabric.claim("001", agent="ada").run_id
        eventually(lambda: path.exists() and "Now Working (ada): TASK-" in path.read_text())
        fabric.complete("001", run=run)
        eventually(lambda: "Now Working (ada): idle" in path.read_text())
        assert [line.split(" ")[3] for line in path.read_text().split("\n") if "TASK-" in line] == [
            "claimed",
            "completed",
        ]
