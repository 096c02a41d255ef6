"""Budgets at work on real files: what AOF enforces by itself, and what is recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aof.api.fabric import Fabric
from aof.errors import BudgetExceeded, InvalidInput
from aof.kernel.model import Policy
from aof.store.files.store import FilesystemStore
from aof.store.memory import FixedChart
from aof.testing import FakeClock
from tests.support.messages import report
from tests.support.requirements import requirement
from tests.support.team import chart_of


class Workshop:
    """A data directory with a chart of one agent, and a task that it runs."""

    def __init__(self, root: Path, **autonomy: Any) -> None:
        self.root = root
        self.clock = FakeClock("2026-03-02T09:00:00Z")
        chart = chart_of(agents=[{"id": "ada", "autonomy": autonomy}, {"id": "bob"}])
        FilesystemStore.create(str(root))
        store = FilesystemStore(str(root), self.clock, durable=False)
        self.fabric = Fabric(store, self.clock, Policy(maintainers=("pm",)), "pm", org=FixedChart(chart))

    def running(self) -> str:
        task_id = self.fabric.create("Work").task_id
        self.fabric.claim(task_id, agent="ada", ttl=80_000)
        return task_id

    def deliver(self, task_id: str, **lines: int) -> list[str]:
        """Files with so many lines in the task's folder."""
        folder = self.root / "tasks" / "in-progress" / task_id / "outputs"
        folder.mkdir(parents=True, exist_ok=True)
        for name, count in lines.items():
            (folder / f"{name}.txt").write_text("x\n" * count)
        return [f"outputs/{name}.txt" for name in lines]

    def checks(self, task_id: str) -> list[dict[str, Any]]:
        return [event.payload for event in self.fabric.events(task_id=task_id) if event.type == "autonomy.checked"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Where the data directory will be."""
    return tmp_path / ".aof"


def test_a_completion_that_delivers_more_files_or_lines_than_allowed_is_refused_and_recorded(root: Path) -> None:
    shop = Workshop(root, level=1, limits={"files": 2, "lines": 10})
    task_id = shop.running()
    three = shop.deliver(task_id, a=1, b=1, c=1)
    with pytest.raises(BudgetExceeded, match="3 of the 2 files") as refused:
        shop.fabric.complete(task_id, actor="ada", deliverables=three)
    assert refused.value.details["point"] == "files"
    with pytest.raises(BudgetExceeded, match="11 of the 10 lines"):
        shop.fabric.complete(task_id, actor="ada", deliverables=shop.deliver(task_id, a=11))
    assert [(one["point"], one["outcome"], one["stage"]) for one in shop.checks(task_id)] == [
        ("files", "blocked", "limits"),
        ("lines", "blocked", "limits"),
    ]
    assert shop.fabric.get(task_id).status == "in-progress"
    (sent,) = shop.fabric.send([report(task_id, "ada", deliverables=three)])
    assert (sent.outcome, sent.reason) == ("rejected", "budget_exceeded")
    shop.fabric.complete(task_id, actor="ada", deliverables=shop.deliver(task_id, a=5, b=5))
    assert shop.fabric.get(task_id).status == "review"


def test_a_refusal_that_is_on_record_is_not_answered_as_done_when_the_request_comes_again(root: Path) -> None:
    shop = Workshop(root, level=1, limits={"files": 1})
    task_id = shop.running()
    two = shop.deliver(task_id, a=1, b=1)
    for _ in range(2):
        with pytest.raises(BudgetExceeded):
            shop.fabric.complete(task_id, actor="ada", deliverables=two, key="once")
    assert shop.fabric.get(task_id).status == "in-progress"
    shop.fabric.complete(task_id, actor="ada", deliverables=two[:1], key="once")
    assert shop.fabric.get(task_id).status == "review"


def test_a_folder_counts_with_all_its_files_and_locked_paths_count_too(root: Path) -> None:
    shop = Workshop(root, level=1, limits={"files": 2})
    task_id = shop.running()
    shop.deliver(task_id, a=1, b=1, c=1)
    with pytest.raises(BudgetExceeded, match="3 of the 2 files"):
        shop.fabric.complete(task_id, actor="ada", deliverables=["outputs"])
    shop.fabric.lock("src/a", task_id=task_id, also=["src/b"], actor="ada")
    with pytest.raises(BudgetExceeded, match="3 of the 2 files"):
        shop.fabric.complete(task_id, actor="ada", deliverables=["outputs/a.txt"])
    shop.fabric.unlock("src/a", task_id=task_id, actor="ada")
    shop.fabric.complete(task_id, actor="ada", deliverables=["outputs/a.txt"])


@pytest.mark.parametrize("noticed", ["lease", "session"])
@pytest.mark.parametrize(("lines", "status"), [(5, "review"), (6, "blocked")])
def test_a_result_that_a_worker_left_in_a_file_is_held_to_its_budget(
    root: Path, noticed: str, lines: int, status: str
) -> None:
    shop = Workshop(root, level=1, limits={"files": 2, "lines": 10})
    task_id = shop.running()
    run = shop.fabric.get(task_id).last_run
    result = {
        "protocolVersion": 1,
        "taskId": task_id,
        "agentId": "ada",
        "runId": run,
        "completedAt": "2026-03-02T09:01:00.000Z",
        "outcome": "done",
        "deliverables": shop.deliver(task_id, a=5, b=lines),
    }
    (root / "runs" / task_id / "run_result.json").write_text(json.dumps(result))
    if noticed == "lease":
        shop.clock.sleep(90_000)
        shop.fabric.recover()
    else:
        shop.fabric.session_end(agent="ada")
    task = shop.fabric.get(task_id)
    assert task.status == status
    if status == "blocked":
        assert task.blocked is not None
        assert task.blocked.reason.startswith("over budget")
        (ruled,) = shop.checks(task_id)
        assert (ruled["point"], ruled["outcome"], ruled["agent"]) == ("lines", "blocked", "ada")
    else:
        assert shop.checks(task_id) == []


def test_a_link_out_of_the_tasks_folder_is_not_followed(root: Path, tmp_path: Path) -> None:
    shop = Workshop(root, level=1, limits={"files": 1, "lines": 5})
    task_id = shop.running()
    shop.deliver(task_id, a=1)
    (tmp_path / "long").write_text("x\n" * 1000)
    (root / "tasks" / "in-progress" / task_id / "outputs" / "link").symlink_to(tmp_path / "long")
    assert shop.fabric.complete(task_id, actor="ada", deliverables=["outputs/link"]).task_id == task_id


def test_work_that_is_blocked_is_always_reported(root: Path) -> None:
    shop = Workshop(root, level=0)
    task_id = shop.running()
    files = shop.deliver(task_id, a=1)
    with pytest.raises(BudgetExceeded):
        shop.fabric.complete(task_id, actor="ada", deliverables=files)
    shop.fabric.complete(task_id, actor="ada", outcome="blocked", blockers=["over budget"], deliverables=files)
    assert shop.fabric.get(task_id).status == "blocked"


def test_a_run_that_has_taken_too_long_cannot_complete_and_the_next_tick_ends_it(root: Path) -> None:
    shop = Workshop(root, level=0)
    in_time, late = shop.running(), shop.running()
    shop.clock.sleep(10 * 60)
    shop.fabric.complete(in_time, actor="ada")
    shop.clock.sleep(1)
    with pytest.raises(BudgetExceeded, match="11 of the 10 minutes"):
        shop.fabric.complete(late, actor="ada")
    shop.fabric.tick()
    error = shop.fabric.get(late).last_error
    assert error is not None
    assert (error.code, error.cause) == ("max_execution_time", "timed_out")


def test_one_run_more_than_the_iterations_of_an_agent_is_not_begun(root: Path) -> None:
    shop = Workshop(root, limits={"iterations": 2})
    task_id = shop.running()
    shop.fabric.release(task_id, agent="ada")
    run = shop.fabric.claim(task_id, agent="ada").run_id
    shop.fabric.release(task_id, run=run)
    with pytest.raises(BudgetExceeded, match="3 of the 2 iterations"):
        shop.fabric.claim(task_id, agent="ada")
    assert shop.fabric.preflight(task_id, agent="ada").outcome == "blocked"
    shop.fabric.claim(task_id, agent="bob")


def test_tool_calls_are_counted_per_run_and_only_those_that_may_proceed(root: Path) -> None:
    shop = Workshop(root, level=2, limits={"toolCalls": 3}, deny={"read": ["secrets"]})
    task_id = shop.running()

    def asked(subject: str, run: str | None = None) -> str:
        return shop.fabric.preflight(task_id, point="read", subject=subject, actor="ada", run=run).outcome

    assert [asked(one) for one in ("a", "secrets/x", "b", "c", "d")] == [
        "proceed",
        "blocked",
        "proceed",
        "proceed_with_warnings",
        "blocked",
    ]
    assert shop.fabric.get(task_id).usage["toolCalls"] == 3
    shop.fabric.release(task_id, agent="ada")
    run = shop.fabric.claim(task_id, agent="ada").run_id
    assert asked("a", run) == "proceed"
    told = shop.checks(task_id)
    assert {one["point"] for one in told} == {"read"}
    assert [one["subject"] for one in told] == ["a", "secrets/x", "b", "c", "d", "a"]


@requirement("handoff.autonomy.preflight-outcomes")
def test_the_check_before_work_lets_start_warns_or_stops(root: Path) -> None:
    shop = Workshop(root, level=1, maxRisk="low", limits={"iterations": 3})
    clean = shop.fabric.create("Clean").task_id
    assert shop.fabric.preflight(clean, agent="ada").outcome == "proceed"
    shop.fabric.claim(clean, agent="ada")
    risky = shop.fabric.create("Risky", profile={"risk": "high"}).task_id
    answer = shop.fabric.preflight(risky, agent="ada")
    assert (answer.outcome, answer.point) == ("blocked", "start")
    assert "low risk at most" in answer.reason
    with pytest.raises(Exception, match="may not take"):
        shop.fabric.claim(risky, agent="ada")
    often = shop.running()
    shop.fabric.release(often, agent="ada")
    shop.fabric.release(often, run=shop.fabric.claim(often, agent="ada").run_id)
    warned = shop.fabric.preflight(often, agent="ada")
    assert warned.outcome == "proceed_with_warnings"
    assert warned.warnings
    assert shop.checks(often)[-1]["warnings"] == list(warned.warnings)
    shop.fabric.claim(often, agent="ada")


def test_a_decision_above_the_agents_risk_is_blocked_with_the_way_on(root: Path) -> None:
    shop = Workshop(root, level=2, maxRisk="low")
    task_id = shop.running()
    answer = shop.fabric.preflight(task_id, point="command", subject="make deploy", risk="medium", actor="ada")
    assert answer.outcome == "blocked"
    assert "escalate" in answer.reason
    assert shop.fabric.preflight(task_id, point="command", subject="make", risk="low", actor="ada").outcome == "proceed"


def test_a_lock_asks_for_the_right_to_write_and_for_the_number_of_files(root: Path) -> None:
    shop = Workshop(root, level=1, limits={"files": 2}, deny={"write": ["migrations"]})
    task_id = shop.running()
    with pytest.raises(BudgetExceeded, match="write, explicit_deny"):
        shop.fabric.lock("src", task_id=task_id, also=["migrations/1.sql"], actor="ada")
    shop.fabric.lock("migrations", task_id=task_id, lock_type="shared", actor="ada")
    shop.fabric.lock("a", task_id=task_id, also=["b"], actor="ada")
    with pytest.raises(BudgetExceeded, match="3 of the 2 files"):
        shop.fabric.lock("c", task_id=task_id, actor="ada")
    told = [(one["point"], one["stage"]) for one in shop.checks(task_id)]
    assert told == [("write", "explicit_deny"), ("files", "limits")]
    reader = Workshop(root.with_name("reader"), level=0)
    mine = reader.running()
    with pytest.raises(BudgetExceeded, match="default_deny"):
        reader.fabric.lock("a", task_id=mine, actor="ada")
    reader.fabric.lock("a", task_id=mine, lock_type="shared", actor="ada")


def test_without_a_chart_or_autonomy_nothing_is_limited_but_what_is_unsafe(root: Path) -> None:
    shop = Workshop(root, level=0)
    task_id = shop.fabric.create("Work").task_id
    shop.fabric.claim(task_id, agent="bob")
    fine = shop.fabric.preflight(task_id, point="command", subject="make deploy", actor="bob")
    assert (fine.outcome, fine.stage) == ("proceed", "undeclared")
    assert shop.fabric.preflight(task_id, point="read", subject="/etc/shadow", actor="bob").stage == "security"
    shop.fabric.complete(task_id, actor="bob", deliverables=[f"outputs/{number}" for number in range(50)])


@requirement("handoff.autonomy.failure-codes")
@pytest.mark.parametrize(
    "code", ["F-DEP", "F-ENV", "F-EXE", "F-TMO", "F-RES", "F-INP", "F-SEC", "F-VAL", "F-REV", "F-UNK"]
)
def test_a_failure_code_says_whether_the_task_is_run_again(root: Path, code: str) -> None:
    shop = Workshop(root)
    task_id = shop.fabric.create("Work").task_id
    again = code in ("F-DEP", "F-ENV", "F-EXE", "F-TMO", "F-RES")
    waits = []
    while shop.fabric.get(task_id).status == "ready":
        begun = shop.clock.now()
        run = shop.fabric.claim(task_id, agent="bob", wait=1000).run_id
        waits.append((shop.clock.now() - begun) // 1000)
        shop.fabric.fail(task_id, run=run, code=code)
    task = shop.fabric.get(task_id)
    assert (task.status, task.retry.attempts) == ("deadletter", 3 if again else 1)
    assert waits == ([0, 60, 180] if again else [0])
    other = shop.running()
    for unknown in ("F-XYZ", "f-dep", "F-"):
        with pytest.raises(InvalidInput, match="cannot be"):
            shop.fabric.fail(other, agent="ada", code=unknown)
    assert shop.fabric.get(other).status == "in-progress"
