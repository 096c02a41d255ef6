"""Data of older formats opens as it is; data of newer ones is refused and stays as it is."""

from __future__ import annotations

import json
import shutil
import tarfile
from pathlib import Path

import msgspec
import pytest

from aof.config import load_settings
from aof.errors import AofError, UnsupportedVersion
from aof.kernel.model import millis
from aof.service.bootstrap import open_fabric
from aof.service.upkeep import diagnose
from tests.data.make_format_1 import shown
from tests.data.make_formats import SAMPLES as FORMATS
from tests.support.desk import Desk, contents
from tests.support.invariants import SAME_BOOT, check_invariants
from tests.support.repository import ROOT
from tests.support.same_place import settle
from tests.support.verified import verify

SAMPLES = ROOT / "tests/data"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A copy of the sample, as a clone would have it: without locks and index."""
    shutil.copytree(SAMPLES / "format-1", tmp_path / "data")
    return Desk(tmp_path / "data")


def test_data_of_format_1_lists_the_same(desk: Desk) -> None:
    expected = json.loads((SAMPLES / "format-1.json").read_text())
    desk.clock.time += 24 * 3_600_000 + 3_700_000
    found = msgspec.json.decode(msgspec.json.encode(shown(desk)))
    assert found.keys() == expected.keys()
    for task_id, task in expected.items():
        for derived in ("normalizedStatus", "waits", "children"):
            found[task_id].pop(derived, None)
            task.pop(derived, None)
        if "lease" in task:  # a run of another clone counts as alive for longer
            assert found[task_id]["lease"].pop("expiresAt") > task["lease"].pop("expiresAt")
        assert found[task_id] == task
    assert {task["status"] for task in expected.values()} == {
        "backlog", "ready", "in-progress", "review", "blocked", "done", "cancelled", "deadletter",
    }  # fmt: skip


def test_data_of_format_1_verifies_and_is_not_changed_by_looking(desk: Desk) -> None:
    assert verify(desk.store.reader).seq == sum(1 for _ in desk.store.events())
    assert desk.fabric.doctor().ok
    assert contents(desk.root) == contents(SAMPLES / "format-1")
    check_invariants(desk.root, edited=True)
    assert contents(desk.root) == contents(SAMPLES / "format-1")


def test_data_of_format_1_goes_on(desk: Desk) -> None:
    desk.clock.time += 48 * 3_600_000
    ready = "TASK-2026-03-02-001"
    run = desk.fabric.claim(ready, agent="ada").run_id
    desk.fabric.complete(ready, run=run, agent="ada", summary="done", allow_open_children=True)
    desk.fabric.approve(ready, allow_open_children=True)
    laid_out = desk.file("TASK-2026-03-02-003")
    desk.fabric.update("TASK-2026-03-02-003", status="ready")
    assert "priority: low   # some day\nsprint:\n  - 7   # or 8\n" in desk.file("TASK-2026-03-02-003").read_text()
    assert not laid_out.exists()
    check_invariants(desk.root, edited=True)


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("name", FORMATS)
def test_a_directory_of_each_released_format_goes_on_where_it_was_made(
    name: str, tmp_path: Path, *, restarted: bool
) -> None:
    with tarfile.open(SAMPLES / f"formats/{name}.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    root = tmp_path / ".aof"
    settle(root, None if restarted else SAME_BOOT)
    day = min(root.glob("events/*.jsonl")).name[: len("2026-03-02")]
    version, files = (
        (root / "aof.toml").read_text().split("schemaVersion = ")[1][0],
        len(list(root.glob("events/*.js*"))),
    )
    desk = Desk(root)
    desk.clock.time = millis(f"{day}T23:00:00.000Z")
    states = {row.title: row.status for row in desk.fabric.list().tasks}
    made = {"Made in work": "ready", "Made in other": "ready"} if name == "merged" else {}
    assert states == made | {
        "In review": "review", "Waits for the first": "ready", "Running": "in-progress", "Ready": "ready"
    }  # fmt: skip
    assert desk.fabric.show(f"TASK-{day}-001")["body"].startswith("Look at it.")
    new = desk.create("Made by the new version")
    assert new == f"TASK-{day}-{6 if made else 5:03d}"
    ready = f"TASK-{day}-004"
    run = desk.fabric.claim(ready, agent="ada").run_id
    assert desk.fabric.complete(ready, run=run, agent="ada", summary="done").status == "done"
    assert desk.fabric.approve(f"TASK-{day}-001", actor="carol").status == "done"
    told = desk.fabric.doctor()
    assert told.ok, told.problems
    assert _schema(root) == version
    assert len(list(root.glob("events/*.js*"))) == files + bool(made)  # after a merge each clone begins a lane
    if name not in ("first", "stamped"):
        assert desk.fabric.worklog_check().ok
        assert "Use JSONL" in (root / "WORKLOG.md").read_text()
        assert desk.fabric.mail_inbox(agent="bob").unread == 1
    check_invariants(root, edited=True)


def _schema(root: Path) -> str:
    return (root / "aof.toml").read_text().split("schemaVersion = ")[1][0]


def test_a_clone_of_a_directory_of_the_first_version_is_another_clone(tmp_path: Path) -> None:
    with tarfile.open(SAMPLES / "formats/first.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    shutil.rmtree(tmp_path / ".aof/locks")  # as git brings it
    desk = Desk(tmp_path / ".aof")
    assert int(desk.create().rpartition("-")[2]) > 1_000
    assert "schemaVersion = 2" in (tmp_path / ".aof/aof.toml").read_text()


@pytest.mark.parametrize("text", ["schemaVersion = 3\n", "schemaVersion = 12\nnewSetting = true\n"])
def test_a_directory_of_a_newer_format_is_refused_and_left_alone(desk: Desk, text: str) -> None:
    desk.store.close()
    (desk.root / "aof.toml").write_text(text)
    before = contents(desk.root)
    for opening in (open_fabric, diagnose):
        with pytest.raises(UnsupportedVersion) as refusal:
            opening(desk.root)
        assert refusal.value.hint
    assert contents(desk.root) == before


def test_a_file_of_a_newer_format_is_refused_and_left_alone(desk: Desk) -> None:
    task_id = "TASK-2026-03-02-001"
    desk.change(task_id, "schemaVersion: 1", "schemaVersion: 2")
    data = desk.file(task_id).read_bytes()
    assert "newer AOF" in desk.refused(task_id).hint
    assert desk.file(task_id).read_bytes() == data
    assert desk.fabric.list().total > 5


@pytest.mark.parametrize("data", [b"[storage\n", b"\xff\xfe", b"[storage]\ndurability = 'none'\n", b"unknown = 1\n"])
def test_settings_that_cannot_be_used_are_told(desk: Desk, data: bytes) -> None:
    desk.store.close()
    (desk.root / "aof.toml").write_bytes(data)
    with pytest.raises(AofError) as refusal:
        load_settings(str(desk.root))
    assert (refusal.value.code, bool(refusal.value.hint)) == ("settings_unusable", True)
    told = diagnose(desk.root)
    assert (told.ok, [problem.code for problem in told.problems]) == (False, ["settings_unusable"])
