"""A data directory that one may only read: questions are answered as everywhere, and a change is refused clearly.

The answers come from real processes: of another user where the tests run as root, who may write everything, and on a
read-only mount where the system lets one be made.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from aof.api.fabric import Fabric
from aof.kernel.model import Policy
from aof.service.bootstrap import init_data_dir, open_fabric
from aof.service.clock import SystemClock
from aof.store.files.read_only import ReadOnlyStore
from tests.support.command_line import Said

NOBODY = 65534
Aof = Callable[..., Said]

QUESTIONS = [
    ("list",),
    ("list", "--status", "ready", "--limit", "1"),
    ("list", "--archived"),
    ("show", "001"),
    ("show", "002"),
    ("show", "001", "--at", "1"),
    ("ready",),
    ("ready", "--agent", "ada"),
    ("blocked",),
    ("status",),
    ("log",),
    ("log", "002"),
    ("replay", "--at", "3"),
    ("graph",),
    ("handoff", "list"),
    ("org", "show"),
    ("snapshot", "--at", "3"),
    ("log", "--format", "agentruntime"),
]
CHANGES = [
    ("create", "One more"),
    ("claim", "--agent", "ada"),
    ("claim", "001", "--agent", "ada"),
    ("edit", "001", "--title", "Other"),
    ("cancel", "001"),
    ("heartbeat", "002", "--agent", "ada"),
    ("sync",),
    ("merge",),
    ("doctor", "--fix"),
    ("up", "--once"),
    ("export", "/dev/null"),
    ("reindex",),
]


def _told(root: Path) -> None:
    """A few tasks in different states."""
    init_data_dir(root)
    with open_fabric(root, actor="pm") as fabric:
        fabric.create("Ready", tags=["a"], brief="Do it.")
        fabric.create("Running", agent="ada")
        fabric.claim("002", agent="ada", ttl=3600)
        fabric.progress("002", agent="ada", text="half of it", percent=50)
        fabric.create("Waiting", depends_on=["001"])
        fabric.create("Blocked")
        fabric.block("004", reason="no key")
        fabric.create("Archived", review=False)
        fabric.complete("005", actor="cem")
        fabric.archive("005")


def _as_somebody_else() -> tuple[str, ...]:
    """Whoever may write everything has to become another user first."""
    if os.geteuid() != 0:
        return ()
    other = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--inh-caps=-all")
    if not shutil.which("setpriv") or subprocess.run([*other, sys.executable, "-V"], check=False).returncode:
        pytest.skip("no other user can run this interpreter")
    return other


def _asker(root: Path, *before: str) -> Aof:
    environment = {"AOF_DATA_DIR": str(root), "AOF_ACTOR": "reader", "PATH": os.environ["PATH"]}

    def ask(*words: str) -> Said:
        command = [*before, sys.executable, "-m", "aof", *words, "--json"]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=120, check=False, cwd="/"
        )
        return Said(done.returncode, done.stdout, done.stderr)

    return ask


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where another user may look, too."""
    made = Path(tempfile.mkdtemp(prefix="aof-read-only-"))
    made.chmod(0o755)
    yield made
    subprocess.run(["chmod", "-R", "u+w", str(made)], check=True)
    shutil.rmtree(made)


@pytest.fixture
def without_the_right(folder: Path) -> Aof:
    """The command for somebody who may not write."""
    _told(folder / ".aof")
    subprocess.run(["chmod", "-R", "a-w,a+rX", str(folder / ".aof")], check=True)
    return _asker(folder / ".aof", *_as_somebody_else())


@pytest.fixture
def mounted(folder: Path) -> Aof:
    """The command on a read-only mount, where everybody has every right."""
    _told(folder / ".aof")
    script = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
    before = ("unshare", "--mount", "sh", "-c", script, str(folder))
    if not shutil.which("unshare") or subprocess.run([*before, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount can be made here")
    return _asker(folder / ".aof", *before)


@pytest.fixture(params=["without_the_right", "mounted"])
def aof(request: pytest.FixtureRequest) -> Aof:
    """Both."""
    asker: Aof = request.getfixturevalue(request.param)
    return asker


def test_questions_are_answered_as_if_one_could_write(folder: Path, aof: Aof) -> None:
    before = _files(folder)
    answers = {words: aof(*words) for words in QUESTIONS}
    assert _files(folder) == before
    subprocess.run(["chmod", "-R", "u+w", str(folder)], check=True)
    ask = _asker(folder / ".aof")
    for words, answer in answers.items():
        assert answer.code == 0, (words, answer.err)
        assert answer.data == ask(*words).data, words


def test_a_change_is_refused_and_says_why(folder: Path, aof: Aof) -> None:
    before = _files(folder)
    for words in CHANGES:
        said = aof(*words)
        assert said.error["code"] == "read_only", (words, said.out)
        assert str(folder) in said.error["message"]
        assert said.error["hint"]
    assert _files(folder) == before


def test_a_file_that_a_person_has_changed_is_shown_as_stale(folder: Path) -> None:
    _told(folder / ".aof")
    with (folder / ".aof/tasks/ready/TASK.md").open("w") as file:
        file.write("# Mine\n")
    (path,) = (folder / ".aof/tasks/ready").glob("*-001.md")
    path.write_text(path.read_text().replace("Do it.", "Do it well."))
    subprocess.run(["chmod", "-R", "a-w,a+rX", str(folder / ".aof")], check=True)
    ask = _asker(folder / ".aof", *_as_somebody_else())

    states = {row["title"]: row.get("state") for row in ask("list").data["tasks"]}
    assert states["Ready"] == "stale"
    assert states["Blocked"] is None


def test_an_open_reader_sees_what_others_write(folder: Path) -> None:
    _told(folder / ".aof")
    clock = SystemClock()
    reader = Fabric(ReadOnlyStore(str(folder / ".aof"), clock), clock, Policy(), "reader")
    assert reader.list().total == 4
    seen = reader.store.head()
    with open_fabric(folder / ".aof", actor="pm") as writer:
        new = writer.create("New").task_id
    assert reader.store.wait(seen, 0.0)
    assert {event.task_id for event in reader.events(after=seen)} == {new}
    assert reader.list().total == 5
    assert reader.show(new)["title"] == "New"


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_another_process_makes_meanwhile_does_not_look_read_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first processes of a new directory open it at once, and one of them makes the lock file."""
    root = Path(init_data_dir(tmp_path / ".aof")[0])
    (root / "locks/log").unlink(missing_ok=True)
    look = os.access

    def looked(path: str, mode: int, **where: Any) -> bool:
        found = look(path, mode, **where)
        if not found and path.endswith("locks/log"):
            Path(path).touch()
        return found

    monkeypatch.setattr(os, "access", looked)
    with open_fabric(root, actor="pm") as fabric:
        assert fabric.create("First").task_id
