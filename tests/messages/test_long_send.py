"""A long `send` leaves time to others: it pauses between its messages, and holds nothing while it does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import aof
from aof.api.fabric import Fabric
from aof.errors import AofError
from tests.support.clock import ManualClock
from tests.support.indexes import open_fabric

_FEW = 10  # messages that are delivered without a pause
_MESSAGE = (
    '{"protocol":"aof","version":1,"projectId":"p","type":"status.update","taskId":"TASK-2026-01-01-001",'
    '"fromAgent":"ada","toAgent":"pm","sentAt":"2026-01-05T09:00:00Z",'
    '"payload":{"taskId":"TASK-2026-01-01-001","agentId":"ada","notes":"x"}}'
)


class PausingClock(ManualClock):
    """Every look at it takes a while; tells of each pause."""

    def __init__(self, step: float) -> None:
        super().__init__()
        self.step = step
        self.pauses: list[float] = []
        self.meanwhile: Callable[[], object] = lambda: None

    def monotonic(self) -> float:
        self.ticks += self.step
        return self.ticks

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self.pauses.append(seconds)
        self.meanwhile()


def _root(folder: Path) -> Path:
    return Path(aof.init(folder / ".aof")[0])


def _sent(root: Path, clock: PausingClock, messages: list[str]) -> list[str]:
    with open_fabric(root, clock) as fabric:
        clock.pauses.clear()
        return [one.outcome for one in fabric.send(messages)]


def test_a_short_send_does_not_pause(tmp_path: Path) -> None:
    clock = PausingClock(0.01)
    assert _sent(_root(tmp_path), clock, [_MESSAGE] * _FEW) == ["rejected"] * _FEW
    assert clock.pauses == []


def test_a_long_send_pauses_after_each_message_for_as_long_as_it_took(tmp_path: Path) -> None:
    clock = PausingClock(0.01)
    assert _sent(_root(tmp_path), clock, [_MESSAGE] * (_FEW + 5)) == ["rejected"] * (_FEW + 5)
    assert len(clock.pauses) == 5
    assert min(clock.pauses) >= 0.01 - 1e-9


def test_a_pause_is_short_however_long_a_message_took(tmp_path: Path) -> None:
    clock = PausingClock(60.0)
    _sent(_root(tmp_path), clock, [_MESSAGE] * (_FEW + 1))
    assert clock.pauses == [0.05]


def test_lines_that_are_no_messages_cost_no_pause(tmp_path: Path) -> None:
    clock = PausingClock(0.01)
    assert _sent(_root(tmp_path), clock, ["just talk"] * 50) == ["ignored"] * 50
    assert clock.pauses == []


def test_a_long_send_lets_other_callers_in_between(tmp_path: Path) -> None:
    root, clock = _root(tmp_path), PausingClock(0.01)
    refused: list[AofError] = []

    def work(other: Fabric) -> None:
        try:
            other.create("Work")
        except AofError as error:
            refused.append(error)

    with open_fabric(root, clock) as sender, open_fabric(root, ManualClock()) as other:
        clock.meanwhile = lambda: work(other)
        sender.send([_MESSAGE] * (_FEW + 5))
        assert refused == []
        kinds = [event.type for event in other.events() if event.type in ("task.created", "protocol.message.rejected")]
    assert kinds[-10:] == ["protocol.message.rejected", "task.created"] * 5
