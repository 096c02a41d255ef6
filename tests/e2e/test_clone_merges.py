"""Two clones work, git brings them together, nothing is lost: the table of what comes together, with real processes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.clones import Clone, cloned, differing, origin

_TITLES = ("one", "two", "three", "four", "five")


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Clone, Clone]:
    """The clone in which the history began, and another one of it."""
    first = origin(tmp_path, *_TITLES)
    return first, cloned(first, "b")


def _together(first: Clone, second: Clone) -> None:
    """Both have everything, by pulling in both directions; their data must be the same."""
    second.commit()
    first.take(second)
    second.take(first)
    assert differing(first, second, parts=("tasks", "runs", "archive", "events")) == []
    for clone in (first, second):
        clone.healthy()
        assert clone.git("status", "--porcelain") == ""


def _decide(clone: Clone, text: str, owner: str = "ada") -> None:
    clone.aof("worklog", "decide", "--owner", owner, text)


def test_both_clones_have_all_tasks_and_a_new_one_is_numbered_in_the_clones_own_block(
    pair: tuple[Clone, Clone],
) -> None:
    first, second = pair
    here, there = first.create("made in a"), second.create("made in b", "--dep", "002")
    assert here.endswith("-006")
    assert re.fullmatch(r"TASK-[0-9-]{10}-[1-9][0-9]{2}001", there)
    _together(first, second)
    for clone in pair:
        assert sorted(clone.tasks()) == sorted([*_TITLES, "made in a", "made in b"])
        assert clone.show(there)["dependsOn"] == [here[:-3] + "002"]
    assert first.create("another").endswith("-007"), "the first clone goes on as before"
    assert second.create("another in b").endswith("002")


def test_different_fields_come_together_and_of_the_same_field_the_later_change_stands(
    pair: tuple[Clone, Clone],
) -> None:
    first, second = pair
    first.aof("edit", "001", "--priority", "high")
    second.aof("edit", "001", "--title", "one, better")
    first.aof("edit", "002", "--title", "two of a")
    second.aof("edit", "002", "--title", "two of b")
    second.commit()
    told = first.take(second)
    task = first.aof("show", "001")
    assert (task["priority"], task["title"]) == ("high", "one, better")
    assert first.aof("show", "002")["title"] == "two of b"
    (report,) = [one for one in told["tasks"] if one["taskId"].endswith("-002")]
    assert "two of a" in " ".join(report["notes"])
    second.take(first)
    assert differing(first, second, parts=("tasks", "events")) == []


def test_of_two_claims_the_earlier_keeps_the_lease_and_the_other_run_never_writes_again(
    pair: tuple[Clone, Clone],
) -> None:
    first, second = pair
    won = first.aof("claim", "001", "--agent", "ada")
    lost = second.aof("claim", "001", "--agent", "ada")
    second.aof("progress", "001", "--run", lost["runId"], "--text", "half of it in b")
    _together(first, second)
    for clone in pair:
        task = clone.aof("show", "001")
        assert task["lease"]["runId"] == won["runId"]
        assert "half of it in b" in task["body"] + str(clone.log())
        for words in (("--run", lost["runId"]), ("--agent", "ada")):
            assert clone.refused("complete", "001", *words) == "stale_lease"
            assert clone.refused("progress", "001", "--text", "still here", *words) == "stale_lease"
        assert clone.refused("heartbeat", "001", AOF_RUN_SECRET=lost["secret"], AOF_ACTOR="ada") == "stale_lease"
    assert first.aof("complete", "001", AOF_RUN_SECRET=won["secret"], AOF_ACTOR="ada")["status"] == "done"


def test_a_completion_stands_against_a_claim_a_cancellation_and_another_completion(pair: tuple[Clone, Clone]) -> None:
    first, second = pair
    for task in ("001", "002", "003"):
        run = first.aof("claim", task, "--agent", "ada")["runId"]
        first.aof("complete", task, "--run", run, "--summary", f"result of a for {task}")
    second.aof("claim", "001", "--agent", "bob")
    second.aof("cancel", "002")
    run = second.aof("claim", "003", "--agent", "bob")["runId"]
    second.aof("complete", "003", "--run", run, "--summary", "result of b for 003")
    _together(first, second)
    said = str(second.log())
    assert "result of b for 003" in said
    for task in ("001", "002", "003"):
        assert second.aof("show", task)["status"] == "done"
        assert f"result of a for {task}" in said


def test_work_logs_and_comments_of_both_clones_are_there(pair: tuple[Clone, Clone]) -> None:
    first, second = pair
    for clone in pair:
        clone.aof("comment", "001", f"a word from {clone.name}")
        clone.aof("worklog", "now", f"busy in {clone.name}")
        clone.aof(
            "mail", "send", "--from", f"agent-{clone.name}", "--to", "all", "--subject", f"hello from {clone.name}"
        )
    _together(first, second)
    body = first.aof("show", "001")["body"]
    worklog, mailbox = ((first.data / name).read_text() for name in ("WORKLOG.md", "MAILBOX.md"))
    for clone in pair:
        assert f"a word from {clone.name}" in body
        assert f"busy in {clone.name}" in worklog
        assert f"hello from {clone.name}" in mailbox
    assert "<<<<<<<" not in worklog + mailbox
    assert differing(first, second) == []


def test_a_write_in_the_middle_of_a_git_merge_is_refused_and_what_it_says_to_do_works(
    pair: tuple[Clone, Clone],
) -> None:
    first, second = pair
    for clone in pair:
        clone.aof("edit", "001", "--title", f"of {clone.name}")
        clone.commit()
    assert not first.pull(second), "git cannot merge the file of the task"
    refused = first.try_aof("create", "in between", "--json")
    assert refused.error["code"] == "merge_pending"
    assert "aof merge" in refused.error["hint"]
    told = first.try_aof("list")
    assert "merge_pending" in told.err
    codes = {one["code"] for one in first.try_aof("doctor", "--json").data["problems"]}
    assert {"several_histories", "conflict_marks"} <= codes
    assert first.aof("merge", "--dry-run")["histories"] == 2
    first.settle()
    first.create("afterwards")
    first.healthy()


def test_a_write_merges_by_itself_when_git_is_done(pair: tuple[Clone, Clone]) -> None:
    first, second = pair
    first.create("of a")
    second.create("of b")
    second.commit()
    first.commit()
    assert first.pull(second)
    first.create("and one more")
    assert {"of a", "of b", "and one more"} <= set(first.tasks())
    first.healthy()


def test_a_persons_edit_survives_where_git_could_not_merge_the_file(pair: tuple[Clone, Clone]) -> None:
    first, second = pair
    second.aof("edit", "001", "--tag", "of-b")
    (path,) = (second.data / "tasks").glob("*/TASK-*-001.md")
    path.write_text(path.read_text().replace('title: "one"', 'title: "one, by hand"'))
    second.commit("edited by hand, and no command ran")
    first.aof("edit", "001", "--priority", "high")
    first.commit()
    assert not first.pull(second)
    first.settle()
    task = first.aof("show", "001")
    assert (task["title"], task["priority"]) == ("one, by hand", "high")
    assert task["routing"]["tags"] == ["of-b"]
    first.healthy()


def test_a_persons_edit_on_one_side_comes_together_with_a_command_on_the_other(pair: tuple[Clone, Clone]) -> None:
    first, second = pair
    (path,) = (second.data / "tasks").glob("*/TASK-*-001.md")
    path.write_text(path.read_text().replace('title: "one"', 'title: "one, by hand"'))
    second.commit("edited by hand, and no command ran")
    first.aof("edit", "001", "--priority", "high")
    first.commit()
    first.pull(second)
    first.settle()
    task = first.aof("show", "001")
    assert (task["title"], task["priority"]) == ("one, by hand", "high")


def test_the_hash_of_an_event_names_it_in_both_clones_also_after_a_merge(pair: tuple[Clone, Clone]) -> None:
    first, second = pair
    first.aof("edit", "001", "--title", "one of a")
    second.aof("edit", "002", "--title", "two of b")
    edited = [clone.log()[-1] for clone in pair]
    second.aof("edit", "002", "--title", "two, once more")
    _together(first, second)
    for clone in pair:
        titles = [
            {task["title"] for task in clone.aof("replay", "--at", event["hash"][:12])["tasks"]} for event in edited
        ]
        assert "one of a" in titles[0]
        assert "two of b" in titles[1]
        assert clone.aof("show", "002", "--at", edited[1]["hash"])["title"] == "two of b"
        assert clone.aof("snapshot", "--at", edited[1]["hash"]) == second.aof(
            "snapshot", "--at", str(clone.aof("replay", "--at", edited[1]["hash"])["seq"])
        )
        assert clone.refused("replay", "--at", "0123456789abcdef") == "invalid"


def test_what_any_clone_or_branch_wrote_into_the_worklog_is_never_a_persons_edit(pair: tuple[Clone, Clone]) -> None:
    first, second = pair
    for clone in pair:  # alike, of one author and minute
        _decide(clone, f"Use the format of {clone.name}")
    second.commit()
    first.commit()
    assert not first.pull(second)
    first.git("checkout", "--theirs", ".aof/WORKLOG.md")
    first.aof("worklog", "show")
    first.settle()
    second.take(first)
    first.git("switch", "-qc", "branch")
    first.create("made on a branch")
    _decide(first, "Use the format of a branch")
    first.commit()
    first.git("switch", "-q", "main")
    first.create("made on the trunk")
    _decide(first, "Use the format of the trunk")
    first.commit()
    first.git("switch", "-q", "branch")
    decided = [row["decision"] for row in first.aof("worklog", "show")["decisions"]]
    assert sorted(decided) == [f"Use the format of {name}" for name in ("a", "a branch", "b")]
    for clone in pair:
        assert not (clone.data / "WORKLOG_EDITS.md").exists()
        assert clone.aof("worklog", "check")["ok"]


def test_an_edit_of_a_decision_is_kept_once_and_decides_nothing_in_any_clone(pair: tuple[Clone, Clone]) -> None:
    first, second = pair
    _decide(first, "Use JSONL")
    first.commit()
    second.take(first)
    worklog = second.data / "WORKLOG.md"
    worklog.write_text(worklog.read_text().replace("Use JSONL", "Use XML"))
    second.create("made in b")
    second.commit()
    _decide(first, "Test first", "bob")
    first.take(second)  # nothing of AOF has read the edited file before git brought it here
    second.take(first)
    for clone in pair:
        shown = clone.aof("worklog", "show")
        assert sorted(row["decision"] for row in shown["decisions"]) == ["Test first", "Use JSONL"]
        assert sorted(entry["subject"] for entry in shown["entries"]) == ["Test first", "Use JSONL"]
        told = clone.try_aof("worklog", "check", "--json")
        assert (told.code, [one["code"] for one in told.data["problems"]]) == (1, ["entry_edited"])
    assert differing(first, second) == []
