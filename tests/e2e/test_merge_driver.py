"""Git merges files of tasks and documents by AOF's driver: it stops at none of them, and `aof merge` settles all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.clones import Clone, cloned, differing, origin

_TITLES = ("one", "two", "three", "four")
_KEPT = b"<<<<<<< aof merge: "


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Clone, Clone]:
    """Two clones of one history, both with the driver."""
    first = origin(tmp_path, *_TITLES, driver=True)
    return first, _with_driver(first, "b")


def _with_driver(of: Clone, name: str) -> Clone:
    clone = cloned(of, name)
    clone.aof("init")
    return clone


def _file(clone: Clone, number: str) -> Path:
    (path,) = (clone.data / "tasks").glob(f"*/TASK-*-{number}.md")
    return path


def _by_hand(clone: Clone, number: str, title: str) -> None:
    """Change a title in the file; no command of AOF runs before git has it."""
    path = _file(clone, number)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(f'title: "{title}"\n' if line.startswith("title: ") else line for line in lines))


def _busy(clone: Clone) -> None:
    """What both clones do to the same files."""
    agent = f"agent-{clone.name}"
    clone.aof("claim", "001", "--agent", agent)
    clone.aof("claim", "002", "--agent", agent)
    clone.aof("complete", "002", "--agent", agent, "--summary", f"done in {clone.name}")
    clone.aof("edit", "003", "--title", f"three of {clone.name}")
    clone.aof("comment", "003", f"a word from {clone.name}")
    clone.aof("worklog", "decide", f"Use the format of {clone.name}")
    clone.aof("mail", "send", "--to", "all", "--subject", f"hello from {clone.name}")


def _unmerged(clone: Clone) -> list[str]:
    return clone.git("diff", "--name-only", "--diff-filter=U").split()


def _texts(clone: Clone) -> str:
    return "".join(data.decode() for path, data in clone.bytes().items() if not path.startswith("events/"))


def test_git_stops_at_no_file_that_both_changed_and_everything_is_there_also_an_edit_that_nobody_imported(
    pair: tuple[Clone, Clone],
) -> None:
    first, second = pair
    for clone in pair:
        _busy(clone)
    first.aof("edit", "004", "--priority", "high")
    _by_hand(second, "004", "four, by hand")
    for clone in pair:
        clone.commit()
    assert first.pull(second)
    assert (_unmerged(first), (first.path / ".git/MERGE_HEAD").exists()) == ([], False)
    kept = [
        path for path in ("tasks", "WORKLOG.md", "MAILBOX.md") for data in first.bytes(path).values() if _KEPT in data
    ]
    assert kept == ["tasks", "tasks", "tasks", "tasks", "WORKLOG.md", "MAILBOX.md"]
    first.settle()
    assert _KEPT.decode() not in _texts(first)
    task = first.aof("show", "004")
    assert (task["title"], task["priority"]) == ("four, by hand", "high")
    for clone in pair:
        assert f"a word from {clone.name}" in first.aof("show", "003")["body"]
        assert f"Use the format of {clone.name}" in (first.data / "WORKLOG.md").read_text()
        assert f"hello from {clone.name}" in (first.data / "MAILBOX.md").read_text()
        assert f"done in {clone.name}" in str(first.log())
    assert second.pull(first)
    second.settle()
    assert differing(first, second) == []
    for clone in pair:
        clone.healthy()
        assert clone.git("status", "--porcelain") == ""


def test_whoever_pulls_first_with_the_driver_or_without_ends_with_the_same_bytes(pair: tuple[Clone, Clone]) -> None:
    first, second = pair
    for clone in pair:
        _busy(clone)
        clone.commit()
        clone.git("branch", "before")
    plain = cloned(first, "plain")
    assert plain.try_git("pull", "-q", "--no-rebase", "--no-edit", str(second.path), "before").returncode != 0
    assert set(_unmerged(plain)) >= {".aof/WORKLOG.md", ".aof/MAILBOX.md"}
    first.git("pull", "-q", "--no-rebase", "--no-edit", str(second.path), "before")
    second.git("pull", "-q", "--no-rebase", "--no-edit", str(first.path), "before")
    for clone in (first, second):
        clone.settle()
    told = plain.settle()
    assert "aof init" in " ".join(told["notes"]), "it says how git would not have stopped"
    assert differing(first, second, plain) == []
    advised = [{one["code"] for one in clone.aof("doctor")["advice"]} for clone in (first, plain)]
    assert ["no_merge_driver" in codes for codes in advised] == [False, True]


def test_a_rebase_of_several_commits_does_not_stop(pair: tuple[Clone, Clone]) -> None:
    first, second = pair
    first.aof("edit", "001", "--title", "one of a")
    first.aof("edit", "004", "--priority", "high")
    first.commit()
    for number in range(3):
        second.aof("edit", "001", "--title", f"one of b, {number}")
        second.commit(f"edit {number}")
    _by_hand(second, "004", "four, by hand")
    second.commit("by hand")
    assert second.pull(first, "--rebase")
    second.settle()
    assert second.aof("show", "001")["title"] == "one of b, 2"
    task = second.aof("show", "004")
    assert (task["title"], task["priority"]) == ("four, by hand", "high")
    assert first.pull(second)
    first.settle()
    assert differing(first, second) == []
    for clone in pair:
        clone.healthy()


def test_doctor_names_documents_that_wait_and_the_next_entry_loses_nothing(pair: tuple[Clone, Clone]) -> None:
    first, second = pair
    for clone in pair:
        clone.aof("worklog", "decide", f"Use the format of {clone.name}")
        clone.aof("mail", "send", "--to", "all", "--subject", f"hello from {clone.name}")
        clone.commit()
    assert first.pull(second)
    first.create("afterwards")
    told = first.try_aof("doctor", "--json")
    found = {(one["code"], one["path"]) for one in told.data["problems"]}
    assert (told.code, found) == (5, {("conflict_marks", "WORKLOG.md"), ("conflict_marks", "MAILBOX.md")})
    first.aof("worklog", "decide", "Use both formats")
    decided = sorted(row["decision"] for row in first.aof("worklog", "show")["decisions"])
    assert decided == ["Use both formats", "Use the format of a", "Use the format of b"]
    first.settle()
    first.healthy()
    assert _KEPT.decode() not in _texts(first)
    assert not (first.data / "WORKLOG_EDITS.md").exists()


@pytest.mark.parametrize("driver", [True, False])
def test_what_was_pushed_before_anybody_ran_a_merge_is_taken_apart_in_the_next_clone(
    pair: tuple[Clone, Clone], *, driver: bool
) -> None:
    first, second = pair
    third = cloned(first, "c")
    if driver:
        third.aof("init")
    for clone in (first, second, third):
        clone.aof("worklog", "decide", f"Use the format of {clone.name}")
    first.aof("edit", "004", "--priority", "high")
    _by_hand(second, "004", "four, by hand")
    third.aof("edit", "004", "--tag", "of-c")
    for clone in (first, second, third):
        clone.commit()
    assert first.pull(second)
    assert _file(first, "004").read_bytes().startswith(_KEPT)
    assert third.pull(first) == driver
    third.settle()
    assert _KEPT.decode() not in _texts(third)
    task = third.aof("show", "004")
    assert (task["title"], task["priority"], task["routing"]["tags"]) == ("four, by hand", "high", ["of-c"])
    worklog = third.aof("worklog", "show")
    assert sorted(row["decision"][-1] for row in worklog["decisions"]) == ["a", "b", "c"]
    assert not (third.data / "WORKLOG_EDITS.md").exists()
    third.healthy()
    assert first.pull(third)
    first.settle()
    assert differing(first, third) == []


def test_a_task_that_both_moved_elsewhere_settles_though_git_stops(pair: tuple[Clone, Clone]) -> None:
    first, second = pair
    first.create("long", "--brief", "A line of a brief that git recognises.\n" * 30)
    first.commit()
    assert second.pull(first)
    first.aof("claim", "005", "--agent", "ada")
    second.aof("cancel", "005")
    _by_hand(second, "005", "long, by hand")
    for clone in pair:
        clone.commit()
    assert not first.pull(second), "git asks no driver about two new names"
    first.settle()
    task = first.aof("show", "005")
    assert (task["status"], task["title"]) == ("cancelled", "long, by hand")
    assert _file(first, "005").parent.name == "cancelled"
    second.take(first)
    assert differing(first, second) == []
    for clone in pair:
        clone.healthy()


def test_where_the_driver_fails_git_leaves_its_usual_conflict(
    pair: tuple[Clone, Clone], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = pair
    for clone in pair:
        clone.aof("edit", "001", "--title", f"of {clone.name}")
        clone.commit()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/sed").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "bin/sed").chmod(0o755)
    with monkeypatch.context() as patch:
        patch.setenv("PATH", f"{tmp_path}/bin", prepend=":")
        assert not first.pull(second)
    assert len(_unmerged(first)) == 1
    assert "<<<<<<< ours\n" in _file(first, "001").read_text()
    assert not list(first.path.glob(".merge_file*")), "nothing is left lying about"
    first.settle()
    assert first.aof("show", "001")["title"] == "of b"
    first.healthy()
