"""Living in a git repository: what is committed, clones, worktrees, and branches that change below a running store."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import aof
from aof.app.fabric import Fabric
from aof.core.errors import AofError
from tests.support.terminal import aof as command

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")
_SETTINGS = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false", "-c", "gc.auto=0")


def git(folder: Path, *words: str, fails: bool = False) -> str:
    """Run git in a folder."""
    done = subprocess.run(
        ["git", *_SETTINGS, *words], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with a data directory and two committed tasks."""
    repo = tmp_path / "repo"
    repo.mkdir()
    git(repo, "init", "-q", "-b", "main")
    aof.init(repo / ".aof")
    with aof.open(repo / ".aof", actor="tester") as fabric:
        fabric.create("one", review=False)
        fabric.create("two")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "base")
    return repo


@pytest.fixture
def fabric(repo: Path) -> Iterator[Fabric]:
    """A process that keeps its fabric open, whatever git does below it."""
    with aof.open(repo / ".aof", actor="tester") as fabric:
        yield fabric


def titles(fabric: Fabric) -> list[str]:
    return [row.title for row in fabric.list().tasks]


def healthy(repo: Path) -> bool:
    """Whether another process finds nothing wrong."""
    return command("doctor", cwd=repo).code == 0


def test_init_can_be_repeated_and_says_what_it_would_do(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    planned = command("init", "--dry-run", "--json", cwd=tmp_path).data
    assert (planned["created"], planned["dryRun"]) == (False, True)
    assert not (tmp_path / ".aof").exists()
    assert command("init", "--json", cwd=tmp_path).data["created"] is True
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "init")
    (tmp_path / ".aof/aof.toml").write_text("schemaVersion = 1\n[lease]\nttl = 60\n")
    assert command("init", "--json", cwd=tmp_path).data["created"] is False
    assert (tmp_path / ".aof/aof.toml").read_text().endswith("ttl = 60\n"), "what is there stays"


def test_caches_and_locks_stay_out_and_a_clone_works(repo: Path, tmp_path: Path) -> None:
    kept = git(repo, "ls-files", ".aof").split()
    assert not [name for name in kept if any(part in name for part in ("index.sqlite", "locks/", "tmp/", "torn/"))]
    assert git(repo, "status", "--porcelain") == ""
    git(tmp_path, "clone", "-q", "repo", "clone")
    with aof.open(tmp_path / "clone/.aof", actor="tester") as cloned:
        assert titles(cloned) == ["one", "two"]
        assert cloned.claim("001", agent="ada").attempt == 1
        assert cloned.create("three").task_id.endswith("003")
    assert healthy(tmp_path / "clone")


def test_a_linked_worktree_uses_the_main_ones_data_directory(repo: Path, tmp_path: Path) -> None:
    git(repo, "worktree", "add", "-q", "../linked", "-b", "linked")
    below = tmp_path / "linked" / "deep"
    below.mkdir()
    assert (tmp_path / "linked/.aof/events").is_dir(), "the worktree has a copy of its own, which is not the one"
    made = command("create", "from the worktree", "--json", cwd=below).data
    assert (repo / ".aof" / made["filePath"]).is_file()
    assert command("list", "--json", cwd=below).data["total"] == 3


def test_a_branch_with_an_older_log_is_taken_in(repo: Path, fabric: Fabric) -> None:
    git(repo, "checkout", "-qb", "other")
    fabric.create("three")
    run = fabric.claim("001", agent="ada").run_id
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "more")
    git(repo, "checkout", "-q", "main")
    assert titles(fabric) == ["one", "two"]
    assert fabric.show("001")["status"] == "ready"
    with pytest.raises(AofError) as caught:
        fabric.complete("001", run=run)
    assert caught.value.code == "stale_lease", "the run is of the other branch"
    assert healthy(repo)
    git(repo, "checkout", "-qf", "other")
    assert titles(fabric) == ["one", "two", "three"]
    assert fabric.complete("001", run=run).status == "done"
    assert healthy(repo)


def test_no_id_is_given_twice_over_branches(repo: Path, fabric: Fabric) -> None:
    git(repo, "checkout", "-qb", "other")
    first = fabric.create("three").task_id
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "more")
    git(repo, "checkout", "-q", "main")
    assert fabric.create("another three").task_id != first


def test_a_pulled_change_is_taken_in(repo: Path, tmp_path: Path, fabric: Fabric) -> None:
    assert titles(fabric) == ["one", "two"]
    git(tmp_path, "clone", "-q", "repo", "clone")
    with aof.open(tmp_path / "clone/.aof", actor="other") as cloned:
        cloned.edit("002", title="two, better")
        cloned.create("three")
    git(tmp_path / "clone", "add", "-A")
    git(tmp_path / "clone", "commit", "-qm", "pulled")
    git(repo, "pull", "-q", "../clone", "main")
    assert titles(fabric) == ["one", "two, better", "three"]
    fabric.create("four")
    assert fabric.show("003")["createdBy"] == "other"
    assert healthy(repo)


@pytest.fixture
def diverged(repo: Path, fabric: Fabric) -> Path:
    """Two branches that have appended different events."""
    git(repo, "checkout", "-qb", "other")
    fabric.create("of the other branch")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "other")
    git(repo, "checkout", "-q", "main")
    fabric.create("of the main branch")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "main")
    return repo


def test_git_never_mixes_two_histories(diverged: Path, fabric: Fabric) -> None:
    """The log of the current branch stays; what the other branch has is told by doctor, and healed from its files."""
    git(diverged, "merge", "-q", "other", fails=True)
    assert "UU .aof/events/" in git(diverged, "status", "--porcelain")
    assert titles(fabric) == ["one", "two", "of the main branch"]
    told = command("doctor", "--json", cwd=diverged)
    assert told.code == 5
    assert {problem["code"] for problem in told.data["problems"]} == {"task_not_in_log"}
    assert command("doctor", "--fix", cwd=diverged).code == 0
    assert sorted(titles(fabric)) == ["of the main branch", "of the other branch", "one", "two"]
    git(diverged, "add", "-A")
    git(diverged, "commit", "-qm", "merged")
    assert healthy(diverged)


@pytest.mark.parametrize("first", ["show", "edit"])
def test_a_new_process_does_not_trust_what_another_branch_has_noted(repo: Path, first: str) -> None:
    """The log of one branch beside a task's file of the other, which is exactly what was last written here."""
    one, two = sorted(path.stem for path in (repo / ".aof/tasks/ready").glob("*.md"))
    git(repo, "checkout", "-qb", "other")
    assert command("edit", two, "--title", "two, elsewhere", cwd=repo).code == 0
    git(repo, "commit", "-qam", "other")
    git(repo, "checkout", "-q", "main")
    assert command("edit", one, "--title", "one, here", cwd=repo).code == 0
    git(repo, "checkout", "-q", "other", "--", f".aof/tasks/ready/{two}.md")
    if first == "show":
        assert command("show", two, cwd=repo).code == 0
    assert command("edit", two, "--priority", "high", cwd=repo).code == 0
    assert healthy(repo)
    with aof.open(repo / ".aof", actor="tester") as fabric:
        task = fabric.get(two)
        assert (task.title, task.priority) == ("two, elsewhere", "high")
        assert "hand" in {event.actor for event in fabric.events(task_id=two)}


@pytest.mark.parametrize("first", ["show", "edit", "doctor"])
def test_a_new_process_refuses_files_that_know_more_than_the_log(repo: Path, first: str) -> None:
    """A task's file is of a version that this branch's log has no number for; doctor puts it into the log."""
    task_id = min(path.stem for path in (repo / ".aof/tasks/ready").glob("*.md"))
    git(repo, "checkout", "-qb", "other")
    assert command("edit", task_id, "--title", "one, elsewhere", cwd=repo).code == 0
    git(repo, "commit", "-qam", "other")
    git(repo, "checkout", "-q", "main")
    git(repo, "checkout", "-q", "other", "--", f".aof/tasks/ready/{task_id}.md")
    if first != "doctor":
        words = ("show", task_id) if first == "show" else ("edit", task_id, "--priority", "high")
        told = command(*words, "--json", cwd=repo)
        assert (told.code, told.error["code"]) == (5, "log_damaged"), told.out
        assert "aof doctor" in told.error["hint"]
    assert command("doctor", cwd=repo).code == 5
    assert command("doctor", "--fix", cwd=repo).code == 0
    assert command("show", task_id, "--json", cwd=repo).data["title"] == "one, elsewhere"
    assert command("edit", task_id, "--priority", "high", cwd=repo).code == 0
    assert healthy(repo)


@pytest.mark.parametrize("way", ["markers", "union"])
def test_a_log_that_was_mixed_all_the_same_is_refused(diverged: Path, fabric: Fabric, way: str) -> None:
    attributes = diverged / ".aof/.gitattributes"
    attributes.write_text("events/*.jsonl merge=union\n" if way == "union" else "")
    git(diverged, "add", "-A")
    git(diverged, "commit", "-qm", "without care")
    git(diverged, "merge", "-q", "other", fails=way == "markers")
    before = (next((diverged / ".aof/events").glob("*.jsonl"))).read_bytes()
    for call in (
        fabric.list,
        lambda: fabric.create("no"),
        lambda: fabric.create("no again"),
        lambda: fabric.claim("001", agent="ada"),
    ):
        with pytest.raises(AofError) as caught:
            call()
        assert caught.value.code == "log_damaged"
        assert "git checkout" in caught.value.hint or "doctor" in caught.value.hint
    assert command("list", "--json", cwd=diverged).error["code"] == "log_damaged"
    assert command("doctor", cwd=diverged).code == 5
    assert (next((diverged / ".aof/events").glob("*.jsonl"))).read_bytes() == before, "nothing was written to it"
    git(diverged, *(("merge", "--abort") if way == "markers" else ("reset", "-q", "--hard", "HEAD~1")))
    assert titles(fabric) == ["one", "two", "of the main branch"]
    fabric.create("goes on")
    assert healthy(diverged)


def test_a_missing_and_a_changed_task_file_are_put_right(repo: Path, fabric: Fabric) -> None:
    one, two = sorted((repo / ".aof/tasks/ready").glob("*.md"))
    one.unlink()
    two.write_text(two.read_text().replace('title: "two"', 'title: "two, by hand"'))
    assert [row.state for row in fabric.list().tasks] == ["stale", "stale"]
    assert fabric.show("001")["title"] == "one"
    assert one.is_file()
    assert fabric.show("002")["title"] == "two, by hand"
    git(repo, "checkout", "-q", "--", ".aof/tasks")
    assert fabric.show("002")["title"] == "two, by hand", "the log knows the edit; an older version gives way"
    assert healthy(repo)


def test_a_deleted_log_is_refused_and_comes_back(repo: Path, fabric: Fabric) -> None:
    (log,) = (repo / ".aof/events").glob("*.jsonl")
    log.unlink()
    with pytest.raises(AofError) as caught:
        fabric.create("no")
    assert caught.value.code == "log_damaged"
    assert not log.exists(), "no new history begins"
    told = command("doctor", "--json", cwd=repo)
    assert (told.code, told.data["problems"][0]["code"]) == (5, "log_lacks_events")
    git(repo, "checkout", "-q", "--", ".aof/events")
    fabric.create("three")
    assert titles(fabric) == ["one", "two", "three"]
    assert healthy(repo)
