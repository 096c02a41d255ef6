"""The audit record of a handoff's step is durable before the step: a process dies, or its log fails, at every step."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from aof.api.fabric import Fabric
from aof.errors import AofError
from aof.handoffs.audit import AuditStep
from aof.store.files.disk import Disk
from aof.store.files.store import FilesystemStore
from tests.support.clock import ManualClock
from tests.support.deaths import deaths
from tests.support.disks import DyingDisk, FailingDisk, Killed, SteppingDisk
from tests.support.invariants import fabric_on, log_lines, open_store
from tests.support.requirements import requirement
from tests.support.scenarios import copy

pytestmark = pytest.mark.usefixtures("few_stripes")

SHOWS: dict[str, AuditStep] = {
    "requested": "initiated",
    "accepted": "accepted",
    "deferred": "accepted",
    "rejected": "rejected",
    "escalated": "escalated",
    "completed": "completed",
    "failed": "failed",
}


def first(fabric: Fabric) -> str:
    """The ID of the first handoff."""
    return fabric.handoff_list()[0].id


def begin(fabric: Fabric) -> None:
    """A delegation to bob."""
    task = fabric.create("Work").task_id
    hand(fabric, task)


def hand(fabric: Fabric, task: str) -> None:
    """Hand a task over."""
    fabric.handoff_new(type="delegation", task_id=task, reason="needs it", from_agent="ada", to=["bob"], timeout="5m")


def accept(fabric: Fabric) -> None:
    """Bob takes it."""
    fabric.handoff_accept(first(fabric), agent="bob")


def give_back(fabric: Fabric) -> None:
    """Bob brings the result."""
    fabric.handoff_return(first(fabric), agent="bob", status="success", result="done")


STORIES: dict[str, tuple[tuple[Callable[[Fabric], object], ...], Callable[[Fabric], object]]] = {
    "initiated": ((lambda fabric: fabric.create("Work"),), lambda fabric: hand(fabric, fabric.list().tasks[0].id)),
    "accepted": ((begin,), accept),
    "deferred": ((begin,), lambda fabric: fabric.handoff_defer(first(fabric), agent="bob", reason="later")),
    "rejected": ((begin,), lambda fabric: fabric.handoff_reject(first(fabric), agent="bob", reason="no")),
    "returned": ((begin, accept), give_back),
}


def told(root: Path, disk: Disk, *steps: Callable[[Fabric], object]) -> None:
    """Carry out steps on a disk; they may be cut short."""
    clock = ManualClock()
    try:
        store = open_store(root, clock, disk=disk)
    except Killed:
        return
    try:
        fabric = fabric_on(store, clock)
        for step in steps:
            step(fabric)
    except Killed:
        pass
    finally:
        store.close()


def check_records(root: Path) -> None:
    """Each state that a record on the disk shows has its audit record in the log, as both lie there."""
    known = set()
    for line in log_lines(root):
        payload = json.loads(line).get("payload", {}) if line.endswith(b"\n") else {}
        if "audit" in payload:
            known.add((payload["handoffId"], payload["audit"]["event_type"]))
    for path in root.glob("handoffs/*.json"):
        record = json.loads(path.read_bytes())
        assert (record["id"], SHOWS[record["state"]]) in known, path.name


@requirement("handoff.audit.write-ahead")
@pytest.mark.parametrize("name", STORIES)
def test_no_step_is_visible_without_its_record_wherever_the_process_dies(shm_path: Path, name: str) -> None:
    before, then = STORIES[name]
    FilesystemStore.create(str(shm_path / "before"), SteppingDisk())
    told(shm_path / "before", SteppingDisk(), *before)
    counting = DyingDisk()
    told(copy(shm_path / "before", shm_path / "counted"), counting, then)
    assert len(counting.taken) > 5
    for number, moment in deaths(counting.taken):
        root = copy(shm_path / "before", shm_path / "dead")
        told(root, DyingDisk(number, moment), then)
        check_records(root)
        with closing(open_store(root)) as store:
            fabric = fabric_on(store)
            for handoff in fabric.handoff_list():
                steps = [one.event_type for one in fabric.audit(handoff=handoff.id).records]
                assert SHOWS[handoff.state] in steps
                assert steps[0] == "initiated"
            assert fabric.audit_verify().ok
        check_records(root)


@requirement("handoff.audit.write-ahead")
def test_a_step_whose_record_cannot_be_appended_is_refused(shm_path: Path) -> None:
    before = shm_path / "before"
    FilesystemStore.create(str(before), SteppingDisk())
    told(before, SteppingDisk(), begin)
    counting = DyingDisk()
    told(copy(before, shm_path / "counted"), counting, accept)
    root = copy(before, shm_path / "failing")
    (at,) = [number for number, step in enumerate(counting.taken) if step.name == "append" and "/events/" in step.path]
    clock = ManualClock()
    store = open_store(root, clock, disk=FailingDisk(at))
    with pytest.raises(AofError):
        accept(fabric_on(store, clock))
    store.close()
    check_records(root)
    store = open_store(root, clock)
    assert [one.state for one in fabric_on(store, clock).handoff_list()] == ["requested"]
    store.close()
