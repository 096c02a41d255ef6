"""Questions and what needs a person: the same on every surface, and a wait over HTTP holds no thread."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from aof.surfaces.http.responses import PREFIX
from tests.support.messages import message
from tests.support.service import workflow
from tests.support.waiting import eventually
from tests.support.workflows import hop, template
from tests.surfaces.doors import Door, OverHttp, answer_of, http_door, refusal_of

_MANY = 40  # more than a server lets try at once


def _asked(door: Door) -> str:
    task_id = str(answer_of(door.ask("create", title="Deploy", brief="x"))["taskId"])
    door.ask("claim", task_id=task_id, agent="ada")
    return task_id


def test_a_question_is_asked_found_and_answered_on_every_surface(door: Any) -> None:
    task_id = _asked(door)
    asked = door.ask("ask", task_id=task_id, text="Which region?", choices=["eu", "us"], agent="ada")
    assert (asked["question"], asked["answered"]) == ("Q1", False)
    found = [one for one in door.ask("inbox", kind=["question"], limit=100)["items"] if one["taskId"] == task_id]
    assert [(one["reason"], one["agent"], list(one["choices"])) for one in found] == [
        ("Which region?", "ada", ["eu", "us"])
    ]
    assert found[0]["next"][0] == {
        "operation": "answer",
        "arguments": {"taskId": task_id, "question": "Q1", "text": "…"},
    }
    answered = door.ask("answer", task_id=task_id, text="eu", question="Q1")
    assert (answered["question"], answered["askedBy"], answered["status"]) == ("Q1", "ada", "in-progress")
    told = door.ask("ask", task_id=task_id, question="Q1", agent="ada")
    assert (told["answered"], told["answer"]["text"]) == (True, "eu")
    refusal_of(door.ask("answer", task_id=task_id, text="us", question="Q1"), "already_answered")


def test_an_agent_that_waits_gets_the_answer_that_a_person_gives_meanwhile(door: Any) -> None:
    task_id = _asked(door)
    got: list[Any] = []
    wait = partial(door.ask, "ask", task_id=task_id, text="Which region?", agent="ada", wait=60)
    waiting = threading.Thread(target=lambda: got.append(wait()), daemon=True)
    waiting.start()
    eventually(lambda: bool(door.elsewhere.get(task_id).questions))
    assert not got
    door.elsewhere.answer(task_id, text="eu")
    waiting.join(60)
    assert [(one["answered"], one["answer"]["text"]) for one in got] == [(True, "eu")]


def test_views_of_work_have_the_same_shape_on_every_surface(door: Any) -> None:
    task_id = _asked(door)
    assert task_id in {held["taskId"] for held in door.ask("agents", agent="ada")["agents"][0]["holds"]}
    assert door.ask("timeline", task_id=task_id)["rows"][0]["agent"] == "ada"
    assert door.ask("neighbourhood", task_id=task_id)["root"] == task_id
    assert door.ask("task_at", task_id=task_id)["task"]["status"] == "in-progress"
    assert len(door.ask("flow", days=2)["days"]) == 2
    offered = door.ask("moves", task_id=task_id)
    assert "cancel" in {one["operation"] for one in offered["actions"]}


@pytest.fixture
def http(tmp_path: Path) -> Iterator[OverHttp]:
    """A server of its own."""
    with http_door(tmp_path) as door:
        yield door


def test_many_agents_wait_for_answers_and_leave_the_server_free(http: OverHttp) -> None:
    made: list[tuple[str, str]] = []
    for number in range(_MANY):
        task = http.client.post(f"{PREFIX}/create", json={"title": f"T{number}"}).json()["taskId"]
        run = http.client.post(f"{PREFIX}/claim", json={"taskId": task, "agent": f"a{number}"}).json()["runId"]
        made.append((task, run))
    got: dict[str, Any] = {}

    def wait(task: str, run: str) -> None:
        given = {"taskId": task, "text": "Which?", "run": run, "wait": 120}
        got[task] = http.client.post(f"{PREFIX}/ask", json=given, timeout=150).json()

    waiting = [threading.Thread(target=wait, args=one, daemon=True) for one in made]
    for one in waiting:
        one.start()
    eventually(lambda: http.client.get(f"{PREFIX}/inbox", params={"limit": 1}).json()["total"] == _MANY)
    assert http.client.get("/health").status_code == 200
    for task, _ in made:
        answered = http.client.post(f"{PREFIX}/answer", json={"taskId": task, "text": f"for {task}"})
        assert answered.status_code == 200
    for one in waiting:
        one.join(120)
    assert {task: one["answer"]["text"] for task, one in got.items()} == {task: f"for {task}" for task, _ in made}


def test_work_is_not_complete_while_its_agent_waits_for_an_answer(door: Any) -> None:
    task_id = _asked(door)
    run = door.elsewhere.get(task_id).lease.run_id
    door.ask("ask", task_id=task_id, text="Which region?", run=run)
    refused = refusal_of(door.ask("complete", task_id=task_id, run=run, summary="deployed"), "question_open")
    if door.name != "python":
        for word in ("Q1", "wait", "withdraw"):
            assert word in refused.hint
    assert (
        door.ask("complete", task_id=task_id, run=run, summary="to eu", withdraw_questions=True)["status"] == "review"
    )
    (question,) = door.elsewhere.get(task_id).questions
    assert (question.answer.by, question.answer.text.partition(":")[0]) == ("ada", "withdrawn")


def test_with_the_answer_the_work_is_complete(door: Any) -> None:
    task_id = _asked(door)
    run = door.elsewhere.get(task_id).lease.run_id
    door.ask("ask", task_id=task_id, text="Which region?", run=run)
    assert door.ask("progress", task_id=task_id, run=run, text="waiting")["taskId"] == task_id
    door.elsewhere.answer(task_id, text="eu")
    assert door.ask("complete", task_id=task_id, run=run, summary="to eu")["status"] == "review"


def test_a_hop_is_not_complete_while_its_agent_waits_for_an_answer(door: Any) -> None:
    workflow(door.root, template(hop("a"), hop("b", "a")))
    task_id = door.elsewhere.create("Gated", workflow="flow").task_id
    run = door.elsewhere.claim(task_id, agent="ada").run_id
    door.elsewhere.ask(task_id, text="Which region?", run=run)
    refusal_of(door.ask("complete", task_id=task_id, run=run), "question_open")
    done = answer_of(door.ask("complete", task_id=task_id, run=run, withdraw_questions=True))
    assert done["status"] == "ready"
    assert not door.elsewhere.get(task_id).open_questions


@pytest.mark.parametrize("gated", [False, True], ids=["plain", "gated"])
def test_a_report_by_message_is_kept_and_withdraws_the_question(door: Any, *, gated: bool) -> None:
    workflow(door.root, template(hop("a"), hop("b", "a")))
    task_id = door.elsewhere.create("By message", workflow="flow" if gated else None).task_id
    run = door.elsewhere.claim(task_id, agent="tester").run_id
    door.elsewhere.ask(task_id, text="Which region?", run=run)
    report = json.dumps(
        message("completion.report", task_id, "tester", {"outcome": "done", "summaryRef": "outputs/s.md"})
    )
    answer = answer_of(door.ask("send", messages=[report]))
    (sent,) = answer["results"]
    assert sent["outcome"] == "accepted", sent
    assert door.elsewhere.get(task_id).open_questions, "the run goes on until its session ends"
    door.ask("session_end", agent="tester", run=run)
    task = door.elsewhere.get(task_id)
    assert (task.status, task.open_questions) == ("ready" if gated else "review", ())
    assert [one.answer.by for one in task.questions if one.answer is not None] == ["tester"]
