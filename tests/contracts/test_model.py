"""The same history gives the same state on every store, at every step; and it is the state that a small model expects.

The log alone gives that state too. Deleting the index and opening the store again change nothing.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from aof.api.fabric import Fabric
from aof.errors import AofError
from aof.kernel.events import Event
from aof.kernel.model import Policy, run_id
from aof.store.files.store import FilesystemStore
from aof.store.fold import fold
from aof.store.port import Scope
from aof.support.hashing import hexdigest
from aof.tasks.model import Task
from aof.testing import FakeClock, memory_fabric
from tests.support.histories import AGENTS, OPERATIONS, SLOTS, Player
from tests.support.indexes import open_fabric
from tests.support.invariants import check_files
from tests.support.model import Model

REASONS: dict[str, dict[str, Any]] = {
    "block": {"reason": "in the way"},
    "reject": {"blockers": ["not so"]},
    "retry": {"reason": "once more"},
}
numbers = st.integers(0, 9)
TAG = "5f0c93ab"


@pytest.fixture(autouse=True)
def _no_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    """The secrets and tags of runs are all that is drawn; here they are the same on both stores."""
    monkeypatch.setattr("aof.kernel.unit_of_work.draw", lambda: (TAG, "e" * 32))
    random = "0" * 64
    monkeypatch.setattr("aof.kernel.identity.draw", lambda: (random, hexdigest(random.encode())))


class TwoStores(RuleBasedStateMachine):
    """One fabric in memory and one on the disk, on the same clock."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = FakeClock()
        self.folder = tempfile.mkdtemp()
        FilesystemStore.create(self.root)
        self.memory = memory_fabric("pm", self.clock, Policy(resource_slots=SLOTS))
        self.disk = open_fabric(Path(self.root), self.clock)

    @property
    def root(self) -> str:
        return f"{self.folder}/.aof"

    def teardown(self) -> None:
        self.disk.close()
        shutil.rmtree(self.folder)

    def replaced(self, fabric: Fabric) -> None:
        """Called with the fabric that now stands for the directory."""

    @rule()
    def delete_the_index(self) -> None:
        Path(self.root, "index.sqlite").unlink(missing_ok=True)

    @rule()
    def open_the_store_again(self) -> None:
        self.disk.close()
        self.disk = open_fabric(Path(self.root), self.clock)
        self.replaced(self.disk)

    @rule()
    def make_a_checkpoint(self) -> None:
        assert isinstance(self.disk.store, FilesystemStore)
        self.disk.store.checkpoint()

    @invariant()
    def both_have_the_same_log(self) -> None:
        assert list(map(plain, self.disk.store.events())) == list(map(plain, self.memory.store.events()))

    @invariant()
    def files_log_and_memory_say_the_same(self) -> None:
        folded = fold(self.disk.store.events())
        check_files(self.root, folded)
        for task_id, one in folded.items():
            assert everything(self.disk, task_id) == everything(self.memory, task_id)
            assert one.task == self.disk.get(task_id) == self.memory.get(task_id)
            assert tuple(one.runs) == self.disk.store.attempts(task_id) == self.memory.store.attempts(task_id)
        assert msgspec.to_builtins(self.disk.list(archived=True)) == msgspec.to_builtins(
            self.memory.list(archived=True)
        )
        assert msgspec.to_builtins(self.disk.ready()) == msgspec.to_builtins(self.memory.ready())


def plain(event: Event) -> Event:
    """An event without what only files need."""
    return msgspec.structs.replace(event, files={}, hash="", layout=None)


def everything(fabric: Fabric, task_id: str) -> tuple[Any, ...]:
    """What a store knows of one task."""
    with fabric.store.unit(Scope(read=frozenset({task_id}))) as unit:
        records = unit.task(task_id), unit.run(task_id), unit.result(task_id), unit.heartbeat(task_id)
        around = unit.children(task_id), unit.dependents(task_id), unit.above(task_id), unit.tree(task_id)
        return *records, *around, unit.reachable(task_id)


class AnyHistory(TwoStores):
    """Every operation there is, with whatever comes of it."""

    def __init__(self) -> None:
        super().__init__()
        self.players = Player(self.memory, self.clock), Player(self.disk, self.clock)

    def replaced(self, fabric: Fabric) -> None:
        self.players[1].fabric = fabric

    @initialize(first=numbers, second=numbers)
    def begin(self, first: int, second: int) -> None:
        for turn in range(3):
            self.anything("create", first + turn, second)

    @rule(name=st.sampled_from(sorted(OPERATIONS.keys() - {"later"})), first=numbers, second=numbers)
    def anything(self, name: str, first: int, second: int) -> None:
        in_memory, on_disk = (player.play((name, first % 10, second)) for player in self.players)
        assert on_disk == in_memory

    @rule(agent=numbers, task=numbers, then=st.sampled_from(["complete", "fail", "release", "beat"]), how=numbers)
    def work(self, agent: int, task: int, then: str, how: int) -> None:
        self.anything("claim next", task, agent)
        self.anything(then, 3, how)

    @rule(second=numbers)
    def later(self, second: int) -> None:
        self.players[0].play(("later", 0, second))


class Expected(TwoStores):
    """The operations that the model knows."""

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.ids: list[str] = []

    def on_both(self, operation: str, *given: Any, **named: Any) -> tuple[str, Any]:
        """The code and the answer, the same from both."""
        answers = []
        for fabric in (self.memory, self.disk):
            try:
                answers.append(("ok", msgspec.to_builtins(getattr(fabric, operation)(*given, **named))))
            except AofError as error:
                answers.append((error.code, error.message))
        assert answers[0] == answers[1]
        return answers[0]

    def pick(self, number: int) -> str:
        if not self.ids:
            self.create([], review=True, most=3)
        return self.ids[number % len(self.ids)]

    @rule(waits=st.lists(numbers, max_size=2), review=st.booleans(), most=st.integers(1, 3))
    def create(self, waits: list[int], *, review: bool, most: int) -> None:
        blockers = tuple(dict.fromkeys(self.ids[number % len(self.ids)] for number in waits if self.ids))
        code, made = self.on_both("create", "Work", depends_on=blockers, review=review, max_attempts=most)
        assert code == "ok"
        self.ids.append(made["taskId"])
        self.model.create(made["taskId"], waits_for=blockers, review=review, most=most)

    @rule(number=numbers, agent=st.sampled_from(AGENTS))
    def claim(self, number: int, agent: str) -> None:
        name = self.pick(number)
        code, _ = self.on_both("claim", name, agent=agent)
        assert code == self.model.claim(name, agent, self.clock.now())

    @rule(agent=st.sampled_from(AGENTS))
    def claim_any(self, agent: str) -> None:
        offered = self.model.claim_next(self.clock.now())
        code, claimed = self.on_both("claim", agent=agent)
        assert code == ("ok" if offered else "nothing_ready")
        if offered:
            assert claimed["taskId"] in offered
            assert self.model.claim(claimed["taskId"], agent, self.clock.now()) == "ok"

    @rule(number=numbers, back=st.integers(0, 1), what=st.sampled_from(["heartbeat", "release", "complete", "fail"]))
    def write(self, number: int, back: int, what: str) -> None:
        name = self.pick(number)
        epoch = self.model.tasks[name].runs - back
        if epoch < 1 or (self.model.tasks[name].archived and what != "complete"):
            return
        code, _ = self.on_both(what, name, run=run_id(name, epoch, TAG))
        now = self.clock.now()
        expected = {
            "heartbeat": lambda: self.model.beat(name, epoch, now),
            "release": lambda: self.model.release(name, epoch),
            "complete": lambda: self.model.complete(name, epoch),
            "fail": lambda: self.model.fail(name, epoch, now),
        }[what]()
        assert code == expected

    @rule(number=numbers, what=st.sampled_from(["approve", "cancel", "block", "unblock", "archive", "reject", "retry"]))
    def manage(self, number: int, what: str) -> None:
        name = self.pick(number)
        if self.model.tasks[name].archived:
            return
        code, _ = self.on_both(what, name, **REASONS.get(what, {}))
        if what == "retry":
            assert code == self.model.retry(name, self.clock.now())
        else:
            assert code == getattr(self.model, what)(name)

    @rule(seconds=st.sampled_from([1, 59, 60, 180, 299, 300, 301, 90_000]))
    def later(self, seconds: int) -> None:
        self.clock.sleep(seconds)

    @rule()
    def recover(self) -> None:
        _, recovered = self.on_both("recover")
        assert {one["taskId"] for one in recovered} == self.model.recover(self.clock.now())

    @invariant()
    def the_model_is_right(self) -> None:
        for name, expected in self.model.tasks.items():
            task = self.disk.get(name)
            assert seen(task) == (
                expected.status, expected.runs, expected.holder, expected.failures, expected.archived,
            )  # fmt: skip
        assert {row.id for row in self.disk.ready().tasks} == self.model.offered(self.clock.now())


def seen(task: Task) -> tuple[Any, ...]:
    """What the model knows of a task."""
    holder = task.lease.agent if task.lease else None
    return task.status, task.retry.attempts, holder, task.retry.failures, task.archived


def at_most(examples: int, steps: int) -> settings:
    """How much is tried; a failure is made small, but not explained, which would take minutes."""
    phases = [phase for phase in Phase if phase is not Phase.explain]
    return settings(max_examples=examples, stateful_step_count=steps, deadline=None, phases=phases)


def test_any_history_gives_the_same_on_every_store_and_from_the_log() -> None:
    run_state_machine_as_test(AnyHistory, settings=at_most(25, 30))


def test_a_history_gives_what_the_model_expects() -> None:
    run_state_machine_as_test(Expected, settings=at_most(25, 30))


@pytest.fixture
def history() -> Iterator[Expected]:
    """One history, step by step."""
    made = Expected()
    yield made
    made.teardown()


def test_a_task_unblocked_by_hand_is_blocked_again_while_a_dependency_of_it_is_cancelled(history: Expected) -> None:
    history.create([], review=True, most=3)
    history.manage(0, "cancel")
    history.create([0], review=False, most=1)
    history.manage(1, "unblock")
    history.files_log_and_memory_say_the_same()
    history.the_model_is_right()
    assert history.model.tasks[history.ids[1]].status == "blocked"


def test_a_completion_said_again_after_a_cancellation_changes_nothing(history: Expected) -> None:
    history.create([], review=True, most=3)
    history.claim(agent="ada", number=0)
    history.write(back=0, number=0, what="complete")
    history.manage(0, "cancel")
    history.write(back=0, number=0, what="complete")
    history.files_log_and_memory_say_the_same()
    assert history.model.tasks[history.ids[0]].status == "cancelled"


@pytest.mark.full
@pytest.mark.parametrize("machine", [AnyHistory, Expected])
def test_many_long_histories_do_as_well(machine: type[TwoStores]) -> None:
    run_state_machine_as_test(machine, settings=at_most(150, 60))
