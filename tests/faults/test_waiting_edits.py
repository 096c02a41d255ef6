"""Where callers are bound, an edit by hand that gets around a gate waits for a maintainer. No byte of it is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from aof.api.fabric import Fabric
from aof.errors import AofError, InvalidInput, NotAllowed, NothingWaits
from aof.kernel.model import Policy
from aof.maintenance.operations import doctor
from aof.store.files.definitions import WorkflowFiles
from aof.store.files.disk import Disk
from tests.support.desk import Desk
from tests.support.disks import DyingDisk, Killed, Moment

BOUND = Policy(strict=True, maintainers=("pm",))


class BoundDesk(Desk):
    """A data directory that binds its callers."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.fabric = Fabric(self.store, self.clock, BOUND, "pm")

    def reopen(self, disk: Disk | None = None, **given: Any) -> Fabric:
        super().reopen(disk, **given)
        self.fabric = Fabric(self.store, self.clock, BOUND, "pm")
        return self.fabric

    def reviewed(self) -> str:
        """A task that waits for its review, with a file of its own."""
        task_id = self.create(metadata={"reviewRequired": True})
        held = self.fabric.as_actor("ada").claim(task_id, agent="ada")
        own = self.file(task_id).with_suffix("") / "outputs"
        own.mkdir(parents=True)
        (own / "result.txt").write_text("kept")
        held.complete("did it")
        return task_id

    def waits(self, task_id: str) -> str:
        """That the edit waits: every place that should tell does, nothing is imported, and the file stays as it is."""
        before, events = self.contents(), self.events(task_id)
        problem = self.fabric.show(task_id)["problem"]
        assert problem["code"] == "edit_waits"
        (item,) = self.fabric.inbox(kind=["edit"]).items
        assert (item.task_id, item.kind, item.reason) == (task_id, "edit", problem["message"])
        assert [(call.operation, call.arguments) for call in item.next[:2]] == [
            ("sync", {"accept": task_id}),
            ("sync", {"refuse": task_id}),
        ]
        synced = self.fabric.sync()
        assert ([one.path for one in synced.waiting], synced.taken_in, synced.refused) == ([task_id], (), ())
        for fix in (False, True):
            diagnosis = doctor(self.store, self.clock, BOUND, fix=fix)
            assert diagnosis.ok
            assert "edit_waits" in [one.code for one in diagnosis.advice]
        assert (self.contents(), self.events(task_id)) == (before, events)
        return str(problem["message"])


@pytest.fixture
def desk(root: Path) -> BoundDesk:
    """One on the test's clock."""
    return BoundDesk(root)


GATES = [
    ('"reviewRequired":true', '"reviewRequired":false'),
    ('metadata: {"reviewRequired":true}\n', ""),
    ("\n---\n", '\nowner: "ada"\n---\n'),
    ("\n---\n", '\nprofile: {"risk": "low"}\n---\n'),
    ("\n---\n", '\nacceptance: ["anything"]\n---\n'),
    ("\n---\n", "\nrouting:\n  agent: ada\n---\n"),
    ("\n---\n", "\nresource: gpu\n---\n"),
]


@pytest.mark.parametrize(("old", "new"), GATES)
def test_an_edit_of_what_gates_read_waits(desk: BoundDesk, old: str, new: str) -> None:
    task_id = desk.reviewed()
    before = desk.fabric.get(task_id)
    desk.change(task_id, old, new)
    assert "changes what its gates read" in desk.waits(task_id)
    assert msgspec.structs.replace(desk.fabric.get(task_id), layout=None) == before


def test_an_edit_of_what_a_condition_reads_waits(desk: BoundDesk) -> None:
    (desk.root / "workflows").mkdir(exist_ok=True)
    condition = "{eq: {field: metadata.touchesAuth, value: true}}"
    hops = f"- {{id: build, role: dev}}\n- {{id: security, role: rev, dependsOn: [build], condition: {condition}}}\n"
    (desk.root / "workflows/secured.yaml").write_text(f"name: secured\nhops:\n{hops}")
    desk.fabric = _with_workflows(desk)
    task_id = desk.create(workflow="secured", metadata={"touchesAuth": True, "notes": "x"})
    desk.change(task_id, '"notes":"x"', '"notes":"y"')
    assert desk.fabric.get(task_id).metadata["notes"] == "y", "which no condition reads"
    desk.change(task_id, '"touchesAuth":true', '"touchesAuth":false')
    assert "metadata.touchesAuth" not in desk.waits(task_id)
    assert "touchesAuth" in desk.waits(task_id)
    desk.fabric.as_actor("ada").complete(task_id, agent="ada", outcome="complete")
    assert [hop["status"] for hop in desk.fabric.get(task_id).workflow["hops"]] == ["done", "ready"]
    assert '"touchesAuth":false' in desk.file(task_id).read_text(), "the person's text is still there"


def _with_workflows(desk: BoundDesk) -> Fabric:
    return Fabric(desk.store, desk.clock, BOUND, "pm", workflows=WorkflowFiles(str(desk.root)))


@pytest.mark.parametrize("folder", ["done", "ready", "blocked", "cancelled"])
def test_a_file_that_is_moved_out_of_review_waits(desk: BoundDesk, folder: str) -> None:
    task_id = desk.reviewed()
    desk.move(task_id, folder)
    assert f"takes it out of review into {folder}" in desk.waits(task_id)
    assert desk.fabric.get(task_id).status == "review"


@pytest.mark.parametrize("status", ["done", "ready", "cancelled"])
def test_a_status_line_that_leaves_review_waits(desk: BoundDesk, status: str) -> None:
    task_id = desk.reviewed()
    desk.change(task_id, 'status: "review"', f'status: "{status}"')
    assert f"takes it out of review into {status}" in desk.waits(task_id)
    assert desk.fabric.get(task_id).status == "review"


@pytest.mark.parametrize("status", ["blocked", "ready", "cancelled", "deadletter"])
def test_a_status_line_that_ends_a_run_waits(desk: BoundDesk, status: str) -> None:
    task_id = desk.create()
    desk.fabric.as_actor("ada").claim(task_id, agent="ada")
    desk.change(task_id, 'status: "in-progress"', f'status: "{status}"')
    problem = desk.fabric.show(task_id)["problem"]
    assert (problem["code"], desk.fabric.get(task_id).status) == ("edit_waits", "in-progress")
    assert "ends the run of ada" in problem["message"]
    assert [one.path for one in desk.fabric.sync().waiting] == [task_id]
    desk.fabric.sync(accept=task_id)
    assert desk.fabric.get(task_id).status == status


def test_a_file_of_a_dead_task_that_is_moved_to_begin_it_again_waits(desk: BoundDesk) -> None:
    task_id = desk.create()
    desk.fabric.cancel(task_id)
    desk.move(task_id, "ready")
    problem = desk.fabric.show(task_id)["problem"]
    assert (problem["code"], desk.fabric.get(task_id).status) == ("edit_waits", "cancelled")
    assert "begins it again" in problem["message"]
    desk.fabric.sync(accept=task_id)
    assert desk.fabric.get(task_id).status == "ready"


def test_any_other_edit_is_imported_as_ever(desk: BoundDesk) -> None:
    task_id, free = desk.reviewed(), desk.create()
    desk.change(task_id, '"Write it"', '"By hand"')
    desk.move(free, "backlog")
    desk.fabric.sync()
    assert (desk.fabric.get(task_id).title, desk.fabric.get(free).status) == ("By hand", "backlog")
    assert not desk.fabric.inbox(kind=["edit"]).items


def test_without_a_chart_and_strict_identity_nothing_waits(root: Path) -> None:
    desk = Desk(root)
    task_id = desk.create(metadata={"reviewRequired": True})
    desk.change(task_id, '"reviewRequired":true', '"reviewRequired":false')
    assert desk.fabric.get(task_id).metadata["reviewRequired"] is False
    held = desk.fabric.claim(task_id, agent="ada")
    desk.fabric.update(task_id, status="review", run=held.run_id)
    desk.move(task_id, "done")
    assert desk.fabric.get(task_id).status == "done"
    with pytest.raises(NotAllowed):
        desk.fabric.sync(accept=task_id)


def test_work_goes_on_from_the_log_and_the_file_stays_the_persons(desk: BoundDesk) -> None:
    task_id = desk.reviewed()
    edited = desk.move(task_id, "done")
    edited.write_text(edited.read_text().replace('"reviewRequired":true', '"reviewRequired":false'))
    theirs = edited.read_bytes()
    desk.fabric.as_actor("rev").reject(task_id, blockers=["not yet"])
    held = desk.fabric.as_actor("ada").claim(task_id, agent="ada")
    held.progress("half")
    (own,) = desk.root.glob(f"tasks/*/{task_id}/outputs/result.txt")
    assert (own.read_text(), own.parts[-4]) == ("kept", "in-progress"), "the task's own files follow the log"
    held.complete("did it again")
    desk.fabric.as_actor("rev").approve(task_id)
    assert (desk.fabric.get(task_id).status, desk.fabric.get(task_id).metadata) == ("done", {"reviewRequired": True})
    desk.reopen()
    assert (desk.files(task_id), edited.read_bytes()) == ([edited], theirs)


def test_an_accepted_edit_is_imported_under_the_maintainers_name(desk: BoundDesk) -> None:
    task_id = desk.reviewed()
    desk.change(task_id, '"reviewRequired":true', '"reviewRequired":false')
    desk.move(task_id, "done")
    assert desk.fabric.sync(accept=task_id).taken_in == (task_id,)
    task = desk.fabric.get(task_id)
    assert (task.status, task.metadata["reviewRequired"]) == ("done", False)
    last = [event for event in desk.events(task_id) if event.actor == "pm" and event.type == "task.updated"][-1]
    assert (last.payload["reason"], last.payload["fields"]) == ("edited by hand", ["metadata"])
    assert desk.files(task_id) == [desk.file(task_id, "done")]
    assert not desk.fabric.inbox(kind=["edit"]).items
    assert not desk.fabric.sync().waiting


def test_an_accepted_edit_is_merged_with_what_was_done_meanwhile(desk: BoundDesk) -> None:
    task_id = desk.reviewed()
    desk.change(task_id, '"reviewRequired":true', '"reviewRequired":false')
    desk.change(task_id, '"Write it"', '"By hand"')
    theirs = desk.file(task_id).read_bytes()
    desk.fabric.edit(task_id, title="By command", priority="high")
    desk.fabric.sync(accept=task_id)
    task = desk.fabric.get(task_id)
    assert (task.title, task.priority, task.metadata["reviewRequired"]) == ("By command", "high", False)
    (copy,) = desk.root.glob("tasks/*/*.md.conflict")
    assert copy.read_bytes() == theirs


@pytest.mark.parametrize("moved", [False, True])
def test_an_edit_that_is_turned_down_is_kept_beside_the_restored_file(desk: BoundDesk, moved: bool) -> None:  # noqa: FBT001
    task_id = desk.reviewed()
    ours = desk.file(task_id).read_bytes()
    desk.change(task_id, '"reviewRequired":true', '"reviewRequired":false')
    theirs = desk.file(task_id).read_bytes()
    if moved:
        desk.move(task_id, "done")
    (copy,) = desk.fabric.sync(refuse=task_id).put_aside
    assert (desk.root / copy).read_bytes() == theirs
    assert desk.files(task_id) == [desk.file(task_id, "review")]
    assert desk.file(task_id).read_bytes() == ours
    assert not desk.fabric.inbox(kind=["edit"]).items
    assert "problem" not in desk.fabric.show(task_id)


def test_a_move_that_is_turned_down_is_taken_back(desk: BoundDesk) -> None:
    task_id = desk.reviewed()
    ours = desk.file(task_id).read_bytes()
    desk.move(task_id, "done")
    assert desk.fabric.sync(refuse=task_id).put_aside == ()
    assert desk.file(task_id, "review").read_bytes() == ours
    assert desk.files(task_id) == [desk.file(task_id, "review")]


@pytest.mark.parametrize("choice", ["accept", "refuse"])
def test_only_a_maintainer_settles_an_edit_that_waits(desk: BoundDesk, choice: str) -> None:
    task_id = desk.reviewed()
    desk.move(task_id, "done")
    secret = desk.fabric.claim(desk.create(), agent="pm").secret
    before = desk.contents()
    given: dict[str, Any] = {choice: task_id}
    for fabric in (desk.fabric.as_actor("ada"), desk.fabric.as_run(str(secret))):
        with pytest.raises(AofError) as refused:
            fabric.sync(**given)
        assert (refused.value.code, bool(refused.value.hint)) == ("not_allowed", True)
    assert desk.contents() == before


def test_where_nothing_waits_there_is_nothing_to_settle(desk: BoundDesk) -> None:
    task_id = desk.reviewed()
    each: tuple[dict[str, Any], ...] = ({"accept": task_id}, {"refuse": task_id})
    for given in each:
        with pytest.raises(NothingWaits):
            desk.fabric.sync(**given)
    with pytest.raises(InvalidInput):
        desk.fabric.sync(accept=task_id, refuse=task_id)


def _reject(desk: BoundDesk, task_id: str) -> None:
    desk.fabric.as_actor("rev").reject(task_id, blockers=["not yet"])


def _accept(desk: BoundDesk, task_id: str) -> None:
    desk.fabric.sync(accept=task_id)


def _refuse(desk: BoundDesk, task_id: str) -> None:
    desk.fabric.sync(refuse=task_id)


@pytest.mark.parametrize("then", [_reject, _accept, _refuse])
def test_whatever_step_a_process_dies_at_no_byte_of_the_edit_is_lost(shm_path: Path, then: Any) -> None:
    number = 0
    while True:
        desk = BoundDesk(shm_path / str(number))
        task_id = desk.reviewed()
        desk.change(task_id, '"Write it"', '"By hand"')
        desk.change(task_id, '"reviewRequired":true', '"reviewRequired":false')
        theirs = desk.move(task_id, "done").read_bytes()
        disk = DyingDisk(number, Moment.BEFORE)
        desk.reopen(disk)
        try:
            then(desk, task_id)
            finished = True
        except Killed:
            finished = False
        desk.reopen()
        task = desk.fabric.get(task_id)
        kept = [path.read_bytes() for path in (desk.root / "tasks").rglob(f"{task_id}.md*") if path.is_file()]
        imported = (task.title, task.status) == ("By hand", "done")
        assert imported or theirs in kept, (number, disk.taken[-1:])
        assert imported or task.status in ("review", "ready")
        assert len(desk.files(task_id)) == 1
        if finished:
            return
        number += 1
