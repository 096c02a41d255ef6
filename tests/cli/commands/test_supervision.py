"""What people who supervise agents see on the command line."""

from __future__ import annotations

from tests.support.command_line import Aof


def test_an_open_question_is_shown_with_its_choices(aof: Aof) -> None:
    aof("create", "Deploy")
    aof("claim", "001", "--agent", "ada")
    aof("ask", "001", "Which region?", "--choice", "eu", "--choice", "us", "--agent", "ada")
    assert "Q1 Which region? [eu | us] (ada)" in aof("inbox").out
    assert "Which region? [eu | us] (ada)" in aof("show", "001").out


def test_a_question_without_an_answer_yet_shows_how_to_wait_for_one(aof: Aof) -> None:
    task_id = aof("create", "Deploy", "--json").data["taskId"]
    aof("claim", "001", "--agent", "ada")
    asked = aof("ask", "001", "Which region?", "--agent", "ada").out
    assert f"aof ask {task_id} --question Q1 --wait 10m" in asked
    left = aof("ask", "001", "May I?", "--agent", "ada", "--leave").out
    assert "Q2 is open" in left
    assert "--wait" not in left


def test_a_change_at_an_event_is_shown_as_json_from_where_it_differs(aof: Aof) -> None:
    aof("create", "Deploy")
    aof("claim", "001", "--agent", "ada")
    aof("ask", "001", "Which region?", "--agent", "ada")
    aof("answer", "001", "eu")
    changed = aof("at", "001").out
    assert '"answer":{"text":"eu"' in changed
    assert "{'" not in changed


def test_an_event_that_changed_no_field_says_so(aof: Aof) -> None:
    aof("create", "Deploy")
    assert "this event changed no field" in aof("at", "001", "--seq", "3").out


def test_an_agent_that_nobody_knows_is_not_taken_for_an_empty_team(aof: Aof) -> None:
    aof("create", "Deploy")
    aof("claim", "001", "--agent", "ada")
    assert aof("agents", "--agent", "eve").out.strip() == "no agents"


def test_a_wrong_duration_is_refused_with_the_forms_that_work(aof: Aof) -> None:
    refused = aof("claim", "--agent", "ada", "--wait", "soon")
    assert refused.code == 2
    assert "--wait needs seconds or a time such as 90s, 5m or 2h, not 'soon'" in refused.err


def test_work_in_review_is_called_a_review_everywhere(aof: Aof) -> None:
    aof("create", "Deploy")
    aof("complete", "001", "done", "--agent", "ada")
    assert "  review  " in aof("inbox").out
    assert "waiting permission" not in aof("show", "001").out
    assert aof("inbox", "--kind", "review", "--json").data == aof("inbox", "--kind", "gate", "--json").data
    assert aof("inbox", "--kind", "review", "--json").data["total"] == 1


def test_the_holder_of_a_lease_that_lives_is_not_offered_to_others_for_release(aof: Aof) -> None:
    aof("create", "Deploy")
    aof("claim", "001", "--agent", "ada")
    assert "release" not in aof("claim", "001", "--agent", "bob").err
    said = aof("claim", "001").err
    assert "only if the worker of ada is dead, end its run: aof release" in said


def test_the_way_back_from_a_claim_is_a_call_that_works(aof: Aof) -> None:
    aof("create", "Deploy")
    aof("claim", "001", "--agent", "ada")
    offered = aof("undo").err.partition("→ give the run back: aof ")[2].split()
    unnamed = aof("release", "001").err
    assert "leave it to ada, whose lease lasts until" in unnamed
    assert f"only if the worker of ada is dead, end its run: aof {' '.join(offered)}" in unnamed
    assert "end its run" not in aof("release", "001", "--agent", "bob").err
    assert aof(*offered).out.split()[1] == "ready"


def test_a_task_that_runs_is_not_said_to_wait_when_it_is_retried(aof: Aof) -> None:
    aof("create", "Deploy")
    aof("claim", "001", "--agent", "ada")
    said = aof("retry", "001", "--reason", "again").err
    assert "is in-progress; only a done, cancelled or dead task is retried" in said
    assert "see who works on it: aof show" in said


def test_prime_counts_as_ready_only_what_can_be_claimed(aof: Aof) -> None:
    aof("create", "Write it")
    aof("create", "Print it", "--dep", "001")
    assert "Tasks: 1 ready, 1 waiting\n" in aof("prime", "--agent", "ada").out
