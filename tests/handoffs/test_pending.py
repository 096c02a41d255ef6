"""Open handoffs as the scheduler remembers them: never older than the version of the task that they belong to."""

from __future__ import annotations

import threading
from pathlib import Path

from aof.api.fabric import Fabric
from aof.handoffs.audit_operations import Pending
from aof.kernel.model import Policy
from aof.store.files.disk import Disk
from aof.store.files.store import FilesystemStore
from aof.store.lists import Query
from aof.testing import FakeClock
from tests.support.waiting import BOUND


class SlowDisk(Disk):
    """Writes the file of a handoff only when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.reached, self.go_on = threading.Event(), threading.Event()

    def replace(self, source: str, target: str, mode: int | None = None) -> None:
        if "/handoffs/" in target:
            self.reached.set()
            assert self.go_on.wait(BOUND)
        super().replace(source, target, mode)


def test_what_the_log_knows_before_the_file_does_is_not_remembered_as_it_was(tmp_path: Path) -> None:
    root, clock, disk = str(tmp_path / ".aof"), FakeClock(), SlowDisk()
    FilesystemStore.create(root)
    looking = FilesystemStore(root, clock, lock_timeout=0.05)
    pm = Fabric(looking, clock, Policy(), "pm")
    task = pm.create("Move the data").task_id
    made = pm.handoff_new(type="delegation", task_id=task, reason="too much", to=["bob"], timeout="1s")
    pending = Pending(looking)

    def states() -> list[str]:
        return [one.state for _, one in pending.open(looking.find(Query(open_handoffs=True)).tasks)]

    assert states() == ["requested"]
    bob = Fabric(FilesystemStore(root, clock, disk=disk), clock, Policy(), "bob")
    answering = threading.Thread(target=lambda: bob.handoff_accept(str(made.handoff_id), agent="bob"))
    answering.start()
    try:
        assert disk.reached.wait(BOUND)
        states()
    finally:
        disk.go_on.set()
        answering.join(BOUND)
    assert states() == ["accepted"]
    bob.close()
    pm.close()
