"""The log is gone, or a part of it: every verb says so instead of "no tasks", and doctor begins a new one."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.command_line import Aof, Said

VERBS = (
    "list", "ready", "board", "inbox", "snapshot", "log", "timeline", "flow", "verify", "sync", "merge",
    "show 001", "comment 001 hello", "edit 001 --title Another", "claim --agent ada", "create More", "search First",
    "worklog show", "worklog now busy", "mail list", "export out.tgz",
)  # fmt: skip


@pytest.fixture
def data(aof: Aof, tmp_path: Path) -> Path:
    """Two tasks, one of which was run, and documents."""
    assert aof("create", "First").code == 0
    assert aof("create", "Second").code == 0
    assert aof("claim", "001", "--agent", "bob").code == 0
    assert aof("worklog", "now", "the parser").code == 0
    assert aof("list").code == 0
    return tmp_path / ".aof"


def deleted(data: Path) -> None:
    for log in (data / "events").glob("*.jsonl"):
        log.unlink()


def emptied(data: Path) -> None:
    for log in (data / "events").glob("*.jsonl"):
        os.truncate(log, 0)


def with_its_state(data: Path) -> None:
    deleted(data)
    (data / "locks/log").unlink()


def with_all_locks(data: Path) -> None:
    deleted(data)
    shutil.rmtree(data / "locks")


def with_its_folder(data: Path) -> None:
    shutil.rmtree(data / "events")


def with_the_tasks(data: Path) -> None:
    deleted(data)
    for task in data.glob("tasks/*/*.md"):
        task.unlink()


def with_tasks_and_runs(data: Path) -> None:
    with_the_tasks(data)
    shutil.rmtree(data / "runs")


def all_but_the_index(data: Path) -> None:
    with_tasks_and_runs(data)
    for path in data.glob("locks/*"):
        if path.name not in ("index", "checkpoint"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def is_damage(said: Said) -> bool:
    return said.code == 5 and "[log_damaged]" in said.err and said.out == "" and "Traceback" not in said.err


def contents(data: Path) -> dict[str, bytes]:
    """Everything but the caches."""
    kept = (path for path in data.rglob("*") if path.is_file() and path.relative_to(data).parts[0] != "locks")
    return {str(path.relative_to(data)): path.read_bytes() for path in kept if path.name != "index.sqlite"}


@pytest.mark.parametrize(
    "lose",
    [deleted, emptied, with_its_state, with_all_locks, with_its_folder, with_the_tasks, with_tasks_and_runs,
     all_but_the_index],
)  # fmt: skip
def test_every_verb_says_that_the_log_is_gone_and_doctor_begins_a_new_one(
    aof: Aof, data: Path, lose: Callable[[Path], None]
) -> None:
    lose(data)
    before = contents(data)
    for verb in VERBS:
        said = aof(*verb.split())
        assert is_damage(said), f"{verb}: {said.code} {said.out} {said.err}"
        assert "aof doctor" in said.err
    assert contents(data) == before, "nothing was changed"
    found = aof("doctor")
    assert (found.code, "log_lacks_events" in found.out) == (5, True)
    left = {path.name for path in data.glob("tasks/*/*.md")}
    assert aof("doctor", "--fix").code == 0
    assert {path.name for path in data.glob("tasks/*/*.md")} == left
    listed = aof("list")
    assert listed.code == 0
    assert ("First" in listed.out, "Second" in listed.out) == (bool(left), bool(left))
    assert aof("create", "Third").code == 0
    after = set(contents(data).values())
    assert {text for name, text in before.items() if name.startswith("runs/")} <= after, "nothing is thrown away"
    assert b"the parser" in (data / "WORKLOG.md").read_bytes()


def test_doctor_restores_the_lease_so_that_its_holder_goes_on(aof: Aof, data: Path) -> None:
    deleted(data)
    assert aof("doctor", "--fix").code == 0
    assert aof("heartbeat", "001", "--agent", "bob").code == 0
    assert aof("complete", "001", "--agent", "bob", "--summary", "done").code == 0


def test_a_file_of_the_log_that_is_put_back_ends_the_damage(aof: Aof, data: Path, tmp_path: Path) -> None:
    (log,) = (data / "events").glob("*.jsonl")
    log.rename(tmp_path / log.name)
    assert is_damage(aof("list"))
    (tmp_path / log.name).rename(log)
    assert "First" in aof("list").out
    assert aof("comment", "001", "on").code == 0


def test_init_makes_no_new_log_beside_tasks_that_had_one(aof: Aof, data: Path) -> None:
    with_its_folder(data)
    said = aof("init")
    assert is_damage(said), said.out
    assert not (data / "events").exists()


HAND_WRITTEN = "---\ntitle: By hand\n---\n\nA brief.\n"


def test_tasks_written_by_hand_in_a_new_directory_are_still_imported(aof: Aof, tmp_path: Path) -> None:
    (tmp_path / ".aof/tasks/ready/plan.md").write_text(HAND_WRITTEN)
    assert "By hand" not in aof("list").out
    assert aof("sync").code == 0
    assert "By hand" in aof("list").out


def git(*words: str, cwd: Path) -> None:
    subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main", *words],
        cwd=cwd, check=True, capture_output=True,
    )  # fmt: skip


def test_a_checkout_of_the_state_before_the_first_event_is_no_damage(aof: Aof, tmp_path: Path) -> None:
    git("init", cwd=tmp_path)
    git("add", "-A", cwd=tmp_path)
    git("commit", "-m", "empty", cwd=tmp_path)
    assert aof("create", "First").code == 0
    assert "First" in aof("list").out
    git("add", "-A", cwd=tmp_path)
    git("commit", "-m", "one", cwd=tmp_path)
    git("checkout", "HEAD~", cwd=tmp_path)
    assert "no tasks yet" in aof("list").out
    git("checkout", "main", cwd=tmp_path)
    assert "First" in aof("list").out
    assert aof("comment", "001", "on").code == 0


def test_a_clone_whose_log_was_never_committed_is_told(aof: Aof, data: Path, tmp_path: Path) -> None:
    git("init", cwd=tmp_path)
    with (data / ".gitignore").open("a") as ignored:
        ignored.write("events/*.jsonl\n")
    git("add", "-A", cwd=tmp_path)
    git("commit", "-m", "tasks only", cwd=tmp_path)
    git("clone", ".", "clone", cwd=tmp_path)
    assert is_damage(aof("--data-dir", str(tmp_path / "clone/.aof"), "list"))
