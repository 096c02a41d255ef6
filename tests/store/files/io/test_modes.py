"""Who may read and write the files of a data directory, and what becomes of the modes that others chose."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import aof
from aof.errors import InvalidInput, LockTimeout
from aof.kernel.ports import Token
from aof.service.clock import SystemClock
from aof.store.files.locks import Locks
from aof.store.files.service_files import TokenFile
from tests.support.terminal import aof as command

NOBODY = 65534
HOLD = """
import fcntl, os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.setuid(int(sys.argv[2]))
fcntl.flock(fd, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture(params=[0o022, 0o077, 0o002, 0o000], ids=lambda umask: f"umask {umask:03o}")
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    """Every process has one."""
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def modes(root: Path) -> tuple[set[int], set[int]]:
    """The modes of all folders, and of all files."""
    below = [root, *root.rglob("*")]
    return {mode(path) for path in below if path.is_dir()}, {mode(path) for path in below if path.is_file()}


def work(root: Path) -> None:
    """Make a file of every kind."""
    with aof.open(root, actor="tester") as fabric:
        for title in ("one", "two"):
            fabric.create(title, review=False)
        run = fabric.claim("001", agent="ada").run_id
        fabric.heartbeat("001", run=run)
        fabric.release("001", run=run)
        run = fabric.claim("001", agent="ada").run_id
        fabric.complete("001", run=run, summary="done")
        fabric.list()
        fabric.archive("001")
        assert fabric.doctor().advice == ()


@pytest.mark.usefixtures("umask")
def test_a_new_data_directory_is_its_owners_alone(tmp_path: Path) -> None:
    aof.init(tmp_path / "data")
    work(tmp_path / "data")
    assert modes(tmp_path / "data") == ({0o700}, {0o600})


@pytest.mark.usefixtures("umask")
def test_a_shared_one_is_its_groups_whatever_the_umask_says(tmp_path: Path) -> None:
    told = command("--data-dir", str(tmp_path / "data"), "init", "--shared", "group", "--json", cwd=tmp_path)
    assert told.code == 0, told.out
    assert 'shared = "group"' in (tmp_path / "data/aof.toml").read_text().splitlines()[4]
    work(tmp_path / "data")
    assert modes(tmp_path / "data") == ({0o2770}, {0o660})
    aof.init(tmp_path / "data", shared="group")
    with pytest.raises(InvalidInput, match="already"):
        aof.init(tmp_path / "data", shared="owner")


def test_nobody_else_is_shared_with(tmp_path: Path) -> None:
    told = command("--data-dir", str(tmp_path / "data"), "init", "--shared", "world", "--json", cwd=tmp_path)
    assert (told.code, told.error["code"]) == (1, "invalid") or told.code == 2
    assert not (tmp_path / "data").exists()


def test_an_empty_folder_that_was_made_for_it_is_closed_and_a_full_one_is_left(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir(mode=0o755)
    (tmp_path / "full").mkdir(mode=0o755)
    (tmp_path / "full/mine.txt").write_text("mine")
    (tmp_path / "full").chmod(0o755)
    for name in ("empty", "full"):
        aof.init(tmp_path / name)
    assert (mode(tmp_path / "empty"), mode(tmp_path / "full")) == (0o700, 0o755)
    assert (mode(tmp_path / "full/tasks"), mode(tmp_path / "full/aof.toml")) == (0o700, 0o600)
    with aof.open(tmp_path / "full", actor="tester") as fabric:
        assert mode(tmp_path / "full" / fabric.create("one").file_path) == 0o600


@pytest.fixture
def loose(tmp_path: Path) -> Path:
    """A data directory as older versions and git make it."""
    root = tmp_path / "data"
    aof.init(root)
    with aof.open(root, actor="tester") as fabric:
        fabric.create("one", review=False)
        run = fabric.claim("001", agent="ada").run_id
        fabric.release("001", run=run)
    for path in (root, *root.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return root


def test_an_existing_one_keeps_its_modes_and_so_do_its_files_when_they_are_rewritten(loose: Path) -> None:
    (task,) = (loose / "tasks/ready").glob("TASK-*.md")
    task.chmod(0o640)
    with aof.open(loose, actor="tester") as fabric:
        for number in range(12):  # first renamed over, later exchanged
            fabric.edit("001", title=f"one {number}")
            assert mode(task) == 0o640
        made = loose / fabric.create("two").file_path
        fabric.claim("001", agent="ada")
    assert mode(made) == 0o644 & ~_umask()
    assert mode(next((loose / "tasks/in-progress").glob("TASK-*-001.md"))) == 0o640
    assert mode(loose) == 0o755


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def test_doctor_advises_and_tightens_only_with_fix(loose: Path, tmp_path: Path) -> None:
    told = command("--data-dir", str(loose), "doctor", "--json", cwd=tmp_path)
    assert (told.code, told.data["ok"], told.data["problems"]) == (0, True, [])
    assert [one["code"] for one in told.data["advice"]] == ["open_to_others"]
    assert "--fix" in told.data["advice"][0]["fix"]
    assert mode(loose / "events") == 0o755, "a look changes nothing"
    assert "advice" in command("--data-dir", str(loose), "doctor", cwd=tmp_path).out
    fixed = command("--data-dir", str(loose), "doctor", "--fix", "--json", cwd=tmp_path)
    assert (fixed.code, fixed.data["advice"]) == (0, [])
    assert "open_to_others" in [one["code"] for one in fixed.data["healed"]]
    work(loose)
    assert modes(loose) == ({0o700}, {0o600})


def test_a_setting_shares_an_existing_one_with_doctors_help(loose: Path, tmp_path: Path) -> None:
    settings = loose / "aof.toml"
    settings.write_text(settings.read_text().replace('# shared = "group"', 'shared = "group"'))
    assert command("--data-dir", str(loose), "doctor", "--fix", cwd=tmp_path).code == 0
    work(loose)
    assert modes(loose) == ({0o2770}, {0o660})


def test_fix_changes_no_mode_through_a_link(loose: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    victim.chmod(0o644)
    (own := next((loose / "tasks/ready").glob("TASK-*.md")).with_suffix("")).mkdir()
    (own / "link").symlink_to(victim)
    command("--data-dir", str(loose), "doctor", "--fix", cwd=tmp_path)
    assert mode(victim) == 0o644


@pytest.mark.usefixtures("umask")
def test_tokens_are_their_owners_alone_also_in_a_shared_one(tmp_path: Path) -> None:
    aof.init(tmp_path / "data", shared="group")
    token = Token(id="t1", actor="ada", role="agent", digest="0" * 64, created_at="2026-02-21T00:00:00.000Z")
    TokenFile(str(tmp_path / "data"), SystemClock()).change(add=token)
    assert mode(tmp_path / "data/tokens.json") == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")
def test_a_lock_that_another_user_holds_is_named_with_pid_and_owner(tmp_path: Path) -> None:
    command_line = [sys.executable, "-c", HOLD, str(tmp_path / "log"), str(NOBODY)]
    with subprocess.Popen(command_line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(LockTimeout) as caught:
            Locks(str(tmp_path), SystemClock(), 0.05).take("log")
        holder.communicate(timeout=30)
    (owner,) = caught.value.details["owners"]
    assert owner is not None
    assert f"process {holder.pid} of {owner} holds" in caught.value.message


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")
def test_a_file_of_another_user_is_named_with_its_owner(tmp_path: Path) -> None:
    aof.init(tmp_path / "data")
    code = (
        f"import os; os.setuid({NOBODY})\n"
        "import sys, aof\nfrom aof.store.files.disk import failed\n"
        "try:\n    open(sys.argv[1])\nexcept OSError as error:\n    print(failed(error, 'look').hint)\n"
    )
    (tmp_path / "secret").mkdir()
    (tmp_path / "file").write_text("")
    (tmp_path / "file").chmod(0o600)
    for above in (tmp_path, *tmp_path.parents):
        if not above.stat().st_mode & 0o001:
            pytest.skip("the folder of the tests is closed to others")
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "file")], capture_output=True, text=True, timeout=60, check=False
    )
    assert "belongs to root" in done.stdout, done.stderr
