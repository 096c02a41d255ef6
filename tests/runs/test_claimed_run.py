"""The Python SDK for agents: a claimed run reports by method, keeps its lease by itself, and never ends in silence."""

from __future__ import annotations

import re
import traceback
from pathlib import Path

import msgspec
import pytest

from aof.api.fabric import Fabric
from aof.errors import InvalidInput, QuestionOpen, StaleLease
from aof.kernel.results import Claimed
from aof.service.bootstrap import init_data_dir, open_fabric
from tests.support.messages import report
from tests.support.room import Room
from tests.support.waiting import eventually


@pytest.fixture
def task_id(room: Room) -> str:
    """One task that can be claimed."""
    return room.task()


def test_what_a_claim_answers_is_the_same_in_json_as_ever(fabric: Fabric, task_id: str) -> None:
    work = fabric.claim(agent="ada")
    assert isinstance(work, Claimed)
    assert re.fullmatch(rf"RUN-{task_id[5:]}-1-[0-9a-f]{{8}}", work.run_id)
    said = msgspec.to_builtins(work)
    assert said.pop("secret").startswith(f"{work.run_id}/ada/")
    assert said == {
        "taskId": task_id,
        "runId": work.run_id,
        "epoch": 1,
        "attempt": 1,
        "expiresAt": "2026-03-02T09:05:00.000Z",
        "filePath": f"tasks/in-progress/{task_id}.md",
    }


def test_a_block_reports_progress_and_completes(room: Room, fabric: Fabric, task_id: str) -> None:
    with fabric.claim(agent="ada") as work:
        assert work.task.id == task_id
        work.progress("half way", percent=50)
        assert work.complete("all there", deliverables=["a.py"]).status == "review"
    assert not work.lost
    assert room.run_file(task_id, "run_result")["deliverables"] == ["a.py"]
    assert room.moves(task_id) == [("ready", "in-progress"), ("in-progress", "review")]


@pytest.mark.parametrize(
    ("how", "status"), [("block", "blocked"), ("blocked", "blocked"), ("fail", "ready"), ("release", "ready")]
)
def test_a_block_may_end_in_other_ways(room: Room, fabric: Fabric, task_id: str, how: str, status: str) -> None:
    with fabric.claim(agent="ada") as work:
        getattr(work, how)("no key")
    assert fabric.get(task_id).status == status
    assert fabric.get(task_id).retry.failures == (1 if how == "fail" else 0)
    assert len(room.moves(task_id)) == 2


def test_an_exception_is_reported_as_a_failure_and_goes_on(room: Room, fabric: Fabric, task_id: str) -> None:
    with pytest.raises(RuntimeError, match="boom"), fabric.claim(agent="ada"):
        raise RuntimeError("boom")
    error = fabric.get(task_id).last_error
    assert error is not None
    assert (error.code, error.message) == ("exception", "RuntimeError: boom")


def test_a_block_without_a_result_is_a_failure_with_a_name(fabric: Fabric, task_id: str) -> None:
    with fabric.claim(agent="ada"):
        pass
    task = fabric.get(task_id)
    assert (task.status, task.retry.failures) == ("ready", 1)
    assert task.last_error is not None
    assert task.last_error.code == "no_completion_report"


def test_a_report_by_message_counts_at_the_end_of_the_block(fabric: Fabric, task_id: str) -> None:
    with fabric.claim(agent="ada") as work:
        (sent,) = work.send(report(task_id, "ada"))
        assert sent.outcome == "accepted"
        assert fabric.get(task_id).status == "in-progress"
    assert fabric.get(task_id).status == "review"


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_interrupted_block_gives_the_task_back(fabric: Fabric, task_id: str, kind: type[BaseException]) -> None:
    with pytest.raises(kind), fabric.claim(agent="ada"):
        raise kind
    task = fabric.get(task_id)
    assert (task.status, task.retry.failures) == ("ready", 0)


def test_a_run_that_others_ended_cannot_write_any_more(fabric: Fabric, task_id: str) -> None:
    with fabric.claim(agent="ada") as work:
        fabric.block(task_id, reason="wait")
        with pytest.raises(StaleLease):
            work.complete("too late")
    assert fabric.get(task_id).status == "blocked"
    fabric.unblock(task_id)
    with fabric.claim(agent="ada"):
        fabric.block(task_id, reason="wait again")
    assert fabric.get(task_id).status == "blocked"


def test_heartbeats_run_by_themselves_until_the_run_is_lost(tmp_path: Path) -> None:
    root, _ = init_data_dir(tmp_path / ".aof")
    with open_fabric(root, actor="ada") as fabric:
        task_id = fabric.create("Work").task_id
        with fabric.claim(agent="ada", ttl=0.3) as work:
            beats = fabric.store.heartbeats
            eventually(lambda: (one := beats([task_id])[task_id]) is not None and one.beat_count > 3)
            assert fabric.tick().actions == ()
            fabric.block(task_id, reason="wait")
            eventually(lambda: work.lost)


def test_a_process_that_was_started_for_a_run_finds_it(room: Room, fabric: Fabric, task_id: str) -> None:
    with pytest.raises(InvalidInput):
        fabric.own_run()
    run = fabric.claim(task_id, agent="ada").run_id
    worker = fabric.as_actor("pm", run)
    with worker.own_run() as work:
        assert (work.run_id, work.attempt) == (run, 1)
        work.complete("done")
    with pytest.raises(StaleLease):
        worker.own_run()


def test_a_worker_asks_and_gets_the_answer_typed(fabric: Fabric, task_id: str) -> None:
    with fabric.claim(agent="ada") as work:
        asked = work.ask("Which port?", choices=["80", "443"])
        assert (asked.answered, asked.answer) == (False, None)
        fabric.answer(task_id, "443")
        known = work.ask(question=asked.question, wait=60)
        assert known.answer is not None
        assert (known.answer.text, known.answer.by) == ("443", "pm")
        work.complete("listens on 443")
    assert fabric.get(task_id).status == "review"


def test_a_worker_that_leaves_its_question_has_ended_its_run(fabric: Fabric, task_id: str) -> None:
    with fabric.claim(agent="ada") as work:
        assert work.ask("Which port?", leave=True).status == "blocked"
    assert fabric.get(task_id).retry.failures == 0
    assert fabric.answer(task_id, "443").status == "ready"


def test_a_worker_may_finish_without_the_answer_to_its_question(fabric: Fabric, task_id: str) -> None:
    with fabric.claim(agent="ada") as work:
        work.ask("Which region?")
        with pytest.raises(QuestionOpen) as refused:
            work.complete("all of them")
        assert "withdraw_questions=True" in "".join(traceback.format_exception(refused.value))
        assert work.complete("all of them", withdraw_questions=True).status == "review"


def test_a_worker_comments_and_delegates_below_its_task(fabric: Fabric, task_id: str) -> None:
    with fabric.claim(agent="ada") as work:
        assert work.comment("The key is in the vault").comments == 1
        child = work.delegate("Test it", "All of it", agent="qa", review=False, key="tests")
        assert work.delegate("Test it", "All of it", agent="qa", review=False, key="tests") == child
        assert work.release(wait_for_children=True).waits_for == (child.task_id,)
    made = fabric.get(child.task_id)
    assert (made.parent_id, made.created_by, made.routing.agent) == (task_id, "ada", "qa")


def test_a_wrong_word_in_a_report_is_answered_with_the_right_one(fabric: Fabric, task_id: str) -> None:
    with fabric.claim(agent="ada") as work:
        with pytest.raises(InvalidInput) as refused:
            work.complete("done", sumary_ref="a.md")  # type: ignore[call-arg] # what a user mistypes
        assert refused.value.message == "work.complete() has no parameter 'sumary_ref'"
        assert refused.value.hint == "did you mean 'summary_ref'?"
        with pytest.raises(TypeError, match=r"^work\.fail\(\) missing 1 required positional argument: 'message'$"):
            work.fail()  # type: ignore[call-arg] # as above
        work.release()


def test_a_claim_shows_itself_in_short_and_without_its_secret(fabric: Fabric, task_id: str) -> None:
    work = fabric.claim(agent="ada")
    assert re.fullmatch(rf"ClaimedRun\(task_id='{task_id}', run_id='RUN-[^']*', epoch=1, attempt=1, .*\)", repr(work))
    assert str(work.secret) not in repr(work)
    assert "UNSET" not in repr(work)
    assert work.to_dict()["secret"] == work.secret
