"""Mail, jobs, charter, handoffs and shared context that several clones wrote to."""

from __future__ import annotations

from typing import Any

import pytest

from aof.handoffs.context import context_of
from aof.handoffs.model import Handoff, evolve_handoff
from aof.jobs.rules import Job, evolve_jobs
from aof.kernel.events import Event, about_handoff
from tests.support.forks import Clone, Repository


class Pair:
    """Two clones."""

    def __init__(self) -> None:
        self.repository = Repository()
        self.a: Clone = self.repository.root
        self.a.fabric.create("shared", review=False)
        self.task = self.a.log[0].task_id
        self.b = self.a

    def split(self) -> None:
        self.b = self.a.fork("bob")

    def wait(self) -> None:
        self.repository.clock.sleep(60)

    def said(self, prefix: str) -> list[Event]:
        return [event for event in self.a.log if event.type.startswith(prefix)]


@pytest.fixture
def pair() -> Pair:
    return Pair()


def test_two_messages_of_one_number_both_arrive_and_answers_follow_theirs(pair: Pair) -> None:
    pair.split()
    mine = pair.a.fabric.mail_send("ann", "mine", from_agent="root").message_id
    pair.wait()
    theirs = pair.b.fabric.mail_send("ben", "theirs", from_agent="bob").message_id
    assert mine == theirs
    pair.b.fabric.mail_ack(theirs, agent="ben", reason="read it")
    merged = pair.a.pull(pair.b)
    (moved,) = merged.report.renumbered
    assert (moved.old, moved.title) == (theirs, "theirs")
    shown = pair.a.fabric.mail_show(moved.new)
    assert (shown.subject, shown.status, [ack.reason for ack in shown.acks]) == ("theirs", "acknowledged", ["read it"])
    assert pair.a.fabric.mail_show(mine).status == "unread"


def test_a_message_has_the_furthest_status_and_the_lines_of_both_clones(pair: Pair) -> None:
    message = pair.a.fabric.mail_send("ann", "a question", from_agent="root").message_id
    pair.split()
    pair.a.fabric.mail_action(message, agent="ann", reason="did it")
    pair.wait()
    pair.b.fabric.mail_ack(message, agent="ann", reason="saw it")
    pair.a.pull(pair.b)
    shown = pair.a.fabric.mail_show(message)
    assert shown.status == "actioned"
    assert {ack.reason for ack in shown.acks} == {"did it", "saw it"}


def test_jobs_of_one_name_are_both_kept_and_each_goes_on_under_its_own(pair: Pair) -> None:
    pair.split()
    pair.a.fabric.job_add("nightly", title="mine", cron="0 3 * * *")
    pair.wait()
    pair.b.fabric.job_add("nightly", title="theirs", cron="0 4 * * *")
    pair.b.fabric.job_pause("nightly")
    merged = pair.a.pull(pair.b)
    (moved,) = merged.report.renumbered
    jobs: dict[str, Job] = {}
    for event in pair.said("document.job."):
        jobs = evolve_jobs(jobs, event)
    titles = {name: (job.id, job.task.title if job.task else "", job.paused) for name, job in jobs.items()}
    assert titles == {"nightly": ("nightly", "mine", False), moved.new: (moved.new, "theirs", True)}


def test_items_of_a_batch_that_one_clone_has_created_are_not_created_again() -> None:
    record = {"id": "batch", "createdBy": "root", "createdAt": "", "items": [{"title": str(n)} for n in range(3)]}
    items = ((2, "item 3"), (3, "item 1"))  # one clone was further than the other
    made = [_job("added", 1, record=record), *(_job("dispatched", seq, occasion=item) for seq, item in items)]
    jobs: dict[str, Job] = {}
    for event in made:
        jobs = evolve_jobs(jobs, event)
    assert jobs["batch"].done == 3


def _job(kind: str, seq: int, **payload: Any) -> Event:
    return Event(
        seq=seq,
        type=f"document.job.{kind}",
        timestamp="2026-11-16T09:00:00.000Z",
        actor="root",
        task_id="",
        payload={"job": "batch", **payload},
        commit=(1, 1),
    )


def test_of_two_charters_the_first_stands_and_the_other_is_in_the_log(pair: Pair) -> None:
    pair.split()
    pair.a.fabric.charter_init(project="mine")
    pair.wait()
    pair.b.fabric.charter_init(project="theirs")
    merged = pair.a.pull(pair.b)
    assert pair.a.fabric.charter_show().project == "mine"
    (superseded,) = pair.said("document.superseded")
    assert superseded.payload["told"]["charter"]["project"] == "theirs"
    assert merged.report.notes == ("the charter was created twice; that of bob is in the log only",)


def _handoffs(clone: Clone) -> dict[str, Handoff]:
    found: dict[str, Handoff] = {}
    for event in clone.log:
        if about_handoff(event):
            name = event.payload["handoffId"]
            after = evolve_handoff(found.get(name), event)
            if after is not None:
                found[name] = after
    return found


def test_a_handoff_has_the_furthest_state_and_no_step_is_lost_from_the_audit(pair: Pair) -> None:
    made = pair.a.fabric.handoff_new(
        type="delegation", task_id=pair.task, reason="help", from_agent="root", to=["ann"], timeout="1h"
    )
    handoff = made.handoff_id
    assert handoff is not None
    pair.split()
    pair.a.fabric.handoff_reject(handoff, agent="ann", reason="no time")
    pair.wait()
    pair.b.fabric.handoff_accept(handoff, agent="ann")
    pair.a.pull(pair.b)
    assert _handoffs(pair.a)[handoff].state == "rejected"
    assert [one.id for one in pair.a.task(pair.task).handoffs if one.id == handoff] == []
    audited = [event.payload["audit"]["event_type"] for event in pair.a.log if "audit" in event.payload]
    assert {"initiated", "rejected", "accepted"} <= set(audited)


def test_handoffs_of_both_clones_are_both_there(pair: Pair) -> None:
    pair.split()
    for clone, agent in ((pair.a, "ann"), (pair.b, "ben")):
        pair.wait()
        clone.fabric.handoff_new(
            type="delegation", task_id=pair.task, reason="help", from_agent="root", to=[agent], timeout="1h"
        )
    pair.a.pull(pair.b)
    assert {one.to_agent for one in _handoffs(pair.a).values()} == {"ann", "ben"}
    assert {one.to_agent for one in pair.a.task(pair.task).handoffs} == {"ann", "ben"}


def test_shared_variables_of_both_clones_are_there_and_of_one_name_the_later_stands(pair: Pair) -> None:
    pair.split()
    pair.a.fabric.context_set(pair.task, variables={"x": "a", "only_a": 1})
    pair.wait()
    pair.b.fabric.context_set(pair.task, variables={"x": "b", "only_b": 2})
    merged = pair.a.pull(pair.b)
    values = {name: one.value for name, one in context_of(pair.a.task(pair.task)).variables.items()}
    assert values == {"x": "b", "only_a": 1, "only_b": 2}
    (clash,) = merged.report.tasks[0].clashes
    assert (clash.field, clash.kept, clash.other) == ("context.x", "b", "a")


def test_questions_of_one_number_are_both_asked_and_answers_follow_theirs(pair: Pair) -> None:
    pair.split()
    for clone, agent in ((pair.a, "ann"), (pair.b, "ben")):
        pair.wait()
        run = clone.fabric.claim(pair.task, agent=agent).run_id
        clone.fabric.ask(pair.task, text=f"asked by {agent}", run=run)
    pair.b.fabric.answer(pair.task, text="yes, ben")
    merged = pair.a.pull(pair.b)
    asked = {one.text: one for one in pair.a.task(pair.task).questions}
    assert asked.keys() == {"asked by ann", "asked by ben"}
    assert asked["asked by ann"].answer is None
    assert asked["asked by ben"].answer is not None
    assert asked["asked by ben"].answer.text == "yes, ben"
    assert len({one.id for one in asked.values()}) == 2
    assert any("two questions had the number Q1" in note for note in merged.report.tasks[0].notes)
    assert not merged.report.renumbered


def test_of_two_answers_to_one_question_the_later_stands_and_the_other_is_named(pair: Pair) -> None:
    run = pair.a.fabric.claim(pair.task, agent="ann").run_id
    pair.a.fabric.ask(pair.task, text="which one?", run=run)
    pair.split()
    pair.a.fabric.answer(pair.task, text="this")
    pair.wait()
    pair.b.fabric.answer(pair.task, text="that")
    merged = pair.a.pull(pair.b)
    (question,) = pair.a.task(pair.task).questions
    assert question.answer is not None
    assert question.answer.text == "that"
    (clash,) = merged.report.tasks[0].clashes
    assert (clash.field, clash.kept, clash.other) == ("question.Q1", "that", "this")
