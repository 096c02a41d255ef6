"""Symbolic links below a data directory: nothing is ever written through one, and each is told with its path."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from selectors import DefaultSelector
from typing import Any

import pytest

import aof
from aof.errors import AofError, InvalidInput, LinkRefused, RunnerFailed
from aof.kernel.ports import Ended, Notification, Token, Work
from aof.maintenance import tokens
from aof.service import serve
from aof.service.clock import SystemClock
from aof.service.notify import FileNotifier
from aof.service.runners.process_runner import ProcessRunner
from aof.store.files.disk import Disk
from aof.store.files.paths import DIRECTORIES, Paths
from aof.store.files.service_files import TokenFile
from aof.support.confined_folder import ConfinedFolder, LinkInTheWay
from tests.support import terminal


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A data directory with one ready task and one that has had a run."""
    path, _ = aof.init(tmp_path / "data")
    with aof.open(path, actor="tester") as fabric:
        fabric.create("one", review=False)
        fabric.create("two", review=False)
        fabric.claim("002", agent="ada")
        fabric.release("002", agent="ada")
    return tmp_path / "data"


def command_on(root: Path, *words: str) -> terminal.Ended:
    return terminal.aof("--data-dir", str(root), *words, cwd=root.parent)


def lead_out(path: Path, outside: Path) -> Path:
    """Move what is there out of the data directory, and leave a link to it."""
    outside.mkdir(exist_ok=True)
    target = outside / "moved"
    if path.exists():
        shutil.move(path, target)
    else:
        target.mkdir()
    path.symlink_to(target)
    return target


def content(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("name", DIRECTORIES)
def test_a_folder_that_is_a_link_is_refused_with_its_path(root: Path, tmp_path: Path, name: str) -> None:
    target = lead_out(root / name, tmp_path / "outside")
    before = content(target)
    told = command_on(root, "create", "no", "--json")
    assert told.code != 0
    assert told.error["code"] == "link_refused"
    assert str(root / name) in told.error["message"]
    assert content(target) == before
    found = command_on(root, "doctor", "--fix", "--json")
    assert found.code == 5
    assert ("link_in_the_way", name) in {(one["code"], one["path"]) for one in found.data["problems"]}
    assert content(target) == before


@pytest.mark.parametrize("name", ["tasks/in-progress", "runs", "tmp"])
def test_a_running_process_notices_a_folder_that_became_a_link(root: Path, tmp_path: Path, name: str) -> None:
    with aof.open(root, actor="tester") as fabric:
        fabric.create("three")
        seq = fabric.store.head()
        target = lead_out(root / name, tmp_path / "outside")
        before = content(target)
        with pytest.raises(LinkRefused) as caught:
            fabric.claim("001", agent="ada")
        assert caught.value.details["path"] == str(root / name)
        assert content(target) == before
        (root / name).unlink()
        shutil.move(target, root / name)
        assert fabric.store.head() == seq, "it was refused before it was in the log"
        assert fabric.claim("001", agent="ada").attempt == 1


@pytest.mark.parametrize("name", ["", "/attempts", "/attempts/1"])
def test_a_linked_folder_of_runs_is_refused_before_anything_is_logged(root: Path, tmp_path: Path, name: str) -> None:
    task_id = next(path.name for path in (root / "runs").glob("TASK-*"))
    place = root / f"runs/{task_id}{name}"
    place.parent.mkdir(exist_ok=True)
    target = lead_out(place, tmp_path / "outside")
    before = content(target)
    with aof.open(root, actor="tester") as fabric:
        seq = fabric.store.head()
        with pytest.raises(LinkRefused, match="symbolic link") as caught:
            fabric.claim("002", agent="ada")
        assert caught.value.details["path"] == str(place)
        assert fabric.store.head() == seq
        problems = fabric.doctor().problems
    assert content(target) == before
    assert ("link_in_the_way", f"runs/{task_id}{name}") in {(one.code, one.path) for one in problems}


def test_a_linked_temporary_file_is_refused_and_what_it_leads_to_stays(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where somebody has guessed its name, which has a random part."""
    victim = tmp_path / "victim"
    victim.write_text("mine")
    guessed = root / "tmp/guessed"
    guessed.symlink_to(victim)
    monkeypatch.setattr(Paths, "temporary_file", lambda _paths, _name: str(guessed))
    with aof.open(root, actor="tester") as fabric, pytest.raises(AofError):
        fabric.edit("001", title="another")
    assert victim.read_text() == "mine"


def test_what_a_dead_writer_left_is_replaced_also_where_it_has_another_name_elsewhere(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hard link to the leftover keeps its content: the new version is a file of its own."""
    left, elsewhere = root / "tmp/guessed", tmp_path / "elsewhere"
    monkeypatch.setattr(Paths, "temporary_file", lambda _paths, _name: str(left))
    left.write_text("half")
    os.link(left, elsewhere)
    with aof.open(root, actor="tester") as fabric:
        fabric.edit("001", title="another")
        assert fabric.get("001").title == "another"
    assert elsewhere.read_text() == "half"


@pytest.mark.parametrize("name", ["index.sqlite", "tokens.json", ".gitattributes"])
def test_a_single_file_that_is_a_link_is_never_written_through(root: Path, tmp_path: Path, name: str) -> None:
    victim = tmp_path / "victim"
    victim.write_text("[]")
    (root / name).unlink(missing_ok=True)
    (root / name).symlink_to(victim)
    acts: dict[str, Callable[[], object]] = {
        "index.sqlite": lambda: command_on(root, "list"),
        "tokens.json": lambda: _add_token(root),
        ".gitattributes": lambda: command_on(root, "create", "three"),
    }
    try:
        acts[name]()
    except AofError as error:
        assert error.code == "link_refused"  # noqa: PT017 - some refuse it, and some can do without
    assert victim.read_text() == "[]"
    assert (root / name).is_symlink()
    found = command_on(root, "doctor", "--fix", "--json").data["problems"]
    assert ("link_in_the_way", name) in {(one["code"], one["path"]) for one in found}
    assert victim.read_text() == "[]"


def _add_token(root: Path) -> None:
    token = Token(id="t1", actor="ada", role="agent", digest="0" * 64, created_at="2026-02-21T00:00:00.000Z")
    TokenFile(str(root), SystemClock()).change(add=token)


_CHART = 'agents: [{id: "mallory"}]\n'
_SECRET = "a line that belongs to somebody else"


@pytest.mark.parametrize("name", ["workflows/x.yaml", "workflows"])
def test_a_linked_workflow_is_refused_and_nothing_of_it_is_told(root: Path, tmp_path: Path, name: str) -> None:
    (root / "workflows").mkdir(exist_ok=True)
    (root / "workflows/x.yaml").write_text(f"name: x\n{_SECRET}: [\n")
    lead_out(root / name, tmp_path / "outside")
    made = command_on(root, "create", "no", "--workflow", "x", "--json")
    assert (made.code != 0, "symbolic link" in made.out) == (True, True)
    shown = command_on(root, "workflow", "check", "x", "--json")
    assert shown.code != 0
    assert "symbolic link" in shown.out
    assert _SECRET not in made.out + made.err + shown.out + shown.err
    assert f"link_in_the_way {name}" in _doctor(root)


@pytest.mark.parametrize("name", ["org/org-chart.yaml", "org"])
def test_a_linked_org_chart_gives_nobody_a_right_and_takes_no_gate_away(root: Path, tmp_path: Path, name: str) -> None:
    (root / "org").mkdir(exist_ok=True)
    (root / "org/org-chart.yaml").write_text(_CHART)
    lead_out(root / name, tmp_path / "outside")
    refused = command_on(root, "create", "no", "--json")
    assert refused.error["code"] == "unusable_org_chart"
    assert "symbolic link" in refused.error["message"]
    assert f"link_in_the_way {name}" in _doctor(root)


@pytest.mark.parametrize("name", ["templates/bug.md", "templates"])
def test_a_linked_template_is_refused(root: Path, tmp_path: Path, name: str) -> None:
    (root / "templates").mkdir(exist_ok=True)
    (root / "templates/bug.md").write_text(f"---\ntitle: bug\n---\n{_SECRET}\n")
    lead_out(root / name, tmp_path / "outside")
    refused = command_on(root, "create", "--template", "bug", "no", "--json")
    assert refused.code != 0
    assert "symbolic link" in refused.error["message"]
    assert f"link_in_the_way {name}" in _doctor(root)


@pytest.mark.parametrize("name", ["aof.toml", "jobs.json"])
def test_linked_settings_and_jobs_are_refused(root: Path, tmp_path: Path, name: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "theirs").write_text("schemaVersion = 1\n" if name == "aof.toml" else "{}")
    (root / name).unlink(missing_ok=True)
    (root / name).symlink_to(outside / "theirs")
    refused = command_on(root, "job", "list", "--json")
    assert refused.code != 0
    assert "symbolic link" in refused.error["message"]


def test_tokens_of_another_directory_are_not_used_through_a_link(root: Path, tmp_path: Path) -> None:
    other, _ = aof.init(tmp_path / "other")
    made = serve.create_token(str(other), "eve", None, scope="admin")
    (root / "tokens.json").symlink_to(Path(other) / "tokens.json")
    with pytest.raises(InvalidInput, match="it is a symbolic link"):
        tokens.recognise(serve.tokens_of(str(root)), made.token, 0)


def _doctor(root: Path) -> set[str]:
    found = command_on(root, "doctor", "--json").data["problems"]
    return {f"{one['code']} {one['path']}" for one in found}


@pytest.mark.parametrize("name", ["locks/log", "locks/stripe-01", "locks/flushed", "locks/heads/2026-02-21"])
def test_a_lock_or_note_that_is_a_link_is_not_opened(root: Path, tmp_path: Path, name: str) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    place = root / name
    place.unlink(missing_ok=True)
    place.symlink_to(victim)
    disk = Disk()
    disk.bind(str(root))
    with pytest.raises(LinkInTheWay):
        disk.open_state(str(place))
    command_on(root, "create", "three")
    assert victim.read_text() == "mine"


def test_the_data_directory_itself_may_be_reached_through_a_link(root: Path, tmp_path: Path) -> None:
    (tmp_path / "way").symlink_to(root)
    with aof.open(tmp_path / "way", actor="tester") as fabric:
        assert fabric.claim("001", agent="ada").attempt == 1
        assert fabric.doctor().ok
    assert command_on(tmp_path / "way", "doctor").code == 0


def test_init_writes_through_no_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "data").mkdir()
    (tmp_path / "data/tasks").symlink_to(outside)
    told = command_on(tmp_path / "data", "init", "--json")
    assert told.error["code"] == "link_refused"
    assert list(outside.iterdir()) == []


def test_a_folder_that_was_replaced_below_a_running_store_is_written_to(root: Path, tmp_path: Path) -> None:
    """As `git checkout` or a restore does it: another folder of the same name, not the one that is still open."""
    with aof.open(root, actor="tester") as fabric:
        first = fabric.create("three")
        shutil.copytree(root / "tasks", tmp_path / "copy")
        shutil.move(root / "tasks", tmp_path / "old")
        shutil.move(tmp_path / "copy", root / "tasks")
        second = fabric.create("four")
        assert (root / second.file_path).is_file()
        assert (root / first.file_path).is_file()
        assert not list((tmp_path / "old").rglob(f"{second.task_id}.md"))


def test_paths_that_lead_up_or_out_are_refused(tmp_path: Path) -> None:
    (tmp_path / "data/runs").mkdir(parents=True)
    beneath = ConfinedFolder(str(tmp_path / "data"))
    for path in ("runs/../../x", "../x", "runs/..", "runs/./x/y", "/x"):
        with pytest.raises(OSError, match=r"not beneath|No such file"):
            beneath.open(f"{tmp_path}/data/{path}", os.O_WRONLY | os.O_CREAT)
    with pytest.raises(OSError, match="not beneath"):
        beneath.open(f"{tmp_path}/other/x", os.O_WRONLY | os.O_CREAT)
    assert not (tmp_path / "x").exists()


def test_open_folders_are_bounded_and_closed(tmp_path: Path) -> None:
    for number in range(100):
        (tmp_path / f"data/runs/{number}").mkdir(parents=True)
    before = len(os.listdir("/proc/self/fd"))
    beneath = ConfinedFolder(str(tmp_path / "data"))
    for number in range(100):
        os.close(beneath.open(f"{tmp_path}/data/runs/{number}/x", os.O_WRONLY | os.O_CREAT))
    assert len(os.listdir("/proc/self/fd")) - before <= 32
    beneath.close()
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("file", ["notes.jsonl", "../notes.jsonl"])
def test_notifications_stay_in_the_data_directory(root: Path, tmp_path: Path, file: str) -> None:
    victim = tmp_path / "notes.jsonl"
    victim.write_text("mine")
    if file == "notes.jsonl":
        (root / file).symlink_to(victim)
    at = "2026-02-21T00:00:00.000Z"
    note = Notification(
        task_id="TASK-2026-02-21-001", title="x", from_status="review", status="done", actor="ada", timestamp=at, seq=1
    )
    with pytest.raises(OSError, match=r"link|beneath"):
        FileNotifier(str(root), file).notify(note)
    assert victim.read_text() == "mine"


class _Nobody:
    """Hears nothing of the worker, because none is started."""

    def said(self, work: Work, text: str) -> None:
        raise AssertionError(work, text)

    def ended(self, ended: Ended) -> None:
        raise AssertionError(ended)


@pytest.mark.parametrize("name", ["", "/attempts", "/attempts/1", "/attempts/1/brief.md"])
def test_a_runner_writes_no_brief_through_a_link(root: Path, tmp_path: Path, name: str) -> None:
    task_id = next((root / "tasks/ready").glob("TASK-*-001.md")).stem
    place = root / f"runs/{task_id}{name}"
    place.parent.mkdir(parents=True, exist_ok=True)
    victim = tmp_path / "victim"
    if name.endswith(".md"):
        victim.write_text("mine")
    else:
        victim.mkdir()
    place.symlink_to(victim)
    named: dict[str, Any] = {"task_id": task_id, "place": task_id, "run_id": "RUN-1", "agent": "ada"}
    work = Work(**named, epoch=1, attempt=1, command=(sys.executable, "-c", "pass"), brief="mine now")
    with DefaultSelector() as selector, pytest.raises(RunnerFailed, match="symbolic link"):
        ProcessRunner(str(root), selector, SystemClock(), _Nobody()).start(work)
    assert victim.read_text() == "mine" if victim.is_file() else list(victim.iterdir()) == []
