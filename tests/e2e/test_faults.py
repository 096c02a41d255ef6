"""Whatever one action, message, run or job of `aof up` raises, it is recorded, and everybody else's work is finished.

What is broken here is taken from the tables that the service works by, so that a new row is covered at once.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from aof.api.fabric import Fabric
from aof.errors import AofError, LockTimeout
from aof.kernel import faults
from aof.kernel.dispatcher import Dispatcher
from aof.kernel.ports import Ended
from aof.messages.protocol import PAYLOADS
from aof.messages.rules import Message
from aof.scheduler import steps as scheduler_steps
from aof.scheduler import tick
from aof.scheduler.host import Hosting, RunEnds
from aof.scheduler.model import Action, Plan, Snapshot
from aof.scheduler.rules import plan
from aof.scheduler.steps import TaskSteps
from aof.scheduler.tick import Tick
from aof.service import up
from aof.service.bootstrap import open_fabric
from aof.service.runners.process_runner import ProcessRunner
from aof.service.up import Service
from tests.support.messages import accepted, rejected, report, request, update
from tests.support.service import directory, scripted

REFERENCE = re.compile(r"FAULT-[0-9a-f]{8}")


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What has failed is tried again a little later, and later each time, but not after seconds."""
    monkeypatch.setattr(faults, "_FIRST", 0.2)


class Bench:
    """A data directory with a task that everything goes wrong with, and two that nothing is wrong with."""

    def __init__(self, folder: Path, *words: str) -> None:
        agents = {
            "ada": scripted(*(words or ("update=on", "report=done"))),
            "bert": scripted("update=on", "report=done"),
        }
        self.root = directory(folder, agents)
        self.said = io.StringIO()
        self.calls = 0
        with open_fabric(self.root, actor="pm") as fabric:
            self.victim = fabric.create("Victim", agent="ada", max_attempts=2, priority="critical").task_id
            self.others = [fabric.create(f"Other {number}", agent="bert").task_id for number in range(2)]

    def breaks(self, *_given: Any, **_named: Any) -> Any:
        """Raise what nobody foresaw."""
        self.calls += 1
        raise ZeroDivisionError("injected \x1b[31m fault")

    def run(self) -> list[dict[str, Any]]:
        """Serve until nothing is left to do; what was said."""
        with open_fabric(self.root, actor="pm") as fabric:
            Service(fabric, once=True, log_json=True, out=self.said).run()
            assert fabric.doctor().ok, fabric.doctor()
            return [json.loads(line) for line in self.said.getvalue().splitlines()]

    def assert_others_finished(self, lines: list[dict[str, Any]], *, most: int = 10) -> None:
        """The others are finished, the fault is told with a reference, and nobody span."""
        with open_fabric(self.root, actor="pm") as fabric:
            assert [fabric.get(one).status for one in self.others] == ["review", "review"]
        assert 1 <= self.calls <= most, "it was reached, and it was not tried again and again"
        told = [line["reason"] for line in lines if line["action"] == "fault"]
        assert told
        for reason in told:
            assert REFERENCE.search(reason)
            assert "\x1b" not in reason


@pytest.mark.parametrize("name", sorted(scheduler_steps.TASK_STEPS))
def test_an_action_that_raises_holds_up_nobody_else(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path)
    carry_out, planned = TaskSteps.carry_out, Tick.planned

    def broken(self: TaskSteps, action: Action, task: Any) -> str | None:
        breaks = action.action == name and task.id == bench.victim
        return bench.breaks() if breaks else carry_out(self, action, task)

    def forced(self: Tick, snapshot: Snapshot) -> Plan:
        found = planned(self, snapshot)
        known = {task.id for task in (*snapshot.ready, *snapshot.running)}
        others = tuple(one for one in found.actions if one.task_id != bench.victim)
        one = (Action(action=name, task_id=bench.victim, reason="injected"),) if bench.victim in known else ()
        return msgspec.structs.replace(found, actions=(*one, *others))

    monkeypatch.setattr(TaskSteps, "carry_out", broken)
    monkeypatch.setattr(Tick, "planned", forced)
    bench.assert_others_finished(bench.run())


@pytest.mark.parametrize("name", ["cancelled", "fenced", "finished", "shutdown", "timeout", None], ids=str)
def test_an_end_that_raises_holds_up_nobody_else(
    name: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path)
    ended = Hosting.ended
    end_session = RunEnds.end_session

    def broken(self: RunEnds, end: Ended) -> None:
        if end.work.task_id == bench.victim:
            bench.breaks()
        end_session(self, end)

    def stopped(self: Hosting, end: Ended) -> None:
        ended(self, msgspec.structs.replace(end, stopped=name) if end.work.task_id == bench.victim else end)

    monkeypatch.setattr(RunEnds, "end_session", broken)
    monkeypatch.setattr(Hosting, "ended", stopped)
    monkeypatch.setattr(Service, "_finished", _when_others_are_done(bench))
    bench.assert_others_finished(bench.run())


def _when_others_are_done(bench: Bench) -> Callable[[Service], bool]:
    def finished(self: Service) -> bool:
        done = all(self._fabric.get(one).status == "review" for one in bench.others)
        return done and bench.calls > 0 and not self._hosting.hosted

    return finished


SENT: dict[str, Callable[[str], dict[str, Any]]] = {
    "completion.report": report,
    "status.update": lambda task_id: update(task_id, progress="on"),
    "handoff.request": lambda task_id: request(task_id[:-3] + "002", task_id, to_agent="bert"),
    "handoff.accepted": lambda task_id: accepted(task_id, "ada"),
    "handoff.rejected": lambda task_id: rejected(task_id, "ada"),
}


@pytest.mark.parametrize("kind", sorted(PAYLOADS))
def test_a_message_that_raises_is_refused_and_the_next_one_taken(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path)
    decide = Message.decide

    def broken(self: Message, records: Any, now: int, rules: Any) -> Any:
        bad = self.type == kind and self.task_id == bench.victim
        return bench.breaks() if bad else decide(self, records, now, rules)

    monkeypatch.setattr(Message, "decide", broken)
    if kind == "handoff.request":
        bench.victim = bench.victim[:-3] + "002"
    with open_fabric(bench.root, actor="pm") as fabric:
        first = SENT[kind](fabric.list(agent="ada").tasks[0].id)
        wrong, right = fabric.send([first, update(bench.others[0], "bert", notes="still here")])
        assert (wrong.outcome, wrong.reason, wrong.type) == ("rejected", "internal", kind)
        name = REFERENCE.search(str(wrong.detail))
        assert name is not None
        assert right.outcome == "accepted"
        (event,) = [one for one in fabric.events() if one.type == "protocol.message.rejected"]
        assert (event.payload["reason"], name.group() in event.payload["detail"]) == ("internal", True)


def test_a_workers_message_that_raises_ends_neither_its_run_nor_the_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path, "update=boom", "report=done")
    decide = Message.decide

    def broken(self: Message, records: Any, now: int, rules: Any) -> Any:
        bad = self.type == "status.update" and self.task_id == bench.victim
        return bench.breaks() if bad else decide(self, records, now, rules)

    monkeypatch.setattr(Message, "decide", broken)
    lines = bench.run()
    with open_fabric(bench.root, actor="pm") as fabric:
        assert {fabric.get(one).status for one in (bench.victim, *bench.others)} == {"review"}
        (event,) = [one for one in fabric.events(task_id=bench.victim) if one.type == "protocol.message.rejected"]
    assert REFERENCE.search(event.payload["detail"])
    assert any(line["action"] == "message" and "internal" in line["reason"] for line in lines)


STEPS = {
    ProcessRunner: ("reserve", "start", "stop", "orphaned", "end", "_read_output", "_read_errors"),
    Hosting: ("_deliver", "_beat", "_fence"),
    RunEnds: ("record",),
}


@pytest.mark.parametrize(("owner", "name"), [(owner, name) for owner, names in STEPS.items() for name in names])
def test_a_step_of_a_run_that_raises_holds_up_nobody_else(
    owner: type[Any], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path)
    step = getattr(owner, name)

    def concerns(given: object) -> bool:
        work = getattr(given, "work", given)
        place = getattr(work, "task_id", work)
        return isinstance(place, str) and bench.victim.removeprefix("TASK-") in place

    def broken(self: Any, *given: Any, **named: Any) -> Any:
        return bench.breaks() if concerns(given[0]) else step(self, *given, **named)

    monkeypatch.setattr(owner, name, broken)
    bench.run()
    with open_fabric(bench.root, actor="pm") as fabric:
        assert [fabric.get(one).status for one in bench.others] == ["review", "review"]
    assert bench.calls <= 30


@pytest.mark.parametrize("name", sorted(up._JOBS))
def test_a_job_that_raises_once_is_tried_again(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path)
    monkeypatch.setattr(up, "_LOOK_ANYWAY", 0.2)  # seconds; a scan is due after five of these
    job = up._JOBS[name]
    monkeypatch.setitem(up._JOBS, name, lambda service: job(service) if bench.calls else bench.breaks())
    bench.assert_others_finished(bench.run())


@pytest.mark.parametrize("name", ["poll", "fence"])
def test_a_host_that_raises_once_goes_on(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path)
    step = getattr(Hosting, name)
    monkeypatch.setattr(Hosting, name, lambda self, *given: step(self, *given) if bench.calls else bench.breaks())
    bench.assert_others_finished(bench.run())


def test_a_job_that_keeps_failing_ends_only_a_service_that_is_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path)
    monkeypatch.setitem(up._JOBS, "tick", bench.breaks)
    with pytest.raises(ZeroDivisionError):
        bench.run()
    assert bench.calls == 3


def test_a_task_that_no_plan_can_be_made_for_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path)

    def broken(snapshot: Snapshot, *given: Any) -> Plan:
        if any(task.id == bench.victim for task in snapshot.ready):
            bench.breaks()
        return plan(snapshot, *given)

    monkeypatch.setattr(tick, "plan", broken)
    lines = bench.run()
    bench.assert_others_finished(lines, most=200)
    assert len([line for line in lines if line["action"] == "fault"]) <= 3, "said once, then seldom"


def test_the_machines_trouble_with_one_task_holds_up_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path)
    execute = Dispatcher.dispatch_trusted
    failures = 2

    def busy(self: Dispatcher, command: Any) -> Any:
        nonlocal failures
        if command.task_id == bench.victim and type(command).__name__ == "EndSession" and failures:
            failures -= 1
            raise LockTimeout("somebody holds the lock", "try again")
        return execute(self, command)

    monkeypatch.setattr(Dispatcher, "dispatch_trusted", busy)
    lines = bench.run()
    with open_fabric(bench.root, actor="pm") as fabric:
        assert {fabric.get(one).status for one in (bench.victim, *bench.others)} == {"review"}, "it was tried again"
    assert len([line for line in lines if line["action"] == "trouble"]) == 2


def test_a_log_that_nobody_reads_any_more_ends_nothing(tmp_path: Path) -> None:
    bench = Bench(tmp_path)

    class Full(io.StringIO):
        def write(self, _text: str) -> int:
            raise OSError(28, "no space left on device")

    with open_fabric(bench.root, actor="pm") as fabric:
        assert Service(fabric, once=True, out=Full()).run() == 0
        assert {fabric.get(one).status for one in (bench.victim, *bench.others)} == {"review"}


def waiting(fabric: Fabric, title: str) -> str:
    """A task that was put into the backlog to wait for one that is done by now."""
    blocker = fabric.create(f"Before {title}", review=False).task_id
    task_id = fabric.create(title, depends_on=[blocker], backlog=True).task_id
    fabric.complete(blocker, agent="ada")
    return task_id


def test_a_tick_by_hand_goes_on_with_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = directory(tmp_path, {})
    with open_fabric(root, actor="pm") as fabric:
        first, second = (waiting(fabric, title) for title in ("One", "Two"))
        carry_out = TaskSteps.carry_out

        def broken(self: TaskSteps, action: Action, task: Any) -> str | None:
            if task.id == first:
                raise RuntimeError("injected")
            return carry_out(self, action, task)

        monkeypatch.setattr(TaskSteps, "carry_out", broken)
        ticked = fabric.tick()
        assert [one.task_id for one in ticked.actions] == [second]
        (left,) = [one for one in ticked.left if one.task_id == first]
        assert REFERENCE.search(left.reason)


def test_a_tick_by_hand_that_can_do_nothing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = directory(tmp_path, {})

    def busy(*_given: Any) -> None:
        raise LockTimeout("somebody holds the lock", "try again")

    monkeypatch.setattr(TaskSteps, "carry_out", busy)
    with open_fabric(root, actor="pm") as fabric:
        waiting(fabric, "One")
        with pytest.raises(AofError, match="holds the lock"):
            fabric.tick()


HANDLERS = {
    Service: ("_changed", "_look_at_chart", "_checkpoint"),
    Hosting: ("said", "ended", "look_for_orphans"),
    ProcessRunner: ("_ended", "poll"),
}


@pytest.mark.parametrize(("owner", "name"), [(owner, name) for owner, names in HANDLERS.items() for name in names])
def test_a_handler_that_raises_once_goes_on(
    owner: type[Any], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path)
    handler, tell = getattr(owner, name), Service._tell

    def broken(self: Any, *given: Any) -> Any:
        return handler(self, *given) if bench.calls else bench.breaks()

    def edited(self: Service, action: str, task_id: str, reason: str) -> None:
        if action == "up":
            (bench.root / "org/another-file").touch()  # the service looks at the chart again
        tell(self, action, task_id, reason)

    monkeypatch.setattr(owner, name, broken)
    monkeypatch.setattr(Service, "_tell", edited)
    bench.assert_others_finished(bench.run())
