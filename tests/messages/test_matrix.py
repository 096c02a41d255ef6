"""Every type of message, with every combination of its optional fields, to a task in every situation.

The types and their fields are read from the protocol's own models, so that a new one is part of the matrix at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, combinations, product
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aof.api.fabric import Fabric
from aof.kernel.events import is_remark
from aof.kernel.evolve import evolve
from aof.kernel.kinds import Status
from aof.kernel.model import STATUSES
from aof.messages.protocol import PAYLOADS, Envelope
from aof.runs.model import OUTCOMES
from aof.tasks.model import Task
from aof.testing import FakeClock, memory_fabric
from tests.support.messages import message
from tests.support.room import in_status
from tests.support.workflows import REVIEW

REQUIRED: dict[str, dict[str, tuple[Any, ...]]] = {
    "completion.report": {"outcome": tuple(OUTCOMES), "summaryRef": ("outputs/summary.md",)},
    "status.update": {"agentId": ("ada",)},
    "handoff.request": {"fromAgent": ("ada",), "toAgent": ("bob",)},
    "handoff.accepted": {"accepted": (True,)},
    "handoff.rejected": {"accepted": (False,), "reason": ("no context",)},
}
OPTIONAL: dict[str, tuple[Any, ...]] = {
    "status": get_args(Status),
    "progress": ("half way",),
    "blockers": (["no key", "no time"],),
    "notes": ("a note",),
    "deliverables": (["src/a.py"],),
    "tests": ({"total": 2, "passed": 1, "failed": 1},),
    "acceptanceCriteria": (["it works"],),
    "expectedOutputs": (["outputs/report.md"],),
    "contextRefs": (["inputs/a.md"],),
    "constraints": (["no new dependencies"],),
    "dueBy": ("2026-03-02T12:00:00.000Z",),
}
ENVELOPE: dict[str, tuple[Any, ...]] = {"runId": ("held", "RUN-2026-01-05-999-1")}


class Scene:
    """A fabric in memory that brings a task into any situation."""

    def __init__(self) -> None:
        self.fabric: Fabric = memory_fabric(actor="pm", clock=FakeClock(), workflows=(REVIEW,))

    def task(self, situation: str) -> str:
        """A new task, in this situation."""
        name, _, more = situation.partition(" ")
        task_id = in_status(self.fabric, name) if name in STATUSES else self._gated(name)
        if more == "delegated":
            parent = self.fabric.create("Above", agent="ada").task_id
            self.fabric.claim(parent, agent="ada")
            payload = {"taskId": task_id, "parentTaskId": parent, "fromAgent": "ada", "toAgent": "bob"}
            self.fabric.send(message("handoff.request", task_id, "ada", payload, toAgent="bob"))
        if more == "cancelling":
            self.fabric.cancel(task_id)
        return task_id

    def _gated(self, hop: str) -> str:
        task_id = self.fabric.create("Gated", workflow="review").task_id
        if hop != "open":
            self.fabric.claim(task_id, agent="ada")
        if hop == "reported":
            self.fabric.complete(task_id, agent="ada", outcome="complete")
        return task_id

    def held(self, task_id: str) -> str:
        """The last run of a task."""
        runs = self.fabric.store.attempts(task_id)
        return runs[-1].run_id if runs else "RUN-2026-01-05-998-1"

    def assert_sound(self) -> None:
        """The log alone gives the same tasks, and everything can still be read and asked."""
        replayed: dict[str, Task] = {}
        for event in self.fabric.store.events():
            if event.task_id and not is_remark(event):
                replayed[event.task_id] = evolve(replayed.get(event.task_id), event)
        for task_id, task in replayed.items():
            assert self.fabric.get(task_id) == task
            self.fabric.show(task_id)
        self.fabric.tick(dry_run=True)


SITUATIONS = (
    *STATUSES,
    "ready delegated",
    "in-progress delegated",
    "in-progress cancelling",
    "open hop",
    "running hop",
    "reported hop",
)


def optional(model: type[msgspec.Struct]) -> list[str]:
    """The names of the fields that may be left out, as the wire has them."""
    return [field.encode_name for field in msgspec.structs.fields(model) if not field.required]


def choices(fields: dict[str, tuple[Any, ...]]) -> Iterator[dict[str, Any]]:
    """Every way to fill them all."""
    for values in product(*fields.values()):
        yield dict(zip(fields, values, strict=True))


def subsets(names: list[str]) -> Iterator[tuple[str, ...]]:
    """Every combination of names."""
    return chain.from_iterable(combinations(names, size) for size in range(len(names) + 1))


def payloads(kind: str) -> list[dict[str, Any]]:
    """Every payload of a type."""
    return [
        payload
        for names in subsets(optional(PAYLOADS[kind]))
        for payload in choices(REQUIRED[kind] | {name: OPTIONAL[name] for name in names})
    ]


def envelopes() -> list[dict[str, Any]]:
    """Every combination of what an envelope may carry."""
    return [more for names in subsets(optional(Envelope)) for more in choices({name: ENVELOPE[name] for name in names})]


def deliver(scene: Scene, kind: str, task_id: str, payload: dict[str, Any], more: dict[str, Any]) -> None:
    """Send one message of the matrix; its answer is one that the protocol knows."""
    known = {field.encode_name for field in msgspec.structs.fields(PAYLOADS[kind])}
    named = {"taskId": task_id} if "taskId" in known else {}
    if "parentTaskId" in known:
        named = {"taskId": scene.task("ready"), "parentTaskId": task_id}
    filled = {name: scene.held(task_id) if value == "held" else value for name, value in more.items()}
    sender = "bob" if kind in ("handoff.accepted", "handoff.rejected") else "ada"
    fields = message(kind, named.get("taskId", task_id), sender, payload | named, **filled)
    (sent,) = scene.fabric.send(fields)
    assert sent.outcome in ("accepted", "noop", "rejected"), (fields, sent)
    assert sent.reason != "internal", (fields, sent)
    assert sent.outcome != "rejected" or sent.detail


def test_the_matrix_knows_every_type_and_field() -> None:
    assert set(REQUIRED) == set(PAYLOADS)
    for kind in PAYLOADS:
        assert payloads(kind)
    assert len(envelopes()) > len(optional(Envelope))


@pytest.mark.full
@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("kind", sorted(PAYLOADS))
def test_every_message_of_the_matrix_has_an_answer(kind: str, situation: str) -> None:
    scene = Scene()
    for payload, more in product(payloads(kind), envelopes()):
        deliver(scene, kind, scene.task(situation), payload, more)
    scene.assert_sound()


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("kind", sorted(PAYLOADS))
def test_every_payload_has_an_answer_in_every_situation(kind: str, situation: str) -> None:
    scene = Scene()
    for payload in payloads(kind):
        deliver(scene, kind, scene.task(situation), payload, {})
    scene.assert_sound()


@st.composite
def sequences(draw: st.DrawFn) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    one = st.sampled_from(sorted(PAYLOADS)).flatmap(
        lambda kind: st.tuples(st.just(kind), st.sampled_from(payloads(kind)), st.sampled_from(envelopes()))
    )
    return draw(st.lists(one, min_size=2, max_size=8))


@given(st.sampled_from(SITUATIONS), sequences())
@settings(max_examples=60, deadline=None)
def test_messages_one_after_another_leave_a_sound_task(
    situation: str, sent: list[tuple[str, dict[str, Any], dict[str, Any]]]
) -> None:
    scene = Scene()
    task_id = scene.task(situation)
    for kind, payload, more in sent:
        deliver(scene, kind, task_id, payload, more)
        scene.fabric.session_end()
    scene.assert_sound()


def test_a_review_with_blockers_goes_to_review_and_keeps_them() -> None:
    scene = Scene()
    task_id = scene.task("in-progress")
    payload = {"taskId": task_id, "agentId": "ada", "status": "review", "blockers": ["no key", "no time"], "notes": "n"}
    (sent,) = scene.fabric.send(message("status.update", task_id, "ada", payload))
    assert sent.outcome == "accepted"
    task = scene.fabric.get(task_id)
    assert (task.status, task.lease) == ("review", None)
    (moved,) = [event for event in scene.fabric.events(task_id=task_id) if event.payload.get("to") == "review"]
    assert moved.payload["reason"] == "no key; no time"
    assert (moved.payload["blockers"], moved.payload["notes"]) == (["no key", "no time"], "n")
