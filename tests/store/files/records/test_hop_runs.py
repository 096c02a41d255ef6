"""Hops on disk: run files of their own, redone after a crash at any step, and not for hands to change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from aof.api.fabric import Fabric
from aof.kernel.model import Policy
from aof.store.files.definitions import WorkflowFiles
from aof.store.files.disk import Disk
from aof.store.files.store import FilesystemStore
from aof.store.memory import FixedWorkflows
from aof.testing import FakeClock
from aof.workflows.model import workflow_of
from tests.support.desk import contents
from tests.support.present import present
from tests.support.workflows import DIAMOND


class Stopped(BaseException):
    """The process has died."""


class Dying(Disk):
    """A disk under a process that dies after so many steps."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.left = steps

    def _step(self) -> None:
        if self.left == 0:
            raise Stopped
        self.left -= 1

    def write_new(self, path: str, data: bytes) -> None:
        self._step()
        super().write_new(path, data)

    def rename(self, source: str, target: str) -> None:
        self._step()
        super().rename(source, target)

    def replace(self, source: str, target: str, mode: int | None = None) -> None:
        self._step()
        super().replace(source, target, mode)

    def make_dir(self, path: str) -> None:
        self._step()
        super().make_dir(path)


def _fabric(root: Path, clock: FakeClock, disk: Disk | None = None) -> Fabric:
    store = FilesystemStore(str(root), clock, durable=False, disk=disk)
    return Fabric(store, clock, Policy(), "pm", workflows=FixedWorkflows(DIAMOND))


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock("2026-03-02T09:00:00Z")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    FilesystemStore.create(str(tmp_path / ".aof"))
    return tmp_path / ".aof"


def _two_running(root: Path, clock: FakeClock) -> tuple[str, str, str]:
    with _fabric(root, clock) as fabric:
        task = fabric.create("x", workflow="diamond").task_id
        fabric.complete(task, outcome="complete", agent="ada")
        return task, fabric.claim(task, agent="ada").run_id, fabric.claim(task, agent="bob").run_id


def test_each_hop_has_a_folder_with_the_files_of_its_runs(root: Path, clock: FakeClock) -> None:
    task, first, second = _two_running(root, clock)
    for hop, run in (("test", first), ("audit", second)):
        folder = root / "runs" / task / "hops" / hop
        assert msgspec.json.decode((folder / "run.json").read_bytes())["runId"] == run
        assert msgspec.json.decode((folder / "run_heartbeat.json").read_bytes())["hop"] == hop
    with _fabric(root, clock) as fabric:
        fabric.fail(task, run=first)
        clock.sleep(100)
        fabric.claim(task, agent="ada", hop="test")
        assert (root / "runs" / task / "hops" / "test" / "attempts" / "2" / "run.json").exists()
        assert fabric.doctor().ok


_COMMANDS: dict[str, Callable[[Fabric, str, str], object]] = {
    "complete": lambda fabric, task, run: fabric.complete(task, run=run, outcome="complete", summary="ok"),
    "fail": lambda fabric, task, run: fabric.fail(task, run=run, retryable=False),
    "release": lambda fabric, task, run: fabric.release(task, run=run),
    "block": lambda fabric, task, _run: fabric.block(task, reason="wait"),
    "cancel": lambda fabric, task, _run: fabric.cancel(task),
}


@pytest.mark.parametrize("name", _COMMANDS)
def test_after_a_crash_at_any_step_the_hops_are_as_the_log_says(name: str, tmp_path: Path, clock: FakeClock) -> None:
    for steps in range(60):
        root = tmp_path / str(steps) / ".aof"
        root.parent.mkdir()
        FilesystemStore.create(str(root))
        task, first, _ = _two_running(root, clock)
        fabric = _fabric(root, clock, Dying(steps))
        try:
            _COMMANDS[name](fabric, task, first)
            finished = True
        except Stopped:
            finished = False
        fabric.close()
        with _fabric(root, clock) as fresh:
            assert fresh.get(task).gated
            assert fresh.doctor().ok, (steps, fresh.doctor().problems)
        if finished:
            assert steps > 2
            return
    raise AssertionError("it never came to an end")


def test_a_missing_or_changed_run_file_of_a_hop_is_restored_from_the_log(root: Path, clock: FakeClock) -> None:
    task, _, _ = _two_running(root, clock)
    before = contents(root)
    folder = root / "runs" / task / "hops"
    (folder / "test" / "run.json").unlink()
    (folder / "audit" / "run.json").write_text("{}")
    with _fabric(root, clock) as fabric:
        assert {problem.code for problem in fabric.doctor().problems} == {"run_file_missing", "run_file_differs"}
        assert fabric.doctor(fix=True).ok
    kept = {path: digest for path, digest in contents(root).items() if not path.startswith("events/torn")}
    assert kept == before


def test_a_person_cannot_give_leases_end_hops_or_exchange_the_workflow(root: Path, clock: FakeClock) -> None:
    task, first, _ = _two_running(root, clock)
    path = root / "tasks" / "in-progress" / f"{task}.md"
    text = path.read_text()
    edited = text.replace('"agent":"ada","runId"', '"agent":"mallory","runId"').replace(
        '"status":"waiting"', '"status":"done"'
    )
    edited = edited.replace('"workflow":"diamond"', '"workflow":"none"').replace('title: "x"', 'title: "mine"')
    assert edited != text
    path.write_text(edited)
    with _fabric(root, clock) as fabric:
        before = workflow_of(fabric.get(task))
        assert before.hop("ship").status == "waiting"
        lease = present(before.hop("test").lease)
        assert (lease.agent, lease.run_id) == ("ada", first)
        assert fabric.get(task).routing.workflow == "diamond"
        assert fabric.get(task).title == "mine"


@pytest.mark.parametrize("folder", ["done", "review"])
def test_a_gated_task_is_not_finished_by_moving_its_file(folder: str, root: Path, clock: FakeClock) -> None:
    task, _, _ = _two_running(root, clock)
    (root / "tasks" / "in-progress" / f"{task}.md").rename(root / "tasks" / folder / f"{task}.md")
    with _fabric(root, clock) as fabric, pytest.raises(Exception, match="DAG workflow"):
        fabric.get(task)


def test_a_file_written_by_hand_begins_its_workflow_when_it_is_first_taken(root: Path, clock: FakeClock) -> None:
    path = root / "tasks" / "ready" / "TASK-2026-03-02-009.md"
    path.write_text(
        "---\ntitle: By hand\nrouting: {workflow: diamond}\nworkflow: {hops: [{id: build, status: done}]}\n---\n"
    )
    with _fabric(root, clock) as fabric:
        claimed = fabric.claim("TASK-2026-03-02-009", agent="ada")
        assert claimed.hop == "build"
        assert workflow_of(fabric.get("009")).hop("ship").status == "waiting"
        assert fabric.doctor().ok


def test_a_template_in_a_file_is_checked_with_its_lines(root: Path) -> None:
    (root / "workflows").mkdir()
    bad = "name: bad\nhops:\n  - {id: a, role: r}\n  - id: b\n    role: r\n    timeout: soon\n    dependsOn: [aa]\n"
    (root / "workflows" / "bad.yaml").write_text(bad)
    (root / "workflows" / "odd.yaml").write_text("name: odd\nhops: &x []\n")
    files = WorkflowFiles(str(root))
    report = present(files.report("bad"))
    assert {(finding.code, finding.line) for finding in report.findings} == {("bad_duration", 6), ("unknown_hop", 7)}
    odd = present(files.report("odd"))
    assert (odd.ok, odd.findings[0].line) == (False, 2)
    assert files.names() == ("bad", "odd")
    assert files.report("../bad") is None
    assert files.report("none") is None


def test_what_a_worker_has_printed_survives_a_power_cut(tmp_path: Path) -> None:
    root, clock = tmp_path / ".aof", FakeClock("2026-03-02T09:00:00Z")
    FilesystemStore.create(str(root))
    workflows = FixedWorkflows(DIAMOND)
    with Fabric(FilesystemStore(str(root), clock, durable=False), clock, Policy(), "pm", workflows=workflows) as fabric:
        gated, plain = fabric.create("x", workflow="diamond").task_id, fabric.create("y").task_id
        claims = fabric.claim(gated, agent="ada", worker="process"), fabric.claim(plain, agent="bob", worker="process")
    logs = [root / "runs" / gated / "hops/build/attempts/1/output.log", root / "runs" / plain / "attempts/1/output.log"]
    for log in logs:
        log.parent.mkdir(parents=True)
        log.write_text("half of it\n")
    later = FilesystemStore(str(root), clock, durable=False, boot_id=lambda: "the-next-boot")
    with Fabric(later, clock, Policy(), "pm", workflows=workflows) as fabric:
        assert [log.read_text() for log in logs] == ["half of it\n"] * 2
        assert not list((root / "events/torn").glob("*.runs*"))
        for task, claimed in zip((gated, plain), claims, strict=True):
            assert fabric.heartbeat(task, run=claimed.run_id).run_id == claimed.run_id
        assert fabric.doctor().ok
