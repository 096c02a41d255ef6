"""Living in a git repository: what is committed, clones, worktrees, and branches that change below a running store."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import aof
from aof.api.fabric import Fabric
from aof.errors import AofError, LineEndingsConverted, MergePending, StaleLease
from aof.store.files import git_files
from tests.support.terminal import aof as command

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")
_LINES = """* -text
events/*.jsonl merge=union linguist-generated
runs/** merge=union linguist-generated
archive/runs/** merge=union linguist-generated
handoffs/** merge=union
tasks/*/TASK-[0-9]*.md merge=aof
archive/tasks/TASK-[0-9]*.md merge=aof
/WORKLOG.md merge=aof
/WORKLOG_ARCHIVE.md merge=aof
/WORKLOG_EDITS.md merge=aof
/MAILBOX.md merge=aof
/MAILBOX_ARCHIVE.md merge=aof
/SESSION_CHARTER.md merge=aof
/jobs.json merge=aof
"""
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


def test_init_gives_git_a_merge_driver_says_so_once_and_reading_changes_no_settings(repo: Path) -> None:
    settings = (repo / ".git/config").read_bytes()
    for words in (("list",), ("create", "more"), ("merge",), ("doctor", "--fix"), ("init", "--dry-run")):
        command(*words, cwd=repo)
    assert (repo / ".git/config").read_bytes() == settings
    assert "merge driver 'aof' added" in command("init", cwd=repo).out
    added = (repo / ".git/config").read_text()
    assert str(repo) not in added
    assert "merge driver" not in command("init", cwd=repo).out
    assert (repo / ".git/config").read_text() == added
    assert git(repo, "check-attr", "merge", ".aof/tasks/ready/TASK-2026-01-01-001/notes.md").endswith("unspecified\n")
    git(repo, "config", "--remove-section", "merge.aof")
    assert (repo / ".git/config").read_bytes() == settings


def test_caches_and_locks_stay_out_and_a_clone_works(repo: Path, tmp_path: Path) -> None:
    kept = git(repo, "ls-files", ".aof").split()
    assert not [name for name in kept if any(part in name for part in ("index.sqlite", "locks/", "tmp/", "torn/"))]
    assert git(repo, "status", "--porcelain") == ""
    git(tmp_path, "clone", "-q", "repo", "clone")
    with aof.open(tmp_path / "clone/.aof", actor="tester") as cloned:
        assert titles(cloned) == ["one", "two"]
        assert cloned.claim("001", agent="ada").attempt == 1
        assert cloned.create("three").task_id.endswith("001"), "a clone counts in a block of its own"
    assert len(list((tmp_path / "clone/.aof/events").glob("*.jsonl"))) == 2, "and appends to a lane of its own"
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
    with pytest.raises(StaleLease):
        fabric.complete("001", run=run)
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
        made = cloned.create("three").task_id
    git(tmp_path / "clone", "add", "-A")
    git(tmp_path / "clone", "commit", "-qm", "pulled")
    git(repo, "pull", "-q", "../clone", "main")
    assert titles(fabric) == ["one", "two, better", "three"]
    fabric.create("four")
    assert fabric.show(made)["createdBy"] == "other"
    assert healthy(repo)


@pytest.fixture
def diverged(repo: Path, fabric: Fabric) -> Path:
    """Two branches that have appended different events, and changed the same task."""
    git(repo, "checkout", "-qb", "other")
    fabric.create("of the other branch")
    fabric.edit("001", title="one, elsewhere")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "other")
    git(repo, "checkout", "-q", "main")
    fabric.create("of the main branch")
    fabric.edit("001", title="one, here")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "main")
    return repo


def test_git_never_mixes_two_histories(diverged: Path, fabric: Fabric) -> None:
    """Each branch has a file of its own from where they parted; reads go on with this branch's."""
    git(diverged, "merge", "-q", "other", fails=True)
    assert {line[:3] for line in git(diverged, "status", "--porcelain", ".aof/events").splitlines()} == {"M  "}
    assert titles(fabric) == ["one, here", "two", "of the main branch"]
    told = command("doctor", "--json", cwd=diverged)
    assert told.code == 5
    assert "unmerged_paths" in {problem["code"] for problem in told.data["problems"]}
    assert command("doctor", "--fix", "--json", cwd=diverged).error["code"] == "unmerged_paths"
    with pytest.raises(MergePending):
        fabric.create("no")


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


def unmerged_by_git(repo: Path) -> set[str]:
    listed = git(repo, "ls-files", "-u", "-z", "--", ".aof").split("\0")
    return {line.partition("\t")[2].removeprefix(".aof/") for line in listed if line}


@pytest.mark.parametrize("version", ["2", "3", "4"])
@pytest.mark.parametrize("worktree", ["main", "linked"])
def test_unmerged_paths_are_read_from_gits_index_without_git(
    diverged: Path, tmp_path: Path, version: str, worktree: str
) -> None:
    place = diverged
    if worktree == "linked":
        git(diverged, "worktree", "add", "-q", "../linked", "-b", "linked")
        place = tmp_path / "linked"
    for number in range(40):
        (place / f"{'long' * number}-{number}.txt").write_text("x")
    git(place, "add", "-A")
    git(place, "commit", "-qm", "more")
    git(place, "merge", "-q", "other", fails=True)
    if version == "3":
        (place / "later.txt").write_text("x")
        git(place, "add", "-N", "later.txt")
    else:
        git(place, "update-index", "--index-version", version)
    assert (next((place / ".aof/events").glob("*.jsonl"))).is_file()
    assert unmerged_by_git(place)
    assert set(git_files.unmerged(str(place / ".aof"))) == unmerged_by_git(place)
    assert git_files.unmerged(str(place / ".aof/events")) == []


def test_a_settled_merge_leaves_no_unmerged_path(diverged: Path) -> None:
    git(diverged, "merge", "-q", "other", fails=True)
    assert git_files.unmerged(str(diverged / ".aof"))
    git(diverged, "merge", "--abort")
    assert git_files.unmerged(str(diverged / ".aof")) == []


@pytest.mark.parametrize(
    "damage", [b"", b"DIRC", b"DIRC\0\0\0\2\0\0\0\x09", b"DIRC\0\0\0\4\0\0\xff\xff" + b"\xff" * 999]
)
def test_an_index_that_makes_no_sense_stops_nobody(repo: Path, damage: bytes) -> None:
    (repo / ".git/index").write_bytes(damage)
    assert git_files.unmerged(str(repo / ".aof")) == []


def test_an_older_data_directory_is_told_to_keep_line_endings_with_the_next_change(repo: Path) -> None:
    attributes = repo / ".aof/.gitattributes"
    attributes.write_text("*.md diff=markdown\nevents/*.jsonl -merge")
    attributes.chmod(0o640)
    told = command("doctor", "--json", cwd=repo)
    assert (told.code, [one["code"] for one in told.data["advice"]]) == (0, ["git_lines_missing"])
    assert attributes.read_text().endswith("-merge"), "a look changes nothing"
    assert command("list", cwd=repo).code == 0
    assert attributes.read_text().endswith("-merge")
    assert command("create", "three", cwd=repo).code == 0
    assert attributes.read_text() == f"*.md diff=markdown\n{_LINES}"
    assert attributes.stat().st_mode & 0o777 == 0o640
    attributes.unlink()
    assert command("doctor", "--fix", cwd=repo).code == 0
    assert attributes.read_text() == _LINES
    assert command("doctor", "--json", cwd=repo).data["advice"] == []


_OLD = "# ours\n*.md diff=markdown\nevents/*.jsonl   -merge\nevents/*.jsonl -diff\nruns/** -merge\n"
_NEW = f"# ours\n*.md diff=markdown\nevents/*.jsonl -diff\nruns/** -merge\n{_LINES}"


@pytest.mark.parametrize("words", [("init",), ("create", "three"), ("doctor", "--fix")])
def test_our_old_line_about_merging_the_log_is_replaced_and_a_persons_own_lines_stay(
    repo: Path, words: tuple[str, ...]
) -> None:
    attributes = repo / ".aof/.gitattributes"
    attributes.write_text(_OLD)
    assert command(*words, cwd=repo).code == 0
    assert attributes.read_text() == _NEW
    assert command(*words, cwd=repo).code == 0
    assert attributes.read_text() == _NEW, "once is enough"
    said = git(repo, "check-attr", "merge", "--", ".aof/events/2026-11-18.jsonl")
    assert said.strip().endswith("merge: union")


def test_our_old_line_goes_also_where_git_has_brought_both_lines_together(repo: Path) -> None:
    attributes = repo / ".aof/.gitattributes"
    attributes.write_text("* -text\nevents/*.jsonl merge=union\nevents/*.jsonl -merge\n")
    assert [one["code"] for one in command("doctor", "--json", cwd=repo).data["advice"]] == ["git_lines_missing"]
    assert command("create", "three", cwd=repo).code == 0
    assert attributes.read_text() == _LINES
    assert command("doctor", "--json", cwd=repo).data["advice"] == []


def test_git_changes_no_line_ending_in_a_clone(repo: Path, tmp_path: Path) -> None:
    git(tmp_path, "-c", "core.autocrlf=true", "clone", "-q", "repo", "clone")
    assert not [
        path for path in (tmp_path / "clone/.aof").rglob("*") if path.is_file() and b"\r\n" in path.read_bytes()
    ]
    assert healthy(tmp_path / "clone")


@pytest.fixture
def converted(repo: Path, tmp_path: Path) -> Path:
    """A clone whose line endings git has converted, because nobody told it not to."""
    (repo / ".aof/.gitattributes").unlink()
    git(repo, "commit", "-qam", "without attributes")
    git(tmp_path, "-c", "core.autocrlf=true", "clone", "-q", "repo", "clone")
    git(tmp_path / "clone", "config", "core.autocrlf", "true")
    return tmp_path / "clone"


def test_a_log_with_converted_line_endings_is_recognised_and_comes_back(converted: Path) -> None:
    (log,) = (converted / ".aof/events").glob("*.jsonl")
    before = log.read_bytes()
    assert b"\r\n" in before
    for words in (("create", "no"), ("list",), ("show", "001")):
        told = command(*words, "--json", cwd=converted)
        assert (told.code, told.error["code"]) == (5, "log_line_endings"), told.out
        assert "line endings were converted" in told.error["message"]
        assert "-text" in told.error["hint"]
    told = command("doctor", "--json", cwd=converted)
    assert told.code == 5
    assert ("log_line_endings", f"events/{log.name}") in {(one["code"], one["path"]) for one in told.data["problems"]}
    assert log.read_bytes() == before, "nothing was changed"
    command("init", cwd=converted)
    assert (converted / ".aof/.gitattributes").read_text() == _LINES
    git(converted, "rm", "-rq", "--cached", ".aof")
    git(converted, "checkout", "HEAD", "--", ".aof")
    assert command("create", "three", cwd=converted).code == 0
    assert healthy(converted)


def test_a_running_process_says_that_line_endings_were_converted(repo: Path, fabric: Fabric) -> None:
    fabric.create("three")
    (log,) = (repo / ".aof/events").glob("*.jsonl")
    log.write_bytes(log.read_bytes().replace(b"\n", b"\r\n"))
    with pytest.raises(LineEndingsConverted):
        fabric.create("no")
