"""Handoffs between real processes, as the example shows them: a chain, a majority, a person, silence and death."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from aof.api.fabric import Fabric
from aof.handoffs.model import Handoff
from aof.service.bootstrap import open_fabric
from tests.support.service import Up, directory, scripted
from tests.support.waiting import eventually

DEMO = Path(__file__).parents[2] / "examples" / "handoffs" / "demo.py"
BOUND = 240.0


@pytest.fixture(scope="module")
def fabric(tmp_path_factory: pytest.TempPathFactory) -> Fabric:
    """What the demo has left, which was run once."""
    folder = tmp_path_factory.mktemp("team")
    home = folder / "home"
    home.mkdir()
    env = os.environ | {"HOME": str(home), "XDG_CONFIG_HOME": str(home)}
    done = subprocess.run(
        [sys.executable, str(DEMO), str(folder)], env=env, capture_output=True, text=True, timeout=BOUND, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("All 5 tasks ended as announced, and all 32 audit records are as they were written.\n")
    assert done.stderr == ""
    return open_fabric(folder / ".aof", actor="maintainer")


def of(fabric: Fabric, title: str) -> list[Handoff]:
    """The handoffs of a task, oldest first."""
    (task,) = [one.id for one in fabric.list().tasks if one.title == title]
    return list(fabric.handoff_list(task=task))


def steps(fabric: Fabric, handoff: Handoff) -> list[str]:
    """What the audit says of a handoff."""
    return [one.event_type for one in fabric.audit(handoff=handoff.id).records]


def test_a_task_goes_from_the_architect_to_the_implementer_to_the_reviewer(fabric: Fabric) -> None:
    chain = of(fabric, "Token refresh")
    assert [(one.from_agent, one.to_agent) for one in chain] == [
        ("architect", "implementer"),
        ("implementer", "reviewer"),
    ]
    assert {tuple(steps(fabric, one)) for one in chain} == {("initiated", "accepted", "completed")}
    task = fabric.get(chain[0].task_id)
    assert (task.status, task.owner) == ("done", "reviewer")
    runs = [(run.agent_id, run.status) for run in fabric.store.attempts(task.id)]
    assert [agent for agent, _ in runs] == ["architect", "implementer", "reviewer"]


def test_the_majority_of_three_reviews_decides(fabric: Fabric) -> None:
    members = of(fabric, "Is the login safe?")
    assert sorted((one.to_agent, one.state) for one in members) == [
        ("ann", "completed"),
        ("ben", "completed"),
        ("cas", "failed"),
    ]
    group = fabric.handoff_group(str(members[0].broadcast_group_id))
    assert (group.aggregation, group.state) == ("majority", "success")


def test_a_person_has_answered_on_the_command_line(fabric: Fabric) -> None:
    (asked,) = of(fabric, "May we delete the old data?")
    assert (asked.to_agent, asked.state, asked.outcome) == ("human", "completed", "success")
    assert asked.returned is not None
    assert asked.returned.result is not None
    assert asked.returned.result.body == "yes, after a backup"
    assert steps(fabric, asked) == ["initiated", "escalated", "accepted", "completed"]


def test_an_agent_that_never_acknowledges_is_passed_over(fabric: Fabric) -> None:
    first, second = of(fabric, "Describe the login")
    assert (first.to_agent, first.state, second.to_agent, second.state) == (
        "silent",
        "rejected",
        "writer",
        "completed",
    )
    assert steps(fabric, first) == ["initiated", "timeout", "rejected"]


def test_an_agent_that_dies_after_accepting_is_reminded_and_replaced(fabric: Fabric) -> None:
    first, second = of(fabric, "Move the data")
    assert (first.to_agent, first.state) == ("fragile", "escalated")
    assert first.reminded_at is not None
    assert (second.to_agent, second.state, second.forwarded_from) == ("ann", "completed", first.id)
    assert steps(fabric, first) == ["initiated", "accepted", "timeout", "escalated"]


def test_every_handoff_is_over_and_every_record_is_what_was_written(fabric: Fabric) -> None:
    assert fabric.handoff_list(state="open") == ()
    assert fabric.audit_verify().ok
    assert fabric.doctor().ok


def test_every_task_is_done_and_by_whom(fabric: Fabric) -> None:
    ends = {one.title: (one.status, fabric.store.attempts(one.id)[-1].agent_id) for one in fabric.list().tasks}
    assert ends == {
        "Token refresh": ("done", "reviewer"),
        "Is the login safe?": ("done", "maintainer"),
        "Describe the login": ("done", "writer"),
        "Move the data": ("done", "ann"),
        "May we delete the old data?": ("done", "maintainer"),
    }


def test_the_demo_fails_and_says_why_when_an_agent_misbehaves(tmp_path: Path) -> None:
    shutil.copytree(DEMO.parent, tmp_path / "handoffs")
    finishes = tmp_path / "handoffs" / "agents" / "finishes.py"
    asks = "with aof.open() as fabric, fabric.own_run() as work:\n    work.complete('', outcome='needs_review')\n"
    finishes.write_text(f"import aof\n{asks}", encoding="utf-8")
    demo = tmp_path / "handoffs" / "demo.py"
    demo.write_text(demo.read_text(encoding="utf-8").replace("BOUND = 60.0", "BOUND = 15.0"), encoding="utf-8")
    home = tmp_path / "home"
    home.mkdir()
    env = os.environ | {"HOME": str(home), "XDG_CONFIG_HOME": str(home)}
    done = subprocess.run(
        [sys.executable, str(demo)], env=env, capture_output=True, text=True, timeout=BOUND, check=False
    )
    assert done.returncode == 1, done.stdout + done.stderr
    told = done.stdout.partition("Not all is as announced.")[2]
    assert "'Token refresh' should be done, and is review." in told
    assert "ended as announced" not in done.stdout


def test_agents_that_are_processes_are_started_to_answer_a_broadcast_and_an_escalation(tmp_path: Path) -> None:
    answers = {name: scripted("report=done") for name in ("ann", "ben", "lead")}
    root = directory(tmp_path, {**answers, "cas": scripted("report=blocked,no idea"), "ada": {}})
    with open_fabric(root, actor="pm") as fabric:
        asked = fabric.create("Is it safe?", agent="ada").task_id
        stuck = fabric.create("Which way?", agent="ada").task_id
        group = fabric.handoff_new(
            type="broadcast",
            task_id=asked,
            reason="is it safe?",
            from_agent="pm",
            to=["ann", "ben", "cas"],
            aggregation="majority",
        )
        climb = fabric.handoff_new(
            type="escalation", task_id=stuck, reason="which way?", from_agent="pm", to=["lead"], rationale="two ways"
        )
        with Up(root) as up:
            eventually(lambda: fabric.handoff_group(str(group.broadcast_group_id)).state == "success", "majority")
            eventually(lambda: fabric.handoff_show(str(climb.handoff_id)).state == "completed", "answer of lead")
            assert up.end() == 0
        answered = fabric.handoff_show(str(climb.handoff_id))
        assert answered.returned is not None
        assert answered.returned.result is not None
        (answer,) = [one for one in fabric.tasks(tag="handoff-answer") if one.metadata["answersHandoff"] == answered.id]
        assert answered.returned.result.body["task"] == answer.id
        assert (answer.title, answer.status, answer.routing.agent) == ("Answer pm: which way?", "done", "lead")
        assert [fabric.get(one).status for one in (asked, stuck)] == ["ready", "ready"], "nobody else has run them"
        assert not [event for event in fabric.events() if event.type == "agent.unavailable"]
