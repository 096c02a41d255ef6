"""Pipes, devices, links and huge files where a task, a chart or a workflow belongs: they are named, never read."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from aof.api.fabric import Fabric
from aof.errors import AofError, SettingsUnusable, UnreadableTask, UnusableOrgChart
from aof.maintenance import tokens
from aof.service.bootstrap import init_data_dir, open_fabric
from aof.service.serve import create_token, tokens_of
from aof.store.files.definitions import OrgFile
from aof.store.files.disk import LARGEST, read, unfit

Make = Callable[[Path], None]


def pipe(path: Path) -> None:
    """A named pipe that nobody writes to."""
    os.mkfifo(path)


def huge(path: Path) -> None:
    """A file of many gigabytes, that takes no space."""
    with path.open("wb") as file:
        file.truncate(1 << 38)


def link(path: Path) -> None:
    """A link to something that never ends."""
    path.symlink_to("/dev/zero")


def link_to_text(path: Path) -> None:
    """A link to a file somewhere else."""
    other = path.parent.parent.parent / "elsewhere.md"
    other.write_text("# Elsewhere\n")
    path.symlink_to(other)


def listening(path: Path) -> None:
    """A socket."""
    here = Path.cwd()
    os.chdir(path.parent)  # the path of a socket must be short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


UNFIT = [pipe, huge, link, listening]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A new data directory."""
    return Path(init_data_dir(tmp_path / ".aof")[0])


def problems(fabric: Fabric) -> dict[str, str]:
    """What the doctor says, by path."""
    return {one.path: f"{one.code}: {one.detail}" for one in fabric.doctor().problems}


def codes(fabric: Fabric) -> dict[str, str]:
    """The code of what the doctor says, by path."""
    return {one.path: one.code for one in fabric.doctor().problems}


@pytest.mark.parametrize("make", [*UNFIT, link_to_text], ids=lambda make: make.__name__)
def test_a_task_whose_file_is_no_file_is_named_and_the_others_go_on(root: Path, make: Make) -> None:
    with open_fabric(root, actor="pm") as fabric:
        bad, good = fabric.create("Bad").task_id, fabric.create("Good").task_id
        path = root / "tasks" / "ready" / f"{bad}.md"
        path.unlink()
        make(path)

        assert {row.id: row.state for row in fabric.list().tasks} == {bad: "unknown", good: None}
        with pytest.raises(UnreadableTask, match=r"not a regular file|bytes"):
            fabric.claim(bad, agent="ada")
        shown = fabric.show(bad)
        assert (shown["normalizedStatus"], bad in shown["problem"]["message"]) == ("unknown", True)
        fabric.claim(good, agent="ada")
        assert "unreadable_task" in problems(fabric)[f"tasks/ready/{bad}.md"]


@pytest.mark.parametrize("make", UNFIT, ids=lambda make: make.__name__)
def test_a_new_file_that_is_no_file_is_named_and_never_taken_in(root: Path, make: Make) -> None:
    make(root / "tasks" / "ready" / "TASK-2026-01-01-001.md")
    make(root / "tasks" / "ready" / "notes.md")
    with open_fabric(root, actor="pm") as fabric:
        fabric.sync()
        assert fabric.list().total <= 1
        found = problems(fabric)
        assert "tasks/ready/TASK-2026-01-01-001.md" in found
        if make is not huge:  # a Markdown file without an ID waits to be named
            assert "not a task's file" in found["tasks/ready/notes.md"]


@pytest.mark.parametrize("make", UNFIT, ids=lambda make: make.__name__)
def test_an_org_chart_that_is_no_file_takes_no_rule_out_of_force(root: Path, make: Make) -> None:
    (root / "org").mkdir(exist_ok=True)
    chart = root / "org" / "org-chart.yaml"
    chart.unlink(missing_ok=True)
    make(chart)
    report = OrgFile(str(root)).report()
    assert report.state == "unreadable"
    assert report.findings[0].code == "unreadable"
    with open_fabric(root, actor="pm") as fabric:
        with pytest.raises(UnusableOrgChart, match="cannot be used"):
            fabric.create("Nobody knows who may")
        assert "org_chart_unusable: " in problems(fabric)["org/org-chart.yaml"]


@pytest.mark.parametrize("make", UNFIT, ids=lambda make: make.__name__)
def test_a_workflow_that_is_no_file_is_named(root: Path, make: Make) -> None:
    (root / "workflows").mkdir(exist_ok=True)
    make(root / "workflows" / "odd.yaml")
    with open_fabric(root, actor="pm") as fabric:
        (report,) = fabric.workflow_check()
        assert not report.ok
        assert "cannot be read" in report.findings[0].detail
        assert codes(fabric)["workflows/odd.yaml"] == "unreadable_file"


@pytest.mark.parametrize("make", UNFIT, ids=lambda make: make.__name__)
def test_a_file_of_a_run_that_is_no_file_keeps_nobody_waiting(root: Path, make: Make) -> None:
    with open_fabric(root, actor="pm") as fabric:
        task_id = fabric.create("Run").task_id
        fabric.claim(task_id, agent="ada")
        path = root / "runs" / task_id / "run_heartbeat.json"
        path.unlink()
        make(path)

        assert fabric.show(task_id)["status"] == "in-progress"


def test_a_file_that_grows_beyond_the_limit_while_it_is_read_is_given_up(tmp_path: Path) -> None:
    path = tmp_path / "endless"
    path.write_bytes(b"x" * 20_000)
    with pytest.raises(OSError, match="bytes"):
        read(str(path), limit=10_000)
    with pytest.raises(OSError, match="not a regular file"):
        read("/dev/zero")
    assert read(str(path)) == b"x" * 20_000
    assert read(str(tmp_path / "none")) is None
    assert unfit(str(path)) is None
    assert "device" in str(unfit("/dev/zero"))
    assert LARGEST > 10 * 1_000_000


@pytest.mark.parametrize("make", UNFIT, ids=lambda make: make.__name__)
def test_settings_that_are_no_file_are_named_and_nobody_waits_for_them(root: Path, make: Make) -> None:
    (root / "aof.toml").unlink()
    make(root / "aof.toml")
    with pytest.raises(SettingsUnusable, match=r"not a regular file|bytes"):
        open_fabric(root, actor="pm")


@pytest.mark.parametrize("make", UNFIT, ids=lambda make: make.__name__)
def test_tokens_that_are_no_file_are_named_and_let_nobody_in(root: Path, make: Make) -> None:
    token = create_token(str(root), "ada", None).token
    known = tokens_of(str(root))
    assert tokens.recognise(known, token, 0) is not None
    (root / "tokens.json").unlink()
    make(root / "tokens.json")
    for ask in (lambda: tokens.recognise(known, token, 0), lambda: create_token(str(root), "bob", None)):
        with pytest.raises(AofError, match=r"not a regular file|bytes|symbolic link"):
            ask()


@pytest.mark.parametrize("make", UNFIT, ids=lambda make: make.__name__)
def test_what_is_kept_of_a_chart_and_is_no_file_only_costs_time(root: Path, make: Make) -> None:
    (root / "org").mkdir(exist_ok=True)
    (root / "org/org-chart.yaml").write_text("schemaVersion: 1\nagents: [{id: ada}]\n")
    make(root / "locks/org-chart.json")
    with open_fabric(root, actor="pm") as fabric:
        assert [agent.id for agent in fabric.org.agents] == ["ada"]
