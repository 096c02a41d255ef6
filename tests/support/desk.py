"""A data directory with a person in front of it: files are opened, changed, moved and saved by hand."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from aof.api.fabric import Fabric
from aof.errors import AofError, UnreadableTask
from aof.kernel.events import Event
from aof.store.files.disk import Disk
from aof.store.files.store import FilesystemStore
from tests.support.clock import ManualClock
from tests.support.disks import SteppingDisk
from tests.support.invariants import fabric_on, open_store


class Workplace:
    """One data directory, a clock of its own, and the process that works there."""

    def __init__(self, root: Path, clock: ManualClock | None = None) -> None:
        self.root = root
        self.clock = clock or ManualClock()
        if not root.exists():
            FilesystemStore.create(str(root), SteppingDisk())
        self.store = open_store(root, self.clock)
        self.fabric: Fabric = fabric_on(self.store, self.clock)

    def reopen(self, disk: Disk | None = None, **given: Any) -> Fabric:
        """What the next process does."""
        self.store.close()
        self.store = open_store(self.root, self.clock, disk=disk or SteppingDisk(), **given)
        self.fabric = fabric_on(self.store, self.clock)
        return self.fabric


class Desk(Workplace):
    """A directory with hands."""

    def create(self, title: str = "Write it", **given: Any) -> str:
        """A new task's ID."""
        given.setdefault("brief", "A brief.\n")
        return self.fabric.create(title, **given).task_id

    # --- hands

    def file(self, task_id: str, folder: str | None = None) -> Path:
        """The task's file, wherever it lies, or where it would lie."""
        if folder is not None:
            return self.root / ("archive/tasks" if folder == "archive" else f"tasks/{folder}") / f"{task_id}.md"
        (path,) = self.files(task_id)
        return path

    def files(self, task_id: str) -> list[Path]:
        """All files of that name."""
        return sorted([*self.root.glob(f"tasks/*/{task_id}.md"), *self.root.glob(f"archive/tasks/{task_id}.md")])

    def change(self, task_id: str, old: str, new: str) -> None:
        """Replace a text in the file and save it."""
        path = self.file(task_id)
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def move(self, task_id: str, folder: str) -> Path:
        """`mv` to another folder."""
        return self.file(task_id).rename(self.file(task_id, folder))

    def drop(self, folder: str, name: str, text: str | bytes) -> Path:
        """A new file in a folder."""
        path = self.root / "tasks" / folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    # --- eyes

    def events(self, task_id: str) -> list[Event]:
        """What the log has of a task."""
        return list(self.store.events(task_id=task_id))

    def last(self, task_id: str) -> Event:
        """The last event of a task."""
        return self.events(task_id)[-1]

    def state(self, task_id: str) -> str | None:
        """What a list says of the task: stale, unknown or nothing."""
        (row,) = [row for row in self.fabric.list(archived=True).tasks if row.id == task_id]
        return row.state

    def refused(self, task_id: str) -> AofError:
        """Commands on the task are refused in a way that helps, `show` explains why, and nothing changes."""
        before = self.contents()
        if self.events(task_id):
            shown = self.fabric.show(task_id)
            assert shown["problem"]["code"] == "unreadable_task"
            assert shown["problem"]["hint"]
            assert shown["normalizedStatus"] in ("stale", "unknown")
        for command in self._commands(task_id):
            with pytest.raises(UnreadableTask) as caught:
                command()
            assert caught.value.hint
            assert task_id in caught.value.message
        assert self.contents() == before
        return caught.value

    def _commands(self, task_id: str) -> Iterator[Callable[[], object]]:
        yield lambda: self.fabric.claim(task_id, agent="ada")
        yield lambda: self.fabric.edit(task_id, title="Another")
        yield lambda: self.fabric.cancel(task_id)

    def contents(self) -> dict[str, str]:
        """Everything that counts in the directory: caches and locks do not."""
        return contents(self.root)


def contents(root: Path) -> dict[str, str]:
    """The digest of every file by path, without locks and index."""
    return {
        str(path.relative_to(root)): "link" if path.is_symlink() else hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if (path.is_symlink() or path.is_file())
        and path.relative_to(root).parts[0] not in ("locks", "index.sqlite", "tmp")
    }


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A new data directory with a person in front of it."""
    return Desk(tmp_path / "data")
