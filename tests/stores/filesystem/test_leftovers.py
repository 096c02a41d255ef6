"""What a killed writer left is finished by the next command on any task, and by nobody who only looks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from aof.app.fabric import Fabric
from aof.stores.filesystem.files import TaskFiles
from aof.testing import FakeClock
from tests.support.indexes import open_fabric


class _Killed(BaseException):
    """Stands for the end of a process."""


def _shows(fabric: Fabric, other: str) -> None:
    fabric.show(other)


def _claims(fabric: Fabric, other: str) -> None:
    fabric.claim(other, agent="bob")


def _syncs(fabric: Fabric, _other: str) -> None:
    fabric.sync()


@pytest.mark.parametrize("command", [_shows, _claims, _syncs])
def test_a_command_on_another_task_finishes_what_was_left(
    root: Path, monkeypatch: pytest.MonkeyPatch, command: Callable[[Fabric, str], None]
) -> None:
    clock = FakeClock("2026-03-02T09:00:00Z")
    with open_fabric(root, clock) as fabric:
        task_id, other = (fabric.create(title).task_id for title in ("one", "two"))
        file = root / "tasks/ready" / f"{task_id}.md"

        def die(*_given: object) -> bool:
            raise _Killed

        with monkeypatch.context() as patched:
            patched.setattr(TaskFiles, "place", die)
            with pytest.raises(_Killed):
                fabric.edit(task_id, title="changed")
    assert '"one"' in file.read_text()
    with open_fabric(root, clock) as fabric:
        command(fabric, other)
    assert '"changed"' in file.read_text()
