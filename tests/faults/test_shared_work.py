"""Shared work under real concurrency and crashes: one winner per lock, no lost write, the same after a restart."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from aof.api.fabric import Fabric
from aof.errors import ContextConflict, FileLocked
from aof.kernel.model import Policy
from aof.service.bootstrap import open_fabric
from aof.service.clock import SystemClock
from aof.store.files.locks import boot_id
from aof.store.files.store import FilesystemStore
from aof.store.files.unit import IndexQuestions
from aof.tasks.model import FileLock
from aof.testing import FakeClock
from tests.support.invariants import check_invariants
from tests.support.messages import accepted, request
from tests.support.processes import outcome, together
from tests.support.requirements import requirement
from tests.support.room import Room

RIVALS = 20


@requirement("handoff.locks.exclusive-and-shared")
def test_of_twenty_processes_that_want_one_file_one_gets_it_and_the_others_learn_its_name(quick: Path) -> None:
    with open_fabric(quick, actor="pm") as fabric:
        tasks = [fabric.create(f"Number {number}").task_id for number in range(RIVALS)]
        for number, task_id in enumerate(tasks):
            fabric.claim(task_id, agent=f"agent-{number}", ttl=3600)

    def lock(number: int) -> tuple[str, str]:
        path = "src" if number % 2 else "src/api.py"  # a folder and what is in it are in each other's way
        with open_fabric(quick, actor=f"agent-{number}") as mine:
            try:
                mine.lock(path, task_id=tasks[number])
            except FileLocked as refusal:
                return f"{refusal.kind}: {refusal.code}", str(refusal.details["holder"])
            return "won", f"agent-{number}"

    answers = together(RIVALS, lock)
    assert Counter(code for code, _ in answers) == {"won": 1, "conflict: file_locked": RIVALS - 1}
    assert len({name for _, name in answers}) == 1
    winner = answers[0][1]
    with open_fabric(quick) as fabric:
        assert [one["owner"] for one in fabric.locks().locks] == [winner]
        number = int(winner.rpartition("-")[2])
        fabric.unlock(task_id=tasks[number], actor=winner)
        for one in (0, 1):
            fabric.lock("src", task_id=tasks[one], lock_type="shared", actor=f"agent-{one}")
        for one in (0, 1):
            with pytest.raises(FileLocked):
                fabric.lock("src", task_id=tasks[2], actor="agent-2")
            fabric.unlock("src", task_id=tasks[one], actor=f"agent-{one}")
        fabric.lock("src", task_id=tasks[2], actor="agent-2")
    check_invariants(quick, boot=boot_id())


def test_nobody_gets_a_lock_between_anothers_look_and_its_commit(quick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hasty = Fabric(FilesystemStore(str(quick), SystemClock(), lock_timeout=0.05), SystemClock(), Policy(), "bob")
    looks = IndexQuestions.file_locks
    met: list[str] = []

    def looked(self: IndexQuestions) -> dict[str, tuple[FileLock, ...]]:
        found = looks(self)
        if not met:
            met.append("asked")
            met.append(outcome(hasty.lock, "src", task_id=second))
        return found

    with hasty, open_fabric(quick, actor="ada") as fabric:
        first, second = (fabric.create(f"Number {number}").task_id for number in range(2))
        fabric.claim(first, agent="ada")
        fabric.claim(second, agent="bob")
        monkeypatch.setattr(IndexQuestions, "file_locks", looked)
        fabric.lock("src/api.py", task_id=first)
        assert met == ["asked", "lock_timeout"]
        assert outcome(hasty.lock, "src", task_id=second) == "file_locked"


@requirement("handoff.context.conflicting-writes")
def test_of_processes_that_write_one_variable_from_one_version_one_value_results_and_all_are_logged(
    quick: Path,
) -> None:
    with open_fabric(quick, actor="pm") as fabric:
        task_id = fabric.create("Whole").task_id
        fabric.context_set(task_id, variables={"port": 0}, scope="shared", actor="ada")

    def write(number: int) -> str:
        with open_fabric(quick, actor=f"agent-{number}") as mine:
            try:
                mine.context_set(task_id, variables={"port": number + 1}, base=1)
            except ContextConflict as refusal:
                return refusal.code
            return "ok"

    answers = together(8, write)
    assert Counter(answers) == {"ok": 1, "context_conflict": 7}
    with open_fabric(quick) as fabric:
        shown = fabric.context_show(task_id)
        assert shown.context_variables.custom == {"port": answers.index("ok") + 1}
        events = [event for event in fabric.events(task_id=task_id) if event.type.startswith("context.")]
        tried = {event.payload["value"] for event in events}
        assert tried == set(range(9)), "every attempt is in the log"
        told = [event.payload for event in events if event.type == "context.conflict"]
        assert {(one["resolution"], one["held"]["value"]) for one in told} == {("kept", answers.index("ok") + 1)}
    check_invariants(quick, boot=boot_id())


@requirement("handoff.context.persists")
def test_a_value_lasts_over_two_handoffs_with_every_process_restarted_in_between(root: Path) -> None:
    with open_fabric(root, actor="pm") as fabric:
        top = fabric.create("Whole").task_id
        fabric.claim(top, agent="ada", ttl=3600)
        fabric.context_set(top, variables={"plan": {"steps": [1, 2.5, "drei ü"]}}, actor="ada")
    last = top
    for receiver in ("bob", "cem"):
        with open_fabric(root, actor="pm") as fabric:
            last = fabric.create("Part", parent_id=top, agent=receiver).task_id
            fabric.send([request(last, top, "ada", receiver)])
        with open_fabric(root, actor=receiver) as fabric:
            fabric.send([accepted(last, receiver)])
            fabric.claim(last, agent=receiver)
            assert fabric.context_show(last).context_variables.custom == {"plan": {"steps": [1, 2.5, "drei ü"]}}
    (root / "index.sqlite").unlink(missing_ok=True)
    with open_fabric(root, actor="cem") as fabric:
        shown = fabric.context_show(last)
        assert shown.variables["plan"].writer == "ada"
        (replayed,) = [one for one in fabric.replay(fabric.store.head())["tasks"] if one["id"] == top]
        assert replayed["id"] == top
        assert fabric.show(top, at=fabric.store.head())["context"]["variables"]["plan"]["value"]["steps"][1] == 2.5


def test_a_persons_edit_changes_neither_locks_nor_context_nor_usage(tmp_path: Path) -> None:
    room = Room(tmp_path / ".aof", FakeClock("2026-03-02T09:00:00Z"))
    task_id = room.task("in-progress")
    room.fabric.lock("src", task_id=task_id, actor="ada")
    room.fabric.context_set(task_id, variables={"port": 1}, actor="ada")
    room.fabric.preflight(task_id, point="read", subject="src", actor="ada")
    before = room.fabric.get(task_id)
    text = room.file(task_id).read_text()
    assert (before.usage["toolCalls"], text.count('"src"'), text.count('"value":1')) == (1, 1, 1)
    edited = text.replace('"src"', '"docs"').replace('"value":1', '"value":2').replace('"toolCalls":1', '"toolCalls":0')
    room.file(task_id).write_text(edited)
    room.fabric.sync()
    after = room.reopen().get(task_id)
    assert (after.locks, after.context, after.usage) == (before.locks, before.context, before.usage)
    assert room.file(task_id).with_name(f"{task_id}.md.conflict").read_text() == edited, "what they wrote is kept"
