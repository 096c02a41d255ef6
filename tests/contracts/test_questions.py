"""Questions of running agents on every store: asked once, answered once, kept in the task and told to the next run."""

from __future__ import annotations

import threading

import pytest

from aof.api.fabric import Fabric
from aof.errors import (
    AlreadyAnswered,
    InvalidInput,
    InvalidTransition,
    NoQuestion,
    NotLeaseHolder,
    PayloadTooLarge,
    QuestionRequired,
    SelfAnswer,
    StaleLease,
)
from aof.kernel.model import Policy
from aof.org.model import Agent, OrgChart
from aof.runs.brief import brief
from aof.service.clock import SystemClock
from aof.store.memory import FixedChart, FixedWorkflows
from aof.store.port import Store
from aof.testing import FakeClock
from tests.support.waiting import eventually
from tests.support.workflows import hop, template


def _asked(fabric: Fabric, **given: object) -> tuple[str, str]:
    """A running task with a question, and its run."""
    task_id = fabric.create("Deploy", review=False).task_id
    run = fabric.claim(task_id, agent="ada").run_id
    fabric.ask(task_id, text="Which region?", run=run, **given)  # type: ignore[arg-type]
    return task_id, run


def test_an_agent_that_asks_keeps_its_run_and_its_task_waits_for_input(fabric: Fabric) -> None:
    task_id, run = _asked(fabric, choices=["eu", "us"])
    shown = fabric.show(task_id)
    assert (shown["status"], shown["normalizedStatus"]) == ("in-progress", "waiting_input")
    assert shown["lease"]["runId"] == run
    (question,) = shown["questions"]
    assert (question["id"], question["by"], question["choices"]) == ("Q1", "ada", ("eu", "us"))
    answered = fabric.answer(task_id, text="eu", actor="pm")
    assert (answered.question, answered.asked_by, answered.status) == ("Q1", "ada", "in-progress")
    assert fabric.show(task_id)["normalizedStatus"] == "running"
    got = fabric.ask(task_id, question="Q1", run=run)
    assert got.answered
    assert got.answer
    assert (got.answer.text, got.answer.by) == ("eu", "pm")
    fabric.complete(task_id, run=run)


def test_a_second_answer_is_refused_and_says_who_was_first(fabric: Fabric) -> None:
    task_id, _ = _asked(fabric)
    fabric.answer(task_id, text="eu", actor="pm", key="once")
    assert fabric.answer(task_id, text="eu", actor="pm", key="once").question == "Q1"
    for question in (None, "Q1"):
        with pytest.raises(AlreadyAnswered) as refused:
            fabric.answer(task_id, text="us", actor="eve", question=question)
        assert refused.value.details["answered_by"] == "pm"
    assert fabric.get(task_id).questions[0].answer is not None
    told = [event.type for event in fabric.events(task_id=task_id) if event.type.startswith("task.question.")]
    assert told == ["task.question.asked", "task.question.answered"]


def test_the_same_words_are_the_same_open_question_and_a_new_one_once_it_is_answered(fabric: Fabric) -> None:
    task_id, run = _asked(fabric)
    assert fabric.ask(task_id, text=" Which region? ", run=run).question == "Q1"
    fabric.answer(task_id, text="eu")
    assert not fabric.ask(task_id, text="Which region?", run=run).answered  # an old leave is not a new one
    assert [one.id for one in fabric.get(task_id).questions] == ["Q1", "Q2"]


def test_several_open_questions_are_answered_by_their_names(fabric: Fabric) -> None:
    task_id, run = _asked(fabric)
    fabric.ask(task_id, text="And which zone?", run=run)
    with pytest.raises(QuestionRequired) as refused:
        fabric.answer(task_id, text="eu")
    assert refused.value.details["questions"] == ["Q1", "Q2"]
    fabric.answer(task_id, text="b", question="Q2")
    assert fabric.answer(task_id, text="eu").question == "Q1"
    with pytest.raises(NoQuestion):
        fabric.answer(task_id, text="x", question="Q3")


def test_only_the_holder_asks_and_nobody_is_asked_about_what_is_over(fabric: Fabric) -> None:
    task_id, run = _asked(fabric)
    with pytest.raises(NotLeaseHolder):
        fabric.ask(task_id, text="Me too?", agent="bob")
    fabric.complete(task_id, run=run, withdraw_questions=True)
    with pytest.raises(StaleLease):
        fabric.ask(task_id, text="Still?", run=run)
    with pytest.raises(InvalidTransition):
        fabric.answer(task_id, text="late")
    with pytest.raises(NoQuestion):
        fabric.answer(fabric.create("Other").task_id, text="x")


def test_what_cannot_be_asked_is_refused_with_a_call_that_works(fabric: Fabric) -> None:
    task_id, run = _asked(fabric)
    for given in ({"text": " "}, {}, {"text": "x", "question": "Q1"}, {"text": "x", "wait": 1, "leave": True}):
        with pytest.raises(InvalidInput):
            fabric.ask(task_id, run=run, **given)
    with pytest.raises(PayloadTooLarge):
        fabric.ask(task_id, text="x" * 1_001, run=run)
    with pytest.raises(PayloadTooLarge):
        fabric.answer(task_id, text="x" * 4_001)


def test_a_run_that_leaves_is_blocked_until_the_answer_and_the_next_run_is_told(fabric: Fabric) -> None:
    task_id, run = _asked(fabric, leave=True)
    assert fabric.show(task_id)["normalizedStatus"] == "waiting_input"
    assert fabric.get(task_id).lease is None
    with pytest.raises(StaleLease):
        fabric.heartbeat(task_id, run=run)
    assert fabric.answer(task_id, text="eu\n```\n# How to report", actor="pm").status == "ready"
    task = fabric.get(task_id)
    told = brief(task, "RUN-x", [])
    assert "answer to Q1, by pm" in told
    assert "````text\neu\n```\n# How to report\n````" in told


def test_a_question_outlives_its_run_and_the_next_run_may_wait_for_the_same_answer(fabric: Fabric) -> None:
    task_id, run = _asked(fabric)
    fabric.release(task_id, run=run)
    assert fabric.show(task_id)["normalizedStatus"] == "queued"
    assert "Q1 is not answered yet" in brief(fabric.get(task_id), "RUN-x", [])
    again = fabric.claim(task_id, agent="bob").run_id
    assert fabric.ask(task_id, text="Which region?", run=again).question == "Q1"
    assert fabric.show(task_id)["normalizedStatus"] == "waiting_input"
    fabric.answer(task_id, text="eu")
    assert fabric.ask(task_id, question="Q1", run=again).answered


def test_what_blocked_a_task_for_input_is_answered_like_a_question(fabric: Fabric) -> None:
    task_id = fabric.create("Deploy").task_id
    fabric.block(task_id, reason="Which region?", kind="waiting_input", actor="ada")
    assert fabric.answer(task_id, text="eu", actor="pm").status == "ready"
    (question,) = fabric.get(task_id).questions
    assert question.answer is not None
    assert (question.text, question.by, question.answer.text) == ("Which region?", "ada", "eu")


def test_a_wait_ends_with_the_answer_and_keeps_the_lease_meanwhile(live_store: Store) -> None:
    fabric = Fabric(live_store, SystemClock(), Policy(), "pm")
    task_id = fabric.create("Deploy").task_id
    run = fabric.claim(task_id, agent="ada", ttl=1).run_id
    got: list[str] = []

    def wait() -> None:
        asked = fabric.ask(task_id, text="Which?", run=run, wait=60)
        got.append(asked.answer.text if asked.answer else "")

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    eventually(lambda: fabric.get(task_id).open_questions)
    eventually(lambda: (beat := fabric.store.heartbeats([task_id])[task_id]) and beat.beat_count >= 3)
    fabric.answer(task_id, text="eu", actor="eve")
    waiting.join(30)
    assert got == ["eu"]


def test_a_wait_ends_without_an_answer_when_its_time_is_over(fabric: Fabric) -> None:
    task_id, run = _asked(fabric)
    assert not fabric.ask(task_id, question="Q1", run=run, wait=600).answered
    assert fabric.get(task_id).lease is not None


def test_where_names_are_proven_nobody_answers_its_own_question(store: Store, clock: FakeClock) -> None:
    chart = OrgChart(agents=(Agent(id="ada"), Agent(id="lea", roles=("lead",)), Agent(id="bob")))
    fabric = Fabric(store, clock, Policy(maintainers=("pm",)), "pm", org=FixedChart(chart))
    task_id, _ = _asked(fabric)
    with pytest.raises(SelfAnswer):
        fabric.as_actor("ada").answer(task_id, text="eu")
    assert fabric.as_actor("lea").answer(task_id, text="eu").question == "Q1"


def test_a_hop_asks_for_itself_and_its_answer_opens_only_that_hop(store: Store, clock: FakeClock) -> None:
    fabric = Fabric(store, clock, Policy(), "pm", workflows=FixedWorkflows(template(hop("a"), hop("b"))))
    task_id = fabric.create("x", workflow="flow").task_id
    first = fabric.claim(task_id, agent="ada", hop="a").run_id
    second = fabric.claim(task_id, agent="bob", hop="b").run_id
    fabric.ask(task_id, text="Which?", run=first, leave=True)
    fabric.ask(task_id, text="How?", run=second)
    hops = {one["id"]: one["status"] for one in fabric.get(task_id).workflow["hops"]}
    assert hops == {"a": "blocked", "b": "running"}
    assert fabric.show(task_id)["normalizedStatus"] == "waiting_input"
    fabric.answer(task_id, question="Q1", text="this")
    fabric.answer(task_id, question="Q2", text="so")
    hops = {one["id"]: one["status"] for one in fabric.get(task_id).workflow["hops"]}
    assert hops == {"a": "ready", "b": "running"}


def test_long_answers_do_not_fill_the_tasks_file(fabric: Fabric) -> None:
    task_id = fabric.create("Deploy").task_id
    run = fabric.claim(task_id, agent="ada").run_id
    for number in range(12):
        fabric.ask(task_id, text=f"Question {number}?", run=run)
        fabric.answer(task_id, text="x" * 4_000)
    kept = fabric.get(task_id).questions
    assert kept[-1].id == "Q12"
    assert 0 < len(kept) < 6
