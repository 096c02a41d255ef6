"""Git life with a data directory: what people do with branches, clones and copies, each tried with real git."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from aof.kernel.model import millis
from aof.service.clock import SystemClock
from tests.support.clones import Clone, cloned, copied, differing, origin
from tests.support.waiting import eventually


@pytest.fixture
def first(tmp_path: Path) -> Clone:
    """The clone in which the history began, with three tasks."""
    return origin(tmp_path, "one", "two", "three")


def _titles(clone: Clone) -> set[str]:
    return set(clone.tasks())


def _branch(clone: Clone, name: str) -> None:
    clone.git("checkout", "-qb", name)


def test_a_clone_that_never_ran_init_works_at_once(first: Clone) -> None:
    second = cloned(first, "b")
    assert _titles(second) == {"one", "two", "three"}
    second.aof("claim", "001", "--agent", "bob")
    second.create("four")
    second.healthy()
    second.commit()
    assert first.pull(second)
    assert first.aof("show", "001")["lease"]["agent"] == "bob"
    assert _titles(first) == {"one", "two", "three", "four"}
    first.healthy()


def test_branches_of_one_clone_merge(first: Clone) -> None:
    _branch(first, "feature")
    first.create("of the branch")
    first.aof("edit", "001", "--title", "one, renamed")
    first.commit()
    first.git("checkout", "-q", "main")
    first.create("of main")
    first.commit()
    first.try_git("merge", "-q", "--no-edit", "feature")
    first.settle()
    assert _titles(first) == {"one, renamed", "two", "three", "of the branch", "of main"}
    first.healthy()


def test_a_pull_with_rebase_brings_both_histories_together(first: Clone) -> None:
    second = cloned(first, "b")
    for clone in (first, second):
        clone.aof("edit", "001", "--title", f"of {clone.name}")
        clone.create(f"made in {clone.name}")
        clone.commit()
    second.try_git("pull", "-q", "--rebase", str(first.path), "main")
    while (second.path / ".git/rebase-merge").exists():
        second.aof("merge")
        second.git("add", "-A", ".aof")
        second.try_git("rebase", "--continue")
    second.settle()
    assert first.pull(second)
    first.settle()
    assert {"made in a", "made in b"} <= _titles(first)
    assert differing(first, second, parts=("tasks", "runs", "archive")) == []
    first.healthy()
    second.healthy()


def test_a_squashed_branch_comes_together_also_where_the_branch_goes_on(first: Clone) -> None:
    second = cloned(first, "b")
    _branch(second, "feature")
    for number in range(3):
        second.create(f"step {number}")
        second.commit(f"step {number}")
    first.create("meanwhile")
    first.commit()
    first.git("pull", "-q", "--no-rebase", "--squash", str(second.path), "feature")
    first.settle()
    second.create("after the squash")
    second.commit()
    first.try_git("pull", "-q", "--no-rebase", "--no-edit", str(second.path), "feature")
    first.settle()
    wanted = {"one", "two", "three", "meanwhile", "after the squash", *(f"step {number}" for number in range(3))}
    assert _titles(first) == wanted
    assert len(first.aof("list", "--limit", "100")["tasks"]) == len(wanted), "nothing is there twice"
    first.healthy()


def test_a_cherry_pick_brings_the_history_up_to_that_commit(first: Clone) -> None:
    second = cloned(first, "b")
    second.create("picked")
    second.commit("picked")
    picked = second.git("rev-parse", "HEAD").strip()
    second.create("left there")
    second.commit("left")
    first.create("of a")
    first.commit()
    first.git("fetch", "-q", str(second.path), "main")
    if first.try_git("cherry-pick", picked).returncode:
        first.aof("merge")
        first.git("add", "-A", ".aof")
        first.try_git("cherry-pick", "--continue")
    first.settle()
    assert _titles(first) == {"one", "two", "three", "of a", "picked"}
    first.take(second)
    assert _titles(first) == {"one", "two", "three", "of a", "picked", "left there"}
    first.healthy()


def test_a_stash_takes_tasks_away_and_brings_them_back(first: Clone) -> None:
    first.create("stashed")
    first.git("stash", "-q", "--include-untracked")
    assert _titles(first) == {"one", "two", "three"}
    first.create("meanwhile")
    first.commit()
    first.try_git("stash", "pop")
    first.settle()
    assert _titles(first) == {"one", "two", "three", "stashed", "meanwhile"}
    first.healthy()


def test_a_hard_reset_forgets_and_a_pull_brings_back_what_another_clone_has(first: Clone) -> None:
    second = cloned(first, "b")
    first.create("pushed")
    first.commit()
    assert second.pull(first)
    first.git("reset", "-q", "--hard", "HEAD~1")
    assert _titles(first) == {"one", "two", "three"}
    first.create("instead")
    first.healthy()
    first.take(second)
    assert _titles(first) == {"one", "two", "three", "pushed", "instead"}
    assert len({row["id"] for row in first.tasks().values()}) == 5, "no number was given twice"
    first.healthy()


def test_a_reverted_commit_takes_its_changes_back_and_work_goes_on(first: Clone) -> None:
    first.create("regretted")
    first.commit()
    first.git("revert", "--no-edit", "HEAD")
    assert _titles(first) == {"one", "two", "three"}
    first.create("afterwards")
    first.healthy()
    first.commit()
    assert _titles(first) == {"one", "two", "three", "afterwards"}


def test_a_shallow_clone_works_and_merges(first: Clone) -> None:
    first.create("four")
    first.commit()
    second = cloned(first, "b", "--depth", "1")
    second.create("of the shallow one")
    second.commit()
    first.create("of a")
    first.take(second)
    assert {"of the shallow one", "of a"} <= _titles(first)
    second.take(first)
    assert differing(first, second, parts=("tasks", "runs", "archive")) == []


def test_agents_in_linked_worktrees_share_one_history(first: Clone, tmp_path: Path) -> None:
    first.git("worktree", "add", "-q", str(tmp_path / "linked"), "-b", "linked")
    linked = Clone(tmp_path / "linked")
    made = linked.create("from the worktree")
    assert made.endswith("-004"), "it is the same data directory, so there is no other clone"
    assert "from the worktree" in _titles(first)
    assert first.aof("merge")["merged"] is False


def test_a_copied_folder_is_another_clone(first: Clone) -> None:
    first.aof("claim", "001", "--agent", "ada", "--ttl", "60")
    first.commit()
    second = copied(first, "b")
    here, there = first.create("in a"), second.create("in the copy")
    assert here.endswith("-004")
    assert here != there
    second.commit()
    first.take(second)
    assert {"in a", "in the copy"} <= _titles(first)
    second.take(first)
    assert differing(first, second, parts=("tasks", "runs", "archive")) == []
    for clone in (first, second):
        clone.healthy()


def test_a_force_push_loses_nothing_that_a_clone_still_has(first: Clone, tmp_path: Path) -> None:
    hub = tmp_path / "hub.git"
    first.git("init", "-q", "--bare", "-b", "main", str(hub))
    first.git("push", "-q", str(hub), "main")
    second = cloned(first, "b")
    first.create("pushed first")
    first.commit()
    first.git("push", "-q", str(hub), "main")
    second.create("pushed over it")
    second.commit()
    second.git("push", "-q", "--force", str(hub), "main")
    first.try_git("pull", "-q", "--no-rebase", "--no-edit", str(hub), "main")
    first.settle()
    assert {"pushed first", "pushed over it"} <= _titles(first)
    first.git("push", "-q", str(hub), "main")
    first.healthy()


def test_an_older_version_refuses_a_data_directory_with_lanes(first: Clone) -> None:
    second = cloned(first, "b")
    second.create("in a lane")
    version = next(line for line in (second.data / "aof.toml").read_text().splitlines() if line.startswith("schemaV"))
    assert version == "schemaVersion = 2", "what an older version does not know"
    shutil.copytree(second.data / "events", second.path / "kept")
    assert "schemaVersion = 1" in (first.data / "aof.toml").read_text(), "one clone alone stays as it was"


def test_a_rebase_that_was_given_up_and_is_tried_again_can_be_settled_at_its_first_stop(first: Clone) -> None:
    second = cloned(first, "b")
    first.aof("edit", "001", "--title", "of a")
    first.commit()
    second.aof("claim", "001", "--agent", "bob")
    second.create("in a first commit")
    second.commit()
    second.create("in a second commit")
    second.commit()
    assert not second.pull(first, "--rebase")
    second.aof("merge")
    second.git("rebase", "--abort")
    second.git("clean", "-fdq", ".aof/events")
    assert "in a second commit" in _titles(second)
    assert not second.pull(first, "--rebase")
    second.aof("merge")
    second.git("add", "-A", ".aof")
    while second.try_git("rebase", "--continue").returncode:
        second.settle()
    second.settle()
    assert _titles(second) == {"of a", "two", "three", "in a first commit", "in a second commit"}
    second.healthy()


def test_a_rebase_that_leaves_out_a_merge_commit_gets_its_merge_lane_back(first: Clone) -> None:
    second, third = cloned(first, "b"), cloned(first, "c")
    for clone in (first, second, third):
        clone.aof("edit", "001", "--title", f"of {clone.name}")
        clone.commit()
    third.take(second)
    third.create("on top of the merge")
    third.commit()
    third.pull(first, "--rebase")
    while (third.path / ".git/rebase-merge").exists():
        third.aof("merge")
        third.git("add", "-A", ".aof")
        if third.try_git("rebase", "--continue").returncode and not third.git("status", "--porcelain"):
            third.try_git("rebase", "--skip")
    third.settle()
    third.healthy()
    assert "on top of the merge" in _titles(third)
    assert all(f'"of {name}"' in json.dumps(third.log()) for name in "abc")
    assert third.git("status", "--porcelain") == ""
    assert first.pull(third, "--ff-only")
    first.settle()
    assert differing(first, third) == []


def test_a_merge_tells_of_an_edit_by_hand_that_could_not_go_in(first: Clone) -> None:
    second = cloned(first, "b")
    first.aof("edit", "001", "--title", "by a command")
    first.commit()
    (path,) = (second.data / "tasks/ready").glob("*-001.md")
    path.write_text(path.read_text().replace('"one"', '"by hand"'))
    second.commit()
    assert not second.pull(first)
    said = second.try_aof("merge").out
    assert "an edit by hand of title did not go in" in said
    assert ".conflict" in said
    second.settle()
    (kept,) = path.parent.glob("*.conflict")
    assert "by hand" in kept.read_text()


def test_picking_a_later_commit_brings_the_tasks_of_those_before_it_too(first: Clone) -> None:
    second = cloned(first, "b")
    for title in ("in a first commit", "in a second commit"):
        second.create(title)
        second.commit()
    first.git("fetch", "-q", str(second.path), "main")
    first.try_git("cherry-pick", "FETCH_HEAD")
    first.aof("merge")
    first.git("add", "-A", ".aof")
    first.git("cherry-pick", "--continue")
    first.healthy()
    assert {"in a first commit", "in a second commit"} <= _titles(first)
    assert first.git("status", "--porcelain") == ""


def test_files_that_came_with_another_clones_merge_are_not_shown_as_changed_by_hand(first: Clone) -> None:
    second = cloned(first, "b")
    first.aof("edit", "001", "--title", "of a")
    first.aof("complete", "002", "--agent", "ada")
    first.commit()
    second.aof("edit", "003", "--title", "of b")
    second.take(first)
    assert len(first.tasks()) == 3
    assert first.pull(second, "--ff-only")
    shown = {row["title"]: (row["status"], row.get("state")) for row in first.aof("list")["tasks"]}
    assert shown == {"of a": ("ready", None), "two": ("done", None), "of b": ("ready", None)}


def test_a_task_that_runs_in_another_clone_is_not_taken_away_from_it(first: Clone) -> None:
    second = cloned(first, "b")
    until = millis(first.aof("claim", "001", "--agent", "ada", "--ttl", "1")["expiresAt"])
    first.commit()
    assert second.pull(first)
    eventually(lambda: SystemClock().now() > until, "end of the lease")
    assert second.aof("recover") == {"recovered": []}
    assert second.refused("claim", "001", "--agent", "bob") == "already_claimed"
    (second.data / "aof.toml").write_text((second.data / "aof.toml").read_text() + "\n[lease]\nawayGrace = 0\n")
    recovered = second.aof("recover")["recovered"]
    assert [one["taskId"][-3:] for one in recovered] == ["001"]


def test_a_merge_that_is_given_up_leaves_everything_as_it_was_and_can_be_made_again(first: Clone) -> None:
    second = cloned(first, "b")
    for clone in (first, second):
        clone.aof("edit", "001", "--title", f"of {clone.name}")
        clone.commit()
    before = first.bytes()
    assert not first.pull(second)
    first.aof("merge")
    first.git("merge", "--abort")
    first.git("clean", "-fdq", ".aof/events")
    assert first.bytes() == before
    assert first.aof("show", "001")["title"] == "of a"
    first.healthy()
    first.take(second)
    assert first.aof("show", "001")["title"] == "of b"
    first.healthy()


def test_a_cleaned_directory_goes_on_as_a_new_clone(first: Clone) -> None:
    first.git("clean", "-xdfq")
    made = first.create("afterwards")
    assert len(made.rpartition("-")[2]) == 6
    first.healthy()


def test_one_number_for_two_tasks_becomes_two_numbers_and_references_follow(first: Clone) -> None:
    second = cloned(first, "b")
    kept = first.create("of a")
    (second.data / "tasks/ready" / f"{kept}.md").write_text('---\ntitle: "by hand in b"\n---\nText.\n')
    second.aof("sync")
    waiting = second.create("waits for it", "--dep", kept)
    second.aof("comment", kept, "about the one by hand")
    second.commit()
    told = first.take(second)
    (renumbered,) = told["renumbered"]
    assert (renumbered["old"], renumbered["title"]) == (kept, "by hand in b")
    assert first.refused("show", kept) == "ambiguous_id"
    assert first.refused("show", kept[16:]) == "ambiguous_id"
    assert first.show(kept)["title"] == "of a"
    assert first.show(waiting)["dependsOn"] == [renumbered["new"]]
    assert "about the one by hand" in first.show(renumbered["new"])["body"]
    second.take(first)
    assert differing(first, second, parts=("tasks", "runs", "archive", "events")) == []
    for clone in (first, second):
        clone.healthy()


def test_while_another_git_command_runs_nothing_is_merged(first: Clone) -> None:
    second = cloned(first, "b")
    second.create("of b")
    second.commit()
    first.create("of a")
    first.commit()
    first.pull(second)
    lock = first.path / ".git/index.lock"
    lock.touch()
    assert first.refused("create", "no") == "merge_pending"
    assert first.refused("merge") == "merge_pending"
    lock.unlink()
    first.settle()
    first.healthy()


def test_a_claim_and_a_completion_change_few_files_and_git_sees_the_task_move(first: Clone) -> None:
    brief = "Tokens are refreshed by a further endpoint, which answers with a new token and revokes the old one. " * 4
    task = first.create("Add a refresh endpoint", "--brief", brief)
    first.commit("create")
    changed = []
    for words in (("claim", task, "--agent", "ada"), ("complete", task, "--agent", "ada", "--summary", "It answers.")):
        first.aof(*words)
        first.commit(words[0])
        said = first.git("diff", "--name-status", "-M50%", "HEAD~1", "HEAD").splitlines()
        changed.append(sorted((line[0], line.split("\t")[-1].removeprefix(".aof/").split("/")[0]) for line in said))
    assert changed == [
        [("A", "runs"), ("M", "events"), ("R", "tasks")],
        [("A", "runs"), ("M", "events"), ("M", "runs"), ("R", "tasks")],
    ]
    followed = first.git("log", "--follow", "--format=%s", "--", f".aof/tasks/done/{task}.md").split()
    assert followed == ["complete", "claim", "create"]


def test_records_that_nobody_edits_never_conflict_and_a_merge_writes_them_anew(first: Clone) -> None:
    second = cloned(first, "b")
    for clone in (first, second):
        clone.aof("claim", "001", "--agent", f"agent-{clone.name}")
        clone.aof("complete", "001", "--agent", f"agent-{clone.name}", "--summary", f"by {clone.name}")
    second.commit()
    first.commit()
    assert not first.pull(second), "both have the task's file anew"
    unmerged = first.git("diff", "--name-only", "--diff-filter=U").split()
    assert [path.split("/")[1] for path in unmerged] == ["tasks"]
    first.settle()
    second.take(first)
    assert differing(first, second) == []
    for clone in (first, second):
        clone.healthy()
