"""What the command line says of work that goes on: who is next, what was sent back and why, and what came of parts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.command_line import Aof

REVIEW = """\
name: review
hops:
  - {id: implement, role: developer}
  - {id: code-review, role: reviewer, dependsOn: [implement], canReject: true}
"""


def _review(tmp_path: Path) -> None:
    (tmp_path / ".aof/workflows").mkdir(exist_ok=True)
    (tmp_path / ".aof/workflows/review.yaml").write_text(REVIEW)


@pytest.fixture
def gated(aof: Aof, tmp_path: Path) -> str:
    """A task whose first hop ada has completed, and what that call printed."""
    _review(tmp_path)
    aof("create", "Add refresh", "--workflow", "review", "--actor", "boss")
    aof("claim", "001", "--agent", "ada")
    aof("progress", "001", "half of it", "--agent", "ada")
    return aof("complete", "001", "it works", "--agent", "ada").out


def _sent_back(aof: Aof, reason: str = "no test\nfor expiry") -> str:
    aof("claim", "001", "--agent", "rita")
    return aof("complete", "001", "--agent", "rita", "--outcome", "needs_review", "--blocker", reason).out


def test_complete_says_who_is_next_and_what_was_sent_back(aof: Aof, gated: str) -> None:
    assert gated.split("  ", 1)[1] == "ready  next: code-review (reviewer)\n"
    assert _sent_back(aof).split("  ", 1)[1] == "ready  sent back to implement\n"


def test_prime_marks_what_was_sent_back_until_it_is_done_again(aof: Aof, gated: str) -> None:
    mark = "; sent back by rita: no test for expiry\n"
    assert gated
    assert "sent back by" not in aof("prime", "--agent", "ada").out
    _sent_back(aof)
    assert mark in aof("prime", "--agent", "ada").out
    run = aof("claim", "001", "--agent", "ada", "--json").data["runId"]
    assert mark in aof("prime", "--agent", "ada").out
    aof("complete", "001", "with a test", "--agent", "ada", "--run", run)
    assert "sent back by" not in aof("prime", "--agent", "rita").out


def test_prime_marks_a_task_that_a_person_rejected(aof: Aof) -> None:
    aof("create", "Add refresh", "--actor", "boss")
    aof("claim", "001", "--agent", "ada")
    aof("complete", "001", "it works", "--agent", "ada")
    aof("reject", "001", "--reason", "no test", "--actor", "boss")
    assert "; sent back by boss: no test\n" in aof("prime", "--agent", "ada").out


def test_prime_shows_commands_that_work_for_this_agent_and_no_line_that_says_nothing(aof: Aof, gated: str) -> None:
    assert gated
    said = aof("prime", "--agent", "rita").out
    assert "Maintainer Focus" not in said
    assert ": idle" not in said
    for call in ("progress ID", "complete ID", "release ID --wait-for-children", "ask ID …"):
        assert f"aof {call} --agent rita --run RUN" in said, call


def test_show_says_who_sent_it_back_and_who_reported_what(aof: Aof, gated: str) -> None:
    assert gated
    _sent_back(aof)
    said = aof("show", "001").out
    assert re.search(r"run 1 +ada completed, ended", said)
    assert re.search(r"run 2 +rita sent it back, ended", said)
    assert re.search(r"- \S+Z ada: Progress: half of it\n", said)
    assert re.search(r"status +ready\n", said), "one word for one state"


def test_show_lists_parts_with_what_came_of_them(aof: Aof) -> None:
    aof("create", "Add refresh")
    aof("create", "Write the tests", "--parent", "001", "--no-review", "--agent", "bob")
    aof("create", "Document it", "--parent", "001")
    aof("complete", "002", "12 cases pass\nin 3 files", "--agent", "bob")
    lines = aof("show", "001").out.splitlines()
    assert [line.split("  ")[-1] for line in lines if "─ " in line] == ["Write the tests: 12 cases pass", "Document it"]


def test_show_says_who_withdrew_a_handoff_and_why(aof: Aof) -> None:
    aof("create", "Add refresh")
    aof("claim", "001", "--agent", "ada")
    how = ("--type", "delegation", "--from", "ada", "--to", "writer", "--task", "001", "--reason", "needs words")
    made = aof("handoff", "new", *how, "--json").data
    assert made["warnings"] == ["writer has not been seen yet, and has to accept"]
    aof("handoff", "withdraw", made["handoffId"], "--agent", "ada", "--reason", "no writer here")
    said = aof("show", "001").out
    assert "delegation rejected: ada → writer, withdrawn: no writer here (ada)" in said
    (shown,) = aof("show", "001", "--json").data["handoffs"]
    assert (shown["reason"], shown["by"]) == ("withdrawn: no writer here", "ada")


def test_a_receiver_that_was_seen_is_handed_work_without_a_warning(aof: Aof) -> None:
    aof("create", "Add refresh")
    aof("create", "Document it")
    aof("claim", "002", "--agent", "writer")
    aof("claim", "001", "--agent", "ada")
    how = ("--type", "delegation", "--from", "ada", "--to", "writer", "--task", "001", "--reason", "needs words")
    assert "warnings" not in aof("handoff", "new", *how, "--json").data


@pytest.mark.parametrize(("text", "none_of"), [("EU", None), ("asia", ["eu", "us"])])
def test_an_answer_that_is_none_of_the_choices_counts_and_says_so(aof: Aof, text: str, none_of: object) -> None:
    aof("create", "Deploy")
    aof("claim", "001", "--agent", "ada")
    aof("ask", "001", "Which region?", "--choice", "eu", "--choice", "us", "--agent", "ada")
    assert aof("answer", "001", text, "--json").data.get("noneOf") == none_of
    aof("ask", "001", "And then?", "--choice", "eu", "--choice", "us", "--agent", "ada")
    said = aof("answer", "001", text).out
    assert ("the answer is none of the choices: eu, us" in said) == (none_of is not None)


def test_a_task_waits_for_another_in_the_word_that_lists_use(aof: Aof) -> None:
    aof("create", "First")
    assert "which is ready" in aof("create", "Second", "--dep", "001").out
    assert "which is not claimed yet" in aof("create", "Third", "--dep", "002").out


def _unnamed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Agents run under a user of their own, and nobody says who calls."""
    monkeypatch.delenv("AOF_ACTOR")
    monkeypatch.setenv("USER", "root")


def test_agents_under_one_user_of_the_system_judge_each_others_work(
    aof: Aof, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _unnamed(monkeypatch)
    _review(tmp_path)
    aof("create", "Add refresh", "--workflow", "review", "--actor", "boss")
    aof("create", "Plain", "--actor", "boss")
    for task in ("001", "002"):
        aof("claim", task, "--agent", "ada")
        aof("complete", task, "it works", "--agent", "ada")
    own = aof("claim", "001", "--agent", "ADA", "--json")
    assert (own.error["code"], own.error["message"].split(" of ")[0]) == (
        "own_work",
        "ADA has worked on hop 'implement'",
    )
    assert aof("claim", "--agent", "bob").code == 0
    assert aof("complete", "001", "good", "--agent", "bob").out.endswith("done\n")
    assert "  done" in aof("complete", "002", "good", "--agent", "bob").out


def test_the_user_of_the_system_does_not_judge_what_it_has_called_and_is_told_whose_run_it_was(
    aof: Aof, monkeypatch: pytest.MonkeyPatch
) -> None:
    _unnamed(monkeypatch)
    aof("create", "Plain", "--actor", "boss")
    aof("claim", "001", "--agent", "ada")
    aof("complete", "001", "it works", "--agent", "ada")
    said = aof("approve", "001").err
    assert "root also called ada's run of TASK-" in said
    assert "--solo" not in said


def test_a_caller_that_was_named_stands_behind_the_names_it_gives_and_learns_how_to_call(
    aof: Aof, tmp_path: Path
) -> None:
    _review(tmp_path)
    aof("create", "Add refresh", "--workflow", "review")
    aof("claim", "001", "--agent", "ada", "--actor", "host")
    aof("complete", "001", "it works", "--agent", "ada", "--actor", "host")
    said = aof("claim", "001", "--agent", "bob", "--actor", "host").err
    assert "host, who calls as bob, also called ada's run of hop 'implement'" in said
    assert "--actor bob" in said
    assert aof("claim", "001", "--agent", "bob", "--actor", "bob").code == 0


def test_only_a_person_is_told_how_to_allow_own_work(aof: Aof) -> None:
    for name, told in (("ada", False), ("tester", True)):
        task = aof("create", "Plain", "--actor", "boss", "--json").data["taskId"]
        aof("complete", task, "it works", "--agent", name, "--actor", name)
        assert ("--solo" in aof("approve", task, "--actor", name).err) is told


def test_who_did_the_work_is_not_offered_its_review_and_reads_why(aof: Aof, gated: str) -> None:
    assert gated
    aof("create", "Another", "--actor", "boss", "--priority", "low")
    assert "Add refresh" not in aof("ready", "--agent", "ada").out
    assert "ada has worked on hop 'implement'" in aof("ready", "--explain", "--agent", "ada").out
    assert "Next: aof_task_claim TASK-" in (primed := aof("prime", "--agent", "ada").out)
    assert "Add refresh" not in primed
    assert aof("claim", "--agent", "ada", "--json").data["taskId"].endswith("002")
    refused = aof("claim", "--agent", "ada")
    assert (refused.code, "aof ready --explain --agent ada" in refused.err) == (3, True)


def test_a_review_is_offered_as_one(aof: Aof, gated: str) -> None:
    assert gated
    offered = "Add refresh: code-review (reviewer) of ada's work"
    for words in (("ready",), ("ready", "--agent", "bob"), ("prime", "--agent", "bob")):
        assert offered in aof(*words).out
    (row,) = aof("ready", "--agent", "bob", "--json").data["tasks"]
    assert (row["hop"], row["role"], row["reviews"]) == ("code-review", "reviewer", ["ada"])
    page = aof("ready", "--agent", "ada", "--json").data
    assert (page["total"], page["tasks"]) == (0, [])


def test_a_question_says_how_its_answer_is_got_and_when_it_has_ended_the_run(aof: Aof) -> None:
    aof("create", "Work")
    aof("claim", "001", "--agent", "ada")
    assert "question Q1 and wait" in aof("ask", "001", "Which?", "--agent", "ada", "--json").data["note"]
    said = aof("ask", "001", "And this?", "--leave", "--agent", "ada").out
    assert "Q2 is open: the run has ended; the answer makes the task ready again" in said


def test_a_worker_that_lost_its_run_finds_it_in_show_and_in_prime(aof: Aof, gated: str) -> None:
    assert gated
    run = aof("claim", "001", "--agent", "bob", "--json").data["runId"]
    assert f"code-review [reviewer] running by bob as {run}" in aof("show", "001").out
    assert f"Add refresh; as {run}" in aof("prime", "--agent", "bob").out
