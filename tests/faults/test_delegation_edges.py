"""Whatever step a delegation dies at: there is no child, receiver, peer or worker without its edge, on either side."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from aof.api.fabric import Fabric
from aof.store.files.store import FilesystemStore
from aof.surfaces.a2a.delegation import Remote
from aof.tasks.model import Task
from aof.testing import FakeClock
from tests.support.deaths import die_at_every_step, opened
from tests.support.disks import SteppingDisk
from tests.support.messages import request
from tests.support.requirements import requirement

pytestmark = pytest.mark.usefixtures("few_stripes")

MONDAY = "2026-03-02T09:00:00Z"
PARENT, OTHER = "TASK-2026-03-02-001", "TASK-2026-03-02-002"
Act = Callable[[Fabric], object]


def _prepared(root: Path) -> None:
    FilesystemStore.create(str(root), SteppingDisk())
    fabric = opened(root, FakeClock(MONDAY))
    fabric.create("Parent")
    fabric.create("Other")
    fabric.claim(PARENT, agent="ada")
    fabric.job_add("batch", items=[{"title": "Item"}])
    fabric.close()


def child(fabric: Fabric) -> None:
    fabric.create("Part", parent_id=PARENT)


def message(fabric: Fabric) -> None:
    fabric.send(request(OTHER, PARENT, "ada", "bob"))


def handoff(fabric: Fabric) -> None:
    fabric.handoff_new(type="delegation", task_id=PARENT, from_agent="ada", to=["bob"], reason="needs it", timeout="5m")


def worker(fabric: Fabric) -> None:
    fabric.claim(OTHER, agent="bob", worker="process")


def peer(fabric: Fabric) -> None:
    """As a run at a peer does it: the claim, what is about to be sent, and what the peer has answered."""
    fabric.claim(OTHER, agent="pia", worker="a2a")
    sent = Remote(native_protocol="a2a", remote_agent_ref="pia", remote_context_id="c-1", message_id="m-1")
    for remote in (sent, msgspec.structs.replace(sent, remote_task_id="r-1")):
        fabric.edit(OTHER, metadata={"remote": msgspec.to_builtins(remote)})


def job(fabric: Fabric) -> None:
    fabric.tick()


@requirement("task.anti-pattern.no-edgeless-children")
@pytest.mark.parametrize("act", [child, message, handoff, worker, peer, job])
def test_whatever_step_a_delegation_dies_at_nothing_is_there_without_its_edge(shm_path: Path, act: Act) -> None:
    before = shm_path / "before"
    _prepared(before)
    rebooted: list[list[tuple[str, str, str]]] = []
    seen = set()

    def check(root: Path, boot: str) -> None:
        edges = _edges(root, boot)
        if boot == "two":
            rebooted.append(edges)
        else:
            assert edges == rebooted[-1]
            seen.add(len(edges))

    assert die_at_every_step(before, lambda: FakeClock(MONDAY), act, check, swaps=False) > 5
    assert _edges(shm_path / "counted", "one"), "it is there where nothing died"
    assert {0} < seen, "some died before it happened and some after"


def _edges(root: Path, boot: str) -> list[tuple[str, str, str]]:
    """Every edge of what was delegated, which is on both ends and told once; whatever was delegated must have one."""
    fabric = opened(root, FakeClock(MONDAY), boot=boot)
    try:
        view = fabric.snapshot()
        graph = {(one["sourceId"], one["kind"], one["targetId"]) for one in view["taskGraph"]["edges"]}
        tasks: dict[str, Task] = {one["taskId"]: fabric.get(one["taskId"]) for one in view["tasks"]}
        told = [one for one in fabric.portable_log()["events"] if one["type"] == "task.delegated"]
        expected = [edge for task in tasks.values() for edge in _expected(fabric, task)]
        assert set(expected) <= graph
        named = {(one["taskId"], one["payload"]["targetId"]) for one in told}
        assert len(named) == len(told), "each once"
        assert {task_id for task_id, _ in named} <= set(tasks)
        by_log = {str(one["payload"]["targetId"]) for one in told}
        assert by_log <= {edge[2] for edge in expected} | {"r-1"}
        return sorted(expected)
    finally:
        fabric.close()


def _expected(fabric: Fabric, task: Task) -> list[tuple[str, str, str]]:
    """The edges that a task must have for what is on record of it."""
    found: list[tuple[str, str, str]] = []
    if task.parent_id is not None:
        found += [(task.id, "parent", task.parent_id), (task.parent_id, "child", task.id)]
    for one in fabric.handoff_list(task=task.id):
        if one.task_id == task.id:
            found.append((task.id, "evidence", f"aof://handoffs/{one.id}"))
            above = one.parent_task_id or task.id
            found.append((above, "spawned_subagent", one.to_agent))
            if above != task.id:
                found.append((above, "child", task.id))
    if task.lease is not None and task.lease.worker != "pull":
        found.append((task.id, "spawned_subagent", task.lease.agent))
    if task.title == "Item":
        found.append((task.id, "evidence", "aof://jobs/batch"))
    return found
